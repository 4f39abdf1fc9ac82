//! Authentication of metadata that the server stores for us: the schema comments.

use std::fmt;

use aws_lc_rs::hkdf;
use subtle::ConstantTimeEq;

use crate::{
    DataKey, Suite,
    mac::{MAC_LEN, MacKey},
};

/// Length of a metadata tag in bytes.
pub const METADATA_TAG_LEN: usize = MAC_LEN;

const SALT: &[u8] = b"onionskin/1 metadata";
const INFO: &[u8] = b"comment";
const AUDIT_INFO: &[u8] = b"audit log";

/// Tags the logical definitions that stand in column comments, so that the server cannot change a
/// type, a capability or an id without being noticed.
///
/// It has a data key of its own, which rotation leaves alone: old comments stay valid. The tag is
/// HMAC-SHA-256 cut to 128 bits, in both suites. It says nothing of which column a comment belongs
/// to: the tagged bytes must.
pub struct MetadataKey {
    mac: MacKey,
}

impl MetadataKey {
    /// Derives the tagging key.
    pub fn new(data_key: &DataKey) -> Self {
        Self {
            mac: mac_key(data_key, INFO),
        }
    }

    /// The tag of `bytes`.
    pub fn tag(&self, bytes: &[u8]) -> [u8; METADATA_TAG_LEN] {
        self.mac.mac(bytes)
    }

    /// Whether `tag` is the tag of `bytes`; takes the same time for every wrong tag of the right
    /// length.
    pub fn verify(&self, bytes: &[u8], tag: &[u8]) -> bool {
        self.tag(bytes)[..].ct_eq(tag).into()
    }
}

/// The key of one use, derived from the data key of metadata.
pub(crate) fn mac_key(data_key: &DataKey, info: &[u8]) -> MacKey {
    MacKey::new(Suite::Aes, &mut expanded(data_key, info))
}

/// Its bytes, which the caller wipes.
pub(crate) fn expanded(data_key: &DataKey, info: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    hkdf::Salt::new(hkdf::HKDF_SHA256, SALT)
        .extract(data_key.bytes())
        .expand(&[info], hkdf::HKDF_SHA256)
        .and_then(|expanded| expanded.fill(&mut key))
        .expect("HKDF gives one hash");
    key
}

/// Seals the lines of the audit log. Derived from the data key of metadata, and no other key is of
/// use to whoever would forge a line. The seal is HMAC-SHA-256 cut to 128 bits, in both suites.
pub struct AuditKey {
    mac: MacKey,
}

impl AuditKey {
    /// Derives it.
    pub fn new(data_key: &DataKey) -> Self {
        Self {
            mac: mac_key(data_key, AUDIT_INFO),
        }
    }

    /// The seal of `bytes`.
    pub fn seal(&self, bytes: &[u8]) -> [u8; METADATA_TAG_LEN] {
        self.mac.mac(bytes)
    }

    /// Whether `seal` is the seal of `bytes`; takes the same time for every wrong one of the right
    /// length.
    pub fn verify(&self, bytes: &[u8], seal: &[u8]) -> bool {
        self.seal(bytes)[..].ct_eq(seal).into()
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditKey").finish_non_exhaustive()
    }
}

impl fmt::Debug for MetadataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        let data_key = DataKey::from_bytes([1; 32]);
        let (comments, lines) = (MetadataKey::new(&data_key), AuditKey::new(&data_key));
        let seal = lines.seal(b"a line");
        assert!(lines.verify(b"a line", &seal));
        assert!(!lines.verify(b"a line ", &seal));
        assert!(!lines.verify(b"a line", &seal[..15]));
        assert!(!comments.verify(b"a line", &seal));
        assert!(!AuditKey::new(&DataKey::from_bytes([2; 32])).verify(b"a line", &seal));
    }

    #[test]
    fn only_the_whole_right_tag_verifies() {
        let key = MetadataKey::new(&DataKey::from_bytes([1; 32]));
        let other = MetadataKey::new(&DataKey::from_bytes([2; 32]));
        let tag = key.tag(b"k INT");
        assert!(key.verify(b"k INT", &tag));
        assert!(!key.verify(b"k INT ", &tag));
        assert!(!other.verify(b"k INT", &tag));
        assert!(!key.verify(b"k INT", &tag[..15]));
        assert!(!key.verify(b"k INT", &[]));
        for bit in 0..128 {
            let mut wrong = tag;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.verify(b"k INT", &wrong));
        }
    }
}
