//! Login methods: how their messages are treated, and which answers a server takes for a broken-off
//! greeting.

use onionskin_wire::auth::{CACHING_SHA2_PASSWORD, MYSQL_CLEAR_PASSWORD, MYSQL_NATIVE_PASSWORD};
use onionskin_wire::messages::AuthMoreData;
use zeroize::Zeroizing;

/// How the messages of a login method are to be treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// `mysql_native_password`: one answer to a scramble.
    Native,
    /// `client_ed25519`: one answer to a scramble.
    Ed25519,
    /// `mysql_old_password`: one answer to a scramble, which gives the password away to who
    /// listens.
    Old,
    /// A first answer to a scramble, then perhaps the password.
    CachingSha2,
    /// The password at once, encrypted over all but TLS.
    Sha256,
    /// MariaDB's `parsec`: challenges and answers in turn, which no password can be read from.
    InTurn,
    /// The password itself.
    Clear,
    /// Any other.
    Unknown,
    /// The client's first answer was not passed on; the server must name a method.
    Withheld,
}

/// Length of an answer of `mysql_native_password`.
const NATIVE: usize = 20;
/// Length of an answer of `client_ed25519`.
const ED25519: usize = 64;

impl Method {
    pub fn of(plugin: &[u8]) -> Self {
        const NATIVE: &[u8] = MYSQL_NATIVE_PASSWORD.as_bytes();
        const CACHING: &[u8] = CACHING_SHA2_PASSWORD.as_bytes();
        const CLEAR: &[u8] = MYSQL_CLEAR_PASSWORD.as_bytes();
        match plugin {
            NATIVE => Self::Native,
            b"client_ed25519" => Self::Ed25519,
            b"mysql_old_password" => Self::Old,
            CACHING => Self::CachingSha2,
            b"sha256_password" => Self::Sha256,
            b"parsec" => Self::InTurn,
            CLEAR => Self::Clear,
            _ => Self::Unknown,
        }
    }

    /// Whether an answer to a scramble has a length that the method knows. MariaDB counts any other
    /// as a connection that broke off in the greeting, and blocks the address after some of them.
    pub fn accepts(self, answer: &[u8]) -> bool {
        match self {
            Self::Native => answer.is_empty() || answer.len() == NATIVE,
            Self::Ed25519 => answer.len() == ED25519,
            Self::Old => answer.is_empty() || matches!(answer.len(), 8 | 9),
            Self::CachingSha2
            | Self::Sha256
            | Self::InTurn
            | Self::Clear
            | Self::Unknown
            | Self::Withheld => true,
        }
    }

    /// An answer that the server refuses as a wrong password.
    pub fn wrong_answer(self) -> &'static [u8] {
        const ONES: [u8; ED25519] = [0xff; ED25519];
        match self {
            Self::Ed25519 => &ONES,
            Self::Old => &ONES[..8],
            Self::Clear => b"\xff\0",
            Self::Native
            | Self::CachingSha2
            | Self::Sha256
            | Self::InTurn
            | Self::Unknown
            | Self::Withheld => &ONES[..NATIVE],
        }
    }

    /// The same, where the server has sent `data` of the method.
    pub fn wrong_continuation(self, data: &[u8]) -> &'static [u8] {
        match (self, data) {
            // No password. An empty packet MySQL counts.
            (Self::CachingSha2, AuthMoreData::FULL_AUTH) => &[0],
            _ => self.wrong_answer(),
        }
    }
}

/// Takes the client's first answer out of a login. No account has a method without a name, so the
/// server asks for the right one.
pub(crate) fn withhold(plugin: &mut Option<Vec<u8>>, answer: &mut Vec<u8>) {
    *plugin = Some(Vec::new());
    drop(Zeroizing::new(std::mem::take(answer)));
}

/// Whether a client can have this character set. Servers count a login with another as a connection
/// that broke off: UCS-2, UTF-16 and UTF-32 in all their collations, and MariaDB's set of file
/// names. By the low byte of the collation's id.
pub(crate) fn is_for_clients(charset: u8) -> bool {
    !matches!(
        charset,
        17 | 35 | 54..=56 | 60..=62 | 90 | 101..=124 | 128..=151 | 159..=183
    )
}
