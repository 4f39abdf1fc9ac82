//! What a migration needs to go on after a kill, in a table beside the one that it changes.
//!
//! The state is written after everything that it tells of, and writing that again does no harm: a
//! checkpoint that is behind costs time, one that is ahead would lose writes. A second row holds
//! the mark (see [`crate::pending`]), a third one is there while another process wants to take
//! over.
//!
//! The server keeps the state and must not be able to write one. Where there are keys, a tag under
//! the metadata key covers the state's text and the names of the database and of the checkpoint's
//! table, so a state cannot be edited or moved to another table. An older state of the same table
//! can be put back. Its place in the copy and in the binary log is then one from which work is
//! repeated; that it may belong to another migration of the table is the reader's to care for, by
//! [`State::id`] and by what [`State::original`] and [`State::made`] say of the tables. The mark
//! and the request to take over are not authenticated: with them the server can make a migration
//! wait or end, as it can without them.

use std::collections::BTreeMap;
use std::sync::Arc;

use onionskin_keys::KeySet;
use onionskin_schema::identifier;
use serde::{Deserialize, Serialize};

use crate::RowError;
use crate::copy::Place;
use crate::key::{Key, hex_literal};
use crate::session::{Session, SqlError};

/// The version of [`State`]'s text, and of the table that holds it. Version 1 had no tag.
pub const VERSION: u32 = 2;
/// The version of a [`State`] with foreign keys, which those who know only [`VERSION`] must not go
/// on with: they would leave the keys where they are.
pub const VERSION_WITH_FOREIGN_KEYS: u32 = 3;
/// The version of a [`State`] with triggers, for the same reason.
pub const VERSION_WITH_TRIGGERS: u32 = 4;

/// The row that is there while another process asks for the checkpoint.
const REQUEST: u8 = 3;
/// For how long a request counts, in seconds: who asked may have been killed.
const REQUEST_HOLDS: u8 = 30;

/// What stands in the table's comment.
pub const COMMENT: &str = "onionskin migration";

/// What the tagged text begins with. Comments of columns, which the same key tags, begin otherwise.
const TAGGED: &str = "onionskin migration 2\0";

/// A table's definition by tags: one for each physical column, by its name, and one for the whole
/// text.
///
/// Tags are made under the metadata key and are the same for the same definition, whatever the
/// table is called. Without keys there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imprint {
    /// Name, type, default, comment and so on of every column.
    pub columns: BTreeMap<String, String>,
    /// SHOW CREATE TABLE, for CHECKs, keys and options.
    pub definition: String,
}

/// How far a migration is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// [`VERSION`], [`VERSION_WITH_FOREIGN_KEYS`] or [`VERSION_WITH_TRIGGERS`].
    pub version: u32,
    /// Random digits, others for each migration.
    pub id: String,
    /// What is done to the table, as the program that began it wrote it.
    pub operation: String,
    /// The old table's definition when it began.
    pub definition: String,
    /// `copy`, `check` or `switch`.
    pub phase: String,
    /// Everything in the binary log before this is written; in the text form of its reader.
    pub position: String,
    /// The copy is done up to and with this key; `None` at the beginning.
    pub copied_to: Option<Vec<Vec<u8>>>,
    /// Whether it is done to the end.
    pub copied: bool,
    /// Rows that were copied.
    pub rows: u64,
    /// How many there seemed to be.
    pub estimate: u64,
    /// Rows that were written again because they had changed.
    pub changes: u64,
    /// Rows that a comparison found to be wrong.
    pub repaired: u64,
    /// Seconds since 1970 when it began.
    pub began: u64,
    /// Whose binary log the position is of.
    pub server: String,
    /// Whether the old table is kept up to date after the switch.
    #[serde(default)]
    pub reverse: bool,
    /// Where the log was when the tables were locked and everything was written, if they are about
    /// to be renamed in a way that may let writers by: what was written to the old table behind
    /// this place is not in the new one.
    #[serde(default)]
    pub locked_at: Option<String>,
    /// The table as it was when the migration began.
    #[serde(default)]
    pub original: Imprint,
    /// The table that was made; `None` until it was compared with what was planned.
    #[serde(default)]
    pub made: Option<Imprint>,
    /// The foreign keys of the table, and those that point at it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_keys: Vec<ForeignKey>,
    /// The triggers of the table, in the order in which they run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<Trigger>,
}

/// A trigger as the server's catalogue tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// Its name.
    pub name: String,
    /// `BEFORE` or `AFTER`.
    pub timing: String,
    /// `INSERT`, `UPDATE` or `DELETE`.
    pub event: String,
    /// Under whose account it runs, as the catalogue shows it.
    pub definer: String,
    /// What SHOW CREATE TRIGGER shows, in the bytes of `charset`.
    #[serde(with = "text_or_hex")]
    pub statement: Vec<u8>,
    /// Under which it was made.
    pub sql_mode: String,
    /// The same: `character_set_client`.
    pub charset: String,
    /// The same: `collation_connection`.
    pub collation: String,
    /// The same: the database's default.
    pub database_collation: String,
    /// When it was made, in seconds since 1970; empty if the server does not know.
    pub created: String,
}

