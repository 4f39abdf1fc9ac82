//! The query at the end of a definition: that of CREATE VIEW … AS, and of CREATE TABLE … SELECT.

use super::words::is_one_of;
use crate::lex::Token;

/// Words that a query begins with.
pub(super) const BEGIN_QUERIES: [&str; 4] = ["select", "table", "values", "with"];

/// A statement without the query at its end, if it is one that may end in one.
pub(super) fn in_definition<'t>(sql: &[u8], all: &'t [Token]) -> &'t [Token] {
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
    let opens = all[at].is(b'(') && behind.is_some_and(|at| is(at, &BEGIN_QUERIES));
    let is_first = !all[table..at].iter().any(|t| t.is(b'('));
    opens && (is_first || is(at - 1, &["as", "ignore", "replace"]) || all[at - 1].is(b')'))
}
