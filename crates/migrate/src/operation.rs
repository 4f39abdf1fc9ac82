//! What is to become of a table, and which columns are protected afterwards.

use std::collections::BTreeMap;

use onionskin_rowstream::checkpoint::State;
use onionskin_schema::{Capabilities, Table, same_name};
use serde::{Deserialize, Serialize};

use crate::consent::Consent;
use crate::error::{MigrateError, Result};
use crate::modify;
use crate::specifications::Specifications;

/// What is done to a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// It is written anew as it is. Protected columns get new ids and are sealed under the active
    /// key.
    Rebuild,
    /// `ALTER TABLE` with these specifications, on a table without protected columns.
    Alter(String),
    /// Protected columns get other definitions, each as behind MODIFY.
    Modify(Vec<String>),
    /// Columns become protected, with these capabilities.
    Encrypt(BTreeMap<String, Vec<String>>),
    /// Columns become plaintext.
    Decrypt(Vec<String>),
    /// Protected columns get more capabilities.
    Add(BTreeMap<String, Vec<String>>),
    /// Protected columns lose capabilities.
    Drop(BTreeMap<String, Vec<String>>),
    /// All protected columns are sealed under the active key, with new ids.
    Rotate,
}

/// How the word of a group begins that a key is in by itself.
const KEY_GROUP: &str = "join:key:";

/// Reads `name: eq; age: eq range; note:`.
pub fn parse_columns(text: &str) -> std::result::Result<BTreeMap<String, Vec<String>>, String> {
    let mut columns = BTreeMap::new();
    for part in text
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (name, words) = part.split_once(':').unwrap_or((part, ""));
        // join:GROUP holds a colon, too, but never before the first space.
        let words: Vec<String> = words
            .split([' ', ',', '\t'])
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        for word in &words {
            match word.as_str() {
                searched if Capabilities::default().take_word(searched) => {}
                // groups of keys are not for the choosing
                other
                    if other.starts_with("join:")
                        && other.len() > 5
                        && !other.starts_with(KEY_GROUP) => {}
                other => {
                    return Err(format!(
                        "{other:?} is no capability: write for example \"name: eq; age: range; note:\"; \
                         there are eq, eq:BITS, range, range:BITS, like, join:GROUP and key_by:COLUMN, and none means \
                         sealed, not searchable"
                    ));
                }
            }
        }
        let name = name.trim().trim_matches('`').to_owned();
        if name.is_empty() || columns.insert(name.clone(), words).is_some() {
            return Err(format!("{part:?}: a column is missing or is named twice"));
        }
    }
    match columns.is_empty() {
        true => Err("no column is named".into()),
        false => Ok(columns),
    }
}

impl Operation {
    /// What a checkpoint says.
    pub(crate) fn of(state: &State) -> Result<Self> {
        serde_json::from_str(&state.operation).map_err(|_| {
            MigrateError::Request(
                "the checkpoint was written by a newer version: use that one".into(),
            )
        })
    }

    /// For messages: `encrypt name (eq), age`.
    pub fn shown(&self) -> String {
        let column = |(name, words): (&String, &Vec<String>)| match words.is_empty() {
            true => name.clone(),
            false => format!("{name} ({})", words.join(", ")),
        };
        let names = |columns: &BTreeMap<String, Vec<String>>| {
            columns.iter().map(column).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Rebuild => "rebuild".into(),
            Self::Alter(sql) => format!("alter: {sql}"),
            Self::Modify(definitions) => format!("modify {}", definitions.join(", ")),
            Self::Encrypt(columns) => format!("encrypt {}", names(columns)),
            Self::Decrypt(columns) => format!("decrypt {}", columns.join(", ")),
            Self::Add(columns) => format!("add to {}", names(columns)),
            Self::Drop(columns) => format!("drop from {}", names(columns)),
            Self::Rotate => "rotate keys".into(),
        }
    }

    /// An error unless `consent` holds what it lets the server learn more of. The tables, when they
    /// are there, are looked at again.
    pub(crate) fn must_be_allowed(&self, table: &Table, consent: &Consent) -> Result<()> {
        let missing = |option: String| {
            Err(MigrateError::NotAllowed(format!(
                "this migration of {} is to {}: add {option} to this command line if that is what you want; if not, --abort",
                table.name,
                self.shown()
            )))
        };
        let of = Consent::of(self, false);
        for name in &of.plain {
            if !consent.plain.iter().any(|plain| same_name(plain, name)) {
                return missing(format!("--decrypt \"{}\"", of.plain.join(", ")));
            }
        }
        for (name, words) in &of.more {
            let mut given = consent
                .more
                .iter()
                .filter(|(column, _)| same_name(column, name));
            if !given.any(|(_, given)| words.iter().all(|word| given.contains(word))) {
                return missing(format!("--add \"{name}: {}\"", words.join(" ")));
            }
        }
        Ok(())
    }

