//! Binding a text's values, and what follows where one of them is wrong.

use onionskin_plan::errors;
use onionskin_value::{Family, Warning};
use onionskin_wire::messages::Command;

use super::{Planned, Session};
use crate::bind::{Binder, Values, is_early};
use crate::catalog::Prepared;
use crate::error::{Failure, Outcome};
use crate::exchange::{Done, Question};

impl Session {
    /// Binds and sends a text; `indexed` says that full-text indexes are used.
    pub fn send_text(
        &mut self,
        planned: &Planned,
        text: &[onionskin_plan::Piece],
        indexed: bool,
    ) -> Outcome<Question> {
        let rows = planned.template.rows.map_or(1, |r| r.count);
        let mut binder = Binder::new(
            &planned.prepared,
            &self.state,
            planned.values(),
            &mut self.scratch,
        );
        binder.ignore = planned.is_ignore();
        binder.lenient_nulls = planned.is_lenient();
        binder.indexed = indexed;
        let out = self.server.begin_command();
        out.push(Command::Query.to_byte());
        if let Err(failure) = binder.text(text, rows, out) {
            self.server.connection.cancel_payload();
            return Err(failure);
        }
        self.diagnostics.warnings = binder.warnings;
        self.diagnostics.each_row = planned.prepared.plan.probe.is_some();
        if self.state.family == Family::MySql {
            self.diagnostics.surplus = planned.prepared.plan.surplus_values;
        }
        let flags = (planned.is_ignore(), planned.is_lenient());
        let prepared = &planned.prepared;
        if let Err(failure) = self.warnings_of_rows(prepared, planned.values(), rows, flags) {
            self.server.connection.cancel_payload();
            return Err(failure);
        }
        let question = self.server.end_command(Command::Query)?;
        self.server.flush()?;
        Ok(question)
    }

    /// A value is wrong. That is no error where the server never looks at it: the new values of
    /// an `UPDATE` that finds no row, and of an `INSERT` that meets none. `flags` are whether
    /// errors are ignored, and whether NULLs are taken leniently; `of_text` is what the server says of the words of a text.
    pub fn not_looked_at(
        &mut self,
        prepared: &Prepared,
        values: Values,
        rows: usize,
        flags: (bool, bool),
        of_text: Vec<Warning>,
        error: onionskin_value::ValueError,
    ) -> Outcome<()> {
        if is_early(&error, self.state.family) {
            return Err(Failure::Value(error));
        }
        let plan = &prepared.plan;
        let Some(text) = plan.probe.as_ref().or(plan.insert_only.as_ref()) else {
            return Err(Failure::Value(error));
        };
        let mut sql = Vec::new();
        let mut binder = Binder::new(prepared, &self.state, values, &mut self.scratch);
        (binder.ignore, binder.lenient_nulls) = flags;
        binder.text(text, rows, &mut sql)?;
        let warnings = binder.warnings;
        self.diagnostics.clear();
        if plan.probe.is_some() {
            if !self.server.rows(&sql)?.is_empty() {
                return Err(Failure::Value(error));
            }
            if self.state.family == Family::MariaDb {
                self.warnings_of_condition()?;
            }
            if self.state.family == Family::MariaDb && contains(values.sql, b"default") {
                // of a column without one, which is an error also where no row is found
                let about = "DEFAULT beside a value that does not fit";
                return Err(Failure::refused(&errors::VALUE, about));
            }
            let info = b"Rows matched: 0  Changed: 0  Warnings: 0".to_vec();
            return self.write_done(&Done {
                info,
                ..Done::default()
            });
        }
        let question = self.server.put_query(&sql)?;
        self.server.flush()?;
        self.diagnostics.warnings = of_text;
        self.diagnostics.warnings.extend(warnings);
        match self.relay_answer(question, &[]) {
            // a duplicate: the server would look at the value now
            Err(Failure::Server { code: 1062, .. }) => Err(Failure::Value(error)),
            done => done,
        }
    }

