//! Executions: planned anew where the schema has changed, bound into the server's statement, sent.

use std::sync::Arc;

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{Action, Piece, Template, Text, errors};
use onionskin_value::Family;
use onionskin_wire::binary_value::{DateTime, Time};
use onionskin_wire::messages::{ComStmtExecute, CursorType, ExecuteWriter, Param};
use onionskin_wire::{BinaryValue, ColumnType};

use super::{Indexed, Statement};
use crate::bind::Values;
use crate::by_name::cannot_be_prepared;
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome, too_long};
use crate::exchange::Question;
use crate::finish::lacks_index;
use crate::server_errors::MALFORMED_PACKET;
use crate::session::{Execution, Protocol, Session, Way};

impl Session {
    pub fn execute(&mut self) -> Outcome<()> {
        self.current.begin();
        let mut payload = self.client.last_payload().to_vec();
        let id = self.statements.id_in(&mut payload, self.state.family)?;
        self.keep_found();
        self.statements.close_cursor(id);
        let asks_for_cursor = CursorType::is_asked_for(&payload);
        if self.shared.config.functions.is_some() {
            self.compute_execution(id, &mut payload)?;
        }
        match asks_for_cursor && self.may_hold_rows(id) {
            true => self.with_cursor(id, |session| session.execute_as(id, &payload)),
            false => self.execute_as(id, &payload),
        }
    }

    fn execute_as(&mut self, id: u32, payload: &[u8]) -> Outcome<()> {
        let mut statement = match self.statements.open.remove(&id) {
            Some(statement) => {
                self.begin_planned(&statement.keyed);
                statement
            }
            None => match self.execute_relayed(id, payload)? {
                Some(statement) => statement,
                None => return Ok(()),
            },
        };
        if std::mem::take(&mut statement.too_long) {
            statement.long.iter_mut().for_each(|l| *l = None);
            self.statements.open.insert(id, statement);
            return Err(too_long());
        }
        let done = self.carry_out(&mut statement, payload);
        for long in &mut statement.long {
            *long = None;
        }
        let keyed = Arc::clone(&statement.keyed);
        self.statements.open.insert(id, statement);
        self.diagnostics.shows_tokens |= keyed.warns_of_tokens();
        self.current.is_lost = done.is_err()
            && self.state.family == Family::MySql
            && keyed.plan.facts.values_calls > 0;
        if done.is_ok() {
            self.has_found_by(&keyed.plan.action);
        }
        self.concluded(done, &keyed)
    }

    /// A statement begins that asks nothing about the one before.
    pub(super) fn begin_planned(&mut self, keyed: &KeyedPlan) {
        let facts = &keyed.plan.facts;
        self.leave_last(facts);
        self.current.note(facts);
        self.current.keeps_list = self.server.may_hold_list && self.may_keep_list(facts);
    }

    /// Makes a statement's plan again if the schema has changed since, or if `afresh` asks for it.
    fn replan(&mut self, statement: &mut Statement, afresh: bool) -> Outcome<()> {
        // A preparation at the server may have failed the last time, for want of room for one.
        let is_whole = statement.server_id.is_some() || !runs_at_server(&statement.keyed);
        let keyed = Arc::clone(&statement.keyed);
        if !afresh && !keyed.plan.names.is_empty() && self.ignores_unnoticed(&keyed) {
            self.looks_changed(&keyed)?;
        }
        if !afresh && self.is_of_now(&keyed)? && is_whole {
            return Ok(());
        }
        self.must_be_of_now(statement)?;
        self.must_compute_alike(&statement.setting)?;
        let mode = self.space.settings.lex;
        let mut template = Template::default();
        if template.read_unfolded(&statement.sql, mode).is_err() {
            return Err(NotUnderstood::Words.into());
        }
        std::mem::swap(&mut self.template, &mut template);
        let planned = self.make_plan(&statement.sql, afresh);
        std::mem::swap(&mut self.template, &mut template);
        statement.keyed = planned?;
        let indexed = statement.indexed.take().id();
        for id in statement.server_id.take().into_iter().chain(indexed) {
            self.close_at_server(id)?;
        }
        let keyed = Arc::clone(&statement.keyed);
        let whole;
        let text = match &keyed.plan.action {
            Action::Refuse(refusal) => return Err(refusal.clone().into()),
            Action::ByName(_) => return Err(cannot_be_prepared()),
            Action::Relay => {
                whole = vec![Piece::Sql(statement.sql.clone())];
                &whole
            }
            action => match text_at_server(action) {
                Some(text) => text,
                None => return Ok(()),
            },
        };
        let (id, count, _) = self.prepare_at_server(statement, text, false)?;
        statement.server_id = Some(id);
        statement.server_params = count;
        Ok(())
    }

