//! Changing a table while the application writes to it: encrypt, decrypt, other capabilities, other keys, any ALTER.
//!
//! A new table is made beside the old one, filled, kept up to date from the binary log, compared with the old one row by row, and put
//! in its place. No trigger, no lock but for the last moment; a kill at any time costs time and no row.
//!
//! | phase | what happens | after a kill |
//! |---|---|---|
//! | prepare | checkpoint, new table, position in the binary log | begins again |
//! | copy | rows in the order of the key; changes in between | goes on from the last chunk |
//! | check | both tables are compared; differences are mended once | compares again |
//! | switch | lock, last changes, rename | done, or goes on as before |
//! | reverse | on request the old table is kept up to date for a way back | goes on |
//!
//! | file | what it is |
//! |---|---|
//! | `operation` | what is asked for |
//! | `facts`, `preflight` | what the server says of the table, and what is refused |
//! | `definition`, `sealing` | the new table; values on their way into it |
//! | `imprint`, `consent` | that the tables are the ones that are meant; what the server may learn |
//! | `engine` | rounds of changes, with copying and comparing between them |
//! | `specifications` | what stands in `--alter` |
//! | `statement` | what a statement in the binary log means |
//! | `snapshots` | transactions that would see a part of the rows |
//! | `switch` | the last moment |
//! | `stragglers` | what was written to the old table behind it |
//! | `conflict` | rows that the new table does not take |
//! | `reverse` | after it: the old table is fed, and the way back |
//! | `throttle`, `replicas`, `brake` | waiting for others; making writers wait that never would |
//! | `begun`, `progress`, `status` | telling what happens |

mod begun;
mod brake;
mod conflict;
mod consent;
mod definition;
mod engine;
mod error;
mod facts;
mod imprint;
mod operation;
mod preflight;
mod progress;
mod replicas;
mod reverse;
mod sealing;
mod snapshots;
mod specifications;
mod statement;
mod status;
mod stragglers;
mod switch;
mod throttle;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onionskin_keys::KeySet;
use onionskin_rowstream::apply::{ONE_TRANSACTION, on_all};
use onionskin_rowstream::binlog::TableName;
use onionskin_rowstream::checkpoint::{COMMENT, Checkpoint, Imprint, State, Untrusted, VERSION};
use onionskin_rowstream::copy::Place;
use onionskin_rowstream::feed::{Feed, FeedOptions};
use onionskin_rowstream::pending::Pending;
use onionskin_rowstream::route::Route;
use onionskin_rowstream::session::{Login, Session};
use onionskin_schema::{PinnedTable, Pins, Table, identifier};
use onionskin_value::Family;

use brake::Brake;
use engine::Engine;
use error::Result;
use facts::Facts;
use imprint::Known;
use snapshots::Snapshots;
use switch::{Switch, drop_sentry, exists, is_sentry};
use throttle::Throttle;

pub use begun::Begun;
pub use consent::Consent;
pub use definition::Keys;
pub use error::MigrateError;
pub use operation::{Operation, parse_columns};
pub use preflight::Names;
pub use progress::Progress;
pub use status::{Running, status};
pub use stragglers::Stragglers;
pub use switch::Switched;
pub use throttle::{Limits, parse_load};

/// Sessions of one migration beside those for rows: for marks, for the lock, for the rename.
const OTHER_SESSIONS: usize = 3;
/// For how long the server may wait for the reader of the log, who waits for the writer, who is busy with rows. The stream would be made
/// again, but whoever reads it twice falls behind.
const READING_PATIENCE: Duration = Duration::from_secs(3600);
/// The checkpoint's phase when the new table may have been dropped.
const ABORT: &str = "abort";
/// Most threads.
pub const MOST_THREADS: usize = 32;

