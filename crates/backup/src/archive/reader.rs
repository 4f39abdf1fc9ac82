//! From the server's events to the bytes of segments.
//!
//! A segment ends between two transactions: before a GTID event, which begins one on every supported server; at a heartbeat,
//! which a server sends when it has sent everything; and at the end of a file.

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
        BinlogError, EventStream, GtidPosition,
        event::{EventHead, GtidEvent, HEAD, MAGIC, decode_rotate, kind, without_creation},
    },
    client::Family,
};

use super::{ArchiveError, SOURCE, Segment};
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
    in_group: bool,
    held: Option<Held>,
    building: Option<Building>,
    out: Vec<u8>,
    out_at: usize,
    /// The stream gives no more: the end was asked for, or the connection is gone.
    pub ended: bool,
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
            in_group: false,
            held: None,
            building: None,
            out: Vec::new(),
            out_at: 0,
            ended: false,
            failed: None,
        }
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
                family: family.into(),
                version: self.identity.version.clone(),
            }),
            binlog: Some(segment.next.clone()),
            gtid: segment.gtid_after.clone(),
            segment: Some(segment),
            ..Manifest::new(SOURCE)
        })
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
        let (head, bytes, checksum) = match self.stream.next_event() {
            Ok(Some(event)) => (event.head, event.bytes.to_vec(), event.checksum),
            // A server says so when it has sent all that was committed.
            Ok(None) => {
                self.in_group = false;
                self.ended = true;
                self.end_segment();
                return Ok(());
            }
            // A server that was shut down: what came before its last word is whole.
            Err(error) if error.is_disconnect() && !self.in_group => {
                self.ended = true;
                self.end_segment();
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        match head.kind {
            kind::HEARTBEAT | kind::HEARTBEAT_V2 => {
                self.in_group = false;
                if self.is_due() {
                    self.end_segment();
                }
                Ok(())
            }
            kind::ROTATE if head.is_artificial() => {
                let (file, position) = decode_rotate(&bytes[HEAD..bytes.len() - checksum])?;
                self.in_group = false;
                if file != self.place.file {
                    // The file ended without a word, when its server was killed.
                    self.end_segment();
                    self.place = BinlogPosition { file, position };
                    self.format.clear();
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
                self.in_group = false;
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
            self.in_group = true;
            if let (Some(all), Some(gtid)) = (&mut self.gtid, &event.gtid) {
                all.add(gtid);
            }
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
        self.out.extend_from_slice(bytes);
        if let Some(building) = &mut self.building {
            building.size += bytes.len() as u64;
        }
        match head.kind {
            kind::ROTATE => {
                let (file, position) = decode_rotate(body)?;
                self.place = BinlogPosition { file, position };
                self.format.clear();
                self.in_group = false;
                self.end_segment();
            }
            _ => {
                self.place.position = follow(self.place.position, head.end);
                if head.kind == kind::STOP {
                    self.in_group = false;
                }
            }
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
            // Or else whoever replays it would take it for a server's start and drop temporary tables.
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
        // What cannot be read any more (sets with tags) is no longer known either.
        self.gtid = listed;
        Ok(())
    }
}

/// An end position is known modulo 2³².
fn follow(offset: u64, end: u32) -> u64 {
    let next = offset & !0xffff_ffff | u64::from(end);
    match next < offset {
        true => next + (1 << 32),
        false => next,
    }
}
