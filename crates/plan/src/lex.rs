//! One pass over the bytes of a statement: tokens, never a tree.
//!
//! The lexer knows exactly as much of MySQL's lexical rules as is needed to tell literals from
//! everything else under the session's `sql_mode`: quoting, escapes, comments, numbers,
//! introducers, variables. It works on bytes, so that the text need not be valid UTF-8. In some character
//! sets (gbk, big5, cp932, …) the second byte of a character may be a backslash or a back quote: `0xBF 0x5C` is one
//! character of gbk, and a string does not go on behind `0xBF 0x5C 0x27`. There strings are read by characters, as the
//! servers do, and everything else beyond ASCII is an error: what is no character of the set, such characters behind a
//! backslash (of which the servers escape the first byte alone) and outside of strings.
//!
//! Adjacent string literals (`'a' 'b'`) are one literal, as in MySQL. Ordinary comments are
//! white space. Executable comments (`/*!50000 … */`, `/*M! … */`) and optimizer hints are
//! tokens of their own: whoever plans near a protected table refuses the former. A text in which
//! something may end here or there, as servers differ, has no tokens.

use onionskin_value::Charset;

/// What of the session's settings decides where a token ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct LexMode {
    /// `ANSI_QUOTES`: a double quote begins an identifier.
    pub ansi_quotes: bool,
    /// `NO_BACKSLASH_ESCAPES`: a backslash is an ordinary character.
    pub no_backslash_escapes: bool,
    /// The client's character set.
    pub charset: Charset,
    /// `IGNORE_SPACE`: blanks may stand between any function's name and its parenthesis.
    pub ignore_space: bool,
}

impl LexMode {
    /// Whether a character's second byte may look like a backslash or a back quote.
    pub fn hides_ascii(self) -> bool {
        self.charset.hides_ascii()
    }
}

/// The kinds of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A bare word: keyword or identifier.
    Word,
    /// An identifier in back quotes, or in double quotes under `ANSI_QUOTES`.
    Quoted,
    /// A literal.
    Literal(LiteralKind),
    /// `@x`, `@@x`.
    Variable,
    /// A single byte of punctuation or a part of an operator.
    Punct(u8),
    /// `/*! … */` or `/*M! … */`: the server executes what is inside.
    Executable,
    /// `/*+ … */`.
    Hint,
}

/// The kinds of literal, as far as their text alone tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LiteralKind {
    /// Digits only.
    Integer,
    /// Digits with a decimal point.
    Decimal,
    /// With an exponent.
    Float,
    /// `'…'`, perhaps several in a row.
    String,
    /// `_charset'…'` or `N'…'`: a string that says its own character set.
    Introduced,
    /// `x'…'` or `0x…`.
    Hex,
    /// `b'…'` or `0b…`.
    Bits,
    /// `?` in a prepared statement.
    Parameter,
}

impl LiteralKind {
    /// A byte for the template; distinct for each kind.
    pub(crate) fn mark(self) -> u8 {
        match self {
            LiteralKind::Integer => b'i',
            LiteralKind::Decimal => b'd',
            LiteralKind::Float => b'f',
            LiteralKind::String => b's',
            LiteralKind::Introduced => b'n',
            LiteralKind::Hex => b'x',
            LiteralKind::Bits => b'b',
            LiteralKind::Parameter => b'?',
        }
    }
}

/// A token: its kind and its place in the statement, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Token {
    /// The token's bytes.
    pub fn text<'a>(&self, sql: &'a [u8]) -> &'a [u8] {
        sql.get(self.start..self.end).unwrap_or_default()
    }

    /// Whether it is this keyword (bare, any letter case).
    #[inline]
    pub fn is_word(&self, sql: &[u8], word: &str) -> bool {
        self.kind == TokenKind::Word && self.text(sql).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Whether it is this punctuation byte.
    #[inline]
    pub fn is(&self, byte: u8) -> bool {
        self.kind == TokenKind::Punct(byte)
    }
}

