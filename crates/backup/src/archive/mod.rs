//! The binlog archive: what a server writes to its binlog, kept in a folder as sealed segments.
//!
//! The archive follows the server as a replica does, so it needs no access to its disks, reads
//! encrypted binlogs (the server decrypts what it sends), and is not in the way of a commit. A
//! segment is a piece of one binlog file, from one border of transactions to another; opened, it is
//! a binlog file of its own that `mysqlbinlog` and `mariadb-binlog` read.
//!
//! | module | what it is |
//! |---|---|
//! | [`segment`] | what a segment's manifest says: server, places, GTIDs, times |
//! | [`folder`] | the segments of a folder, in order and without gaps |
//! | [`reader`](self) | from the server's events to the bytes of segments |
//! | [`note`](self) | what a segment holds, in the clear beside it, where it is sealed to recipients |
//! | [`writer`] | seals one segment after the other, resumes, connects again |
//! | [`replay`] | from segments to the events between a place and a point in time |
//! | [`statements`] | which statements a server's binlog may hold |
//!
//! # What is promised
//!
//! - A segment is there whole or not at all: it has its name when it is sealed, synced and renamed.
//!   What was cut off is fetched again from where the last whole segment ends. An unfinished one is
//!   `.NAME.RANDOM.partial`.
//! - A gap is an error with a name, when segments are written (the server has removed what comes
//!   next, or is another one) and when they are read (a file is missing).
//! - What has not been sealed yet exists on the server only: at most as long as a segment may be
//!   open.

pub mod folder;
mod note;
mod reader;
pub mod replay;
pub mod segment;
pub mod statements;
pub mod writer;

use std::{io, path::PathBuf};

use onionskin_rowstream::{binlog::BinlogError, client::ClientError};

use crate::{StreamError, manifest::BinlogPosition};

pub use segment::Segment;
pub use writer::{ArchiveKeys, ArchiveOptions, archive};

/// The `source` in the manifest of a segment.
pub const SOURCE: &str = "binlog";

/// Why the archive cannot go on, or cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// A file or folder.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another process archives into this folder.
    #[error("{} is in use by another archiver", .0.display())]
    InUse(PathBuf),
    /// The server's binlog.
    #[error("{0}")]
    Binlog(#[from] BinlogError),
    /// A segment cannot be sealed or opened.
    #[error("{name}: {source}")]
    Stream {
        /// The segment.
        name: String,
        /// What is wrong.
        source: StreamError,
    },
    /// A sealed stream that is no segment.
    #[error("{0} is not a segment of a binlog archive")]
    NotASegment(String),
    /// A segment to recipients, and nothing says in the clear where it ends.
    #[error(
        "{} is sealed to recipients, so this machine cannot read where it ends, and {} is not beside it, which says so: put that file back, or name an identity once with --identity, or begin a new archive in another folder with a new backup",
        segment.display(), note.display()
    )]
    NoNote {
        /// The newest segment.
        segment: PathBuf,
        /// The file that is missing.
        note: PathBuf,
    },
    /// What lies beside a segment is not of that segment.
    #[error("{} is not what this program has written beside the newest segment: {why}", path.display())]
    OtherNote {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
    /// Segments that do not follow each other.
    #[error(
        "the archive has a gap: after {after} comes {found}; put the missing segments back, or begin a new archive with a new backup"
    )]
    Gap {
        /// Where the last segment before it ends.
        after: String,
        /// What follows.
        found: String,
    },
    /// The server no longer has what comes next.
    #[error(
        "the server no longer has its binlog from {0} on, so the archive would have a gap: begin a new archive in another folder with a new backup ({1})"
    )]
    Purged(String, String),
    /// The folder holds the binlog of another server.
    #[error(
        "the folder holds the binlog of another server ({archived}), this is {server}: use another folder"
    )]
    OtherServer {
        /// Of the segments.
        archived: String,
        /// Of the server.
        server: String,
    },
    /// The server has begun its binlog anew.
    #[error(
        "the server's {0} is not the file that the archive holds the beginning of: its binlog was reset; begin a new archive in another folder with a new backup"
    )]
    Reset(String),
    /// A file ends within a transaction.
    #[error(
        "the server's {} ends within a transaction, which begins at {}: let mariadb-binlog or mysqlbinlog look at that file; if the server cannot finish it, begin a new archive in another folder with a new backup",
        .0.file, .0.position
    )]
    Torn(BinlogPosition),
    /// GTIDs are missing between two files.
    #[error(
        "GTIDs are missing: {file} begins after {begins}, but the archive has come to {archived}"
    )]
    MissingGtids {
        /// The file that begins.
        file: String,
        /// What was executed before it.
        begins: String,
        /// What the archive holds.
        archived: String,
    },
    /// A backup and an archive that do not belong together.
    #[error("the archive is not of the server that the backup was made of: {0}")]
    OtherBackup(String),
    /// Where the backup ends cannot be found in the archive for certain.
    #[error(
        "the archive cannot be replayed behind the backup: {0}; nothing was restored: use the archive that was made of the backup's \
         server at that time, or a newer backup, or leave --binlogs out, which restores the backup alone"
    )]
    NoBorder(String),
    /// What no server writes to its binlog.
    #[error(
        "{place} holds {what}, and no server writes that to its binlog by itself: somebody has changed the file, and nothing of it \
         is run; open the segment with `onionskin open` and look at it with mariadb-binlog or mysqlbinlog; --until {until} \
         restores what comes before it"
    )]
    Refused {
        /// Where it stands.
        place: String,
        /// What it is.
        what: String,
        /// Where its transaction begins.
        until: String,
    },
    /// The wanted point is not between the backup and the end of the archive.
    #[error("{0}")]
    Point(String),
}

impl From<ClientError> for ArchiveError {
    fn from(error: ClientError) -> Self {
        Self::Binlog(error.into())
    }
}

impl ArchiveError {
    /// Whether connecting again may help.
    pub fn is_disconnect(&self) -> bool {
        match self {
            Self::Binlog(BinlogError::Client(ClientError::Server { code, .. })) => {
                // The server shuts down, has too many connections, or ended ours.
                matches!(code, 1040 | 1053 | 1077 | 1927 | 3169)
            }
            Self::Binlog(error) => error.is_disconnect() || error.is_unanswered(),
            _ => false,
        }
    }
}
