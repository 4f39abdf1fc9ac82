//! The integers and strings from which messages are made.
//!
//! Integers are little endian. A *length-encoded* integer takes one byte below 251, else a marker
//! byte (`0xfc`, `0xfd`, `0xfe`) and two, three or eight bytes; `0xfb` in its place means NULL in
//! text rows, `0xff` starts an error packet. A length-encoded string is such an integer followed by
//! that many bytes.
//!
//! [`Reader`] checks every length against the bytes that are there. [`PutWire`] appends to a
//! `Vec<u8>`, so a message is written straight into a connection's output buffer.

use crate::error::{WireError, WireResult};

const TRUNCATED: WireError = WireError::Malformed("message ends too early");

/// First byte of a NULL cell in a text row.
pub const NULL_CELL: u8 = 0xfb;

/// A checked cursor over the bytes of one message.
#[derive(Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// True at the end of the message.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte, left in place.
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Everything that is left, left in place.
    pub fn as_slice(&self) -> &'a [u8] {
        self.rest
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// The next `n` bytes.
    #[inline]
    pub fn bytes(&mut self, n: usize) -> WireResult<&'a [u8]> {
        let Some((head, tail)) = self.rest.split_at_checked(n) else {
            return Err(TRUNCATED);
        };
        self.rest = tail;
        Ok(head)
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> WireResult<[u8; N]> {
        let Some((head, tail)) = self.rest.split_first_chunk::<N>() else {
            return Err(TRUNCATED);
        };
        self.rest = tail;
        Ok(*head)
    }

    /// Steps over `n` bytes.
    pub fn skip(&mut self, n: usize) -> WireResult<()> {
        self.bytes(n).map(|_| ())
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> WireResult<u8> {
        let Some((&first, tail)) = self.rest.split_first() else {
            return Err(TRUNCATED);
        };
        self.rest = tail;
        Ok(first)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> WireResult<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Three bytes.
    pub fn u24(&mut self) -> WireResult<u32> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_le_bytes([a, b, c, 0]))
    }

    /// Four bytes.
    pub fn u32(&mut self) -> WireResult<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> WireResult<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer.
    #[inline]
    pub fn lenenc_int(&mut self) -> WireResult<u64> {
        match self.u8()? {
            short @ 0..=0xfa => Ok(short.into()),
            0xfc => self.u16().map(u64::from),
            0xfd => self.u24().map(u64::from),
            0xfe => self.u64(),
            _ => Err(WireError::Malformed("not a length-encoded integer")),
        }
    }

    /// A length-encoded string.
    #[inline]
    pub fn lenenc_bytes(&mut self) -> WireResult<&'a [u8]> {
        let length = self.lenenc_int()?;
        self.bytes(usize::try_from(length).map_err(|_| TRUNCATED)?)
    }

    /// A length-encoded string or the NULL marker: a cell of a text row.
    #[inline]
    pub fn lenenc_bytes_or_null(&mut self) -> WireResult<Option<&'a [u8]>> {
        if self.peek() == Some(NULL_CELL) {
            self.rest = &self.rest[1..];
            return Ok(None);
        }
        self.lenenc_bytes().map(Some)
    }

    /// A string ended by a zero byte, which is consumed and not returned.
    pub fn nul_bytes(&mut self) -> WireResult<&'a [u8]> {
        let end = memchr::memchr(0, self.rest)
            .ok_or(WireError::Malformed("string without its zero byte"))?;
        let text = self.bytes(end)?;
        self.skip(1)?;
        Ok(text)
    }

    /// A string ended by a zero byte or, as some peers do for the last field, by the end of the
    /// message.
    pub fn nul_bytes_or_rest(&mut self) -> &'a [u8] {
        match memchr::memchr(0, self.rest) {
            Some(end) => {
                let text = &self.rest[..end];
                self.rest = &self.rest[end + 1..];
                text
            }
            None => self.rest(),
        }
    }
}

