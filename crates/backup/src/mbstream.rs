//! The stream that mariadb-backup writes, seen as it goes by: which files are in it, and whether it
//! is complete.
//!
//! It is a sequence of chunks, numbers little-endian:
//!
//! ```text
//! "XBSTCK01" ‖ flags (1) ‖ type (1) ‖ length of the path (4) ‖ path
//!   type 'P', a piece of the file: length (8) ‖ offset in the file (8) ‖ CRC-32 (4) ‖ content
//!   type 'E', the end of the file: nothing more
//! ```
//!
//! Pieces of several files may be mixed. A chunk of another type ends the listing, and nothing is
//! claimed then: what goes by is sealed in any case. Unpacking such a stream is refused.
//!
//! Backups by the clone plugin are put into the same form ([`piece_head`], [`end_chunk`]), so that
//! mbstream and xbstream can unpack them, too.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::{BinlogPosition, LsnRange, Manifest, Member, Server, Table};

const MAGIC: &[u8; 8] = b"XBSTCK01";
/// Magic, flags, type, length of the path.
const CHUNK_HEAD_LEN: usize = 14;
/// Length, offset, checksum.
const PIECE_HEAD_LEN: usize = 20;
/// No name of a file is longer.
pub(crate) const MAX_PATH_LEN: usize = 4096;
/// What mariadb-backup says of itself and of the server; its name changed in MariaDB 11.
const INFO_FILES: [&str; 2] = ["xtrabackup_info", "mariadb_backup_info"];
/// It is about a kilobyte.
const MAX_INFO_LEN: u64 = 1 << 20;

/// What goes by.
pub(crate) enum Event<'a> {
    /// Some bytes of a file.
    Content {
        path: &'a str,
        /// Where in the file they belong.
        offset: u64,
        bytes: &'a [u8],
    },
    /// No more of this file will come.
    End { path: &'a str },
}

/// Follows a stream. Costs next to nothing: content is skipped, unless its checksums are wanted.
pub(crate) struct Scanner {
    state: State,
    /// Whether the checksum of every piece is computed.
    checking: bool,
    /// A head that has not come in whole.
    partial: Vec<u8>,
    files: BTreeMap<String, File>,
    info: Vec<u8>,
}

enum State {
    /// Before a chunk, or in its head.
    Head,
    /// In the content of a piece.
    Content(Piece),
    /// Not understood any more.
    Lost,
}

struct Piece {
    path: String,
    /// Where in the file the next byte belongs.
    offset: u64,
    left: u64,
    /// Whether the content is kept.
    info: bool,
    checksum: u32,
    hasher: crc32fast::Hasher,
}

#[derive(Default)]
struct File {
    size: u64,
    ended: bool,
}

/// What a head says.
enum Chunk {
    Piece {
        path: String,
        offset: u64,
        len: u64,
        checksum: u32,
    },
    End {
        path: String,
    },
}

/// Why there is no chunk yet, or none at all.
enum NoChunk {
    Incomplete,
    Unknown,
}

