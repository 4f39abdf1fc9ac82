//! What clusters do that single servers do not.
//!
//! A transaction of another node comes first: the server ends the session's own for it, and says so
//! with the next statement (1213). MySQL 9.7 does not say it with `SAVEPOINT`, which begins a new
//! transaction in silence: what the client had changed is lost, and its COMMIT succeeds. So the
//! proxy has no savepoint of its own where that may happen, in a group that all members write to.
//!
//! A definition has to be made once for all nodes: its columns get random ids.
//!
//! A migration exchanges tables by two renames there, and between them there is none of the name.
//! Statements that meet that moment wait for its end.
//!
//! LOCK TABLES is of one node. Changes of another one wait for it there, and what the session does
//! under its lock waits for them: the cluster stands still.

use std::thread;
use std::time::{Duration, Instant};

use onionskin_plan::errors::NotUnderstood;
use onionskin_value::Family;

use crate::error::{Failure, Outcome};
use crate::server_errors::NO_SUCH_TABLE;
use crate::session::Session;

const ITS_MODE: &[u8] = b"SHOW GLOBAL VARIABLES LIKE 'group_replication_single_primary_mode'";
const ITS_NODES: &[u8] = b"SHOW SESSION VARIABLES WHERE Variable_name IN \
    ('wsrep_on', 'wsrep_osu_method', 'wsrep_provider')";
/// For how long a table is waited for that is being exchanged: a migration gives the old one its
/// name back after three seconds.
const EXCHANGED_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked for.
const EVERY: Duration = Duration::from_millis(10);
/// What the names of a migration's tables end with: the one that comes, and the one that goes.
const COMES: &str = "_onionskin_new";
const GOES: &str = "_onionskin_old";

impl Session {
    /// Whether a table was missing only because a migration was exchanging it on all nodes. It is
    /// there again then.
    pub(crate) fn outlasts_exchange(&mut self, failure: &Failure) -> Outcome<bool> {
        let Failure::Server { code, message, .. } = failure else {
            return Ok(false);
        };
        if self.state.family != Family::MariaDb || *code != NO_SUCH_TABLE {
            return Ok(false);
        }
        let Some((database, table)) = missing(message) else {
            return Ok(false);
        };
        let question = format!(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME IN ({}, {}, {})",
            literal(database),
            literal(table),
            literal(&format!("{table}{COMES}")),
            literal(&format!("{table}{GOES}")),
        );
        let begun = Instant::now();
        loop {
            let rows = self.server.rows(question.as_bytes())?;
            let has = |end: &str| {
                let name = [table, end].concat();
                let mut names = rows.iter().filter_map(|row| row.first()?.as_deref());
                names.any(|found| found == name.as_bytes())
            };
            if has("") {
                return Ok(true);
            }
            if !has(COMES) || !has(GOES) || begun.elapsed() > EXCHANGED_WITHIN {
                return Ok(false);
            }
            thread::sleep(EVERY);
        }
    }

    /// Whether a savepoint may hide that the transaction has ended. Asked once in a session.
    pub(crate) fn savepoints_hide(&mut self) -> Outcome<bool> {
        if self.state.family != Family::MySql {
            return Ok(false);
        }
        if let Some(known) = self.savepoints_hide {
            return Ok(known);
        }
        let rows = self.server.rows(ITS_MODE)?;
        let value = rows.first().and_then(|row| row.get(1)?.as_deref());
        let hide = value.is_some_and(|value| value.eq_ignore_ascii_case(b"OFF"));
        self.savepoints_hide = Some(hide);
        Ok(hide)
    }

    /// Refuses a definition that a Galera cluster would make on this node alone: on each node its
    /// columns would have another id, and no node could read what another one wrote.
    pub(crate) fn must_reach_all_nodes(&mut self) -> Outcome<()> {
        self.is_galera().map(|_| ())
    }

    /// Whether other nodes write to the tables, too, so that LOCK TABLES keeps nobody away.
    pub(crate) fn others_write(&mut self) -> Outcome<bool> {
        Ok(self.is_galera()? || self.savepoints_hide()?)
    }

    /// Whether the server is a node of a Galera cluster, and makes definitions on all nodes.
    fn is_galera(&mut self) -> Outcome<bool> {
        if self.state.family != Family::MariaDb {
            return Ok(false);
        }
        let rows = self.server.rows(ITS_NODES)?;
        let value = |name: &[u8]| {
            let is_it = |row: &&Vec<Option<Vec<u8>>>| {
                let known = row.first().and_then(Option::as_deref);
                known.is_some_and(|known| known.eq_ignore_ascii_case(name))
            };
            let row = rows.iter().find(is_it);
            let text = row.and_then(|row| row.get(1)?.as_deref());
            String::from_utf8_lossy(text.unwrap_or_default()).to_ascii_lowercase()
        };
        if ["", "none"].contains(&&*value(b"wsrep_provider")) {
            return Ok(false);
        }
        for (name, elsewhere) in [("wsrep_osu_method", "rsu"), ("wsrep_on", "off")] {
            if value(name.as_bytes()) == elsewhere {
                return Err(NotUnderstood::UnusualVariable(name).into());
            }
        }
        Ok(true)
    }
}

/// The database and the table of `Table 'app.t' doesn't exist`, where their letters are ASCII.
/// Tables with a dot in their names are not migrated.
fn missing(message: &[u8]) -> Option<(&str, &str)> {
    let message = std::str::from_utf8(message).ok()?;
    let name = message.split('\'').nth(1).filter(|name| name.is_ascii())?;
    let (database, table) = name.split_once('.')?;
    (!table.contains('.')).then_some((database, table))
}

/// A name as a constant of the server's catalogue.
fn literal(name: &str) -> String {
    let digits: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("CONVERT(x'{digits}' USING utf8mb3)")
}

#[cfg(test)]
mod tests {
    use super::missing;

    #[test]
    fn missing_tables_are_read_from_the_error() {
        assert_eq!(missing(b"Table 'app.t' doesn't exist"), Some(("app", "t")));
        assert_eq!(missing(b"Table 'app.a.b' doesn't exist"), None);
        assert_eq!(missing(b"Unknown table"), None);
    }
}
