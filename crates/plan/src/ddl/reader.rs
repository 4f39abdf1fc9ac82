//! Walks over the tokens of a definition.

use std::ops::Range;

use crate::lex::{LiteralKind, Token, TokenKind};
use crate::planner::{Request, identifier};

/// Walks over the tokens of a definition.
pub(crate) struct Reader<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) tokens: &'a [Token],
    pub(crate) at: usize,
    pub(crate) end: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn over(request: &'a Request<'a>, tokens: &'a [Token], range: Range<usize>) -> Self {
        Reader {
            request,
            tokens,
            at: range.start,
            end: range.end,
        }
    }

    /// Walks over a statement, up to the semicolons at its end.
    pub(crate) fn whole(request: &'a Request<'a>, tokens: &'a [Token]) -> Self {
        let last = tokens.iter().rposition(|t| !t.is(b';'));
        Self::over(request, tokens, 0..last.map_or(0, |last| last + 1))
    }

    /// Whether a word stands among these tokens.
    pub(crate) fn says(&self, tokens: Range<usize>, word: &str) -> bool {
        self.tokens[tokens]
            .iter()
            .any(|t| t.is_word(self.sql(), word))
    }

    pub(crate) fn sql(&self) -> &'a [u8] {
        self.request.sql
    }

    pub(crate) fn token(&self) -> Option<Token> {
        if self.at < self.end {
            self.tokens.get(self.at).copied()
        } else {
            None
        }
    }

    pub(crate) fn is(&self, word: &str) -> bool {
        self.token().is_some_and(|t| t.is_word(self.sql(), word))
    }

    pub(crate) fn eat(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.at += usize::from(found);
        found
    }

    /// Whether this word stands so many tokens ahead.
    pub(crate) fn word_at(&self, ahead: usize, word: &str) -> bool {
        let at = self.at + ahead;
        at < self.end && self.tokens[at].is_word(self.sql(), word)
    }

    /// Eats all of these words, or none.
    pub(crate) fn eat_words(&mut self, words: &[&str]) -> bool {
        let found = (0..words.len()).all(|ahead| self.word_at(ahead, words[ahead]));
        self.at += if found { words.len() } else { 0 };
        found
    }

    pub(crate) fn eat_punct(&mut self, byte: u8) -> bool {
        let found = self.token().is_some_and(|t| t.is(byte));
        self.at += usize::from(found);
        found
    }

    pub(crate) fn name(&mut self) -> Option<String> {
        let name = identifier(self.sql(), &self.token()?)?;
        self.at += 1;
        Some(name)
    }

    /// A whole number without a sign, as it stands there.
    pub(crate) fn digits(&mut self) -> Option<String> {
        let token = self.token()?;
        if token.kind != TokenKind::Literal(LiteralKind::Integer) {
            return None;
        }
        let text = self.text(self.at..self.at + 1);
        self.at += 1;
        std::str::from_utf8(text).ok().map(str::to_owned)
    }

    /// The name of a character set or a collation, which may be a string as well. `None` if it is
    /// neither, or is written with escapes.
    pub(crate) fn name_or_string(&mut self) -> Option<String> {
        if let Some(name) = self.name() {
            return Some(name);
        }
        let token = self.token()?;
        let text = std::str::from_utf8(token.text(self.sql())).ok()?;
        let inner = text.get(1..text.len().checked_sub(1)?)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !text.starts_with(['\'', '"']) || !inner.chars().all(plain) {
            return None;
        }
        let inner = inner.to_owned();
        self.at += 1;
        Some(inner)
    }

    pub(crate) fn done(&self) -> bool {
        self.at >= self.end
    }

    /// Skips `( … )`; returns the tokens inside.
    pub(crate) fn parenthesized(&mut self) -> Option<Range<usize>> {
        if !self.token()?.is(b'(') {
            return None;
        }
        let open = self.at;
        let mut depth = 0usize;
        while let Some(t) = self.token() {
            if t.is(b'(') {
                depth += 1;
            } else if t.is(b')') {
                depth -= 1;
                if depth == 0 {
                    self.at += 1;
                    return Some(open + 1..self.at - 1);
                }
            }
            self.at += 1;
        }
        None
    }

    /// The bytes from a token to the one before `end`.
    pub(crate) fn text(&self, range: Range<usize>) -> &'a [u8] {
        match (self.tokens.get(range.start), range.end.checked_sub(1)) {
            (Some(first), Some(last)) if range.start < range.end => {
                &self.sql()[first.start..self.tokens[last].end]
            }
            _ => b"",
        }
    }

    /// `[database.]table`
    pub(crate) fn table(&mut self) -> Option<(Option<String>, String)> {
        let first = self.name()?;
        if self.eat_punct(b'.') {
            return Some((Some(first), self.name()?));
        }
        Some((self.request.settings.database.clone(), first))
    }

    /// Cuts a range at commas outside of parentheses.
    pub(crate) fn split(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let (mut depth, mut from) = (0usize, range.start);
        for at in range.clone() {
            let t = &self.tokens[at];
            if t.is(b'(') {
                depth += 1;
            } else if t.is(b')') {
                depth = depth.saturating_sub(1);
            } else if t.is(b',') && depth == 0 {
                parts.push(from..at);
                from = at + 1;
            }
        }
        parts.push(from..range.end);
        parts
    }
}
