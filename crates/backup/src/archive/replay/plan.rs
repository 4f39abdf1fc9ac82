//! The segments of a replay: whether they begin where the backup ends, and reach the point.

use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
};

use onionskin_rowstream::binlog::{Gtid, GtidPosition};

use super::{
    border::{Border, check_file},
    cut::Cut,
    filter::Filter,
    point::Point,
    times::{check_held, not_reached, time_text},
};
use crate::{
    Manifest, Progress, SealedStream, StreamError,
    archive::{
        ArchiveError, Segment,
        folder::{
            Found, Keys, check_link, failed, place_text, read_segment, read_segments, segments,
        },
        segment::{file_number, order_in_log},
    },
    default_threads,
    manifest::BinlogPosition,
    store::Store,
};

/// The segments that are needed, in order and without gaps.
pub struct Plan {
    pub(super) store: Arc<dyn Store>,
    pub(super) segments: Vec<(Found, Segment)>,
    pub(super) from: BinlogPosition,
    /// What is before it the backup holds.
    border: Border,
    /// What the backup holds already, if known.
    held: Option<String>,
    /// When the backup was made, in microseconds since 1970; 0 if that is not known.
    pub(super) created: u64,
    /// The latest time known of a transaction that the backup holds.
    held_time: u64,
    pub(super) point: Point,
}

impl Plan {
    /// Finds the segments from where the backup stands in the binlog; an error if some are missing,
    /// or if the point is known to be outside.
    pub fn new(
        store: Arc<dyn Store>,
        backup: &Manifest,
        point: Point,
        keys: Keys<'_>,
    ) -> Result<Self, ArchiveError> {
        let Some(from) = &backup.binlog else {
            return Err(ArchiveError::Point(
                "the backup does not say where it stands in the binlog: its server wrote none, so there is nothing to replay".into(),
            ));
        };
        let found = segments(&*store)?;
        let newest = match found.last() {
            Some(newest) => read_segment(&*store, newest, keys)?,
            None => return Err(missing(from, "nothing".into())),
        };
        let chosen = match Border::is_by_gtids(backup, &newest)? {
            true => chosen_by_gtids(&*store, backup, found, keys)?,
            false => chosen_by_place(&*store, backup, from, found, keys)?,
        };
        let Chosen { before, segments } = chosen;
        let (Some((_, first)), Some((_, last))) = (segments.first(), segments.last()) else {
            return Err(missing(from, "nothing".into()));
        };
        let border = Border::new(backup, from, first, last)?;
        let mut held_time = before.and_then(|segment| segment.last_commit);
        let mut begins = first.first.clone();
        if !border.is_gtids() {
            if first.first != *from {
                held_time = held_time.max(first.first_commit.filter(|_| first.transactions > 0));
            }
            begins.clone_from(from);
        }
        let plan = Self {
            store,
            created: backup.created.saturating_mul(1_000_000),
            held_time: held_time.unwrap_or(0),
            from: begins,
            border,
            held: backup.gtid.clone(),
            point,
            segments,
        };
        plan.check_point()?;
        plan.look(keys)?;
        Ok(plan)
    }

    /// From the border on, up to the point.
    pub(super) fn cut(&self) -> Cut {
        Cut::new(
            self.border.clone(),
            self.from.clone(),
            self.point.clone(),
            self.created,
        )
    }

    /// Whether the border is there, before hours are spent on restoring.
    fn look(&self, keys: Keys<'_>) -> Result<(), ArchiveError> {
        let mut cut = self.cut().looking();
        for (found, segment) in &self.segments {
            let name = &found.file.name;
            let file = self.store.open(name);
            let file = file.map_err(|source| failed(&*self.store, name, source))?;
            let of_stream = |source| ArchiveError::Stream {
                name: self.store.path(name).display().to_string(),
                source,
            };
            let stream = SealedStream::begin(file).map_err(of_stream)?;
            let key = keys(stream.header()).map_err(of_stream)?;
            let loads = AtomicBool::new(false);
            let mut filter = Filter::new(io::sink(), segment, &mut cut, &loads);
            let opened = stream.open(key, &mut filter, default_threads(), &Progress::new());
            let is_whole = filter.finish()?;
            match opened {
                Ok(_) if is_whole => {}
                Ok(_) | Err(StreamError::Write(_)) => {
                    return Err(ArchiveError::NotASegment(of_path(&*self.store, name)));
                }
                Err(error) => return Err(of_stream(error)),
            }
            if cut.is_reached() {
                return Ok(());
            }
        }
        cut.check_border()
    }

