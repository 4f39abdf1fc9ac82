//! Storing into DATE, TIME, DATETIME, TIMESTAMP and YEAR columns.

use super::temporal_text::{self, Literal};
use crate::context::{
    Condition, Context, DateTimeParts, Input, Level, Report, StoreError, Stored, TemporalKind,
    ValueError, Warning,
};
use crate::decimal::{self, ParseFailure};
use crate::mode::SqlMode;
use crate::store::number::is_space;
use crate::temporal;
use crate::time_zone::Resolved;
use crate::types::{Family, Kind, SqlType};

/// What is known of the input while its errors may have to name it.
struct Given<'v> {
    /// The text that messages quote; `None` where how they quote it is not known.
    text: Option<&'v [u8]>,
    /// "date", "datetime" or "time".
    what: &'static str,
    /// An integer.
    is_number: bool,
}

impl<'v> Given<'v> {
    fn incorrect(&self) -> Result<Condition<'v>, StoreError> {
        let value = self.text.ok_or(StoreError::Unsupported(
            "a bad date or time parameter with a fraction",
        ))?;
        Ok(Condition::IncorrectTemporal {
            what: self.what,
            value,
        })
    }
}

pub(super) fn store_temporal(
    ty: &SqlType,
    input: Input<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<Stored, StoreError> {
    if ty.kind == Kind::Year {
        return store_year(input, report, out).map(|()| Stored::Value);
    }
    let is_time = matches!(ty.kind, Kind::Time { .. });
    let family = report.ctx.family;
    let mut quoted = Vec::new();
    let mut quotable = true;
    let read = match input {
        Input::Text { bytes, .. } => {
            quoted.extend_from_slice(bytes);
            if is_time {
                temporal_text::time_text(bytes, family)?
            } else {
                temporal_text::datetime_text(bytes, family)?
            }
        }
        Input::Integer {
            negative,
            magnitude,
        } => {
            if negative && magnitude > 0 {
                quoted.push(b'-');
            }
            quoted.extend_from_slice(itoa::Buffer::new().format(magnitude).as_bytes());
            if is_time {
                temporal_text::time_number(negative, magnitude)?
            } else if negative && magnitude > 0 {
                return Err(StoreError::Unsupported("a negative number for a date"));
            } else {
                temporal_text::datetime_number(magnitude)?
            }
        }
        Input::Temporal(parts) => {
            check_parts(&parts)?;
            match parts.kind {
                TemporalKind::Time if is_time => {
                    temporal::print_time(parts.time_micros(), 6, &mut quoted)
                }
                TemporalKind::Date if !is_time => temporal::print_date(&parts, &mut quoted),
                TemporalKind::DateTime if !is_time => {
                    quotable = parts.micros == 0;
                    let digits = match ty.kind {
                        Kind::DateTime { fsp } | Kind::Timestamp { fsp }
                            if family == Family::MySql =>
                        {
                            fsp
                        }
                        _ => 0,
                    };
                    temporal::print_datetime(&parts, digits, &mut quoted);
                }
                // A time becomes a date with the current day.
                _ => {
                    return Err(StoreError::Unsupported(
                        "a date for a time, or a time for a date",
                    ));
                }
            }
            Some(Literal::of(parts))
        }
        _ => {
            return Err(StoreError::Unsupported(
                "this kind of value for a date or time",
            ));
        }
    };
    let what = match ty.kind {
        Kind::Date => "date",
        Kind::Time { .. } => "time",
        _ => "datetime",
    };
    let is_number = !is_time && matches!(input, Input::Integer { .. });
    let given = Given {
        text: quotable.then_some(&quoted),
        what,
        is_number,
    };
    let Some(literal) = read else {
        bad_value(&given, Condition::Truncated, report)?;
        write_zero(ty, out);
        return Ok(Stored::Value);
    };
    match ty.kind {
        Kind::Date => store_date(&literal, &given, report, out)?,
        Kind::Time { fsp } => store_time(&literal, fsp, &given, report, out)?,
        Kind::DateTime { fsp } => store_datetime(&literal, fsp, &given, report, out)?,
        Kind::Timestamp { fsp } => store_timestamp(&literal, fsp, &given, report, out)?,
        _ => return Err(StoreError::Unsupported("this type")),
    }
    Ok(Stored::Value)
}

/// Parts come from a client's packet.
fn check_parts(parts: &DateTimeParts) -> Result<(), StoreError> {
    let plausible = parts.year <= 9999
        && parts.month <= 12
        && parts.day <= 31
        && parts.minute < 60
        && parts.second < 60
        && parts.micros < 1_000_000
        && match parts.kind {
            TemporalKind::Time => parts.time_micros().abs() <= temporal::TIME_MAX_MICROS,
            _ => parts.hour < 24 && !parts.negative,
        };
    if plausible {
        Ok(())
    } else {
        Err(StoreError::Unsupported(
            "a date or time parameter out of range",
        ))
    }
}

fn write_zero(ty: &SqlType, out: &mut Vec<u8>) {
    match ty.kind {
        Kind::Date => temporal::write_date(&DateTimeParts::zero(TemporalKind::Date), out),
        Kind::Time { .. } => temporal::write_time(0, out),
        Kind::Timestamp { .. } => temporal::write_timestamp(0, out),
        _ => temporal::write_datetime(&DateTimeParts::zero(TemporalKind::DateTime), out),
    }
}

/// The strict error that quotes the value, or the short warning of the other modes.
fn bad_value(
    given: &Given<'_>,
    lenient: Condition<'_>,
    report: &mut Report<'_, '_>,
) -> Result<(), StoreError> {
    if report.is_strict() {
        Err(report.error(given.incorrect()?))
    } else {
        report.warn(lenient)
    }
}

/// The warning for a date that does not exist: the families differ.
fn no_such_date(given: &Given<'_>, report: &Report<'_, '_>) -> Condition<'static> {
    match report.ctx.family {
        Family::MySql if !given.is_number => Condition::OutOfRange,
        _ => Condition::Truncated,
    }
}

/// Whether fractions are rounded: MySQL does unless told not to, MariaDB does where told to.
fn rounds(ctx: &Context<'_>) -> bool {
    match ctx.family {
        Family::MySql => !ctx.sql_mode.contains(SqlMode::TIME_TRUNCATE_FRACTIONAL),
        Family::MariaDb => ctx.sql_mode.contains(SqlMode::TIME_ROUND_FRACTIONAL),
    }
}

/// Microseconds at a number of fractional digits: cut off, and whether to add one unit of the last.
fn fraction(micros: u32, fsp: u8) -> (u32, u32, bool) {
    let unit = 10u32.pow(6 - u32::from(fsp.min(6)));
    (
        micros - micros % unit,
        unit,
        unit > 1 && micros % unit >= unit / 2,
    )
}

/// Notes or rounds digits beyond microseconds, then brings the fraction to `fsp` digits. The result
/// is the parts with the fraction cut off and the microseconds to add to them.
fn adjust(
    literal: &Literal,
    fsp: u8,
    report: &mut Report<'_, '_>,
) -> Result<(DateTimeParts, u32), StoreError> {
    let mut parts = literal.parts;
    let (cut, unit, up) = fraction(parts.micros, fsp);
    parts.micros = cut;
    let rounding = rounds(report.ctx);
    let mut carry = if rounding && up { unit } else { 0 };
    if let Some(excess) = literal.excess {
        match (report.ctx.family, rounding) {
            (Family::MariaDb, false) if !literal.garbage => report.note(Condition::Truncated)?,
            (Family::MySql, true) if excess.digits == 1 => {
                if fsp == 6 {
                    carry = u32::from(excess.rounds_up);
                } else if excess.rounds_up {
                    // MySQL rounds to microseconds first and then again.
                    let twice = literal.parts.micros + 1;
                    let (again, _, up) = fraction(twice % 1_000_000, fsp);
                    if again != cut || up != (carry > 0) {
                        return Err(StoreError::Unsupported("a fraction that is rounded twice"));
                    }
                }
            }
            _ => return Err(StoreError::Unsupported("more than six fractional digits")),
        }
    }
    Ok((parts, carry))
}

/// Adds a carry of less than a second, which may run through to the year.
fn add_micros(
    parts: &DateTimeParts,
    carry: u32,
    report: &Report<'_, '_>,
) -> Result<DateTimeParts, StoreError> {
    if carry == 0 {
        return Ok(*parts);
    }
    let micros = parts.micros + carry;
    if micros < 1_000_000 {
        return Ok(DateTimeParts { micros, ..*parts });
    }
    if parts.month == 0
        || parts.day == 0
        || parts.day > temporal::days_in_month(parts.year, parts.month)
    {
        return Err(StoreError::Unsupported("rounding an incomplete date"));
    }
    match temporal::from_civil_seconds(temporal::civil_seconds(parts) + 1, micros - 1_000_000) {
        Some(parts) => Ok(parts),
        None if report.ctx.family == Family::MySql && report.is_strict() => {
            Err(StoreError::Server(ValueError {
                code: 1441,
                sqlstate: *b"22008",
                message: "Datetime function: datetime field overflow".to_owned(),
            }))
        }
        None => Err(StoreError::Unsupported("rounding beyond the year 9999")),
    }
}

/// Checks that the date exists as far as the mode asks. `Ok(false)`: the zero date is stored in its
/// place.
fn check_date(
    parts: &DateTimeParts,
    timestamp: bool,
    given: &Given<'_>,
    report: &mut Report<'_, '_>,
) -> Result<bool, StoreError> {
    let mode = report.ctx.sql_mode;
    let peculiar = [
        SqlMode::NO_ZERO_DATE,
        SqlMode::NO_ZERO_IN_DATE,
        SqlMode::ALLOW_INVALID_DATES,
    ];
    if parts.is_zero_date() && parts.has_time() && peculiar.iter().any(|one| mode.contains(*one)) {
        return Err(StoreError::Unsupported("a zero date with a time"));
    }
    if parts.is_zero_date() {
        let timeless = !timestamp || !parts.has_time();
        if timeless && !mode.contains(SqlMode::NO_ZERO_DATE) {
            return Ok(true);
        }
        let lenient = match report.ctx.family {
            Family::MariaDb if timestamp => Condition::Truncated,
            _ => Condition::OutOfRange,
        };
        bad_value(given, lenient, report)?;
        return Ok(false);
    }
    let incomplete = parts.month == 0 || parts.day == 0;
    let missing = parts.month != 0 && parts.day > temporal::days_in_month(parts.year, parts.month);
    if timestamp && missing && mode.contains(SqlMode::ALLOW_INVALID_DATES) {
        return Err(StoreError::Unsupported(
            "a date that does not exist, for TIMESTAMP",
        ));
    }
    if (incomplete && (timestamp || mode.contains(SqlMode::NO_ZERO_IN_DATE)))
        || (missing && !mode.contains(SqlMode::ALLOW_INVALID_DATES))
    {
        bad_value(given, no_such_date(given, report), report)?;
        return Ok(false);
    }
    Ok(true)
}

/// Complains of what follows the literal.
fn check_garbage(
    literal: &Literal,
    given: &Given<'_>,
    report: &mut Report<'_, '_>,
) -> Result<(), StoreError> {
    if literal.garbage {
        bad_value(given, Condition::Truncated, report)
    } else {
        Ok(())
    }
}

/// The note that a part of the value was dropped.
fn note_dropped(given: &Given<'_>, report: &mut Report<'_, '_>) -> Result<(), StoreError> {
    if report.ctx.family == Family::MySql && report.is_strict() {
        report.note(given.incorrect()?)
    } else {
        report.note(Condition::Truncated)
    }
}

fn store_date(
    literal: &Literal,
    given: &Given<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    if literal.offset.is_some() {
        return Err(StoreError::Unsupported("a time zone offset for a DATE"));
    }
    let dropped = literal.parts.has_time();
    let parts = if report.ctx.family == Family::MySql {
        let (parts, carry) = adjust(literal, 0, report)?;
        add_micros(&parts, carry, report)?
    } else {
        literal.parts
    };
    if !check_date(&parts, false, given, report)? {
        write_zero(&SqlType::plain(Kind::Date), out);
        return Ok(());
    }
    check_garbage(literal, given, report)?;
    let note = match report.ctx.family {
        Family::MariaDb => dropped && !literal.garbage,
        Family::MySql => parts.has_time() && !literal.garbage,
    };
    if note {
        note_dropped(given, report)?;
    }
    temporal::write_date(&parts, out);
    Ok(())
}

/// MySQL rounds a literal with an offset in a way of its own.
fn refuse_rounded_offset(literal: &Literal, carry: u32) -> Result<(), StoreError> {
    if literal.offset.is_some() && carry > 0 {
        return Err(StoreError::Unsupported(
            "a fraction to be rounded beside a time zone offset",
        ));
    }
    Ok(())
}

fn store_datetime(
    literal: &Literal,
    fsp: u8,
    given: &Given<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    if !check_date(&literal.parts, false, given, report)? {
        temporal::write_datetime(&DateTimeParts::zero(TemporalKind::DateTime), out);
        return Ok(());
    }
    check_garbage(literal, given, report)?;
    let (parts, carry) = adjust(literal, fsp, report)?;
    refuse_rounded_offset(literal, carry)?;
    let mut parts = add_micros(&parts, carry, report)?;
    if let Some(offset) = literal.offset {
        if parts.month == 0
            || parts.day == 0
            || parts.day > temporal::days_in_month(parts.year, parts.month)
        {
            return Err(StoreError::Unsupported(
                "a time zone offset on an incomplete date",
            ));
        }
        let utc = temporal::civil_seconds(&parts) - i64::from(offset);
        let local = report
            .ctx
            .time_zone
            .offset_at(utc)
            .and_then(|zone| temporal::from_civil_seconds(utc + zone, parts.micros));
        // Offsets are understood for moments that a TIMESTAMP could hold.
        parts = match local {
            Some(local) if (1..i64::from(i32::MAX)).contains(&utc) => local,
            _ => {
                return Err(StoreError::Unsupported(
                    "a time zone offset on a date far away",
                ));
            }
        };
    }
    temporal::write_datetime(&parts, out);
    Ok(())
}

fn store_timestamp(
    literal: &Literal,
    fsp: u8,
    given: &Given<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let real = check_date(&literal.parts, true, given, report)?;
    if real {
        check_garbage(literal, given, report)?;
    }
    if !real || literal.parts.is_zero_date() {
        temporal::write_timestamp(0, out);
        return Ok(());
    }
    let (parts, carry) = adjust(literal, fsp, report)?;
    refuse_rounded_offset(literal, carry)?;
    let parts = add_micros(&parts, carry, report)?;
    let resolved = match literal.offset {
        Some(offset) => Resolved::At(temporal::civil_seconds(&parts) - i64::from(offset)),
        None => temporal::resolve(&parts, report.ctx.time_zone),
    };
    let seconds = match resolved {
        Resolved::Unknown => {
            return Err(StoreError::Unsupported(
                "TIMESTAMP in a time zone that is not known",
            ));
        }
        Resolved::At(seconds) => seconds,
        // Where clocks are set back both servers take the first of the two.
        Resolved::Twice(first, _) => first,
        Resolved::Gap(after) => {
            if report.is_strict() {
                return Err(report.error(given.incorrect()?));
            }
            if parts.micros > 0 {
                return Err(StoreError::Unsupported(
                    "a fraction of a second when clocks are set forward",
                ));
            }
            let Context { column, row, .. } = report.ctx;
            let message = format!("Invalid TIMESTAMP value in column '{column}' at row {row}");
            report.warnings.push(Warning {
                level: Level::Warning,
                code: 1299,
                message,
            });
            after
        }
    };
    match u64::try_from(seconds) {
        Ok(seconds) if (1..=report.ctx.latest_timestamp).contains(&seconds) => {
            if !report.ctx.time_zone.is_known_at(seconds) {
                return Err(StoreError::Unsupported(
                    "a TIMESTAMP beyond 2038 in a named time zone",
                ));
            }
            temporal::write_timestamp(seconds * 1_000_000 + u64::from(parts.micros), out)
        }
        _ => {
            if !report.is_strict() && literal.garbage {
                return Err(StoreError::Unsupported(
                    "a TIMESTAMP out of range followed by more",
                ));
            }
            if !report.is_strict()
                && report.ctx.family == Family::MariaDb
                && (parts.micros > 0 || literal.excess.is_some())
            {
                // MariaDB then keeps the fraction on its own.
                return Err(StoreError::Unsupported(
                    "a TIMESTAMP out of range with a fraction",
                ));
            }
            bad_value(given, Condition::OutOfRange, report)?;
            temporal::write_timestamp(0, out);
        }
    }
    Ok(())
}

fn store_time(
    literal: &Literal,
    fsp: u8,
    given: &Given<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    check_garbage(literal, given, report)?;
    let family = report.ctx.family;
    if literal.parts.minute > 59 || literal.parts.second > 59 {
        bad_value(given, no_such_date(given, report), report)?;
        temporal::write_time(0, out);
        return Ok(());
    }
    let dated = literal.parts.kind == TemporalKind::DateTime;
    let mode = report.ctx.sql_mode;
    if dated
        && literal.parts.is_zero_date()
        && (mode.contains(SqlMode::NO_ZERO_DATE) || mode.contains(SqlMode::NO_ZERO_IN_DATE))
    {
        return Err(StoreError::Unsupported("a zero date for a time"));
    }
    if dated
        && !literal.parts.is_zero_date()
        && literal.parts.day > temporal::days_in_month(literal.parts.year, literal.parts.month)
    {
        return Err(StoreError::Unsupported(
            "the time of a date that does not exist",
        ));
    }
    if dated && literal.excess.is_some() && family == Family::MariaDb {
        return Err(StoreError::Unsupported("more than six fractional digits"));
    }
    // MariaDB's TIME ends with the last fraction of 838:59:59, MySQL's with its beginning.
    let most = match family {
        Family::MariaDb => temporal::TIME_MAX_MICROS + i64::from(fraction(999_999, fsp).0),
        Family::MySql => temporal::TIME_MAX_MICROS,
    };
    let given_micros = literal.parts.time_micros().abs();
    if given_micros > most && literal.excess.is_some() {
        return Err(StoreError::Unsupported("more than six fractional digits"));
    }
    let (parts, carry) = adjust(literal, fsp, report)?;
    if dated && !literal.parts.is_zero_date() && !literal.garbage {
        note_dropped(given, report)?;
    }
    let kind = TemporalKind::Time;
    let cut = DateTimeParts { kind, ..parts }.time_micros();
    let micros = cut + i64::from(carry) * if parts.negative { -1 } else { 1 };
    let beyond = match family {
        Family::MariaDb => micros.abs() > most,
        Family::MySql => micros.abs() > most || given_micros > most,
    };
    if beyond {
        bad_value(given, Condition::OutOfRange, report)?;
    }
    temporal::write_time(micros.clamp(-most, most), out);
    Ok(())
}

/// Years of one or two digits belong to 1970 to 2069.
fn full_year(value: i128) -> Option<i128> {
    match value {
        0..=69 => Some(value + 2000),
        70..=99 => Some(value + 1900),
        1901..=2155 => Some(value),
        _ => None,
    }
}

fn store_year(
    input: Input<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let year = match input {
        Input::Integer { magnitude: 0, .. } => Some(0),
        Input::Integer { negative: true, .. } => None,
        Input::Integer { magnitude, .. } => full_year(i128::from(magnitude)),
        Input::Text { bytes, .. } => year_text(bytes, report)?,
        _ => return Err(StoreError::Unsupported("this kind of value for YEAR")),
    };
    match year {
        Some(year) => out.push(u8::try_from(year - 1900).unwrap_or(0)),
        None => {
            report.warn(Condition::OutOfRange)?;
            out.push(0);
        }
    }
    Ok(())
}

fn year_text(text: &[u8], report: &mut Report<'_, '_>) -> Result<Option<i128>, StoreError> {
    let plain = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if plain == 0 && text.first().is_some_and(|byte| !byte.is_ascii_alphabetic()) {
        return Err(StoreError::Unsupported(
            "a string that is no plain number, for YEAR",
        ));
    }
    let tail = &text[plain..];
    let value = match decimal::parse(&text[..plain]) {
        Ok(parsed) => parsed.number.to_i128(),
        Err(ParseFailure::NotANumber) => {
            report.warn(Condition::Incorrect {
                what: "integer",
                value: text,
            })?;
            return Ok(Some(0));
        }
        Err(ParseFailure::TooLong) => {
            return Err(StoreError::Unsupported("a number with very many digits"));
        }
    };
    let year = if value == 0 && text.len() == 4 {
        Some(0)
    } else {
        full_year(value)
    };
    if !tail.is_empty() && year.is_some() {
        if tail.iter().all(|byte| is_space(*byte)) && report.ctx.family == Family::MySql {
            return Ok(year);
        }
        match tail[0] {
            b'a'..=b'd' | b'f'..=b'z' | b'A'..=b'D' | b'F'..=b'Z' | b'-' | b':' | b'/' => {
                report.warn(Condition::Truncated)?
            }
            _ => {
                return Err(StoreError::Unsupported(
                    "a string that is no plain number, for YEAR",
                ));
            }
        }
    } else if !tail.is_empty() && matches!(tail[0], b'.' | b'e' | b'E') {
        return Err(StoreError::Unsupported(
            "a string that is no plain number, for YEAR",
        ));
    }
    Ok(year)
}
