//! Key sets: where data keys come from, how they are kept, and who may use which.
//!
//! A **root key** wraps **data keys**; from a data key every column derives keys of its own (that
//! happens in `onionskin-crypt`). A [`KeyProvider`] wraps and unwraps keys: that of a key file its
//! data keys, under the root key; one that lies elsewhere the root key itself, by the same
//! interface. What a file is opened by is a [`RootAccess`].
//!
//! A [`KeySet`] is what the program uses. It is unwrapped once, when the program starts, and never
//! changes afterwards: no statement waits for a key server, and nothing but handles is passed
//! around.
//!
//! ```no_run
//! # use std::path::Path;
//! # use onionskin_keys::{ColumnId, KeySet, Suite};
//! # fn main() -> Result<(), onionskin_keys::KeyError> {
//! KeySet::create_file(Path::new("keys.json"), Some("a passphrase"), &mut rand::rng())?;
//! let keys = KeySet::load("file:keys.json", Path::new("."), Some("a passphrase"))?;
//! let id = ColumnId { table: keys.random_table_id(), column: keys.random_column_id() };
//! let cipher = keys.column_cipher(Suite::Aes.into(), keys.active_key(), id, None)?;
//! # Ok(()) }
//! ```
//!
//! A data key has a **state** ([`KeyState`]). What may be done under it is decided here and nowhere
//! else: a cipher of a key that is read-only seals nothing, and of one that is retired or destroyed
//! there is none.
//!
//! The **metadata key**, which authenticates the schema comments, is wrapped on its own and derived
//! from no data key, so that a rotation of data keys leaves old comments valid.
//!
//! **Tenants** are people or customers whose cells can be forgotten on their own. Their secrets are
//! in a file beside the key file ([`tenants`]), which [`KeySet::load_tenants`] reads. A cipher of a
//! column that is keyed by tenant gets them here.
//!
//! A **sealed stream** takes its keys from a data key, or from a passphrase alone
//! ([`stream_key_from_passphrase`]). Or it is sealed to recipients, whose texts and files are here:
//! [`recipient_text`], [`recipient_file`].
//!
//! The format of `keys.json` is in [`key_file`] and in `docs/formats.md`.

mod error;
mod file_root;
mod keeper;
pub mod key_file;
mod key_set;
mod key_state;
mod memory;
mod new_file;
mod old_file;
mod passphrase;
mod private_file;
mod provider;
mod provider_state;
pub mod recipient_file;
pub mod recipient_text;
mod root;
pub mod tenants;

#[cfg(test)]
mod life_tests;
#[cfg(test)]
mod provider_tests;
#[cfg(test)]
mod tenants_tests;
#[cfg(test)]
mod tests;

pub use error::KeyError;
pub use keeper::RootKeeper;
pub use key_file::{KeyChange, KeyEntry};
pub use key_set::{ForeignTenants, KeyDifference, KeySet};
pub use key_state::{KeyState, Rest};
pub use new_file::Leftover;
pub use passphrase::{PassphraseCost, stream_key_from_passphrase};
pub use private_file::{read_private_file, read_secret_file};
pub use provider::{KeyContext, KeyProvider, KeyPurpose, WrappedKey};
pub use provider_state::{ProviderReport, ProviderState};
pub use recipient_file::{MAX_RECIPIENTS, RecipientError};
pub use root::RootAccess;
pub use tenants::{Forgetting, Tenants};

// What the interface of a key set speaks of.
pub use onionskin_crypt::{
    AuditKey, ColumnCipher, ColumnId, DataKey, Identity, KeyId, MetadataKey, Recipient, StreamKey,
    Suite, TenantId, cell_header,
};
