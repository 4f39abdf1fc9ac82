//! Masks of numbers, as texts of the text protocol.

use crate::permute::Permuter;

/// The largest number with so many digits.
fn nines(digits: u32) -> i128 {
    10_i128.pow(digits) - 1
}

/// The bounds of an integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub low: i128,
    pub high: i128,
    /// A type that applications use for true and false: 0 and 1 stay among themselves.
    pub is_bool: bool,
}

/// Another number in the type's range; with `same_size`, one of as many digits and the same sign.
/// `None`: the text is no number of the type.
pub(crate) fn integer(
    permuter: &mut Permuter,
    text: &str,
    bounds: Bounds,
    same_size: bool,
) -> Option<i128> {
    let value: i128 = text.parse().ok()?;
    if !(bounds.low..=bounds.high).contains(&value) {
        return None;
    }
    let (low, high) = match same_size {
        true => class(value, bounds),
        false => (bounds.low, bounds.high),
    };
    let label = [low.to_be_bytes(), high.to_be_bytes()].concat();
    let image = permuter.number(&label, (high - low + 1) as u128, (value - low) as u128);
    Some(low + image as i128)
}

/// Numbers of as many digits.
fn class(value: i128, bounds: Bounds) -> (i128, i128) {
    if bounds.is_bool && (0..=1).contains(&value) {
        return (0, 1);
    }
    let digits = value.unsigned_abs().to_string().len() as u32;
    let least = match digits {
        1 if value < 0 => 1,
        1 if bounds.is_bool => 2,
        1 => 0,
        _ => nines(digits - 1) + 1,
    };
    match value < 0 {
        true => ((-nines(digits)).max(bounds.low), -least),
        false => (least, nines(digits).min(bounds.high)),
    }
}

/// Another number of a DECIMAL type, or of a FLOAT or DOUBLE with digits: with `same_size` one of
/// as many digits, otherwise any of the type with the same sign. `None`: the text is no such
/// number.
pub(crate) fn decimal(
    permuter: &mut Permuter,
    text: &str,
    precision: usize,
    scale: usize,
    same_size: bool,
) -> Option<String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let are_digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) || fraction.len() != scale || rest.is_empty() {
        return None;
    }
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let length = match same_size {
        true => digits.len().max(1),
        false => precision,
    };
    if digits.len() > length {
        return None;
    }
    let digits = format!("{digits:0>length$}");
    let mut symbols: Vec<u32> = digits.chars().filter_map(|c| c.to_digit(10)).collect();
    let is_led = same_size && length > 1;
    // Zero is never negative.
    let is_single = same_size && length == 1 && !sign.is_empty();
    let mut radices = vec![10; length];
    if is_led || is_single {
        radices[0] = 9;
        symbols[0] = symbols[0].checked_sub(1)?;
    }
    loop {
        permuter.symbols(&mut symbols, &radices);
        if sign.is_empty() || is_led || is_single || symbols.iter().any(|s| *s > 0) {
            break;
        }
    }
    if is_led || is_single {
        symbols[0] += 1;
    }
    let mut out: String = symbols
        .iter()
        .filter_map(|s| char::from_digit(*s, 10))
        .collect();
    out = format!("{out:0>width$}", width = scale + 1);
    let point = out.len() - scale;
    let (whole, fraction) = out.split_at(point);
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        trimmed => trimmed,
    };
    Some(match scale {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction}"),
    })
}

/// Another number between the same powers of two, of the same sign. Zero stays.
pub(crate) fn double(permuter: &mut Permuter, text: &str) -> Option<String> {
    let value: f64 = text.parse().ok().filter(|v: &f64| v.is_finite())?;
    if value == 0.0 {
        return Some("0".into());
    }
    let bits = value.to_bits();
    let (high, low) = (bits >> 52 << 52, bits & ((1 << 52) - 1));
    let low = permute_fraction(permuter, low, 52, (high << 1) == 0);
    Some(format!("{:e}", f64::from_bits(high | low)))
}

/// The same of FLOAT.
pub(crate) fn float(permuter: &mut Permuter, text: &str) -> Option<String> {
    let value: f32 = text.parse().ok().filter(|v: &f32| v.is_finite())?;
    if value == 0.0 {
        return Some("0".into());
    }
    let bits = value.to_bits();
    let (high, low) = (bits >> 23 << 23, bits & ((1 << 23) - 1));
    let low = permute_fraction(permuter, u64::from(low), 23, (high << 1) == 0);
    Some(format!("{:e}", f32::from_bits(high | low as u32)))
}

/// The smallest numbers of all have no leading bit, and zero is one of theirs: it is left out.
fn permute_fraction(permuter: &mut Permuter, low: u64, bits: u8, is_small: bool) -> u64 {
    let least = u64::from(is_small);
    let size = (1_u128 << bits) - u128::from(least);
    let label = [b'f', bits, is_small as u8];
    permuter.number(&label, size, u128::from(low - least)) as u64 + least
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::key::MaskKey;

    fn permuter() -> Permuter {
        Permuter::new(MaskKey::new([3; 32]))
    }

    const TINY: Bounds = Bounds {
        low: -128,
        high: 127,
        is_bool: false,
    };

    #[test]
    fn every_tinyint_has_its_own_image() {
        for (same_size, is_bool) in [(true, false), (true, true), (false, false)] {
            let bounds = Bounds { is_bool, ..TINY };
            let mut one = permuter();
            let images: HashSet<i128> = (-128..=127)
                .map(|v: i128| {
                    let image = integer(&mut one, &v.to_string(), bounds, same_size).expect("one");
                    if same_size {
                        assert_eq!(image.to_string().len(), v.to_string().len());
                    }
                    image
                })
                .collect();
            assert_eq!(images.len(), 256);
            assert!(images.iter().all(|i| (-128..=127).contains(i)));
        }
        assert_eq!(integer(&mut permuter(), "128", TINY, true), None);
    }

    #[test]
    fn every_decimal_has_its_own_image() {
        for same_size in [true, false] {
            let mut one = permuter();
            let images: HashSet<String> = (-999_i32..=999)
                .map(|v| {
                    let sign = if v < 0 { "-" } else { "" };
                    let text = format!("{sign}{}.{:02}", v.abs() / 100, v.abs() % 100);
                    let image = decimal(&mut one, &text, 3, 2, same_size).expect("one");
                    assert_eq!(image.len(), text.len(), "{text} {image}");
                    image
                })
                .collect();
            assert_eq!(images.len(), 1999);
            assert!(!images.contains("-0.00"));
        }
    }

    proptest! {
        #[test]
        fn doubles_stay_near(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(a.is_finite() && b.is_finite() && a != 0.0 && b != 0.0);
            let mut one = permuter();
            let of = |one: &mut Permuter, v: f64| -> f64 {
                double(one, &format!("{v:e}")).expect("one").parse().expect("a number")
            };
            let (ma, mb) = (of(&mut one, a), of(&mut one, b));
            prop_assert_eq!(a == b, ma == mb);
            prop_assert_eq!(a.is_sign_negative(), ma.is_sign_negative());
            prop_assert_eq!(a.to_bits() >> 52, ma.to_bits() >> 52);
        }

        #[test]
        fn long_decimals_differ(a in "[1-9][0-9]{40}", b in "[1-9][0-9]{40}") {
            let mut one = permuter();
            let of = |one: &mut Permuter, v: &str| decimal(one, v, 65, 0, true).expect("one");
            let (ma, mb) = (of(&mut one, &a), of(&mut one, &b));
            prop_assert_eq!(a == b, ma == mb);
            prop_assert_eq!(ma.len(), a.len());
        }
    }
}
