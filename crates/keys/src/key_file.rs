//! `keys.json`: a root key, and the keys that it wraps.
//!
//! ```json
//! {
//!   "version": 1,
//!   "root": { "passphrase": {
//!       "kdf": "argon2id", "memory_kib": 65536, "passes": 3, "lanes": 1, "salt": "…", "sealed": "…" } },
//!   "data_keys": [ { "id": 1, "created": 1767225600, "wrapped": "…" } ],
//!   "metadata_key": { "created": 1767225600, "wrapped": "…" },
//!   "active": 1,
//!   "mac": "…"
//! }
//! ```
//!
//! or `"root": { "clear": "…" }`, where the file's mode 0600 is the protection; or, in version 2,
//! `"root": { "provider": { "name": "exec", "wrapped": "…" } }`, where the provider of this name
//! unwraps the root key. Binary fields are base64 (standard alphabet, padded). `created` is in
//! seconds since 1970. Unknown fields are errors.
//!
//! `mac` is HMAC-SHA-256 under a key derived from the root key, over everything but `root`, which
//! authenticates itself by opening the rest. Its input, numbers big-endian:
//!
//! ```text
//! "onionskin/1 keys.json" ‖ version (4) ‖ active (2) ‖ number of data keys (4)
//! ‖ for each, in the order of the file: id (2) ‖ created (8) ‖ length (4) ‖ wrapped
//! ‖ metadata key: created (8) ‖ length (4) ‖ wrapped
//! ```
//!
//! So `active` cannot be set back and no key removed or added without the root key. An older key
//! file in whole cannot be told from the newest: keep it where only its owner writes.
//!
//! A change writes the file anew, under a new root key, and puts it in the old one's place when it
//! has been read back.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, fchown},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use onionskin_crypt::{AuditKey, DataKey, KeyId, MetadataKey, dangerous_bytes};
use rand::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{
    KeyContext, KeyError, KeyProvider, KeyPurpose, WrappedKey,
    file_root::{FileRoot, generate_root_key},
    keeper::RootKeeper,
    passphrase::PassphraseCost,
    private_file::{Owner, read_beginning, read_file_of},
    root::{Root, RootAccess, decode},
};

/// The version of a `keys.json` that opens by itself: in the clear, or under a passphrase.
pub const KEY_FILE_VERSION: u32 = 1;
/// The version of one whose root key a provider wraps.
pub const WRAPPED_KEY_FILE_VERSION: u32 = 2;

/// A key file is a few hundred bytes; 65,535 data keys are 9 MB.
const MAX_FILE_LEN: u64 = 16 << 20;
const FIRST_KEY: KeyId = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    version: u32,
    root: Root,
    data_keys: Vec<DataKeyEntry>,
    metadata_key: MetadataKeyEntry,
    active: KeyId,
    mac: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DataKeyEntry {
    id: KeyId,
    created: u64,
    wrapped: String,
}

/// What a file of keys comes to.
pub(crate) struct Keys {
    /// The number of the data key that new values are sealed under.
    pub active: KeyId,
    pub data: BTreeMap<KeyId, DataKey>,
    /// Of the definitions.
    pub metadata: MetadataKey,
    pub audit: AuditKey,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MetadataKeyEntry {
    created: u64,
    wrapped: String,
}

/// A data key and when it was made.
struct Dated {
    created: u64,
    key: DataKey,
}

/// The keys of a file, unwrapped.
pub(crate) struct UnwrappedKeys {
    active: KeyId,
    data_keys: BTreeMap<KeyId, Dated>,
    metadata: Dated,
}

/// What a data key of a file is, without the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyEntry {
    /// Its number.
    pub id: KeyId,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// Whether new tables and streams are made under it.
    pub is_active: bool,
}