    /// A point that the archive does not hold is better refused now than after an hour.
    fn check_point(&self) -> Result<(), ArchiveError> {
        let outside = |what: &str| Err(ArchiveError::Point(what.into()));
        let (Some((_, first)), Some((_, last))) = (self.segments.first(), self.segments.last())
        else {
            return Ok(());
        };
        match &self.point {
            Point::Gtid(gtid) => {
                let knows = |text: &Option<String>| {
                    let text = text.as_deref()?;
                    let set = match gtid {
                        Gtid::MySql { .. } => GtidPosition::parse_mysql(text),
                        Gtid::MariaDb { .. } => GtidPosition::parse_mariadb(text),
                    };
                    Some(set.is_ok_and(|set| set.contains(gtid)))
                };
                if knows(&last.gtid_after) == Some(false) {
                    return outside(&format!("transaction {gtid} is not in the archive"));
                }
                if knows(&self.held) == Some(true) || knows(&first.gtid_before) == Some(true) {
                    return outside(&format!(
                        "transaction {gtid} was committed before the backup was made: restore an older backup"
                    ));
                }
            }
            Point::Place(place) => {
                if order_in_log(place) < order_in_log(&self.from) {
                    return outside(&format!(
                        "{} lies before the backup: restore an older backup",
                        place_text(place)
                    ));
                }
                if order_in_log(place) > order_in_log(&last.next) {
                    return outside(&format!(
                        "{} is not in the archive, which ends at {}",
                        place_text(place),
                        place_text(&last.next)
                    ));
                }
            }
            Point::Time(limit) => self.check_time(*limit)?,
            Point::End => {}
        }
        Ok(())
    }

    /// Nothing that the backup holds can be taken back, and what the archive does not reach cannot
    /// be known.
    fn check_time(&self, limit: u64) -> Result<(), ArchiveError> {
        if self.created == 0 {
            return Err(ArchiveError::Point(
                "the backup does not say when it was made: name a GTID or a place instead of a time".into(),
            ));
        }
        // It is noted in whole seconds.
        if limit < self.created + 1_000_000 {
            return Err(ArchiveError::Point(format!(
                "{} lies before the end of the backup, which was made at {}: restore an older backup, or name a GTID",
                time_text(limit),
                time_text(self.created)
            )));
        }
        check_held(self.held_time, limit)?;
        let latest = self.segments.iter().map(|(_, segment)| {
            let last = segment.last_commit.unwrap_or(0);
            last.max(u64::from(segment.file_created) * 1_000_000)
        });
        match latest.max().unwrap_or(0) {
            latest if latest < limit => Err(not_reached(latest, limit)),
            _ => Ok(()),
        }
    }

    /// Whether the archive is known to reach a time, although no transaction is as late: a file
    /// that begins then holds all that follows, and those before it all that came before.
    pub(super) fn has_file_since(&self, limit: u64) -> bool {
        let mut created = self
            .segments
            .iter()
            .map(|(_, segment)| segment.file_created);
        created.any(|created| u64::from(created) * 1_000_000 >= limit)
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }
}

/// The segments that are needed, and what the one before them says, if it is there: it tells a
/// time.
struct Chosen {
    before: Option<Segment>,
    segments: Vec<(Found, Segment)>,
}

fn missing(from: &BinlogPosition, found: String) -> ArchiveError {
    ArchiveError::Gap {
        after: format!("the backup, at {}", place_text(from)),
        found,
    }
}

fn of_path(store: &dyn Store, name: &str) -> String {
    store.path(name).display().to_string()
}

