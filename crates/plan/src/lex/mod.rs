//! One pass over the bytes of a statement: tokens, never a tree.
//!
//! The lexer knows exactly as much of MySQL's lexical rules as is needed to tell literals from
//! everything else under the session's `sql_mode`: quoting, escapes, comments, numbers,
//! introducers, variables. It works on bytes, so that the text need not be valid UTF-8. In some
//! character sets (gbk, big5, cp932, …) the second byte of a character may be a backslash or a back
//! quote: `0xBF 0x5C` is one character of gbk, and a string does not go on behind `0xBF 0x5C 0x27`.
//! There strings are read by characters, as the servers do, and everything else beyond ASCII is an
//! error: what is no character of the set, such characters behind a backslash (of which the servers
//! escape the first byte alone) and outside of strings.
//!
//! Adjacent string literals (`'a' 'b'`) are one literal, as in MySQL. Ordinary comments are
//! white space. Executable comments (`/*!50000 … */`, `/*M! … */`) and optimizer hints are
//! tokens of their own: whoever plans near a protected table refuses the former. A text in which
//! something may end here or there, as servers differ, has no tokens.
//!
//! `token.rs` says what tokens there are. This file tells by the first byte which one begins, and
//! reads it; where quoted texts end is in `quoted.rs`, where comments do in `comments.rs`.
//! `statements.rs` cuts a text of several statements, and `unwrapped.rs` takes statements out of
//! executable comments; `executed.rs` says which of these a server reads. `used.rs` finds the
//! databases and files that statements ask for.

mod comments;
mod executed;
mod introducer;
mod quoted;
mod statements;
mod token;
mod unwrapped;
mod used;

use introducer::is_introducer;

pub(crate) use comments::executable;
pub(crate) use executed::as_executed;
pub(crate) use statements::is_compound;
pub use statements::{Empty, Statements, split, used_database};
pub use token::{LexError, LexMode, LiteralKind, Token, TokenKind};
pub use unwrapped::{spelled_out, unwrapped};
pub use used::{Used, used};

/// Iterates over the tokens of a text.
pub struct Lexer<'a> {
    sql: &'a [u8],
    at: usize,
    mode: LexMode,
    /// Of the mode's character set.
    hides_ascii: bool,
    /// Behind the last token, if that was a dot.
    dot_end: usize,
    /// Behind the last token, if that was a bare word.
    word_end: usize,
    /// Whether this is the inside of an executable comment.
    within: bool,
}

/// Looked at for each byte of each statement, so it is a table.
const WORD_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80;
        byte += 1;
    }
    table
};

#[inline]
fn is_word_byte(b: u8) -> bool {
    WORD_BYTES[usize::from(b)]
}

#[inline]
fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

impl<'a> Lexer<'a> {
    /// A lexer at the beginning of `sql`.
    pub fn new(sql: &'a [u8], mode: LexMode) -> Self {
        Lexer {
            sql,
            at: 0,
            mode,
            hides_ascii: mode.hides_ascii(),
            dot_end: usize::MAX,
            word_end: usize::MAX,
            within: false,
        }
    }

    /// Where the next token is looked for.
    pub fn position(&self) -> usize {
        self.at
    }

