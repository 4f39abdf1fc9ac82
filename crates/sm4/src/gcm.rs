//! Galois/Counter Mode over SM4 (RFC 8998, NIST SP 800-38D).

use std::fmt;

use aes_gcm::{AesGcm, aead::AeadInOut};
use cipher::{Array, KeyInit, consts::U12};

use crate::{KEY_LEN, NONCE_LEN, TAG_LEN};

/// Longest message that one nonce may protect: 2^32 − 2 counter blocks (SP 800-38D, 5.2.1.1).
pub const MAX_GCM_LEN: u64 = (1 << 36) - 32;

/// The tag does not belong to this nonce, associated data and ciphertext.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the authentication tag does not match")]
pub struct TagMismatch;

/// SM4-GCM with 96-bit nonces and 128-bit tags.
///
/// A nonce that repeats under one key gives away the authentication key and the XOR of both messages; callers that
/// draw nonces at random must stop at 2^32 messages a key (SP 800-38D, 8.3).
pub struct Sm4Gcm {
    // RustCrypto's GCM is generic over any 128-bit block cipher; the name says AES only for historical reasons.
    mode: AesGcm<sm4::Sm4, U12>,
}

impl Sm4Gcm {
    /// Expands `key` and derives the hash key from it.
    pub fn new(key: &[u8; KEY_LEN]) -> Self {
        Self {
            mode: AesGcm::new(&Array::from(*key)),
        }
    }

    /// Encrypts `buf` in place and returns the tag over it and `aad`.
    ///
    /// # Panics
    ///
    /// If `buf` is longer than [`MAX_GCM_LEN`] (64 GiB): the counter would wrap into reused key stream.
    pub fn seal_in_place(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        buf: &mut [u8],
    ) -> [u8; TAG_LEN] {
        self.mode
            .encrypt_inout_detached(&Array::from(*nonce), aad, buf.into())
            .expect("message longer than GCM's counter allows")
            .into()
    }

    /// Verifies `tag`, then decrypts `buf` in place. On error `buf` still holds the ciphertext.
    pub fn open_in_place(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        buf: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), TagMismatch> {
        self.mode
            .decrypt_inout_detached(&Array::from(*nonce), aad, buf.into(), &Array::from(*tag))
            .map_err(|_| TagMismatch)
    }
}

impl fmt::Debug for Sm4Gcm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sm4Gcm").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(digits: &str) -> Vec<u8> {
        let digits: String = digits.chars().filter(|c| !c.is_whitespace()).collect();
        (0..digits.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap())
            .collect()
    }

    // RFC 8998, appendix A.1.
    struct Vector {
        key: [u8; 16],
        nonce: [u8; 12],
        aad: Vec<u8>,
        plain: Vec<u8>,
        sealed: Vec<u8>,
        tag: [u8; 16],
    }

    fn rfc_8998() -> Vector {
        Vector {
            key: hex("0123456789ABCDEFFEDCBA9876543210").try_into().unwrap(),
            nonce: hex("00001234567800000000ABCD").try_into().unwrap(),
            aad: hex("FEEDFACEDEADBEEFFEEDFACEDEADBEEFABADDAD2"),
            plain: hex(
                "AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBB CCCCCCCCCCCCCCCCDDDDDDDDDDDDDDDD
                 EEEEEEEEEEEEEEEEFFFFFFFFFFFFFFFF EEEEEEEEEEEEEEEEAAAAAAAAAAAAAAAA",
            ),
            sealed: hex(
                "17F399F08C67D5EE19D0DC9969C4BB7D 5FD46FD3756489069157B282BB200735
                 D82710CA5C22F0CCFA7CBF93D496AC15 A56834CBCF98C397B4024A2691233B8D",
            ),
            tag: hex("83DE3541E4C2B58177E065A9BF7B62EC").try_into().unwrap(),
        }
    }

    #[test]
    fn rfc_8998_vector() {
        let v = rfc_8998();
        let gcm = Sm4Gcm::new(&v.key);
        let mut buf = v.plain.clone();
        let tag = gcm.seal_in_place(&v.nonce, &v.aad, &mut buf);
        assert_eq!(buf, v.sealed);
        assert_eq!(tag, v.tag);
        gcm.open_in_place(&v.nonce, &v.aad, &mut buf, &tag).unwrap();
        assert_eq!(buf, v.plain);
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let v = rfc_8998();
        let gcm = Sm4Gcm::new(&v.key);
        for bit in 0..v.sealed.len() * 8 {
            let mut buf = v.sealed.clone();
            buf[bit / 8] ^= 1 << (bit % 8);
            let before = buf.clone();
            assert_eq!(
                gcm.open_in_place(&v.nonce, &v.aad, &mut buf, &v.tag),
                Err(TagMismatch)
            );
            assert_eq!(buf, before, "unverified plaintext was released");
        }
        for bit in 0..128 {
            let mut tag = v.tag;
            tag[bit / 8] ^= 1 << (bit % 8);
            let mut buf = v.sealed.clone();
            assert!(gcm.open_in_place(&v.nonce, &v.aad, &mut buf, &tag).is_err());
        }
        for bit in 0..v.aad.len() * 8 {
            let mut aad = v.aad.clone();
            aad[bit / 8] ^= 1 << (bit % 8);
            let mut buf = v.sealed.clone();
            assert!(gcm.open_in_place(&v.nonce, &aad, &mut buf, &v.tag).is_err());
        }
    }

    #[test]
    fn empty_message_is_authenticated() {
        let v = rfc_8998();
        let gcm = Sm4Gcm::new(&v.key);
        let tag = gcm.seal_in_place(&v.nonce, b"a", &mut []);
        assert!(gcm.open_in_place(&v.nonce, b"a", &mut [], &tag).is_ok());
        assert!(gcm.open_in_place(&v.nonce, b"b", &mut [], &tag).is_err());
    }
}
