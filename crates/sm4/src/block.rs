//! The raw block cipher.

use std::fmt;

use cipher::{Array, BlockCipherEncrypt, KeyInit, consts::U16};

use crate::{BLOCK_LEN, KEY_LEN};

/// An SM4 key schedule for encryption.
///
/// The raw permutation protects nothing by itself: use it to build a pseudo-random function or a mode.
pub struct Sm4 {
    schedule: sm4::Sm4,
}

impl Sm4 {
    /// Expands `key`.
    pub fn new(key: &[u8; KEY_LEN]) -> Self {
        Self {
            schedule: sm4::Sm4::new(&Array::from(*key)),
        }
    }

    /// Encrypts every block in place, each independently of the others.
    pub fn encrypt_blocks(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        let blocks: &mut [Array<u8, U16>] = Array::cast_slice_from_core_mut(blocks);
        self.schedule.encrypt_blocks(blocks);
    }
}

impl fmt::Debug for Sm4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sm4").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // GB/T 32907-2016, appendix A: key and plaintext are the same sixteen bytes.
    const KEY: [u8; 16] = [
        0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32,
        0x10,
    ];

    #[test]
    fn standard_vector() {
        let mut blocks = [KEY];
        Sm4::new(&KEY).encrypt_blocks(&mut blocks);
        assert_eq!(
            blocks[0],
            [
                0x68, 0x1e, 0xdf, 0x34, 0xd2, 0x06, 0x96, 0x5e, 0x86, 0xb3, 0xe9, 0x4f, 0x53, 0x6e,
                0x42, 0x46
            ]
        );
    }

    // The appendix's second example, in full: about 1.5 s, but it would show a rare carry or table error.
    #[test]
    fn standard_vector_a_million_times() {
        let cipher = Sm4::new(&KEY);
        let mut blocks = [KEY];
        for _ in 0..1_000_000 {
            cipher.encrypt_blocks(&mut blocks);
        }
        assert_eq!(
            blocks[0],
            [
                0x59, 0x52, 0x98, 0xc7, 0xc6, 0xfd, 0x27, 0x1f, 0x04, 0x02, 0xf8, 0x04, 0xc3, 0x3d,
                0x3f, 0x66
            ]
        );
    }

    #[test]
    fn many_blocks_are_the_single_blocks() {
        let cipher = Sm4::new(&KEY);
        let mut together: Vec<[u8; 16]> = (0..67u8).map(|i| [i; 16]).collect();
        let mut apart = together.clone();
        cipher.encrypt_blocks(&mut together);
        for block in &mut apart {
            cipher.encrypt_blocks(std::slice::from_mut(block));
        }
        assert_eq!(together, apart);
        cipher.encrypt_blocks(&mut []);
    }

    #[test]
    fn debug_shows_no_key() {
        assert_eq!(format!("{:?}", Sm4::new(&KEY)), "Sm4 { .. }");
    }
}
