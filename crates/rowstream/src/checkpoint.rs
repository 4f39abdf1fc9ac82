//! What a migration needs to go on after a kill, in a table beside the one that it changes.
//!
//! The state is written after everything that it tells of, and writing that again does no harm: a checkpoint that is
//! behind costs time, one that is ahead would lose writes. A second row holds the mark (see [`crate::pending`]),
//! a third one is there while another process wants to take over.

use onionskin_schema::identifier;
use serde::{Deserialize, Serialize};

use crate::RowError;
use crate::copy::Place;
use crate::key::{Key, hex_literal};
use crate::session::{Session, SqlError};

/// The version of [`State`]'s text. A newer program reads older ones.
pub const VERSION: u32 = 1;

/// The row that is there while another process asks for the checkpoint.
const REQUEST: u8 = 3;
/// For how long a request counts, in seconds: who asked may have been killed.
const REQUEST_HOLDS: u8 = 30;

/// What stands in the table's comment.
pub const COMMENT: &str = "onionskin migration";

/// How far a migration is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// [`VERSION`].
    pub version: u32,
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
    /// Whose binary log the position is of; empty in checkpoints of earlier programs.
    #[serde(default)]
    pub server: String,
    /// Whether the old table is kept up to date after the switch.
    #[serde(default)]
    pub reverse: bool,
    /// Where the log was when the tables were locked and everything was written, if they are about to be renamed in a way that may let
    /// writers by: what was written to the old table behind this place is not in the new one.
    #[serde(default)]
    pub locked_at: Option<String>,
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

/// The table that holds a migration's state.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Its name, quoted and with its database.
    table: String,
    /// Its name alone.
    pub name: String,
}

impl Checkpoint {
    /// The checkpoint table of this name.
    pub fn new(database: &str, name: &str) -> Self {
        Self {
            table: format!("{}.{}", identifier(database), identifier(name)),
            name: name.to_owned(),
        }
    }

    /// Makes the table, with a state. It is an error if it is there.
    pub fn create(&self, session: &mut Session, state: &State) -> Result<(), RowError> {
        session.run(&format!(
            "CREATE TABLE {} (id TINYINT UNSIGNED NOT NULL PRIMARY KEY, mark BIGINT UNSIGNED NOT NULL, \
             state LONGTEXT CHARACTER SET utf8mb4, written_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) \
             ON UPDATE CURRENT_TIMESTAMP(6)) ENGINE=InnoDB COMMENT='{COMMENT}'",
            self.table
        ))?;
        session.run(&format!(
            "INSERT INTO {} (id, mark, state) VALUES (1, 0, {}), (2, 0, NULL)",
            self.table,
            literal(state)?
        ))?;
        Ok(())
    }

    /// Writes the state.
    pub fn write(&self, session: &mut Session, state: &State) -> Result<(), RowError> {
        session.run_until_done(&format!(
            "UPDATE {} SET state = {} WHERE id = 1",
            self.table,
            literal(state)?
        ))?;
        Ok(())
    }

    /// Reads it; `None` if the table was made and its maker killed before there was a state.
    pub fn read(&self, session: &mut Session) -> Result<Option<State>, RowError> {
        let text = session.text(&format!("SELECT state FROM {} WHERE id = 1", self.table))?;
        if text.is_empty() {
            return Ok(None);
        }
        match serde_json::from_str::<State>(&text) {
            Ok(state) if (1..=VERSION).contains(&state.version) => Ok(Some(state)),
            _ => Err(RowError::Checkpoint {
                table: self.name.clone(),
            }),
        }
    }

    /// When it was last written, in UTC.
    pub fn written_at(&self, session: &mut Session) -> Result<String, SqlError> {
        session.text(&format!(
            "SELECT written_at FROM {} WHERE id = 1",
            self.table
        ))
    }

    /// Commits a mark greater than all before and returns it. What was in the binary log before it can be read afterwards.
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

fn literal(state: &State) -> Result<String, RowError> {
    let text = serde_json::to_string(state).map_err(|_| RowError::Checkpoint {
        table: String::new(),
    })?;
    Ok(format!("_utf8mb4 {}", hex_literal(text.as_bytes())))
}
