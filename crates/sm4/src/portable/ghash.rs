//! GHASH in integer arithmetic whose time does not depend on its operands.

use crate::BLOCK_LEN;
use crate::ghash::{Parts, Powers};

/// The low half of the product of polynomials.
///
/// Integer multiplication carries, so each operand is taken apart into every fourth bit: at most
/// fifteen products then meet in one position, whose sum stays within the four bits before the next
/// (Pornin, BearSSL's "ctmul64"). Sixteen meet in the topmost position, from where the carry falls
/// off.
#[inline(always)]
fn product_low(a: u64, b: u64) -> u64 {
    const EVERY_FOURTH: u64 = 0x1111_1111_1111_1111;
    let a: [u64; 4] = std::array::from_fn(|i| a & EVERY_FOURTH << i);
    let b: [u64; 4] = std::array::from_fn(|i| b & EVERY_FOURTH << i);
    (0..4).fold(0, |product, i| {
        let sum = (0..4).fold(0, |sum, j| sum ^ a[j].wrapping_mul(b[(4 + i - j) % 4]));
        product | sum & EVERY_FOURTH << i
    })
}

/// The product of polynomials; its high half is the low half of the mirrored operands' product,
/// mirrored.
#[inline(always)]
fn product(a: u64, b: u64) -> u128 {
    let high = product_low(a.reverse_bits(), b.reverse_bits()).reverse_bits() >> 1;
    u128::from(high) << 64 | u128::from(product_low(a, b))
}

/// The field's product, as [`crate::ghash`] defines it.
fn dot(a: u128, b: u128) -> u128 {
    let halves = |x: u128| (x as u64, (x >> 64) as u64);
    let ((a0, a1), (b0, b1)) = (halves(a), halves(b));
    let low = product(a0, b0);
    let high = product(a1, b1);
    let middle = product(a0 ^ a1, b0 ^ b1) ^ low ^ high;
    let (mut low, high) = (low ^ middle << 64, high ^ middle >> 64);
    // Each step adds the multiple of the polynomial that cancels the lowest 64 bits, then divides
    // by x^64.
    for _ in 0..2 {
        let cancelled = u128::from(low as u64);
        low = low.rotate_left(64) ^ cancelled << 63 ^ cancelled << 62 ^ cancelled << 57;
    }
    low ^ high
}

/// Only the key itself: one block is absorbed at a time.
pub(super) fn powers(key: u128) -> Powers {
    let mut powers = Powers::zero();
    powers.set(1, key);
    powers
}

/// Absorbs the parts.
pub(super) fn update(powers: &Powers, state: u128, parts: Parts) -> u128 {
    let key = powers.get(1);
    let blocks = parts.iter().flat_map(|part| part.chunks(BLOCK_LEN));
    blocks.fold(state, |state, chunk| {
        let mut block = [0; BLOCK_LEN];
        block[..chunk.len()].copy_from_slice(chunk);
        dot(state ^ u128::from_be_bytes(block), key)
    })
}
