//! The server's wish for another login method.

use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// Names a login method and brings a new scramble for it.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthSwitchRequest {
    /// The method.
    pub plugin: Vec<u8>,
    /// The method's data as sent, usually a scramble and a zero byte.
    pub data: Vec<u8>,
}

impl AuthSwitchRequest {
    /// The packet's first byte.
    pub const HEADER: u8 = 0xfe;

    /// The scramble: the data without a closing zero byte.
    pub fn scramble(&self) -> &[u8] {
        self.data.strip_suffix(&[0]).unwrap_or(&self.data)
    }

    /// Reads the request. A lone header asks for the method of servers before 4.1.
    pub fn decode(payload: &[u8]) -> WireResult<Self> {
        let mut r = Reader::new(payload);
        if r.u8()? != Self::HEADER {
            return Err(WireError::Malformed(
                "not a request to switch the login method",
            ));
        }
        if r.is_empty() {
            return Ok(Self {
                plugin: b"mysql_old_password".to_vec(),
                data: Vec::new(),
            });
        }
        Ok(Self {
            plugin: r.nul_bytes()?.to_vec(),
            data: r.rest().to_vec(),
        })
    }

    /// Appends the request.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(Self::HEADER);
        out.put_nul_bytes(&self.plugin);
        out.put_bytes(&self.data);
    }
}

impl std::fmt::Debug for AuthSwitchRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthSwitchRequest")
            .field("plugin", &String::from_utf8_lossy(&self.plugin))
            .field("data_length", &self.data.len())
            .finish()
    }
}
