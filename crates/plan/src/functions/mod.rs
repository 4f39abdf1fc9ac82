//! Cryptographic functions in a statement, which the proxy computes.
//!
//! `AES_ENCRYPT('text', 'key')` shows the server text and key, and its logs keep them. With
//! `[functions] evaluate`, a statement is read before anything else looks at it: a call whose
//! arguments are constants is cut out, and its result takes its place. What is behind this door,
//! planning and relay, meets a statement that has neither key nor text in it.
//!
//! - `AES_ENCRYPT` and its like, and digests, become constants ([`Piece::Computed`]).
//! - `AES_DECRYPT` and its like in a select list become their first argument, under a name of ours
//!   ([`Opening`]): the proxy opens the cells of the result.
//! - `AES_DECRYPT` that a WHERE compares with a constant becomes a comparison of ciphertexts.
//! - Any other call of these functions is refused, but for digests of columns, which tell the
//!   server nothing that it does not have.
//!
//! This module is pure: it says what is to be computed. `call.rs` reads arguments, `list.rs` the
//! select list, `condition.rs` the terms of a WHERE; `place.rs` says where a call may stand.

mod call;
mod condition;
mod list;
mod place;

use std::ops::Range;

pub use self::call::{Call, Function, Term};
use self::list::SelectList;
use self::place::Said;
use crate::errors::{self, NotUnderstood, Refusal};
use crate::lex::{LexMode, LiteralKind, Token, TokenKind, tokens};

/// What stands before the number in the name of a column that the proxy opens or names.
pub const OPENED: &str = "onionskin$function_";

/// Digests of columns within each other.
const MOST_DIGESTS: usize = 32;

/// A part of the statement for the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Text as it is.
    Sql(Vec<u8>),
    /// What a call gives.
    Computed(Call),
    /// The client's parameter with this number, from 0.
    Parameter(usize),
}

/// A column of the result that is not what the server sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Opening {
    /// The name that the client sees.
    pub name: Vec<u8>,
    /// How its cells open; `None`: the name alone is another.
    pub call: Option<OpenCall>,
}

/// A call whose first argument is a cell of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    /// Which function.
    pub function: Function,
    /// Its name, as the statement writes it.
    pub name: String,
    /// Its arguments behind the cell. An initialization vector that comes with the cell is NULL
    /// here.
    pub rest: Vec<Term>,
    /// The cell begins with an initialization vector: a byte that says its length, and its bytes.
    pub vector_in_cell: bool,
    /// Around the call, CAST or CONVERT makes a text of it.
    pub as_text: bool,
    /// That text has no characters of four bytes: `USING utf8`.
    pub is_short: bool,
}

/// A statement with calls that the proxy computes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// The statement for the server.
    pub pieces: Vec<Piece>,
    /// Columns of the result, by the number in their name.
    pub openings: Vec<Opening>,
    /// Variables that get a value here and NULL at the server.
    pub assigned: Vec<(String, Term)>,
    /// The parameters of the client's statement.
    pub parameters: usize,
}

/// Why calls are not computed.
#[derive(Clone, Debug)]
pub enum CallError {
    /// The servers' error 1582, with the function's name as the statement writes it.
    ArgumentCount(String),
    /// An error of ours.
    Refused(Refusal),
}

impl From<Refusal> for CallError {
    fn from(refusal: Refusal) -> Self {
        CallError::Refused(refusal)
    }
}

impl From<NotUnderstood> for CallError {
    fn from(reason: NotUnderstood) -> Self {
        CallError::Refused(reason.into())
    }
}

/// A refusal of a call, with what the matter is.
pub(crate) fn refused(about: impl Into<String>) -> CallError {
    CallError::Refused(Refusal::new(&errors::FUNCTION, about))
}

/// Whether a text may call one of the functions, or name one of these variables. It may be wrong to
/// say so.
pub fn may_call(sql: &[u8], secrets: &[String]) -> bool {
    may_call_function(sql) || may_name(sql, secrets)
}

