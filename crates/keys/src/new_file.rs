//! Key files that take the place of others, in one step and durably; what is left of one that has
//! not.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, fchown},
    path::{Path, PathBuf},
};

use crate::{KeyError, private_file::read_beginning};

/// Of a leftover, so many bytes are looked at: the root key is among the first.
const LEFTOVER_READ: u64 = 64 << 10;

/// What a change that was broken off has left beside a key file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The file. Another command may also be at work on it now.
    pub path: PathBuf,
    /// Whether it holds a root key that is under no passphrase.
    pub is_open: bool,
}

/// Looks for a [`Leftover`] of the key file, or of the tenants file, at `path`.
pub(crate) fn leftover(path: &Path) -> Option<Leftover> {
    let path = new_path(&fs::canonicalize(path).ok()?);
    fs::symlink_metadata(&path).ok()?;
    // Half a file counts as open: the beginning is where the root key stands.
    let text = read_beginning(&path, LEFTOVER_READ).unwrap_or_default();
    let is_open = contains(&text, b"\"clear\"");
    Some(Leftover { path, is_open })
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// Where the file is written that takes the place of the one at `old`.
fn new_path(old: &Path) -> PathBuf {
    let mut path = old.as_os_str().to_owned();
    path.push(".new");
    path.into()
}

/// A file that is going to take the place of another one, beside it. Removed unless it has.
pub(crate) struct NewFile {
    path: PathBuf,
    file: File,
    /// Whether `path` is still its name.
    stands: bool,
}

impl NewFile {
    /// Of two at a time, the second is an error.
    pub fn create(old: &Path) -> Result<Self, KeyError> {
        let path = new_path(old);
        let file = create_private(&path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => KeyError::BeingChanged { path: path.clone() },
            _ => KeyError::Io {
                path: path.clone(),
                source,
            },
        })?;
        Ok(Self {
            path,
            file,
            stands: true,
        })
    }

    /// Where it is until then.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its content, on disk.
    pub fn write(&self, text: &[u8]) -> Result<(), KeyError> {
        let mut file = &self.file;
        let written = file.write_all(text).and_then(|()| file.sync_all());
        written.map_err(|source| self.io_error(source))
    }

    /// The proxy may run as another user than who changes its keys: the owner stays.
    pub fn take_the_place_of(mut self, old: &Path) -> Result<(), KeyError> {
        let take_over = || {
            let (was, is) = (fs::metadata(old)?, self.file.metadata()?);
            if (was.uid(), was.gid()) != (is.uid(), is.gid()) {
                fchown(&self.file, Some(was.uid()), Some(was.gid()))?;
            }
            fs::rename(&self.path, old)
        };
        take_over().map_err(|source| self.io_error(source))?;
        self.stands = false;
        sync_directory(old).map_err(|source| self.io_error(source))
    }

    fn io_error(&self, source: io::Error) -> KeyError {
        KeyError::Io {
            path: self.path.clone(),
            source,
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.stands {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes a file that did not exist, durably, readable by its owner only.
pub(crate) fn write_new(path: &Path, text: &[u8]) -> Result<(), KeyError> {
    let io_error = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => KeyError::Exists {
            path: path.to_owned(),
        },
        _ => KeyError::Io {
            path: path.to_owned(),
            source,
        },
    };
    let mut file = create_private(path).map_err(io_error)?;
    let written = file
        .write_all(text)
        .and_then(|()| file.sync_all())
        .and_then(|()| sync_directory(path));
    if written.is_err() {
        // Half a key file helps nobody, and it would stand in the way of the next attempt.
        let _ = fs::remove_file(path);
    }
    written.map_err(io_error)
}

/// A file that did not exist, for its owner only.
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// A new name is durable when its directory is.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}
