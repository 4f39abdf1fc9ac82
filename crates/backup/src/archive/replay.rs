//! From segments to a server: the transactions from where a backup ends up to a point in time.
//!
//! The server's own tools do what they are made for: `mariadb-binlog` or `mysqlbinlog` turns events into statements, with the
//! session settings that each needs, and the client sends them. They are not trusted with what to replay: the border is
//! drawn here, between two transactions of the opened segment, before the tool sees it. Nor are texts trusted because a server is
//! said to have written them: see [`statements`](super::statements). No opened segment is written to a file; it goes through pipes.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use chrono::DateTime;
use onionskin_rowstream::binlog::{
    Gtid, GtidPosition,
    compression::{Payload, decompress_mariadb},
    event::{EventHead, FormatDescription, GtidEvent, HEAD, MAGIC, Query, kind},
};

use super::{
    ArchiveError, Segment,
    folder::{Found, Keys, check_link, place_text, read_segment, segments},
    segment::file_number,
    statements::{Author, check},
};
use crate::{Manifest, Progress, SealedStream, StreamError, manifest::BinlogPosition};

/// Where to stop.
#[derive(Debug, Clone, PartialEq)]
pub enum Point {
    /// Before the first transaction that was committed at this time or later; microseconds since 1970.
    Time(u64),
    /// Behind this transaction.
    Gtid(Gtid),
    /// Before the first transaction that begins at this place or later.
    Place(BinlogPosition),
    /// At the end of the archive.
    End,
}

/// What was replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// How many transactions.
    pub transactions: u64,
    /// Where the last of them ends; the beginning if there was none.
    pub end: BinlogPosition,
    /// The last of them.
    pub last: Option<Done>,
    /// The first that was left out. `None` at the end of the archive.
    pub next: Option<Done>,
}

/// A transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Its identity, where the server gives one.
    pub gtid: Option<Gtid>,
    /// When it was committed, in microseconds since 1970.
    pub time: u64,
}

/// The segments that are needed, in order and without gaps.
pub struct Plan {
    segments: Vec<(Found, Segment)>,
    from: BinlogPosition,
    /// What the backup holds already, if known.
    held: Option<String>,
    /// When the backup was made, in microseconds since 1970; 0 if that is not known.
    created: u64,
    /// The latest time known of a transaction that the backup holds.
    held_time: u64,
    point: Point,
}

/// A transaction whose time is so much later than those of both its neighbours has another clock than they.
const OTHER_CLOCK: u64 = 60_000_000;

