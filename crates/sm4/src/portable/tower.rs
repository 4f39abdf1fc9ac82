//! The S-box as a circuit of logic gates, on registers that hold one bit of many bytes each.
//!
//! The inversion in a field of 2^8 elements is taken apart (Satoh et al., ASIACRYPT 2001; Canright,
//! CHES 2005): an element is `l + h·Y` with `l`, `h` in the field of 2^4, those are `l + h·Z` over
//! the field of 2^2, and those `l + h·W` over single bits, where
//!
//! ```text
//! W² = W + 1      Z² = Z + W      Y² = Y + W·Z
//! ```
//!
//! In each step `1/(l + h·T)` is `(l + h + h·T) / (l² + l·h + h²·n)` for `T² = T + n`: an inversion
//! in the smaller field.

use std::ops::{BitAnd, BitXor, Not};

use crate::sbox::{IN, Matrix, OUT, field_product};

/// A register of bits, all treated alike.
pub(super) trait Bits:
    Copy + BitXor<Output = Self> + BitAnd<Output = Self> + Not<Output = Self>
{
}

impl<T: Copy + BitXor<Output = T> + BitAnd<Output = T> + Not<Output = T>> Bits for T {}

/// A root of T² = T + `n` in AES's field.
const fn root(n: u8) -> u8 {
    let mut t = 0;
    while field_product(t, t) ^ t != n {
        t += 1;
    }
    t
}

/// From the tower's basis 1, W, Z, W·Z, Y, W·Y, Z·Y, W·Z·Y to AES's field.
const FROM_TOWER: Matrix = {
    let w = root(1);
    let z = root(w);
    let wz = field_product(w, z);
    let y = root(wz);
    Matrix::from_columns([
        1,
        w,
        z,
        wz,
        y,
        field_product(w, y),
        field_product(z, y),
        field_product(wz, y),
    ])
};

const TO_TOWER: Matrix = FROM_TOWER.inverse();
const INTO: u64 = TO_TOWER.after(IN.matrix).rows();
const INTO_CONSTANT: u8 = TO_TOWER.apply(IN.constant);
const BACK: u64 = OUT.matrix.after(FROM_TOWER).rows();

/// Output bit `ROW` of the affine map with these rows and this constant. Everything but the sums is
/// known at compile time.
#[inline(always)]
fn affine_bit<B: Bits, const ROWS: u64, const CONSTANT: u8, const ROW: usize>(x: &[B; 8]) -> B {
    let mask = ROWS.to_le_bytes()[ROW];
    let first = mask.trailing_zeros() as usize;
    let mut sum = x[first];
    macro_rules! add {
        ($($bit:literal)*) => { $(
            if $bit > first && mask >> $bit & 1 == 1 {
                sum = sum ^ x[$bit];
            }
        )* };
    }
    add!(1 2 3 4 5 6 7);
    if CONSTANT >> ROW & 1 == 1 { !sum } else { sum }
}

#[inline(always)]
fn affine<B: Bits, const ROWS: u64, const CONSTANT: u8>(x: &[B; 8]) -> [B; 8] {
    [
        affine_bit::<B, ROWS, CONSTANT, 0>(x),
        affine_bit::<B, ROWS, CONSTANT, 1>(x),
        affine_bit::<B, ROWS, CONSTANT, 2>(x),
        affine_bit::<B, ROWS, CONSTANT, 3>(x),
        affine_bit::<B, ROWS, CONSTANT, 4>(x),
        affine_bit::<B, ROWS, CONSTANT, 5>(x),
        affine_bit::<B, ROWS, CONSTANT, 6>(x),
        affine_bit::<B, ROWS, CONSTANT, 7>(x),
    ]
}

/// `l + h·W`
type Gf4<B> = [B; 2];
/// `l + h·Z`
type Gf16<B> = [Gf4<B>; 2];

#[inline(always)]
fn add4<B: Bits>(a: Gf4<B>, b: Gf4<B>) -> Gf4<B> {
    [a[0] ^ b[0], a[1] ^ b[1]]
}

#[inline(always)]
fn mul4<B: Bits>(a: Gf4<B>, b: Gf4<B>) -> Gf4<B> {
    let low = a[0] & b[0];
    [low ^ (a[1] & b[1]), low ^ ((a[0] ^ a[1]) & (b[0] ^ b[1]))]
}

/// The square, which is also the inverse.
#[inline(always)]
fn square4<B: Bits>(a: Gf4<B>) -> Gf4<B> {
    [a[0] ^ a[1], a[1]]
}

#[inline(always)]
fn times_w<B: Bits>(a: Gf4<B>) -> Gf4<B> {
    [a[1], a[0] ^ a[1]]
}

#[inline(always)]
fn add16<B: Bits>(a: Gf16<B>, b: Gf16<B>) -> Gf16<B> {
    [add4(a[0], b[0]), add4(a[1], b[1])]
}

#[inline(always)]
fn mul16<B: Bits>(a: Gf16<B>, b: Gf16<B>) -> Gf16<B> {
    let low = mul4(a[0], b[0]);
    let high = mul4(a[1], b[1]);
    let both = mul4(add4(a[0], a[1]), add4(b[0], b[1]));
    [add4(low, times_w(high)), add4(low, both)]
}

#[inline(always)]
fn square16<B: Bits>(a: Gf16<B>) -> Gf16<B> {
    let high = square4(a[1]);
    [add4(square4(a[0]), times_w(high)), high]
}

#[inline(always)]
fn times_wz<B: Bits>(a: Gf16<B>) -> Gf16<B> {
    // (l + h·Z)·W·Z = W²·h + (W·l + W·h)·Z
    let high = times_w(a[1]);
    [times_w(high), add4(times_w(a[0]), high)]
}

#[inline(always)]
fn inverse16<B: Bits>(a: Gf16<B>) -> Gf16<B> {
    let sum = add4(a[0], a[1]);
    // l² + l·h = l·(l + h)
    let norm = add4(mul4(a[0], sum), times_w(square4(a[1])));
    let inverse = square4(norm);
    [mul4(sum, inverse), mul4(a[1], inverse)]
}

/// The S-box on the eight bit planes of bytes; plane 0 has the lowest bits.
#[inline(always)]
pub(super) fn sbox<B: Bits>(planes: &[B; 8]) -> [B; 8] {
    let [a, b, c, d, e, f, g, h] = affine::<B, INTO, INTO_CONSTANT>(planes);
    let low = [[a, b], [c, d]];
    let high = [[e, f], [g, h]];

    let sum = add16(low, high);
    let norm = add16(mul16(low, sum), times_wz(square16(high)));
    let inverse = inverse16(norm);
    let [[a, b], [c, d]] = mul16(sum, inverse);
    let [[e, f], [g, h]] = mul16(high, inverse);

    affine::<B, BACK, { OUT.constant }>(&[a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sbox::tests::sbox as by_definition;

    #[test]
    fn circuit_is_the_sbox() {
        for x in 0..=255u8 {
            let planes = std::array::from_fn(|bit| 0u64.wrapping_sub(u64::from(x >> bit & 1)));
            let y = sbox(&planes)
                .iter()
                .enumerate()
                .fold(0, |y, (bit, plane)| y | (plane & 1) << bit);
            assert_eq!(y as u8, by_definition(x), "S({x:#04x})");
        }
    }
}
