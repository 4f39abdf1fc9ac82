//! GHASH, the authenticator of GCM (NIST SP 800-38D, 6.4), in the form that all kernels compute.
//!
//! GHASH numbers the bits of a block backwards, which no instruction does. Every kernel computes it
//! as POLYVAL instead (RFC 8452, appendix A): a block is the number that its bytes are in
//! big-endian order, bit `i` of the number is the coefficient of x^i, and the product of two blocks
//! is
//!
//! ```text
//! dot(a, b) = a · b · x^-128   modulo   x^128 + x^127 + x^126 + x^121 + 1
//! ```
//!
//! with the hash key multiplied by x once beforehand. One step of the hash is
//! `state = dot(state ^ block, key)`. Powers of the key let a kernel take many blocks in one step:
//! `dot(state ^ b1, key^n) ^ dot(b2, key^(n-1)) ^ … ^ dot(bn, key)`.

use zeroize::Zeroize;

use crate::kernel::Kernel;

/// The highest power of the hash key that is kept, and so the most blocks of one step.
pub(crate) const STEP: usize = 32;

/// Byte strings to absorb one after the other, each filled up with zeros to whole blocks. A message
/// that fits into one step, with its associated data and lengths, costs one reduction that way.
pub(crate) type Parts<'a> = [&'a [u8]; 3];

/// Powers of the hash key under `dot`. Those that the kernel does not use are zero.
#[repr(C, align(64))]
pub(crate) struct Powers {
    /// From power [`STEP`] down to 1, in the order of the blocks to multiply; then zeros, because
    /// vectors of four powers that begin at one of the last three reach beyond.
    descending: [u128; STEP + 4],
}

impl Powers {
    pub(crate) fn zero() -> Self {
        Powers {
            descending: [0; STEP + 4],
        }
    }

    pub(crate) fn get(&self, power: usize) -> u128 {
        self.from(power)[0]
    }

    pub(crate) fn set(&mut self, power: usize, value: u128) {
        self.descending[STEP - power] = value;
    }

    /// `power`, then the next lower ones, at least four numbers.
    #[inline(always)]
    pub(crate) fn from(&self, power: usize) -> &[u128] {
        &self.descending[STEP - power..]
    }
}

impl Drop for Powers {
    fn drop(&mut self) {
        self.descending.zeroize();
    }
}

/// Blocks in all parts, each filled up by itself.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn blocks_of(parts: Parts) -> usize {
    let [a, b, c] = parts.map(|part| part.len().div_ceil(crate::BLOCK_LEN));
    a + b + c
}

/// The hash of one key.
pub(crate) struct Ghash {
    powers: Powers,
    kernel: Kernel,
}

impl Ghash {
    /// `hash_key` is the encryption of the zero block.
    pub(crate) fn new(hash_key: &[u8; 16], kernel: Kernel) -> Self {
        let h = u128::from_be_bytes(*hash_key);
        // times x; what leaves at the top comes back as the polynomial, without a branch on it
        let carry = (h >> 127).wrapping_neg();
        let key = h << 1 ^ carry & (0xc200_0000_0000_0000 << 64 | 1);
        Ghash {
            powers: kernel.ghash_powers(key),
            kernel,
        }
    }

    /// Absorbs `parts`.
    pub(crate) fn update(&self, state: u128, parts: Parts) -> u128 {
        self.kernel.ghash(&self.powers, state, parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::ghash::{GHash, universal_hash::UniversalHash};

    #[test]
    fn every_kernel_is_the_reference() {
        let mut random = crate::testing::Random::new("ghash");
        for kernel in Kernel::available() {
            for len in (0..=40)
                .chain(60..=70)
                .map(|blocks| 16 * blocks)
                .chain(0..=700)
            {
                let key = random.array::<16>();
                let data = random.bytes(len);
                let mut reference = GHash::new(&key.into());
                reference.update_padded(&data);
                let ghash = Ghash::new(&key, kernel);
                let hash = ghash.update(0, [&data, &[], &[]]).to_be_bytes();
                assert_eq!(hash[..], reference.finalize()[..], "{kernel}, {len} bytes");
            }
        }
    }

    #[test]
    fn parts_are_padded_one_by_one() {
        let mut random = crate::testing::Random::new("parts_are_padded_one_by_one");
        for kernel in Kernel::available() {
            let ghash = Ghash::new(&random.array(), kernel);
            for a in [0, 1, 15, 16, 17, 64, 100, 490, 512, 513, 2000] {
                for b in [0, 1, 16, 33, 127, 128, 480, 500, 512, 1025] {
                    let parts = [random.bytes(a), random.bytes(b), random.bytes(16)];
                    let start = u128::from_ne_bytes(random.array());
                    let one_by_one = parts
                        .iter()
                        .fold(start, |state, part| ghash.update(state, [&[], part, &[]]));
                    let together = ghash.update(start, [&parts[0], &parts[1], &parts[2]]);
                    assert_eq!(together, one_by_one, "{kernel}, {a} and {b} bytes");
                }
            }
        }
    }
}
