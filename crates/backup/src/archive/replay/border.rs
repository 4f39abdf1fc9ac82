//! The border between what a backup holds and what comes behind it.
//!
//! In the archive of the backup's own server it is the backup's place. A place alone proves
//! nothing: other servers have the same ones, and so has the same server when its log was begun
//! anew. So the file must be older than the backup, the place must be a border of transactions, and
//! the GTIDs up to there must be those of the backup.
//!
//! In the archive of another server, which has replicated from it, the place means nothing, and
//! GTIDs alone draw the border. MySQL's are a set. MariaDB's last one of each domain must be there
//! itself. Numbers that were given twice would draw it wrongly, so times are looked at as well.

use onionskin_rowstream::binlog::{
    Gtid, GtidPosition,
    event::{EventHead, GtidEvent},
};

use super::{
    origin::{Relation, check_range, parse, relation},
    times::time_text,
};
use crate::{
    Manifest,
    archive::{ArchiveError, Segment, folder::place_text},
    manifest::BinlogPosition,
};

const SECOND: u64 = 1_000_000;

/// How the border is found.
#[derive(Debug, Clone)]
enum Way {
    /// At the backup's place.
    Place {
        from: BinlogPosition,
        /// The archive is known to be of the backup's server.
        same: bool,
        passed: bool,
    },
    /// By GTIDs.
    Gtids,
}

/// Tells what the backup holds from what comes behind it.
#[derive(Debug, Clone)]
pub(super) struct Border {
    way: Way,
    /// What the backup holds.
    held: GtidPosition,
    /// What the archive has come to; its own words for what came before it.
    state: GtidPosition,
    /// What came before the first segment is known.
    complete: bool,
    /// Domains of MariaDB in which the backup's last transaction was found.
    found: Vec<u32>,
    /// When the backup was made, in microseconds since 1970.
    created: u64,
    server_id: u32,
    server_uuid: Option<String>,
    /// When the file that is being read was begun.
    file_created: u64,
}

/// What an event is to its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Its first event, or one of the file.
    Between,
    /// One that follows.
    Within,
}

/// The way out is in the error's own text.
fn unclear<T>(what: String) -> Result<T, ArchiveError> {
    Err(ArchiveError::NoBorder(what))
}

impl Border {
    /// Whether GTIDs alone can draw the border: the archive is of another server than the backup.
    pub(super) fn is_by_gtids(backup: &Manifest, segment: &Segment) -> Result<bool, ArchiveError> {
        let held = parse(segment, backup.gtid.as_deref().unwrap_or_default())?;
        let relation = relation(backup, segment)?;
        if is_empty(&held) && relation != Relation::Same {
            let why = match relation {
                Relation::Other => "the archive is of another server than the backup",
                _ => "the backup does not say which server it is of",
            };
            return unclear(format!(
                "{why}, and the backup has no GTIDs, which alone mean the same on two servers"
            ));
        }
        Ok(relation == Relation::Other)
    }

    /// The border of the segments that begin with `first`. `from` is the backup's place.
    pub(super) fn new(
        backup: &Manifest,
        from: &BinlogPosition,
        first: &Segment,
        last: &Segment,
    ) -> Result<Self, ArchiveError> {
        let by_gtids = Self::is_by_gtids(backup, first)?;
        let before = first.gtid_before.as_deref();
        let border = Self {
            way: match by_gtids {
                true => Way::Gtids,
                false => Way::Place {
                    from: from.clone(),
                    same: relation(backup, first)? == Relation::Same,
                    passed: false,
                },
            },
            held: parse(first, backup.gtid.as_deref().unwrap_or_default())?,
            state: parse(first, before.unwrap_or_default())?,
            complete: before.is_some(),
            found: Vec::new(),
            created: backup.created.saturating_mul(SECOND),
            server_id: first.server_id,
            server_uuid: first.server_uuid.clone(),
            file_created: 0,
        };
        match by_gtids {
            true => border.begin_by_gtids(last),
            false => {
                check_range(&border.held, first, last)?;
                check_file(backup, first)?;
                Ok(border)
            }
        }
    }

    /// Whether GTIDs draw it.
    pub(super) fn is_gtids(&self) -> bool {
        matches!(self.way, Way::Gtids)
    }

