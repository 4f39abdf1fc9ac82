//! Exact decimal numbers: the arithmetic below DECIMAL columns, literals and sums.
//!
//! A [`Wide`] is an unsigned integer of 384 bits (115 decimal digits), enough for the product of a
//! 65-digit column and any literal, or for the sum of 2^64 columns. It lives on the stack;
//! operations that would overflow return `None`, never a wrapped number.

use std::cmp::Ordering;

const LIMBS: usize = 6;

/// An unsigned integer of 384 bits, least significant limb first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wide([u64; LIMBS]);

/// The most digits of a server's DECIMAL.
pub(crate) const DECIMAL_DIGITS: u32 = 65;

impl Wide {
    pub(crate) const ZERO: Wide = Wide([0; LIMBS]);

    /// The least number with more digits than a server's DECIMAL has.
    pub(crate) const BEYOND_DECIMAL: Wide = {
        let mut power = Wide::from_u64(1);
        let mut exponent = 0;
        while exponent < DECIMAL_DIGITS {
            power = match power.mul_small(10) {
                Some(power) => power,
                None => panic!("10^65 has 216 bits"),
            };
            exponent += 1;
        }
        power
    };

    pub(crate) const fn from_u64(value: u64) -> Wide {
        let mut limbs = [0; LIMBS];
        limbs[0] = value;
        Wide(limbs)
    }

    pub(crate) const fn from_u128(value: u128) -> Wide {
        let mut limbs = [0; LIMBS];
        limbs[0] = value as u64;
        limbs[1] = (value >> 64) as u64;
        Wide(limbs)
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0 == [0; LIMBS]
    }

    /// The value, where it fits.
    pub(crate) fn to_u128(self) -> Option<u128> {
        self.0[2..]
            .iter()
            .all(|limb| *limb == 0)
            .then(|| u128::from(self.0[0]) | u128::from(self.0[1]) << 64)
    }

    pub(crate) const fn mul_small(mut self, factor: u64) -> Option<Wide> {
        let mut carry = 0u128;
        let mut at = 0;
        while at < LIMBS {
            let product = self.0[at] as u128 * factor as u128 + carry;
            self.0[at] = product as u64;
            carry = product >> 64;
            at += 1;
        }
        if carry == 0 { Some(self) } else { None }
    }

    pub(crate) fn add_small(self, addend: u64) -> Option<Wide> {
        self.add(Wide::from_u64(addend))
    }

    pub(crate) fn add(mut self, other: Wide) -> Option<Wide> {
        let mut carry = false;
        for (limb, addend) in self.0.iter_mut().zip(other.0) {
            let (sum, first) = limb.overflowing_add(addend);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            *limb = sum;
            carry = first || second;
        }
        (!carry).then_some(self)
    }

    /// `self - other`, or `None` where that is negative.
    pub(crate) fn sub(mut self, other: Wide) -> Option<Wide> {
        let mut borrow = false;
        for (limb, subtrahend) in self.0.iter_mut().zip(other.0) {
            let (difference, first) = limb.overflowing_sub(subtrahend);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            *limb = difference;
            borrow = first || second;
        }
        (!borrow).then_some(self)
    }

    pub(crate) fn mul(self, other: Wide) -> Option<Wide> {
        let mut total = Wide::ZERO;
        for (at, factor) in other.0.into_iter().enumerate() {
            if factor == 0 {
                continue;
            }
            let partial = self.mul_small(factor)?;
            if partial.0[LIMBS - at..].iter().any(|limb| *limb != 0) {
                return None;
            }
            let mut shifted = [0; LIMBS];
            shifted[at..].copy_from_slice(&partial.0[..LIMBS - at]);
            total = total.add(Wide(shifted))?;
        }
        Some(total)
    }

