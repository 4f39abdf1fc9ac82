//! Which value an error about a duplicate (1062) is about.
//!
//! The server quotes the key of the row that it did not take. Of a protected column it has the
//! token. The proxy makes the tokens of the statement's new values once more and looks for them in
//! the server's text. Where it finds them, the client is shown the values as a plain server shows
//! them. Where the text could mean more than one value, it shows none.
//!
//! Both servers quote at most 64 bytes. Two tokens are longer, so of a longer key the text shows a
//! part. Then the server is asked for the columns of the key.

use onionskin_plan::{Piece, RowUpdate, Verb};
use onionskin_schema::{Protection, Table, identifier, same_name};
use onionskin_value::{Charset, Family, FormatContext, Kind, SqlType, format_text};

use super::statement_run::Duplicate;
use super::{Execution, Session};
use crate::bind::{NewValue, assigned_constants, stored_columns};
use crate::catalog::KeyedPlan;
use crate::diagnostics::hides_token;
use crate::error::{Failure, Outcome};
use crate::open::format_context;
use crate::server_errors::DUPLICATE;
use crate::unique_keys::UniqueKey;

/// Bytes of a key that the servers quote.
const QUOTED: usize = 64;
/// What MariaDB writes in the place of the rest.
const REST: &str = "...";
/// So many characters of a token have to be seen, if not all of them: at least four bytes.
const SEEN: usize = 16;

/// A new value, as the server's text shows its token and as a plain server shows the value.
struct Shown<'a> {
    /// The physical column of the token.
    column: &'a str,
    row: usize,
    token: String,
    /// `None`: how a plain server shows it is not known.
    value: Option<String>,
}

impl Session {
    /// Notes the value of a duplicate, where the statement of this text has failed at one.
    #[cold]
    pub(super) fn note_duplicate(
        &mut self,
        execution: &Execution,
        text: &[Piece],
        failure: &Failure,
    ) -> Outcome<()> {
        let Failure::Server {
            code: DUPLICATE,
            message,
            ..
        } = failure
        else {
            return Ok(());
        };
        let Some((quoted, key)) = quotation(message) else {
            return Ok(());
        };
        let keyed = execution.keyed;
        if !quoted.contains("\\x") || !is_of_new_values(keyed) {
            return Ok(());
        }
        let mut binder = execution.binder(&self.state, &mut self.buffers);
        let Ok(new) = binder.new_values(text, execution.rows) else {
            return Ok(());
        };
        let Ok(ctx) = format_context(&self.state) else {
            return Ok(());
        };
        let ctx = FormatContext {
            results_charset: Charset::Utf8mb4,
            ..ctx
        };
        let stored = stored_columns(text);
        let shown: Vec<Shown> = new
            .iter()
            .filter(|new| !may_be_anothers(keyed, new.column, &stored))
            .filter_map(|new| Shown::of(new, keyed, &ctx))
            .collect();
        let family = self.state.family;
        let value = match is_cut(quoted, family) {
            false => with_values(quoted, &shown),
            true => {
                let Some(columns) = self.columns_of_key(keyed, key, failure)? else {
                    return Ok(());
                };
                let table = &keyed.plan.columns[0].table;
                of_cut(quoted, &columns, table, &shown, family)
            }
        };
        let is_utf8 = matches!(
            self.state.results_charset,
            Some(Charset::Utf8mb4 | Charset::Utf8mb3)
        );
        let value = value.and_then(|value| cut(value, family));
        self.current.duplicate = value
            .filter(|value| is_utf8 || value.is_ascii())
            .map(|value| {
                let message = message.clone();
                Box::new(Duplicate { message, value })
            });
        Ok(())
    }

    /// The same of an `UPDATE` that goes row by row.
    #[cold]
    pub(super) fn note_duplicate_of_update(
        &mut self,
        execution: &Execution,
        update: &RowUpdate,
        failure: &Failure,
    ) -> Outcome<()> {
        let assigned = assigned_constants(execution.keyed, update);
        self.note_duplicate(execution, &assigned, failure)
    }