    /// Whether a segment may be the first that is read: nothing before it is behind the backup.
    pub(super) fn may_begin(backup: &Manifest, segment: &Segment) -> bool {
        let text = |text: &Option<String>| parse(segment, text.as_deref()?).ok();
        match (text(&backup.gtid), text(&segment.gtid_before)) {
            (Some(held), Some(before)) => held.covers(&before),
            _ => false,
        }
    }

    fn begin_by_gtids(mut self, last: &Segment) -> Result<Self, ArchiveError> {
        if let (GtidPosition::MariaDb(held), GtidPosition::MariaDb(before)) =
            (&self.held, &self.state)
        {
            for (domain, last) in before {
                if held.get(domain) == Some(last) {
                    self.found.push(*domain);
                }
            }
        }
        if let GtidPosition::MySql(_) = &self.held {
            self.check_sets(last)?;
        }
        Ok(self)
    }

    /// What the archived server was provisioned with is in no binlog of its own. The backup must
    /// hold that, and nothing that the server never had.
    fn check_sets(&self, last: &Segment) -> Result<(), ArchiveError> {
        let (Some(after), Some(purged)) = (&last.gtid_after, &last.gtid_purged) else {
            return unclear(
                "the archive is of another server than the backup, and does not say with which GTIDs that server was set up: \
                 its newest segment must be written by this version of onionskin"
                    .into(),
            );
        };
        let (after, purged) = (parse(last, after)?, parse(last, purged)?);
        if !union(&after, &self.held).covers(&purged) {
            return unclear(format!(
                "the archive's server was set up with the GTIDs {purged}, of which some are neither in the archive nor in the backup, \
                 which holds {}",
                self.held
            ));
        }
        if !union(&after, &purged).covers(&self.held) {
            return unclear(format!(
                "the backup holds {}, of which some never came to the archive's server, which has {}",
                self.held,
                union(&after, &purged)
            ));
        }
        Ok(())
    }

    /// A segment begins.
    pub(super) fn begin_segment(&mut self, segment: &Segment) -> Result<(), ArchiveError> {
        self.file_created = u64::from(segment.file_created) * SECOND;
        match &mut self.way {
            Way::Place { from, passed, .. } if !*passed && segment.first == *from => {
                *passed = true;
                self.check_state()
            }
            _ => Ok(()),
        }
    }

    /// An event of a file, which begins behind `place`.
    pub(super) fn pass(
        &mut self,
        place: &BinlogPosition,
        head: EventHead,
        part: Part,
    ) -> Result<(), ArchiveError> {
        let Way::Place { from, passed, .. } = &mut self.way else {
            return Ok(());
        };
        if *passed {
            return Ok(());
        }
        let end = head.behind(place.position);
        // Of what is not sent (what tells of encryption) the place shows in the next event.
        let begins = end.saturating_sub(head.size.into()).max(place.position);
        let before = place.file == from.file && end <= from.position;
        let at =
            place.file == from.file && (place.position == from.position || begins == from.position);
        match (at, before) {
            (true, _) if part == Part::Between => {
                *passed = true;
                self.check_state()
            }
            (false, true) => Ok(()),
            _ => {
                let from = place_text(from);
                unclear(format!(
                    "the backup ends at {from}, and in the archive no transaction ends there"
                ))
            }
        }
    }

    /// A segment has ended here; `next` is where its file goes on, or the next one.
    pub(super) fn end_segment(
        &mut self,
        place: &BinlogPosition,
        next: &BinlogPosition,
    ) -> Result<(), ArchiveError> {
        let Way::Place { from, passed, .. } = &mut self.way else {
            return Ok(());
        };
        if *passed || next.file == from.file && next.position < from.position {
            return Ok(());
        }
        if place == from || next == from {
            *passed = true;
            return self.check_state();
        }
        unclear(format!(
            "the backup ends at {}, and the archive's file ends at {}, before that",
            place_text(from),
            place_text(place)
        ))
    }

