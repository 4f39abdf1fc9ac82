//! The execution of a prepared statement.
//!
//! Layout: command, statement id, cursor type, iteration count (always 1) and, if the statement has
//! parameters: a bitmap of NULLs, a byte that tells whether types follow, the types, the values.
//! Two things are not in the packet: types that were sent with an earlier execution, and values
//! sent with COM_STMT_SEND_LONG_DATA. The decoder is therefore given the remembered types and asks
//! which parameters were sent before.

use super::Command;
use crate::binary_value::{BinaryValue, ParamType};
use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// Kind of cursor that an execution asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CursorType(pub u8);

impl CursorType {
    /// All rows at once.
    pub const NO_CURSOR: Self = Self(0);
    /// Rows on demand, by COM_STMT_FETCH.
    pub const READ_ONLY: Self = Self(1);
    /// The flag that says a count of parameters follows (query attributes); never agreed to.
    const PARAMETER_COUNT: u8 = 8;

    /// Whether this payload of an execution asks for a cursor. What else is wrong with it is found
    /// later.
    pub fn is_asked_for(payload: &[u8]) -> bool {
        // behind the command and the statement
        let asked = payload.get(5).copied().unwrap_or_default();
        asked & Self::READ_ONLY.0 != 0
    }
}

/// Head of an execution, and the bytes of its parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ComStmtExecute<'a> {
    /// The statement.
    pub statement_id: u32,
    /// The cursor asked for.
    pub cursor: CursorType,
    /// Always 1.
    pub iterations: u32,
    /// True when the packet carries types.
    pub new_params_bound: bool,
    num_params: usize,
    null_bitmap: &'a [u8],
    values: &'a [u8],
}

/// One parameter of an execution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Param<'a> {
    /// Its type.
    pub ty: ParamType,
    /// Its value.
    pub value: BinaryValue<'a>,
}

impl<'a> ComStmtExecute<'a> {
    /// Reads the head. `num_params` is what the answer to COM_STMT_PREPARE said; `types` holds the
    /// statement's remembered types and is replaced when the packet brings new ones.
    pub fn decode(
        payload: &'a [u8],
        num_params: usize,
        types: &mut Vec<ParamType>,
    ) -> WireResult<Self> {
        let mut r = Reader::new(payload);
        if r.u8()? != Command::StmtExecute.to_byte() {
            return Err(WireError::Malformed("not COM_STMT_EXECUTE"));
        }
        let statement_id = r.u32()?;
        let cursor = CursorType(r.u8()?);
        if cursor.0 & CursorType::PARAMETER_COUNT != 0 {
            return Err(WireError::Malformed("query attributes were not agreed on"));
        }
        let iterations = r.u32()?;
        let mut execute = Self {
            statement_id,
            cursor,
            iterations,
            new_params_bound: false,
            num_params,
            null_bitmap: &[],
            values: &[],
        };
        if num_params == 0 {
            return Ok(execute);
        }
        execute.null_bitmap = r.bytes(num_params.div_ceil(8))?;
        execute.new_params_bound = r.u8()? == 1;
        if execute.new_params_bound {
            // Checked before anything is thrown away or allocated.
            if r.remaining() < num_params.saturating_mul(2) {
                return Err(WireError::Malformed("message ends too early"));
            }
            types.clear();
            for _ in 0..num_params {
                types.push(ParamType::decode(&mut r)?);
            }
        } else if types.len() != num_params {
            return Err(WireError::Malformed("parameters without types"));
        }
        execute.values = r.rest();
        Ok(execute)
    }

    /// The parameters, one after the other. `types` are those that [`ComStmtExecute::decode`] left
    /// behind; `sent_before` tells for an index whether COM_STMT_SEND_LONG_DATA brought the value.
    pub fn params<F: Fn(usize) -> bool>(
        &self,
        types: &'a [ParamType],
        sent_before: F,
    ) -> Params<'a, F> {
        Params {
            null_bitmap: self.null_bitmap,
            values: Reader::new(self.values),
            // Types remembered for another statement must not make up parameters.
            types: &types[..types.len().min(self.num_params)],
            index: 0,
            sent_before,
        }
    }
}

