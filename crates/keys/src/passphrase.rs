//! A root key under a passphrase: Argon2id (RFC 9106), then AES-256-GCM-SIV.
//!
//! ```text
//! KEK    = Argon2id(passphrase, salt, memory, passes, lanes), 32 bytes, version 0x13
//! sealed = nonce (12, random) ‖ AES-256-GCM-SIV(KEK, nonce, root key) (32) ‖ tag (16)
//!          associated data: "onionskin/1 root key" ‖ memory in KiB (4) ‖ passes (4) ‖ lanes (4) ‖ salt, numbers big-endian
//! ```

use argon2::{Algorithm, Argon2, Params, Version};
use rand::CryptoRng;
use zeroize::Zeroizing;

use crate::{
    KeyError,
    file_root::{RootKey, box_key, open_key, seal_key},
};

pub(crate) const SALT_LEN: usize = 16;

/// What deriving a key from a passphrase costs, the attacker as well as us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    pub memory_kib: u32,
    pub passes: u32,
    pub lanes: u32,
}

impl Cost {
    /// RFC 9106's second recommendation (64 MiB, three passes), with one lane, since we compute with one thread.
    pub(crate) const DEFAULT: Cost = Cost {
        memory_kib: 64 * 1024,
        passes: 3,
        lanes: 1,
    };

    /// A file must not make us allocate whatever it likes: 1 GiB, 64 passes and 16 lanes are the limit.
    fn check(&self) -> Result<(), KeyError> {
        if self.memory_kib > 1024 * 1024 || self.passes > 64 || self.lanes > 16 {
            return Err(KeyError::Malformed(
                "passphrase cost parameters are out of range".to_owned(),
            ));
        }
        Ok(())
    }
}

/// Seals `root` under `passphrase`.
pub(crate) fn seal_root(
    passphrase: &str,
    cost: Cost,
    salt: &[u8; SALT_LEN],
    root: &RootKey,
    rng: &mut impl CryptoRng,
) -> Result<Vec<u8>, KeyError> {
    let kek = derive(passphrase, cost, salt)?;
    seal_key(&box_key(&kek), root, &aad(cost, salt), rng)
}

/// Opens what [`seal_root`] made.
pub(crate) fn open_root(
    passphrase: &str,
    cost: Cost,
    salt: &[u8; SALT_LEN],
    sealed: &[u8],
) -> Result<RootKey, KeyError> {
    let kek = derive(passphrase, cost, salt)?;
    open_key(&box_key(&kek), sealed, &aad(cost, salt)).ok_or(KeyError::WrongPassphrase)
}

fn derive(
    passphrase: &str,
    cost: Cost,
    salt: &[u8; SALT_LEN],
) -> Result<Zeroizing<[u8; 32]>, KeyError> {
    cost.check()?;
    let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(32)).map_err(|_| {
        KeyError::Malformed("passphrase cost parameters are out of range".to_owned())
    })?;
    let mut kek = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.as_bytes(), salt, &mut kek[..])
        .map_err(|_| KeyError::Derivation)?;
    Ok(kek)
}

fn aad(cost: Cost, salt: &[u8; SALT_LEN]) -> Vec<u8> {
    let mut aad = b"onionskin/1 root key".to_vec();
    for number in [cost.memory_kib, cost.passes, cost.lanes] {
        aad.extend_from_slice(&number.to_be_bytes());
    }
    aad.extend_from_slice(salt);
    aad
}