    /// At the backup's place: what came before it must be what the backup holds. MySQL's sets were
    /// compared one by one.
    fn check_state(&self) -> Result<(), ArchiveError> {
        let Way::Place { from, same, .. } = &self.way else {
            return Ok(());
        };
        let (GtidPosition::MariaDb(held), GtidPosition::MariaDb(state)) = (&self.held, &self.state)
        else {
            return Ok(());
        };
        let is_there = |(domain, last): (&u32, &(u32, u64))| match state.get(domain) {
            Some(there) => there == last,
            None => *same && !self.complete,
        };
        // What others committed mariadb-backup does not tell, if the server did not replicate it.
        let is_held = |(domain, (server, _)): (&u32, &(u32, u64))| {
            held.contains_key(domain) || *same && *server != self.server_id
        };
        match held.iter().all(is_there) && state.iter().all(is_held) {
            true => Ok(()),
            false => unclear(format!(
                "at {} the archive has come to the GTIDs {}, and the backup, which ends there, holds {}",
                place_text(from),
                shown(&self.state),
                shown(&self.held)
            )),
        }
    }

    /// Whether the backup holds the transaction that begins. `stamp` is the time that its head
    /// tells.
    pub(super) fn holds(&mut self, event: &GtidEvent, stamp: u64) -> Result<bool, ArchiveError> {
        let held = match (&self.way, &event.gtid) {
            (Way::Place { passed, .. }, None) => !passed,
            (Way::Place { from, passed, .. }, Some(gtid)) => {
                let held = self.has(gtid);
                // MariaDB's are compared at the place.
                let wrong = match gtid {
                    Gtid::MySql { .. } => held == *passed,
                    Gtid::MariaDb { .. } => held && *passed,
                };
                if wrong {
                    let (side, has) = match passed {
                        true => ("behind", "holds"),
                        false => ("before", "does not hold"),
                    };
                    return unclear(format!(
                        "{gtid} comes {side} {} in the archive, where the backup ends, and the backup {has} it",
                        place_text(from)
                    ));
                }
                !passed
            }
            (Way::Gtids, None) => {
                return unclear(
                    "the archive is of another server than the backup, and has transactions without GTIDs".into(),
                );
            }
            (Way::Gtids, Some(gtid @ Gtid::MySql { .. })) => {
                let held = self.held.contains(gtid);
                if held {
                    self.check_age(gtid, event.committed, stamp)?;
                }
                held
            }
            (Way::Gtids, Some(gtid @ Gtid::MariaDb { .. })) => {
                let gtid = gtid.clone();
                self.holds_of_domain(&gtid, stamp)?
            }
        };
        if let Some(gtid) = &event.gtid {
            self.state.add(gtid);
        }
        Ok(held)
    }

    /// Whether the backup holds this very one.
    fn has(&self, gtid: &Gtid) -> bool {
        match (&self.held, gtid) {
            (
                GtidPosition::MariaDb(held),
                Gtid::MariaDb {
                    domain,
                    server,
                    sequence,
                },
            ) => (held.get(domain)).is_some_and(|(by, last)| by == server && sequence <= last),
            (held, gtid) => held.contains(gtid),
        }
    }

    /// In another server's archive: a domain's transactions up to the backup's last one are in the
    /// backup, if they have one history. Their numbers say so, as long as they grow.
    fn holds_of_domain(&mut self, gtid: &Gtid, stamp: u64) -> Result<bool, ArchiveError> {
        let (
            Gtid::MariaDb {
                domain,
                server,
                sequence,
            },
            GtidPosition::MariaDb(held),
            GtidPosition::MariaDb(state),
        ) = (gtid, &self.held, &self.state)
        else {
            return unclear(format!("{gtid} is of another family"));
        };
        let Some((last_server, last)) = held.get(domain) else {
            return unclear(format!(
                "the archive is of another server than the backup, and {gtid} is of a domain of which the backup holds nothing"
            ));
        };
        let before = state.get(domain).map(|(_, before)| *before);
        if before.is_some_and(|before| before >= *sequence) {
            return unclear(format!(
                "in the archive {gtid} comes behind a transaction of the same domain with the number {}: the domain has more \
                 than one history",
                before.unwrap_or_default()
            ));
        }
        if self.found.contains(domain) {
            return Ok(false);
        }
        if sequence == last && server == last_server {
            self.check_age(gtid, None, stamp)?;
            self.found.push(*domain);
            return Ok(true);
        }
        // Whoever was set up from the backup begins right behind it.
        if self.complete && before.is_none() && *sequence == last + 1 {
            self.found.push(*domain);
            return Ok(false);
        }
        match sequence < last {
            true => Ok(true),
            false => unclear(format!(
                "the archive comes to {gtid}, and does not have {domain}-{last_server}-{last}, with which the backup ends"
            )),
        }
    }

