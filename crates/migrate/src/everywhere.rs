//! The new table takes the old one's place on all nodes of a Galera cluster.
//!
//! ```text
//!    RENAME TABLE t TO old      at every node at the same place of the order: what comes first is
//!                               in t, what comes later fails (1146, or 1213 for open transactions)
//!    the log of one node is read up to this rename, and what is left is written to the new table
//!    RENAME TABLE new TO t      the same
//! ```
//!
//! LOCK TABLES is of one node. A definition is not: the cluster carries it out between the same
//! two transactions everywhere. So nothing can be written to the old table behind the first rename,
//! whoever was about to, and all that was written before stands in the log before it.
//!
//! Between the two renames there is no table of the name, for [`LONGEST_HOLD`] at most: what is not
//! done by then is tried again after the old table has got its name back. The same happens after
//! any error. Where no connection can be had for that, or the process is killed, `--resume` and
//! `--abort` do it, at whichever node: the names of the tables tell.
//!
//! | there are | meaning |
//! |---|---|
//! | t, new | nothing was renamed |
//! | old, new | between the renames |
//! | t, old | done |

use std::thread;
use std::time::{Duration, Instant};

use onionskin_rowstream::RowError;
use onionskin_rowstream::apply::apply;
use onionskin_rowstream::session::{Login, Session, SqlError};
use onionskin_schema::identifier;

use crate::conflict::conflict;
use crate::engine::Engine;
use crate::error::{MigrateError, Result};
use crate::facts::{definition, stable};
use crate::preflight::Names;
use crate::statement::mark;
use crate::switch::{Attempt, LONGEST_HOLD, MAX_UNDER_LOCK, Switch, exists, is_sentry, must_end};

/// How long it is tried to give the old table its name back.
const PERSISTENCE: Duration = Duration::from_secs(60);
/// How long a definition waits for its locks. One that gives up at this node and not at the others
/// would end the node's part in the cluster. MariaDB 10.11 does not, whatever is set.
const NO_LIMIT: u32 = 31_536_000;

/// Where the tables are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// Nothing was renamed.
    Before,
    /// There is no table of the name.
    Between,
    /// There is a table of the name though the old one was renamed: somebody has made it.
    Taken,
    /// The new table has the name.
    After,
}

impl Standing {
    fn of(session: &mut Session, table: &str, names: &Names) -> Result<Self> {
        let is_away = exists(session, &names.old)? && !is_sentry(session, names)?;
        let is_there = exists(session, table)?;
        Ok(match (is_away, exists(session, &names.new)?) {
            (false, _) => Standing::Before,
            (true, true) if is_there => Standing::Taken,
            (true, true) => Standing::Between,
            (true, false) => Standing::After,
        })
    }
}

/// Gives the old table its name back if it has lost it between the two renames. Returns whether it
/// had. `id` is the migration's, by which who follows the log knows the statement.
pub(crate) fn put_back(
    session: &mut Session,
    id: &str,
    table: &str,
    names: &Names,
) -> Result<bool> {
    match Standing::of(session, table, names)? {
        Standing::Before | Standing::After => Ok(false),
        Standing::Taken => Err(taken(table, names)),
        Standing::Between => {
            let back = format!("{}{}", mark(id), rename(&names.old, table));
            session
                .run(&format!("SET SESSION lock_wait_timeout = {NO_LIMIT}"))
                .and_then(|_| session.run(&back))
                .map_err(MigrateError::sql("giving the table its name back"))?;
            Ok(true)
        }
    }
}

fn taken(table: &str, names: &Names) -> MigrateError {
    MigrateError::Request(format!(
        "somebody has made a table {table} while the old one was renamed to {}, which has all rows: \
         rename or drop what was made, then --resume or --abort",
        names.old
    ))
}

fn rename(from: &str, to: &str) -> String {
    format!("RENAME TABLE {} TO {}", identifier(from), identifier(to))
}

