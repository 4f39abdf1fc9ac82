//! What migrations are on their way, told by their checkpoints.

use std::sync::Arc;

use onionskin_keys::KeySet;
use onionskin_rowstream::checkpoint::{COMMENT, Checkpoint, Found, Untrusted};
use onionskin_rowstream::session::{Login, Session};

use crate::begun::Begun;
use crate::error::{MigrateError, Result};
use crate::locks::is_worked_on;
use crate::operation::Operation;

/// A migration that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The table's database.
    pub database: String,
    /// The table.
    pub table: String,
    /// What is done to it.
    pub operation: String,
    /// `prepare`, `copy`, `check` or `switch`.
    pub phase: String,
    /// Rows that were copied.
    pub rows: u64,
    /// How many there seemed to be.
    pub estimate: u64,
    /// Rows that were written again because they had changed.
    pub changes: u64,
    /// Up to where the binary log is written.
    pub position: String,
    /// When the checkpoint was last written, in UTC.
    pub written_at: String,
    /// Digits that tell it from other migrations of the table.
    pub id: String,
    /// When it began, in seconds since 1970; 0 if that is not known.
    pub began: u64,
    /// Whether the keys were there to check it with, if it was written with keys.
    pub is_checked: bool,
    /// Whether a process works on it now.
    pub is_worked_on: bool,
}

impl Running {
    /// Which one it is.
    pub fn begun(&self) -> Begun {
        Begun {
            id: self.id.clone(),
            operation: self.operation.clone(),
            began: self.began,
        }
    }
}

/// All of them that the account can see, and those whose checkpoint cannot be read or trusted, with
/// the reason. What was written with keys, and is read without, is told as it stands.
pub fn status(login: &Login, keys: Option<&Arc<KeySet>>) -> Result<(Vec<Running>, Vec<String>)> {
    let mut session =
        Session::connect(login).map_err(MigrateError::sql("connecting to the server"))?;
    let found = session.texts(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_COMMENT = '{COMMENT}' \
         ORDER BY TABLE_SCHEMA, TABLE_NAME"
    ))?;
    let (mut running, mut unread) = (Vec::new(), Vec::new());
    for row in found {
        let cell = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        let (database, name) = (cell(0), cell(1));
        let checkpoint = Checkpoint::new(&database, &name, keys);
        // One that a newer program has written is no reason to be silent about the others.
        let (state, is_checked) = match checkpoint.peek(&mut session) {
            Ok(None) => continue,
            Ok(Some(Found {
                state: Some(state),
                untrusted: Some(Untrusted::NoKeys),
            })) => (state, false),
            Ok(Some(_)) => match checkpoint.read(&mut session) {
                Ok(Some(state)) => (state, true),
                Ok(None) => continue,
                Err(error) => {
                    unread.push(format!("{database}.{name}: {error}"));
                    continue;
                }
            },
            Err(error) => {
                unread.push(format!("{database}.{name}: {error}"));
                continue;
            }
        };
        let operation = match Operation::of(&state) {
            Ok(operation) => operation.shown(),
            Err(error) => {
                unread.push(format!("{database}.{name}: {error}"));
                continue;
            }
        };
        let table = name.strip_suffix("_onionskin").unwrap_or(&name).to_owned();
        running.push(Running {
            is_worked_on: is_worked_on(&mut session, &database, &table)?,
            table,
            database,
            operation,
            phase: state.phase,
            rows: state.rows,
            estimate: state.estimate,
            changes: state.changes,
            position: state.position,
            written_at: checkpoint.written_at(&mut session)?,
            id: state.id,
            began: state.began,
            is_checked,
        });
    }
    Ok((running, unread))
}
