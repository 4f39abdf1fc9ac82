//! The columns of an index: of a protected column it is built on the order key or equality token,
//! as a whole where the definition names a prefix. An index is a way to rows; a unique one says
//! which rows can be, and there a prefix is another thing than the whole.

use std::ops::Range;

use onionskin_schema::{SchemaError, Table, index_column_name};
use onionskin_value::{Kind, SqlType};

use super::key_length::{KeyKind, KeyLength, PlainPart};
use super::reader::Reader;
use super::{DdlPiece, Pieces, Prefixed, schema_refusal};
use crate::errors;
use crate::planner::{Planned, identifier, quoted, refuse};

/// The longest prefix that InnoDB takes, in bytes.
const PREFIX_BYTES: u64 = 3072;

/// What a name in an index means.
pub(super) enum Indexed {
    /// A plain column, or no column.
    Plain(PlainPart),
    Protected(ProtectedPart),
}

/// A protected column in an index.
pub(super) struct ProtectedPart {
    /// As the table calls it.
    pub(super) name: String,
    /// What the index is built on.
    pub(super) on: Prefixed,
    /// Why no index that is unique can be built on it, if that is so.
    pub(super) not_unique: Option<SchemaError>,
    pub(super) ty: SqlType,
}

/// A column of a table that exists.
pub(super) fn existing(table: &Table, name: &str) -> Planned<Indexed> {
    let Some(column) = table.column(name) else {
        return Ok(Indexed::Plain(PlainPart::default()));
    };
    let Some(protection) = &column.protection else {
        return Ok(Indexed::Plain(PlainPart {
            ty: column.sql_type,
            counts: column.auto_increment,
        }));
    };
    let on = index_column_name(column, false).map_err(|e| schema_refusal(&e))?;
    Ok(Indexed::Protected(ProtectedPart {
        name: column.name.clone(),
        on: Prefixed::Existing(on.to_owned()),
        not_unique: index_column_name(column, true).err(),
        ty: protection.sql_type,
    }))
}

/// What is known of an index before its columns are read.
pub(super) struct Key<'s> {
    pub(super) kind: KeyKind,
    /// FULLTEXT or SPATIAL, which protected columns cannot have.
    pub(super) is_special: bool,
    /// What a name means in the list of columns.
    pub(super) lookup: &'s dyn Fn(&str) -> Planned<Indexed>,
}

/// One of an index's columns, or an expression.
enum Part {
    /// All of its tokens.
    Plain(Range<usize>),
    /// What the index is built on, and the tokens behind the name and the prefix.
    Protected { on: Prefixed, rest: Range<usize> },
}

/// The columns of an index.
pub(super) struct KeyParts {
    parts: Vec<Part>,
    /// Those of which a prefix is indexed, and how long it is.
    prefixes: Vec<(Prefixed, u32)>,
    /// How often MariaDB notes that the key is too long.
    notes: usize,
    /// The name of the first column, if that is protected.
    pub(super) first_protected: Option<String>,
}

impl KeyParts {
    /// Reads the list between the parentheses.
    pub(super) fn read(reader: &Reader, list: Range<usize>, key: &Key) -> Planned<Self> {
        let mut length = KeyLength::new(reader.request.settings.family, key.kind);
        let mut found = KeyParts {
            parts: Vec::new(),
            prefixes: Vec::new(),
            notes: 0,
            first_protected: None,
        };
        let mut last_protected = None;
        for (i, tokens) in reader.split(list).into_iter().enumerate() {
            let mut r = Reader::over(reader.request, reader.tokens, tokens.clone());
            let indexed = match r.name() {
                Some(name) => (key.lookup)(&name)?,
                None => Indexed::Plain(PlainPart::default()),
            };
            match indexed {
                Indexed::Protected(ProtectedPart {
                    name,
                    on,
                    not_unique,
                    ty,
                }) => {
                    if let Some(reason) = not_unique.filter(|_| key.kind != KeyKind::Plain) {
                        return Err(schema_refusal(&reason));
                    }
                    if key.is_special {
                        let about = format!("FULLTEXT or SPATIAL over column {name}");
                        return refuse(&errors::INDEX, about);
                    }
                    let given = prefix(&mut r, &name, &ty, key.kind)?;
                    let cut = length.add(&name, &ty, given)?;
                    found.notes += usize::from(cut.is_some_and(|cut| cut.is_noted));
                    let chars = cut.map(|cut| cut.chars).or(given);
                    let prefixed = chars.map(|chars| (on.clone(), chars));
                    found.prefixes.extend(prefixed);
                    let rest = r.at..tokens.end;
                    let _ = r.eat("asc") || r.eat("desc");
                    if !r.done() {
                        // no index, and values may stand in it
                        let about = format!("an expression over column {name}");
                        return refuse(&errors::INDEX, about);
                    }
                    found.parts.push(Part::Protected { on, rest });
                    if i == 0 {
                        found.first_protected = Some(name.clone());
                    }
                    last_protected = Some(name);
                }
                Indexed::Plain(part) => {
                    length.add_plain(&part, length_of(&mut r));
                    if let Some(name) = mentioned(reader, tokens.clone(), key.lookup)? {
                        let about = format!("an expression over column {name}");
                        return refuse(&errors::INDEX, about);
                    }
                    found.parts.push(Part::Plain(tokens));
                }
            }
        }
        if let Some(name) = last_protected {
            length.check(&name)?;
        }
        Ok(found)
    }

