//! Counter mode (NIST SP 800-38A, 6.5).

use crate::{BLOCK_LEN, Sm4};

type Block = [u8; BLOCK_LEN];

/// A counter block as the twelve bytes that kernels leave alone and the number that they count.
#[inline(always)]
pub(crate) fn split(counter: &Block) -> ([u8; 12], u32) {
    let (head, low) = counter.split_at(12);
    (
        head.try_into().expect("twelve bytes"),
        u32::from_be_bytes(low.try_into().expect("four bytes")),
    )
}

/// The first three words of a counter block.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn words(head: &[u8; 12]) -> [u32; 3] {
    let word = |i: usize| u32::from_be_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    [word(0), word(4), word(8)]
}

/// The reverse of [`split`].
#[inline(always)]
pub(crate) fn join(head: [u8; 12], low: u32) -> Block {
    let mut block = [0; BLOCK_LEN];
    block[..12].copy_from_slice(&head);
    block[12..].copy_from_slice(&low.to_be_bytes());
    block
}

impl Sm4 {
    /// Adds the key stream of counter mode to `data`, which encrypts and decrypts alike.
    ///
    /// The first block of key stream is the encryption of `counter`, which then counts up as one
    /// 128-bit big-endian number and wraps. No counter block may ever be used twice under one key,
    /// and nothing here authenticates: see [`Sm4Gcm`](crate::Sm4Gcm).
    pub fn apply_ctr(&self, counter: &[u8; BLOCK_LEN], data: &mut [u8]) {
        let mut counter = u128::from_be_bytes(*counter);
        let mut data = data;
        // Kernels count in 32 bits: each gets what lies before the next carry out of them.
        while !data.is_empty() {
            let until_carry = (1 << 32) - (counter as u32 as u64);
            let len = usize::try_from(until_carry * BLOCK_LEN as u64)
                .map_or(data.len(), |bytes| bytes.min(data.len()));
            let (now, later) = data.split_at_mut(len);
            self.ctr_32(&counter.to_be_bytes(), now);
            counter = counter.wrapping_add(u128::from(until_carry));
            data = later;
        }
    }
}
