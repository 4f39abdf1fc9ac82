//! Comparing: what a constant means beside a column in a condition.

mod digits;
mod enumerated;
mod temporal;

pub use digits::compare_by_digits;

use crate::charset::Charset;
use crate::context::{CompareError, Context, Input};
use crate::decimal::{self, Decimal, Wide};
use crate::fixed_binary::{Reading, read};
use crate::mode::SqlMode;
use crate::payload;
use crate::store::{RealPrefix, is_foreign, real_prefix};
use crate::types::{Kind, SqlType};

/// Where a constant stands among the values that a column can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparand {
    /// NULL: no comparison is true.
    Null,
    /// A value of the column: its payload was appended.
    Exact,
    /// Equal to no value of the column: the payload of the greatest value below it was appended.
    Between,
    /// Below every value of the column.
    BelowAll,
    /// Above every value of the column.
    AboveAll,
}

type Outcome = Result<Comparand, CompareError>;

const fn unsupported(reason: &'static str) -> Outcome {
    Err(CompareError::Unsupported(reason))
}

/// Turns a constant that is compared with a column (`=`, `<`, IN, BETWEEN …) into a payload of the
/// column's type.
///
/// Comparison does not coerce as storing does: 1.5 equals no integer, and stands between 1 and 2.
/// Where the server compares in another type and the outcome could differ, the result is
/// [`CompareError::Unsupported`].
pub fn compare(ty: &SqlType, input: Input<'_>, ctx: &Context<'_>, out: &mut Vec<u8>) -> Outcome {
    let start = out.len();
    let input = match input {
        Input::Null => return Ok(Comparand::Null),
        Input::Bool(truth) => Input::Integer {
            negative: false,
            magnitude: u64::from(truth),
        },
        other => other,
    };
    if is_foreign(ty, input) {
        return unsupported(
            "a text in this character set, compared with a column that is no string",
        );
    }
    let outcome = match ty.kind {
        Kind::TinyInt(_)
        | Kind::SmallInt(_)
        | Kind::MediumInt(_)
        | Kind::Int(_)
        | Kind::BigInt(_) => integer(ty, number(input)?, out),
        Kind::Decimal { precision, scale } => {
            decimal_column(ty, precision, scale, number(input)?, out)
        }
        Kind::Float | Kind::Double => real(ty, input, out),
        Kind::Date
        | Kind::Time { .. }
        | Kind::DateTime { .. }
        | Kind::Timestamp { .. }
        | Kind::Year => temporal::temporal(ty, input, ctx, out),
        Kind::Bit { bits } => enumerated::bit(bits, input, out),
        Kind::Enum(members) => enumerated::of_enum(members, ty, input, ctx.family, out),
        Kind::Set(members) => enumerated::of_set(members, ty, input, out),
        Kind::Json if ty.is_json_value() => unsupported("a constant compared with JSON"),
        // what is compared has all the spaces
        Kind::Char { .. }
            if ctx.sql_mode.contains(SqlMode::PAD_CHAR_TO_FULL_LENGTH)
                && ty.collation.is_some_and(|c| !c.pad_space()) =>
        {
            unsupported("a collation that counts spaces, under PAD_CHAR_TO_FULL_LENGTH")
        }
        Kind::Uuid | Kind::Inet6 | Kind::Inet4 => match read(ty, input, out) {
            Reading::Value => Ok(Comparand::Exact),
            // the server warns once or twice, as its plan has it, and takes it for NULL
            Reading::Incorrect => {
                unsupported("a value that is none, compared with UUID, INET6 or INET4")
            }
            Reading::Unsupported(why) => unsupported(why),
        },
        _ => string(ty, input, out),
    };
    if outcome.is_err() {
        out.truncate(start);
    }
    outcome
}

/// A constant as an exact number or as a double, whichever the server compares with.
#[derive(Clone, Copy)]
enum Number {
    Exact(Decimal),
    Real(f64),
    /// A string: compared as what it says or as the double nearest to that, so both must come to
    /// the same.
    Written(Decimal, f64),
}

/// Tries a string's number both ways.
fn both_ways(
    exact: Decimal,
    nearest: f64,
    out: &mut Vec<u8>,
    mut place: impl FnMut(Number, &mut Vec<u8>) -> Outcome,
) -> Outcome {
    let start = out.len();
    let first = place(Number::Exact(exact), out)?;
    let mut other = Vec::new();
    let second = place(Number::Real(nearest), &mut other)?;
    if first != second || out[start..] != other[..] {
        return unsupported("a string whose number is no double, compared with a number");
    }
    Ok(first)
}

