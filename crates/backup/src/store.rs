//! Where sealed files lie: a folder, or whatever else can do as much.
//!
//! Commands, the archive and restores know a [`Store`] and names in it, and nothing of file
//! systems. What a store has to be able to do is little: a file that is there whole or not at all
//! and replaces none, reading from any place, a list, removing. [`LocalFolder`] is one; buckets of
//! object stores are in a crate of their own.

use std::{
    any::Any,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::DateTime;
use rustix::fs::{FlockOperation, flock};

use crate::whole_file::{PARTIAL, WholeFile};

/// What can be read from any place.
pub trait Input: Read + Seek + Send {}

impl<T: Read + Seek + Send> Input for T {}

/// An opened file.
pub type Opened = Box<dyn Input>;

/// A file in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name, without what stands before it.
    pub name: String,
    /// Its length in bytes.
    pub len: u64,
    /// In which state it was, where the store knows that.
    pub state: Option<String>,
}

/// A file that is being written. Dropped without [`Unfinished::finish`], it disappears.
pub trait Unfinished: Write {
    /// Makes everything durable and gives the file its name, unless there is one of that name
    /// ([`io::ErrorKind::AlreadyExists`]).
    fn finish(self: Box<Self>) -> io::Result<()>;

    /// What a signal's handler calls, so that nothing stays behind.
    fn abandon(&self) -> Box<dyn FnOnce() + Send>;
}

/// What became of a file that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// It is gone.
    Gone,
    /// No list shows it any more, and the store keeps it as an older version.
    Hidden,
}

/// Why a store does not let a file be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Until then, in seconds since 1970.
    pub until: Option<i64>,
    /// Until somebody takes a hold from it.
    pub held: bool,
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self
            .until
            .and_then(|until| DateTime::from_timestamp(until, 0));
        match (until, self.held) {
            (Some(until), false) => write!(f, "retained until {until}"),
            (Some(until), true) => write!(f, "retained until {until}, and under a legal hold"),
            (None, _) => f.write_str("under a legal hold"),
        }
    }
}

/// Held by whoever writes alone, where a store can tell.
pub struct Claim(#[expect(dead_code, reason = "it is held, and let go")] Box<dyn Any + Send>);

impl Claim {
    /// Let go when it is dropped.
    pub fn new(held: impl Any + Send) -> Self {
        Self(Box::new(held))
    }
}

/// A place with sealed files.
///
/// Errors are of the kinds that files have: [`io::ErrorKind::NotFound`],
/// [`io::ErrorKind::AlreadyExists`], [`io::ErrorKind::PermissionDenied`].
pub trait Store: Send + Sync {
    /// What people call a file in it, or the place itself for an empty name.
    fn path(&self, name: &str) -> PathBuf;

    /// The files in it, in no order; not those in folders below, and none that is unfinished.
    fn list(&self) -> io::Result<Vec<Listed>>;

    /// Opens a file.
    fn open(&self, name: &str) -> io::Result<Opened>;

    /// Opens many, of which little is read: several at once, where that is faster.
    fn open_all<'a>(
        &'a self,
        files: &'a [Listed],
    ) -> Box<dyn Iterator<Item = io::Result<Opened>> + 'a> {
        Box::new(files.iter().map(|file| self.open(&file.name)))
    }

    /// Begins a file that is not there yet.
    fn create(&self, name: &str) -> io::Result<Box<dyn Unfinished>>;

    /// Writes a small file at once, over the one that was there. It is durable then.
    fn put(&self, name: &str, content: &[u8]) -> io::Result<()>;

    /// Removes a file. That it is not there is no error.
    fn remove(&self, name: &str) -> io::Result<Removed>;

    /// Whether the store keeps a file from being removed.
    fn retention(&self, name: &str) -> io::Result<Option<Retention>>;

    /// Makes removals durable.
    fn settle(&self) -> io::Result<()>;

    /// Keeps others out who would write here ([`io::ErrorKind::WouldBlock`] where one does), as far
    /// as the store can.
    fn claim(&self) -> io::Result<Claim>;

    /// Removes what killed processes have left unfinished: a folder, what is of a name that `ours`
    /// is true for; a bucket, what nobody has written to for `idle`. Returns how many.
    fn clear_unfinished(&self, idle: Duration, ours: &dyn Fn(&str) -> bool) -> io::Result<usize>;
}

/// A folder of a file system.
pub struct LocalFolder(PathBuf);