    /// Tells the warnings of new values, of which a row that is met takes notice, from those of the rows of an `INSERT`.
    pub fn warnings_of_rows(
        &mut self,
        prepared: &Prepared,
        values: Values,
        rows: usize,
        flags: (bool, bool),
    ) -> Outcome<()> {
        let Some(text) = &prepared.plan.insert_only else {
            return Ok(());
        };
        let all = self.diagnostics.warnings.len();
        let mut binder = Binder::new(prepared, &self.state, values, &mut self.scratch);
        (binder.ignore, binder.lenient_nulls) = flags;
        binder.text(text, rows, &mut Vec::new())?;
        let of_rows = binder.warnings.len();
        if of_rows == all {
            return Ok(());
        }
        let of_rows = of_rows.min(all);
        let (_, several) = flags;
        if several || self.state.found_rows {
            // how many rows are met is not told
            let about = "a value behind ON DUPLICATE KEY UPDATE that does not fit";
            return Err(Failure::refused(&errors::VALUE, about));
        }
        self.diagnostics.if_met = self.diagnostics.warnings.split_off(of_rows);
        Ok(())
    }
}

/// See [`Planned::is_lenient`]; `text` is a statement or its shape.
pub(crate) fn is_lenient(text: &[u8], rows: Option<usize>) -> bool {
    let begins = |word: &[u8]| {
        text.get(..word.len())
            .is_some_and(|w| w.eq_ignore_ascii_case(word))
    };
    if !begins(b"insert") && !begins(b"replace") {
        return true;
    }
    match rows {
        Some(count) => count > 1,
        // rows of different shape are not folded, nor are a prepared statement's
        None => has_several_rows(text),
    }
}

/// Whether a shape has a list of rows, `), (` outside of all parentheses.
fn has_several_rows(key: &[u8]) -> bool {
    let (mut depth, mut quoted, mut behind_row) = (0usize, false, false);
    for (at, &byte) in key.iter().enumerate() {
        match byte {
            b'`' => quoted = !quoted,
            _ if quoted => {}
            b'(' => depth += 1,
            b')' => {
                depth = depth.saturating_sub(1);
                let next = |from: usize| {
                    let rest = key.get(from..).unwrap_or_default();
                    let blanks = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
                    (from + blanks, rest.get(blanks).copied())
                };
                let (comma, sign) = next(at + 1);
                behind_row |= depth == 0 && sign == Some(b',') && next(comma + 1).1 == Some(b'(');
            }
            _ => {}
        }
    }
    behind_row
}

/// Whether a statement loads a file. From the client's, rows that do not fit are left out with a warning.
pub(super) fn loads_file(key: &[u8]) -> bool {
    key.get(..5)
        .is_some_and(|word| word.eq_ignore_ascii_case(b"load "))
}

/// See [`Planned::is_ignore`].
pub(crate) fn is_ignore(text: &[u8]) -> bool {
    text.split(|&b| b == b' ')
        .take(4)
        .any(|word| word.eq_ignore_ascii_case(b"ignore"))
}

/// Whether a statement that has sent rows has also changed some: it must not be run again when its rows turn out to be of another table
/// than was thought.
pub(crate) fn runs_once(text: &[u8]) -> bool {
    !begins(text, b"select") && (is_call(text) || contains(text, b"returning"))
}

/// Whether a statement calls a program, or may do so where its first word does not show what it is. What a program has done stays done if it
/// fails: such a statement must not be run again even if it has failed.
pub(crate) fn is_call(text: &[u8]) -> bool {
    let hides = |first: &u8| !first.is_ascii_alphabetic();
    let is_hidden = text.trim_ascii_start().first().is_some_and(hides) || begins(text, b"set");
    begins(text, b"call") || (is_hidden && contains(text, b"call"))
}

fn begins(text: &[u8], word: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    text.get(..word.len())
        .is_some_and(|w| w.eq_ignore_ascii_case(word))
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    let mut places = text.windows(word.len());
    places.any(|w| w.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_outside_of_parentheses() {
        for (key, several) in [
            ("INSERT INTO t VALUES ( ? )", false),
            ("INSERT INTO t (a, b) VALUES (LOWER(?), ?)", false),
            ("INSERT INTO t VALUES (?, (?), (?))", false),
            ("INSERT INTO t VALUES (?), (LOWER(?))", true),
            ("INSERT INTO t VALUES(?)\n,(?)", true),
            ("INSERT INTO `a),(b` VALUES (?)", false),
            (
                "INSERT INTO t VALUES (?) ON DUPLICATE KEY UPDATE a = (?), b = (?)",
                false,
            ),
        ] {
            assert_eq!(has_several_rows(key.as_bytes()), several, "{key}");
        }
    }
}
