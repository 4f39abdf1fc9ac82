//! Transactions of two phases (XA) that wait for their second phase when a migration begins.
//!
//! Their rows are in the binary log where they were prepared, before the place from which the
//! migration reads it. `XA COMMIT` has no rows, and names no table: what it makes visible would be
//! neither copied nor read. So none may be prepared at the beginning. One that is prepared later
//! stands in the log with its rows, and ends the migration if it changes the table.

use std::thread;
use std::time::{Duration, Instant};

use onionskin_rowstream::session::Session;

use crate::error::{MigrateError, Result};

/// For how long a migration waits for those that are prepared when it notes its place in the log.
const PATIENCE: Duration = Duration::from_secs(10);

/// An error if any transaction is prepared on the server.
pub(crate) fn must_be_none(session: &mut Session) -> Result<()> {
    match prepared(session)?.len() {
        0 => Ok(()),
        count => Err(in_the_way(count)),
    }
}

/// Waits until all of those that are prepared now have ended.
pub(crate) fn wait(session: &mut Session) -> Result<()> {
    let begun = Instant::now();
    let mut left = prepared(session)?;
    while !left.is_empty() {
        if begun.elapsed() > PATIENCE {
            return Err(in_the_way(left.len()));
        }
        thread::sleep(Duration::from_millis(50));
        let now = prepared(session)?;
        left.retain(|one| now.contains(one));
    }
    Ok(())
}

type Prepared = Vec<Option<Vec<u8>>>;

fn prepared(session: &mut Session) -> Result<Vec<Prepared>> {
    session
        .rows("XA RECOVER")
        .map_err(|error| MigrateError::Refused {
            table: "the server's transactions".into(),
            reason: format!(
                "whether any of two phases (XA) is prepared cannot be told ({error}): \
                 on MySQL, GRANT XA_RECOVER_ADMIN ON *.* to this account"
            ),
        })
}

fn in_the_way(count: usize) -> MigrateError {
    MigrateError::Refused {
        table: "the server's transactions".into(),
        reason: format!(
            "{count} of two phases (XA) prepared before this began: what they change would be missed. \
             XA RECOVER lists them; end them (XA COMMIT, XA ROLLBACK), and begin again"
        ),
    }
}
