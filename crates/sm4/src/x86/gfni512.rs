//! GFNI and AVX-512: sixteen blocks to a group, four groups interleaved, GHASH by VPCLMULQDQ.
//!
//! 64 blocks are 16 registers of state; with the inputs of the round, V, W and constants they just
//! fit into 32.

use std::arch::x86_64::*;

use super::maps::{V, W};
use super::{Words, modes, rounds, vpclmul};
use crate::kernel::Ops;
use crate::sbox::IN;
use crate::schedule::RoundKeys;
use crate::{BLOCK_LEN, KEY_LEN};

type Block = [u8; BLOCK_LEN];

/// Interleaved groups.
const GROUPS: usize = 4;

pub(crate) static OPS: Ops = Ops {
    name: "gfni-avx512",
    available: || {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("gfni")
            && is_x86_feature_detected!("pclmulqdq")
            && is_x86_feature_detected!("vpclmulqdq")
    },
    expand,
    encrypt,
    decrypt,
    cbc_decrypt,
    ctr,
    ctr_behind,
    ghash_powers: vpclmul::powers,
    ghash: vpclmul::update,
};

#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
fn expand(key: &[u8; KEY_LEN]) -> RoundKeys {
    // SAFETY: this function has the features
    unsafe { rounds::expand::<Zmm>(key) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
fn encrypt(round_keys: &RoundKeys, blocks: &mut [Block]) {
    // SAFETY: this function has the features
    unsafe { modes::ecb::<Zmm, GROUPS, false>(round_keys, blocks) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
fn decrypt(round_keys: &RoundKeys, blocks: &mut [Block]) {
    // SAFETY: this function has the features
    unsafe { modes::ecb::<Zmm, GROUPS, true>(round_keys, blocks) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
fn cbc_decrypt(round_keys: &RoundKeys, iv: &mut Block, blocks: &mut [Block]) {
    // SAFETY: this function has the features
    unsafe { modes::cbc_decrypt::<Zmm, GROUPS>(round_keys, iv, blocks) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
fn ctr(round_keys: &RoundKeys, counter: &Block, data: &mut [u8]) {
    // SAFETY: this function has the features
    unsafe { modes::ctr::<Zmm, GROUPS>(round_keys, counter, data) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
fn ctr_behind(round_keys: &RoundKeys, j0: &Block, data: &mut [u8]) -> Block {
    // SAFETY: this function has the features
    unsafe { modes::ctr_behind::<Zmm, GROUPS>(round_keys, j0, data) }
}

/// Sixteen words. A value exists only on processors with AVX-512F, BW, VL and GFNI.
#[derive(Clone, Copy)]
struct Zmm(__m512i);

/// A mask with the lowest `len` of 64 bits.
#[inline(always)]
fn first(len: usize) -> u64 {
    match len {
        64.. => u64::MAX,
        _ => (1 << len) - 1,
    }
}

// SAFETY of all blocks: the unsafe functions' callers promise the processor and the memory; to the
// safe ones a value was passed, which proves the processor.
impl Words for Zmm {
    const BLOCKS: usize = 16;

    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        // SAFETY: the caller's promise
        unsafe { Zmm(_mm512_set1_epi32(word.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's promise
        unsafe { Zmm(_mm512_loadu_si512(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const u8, len: usize) -> Self {
        // SAFETY: the caller's promise; bytes outside of the mask are not touched
        unsafe { Zmm(_mm512_maskz_loadu_epi8(first(len), from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's promise
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, len: usize) {
        // SAFETY: the caller's promise; bytes outside of the mask are not touched
        unsafe { _mm512_mask_storeu_epi8(to.cast(), first(len), self.0) }
    }

    #[inline(always)]
    unsafe fn count_from(first: u32) -> Self {
        // SAFETY: the caller's promise
        unsafe {
            let steps = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            Zmm(_mm512_add_epi32(
                _mm512_set1_epi32(first.cast_signed()),
                steps,
            ))
        }
    }

    #[inline(always)]
    fn first(self) -> u32 {
        // SAFETY: the value proves the processor
        unsafe { _mm512_cvtsi512_si32(self.0).cast_unsigned() }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: the value proves the processor
        unsafe { Zmm(_mm512_xor_si512(self.0, other.0)) }
    }

    #[inline(always)]
    fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: the value proves the processor
        unsafe { Zmm(_mm512_ternarylogic_epi32::<0x96>(self.0, b.0, c.0)) }
    }

    #[inline(always)]
    fn next_input(others: Self, a: Self, b: Self, _sum: Self) -> Self {
        others.xor3(a, b)
    }

    #[inline(always)]
    fn enter(self) -> Self {
        const MATRIX: i64 = IN.matrix.gfni();
        // SAFETY: the value proves the processor
        unsafe {
            Zmm(_mm512_gf2p8affine_epi64_epi8::<0>(
                self.0,
                _mm512_set1_epi64(MATRIX),
            ))
        }
    }

    #[inline(always)]
    fn leave(self) -> Self {
        const MATRIX: i64 = IN.matrix.inverse().gfni();
        // SAFETY: the value proves the processor
        unsafe {
            Zmm(_mm512_gf2p8affine_epi64_epi8::<0>(
                self.0,
                _mm512_set1_epi64(MATRIX),
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
            let (v, w) = (_mm512_set1_epi64(V_MATRIX), _mm512_set1_epi64(W_MATRIX));
            (
                Zmm(_mm512_gf2p8affineinv_epi64_epi8::<V_CONSTANT>(self.0, v)),
                Zmm(_mm512_gf2p8affineinv_epi64_epi8::<W_CONSTANT>(self.0, w)),
            )
        }
    }

    #[inline(always)]
    fn rotate<const BITS: i32>(self) -> Self {
        // SAFETY: the value proves the processor
        unsafe { Zmm(_mm512_rol_epi32::<BITS>(self.0)) }
    }

    #[inline(always)]
    fn swap_bytes(self) -> Self {
        // SAFETY: the value proves the processor
        unsafe {
            let order = _mm512_broadcast_i32x4(_mm_setr_epi8(
                3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12,
            ));
            Zmm(_mm512_shuffle_epi8(self.0, order))
        }
    }

    #[inline(always)]
    fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        // SAFETY: the values prove the processor
        unsafe {
            let ab_low = _mm512_unpacklo_epi32(a.0, b.0);
            let ab_high = _mm512_unpackhi_epi32(a.0, b.0);
            let cd_low = _mm512_unpacklo_epi32(c.0, d.0);
            let cd_high = _mm512_unpackhi_epi32(c.0, d.0);
            [
                Zmm(_mm512_unpacklo_epi64(ab_low, cd_low)),
                Zmm(_mm512_unpackhi_epi64(ab_low, cd_low)),
                Zmm(_mm512_unpacklo_epi64(ab_high, cd_high)),
                Zmm(_mm512_unpackhi_epi64(ab_high, cd_high)),
            ]
        }
    }

    #[inline(always)]
    fn shift_in(self, block: &[u8; 16]) -> Self {
        // SAFETY: the value proves the processor; an array of sixteen bytes may be read
        unsafe {
            let block = _mm512_castsi128_si512(_mm_loadu_si128(block.as_ptr().cast()));
            // lanes: the block, then the first three of `self`
            Zmm(_mm512_permutex2var_epi64(
                self.0,
                _mm512_setr_epi64(8, 9, 0, 1, 2, 3, 4, 5),
                block,
            ))
        }
    }

    #[inline(always)]
    fn shift_out(self) -> Self {
        // SAFETY: the value proves the processor
        unsafe { Zmm(_mm512_alignr_epi64::<2>(_mm512_setzero_si512(), self.0)) }
    }
}
