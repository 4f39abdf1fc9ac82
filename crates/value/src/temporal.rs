//! Dates and times: payloads, calendar arithmetic, printing.
//!
//! Payloads hold whatever the server's columns hold, zero dates and partial zero dates such as
//! `2024-00-00` included, and memcmp orders them as SQL does:
//!
//! | type | bytes | content |
//! |---|---|---|
//! | DATE | 3 | year, month in 4 bits, day in 5 bits |
//! | DATETIME | 8 | year × 13 + month, day in 5 bits, hour in 5, minute and second in 6 each, microseconds in 24 |
//! | TIMESTAMP | 8 | microseconds since 1970 UTC; 0 is the zero date |
//! | TIME | 8 | microseconds + 2^42 |
//! | YEAR | 1 | 0 for year 0000, else year − 1900 |

use crate::context::{DateTimeParts, TemporalKind};
use crate::time_zone::{Resolved, TimeZone};

/// The bias of TIME payloads.
const TIME_BIAS: i64 = 1 << 42;
/// Microseconds of the longest TIME, 838:59:59.
pub(crate) const TIME_MAX_MICROS: i64 = ((838 * 60 + 59) * 60 + 59) * 1_000_000;
const SECOND: i64 = 1_000_000;

impl DateTimeParts {
    /// All parts zero.
    pub const fn zero(kind: TemporalKind) -> DateTimeParts {
        DateTimeParts {
            kind,
            negative: false,
            year: 0,
            month: 0,
            day: 0,
            hour: 0,
            minute: 0,
            second: 0,
            micros: 0,
        }
    }

    /// Whether year, month and day are all zero.
    pub(crate) fn is_zero_date(&self) -> bool {
        self.year == 0 && self.month == 0 && self.day == 0
    }

    pub(crate) fn has_time(&self) -> bool {
        self.hour != 0 || self.minute != 0 || self.second != 0 || self.micros != 0
    }

    /// Microseconds of the time of day, or of the whole TIME, signed.
    pub(crate) fn time_micros(&self) -> i64 {
        let seconds =
            (i64::from(self.hour) * 60 + i64::from(self.minute)) * 60 + i64::from(self.second);
        let micros = seconds
            .saturating_mul(SECOND)
            .saturating_add(i64::from(self.micros));
        if self.negative { -micros } else { micros }
    }

    /// A TIME of this many microseconds.
    pub(crate) fn from_time_micros(micros: i64) -> DateTimeParts {
        let magnitude = micros.unsigned_abs();
        let seconds = magnitude / 1_000_000;
        DateTimeParts {
            negative: micros < 0,
            hour: (seconds / 3600) as u32,
            minute: (seconds / 60 % 60) as u8,
            second: (seconds % 60) as u8,
            micros: (magnitude % 1_000_000) as u32,
            ..DateTimeParts::zero(TemporalKind::Time)
        }
    }
}

/// Leap years as the servers count them: the year 0 is none.
pub(crate) fn is_leap(year: u16) -> bool {
    year != 0 && year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

pub(crate) fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar.
pub(crate) fn days_from_civil(year: u16, month: u8, day: u8) -> i64 {
    // Years begin in March, so that the leap day is the last; eras are 400 years.
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a number of days since 1970-01-01; years outside 0 to 9999 give `None`.
pub(crate) fn civil_from_days(days: i64) -> Option<(u16, u8, u8)> {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * shifted_month + 2) / 5 + 1) as u8;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    } as u8;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    u16::try_from(year)
        .ok()
        .filter(|year| *year <= 9999)
        .map(|year| (year, month, day))
}

/// Seconds since 1970 of a whole date and time, read as UTC.
pub(crate) fn civil_seconds(parts: &DateTimeParts) -> i64 {
    let of_day =
        (i64::from(parts.hour) * 60 + i64::from(parts.minute)) * 60 + i64::from(parts.second);
    days_from_civil(parts.year, parts.month, parts.day) * 86_400 + of_day
}

/// The date and time of a number of seconds since 1970, read as UTC.
pub(crate) fn from_civil_seconds(seconds: i64, micros: u32) -> Option<DateTimeParts> {
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400))?;
    let of_day = seconds.rem_euclid(86_400);
    Some(DateTimeParts {
        kind: TemporalKind::DateTime,
        negative: false,
        year,
        month,
        day,
        hour: (of_day / 3600) as u32,
        minute: (of_day / 60 % 60) as u8,
        second: (of_day % 60) as u8,
        micros,
    })
}

