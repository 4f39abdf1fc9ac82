//! Reading dates and times from strings and integers.
//!
//! The servers accept nearly any punctuation in nearly any place, with rules and warnings that
//! differ between them and between releases. What is read here is what applications write: the
//! standard forms, the forms of digits only, and bad values that every server refuses alike.
//! Everything else is refused as not supported.

use crate::context::{DateTimeParts, StoreError, TemporalKind};
use crate::types::Family;

/// What a text or number says.
pub(crate) struct Literal {
    pub(crate) parts: DateTimeParts,
    /// Fractional digits beyond the sixth, cut off from `parts`: whether there were any other than
    /// zero, and whether they are at least one half of a microsecond.
    pub(crate) excess: Option<Excess>,
    /// A letter followed where the literal could have ended; the rest was not read.
    pub(crate) garbage: bool,
    /// Time zone offset, seconds east of UTC.
    pub(crate) offset: Option<i32>,
}

/// Digits beyond microseconds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) digits: usize,
    pub(crate) rounds_up: bool,
}

impl Literal {
    pub(crate) fn of(parts: DateTimeParts) -> Literal {
        Literal {
            parts,
            excess: None,
            garbage: false,
            offset: None,
        }
    }
}

/// `None`: a value that every server calls incorrect.
pub(crate) type Read = Result<Option<Literal>, StoreError>;

const fn exotic() -> StoreError {
    StoreError::Unsupported("a date or time that is not written in a standard form")
}

/// A cursor over the text.
struct Scan<'t> {
    text: &'t [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next_is_digit(&self, ahead: usize) -> bool {
        self.text
            .get(self.at + ahead)
            .is_some_and(u8::is_ascii_digit)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// A run of digits as (value, length); saturating.
    fn digits(&mut self) -> (u64, usize) {
        let start = self.at;
        let mut value = 0u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            value = value
                .saturating_mul(10)
                .saturating_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        (value, self.at - start)
    }

    /// Between one and `most` digits.
    fn number(&mut self, most: usize) -> Result<u32, StoreError> {
        match self.digits() {
            (value, length) if length > 0 && length <= most => Ok(value as u32),
            _ => Err(exotic()),
        }
    }

    /// The digits after a point, as microseconds.
    fn fraction(&mut self) -> Result<(u32, Option<Excess>), StoreError> {
        let start = self.at;
        self.digits();
        let digits = &self.text[start..self.at];
        let mut micros = 0;
        for place in 0..6 {
            micros = micros * 10 + digits.get(place).map_or(0, |digit| u32::from(digit - b'0'));
        }
        match digits.get(6..) {
            None | Some([]) => Ok((micros, None)),
            Some(rest) if rest.iter().all(|digit| *digit == b'0') => Err(exotic()),
            Some(rest) => Ok((
                micros,
                Some(Excess {
                    digits: rest.len(),
                    rounds_up: rest[0] >= b'5',
                }),
            )),
        }
    }
}

/// Years of two digits belong to 1970 to 2069.
fn two_digit_year(year: u64) -> u16 {
    if year < 70 {
        2000 + year as u16
    } else {
        1900 + year as u16
    }
}

fn in_range(parts: &DateTimeParts) -> bool {
    parts.year <= 9999
        && parts.month <= 12
        && parts.day <= 31
        && parts.hour < 24
        && parts.minute < 60
        && parts.second < 60
}

/// Reads a date, or a date with time.
pub(crate) fn datetime_text(text: &[u8], family: Family) -> Read {
    let mut scan = Scan { text, at: 0 };
    match text {
        [] | [b'a'..=b'z' | b'A'..=b'Z', ..] | [b'-', b'1'..=b'9', ..] => return Ok(None),
        [b'0'..=b'9', ..] => {}
        _ => return Err(exotic()),
    }
    let (value, length) = scan.digits();
    match scan.peek() {
        None | Some(b'.') => compact(value, length, scan),
        Some(b'-') if length == 4 || length == 2 => delimited(value, length, scan, family),
        _ => Err(exotic()),
    }
}

/// `YYYYMMDD`, `YYMMDD`, and both with `hhmmss` and a fraction.
fn compact(value: u64, length: usize, mut scan: Scan<'_>) -> Read {
    let point = scan.eat(b'.');
    let (date, time, year_digits) = match (length, point) {
        (6, false) => (value, 0, 2),
        (8, false) => (value, 0, 4),
        (12, _) => (value / 1_000_000, value % 1_000_000, 2),
        (14, _) => (value / 1_000_000, value % 1_000_000, 4),
        (1..=4, false) if value > 0 => return Ok(None),
        _ => return Err(exotic()),
    };
    let (micros, excess) = if point { scan.fraction()? } else { (0, None) };
    if scan.peek().is_some() {
        return Err(exotic());
    }
    let year = date / 10_000;
    let parts = DateTimeParts {
        kind: TemporalKind::DateTime,
        negative: false,
        year: if year_digits == 2 && value > 0 {
            two_digit_year(year)
        } else {
            year as u16
        },
        month: (date / 100 % 100) as u8,
        day: (date % 100) as u8,
        hour: (time / 10_000) as u32,
        minute: (time / 100 % 100) as u8,
        second: (time % 100) as u8,
        micros,
    };
    Ok(in_range(&parts).then_some(Literal {
        excess,
        ..Literal::of(parts)
    }))
}

