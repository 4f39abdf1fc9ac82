//! Writing identifiers and literals.
//!
//! Everything this crate sends must mean the same under every `sql_mode` and in every connection
//! character set: identifiers stand in backquotes, which `ANSI_QUOTES` leaves alone, and literals
//! are hexadecimal or consist of ASCII characters without quotes and backslashes.

use std::fmt::Write;

/// `name` in backquotes.
pub fn identifier(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    out.push('`');
    for c in name.chars() {
        if c == '`' {
            out.push('`');
        }
        out.push(c);
    }
    out.push('`');
    out
}

/// `bytes` as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        })
}

/// The inverse of [`hex`] for exactly `N` bytes; upper-case digits are refused, so that one value
/// has one text.
pub(crate) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(out)
}

fn digit(c: u8) -> Option<u8> {
    match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    }
}

/// A string literal that needs no quoting rules at all.
pub(crate) fn text_as_hex_literal(text: &str) -> String {
    format!("_utf8mb4 X'{}'", hex(text.as_bytes()))
}

/// Appends `text` as servers print string literals in SHOW CREATE TABLE: in quotes, with backslash
/// escapes whatever the `sql_mode` is.
pub(crate) fn push_shown_literal(out: &mut String, text: &str) {
    push_literal(out, text, "''");
}

/// Appends `text` as MariaDB prints a string literal inside of an expression.
pub(crate) fn push_literal_of_expression(out: &mut String, text: &str) {
    push_literal(out, text, "\\'");
}

fn push_literal(out: &mut String, text: &str, quote: &str) {
    out.push('\'');
    for c in text.chars() {
        match c {
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str(quote),
            _ => out.push(c),
        }
    }
    out.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_in_expressions_are_escaped() {
        let mut out = String::new();
        push_literal_of_expression(&mut out, "it's \\");
        assert_eq!(out, r"'it\'s \\'");
    }

    #[test]
    fn identifiers_double_their_backquotes() {
        assert_eq!(identifier("a`b$enc"), "`a``b$enc`");
    }

    #[test]
    fn hex_is_strict() {
        assert_eq!(unhex::<2>("0aff"), Some([0x0a, 0xff]));
        assert_eq!(unhex::<2>("0AFF"), None);
        assert_eq!(unhex::<2>("0af"), None);
        assert_eq!(unhex::<2>("0aéf"), None);
        assert_eq!(hex(&[0x0a, 0xff]), "0aff");
    }

    #[test]
    fn literals_are_shown_with_backslashes() {
        let mut out = String::new();
        push_shown_literal(&mut out, "a'\\\n\0\"");
        assert_eq!(out, "'a''\\\\\\n\\0\"'");
    }
}
