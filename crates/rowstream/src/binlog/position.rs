//! Places in the binlog: by file and offset, and by GTIDs of both families.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use onionskin_wire::Reader;

use super::error::{BinlogError, BinlogResult};
use super::event::varlen;

/// Where to go on: the end of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Name of the binlog file, without a folder.
    pub file: Arc<str>,
    /// Offset in bytes of the next event.
    pub offset: u64,
    /// All transactions up to here, where they are known: a stream that began in the middle of a
    /// file without this knowledge goes on without it until the next file begins.
    pub gtid: Option<GtidPosition>,
}

impl Position {
    /// A place in a file; 4 is the first event.
    pub fn new(file: &str, offset: u64) -> Self {
        Self {
            file: file.into(),
            offset,
            gtid: None,
        }
    }

    /// The same with what has been executed up to there.
    pub fn with_gtid(self, gtid: Option<GtidPosition>) -> Self {
        Self { gtid, ..self }
    }

    /// A position by GTIDs alone: the server finds the file.
    pub fn of_gtid(gtid: GtidPosition) -> Self {
        Self {
            file: "".into(),
            offset: 4,
            gtid: Some(gtid),
        }
    }

    /// Compares by file number and offset; `None` if the files belong to different sequences.
    pub fn order(&self, other: &Self) -> Option<std::cmp::Ordering> {
        let (base, number) = self.file.rsplit_once('.')?;
        let (other_base, other_number) = other.file.rsplit_once('.')?;
        if base != other_base {
            return None;
        }
        let number: u64 = number.parse().ok()?;
        let other_number: u64 = other_number.parse().ok()?;
        Some((number, self.offset).cmp(&(other_number, other.offset)))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

/// The identity of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gtid {
    /// MySQL: the server's UUID, a tag since 8.3 (mostly empty), a number.
    MySql {
        /// UUID of the server where it was committed first.
        uuid: [u8; 16],
        /// Tag, empty for none.
        tag: String,
        /// Number, from 1.
        number: u64,
    },
    /// MariaDB: `domain-server-sequence`.
    MariaDb {
        /// Replication domain.
        domain: u32,
        /// Id of the server where it was committed first.
        server: u32,
        /// Number in the domain.
        sequence: u64,
    },
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MySql { uuid, tag, number } => {
                f.write_str(&format_uuid(uuid))?;
                if !tag.is_empty() {
                    write!(f, ":{tag}")?;
                }
                write!(f, ":{number}")
            }
            Self::MariaDb {
                domain,
                server,
                sequence,
            } => write!(f, "{domain}-{server}-{sequence}"),
        }
    }
}

impl std::str::FromStr for Gtid {
    type Err = BinlogError;

    /// Reads `UUID:number`, `UUID:tag:number` and `domain-server-sequence`.
    fn from_str(text: &str) -> BinlogResult<Self> {
        const BAD: BinlogError = BinlogError::Malformed("GTID");
        if let Some((uuid, rest)) = text.split_once(':') {
            let (tag, number) = rest.rsplit_once(':').unwrap_or(("", rest));
            let number = number.parse().map_err(|_| BAD)?;
            if number == 0 {
                return Err(BAD);
            }
            return Ok(Self::MySql {
                uuid: parse_uuid(uuid)?,
                tag: tag.to_ascii_lowercase(),
                number,
            });
        }
        let mut parts = text.split('-');
        let mut next = || parts.next().ok_or(BAD);
        let gtid = Self::MariaDb {
            domain: next()?.parse().map_err(|_| BAD)?,
            server: next()?.parse().map_err(|_| BAD)?,
            sequence: next()?.parse().map_err(|_| BAD)?,
        };
        match parts.next() {
            None => Ok(gtid),
            Some(_) => Err(BAD),
        }
    }
}

/// UUID of a server of MySQL and a tag: what numbers are counted for.
pub type SourceName = ([u8; 16], String);

/// Number of the form in which MySQL writes sets with tags.
const TAGGED: u64 = 1;

/// A set of executed transactions.
///
/// `Display` gives what the server's own variables show (`gtid_executed`, `gtid_binlog_pos`), and
/// `parse` reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GtidPosition {
    /// MySQL: for each UUID and tag the intervals of numbers, closed on both sides, ascending.
    MySql(BTreeMap<SourceName, Vec<(u64, u64)>>),
    /// MariaDB: for each domain the server and number of its last transaction.
    MariaDb(BTreeMap<u32, (u32, u64)>),
}

