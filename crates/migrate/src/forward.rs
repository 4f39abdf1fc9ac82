//! From the checkpoint to the end: copy, check, switch.

use onionskin_keys::KeySet;
use onionskin_rowstream::apply::on_all;
use onionskin_rowstream::checkpoint::{Imprint, State};
use onionskin_rowstream::copy::Place;
use onionskin_rowstream::route::Route;
use onionskin_rowstream::session::Session;
use onionskin_schema::{Pins, identifier};
use onionskin_value::Family;

use crate::cluster;
use crate::definition;
use crate::done::{Done, plaintext_logs};
use crate::engine::Engine;
use crate::error::{MigrateError, Result};
use crate::facts;
use crate::foreign_catalog;
use crate::foreign_keys::Moment;
use crate::imprint::{Known, made};
use crate::job::Job;
use crate::locks::free_number;
use crate::operation::Operation;
use crate::others::Others;
use crate::phase::{COPY, REVERSE, SWITCH};
use crate::preflight::{self, Names};
use crate::prepared;
use crate::progress::Progress;
use crate::snapshots::Snapshots;
use crate::switch::{Switch, Switched};
use crate::trigger_catalog;

impl Job {
    /// From the checkpoint to the end.
    pub(crate) fn go_on(
        &self,
        mut control: Session,
        others: Others,
        family: Family,
        mut state: State,
        progress: &Progress,
    ) -> Result<Done> {
        let names = Names::of(&self.table);
        let checkpoint = self.checkpoint(&names);
        // What happens to the table from here on, new triggers and keys included, is in the log
        // behind this place.
        let log_end = preflight::log_end(&mut control)?;
        // Only a switch moves keys. Whoever has dropped one before has meant it.
        if state.phase == SWITCH {
            let moves = self.moves(&state, &names, family);
            let triggers = self.triggers(&state, &names);
            triggers.settle(&mut control, Moment::Before)?;
            let told = moves.settle(&mut control, Moment::Before)?;
            told.into_iter().for_each(|told| progress.note(told));
        }
        let old = self.old_as_noted(&mut control, &state)?;
        let made = made(&state)?.clone();
        let new = self.known(&mut control, &names.new, &made)?;
        let table = self.pins_of(&new);
        let operation = Operation::of(&state)?;
        self.must_be_under_the_active_key(&operation, &new)?;
        let dropped = operation.dropped();
        let (keys, consent) = (self.keys.as_ref(), &self.consent);
        let mut route = definition::route((&old, &new), consent, keys, family, &dropped)?;
        // A row that changed may be gone by now without a word in the log.
        route.replaces &= self.moves(&state, &names, family).cascading().is_none();
        let sessions = self.row_sessions(&route)?;
        if state.position.is_empty() {
            prepared::wait(&mut control)?;
            // What is in the log before this position is visible after the mark that follows, and
            // only then is copied.
            state.position = log_end;
            state.phase = COPY.into();
            checkpoint.write(&mut control, &state)?;
        } else {
            delete_behind_copy(&mut control, &route, &state)?;
        }
        state.locked_at = None;
        let original = state.original.clone();
        let noted = state.clone();
        let mut engine = self.engine(control, sessions, route, checkpoint, state, progress)?;
        engine.join(others);
        let old_snapshots = self.copy_and_compare(&mut engine, &made)?;
        if !self.switch {
            engine.round()?;
            self.must_be_unchanged(&mut engine.control, &names.new, &made)?;
            return Ok(Done::of(&engine.state, None));
        }
        old_snapshots.wait(&mut engine)?;
        let register = |session: &mut Session| self.register(session, free_number());
        let switched = Switch {
            login: &self.login,
            database: &self.database,
            names: &names,
            family,
            phase: SWITCH,
            keeps_numbers: !operation.tells_number(),
            register: &register,
            keys: self.key_set(),
            imprints: [&original, &made],
            moves: self.moves(&noted, &names, family),
            triggers: self.triggers(&noted, &names),
        }
        .run(&mut engine)?;
        self.end_switched(engine, family, switched, table, progress)
    }

