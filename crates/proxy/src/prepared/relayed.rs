//! Prepared statements that are relayed because they touch nothing protected.
//!
//! A migration can put a protected table in the place of one of theirs at any time. Then the server
//! refuses the next execution, or would show physical columns. So the statement is planned and
//! prepared once more, under the id that the client knows. Clients send the types of parameters
//! with the first execution only, so they are remembered.

use std::sync::Arc;

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{Action, Catalog, Known, LexMode, Template};
use onionskin_schema::TableName;
use onionskin_wire::messages::{
    ComStmtExecute, ComStmtSendLongData, Command, encode_statement_command,
};
use onionskin_wire::{ParamType, Step, WireError, WireResult};

use super::{Setting, Statement};
use crate::catalog::{KeyedPlan, MAX_PLANS, PlanOrigin};
use crate::error::{Failure, Outcome};
use crate::exchange::{Found, Held, Question};
use crate::open;
use crate::session::{Session, shows_physical_name};

/// Bytes of an execution before the bitmap of NULLs: command, statement, cursor, iterations.
const HEAD: usize = 10;

/// A relayed statement.
pub(crate) struct Relayed {
    sql: Vec<u8>,
    keyed: Arc<KeyedPlan>,
    params: usize,
    setting: Setting,
    types: Vec<ParamType>,
    /// The server has got long data for the next execution; it keeps them no longer than that.
    pub has_long_data: bool,
    /// Other pieces were not sent, because the table has become a protected one. The next execution
    /// lacks them.
    lacks_long_data: bool,
}

impl Relayed {
    pub fn keyed(&self) -> &KeyedPlan {
        &self.keyed
    }

    /// `is_observed`: its text is asked for, whatever it is about.
    pub fn new(
        sql: &[u8],
        keyed: &Arc<KeyedPlan>,
        params: usize,
        setting: Setting,
        is_observed: bool,
    ) -> Self {
        let facts = &keyed.plan.facts;
        let is_asked = is_observed || facts.next_transaction || !keyed.plan.names.is_empty();
        Self {
            setting,
            sql: match is_asked {
                true => sql.to_vec(),
                false => Vec::new(),
            },
            keyed: Arc::clone(keyed),
            params,
            types: Vec::new(),
            has_long_data: false,
            lacks_long_data: false,
        }
    }

    /// Its text; `None` if nothing will ask for it.
    pub fn text(&self) -> Option<&[u8]> {
        (!self.sql.is_empty()).then_some(&self.sql)
    }

    /// Whether it asks the server what only the proxy knows: about the statement before it, of
    /// which something is kept (`is_kept`), or how many rows that has `found`.
    fn asks(&self, found: Found, is_kept: bool) -> bool {
        let facts = &self.keyed.plan.facts;
        let counts = facts.says_found_rows && found != Found::Servers;
        facts.question.asks() && (is_kept || counts)
    }

    /// The same as a statement that is more than relayed. `None`: its text would be read otherwise
    /// by now.
    fn into_statement(self, id: u32, lex: LexMode) -> Option<Statement> {
        let mut template = Template::default();
        template.read_unfolded(&self.sql, lex).ok()?;
        let mut statement =
            Statement::new(self.sql, &template, &self.keyed, self.params, self.setting);
        statement.server_id = Some(id);
        statement.types = self.types;
        Some(statement)
    }
}

impl Session {
    /// Relays a preparation. Nothing is written before all of its answer is known to show no
    /// physical column. Returns the server's id of the statement.
    pub fn relay_preparation(&mut self, keyed: &KeyedPlan) -> Outcome<u32> {
        // in a transaction that only reads, a statement that writes cannot be prepared
        self.say_next_transaction()?;
        let payload = self.client.last_payload();
        let question = self.server.put_command(payload)?;
        self.server.flush()?;
        self.server.begin(question)?;
        let mut id = None;
        let mut packets = Vec::new();
        let mut is_physical = false;
        let mut held = Held::default();
        while !self.server.tracker.is_complete() {
            match self.server.step()? {
                Step::Err => return Err(self.server.error()),
                Step::PrepareOk(found) => id = Some(found.statement_id),
                Step::ColumnDef => {
                    let payload = self.server.payload();
                    is_physical |= open::names_physical(payload)
                        && shows_physical_name(payload, self.server.form);
                }
                _ => {}
            }
            held.add(self.server.payload())?;
            packets.push(self.server.payload().to_vec());
        }
        let id = id.ok_or(Failure::Backend(WireError::Malformed(
            "no answer to a preparation",
        )))?;
        self.statements.must_be_new(id)?;
        if is_physical {
            self.close_at_server(id)?;
            return Err(self.stale_or_physical(&keyed.plan.names));
        }
        for packet in packets {
            self.write(&packet)?;
        }
        Ok(id)
    }

