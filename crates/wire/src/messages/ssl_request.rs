//! The client's wish for TLS: the head of its login, sent in the clear before the handshake of TLS.

use crate::capabilities::{Capabilities, MariaDbCapabilities};
use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// Length of the payload, by which it is told from a login that is not under TLS.
const LENGTH: usize = 32;

/// Head of a login: capabilities, largest packet, collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SslRequest {
    /// What the client wants.
    pub capabilities: Capabilities,
    /// What it wants of MariaDB besides.
    pub mariadb_capabilities: MariaDbCapabilities,
    /// Largest packet the client accepts.
    pub max_packet_size: u32,
    /// Low byte of the collation's id; all that the protocol has room for.
    pub charset: u8,
}

impl SslRequest {
    /// True when the payload is this request and not a whole login.
    pub fn is_ssl_request(payload: &[u8]) -> bool {
        payload.len() == LENGTH
            && Reader::new(payload)
                .u32()
                .is_ok_and(|bits| Capabilities::from_bits_retain(bits).contains(Capabilities::SSL))
    }

    /// Reads the request.
    pub fn decode(payload: &[u8]) -> WireResult<Self> {
        let mut r = Reader::new(payload);
        let request = Self::decode_head(&mut r)?;
        if !r.is_empty() || !request.capabilities.contains(Capabilities::SSL) {
            return Err(WireError::Malformed("not a request for TLS"));
        }
        Ok(request)
    }

    /// Reads the 32 bytes with which every login begins.
    pub(super) fn decode_head(r: &mut Reader<'_>) -> WireResult<Self> {
        let capabilities = Capabilities::from_bits_retain(r.u32()?);
        if !capabilities.contains(Capabilities::PROTOCOL_41) {
            return Err(WireError::Malformed("client older than protocol 4.1"));
        }
        let max_packet_size = r.u32()?;
        let charset = r.u8()?;
        r.skip(19)?;
        let extension = r.u32()?;
        let mariadb_capabilities = if capabilities.has_mariadb_extension() {
            MariaDbCapabilities::from_bits_retain(extension)
        } else {
            MariaDbCapabilities::empty()
        };
        Ok(Self {
            capabilities,
            mariadb_capabilities,
            max_packet_size,
            charset,
        })
    }

    /// Appends the 32 bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.capabilities.bits());
        out.put_u32(self.max_packet_size);
        out.put_u8(self.charset);
        out.put_bytes(&[0; 19]);
        out.put_u32(if self.capabilities.has_mariadb_extension() {
            self.mariadb_capabilities.bits()
        } else {
            0
        });
    }
}
