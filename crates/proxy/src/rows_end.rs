//! The end of rows, which has two forms.

use onionskin_wire::messages::{EofPacket, OkPacket};
use onionskin_wire::{Capabilities, StatusFlags, WireResult};

/// What the end of rows says.
#[derive(Clone, Copy)]
pub(crate) struct RowsEnd {
    pub status: StatusFlags,
    pub warnings: u16,
}

impl RowsEnd {
    /// Reads the packet, as a peer with these capabilities sends it.
    pub fn decode(payload: &[u8], capabilities: Capabilities) -> WireResult<RowsEnd> {
        let (status, warnings) = match EofPacket::is_eof(payload) && payload.len() < 7 {
            true => EofPacket::decode(payload).map(|eof| (eof.status, eof.warnings)),
            false => OkPacket::decode(payload, capabilities).map(|ok| (ok.status, ok.warnings)),
        }?;
        Ok(RowsEnd { status, warnings })
    }
}
