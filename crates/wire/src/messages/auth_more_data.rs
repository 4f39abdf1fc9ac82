//! What a login method sends besides.

use crate::codec::PutWire;
use crate::error::{WireError, WireResult};

/// Data of a login method in the middle of a login. What it means is the method's own affair; for
/// `caching_sha2_password` see [`AuthMoreData::FAST_AUTH_OK`] and [`AuthMoreData::FULL_AUTH`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AuthMoreData<'a> {
    /// The data, header left out.
    pub data: &'a [u8],
}

impl<'a> AuthMoreData<'a> {
    /// The packet's first byte.
    pub const HEADER: u8 = 0x01;
    /// `caching_sha2_password`: the scramble was right, an OK packet follows.
    pub const FAST_AUTH_OK: &'static [u8] = &[3];
    /// `caching_sha2_password`: the server has forgotten the password and wants it, over a secure
    /// connection or encrypted under its RSA key.
    pub const FULL_AUTH: &'static [u8] = &[4];
    /// `caching_sha2_password`: what a client sends to be given the server's RSA key.
    pub const REQUEST_PUBLIC_KEY: &'static [u8] = &[2];
    /// `sha256_password`: what a client sends to be given the server's RSA key.
    pub const SHA256_REQUEST_PUBLIC_KEY: &'static [u8] = &[1];

    /// Reads the packet.
    pub fn decode(payload: &'a [u8]) -> WireResult<Self> {
        match payload.split_first() {
            Some((&Self::HEADER, data)) => Ok(Self { data }),
            _ => Err(WireError::Malformed("not data of a login method")),
        }
    }

    /// Appends the packet.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(Self::HEADER);
        out.put_bytes(self.data);
    }
}

impl std::fmt::Debug for AuthMoreData<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AuthMoreData({} bytes)", self.data.len())
    }
}
