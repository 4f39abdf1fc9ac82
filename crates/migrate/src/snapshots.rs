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

/// InnoDB makes its list anew for who asks when it is older than a tenth of a second, and was not read meanwhile.
const AS_OLD_AS_LISTS_ARE: Duration = Duration::from_millis(150);

/// MariaDB's list. MySQL's of the same name ends with error 3854 as long as any transaction runs a statement with bytes that are no UTF-8.
const OF_INNODB: &str = "SELECT trx_mysql_thread_id, trx_started, trx_started FROM information_schema.INNODB_TRX \
    WHERE trx_isolation_level IN ('REPEATABLE READ', 'SERIALIZABLE') AND trx_mysql_thread_id <> 0";

/// MySQL's other list, which does not hold statements.
const OF_PERFORMANCE_SCHEMA: &str = "SELECT t.PROCESSLIST_ID, CONCAT(e.THREAD_ID, '/', e.EVENT_ID), \
        NOW() - INTERVAL e.TIMER_WAIT DIV 1000000000000 SECOND \
    FROM performance_schema.events_transactions_current e JOIN performance_schema.threads t USING (THREAD_ID) \
    WHERE e.STATE = 'ACTIVE' AND e.AUTOCOMMIT = 'NO' AND e.ISOLATION_LEVEL IN ('REPEATABLE READ', 'SERIALIZABLE') \
        AND t.PROCESSLIST_ID IS NOT NULL";

/// Whether that list is kept, for all sessions.
const IS_KEPT: &str = "SELECT (SELECT COUNT(*) FROM performance_schema.setup_consumers WHERE ENABLED = 'YES' \
            AND NAME IN ('global_instrumentation', 'thread_instrumentation', 'events_transactions_current')) = 3 \
        AND (SELECT COUNT(*) FROM performance_schema.setup_instruments WHERE NAME = 'transaction' AND ENABLED = 'YES') = 1 \
        AND NOT EXISTS (SELECT 1 FROM performance_schema.threads WHERE TYPE = 'FOREGROUND' AND INSTRUMENTED = 'NO')";

/// Transactions that keep a snapshot.
pub(crate) struct Snapshots {
    /// The list they are from.
    list: &'static str,
    transactions: Vec<Transaction>,
}

/// One of them.
struct Transaction {
    /// Its session's number.
    session: String,
    /// What tells it from others of its session.
    mark: String,
    /// When it began, by the server's clock.
    since: String,
}

impl Snapshots {
    /// Those of now. Ours read what is committed and are none of them.
    pub fn now(session: &mut Session) -> Result<Self> {
        // without the privilege it is not known
        let kept = session.texts(IS_KEPT).unwrap_or_default();
        let is_kept = matches!(&kept[..], [row] if row.first() == Some(&Some("1".into())));
        if is_kept {
            return Self::of_list(session, OF_PERFORMANCE_SCHEMA);
        }
        // The first read may give what somebody else has read a moment before.
        Self::of_list(session, OF_INNODB)?;
        thread::sleep(AS_OLD_AS_LISTS_ARE);
        Self::of_list(session, OF_INNODB)
    }

    fn of_list(session: &mut Session, list: &'static str) -> Result<Self> {
        let rows = session
            .texts(list)
            .map_err(MigrateError::sql("reading the list of transactions"))?;
        let cell = |row: &Vec<Option<String>>, at: usize| {
            row.get(at).cloned().flatten().unwrap_or_default()
        };
        let transaction = |row| Transaction {
            session: cell(row, 0),
            mark: cell(row, 1),
            since: cell(row, 2),
        };
        Ok(Self {
            list,
            transactions: rows.iter().map(transaction).collect(),
        })
    }

    /// Waits until none of them is left; changes are written meanwhile.
    pub fn wait(mut self, engine: &mut Engine) -> Result<()> {
        let begun = Instant::now();
        let mut is_said = false;
        loop {
            let now = Self::of_list(&mut engine.control, self.list)?.transactions;
            self.transactions.retain(|one| {
                now.iter()
                    .any(|other| other.session == one.session && other.mark == one.mark)
            });
            let Some(Transaction { session, since, .. }) = self.transactions.first() else {
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
