//! Which backups of a folder to keep.
//!
//! Rules are applied to each [`Group`] by itself: the backups of one server from one source. Seven
//! dumps do not make a physical backup superfluous, and nothing of one server stands for another.
//!
//! A backup is kept if any rule names it, and with it every backup that it continues. The newest
//! one of a group is always kept, so that backups which stopped being made do not vanish by their
//! age. What does not verify, lacks its base, or was not made by `onionskin backup` counts for no
//! rule and is left alone: whether it may go is not for a program to say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use chrono::{DateTime, Datelike};

use crate::{
    Manifest,
    catalogue::{BACKUPS, Catalogue, Entry},
    store::Retention,
};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

/// A rule of what to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The newest so many.
    Newest(u32),
    /// Those younger than so many seconds.
    Younger(u64),
    /// The newest of each of the last so many periods that have a backup.
    Last(u32, Period),
}

/// Calendar periods, in UTC. Weeks begin on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// From midnight.
    Day,
    /// From Monday.
    Week,
    /// From the first.
    Month,
}

impl FromStr for Keep {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WHAT: &str = "write 7 (the newest seven), 12h, 30d or 8w (younger than that), or daily=7, weekly=8 or monthly=12 (one for each)";
        let count = |digits: &str| match digits.parse::<u32>() {
            Ok(count @ 1..) => Ok(count),
            _ => Err(WHAT),
        };
        if let Some((period, digits)) = text.split_once('=') {
            let period = match period {
                "daily" => Period::Day,
                "weekly" => Period::Week,
                "monthly" => Period::Month,
                _ => return Err(WHAT),
            };
            return Ok(Self::Last(count(digits)?, period));
        }
        for (unit, seconds) in [('h', HOUR), ('d', DAY), ('w', WEEK)] {
            if let Some(digits) = text.strip_suffix(unit) {
                return Ok(Self::Younger(u64::from(count(digits)?) * seconds));
            }
        }
        Ok(Self::Newest(count(text)?))
    }
}

/// What becomes of a backup, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// A rule names it, or it is the newest.
    Keep,
    /// A backup that is kept continues it.
    KeepAsBase,
    /// No rule names it.
    Remove,
    /// No rule names it, and the store does not let it be removed.
    Retained(Retention),
    /// Not judged, for this reason.
    LeaveAlone(String),
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep => f.write_str("keep"),
            Self::KeepAsBase => f.write_str("keep, an incremental backup that is kept needs it"),
            Self::Remove => f.write_str("remove"),
            Self::Retained(retention) => write!(f, "not kept by any rule, but {retention}"),
            Self::LeaveAlone(reason) => write!(f, "left alone: {reason}"),
        }
    }
}

/// Backups that can stand for each other: of one server, from one source. Its version is none of
/// it, as servers are upgraded.
///
/// A backup that does not tell its server (an older one, or one whose server could not be asked) is
/// in a group with those of its kind, apart from those that do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    source: String,
    family: Option<String>,
    server: Option<String>,
}

impl Group {
    /// That of a backup.
    pub fn of(manifest: &Manifest) -> Self {
        let server = manifest.server.as_ref();
        Self {
            source: manifest.source.clone(),
            family: server.map(|server| server.family.clone()),
            server: server.and_then(|server| server.identity().map(str::to_owned)),
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = self.family.as_deref().unwrap_or("a server");
        let server = self.server.as_deref().unwrap_or("not named");
        write!(f, "{} of {family}, {server}", self.source)
    }
}

/// The fate of every entry of `catalogue`, in its order. `now` in seconds since 1970.
pub fn judge(catalogue: &Catalogue, rules: &[Keep], now: u64) -> Vec<Fate> {
    let entries = &catalogue.entries;
    let mut fates = Vec::with_capacity(entries.len());
    // Places and chains of those that count, the oldest first, as the catalogue is sorted.
    let mut candidates: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (place, entry) in entries.iter().enumerate() {
        let reason = match (&entry.content, catalogue.chain(place)) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(content), _) if !BACKUPS.contains(&content.manifest.source.as_str()) => Some(
                format!("not a backup of a server ({})", content.manifest.source),
            ),
            (_, Some(Err(error))) => Some(error.to_string()),
            (Ok(content), Some(Ok(chain))) => {
                candidates.push((place, chain));
                let group = Group::of(&content.manifest);
                groups.entry(group).or_default().push(place);
                None
            }
            (_, None) => Some("it does not verify".into()),
        };
        fates.push(reason.map_or(Fate::Remove, Fate::LeaveAlone));
    }
    let time = |place: usize| entries[place].created();
    let mut kept = BTreeSet::new();
    for group in groups.values() {
        keep(group, rules, now, time, &mut kept);
    }
    for (place, chain) in candidates.iter().filter(|(place, _)| kept.contains(place)) {
        for base in chain {
            fates[*base] = match base == place || kept.contains(base) {
                true => Fate::Keep,
                false => Fate::KeepAsBase,
            };
        }
    }
    // What is left alone may need its bases one day.
    for place in 0..entries.len() {
        if matches!(fates[place], Fate::LeaveAlone(_))
            && let Some(Ok(chain)) = catalogue.chain(place)
        {
            for base in chain {
                if fates[base] == Fate::Remove {
                    fates[base] = Fate::KeepAsBase;
                }
            }
        }
    }
    fates
}

