//! How long a key over protected columns would be on a server that has them in the clear.
//!
//! A token has 16 bytes, whatever it is of, and could be in any key. But a table whose keys no
//! server takes could not be decrypted again, and an application would learn of its mistake there:
//! so what servers refuse is refused here, with their errors. All parts of a key count, those over
//! plain columns as well.

use onionskin_value::{Family, SqlType};

use crate::errors;
use crate::planner::{Planned, refuse};

/// The longest key that InnoDB takes, in bytes.
const KEY_BYTES: u64 = 3072;

/// What a plain column of a type that is not read here counts, in bytes: the longest of those that
/// have a fixed length (UUID, INET6).
const UNREAD_BYTES: u64 = 16;

/// The most that a character takes, in bytes.
const CHARACTER_BYTES: u64 = 4;

/// What an index is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    Primary,
    Unique,
    Plain,
}

/// A plain column in an index.
#[derive(Clone, Copy, Default)]
pub(super) struct PlainPart {
    /// Not always known.
    pub(super) ty: Option<SqlType>,
    /// AUTO_INCREMENT
    pub(super) counts: bool,
}

/// The beginning of a column that MariaDB indexes, where the definition names none and the whole
/// would not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Its length.
    pub chars: u32,
    /// The server notes that the key was too long.
    pub is_noted: bool,
}

/// The columns of one key, added up.
pub(super) struct KeyLength {
    family: Family,
    kind: KeyKind,
    bytes: u64,
    /// A whole column is in it that has no greatest length.
    has_unbounded: bool,
    /// An AUTO_INCREMENT column is.
    has_counter: bool,
}

impl KeyLength {
    pub fn new(family: Family, kind: KeyKind) -> Self {
        KeyLength {
            family,
            kind,
            bytes: 0,
            has_unbounded: false,
            has_counter: false,
        }
    }

    /// Adds a protected column, or as many of its characters. Fails where the server does: MariaDB
    /// makes a hash of what is too long for UNIQUE, and takes the beginning of what is too long for
    /// an index.
    pub fn add(&mut self, name: &str, ty: &SqlType, prefix: Option<u32>) -> Planned<Option<Cut>> {
        let unbounded = ty.is_unbounded();
        let is_lenient = self.family == Family::MariaDb;
        if unbounded && prefix.is_none() && !(is_lenient && self.kind != KeyKind::Primary) {
            return refuse(&errors::KEY_WITHOUT_LENGTH, format!("column {name}"));
        }
        self.has_unbounded |= unbounded && prefix.is_none();
        let bytes = ty.key_bytes(prefix);
        let cut = is_lenient && self.kind == KeyKind::Plain;
        let is_noted = bytes > KEY_BYTES;
        let chars = bytes.min(KEY_BYTES) / u64::from(ty.charset().max_bytes().max(1));
        let cut = (cut && (is_noted || (unbounded && prefix.is_none()))).then_some(Cut {
            chars: u32::try_from(chars).unwrap_or(u32::MAX),
            is_noted,
        });
        self.bytes += if cut.is_some() {
            bytes.min(KEY_BYTES)
        } else {
            bytes
        };
        self.check(name)?;
        Ok(cut)
    }

    /// Adds a plain column. What is wrong with it alone, the server says itself.
    pub fn add_plain(&mut self, part: &PlainPart, prefix: Option<u32>) {
        self.has_counter |= part.counts;
        let bytes = match (&part.ty, prefix) {
            (Some(ty), _) => ty.key_bytes(prefix),
            (None, Some(chars)) => u64::from(chars) * CHARACTER_BYTES,
            (None, None) => UNREAD_BYTES,
        };
        self.bytes += bytes.min(KEY_BYTES);
    }

    /// Fails if the key is too long by now; `name` is that of a protected column in it.
    pub fn check(&self, name: &str) -> Planned<()> {
        let is_too_long = self.bytes > KEY_BYTES;
        let may_be_hash = self.family == Family::MariaDb && self.kind == KeyKind::Unique;
        if is_too_long && !may_be_hash {
            return refuse(&errors::KEY_TOO_LONG, format!("column {name}"));
        }
        if may_be_hash && (is_too_long || self.has_unbounded) && self.has_counter {
            return refuse(&errors::COUNTER_IN_HASH, format!("column {name}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(text: &str) -> SqlType {
        SqlType::parse(text, Some("utf8mb4_bin")).unwrap()
    }

    #[test]
    fn all_parts_count() {
        for family in [Family::MySql, Family::MariaDb] {
            for (kind, plain, is_taken) in [
                (KeyKind::Primary, "int", true),
                (KeyKind::Plain, "int", true),
                (KeyKind::Primary, "bigint", false),
                (KeyKind::Plain, "time(3)", false),
                (KeyKind::Plain, "timestamp", true),
            ] {
                let mut key = KeyLength::new(family, kind);
                assert_eq!(key.add("v", &ty("varchar(767)"), None), Ok(None));
                let part = PlainPart {
                    ty: Some(ty(plain)),
                    counts: false,
                };
                key.add_plain(&part, None);
                assert_eq!(key.check("v").is_ok(), is_taken, "{family:?} {plain}");
            }
        }
    }

    #[test]
    fn mariadb_takes_the_beginning_of_what_is_too_long() {
        for (text, prefix, cut) in [
            ("varchar(768)", None, None),
            ("varchar(769)", None, Some((768, true))),
            ("text", None, Some((768, true))),
            ("tinytext", None, Some((255, false))),
            ("blob", None, Some((3072, true))),
            ("text", Some(20), None),
        ] {
            let mut key = KeyLength::new(Family::MariaDb, KeyKind::Plain);
            let cut = cut.map(|(chars, is_noted)| Cut { chars, is_noted });
            assert_eq!(key.add("v", &ty(text), prefix), Ok(cut), "{text}");
            let mut key = KeyLength::new(Family::MariaDb, KeyKind::Unique);
            assert_eq!(key.add("v", &ty(text), prefix), Ok(None), "{text}");
        }
    }
}
