//! Rows of both protocols, and the first byte that tells a row from what is not one.
//!
//! A text row is a string or NULL for each column. A binary row is a zero byte, a bitmap of NULLs,
//! and the other cells in the layouts of their columns' types. Both are walked in place: a cell is
//! a slice of the packet, and a cell that nobody needs to look at is copied *raw*, its length
//! prefix included.

use crate::binary_value::{BinaryValue, ColumnType, ParamType};
use crate::codec::{NULL_CELL, PutWire, Reader};
use crate::error::{WireError, WireResult};
use crate::messages::{EofPacket, ErrPacket};
use crate::packets::MAX_PACKET_DATA;

/// What the first packet of an answer to COM_QUERY or COM_STMT_EXECUTE is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseHead {
    /// Success without rows.
    Ok,
    /// An error.
    Err,
    /// The server wants the content of a client's file.
    LocalInfile,
    /// Rows of so many columns follow.
    Columns(u64),
}

impl ResponseHead {
    /// Tells by the payload.
    #[inline]
    pub fn classify(payload: &[u8]) -> WireResult<Self> {
        match payload.first() {
            None => Err(WireError::Malformed("empty answer")),
            Some(0x00) => Ok(Self::Ok),
            Some(0xff) => Ok(Self::Err),
            Some(0xfb) => Ok(Self::LocalInfile),
            Some(_) => {
                let mut r = Reader::new(payload);
                let count = r.lenenc_int()?;
                // No statement has more columns than COM_STMT_PREPARE can count, and nothing may
                // follow.
                if !r.is_empty() || count > u16::MAX.into() {
                    return Err(WireError::Malformed("count of columns"));
                }
                Ok(Self::Columns(count))
            }
        }
    }
}

/// What a packet among rows is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowPacket {
    /// A row.
    Row,
    /// The end: an EOF packet, or an OK packet with `DEPRECATE_EOF`.
    End,
    /// An error that ends the rows.
    Err,
}

impl RowPacket {
    /// Tells by the payload.
    ///
    /// A text row may begin with `0xfe`, too: its first cell is then longer than 16 MiB, and so is
    /// the payload.
    #[inline]
    pub fn classify(payload: &[u8], deprecate_eof: bool) -> Self {
        match payload.first() {
            Some(0xfe) if deprecate_eof && payload.len() < MAX_PACKET_DATA => Self::End,
            Some(0xfe) if !deprecate_eof && EofPacket::is_eof(payload) => Self::End,
            _ if ErrPacket::is_err(payload) => Self::Err,
            _ => Self::Row,
        }
    }
}

/// The cells of a text row; `None` is NULL. After an error the iterator ends.
#[derive(Clone)]
pub struct TextRow<'a> {
    reader: Reader<'a>,
}

impl<'a> TextRow<'a> {
    /// Starts at the first cell.
    pub fn new(payload: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(payload),
        }
    }

    /// The next cell; an error at the end of the row.
    #[inline]
    pub fn cell(&mut self) -> WireResult<Option<&'a [u8]>> {
        self.reader.lenenc_bytes_or_null()
    }

    /// The next cell as it lies in the packet, length prefix or NULL marker included; an error at
    /// the end of the row.
    #[inline]
    pub fn raw_cell(&mut self) -> WireResult<&'a [u8]> {
        let start = self.reader.as_slice();
        self.cell()?;
        Ok(&start[..start.len() - self.reader.remaining()])
    }

    /// The next `n` cells as they lie in the packet.
    #[inline]
    pub fn raw_cells(&mut self, n: usize) -> WireResult<&'a [u8]> {
        let start = self.reader.as_slice();
        for _ in 0..n {
            self.cell()?;
        }
        Ok(&start[..start.len() - self.reader.remaining()])
    }

    /// All cells that are left, as they lie in the packet, unchecked.
    pub fn raw_rest(&mut self) -> &'a [u8] {
        self.reader.rest()
    }

    /// True behind the last cell.
    pub fn is_empty(&self) -> bool {
        self.reader.is_empty()
    }
}

impl<'a> Iterator for TextRow<'a> {
    type Item = WireResult<Option<&'a [u8]>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let cell = self.cell();
        if cell.is_err() {
            self.reader.rest();
        }
        Some(cell)
    }
}

/// Appends a cell of a text row.
#[inline]
pub fn put_text_cell(out: &mut Vec<u8>, cell: Option<&[u8]>) {
    match cell {
        None => out.put_u8(NULL_CELL),
        Some(bytes) => out.put_lenenc_bytes(bytes),
    }
}

/// Begins a cell of a text row whose length is not known yet; ended by [`end_text_cell`]. The bytes
/// are appended in between, so that a value can be opened straight into the output.
///
/// One byte is kept free for the length; if the cell turns out longer than 250 bytes its content is
/// moved.
#[inline]
pub fn begin_text_cell(out: &mut Vec<u8>) -> usize {
    out.put_u8(0);
    out.len()
}

/// Ends the cell that began at `start`, the value that [`begin_text_cell`] returned.
#[inline]
pub fn end_text_cell(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    if length <= 250 {
        out[start - 1] = length as u8;
        return;
    }
    let mut prefix = Vec::with_capacity(9);
    prefix.put_lenenc_int(length as u64);
    out.splice(start - 1..start, prefix);
}

