//! Heads of events, and the bodies that are needed to follow the binlog.
//!
//! An event is a head of 19 bytes (time, type, server id, size, end position, flags), a body, and a
//! CRC-32 if the file has checksums. MySQL and MariaDB share the types up to 26; MySQL goes on from
//! 27, MariaDB from 160.

use onionskin_wire::Reader;

use super::error::{BinlogError, BinlogResult};
use super::position::Gtid;

/// Length of the head.
pub const HEAD: usize = 19;
/// Length of the checksum.
pub const CHECKSUM: usize = 4;
/// What a binlog file begins with.
pub const MAGIC: [u8; 4] = [0xfe, b'b', b'i', b'n'];

/// Numbers of event types.
#[allow(missing_docs)]
pub mod kind {
    pub const QUERY: u8 = 2;
    pub const STOP: u8 = 3;
    pub const ROTATE: u8 = 4;
    pub const INTVAR: u8 = 5;
    pub const APPEND_BLOCK: u8 = 9;
    pub const DELETE_FILE: u8 = 11;
    pub const RAND: u8 = 13;
    pub const USER_VAR: u8 = 14;
    pub const FORMAT_DESCRIPTION: u8 = 15;
    pub const XID: u8 = 16;
    pub const BEGIN_LOAD_QUERY: u8 = 17;
    pub const EXECUTE_LOAD_QUERY: u8 = 18;
    pub const TABLE_MAP: u8 = 19;
    pub const WRITE_ROWS_V1: u8 = 23;
    pub const UPDATE_ROWS_V1: u8 = 24;
    pub const DELETE_ROWS_V1: u8 = 25;
    pub const INCIDENT: u8 = 26;
    pub const HEARTBEAT: u8 = 27;
    pub const IGNORABLE: u8 = 28;
    pub const ROWS_QUERY: u8 = 29;
    pub const WRITE_ROWS: u8 = 30;
    pub const UPDATE_ROWS: u8 = 31;
    pub const DELETE_ROWS: u8 = 32;
    pub const GTID: u8 = 33;
    pub const ANONYMOUS_GTID: u8 = 34;
    pub const PREVIOUS_GTIDS: u8 = 35;
    pub const TRANSACTION_CONTEXT: u8 = 36;
    pub const VIEW_CHANGE: u8 = 37;
    pub const XA_PREPARE: u8 = 38;
    pub const PARTIAL_UPDATE_ROWS: u8 = 39;
    pub const TRANSACTION_PAYLOAD: u8 = 40;
    pub const HEARTBEAT_V2: u8 = 41;
    pub const GTID_TAGGED: u8 = 42;
    pub const MARIA_ANNOTATE_ROWS: u8 = 160;
    pub const MARIA_BINLOG_CHECKPOINT: u8 = 161;
    pub const MARIA_GTID: u8 = 162;
    pub const MARIA_GTID_LIST: u8 = 163;
    pub const MARIA_START_ENCRYPTION: u8 = 164;
    pub const MARIA_QUERY_COMPRESSED: u8 = 165;
    pub const MARIA_WRITE_ROWS_COMPRESSED_V1: u8 = 166;
    pub const MARIA_UPDATE_ROWS_COMPRESSED_V1: u8 = 167;
    pub const MARIA_DELETE_ROWS_COMPRESSED_V1: u8 = 168;
    pub const MARIA_WRITE_ROWS_COMPRESSED: u8 = 169;
    pub const MARIA_UPDATE_ROWS_COMPRESSED: u8 = 170;
    pub const MARIA_DELETE_ROWS_COMPRESSED: u8 = 171;
}

/// Set on events that exist on the wire only, such as the one that names the first file.
const ARTIFICIAL: u16 = 0x20;
/// Set on events that a replica which does not know them may skip.
const IGNORABLE: u16 = 0x80;

/// The head of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHead {
    /// When the statement began, in seconds since 1970.
    pub timestamp: u32,
    /// See [`kind`].
    pub kind: u8,
    /// Id of the server that wrote it first.
    pub server_id: u32,
    /// Size of the event with head and checksum.
    pub size: u32,
    /// Where it ends in its file, modulo 2³²; 0 for what is not in a file, and since MariaDB 11.8
    /// for what a transaction holds: see [`Self::behind`].
    pub end: u32,
    /// Flags.
    pub flags: u16,
}

impl EventHead {
    /// Reads the head at the beginning of an event.
    pub fn decode(event: &[u8]) -> BinlogResult<Self> {
        let mut r = Reader::new(event);
        let head = Self {
            timestamp: r.u32()?,
            kind: r.u8()?,
            server_id: r.u32()?,
            size: r.u32()?,
            end: r.u32()?,
            flags: r.u16()?,
        };
        match head.size as usize == event.len() {
            true => Ok(head),
            false => Err(BinlogError::Malformed("size of an event")),
        }
    }

