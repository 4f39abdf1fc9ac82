//! The data key: the one secret from which a column's keys are derived.

use std::fmt;

use rand::CryptoRng;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

/// Length of a data key in bytes.
pub const DATA_KEY_LEN: usize = 32;

/// 32 secret random bytes, wiped when dropped.
///
/// Boxed, so that moving the handle leaves no copies on the stack.
pub struct DataKey {
    bytes: Box<[u8; DATA_KEY_LEN]>,
}

impl DataKey {
    /// Draws a new key.
    pub fn generate(rng: &mut impl CryptoRng) -> Self {
        let mut bytes = Box::new([0; DATA_KEY_LEN]);
        rng.fill_bytes(&mut bytes[..]);
        Self { bytes }
    }

    pub(crate) fn from_bytes(mut bytes: [u8; DATA_KEY_LEN]) -> Self {
        let boxed = Box::new(bytes);
        bytes.zeroize();
        Self { bytes: boxed }
    }

    /// Whether both are one key; takes the same time for all others.
    pub fn is_same(&self, other: &DataKey) -> bool {
        self.bytes[..].ct_eq(&other.bytes[..]).into()
    }

    pub(crate) fn bytes(&self) -> &[u8; DATA_KEY_LEN] {
        &self.bytes
    }
}

impl Drop for DataKey {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataKey").finish_non_exhaustive()
    }
}
