//! A statement as it may be shown to others: with constants of its kinds in the place of its
//! values.
//!
//! What the planner asks of a constant stays: whether a text is a date or a number, where a pattern
//! of LIKE has its signs and whether it has three letters between them. Nothing else of a value
//! does, not even its length. Comments are left out, since programs put values there. Names stay.

use std::borrow::Cow;

use onionskin_value::Charset;

use crate::lex::{LexMode, LiteralKind, Token, TokenKind, tokens};
use crate::literal;
use crate::statement::flattened;

/// The statement without its values. `None` if it cannot be read.
pub fn without_values(sql: &[u8], mode: LexMode) -> Option<String> {
    let all = tokens(sql, mode).ok()?;
    let all = flattened(sql, &all, mode)?;
    let is_nested = |token: &Token| token.kind == TokenKind::Executable;
    if all.iter().any(is_nested) {
        return None;
    }
    let with = |token: &Token, before: Option<&Token>| value(sql, mode, token, before);
    String::from_utf8(with_values(sql, &all, with)).ok()
}

/// The tokens as a text, with other literals and without comments.
pub(crate) fn with_values(
    sql: &[u8],
    all: &[Token],
    value: impl Fn(&Token, Option<&Token>) -> Cow<'static, [u8]>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(sql.len());
    let mut before: Option<&Token> = None;
    for token in all {
        if before.is_some_and(|before| before.end < token.start) {
            out.push(b' ');
        }
        match token.kind {
            TokenKind::Literal(LiteralKind::Parameter) => out.push(b'?'),
            TokenKind::Literal(_) => out.extend_from_slice(&value(token, before)),
            TokenKind::Hint => out.push(b' '),
            _ => out.extend_from_slice(token.text(sql)),
        }
        before = Some(token);
    }
    out
}

/// A constant of the literal's kind.
fn value(sql: &[u8], mode: LexMode, token: &Token, before: Option<&Token>) -> Cow<'static, [u8]> {
    let TokenKind::Literal(kind) = token.kind else {
        return Cow::Borrowed(b"");
    };
    let text = token.text(sql);
    match kind {
        LiteralKind::Integer => Cow::Borrowed(b"1"),
        LiteralKind::Decimal => Cow::Borrowed(b"1.5"),
        LiteralKind::Float => Cow::Borrowed(b"1e0"),
        LiteralKind::Hex => Cow::Borrowed(b"x'61'"),
        LiteralKind::Bits => Cow::Borrowed(b"b'1'"),
        LiteralKind::Parameter => Cow::Borrowed(b"?"),
        LiteralKind::Introduced => {
            let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
            let introducer = text.iter().take_while(is_name).count();
            Cow::Owned([&text[..introducer], b"'a'"].concat())
        }
        LiteralKind::String => {
            let is_pattern = before.is_some_and(|t| t.is_word(sql, "like"));
            let mut scratch = Vec::new();
            let (kind, charset) = (LiteralKind::String, Charset::Utf8mb4);
            match literal::decode(text, kind, false, mode, charset, &mut scratch) {
                Some(_) if is_pattern => Cow::Owned(pattern(&scratch)),
                Some(_) => Cow::Borrowed(constant(&scratch)),
                None => Cow::Borrowed(b"'a'"),
            }
        }
    }
}

/// A pattern with its signs, and at most three letters between any two of them.
fn pattern(text: &[u8]) -> Vec<u8> {
    const LETTERS: usize = 3;
    let mut out = vec![b'\''];
    let (mut letters, mut is_escaped) = (0, false);
    for byte in text {
        match byte {
            b'%' | b'_' if !is_escaped => {
                // several of one sign tell no more than one
                if out.last() != Some(byte) {
                    out.push(*byte);
                }
                letters = 0;
            }
            b'\\' if !is_escaped => {
                is_escaped = true;
                continue;
            }
            _ if letters < LETTERS => {
                out.push(b'a');
                letters += 1;
            }
            _ => {}
        }
        is_escaped = false;
    }
    out.push(b'\'');
    out
}

/// What stands for a text.
fn constant(text: &[u8]) -> &'static [u8] {
    let form: Vec<u8> = text
        .iter()
        .map(|b| if b.is_ascii_digit() { b'9' } else { *b })
        .collect();
    let (whole, fraction) = match form.iter().position(|b| *b == b'.') {
        Some(dot) => (&form[..dot], &form[dot + 1..]),
        None => (&form[..], &[][..]),
    };
    let has_digits = fraction.iter().all(|b| *b == b'9');
    match whole {
        b"" if form.is_empty() => b"''",
        b"9999-99-99" if fraction.is_empty() => b"'2000-01-01'",
        b"9999-99-99 99:99:99" | b"9999-99-99T99:99:99" if has_digits => b"'2000-01-01 00:00:00'",
        b"99:99:99" if has_digits => b"'00:00:00'",
        [b'-' | b'+', digits @ ..] | digits
            if !digits.is_empty() && has_digits && digits.iter().all(|b| *b == b'9') =>
        {
            b"'1'"
        }
        [b'$', ..] => b"'$'",
        [b'{', ..] => b"'{}'",
        [b'[', ..] => b"'[]'",
        _ => b"'a'",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> String {
        without_values(sql.as_bytes(), LexMode::default()).unwrap()
    }

    #[test]
    fn values_are_replaced_by_their_kind() {
        for (sql, expected) in [
            (
                "SELECT a FROM t WHERE b = 'Alice' AND c IN (17, 18.25, 3e4)",
                "SELECT a FROM t WHERE b = 'a' AND c IN (1, 1.5, 1e0)",
            ),
            (
                "INSERT INTO t VALUES ('2026-11-30', '2026-11-30 07:08:09.5', '12:13:14', '-12.5', '', x'CAFE', 0xCAFE, b'101')",
                "INSERT INTO t VALUES ('2000-01-01', '2000-01-01 00:00:00', '00:00:00', '1', '', x'61', x'61', b'1')",
            ),
            (
                "SELECT /* user 7 */ a -- Bob\nFROM t WHERE a = _latin1'Bob' AND b = N'Eve'",
                "SELECT a FROM t WHERE a = _latin1'a' AND b = N'a'",
            ),
            (
                "SELECT _utf8mb4\"it's\", _latin1 X'CAFE', _latin1 0xCAFE, _binary b'101', n'x'",
                "SELECT _utf8mb4'a', _latin1'a', _latin1'a', _binary'a', n'a'",
            ),
            (
                "SELECT a FROM t WHERE b LIKE '%Smith_s%' AND c LIKE 'Al%' AND d NOT LIKE '50\\\\%%%'",
                "SELECT a FROM t WHERE b LIKE '%aaa_a%' AND c LIKE 'aa%' AND d NOT LIKE 'aaa%'",
            ),
            (
                "SELECT JSON_EXTRACT(d, '$.card') FROM t WHERE e = '{\"pin\": 7}' LIMIT 5, 7",
                "SELECT JSON_EXTRACT(d, '$') FROM t WHERE e = '{}' LIMIT 1, 1",
            ),
            (
                "SELECT ? FROM `t` WHERE a = @x AND b = 'a' 'b'",
                "SELECT ? FROM `t` WHERE a = @x AND b = 'a'",
            ),
            ("/*!50000 SELECT 'Bob' */ FROM t", "SELECT 'a' FROM t"),
        ] {
            assert_eq!(shown(sql).trim(), expected, "{sql}");
        }
    }
}
