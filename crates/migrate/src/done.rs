//! What a migration has done.

use onionskin_rowstream::checkpoint::State;
use onionskin_rowstream::session::Session;
use onionskin_schema::Pins;

use crate::begun::Begun;
use crate::error::Result;
use crate::operation::Operation;
use crate::stragglers::Stragglers;
use crate::switch::Switched;

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows that were copied.
    pub rows: u64,
    /// Rows that were written again because they had changed.
    pub changes: u64,
    /// Rows that the comparison found to be wrong, and that were mended.
    pub repaired: u64,
    /// `None` if everything is ready and the switch was postponed.
    pub switched: Option<Switched>,
    /// What was written to the old table between the lock and the rename. There should be nothing.
    pub stragglers: Stragglers,
    /// Where the old rows are; `None` if they were dropped, or are still in place.
    pub old: Option<String>,
    /// The old table was kept up to date, and another process has asked for it.
    pub handed_over: bool,
    /// Files of the binary log that hold rows of the old table in plaintext, if columns became
    /// protected.
    pub plaintext_logs: Vec<String>,
    /// Which migration it was.
    pub begun: Option<Begun>,
    /// The table that has the name now, as the migration knows it and whatever the server shows;
    /// `None` if it is the one before, or if it cannot be told whether it came from the pinned one.
    pub table: Option<Pins>,
}

impl Done {
    /// What the checkpoint tells of it.
    pub(crate) fn of(state: &State, switched: Option<Switched>) -> Self {
        Self {
            rows: state.rows,
            changes: state.changes,
            repaired: state.repaired,
            stragglers: switched
                .as_ref()
                .map(|switched| switched.stragglers.clone())
                .unwrap_or_default(),
            switched,
            old: None,
            handed_over: false,
            plaintext_logs: Vec::new(),
            begun: Begun::of(state).ok(),
            table: None,
        }
    }
}

/// The files of the binary log, which hold rows of the old table in plaintext where columns have
/// become protected.
pub(crate) fn plaintext_logs(control: &mut Session, state: &State) -> Result<Vec<String>> {
    let Operation::Encrypt(_) = Operation::of(state)? else {
        return Ok(Vec::new());
    };
    let logs = control.named("SHOW BINARY LOGS").unwrap_or_default();
    let names = logs.into_iter().filter_map(|row| row.into_iter().next()?.1);
    Ok(names.collect())
}
