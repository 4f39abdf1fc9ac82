//! The keys that a running program holds.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use onionskin_crypt::{
    AuditKey, CellFormat, ColumnCipher, ColumnId, DataKey, KeyId, MetadataKey, StreamKey, Suite,
    TenantFileKey, TenantId, TenantNames, TenantSecrets, fresh_bytes,
};
use parking_lot::RwLock;
use rand::CryptoRng;

use crate::{
    KeyError,
    keeper::RootKeeper,
    key_file::{self, KeyChange, KeyEntry},
    key_state::KeyState,
    memory,
    new_file::{self, Leftover},
    old_file::old_path,
    passphrase::PassphraseCost,
    private_file::Owner,
    root::RootAccess,
    tenants::{self, Forgetting, Tenants},
};

/// Ciphers that are kept though nobody uses them. A cipher takes about two kilobytes.
const IDLE_CIPHERS: usize = 1024;

/// One column under one data key.
type Place = (CellFormat, KeyId, ColumnId);

/// A column's ciphers by join group; in practice there is one.
type ByGroup = Vec<(Option<Box<str>>, Arc<ColumnCipher>)>;

/// The ciphers that were asked for. Tables come and go, and with each of them columns with ids of
/// their own; so ciphers that nobody holds are dropped when there are many.
#[derive(Default)]
struct CipherCache {
    ciphers: HashMap<Place, ByGroup>,
    /// Columns at which idle ciphers are looked for; 0 until the first time.
    full: usize,
    /// The greatest count of sealed values among the ciphers that were dropped, by suite. One that
    /// is made again begins to count there, which is at least where it was: no column outruns
    /// [`Suite::seal_bound`] by being forgotten.
    sealed: Vec<(Suite, u64)>,
}

impl CipherCache {
    fn find(&self, place: &Place, join: Option<&str>) -> Option<Arc<ColumnCipher>> {
        self.ciphers
            .get(place)?
            .iter()
            .find(|(group, _)| group.as_deref() == join)
            .map(|(_, cipher)| Arc::clone(cipher))
    }

    fn sealed(&self, suite: Suite) -> u64 {
        let known = self.sealed.iter().find(|(known, _)| *known == suite);
        known.map_or(0, |(_, units)| *units)
    }

    /// Drops what nobody else holds, if there is much. Nobody can begin to hold it meanwhile: that
    /// takes this cache.
    fn make_room(&mut self) {
        if self.ciphers.len() < self.full.max(IDLE_CIPHERS) {
            return;
        }
        let sealed = &mut self.sealed;
        self.ciphers.retain(|(cells, _, _), ciphers| {
            let suite = cells.suite();
            ciphers.retain_mut(|(_, cipher)| {
                let Some(idle) = Arc::get_mut(cipher) else {
                    return true;
                };
                let units = idle.sealed_units();
                match sealed.iter_mut().find(|(known, _)| *known == suite) {
                    Some((_, most)) => *most = units.max(*most),
                    None => sealed.push((suite, units)),
                }
                false
            });
            !ciphers.is_empty()
        });
        // if all are in use, not every new one shall look at all others
        self.full = self.ciphers.len() * 2;
    }
}

/// Unwrapped data keys and the metadata key. Immutable; shared by all sessions.
pub struct KeySet {
    active: KeyId,
    /// What may be done under each number.
    states: BTreeMap<KeyId, KeyState>,
    /// Those that open.
    data_keys: BTreeMap<KeyId, DataKey>,
    metadata: MetadataKey,
    audit: Arc<AuditKey>,
    tenant_names: Arc<TenantNames>,
    tenant_file: TenantFileKey,
    /// The secrets of tenants, if the configuration names a file of them.
    tenants: Option<Arc<Tenants>>,
    forgotten_as_null: bool,
    /// When the active data key was made, in seconds since 1970.
    active_since: u64,
    ciphers: RwLock<CipherCache>,
}

