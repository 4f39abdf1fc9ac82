//! What can go wrong with keys. No text carries key material or a passphrase.

use std::{io, path::PathBuf};

use onionskin_crypt::KeyId;

use crate::{keeper::RootKeeper, key_state::KeyState};

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Reading or writing the key file failed.
    #[error("key file {}: {source}", path.display())]
    Io {
        /// The key file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// `create_file` never overwrites: the data of the old keys would be lost.
    #[error("key file {} already exists and is not overwritten", path.display())]
    Exists {
        /// The key file.
        path: PathBuf,
    },
    /// The file that is to take the key file's place is there already.
    #[error(
        "{} exists: another command changes the keys, or was ended while it did. If none runs, destroy that file (shred -u): \
         it may hold the same keys, and the key file beside it is whole",
        path.display()
    )]
    BeingChanged {
        /// That file.
        path: PathBuf,
    },
    /// Someone else than the owner can read or write the file.
    #[error(
        "{} is open to other users (mode {mode:04o}): run chmod 600 on it",
        path.display()
    )]
    TooOpen {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Someone else than the owner can write the file.
    #[error(
        "{} can be changed by other users (mode {mode:04o}): run chmod go-w on it",
        path.display()
    )]
    Writable {
        /// The file of recipients.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file is another user's, who can change it and its mode.
    #[error(
        "{} belongs to user {owner}, and this program runs as user {user}: run it as the file's owner, or chown the file to {user} or root",
        path.display()
    )]
    OtherOwner {
        /// The key file.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
        /// The number of the user that this process runs as.
        user: u32,
    },
    /// The locator is not of the form `file:PATH`.
    #[error("unknown key provider in the setting \"keys\": expected \"file:PATH\"")]
    UnknownProvider,
    /// Not a key file of a version that this program knows. The text names the fault, never the
    /// content.
    #[error("key file is malformed: {0}")]
    Malformed(String),
    /// The root key is under a passphrase, and none was given.
    #[error(
        "the key file is under a passphrase: set ONIONSKIN_PASSPHRASE, or ONIONSKIN_PASSPHRASE_FILE to the file that has it"
    )]
    PassphraseNeeded,
    /// The passphrase does not open the root key (or the sealed root key was altered: the two
    /// cannot be told apart).
    #[error("wrong passphrase for the key file")]
    WrongPassphrase,
    /// A passphrase was given for a file that has none. It may have been exchanged for another.
    #[error(
        "a passphrase was given, but the key file is not under one: \
         unset ONIONSKIN_PASSPHRASE, ONIONSKIN_PASSPHRASE_FILE and the credential onionskin-passphrase if this is the right file"
    )]
    NotUnderPassphrase,
    /// A new key file was asked for with an empty passphrase.
    #[error("the passphrase is empty")]
    EmptyPassphrase,
    /// Key derivation from the passphrase failed, most likely for want of memory.
    #[error("deriving a key from the passphrase failed")]
    Derivation,
    /// The key file, or a key in it, is not what was written.
    #[error("the key file was altered: its authentication fails")]
    Tampered,
    /// Data was written under a key that is not in this key set.
    #[error("key {0} is not in the key file")]
    UnknownKey(KeyId),
    /// A key that is there, and is not used for this any more.
    #[error("key {id} is {state}")]
    NotInUse {
        /// The key's number.
        id: KeyId,
        /// Its state.
        state: KeyState,
    },
    /// A state that a key does not come to from the one that it is in.
    #[error("key {id} is {state}: {why}")]
    NoSuchStep {
        /// The key's number.
        id: KeyId,
        /// Its state.
        state: KeyState,
        /// What has to be done before, or that it is too late.
        why: &'static str,
    },
    /// Reading or writing the tenants file failed.
    #[error("tenants file {}: {source}", path.display())]
    TenantsIo {
        /// The tenants file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The setting is not of the form `file:PATH`.
    #[error("the setting \"tenants\": expected \"file:PATH\"")]
    TenantsPlace,
    /// Not a tenants file of a version that this program knows.
    #[error("the tenants file is malformed: {0}")]
    TenantsMalformed(String),
    /// The tenants file does not open.
    #[error(
        "the tenants file does not open: it was altered, or it belongs to another key file than the one that \"keys\" names"
    )]
    TenantsTampered,
    /// The tenants file would be larger than programs read.
    #[error("the tenants file holds as many forgotten tenants as it can")]
    TenantsFull,
    /// All numbers of data keys are given out.
    #[error("the key file holds as many keys as there are numbers for")]
    Full,
    /// A key could not be wrapped.
    #[error("the key provider could not wrap a key")]
    WrapFailed,
    /// A provider wraps the root key, and nobody has said how it is reached.
    #[error(
        "the root key of the key file is wrapped by the provider \"{0}\": name a configuration (-c) with keys_provider = \"{0}\", \
         and how it is reached under [provider.{0}]"
    )]
    ProviderNeeded(String),
    /// The configuration says that a provider wraps the root key, and the file is another one.
    #[error(
        "keys_provider is \"{name}\", but the root key of the key file is {found}. The file may have been exchanged for another; \
         if it is the right one: onionskin keys rewrap --to {name}"
    )]
    NotUnderProvider {
        /// The provider that was to unwrap it.
        name: String,
        /// How it is kept.
        found: RootKeeper,
    },
    /// Another provider wraps the root key.
    #[error(
        "keys_provider is \"{name}\", but the root key of the key file is wrapped by \"{found}\": set keys_provider = \"{found}\", \
         or move the file: onionskin keys rewrap --to {name}"
    )]
    OtherProvider {
        /// The provider that was to unwrap it.
        name: String,
        /// The one that the file names.
        found: String,
    },
    /// The provider of the root key does not do what it is asked.
    #[error("the provider of the root key, \"{name}\": {why}")]
    Provider {
        /// Its name.
        name: String,
        /// What it said, and what to do. Holds no secret.
        why: String,
        /// Whether the same question may be answered later.
        may_pass: bool,
    },
}

impl KeyError {
    /// Whether trying again can help.
    pub fn may_pass(&self) -> bool {
        matches!(self, KeyError::Provider { may_pass: true, .. })
    }
}
