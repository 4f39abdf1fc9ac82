//! The S-box as algebra: two affine maps around an inversion.
//!
//! SM4's standard prints its S-box as a table. A table indexed by secret bytes leaks through the
//! cache, so no kernel here has one. Liu et al. ("Analysis of the SMS4 Block Cipher", ACISP 2007)
//! found its structure: an inversion in a field of 256 elements between two affine maps. All such
//! fields are the same up to a linear map, so the field may be that of AES, whose inversion
//! processors have in hardware:
//!
//! ```text
//! S(x) = OUT · inverse(IN · x + 0x65) + 0xd3
//! ```

/// A linear map of bytes: row `i` has the input bits whose sum is output bit `i`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix([u8; 8]);

impl Matrix {
    /// The map that takes the byte with bit `i` alone to `columns[i]`.
    pub(crate) const fn from_columns(columns: [u8; 8]) -> Self {
        let mut rows = [0; 8];
        let mut bit = 0;
        while bit < 64 {
            let (row, column) = (bit / 8, bit % 8);
            rows[row] |= (columns[column] >> row & 1) << column;
            bit += 1;
        }
        Matrix(rows)
    }

    /// From the operand of GF2P8AFFINEQB, which has row 0 in its highest byte.
    const fn from_gfni(operand: u64) -> Self {
        Matrix(operand.to_be_bytes())
    }

    pub(crate) const fn apply(self, x: u8) -> u8 {
        let mut y = 0;
        let mut row = 0;
        while row < 8 {
            y |= ((self.0[row] & x).count_ones() as u8 & 1) << row;
            row += 1;
        }
        y
    }

    /// First `inner`, then this map.
    pub(crate) const fn after(self, inner: Matrix) -> Self {
        let mut columns = [0; 8];
        let mut bit = 0;
        while bit < 8 {
            columns[bit] = self.apply(inner.apply(1 << bit));
            bit += 1;
        }
        Matrix::from_columns(columns)
    }

    pub(crate) const fn inverse(self) -> Self {
        let mut columns = [0; 8];
        let mut x = 0;
        while x < 256 {
            let y = self.apply(x as u8);
            if y.is_power_of_two() {
                columns[y.trailing_zeros() as usize] = x as u8;
            }
            x += 1;
        }
        Matrix::from_columns(columns)
    }

    /// The masks of input bits, row by row in one number with row 0 lowest.
    pub(crate) const fn rows(self) -> u64 {
        u64::from_le_bytes(self.0)
    }
}

/// A linear map of bytes and a constant to add.
#[derive(Clone, Copy)]
pub(crate) struct Affine {
    pub(crate) matrix: Matrix,
    pub(crate) constant: u8,
}

#[cfg(any(test, target_arch = "x86_64"))]
impl Affine {
    pub(crate) const fn apply(self, x: u8) -> u8 {
        self.matrix.apply(x) ^ self.constant
    }
}

/// Before the inversion.
pub(crate) const IN: Affine = Affine {
    matrix: Matrix::from_gfni(0x34ac_259e_022d_bc52),
    constant: 0x65,
};
/// After the inversion.
pub(crate) const OUT: Affine = Affine {
    matrix: Matrix::from_gfni(0xd72d_8e51_1e6c_8b19),
    constant: 0xd3,
};

/// Product in AES's field, x^8 + x^4 + x^3 + x + 1. For constants: it takes longer for some
/// operands than for others.
pub(crate) const fn field_product(a: u8, b: u8) -> u8 {
    let mut product = 0u16;
    let mut bit = 0;
    while bit < 8 {
        if b >> bit & 1 == 1 {
            product ^= (a as u16) << bit;
        }
        bit += 1;
    }
    let mut bit = 14;
    while bit >= 8 {
        if product >> bit & 1 == 1 {
            product ^= 0x11b << (bit - 8);
        }
        bit -= 1;
    }
    product as u8
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn field_inverse(x: u8) -> u8 {
        // x^254
        (0..253).fold(x, |power, _| field_product(power, x))
    }

    /// The S-box by its definition.
    pub(crate) fn sbox(x: u8) -> u8 {
        OUT.apply(field_inverse(IN.apply(x)))
    }

    #[test]
    fn sbox_is_the_standards() {
        // GB/T 32907-2016, 6.2: the corners and the example of the table, and a permutation.
        assert_eq!(
            [0x00, 0x01, 0x0f, 0xef, 0xf0, 0xff].map(sbox),
            [0xd6, 0x90, 0x05, 0x84, 0x18, 0x48]
        );
        let mut seen = [false; 256];
        (0..=255).for_each(|x| seen[usize::from(sbox(x))] = true);
        assert_eq!(seen, [true; 256]);
    }
}
