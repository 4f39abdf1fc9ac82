//! Changes that were written to the old table between the lock and the rename.
//!
//! MySQL has none: the session that holds the lock renames. On MariaDB, a rename that waits for the
//! lock is next in line, unless the server is told to let writers by (`max_write_lock_count`, which
//! may be lowered while a migration runs). So the log is read past the rename. What is found there
//! is written to the table that has taken the old one's place. The checkpoint notes under the lock
//! from which place in the log on changes are stragglers, so that a process that goes on after a
//! kill finds them, too.
//!
//! By then the application has gone on with the new table. A row that was written there since is
//! newer than a straggler with the same key, and stays. The keys of such rows are told, and the old
//! table is kept, whatever was asked for. To be sure which rows these are, the log is read once
//! more, from the rename to a mark. The new table is locked meanwhile, and the stragglers are
//! written under that lock.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use onionskin_rowstream::apply::{ONE_TRANSACTION, apply};
use onionskin_rowstream::checkpoint::{Checkpoint, State};
use onionskin_rowstream::feed::{Delivery, Event, Feed, FeedOptions};
use onionskin_rowstream::key::{Key, KeyDefinition};
use onionskin_rowstream::pending::Pending;
use onionskin_rowstream::route::Route;
use onionskin_rowstream::session::{Login, Session};
use onionskin_schema::{TableName, identifier};
use onionskin_value::Family;

use crate::conflict::explained;
use crate::definition;
use crate::engine::is_before;
use crate::error::{MigrateError, Result};
use crate::facts::Facts;
use crate::imprint::made;
use crate::job::Job;
use crate::locks::free_number;
use crate::phase::{REVERSE, ROLL_BACK, is_reverse};
use crate::preflight::{Names, is_led_to, log_end, server_id};
use crate::setup::READING_PATIENCE;
use crate::statement::{Judged, Tables, judge, mark};
use crate::switch::exists;
use crate::triggers::Triggers;

/// How long nothing may come from the log before it is given up.
const SILENCE: Duration = Duration::from_secs(90);
/// How often the new table's lock is asked for, for two seconds each.
const ATTEMPTS: u32 = 20;

/// Rows that were written to the old table between the lock and the rename.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stragglers {
    /// How many were written again to the new table.
    pub written: u64,
    /// The keys of those that were not, because the new table's rows are newer.
    pub left: Vec<String>,
}

/// Two tables that have changed their names.
pub(crate) struct Aftermath<'a> {
    pub login: &'a Login,
    /// From the table that was replaced, by its name of now, to the one in its place.
    pub route: Route,
    /// The names that the tables had before; `old` is what the replaced one is called now.
    pub names: &'a Names,
    /// Of the migration.
    pub id: &'a str,
    pub checkpoint: &'a Checkpoint,
    /// For a session of its own.
    pub register: &'a dyn Fn(&mut Session) -> Result<()>,
    /// Which what is written again has run already, on the old table.
    pub triggers: Triggers<'a>,
}

