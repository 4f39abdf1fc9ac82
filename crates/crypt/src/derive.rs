//! Derivation of a column's keys from a data key: HKDF (RFC 5869) with a label for every use.
//!
//! ```text
//! PRK  = HKDF-Extract(salt = "onionskin/1 column keys", IKM = data key)
//! info = purpose ‖ 0x00 ‖ suite id ‖ scope
//!        purpose: "seal", "nonce", "tenant", "eq", "ord" or "gram"
//!        scope:   0x00 ‖ table id (8) ‖ column id (4)      keys of one column
//!                 0x01 ‖ name of the join group (UTF-8)    keys shared by the columns of a group
//! key  = HKDF-Expand(PRK, info, length)
//! ```
//!
//! The hash is SHA-256 in suite `aes` and SM3 in suite `sm`. No two different uses have the same
//! `info`: the purpose ends at its zero byte, and the scope begins with its kind.

use aws_lc_rs::hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sm3::Sm3;
use zeroize::Zeroize;

use crate::{ColumnId, DataKey, Suite};

const SALT: &[u8] = b"onionskin/1 column keys";
const SM3_LEN: usize = 32;

/// What a derived key is for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Seal,
    /// Synthetic nonces of sealed cells, in suite `sm`.
    Nonce,
    /// Cells of tenants: their keys are made of this one and the secret of the tenant.
    Tenant,
    Equality,
    Order,
    Gram,
}

impl Purpose {
    pub(crate) fn label(self) -> &'static [u8] {
        match self {
            Purpose::Seal => b"seal\0",
            Purpose::Nonce => b"nonce\0",
            Purpose::Tenant => b"tenant\0",
            Purpose::Equality => b"eq\0",
            Purpose::Order => b"ord\0",
            Purpose::Gram => b"gram\0",
        }
    }
}

/// An extracted HKDF secret, on the hash of its suite.
pub(crate) enum Secret {
    Aes(hkdf::Prk),
    Sm(Box<Hmac<Sm3>>),
}

impl Secret {
    /// HKDF-Extract. The salt separates families of keys: those of columns, those of sealed
    /// streams.
    pub(crate) fn extract(suite: Suite, salt: &[u8], key: &[u8]) -> Self {
        match suite {
            Suite::Aes => Secret::Aes(hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(key)),
            Suite::Sm => Secret::Sm(Box::new(extract_sm3(salt, key))),
        }
    }

    pub(crate) fn suite(&self) -> Suite {
        match self {
            Secret::Aes(_) => Suite::Aes,
            Secret::Sm(_) => Suite::Sm,
        }
    }

    /// HKDF-Expand over the parts of `info`, one behind the other.
    pub(crate) fn expand<const N: usize>(&self, info: &[&[u8]]) -> [u8; N] {
        let mut okm = [0; N];
        match self {
            Secret::Aes(prk) => prk
                .expand(info, OutputLen(N))
                .and_then(|expanded| expanded.fill(&mut okm))
                .expect("HKDF gives up to 255 hashes"),
            Secret::Sm(prk) => expand_sm3(prk, info, &mut okm),
        }
        okm
    }
}

/// The source of all keys that a data key gives to columns.
///
/// Lives only while a [`ColumnCipher`](crate::ColumnCipher) is built.
pub(crate) struct ColumnSecrets(Secret);

impl ColumnSecrets {
    pub(crate) fn new(suite: Suite, data_key: &DataKey) -> Self {
        Self(Secret::extract(suite, SALT, data_key.bytes()))
    }

    /// A key that only this column has.
    pub(crate) fn column_key<const N: usize>(&self, purpose: Purpose, id: &ColumnId) -> [u8; N] {
        self.0.expand(&[
            purpose.label(),
            &[self.suite_id(), 0],
            &id.table,
            &id.column,
        ])
    }