/// A change of a key file.
#[derive(Clone, Copy)]
pub enum KeyChange<'a> {
    /// Another data key, which is not active.
    Add,
    /// Makes a data key that is there the active one.
    Activate(KeyId),
    /// Another passphrase, or none.
    Passphrase(Option<&'a str>),
    /// The root key is wrapped by this provider from now on.
    Wrap(&'a dyn KeyProvider),
}

impl UnwrappedKeys {
    fn generate(rng: &mut impl CryptoRng) -> Self {
        let mut dated = || Dated {
            created: now(),
            key: DataKey::generate(rng),
        };
        Self {
            active: FIRST_KEY,
            data_keys: BTreeMap::from([(FIRST_KEY, dated())]),
            metadata: dated(),
        }
    }

    /// What each data key is, in the order of their numbers.
    pub(crate) fn entries(&self) -> Vec<KeyEntry> {
        let entry = |(&id, dated): (&KeyId, &Dated)| KeyEntry {
            id,
            created: dated.created,
            is_active: id == self.active,
        };
        self.data_keys.iter().map(entry).collect()
    }

    /// The keys themselves.
    pub(crate) fn into_keys(self) -> Keys {
        let data_keys = self.data_keys.into_iter();
        Keys {
            active: self.active,
            data: data_keys.map(|(id, dated)| (id, dated.key)).collect(),
            metadata: MetadataKey::new(&self.metadata.key),
            audit: AuditKey::new(&self.metadata.key),
        }
    }

    /// Adds a data key behind all others. Numbers are not given out again: sealed values carry
    /// them.
    fn add(&mut self, rng: &mut impl CryptoRng) -> Result<(), KeyError> {
        let last = self.data_keys.last_key_value().map_or(0, |(&id, _)| id);
        let id = last.checked_add(1).ok_or(KeyError::Full)?;
        let created = now();
        let key = DataKey::generate(rng);
        self.data_keys.insert(id, Dated { created, key });
        Ok(())
    }

    fn activate(&mut self, id: KeyId) -> Result<(), KeyError> {
        if !self.data_keys.contains_key(&id) {
            return Err(KeyError::UnknownKey(id));
        }
        self.active = id;
        Ok(())
    }

    /// The text of a file with these keys, all of them under a new root key: whoever knows that of
    /// an older file opens nothing of this one.
    fn to_text(
        &self,
        access: RootAccess<'_>,
        cost: PassphraseCost,
        rng: &mut impl CryptoRng,
    ) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let root_key = generate_root_key(rng);
        let root = Root::protect(&root_key, access, cost, rng)?;
        let provider = FileRoot::new(&root_key);
        let wrapped = |key: &DataKey, context| {
            let wrapped = provider.wrap(key, context)?;
            Ok::<_, KeyError>(STANDARD.encode(wrapped.0))
        };
        let mut data_keys = Vec::new();
        for (&id, Dated { created, key }) in &self.data_keys {
            data_keys.push(DataKeyEntry {
                id,
                created: *created,
                wrapped: wrapped(key, data_context(id))?,
            });
        }
        let mut file = KeyFile {
            version: version_of(&root),
            root,
            data_keys,
            metadata_key: MetadataKeyEntry {
                created: self.metadata.created,
                wrapped: wrapped(&self.metadata.key, METADATA_CONTEXT)?,
            },
            active: self.active,
            mac: String::new(),
        };
        file.mac = STANDARD.encode(provider.mac(&Decoded::of(&file)?.authenticated(&file)));
        // Sized beforehand: by growing, a buffer leaves copies of the root key behind.
        let mut text = Zeroizing::new(Vec::with_capacity(room_for(&file)));
        serde_json::to_writer_pretty(&mut *text, &file)
            .map_err(|_| KeyError::Malformed("it cannot be written as JSON".to_owned()))?;
        text.push(b'\n');
        Ok(text)
    }

    /// Whether two files hold the same keys.
    fn are(&self, other: &Self) -> bool {
        let is = |one: &Dated, other: &Dated| {
            let [one_key, other_key] =
                [one, other].map(|dated| dangerous_bytes::bytes_of_data_key(&dated.key));
            one.created == other.created && one_key == other_key
        };
        let there = |id| other.data_keys.get(id);
        self.active == other.active
            && self.data_keys.len() == other.data_keys.len()
            && is(&self.metadata, &other.metadata)
            && self
                .data_keys
                .iter()
                .all(|(id, dated)| there(id).is_some_and(|other| is(dated, other)))
    }
}

/// More bytes than the text of the file has.
fn room_for(file: &KeyFile) -> usize {
    2048 + file.root.room() + 256 * file.data_keys.len()
}

