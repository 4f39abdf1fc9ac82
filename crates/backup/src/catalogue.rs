//! A folder of sealed backups: which are in it, what they hold, which continue which.
//!
//! Nothing is stored beside the backups: the catalogue is read from their footers, which are
//! authenticated. Files that are not sealed streams are passed over. A stream whose footer does not
//! verify is in the catalogue, as what it is.

use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use onionskin_keys::StreamKey;

use crate::{
    Header, Manifest, Progress, StreamError,
    header::MAGIC,
    store::{Listed, Opened, Store},
    verify,
};

/// The `source` of streams that `onionskin backup` makes.
pub const BACKUPS: [&str; 4] = ["mariadb-backup", "clone", "dump", "stdin"];

/// What is in a folder, by time; what does not verify comes first.
#[derive(Debug)]
pub struct Catalogue {
    /// The sealed streams.
    pub entries: Vec<Entry>,
}

/// A sealed stream in a folder.
#[derive(Debug)]
pub struct Entry {
    /// Name of its file.
    pub name: String,
    /// Its length in bytes.
    pub stream_len: u64,
    /// What its footer says, or why that is not known.
    pub content: Result<Content, StreamError>,
}

/// What an authenticated footer says.
#[derive(Debug)]
pub struct Content {
    /// See [`Header::id`].
    pub id: String,
    /// Length of the plaintext in bytes.
    pub plain_len: u64,
    /// Without the lists of files and tables.
    pub manifest: Manifest,
}

/// Why a backup cannot be restored with what is in its folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// A backup that it continues is not there, or does not verify.
    #[error("{name} continues {base}, which is not among the backups that verify in its folder")]
    NoBase {
        /// The backup that lacks its base.
        name: String,
        /// The name that the base's file had.
        base: String,
    },
    /// What no writer makes.
    #[error("{0} does not continue the end of the backup that it names as its base")]
    Mismatch(String),
}

impl Catalogue {
    /// Looks into a folder, not into folders inside it. `key` is called with every header.
    pub fn read(
        store: &dyn Store,
        key: impl Fn(&Header) -> Result<StreamKey, StreamError>,
    ) -> io::Result<Self> {
        let mut files = store.list()?;
        // Notes and locks of ours begin with a dot.
        files.retain(|file| !file.name.starts_with('.'));
        let mut entries = Vec::new();
        for (file, opened) in files.iter().zip(store.open_all(&files)) {
            match opened {
                // Another program has removed it since.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => entries.extend(Entry::read(file, opened?, &key)?),
            }
        }
        entries.sort_by(|a, b| (a.created(), &a.name).cmp(&(b.created(), &b.name)));
        Ok(Self { entries })
    }

    /// Places of the backups that are needed to restore the one at `place`: the full one first,
    /// itself last. `None` if it does not verify.
    pub fn chain(&self, place: usize) -> Option<Result<Vec<usize>, ChainError>> {
        self.entries.get(place)?.content.as_ref().ok()?;
        Some(self.chain_of(place))
    }

    fn chain_of(&self, place: usize) -> Result<Vec<usize>, ChainError> {
        let by_id: BTreeMap<&str, usize> = (self.entries.iter().enumerate())
            .filter_map(|(place, entry)| Some((entry.content.as_ref().ok()?.id.as_str(), place)))
            .collect();
        let mut chain = vec![place];
        let mut here = place;
        while let Some(base) = self
            .manifest(here)
            .and_then(|manifest| manifest.base.as_ref())
        {
            let name = || self.entries[here].name.clone();
            let found = by_id.get(base.stream.as_str()).copied();
            let above = found.ok_or_else(|| ChainError::NoBase {
                name: name(),
                base: base.name.clone(),
            })?;
            let lsn = |place| {
                self.manifest(place)
                    .and_then(|manifest: &Manifest| manifest.lsn)
            };
            let adjoins = matches!((lsn(above), lsn(here)), (Some(a), Some(b)) if a.to == b.from);
            if !adjoins || chain.contains(&above) {
                return Err(ChainError::Mismatch(name()));
            }
            chain.push(above);
            here = above;
        }
        chain.reverse();
        Ok(chain)
    }

