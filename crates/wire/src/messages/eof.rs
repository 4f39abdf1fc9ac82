//! The end of column definitions and of rows, for peers without `DEPRECATE_EOF`.

use crate::capabilities::StatusFlags;
use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// End of column definitions or rows. With `DEPRECATE_EOF` an [`OkPacket`](super::OkPacket) with
/// the same first byte takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EofPacket {
    /// Number of warnings.
    pub warnings: u16,
    /// Status flags.
    pub status: StatusFlags,
}

impl EofPacket {
    /// The packet's first byte.
    pub const HEADER: u8 = 0xfe;

    /// True for an EOF packet. A text row may begin with the same byte, but is then longer than 8
    /// bytes.
    #[inline]
    pub fn is_eof(payload: &[u8]) -> bool {
        payload.len() < 9 && payload.first() == Some(&Self::HEADER)
    }

    /// Reads the packet.
    #[inline]
    pub fn decode(payload: &[u8]) -> WireResult<Self> {
        if !Self::is_eof(payload) {
            return Err(WireError::Malformed("not an EOF packet"));
        }
        let mut r = Reader::new(payload);
        r.skip(1)?;
        Ok(Self {
            warnings: r.u16()?,
            status: StatusFlags::from_bits_retain(r.u16()?),
        })
    }

    /// Appends the packet.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(Self::HEADER);
        out.put_u16(self.warnings);
        out.put_u16(self.status.bits());
    }
}