impl LocalFolder {
    /// Nothing is looked at yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder, as a path that can be opened.
    fn root(&self) -> &Path {
        match self.0.as_os_str().is_empty() {
            true => Path::new("."),
            false => &self.0,
        }
    }

    fn sync(&self) -> io::Result<()> {
        File::open(self.root())?.sync_all()
    }
}

impl Store for LocalFolder {
    fn path(&self, name: &str) -> PathBuf {
        match name.is_empty() {
            true => self.0.clone(),
            false => self.0.join(name),
        }
    }

    fn list(&self) -> io::Result<Vec<Listed>> {
        let mut files = Vec::new();
        for found in fs::read_dir(self.root())? {
            let found = found?;
            // A link may name a file. One that is no text is none of ours.
            let metadata = fs::metadata(found.path())
                .ok()
                .filter(fs::Metadata::is_file);
            let (Some(metadata), Ok(name)) = (metadata, found.file_name().into_string()) else {
                continue;
            };
            if name.starts_with('.') && name.ends_with(PARTIAL) {
                continue;
            }
            files.push(Listed {
                name,
                len: metadata.len(),
                state: None,
            });
        }
        Ok(files)
    }

    fn open(&self, name: &str) -> io::Result<Opened> {
        Ok(Box::new(File::open(self.0.join(name))?))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Unfinished>> {
        Ok(Box::new(WholeFile::create(&self.0.join(name))?))
    }

    fn put(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.0.join(name);
        let unfinished = self.0.join(format!("{name}.new"));
        // What a killed process has left.
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        self.sync()
    }

    fn remove(&self, name: &str) -> io::Result<Removed> {
        match fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Removed::Gone),
        }
    }

    fn retention(&self, _: &str) -> io::Result<Option<Retention>> {
        Ok(None)
    }

    fn settle(&self) -> io::Result<()> {
        self.sync()
    }

    fn claim(&self) -> io::Result<Claim> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.0.join(".lock"))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Claim::new(file))
    }

    fn clear_unfinished(&self, _: Duration, ours: &dyn Fn(&str) -> bool) -> io::Result<usize> {
        let mut cleared = 0;
        for entry in fs::read_dir(self.root())? {
            let entry = entry?;
            let name = entry.file_name();
            let unfinished = name
                .to_str()
                .and_then(|name| name.strip_prefix('.')?.strip_suffix(PARTIAL))
                .and_then(|name| name.rsplit_once('.'))
                .is_some_and(|(name, _)| ours(name));
            if unfinished {
                fs::remove_file(entry.path())?;
                cleared += 1;
            }
        }
        Ok(cleared)
    }
}

impl Unfinished for WholeFile {
    fn finish(self: Box<Self>) -> io::Result<()> {
        WholeFile::finish(*self)
    }

    fn abandon(&self) -> Box<dyn FnOnce() + Send> {
        let path = self.partial_path().to_owned();
        Box::new(move || drop(fs::remove_file(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let store = LocalFolder::new(folder.path());
        let mut file = store.create("a.sealed").unwrap();
        file.write_all(b"content").unwrap();
        assert_eq!(store.list().unwrap(), []);
        file.finish().unwrap();
        let names = |store: &LocalFolder| -> Vec<String> {
            let files = store.list().unwrap().into_iter();
            files.map(|file| file.name).collect()
        };
        assert_eq!(names(&store), ["a.sealed"]);
        let exists = store.create("a.sealed").err().unwrap();
        assert_eq!(exists.kind(), io::ErrorKind::AlreadyExists);
        for content in [&b"one"[..], b"two"] {
            store.put(".note", content).unwrap();
            let mut read = Vec::new();
            store.open(".note").unwrap().read_to_end(&mut read).unwrap();
            assert_eq!(read, content);
        }
        assert_eq!(store.remove(".note").unwrap(), Removed::Gone);
        assert_eq!(store.remove(".note").unwrap(), Removed::Gone);
        assert_eq!(names(&store), ["a.sealed"]);

        let claim = store.claim().unwrap();
        let refused = store.claim().err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(claim);
        assert!(store.claim().is_ok());
    }

    #[test]
    fn retentions_are_told() {
        let until = Some(1_800_000_000);
        let text = |until, held| Retention { until, held }.to_string();
        assert_eq!(text(until, false), "retained until 2027-01-15 08:00:00 UTC");
        assert_eq!(text(None, true), "under a legal hold");
    }
}
