//! The answer to COM_STMT_PREPARE.

use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// A statement is prepared. Definitions of its parameters and then of its columns follow, each
/// group ended by an EOF packet without `DEPRECATE_EOF`; an empty group has neither definitions nor
/// end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComStmtPrepareOk {
    /// Names the statement in later commands.
    pub statement_id: u32,
    /// Columns of its result; 0 when it has none.
    pub num_columns: u16,
    /// Its parameters.
    pub num_params: u16,
    /// Number of warnings.
    pub warnings: u16,
}

impl ComStmtPrepareOk {
    /// Reads the answer.
    pub fn decode(payload: &[u8]) -> WireResult<Self> {
        let mut r = Reader::new(payload);
        if r.u8()? != 0 {
            return Err(WireError::Malformed("not the answer to COM_STMT_PREPARE"));
        }
        let statement_id = r.u32()?;
        let num_columns = r.u16()?;
        let num_params = r.u16()?;
        r.skip(1)?;
        // Servers before 4.1.13 sent no count of warnings.
        let warnings = if r.is_empty() { 0 } else { r.u16()? };
        Ok(Self {
            statement_id,
            num_columns,
            num_params,
            warnings,
        })
    }

    /// Appends the answer.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(0);
        out.put_u32(self.statement_id);
        out.put_u16(self.num_columns);
        out.put_u16(self.num_params);
        out.put_u8(0);
        out.put_u16(self.warnings);
    }
}
