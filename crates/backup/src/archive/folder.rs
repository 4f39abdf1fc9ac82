//! The segments of a folder, in the order of the log.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use onionskin_keys::StreamKey;

use super::{ArchiveError, SOURCE, Segment, segment::file_number};
use crate::{Header, Progress, StreamError, manifest::BinlogPosition, verify};

/// Finds the key that a header asks for.
pub type Keys<'a> = &'a dyn Fn(&Header) -> Result<StreamKey, StreamError>;

/// A segment's file by its name alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// Where its name says that it begins.
    pub place: BinlogPosition,
}

/// The segments of a folder by their names, in order; unfinished ones, and other files, are left out.
pub fn segments(folder: &Path) -> Result<Vec<Found>, ArchiveError> {
    let failed = |source| ArchiveError::File {
        path: folder.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if let Some(place) = entry.file_name().to_str().and_then(Segment::place_of) {
            found.push(Found {
                path: entry.path(),
                place,
            });
        }
    }
    found.sort_by_key(|found| (file_number(&found.place.file), found.place.position));
    Ok(found)
}

/// What the authenticated manifest of a segment says.
pub fn read_segment(found: &Found, keys: Keys<'_>) -> Result<Segment, ArchiveError> {
    let name = found.path.display().to_string();
    let file = File::open(&found.path).map_err(|source| ArchiveError::File {
        path: found.path.clone(),
        source,
    })?;
    let verified =
        verify(file, keys, None, &Progress::new()).map_err(|source| ArchiveError::Stream {
            name: name.clone(),
            source,
        })?;
    let manifest = verified.footer.manifest;
    match manifest.segment {
        // A segment under another's name would hide a gap.
        Some(segment) if manifest.source == SOURCE && segment.first == found.place => Ok(segment),
        _ => Err(ArchiveError::NotASegment(name)),
    }
}

/// Whether `next` goes on where `before` ends, on the same server.
pub fn check_link(before: &Segment, next: &Segment) -> Result<(), ArchiveError> {
    if before.server() != next.server() {
        return Err(ArchiveError::OtherServer {
            archived: before.server(),
            server: next.server(),
        });
    }
    if before.next != next.first {
        return Err(ArchiveError::Gap {
            after: place_text(&before.next),
            found: place_text(&next.first),
        });
    }
    Ok(())
}

/// `binlog.000003:4`
pub fn place_text(place: &BinlogPosition) -> String {
    format!("{}:{}", place.file, place.position)
}
