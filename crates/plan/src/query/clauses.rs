//! The places of a select's clauses, found among its tokens.

use std::ops::Range;

use crate::errors::NotUnderstood;
use crate::lex::{Token, TokenKind};
use crate::planner::{Planned, Planner};

/// The places of a select's clauses, as token indexes.
pub(crate) struct Clauses {
    /// Ranges of tokens, one for each item.
    pub(crate) items: Vec<Range<usize>>,
    /// Where `DISTINCT` stands.
    pub(crate) distinct: Option<usize>,
    /// The first token of the select list.
    pub(crate) list: usize,
    /// One past the select list.
    pub(crate) list_end: usize,
    pub(crate) filter: Option<usize>,
    pub(crate) group: Option<usize>,
    pub(crate) having: Option<usize>,
    /// `WINDOW name AS (…)`
    window: Option<usize>,
    pub(crate) order: Option<usize>,
    pub(crate) limit: Option<usize>,
    pub(crate) lock: Option<usize>,
    pub(crate) end: usize,
}

impl Planner<'_> {
    /// Finds the clauses of the select whose first token is `start`.
    pub(crate) fn clauses(&self, start: usize) -> Planned<Clauses> {
        let (list, distinct) = self.modifiers(start + 1);
        let mut found = Clauses {
            items: Vec::new(),
            distinct,
            list,
            list_end: 0,
            filter: None,
            group: None,
            having: None,
            window: None,
            order: None,
            limit: None,
            lock: None,
            end: self.tokens.len(),
        };
        let mut depth = 0usize;
        let mut item = list;
        let mut in_list = true;
        let mut after_dot = false;
        let mut in_hint = false;
        for (at, t) in self.tokens.iter().enumerate().skip(list) {
            in_hint |= depth == 0 && !in_list && self.begins_index_hint(at);
            let word = t.kind == TokenKind::Word && !after_dot && depth == 0 && !in_hint;
            after_dot = t.is(b'.');
            if t.is(b'(') {
                depth += 1;
                in_hint = false;
            } else if t.is(b')') && depth > 0 {
                depth -= 1;
            } else if t.is(b')') || t.is(b';') {
                found.end = at;
                break;
            } else if t.is(b',') && depth == 0 && in_list {
                found.items.push(item..at);
                item = at + 1;
            } else if word {
                if in_list && self.ends_list(t) {
                    found.items.push(item..at);
                    found.list_end = at;
                    in_list = false;
                }
                if self.ends_select(at) {
                    found.end = at;
                    break;
                }
                if !in_list && self.begins_windows(at) {
                    found.window.get_or_insert(at);
                } else if !in_list
                    && let Some(place) = found.place(|word| t.is_word(self.sql(), word))
                {
                    place.get_or_insert(at);
                }
            }
        }
        if in_list {
            found.items.push(item..found.end);
            found.list_end = found.end;
        }
        Ok(found)
    }

    /// FORCE INDEX and its like. FOR ORDER BY behind it is no clause of the select.
    pub(crate) fn begins_index_hint(&self, at: usize) -> bool {
        let is = |at: usize, words: &[&str]| {
            let token = self.tokens.get(at);
            token.is_some_and(|t| words.iter().any(|word| t.is_word(self.sql(), word)))
        };
        is(at, &["use", "force", "ignore"]) && is(at + 1, &["index", "key"])
    }

    /// `WINDOW name AS (`: elsewhere the word may be a name.
    fn begins_windows(&self, at: usize) -> bool {
        let is_word = |at: usize, word: &str| {
            let token = self.tokens.get(at);
            token.is_some_and(|t| t.is_word(self.sql(), word))
        };
        let opens = self.tokens.get(at + 3).is_some_and(|t| t.is(b'('));
        is_word(at, "window") && is_word(at + 2, "as") && opens
    }

    /// Skips what stands between SELECT and the list, from the token `at`. Returns the first token
    /// of the list, and where DISTINCT stands.
    fn modifiers(&self, mut at: usize) -> (usize, Option<usize>) {
        const MODIFIERS: [&str; 10] = [
            "all",
            "distinct",
            "distinctrow",
            "high_priority",
            "straight_join",
            "sql_small_result",
            "sql_big_result",
            "sql_buffer_result",
            "sql_no_cache",
            "sql_calc_found_rows",
        ];
        let sql = self.sql();
        let mut distinct = None;
        while let Some(t) = self.tokens.get(at) {
            let modifier = t.kind == TokenKind::Word && MODIFIERS.iter().any(|m| t.is_word(sql, m));
            if !modifier && t.kind != TokenKind::Hint {
                break;
            }
            if t.is_word(sql, "distinct") || t.is_word(sql, "distinctrow") {
                distinct = Some(at);
            }
            at += 1;
        }
        (at, distinct)
    }

    /// Whether the select list ends before this word.
    fn ends_list(&self, token: &Token) -> bool {
        const WORDS: [&str; 8] = [
            "from", "where", "group", "having", "order", "limit", "union", "into",
        ];
        WORDS.iter().any(|w| token.is_word(self.sql(), w))
    }

    /// Whether the select ends before this token: another one follows, or a clause of the INSERT
    /// around it.
    fn ends_select(&self, at: usize) -> bool {
        let is = |at: usize, word: &str| {
            let token = self.tokens.get(at);
            token.is_some_and(|t| t.is_word(self.sql(), word))
        };
        let mut others = ["union", "intersect", "except"].iter();
        others.any(|word| is(at, word)) || is(at, "on") && is(at + 1, "duplicate")
    }

    /// The token ranges of the keys of `ORDER BY`.
    pub(crate) fn order_keys(&self, clauses: &Clauses, count: usize) -> Planned<Vec<Range<usize>>> {
        self.keys_behind(clauses, clauses.order, count, "ORDER BY")
    }

    /// The token ranges of the keys of `GROUP BY`.
    pub(crate) fn group_keys(&self, clauses: &Clauses, count: usize) -> Planned<Vec<Range<usize>>> {
        self.keys_behind(clauses, clauses.group, count, "GROUP BY")
    }

    fn keys_behind(
        &self,
        clauses: &Clauses,
        at: Option<usize>,
        count: usize,
        what: &'static str,
    ) -> Planned<Vec<Range<usize>>> {
        let Some(at) = at else {
            return Ok(Vec::new());
        };
        let keys = self.split_commas(at + 2..clauses.end_of(at));
        if keys.len() == count {
            Ok(keys)
        } else {
            NotUnderstood::Clause(what).refuse()
        }
    }
}

impl Clauses {
    /// The place of the clause that a word begins.
    fn place(&mut self, is: impl Fn(&str) -> bool) -> Option<&mut Option<usize>> {
        match () {
            () if is("where") => Some(&mut self.filter),
            () if is("group") => Some(&mut self.group),
            () if is("having") => Some(&mut self.having),
            () if is("order") => Some(&mut self.order),
            () if is("limit") => Some(&mut self.limit),
            () if is("for") || is("lock") => Some(&mut self.lock),
            () => None,
        }
    }

    /// One past the clause that begins at this token.
    pub(crate) fn end_of(&self, at: usize) -> usize {
        [
            self.filter,
            self.group,
            self.having,
            self.window,
            self.order,
            self.limit,
            self.lock,
            Some(self.end),
        ]
        .into_iter()
        .flatten()
        .filter(|&i| i > at)
        .min()
        .unwrap_or(self.end)
    }

    /// The tokens behind a clause's word.
    pub(crate) fn behind(&self, at: Option<usize>) -> Range<usize> {
        at.map_or(0..0, |at| at + 1..self.end_of(at))
    }
}
