//! The commands that name a prepared statement and little else: COM_STMT_CLOSE, COM_STMT_RESET,
//! COM_STMT_FETCH.

use super::Command;
use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// The statement that a COM_STMT_EXECUTE, CLOSE, RESET, FETCH or SEND_LONG_DATA is about.
pub fn statement_id(payload: &[u8]) -> WireResult<u32> {
    let mut r = Reader::new(payload);
    match Command::from_byte(r.u8()?) {
        Command::StmtExecute
        | Command::StmtClose
        | Command::StmtReset
        | Command::StmtFetch
        | Command::StmtSendLongData => r.u32(),
        _ => Err(WireError::Malformed("command without a statement id")),
    }
}

/// Appends a command that consists of a statement's id, such as COM_STMT_CLOSE or COM_STMT_RESET.
pub fn encode_statement_command(out: &mut Vec<u8>, command: Command, statement_id: u32) {
    out.put_u8(command.to_byte());
    out.put_u32(statement_id);
}

/// Asks for the next rows of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComStmtFetch {
    /// The statement whose cursor it is.
    pub statement_id: u32,
    /// How many rows at most.
    pub rows: u32,
}

impl ComStmtFetch {
    /// Reads the command.
    pub fn decode(payload: &[u8]) -> WireResult<Self> {
        let mut r = Reader::new(payload);
        if r.u8()? != Command::StmtFetch.to_byte() {
            return Err(WireError::Malformed("not COM_STMT_FETCH"));
        }
        Ok(Self {
            statement_id: r.u32()?,
            rows: r.u32()?,
        })
    }

    /// Appends the command.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_statement_command(out, Command::StmtFetch, self.statement_id);
        out.put_u32(self.rows);
    }
}