impl GtidPosition {
    /// Adds a transaction.
    pub fn add(&mut self, gtid: &Gtid) {
        match (self, gtid) {
            (Self::MySql(set), Gtid::MySql { uuid, tag, number }) => {
                let intervals = set.entry((*uuid, tag.clone())).or_default();
                add_number(intervals, *number);
            }
            (
                Self::MariaDb(domains),
                Gtid::MariaDb {
                    domain,
                    server,
                    sequence,
                },
            ) => {
                domains.insert(*domain, (*server, *sequence));
            }
            // A stream comes from one family.
            _ => {}
        }
    }

    /// Whether a transaction is in it. On MariaDB: whether its domain has come as far.
    pub fn contains(&self, gtid: &Gtid) -> bool {
        match (self, gtid) {
            (Self::MySql(set), Gtid::MySql { uuid, tag, number }) => set
                .get(&(*uuid, tag.clone()))
                .is_some_and(|all| all.iter().any(|(a, b)| (a..=b).contains(&number))),
            (
                Self::MariaDb(domains),
                Gtid::MariaDb {
                    domain, sequence, ..
                },
            ) => domains
                .get(domain)
                .is_some_and(|(_, last)| last >= sequence),
            _ => false,
        }
    }

    /// Whether all of another one is in it. On MariaDB: whether each domain has come as far.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::MySql(own), Self::MySql(other)) => other.iter().all(|(source, intervals)| {
                let own = own.get(source).map_or(&[][..], Vec::as_slice);
                let is_in = |&(from, to): &(u64, u64)| {
                    let at = own.partition_point(|(begin, _)| *begin <= from);
                    at > 0 && own[at - 1].1 >= to
                };
                intervals.iter().all(is_in)
            }),
            (Self::MariaDb(own), Self::MariaDb(other)) => {
                other.iter().all(|(domain, (_, wanted))| {
                    own.get(domain).is_some_and(|(_, last)| last >= wanted)
                })
            }
            _ => false,
        }
    }

    /// Reads `@@gtid_executed`.
    pub fn parse_mysql(text: &str) -> BinlogResult<Self> {
        const BAD: BinlogError = BinlogError::Malformed("GTID set");
        let mut set = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let mut words = part.split(':');
            let uuid = parse_uuid(words.next().unwrap_or_default())?;
            let mut tag = String::new();
            for word in words {
                if word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                    tag = word.to_ascii_lowercase();
                    continue;
                }
                let (from, to) = word.split_once('-').unwrap_or((word, word));
                let from: u64 = from.parse().map_err(|_| BAD)?;
                let to: u64 = to.parse().map_err(|_| BAD)?;
                let intervals: &mut Vec<(u64, u64)> = set.entry((uuid, tag.clone())).or_default();
                intervals.push((from, to));
            }
        }
        set.values_mut()
            .for_each(|intervals| intervals.sort_unstable());
        Ok(Self::MySql(set))
    }

    /// Reads `@@gtid_binlog_pos`.
    pub fn parse_mariadb(text: &str) -> BinlogResult<Self> {
        let mut domains = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            match part.parse()? {
                Gtid::MariaDb {
                    domain,
                    server,
                    sequence,
                } => domains.insert(domain, (server, sequence)),
                Gtid::MySql { .. } => return Err(BinlogError::Malformed("GTID position")),
            };
        }
        Ok(Self::MariaDb(domains))
    }

    /// Body of MySQL's PREVIOUS_GTIDS event. `None` if it is of a form that is not known here.
    ///
    /// A set without tags begins with the number of UUIDs. MySQL since 8.3 writes a set with tags
    /// in a form of its own: its number (1) stands in the lowest and in the highest byte, the
    /// number of entries in the six between, and every entry has a tag behind its UUID, with an
    /// integer of variable length before it.
    pub fn decode_mysql(body: &[u8]) -> BinlogResult<Option<Self>> {
        let mut r = Reader::new(body);
        let head = r.u64()?;
        let (count, tags) = match (head >> 56, head & 0xff) {
            (0, _) => (head, false),
            (TAGGED, TAGGED) => (head << 8 >> 16, true),
            _ => return Ok(None),
        };
        let mut set = BTreeMap::new();
        for _ in 0..count {
            let uuid = r.array()?;
            let mut tag = String::new();
            if tags {
                const BAD: BinlogError = BinlogError::Malformed("tag of a GTID");
                let length = usize::try_from(varlen(&mut r)?).map_err(|_| BAD)?;
                tag = String::from_utf8(r.bytes(length)?.to_vec()).map_err(|_| BAD)?;
            }
            let mut intervals = Vec::new();
            for _ in 0..r.u64()? {
                let (from, behind) = (r.u64()?, r.u64()?);
                if from == 0 || behind <= from {
                    return Err(BinlogError::Malformed("list of previous GTIDs"));
                }
                intervals.push((from, behind - 1));
            }
            set.insert((uuid, tag), intervals);
        }
        Ok(Some(Self::MySql(set)))
    }

    /// The set as COM_BINLOG_DUMP_GTID takes it, in the form of [`Self::decode_mysql`]; `None` of
    /// MariaDB's.
    pub(crate) fn encode_mysql(&self) -> Option<Vec<u8>> {
        let Self::MySql(set) = self else { return None };
        let count = set.len() as u64;
        let tags = set.keys().any(|(_, tag)| !tag.is_empty());
        let head = match tags {
            true => TAGGED << 56 | count << 8 | TAGGED,
            false => count,
        };
        let mut out = head.to_le_bytes().to_vec();
        for ((uuid, tag), intervals) in set {
            out.extend_from_slice(uuid);
            if tags {
                // At most 32 characters, so the length is in one byte, whose lowest bit says so.
                out.push(u8::try_from(tag.len()).ok().filter(|len| *len < 128)? << 1);
                out.extend_from_slice(tag.as_bytes());
            }
            out.extend_from_slice(&(intervals.len() as u64).to_le_bytes());
            for (from, to) in intervals {
                out.extend_from_slice(&from.to_le_bytes());
                out.extend_from_slice(&(to + 1).to_le_bytes());
            }
        }
        Some(out)
    }

    /// Body of MariaDB's GTID_LIST event.
    pub fn decode_mariadb(body: &[u8]) -> BinlogResult<Self> {
        let mut r = Reader::new(body);
        // The upper bits are flags.
        let count = r.u32()? & 0x0fff_ffff;
        let mut domains = BTreeMap::new();
        for _ in 0..count {
            let (domain, server, sequence) = (r.u32()?, r.u32()?, r.u64()?);
            // Every server that ever wrote is listed; the last of a domain is its position.
            domains.insert(domain, (server, sequence));
        }
        Ok(Self::MariaDb(domains))
    }
}

