//! Galois/Counter Mode over SM4 (RFC 8998, NIST SP 800-38D).

use std::fmt;

use zeroize::Zeroize;

use crate::ghash::Ghash;
use crate::kernel::Kernel;
use crate::{BLOCK_LEN, KEY_LEN, NONCE_LEN, Sm4, TAG_LEN, ctr};

type Block = [u8; BLOCK_LEN];

/// Longest message that one nonce may protect: 2^32 − 2 counter blocks (SP 800-38D, 5.2.1.1).
pub const MAX_GCM_LEN: u64 = (1 << 36) - 32;

/// Sealing encrypts this many bytes, then hashes them while they are in the first cache.
const CHUNK: usize = 16 * 1024;
/// The first chunk is shorter: J0, which masks the tag, is encrypted along with it.
const FIRST_CHUNK: usize = CHUNK - BLOCK_LEN;

/// Messages up to this length are opened together with the mask of the tag: with it, they fit into
/// one group of sixteen.
const SHORT: usize = 15 * BLOCK_LEN;

/// The tag does not belong to this nonce, associated data and ciphertext.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the authentication tag does not match")]
pub struct TagMismatch;

/// SM4-GCM with 96-bit nonces and 128-bit tags. Its keys are wiped when dropped.
///
/// A nonce that repeats under one key gives away the authentication key and the XOR of both
/// messages; callers that draw nonces at random must stop at 2^32 messages a key (SP 800-38D, 8.3).
pub struct Sm4Gcm {
    cipher: Sm4,
    ghash: Ghash,
}

impl Sm4Gcm {
    /// Expands `key` for the fastest kernel and derives the hash key from it.
    pub fn new(key: &[u8; KEY_LEN]) -> Self {
        Self::with_kernel(key, Kernel::best())
    }

    /// Expands `key` for one kernel and derives the hash key from it.
    pub fn with_kernel(key: &[u8; KEY_LEN], kernel: Kernel) -> Self {
        let cipher = Sm4::with_kernel(key, kernel);
        let mut hash_key = [[0; BLOCK_LEN]];
        cipher.encrypt_blocks(&mut hash_key);
        let ghash = Ghash::new(&hash_key[0], kernel);
        hash_key.zeroize();
        Self { cipher, ghash }
    }

    /// The kernel in use.
    pub fn kernel(&self) -> Kernel {
        self.cipher.kernel()
    }

    /// Encrypts `buf` in place and returns the tag over it and `aad`.
    ///
    /// # Panics
    ///
    /// If `buf` is longer than [`MAX_GCM_LEN`] (64 GiB): the counter would wrap into reused key
    /// stream.
    pub fn seal_in_place(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        buf: &mut [u8],
    ) -> [u8; TAG_LEN] {
        assert!(
            buf.len() as u64 <= MAX_GCM_LEN,
            "message longer than GCM's counter allows"
        );
        self.seal_from(&ctr::join(*nonce, 1), aad, buf)
    }

    /// Verifies `tag`, then decrypts `buf` in place. On error `buf` still holds the ciphertext.
    pub fn open_in_place(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        buf: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), TagMismatch> {
        if buf.len() as u64 > MAX_GCM_LEN {
            return Err(TagMismatch);
        }
        self.open_from(&ctr::join(*nonce, 1), aad, buf, tag)
    }

    /// Seals with the counter block J0, which masks the tag; the message has those that follow.
    fn seal_from(&self, j0: &Block, aad: &[u8], buf: &mut [u8]) -> [u8; TAG_LEN] {
        let lengths = lengths(aad, buf);
        let (first, later) = buf.split_at_mut(buf.len().min(FIRST_CHUNK));
        let mask = self.cipher.ctr_behind(j0, first);
        if later.is_empty() {
            return masked(self.ghash.update(0, [aad, first, &lengths]), mask);
        }
        let mut state = self.ghash.update(0, [aad, first, &[]]);
        let mut counter = later_block(j0, CHUNK / BLOCK_LEN);
        for chunk in later.chunks_mut(CHUNK) {
            self.cipher.ctr_32(&counter, chunk);
            state = self.ghash.update(state, [chunk, &[], &[]]);
            counter = later_block(&counter, CHUNK / BLOCK_LEN);
        }
        masked(self.ghash.update(state, [&lengths, &[], &[]]), mask)
    }

    /// The reverse of [`seal_from`](Self::seal_from).
    fn open_from(
        &self,
        j0: &Block,
        aad: &[u8],
        buf: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), TagMismatch> {
        let hash = self.ghash.update(0, [aad, buf, &lengths(aad, buf)]);
        let short = buf.len() <= SHORT;
        let mask = match short {
            // One group has the mask and the key stream: so it is decrypted before it is known to
            // be right.
            true => self.cipher.ctr_behind(j0, buf),
            false => self.cipher.ctr_behind(j0, &mut []),
        };
        // One comparison of all bytes: how long it takes says nothing about which of them differ.
        let matches = u128::from_ne_bytes(masked(hash, mask)) == u128::from_ne_bytes(*tag);
        if matches != short {
            // Decrypts a long message, or takes back what was done to a short one.
            self.cipher.ctr_32(&later_block(j0, 1), buf);
        }
        if matches { Ok(()) } else { Err(TagMismatch) }
    }
}

