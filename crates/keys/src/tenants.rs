//! The tenants file: the secrets of all tenants that were not forgotten, and who was.
//!
//! ```text
//! offset  length
//!      0       8  0x89 "ONTEN" 0x0d 0x0a
//!      8       1  format version, 1
//!      9       7  zeros
//!     16      16  file id, random; stays
//!     32       8  generation: 1, and one more with each change
//!     40      12  nonce, random
//!     52       n  ciphertext
//! 52 + n      16  tag
//! ```
//!
//! AES-256-GCM-SIV under a key that is derived from the metadata key, with the first 40 bytes as
//! associated data. The metadata key never changes, so no change of data keys touches this file.
//! The content, numbers big-endian:
//!
//! ```text
//! number of forgotten tenants (8)
//! ‖ for each, in the order of their ids: id (8) ‖ when it was forgotten, in seconds since 1970 (8)
//! ‖ the secrets of the nodes that are kept, in the order of their paths, 16 bytes each
//! ```
//!
//! Which nodes are kept follows from who was forgotten (see [`TenantTree`]): with nobody forgotten
//! it is the root alone. The file has no names. It grows by about a kilobyte with each forgotten
//! tenant.
//!
//! A change writes the file anew and puts it in the old one's place when it has been read back.
//! Then the bytes of the old file are written over, because they open what was forgotten.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use onionskin_crypt::{
    TenantFileKey, TenantId, TenantSecret, TenantSecrets, TenantTree,
    dangerous_bytes::{secrets_of_tree, tree_from_secrets},
    fresh_bytes,
};
use zeroize::Zeroizing;

use crate::{
    KeyError,
    new_file::{NewFile, write_new},
    old_file::OldFile,
    private_file::{Owner, read_file_of},
};

/// The version of the tenants file.
pub const TENANTS_FILE_VERSION: u8 = 1;

const MAGIC: &[u8; 8] = b"\x89ONTEN\r\n";
const FILE_ID_AT: usize = 16;
const GENERATION_AT: usize = 32;
const HEADER_LEN: usize = 40;
/// More than 300,000 forgotten tenants.
const MAX_FILE_LEN: u64 = 256 << 20;

/// The secrets of tenants that a running program holds, and who was forgotten.
pub struct Tenants {
    file_id: [u8; 16],
    generation: u64,
    tree: TenantTree,
    /// When each was forgotten, in seconds since 1970.
    forgotten: BTreeMap<TenantId, u64>,
}

/// What came of forgetting.
#[derive(Debug)]
pub struct Forgetting {
    /// Whether each of those that were named was not forgotten before.
    pub is_new: Vec<bool>,
    /// How many are forgotten now.
    pub forgotten: usize,
    /// The generation of the file.
    pub generation: u64,
    /// Why the bytes of the old file could not be written over, if so.
    pub not_overwritten: Option<std::io::Error>,
}

impl Tenants {
    fn generate() -> Self {
        Self {
            file_id: fresh_bytes(),
            generation: 1,
            tree: TenantTree::new(fresh_bytes()),
            forgotten: BTreeMap::new(),
        }
    }

    /// Whether a tenant was forgotten.
    pub fn is_forgotten(&self, tenant: TenantId) -> bool {
        self.tree.is_forgotten(tenant)
    }

