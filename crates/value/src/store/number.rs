//! Storing into integer, DECIMAL, FLOAT and DOUBLE columns.

use crate::context::{Condition, Input, Level, Report, StoreError};
use crate::decimal::{self, Decimal, ParseFailure, Wide};
use crate::payload;
use crate::types::{Family, Kind, SqlType};

/// Bytes that may follow a number in a string without a warning.
pub(crate) fn is_space(byte: u8) -> bool {
    byte == b' ' || (9..=13).contains(&byte)
}

fn signed(negative: bool, magnitude: u64) -> i128 {
    if negative {
        -i128::from(magnitude)
    } else {
        i128::from(magnitude)
    }
}

/// The number that a literal such as `0x1F` means where a number is wanted.
fn hex_number(bytes: &[u8], report: &Report<'_, '_>) -> Result<u64, StoreError> {
    if report.ctx.family == Family::MariaDb {
        // There 0x41 is a number and x'41' is a string.
        return Err(StoreError::Unsupported(
            "a hexadecimal literal for a number",
        ));
    }
    if bytes.len() > 8 {
        return Err(StoreError::Unsupported(
            "a hexadecimal literal of more than 8 bytes for a number",
        ));
    }
    Ok(bytes
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

const OTHER_INPUT: StoreError = StoreError::Unsupported("a binary string or a date for a number");

pub(super) fn store_integer(
    ty: &SqlType,
    input: Input<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let value = match input {
        // The literal is a DECIMAL then.
        Input::Integer {
            negative: true,
            magnitude,
        } if magnitude > 1 << 63 => {
            decimal_to_integer(ty, Decimal::from_i128(signed(true, magnitude)), report)?
        }
        Input::Integer {
            negative,
            magnitude,
        } => signed(negative, magnitude),
        Input::Hex(bytes) => i128::from(hex_number(bytes, report)?),
        Input::Decimal(text) => match decimal::parse(text) {
            Ok(parsed) if parsed.end == text.len() => {
                decimal_to_integer(ty, parsed.number, report)?
            }
            _ => {
                return Err(StoreError::Unsupported(
                    "a number that cannot be read exactly",
                ));
            }
        },
        // To even where the fraction is one half, unlike decimals: the server calls rint().
        Input::Double(value) if value.is_finite() => {
            let rounded = value.round_ties_even();
            if matches!(ty.kind, Kind::Int(_)) && ty.unsigned && rounded > f64::from(u32::MAX) {
                // The servers complain twice here, and here only.
                report.warn(Condition::OutOfRange)?;
            }
            // The doubles next to the ends of BIGINT, which the families take for the ends or
            // beyond.
            const BELOW_SIGNED: f64 = 9_223_372_036_854_774_784.0;
            const ABOVE_SIGNED: f64 = 9_223_372_036_854_775_808.0;
            const BELOW_UNSIGNED: f64 = 18_446_744_073_709_549_568.0;
            match (report.ctx.family, ty.int_bytes(), ty.unsigned) {
                (Family::MariaDb, 8, false) if rounded == ABOVE_SIGNED => i128::from(i64::MAX),
                (Family::MySql, 8, false) if rounded == BELOW_SIGNED => i128::from(i64::MAX),
                (Family::MySql, 8, true) if rounded == BELOW_UNSIGNED => i128::from(u64::MAX) + 1,
                _ => rounded as i128,
            }
        }
        Input::Double(_) => return Err(StoreError::Unsupported("infinity or not a number")),
        Input::Text { bytes, .. } => return store_integer_text(ty, bytes, report, out),
        Input::Bytes(_) | Input::Temporal(_) | Input::Null | Input::Bool(_) => {
            return Err(OTHER_INPUT);
        }
    };
    let clipped = clip(ty, value, report)?;
    payload::write_int(ty, clipped, out);
    Ok(())
}

/// The integer nearest to a decimal, first clipped to 64 bits with a complaint of its own, as the
/// server does.
fn decimal_to_integer(
    ty: &SqlType,
    number: Decimal,
    report: &mut Report<'_, '_>,
) -> Result<i128, StoreError> {
    if ty.unsigned && number.negative {
        // Even where it would round to zero.
        report.warn(Condition::OutOfRange)?;
        return Ok(0);
    }
    let value = number.to_i128();
    let (least, greatest) = if ty.unsigned {
        (0, i128::from(u64::MAX))
    } else {
        (i128::from(i64::MIN), i128::from(i64::MAX))
    };
    if (value < least || value > greatest) && ty.int_bytes() < 8 {
        report.warn(Condition::OutOfRange)?;
        return Ok(value.clamp(least, greatest));
    }
    Ok(value)
}

/// The nearest value in range, with the server's complaint where that is another one.
fn clip(ty: &SqlType, value: i128, report: &mut Report<'_, '_>) -> Result<i128, StoreError> {
    let (least, greatest) = payload::int_range(ty);
    if value < least || value > greatest {
        report.warn(Condition::OutOfRange)?;
    }
    Ok(value.clamp(least, greatest))
}

/// Refuses what the servers read by rules of their own: bytes beyond ASCII that one of them takes
/// for spaces.
fn check_number_text(text: &[u8]) -> Result<(), StoreError> {
    match text.iter().find(|byte| !is_space(**byte)) {
        Some(0x80..) => Err(StoreError::Unsupported(
            "a string that begins with no ASCII character, for a number",
        )),
        _ => Ok(()),
    }
}

/// Complains of what follows a number in a string.
fn check_tail(
    tail: &[u8],
    complaint: Condition<'_>,
    report: &mut Report<'_, '_>,
) -> Result<(), StoreError> {
    if !tail.iter().all(|byte| is_space(*byte)) {
        return report.warn(complaint);
    }
    if !tail.is_empty() && report.ctx.family == Family::MariaDb {
        report.note(Condition::Truncated)?;
    }
    Ok(())
}

const TOO_LONG: StoreError =
    StoreError::Unsupported("a number with very many digits or a large exponent");

fn store_integer_text(
    ty: &SqlType,
    text: &[u8],
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    check_number_text(text)?;
    let parsed = match decimal::parse(text) {
        Ok(parsed) => parsed,
        Err(ParseFailure::NotANumber) => {
            report.warn(Condition::Incorrect {
                what: "integer",
                value: text,
            })?;
            payload::write_int(ty, 0, out);
            return Ok(());
        }
        Err(ParseFailure::TooLong) => return Err(TOO_LONG),
    };
    if parsed.exponent && parsed.number.digits.is_zero() {
        return Err(TOO_LONG);
    }
    // The servers accumulate digits in 64 bits and round what is left of them; beyond 18 digits
    // that differs from exact rounding. A second point confuses them.
    if parsed.significant > 18 && (parsed.point || parsed.exponent) {
        return Err(StoreError::Unsupported(
            "more than 18 digits with a fraction or an exponent",
        ));
    }
    let mut end = parsed.end;
    match text.get(end) {
        Some(b'.') => return Err(StoreError::Unsupported("a second decimal point")),
        Some(b'e' | b'E') if !parsed.exponent => {
            if text.get(parsed.end + 1).is_some_and(|byte| is_space(*byte)) {
                return Err(StoreError::Unsupported("an exponent after a space"));
            }
            // MySQL takes the letter for part of the number, and a sign after it makes the whole no
            // number.
            end += usize::from(report.ctx.family == Family::MySql);
            if matches!(text.get(parsed.end + 1), Some(b'-' | b'+')) {
                return Err(StoreError::Unsupported("an exponent without digits"));
            }
        }
        _ => {}
    }
    let (least, greatest) = payload::int_range(ty);
    let value = parsed.number.to_i128();
    if ty.unsigned && value < -i128::from(u64::MAX) {
        return Err(StoreError::Unsupported(
            "a number far below zero for an unsigned column",
        ));
    }
    if value < least || value > greatest {
        report.warn(Condition::OutOfRange)?;
    } else {
        check_tail(&text[end..], Condition::Truncated, report)?;
    }
    payload::write_int(ty, value.clamp(least, greatest), out);
    Ok(())
}

pub(super) fn store_decimal(
    ty: &SqlType,
    precision: u8,
    scale: u8,
    input: Input<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let noted = report.warnings.len();
    let number = match input {
        Input::Integer {
            negative,
            magnitude,
        } => Decimal::from_i128(signed(negative, magnitude)),
        Input::Hex(bytes) => match i64::try_from(hex_number(bytes, report)?) {
            Ok(value) => Decimal::from_i128(i128::from(value)),
            Err(_) => {
                return Err(StoreError::Unsupported(
                    "a large hexadecimal literal for DECIMAL",
                ));
            }
        },
        Input::Decimal(text) => match decimal::parse(text) {
            Ok(parsed) if parsed.end == text.len() => parsed.number,
            _ => {
                return Err(StoreError::Unsupported(
                    "a number that cannot be read exactly",
                ));
            }
        },
        Input::Double(value) if value.is_finite() => {
            let mut buffer = ryu::Buffer::new();
            match decimal::parse(buffer.format_finite(value).as_bytes()) {
                Ok(parsed) => parsed.number,
                Err(_) => {
                    return Err(StoreError::Unsupported(
                        "a double beyond the range of DECIMAL",
                    ));
                }
            }
        }
        Input::Double(_) => return Err(StoreError::Unsupported("infinity or not a number")),
        Input::Text { bytes, .. } => decimal_text(bytes, report)?,
        Input::Bytes(_) | Input::Temporal(_) | Input::Null | Input::Bool(_) => {
            return Err(OTHER_INPUT);
        }
    };
    put_decimal(ty, precision, scale, number, report, out)?;
    if report.ctx.family == Family::MariaDb {
        drop_note(noted, report);
    }
    Ok(())
}

/// Digits and fractional digits that a DECIMAL can have; longer numbers the servers cut while they
/// read them.
const DECIMAL_DIGITS: u32 = 65;
const DECIMAL_SCALE: u32 = 30;

/// MariaDB's note of trailing spaces gives way to what it has to say of the number itself.
fn drop_note(noted: usize, report: &mut Report<'_, '_>) {
    if report.warnings.len() > noted + 1
        && report
            .warnings
            .get(noted)
            .is_some_and(|first| first.level == Level::Note)
    {
        report.warnings.remove(noted);
    }
}

fn decimal_text(text: &[u8], report: &mut Report<'_, '_>) -> Result<Decimal, StoreError> {
    check_number_text(text)?;
    let incorrect = Condition::Incorrect {
        what: "decimal",
        value: text,
    };
    match decimal::parse(text) {
        Ok(parsed) => {
            let tail = &text[parsed.end..];
            if matches!(tail, [b'e' | b'E', 9..=13 | b' ', ..]) {
                return Err(StoreError::Unsupported("an exponent after a space"));
            }
            if parsed.exponent && parsed.number.digits.is_zero() {
                return Err(TOO_LONG);
            }
            let limit = Wide::pow10(DECIMAL_DIGITS);
            let long = limit.is_none_or(|limit| parsed.number.digits >= limit);
            if long || (!tail.is_empty() && parsed.number.scale > DECIMAL_SCALE) {
                return Err(TOO_LONG);
            }
            match report.ctx.family {
                Family::MariaDb => check_tail(tail, Condition::Truncated, report)?,
                Family::MySql if tail.iter().all(|byte| is_space(*byte)) => {}
                Family::MySql if report.is_strict() => return Err(report.error(incorrect)),
                Family::MySql => report.note(Condition::Truncated)?,
            }
            Ok(parsed.number)
        }
        Err(ParseFailure::NotANumber) => {
            report.warn(incorrect)?;
            Ok(Decimal::from_i128(0))
        }
        Err(ParseFailure::TooLong) => Err(TOO_LONG),
    }
}

/// Rounds to the column's scale, clips to its precision and appends.
fn put_decimal(
    ty: &SqlType,
    precision: u8,
    scale: u8,
    number: Decimal,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let impossible = StoreError::Unsupported("a number that cannot be handled exactly");
    if ty.unsigned && number.negative {
        report.warn(Condition::OutOfRange)?;
        return decimal::write_payload(false, Wide::ZERO, precision, out).ok_or(impossible);
    }
    let limit = Wide::pow10(u32::from(precision)).ok_or(impossible.clone())?;
    match number.at_scale(u32::from(scale)) {
        Some((digits, lost)) if digits < limit => {
            if lost {
                report.note(Condition::Truncated)?;
            }
            decimal::write_payload(number.negative, digits, precision, out)
        }
        _ => {
            report.warn(Condition::OutOfRange)?;
            let most = limit.sub(Wide::from_u64(1)).ok_or(impossible.clone())?;
            decimal::write_payload(number.negative, most, precision, out)
        }
    }
    .ok_or(impossible)
}

/// A number at the front of a text, read as a double.
pub(crate) struct RealPrefix {
    pub(crate) value: f64,
    pub(crate) end: usize,
}

/// Reads the front of a text as a double; `None` where no digits are there.
pub(crate) fn real_prefix(text: &[u8]) -> Option<RealPrefix> {
    let byte = |at: usize| text.get(at).copied();
    let mut at = 0;
    while byte(at).is_some_and(is_space) {
        at += 1;
    }
    let start = at;
    at += usize::from(matches!(byte(at), Some(b'-' | b'+')));
    let digits = |at: &mut usize| {
        let from = *at;
        while byte(*at).is_some_and(|b| b.is_ascii_digit()) {
            *at += 1;
        }
        *at - from
    };
    let mut any = digits(&mut at);
    if byte(at) == Some(b'.') {
        at += 1;
        any += digits(&mut at);
    }
    if any == 0 {
        return None;
    }
    if matches!(byte(at), Some(b'e' | b'E')) {
        let mut after = at + 1 + usize::from(matches!(byte(at + 1), Some(b'-' | b'+')));
        if digits(&mut after) > 0 {
            at = after;
        }
    }
    let value = std::str::from_utf8(&text[start..at]).ok()?.parse().ok()?;
    Some(RealPrefix { value, end: at })
}

pub(super) fn store_real(
    ty: &SqlType,
    input: Input<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let value = match input {
        Input::Integer {
            negative,
            magnitude,
        } => {
            let magnitude = magnitude as f64;
            if negative && magnitude > 0.0 {
                -magnitude
            } else {
                magnitude
            }
        }
        Input::Hex(bytes) => match i64::try_from(hex_number(bytes, report)?) {
            Ok(value) => value as f64,
            Err(_) => {
                return Err(StoreError::Unsupported(
                    "a large hexadecimal literal for FLOAT or DOUBLE",
                ));
            }
        },
        Input::Decimal(text) => match std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse::<f64>().ok())
        {
            // A DECIMAL has no negative zero.
            Some(value) => value + 0.0,
            None => {
                return Err(StoreError::Unsupported(
                    "a number that cannot be read exactly",
                ));
            }
        },
        Input::Double(value) => report.ctx.zero(value),
        Input::Text { bytes, .. } => real_text(ty, bytes, report)?,
        Input::Bytes(_) | Input::Temporal(_) | Input::Null | Input::Bool(_) => {
            return Err(OTHER_INPUT);
        }
    };
    if !value.is_finite() {
        return Err(StoreError::Unsupported("infinity or not a number"));
    }
    put_real(ty, value, report, out)
}

fn real_text(ty: &SqlType, text: &[u8], report: &mut Report<'_, '_>) -> Result<f64, StoreError> {
    check_number_text(text)?;
    let what = match (report.ctx.family, ty.kind) {
        (Family::MariaDb, _) => "double",
        (Family::MySql, Kind::Float) => "FLOAT",
        (Family::MySql, _) => "DOUBLE",
    };
    let incorrect = Condition::Incorrect { what, value: text };
    match real_prefix(text) {
        Some(RealPrefix { value, end }) => {
            if !value.is_finite() {
                return Err(StoreError::Unsupported(
                    "a string with a number beyond the range of DOUBLE",
                ));
            }
            let complaint = if report.ctx.family == Family::MySql {
                incorrect
            } else {
                Condition::Truncated
            };
            check_tail(&text[end..], complaint, report)?;
            Ok(report.ctx.zero(value))
        }
        None => {
            report.warn(incorrect)?;
            Ok(0.0)
        }
    }
}

fn put_real(
    ty: &SqlType,
    value: f64,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let (value, is_out_of_range) = ty.rounded(value);
    if is_out_of_range {
        report.warn(Condition::OutOfRange)?;
    }
    match ty.kind {
        Kind::Float => payload::write_f32(value as f32, out),
        _ => payload::write_f64(value, out),
    }
    Ok(())
}