    /// A key that all columns of the join group have.
    pub(crate) fn group_key<const N: usize>(&self, purpose: Purpose, group: &str) -> [u8; N] {
        self.0
            .expand(&[purpose.label(), &[self.suite_id(), 1], group.as_bytes()])
    }

    fn suite_id(&self) -> u8 {
        self.0.suite().id()
    }
}

struct OutputLen(usize);

impl hkdf::KeyType for OutputLen {
    fn len(&self) -> usize {
        self.0
    }
}

/// A keyed HMAC-SM3; HMAC takes keys of any length.
pub(crate) fn hmac_sm3(key: &[u8]) -> Hmac<Sm3> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn extract_sm3(salt: &[u8], secret: &[u8]) -> Hmac<Sm3> {
    let mut extract = hmac_sm3(salt);
    extract.update(secret);
    let mut prk = extract.finalize().into_bytes();
    let keyed = hmac_sm3(&prk);
    prk.as_mut_slice().zeroize();
    keyed
}

fn expand_sm3(prk: &Hmac<Sm3>, info: &[&[u8]], okm: &mut [u8]) {
    let mut previous = [0; SM3_LEN];
    // Counters run from 1; the longest key that is asked for is two hashes long.
    for (counter, chunk) in (1u8..).zip(okm.chunks_mut(SM3_LEN)) {
        let mut mac = prk.clone();
        if counter > 1 {
            mac.update(&previous);
        }
        for part in info {
            mac.update(part);
        }
        mac.update(&[counter]);
        previous.copy_from_slice(&mac.finalize().into_bytes());
        chunk.copy_from_slice(&previous[..chunk.len()]);
    }
    previous.zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::hex;

    fn secrets(suite: Suite) -> ColumnSecrets {
        ColumnSecrets::new(suite, &DataKey::from_bytes([7; 32]))
    }

    #[test]
    fn every_use_has_its_own_key() {
        let id = ColumnId {
            table: [1; 8],
            column: [2; 4],
        };
        let other_table = ColumnId {
            table: [3; 8],
            ..id
        };
        let other_column = ColumnId {
            column: [3; 4],
            ..id
        };
        let mut keys: Vec<[u8; 32]> = Vec::new();
        for suite in [Suite::Aes, Suite::Sm] {
            let secrets = secrets(suite);
            for purpose in [
                Purpose::Seal,
                Purpose::Nonce,
                Purpose::Tenant,
                Purpose::Equality,
                Purpose::Order,
                Purpose::Gram,
            ] {
                for id in [id, other_table, other_column] {
                    keys.push(secrets.column_key(purpose, &id));
                }
                // A group whose name spells the ids must not meet the column's own key.
                let spelled = "\u{1}".repeat(8) + &"\u{2}".repeat(4);
                keys.push(secrets.group_key(purpose, &spelled));
                keys.push(secrets.group_key(purpose, "customers"));
                keys.push(secrets.group_key(purpose, ""));
            }
        }
        let before = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), before);
    }

    #[test]
    fn a_longer_key_begins_with_the_shorter() {
        // HKDF's own property; it fails if the blocks of the expansion are chained wrongly.
        for suite in [Suite::Aes, Suite::Sm] {
            let secrets = secrets(suite);
            let long: [u8; 64] = secrets.group_key(Purpose::Order, "g");
            let short: [u8; 32] = secrets.group_key(Purpose::Order, "g");
            assert_eq!(long[..32], short);
            assert_ne!(long[32..], short);
        }
    }

    // GB/T 32905 has no HMAC examples; the figure is OpenSSL's (`openssl mac -digest SM3 HMAC`).
    #[test]
    fn hmac_sm3_of_openssl() {
        let mut mac = hmac_sm3(b"Jefe");
        mac.update(b"what do ya want for nothing?");
        assert_eq!(
            mac.finalize().into_bytes().as_slice(),
            hex("2e87f1d16862e6d964b50a5200bf2b10b764faa9680a296a2405f24bec39f882")
        );
    }
}