    /// Carries a prepared statement out, in another way if the first one fails.
    pub(super) fn carry_out(&mut self, statement: &mut Statement, payload: &[u8]) -> Outcome<()> {
        let (mut other, mut afresh) = (None, false);
        let mut attempts = 0;
        let (keyed, done) = loop {
            let done = match &other {
                Some(plan) => self.execute_by(statement, plan, payload),
                None => self.execute_planned(statement, afresh, payload),
            };
            let keyed = other.unwrap_or_else(|| Arc::clone(&statement.keyed));
            let (sql, template) = (&statement.sql, &statement.template);
            match self.another_way(sql, template, &keyed, &done, &mut attempts)? {
                None => break (keyed, done),
                Some(Way::Other(plan)) => other = Some(plan),
                Some(Way::Afresh) => (other, afresh) = (None, true),
            }
        };
        let names = !keyed.plan.names.is_empty();
        self.learn_next_transaction(&keyed.plan.facts, &statement.sql, names, &done);
        done
    }

    /// Executes a statement by its own plan, which is made anew where that is due.
    fn execute_planned(
        &mut self,
        statement: &mut Statement,
        afresh: bool,
        payload: &[u8],
    ) -> Outcome<()> {
        self.replan(statement, afresh)?;
        let keyed = Arc::clone(&statement.keyed);
        self.execute_by(statement, &keyed, payload)
    }

    /// Executes a statement by a plan, which is its own or the engine's.
    fn execute_by(
        &mut self,
        statement: &mut Statement,
        keyed: &Arc<KeyedPlan>,
        payload: &[u8],
    ) -> Outcome<()> {
        if !self.state.is_usual() {
            self.check_variables(&keyed.plan, &statement.sql)?;
        }
        self.compute_as_prepared(&statement.setting);
        let is_relayed = matches!(keyed.plan.action, Action::Relay);
        match statement.server_id {
            None => self.must_be_of_now(statement)?,
            // all of it is the server's
            Some(_) if is_relayed => {}
            Some(_) => self.must_read_alike(statement)?,
        }
        statement.cursor = None;
        let mut types = std::mem::take(&mut statement.types);
        let head = ComStmtExecute::decode(payload, statement.params, &mut types);
        statement.types = types;
        let head = head.map_err(Failure::Client)?;
        let long = &statement.long;
        let is_long = |param: usize| long.get(param).is_some_and(Option::is_some);
        let mut params: Vec<Param> = head
            .params(&statement.types, is_long)
            .collect::<Result<_, _>>()
            .map_err(Failure::Client)?;
        if !is_relayed {
            must_be_bindable(&params)?;
            without_times(&mut params, self.state.family)?;
        }
        let values = Values {
            sql: &statement.sql,
            literals: &statement.template.literals,
            params: &params,
            long_data: &statement.long,
            from_variables: &[],
        };
        if !is_relayed {
            self.must_bind_alike(&statement.setting, &values)?;
        }
        let opener = self.run(&Execution {
            keyed,
            values,
            rows: 1,
            mode: statement.mode,
            protocol: Protocol::Binary {
                statement,
                cursor: head.cursor,
                payload,
            },
        })?;
        statement.cursor = opener;
        Ok(())
    }

    /// Binds and sends an execution of the server's statement.
    pub(crate) fn send_execution(
        &mut self,
        execution: &Execution,
        statement: &Statement,
        cursor: CursorType,
        text: &[Piece],
        indexed: bool,
    ) -> Outcome<Question> {
        let keyed = execution.keyed;
        let at_server = match indexed {
            true => statement.indexed.get().prepared(),
            false => statement.server_id.map(|id| (id, statement.server_params)),
        };
        let Some((id, params)) = at_server else {
            return Err(Failure::refused(&errors::INTERNAL, "a prepared statement"));
        };
        // tier 2 answers at once, whatever cursor was asked for
        let cursor = match keyed.plan.action {
            Action::Finish(_) => CursorType::NO_CURSOR,
            _ => cursor,
        };
        self.say_next_transaction()?;
        let mut binder = execution.binder(&self.state, &mut self.buffers);
        binder.indexed = indexed;
        let out = self.server.begin_command();
        let mut body = Vec::new();
        let mut writer = ExecuteWriter::begin(&mut body, id, cursor, params);
        let bound = binder.params(text, 1, &mut writer, &mut body);
        let bound = bound.and_then(|()| {
            writer
                .finish()
                .map_err(|_| Failure::refused(&errors::INTERNAL, "parameters"))
        });
        if let Err(failure) = bound {
            self.server.connection.cancel_payload();
            return Err(failure);
        }
        out.extend_from_slice(&body);
        self.diagnostics.bind_values(binder.warnings);
        self.diagnostics.each_row = keyed.plan.probe.is_some();
        self.diagnostics.of_several = execution.mode.lenient_nulls;
        if let Err(failure) = self.warnings_of_rows(execution) {
            self.server.connection.cancel_payload();
            return Err(failure);
        }
        let question = self.server.end_execution(params)?;
        self.server.flush()?;
        Ok(question)
    }

