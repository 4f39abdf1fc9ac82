//! How a key file keeps its root key, as words.

use std::fmt;

/// What a key file says of its root key. Nothing of it is authenticated: it is for telling what is
/// missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootKeeper {
    /// It is in the clear.
    Mode,
    /// It is under a passphrase.
    Passphrase,
    /// It is wrapped by the provider of this name.
    Provider(String),
}

impl fmt::Display for RootKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RootKeeper::Mode => f.write_str("in the clear, in a file for its owner only"),
            RootKeeper::Passphrase => f.write_str("under a passphrase"),
            RootKeeper::Provider(name) => write!(f, "wrapped by the provider \"{name}\""),
        }
    }
}