impl Scanner {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Head,
            checking: false,
            partial: Vec::new(),
            files: BTreeMap::new(),
            info: Vec::new(),
        }
    }

    /// One for which a piece with a wrong checksum is not a piece.
    pub(crate) fn checking() -> Self {
        Self {
            checking: true,
            ..Self::new()
        }
    }

    /// Whether all that came is a stream of this form, so far.
    pub(crate) fn is_mbstream(&self) -> bool {
        self.is_understood() && !self.files.is_empty()
    }

    /// Whether nothing else has come.
    pub(crate) fn is_understood(&self) -> bool {
        !matches!(self.state, State::Lost)
    }

    /// The next bytes of the stream.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut sink: impl FnMut(Event<'_>)) {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Lost => return,
                State::Content(piece) => {
                    let len = usize::try_from(piece.left)
                        .map_or(bytes.len(), |left| left.min(bytes.len()));
                    let (here, rest) = bytes.split_at(len);
                    if piece.info {
                        self.info.extend_from_slice(here);
                    }
                    if self.checking {
                        piece.hasher.update(here);
                    }
                    sink(Event::Content {
                        path: &piece.path,
                        offset: piece.offset,
                        bytes: here,
                    });
                    piece.offset = piece.offset.saturating_add(len as u64);
                    piece.left -= len as u64;
                    bytes = rest;
                    if piece.left == 0 {
                        let sound =
                            !self.checking || piece.hasher.clone().finalize() == piece.checksum;
                        self.state = if sound { State::Head } else { State::Lost };
                    }
                }
                State::Head => {
                    // Heads are few; one byte at a time is simple, and enough.
                    self.partial.push(bytes[0]);
                    bytes = &bytes[1..];
                    match parse(&self.partial) {
                        Ok(chunk) => self.begin(chunk, &mut sink),
                        Err(NoChunk::Incomplete) => {}
                        Err(NoChunk::Unknown) => self.state = State::Lost,
                    }
                }
            }
        }
    }

    fn begin(&mut self, chunk: Chunk, sink: &mut impl FnMut(Event<'_>)) {
        self.partial.clear();
        match chunk {
            Chunk::Piece {
                path,
                offset,
                len,
                checksum,
            } => {
                let end = offset.saturating_add(len);
                // All of it: a piece may come as often as a source likes.
                let kept = (self.info.len() as u64).saturating_add(len);
                let info = INFO_FILES.contains(&path.as_str()) && end.max(kept) <= MAX_INFO_LEN;
                let file = self.files.entry(path.clone()).or_default();
                file.size = file.size.max(end);
                if len > 0 {
                    self.state = State::Content(Piece {
                        path,
                        offset,
                        left: len,
                        info,
                        checksum,
                        hasher: crc32fast::Hasher::new(),
                    });
                }
            }
            Chunk::End { path } => {
                sink(Event::End { path: &path });
                self.files.entry(path).or_default().ended = true;
            }
        }
    }

    /// In one sentence, why a stream that ends here cannot be whole.
    pub(crate) fn missing(&self) -> Option<String> {
        if !matches!(self.state, State::Head) || !self.partial.is_empty() {
            return Some("its stream ends in the middle of a chunk".into());
        }
        let unfinished = self.files.iter().find(|(_, file)| !file.ended);
        unfinished.map(|(path, _)| format!("its stream ends before the file {path} does"))
    }

    /// What the stream held, once it has ended; or why it cannot be whole.
    pub(crate) fn finish(self, mut manifest: Manifest) -> Result<Manifest, String> {
        if matches!(self.state, State::Lost) {
            return Ok(manifest);
        }
        if let Some(reason) = self.missing() {
            return Err(reason);
        }
        if !INFO_FILES.iter().any(|name| self.files.contains_key(*name)) {
            return Err("its stream ends without the file that describes the backup".into());
        }
        describe(&mut manifest, &String::from_utf8_lossy(&self.info));
        manifest.tables = tables(&self.files);
        manifest.members = self
            .files
            .into_iter()
            .map(|(name, file)| Member {
                name,
                size: file.size,
                offset: None,
                digest: None,
            })
            .collect();
        Ok(manifest)
    }
}

fn parse(head: &[u8]) -> Result<Chunk, NoChunk> {
    let magic = head.len().min(MAGIC.len());
    if head[..magic] != MAGIC[..magic] {
        return Err(NoChunk::Unknown);
    }
    if head.len() < CHUNK_HEAD_LEN {
        return Err(NoChunk::Incomplete);
    }
    let path_len = number(&head[10..14]) as usize;
    if path_len == 0 || path_len > MAX_PATH_LEN {
        return Err(NoChunk::Unknown);
    }
    let rest = &head[CHUNK_HEAD_LEN..];
    let wanted = match head[9] {
        b'P' => path_len + PIECE_HEAD_LEN,
        b'E' => path_len,
        _ => return Err(NoChunk::Unknown),
    };
    if rest.len() < wanted {
        return Err(NoChunk::Incomplete);
    }
    let (path, piece) = rest.split_at(path_len);
    let path = std::str::from_utf8(path).map_err(|_| NoChunk::Unknown)?;
    let path = path.trim_start_matches("./").to_owned();
    Ok(match piece.is_empty() {
        true => Chunk::End { path },
        false => Chunk::Piece {
            path,
            len: number(&piece[..8]),
            offset: number(&piece[8..16]),
            // Four bytes.
            checksum: number(&piece[16..]) as u32,
        },
    })
}

