//! What the rounds do to bytes, as affine maps that are computed at compile time.
//!
//! Kernels with vector instructions keep the state multiplied by `IN`, the S-box's inner map
//! ([`crate::sbox`]), so that a round begins with the inversion. The round's linear layer must then
//! end with `IN`. It is
//!
//! ```text
//! L(t) = t ^ (t <<< 2) ^ (t <<< 10) ^ (t <<< 18) ^ (t <<< 24)
//! ```
//!
//! on words of 32 bits. Let R rotate each *byte* left by two bits, and H move the two highest bits
//! of each byte to the bottom and clear the rest. Then `t <<< 2`, taken byte by byte, is (R + H) of
//! the byte itself and H of the byte below, and with V = R·t and W = (1 + H)·t the whole layer
//! becomes rotations by whole bytes:
//!
//! ```text
//! L(t) = V ^ W ^ (V <<< 8) ^ (V <<< 16) ^ (W <<< 24)
//! ```
//!
//! So one inversion followed by two linear maps of bytes, `IN·R·OUT` and `IN·(1 + H)·OUT`, three
//! byte rotations and five exclusive-ors are a round. The constant 0xd3 goes into V, where it
//! survives (three copies); in W it would cancel.

use crate::sbox::{Affine, IN, Matrix, OUT};

impl Matrix {
    /// The operand of GF2P8AFFINEQB that applies this map: row 0 is in its highest byte.
    pub(super) const fn gfni(self) -> i64 {
        self.rows().swap_bytes().cast_signed()
    }
}

impl Affine {
    /// The map as two tables of sixteen, `low[x & 15] ^ high[x >> 4]`, for byte shuffles to look up
    /// in registers.
    pub(super) const fn nibble_tables(self) -> [[u8; 16]; 2] {
        let mut tables = [[0; 16]; 2];
        let mut n = 0;
        while n < 16 {
            tables[0][n] = self.apply(n as u8);
            tables[1][n] = self.matrix.apply((n as u8) << 4);
            n += 1;
        }
        tables
    }
}

/// R: each byte rotated left by two bits.
const ROTATE_2: Matrix = Matrix::from_columns([4, 8, 16, 32, 64, 128, 1, 2]);
/// 1 + H: the byte plus its two highest bits moved to the bottom.
const ONE_PLUS_HIGH: Matrix = Matrix::from_columns([1, 2, 4, 8, 16, 32, 64 | 1, 128 | 2]);

/// From the inverse to V in a state multiplied by `IN`.
pub(super) const V: Affine = Affine {
    matrix: IN.matrix.after(ROTATE_2).after(OUT.matrix),
    constant: IN.matrix.after(ROTATE_2).apply(OUT.constant),
};
/// From the inverse to W in a state multiplied by `IN`.
pub(super) const W: Affine = Affine {
    matrix: IN.matrix.after(ONE_PLUS_HIGH).after(OUT.matrix),
    constant: 0,
};

/// AES's S-box is one affine map behind the same inversion (FIPS 197, 5.1.1).
const AES: Affine = Affine {
    matrix: Matrix::from_columns([0x1f, 0x3e, 0x7c, 0xf8, 0xf1, 0xe3, 0xc7, 0x8f]),
    constant: 0x63,
};

/// The map of which `map` is the part after the inversion, taken from AES's S-box instead.
pub(super) const fn from_aes(map: Affine) -> Affine {
    let matrix = map.matrix.after(AES.matrix.inverse());
    Affine {
        matrix,
        constant: matrix.apply(AES.constant) ^ map.constant,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sbox::tests::field_inverse;

    #[test]
    fn aes_sbox_stands_in_for_the_inversion() {
        for x in 0..=255 {
            let aes = AES.apply(field_inverse(x));
            let [low, high] = from_aes(V).nibble_tables();
            let looked_up = low[usize::from(aes & 15)] ^ high[usize::from(aes >> 4)];
            assert_eq!(looked_up, V.apply(field_inverse(x)));
        }
        assert_eq!(AES.apply(field_inverse(0x53)), 0xed);
    }

    #[test]
    fn byte_rotations_make_the_linear_layer() {
        for x in [1u32, 0x80, 0x0123_4567, 0xdead_beef, u32::MAX] {
            let bytes = |map: Matrix| u32::from_ne_bytes(x.to_ne_bytes().map(|b| map.apply(b)));
            let (v, w) = (bytes(ROTATE_2), bytes(ONE_PLUS_HIGH));
            assert_eq!(
                v ^ w ^ v.rotate_left(8) ^ v.rotate_left(16) ^ w.rotate_left(24),
                x ^ x.rotate_left(2) ^ x.rotate_left(10) ^ x.rotate_left(18) ^ x.rotate_left(24)
            );
        }
    }
}