/// What was to be removed and cannot be stays, with all that it continues. `retention` is asked for
/// every file that was to be removed.
pub fn hold<E>(
    catalogue: &Catalogue,
    fates: &mut [Fate],
    mut retention: impl FnMut(&Entry) -> Result<Option<Retention>, E>,
) -> Result<(), E> {
    for (fate, entry) in fates.iter_mut().zip(&catalogue.entries) {
        if *fate == Fate::Remove
            && let Some(found) = retention(entry)?
        {
            *fate = Fate::Retained(found);
        }
    }
    for place in 0..fates.len() {
        if matches!(fates[place], Fate::Retained(_))
            && let Some(Ok(chain)) = catalogue.chain(place)
        {
            for base in chain {
                if fates[base] == Fate::Remove {
                    fates[base] = Fate::KeepAsBase;
                }
            }
        }
    }
    Ok(())
}

/// Applies all rules to the backups of one group, the oldest first in `group`.
fn keep(
    group: &[usize],
    rules: &[Keep],
    now: u64,
    time: impl Fn(usize) -> u64,
    kept: &mut BTreeSet<usize>,
) {
    let newest_first = || group.iter().rev().copied();
    kept.extend(newest_first().take(1));
    for rule in rules {
        match rule {
            Keep::Newest(count) => kept.extend(newest_first().take(*count as usize)),
            Keep::Younger(seconds) => kept
                .extend(newest_first().filter(|place| time(*place).saturating_add(*seconds) > now)),
            Keep::Last(count, period) => {
                let mut periods = BTreeSet::new();
                for place in newest_first() {
                    if periods.len() == *count as usize {
                        break;
                    }
                    if periods.insert(number_of(*period, time(place))) {
                        kept.insert(place);
                    }
                }
            }
        }
    }
}

