//! The keys that a running program holds.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::Path,
    sync::Arc,
};

use onionskin_crypt::{ColumnCipher, ColumnId, DataKey, KeyId, MetadataKey, StreamKey, Suite};
use parking_lot::RwLock;
use rand::{CryptoRng, Rng};

use crate::{
    KeyError,
    key_file::{self, UnwrappedKeys},
    passphrase::PassphraseCost,
};

/// One column under one data key, and its ciphers by join group (in practice one).
type CipherCache = HashMap<(Suite, KeyId, ColumnId), Vec<(Option<Box<str>>, Arc<ColumnCipher>)>>;

/// Unwrapped data keys and the metadata key. Immutable; shared by all sessions.
pub struct KeySet {
    active: KeyId,
    data_keys: BTreeMap<KeyId, DataKey>,
    metadata: MetadataKey,
    ciphers: RwLock<CipherCache>,
}

impl KeySet {
    /// Writes a new key file with a root key, one data key and a metadata key.
    ///
    /// The file has mode 0600 and is on disk when this returns. An existing file is never touched
    /// ([`KeyError::Exists`]). With a passphrase the root key is sealed under it (Argon2id, 64 MiB, three passes: a
    /// fraction of a second); without one the file's mode is its only protection.
    pub fn create_file(
        path: &Path,
        passphrase: Option<&str>,
        rng: &mut impl CryptoRng,
    ) -> Result<(), KeyError> {
        key_file::create(
            path,
            passphrase.map(|passphrase| (passphrase, PassphraseCost::DEFAULT)),
            rng,
        )
    }

    /// Unwraps the keys that `locator` names: `file:PATH`, where a relative path starts from the directory `base`.
    ///
    /// Refuses a file that others than its owner can access, a file that was altered, and a passphrase for a file that
    /// is not under one. An empty passphrase counts as none.
    pub fn load(locator: &str, base: &Path, passphrase: Option<&str>) -> Result<Self, KeyError> {
        // The locator of another provider may hold a token: it is not repeated in the error.
        let path = locator
            .strip_prefix("file:")
            .filter(|path| !path.is_empty())
            .ok_or(KeyError::UnknownProvider)?;
        let UnwrappedKeys {
            active,
            data_keys,
            metadata,
        } = key_file::load(&base.join(path), passphrase)?;
        Ok(Self {
            active,
            data_keys,
            metadata,
            ciphers: RwLock::default(),
        })
    }

    /// The data key under which new values are written.
    pub fn active_key(&self) -> KeyId {
        self.active
    }

    /// All data keys, in the order of their numbers.
    pub fn key_ids(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.data_keys.keys().copied()
    }

    /// The cipher of a column under a data key, built at the first call and shared from then on.
    ///
    /// Costs a hash look-up under a read lock; a plan or session that needs it for every row keeps the `Arc`.
    /// Because all callers share one cipher, its count of sealed values is the process's.
    pub fn column_cipher(
        &self,
        suite: Suite,
        key_id: KeyId,
        id: ColumnId,
        join: Option<&str>,
    ) -> Result<Arc<ColumnCipher>, KeyError> {
        let place = (suite, key_id, id);
        if let Some(cipher) = find(&self.ciphers.read(), &place, join) {
            return Ok(cipher);
        }
        let data_key = self
            .data_keys
            .get(&key_id)
            .ok_or(KeyError::UnknownKey(key_id))?;
        let mut ciphers = self.ciphers.write();
        // Another thread may have been faster; two ciphers would count separately.
        if let Some(cipher) = find(&ciphers, &place, join) {
            return Ok(cipher);
        }
        let cipher = Arc::new(ColumnCipher::new(suite, key_id, data_key, id, join));
        ciphers
            .entry(place)
            .or_default()
            .push((join.map(Box::from), Arc::clone(&cipher)));
        Ok(cipher)
    }

    /// The key of the sealed stream that `context` identifies (see [`StreamKey::new`]), under a data key.
    pub fn stream_key(
        &self,
        suite: Suite,
        key_id: KeyId,
        context: &[u8],
    ) -> Result<StreamKey, KeyError> {
        let data_key = self
            .data_keys
            .get(&key_id)
            .ok_or(KeyError::UnknownKey(key_id))?;
        Ok(StreamKey::new(suite, data_key, context))
    }

    /// The key that authenticates schema comments.
    pub fn metadata_key(&self) -> &MetadataKey {
        &self.metadata
    }

    /// An id for a table that is being created.
    pub fn random_table_id(&self) -> [u8; 8] {
        random()
    }

    /// An id for a column that is being created. Four bytes: compare it with the other columns of the table.
    pub fn random_column_id(&self) -> [u8; 4] {
        random()
    }
}

fn find(
    ciphers: &CipherCache,
    place: &(Suite, KeyId, ColumnId),
    join: Option<&str>,
) -> Option<Arc<ColumnCipher>> {
    ciphers
        .get(place)?
        .iter()
        .find(|(group, _)| group.as_deref() == join)
        .map(|(_, cipher)| Arc::clone(cipher))
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySet")
            .field("active", &self.active)
            .field("key_ids", &self.data_keys.keys())
            .finish_non_exhaustive()
    }
}