/// A table and how it is treated.
#[derive(Clone)]
pub struct Job {
    /// The server, and an account that may do all of this.
    pub login: Login,
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
    /// Whether the old table is kept up to date after the switch, until [`Job::end_reverse`] or [`Job::roll_back`].
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

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows that were copied.
    pub rows: u64,
    /// Rows that were written again because they had changed.
    pub changes: u64,
    /// Rows that the comparison found to be wrong, and that were mended.
    pub repaired: u64,
    /// `None` if everything is ready and the switch was postponed.
    pub switched: Option<Switched>,
    /// What was written to the old table between the lock and the rename. There should be nothing.
    pub stragglers: Stragglers,
    /// Where the old rows are; `None` if they were dropped, or are still in place.
    pub old: Option<String>,
    /// The old table was kept up to date, and another process has asked for it.
    pub handed_over: bool,
    /// Files of the binary log that hold rows of the old table in plaintext, if columns became protected.
    pub plaintext_logs: Vec<String>,
    /// Which migration it was.
    pub begun: Option<Begun>,
    /// The table that has the name now, as the migration knows it and whatever the server shows; `None` if it is the one before, or if
    /// it cannot be told whether it came from the pinned one.
    pub table: Option<Pins>,
}

impl Job {
    /// Does it, from the beginning.
    pub fn run(&self, operation: &Operation, progress: &Progress) -> Result<Done> {
        let (mut job, control) = self.spelled()?;
        job.consent = Consent::of(operation, job.reverse);
        job.begin(control, operation, progress, new_id())
            .map_err(MigrateError::of_lost_connection)
    }

    fn begin(
        &self,
        mut control: Session,
        operation: &Operation,
        progress: &Progress,
        id: String,
    ) -> Result<Done> {
        let family = facts::family(&mut control)?;
        let old = self.facts(&mut control, &self.table)?;
        self.must_be_pinned(&[&old.logical])?;
        let names = Names::of(&self.table);
        preflight::check_log(&self.login, &mut control, &self.database, family)?;
        preflight::check_table(&mut control, &old)?;
        self.lock_out_others(&mut control)?;
        for name in [&names.checkpoint, &names.new, &names.old] {
            if exists(&mut control, name)? {
                return Err(MigrateError::Refused {
                    table: format!("{}.{}", self.database, self.table),
                    reason: format!(
                        "there is a table {name}, from a migration that was not ended or whose old table was kept: \
                         --resume goes on with it, --abort cleans up, and an old table is yours to drop"
                    ),
                });
            }
        }
        let planned = definition::statements(&old, &names, operation, self.keys.as_ref(), family)?;
        let checkpoint = self.checkpoint(&names);
        let mut state = State {
            version: VERSION,
            id,
            operation: serde_json::to_string(operation)
                .map_err(|error| MigrateError::Request(error.to_string()))?,
            definition: old.definition.clone(),
            phase: "prepare".into(),
            position: String::new(),
            copied_to: None,
            copied: false,
            rows: 0,
            estimate: old.rows,
            changes: 0,
            repaired: 0,
            began: now(),
            server: control.identity()?,
            reverse: self.reverse,
            locked_at: None,
            original: old.imprint.clone(),
            made: None,
        };
        checkpoint.create(&mut control, &state)?;
        progress.note(Begun::of(&state)?.to_string());
        let old = Known::at_the_beginning(old);
        let prepared = (|| {
            let statements = &planned.statements;
            definition::create(&mut control, &old, &names, statements, operation)?;
            let new = self.facts(&mut control, &names.new)?;
            let new = Known::made(new, planned.physical.as_ref(), &old)?;
            let dropped = operation.dropped();
            let (keys, consent) = (self.keys.as_ref(), &self.consent);
            if self.reverse {
                reverse::check_reversible(&new, &old, &dropped)?;
                definition::route((&new, &old), consent, keys, family, &[])?;
            }
            definition::route((&old, &new), consent, keys, family, &dropped)?;
            Ok(new.imprint.clone())
        })();
        match prepared {
            Ok(made) => state.made = Some(made),
            Err(error) => {
                // Nothing was copied yet, so nothing is left behind.
                self.clean_up(&mut control, &names, &checkpoint)?;
                return Err(error);
            }
        }
        checkpoint.write(&mut control, &state)?;
        self.go_on(control, family, state, progress)
    }

    /// Goes on with what a killed or ended process has begun.
    pub fn resume(&self, progress: &Progress) -> Result<Done> {
        let (job, control) = self.spelled()?;
        job.go_on_from_checkpoint(control, progress)
            .map_err(MigrateError::of_lost_connection)
    }

