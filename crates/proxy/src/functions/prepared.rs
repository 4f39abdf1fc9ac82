//! Prepared statements with calls: the server's has a parameter for each.

use onionskin_plan::errors;
use onionskin_plan::functions::Piece;
use onionskin_wire::messages::{
    ComStmtExecute, ComStmtSendLongData, Command, CursorType, ExecuteWriter, Param,
};
use onionskin_wire::{BinaryValue, ColumnType, ParamType};

use super::kept::PreparedCalls;
use super::open::Ready;
use super::ready;
use crate::bind::Values;
use crate::error::{Failure, Outcome, too_long};
use crate::prepared::MAX_LONG_DATA_BYTES;
use crate::session::Session;

impl Session {
    /// Prepares a statement; of one with calls, what is left of it.
    pub(crate) fn prepare(&mut self) -> Outcome<()> {
        self.statements.forget_last();
        self.functions.openings.clear();
        self.functions.preparing = None;
        let Some(calls) = self.calls()? else {
            return self.prepare_text();
        };
        if !calls.assigned.is_empty() {
            let about = "a prepared SET of a variable that secrets names";
            return Err(Failure::refused(&errors::FUNCTION, about));
        }
        let sql = self
            .client
            .last_payload()
            .get(1..)
            .unwrap_or_default()
            .to_vec();
        let literals = self.literals_of(&sql)?.literals;
        let mut text = vec![Command::StmtPrepare.to_byte()];
        for piece in &calls.pieces {
            match piece {
                Piece::Sql(sql) => text.extend_from_slice(sql),
                Piece::Parameter(_) | Piece::Computed(_) => text.push(b'?'),
            }
        }
        self.client.replace_last_payload(text);
        let named = calls
            .openings
            .iter()
            .map(|o| Ready::new(o, None, &self.state));
        self.functions.openings = named.collect::<Outcome<_>>()?;
        self.functions.preparing = Some(calls.parameters);
        let done = self.prepare_text();
        self.functions.preparing = None;
        self.functions.openings.clear();
        done?;
        let Some(id) = self.statements.last() else {
            return Err(Failure::refused(&errors::INTERNAL, "a prepared statement"));
        };
        let parameters = calls.parameters;
        let prepared = PreparedCalls {
            sql,
            literals,
            calls,
            types: Vec::new(),
            long: vec![None; parameters],
            long_behind: vec![false; parameters],
            too_long: false,
        };
        self.functions.prepared.insert(id, prepared);
        Ok(())
    }

    /// Exchanges an execution for one of the statement that the server has.
    pub(crate) fn compute_execution(&mut self, id: u32, payload: &mut Vec<u8>) -> Outcome<()> {
        self.functions.openings.clear();
        let Some(mut prepared) = self.functions.prepared.remove(&id) else {
            return Ok(());
        };
        let done = self.execution_behind(id, payload, &mut prepared);
        prepared.forget_long();
        self.functions.prepared.insert(id, prepared);
        if done.is_err() {
            // as servers do where an execution fails
            self.statements.forget_long(id);
        }
        *payload = done?;
        Ok(())
    }

    fn execution_behind(
        &mut self,
        id: u32,
        payload: &[u8],
        prepared: &mut PreparedCalls,
    ) -> Outcome<Vec<u8>> {
        if prepared.too_long {
            return Err(too_long());
        }
        let count = prepared.calls.parameters;
        let head = ComStmtExecute::decode(payload, count, &mut prepared.types);
        let head = head.map_err(Failure::Client)?;
        let is_long = |n: usize| {
            let here = prepared.long.get(n).is_some_and(Option::is_some);
            here || prepared.long_behind.get(n) == Some(&true)
        };
        let params: Result<Vec<Param>, _> = head.params(&prepared.types, is_long).collect();
        let params = params.map_err(Failure::Client)?;
        let asked = self.ask_variables(&prepared.calls)?;
        let evaluator = self.evaluator(
            Values {
                sql: &prepared.sql,
                literals: &prepared.literals,
                params: &params,
                long_data: &prepared.long,
                from_variables: &[],
            },
            &asked,
        )?;
        let mut out = Vec::new();
        let servers = prepared.parameters().count();
        // a cursor would outlive what opens its rows
        let cursor = match prepared.calls.openings.is_empty() {
            true => head.cursor,
            false => CursorType::NO_CURSOR,
        };
        let mut writer = ExecuteWriter::begin(&mut out, id, cursor, servers);
        let wrong = |_| Failure::refused(&errors::INTERNAL, "parameters");
        for piece in prepared.parameters() {
            match piece {
                Piece::Parameter(n) => {
                    let param = params.get(*n).ok_or_else(|| wrong(()))?;
                    let is_behind = prepared.long_behind.get(*n) == Some(&true);
                    if is_behind {
                        writer
                            .start_param(&mut out, param.ty)
                            .map_err(|_| wrong(()))?;
                    } else {
                        let written = writer.param(&mut out, param.ty, &param.value);
                        written.map_err(|_| wrong(()))?;
                    }
                }
                Piece::Computed(call) => {
                    let computed = evaluator.call(call)?;
                    let ty = ParamType::new(match call.function.gives_text() {
                        true => ColumnType::VAR_STRING,
                        false => ColumnType::BLOB,
                    });
                    let value = match &computed {
                        None => BinaryValue::Null,
                        Some(bytes) => BinaryValue::Bytes(bytes),
                    };
                    writer.param(&mut out, ty, &value).map_err(|_| wrong(()))?;
                }
                Piece::Sql(_) => {}
            }
        }
        writer.finish().map_err(|_| wrong(()))?;
        let openings = ready(&evaluator, &prepared.calls.openings)?;
        self.functions.openings = openings;
        Ok(out)
    }

    /// A piece of a long value, a reset or the end of a prepared statement. `false`: nobody else
    /// needs to know.
    pub(crate) fn computed_command(
        &mut self,
        command: Command,
        id: u32,
        payload: &mut [u8],
    ) -> Outcome<bool> {
        if command == Command::StmtClose {
            self.functions.prepared.remove(&id);
            return Ok(true);
        }
        let Some(prepared) = self.functions.prepared.get_mut(&id) else {
            return Ok(true);
        };
        if command != Command::StmtSendLongData {
            prepared.forget_long();
            return Ok(true);
        }
        let data = ComStmtSendLongData::decode(payload).map_err(Failure::Client)?;
        let client = usize::from(data.param);
        if let Some(behind) = prepared.behind(client) {
            if let Some(long) = prepared.long_behind.get_mut(client) {
                *long = true;
            }
            let number = u16::try_from(behind).unwrap_or(u16::MAX).to_le_bytes();
            if let Some(place) = payload.get_mut(5..7) {
                place.copy_from_slice(&number);
            }
            return Ok(true);
        }
        let kept = self.functions.prepared.values().flat_map(|p| &p.long);
        let kept: usize = kept.flatten().map(Vec::len).sum();
        let has_room = kept + data.data.len() <= MAX_LONG_DATA_BYTES;
        let most = self.server.bound.packet;
        if let Some(prepared) = self.functions.prepared.get_mut(&id)
            && let Some(long) = prepared.long.get_mut(client)
        {
            let long = long.get_or_insert_default();
            match has_room && long.len() + data.data.len() <= most {
                true => long.extend_from_slice(data.data),
                // there is no answer to this: the execution is refused
                false => prepared.too_long = true,
            }
        }
        Ok(false)
    }
}