    /// Relays an execution. If the statement's table has become a protected one, returns the
    /// statement: it is more than relayed from now on, and still has to be executed.
    pub(super) fn execute_relayed(
        &mut self,
        id: u32,
        payload: &[u8],
    ) -> Outcome<Option<Statement>> {
        let (found, is_kept) = (self.server.found, self.diagnostics.any());
        let Some(relayed) = self.statements.relayed.get_mut(&id) else {
            self.diagnostics.clear();
            return Err(self.unknown_statement(id, "mysqld_stmt_execute"));
        };
        if relayed.asks(found, is_kept) {
            return Err(NotUnderstood::LastStatement("a prepared question").into());
        }
        let keyed = Arc::clone(&relayed.keyed);
        // What cannot be read is the server's to refuse.
        let _ = ComStmtExecute::decode(payload, relayed.params, &mut relayed.types);
        let long = std::mem::take(&mut relayed.has_long_data);
        let lacks = std::mem::take(&mut relayed.lacks_long_data);
        let once = keyed.plan.facts.runs_once();
        self.begin_planned(&keyed);
        self.meter.runs(keyed.label);
        let may_run = self.is_still_relayed(id).and_then(|still| {
            self.must_be_recordable(&keyed)?;
            self.must_not_skip(&keyed.plan)?;
            self.must_know_transaction(&keyed.plan.facts)?;
            Ok(still)
        });
        let goes_on = match may_run {
            Ok(still) => still && !lacks,
            Err(failure) if failure.is_fatal() => return Err(failure),
            Err(failure) => {
                self.server.settle()?;
                self.reset_at_server(id)?;
                return Err(failure);
            }
        };
        let Some(relayed) = self.statements.relayed.get(&id) else {
            return Err(Failure::Stale);
        };
        let keyed = Arc::clone(&relayed.keyed);
        // without names nothing makes it run again
        let names = if once {
            &[]
        } else {
            keyed.plan.names.as_slice()
        };
        let done = if goes_on {
            self.relay_prepared(&keyed, payload, names)
        } else {
            // the server must not see its values
            Err(Failure::Stale)
        };
        // without names, no table can have become another one
        if done.is_ok() || keyed.plan.names.is_empty() {
            let facts = &keyed.plan.facts;
            let said = match facts.next_transaction {
                true => self.statements.relayed.get(&id).map(|r| r.sql.clone()),
                false => None,
            };
            let names = !keyed.plan.names.is_empty();
            self.learn_next_transaction(facts, &said.unwrap_or_default(), names, &done);
            return done.map(|()| None);
        }
        let Some(relayed) = self.statements.relayed.remove(&id) else {
            return done.map(|()| None);
        };
        let again = self.failed_stale(&keyed, &done);
        if !matches!(again, Ok(true)) {
            self.statements.relayed.insert(id, relayed);
            if !goes_on {
                self.reset_at_server(id)?;
            }
            return again.and(done).map(|()| None);
        }
        let Some(statement) = relayed.into_statement(id, self.space.settings.lex) else {
            return done.map(|()| None);
        };
        if long || lacks {
            // They are gone with the execution that failed.
            self.statements.open.insert(id, statement);
            return done.map(|()| None);
        }
        Ok(Some(statement))
    }

