//! Cipher block chaining (NIST SP 800-38A, 6.2).

use crate::{BLOCK_LEN, Sm4};

impl Sm4 {
    /// Encrypts `blocks` in CBC mode. Afterwards `iv` is the last block of ciphertext, so that a
    /// longer message can go on.
    ///
    /// Every block needs the one before it: this runs at the speed of single blocks, whatever the
    /// kernel. The initialization vector of a message must be unpredictable, padding is the
    /// caller's, and nothing here authenticates.
    pub fn encrypt_cbc(&self, iv: &mut [u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
        for block in blocks {
            let mixed = u128::from_ne_bytes(*block) ^ u128::from_ne_bytes(*iv);
            *block = mixed.to_ne_bytes();
            self.encrypt_blocks(std::slice::from_mut(block));
            *iv = *block;
        }
    }

    /// Decrypts `blocks` in CBC mode. Afterwards `iv` is the last block of ciphertext, so that a
    /// longer message can go on.
    pub fn decrypt_cbc(&self, iv: &mut [u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
        self.kernel.cbc_decrypt(&self.round_keys, iv, blocks);
    }
}
