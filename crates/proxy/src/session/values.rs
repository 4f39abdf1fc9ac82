//! Binding a text's values, and what follows where one of them is wrong.

use std::sync::Arc;

use onionskin_plan::errors;
use onionskin_schema::{Table, identifier};
use onionskin_value::{Family, Warning};
use onionskin_wire::Step;
use onionskin_wire::messages::Command;

use super::Session;
use super::execution::Execution;
use crate::bind::{PlainParameters, is_early};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::exchange::{Done, Question};
use crate::server_errors::{DUPLICATE, LOCKED_FOR_READING, NO_DEFAULT, READ_ONLY};

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
        execution: &Execution,
        text: &[onionskin_plan::Piece],
        indexed: bool,
    ) -> Outcome<Question> {
        let Execution {
            keyed,
            values,
            rows,
            ..
        } = *execution;
        self.say_next_transaction()?;
        let mut binder = execution.binder(&self.state, &mut self.buffers);
        binder.indexed = indexed;
        let mut text_with_parameters = Vec::new();
        let keeps_parameters = !values.from_variables.is_empty();
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
        self.diagnostics.bind_values(binder.warnings);
        self.diagnostics.each_row = keyed.plan.probe.is_some();
        if self.state.family == Family::MySql {
            self.diagnostics.surplus = keyed.plan.surplus_values;
        }
        if let Err(failure) = self.warnings_of_rows(execution) {
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

    /// Puts a text in which `?` stands for each of these expressions. The server prepares it and
    /// executes it at once.
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
        let told_state = self.server.told_state;
        for question in asked.before {
            self.server.read_ok(question)?;
        }
        self.server.told_state = told_state;
        Ok(asked.question)
    }

    /// A value is wrong. That is no error where the server never looks at it: the new values of
    /// an `UPDATE` that finds no row, and of an `INSERT` that meets none. `of_text` is what the
    /// server says of the words of a text.
    pub fn not_looked_at(
        &mut self,
        execution: &Execution,
        of_text: Vec<Warning>,
        error: onionskin_value::ValueError,
    ) -> Outcome<()> {
        let Execution { keyed, rows, .. } = *execution;
        let plan = &keyed.plan;
        if self.locked_tables && plan.probe.is_none() {
            self.check_lock(plan)?;
        }
        if is_early(&error, self.state.family) {
            return Err(Failure::Value(error));
        }
        let Some(text) = plan.probe.as_ref().or(plan.insert_only.as_ref()) else {
            return Err(Failure::Value(error));
        };
        if plan.facts.returns && plan.probe.is_none() {
            // an INSERT alone would not show the rows
            return Err(of_a_met_row());
        }
        if plan.probe.is_some() && (self.current.reads_only || self.has_next_transaction()) {
            // the statement that changes rows is not sent
            if let Some(failure) = self.read_only_error(plan)? {
                return Err(failure);
            }
            self.say_next_transaction()?;
        }
        let mut sql = Vec::new();
        let mut binder = execution.binder(&self.state, &mut self.buffers);
        binder.checks_moments = plan.probe.is_some();
        binder.text(text, rows, &mut sql)?;
        let warnings = binder.warnings;
        self.diagnostics.clear();
        if plan.probe.is_some() {
            if self.locked_tables {
                // fails if the table is locked for reading only
                sql.extend_from_slice(b" FOR UPDATE");
            }
            let found = self.server.rows_and_count(&sql);
            let (rows, warned) = found.map_err(Failure::before_a_change)?;
            if !rows.is_empty() {
                return Err(Failure::Value(error));
            }
            if warned > 0 {
                // to a statement that changes rows they are errors, at times without any row
                let about = "a condition with values that the server truncates, beside a value that does not fit";
                return Err(Failure::refused(&errors::VALUE, about));
            }
            if self.state.family == Family::MariaDb && plan.facts.defaults > 0 {
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
            Err(Failure::Server {
                code: DUPLICATE, ..
            }) => Err(Failure::Value(error)),
            // to MariaDB, a column is given if the clause that was left out assigns it
            Err(Failure::Server {
                code: NO_DEFAULT, ..
            }) => Err(of_a_met_row()),
            done => done,
        }
    }

    /// What is said to a statement of which a value is wrong. In a transaction that only reads, the
    /// servers say that first.
    pub fn or_read_only(&mut self, failure: Failure, keyed: &KeyedPlan) -> Outcome<Failure> {
        if !matches!(failure, Failure::Value(_)) || !keyed.plan.facts.writes() {
            return Ok(failure);
        }
        Ok(self.read_only_error(&keyed.plan)?.unwrap_or(failure))
    }

    /// The server's error for writing to the plan's tables in a transaction that only reads, if
    /// there would be one. The server says so when a statement is prepared. Preparing one does not
    /// begin a transaction, nor is it part of one.
    pub fn read_only_error(&mut self, plan: &onionskin_plan::Plan) -> Outcome<Option<Failure>> {
        match plan.columns.first() {
            Some(used) => self.read_only_error_of(&used.table),
            None => Ok(None),
        }
    }

    /// The error with which the server refuses to change a table, if it does so because the
    /// transaction only reads.
    pub(crate) fn read_only_error_of(&mut self, table: &Table) -> Outcome<Option<Failure>> {
        self.read_only_error_at(&table.database, &table.name)
    }

    /// The same of a table that may be missing.
    pub(super) fn read_only_error_at(
        &mut self,
        database: &str,
        name: &str,
    ) -> Outcome<Option<Failure>> {
        let (database, name) = (identifier(database), identifier(name));
        let mut command = vec![Command::StmtPrepare.to_byte()];
        command.extend_from_slice(format!("DELETE FROM {database}.{name} WHERE FALSE").as_bytes());
        self.server.settle()?;
        self.repeat_next_transaction()?;
        let question = self.server.put_command(&command)?;
        self.server.flush()?;
        self.server.begin(question)?;
        let (mut statement, mut error) = (None, None);
        while !self.server.tracker.is_complete() {
            match self.server.step()? {
                Step::Err => error = Some(self.server.error()),
                Step::PrepareOk(ok) => statement = Some(ok.statement_id),
                _ => {}
            }
        }
        if let Some(id) = statement {
            self.close_at_server(id)?;
        }
        let is_it = |f: &Failure| matches!(f, Failure::Server { code, .. } if *code == READ_ONLY);
        Ok(error.filter(is_it))
    }

    /// Under LOCK TABLES, a table that is locked for reading only is an error before any value is
    /// looked at. A statement that changes nothing asks the server. What else the server says to
    /// that is no answer to the client's statement.
    fn check_lock(&mut self, plan: &onionskin_plan::Plan) -> Outcome<()> {
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
                    code: LOCKED_FOR_READING,
                    ..
                },
            ) => Err(failure),
            Err(failure) if failure.ends_transaction() => Err(failure),
            Err(Failure::Server { .. }) => self.server.settle(),
            Err(failure) => Err(failure),
        }
    }

    /// Tells two kinds of warnings apart: those of the rows of an `INSERT`, and those of new values
    /// for a row that is met, which count only if one is.
    pub fn warnings_of_rows(&mut self, execution: &Execution) -> Outcome<()> {
        let Execution {
            keyed, rows, mode, ..
        } = *execution;
        let Some(text) = &keyed.plan.insert_only else {
            return Ok(());
        };
        let all = self.diagnostics.warnings.len();
        let mut binder = execution.binder(&self.state, &mut self.buffers);
        binder.text(text, rows, &mut Vec::new())?;
        let of_rows = binder.warnings.len();
        if of_rows == all {
            return Ok(());
        }
        let of_rows = of_rows.min(all);
        if mode.lenient_nulls || self.state.found_rows || keyed.plan.facts.returns {
            // how many rows are met is not told
            return Err(of_a_met_row());
        }
        self.diagnostics.if_met = self.diagnostics.warnings.split_off(of_rows);
        Ok(())
    }
}

fn of_a_met_row() -> Failure {
    let about = "a value behind ON DUPLICATE KEY UPDATE that does not fit";
    Failure::refused(&errors::VALUE, about)
}