    #[inline]
    fn peek(&self, ahead: usize) -> u8 {
        self.sql.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// A string literal at `from`, with those that follow it and belong to it.
    fn strings(&mut self, from: usize) -> Result<usize, LexError> {
        self.at = self.string_end(from)?;
        let mut end = self.at;
        loop {
            self.skip_blank()?;
            match self.sql.get(self.at) {
                Some(&b) if self.is_string_quote(b) => {
                    self.at = self.string_end(self.at)?;
                    end = self.at;
                }
                _ => {
                    self.at = end;
                    return Ok(end);
                }
            }
        }
    }

    fn literal(&mut self, start: usize, kind: LiteralKind) -> Token {
        Token {
            kind: TokenKind::Literal(kind),
            start,
            end: self.at,
        }
    }

    /// The next token, or `None` at the end.
    pub fn next_token(&mut self) -> Result<Option<Token>, LexError> {
        self.skip_blank()?;
        let start = self.at;
        let Some(&b) = self.sql.get(start) else {
            return Ok(None);
        };
        let token = match b {
            b'`' => {
                self.at = self.quoted_end(start, b'`', false)?;
                Token {
                    kind: TokenKind::Quoted,
                    start,
                    end: self.at,
                }
            }
            b'"' if self.mode.ansi_quotes => {
                self.at = self.quoted_end(start, b'"', false)?;
                Token {
                    kind: TokenKind::Quoted,
                    start,
                    end: self.at,
                }
            }
            b'\'' | b'"' => {
                self.strings(start)?;
                self.literal(start, LiteralKind::String)
            }
            b'?' => {
                self.at += 1;
                self.literal(start, LiteralKind::Parameter)
            }
            b'@' => self.variable(start)?,
            b'/' if self.peek(1) == b'*' => {
                if self.peek(2) == b'+' {
                    self.at = self.hints_end()?;
                    Token {
                        kind: TokenKind::Hint,
                        start,
                        end: self.at,
                    }
                } else {
                    self.at = self.executable_end()?;
                    Token {
                        kind: TokenKind::Executable,
                        start,
                        end: self.at,
                    }
                }
            }
            // behind a dot without a blank, digits are a name; behind a bare word without a blank,
            // a dot qualifies
            b'0'..=b'9' if self.dot_end != start => self.number(start)?,
            b'.' if self.peek(1).is_ascii_digit() && self.word_end != start => {
                self.number(start)?
            }
            _ if is_word_byte(b) => self.word(start)?,
            _ if b < b' ' || b == 0x7f => return Err(LexError::Control),
            _ => {
                self.at += 1;
                if b == b'.' {
                    self.dot_end = self.at;
                }
                Token {
                    kind: TokenKind::Punct(b),
                    start,
                    end: self.at,
                }
            }
        };
        if token.kind == TokenKind::Word {
            self.word_end = token.end;
        }
        if self.hides_ascii {
            let is_string = matches!(
                token.kind,
                TokenKind::Literal(LiteralKind::String | LiteralKind::Introduced)
            );
            if !is_string && !token.text(self.sql).is_ascii() {
                return Err(LexError::Character);
            }
        }
        Ok(Some(token))
    }

    fn variable(&mut self, start: usize) -> Result<Token, LexError> {
        self.at += 1;
        if self.peek(0) == b'@' {
            self.at += 1;
        }
        match self.peek(0) {
            // no server takes a string for the name of a system variable
            b'\'' | b'"' if self.at > start + 1 => return Err(LexError::Ambiguous),
            q @ (b'\'' | b'"' | b'`') => {
                let backslash = self.is_string_quote(q) && !self.mode.no_backslash_escapes;
                self.at = self.quoted_end(self.at, q, backslash)?;
            }
            _ => {
                while is_word_byte(self.peek(0)) || self.peek(0) == b'.' {
                    self.at += 1;
                }
            }
        }
        Ok(Token {
            kind: TokenKind::Variable,
            start,
            end: self.at,
        })
    }

    /// A number, or a name that begins with digits. Where a point was read, an `e` without digits
    /// is no number: MySQL forgets what it has read and takes the next byte for a token, so that
    /// `app 1.e.patients` is `app.patients` and the dashes of `1.e--` are an operator.
    fn number(&mut self, start: usize) -> Result<Token, LexError> {
        let second = self.peek(1);
        if self.peek(0) == b'0' && (second == b'x' || second == b'b') {
            let hex = second == b'x';
            let digit = |b: u8| {
                if hex {
                    b.is_ascii_hexdigit()
                } else {
                    b == b'0' || b == b'1'
                }
            };
            let mut end = start + 2;
            while self.sql.get(end).is_some_and(|&b| digit(b)) {
                end += 1;
            }
            if end > start + 2 && !self.sql.get(end).is_some_and(|&b| is_word_byte(b)) {
                self.at = end;
                return Ok(self.literal(
                    start,
                    if hex {
                        LiteralKind::Hex
                    } else {
                        LiteralKind::Bits
                    },
                ));
            }
        }
        let mut kind = LiteralKind::Integer;
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
        if self.peek(0) == b'.' {
            kind = LiteralKind::Decimal;
            self.at += 1;
            while self.peek(0).is_ascii_digit() {
                self.at += 1;
            }
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                kind = LiteralKind::Float;
                self.at += 1 + sign;
                while self.peek(0).is_ascii_digit() {
                    self.at += 1;
                }
            } else if kind == LiteralKind::Decimal {
                return Err(LexError::Ambiguous);
            }
        }
        if kind == LiteralKind::Integer && is_word_byte(self.peek(0)) {
            // a name may begin with digits: `1st`
            while is_word_byte(self.peek(0)) {
                self.at += 1;
            }
            return Ok(Token {
                kind: TokenKind::Word,
                start,
                end: self.at,
            });
        }
        Ok(self.literal(start, kind))
    }

