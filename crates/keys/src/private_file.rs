//! Files that hold secrets: whose they must be, and how they are read.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::Path,
};

use rustix::process::geteuid;
use zeroize::Zeroizing;

use crate::KeyError;

/// Whose a file may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This process's user, or root.
    OursOrRoot,
    /// Also any other, if this process is root's: an administrator changes the file of the proxy's user, and leaves it to him.
    AnyForRoot,
}

/// Reads a file that nobody but its owner can access, where the owner is this process's user or root.
///
/// Who owns a file can always give himself access to it, and put another one's content into it: a mode of 0600 says nothing if
/// the file is somebody else's. `limit` is in bytes.
pub fn read_private_file(path: &Path, limit: u64) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    read_file_of(Owner::OursOrRoot, path, limit)
}

/// The same for a file that may have another owner.
pub(crate) fn read_file_of(
    whose: Owner,
    path: &Path,
    limit: u64,
) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let io_error = |source| KeyError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(io_error)?;
    // Of the opened file, not of the path: they could be two.
    let metadata = file.metadata().map_err(io_error)?;
    if !metadata.is_file() {
        return Err(io_error(io::Error::other("not a regular file")));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyError::TooOpen {
            path: path.to_owned(),
            mode,
        });
    }
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
    // Sized beforehand, so that no half-read copies of a secret are left behind by growing.
    let mut text = Zeroizing::new(Vec::with_capacity(metadata.len() as usize + 1));
    file.take(limit).read_to_end(&mut text).map_err(io_error)?;
    Ok(text)
}
