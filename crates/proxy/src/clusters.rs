//! What clusters do that single servers do not.
//!
//! A transaction of another node comes first: the server ends the session's own for it, and says so
//! with the next statement (1213). MySQL 9.7 does not say it with `SAVEPOINT`, which begins a new
//! transaction in silence: what the client had changed is lost, and its COMMIT succeeds. So the
//! proxy has no savepoint of its own where that may happen, in a group that all members write to.
//!
//! A definition has to be made once for all nodes: its columns get random ids.
//!
//! LOCK TABLES is of one node. Changes of another one wait for it there, and what the session does
//! under its lock waits for them: the cluster stands still.

use onionskin_plan::errors::NotUnderstood;
use onionskin_value::Family;

use crate::error::Outcome;
use crate::session::Session;

const ITS_MODE: &[u8] = b"SHOW GLOBAL VARIABLES LIKE 'group_replication_single_primary_mode'";
const ITS_NODES: &[u8] = b"SHOW SESSION VARIABLES WHERE Variable_name IN \
    ('wsrep_on', 'wsrep_osu_method', 'wsrep_provider')";

impl Session {
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
