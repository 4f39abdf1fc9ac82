//! Follows a server's answer from its first packet to its last.
//!
//! What a packet is cannot be told from its bytes alone: `0x00` begins an OK packet, the answer to
//! COM_STMT_PREPARE or a binary row; `0xfe` an EOF packet, an OK packet or a text cell of more than
//! 16 MiB. [`ResponseTracker`] knows the command and what came before, looks at a packet's first
//! bytes, and says which it is and whether another will come. It never looks into rows.
//!
//! ```text
//! COM_QUERY,        OK | ERR | file request, (client sends the file), OK | ERR
//! COM_STMT_EXECUTE  | count, definitions, [EOF], rows, end | count, definitions, end with CURSOR_EXISTS
//!                   … and again from the start after an OK or an end with MORE_RESULTS
//! COM_STMT_PREPARE  ERR | OK, definitions of parameters, [EOF], definitions of columns, [EOF]
//! COM_STMT_FETCH    rows, end | ERR
//! COM_FIELD_LIST    definitions, end | ERR
//! COM_STATISTICS    a text
//! others            OK | EOF | ERR
//! ```
//!
//! EOF packets in brackets are left out, and ends are OK packets, with `DEPRECATE_EOF`.

use crate::capabilities::{Capabilities, StatusFlags};
use crate::error::{WireError, WireResult};
use crate::messages::{ComStmtPrepareOk, Command, EofPacket, ErrPacket, OkPacket};
use crate::packets::Connection;
use crate::rows::{ResponseHead, RowPacket};

/// What a packet of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Success without rows.
    Ok {
        /// Status flags.
        status: StatusFlags,
    },
    /// An error; always the last packet of an answer.
    Err,
    /// How many columns the rows will have.
    ColumnCount(u16),
    /// Definition of a column.
    ColumnDef,
    /// End of the definitions. With `CURSOR_EXISTS` no rows follow, if a cursor was asked for.
    EofAfterColumns {
        /// Status flags.
        status: StatusFlags,
    },
    /// A row, text or binary.
    Row,
    /// End of the rows of a result, or the end of an answer that has nothing but an end
    /// (COM_SET_OPTION). The packet is an EOF packet, or an OK packet with `DEPRECATE_EOF`.
    EndOfRows {
        /// Status flags.
        status: StatusFlags,
    },
    /// The server wants the content of a file: the client is asked for it next, then the server
    /// answers again.
    LocalInfileRequest,
    /// A statement is prepared.
    PrepareOk(ComStmtPrepareOk),
    /// Definition of a parameter.
    ParamDef,
    /// End of the parameters' definitions.
    EofAfterParams,
    /// End of the definitions of a prepared statement's columns.
    EofAfterPrepareColumns,
    /// The text of COM_STATISTICS.
    Statistics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The first packet of a result of COM_QUERY or COM_STMT_EXECUTE.
    Head,
    ColumnDefs {
        left: u16,
    },
    EofAfterColumns,
    Rows,
    PrepareHead,
    ParamDefs {
        left: u16,
        columns: u16,
    },
    EofAfterParams {
        columns: u16,
    },
    PrepareColumnDefs {
        left: u16,
    },
    EofAfterPrepareColumns,
    /// Rows of a cursor.
    Fetch,
    FieldList,
    Statistics,
    /// One packet: OK, EOF or an error.
    Single,
    Done,
}

/// Follows the answers to one connection's commands, one command after the other.
#[derive(Debug, Clone)]
pub struct ResponseTracker {
    deprecate_eof: bool,
    state: State,
    /// The present command is an execution that asks for a cursor.
    cursor: bool,
    /// Flags that the end of the present rows has even if they are not in it. MySQL sets
    /// `MORE_RESULTS` for the OUT parameters of a CALL only in the EOF packet before their row, and
    /// clients go by that.
    inherited: StatusFlags,
    /// Since this was asked last.
    rows: u64,
}

impl ResponseTracker {
    /// For a connection on which these capabilities were agreed.
    pub fn new(capabilities: Capabilities) -> Self {
        Self {
            deprecate_eof: capabilities.contains(Capabilities::DEPRECATE_EOF),
            state: State::Done,
            cursor: false,
            inherited: StatusFlags::empty(),
            rows: 0,
        }
    }

