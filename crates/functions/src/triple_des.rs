//! `DES_ENCRYPT` and `DES_DECRYPT`, of MySQL up to 5.7 and MariaDB, with a key that the statement
//! gives as a string.
//!
//! A key that is a number, or no key at all, means a key of the server's key file. This is not
//! supported: a caller who has such a call must refuse it. (Where the server has no key file, the
//! ten keys are all zeros, and `DES_ENCRYPT` uses them without a word.) What counts as a number is
//! the argument's SQL type: `'3'` is a string, `3` is not, `1.5` is a string again.
//!
//! ```text
//! offset  length
//!      0       1  128 + number of the key; 255 for a string
//!      1       n  3DES in CBC mode, all zeros as initialization vector
//! ```
//!
//! The text is filled up to full blocks of 8 bytes: by asterisks, and a last byte that says how
//! many bytes were added, 1 to 8. The three keys are the first 24 bytes of
//! `MD5(key) || MD5(MD5(key) || key)`. OpenSSL calls this `EVP_BytesToKey` with MD5, no salt and
//! one round. Parity bits are not looked at.
//!
//! Source: the MySQL 5.7 manual for the first byte and the length, OpenSSL's manual for
//! `EVP_BytesToKey`; padding, vector and everything about wrong input were learned from the
//! behaviour of MariaDB 10.11.19.

use cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use des::TdesEde3;
use md5::{Digest, Md5};
use zeroize::{Zeroize, Zeroizing};

const BLOCK_LEN: usize = 8;
/// First byte of what a string key has encrypted.
const STRING_KEY: u8 = 255;

/// Which of the two functions, for the servers' texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DesFunction {
    /// `DES_ENCRYPT`
    Encrypt,
    /// `DES_DECRYPT`
    Decrypt,
}

impl std::fmt::Display for DesFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            DesFunction::Encrypt => "des_encrypt",
            DesFunction::Decrypt => "des_decrypt",
        })
    }
}

fn triple_des(key: &[u8]) -> TdesEde3 {
    let first: Zeroizing<[u8; 16]> = Zeroizing::new(Md5::digest(key).into());
    let mut md5 = Md5::new_with_prefix(first.as_slice());
    md5.update(key);
    let second: Zeroizing<[u8; 16]> = Zeroizing::new(md5.finalize().into());
    let mut keys = Zeroizing::new([0; 24]);
    keys[..16].copy_from_slice(&*first);
    keys[16..].copy_from_slice(&second[..8]);
    TdesEde3::new_from_slice(&*keys).expect("three keys of 8 bytes")
}

/// `DES_ENCRYPT(text, key)` with a string as key. An empty text stays empty.
pub fn des_encrypt(text: &[u8], key: &[u8]) -> Vec<u8> {
    if text.is_empty() {
        return Vec::new();
    }
    let added = BLOCK_LEN - text.len() % BLOCK_LEN;
    let mut out = Vec::with_capacity(1 + text.len() + added);
    out.push(STRING_KEY);
    out.extend_from_slice(text);
    out.resize(text.len() + added, b'*');
    // 1 to 8
    out.push(added as u8);
    let des = triple_des(key);
    let mut before = Array([0; BLOCK_LEN]);
    let (blocks, _) = Array::slice_as_chunks_mut(&mut out[1..]);
    for block in blocks {
        xor(block, &before);
        des.encrypt_block(block);
        before = *block;
    }
    out
}

/// `DES_DECRYPT(text, key)` with a string as key.
///
/// What does not look encrypted comes back as it is: text whose first byte is below 128, or whose
/// length is not 1 and at least one full block. Any first byte from 128 on will do. NULL if the
/// last byte is more than 8 after decryption. The filling is not looked at, and a last byte of 0
/// takes nothing away, not even itself.
pub fn des_decrypt(text: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    let sealed = match text {
        [128..=255, sealed @ ..]
            if !sealed.is_empty() && sealed.len().is_multiple_of(BLOCK_LEN) =>
        {
            sealed
        }
        plain => return Some(plain.to_vec()),
    };
    let des = triple_des(key);
    let mut out = sealed.to_vec();
    let mut before = Array([0; BLOCK_LEN]);
    let (blocks, _) = Array::slice_as_chunks_mut(&mut out);
    for block in blocks {
        let sealed = *block;
        des.decrypt_block(block);
        xor(block, &before);
        before = sealed;
    }
    let added = usize::from(*out.last()?);
    if added > BLOCK_LEN {
        out.zeroize();
        return None;
    }
    out.truncate(out.len() - added);
    Some(out)
}

fn xor(into: &mut [u8], with: &[u8]) {
    for (byte, with) in into.iter_mut().zip(with) {
        *byte ^= with;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// From a public report: bugs.mysql.com, number 49249.
    #[test]
    fn equals_a_published_vector() {
        let sealed = des_encrypt(b"111", b"123456789123456789123456");
        let published = [-1_i8, 27, -34, 9, 95, -55, -19, 95, 85].map(|byte| byte as u8);
        assert_eq!(sealed, published);
    }

    #[test]
    fn what_is_not_encrypted_comes_back() {
        for plain in [
            &b""[..],
            b"abc",
            b"\xff",
            b"abcdefghi",
            b"\xff1234",
            &[255; 10],
        ] {
            assert_eq!(des_decrypt(plain, b"key").as_deref(), Some(plain));
        }
    }

    proptest! {
        #[test]
        fn round_trips(
            text in proptest::collection::vec(any::<u8>(), 0..100),
            key in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let sealed = des_encrypt(&text, &key);
            prop_assert_eq!(des_decrypt(&sealed, &key), Some(text));
        }

        #[test]
        fn any_text_can_be_decrypted(text in proptest::collection::vec(any::<u8>(), 0..50)) {
            let _ = des_decrypt(&text, b"key");
        }
    }
}
