//! A block cipher used as a pseudo-random function.

use aws_lc_rs::cipher::{AES_256, EncryptingKey, UnboundCipherKey};
use onionskin_sm4::Sm4;
use zeroize::Zeroize;

pub(crate) const BLOCK_LEN: usize = 16;
pub(crate) type Block = [u8; BLOCK_LEN];

/// Encrypts blocks independently of each other ("ECB", which is what a PRF wants and data must
/// never see).
///
/// Measured with AES instructions: aws-lc-rs takes 24 ns for one block and 145 ns for sixteen, and
/// allocates nothing. RustCrypto's `aes` interleaves eight blocks and takes 50 ns for sixteen; not
/// enough of a row's cost to add a second AES.
pub(crate) enum BlockPrf {
    Aes(Box<EncryptingKey>),
    Sm(Sm4),
}

impl BlockPrf {
    /// AES-256; wipes `key`.
    pub(crate) fn aes(key: &mut [u8; 32]) -> Self {
        let schedule = UnboundCipherKey::new(&AES_256, &key[..])
            .and_then(EncryptingKey::ecb)
            .expect("an AES-256 key has 32 bytes");
        key.zeroize();
        BlockPrf::Aes(Box::new(schedule))
    }

    /// SM4; wipes `key`.
    pub(crate) fn sm(key: &mut [u8; 16]) -> Self {
        let schedule = Sm4::new(key);
        key.zeroize();
        BlockPrf::Sm(schedule)
    }

    pub(crate) fn encrypt(&self, blocks: &mut [Block]) {
        match self {
            BlockPrf::Aes(key) => {
                key.encrypt(blocks.as_flattened_mut())
                    .expect("whole blocks always encrypt");
            }
            BlockPrf::Sm(key) => key.encrypt_blocks(blocks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::hex;

    #[test]
    fn fips_197_appendix_c3() {
        let mut key: [u8; 32] =
            hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
                .try_into()
                .unwrap();
        let plain: Block = hex("00112233445566778899aabbccddeeff").try_into().unwrap();
        let mut blocks = [plain; 3];
        BlockPrf::aes(&mut key).encrypt(&mut blocks);
        for block in blocks {
            assert_eq!(block[..], hex("8ea2b7ca516745bfeafc49904b496089")[..]);
        }
        assert_eq!(key, [0; 32]);
    }
}
