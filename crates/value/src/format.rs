//! From payload back to the cell that the server would send, in the text and in the binary
//! protocol.

use crate::charset::Charset;
use crate::context::{DateTimeParts, TemporalKind};
use crate::decimal;
use crate::fixed_binary;
use crate::members::Members;
use crate::payload;
use crate::temporal;
use crate::time_zone::TimeZone;
use crate::types::{Family, Kind, SqlType};

/// What the look of a cell depends on beside its value.
#[derive(Clone, Copy, Debug)]
pub struct FormatContext<'a> {
    /// The session's `time_zone`, for TIMESTAMP.
    pub time_zone: &'a TimeZone,
    /// The back end's family.
    pub family: Family,
    /// `character_set_results`; [`Charset::Binary`] where it is NULL or binary, which means no
    /// conversion.
    pub results_charset: Charset,
    /// PAD_CHAR_TO_FULL_LENGTH is set.
    pub pad_char: bool,
}

/// Why a payload cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The bytes are no payload of the type.
    #[error("a stored value does not belong to the column's type")]
    Malformed,
    /// The session's time zone is unknown.
    #[error("the session's time zone cannot be known, so a TIMESTAMP cannot be shown")]
    TimeZone,
}

/// Appends the cell as the text protocol shows it, without its length prefix. On an error `out` is
/// as before.
pub fn format_text(
    ty: &SqlType,
    payload: &[u8],
    ctx: &FormatContext<'_>,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    let start = out.len();
    match ty.kind {
        Kind::TinyInt(_)
        | Kind::SmallInt(_)
        | Kind::MediumInt(_)
        | Kind::Int(_)
        | Kind::BigInt(_) => {
            let value = payload::read_int(ty, payload).ok_or(FormatError::Malformed)?;
            if let Ok(value) = i64::try_from(value) {
                out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            } else {
                out.extend_from_slice(itoa::Buffer::new().format(value as u64).as_bytes());
            }
            zerofill(ty, start, out);
        }
        Kind::Decimal { precision, scale } => {
            decimal::read_payload(payload, precision, scale)
                .ok_or(FormatError::Malformed)?
                .write(out);
            zerofill(ty, start, out);
        }
        Kind::Float | Kind::Double if ty.digits.is_some() => {
            let value = payload::read_real(ty, payload).ok_or(FormatError::Malformed)?;
            write_fixed(value, ty.real_decimals(), out);
            zerofill(ty, start, out);
        }
        Kind::Float => {
            write_float(
                payload::read_f32(payload).ok_or(FormatError::Malformed)?,
                out,
            );
            zerofill(ty, start, out);
        }
        Kind::Double => {
            write_double(
                payload::read_f64(payload).ok_or(FormatError::Malformed)?,
                out,
            );
            zerofill(ty, start, out);
        }
        Kind::Date => temporal::print_date(
            &temporal::read_date(payload).ok_or(FormatError::Malformed)?,
            out,
        ),
        Kind::DateTime { fsp } => temporal::print_datetime(
            &temporal::read_datetime(payload).ok_or(FormatError::Malformed)?,
            fsp,
            out,
        ),
        Kind::Timestamp { fsp } => {
            let parts =
                temporal::read_timestamp(payload, ctx.time_zone).ok_or(FormatError::Malformed)?;
            temporal::print_datetime(&parts.ok_or(FormatError::TimeZone)?, fsp, out);
        }
        Kind::Time { fsp } => temporal::print_time(
            temporal::read_time(payload).ok_or(FormatError::Malformed)?,
            fsp,
            out,
        ),
        Kind::Year => {
            let [year] = *payload else {
                return Err(FormatError::Malformed);
            };
            let digits = year_of(year);
            out.extend_from_slice(&[
                b'0' + (digits / 1000) as u8,
                b'0' + (digits / 100 % 10) as u8,
            ]);
            out.extend_from_slice(&[b'0' + (digits / 10 % 10) as u8, b'0' + (digits % 10) as u8]);
        }
        Kind::Enum(members) => {
            let name = member(members, payload).ok_or(FormatError::Malformed)?;
            text(ty.charset(), name, ctx, out);
        }
        Kind::Set(members) => {
            let chosen = set_bits(members, payload).ok_or(FormatError::Malformed)?;
            let mut first = true;
            for number in (1..=members.count()).filter(|number| chosen >> (number - 1) & 1 == 1) {
                if !first {
                    text(ty.charset(), b",", ctx, out);
                }
                first = false;
                text(
                    ty.charset(),
                    members.bytes(number).unwrap_or_default(),
                    ctx,
                    out,
                );
            }
        }
        Kind::Bit { bits } => {
            let in_first = (u32::from(bits) - 1) % 8 + 1;
            let beyond = payload
                .first()
                .map_or(0, |first| u32::from(*first) >> in_first);
            if ty.payload_fixed() != Some(payload.len()) || beyond > 0 {
                return Err(FormatError::Malformed);
            }
            out.extend_from_slice(payload);
        }
        Kind::Uuid | Kind::Inet6 | Kind::Inet4 => {
            fixed_binary::print(ty, payload, out).ok_or(FormatError::Malformed)?;
        }
        _ => string(ty, payload, ctx, out),
    }
    Ok(())
}

