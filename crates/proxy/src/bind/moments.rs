//! Dates and times that are parameters beside plain columns.
//!
//! In the binary protocol a date or time has a type of its own. A text of the proxy's cannot say
//! it: a user variable holds a string, and a literal is a constant. MySQL compares such a parameter
//! with a text as moments, and a string with a text as texts; it stores the parameter in a column
//! of texts in a form that no literal gives. MariaDB takes it for what a literal is wherever it is
//! compared with a column by itself. Directly beside a column of dates and times all of them mean
//! the same. Where they may not, the statement is refused.

use std::ops::Range;

use onionskin_plan::lex::{self, Token, TokenKind};
use onionskin_plan::{Literal, LiteralKind, errors};
use onionskin_schema::Column;
use onionskin_value::{Family, Kind};
use onionskin_wire::messages::Param;
use onionskin_wire::{BinaryValue, ColumnType};

use super::{Binder, Values};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::state::State;

/// A date or time that is bound to a parameter.
#[derive(Clone, Copy)]
struct Moment {
    /// Whether it is a TIME.
    is_time: bool,
    /// Whether it was bound as a TIMESTAMP.
    is_timestamp: bool,
    has_fraction: bool,
    /// It has no date. Servers store 0 in a column of numbers then, and a literal is a text.
    is_zero: bool,
}

impl Binder<'_> {
    /// Refuses a bound date or time of which a literal or a variable may be something else.
    pub(super) fn check_moment(&self, index: usize) -> Outcome<()> {
        let number = self.values.param_number(index);
        let param = number.and_then(|number| self.values.params.get(number));
        let Some(moment) = param.and_then(Moment::of) else {
            return Ok(());
        };
        let sql = self.values.sql;
        let tokens = lex::tokens(sql, self.state.lex_mode()).unwrap_or_default();
        let tokens = tokens.as_slice();
        let around = Neighbours { sql, tokens };
        let literal = self.values.literals.get(index);
        let family = self.state.family;
        match literal.and_then(|literal| around.place(literal.start)) {
            Some(at) if moment.stands_alike(&around, at, self.keyed, family) => Ok(()),
            _ => Err(unlike()),
        }
    }
}

/// Which of a statement's dates and times are meant.
pub(crate) enum Moments {
    All,
    /// All, and the statement gives values to rows by their places.
    OfRows,
    /// Those in a part of its text.
    In(Range<usize>),
}

/// Refuses dates and times that are bound to parameters, where literals in their place may be
/// something else.
pub(crate) fn check_moments(
    keyed: &KeyedPlan,
    values: Values,
    state: &State,
    which: Moments,
) -> Outcome<()> {
    if !values.params.iter().any(|p| Moment::of(p).is_some()) {
        return Ok(());
    }
    let sql = values.sql;
    // once for all rows
    let tokens = lex::tokens(sql, state.lex_mode()).unwrap_or_default();
    let tokens = tokens.as_slice();
    let around = Neighbours { sql, tokens };
    let columns = || keyed.plan.columns.iter().flat_map(|c| &c.table.columns);
    let plain = || columns().filter(|c| c.protection.is_none());
    let is_parameter = |l: &&Literal| l.kind == LiteralKind::Parameter;
    let parameters = values.literals.iter().filter(is_parameter);
    for (literal, param) in parameters.zip(values.params) {
        let Some(moment) = Moment::of(param) else {
            continue;
        };
        if let Moments::In(part) = &which
            && !part.contains(&literal.start)
        {
            continue;
        }
        let Some(at) = around.place(literal.start) else {
            return Err(unlike());
        };
        let is_stored = || {
            matches!(which, Moments::OfRows)
                && around.is_value_of_row(at)
                && plain().all(|column| moment.is_stored_alike(column))
        };
        if !moment.stands_alike(&around, at, keyed, state.family) && !is_stored() {
            return Err(unlike());
        }
    }
    Ok(())
}

fn unlike() -> Failure {
    let about = "a date or time as a parameter that is not compared with, or stored in, a plain \
                 column of that type";
    Failure::refused(&errors::VALUE, about)
}

