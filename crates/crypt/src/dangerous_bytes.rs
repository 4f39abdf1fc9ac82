//! Raw key bytes. **The only way in and out of a [`DataKey`], an [`Identity`] and a
//! [`TenantTree`]; search for this name when reviewing.**
//!
//! Needed by key providers, which wrap and unwrap keys, by the text form of identities, by the file
//! of tenants, and by nothing else. Bytes taken out here are no longer wiped by anyone but the
//! caller.

use zeroize::Zeroizing;

use crate::{
    DATA_KEY_LEN, DataKey, FILE_KEY_LEN, FileKey, Identity, Suite, TenantId, TenantTree,
    recipient::{IDENTITY_LEN, KeyBytesError},
};

/// Makes a key of raw bytes, which must be secret and uniformly random.
pub fn data_key_from_bytes(bytes: [u8; DATA_KEY_LEN]) -> DataKey {
    DataKey::from_bytes(bytes)
}

/// Shows the raw bytes of `key`.
pub fn bytes_of_data_key(key: &DataKey) -> &[u8; DATA_KEY_LEN] {
    key.bytes()
}

/// Makes the identity of a suite of its secret bytes.
pub fn identity_from_bytes(
    suite: Suite,
    bytes: &[u8; IDENTITY_LEN],
) -> Result<Identity, KeyBytesError> {
    Identity::from_bytes(suite, bytes)
}

/// Shows the secret bytes of `identity`.
pub fn bytes_of_identity(identity: &Identity) -> Zeroizing<[u8; IDENTITY_LEN]> {
    identity.secret_bytes()
}

/// Makes a file key of raw bytes, which must be secret and serve one stream. Comparing with other
/// programs needs it; streams draw theirs ([`FileKey::generate`]).
pub fn file_key_from_bytes(bytes: [u8; FILE_KEY_LEN]) -> FileKey {
    FileKey::from_bytes(bytes)
}

/// Shows the secrets of the nodes of `tree`, 16 bytes each, as [`tree_from_secrets`] takes them.
/// They are wiped when they are dropped.
pub fn secrets_of_tree(tree: &TenantTree) -> Zeroizing<Vec<u8>> {
    tree.secrets()
}

/// Makes the tree from which these tenants are forgotten, of the secrets of its nodes; `None` if it
/// has not as many.
pub fn tree_from_secrets(forgotten: &[TenantId], secrets: &[u8]) -> Option<TenantTree> {
    TenantTree::from_secrets(forgotten, secrets)
}
