//! What comes between executions: rows of cursors, pieces of long values, resets, the end.

use std::sync::Arc;

use onionskin_plan::Action;
use onionskin_wire::messages::{ComStmtSendLongData, Command, encode_statement_command};

use crate::error::{Failure, Outcome};
use crate::session::Session;

impl Session {
    /// Rows of a cursor.
    pub fn fetch(&mut self) -> Outcome<()> {
        let mut payload = self.client.last_payload().to_vec();
        let id = self.statements.id_in(&mut payload, self.state.family)?;
        if self.fetch_held(id, &payload)? {
            return Ok(());
        }
        let Some(mut statement) = self.statements.open.remove(&id) else {
            if !self.statements.is_relayed(id) {
                return Err(self.unknown_statement(id, "mysqld_stmt_fetch"));
            }
            if let Some(relayed) = self.statements.relayed.get(&id) {
                self.current.note_programs(relayed.keyed());
            }
            let question = self.server.put_command(&payload)?;
            self.server.flush()?;
            return self.relay_answer(question, &[]);
        };
        self.current.note_programs(&statement.keyed);
        let mut own = payload.clone();
        if let (Some(place), Some(server_id)) = (own.get_mut(1..5), statement.server_id) {
            place.copy_from_slice(&server_id.to_le_bytes());
        }
        let is_relayed = matches!(statement.keyed.plan.action, Action::Relay);
        if !is_relayed && statement.cursor.is_some() {
            let keyed = Arc::clone(&statement.keyed);
            self.meter.runs(keyed.label);
            if let Err(failure) = self.must_be_recordable(&keyed) {
                self.statements.open.insert(id, statement);
                return Err(failure);
            }
        }
        let done = match (statement.cursor.take(), statement.server_id) {
            (_, Some(_)) if is_relayed => {
                let question = self.server.put_command(&own)?;
                self.server.flush()?;
                self.relay_answer(question, &[])
            }
            (Some(opener), Some(_)) => {
                let question = self.server.put_command(&own)?;
                self.server.flush()?;
                self.server.begin(question)?;
                self.open_rows(opener)
                    .map(|opener| statement.cursor = Some(opener))
            }
            _ => Err(self.no_cursor(id)),
        };
        self.statements.open.insert(id, statement);
        done
    }

    /// Close, reset, long data.
    pub fn statement_command(&mut self, command: Command) -> Outcome<()> {
        let mut payload = self.client.last_payload().to_vec();
        let id = self.statements.id_in(&mut payload, self.state.family)?;
        if !self.computed_command(command, id, &mut payload)? {
            return Ok(());
        }
        if matches!(command, Command::StmtClose | Command::StmtReset) {
            self.statements.close_cursor(id);
        }
        if command == Command::StmtClose && self.statements.last == Some(id) {
            self.statements.last = None;
        }
        if command == Command::StmtSendLongData && !self.takes_piece(id)? {
            return Ok(());
        }
        if !self.statements.open.contains_key(&id) {
            if !self.statements.is_relayed(id) {
                return match command {
                    Command::StmtReset => Err(self.unknown_statement(id, "mysqld_stmt_reset")),
                    // these have no answer
                    _ => Ok(()),
                };
            }
            if command == Command::StmtClose {
                self.statements.relayed.remove(&id);
            } else if let Some(relayed) = self.statements.relayed.get_mut(&id) {
                relayed.has_long_data = command == Command::StmtSendLongData;
            }
            if command == Command::StmtReset {
                let question = self.server.put_command(&payload)?;
                self.server.flush()?;
                return self.relay_answer(question, &[]);
            }
            self.server.put_silent(&payload)?;
            return self.server.flush();
        }
        match command {
            Command::StmtClose => {
                if let Some(statement) = self.statements.open.remove(&id)
                    && let Some(server_id) = statement.server_id
                {
                    self.close_at_server(server_id)?;
                    if let Some(id) = statement.indexed.take().id() {
                        self.close_at_server(id)?;
                    }
                    self.server.flush()?;
                }
                Ok(())
            }
            Command::StmtSendLongData => {
                let data = ComStmtSendLongData::decode(&payload).map_err(Failure::Client)?;
                let has_room = self.statements.take_long_data(data.data.len());
                let statement = self.statements.open.get_mut(&id);
                let param = usize::from(data.param);
                let most = self.server.bound.packet;
                if let Some(statement) = statement
                    && let Some(long) = statement.long.get_mut(param)
                {
                    let long = long.get_or_insert_default();
                    // there is no answer to this: the execution is refused
                    if has_room && long.len() + data.data.len() <= most {
                        long.extend_from_slice(data.data);
                    } else {
                        statement.too_long = true;
                    }
                }
                Ok(())
            }
            _ => {
                let mut server_id = None;
                if let Some(statement) = self.statements.open.get_mut(&id) {
                    statement.long.iter_mut().for_each(|l| *l = None);
                    statement.too_long = false;
                    statement.cursor = None;
                    server_id = statement.server_id;
                }
                let Some(server_id) = server_id else {
                    return self.write_done(&crate::exchange::Done::default());
                };
                let mut own = Vec::new();
                encode_statement_command(&mut own, Command::StmtReset, server_id);
                let question = self.server.put_command(&own)?;
                self.server.flush()?;
                self.relay_answer(question, &[])
            }
        }
    }
}