/// How the keys of a file differ from those of a running program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyDifference {
    /// They are the same.
    None,
    /// There are others beside them, or some are gone, or another is used for what is new, or not
    /// as much may be done under one; or more tenants are forgotten.
    Numbers,
    /// A key has become another one under the same number, or the file is of other keys altogether:
    /// nothing that was written could be read.
    Foreign,
    /// What is wrong with the tenants file, whose keys are the right ones.
    ForeignTenants(ForeignTenants),
}

/// Why a tenants file does not take the place of the one that a running program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForeignTenants {
    /// There is none any more.
    #[error(
        "the configuration names no tenants file any more: values of tenants could not be read. The proxy needs a new start for that"
    )]
    Gone,
    /// It was not made by changes of the same file.
    #[error(
        "the tenants file is another one than that which the proxy runs with: values of tenants could not be read"
    )]
    OtherFile,
    /// It is an old copy, or that of another machine, where others were forgotten.
    #[error(
        "a tenant that is forgotten here is not forgotten in the tenants file: it is an old copy, or one from a machine where onionskin \
         tenants forget was not run. Run it there with the same names, or copy the newer file"
    )]
    Returned,
}

impl KeySet {
    /// How `next` differs from these keys.
    pub fn difference(&self, next: &KeySet) -> KeyDifference {
        const PROBE: &[u8] = b"whether both are one key";
        let is_other = |(id, key): (&KeyId, &DataKey)| {
            self.data_keys.get(id).is_some_and(|own| !own.is_same(key))
        };
        let tag = self.metadata.tag(PROBE);
        if !next.metadata.verify(PROBE, &tag) || next.data_keys.iter().any(is_other) {
            return KeyDifference::Foreign;
        }
        let tenants = self.difference_of_tenants(next);
        match self.states == next.states {
            false if tenants == KeyDifference::None => KeyDifference::Numbers,
            _ => tenants,
        }
    }

    fn difference_of_tenants(&self, next: &KeySet) -> KeyDifference {
        let (now, next) = match (&self.tenants, &next.tenants) {
            (None, None) => return KeyDifference::None,
            (None, Some(_)) => return KeyDifference::Numbers,
            (Some(_), None) => return KeyDifference::ForeignTenants(ForeignTenants::Gone),
            (Some(now), Some(next)) => (now, next),
        };
        if now.file_id() != next.file_id() {
            return KeyDifference::ForeignTenants(ForeignTenants::OtherFile);
        }
        match (now.all_forgotten_in(next), next.all_forgotten_in(now)) {
            (true, true) => KeyDifference::None,
            (true, false) => KeyDifference::Numbers,
            (false, _) => KeyDifference::ForeignTenants(ForeignTenants::Returned),
        }
    }

    /// Goes on with the counts of sealed values of those keys, whose place these take: no column
    /// outruns [`Suite::seal_bound`] by a reload.
    pub fn continue_counts(&self, before: &KeySet) {
        let before = before.ciphers.read();
        let mut cache = self.ciphers.write();
        let mut counts = before.sealed.clone();
        for ((cells, _, _), ciphers) in &before.ciphers {
            let units = ciphers.iter().map(|(_, cipher)| cipher.sealed_units());
            counts.push((cells.suite(), units.max().unwrap_or_default()));
        }
        for (suite, units) in counts {
            match cache.sealed.iter_mut().find(|(known, _)| *known == suite) {
                Some((_, most)) => *most = units.max(*most),
                None => cache.sealed.push((suite, units)),
            }
        }
    }

    /// Writes a new key file with a root key, one data key and a metadata key.
    ///
    /// The file has mode 0600 and is on disk when this returns. An existing file is never touched
    /// ([`KeyError::Exists`]). With a passphrase the root key is sealed under it (Argon2id, 64 MiB,
    /// three passes: a fraction of a second); without one the file's mode is its only protection.
    pub fn create_file(
        path: &Path,
        passphrase: Option<&str>,
        rng: &mut impl CryptoRng,
    ) -> Result<(), KeyError> {
        Self::create_file_for(path, RootAccess::Passphrase(passphrase), rng)
    }

