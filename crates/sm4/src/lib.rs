//! The SM4 block cipher (GB/T 32907-2016) with ECB, CBC, CTR and GCM (RFC 8998), at the speed of
//! vector instructions.
//!
//! SM4 is the Chinese national standard block cipher: 128-bit blocks, 128-bit keys, 32 rounds. It
//! has no instructions of its own on most processors, so its speed is decided by how many blocks go
//! through the general ones at a time. This crate stands on its own and has a kernel for each
//! generation of them:
//!
//! | kernel | processors | S-box | blocks interleaved | GHASH |
//! |---|---|---|---|---|
//! | `gfni-avx512` | x86-64 with GFNI, AVX-512BW/VL, VPCLMULQDQ | GF2P8AFFINEINVQB | 64 | VPCLMULQDQ, 32 blocks a reduction |
//! | `gfni-avx2` | x86-64 with GFNI, AVX2, PCLMULQDQ | GF2P8AFFINEINVQB | 32 | PCLMULQDQ, 8 blocks a reduction |
//! | `aesni-avx2` | x86-64 with AES-NI, AVX2, PCLMULQDQ | AESENCLAST and byte shuffles | 32 | PCLMULQDQ, 8 blocks a reduction |
//! | `portable` | all | logic gates on bit slices | 16 | integer multiplication |
//!
//! [`Kernel`] names them; the fastest one is chosen at run time. No kernel has a branch, a table or
//! an address that depends on secrets. Key schedules and hash keys are wiped when dropped, and no
//! type shows key material in its `Debug` output.
//!
//! ARM's own SM4 instructions (`SM4E`, `SM4EKEY`) are not used: Rust has their intrinsics only
//! behind an unstable feature (`stdarch_neon_sm4`). The portable kernel runs there.
//!
//! - [`Sm4`]: the raw permutation, many blocks at a time, and the unauthenticated modes CBC and
//!   CTR;
//! - [`Sm4Gcm`]: authenticated encryption, in place, with 96-bit nonces and 128-bit tags.
//!
//! ```
//! use onionskin_sm4::Sm4Gcm;
//!
//! let gcm = Sm4Gcm::new(b"sixteen byte key");
//! let mut message = *b"attack at dawn";
//! let tag = gcm.seal_in_place(b"unique nonce", b"header", &mut message);
//! gcm.open_in_place(b"unique nonce", b"header", &mut message, &tag)?;
//! assert_eq!(&message, b"attack at dawn");
//! # Ok::<(), onionskin_sm4::TagMismatch>(())
//! ```

#![warn(clippy::undocumented_unsafe_blocks)]

mod block;
mod cbc;
mod ctr;
mod gcm;
mod ghash;
mod kernel;
mod portable;
mod sbox;
mod schedule;
#[cfg(test)]
mod testing;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86;

pub use block::Sm4;
pub use gcm::{MAX_GCM_LEN, Sm4Gcm, TagMismatch};
pub use kernel::Kernel;

/// Length of an SM4 block in bytes.
pub const BLOCK_LEN: usize = 16;
/// Length of an SM4 key in bytes.
pub const KEY_LEN: usize = 16;
/// Length of a GCM nonce in bytes.
pub const NONCE_LEN: usize = 12;
/// Length of a GCM tag in bytes.
pub const TAG_LEN: usize = 16;
