//! Nonces of sealed cells, and random bytes that must not repeat.
//!
//! A generator inside of the process repeats itself when the process is copied: a snapshot of a
//! virtual machine that is resumed twice, a clone of it, a `fork`. What a repeated nonce costs
//! depends on the cipher:
//!
//! - AES-256-GCM-SIV (suite `aes`) shows whether two payloads under it are equal, and nothing else.
//!   Its nonces are random bytes.
//! - GCM (suite `sm`) gives away its authentication key and the XOR of two payloads. Its nonces are
//!   **synthetic**:
//!
//! ```text
//! nonce = HMAC-SM3(nonce key, r (16) ‖ associated data (31) ‖ payload), first 12 bytes
//! ```
//!
//! r is drawn from the kernel, for each cell. The first two parts have fixed lengths, so different
//! inputs are different bytes, and the nonce key is used for nothing else. Where r is new, the
//! nonce is as good as random. Where r repeats, other payloads still have other nonces, and the
//! same payload has the same cell, which shows that it is the same. Two different inputs meet in a
//! nonce as two random nonces do, with a probability of 2^-96 for each pair; so the bound of
//! [`Suite::seal_bound`](crate::Suite::seal_bound) is that of random nonces.
//!
//! The nonce stands in the cell. A reader cannot verify how it was made and need not.

use hmac::{Hmac, Mac};
use rand::{Rng, TryRng, rngs::SysRng};
use sm3::Sm3;

use crate::SealError;

pub(crate) const NONCE_LEN: usize = 12;
const FRESH_LEN: usize = 16;

/// How a sealing key gets its nonces.
pub(crate) enum Nonces {
    /// Random bytes, for a cipher that survives a repetition.
    Random,
    /// Made of randomness and payload, under a key of its own.
    Synthetic(Box<Hmac<Sm3>>),
}

impl Nonces {
    /// The nonce for this payload.
    pub(crate) fn next(&self, aad: &[u8], payload: &[u8]) -> Result<[u8; NONCE_LEN], SealError> {
        match self {
            Nonces::Random => {
                // Seeded by the operating system, and again after every 64 KiB: a few nanoseconds
                // instead of a system call.
                let mut nonce = [0; NONCE_LEN];
                rand::rng().fill_bytes(&mut nonce);
                Ok(nonce)
            }
            Nonces::Synthetic(key) => {
                let mut fresh = [0; FRESH_LEN];
                SysRng
                    .try_fill_bytes(&mut fresh)
                    .map_err(|_| SealError::NoRandomness)?;
                Ok(synthetic(key, &fresh, aad, payload))
            }
        }
    }
}

/// The synthetic nonce; `aad` always has the same length.
pub(crate) fn synthetic(
    key: &Hmac<Sm3>,
    fresh: &[u8; FRESH_LEN],
    aad: &[u8],
    payload: &[u8],
) -> [u8; NONCE_LEN] {
    let mut mac = key.clone();
    mac.update(fresh);
    mac.update(aad);
    mac.update(payload);
    let mut nonce = [0; NONCE_LEN];
    nonce.copy_from_slice(&mac.finalize().into_bytes()[..NONCE_LEN]);
    nonce
}