impl Aftermath<'_> {
    /// The name that both tables have had.
    fn table(&self) -> &str {
        &self.route.target
    }

    fn feed(&self, id: u32, key: &KeyDefinition, columns_of: &str, from: &str) -> Result<Feed> {
        let name = |table: &str| TableName::new(&self.route.database, table);
        let options = FeedOptions {
            login: self.login.clone(),
            server_id: server_id(id),
            table: name(self.table()),
            columns_of: name(columns_of),
            checkpoint: name(&self.checkpoint.name),
            key: key.clone(),
            patience: READING_PATIENCE,
        };
        Ok(Feed::start(options, from)?)
    }

    /// An error of a table that is in place already.
    fn beyond(&self, what: &str) -> MigrateError {
        MigrateError::Request(format!(
            "{0} is the new table, but {what}: compare it with {1}, which holds the old rows; --abort ends this and leaves both tables as they are",
            self.table(),
            self.names.old
        ))
    }

    /// What was written to the replaced table behind `from`, and where the log goes on behind the
    /// rename.
    pub fn read(&self, control: &mut Session, from: &str) -> Result<(Pending, String)> {
        let end = log_end(control)?;
        let feed = self.feed(control.id(), &self.route.key, &self.route.source, from)?;
        let mut pending = Pending::default();
        loop {
            let Delivery {
                events, position, ..
            } = next(&feed)?;
            for event in events {
                match event {
                    Event::Changes(changes) => {
                        changes
                            .into_iter()
                            .for_each(|change| pending.absorb(change));
                    }
                    Event::Statement { database, sql } => {
                        if self.is_rename(control, &database, &sql)? {
                            return Ok((pending, position));
                        }
                    }
                    Event::Mark(_) | Event::Mended(_) => {}
                }
            }
            if !is_before(&position, &end) {
                return Err(self.beyond("the binary log does not tell of its rename"));
            }
        }
    }

    /// Whether a statement is the one that renamed the tables. It is an error if the statement has
    /// changed the table in another way.
    fn is_rename(&self, control: &mut Session, database: &str, sql: &str) -> Result<bool> {
        let tables = Tables {
            database: &self.route.database,
            table: self.table(),
            new: &self.names.new,
            mark: &mark(self.id),
        };
        let changed = |verb: &str| {
            Err(self.beyond(&format!(
                "another statement ({verb}) may have changed rows since it was locked"
            )))
        };
        match judge(sql, database, &tables) {
            Judged::Renamed => Ok(true),
            Judged::Foreign | Judged::Triggers(_) => Ok(false),
            Judged::Unnamed(verb) => match is_led_to(control, self.table())? {
                true => changed(&verb),
                false => Ok(false),
            },
            Judged::Changes(verb) => changed(&verb),
        }
    }

    /// Writes to the new table what was written to the old one, except for rows that were written
    /// to the new one since. `behind` is the place behind the rename.
    pub fn write(
        &self,
        control: &mut Session,
        mut pending: Pending,
        behind: &str,
    ) -> Result<Stragglers> {
        if pending.is_empty() {
            return Ok(Stragglers::default());
        }
        let mut session = Session::connect(self.login)?;
        (self.register)(&mut session)?;
        self.route.prepare(&mut session)?;
        // Foreign keys point at the table that is written by now: what is replaced must not take
        // the rows of others with it.
        session.run("SET lock_wait_timeout = 2, wait_timeout = 30, foreign_key_checks = 0")?;
        let feed = self.feed(
            session.id(),
            &self.key_there(control)?,
            self.table(),
            behind,
        )?;
        let mut newer = HashSet::new();
        // Most of it while nobody waits.
        self.read_on(control, &feed, &pending, &mut newer)?;
        self.lock(&mut session)?;
        self.read_on(control, &feed, &pending, &mut newer)?;
        let mut work = pending.take(&self.route.key, None);
        let mut left = Vec::new();
        for keys in [&mut work.deletions, &mut work.replacements] {
            keys.retain(|key| {
                let is_newer = newer.contains(key);
                if is_newer {
                    left.push(key.shown(&self.route.key));
                }
                !is_newer
            });
        }
        // A row of another key that has a straggler's value in a unique index is not one to be
        // replaced.
        let route = Route {
            replaces: false,
            ..self.route.clone()
        };
        let has_triggers = !self.triggers.noted.is_empty();
        if has_triggers {
            self.triggers.take_off(&mut session)?;
        }
        let applied = apply(
            &route,
            std::slice::from_mut(&mut session),
            &work,
            ONE_TRANSACTION,
        );
        if has_triggers {
            self.triggers.put_on(&mut session)?;
        }
        if let Err(error) = applied {
            return Err(match explained(&mut session, &route, &work.replacements, error) {
                MigrateError::Conflict { message } => self.beyond(&format!(
                    "it does not take a row that was written to the old one when it was locked: {message}"
                )),
                other => other,
            });
        }
        session.run("UNLOCK TABLES")?;
        Ok(Stragglers {
            written: (work.deletions.len() + work.replacements.len()) as u64,
            left,
        })
    }

    /// The key as it stands in the new table's rows.
    fn key_there(&self, control: &mut Session) -> Result<KeyDefinition> {
        let facts = Facts::read(control, &self.route.database, self.table(), None)?;
        let names = self
            .route
            .key
            .columns
            .iter()
            .map(|column| column.name.clone());
        let index = crate::facts::UniqueIndex {
            name: self.route.key.index.clone(),
            columns: names.collect(),
        };
        facts
            .and_then(|facts| facts.key(&index))
            .ok_or_else(|| self.beyond("its key is another one"))
    }

    /// Takes the lock, between the statements of an application that is at work.
    fn lock(&self, session: &mut Session) -> Result<()> {
        // Triggers are taken from a table under its lock.
        let kind = match self.triggers.noted.is_empty() {
            true => "READ",
            false => "WRITE",
        };
        let sql = format!(
            "LOCK TABLES {} WRITE, {} {kind}",
            identifier(self.table()),
            identifier(&self.route.source)
        );
        let mut attempt = 1;
        loop {
            match session.run(&sql) {
                Ok(_) => return Ok(()),
                Err(error) if error.code != 0 && attempt < ATTEMPTS => {
                    thread::sleep(Duration::from_millis(250 * u64::from(attempt)));
                    attempt += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads up to a mark that is written now. Keys of `pending` whose rows in the new table were
    /// written are added to `newer`.
    fn read_on(
        &self,
        control: &mut Session,
        feed: &Feed,
        pending: &Pending,
        newer: &mut HashSet<Key>,
    ) -> Result<()> {
        let mark = self.checkpoint.mark(control)?;
        let end = log_end(control)?;
        loop {
            let Delivery {
                events, position, ..
            } = next(feed)?;
            for event in events {
                match event {
                    Event::Changes(changes) => {
                        let keys = changes
                            .into_iter()
                            .flat_map(|change| [change.before, change.after]);
                        newer.extend(keys.flatten().filter(|key| pending.contains(key)));
                    }
                    Event::Mark(number) if number >= mark => return Ok(()),
                    Event::Statement { database, sql } => {
                        self.is_rename(control, &database, &sql)?;
                    }
                    Event::Mark(_) | Event::Mended(_) => {}
                }
            }
            if !is_before(&position, &end) {
                return Err(self.beyond("the binary log does not bring what was written to it"));
            }
        }
    }
}

impl Job {
    /// Does what a process that was killed has left: it renamed the tables, and had not yet read
    /// what was written to the old one behind the lock. Before the rename everything was written.
    /// `names` are those that the tables had before.
    pub(crate) fn recover(
        &self,
        control: &mut Session,
        family: Family,
        names: &Names,
        state: &mut State,
        dropped: &[String],
    ) -> Result<Stragglers> {
        let Some(from) = state.locked_at.clone() else {
            return Ok(Stragglers::default());
        };
        // Who drops it has read them.
        if !exists(control, &names.old)? {
            return Ok(Stragglers::default());
        }
        let checkpoint = self.checkpoint(names);
        let made = made(state)?;
        // On a way back it is the original that has come into place.
        let [before, after] = match state.phase == ROLL_BACK {
            true => [made, &state.original],
            false => [&state.original, made],
        };
        let old = self.known(control, &names.old, before)?;
        let new = self.known(control, &self.table, after)?;
        let (keys, consent) = (self.keys.as_ref(), &self.consent);
        let aftermath = Aftermath {
            login: &self.login,
            route: definition::route((&old, &new), consent, keys, family, dropped)?,
            names,
            id: &state.id,
            checkpoint: &checkpoint,
            register: &|session: &mut Session| self.register(session, free_number()),
            triggers: self.triggers(state, names),
        };
        let (pending, behind) = aftermath.read(control, &from)?;
        let stragglers = aftermath.write(control, pending, &behind)?;
        if stragglers.left.is_empty() || state.reverse {
            // Otherwise a process that goes on after another kill has to know, too, that the old
            // table holds what nothing else does.
            state.locked_at = None;
        }
        if state.reverse && !is_reverse(state) {
            // What the new table has got up to the rename is from the old one.
            state.phase = REVERSE.into();
            state.position = behind;
            state.definition.clone_from(&new.definition);
        }
        checkpoint.write(control, state)?;
        Ok(stragglers)
    }
}

/// What comes next; a heartbeat does each second.
fn next(feed: &Feed) -> Result<Delivery> {
    let delivery = feed.next(SILENCE)?;
    delivery.ok_or(MigrateError::Silent(SILENCE.as_secs()))
}
