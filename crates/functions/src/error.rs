//! Errors that a server answers instead of a result, with its numbers and texts.
//!
//! Source: answers of MySQL 9.7.4. The numbers of the KDF arguments exist since MySQL 8.0.30.
//! MariaDB has none of them: where MySQL refuses, it answers NULL.

/// Which of the two AES functions was called. MySQL's texts name it, in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AesFunction {
    /// `AES_ENCRYPT`
    Encrypt,
    /// `AES_DECRYPT`
    Decrypt,
}

impl std::fmt::Display for AesFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            AesFunction::Encrypt => "aes_encrypt",
            AesFunction::Decrypt => "aes_decrypt",
        })
    }
}

/// An error of MySQL's. `Display` is the server's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// The mode needs an initialization vector and the call has none. The server says so when it
    /// resolves the statement: also where there are no rows, or the text is NULL.
    #[error("Incorrect parameter count in the call to native function '{0}'")]
    MissingIv(AesFunction),
    /// The initialization vector is NULL or shorter than 16 bytes.
    #[error(
        "The initialization vector supplied to {0} is too short. Must be at least 16 bytes long"
    )]
    InvalidIv(AesFunction),
    /// The fourth argument is neither `hkdf` nor `pbkdf2_hmac`. Lower case only.
    #[error("KDF method name is not valid. Please use hkdf or pbkdf2_hmac method name")]
    InvalidKdfName,
    /// Fewer than 1000 iterations, or more than 65535. (65535 itself is allowed, whatever the text
    /// says.)
    #[error(
        "For KDF method pbkdf2_hmac iterations value less than 1000 or more than 65535 is not \
         allowed due to security reasons. Please provide iterations >= 1000 and iterations < 65535"
    )]
    InvalidKdfIterations,
    /// A KDF argument is NULL or has `limit` bytes or more.
    #[error("KDF option size is invalid, please provide valid size < {limit} bytes and not NULL")]
    InvalidKdfOptionSize {
        /// 6 for the iterations, 256 for all others.
        limit: usize,
    },
}

impl FunctionError {
    /// MySQL's error number.
    pub fn number(self) -> u16 {
        match self {
            FunctionError::MissingIv(_) => 1582,
            FunctionError::InvalidIv(_) => 1882,
            FunctionError::InvalidKdfName => 3235,
            FunctionError::InvalidKdfIterations => 3236,
            FunctionError::InvalidKdfOptionSize { .. } => 3238,
        }
    }

    /// The SQLSTATE that goes with it.
    pub fn sqlstate(self) -> &'static str {
        match self {
            FunctionError::MissingIv(_) => "42000",
            _ => "HY000",
        }
    }
}
