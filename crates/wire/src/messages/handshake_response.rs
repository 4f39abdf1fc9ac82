//! The client's login.

use super::SslRequest;
use crate::capabilities::{Capabilities, MariaDbCapabilities};
use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// Login of protocol 4.1.
///
/// Which fields are on the wire, and how long the length of `auth_response` is, follows from
/// `capabilities`: to log in at a server with other capabilities than the client's, change them and
/// encode.
#[derive(Clone, PartialEq, Eq)]
pub struct HandshakeResponse41 {
    /// What the client and the server will do.
    pub capabilities: Capabilities,
    /// What they will do besides, for MariaDB.
    pub mariadb_capabilities: MariaDbCapabilities,
    /// Largest packet the client accepts.
    pub max_packet_size: u32,
    /// Low byte of the collation's id.
    pub charset: u8,
    /// User name, in the connection's character set.
    pub username: Vec<u8>,
    /// Answer to the scramble, or the password itself for some methods.
    pub auth_response: Vec<u8>,
    /// Database to start in.
    pub database: Option<Vec<u8>>,
    /// Login method that `auth_response` was made with.
    pub auth_plugin: Option<Vec<u8>>,
    /// Connection attributes, as they came: pairs of length-encoded strings.
    pub connect_attrs: Option<Vec<u8>>,
}

impl HandshakeResponse41 {
    /// Reads a login. Fields that the capabilities announce but an old client leaves out at the end
    /// are `None`.
    pub fn decode(payload: &[u8]) -> WireResult<Self> {
        let mut r = Reader::new(payload);
        let head = SslRequest::decode_head(&mut r)?;
        let has = |flag| head.capabilities.contains(flag);
        let username = r.nul_bytes()?.to_vec();
        let auth_response = if has(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            r.lenenc_bytes()?.to_vec()
        } else if has(Capabilities::SECURE_CONNECTION) {
            let length = r.u8()?;
            r.bytes(length.into())?.to_vec()
        } else {
            r.nul_bytes()?.to_vec()
        };
        let database = (has(Capabilities::CONNECT_WITH_DB) && !r.is_empty())
            .then(|| r.nul_bytes_or_rest().to_vec());
        let auth_plugin = (has(Capabilities::PLUGIN_AUTH) && !r.is_empty())
            .then(|| r.nul_bytes_or_rest().to_vec());
        let connect_attrs = if has(Capabilities::CONNECT_ATTRS) && !r.is_empty() {
            Some(r.lenenc_bytes()?.to_vec())
        } else {
            None
        };
        Ok(Self {
            capabilities: head.capabilities,
            mariadb_capabilities: head.mariadb_capabilities,
            max_packet_size: head.max_packet_size,
            charset: head.charset,
            username,
            auth_response,
            database,
            auth_plugin,
            connect_attrs,
        })
    }

    /// The request for TLS that goes before this login.
    pub fn ssl_request(&self) -> SslRequest {
        SslRequest {
            capabilities: self.capabilities | Capabilities::SSL,
            mariadb_capabilities: self.mariadb_capabilities,
            max_packet_size: self.max_packet_size,
            charset: self.charset,
        }
    }

    /// Appends the login in the form that its capabilities ask for.
    pub fn encode(&self, out: &mut Vec<u8>) -> WireResult<()> {
        let has = |flag| self.capabilities.contains(flag);
        SslRequest {
            capabilities: self.capabilities,
            mariadb_capabilities: self.mariadb_capabilities,
            max_packet_size: self.max_packet_size,
            charset: self.charset,
        }
        .encode(out);
        out.put_nul_bytes(&self.username);
        if has(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            out.put_lenenc_bytes(&self.auth_response);
        } else if has(Capabilities::SECURE_CONNECTION) {
            let length = u8::try_from(self.auth_response.len())
                .map_err(|_| WireError::Malformed("authentication data over 255 bytes"))?;
            out.put_u8(length);
            out.put_bytes(&self.auth_response);
        } else {
            out.put_nul_bytes(&self.auth_response);
        }
        if has(Capabilities::CONNECT_WITH_DB) {
            out.put_nul_bytes(self.database.as_deref().unwrap_or_default());
        }
        if has(Capabilities::PLUGIN_AUTH) {
            out.put_nul_bytes(self.auth_plugin.as_deref().unwrap_or_default());
        }
        if has(Capabilities::CONNECT_ATTRS) {
            out.put_lenenc_bytes(self.connect_attrs.as_deref().unwrap_or_default());
        }
        Ok(())
    }

    /// Name and value of each connection attribute; ends at the first malformed one.
    pub fn attributes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        attributes(self.connect_attrs.as_deref().unwrap_or_default())
    }
}

/// Name and value of each of these connection attributes; ends at the first malformed one.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut r = Reader::new(bytes);
    std::iter::from_fn(move || Some((r.lenenc_bytes().ok()?, r.lenenc_bytes().ok()?)))
}

impl std::fmt::Debug for HandshakeResponse41 {
    /// Leaves out the authentication data and the attributes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandshakeResponse41")
            .field("capabilities", &self.capabilities)
            .field("mariadb_capabilities", &self.mariadb_capabilities)
            .field("max_packet_size", &self.max_packet_size)
            .field("charset", &self.charset)
            .field("username", &String::from_utf8_lossy(&self.username))
            .field("auth_response_length", &self.auth_response.len())
            .field(
                "database",
                &self.database.as_deref().map(String::from_utf8_lossy),
            )
            .field(
                "auth_plugin",
                &self.auth_plugin.as_deref().map(String::from_utf8_lossy),
            )
            .finish_non_exhaustive()
    }
}