    /// An execution was sent that asks for a cursor. Only then is one open where the server says
    /// `CURSOR_EXISTS`: of a procedure with a cursor of its own, it says so and sends rows.
    pub fn begin_cursor(&mut self) {
        self.state = State::Head;
        self.cursor = true;
    }

    /// A command was sent that asks for no cursor. Fails for commands whose answers are not
    /// understood here: logins, replication, and what is unknown.
    pub fn begin(&mut self, command: Command) -> WireResult<()> {
        self.cursor = false;
        self.state = match command {
            Command::Query | Command::StmtExecute | Command::ProcessInfo => State::Head,
            Command::StmtPrepare => State::PrepareHead,
            Command::StmtFetch => State::Fetch,
            Command::FieldList => State::FieldList,
            Command::Statistics => State::Statistics,
            Command::Quit | Command::StmtClose | Command::StmtSendLongData => State::Done,
            Command::InitDb
            | Command::CreateDb
            | Command::DropDb
            | Command::Refresh
            | Command::Shutdown
            | Command::ProcessKill
            | Command::Debug
            | Command::Ping
            | Command::StmtReset
            | Command::SetOption
            | Command::ResetConnection => State::Single,
            _ => {
                return Err(WireError::Malformed(
                    "command whose answer is not understood",
                ));
            }
        };
        Ok(())
    }

    /// How many rows there were since this was asked last.
    pub fn take_rows(&mut self) -> u64 {
        std::mem::take(&mut self.rows)
    }

