//! The SM4 block cipher (GB/T 32907-2016) and SM4-GCM (RFC 8998).
//!
//! SM4 is the Chinese national standard block cipher: 128-bit blocks, 128-bit keys, 32 rounds. It has no
//! instructions of its own on most processors, so the speed of a deployment that must use it is decided by
//! the kernel. This crate is the one place where such kernels live; everything above it sees only
//!
//! - [`Sm4`]: the raw permutation, many blocks at a time, for pseudo-random functions;
//! - [`Sm4Gcm`]: authenticated encryption, in place, with 96-bit nonces and 128-bit tags.
//!
//! The block cipher and GCM come from RustCrypto at present: portable, constant in results, one block at a time.
//! Key schedules are wiped when dropped, and no type shows key material in its `Debug` output.

mod block;
mod gcm;

pub use block::Sm4;
pub use gcm::{MAX_GCM_LEN, Sm4Gcm, TagMismatch};

/// Length of an SM4 block in bytes.
pub const BLOCK_LEN: usize = 16;
/// Length of an SM4 key in bytes.
pub const KEY_LEN: usize = 16;
/// Length of a GCM nonce in bytes.
pub const NONCE_LEN: usize = 12;
/// Length of a GCM tag in bytes.
pub const TAG_LEN: usize = 16;
