//! The new table takes the old one's place.
//!
//! ```text
//! L: LOCK TABLES t WRITE, new WRITE        nobody writes or reads t any more
//!    a mark, read the log up to it, write what is left; on MariaDB note in the checkpoint where that is (`stragglers.rs`)
//! MySQL                                    MariaDB
//! L: RENAME TABLE t TO old, new TO t       R: RENAME TABLE t TO old, new TO t     waits for L
//!                                          L: sees R waiting; DROP TABLE old (the sentry)
//! L: UNLOCK TABLES                         L: UNLOCK TABLES                       R goes first: writers wait behind it
//! ```
//!
//! MySQL renames locked tables in the session that locked them, so no moment lies in between.
//! MariaDB does not. There a second session asks for the rename, and while a table with the name
//! `old` stands (the sentry), that rename fails whatever happens. The sentry is dropped by L, in
//! the moment when L still holds its lock *and* R has been seen to wait for it; from then on R's
//! exclusive lock is next in line. R asks for its locks in the order of names, and all helpers'
//! names sort behind the table's: what R waits for is the table itself. If L dies before, its locks
//! go and R fails; if it dies after, R is next.

use std::thread;
use std::time::{Duration, Instant};

use onionskin_keys::KeySet;
use onionskin_rowstream::RowError;
use onionskin_rowstream::apply::apply;
use onionskin_rowstream::checkpoint::{Imprint, State};
use onionskin_rowstream::session::{Login, Session, SqlError};
use onionskin_schema::identifier;
use onionskin_value::Family;

use crate::conflict::conflict;
use crate::engine::Engine;
use crate::error::{MigrateError, Result};
use crate::facts::{definition, is_named, name_literal, stable};
use crate::foreign_keys::{Moment, Moves};
use crate::imprint;
use crate::neighbours::{hold, waits_for_lock};
use crate::phase::SWITCH;
use crate::preflight::Names;
use crate::snapshots::Snapshots;
use crate::stragglers::{Aftermath, Stragglers};
use crate::triggers::Triggers;

/// How often it is tried.
const ATTEMPTS: u32 = 20;
/// How long the application may be held up by an attempt that waits for a long transaction.
const LOCK_WAIT_SECONDS: u32 = 2;
/// How long everything under the lock may take.
pub(crate) const LONGEST_HOLD: Duration = Duration::from_secs(3);
/// How much may be left to write under the lock.
const FEW_ROWS: u64 = 500;
/// And how many keys at most: what one session writes in much less than [`LONGEST_HOLD`].
pub(crate) const MAX_UNDER_LOCK: usize = 5_000;
/// How many rows are written in one transaction while snapshots end.
const MAX_WHOLE: usize = 50_000;
/// How long the rename may take to come through the binary log when nothing else comes. A stream
/// that breaks is made again within a minute.
const REPORT: Duration = Duration::from_secs(90);
/// For how long writers are run after that cannot be held back.
const LONGEST_PURSUIT: Duration = Duration::from_secs(600);
/// How fast a round must be before the lock is asked for.
const SHORT_ROUND: Duration = Duration::from_millis(150);

/// For how long writers may keep ahead before they are held back, more with every time.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the server waits for a sign of life of a session that may hold the lock. Where the
/// network is lost without its notice, that is how long the application waits.
const SIGN_OF_LIFE: u32 = 10;

/// What stands in the comment of the sentry.
pub(crate) const SENTRY: &str = "onionskin sentry";

/// How a switch went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switched {
    /// From the request of the lock to its release: for how long statements on the table waited, at
    /// most.
    pub stall: Duration,
    /// On a cluster: there was no table of the name for that time.
    pub nameless: bool,
    /// How often it was tried.
    pub attempts: u32,
    /// What was found in the binary log between the last mark and the rename.
    pub(crate) stragglers: Stragglers,
}

/// Everything that the switch needs beside the engine.
pub(crate) struct Switch<'a> {
    pub login: &'a Login,
    pub database: &'a str,
    pub names: &'a Names,
    pub family: Family,
    /// What the checkpoint says meanwhile.
    pub phase: &'static str,
    /// Whether the new table goes on where the old one's numbers are.
    pub keeps_numbers: bool,
    /// For the lock's session and the rename's.
    pub register: &'a dyn Fn(&mut Session) -> Result<()>,
    /// With which the imprints were made.
    pub keys: Option<&'a KeySet>,
    /// Of the table that goes and of the one that comes.
    pub imprints: [&'a Imprint; 2],
    /// What goes to the new table with the name.
    pub moves: Moves<'a>,
    /// The same.
    pub triggers: Triggers<'a>,
}

