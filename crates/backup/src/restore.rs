//! From a sealed physical backup to a data directory: whole, or not at all.
//!
//! Everything happens in a directory beside the wanted one, named `.NAME.RANDOM.partial`: `mbstream` unpacks what leaves the
//! sealed stream, the files are compared with the manifest, `mariadb-backup --prepare` makes them consistent. Only then
//! does the directory get its name. A directory that holds anything is never touched.
//!
//! Where the wanted directory is a mount point, nothing can take its place. Then the partial directory lies inside, and its
//! content is moved up in the end, the system tablespace last: without it no server takes the directory for whole.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use onionskin_keys::StreamKey;
use rand::RngExt;

use crate::{Footer, Manifest, Progress, SealedStream, StreamError, whole_file::PARTIAL};

/// Why there is no data directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The wanted directory holds something.
    #[error("{} is not empty: restore into an empty or a new directory", .0.display())]
    NotEmpty(PathBuf),
    /// The stream holds something else than a physical backup.
    #[error(
        "the stream was made from {0:?} and is not a physical backup: use `onionskin open` and pass its output on"
    )]
    OtherSource(String),
    /// A directory or file could not be made, read or synced.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A program could not be started, or failed.
    #[error("{program} {what}")]
    Program {
        /// Its name.
        program: &'static str,
        /// How it failed.
        what: String,
    },
    /// What was unpacked is not what the manifest says.
    #[error("{0} was not unpacked as the manifest says")]
    Member(String),
    /// The stream does not open.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// Unpacks and prepares the backup in `stream`; returns its footer.
pub fn restore(
    stream: SealedStream<File>,
    key: StreamKey,
    datadir: &Path,
    threads: usize,
    progress: &Progress,
) -> Result<Footer, RestoreError> {
    refuse_content(datadir)?;
    let partial = Partial::create(datadir)?;
    let footer = unpack(stream, key, &partial.path, threads, progress)?;
    compare(&footer.manifest, &partial.path)?;
    prepare(&partial.path)?;
    partial.finish(datadir)?;
    Ok(footer)
}

/// Whether a manifest is of a backup that can be restored here.
pub fn check_source(manifest: &Manifest) -> Result<(), RestoreError> {
    match manifest.source == "mariadb-backup" {
        true => Ok(()),
        false => Err(RestoreError::OtherSource(manifest.source.clone())),
    }
}

fn refuse_content(datadir: &Path) -> Result<(), RestoreError> {
    match fs::read_dir(datadir) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(RestoreError::NotEmpty(datadir.to_owned())),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(file_error(datadir, source)),
    }
}

/// The directory while it is being filled. Removed with all its content unless it is finished.
struct Partial {
    path: PathBuf,
    /// Inside the wanted directory instead of beside it.
    inside: bool,
    finished: bool,
}

impl Partial {
    fn create(datadir: &Path) -> Result<Self, RestoreError> {
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

    fn finish(mut self, datadir: &Path) -> Result<(), RestoreError> {
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

fn unpack(
    stream: SealedStream<File>,
    key: StreamKey,
    folder: &Path,
    threads: usize,
    progress: &Progress,
) -> Result<Footer, RestoreError> {
    const PROGRAM: &str = "mbstream";
    let failed = |what| RestoreError::Program {
        program: PROGRAM,
        what,
    };
    let mut child = Command::new(PROGRAM)
        .arg("-x")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    let input = child.stdin.take();
    let opened = match input {
        Some(input) => stream.open(key, input, threads, progress),
        None => Err(StreamError::Lost),
    };
    let status = child.wait();
    match (opened, status) {
        // A write that failed is mbstream's failure, which it has explained on standard error.
        (Ok(_) | Err(StreamError::Write(_)), Ok(status)) if !status.success() => {
            Err(failed(format!("ended with {status}")))
        }
        (_, Err(error)) => Err(failed(format!("cannot be waited for: {error}"))),
        (opened, Ok(_)) => Ok(opened?),
    }
}

/// Whether every file of the manifest is there, in its full length.
fn compare(manifest: &Manifest, folder: &Path) -> Result<(), RestoreError> {
    for member in &manifest.members {
        let found = fs::metadata(folder.join(&member.name));
        if !found.is_ok_and(|found| found.is_file() && found.len() == member.size) {
            return Err(RestoreError::Member(member.name.clone()));
        }
    }
    Ok(())
}

/// Applies the log that was copied along with the data.
fn prepare(folder: &Path) -> Result<(), RestoreError> {
    const PROGRAM: &str = "mariadb-backup";
    let mut target = OsString::from("--target-dir=");
    target.push(folder);
    let failed = |what| RestoreError::Program {
        program: PROGRAM,
        what,
    };
    let output = Command::new(PROGRAM)
        .args(["--no-defaults", "--prepare"])
        .arg(target)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last: Vec<&str> = said.lines().rev().take(5).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            Err(failed(format!(
                "--prepare ended with {}: {}",
                output.status,
                last.join("; ")
            )))
        }
    }
}

fn file_error(path: &Path, source: io::Error) -> RestoreError {
    RestoreError::File {
        path: path.to_owned(),
        source,
    }
}
