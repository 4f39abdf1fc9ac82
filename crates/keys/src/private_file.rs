//! Files that hold secrets: whose they must be, and how they are read.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, process::geteuid};
use zeroize::Zeroizing;

use crate::KeyError;

/// Whose a file may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This process's user, or root.
    OursOrRoot,
    /// Also any other, if this process is root's: an administrator changes the file of the proxy's
    /// user, and leaves it to him.
    AnyForRoot,
}

/// Reads a file that nobody but its owner can access, where the owner is this process's user or
/// root.
///
/// Who owns a file can always give himself access to it, and put another one's content into it: a
/// mode of 0600 says nothing if the file is somebody else's. `limit` is in bytes.
pub fn read_private_file(path: &Path, limit: u64) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    read_file_of(Owner::OursOrRoot, path, limit)
}

/// The same for a file that may have another owner.
pub(crate) fn read_file_of(
    whose: Owner,
    path: &Path,
    limit: u64,
) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    read_checked(whose, path, limit, |path, mode| match mode & 0o077 {
        0 => Ok(()),
        _ => Err(KeyError::TooOpen { path, mode }),
    })
}

/// Reads a file that is no secret, and that nobody but its owner can write, where the owner is this
/// process's user or root. `limit` is in bytes.
pub(crate) fn read_owned_file(path: &Path, limit: u64) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    read_checked(Owner::OursOrRoot, path, limit, |path, mode| {
        match mode & 0o022 {
            0 => Ok(()),
            _ => Err(KeyError::Writable { path, mode }),
        }
    })
}

fn read_checked(
    whose: Owner,
    path: &Path,
    limit: u64,
    check_mode: impl FnOnce(PathBuf, u32) -> Result<(), KeyError>,
) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let io_error = |source| KeyError::Io {
        path: path.to_owned(),
        source,
    };
    let (file, metadata) = open_regular(path, OFlags::empty()).map_err(io_error)?;
    let mode = metadata.mode() & 0o7777;
    check_mode(path.to_owned(), mode)?;
    let (owner, user) = (metadata.uid(), geteuid().as_raw());
    let may_be_anyones = whose == Owner::AnyForRoot && user == 0;
    if owner != user && owner != 0 && !may_be_anyones {
        return Err(KeyError::OtherOwner {
            path: path.to_owned(),
            owner,
            user,
        });
    }
    if metadata.len() > limit {
        return Err(io_error(io::Error::other("too large")));
    }
    read_all(file, metadata.len()).map_err(io_error)
}

/// Reads a regular file of a secret that somebody else takes care of. `limit` is in bytes.
pub fn read_secret_file(path: &Path, limit: u64) -> io::Result<Zeroizing<Vec<u8>>> {
    let (file, metadata) = open_regular(path, OFlags::empty())?;
    if metadata.len() > limit {
        return Err(io::Error::other("too large"));
    }
    read_all(file, metadata.len())
}

/// The beginning of a regular file that is no symbolic link.
pub(crate) fn read_beginning(path: &Path, most: u64) -> io::Result<Zeroizing<Vec<u8>>> {
    let (file, metadata) = open_regular(path, OFlags::NOFOLLOW)?;
    read_all(file, metadata.len().min(most))
}

/// Opens a file, and looks at what was opened: at its path there could be another one a moment
/// later. Does not wait for whoever might write to a pipe that lies there.
fn open_regular(path: &Path, more: OFlags) -> io::Result<(File, Metadata)> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NONBLOCK | more).bits().cast_signed())
        .open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false => Err(io::Error::other("not a regular file")),
    }
}

/// Sized beforehand, so that no half-read copies of a secret are left behind by growing.
fn read_all(file: File, length: u64) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut text = Zeroizing::new(Vec::with_capacity(length as usize + 1));
    file.take(length).read_to_end(&mut text)?;
    Ok(text)
}
