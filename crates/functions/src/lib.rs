//! The cryptographic SQL functions of MySQL and MariaDB, byte for byte as the servers compute them.
//!
//! | SQL | here |
//! |---|---|
//! | `AES_ENCRYPT`, `AES_DECRYPT` of MySQL | [`mysql::aes_encrypt`], [`mysql::aes_decrypt`] |
//! | the same of MariaDB | [`mariadb::aes_encrypt`], [`mariadb::aes_decrypt`] |
//! | `KDF` of MariaDB | [`mariadb::kdf`] |
//! | `DES_ENCRYPT`, `DES_DECRYPT` | [`des_encrypt`], [`des_decrypt`] |
//! | `ENCODE`, `DECODE` | [`encode`], [`decode`] |
//! | `MD5`, `SHA1`, `SHA2` | [`md5()`], [`sha1()`], [`sha2()`] |
//! | `PASSWORD`, `OLD_PASSWORD` | [`password`], [`old_password`] |
//!
//! Which server has which function depends on its version, and is the caller's business:
//!
//! - MySQL 9.7.4, as Debian builds it, has `AES_ENCRYPT`, `AES_DECRYPT` and `SHA2`. `MD5`, `SHA1`
//!   and `SHA` are there once `component_classic_hashing` is installed. The others are gone.
//! - MariaDB 10.11 has all but `KDF`; AES has two arguments.
//! - MariaDB 11.8 has all.
//!
//! # Bytes in, bytes out
//!
//! Arguments are the bytes that the server's function sees: SQL values are already converted to
//! strings, and strings to the character set that the server would use. An SQL NULL as text or key
//! makes every function answer NULL (but MariaDB's `PASSWORD(NULL)`, which is the empty string), so
//! these arguments cannot be NULL here. The optional ones can: see [`Argument`].
//!
//! `None` is an SQL NULL. An error of the server is a [`FunctionError`] with its number and text.
//! A [`Warning`] is what the server adds to a result.
//!
//! # What these functions are worth
//!
//! They are here because applications use them, not because they are good. AES in ECB mode shows
//! equal blocks, no mode is authenticated, [`encode`] and [`old_password`] are broken, and the key
//! of [`mysql::aes_encrypt`] is folded, not hashed, unless a KDF is named.
//!
//! AES runs in constant time (AES instructions or bit slices, no tables). The DES crate and
//! [`encode`] look bytes up in tables. Keys and what is derived from them are wiped after use.
//!
//! Every algorithm names its source in its module. What the servers answered to thousands of
//! random and odd arguments is in `tests/fixtures`.

#![deny(missing_docs)]

mod aes_modes;
mod argument;
mod cipher_name;
mod derive;
mod digest;
mod error;
mod hex;
pub mod mariadb;
pub mod mysql;
mod old_password;
mod scramble;
mod triple_des;
mod warning;

pub use argument::Argument;
pub use cipher_name::{Cipher, KeyBits, Mode, Server, UnknownCipher};
pub use digest::{md5, password, sha1, sha2};
pub use error::{AesFunction, FunctionError};
pub use old_password::old_password;
pub use scramble::{decode, encode};
pub use triple_des::{DesFunction, des_decrypt, des_encrypt};
pub use warning::Warning;
