//! A statement's words and signs, as the facts are read from them.

use crate::lex::{LexMode, Token, TokenKind, tokens};
use crate::native::calls_no_program;

/// A word or sign, and the literal's number if it is one.
#[derive(Clone, Copy)]
pub(super) struct Word<'a> {
    pub kind: TokenKind,
    pub text: &'a [u8],
    pub literal: Option<usize>,
}

/// A statement's words and signs, those within executable comments among them.
pub(super) struct Words<'a> {
    pub all: Vec<Word<'a>>,
    pub has_executable: bool,
    /// What the statement begins with. An executable comment is one thing here.
    first: Option<TokenKind>,
}

impl<'a> Words<'a> {
    pub fn new(sql: &'a [u8], outer: &[Token], mode: LexMode) -> Self {
        let mut words = Words {
            all: Vec::with_capacity(outer.len()),
            has_executable: false,
            first: outer.first().map(|token| token.kind),
        };
        let mut literals = 0;
        for token in outer {
            let text = token.text(sql);
            if token.kind == TokenKind::Executable {
                words.has_executable = true;
                let (body, version) = crate::lex::executable(text);
                // the lexer has read it once to find its end
                for inner in tokens(&body[version..], mode).unwrap_or_default() {
                    words.all.push(Word {
                        kind: inner.kind,
                        text: inner.text(&body[version..]),
                        literal: None,
                    });
                }
                continue;
            }
            let is_literal = matches!(token.kind, TokenKind::Literal(_));
            words.all.push(Word {
                kind: token.kind,
                text,
                literal: is_literal.then_some(literals),
            });
            literals += usize::from(is_literal);
        }
        words
    }

    /// Whether it begins with something else than a word, such as an executable comment.
    pub fn is_hidden(&self) -> bool {
        self.first.is_some_and(|kind| kind != TokenKind::Word)
    }

    /// Whether it begins with an executable comment.
    pub fn begins_executable(&self) -> bool {
        self.first == Some(TokenKind::Executable)
    }

    /// Whether one of these is its first word.
    pub fn begins(&self, verbs: &[&str]) -> bool {
        verbs.iter().any(|verb| self.is(0, verb))
    }

    /// Whether this bare word stands at this place.
    pub fn is(&self, at: usize, word: &str) -> bool {
        self.all.get(at).is_some_and(|w| w.is(word))
    }

    pub fn is_sign(&self, at: usize, sign: u8) -> bool {
        self.all.get(at).is_some_and(|w| w.is_sign(sign))
    }

    pub fn count(&self, word: &str) -> usize {
        self.all.iter().filter(|w| w.is(word)).count()
    }

    pub fn says(&self, word: &str) -> bool {
        self.all.iter().any(|w| w.is(word))
    }

    /// Whether a name has this part, in small letters.
    pub fn mentions(&self, part: &str) -> bool {
        let is_name = |w: &&Word| {
            matches!(
                w.kind,
                TokenKind::Word | TokenKind::Variable | TokenKind::Quoted
            )
        };
        let mut names = self.all.iter().filter(is_name);
        names.any(|w| memchr::memmem::find(&w.text.to_ascii_lowercase(), part.as_bytes()).is_some())
    }

    /// Whether a function is called that may be a stored one, of which MySQL's list of its own says
    /// nothing.
    pub fn calls_functions(&self) -> bool {
        let is_call = |at: &usize| {
            let (name, open) = (&self.all[*at], &self.all[*at + 1]);
            if !open.is_sign(b'(') {
                return false;
            }
            let is_qualified = *at > 0 && self.is_sign(*at - 1, b'.');
            let is_apart = name.text.as_ptr_range().end != open.text.as_ptr();
            let begins = if is_qualified {
                at.saturating_sub(2)
            } else {
                *at
            };
            if self.is_written_to(begins) {
                return false;
            }
            match name.kind {
                TokenKind::Quoted => true,
                TokenKind::Word if is_qualified => true,
                TokenKind::Word => !calls_no_program(&String::from_utf8_lossy(name.text), is_apart),
                _ => false,
            }
        };
        (0..self.all.len().saturating_sub(1)).any(|at| is_call(&at))
    }

    /// Whether the name here is that of a table which rows are written to: no function is called
    /// behind these words.
    fn is_written_to(&self, at: usize) -> bool {
        const BEFORE: [&str; 7] = [
            "delayed",
            "high_priority",
            "ignore",
            "insert",
            "into",
            "low_priority",
            "replace",
        ];
        let before = at.checked_sub(1).map(|before| &self.all[before]);
        before.is_some_and(|word| BEFORE.iter().any(|b| word.is(b)))
    }

    pub fn has_parenthesis(&self) -> bool {
        self.all.iter().any(|w| w.is_sign(b'('))
    }
}

impl<'a> Word<'a> {
    pub fn is(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word.as_bytes())
    }

    pub fn is_sign(&self, sign: u8) -> bool {
        self.kind == TokenKind::Punct(sign)
    }

    /// The name behind `@@`.
    pub fn system_variable(&self) -> Option<&'a [u8]> {
        match self.kind {
            TokenKind::Variable => self.text.strip_prefix(b"@@"),
            _ => None,
        }
    }
}
