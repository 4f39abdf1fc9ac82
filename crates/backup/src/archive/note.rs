//! Where the archive has come to, for an archiver that cannot read its own segments.
//!
//! Who seals to recipients has no key that opens what he has sealed. So the newest segment has a
//! file beside it, `.NAME.note`: what its manifest says, in the clear, and the id of its stream. It
//! is there before the segment has its name, and goes when the next one has.
//!
//! It tells places, GTIDs and times to whoever sees the folder, and is not authenticated: whoever
//! can change it can have the archive go on elsewhere. That is a gap, or an overlap, and shows when
//! the segments are read, which are authentic. He could have removed segments as well.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use super::{
    ArchiveError, Segment,
    folder::{Found, failed},
};
use crate::{Header, store::Store};

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

/// The name of the note beside a segment of this name.
pub(super) fn name_of(segment: &str) -> String {
    format!(".{segment}{NOTE}")
}

/// Writes the note of a segment. It is durable when this returns.
pub(super) fn write(
    store: &dyn Store,
    name: &str,
    header: &Header,
    segment: &Segment,
) -> Result<(), ArchiveError> {
    let note = name_of(name);
    let content = Note {
        version: VERSION,
        stream: header.id(),
        segment: segment.clone(),
    };
    serde_json::to_vec_pretty(&content)
        .map_err(io::Error::from)
        .and_then(|text| store.put(&note, &text))
        .map_err(|source| failed(store, &note, source))
}

/// The note of a segment with this header; `None` if there is none.
pub(super) fn read(
    store: &dyn Store,
    found: &Found,
    header: &Header,
) -> Result<Option<Segment>, ArchiveError> {
    let name = name_of(&found.file.name);
    let mut text = Vec::new();
    let read = store
        .open(&name)
        .and_then(|file| file.take(LIMIT).read_to_end(&mut text));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed(store, &name, source)),
        Ok(_) => {}
    }
    let path = store.path(&name);
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
pub(super) fn remove_old(store: &dyn Store, newest: Option<&str>) -> Result<(), ArchiveError> {
    let kept = newest.map(name_of);
    let files = store.list().map_err(|source| failed(store, "", source))?;
    for file in files {
        let name = file.name.strip_prefix('.');
        let is_note = name
            .and_then(|name| name.strip_suffix(NOTE))
            .is_some_and(|name| Segment::place_of(name).is_some());
        if is_note && Some(&file.name) != kept.as_ref() {
            remove(store, &file.name)?;
        }
    }
    Ok(())
}

/// Removes a note by its own name.
pub(super) fn remove(store: &dyn Store, note: &str) -> Result<(), ArchiveError> {
    let removed = store.remove(note);
    removed
        .map(drop)
        .map_err(|source| failed(store, note, source))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        FrameSize, KeySource,
        manifest::BinlogPosition,
        store::{Listed, LocalFolder},
    };
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
            gtid_purged: None,
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
        let store = LocalFolder::new(folder.path());
        let found = |position| Found {
            file: Listed {
                name: Segment::file_name(&place(position)),
                len: 0,
                state: None,
            },
            place: place(position),
        };
        let path_of = |found: &Found| folder.path().join(name_of(&found.file.name));
        let (own, other) = (found(4), found(13));
        assert_eq!(read(&store, &own, &header(1)).unwrap(), None);
        for _ in 0..2 {
            // The second time over what a killed archiver has left.
            write(&store, &own.file.name, &header(1), &segment(4)).unwrap();
            let noted = read(&store, &own, &header(1)).unwrap();
            assert_eq!(noted, Some(segment(4)));
        }
        let refused = |found: &Found, header: &Header| {
            let error = read(&store, found, header).unwrap_err();
            assert!(matches!(error, ArchiveError::OtherNote { .. }), "{error}");
        };
        refused(&own, &header(2));
        fs::copy(path_of(&own), path_of(&other)).unwrap();
        refused(&other, &header(1));
        fs::write(path_of(&other), b"{}").unwrap();
        refused(&other, &header(1));

        fs::write(folder.path().join(".other.note"), b"not ours").unwrap();
        remove_old(&store, Some(&own.file.name)).unwrap();
        let noted = read(&store, &own, &header(1)).unwrap();
        assert_eq!(noted, Some(segment(4)));
        assert_eq!(read(&store, &other, &header(1)).unwrap(), None);
        assert!(folder.path().join(".other.note").exists());
    }
}
