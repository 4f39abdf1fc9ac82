//! Tenants: the people or customers whose cells can be forgotten on their own.

use std::{fmt, sync::Arc};

use zeroize::{Zeroize, Zeroizing};

use crate::{
    DataKey, OpenError, SealError,
    aead::{Aead, TAG_LEN},
    mac::MacKey,
    metadata::{expanded, mac_key},
    nonce::NONCE_LEN,
};

/// Length of a tenant's secret in bytes.
pub(crate) const TENANT_SECRET_LEN: usize = 16;

const NAMES_INFO: &[u8] = b"tenant names";
const FILE_INFO: &[u8] = b"tenants file";
const NAME_LABEL: &[u8] = b"onionskin/1 tenant";

/// Stands for a tenant in cells. No secret; see [`TenantNames`] for how it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub [u8; 8]);

/// Prints the id as sixteen hexadecimal digits.
impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

/// What only one tenant's cells depend on: 16 bytes, wiped when dropped.
///
/// Boxed, so that moving the handle leaves no copies on the stack.
pub struct TenantSecret(Box<[u8; TENANT_SECRET_LEN]>);

impl TenantSecret {
    pub(crate) fn from_bytes(bytes: &[u8; TENANT_SECRET_LEN]) -> Self {
        Self(Box::new(*bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; TENANT_SECRET_LEN] {
        &self.0
    }
}

impl Drop for TenantSecret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for TenantSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantSecret").finish_non_exhaustive()
    }
}

/// Gives the secrets of tenants.
///
/// A cipher keeps what it made of a secret. So an implementor that a cipher has does not change its
/// answers: who forgets a tenant makes new ciphers.
pub trait TenantSecrets: Send + Sync {
    /// The secret of a tenant; `None` if it was forgotten.
    fn secret(&self, tenant: TenantId) -> Option<TenantSecret>;
}

impl<T: TenantSecrets + ?Sized> TenantSecrets for Arc<T> {
    fn secret(&self, tenant: TenantId) -> Option<TenantSecret> {
        (**self).secret(tenant)
    }
}

/// Makes the ids of tenants of their names.
///
/// ```text
/// id = HMAC-SHA-256(key, "onionskin/1 tenant" ‖ length of the space (4) ‖ space ‖ value), first 8 bytes
/// ```
///
/// The key is derived from the data key of metadata, which never changes. So who does not have it
/// finds no two names with one id, cannot tell an id's name, and cannot choose an id. Two of n
/// tenants meet by chance with a probability of n² / 2^65: 2^-21 among four million. Tenants that
/// meet have one secret, and are forgotten together.
pub struct TenantNames {
    mac: MacKey,
}

impl TenantNames {
    /// Derives the key.
    pub fn new(metadata: &DataKey) -> Self {
        Self {
            mac: mac_key(metadata, NAMES_INFO),
        }
    }

    /// The id of the tenant whose name in this space is `value`.
    pub fn id(&self, space: &str, value: &[u8]) -> TenantId {
        let length = (space.len() as u32).to_be_bytes();
        let name = [NAME_LABEL, &length, space.as_bytes(), value].concat();
        let mut id = [0; 8];
        id.copy_from_slice(&self.mac.mac(&name)[..8]);
        TenantId(id)
    }
}

impl fmt::Debug for TenantNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantNames").finish_non_exhaustive()
    }
}

/// Seals the file that the secrets of tenants are kept in: AES-256-GCM-SIV, in both suites.
pub struct TenantFileKey {
    aead: Aead,
}

impl TenantFileKey {
    /// Derives the key from the data key of metadata, which never changes: no change of data keys
    /// touches the file.
    pub fn new(metadata: &DataKey) -> Self {
        Self {
            aead: Aead::aes(&mut expanded(metadata, FILE_INFO)),
        }
    }

    /// Nonce (12) ‖ ciphertext ‖ tag (16) of `content`, bound to `header`. Wipes `content`.
    pub fn seal(&self, header: &[u8], content: &mut [u8]) -> Result<Vec<u8>, SealError> {
        let nonce: [u8; NONCE_LEN] = crate::fresh_bytes();
        let sealed = self.aead.seal_in_place(&nonce, header, content);
        let sealed = sealed.map(|tag| [&nonce[..], content, &tag].concat());
        content.zeroize();
        sealed
    }

    /// The content, if it was sealed under this key and with this header.
    pub fn open(&self, header: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let (nonce, rest) = sealed
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(OpenError::TooShort)?;
        let (body, tag) = rest
            .split_last_chunk::<TAG_LEN>()
            .ok_or(OpenError::TooShort)?;
        let mut content = Zeroizing::new(body.to_vec());
        self.aead
            .open_in_place(nonce, header, &mut content, tag)
            .map(|()| content)
    }
}

impl fmt::Debug for TenantFileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantFileKey").finish_non_exhaustive()
    }
}
