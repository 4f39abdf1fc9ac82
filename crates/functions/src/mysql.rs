//! `AES_ENCRYPT` and `AES_DECRYPT` of MySQL.
//!
//! ```text
//! AES_ENCRYPT(text, key [, iv [, kdf_name [, salt [, info | iterations]]]])
//! ```
//!
//! The mode is the session's `block_encryption_mode`. Source: the MySQL manual (Encryption
//! Functions); which check comes first, and what counts as a number of iterations, was learned from
//! the behaviour of MySQL 9.7.4. In this order:
//!
//! 1. No vector where the mode needs one: error 1582, when the statement is resolved.
//! 2. Text or key is NULL: NULL. This is the caller's, between steps 1 and 3.
//! 3. The vector is NULL or shorter than 16 bytes: error 1882. ECB does not look at it.
//! 4. The KDF arguments: name, salt, then info or iterations.
//! 5. Decrypting: a wrong length or a wrong padding: NULL.

use crate::{
    aes_modes::{Iv, KeyedCipher, iv_of},
    argument::Argument,
    cipher_name::Cipher,
    derive::{AesKey, hkdf_sha512, pbkdf2_sha512},
    error::{AesFunction, FunctionError},
    warning::Warning,
};

/// A KDF argument has fewer bytes than this.
const KDF_OPTION_LIMIT: usize = 256;
/// The number of iterations has fewer bytes than this, as text.
const KDF_ITERATIONS_LIMIT: usize = 6;
/// Iterations of a call that does not say how many.
const DEFAULT_ITERATIONS: u32 = 1000;

/// Arguments four to six, as the statement gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KdfArguments<'a> {
    /// `hkdf` or `pbkdf2_hmac`. [`Argument::Absent`] means that there is no KDF at all: then the
    /// key is folded, and the other two are not looked at.
    pub name: Argument<'a>,
    /// The salt; empty if absent.
    pub salt: Argument<'a>,
    /// For `hkdf`: the info, empty if absent. For `pbkdf2_hmac`: the number of iterations as text,
    /// 1000 if absent.
    pub option: Argument<'a>,
}

/// How a key is derived: checked [`KdfArguments`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kdf<'a> {
    /// XOR of the key's pieces: no KDF was named.
    Folding,
    /// HKDF (RFC 5869) with SHA-512.
    Hkdf {
        /// Salt, public.
        salt: &'a [u8],
        /// What the key is for, public.
        info: &'a [u8],
    },
    /// PBKDF2 (RFC 8018) with HMAC-SHA-512.
    Pbkdf2Hmac {
        /// Salt, public.
        salt: &'a [u8],
        /// 1000 to 65535.
        iterations: u32,
    },
}

impl<'a> KdfArguments<'a> {
    /// Checks the arguments in the server's order.
    pub fn check(self) -> Result<Kdf<'a>, FunctionError> {
        if self.name == Argument::Absent {
            return Ok(Kdf::Folding);
        }
        match option(self.name, KDF_OPTION_LIMIT, b"")? {
            b"hkdf" => Ok(Kdf::Hkdf {
                salt: option(self.salt, KDF_OPTION_LIMIT, b"")?,
                info: option(self.option, KDF_OPTION_LIMIT, b"")?,
            }),
            b"pbkdf2_hmac" => {
                let salt = option(self.salt, KDF_OPTION_LIMIT, b"")?;
                let iterations = match self.option {
                    Argument::Absent => DEFAULT_ITERATIONS,
                    given => iterations(option(given, KDF_ITERATIONS_LIMIT, b"")?)
                        .ok_or(FunctionError::InvalidKdfIterations)?,
                };
                Ok(Kdf::Pbkdf2Hmac { salt, iterations })
            }
            _ => Err(FunctionError::InvalidKdfName),
        }
    }
}

fn option<'a>(
    argument: Argument<'a>,
    limit: usize,
    absent: &'a [u8],
) -> Result<&'a [u8], FunctionError> {
    match argument {
        Argument::Absent => Ok(absent),
        Argument::Bytes(bytes) if bytes.len() < limit => Ok(bytes),
        Argument::Bytes(_) | Argument::Null => Err(FunctionError::InvalidKdfOptionSize { limit }),
    }
}

/// The number at the beginning of a text, read as C's `atoi` does: blanks, a sign, digits, and
/// whatever follows is not looked at. So `1000x` is 1000 and `1e4` is 1.
///
/// A number that is not allowed is `None`. The text is short: see [`KDF_ITERATIONS_LIMIT`].
fn iterations(text: &[u8]) -> Option<u32> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r');
    let start = text.iter().position(|byte| !is_blank(byte))?;
    let digits = text[start..]
        .strip_prefix(b"+")
        .unwrap_or(&text[start..])
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0, |number, digit| 10 * number + u32::from(digit - b'0'));
    (1000..=65535).contains(&number).then_some(number)
}