    /// The old table, if it is as it was when the migration began.
    fn old_as_noted(&self, control: &mut Session, state: &State) -> Result<Known> {
        let old = self.facts(control, &self.table)?;
        if facts::stable(&old.definition) != facts::stable(&state.definition) {
            return Err(MigrateError::Changed(
                "its definition is another one".into(),
            ));
        }
        cluster::must_suit(control, state, &old, state.reverse)?;
        let old = Known::noted(old, &state.original)?;
        self.must_be_pinned(&[&old.logical])?;
        preflight::check_table(control, &old)?;
        if trigger_catalog::read(control, &self.database, &self.table)? != state.triggers {
            return Err(MigrateError::Changed("its triggers are others".into()));
        }
        let foreign_keys = foreign_catalog::read(control, &self.database, &self.table)?;
        match foreign_keys == state.foreign_keys {
            true => Ok(old),
            false => Err(MigrateError::Changed(
                "its foreign keys, or those that point at it, are others".into(),
            )),
        }
    }

    /// Fills the new table, which is to stay as it was made. What it gives back are the snapshots
    /// that may have seen a part of it.
    fn copy_and_compare(&self, engine: &mut Engine, made: &Imprint) -> Result<Snapshots> {
        engine.drain()?;
        engine.copy()?;
        let new = engine.route.target.clone();
        self.must_be_unchanged(&mut engine.control, &new, made)?;
        // what has happened up to here must be in the new table before a transaction that is not
        // waited for can begin
        engine.round()?;
        let old_snapshots = Snapshots::now(engine)?;
        refresh_statistics(engine)?;
        engine.verify()?;
        Ok(old_snapshots)
    }

    /// After the switch: the old table is kept up to date, or it is the end. `table` is what is to
    /// be pinned.
    fn end_switched(
        &self,
        engine: Engine,
        family: Family,
        switched: Switched,
        table: Pins,
        progress: &Progress,
    ) -> Result<Done> {
        let (mut control, checkpoint, mut state, position) = engine.end();
        let names = Names::of(&self.table);
        self.moves(&state, &names, family)
            .settle(&mut control, Moment::After)?;
        if state.reverse {
            // What came up to here, the rename included, is in the old table.
            state.phase = REVERSE.into();
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
            ..Done::of(&state, Some(switched))
        };
        self.finish(&mut control, &state, done)
    }

    /// After the switch.
    pub(crate) fn finish(
        &self,
        control: &mut Session,
        state: &State,
        mut done: Done,
    ) -> Result<Done> {
        let names = Names::of(&self.table);
        // While there is a checkpoint, --resume comes here again.
        let drops = self.drop_old && done.stragglers.left.is_empty();
        if drops {
            control.run_until_done(&format!("DROP TABLE IF EXISTS {}", identifier(&names.old)))?;
        }
        self.checkpoint(&names).drop(control)?;
        done.old = (!drops).then_some(names.old);
        done.plaintext_logs = plaintext_logs(control, state)?;
        Ok(done)
    }

    /// A rotation that began under another key than today's, maybe long ago, is not the one that is
    /// wanted.
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
}

/// Deletes rows of the new table whose changes are not kept: those behind the checkpoint were
/// copied, and changes of rows behind the copy are not kept.
fn delete_behind_copy(control: &mut Session, route: &Route, state: &State) -> Result<()> {
    let condition = match state.place() {
        Place::Start => "TRUE".into(),
        Place::Behind(key) if route.key.number(&key).is_some() => {
            route.key.range(&route.target, Some(&key), None)
        }
        Place::Behind(_) | Place::End => "FALSE".into(),
    };
    let sql = format!(
        "DELETE FROM {} WHERE {condition} LIMIT 10000",
        identifier(&route.target)
    );
    while control.run_until_done(&sql)? > 0 {}
    Ok(())
}

/// Estimates of the new table are from when it was small.
fn refresh_statistics(engine: &mut Engine) -> Result<()> {
    let table = identifier(&engine.route.target);
    on_all(&mut engine.sessions[..1], |session| {
        session.rows(&format!("ANALYZE TABLE {table}"))?;
        Ok(())
    })?;
    Ok(())
}
