//! What migrations are on their way, told by their checkpoints.

use onionskin_rowstream::checkpoint::{COMMENT, Checkpoint};
use onionskin_rowstream::session::{Login, Session};

use crate::error::{MigrateError, Result};

/// A migration that has begun and not ended; whether a process works on it is told by `written_at`.
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
}

/// All of them that the account can see, and those whose checkpoint cannot be read, with the reason.
pub fn status(login: &Login) -> Result<(Vec<Running>, Vec<String>)> {
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
        let checkpoint = Checkpoint::new(&database, &name);
        // One that a newer program has written is no reason to be silent about the others.
        let state = match checkpoint.read(&mut session) {
            Ok(Some(state)) => state,
            Ok(None) => continue,
            Err(error) => {
                unread.push(format!("{database}.{name}: {error}"));
                continue;
            }
        };
        let operation = match crate::operation_of(&state) {
            Ok(operation) => operation.shown(),
            Err(error) => {
                unread.push(format!("{database}.{name}: {error}"));
                continue;
            }
        };
        running.push(Running {
            table: name.strip_suffix("_onionskin").unwrap_or(&name).to_owned(),
            database,
            operation,
            phase: state.phase,
            rows: state.rows,
            estimate: state.estimate,
            changes: state.changes,
            position: state.position,
            written_at: checkpoint.written_at(&mut session)?,
        });
    }
    Ok((running, unread))
}