    /// The same, with a root key that is protected in this way.
    pub fn create_file_for(
        path: &Path,
        access: RootAccess<'_>,
        rng: &mut impl CryptoRng,
    ) -> Result<(), KeyError> {
        key_file::create(path, access, PassphraseCost::DEFAULT, rng)
    }

    /// The file of a locator: `file:PATH`, where a relative path starts from the directory `base`.
    pub fn path_of(locator: &str, base: &Path) -> Result<PathBuf, KeyError> {
        path_of(locator, base)
    }

    /// Changes the key file that `locator` names (see [`KeySet::load`]), and returns what it holds
    /// then.
    ///
    /// All keys that are there stay: tables, backups and binlogs may need them. The new file has a
    /// new root key, the owner of the old one and mode 0600; it has been read back, and is on disk,
    /// before it takes the old one's place in one step. Programs that run keep the keys that they
    /// have read.
    pub fn change_file(
        locator: &str,
        base: &Path,
        access: RootAccess<'_>,
        change: KeyChange<'_>,
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<KeyEntry>, KeyError> {
        key_file::change(
            &path_of(locator, base)?,
            (access, PassphraseCost::DEFAULT),
            change,
            rng,
        )
    }

    /// The data keys of the file that `locator` names, in the order of their numbers.
    pub fn entries_of_file(
        locator: &str,
        base: &Path,
        access: RootAccess<'_>,
    ) -> Result<Vec<KeyEntry>, KeyError> {
        let path = path_of(locator, base)?;
        Ok(key_file::load(&path, access, Owner::AnyForRoot)?.entries())
    }

    /// How the file that `locator` names says that its root key is kept. Nothing is opened.
    pub fn root_of_file(locator: &str, base: &Path) -> Result<RootKeeper, KeyError> {
        key_file::keeper(&path_of(locator, base)?)
    }

    /// Unwraps the keys that `locator` names: `file:PATH`, where a relative path starts from the
    /// directory `base`.
    ///
    /// Refuses a file that others than its owner can access, a file that was altered, and a
    /// passphrase for a file that is not under one. An empty passphrase counts as none.
    pub fn load(locator: &str, base: &Path, passphrase: Option<&str>) -> Result<Self, KeyError> {
        Self::load_by(locator, base, RootAccess::Passphrase(passphrase))
    }

    /// The same for a file whose root key is protected in this way, and in no other.
    ///
    /// A provider is asked once, and waited for.
    pub fn load_by(locator: &str, base: &Path, access: RootAccess<'_>) -> Result<Self, KeyError> {
        let file = key_file::load(&path_of(locator, base)?, access, Owner::OursOrRoot)?;
        let entries = file.entries();
        let active = entries.iter().find(|entry| entry.is_active);
        let active_since = active.map_or(0, |entry| entry.created);
        let keys = file.into_keys();
        Ok(Self {
            active_since,
            active: keys.active,
            states: keys.states,
            data_keys: keys.data,
            metadata: keys.metadata,
            audit: Arc::new(keys.audit),
            tenant_names: Arc::new(keys.tenant_names),
            forgotten_as_null: false,
            tenant_file: keys.tenant_file,
            tenants: None,
            ciphers: RwLock::default(),
        })
    }

    /// The same keys with the tenants file that `locator` names: `file:PATH`, where a relative path
    /// starts from the directory `base`. Whose the file may be is as with [`KeySet::load`].
    pub fn load_tenants(mut self, locator: &str, base: &Path) -> Result<Self, KeyError> {
        let path = tenants_path_of(locator, base)?;
        let tenants = tenants::load(&path, &self.tenant_file, Owner::OursOrRoot)?;
        self.tenants = Some(Arc::new(tenants));
        self.ciphers = RwLock::default();
        Ok(self)
    }

    /// The tenants file that `locator` names, for the command that changes it: root may read that
    /// of another user.
    pub fn tenants_of_file(&self, locator: &str, base: &Path) -> Result<Tenants, KeyError> {
        let path = tenants_path_of(locator, base)?;
        tenants::load(&path, &self.tenant_file, Owner::AnyForRoot)
    }

    /// Makes the tenants file that `locator` names, with secrets for all tenants that will ever be.
    /// It has mode 0600 and is on disk when this returns. An existing file is never touched
    /// ([`KeyError::Exists`]).
    pub fn create_tenants_file(&self, locator: &str, base: &Path) -> Result<(), KeyError> {
        tenants::create(&tenants_path_of(locator, base)?, &self.tenant_file)
    }

    /// Takes the secrets of these tenants out of the file that `locator` names, for good.
    ///
    /// The new file has the owner of the old one and mode 0600; it has been read back, and is on
    /// disk, before it takes the old one's place in one step. Then the bytes of the old one are
    /// written over. Programs that run keep the secrets that they have read.
    pub fn forget_tenants(
        &self,
        locator: &str,
        base: &Path,
        tenants: &[TenantId],
    ) -> Result<Forgetting, KeyError> {
        let path = tenants_path_of(locator, base)?;
        tenants::forget(&path, &self.tenant_file, tenants)
    }

    /// The file of a locator of tenants.
    pub fn tenants_path_of(locator: &str, base: &Path) -> Result<PathBuf, KeyError> {
        tenants_path_of(locator, base)
    }

    /// What changes of the tenants file that `locator` names have left beside it.
    pub fn tenants_leftovers(locator: &str, base: &Path) -> Vec<PathBuf> {
        let Ok(path) = tenants_path_of(locator, base) else {
            return Vec::new();
        };
        let new = new_file::leftover(&path).map(|leftover| leftover.path);
        let old = path.canonicalize().ok().map(|path| old_path(&path));
        let old = old.filter(|old| old.symlink_metadata().is_ok());
        new.into_iter().chain(old).collect()
    }

    /// How tenants are named in cells, if there is a file of their secrets.
    pub fn tenant_names(&self) -> Option<Arc<TenantNames>> {
        self.tenants.as_ref()?;
        Some(Arc::clone(&self.tenant_names))
    }

    /// The same keys, by which cells of tenants that are forgotten are shown as NULL.
    #[must_use]
    pub fn showing_forgotten_as_null(mut self, null: bool) -> Self {
        self.forgotten_as_null = null;
        self
    }

    /// Whether cells of tenants that are forgotten are shown as NULL. Otherwise they are errors.
    pub fn shows_forgotten_as_null(&self) -> bool {
        self.forgotten_as_null
    }

    /// The secrets of tenants, if there is a file of them.
    pub fn tenants(&self) -> Option<&Arc<Tenants>> {
        self.tenants.as_ref()
    }

    /// The id of the tenant whose name in this space is `value`. No file is needed for that.
    pub fn tenant_id(&self, space: &str, value: &[u8]) -> TenantId {
        self.tenant_names.id(space, value)
    }

    /// What a change of the key file that `locator` names has left beside it: another command is at
    /// work, or was broken off.
    pub fn leftover(locator: &str, base: &Path) -> Option<Leftover> {
        new_file::leftover(&path_of(locator, base).ok()?)
    }

    /// Keeps the data keys out of swap. An error is no reason to stop: most often the system does
    /// not allow it.
    pub fn lock_in_memory(&self) -> std::io::Result<()> {
        memory::lock(self.data_keys.values())
    }

    /// The data key under which new values are written.
    pub fn active_key(&self) -> KeyId {
        self.active
    }

    /// When that key was made, in seconds since 1970.
    pub fn active_since(&self) -> u64 {
        self.active_since
    }

    /// The data keys that open, in the order of their numbers.
    pub fn key_ids(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.data_keys.keys().copied()
    }

    /// What may be done under each data key, in the order of their numbers.
    pub fn states(&self) -> impl Iterator<Item = (KeyId, KeyState)> + '_ {
        self.states.iter().map(|(&id, &state)| (id, state))
    }