    /// Quotient and remainder; `divisor` must not be zero.
    pub(crate) fn div_rem_small(mut self, divisor: u64) -> (Wide, u64) {
        let mut remainder = 0u128;
        for limb in self.0.iter_mut().rev() {
            // Most numbers fill few limbs, and dividing 128 bits is slow.
            if remainder == 0 {
                remainder = u128::from(*limb % divisor);
                *limb /= divisor;
                continue;
            }
            let dividend = remainder << 64 | u128::from(*limb);
            *limb = (dividend / u128::from(divisor)) as u64;
            remainder = dividend % u128::from(divisor);
        }
        (self, remainder as u64)
    }

    /// 10 to the power of `exponent`.
    pub(crate) fn pow10(exponent: u32) -> Option<Wide> {
        Wide::from_u64(1).scale_up(exponent)
    }

    /// `self` × 10^`by`.
    pub(crate) fn scale_up(mut self, mut by: u32) -> Option<Wide> {
        if self.is_zero() {
            return Some(self);
        }
        while by > 0 {
            let step = by.min(19);
            self = self.mul_small(10u64.pow(step))?;
            by -= step;
        }
        Some(self)
    }

    /// `self` ÷ 10^`by` rounded half up, and whether digits other than zero were lost.
    pub(crate) fn scale_down(self, by: u32) -> (Wide, bool) {
        let (quotient, half, lost) = self.split(by);
        let rounded = if half {
            quotient.add_small(1).unwrap_or(quotient)
        } else {
            quotient
        };
        (rounded, lost)
    }

    /// `self` ÷ 10^`by` cut off, whether what is lost is at least one half, and whether it is not
    /// zero.
    pub(crate) fn split(mut self, by: u32) -> (Wide, bool, bool) {
        if by == 0 {
            return (self, false, false);
        }
        let mut lost = false;
        let mut left = by - 1;
        while left > 0 && !self.is_zero() {
            let step = left.min(19);
            let (quotient, remainder) = self.div_rem_small(10u64.pow(step));
            self = quotient;
            lost |= remainder != 0;
            left -= step;
        }
        let (quotient, digit) = self.div_rem_small(10);
        (quotient, digit >= 5, lost || digit != 0)
    }

    /// The `into.len()` least significant bytes, big-endian.
    pub(crate) fn write_be(&self, into: &mut [u8]) {
        for (at, byte) in into.iter_mut().rev().enumerate() {
            *byte = self
                .0
                .get(at / 8)
                .map_or(0, |limb| (limb >> (at % 8 * 8)) as u8);
        }
    }

    /// Reads big-endian bytes; `None` where there are more than 48.
    pub(crate) fn read_be(bytes: &[u8]) -> Option<Wide> {
        let mut limbs = [0u64; LIMBS];
        for (at, byte) in bytes.iter().rev().enumerate() {
            *limbs.get_mut(at / 8)? |= u64::from(*byte) << (at % 8 * 8);
        }
        Some(Wide(limbs))
    }

    /// Decimal digits, most significant first, without leading zeros; `0` for zero. Returns the
    /// used part of `buffer`.
    pub(crate) fn digits(self, buffer: &mut [u8; 116]) -> &[u8] {
        if self.0[1..] == [0; LIMBS - 1] {
            let mut short = itoa::Buffer::new();
            let digits = short.format(self.0[0]).as_bytes();
            buffer[..digits.len()].copy_from_slice(digits);
            return &buffer[..digits.len()];
        }
        let mut at = buffer.len();
        let mut rest = self;
        loop {
            let (quotient, mut chunk) = rest.div_rem_small(10u64.pow(18));
            let last = quotient.is_zero();
            for _ in 0..18 {
                if at == 0 || (last && chunk == 0 && at < buffer.len()) {
                    break;
                }
                at -= 1;
                buffer[at] = b'0' + (chunk % 10) as u8;
                chunk /= 10;
            }
            rest = quotient;
            if last || at == 0 {
                break;
            }
        }
        &buffer[at..]
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Wide) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wide {
    fn cmp(&self, other: &Wide) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

/// A decimal number: ± `digits` × 10^−`scale`.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    pub(crate) negative: bool,
    pub(crate) digits: Wide,
    pub(crate) scale: u32,
}

impl Decimal {
    pub(crate) fn from_i128(value: i128) -> Decimal {
        Decimal {
            negative: value < 0,
            digits: Wide::from_u128(value.unsigned_abs()),
            scale: 0,
        }
    }

