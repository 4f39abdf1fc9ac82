//! Constants compared with DATE, DATETIME, TIMESTAMP, TIME and YEAR columns.
//!
//! The servers compare dates exactly as long as the constant is a date that exists; for all else
//! (bad dates, excess text, time zone offsets) they warn, fail or answer differently with and
//! without an index, so that is refused.

use super::{Comparand, Outcome, unsupported};
use crate::context::{CompareError, Context, DateTimeParts, Input, StoreError, TemporalKind};
use crate::mode::SqlMode;
use crate::store::temporal_text::{self, Literal};
use crate::temporal;
use crate::time_zone::Resolved;
use crate::types::{Family, Kind, SqlType};

const BAD: CompareError =
    CompareError::Unsupported("a constant that is no plain date or time, compared with one");

impl From<StoreError> for CompareError {
    fn from(failure: StoreError) -> CompareError {
        match failure {
            StoreError::Unsupported(reason) => CompareError::Unsupported(reason),
            StoreError::Server(_) => BAD,
        }
    }
}

pub(super) fn temporal(
    ty: &SqlType,
    input: Input<'_>,
    ctx: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    match ty.kind {
        Kind::Year => year(input, ctx.family, out),
        Kind::Time { fsp } => time(fsp, &constant(input, true, ctx)?, out),
        _ => {
            let parts = constant(input, false, ctx)?;
            date(ty, &parts, input, ctx, out)
        }
    }
}

/// The parts that a constant says.
fn constant(
    input: Input<'_>,
    is_time: bool,
    ctx: &Context<'_>,
) -> Result<DateTimeParts, CompareError> {
    let read = match input {
        Input::Text { bytes: [], .. } => None,
        Input::Text { bytes, .. } if is_time => temporal_text::time_text(bytes, ctx.family)?,
        Input::Text { bytes, .. } => temporal_text::datetime_text(bytes, ctx.family)?,
        Input::Integer {
            negative,
            magnitude,
        } if is_time => temporal_text::time_number(negative, magnitude)?,
        Input::Integer {
            negative: true,
            magnitude: 1..,
        } => None,
        Input::Integer { magnitude, .. } => temporal_text::datetime_number(magnitude)?,
        Input::Temporal(parts) if (parts.kind == TemporalKind::Time) == is_time => {
            Some(Literal::of(parts))
        }
        _ => None,
    };
    match read {
        Some(Literal {
            parts,
            excess: None,
            garbage: false,
            offset: None,
        }) => Ok(parts),
        _ => Err(BAD),
    }
}

fn date(
    ty: &SqlType,
    parts: &DateTimeParts,
    input: Input<'_>,
    ctx: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let incomplete = parts.month == 0 || parts.day == 0;
    let exists = parts.is_zero_date()
        || (parts.month <= 12
            && (parts.month == 0 || parts.day <= temporal::days_in_month(parts.year, parts.month)));
    let plausible = parts.year <= 9999
        && parts.hour < 24
        && parts.minute < 60
        && parts.second < 60
        && parts.micros < 1_000_000
        && !parts.negative;
    if !exists || !plausible || (parts.is_zero_date() && parts.has_time()) {
        return Err(BAD);
    }
    let is_number = matches!(input, Input::Integer { .. });
    let forbidden = match parts.is_zero_date() {
        true => SqlMode::NO_ZERO_DATE,
        false => SqlMode::NO_ZERO_IN_DATE,
    };
    // A number without a month or a day is a date beside DATE, with a warning, and nothing beside
    // DATETIME.
    let is_taken = is_number && parts.is_zero_date();
    if incomplete && !is_taken && ctx.family == Family::MySql && ctx.sql_mode.contains(forbidden) {
        // An error in most places, but not in lists.
        return Err(BAD);
    }
    match ty.kind {
        Kind::Date => {
            if is_number && parts.has_time() {
                return Err(BAD);
            }
            temporal::write_date(parts, out);
            Ok(if parts.has_time() {
                Comparand::Between
            } else {
                Comparand::Exact
            })
        }
        Kind::DateTime { fsp } => {
            let (micros, exact) = cut(parts.micros, fsp);
            if !exact && parts.year == 9999 && parts.month == 12 && parts.day == 31 {
                // MySQL rounds this one out of range.
                return Err(BAD);
            }
            temporal::write_datetime(&DateTimeParts { micros, ..*parts }, out);
            Ok(if exact {
                Comparand::Exact
            } else {
                Comparand::Between
            })
        }
        Kind::Timestamp { fsp } => {
            if parts.is_zero_date() {
                temporal::write_timestamp(0, out);
                return Ok(Comparand::Exact);
            }
            if incomplete || parts.year == 0 {
                return Err(BAD);
            }
            let seconds = match temporal::resolve(parts, ctx.time_zone) {
                Resolved::At(seconds) => seconds,
                Resolved::Unknown => {
                    return unsupported("TIMESTAMP in a time zone that is not known");
                }
                Resolved::Twice(..) | Resolved::Gap(_) => {
                    return unsupported(
                        "an hour in which clocks are changed, compared with TIMESTAMP",
                    );
                }
            };
            let (micros, exact) = cut(parts.micros, fsp);
            match u64::try_from(seconds) {
                Ok(seconds) if (1..=ctx.latest_timestamp).contains(&seconds) => {
                    if !ctx.time_zone.is_known_at(seconds) {
                        return unsupported("a moment beyond 2038 in a named time zone");
                    }
                    temporal::write_timestamp(seconds * 1_000_000 + u64::from(micros), out);
                    Ok(if exact {
                        Comparand::Exact
                    } else {
                        Comparand::Between
                    })
                }
                _ if is_number => Err(BAD),
                // Below all moments: above the zero date to MariaDB, below it to MySQL.
                Err(_) | Ok(0) => {
                    temporal::write_timestamp(0, out);
                    Ok(match ctx.family {
                        Family::MariaDb => Comparand::Between,
                        Family::MySql => Comparand::BelowAll,
                    })
                }
                Ok(_) => Ok(Comparand::AboveAll),
            }
        }
        _ => Err(BAD),
    }
}