    /// The physical columns of the unique key that an error names, in its order.
    fn columns_of_key(
        &mut self,
        keyed: &KeyedPlan,
        key: &str,
        failure: &Failure,
    ) -> Outcome<Option<Vec<String>>> {
        if keyed.plan.row_ends.len() > 1 {
            // which values stand in the same row is not known
            return Ok(None);
        }
        let table = &keyed.plan.columns[0].table;
        let name = match self.state.family {
            Family::MariaDb => Some(key),
            Family::MySql => key
                .strip_prefix(table.name.as_str())
                .and_then(|rest| rest.strip_prefix('.')),
        };
        let Some(name) = name else {
            return Ok(None);
        };
        self.server.settle()?;
        if !self.current.interfered {
            self.keep_list_of(failure, keyed)?;
            self.current.interfered = true;
        }
        let target = format!(
            "{}.{}",
            identifier(&table.database),
            identifier(&table.name)
        );
        match self.unique_keys(&target) {
            Ok(keys) => {
                let found = keys.iter().find(|key| key.name == name);
                Ok(found.map(UniqueKey::names))
            }
            // it may not be shown to the account
            Err(Failure::Server { .. }) => self.server.settle().map(|()| None),
            Err(failure) => Err(failure),
        }
    }

    /// The same error with the value that was noted, if it is about this text of the server's.
    pub(super) fn with_duplicate(&mut self, failure: Failure, servers: Option<&[u8]>) -> Failure {
        match self.current.duplicate.take() {
            Some(duplicate) if servers == Some(duplicate.message.as_slice()) => {
                failure.reworded(|message| duplicate.shown_in(message))
            }
            _ => failure,
        }
    }
}

impl Duplicate {
    /// A text that hides the token, with the value.
    fn shown_in(&self, message: &[u8]) -> Vec<u8> {
        const HIDDEN: &[u8] = b"Duplicate entry '(protected)'";
        match message.strip_prefix(HIDDEN) {
            Some(rest) if hides_token(message) => {
                [b"Duplicate entry '", self.value.as_bytes(), b"'", rest].concat()
            }
            _ => message.to_vec(),
        }
    }
}

impl<'a> Shown<'a> {
    fn of(new: &NewValue, keyed: &'a KeyedPlan, ctx: &FormatContext) -> Option<Self> {
        let column = keyed.plan.columns[new.column].column();
        let name = match new.is_order {
            true => column.ord_name(),
            false => column.eq_name(),
        };
        Some(Shown {
            column: name?,
            row: new.row,
            token: escaped(without_zeros(&new.token)),
            value: quoted_value(column.sql_type.as_ref()?, &new.payload, ctx),
        })
    }
}

/// Whether the rows that a statement makes consist of its own values, in one table: those of an
/// `INSERT` without ON DUPLICATE KEY UPDATE, and those that an `UPDATE` assigns.
fn is_of_new_values(keyed: &KeyedPlan) -> bool {
    let facts = &keyed.plan.facts;
    let mut columns = keyed.plan.columns.iter();
    let Some(first) = columns.next() else {
        return false;
    };
    matches!(facts.verb, Verb::Insert | Verb::Replace | Verb::Update)
        && !facts.says_duplicate
        && columns.all(|used| std::sync::Arc::ptr_eq(&used.table, &first.table))
}

/// Whether a token of a column may be that of another one, of whose value the statement says
/// nothing: an `UPDATE` that leaves it, a `SELECT` that it is from. They can be equal and written
/// otherwise.
fn may_be_anothers(keyed: &KeyedPlan, column: usize, stored: &[usize]) -> bool {
    let used = &keyed.plan.columns[column];
    let group = |protection: &Protection| protection.capabilities.join.clone();
    let Some(own) = used.column().protection.as_ref().and_then(group) else {
        return false;
    };
    let is_stored = |name: &str| {
        let mut stored = stored
            .iter()
            .map(|index| keyed.plan.columns[*index].column());
        stored.any(|column| column.name == name)
    };
    let mut others = used.table.protected_columns();
    others.any(|(other, protection)| {
        group(protection).as_ref() == Some(&own) && !is_stored(&other.name)
    })
}

/// What a text about a duplicate quotes, and the key that it names.
fn quotation(message: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(message).ok()?;
    let behind = text.strip_prefix("Duplicate entry '")?;
    let (quoted, key) = behind.rsplit_once("' for key '")?;
    Some((quoted, key.strip_suffix('\'')?))
}

/// What the servers show of a BINARY column, such as those of tokens: not the zeros at its end, but
/// for the first byte.
fn without_zeros(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|b| *b != 0).unwrap_or(0);
    bytes.get(..=end).unwrap_or_default()
}

/// Bytes as the servers show those of a binary string.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 4);
    for &byte in bytes {
        match byte {
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02X}")),
        }
    }
    text
}

/// A value as the servers quote it in a key; `None` where they do that in another way than a cell
/// of a result is shown.
fn quoted_value(ty: &SqlType, payload: &[u8], ctx: &FormatContext) -> Option<String> {
    let mut shown = Vec::new();
    format_text(ty, payload, ctx, &mut shown).ok()?;
    match ty.kind {
        // with other digits
        Kind::Float | Kind::Double => return None,
        Kind::Bit { .. } => return Some(escaped(&shown)),
        Kind::Binary { .. } => {
            return Some(escaped(without_zeros(&shown)));
        }
        _ if ty.is_binary() => return Some(escaped(&shown)),
        _ => {}
    }
    let text = String::from_utf8(shown).ok()?;
    if text.contains(char::is_control) {
        return None;
    }
    // the servers' own character set has three bytes for a character
    let is_long = |c: char| c > '\u{ffff}';
    Some(text.replace(is_long, "?"))
}

