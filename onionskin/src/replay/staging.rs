//! Directories in which a replay goes on. All their names end alike, so that those of a restore
//! that was killed are found.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use onionskin_backup::whole_folder::{
    is_empty, is_mount_point, move_up, parent_of, system_tablespace,
};
use tempfile::TempDir;

use crate::error::CommandError;

/// The end of the names.
const REPLAYING: &str = ".replaying";

/// The directory while it is not finished; removed with all its content unless it is.
pub struct Staging {
    path: PathBuf,
    /// The wanted directory is a mount point, and nothing can take its place.
    inside: bool,
    finished: bool,
}

impl Staging {
    /// A name for what is to become `datadir`.
    pub(super) fn new(datadir: &Path) -> Result<Self, CommandError> {
        let empty = is_empty(datadir).unwrap_or(false);
        let name = datadir.file_name().filter(|_| empty).ok_or_else(|| {
            CommandError::Replay(format!(
                "{} is not empty: restore into an empty or a new directory",
                datadir.display()
            ))
        })?;
        let inside = is_mount_point(datadir);
        // Without a dot in front: MySQL does not look for tablespaces in hidden directories.
        let mut prefix = name.to_owned();
        prefix.push(".");
        report_leftovers(datadir, &prefix);
        let mut staging = prefix;
        staging.push(format!("{:016x}{REPLAYING}", rand::random::<u64>()));
        Ok(Self {
            path: match inside {
                true => datadir.join(staging),
                false => datadir.with_file_name(staging),
            },
            inside,
            finished: false,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name.
    pub(super) fn finish(
        mut self,
        datadir: &Path,
        settings: &BTreeMap<String, String>,
    ) -> Result<(), CommandError> {
        let failed = |source| CommandError::File {
            path: datadir.to_owned(),
            source,
        };
        let synced = match self.inside {
            true => {
                let last = system_tablespace(&self.path, settings);
                move_up(&self.path, datadir, &last).map_err(failed)?;
                datadir
            }
            false => {
                // A directory takes the place of an empty one, and of nothing else.
                fs::rename(&self.path, datadir).map_err(failed)?;
                parent_of(datadir)
            }
        };
        self.finished = true;
        fs::File::open(synced)
            .and_then(|folder| folder.sync_all())
            .map_err(failed)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Directories of restores that were killed hold opened data, and nobody else would find them. They
/// are not removed: another restore may be writing there.
fn report_leftovers(datadir: &Path, prefix: &OsStr) {
    let parent = parent_of(datadir);
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let bytes = name.as_encoded_bytes();
        if bytes.starts_with(prefix.as_encoded_bytes()) && bytes.ends_with(REPLAYING.as_bytes()) {
            eprintln!(
                "onionskin: {} holds the opened data of a restore that was killed, unless one is at work there: remove it",
                parent.join(name).display()
            );
        }
    }
}

/// Where server and tools put what they need files for. Removed with all its content.
///
/// The files lie beside the data directory: what they hold is going to be there as well, they may
/// be as large as a table, and no other file system learns of them. Sockets and file names in
/// statements want short paths of plain characters, so everything is called by its way through a
/// link in the system's temporary folder.
pub struct WorkFolder {
    link: PathBuf,
    // Removed in this order: the link first.
    short: TempDir,
    _files: TempDir,
}

impl WorkFolder {
    /// One beside a directory of [`Staging`].
    pub(super) fn beside(staging: &Path) -> Result<Self, CommandError> {
        let failed = |source| CommandError::System {
            doing: "making a temporary folder",
            source,
        };
        let parent = parent_of(staging).canonicalize().map_err(failed)?;
        let name = staging.file_name().unwrap_or_default().to_owned();
        let mut prefix = name.as_encoded_bytes();
        prefix = prefix.strip_suffix(REPLAYING.as_bytes()).unwrap_or(prefix);
        let prefix = String::from_utf8_lossy(prefix).into_owned();
        // For its owner only, as all that this crate makes.
        let files = tempfile::Builder::new()
            .prefix(&format!("{prefix}.files."))
            .suffix(REPLAYING)
            .tempdir_in(parent)
            .map_err(failed)?;
        let short = TempDir::new().map_err(failed)?;
        let link = short.path().join("files");
        symlink(files.path(), &link).map_err(failed)?;
        Ok(Self {
            link,
            short,
            _files: files,
        })
    }

    /// For files that hold opened data.
    pub fn files(&self) -> &Path {
        &self.link
    }

    /// For a socket and what a server says.
    pub fn short(&self) -> &Path {
        self.short.path()
    }
}