pub(crate) fn write_date(parts: &DateTimeParts, out: &mut Vec<u8>) {
    let packed = u32::from(parts.year) << 9 | u32::from(parts.month) << 5 | u32::from(parts.day);
    out.extend_from_slice(&packed.to_be_bytes()[1..]);
}

pub(crate) fn read_date(payload: &[u8]) -> Option<DateTimeParts> {
    let [a, b, c] = *payload else { return None };
    let packed = u32::from_be_bytes([0, a, b, c]);
    let parts = DateTimeParts {
        year: (packed >> 9) as u16,
        month: (packed >> 5 & 15) as u8,
        day: (packed & 31) as u8,
        ..DateTimeParts::zero(TemporalKind::Date)
    };
    (parts.year <= 9999 && parts.month <= 12).then_some(parts)
}

pub(crate) fn write_datetime(parts: &DateTimeParts, out: &mut Vec<u8>) {
    let date = (u64::from(parts.year) * 13 + u64::from(parts.month)) << 5 | u64::from(parts.day);
    let time = u64::from(parts.hour) << 12 | u64::from(parts.minute) << 6 | u64::from(parts.second);
    out.extend_from_slice(&((date << 17 | time) << 24 | u64::from(parts.micros)).to_be_bytes());
}

pub(crate) fn read_datetime(payload: &[u8]) -> Option<DateTimeParts> {
    let packed = u64::from_be_bytes(payload.try_into().ok()?);
    let months = packed >> 46;
    let parts = DateTimeParts {
        kind: TemporalKind::DateTime,
        negative: false,
        year: u16::try_from(months / 13).ok()?,
        month: (months % 13) as u8,
        day: (packed >> 41 & 31) as u8,
        hour: (packed >> 36 & 31) as u32,
        minute: (packed >> 30 & 63) as u8,
        second: (packed >> 24 & 63) as u8,
        micros: (packed & 0xFF_FFFF) as u32,
    };
    (parts.year <= 9999
        && parts.hour < 24
        && parts.minute < 60
        && parts.second < 60
        && parts.micros < 1_000_000)
        .then_some(parts)
}

pub(crate) fn write_time(micros: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&((micros + TIME_BIAS) as u64).to_be_bytes());
}

pub(crate) fn read_time(payload: &[u8]) -> Option<i64> {
    let biased = i64::try_from(u64::from_be_bytes(payload.try_into().ok()?)).ok()?;
    let micros = biased - TIME_BIAS;
    (micros.abs() <= TIME_MAX_MICROS + 999_999).then_some(micros)
}

pub(crate) fn write_timestamp(micros: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&micros.to_be_bytes());
}

/// The moment of a TIMESTAMP payload as local date and time. The inner `None` where the zone is
/// unknown.
pub(crate) fn read_timestamp(payload: &[u8], zone: &TimeZone) -> Option<Option<DateTimeParts>> {
    let micros = u64::from_be_bytes(payload.try_into().ok()?);
    if micros == 0 {
        return Some(Some(DateTimeParts::zero(TemporalKind::DateTime)));
    }
    let seconds = i64::try_from(micros / 1_000_000).ok()?;
    if !zone.is_known_at(micros / 1_000_000) {
        return Some(None);
    }
    let Some(offset) = zone.offset_at(seconds) else {
        return Some(None);
    };
    from_civil_seconds(seconds + offset, (micros % 1_000_000) as u32).map(Some)
}

/// What a local time means as a TIMESTAMP.
pub(crate) fn resolve(parts: &DateTimeParts, zone: &TimeZone) -> Resolved {
    zone.resolve(civil_seconds(parts))
}

fn two(value: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + value / 10 % 10, b'0' + value % 10]);
}

fn fraction(micros: u32, fsp: u8, out: &mut Vec<u8>) {
    if fsp == 0 {
        return;
    }
    out.push(b'.');
    let mut unit = 100_000;
    for _ in 0..fsp.min(6) {
        out.push(b'0' + (micros / unit % 10) as u8);
        unit /= 10;
    }
}

/// Appends `YYYY-MM-DD`.
pub(crate) fn print_date(parts: &DateTimeParts, out: &mut Vec<u8>) {
    two((parts.year / 100) as u8, out);
    two((parts.year % 100) as u8, out);
    out.push(b'-');
    two(parts.month, out);
    out.push(b'-');
    two(parts.day, out);
}

