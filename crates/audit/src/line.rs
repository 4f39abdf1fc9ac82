//! Lines: what they say, and how they are linked and sealed.
//!
//! ```text
//! {"run":"5c0e…","n":17,"time":"2026-11-27T20:16:08.123456Z","record":"statement",…,"link":"9f…"}
//! link = SHA-256(link before ‖ all bytes of the line before `,"link"`)
//! {"run":"5c0e…",…,"record":"head","seal":"07…","link":"ab…"}
//! seal = the audit key's, of (link before ‖ all bytes of the line before `,"seal"`)
//! ```

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest;
use chrono::{DateTime, SecondsFormat, Utc};
use onionskin_crypt::{AuditKey, METADATA_TAG_LEN};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

/// The time of day, to microseconds.
pub(crate) fn now() -> DateTime<Utc> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.map_or(0, |since| since.as_micros());
    i64::try_from(micros)
        .ok()
        .and_then(DateTime::from_timestamp_micros)
        .unwrap_or(DateTime::UNIX_EPOCH)
}

/// Length of a link in bytes.
pub(crate) const LINK: usize = 32;

/// What a line is linked by.
pub(crate) type Link = [u8; LINK];

/// What the first line of a run is linked to.
pub(crate) const NO_LINK: Link = [0; LINK];

/// `,"link":"` and `"}` around the hexadecimal link.
const LINK_BEFORE: &[u8] = b",\"link\":\"";
const LINK_BEHIND: &[u8] = b"\"}";
const SEAL_BEFORE: &[u8] = b",\"seal\":\"";
const SEAL_BEHIND: &[u8] = b"\"";

/// A column and how many of its cells were read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// `database.table.column`.
    pub column: String,
    /// Cells.
    pub cells: u64,
}

/// A statement that read, wrote or named protected columns. None of it is a value.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Statement<'a> {
    /// The session's connection at the server.
    pub session: u32,
    /// Who: the account as the server authenticated it, with its active roles.
    pub account: &'a str,
    /// From where.
    pub client: &'a str,
    /// What the client's program says of itself (connection attributes).
    #[serde(serialize_with = "pairs", skip_serializing_if = "<[_]>::is_empty")]
    pub attributes: &'a [(String, String)],
    /// The session's database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<&'a str>,
    /// As in the metrics.
    pub tier: &'a str,
    /// As in the metrics.
    pub kind: &'a str,
    /// Digest of the statement without its values. A line of record `shape` has its text.
    pub shape: String,
    /// Cells that were decrypted, by column.
    #[serde(serialize_with = "counts", skip_serializing_if = "<[_]>::is_empty")]
    pub opened: &'a [Count],
    /// Cells that were encrypted, by column.
    #[serde(serialize_with = "counts", skip_serializing_if = "<[_]>::is_empty")]
    pub sealed: &'a [Count],
    /// The other protected columns that the statement names, as in its conditions.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub named: &'a [String],
    /// Rows that the server has sent for it.
    pub rows: u64,
    /// `ok`, or the error: a code of the proxy's, or a number of the server's.
    pub outcome: &'a str,
}

fn counts<S: Serializer>(counts: &[Count], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(counts.len()))?;
    for count in counts {
        map.serialize_entry(&count.column, &count.cells)?;
    }
    map.end()
}

fn pairs<S: Serializer>(pairs: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(pairs.len()))?;
    for (name, value) in pairs {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

/// The end of a run that was killed, as the run behind it found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FoundEnd {
    pub run: String,
    pub n: u64,
    pub link: String,
}

/// What a line says.
#[derive(Serialize)]
#[serde(tag = "record", rename_all = "lowercase")]
pub(crate) enum Record<'a> {
    /// The first line of a part. `after` is the link of the last line of the part before it.
    Opened {
        part: u32,
        after: &'a str,
        version: &'a str,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        found: &'a [FoundEnd],
    },
    Statement(&'a Statement<'a>),
    Shape {
        shape: &'a str,
        text: &'a str,
    },
    /// Statements that could not be recorded.
    Lost {
        statements: u64,
    },
    Head,
    /// The last line of a part that goes on in another one.
    Turned,
    /// The last line of a run.
    Closed,
}

impl Record<'_> {
    /// What stands in the field `record`.
    fn name(&self) -> &'static str {
        match self {
            Record::Opened { .. } => "opened",
            Record::Statement(_) => "statement",
            Record::Shape { .. } => "shape",
            Record::Lost { .. } => "lost",
            Record::Head => "head",
            Record::Turned => "turned",
            Record::Closed => "closed",
        }
    }
}

/// Whether lines of this record carry a seal.
pub(crate) fn is_sealed(record: &str) -> bool {
    matches!(record, "opened" | "lost" | "head" | "turned" | "closed")
}

#[derive(Serialize)]
struct Whole<'a> {
    run: &'a str,
    n: u64,
    time: String,
    #[serde(flatten)]
    record: &'a Record<'a>,
}

