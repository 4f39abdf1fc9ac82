//! Where a call may stand: what is a name and no call, and where a constant would not mean what the
//! call means.

use std::ops::Range;

use super::call::{Call, Function, Term, closing};
use super::{CallError, Reader, may_name, refused};
use crate::lex::{LiteralKind, Token, TokenKind};
use crate::literal::decode;
use onionskin_value::Input;

/// The longest prefix of an index, in bytes: a number in parentheses that may be one.
const MOST_PREFIX: u32 = 3072;

/// Brackets around a call that are looked at.
const MOST_BRACKETS: usize = 256;

/// Functions that give the same for the same arguments, without effects: a cell that is made by
/// these alone may be computed twice.
const REPEATABLE: [&str; 8] = [
    "unhex",
    "from_base64",
    "hex",
    "concat",
    "left",
    "right",
    "substring",
    "substr",
];

/// Words that a statement has somewhere.
#[derive(Default)]
pub(super) struct Said {
    select: bool,
    from: bool,
    table: bool,
    /// PREPARE, or EXECUTE IMMEDIATE.
    prepares: bool,
    /// `:=`, or INTO a variable.
    pub assigns: bool,
    /// The token of RETURNING.
    returning: Option<usize>,
}

impl Said {
    pub fn of(sql: &[u8], tokens: &[Token]) -> Said {
        let mut said = Said::default();
        let mut brackets = 0usize;
        for (at, token) in tokens.iter().enumerate() {
            brackets += usize::from(token.is(b'('));
            brackets = brackets.saturating_sub(usize::from(token.is(b')')));
            let next = tokens.get(at + 1);
            said.assigns |= token.is(b':') && next.is_some_and(|t| t.is(b'='));
            if token.kind != TokenKind::Word {
                continue;
            }
            let is = |word: &str| token.is_word(sql, word);
            said.select |= is("select");
            said.from |= is("from");
            said.table |= is("table");
            said.prepares |= is("prepare") || is("immediate");
            let is_variable = next.is_some_and(|t| t.kind == TokenKind::Variable);
            said.assigns |= is("into") && is_variable;
            if is("returning") && brackets == 0 {
                said.returning = said.returning.or(Some(at));
            }
        }
        said
    }
}

