//! Raw key bytes. **The only way in and out of a [`DataKey`]; search for this name when
//! reviewing.**
//!
//! Needed by key providers, which wrap and unwrap keys, and by nothing else. Bytes taken out here
//! are no longer wiped by anyone but the caller.

use crate::{DATA_KEY_LEN, DataKey};

/// Makes a key of raw bytes, which must be secret and uniformly random.
pub fn data_key_from_bytes(bytes: [u8; DATA_KEY_LEN]) -> DataKey {
    DataKey::from_bytes(bytes)
}

/// Shows the raw bytes of `key`.
pub fn bytes_of_data_key(key: &DataKey) -> &[u8; DATA_KEY_LEN] {
    key.bytes()
}
