//! Preparations: at the server, of the physical text, or here, of what runs as text.

use std::sync::Arc;

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{Action, Described, LiteralKind, Piece, ResultItem, errors};
use onionskin_value::Family;
use onionskin_wire::messages::{
    ColumnDefault, ColumnDefinition, ComStmtPrepareOk, Command, EofPacket,
};
use onionskin_wire::{Capabilities, ColumnFlags, ColumnType, StatusFlags, Step, WireError};

use super::execute::text_at_server;
use super::relayed::Relayed;
use super::{OWN_IDS, Statement};
use crate::bind::{Values, check_pieces, prepared_text};
use crate::by_name::cannot_be_prepared;
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::open;
use crate::session::{Session, in_logical_terms};

impl Session {
    /// Prepares the statement of the client's command.
    pub(crate) fn prepare_text(&mut self) -> Outcome<()> {
        let mut sql = self
            .client
            .last_payload()
            .get(1..)
            .unwrap_or_default()
            .to_vec();
        self.current.begin();
        let mode = self.space.settings.lex;
        if self.template.read_unfolded(&sql, mode).is_err() || !self.reads_names() {
            if self.leaves_out_nul() {
                return self.prepare_text();
            }
            return Err(Failure::refused(
                &errors::CHARACTER_SET,
                "a prepared statement",
            ));
        }
        // a stored program has semicolons of its own; MariaDB prepares it
        if self.template.multiple && !onionskin_plan::reads_program(&sql, mode) {
            return Err(self.must_be_one(&sql));
        }
        let mut keyed = self.plan(&sql)?;
        while let Action::Refuse(refusal) = &keyed.plan.action
            && !refusal.is(&errors::EXECUTABLE_COMMENT)
            && let Some(other) = self.in_other_words(&sql, refusal)
            && self.template.read_unfolded(&other, mode).is_ok()
        {
            sql = other;
            keyed = self.plan(&sql)?;
        }
        let (mut attempts, asked) = (0, self.server.asked());
        loop {
            let done = self.prepare_planned(&sql, &keyed);
            match done {
                Ok(()) => {
                    // MariaDB keeps its list over statements that open no table
                    let opens = self.state.family == Family::MySql || !keyed.plan.names.is_empty();
                    if opens && !keyed.plan.facts.question.asks() {
                        let server_knows = self.server.asked() != asked;
                        self.diagnostics.prepared(server_knows);
                    }
                    return Ok(());
                }
                Err(ref failure) if attempts == 0 && self.may_run_again(failure, &keyed) => {
                    attempts += 1;
                    self.server.settle()?;
                    if !self.looks_different(&keyed, &done)? {
                        // what is left is of the statement before
                        self.diagnostics.clear();
                        return done;
                    }
                    keyed = self.make_plan(&sql, true)?;
                }
                done => return done.map_err(|failure| in_logical_terms(failure, &keyed)),
            }
        }
    }

    fn prepare_planned(&mut self, sql: &[u8], keyed: &Arc<KeyedPlan>) -> Outcome<()> {
        let params = self
            .template
            .literals
            .iter()
            .filter(|l| l.kind == LiteralKind::Parameter)
            .count();
        if self.functions.opens() {
            self.must_open_here(&keyed.plan.action)?;
        }
        let whole;
        let text = match &keyed.plan.action {
            Action::Relay if self.functions.prepares() => {
                self.check_temporary(keyed)?;
                whole = vec![Piece::Sql(sql.to_vec())];
                Some(&whole)
            }
            Action::Relay => {
                self.check_temporary(keyed)?;
                let id = self.relay_preparation(keyed)?;
                let is_observed = self.shared.config.shapes.is_some();
                let relayed = Relayed::new(sql, keyed, params, self.setting(), is_observed);
                self.statements.relayed.insert(id, relayed);
                self.statements.last = Some(id);
                return Ok(());
            }
            Action::Refuse(refusal) => return Err(refusal.clone().into()),
            Action::ByName(_) => return Err(cannot_be_prepared()),
            Action::ScratchWrite(write) if write.loads() => return Err(cannot_be_prepared()),
            Action::Show { .. } if params > 0 => {
                return Err(Failure::refused(
                    &errors::STATEMENT,
                    "a prepared SHOW with parameters",
                ));
            }
            action => text_at_server(action),
        };
        let setting = self.setting();
        let mut statement = Statement::new(sql.to_vec(), &self.template, keyed, params, setting);
        let Some(text) = text else {
            self.statements.has_room(sql.len())?;
            let shown = match &keyed.plan.action {
                Action::Scratch(scratch) => self.scratch_definitions(scratch, sql)?,
                Action::Show { text, .. } => {
                    let (id, _, definitions) = self.prepare_at_server(&statement, text, false)?;
                    self.close_at_server(id)?;
                    definitions
                }
                _ => Vec::new(),
            };
            self.statements.next_own = self.statements.next_own.wrapping_add(1) & !OWN_IDS;
            let id = OWN_IDS | self.statements.next_own;
            self.write_prepared(id, params, &shown)?;
            self.statements.open.insert(id, statement);
            self.statements.last = Some(id);
            return Ok(());
        };
        let (id, count, definitions) = self.prepare_at_server(&statement, text, false)?;
        statement.server_id = Some(id);
        statement.server_params = count;
        let shown = match &keyed.plan.action {
            // of RETURNING, servers tell with the rows
            Action::Server { .. } if definitions.is_empty() => definitions,
            Action::Server {
                result: Some(items),
                ..
            } => {
                // servers prepare without a temporary table
                let natural = |item: &ResultItem| {
                    let mut item = item.clone();
                    match &mut item.described {
                        described if item.computed => *described = Described::AsSent,
                        Described::Column { sorted, .. } => *sorted = false,
                        _ => {}
                    }
                    item
                };
                let items: Vec<ResultItem> = items.iter().map(natural).collect();
                self.checked_definitions(id, keyed, &items, &definitions)?
            }
            Action::Finish(finish) => {
                let fetched = self.checked_definitions(id, keyed, &finish.fetch, &definitions)?;
                self.output_definitions(keyed, finish, &fetched, false)?
            }
            _ => definitions,
        };
        self.write_prepared(id, params, &shown)?;
        self.statements.open.insert(id, statement);
        self.statements.last = Some(id);
        Ok(())
    }

