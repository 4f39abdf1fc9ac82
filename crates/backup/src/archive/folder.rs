//! The segments of a folder, in the order of the log.

use onionskin_keys::StreamKey;

use super::{ArchiveError, SOURCE, Segment, segment::order_in_log};
use crate::{
    Header, Progress, StreamError,
    manifest::BinlogPosition,
    store::{Listed, Opened, Store},
    verify,
};

/// Finds the key that a header asks for.
pub type Keys<'a> = &'a dyn Fn(&Header) -> Result<StreamKey, StreamError>;

/// Segments whose files are open at a time.
const AT_A_TIME: usize = 256;

/// A segment's file by its name alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub file: Listed,
    /// Where its name says that it begins.
    pub place: BinlogPosition,
}

/// The segments of a folder by their names, in order; unfinished ones, and other files, are left
/// out.
pub fn segments(store: &dyn Store) -> Result<Vec<Found>, ArchiveError> {
    let files = store.list().map_err(|source| failed(store, "", source))?;
    let mut found: Vec<Found> = (files.into_iter())
        .filter_map(|file| {
            let place = Segment::place_of(&file.name)?;
            Some(Found { file, place })
        })
        .collect();
    found.sort_by_key(|found| order_in_log(&found.place));
    Ok(found)
}

/// What the authenticated manifest of a segment says.
pub fn read_segment(
    store: &dyn Store,
    found: &Found,
    keys: Keys<'_>,
) -> Result<Segment, ArchiveError> {
    let file = store.open(&found.file.name);
    let file = file.map_err(|source| failed(store, &found.file.name, source))?;
    read_opened(store, found, file, keys)
}

/// What the authenticated manifests of many segments say, in their order.
pub fn read_segments<'a>(
    store: &'a dyn Store,
    found: Vec<Found>,
    keys: Keys<'a>,
) -> impl Iterator<Item = Result<(Found, Segment), ArchiveError>> + 'a {
    // Some at a time, which are opened at once.
    let mut rest = found;
    std::iter::from_fn(move || {
        let many = rest.len().min(AT_A_TIME);
        let some: Vec<Found> = rest.drain(..many).collect();
        let files: Vec<Listed> = some.iter().map(|found| found.file.clone()).collect();
        let read = |(found, opened): (Found, std::io::Result<Opened>)| {
            let file = opened.map_err(|source| failed(store, &found.file.name, source))?;
            let segment = read_opened(store, &found, file, keys)?;
            Ok((found, segment))
        };
        let read: Vec<_> = some
            .into_iter()
            .zip(store.open_all(&files))
            .map(read)
            .collect();
        (many > 0).then_some(read)
    })
    .flatten()
}

fn read_opened(
    store: &dyn Store,
    found: &Found,
    file: Opened,
    keys: Keys<'_>,
) -> Result<Segment, ArchiveError> {
    let name = store.path(&found.file.name).display().to_string();
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

/// An error about a file of the archive, or about its folder for an empty name.
pub(in crate::archive) fn failed(
    store: &dyn Store,
    name: &str,
    source: std::io::Error,
) -> ArchiveError {
    ArchiveError::File {
        path: store.path(name),
        source,
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

/// How many of an archive's segments, the oldest first, may go because everything in them was
/// committed before `limit`, in microseconds since 1970. The newest one stays: archiving goes on
/// from it. An empty segment goes with what comes behind it.
pub fn outlived(segments: &[Segment], limit: u64) -> usize {
    let newest = segments.len().saturating_sub(1);
    let mut count = 0;
    for (n, segment) in segments.iter().enumerate().take(newest) {
        match segment.last_commit {
            Some(commit) if commit >= limit => break,
            Some(_) => count = n + 1,
            None => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(last_commit: Option<u64>) -> Segment {
        let place = BinlogPosition {
            file: "binlog.000001".into(),
            position: 4,
        };
        Segment {
            server_id: 1,
            server_uuid: None,
            first: place.clone(),
            next: place,
            file_created: 0,
            gtid_before: None,
            gtid_after: None,
            gtid_purged: None,
            transactions: last_commit.map_or(0, |_| 1),
            first_commit: last_commit,
            last_commit,
        }
    }

    fn count(commits: &[Option<u64>], limit: u64) -> usize {
        let segments: Vec<Segment> = commits.iter().map(|commit| segment(*commit)).collect();
        outlived(&segments, limit)
    }

    #[test]
    fn only_the_oldest_go_and_the_newest_stays() {
        assert_eq!(count(&[], 9), 0);
        assert_eq!(count(&[Some(1)], 9), 0);
        assert_eq!(count(&[Some(1), Some(2), Some(3)], 3), 2);
        assert_eq!(count(&[Some(1), Some(2), Some(3)], 2), 1);
        assert_eq!(count(&[Some(1), Some(2), Some(3)], 9), 2);
        // a session may have set its clock: what is behind it stays
        assert_eq!(count(&[Some(1), Some(8), Some(2), Some(9)], 5), 1);
        assert_eq!(count(&[None, Some(1), None, Some(9)], 5), 2);
        assert_eq!(count(&[None, None], 5), 0);
    }
}
