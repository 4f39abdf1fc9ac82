//! A file whose place another one takes, and whose bytes are not to stay.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use crate::KeyError;

/// Bytes that are written at a time.
const BLOCK: usize = 64 << 10;

/// The old file, under a second name beside its place. The name is there so that a change which is
/// broken off leaves something to be seen, and to be finished.
pub(crate) struct OldFile {
    /// `None` where the file system has no second names.
    name: Option<PathBuf>,
    file: File,
}

/// The second name of the file at `path`.
pub(crate) fn old_path(path: &Path) -> PathBuf {
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    old.into()
}

impl OldFile {
    /// Holds the file at `path`, which is going to lose its place.
    pub fn keep(path: &Path) -> Result<Self, KeyError> {
        let file = open(path).map_err(|source| io_error(path, source))?;
        let name = old_path(path);
        let name = match fs::hard_link(path, &name) {
            Ok(()) => Some(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(io_error(&name, error));
            }
            Err(_) => None,
        };
        Ok(Self { name, file })
    }

    /// Writes over the bytes, and takes the name away. The file must have lost its place.
    pub fn destroy(self) -> io::Result<()> {
        overwrite(&self.file)?;
        match &self.name {
            Some(name) => fs::remove_file(name),
            None => Ok(()),
        }
    }

    /// Finishes what an earlier change has left beside the file at `path`.
    pub fn destroy_leftover(path: &Path) -> Result<(), KeyError> {
        let name = old_path(path);
        let Ok(found) = fs::symlink_metadata(&name) else {
            return Ok(());
        };
        let failed = |source| io_error(&name, source);
        let now = fs::metadata(path).map_err(|source| io_error(path, source))?;
        // Broken off before the new file had its place: the old one is still the one that counts.
        if (found.dev(), found.ino()) != (now.dev(), now.ino()) {
            overwrite(&open(&name).map_err(failed)?).map_err(failed)?;
        }
        fs::remove_file(&name).map_err(failed)
    }
}

fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed())
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a regular file")),
    }
}

/// Zeros over all of a file, on disk. Where a file system does not write in place, the bytes before
/// stay somewhere.
fn overwrite(mut file: &File) -> io::Result<()> {
    let mut left = file.metadata()?.len();
    let zeros = [0; BLOCK];
    while left > 0 {
        let part = left.min(BLOCK as u64);
        file.write_all(&zeros[..part as usize])?;
        left -= part;
    }
    file.sync_all()
}

fn io_error(path: &Path, source: io::Error) -> KeyError {
    KeyError::TenantsIo {
        path: path.to_owned(),
        source,
    }
}