/// `YYYY-MM-DD[ hh[:mm[:ss[.ffffff]]]]` from the first dash on.
fn delimited(year: u64, year_digits: usize, mut scan: Scan<'_>, family: Family) -> Read {
    let mut parts = DateTimeParts::zero(TemporalKind::DateTime);
    // The beginning of a date is incorrect, but nothing but zeros may pass for the zero date.
    let unfinished = if year == 0 { Err(exotic()) } else { Ok(None) };
    for field in [&mut parts.month, &mut parts.day] {
        if scan.peek().is_none() {
            return unfinished;
        }
        if !scan.eat(b'-') {
            return Err(exotic());
        }
        if scan.peek().is_none() {
            return unfinished;
        }
        *field = scan.number(2)? as u8;
    }
    parts.year = if year_digits == 2 && (year, parts.month, parts.day) != (0, 0, 0) {
        two_digit_year(year)
    } else {
        year as u16
    };
    let mut literal = Literal::of(parts);
    match scan.peek() {
        None => {}
        Some(b' ' | b'T') if scan.next_is_digit(1) => {
            scan.at += 1;
            time_of_day(&mut scan, &mut literal, family)?;
        }
        Some(b' ')
            if scan
                .text
                .get(scan.at + 1)
                .is_some_and(u8::is_ascii_alphabetic) =>
        {
            literal.garbage = true
        }
        Some(b'T' | b't') => return Err(exotic()),
        Some(letter) if letter.is_ascii_alphabetic() => literal.garbage = true,
        Some(_) => return Err(exotic()),
    }
    // the time counts, too: nothing but zeros is the zero date
    let time = &literal.parts;
    let has_time = (time.hour, time.minute, time.second, time.micros) != (0, 0, 0, 0);
    if year_digits == 2 && literal.parts.year == 0 && has_time {
        literal.parts.year = two_digit_year(year);
    }
    if !in_range(&literal.parts) {
        return Ok(None);
    }
    Ok(Some(literal))
}

fn time_of_day(
    scan: &mut Scan<'_>,
    literal: &mut Literal,
    family: Family,
) -> Result<(), StoreError> {
    literal.parts.hour = scan.number(2)?;
    if scan.eat(b':') {
        literal.parts.minute = scan.number(2)? as u8;
        if scan.eat(b':') {
            literal.parts.second = scan.number(2)? as u8;
            if scan.eat(b'.') {
                (literal.parts.micros, literal.excess) = scan.fraction()?;
            }
            return match scan.peek() {
                None => Ok(()),
                Some(b'+' | b'-') if family == Family::MySql => {
                    literal.offset = Some(offset(&scan.text[scan.at..]).ok_or(exotic())?);
                    Ok(())
                }
                Some(b'+' | b'-' | b'a'..=b'z' | b'A'..=b'Z') => {
                    literal.garbage = true;
                    Ok(())
                }
                Some(_) => Err(exotic()),
            };
        }
    }
    if scan.peek().is_some() {
        Err(exotic())
    } else {
        Ok(())
    }
}

/// `+hh:mm` or `-hh:mm`, -13:59 to +14:00.
fn offset(text: &[u8]) -> Option<i32> {
    let [
        sign,
        h1 @ b'0'..=b'9',
        h2 @ b'0'..=b'9',
        b':',
        m1 @ b'0'..=b'9',
        m2 @ b'0'..=b'9',
    ] = *text
    else {
        return None;
    };
    let digits = |high: u8, low: u8| i32::from(high - b'0') * 10 + i32::from(low - b'0');
    let (hours, minutes) = (digits(h1, h2), digits(m1, m2));
    let seconds = hours * 3600 + minutes * 60;
    let negative = sign == b'-';
    let valid = minutes < 60
        && if negative {
            seconds > 0 && hours < 14
        } else {
            seconds <= 14 * 3600
        };
    valid.then_some(if negative { -seconds } else { seconds })
}