/// All segments from the one on in which the backup's place is.
fn chosen_by_place(
    store: &dyn Store,
    backup: &Manifest,
    from: &BinlogPosition,
    found: Vec<Found>,
    keys: Keys<'_>,
) -> Result<Chosen, ArchiveError> {
    let begins_before =
        |found: &Found| found.place.file == from.file && found.place.position <= from.position;
    let Some(first) = found.iter().rposition(begins_before) else {
        let found = found.first().map(|found| place_text(&found.place));
        return Err(missing(from, found.unwrap_or_default()));
    };
    // Not needed, and so it may be gone.
    let before = first.checked_sub(1).and_then(|place| found.get(place));
    let before = before.and_then(|found| read_segment(store, found, keys).ok());
    let segments = linked(store, found.into_iter().skip(first).collect(), keys)?;
    if let Some((_, segment)) = segments.first()
        && file_number(&segment.next.file) == file_number(&from.file)
        && segment.next.position < from.position
    {
        check_file(backup, segment)?;
        return Err(missing(from, place_text(&segment.next)));
    }
    Ok(Chosen { before, segments })
}

/// All segments from the last one on before which there is nothing that the backup does not hold.
fn chosen_by_gtids(
    store: &dyn Store,
    backup: &Manifest,
    found: Vec<Found>,
    keys: Keys<'_>,
) -> Result<Chosen, ArchiveError> {
    let mut segments = linked(store, found, keys)?;
    let may_begin = |(_, segment): &(Found, Segment)| Border::may_begin(backup, segment);
    let Some(first) = segments.iter().rposition(may_begin) else {
        let begins = segments
            .first()
            .and_then(|(_, first)| first.gtid_before.clone());
        return Err(ArchiveError::NoBorder(format!(
            "it is of another server than the backup, and begins behind the GTIDs {}, of which the backup, with {}, does not hold \
             all",
            begins.as_deref().unwrap_or("(unknown)"),
            backup.gtid.as_deref().unwrap_or("(none)")
        )));
    };
    let needed = segments.split_off(first);
    Ok(Chosen {
        before: segments.pop().map(|(_, segment)| segment),
        segments: needed,
    })
}

/// What segments say, which must follow each other.
fn linked(
    store: &dyn Store,
    found: Vec<Found>,
    keys: Keys<'_>,
) -> Result<Vec<(Found, Segment)>, ArchiveError> {
    let mut segments: Vec<(Found, Segment)> = Vec::new();
    for read in read_segments(store, found, keys) {
        let (found, segment) = read?;
        if let Some((_, before)) = segments.last() {
            check_link(before, &segment)?;
        }
        segments.push((found, segment));
    }
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{border, place, segment};
    use super::*;
    use crate::store::{Listed, LocalFolder};

    const SECOND: u64 = 1_000_000;

    #[test]
    fn a_time_lies_between_the_backup_and_the_end_of_the_archive() {
        let file = Listed {
            name: "x".into(),
            len: 0,
            state: None,
        };
        let found = Found {
            file,
            place: place(4),
        };
        let mut plan = Plan {
            store: Arc::new(LocalFolder::new("x")),
            segments: vec![(found, segment(None, "", "0-1-9"))],
            from: place(500),
            border: border(&Manifest::new("mariadb-backup"), &place(500)),
            held: None,
            created: 1000 * SECOND,
            held_time: 0,
            point: Point::End,
        };
        let refused = |plan: &Plan, limit: u64, text: &str| {
            let error = plan.check_time(limit * SECOND).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        };
        refused(&plan, 999, "before the end of the backup");
        // The backup may have been made at the end of that second.
        assert!(plan.check_time(1001 * SECOND - 1).is_err());
        assert!(plan.check_time(1001 * SECOND).is_ok());
        assert!(plan.check_time(2000 * SECOND).is_ok());
        refused(&plan, 2001, "it may lack transactions");
        plan.held_time = 1500 * SECOND;
        refused(&plan, 1500, "restore an older backup");
        // The next file shows that nothing came until then.
        plan.segments[0].1.file_created = 3000;
        assert!(plan.check_time(3000 * SECOND).is_ok() && plan.has_file_since(3000 * SECOND));
        refused(&plan, 3001, "it may lack transactions");
        plan.created = 0;
        refused(&plan, 2000, "name a GTID");
    }
}