    /// What the backup holds is older than it. Otherwise the number was given once more.
    fn check_age(
        &self,
        gtid: &Gtid,
        committed: Option<u64>,
        stamp: u64,
    ) -> Result<(), ArchiveError> {
        let own = match gtid {
            Gtid::MySql { .. } => {
                let source = gtid.to_string();
                (self.server_uuid.as_deref()).is_some_and(|own| source.starts_with(own))
            }
            Gtid::MariaDb { server, .. } => *server == self.server_id,
        };
        // On other servers it was committed again, and later.
        let time = committed.filter(|_| own).unwrap_or(stamp);
        let file = if own { self.file_created } else { 0 };
        if self.created == 0 || time.max(file) >= self.created + SECOND {
            return unclear(format!(
                "in the archive {gtid} is of {}, and the backup, which holds a transaction of this name, was made at {}: a server \
                 has begun its numbers anew",
                time_text(time.max(file)),
                time_text(self.created)
            ));
        }
        Ok(())
    }

    /// At the end of all that is replayed: whether the border was there.
    pub(super) fn finish(&self) -> Result<(), ArchiveError> {
        match (&self.way, &self.held) {
            (Way::Place { from, passed, .. }, _) if !passed => unclear(format!(
                "the backup ends at {}, which the archive does not reach",
                place_text(from)
            )),
            (Way::Gtids, GtidPosition::MariaDb(held)) => {
                match held.iter().find(|(domain, _)| !self.found.contains(domain)) {
                    None => Ok(()),
                    Some((domain, (server, last))) => unclear(format!(
                        "the archive does not come to {domain}-{server}-{last}, with which the backup ends"
                    )),
                }
            }
            _ => Ok(()),
        }
    }
}

/// A log that was begun anew has files of the same names.
pub(super) fn check_file(backup: &Manifest, first: &Segment) -> Result<(), ArchiveError> {
    let begun = u64::from(first.file_created);
    if backup.created > 0 && begun > backup.created {
        return unclear(format!(
            "the archive's {} was begun at {}, after the backup was made ({}): it is not the file that the backup names, so the \
             server's binlog was reset since, or is another server's",
            first.first.file,
            time_text(begun * SECOND),
            time_text(backup.created.saturating_mul(SECOND))
        ));
    }
    Ok(())
}

/// All of both sets of MySQL.
fn union(one: &GtidPosition, other: &GtidPosition) -> GtidPosition {
    let (GtidPosition::MySql(one), GtidPosition::MySql(other)) = (one, other) else {
        return one.clone();
    };
    let mut all = one.clone();
    for (source, intervals) in other {
        let merged = all.entry(source.clone()).or_default();
        merged.extend(intervals);
        merged.sort_unstable();
        // `dedup_by` gives the later one first.
        merged.dedup_by(|(from, to), (_, end)| {
            let meets = *from <= *end + 1;
            if meets {
                *end = (*end).max(*to);
            }
            meets
        });
    }
    GtidPosition::MySql(all)
}

fn is_empty(position: &GtidPosition) -> bool {
    match position {
        GtidPosition::MySql(set) => set.is_empty(),
        GtidPosition::MariaDb(domains) => domains.is_empty(),
    }
}

