//! Triggers of the table go with it, and run once for each change of the application.
//!
//! The server would leave them behind: a rename moves them with the old table. Names of triggers
//! are unique in a database, and no statement changes one, or moves it to another table. The new
//! table has none while rows are written to it.
//!
//! ```text
//! under the lock of the switch
//!    new:   CREATE TRIGGER temporary, for each of them       what the old table runs is as it was
//!    RENAME TABLE t TO old, new TO t                         from here on t runs the temporary ones
//! under a lock of t and old, which is asked for again and again, see [`Triggers::settle`]
//!    old:   DROP TRIGGER                                     nobody writes to it
//!    t:     CREATE TRIGGER guard                             refuses changes
//!    t:     DROP TRIGGER temporary, CREATE TRIGGER, for each of them
//!    t:     DROP TRIGGER guard
//! ```
//!
//! So there is no moment in which a change of the application runs none of them, or two. In the
//! last part a table lacks some of them, and nobody can write to it. Where a kill gives the lock
//! back there, the guard refuses changes until `--resume` or `--abort` has put all of them back.
//!
//! A trigger is made by its own text under the settings that it was made under. With its time, what
//! the catalogue shows of it is what it was. The temporary ones have another head and the same
//! body. Whether all that can be made is tried on the new table when it is empty
//! ([`Triggers::rehearse`]).

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use onionskin_rowstream::checkpoint::{State, Trigger};
use onionskin_rowstream::session::{Session, SqlError};
use onionskin_schema::{identifier, same_name};

use crate::error::{MigrateError, Result};
use crate::facts::name_literal;
use crate::foreign_keys::Moment;
use crate::job::Job;
use crate::preflight::Names;
use crate::statement::mark;
use crate::trigger_catalog::{in_database, list, read};
use crate::trigger_reach::fold;
use crate::trigger_text::head;

/// For how long the lock is asked for under which triggers get their names back.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long the application waits behind each of these requests.
const LOCK_WAIT_SECONDS: u32 = 2;
/// What the application's session is told by the guard.
const REFUSAL: &str = "onionskin migrate was ended while it moved triggers of this table: run it with --resume or --abort";
/// The variable by which the guard knows our own writes.
const OURS: &str = "@onionskin_migration";

type Sql<T> = std::result::Result<T, SqlError>;

/// The triggers of one migration, in a database and for a table.
#[derive(Clone, Copy)]
pub(crate) struct Triggers<'a> {
    pub noted: &'a [Trigger],
    pub database: &'a str,
    pub table: &'a str,
    /// The table that takes its place.
    pub new: &'a str,
    /// What the table is called afterwards.
    pub old: &'a str,
    /// The migration's.
    pub id: &'a str,
}

impl Job {
    /// The triggers of a migration whose tables have these names.
    pub(crate) fn triggers<'a>(&'a self, state: &'a State, names: &'a Names) -> Triggers<'a> {
        Triggers {
            noted: &state.triggers,
            database: &self.database,
            table: &self.table,
            new: &names.new,
            old: &names.old,
            id: &state.id,
        }
    }
}