/// Begins a chunk of type `kind`. The path must not be longer than [`MAX_PATH_LEN`].
fn chunk_head(kind: u8, path: &str) -> Vec<u8> {
    let len = (path.len() as u32).to_le_bytes();
    [&MAGIC[..], &[0, kind], &len, path.as_bytes()].concat()
}

/// What stands before `content`, which belongs at `offset` of the file.
pub(crate) fn piece_head(path: &str, offset: u64, content: &[u8]) -> Vec<u8> {
    let mut head = chunk_head(b'P', path);
    head.extend((content.len() as u64).to_le_bytes());
    head.extend(offset.to_le_bytes());
    head.extend(crc32fast::hash(content).to_le_bytes());
    head
}

/// The end of a file.
pub(crate) fn end_chunk(path: &str) -> Vec<u8> {
    chunk_head(b'E', path)
}

fn number(little_endian: &[u8]) -> u64 {
    let bytes = little_endian.iter().rev();
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Lines of `name = value`; of interest are the server's version and
/// `binlog_pos = filename 'binlog.000001', position '342', GTID of the last change '0-1-10'`.
fn describe(manifest: &mut Manifest, info: &str) {
    let value = |name: &str| {
        info.lines().find_map(|line| {
            let (found, value) = line.split_once('=')?;
            (found.trim() == name).then(|| value.trim())
        })
    };
    manifest.server = value("server_version").map(|version| Server::new("mariadb", version));
    let lsn = |name| value(name).and_then(|number| number.parse().ok());
    manifest.lsn = lsn("innodb_from_lsn")
        .zip(lsn("innodb_to_lsn"))
        .map(|(from, to)| LsnRange { from, to });
    let Some(position) = value("binlog_pos") else {
        return;
    };
    let quoted = |label: &str| {
        let (_, rest) = position.split_once(label)?;
        let (text, _) = rest.trim_start().strip_prefix('\'')?.split_once('\'')?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    manifest.gtid = quoted("GTID of the last change");
    manifest.binlog = quoted("filename")
        .zip(quoted("position").and_then(|position| position.parse().ok()))
        .map(|(file, position)| BinlogPosition { file, position });
}

/// Every table that has a definition file, with the size of all its files. Names are as the server
/// writes them in file names.
fn tables(files: &BTreeMap<String, File>) -> Vec<Table> {
    let stems: BTreeSet<&str> = files
        .keys()
        .filter_map(|path| path.strip_suffix(".frm"))
        .collect();
    let mut sizes: BTreeMap<&str, u64> = stems.iter().map(|stem| (*stem, 0)).collect();
    for (path, file) in files {
        let Some((stem, _)) = path.rsplit_once('.') else {
            continue;
        };
        // A partition's files are named TABLE#P#PARTITION.ibd.
        let stem = stem.split_once("#P#").map_or(stem, |(table, _)| table);
        if let Some(size) = sizes.get_mut(stem) {
            *size += file.size;
        }
    }
    sizes
        .into_iter()
        .filter_map(|(stem, size)| {
            let (database, name) = stem.split_once('/')?;
            Some(Table {
                database: database.into(),
                name: name.into(),
                size: Some(size),
                digest: None,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(path: &str, offset: u64, content: &[u8]) -> Vec<u8> {
        [&piece_head(path, offset, content), content].concat()
    }

    fn end(path: &str) -> Vec<u8> {
        end_chunk(path)
    }

    const INFO: &str = "uuid = x\nserver_version = 10.11.19-MariaDB-log\n\
        binlog_pos = filename 'binlog.000003', position '342', GTID of the last change '0-1-10'\n\
        innodb_from_lsn = 44404\ninnodb_to_lsn = 44500\n";

    fn whole() -> Vec<u8> {
        [
            piece("./app/t.frm", 0, b"definition"),
            end("./app/t.frm"),
            piece("app/t#P#a.ibd", 0, &[b'X'; 100]),
            piece("xtrabackup_info", 0, INFO.as_bytes()),
            // Content that looks like a chunk is content.
            piece("app/t#P#a.ibd", 100, &end("nothing")),
            end("app/t#P#a.ibd"),
            end("xtrabackup_info"),
            end("empty"),
        ]
        .concat()
    }

    fn scan(stream: &[u8], step: usize) -> Result<Manifest, String> {
        let mut scanner = Scanner::new();
        stream
            .chunks(step)
            .for_each(|chunk| scanner.feed(chunk, |_| {}));
        scanner.finish(Manifest::new("mariadb-backup"))
    }

    #[test]
    fn files_tables_and_positions() {
        for step in [1, 7, 1000] {
            let manifest = scan(&whole(), step).unwrap();
            let members: Vec<_> = manifest
                .members
                .iter()
                .map(|member| (member.name.as_str(), member.size))
                .collect();
            let info_len = INFO.len() as u64;
            assert_eq!(
                members,
                [
                    ("app/t#P#a.ibd", 121),
                    ("app/t.frm", 10),
                    ("empty", 0),
                    ("xtrabackup_info", info_len)
                ]
            );
            assert_eq!(manifest.tables.len(), 1);
            assert_eq!(manifest.tables[0].size, Some(131));
            assert_eq!(manifest.gtid.as_deref(), Some("0-1-10"));
            let position = manifest.binlog.unwrap();
            assert_eq!(
                (position.file.as_str(), position.position),
                ("binlog.000003", 342)
            );
            assert_eq!(manifest.server.unwrap().version, "10.11.19-MariaDB-log");
            let lsn = manifest.lsn.unwrap();
            assert_eq!((lsn.from, lsn.to), (44404, 44500));
        }
    }

    #[test]
    fn a_stream_that_was_cut_is_noticed_at_every_length() {
        let whole = whole();
        let ends = [whole.len(), whole.len() - end("empty").len()];
        for len in 0..whole.len() {
            assert_eq!(
                scan(&whole[..len], 50).is_ok(),
                ends.contains(&len),
                "{len}"
            );
        }
    }

    #[test]
    fn what_is_not_understood_is_not_listed() {
        let other = [&whole()[..], b"XBSTCK01\0S...."].concat();
        let manifest = scan(&other, 50).unwrap();
        assert!(manifest.members.is_empty() && manifest.tables.is_empty());
    }

    #[test]
    fn checksums_are_compared_where_that_is_wanted() {
        let whole = whole();
        for (scanner, sound) in [(Scanner::new(), true), (Scanner::checking(), false)] {
            let mut damaged = whole.clone();
            let at = memchr_of(&damaged, b"definition");
            damaged[at] ^= 1;
            let mut scanner = scanner;
            scanner.feed(&damaged, |_| {});
            assert_eq!(scanner.is_understood(), sound);
        }
        let mut scanner = Scanner::checking();
        whole
            .chunks(3)
            .for_each(|bytes| scanner.feed(bytes, |_| {}));
        assert!(scanner.is_mbstream() && scanner.missing().is_none());
    }

    fn memchr_of(bytes: &[u8], wanted: &[u8]) -> usize {
        let mut windows = bytes.windows(wanted.len());
        windows.position(|window| window == wanted).unwrap()
    }
}