/// Bytes as they stand where they are UTF-8, and in hexadecimal digits otherwise.
mod text_or_hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Hex { hex: String },
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let written = match std::str::from_utf8(bytes) {
            Ok(text) => Written::Text(text.to_owned()),
            Err(_) => Written::Hex {
                hex: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            },
        };
        written.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        match Written::deserialize(from)? {
            Written::Text(text) => Ok(text.into_bytes()),
            Written::Hex { hex } => hex
                .as_bytes()
                .chunks(2)
                .map(|pair| {
                    let digits = std::str::from_utf8(pair).ok();
                    let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                    byte.ok_or_else(|| D::Error::custom("no hexadecimal digits"))
                })
                .collect(),
        }
    }
}

/// A foreign key as the server's catalogue tells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ForeignKey {
    /// The constraint's name.
    pub name: String,
    /// The database of the table that has it.
    pub database: String,
    /// The table that has it.
    pub table: String,
    /// Of that table.
    pub columns: Vec<String>,
    /// The database of the table that it points at.
    pub parent_database: String,
    /// The table that it points at.
    pub parent: String,
    /// Of the table that it points at.
    pub parent_columns: Vec<String>,
    /// `CASCADE`, `SET NULL`, `RESTRICT` or `NO ACTION`.
    pub on_delete: String,
    /// The same.
    pub on_update: String,
    /// Whether one of its columns is one of a unique key of its table. Told of keys that the
    /// migrated table has.
    #[serde(default)]
    pub in_unique_key: bool,
}

impl State {
    /// Where the copy goes on.
    pub fn place(&self) -> Place {
        match (&self.copied_to, self.copied) {
            (_, true) => Place::End,
            (Some(key), false) => Place::Behind(Key(key.clone())),
            (None, false) => Place::Start,
        }
    }

    /// Notes where the copy is.
    pub fn set_place(&mut self, place: &Place) {
        match place {
            Place::Start => {}
            Place::Behind(key) => self.copied_to = Some(key.0.clone()),
            Place::End => self.copied = true,
        }
    }
}

/// Why a checkpoint is not gone on with, though it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untrusted {
    /// It has another tag than its content, or none.
    NotAuthentic,
    /// An earlier version wrote it, without a tag.
    Outdated,
    /// It has a tag, and there are no keys to check it with.
    NoKeys,
}

/// What stands in a checkpoint.
#[derive(Clone, Debug)]
pub struct Found {
    /// The state, if its text is understood.
    pub state: Option<State>,
    /// What is in the way of trusting it.
    pub untrusted: Option<Untrusted>,
}

/// The table that holds a migration's state.
#[derive(Clone)]
pub struct Checkpoint {
    /// Its name, quoted and with its database.
    table: String,
    database: String,
    /// Its name alone.
    pub name: String,
    keys: Option<Arc<KeySet>>,
}

impl Checkpoint {
    /// The checkpoint table of this name, whose content is authenticated with these keys.
    pub fn new(database: &str, name: &str, keys: Option<&Arc<KeySet>>) -> Self {
        Self {
            table: format!("{}.{}", identifier(database), identifier(name)),
            database: database.to_owned(),
            name: name.to_owned(),
            keys: keys.cloned(),
        }
    }

    /// Makes the table, with a state. It is an error if it is there.
    pub fn create(&self, session: &mut Session, state: &State) -> Result<(), RowError> {
        session.run(&format!(
            "CREATE TABLE {} (id TINYINT UNSIGNED NOT NULL PRIMARY KEY, mark BIGINT UNSIGNED NOT NULL, \
             state LONGTEXT CHARACTER SET utf8mb4, tag BINARY(16), \
             written_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) \
             ON UPDATE CURRENT_TIMESTAMP(6)) ENGINE=InnoDB COMMENT='{COMMENT}'",
            self.table
        ))?;
        let (state, tag) = self.literals(state)?;
        session.run(&format!(
            "INSERT INTO {} (id, mark, state, tag) VALUES (1, 0, {state}, {tag}), (2, 0, NULL, NULL)",
            self.table,
        ))?;
        Ok(())
    }

    /// Writes the state.
    pub fn write(&self, session: &mut Session, state: &State) -> Result<(), RowError> {
        let (state, tag) = self.literals(state)?;
        session.run_until_done(&format!(
            "UPDATE {} SET state = {state}, tag = {tag} WHERE id = 1",
            self.table,
        ))?;
        Ok(())
    }

    /// Reads it; `None` if the table was made and its maker killed before there was a state. Only
    /// what is authentic is read, or what was written without keys if there are none.
    pub fn read(&self, session: &mut Session) -> Result<Option<State>, RowError> {
        let Some(Found { state, untrusted }) = self.peek(session)? else {
            return Ok(None);
        };
        match (state, untrusted) {
            (_, Some(why)) => Err(RowError::Untrusted {
                table: self.name.clone(),
                why,
            }),
            (Some(state), None) => Ok(Some(state)),
            (None, None) => Err(self.unreadable()),
        }
    }