impl Reader<'_> {
    fn is_word_at(&self, at: Option<usize>, word: &str) -> bool {
        at.and_then(|at| self.tokens.get(at))
            .is_some_and(|t| t.is_word(self.sql, word))
    }

    fn begins_with(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_word_at(Some(0), word))
    }

    /// What hides calls: comments that servers execute, texts of statements, names that servers
    /// fold in ways of their own.
    pub(super) fn check_hidden(&self) -> Result<(), CallError> {
        let is_executed = |t: &Token| t.kind == TokenKind::Executable;
        for (at, token) in self.tokens.iter().enumerate() {
            if is_executed(token) && self.hides_call(token.text(self.sql)) {
                return Err(refused("in a comment that servers execute"));
            }
            let is_split = self.tokens.get(at + 1).is_some_and(is_executed);
            if is_split && self.listed_at(at).is_some() {
                return Err(refused(
                    "a comment that servers execute, behind a function's name",
                ));
            }
            let is_user =
                token.kind == TokenKind::Variable && !token.text(self.sql).starts_with(b"@@");
            if is_user && !self.secrets.is_empty() && self.folds(token) {
                return Err(refused("a variable whose name is no plain ASCII"));
            }
        }
        if (self.said.prepares || self.said.assigns || self.begins_with(&["set"]))
            && self.tokens.iter().any(|t| self.is_hiding_text(t))
        {
            return Err(refused(
                "in the text of a statement that is prepared in SQL",
            ));
        }
        Ok(())
    }

    /// Whether a token is a text that holds a call, or a statement with a variable that is kept.
    fn is_hiding_text(&self, token: &Token) -> bool {
        let TokenKind::Literal(kind @ (LiteralKind::String | LiteralKind::Introduced)) = token.kind
        else {
            return false;
        };
        let text = token.text(self.sql);
        let mut scratch = Vec::new();
        let charset = self.mode.charset;
        match decode(text, kind, false, self.mode, charset, &mut scratch) {
            Some(Input::Text { bytes, .. } | Input::Bytes(bytes)) => {
                calls_within(bytes) || self.keeps_within(bytes)
            }
            _ => calls_within(text) || may_name(text, self.secrets),
        }
    }

    /// Whether a text names a variable that is kept. `mail@key` is none: servers read a variable
    /// there too, but no statement has one behind a word.
    fn keeps_within(&self, text: &[u8]) -> bool {
        if !may_name(text, self.secrets) {
            return false;
        }
        let Ok(tokens) = crate::lex::tokens(text, self.mode) else {
            return true;
        };
        tokens.iter().enumerate().any(|(at, token)| {
            let before = at.checked_sub(1).map(|at| tokens[at]);
            let is_behind = before.is_some_and(|before| before.end == token.start);
            let is_address =
                is_behind && before.is_some_and(|before| before.kind == TokenKind::Word);
            match token.kind {
                TokenKind::Executable => may_name(token.text(text), self.secrets),
                TokenKind::Variable => {
                    let name = super::call::variable_name(token.text(text), self.mode);
                    let is_kept = name.is_none_or(|name| self.secrets.contains(&name));
                    is_kept && !is_address
                }
                _ => false,
            }
        })
    }

    /// Whether the text of a comment holds a call, or a variable that is kept.
    fn hides_call(&self, comment: &[u8]) -> bool {
        calls_within(comment) || may_name(comment, self.secrets)
    }

    /// Whether servers may take the name of a variable for another one: they fold accents and undo
    /// escapes.
    fn folds(&self, variable: &Token) -> bool {
        let name = variable.text(self.sql);
        !name.is_ascii() || name.contains(&b'\\')
    }

    fn listed_at(&self, at: usize) -> Option<Function> {
        Function::listed(self.name_at(at)?)
    }

    /// Refuses a qualified call that would show a constant. On MariaDB, `mariadb_schema.MD5('x')`
    /// is the function itself.
    pub(super) fn check_qualified(&self, at: usize) -> Result<(), CallError> {
        let is_qualified = at > 0 && self.tokens[at - 1].is(b'.');
        let opens = self.tokens.get(at + 1).is_some_and(|t| t.is(b'('));
        if !is_qualified || !opens || self.listed_at(at).is_none() {
            return Ok(());
        }
        let end = closing(self.tokens, at + 1).ok_or_else(|| refused("parentheses"))?;
        // CREATE TABLE app.password (…), CREATE INDEX i ON app.md5 (a), CALL app.encode('x')
        if at >= 3 && self.is_named_by(at - 3, at + 2..end) {
            return Ok(());
        }
        match self.tells_nothing(at + 2..end) {
            true => Ok(()),
            false => Err(refused("a function behind the name of a database")),
        }
    }

    /// Whether a word before a parenthesis is the name of a table, an index, a column or a program.
    pub(super) fn is_name(&self, at: usize) -> bool {
        let (Some(before), Some(end)) = (at.checked_sub(1), closing(self.tokens, at + 1)) else {
            return false;
        };
        self.is_named_by(before, at + 2..end) || self.is_prefix(at, end)
    }

    /// Whether the word at a token says that a name comes next, before these parentheses.
    fn is_named_by(&self, word: usize, inside: Range<usize>) -> bool {
        const BEFORE: [&str; 11] = [
            "into",
            "references",
            "index",
            "key",
            "unique",
            "fulltext",
            "constraint",
            "insert",
            "replace",
            "with",
            "recursive",
        ];
        let is_any = |words: &[&str]| words.iter().any(|w| self.is_word_at(Some(word), w));
        let defines = self.begins_with(&["create", "drop", "alter"]);
        let is_early = word < 7;
        // what stands in these parentheses is looked at all the same
        if self.begins_with(&["create"]) && is_early && is_any(&["table", "exists"]) {
            return true;
        }
        if is_early && defines && is_any(&["function", "procedure"]) {
            return true;
        }
        if word == 0 && is_any(&["call"]) {
            return true;
        }
        // ON t (a) of an index is a name, ON MD5(a) = b of a join a call
        let is_named = is_any(&BEFORE) || self.creates_index() && is_any(&["on"]);
        is_named && self.holds_names(inside)
    }

    fn creates_index(&self) -> bool {
        self.begins_with(&["create"]) && (1..4).any(|at| self.is_word_at(Some(at), "index"))
    }

    /// Whether these tokens are a list of columns, perhaps with the lengths of prefixes.
    fn holds_names(&self, range: Range<usize>) -> bool {
        self.tokens[range].iter().all(|t| match t.kind {
            TokenKind::Word | TokenKind::Quoted => true,
            TokenKind::Punct(byte) => matches!(byte, b',' | b'.' | b'(' | b')'),
            _ => self.is_short(t),
        })
    }

    fn is_short(&self, token: &Token) -> bool {
        let text = std::str::from_utf8(token.text(self.sql)).unwrap_or_default();
        token.kind == TokenKind::Literal(LiteralKind::Integer)
            && text.parse().is_ok_and(|number: u32| number <= MOST_PREFIX)
    }

    /// Whether a column with the length of a prefix stands there, `password(10)`: in the brackets
    /// of an index.
    fn is_prefix(&self, at: usize, end: usize) -> bool {
        let Some(open) = self.before[at].bracket else {
            return false;
        };
        let defines = self.begins_with(&["create", "alter"]);
        if !defines || end != at + 3 || !self.is_short(&self.tokens[at + 2]) {
            return false;
        }
        let is_mark = |t: &Token| [b',', b'(', b')'].iter().any(|mark| t.is(*mark));
        let mut of_index = false;
        for token in self.tokens[..open].iter().rev().take_while(|t| !is_mark(t)) {
            let is_any = |words: &[&str]| words.iter().any(|w| token.is_word(self.sql, w));
            if is_any(&["default", "check", "as"]) {
                return false;
            }
            of_index |= is_any(&["key", "index", "unique", "fulltext", "spatial"]);
        }
        of_index
    }

    /// Whether these tokens may be computed twice.
    pub(super) fn must_be_repeatable(&self, range: &Range<usize>) -> Result<(), CallError> {
        for at in range.clone() {
            let token = &self.tokens[at];
            let calls = self.tokens.get(at + 1).is_some_and(|t| t.is(b'('));
            let text = token.text(self.sql);
            let is_known = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
            let fits = match token.kind {
                TokenKind::Word if calls => REPEATABLE.iter().any(|word| is_known(word)),
                TokenKind::Quoted if calls => false,
                TokenKind::Word | TokenKind::Quoted => true,
                TokenKind::Literal(kind) => kind != LiteralKind::Parameter,
                TokenKind::Punct(byte) => matches!(byte, b',' | b'.' | b'(' | b')'),
                _ => false,
            };
            if !fits {
                return Err(refused("a cell or a vector that is more than a column"));
            }
        }
        Ok(())
    }

    /// Refuses a call where a constant would not mean what it means.
    pub(super) fn must_mean_the_same(&self, call: &Call, at: usize) -> Result<(), CallError> {
        if self.begins_with(&["set"]) && self.is_word_at(Some(1), "statement") {
            return Err(refused("behind SET STATEMENT"));
        }
        if self.begins_with(&["create", "alter"]) {
            let is_text = |term: &Term| matches!(term, Term::Value { .. } | Term::Null);
            let is_plain = call.function.is_digest() && call.arguments.iter().all(is_text);
            if !is_plain || self.said.select || self.is_word_at(at.checked_sub(1), "using") {
                return Err(refused("in a definition"));
            }
        }
        if call.is_random() && !self.draws_once() {
            return Err(refused("RANDOM_BYTES, which each row would draw"));
        }
        let mut names = Vec::new();
        call.variables(&mut names);
        if !names.is_empty() && self.said.assigns {
            return Err(refused(
                "a variable of the server's that the statement may set",
            ));
        }
        let returns = self.said.returning.is_some_and(|returning| returning < at);
        if returns || self.lacks_name(at) {
            return Err(refused(
                "in a column without a name (write AS name behind it)",
            ));
        }
        Ok(())
    }

    /// Whether a statement computes each of its calls once.
    fn draws_once(&self) -> bool {
        let inserts =
            self.begins_with(&["insert", "replace"]) && !self.said.select && !self.said.table;
        let shows = self.begins_with(&["select"]) && !self.said.from;
        inserts || shows || self.begins_with(&["set", "do", "call"])
    }

    /// Whether a call is an item of a derived table without a name: its text would be the column's.
    fn lacks_name(&self, at: usize) -> bool {
        let end = closing(self.tokens, at + 1).unwrap_or(at);
        if self.is_word_at(Some(end + 1), "as") {
            return false;
        }
        let mut bracket = self.before[at].bracket;
        for _ in 0..MOST_BRACKETS {
            let Some(open) = bracket else { return false };
            if self.is_word_at(Some(open + 1), "select") {
                let before = open.checked_sub(1);
                let words = ["from", "join", "as", "lateral", "union", "all"];
                let is_mark = |at: usize| self.tokens[at].is(b'(') || self.tokens[at].is(b',');
                let is_table = before.is_none_or(is_mark)
                    || words.iter().any(|word| self.is_word_at(before, word));
                let from = |t: &Token| t.is_word(self.sql, "from");
                return is_table && !self.tokens[open..at].iter().any(from);
            }
            bracket = self.before[open].bracket;
        }
        true
    }
}

/// Whether a text holds the name of a function with a parenthesis, or a comment, behind it.
fn calls_within(text: &[u8]) -> bool {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'$' || !b.is_ascii();
    (0..text.len()).any(|at| {
        // digits may be the version that a comment is for
        let is_start = at == 0 || !is_word(&text[at - 1]) || text[at - 1].is_ascii_digit();
        let name = Function::LISTED.iter().find(|(name, _)| {
            let found = text.get(at..at + name.len());
            found.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
                && !text.get(at + name.len()).is_some_and(is_word)
        });
        let Some((name, _)) = name.filter(|_| is_start) else {
            return false;
        };
        let behind = &text[at + name.len()..];
        let next = behind
            .iter()
            .find(|b| !b.is_ascii_whitespace() && !matches!(b, b'`' | b'"'));
        next.is_none_or(|b| matches!(b, b'(' | b'/' | b'*' | b'#' | b'-'))
    })
}
