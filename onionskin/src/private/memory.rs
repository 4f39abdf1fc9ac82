//! Folders in the machine's memory. Opened values lie in files of the scratch engine while a
//! statement runs, and must not come to a disk.

use std::{
    env, fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt, lchown},
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access, statfs};

use super::{PrivateError, account::ServerUser, installation::at};

/// A file system in the machine's memory, where there is one.
const MEMORY: &str = "/dev/shm";
/// What the names of folders of values there begin with.
const PREFIX: &str = "onionskin-scratch-";
/// The file in an engine's folder that names its folder of values, for the next run.
const NOTE: &str = "temporary";
/// Its name where the engine's folder itself is in memory.
const INSIDE: &str = "memory";

/// `TMPFS_MAGIC` and `RAMFS_MAGIC` of `linux/magic.h`.
const TMPFS: i128 = 0x0102_1994;
const RAMFS: i128 = 0x8584_58f6;

/// Whether a folder's files are in memory.
pub fn is_in_memory(folder: &Path) -> bool {
    // its type is another one on each architecture
    statfs(folder).is_ok_and(|found| {
        let kind = i128::from(found.f_type) & 0xffff_ffff;
        kind == TMPFS || kind == RAMFS
    })
}

/// Where files can be in memory: `/dev/shm`, or the folder that systemd has made for the service or
/// the user.
pub fn in_memory() -> Result<PathBuf, PrivateError> {
    let of = |name: &str| {
        let value = env::var_os(name)?;
        env::split_paths(&value).next()
    };
    let folders = [
        Some(PathBuf::from(MEMORY)),
        of("RUNTIME_DIRECTORY"),
        of("XDG_RUNTIME_DIR"),
    ];
    let usable = |folder: &PathBuf| {
        folder.is_absolute()
            && is_in_memory(folder)
            && access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    };
    let mut usable = folders.into_iter().flatten().filter(usable);
    usable.next().ok_or(PrivateError::NoMemory)
}

/// Where the values of one engine lie: its temporary tables, and what it says, which may hold the
/// text of a statement. Dropping it removes it.
pub struct Values {
    folder: PathBuf,
}

impl Values {
    /// In the engine's folder, if that is in memory, or else in one of its own, whose name is
    /// nobody's to guess, as others may write beside it. What an earlier run has left is removed.
    pub fn make(engine: &Path, user: Option<&ServerUser>) -> Result<Self, PrivateError> {
        remove_noted(engine);
        let inside = engine.join(INSIDE);
        let folder = match is_in_memory(engine) {
            true => {
                make_own(&inside, None).map_err(at(&inside))?;
                inside
            }
            false => {
                let memory = in_memory()?;
                // mode 0700
                let folder = tempfile::Builder::new()
                    .prefix(PREFIX)
                    .tempdir_in(&memory)
                    .map_err(at(&memory))?;
                let note = engine.join(NOTE);
                let path = folder.path().as_os_str().as_encoded_bytes();
                fs::write(&note, path).map_err(at(&note))?;
                folder.keep()
            }
        };
        let values = Values { folder };
        if user.is_some() {
            super::installation::set_mode(&values.folder, 0o711)?;
        }
        let tables = values.tables();
        make_own(&tables, user).map_err(at(&tables))?;
        let tablespaces = values.tablespaces();
        make_own(&tablespaces, user).map_err(at(&tablespaces))?;
        Ok(values)
    }

    /// For temporary tables: the server's own.
    pub fn tables(&self) -> PathBuf {
        self.folder.join("tables")
    }

    /// For those of InnoDB.
    pub fn tablespaces(&self) -> PathBuf {
        self.tables().join("innodb")
    }

    /// What the server says: a file of ours, since the server's user could put a link in its place.
    pub fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// The server has ended: what it has left goes.
    pub fn empty(&self) {
        empty(&self.tables());
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removes the folder of values that an earlier run of an engine's folder has noted, if it is one
/// of ours.
pub fn remove_noted(engine: &Path) {
    let Ok(left) = fs::read_to_string(engine.join(NOTE)) else {
        return;
    };
    let left = Path::new(&left);
    let named = left.file_name().map(|n| n.to_string_lossy());
    let is_named_so = named.is_some_and(|n| n.starts_with(PREFIX));
    let is_in_memory = left.parent().is_some_and(is_in_memory);
    if is_named_so && is_in_memory && is_ours(left) {
        let _ = fs::remove_dir_all(left);
    }
}

/// Whether it is a folder, and this user's.
pub fn is_ours(folder: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir() && found.uid() == me)
}

/// Makes an empty folder that belongs to the server's user, and to nobody else.
fn make_own(folder: &Path, user: Option<&ServerUser>) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::DirBuilder::new().mode(0o700).create(folder)?;
    match user {
        Some(user) => lchown(folder, Some(user.uid), Some(user.gid)),
        None => Ok(()),
    }
}

/// Removes what is in a folder, as far as possible.
fn empty(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let _ = match entry.file_type().is_ok_and(|t| t.is_dir()) {
            // the server wants it again when it is started again
            true => {
                empty(&path);
                Ok(())
            }
            false => fs::remove_file(&path),
        };
    }
}