    /// The bytes of a data key, if something may be opened under it. All that is made from data
    /// keys asks here.
    fn data_key(&self, id: KeyId) -> Result<&DataKey, KeyError> {
        let key = self.data_keys.get(&id);
        key.ok_or_else(|| match self.states.get(&id) {
            Some(&state) => KeyError::NotInUse { id, state },
            None => KeyError::UnknownKey(id),
        })
    }

    /// The cipher of a column under a data key, built at the first call and shared from then on.
    ///
    /// Costs a hash look-up under a read lock; a plan or session that needs it for every row keeps
    /// the `Arc`. Because all callers share one cipher, its count of sealed values is the
    /// process's.
    ///
    /// That of a key which is read-only seals nothing; of one that is retired or destroyed there is
    /// none ([`KeyError::NotInUse`]).
    pub fn column_cipher(
        &self,
        cells: CellFormat,
        key_id: KeyId,
        id: ColumnId,
        join: Option<&str>,
    ) -> Result<Arc<ColumnCipher>, KeyError> {
        let place = (cells, key_id, id);
        if let Some(cipher) = self.ciphers.read().find(&place, join) {
            return Ok(cipher);
        }
        let data_key = self.data_key(key_id)?;
        let mut cache = self.ciphers.write();
        // Another thread may have been faster; two ciphers would count separately.
        if let Some(cipher) = cache.find(&place, join) {
            return Ok(cipher);
        }
        cache.make_room();
        let cipher = ColumnCipher::new(cells, key_id, data_key, id, join);
        // The one place where the state of a key says what its ciphers do.
        let cipher = match self.states.get(&key_id).is_some_and(|s| s.seals()) {
            true => cipher,
            false => cipher.opening_only(),
        };
        let cipher = match &self.tenants {
            Some(tenants) => cipher.with_tenants(Arc::clone(tenants) as Arc<dyn TenantSecrets>),
            None => cipher,
        };
        let cipher = Arc::new(cipher.having_sealed(cache.sealed(cells.suite())));
        cache
            .ciphers
            .entry(place)
            .or_default()
            .push((join.map(Box::from), Arc::clone(&cipher)));
        Ok(cipher)
    }