/// Why a text has no tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LexError {
    /// A quote or a comment does not end.
    #[error("a quoted text or comment does not end")]
    Unterminated,
    /// A control character outside of quotes.
    #[error("a control character stands outside of quotes")]
    Control,
    /// Bytes that are no character of the client's set, or one where a character may hide a quote.
    #[error("a character stands where this character set does not allow to read it safely")]
    Character,
    /// Servers do not agree on where something ends.
    #[error("not all servers read a comment or literal alike")]
    Ambiguous,
    /// More names than any statement has that a server takes.
    #[error("it has more than {0} different names")]
    TooManyNames(usize),
}

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

fn is_word_byte(b: u8) -> bool {
    WORD_BYTES[usize::from(b)]
}

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

    fn peek(&self, ahead: usize) -> u8 {
        self.sql.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Skips white space and ordinary comments.
    fn skip_blank(&mut self) -> Result<(), LexError> {
        let from = self.at;
        let mut only_space = true;
        loop {
            let Some(&b) = self.sql.get(self.at) else {
                return Ok(());
            };
            if is_space(b) {
                self.at += 1;
            } else if b == b'#' {
                only_space = false;
                self.skip_line();
            } else if b == b'-' && self.peek(1) == b'-' {
                // "--" begins a comment only before white space, a control character or the end
                let after = self.sql.get(self.at + 2).copied();
                if after.is_none_or(|c| c <= b' ') {
                    only_space = false;
                    self.skip_line();
                } else {
                    return Ok(());
                }
            } else if b == b'/' && self.peek(1) == b'*' {
                match self.peek(2) {
                    b'!' => return Ok(()),
                    b'+' if only_space && self.takes_hints(from) => return Ok(()),
                    b'M' if self.peek(3) == b'!' => return Ok(()),
                    _ => {
                        only_space = false;
                        self.at = self.comment_end()?;
                    }
                }
            } else {
                return Ok(());
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.sql[self.at..];
        self.at += memchr::memchr(b'\n', rest).map_or(rest.len(), |i| i + 1);
    }

    fn comment_end(&self) -> Result<usize, LexError> {
        let from = self.at + 2;
        let rest = self.sql.get(from..).unwrap_or_default();
        memchr::memmem::find(rest, b"*/")
            .map(|i| from + i + 2)
            .ok_or(LexError::Unterminated)
    }

    /// Whether `/*+` begins hints here: behind certain verbs only, with nothing but white space between. `from` is the end of the
    /// token before.
    fn takes_hints(&self, from: usize) -> bool {
        const VERBS: [&str; 5] = ["select", "insert", "replace", "update", "delete"];
        // no further back than the longest verb and the byte before it: texts are read in one pass
        const FAR: usize = 8;
        let before = &self.sql[from.saturating_sub(FAR)..from];
        let start = before.iter().rposition(|b| !is_word_byte(*b));
        let word = &before[start.map_or(0, |i| i + 1)..];
        let is_name = start.is_some_and(|i| matches!(before[i], b'@' | b'.'));
        !is_name
            && VERBS
                .iter()
                .any(|v| word.eq_ignore_ascii_case(v.as_bytes()))
    }

    /// The end of hints. Those that read them respect quotes inside; to others they are an ordinary comment.
    fn hints_end(&self) -> Result<usize, LexError> {
        let end = self.comment_end()?;
        let mut rest = self.sql.get(self.at + 3..end - 2).unwrap_or_default();
        while let Some(open) = rest.iter().position(|b| matches!(b, b'\'' | b'"' | b'`')) {
            let quote = rest[open];
            rest = &rest[open + 1..];
            let close = memchr::memchr(quote, rest).ok_or(LexError::Ambiguous)?;
            if rest[..close].contains(&b'\\') {
                return Err(LexError::Ambiguous);
            }
            rest = &rest[close + 1..];
        }
        Ok(end)
    }

    /// The end of an executable comment. A server that executes it respects quotes and comments inside, and takes the first end
    /// for that of all comments around; one that skips it, because it is meant for a later version, respects nothing but one
    /// comment inside; and to MySQL `/*M!` begins an ordinary one. So where these differ, or a statement ends inside, no end is right.
    /// Nor is it with another executable comment inside, which is refused before it is read: nothing here is read within itself.
    fn executable_end(&self) -> Result<usize, LexError> {
        if self.within {
            return Err(LexError::Ambiguous);
        }
        let is_mariadb = self.peek(2) == b'M';
        let begin = self.at + if is_mariadb { 4 } else { 3 };
        let mut inner = Lexer {
            at: begin,
            within: true,
            ..Lexer::new(self.sql, self.mode)
        };
        let end = loop {
            inner.skip_blank()?;
            match inner.sql.get(inner.at) {
                None => return Err(LexError::Unterminated),
                Some(b'*') if inner.peek(1) == b'/' => break inner.at + 2,
                Some(_) => {
                    let token = inner.next_token()?.ok_or(LexError::Unterminated)?;
                    if token.is(b';') {
                        return Err(LexError::Ambiguous);
                    }
                }
            }
        };
        let as_one = self.skipped_end(begin, true) == Some(end)
            && (!is_mariadb || self.skipped_end(begin, false) == Some(end));
        as_one.then_some(end).ok_or(LexError::Ambiguous)
    }

    /// The end of a comment that is skipped, from behind its beginning; with another comment inside, if it may have one.
    fn skipped_end(&self, begin: usize, nests: bool) -> Option<usize> {
        let (mut at, mut is_nested) = (begin, false);
        loop {
            match self.sql.get(at..at + 2)? {
                b"/*" if nests && !is_nested => is_nested = true,
                b"*/" if is_nested => is_nested = false,
                b"*/" => return Some(at + 2),
                _ => {
                    at += 1;
                    continue;
                }
            }
            at += 2;
        }
    }

    /// The end of a text that begins with `quote` at `from`.
    fn quoted_end(&self, from: usize, quote: u8, backslash: bool) -> Result<usize, LexError> {
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

    /// The end of `'0a'` in `x'0a'`. What follows without a blank is a text of its own, and behind a dot so is this.
    fn digits_end(&self, from: usize) -> Result<usize, LexError> {
        let end = self.quoted_end(from, b'\'', false)?;
        let inside = &self.sql[from + 1..end - 1];
        match memchr::memchr2(b'\'', b'\\', inside) {
            None => Ok(end),
            Some(_) => Err(LexError::Ambiguous),
        }
    }

    fn string_end(&self, from: usize) -> Result<usize, LexError> {
        self.quoted_end(from, self.sql[from], !self.mode.no_backslash_escapes)
    }

    fn is_string_quote(&self, b: u8) -> bool {
        b == b'\'' || (b == b'"' && !self.mode.ansi_quotes)
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
            // behind a dot without a blank, digits are a name; behind a bare word without a blank, a dot qualifies
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

    /// A number, or a name that begins with digits. Where a point was read, an `e` without digits is no number: MySQL forgets what it
    /// has read and takes the next byte for a token, so that `app 1.e.patients` is `app.patients` and the dashes of `1.e--` are an operator.
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

/// Whether a word that begins with an underscore names a character set of the servers.
fn is_introducer(word: &[u8]) -> bool {
    const NAMES: [&str; 42] = [
        "_armscii8",
        "_ascii",
        "_big5",
        "_binary",
        "_cp1250",
        "_cp1251",
        "_cp1256",
        "_cp1257",
        "_cp850",
        "_cp852",
        "_cp866",
        "_cp932",
        "_dec8",
        "_eucjpms",
        "_euckr",
        "_gb18030",
        "_gb2312",
        "_gbk",
        "_geostd8",
        "_greek",
        "_hebrew",
        "_hp8",
        "_keybcs2",
        "_koi8r",
        "_koi8u",
        "_latin1",
        "_latin2",
        "_latin5",
        "_latin7",
        "_macce",
        "_macroman",
        "_sjis",
        "_swe7",
        "_tis620",
        "_ucs2",
        "_ujis",
        "_utf16",
        "_utf16le",
        "_utf32",
        "_utf8",
        "_utf8mb3",
        "_utf8mb4",
    ];
    NAMES
        .iter()
        .any(|n| word.eq_ignore_ascii_case(n.as_bytes()))
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

/// Cuts a text into its statements at `;`. Empty statements are left out. `None` when the text
/// holds a compound statement (a stored program's body, or one of MariaDB's on its own), whose semicolons are not boundaries.
pub fn split(sql: &[u8], mode: LexMode) -> Result<Option<Vec<std::ops::Range<usize>>>, LexError> {
    let mut parts = Vec::new();
    let mut lexer = Lexer::new(sql, mode);
    // what tells of a part whether it is a statement: its first two tokens and its first words
    let (mut head, mut end): (Vec<Token>, usize) = (Vec::new(), 0);
    loop {
        let token = lexer.next_token()?;
        if let Some(token) = token
            && !token.is(b';')
        {
            end = token.end;
            if head.len() < 2 || (head.len() < 14 && token.kind == TokenKind::Word) {
                head.push(token);
            }
            continue;
        }
        if let Some(first) = head.first() {
            if is_compound(sql, &head) {
                return Ok(None);
            }
            parts.push(first.start..end);
            head.clear();
        }
        if token.is_none() {
            return Ok(Some(parts));
        }
    }
}

/// Whether a piece that begins so is one of a compound statement, cut at its semicolons. Each of those has a piece that begins with
/// END, UNTIL or ELSE, and most begin with a word that begins nothing else.
fn is_compound(sql: &[u8], head: &[Token]) -> bool {
    const PIECES: [&str; 14] = [
        "case",
        "declare",
        "else",
        "elseif",
        "elsif",
        "end",
        "exception",
        "for",
        "if",
        "loop",
        "repeat",
        "until",
        "when",
        "while",
    ];
    const PROGRAMS: [&str; 5] = ["procedure", "function", "trigger", "event", "package"];
    let is = |token: &Token, words: &[&str]| words.iter().any(|w| token.is_word(sql, w));
    let mut words = head.iter().filter(|t| t.kind == TokenKind::Word);
    let Some(first) = words.next() else {
        return false;
    };
    let second = head.get(1);
    // `label: LOOP`, and `<<label>>` in Oracle's way
    let has_label = second.is_some_and(|t| t.is(b':')) || head[0].is(b'<');
    let is_block = is(&head[0], &["begin"]) && second.is_some_and(|t| !is(t, &["work"]));
    let is_program =
        is(first, &["create", "alter"]) && words.take(11).any(|word| is(word, &PROGRAMS));
    is(first, &PIECES) || has_label || is_block || is_program
}

/// What is inside of `/*!50000 …*/` and `/*M!100100 …*/`, and how many bytes of that are a version, not part of a name.
pub(crate) fn executable(text: &[u8]) -> (&[u8], usize) {
    let mark = if text.get(2) == Some(&b'M') { 4 } else { 3 };
    let body = text
        .get(mark..text.len().saturating_sub(2))
        .unwrap_or_default();
    let digits = body
        .iter()
        .take(6)
        .take_while(|b| b.is_ascii_digit())
        .count();
    (body, digits)
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

    /// `0xBF 0x5C` is a character of gbk, `0xBF 0x27` is none, `0x81 0x60` one that ends with a back quote.
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

    /// In the other sets of several bytes no half of a character is a quote, a backslash or a control character, however it is cut.
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

    #[test]
    fn statements_are_cut_at_semicolons_outside_of_quotes_and_programs() {
        let cut = |sql: &str| {
            split(sql.as_bytes(), LexMode::default()).unwrap().map(|v| {
                v.into_iter()
                    .map(|r| sql[r].to_string())
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(cut("a ';'; ; b;").unwrap(), ["a ';'", "b"]);
        for compound in [
            "create or replace procedure p() begin a; b; end",
            "if 1 then a; end if",
            "begin not atomic a; b; end",
            "begin a; b; end",
            "begin work; a; end",
            "begin /*!50000 not atomic */ a; end",
            "/* c */ while 1 do a; end while",
            "l: loop a; leave l; end loop",
            "<<l>> loop a; end loop",
            "repeat a; until 1 end repeat",
            "case when 1 then a; else b; end case",
            "for i in 1..2 do a; end for",
            "declare x int; begin a; end",
            "x; set statement a = 1 for begin not atomic b; end",
        ] {
            assert_eq!(cut(compound), None, "{compound}");
        }
        assert_eq!(cut("begin work; a; begin").unwrap().len(), 3);
        assert_eq!(
            cut("create table a(x int); begin; commit").unwrap().len(),
            3
        );
    }
}
