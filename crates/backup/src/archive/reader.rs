//! From the server's events to the bytes of segments.
//!
//! A segment ends between two transactions: before a GTID event, which begins one on every
//! supported server; at a heartbeat, which a server sends when it has sent everything; and at the
//! end of a file.
//!
//! A server that is killed while it writes may leave a file whose last transaction is not whole.
//! MariaDB leaves it there, rolls the transaction back, and begins the next file as if it had never
//! been. Its events may have gone into the segment by the time that is known, so the segment is
//! given up with [`ArchiveError::Torn`] and read again, this time without them.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use onionskin_rowstream::{
    binlog::{
        BinlogError, EventStream, Gtid, GtidPosition,
        event::{EventHead, GtidEvent, HEAD, MAGIC, Query, decode_rotate, kind, without_creation},
    },
    client::{ClientError, Family},
};

use super::{ArchiveError, SOURCE, Segment, writer::NOT_IN_BINLOG};
use crate::{
    Manifest,
    manifest::{BinlogPosition, Server},
};

/// Whose binlog it is.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub family: Family,
    pub version: String,
    pub server_id: u32,
    pub server_uuid: Option<String>,
    /// MySQL's `@@gtid_purged`.
    pub gtid_purged: Option<String>,
}

/// When a segment ends although the file goes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub size: u64,
    pub age: Duration,
}

/// An event that was read already and belongs to the next segment.
struct Held {
    head: EventHead,
    bytes: Vec<u8>,
    checksum: usize,
}

/// The segment that is being read.
struct Building {
    segment: Segment,
    size: u64,
    begun: Instant,
    done: bool,
}

/// A file whose last transaction its server did not finish.
#[derive(Debug, Clone)]
pub(super) struct Torn {
    /// Where the transaction begins.
    pub begins: BinlogPosition,
    /// The file that follows.
    pub next: BinlogPosition,
}

/// The transaction that is being read.
struct Group {
    /// Where its GTID event begins.
    begins: BinlogPosition,
    /// Added to those that the archive holds when the transaction is whole.
    gtid: Option<Gtid>,
    /// An event that commits it must come: behind BEGIN, which MariaDB leaves out.
    begun: bool,
    whole: bool,
}

impl Group {
    /// Whether the group ends with this event.
    fn follow(&mut self, head: EventHead, body: &[u8]) -> Result<bool, BinlogError> {
        let ends = match head.kind {
            kind::XID | kind::XA_PREPARE | kind::TRANSACTION_PAYLOAD | kind::INCIDENT => true,
            kind::QUERY => {
                let sql = Query::decode(body, false)?.sql.trim_ascii();
                let is = |word: &str| sql.eq_ignore_ascii_case(word.as_bytes());
                let begins = |words: &str| {
                    let words = words.as_bytes();
                    (sql.get(..words.len())).is_some_and(|start| start.eq_ignore_ascii_case(words))
                };
                match self.begun {
                    true => is("COMMIT") || is("ROLLBACK"),
                    false if is("BEGIN") || begins("XA START") || begins("XA BEGIN") => {
                        self.begun = true;
                        false
                    }
                    false => true,
                }
            }
            // Too long for a COMMIT.
            kind::MARIA_QUERY_COMPRESSED | kind::EXECUTE_LOAD_QUERY => !self.begun,
            _ => false,
        };
        self.whole |= ends;
        Ok(ends)
    }
}

pub(super) struct Reader {
    stream: EventStream,
    identity: Identity,
    limits: Limits,
    stop: Arc<AtomicBool>,
    /// The end of the last event that was taken.
    place: BinlogPosition,
    gtid: Option<GtidPosition>,
    /// The event that describes the present file.
    format: Vec<u8>,
    file_created: u32,
    /// Of the file that the archive holds the beginning of, when it is resumed there.
    expected_creation: Option<u32>,
    /// The last transaction, until something shows that it is over.
    group: Option<Group>,
    /// What an earlier attempt has found.
    torn: Option<Torn>,
    /// An event of the torn transaction was left out.
    skipping: bool,
    held: Option<Held>,
    building: Option<Building>,
    out: Vec<u8>,
    out_at: usize,
    /// The stream gives no more: the end was asked for, or the connection is gone.
    pub ended: bool,
    /// It ended at the end of a torn file: the log goes on.
    pub cut_off: bool,
    pub failed: Option<ArchiveError>,
}