    fn relay_prepared(
        &mut self,
        keyed: &KeyedPlan,
        payload: &[u8],
        names: &[TableName],
    ) -> Outcome<()> {
        self.check_temporary(keyed)?;
        if !keyed.plan.facts.question.asks() {
            self.say_next_transaction()?;
        }
        let question = self.server.put_command(payload)?;
        self.server.flush()?;
        let done = self.relay_planned(question, keyed, names);
        self.end_relay(keyed, done)
    }

    /// Whether a relayed statement may still be: nothing that it names is protected, as of now.
    fn is_still_relayed(&mut self, id: u32) -> Outcome<bool> {
        for _ in 0..MAX_PLANS {
            let Some(relayed) = self.statements.relayed.get(&id) else {
                return Ok(false);
            };
            let keyed = Arc::clone(&relayed.keyed);
            // under other rules, whether a table is protected is not all that counts
            if !keyed.plan.names.is_empty() && !self.account.made(&keyed) {
                return self.plan_still_relays(id);
            }
            if keyed.plan.names.is_empty() {
                // nothing to look up; for a question, a look-up would be what it asks about
                return Ok(true);
            }
            // a temporary table hides the one that it was prepared for
            if self.names_temporary(&keyed.plan.names) {
                return self.plan_still_relays(id);
            }
            if self.is_of_now(&keyed)? {
                return Ok(true);
            }
            let generation = self.account.generation();
            self.learn(&keyed.plan.names)?;
            let is_protected = |name: &TableName| {
                let known = self.account.table(&name.database, &name.name);
                matches!(known, Known::Table(table) if table.is_protected())
            };
            let names = &keyed.plan.names;
            if names.iter().any(is_protected) || !self.not_switched(names).is_empty() {
                return self.plan_still_relays(id);
            }
            let keys = &self.shared.config.keys;
            let Some(relayed) = self.statements.relayed.get(&id) else {
                return Ok(false);
            };
            let origin = PlanOrigin {
                sql: &relayed.sql,
                mode: self.space.settings.lex,
                generation,
                label: keyed.label,
                // no table of it is protected
                named: Vec::new(),
            };
            let renewed = self.account.keyed_plan(keyed.plan.clone(), origin, keys)?;
            if let Some(relayed) = self.statements.relayed.get_mut(&id) {
                relayed.keyed = renewed;
            }
        }
        Err(Failure::Stale)
    }

    /// Whether a statement that names a protected table is relayed all the same, as `DROP TABLE`
    /// is. It is planned anew.
    fn plan_still_relays(&mut self, id: u32) -> Outcome<bool> {
        let Some(relayed) = self.statements.relayed.get(&id) else {
            return Ok(false);
        };
        let setting = relayed.setting.clone();
        let sql = relayed.sql.clone();
        let mut template = Template::default();
        let lex = self.space.settings.lex;
        if setting != self.setting() || template.read_unfolded(&sql, lex).is_err() {
            return Ok(false);
        }
        std::mem::swap(&mut self.template, &mut template);
        let planned = self.make_plan(&sql, false);
        std::mem::swap(&mut self.template, &mut template);
        let planned = planned?;
        let relays = matches!(planned.plan.action, Action::Relay);
        if let Some(relayed) = self.statements.relayed.get_mut(&id)
            && relays
        {
            relayed.keyed = planned;
        }
        Ok(relays)
    }

    /// A piece of a value for a statement arrives. `false`: it must not go to the server, and is
    /// lost. The execution will say so.
    pub fn takes_piece(&mut self, id: u32) -> Outcome<bool> {
        let Some(relayed) = self.statements.relayed.get(&id) else {
            return Ok(true);
        };
        let is_first = !relayed.has_long_data;
        let is_lost = relayed.lacks_long_data;
        match self.is_still_relayed(id) {
            Err(failure) if failure.is_fatal() => return Err(failure),
            Ok(true) if !is_lost => return Ok(true),
            // the pieces stay here
            Ok(false) if is_first && !is_lost => {
                let relayed = self.statements.relayed.remove(&id);
                let lex = self.space.settings.lex;
                if let Some(statement) = relayed.and_then(|r| r.into_statement(id, lex)) {
                    self.statements.open.insert(id, statement);
                    return Ok(true);
                }
            }
            _ => self.server.settle()?,
        }
        if let Some(relayed) = self.statements.relayed.get_mut(&id) {
            relayed.lacks_long_data = true;
        }
        Ok(false)
    }

