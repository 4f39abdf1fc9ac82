//! The values of user variables, as literals in the places of parameters.
//!
//! The server knows them: whoever sets a variable has sent it the value. They are read from it with
//! their types, and written down so that the literal means what the parameter would have meant.
//! What has no such literal is refused.

use onionskin_plan::Argument;
use onionskin_plan::by_name::{Around, Parameter};
use onionskin_plan::errors;
use onionskin_value::{Charset, Family};
use onionskin_wire::messages::ColumnDefinition;
use onionskin_wire::{ColumnFlags, ColumnType};

use crate::bind::{FromVariable, converted, put_quoted};
use crate::error::{Failure, Outcome};
use crate::hex::unhex;
use crate::scratch::question;
use crate::session::Session;

/// The character sets in which ASCII is one byte a character, and nothing else has such bytes.
const WIDE: [&str; 6] = ["ucs2", "utf16", "utf16le", "utf32", "swe7", "filename"];

/// A user variable, as the server has it.
struct Variable {
    /// As numbers are shown.
    shown: Option<Vec<u8>>,
    /// The bytes of a text.
    bytes: Vec<u8>,
    kind: ColumnType,
    unsigned: bool,
    collation: String,
}

impl Session {
    /// The text in a variable, in the client's character set; `None` if it holds none.
    pub(super) fn text_in_variable(&mut self, name: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let (variables, _) = self.read_variables(&[name])?;
        let Some(variable) = variables.into_iter().next() else {
            return Ok(None);
        };
        if variable.shown.is_none() || is_number(variable.kind) {
            return Ok(None);
        }
        let own = self.state.client_charset;
        let charset = Charset::from_name(charset_of(&variable.collation));
        // servers make it the connection's, and read it as the client's
        let same = own.is_some() && charset == own && self.state.connection_charset == own;
        let plain = variable.bytes.is_ascii() && !is_wide(&variable.collation);
        if same || plain {
            return Ok(Some(variable.bytes));
        }
        let about = "a statement text in another character set than the client's";
        Err(Failure::refused(&errors::DYNAMIC, about))
    }

    /// The text with values in the places of its parameters. Which of them stand for variables is
    /// kept for MySQL, to which a literal would mean something else.
    pub(super) fn with_values(
        &mut self,
        text: &[u8],
        places: &[Parameter],
        using: &[Argument],
    ) -> Outcome<Vec<u8>> {
        if places.len() != using.len() {
            return Err(Failure::refused(&errors::INTERNAL, "parameters"));
        }
        let names: Vec<&[u8]> = using
            .iter()
            .filter_map(|a| match a {
                Argument::Variable(name) => Some(name.as_slice()),
                Argument::Literal(_) => None,
            })
            .collect();
        let (variables, collation) = match names.is_empty() {
            true => (Vec::new(), String::new()),
            false => self.read_variables(&names)?,
        };
        let mut variables = variables.iter();
        let mut out = Vec::with_capacity(text.len() + 32 * places.len());
        let mut at = 0;
        for (place, argument) in places.iter().zip(using) {
            out.extend_from_slice(text.get(at..place.start).unwrap_or_default());
            // a sign is not to meet another one
            out.push(b' ');
            match argument {
                Argument::Literal(literal) => {
                    if place.around == Around::Limit && !counts(literal) {
                        return Err(unfit("LIMIT"));
                    }
                    out.extend_from_slice(literal);
                }
                Argument::Variable(name) => {
                    let variable = variables
                        .next()
                        .ok_or_else(|| Failure::refused(&errors::INTERNAL, "parameters"))?;
                    let start = out.len();
                    self.put_variable(variable, place.around, &collation, &mut out)?;
                    if self.state.family == Family::MySql {
                        let sign = usize::from(out.get(start) == Some(&b'-'));
                        self.current.from_variables.push(FromVariable {
                            start: start + sign,
                            name: name.clone(),
                            collation: variable.collation.clone(),
                        });
                    }
                }
            }
            out.push(b' ');
            at = place.end;
        }
        out.extend_from_slice(text.get(at..).unwrap_or_default());
        Ok(out)
    }

