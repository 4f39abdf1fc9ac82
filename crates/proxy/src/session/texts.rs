//! The server's error texts in logical terms.

use std::sync::Arc;

use onionskin_plan::Action;

use crate::catalog::KeyedPlan;
use crate::error::Failure;
use crate::exchange::Rows;

/// The same failure, an error of the server's with logical names.
pub(crate) fn in_logical_terms(failure: Failure, keyed: &KeyedPlan) -> Failure {
    let is_relayed = matches!(keyed.plan.action, Action::Relay);
    let is_syntax = matches!(failure, Failure::Server { code: SYNTAX, .. });
    failure.reworded(|message| match is_syntax && !is_relayed {
        true => without_sent_text(message),
        false => logical_text(message, keyed),
    })
}

/// "You have an error in your SQL syntax"
const SYNTAX: u16 = 1064;

/// An error of syntax quotes the text from where it went wrong. The server was sent another text
/// than the client has written. So the quotation ends where the two may differ: before a physical
/// name and a sealed constant.
fn without_sent_text(message: &[u8]) -> Vec<u8> {
    let quote = |b: &u8| *b == b'\'';
    let (Some(from), Some(to)) = (
        message.iter().position(quote),
        message.iter().rposition(quote),
    ) else {
        return message.to_vec();
    };
    let quoted = message.get(from + 1..to).unwrap_or_default();
    let differs = |at: usize| {
        let rest = &quoted[at..];
        matches!(rest[0], b'$' | 0x80..) || rest.starts_with(b"x'") || rest.starts_with(b"0x")
    };
    let end = (0..quoted.len()).find(|&at| differs(at));
    let kept = match end {
        None => quoted,
        // back to the word's begin
        Some(end) => {
            let begin = quoted[..end].iter().rposition(|&b| b == b' ');
            &quoted[..begin.unwrap_or(0)]
        }
    };
    let mut text = message[..=from].to_vec();
    text.extend_from_slice(kept);
    text.extend_from_slice(&message[to..]);
    text
}

/// What `SHOW WARNINGS` has shown, with logical names.
pub(super) fn logical_list(mut list: Rows, keyed: &KeyedPlan) -> Rows {
    let messages = list.iter_mut().filter_map(|row| row.get_mut(2)?.as_mut());
    messages.for_each(|message| *message = logical_text(message, keyed));
    list
}

/// An error text of the server's with logical names.
pub(crate) fn logical_text(message: &[u8], keyed: &KeyedPlan) -> Vec<u8> {
    if !message.contains(&b'$') && !message.starts_with(b"Duplicate entry '") {
        // in the character set of results, whatever that is
        return message.to_vec();
    }
    let mut text = String::from_utf8_lossy(message).into_owned();
    let mut tables: Vec<_> = keyed
        .plan
        .columns
        .iter()
        .map(|c| Arc::clone(&c.table))
        .collect();
    if let Action::Define(ddl) = &keyed.plan.action {
        tables.extend(ddl.table.clone());
    }
    tables.dedup_by(|a, b| Arc::ptr_eq(a, b));
    // a statement that names plain columns alone may meet a key over others, too
    let is_near = matches!(keyed.plan.action, Action::Server { .. });
    let touched = is_near || !tables.is_empty();
    for table in tables {
        for (column, protection) in table.protected_columns() {
            for name in protection.names.all() {
                if text.contains(name) {
                    text = text.replace(name, &column.name);
                }
            }
        }
    }
    if !matches!(keyed.plan.action, Action::Relay) {
        text = without_suffixes(&text);
    }
    if touched && let Some(hidden) = without_token(&text) {
        text = hidden;
    }
    text.into_bytes()
}

/// What `SHOW WARNINGS` has shown of a statement that has changed a protected table, without
/// physical names and tokens.
pub(crate) fn hide_tokens(list: &mut Rows) {
    let messages = list.iter_mut().filter_map(|row| row.get_mut(2)?.as_mut());
    messages.for_each(|message| *message = without_physical(message));
}

/// A text about a statement that has changed a protected table, without physical names and tokens.
/// Which table it was is not known any more.
pub(crate) fn without_physical(message: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(message);
    let text = without_suffixes(&text);
    without_token(&text).unwrap_or(text).into_bytes()
}

/// The text about a duplicate whose value is printed as bytes of a token, without these bytes.
/// `None`: it is another text.
fn without_token(text: &str) -> Option<String> {
    let behind = text.strip_prefix("Duplicate entry '")?;
    let (value, key) = behind.rsplit_once("' for key ")?;
    let is_binary =
        value.contains("\\x") || value.chars().any(|c| c.is_control() || c == '\u{fffd}');
    is_binary.then(|| format!("Duplicate entry '(protected)' for key {key}"))
}

/// Makes logical names of the names of physical columns, which are known by their form. An error
/// about a foreign key names columns of two tables.
fn without_suffixes(text: &str) -> String {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || b >= 0x80;
    let bytes = text.as_bytes();
    let length = |at: usize| -> usize {
        let rest = &bytes[at..];
        let digits = |from: usize| {
            rest.get(from..from + 4)
                .is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit))
        };
        let length = match () {
            () if rest.starts_with(b"$enc") => 4,
            () if rest.starts_with(b"$eq_") && digits(4) => 8,
            () if rest.starts_with(b"$ord_") && digits(5) => 9,
            () if rest.starts_with(b"$gram_") && digits(6) => 10,
            () => return 0,
        };
        let ends = rest.get(length).is_none_or(|&b| !is_word(b));
        if ends && at > 0 && is_word(bytes[at - 1]) {
            length
        } else {
            0
        }
    };
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for found in memchr::memchr_iter(b'$', bytes) {
        let skipped = if found < at { 0 } else { length(found) };
        if skipped > 0 {
            out.push_str(&text[at..found]);
            at = found + skipped;
        }
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::{without_sent_text, without_suffixes};

    #[test]
    fn errors_quote_no_more_than_the_client_has_written() {
        for (text, want) in [
            (
                "near 'RETURNING id' at line 1",
                "near 'RETURNING id' at line 1",
            ),
            (
                "near 'OFFSET 3 WHERE k$eq_1a2b = x'1234' AND b = 'c'' at line 2",
                "near 'OFFSET 3 WHERE' at line 2",
            ),
            ("near '`k$enc`' at line 1", "near '' at line 1"),
            ("no quotation", "no quotation"),
        ] {
            let found = without_sent_text(text.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), want);
        }
    }

    #[test]
    fn physical_names_become_logical_ones() {
        for (text, want) in [
            (
                "FOREIGN KEY (`owner$eq_1a2b`) REFERENCES `user` (`name$eq_00ff`)",
                "FOREIGN KEY (`owner`) REFERENCES `user` (`name`)",
            ),
            (
                "Unknown column 'u.k$ord_1a2b' in 'on clause'",
                "Unknown column 'u.k' in 'on clause'",
            ),
            (
                "'a$enc' and 'b$encx', '$enc', 'c$eq_12', 5$",
                "'a' and 'b$encx', '$enc', 'c$eq_12', 5$",
            ),
        ] {
            assert_eq!(without_suffixes(text), want);
        }
    }
}