impl Moment {
    fn of(param: &Param) -> Option<Moment> {
        let (is_time, has_fraction, is_zero) = match param.value {
            BinaryValue::DateTime(d) => (false, d.microsecond > 0, (d.month, d.day) == (0, 0)),
            BinaryValue::Time(t) => (true, t.microseconds > 0, false),
            _ => return None,
        };
        Some(Moment {
            is_time,
            is_timestamp: param.ty.kind == ColumnType::TIMESTAMP,
            has_fraction,
            is_zero,
        })
    }

    /// Whether it stands beside a column with which a literal means the same.
    fn stands_alike(
        self,
        around: &Neighbours<'_, '_>,
        at: usize,
        keyed: &KeyedPlan,
        family: Family,
    ) -> bool {
        let beside = around.column_beside(at);
        beside.is_some_and(|beside| match family {
            // a TIMESTAMP among others is converted at another time
            Family::MariaDb if !self.is_zero => !(beside.in_list && self.is_timestamp),
            _ => all_columns(keyed, beside.column, |column| self.is_of(column)),
        })
    }

    /// Whether a column holds such values.
    fn is_of(self, column: &Column) -> bool {
        column.sql_type.as_ref().is_some_and(|ty| match ty.kind {
            Kind::Date | Kind::DateTime { .. } | Kind::Timestamp { .. } => !self.is_time,
            Kind::Time { .. } => self.is_time,
            _ => false,
        })
    }

    /// Whether a column stores it as it stores the literal.
    fn is_stored_alike(self, column: &Column) -> bool {
        column.sql_type.as_ref().is_some_and(|ty| match ty.kind {
            // of a TIME it is the present year
            Kind::Year => !self.is_time,
            _ if ty.is_temporal() || ty.is_numeric() => true,
            _ => !self.has_fraction,
        })
    }
}

/// Whether there are columns of this name, and all are such.
fn all_columns(keyed: &KeyedPlan, name: &[u8], fits: impl Fn(&Column) -> bool) -> bool {
    let columns = keyed.plan.columns.iter().flat_map(|c| &c.table.columns);
    let mut named = columns.filter(|c| c.name.as_bytes().eq_ignore_ascii_case(name));
    let mut is_any = false;
    named.all(|column| {
        is_any = true;
        fits(column)
    }) && is_any
}

/// With what a literal is compared, or what is set to it.
struct Beside<'a> {
    column: &'a [u8],
    /// By `IN (…)`.
    in_list: bool,
}

/// A statement's tokens around a literal.
struct Neighbours<'a, 't> {
    sql: &'a [u8],
    tokens: &'t [Token],
}