    /// Whether the event exists on the wire only: it says so, or is one of a file's first events
    /// that are sent once more, without a place, to who begins behind them.
    pub fn is_artificial(&self) -> bool {
        let begins_files = matches!(
            self.kind,
            kind::FORMAT_DESCRIPTION
                | kind::ROTATE
                | kind::PREVIOUS_GTIDS
                | kind::MARIA_GTID_LIST
                | kind::MARIA_START_ENCRYPTION
        );
        self.is_made_up() || begins_files && self.end == 0
    }

    /// Where it ends, if it begins at `offset` of its file. Its own word is known modulo 2³² only:
    /// files with a huge transaction are longer. MariaDB 11.8 copies transactions into the log as
    /// they are, and only their first and last events know where they end.
    pub fn behind(&self, offset: u64) -> u64 {
        match self.end {
            0 if self.is_artificial() => offset,
            0 => offset + u64::from(self.size),
            end => {
                let next = offset & !0xffff_ffff | u64::from(end);
                if next < offset {
                    next + (1 << 32)
                } else {
                    next
                }
            }
        }
    }

    /// Whether the event says of itself that it exists on the wire only.
    pub fn is_made_up(&self) -> bool {
        self.flags & ARTIFICIAL != 0 || matches!(self.kind, kind::HEARTBEAT | kind::HEARTBEAT_V2)
    }

    /// Whether a replica that does not know the type may skip the event.
    pub fn may_be_ignored(&self) -> bool {
        self.flags & IGNORABLE != 0
    }
}

/// Whether the last four bytes of an event are the CRC-32 of those before.
pub fn checksum_matches(event: &[u8]) -> bool {
    let Some(at) = event.len().checked_sub(CHECKSUM) else {
        return false;
    };
    let mut crc = flate2::Crc::new();
    crc.update(&event[..at]);
    crc.sum().to_le_bytes() == event[at..]
}

/// What a FORMAT_DESCRIPTION event says of the file that it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatDescription {
    /// Version of the server that wrote the file.
    pub server_version: String,
    /// When the file was made at the server's start; 0 for other files, and where the stream begins
    /// in the middle of a file.
    pub created: u32,
    /// Whether events end with a CRC-32.
    pub checksums: bool,
}

impl FormatDescription {
    /// Reads a whole event. It always ends with the byte that names the checksum's algorithm and
    /// four bytes of checksum.
    pub fn decode(event: &[u8]) -> BinlogResult<Self> {
        let mut r = Reader::new(event);
        r.skip(HEAD)?;
        if r.u16()? != 4 {
            return Err(BinlogError::Malformed("version"));
        }
        let version = r.bytes(50)?;
        let version = version.split(|b| *b == 0).next().unwrap_or_default();
        let created = r.u32()?;
        if usize::from(r.u8()?) != HEAD || r.remaining() < CHECKSUM + 1 {
            return Err(BinlogError::Malformed("format description"));
        }
        let checksums = match event[event.len() - CHECKSUM - 1] {
            0 => false,
            1 => true,
            _ => return Err(BinlogError::Malformed("checksum's algorithm")),
        };
        Ok(Self {
            server_version: String::from_utf8_lossy(version).into_owned(),
            created,
            checksums,
        })
    }
}

/// A FORMAT_DESCRIPTION event without the time at which the server started: whoever applies one
/// with it takes it for a restart, and drops temporary tables.
pub fn without_creation(event: &[u8]) -> BinlogResult<Vec<u8>> {
    const CREATED: usize = HEAD + 2 + 50;
    let described = FormatDescription::decode(event)?;
    let mut event = event.to_vec();
    event[CREATED..CREATED + 4].fill(0);
    if described.checksums {
        let at = event.len() - CHECKSUM;
        let mut crc = flate2::Crc::new();
        crc.update(&event[..at]);
        event[at..].copy_from_slice(&crc.sum().to_le_bytes());
    }
    Ok(event)
}

/// A ROTATE event: the next file and where it begins. The body is without its checksum.
///
/// Files are made under that name, so it is one in a folder, which leads nowhere else.
pub fn decode_rotate(body: &[u8]) -> BinlogResult<(String, u64)> {
    let malformed = BinlogError::Malformed("file name");
    let mut r = Reader::new(body);
    let offset = r.u64()?;
    match std::str::from_utf8(r.rest()) {
        Ok(name) if is_file_name(name) => Ok((name.to_owned(), offset)),
        _ => Err(malformed),
    }
}

