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
//! A file in which a data key has come to rest ([`Rest`]) has version 3, however its root key is
//! kept. Such a key has `"state"` and `"rests_since"`; one that is destroyed has no `wrapped`. The
//! MAC of version 3 has for each data key, between `created` and the length, its state (1) and
//! since when it rests (8), zeros if it does not. A program from before there were states refuses
//! the file.
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
    fs,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use onionskin_crypt::{
    AuditKey, DataKey, KeyId, MetadataKey, TenantFileKey, TenantNames, dangerous_bytes,
};
use rand::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{
    KeyContext, KeyError, KeyProvider, KeyPurpose, WrappedKey,
    file_root::{FileRoot, generate_root_key},
    keeper::RootKeeper,
    key_state::{KeyState, Rest},
    new_file::{NewFile, write_new},
    passphrase::PassphraseCost,
    private_file::{Owner, read_file_of},
    root::{Root, RootAccess, decode},
};

/// The version of a `keys.json` that opens by itself: in the clear, or under a passphrase.
pub const KEY_FILE_VERSION: u32 = 1;
/// The version of one whose root key a provider wraps.
pub const WRAPPED_KEY_FILE_VERSION: u32 = 2;

/// The version of one in which a data key has come to rest.
pub const RESTING_KEY_FILE_VERSION: u32 = 3;

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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Rest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rests_since: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    wrapped: String,
}

