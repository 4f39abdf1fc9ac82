//! A new login on an open connection.

use super::Command;
use crate::capabilities::Capabilities;
use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// Asks to log in as another user. The capabilities stay those of the first login. The server
/// answers as to a login: OK, an error, or a request to switch the login method.
#[derive(Clone, PartialEq, Eq)]
pub struct ComChangeUser {
    /// User name.
    pub username: Vec<u8>,
    /// Answer to the scramble.
    pub auth_response: Vec<u8>,
    /// Database to start in; empty for none.
    pub database: Vec<u8>,
    /// Id of the collation; here it has two bytes.
    pub charset: Option<u16>,
    /// Login method that `auth_response` was made with.
    pub auth_plugin: Option<Vec<u8>>,
    /// Connection attributes, as they came.
    pub connect_attrs: Option<Vec<u8>>,
}

impl ComChangeUser {
    /// Reads the command.
    pub fn decode(payload: &[u8], capabilities: Capabilities) -> WireResult<Self> {
        let mut r = Reader::new(payload);
        if r.u8()? != Command::ChangeUser.to_byte() {
            return Err(WireError::Malformed("not COM_CHANGE_USER"));
        }
        let username = r.nul_bytes()?.to_vec();
        let auth_response = if capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let length = r.u8()?;
            r.bytes(length.into())?.to_vec()
        } else {
            r.nul_bytes()?.to_vec()
        };
        let database = r.nul_bytes_or_rest().to_vec();
        let charset = if r.is_empty() { None } else { Some(r.u16()?) };
        let auth_plugin = (capabilities.contains(Capabilities::PLUGIN_AUTH) && !r.is_empty())
            .then(|| r.nul_bytes_or_rest().to_vec());
        let connect_attrs = if capabilities.contains(Capabilities::CONNECT_ATTRS) && !r.is_empty() {
            Some(r.lenenc_bytes()?.to_vec())
        } else {
            None
        };
        Ok(Self {
            username,
            auth_response,
            database,
            charset,
            auth_plugin,
            connect_attrs,
        })
    }

    /// Appends the command as a server with these capabilities expects it.
    pub fn encode(&self, out: &mut Vec<u8>, capabilities: Capabilities) -> WireResult<()> {
        out.put_u8(Command::ChangeUser.to_byte());
        out.put_nul_bytes(&self.username);
        if capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let length = u8::try_from(self.auth_response.len())
                .map_err(|_| WireError::Malformed("authentication data over 255 bytes"))?;
            out.put_u8(length);
            out.put_bytes(&self.auth_response);
        } else {
            out.put_nul_bytes(&self.auth_response);
        }
        out.put_nul_bytes(&self.database);
        // Each field can only be there if the one before it is.
        let plugin = capabilities
            .contains(Capabilities::PLUGIN_AUTH)
            .then_some(self.auth_plugin.as_deref())
            .flatten();
        let attrs = capabilities
            .contains(Capabilities::CONNECT_ATTRS)
            .then_some(self.connect_attrs.as_deref())
            .flatten();
        let Some(charset) = self.charset else {
            return Ok(());
        };
        out.put_u16(charset);
        if capabilities.contains(Capabilities::PLUGIN_AUTH) {
            if plugin.is_none() && attrs.is_none() {
                return Ok(());
            }
            out.put_nul_bytes(plugin.unwrap_or_default());
        }
        if let Some(attrs) = attrs {
            out.put_lenenc_bytes(attrs);
        }
        Ok(())
    }
}

impl std::fmt::Debug for ComChangeUser {
    /// Leaves out the authentication data and the attributes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ComChangeUser")
            .field("username", &String::from_utf8_lossy(&self.username))
            .field("auth_response_length", &self.auth_response.len())
            .field("database", &String::from_utf8_lossy(&self.database))
            .field("charset", &self.charset)
            .field(
                "auth_plugin",
                &self.auth_plugin.as_deref().map(String::from_utf8_lossy),
            )
            .finish_non_exhaustive()
    }
}
