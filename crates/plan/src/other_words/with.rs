//! `WITH a AS (…) UPDATE …` and `WITH a AS (…) DELETE …`, with each part where it is read, as a
//! derived table.
//!
//! A part that is read once is one: its rows are found before anything changes. Read twice, two
//! derived tables may have other rows where the query is not the same each time. So only parts that
//! are read exactly once are written so, and only where every other use of the name qualifies a
//! column.

use onionskin_schema::folded;

use super::{closing, is_member, is_name, is_one_of};
use crate::lex::{LexMode, LiteralKind, Token, TokenKind, tokens};
use crate::planner::identifier;

/// Words that a list of tables stands behind.
const LISTS: [&str; 2] = ["from", "update"];
/// Words that a table stands behind.
const JOINS: [&str; 2] = ["join", "straight_join"];
/// Words that another list or clause begins with.
const OTHERS: [&str; 13] = [
    "select", "delete", "set", "where", "group", "order", "by", "having", "limit", "on", "using",
    "values", "as",
];

/// A part of WITH, in tokens.
struct Part {
    name: String,
    /// The list of its columns, with parentheses.
    columns: (usize, usize),
    /// The query, with parentheses.
    query: (usize, usize),
}

/// The statement without WITH. `None`: it is another one, or something is unusual.
pub(super) fn inlined(sql: &[u8], mode: LexMode) -> Option<Vec<u8>> {
    let all = tokens(sql, mode).ok()?;
    let is = |at: usize, word: &str| all.get(at).is_some_and(|t| t.is_word(sql, word));
    let hides = |t: &Token| matches!(t.kind, TokenKind::Executable | TokenKind::Hint);
    let withs = all.iter().filter(|t| t.is_word(sql, "with")).count();
    if !is(0, "with") || is(1, "recursive") || withs != 1 || all.iter().any(hides) {
        return None;
    }
    let mut parts: Vec<Part> = Vec::new();
    let mut at = 1;
    loop {
        let name = folded(&identifier(sql, all.get(at)?)?);
        let list = at + 1;
        let behind = match all.get(list)?.is(b'(') {
            true => closing(&all, list)? + 1,
            false => list,
        };
        if !is(behind, "as") {
            return None;
        }
        let end = closing(&all, behind + 1)? + 1;
        parts.push(Part {
            name,
            columns: (list, behind),
            query: (behind + 1, end),
        });
        at = end;
        if !all.get(at)?.is(b',') {
            break;
        }
        at += 1;
    }
    if !is(at, "update") && !is(at, "delete") {
        return None;
    }
    let begins = at;
    let mut text = Inlined {
        sql,
        all: &all,
        parts: &parts,
        written: vec![0; parts.len()],
        out: Vec::with_capacity(sql.len()),
    };
    text.copy(begins, all.len(), parts.len())?;
    let is_once = text.written.iter().all(|times| *times == 1);
    is_once.then_some(text.out)
}

struct Inlined<'s> {
    sql: &'s [u8],
    all: &'s [Token],
    parts: &'s [Part],
    /// How often each part was written.
    written: Vec<usize>,
    out: Vec<u8>,
}