    fn manifest(&self, place: usize) -> Option<&Manifest> {
        let content = self.entries[place].content.as_ref().ok()?;
        Some(&content.manifest)
    }
}

impl Entry {
    /// `None` for a file that is not a sealed stream.
    fn read(
        listed: &Listed,
        mut file: Opened,
        key: impl Fn(&Header) -> Result<StreamKey, StreamError>,
    ) -> io::Result<Option<Self>> {
        let mut magic = Vec::new();
        (&mut file)
            .take(MAGIC.len() as u64)
            .read_to_end(&mut magic)?;
        if magic != MAGIC {
            return Ok(None);
        }
        let content = verify(file, key, None, &Progress::new()).map(|verified| Content {
            id: verified.header.id(),
            plain_len: verified.footer.plain_len,
            manifest: Manifest {
                members: Vec::new(),
                tables: Vec::new(),
                ..verified.footer.manifest
            },
        });
        Ok(Some(Self {
            name: listed.name.clone(),
            stream_len: listed.len,
            content,
        }))
    }

    /// When it was made, in seconds since 1970; 0 if that is not known.
    pub fn created(&self) -> u64 {
        let content = self.content.as_ref();
        content.map_or(0, |content| content.manifest.created)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        manifest::{Base, LsnRange},
        store::LocalFolder,
    };

    /// An entry that verifies; it continues `base` if there is one.
    pub(crate) fn entry(id: &str, created: u64, base: Option<&str>) -> Entry {
        let base = base.map(|stream| Base {
            stream: stream.to_owned(),
            name: format!("{stream}.sealed"),
        });
        let from = if base.is_some() { 7 } else { 0 };
        Entry {
            name: format!("{id}.sealed"),
            stream_len: 1,
            content: Ok(Content {
                id: id.to_owned(),
                plain_len: 1,
                manifest: Manifest {
                    created,
                    base,
                    lsn: Some(LsnRange { from, to: 7 }),
                    ..Manifest::new("mariadb-backup")
                },
            }),
        }
    }

    #[test]
    fn chains_are_followed_to_the_full_backup() {
        let mut catalogue = Catalogue {
            entries: vec![
                entry("a", 1, None),
                entry("b", 2, Some("a")),
                entry("c", 3, Some("b")),
                entry("x", 4, Some("gone")),
                entry("y", 5, Some("x")),
                entry("loop", 6, Some("loop")),
            ],
        };
        assert_eq!(catalogue.chain(0), Some(Ok(vec![0])));
        assert_eq!(catalogue.chain(2), Some(Ok(vec![0, 1, 2])));
        let no_base = ChainError::NoBase {
            name: "x.sealed".into(),
            base: "gone.sealed".into(),
        };
        assert_eq!(catalogue.chain(4), Some(Err(no_base)));
        let mismatch = ChainError::Mismatch("loop.sealed".into());
        assert_eq!(catalogue.chain(5), Some(Err(mismatch)));
        // One in the middle that does not verify is as good as gone.
        catalogue.entries[1].content = Err(StreamError::Trailer);
        assert_eq!(catalogue.chain(1), None);
        assert!(matches!(
            catalogue.chain(2),
            Some(Err(ChainError::NoBase { .. }))
        ));
        assert_eq!(catalogue.chain(17), None);
    }

    #[test]
    fn only_sealed_streams_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content);
        write("notes.txt", b"not a backup").unwrap();
        write("short", b"\x89ON").unwrap();
        write(".a.sealed.partial", &MAGIC).unwrap();
        write("cut.sealed", &MAGIC).unwrap();
        let wrong = |_: &Header| Err(StreamError::WrongKey("key"));
        let catalogue = Catalogue::read(&LocalFolder::new(folder.path()), wrong).unwrap();
        assert_eq!(catalogue.entries.len(), 1);
        assert_eq!(catalogue.entries[0].name, "cut.sealed");
        let error = catalogue.entries[0].content.as_ref().unwrap_err();
        assert!(error.is_damage(), "{error}");
    }
}