    /// The digits at this scale, rounded half away from zero, and whether any digit other than zero
    /// was lost. `None` where they do not fit.
    pub(crate) fn at_scale(&self, scale: u32) -> Option<(Wide, bool)> {
        if scale >= self.scale {
            Some((self.digits.scale_up(scale - self.scale)?, false))
        } else {
            Some(self.digits.scale_down(self.scale - scale))
        }
    }

    /// Rounded half away from zero to an integer; the nearest end of the range where it does not
    /// fit.
    pub(crate) fn to_i128(self) -> i128 {
        let (digits, _) = self.digits.scale_down(self.scale);
        let magnitude = digits
            .to_u128()
            .and_then(|value| i128::try_from(value).ok())
            .unwrap_or(i128::MAX);
        if self.negative { -magnitude } else { magnitude }
    }

    /// The nearest double.
    pub(crate) fn to_f64(self) -> Option<f64> {
        let mut text = Vec::with_capacity(128);
        self.write(&mut text);
        std::str::from_utf8(&text).ok()?.parse().ok()
    }

    /// The sum; `None` where it does not fit.
    pub(crate) fn add(self, other: Decimal) -> Option<Decimal> {
        let scale = self.scale.max(other.scale);
        let (left, right) = (self.at_scale(scale)?.0, other.at_scale(scale)?.0);
        let (negative, digits) = if self.negative == other.negative {
            (self.negative, left.add(right)?)
        } else {
            match left.cmp(&right) {
                Ordering::Less => (other.negative, right.sub(left)?),
                _ => (self.negative, left.sub(right)?),
            }
        };
        Some(Decimal {
            negative: negative && !digits.is_zero(),
            digits,
            scale,
        })
    }

    /// The product; `None` where it does not fit.
    pub(crate) fn mul(self, other: Decimal) -> Option<Decimal> {
        let digits = self.digits.mul(other.digits)?;
        Some(Decimal {
            negative: self.negative != other.negative && !digits.is_zero(),
            digits,
            scale: self.scale + other.scale,
        })
    }

    /// Appends the number with exactly `scale` digits after the point.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut buffer = [0; 116];
        let digits = self.digits.digits(&mut buffer);
        let scale = self.scale as usize;
        if self.negative && !self.digits.is_zero() {
            out.push(b'-');
        }
        if digits.len() > scale {
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            out.extend_from_slice(whole);
            if scale > 0 {
                out.push(b'.');
                out.extend_from_slice(fraction);
            }
        } else {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + scale - digits.len(), b'0');
            out.extend_from_slice(digits);
        }
    }
}

/// What [`parse`] found at the front of a text.
#[derive(Clone, Copy)]
pub(crate) struct Parsed {
    pub(crate) number: Decimal,
    /// Bytes up to the end of the number; those after it are garbage or spaces.
    pub(crate) end: usize,
    /// Digits from the first that is not zero, those after the point included.
    pub(crate) significant: usize,
    /// An exponent with digits was read.
    pub(crate) exponent: bool,
    /// The text had a decimal point.
    pub(crate) point: bool,
}

/// Why a text is no number that can be read exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParseFailure {
    /// No digits.
    NotANumber,
    /// More digits, or a larger exponent, than are handled exactly.
    TooLong,
}

/// Most significant digits that are read, and the largest exponent.
const DIGITS_MAX: usize = 90;
const SCALE_MAX: u32 = 100;

