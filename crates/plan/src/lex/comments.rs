//! Where blanks, comments and hints end: which comments are white space, and which are tokens.

use super::{LexError, Lexer, is_space, is_word_byte};

impl Lexer<'_> {
    /// Skips white space and ordinary comments.
    #[inline]
    pub(super) fn skip_blank(&mut self) -> Result<(), LexError> {
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

    /// Whether `/*+` begins hints here: behind certain verbs only, with nothing but white space
    /// between. `from` is the end of the token before.
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

    /// The end of hints. Those that read them respect quotes inside; to others they are an ordinary
    /// comment.
    pub(super) fn hints_end(&self) -> Result<usize, LexError> {
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

    /// The end of an executable comment. A server that executes it respects quotes and comments
    /// inside, and takes the first end for that of all comments around; one that skips it, because
    /// it is meant for a later version, respects nothing but one comment inside; and to MySQL
    /// `/*M!` begins an ordinary one. So where these differ, or a statement ends inside, no end is
    /// right. Nor is it with another executable comment inside, which is refused before it is read:
    /// nothing here is read within itself.
    pub(super) fn executable_end(&self) -> Result<usize, LexError> {
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

    /// The end of a comment that is skipped, from behind its beginning; with another comment
    /// inside, if it may have one.
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
}

/// What is inside of `/*!50000 …*/` and `/*M!100100 …*/`, and how many bytes of that are a version,
/// not part of a name.
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