impl Inlined<'_> {
    /// Copies tokens, with the first so many parts in the places of their names. All other names of
    /// parts have to qualify columns.
    fn copy(&mut self, from: usize, to: usize, visible: usize) -> Option<()> {
        let (sql, all) = (self.sql, self.all);
        let mut done = all.get(from)?.start;
        for at in from..to {
            let token = &all[at];
            if !is_name(token) || is_member(all, at) || all.get(at + 1).is_some_and(|t| t.is(b'.'))
            {
                continue;
            }
            let name = folded(&identifier(sql, token)?);
            // the last part of a name is the one that is meant; twice the same is an error
            let Some(n) = self.parts.iter().position(|part| part.name == name) else {
                continue;
            };
            if n >= visible || !self.is_read(at, from) {
                return None;
            }
            self.out.extend_from_slice(&sql[done..token.start]);
            self.part(n)?;
            done = token.end;
            self.behind(n, at);
        }
        self.out.extend_from_slice(&sql[done..all.get(to - 1)?.end]);
        Some(())
    }

    /// Writes the query of a part.
    fn part(&mut self, n: usize) -> Option<()> {
        self.written[n] += 1;
        let (from, to) = self.parts[n].query;
        // parameters would stand in another order
        let is_parameter = |t: &Token| t.kind == TokenKind::Literal(LiteralKind::Parameter);
        if self.written[n] > 1 || self.all[from..to].iter().any(is_parameter) {
            return None;
        }
        self.copy(from, to, n)
    }

    /// Writes the name of a part behind its query, unless it is read under another one, and its
    /// columns.
    fn behind(&mut self, n: usize, at: usize) {
        let (sql, all) = (self.sql, self.all);
        self.out.extend_from_slice(b" AS ");
        self.out.extend_from_slice(all[at].text(sql));
        let (from, to) = self.parts[n].columns;
        if from < to {
            self.out
                .extend_from_slice(&sql[all[from].start..all[to - 1].end]);
        }
    }

    /// Whether the name at a token is that of a table that is read, under no other name.
    fn is_read(&self, at: usize, from: usize) -> bool {
        let (sql, all) = (self.sql, self.all);
        const BEHIND: [&str; 17] = [
            "set",
            "where",
            "on",
            "using",
            "join",
            "inner",
            "left",
            "right",
            "cross",
            "natural",
            "straight_join",
            "group",
            "order",
            "having",
            "limit",
            "union",
            "for",
        ];
        let has_no_alias = all
            .get(at + 1)
            .is_none_or(|t| t.is(b')') || t.is(b',') || t.is(b';') || is_one_of(sql, t, &BEHIND));
        let Some(before) = at.checked_sub(1).filter(|before| *before >= from) else {
            return false;
        };
        let before_it = &all[before];
        if is_one_of(sql, before_it, &LISTS) || is_one_of(sql, before_it, &JOINS) {
            // DELETE FROM a
            let is_target = before > 0 && all[before - 1].is_word(sql, "delete");
            return has_no_alias && !is_target;
        }
        has_no_alias && before_it.is(b',') && self.is_in_list(before, from)
    }

    /// Whether a comma separates tables.
    fn is_in_list(&self, comma: usize, from: usize) -> bool {
        let mut depth = 0_usize;
        for token in self.all[from..comma].iter().rev() {
            match token.kind {
                TokenKind::Punct(b')') => depth += 1,
                TokenKind::Punct(b'(') if depth == 0 => return false,
                TokenKind::Punct(b'(') => depth -= 1,
                TokenKind::Word if depth > 0 => {}
                TokenKind::Word if is_one_of(self.sql, token, &LISTS) => return true,
                // a condition of a join before it is left out
                TokenKind::Word if is_one_of(self.sql, token, &OTHERS) => return false,
                _ => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_where_they_are_read() {
        for (sql, expected) in [
            (
                "WITH old AS (SELECT id FROM t WHERE a = 1) DELETE FROM t WHERE id IN (SELECT id FROM old)",
                Some(
                    "DELETE FROM t WHERE id IN (SELECT id FROM (SELECT id FROM t WHERE a = 1) AS old)",
                ),
            ),
            (
                "with `Old` (i) as (select 1) update t, old set t.a = old.i where t.id = `old`.i;",
                Some("update t, (select 1) AS old(i) set t.a = old.i where t.id = `old`.i;"),
            ),
            (
                "WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a) DELETE t FROM t JOIN b ON t.id = b.x",
                Some(
                    "DELETE t FROM t JOIN (SELECT x FROM (SELECT 1 AS x) AS a) AS b ON t.id = b.x",
                ),
            ),
            // read twice, or not at all
            (
                "WITH a AS (SELECT RAND() AS x) DELETE FROM t WHERE id IN (SELECT x FROM a) AND 1 > (SELECT x FROM a)",
                None,
            ),
            ("WITH a AS (SELECT 1 AS x) DELETE FROM t WHERE id = 1", None),
            // a column of this name, a target, another name
            (
                "WITH a AS (SELECT 1) DELETE FROM t WHERE id IN (SELECT b, a FROM u)",
                None,
            ),
            ("WITH a AS (SELECT 1 AS x) UPDATE t, a SET a = 5", None),
            ("WITH a AS (SELECT 1 AS x) DELETE FROM a", None),
            ("WITH a AS (SELECT 1 AS x) DELETE t, a FROM t, a", None),
            (
                "WITH a AS (SELECT 1 AS x) DELETE t FROM t JOIN a AS b ON t.id = b.x",
                None,
            ),
            // its own name means a table
            (
                "WITH t AS (SELECT id FROM t) DELETE u FROM u JOIN t ON u.id = t.id",
                None,
            ),
            (
                "WITH b AS (SELECT x FROM a), a AS (SELECT 1 AS x) DELETE t FROM t JOIN b ON t.id = b.x",
                None,
            ),
            (
                "WITH RECURSIVE a AS (SELECT 1 AS x) DELETE FROM t WHERE id IN (SELECT x FROM a)",
                None,
            ),
            (
                "WITH a AS (SELECT ? AS x) DELETE FROM t WHERE b = ? AND id IN (SELECT x FROM a)",
                None,
            ),
            (
                "WITH a AS (SELECT 1 AS x) DELETE FROM t WHERE id IN (WITH a AS (SELECT 2 AS x) SELECT x FROM a)",
                None,
            ),
            ("WITH a AS (SELECT 1) SELECT * FROM a", None),
            ("DELETE FROM t", None),
        ] {
            let got = inlined(sql.as_bytes(), LexMode::default());
            let got = got.map(|text| String::from_utf8(text).expect("a text"));
            assert_eq!(got.as_deref(), expected, "{sql}");
        }
    }
}
