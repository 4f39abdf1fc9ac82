//! Conditions that compare what a function opens: `AES_DECRYPT(ssn, 'key') = 'text'` in WHERE.
//!
//! With a constant key and vector, one ciphertext alone opens to a text. So the condition holds
//! where the cell is `AES_ENCRYPT('text', 'key')`, which the proxy computes; the server can even
//! use an index. Of a cell that does not open the first condition is NULL and the second false, so
//! this is done only where that is the same: for terms of a WHERE that are joined by AND alone.
//! DES and ENCODE give their input back at times, and are left out.

use std::ops::Range;

use super::call::{Function, Term, between_commas, closing};
use super::{Call, CallError, Piece, Reader, refused};
use crate::lex::Token;

/// Words that end a WHERE.
const ENDS: [&str; 10] = [
    "group",
    "having",
    "order",
    "limit",
    "for",
    "lock",
    "into",
    "returning",
    "fetch",
    "offset",
];

/// Words under which a term of the condition may be NULL and not false, or is no term of it. What
/// binds closer than AND, such as NOT, makes a term of another form.
const NOT_WITHIN: [&str; 4] = ["or", "xor", "case", "window"];

/// The terms of the WHERE of a statement, where nothing but AND joins them.
pub(super) fn terms(sql: &[u8], tokens: &[Token]) -> Vec<Range<usize>> {
    let is_any = |t: &Token, words: &[&str]| words.iter().any(|w| t.is_word(sql, w));
    let explains = |t: &&Token| is_any(t, &["explain", "describe", "desc", "analyze"]);
    let begins = |t: &Token| is_any(t, &["select", "update", "delete"]);
    let has_where = match tokens.first() {
        Some(first) if explains(&first) => tokens.iter().any(begins),
        first => first.is_some_and(begins),
    };
    if !has_where {
        return Vec::new();
    }
    let mut depth = 0usize;
    let (mut parts, mut start) = (Vec::new(), None);
    let mut end = tokens.len();
    let mut is_between = false;
    for (at, token) in tokens.iter().enumerate() {
        depth += usize::from(token.is(b'('));
        depth = depth.saturating_sub(usize::from(token.is(b')')));
        if depth > 0 {
            continue;
        }
        if is_any(token, &["union", "except", "intersect"]) {
            return Vec::new();
        }
        let Some(from) = start else {
            start = token.is_word(sql, "where").then_some(at + 1);
            continue;
        };
        if at < end && (is_any(token, &ENDS) || token.is(b';')) {
            end = at;
        }
        if at >= end {
            continue;
        }
        if is_any(token, &NOT_WITHIN) || token.is(b'|') {
            return Vec::new();
        }
        is_between |= token.is_word(sql, "between");
        if token.is_word(sql, "and") && !std::mem::take(&mut is_between) {
            parts.push(from..at);
            start = Some(at + 1);
        }
    }
    parts.extend(start.map(|from| from..end));
    parts
}

/// A term that compares what a function opens.
struct Compared {
    /// The token of the function's name.
    call: usize,
    /// The constants that it is compared with.
    with: Vec<Range<usize>>,
}

impl Reader<'_> {
    /// A term of a WHERE.
    pub(super) fn condition(&mut self, term: &Range<usize>) -> Result<(), CallError> {
        match self.compared(term) {
            Some(compared) => self.compare(term, &compared),
            None => self.range(term.clone()),
        }
    }

    fn compared(&self, term: &Range<usize>) -> Option<Compared> {
        let is = |at: usize, byte: u8| at < term.end && self.tokens[at].is(byte);
        let opens = |at: usize| self.function_at(at) == Some(Function::AesDecrypt);
        if opens(term.start) {
            let end = closing(self.tokens, term.start + 1)? + 1;
            let with = if is(end, b'=') {
                std::iter::once(end + 1..term.end).collect()
            } else if self.tokens.get(end)?.is_word(self.sql, "in") && is(end + 1, b'(') {
                let close = closing(self.tokens, end + 1)?;
                (close + 1 == term.end).then(|| between_commas(self.tokens, end + 2..close))?
            } else {
                return None;
            };
            let call = term.start;
            return Some(Compared { call, with });
        }
        let equals = term.clone().find(|at| is(*at, b'='))?;
        let call = equals + 1;
        let ends = opens(call) && closing(self.tokens, call + 1)? + 1 == term.end;
        ends.then(|| Compared {
            call,
            with: std::iter::once(term.start..equals).collect(),
        })
    }

    fn compare(&mut self, term: &Range<usize>, compared: &Compared) -> Result<(), CallError> {
        let arguments = self.arguments_at(Function::AesDecrypt, compared.call)?;
        let (cell, rest) = match arguments.split_first() {
            Some(split) => split,
            None => return Err(refused("a call without arguments")),
        };
        let mut keys = Vec::new();
        for range in rest {
            let key = self.term(range.clone())?;
            keys.push(key.ok_or_else(|| {
                refused("a condition with AES_DECRYPT whose key or vector is no constant")
            })?);
        }
        let mut calls = Vec::new();
        for range in &compared.with {
            let text = self.term(range.clone())?;
            let text = text.ok_or_else(|| {
                refused("a condition that compares AES_DECRYPT with something that is no constant")
            })?;
            let call = Call {
                function: Function::AesEncrypt,
                name: self.written(compared.call),
                compares: true,
                arguments: std::iter::once(text).chain(keys.iter().cloned()).collect(),
            };
            self.must_hide_key(&call)?;
            self.must_mean_the_same(&call, compared.call)?;
            calls.push(call);
        }
        if calls.iter().any(Call::is_random) {
            return Err(refused("a condition with RANDOM_BYTES"));
        }
        self.must_be_repeatable(cell)?;
        self.sql_up_to(self.tokens[term.start].start);
        self.push_sql(b"(");
        // for an index, and for cells that are no binary strings
        for before in [&b""[..], b" AND CAST("] {
            self.push_sql(before);
            self.within(cell)?;
            self.push_sql(match before.is_empty() {
                true => b" IN (",
                false => b" AS BINARY) IN (",
            });
            for (n, call) in calls.iter().enumerate() {
                // without a type of its own, MySQL takes a parameter for what it stands beside
                self.push_sql(if n > 0 { b", CAST(" } else { b"CAST(" });
                self.calls.pieces.push(Piece::Computed(call.clone()));
                self.push_sql(b" AS BINARY)");
            }
            self.push_sql(b")");
        }
        self.push_sql(b")");
        self.computes = true;
        self.skip_to(term.end);
        Ok(())
    }
}

impl Call {
    /// Whether it gives another value each time.
    pub(super) fn is_random(&self) -> bool {
        self.function == Function::RandomBytes
            || self.arguments.iter().any(|argument| match argument {
                Term::Call(call) => call.is_random(),
                _ => false,
            })
    }
}