/// Appends `YYYY-MM-DD hh:mm:ss[.ffffff]`.
pub(crate) fn print_datetime(parts: &DateTimeParts, fsp: u8, out: &mut Vec<u8>) {
    print_date(parts, out);
    out.push(b' ');
    two(parts.hour as u8, out);
    out.push(b':');
    two(parts.minute, out);
    out.push(b':');
    two(parts.second, out);
    fraction(parts.micros, fsp, out);
}

/// Appends `[-]hh:mm:ss[.ffffff]` with as many digits for the hours as they need, at least two.
pub(crate) fn print_time(micros: i64, fsp: u8, out: &mut Vec<u8>) {
    let parts = DateTimeParts::from_time_micros(micros);
    if parts.negative {
        out.push(b'-');
    }
    if parts.hour >= 100 {
        out.extend_from_slice(itoa::Buffer::new().format(parts.hour).as_bytes());
    } else {
        two(parts.hour as u8, out);
    }
    out.push(b':');
    two(parts.minute, out);
    out.push(b':');
    two(parts.second, out);
    fraction(parts.micros, fsp, out);
}

/// A date, or a date with its time, as servers print it without a fraction: `2020-01-31`,
/// `2020-01-31 10:00:00`. `None` if it is none that there is, in the years from 1 to 9999.
pub fn plain_moment(text: &[u8], is_date: bool) -> Option<DateTimeParts> {
    const DATE: &[u8] = b"dddd-dd-dd";
    const DATE_TIME: &[u8] = b"dddd-dd-dd dd:dd:dd";
    let shape = if is_date { DATE } else { DATE_TIME };
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        sign => byte == sign,
    };
    if text.len() != shape.len() || !text.iter().zip(shape).all(fits) {
        return None;
    }
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to).unwrap_or_default();
        digits
            .iter()
            .fold(0u16, |n, digit| n * 10 + u16::from(digit - b'0'))
    };
    let small = |from: usize| u8::try_from(number(from, from + 2)).ok();
    let parts = DateTimeParts {
        kind: match is_date {
            true => TemporalKind::Date,
            false => TemporalKind::DateTime,
        },
        negative: false,
        year: number(0, 4),
        month: small(5)?,
        day: small(8)?,
        hour: u32::from(small(11)?),
        minute: small(14)?,
        second: small(17)?,
        micros: 0,
    };
    let exists = parts.year > 0
        && (1..=12).contains(&parts.month)
        && (1..=days_in_month(parts.year, parts.month)).contains(&parts.day)
        && parts.hour < 24
        && parts.minute < 60
        && parts.second < 60;
    exists.then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar() {
        assert_eq!(days_from_civil(1970, 1, 1), 0);
        assert_eq!(days_from_civil(2024, 2, 29), 19_782);
        for days in [-719_528, -1, 0, 59, 60, 19_782, 19_783, 2_932_896] {
            let (year, month, day) = civil_from_days(days).expect("in range");
            assert_eq!(days_from_civil(year, month, day), days);
        }
        assert_eq!(civil_from_days(2_932_897), None, "the year 10000");
    }

    #[test]
    fn payloads_order_and_return() {
        let at = |year, month, day, hour, micros| DateTimeParts {
            year,
            month,
            day,
            hour,
            minute: 59,
            second: 58,
            micros,
            ..DateTimeParts::zero(TemporalKind::DateTime)
        };
        let mut before = Vec::new();
        for parts in [
            at(0, 0, 0, 0, 0),
            at(2023, 12, 31, 23, 999_999),
            at(2024, 0, 0, 0, 0),
            at(2024, 1, 0, 0, 0),
            at(9999, 12, 31, 23, 1),
        ] {
            let mut payload = Vec::new();
            write_datetime(&parts, &mut payload);
            assert!(before < payload);
            assert!(read_datetime(&payload) == Some(parts));
            before = payload;
        }
        let mut payload = Vec::new();
        write_time(-TIME_MAX_MICROS, &mut payload);
        assert_eq!(read_time(&payload), Some(-TIME_MAX_MICROS));
        let mut text = Vec::new();
        print_time(-TIME_MAX_MICROS, 2, &mut text);
        assert_eq!(text, b"-838:59:59.00");
        assert!(
            read_date(&[0xFF; 3]).is_none()
                && read_datetime(&[0xFF; 8]).is_none()
                && read_time(&[0xFF; 8]).is_none()
        );
    }
}
