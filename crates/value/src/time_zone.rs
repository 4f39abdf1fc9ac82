//! The session's time zone, for TIMESTAMP columns.

use chrono::{LocalResult, NaiveDateTime, Offset, TimeZone as _};

use crate::context::LATEST_TIMESTAMP;

/// A session time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeZone {
    /// A fixed offset, seconds east of UTC.
    Offset(i32),
    /// A zone of the tz database.
    Named(chrono_tz::Tz),
    /// A zone that cannot be known, such as SYSTEM on a host whose zone shows only as an
    /// abbreviation. TIMESTAMP columns are then refused.
    Unknown,
}

impl TimeZone {
    /// UTC.
    pub const UTC: TimeZone = TimeZone::Offset(0);

    /// Reads the value of `@@time_zone`; `system` is the value of `@@system_time_zone`, used where
    /// the former is `SYSTEM`.
    ///
    /// Of system zones only UTC is known: `GMT` or `CET` may be the winter name of a zone that has
    /// summer time.
    pub fn parse(name: &str, system: &str) -> TimeZone {
        if name.eq_ignore_ascii_case("SYSTEM") {
            return match system {
                "UTC" | "Etc/UTC" | "UCT" | "Zulu" => TimeZone::UTC,
                _ => match system.contains('/') {
                    true => TimeZone::parse_name(system),
                    false => TimeZone::Unknown,
                },
            };
        }
        match offset(name) {
            Some(seconds) => TimeZone::Offset(seconds),
            None => TimeZone::parse_name(name),
        }
    }

    fn parse_name(name: &str) -> TimeZone {
        match chrono_tz::TZ_VARIANTS
            .iter()
            .find(|zone| zone.name().eq_ignore_ascii_case(name))
        {
            Some(chrono_tz::Tz::UTC | chrono_tz::Tz::Etc__UTC) => TimeZone::UTC,
            Some(zone) => TimeZone::Named(*zone),
            None => TimeZone::Unknown,
        }
    }

    /// Whether servers take the same time of day for this instant (seconds since 1970 UTC). Their
    /// tables of named zones end with 2037, and what each of them does behind that is not
    /// reproduced.
    pub(crate) fn is_known_at(&self, seconds: u64) -> bool {
        seconds <= LATEST_TIMESTAMP || matches!(self, TimeZone::Offset(_))
    }

    /// Seconds east of UTC at this instant (seconds since 1970 UTC); `None` where the zone is
    /// unknown.
    pub(crate) fn offset_at(&self, seconds: i64) -> Option<i64> {
        match self {
            TimeZone::Offset(offset) => Some(i64::from(*offset)),
            TimeZone::Named(zone) => {
                let utc = chrono::DateTime::from_timestamp(seconds, 0)?.naive_utc();
                Some(i64::from(
                    zone.offset_from_utc_datetime(&utc).fix().local_minus_utc(),
                ))
            }
            TimeZone::Unknown => None,
        }
    }

    /// Whether the local time of this instant (seconds since 1970 UTC) means this instant only:
    /// `false` in the hour that a clock repeats, and where the zone is unknown.
    pub fn is_plain_at(&self, seconds: i64) -> bool {
        self.offset_at(seconds).is_some_and(
            |offset| matches!(self.resolve(seconds + offset), Resolved::At(at) if at == seconds),
        )
    }

    /// The instant of a local time given as if it were UTC, in seconds since 1970.
    pub(crate) fn resolve(&self, local: i64) -> Resolved {
        match self {
            TimeZone::Offset(offset) => Resolved::At(local - i64::from(*offset)),
            TimeZone::Named(zone) => {
                let Some(naive) =
                    chrono::DateTime::from_timestamp(local, 0).map(|at| at.naive_utc())
                else {
                    return Resolved::Unknown;
                };
                match zone.from_local_datetime(&naive) {
                    LocalResult::Single(at) => Resolved::At(at.timestamp()),
                    LocalResult::Ambiguous(first, second) => Resolved::Twice(
                        first.timestamp().min(second.timestamp()),
                        first.timestamp().max(second.timestamp()),
                    ),
                    LocalResult::None => match first_after_gap(*zone, naive) {
                        Some(at) => Resolved::Gap(at),
                        None => Resolved::Unknown,
                    },
                }
            }
            TimeZone::Unknown => Resolved::Unknown,
        }
    }
}

