//! The scratch engine's result on its way to the client: bytes as they are, except for the names of
//! renamed references, and the status of the client's own session.

use onionskin_plan::{Scratch, errors};
use onionskin_wire::messages::{
    ColumnDefinition, ComStmtPrepareOk, Command, CursorType, EofPacket, ExecuteWriter, OkPacket,
    encode_statement_command,
};
use onionskin_wire::{
    BinaryValue, ColumnType, DefinitionForm, ParamType, StatusFlags, Step, WireError,
};

use super::Parameters;
use super::engine::{Engine, ours};
use crate::error::{Failure, Outcome};
use crate::exchange::Done;
use crate::rows_end::RowsEnd;
use crate::session::Session;
use crate::state::State;

impl Engine {
    /// Prepares a statement; its columns, and its parameters.
    fn prepare(&mut self, sql: &[u8]) -> Outcome<(ComStmtPrepareOk, Vec<Vec<u8>>)> {
        let mut command = vec![Command::StmtPrepare.to_byte()];
        command.extend_from_slice(sql);
        let question = self.server.put_command(&command).map_err(ours)?;
        self.settle()?;
        self.server.begin(question).map_err(ours)?;
        let mut found = None;
        let mut definitions = Vec::new();
        while !self.server.tracker.is_complete() {
            match self.server.step().map_err(ours)? {
                Step::Err => return Err(self.server.error()),
                Step::PrepareOk(ok) => found = Some(ok),
                Step::ColumnDef => definitions.push(self.server.payload().to_vec()),
                _ => {}
            }
        }
        let ok = found.ok_or_else(|| {
            ours(Failure::Backend(WireError::Malformed(
                "no answer to a preparation",
            )))
        })?;
        Ok((ok, definitions))
    }

    fn close(&mut self, id: u32) -> Outcome<()> {
        let mut packet = Vec::new();
        encode_statement_command(&mut packet, Command::StmtClose, id);
        self.server.put_silent(&packet).map_err(ours)
    }

    /// Runs a statement without rows.
    pub(super) fn run(&mut self, sql: &[u8], parameters: Option<Parameters>) -> Outcome<Done> {
        let mut prepared = None;
        let question = match parameters {
            None => {
                let question = self.server.put_query(sql).map_err(ours)?;
                self.settle()?;
                question
            }
            Some(parameters) => {
                let (ok, _) = self.prepare(sql)?;
                let packet = execution(&ok, parameters)?;
                let question = self.server.put_command(&packet).map_err(ours)?;
                self.server.flush().map_err(ours)?;
                prepared = Some(ok.statement_id);
                question
            }
        };
        self.server.begin(question).map_err(ours)?;
        let done = match self.wait()? {
            Step::Ok { .. } => {
                let ok = OkPacket::decode(self.server.payload(), self.server.capabilities);
                let ok = ok.map_err(|e| ours(Failure::Backend(e)))?;
                Ok(Done {
                    affected_rows: ok.affected_rows,
                    last_insert_id: ok.last_insert_id,
                    warnings: ok.warnings,
                    info: ok.info.to_vec(),
                })
            }
            Step::Err => Err(self.failure()),
            _ => {
                let broken = WireError::Malformed("rows where none were expected");
                return Err(ours(Failure::Backend(broken)));
            }
        };
        if let Some(id) = prepared {
            self.close(id)?;
        }
        done
    }

    /// The columns of a statement's result.
    pub(super) fn definitions(&mut self, shown: &Shown, sql: &[u8]) -> Outcome<Vec<Vec<u8>>> {
        let (ok, definitions) = self.prepare(sql)?;
        self.close(ok.statement_id)?;
        definitions.iter().map(|d| shown.logical(d)).collect()
    }
}

/// How the scratch engine's definitions differ from those that the client is to see.
pub(super) struct Shown<'s> {
    scratch: &'s Scratch,
    /// The collation that strings are announced with there, and the one of the client's session:
    /// MySQL remembers the collation of the login.
    collation: Option<(u16, u16)>,
    form: DefinitionForm,
}

impl<'s> Shown<'s> {
    pub fn of(scratch: &'s Scratch, state: &State) -> Self {
        let here = state.results_collation;
        let there = match (here, state.results_charset) {
            (0, _) | (_, None) => here,
            (_, Some(charset)) => charset.default_collation_id(state.family),
        };
        Shown {
            scratch,
            collation: (there != here).then_some((there, here)),
            form: state.form,
        }
    }

    fn logical(&self, packet: &[u8]) -> Outcome<Vec<u8>> {
        if self.scratch.renamed.is_empty() && self.collation.is_none() {
            return Ok(packet.to_vec());
        }
        let broken = |e| ours(Failure::Backend(e));
        let mut definition = ColumnDefinition::decode(packet, self.form).map_err(broken)?;
        let mut reads = self.scratch.reads.iter();
        let read = reads.find(|r| r.name.as_bytes() == &*definition.org_table);
        if let Some(read) = read {
            definition.org_table = read.table.name.as_bytes().into();
        }
        if let Some((there, here)) = self.collation
            && definition.charset == there
        {
            definition.charset = here;
        }
        let mut out = Vec::new();
        definition.encode(&mut out);
        Ok(out)
    }
}