/// What a file of keys comes to.
pub(crate) struct Keys {
    /// The number of the data key that new values are sealed under.
    pub active: KeyId,
    /// What each number stands for.
    pub states: BTreeMap<KeyId, KeyState>,
    /// Those that open.
    pub data: BTreeMap<KeyId, DataKey>,
    /// Of the definitions.
    pub metadata: MetadataKey,
    pub audit: AuditKey,
    /// Makes the ids of tenants.
    pub tenant_names: TenantNames,
    /// Of the tenants file.
    pub tenant_file: TenantFileKey,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MetadataKeyEntry {
    created: u64,
    wrapped: String,
}

/// A key and when it was made.
struct Dated {
    created: u64,
    key: DataKey,
}

/// A data key of a file, or the number of one that is gone.
struct Numbered {
    created: u64,
    /// Since when nothing is sealed under it, if so.
    rest: Option<(Rest, u64)>,
    /// `None` of one that is destroyed.
    key: Option<DataKey>,
}

/// The keys of a file, unwrapped.
pub(crate) struct UnwrappedKeys {
    active: KeyId,
    data_keys: BTreeMap<KeyId, Numbered>,
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
    /// Where it stands in its life.
    pub state: KeyState,
    /// Since when nothing is sealed under it, if so, in seconds since 1970.
    pub rests_since: Option<u64>,
}

/// A change of a key file.
#[derive(Clone, Copy)]
pub enum KeyChange<'a> {
    /// Another data key, which is not active.
    Add,
    /// Makes a data key that is there the active one.
    Activate(KeyId),
    /// Nothing is sealed under a data key any more; or one that is retired opens again.
    MakeReadOnly(KeyId),
    /// A data key that is read-only opens nothing any more.
    Retire(KeyId),
    /// One that is retired is gone for good. Its number stays.
    Destroy(KeyId),
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
            data_keys: BTreeMap::from([(FIRST_KEY, dated().into())]),
            metadata: dated(),
        }
    }

    fn state(&self, id: KeyId, numbered: &Numbered) -> KeyState {
        match numbered.rest {
            Some((rest, _)) => KeyState::At(rest),
            None if id == self.active => KeyState::Active,
            None if id > self.active => KeyState::Next,
            None => KeyState::Leaving,
        }
    }

    /// What each data key is, in the order of their numbers.
    pub(crate) fn entries(&self) -> Vec<KeyEntry> {
        let entry = |(&id, numbered): (&KeyId, &Numbered)| KeyEntry {
            id,
            created: numbered.created,
            is_active: id == self.active,
            state: self.state(id, numbered),
            rests_since: numbered.rest.map(|(_, since)| since),
        };
        self.data_keys.iter().map(entry).collect()
    }

    /// The keys themselves.
    pub(crate) fn into_keys(self) -> Keys {
        let states = self.data_keys.iter();
        let states: BTreeMap<_, _> = states
            .map(|(&id, numbered)| (id, self.state(id, numbered)))
            .collect();
        // What opens nothing is not kept in memory.
        let opening = self.data_keys.into_iter();
        let opening = opening.filter(|(id, _)| states.get(id).is_some_and(|s| s.opens()));
        let data = opening.filter_map(|(id, numbered)| Some((id, numbered.key?)));
        Keys {
            active: self.active,
            data: data.collect(),
            states,
            metadata: MetadataKey::new(&self.metadata.key),
            audit: AuditKey::new(&self.metadata.key),
            tenant_names: TenantNames::new(&self.metadata.key),
            tenant_file: TenantFileKey::new(&self.metadata.key),
        }
    }

    /// Adds a data key behind all others. Numbers are not given out again: sealed values carry
    /// them.
    fn add(&mut self, rng: &mut impl CryptoRng) -> Result<(), KeyError> {
        let last = self.data_keys.last_key_value().map_or(0, |(&id, _)| id);
        let id = last.checked_add(1).ok_or(KeyError::Full)?;
        let created = now();
        let key = DataKey::generate(rng);
        self.data_keys.insert(id, Dated { created, key }.into());
        Ok(())
    }

    fn activate(&mut self, id: KeyId) -> Result<(), KeyError> {
        let numbered = self.data_keys.get(&id).ok_or(KeyError::UnknownKey(id))?;
        let state = self.state(id, numbered);
        if !state.seals() {
            let why = "a key that has come to rest is not used again; add another one";
            return Err(KeyError::NoSuchStep { id, state, why });
        }
        self.active = id;
        Ok(())
    }

    /// One step towards a key's end, or from retired back to read-only.
    fn lay_to_rest(&mut self, id: KeyId, to: Rest) -> Result<(), KeyError> {
        let numbered = self.data_keys.get(&id).ok_or(KeyError::UnknownKey(id))?;
        let state = self.state(id, numbered);
        let why = match (state, to) {
            (KeyState::Active, _) => "make another key the active one before (keys use)",
            (KeyState::At(Rest::Destroyed), _) => "it is gone",
            (KeyState::Next | KeyState::Leaving | KeyState::At(Rest::Retired), Rest::ReadOnly)
            | (KeyState::At(Rest::ReadOnly), Rest::Retired)
            | (KeyState::At(Rest::Retired), Rest::Destroyed) => {
                let since = numbered.rest.map_or_else(now, |(_, since)| since);
                if let Some(numbered) = self.data_keys.get_mut(&id) {
                    numbered.rest = Some((to, since));
                    if to == Rest::Destroyed {
                        numbered.key = None;
                    }
                }
                return Ok(());
            }
            (_, Rest::ReadOnly) => "it is so already",
            (KeyState::At(Rest::Retired), Rest::Retired) => "it is so already",
            (_, Rest::Retired) => "make it read-only before (keys read-only)",
            (_, Rest::Destroyed) => "retire it before (keys retire)",
        };
        Err(KeyError::NoSuchStep { id, state, why })
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
        for (&id, numbered) in &self.data_keys {
            let key = numbered.key.as_ref();
            data_keys.push(DataKeyEntry {
                id,
                created: numbered.created,
                state: numbered.rest.map(|(rest, _)| rest),
                rests_since: numbered.rest.map(|(_, since)| since),
                wrapped: key.map_or(Ok(String::new()), |key| wrapped(key, data_context(id)))?,
            });
        }
        let mut file = KeyFile {
            version: version_of(&root, &data_keys),
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
        let bytes = dangerous_bytes::bytes_of_data_key;
        let is = |one: &Numbered, other: &Numbered| {
            let [one_key, other_key] = [one, other].map(|numbered| numbered.key.as_ref());
            one.created == other.created
                && one.rest == other.rest
                && one_key.map(bytes) == other_key.map(bytes)
        };
        let there = |id| other.data_keys.get(id);
        self.active == other.active
            && self.data_keys.len() == other.data_keys.len()
            && self.metadata.created == other.metadata.created
            && bytes(&self.metadata.key) == bytes(&other.metadata.key)
            && self
                .data_keys
                .iter()
                .all(|(id, numbered)| there(id).is_some_and(|other| is(numbered, other)))
    }
}