    fn go_on_from_checkpoint(&self, mut control: Session, progress: &Progress) -> Result<Done> {
        let family = facts::family(&mut control)?;
        let names = Names::of(&self.table);
        self.must_be_begun(&mut control, &names)?;
        self.lock_out_others(&mut control)?;
        let checkpoint = self.checkpoint(&names);
        let Some(mut state) = checkpoint.read(&mut control)? else {
            // Killed in the first moment: nothing else was made.
            checkpoint.drop(&mut control)?;
            return self
                .must_be_begun(&mut control, &names)
                .map(|()| Done::default());
        };
        self.must_be_meant(&state)?;
        progress.note(format!("going on with {}", Begun::of(&state)?));
        let here = control.identity()?;
        // A way back that has begun on another server goes on with a comparison.
        let is_elsewhere = !state.server.is_empty() && state.server != here;
        if is_elsewhere && !reverse::is_reverse(&state) {
            return Err(MigrateError::Request(format!(
                "the migration began on another server ({}, this is {here}), whose binary log is not this one's: \
                 clean up with --abort and begin again",
                state.server
            )));
        }
        if reverse::is_reverse(&state) {
            return self.resume_reverse(control, family, state, progress);
        }
        if is_switched(&mut control, &names, Some(&state))? {
            self.must_be_unchanged(&mut control, &self.table, made(&state)?)?;
            let noted = (made(&state)?, (names.old.as_str(), &state.original));
            let table = self.settled(&mut control, noted)?;
            let dropped = operation_of(&state)?.dropped();
            let late = self.recover(&mut control, family, &names, &mut state, &dropped)?;
            if state.reverse {
                let mut done = self.keep_old(control, family, state, None, progress)?;
                done.stragglers = late;
                done.table = table;
                return Ok(done);
            }
            let done = Done {
                stragglers: late,
                table,
                ..done(&state, None)
            };
            return self.finish(&mut control, &names, &checkpoint, &state, done);
        }
        if state.phase == ABORT {
            return Err(MigrateError::Request(format!(
                "what the migration of {}.{} had made was being removed: --abort ends that",
                self.database, self.table
            )));
        }
        drop_sentry(&mut control, &names)?;
        if state.phase == "prepare" {
            let operation = operation_of(&state)?;
            let old = self.facts(&mut control, &self.table)?;
            operation.must_be_allowed(&old.logical, &self.consent)?;
            self.clean_up(&mut control, &names, &checkpoint)?;
            drop(control);
            let again = Self {
                reverse: state.reverse,
                ..self.clone()
            };
            return again.begin(self.control()?, &operation, progress, state.id);
        }
        preflight::check_log(&self.login, &mut control, &self.database, family)?;
        self.go_on(control, family, state, progress)
    }

    /// Removes everything that a migration has made beside the table. The table itself is as it was.
    pub fn abort(&self) -> Result<()> {
        let (job, control) = self.spelled()?;
        job.undo(control)
    }

    fn undo(&self, mut control: Session) -> Result<()> {
        let names = Names::of(&self.table);
        self.must_be_begun(&mut control, &names)?;
        self.lock_out_others(&mut control)?;
        let checkpoint = self.checkpoint(&names);
        // A damaged or forged checkpoint is no reason to keep it. Nothing is read or written here but names.
        let found = checkpoint.peek(&mut control).unwrap_or_default();
        let is_ours = |why| matches!(why, None | Some(Untrusted::NoKeys));
        let state = found.and_then(|found| found.state.filter(|_| is_ours(found.untrusted)));
        if state.as_ref().is_some_and(reverse::is_reverse) {
            return Err(reverse::switched_already(&self.table));
        }
        if is_switched(&mut control, &names, state.as_ref())? {
            // Where --resume cannot read what came behind the lock, this is what is left.
            if state.is_some_and(|state| state.reverse && state.locked_at.is_none()) {
                return Err(reverse::switched_already(&self.table));
            }
            checkpoint.drop(&mut control)?;
            return Err(MigrateError::Request(format!(
                "the tables were switched before the end came: {} is the new table, and {}, if it is still there, holds the old rows until you drop it",
                self.table, names.old
            )));
        }
        if let Some(mut state) = state {
            // Without the new table it would look like the end of a switch.
            state.phase = ABORT.into();
            checkpoint.write(&mut control, &state)?;
        }
        self.clean_up(&mut control, &names, &checkpoint)
    }

