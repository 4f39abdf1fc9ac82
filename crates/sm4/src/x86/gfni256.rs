//! GFNI and AVX2: eight blocks to a group, four groups interleaved, GHASH by PCLMULQDQ.

use std::arch::x86_64::*;

use super::maps::{V, W};
use super::{Words, clmul, modes, rounds, ymm::words_of_ymm};
use crate::kernel::Ops;
use crate::sbox::IN;
use crate::schedule::RoundKeys;
use crate::{BLOCK_LEN, KEY_LEN};

type Block = [u8; BLOCK_LEN];

/// Interleaved groups. Sixteen registers have room for the state of two, but the rounds' latency
/// costs more than what has to go through memory: measured, four are half as fast again as two.
const GROUPS: usize = 4;

pub(crate) static OPS: Ops = Ops {
    name: "gfni-avx2",
    available: || {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("gfni")
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

#[target_feature(enable = "avx2,gfni")]
fn expand(key: &[u8; KEY_LEN]) -> RoundKeys {
    // SAFETY: this function has the features
    unsafe { rounds::expand::<Ymm>(key) }
}

#[target_feature(enable = "avx2,gfni")]
fn encrypt(round_keys: &RoundKeys, blocks: &mut [Block]) {
    // SAFETY: this function has the features
    unsafe { modes::ecb::<Ymm, GROUPS, false>(round_keys, blocks) }
}

#[target_feature(enable = "avx2,gfni")]
fn decrypt(round_keys: &RoundKeys, blocks: &mut [Block]) {
    // SAFETY: this function has the features
    unsafe { modes::ecb::<Ymm, GROUPS, true>(round_keys, blocks) }
}

#[target_feature(enable = "avx2,gfni")]
fn cbc_decrypt(round_keys: &RoundKeys, iv: &mut Block, blocks: &mut [Block]) {
    // SAFETY: this function has the features
    unsafe { modes::cbc_decrypt::<Ymm, GROUPS>(round_keys, iv, blocks) }
}

#[target_feature(enable = "avx2,gfni")]
fn ctr(round_keys: &RoundKeys, counter: &Block, data: &mut [u8]) {
    // SAFETY: this function has the features
    unsafe { modes::ctr::<Ymm, GROUPS>(round_keys, counter, data) }
}

#[target_feature(enable = "avx2,gfni")]
fn ctr_behind(round_keys: &RoundKeys, j0: &Block, data: &mut [u8]) -> Block {
    // SAFETY: this function has the features
    unsafe { modes::ctr_behind::<Ymm, GROUPS>(round_keys, j0, data) }
}

/// Eight words. A value exists only on processors with AVX2 and GFNI.
#[derive(Clone, Copy)]
struct Ymm(__m256i);

impl Words for Ymm {
    words_of_ymm!(Ymm);

    #[inline(always)]
    fn enter(self) -> Self {
        const MATRIX: i64 = IN.matrix.gfni();
        // SAFETY: the value proves the processor
        unsafe {
            Ymm(_mm256_gf2p8affine_epi64_epi8::<0>(
                self.0,
                _mm256_set1_epi64x(MATRIX),
            ))
        }
    }

    #[inline(always)]
    fn leave(self) -> Self {
        const MATRIX: i64 = IN.matrix.inverse().gfni();
        // SAFETY: the value proves the processor
        unsafe {
            Ymm(_mm256_gf2p8affine_epi64_epi8::<0>(
                self.0,
                _mm256_set1_epi64x(MATRIX),
            ))
        }
    }

    #[inline(always)]
    fn substitute(self) -> (Self, Self) {
        const V_MATRIX: i64 = V.matrix.gfni();
        const W_MATRIX: i64 = W.matrix.gfni();
        const V_CONSTANT: i32 = V.constant as i32;
        const W_CONSTANT: i32 = W.constant as i32;
        // SAFETY: the value proves the processor
        unsafe {
            let (v, w) = (_mm256_set1_epi64x(V_MATRIX), _mm256_set1_epi64x(W_MATRIX));
            (
                Ymm(_mm256_gf2p8affineinv_epi64_epi8::<V_CONSTANT>(self.0, v)),
                Ymm(_mm256_gf2p8affineinv_epi64_epi8::<W_CONSTANT>(self.0, w)),
            )
        }
    }
}
