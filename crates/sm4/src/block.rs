//! The raw block cipher.

use std::fmt;

use zeroize::Zeroize;

use crate::kernel::Kernel;
use crate::schedule::RoundKeys;
use crate::{BLOCK_LEN, KEY_LEN};

/// An SM4 key schedule. It is wiped when dropped.
///
/// The raw permutation protects nothing by itself: use it to build a pseudo-random function or a
/// mode.
pub struct Sm4 {
    pub(crate) round_keys: RoundKeys,
    pub(crate) kernel: Kernel,
}

impl Sm4 {
    /// Expands `key` for the fastest kernel.
    pub fn new(key: &[u8; KEY_LEN]) -> Self {
        Self::with_kernel(key, Kernel::best())
    }

    /// Expands `key` for one kernel.
    pub fn with_kernel(key: &[u8; KEY_LEN], kernel: Kernel) -> Self {
        Self {
            round_keys: kernel.expand(key),
            kernel,
        }
    }

    /// The kernel in use.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Encrypts every block in place, each independently of the others ("ECB").
    ///
    /// As many blocks as a kernel takes at a time (eight or sixteen) cost about as much as one.
    pub fn encrypt_blocks(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        self.kernel.encrypt(&self.round_keys, blocks);
    }

    /// Decrypts every block in place, each independently of the others.
    pub fn decrypt_blocks(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        self.kernel.decrypt(&self.round_keys, blocks);
    }

    /// Counter mode with a counter of 32 bits that wraps, as GCM wants it.
    pub(crate) fn ctr_32(&self, counter: &[u8; BLOCK_LEN], data: &mut [u8]) {
        self.kernel.ctr(&self.round_keys, counter, data);
    }

    /// As [`ctr_32`](Self::ctr_32) with the counter block behind `j0`, whose encryption it returns.
    pub(crate) fn ctr_behind(&self, j0: &[u8; BLOCK_LEN], data: &mut [u8]) -> [u8; BLOCK_LEN] {
        self.kernel.ctr_behind(&self.round_keys, j0, data)
    }
}

impl Drop for Sm4 {
    fn drop(&mut self) {
        self.round_keys.zeroize();
    }
}

impl fmt::Debug for Sm4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sm4").finish_non_exhaustive()
    }
}
