//! Transactions whose snapshot is older than the rows of the new table.
//!
//! A transaction under REPEATABLE READ that began to read while rows were copied sees, of the new table, what was copied before it began. If it
//! reads the table for the first time after the switch it would find a part of the rows and no error: a dump in one transaction would be
//! short of them. Servers refuse (1412) only snapshots that are older than the new table itself. So the switch waits until all transactions
//! that were there at the end of the copy have ended.

use std::thread;
use std::time::{Duration, Instant};

use onionskin_rowstream::session::Session;

use crate::engine::Engine;
use crate::error::{MigrateError, Result};

/// For how long a switch waits for them.
const PATIENCE: Duration = Duration::from_secs(600);

/// Session and beginning of transactions that keep a snapshot.
pub(crate) struct Snapshots(Vec<(String, String)>);

impl Snapshots {
    /// Those of now. Ours read what is committed and are none of them.
    pub fn now(session: &mut Session) -> Result<Self> {
        let rows = session
            .texts(
                "SELECT trx_mysql_thread_id, trx_started FROM information_schema.INNODB_TRX \
                 WHERE trx_isolation_level IN ('REPEATABLE READ', 'SERIALIZABLE') AND trx_mysql_thread_id <> 0",
            )
            .map_err(MigrateError::sql("reading the list of transactions"))?;
        let cell = |row: &Vec<Option<String>>, at: usize| {
            row.get(at).cloned().flatten().unwrap_or_default()
        };
        Ok(Self(
            rows.iter()
                .map(|row| (cell(row, 0), cell(row, 1)))
                .collect(),
        ))
    }

    /// Waits until none of them is left; changes are written meanwhile.
    pub fn wait(mut self, engine: &mut Engine) -> Result<()> {
        let begun = Instant::now();
        let mut is_said = false;
        loop {
            let now = Self::now(&mut engine.control)?;
            self.0.retain(|transaction| now.0.contains(transaction));
            let Some((session, since)) = self.0.first() else {
                return Ok(());
            };
            if begun.elapsed() > PATIENCE {
                return Err(MigrateError::OldSnapshot {
                    session: session.clone(),
                    since: since.clone(),
                });
            }
            if !is_said && begun.elapsed() > Duration::from_secs(1) {
                is_said = true;
                engine.progress.note(format!(
                    "the switch waits for transactions that began before all rows were copied, first of all session {session}'s of {since}"
                ));
            }
            engine.round()?;
            thread::sleep(Duration::from_millis(100));
        }
    }
}
