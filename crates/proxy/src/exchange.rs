//! Statements of the proxy's own on the session's server connection.
//!
//! Statements may be sent before the answers to earlier ones are read: servers take commands
//! from their connection one after the other, so two of them cost one round trip.

use std::collections::VecDeque;

use onionskin_wire::messages::{
    ColumnDefinition, Command, EofPacket, ErrPacket, OkPacket, encode_statement_command,
};
use onionskin_wire::rows::TextRow;
use onionskin_wire::{Capabilities, Connection, ResponseTracker, StatusFlags, Step, WireError};

use crate::error::{Failure, Outcome};

/// "Deadlock found": the server has rolled the whole transaction back.
const DEADLOCK: u16 = 1213;

/// The server's side of a session.
pub(crate) struct Server {
    pub connection: Connection,
    pub tracker: ResponseTracker,
    pub capabilities: Capabilities,
    /// Status flags of the last answer.
    pub status: StatusFlags,
    /// The sequence numbers that the answers to sent commands begin with.
    expected: VecDeque<u8>,
    /// Session state changes that were not looked at yet, as sent.
    pub changes: Vec<u8>,
    /// The session's `sql_select_limit`, if it limits: to the server, statements of the proxy's own are the client's.
    pub select_limit: Option<String>,
}

/// Behind a `SELECT` of the proxy's own: the session's `sql_select_limit` does not count.
pub(crate) const ALL_ROWS: &str = " LIMIT 18446744073709551615";

/// A result of text rows.
pub(crate) type Rows = Vec<Vec<Option<Vec<u8>>>>;

impl Server {
    pub fn new(connection: Connection, capabilities: Capabilities) -> Self {
        Server {
            connection,
            tracker: ResponseTracker::new(capabilities),
            capabilities,
            status: StatusFlags::AUTOCOMMIT,
            expected: VecDeque::new(),
            changes: Vec::new(),
            select_limit: None,
        }
    }

    /// Appends a statement to the output; [`Self::flush`] sends it.
    pub fn put_query(&mut self, sql: &[u8]) -> Outcome<()> {
        self.connection.reset_sequence();
        let out = self.connection.begin_payload();
        out.push(Command::Query.to_byte());
        out.extend_from_slice(sql);
        self.end_command()
    }

    /// Appends a command as it is.
    pub fn put_command(&mut self, payload: &[u8]) -> Outcome<()> {
        self.connection.reset_sequence();
        self.connection
            .write_payload(payload)
            .map_err(Failure::Backend)?;
        self.expected.push_back(self.connection.sequence());
        Ok(())
    }

    /// Appends a command that has no answer.
    pub fn put_silent(&mut self, payload: &[u8]) -> Outcome<()> {
        self.connection.reset_sequence();
        self.connection
            .write_payload(payload)
            .map_err(Failure::Backend)
    }

    /// Ends a command that was built in the connection's buffer. Long ones take several packets,
    /// and the answer goes on counting behind the last.
    pub fn end_command(&mut self) -> Outcome<()> {
        self.connection.end_payload().map_err(Failure::Backend)?;
        self.expected.push_back(self.connection.sequence());
        Ok(())
    }

    pub fn flush(&mut self) -> Outcome<()> {
        self.connection.flush().map_err(Failure::Backend)
    }

    /// Begins to read the answer to a command that was sent.
    pub fn begin(&mut self, command: Command) -> Outcome<()> {
        self.connection
            .set_sequence(self.expected.pop_front().unwrap_or(1));
        self.tracker.begin(command).map_err(Failure::Backend)
    }

    /// Reads the next packet of an answer.
    pub fn step(&mut self) -> Outcome<Step> {
        let payload = self.connection.read_payload().map_err(Failure::Backend)?;
        let step = self.tracker.step(payload).map_err(Failure::Backend)?;
        match step {
            Step::Ok { status } => {
                self.status = status;
                if status.contains(StatusFlags::SESSION_STATE_CHANGED)
                    && self.capabilities.contains(Capabilities::SESSION_TRACK)
                {
                    let ok = OkPacket::decode(self.connection.last_payload(), self.capabilities)
                        .map_err(Failure::Backend)?;
                    self.changes.extend_from_slice(ok.session_changes.0);
                }
            }
            Step::EndOfRows { status } => {
                self.status = status;
                if status.contains(StatusFlags::SESSION_STATE_CHANGED)
                    && self.capabilities.contains(Capabilities::DEPRECATE_EOF)
                    && let Ok(ok) =
                        OkPacket::decode(self.connection.last_payload(), self.capabilities)
                {
                    self.changes.extend_from_slice(ok.session_changes.0);
                }
            }
            // a deadlock has ended the transaction, and errors do not tell the status
            Step::Err => {
                let error = ErrPacket::decode(self.connection.last_payload());
                if error.is_ok_and(|e| e.code == DEADLOCK) {
                    self.status.remove(StatusFlags::IN_TRANS);
                }
            }
            _ => {}
        }
        Ok(step)
    }

    /// The packet that the last step read.
    pub fn payload(&self) -> &[u8] {
        self.connection.last_payload()
    }

