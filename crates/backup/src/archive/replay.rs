//! From segments to a server: the transactions from where a backup ends up to a point in time.
//!
//! The server's own tools do what they are made for: `mariadb-binlog` or `mysqlbinlog` turns events into statements, with the
//! session settings that each needs, and the client sends them. They are not trusted with what to replay: the border is
//! drawn here, between two transactions of the opened segment, before the tool sees it. No opened segment is written to a
//! file; it goes through pipes.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use onionskin_rowstream::binlog::{
    Gtid, GtidPosition,
    event::{EventHead, FormatDescription, GtidEvent, HEAD, MAGIC, kind},
};

use super::{
    ArchiveError, Segment,
    folder::{Found, Keys, check_link, place_text, read_segment, segments},
    segment::file_number,
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
    point: Point,
}

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
        let plan = Self {
            segments,
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
            Point::Time(_) | Point::End => {}
        }
        Ok(())
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// The settings of the server that wrote the segments: whether its transactions have GTIDs.
    pub fn has_gtids(&self) -> bool {
        self.segments.iter().any(|(_, segment)| {
            segment
                .gtid_after
                .as_ref()
                .is_some_and(|set| !set.is_empty())
        })
    }

    /// Replays into the client, which must read statements from its standard input and end with an error at the first that
    /// fails. `tool` must read a binlog from its standard input.
    pub fn run(
        &self,
        keys: Keys<'_>,
        tool: &dyn Fn() -> Command,
        mut client: Command,
        threads: usize,
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
        };
        let mut error = None;
        for (found, segment) in &self.segments {
            if cut.stopped || result.is_err() {
                break;
            }
            match one(found, segment, keys, tool, &mut input, &mut cut, threads) {
                Ok(true) => {}
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
        Ok(cut.replayed)
    }
}

/// Replays one segment; false if the client takes no more.
fn one(
    found: &Found,
    segment: &Segment,
    keys: Keys<'_>,
    tool: &dyn Fn() -> Command,
    client: &mut (impl Write + Send),
    cut: &mut Cut,
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
struct Cut {
    from: BinlogPosition,
    point: Point,
    replayed: Replayed,
    stopped: bool,
}

impl Cut {
    /// Whether the transaction that begins here is wanted.
    fn takes(&mut self, place: &BinlogPosition, event: &GtidEvent, time: u64) -> bool {
        let key = |place: &BinlogPosition| (file_number(&place.file), place.position);
        if self.stopped || key(place) < key(&self.from) {
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
        self.replayed.last = Some(done);
        true
    }
}

/// Reads a segment as it is opened, and hands on the wanted transactions as a binlog file.
struct Filter<'a, W: Write> {
    out: W,
    cut: &'a mut Cut,
    place: BinlogPosition,
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

impl<'a, W: Write> Filter<'a, W> {
    fn new(out: W, segment: &Segment, cut: &'a mut Cut) -> Self {
        Self {
            out,
            cut,
            place: segment.first.clone(),
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
        self.taking = self.cut.takes(&self.place, &gtid, time);
        self.go_on(head);
        match self.taking {
            true => self.out.write_all(event),
            false => Ok(()),
        }
    }

    fn go_on(&mut self, head: EventHead) {
        let position = self.place.position;
        let next = position & !0xffff_ffff | u64::from(head.end);
        self.place.position = if next < position {
            next + (1 << 32)
        } else {
            next
        };
    }
}

impl<W: Write> Write for Filter<'_, W> {
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

impl<W: Write> Filter<'_, W> {
    /// Whether the head that is there announces a body.
    fn grows(&self) -> bool {
        let size = self.event.get(9..13).and_then(|size| size.try_into().ok());
        size.map(u32::from_le_bytes) != Some(HEAD as u32)
    }
}