    /// The statements that a run would begin and end with.
    pub fn dry_run(&self, operation: &Operation) -> Result<Vec<String>> {
        let (job, control) = self.spelled()?;
        job.rehearse(control, operation)
    }

    fn rehearse(&self, mut control: Session, operation: &Operation) -> Result<Vec<String>> {
        let family = facts::family(&mut control)?;
        let old = self.facts(&mut control, &self.table)?;
        self.must_be_pinned(&[&old.logical])?;
        let names = Names::of(&self.table);
        preflight::check_log(&self.login, &mut control, &self.database, family)?;
        preflight::check_table(&mut control, &old)?;
        let planned = definition::statements(&old, &names, operation, self.keys.as_ref(), family)?;
        let mut lines = planned.statements;
        let key = old.unique.iter().find_map(|index| old.key(index));
        lines.push(match key {
            Some(key) => format!(
                "-- about {} rows are copied in the order of {}, compared, and kept up to date from the binary log",
                old.rows, key.index
            ),
            None => "-- no key to copy by".into(),
        });
        lines.push(format!(
            "RENAME TABLE {} TO {}, {} TO {}",
            identifier(&self.table),
            identifier(&names.old),
            identifier(&names.new),
            identifier(&self.table)
        ));
        Ok(lines)
    }