impl Triggers<'_> {
    /// Its name while the one that it stands for still has its own elsewhere.
    fn temporary(&self, at: usize) -> String {
        format!("{}_onionskin_t{at}", self.table)
    }

    fn guard(&self, event: &str) -> String {
        let event = event.chars().take(1).collect::<String>().to_lowercase();
        format!("{}_onionskin_g{event}", self.table)
    }

    /// Whether the name is one of ours, by number or event.
    fn is_temporary(&self, name: &str) -> bool {
        (0..self.noted.len()).any(|at| same_name(&self.temporary(at), name))
    }

    fn is_guard(&self, name: &str) -> bool {
        ["INSERT", "UPDATE", "DELETE"]
            .iter()
            .any(|event| same_name(&self.guard(event), name))
    }

    fn is_noted(&self, name: &str) -> bool {
        self.noted.iter().any(|trigger| trigger.name == name)
    }

    fn drop(&self, session: &mut Session, name: &str) -> Sql<()> {
        session.run(&format!(
            "{}DROP TRIGGER IF EXISTS {}.{}",
            mark(self.id),
            identifier(self.database),
            identifier(name)
        ))?;
        Ok(())
    }

    /// The statement that makes it under a temporary name for the new table.
    fn temporary_statement(&self, at: usize) -> Vec<u8> {
        let Trigger {
            statement,
            timing,
            event,
            ..
        } = &self.noted[at];
        let Some(head) = head(statement) else {
            // Which was refused before.
            return statement.clone();
        };
        let middle = format!(
            " {} {timing} {event} ON {} FOR EACH ROW",
            identifier(&self.temporary(at)),
            identifier(self.new)
        );
        [
            &statement[..head.behind_verb],
            middle.as_bytes(),
            &statement[head.body..],
        ]
        .concat()
    }

    /// Makes one under the settings that it was made under.
    fn create(&self, session: &mut Session, trigger: &Trigger, sql: &[u8]) -> Sql<()> {
        session.run(&format!("USE {}", identifier(self.database)))?;
        let settings = "SELECT @@sql_mode, @@character_set_client, @@collation_connection";
        let usual = session.texts(settings)?.into_iter().flatten();
        let usual: Vec<String> = usual.map(Option::unwrap_or_default).collect();
        let set = |session: &mut Session, [mode, charset, collation]: [&str; 3]| {
            session.run(&format!(
                "SET sql_mode = {}, character_set_client = {}, collation_connection = {}",
                name_literal(mode),
                name_literal(charset),
                name_literal(collation)
            ))
        };
        if !trigger.created.is_empty() {
            // MariaDB may be told not to let anybody set it. Then the time is today's.
            match session.run(&format!("SET timestamp = {}", number(&trigger.created))) {
                Err(error) if error.code == 0 => return Err(error),
                _ => {}
            }
        }
        let theirs = [&trigger.sql_mode, &trigger.charset, &trigger.collation];
        let made = set(session, theirs.map(String::as_str)).and_then(|_| session.run_bytes(sql));
        let usual = [0, 1, 2].map(|at| usual.get(at).map_or("", String::as_str));
        let restored = set(session, usual);
        let timed = session.run("SET timestamp = DEFAULT");
        made?;
        restored?;
        // Where it could not be set, it need not be given back.
        match timed {
            Err(error) if error.code == 0 => Err(error),
            _ => Ok(()),
        }
    }

    /// What stands under the temporary names goes.
    fn remove_beside(&self, session: &mut Session) -> Sql<()> {
        for there in list(session, self.database, self.new)? {
            if self.is_temporary(&there.name) || self.is_guard(&there.name) {
                self.drop(session, &there.name)?;
            }
        }
        Ok(())
    }

    /// An error if the database has a trigger under a name that these would have for a time.
    pub fn must_have_names(&self, session: &mut Session) -> Result<()> {
        if self.noted.is_empty() {
            return Ok(());
        }
        let temporary = (0..self.noted.len()).map(|at| self.temporary(at));
        let guards = self.noted.iter().map(|trigger| self.guard(&trigger.event));
        let ours: BTreeSet<String> = temporary.chain(guards).map(|name| fold(&name)).collect();
        let there = in_database(session, self.database)?;
        // Those of the new table are left by a killed process, and removed with it.
        let is_taken = |(name, table): &&(String, String)| {
            ours.contains(&fold(name)) && !same_name(table, self.new)
        };
        match there.iter().find(is_taken) {
            None => Ok(()),
            Some((name, table)) => Err(MigrateError::Refused {
                table: format!("{}.{}", self.database, self.table),
                reason: format!(
                    "there is a trigger {name} of the table {table}, and the migration needs this name for a time: \
                     drop the trigger, or make it under another name"
                ),
            }),
        }
    }

    /// Makes all of them on the new table, which is empty, and removes them again: an error if one
    /// cannot be made as it is.
    pub fn rehearse(&self, session: &mut Session) -> Result<()> {
        if self.noted.is_empty() {
            return Ok(());
        }
        let refused = |name: &str, reason: String| MigrateError::Refused {
            table: format!("{}.{}", self.database, self.table),
            reason: format!("its trigger {name} cannot be made on the new table: {reason}"),
        };
        for (at, trigger) in self.noted.iter().enumerate() {
            let is_unicode = trigger.charset.starts_with("utf8");
            let names = [&trigger.name, &trigger.definer, &self.table.to_owned()];
            if !is_unicode && names.iter().any(|name| !name.is_ascii()) {
                let reason = format!(
                    "its names are not ASCII, and its text is {}",
                    trigger.charset
                );
                return Err(refused(&trigger.name, reason));
            }
            self.create(session, trigger, &self.temporary_statement(at))
                .map_err(|error| match error.code {
                    0 => error.into(),
                    _ => refused(&trigger.name, error.message),
                })?;
        }
        let made = read(session, self.database, self.new)?;
        let body = |trigger: &Trigger| {
            let head = head(&trigger.statement)?;
            Some(trigger.statement[head.body..].to_vec())
        };
        let is_same = |(at, (made, noted)): (usize, (&Trigger, &Trigger))| {
            let expected = Trigger {
                name: self.temporary(at),
                statement: made.statement.clone(),
                // Which a server may not let anybody set.
                created: made.created.clone(),
                ..noted.clone()
            };
            *made == expected && body(made).is_some() && body(made) == body(noted)
        };
        let differs = made
            .iter()
            .zip(self.noted)
            .enumerate()
            .find(|&pair| !is_same(pair));
        if let Some((_, (made, noted))) = differs {
            let what = match made.database_collation == noted.database_collation {
                true => "it would be another one".to_owned(),
                false => format!(
                    "the database's default collation was {} when it was made, and is {} now",
                    noted.database_collation, made.database_collation
                ),
            };
            return Err(refused(&noted.name, what));
        }
        if made.len() != self.noted.len() {
            return Err(refused(&self.noted[0].name, "it would be missing".into()));
        }
        self.remove_beside(session)
            .map_err(MigrateError::sql("removing triggers"))
    }

    /// What a dry run tells of them.
    pub fn plan(&self) -> Option<String> {
        let names: Vec<String> = self.noted.iter().map(|t| identifier(&t.name)).collect();
        (!names.is_empty()).then(|| format!("-- 4. The triggers {} go with it.", names.join(", ")))
    }

    /// Whether the table has the triggers that were noted, and the new one none.
    pub fn are_as_noted(&self, session: &mut Session) -> Sql<bool> {
        let there = list(session, self.database, self.table)?;
        let is_same = there.len() == self.noted.len()
            && there
                .iter()
                .zip(self.noted)
                .all(|(there, noted)| there.is(noted));
        Ok(is_same && list(session, self.database, self.new)?.is_empty())
    }

    /// Under the lock of the switch: makes all of them on the new table, under temporary names.
    pub fn place(&self, session: &mut Session) -> Sql<()> {
        for (at, trigger) in self.noted.iter().enumerate() {
            self.create(session, trigger, &self.temporary_statement(at))?;
        }
        Ok(())
    }

    /// Brings all of them to where they belong, after a switch, an attempt that failed, or a kill.
    /// `session` may hold no lock.
    pub fn settle(&self, session: &mut Session, moment: Moment) -> Result<()> {
        let doing = || MigrateError::sql("giving triggers back");
        if self.noted.is_empty() {
            return Ok(());
        }
        if moment == Moment::Before {
            return self.remove_beside(session).map_err(doing());
        }
        if self.are_settled(session).map_err(doing())? {
            return Ok(());
        }
        self.must_be_those_of_the_tables(session)?;
        self.lock(session)?;
        let named = self
            .take_off(session)
            .and_then(|()| self.put_on(session))
            .map_err(doing());
        session.run("UNLOCK TABLES").map_err(doing())?;
        named
    }

    fn are_settled(&self, session: &mut Session) -> Sql<bool> {
        let there = list(session, self.database, self.table)?;
        let is_ours = |name: &str| self.is_temporary(name) || self.is_guard(name);
        let is_there = |noted: &Trigger| there.iter().any(|there| there.name == noted.name);
        Ok(self.noted.iter().all(is_there) && !there.iter().any(|there| is_ours(&there.name)))
    }

    /// An error if the checkpoint tells of other triggers than the tables have, be they under their
    /// own names or under temporary ones. Without keys it is not authenticated, and whoever may
    /// write to it is not to choose what is made here, under whose account. Only behind the guard,
    /// which is this account's, one may be missing.
    fn must_be_those_of_the_tables(&self, session: &mut Session) -> Result<()> {
        let doing = || MigrateError::sql("reading the triggers");
        let account = session.text("SELECT CURRENT_USER()").map_err(doing())?;
        let mut there = read(session, self.database, self.table)?;
        let mut guards = there.iter().filter(|there| self.is_guard(&there.name));
        let is_guarded = guards.any(|guard| guard.definer == account);
        there.extend(read(session, self.database, self.old)?);
        let body = |trigger: &Trigger| {
            let head = head(&trigger.statement)?;
            Some(trigger.statement[head.body..].to_vec())
        };
        for (at, noted) in self.noted.iter().enumerate() {
            let temporary = self.temporary(at);
            let is_it = |name: &str| name == noted.name || same_name(name, &temporary);
            let mut copies = there.iter().filter(|there| is_it(&there.name)).peekable();
            let is_there = copies.peek().is_some();
            let is_same = copies.all(|copy| {
                let settings = |t: &Trigger| {
                    let t = t.clone();
                    [
                        t.timing,
                        t.event,
                        t.definer,
                        t.sql_mode,
                        t.charset,
                        t.collation,
                    ]
                };
                settings(copy) == settings(noted) && body(copy) == body(noted)
            });
            let is_of_table = head(&noted.statement).is_some_and(|head| {
                same_name(&head.name, &noted.name)
                    && same_name(&head.table, self.table)
                    && head
                        .database
                        .is_none_or(|name| same_name(&name, self.database))
            });
            if !is_same || !is_of_table || !is_there && !is_guarded {
                return Err(MigrateError::Request(format!(
                    "the checkpoint tells of another trigger {} than {}.{} has: somebody has changed one of them. Compare its triggers with what \
                     they should be, make them by hand, and drop the table {}",
                    noted.name,
                    self.database,
                    self.table,
                    Names::of(self.table).checkpoint
                )));
            }
        }
        Ok(())
    }

    /// Takes the lock between the statements of an application that is at work.
    fn lock(&self, session: &mut Session) -> Result<()> {
        let begun = Instant::now();
        let before = session.text("SELECT @@lock_wait_timeout")?;
        session.run(&format!("SET lock_wait_timeout = {LOCK_WAIT_SECONDS}"))?;
        let locked = loop {
            let sql = self.lock_statement(session)?;
            match session.run(&sql) {
                Err(error) if error.code != 0 && begun.elapsed() < PATIENCE => {
                    thread::sleep(Duration::from_secs(1));
                }
                done => break done,
            }
        };
        session.run(&format!("SET lock_wait_timeout = {}", number(&before)))?;
        locked.map_err(MigrateError::sql(
            "locking the table to give its triggers their names back, which --resume does once more",
        ))?;
        Ok(())
    }

    fn lock_statement(&self, session: &mut Session) -> Result<String> {
        let mut locks = vec![format!("{} WRITE", identifier(self.table))];
        if crate::facts::comment(session, self.old)?.is_some() {
            locks.push(format!("{} WRITE", identifier(self.old)));
        }
        Ok(format!("LOCK TABLES {}", locks.join(", ")))
    }

    /// Under a lock of both tables, after the rename: no trigger is left but the guard, which lets
    /// only writes of this session by.
    pub fn take_off(&self, session: &mut Session) -> Sql<()> {
        for there in list(session, self.database, self.old)? {
            if self.is_noted(&there.name) {
                self.drop(session, &there.name)?;
            }
        }
        let there = list(session, self.database, self.table)?;
        let events: BTreeSet<&str> = self.noted.iter().map(|t| t.event.as_str()).collect();
        for event in events {
            let guard = self.guard(event);
            if there.iter().any(|there| same_name(&there.name, &guard)) {
                continue;
            }
            let first = there
                .iter()
                .find(|there| there.event == event && there.timing == "BEFORE");
            let before = first.map_or(String::new(), |first| {
                format!("PRECEDES {} ", identifier(&first.name))
            });
            session.run(&format!(
                "CREATE TRIGGER {}.{} BEFORE {event} ON {}.{} FOR EACH ROW {before}\
                 IF COALESCE({OURS}, '') <> '{}' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{REFUSAL}'; END IF",
                identifier(self.database),
                identifier(&guard),
                identifier(self.database),
                identifier(self.table),
                self.id
            ))?;
        }
        for there in there {
            if self.is_temporary(&there.name) || self.is_noted(&there.name) {
                self.drop(session, &there.name)?;
            }
        }
        session.run(&format!("SET {OURS} = '{}'", self.id))?;
        Ok(())
    }

    /// The other way.
    pub fn put_on(&self, session: &mut Session) -> Sql<()> {
        session.run(&format!("SET {OURS} = NULL"))?;
        for trigger in self.noted {
            self.create(session, trigger, &trigger.statement)?;
        }
        for there in list(session, self.database, self.table)? {
            if self.is_guard(&there.name) {
                self.drop(session, &there.name)?;
            }
        }
        Ok(())
    }
}