/// Whether this can be the name of a binary log's file, without a folder.
pub fn is_file_name(name: &str) -> bool {
    const LONGEST: usize = 255;
    let is_bad = |c: char| c.is_control() || matches!(c, '/' | '\\');
    !name.is_empty() && name.len() <= LONGEST && !name.starts_with('.') && !name.contains(is_bad)
}

/// A QUERY event.
#[derive(Debug, PartialEq, Eq)]
pub struct Query<'a> {
    /// The session's database.
    pub database: &'a [u8],
    /// The statement; compressed in MariaDB's QUERY_COMPRESSED.
    pub sql: &'a [u8],
}

impl<'a> Query<'a> {
    /// Reads the body, also of EXECUTE_LOAD_QUERY, whose head is 13 bytes longer.
    pub fn decode(body: &'a [u8], load: bool) -> BinlogResult<Self> {
        let mut r = Reader::new(body);
        r.skip(8)?;
        let database = usize::from(r.u8()?);
        r.skip(2)?;
        let variables = usize::from(r.u16()?);
        if load {
            r.skip(13)?;
        }
        r.skip(variables)?;
        let database = r.bytes(database)?;
        r.skip(1)?;
        Ok(Self {
            database,
            sql: r.rest(),
        })
    }
}

/// What a GTID event says, of either family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GtidEvent {
    /// The transaction's identity; `None` where the server numbers none.
    pub gtid: Option<Gtid>,
    /// Commit time in microseconds since 1970, where the event holds one.
    pub committed: Option<u64>,
    /// The group is one statement, without an event that commits it (MariaDB).
    pub standalone: bool,
    /// The group prepares or completes a transaction of two phases (MariaDB).
    pub xa: bool,
}

/// Bit 55 of MySQL's commit time says that the time of the first commit follows, because it
/// differs.
const TWO_TIMES: u64 = 1 << 55;

impl GtidEvent {
    /// MySQL's GTID and ANONYMOUS_GTID.
    pub fn decode_mysql(body: &[u8], anonymous: bool) -> BinlogResult<Self> {
        let mut r = Reader::new(body);
        r.skip(1)?;
        let uuid = r.array()?;
        let number = r.u64()?;
        // Type of the logical clock, and its two numbers; then the time in 7 bytes.
        let mut committed = None;
        if r.remaining() >= 17 + 7 {
            r.skip(17)?;
            let mut time = [0; 8];
            time[..7].copy_from_slice(r.bytes(7)?);
            committed = Some(u64::from_le_bytes(time) & !TWO_TIMES);
        }
        Ok(Self {
            gtid: (!anonymous).then(|| Gtid::MySql {
                uuid,
                tag: String::new(),
                number,
            }),
            committed,
            standalone: false,
            xa: false,
        })
    }

    /// MySQL's GTID with a tag, in the self-describing serialization of MySQL 8.3: version, size,
    /// the last field that must be known, then pairs of field number and value, integers in a
    /// variable length.
    pub fn decode_tagged(body: &[u8]) -> BinlogResult<Self> {
        const UNKNOWN: BinlogError = BinlogError::Malformed("GTID with a tag");
        let mut r = Reader::new(body);
        if varlen(&mut r)? != 1 {
            return Err(UNKNOWN);
        }
        let size = varlen(&mut r)?;
        let must_be_known = varlen(&mut r)?;
        let end = body
            .len()
            .saturating_sub(usize::try_from(size).map_err(|_| UNKNOWN)?);
        let (mut uuid, mut number, mut tag, mut committed) = ([0; 16], 0, String::new(), None);
        while r.remaining() > end {
            match varlen(&mut r)? {
                // Flags, last committed, sequence number, first commit time, length, versions,
                // ticket.
                0 | 4 | 5 | 7..=11 => {
                    varlen(&mut r)?;
                }
                1 => {
                    for byte in &mut uuid {
                        *byte = u8::try_from(varlen(&mut r)?).map_err(|_| UNKNOWN)?;
                    }
                }
                // Signed: the lowest bit is the sign.
                2 => number = varlen(&mut r)? >> 1,
                3 => {
                    let length = usize::try_from(varlen(&mut r)?).map_err(|_| UNKNOWN)?;
                    let bytes = r.bytes(length)?;
                    tag = String::from_utf8(bytes.to_vec()).map_err(|_| UNKNOWN)?;
                }
                6 => committed = Some(varlen(&mut r)?),
                // Fields have no length of their own: behind an unknown one nothing can be read.
                field if field > must_be_known => break,
                _ => return Err(UNKNOWN),
            }
        }
        if number == 0 {
            return Err(UNKNOWN);
        }
        Ok(Self {
            gtid: Some(Gtid::MySql { uuid, tag, number }),
            committed,
            standalone: false,
            xa: false,
        })
    }