impl Plan {
    /// Finds the segments from where the backup stands in the binlog; an error if some are missing, or if the point is
    /// known to be outside.
    pub fn new(
        folder: &Path,
        backup: &Manifest,
        point: Point,
        keys: Keys<'_>,
    ) -> Result<Self, ArchiveError> {
        let Some(from) = &backup.binlog else {
            return Err(ArchiveError::Point(
                "the backup does not say where it stands in the binlog: its server wrote none, so there is nothing to replay".into(),
            ));
        };
        let number = file_number(&from.file);
        let found = segments(folder)?;
        let begins_before =
            |found: &Found| found.place.file == from.file && found.place.position <= from.position;
        let missing = |found: String| {
            Err(ArchiveError::Gap {
                after: format!("the backup, at {}", place_text(from)),
                found,
            })
        };
        let Some(first) = found.iter().rposition(begins_before) else {
            return missing(match found.first() {
                Some(found) => place_text(&found.place),
                None => "nothing".into(),
            });
        };
        // Not needed, and so it may be gone; if it is there, it tells a time.
        let before = first.checked_sub(1).and_then(|place| found.get(place));
        let before = before.and_then(|found| read_segment(found, keys).ok());
        let mut segments: Vec<(Found, Segment)> = Vec::new();
        for found in found.into_iter().skip(first) {
            let segment = read_segment(&found, keys)?;
            if let Some((_, before)) = segments.last() {
                check_link(before, &segment)?;
            }
            segments.push((found, segment));
        }
        if let Some((_, segment)) = segments.first()
            && file_number(&segment.next.file) == number
            && segment.next.position < from.position
        {
            return missing(place_text(&segment.next));
        }
        let mut held_time = before.and_then(|segment| segment.last_commit);
        if let (Some((_, first)), Some((_, last))) = (segments.first(), segments.last()) {
            check_origin(backup, first, last)?;
            if first.first != *from {
                held_time = held_time.max(first.first_commit.filter(|_| first.transactions > 0));
            }
        }
        let plan = Self {
            segments,
            created: backup.created.saturating_mul(1_000_000),
            held_time: held_time.unwrap_or(0),
            from: from.clone(),
            held: backup.gtid.clone(),
            point,
        };
        plan.check_point()?;
        Ok(plan)
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
                let key = |place: &BinlogPosition| (file_number(&place.file), place.position);
                if key(place) < key(&self.from) {
                    return outside(&format!(
                        "{} lies before the backup: restore an older backup",
                        place_text(place)
                    ));
                }
                if key(place) > key(&last.next) {
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

    /// Nothing that the backup holds can be taken back, and what the archive does not reach cannot be known.
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

    /// Whether the archive is known to reach a time, although no transaction is as late: a file that begins then holds all
    /// that follows, and those before it all that came before.
    fn has_file_since(&self, limit: u64) -> bool {
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

    /// Replays into the client, which must read statements from its standard input and end with an error at the first that
    /// fails. `tool` must read a binlog from its standard input. `loads` becomes true before the tool gets a file of LOAD DATA.
    pub fn run(
        &self,
        keys: Keys<'_>,
        tool: &dyn Fn() -> Command,
        mut client: Command,
        threads: usize,
        loads: &AtomicBool,
    ) -> Result<Replayed, ArchiveError> {
        let name = client.get_program().to_string_lossy().into_owned();
        let failed = |what: String| ArchiveError::Point(format!("{name} {what}"));
        let mut child = client
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| failed(format!("cannot be started: {error}")))?;
        let Some(mut input) = child.stdin.take() else {
            return Err(failed("has no standard input".into()));
        };
        // In accounts' definitions: without this the server refuses them, because it did not ask for a password.
        let mut result = input.write_all(b"FLUSH PRIVILEGES;\n").map_err(|_| ());
        let mut cut = Cut {
            from: self.from.clone(),
            point: self.point.clone(),
            replayed: Replayed {
                transactions: 0,
                end: self.from.clone(),
                last: None,
                next: None,
            },
            stopped: false,
            before: self.created,
            held: 0,
            behind: None,
            refused: None,
            loads: Some(loads),
        };
        let mut error = None;
        for (found, segment) in &self.segments {
            if cut.is_settled() || result.is_err() {
                break;
            }
            match one(found, segment, keys, tool, &mut input, &mut cut, threads) {
                Ok(true) => {
                    if let Err(refused) = cut.check_times() {
                        error = Some(refused);
                        break;
                    }
                }
                Ok(false) => result = Err(()),
                Err(failure) => {
                    error = Some(failure);
                    break;
                }
            }
        }
        drop(input);
        let status = child.wait();
        if let Some(error) = error {
            return Err(error);
        }
        match status {
            Ok(status) if status.success() && result.is_ok() => {}
            Ok(status) => return Err(failed(format!("ended with {status}: see above"))),
            Err(error) => return Err(failed(format!("cannot be waited for: {error}"))),
        }
        if let Point::Gtid(gtid) = &self.point
            && !cut.stopped
        {
            return Err(ArchiveError::Point(format!(
                "transaction {gtid} is not in the archive behind the backup"
            )));
        }
        if let Point::Time(limit) = self.point
            && !cut.stopped
            && !self.has_file_since(limit)
        {
            return Err(not_reached(cut.before, limit));
        }
        Ok(cut.replayed)
    }
}

/// Whether the archive continues this backup. Positions alone do not say so: every server begins with the same ones.
fn check_origin(backup: &Manifest, first: &Segment, last: &Segment) -> Result<(), ArchiveError> {
    let other = |what: String| Err(ArchiveError::OtherBackup(what));
    let family = match first.server_uuid {
        Some(_) => "mysql",
        None => "mariadb",
    };
    if let Some(server) = &backup.server {
        if server.family != family {
            return other(format!(
                "the one is of {family}, the other of {}",
                server.family
            ));
        }
        if let (Some(archived), Some(uuid)) = (&first.server_uuid, &server.uuid)
            && archived != uuid
        {
            return other(format!(
                "the one is of server {archived}, the other of {uuid}"
            ));
        }
    }
    let Some(held) = &backup.gtid else {
        return Ok(());
    };
    let parse = |text: &str| match first.server_uuid {
        Some(_) => GtidPosition::parse_mysql(text),
        None => GtidPosition::parse_mariadb(text),
    };
    let reaches = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(before) = reaches(&first.gtid_before)
        && !holds(&parse(held)?, &parse(&before)?, None)
    {
        return other(format!(
            "the archive begins behind the GTIDs {before}, and the backup holds {held}"
        ));
    }
    if let Some(after) = reaches(&last.gtid_after)
        && !holds(&parse(&after)?, &parse(held)?, first.server_uuid.as_deref())
    {
        return other(format!(
            "the archive holds GTIDs up to {after}, and the backup holds {held}"
        ));
    }
    Ok(())
}

/// Whether all of `inner` is in `outer`. `own` is the UUID of the MySQL server that alone matters: what others committed may be
/// known to a server, by its own cloning for example, without being in its binlog.
fn holds(outer: &GtidPosition, inner: &GtidPosition, own: Option<&str>) -> bool {
    match (outer, inner) {
        (GtidPosition::MySql(outer), GtidPosition::MySql(inner)) => {
            let own: Option<String> = own.map(|own| own.replace('-', "").to_ascii_lowercase());
            let matters = |uuid: &[u8; 16]| {
                let text: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
                own.as_ref().is_none_or(|own| *own == text)
            };
            let within = |source, (from, to): &(u64, u64)| {
                let all: Option<&Vec<(u64, u64)>> = outer.get(source);
                all.is_some_and(|all| all.iter().any(|(a, b)| a <= from && to <= b))
            };
            inner
                .iter()
                .filter(|((uuid, _), _)| matters(uuid))
                .all(|(source, intervals)| intervals.iter().all(|part| within(source, part)))
        }
        (outer, GtidPosition::MariaDb(inner)) => {
            inner.iter().all(|(domain, (server, sequence))| {
                outer.contains(&Gtid::MariaDb {
                    domain: *domain,
                    server: *server,
                    sequence: *sequence,
                })
            })
        }
        _ => false,
    }
}

/// What the backup holds already ends before the time.
fn check_held(held: u64, limit: u64) -> Result<(), ArchiveError> {
    match held < limit {
        true => Ok(()),
        false => Err(ArchiveError::Point(format!(
            "the backup holds a transaction of {}, which is not before {}: restore an older backup, or name a GTID",
            time_text(held),
            time_text(limit)
        ))),
    }
}

fn not_reached(latest: u64, limit: u64) -> ArchiveError {
    ArchiveError::Point(format!(
        "the archive reaches {}, so it may lack transactions before {}: archive what the server has written since (after \
         FLUSH BINARY LOGS the archive knows that it has come so far), or restore all that there is, without --until",
        time_text(latest),
        time_text(limit)
    ))
}

/// In UTC.
fn time_text(micros: u64) -> String {
    i64::try_from(micros)
        .ok()
        .and_then(DateTime::from_timestamp_micros)
        .map_or_else(|| "an unknown time".into(), |time| time.to_string())
}

/// Replays one segment; false if the client takes no more.
fn one(
    found: &Found,
    segment: &Segment,
    keys: Keys<'_>,
    tool: &dyn Fn() -> Command,
    client: &mut (impl Write + Send),
    cut: &mut Cut<'_>,
    threads: usize,
) -> Result<bool, ArchiveError> {
    let name = found.path.display().to_string();
    let of_stream = |source: StreamError| ArchiveError::Stream {
        name: name.clone(),
        source,
    };
    let file = File::open(&found.path).map_err(|source| ArchiveError::File {
        path: found.path.clone(),
        source,
    })?;
    let stream = SealedStream::begin(file).map_err(of_stream)?;
    let key = keys(stream.header()).map_err(of_stream)?;
    let mut command = tool();
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |what: String| ArchiveError::Point(format!("{program} {what}"));
    let mut child: Child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    let (Some(input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed("has no standard input and output".into()));
    };
    let (opened, taken) = thread::scope(|scope| {
        let copied = scope.spawn(move || io::copy(&mut output, client));
        let mut filter = Filter::new(input, segment, cut);
        let opened = stream.open(key, &mut filter, threads, &Progress::new());
        let whole = filter.finish();
        // Or else the tool waits for more, and the thread for the tool.
        drop(filter);
        (opened.map(|_| whole), copied.join())
    });
    let status = child.wait();
    let taken = matches!(taken, Ok(Ok(_)));
    if let Some(refused) = cut.refused.take() {
        return Err(refused);
    }
    match (opened, status) {
        // A broken pipe is the failure of those behind it.
        (Err(StreamError::Write(error)), _) if error.kind() != io::ErrorKind::InvalidData => {
            match taken {
                true => Err(failed(
                    "does not read its input to the end: see above".into(),
                )),
                false => Ok(false),
            }
        }
        (Err(StreamError::Write(_)) | Ok(false), _) => Err(ArchiveError::NotASegment(name)),
        (Err(error), _) => Err(of_stream(error)),
        (Ok(true), Ok(status)) if !status.success() && taken => {
            Err(failed(format!("ended with {status}: see above")))
        }
        (Ok(true), Ok(_)) => Ok(taken),
        (Ok(true), Err(error)) => Err(failed(format!("cannot be waited for: {error}"))),
    }
}

/// Which transactions are wanted.
struct Cut<'a> {
    from: BinlogPosition,
    point: Point,
    replayed: Replayed,
    stopped: bool,
    /// The time of the last transaction before the border; of the backup, if there was none.
    before: u64,
    /// The latest time of the transactions that the backup holds.
    held: u64,
    /// The time of the first transaction behind the one that was left out.
    behind: Option<u64>,
    /// What is not replayed, whoever wants it.
    refused: Option<ArchiveError>,
    /// Told when the tool gets a file of LOAD DATA.
    loads: Option<&'a AtomicBool>,
}

impl Cut<'_> {
    /// Whether the transaction that begins here is wanted.
    fn takes(&mut self, place: &BinlogPosition, event: &GtidEvent, time: u64) -> bool {
        let key = |place: &BinlogPosition| (file_number(&place.file), place.position);
        if self.stopped {
            self.behind.get_or_insert(time);
            return false;
        }
        if key(place) < key(&self.from) {
            self.held = self.held.max(time);
            return false;
        }
        let done = Done {
            gtid: event.gtid.clone(),
            time,
        };
        let before = match &self.point {
            Point::Time(limit) => time < *limit,
            Point::Place(limit) => key(place) < key(limit),
            Point::Gtid(gtid) => {
                self.replayed.last.as_ref().and_then(|d| d.gtid.as_ref()) != Some(gtid)
            }
            Point::End => true,
        };
        if !before {
            self.replayed.next = Some(done);
            self.stopped = true;
            return false;
        }
        self.replayed.transactions += 1;
        self.before = time;
        self.replayed.last = Some(done);
        true
    }
}