impl Kdf<'_> {
    fn derive(self, cipher: Cipher, key: &[u8]) -> AesKey {
        match self {
            Kdf::Folding => AesKey::folded(cipher.bits, key),
            Kdf::Hkdf { salt, info } => {
                AesKey::filled(cipher.bits, |out| hkdf_sha512(key, salt, info, out))
            }
            Kdf::Pbkdf2Hmac { salt, iterations } => {
                AesKey::filled(cipher.bits, |out| pbkdf2_sha512(key, salt, iterations, out))
            }
        }
    }
}

/// Step 1 alone: whether the statement can be resolved. [`aes_encrypt`] and [`aes_decrypt`] do it
/// as well; call it for NULL texts and keys.
pub fn check_parameter_count(
    function: AesFunction,
    cipher: Cipher,
    iv: Argument<'_>,
) -> Result<(), FunctionError> {
    if cipher.mode.needs_iv() && iv == Argument::Absent {
        return Err(FunctionError::MissingIv(function));
    }
    Ok(())
}

/// The warnings that go with a result, in the server's order, once for each evaluation. None if
/// text or key is NULL, and none beside an error.
pub fn warnings(
    function: AesFunction,
    cipher: Cipher,
    key: &[u8],
    iv: Argument<'_>,
    kdf: KdfArguments<'_>,
) -> Vec<Warning> {
    if kdf.name != Argument::Absent {
        return Vec::new();
    }
    let bytes = cipher.bits.bytes();
    let iv_ignored = !cipher.mode.needs_iv() && iv != Argument::Absent;
    let key_folded = function == AesFunction::Encrypt && key.len() > bytes;
    iv_ignored
        .then_some(Warning::IvIgnored)
        .into_iter()
        .chain(key_folded.then_some(Warning::KeySize { bytes }))
        .collect()
}

/// Steps 1, 3 and 4.
fn keyed(
    function: AesFunction,
    cipher: Cipher,
    key: &[u8],
    iv: Argument<'_>,
    kdf: KdfArguments<'_>,
) -> Result<KeyedCipher, FunctionError> {
    check_parameter_count(function, cipher, iv)?;
    let iv: Iv = if cipher.mode.needs_iv() {
        let given = iv.bytes().and_then(iv_of);
        given.ok_or(FunctionError::InvalidIv(function))?
    } else {
        Iv::default()
    };
    let key = kdf.check()?.derive(cipher, key);
    Ok(KeyedCipher::new(cipher, key, iv))
}

/// `AES_ENCRYPT`. Padded modes give `16 * (length / 16 + 1)` bytes, the others as many as the text.
pub fn aes_encrypt(
    cipher: Cipher,
    text: &[u8],
    key: &[u8],
    iv: Argument<'_>,
    kdf: KdfArguments<'_>,
) -> Result<Vec<u8>, FunctionError> {
    Ok(keyed(AesFunction::Encrypt, cipher, key, iv, kdf)?.encrypt(text))
}

/// `AES_DECRYPT`. NULL where a padded mode finds a wrong length or a wrong padding; no warning goes
/// with it. A wrong key is not noticed otherwise: one in 256 gives a text.
pub fn aes_decrypt(
    cipher: Cipher,
    text: &[u8],
    key: &[u8],
    iv: Argument<'_>,
    kdf: KdfArguments<'_>,
) -> Result<Option<Vec<u8>>, FunctionError> {
    Ok(keyed(AesFunction::Decrypt, cipher, key, iv, kdf)?.decrypt(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_are_read_as_c_reads_them() {
        for (text, number) in [
            ("1000", Some(1000)),
            ("1000x", Some(1000)),
            ("\t1000", Some(1000)),
            ("+1000", Some(1000)),
            ("65535", Some(65535)),
            ("65536", None),
            ("-1000", None),
            ("++999", None),
            ("+ 100", None),
            ("999", None),
            ("1e4", None),
            ("", None),
            ("     ", None),
        ] {
            assert_eq!(iterations(text.as_bytes()), number, "{text:?}");
        }
    }

    #[test]
    fn the_vector_is_checked_before_the_kdf() {
        let cipher = "aes-128-cbc".parse().unwrap();
        let kdf = KdfArguments {
            name: Argument::Bytes(b"foo"),
            ..KdfArguments::default()
        };
        let error = |iv| aes_encrypt(cipher, b"", b"", iv, kdf).unwrap_err();
        assert_eq!(error(Argument::Absent).number(), 1582);
        assert_eq!(error(Argument::Null).number(), 1882);
        assert_eq!(error(Argument::Bytes(&[0; 15])).number(), 1882);
        assert_eq!(error(Argument::Bytes(&[0; 16])).number(), 3235);
    }
}
