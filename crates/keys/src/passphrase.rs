//! Keys from a passphrase by Argon2id (RFC 9106): of a key file's root key, and of sealed streams
//! without a key file.
//!
//! A root key is sealed under such a key with AES-256-GCM-SIV:
//!
//! ```text
//! KEK    = Argon2id(passphrase, salt, memory, passes, lanes), 32 bytes, version 0x13
//! sealed = nonce (12, random) ‖ AES-256-GCM-SIV(KEK, nonce, root key) (32) ‖ tag (16)
//!          associated data: "onionskin/1 root key" ‖ memory in KiB (4) ‖ passes (4) ‖ lanes (4) ‖ salt, numbers big-endian
//! ```

use argon2::{Algorithm, Argon2, Params, Version};
use onionskin_crypt::{StreamKey, Suite, dangerous_bytes};
use rand::CryptoRng;
use zeroize::Zeroizing;

use crate::{
    KeyError,
    file_root::{RootKey, box_key, open_key, seal_key},
};

pub(crate) const SALT_LEN: usize = 16;

/// What deriving a key from a passphrase costs, the attacker as well as us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassphraseCost {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// How often the memory is passed over.
    pub passes: u32,
    /// Lanes that could be computed in parallel.
    pub lanes: u32,
}

impl PassphraseCost {
    /// RFC 9106's second recommendation (64 MiB, three passes), with one lane, since we compute
    /// with one thread.
    pub const DEFAULT: Self = Self {
        memory_kib: 64 * 1024,
        passes: 3,
        lanes: 1,
    };

    /// Whether a file may ask for it. None must make us allocate whatever it likes: 1 GiB, 64
    /// passes and 16 lanes are the limit.
    pub fn is_acceptable(&self) -> bool {
        self.memory_kib <= 1024 * 1024
            && (1..=64).contains(&self.passes)
            && (1..=16).contains(&self.lanes)
            && self.memory_kib >= 8 * self.lanes
    }

    fn check(&self) -> Result<(), KeyError> {
        if !self.is_acceptable() {
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
    cost: PassphraseCost,
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
    cost: PassphraseCost,
    salt: &[u8; SALT_LEN],
    sealed: &[u8],
) -> Result<RootKey, KeyError> {
    let kek = derive(passphrase, cost, salt)?;
    open_key(&box_key(&kek), sealed, &aad(cost, salt)).ok_or(KeyError::WrongPassphrase)
}

/// The key of a sealed stream from nothing but a passphrase. `context` is as in [`StreamKey::new`],
/// `salt` random.
///
/// Takes the time and the memory that `cost` names; refuses a cost that is not
/// [acceptable](PassphraseCost::is_acceptable), and an empty passphrase.
pub fn stream_key_from_passphrase(
    suite: Suite,
    passphrase: &str,
    cost: PassphraseCost,
    salt: &[u8],
    context: &[u8],
) -> Result<StreamKey, KeyError> {
    if passphrase.is_empty() {
        return Err(KeyError::EmptyPassphrase);
    }
    let key = dangerous_bytes::data_key_from_bytes(*derive(passphrase, cost, salt)?);
    Ok(StreamKey::new(suite, &key, context))
}

fn derive(
    passphrase: &str,
    cost: PassphraseCost,
    salt: &[u8],
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

fn aad(cost: PassphraseCost, salt: &[u8; SALT_LEN]) -> Vec<u8> {
    let mut aad = b"onionskin/1 root key".to_vec();
    for number in [cost.memory_kib, cost.passes, cost.lanes] {
        aad.extend_from_slice(&number.to_be_bytes());
    }
    aad.extend_from_slice(salt);
    aad
}
