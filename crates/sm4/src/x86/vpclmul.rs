//! GHASH by VPCLMULQDQ, four blocks to a register and 32 to one reduction.

use std::arch::x86_64::*;

use super::clmul::{dot, from_register, reduce_halves, to_register};
use crate::BLOCK_LEN;
use crate::ghash::{Parts, Powers, STEP, blocks_of};

/// Sums of products before reduction, four beside each other: their low and high 128 bits, and what
/// belongs in the middle.
#[derive(Clone, Copy)]
struct Sums {
    low: __m512i,
    middle: __m512i,
    high: __m512i,
}

#[inline]
#[target_feature(enable = "avx512f")]
fn zero() -> Sums {
    Sums {
        low: _mm512_setzero_si512(),
        middle: _mm512_setzero_si512(),
        high: _mm512_setzero_si512(),
    }
}

/// Adds the four products of numbers in `a` and `b`.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn add_products(sums: &mut Sums, a: __m512i, b: __m512i) {
    const XOR: i32 = 0x96;
    let (left, right) = (
        _mm512_clmulepi64_epi128::<0x01>(a, b),
        _mm512_clmulepi64_epi128::<0x10>(a, b),
    );
    sums.low = _mm512_xor_si512(sums.low, _mm512_clmulepi64_epi128::<0x00>(a, b));
    sums.high = _mm512_xor_si512(sums.high, _mm512_clmulepi64_epi128::<0x11>(a, b));
    sums.middle = _mm512_ternarylogic_epi64::<XOR>(sums.middle, left, right);
}

/// Adds up the four sums and reduces: see [`super::clmul`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,pclmulqdq")]
fn reduce(sums: Sums) -> __m128i {
    let low = _mm512_xor_si512(sums.low, _mm512_bslli_epi128::<8>(sums.middle));
    let high = _mm512_xor_si512(sums.high, _mm512_bsrli_epi128::<8>(sums.middle));
    reduce_halves(add_lanes(low), add_lanes(high))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add_lanes(x: __m512i) -> __m128i {
    let half = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64::<1>(x));
    _mm_xor_si128(
        _mm256_castsi256_si128(half),
        _mm256_extracti128_si256::<1>(half),
    )
}

/// Four blocks as numbers: their bytes are big-endian, registers little-endian.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn numbers(blocks: __m512i) -> __m512i {
    let backwards = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    _mm512_shuffle_epi8(blocks, _mm512_broadcast_i32x4(backwards))
}

/// `power` and the three below; zero below the first.
#[inline]
#[target_feature(enable = "avx512f")]
fn powers_from(powers: &Powers, power: usize) -> __m512i {
    let four: &[u128; 4] = powers.from(power).first_chunk().expect("padded to four");
    // SAFETY: 64 bytes may be read
    unsafe { _mm512_loadu_si512(four.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,pclmulqdq")]
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
#[target_feature(enable = "avx512f,avx512bw,vpclmulqdq")]
fn add_blocks(
    sums: &mut Sums,
    powers: &Powers,
    mut power: usize,
    carried: &mut __m128i,
    data: &[u8],
) {
    let mut add = _mm512_zextsi128_si512(*carried);
    let (registers, rest) = data.as_chunks::<64>();
    for bytes in registers {
        // SAFETY: 64 bytes may be read
        let blocks = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        let blocks = _mm512_xor_si512(numbers(blocks), add);
        add_products(sums, blocks, powers_from(powers, power));
        add = _mm512_setzero_si512();
        power -= 4;
    }
    if !rest.is_empty() {
        let mask = (1 << rest.len()) - 1;
        // SAFETY: only the bytes of `rest` are in the mask, others are not touched
        let blocks = unsafe { _mm512_maskz_loadu_epi8(mask, rest.as_ptr().cast()) };
        let blocks = _mm512_xor_si512(numbers(blocks), add);
        add_products(sums, blocks, powers_from(powers, power));
    }
    *carried = _mm_setzero_si128();
}

/// Absorbs the parts.
#[target_feature(enable = "avx512f,avx512bw,pclmulqdq,vpclmulqdq")]
pub(super) fn update(powers: &Powers, state: u128, parts: Parts) -> u128 {
    let mut state = to_register(state);
    let mut sums = zero();
    // The blocks that still fit before the next reduction
    let mut left = blocks_of(parts).min(STEP);
    let mut behind = blocks_of(parts) - left;
    for part in parts {
        let mut part = part;
        while !part.is_empty() {
            let (now, later) = part.split_at(part.len().min(left * BLOCK_LEN));
            add_blocks(&mut sums, powers, left, &mut state, now);
            part = later;
            left -= now.len().div_ceil(BLOCK_LEN);
            if left == 0 {
                state = reduce(sums);
                sums = zero();
                left = behind.min(STEP);
                behind -= left;
            }
        }
    }
    from_register(state)
}
