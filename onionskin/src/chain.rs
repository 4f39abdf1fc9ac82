//! The backups that one needs to restore a backup: itself, and for an incremental one those before
//! it.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use onionskin_backup::{
    Manifest, Progress, SealedStream, StreamError,
    catalogue::{Catalogue, Entry},
    restore::{Link, RestoreError},
    verify,
};

use crate::{error::CommandError, stream_io::file_error, stream_keys::KeyFinder};

/// Backups that continue each other.
pub struct Chain {
    /// The full one first.
    files: Vec<PathBuf>,
    /// Of all files together.
    pub len: u64,
    /// What the last one, which was asked for, says.
    pub manifest: Manifest,
    /// Its stream's id.
    pub id: String,
}

impl Chain {
    /// Finds, in the folder of `path`, what it continues. All footers are verified.
    pub fn find(path: &Path, finder: &KeyFinder) -> Result<Self, CommandError> {
        let file = File::open(path).map_err(|source| file_error(path, source))?;
        let of_stream = |source| CommandError::Stream {
            name: path.display().to_string(),
            source,
        };
        let verified = verify(file, |header| finder.find(header), None, &Progress::new());
        let verified = finder.settle(verified)?.map_err(of_stream)?;
        let (id, manifest) = (verified.header.id(), verified.footer.manifest);
        let (mut files, mut len) = (vec![path.to_owned()], verified.stream_len);
        if manifest.base.is_some() {
            let folder = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            let catalogue = read_catalogue(folder, finder)?;
            let is_it = |entry: &Entry| entry.content.as_ref().is_ok_and(|found| found.id == id);
            let places = match catalogue.entries.iter().position(is_it) {
                Some(place) => catalogue.chain(place).transpose()?,
                None => None,
            };
            // It was there a moment ago.
            let gone = || file_error(path, std::io::ErrorKind::NotFound.into());
            let entries = places.ok_or_else(gone)?.into_iter();
            let entries: Vec<&Entry> = entries.map(|place| &catalogue.entries[place]).collect();
            len = entries.iter().map(|entry| entry.stream_len).sum();
            files = entries.iter().map(|entry| entry.path.clone()).collect();
        }
        Ok(Self {
            files,
            len,
            manifest,
            id,
        })
    }

    /// Opens all of them for a restore.
    pub fn links(&self, finder: &KeyFinder) -> Result<Vec<Link>, CommandError> {
        let link = |path: &PathBuf| {
            let of_stream = |source: StreamError| CommandError::Restore {
                name: path.display().to_string(),
                source: RestoreError::Stream(source),
            };
            let file = File::open(path).map_err(|source| file_error(path, source))?;
            let stream = SealedStream::begin(file).map_err(of_stream)?;
            let key = finder.find(stream.header());
            let key = finder.settle(key)?.map_err(of_stream)?;
            Ok(Link { stream, key })
        };
        self.files.iter().map(link).collect()
    }
}

/// What is in a folder of backups.
pub fn read_catalogue(folder: &Path, finder: &KeyFinder) -> Result<Catalogue, CommandError> {
    let catalogue = Catalogue::read(folder, |header| finder.find(header));
    // No keys at all is another matter than a stream under other keys.
    finder.check()?;
    catalogue.map_err(|source| file_error(folder, source))
}
