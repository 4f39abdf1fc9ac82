//! GHASH by PCLMULQDQ, eight blocks to one reduction.

use std::arch::x86_64::*;

use crate::BLOCK_LEN;
use crate::ghash::{Parts, Powers, blocks_of};

/// Blocks to one reduction.
const STEP: usize = 8;

/// A sum of products before reduction: its low and high 128 bits, and what belongs in the middle.
#[derive(Clone, Copy)]
struct Sum {
    low: __m128i,
    middle: __m128i,
    high: __m128i,
}

#[inline]
#[target_feature(enable = "sse2")]
fn zero() -> Sum {
    Sum {
        low: _mm_setzero_si128(),
        middle: _mm_setzero_si128(),
        high: _mm_setzero_si128(),
    }
}

/// Adds `a · b`.
#[inline]
#[target_feature(enable = "pclmulqdq")]
fn add_product(sum: &mut Sum, a: __m128i, b: __m128i) {
    let crossed = _mm_xor_si128(
        _mm_clmulepi64_si128::<0x01>(a, b),
        _mm_clmulepi64_si128::<0x10>(a, b),
    );
    sum.low = _mm_xor_si128(sum.low, _mm_clmulepi64_si128::<0x00>(a, b));
    sum.high = _mm_xor_si128(sum.high, _mm_clmulepi64_si128::<0x11>(a, b));
    sum.middle = _mm_xor_si128(sum.middle, crossed);
}

/// The sum times x^-128 in the field: twice the multiple of the polynomial that cancels the lowest
/// 64 bits is added, then divided by x^64.
#[inline]
#[target_feature(enable = "pclmulqdq")]
fn reduce(sum: Sum) -> __m128i {
    let low = _mm_xor_si128(sum.low, _mm_slli_si128::<8>(sum.middle));
    let high = _mm_xor_si128(sum.high, _mm_srli_si128::<8>(sum.middle));
    reduce_halves(low, high)
}

/// [`reduce`] without a middle.
#[inline]
#[target_feature(enable = "pclmulqdq")]
pub(super) fn reduce_halves(low: __m128i, high: __m128i) -> __m128i {
    // x^63 + x^62 + x^57
    let fold = _mm_set1_epi64x(0xc200_0000_0000_0000_u64.cast_signed());
    let times = _mm_clmulepi64_si128::<0x00>(low, fold);
    let low = _mm_xor_si128(_mm_shuffle_epi32::<0x4e>(low), times);
    let times = _mm_clmulepi64_si128::<0x00>(low, fold);
    let swapped = _mm_shuffle_epi32::<0x4e>(low);
    _mm_xor_si128(_mm_xor_si128(high, swapped), times)
}

/// A block as a number: its bytes are big-endian, registers little-endian.
#[inline]
#[target_feature(enable = "ssse3")]
fn number(block: &[u8; BLOCK_LEN]) -> __m128i {
    let backwards = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    // SAFETY: an array of sixteen bytes may be read
    let bytes = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
    _mm_shuffle_epi8(bytes, backwards)
}

#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn to_register(x: u128) -> __m128i {
    _mm_set_epi64x((x >> 64) as i64, x as i64)
}

#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn from_register(x: __m128i) -> u128 {
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(x, x));
    u128::from(high.cast_unsigned()) << 64 | u128::from(_mm_cvtsi128_si64(x).cast_unsigned())
}

/// `dot(a, b)` of [`crate::ghash`].
#[inline]
#[target_feature(enable = "pclmulqdq")]
pub(super) fn dot(a: __m128i, b: __m128i) -> __m128i {
    let mut sum = zero();
    add_product(&mut sum, a, b);
    reduce(sum)
}

/// The powers that [`update`] uses.
#[target_feature(enable = "pclmulqdq")]
pub(super) fn powers(key: u128) -> Powers {
    let mut powers = Powers::zero();
    let key = to_register(key);
    let mut power = key;
    powers.set(1, from_register(key));
    for n in 2..=STEP {
        power = dot(power, key);
        powers.set(n, from_register(power));
    }
    powers
}

/// Adds the products of `data`, its last block filled up with zeros, with `power` and those that
/// follow. `carried` is added to the first block and taken away.
#[inline]
#[target_feature(enable = "ssse3,pclmulqdq")]
fn add_blocks(sum: &mut Sum, powers: &Powers, power: usize, carried: &mut __m128i, data: &[u8]) {
    let powers = powers.from(power);
    let (blocks, rest) = data.as_chunks::<BLOCK_LEN>();
    for (block, power) in blocks.iter().zip(powers) {
        let block = _mm_xor_si128(number(block), *carried);
        add_product(sum, block, to_register(*power));
        *carried = _mm_setzero_si128();
    }
    if !rest.is_empty() {
        let mut block = [0; BLOCK_LEN];
        block[..rest.len()].copy_from_slice(rest);
        let block = _mm_xor_si128(number(&block), *carried);
        add_product(sum, block, to_register(powers[blocks.len()]));
        *carried = _mm_setzero_si128();
    }
}

/// Absorbs the parts.
#[target_feature(enable = "ssse3,pclmulqdq")]
pub(super) fn update(powers: &Powers, state: u128, parts: Parts) -> u128 {
    let mut state = to_register(state);
    let mut sum = zero();
    // The blocks that still fit before the next reduction
    let mut left = blocks_of(parts).min(STEP);
    let mut behind = blocks_of(parts) - left;
    for part in parts {
        let mut part = part;
        while !part.is_empty() {
            let (now, later) = part.split_at(part.len().min(left * BLOCK_LEN));
            add_blocks(&mut sum, powers, left, &mut state, now);
            part = later;
            left -= now.len().div_ceil(BLOCK_LEN);
            if left == 0 {
                state = reduce(sum);
                sum = zero();
                left = behind.min(STEP);
                behind -= left;
            }
        }
    }
    from_register(state)
}