fn number(input: Input<'_>) -> Result<Number, CompareError> {
    let unreadable = CompareError::Unsupported("a number that cannot be read exactly");
    Ok(match input {
        Input::Integer {
            negative,
            magnitude,
        } => {
            let value = i128::from(magnitude);
            Number::Exact(Decimal::from_i128(if negative { -value } else { value }))
        }
        Input::Decimal(text) => match decimal::parse(text) {
            Ok(parsed) if parsed.end == text.len() => Number::Exact(parsed.number),
            _ => return Err(unreadable),
        },
        Input::Double(value) if value.is_finite() => Number::Real(value),
        Input::Text { bytes, .. } => match real_prefix(bytes) {
            Some(RealPrefix { value, end }) if end == bytes.len() && value.is_finite() => {
                // The servers disagree on whether a string is compared as a double or as written.
                match decimal::parse(bytes) {
                    Ok(parsed) => Number::Written(parsed.number, value),
                    Err(_) => return Err(unreadable),
                }
            }
            // The server would compare with what it could read and warn.
            _ => {
                return Err(CompareError::Unsupported(
                    "a string that is no plain number, compared with a number",
                ));
            }
        },
        _ => {
            return Err(CompareError::Unsupported(
                "a binary string or a date compared with a number",
            ));
        }
    })
}

/// Doubles below this have all integers beneath them.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;

/// The exact value of a double whose magnitude is below 2^53, if its fraction is short enough.
fn exact_floor(value: f64) -> (i128, bool) {
    let floor = value.floor();
    (floor as i128, floor == value)
}

fn integer(ty: &SqlType, constant: Number, out: &mut Vec<u8>) -> Outcome {
    let (floor, exact) = match constant {
        Number::Written(exact, nearest) => {
            return both_ways(exact, nearest, out, |number, out| integer(ty, number, out));
        }
        Number::Exact(number) => {
            let (quotient, _, lost) = number.digits.split(number.scale);
            let magnitude = quotient
                .to_u128()
                .and_then(|value| i128::try_from(value).ok())
                .unwrap_or(i128::MAX - 1);
            (
                if number.negative {
                    -magnitude - i128::from(lost)
                } else {
                    magnitude
                },
                !lost,
            )
        }
        Number::Real(value) if value.abs() < EXACT_INTEGERS => exact_floor(value),
        Number::Real(_) if ty.int_bytes() == 8 => {
            return unsupported("a double of 2^53 or more compared with BIGINT");
        }
        Number::Real(value) => (if value < 0.0 { i128::MIN } else { i128::MAX }, true),
    };
    let (least, greatest) = payload::int_range(ty);
    if floor < least {
        return Ok(Comparand::BelowAll);
    }
    if floor > greatest || (floor == greatest && !exact) {
        return Ok(Comparand::AboveAll);
    }
    payload::write_int(ty, floor, out);
    Ok(if exact {
        Comparand::Exact
    } else {
        Comparand::Between
    })
}

fn decimal_column(
    ty: &SqlType,
    precision: u8,
    scale: u8,
    constant: Number,
    out: &mut Vec<u8>,
) -> Outcome {
    if let Number::Written(exact, nearest) = constant {
        return both_ways(exact, nearest, out, |number, out| {
            decimal_column(ty, precision, scale, number, out)
        });
    }
    let too_long = CompareError::Unsupported("a number with too many digits");
    let one = Wide::from_u64(1);
    let limit = Wide::pow10(u32::from(precision)).ok_or(too_long.clone())?;
    // The greatest column value that is not above the constant, as sign and digits, and whether it
    // equals it.
    let (negative, digits, exact) = match constant {
        Number::Exact(number) => {
            let wide = u32::from(scale);
            let (digits, lost) = if number.scale > wide {
                let (quotient, _, lost) = number.digits.split(number.scale - wide);
                (quotient, lost)
            } else {
                // What does not fit 384 bits is beyond every column.
                (
                    number.digits.scale_up(wide - number.scale).unwrap_or(limit),
                    false,
                )
            };
            let digits = if number.negative && lost {
                digits.add(one).ok_or(too_long.clone())?
            } else {
                digits
            };
            (number.negative, digits, !lost)
        }
        // Up to 15 digits every column value is a double of its own. Where the type has more, that
        // still holds for the values around a constant of that many.
        Number::Real(value) if precision <= 15 || value.abs() * 10f64.powi(scale.into()) < 1e15 => {
            let text = format!("{value:.40}");
            let exact = decimal::parse(text.as_bytes())
                .map_err(|_| CompareError::Unsupported("a double with too many digits"))?
                .number;
            let wide = u32::from(scale);
            let (below, _, lost) = exact.digits.split(exact.scale.saturating_sub(wide));
            let above = if lost {
                below.add(one).ok_or(too_long.clone())?
            } else {
                below
            };
            let as_double = |digits| {
                Decimal {
                    negative: exact.negative,
                    digits,
                    scale: wide,
                }
                .to_f64()
            };
            if as_double(below) == Some(value) {
                (exact.negative, below, true)
            } else if as_double(above) == Some(value) {
                (exact.negative, above, true)
            } else {
                (
                    exact.negative,
                    if exact.negative { above } else { below },
                    false,
                )
            }
        }
        Number::Real(_) | Number::Written(..) => {
            return unsupported(
                "a double or a string compared with a DECIMAL of more than 15 digits",
            );
        }
    };
    let negative = negative && !digits.is_zero();
    if negative && (ty.unsigned || digits >= limit) {
        return Ok(Comparand::BelowAll);
    }
    if !negative && (digits >= limit || (!exact && digits.add(one) == Some(limit))) {
        return Ok(Comparand::AboveAll);
    }
    decimal::write_payload(negative, digits, precision, out).ok_or(too_long)?;
    Ok(if exact {
        Comparand::Exact
    } else {
        Comparand::Between
    })
}

