//! Where the archive has come to, for an archiver that cannot read its own segments.
//!
//! Who seals to recipients has no key that opens what he has sealed. So the newest segment has a
//! file beside it, `.NAME.note`: what its manifest says, in the clear, and the id of its stream. It
//! is there before the segment has its name, and goes when the next one has.
//!
//! It tells places, GTIDs and times to whoever sees the folder, and is not authenticated: whoever
//! can change it can have the archive go on elsewhere. That is a gap, or an overlap, and shows when
//! the segments are read, which are authentic. He could have removed segments as well.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{ArchiveError, Segment, folder::Found};
use crate::{Header, whole_folder::parent_of};

/// What the names of notes end with.
pub(super) const NOTE: &str = ".note";
/// Longest note in bytes. GTID sets may be long.
const LIMIT: u64 = 16 << 20;
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Note {
    version: u32,
    /// See [`Header::id`].
    stream: String,
    segment: Segment,
}

/// The note's file beside a segment.
pub(super) fn path_of(segment: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(segment.file_name().unwrap_or_default());
    name.push(NOTE);
    segment.with_file_name(name)
}

/// Writes the note of a segment. It is on disk when this returns.
pub(super) fn write(path: &Path, header: &Header, segment: &Segment) -> Result<(), ArchiveError> {
    let note = path_of(path);
    let failed = |source| ArchiveError::File {
        path: note.clone(),
        source,
    };
    let content = Note {
        version: VERSION,
        stream: header.id(),
        segment: segment.clone(),
    };
    let text = serde_json::to_vec_pretty(&content).map_err(|error| failed(error.into()))?;
    let mut unfinished = note.clone().into_os_string();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    // What a killed archiver has left; we hold the folder's lock.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)
        .map_err(failed)?;
    file.write_all(&text).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    fs::rename(&unfinished, &note).map_err(failed)?;
    File::open(parent_of(&note))
        .and_then(|folder| folder.sync_all())
        .map_err(failed)
}

/// The note of a segment with this header; `None` if there is none.
pub(super) fn read(found: &Found, header: &Header) -> Result<Option<Segment>, ArchiveError> {
    let path = path_of(&found.path);
    let mut text = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(LIMIT).read_to_end(&mut text));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(ArchiveError::File { path, source }),
        Ok(_) => {}
    }
    let other = |why| ArchiveError::OtherNote {
        path: path.clone(),
        why,
    };
    let note: Note =
        serde_json::from_slice(&text).map_err(|_| other("it is damaged, or of another version"))?;
    if note.version != VERSION {
        return Err(other("it is of another version"));
    }
    if note.stream != header.id() || note.segment.first != found.place {
        return Err(other("it tells of another segment"));
    }
    Ok(Some(note.segment))
}

/// Removes notes in a folder, but that of the newest segment.
pub(super) fn remove_old(folder: &Path, newest: Option<&Path>) -> Result<(), ArchiveError> {
    let failed = |path: PathBuf| |source| ArchiveError::File { path, source };
    let kept = newest.map(path_of);
    for entry in fs::read_dir(folder).map_err(failed(folder.to_owned()))? {
        let path = entry.map_err(failed(folder.to_owned()))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let is_note = name
            .and_then(|name| name.strip_prefix('.')?.strip_suffix(NOTE))
            .is_some_and(|name| Segment::place_of(name).is_some());
        if is_note && Some(&path) != kept.as_ref() {
            fs::remove_file(&path).map_err(failed(path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FrameSize, KeySource, manifest::BinlogPosition};
    use onionskin_keys::Suite;

    fn place(position: u64) -> BinlogPosition {
        BinlogPosition {
            file: "binlog.000001".into(),
            position,
        }
    }

    fn segment(position: u64) -> Segment {
        Segment {
            server_id: 1,
            server_uuid: None,
            first: place(position),
            next: place(position + 9),
            file_created: 0,
            gtid_before: None,
            gtid_after: Some("0-1-9".into()),
            transactions: 1,
            first_commit: Some(1),
            last_commit: Some(2),
        }
    }

    fn header(random: u8) -> Header {
        let source = KeySource::Recipients(1);
        Header::new(Suite::Aes, FrameSize::DEFAULT, source, [random; 32])
    }

    #[test]
    fn a_note_is_of_one_segment() {
        let folder = tempfile::tempdir().unwrap();
        let found = |position| Found {
            path: folder.path().join(Segment::file_name(&place(position))),
            place: place(position),
        };
        let (own, other) = (found(4), found(13));
        assert_eq!(read(&own, &header(1)).unwrap(), None);
        for _ in 0..2 {
            // The second time over what a killed archiver has left.
            write(&own.path, &header(1), &segment(4)).unwrap();
            assert_eq!(read(&own, &header(1)).unwrap(), Some(segment(4)));
        }
        let refused = |found: &Found, header: &Header| {
            let error = read(found, header).unwrap_err();
            assert!(matches!(error, ArchiveError::OtherNote { .. }), "{error}");
        };
        refused(&own, &header(2));
        fs::copy(path_of(&own.path), path_of(&other.path)).unwrap();
        refused(&other, &header(1));
        fs::write(path_of(&other.path), b"{}").unwrap();
        refused(&other, &header(1));

        fs::write(folder.path().join(".other.note"), b"not ours").unwrap();
        remove_old(folder.path(), Some(&own.path)).unwrap();
        assert_eq!(read(&own, &header(1)).unwrap(), Some(segment(4)));
        assert_eq!(read(&other, &header(1)).unwrap(), None);
        assert!(folder.path().join(".other.note").exists());
    }
}
