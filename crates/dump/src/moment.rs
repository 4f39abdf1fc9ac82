//! Masks of dates and times, as texts of the text protocol.
//!
//! A date is replaced by one of the same four years, together with its time of day: a window that
//! the calendar repeats. `hash` takes two hundred years. Zero dates stay; dates with a month or a
//! day of zero, and those that the calendar does not have, stay such.

use crate::permute::Permuter;

/// Days of four years.
const WINDOW: i64 = 1461;
const SECONDS_OF_DAY: i64 = 86_400;
/// Most seconds of a TIME: 838:59:59.
const MOST_SECONDS: i64 = 838 * 3600 + 59 * 60 + 59;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moments {
    /// Without a time of day.
    pub is_date: bool,
    /// It ends in 2038 or 2106.
    pub is_timestamp: bool,
    /// Digits of the second's fraction.
    pub fsp: u8,
    /// From a window of four years.
    pub is_near: bool,
}

/// A date and a time of day.
#[derive(Clone, Copy)]
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    /// In units of the fraction.
    time: i64,
}

impl Moments {
    fn unit(self) -> i64 {
        10_i64.pow(u32::from(self.fsp))
    }

    /// Units of a day.
    fn per_day(self) -> i64 {
        match self.is_date {
            true => 1,
            false => SECONDS_OF_DAY * self.unit(),
        }
    }

    fn read(self, text: &str) -> Option<Parts> {
        let (date, time) = match self.is_date {
            true => (text, 0),
            false => {
                let (date, time) = text.split_once(' ')?;
                (date, read_time(time, self.fsp)?)
            }
        };
        let mut parts = date.split('-').map(number);
        let parts = Parts {
            year: parts.next()??,
            month: parts.next()??,
            day: parts.next()??,
            time,
        };
        let fits = parts.year <= 9999
            && parts.month <= 12
            && parts.day <= 31
            && time < SECONDS_OF_DAY * self.unit();
        fits.then_some(parts)
    }

    fn write(self, parts: Parts) -> String {
        let Parts {
            year, month, day, ..
        } = parts;
        let date = format!("{year:04}-{month:02}-{day:02}");
        match self.is_date {
            true => date,
            false => format!("{date} {}", write_time(parts.time, self.fsp)),
        }
    }

    /// Another moment. `None`: the text is none.
    pub fn replace(self, permuter: &mut Permuter, text: &str) -> Option<String> {
        let parts = self.read(text)?;
        if (parts.year, parts.month, parts.day, parts.time) == (0, 0, 0, 0) {
            return Some(text.into());
        }
        let out = match days(parts) {
            Some(day) => self.real(permuter, day, parts.time)?,
            None => self.unreal(permuter, parts),
        };
        Some(self.write(out))
    }

    fn real(self, permuter: &mut Permuter, day: i64, time: i64) -> Option<Parts> {
        let per_day = self.per_day();
        let value = day * per_day + time;
        let (low, high) = self.window(day, value)?;
        let label = [low.to_be_bytes(), high.to_be_bytes()].concat();
        let size = (high - low + 1) as u128;
        let image = low + permuter.number(&label, size, (value - low) as u128) as i64;
        let (year, month, day) = date(image.div_euclid(per_day));
        Some(Parts {
            year,
            month,
            day,
            time: image.rem_euclid(per_day),
        })
    }

    /// First and last moment that may take this one's place.
    fn window(self, day: i64, value: i64) -> Option<(i64, i64)> {
        let per_day = self.per_day();
        let bounds = |low: i64, high: i64| (low * per_day, high * per_day + per_day - 1);
        let year_begins = |year| days_of(year, 1, 1);
        let (low, high) = match self.is_near {
            true => {
                let low = day.div_euclid(WINDOW) * WINDOW;
                bounds(low, low + WINDOW - 1)
            }
            false => {
                let borders = [0, 1900, 2100, 10_000].map(year_begins);
                let at = borders.iter().rposition(|border| *border <= day)?;
                bounds(borders[at], borders.get(at + 1)? - 1)
            }
        };
        // the years that the server has
        let (first, last) = bounds(year_begins(0), year_begins(10_000) - 1);
        let (low, high) = (low.max(first), high.min(last));
        if !self.is_timestamp {
            return Some((low, high));
        }
        // older servers end at the first of these borders
        let of_seconds =
            |seconds: i64| (days_of(1970, 1, 1) * SECONDS_OF_DAY + seconds) * self.unit();
        let borders = [1, 1 << 31, 1 << 32].map(of_seconds);
        let at = borders.iter().rposition(|border| *border <= value)?;
        Some((low.max(borders[at]), high.min(borders.get(at + 1)? - 1)))
    }

    /// A date that the calendar does not have.
    fn unreal(self, permuter: &mut Permuter, parts: Parts) -> Parts {
        let per_day = self.per_day();
        let first_year = parts.year / 16 * 16;
        let sizes = [
            16,
            if parts.month == 0 { 1 } else { 12 },
            if parts.day == 0 { 1 } else { 31 },
            per_day,
        ];
        let [_, months, days_of_month, _] = sizes;
        let size: i64 = sizes.iter().product();
        let values = [
            parts.year - first_year,
            (parts.month - 1).max(0),
            (parts.day - 1).max(0),
            parts.time,
        ];
        let mut value = values.iter().zip(sizes).fold(0, |n, (v, s)| n * s + v);
        let label = [first_year, months, days_of_month, per_day].map(i64::to_be_bytes);
        loop {
            value = permuter.number(label.as_flattened(), size as u128, value as u128) as i64;
            let day = value / per_day;
            let out = Parts {
                year: first_year + day / days_of_month / months,
                month: day / days_of_month % months + i64::from(months > 1),
                day: day % days_of_month + i64::from(days_of_month > 1),
                time: value % per_day,
            };
            let is_zero = (out.year, out.month, out.day, out.time) == (0, 0, 0, 0);
            if days(out).is_none() && !is_zero && out.year <= 9999 {
                return out;
            }
        }
    }
}

