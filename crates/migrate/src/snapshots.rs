//! Transactions whose snapshot is older than the rows of the new table.
//!
//! A transaction under REPEATABLE READ that began to read while rows were copied sees, of the new
//! table, what was copied before it began. If it reads the table for the first time after the
//! switch it would find a part of the rows and no error: a dump in one transaction would be short
//! of them. Servers refuse (1412) only snapshots that are older than the new table itself. So the
//! switch waits until all transactions that were there at the end of the copy have ended.

use std::thread;
use std::time::{Duration, Instant};

use onionskin_rowstream::session::Session;

use crate::cluster::catch_up;
use crate::engine::Engine;
use crate::error::{MigrateError, Result};

/// For how long a switch waits for them.
const PATIENCE: Duration = Duration::from_secs(600);

/// InnoDB makes its list anew for who asks only if nobody has read it for a tenth of a second: read
/// more often, it is the old one for ever.
const AS_OLD_AS_LISTS_ARE: Duration = Duration::from_millis(150);

/// Between rounds that have little to write, while a list grows old.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(50);

/// InnoDB's numbers of transactions have six bytes. What stands there for one that has not written
/// yet is longer, or nothing.
const LONGEST_NUMBER: u64 = (1 << 48) - 1;

/// MariaDB's list. MySQL's of the same name ends with error 3854 as long as any transaction runs a
/// statement with bytes that are no UTF-8.
const OF_INNODB: &str = "SELECT trx_mysql_thread_id, trx_started, trx_started, trx_id FROM information_schema.INNODB_TRX \
    WHERE trx_isolation_level IN ('REPEATABLE READ', 'SERIALIZABLE') AND trx_mysql_thread_id <> 0";

/// MySQL's other list, which does not hold statements. A transaction of two phases reads nothing
/// more once it is prepared; its session may stand there so long after its end.
const OF_PERFORMANCE_SCHEMA: &str = "SELECT t.PROCESSLIST_ID, CONCAT(e.THREAD_ID, '/', e.EVENT_ID), \
        NOW() - INTERVAL e.TIMER_WAIT DIV 1000000000000 SECOND, NULL \
    FROM performance_schema.events_transactions_current e JOIN performance_schema.threads t USING (THREAD_ID) \
    WHERE e.STATE = 'ACTIVE' AND e.AUTOCOMMIT = 'NO' AND e.ISOLATION_LEVEL IN ('REPEATABLE READ', 'SERIALIZABLE') \
        AND COALESCE(e.XA_STATE, '') NOT IN ('PREPARED', 'COMMITTED') AND t.PROCESSLIST_ID IS NOT NULL";

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
    /// The node of a cluster; empty for the one that the migration works at.
    node: String,
    /// Its session's number.
    session: String,
    /// What tells it from others of its session, but for those that began in the same second where
    /// the list is InnoDB's.
    mark: String,
    /// When it began, by the server's clock.
    since: String,
    /// InnoDB's number; a transaction has none before it writes.
    number: Option<u64>,
}

impl Transaction {
    /// Whether both may be the same, seen at two times.
    fn may_have_become(&self, later: &Self) -> bool {
        self.node == later.node
            && self.session == later.session
            && self.mark == later.mark
            && (self.number.is_none() || self.number == later.number)
    }
}

impl Snapshots {
    /// Those that have seen a part of what was written so far. Ours read what is committed and are
    /// none of them.
    pub fn now(engine: &mut Engine) -> Result<Self> {
        // without the privilege it is not known
        let kept = engine.control.texts(IS_KEPT).unwrap_or_default();
        let is_kept = matches!(&kept[..], [row] if row.first() == Some(&Some("1".into())));
        let list = match is_kept {
            true => OF_PERFORMANCE_SCHEMA,
            false => OF_INNODB,
        };
        engine.others.renew(&mut engine.control)?;
        if !is_kept || engine.others.is_cluster() {
            // The first read may give what somebody else has read a moment before.
            Self::of_all(engine, list)?;
            go_on(engine)?;
        }
        // What was written at once before this list was made is seen in part by none but those in
        // it.
        engine.is_torn = false;
        Self::of_all(engine, list)
    }

    /// Those of all nodes. The others have by then what was written here.
    fn of_all(engine: &mut Engine, list: &'static str) -> Result<Self> {
        let mut all = Self::of_list(&mut engine.control, "", list)?;
        for (node, session) in engine.others.sessions() {
            catch_up(session)?;
            all.extend(Self::of_list(session, node, OF_INNODB)?);
        }
        Ok(Self {
            list,
            transactions: all,
        })
    }

    fn of_list(session: &mut Session, node: &str, list: &str) -> Result<Vec<Transaction>> {
        let rows = session
            .texts(list)
            .map_err(MigrateError::sql("reading the list of transactions"))?;
        let cell = |row: &Vec<Option<String>>, at: usize| {
            row.get(at).cloned().flatten().unwrap_or_default()
        };
        let transaction = |row| Transaction {
            node: node.to_owned(),
            session: cell(row, 0),
            mark: cell(row, 1),
            since: cell(row, 2),
            number: cell(row, 3)
                .parse()
                .ok()
                .filter(|number| (1..=LONGEST_NUMBER).contains(number)),
        };
        Ok(rows.iter().map(transaction).collect())
    }

    /// Waits until none of them is left; changes are written meanwhile.
    pub fn wait(mut self, engine: &mut Engine) -> Result<()> {
        let begun = Instant::now();
        let mut is_said = false;
        loop {
            let now = Self::of_all(engine, self.list)?.transactions;
            self.transactions
                .retain(|one| now.iter().any(|other| one.may_have_become(other)));
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
            go_on(engine)?;
        }
    }
}

/// Writes changes until a list is worth reading again. Writers that are held back stay so, or
/// rounds would grow in which nothing else is done.
fn go_on(engine: &mut Engine) -> Result<()> {
    let until = Instant::now() + AS_OLD_AS_LISTS_ARE;
    let held = engine.brake.share();
    while Instant::now() < until {
        engine.round()?;
        engine.brake.hold(held);
        thread::sleep(BETWEEN_ROUNDS);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(session: &str, mark: &str, number: Option<u64>) -> Transaction {
        Transaction {
            node: String::new(),
            session: session.into(),
            mark: mark.into(),
            since: mark.into(),
            number,
        }
    }

    #[test]
    fn a_transaction_is_known_again_until_it_cannot_be_the_same() {
        let reader = seen("7", "12:00:01", None);
        let writer = seen("7", "12:00:01", Some(100));
        assert!(reader.may_have_become(&reader));
        assert!(reader.may_have_become(&writer), "it has begun to write");
        assert!(writer.may_have_become(&writer));
        assert!(
            !writer.may_have_become(&seen("7", "12:00:01", Some(101))),
            "another one of the same second"
        );
        assert!(
            !writer.may_have_become(&reader),
            "who has written does not become a reader"
        );
        assert!(!reader.may_have_become(&seen("7", "12:00:02", None)));
        assert!(!reader.may_have_become(&seen("8", "12:00:01", None)));
    }
}
