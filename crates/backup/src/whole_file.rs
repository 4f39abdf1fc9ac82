//! Files that are there whole or not at all.
//!
//! The content goes into a file beside the final one, named `.NAME.RANDOM.partial`. When everything
//! is written, the file is synced, given its name, and the directory is synced. A file that has the
//! name is never replaced. After a crash the partial file may stay behind; its name tells what it
//! is, and a partial sealed stream does not open anyway.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rand::RngExt;
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// What the names of unfinished files end with.
pub const PARTIAL: &str = ".partial";

/// A file that is being written. Dropped without [`WholeFile::finish`], it disappears.
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    partial: PathBuf,
    path: PathBuf,
    finished: bool,
}

impl WholeFile {
    /// Begins a file that does not exist yet ([`io::ErrorKind::AlreadyExists`] otherwise), for its
    /// owner only.
    pub fn create(path: &Path) -> io::Result<Self> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a file name",
            ));
        };
        if fs::symlink_metadata(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut partial_name = OsString::from(".");
        partial_name.push(name);
        let suffix = format!(".{:016x}{PARTIAL}", rand::rng().random::<u64>());
        partial_name.push(suffix);
        let partial = path.with_file_name(partial_name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&partial)?;
        Ok(Self {
            file,
            partial,
            path: path.to_owned(),
            finished: false,
        })
    }

    /// Where the unfinished file is.
    pub fn partial_path(&self) -> &Path {
        &self.partial
    }

    /// Makes everything durable and gives the file its name.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        rename_new(&self.partial, &self.path)?;
        self.finished = true;
        sync_directory(&self.path)
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Renames without replacing what may have come in the meantime.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some network file systems cannot do it in one step.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        other => Ok(other?),
    }
}

/// A new name is durable when its directory is.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("backup");
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        assert!(names(folder.path())[0].ends_with(PARTIAL));
        drop(file);
        assert!(names(folder.path()).is_empty());

        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.finish().unwrap();
        assert_eq!(names(folder.path()), ["backup"]);
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn nothing_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("backup");
        let early = WholeFile::create(&path).unwrap();
        fs::write(&path, "somebody else's").unwrap();
        let exists = |result: io::Result<()>| {
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        };
        exists(WholeFile::create(&path).map(drop));
        exists(early.finish());
        assert_eq!(fs::read(&path).unwrap(), b"somebody else's");
        assert_eq!(names(folder.path()), ["backup"]);
    }
}
