//! Which transactions are wanted.

use onionskin_rowstream::binlog::event::{EventHead, GtidEvent};

use super::{
    border::{Border, Part},
    point::{Done, Point, Replayed},
    times::{check_held, time_text},
};
use crate::{
    archive::{ArchiveError, Segment, folder::place_text, segment::order_in_log},
    manifest::BinlogPosition,
};

/// A transaction whose time is so much later than those of both its neighbours has another clock
/// than they.
const OTHER_CLOCK: u64 = 60_000_000;

/// Which transactions are wanted.
pub(super) struct Cut {
    border: Border,
    /// Only whether there is a border matters: nothing is taken.
    looking: bool,
    point: Point,
    replayed: Replayed,
    stopped: bool,
    /// The time of the last transaction before the border; of the backup, if there was none.
    before: u64,
    /// The latest time of the transactions that the backup holds.
    held: u64,
    /// The time of the first transaction behind the one that was left out.
    behind: Option<u64>,
}

impl Cut {
    /// Everything behind the border, up to the point. `from` is where the replay is said to begin,
    /// `before` the time of the backup.
    pub(super) fn new(border: Border, from: BinlogPosition, point: Point, before: u64) -> Self {
        Self {
            replayed: Replayed {
                transactions: 0,
                end: from,
                last: None,
                next: None,
            },
            border,
            looking: false,
            point,
            stopped: false,
            before,
            held: 0,
            behind: None,
        }
    }

    /// Only looks for the border.
    pub(super) fn looking(self) -> Self {
        Self {
            looking: true,
            ..self
        }
    }

    /// See [`Border::begin_segment`].
    pub(super) fn begin_segment(&mut self, segment: &Segment) -> Result<(), ArchiveError> {
        self.border.begin_segment(segment)
    }

    /// See [`Border::pass`]. What comes behind the point does not matter.
    pub(super) fn pass(
        &mut self,
        place: &BinlogPosition,
        head: EventHead,
        part: Part,
    ) -> Result<(), ArchiveError> {
        match self.stopped {
            true => Ok(()),
            false => self.border.pass(place, head, part),
        }
    }

    /// At the end of the replay: whether there was a border.
    pub(super) fn check_border(&self) -> Result<(), ArchiveError> {
        match self.looking && self.stopped {
            true => Ok(()),
            false => self.border.finish(),
        }
    }

    /// Whether the point was reached.
    pub(super) fn is_reached(&self) -> bool {
        self.stopped
    }

    /// The time of the last transaction before the border; of the backup, if there was none.
    pub(super) fn time_before(&self) -> u64 {
        self.before
    }

    /// What was taken ends here.
    pub(super) fn taken_to(&mut self, place: &BinlogPosition) {
        self.replayed.end.clone_from(place);
    }

    /// At the end of a segment: the transaction to stop behind may have been its last.
    pub(super) fn segment_ended(
        &mut self,
        place: &BinlogPosition,
        next: &BinlogPosition,
    ) -> Result<(), ArchiveError> {
        if !self.stopped {
            self.border.end_segment(place, next)?;
        }
        if let (Point::Gtid(wanted), Some(last)) = (&self.point, &self.replayed.last)
            && last.gtid.as_ref() == Some(wanted)
        {
            self.stopped = true;
        }
        Ok(())
    }

    /// What was replayed.
    pub(super) fn replayed(self) -> Replayed {
        self.replayed
    }

    /// Whether the transaction that begins here is wanted. `stamp` is the time of its first event,
    /// in microseconds as all times.
    pub(super) fn takes(
        &mut self,
        place: &BinlogPosition,
        event: &GtidEvent,
        stamp: u64,
    ) -> Result<bool, ArchiveError> {
        let time = event.committed.unwrap_or(stamp);
        if self.stopped {
            self.behind.get_or_insert(time);
            return Ok(false);
        }
        if self.border.holds(event, stamp)? {
            self.held = self.held.max(time);
            return match &self.point {
                Point::Place(limit) if order_in_log(place) >= order_in_log(limit) => {
                    Err(ArchiveError::Point(format!(
                        "{} lies before the end of the backup: restore an older backup",
                        place_text(limit)
                    )))
                }
                _ => Ok(false),
            };
        }
        if self.looking {
            self.stopped = true;
            return Ok(false);
        }
        let done = Done {
            gtid: event.gtid.clone(),
            time,
        };
        let before = match &self.point {
            Point::Time(limit) => time < *limit,
            Point::Place(limit) => order_in_log(place) < order_in_log(limit),
            Point::Gtid(gtid) => {
                self.replayed.last.as_ref().and_then(|d| d.gtid.as_ref()) != Some(gtid)
            }
            Point::End => true,
        };
        if !before {
            self.replayed.next = Some(done);
            self.stopped = true;
            return Ok(false);
        }
        self.replayed.transactions += 1;
        self.before = time;
        self.replayed.last = Some(done);
        Ok(true)
    }