/// What the payload of an ENUM is called; empty for the value that stands for errors. `None` where
/// it is malformed.
pub(crate) fn member(members: Members, payload: &[u8]) -> Option<&'static [u8]> {
    match u16::from_be_bytes(payload.try_into().ok()?) {
        0 => Some(b""),
        number => members.bytes(usize::from(number)),
    }
}

/// The members that the payload of a SET holds, the first in the lowest bit. `None` where it is
/// malformed.
pub(crate) fn set_bits(members: Members, payload: &[u8]) -> Option<u64> {
    let chosen = u64::from_be_bytes(payload.try_into().ok()?);
    (chosen & !all_bits(members) == 0).then_some(chosen)
}

/// All members of a SET.
pub(crate) fn all_bits(members: Members) -> u64 {
    u64::MAX >> (64 - members.count().clamp(1, 64))
}

/// The year of a YEAR payload.
pub(crate) fn year_of(payload: u8) -> u16 {
    if payload == 0 {
        0
    } else {
        1900 + u16::from(payload)
    }
}

/// Appends the cell as the binary protocol sends it, with its length prefix where the type has one.
/// On an error `out` is as before.
pub fn format_binary(
    ty: &SqlType,
    payload: &[u8],
    ctx: &FormatContext<'_>,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    match ty.kind {
        Kind::TinyInt(_)
        | Kind::SmallInt(_)
        | Kind::MediumInt(_)
        | Kind::Int(_)
        | Kind::BigInt(_) => {
            let value = payload::read_int(ty, payload).ok_or(FormatError::Malformed)?;
            // MEDIUMINT travels in four bytes.
            let bytes = if ty.int_bytes() == 3 {
                4
            } else {
                ty.int_bytes()
            };
            out.extend_from_slice(&(value as u64).to_le_bytes()[..bytes]);
        }
        Kind::Float => out.extend_from_slice(
            &payload::read_f32(payload)
                .ok_or(FormatError::Malformed)?
                .to_le_bytes(),
        ),
        Kind::Double => out.extend_from_slice(
            &payload::read_f64(payload)
                .ok_or(FormatError::Malformed)?
                .to_le_bytes(),
        ),
        Kind::Year => {
            let [year] = *payload else {
                return Err(FormatError::Malformed);
            };
            out.extend_from_slice(&year_of(year).to_le_bytes());
        }
        Kind::Date => binary_datetime(
            &temporal::read_date(payload).ok_or(FormatError::Malformed)?,
            out,
        ),
        Kind::DateTime { .. } => binary_datetime(
            &temporal::read_datetime(payload).ok_or(FormatError::Malformed)?,
            out,
        ),
        Kind::Timestamp { .. } => {
            let parts =
                temporal::read_timestamp(payload, ctx.time_zone).ok_or(FormatError::Malformed)?;
            binary_datetime(&parts.ok_or(FormatError::TimeZone)?, out);
        }
        Kind::Time { .. } => {
            let micros = temporal::read_time(payload).ok_or(FormatError::Malformed)?;
            binary_time(&DateTimeParts::from_time_micros(micros), out);
        }
        // DECIMAL and strings travel as text.
        _ => {
            let prefix = out.len();
            out.push(0);
            if let Err(failure) = format_text(ty, payload, ctx, out) {
                out.truncate(prefix);
                return Err(failure);
            }
            put_length(prefix, out);
        }
    }
    Ok(())
}