    /// The columns that are dropped; the new table may have others of their names.
    pub(crate) fn dropped(&self) -> Vec<String> {
        match self {
            Self::Alter(sql) => Specifications::read(sql).dropped(),
            _ => Vec::new(),
        }
    }

    /// The columns that get other definitions.
    pub(crate) fn modified(&self) -> Result<Vec<String>> {
        match self {
            Self::Modify(texts) => {
                let definitions = modify::read_all(texts)?;
                Ok(definitions.into_iter().map(|new| new.name).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Whether it tells the next number of an AUTO_INCREMENT column.
    pub(crate) fn tells_number(&self) -> bool {
        match self {
            Self::Alter(sql) => Specifications::read(sql).tells_number(),
            _ => false,
        }
    }

    /// The capability words of every column that is protected afterwards.
    pub(crate) fn protected_after(&self, table: &Table) -> Result<BTreeMap<String, Vec<String>>> {
        let mut after: BTreeMap<String, Vec<String>> = table
            .protected_columns()
            .map(|(column, protection)| (column.name.clone(), protection.capabilities.list()))
            .collect();
        let request = |text: String| Err(MigrateError::Request(text));
        // The table's own spelling of a column, and whether it is protected.
        let known = |name: &str| -> Result<(String, bool)> {
            match table.column(name) {
                Some(column) => Ok((column.name.clone(), column.protection.is_some())),
                None => Err(MigrateError::Request(format!(
                    "{} has no column {name}",
                    table.name
                ))),
            }
        };
        let must_be_protected = |name: &str| -> Result<String> {
            match known(name)? {
                (name, true) => Ok(name),
                (name, false) => Err(MigrateError::Request(format!(
                    "column {name} is not protected: --encrypt protects it"
                ))),
            }
        };
        match self {
            Self::Alter(_) if after.is_empty() => {}
            Self::Alter(_) => {
                return request(format!(
                    "{} has protected columns: run ALTER TABLE through the proxy, which knows them",
                    table.name
                ));
            }
            Self::Modify(_) => {
                for name in self.modified()? {
                    let (name, is_protected) = known(&name)?;
                    if !is_protected {
                        return request(format!(
                            "column {name} is not protected: ALTER TABLE through the proxy changes it"
                        ));
                    }
                }
            }
            Self::Rebuild => {}
            Self::Rotate if after.is_empty() => {
                return request(format!("{} has no protected column", table.name));
            }
            Self::Rotate => {}
            Self::Encrypt(columns) => {
                for (name, words) in columns {
                    let (name, is_protected) = known(name)?;
                    if is_protected {
                        return request(format!(
                            "column {name} is protected already: --add gives it more capabilities"
                        ));
                    }
                    after.insert(name, words.clone());
                }
            }
            Self::Decrypt(columns) => {
                for name in columns {
                    after.remove(&must_be_protected(name)?);
                }
            }
            Self::Add(columns) => {
                for (name, more) in columns {
                    let name = must_be_protected(name)?;
                    let words = after.entry(name.clone()).or_default();
                    for word in more {
                        if words.contains(word) {
                            return request(format!("column {name} has {word} already"));
                        }
                        // a group that is named takes the place of a key's own
                        if word.starts_with("join:") {
                            words.retain(|known| !known.starts_with(KEY_GROUP));
                        }
                        // so does one number of bits of another, or of all
                        words.retain(|known| !is_of_one_kind(known, word));
                        words.push(word.clone());
                    }
                }
            }
            Self::Drop(columns) => {
                for (name, fewer) in columns {
                    let name = must_be_protected(name)?;
                    let words = after.entry(name.clone()).or_default();
                    for word in fewer {
                        if !words.contains(word) {
                            return request(format!("column {name} has no {word}"));
                        }
                        words.retain(|known| known != word);
                        // without equality there is nothing that a foreign key compares
                        if word == "eq" {
                            words.retain(|known| !known.starts_with(KEY_GROUP));
                        }
                    }
                }
            }
        }
        Ok(after)
    }
}

/// Whether both are `eq` or both are `range`, with any number of bits.
fn is_of_one_kind(a: &str, b: &str) -> bool {
    let kind = |word: &str| word.split(':').next().map(str::to_owned);
    kind(a) == kind(b) && ["eq", "range"].contains(&kind(a).unwrap_or_default().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_their_capabilities_are_read() {
        let columns =
            parse_columns(" name: eq ;age:range, eq; `note`:; c: join:people; d: like").unwrap();
        let words = |name: &str| columns[name].join(" ");
        assert_eq!(words("name"), "eq");
        assert_eq!(words("age"), "range eq");
        assert_eq!(words("note"), "");
        assert_eq!(words("c"), "join:people");
        assert_eq!(words("d"), "like");
        for wrong in ["", ";", "a: likes", "a: join:", "a: eq; a: eq", ": eq"] {
            assert!(parse_columns(wrong).is_err(), "{wrong}");
        }
    }
}
