//! Prepared statements that are relayed because they touch nothing protected.
//!
//! A migration can put a protected table in the place of one of theirs at any time. Then the server refuses the next
//! execution, or would show physical columns, and the statement is planned and prepared once more, under the id that the client
//! knows. Clients send the types of parameters with the first execution only, so they are remembered.

use std::sync::Arc;

use onionskin_plan::Template;
use onionskin_wire::messages::{ComStmtExecute, ComStmtSendLongData, Command};
use onionskin_wire::{ParamType, Step, WireError, WireResult};

use crate::catalog::Prepared;
use crate::error::{Failure, Outcome};
use crate::open;
use crate::prepared::{Setting, Statement};
use crate::session::{Session, runs_once, shows_physical_name};

/// Bytes of an execution before the bitmap of NULLs: command, statement, cursor, iterations.
const HEAD: usize = 10;

/// A relayed statement, which names at least one table.
pub(crate) struct Relayed {
    sql: Vec<u8>,
    /// It changes rows and shows them.
    runs_once: bool,
    prepared: Arc<Prepared>,
    params: usize,
    setting: Setting,
    types: Vec<ParamType>,
    /// The server has got long data for the next execution; it keeps them no longer than that.
    pub has_long_data: bool,
}

impl Relayed {
    /// `key` is the text's shape.
    pub fn new(
        sql: &[u8],
        key: &[u8],
        prepared: &Arc<Prepared>,
        params: usize,
        setting: Setting,
    ) -> Self {
        Self {
            setting,
            sql: sql.to_vec(),
            runs_once: runs_once(key),
            prepared: Arc::clone(prepared),
            params,
            types: Vec::new(),
            has_long_data: false,
        }
    }
}

impl Session {
    /// Relays a preparation. Nothing is written before all of its answer is known to show no physical column. Returns the
    /// server's id of the statement.
    pub fn relay_preparation(&mut self, prepared: &Prepared) -> Outcome<u32> {
        let payload = self.client.last_payload();
        self.server.put_command(payload)?;
        self.server.flush()?;
        self.server.begin(Command::StmtPrepare)?;
        let mut id = None;
        let mut packets = Vec::new();
        let mut is_physical = false;
        while !self.server.tracker.is_complete() {
            match self.server.step()? {
                Step::Err => return Err(self.server.error()),
                Step::PrepareOk(found) => id = Some(found.statement_id),
                Step::ColumnDef => {
                    let payload = self.server.payload();
                    is_physical |= open::names_physical(payload) && shows_physical_name(payload);
                }
                _ => {}
            }
            packets.push(self.server.payload().to_vec());
        }
        let id = id.ok_or(Failure::Backend(WireError::Malformed(
            "no answer to a preparation",
        )))?;
        if is_physical {
            self.close_at_server(id)?;
            return Err(self.stale_or_physical(&prepared.plan.names));
        }
        for packet in packets {
            self.write(&packet)?;
        }
        Ok(id)
    }

    /// Relays an execution. If its table has become a protected one, the statement is more than relayed from now on.
    pub fn execute_relayed(&mut self, id: u32, payload: &[u8]) -> Outcome<()> {
        if !self.statements.is_relayed(id) {
            return Err(self.unknown_statement(id, "mysqld_stmt_execute"));
        }
        let relayed = self.statements.relayed.get_mut(&id);
        let long = relayed.as_ref().is_some_and(|r| r.has_long_data);
        let prepared = relayed.map(|relayed| {
            // What cannot be read is the server's to refuse.
            let _ = ComStmtExecute::decode(payload, relayed.params, &mut relayed.types);
            relayed.has_long_data = false;
            (Arc::clone(&relayed.prepared), relayed.runs_once)
        });
        let once = prepared.as_ref().is_some_and(|(_, once)| *once);
        let prepared = prepared.map(|(prepared, _)| prepared);
        let names = prepared.as_ref().map(|p| p.plan.names.as_slice());
        let names = names.unwrap_or_default();
        let done = if self.names_temporary(names) {
            // a temporary table hides the one that it was prepared for: the server must not see its values
            Err(Failure::Stale)
        } else {
            self.server.put_command(payload)?;
            self.server.flush()?;
            // without names nothing makes it run again
            let names = if once { &[] } else { names };
            match &prepared {
                Some(prepared) => self.relay_planned(Command::StmtExecute, prepared, names),
                None => self.relay_answer(Command::StmtExecute, names),
            }
        };
        let Some(prepared) = prepared else {
            return done;
        };
        if done.is_ok() {
            return done;
        }
        let Some(relayed) = self.statements.relayed.remove(&id) else {
            return done;
        };
        let again = self.failed_stale(&relayed.sql, &prepared, &done);
        if !matches!(again, Ok(true)) {
            self.statements.relayed.insert(id, relayed);
            return again.and(done);
        }
        let mut template = Template::default();
        if template
            .read_unfolded(&relayed.sql, self.space.settings.lex)
            .is_err()
        {
            return done;
        }
        let mut statement = Statement::new(
            relayed.sql,
            &template,
            &prepared,
            relayed.params,
            relayed.setting,
        );
        statement.server_id = Some(id);
        statement.types = relayed.types;
        let again = match long {
            // They are gone with the execution that failed.
            true => done,
            false => self.execute_statement(&mut statement, payload),
        };
        self.statements.open.insert(id, statement);
        again
    }

    /// Executes a statement of which the client knows another id than the server; its table is no longer protected.
    pub fn execute_renumbered(&mut self, statement: &Statement, payload: &[u8]) -> Outcome<()> {
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
        let own = renumbered(payload, server_id, &statement.types).map_err(Failure::Client)?;
        self.server.put_command(&own)?;
        self.server.flush()?;
        let prepared = Arc::clone(&statement.prepared);
        self.relay_planned(Command::StmtExecute, &prepared, &prepared.plan.names)
    }
}

/// An execution with another statement's id, and with the types of its parameters, which that statement has not seen.
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