impl Session {
    /// Runs the statement and writes its result.
    pub(super) fn scratch_result(
        &mut self,
        engine: &mut Engine,
        scratch: &Scratch,
        sql: &[u8],
        parameters: Option<Parameters>,
    ) -> Outcome<()> {
        let mut prepared = None;
        let question = match parameters {
            None => {
                let question = engine.server.put_query(sql).map_err(ours)?;
                engine.settle()?;
                question
            }
            Some(parameters) => {
                let (ok, _) = engine.prepare(sql)?;
                let packet = execution(&ok, parameters)?;
                let question = engine.server.put_command(&packet).map_err(ours)?;
                engine.server.flush().map_err(ours)?;
                prepared = Some(ok.statement_id);
                question
            }
        };
        engine.server.begin(question).map_err(ours)?;
        let (rows, warnings) = self.relay_result(engine, scratch)?;
        if let Some(id) = prepared {
            engine.close(id)?;
        }
        self.diagnostics.clear();
        self.diagnostics.row_count = Some(-1);
        self.diagnostics.found_rows = Some(rows);
        // the server's are those of the reads
        self.diagnostics.hides_servers = true;
        if warnings > 0 {
            let shown = engine.server.rows(b"SHOW WARNINGS").map_err(ours)?;
            self.diagnostics.keep(&shown, warnings);
        }
        if scratch.finds_more {
            let rows = engine.server.rows(b"SELECT FOUND_ROWS()").map_err(ours)?;
            let cell = rows.into_iter().flatten().flatten().next();
            let text = String::from_utf8_lossy(&cell.unwrap_or_default()).into_owned();
            self.diagnostics.found_rows = text.parse().ok();
        }
        Ok(())
    }

    /// Relays one result. Returns how many rows and warnings it has.
    fn relay_result(&mut self, engine: &mut Engine, scratch: &Scratch) -> Outcome<(u64, u16)> {
        let mut rows = 0;
        let mut warnings = 0;
        let shown = Shown::of(scratch, &self.state);
        while !engine.server.tracker.is_complete() {
            let step = engine.server.step().map_err(ours)?;
            match step {
                Step::Err => return Err(engine.failure()),
                Step::ColumnDef => {
                    let definition = shown.logical(engine.server.payload())?;
                    self.write(&definition)?;
                }
                Step::Row => {
                    rows += 1;
                    self.current.wrote = true;
                    self.write(engine.server.payload())?;
                }
                Step::EofAfterColumns { .. } => self.write_scratch_end(0, false)?,
                Step::EndOfRows { .. } => {
                    warnings = engine.server.warnings_at_end().map_err(ours)?;
                    self.write_scratch_end(warnings, true)?;
                }
                Step::ColumnCount(_) => self.write(engine.server.payload())?,
                _ => {
                    let broken = WireError::Malformed("not a result");
                    return Err(ours(Failure::Backend(broken)));
                }
            }
        }
        Ok((rows, warnings))
    }

    /// The end of the definitions, or of the rows.
    fn write_scratch_end(&mut self, warnings: u16, of_rows: bool) -> Outcome<()> {
        let mut status = self.server.status - StatusFlags::SESSION_STATE_CHANGED;
        status.set(StatusFlags::MORE_RESULTS, self.current.more_results);
        match of_rows {
            true => self.write_rows_end(RowsEnd { status, warnings }),
            false => {
                let mut out = Vec::new();
                EofPacket { status, warnings }.encode(&mut out);
                self.write(&out)
            }
        }
    }
}

/// The execution of a statement with the client's parameters.
fn execution(ok: &ComStmtPrepareOk, parameters: Parameters) -> Outcome<Vec<u8>> {
    let misfit = |_| Failure::refused(&errors::MALFORMED, "a parameter");
    if usize::from(ok.num_params) != parameters.params.len() {
        return Err(Failure::refused(&errors::INTERNAL, "parameters"));
    }
    let mut out = Vec::new();
    let count = parameters.params.len();
    let mut writer = ExecuteWriter::begin(&mut out, ok.statement_id, CursorType::NO_CURSOR, count);
    for (n, param) in parameters.params.iter().enumerate() {
        match parameters.long.get(n).and_then(Option::as_deref) {
            Some(bytes) => {
                let ty = match param.ty.kind.is_length_encoded() {
                    true => param.ty,
                    false => ParamType::new(ColumnType::BLOB),
                };
                let value = BinaryValue::Bytes(bytes);
                writer.param(&mut out, ty, &value).map_err(misfit)?;
            }
            None => writer
                .param(&mut out, param.ty, &param.value)
                .map_err(misfit)?,
        }
    }
    writer.finish().map_err(misfit)?;
    Ok(out)
}
