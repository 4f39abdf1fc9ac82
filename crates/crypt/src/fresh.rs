//! Random bytes for what is drawn seldom and must never repeat.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest;
use rand::{Rng, TryRng, rngs::SysRng};

/// Longest array that [`fresh_bytes`] gives.
const MAX_FRESH_BYTES: usize = 32;

/// At most 32 random bytes that other copies of this process do not draw as well: for the salt of a
/// sealed stream, whose keys and counted nonces rest on it, and for the ids of tables and columns.
///
/// The generator of a thread repeats itself in a process that was copied with its virtual machine.
/// So the bytes are the SHA-256 of what the kernel gives now, of what the generator gives, and of
/// the time in nanoseconds: a kernel that does not know of the copy either (no VM generation id)
/// gives the same bytes for a while, but the copies do not ask in the same nanosecond.
///
/// # Panics
///
/// If the kernel gives no random bytes.
pub fn fresh_bytes<const N: usize>() -> [u8; N] {
    const { assert!(N <= MAX_FRESH_BYTES) }
    let (mut kernel, mut generator) = ([0; MAX_FRESH_BYTES], [0; MAX_FRESH_BYTES]);
    SysRng
        .try_fill_bytes(&mut kernel)
        .expect("the kernel gives random bytes");
    rand::rng().fill_bytes(&mut generator);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut hash = digest::Context::new(&digest::SHA256);
    hash.update(&kernel);
    hash.update(&generator);
    hash.update(&now.unwrap_or_default().as_nanos().to_be_bytes());
    let mut bytes = [0; N];
    bytes.copy_from_slice(&hash.finish().as_ref()[..N]);
    bytes
}
