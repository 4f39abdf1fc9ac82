//! The keys of AES, from what SQL calls a key.
//!
//! - Folding: the key's bytes are XORed into a buffer of the key's length, around and around. A
//!   shorter key is filled up with zeros, an empty one is all zeros. Source: the MySQL manual says
//!   that longer keys are folded by XOR; the rest was learned from the servers' behaviour.
//! - HKDF (RFC 5869) and PBKDF2 (RFC 8018), both with HMAC-SHA-512. Source: the MySQL manual and
//!   MariaDB's documentation of `KDF`.

use hkdf::Hkdf;
use sha2::Sha512;
use zeroize::Zeroizing;

use crate::cipher_name::KeyBits;

/// An AES key, wiped when it is dropped.
pub(crate) struct AesKey {
    bits: KeyBits,
    bytes: Zeroizing<[u8; 32]>,
}

impl AesKey {
    /// Folds a key of any length.
    pub(crate) fn folded(bits: KeyBits, key: &[u8]) -> Self {
        Self::filled(bits, |bytes| {
            for chunk in key.chunks(bytes.len()) {
                for (byte, with) in bytes.iter_mut().zip(chunk) {
                    *byte ^= with;
                }
            }
        })
    }

    /// A key that `fill` writes into a buffer of its length.
    pub(crate) fn filled(bits: KeyBits, fill: impl FnOnce(&mut [u8])) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        fill(&mut bytes[..bits.bytes()]);
        AesKey { bits, bytes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.bits.bytes()]
    }

    pub(crate) fn bits(&self) -> KeyBits {
        self.bits
    }
}

/// HKDF with SHA-512. No salt and an empty salt are the same: 64 zeros.
///
/// `out` has at most 255 * 64 bytes.
pub(crate) fn hkdf_sha512(key: &[u8], salt: &[u8], info: &[u8], out: &mut [u8]) {
    Hkdf::<Sha512>::new(Some(salt), key)
        .expand(info, out)
        .expect("the servers' bounds are below 255 * 64 bytes");
}

/// PBKDF2 with HMAC-SHA-512.
pub(crate) fn pbkdf2_sha512(key: &[u8], salt: &[u8], iterations: u32, out: &mut [u8]) {
    pbkdf2::pbkdf2_hmac::<Sha512>(key, salt, iterations, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_key_is_folded() {
        let key: Vec<u8> = (0..40).collect();
        let folded = AesKey::folded(KeyBits::Bits128, &key);
        let expected: Vec<u8> = (0..16_u8)
            .map(|i| i ^ (i + 16) ^ if i < 8 { i + 32 } else { 0 })
            .collect();
        assert_eq!(folded.bytes(), expected);
    }

    #[test]
    fn a_short_key_is_filled_up() {
        assert_eq!(
            AesKey::folded(KeyBits::Bits192, b"key").bytes(),
            b"key\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
        );
        assert_eq!(AesKey::folded(KeyBits::Bits256, b"").bytes(), [0; 32]);
    }

    /// Vectors for PBKDF2-HMAC-SHA-512 by the inputs of RFC 6070, as published in many libraries.
    #[test]
    fn pbkdf2_equals_published_vectors() {
        let mut out = [0; 64];
        pbkdf2_sha512(b"password", b"salt", 1, &mut out);
        assert_eq!(
            crate::hex::lower(&out),
            "867f70cf1ade02cff3752599a3a53dc4af34c7a669815ae5d513554e1c8cf252\
             c02d470a285a0501bad999bfe943c08f050235d7d68b1da55e63f73b60a57fce"
        );
        pbkdf2_sha512(b"password", b"salt", 4096, &mut out);
        assert_eq!(
            crate::hex::lower(&out),
            "d197b1b33db0143e018b12f3d1d1479e6cdebdcc97c5c0f87f6902e072f457b5\
             143f30602641b3d55cd335988cb36b84376060ecd532e039b742a239434af2d5"
        );
    }
}
