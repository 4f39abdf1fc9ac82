//! Queries inside of statements that have no place for one.
//!
//! A definition, a statement about accounts or `KILL` is told by a few of its words, and goes to
//! the server. A query may stand in it all the same: `ALTER TABLE p ADD CHECK (v <> (SELECT …))`.
//! The server refuses it, and has its constants in its log by then. So what is read by a few words
//! may hold no query with values, as long as any of its names is that of a protected table.

use super::words::{flattened, is_one_of};
use crate::lex::{LexMode, Token, TokenKind};

/// Words that a query begins with.
const QUERIES: [&str; 4] = ["select", "table", "values", "with"];

/// Words of statements that are read as a whole where they are near protected tables, their queries
/// too.
const READ: [&str; 16] = [
    "select", "insert", "replace", "update", "delete", "with", "values", "table", "do", "call",
    "set", "explain", "describe", "desc", "analyze", "load",
];

/// [`has_query`] of a statement that may have executable comments.
pub(super) fn holds_query(sql: &[u8], tokens: &[Token], mode: LexMode) -> bool {
    let is_comment = |token: &Token| token.kind == TokenKind::Executable;
    match tokens.iter().any(is_comment) {
        true => flattened(sql, tokens, mode).is_some_and(|all| has_query(sql, &all)),
        false => has_query(sql, tokens),
    }
}

/// Whether a query with values stands in a statement that is told by a few words.
pub(super) fn has_query(sql: &[u8], all: &[Token]) -> bool {
    let Some(first) = all.first() else {
        return false;
    };
    let is = |at: usize, words: &[&str]| all.get(at).is_some_and(|t| is_one_of(sql, t, words));
    let is_read = is_one_of(sql, first, &READ) || first.is(b'(');
    let is_about_words = (is(0, &["set"])
        && all.iter().take(4).any(|t| t.is_word(sql, "transaction")))
        || (is(0, &["analyze"]) && all.iter().take(3).any(|t| t.is_word(sql, "table")));
    let is_value = |token: &Token| matches!(token.kind, TokenKind::Literal(_));
    (!is_read || is_about_words)
        && all.iter().any(is_value)
        && opens_query(sql, in_definition(sql, all))
}

/// Whether a query in parentheses begins among these words.
pub(super) fn opens_query(sql: &[u8], all: &[Token]) -> bool {
    let mut pairs = all.windows(2);
    pairs.any(|pair| pair[0].is(b'(') && is_one_of(sql, &pair[1], &QUERIES))
}

/// A statement without the query at its end, if it is one that may end in one.
fn in_definition<'t>(sql: &[u8], all: &'t [Token]) -> &'t [Token] {
    match query_at_end(sql, all) {
        Some(at) => &all[..at],
        None => all,
    }
}

/// Where the query begins that a view or a table is made of.
pub(super) fn query_at_end(sql: &[u8], all: &[Token]) -> Option<usize> {
    let is = |at: usize, words: &[&str]| all.get(at).is_some_and(|t| is_one_of(sql, t, words));
    if !is(0, &["create", "alter"]) {
        return None;
    }
    let mut head = all.iter().take_while(|t| !t.is_word(sql, "as"));
    if head.any(|t| t.is_word(sql, "view")) {
        return Some(all.iter().position(|t| t.is_word(sql, "as"))? + 1);
    }
    let table = (1..all.len().min(5)).find(|at| is(*at, &["table"]))?;
    if is(0, &["alter"]) {
        return None;
    }
    let mut depth = 0usize;
    (table + 1..all.len()).find(|&at| {
        let token = &all[at];
        let is_outside = depth == 0;
        if token.is(b'(') {
            depth += 1;
        } else if token.is(b')') {
            depth = depth.saturating_sub(1);
        }
        is_outside && begins_query(sql, all, table, at)
    })
}

/// Whether the query of CREATE TABLE begins here, outside of all parentheses.
fn begins_query(sql: &[u8], all: &[Token], table: usize, at: usize) -> bool {
    let is = |at: usize, words: &[&str]| all.get(at).is_some_and(|t| is_one_of(sql, t, words));
    // a table's name or that of an option may be any word
    if is(at - 1, &["table", "exists"]) || all[at - 1].is(b'.') || all[at - 1].is(b'=') {
        return false;
    }
    if is(at, &["with"]) {
        // WITH name AS (, and not WITH SYSTEM VERSIONING
        return is(at + 1, &["recursive"])
            || is(at + 2, &["as"])
            || all.get(at + 2).is_some_and(|t| t.is(b'('));
    }
    if is(at, &["values"]) {
        return is(at + 1, &["row"]) || all.get(at + 1).is_some_and(|t| t.is(b'('));
    }
    if is(at, &["select", "table"]) {
        return true;
    }
    // PARTITION BY HASH ((…)) is none: a list of columns, AS or a table's options stand before one
    let behind = all[at..].iter().position(|t| !t.is(b'(')).map(|n| at + n);
    let opens = all[at].is(b'(') && behind.is_some_and(|at| is(at, &QUERIES));
    let is_first = !all[table..at].iter().any(|t| t.is(b'('));
    opens && (is_first || is(at - 1, &["as", "ignore", "replace"]) || all[at - 1].is(b')'))
}