    /// Writes MariaDB's notes, which have no text.
    pub(super) fn write_notes(&self, out: &mut Pieces) {
        let notes = std::iter::repeat_n(DdlPiece::KeyTooLong, self.notes);
        out.0.extend(notes);
    }

    /// Writes the columns.
    pub(super) fn write(&self, reader: &Reader, out: &mut Pieces) {
        for (i, part) in self.parts.iter().enumerate() {
            if i > 0 {
                out.sql(b",");
            }
            match part {
                Part::Plain(tokens) => out.sql(reader.text(tokens.clone())),
                Part::Protected { on, rest } => {
                    match on {
                        Prefixed::Existing(name) => out.sql(quoted(name).as_bytes()),
                        Prefixed::New(n) => out.0.push(DdlPiece::IndexColumn(*n)),
                    }
                    out.sql(b" ");
                    out.sql(reader.text(rest.clone()));
                }
            }
        }
    }

    /// Writes the index's options, which stand behind its columns. The lengths of prefixes are
    /// noted in its comment.
    pub(super) fn write_options(
        self,
        reader: &Reader,
        options: Range<usize>,
        out: &mut Pieces,
    ) -> Planned<()> {
        let mut words = reader.tokens[options.clone()].iter();
        if !self.prefixes.is_empty() {
            if words.any(|t| t.is_word(reader.sql(), "comment")) {
                let about = "a prefix of a protected column in an index with a COMMENT";
                return refuse(&errors::INDEX, about);
            }
            out.0.push(DdlPiece::PrefixLengths(self.prefixes));
        }
        out.sql(reader.text(options));
        Ok(())
    }
}

/// The first protected column that is named in a range of tokens.
pub(super) fn mentioned(
    reader: &Reader,
    tokens: Range<usize>,
    lookup: &dyn Fn(&str) -> Planned<Indexed>,
) -> Planned<Option<String>> {
    for token in &reader.tokens[tokens] {
        if let Some(name) = identifier(reader.sql(), token)
            && let Indexed::Protected(part) = lookup(&name)?
        {
            return Ok(Some(part.name));
        }
    }
    Ok(None)
}

/// Reads `(10)` behind the name of a protected column: how long the prefix is. `None` without one,
/// or where it is the whole column.
fn prefix(r: &mut Reader, name: &str, ty: &SqlType, kind: KeyKind) -> Planned<Option<u32>> {
    if !r.token().is_some_and(|t| t.is(b'(')) {
        return Ok(None);
    }
    let refused = |about: &str| refuse(&errors::INDEX, format!("a prefix of column {name}{about}"));
    let inside = r.parenthesized().unwrap_or_default();
    let digits = std::str::from_utf8(r.text(inside)).unwrap_or_default();
    let Ok(length) = digits.parse::<u32>() else {
        return refused("");
    };
    if !(ty.is_character() || ty.is_binary()) || ty.kind == Kind::Json {
        return refused(", which is no string");
    }
    let whole = match ty.kind {
        Kind::Char { chars } | Kind::VarChar { chars } => Some(chars),
        Kind::Binary { len } | Kind::VarBinary { len } => Some(len),
        _ => None,
    };
    let bytes = u64::from(length) * u64::from(ty.charset().max_bytes());
    match whole {
        _ if length == 0 => refused(" without characters"),
        Some(whole) if length == whole => Ok(None),
        // as long as a value can be, where it has a character for each byte
        None if bytes == ty.payload_max() && ty.charset().max_bytes() == 1 => Ok(Some(length)),
        _ if kind != KeyKind::Plain => refused(" that is to be unique"),
        Some(whole) if length > whole => refused(", which is shorter"),
        None if bytes > ty.payload_max() => refused(", which is shorter"),
        _ if bytes > PREFIX_BYTES => refused(" of more than 3072 bytes"),
        _ => Ok(Some(length)),
    }
}

/// `(10)` behind the name of a plain column.
fn length_of(r: &mut Reader) -> Option<u32> {
    let inside = r.parenthesized()?;
    std::str::from_utf8(r.text(inside))
        .ok()?
        .trim()
        .parse()
        .ok()
}
