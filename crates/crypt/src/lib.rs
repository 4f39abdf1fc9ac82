//! Encryption schemes, named by what they promise and what they show.
//!
//! A protected column gets one [`ColumnCipher`] for each data key it was ever written under. It
//! offers exactly four things:
//!
//! | operation | promise | what the server learns |
//! |---|---|---|
//! | [`ColumnCipher::seal`] | randomized, authenticated, bound to its table and column | the length |
//! | [`ColumnCipher::equality_token`] | equal inputs give equal tokens | which rows are equal, and how often |
//! | [`ColumnCipher::order_key`] | `memcmp` on keys is `memcmp` on inputs | the order, and more: see [`order_key`] |
//! | [`ColumnCipher::gram_token`] | equal grams give equal tokens | which texts share a gram, and more: see [`gram`] |
//!
//! # Keys
//!
//! Code passes handles, never bytes. A [`DataKey`] is 32 random bytes that never leave this crate
//! except through [`dangerous_bytes`], a module that a reviewer can search for. From the data key
//! every column derives keys of its own, one for each purpose, by HKDF (RFC 5869). What a column's
//! keys are bound to:
//!
//! - `seal` and `gram`: the table id and the column id, always;
//! - `eq` and `ord`: the same, or the name of a join group, so that all columns of a group share
//!   their tokens and can be compared by the server.
//!
//! # Tenants
//!
//! Where a column is keyed by tenant ([`CellFormat::of_tenants`]), the key of a cell is made of the
//! column's key and of a secret of the cell's tenant. The secrets are the leaves of a
//! [`TenantTree`], from which single leaves can be taken away for good.
//!
//! # Suites
//!
//! [`Suite::Aes`]: AES-256-GCM-SIV, HMAC-SHA-256, AES-256 blocks, HKDF-SHA-256, all from aws-lc-rs.
//! [`Suite::Sm`]: SM4-GCM, HMAC-SM3, SM4 blocks, HKDF over HMAC-SM3.
//!
//! # Streams
//!
//! Backups are sealed in frames. [`StreamKey`] derives the ciphers of one stream from a data key:
//! AES-256-GCM or SM4-GCM with counted nonces, because a stream's keys are its own. A stream to
//! [recipients](recipient) has a random [`FileKey`] instead, wrapped to each of their public keys.
//! [`unauthenticated`] reads what `openssl enc` wrote.
//!
//! Every format is written down byte by byte in `docs/formats.md` and pinned by `tests/vectors`.

mod aead;
mod block_prf;
mod cell;
mod cell_format;
mod cell_keys;
mod column;
mod column_id;
pub mod dangerous_bytes;
mod data_key;
mod derive;
mod error;
mod file_key;
mod fresh;
pub mod gram;
mod mac;
mod metadata;
mod nonce;
pub mod order_key;
mod recent;
pub mod recipient;
mod seal_count;
mod stream;
mod suite;
mod tenant;
mod tenant_cell;
mod tenant_tree;
pub mod unauthenticated;

#[cfg(test)]
mod vectors;

pub use cell::{CellHeader, MAX_PAYLOAD_LEN, cell_header, cell_tenant, sealed_len};
pub use cell_format::{CELL_HEADER_LEN, CELL_OVERHEAD, CellFormat};
pub use column::{ColumnCipher, EQUALITY_TOKEN_LEN, EqualityToken};
pub use column_id::ColumnId;
pub use data_key::{DATA_KEY_LEN, DataKey};
pub use error::{OpenError, SealError};
pub use file_key::{FILE_KEY_LEN, FileKey};
pub use fresh::fresh_bytes;
pub use gram::{GRAM_LEN, GRAM_TOKEN_LEN, GramToken, NO_GRAM_TOKEN};
pub use metadata::{AuditKey, METADATA_TAG_LEN, MetadataKey};
pub use order_key::order_key_len;
pub use recipient::{Identity, Recipient};
pub use stream::{
    FRAME_NONCE_LEN, FRAME_TAG_LEN, FrameCipher, STREAM_COMMITMENT_LEN, STREAM_DIGEST_LEN,
    StreamDigest, StreamKey,
};
pub use suite::{Suite, UnknownSuite};
pub use tenant::{TenantFileKey, TenantId, TenantNames, TenantSecret, TenantSecrets};
pub use tenant_tree::TenantTree;

/// Number of a data key. It travels in every sealed cell, so that rotation never stops reads.
pub type KeyId = u16;