/// First byte of a binary row.
const BINARY_ROW_HEADER: u8 = 0;
/// Bits of a binary row's bitmap before that of the first column.
const BITMAP_OFFSET: usize = 2;

fn bitmap_length(columns: usize) -> usize {
    (columns + BITMAP_OFFSET).div_ceil(8)
}

fn bitmap_bit(column: usize) -> (usize, u8) {
    let bit = column + BITMAP_OFFSET;
    (bit / 8, 1 << (bit % 8))
}

/// The cells of a binary row. After an error the iterator ends.
#[derive(Clone)]
pub struct BinaryRow<'a, 't> {
    bitmap: &'a [u8],
    reader: Reader<'a>,
    types: &'t [ParamType],
    column: usize,
}

/// A cell of a binary row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BinaryCell<'a> {
    /// The column's type.
    pub ty: ParamType,
    /// The value as it lies in the packet, length prefix included; `None` is NULL.
    pub raw: Option<&'a [u8]>,
}

impl<'a> BinaryCell<'a> {
    /// Decodes the value.
    pub fn value(&self) -> WireResult<BinaryValue<'a>> {
        match self.raw {
            None => Ok(BinaryValue::Null),
            Some(raw) => BinaryValue::decode(&mut Reader::new(raw), self.ty),
        }
    }

    /// The bytes of a length-encoded value without their length; `None` for NULL.
    pub fn bytes(&self) -> WireResult<Option<&'a [u8]>> {
        self.raw
            .map(|raw| Reader::new(raw).lenenc_bytes())
            .transpose()
    }
}

impl std::fmt::Debug for BinaryCell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BinaryCell")
            .field("ty", &self.ty)
            .field("raw_length", &self.raw.map(<[u8]>::len))
            .finish()
    }
}

impl<'a, 't> BinaryRow<'a, 't> {
    /// Starts at the first cell. `types` are the columns' types
    /// ([`ColumnDefinition::param_type`](crate::messages::ColumnDefinition::param_type)).
    pub fn new(payload: &'a [u8], types: &'t [ParamType]) -> WireResult<Self> {
        let mut reader = Reader::new(payload);
        if reader.u8()? != BINARY_ROW_HEADER {
            return Err(WireError::Malformed("not a binary row"));
        }
        let bitmap = reader.bytes(bitmap_length(types.len()))?;
        Ok(Self {
            bitmap,
            reader,
            types,
            column: 0,
        })
    }

    fn advance(&mut self, ty: ParamType) -> WireResult<BinaryCell<'a>> {
        let (byte, mask) = bitmap_bit(self.column);
        let is_null = self.bitmap.get(byte).is_some_and(|b| b & mask != 0);
        let raw = if is_null {
            None
        } else {
            Some(ty.kind.raw_value(&mut self.reader)?)
        };
        self.column += 1;
        if self.column == self.types.len() && !self.reader.is_empty() {
            return Err(WireError::Malformed("bytes behind the last cell"));
        }
        Ok(BinaryCell { ty, raw })
    }
}

impl<'a> Iterator for BinaryRow<'a, '_> {
    type Item = WireResult<BinaryCell<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let ty = *self.types.get(self.column)?;
        let cell = self.advance(ty);
        if cell.is_err() {
            self.column = self.types.len();
        }
        Some(cell)
    }
}

/// Writes a binary row into a buffer, cell by cell.
#[derive(Debug)]
pub struct BinaryRowWriter {
    bitmap_at: usize,
    columns: usize,
    next: usize,
}

impl BinaryRowWriter {
    /// Appends the head of a row with so many columns.
    pub fn begin(out: &mut Vec<u8>, columns: usize) -> Self {
        out.put_u8(BINARY_ROW_HEADER);
        let bitmap_at = out.len();
        out.resize(bitmap_at + bitmap_length(columns), 0);
        Self {
            bitmap_at,
            columns,
            next: 0,
        }
    }

    /// Begins the next cell, whose bytes (length prefix included) the caller appends to `out` next.
    pub fn start_cell(&mut self) -> WireResult<()> {
        if self.next >= self.columns {
            return Err(WireError::Malformed("more cells than columns"));
        }
        self.next += 1;
        Ok(())
    }

    /// Appends NULL.
    pub fn null(&mut self, out: &mut [u8]) -> WireResult<()> {
        let (byte, mask) = bitmap_bit(self.next);
        self.start_cell()?;
        out[self.bitmap_at + byte] |= mask;
        Ok(())
    }

    /// Appends a cell that is copied from another row.
    pub fn raw(&mut self, out: &mut Vec<u8>, raw: Option<&[u8]>) -> WireResult<()> {
        match raw {
            None => self.null(out),
            Some(bytes) => {
                self.start_cell()?;
                out.put_bytes(bytes);
                Ok(())
            }
        }
    }

    /// Appends a value in its column's layout.
    pub fn value(
        &mut self,
        out: &mut Vec<u8>,
        ty: ParamType,
        value: &BinaryValue<'_>,
    ) -> WireResult<()> {
        if matches!(value, BinaryValue::Null) || ty.kind == ColumnType::NULL {
            return self.null(out);
        }
        self.start_cell()?;
        value.encode(out, ty)
    }

    /// Checks that every cell was written.
    pub fn finish(self) -> WireResult<()> {
        if self.next == self.columns {
            Ok(())
        } else {
            Err(WireError::Malformed("fewer cells than columns"))
        }
    }
}
