//! The time of a statement, as the server has told it.

use onionskin_plan::PlainTime;
use onionskin_value::{DateTimeParts, Kind, TemporalKind};

/// `2001-02-03 04:05:06.123456`
const LENGTH: usize = 26;

/// What the server told.
#[derive(Clone, Copy)]
pub(crate) struct PresentTime {
    /// In the session's time zone, as text.
    text: [u8; LENGTH],
    local: DateTimeParts,
    utc: DateTimeParts,
    /// The local time means this moment alone.
    is_plain: bool,
}

impl PresentTime {
    pub fn read(local: &[u8], utc: &[u8], is_plain: bool) -> Option<Self> {
        Some(PresentTime {
            text: local.try_into().ok()?,
            local: parts(local)?,
            utc: parts(utc)?,
            is_plain,
        })
    }

    /// What a column of this type takes of it: of TIMESTAMP, the time in UTC. `asked`: by a call.
    /// `None`: the server would take another moment, or the column holds no time.
    pub fn for_column(&self, kind: &Kind, digits: u8, asked: bool) -> Option<DateTimeParts> {
        let whole = match kind {
            Kind::Date => {
                return Some(DateTimeParts {
                    year: self.local.year,
                    month: self.local.month,
                    day: self.local.day,
                    ..DateTimeParts::zero(TemporalKind::Date)
                });
            }
            Kind::DateTime { .. } => self.local,
            Kind::Timestamp { .. } if asked && !self.is_plain => return None,
            Kind::Timestamp { .. } => self.utc,
            _ => return None,
        };
        let unit = 10u32.pow(6u32.saturating_sub(u32::from(digits)));
        Some(DateTimeParts {
            micros: whole.micros / unit * unit,
            ..whole
        })
    }

    /// The text for a plain column. `None`: it would be read as another moment.
    pub fn text(&self, time: PlainTime) -> Option<&[u8]> {
        let with = |digits: u8| match digits {
            0 => self.text.get(..19),
            n => self.text.get(..20 + usize::from(n)),
        };
        match time {
            PlainTime::Date => self.text.get(..10),
            PlainTime::DateTime(digits) => with(digits),
            PlainTime::Timestamp(digits) => with(digits).filter(|_| self.is_plain),
        }
    }
}

/// Reads `2001-02-03 04:05:06.123456`.
fn parts(text: &[u8]) -> Option<DateTimeParts> {
    const FORM: &[u8; LENGTH] = b"0000-00-00 00:00:00.000000";
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    };
    if text.len() != LENGTH || !text.iter().zip(FORM).all(fits) {
        return None;
    }
    let number = |from: usize, to: usize| {
        let digits = text[from..to].iter();
        digits.fold(0u32, |n, digit| n * 10 + u32::from(digit - b'0'))
    };
    let small = |from: usize| u8::try_from(number(from, from + 2)).ok();
    Some(DateTimeParts {
        year: u16::try_from(number(0, 4)).ok()?,
        month: small(5)?,
        day: small(8)?,
        hour: number(11, 13),
        minute: small(14)?,
        second: small(17)?,
        micros: number(20, LENGTH),
        ..DateTimeParts::zero(TemporalKind::DateTime)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(is_plain: bool) -> PresentTime {
        PresentTime::read(
            b"2026-10-25 02:30:15.987654",
            b"2026-10-25 01:30:15.987654",
            is_plain,
        )
        .unwrap()
    }

    #[test]
    fn fractions_are_cut_off() {
        let time = told(true);
        let at = |digits| {
            let kind = Kind::DateTime { fsp: 6 };
            time.for_column(&kind, digits, false).unwrap().micros
        };
        assert_eq!((at(0), at(3), at(6)), (0, 987_000, 987_654));
        assert_eq!(
            time.text(PlainTime::DateTime(3)),
            Some(b"2026-10-25 02:30:15.987".as_slice())
        );
        assert_eq!(
            time.text(PlainTime::DateTime(0)),
            Some(b"2026-10-25 02:30:15".as_slice())
        );
        assert_eq!(time.text(PlainTime::Date), Some(b"2026-10-25".as_slice()));
    }

    #[test]
    fn the_hour_that_comes_twice() {
        let time = told(false);
        let kind = Kind::Timestamp { fsp: 0 };
        // a default is the moment itself
        assert_eq!(time.for_column(&kind, 0, false).unwrap().hour, 1);
        assert!(time.for_column(&kind, 0, true).is_none());
        assert_eq!(time.text(PlainTime::Timestamp(0)), None);
        assert_eq!(told(true).for_column(&kind, 0, true).unwrap().hour, 1);
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            b"2026-10-25 02:30:15".as_slice(),
            b"2026-10-25 02:30:15.98765x",
            b"2026-10-25T02:30:15.987654",
            b"",
        ] {
            assert!(parts(text).is_none());
        }
    }
}