/// Whether the server may have quoted less than all.
fn is_cut(quoted: &str, family: Family) -> bool {
    quoted.len() >= QUOTED || family == Family::MariaDb && quoted.ends_with(REST)
}

/// What the server quotes of a text; `None` where it would cut a character.
fn cut(mut text: String, family: Family) -> Option<String> {
    if text.len() <= QUOTED {
        return Some(text);
    }
    match family {
        Family::MySql if !text.is_char_boundary(QUOTED) => return None,
        Family::MySql => text.truncate(QUOTED),
        Family::MariaDb => {
            let mut end = QUOTED - REST.len();
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.push_str(REST);
        }
    }
    Some(text)
}

/// A key's text with values in the place of tokens. Its parts have a hyphen between them. `None`:
/// a token is left, or it could stand for more than one value.
fn with_values(quoted: &str, shown: &[Shown]) -> Option<String> {
    let (mut text, mut rest) = (String::new(), quoted);
    let mut begins_part = true;
    while !rest.is_empty() {
        let behind = |s: &Shown| -> Option<usize> {
            let behind = rest.strip_prefix(s.token.as_str())?;
            (behind.is_empty() || behind.starts_with('-')).then_some(s.token.len())
        };
        let mut fitting = shown
            .iter()
            .filter(|_| begins_part)
            .filter_map(|s| Some((behind(s)?, s.value.as_ref())));
        if let Some(first) = fitting.next() {
            if fitting.any(|other| other != first) {
                return None;
            }
            text.push_str(first.1?);
            rest = &rest[first.0..];
            begins_part = false;
            continue;
        }
        if rest.starts_with("\\x") {
            return None;
        }
        let next = rest.chars().next()?;
        begins_part = next == '-';
        text.push(next);
        rest = &rest[next.len_utf8()..];
    }
    Some(text)
}

/// The same of a text of which the end is missing. The key has these columns.
fn of_cut(
    quoted: &str,
    key: &[String],
    table: &Table,
    shown: &[Shown],
    family: Family,
) -> Option<String> {
    let stem = match family {
        Family::MariaDb => quoted.strip_suffix(REST).unwrap_or(quoted),
        Family::MySql => quoted,
    };
    let rows = shown.iter().map(|s| s.row).max()? + 1;
    let mut found: Option<String> = None;
    for row in 0..rows {
        let of_row: Vec<&Shown> = shown.iter().filter(|s| s.row == row).collect();
        let Some(text) = of_row_cut(stem, key, table, &of_row) else {
            continue;
        };
        let text = cut(text?, family)?;
        match &found {
            Some(before) if *before != text => return None,
            _ => found = Some(text),
        }
    }
    found
}

