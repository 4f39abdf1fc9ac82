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

/// All of them that the account can see.
pub fn status(login: &Login) -> Result<Vec<Running>> {
    let mut session =
        Session::connect(login).map_err(MigrateError::sql("connecting to the server"))?;
    let found = session.texts(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_COMMENT = '{COMMENT}' \
         ORDER BY TABLE_SCHEMA, TABLE_NAME"
    ))?;
    let mut running = Vec::new();
    for row in found {
        let cell = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        let (database, name) = (cell(0), cell(1));
        let checkpoint = Checkpoint::new(&database, &name);
        let Some(state) = checkpoint.read(&mut session)? else {
            continue;
        };
        running.push(Running {
            table: name.trim_end_matches("_onionskin").to_owned(),
            database,
            operation: crate::operation_of(&state)?.shown(),
            phase: state.phase,
            rows: state.rows,
            estimate: state.estimate,
            changes: state.changes,
            position: state.position,
            written_at: checkpoint.written_at(&mut session)?,
        });
    }
    Ok(running)
}