    /// Columns whose ciphers are kept.
    #[cfg(test)]
    pub(crate) fn kept_ciphers(&self) -> usize {
        self.ciphers.read().ciphers.len()
    }

    /// The key of the sealed stream that `context` identifies (see [`StreamKey::new`]), under a
    /// data key.
    pub fn stream_key(
        &self,
        suite: Suite,
        key_id: KeyId,
        context: &[u8],
    ) -> Result<StreamKey, KeyError> {
        Ok(StreamKey::new(suite, self.data_key(key_id)?, context))
    }

    /// The key that authenticates schema comments.
    pub fn metadata_key(&self) -> &MetadataKey {
        &self.metadata
    }

    /// The key that seals the audit log.
    pub fn audit_key(&self) -> Arc<AuditKey> {
        Arc::clone(&self.audit)
    }

    /// An id for a table that is being created.
    pub fn random_table_id(&self) -> [u8; 8] {
        fresh_bytes()
    }

    /// An id for a column that is being created. Four bytes: compare it with the other columns of
    /// the table.
    pub fn random_column_id(&self) -> [u8; 4] {
        fresh_bytes()
    }
}

/// The file of a locator.
fn path_of(locator: &str, base: &Path) -> Result<PathBuf, KeyError> {
    // The locator of another provider may hold a token: it is not repeated in the error.
    locator
        .strip_prefix("file:")
        .filter(|path| !path.is_empty())
        .map(|path| base.join(path))
        .ok_or(KeyError::UnknownProvider)
}

/// The file of a locator of tenants.
fn tenants_path_of(locator: &str, base: &Path) -> Result<PathBuf, KeyError> {
    path_of(locator, base).map_err(|_| KeyError::TenantsPlace)
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySet")
            .field("active", &self.active)
            .field("key_ids", &self.data_keys.keys())
            .finish_non_exhaustive()
    }
}