impl std::fmt::Debug for ComStmtExecute<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ComStmtExecute")
            .field("statement_id", &self.statement_id)
            .field("cursor", &self.cursor)
            .field("new_params_bound", &self.new_params_bound)
            .field("values_length", &self.values.len())
            .finish_non_exhaustive()
    }
}

/// Iterator over the parameters of an execution. Yields an error and ends when a value is
/// malformed. Bytes behind the last are left alone, as by the servers: mysql2 before 3.3 has room
/// for values that are NULL.
pub struct Params<'a, F> {
    null_bitmap: &'a [u8],
    values: Reader<'a>,
    types: &'a [ParamType],
    index: usize,
    sent_before: F,
}

impl<'a, F: Fn(usize) -> bool> Params<'a, F> {
    fn advance(&mut self, ty: ParamType) -> WireResult<Param<'a>> {
        let i = self.index;
        let is_null = self
            .null_bitmap
            .get(i / 8)
            .is_some_and(|byte| byte & (1 << (i % 8)) != 0);
        // The servers look for long data first: such a parameter has a value even if its NULL bit
        // is set.
        let value = if (self.sent_before)(i) {
            BinaryValue::LongData
        } else if is_null {
            BinaryValue::Null
        } else {
            BinaryValue::decode(&mut self.values, ty)?
        };
        Ok(Param { ty, value })
    }
}

impl<'a, F: Fn(usize) -> bool> Iterator for Params<'a, F> {
    type Item = WireResult<Param<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let ty = *self.types.get(self.index)?;
        let param = self.advance(ty);
        self.index = if param.is_ok() {
            self.index + 1
        } else {
            self.types.len()
        };
        Some(param)
    }
}

/// Writes an execution into a buffer, parameter by parameter; types always included.
///
/// The bitmap and the types lie before the values, so room for them is made first and filled in as
/// parameters come.
#[derive(Debug)]
pub struct ExecuteWriter {
    bitmap_at: usize,
    types_at: usize,
    num_params: usize,
    next: usize,
}

impl ExecuteWriter {
    /// Appends the head and makes room for `num_params` parameters.
    pub fn begin(
        out: &mut Vec<u8>,
        statement_id: u32,
        cursor: CursorType,
        num_params: usize,
    ) -> Self {
        out.put_u8(Command::StmtExecute.to_byte());
        out.put_u32(statement_id);
        out.put_u8(cursor.0);
        out.put_u32(1);
        let bitmap_at = out.len();
        let mut types_at = bitmap_at;
        if num_params > 0 {
            out.resize(bitmap_at + num_params.div_ceil(8), 0);
            out.put_u8(1);
            types_at = out.len();
            out.resize(types_at + num_params * 2, 0);
        }
        Self {
            bitmap_at,
            types_at,
            num_params,
            next: 0,
        }
    }

    /// Appends the next parameter.
    pub fn param(
        &mut self,
        out: &mut Vec<u8>,
        ty: ParamType,
        value: &BinaryValue<'_>,
    ) -> WireResult<()> {
        let i = self.start_param(out, ty)?;
        if matches!(value, BinaryValue::Null) {
            out[self.bitmap_at + i / 8] |= 1 << (i % 8);
        }
        value.encode(out, ty)
    }

    /// Begins the next parameter, whose bytes (length prefix included) the caller appends to `out`
    /// next. With it a value can be encrypted straight into the buffer.
    pub fn start_param(&mut self, out: &mut [u8], ty: ParamType) -> WireResult<usize> {
        if self.next >= self.num_params {
            return Err(WireError::Malformed("more parameters than announced"));
        }
        let i = self.next;
        let at = self.types_at + i * 2;
        out[at..at + 2].copy_from_slice(&ty.to_bytes());
        self.next += 1;
        Ok(i)
    }

    /// Checks that every parameter was written.
    pub fn finish(self) -> WireResult<()> {
        if self.next == self.num_params {
            Ok(())
        } else {
            Err(WireError::Malformed("fewer parameters than announced"))
        }
    }
}