    fn word(&mut self, start: usize) -> Result<Token, LexError> {
        let rest = self.sql.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|b| !is_word_byte(*b));
        self.at += end.unwrap_or(rest.len());
        let text = &self.sql[start..self.at];
        // MySQL 9 reads `$$ … $$` and `$tag$ … $tag$` as texts, older ones and MariaDB as names
        if text[0] == b'$' && text[1..].contains(&b'$') {
            return Err(LexError::Ambiguous);
        }
        if self.peek(0) == b'\'' && text.len() == 1 {
            let kind = match text[0] {
                b'x' | b'X' => Some(LiteralKind::Hex),
                b'b' | b'B' => Some(LiteralKind::Bits),
                b'n' | b'N' => Some(LiteralKind::Introduced),
                _ => None,
            };
            match kind {
                Some(LiteralKind::Introduced) => {
                    self.strings(self.at)?;
                    return Ok(self.literal(start, LiteralKind::Introduced));
                }
                Some(kind) => {
                    self.at = self.digits_end(self.at)?;
                    return Ok(self.literal(start, kind));
                }
                None => {}
            }
        }
        if text[0] == b'_' && is_introducer(text) {
            let word_end = self.at;
            self.skip_blank()?;
            let b = self.peek(0);
            if self.is_string_quote(b) {
                self.strings(self.at)?;
                return Ok(self.literal(start, LiteralKind::Introduced));
            }
            let next = self.peek(1);
            if (b == b'0' && (next == b'x' || next == b'b'))
                || (matches!(b, b'x' | b'X' | b'b' | b'B') && next == b'\'')
            {
                self.next_token()?;
                return Ok(self.literal(start, LiteralKind::Introduced));
            }
            self.at = word_end;
        }
        Ok(Token {
            kind: TokenKind::Word,
            start,
            end: self.at,
        })
    }
}

