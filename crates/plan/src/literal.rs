//! What a literal's text means: quotes and escapes undone, numbers read.

use onionskin_value::{Charset, Input};

use crate::lex::{LexMode, Lexer, LiteralKind, TokenKind};

/// A literal's value, borrowed from its text or from `scratch`. `None` for literals whose
/// meaning we do not reproduce (rare introducers, odd hexadecimal digits).
///
/// `charset` is that of the connection (`character_set_connection`).
pub fn decode<'s>(
    text: &'s [u8],
    kind: LiteralKind,
    negative: bool,
    mode: LexMode,
    charset: Charset,
    scratch: &'s mut Vec<u8>,
) -> Option<Input<'s>> {
    match kind {
        LiteralKind::Integer => {
            let mut magnitude = 0u64;
            for &digit in text {
                let next = magnitude
                    .checked_mul(10)
                    .and_then(|m| m.checked_add(u64::from(digit.wrapping_sub(b'0'))));
                match next {
                    Some(next) => magnitude = next,
                    None => return decimal(text, negative, scratch),
                }
            }
            Some(Input::Integer {
                negative,
                magnitude,
            })
        }
        LiteralKind::Decimal => decimal(text, negative, scratch),
        LiteralKind::Float => {
            let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
            value
                .is_finite()
                .then_some(Input::Double(if negative { -value } else { value }))
        }
        _ if negative => None,
        LiteralKind::String => {
            scratch.clear();
            unquote(text, mode, scratch)?;
            Some(Input::Text {
                bytes: scratch,
                charset,
            })
        }
        LiteralKind::Introduced => introduced(text, mode, scratch),
        LiteralKind::Hex => {
            scratch.clear();
            hex(text, scratch)?;
            Some(Input::Hex(scratch))
        }
        LiteralKind::Bits => {
            scratch.clear();
            bits(text, scratch)?;
            Some(Input::Hex(scratch))
        }
        LiteralKind::Parameter => None,
    }
}

fn decimal<'s>(text: &'s [u8], negative: bool, scratch: &'s mut Vec<u8>) -> Option<Input<'s>> {
    if !negative {
        return Some(Input::Decimal(text));
    }
    scratch.clear();
    scratch.push(b'-');
    scratch.extend_from_slice(text);
    Some(Input::Decimal(scratch))
}

/// Undoes quotes and escapes of one or more adjacent string literals.
fn unquote(text: &[u8], mode: LexMode, out: &mut Vec<u8>) -> Option<()> {
    let mut rest = text;
    let hides_ascii = mode.hides_ascii();
    loop {
        let (&quote, mut body) = rest.split_first()?;
        loop {
            // what stands for itself, at once
            let special = match hides_ascii {
                false => memchr::memchr2(quote, b'\\', body)?,
                true => ordinary(body, quote, mode.charset)?,
            };
            out.extend_from_slice(&body[..special]);
            body = &body[special..];
            let (&b, after) = body.split_first()?;
            if b == quote {
                if after.first() == Some(&quote) {
                    out.push(quote);
                    body = &after[1..];
                    continue;
                }
                body = after;
                break;
            }
            if b == b'\\' && !mode.no_backslash_escapes {
                let (&escaped, after) = after.split_first()?;
                match escaped {
                    b'0' => out.push(0),
                    b'b' => out.push(8),
                    b'n' => out.push(b'\n'),
                    b'r' => out.push(b'\r'),
                    b't' => out.push(b'\t'),
                    b'Z' => out.push(26),
                    // kept as they are, for LIKE
                    b'%' | b'_' => out.extend_from_slice(&[b'\\', escaped]),
                    other => out.push(other),
                }
                body = after;
                continue;
            }
            out.push(b);
            body = after;
        }
        // the next of several adjacent literals, behind white space or a comment
        let mut lexer = Lexer::new(body, mode);
        match lexer.next_token().ok()? {
            None => return Some(()),
            Some(token) if token.kind == TokenKind::Literal(LiteralKind::String) => {
                rest = &body[token.start..];
            }
            Some(_) => return None,
        }
    }
}

/// The bytes at the front of a string's rest that stand for themselves, where a character's second
/// byte may be a backslash. `None` where something is no character, or nothing follows.
fn ordinary(body: &[u8], quote: u8, charset: Charset) -> Option<usize> {
    let mut at = 0;
    loop {
        match *body.get(at)? {
            0x80.. => at += charset.decode(&body[at..])?.1,
            byte if byte == quote || byte == b'\\' => return Some(at),
            _ => at += 1,
        }
    }
}

fn introduced<'s>(text: &'s [u8], mode: LexMode, scratch: &'s mut Vec<u8>) -> Option<Input<'s>> {
    let end = text
        .iter()
        .position(|b| matches!(b, b'\'' | b'"' | b' ' | b'\t' | b'\n' | b'\r'))?;
    let name = text[..end].to_ascii_lowercase();
    let mut lexer = Lexer::new(&text[end..], mode);
    let token = lexer.next_token().ok()??;
    let body = &text[end + token.start..end + token.end];
    let charset = match name.as_slice() {
        b"n" => Charset::Utf8mb3,
        name => Charset::from_name(std::str::from_utf8(name.strip_prefix(b"_")?).ok()?)?,
    };
    scratch.clear();
    match token.kind {
        TokenKind::Literal(LiteralKind::String) => unquote(body, mode, scratch)?,
        TokenKind::Literal(LiteralKind::Hex) => hex(body, scratch)?,
        TokenKind::Literal(LiteralKind::Bits) => bits(body, scratch)?,
        _ => return None,
    }
    Some(match charset {
        Charset::Binary => Input::Bytes(scratch),
        // the servers refuse such a text, warn of it or fill it up
        Charset::Single(_) | Charset::Multi(_) | Charset::Wide(_)
            if charset.valid_prefix(scratch) < scratch.len() =>
        {
            return None;
        }
        charset => Input::Text {
            bytes: scratch,
            charset,
        },
    })
}