    /// What stands there, authentic or not; `None` as with [`Self::read`].
    pub fn peek(&self, session: &mut Session) -> Result<Option<Found>, SqlError> {
        let has_tag = session.rows(&format!("SHOW COLUMNS FROM {} LIKE 'tag'", self.table))?;
        let tag = if has_tag.is_empty() { "NULL" } else { "tag" };
        let rows = session.rows(&format!(
            "SELECT state, {tag} FROM {} WHERE id = 1",
            self.table
        ))?;
        let mut cells = rows.into_iter().next().into_iter().flatten();
        let text = cells.next().flatten().unwrap_or_default();
        let tag = cells.next().flatten();
        if text.is_empty() {
            return Ok(None);
        }
        let state = serde_json::from_slice::<State>(&text).ok().filter(|state| {
            let known = [VERSION, VERSION_WITH_FOREIGN_KEYS, VERSION_WITH_TRIGGERS];
            known.contains(&state.version)
        });
        let untrusted = match (&self.keys, &tag) {
            _ if has_tag.is_empty() => Some(Untrusted::Outdated),
            (None, None) => None,
            (None, Some(_)) => Some(Untrusted::NoKeys),
            (Some(keys), Some(tag)) if keys.metadata_key().verify(&self.tagged(&text), tag) => None,
            (Some(_), _) => Some(Untrusted::NotAuthentic),
        };
        Ok(Some(Found { state, untrusted }))
    }

    /// What a tag of `state`, the text of a state, covers. Names hold no NUL.
    pub fn tagged(&self, state: &[u8]) -> Vec<u8> {
        let head = format!("{TAGGED}{}\0{}\0", self.database, self.name);
        [head.as_bytes(), state].concat()
    }

    fn unreadable(&self) -> RowError {
        RowError::Checkpoint {
            table: self.name.clone(),
        }
    }

    /// The state and its tag in SQL.
    fn literals(&self, state: &State) -> Result<(String, String), RowError> {
        let text = serde_json::to_vec(state).map_err(|_| self.unreadable())?;
        let tag = match &self.keys {
            Some(keys) => hex_literal(&keys.metadata_key().tag(&self.tagged(&text))),
            None => "NULL".to_owned(),
        };
        Ok((format!("_utf8mb4 {}", hex_literal(&text)), tag))
    }

    /// When it was last written, in UTC.
    pub fn written_at(&self, session: &mut Session) -> Result<String, SqlError> {
        session.text(&format!(
            "SELECT written_at FROM {} WHERE id = 1",
            self.table
        ))
    }

    /// Commits a mark greater than all before and returns it. What was in the binary log before it
    /// can be read afterwards.
    pub fn mark(&self, session: &mut Session) -> Result<u64, RowError> {
        session.run_until_done(&format!(
            "UPDATE {} SET mark = LAST_INSERT_ID(mark + 1) WHERE id = 2",
            self.table
        ))?;
        let text = session.text("SELECT LAST_INSERT_ID()")?;
        text.parse().map_err(|_| RowError::Checkpoint {
            table: self.name.clone(),
        })
    }

    /// Asks the process that works with this checkpoint to save it and to end.
    pub fn ask(&self, session: &mut Session) -> Result<(), SqlError> {
        session.run_until_done(&format!(
            "REPLACE INTO {} (id, mark, state) VALUES ({REQUEST}, 0, NULL)",
            self.table
        ))?;
        Ok(())
    }

    /// Whether another process asks for it.
    pub fn is_asked(&self, session: &mut Session) -> Result<bool, SqlError> {
        let count = session.text(&format!(
            "SELECT COUNT(*) FROM {} WHERE id = {REQUEST} AND written_at > NOW(6) - INTERVAL {REQUEST_HOLDS} SECOND",
            self.table
        ))?;
        Ok(count != "0")
    }

    /// Takes the request back.
    pub fn clear_request(&self, session: &mut Session) -> Result<(), SqlError> {
        session.run_until_done(&format!("DELETE FROM {} WHERE id = {REQUEST}", self.table))?;
        Ok(())
    }

    /// Removes the table.
    pub fn drop(&self, session: &mut Session) -> Result<(), SqlError> {
        session.run(&format!("DROP TABLE IF EXISTS {}", self.table))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_triggers_are_kept_to_the_byte() {
        let trigger = |statement: &[u8]| Trigger {
            name: "x".into(),
            timing: "AFTER".into(),
            event: "INSERT".into(),
            definer: "root@localhost".into(),
            statement: statement.to_vec(),
            sql_mode: String::new(),
            charset: "latin1".into(),
            collation: "latin1_swedish_ci".into(),
            database_collation: "utf8mb4_bin".into(),
            created: "1.25".into(),
        };
        for statement in [b"SET NEW.a = '\xc3\xa4'".as_slice(), b"SET NEW.a = '\xe4'"] {
            let text = serde_json::to_string(&trigger(statement)).expect("a text");
            let again: Trigger = serde_json::from_str(&text).expect("a trigger");
            assert_eq!(again.statement, statement);
        }
    }
}