/// All tokens of a text.
pub fn tokens(sql: &[u8], mode: LexMode) -> Result<Vec<Token>, LexError> {
    let mut lexer = Lexer::new(sql, mode);
    let mut all = Vec::new();
    while let Some(token) = lexer.next_token()? {
        all.push(token);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(sql: &str, mode: LexMode) -> String {
        tokens(sql.as_bytes(), mode)
            .unwrap()
            .iter()
            .map(|t| {
                let text = String::from_utf8_lossy(t.text(sql.as_bytes())).into_owned();
                match t.kind {
                    TokenKind::Literal(k) => format!("{}<{text}>", k.mark() as char),
                    TokenKind::Executable => format!("!{text}"),
                    _ => text,
                }
            })
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn literals_comments_and_names_are_told_apart() {
        let plain = LexMode::default();
        for (sql, want) in [
            (
                "SELECT 1,-2.5e3 FROM t1",
                "SELECT i<1> , - f<2.5e3> FROM t1",
            ),
            ("a='it''s' -- x'\n and b", "a = s<'it''s'> and b"),
            (r"a='it\'s' # x", r"a = s<'it\'s'>"),
            (
                "x'0a' 0x0A b'1' 0b1 0xg",
                "x<x'0a'> x<0x0A> b<b'1'> b<0b1> 0xg",
            ),
            (
                "_binary'a' N'b' _foo'c'",
                "n<_binary'a'> n<N'b'> _foo s<'c'>",
            ),
            ("'a' 'b'\n'c' d", "s<'a' 'b'\n'c'> d"),
            ("t.1a .5 1.e2 1st", "t . 1a d<.5> f<1.e2> 1st"),
            ("1--1", "i<1> - - i<1>"),
            (
                "/* a ' */ x /*!50000 'b' /* c */ */ y",
                "x !/*!50000 'b' /* c */ */ y",
            ),
            ("/*M!100100 a*/ /*!b*/", "!/*M!100100 a*/ !/*!b*/"),
            (
                "SELECT /*+ INDEX(`t` i) */ a /*+ b ' */ , @select /*+ ' */",
                "SELECT /*+ INDEX(`t` i) */ a , @select",
            ),
            ("@a:=@@b.c, @'q r', ?", "@a : = @@b.c , @'q r' , ?<?>"),
            ("`a``b`.`c`", "`a``b` . `c`"),
        ] {
            assert_eq!(show(sql, plain), want, "{sql}");
        }
        let ansi = LexMode {
            ansi_quotes: true,
            no_backslash_escapes: true,
            ..plain
        };
        assert_eq!(show(r#""a" '\' b"#, ansi), r#""a" s<'\'> b"#);
    }

    #[test]
    fn ends_that_depend_on_the_server_are_none() {
        for sql in [
            "/*!50000 'b*/' */ y",
            "/*!99999 don't */ a /* it's */",
            "/*!99999 ' */ a -- ' */",
            "/*!50000 -- */\n a */ b",
            "/*!50000 '/*' */ b",
            "/*!50000 a /*!50000 b */ c */",
            "/*M!100100 a /* b */ c */",
            "a /*!50000 ; b */",
            "SELECT /*+ SET_VAR(a='*/') */ b -- '",
            "SELECT x'0a''\\' ' FROM t -- '",
            "SELECT t.x'\\' ' FROM t -- '",
            "SELECT @@\"a\"",
            "SELECT $$ ' $$",
            "SELECT 1.$$ ' $$",
            "SELECT a. $a$ ' $a$ -- '",
            "SELECT 'x'$_1$ /* $_1$",
        ] {
            let read = tokens(sql.as_bytes(), LexMode::default());
            assert_eq!(read, Err(LexError::Ambiguous), "{sql}");
        }
    }

    #[test]
    fn names_of_variables_have_the_escapes_of_their_quotes() {
        let mode = |ansi_quotes, no_backslash_escapes| LexMode {
            ansi_quotes,
            no_backslash_escapes,
            ..LexMode::default()
        };
        let (strings, names) = (mode(false, false), mode(true, false));
        assert_eq!(show(r#"@"\", a" b"#, strings), r#"@"\", a" b"#);
        assert_eq!(show(r#"@"\", a"#, names), r#"@"\" , a"#);
        assert_eq!(show(r#"@"\", a"#, mode(false, true)), r#"@"\" , a"#);
        assert_eq!(show(r"@'\', ' a", names), r"@'\', ' a");
        assert_eq!(show(r"@'\', a", mode(true, true)), r"@'\' , a");
        assert_eq!(show(r"@`\`, a", strings), r"@`\` , a");
    }

    #[test]
    fn what_does_not_end_is_an_error() {
        for sql in ["'a", "`a", "/* a", "'a\\'", "/*! 'a */", "x'0"] {
            assert!(tokens(sql.as_bytes(), LexMode::default()).is_err(), "{sql}");
        }
    }
}
