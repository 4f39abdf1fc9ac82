//! Warnings that a server adds to a result, with its numbers and texts.
//!
//! Source: answers of MySQL 9.7.4, MariaDB 10.11.19 and MariaDB 11.8.9. A warning is added for
//! each evaluation, so once for each row; [`Warning::Deprecated`] once for each call in a
//! statement's text.

use crate::triple_des::DesFunction;

/// A warning of a server's. `Display` is the server's text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// MySQL: an initialization vector was given and the mode is ECB. NULL counts as given. Not if
    /// the call has a KDF argument: there the third argument has to stand.
    #[error("<IV> option ignored")]
    IvIgnored,
    /// MySQL: `AES_ENCRYPT` without a KDF and with a key longer than the cipher's. Shorter keys get
    /// none, nor does `AES_DECRYPT`.
    #[error(
        "AES key size should be {bytes} bytes length or secure KDF methods hkdf or pbkdf2_hmac \
         should be used, please provide exact AES key size or use KDF methods for better security."
    )]
    KeySize {
        /// Length of the cipher's keys, in bytes.
        bytes: usize,
    },
    /// Both: the bits of `SHA2` are none of 0, 224, 256, 384, 512. The result is NULL.
    ///
    /// MariaDB judges constant bits once, for the whole statement, and by their lowest 32 bits: so
    /// `SHA2(x, 4294967296 + 256)` is NULL without this warning. NULL as bits gets it from MySQL.
    #[error("Incorrect parameters in the call to native function 'sha2'")]
    Sha2Parameters,
    /// MariaDB: the key is NULL, or its number is not from 0 to 9. `DES_DECRYPT` without a key
    /// takes the number from the first byte. The result is NULL.
    #[error("Incorrect parameters to procedure '{0}'")]
    DesParameters(DesFunction),
    /// MariaDB since 10.10: a note in 10.11, a warning in 11.8.
    #[error("'{0}' is deprecated and will be removed in a future release")]
    Deprecated(DesFunction),
    /// MariaDB's `KDF`: a number of bits or iterations that cannot be. The result is NULL.
    #[error("Invalid argument error: {0} in function kdf.")]
    KdfNumber(i128),
    /// MariaDB's `KDF`: the name of no method. The result is NULL.
    ///
    /// The server shows bytes that are not UTF-8 as `\xFF`. So does this text.
    #[error("Invalid argument error: '{0}' in function kdf.")]
    KdfName(String),
}

impl Warning {
    /// The warning's number.
    pub fn number(&self) -> u16 {
        match self {
            Warning::IvIgnored => 1618,
            Warning::KeySize { .. } => 3237,
            Warning::Sha2Parameters => 1583,
            Warning::DesParameters(_) => 1108,
            Warning::Deprecated(_) => 1287,
            Warning::KdfNumber(_) | Warning::KdfName(_) => 3047,
        }
    }

    /// The warning about a method's name, from the argument's bytes.
    pub(crate) fn kdf_name(bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            for byte in chunk.invalid() {
                text.push_str(&format!("\\x{byte:02X}"));
            }
        }
        Warning::KdfName(text)
    }
}
