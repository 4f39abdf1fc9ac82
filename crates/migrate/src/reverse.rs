//! After the switch: the old table is kept up to date, so that there is a way back.
//!
//! ```text
//! switch ──▶ reverse: what is written to the new table goes to the old one, too ──▶ --finish: the old table is the user's
//!                                                                              └──▶ --roll-back: compared, switched back
//! ```
//!
//! It is the same engine with the tables exchanged: what it read up to the rename was written to
//! the old table anyway, so it goes on behind the rename. Where a kill came between the rename and
//! the note of that place, both tables are compared and mended instead.
//!
//! Another process asks the one that feeds to hand over ([`Checkpoint::ask`]); it ends, and its
//! locks are free.

use std::thread;
use std::time::Duration;

use onionskin_rowstream::checkpoint::{Checkpoint, State};
use onionskin_rowstream::route::Route;
use onionskin_rowstream::session::Session;
use onionskin_schema::identifier;
use onionskin_value::Family;

use crate::begun::Begun;
use crate::definition;
use crate::done::{Done, plaintext_logs};
use crate::engine::Engine;
use crate::error::{MigrateError, Result};
use crate::facts::{self, Facts};
use crate::foreign_keys::Moment;
use crate::imprint::{Known, made};
use crate::job::Job;
use crate::locks::free_number;
use crate::phase::{FINISH, REVERSE, ROLL_BACK, is_reverse};
use crate::preflight::{self, Names};
use crate::progress::Progress;
use crate::snapshots::Snapshots;
use crate::switch::{Switch, Switched, drop_sentry, exists};

/// How long the old table may be behind, and a request waits to be seen.
const PAUSE: Duration = Duration::from_millis(300);

/// The error of a request that the tables have left behind.
pub(crate) fn switched_already(table: &str) -> MigrateError {
    MigrateError::Request(format!(
        "{table} was switched, and its old rows are kept up to date: --finish ends that, --roll-back brings the old table back"
    ))
}

impl Names {
    /// With the roles of the tables exchanged.
    fn reversed(self) -> Self {
        Self {
            new: self.old,
            old: self.new,
            checkpoint: self.checkpoint,
        }
    }
}

/// Columns of the old table that the new one does not have, be it that others have their names,
/// cannot be kept up to date.
pub(crate) fn check_reversible(new: &Facts, old: &Facts, dropped: &[String]) -> Result<()> {
    let is_dropped = |name: &str| {
        dropped
            .iter()
            .any(|other| onionskin_schema::same_name(other, name))
    };
    let lost = old
        .logical
        .columns
        .iter()
        .find(|column| is_dropped(&column.name) || new.logical.column(&column.name).is_none());
    match lost {
        None => Ok(()),
        Some(column) => Err(MigrateError::Request(format!(
            "--reverse cannot keep column {} up to date, which the new table does not have: do it without --reverse",
            column.name
        ))),
    }
}

impl Job {
    /// Feeds the old table until another process asks for it. `state` is of the moment after the
    /// switch or later.
    pub(crate) fn keep_old(
        &self,
        control: Session,
        family: Family,
        state: State,
        switched: Option<Switched>,
        progress: &Progress,
    ) -> Result<Done> {
        // The way back is not worth anybody's waiting.
        let mut engine = self.reverse_engine(control, family, state, progress, false)?;
        progress.set_phase("keeping the old table");
        progress.note(format!(
            "{} is the new table; the old one is kept up to date until --finish or --roll-back",
            self.table
        ));
        loop {
            let round = engine.round().map_err(no_way_back)?;
            if engine.checkpoint.is_asked(&mut engine.control)? {
                let mut done = Done::of(&engine.state, switched);
                done.old = Some(Names::of(&self.table).old);
                done.handed_over = true;
                return Ok(done);
            }
            if round.rows == 0 {
                thread::sleep(PAUSE);
            }
        }
    }

    /// The engine from the new table, under the table's name, to the old one.
    fn reverse_engine(
        &self,
        mut control: Session,
        family: Family,
        mut state: State,
        progress: &Progress,
        may_brake: bool,
    ) -> Result<Engine> {
        let names = Names::of(&self.table).reversed();
        drop_sentry(&mut control, &names)?;
        let (source, route) = self.way_back(&mut control, family, &state)?;
        // Positions of another server's log mean nothing here.
        let here = control.identity()?;
        let is_same = state.server.is_empty() || state.server == here;
        let is_noted =
            is_reverse(&state) && is_same && preflight::is_in_log(&mut control, &state.position)?;
        state.server = here;
        state.locked_at = None;
        let sessions = self.row_sessions(&route)?;
        if !is_noted {
            state.position = preflight::log_end(&mut control)?;
        }
        state.definition.clone_from(&source.definition);
        let checkpoint = self.checkpoint(&names);
        let mut engine = self.engine(control, sessions, route, checkpoint, state, progress)?;
        engine.may_brake = may_brake;
        engine.drain()?;
        if !is_noted {
            engine.verify().map_err(no_way_back)?;
        }
        engine.state.phase = REVERSE.into();
        engine.round().map_err(no_way_back)?;
        Ok(engine)
    }

