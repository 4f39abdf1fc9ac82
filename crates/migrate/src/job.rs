//! What a migration is asked to do, and the tables and the checkpoint that it does it to.

use std::sync::Arc;

use onionskin_keys::KeySet;
use onionskin_rowstream::checkpoint::{Checkpoint, Imprint};
use onionskin_rowstream::session::{Login, Session};
use onionskin_schema::{PinnedTable, identifier};

use crate::cluster;
use crate::consent::Consent;
use crate::definition::Keys;
use crate::error::{MigrateError, Result};
use crate::facts::Facts;
use crate::imprint::{self, Known};
use crate::preflight::{self, Names};
use crate::throttle::Limits;

/// A table and how it is treated.
#[derive(Clone)]
pub struct Job {
    /// The server, and an account that may do all of this.
    pub login: Login,
    /// The nodes of its Galera cluster, itself or not among them; none where the server knows their
    /// addresses.
    pub nodes: Vec<Login>,
    /// The table's database.
    pub database: String,
    /// The table.
    pub table: String,
    /// Needed for protected columns.
    pub keys: Option<Keys>,
    /// How many rows are copied and written at once.
    pub threads: usize,
    /// When to wait.
    pub limits: Limits,
    /// Whether to switch at the end, or to stop before it.
    pub switch: bool,
    /// Whether the old table is kept up to date after the switch, until [`Job::end_reverse`] or
    /// [`Job::roll_back`].
    pub reverse: bool,
    /// Whether the old table is dropped after the switch.
    pub drop_old: bool,
    /// What the server may learn more of; the beginning of an operation says that itself.
    pub consent: Consent,
    /// What is pinned under the table's name, if anything is: no other table is touched.
    pub pinned: Option<Arc<PinnedTable>>,
    /// The only migration that [`Job::resume`] may go on with.
    pub id: Option<String>,
}

impl Job {
    /// The job with its names as the server writes them, and a session. All its other sessions must
    /// be with the same server.
    pub(crate) fn spelled(&self) -> Result<(Self, Session)> {
        let mut control = self.control()?;
        let [database, table] =
            preflight::server_spelling(&mut control, [&self.database, &self.table])?;
        let mut job = Self {
            database,
            table,
            ..self.clone()
        };
        job.login.identity = Some(control.identity()?);
        Ok((job, control))
    }

    pub(crate) fn control(&self) -> Result<Session> {
        let mut control =
            Session::connect(&self.login).map_err(MigrateError::sql("connecting to the server"))?;
        control
            .run(&format!("USE {}", identifier(&self.database)))
            .map_err(MigrateError::sql("opening the database"))?;
        cluster::catch_up(&mut control)?;
        Ok(control)
    }

    pub(crate) fn checkpoint(&self, names: &Names) -> Checkpoint {
        let keys = self.keys.as_ref().map(|keys| &keys.set);
        Checkpoint::new(&self.database, &names.checkpoint, keys)
    }

    pub(crate) fn key_set(&self) -> Option<&KeySet> {
        self.keys.as_ref().map(|keys| keys.set.as_ref())
    }

    pub(crate) fn facts(&self, session: &mut Session, table: &str) -> Result<Facts> {
        Facts::read(session, &self.database, table, self.key_set())?.ok_or_else(|| {
            MigrateError::Request(format!("there is no table {}.{table}", self.database))
        })
    }

    /// A table of this migration, by the name that it has now.
    pub(crate) fn known(
        &self,
        session: &mut Session,
        table: &str,
        imprint: &Imprint,
    ) -> Result<Known> {
        Known::noted(self.facts(session, table)?, imprint)
    }

    /// An error if a table is not the one that was noted.
    pub(crate) fn must_be_unchanged(
        &self,
        session: &mut Session,
        table: &str,
        imprint: &Imprint,
    ) -> Result<()> {
        let now = imprint::read(session, &self.database, table, self.key_set())?;
        imprint::must_be(table, &now.unwrap_or_default(), imprint)
    }
}
