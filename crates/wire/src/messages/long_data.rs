//! A parameter's value sent ahead of the execution, in pieces.

use super::Command;
use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// One piece of a parameter's value. The server does not answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ComStmtSendLongData<'a> {
    /// The statement.
    pub statement_id: u32,
    /// Index of the parameter.
    pub param: u16,
    /// The piece, added to what was sent before.
    pub data: &'a [u8],
}

impl<'a> ComStmtSendLongData<'a> {
    /// Reads the command.
    pub fn decode(payload: &'a [u8]) -> WireResult<Self> {
        let mut r = Reader::new(payload);
        if r.u8()? != Command::StmtSendLongData.to_byte() {
            return Err(WireError::Malformed("not COM_STMT_SEND_LONG_DATA"));
        }
        Ok(Self {
            statement_id: r.u32()?,
            param: r.u16()?,
            data: r.rest(),
        })
    }

    /// Appends the command.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(Command::StmtSendLongData.to_byte());
        out.put_u32(self.statement_id);
        out.put_u16(self.param);
        out.put_bytes(self.data);
    }
}

impl std::fmt::Debug for ComStmtSendLongData<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ComStmtSendLongData")
            .field("statement_id", &self.statement_id)
            .field("param", &self.param)
            .field("data_length", &self.data.len())
            .finish()
    }
}