/// Appends a line and returns its link.
pub(crate) fn put(
    out: &mut Vec<u8>,
    key: &AuditKey,
    before: &Link,
    run: &str,
    n: u64,
    time: DateTime<Utc>,
    record: &Record,
) -> Link {
    let start = out.len();
    let whole = Whole {
        run,
        n,
        time: time.to_rfc3339_opts(SecondsFormat::Micros, true),
        record,
    };
    // Writing to memory fails only where a map has keys that are no texts.
    serde_json::to_writer(&mut *out, &whole).expect("texts and numbers");
    out.pop();
    if is_sealed(record.name()) {
        let seal = seal(key, before, &out[start..]);
        out.extend_from_slice(SEAL_BEFORE);
        put_hex(out, &seal);
        out.extend_from_slice(SEAL_BEHIND);
    }
    let link = link(before, &out[start..]);
    out.extend_from_slice(LINK_BEFORE);
    put_hex(out, &link);
    out.extend_from_slice(LINK_BEHIND);
    out.push(b'\n');
    link
}

fn link(before: &Link, body: &[u8]) -> Link {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(before);
    context.update(body);
    let mut link = NO_LINK;
    link.copy_from_slice(context.finish().as_ref());
    link
}

fn seal(key: &AuditKey, before: &Link, body: &[u8]) -> [u8; METADATA_TAG_LEN] {
    key.seal(&[before, body].concat())
}

/// The digest of a shape.
pub(crate) fn digest_of(text: &str) -> String {
    hex(&digest::digest(&digest::SHA256, text.as_bytes()).as_ref()[..16])
}

/// A line that was read.
#[derive(Debug)]
pub(crate) struct Parsed<'a> {
    /// All bytes of the line before `,"link"`.
    body: &'a [u8],
    pub link: Link,
    pub says: Says,
}

/// What verification looks at.
#[derive(Debug, Deserialize)]
pub(crate) struct Says {
    pub record: String,
    pub run: String,
    pub n: u64,
    pub time: DateTime<Utc>,
    pub part: Option<u32>,
    pub after: Option<String>,
    #[serde(default)]
    pub found: Vec<FoundEnd>,
    pub statements: Option<u64>,
    seal: Option<String>,
}

impl<'a> Parsed<'a> {
    /// Reads a line, without its end; `None` if it is none.
    pub fn read(line: &'a [u8]) -> Option<Parsed<'a>> {
        let rest = line.strip_suffix(LINK_BEHIND)?;
        let (rest, hex) = rest.split_at_checked(rest.len().checked_sub(2 * LINK)?)?;
        let body = rest.strip_suffix(LINK_BEFORE)?;
        let link = link_of(hex)?;
        let says = serde_json::from_slice(line).ok()?;
        Some(Parsed { body, link, says })
    }

    /// Whether it follows the line of that link.
    pub fn follows(&self, before: &Link) -> bool {
        link(before, self.body) == self.link
    }

    /// Whether it has the seal that its record asks for, if it asks for one.
    pub fn has_its_seal(&self, before: &Link, key: &AuditKey) -> bool {
        if !is_sealed(&self.says.record) {
            return true;
        }
        let taken_apart = || {
            let rest = self.body.strip_suffix(SEAL_BEHIND)?;
            let (rest, hex) =
                rest.split_at_checked(rest.len().checked_sub(2 * METADATA_TAG_LEN)?)?;
            let sealed = rest.strip_suffix(SEAL_BEFORE)?;
            let seal: [u8; METADATA_TAG_LEN] = bytes_of(hex)?;
            // the parser and these bytes must mean the same field
            (self.says.seal.as_deref()?.as_bytes() == hex).then_some((sealed, seal))
        };
        taken_apart()
            .is_some_and(|(sealed, seal)| key.verify(&[&before[..], sealed].concat(), &seal))
    }
}

/// What was said of a run in the file of heads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Noted {
    pub run: String,
    pub n: u64,
    pub time: DateTime<Utc>,
    pub link: String,
    pub closed: bool,
}

const NOTED: &[u8] = b"onionskin audit head\0";

impl Noted {
    /// Appends it as a line.
    pub fn put(&self, out: &mut Vec<u8>, key: &AuditKey) {
        let start = out.len();
        serde_json::to_writer(&mut *out, self).expect("texts and numbers");
        out.pop();
        let seal = key.seal(&[NOTED, &out[start..]].concat());
        out.extend_from_slice(SEAL_BEFORE);
        put_hex(out, &seal);
        out.extend_from_slice(b"\"}\n");
    }

    /// Reads a line; `None` if it is none, or not sealed by this key.
    pub fn read(line: &[u8], key: &AuditKey) -> Option<Noted> {
        let rest = line.strip_suffix(b"\"}")?;
        let (rest, hex) = rest.split_at_checked(rest.len().checked_sub(2 * METADATA_TAG_LEN)?)?;
        let sealed = rest.strip_suffix(SEAL_BEFORE)?;
        let seal: [u8; METADATA_TAG_LEN] = bytes_of(hex)?;
        if !key.verify(&[NOTED, sealed].concat(), &seal) {
            return None;
        }
        serde_json::from_slice(line).ok()
    }
}

fn put_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| DIGITS[usize::from(half)];
    out.extend(
        bytes
            .iter()
            .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]),
    );
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    put_hex(&mut out, bytes);
    out.into_iter().map(char::from).collect()
}

/// A link from its hexadecimal form.
pub(crate) fn link_of(hex: &[u8]) -> Option<Link> {
    bytes_of(hex)
}

/// Only small letters: each value has one form.
fn bytes_of<const N: usize>(hex: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if hex.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}
