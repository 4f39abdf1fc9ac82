//! The header of a packet: length and sequence number.

/// Length of a packet's header.
pub const HEADER_LENGTH: usize = 4;
/// Data in a full packet; a packet this long is followed by another of the same message.
pub const MAX_PACKET_DATA: usize = 0xff_ffff;

/// Length and sequence number of the packet that begins here.
#[inline]
pub(crate) fn parse_header(bytes: &[u8]) -> Option<(usize, u8)> {
    let &[a, b, c, sequence] = bytes.first_chunk()?;
    Some((u32::from_le_bytes([a, b, c, 0]) as usize, sequence))
}

/// The header of a packet of this length.
#[inline]
pub(crate) fn header_bytes(length: usize, sequence: u8) -> [u8; HEADER_LENGTH] {
    let [a, b, c, _] = (length as u32).to_le_bytes();
    [a, b, c, sequence]
}