    fn checked_definitions(
        &mut self,
        id: u32,
        keyed: &KeyedPlan,
        items: &[ResultItem],
        definitions: &[Vec<u8>],
    ) -> Outcome<Vec<Vec<u8>>> {
        match open::definitions(keyed, items, definitions, &self.state, true) {
            Ok((shown, _)) => Ok(shown),
            Err(failure) => {
                self.close_at_server(id)?;
                Err(failure)
            }
        }
    }

    /// Prepares the physical text. Returns the server's id, its parameters and its columns.
    pub fn prepare_at_server(
        &mut self,
        statement: &Statement,
        text: &[Piece],
        indexed: bool,
    ) -> Outcome<(u32, usize, Vec<Vec<u8>>)> {
        let values = Values {
            sql: &statement.sql,
            literals: &statement.template.literals,
            params: &[],
            long_data: &[],
            from_variables: &[],
        };
        check_pieces(text, &self.state)?;
        // in a transaction that only reads, a statement that writes cannot be prepared
        self.say_next_transaction()?;
        let out = self.server.begin_command();
        out.push(Command::StmtPrepare.to_byte());
        let columns = &statement.keyed.plan.columns;
        prepared_text(text, columns, 1, &values, indexed, out);
        let question = self.server.end_command(Command::StmtPrepare)?;
        self.server.flush()?;
        self.server.begin(question)?;
        let mut ok = None;
        let mut definitions = Vec::new();
        while !self.server.tracker.is_complete() {
            match self.server.step()? {
                Step::Err => return Err(self.server.error()),
                Step::PrepareOk(found) => ok = Some(found),
                Step::ColumnDef => definitions.push(self.server.payload().to_vec()),
                _ => {}
            }
        }
        let ok = ok.ok_or(Failure::Backend(WireError::Malformed(
            "no answer to a preparation",
        )))?;
        self.statements.must_be_new(ok.statement_id)?;
        Ok((ok.statement_id, usize::from(ok.num_params), definitions))
    }

    fn write_prepared(&mut self, id: u32, params: usize, columns: &[Vec<u8>]) -> Outcome<()> {
        let params = self.functions.client_parameters(params);
        let mut columns = columns.to_vec();
        self.functions.opener(&mut columns, self.state.form)?;
        let number = |n: usize| {
            u16::try_from(n)
                .map_err(|_| NotUnderstood::TooMany(u16::MAX.into(), "parameters or columns"))
        };
        let ok = ComStmtPrepareOk {
            statement_id: id,
            num_columns: number(columns.len())?,
            num_params: number(params)?,
            warnings: 0,
        };
        let mut out = Vec::new();
        ok.encode(&mut out);
        self.write(&out)?;
        let with_eof = !self
            .client_capabilities
            .contains(Capabilities::DEPRECATE_EOF);
        let mut eof = Vec::new();
        let status = self.server.status - StatusFlags::SESSION_STATE_CHANGED;
        EofPacket {
            status,
            warnings: 0,
        }
        .encode(&mut eof);
        if params > 0 {
            let mut definition = Vec::new();
            ColumnDefinition {
                catalog: b"def".as_slice().into(),
                schema: b"".as_slice().into(),
                table: b"".as_slice().into(),
                org_table: b"".as_slice().into(),
                name: b"?".as_slice().into(),
                org_name: b"".as_slice().into(),
                extended: self.state.extended(),
                charset: 63,
                length: 0,
                column_type: match self.state.family {
                    Family::MariaDb => ColumnType::NULL,
                    Family::MySql => ColumnType::VAR_STRING,
                },
                flags: ColumnFlags::BINARY,
                decimals: 0,
                default: ColumnDefault::Absent,
            }
            .encode(&mut definition);
            for _ in 0..params {
                self.write(&definition)?;
            }
            if with_eof {
                self.write(&eof)?;
            }
        }
        if !columns.is_empty() {
            for column in &columns {
                self.write(column)?;
            }
            if with_eof {
                self.write(&eof)?;
            }
        }
        Ok(())
    }
}
