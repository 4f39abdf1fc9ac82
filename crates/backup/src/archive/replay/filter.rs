//! An opened segment on its way to the tool: the wanted transactions as a binlog file.

use std::{
    io::{self, Write},
    sync::atomic::AtomicBool,
};

use onionskin_rowstream::binlog::{
    BinlogError,
    event::{EventHead, FormatDescription, GtidEvent, HEAD, MAGIC, kind},
};

use super::{border::Part, cut::Cut, texts::check_event};
use crate::{
    archive::{ArchiveError, Segment, folder::place_text},
    manifest::BinlogPosition,
};

/// Reads a segment as it is opened, and hands on the wanted transactions as a binlog file.
pub(super) struct Filter<'a, W: Write> {
    out: W,
    cut: &'a mut Cut,
    /// Told when the tool gets a file of LOAD DATA.
    loads: &'a AtomicBool,
    place: BinlogPosition,
    /// Where the segment ends.
    next: BinlogPosition,
    /// Where the transaction that is being read begins.
    begun: BinlogPosition,
    /// Bytes of an event that is not whole yet.
    event: Vec<u8>,
    magic: bool,
    checksums: bool,
    /// The transaction that is being read is wanted.
    taking: bool,
    /// What is not replayed, whoever wants it.
    refused: Option<ArchiveError>,
}

fn malformed(_: impl std::fmt::Display) -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// The identity of the transaction that begins with an event; `None` if none begins.
fn gtid_of(head: EventHead, body: &[u8]) -> Option<Result<GtidEvent, BinlogError>> {
    Some(match head.kind {
        kind::GTID => GtidEvent::decode_mysql(body, false),
        kind::ANONYMOUS_GTID => GtidEvent::decode_mysql(body, true),
        kind::GTID_TAGGED => GtidEvent::decode_tagged(body),
        kind::MARIA_GTID => GtidEvent::decode_mariadb(body, head.server_id),
        _ => return None,
    })
}

/// Whether an event belongs to the file, not to its transactions.
fn is_of_file(kind: u8) -> bool {
    matches!(
        kind,
        kind::ROTATE
            | kind::STOP
            | kind::PREVIOUS_GTIDS
            | kind::MARIA_GTID_LIST
            | kind::MARIA_BINLOG_CHECKPOINT
    )
}

impl<'a, W: Write> Filter<'a, W> {
    pub(super) fn new(out: W, segment: &Segment, cut: &'a mut Cut, loads: &'a AtomicBool) -> Self {
        let refused = cut.begin_segment(segment).err();
        Self {
            out,
            cut,
            loads,
            place: segment.first.clone(),
            next: segment.next.clone(),
            begun: segment.first.clone(),
            event: Vec::new(),
            magic: false,
            checksums: false,
            taking: false,
            refused,
        }
    }

    /// Whether the segment ended with a whole event; an error if something in it is not replayed.
    pub(super) fn finish(mut self) -> Result<bool, ArchiveError> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        let is_whole = self.magic && self.event.is_empty();
        if is_whole {
            self.cut.segment_ended(&self.place, &self.next)?;
        }
        Ok(is_whole && self.out.flush().is_ok())
    }

    fn whole_event(&mut self, event: &[u8]) -> io::Result<()> {
        let head = EventHead::decode(event).map_err(malformed)?;
        let checksum = if self.checksums { 4 } else { 0 };
        let body = event
            .get(HEAD..event.len().saturating_sub(checksum))
            .ok_or_else(|| malformed(""))?;
        let gtid = gtid_of(head, body);
        let of_file = is_of_file(head.kind);
        if head.kind != kind::FORMAT_DESCRIPTION {
            let part = match gtid.is_some() || of_file {
                true => Part::Between,
                false => Part::Within,
            };
            let passed = self.cut.pass(&self.place, head, part);
            passed.or_else(|error| self.refuse(error))?;
        }
        if let Some(gtid) = gtid {
            return self.begin_transaction(head, &gtid.map_err(malformed)?, event);
        }
        match head.kind {
            kind::FORMAT_DESCRIPTION => self.describe_format(head, event),
            _ if of_file => {
                self.taking = false;
                self.go_on(head);
                Ok(())
            }
            _ => self.go_on_with_transaction(head, body, event),
        }
    }

    fn describe_format(&mut self, head: EventHead, event: &[u8]) -> io::Result<()> {
        let format = FormatDescription::decode(event).map_err(malformed)?;
        self.checksums = format.checksums;
        if self.place.position == 4 {
            self.place.position = head.end.into();
        }
        self.out.write_all(event)
    }

    fn begin_transaction(
        &mut self,
        head: EventHead,
        gtid: &GtidEvent,
        event: &[u8],
    ) -> io::Result<()> {
        let stamp = u64::from(head.timestamp) * 1_000_000;
        self.begun = self.place.clone();
        let taken = self.cut.takes(&self.place, gtid, stamp);
        self.taking = taken.or_else(|error| self.refuse(error))?;
        self.go_on(head);
        match self.taking {
            true => self.out.write_all(event),
            false => Ok(()),
        }
    }

    fn go_on_with_transaction(
        &mut self,
        head: EventHead,
        body: &[u8],
        event: &[u8],
    ) -> io::Result<()> {
        if !self.taking {
            self.go_on(head);
            return Ok(());
        }
        if let Err(what) = check_event(head.kind, body, self.loads) {
            return self.refuse(ArchiveError::Refused {
                place: place_text(&self.place),
                what,
                until: place_text(&self.begun),
            });
        }
        self.go_on(head);
        self.cut.taken_to(&self.place);
        self.out.write_all(event)
    }

    /// Ends the reading; [`Filter::finish`] says why.
    fn refuse<T>(&mut self, why: ArchiveError) -> io::Result<T> {
        self.refused = Some(why);
        Err(malformed(""))
    }

    fn go_on(&mut self, head: EventHead) {
        self.place.position = head.behind(self.place.position);
    }

    /// Whether the head that is there announces a body.
    fn grows(&self) -> bool {
        let size = self.event.get(9..13).and_then(|size| size.try_into().ok());
        size.map(u32::from_le_bytes) != Some(HEAD as u32)
    }
}

impl<W: Write> Write for Filter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.refused.is_some() {
            return Err(malformed(""));
        }
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
