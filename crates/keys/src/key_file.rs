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
//! or `"root": { "clear": "…" }`, where the file's mode 0600 is the protection. Binary fields are base64 (standard
//! alphabet, padded). `created` is in seconds since 1970. Unknown fields are errors.
//!
//! `mac` is HMAC-SHA-256 under a key derived from the root key, over everything but `root`, which authenticates itself by
//! opening the rest. Its input, numbers big-endian:
//!
//! ```text
//! "onionskin/1 keys.json" ‖ version (4) ‖ active (2) ‖ number of data keys (4)
//! ‖ for each, in the order of the file: id (2) ‖ created (8) ‖ length (4) ‖ wrapped
//! ‖ metadata key: created (8) ‖ length (4) ‖ wrapped
//! ```
//!
//! So `active` cannot be set back and no key removed or added without the root key. An older key file in
//! whole cannot be told from the newest: keep it where only its owner writes.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use onionskin_crypt::{DataKey, KeyId, MetadataKey};
use rand::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::{
    KeyContext, KeyError, KeyProvider, KeyPurpose, WrappedKey,
    file_root::{FileRoot, ROOT_KEY_LEN, RootKey, generate_root_key},
    passphrase::{self, PassphraseCost, SALT_LEN},
};

/// The version of `keys.json` that this crate reads and writes.
pub const KEY_FILE_VERSION: u32 = 1;

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
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum Root {
    Clear(String),
    Passphrase(SealedRoot),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealedRoot {
    kdf: Kdf,
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: String,
    sealed: String,
}

#[derive(Serialize, Deserialize)]
enum Kdf {
    #[serde(rename = "argon2id")]
    Argon2id,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DataKeyEntry {
    id: KeyId,
    created: u64,
    wrapped: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MetadataKeyEntry {
    created: u64,
    wrapped: String,
}

// Neither type derives Debug: with the root key in the clear, the text would be the key.
impl Drop for Root {
    fn drop(&mut self) {
        if let Root::Clear(text) = self {
            text.zeroize();
        }
    }
}

/// The keys of a file, unwrapped.
pub(crate) struct UnwrappedKeys {
    pub(crate) active: KeyId,
    pub(crate) data_keys: BTreeMap<KeyId, DataKey>,
    pub(crate) metadata: MetadataKey,
}

/// Creates a key file with one data key. See [`KeySet::create_file`](crate::KeySet::create_file).
pub(crate) fn create(
    path: &Path,
    passphrase: Option<(&str, PassphraseCost)>,
    rng: &mut impl CryptoRng,
) -> Result<(), KeyError> {
    let root_key = generate_root_key(rng);
    let root = match passphrase {
        None => Root::Clear(STANDARD.encode(&root_key[..])),
        Some(("", _)) => return Err(KeyError::EmptyPassphrase),
        Some((passphrase, cost)) => {
            let mut salt = [0; SALT_LEN];
            rng.fill_bytes(&mut salt);
            let sealed = passphrase::seal_root(passphrase, cost, &salt, &root_key, rng)?;
            Root::Passphrase(SealedRoot {
                kdf: Kdf::Argon2id,
                memory_kib: cost.memory_kib,
                passes: cost.passes,
                lanes: cost.lanes,
                salt: STANDARD.encode(salt),
                sealed: STANDARD.encode(sealed),
            })
        }
    };
    let provider = FileRoot::new(&root_key);
    let created = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let data = provider.wrap(&DataKey::generate(rng), data_context(FIRST_KEY))?;
    let metadata = provider.wrap(&DataKey::generate(rng), METADATA_CONTEXT)?;
    let mut file = KeyFile {
        version: KEY_FILE_VERSION,
        root,
        data_keys: vec![DataKeyEntry {
            id: FIRST_KEY,
            created,
            wrapped: STANDARD.encode(data.0),
        }],
        metadata_key: MetadataKeyEntry {
            created,
            wrapped: STANDARD.encode(metadata.0),
        },
        active: FIRST_KEY,
        mac: String::new(),
    };
    file.mac = STANDARD.encode(provider.mac(&Decoded::of(&file)?.authenticated(&file)));
    let mut text = Zeroizing::new(
        serde_json::to_vec_pretty(&file)
            .map_err(|_| KeyError::Malformed("it cannot be written as JSON".to_owned()))?,
    );
    text.push(b'\n');
    write_new(path, &text)
}

/// Reads, opens and verifies a key file.
pub(crate) fn load(path: &Path, passphrase: Option<&str>) -> Result<UnwrappedKeys, KeyError> {
    let text = read_private(path)?;
    let file: KeyFile = serde_json::from_slice(&text).map_err(|error| {
        // Serde's own text may quote the content; the place is enough.
        KeyError::Malformed(format!(
            "not the expected JSON at line {}, column {}",
            error.line(),
            error.column()
        ))
    })?;
    if file.version != KEY_FILE_VERSION {
        return Err(KeyError::Malformed(format!(
            "version {} is unknown",
            file.version
        )));
    }
    let provider = FileRoot::new(&open_root(&file.root, passphrase)?);
    let decoded = Decoded::of(&file)?;
    let mac = decode("mac", &file.mac)?;
    provider.verify(&decoded.authenticated(&file), &mac)?;

    let mut data_keys = BTreeMap::new();
    for (entry, wrapped) in file.data_keys.iter().zip(&decoded.data_keys) {
        let key = provider.unwrap(wrapped, data_context(entry.id))?;
        if data_keys.insert(entry.id, key).is_some() {
            return Err(KeyError::Malformed(format!(
                "key {} is there twice",
                entry.id
            )));
        }
    }
    if !data_keys.contains_key(&file.active) {
        return Err(KeyError::UnknownKey(file.active));
    }
    let metadata = MetadataKey::new(&provider.unwrap(&decoded.metadata_key, METADATA_CONTEXT)?);
    Ok(UnwrappedKeys {
        active: file.active,
        data_keys,
        metadata,
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

fn open_root(root: &Root, passphrase: Option<&str>) -> Result<RootKey, KeyError> {
    // An environment variable that is set to nothing is as good as unset.
    let passphrase = passphrase.filter(|passphrase| !passphrase.is_empty());
    match (root, passphrase) {
        (Root::Clear(_), Some(_)) => Err(KeyError::NotUnderPassphrase),
        (Root::Clear(text), None) => {
            let bytes = Zeroizing::new(decode("root", text)?);
            let key = <[u8; ROOT_KEY_LEN]>::try_from(&bytes[..])
                .map_err(|_| KeyError::Malformed("the root key has a wrong length".to_owned()))?;
            Ok(Zeroizing::new(key))
        }
        (Root::Passphrase(_), None) => Err(KeyError::PassphraseNeeded),
        (Root::Passphrase(root), Some(passphrase)) => {
            let Kdf::Argon2id = root.kdf;
            let cost = PassphraseCost {
                memory_kib: root.memory_kib,
                passes: root.passes,
                lanes: root.lanes,
            };
            let salt = decode("salt", &root.salt)?
                .try_into()
                .map_err(|_| KeyError::Malformed("the salt has a wrong length".to_owned()))?;
            passphrase::open_root(passphrase, cost, &salt, &decode("sealed", &root.sealed)?)
        }
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

fn decode(field: &str, text: &str) -> Result<Vec<u8>, KeyError> {
    STANDARD
        .decode(text)
        .map_err(|_| KeyError::Malformed(format!("field {field} is not base64")))
}

/// Reads a file that only its owner can read.
fn read_private(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let io_error = |source| KeyError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(io_error)?;
    // Of the opened file, not of the path: they could be two.
    let metadata = file.metadata().map_err(io_error)?;
    if !metadata.is_file() {
        return Err(io_error(io::Error::other("not a regular file")));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyError::TooOpen {
            path: path.to_owned(),
            mode,
        });
    }
    if metadata.len() > MAX_FILE_LEN {
        return Err(io_error(io::Error::other("too large for a key file")));
    }
    // Sized beforehand, so that no half-read copies of a root key are left behind by growing.
    let mut text = Zeroizing::new(Vec::with_capacity(metadata.len() as usize + 1));
    file.take(MAX_FILE_LEN)
        .read_to_end(&mut text)
        .map_err(io_error)?;
    Ok(text)
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
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(io_error)?;
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

/// A new name is durable when its directory is.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}
