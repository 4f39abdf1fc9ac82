//! Nonces for sealed cells.

use rand::Rng;

pub(crate) const NONCE_LEN: usize = 12;

/// Twelve random bytes from a ChaCha generator of this thread.
///
/// It is seeded by the operating system, and again after every 64 KiB, so a nonce costs a few nanoseconds instead of
/// a system call. The generator is not reseeded by `fork`: a child that went on sealing without `exec` would repeat
/// its parent's nonces. Onionskin runs threads and never forks itself.
pub(crate) fn random_nonce() -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    rand::rng().fill_bytes(&mut nonce);
    nonce
}