fn begins(text: &[u8], word: &str) -> bool {
    text.get(..word.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
}

fn may_call_function(sql: &[u8]) -> bool {
    let is_letter = |b: &u8| b.is_ascii_alphabetic() || *b == b'_';
    if memchr::memchr(b'(', sql).is_none() {
        return false;
    }
    sql.iter().enumerate().any(|(at, byte)| {
        let may_be = matches!(
            byte.to_ascii_lowercase(),
            b'a' | b'd' | b'e' | b'k' | b'm' | b'o' | b'p' | b's'
        );
        let is_start = may_be && !at.checked_sub(1).is_some_and(|at| is_letter(&sql[at]));
        let rest = &sql[at..];
        let is_name =
            |name: &str| begins(rest, name) && !rest.get(name.len()).is_some_and(is_letter);
        is_start && Function::LISTED.iter().any(|(name, _)| is_name(name))
    })
}

/// Whether a text may name one of these variables, or one that servers take for it.
fn may_name(sql: &[u8], secrets: &[String]) -> bool {
    let is_odd = |b: &u8| matches!(b, b'\'' | b'"' | b'`' | b'\\') || !b.is_ascii();
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"_$.".contains(b);
    !secrets.is_empty()
        && memchr::memchr_iter(b'@', sql).any(|at| {
            // a host stands behind a quote: 'root'@'localhost'
            let before = at.checked_sub(1).map(|at| sql[at]);
            let name = &sql[at + 1..];
            let behind = name.iter().find(|b| !is_plain(b));
            !matches!(before, Some(b'\'' | b'"' | b'`'))
                && (behind.is_some_and(is_odd) || secrets.iter().any(|secret| begins(name, secret)))
        })
}

/// Reads a statement. `None`: it has no such call. `secrets` are the names of variables that the
/// proxy keeps, in small letters, without `@`.
pub fn read(sql: &[u8], mode: LexMode, secrets: &[String]) -> Result<Option<Calls>, CallError> {
    let tokens = tokens(sql, mode).map_err(NotUnderstood::from)?;
    let mut reader = Reader {
        sql,
        mode,
        tokens: &tokens,
        before: Before::each(&tokens),
        said: Said::of(sql, &tokens),
        digests: Vec::new(),
        secrets,
        calls: Calls::default(),
        taken: 0,
        computes: false,
    };
    reader.check_hidden()?;
    reader.statement()?;
    let Reader {
        mut calls,
        computes,
        ..
    } = reader;
    if !computes {
        return Ok(None);
    }
    calls.parameters = tokens.iter().filter(|t| is_parameter(t)).count();
    let end = tokens.iter().rposition(|t| !t.is(b';'));
    let several = end.is_some_and(|end| tokens[..end].iter().any(|t| t.is(b';')));
    let executed = tokens.iter().any(|t| t.kind == TokenKind::Executable);
    if executed {
        return Err(refused("beside a comment that servers execute"));
    }
    if several {
        return Err(refused("in a text of several statements"));
    }
    Ok(Some(calls))
}

/// What stands before a token.
#[derive(Clone, Copy, Default)]
struct Before {
    /// How many literals.
    literals: usize,
    /// How many parameters.
    parameters: usize,
    /// The token that opens the innermost bracket around it.
    bracket: Option<usize>,
}

impl Before {
    fn each(tokens: &[Token]) -> Vec<Before> {
        let mut counted = Before::default();
        let mut open = Vec::new();
        let before = tokens.iter().enumerate().map(|(at, token)| {
            let before = Before {
                bracket: open.last().copied(),
                ..counted
            };
            if token.is(b'(') {
                open.push(at);
            } else if token.is(b')') {
                open.pop();
            }
            counted.literals += usize::from(matches!(token.kind, TokenKind::Literal(_)));
            counted.parameters += usize::from(is_parameter(token));
            before
        });
        before.collect()
    }
}

fn is_parameter(token: &Token) -> bool {
    token.kind == TokenKind::Literal(LiteralKind::Parameter)
}

struct Reader<'a> {
    sql: &'a [u8],
    mode: LexMode,
    tokens: &'a [Token],
    /// What stands before each token.
    before: Vec<Before>,
    said: Said,
    /// The ends of the digests of columns around the present token.
    digests: Vec<usize>,
    secrets: &'a [String],
    calls: Calls,
    /// The end of what was taken over or left out, in bytes of the statement.
    taken: usize,
    /// Something is no longer as the client wrote it.
    computes: bool,
}