/// A number of the server's as such.
fn number(text: &str) -> &str {
    let is_number = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_number { text } else { "DEFAULT" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trigger(statement: &str) -> Trigger {
        Trigger {
            name: "x".into(),
            timing: "AFTER".into(),
            event: "INSERT".into(),
            definer: "root@localhost".into(),
            statement: statement.into(),
            sql_mode: String::new(),
            charset: "utf8mb4".into(),
            collation: "utf8mb4_bin".into(),
            database_collation: "utf8mb4_bin".into(),
            created: "1.25".into(),
        }
    }

    #[test]
    fn a_temporary_trigger_has_the_same_body() {
        let noted = [trigger(
            "CREATE DEFINER=`a`@`%` TRIGGER x AFTER INSERT ON d.t for  each row\nfollows y\tSET @a = 'ON t FOR EACH ROW'",
        )];
        let triggers = Triggers {
            noted: &noted,
            database: "d",
            table: "t",
            new: "t_onionskin_new",
            old: "t_onionskin_old",
            id: "00",
        };
        assert_eq!(
            String::from_utf8(triggers.temporary_statement(0)).expect("a text"),
            "CREATE DEFINER=`a`@`%` TRIGGER `t_onionskin_t0` AFTER INSERT ON `t_onionskin_new` FOR EACH ROW\tSET @a = 'ON t FOR EACH ROW'"
        );
        assert!(
            triggers.is_temporary("t_onionskin_t0") && !triggers.is_temporary("t_onionskin_t1")
        );
        assert!(triggers.is_guard("t_onionskin_gd"));
    }
}
