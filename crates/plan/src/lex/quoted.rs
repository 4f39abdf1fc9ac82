//! Where a text in quotes ends.

use super::{LexError, Lexer};

impl Lexer<'_> {
    /// The end of a text that begins with `quote` at `from`.
    #[inline]
    pub(super) fn quoted_end(
        &self,
        from: usize,
        quote: u8,
        backslash: bool,
    ) -> Result<usize, LexError> {
        if self.hides_ascii {
            return self.quoted_end_by_characters(from, quote, backslash);
        }
        let mut at = from + 1;
        loop {
            let rest = self.sql.get(at..).unwrap_or_default();
            let found = if backslash {
                memchr::memchr2(quote, b'\\', rest)
            } else {
                memchr::memchr(quote, rest)
            };
            let i = found.ok_or(LexError::Unterminated)?;
            if rest[i] == b'\\' || rest.get(i + 1) == Some(&quote) {
                // an escaped character, or a doubled quote
                at += i + 2;
                if at > self.sql.len() {
                    return Err(LexError::Unterminated);
                }
            } else {
                return Ok(at + i + 1);
            }
        }
    }

    /// The same where a character's second byte may look like a backslash or a quote.
    fn quoted_end_by_characters(
        &self,
        from: usize,
        quote: u8,
        backslash: bool,
    ) -> Result<usize, LexError> {
        let mut at = from + 1;
        loop {
            let rest = self.sql.get(at..).unwrap_or_default();
            let &byte = rest.first().ok_or(LexError::Unterminated)?;
            if byte >= 0x80 {
                let character = self.mode.charset.decode(rest);
                at += character
                    .map(|(_, length)| length)
                    .ok_or(LexError::Character)?;
                continue;
            }
            let next = rest.get(1).copied();
            if backslash && byte == b'\\' {
                match next.ok_or(LexError::Unterminated)? {
                    0x80.. => return Err(LexError::Character),
                    _ => at += 2,
                }
            } else if byte != quote {
                at += 1;
            } else if next == Some(quote) {
                at += 2;
            } else {
                return Ok(at + 1);
            }
        }
    }

    /// The end of `'0a'` in `x'0a'`. What follows without a blank is a text of its own, and behind
    /// a dot so is this.
    pub(super) fn digits_end(&self, from: usize) -> Result<usize, LexError> {
        let end = self.quoted_end(from, b'\'', false)?;
        let inside = &self.sql[from + 1..end - 1];
        match memchr::memchr2(b'\'', b'\\', inside) {
            None => Ok(end),
            Some(_) => Err(LexError::Ambiguous),
        }
    }

    #[inline]
    pub(super) fn string_end(&self, from: usize) -> Result<usize, LexError> {
        self.quoted_end(from, self.sql[from], !self.mode.no_backslash_escapes)
    }

    #[inline]
    pub(super) fn is_string_quote(&self, b: u8) -> bool {
        b == b'\'' || (b == b'"' && !self.mode.ansi_quotes)
    }
}

#[cfg(test)]
mod tests {
    use onionskin_value::Charset;

    use crate::lex::{LexError, LexMode, tokens};

    /// `0xBF 0x5C` is a character of gbk, `0xBF 0x27` is none, `0x81 0x60` one that ends with a
    /// back quote.
    #[test]
    fn strings_are_read_by_characters_where_those_hide_quotes() {
        let gbk = |ansi_quotes| LexMode {
            ansi_quotes,
            charset: Charset::from_name("gbk").expect("a set"),
            ..LexMode::default()
        };
        let ends = |sql: &[u8]| {
            let found = tokens(sql, gbk(false))?;
            Ok(found.iter().map(|t| t.end).collect::<Vec<_>>())
        };
        assert_eq!(ends(b"'\xbf\x5c' x"), Ok(vec![4, 6]));
        assert_eq!(ends(b"'\xbf\x5c'' x' y"), Ok(vec![8, 10]));
        assert_eq!(ends(b"'\x5c\x5c' x"), Ok(vec![4, 6]));
        assert_eq!(ends(b"'\xbf\x5c\x5c' x'"), Ok(vec![8]));
        assert_eq!(ends(b"_gbk'\xbf\x5c' x"), Ok(vec![8, 10]));
        assert_eq!(ends(b"'a' /* \x81' */ 'b' x"), Ok(vec![16, 18]));
        for bad in [
            b"'\xbf' x".as_slice(),
            b"'\xbf'",
            b"'\x5c\xbf\x5c' x",
            b"'\xff\xff'",
            b"`\x81` x `",
            b"a\x81\x40",
            b"@\x81\x40",
            b"\x81\x60",
            b"/*! \x81\x60 */",
        ] {
            assert_eq!(ends(bad), Err(LexError::Character), "{bad:x?}");
        }
        assert_eq!(tokens(b"\"\x81\x5c\"", gbk(true)), Err(LexError::Character));
        let literal = LexMode {
            no_backslash_escapes: true,
            ..gbk(false)
        };
        let end = |sql: &[u8], mode| tokens(sql, mode).map(|found| found[0].end);
        assert_eq!(end(b"'\xbf\x5c' x", literal), Ok(4));
        assert_eq!(end(b"'\x5c' x", literal), Ok(3));
        assert_eq!(end(b"'\x5c\xbf\x5c' x", literal), Ok(5));
        assert_eq!(end(b"'\x5c\xbf' x", literal), Err(LexError::Character));
        // the second and the last byte of four are digits
        let gb18030 = LexMode {
            charset: Charset::from_name("gb18030").expect("a set"),
            ..LexMode::default()
        };
        assert_eq!(end(b"'\x94\x39\xfc\x36' x", gb18030), Ok(6));
        assert_eq!(end(b"'\x94\x39\xfc' x", gb18030), Err(LexError::Character));
    }

    /// In the other sets of several bytes no half of a character is a quote, a backslash or a
    /// control character, however it is cut.
    #[test]
    fn half_a_character_hides_nothing_elsewhere() {
        for name in ["euckr", "gb2312", "ujis", "eucjpms", "utf8mb4", "utf8mb3"] {
            let charset = Charset::from_name(name).expect("a set");
            assert!(!charset.hides_ascii());
            for code in (0x80..0x11_0000).filter(|code| char::from_u32(*code).is_some()) {
                let mut bytes = Vec::new();
                charset.encode(code, &mut bytes);
                let harmless = |b: &u8| *b >= 0x80 || b.is_ascii_alphabetic();
                assert!(bytes.iter().all(harmless), "{name} {code:x}: {bytes:x?}");
            }
        }
    }
}