    /// Has the server forget the pieces of values that it has got for a statement.
    fn reset_at_server(&mut self, id: u32) -> Outcome<()> {
        let mut command = Vec::new();
        encode_statement_command(&mut command, Command::StmtReset, id);
        let question = self.server.put_command(&command)?;
        self.server.flush()?;
        match self.server.read_ok(question) {
            Err(failure) if failure.is_fatal() => Err(failure),
            // there is none: nothing to forget
            _ => Ok(()),
        }
    }

    /// Executes a statement that the server knows by another id than the client. Its table is no
    /// longer protected.
    pub fn execute_renumbered(&mut self, statement: &Statement, payload: &[u8]) -> Outcome<()> {
        let question = self.put_renumbered(statement, payload)?;
        let keyed = Arc::clone(&statement.keyed);
        self.relay_planned(question, &keyed, &keyed.plan.names)
    }

    /// Sends such an execution.
    pub fn put_renumbered(&mut self, statement: &Statement, payload: &[u8]) -> Outcome<Question> {
        let server_id = statement.server_id.ok_or(Failure::Stale)?;
        for (n, data) in statement.long.iter().enumerate() {
            let (Some(data), Ok(param)) = (data, u16::try_from(n)) else {
                continue;
            };
            let mut packet = Vec::new();
            ComStmtSendLongData {
                statement_id: server_id,
                param,
                data,
            }
            .encode(&mut packet);
            self.server.put_silent(&packet)?;
        }
        self.say_next_transaction()?;
        let own = renumbered(payload, server_id, &statement.types).map_err(Failure::Client)?;
        let question = self.server.put_command(&own)?;
        self.server.flush()?;
        Ok(question)
    }
}

/// An execution with another statement's id, and with the types of its parameters, which that
/// statement has not seen.
fn renumbered(payload: &[u8], id: u32, types: &[ParamType]) -> WireResult<Vec<u8>> {
    let early = || WireError::Malformed("message ends too early");
    let mut own = Vec::with_capacity(payload.len() + 2 * types.len());
    own.extend_from_slice(payload.get(..HEAD).ok_or_else(early)?);
    own[1..5].copy_from_slice(&id.to_le_bytes());
    if types.is_empty() {
        return Ok(own);
    }
    let flag = HEAD + types.len().div_ceil(8);
    own.extend_from_slice(payload.get(HEAD..flag).ok_or_else(early)?);
    let has_types = *payload.get(flag).ok_or_else(early)? == 1;
    own.push(1);
    for ty in types {
        own.extend_from_slice(&ty.to_bytes());
    }
    let values = flag + 1 + if has_types { 2 * types.len() } else { 0 };
    own.extend_from_slice(payload.get(values..).ok_or_else(early)?);
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onionskin_wire::ColumnType;

    #[test]
    fn executions_carry_their_types_under_another_id() {
        let types = [
            ParamType::new(ColumnType::LONG),
            ParamType::unsigned(ColumnType::TINY),
        ];
        let head = [0x17, 9, 0, 0, 0, 0, 1, 0, 0, 0];
        let (bitmap, values) = ([0], [7, 0, 0, 0, 5]);
        let bound = [types[0].to_bytes(), types[1].to_bytes()].concat();
        let first = [&head[..], &bitmap, &[1], &bound, &values].concat();
        let later = [&head[..], &bitmap, &[0], &values].concat();
        let mut expected = first.clone();
        expected[1..5].copy_from_slice(&[0x0d, 0x0c, 0x0b, 0x0a]);
        for payload in [&first, &later] {
            assert_eq!(renumbered(payload, 0x0a0b_0c0d, &types).unwrap(), expected);
        }
        assert_eq!(renumbered(&head, 9, &[]).unwrap(), head);
        for short in [0, 9, 10, 11, 14] {
            assert!(renumbered(&first[..short], 9, &types).is_err(), "{short}");
        }
    }
}