    /// MariaDB's GTID; the server's id stands in the head.
    pub fn decode_mariadb(body: &[u8], server: u32) -> BinlogResult<Self> {
        const STANDALONE: u8 = 1;
        const PREPARED_XA: u8 = 64;
        const COMPLETED_XA: u8 = 128;
        let mut r = Reader::new(body);
        let sequence = r.u64()?;
        let domain = r.u32()?;
        let flags = r.u8()?;
        Ok(Self {
            gtid: Some(Gtid::MariaDb {
                domain,
                server,
                sequence,
            }),
            committed: None,
            standalone: flags & STANDALONE != 0,
            xa: flags & (PREPARED_XA | COMPLETED_XA) != 0,
        })
    }
}

/// An integer whose first byte begins (from the lowest bit) with as many ones as bytes follow.
pub(super) fn varlen(r: &mut Reader<'_>) -> BinlogResult<u64> {
    let first = r.u8()?;
    let more = first.trailing_ones() as usize;
    let mut bytes = [0; 8];
    bytes[..more].copy_from_slice(r.bytes(more)?);
    let rest = u64::from_le_bytes(bytes);
    Ok(match more {
        8 => rest,
        // The eighth bit is the zero that ends the ones.
        7 => rest,
        _ => u64::from(first) >> (more + 1) | rest << (7 - more),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: u8, size: u32, end: u32, flags: u16) -> EventHead {
        EventHead {
            timestamp: 0,
            kind,
            server_id: 1,
            size,
            end,
            flags,
        }
    }

    #[test]
    fn offsets_beyond_four_gibibytes_are_followed() {
        let mut offset = 4;
        for end in [100, 0xffff_fff0, 16, 200] {
            offset = head(kind::QUERY, 50, end, 0).behind(offset);
        }
        assert_eq!(offset, (1 << 32) + 200);
        let before = (1 << 32) - 100;
        assert_eq!(head(kind::XID, 100, 0, 0).behind(before), 1 << 32);
    }

    #[test]
    fn an_event_that_does_not_know_its_end_is_in_the_file() {
        let mut offset = 663;
        for (kind, size, end) in [
            (kind::MARIA_ANNOTATE_ROWS, 55, 0),
            (kind::TABLE_MAP, 46, 0),
            (kind::WRITE_ROWS_V1, 41, 0),
            (kind::XID, 31, 836),
        ] {
            let event = head(kind, size, end, 0);
            assert!(!event.is_artificial());
            offset = event.behind(offset);
        }
        assert_eq!(offset, 836);
        for (kind, flags) in [
            (kind::FORMAT_DESCRIPTION, 0),
            (kind::ROTATE, 0),
            (kind::HEARTBEAT, 0),
            (kind::MARIA_GTID_LIST, ARTIFICIAL),
            (kind::QUERY, ARTIFICIAL),
        ] {
            let event = head(kind, 100, 0, flags);
            assert!(event.is_artificial());
            assert_eq!(event.behind(offset), 836, "{event:?}");
        }
    }

    #[test]
    fn a_file_name_leads_nowhere_else() {
        let body = |name: &str| [&4u64.to_le_bytes(), name.as_bytes()].concat();
        for name in ["binlog.000001", "my.bin.1000000", "Größe-bin.000002"] {
            assert_eq!(decode_rotate(&body(name)).unwrap(), (name.to_owned(), 4));
        }
        let long = "b".repeat(300);
        for name in [
            "",
            "../binlog.000001",
            "/etc/cron.d/binlog.000001",
            "a/../../b.000001",
            "..",
            ".ssh.000001",
            "b\\c.000001",
            "b\0.000001",
            "b\n.000001",
            "\u{1b}[2J.000001",
            &long,
        ] {
            assert!(decode_rotate(&body(name)).is_err(), "{name:?}");
        }
    }

    #[test]
    fn integers_of_variable_length() {
        for (bytes, value) in [
            (&[0u8][..], 0u64),
            (&[2], 1),
            (&[0xfe], 127),
            (&[0x01, 0x02], 128),
            (&[0xfd, 0xff], 16383),
            (&[0x7f, 1, 0, 0, 0, 0, 0, 1], 0x0001_0000_0000_0001),
            (&[0xff, 1, 2, 3, 4, 5, 6, 7, 8], 0x0807_0605_0403_0201),
        ] {
            assert_eq!(
                varlen(&mut Reader::new(bytes)).unwrap(),
                value,
                "{bytes:x?}"
            );
        }
        assert!(varlen(&mut Reader::new(&[0xff, 1])).is_err());
    }

    #[test]
    fn a_head_of_another_size_is_refused() {
        let mut event = vec![0; HEAD + 2];
        event[9] = 21;
        assert_eq!(EventHead::decode(&event).unwrap().size, 21);
        event.push(0);
        assert!(EventHead::decode(&event).is_err());
    }
}
