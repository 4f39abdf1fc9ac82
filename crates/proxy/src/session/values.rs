//! Binding a text's values, and what follows where one of them is wrong.

use std::sync::Arc;

use onionskin_plan::errors;
use onionskin_schema::identifier;
use onionskin_value::{Family, Warning};
use onionskin_wire::messages::Command;

use super::{Planned, Session};
use crate::bind::{Binder, PlainParameters, Values, is_early};
use crate::catalog::Prepared;
use crate::error::{Failure, Outcome};
use crate::exchange::{Done, Question};

/// What was asked for a text with parameters.
pub(crate) struct WithParameters {
    /// What has to be well before the text is executed.
    before: Vec<Question>,
    question: Question,
}

impl Session {
    /// Binds and sends a text; `indexed` says that full-text indexes are used.
    pub fn send_text(
        &mut self,
        planned: &Planned,
        text: &[onionskin_plan::Piece],
        indexed: bool,
    ) -> Outcome<Question> {
        self.say_next_transaction()?;
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
        let mut text_with_parameters = Vec::new();
        let keeps_parameters = !planned.from_variables.is_empty();
        let out = if keeps_parameters {
            binder.plain_parameters = PlainParameters::Kept(Vec::new());
            &mut text_with_parameters
        } else {
            let out = self.server.begin_command();
            out.push(Command::Query.to_byte());
            out
        };
        if let Err(failure) = binder.text(text, rows, out) {
            self.server.connection.cancel_payload();
            return Err(failure);
        }
        let parameters = binder.take_parameters();
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
        if keeps_parameters {
            let found = self.server.found;
            let asked = self.put_with_parameters(&text_with_parameters, &parameters)?;
            self.server.found = found;
            self.server.flush()?;
            return self.executed(asked);
        }
        let question = self.server.end_command(Command::Query)?;
        self.server.flush()?;
        Ok(question)
    }

    /// Puts a text in which `?` stands for each of these expressions. The server prepares it and executes it at once.
    pub fn put_with_parameters(
        &mut self,
        text: &[u8],
        parameters: &[Vec<u8>],
    ) -> Outcome<WithParameters> {
        // no name of the client's
        const STATEMENT: &str = "`onionskin$execute`";
        if parameters.is_empty() {
            return Ok(WithParameters {
                before: Vec::new(),
                question: self.server.put_query(text)?,
            });
        }
        let mode = self.space.settings.lex;
        if mode.hides_ascii() {
            let about = "a parameter beside a plain column, in this character set";
            return Err(Failure::refused(&errors::VALUE, about));
        }
        let (mut set, mut using) = (Vec::new(), Vec::new());
        for (n, parameter) in parameters.iter().enumerate() {
            using.extend_from_slice(if n > 0 { b", " } else { b"" });
            if parameter.starts_with(b"@") {
                using.extend_from_slice(parameter);
                continue;
            }
            let variable = format!("@`onionskin${n}`");
            set.extend_from_slice(if set.is_empty() { b"SET " } else { b", " });
            set.extend_from_slice(variable.as_bytes());
            set.extend_from_slice(b" = ");
            set.extend_from_slice(parameter);
            using.extend_from_slice(variable.as_bytes());
        }
        let mut prepare = format!("PREPARE {STATEMENT} FROM '").into_bytes();
        for &byte in text {
            if byte == b'\'' || byte == b'\\' && !mode.no_backslash_escapes {
                prepare.push(byte);
            }
            prepare.push(byte);
        }
        prepare.push(b'\'');
        let execute = [format!("EXECUTE {STATEMENT} USING ").as_bytes(), &using].concat();
        let mut before = Vec::with_capacity(2);
        if !set.is_empty() {
            before.push(self.server.put_query(&set)?);
        }
        before.push(self.server.put_query(&prepare)?);
        Ok(WithParameters {
            before,
            question: self.server.put_query(&execute)?,
        })
    }

    /// Waits until a text with parameters is executed. Its answer is that to the question.
    pub fn executed(&mut self, asked: WithParameters) -> Outcome<Question> {
        for question in asked.before {
            self.server.read_ok(question)?;
        }
        Ok(asked.question)
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
        let plan = &prepared.plan;
        if self.locked_tables && plan.probe.is_none() {
            self.check_lock(plan)?;
        }
        if is_early(&error, self.state.family) {
            return Err(Failure::Value(error));
        }
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
            if self.locked_tables {
                // fails if the table is locked for reading only
                sql.extend_from_slice(b" FOR UPDATE");
            }
            if !self.server.rows(&sql)?.is_empty() {
                return Err(Failure::Value(error));
            }
            if self.server.warnings_at_end()? > 0 {
                // to a statement that changes rows they are errors, at times without any row
                let about = "a condition with values that the server truncates, beside a value that does not fit";
                return Err(Failure::refused(&errors::VALUE, about));
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

    /// Under LOCK TABLES, a table that is locked for reading only is an error before any value is looked at. The server is asked by a
    /// statement that changes nothing; what else it says to that is no answer to the client's statement.
    fn check_lock(&mut self, plan: &onionskin_plan::Plan) -> Outcome<()> {
        const READ_LOCKED: u16 = 1099;
        let mut tables = plan.columns.iter().map(|used| &used.table);
        let Some(table) = tables.next() else {
            return Ok(());
        };
        if tables.any(|other| !Arc::ptr_eq(table, other)) {
            return Ok(());
        }
        let (database, name) = (identifier(&table.database), identifier(&table.name));
        let ask = format!("DELETE FROM {database}.{name} WHERE FALSE");
        match self.server.run(ask.as_bytes()) {
            Ok(_) => Ok(()),
            Err(
                failure @ Failure::Server {
                    code: READ_LOCKED, ..
                },
            ) => Err(failure),
            Err(Failure::Server { .. }) => self.server.settle(),
            Err(failure) => Err(failure),
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
