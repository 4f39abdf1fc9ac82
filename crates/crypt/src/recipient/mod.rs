//! Recipients and identities: a stream's file key, wrapped to public keys.
//!
//! Whoever seals knows recipients, which are public. Whoever opens has an identity, the secret
//! behind a recipient. A file key that was wrapped to a recipient is a *stanza*, of one length in
//! each suite:
//!
//! | suite | recipient | stanza | length |
//! |---|---|---|---|
//! | `aes` | X25519 | that of age: `share (32) ‖ ChaCha20-Poly1305(file key) (32)`, see [`x25519`] | 64 |
//! | `sm` | SM2 | GM/T 0003.4: `C1 (65) ‖ C3 (32) ‖ C2 (16)`, see [`sm2`] | 113 |
//!
//! A stanza names no recipient: who has no identity does not learn to whom it is. It also says
//! nothing of who made it, because everybody can wrap to a public key.

pub mod sm2;
pub mod x25519;

use std::fmt;

use zeroize::Zeroizing;

use crate::{FileKey, SealError, Suite, fresh_bytes};

/// Length of an identity in bytes, in both suites.
pub const IDENTITY_LEN: usize = 32;
/// Length of an X25519 recipient in bytes.
pub const X25519_RECIPIENT_LEN: usize = 32;
/// Length of an SM2 recipient in bytes: the point, compressed.
pub const SM2_RECIPIENT_LEN: usize = 33;

/// Length of a stanza in bytes.
pub const fn stanza_len(suite: Suite) -> usize {
    match suite {
        Suite::Aes => x25519::STANZA_LEN,
        Suite::Sm => sm2::STANZA_LEN,
    }
}

/// Bytes that are no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are not a key of the curve that can be used")]
pub struct KeyBytesError;

/// A public key that file keys are wrapped to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipient {
    /// Of suite `aes`.
    X25519(x25519::PublicKey),
    /// Of suite `sm`.
    Sm2(sm2::PublicKey),
}

impl Recipient {
    /// The suite whose streams it opens.
    pub fn suite(&self) -> Suite {
        match self {
            Self::X25519(_) => Suite::Aes,
            Self::Sm2(_) => Suite::Sm,
        }
    }

    /// Wraps a file key; a stanza of [`stanza_len`].
    pub fn wrap(&self, file_key: &FileKey) -> Result<Vec<u8>, SealError> {
        match self {
            Self::X25519(key) => Ok(key.wrap(file_key)?.to_vec()),
            Self::Sm2(key) => Ok(key.wrap(file_key)?.to_vec()),
        }
    }
}

/// The secret behind a recipient. Wiped when dropped.
pub enum Identity {
    /// Of suite `aes`.
    X25519(x25519::SecretKey),
    /// Of suite `sm`.
    Sm2(sm2::SecretKey),
}

impl Identity {
    /// Draws a new one.
    pub fn generate(suite: Suite) -> Self {
        loop {
            // All but one of 2^32 drawn bytes are a scalar of SM2, all are one of X25519.
            let bytes = Zeroizing::new(fresh_bytes());
            if let Ok(identity) = Self::from_bytes(suite, &bytes) {
                return identity;
            }
        }
    }

    pub(crate) fn from_bytes(
        suite: Suite,
        bytes: &[u8; IDENTITY_LEN],
    ) -> Result<Self, KeyBytesError> {
        Ok(match suite {
            Suite::Aes => Self::X25519(x25519::SecretKey::from_bytes(bytes)?),
            Suite::Sm => Self::Sm2(sm2::SecretKey::from_bytes(bytes)?),
        })
    }

    pub(crate) fn secret_bytes(&self) -> Zeroizing<[u8; IDENTITY_LEN]> {
        match self {
            Self::X25519(key) => key.secret_bytes(),
            Self::Sm2(key) => key.secret_bytes(),
        }
    }

    /// The suite whose streams it opens.
    pub fn suite(&self) -> Suite {
        match self {
            Self::X25519(_) => Suite::Aes,
            Self::Sm2(_) => Suite::Sm,
        }
    }

    /// Its public half.
    pub fn recipient(&self) -> Recipient {
        match self {
            Self::X25519(key) => Recipient::X25519(key.public_key()),
            Self::Sm2(key) => Recipient::Sm2(key.public_key()),
        }
    }

    /// The file key of a stanza. `None` if the stanza is of another recipient, or was changed: the
    /// two cannot be told apart.
    pub fn unwrap(&self, stanza: &[u8]) -> Option<FileKey> {
        match self {
            Self::X25519(key) => key.unwrap(stanza.try_into().ok()?),
            Self::Sm2(key) => key.unwrap(stanza.try_into().ok()?),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("suite", &self.suite())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
