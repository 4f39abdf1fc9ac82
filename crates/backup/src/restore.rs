//! From a sealed physical backup to a data directory: whole, or not at all.
//!
//! Everything happens in a directory beside the wanted one: what leaves the sealed stream is
//! unpacked, the files are compared with the manifest. Backups by mariadb-backup are then made
//! consistent (`mariadb-backup --prepare`), and incremental ones are applied to what they continue,
//! one after the other. Backups by the clone plugin are consistent as they are. Only then does the
//! directory get its name. A directory that holds anything is never touched.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use onionskin_keys::StreamKey;

use crate::{
    Footer, Manifest, Progress, SealedStream, StreamError,
    environment::without_ours,
    settings::{SettingError, noted, refuse_libraries},
    store::Opened,
    unpack::{Unpacker, inside, make_folder},
    whole_folder::{Partial, is_empty, system_tablespace},
};

/// The `source` of backups that [`restore`] can make a data directory of.
pub const PHYSICAL: [&str; 2] = ["mariadb-backup", "clone"];

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
    /// The stream opens, but it does not hold whole files.
    #[error("what is in the stream is not a whole backup: {0}")]
    Content(String),
    /// Backups that do not continue each other.
    #[error("{0}")]
    Chain(String),
    /// What was unpacked is not what the manifest says.
    #[error("{0} was not unpacked as the manifest says")]
    Member(String),
    /// What the backup says of its server's settings.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The stream does not open.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// One of the backups that make up a data directory.
pub struct Link {
    /// Its stream.
    pub stream: SealedStream<Opened>,
    /// Its key.
    pub key: StreamKey,
}

/// Unpacks and prepares a full backup, and applies the incremental ones that follow it in `chain`;
/// returns the footer of the last, which tells what state that is.
pub fn restore(
    chain: Vec<Link>,
    datadir: &Path,
    threads: usize,
    progress: &Progress,
) -> Result<Footer, RestoreError> {
    refuse_content(datadir)?;
    let partial = Partial::create(datadir)?;
    let mut last: Option<(String, Footer)> = None;
    for Link { stream, key } in chain {
        let id = stream.header().id();
        let footer = match &last {
            None => {
                let footer = unpack(stream, key, &partial.path, threads, progress)?;
                if footer.manifest.base.is_some() {
                    return Err(RestoreError::Chain(
                        "the first backup is not a full one".into(),
                    ));
                }
                if footer.manifest.source == "mariadb-backup" {
                    prepare(&partial.path, None)?;
                }
                footer
            }
            Some((before, base)) => {
                // Removed with all its content when it was applied.
                let changes = Partial::create(datadir)?;
                let footer = unpack(stream, key, &changes.path, threads, progress)?;
                check_link(before, &base.manifest, &footer.manifest)?;
                prepare(&partial.path, Some(&changes.path))?;
                footer
            }
        };
        last = Some((id, footer));
    }
    let Some((_, footer)) = last else {
        return Err(RestoreError::Chain("there is no backup to restore".into()));
    };
    let last = system_tablespace(&partial.path, &footer.manifest.settings);
    partial.finish(datadir, &last)?;
    Ok(footer)
}

/// Whether the backup of `next` continues the one with this id and manifest.
pub fn check_link(id: &str, base: &Manifest, next: &Manifest) -> Result<(), RestoreError> {
    let named = next.base.as_ref().is_some_and(|base| base.stream == id);
    let adjoins = match (base.lsn, next.lsn) {
        (Some(base), Some(next)) => base.to == next.from,
        _ => false,
    };
    match named && adjoins && PHYSICAL[0] == base.source && base.source == next.source {
        true => Ok(()),
        false => Err(RestoreError::Chain(
            "an incremental backup does not continue the one before it".into(),
        )),
    }
}

/// Whether a manifest is of a backup that can be restored here.
pub fn check_source(manifest: &Manifest) -> Result<(), RestoreError> {
    match PHYSICAL.contains(&manifest.source.as_str()) {
        true => Ok(()),
        false => Err(RestoreError::OtherSource(manifest.source.clone())),
    }
}

fn refuse_content(datadir: &Path) -> Result<(), RestoreError> {
    match is_empty(datadir).map_err(|source| file_error(datadir, source))? {
        true => Ok(()),
        false => Err(RestoreError::NotEmpty(datadir.to_owned())),
    }
}

/// Unpacks one backup, and compares it with its manifest.
fn unpack(
    stream: SealedStream<Opened>,
    key: StreamKey,
    folder: &Path,
    threads: usize,
    progress: &Progress,
) -> Result<Footer, RestoreError> {
    let mut unpacker = Unpacker::new(folder);
    let footer = match stream.open(key, &mut unpacker, threads, progress) {
        Err(StreamError::Write(error)) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(RestoreError::Content(error.to_string()));
        }
        opened => opened?,
    };
    if let Some(missing) = unpacker.missing() {
        return Err(RestoreError::Content(missing));
    }
    check_source(&footer.manifest)?;
    compare(&footer.manifest, folder)?;
    Ok(footer)
}

/// Whether every file of the manifest is there, in its full length. Makes its empty folders.
fn compare(manifest: &Manifest, folder: &Path) -> Result<(), RestoreError> {
    for member in &manifest.members {
        let path = inside(folder, &member.name)
            .map_err(|source| file_error(Path::new(&member.name), source))?;
        if member.name.ends_with('/') {
            make_folder(&path).map_err(|source| file_error(&path, source))?;
            continue;
        }
        let found = fs::metadata(path);
        if !found.is_ok_and(|found| found.is_file() && found.len() == member.size) {
            return Err(RestoreError::Member(member.name.clone()));
        }
    }
    Ok(())
}

/// Applies the log that was copied along with the data; and, before that, the pages of an
/// incremental backup.
fn prepare(folder: &Path, changes: Option<&Path>) -> Result<(), RestoreError> {
    const PROGRAM: &str = "mariadb-backup";
    let option = |name: &str, path: &Path| {
        let mut option = OsString::from(name);
        option.push(path);
        option
    };
    let failed = |what| RestoreError::Program {
        program: PROGRAM,
        what,
    };
    for folder in [Some(folder), changes].into_iter().flatten() {
        refuse_libraries(folder)?;
        // It opens what these name.
        noted(
            folder,
            &[
                "innodb_data_file_path",
                "innodb_page_size",
                "innodb_undo_tablespaces",
            ],
        )?;
    }
    let mut command = Command::new(PROGRAM);
    without_ours(&mut command);
    let output = command
        .args(["--no-defaults", "--prepare"])
        .arg(option("--target-dir=", folder))
        .args(changes.map(|changes| option("--incremental-dir=", changes)))
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

/// An error about a file.
pub(crate) fn file_error(path: &Path, source: io::Error) -> RestoreError {
    RestoreError::File {
        path: path.to_owned(),
        source,
    }
}