/// Turns the one byte kept at `prefix` into the length-encoded length of what follows it.
fn put_length(prefix: usize, out: &mut Vec<u8>) {
    let length = (out.len() - prefix - 1) as u64;
    let (tag, bytes) = match length {
        0..=250 => (length as u8, 0),
        251..=0xFFFF => (0xFC, 2),
        0x1_0000..=0xFF_FFFF => (0xFD, 3),
        _ => (0xFE, 8),
    };
    out[prefix] = tag;
    if bytes > 0 {
        out.splice(
            prefix + 1..prefix + 1,
            length.to_le_bytes().into_iter().take(bytes),
        );
    }
}

fn binary_datetime(parts: &DateTimeParts, out: &mut Vec<u8>) {
    let length = match (parts.micros, parts.has_time(), parts.is_zero_date()) {
        (1.., ..) => 11,
        (0, true, _) => 7,
        (0, false, false) => 4,
        (0, false, true) => 0,
    };
    let [low, high] = parts.year.to_le_bytes();
    let head = [
        length,
        low,
        high,
        parts.month,
        parts.day,
        parts.hour as u8,
        parts.minute,
        parts.second,
    ];
    out.extend_from_slice(&head[..=usize::from(length.min(7))]);
    if length == 11 {
        out.extend_from_slice(&parts.micros.to_le_bytes());
    }
}

fn binary_time(parts: &DateTimeParts, out: &mut Vec<u8>) {
    debug_assert!(parts.kind == TemporalKind::Time);
    if !parts.has_time() {
        out.push(0);
        return;
    }
    out.push(if parts.micros > 0 { 12 } else { 8 });
    out.push(u8::from(parts.negative));
    out.extend_from_slice(&(parts.hour / 24).to_le_bytes());
    out.extend_from_slice(&[(parts.hour % 24) as u8, parts.minute, parts.second]);
    if parts.micros > 0 {
        out.extend_from_slice(&parts.micros.to_le_bytes());
    }
}

fn string(ty: &SqlType, payload: &[u8], ctx: &FormatContext<'_>, out: &mut Vec<u8>) {
    let charset = match ty.is_json_value() {
        true => Charset::Utf8mb4,
        false => ty.charset(),
    };
    let pad = match ty.kind {
        Kind::Char { chars } if ctx.pad_char => {
            (chars as usize).saturating_sub(charset.count(payload))
        }
        _ => 0,
    };
    text(charset, payload, ctx, out);
    let space = match ctx.results_charset {
        Charset::Binary => charset.space(),
        shown => shown.space(),
    };
    for _ in 0..pad {
        out.extend_from_slice(space);
    }
}

/// Appends text, converted to the charset of results.
fn text(charset: Charset, bytes: &[u8], ctx: &FormatContext<'_>, out: &mut Vec<u8>) {
    if charset.same_bytes(ctx.results_charset, bytes) {
        out.extend_from_slice(bytes);
        return;
    }
    let mut at = 0;
    while at < bytes.len() {
        let (code, length) = charset.decode(&bytes[at..]).unwrap_or((u32::from(b'?'), 1));
        if !ctx.results_charset.encode(code, out) {
            out.push(b'?');
        }
        at += length;
    }
}

/// Puts zeros before a number up to the column's width.
fn zerofill(ty: &SqlType, start: usize, out: &mut Vec<u8>) {
    if !ty.zerofill {
        return;
    }
    let width = match ty.kind {
        Kind::Decimal { precision, scale } => usize::from(precision) + usize::from(scale > 0),
        Kind::Float | Kind::Double => ty.real_width() as usize,
        _ => usize::from(ty.display_width()),
    };
    let missing = width.saturating_sub(out.len() - start);
    out.splice(start..start, std::iter::repeat_n(b'0', missing));
}

/// Appends a double as the server prints it: the shortest digits that read back as the same number.
pub(crate) fn write_double(value: f64, out: &mut Vec<u8>) {
    if !value.is_finite() {
        return;
    }
    let mut buffer = ryu::Buffer::new();
    write_scientific(buffer.format_finite(value).as_bytes(), out);
}

