//! The life of a data key.
//!
//! | state | new tables, columns and streams | tables that are under it | opens |
//! |---|---|---|---|
//! | next | no | go on | yes |
//! | active | yes | go on | yes |
//! | leaving | no | go on, until they are rotated | yes |
//! | read-only | no | can be read, and rotated | yes |
//! | retired | no | cannot be used | no; the key stays in the file |
//! | destroyed | no | cannot be used | never again; the number stays |
//!
//! One key is active. Those made after it are next, those made before it are leaving: neither is
//! written in the file, so that programs from before there were states read it. The other three
//! are, with the time since when nothing is sealed under the key.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a data key stands in its life. See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyState {
    /// Made after the active one.
    Next,
    /// What is new is sealed under it.
    Active,
    /// Made before the active one. Tables that are under it go on.
    Leaving,
    /// It has come to rest.
    At(Rest),
}

/// A state in which nothing is sealed under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rest {
    /// It opens what is under it.
    ReadOnly,
    /// It opens nothing, and can be taken back.
    Retired,
    /// Its bytes are gone.
    Destroyed,
}

impl Rest {
    /// Its number in stored formats; a key that is not at rest has 0.
    pub const fn id(self) -> u8 {
        match self {
            Rest::ReadOnly => 1,
            Rest::Retired => 2,
            Rest::Destroyed => 3,
        }
    }
}

impl KeyState {
    /// Whether tables that are under it may be written.
    pub fn seals(self) -> bool {
        !matches!(self, KeyState::At(_))
    }

    /// Whether what is under it can be read.
    pub fn opens(self) -> bool {
        self.seals() || self == KeyState::At(Rest::ReadOnly)
    }

    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            KeyState::Next => "next",
            KeyState::Active => "active",
            KeyState::Leaving => "leaving",
            KeyState::At(Rest::ReadOnly) => "read-only",
            KeyState::At(Rest::Retired) => "retired",
            KeyState::At(Rest::Destroyed) => "destroyed",
        }
    }
}

impl fmt::Display for KeyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