/// Reads a time: `[-][d ]hh:mm[:ss[.ffffff]]` or `[-]hhmmss[.ffffff]`, or the time of a date with
/// time.
pub(crate) fn time_text(text: &[u8], family: Family) -> Read {
    match text {
        [b'e' | b'E', ..] => return Err(exotic()),
        [b'a'..=b'z' | b'A'..=b'Z', ..] => return Ok(None),
        [] | [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..] => {}
        _ => return Err(exotic()),
    }
    // Long texts are first tried as a date with time, which MySQL recognizes by a space between the
    // two.
    if let [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'-', ..] = text {
        let with_time = text.len() > 11
            && (text.contains(&b' ') || (family == Family::MariaDb && text.contains(&b'T')));
        return match datetime_text(text, family)? {
            Some(literal)
                if with_time
                    && literal.offset.is_none()
                    && !literal.garbage
                    && (literal.parts.month > 0 && literal.parts.day > 0
                        || literal.parts.is_zero_date())
                    && text.contains(&b':') =>
            {
                Ok(Some(literal))
            }
            _ => Err(exotic()),
        };
    }
    let mut scan = Scan { text, at: 0 };
    let mut parts = DateTimeParts::zero(TemporalKind::Time);
    parts.negative = scan.eat(b'-');
    if text.is_empty() {
        return if family == Family::MySql {
            Ok(Some(Literal::of(parts)))
        } else {
            Ok(None)
        };
    }
    let (first, length) = scan.digits();
    let mut complete = true;
    match scan.peek() {
        Some(b':') if length <= 4 => {
            parts.hour = first as u32;
            complete = minutes_and_seconds(&mut scan, &mut parts)?;
        }
        Some(b' ') if length <= 2 && scan.next_is_digit(1) => {
            scan.at += 1;
            let (hours, digits) = scan.digits();
            // A lone digit after the day is not taken for hours.
            if digits > 2 || (digits == 1 && scan.peek() != Some(b':')) {
                return Err(exotic());
            }
            parts.hour = first as u32 * 24 + hours as u32;
            if scan.peek() == Some(b':') {
                complete = minutes_and_seconds(&mut scan, &mut parts)?;
            }
        }
        None | Some(b'.') if length <= 7 => {
            parts.hour = (first / 10_000) as u32;
            parts.minute = (first / 100 % 100) as u8;
            parts.second = (first % 100) as u8;
        }
        _ => return Err(exotic()),
    }
    let mut literal = Literal::of(parts);
    if complete && scan.eat(b'.') {
        (literal.parts.micros, literal.excess) = scan.fraction()?;
    }
    literal.garbage = match scan.peek() {
        None => false,
        Some(letter)
            if complete
                && letter.is_ascii_alphabetic()
                && !matches!(letter, b'e' | b'E' | b't' | b'T') =>
        {
            true
        }
        Some(_) => return Err(exotic()),
    };
    if literal.parts.minute > 59 || literal.parts.second > 59 {
        // What a server says of these depends on the family; the caller finds it out by the parts.
        if literal.garbage {
            return Err(exotic());
        }
    }
    Ok(Some(literal))
}

/// `:mm[:ss]`; whether the seconds were there.
fn minutes_and_seconds(scan: &mut Scan<'_>, parts: &mut DateTimeParts) -> Result<bool, StoreError> {
    scan.eat(b':');
    parts.minute = scan.number(2)? as u8;
    if scan.eat(b':') {
        parts.second = scan.number(2)? as u8;
        return Ok(true);
    }
    Ok(false)
}

/// An integer as a date or a date with time: `YYMMDD`, `YYYYMMDD`, and both with `hhmmss`.
pub(crate) fn datetime_number(value: u64) -> Read {
    let (date, time) = match value {
        0 => {
            return Ok(Some(Literal::of(DateTimeParts::zero(
                TemporalKind::DateTime,
            ))));
        }
        101..=691_231 => (value + 20_000_000, 0),
        700_101..=991_231 => (value + 19_000_000, 0),
        10_000_101..=99_991_231 => (value, 0),
        101_000_000..=691_231_235_959 => (value / 1_000_000 + 20_000_000, value % 1_000_000),
        700_101_000_000..=991_231_235_959 => (value / 1_000_000 + 19_000_000, value % 1_000_000),
        10_000_101_000_000..=99_991_231_235_959 => (value / 1_000_000, value % 1_000_000),
        1..=100 | 691_232..=700_100 => return Ok(None),
        _ => return Err(exotic()),
    };
    let parts = DateTimeParts {
        kind: TemporalKind::DateTime,
        negative: false,
        year: (date / 10_000) as u16,
        month: (date / 100 % 100) as u8,
        day: (date % 100) as u8,
        hour: (time / 10_000) as u32,
        minute: (time / 100 % 100) as u8,
        second: (time % 100) as u8,
        micros: 0,
    };
    Ok(in_range(&parts).then(|| Literal::of(parts)))
}

/// An integer as a time, `hhmmss`.
pub(crate) fn time_number(negative: bool, value: u64) -> Read {
    if value > 8_385_959 {
        return Err(exotic());
    }
    let parts = DateTimeParts {
        negative: negative && value > 0,
        hour: (value / 10_000) as u32,
        minute: (value / 100 % 100) as u8,
        second: (value % 100) as u8,
        ..DateTimeParts::zero(TemporalKind::Time)
    };
    Ok(Some(Literal::of(parts)))
}