/// What a local time means in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// One instant.
    At(i64),
    /// Two instants, when clocks were set back.
    Twice(i64, i64),
    /// None, when clocks were set forward; the first instant after the gap.
    Gap(i64),
    /// The zone is unknown.
    Unknown,
}

/// The first instant whose local time lies behind the gap that `local` falls into.
fn first_after_gap(zone: chrono_tz::Tz, local: NaiveDateTime) -> Option<i64> {
    // Gaps last at most a day (a zone that crossed the date line).
    let middle = local.and_utc().timestamp();
    let offset = |at: i64| {
        Some(i64::from(
            zone.offset_from_utc_datetime(&chrono::DateTime::from_timestamp(at, 0)?.naive_utc())
                .fix()
                .local_minus_utc(),
        ))
    };
    let (mut before, mut after) = (middle - 2 * 86_400, middle + 2 * 86_400);
    let is_before = |at: i64| -> Option<bool> { Some(at + offset(at)? < middle) };
    while before + 1 < after {
        let half = before + (after - before) / 2;
        if is_before(half)? {
            before = half;
        } else {
            after = half;
        }
    }
    Some(after)
}

/// `+02:00`, `-5:30`.
fn offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |digits: &str| -> Option<i32> {
        if digits.is_empty()
            || digits.len() > 2
            || !digits.bytes().all(|byte| byte.is_ascii_digit())
        {
            return None;
        }
        digits.parse().ok()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses() {
        assert_eq!(TimeZone::parse("+02:00", ""), TimeZone::Offset(7200));
        assert_eq!(TimeZone::parse("-05:30", ""), TimeZone::Offset(-19_800));
        assert_eq!(TimeZone::parse("SYSTEM", "UTC"), TimeZone::UTC);
        assert_eq!(TimeZone::parse("SYSTEM", "CET"), TimeZone::Unknown);
        assert_eq!(
            TimeZone::parse("Europe/Berlin", ""),
            TimeZone::Named(chrono_tz::Europe::Berlin)
        );
        assert_eq!(TimeZone::parse("nowhere", ""), TimeZone::Unknown);
        assert_eq!(TimeZone::parse("+é", ""), TimeZone::Unknown);
    }

    #[test]
    fn an_hour_that_is_repeated_means_two_instants() {
        let berlin = TimeZone::Named(chrono_tz::Europe::Berlin);
        // 2024-10-27 02:30 in summer, an hour later in winter, and their neighbours
        for (seconds, plain) in [
            (1_729_985_400, true),
            (1_729_989_000, false),
            (1_729_992_600, false),
            (1_729_994_400, true),
        ] {
            assert_eq!(berlin.is_plain_at(seconds), plain, "{seconds}");
            assert!(TimeZone::UTC.is_plain_at(seconds));
            assert!(!TimeZone::Unknown.is_plain_at(seconds));
        }
    }

    #[test]
    fn summer_time() {
        let berlin = TimeZone::Named(chrono_tz::Europe::Berlin);
        // 2024-03-31 02:30 does not exist; 03:00 is 01:00 UTC.
        assert_eq!(berlin.resolve(1_711_852_200), Resolved::Gap(1_711_846_800));
        // 2024-10-27 02:30 exists twice.
        assert_eq!(
            berlin.resolve(1_729_996_200),
            Resolved::Twice(1_729_989_000, 1_729_992_600)
        );
        assert_eq!(berlin.resolve(1_704_067_200), Resolved::At(1_704_063_600));
        assert_eq!(berlin.offset_at(1_711_846_800), Some(7200));
    }
}