impl Switch<'_> {
    /// Tries it once.
    pub(crate) fn attempt_everywhere(&self, engine: &mut Engine) -> Result<Attempt> {
        let table = engine.route.source.clone();
        let mut renamer = self.session(engine)?;
        renamer.run(&format!("SET SESSION lock_wait_timeout = {NO_LIMIT}"))?;
        // Earlier attempts, and those of a killed process, stand in the log as well.
        let away = format!(
            "{}/* {:016x} */ {}",
            mark(&engine.state.id),
            rand::random::<u64>(),
            rename(&table, &self.names.old)
        );
        engine.renamed = false;
        engine.awaited = Some(away.clone());
        let begun = Instant::now();
        let renamed = renamer.run(&away);
        let is_lasting = matches!(&renamed, Err(error) if error.is_lasting());
        let done = match renamed {
            Ok(_) => self.between(engine, &mut renamer, begun),
            Err(error) if error.code == 0 => Err(error.into()),
            Err(error) => Ok(Some(told("the table cannot be renamed", &error))),
        };
        if let Ok(None) = done {
            return Ok(Attempt::Done(begun.elapsed()));
        }
        // Whatever has failed, and wherever it did.
        let id = renamer.id();
        drop(renamer);
        match (self.recover_name(&engine.state.id, &table, id)?, done) {
            (Standing::After, _) => Ok(Attempt::Done(begun.elapsed())),
            (Standing::Taken, _) => Err(taken(&table, self.names)),
            (_, Ok(reason)) if is_lasting => Ok(Attempt::Never(reason.unwrap_or_default())),
            (_, Ok(reason)) => Ok(Attempt::Again(reason.unwrap_or_default())),
            (_, Err(error)) => Err(error),
        }
    }

    /// Between the two renames, and the second one. Why it has to be given up, if it must.
    fn between(
        &self,
        engine: &mut Engine,
        session: &mut Session,
        begun: Instant,
    ) -> Result<Option<String>> {
        let deadline = begun + LONGEST_HOLD;
        while !engine.renamed {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || engine.pending.len() > MAX_UNDER_LOCK {
                return Ok(Some("too much is left to write".into()));
            }
            match engine.absorb(left) {
                Ok(()) => {}
                Err(MigrateError::Silent(_)) => {
                    return Ok(Some("the binary log is slow".into()));
                }
                Err(error) => return Err(error),
            }
        }
        let (database, old) = (engine.route.database.clone(), &self.names.old);
        let now = definition(session, &database, old)?;
        let now = now.replacen(&identifier(old), &identifier(&engine.route.source), 1);
        if stable(&now) != stable(&engine.state.definition) {
            return Err(MigrateError::Changed(
                "its definition is another one".into(),
            ));
        }
        for (which, table) in [old, &self.names.new].into_iter().enumerate() {
            self.must_be(session, &database, table, which)?;
        }
        let mut route = engine.route.clone();
        route.source.clone_from(old);
        let work = engine.pending.take(&route.key, None);
        let rows = (work.deletions.len() + work.replacements.len()) as u64;
        match apply(&route, std::slice::from_mut(session), &work, MAX_UNDER_LOCK) {
            Ok(_) => engine.state.changes += rows,
            Err(RowError::Sql(error)) if error.waited_in_vain() || error.is_duplicate() => {
                engine.pending.give_back(work);
                return Ok(Some(told("the last changes could not be written", &error)));
            }
            Err(error) => return Err(conflict(error)),
        }
        self.keep_numbers(old, session)?;
        if Instant::now() > deadline {
            let time = begun.elapsed().as_secs_f64();
            return Ok(Some(format!("the last changes took {time:.1} s")));
        }
        match session.run(&rename(&self.names.new, &engine.route.source)) {
            Ok(_) => Ok(None),
            Err(error) if error.code == 0 => Err(error.into()),
            Err(error) => Ok(Some(told("the new table cannot be renamed", &error))),
        }
    }

    /// After a failure: waits for the end of the session that has renamed, and gives the old table
    /// its name back if it lacks it.
    fn recover_name(&self, migration: &str, table: &str, id: u32) -> Result<Standing> {
        let begun = Instant::now();
        loop {
            let reason = match self.try_to_recover(migration, table, id) {
                Ok(standing) => return Ok(standing),
                Err(error) => error.to_string(),
            };
            if begun.elapsed() > PERSISTENCE {
                return Err(MigrateError::Nameless {
                    table: table.to_owned(),
                    old: self.names.old.clone(),
                    reason,
                });
            }
            thread::sleep(Duration::from_millis(500));
        }
    }

    fn try_to_recover(&self, migration: &str, table: &str, id: u32) -> Result<Standing> {
        let mut session = self.connect()?;
        must_end(&mut session, id)?;
        if Standing::of(&mut session, table, self.names)? == Standing::Taken {
            return Ok(Standing::Taken);
        }
        put_back(&mut session, migration, table, self.names)?;
        match Standing::of(&mut session, table, self.names)? {
            Standing::Between => Err(MigrateError::Request(format!("{table} is missing"))),
            standing => Ok(standing),
        }
    }

    fn connect(&self) -> Result<Session> {
        let login: &Login = self.login;
        let mut session = Session::connect(login)?;
        session.run(&format!("USE {}", identifier(self.database)))?;
        Ok(session)
    }
}

fn told(what: &str, error: &SqlError) -> String {
    format!("{what}: {}", error.message)
}
