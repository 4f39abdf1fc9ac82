//! `block_encryption_mode`: which AES, in which mode.
//!
//! Source: the MySQL manual (Encryption Functions; Server System Variables), MariaDB's
//! documentation of `AES_ENCRYPT`, and the answers of both servers.

use std::str::FromStr;

/// How a block cipher is made a cipher for texts (NIST SP 800-38A).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Each block for itself, padded (PKCS #7).
    Ecb,
    /// Each block is mixed with the ciphertext before it, padded (PKCS #7).
    Cbc,
    /// Cipher feedback, one bit at a time: 128 blocks of work for 16 bytes. MySQL only.
    Cfb1,
    /// Cipher feedback, one byte at a time. MySQL only.
    Cfb8,
    /// Cipher feedback, one block at a time. MySQL only.
    Cfb128,
    /// Output feedback. MySQL only.
    Ofb,
    /// Counter: the initialization vector is a big-endian number of 128 bits. MariaDB only.
    Ctr,
}

impl Mode {
    /// Whether it needs an initialization vector.
    pub fn needs_iv(self) -> bool {
        self != Mode::Ecb
    }

    /// Whether texts are padded to full blocks. Otherwise a ciphertext is as long as its text.
    pub fn is_padded(self) -> bool {
        matches!(self, Mode::Ecb | Mode::Cbc)
    }

    fn name(self) -> &'static str {
        match self {
            Mode::Ecb => "ecb",
            Mode::Cbc => "cbc",
            Mode::Cfb1 => "cfb1",
            Mode::Cfb8 => "cfb8",
            Mode::Cfb128 => "cfb128",
            Mode::Ofb => "ofb",
            Mode::Ctr => "ctr",
        }
    }
}

/// Length of an AES key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyBits {
    /// 128 bits, the servers' default
    Bits128,
    /// 192 bits
    Bits192,
    /// 256 bits
    Bits256,
}

impl KeyBits {
    const ALL: [KeyBits; 3] = [KeyBits::Bits128, KeyBits::Bits192, KeyBits::Bits256];

    /// Length in bytes.
    pub fn bytes(self) -> usize {
        self.bits() / 8
    }

    /// Length in bits.
    pub fn bits(self) -> usize {
        match self {
            KeyBits::Bits128 => 128,
            KeyBits::Bits192 => 192,
            KeyBits::Bits256 => 256,
        }
    }
}

/// Which server's rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Server {
    /// MySQL
    MySql,
    /// MariaDB, since 11.2
    MariaDb,
}

impl Server {
    /// Its modes, in the order of the numbers of `block_encryption_mode`.
    fn modes(self) -> &'static [Mode] {
        match self {
            Server::MySql => &[
                Mode::Ecb,
                Mode::Cbc,
                Mode::Cfb1,
                Mode::Cfb8,
                Mode::Cfb128,
                Mode::Ofb,
            ],
            Server::MariaDb => &[Mode::Ecb, Mode::Cbc, Mode::Ctr],
        }
    }
}

/// A value of `block_encryption_mode`, such as `aes-256-cbc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cipher {
    /// Length of the key.
    pub bits: KeyBits,
    /// Mode of operation.
    pub mode: Mode,
}

impl Default for Cipher {
    /// `aes-128-ecb`, the default of both servers.
    fn default() -> Self {
        Cipher {
            bits: KeyBits::Bits128,
            mode: Mode::Ecb,
        }
    }
}

impl Cipher {
    /// All that a server knows, in the order of their numbers: `SET block_encryption_mode = 3` is
    /// the fourth.
    pub fn all(server: Server) -> impl Iterator<Item = Cipher> {
        let modes = server.modes().iter();
        modes.flat_map(|&mode| KeyBits::ALL.map(|bits| Cipher { bits, mode }))
    }

    /// The cipher of a name, in any case, if the server knows it. There are no abbreviations, and
    /// a blank around the name makes it another name.
    pub fn named(server: Server, name: &[u8]) -> Option<Cipher> {
        Self::all(server).find(|cipher| cipher.to_string().as_bytes().eq_ignore_ascii_case(name))
    }

    /// The cipher of a number, if the server knows it.
    pub fn numbered(server: Server, number: u64) -> Option<Cipher> {
        Self::all(server).nth(usize::try_from(number).ok()?)
    }
}

impl std::fmt::Display for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "aes-{}-{}", self.bits.bits(), self.mode.name())
    }
}

/// Not a cipher of either server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no server has a block_encryption_mode of this name")]
pub struct UnknownCipher;

impl FromStr for Cipher {
    type Err = UnknownCipher;

    /// The cipher of a name of either server, in any case.
    fn from_str(name: &str) -> Result<Self, UnknownCipher> {
        [Server::MySql, Server::MariaDb]
            .into_iter()
            .find_map(|server| Cipher::named(server, name.as_bytes()))
            .ok_or(UnknownCipher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case() {
        for server in [Server::MySql, Server::MariaDb] {
            for cipher in Cipher::all(server) {
                assert_eq!(cipher.to_string().parse(), Ok(cipher));
                assert_eq!(cipher.to_string().to_uppercase().parse(), Ok(cipher));
            }
        }
        for wrong in ["", "aes-128-e", "aes-128-ecb ", "aes-128-gcm", "aes-64-ecb"] {
            assert_eq!(wrong.parse::<Cipher>(), Err(UnknownCipher));
        }
    }

    #[test]
    fn numbers_are_those_of_the_servers() {
        let name = |server, number| Cipher::numbered(server, number).map(|c| c.to_string());
        assert_eq!(name(Server::MySql, 3).as_deref(), Some("aes-128-cbc"));
        assert_eq!(name(Server::MySql, 17).as_deref(), Some("aes-256-ofb"));
        assert_eq!(name(Server::MySql, 18), None);
        assert_eq!(name(Server::MariaDb, 1).as_deref(), Some("aes-192-ecb"));
        assert_eq!(name(Server::MariaDb, 6).as_deref(), Some("aes-128-ctr"));
        assert_eq!(name(Server::MariaDb, 9), None);
    }

    #[test]
    fn each_server_has_modes_of_its_own() {
        assert_eq!(Cipher::named(Server::MySql, b"aes-128-ctr"), None);
        assert_eq!(Cipher::named(Server::MariaDb, b"aes-128-ofb"), None);
    }
}