/// Counts the periods; what it counts from does not matter.
fn number_of(period: Period, time: u64) -> u64 {
    match period {
        Period::Day => time / DAY,
        // 1970 began on a Thursday.
        Period::Week => (time + 3 * DAY) / WEEK,
        Period::Month => {
            let date = i64::try_from(time)
                .ok()
                .and_then(|seconds| DateTime::from_timestamp(seconds, 0));
            date.map_or(0, |date| {
                12 * u64::from(date.year().unsigned_abs()) + u64::from(date.month0())
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StreamError, catalogue::tests::entry, manifest::Server};

    const NOW: u64 = 1_800_000_000;

    #[test]
    fn rules_are_read() {
        for (text, rule) in [
            ("7", Keep::Newest(7)),
            ("12h", Keep::Younger(12 * 3600)),
            ("30d", Keep::Younger(30 * 86400)),
            ("8w", Keep::Younger(56 * 86400)),
            ("daily=7", Keep::Last(7, Period::Day)),
            ("weekly=8", Keep::Last(8, Period::Week)),
            ("monthly=12", Keep::Last(12, Period::Month)),
        ] {
            assert_eq!(text.parse(), Ok(rule), "{text}");
        }
        for text in [
            "", "0", "-1", "d", "0d", "7m", "yearly=1", "daily=", "daily=0", "1.5d",
        ] {
            assert!(text.parse::<Keep>().is_err(), "{text}");
        }
    }

    /// One each day, the newest a minute old; every second one continues the one before.
    fn daily(days: u64) -> Catalogue {
        let entries = (0..days)
            .map(|day| {
                let base = (day % 2 == 1).then(|| format!("{:04}", day - 1));
                let created = NOW - 60 - DAY * (days - 1 - day);
                entry(&format!("{day:04}"), created, base.as_deref())
            })
            .collect();
        Catalogue { entries }
    }

    fn kept(catalogue: &Catalogue, rules: &[&str]) -> Vec<usize> {
        let rules: Vec<Keep> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let fates = judge(catalogue, &rules, NOW);
        let kept = fates.iter().enumerate();
        kept.filter(|(_, fate)| **fate != Fate::Remove)
            .map(|(place, _)| place)
            .collect()
    }

    #[test]
    fn a_base_stays_as_long_as_what_continues_it() {
        let catalogue = daily(10);
        assert_eq!(kept(&catalogue, &["1"]), [8, 9]);
        assert_eq!(kept(&catalogue, &["2"]), [8, 9]);
        assert_eq!(kept(&catalogue, &["3"]), [6, 7, 8, 9]);
        assert_eq!(kept(&catalogue, &["3d"]), [6, 7, 8, 9]);
        assert_eq!(kept(&catalogue, &["48h", "daily=1"]), [8, 9]);
        let fates = judge(&catalogue, &[Keep::Newest(3)], NOW);
        assert_eq!(fates[6], Fate::KeepAsBase);
        assert_eq!(fates[8], Fate::Keep);
    }

    #[test]
    fn whatever_the_rules_a_kept_backup_has_its_chain_and_the_newest_stays() {
        let catalogue = daily(400);
        for rules in [
            &[][..],
            &["1h"],
            &["daily=3", "weekly=4", "monthly=5"],
            &["monthly=100"],
            &["999"],
        ] {
            let kept = kept(&catalogue, rules);
            assert!(kept.contains(&399));
            for place in &kept {
                let chain = catalogue.chain(*place).unwrap().unwrap();
                assert!(chain.iter().all(|base| kept.contains(base)), "{rules:?}");
            }
        }
    }

    #[test]
    fn periods_keep_their_newest() {
        // A full backup each hour.
        let entries = (0..24 * 70)
            .map(|hour| {
                entry(
                    &format!("{hour:04}"),
                    NOW - 24 * 70 * HOUR + hour * HOUR,
                    None,
                )
            })
            .collect();
        let catalogue = Catalogue { entries };
        for (rule, count, period) in [
            ("daily=7", 7, Period::Day),
            ("weekly=4", 4, Period::Week),
            ("monthly=2", 2, Period::Month),
        ] {
            let kept = kept(&catalogue, &[rule]);
            assert_eq!(kept.len(), count, "{rule}");
            let time = |place: usize| catalogue.entries[place].created();
            for place in kept {
                let next = catalogue.entries.get(place + 1);
                assert!(next.is_none_or(
                    |next| number_of(period, next.created()) != number_of(period, time(place))
                ));
            }
        }
        assert_eq!(
            number_of(Period::Week, 4 * DAY - 1) + 1,
            number_of(Period::Week, 4 * DAY)
        );
    }

    #[test]
    fn segments_of_a_binlog_archive_are_not_judged() {
        let mut catalogue = daily(4);
        for segment in 0..3 {
            // Newer than all backups: they take no place among those that are kept.
            catalogue
                .entries
                .push(entry(&format!("binlog.{segment}"), NOW - 3 + segment, None));
            if let Ok(content) = &mut catalogue.entries[4 + segment as usize].content {
                content.manifest.source = crate::archive::SOURCE.into();
            }
        }
        let fates = judge(&catalogue, &[Keep::Newest(1)], NOW);
        assert_eq!(fates[..2], [Fate::Remove, Fate::Remove]);
        assert_eq!(fates[2..4], [Fate::KeepAsBase, Fate::Keep]);
        for fate in &fates[4..] {
            assert!(matches!(fate, Fate::LeaveAlone(reason) if reason.contains("(binlog)")));
        }
    }

    /// Says whose backup an entry is, and by which source.
    fn of(mut entry: Entry, source: &str, server: Option<Server>) -> Entry {
        if let Ok(content) = &mut entry.content {
            content.manifest.source = source.into();
            content.manifest.server = server;
        }
        entry
    }

    #[test]
    fn rules_hold_for_each_server_and_each_source_by_itself() {
        let mysql = |uuid: &str, version: &str| {
            let uuid = Some(uuid.to_owned());
            Some(Server {
                uuid,
                ..Server::new("mysql", version)
            })
        };
        let mariadb = |place: Option<&str>| {
            let place = place.map(str::to_owned);
            Some(Server {
                place,
                ..Server::new("mariadb", "10.11")
            })
        };
        let (one, two) = (Some("db1:3306 /data"), Some("db2:3306 /data"));
        let all = [
            ("a", "mariadb-backup", mariadb(one)),
            ("b", "mariadb-backup", mariadb(two)),
            ("c", "mariadb-backup", mariadb(None)),
            ("d", "clone", mysql("u1", "9.6")),
            ("e", "clone", mysql("u2", "9.7")),
            // An upgraded server is the same one.
            ("f", "clone", mysql("u1", "9.7")),
            ("g", "dump", mariadb(one)),
            ("h", "dump", mariadb(one)),
            ("i", "dump", mariadb(one)),
            ("j", "stdin", None),
            ("k", "stdin", None),
        ];
        let entries = all.into_iter().enumerate();
        let entries = entries.map(|(n, (id, source, server))| {
            of(entry(id, NOW - 9 * DAY + n as u64, None), source, server)
        });
        let catalogue = Catalogue {
            entries: entries.collect(),
        };
        let names = |rules: &[&str]| -> String {
            let kept = kept(&catalogue, rules).into_iter();
            kept.map(|place| &catalogue.entries[place].name[..1])
                .collect()
        };
        for rules in [&["1"][..], &[], &["1d"], &["daily=3"]] {
            assert_eq!(names(rules), "abcefik", "{rules:?}");
        }
        assert_eq!(names(&["2"]), "abcdefhijk");
        assert_eq!(names(&["9"]), "abcdefghijk");
        let group = |place: usize| {
            let content = catalogue.entries[place].content.as_ref().unwrap();
            Group::of(&content.manifest).to_string()
        };
        assert_eq!(group(0), "mariadb-backup of mariadb, db1:3306 /data");
        assert_eq!(group(9), "stdin of a server, not named");
    }

    #[test]
    fn what_is_retained_stays_with_all_that_it_needs() {
        let catalogue = daily(8);
        let mut fates = judge(&catalogue, &[Keep::Newest(1)], NOW);
        let retention = Retention {
            until: Some(NOW as i64 + 60),
            held: false,
        };
        // The fourth continues the third. The newest is never asked for.
        let held = hold(&catalogue, &mut fates, |entry| match entry.name.as_str() {
            "0003.sealed" => Ok(Some(retention)),
            "0007.sealed" => Err("it was kept"),
            _ => Ok(None),
        });
        assert_eq!(held, Ok(()));
        assert_eq!(fates[..2], [Fate::Remove, Fate::Remove]);
        assert_eq!(fates[2..4], [Fate::KeepAsBase, Fate::Retained(retention)]);
        assert_eq!(fates[4..6], [Fate::Remove, Fate::Remove]);
        assert_eq!(fates[6..], [Fate::KeepAsBase, Fate::Keep]);
        let failed = hold(&catalogue, &mut fates, |_| Err("lost"));
        assert_eq!(failed, Err("lost"));
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        let mut catalogue = daily(6);
        catalogue.entries[5].content = Err(StreamError::Trailer);
        if let Ok(content) = &mut catalogue.entries[0].content {
            content.manifest.source = "file".into();
        }
        catalogue.entries[2].content = Err(StreamError::WrongKey("key"));
        let fates = judge(&catalogue, &[Keep::Newest(1)], NOW);
        // 0 and 1: a file, and what continues it; 3: its base does not verify; 4: the newest that
        // counts.
        assert!(matches!(&fates[0], Fate::LeaveAlone(reason) if reason.contains("(file)")));
        assert_eq!(fates[1], Fate::Remove);
        assert!(matches!(&fates[2], Fate::LeaveAlone(reason) if reason.contains("wrong key")));
        assert!(matches!(&fates[3], Fate::LeaveAlone(reason) if reason.contains("continues")));
        assert_eq!(fates[4], Fate::Keep);
        assert!(matches!(fates[5], Fate::LeaveAlone(_)));
    }
}