/// Reads `[spaces][sign]digits[.digits][e[sign]digits]` from the front of `text`.
pub(crate) fn parse(text: &[u8]) -> Result<Parsed, ParseFailure> {
    let byte = |at: usize| text.get(at).copied();
    let mut at = 0;
    while byte(at).is_some_and(|b| b == b' ' || (9..=13).contains(&b)) {
        at += 1;
    }
    let negative = byte(at) == Some(b'-');
    if matches!(byte(at), Some(b'-' | b'+')) {
        at += 1;
    }
    let mut digits = Wide::ZERO;
    let mut significant = 0;
    let mut any = false;
    let mut point = false;
    let mut scale: i64 = 0;
    loop {
        match byte(at) {
            Some(b @ b'0'..=b'9') => {
                any = true;
                if significant > 0 || b != b'0' {
                    significant += 1;
                }
                if significant > DIGITS_MAX {
                    return Err(ParseFailure::TooLong);
                }
                digits = digits
                    .mul_small(10)
                    .and_then(|wide| wide.add_small(u64::from(b - b'0')))
                    .ok_or(ParseFailure::TooLong)?;
                scale += i64::from(point);
            }
            Some(b'.') if !point => point = true,
            _ => break,
        }
        at += 1;
    }
    if !any {
        return Err(ParseFailure::NotANumber);
    }
    let mut exponent = false;
    if matches!(byte(at), Some(b'e' | b'E')) {
        let down = byte(at + 1) == Some(b'-');
        let mut after = at + 1 + usize::from(matches!(byte(at + 1), Some(b'-' | b'+')));
        let mut power: i64 = 0;
        while let Some(b @ b'0'..=b'9') = byte(after) {
            exponent = true;
            power = (power * 10 + i64::from(b - b'0')).min(1_000_000);
            after += 1;
        }
        if exponent {
            at = after;
            scale += if down { power } else { -power };
        }
    }
    if digits.is_zero() {
        scale = scale.clamp(0, 30);
    } else if scale < 0 {
        let up = u32::try_from(-scale).map_err(|_| ParseFailure::TooLong)?;
        if up > 200 {
            return Err(ParseFailure::TooLong);
        }
        digits = digits.scale_up(up).ok_or(ParseFailure::TooLong)?;
        scale = 0;
    }
    let scale = u32::try_from(scale)
        .ok()
        .filter(|scale| *scale <= SCALE_MAX)
        .ok_or(ParseFailure::TooLong)?;
    Ok(Parsed {
        number: Decimal {
            negative: negative && !digits.is_zero(),
            digits,
            scale,
        },
        end: at,
        significant,
        exponent,
        point,
    })
}

/// Bytes of the payload of a DECIMAL with this precision: room for 2 × 10^precision.
pub(crate) const fn payload_bytes(precision: u8) -> usize {
    // 2 × 10^p has floor(p × log2 10) + 2 bits.
    let bits = precision as usize * 3_321_929 / 1_000_000 + 2;
    bits.div_ceil(8)
}

/// Appends the payload: the number's digits at the column's scale plus 10^precision, so that memcmp
/// orders. `None` where the number has more digits than the precision.
pub(crate) fn write_payload(
    negative: bool,
    digits: Wide,
    precision: u8,
    out: &mut Vec<u8>,
) -> Option<()> {
    let middle = Wide::pow10(u32::from(precision))?;
    if digits >= middle {
        return None;
    }
    let offset = if negative {
        middle.sub(digits)?
    } else {
        middle.add(digits)?
    };
    let mut bytes = [0; 32];
    let bytes = &mut bytes[..payload_bytes(precision)];
    offset.write_be(bytes);
    out.extend_from_slice(bytes);
    Some(())
}