impl Reader {
    pub fn new(
        stream: EventStream,
        identity: Identity,
        limits: Limits,
        stop: Arc<AtomicBool>,
        place: BinlogPosition,
        gtid: Option<GtidPosition>,
        expected_creation: Option<u32>,
    ) -> Self {
        Self {
            stream,
            identity,
            limits,
            stop,
            place,
            gtid,
            format: Vec::new(),
            file_created: 0,
            expected_creation,
            group: None,
            torn: None,
            skipping: false,
            held: None,
            building: None,
            out: Vec::new(),
            out_at: 0,
            ended: false,
            cut_off: false,
            failed: None,
        }
    }

    /// Leaves out what an earlier attempt has found torn.
    pub fn without(self, torn: Option<Torn>) -> Self {
        Self { torn, ..self }
    }

    /// Waits for the first event of a segment; `None` when there will be no more.
    pub fn begin(&mut self) -> Result<Option<BinlogPosition>, ArchiveError> {
        loop {
            if let Some(building) = &self.building {
                return Ok(Some(building.segment.first.clone()));
            }
            if self.ended || self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            self.advance()?;
        }
    }

    /// The bytes of the segment that [`Reader::begin`] began; 0 at its end.
    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let rest = &self.out[self.out_at..];
            if !rest.is_empty() {
                let n = rest.len().min(buf.len());
                buf[..n].copy_from_slice(&rest[..n]);
                self.out_at += n;
                return Ok(n);
            }
            self.out.clear();
            self.out_at = 0;
            if self.building.as_ref().is_none_or(|building| building.done) {
                return Ok(0);
            }
            if let Err(error) = self.advance() {
                self.failed = Some(error);
                return Err(io::Error::other("the binlog"));
            }
        }
    }

    /// The manifest of the segment that was read to its end.
    pub fn finish(&mut self) -> Result<Manifest, String> {
        let building = self.building.take().ok_or("there is no segment")?;
        let segment = Segment {
            next: self.place.clone(),
            gtid_after: self.gtid.as_ref().map(ToString::to_string),
            ..building.segment
        };
        let family = match self.identity.family {
            Family::MySql => "mysql",
            Family::MariaDb => "mariadb",
        };
        Ok(Manifest {
            server: Some(Server {
                uuid: self.identity.server_uuid.clone(),
                ..Server::new(family, self.identity.version.clone())
            }),
            binlog: Some(segment.next.clone()),
            gtid: segment.gtid_after.clone(),
            segment: Some(segment),
            ..Manifest::new(SOURCE)
        })
    }

    /// Whether no transaction is being read.
    fn is_between(&self) -> bool {
        self.group.as_ref().is_none_or(|group| group.whole)
    }

    /// The server has more to say, or nothing: it never does within a transaction.
    fn end_group(&mut self) {
        self.count_group();
        self.group = None;
    }

    /// The transaction is whole.
    fn count_group(&mut self) {
        let gtid = self.group.as_mut().and_then(|group| group.gtid.take());
        if let (Some(all), Some(gtid)) = (&mut self.gtid, gtid) {
            all.add(&gtid);
        }
    }

    /// Leaves out an event of the transaction that its server did not finish.
    fn skip(&mut self, head: EventHead) -> Result<(), ArchiveError> {
        let begins = matches!(
            head.kind,
            kind::GTID | kind::ANONYMOUS_GTID | kind::GTID_TAGGED | kind::MARIA_GTID
        );
        // Only the end of the file may follow.
        if begins == self.skipping || matches!(head.kind, kind::ROTATE | kind::STOP) {
            return Err(
                BinlogError::Malformed("end of a file that its server did not finish").into(),
            );
        }
        // The next file's list of GTIDs must show that nothing else is missing.
        if self.gtid.is_none() || head.kind == kind::ANONYMOUS_GTID {
            return Err(ArchiveError::Torn(self.place.clone()));
        }
        self.skipping = true;
        Ok(())
    }

    /// The file ends although its server did not say so.
    fn end_file(&mut self, next: BinlogPosition) -> Result<(), ArchiveError> {
        self.torn.take_if(|torn| torn.begins == self.place);
        if self.building.is_none() {
            // There is nothing behind the last segment; where the log goes on must be noted all the
            // same.
            self.begin_segment()?;
        }
        self.skipping = false;
        self.end_segment();
        self.place = next;
        self.format.clear();
        Ok(())
    }

    /// The server cannot read on in this file.
    fn end_torn(&mut self, error: BinlogError) -> Result<(), ArchiveError> {
        match &self.torn {
            Some(torn) if torn.begins == self.place && self.gtid.is_some() => {
                let next = torn.next.clone();
                self.end_file(next)?;
                self.ended = true;
                self.cut_off = true;
                Ok(())
            }
            // A second attempt finds nothing else.
            Some(_) => Err(error.into()),
            None => {
                let group = self.group.take_if(|group| !group.whole);
                Err(ArchiveError::Torn(
                    group.map_or_else(|| self.place.clone(), |group| group.begins),
                ))
            }
        }
    }

    fn end_segment(&mut self) {
        if let Some(building) = &mut self.building {
            building.done = true;
        }
    }

    /// Whether the segment has to end at the border that was reached.
    fn is_due(&self) -> bool {
        self.building.as_ref().is_some_and(|building| {
            building.size >= self.limits.size
                || building.begun.elapsed() >= self.limits.age
                || self.stop.load(Ordering::Relaxed)
        })
    }

    /// Takes the next event.
    fn advance(&mut self) -> Result<(), ArchiveError> {
        if let Some(held) = self.held.take() {
            return self.take(held.head, &held.bytes, held.checksum);
        }
        let between = self.is_between();
        let (head, bytes, checksum) = match self.stream.next_event() {
            Ok(Some(event)) => (event.head, event.bytes.to_vec(), event.checksum),
            // A server says so when it has sent all that was committed.
            Ok(None) => {
                self.end_group();
                self.ended = true;
                self.end_segment();
                return Ok(());
            }
            // A server that was shut down: what came before its last word is whole.
            Err(error) if error.is_disconnect() && between => {
                self.ended = true;
                self.end_segment();
                return Ok(());
            }
            // The file of a killed server ends within an event, which no server sends beyond.
            Err(error) if is_truncated(&error) => return self.end_torn(error),
            Err(error) => return Err(error.into()),
        };
        match head.kind {
            kind::HEARTBEAT | kind::HEARTBEAT_V2 => {
                self.end_group();
                if self.is_due() {
                    self.end_segment();
                }
                Ok(())
            }
            kind::ROTATE if head.is_artificial() => {
                let (file, position) = decode_rotate(&bytes[HEAD..bytes.len() - checksum])?;
                if file != self.place.file {
                    // The file ended without a word, when its server was killed.
                    if let Some(group) = self.group.take_if(|group| !group.whole) {
                        return Err(ArchiveError::Torn(group.begins));
                    }
                    self.end_file(BinlogPosition { file, position })?;
                }
                Ok(())
            }
            kind::FORMAT_DESCRIPTION => {
                self.file_created = head.timestamp;
                if let Some(expected) = self.expected_creation.take()
                    && expected != self.file_created
                {
                    return Err(ArchiveError::Reset(self.place.file.clone()));
                }
                self.format = bytes;
                Ok(())
            }
            // The server decrypts what it sends.
            kind::MARIA_START_ENCRYPTION => Ok(()),
            kind::GTID | kind::ANONYMOUS_GTID | kind::GTID_TAGGED | kind::MARIA_GTID
                if self.is_due() =>
            {
                self.end_group();
                self.end_segment();
                self.held = Some(Held {
                    head,
                    bytes,
                    checksum,
                });
                Ok(())
            }
            _ => self.take(head, &bytes, checksum),
        }
    }

    /// Appends an event to the segment, which begins with it if there is none.
    fn take(&mut self, head: EventHead, bytes: &[u8], checksum: usize) -> Result<(), ArchiveError> {
        let body = &bytes[HEAD..bytes.len() - checksum];
        if self
            .torn
            .as_ref()
            .is_some_and(|torn| torn.begins == self.place)
        {
            return self.skip(head);
        }
        self.follow_gtids(head, body)?;
        if self.building.is_none() {
            self.begin_segment()?;
        }
        let event = match head.kind {
            kind::GTID | kind::ANONYMOUS_GTID => {
                let anonymous = head.kind == kind::ANONYMOUS_GTID;
                Some(GtidEvent::decode_mysql(body, anonymous)?)
            }
            kind::GTID_TAGGED => Some(GtidEvent::decode_tagged(body)?),
            kind::MARIA_GTID => Some(GtidEvent::decode_mariadb(body, head.server_id)?),
            _ => None,
        };
        if let Some(event) = event {
            self.end_group();
            self.group = Some(Group {
                begins: self.place.clone(),
                gtid: event.gtid.clone(),
                begun: self.identity.family == Family::MariaDb && !event.standalone,
                whole: false,
            });
            let time = event
                .committed
                .unwrap_or(u64::from(head.timestamp) * 1_000_000);
            if let Some(building) = &mut self.building {
                let segment = &mut building.segment;
                segment.transactions += 1;
                segment.first_commit.get_or_insert(time);
                segment.last_commit = Some(time);
            }
        }
        if let Some(group) = &mut self.group
            && group.follow(head, body)?
        {
            self.count_group();
        }
        self.out.extend_from_slice(bytes);
        if let Some(building) = &mut self.building {
            building.size += bytes.len() as u64;
        }
        match head.kind {
            kind::ROTATE => {
                let (file, position) = decode_rotate(body)?;
                self.place = BinlogPosition { file, position };
                self.format.clear();
                self.end_group();
                self.end_segment();
            }
            _ => self.place.position = head.behind(self.place.position),
        }
        Ok(())
    }

    fn begin_segment(&mut self) -> Result<(), ArchiveError> {
        if self.format.is_empty() {
            return Err(BinlogError::Malformed("beginning of a file").into());
        }
        self.out.extend_from_slice(&MAGIC);
        match self.place.position {
            4 => self.out.extend_from_slice(&self.format),
            // Or else whoever replays it would take it for a server's start and drop temporary
            // tables.
            _ => self.out.extend_from_slice(&without_creation(&self.format)?),
        }
        self.building = Some(Building {
            segment: Segment {
                server_id: self.identity.server_id,
                server_uuid: self.identity.server_uuid.clone(),
                first: self.place.clone(),
                next: self.place.clone(),
                file_created: self.file_created,
                gtid_before: self.gtid.as_ref().map(ToString::to_string),
                gtid_after: None,
                gtid_purged: self.identity.gtid_purged.clone(),
                transactions: 0,
                first_commit: None,
                last_commit: None,
            },
            size: self.out.len() as u64,
            begun: Instant::now(),
            done: false,
        });
        Ok(())
    }

    /// A file begins with what was executed before it: that must be what the archive holds.
    fn follow_gtids(&mut self, head: EventHead, body: &[u8]) -> Result<(), ArchiveError> {
        let listed = match head.kind {
            kind::PREVIOUS_GTIDS => GtidPosition::decode_mysql(body)?,
            kind::MARIA_GTID_LIST if !head.is_artificial() => {
                Some(GtidPosition::decode_mariadb(body)?)
            }
            _ => return Ok(()),
        };
        if let (Some(archived), Some(begins)) = (&self.gtid, &listed) {
            let same = match (archived, begins) {
                (GtidPosition::MariaDb(archived), GtidPosition::MariaDb(begins)) => begins
                    .iter()
                    .all(|(domain, last)| archived.get(domain) == Some(last)),
                (archived, begins) => archived == begins,
            };
            if !same {
                return Err(ArchiveError::MissingGtids {
                    file: self.place.file.clone(),
                    begins: begins.to_string(),
                    archived: archived.to_string(),
                });
            }
        }
        // What cannot be read any more (a form that is not known) is no longer known either.
        self.gtid = listed;
        Ok(())
    }
}

/// Both families say it in words only.
fn is_truncated(error: &BinlogError) -> bool {
    match error {
        BinlogError::Client(ClientError::Server { code, message }) => {
            *code == NOT_IN_BINLOG && message.contains("truncated in the middle of event")
        }
        _ => false,
    }
}