/// MariaDB's sessions beside the one that holds the locks.
struct Renamer {
    session: Session,
    /// Statements that hold the neighbours by foreign keys, and whose they are: see [`hold`].
    holding: Vec<(String, Session)>,
}

pub(crate) enum Attempt {
    Done(Duration),
    Again(String),
    /// It would fail again.
    Never(String),
}

impl Attempt {
    /// One that has failed so. `what` says what could not be done.
    fn failed(what: &str, error: &SqlError) -> Self {
        let reason = format!("{what}: {}", error.message);
        match error.is_lasting() {
            true => Attempt::Never(reason),
            false => Attempt::Again(reason),
        }
    }
}

impl Switch<'_> {
    /// Tries until it is done.
    pub fn run(&self, engine: &mut Engine) -> Result<Switched> {
        engine.progress.set_phase("switching");
        engine.state.phase = self.phase.into();
        let mut reason = String::new();
        let mut is_explicit = false;
        for attempt in 1..=ATTEMPTS {
            catch_up(engine)?;
            outlive_snapshots(engine)?;
            let attempted = match engine.others.is_cluster() {
                true => self.attempt_everywhere(engine)?,
                false => self.attempt(engine, &mut is_explicit)?,
            };
            match attempted {
                Attempt::Done(stall) => {
                    // On MariaDB the locks are given back before the rename takes them.
                    let table = &engine.route.source;
                    self.must_be(&mut engine.control, &engine.route.database, table, 1)?;
                    self.triggers.settle(&mut engine.control, Moment::After)?;
                    let stragglers = self.stragglers(engine)?;
                    return Ok(Switched {
                        stall,
                        nameless: engine.others.is_cluster(),
                        attempts: attempt,
                        stragglers,
                    });
                }
                Attempt::Never(reason) => {
                    self.settle(engine)?;
                    return Err(MigrateError::CannotSwitch(reason));
                }
                Attempt::Again(why) => {
                    self.settle(engine)?;
                    engine
                        .progress
                        .note(format!("the switch is tried again: {why}"));
                    reason = why;
                }
            }
            // Longer and longer pauses, in which the application runs freely.
            let pause = Duration::from_millis(500 * u64::from(attempt.min(10)));
            let until = Instant::now() + pause;
            while Instant::now() < until {
                engine.round()?;
                thread::sleep(Duration::from_millis(100));
            }
        }
        Err(MigrateError::NoSwitch {
            attempts: ATTEMPTS,
            reason,
        })
    }

    /// After an attempt that has failed: triggers and keys are where they were before.
    fn settle(&self, engine: &mut Engine) -> Result<()> {
        self.triggers.settle(&mut engine.control, Moment::Before)?;
        for told in self.moves.settle(&mut engine.control, Moment::Before)? {
            engine.progress.note(told);
        }
        engine.state.locked_at = None;
        Ok(())
    }

    pub(crate) fn session(&self, engine: &Engine) -> Result<Session> {
        let mut session = self.bare_session()?;
        (self.register)(&mut session)?;
        engine.route.prepare(&mut session)?;
        Ok(session)
    }

    /// One that changes nothing.
    fn bare_session(&self) -> Result<Session> {
        let mut session = Session::connect(self.login)?;
        session.run(&format!(
            "SET lock_wait_timeout = {LOCK_WAIT_SECONDS}, innodb_lock_wait_timeout = {LOCK_WAIT_SECONDS}, \
             wait_timeout = {SIGN_OF_LIFE}"
        ))?;
        Ok(session)
    }

    /// An error if a table is not the one that goes (0) or comes (1).
    pub(crate) fn must_be(
        &self,
        session: &mut Session,
        database: &str,
        table: &str,
        which: usize,
    ) -> Result<()> {
        if self.keys.is_none() {
            return Ok(());
        }
        let now = imprint::read(session, database, table, self.keys)?;
        imprint::must_be(table, &now.unwrap_or_default(), self.imprints[which])
    }

    /// `is_explicit`: the indexes of foreign keys stay with a change of these.
    fn attempt(&self, engine: &mut Engine, is_explicit: &mut bool) -> Result<Attempt> {
        let mut locker = self.session(engine)?;
        let renamer = match self.family {
            Family::MySql => None,
            Family::MariaDb => {
                if let Err(error) = self.make_sentry(&mut locker) {
                    return match error.waited_in_vain() {
                        true => Ok(Attempt::Again(format!("definitions are held up: {error}"))),
                        false => Err(error),
                    };
                }
                let holds = self.moves.holds().into_iter();
                let holding = holds.map(|hold| Ok((hold, self.bare_session()?)));
                Some(Renamer {
                    session: self.session(engine)?,
                    holding: holding.collect::<Result<_>>()?,
                })
            }
        };
        if !*is_explicit {
            match self.moves.make_all_explicit(&mut locker) {
                Ok(()) => *is_explicit = true,
                Err(MigrateError::Sql { doing, source }) if source.code != 0 => {
                    let what = format!("foreign keys are held up: {doing}");
                    return Ok(Attempt::failed(&what, &source));
                }
                Err(error) => return Err(error),
            }
        }
        let mut locks = vec![&engine.route.source, &self.names.new];
        if renamer.is_some() {
            locks.push(&self.names.old);
        }
        let mut locks: Vec<String> = locks
            .iter()
            .map(|name| format!("{} WRITE", identifier(name)))
            .collect();
        locks.extend(self.moves.locks());
        engine.renamed = false;
        // Under the lock nobody waits for anybody for long: a backup that stops all writers waits
        // for the lock's end, and our marks would wait for the backup.
        locker.set_patience(Some(Duration::ZERO))?;
        engine.control.set_patience(Some(Duration::ZERO))?;
        let done = self.locked_attempt(engine, locker, renamer, &locks);
        engine.control.set_patience(None)?;
        done
    }

    fn locked_attempt(
        &self,
        engine: &mut Engine,
        mut locker: Session,
        mut renamer: Option<Renamer>,
        locks: &[String],
    ) -> Result<Attempt> {
        let begun = Instant::now();
        if let Err(error) = locker.run(&format!("LOCK TABLES {}", locks.join(", "))) {
            return match error.code {
                0 => Err(error.into()),
                _ => Ok(Attempt::failed("the table cannot be locked", &error)),
            };
        }
        engine.brake.release();
        // From here on an error ends the session, and with it the lock.
        if let Some(reason) = self.write_last(engine, &mut locker, begun)? {
            // What was read stays pending, what was written is written; only the position is old,
            // which does no harm.
            locker.run("UNLOCK TABLES")?;
            return Ok(Attempt::Again(reason));
        }
        if renamer.is_some()
            && let Some(reason) = note_place(engine)?
        {
            locker.run("UNLOCK TABLES")?;
            return Ok(Attempt::Again(reason));
        }
        let now = definition(&mut locker, &engine.route.database, &engine.route.source)?;
        if stable(&now) != stable(&engine.state.definition) {
            return Err(MigrateError::Changed(
                "its definition is another one".into(),
            ));
        }
        let tables = [&engine.route.source, &self.names.new];
        for (which, table) in tables.into_iter().enumerate() {
            self.must_be(&mut locker, &engine.route.database, table, which)?;
        }
        if let Err(error) = self.keep_numbers(&engine.route.source, &mut locker) {
            return match error {
                MigrateError::Rows(RowError::Sql(error)) if error.waited_in_vain() => {
                    locker.run("UNLOCK TABLES")?;
                    Ok(Attempt::Again(format!(
                        "definitions are held up: {}",
                        error.message
                    )))
                }
                other => Err(other),
            };
        }
        if begun.elapsed() > LONGEST_HOLD {
            locker.run("UNLOCK TABLES")?;
            return Ok(Attempt::Again(format!(
                "the last changes took {:.1} s",
                begun.elapsed().as_secs_f64()
            )));
        }
        if let Some(again) = self.place_triggers(&mut locker)? {
            return Ok(again);
        }
        if let Some(again) = self.move_keys(&mut locker)? {
            return Ok(again);
        }
        let rename = format!(
            "RENAME TABLE {} TO {}, {} TO {}",
            identifier(&engine.route.source),
            identifier(&self.names.old),
            identifier(&self.names.new),
            identifier(&engine.route.source)
        );
        match renamer.take() {
            None => {
                if let Err(error) = locker.run(&rename) {
                    return self.after_failure(engine, locker, error, begun);
                }
                locker.run("UNLOCK TABLES")?;
            }
            Some(renamer) => {
                if let Some(again) = self.rename_behind(engine, &mut locker, renamer, &rename)? {
                    return Ok(again);
                }
            }
        }
        Ok(Attempt::Done(begun.elapsed()))
    }

    /// Under the lock: the new table gets triggers, which nobody runs before it has its name.
    fn place_triggers(&self, locker: &mut Session) -> Result<Option<Attempt>> {
        if !self.triggers.are_as_noted(locker)? {
            return Err(MigrateError::Changed("its triggers are others".into()));
        }
        match self.triggers.place(locker) {
            Ok(()) => Ok(None),
            Err(error) if error.code == 0 => Err(error.into()),
            Err(error) => {
                locker.run("UNLOCK TABLES")?;
                Ok(Some(Attempt::failed("triggers cannot be made", &error)))
            }
        }
    }

    /// Under the lock: foreign keys go to the new table. Where that fails, they and the lock are
    /// given back.
    fn move_keys(&self, locker: &mut Session) -> Result<Option<Attempt>> {
        if self.moves.keys.is_empty() {
            return Ok(None);
        }
        self.moves.must_be_all(locker)?;
        let Err(error) = self.moves.bind(locker) else {
            return Ok(None);
        };
        if error.code == 0 {
            return Err(error.into());
        }
        self.moves.mend(locker, Moment::Before)?;
        locker.run("UNLOCK TABLES")?;
        Ok(Some(Attempt::failed(
            "foreign keys cannot be moved",
            &error,
        )))
    }

    /// Under the lock: reads the log to its end and writes what is left. Why the lock has to be
    /// given back, if it must.
    fn write_last(
        &self,
        engine: &mut Engine,
        locker: &mut Session,
        begun: Instant,
    ) -> Result<Option<String>> {
        match engine.drain_until(begun + LONGEST_HOLD, MAX_UNDER_LOCK) {
            Ok(true) => {}
            Ok(false) => return Ok(Some("too much is left to write".into())),
            Err(MigrateError::Rows(RowError::Sql(error))) if error.waited_in_vain() => {
                return Ok(Some(format!("writers are held up: {}", error.message)));
            }
            Err(error) => return Err(error),
        }
        let work = engine.pending.take(&engine.route.key, None);
        let rows = (work.deletions.len() + work.replacements.len()) as u64;
        match apply(
            &engine.route,
            std::slice::from_mut(locker),
            &work,
            MAX_UNDER_LOCK,
        ) {
            Ok(_) => {
                engine.state.changes += rows;
                Ok(None)
            }
            Err(RowError::Sql(error)) if error.waited_in_vain() || error.is_duplicate() => {
                engine.pending.give_back(work);
                Ok(Some(format!(
                    "the last changes could not be written: {}",
                    error.message
                )))
            }
            Err(error) => Err(conflict(error)),
        }
    }

    /// Numbers that the old table has given out since the new one was made, and whose rows are
    /// gone, are not given out again.
    pub(crate) fn keep_numbers(&self, old: &str, locker: &mut Session) -> Result<()> {
        if !self.keeps_numbers {
            return Ok(());
        }
        let mut next = |table: &str| -> Result<Option<u64>> {
            let text = locker.text(&format!(
                "SELECT AUTO_INCREMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND {}",
                is_named("TABLE_NAME", &name_literal(table))
            ))?;
            Ok(text.parse().ok())
        };
        if let (Some(old), Some(new)) = (next(old)?, next(&self.names.new)?)
            && old > new
        {
            locker.run(&format!(
                "ALTER TABLE {} AUTO_INCREMENT = {old}",
                identifier(&self.names.new)
            ))?;
        }
        Ok(())
    }

    /// MySQL renames everything or nothing; where the connection broke, the names tell which.
    fn after_failure(
        &self,
        engine: &mut Engine,
        locker: Session,
        error: SqlError,
        begun: Instant,
    ) -> Result<Attempt> {
        let code = error.code;
        if code == 0 {
            let id = locker.id();
            drop(locker);
            must_end(&mut engine.control, id)?;
        }
        match code == 0 && self.is_done(&mut engine.control)? {
            true => Ok(Attempt::Done(begun.elapsed())),
            false => Ok(Attempt::failed("the tables could not be renamed", &error)),
        }
    }

    /// Whether the tables have changed their names.
    fn is_done(&self, session: &mut Session) -> Result<bool> {
        Ok(!exists(session, &self.names.new)? && exists(session, &self.names.old)?)
    }

    fn make_sentry(&self, session: &mut Session) -> Result<()> {
        drop_sentry(session, self.names)?;
        session
            .run(&format!(
                "CREATE TABLE {} (id INT) ENGINE=InnoDB COMMENT='{SENTRY}'",
                identifier(&self.names.old)
            ))
            .map_err(MigrateError::sql("making the sentry"))?;
        Ok(())
    }

    /// MariaDB's way; `None` when it is done.
    fn rename_behind(
        &self,
        engine: &mut Engine,
        locker: &mut Session,
        renamer: Renamer,
        rename: &str,
    ) -> Result<Option<Attempt>> {
        let Renamer {
            session: mut renamer,
            holding,
        } = renamer;
        let id = renamer.id();
        let sql = rename.to_owned();
        // Until the rename is done nobody gets at the neighbours.
        let (held, mut obstacle) = hold(&mut engine.control, holding)?;
        let renaming = thread::spawn(move || {
            let renamed = renamer.run(&sql);
            drop(held);
            renamed
        });
        if obstacle.is_none() && !waits_for_lock(&mut engine.control, id, "RENAME TABLE", || false)?
        {
            obstacle = Some("the rename was not seen to wait for the lock".to_owned());
        }
        if obstacle.is_none()
            && let Err(error) = locker.run(&format!("DROP TABLE {}", identifier(&self.names.old)))
        {
            match error.waited_in_vain() {
                true => obstacle = Some(format!("definitions are held up: {}", error.message)),
                false => return Err(MigrateError::sql("dropping the sentry")(error)),
            }
        }
        if let Some(obstacle) = obstacle {
            // While the sentry stands, the rename fails.
            let _ = engine.control.run(&format!("KILL {id}"));
            self.moves.mend(locker, Moment::Before)?;
            locker.run("UNLOCK TABLES")?;
            let _ = renaming.join();
            return Ok(Some(Attempt::Again(obstacle)));
        }
        locker.run("UNLOCK TABLES")?;
        let outcome = match renaming.join() {
            Ok(Ok(_)) => return Ok(None),
            Ok(Err(error)) if error.code != 0 => {
                return Ok(Some(Attempt::Again(format!(
                    "the tables could not be renamed: {}",
                    error.message
                ))));
            }
            // The connection is gone, and what it was doing may still be done.
            other => {
                must_end(&mut engine.control, id)?;
                other
            }
        };
        match outcome {
            _ if self.is_done(&mut engine.control)? => Ok(None),
            Ok(Err(error)) => Ok(Some(Attempt::Again(format!(
                "the tables could not be renamed: {}",
                error.message
            )))),
            _ => Ok(Some(Attempt::Again("the rename's thread has ended".into()))),
        }
    }

    /// Reads the binary log up to the rename. Rows that were still written to the old table are
    /// written to the new one.
    fn stragglers(&self, engine: &mut Engine) -> Result<Stragglers> {
        let mut patience = Instant::now() + REPORT;
        while !engine.renamed {
            engine.absorb(REPORT)?;
            if !engine.renamed && Instant::now() > patience {
                engine.must_be_behind()?;
                patience = Instant::now() + REPORT;
            }
        }
        let mut route = engine.route.clone();
        route.target.clone_from(&engine.route.source);
        route.source.clone_from(&self.names.old);
        let aftermath = Aftermath {
            login: self.login,
            route,
            names: self.names,
            id: &engine.state.id,
            checkpoint: &engine.checkpoint,
            register: self.register,
            triggers: self.triggers,
        };
        let pending = std::mem::take(&mut engine.pending);
        aftermath.write(&mut engine.control, pending, &engine.position)
    }
}