/// The last block that GHASH absorbs: both lengths in bits.
fn lengths(aad: &[u8], buf: &[u8]) -> Block {
    (((aad.len() as u128 * 8) << 64) | (buf.len() as u128 * 8)).to_be_bytes()
}

/// The tag: the hash under the encryption of J0.
fn masked(hash: u128, mask: Block) -> [u8; TAG_LEN] {
    (hash ^ u128::from_be_bytes(mask)).to_be_bytes()
}

/// The counter block `steps` later: only its last 32 bits count, and they wrap.
fn later_block(counter: &Block, steps: usize) -> Block {
    let (head, low) = ctr::split(counter);
    ctr::join(head, low.wrapping_add(steps as u32))
}

impl fmt::Debug for Sm4Gcm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sm4Gcm").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;
    use ::ghash::{GHash, universal_hash::UniversalHash};
    use aes_gcm::{AesGcm, aead::AeadInOut};
    use cipher::{Array, KeyInit, consts::U16};

    /// Product in GHASH's own field, bit by bit (SP 800-38D, 6.3): bit 0 is the highest of the
    /// number.
    fn product(a: u128, b: u128) -> u128 {
        let (mut sum, mut power) = (0, b);
        for bit in (0..128).rev() {
            if a >> bit & 1 == 1 {
                sum ^= power;
            }
            power = power >> 1 ^ if power & 1 == 1 { 0xe1 << 120 } else { 0 };
        }
        sum
    }

    /// a^(2^128 - 2)
    fn inverse(a: u128) -> u128 {
        let (mut result, mut square) = (1 << 127, a);
        for _ in 1..128 {
            square = product(square, square);
            result = product(result, square);
        }
        result
    }

    /// The sixteen-byte nonce from which GCM derives this J0: `GHASH(nonce, 0^64 || 128)` solved
    /// for the nonce.
    fn nonce_for(key: &[u8; 16], j0: u128) -> [u8; 16] {
        let mut h = [[0; 16]];
        Sm4::new(key).encrypt_blocks(&mut h);
        let over_h = inverse(u128::from_be_bytes(h[0]));
        let nonce = product(product(j0, over_h) ^ 128, over_h).to_be_bytes();

        let mut check = GHash::new(&h[0].into());
        check.update(&[nonce.into(), 128u128.to_be_bytes().into()]);
        assert_eq!(check.finalize()[..], j0.to_be_bytes());
        nonce
    }

    /// With nonces of 96 bits the counter starts at 1 and wraps behind 64 GiB. Other nonces may
    /// start it just before the end; with their help the reference shows what must happen there:
    /// the last 32 bits wrap, the others stay.
    #[test]
    fn counter_wraps_in_its_last_32_bits() {
        let mut random = Random::new("counter_wraps_in_its_last_32_bits");
        for kernel in Kernel::available() {
            let key = random.array();
            let gcm = Sm4Gcm::with_kernel(&key, kernel);
            let reference = AesGcm::<sm4::Sm4, U16>::new(&Array::from(key));
            for before in [0, 1, 2, 7, 8, 9, 15, 16, 17, 62, 63, 64, 65, 100, 1030] {
                let low = u32::MAX - before;
                let head = u128::from_be_bytes(random.array()) << 32;
                for high in [head, u128::MAX << 32] {
                    let j0 = high | u128::from(low);
                    let nonce = nonce_for(&key, j0);
                    let aad = random.bytes(20);
                    let plain = random.bytes(16 * 1200 + 7);
                    for len in [0, 5, 100, 128, 240, 241, 300, 2000, plain.len()] {
                        let mut expected = plain[..len].to_vec();
                        let expected_tag: Block = reference
                            .encrypt_inout_detached(
                                &Array::from(nonce),
                                &aad,
                                expected.as_mut_slice().into(),
                            )
                            .unwrap()
                            .into();
                        let mut data = plain[..len].to_vec();
                        let tag = gcm.seal_from(&j0.to_be_bytes(), &aad, &mut data);
                        assert!(data == expected, "{kernel}, {low:x}, {len} bytes");
                        assert_eq!(tag, expected_tag, "{kernel}, {low:x}, {len} bytes");
                        gcm.open_from(&j0.to_be_bytes(), &aad, &mut data, &tag)
                            .unwrap();
                        assert!(data == plain[..len], "{kernel}, {low:x}, {len} bytes");
                    }
                }
            }
        }
    }
}
