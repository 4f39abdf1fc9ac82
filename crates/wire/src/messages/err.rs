//! An error, as the answer to anything.

use std::borrow::Cow;

use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// An error packet.
///
/// `Debug` leaves the message out: servers quote values in it (`Duplicate entry '…' for key`).
#[derive(Clone, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    /// Error number.
    pub code: u16,
    /// SQLSTATE; absent before the login has settled on protocol 4.1.
    pub sqlstate: Option<[u8; 5]>,
    /// Text for people.
    pub message: Cow<'a, [u8]>,
}

impl<'a> ErrPacket<'a> {
    /// The packet's first byte.
    pub const HEADER: u8 = 0xff;

    /// An error of the proxy's own.
    pub fn new(code: u16, sqlstate: [u8; 5], message: impl Into<Cow<'a, [u8]>>) -> Self {
        Self {
            code,
            sqlstate: Some(sqlstate),
            message: message.into(),
        }
    }

    /// True when the payload is an error packet.
    #[inline]
    pub fn is_err(payload: &[u8]) -> bool {
        payload.first() == Some(&Self::HEADER)
    }

    /// Reads the packet, with or without SQLSTATE.
    pub fn decode(payload: &'a [u8]) -> WireResult<Self> {
        let mut r = Reader::new(payload);
        if r.u8()? != Self::HEADER {
            return Err(WireError::Malformed("not an error packet"));
        }
        let code = r.u16()?;
        let sqlstate = if r.peek() == Some(b'#') && r.remaining() >= 6 {
            r.skip(1)?;
            Some(r.array()?)
        } else {
            None
        };
        Ok(Self {
            code,
            sqlstate,
            message: Cow::Borrowed(r.rest()),
        })
    }

    /// Appends the packet.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(Self::HEADER);
        out.put_u16(self.code);
        if let Some(state) = &self.sqlstate {
            out.put_u8(b'#');
            out.put_bytes(state);
        }
        out.put_bytes(&self.message);
    }

    /// The same error, independent of the packet it came from.
    pub fn into_owned(self) -> ErrPacket<'static> {
        ErrPacket {
            code: self.code,
            sqlstate: self.sqlstate,
            message: Cow::Owned(self.message.into_owned()),
        }
    }
}

impl std::fmt::Debug for ErrPacket<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ErrPacket")
            .field("code", &self.code)
            .field(
                "sqlstate",
                &self.sqlstate.map(|s| s.escape_ascii().to_string()),
            )
            .field("message_length", &self.message.len())
            .finish()
    }
}