    /// Who was forgotten, and when, in seconds since 1970; in the order of the ids.
    pub fn forgotten(&self) -> impl ExactSizeIterator<Item = (TenantId, u64)> + '_ {
        self.forgotten.iter().map(|(&id, &time)| (id, time))
    }

    /// When a tenant was forgotten, in seconds since 1970.
    pub fn forgotten_at(&self, tenant: TenantId) -> Option<u64> {
        self.forgotten.get(&tenant).copied()
    }

    /// One more with each change of the file.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The same in all copies of a file, and in no other.
    pub fn file_id(&self) -> [u8; 16] {
        self.file_id
    }

    /// Whether everybody who is forgotten here is forgotten there.
    pub(crate) fn all_forgotten_in(&self, other: &Self) -> bool {
        let mut forgotten = self.forgotten.keys();
        forgotten.all(|id| other.forgotten.contains_key(id))
    }

    /// The bytes of the file.
    fn to_bytes(&self, key: &TenantFileKey) -> Result<Vec<u8>, KeyError> {
        let secrets = secrets_of_tree(&self.tree);
        let room = 8 + 16 * self.forgotten.len() + secrets.len();
        if room as u64 + 1024 > MAX_FILE_LEN {
            return Err(KeyError::TenantsFull);
        }
        let mut content = Zeroizing::new(Vec::with_capacity(room));
        content.extend_from_slice(&(self.forgotten.len() as u64).to_be_bytes());
        for (id, time) in &self.forgotten {
            content.extend_from_slice(&id.0);
            content.extend_from_slice(&time.to_be_bytes());
        }
        content.extend_from_slice(&secrets);
        let mut file = vec![0; HEADER_LEN];
        file[..MAGIC.len()].copy_from_slice(MAGIC);
        file[MAGIC.len()] = TENANTS_FILE_VERSION;
        file[FILE_ID_AT..GENERATION_AT].copy_from_slice(&self.file_id);
        file[GENERATION_AT..].copy_from_slice(&self.generation.to_be_bytes());
        let sealed = key.seal(&file, &mut content);
        file.extend_from_slice(&sealed.map_err(|_| KeyError::WrapFailed)?);
        Ok(file)
    }

    fn from_bytes(file: &[u8], key: &TenantFileKey) -> Result<Self, KeyError> {
        let malformed = |why: &str| KeyError::TenantsMalformed(why.to_owned());
        let (header, sealed) = file
            .split_first_chunk::<HEADER_LEN>()
            .ok_or_else(|| malformed("it is too short"))?;
        if !header.starts_with(MAGIC) {
            return Err(malformed("it is another kind of file"));
        }
        if header[MAGIC.len()] != TENANTS_FILE_VERSION {
            let version = header[MAGIC.len()];
            return Err(malformed(&format!("version {version} is unknown")));
        }
        let content = key
            .open(header, sealed)
            .map_err(|_| KeyError::TenantsTampered)?;
        // What was authenticated is what was written; these are not met.
        let wrong = || malformed("its parts contradict each other");
        let (number, rest) = content.split_first_chunk::<8>().ok_or_else(wrong)?;
        let number = usize::try_from(u64::from_be_bytes(*number)).map_err(|_| wrong())?;
        let entries = number.checked_mul(16).filter(|&end| end <= rest.len());
        let (entries, secrets) = rest.split_at(entries.ok_or_else(wrong)?);
        let mut forgotten = BTreeMap::new();
        for entry in entries.as_chunks::<16>().0 {
            let [id, time] = [0, 8].map(|at| entry[at..].first_chunk::<8>().copied());
            let (id, time) = id.zip(time).ok_or_else(wrong)?;
            forgotten.insert(TenantId(id), u64::from_be_bytes(time));
        }
        let ids: Vec<TenantId> = forgotten.keys().copied().collect();
        let is_whole = header[MAGIC.len() + 1..FILE_ID_AT] == [0; 7] && ids.len() == number;
        let tree = tree_from_secrets(&ids, secrets).filter(|_| is_whole);
        let mut file_id = [0; 16];
        file_id.copy_from_slice(&header[FILE_ID_AT..GENERATION_AT]);
        let mut generation = [0; 8];
        generation.copy_from_slice(&header[GENERATION_AT..]);
        Ok(Self {
            file_id,
            generation: u64::from_be_bytes(generation),
            tree: tree.ok_or_else(wrong)?,
            forgotten,
        })
    }

    /// Whether two files say the same.
    fn are(&self, other: &Self) -> bool {
        self.file_id == other.file_id
            && self.generation == other.generation
            && self.forgotten == other.forgotten
            && *secrets_of_tree(&self.tree) == *secrets_of_tree(&other.tree)
    }
}

impl TenantSecrets for Tenants {
    fn secret(&self, tenant: TenantId) -> Option<TenantSecret> {
        self.tree.secret(tenant)
    }
}

impl fmt::Debug for Tenants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tenants")
            .field("generation", &self.generation)
            .field("forgotten", &self.forgotten.len())
            .finish_non_exhaustive()
    }
}

/// Writes a new tenants file, from which nobody is forgotten. Never overwrites.
pub(crate) fn create(path: &Path, key: &TenantFileKey) -> Result<(), KeyError> {
    write_new(path, &Tenants::generate().to_bytes(key)?)
}

/// Reads, opens and verifies a tenants file.
pub(crate) fn load(path: &Path, key: &TenantFileKey, whose: Owner) -> Result<Tenants, KeyError> {
    let file = read_file_of(whose, path, MAX_FILE_LEN).map_err(about_tenants)?;
    Tenants::from_bytes(&file, key)
}

/// Forgets these tenants in the file. One in which they are all forgotten already stays as it is.
pub(crate) fn forget(
    path: &Path,
    key: &TenantFileKey,
    ids: &[TenantId],
) -> Result<Forgetting, KeyError> {
    // Of a symbolic link, what it leads to is replaced.
    let path = fs::canonicalize(path).map_err(|source| KeyError::TenantsIo {
        path: path.to_owned(),
        source,
    })?;
    // Stands while this goes on, so that of two commands at a time none undoes what the other does.
    let new = NewFile::create(&path).map_err(about_tenants)?;
    // What an earlier change could not finish.
    OldFile::destroy_leftover(&path)?;
    let mut tenants = load(&path, key, Owner::AnyForRoot)?;
    let now = now();
    let mut is_new = Vec::with_capacity(ids.len());
    for &id in ids {
        is_new.push(tenants.tree.forget(id));
        tenants.forgotten.entry(id).or_insert(now);
    }
    let mut not_overwritten = None;
    if is_new.contains(&true) {
        tenants.generation += 1;
        new.write(&tenants.to_bytes(key)?).map_err(about_tenants)?;
        // Before the old file is gone, the new one is read as it will be.
        if !load(new.path(), key, Owner::OursOrRoot)?.are(&tenants) {
            return Err(KeyError::TenantsTampered);
        }
        let old = OldFile::keep(&path)?;
        new.take_the_place_of(&path).map_err(about_tenants)?;
        not_overwritten = old.destroy().err();
    }
    Ok(Forgetting {
        is_new,
        forgotten: tenants.forgotten.len(),
        generation: tenants.generation,
        not_overwritten,
    })
}

/// What is about files is said of this one.
fn about_tenants(error: KeyError) -> KeyError {
    match error {
        KeyError::Io { path, source } => KeyError::TenantsIo { path, source },
        other => other,
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