    /// The table as it is, and how its rows become those of the old one.
    fn way_back(
        &self,
        control: &mut Session,
        family: Family,
        state: &State,
    ) -> Result<(Known, Route)> {
        let source = self.facts(control, &self.table)?;
        if is_reverse(state)
            && facts::stable(&source.definition) != facts::stable(&state.definition)
        {
            return Err(no_way_back(MigrateError::Changed(
                "its definition is another one".into(),
            )));
        }
        let source = Known::noted(source, made(state)?)?;
        let target = self.known(control, &Names::of(&self.table).old, &state.original)?;
        check_reversible(&source, &target, &[])?;
        self.must_be_pinned(&[&source.logical, &target.logical])?;
        let (keys, consent) = (self.keys.as_ref(), &self.consent);
        let route = definition::route((&source, &target), consent, keys, family, &[])?;
        Ok((source, route))
    }

    /// Ends the feeding of the old table, which is the user's from now on, or is dropped.
    /// What it gives back tells which files of the binary log hold plaintext.
    pub fn end_reverse(&self) -> Result<Done> {
        let (job, mut control) = self.spelled()?;
        let names = Names::of(&job.table);
        let (_, state) = job.take_over(&mut control, &names)?;
        job.end_keeping(control, state)
    }

    /// The same for the process that holds the checkpoint; after a kill in the midst of it, too.
    fn end_keeping(&self, mut control: Session, mut state: State) -> Result<Done> {
        let names = Names::of(&self.table);
        if state.phase == ROLL_BACK && !exists(&mut control, &names.old)? {
            return Err(MigrateError::Request(format!(
                "{} was switched back to the old table already: --resume ends that",
                self.table
            )));
        }
        drop_sentry(&mut control, &names.clone().reversed())?;
        let table = made(&state)
            .and_then(|made| {
                let noted = (made, (names.old.as_str(), &state.original));
                self.settled(&mut control, noted)
            })
            .unwrap_or_default();
        let checkpoint = self.checkpoint(&names);
        // In any other phase a missing old table means that it was renamed.
        state.phase = FINISH.into();
        checkpoint.write(&mut control, &state)?;
        if self.drop_old {
            control.run_until_done(&format!("DROP TABLE IF EXISTS {}", identifier(&names.old)))?;
        }
        checkpoint.drop(&mut control)?;
        let mut done = Done::of(&state, None);
        done.table = table;
        done.old = (!self.drop_old).then_some(names.old);
        done.plaintext_logs = plaintext_logs(&mut control, &state)?;
        Ok(done)
    }

    /// Puts the old table, which was kept up to date, in the new one's place.
    pub fn roll_back(&self, progress: &Progress) -> Result<Done> {
        let (job, control) = self.spelled()?;
        job.switch_back(control, progress)
            .map_err(MigrateError::of_lost_connection)
    }

    fn switch_back(&self, mut control: Session, progress: &Progress) -> Result<Done> {
        let names = Names::of(&self.table);
        let family = facts::family(&mut control)?;
        self.must_be_begun(&mut control, &names)?;
        let state = self.kept(&mut control, &names)?;
        self.must_be_meant(&state)?;
        progress.note(format!("taking back {}", Begun::of(&state)?));
        if exists(&mut control, &names.old)? {
            // Without the right keys the old table is better kept up to date than left alone.
            self.way_back(&mut control, family, &state)?;
        }
        let (_, state) = self.take_over(&mut control, &names)?;
        let is_there = exists(&mut control, &names.old)?;
        self.settle_back(&mut control, family, &state, is_there)?;
        if !is_there {
            // in this phase only the rename takes the old table's name away
            return match state.phase == ROLL_BACK {
                true => self.end_killed_roll_back(control, family, state),
                false => Err(MigrateError::NoWayBack("it was dropped".into())),
            };
        }
        let names = names.reversed();
        let noted = state.clone();
        let imprints = [made(&state)?.clone(), state.original.clone()];
        let mut engine = self.reverse_engine(control, family, state, progress, true)?;
        engine.verify().map_err(no_way_back)?;
        Snapshots::now(&mut engine)?.wait(&mut engine)?;
        let register = |session: &mut Session| self.register(session, free_number());
        let switched = Switch {
            login: &self.login,
            database: &self.database,
            names: &names,
            family,
            phase: ROLL_BACK,
            keeps_numbers: true,
            register: &register,
            keys: self.key_set(),
            imprints: [&imprints[0], &imprints[1]],
            moves: self.moves(&noted, &names, family),
            triggers: self.triggers(&noted, &names),
        }
        .run(&mut engine)
        .map_err(no_way_back)?;
        let (mut control, _, state, _) = engine.end();
        self.settle_back(&mut control, family, &state, false)?;
        let original = self.known(&mut control, &self.table, &state.original);
        let done = Done {
            table: original.ok().map(|original| self.pins_of(&original)),
            ..Done::of(&state, Some(switched))
        };
        self.end_roll_back(&mut control, done)
    }

