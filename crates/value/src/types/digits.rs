//! The digits of FLOAT(m,d) and DOUBLE(m,d): servers round what is stored to d decimal places, and
//! show as many.

use super::{Kind, SqlType};
use crate::payload;

/// The two numbers of FLOAT(m,d) and DOUBLE(m,d).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digits {
    /// Digits in all, at most 255.
    pub all: u8,
    /// Those behind the point, at most 30 and at most `all`.
    pub decimals: u8,
}

impl Digits {
    /// The greatest value.
    fn greatest(self) -> f64 {
        let before = i32::from(self.all) - i32::from(self.decimals);
        power_of_ten(before) - 1.0 / power_of_ten(i32::from(self.decimals))
    }

    /// The value as servers round it (`Field_real::truncate` of MySQL, `truncate_double` of
    /// MariaDB): the part behind the point by itself, halves to the even digit.
    fn round(self, value: f64) -> f64 {
        let scale = power_of_ten(i32::from(self.decimals));
        let whole = value.floor();
        whole + ((value - whole) * scale).round_ties_even() / scale
    }
}

/// Exactly what a literal of the number is, as in the servers' table.
pub(crate) fn power_of_ten(exponent: i32) -> f64 {
    /// The powers that doubles hold exactly.
    const EXACT: [f64; 23] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    ];
    let exact = usize::try_from(exponent).ok().and_then(|at| EXACT.get(at));
    // of others the nearest double, which a chain of products is not
    let nearest = || format!("1e{exponent}").parse().unwrap_or(f64::INFINITY);
    exact.copied().unwrap_or_else(nearest)
}

impl SqlType {
    /// A value as a column of this type holds it, and whether it was out of the column's range.
    pub(crate) fn rounded(&self, value: f64) -> (f64, bool) {
        let least_is_zero = self.unsigned && value < 0.0;
        let mut rounded = if least_is_zero { 0.0 } else { value };
        let mut greatest = match self.kind {
            Kind::Float => f64::from(f32::MAX),
            _ => f64::MAX,
        };
        if let Some(digits) = self.digits {
            rounded = digits.round(rounded);
            greatest = digits.greatest().min(greatest);
        }
        let held = rounded.clamp(-greatest, greatest);
        (held, least_is_zero || held != rounded)
    }

    /// A value that a column of this type holds already, as one that it takes.
    ///
    /// The nearest FLOAT to the greatest number of FLOAT(m,d) may be beyond it.
    pub fn taken(&self, value: f64) -> f64 {
        let (held, _) = self.rounded(value);
        match self.kind {
            Kind::Float if held as f32 == value as f32 => held,
            _ => value,
        }
    }

    /// Characters of the longest text, as result metadata tells it.
    pub(crate) fn real_width(&self) -> u32 {
        match (self.digits, self.kind) {
            (Some(digits), _) => u32::from(digits.all),
            (None, Kind::Float) => 12,
            (None, _) => 22,
        }
    }

    /// Decimal places, as result metadata tells them; 31 means as many as there are.
    pub(crate) fn real_decimals(&self) -> u8 {
        self.digits.map_or(31, |digits| digits.decimals)
    }

    /// Whether the text of a value may be another value: of a FLOAT it has six digits, of
    /// FLOAT(m,d) and DOUBLE(m,d) as many as the type says.
    pub fn is_shown_inexactly(&self) -> bool {
        self.kind == Kind::Float || self.digits.is_some()
    }

    /// The payload of a FLOAT or DOUBLE as a number that such a column takes; see
    /// [`SqlType::taken`].
    pub fn real(&self, payload: &[u8]) -> Option<f64> {
        payload::read_real(self, payload).map(|value| self.taken(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(text: &str) -> SqlType {
        SqlType::parse(text, None).expect(text)
    }

    #[test]
    fn values_are_rounded_to_their_places() {
        for (text, given, held) in [
            ("double(8,2)", 2.34567, (2.35, false)),
            ("double(8,2)", -2.34567, (-2.35, false)),
            ("double(8,2)", 0.125, (0.12, false)),
            ("double(8,2)", 999_999.994, (999_999.99, false)),
            ("double(8,2)", 999_999.996, (999_999.99, true)),
            ("double(8,2)", -1e9, (-999_999.99, true)),
            ("double(8,2) unsigned", -0.001, (0.0, true)),
            ("double(3,3)", 0.9996, (0.999, true)),
            ("double(3,0)", 999.4, (999.0, false)),
            ("double", 2.34567, (2.34567, false)),
            ("float", 1e39, (f64::from(f32::MAX), true)),
        ] {
            assert_eq!(ty(text).rounded(given), held, "{text} {given}");
        }
    }

    #[test]
    fn what_a_column_holds_goes_into_it_again() {
        for text in ["float(8,2)", "float(10,4)", "double(8,2)", "double(20,10)"] {
            let ty = ty(text);
            for value in [0.1, 1.005, 999_999.99, -999_999.99, 123_456.785, 0.0] {
                let (held, _) = ty.rounded(value);
                let held = match ty.kind {
                    Kind::Float => f64::from(held as f32),
                    _ => held,
                };
                let mut payload = Vec::new();
                match ty.kind {
                    Kind::Float => payload::write_f32(held as f32, &mut payload),
                    _ => payload::write_f64(held, &mut payload),
                }
                let again = ty.real(&payload).expect("a value");
                let (stored, is_out_of_range) = ty.rounded(again);
                assert!(!is_out_of_range, "{text} {value}");
                match ty.kind {
                    Kind::Float => assert_eq!(stored as f32, held as f32, "{text} {value}"),
                    _ => assert_eq!(stored, held, "{text} {value}"),
                }
            }
        }
    }
}