impl fmt::Display for GtidPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        let mut comma = |f: &mut fmt::Formatter<'_>| -> fmt::Result {
            if !std::mem::take(&mut first) {
                f.write_str(",")?;
            }
            Ok(())
        };
        match self {
            Self::MySql(set) => {
                let mut before = None;
                for ((uuid, tag), intervals) in set {
                    // Tags follow their server's numbers without naming it again.
                    if before.replace(uuid) != Some(uuid) {
                        comma(f)?;
                        f.write_str(&format_uuid(uuid))?;
                    }
                    if !tag.is_empty() {
                        write!(f, ":{tag}")?;
                    }
                    for (from, to) in intervals {
                        match from == to {
                            true => write!(f, ":{from}")?,
                            false => write!(f, ":{from}-{to}")?,
                        }
                    }
                }
            }
            Self::MariaDb(domains) => {
                for (domain, (server, sequence)) in domains {
                    comma(f)?;
                    write!(f, "{domain}-{server}-{sequence}")?;
                }
            }
        }
        Ok(())
    }
}

fn add_number(intervals: &mut Vec<(u64, u64)>, number: u64) {
    // Nearly always the next one of the last interval.
    let at = intervals.partition_point(|(from, _)| *from <= number);
    if at > 0 {
        let (_, to) = &mut intervals[at - 1];
        if *to >= number {
            return;
        }
        if *to + 1 == number {
            *to = number;
            if let Some(&(from, end)) = intervals.get(at)
                && from == number + 1
            {
                intervals[at - 1].1 = end;
                intervals.remove(at);
            }
            return;
        }
    }
    match intervals.get_mut(at) {
        Some((from, _)) if *from == number + 1 => *from = number,
        _ => intervals.insert(at, (number, number)),
    }
}

