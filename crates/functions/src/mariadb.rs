//! `AES_ENCRYPT`, `AES_DECRYPT` and `KDF` of MariaDB.
//!
//! ```text
//! AES_ENCRYPT(text, key [, iv [, mode]])                                   since 11.2
//! KDF(key, salt [, info | iterations [, kdf_name [, width]]])              since 11.3
//! ```
//!
//! Before 11.2 there are only two arguments and `aes-128-ecb`. Without a mode it is the session's
//! `block_encryption_mode`. Source: MariaDB's documentation; what it does with arguments that
//! cannot be was learned from the behaviour of MariaDB 11.8.9.
//!
//! Where MySQL refuses, MariaDB answers NULL, without a warning: no vector, or one that is too
//! short, where the mode needs one.

use crate::{
    aes_modes::{Iv, KeyedCipher, iv_of},
    cipher_name::{Cipher, KeyBits, Server},
    derive::{AesKey, hkdf_sha512, pbkdf2_sha512},
    warning::Warning,
};

/// The widest key that `KDF` makes, in bits.
const MAX_WIDTH: i32 = 65536;

/// Iterations of a `KDF` call that does not say how many.
pub const DEFAULT_ITERATIONS: i128 = 1000;

/// What the name of a KDF is read from: this argument ends at its first zero byte.
fn c_string(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// The cipher that the fourth argument names, in any case. NULL and a name of no mode make the
/// function answer NULL, without a warning.
pub fn mode_argument(name: &[u8]) -> Option<Cipher> {
    Cipher::named(Server::MariaDb, name)
}

fn keyed(cipher: Cipher, key: &[u8], iv: Option<&[u8]>) -> Option<KeyedCipher> {
    let iv = if cipher.mode.needs_iv() {
        iv_of(iv?)?
    } else {
        Iv::default()
    };
    let key = AesKey::folded(cipher.bits, key);
    Some(KeyedCipher::new(cipher, key, iv))
}

/// `AES_ENCRYPT`. An absent vector and NULL are the same here.
pub fn aes_encrypt(cipher: Cipher, text: &[u8], key: &[u8], iv: Option<&[u8]>) -> Option<Vec<u8>> {
    Some(keyed(cipher, key, iv)?.encrypt(text))
}

/// `AES_DECRYPT`. NULL, too, where a padded mode finds a wrong length or a wrong padding.
pub fn aes_decrypt(cipher: Cipher, text: &[u8], key: &[u8], iv: Option<&[u8]>) -> Option<Vec<u8>> {
    keyed(cipher, key, iv)?.decrypt(text)
}

/// Name of a key derivation function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KdfName {
    /// HKDF (RFC 5869) with SHA-512. The third argument is its info; absent and NULL are empty.
    Hkdf,
    /// PBKDF2 (RFC 8018) with HMAC-SHA-512. The third argument is an integer: see
    /// [`DEFAULT_ITERATIONS`]. NULL makes the function answer NULL.
    #[default]
    Pbkdf2Hmac,
}

impl KdfName {
    /// The name that the fourth argument gives, in any case. The warning goes with NULL.
    ///
    /// The server looks at this first, then at the width, then at the third argument. NULL as name,
    /// width or iterations makes the function answer NULL without a warning.
    pub fn from_argument(argument: &[u8]) -> Result<Self, Warning> {
        let name = c_string(argument);
        if name.eq_ignore_ascii_case(b"hkdf") {
            Ok(KdfName::Hkdf)
        } else if name.eq_ignore_ascii_case(b"pbkdf2_hmac") {
            Ok(KdfName::Pbkdf2Hmac)
        } else {
            Err(Warning::kdf_name(name))
        }
    }
}

/// A key derivation function with its argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kdf<'a> {
    /// See [`KdfName::Hkdf`].
    Hkdf {
        /// What the key is for, public.
        info: &'a [u8],
    },
    /// See [`KdfName::Pbkdf2Hmac`].
    Pbkdf2Hmac {
        /// The SQL integer, signed or unsigned.
        iterations: i128,
    },
}

/// Length of a key that `KDF` makes, in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// As long as the keys of this value of `block_encryption_mode`.
    Of(KeyBits),
    /// The fifth argument: the SQL integer, signed or unsigned.
    Bits(i128),
}

impl Width {
    /// The length in bytes. The server takes the lowest 32 bits of the integer.
    pub fn bytes(self) -> Result<usize, Warning> {
        let given = match self {
            Width::Of(bits) => return Ok(bits.bytes()),
            Width::Bits(given) => given,
        };
        let bits = given as i32;
        if bits % 8 != 0 || !(1..=MAX_WIDTH).contains(&bits) {
            return Err(Warning::KdfNumber(given));
        }
        Ok((bits / 8) as usize)
    }
}

/// `KDF`. The result is NULL both for `None` and for a warning.
///
/// `None` without a warning: a number of iterations that is positive as 64 bits, but not as its
/// lowest 32 bits. MariaDB 11.8.9 then loses the connection at the next statement. Where the lowest
/// 32 bits are positive, they are the number.
pub fn kdf(
    key: &[u8],
    salt: &[u8],
    kdf: Kdf<'_>,
    width: Width,
) -> Result<Option<Vec<u8>>, Warning> {
    let mut out = vec![0; width.bytes()?];
    match kdf {
        Kdf::Hkdf { info } => hkdf_sha512(key, salt, info, &mut out),
        Kdf::Pbkdf2Hmac { iterations } => {
            if iterations as i64 <= 0 {
                return Err(Warning::KdfNumber(iterations));
            }
            match u32::try_from(iterations as i32) {
                Ok(iterations @ 1..) => pbkdf2_sha512(key, salt, iterations, &mut out),
                _ => return Ok(None),
            }
        }
    }
    Ok(Some(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of MariaDB's documentation of `KDF`.
    #[test]
    fn equals_the_documented_example() {
        let made = kdf(
            b"foo",
            b"bar",
            Kdf::Hkdf { info: b"infa" },
            Width::Of(KeyBits::Bits128),
        );
        let made = made.unwrap().unwrap();
        assert_eq!(crate::hex::upper(&made), "612875F859CFB4EE0DFEFF9F2A18E836");
    }

    #[test]
    fn names_are_read_as_the_server_reads_them() {
        assert_eq!(KdfName::from_argument(b"HKDF\0x"), Ok(KdfName::Hkdf));
        assert_eq!(
            KdfName::from_argument(b"\xffA").unwrap_err().to_string(),
            r"Invalid argument error: '\xFFA' in function kdf."
        );
        assert!(mode_argument(b"AES-128-CTR").is_some());
        assert!(mode_argument(b"aes-128-ctr\0").is_none());
        assert!(mode_argument(b"aes-128-ofb").is_none());
    }

    #[test]
    fn integers_are_cut_as_the_server_cuts_them() {
        let width = |bits| Width::Bits(bits).bytes().ok();
        assert_eq!(width(65536), Some(8192));
        assert_eq!(width(65544), None);
        assert_eq!(width((1 << 32) + 8), Some(1));
        assert_eq!(width(8 - (1 << 32)), Some(1));
        let pbkdf2 = |iterations| kdf(b"", b"", Kdf::Pbkdf2Hmac { iterations }, Width::Bits(8));
        assert_eq!(
            pbkdf2(u64::MAX.into()),
            Err(Warning::KdfNumber(u64::MAX.into()))
        );
        assert_eq!(pbkdf2(1 << 32), Ok(None));
        assert_eq!(pbkdf2(1 << 31), Ok(None));
        assert_eq!(pbkdf2((1 << 32) + 1), pbkdf2(1));
    }
}