    /// Whether full-text indexes can be used. For a prepared statement: whether the server has a
    /// statement that uses them.
    pub(crate) fn prepare_indexed(
        &mut self,
        execution: &Execution,
        text: &[Piece],
    ) -> Outcome<bool> {
        let Protocol::Binary { statement, .. } = execution.protocol else {
            return Ok(true);
        };
        match statement.indexed.get() {
            Indexed::Unknown => {}
            Indexed::Prepared(..) => return Ok(true),
            Indexed::Unusable => return Ok(false),
        }
        match self.prepare_at_server(statement, text, true) {
            Ok((id, count, _)) => {
                statement.indexed.set(Indexed::Prepared(id, count));
                Ok(true)
            }
            Err(Failure::Server { code, .. }) if lacks_index(code) => {
                self.server.settle()?;
                statement.indexed.set(Indexed::Unusable);
                Ok(false)
            }
            Err(failure) => Err(failure),
        }
    }

    /// The server has refused to use full-text indexes.
    pub(crate) fn forget_indexed(&mut self, execution: &Execution) -> Outcome<()> {
        let Protocol::Binary { statement, .. } = execution.protocol else {
            return Ok(());
        };
        match statement.indexed.replace(Indexed::Unusable) {
            Indexed::Prepared(id, _) => self.close_at_server(id),
            _ => Ok(()),
        }
    }
}

/// Whether the server has a statement of its own for it.
fn runs_at_server(keyed: &KeyedPlan) -> bool {
    let action = &keyed.plan.action;
    matches!(action, Action::Relay) || text_at_server(action).is_some()
}

/// The physical text that the server prepares for a statement that is not relayed; `None` for those
/// that run as text.
pub(super) fn text_at_server(action: &Action) -> Option<&Text> {
    match action {
        Action::Server { text, .. } => Some(text),
        Action::Finish(finish) => Some(&finish.text),
        Action::Relay
        | Action::Refuse(_)
        | Action::ByName(_)
        | Action::Update(_)
        | Action::Delete(_)
        | Action::Define(_)
        | Action::Copy(_)
        | Action::Refit(_)
        | Action::Scratch(_)
        | Action::ScratchWrite(_)
        | Action::Compute { .. }
        | Action::Show { .. } => None,
    }
}

/// Takes the time of day out of parameters that are dates. MariaDB does not read it, and to MySQL
/// such a packet is malformed.
fn without_times(params: &mut [Param], family: Family) -> Outcome<()> {
    for param in params.iter_mut().filter(|p| p.ty.kind == ColumnType::DATE) {
        let BinaryValue::DateTime(date) = param.value else {
            continue;
        };
        let alone = DateTime {
            hour: 0,
            minute: 0,
            second: 0,
            microsecond: 0,
            ..date
        };
        if alone != date && family == Family::MySql {
            return Err(Failure::Server {
                code: MALFORMED_PACKET,
                state: *b"HY000",
                message: b"Malformed communication packet.".to_vec(),
            });
        }
        param.value = BinaryValue::DateTime(alone);
    }
    Ok(())
}

/// Refuses a negative time of zero, which servers store in texts and which no literal is, and
/// parameters of types that only results have, such as YEAR. MySQL calls them wrong.
/// MariaDB takes NULL for such a parameter without reading its bytes, and takes these bytes for the
/// next parameter.
fn must_be_bindable(params: &[Param]) -> Outcome<()> {
    let is_minus_zero = |param: &Param| match param.value {
        BinaryValue::Time(t) => {
            let minus_zero = Time {
                negative: true,
                ..Time::default()
            };
            t == minus_zero
        }
        _ => false,
    };
    if params.iter().any(is_minus_zero) {
        let about = "a negative time of zero as a parameter";
        return Err(Failure::refused(&errors::VALUE, about));
    }
    let is_bindable = |param: &Param| {
        matches!(
            param.ty.kind,
            ColumnType::TINY
                | ColumnType::SHORT
                | ColumnType::LONG
                | ColumnType::LONGLONG
                | ColumnType::FLOAT
                | ColumnType::DOUBLE
                | ColumnType::DECIMAL
                | ColumnType::NEWDECIMAL
                | ColumnType::DATE
                | ColumnType::TIME
                | ColumnType::DATETIME
                | ColumnType::TIMESTAMP
                | ColumnType::VARCHAR
                | ColumnType::VAR_STRING
                | ColumnType::STRING
                | ColumnType::TINY_BLOB
                | ColumnType::BLOB
                | ColumnType::MEDIUM_BLOB
                | ColumnType::LONG_BLOB
                | ColumnType::NULL
        )
    };
    match params.iter().all(is_bindable) {
        true => Ok(()),
        false => Err(Failure::refused(
            &errors::VALUE,
            "a parameter of a type that servers do not take",
        )),
    }
}
