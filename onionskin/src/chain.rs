//! The backups that one needs to restore a backup: itself, and for an incremental one those before
//! it.

use std::{io, path::Path, sync::Arc};

use onionskin_backup::{
    Manifest, Progress, SealedStream, StreamError,
    catalogue::{Catalogue, Entry},
    restore::{Link, RestoreError},
    store::Store,
    verify,
};

use crate::{error::CommandError, place, stream_io::file_error, stream_keys::KeyFinder};

/// Backups that continue each other.
pub struct Chain {
    store: Arc<dyn Store>,
    /// Names of the files and ids of their streams, the full backup first.
    files: Vec<(String, String)>,
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
        let (store, name) = place::file(path)?;
        let file = store
            .open(&name)
            .map_err(|source| file_error(path, source))?;
        let of_stream = |source| CommandError::Stream {
            name: path.display().to_string(),
            source,
        };
        let verified = verify(file, |header| finder.find(header), None, &Progress::new());
        let verified = finder.settle(verified)?.map_err(of_stream)?;
        let (id, manifest) = (verified.header.id(), verified.footer.manifest);
        let (mut files, mut len) = (vec![(name, id.clone())], verified.stream_len);
        if manifest.base.is_some() {
            let catalogue = read_catalogue(&*store, finder)?;
            let is_it = |entry: &Entry| entry.content.as_ref().is_ok_and(|found| found.id == id);
            let places = match catalogue.entries.iter().position(is_it) {
                Some(place) => catalogue.chain(place).transpose()?,
                None => None,
            };
            // It was there a moment ago.
            let gone = || file_error(path, io::ErrorKind::NotFound.into());
            let entries = places.ok_or_else(gone)?.into_iter();
            let entries: Vec<&Entry> = entries.map(|place| &catalogue.entries[place]).collect();
            len = entries.iter().map(|entry| entry.stream_len).sum();
            let file = |entry: &&Entry| {
                let id = entry.content.as_ref().map(|content| content.id.clone());
                (entry.name.clone(), id.unwrap_or_default())
            };
            files = entries.iter().map(file).collect();
        }
        Ok(Self {
            store,
            files,
            len,
            manifest,
            id,
        })
    }

    /// Opens all of them for a restore.
    pub fn links(&self, finder: &KeyFinder) -> Result<Vec<Link>, CommandError> {
        let link = |(name, id): &(String, String)| {
            let path = self.store.path(name);
            let of_restore = |source| CommandError::Restore {
                name: path.display().to_string(),
                source,
            };
            let of_stream = |source: StreamError| of_restore(RestoreError::Stream(source));
            let file = self.store.open(name);
            let file = file.map_err(|source| file_error(&path, source))?;
            let stream = SealedStream::begin(file).map_err(of_stream)?;
            if stream.header().id() != *id {
                let changed = "the file was replaced by another backup since its footer was read";
                return Err(of_restore(RestoreError::Chain(changed.into())));
            }
            let key = finder.find(stream.header());
            let key = finder.settle(key)?.map_err(of_stream)?;
            Ok(Link { stream, key })
        };
        self.files.iter().map(link).collect()
    }
}

/// What is in a folder of backups.
pub fn read_catalogue(store: &dyn Store, finder: &KeyFinder) -> Result<Catalogue, CommandError> {
    let catalogue = Catalogue::read(store, |header| finder.find(header));
    // No keys at all is another matter than a stream under other keys.
    finder.check()?;
    catalogue.map_err(|source| file_error(&store.path(""), source))
}