    /// The job with its names as the server writes them, and a session. All its other sessions must be with the same server.
    fn spelled(&self) -> Result<(Self, Session)> {
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

    fn control(&self) -> Result<Session> {
        let mut control =
            Session::connect(&self.login).map_err(MigrateError::sql("connecting to the server"))?;
        control
            .run(&format!("USE {}", identifier(&self.database)))
            .map_err(MigrateError::sql("opening the database"))?;
        Ok(control)
    }

    fn checkpoint(&self, names: &Names) -> Checkpoint {
        let keys = self.keys.as_ref().map(|keys| &keys.set);
        Checkpoint::new(&self.database, &names.checkpoint, keys)
    }

    fn key_set(&self) -> Option<&KeySet> {
        self.keys.as_ref().map(|keys| keys.set.as_ref())
    }

    /// A table of this migration, by the name that it has now.
    fn known(&self, session: &mut Session, table: &str, imprint: &Imprint) -> Result<Known> {
        Known::noted(self.facts(session, table)?, imprint)
    }

    fn facts(&self, session: &mut Session, table: &str) -> Result<Facts> {
        Facts::read(session, &self.database, table, self.key_set())?.ok_or_else(|| {
            MigrateError::Request(format!("there is no table {}.{table}", self.database))
        })
    }

    fn must_be_begun(&self, control: &mut Session, names: &Names) -> Result<()> {
        let comment = facts::comment(control, &names.checkpoint)?;
        match comment.as_deref() {
            Some(COMMENT) => Ok(()),
            None => Err(MigrateError::Request(format!(
                "no migration of {}.{} has begun",
                self.database, self.table
            ))),
            Some(_) => Err(MigrateError::Request(format!(
                "the table {} is no migration's, and neither is what has a name like it: rename it, for that is a helper's name",
                names.checkpoint
            ))),
        }
    }

    /// Holds named locks until the session ends. Every session of a migration holds one: after a kill, statements of its
    /// sessions may still run, and whoever goes on must wait for their end.
    fn lock_out_others(&self, control: &mut Session) -> Result<()> {
        for number in (0..MOST_THREADS + OTHER_SESSIONS).rev() {
            let got = control.text(&format!(
                "SELECT GET_LOCK('{}', 15)",
                self.lock_name(number)
            ))?;
            if got != "1" {
                return Err(MigrateError::Busy(self.table.clone()));
            }
            if number > 0 {
                control.text(&format!(
                    "SELECT RELEASE_LOCK('{}')",
                    self.lock_name(number)
                ))?;
            }
        }
        Ok(())
    }

    fn lock_name(&self, number: usize) -> String {
        // FNV-1a: names are longer than a lock's may be.
        let hash = format!("{}\0{}", self.database, self.table)
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("onionskin-{hash:016x}-{number}")
    }

    fn register(&self, session: &mut Session, number: usize) -> Result<()> {
        // Sessions of an earlier attempt to switch may just be ending.
        match session.text(&format!(
            "SELECT GET_LOCK('{}', 15)",
            self.lock_name(number)
        ))? == "1"
        {
            true => Ok(()),
            false => Err(MigrateError::Busy(self.table.clone())),
        }
    }

    fn clean_up(
        &self,
        control: &mut Session,
        names: &Names,
        checkpoint: &Checkpoint,
    ) -> Result<()> {
        control.run(&format!("DROP TABLE IF EXISTS {}", identifier(&names.new)))?;
        drop_sentry(control, names)?;
        checkpoint.drop(control)?;
        Ok(())
    }

    /// From the checkpoint to the end.
    fn go_on(
        &self,
        mut control: Session,
        family: Family,
        mut state: State,
        progress: &Progress,
    ) -> Result<Done> {
        let names = Names::of(&self.table);
        let checkpoint = self.checkpoint(&names);
        // What happens to the table from here on, new triggers and keys included, is in the log behind this place.
        let log_end = preflight::log_end(&mut control)?;
        let old = self.facts(&mut control, &self.table)?;
        if facts::stable(&old.definition) != facts::stable(&state.definition) {
            return Err(MigrateError::Changed(
                "its definition is another one".into(),
            ));
        }
        let old = Known::noted(old, &state.original)?;
        self.must_be_pinned(&[&old.logical])?;
        preflight::check_table(&mut control, &old)?;
        let made = made(&state)?.clone();
        let new = self.known(&mut control, &names.new, &made)?;
        let table = self.pins_of(&new);
        let operation = operation_of(&state)?;
        self.must_be_under_the_active_key(&operation, &new)?;
        let dropped = operation.dropped();
        let (keys, consent) = (self.keys.as_ref(), &self.consent);
        let route = definition::route((&old, &new), consent, keys, family, &dropped)?;
        let sessions = self.row_sessions(&route)?;
        if state.position.is_empty() {
            // What is in the log before this position is visible after the mark that follows, and only then is copied.
            state.position = log_end;
            state.phase = "copy".into();
            checkpoint.write(&mut control, &state)?;
        } else {
            // Rows behind the checkpoint were copied, and changes of rows behind the copy are not kept: away with them.
            let condition = match state.place() {
                Place::Start => "TRUE".into(),
                Place::Behind(key) if route.key.number(&key).is_some() => {
                    route.key.range(&names.new, Some(&key), None)
                }
                Place::Behind(_) | Place::End => "FALSE".into(),
            };
            let sql = format!(
                "DELETE FROM {} WHERE {condition} LIMIT 10000",
                identifier(&names.new)
            );
            while control.run_until_done(&sql)? > 0 {}
        }
        state.locked_at = None;
        let original = state.original.clone();
        let mut engine = self.engine(control, sessions, route, checkpoint, state, progress)?;
        engine.drain()?;
        engine.copy()?;
        self.must_be_unchanged(&mut engine.control, &names.new, &made)?;
        // what has happened up to here must be in the new table before a transaction that is not waited for can begin
        engine.round()?;
        let old_snapshots = Snapshots::now(&mut engine)?;
        self.refresh_statistics(&mut engine)?;
        engine.verify()?;
        if !self.switch {
            engine.round()?;
            self.must_be_unchanged(&mut engine.control, &names.new, &made)?;
            return Ok(done(&engine.state, None));
        }
        old_snapshots.wait(&mut engine)?;
        let register = |session: &mut Session| self.register(session, free_number());
        let switched = Switch {
            login: &self.login,
            names: &names,
            family,
            phase: "switch",
            keeps_numbers: !operation.tells_number(),
            register: &register,
            keys: self.key_set(),
            imprints: [&original, &made],
        }
        .run(&mut engine)?;
        let (mut control, checkpoint, mut state, position) = engine.end();
        if state.reverse {
            // What came up to here, the rename included, is in the old table.
            state.phase = reverse::REVERSE.into();
            state.position = position;
            state.locked_at = None;
            state.definition = facts::definition(&mut control, &self.database, &self.table)?;
            checkpoint.write(&mut control, &state)?;
            let done = self.keep_old(control, family, state, Some(switched), progress)?;
            return Ok(Done {
                table: Some(table),
                ..done
            });
        }
        let done = Done {
            table: Some(table),
            ..done(&state, Some(switched))
        };
        self.finish(&mut control, &names, &checkpoint, &state, done)
    }

    /// An error unless one of these tables is the pinned one, if one is pinned.
    fn must_be_pinned(&self, tables: &[&Table]) -> Result<()> {
        let Some(pinned) = &self.pinned else {
            return Ok(());
        };
        let mut difference = None;
        for table in tables {
            let damage = table.damaged.clone();
            match damage.or_else(|| pinned.difference(Some(table))) {
                None => return Ok(()),
                Some(other) => difference = difference.or(Some(other)),
            }
        }
        Err(MigrateError::NotPinned {
            table: format!("{}.{}", self.database, self.table),
            what: difference.unwrap_or_else(|| "there is no such table".into()),
        })
    }

    /// What is to be pinned when a table has come into its place.
    fn pins_of(&self, known: &Known) -> Pins {
        let table = Table {
            name: self.table.clone(),
            ..known.logical.clone()
        };
        Pins::of([&table])
    }

    /// After the tables were switched by a process that was killed then: what is to be pinned. The table in place is known by the first
    /// imprint; it or the other one, which it came from, must be the pinned one. `None` if that cannot be told.
    fn settled(
        &self,
        control: &mut Session,
        (imprint, (other, other_imprint)): (&Imprint, (&str, &Imprint)),
    ) -> Result<Option<Pins>> {
        let Ok(now) = self.known(control, &self.table, imprint) else {
            return Ok(None);
        };
        if self.must_be_pinned(&[&now.logical]).is_ok() {
            return Ok(Some(self.pins_of(&now)));
        }
        if !exists(control, other)? {
            return Ok(None);
        }
        match self.known(control, other, other_imprint) {
            Ok(other) => self.must_be_pinned(&[&now.logical, &other.logical])?,
            Err(_) => self.must_be_pinned(&[&now.logical])?,
        }
        Ok(Some(self.pins_of(&now)))
    }

    /// An error if another migration was asked for than the one that has begun.
    fn must_be_meant(&self, state: &State) -> Result<()> {
        match &self.id {
            Some(id) if *id != state.id => Err(MigrateError::Request(format!(
                "what has begun with {}.{} is not migration {id}, but {}: the checkpoint may be one of an earlier migration that was put \
                 back; --abort, and begin again",
                self.database,
                self.table,
                Begun::of(state)?
            ))),
            _ => Ok(()),
        }
    }

    /// An error if a table is not the one that was noted.
    fn must_be_unchanged(
        &self,
        session: &mut Session,
        table: &str,
        imprint: &Imprint,
    ) -> Result<()> {
        let now = imprint::read(session, &self.database, table, self.key_set())?;
        imprint::must_be(table, &now.unwrap_or_default(), imprint)
    }

    /// A rotation that began under another key than today's, maybe long ago, is not the one that is wanted.
    fn must_be_under_the_active_key(&self, operation: &Operation, new: &Known) -> Result<()> {
        let active = self.key_set().map(KeySet::active_key);
        let mut protected = new.logical.protected_columns();
        match operation {
            Operation::Rotate if protected.any(|(_, p)| Some(p.key_id) != active) => {
                Err(MigrateError::Request(format!(
                    "the rotation of {}.{} began under another data key than the one that is active now: --abort, and begin again",
                    self.database, self.table
                )))
            }
            _ => Ok(()),
        }
    }

    /// Sessions for rows.
    fn row_sessions(&self, route: &Route) -> Result<Vec<Session>> {
        let mut sessions = Vec::new();
        for number in 1..=self.threads.clamp(1, MOST_THREADS - 1) {
            let mut session = Session::connect(&self.login)?;
            self.register(&mut session, number)?;
            route.prepare(&mut session)?;
            sessions.push(session);
        }
        Ok(sessions)
    }

    /// Everything that rounds need, at the state's position in the binary log.
    fn engine(
        &self,
        control: Session,
        sessions: Vec<Session>,
        route: Route,
        checkpoint: Checkpoint,
        state: State,
        progress: &Progress,
    ) -> Result<Engine> {
        let options = FeedOptions {
            login: self.login.clone(),
            server_id: server_id(control.id()),
            table: TableName::new(&self.database, &self.table),
            columns_of: TableName::new(&self.database, &self.table),
            checkpoint: TableName::new(&self.database, &checkpoint.name),
            key: route.key.clone(),
            patience: READING_PATIENCE,
        };
        let position = state.position.clone();
        progress.set_changes(state.changes);
        Ok(Engine {
            feed: Feed::start(options, &position)?,
            // Where little is done yet, a wrong address can be told of.
            throttle: Throttle::new(self.limits.clone(), !state.copied)?,
            brake: Brake::new(&self.login, &self.database, &self.table)?,
            may_brake: true,
            route,
            checkpoint,
            state,
            pending: Pending::default(),
            control,
            sessions,
            progress: progress.clone(),
            renamed: false,
            led_to: None,
            is_torn: false,
            one_transaction: ONE_TRANSACTION,
            seen: 0,
            position,
            heard: Instant::now(),
        })
    }

    /// Estimates of the new table are from when it was small.
    fn refresh_statistics(&self, engine: &mut Engine) -> Result<()> {
        let table = identifier(&engine.route.target);
        on_all(&mut engine.sessions[..1], |session| {
            session.rows(&format!("ANALYZE TABLE {table}"))?;
            Ok(())
        })?;
        Ok(())
    }

    /// After the switch.
    fn finish(
        &self,
        control: &mut Session,
        names: &Names,
        checkpoint: &Checkpoint,
        state: &State,
        mut done: Done,
    ) -> Result<Done> {
        // While there is a checkpoint, --resume comes here again.
        let drops = self.drop_old && done.stragglers.left.is_empty();
        if drops {
            control.run_until_done(&format!("DROP TABLE IF EXISTS {}", identifier(&names.old)))?;
        }
        checkpoint.drop(control)?;
        done.old = (!drops).then(|| names.old.clone());
        done.plaintext_logs = plaintext_logs(control, state)?;
        Ok(done)
    }
}

/// The files of the binary log, which hold rows of the old table in plaintext where columns have become protected.
fn plaintext_logs(control: &mut Session, state: &State) -> Result<Vec<String>> {
    let Operation::Encrypt(_) = operation_of(state)? else {
        return Ok(Vec::new());
    };
    let logs = control.named("SHOW BINARY LOGS").unwrap_or_default();
    let names = logs.into_iter().filter_map(|row| row.into_iter().next()?.1);
    Ok(names.collect())
}

/// Whether the tables have changed their names: the old rows are where they belong, or dropped already.
fn is_switched(control: &mut Session, names: &Names, state: Option<&State>) -> Result<bool> {
    if exists(control, &names.new)? {
        return Ok(false);
    }
    match exists(control, &names.old)? {
        true => Ok(!is_sentry(control, names)?),
        false => Ok(state.is_some_and(|state| state.phase == "switch")),
    }
}

/// The table that was made, of a migration that has got so far.
fn made(state: &State) -> Result<&Imprint> {
    state.made.as_ref().ok_or_else(|| {
        MigrateError::Request(
            "the checkpoint is of a migration that had made no table: --abort, and begin again"
                .into(),
        )
    })
}

/// Digits that no other migration has.
fn new_id() -> String {
    format!("{:016x}", rand::random::<u64>())
}

fn done(state: &State, switched: Option<Switched>) -> Done {
    Done {
        rows: state.rows,
        changes: state.changes,
        repaired: state.repaired,
        stragglers: switched
            .as_ref()
            .map(|switched| switched.stragglers.clone())
            .unwrap_or_default(),
        switched,
        old: None,
        handed_over: false,
        plaintext_logs: Vec::new(),
        begun: Begun::of(state).ok(),
        table: None,
    }
}

fn operation_of(state: &State) -> Result<Operation> {
    serde_json::from_str(&state.operation).map_err(|_| {
        MigrateError::Request("the checkpoint was written by a newer version: use that one".into())
    })
}

/// The lock and the rename each take a number of their own.
fn free_number() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    MOST_THREADS + NEXT.fetch_add(1, Ordering::Relaxed) % OTHER_SESSIONS
}

/// An id that no replica has: they are small numbers or made from addresses.
fn server_id(connection: u32) -> u32 {
    0x6F6E_0000 | (connection & 0xffff)
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_secs())
}
