//! What a token is, what decides where one ends, and why a text may have none.

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

/// Why a text has no tokens. `errors` has the words for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexError {
    /// A quote or a comment does not end.
    Unterminated,
    /// A control character outside of quotes.
    Control,
    /// Bytes that are no character of the client's set, or one where a character may hide a quote.
    Character,
    /// Servers do not agree on where something ends.
    Ambiguous,
    /// More names than any statement has that a server takes.
    TooManyNames(usize),
}