    /// The server's error in the last packet.
    pub fn error(&self) -> Failure {
        match ErrPacket::decode(self.payload()) {
            Ok(e) => Failure::Server {
                code: e.code,
                state: e.sqlstate.unwrap_or(*b"HY000"),
                message: e.message.into_owned(),
            },
            Err(e) => Failure::Backend(e),
        }
    }

    /// Reads what is left of an answer and throws it away.
    pub fn drain(&mut self) -> Outcome<()> {
        while !self.tracker.is_complete() {
            match self.step()? {
                Step::LocalInfileRequest => {
                    // an empty packet: no file
                    self.connection
                        .write_payload(&[])
                        .map_err(Failure::Backend)?;
                    self.flush()?;
                }
                _ => continue,
            }
        }
        Ok(())
    }

    /// Reads an answer without rows. The server's error becomes `Err(Failure::Server)`.
    pub fn read_ok(&mut self) -> Outcome<Done> {
        self.begin(Command::Query)?;
        let step = self.step()?;
        let done = match step {
            Step::Ok { .. } => {
                let ok = OkPacket::decode(self.payload(), self.capabilities)
                    .map_err(Failure::Backend)?;
                Done {
                    affected_rows: ok.affected_rows,
                    last_insert_id: ok.last_insert_id,
                    warnings: ok.warnings,
                    info: ok.info.to_vec(),
                }
            }
            Step::Err => return Err(self.error()),
            _ => Done::default(),
        };
        self.drain()?;
        Ok(done)
    }

    /// Reads an answer with text rows.
    pub fn read_rows(&mut self) -> Outcome<Rows> {
        self.begin(Command::Query)?;
        let mut rows = Vec::new();
        while !self.tracker.is_complete() {
            match self.step()? {
                Step::Err => return Err(self.error()),
                Step::Row => {
                    let row = TextRow::new(self.payload())
                        .map(|cell| cell.map(|c| c.map(<[u8]>::to_vec)))
                        .collect::<Result<Vec<_>, _>>()
                        .map_err(Failure::Backend)?;
                    rows.push(row);
                }
                _ => {}
            }
        }
        Ok(rows)
    }

    /// Runs a statement and reads its rows. The session's `sql_select_limit`, which cuts `SHOW` as well, is lifted for it.
    pub fn rows(&mut self, sql: &[u8]) -> Outcome<Rows> {
        // warnings are not cut, and another statement would clear them
        let whole = sql.starts_with(b"SHOW WARNINGS") || sql.ends_with(ALL_ROWS.as_bytes());
        let limit = match whole {
            true => None,
            false => self.select_limit.clone(),
        };
        let Some(limit) = limit else {
            self.put_query(sql)?;
            self.flush()?;
            return self.read_rows();
        };
        self.set_select_limit(&u64::MAX.to_string())?;
        self.put_query(sql)?;
        self.flush()?;
        let rows = self.read_rows();
        match &rows {
            Err(failure) if failure.is_fatal() => {}
            _ => {
                self.drain()?;
                self.set_select_limit(&limit)?;
            }
        }
        rows
    }

    pub fn set_select_limit(&mut self, limit: &str) -> Outcome<()> {
        self.put_query(format!("SET SESSION sql_select_limit = {limit}").as_bytes())?;
        self.flush()?;
        self.read_ok().map(|_| ())
    }

    /// The warnings that the end of a result, the last packet, counts.
    pub fn warnings_at_end(&self) -> Outcome<u16> {
        let payload = self.payload();
        let deprecated = self.capabilities.contains(Capabilities::DEPRECATE_EOF);
        if deprecated && payload.len() >= 7 {
            let ok = OkPacket::decode(payload, self.capabilities).map_err(Failure::Backend)?;
            return Ok(ok.warnings);
        }
        let eof = EofPacket::decode(payload).map_err(Failure::Backend)?;
        Ok(eof.warnings)
    }

    /// The collation that string columns of results are announced with. A statement is prepared for that and not run: warnings,
    /// `ROW_COUNT()` and `FOUND_ROWS()` stay what they are.
    pub fn announced_collation(&mut self) -> Outcome<u16> {
        let mut command = vec![Command::StmtPrepare.to_byte()];
        command.extend_from_slice(b"SELECT 'a'");
        self.put_command(&command)?;
        self.flush()?;
        self.begin(Command::StmtPrepare)?;
        let (mut statement, mut collation) = (None, None);
        while !self.tracker.is_complete() {
            match self.step()? {
                Step::Err => return Err(self.error()),
                Step::PrepareOk(ok) => statement = Some(ok.statement_id),
                Step::ColumnDef => {
                    let definition = ColumnDefinition::decode(self.payload());
                    collation = Some(definition.map_err(Failure::Backend)?.charset);
                }
                _ => {}
            }
        }
        if let Some(id) = statement {
            let mut close = Vec::new();
            encode_statement_command(&mut close, Command::StmtClose, id);
            self.put_silent(&close)?;
        }
        let none = WireError::Malformed("a preparation without columns");
        collation.ok_or(Failure::Backend(none))
    }

    /// Whether a transaction is open, or would be by the next statement.
    pub fn in_transaction(&self) -> bool {
        self.status.contains(StatusFlags::IN_TRANS)
            || !self.status.contains(StatusFlags::AUTOCOMMIT)
    }
}

/// What an OK packet said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub warnings: u16,
    pub info: Vec<u8>,
}
