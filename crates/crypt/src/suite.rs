//! Cipher suites.

use std::{fmt, str::FromStr};

/// Which family of primitives protects a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suite {
    /// AES-256-GCM-SIV and HMAC-SHA-256.
    Aes,
    /// SM4-GCM and HMAC-SM3, for where Chinese national standards are required.
    Sm,
}

impl Suite {
    /// How many units one sealing key may protect; the next [`seal`](crate::ColumnCipher::seal) is
    /// an error.
    ///
    /// A cell costs one unit, and one more for every 64 KiB of its payload, so that few huge values
    /// and many small ones stay within the same proof.
    ///
    /// - `aes`, 2^48: AES-GCM-SIV with random nonces. A repeated nonce shows only whether two
    ///   payloads are the same, and the limits of RFC 8452, section 6, for messages up to 64 KiB
    ///   lie well above this figure.
    /// - `sm`, 2^32: GCM with 96-bit nonces that meet as random ones do (NIST SP 800-38D, 8.3). A
    ///   repeated nonce would be fatal there; its probability stays below 2^-32.
    ///
    /// The count is kept per process, column and data key. It starts at zero in a new process, and
    /// several proxies do not know of each other, so it catches a runaway writer and is no proof
    /// for years of traffic: for `sm`, rotate the data key before the sum over all writers comes
    /// near 2^32 values in one column. Rotation to a new data key starts a new count, because the
    /// new key has sealed nothing yet.
    pub const fn seal_bound(self) -> u64 {
        match self {
            Suite::Aes => 1 << 48,
            Suite::Sm => 1 << 32,
        }
    }

    /// The suite's number in stored formats.
    pub const fn id(self) -> u8 {
        match self {
            Suite::Aes => 1,
            Suite::Sm => 2,
        }
    }

    /// The suite with this number.
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            1 => Some(Suite::Aes),
            2 => Some(Suite::Sm),
            _ => None,
        }
    }

    /// The name used in configuration and comments.
    pub const fn name(self) -> &'static str {
        match self {
            Suite::Aes => "aes",
            Suite::Sm => "sm",
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A suite name that is neither `aes` nor `sm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown cipher suite: expected \"aes\" or \"sm\"")]
pub struct UnknownSuite;

impl FromStr for Suite {
    type Err = UnknownSuite;

    fn from_str(name: &str) -> Result<Self, UnknownSuite> {
        match name {
            "aes" => Ok(Suite::Aes),
            "sm" => Ok(Suite::Sm),
            _ => Err(UnknownSuite),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_go_both_ways() {
        for suite in [Suite::Aes, Suite::Sm] {
            assert_eq!(suite.name().parse(), Ok(suite));
            assert_eq!(Suite::from_id(suite.id()), Some(suite));
        }
        assert_eq!("AES".parse::<Suite>(), Err(UnknownSuite));
        assert_eq!(Suite::from_id(0), None);
    }
}