/// Under the lock, when everything is written: notes where in the log that is, for who goes on
/// should this process not live to read what comes behind it. Why the lock has to be given back, if
/// it must.
fn note_place(engine: &mut Engine) -> Result<Option<String>> {
    engine.state.locked_at = Some(engine.position.clone());
    match engine.checkpoint.write(&mut engine.control, &engine.state) {
        Ok(()) => Ok(None),
        Err(RowError::Sql(error)) if error.waited_in_vain() => {
            Ok(Some(format!("writers are held up: {}", error.message)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes until little is left. Writers that keep that from happening are held back until it does.
fn catch_up(engine: &mut Engine) -> Result<()> {
    let mut quiet = 0;
    let mut begun = Instant::now();
    let since = begun;
    // A round takes longer where every commit is one of all nodes.
    let short = match engine.others.is_cluster() {
        true => SHORT_ROUND * 3,
        false => SHORT_ROUND,
    };
    loop {
        let held = engine.brake.share();
        let round = engine.round()?;
        // Under a heavy load a round is never empty, but rounds become short.
        quiet = match round.rows <= FEW_ROWS && round.time <= short {
            true => quiet + 1,
            false => 0,
        };
        if quiet >= 2 {
            // Whatever brake there is stays until the lock is there.
            return Ok(());
        }
        // Rounds have become short, which is not enough here.
        engine.brake.hold(held);
        if begun.elapsed() > PATIENCE {
            begun = Instant::now();
            engine.press_brake();
        }
        if !engine.may_brake && since.elapsed() > LONGEST_PURSUIT {
            return Err(MigrateError::NoSwitch {
                attempts: 1,
                reason: "rows change faster than they can be written again, and nobody can hold a cluster's writers back"
                    .into(),
            });
        }
    }
}

/// Waits for the end of all snapshots that have seen a part of what was written at once, and leaves
/// none behind.
///
/// What is written meanwhile must not be torn itself, or there is no end: so a round is one
/// transaction as long as that can be, and writers that outrun even that are held back, more with
/// every turn.
fn outlive_snapshots(engine: &mut Engine) -> Result<()> {
    let usual = std::mem::replace(&mut engine.one_transaction, MAX_WHOLE);
    let mut turns = 0;
    while engine.is_torn {
        turns += 1;
        if turns > 1 {
            engine.press_brake();
        }
        Snapshots::now(engine)?.wait(engine)?;
        catch_up(engine)?;
    }
    engine.one_transaction = usual;
    Ok(())
}

/// Waits until a session whose connection broke has ended, and with it what it was doing.
pub(crate) fn must_end(control: &mut Session, id: u32) -> Result<()> {
    let begun = Instant::now();
    let _ = control.run(&format!("KILL {id}"));
    let id = id.to_string();
    while begun.elapsed() < Duration::from_secs(60) {
        let sessions = control.named("SHOW PROCESSLIST")?;
        let is_there = sessions.iter().flatten().any(|(name, value)| {
            name.eq_ignore_ascii_case("Id") && value.as_deref() == Some(id.as_str())
        });
        if !is_there {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(MigrateError::Request(format!(
        "the connection broke while the tables were renamed, and the server still runs its session {id}: \
         wait for its end, then --resume"
    )))
}

/// Whether a table is in the session's database.
pub(crate) fn exists(session: &mut Session, table: &str) -> Result<bool> {
    Ok(crate::facts::comment(session, table)?.is_some())
}

/// Whether the tables have changed their names: the old rows are where they belong, or dropped
/// already.
pub(crate) fn is_switched(
    control: &mut Session,
    names: &Names,
    state: Option<&State>,
) -> Result<bool> {
    if exists(control, &names.new)? {
        return Ok(false);
    }
    match exists(control, &names.old)? {
        true => Ok(!is_sentry(control, names)?),
        false => Ok(state.is_some_and(|state| state.phase == SWITCH)),
    }
}

/// Whether the table with the old one's name is only a sentry.
pub(crate) fn is_sentry(session: &mut Session, names: &Names) -> Result<bool> {
    let comment = crate::facts::comment(session, &names.old)?;
    Ok(comment.as_deref() == Some(SENTRY))
}

/// Drops a sentry that was left, and nothing else.
pub(crate) fn drop_sentry(session: &mut Session, names: &Names) -> Result<()> {
    if is_sentry(session, names)? {
        session.run(&format!("DROP TABLE {}", identifier(&names.old)))?;
    }
    Ok(())
}
