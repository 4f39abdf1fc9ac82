//! Unpacks the stream of a physical backup into a directory, as it comes out of the sealed stream.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Component, Path, PathBuf},
};

use crate::mbstream::{Event, Scanner};

/// As many files are open at a time; pieces of several files may be mixed.
const MAX_OPEN: usize = 64;

/// Takes the content of a stream. An error of [`Write::write`] names the file that it is about.
pub(crate) struct Unpacker {
    scanner: Scanner,
    files: Files,
}

struct Files {
    folder: PathBuf,
    open: BTreeMap<String, File>,
}

impl Unpacker {
    /// Into an empty directory.
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            scanner: Scanner::checking(),
            files: Files {
                folder: folder.to_owned(),
                open: BTreeMap::new(),
            },
        }
    }

    /// In one sentence, why what came is not a whole backup.
    pub(crate) fn missing(&self) -> Option<String> {
        self.scanner.missing()
    }
}

impl Write for Unpacker {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = Ok(());
        let files = &mut self.files;
        self.scanner.feed(bytes, |event| {
            if written.is_ok() {
                written = files.take(event);
            }
        });
        written?;
        match self.scanner.is_understood() {
            true => Ok(bytes.len()),
            false => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the stream holds something else than pieces of files with their checksums",
            )),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Files {
    fn take(&mut self, event: Event<'_>) -> io::Result<()> {
        let (Event::Content { path, .. } | Event::End { path }) = event;
        let done = match event {
            Event::Content { offset, bytes, .. } => self
                .file(path)
                .and_then(|file| file.write_all_at(bytes, offset)),
            // It may be the first that is heard of the file, which is empty then.
            Event::End { .. } => self.file(path).map(drop),
        };
        if matches!(event, Event::End { .. }) {
            self.open.remove(path);
        }
        done.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
    }

    fn file(&mut self, path: &str) -> io::Result<&mut File> {
        if !self.open.contains_key(path) {
            if self.open.len() >= MAX_OPEN {
                // Any of them: it is opened again when more of it comes.
                self.open.pop_first();
            }
            let file = self.create(path)?;
            self.open.insert(path.to_owned(), file);
        }
        self.open
            .get_mut(path)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&self, path: &str) -> io::Result<File> {
        let target = inside(&self.folder, path)?;
        if let Some(parent) = target.parent() {
            make_folder(parent)?;
        }
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o640)
            .open(target)
    }
}

/// The path of what a backup calls `name`, in a folder and nowhere else.
pub(crate) fn inside(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let relative = Path::new(name);
    let mut components = relative.components();
    match components.all(|part| matches!(part, Component::Normal(_))) && !name.is_empty() {
        true => Ok(folder.join(relative)),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "not a name inside of the data directory",
        )),
    }
}

/// With those above, as a server makes them.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::metadata(folder) {
        Ok(_) => Ok(()),
        Err(_) => DirBuilder::new().recursive(true).mode(0o750).create(folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mbstream::{end_chunk, piece_head};

    fn piece(path: &str, offset: u64, content: &[u8]) -> Vec<u8> {
        [&piece_head(path, offset, content), content].concat()
    }

    #[test]
    fn files_come_out_in_whatever_order_their_pieces_come() {
        let mut stream = Vec::new();
        // More at a time than are kept open.
        for round in 0..3 {
            for number in 0..2 * MAX_OPEN {
                let path = format!("./db/t{number}.ibd");
                stream.extend(piece(&path, 4 * round, &[number as u8; 4]));
            }
        }
        for number in 0..2 * MAX_OPEN {
            stream.extend(end_chunk(&format!("db/t{number}.ibd")));
        }
        stream.extend(end_chunk("empty"));
        let folder = tempfile::tempdir().unwrap();
        let mut unpacker = Unpacker::new(folder.path());
        for part in stream.chunks(101) {
            unpacker.write_all(part).unwrap();
        }
        assert_eq!(unpacker.missing(), None);
        for number in 0..2 * MAX_OPEN {
            let content = fs::read(folder.path().join(format!("db/t{number}.ibd"))).unwrap();
            assert_eq!(content, [number as u8; 12]);
        }
        assert_eq!(fs::read(folder.path().join("empty")).unwrap(), b"");
    }

    #[test]
    fn nothing_leaves_the_folder() {
        for path in ["../up", "/etc/passwd", "a/../../b", "a/.."] {
            let folder = tempfile::tempdir().unwrap();
            let inner = folder.path().join("inner");
            fs::create_dir(&inner).unwrap();
            let mut unpacker = Unpacker::new(&inner);
            let error = unpacker.write_all(&piece(path, 0, b"x")).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{path}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{path}");
        }
    }

    #[test]
    fn what_is_damaged_or_unknown_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut damaged = piece("a", 0, b"content");
        *damaged.last_mut().unwrap() ^= 1;
        for stream in [&damaged[..], b"XBSTCK01\0S....", b"a tar archive"] {
            let mut unpacker = Unpacker::new(folder.path());
            assert!(unpacker.write_all(stream).is_err());
        }
    }
}