    /// Whether nothing in later segments matters. A border by time wants to see what is behind it.
    pub(super) fn is_settled(&self) -> bool {
        self.stopped && (self.behind.is_some() || !matches!(self.point, Point::Time(_)))
    }

    /// Whether the border by time is where people think it is.
    pub(super) fn check_times(&self) -> Result<(), ArchiveError> {
        let Point::Time(limit) = self.point else {
            return Ok(());
        };
        check_held(self.held, limit)?;
        if let (Some(stop), Some(behind)) = (&self.replayed.next, self.behind)
            && behind < limit
            && stop.time > self.before.max(behind) + OTHER_CLOCK
        {
            let name = match &stop.gtid {
                Some(gtid) => format!("transaction {gtid}"),
                None => "a transaction".into(),
            };
            return Err(ArchiveError::Point(format!(
                "{name} says that it is of {}, but the next one is of {}: its session has set the time, or the clock was \
                 changed, so it is not clear where {} is: name a GTID or a place",
                time_text(stop.time),
                time_text(behind),
                time_text(limit)
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{border, place};
    use super::*;
    use crate::Manifest;
    use onionskin_rowstream::binlog::event::kind;

    const SECOND: u64 = 1_000_000;

    fn cut(limit: u64) -> Cut {
        let border = border(&Manifest::new("mariadb-backup"), &place(500));
        Cut::new(
            border,
            place(500),
            Point::Time(limit * SECOND),
            1000 * SECOND,
        )
    }

    /// Transactions by place and second, as far as they are taken.
    fn taken(cut: &mut Cut, all: &[(u64, u64)]) -> Vec<u64> {
        let mut event = GtidEvent {
            gtid: None,
            committed: None,
            standalone: false,
            xa: false,
        };
        let mut wanted = |(at, time): &&(u64, u64)| {
            event.committed = Some(time * SECOND);
            let head = EventHead {
                timestamp: 0,
                kind: kind::MARIA_GTID,
                server_id: 1,
                size: 100,
                end: *at as u32 + 100,
                flags: 0,
            };
            cut.pass(&place(*at), head, Part::Between).unwrap();
            cut.takes(&place(*at), &event, 0).unwrap()
        };
        all.iter()
            .filter(|one| wanted(one))
            .map(|(at, _)| *at)
            .collect()
    }

    #[test]
    fn a_time_is_a_border_only_where_it_is_one() {
        let mut plain = cut(1010);
        let all = [
            (400, 999),
            (500, 1005),
            (600, 1009),
            (700, 1010),
            (800, 1011),
        ];
        assert_eq!(taken(&mut plain, &all), [500, 600]);
        assert!(plain.is_settled() && plain.check_times().is_ok());
        // Long statements of MariaDB come behind shorter ones that began later.
        let mut long = cut(1010);
        taken(&mut long, &[(500, 1009), (600, 1010), (700, 1001)]);
        assert!(long.check_times().is_ok());
        // One session has set its time.
        let mut set = cut(1010);
        assert_eq!(taken(&mut set, &[(500, 1002), (600, 5000)]), [500]);
        assert!(!set.is_settled(), "the next segment tells");
        taken(&mut set, &[(700, 1003)]);
        let error = set.check_times().unwrap_err().to_string();
        assert!(error.contains("it is not clear"), "{error}");
        // The backup holds what came later.
        let mut late = cut(1010);
        taken(&mut late, &[(400, 1020), (500, 1005)]);
        let error = late.check_times().unwrap_err().to_string();
        assert!(error.contains("restore an older backup"), "{error}");
    }
}
