//! MySQL's `INSERT … VALUES ROW(…), ROW(…)` without the word ROW: to MySQL it is the same list of
//! rows, in which DEFAULT and columns may stand as well.

use super::{closing, is_member, is_one_of};
use crate::lex::{LexMode, Token, TokenKind, tokens};

/// The statement without the words. `None`: it is another one, or more stands behind its rows than
/// ON DUPLICATE KEY UPDATE. MySQL takes ORDER BY and LIMIT there without a meaning, and no name for
/// the new row.
pub(super) fn listed(sql: &[u8], mode: LexMode) -> Option<Vec<u8>> {
    let all = tokens(sql, mode).ok()?;
    let is = |at: usize, word: &str| all.get(at).is_some_and(|t| t.is_word(sql, word));
    let hides = |t: &Token| t.kind == TokenKind::Executable;
    if !is_one_of(sql, all.first()?, &["insert", "replace"]) || all.iter().any(hides) {
        return None;
    }
    let values = outermost(sql, &all, "values")?;
    let mut out = Vec::with_capacity(sql.len());
    let (mut done, mut at) = (0, values + 1);
    loop {
        if !is(at, "row") || !all.get(at + 1)?.is(b'(') {
            return None;
        }
        out.extend_from_slice(&sql[done..all[at].start]);
        done = all[at].end;
        at = closing(&all, at + 1)? + 1;
        if !all.get(at).is_some_and(|t| t.is(b',')) {
            break;
        }
        at += 1;
    }
    let is_all = all.get(at).is_none_or(|t| t.is(b';'))
        || is(at, "on") && is(at + 1, "duplicate") && is(at + 2, "key");
    out.extend_from_slice(&sql[done..]);
    is_all.then_some(out)
}

/// The first of such words outside of parentheses, unless it is a part of a name, or a query or a
/// list of assignments begins before it.
fn outermost(sql: &[u8], all: &[Token], word: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in all.iter().enumerate() {
        match token.kind {
            TokenKind::Punct(b'(') => depth += 1,
            TokenKind::Punct(b')') => depth = depth.checked_sub(1)?,
            TokenKind::Word if depth == 0 && !is_member(all, at) => {
                if token.is_word(sql, word) {
                    return Some(at);
                }
                if is_one_of(sql, token, &["select", "with", "table", "set"]) {
                    return None;
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_a_list() {
        for (sql, expected) in [
            (
                "INSERT INTO t VALUES ROW(1, 'a'), row (2, (3));",
                Some("INSERT INTO t VALUES (1, 'a'),  (2, (3));"),
            ),
            (
                "REPLACE INTO app.t (a, `values`) VALUES ROW(DEFAULT, ROW(1) = (1))",
                Some("REPLACE INTO app.t (a, `values`) VALUES (DEFAULT, ROW(1) = (1))"),
            ),
            (
                "INSERT t VALUES/**/ROW(1)ON DUPLICATE KEY UPDATE a = VALUES(a)",
                Some("INSERT t VALUES/**/(1)ON DUPLICATE KEY UPDATE a = VALUES(a)"),
            ),
            // another meaning, or none
            ("INSERT INTO t VALUES (1), ROW(2)", None),
            ("INSERT INTO t VALUES ROW(1), (2)", None),
            ("INSERT INTO t VALUES ROW(1) AS new", None),
            ("INSERT INTO t VALUES ROW(1), ROW(2) LIMIT 1", None),
            ("INSERT INTO t VALUES ROW(1) UNION SELECT 2", None),
            ("INSERT INTO t VALUE ROW(1)", None),
            ("INSERT INTO t VALUES ROW(1", None),
            ("INSERT INTO t (VALUES ROW(1))", None),
            ("INSERT INTO t SELECT 1 FROM u, (VALUES ROW(1)) AS v", None),
            ("INSERT INTO t SET a = VALUES ROW(1)", None),
            ("INSERT INTO t VALUES ROW(1) /*!50000 , ROW(2) */", None),
            ("INSERT INTO t VALUES (1)", None),
            ("VALUES ROW(1)", None),
        ] {
            let got = listed(sql.as_bytes(), LexMode::default());
            let got = got.map(|text| String::from_utf8(text).expect("a text"));
            assert_eq!(got.as_deref(), expected, "{sql}");
        }
    }
}