fn real(ty: &SqlType, input: Input<'_>, out: &mut Vec<u8>) -> Outcome {
    let value = match number(input)? {
        Number::Exact(number) => number.to_f64().ok_or(CompareError::Unsupported(
            "a number that cannot be read exactly",
        ))?,
        Number::Real(value) | Number::Written(_, value) => value,
    } + 0.0;
    if ty.unsigned && value < 0.0 {
        return Ok(Comparand::BelowAll);
    }
    if ty.kind == Kind::Double {
        payload::write_f64(value, out);
        return Ok(Comparand::Exact);
    }
    if value.abs() > f64::from(f32::MAX) {
        return Ok(if value < 0.0 {
            Comparand::BelowAll
        } else {
            Comparand::AboveAll
        });
    }
    let near = value as f32;
    if f64::from(near) == value {
        payload::write_f32(near, out);
        return Ok(Comparand::Exact);
    }
    let floor = if f64::from(near) > value {
        near.next_down()
    } else {
        near
    };
    payload::write_f32(floor, out);
    Ok(Comparand::Between)
}

fn string(ty: &SqlType, input: Input<'_>, out: &mut Vec<u8>) -> Outcome {
    let (bytes, charset) = match input {
        Input::Text { bytes, charset } => (bytes, charset),
        Input::Bytes(bytes) | Input::Hex(bytes) if ty.is_binary() => (bytes, Charset::Binary),
        // A binary string beside text makes the comparison binary.
        Input::Bytes(_) | Input::Hex(_) => {
            return unsupported("a binary string compared with text");
        }
        _ => return unsupported("a number or a date compared with a string column"),
    };
    let start = out.len();
    let target = ty.charset();
    if charset == Charset::Binary && ty.is_character() {
        return unsupported("a binary string compared with text");
    }
    if charset.same_bytes(target, bytes) {
        if target.valid_prefix(bytes) != bytes.len() {
            return unsupported("a string that is not well-formed in its character set");
        }
        out.extend_from_slice(bytes);
    } else {
        let mut at = 0;
        while at < bytes.len() {
            match charset.decode(&bytes[at..]) {
                Some((code, length)) if target.encode(code, out) => at += length,
                _ => {
                    return unsupported(
                        "a string with characters that the column's character set lacks",
                    );
                }
            }
        }
    }
    place(ty, start, out)
}

/// Finds out where a string stands that is longer or shorter than the column's can be.
fn place(ty: &SqlType, start: usize, out: &mut Vec<u8>) -> Outcome {
    match ty.kind {
        Kind::Binary { len } => {
            let len = len as usize;
            let given = out.len() - start;
            if given >= len {
                out.truncate(start + len);
                return Ok(if given == len {
                    Comparand::Exact
                } else {
                    Comparand::Between
                });
            }
            // Column values are padded with zero bytes and so come after the shorter constant: the
            // greatest value below it is the number before the padded one.
            out.resize(start + len, 0);
            for at in (start..out.len()).rev() {
                if out[at] > 0 {
                    out[at] -= 1;
                    return Ok(Comparand::Between);
                }
                out[at] = 0xFF;
            }
            out.truncate(start);
            Ok(Comparand::BelowAll)
        }
        Kind::VarBinary { len }
            if ty.order_width().is_some_and(|width| width.exact)
                && out.len() - start > len as usize =>
        {
            out.truncate(start + len as usize);
            Ok(Comparand::Between)
        }
        Kind::Char { chars } | Kind::VarChar { chars }
            if ty.order_width().is_some_and(|width| width.exact) =>
        {
            let charset = ty.charset();
            if ty.collation.is_some_and(|collation| collation.pad_space()) {
                let kept = charset.without_spaces(&out[start..]).len();
                out.truncate(start + kept);
            }
            if charset.count(&out[start..]) > chars as usize {
                return unsupported("a string longer than the column, compared with it");
            }
            Ok(Comparand::Exact)
        }
        _ => Ok(Comparand::Exact),
    }
}
