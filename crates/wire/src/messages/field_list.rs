//! The old way to ask for the columns of a table, still used by clients for completion.

use super::Command;
use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// Asks for the columns of a table of the current database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComFieldList<'a> {
    /// The table.
    pub table: &'a [u8],
    /// LIKE pattern for the columns; empty for all.
    pub wildcard: &'a [u8],
}

impl<'a> ComFieldList<'a> {
    /// Reads the command.
    pub fn decode(payload: &'a [u8]) -> WireResult<Self> {
        let mut r = Reader::new(payload);
        if r.u8()? != Command::FieldList.to_byte() {
            return Err(WireError::Malformed("not COM_FIELD_LIST"));
        }
        let table = r.nul_bytes_or_rest();
        let wildcard = r.rest();
        Ok(Self {
            table,
            wildcard: wildcard.strip_suffix(&[0]).unwrap_or(wildcard),
        })
    }

    /// Appends the command.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(Command::FieldList.to_byte());
        out.put_nul_bytes(self.table);
        out.put_bytes(self.wildcard);
    }
}