fn hex(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (digits, quoted) = match text {
        [b'0', b'x', digits @ ..] => (digits, false),
        [b'x' | b'X', b'\'', digits @ .., b'\''] => (digits, true),
        _ => return None,
    };
    let value = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let mut digits = digits;
    if digits.len() % 2 == 1 {
        if quoted {
            return None;
        }
        out.push(value(digits[0])?);
        digits = &digits[1..];
    }
    for pair in digits.chunks_exact(2) {
        out.push(value(pair[0])? << 4 | value(pair[1])?);
    }
    Some(())
}

fn bits(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let digits = match text {
        [b'0', b'b', digits @ ..] => digits,
        [b'b' | b'B', b'\'', digits @ .., b'\''] => digits,
        _ => return None,
    };
    let first = digits.len() % 8;
    let (head, tail) = digits.split_at(first);
    let byte = |part: &[u8]| {
        part.iter().try_fold(0u8, |acc, &b| match b {
            b'0' | b'1' => Some(acc << 1 | (b - b'0')),
            _ => None,
        })
    };
    if !head.is_empty() {
        out.push(byte(head)?);
    }
    for part in tail.chunks_exact(8) {
        out.push(byte(part)?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(sql: &str, kind: LiteralKind) -> String {
        let mut scratch = Vec::new();
        match decode(
            sql.as_bytes(),
            kind,
            false,
            LexMode::default(),
            Charset::Utf8mb4,
            &mut scratch,
        ) {
            Some(Input::Text { bytes, charset }) => {
                format!("{charset:?}:{}", String::from_utf8_lossy(bytes))
            }
            Some(Input::Hex(b)) => format!("hex:{b:02x?}"),
            Some(Input::Bytes(b)) => format!("bytes:{b:02x?}"),
            Some(Input::Integer { magnitude, .. }) => format!("int:{magnitude}"),
            Some(Input::Decimal(b)) => format!("dec:{}", String::from_utf8_lossy(b)),
            Some(Input::Double(d)) => format!("f64:{d}"),
            _ => "none".into(),
        }
    }

    #[test]
    fn strings_lose_quotes_and_escapes() {
        let s = |sql| text(sql, LiteralKind::String);
        assert_eq!(s("'it''s'"), "Utf8mb4:it's");
        assert_eq!(s(r"'a\n\%\q\\'"), "Utf8mb4:a\n\\%q\\");
        assert_eq!(s("'a' \"b\" /* c */ 'd'"), "Utf8mb4:abd");
        assert_eq!(text("_latin1 'a'", LiteralKind::Introduced), "Latin1:a");
        assert_eq!(text("_binary x'0a'", LiteralKind::Introduced), "bytes:[0a]");
        assert_eq!(
            text("_koi8r'a'", LiteralKind::Introduced)
                .rsplit(':')
                .next(),
            Some("a")
        );
        assert_eq!(
            text("_gbk x'bf5c'", LiteralKind::Introduced),
            "Multi(Gbk):\u{fffd}\\"
        );
        assert_eq!(text("_gbk x'bf'", LiteralKind::Introduced), "none");
        assert_eq!(text("_utf16'a'", LiteralKind::Introduced), "none");
        assert_eq!(text("_swe7'a'", LiteralKind::Introduced), "none");
    }

    #[test]
    fn backslashes_in_characters_escape_nothing() {
        let mode = LexMode {
            charset: Charset::from_name("gbk").expect("a set"),
            ..LexMode::default()
        };
        let value = |sql: &[u8]| {
            let mut scratch = Vec::new();
            match decode(
                sql,
                LiteralKind::String,
                false,
                mode,
                mode.charset,
                &mut scratch,
            ) {
                Some(Input::Text { bytes, .. }) => Some(bytes.to_vec()),
                _ => None,
            }
        };
        assert_eq!(value(b"'\xbf\x5c'"), Some(b"\xbf\x5c".to_vec()));
        assert_eq!(
            value(b"'a\x5cn\xbf\x5c\xbf\x5cn' 'b\x5c''"),
            Some(b"a\n\xbf\x5c\xbf\x5cnb'".to_vec())
        );
        assert_eq!(value(b"'\xbf'"), None);
    }

    #[test]
    fn numbers_and_bytes_are_read() {
        assert_eq!(
            text("18446744073709551615", LiteralKind::Integer),
            "int:18446744073709551615"
        );
        assert_eq!(
            text("18446744073709551616", LiteralKind::Integer),
            "dec:18446744073709551616"
        );
        assert_eq!(text("1e3", LiteralKind::Float), "f64:1000");
        assert_eq!(text("0xabc", LiteralKind::Hex), "hex:[0a, bc]");
        assert_eq!(text("x'abc'", LiteralKind::Hex), "none");
        assert_eq!(text("b'100000001'", LiteralKind::Bits), "hex:[01, 01]");
    }
}
