//! AES-NI and AVX2: eight blocks to a group, four groups interleaved, GHASH by PCLMULQDQ.
//!
//! AESENCLAST with a round key of zero is AES's S-box on bytes that it has also permuted
//! (ShiftRows). A byte shuffle takes the permutation back, and the affine maps are looked up, half
//! a byte at a time, in tables that fit into registers.

use std::arch::x86_64::*;

use super::maps::{V, W, from_aes};
use super::{Words, clmul, modes, rounds, ymm::words_of_ymm};
use crate::kernel::Ops;
use crate::sbox::{Affine, IN};
use crate::schedule::RoundKeys;
use crate::{BLOCK_LEN, KEY_LEN};

type Block = [u8; BLOCK_LEN];

/// Interleaved groups. Sixteen registers have room for the state of two, but the rounds' latency
/// costs more than what has to go through memory: measured, four are half as fast again as two.
const GROUPS: usize = 4;

pub(crate) static OPS: Ops = Ops {
    name: "aesni-avx2",
    available: || {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("aes")
            && is_x86_feature_detected!("pclmulqdq")
    },
    expand,
    encrypt,
    decrypt,
    cbc_decrypt,
    ctr,
    ctr_behind,
    ghash_powers: clmul::powers,
    ghash: clmul::update,
};

#[target_feature(enable = "avx2,aes")]
fn expand(key: &[u8; KEY_LEN]) -> RoundKeys {
    // SAFETY: this function has the features
    unsafe { rounds::expand::<Ymm>(key) }
}

#[target_feature(enable = "avx2,aes")]
fn encrypt(round_keys: &RoundKeys, blocks: &mut [Block]) {
    // SAFETY: this function has the features
    unsafe { modes::ecb::<Ymm, GROUPS, false>(round_keys, blocks) }
}

#[target_feature(enable = "avx2,aes")]
fn decrypt(round_keys: &RoundKeys, blocks: &mut [Block]) {
    // SAFETY: this function has the features
    unsafe { modes::ecb::<Ymm, GROUPS, true>(round_keys, blocks) }
}

#[target_feature(enable = "avx2,aes")]
fn cbc_decrypt(round_keys: &RoundKeys, iv: &mut Block, blocks: &mut [Block]) {
    // SAFETY: this function has the features
    unsafe { modes::cbc_decrypt::<Ymm, GROUPS>(round_keys, iv, blocks) }
}

#[target_feature(enable = "avx2,aes")]
fn ctr(round_keys: &RoundKeys, counter: &Block, data: &mut [u8]) {
    // SAFETY: this function has the features
    unsafe { modes::ctr::<Ymm, GROUPS>(round_keys, counter, data) }
}

#[target_feature(enable = "avx2,aes")]
fn ctr_behind(round_keys: &RoundKeys, j0: &Block, data: &mut [u8]) -> Block {
    // SAFETY: this function has the features
    unsafe { modes::ctr_behind::<Ymm, GROUPS>(round_keys, j0, data) }
}

/// Eight words. A value exists only on processors with AVX2 and AES-NI.
#[derive(Clone, Copy)]
struct Ymm(__m256i);

impl Ymm {
    /// The low and the high half of each byte.
    #[inline(always)]
    fn nibbles(self) -> [__m256i; 2] {
        // SAFETY: the value proves the processor
        unsafe {
            let mask = _mm256_set1_epi8(15);
            [
                _mm256_and_si256(self.0, mask),
                _mm256_and_si256(_mm256_srli_epi16::<4>(self.0), mask),
            ]
        }
    }

    /// The map whose tables these are, on the bytes of which `nibbles` are the halves.
    #[inline(always)]
    fn look_up(nibbles: [__m256i; 2], tables: &[[u8; 16]; 2], _proof: Self) -> Self {
        // SAFETY: the value proves the processor; tables of sixteen bytes may be read
        unsafe {
            let low = _mm256_broadcastsi128_si256(_mm_loadu_si128(tables[0].as_ptr().cast()));
            let high = _mm256_broadcastsi128_si256(_mm_loadu_si128(tables[1].as_ptr().cast()));
            Ymm(_mm256_xor_si256(
                _mm256_shuffle_epi8(low, nibbles[0]),
                _mm256_shuffle_epi8(high, nibbles[1]),
            ))
        }
    }

    /// AES's S-box on each byte.
    #[inline(always)]
    fn aes_sbox(self) -> Self {
        // SAFETY: the value proves the processor
        unsafe {
            let zero = _mm_setzero_si128();
            let low = _mm_aesenclast_si128(_mm256_castsi256_si128(self.0), zero);
            let high = _mm_aesenclast_si128(_mm256_extracti128_si256::<1>(self.0), zero);
            // ShiftRows moved byte i + 4j to i + 4(j - i)
            let back = _mm256_broadcastsi128_si256(_mm_setr_epi8(
                0, 13, 10, 7, 4, 1, 14, 11, 8, 5, 2, 15, 12, 9, 6, 3,
            ));
            Ymm(_mm256_shuffle_epi8(_mm256_set_m128i(high, low), back))
        }
    }
}

impl Words for Ymm {
    words_of_ymm!(Ymm);

    #[inline(always)]
    fn enter(self) -> Self {
        static TABLES: [[u8; 16]; 2] = Affine {
            matrix: IN.matrix,
            constant: 0,
        }
        .nibble_tables();
        Self::look_up(self.nibbles(), &TABLES, self)
    }

    #[inline(always)]
    fn leave(self) -> Self {
        static TABLES: [[u8; 16]; 2] = Affine {
            matrix: IN.matrix.inverse(),
            constant: 0,
        }
        .nibble_tables();
        Self::look_up(self.nibbles(), &TABLES, self)
    }

    #[inline(always)]
    fn substitute(self) -> (Self, Self) {
        static V_TABLES: [[u8; 16]; 2] = from_aes(V).nibble_tables();
        static W_TABLES: [[u8; 16]; 2] = from_aes(W).nibble_tables();
        let nibbles = self.aes_sbox().nibbles();
        (
            Self::look_up(nibbles, &V_TABLES, self),
            Self::look_up(nibbles, &W_TABLES, self),
        )
    }
}