impl From<Dated> for Numbered {
    fn from(Dated { created, key }: Dated) -> Self {
        Self {
            created,
            rest: None,
            key: Some(key),
        }
    }
}

/// More bytes than the text of the file has.
fn room_for(file: &KeyFile) -> usize {
    2048 + file.root.room() + 320 * file.data_keys.len()
}

/// A program from before there were providers says of version 2 that it does not know it. One from
/// before there were states refuses the fields of version 3.
fn version_of(root: &Root, data_keys: &[DataKeyEntry]) -> u32 {
    match root.is_wrapped() {
        _ if data_keys.iter().any(|key| key.state.is_some()) => RESTING_KEY_FILE_VERSION,
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
        KeyChange::MakeReadOnly(id) => keys.lay_to_rest(id, Rest::ReadOnly)?,
        KeyChange::Retire(id) => keys.lay_to_rest(id, Rest::Retired)?,
        KeyChange::Destroy(id) => keys.lay_to_rest(id, Rest::Destroyed)?,
        KeyChange::Passphrase(new) => access = RootAccess::Passphrase(new),
        KeyChange::Wrap(provider) => access = RootAccess::Provider(provider),
    }
    let text = keys.to_text(access, cost, rng)?;
    new.write(&text)?;
    // Before the old file is gone, the new one is read as it will be; a provider has to unwrap what
    // it has wrapped.
    if !load(new.path(), access, Owner::OursOrRoot)?.are(&keys) {
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
    if file.version != version_of(&file.root, &file.data_keys) {
        return Err(KeyError::Malformed(match file.version {
            KEY_FILE_VERSION | WRAPPED_KEY_FILE_VERSION | RESTING_KEY_FILE_VERSION => {
                "its version is not that of its root key and of its data keys".to_owned()
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
        let rest = entry.state.zip(entry.rests_since);
        let is_gone = entry.state == Some(Rest::Destroyed);
        if entry.state.is_some() != entry.rests_since.is_some() || is_gone != wrapped.0.is_empty() {
            let why = format!("the state of key {} is not whole", entry.id);
            return Err(KeyError::Malformed(why));
        }
        let key = match is_gone {
            true => None,
            false => Some(provider.unwrap(wrapped, data_context(entry.id))?),
        };
        let created = entry.created;
        let numbered = Numbered { created, rest, key };
        if data_keys.insert(entry.id, numbered).is_some() {
            return Err(KeyError::Malformed(format!(
                "key {} is there twice",
                entry.id
            )));
        }
    }
    match data_keys.get(&file.active) {
        None => return Err(KeyError::UnknownKey(file.active)),
        Some(active) if active.rest.is_some() => {
            let why = format!("its active key, {}, has come to rest", file.active);
            return Err(KeyError::Malformed(why));
        }
        Some(_) => {}
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
            content.extend_from_slice(&entry.created.to_be_bytes());
            if file.version == RESTING_KEY_FILE_VERSION {
                content.push(entry.state.map_or(0, Rest::id));
                let since = entry.rests_since.unwrap_or_default();
                content.extend_from_slice(&since.to_be_bytes());
            }
            push_wrapped(&mut content, wrapped);
        }
        content.extend_from_slice(&file.metadata_key.created.to_be_bytes());
        push_wrapped(&mut content, &self.metadata_key);
        content
    }
}

fn push_wrapped(content: &mut Vec<u8>, wrapped: &WrappedKey) {
    content.extend_from_slice(&(wrapped.0.len() as u32).to_be_bytes());
    content.extend_from_slice(&wrapped.0);
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