impl<'a> Neighbours<'a, '_> {
    /// Which token begins there.
    fn place(&self, start: usize) -> Option<usize> {
        self.tokens.binary_search_by_key(&start, |t| t.start).ok()
    }

    /// The column with which the literal is compared, or which is set to it:
    /// `column = ?`, `? = column`, `column BETWEEN ? AND ?`, `column IN (?, ?)`.
    fn column_beside(&self, at: usize) -> Option<Beside<'a>> {
        let alone = self
            .behind_operator(at)
            .or_else(|| self.before_operator(at))
            .or_else(|| self.in_between(at));
        let of = |column, in_list| Beside { column, in_list };
        match alone {
            Some(column) => Some(of(column, false)),
            None => self.in_list(at).map(|column| of(column, true)),
        }
    }

    fn is_value_of_row(&self, at: usize) -> bool {
        let is_end = |i: usize| b",)".iter().any(|&sign| self.is_sign(i, sign));
        let is_begin = |i: usize| b",(".iter().any(|&sign| self.is_sign(i, sign));
        if !is_end(at + 1) || !at.checked_sub(1).is_some_and(is_begin) {
            return false;
        }
        let mut depth = 0usize;
        let open = (0..at).rev().find(|&i| {
            if self.is_sign(i, b')') {
                depth += 1;
            } else if self.is_sign(i, b'(') {
                match depth {
                    0 => return true,
                    _ => depth -= 1,
                }
            }
            false
        });
        // not the arguments of a function
        open.and_then(|i| i.checked_sub(1)).is_some_and(|before| {
            self.is_sign(before, b',')
                || ["VALUES", "VALUE"]
                    .iter()
                    .any(|word| self.is_word(before, word))
        })
    }

    fn behind_operator(&self, at: usize) -> Option<&'a [u8]> {
        let is_operator = |i: &usize| self.is_operator(*i);
        let first = (0..at).rev().take_while(is_operator).last()?;
        self.ends_term(at + 1).then(|| self.name_before(first))?
    }

    fn before_operator(&self, at: usize) -> Option<&'a [u8]> {
        let is_operator = |i: &usize| self.is_operator(*i);
        let mut last = (at + 1..).take_while(is_operator).last()? + 1;
        while self.name(last).is_some()
            && self.is_sign(last + 1, b'.')
            && self.name(last + 2).is_some()
        {
            last += 2;
        }
        let name = self.name(last)?;
        (self.begins_term(at) && self.ends_term(last + 1)).then_some(name)
    }

    fn in_between(&self, at: usize) -> Option<&'a [u8]> {
        let before = at.checked_sub(1)?;
        if self.is_word(before, "BETWEEN") {
            return self
                .is_word(at + 1, "AND")
                .then(|| self.name_before(self.without_not(before)))?;
        }
        let between = at.checked_sub(3)?;
        let is_second = self.is_word(before, "AND")
            && self.is_literal(at - 2)
            && self.is_word(between, "BETWEEN");
        (is_second && self.ends_term(at + 1))
            .then(|| self.name_before(self.without_not(between)))?
    }

    fn in_list(&self, at: usize) -> Option<&'a [u8]> {
        if !self.is_sign(at + 1, b',') && !self.is_sign(at + 1, b')') {
            return None;
        }
        let is_item = |i: &usize| self.is_literal(*i) || self.is_sign(*i, b',');
        let first = (0..=at).rev().take_while(is_item).last()?;
        let open = first.checked_sub(1).filter(|i| self.is_sign(*i, b'('))?;
        let word = open.checked_sub(1).filter(|i| self.is_word(*i, "IN"))?;
        self.name_before(self.without_not(word))
    }

    /// The column's name that ends before a token, `column` or `table.column`, if nothing else
    /// belongs to it.
    fn name_before(&self, at: usize) -> Option<&'a [u8]> {
        let last = at.checked_sub(1)?;
        let name = self.name(last)?;
        let mut first = last;
        while first >= 2 && self.is_sign(first - 1, b'.') && self.name(first - 2).is_some() {
            first -= 2;
        }
        self.begins_term(first).then_some(name)
    }

    /// Whether a term begins at a token.
    fn begins_term(&self, at: usize) -> bool {
        let words = ["WHERE", "AND", "OR", "NOT", "SET", "ON", "HAVING"];
        at.checked_sub(1).is_some_and(|before| {
            b"(,".iter().any(|&sign| self.is_sign(before, sign))
                || words.iter().any(|word| self.is_word(before, word))
        })
    }

    /// Whether a term ends before a token.
    fn ends_term(&self, at: usize) -> bool {
        let words = ["AND", "OR", "WHERE", "ORDER", "LIMIT"];
        at >= self.tokens.len()
            || b"),;".iter().any(|&sign| self.is_sign(at, sign))
            || words.iter().any(|word| self.is_word(at, word))
    }

    fn without_not(&self, at: usize) -> usize {
        match at.checked_sub(1) {
            Some(before) if self.is_word(before, "NOT") => before,
            _ => at,
        }
    }

    fn name(&self, at: usize) -> Option<&'a [u8]> {
        let token = self.tokens.get(at)?;
        let text = &self.sql[token.start..token.end];
        match token.kind {
            TokenKind::Word => Some(text),
            // a quote in a name is doubled, and no column is found by that
            TokenKind::Quoted => text.get(1..text.len().saturating_sub(1)),
            _ => None,
        }
    }

    fn is_word(&self, at: usize, word: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| {
            token.kind == TokenKind::Word
                && self.sql[token.start..token.end].eq_ignore_ascii_case(word.as_bytes())
        })
    }

    fn is_sign(&self, at: usize, sign: u8) -> bool {
        let token = self.tokens.get(at);
        token.is_some_and(|token| token.kind == TokenKind::Punct(sign))
    }

    fn is_operator(&self, at: usize) -> bool {
        b"=<>!".iter().any(|&sign| self.is_sign(at, sign))
    }

    fn is_literal(&self, at: usize) -> bool {
        let token = self.tokens.get(at);
        token.is_some_and(|token| matches!(token.kind, TokenKind::Literal(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onionskin_plan::LexMode;

    /// The name beside the last parameter.
    fn named(sql: &str) -> Option<String> {
        let start = sql.rfind('?').expect("a parameter");
        let tokens = lex::tokens(sql.as_bytes(), LexMode::default()).expect("tokens");
        let around = Neighbours {
            sql: sql.as_bytes(),
            tokens: &tokens,
        };
        let beside = around.column_beside(around.place(start).expect("its token"));
        beside.map(|beside| String::from_utf8_lossy(beside.column).into_owned())
    }

    #[test]
    fn columns_that_are_compared_or_set() {
        for sql in [
            "UPDATE t SET a = 1, d = ? WHERE id = 1",
            "UPDATE t SET a = ? WHERE `d` <=> ?",
            "UPDATE t SET a = ? WHERE x.t.d >= ? ORDER BY id",
            "UPDATE t SET a = ? WHERE NOT (a = 1 OR d <> ?)",
            "UPDATE t SET a = ? WHERE ? <= t.d AND b = 5",
            "UPDATE t SET a = ? WHERE d BETWEEN ? AND 5",
            "UPDATE t SET a = ? WHERE d NOT BETWEEN '1' AND ?",
            "UPDATE t SET a = ? WHERE d IN (?, 1, ?)",
            "UPDATE t SET a = ? WHERE d NOT IN (?) AND a = 1",
        ] {
            assert_eq!(named(sql).as_deref(), Some("d"), "{sql}");
        }
    }

    #[test]
    fn values_of_rows() {
        let last = |sql: &str| {
            let start = sql.rfind('?').expect("a parameter");
            let tokens = lex::tokens(sql.as_bytes(), LexMode::default()).expect("tokens");
            let around = Neighbours {
                sql: sql.as_bytes(),
                tokens: &tokens,
            };
            around.is_value_of_row(around.place(start).expect("its token"))
        };
        assert!(last("INSERT INTO t VALUES (UPPER(?), ?)"));
        assert!(last("INSERT INTO t (a, b) VALUES (1, 2), (?, 1)"));
        assert!(!last("INSERT INTO t (a, b) VALUES (1, CONCAT(?, 'a'))"));
        assert!(!last("INSERT INTO t (a, b) VALUES (1, ? + 1)"));
        assert!(!last("INSERT INTO t (a, b) SELECT 1, ?"));
    }

    #[test]
    fn parts_of_expressions_stand_beside_no_column() {
        for sql in [
            "UPDATE t SET a = ? + 1",
            "UPDATE t SET a = d = ?",
            "UPDATE t SET a = 1 WHERE a + d = ?",
            "UPDATE t SET a = 1 WHERE BINARY d = ?",
            "UPDATE t SET a = 1 WHERE d = ? = 1",
            "UPDATE t SET a = 1 WHERE d = ? IS NULL",
            "UPDATE t SET a = 1 WHERE d = ? COLLATE utf8mb4_bin",
            "UPDATE t SET a = 1 WHERE DATE(d) = ?",
            "UPDATE t SET a = 1 WHERE d = - ?",
            "UPDATE t SET a = 1 WHERE d LIKE ?",
            "UPDATE t SET a = 1 WHERE a + d BETWEEN ? AND 1",
            "UPDATE t SET a = 1 WHERE (a, d) IN ((1, ?))",
            "UPDATE t SET a = 1 WHERE COALESCE(d, ?) = 1",
            "UPDATE t SET a = 1 WHERE ? = d + 1",
            "UPDATE t SET a = 1 WHERE ? = DATE(d)",
            "UPDATE t SET a = 1 WHERE b + ? = d",
            "UPDATE t SET a = 1 WHERE b = ? = d",
            "INSERT INTO t (d) VALUES (?)",
        ] {
            assert_eq!(named(sql), None, "{sql}");
        }
    }
}