impl Reader<'_> {
    fn statement(&mut self) -> Result<(), CallError> {
        let end = self.tokens.len();
        let begins = |word: &str| {
            self.tokens
                .first()
                .is_some_and(|t| t.is_word(self.sql, word))
        };
        if begins("set") {
            self.assignments(1..end)?;
        } else {
            let list = SelectList::of(self.sql, self.tokens);
            let mut at = 0;
            for item in &list.items {
                self.range(at..item.start)?;
                self.item(&list, item)?;
                at = item.end;
            }
            for term in condition::terms(self.sql, self.tokens) {
                self.range(at..term.start)?;
                self.condition(&term)?;
                at = term.end;
            }
            self.range(at..end)?;
        }
        self.sql_up_to(self.sql.len());
        Ok(())
    }

    /// `SET @key = 'text'`: of a variable that is kept here, the server gets NULL.
    fn assignments(&mut self, all: Range<usize>) -> Result<(), CallError> {
        for part in call::between_commas(self.tokens, all) {
            let first = self.tokens.get(part.start);
            let secret = first.and_then(|t| self.secret_name(t));
            let Some(name) = secret else {
                self.range(part)?;
                continue;
            };
            let mut value = part.start + 1;
            let is = |at: usize, byte: u8| self.tokens.get(at).is_some_and(|t| t.is(byte));
            value += usize::from(is(value, b':'));
            if !is(value, b'=') {
                return Err(refused(format!("an assignment to @{name}")));
            }
            let end = part.end - usize::from(part.end > value && is(part.end - 1, b';'));
            let term = self.term(value + 1..end)?;
            let term = term.ok_or_else(|| refused(format!("the value of @{name}")))?;
            if term.shows_key() || matches!(term, Term::Variable(_)) {
                return Err(refused(format!("the value of @{name}")));
            }
            if let Term::Call(call) = &term {
                self.must_hide_key(call)?;
            }
            self.sql_up_to(self.tokens[value].end);
            self.push_sql(b" NULL");
            self.skip_to(end);
            self.calls.assigned.push((name, term));
            self.computes = true;
        }
        Ok(())
    }

    /// Goes through tokens, and computes what stands there.
    fn range(&mut self, range: Range<usize>) -> Result<(), CallError> {
        let mut at = range.start;
        while at < range.end {
            let token = self.tokens[at];
            if let Some(name) = self.secret_name(&token) {
                return Err(refused(format!(
                    "@{name} outside of a function that is computed"
                )));
            }
            self.check_qualified(at)?;
            let Some(function) = self.function_at(at) else {
                if is_parameter(&token) {
                    self.parameter(at);
                }
                at += 1;
                continue;
            };
            at = self.call(function, at)?;
        }
        Ok(())
    }

    /// A call that begins at a token. Returns the token where reading goes on.
    fn call(&mut self, function: Function, at: usize) -> Result<usize, CallError> {
        let end = call::closing(self.tokens, at + 1).ok_or(NotUnderstood::Parentheses)?;
        if function.opens() {
            let about = format!("{} outside of a plain select list", function.name());
            return Err(refused(about));
        }
        let call = match function.is_computed() {
            true => self.constant_call(function, at)?,
            false => None,
        };
        if let Some(call) = call {
            self.must_hide_key(&call)?;
            self.must_mean_the_same(&call, at)?;
            // parentheses behind it would make a call of it
            let before = at.checked_sub(1).and_then(|at| self.tokens.get(at));
            if before.is_some_and(|t| Function::is_named(t.text(self.sql))) {
                return Err(refused("behind a name"));
            }
            self.sql_up_to(self.tokens[at].start);
            // two texts beside each other would be one, as in MD5('x') 'alias'
            let (open, close) = match self.stands_beside_text(at, end) {
                true => (" (", ") "),
                false => ("", ""),
            };
            self.push_sql(open.as_bytes());
            self.calls.pieces.push(Piece::Computed(call));
            self.push_sql(close.as_bytes());
            self.skip_to(end + 1);
            self.computes = true;
            return Ok(end + 1);
        }
        if self.is_told_nothing(function, at, end)? {
            // a column is in it, or a call
            self.digests.retain(|around| *around > at);
            self.digests.push(end);
            if self.digests.len() > MOST_DIGESTS {
                return Err(refused("digests within each other"));
            }
            return Ok(at + 2);
        }
        let about = format!("{} of something that is no constant", function.name());
        Err(refused(about))
    }

    /// Whether a literal or a quoted name stands before or behind these tokens.
    fn stands_beside_text(&self, start: usize, end: usize) -> bool {
        let is_text = |t: &Token| match t.kind {
            TokenKind::Literal(kind) => kind != LiteralKind::Parameter,
            kind => kind == TokenKind::Quoted,
        };
        let before = start.checked_sub(1).and_then(|at| self.tokens.get(at));
        let beside = [before, self.tokens.get(end + 1)];
        beside.into_iter().flatten().any(is_text)
    }

    /// Whether the arguments of a call hold no value that the server has not seen.
    fn is_told_nothing(
        &self,
        function: Function,
        at: usize,
        end: usize,
    ) -> Result<bool, CallError> {
        if !function.is_digest() && function.is_computed() {
            return Ok(false);
        }
        let mut end = end;
        // how many bits a digest has is no secret
        if function == Function::Sha2
            && let [_, bits] = self.arguments_at(function, at)?.as_slice()
            && let [bits_token] = &self.tokens[bits.clone()]
            && bits_token.kind == TokenKind::Literal(LiteralKind::Integer)
        {
            end = bits.start;
        }
        Ok(self.tells_nothing(at + 2..end))
    }

    /// Whether these tokens hold no value that the server has not seen.
    fn tells_nothing(&self, range: Range<usize>) -> bool {
        self.tokens[range].iter().all(|t| match t.kind {
            TokenKind::Literal(_) => false,
            TokenKind::Variable => self.secret_name(t).is_none(),
            TokenKind::Executable | TokenKind::Hint => false,
            _ => true,
        })
    }

    // --- the text for the server ---

    /// Takes the client's text over, up to this byte.
    fn sql_up_to(&mut self, end: usize) {
        if self.taken < end {
            let text = &self.sql[self.taken..end];
            self.push_sql(text);
            self.taken = end;
        }
    }

    fn push_sql(&mut self, text: &[u8]) {
        match self.calls.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Sql(last)) => last.extend_from_slice(text),
            _ => self.calls.pieces.push(Piece::Sql(text.to_vec())),
        }
    }

    /// Leaves out what stands before this token.
    fn skip_to(&mut self, token: usize) {
        let end = token.checked_sub(1).and_then(|last| self.tokens.get(last));
        self.taken = end.map_or(0, |t| t.end).max(self.taken);
    }

    /// A parameter that goes on to the server.
    fn parameter(&mut self, at: usize) {
        self.sql_up_to(self.tokens[at].start);
        let number = self.before[at].parameters;
        self.calls.pieces.push(Piece::Parameter(number));
        self.skip_to(at + 1);
    }

    /// The name of a variable that the proxy keeps.
    fn secret_name(&self, token: &Token) -> Option<String> {
        if token.kind != TokenKind::Variable {
            return None;
        }
        let name = call::variable_name(token.text(self.sql), self.mode)?;
        self.secrets.contains(&name).then_some(name)
    }
}

#[cfg(test)]
mod tests;
