//! The server's greeting: the first packet of a connection.

use crate::capabilities::{Capabilities, MariaDbCapabilities, StatusFlags};
use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// Bytes of the scramble that stand in the greeting's first part.
const FIRST_PART: usize = 8;
/// Bytes that the second part has at least, its closing zero byte included.
const SECOND_PART_MIN: usize = 13;

/// Greeting of protocol version 10.
#[derive(Clone, PartialEq, Eq)]
pub struct InitialHandshake {
    /// Text of `SELECT VERSION()`, with MariaDB's `5.5.5-` prefix when the server sends it.
    pub server_version: Vec<u8>,
    /// Thread id of the session on the server.
    pub connection_id: u32,
    /// The scramble, without its closing zero byte; 20 bytes in practice.
    pub auth_data: Vec<u8>,
    /// What the server can do.
    pub capabilities: Capabilities,
    /// What a MariaDB server can do besides; empty for MySQL.
    pub mariadb_capabilities: MariaDbCapabilities,
    /// Low byte of the default collation's id.
    pub charset: u8,
    /// Status flags at the start.
    pub status: StatusFlags,
    /// The default login method; empty without `PLUGIN_AUTH`.
    pub auth_plugin: Vec<u8>,
}

impl InitialHandshake {
    /// True when the payload begins like a greeting that [`InitialHandshake::decode`] understands.
    /// A server that refuses the connection sends an [`ErrPacket`](super::ErrPacket) in its place.
    pub fn is_handshake(payload: &[u8]) -> bool {
        payload.first() == Some(&10)
    }

    /// True when the server is MariaDB. Its version may hide behind a prefix, so the text is
    /// searched.
    pub fn is_mariadb(&self) -> bool {
        self.capabilities.has_mariadb_extension()
            || memchr::memmem::find(&self.server_version, b"MariaDB").is_some()
    }

    /// Reads a greeting.
    pub fn decode(payload: &[u8]) -> WireResult<Self> {
        let mut r = Reader::new(payload);
        if r.u8()? != 10 {
            return Err(WireError::Malformed(
                "greeting of an unknown protocol version",
            ));
        }
        let server_version = r.nul_bytes()?.to_vec();
        let connection_id = r.u32()?;
        let mut auth_data = r.bytes(FIRST_PART)?.to_vec();
        r.skip(1)?;
        let low = r.u16()?;
        let charset = r.u8()?;
        let status = StatusFlags::from_bits_retain(r.u16()?);
        let high = r.u16()?;
        let capabilities = Capabilities::from_bits_retain(u32::from(low) | u32::from(high) << 16);
        let auth_data_length = usize::from(r.u8()?);
        r.skip(6)?;
        let extension = r.u32()?;
        let mariadb_capabilities = if capabilities.has_mariadb_extension() {
            MariaDbCapabilities::from_bits_retain(extension)
        } else {
            MariaDbCapabilities::empty()
        };
        if capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let length = auth_data_length
                .saturating_sub(FIRST_PART)
                .max(SECOND_PART_MIN)
                .min(r.remaining());
            let part = r.bytes(length)?;
            auth_data.extend_from_slice(part.strip_suffix(&[0]).unwrap_or(part));
        }
        let auth_plugin = if capabilities.contains(Capabilities::PLUGIN_AUTH) {
            r.nul_bytes_or_rest().to_vec()
        } else {
            Vec::new()
        };
        Ok(Self {
            server_version,
            connection_id,
            auth_data,
            capabilities,
            mariadb_capabilities,
            charset,
            status,
            auth_plugin,
        })
    }

    /// Appends the greeting.
    pub fn encode(&self, out: &mut Vec<u8>) -> WireResult<()> {
        if self.auth_data.len() < FIRST_PART || self.auth_data.len() > 254 {
            return Err(WireError::Malformed("length of the scramble"));
        }
        let (first, second) = self.auth_data.split_at(FIRST_PART);
        let bits = self.capabilities.bits();
        out.put_u8(10);
        out.put_nul_bytes(&self.server_version);
        out.put_u32(self.connection_id);
        out.put_bytes(first);
        out.put_u8(0);
        out.put_u16(bits as u16);
        out.put_u8(self.charset);
        out.put_u16(self.status.bits());
        out.put_u16((bits >> 16) as u16);
        out.put_u8(if self.capabilities.contains(Capabilities::PLUGIN_AUTH) {
            (self.auth_data.len() + 1) as u8
        } else {
            0
        });
        out.put_bytes(&[0; 6]);
        out.put_u32(if self.capabilities.has_mariadb_extension() {
            self.mariadb_capabilities.bits()
        } else {
            0
        });
        if self.capabilities.contains(Capabilities::SECURE_CONNECTION) {
            out.put_bytes(second);
            // The closing zero byte, and more of them for a scramble shorter than usual.
            let padding = SECOND_PART_MIN.saturating_sub(second.len()).max(1);
            out.resize(out.len() + padding, 0);
        }
        if self.capabilities.contains(Capabilities::PLUGIN_AUTH) {
            out.put_nul_bytes(&self.auth_plugin);
        }
        Ok(())
    }
}

impl std::fmt::Debug for InitialHandshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InitialHandshake")
            .field(
                "server_version",
                &String::from_utf8_lossy(&self.server_version),
            )
            .field("connection_id", &self.connection_id)
            .field("capabilities", &self.capabilities)
            .field("mariadb_capabilities", &self.mariadb_capabilities)
            .field("charset", &self.charset)
            .field("status", &self.status)
            .field("auth_plugin", &String::from_utf8_lossy(&self.auth_plugin))
            .finish_non_exhaustive()
    }
}
