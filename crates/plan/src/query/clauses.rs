//! The places of a select's clauses, found among its tokens.

use std::ops::Range;

use crate::errors;
use crate::lex::TokenKind;
use crate::planner::{Planned, Planner, refuse};

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
    pub(crate) order: Option<usize>,
    pub(crate) limit: Option<usize>,
    pub(crate) lock: Option<usize>,
    pub(crate) end: usize,
}

impl Planner<'_> {
    /// Finds the clauses of the select whose first token is `start`.
    pub(crate) fn clauses(&self, start: usize) -> Planned<Clauses> {
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
        let mut at = start + 1;
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
        let list = at;
        let mut found = Clauses {
            items: Vec::new(),
            distinct,
            list,
            list_end: 0,
            filter: None,
            group: None,
            having: None,
            order: None,
            limit: None,
            lock: None,
            end: self.tokens.len(),
        };
        let mut depth = 0usize;
        let mut item = list;
        let mut in_list = true;
        let mut after_dot = false;
        while let Some(t) = self.tokens.get(at) {
            let word = t.kind == TokenKind::Word && !after_dot && depth == 0;
            after_dot = t.is(b'.');
            let close_list = |found: &mut Clauses, item: usize| {
                found.items.push(item..at);
                found.list_end = at;
            };
            if t.is(b'(') {
                depth += 1;
            } else if t.is(b')') {
                if depth == 0 {
                    found.end = at;
                    break;
                }
                depth -= 1;
            } else if t.is(b';') {
                found.end = at;
                break;
            } else if t.is(b',') && depth == 0 && in_list {
                found.items.push(item..at);
                item = at + 1;
            } else if word {
                let is = |w: &str| t.is_word(sql, w);
                if in_list
                    && [
                        "from", "where", "group", "having", "order", "limit", "union", "into",
                    ]
                    .iter()
                    .any(|w| is(w))
                {
                    close_list(&mut found, item);
                    in_list = false;
                }
                if is("union") || is("intersect") || is("except") {
                    found.end = at;
                    break;
                }
                let next = self.tokens.get(at + 1);
                if is("on") && next.is_some_and(|t| t.is_word(sql, "duplicate")) {
                    // of the INSERT around it
                    found.end = at;
                    break;
                }
                let clause = match () {
                    () if in_list => None,
                    () if is("where") => Some(&mut found.filter),
                    () if is("group") => Some(&mut found.group),
                    () if is("having") => Some(&mut found.having),
                    () => None,
                };
                if let Some(place) = clause {
                    place.get_or_insert(at);
                }
                if is("order") {
                    found.order.get_or_insert(at);
                } else if is("limit") {
                    found.limit.get_or_insert(at);
                } else if !in_list && (is("for") || is("lock")) {
                    found.lock.get_or_insert(at);
                }
            }
            at += 1;
        }
        if in_list {
            found.items.push(item..found.end);
            found.list_end = found.end;
        }
        Ok(found)
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
        what: &str,
    ) -> Planned<Vec<Range<usize>>> {
        let Some(at) = at else {
            return Ok(Vec::new());
        };
        let keys = self.split_commas(at + 2..clauses.end_of(at));
        if keys.len() == count {
            Ok(keys)
        } else {
            refuse(&errors::NOT_UNDERSTOOD, what)
        }
    }
}

impl Clauses {
    /// One past the clause that begins at this token.
    pub(crate) fn end_of(&self, at: usize) -> usize {
        [
            self.filter,
            self.group,
            self.having,
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