/// The key's text for one row. `None`: the server's text is about another row. `Some(None)`: it
/// may be about this one, and not all of its values are known.
fn of_row_cut(stem: &str, key: &[String], table: &Table, row: &[&Shown]) -> Option<Option<String>> {
    // what is left of the server's text, up to where it is cut
    let mut left = Some(stem);
    let (mut text, mut seen, mut is_known) = (String::new(), 0, true);
    let of = |column: &String| row.iter().find(|s| same_name(s.column, column));
    for (n, column) in key.iter().enumerate() {
        if n > 0 {
            text.push('-');
            left = match left {
                Some("") | None => None,
                Some(rest) => Some(rest.strip_prefix('-')?),
            };
        }
        if let Some(shown) = of(column) {
            left = match left {
                Some(rest) => match rest.strip_prefix(shown.token.as_str()) {
                    Some(behind) => {
                        seen += shown.token.len();
                        Some(behind)
                    }
                    None if shown.token.starts_with(rest) => {
                        seen += rest.len();
                        None
                    }
                    None => return None,
                },
                None => None,
            };
            match &shown.value {
                Some(value) => text.push_str(value),
                None => is_known = false,
            }
            continue;
        }
        // a plain column is what stands before the next token
        let next = key.get(n + 1).and_then(of);
        let plain = left.zip(next).filter(|_| table.owner_of(column).is_none());
        let Some((rest, next)) = plain else {
            return (seen >= SEEN).then_some(None);
        };
        let begins = |at: &usize| {
            let behind = &rest[at + 1..];
            behind.starts_with(&next.token)
                || behind.len() >= SEEN && next.token.starts_with(behind)
        };
        let hyphens = rest.match_indices('-').map(|(at, _)| at);
        let end = hyphens.into_iter().find(begins)?;
        text.push_str(&rest[..end]);
        left = Some(&rest[end..]);
    }
    if left.is_some_and(|rest| !rest.is_empty()) || seen < SEEN {
        return None;
    }
    Some(is_known.then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(column: &'static str, row: usize, token: &str, value: &str) -> Shown<'static> {
        Shown {
            column,
            row,
            token: token.into(),
            value: Some(value.into()),
        }
    }

    #[test]
    fn tokens_become_values() {
        let rows = [
            shown("a$eq_1111", 0, "\\x01-\\xFF", "x-y"),
            shown("b$eq_2222", 0, "Z\\x02", "é"),
            shown("a$eq_1111", 1, "Q\\x03", "one"),
            shown("b$eq_2222", 1, "Q\\x03", "One"),
        ];
        for (quoted, expected) in [
            ("\\x01-\\xFF", Some("x-y")),
            ("Z\\x02-\\x01-\\xFF", Some("é-x-y")),
            ("5-Z\\x02-6", Some("5-é-6")),
            ("a-b-Z\\x02", Some("a-b-é")),
            // a value of two that are written differently
            ("Q\\x03", None),
            // not a part of its own
            ("aZ\\x02", None),
            ("Z\\x02a", None),
            // a token of another statement
            ("\\x05", None),
            ("Z\\x02-\\x05", None),
        ] {
            assert_eq!(with_values(quoted, &rows).as_deref(), expected, "{quoted}");
        }
    }

    #[test]
    fn zeros_at_the_end_are_not_shown() {
        for (bytes, shown) in [
            (&b"a\x01\0\0"[..], "a\\x01"),
            (b"\0\0", "\\x00"),
            (b"\0b", "\\x00b"),
            (b"", ""),
        ] {
            assert_eq!(escaped(without_zeros(bytes)), shown);
        }
    }

    #[test]
    fn a_part_of_a_key_tells_its_row() {
        let (a, b) = ("\\x01".repeat(12), "\\x02".repeat(12));
        let of_row = [
            &shown("a$eq_1111", 0, &a, "one"),
            &shown("b$eq_2222", 0, &b, "two"),
        ];
        let table = Table::named("d", "t");
        let key = |names: &[&str]| -> Vec<String> { names.iter().map(|n| (*n).into()).collect() };
        let two = key(&["a$eq_1111", "b$eq_2222"]);
        let is = |stem: &str, key: &[String]| of_row_cut(stem, key, &table, &of_row);
        let known = |text: &str| Some(Some(text.to_owned()));
        assert_eq!(is(&format!("{a}-{b}"), &two), known("one-two"));
        assert_eq!(is(&format!("{a}-\\x02\\x0"), &two), known("one-two"));
        assert_eq!(is(&a, &two), known("one-two"));
        assert_eq!(is(&format!("{a}-\\x03"), &two), None);
        assert_eq!(is(&format!("{a}x"), &two), None);
        assert_eq!(is("\\x01\\x01", &two), None);
        let mixed = key(&["a$eq_1111", "p", "b$eq_2222"]);
        assert_eq!(is(&format!("{a}-p-q-{b}"), &mixed), known("one-p-q-two"));
        assert_eq!(
            is(&format!("{a}-p-\\x02\\x02\\x02\\x02"), &mixed),
            known("one-p-two")
        );
        // too little of the token, and a plain column at the end
        assert_eq!(is(&format!("{a}-p-\\x02"), &mixed), None);
        assert_eq!(is(&format!("{a}-p"), &key(&["a$eq_1111", "p"])), Some(None));
    }

    #[test]
    fn texts_are_cut_as_the_servers_cut_them() {
        let long = "a".repeat(65);
        let cut_by = |text: &str, family| cut(text.to_owned(), family);
        let (mysql, mariadb) = (Family::MySql, Family::MariaDb);
        assert_eq!(cut_by(&long, mysql), Some("a".repeat(64)));
        assert_eq!(cut_by(&long, mariadb), Some("a".repeat(61) + "..."));
        assert_eq!(cut_by(&long[1..], mysql), Some("a".repeat(64)));
        let wide = format!("a{}", "é".repeat(32));
        assert_eq!(cut_by(&wide, mysql), None);
        assert_eq!(
            cut_by(&wide, mariadb),
            Some(format!("a{}...", "é".repeat(30)))
        );
        assert!(is_cut("abc...", mariadb) && !is_cut("abc...", mysql));
    }
}