/// Reads a payload back; `None` where it is none.
pub(crate) fn read_payload(payload: &[u8], precision: u8, scale: u8) -> Option<Decimal> {
    if payload.len() != payload_bytes(precision) {
        return None;
    }
    let middle = Wide::pow10(u32::from(precision))?;
    let offset = Wide::read_be(payload)?;
    let (negative, digits) = match offset.sub(middle) {
        Some(digits) => (false, digits),
        None => (true, middle.sub(offset)?),
    };
    (digits < middle).then_some(Decimal {
        negative,
        digits,
        scale: u32::from(scale),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: &Decimal) -> String {
        let mut out = Vec::new();
        number.write(&mut out);
        String::from_utf8(out).expect("ascii")
    }

    #[test]
    fn payload_widths_hold_every_precision() {
        for precision in 1..=65u8 {
            let most = Wide::pow10(u32::from(precision))
                .and_then(|wide| wide.mul_small(2))
                .expect("fits");
            let bytes = payload_bytes(precision);
            let mut buffer = [0; 32];
            most.write_be(&mut buffer[..bytes]);
            assert!(
                Wide::read_be(&buffer[..bytes]) == Some(most),
                "{precision} digits need more than {bytes} bytes"
            );
            let mut shorter = [0; 32];
            most.write_be(&mut shorter[..bytes - 1]);
            assert!(
                Wide::read_be(&shorter[..bytes - 1]) != Some(most),
                "{precision} digits need fewer than {bytes} bytes"
            );
        }
    }

    #[test]
    fn parses_and_writes() {
        for (given, written, end) in [
            ("12.50", "12.50", 5),
            ("  -0.001x", "-0.001", 8),
            ("1e3", "1000", 3),
            ("1.5e-3 ", "0.0015", 6),
            (".5", "0.5", 2),
            ("5.", "5", 2),
            ("1e", "1", 1),
            ("-0", "0", 2),
            (
                "123456789012345678901234567890.123456789",
                "123456789012345678901234567890.123456789",
                40,
            ),
            (
                "100000000000000000000000000000000000000",
                "100000000000000000000000000000000000000",
                39,
            ),
        ] {
            let parsed =
                parse(given.as_bytes()).unwrap_or_else(|failure| panic!("{given}: {failure:?}"));
            assert_eq!(
                (text(&parsed.number).as_str(), parsed.end),
                (written, end),
                "{given}"
            );
        }
        assert_eq!(parse(b"x").err(), Some(ParseFailure::NotANumber));
        assert_eq!(parse(b"1e400").err(), Some(ParseFailure::TooLong));
        assert_eq!(parse(&[b'9'; 200]).err(), Some(ParseFailure::TooLong));
    }

    #[test]
    fn arithmetic() {
        let number = |text: &str| parse(text.as_bytes()).expect("a number").number;
        assert_eq!(
            text(&number("1.5").add(number("-2.25")).expect("fits")),
            "-0.75"
        );
        assert_eq!(
            text(&number("-1.5").mul(number("2.25")).expect("fits")),
            "-3.375"
        );
        assert_eq!(number("2.5").to_i128(), 3);
        assert_eq!(number("-2.5").to_i128(), -3);
        assert_eq!(number("1e80").to_i128(), i128::MAX);
        let huge = Wide([u64::MAX; LIMBS]);
        assert!(
            huge.add_small(1).is_none() && huge.mul_small(2).is_none() && huge.mul(huge).is_none()
        );
        assert_eq!(
            text(&Decimal {
                negative: false,
                digits: huge,
                scale: 0
            })
            .len(),
            116
        );
    }

    #[test]
    fn payload_orders() {
        let mut before = Vec::new();
        for given in [
            "-999.99", "-1.00", "-0.01", "0.00", "0.01", "1.00", "999.99",
        ] {
            let number = parse(given.as_bytes()).expect("a number").number;
            let mut payload = Vec::new();
            write_payload(
                number.negative,
                number.at_scale(2).expect("fits").0,
                5,
                &mut payload,
            )
            .expect("in range");
            assert!(before < payload);
            assert_eq!(
                text(&read_payload(&payload, 5, 2).expect("a payload")),
                given
            );
            before = payload;
        }
        assert!(write_payload(false, Wide::from_u64(100_000), 5, &mut Vec::new()).is_none());
        assert!(read_payload(&[0; 3], 5, 2).is_none());
    }
}
