//! What can go wrong when cells are sealed and opened. No variant carries a value or a key.

use crate::{KeyId, Suite};

/// Why a value was not sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The sealing key has reached [`Suite::seal_bound`].
    #[error(
        "this data key has sealed as many values of the column as is safe: rotate the data key"
    )]
    Exhausted,
    /// The data key of the cipher is one that nothing is sealed under any more.
    #[error("nothing is sealed under this data key any more")]
    OpensOnly,
    /// The column's cells are those of tenants, and no tenant was named.
    #[error("a value of this column is sealed for a tenant, and none was named")]
    NeedsTenant,
    /// A tenant was named, and the column's cells are not those of tenants.
    #[error("values of this column are not sealed for tenants")]
    TakesNoTenant,
    /// The tenant was forgotten: nothing is sealed for it any more.
    #[error("the tenant was forgotten")]
    Forgotten,
    /// The column's cells are those of tenants, and this process has no secrets of tenants.
    #[error("there are no secrets of tenants: the configuration names no file of them")]
    NoTenants,
    /// The payload is longer than [`MAX_PAYLOAD_LEN`](crate::MAX_PAYLOAD_LEN).
    #[error("the value is too long to be sealed")]
    TooLong,
    /// The kernel gave no random bytes.
    #[error("the system gave no random bytes to seal the value with")]
    NoRandomness,
    /// The cryptographic library refused.
    #[error("the cryptographic library refused to seal the value")]
    Failed,
}

/// Why a cell or an order key was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Shorter than the overhead of an empty payload.
    #[error("the sealed cell is too short")]
    TooShort,
    /// A format version that this program does not know.
    #[error("the sealed cell has the unknown format version {0}")]
    UnknownVersion(u8),
    /// A suite number that this program does not know.
    #[error("the sealed cell has the unknown suite number {0}")]
    UnknownSuite(u8),
    /// A valid header, but of another suite than the cipher's.
    #[error("the cell was sealed under suite {0}")]
    OtherSuite(Suite),
    /// A format version that is known, but is none of the column's.
    #[error("the sealed cell has the format version {0}, which is not one of its column")]
    OtherVersion(u8),
    /// The cell belongs to another column.
    #[error("the sealed cell belongs to another column")]
    OtherColumn,
    /// The cell was sealed under another data key: look up the cipher for it.
    #[error("the cell was sealed under key {0}")]
    OtherKey(KeyId),
    /// The cell is one of a tenant that was forgotten: nobody can open it any more.
    #[error("the tenant of the sealed cell was forgotten")]
    Forgotten,
    /// The cell is one of a tenant, and this process has no secrets of tenants.
    #[error("there are no secrets of tenants: the configuration names no file of them")]
    NoTenants,
    /// The bytes are not what was written for this table and column.
    #[error("the ciphertext was altered, or moved from another table")]
    Tampered,
}