impl Cut<'_> {
    /// Whether nothing in later segments matters. A border by time wants to see what is behind it.
    fn is_settled(&self) -> bool {
        self.stopped && (self.behind.is_some() || !matches!(self.point, Point::Time(_)))
    }

    /// Whether the border by time is where people think it is.
    fn check_times(&self) -> Result<(), ArchiveError> {
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

/// Reads a segment as it is opened, and hands on the wanted transactions as a binlog file.
struct Filter<'a, 'b, W: Write> {
    out: W,
    cut: &'a mut Cut<'b>,
    place: BinlogPosition,
    /// Where the transaction that is being read begins.
    begun: BinlogPosition,
    /// Bytes of an event that is not whole yet.
    event: Vec<u8>,
    magic: bool,
    checksums: bool,
    /// The transaction that is being read is wanted.
    taking: bool,
}

fn malformed(_: impl std::fmt::Display) -> io::Error {
    io::ErrorKind::InvalidData.into()
}

impl<'a, 'b, W: Write> Filter<'a, 'b, W> {
    fn new(out: W, segment: &Segment, cut: &'a mut Cut<'b>) -> Self {
        Self {
            out,
            cut,
            place: segment.first.clone(),
            begun: segment.first.clone(),
            event: Vec::new(),
            magic: false,
            checksums: false,
            taking: false,
        }
    }

    /// Whether the segment ended with a whole event.
    fn finish(&mut self) -> bool {
        // A transaction that was taken to the last event of the segment.
        if let (Point::Gtid(wanted), Some(last)) = (&self.cut.point, &self.cut.replayed.last)
            && last.gtid.as_ref() == Some(wanted)
        {
            self.cut.stopped = true;
        }
        self.magic && self.event.is_empty() && self.out.flush().is_ok()
    }

    fn whole_event(&mut self, event: &[u8]) -> io::Result<()> {
        let head = EventHead::decode(event).map_err(malformed)?;
        let checksum = if self.checksums { 4 } else { 0 };
        let body = event
            .get(HEAD..event.len().saturating_sub(checksum))
            .ok_or_else(|| malformed(""))?;
        let gtid = match head.kind {
            kind::FORMAT_DESCRIPTION => {
                self.checksums = FormatDescription::decode(event)
                    .map_err(malformed)?
                    .checksums;
                if self.place.position == 4 {
                    self.place.position = head.end.into();
                }
                return self.out.write_all(event);
            }
            kind::GTID => GtidEvent::decode_mysql(body, false),
            kind::ANONYMOUS_GTID => GtidEvent::decode_mysql(body, true),
            kind::GTID_TAGGED => GtidEvent::decode_tagged(body),
            kind::MARIA_GTID => GtidEvent::decode_mariadb(body, head.server_id),
            // What belongs to the file, not to its transactions.
            kind::ROTATE
            | kind::STOP
            | kind::PREVIOUS_GTIDS
            | kind::MARIA_GTID_LIST
            | kind::MARIA_BINLOG_CHECKPOINT => {
                self.taking = false;
                self.go_on(head);
                return Ok(());
            }
            _ => {
                if self.taking
                    && let Err(what) = self.check_texts(head.kind, body, false)
                {
                    self.cut.refused = Some(ArchiveError::Refused {
                        place: place_text(&self.place),
                        what,
                        until: place_text(&self.begun),
                    });
                    return Err(malformed(""));
                }
                self.go_on(head);
                if self.taking {
                    self.cut.replayed.end = self.place.clone();
                    self.out.write_all(event)?;
                }
                return Ok(());
            }
        };
        let gtid = gtid.map_err(malformed)?;
        let time = gtid
            .committed
            .unwrap_or(u64::from(head.timestamp) * 1_000_000);
        self.begun = self.place.clone();
        self.taking = self.cut.takes(&self.place, &gtid, time);
        self.go_on(head);
        match self.taking {
            true => self.out.write_all(event),
            false => Ok(()),
        }
    }

    /// Whether the texts of an event are those of a server; what they are if not. A text that cannot be read is none.
    fn check_texts(&self, kind: u8, body: &[u8], inner: bool) -> Result<(), String> {
        // Of LOAD DATA before MySQL 5.0.3.
        const OLD_LOADS: [u8; 4] = [6, 8, 10, 12];
        const LOADS: [u8; 4] = [
            kind::BEGIN_LOAD_QUERY,
            kind::APPEND_BLOCK,
            kind::DELETE_FILE,
            kind::EXECUTE_LOAD_QUERY,
        ];
        let closed = |what: &str| format!("{what} that cannot be opened");
        if LOADS.contains(&kind)
            && let Some(loads) = self.cut.loads
        {
            loads.store(true, Ordering::SeqCst);
        }
        match kind {
            kind::QUERY | kind::EXECUTE_LOAD_QUERY => {
                let load = kind == kind::EXECUTE_LOAD_QUERY;
                let query = Query::decode(body, load).map_err(|_| closed("a statement"))?;
                let author = match load {
                    true => Author::Load,
                    false => Author::Binlog,
                };
                check(query.sql, author)
            }
            kind::MARIA_QUERY_COMPRESSED => {
                let closed = |_| closed("a compressed statement");
                let query = Query::decode(body, false).map_err(closed)?;
                check(
                    &decompress_mariadb(query.sql).map_err(closed)?,
                    Author::Binlog,
                )
            }
            kind::TRANSACTION_PAYLOAD if !inner => {
                let closed = |_| closed("a compressed transaction");
                let mut payload = Payload::begin(body).map_err(closed)?;
                let mut event = Vec::new();
                while payload.next_event(&mut event).map_err(closed)? {
                    let head = EventHead::decode(&event).map_err(closed)?;
                    self.check_texts(head.kind, &event[HEAD..], true)?;
                }
                Ok(())
            }
            kind::TRANSACTION_PAYLOAD => Err("a compressed transaction in another".into()),
            kind if OLD_LOADS.contains(&kind) => Err(format!(
                "an event of type {kind}, which only very old servers wrote,"
            )),
            _ => Ok(()),
        }
    }

    fn go_on(&mut self, head: EventHead) {
        self.place.position = head.behind(self.place.position);
    }
}

impl<W: Write> Write for Filter<'_, '_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let wanted = match (self.magic, self.event.get(9..13)) {
                (false, _) => MAGIC.len(),
                (true, None) => HEAD,
                (true, Some(size)) => {
                    let size = u32::from_le_bytes(size.try_into().map_err(malformed)?) as usize;
                    if !(HEAD..=1 << 30).contains(&size) {
                        return Err(malformed(""));
                    }
                    size
                }
            };
            let missing = wanted.saturating_sub(self.event.len());
            let part = rest.len().min(missing);
            self.event.extend_from_slice(&rest[..part]);
            rest = &rest[part..];
            if self.event.len() < wanted || self.magic && wanted == HEAD && self.grows() {
                continue;
            }
            let event = std::mem::take(&mut self.event);
            if self.magic {
                self.whole_event(&event)?;
            } else if event == MAGIC {
                self.magic = true;
                self.out.write_all(&event)?;
            } else {
                return Err(malformed(""));
            }
            // Its room is used again.
            self.event = event;
            self.event.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Filter<'_, '_, W> {
    /// Whether the head that is there announces a body.
    fn grows(&self) -> bool {
        let size = self.event.get(9..13).and_then(|size| size.try_into().ok());
        size.map(u32::from_le_bytes) != Some(HEAD as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Server;

    const SECOND: u64 = 1_000_000;
    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const OTHER: &str = "4e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn place(position: u64) -> BinlogPosition {
        BinlogPosition {
            file: "binlog.000001".into(),
            position,
        }
    }

    fn segment(uuid: Option<&str>, before: &str, after: &str) -> Segment {
        Segment {
            server_id: 1,
            server_uuid: uuid.map(str::to_owned),
            first: place(4),
            next: place(1000),
            file_created: 900,
            gtid_before: Some(before.into()),
            gtid_after: Some(after.into()),
            transactions: 9,
            first_commit: Some(950 * SECOND),
            last_commit: Some(2000 * SECOND),
        }
    }

    fn cut(limit: u64) -> Cut<'static> {
        Cut {
            from: place(500),
            point: Point::Time(limit * SECOND),
            replayed: Replayed {
                transactions: 0,
                end: place(500),
                last: None,
                next: None,
            },
            stopped: false,
            before: 1000 * SECOND,
            held: 0,
            behind: None,
            refused: None,
            loads: None,
        }
    }

    /// Transactions by place and second, as far as they are taken.
    fn taken(cut: &mut Cut<'_>, all: &[(u64, u64)]) -> Vec<u64> {
        let event = GtidEvent {
            gtid: None,
            committed: None,
            standalone: false,
            xa: false,
        };
        let wanted = |(at, time): &&(u64, u64)| cut.takes(&place(*at), &event, time * SECOND);
        all.iter().filter(wanted).map(|(at, _)| *at).collect()
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

    #[test]
    fn a_time_lies_between_the_backup_and_the_end_of_the_archive() {
        let found = Found {
            path: "x".into(),
            place: place(4),
        };
        let mut plan = Plan {
            segments: vec![(found, segment(None, "", "0-1-9"))],
            from: place(500),
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

    #[test]
    fn a_backup_and_an_archive_are_of_one_server() {
        let backup = |family: &str, uuid: Option<&str>, gtid: &str| Manifest {
            server: Some(Server {
                uuid: uuid.map(str::to_owned),
                ..Server::new(family, "9")
            }),
            gtid: (!gtid.is_empty()).then(|| gtid.into()),
            ..Manifest::new("clone")
        };
        let check = |backup: &Manifest, segment: &Segment| {
            check_origin(backup, segment, segment).map_err(|error| error.to_string())
        };
        let mysql = segment(
            Some(UUID),
            &format!("{UUID}:1-5"),
            &format!("{UUID}:1-20,{OTHER}:7-8"),
        );
        for (uuid, gtid) in [
            (Some(UUID), format!("{UUID}:1-7")),
            (None, format!("{UUID}:1-20")),
            // What it was provisioned with is in no binlog.
            (None, format!("{UUID}:1-7,{OTHER}:1-8")),
            (None, String::new()),
        ] {
            check(&backup("mysql", uuid, &gtid), &mysql).unwrap();
        }
        for (family, uuid, gtid) in [
            ("mariadb", None, String::new()),
            ("mysql", Some(OTHER), format!("{UUID}:1-7")),
            ("mysql", None, format!("{UUID}:1-4")),
            ("mysql", None, format!("{UUID}:1-21")),
            ("mysql", None, format!("{OTHER}:1-7")),
        ] {
            let error = check(&backup(family, uuid, &gtid), &mysql).unwrap_err();
            assert!(error.contains("not of the server"), "{error}");
        }
        let maria = segment(None, "0-1-5", "0-1-20,3-1-2");
        for gtid in ["0-1-5", "0-1-20", "0-1-7,3-1-1"] {
            check(&backup("mariadb", None, gtid), &maria).unwrap();
        }
        for gtid in ["0-1-4", "0-1-21", "1-1-7", "0-1-7,4-1-1"] {
            check(&backup("mariadb", None, gtid), &maria).unwrap_err();
        }
        check(&backup("mysql", None, ""), &maria).unwrap_err();
    }

    /// An event without a checksum.
    fn event(kind: u8, body: &[u8]) -> Vec<u8> {
        let size = (HEAD + body.len()) as u32;
        let mut event = vec![0, 0, 0, 0, kind, 1, 0, 0, 0];
        event.extend_from_slice(&size.to_le_bytes());
        event.extend_from_slice(&[0; 6]);
        event.extend_from_slice(body);
        event
    }

    fn query(text: &[u8]) -> Vec<u8> {
        let mut body = vec![0; 8];
        body.extend_from_slice(&[3, 0, 0, 0, 0]);
        body.extend_from_slice(b"app\0");
        body.extend_from_slice(text);
        body
    }

    /// What is said of an event.
    fn said(kind: u8, body: &[u8]) -> Result<(), String> {
        let mut cut = cut(1010);
        let filter = Filter::new(Vec::new(), &segment(None, "", ""), &mut cut);
        filter.check_texts(kind, body, false)
    }

    #[test]
    fn texts_are_looked_at_in_events_of_every_kind() {
        let good = b"INSERT INTO t VALUES (1)";
        let bad = b"SET GLOBAL general_log_file='/x'";
        let compressed = |text: &[u8]| {
            let mut packed = vec![0x81, u8::try_from(text.len()).unwrap()];
            // A zlib stream of one stored block.
            packed.extend_from_slice(&[0x78, 0x01, 0x01]);
            let length = u16::try_from(text.len()).unwrap();
            packed.extend_from_slice(&length.to_le_bytes());
            packed.extend_from_slice(&(!length).to_le_bytes());
            packed.extend_from_slice(text);
            let (mut a, mut b) = (1u32, 0u32);
            for byte in text {
                a = (a + u32::from(*byte)) % 65521;
                b = (b + a) % 65521;
            }
            packed.extend_from_slice(&(b << 16 | a).to_be_bytes());
            packed
        };
        let payload = |events: &[u8]| {
            let packed = zstd::encode_all(events, 3).unwrap();
            let mut body = vec![2, 1, 0, 1, 1, u8::try_from(packed.len()).unwrap(), 0];
            body.extend_from_slice(&packed);
            body
        };
        for (text, is_good) in [(&good[..], true), (bad, false)] {
            let whole = query(text);
            let packed = query(&compressed(text));
            let inside = payload(
                &[
                    event(kind::QUERY, &query(b"BEGIN")),
                    event(kind::QUERY, &whole),
                ]
                .concat(),
            );
            for (kind, body) in [
                (kind::QUERY, &whole),
                (kind::MARIA_QUERY_COMPRESSED, &packed),
                (kind::TRANSACTION_PAYLOAD, &inside),
            ] {
                let said = said(kind, body);
                assert_eq!(said.is_ok(), is_good, "{kind}: {said:?}");
                assert!(is_good || said.unwrap_err().contains("SET GLOBAL"));
            }
        }
        for (kind, body) in [
            (kind::QUERY, vec![0; 5]),
            (kind::MARIA_QUERY_COMPRESSED, query(good)),
            (kind::TRANSACTION_PAYLOAD, vec![0, 1, 2]),
            (
                kind::TRANSACTION_PAYLOAD,
                payload(&event(kind::QUERY, &[])[..HEAD - 1]),
            ),
            (
                kind::TRANSACTION_PAYLOAD,
                payload(&event(kind::TRANSACTION_PAYLOAD, &payload(b""))),
            ),
            (6, Vec::new()),
        ] {
            assert!(said(kind, &body).is_err(), "{kind}");
        }
    }
}
