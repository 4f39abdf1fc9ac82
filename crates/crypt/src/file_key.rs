//! The file key: the secret of one sealed stream that is wrapped to recipients.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::fresh_bytes;

/// Length of a file key in bytes, as age has it. Both suites wrap just so many: what is longer or
/// shorter is no file key, and leaves no room for a wrapped message that opens in two ways.
pub const FILE_KEY_LEN: usize = 16;

/// 16 secret random bytes that one stream has for itself, wiped when dropped.
///
/// Boxed, so that moving the handle leaves no copies on the stack.
pub struct FileKey {
    bytes: Box<[u8; FILE_KEY_LEN]>,
}

impl FileKey {
    /// Draws a new one, which copies of this process do not draw as well.
    pub fn generate() -> Self {
        Self::from_bytes(fresh_bytes())
    }

    pub(crate) fn from_bytes(mut bytes: [u8; FILE_KEY_LEN]) -> Self {
        let boxed = Box::new(bytes);
        bytes.zeroize();
        Self { bytes: boxed }
    }

    /// Whether both are one key; takes the same time for all others.
    pub fn is_same(&self, other: &FileKey) -> bool {
        self.bytes[..].ct_eq(&other.bytes[..]).into()
    }

    pub(crate) fn bytes(&self) -> &[u8; FILE_KEY_LEN] {
        &self.bytes
    }
}

impl Drop for FileKey {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl fmt::Debug for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileKey").finish_non_exhaustive()
    }
}
