//! A place in the tokens of a stored program, and what the text has said up to there.

use onionskin_schema::same_name;

use crate::errors::{self, NotUnderstood};
use crate::lex::{LiteralKind, Token, TokenKind};
use crate::native::is_reserved;
use crate::planner::{Planned, identifier, refuse};
use crate::statement::words::is_one_of;

/// An INSERT or REPLACE.
pub(super) struct Insert {
    /// Where its table's name begins.
    pub target: usize,
    /// Where the names of its columns stand, in a list; those behind SET are not among them.
    pub columns: Vec<usize>,
}

pub(super) struct Reader<'r> {
    pub sql: &'r [u8],
    pub tokens: &'r [Token],
    pub at: usize,
    /// Variables and parameters that can be assigned here.
    pub declared: Vec<String>,
    pub inserts: Vec<Insert>,
    /// It is a trigger: NEW is the row that is written.
    pub is_trigger: bool,
    /// An UPDATE or ON DUPLICATE KEY UPDATE stands in it.
    pub updates: bool,
}

/// What is refused because of what it does, and not because it is not understood.
pub(super) fn unsafe_part<T>(about: &str) -> Planned<T> {
    refuse(&errors::PROGRAM, about)
}

impl<'r> Reader<'r> {
    pub fn new(sql: &'r [u8], tokens: &'r [Token]) -> Self {
        Reader {
            sql,
            tokens,
            at: 0,
            declared: Vec::new(),
            inserts: Vec::new(),
            is_trigger: false,
            updates: false,
        }
    }

    pub fn token(&self) -> Option<&'r Token> {
        self.tokens.get(self.at)
    }

    pub fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub fn step(&mut self) {
        self.at += 1;
    }

    /// The token here, and what follows, in small letters; empty if it is no bare word.
    pub fn word(&self) -> String {
        self.word_at(self.at)
    }

    pub fn word_at(&self, at: usize) -> String {
        let token = self.tokens.get(at);
        let word = token.filter(|token| token.kind == TokenKind::Word);
        let text = word.map(|token| String::from_utf8_lossy(token.text(self.sql)));
        text.map(|text| text.to_ascii_lowercase())
            .unwrap_or_default()
    }

    pub fn is_word(&self, word: &str) -> bool {
        self.is_word_at(self.at, word)
    }

    pub fn is_word_at(&self, at: usize, word: &str) -> bool {
        let token = self.tokens.get(at);
        token.is_some_and(|token| token.is_word(self.sql, word))
    }

    pub fn is_one_of(&self, words: &[&str]) -> bool {
        self.token()
            .is_some_and(|token| is_one_of(self.sql, token, words))
    }

    pub fn is_sign_at(&self, at: usize, sign: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(sign))
    }

    pub fn takes(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.at += usize::from(is);
        is
    }

    pub fn takes_sign(&mut self, sign: u8) -> bool {
        let is = self.is_sign_at(self.at, sign);
        self.at += usize::from(is);
        is
    }

    pub fn must(&mut self, word: &str) -> Planned<()> {
        match self.takes(word) {
            true => Ok(()),
            false => self.not_understood(),
        }
    }

    pub fn must_sign(&mut self, sign: u8) -> Planned<()> {
        match self.takes_sign(sign) {
            true => Ok(()),
            false => self.not_understood(),
        }
    }

    /// A constant.
    pub fn literal(&mut self) -> Planned<()> {
        match self.token().map(|token| token.kind) {
            Some(TokenKind::Literal(kind)) if kind != LiteralKind::Parameter => {
                self.step();
                Ok(())
            }
            _ => self.not_understood(),
        }
    }

    /// The name at a place, if it can be one.
    pub fn name_at(&self, at: usize) -> Option<String> {
        let token = self.tokens.get(at)?;
        let name = identifier(self.sql, token)?;
        let is_keyword = token.kind == TokenKind::Word && is_reserved(&name);
        (!is_keyword).then_some(name)
    }

    pub fn name(&mut self) -> Planned<String> {
        match self.name_at(self.at) {
            Some(name) => {
                self.step();
                Ok(name)
            }
            None => self.not_understood(),
        }
    }

    /// A name with up to two others before it; gives the place of the last.
    pub fn path(&mut self) -> Planned<usize> {
        self.name()?;
        for _ in 0..2 {
            if !self.takes_sign(b'.') {
                break;
            }
            // behind a dot any word is a name
            let token = self.token();
            match token.and_then(|token| identifier(self.sql, token)) {
                Some(_) => self.step(),
                None => return self.not_understood(),
            }
        }
        Ok(self.at - 1)
    }

    pub fn is_declared(&self, name: &str) -> bool {
        self.declared.iter().any(|other| same_name(other, name))
    }

    /// The type of a variable, a parameter or a result.
    pub fn data_type(&mut self) -> Planned<()> {
        /// What has columns, or takes its type from one.
        const OF_ROWS: [&str; 5] = ["row", "table", "cursor", "sys_refcursor", "record"];
        const MORE: [&str; 15] = [
            "ascii",
            "binary",
            "byte",
            "char",
            "character",
            "precision",
            "signed",
            "text",
            "unicode",
            "unsigned",
            "varbinary",
            "varchar",
            "varchar2",
            "varying",
            "zerofill",
        ];
        if self.is_one_of(&OF_ROWS) || self.is_word_at(self.at + 1, "of") {
            return unsafe_part("a variable of the type of a row or a column");
        }
        if self.word().is_empty() {
            return self.not_understood();
        }
        self.step();
        loop {
            let is_set = self.is_word("character") && self.is_word_at(self.at + 1, "set");
            if self.takes_sign(b'(') {
                self.literal()?;
                while self.takes_sign(b',') {
                    self.literal()?;
                }
                self.must_sign(b')')?;
            } else if is_set || self.is_one_of(&["charset", "collate"]) {
                self.at += 1 + usize::from(is_set);
                match self.token().map(|token| token.kind) {
                    Some(TokenKind::Word | TokenKind::Quoted) => self.step(),
                    _ => self.literal()?,
                }
            } else if self.is_one_of(&MORE) {
                self.step();
            } else {
                return Ok(());
            }
        }
    }

    /// Refuses what stands here.
    pub fn not_understood<T>(&self) -> Planned<T> {
        NotUnderstood::PartOf("a statement", "a stored program").refuse()
    }
}