/// Appends a FLOAT(m,d) or DOUBLE(m,d) as the server prints it: with all of its decimal places. The
/// shortest digits that read back as the same number have zeros behind them, if they are not too
/// many (mode 5 of `dtoa` by David Gay, as in `my_fcvt`).
fn write_fixed(value: f64, decimals: u8, out: &mut Vec<u8>) {
    use std::io::Write as _;
    if !value.is_finite() {
        return;
    }
    let (start, wanted) = (out.len(), usize::from(decimals));
    // writing to memory does not fail
    let _ = write!(out, "{value}");
    let point = out[start..].iter().position(|byte| *byte == b'.');
    let has = point.map_or(0, |point| out.len() - start - point - 1);
    if has > wanted {
        out.truncate(start);
        let _ = write!(out, "{value:.wanted$}");
        return;
    }
    if point.is_none() && wanted > 0 {
        out.push(b'.');
    }
    out.resize(out.len() + wanted - has, b'0');
}

/// Appends a float as the server prints it: six significant digits.
fn write_float(value: f32, out: &mut Vec<u8>) {
    use std::io::Write as _;
    let mut buffer = [0u8; 32];
    let mut rest = &mut buffer[..];
    if value.is_finite() && write!(rest, "{:.5e}", f64::from(value)).is_ok() {
        let left = rest.len();
        write_scientific(&buffer[..32 - left], out);
    }
}

/// Digits before the point up to which, and zeros after it down to which, the server prints no
/// exponent.
const PLAIN_DIGITS: i32 = 15;

/// Rewrites a number in any of Rust's notations to the server's: digits without trailing zeros, an
/// exponent only where the number would be long without.
fn write_scientific(text: &[u8], out: &mut Vec<u8>) {
    let (sign, text) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.iter().position(|byte| *byte == b'e') {
        Some(at) => (
            &text[..at],
            std::str::from_utf8(&text[at + 1..])
                .ok()
                .and_then(|digits| digits.parse().ok())
                .unwrap_or(0),
        ),
        None => (text, 0i32),
    };
    let point = mantissa
        .iter()
        .position(|byte| *byte == b'.')
        .unwrap_or(mantissa.len());
    let mut digits = [0u8; 32];
    let mut length = 0;
    // The number is 0.d1d2d3… × 10^place.
    let mut place = point as i32 + exponent;
    for byte in mantissa.iter().filter(|byte| **byte != b'.') {
        if length == 0 && *byte == b'0' {
            place -= 1;
        } else if length < digits.len() {
            digits[length] = *byte;
            length += 1;
        }
    }
    while length > 0 && digits[length - 1] == b'0' {
        length -= 1;
    }
    let digits = &digits[..length];
    if sign {
        out.push(b'-');
    }
    if digits.is_empty() {
        out.push(b'0');
        return;
    }
    let count = length as i32;
    if place > -PLAIN_DIGITS && (place <= PLAIN_DIGITS || count > place) {
        if place <= 0 {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + place.unsigned_abs() as usize, b'0');
            out.extend_from_slice(digits);
        } else if count > place {
            let (whole, fraction) = digits.split_at(place as usize);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        } else {
            out.extend_from_slice(digits);
            out.resize(out.len() + (place - count) as usize, b'0');
        }
        return;
    }
    out.push(digits[0]);
    if length > 1 {
        out.push(b'.');
        out.extend_from_slice(&digits[1..]);
    }
    out.push(b'e');
    out.extend_from_slice(itoa::Buffer::new().format(place - 1).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        write_double(value, &mut out);
        String::from_utf8(out).expect("ascii")
    }

    #[test]
    fn doubles() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (100.0, "100"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (123_456_789_012_345_680.0, "1.2345678901234568e17"),
            (1e-5, "0.00001"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (-2.5e-300, "-2.5e-300"),
            (f64::MAX, "1.7976931348623157e308"),
        ] {
            assert_eq!(double(value), text);
        }
        let mut out = Vec::new();
        write_float(16_777_217.0, &mut out);
        assert_eq!(out, b"16777200");
    }

    #[test]
    fn length_prefixes() {
        for (length, prefix) in [
            (0, vec![0]),
            (250, vec![250]),
            (251, vec![0xFC, 251, 0]),
            (70_000, vec![0xFD, 0x70, 0x11, 1]),
        ] {
            let ty = SqlType::plain(Kind::LongBlob);
            let ctx = FormatContext {
                time_zone: &TimeZone::UTC,
                family: Family::MySql,
                results_charset: Charset::Utf8mb4,
                pad_char: false,
            };
            let mut out = vec![b'x'];
            format_binary(&ty, &vec![7; length], &ctx, &mut out).expect("bytes");
            assert_eq!(out[1..=prefix.len()], prefix);
            assert_eq!(out.len(), 1 + prefix.len() + length);
        }
    }
}
