//! MySQL's `TABLE t`, spelled out: it is `SELECT * FROM t`, which rules read.

use super::{is_member, is_name, is_one_of};
use crate::lex::{LexMode, Token, TokenKind, tokens};

/// Words that begin a statement in which a query may stand, and TABLE means nothing else.
const STATEMENTS: [&str; 11] = [
    "table", "select", "with", "insert", "replace", "update", "delete", "values", "explain",
    "desc", "describe",
];
/// Words behind which a query begins, with parentheses between or without.
const BEFORE: [&str; 16] = [
    "union",
    "intersect",
    "except",
    "all",
    "distinct",
    "as",
    "from",
    "join",
    "in",
    "exists",
    "any",
    "some",
    "analyze",
    "explain",
    "desc",
    "describe",
];
/// Words that may stand behind the table's name.
const BEHIND: [&str; 9] = [
    "order",
    "limit",
    "union",
    "intersect",
    "except",
    "into",
    "on",
    "for",
    "lock",
];

/// The statement with `SELECT * FROM t` in the place of each `TABLE t`. `None`: there is none, or
/// one stands where it is no query, or where its text names a column of the result.
pub(super) fn spelled_out(sql: &[u8], mode: LexMode) -> Option<Vec<u8>> {
    let all = tokens(sql, mode).ok()?;
    let first = all.iter().find(|t| !t.is(b'('))?;
    if !is_one_of(sql, first, &STATEMENTS) {
        return None;
    }
    let mut out = Vec::with_capacity(sql.len() + 32);
    let mut done = 0;
    // whether the parentheses stand in a list of columns, and whether such a list is being read
    let mut open = vec![(false, false)];
    for (at, token) in all.iter().enumerate() {
        match token.kind {
            TokenKind::Executable => return None,
            TokenKind::Punct(b'(') => {
                let (within, list) = *open.last()?;
                open.push((within || list, false));
            }
            TokenKind::Punct(b')') if open.len() > 1 => {
                open.pop();
            }
            TokenKind::Word if !is_member(&all, at) => {
                let (within, list) = open.last_mut()?;
                if token.is_word(sql, "select") || token.is_word(sql, "returning") {
                    *list = true;
                } else if is_one_of(sql, token, &["from", "union", "intersect", "except"]) {
                    *list = false;
                } else if token.is_word(sql, "table") {
                    if *within || *list || !is_query(sql, &all, at) {
                        return None;
                    }
                    out.extend_from_slice(&sql[done..token.start]);
                    out.extend_from_slice(b"SELECT * FROM");
                    done = token.end;
                }
            }
            _ => {}
        }
    }
    if done == 0 {
        return None;
    }
    out.extend_from_slice(&sql[done..]);
    Some(out)
}

/// Whether the word TABLE begins a query here, of which nothing but a name, an order and a limit is
/// told.
fn is_query(sql: &[u8], all: &[Token], at: usize) -> bool {
    let before = all[..at].iter().rev().find(|t| !t.is(b'('));
    let is_inserted = || {
        let first = all[0].is_word(sql, "insert") || all[0].is_word(sql, "replace");
        let name = at > 0 && is_name(&all[at - 1]);
        let begins_name = at > 0 && is_one_of(sql, &all[at - 1], &["into", "ignore"]);
        first && at > 1 && (all[at - 1].is(b')') || name && !begins_name)
    };
    let begins = before.is_none_or(|t| is_one_of(sql, t, &BEFORE));
    if !begins && !is_inserted() {
        return false;
    }
    let names = |at: usize| all.get(at).is_some_and(is_name);
    let is_qualified = all.get(at + 2).is_some_and(|t| t.is(b'.'));
    let behind = if is_qualified { at + 4 } else { at + 2 };
    names(at + 1)
        && names(behind - 1)
        && all
            .get(behind)
            .is_none_or(|t| t.is(b')') || t.is(b';') || is_one_of(sql, t, &BEHIND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_a_select() {
        for (sql, spelled) in [
            ("TABLE t", Some("SELECT * FROM t")),
            (
                "(table app . `t` ORDER BY id LIMIT 1) UNION ALL (TABLE u);",
                Some("(SELECT * FROM app . `t` ORDER BY id LIMIT 1) UNION ALL (SELECT * FROM u);"),
            ),
            (
                "INSERT INTO t TABLE u",
                Some("INSERT INTO t SELECT * FROM u"),
            ),
            (
                "REPLACE INTO t (a, b) TABLE u LIMIT 5",
                Some("REPLACE INTO t (a, b) SELECT * FROM u LIMIT 5"),
            ),
            (
                "SELECT a FROM t WHERE a IN (TABLE u)",
                Some("SELECT a FROM t WHERE a IN (SELECT * FROM u)"),
            ),
            (
                "WITH x AS (TABLE t) SELECT a FROM x",
                Some("WITH x AS (SELECT * FROM t) SELECT a FROM x"),
            ),
            ("EXPLAIN TABLE t", Some("EXPLAIN SELECT * FROM t")),
            ("SELECT (TABLE t)", None),
            ("SELECT a IN (TABLE t) FROM u", None),
            ("SELECT (SELECT 1 FROM u WHERE 1 IN (TABLE t)) FROM u", None),
            ("TABLE t WHERE a = 1", None),
            ("TABLE t, u", None),
            ("TABLE t AS x", None),
            ("TABLE", None),
            ("INSERT INTO TABLE t SELECT 1", None),
            ("CREATE TABLE t (a INT)", None),
            ("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", None),
            ("TABLE t /*!50000 LIMIT 1 */", None),
            ("SELECT a.table FROM a", None),
            ("SELECT 1", None),
        ] {
            let got = spelled_out(sql.as_bytes(), LexMode::default());
            let got = got.map(|text| String::from_utf8(text).expect("a text"));
            assert_eq!(got.as_deref(), spelled, "{sql}");
        }
    }
}