fn format_uuid(uuid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

fn parse_uuid(text: &str) -> BinlogResult<[u8; 16]> {
    const BAD: BinlogError = BinlogError::Malformed("UUID of a GTID");
    let digits: Vec<u8> = text.trim().bytes().filter(|b| *b != b'-').collect();
    if digits.len() != 32 {
        return Err(BAD);
    }
    let mut uuid = [0; 16];
    for (byte, pair) in uuid.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| BAD)?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| BAD)?;
    }
    Ok(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    #[test]
    fn one_position_covers_another() {
        let mysql = |text: &str| {
            let text = text.replace('U', UUID);
            GtidPosition::parse_mysql(&text).unwrap()
        };
        for (own, other, is_so) in [
            ("U:1-9", "U:1-9", true),
            ("U:1-9", "U:2-3:7", true),
            ("U:1-3:7-9", "U:2-8", false),
            ("U:1-3", "U:4", false),
            ("", "U:1", false),
            ("U:1", "", true),
            ("U:1-9", "U:a:1", false),
        ] {
            assert_eq!(mysql(own).covers(&mysql(other)), is_so, "{own} {other}");
        }
        let mariadb = |text: &str| GtidPosition::parse_mariadb(text).unwrap();
        assert!(mariadb("0-1-7,2-1-1").covers(&mariadb("0-2-7")));
        assert!(!mariadb("0-1-7").covers(&mariadb("0-2-8")));
        assert!(!mariadb("0-1-7").covers(&mariadb("3-1-1")));
        assert!(!mariadb("0-1-7").covers(&mysql("U:1")));
    }

    #[test]
    fn intervals_grow_and_meet() {
        let mut set = GtidPosition::parse_mysql(&format!("{UUID}:1-3:7")).unwrap();
        for number in [5, 4, 3, 9, 8, 6] {
            set.add(&format!("{UUID}:{number}").parse().unwrap());
        }
        assert_eq!(set.to_string(), format!("{UUID}:1-9"));
        assert!(set.contains(&format!("{UUID}:9").parse().unwrap()));
        assert!(!set.contains(&format!("{UUID}:10").parse().unwrap()));
    }

    #[test]
    fn sets_are_read_and_written_as_the_servers_do() {
        for text in [
            format!("{UUID}:1-3:7"),
            format!("{UUID}:1:blue:1-2:red:7,4e11fa47-71ca-11e1-9e33-c80aa9429562:1"),
            String::new(),
        ] {
            assert_eq!(GtidPosition::parse_mysql(&text).unwrap().to_string(), text);
        }
        let text = "0-1-5,3-2-9";
        assert_eq!(GtidPosition::parse_mariadb(text).unwrap().to_string(), text);
        assert!(GtidPosition::parse_mariadb("0-1").is_err());
        assert!("0-1-2-3".parse::<Gtid>().is_err());
    }

    #[test]
    fn the_binary_set_reads_back() {
        for text in [
            "1-3:7",
            "1-3:7:blue:1-2:red:9",
            "blue:1",
            "blue:1,4e11fa47-71ca-11e1-9e33-c80aa9429562:5",
        ] {
            let set = GtidPosition::parse_mysql(&format!("{UUID}:{text}")).unwrap();
            let encoded = set.encode_mysql().unwrap();
            assert_eq!(
                GtidPosition::decode_mysql(&encoded).unwrap(),
                Some(set),
                "{text}"
            );
            for length in 0..encoded.len() {
                assert!(GtidPosition::decode_mysql(&encoded[..length]).is_err());
            }
        }
        // Other forms than these two may come.
        assert_eq!(
            GtidPosition::decode_mysql(&(2 << 56 | 2u64).to_le_bytes()).unwrap(),
            None
        );
    }

    #[test]
    fn a_set_with_tags_is_written_as_mysql_writes_it() {
        let set = GtidPosition::parse_mysql(&format!("{UUID}:1-3:blue:7")).unwrap();
        let uuid = parse_uuid(UUID).unwrap();
        let number = |n: u64| n.to_le_bytes();
        let untagged = [&uuid[..], &[0], &number(1), &number(1), &number(4)].concat();
        let tagged = [
            &uuid[..],
            &[4 << 1],
            b"blue",
            &number(1),
            &number(7),
            &number(8),
        ]
        .concat();
        let expected = [&[1, 2, 0, 0, 0, 0, 0, 1][..], &untagged, &tagged].concat();
        assert_eq!(set.encode_mysql().unwrap(), expected);
    }

    #[test]
    fn positions_are_ordered_by_the_number_of_the_file() {
        use std::cmp::Ordering::*;
        let at = |file, offset| Position::new(file, offset);
        assert_eq!(at("b.999999", 9).order(&at("b.1000000", 4)), Some(Less));
        assert_eq!(at("b.000001", 9).order(&at("b.000001", 4)), Some(Greater));
        assert_eq!(at("a.000001", 9).order(&at("b.000001", 4)), None);
    }
}