    /// True when no packet is due.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.state == State::Done
    }

    /// True when a row is due or the end of rows.
    #[inline]
    pub fn in_rows(&self) -> bool {
        matches!(self.state, State::Rows | State::Fetch)
    }

    /// Takes the next packet of the answer and says what it is.
    #[inline]
    pub fn step(&mut self, payload: &[u8]) -> WireResult<Step> {
        match self.state {
            State::Rows | State::Fetch => self.step_rows(payload),
            _ => self.step_other(payload),
        }
    }

    #[inline]
    fn step_rows(&mut self, payload: &[u8]) -> WireResult<Step> {
        match payload.first() {
            // nearly all of them: neither an end nor an error begins so
            Some(0..0xfe) => {
                self.rows += 1;
                return Ok(Step::Row);
            }
            Some(_) => {}
            None => return Err(WireError::Malformed("an empty row")),
        }
        match RowPacket::classify(payload, self.deprecate_eof) {
            RowPacket::Row => {
                self.rows += 1;
                Ok(Step::Row)
            }
            RowPacket::Err => Ok(self.error()),
            RowPacket::End => {
                let status = self.end_status(payload)? | std::mem::take(&mut self.inherited);
                self.state = if self.state == State::Rows {
                    after_result(status)
                } else {
                    State::Done
                };
                Ok(Step::EndOfRows { status })
            }
        }
    }

    fn step_other(&mut self, payload: &[u8]) -> WireResult<Step> {
        if ErrPacket::is_err(payload) && self.state != State::Done {
            return Ok(self.error());
        }
        match self.state {
            State::Head => self.step_head(payload),
            State::ColumnDefs { left } => {
                check_definition(payload)?;
                self.state = self.column_defs(left - 1);
                Ok(Step::ColumnDef)
            }
            State::EofAfterColumns => {
                let status = EofPacket::decode(payload)?.status;
                if status.contains(StatusFlags::PS_OUT_PARAMS) {
                    self.inherited =
                        status & (StatusFlags::PS_OUT_PARAMS | StatusFlags::MORE_RESULTS);
                }
                self.state = if self.cursor && status.contains(StatusFlags::CURSOR_EXISTS) {
                    after_result(status)
                } else {
                    State::Rows
                };
                Ok(Step::EofAfterColumns { status })
            }
            State::PrepareHead => {
                let ok = ComStmtPrepareOk::decode(payload)?;
                self.state = self.param_defs(ok.num_params, ok.num_columns);
                Ok(Step::PrepareOk(ok))
            }
            State::ParamDefs { left, columns } => {
                check_definition(payload)?;
                self.state = match left - 1 {
                    0 if self.deprecate_eof => self.prepare_column_defs(columns),
                    0 => State::EofAfterParams { columns },
                    left => State::ParamDefs { left, columns },
                };
                Ok(Step::ParamDef)
            }
            State::EofAfterParams { columns } => {
                EofPacket::decode(payload)?;
                self.state = self.prepare_column_defs(columns);
                Ok(Step::EofAfterParams)
            }
            State::PrepareColumnDefs { left } => {
                check_definition(payload)?;
                self.state = match left - 1 {
                    0 if self.deprecate_eof => State::Done,
                    0 => State::EofAfterPrepareColumns,
                    left => State::PrepareColumnDefs { left },
                };
                Ok(Step::ColumnDef)
            }
            State::EofAfterPrepareColumns => {
                EofPacket::decode(payload)?;
                self.state = State::Done;
                Ok(Step::EofAfterPrepareColumns)
            }
            State::FieldList => match RowPacket::classify(payload, self.deprecate_eof) {
                RowPacket::End => {
                    let status = self.end_status(payload)?;
                    self.state = State::Done;
                    Ok(Step::EndOfRows { status })
                }
                _ => {
                    check_definition(payload)?;
                    Ok(Step::ColumnDef)
                }
            },
            State::Statistics => {
                self.state = State::Done;
                Ok(Step::Statistics)
            }
            State::Single => {
                let step = match payload.first() {
                    Some(&OkPacket::HEADER) => Step::Ok {
                        status: OkPacket::status_of(payload)?,
                    },
                    Some(&EofPacket::HEADER) => Step::EndOfRows {
                        status: self.end_status(payload)?,
                    },
                    _ => return Err(WireError::Malformed("neither OK, EOF nor an error")),
                };
                self.state = State::Done;
                Ok(step)
            }
            State::Done | State::Rows | State::Fetch => {
                Err(WireError::Malformed("packet behind the end of the answer"))
            }
        }
    }

    fn step_head(&mut self, payload: &[u8]) -> WireResult<Step> {
        match ResponseHead::classify(payload)? {
            ResponseHead::Err => Ok(self.error()),
            ResponseHead::LocalInfile => Ok(Step::LocalInfileRequest),
            ResponseHead::Ok => {
                let status = OkPacket::status_of(payload)?;
                self.state = after_result(status);
                Ok(Step::Ok { status })
            }
            ResponseHead::Columns(count) => {
                let count =
                    u16::try_from(count).map_err(|_| WireError::Malformed("count of columns"))?;
                self.state = self.column_defs(count);
                Ok(Step::ColumnCount(count))
            }
        }
    }

    fn column_defs(&self, left: u16) -> State {
        match left {
            0 if self.deprecate_eof => State::Rows,
            0 => State::EofAfterColumns,
            left => State::ColumnDefs { left },
        }
    }

    fn param_defs(&self, params: u16, columns: u16) -> State {
        match params {
            0 => self.prepare_column_defs(columns),
            left => State::ParamDefs { left, columns },
        }
    }

    fn prepare_column_defs(&self, columns: u16) -> State {
        match columns {
            0 => State::Done,
            left => State::PrepareColumnDefs { left },
        }
    }

    fn error(&mut self) -> Step {
        self.inherited = StatusFlags::empty();
        self.state = State::Done;
        Step::Err
    }

    /// Status flags of an end. Some servers answer with a true EOF packet in places where an OK
    /// packet is due.
    fn end_status(&self, payload: &[u8]) -> WireResult<StatusFlags> {
        if self.deprecate_eof && payload.len() >= 7 {
            OkPacket::status_of(payload)
        } else {
            EofPacket::decode(payload).map(|eof| eof.status)
        }
    }
}

fn after_result(status: StatusFlags) -> State {
    if status.contains(StatusFlags::MORE_RESULTS) {
        State::Head
    } else {
        State::Done
    }
}

/// A definition begins with the catalog, which is always `def`; anything else means that the count
/// of packets is off.
fn check_definition(payload: &[u8]) -> WireResult<()> {
    if payload.starts_with(b"\x03def") {
        Ok(())
    } else {
        Err(WireError::Malformed("not a column definition"))
    }
}

/// Relays rows unchanged until something comes that is not a row, and returns what it is. That
/// packet can be had from [`Connection::last_payload`] of `from` and was not written to `to`.
pub fn relay_rows(
    tracker: &mut ResponseTracker,
    from: &mut Connection,
    to: &mut Connection,
) -> WireResult<Step> {
    loop {
        let payload = from.read_payload()?;
        match tracker.step(payload)? {
            Step::Row => to.write_payload(payload)?,
            other => return Ok(other),
        }
    }
}
