//! Why a column type cannot be handled.

/// Why a column type cannot be handled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// The type exists but values of it are not reproduced here.
    #[error("columns of type {0} cannot be protected")]
    Unsupported(String),
    /// Not a column type.
    #[error("'{0}' is not a column type")]
    Malformed(String),
    /// Lengths beyond what a server accepts.
    #[error("the length, precision or scale of '{0}' is out of range")]
    Length(String),
    /// A collation of a charset that cannot be converted exactly.
    #[error("the collation {0} belongs to a character set that is not supported")]
    Collation(String),
    /// A character type without a collation.
    #[error("a collation is needed for the type {0}")]
    CollationMissing(String),
}