/// Microseconds cut to a number of fractional digits, and whether nothing was lost.
fn cut(micros: u32, fsp: u8) -> (u32, bool) {
    let unit = 10u32.pow(6 - u32::from(fsp.min(6)));
    (micros - micros % unit, micros.is_multiple_of(unit))
}

fn time(fsp: u8, parts: &DateTimeParts, out: &mut Vec<u8>) -> Outcome {
    let micros = parts.time_micros();
    // MySQL rounds a constant with more digits than the column has, MariaDB does not always.
    if parts.kind != TemporalKind::Time
        || parts.minute > 59
        || parts.second > 59
        || parts.micros > 999_999
        || micros.abs() > temporal::TIME_MAX_MICROS
        || !cut(parts.micros, fsp).1
    {
        return Err(BAD);
    }
    temporal::write_time(micros, out);
    Ok(Comparand::Exact)
}

fn year(input: Input<'_>, family: Family, out: &mut Vec<u8>) -> Outcome {
    let value = match input {
        // MySQL takes a parameter for a number without a sign, if another stands in the text.
        Input::Integer {
            negative: true,
            magnitude: 1..,
        } if family == Family::MySql => return Err(BAD),
        Input::Integer {
            negative: true,
            magnitude: 1..,
        } => return Ok(Comparand::BelowAll),
        Input::Integer { magnitude: 0, .. } => 0,
        // MySQL takes 70 for 1970, but not in a list of several values.
        Input::Integer {
            magnitude: ..=99, ..
        } if family == Family::MySql => return Err(BAD),
        Input::Text { bytes, .. } if family == Family::MySql && bytes.len() < 4 => return Err(BAD),
        Input::Integer { magnitude, .. } => two_digits(magnitude),
        Input::Text { bytes, .. } => {
            if !matches!(bytes.len(), 1 | 2 | 4) || !bytes.iter().all(u8::is_ascii_digit) {
                return Err(BAD);
            }
            let value = bytes
                .iter()
                .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
            if bytes.len() == 4 && value == 0 {
                0
            } else {
                two_digits(value)
            }
        }
        _ => return Err(BAD),
    };
    match value {
        0 => {
            out.push(0);
            Ok(Comparand::Exact)
        }
        1..=1900 => {
            out.push(0);
            Ok(Comparand::Between)
        }
        1901..=2155 => {
            out.push((value - 1900) as u8);
            Ok(Comparand::Exact)
        }
        _ => Ok(Comparand::AboveAll),
    }
}

fn two_digits(value: u64) -> u64 {
    match value {
        0..=69 => value + 2000,
        70..=99 => value + 1900,
        _ => value,
    }
}