/// Bytes that a length-encoded integer of this value takes.
pub fn lenenc_int_size(value: u64) -> usize {
    match value {
        0..=0xfa => 1,
        0xfb..=0xffff => 3,
        0x1_0000..=0xff_ffff => 4,
        _ => 9,
    }
}

/// Appends the protocol's integers and strings.
pub trait PutWire {
    /// One byte.
    fn put_u8(&mut self, value: u8);
    /// Bytes as they are.
    fn put_bytes(&mut self, bytes: &[u8]);

    /// Two bytes.
    fn put_u16(&mut self, value: u16) {
        self.put_bytes(&value.to_le_bytes());
    }
    /// The low three bytes.
    fn put_u24(&mut self, value: u32) {
        self.put_bytes(&value.to_le_bytes()[..3]);
    }
    /// Four bytes.
    fn put_u32(&mut self, value: u32) {
        self.put_bytes(&value.to_le_bytes());
    }
    /// Eight bytes.
    fn put_u64(&mut self, value: u64) {
        self.put_bytes(&value.to_le_bytes());
    }
    /// A length-encoded integer in its shortest form.
    fn put_lenenc_int(&mut self, value: u64) {
        match value {
            0..=0xfa => self.put_u8(value as u8),
            0xfb..=0xffff => {
                self.put_u8(0xfc);
                self.put_u16(value as u16);
            }
            0x1_0000..=0xff_ffff => {
                self.put_u8(0xfd);
                self.put_u24(value as u32);
            }
            _ => {
                self.put_u8(0xfe);
                self.put_u64(value);
            }
        }
    }
    /// A length-encoded string.
    fn put_lenenc_bytes(&mut self, bytes: &[u8]) {
        self.put_lenenc_int(bytes.len() as u64);
        self.put_bytes(bytes);
    }
    /// A string and its zero byte. The string must not contain one; what follows a zero byte is
    /// left out, so that no peer reads it as the next field.
    fn put_nul_bytes(&mut self, bytes: &[u8]) {
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        self.put_bytes(&bytes[..end]);
        self.put_u8(0);
    }
}

impl PutWire for Vec<u8> {
    #[inline]
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }
    #[inline]
    fn put_bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_encoded_integers_take_their_shortest_form() {
        for (value, size) in [
            (0, 1),
            (250, 1),
            (251, 3),
            (0xffff, 3),
            (0x1_0000, 4),
            (0xff_ffff, 4),
            (0x100_0000, 9),
            (u64::MAX, 9),
        ] {
            let mut out = Vec::new();
            out.put_lenenc_int(value);
            assert_eq!(out.len(), size);
            assert_eq!(lenenc_int_size(value), size);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.lenenc_int().unwrap(), value);
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_length_beyond_the_message_is_refused() {
        let mut reader = Reader::new(&[0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        assert!(reader.lenenc_bytes().is_err());
        assert!(Reader::new(&[5, b'a']).lenenc_bytes().is_err());
        assert!(Reader::new(&[0xfb]).lenenc_int().is_err());
        assert!(Reader::new(&[0xff, 0, 0]).lenenc_int().is_err());
        assert!(Reader::new(b"no end").nul_bytes().is_err());
    }

    #[test]
    fn a_zero_byte_never_opens_a_second_field() {
        let mut out = Vec::new();
        out.put_nul_bytes(b"root\0admin");
        assert_eq!(out, b"root\0");
    }

    #[test]
    fn null_and_empty_cells_differ() {
        let mut reader = Reader::new(&[0xfb, 0, 1, b'x']);
        assert_eq!(reader.lenenc_bytes_or_null().unwrap(), None);
        assert_eq!(reader.lenenc_bytes_or_null().unwrap(), Some(&b""[..]));
        assert_eq!(reader.lenenc_bytes_or_null().unwrap(), Some(&b"x"[..]));
    }
}
