//! Directories that are there whole or not at all.
//!
//! A directory is filled beside the wanted one, as `.NAME.RANDOM.partial`, and takes its name when everything is in it.
//!
//! Where the wanted directory is a mount point, nothing can take its place. Then the partial directory lies inside, and its
//! content is moved up in the end, the system tablespace last: without it no server takes the directory for whole.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use rand::RngExt;

use crate::{
    restore::{RestoreError, file_error},
    whole_file::PARTIAL,
};

/// The directory while it is being filled. Removed with all its content unless it is finished.
pub(crate) struct Partial {
    pub(crate) path: PathBuf,
    /// Inside the wanted directory instead of beside it.
    inside: bool,
    finished: bool,
}

impl Partial {
    /// An empty one beside `datadir`, for its owner only.
    pub(crate) fn create(datadir: &Path) -> Result<Self, RestoreError> {
        let Some(name) = datadir.file_name() else {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "not the name of a directory");
            return Err(file_error(datadir, source));
        };
        let mut partial = OsString::from(".");
        partial.push(name);
        partial.push(format!(".{:016x}{PARTIAL}", rand::rng().random::<u64>()));
        let inside = is_mount_point(datadir);
        let path = match inside {
            true => datadir.join(partial),
            false => datadir.with_file_name(partial),
        };
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|source| file_error(&path, source))?;
        Ok(Self {
            path,
            inside,
            finished: false,
        })
    }

    /// Makes everything durable and gives the directory its name.
    pub(crate) fn finish(mut self, datadir: &Path) -> Result<(), RestoreError> {
        let synced = File::open(&self.path).and_then(|folder| Ok(rustix::fs::syncfs(folder)?));
        synced.map_err(|source| file_error(&self.path, source))?;
        let synced = match self.inside {
            true => {
                self.move_up(datadir)
                    .map_err(|source| file_error(datadir, source))?;
                self.finished = true;
                datadir
            }
            false => {
                // A directory takes the place of an empty one, and of nothing else.
                fs::rename(&self.path, datadir).map_err(|source| match source.kind() {
                    io::ErrorKind::DirectoryNotEmpty => RestoreError::NotEmpty(datadir.to_owned()),
                    _ => file_error(datadir, source),
                })?;
                self.finished = true;
                parent_of(datadir)
            }
        };
        File::open(synced)
            .and_then(|folder| folder.sync_all())
            .map_err(|source| file_error(synced, source))
    }

    fn move_up(&self, datadir: &Path) -> io::Result<()> {
        const LAST: &str = "ibdata1";
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name() != LAST {
                fs::rename(entry.path(), datadir.join(entry.file_name()))?;
            }
        }
        fs::rename(self.path.join(LAST), datadir.join(LAST))?;
        fs::remove_dir(&self.path)
    }
}

/// Whether a file system begins at this directory.
fn is_mount_point(folder: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev());
    match (device(folder), device(parent_of(folder))) {
        (Ok(here), Ok(above)) => here != above,
        // It does not exist.
        _ => false,
    }
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