/// For messages.
fn shown(position: &GtidPosition) -> String {
    match is_empty(position) {
        true => "(none)".into(),
        false => position.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{place, segment};
    use super::*;
    use crate::manifest::Server;

    const ONE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const TWO: &str = "4e11fa47-71ca-11e1-9e33-c80aa9429562";

    /// Made at 1000 seconds, by the server with this id or UUID.
    fn backup(id: &str, gtid: &str) -> Manifest {
        let id_or_uuid = match id.parse() {
            Ok(id) => Server {
                server_id: Some(id),
                ..Server::new("mariadb", "10.11")
            },
            Err(_) => Server {
                uuid: (!id.is_empty()).then(|| id.to_owned()),
                ..Server::new("mysql", "9")
            },
        };
        Manifest {
            server: Some(id_or_uuid),
            gtid: (!gtid.is_empty()).then(|| gtid.to_owned()),
            created: 1000,
            ..Manifest::new("clone")
        }
    }

    fn event(gtid: &str) -> GtidEvent {
        GtidEvent {
            gtid: (!gtid.is_empty()).then(|| gtid.parse().unwrap()),
            committed: None,
            standalone: false,
            xa: false,
        }
    }

    /// The transactions that come behind the backup, or what was wrong. Each has 100 bytes; the
    /// first begins at 4.
    fn behind(
        backup: &Manifest,
        at: u64,
        segment: &Segment,
        all: &[&str],
    ) -> Result<String, String> {
        let text = |error: ArchiveError| error.to_string();
        let mut border = Border::new(backup, &place(at), segment, segment).map_err(text)?;
        border.begin_segment(segment).map_err(text)?;
        let mut wanted = Vec::new();
        for (n, gtid) in all.iter().enumerate() {
            let begins = 4 + 100 * n as u64;
            let part = |size: u32, end: u64| EventHead {
                timestamp: 0,
                kind: 0,
                server_id: 1,
                size,
                end: end as u32,
                flags: 0,
            };
            let first = part(40, begins + 40);
            border
                .pass(&place(begins), first, Part::Between)
                .map_err(text)?;
            if !border.holds(&event(gtid), 900 * SECOND).map_err(text)? {
                wanted.push(*gtid);
            }
            border
                .pass(&place(begins + 40), part(60, begins + 100), Part::Within)
                .map_err(text)?;
        }
        let end = place(4 + 100 * all.len() as u64);
        let next = BinlogPosition {
            file: "binlog.000002".into(),
            position: 4,
        };
        border.end_segment(&end, &next).map_err(text)?;
        border.finish().map_err(text)?;
        Ok(wanted.join(","))
    }

    fn refused(found: Result<String, String>, text: &str) {
        let error = found.unwrap_err();
        assert!(error.contains(text), "{text:?} is not in: {error}");
    }

    #[test]
    fn the_place_is_a_border_and_its_gtids_are_the_backups() {
        let log = segment(None, "", "0-1-3");
        let all = ["0-1-1", "0-1-2", "0-1-3"];
        let at = |place, gtid| behind(&backup("1", gtid), place, &log, &all);
        assert_eq!(at(204, "0-1-2").as_deref(), Ok("0-1-3"));
        assert_eq!(at(304, "0-1-3").as_deref(), Ok(""));
        assert_eq!(at(4, "").as_deref(), Ok("0-1-1,0-1-2,0-1-3"));
        refused(at(200, "0-1-2"), "no transaction ends there");
        refused(at(144, "0-1-2"), "no transaction ends there");
        refused(at(305, "0-1-3"), "before that");
        refused(at(204, "0-1-1"), "has come to the GTIDs 0-1-2");
        refused(at(104, "0-1-2"), "has come to the GTIDs 0-1-1");
        refused(at(204, ""), "has come to the GTIDs 0-1-2");
        // The same numbers, given anew.
        let anew = Segment {
            file_created: 1001,
            ..log.clone()
        };
        refused(
            behind(&backup("1", "0-1-2"), 204, &anew, &all),
            "was reset since",
        );
        // What others committed mariadb-backup does not tell, of a server that is known.
        let foreign = segment(None, "5-9-1", "0-1-3,5-9-1");
        let known = backup("1", "0-1-2");
        assert_eq!(behind(&known, 204, &foreign, &all).as_deref(), Ok("0-1-3"));
        let mut unknown = known;
        unknown.server = None;
        refused(
            behind(&unknown, 204, &foreign, &all),
            "has come to the GTIDs 0-1-2,5-9-1",
        );
        assert_eq!(behind(&unknown, 204, &log, &all).as_deref(), Ok("0-1-3"));
        unknown.gtid = None;
        refused(
            behind(&unknown, 204, &log, &all),
            "does not say which server",
        );

        let log = segment(Some(ONE), "", &format!("{ONE}:1-3"));
        let all = [1, 2, 3].map(|n| format!("{ONE}:{n}"));
        let all = all.each_ref().map(String::as_str);
        let at = |place, gtid: &str| behind(&backup(ONE, gtid), place, &log, &all);
        assert_eq!(at(204, &format!("{ONE}:1-2")).as_deref(), Ok(all[2]));
        refused(at(204, &format!("{ONE}:1")), "does not hold it");
        refused(at(104, &format!("{ONE}:1-2")), "comes behind");
    }

    #[test]
    fn in_another_servers_log_mariadbs_border_is_the_last_one_itself() {
        let find = |gtid: &str, before: &str, all: &[&str]| {
            let log = segment(None, before, "0-8-9");
            behind(&backup("7", gtid), 999_999, &log, all)
        };
        let all = ["0-7-4", "0-7-5", "0-8-6", "0-8-7"];
        assert_eq!(find("0-7-5", "", &all).as_deref(), Ok("0-8-6,0-8-7"));
        assert_eq!(
            find("0-7-3", "0-7-3", &all).as_deref(),
            Ok("0-7-4,0-7-5,0-8-6,0-8-7")
        );
        // A replica that was set up from this very backup.
        assert_eq!(
            find("0-7-3", "", &all).as_deref(),
            Ok("0-7-4,0-7-5,0-8-6,0-8-7")
        );
        refused(find("0-7-2", "", &all), "does not have 0-7-2");
        refused(find("0-7-6", "", &all), "does not have 0-7-6");
        refused(find("0-7-9", "", &all), "does not come to 0-7-9");
        refused(find("0-7-5,1-7-1", "", &all), "does not come to 1-7-1");
        refused(find("0-7-5", "", &["0-7-5", "1-8-1"]), "of a domain");
        refused(
            find("0-7-5", "", &["0-7-4", "0-8-4", "0-7-5"]),
            "more than one history",
        );
        refused(find("0-7-5", "", &["0-7-5", ""]), "without GTIDs");
        refused(find("", "", &all), "has no GTIDs");
        // A number that was given once more, by a server whose log is younger than the backup.
        let mut border = Border::new(
            &backup("7", "0-7-5"),
            &place(4),
            &segment(None, "", ""),
            &segment(None, "", ""),
        )
        .unwrap();
        let error = border.holds(&event("0-7-5"), 1001 * SECOND).unwrap_err();
        assert!(error.to_string().contains("numbers anew"), "{error}");
    }

    #[test]
    fn in_another_servers_log_mysqls_border_is_a_set() {
        let find = |gtid: &str, purged: Option<&str>, after: &str, all: &[&str]| {
            let text = |text: &str| text.replace("ONE", ONE).replace("TWO", TWO);
            let log = Segment {
                gtid_purged: purged.map(text),
                ..segment(Some(TWO), "", &text(after))
            };
            let all: Vec<String> = all.iter().map(|gtid| text(gtid)).collect();
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            let found = behind(&backup(ONE, &text(gtid)), 999_999, &log, &all);
            found.map(|found| found.replace(ONE, "ONE").replace(TWO, "TWO"))
        };
        let all = ["ONE:4", "ONE:5", "TWO:1"];
        let after = "ONE:4-5,TWO:1";
        let set_up = Some("ONE:1-3");
        assert_eq!(
            find("ONE:1-4", set_up, after, &all).as_deref(),
            Ok("ONE:5,TWO:1")
        );
        assert_eq!(
            find("ONE:1-3", set_up, after, &all).as_deref(),
            Ok("ONE:4,ONE:5,TWO:1")
        );
        refused(find("ONE:1-2", set_up, after, &all), "was set up with");
        refused(find("ONE:1-6", set_up, after, &all), "never came");
        refused(find("ONE:1-4", None, after, &all), "newest segment");
        refused(
            find("ONE:1-4", set_up, after, &["ONE:4", ""]),
            "without GTIDs",
        );
        refused(find("", set_up, after, &all), "has no GTIDs");
    }
}