    /// Reads variables, and the connection's collation.
    fn read_variables(&mut self, names: &[&[u8]]) -> Outcome<(Vec<Variable>, String)> {
        let bad = || Failure::refused(&errors::INTERNAL, "user variables");
        let sql = question(&["collation_connection"], names);
        let question = self.server.put_select(&sql)?;
        self.server.flush()?;
        let (definitions, cells) = self.server.one_row(question)?;
        if cells.len() != 2 + 3 * names.len() || definitions.len() != cells.len() {
            return Err(bad());
        }
        let word = |cell: &Option<Vec<u8>>| {
            String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).into_owned()
        };
        let mut variables = Vec::with_capacity(names.len());
        for (definitions, cells) in definitions[2..].chunks(3).zip(cells[2..].chunks(3)) {
            let definition = ColumnDefinition::decode(&definitions[0], self.server.form)
                .map_err(Failure::Backend)?;
            let hex = cells[1].as_deref().unwrap_or_default();
            let is_text = !is_number(definition.column_type);
            variables.push(Variable {
                shown: cells[0].clone(),
                bytes: match is_text {
                    true => unhex(hex).ok_or_else(bad)?,
                    false => Vec::new(),
                },
                kind: definition.column_type,
                unsigned: definition.flags.contains(ColumnFlags::UNSIGNED),
                collation: word(&cells[2]),
            });
        }
        Ok((variables, word(&cells[1])))
    }

    fn put_variable(
        &self,
        variable: &Variable,
        around: Around,
        connection: &str,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        let Some(shown) = &variable.shown else {
            if around == Around::Limit {
                return Err(unfit("LIMIT"));
            }
            out.extend_from_slice(b"NULL");
            return Ok(());
        };
        if around == Around::Limit {
            if variable.kind != ColumnType::LONGLONG || !counts(shown) {
                return Err(unfit("LIMIT"));
            }
            out.extend_from_slice(shown);
            return Ok(());
        }
        let compared = around == Around::Compared;
        match variable.kind {
            ColumnType::LONGLONG | ColumnType::NEWDECIMAL | ColumnType::DOUBLE => {
                let digits = |b: &u8| b.is_ascii_digit() || b"+-.e".contains(b);
                if shown.is_empty() || !shown.iter().all(digits) {
                    return Err(unfit("a number"));
                }
                // a literal beyond the signed ones is unsigned, too
                let number = std::str::from_utf8(shown).ok().and_then(|t| t.parse().ok());
                let is_large = number.is_some_and(|n: u64| i64::try_from(n).is_err());
                if variable.unsigned && !compared && !is_large {
                    return Err(unfit("an unsigned number in an expression"));
                }
                out.extend_from_slice(shown);
                match variable.kind {
                    ColumnType::NEWDECIMAL if !shown.contains(&b'.') => out.push(b'.'),
                    ColumnType::DOUBLE if !shown.contains(&b'e') => out.extend_from_slice(b"e0"),
                    _ => {}
                }
                Ok(())
            }
            _ => self.put_string(variable, compared, connection, out),
        }
    }

    fn put_string(
        &self,
        variable: &Variable,
        compared: bool,
        connection: &str,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        let charset = charset_of(&variable.collation);
        let own = self.state.client_charset;
        let known = Charset::from_name(charset);
        let is_plain = known != Some(Charset::Binary)
            && (variable.bytes.is_ascii() && !is_wide(&variable.collation)
                // in sets that hide backslashes in characters, none may be doubled
                || known.is_some_and(|known| Some(known) == own && !known.hides_ascii()));
        if !compared && (!is_plain || variable.collation != connection) {
            return Err(unfit("a text of another collation in an expression"));
        }
        if is_plain {
            put_quoted(&variable.bytes, self.space.settings.lex, out);
            return Ok(());
        }
        let Some(known) = known else {
            return Err(unfit("a text in this character set"));
        };
        let mut text = Vec::new();
        let (charset, bytes) = match self.state.family {
            // it makes it the connection's first, and question marks of what that does not have
            Family::MariaDb if known != Charset::Binary => {
                let connection = self.state.connection_charset;
                let text = connection
                    .and_then(|to| converted(&variable.bytes, known, to, &mut text).map(|_| to))
                    .map(|to| (to, &text));
                text.ok_or_else(|| {
                    unfit("a text that is not one of the connection's character set")
                })?
            }
            _ => (known, &variable.bytes),
        };
        out.push(b'_');
        out.extend_from_slice(charset.name().as_bytes());
        out.extend_from_slice(b" x'");
        for byte in bytes {
            out.extend_from_slice(format!("{byte:02x}").as_bytes());
        }
        out.push(b'\'');
        Ok(())
    }
}

fn is_number(kind: ColumnType) -> bool {
    matches!(
        kind,
        ColumnType::LONGLONG | ColumnType::NEWDECIMAL | ColumnType::DOUBLE
    )
}

/// Whether this can stand behind LIMIT.
fn counts(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

fn charset_of(collation: &str) -> &str {
    collation.split('_').next().unwrap_or_default()
}

fn is_wide(collation: &str) -> bool {
    WIDE.contains(&charset_of(collation))
}

fn unfit(about: &str) -> Failure {
    Failure::refused(&errors::DYNAMIC, format!("a value behind USING ({about})"))
}
