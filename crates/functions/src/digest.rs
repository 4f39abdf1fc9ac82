//! `MD5`, `SHA1`, `SHA2` and `PASSWORD`: digests as text.
//!
//! Source: RFC 1321, FIPS 180-4, and the servers' manuals for `PASSWORD`: an asterisk and the
//! SHA-1 of the SHA-1, which is what `mysql_native_password` keeps. All are ASCII, so they are the
//! same in every character set of a connection but UTF-16 and UTF-32.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use zeroize::Zeroizing;

use crate::hex;

/// `MD5`: 32 lower-case digits.
pub fn md5(text: &[u8]) -> String {
    hex::lower(&Md5::digest(text))
}

/// `SHA1` and `SHA`: 40 lower-case digits.
pub fn sha1(text: &[u8]) -> String {
    hex::lower(&Sha1::digest(text))
}

/// `SHA2`: `bits / 4` lower-case digits, with 0 for 256. NULL for other numbers, with
/// [`Warning::Sha2Parameters`](crate::Warning::Sha2Parameters). NULL as `bits` is NULL in MySQL and
/// 0 in MariaDB.
pub fn sha2(text: &[u8], bits: i64) -> Option<String> {
    Some(match bits {
        224 => hex::lower(&Sha224::digest(text)),
        0 | 256 => hex::lower(&Sha256::digest(text)),
        384 => hex::lower(&Sha384::digest(text)),
        512 => hex::lower(&Sha512::digest(text)),
        _ => return None,
    })
}

/// `PASSWORD` under `old_passwords = 0`: an asterisk and 40 upper-case digits, and nothing for an
/// empty text. In MariaDB it is nothing for NULL, too.
pub fn password(text: &[u8]) -> String {
    if text.is_empty() {
        return String::new();
    }
    let once: Zeroizing<[u8; 20]> = Zeroizing::new(Sha1::digest(text).into());
    let mut out = String::from("*");
    out.push_str(&hex::upper(&Sha1::digest(*once)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1321, FIPS 180-4, and the MySQL 5.7 manual for `PASSWORD`.
    #[test]
    fn equals_published_vectors() {
        assert_eq!(md5(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(md5(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(sha1(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let abc = |bits| sha2(b"abc", bits).unwrap();
        assert_eq!(
            abc(224),
            "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"
        );
        assert_eq!(
            abc(256),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(abc(0), abc(256));
        assert!(abc(384).starts_with("cb00753f45a35e8bb5a03d699ac65007"));
        assert!(abc(512).starts_with("ddaf35a193617abacc417349ae204131"));
        for bits in [1, -1, 255, 1024, i64::MIN] {
            assert_eq!(sha2(b"abc", bits), None);
        }
        assert_eq!(
            password(b"mypass"),
            "*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4"
        );
        assert_eq!(password(b""), "");
    }
}