/// A program from before there were providers says of version 2 that it does not know it.
fn version_of(root: &Root) -> u32 {
    match root.is_wrapped() {
        true => WRAPPED_KEY_FILE_VERSION,
        false => KEY_FILE_VERSION,
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Creates a key file with one data key. See [`KeySet::create_file`](crate::KeySet::create_file).
pub(crate) fn create(
    path: &Path,
    access: RootAccess<'_>,
    cost: PassphraseCost,
    rng: &mut impl CryptoRng,
) -> Result<(), KeyError> {
    // Nobody is asked for a file that cannot be written in the end.
    if fs::symlink_metadata(path).is_ok() {
        let path = path.to_owned();
        return Err(KeyError::Exists { path });
    }
    let text = UnwrappedKeys::generate(rng).to_text(access, cost, rng)?;
    write_new(path, &text)
}

/// Changes a key file. See [`KeySet::change_file`](crate::KeySet::change_file).
pub(crate) fn change(
    path: &Path,
    (access, cost): (RootAccess<'_>, PassphraseCost),
    what: KeyChange<'_>,
    rng: &mut impl CryptoRng,
) -> Result<Vec<KeyEntry>, KeyError> {
    let io_error = |source| KeyError::Io {
        path: path.to_owned(),
        source,
    };
    // Of a symbolic link, what it leads to is replaced.
    let path = fs::canonicalize(path).map_err(io_error)?;
    // Stands while this goes on, so that of two commands at a time none undoes what the other does.
    let new = NewFile::create(&path)?;
    let mut keys = load(&path, access, Owner::AnyForRoot)?;
    let mut access = match access {
        RootAccess::Passphrase(given) => RootAccess::Passphrase(given.filter(|p| !p.is_empty())),
        RootAccess::Provider(_) => access,
    };
    match what {
        KeyChange::Add => keys.add(rng)?,
        KeyChange::Activate(id) => keys.activate(id)?,
        KeyChange::Passphrase(new) => access = RootAccess::Passphrase(new),
        KeyChange::Wrap(provider) => access = RootAccess::Provider(provider),
    }
    let text = keys.to_text(access, cost, rng)?;
    new.write(&text)?;
    // Before the old file is gone, the new one is read as it will be; a provider has to unwrap what
    // it has wrapped.
    if !load(&new.path, access, Owner::OursOrRoot)?.are(&keys) {
        return Err(KeyError::Tampered);
    }
    new.take_the_place_of(&path)?;
    Ok(keys.entries())
}

/// How a key file says that its root key is kept.
pub(crate) fn keeper(path: &Path) -> Result<RootKeeper, KeyError> {
    read(path, Owner::AnyForRoot)?.root.keeper()
}

/// Reads a key file, and opens nothing.
fn read(path: &Path, whose: Owner) -> Result<KeyFile, KeyError> {
    let text = read_file_of(whose, path, MAX_FILE_LEN)?;
    let file: KeyFile = serde_json::from_slice(&text).map_err(|error| {
        // Serde's own text may quote the content; the place is enough.
        KeyError::Malformed(format!(
            "not the expected JSON at line {}, column {}",
            error.line(),
            error.column()
        ))
    })?;
    if file.version != version_of(&file.root) {
        return Err(KeyError::Malformed(match file.version {
            KEY_FILE_VERSION | WRAPPED_KEY_FILE_VERSION => {
                "its version is not that of its root key".to_owned()
            }
            unknown => format!("version {unknown} is unknown"),
        }));
    }
    Ok(file)
}

/// Reads, opens and verifies a key file.
pub(crate) fn load(
    path: &Path,
    access: RootAccess<'_>,
    whose: Owner,
) -> Result<UnwrappedKeys, KeyError> {
    let file = read(path, whose)?;
    let provider = FileRoot::new(&file.root.open(access)?);
    let decoded = Decoded::of(&file)?;
    let mac = decode("mac", &file.mac)?;
    provider.verify(&decoded.authenticated(&file), &mac)?;

    let mut data_keys = BTreeMap::new();
    for (entry, wrapped) in file.data_keys.iter().zip(&decoded.data_keys) {
        let created = entry.created;
        let key = provider.unwrap(wrapped, data_context(entry.id))?;
        if data_keys.insert(entry.id, Dated { created, key }).is_some() {
            return Err(KeyError::Malformed(format!(
                "key {} is there twice",
                entry.id
            )));
        }
    }
    if !data_keys.contains_key(&file.active) {
        return Err(KeyError::UnknownKey(file.active));
    }
    Ok(UnwrappedKeys {
        active: file.active,
        data_keys,
        metadata: Dated {
            created: file.metadata_key.created,
            key: provider.unwrap(&decoded.metadata_key, METADATA_CONTEXT)?,
        },
    })
}

const METADATA_CONTEXT: KeyContext = KeyContext {
    purpose: KeyPurpose::Metadata,
    id: 0,
};

fn data_context(id: KeyId) -> KeyContext {
    KeyContext {
        purpose: KeyPurpose::Data,
        id,
    }
}

/// The wrapped keys of a file as bytes, in its order.
struct Decoded {
    data_keys: Vec<WrappedKey>,
    metadata_key: WrappedKey,
}

impl Decoded {
    fn of(file: &KeyFile) -> Result<Self, KeyError> {
        Ok(Self {
            data_keys: file
                .data_keys
                .iter()
                .map(|entry| decode("wrapped", &entry.wrapped).map(WrappedKey))
                .collect::<Result<_, _>>()?,
            metadata_key: WrappedKey(decode("wrapped", &file.metadata_key.wrapped)?),
        })
    }

    /// What the MAC is over: see the module's documentation.
    fn authenticated(&self, file: &KeyFile) -> Vec<u8> {
        let mut content = b"onionskin/1 keys.json".to_vec();
        content.extend_from_slice(&file.version.to_be_bytes());
        content.extend_from_slice(&file.active.to_be_bytes());
        content.extend_from_slice(&(file.data_keys.len() as u32).to_be_bytes());
        for (entry, wrapped) in file.data_keys.iter().zip(&self.data_keys) {
            content.extend_from_slice(&entry.id.to_be_bytes());
            push_key(&mut content, entry.created, wrapped);
        }
        push_key(&mut content, file.metadata_key.created, &self.metadata_key);
        content
    }
}

fn push_key(content: &mut Vec<u8>, created: u64, wrapped: &WrappedKey) {
    content.extend_from_slice(&created.to_be_bytes());
    content.extend_from_slice(&(wrapped.0.len() as u32).to_be_bytes());
    content.extend_from_slice(&wrapped.0);
}

/// Of a leftover, so many bytes are looked at: the root key is among the first.
const LEFTOVER_READ: u64 = 64 << 10;

/// What a change that was broken off has left beside a key file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The file. Another command may also be at work on it now.
    pub path: PathBuf,
    /// Whether it holds a root key that is under no passphrase.
    pub is_open: bool,
}

/// Looks for a [`Leftover`] of the key file at `path`.
pub(crate) fn leftover(path: &Path) -> Option<Leftover> {
    let path = new_path(&fs::canonicalize(path).ok()?);
    fs::symlink_metadata(&path).ok()?;
    // Half a file counts as open: the beginning is where the root key stands.
    let text = read_beginning(&path, LEFTOVER_READ).unwrap_or_default();
    let is_open = contains(&text, b"\"clear\"");
    Some(Leftover { path, is_open })
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// Where the file is written that takes the place of the one at `old`.
fn new_path(old: &Path) -> PathBuf {
    let mut path = old.as_os_str().to_owned();
    path.push(".new");
    path.into()
}

/// A file that is going to take the place of another one, beside it. Removed unless it has.
struct NewFile {
    path: PathBuf,
    file: File,
    /// Whether `path` is still its name.
    stands: bool,
}

impl NewFile {
    fn create(old: &Path) -> Result<Self, KeyError> {
        let path = new_path(old);
        let file = create_private(&path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => KeyError::BeingChanged { path: path.clone() },
            _ => KeyError::Io {
                path: path.clone(),
                source,
            },
        })?;
        Ok(Self {
            path,
            file,
            stands: true,
        })
    }

    fn write(&self, text: &[u8]) -> Result<(), KeyError> {
        let mut file = &self.file;
        let written = file.write_all(text).and_then(|()| file.sync_all());
        written.map_err(|source| self.io_error(source))
    }

    /// The proxy may run as another user than who changes its keys: the owner stays.
    fn take_the_place_of(mut self, old: &Path) -> Result<(), KeyError> {
        let take_over = || {
            let (was, is) = (fs::metadata(old)?, self.file.metadata()?);
            if (was.uid(), was.gid()) != (is.uid(), is.gid()) {
                fchown(&self.file, Some(was.uid()), Some(was.gid()))?;
            }
            fs::rename(&self.path, old)
        };
        take_over().map_err(|source| self.io_error(source))?;
        self.stands = false;
        sync_directory(old).map_err(|source| self.io_error(source))
    }

    fn io_error(&self, source: io::Error) -> KeyError {
        KeyError::Io {
            path: self.path.clone(),
            source,
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.stands {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes a file that did not exist, durably, readable by its owner only.
fn write_new(path: &Path, text: &[u8]) -> Result<(), KeyError> {
    let io_error = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => KeyError::Exists {
            path: path.to_owned(),
        },
        _ => KeyError::Io {
            path: path.to_owned(),
            source,
        },
    };
    let mut file = create_private(path).map_err(io_error)?;
    let written = file
        .write_all(text)
        .and_then(|()| file.sync_all())
        .and_then(|()| sync_directory(path));
    if written.is_err() {
        // Half a key file helps nobody, and it would stand in the way of the next attempt.
        let _ = fs::remove_file(path);
    }
    written.map_err(io_error)
}

/// A file that did not exist, for its owner only.
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
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

    #[test]
    fn the_text_of_a_file_has_room_from_the_beginning() {
        let mut rng = rand::rng();
        let mut keys = UnwrappedKeys::generate(&mut rng);
        for _ in 0..40 {
            let cheap = PassphraseCost {
                memory_kib: 8,
                passes: 1,
                lanes: 1,
            };
            for passphrase in [None, Some("secret")] {
                let access = RootAccess::Passphrase(passphrase);
                let text = keys.to_text(access, cheap, &mut rng).unwrap();
                let room = room_for(&serde_json::from_slice(&text).unwrap());
                assert_eq!(text.capacity(), room, "it was not moved");
                assert!(text.len() < room);
            }
            keys.add(&mut rng).unwrap();
        }
    }
}
