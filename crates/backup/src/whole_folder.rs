//! Directories that are there whole or not at all.
//!
//! A directory is filled beside the wanted one, as `.NAME.RANDOM.partial`, and takes its name when
//! everything is in it.
//!
//! Where the wanted directory is a mount point, nothing can take its place. Then the partial
//! directory lies inside, and its content is moved up in the end ([`move_up`]), the system
//! tablespace last: without it no server takes the directory for whole. A new file system of the
//! ext family is not quite empty: its `lost+found` stays where it is.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
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

    /// Makes everything durable and gives the directory its name. `last` is what makes a data
    /// directory whole.
    pub(crate) fn finish(mut self, datadir: &Path, last: &OsStr) -> Result<(), RestoreError> {
        let synced = File::open(&self.path).and_then(|folder| Ok(rustix::fs::syncfs(folder)?));
        synced.map_err(|source| file_error(&self.path, source))?;
        let synced = match self.inside {
            true => {
                move_up(&self.path, datadir, last).map_err(|source| file_error(datadir, source))?;
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
}

/// Moves all that is in the folder `from` into `to`, on the same file system: the file `last` as
/// the last if there is one of that name. Removes `from`.
pub fn move_up(from: &Path, to: &Path, last: &OsStr) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(from)? {
        names.push(entry?.file_name());
    }
    // What is known before the first step cannot fail half-way.
    names.sort_by_key(|name| name == last);
    for name in names {
        fs::rename(from.join(&name), to.join(&name))?;
    }
    fs::remove_dir(from)
}

/// The name of the first file of InnoDB's system tablespace in a data directory: as `settings`, a
/// manifest's, have it (`innodb_data_file_path`), or the notes that mariadb-backup leaves beside
/// the data, or as it is by itself.
pub fn system_tablespace(datadir: &Path, settings: &BTreeMap<String, String>) -> OsString {
    const SETTING: &str = "innodb_data_file_path";
    let noted = || {
        let notes = fs::read_to_string(datadir.join("backup-my.cnf")).ok()?;
        let mut settings = notes.lines().filter_map(|line| line.split_once('='));
        settings
            .find(|(name, _)| name.trim() == SETTING)
            .map(|(_, value)| value.trim().to_owned())
    };
    let files = settings.get(SETTING).cloned().or_else(noted);
    let files = files.unwrap_or_default();
    // `PATH:SIZE;PATH:SIZE:autoextend`; backups hold a file of another folder under its name.
    let first = files.split([':', ';']).next().unwrap_or_default();
    match Path::new(first).file_name() {
        Some(name) => name.to_owned(),
        None => "ibdata1".into(),
    }
}

/// Whether a directory can be filled: it is not there, or nothing is in it. At the top of a file
/// system, `lost+found` is nothing as long as it is empty, or not ours to look into.
pub fn is_empty(folder: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let passed_over = entry.file_name() == "lost+found"
            && entry.file_type()?.is_dir()
            && is_mount_point(folder)
            && match fs::read_dir(entry.path()) {
                Ok(mut found) => found.next().is_none(),
                Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
            };
        if !passed_over {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a file system begins at this directory.
pub fn is_mount_point(folder: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev());
    match (device(folder), device(parent_of(folder))) {
        (Ok(here), Ok(above)) => here != above,
        // It does not exist.
        _ => false,
    }
}

/// The directory in which a path names something.
pub fn parent_of(path: &Path) -> &Path {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tablespace_has_the_name_that_its_server_gave_it() {
        let folder = tempfile::tempdir().unwrap();
        let named = |value: &str| {
            let settings = [("innodb_data_file_path".to_owned(), value.to_owned())];
            system_tablespace(folder.path(), &settings.into())
        };
        assert_eq!(named("ibdata1:12M:autoextend"), "ibdata1");
        assert_eq!(named("sys:12M;more:12M:autoextend"), "sys");
        assert_eq!(named("/srv/innodb/one:1G"), "one");
        assert_eq!(named(""), "ibdata1");
        let none = BTreeMap::new();
        assert_eq!(system_tablespace(folder.path(), &none), "ibdata1");
        let notes =
            "[mysqld]\ninnodb_page_size=16384\ninnodb_data_file_path=noted:12M:autoextend\n";
        fs::write(folder.path().join("backup-my.cnf"), notes).unwrap();
        assert_eq!(system_tablespace(folder.path(), &none), "noted");
    }

    #[test]
    fn everything_moves_up_whatever_the_last_is_called() {
        for last in ["ibdata1", "sys", "not there"] {
            let folder = tempfile::tempdir().unwrap();
            let from = folder.path().join("from");
            fs::create_dir_all(from.join("app")).unwrap();
            for name in ["app/t.ibd", "ibdata1", "sys", "aria_log_control"] {
                fs::write(from.join(name), name).unwrap();
            }
            move_up(&from, folder.path(), OsStr::new(last)).unwrap();
            assert!(!from.exists());
            for name in ["app/t.ibd", "ibdata1", "sys", "aria_log_control"] {
                assert!(folder.path().join(name).exists(), "{name}");
            }
        }
    }

    #[test]
    fn what_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        assert!(is_empty(folder.path()).unwrap() && is_empty(&folder.path().join("no")).unwrap());
        // Not at the top of a file system, so somebody has made it.
        fs::create_dir(folder.path().join("lost+found")).unwrap();
        assert!(!is_empty(folder.path()).unwrap());
    }
}
