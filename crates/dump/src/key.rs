//! The key of a run, and what is derived from it.

use aws_lc_rs::hmac;
use zeroize::Zeroizing;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// A secret of a run, or of a column. It has no `Debug`, and goes out of memory with its owner.
pub struct MaskKey(Zeroizing<[u8; KEY_BYTES]>);

impl MaskKey {
    /// Of these bytes.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// HMAC-SHA-256 under this key.
    pub(crate) fn mac(&self, purpose: &str, input: &[u8]) -> [u8; KEY_BYTES] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &*self.0);
        let mut context = hmac::Context::with_key(&key);
        // no purpose holds a zero byte
        context.update(purpose.as_bytes());
        context.update(&[0]);
        context.update(input);
        let tag = context.sign();
        let mut out = [0; KEY_BYTES];
        out.copy_from_slice(tag.as_ref());
        out
    }

    /// A key of its own for a purpose.
    pub(crate) fn derive(&self, purpose: &str, input: &[u8]) -> MaskKey {
        MaskKey::new(self.mac(purpose, input))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}