    /// Foreign keys are where they belong; `is_there` says that the old table has not got its name
    /// back.
    fn settle_back(
        &self,
        control: &mut Session,
        family: Family,
        state: &State,
        is_there: bool,
    ) -> Result<()> {
        // Only a switch moves keys.
        if state.phase != ROLL_BACK {
            return Ok(());
        }
        let names = Names::of(&self.table).reversed();
        let moment = match is_there {
            true => Moment::Before,
            false => Moment::After,
        };
        self.triggers(state, &names).settle(control, moment)?;
        self.moves(state, &names, family).settle(control, moment)?;
        Ok(())
    }

    /// After the tables were switched back by a process that was killed then.
    fn end_killed_roll_back(
        &self,
        mut control: Session,
        family: Family,
        mut state: State,
    ) -> Result<Done> {
        let names = Names::of(&self.table).reversed();
        let noted = (&state.original, (names.old.as_str(), made(&state)?));
        let table = self.settled(&mut control, noted)?;
        let late = self.recover(&mut control, family, &names, &mut state, &[])?;
        let done = Done {
            stragglers: late,
            table,
            ..Done::of(&state, None)
        };
        self.end_roll_back(&mut control, done)
    }

    /// After the tables were switched back.
    fn end_roll_back(&self, control: &mut Session, mut done: Done) -> Result<Done> {
        let names = Names::of(&self.table);
        let drops = self.drop_old && done.stragglers.left.is_empty();
        if drops {
            control.run_until_done(&format!("DROP TABLE IF EXISTS {}", identifier(&names.new)))?;
        }
        self.checkpoint(&names).drop(control)?;
        done.old = (!drops).then_some(names.new);
        Ok(done)
    }

    /// `--resume` of a checkpoint for which [`is_reverse`] holds.
    pub(crate) fn resume_reverse(
        &self,
        mut control: Session,
        family: Family,
        state: State,
        progress: &Progress,
    ) -> Result<Done> {
        let names = Names::of(&self.table);
        // Only the rename takes the old table's name away.
        let is_back = state.phase == ROLL_BACK && !exists(&mut control, &names.old)?;
        self.settle_back(&mut control, family, &state, !is_back)?;
        if is_back {
            return self.end_killed_roll_back(control, family, state);
        }
        if state.phase == FINISH {
            return self.end_keeping(control, state);
        }
        // Who asked before this process held the locks was killed since, or asks again.
        self.checkpoint(&names).clear_request(&mut control)?;
        let noted = (made(&state)?, (names.old.as_str(), &state.original));
        // Who feeds the old table looks at both.
        let table = self.settled(&mut control, noted).unwrap_or_default();
        let done = self.keep_old(control, family, state, None, progress)?;
        Ok(Done { table, ..done })
    }

    /// Makes the process that feeds the old table end, and takes its place.
    fn take_over(&self, control: &mut Session, names: &Names) -> Result<(Checkpoint, State)> {
        self.must_be_begun(control, names)?;
        let checkpoint = self.checkpoint(names);
        let asked = self.kept(control, names)?;
        checkpoint.ask(control)?;
        let locked = self.lock_out_others(control);
        checkpoint.clear_request(control)?;
        locked?;
        // As it is now that nobody else writes it.
        let state = self.kept(control, names)?;
        match state.id == asked.id {
            true => Ok((checkpoint, state)),
            false => Err(MigrateError::Request(format!(
                "the checkpoint of {}.{} is another migration's than a moment ago: see --status",
                self.database, self.table
            ))),
        }
    }

    /// The state of a migration whose old table is kept up to date.
    fn kept(&self, control: &mut Session, names: &Names) -> Result<State> {
        let state = self.checkpoint(names).read(control)?.filter(is_reverse);
        state.ok_or_else(|| {
            MigrateError::Request(format!(
                "{}.{} is not being kept for a way back: that begins with --reverse, and after a kill goes on with --resume",
                self.database, self.table
            ))
        })
    }
}

/// What ends the feeding costs nothing but the way back.
fn no_way_back(error: MigrateError) -> MigrateError {
    match error {
        MigrateError::Conflict { message } => MigrateError::NoWayBack(format!(
            "the old table does not take a row of the new one: {message}"
        )),
        MigrateError::Changed(what) => MigrateError::NoWayBack(format!(
            "the table was changed by another statement ({what})"
        )),
        other => other,
    }
}