/// Another TIME: one of a day, if it is one of a day. `None`: the text is none.
pub(crate) fn time(permuter: &mut Permuter, text: &str, fsp: u8) -> Option<String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let unit = 10_i64.pow(u32::from(fsp));
    let value = read_time(rest, fsp)?;
    let day = SECONDS_OF_DAY * unit;
    let (low, high) = match value < day {
        // zero is never negative
        true => (i64::from(!sign.is_empty()), day - 1),
        false => (day, MOST_SECONDS * unit),
    };
    if !(low..=high).contains(&value) {
        return None;
    }
    let label = [low.to_be_bytes(), high.to_be_bytes()].concat();
    let image = permuter.number(&label, (high - low + 1) as u128, (value - low) as u128) as i64;
    Some(format!("{sign}{}", write_time(low + image, fsp)))
}

fn number(text: &str) -> Option<i64> {
    let are_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    are_digits.then(|| text.parse().ok())?
}

/// Units of the fraction since midnight.
fn read_time(text: &str, fsp: u8) -> Option<i64> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, fraction),
        None => (text, ""),
    };
    let mut parts = clock.split(':').map(number);
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let digits = usize::from(fsp);
    if fraction.len() != digits || minutes > 59 || seconds > 59 || hours > 838 {
        return None;
    }
    let fraction = if digits == 0 { 0 } else { number(fraction)? };
    let unit = 10_i64.pow(u32::from(fsp));
    Some((hours * 3600 + minutes * 60 + seconds) * unit + fraction)
}

fn write_time(value: i64, fsp: u8) -> String {
    let unit = 10_i64.pow(u32::from(fsp));
    let (seconds, fraction) = (value / unit, value % unit);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let clock = format!("{hours:02}:{minutes:02}:{seconds:02}");
    match fsp {
        0 => clock,
        _ => format!("{clock}.{fraction:0width$}", width = usize::from(fsp)),
    }
}

/// Days since 1970 of the Gregorian calendar, after Hinnant's `days_from_civil`.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The reverse.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let of_year = day_of_era - (365 * of_era + of_era / 4 - of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = (shifted + 2) % 12 + 1;
    (of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The day of a date that the calendar has.
fn days(parts: Parts) -> Option<i64> {
    let Parts {
        year, month, day, ..
    } = parts;
    if month == 0 || day == 0 {
        return None;
    }
    let days = days_of(year, month, day);
    (date(days) == (year, month, day)).then_some(days)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::key::MaskKey;

    fn permuter() -> Permuter {
        Permuter::new(MaskKey::new([3; 32]))
    }

    const DATES: Moments = Moments {
        is_date: true,
        is_timestamp: false,
        fsp: 0,
        is_near: true,
    };

    /// All that a DATE may hold, zero and invalid dates as well.
    #[test]
    fn every_date_has_its_own_image() {
        for is_near in [true, false] {
            let dates = Moments { is_near, ..DATES };
            let mut one = permuter();
            let mut seen = HashSet::new();
            let mut count = 0;
            for year in (0..64).chain(1960..2048).chain(9900..=9999) {
                for month in 0..=12 {
                    for day in 0..=31 {
                        let text = format!("{year:04}-{month:02}-{day:02}");
                        let image = dates.replace(&mut one, &text).expect("a date");
                        let (before, after) = (dates.read(&text), dates.read(&image));
                        let (before, after) = (before.expect("one"), after.expect("one"));
                        assert_eq!(days(before).is_some(), days(after).is_some());
                        if is_near {
                            assert!((before.year - after.year).abs() <= 16, "{text} {image}");
                        }
                        assert!(seen.insert(image));
                        count += 1;
                    }
                }
            }
            assert_eq!(seen.len(), count);
        }
    }

    #[test]
    fn times_stay_in_their_range() {
        let stamps = Moments {
            is_date: false,
            is_timestamp: true,
            fsp: 3,
            is_near: true,
        };
        let mut one = permuter();
        for text in [
            "1970-01-01 00:00:01.000",
            "2038-01-19 03:14:07.999",
            "2038-01-19 03:14:08.000",
            "2106-02-07 06:28:15.999",
        ] {
            let image = stamps.replace(&mut one, text).expect("a moment");
            let is_late = |t: &str| t >= "2038-01-19 03:14:08";
            assert_eq!(is_late(text), is_late(&image), "{image}");
            assert!(image.as_str() >= "1970-01-01 00:00:01", "{image}");
            assert!(image.as_str() < "2106-02-07 06:28:16", "{image}");
        }
        assert_eq!(
            stamps
                .replace(&mut one, "0000-00-00 00:00:00.000")
                .as_deref(),
            Some("0000-00-00 00:00:00.000")
        );
        for (text, limit) in [
            ("-00:00:01", "24"),
            ("23:59:59", "24"),
            ("838:59:59", "839"),
        ] {
            let image = time(&mut one, text, 0).expect("a time");
            assert_eq!(image.starts_with('-'), text.starts_with('-'));
            assert_ne!(image, "-00:00:00");
            let hours: u32 = image
                .trim_start_matches('-')
                .split(':')
                .next()
                .expect("hours")
                .parse()
                .expect("hours");
            assert!(hours < limit.parse().expect("a number"));
        }
        assert_eq!(time(&mut one, "1:2", 0), None);
    }
}
