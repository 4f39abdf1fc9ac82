//! Going on with what a killed or ended process has begun, by the phase in the checkpoint.

use onionskin_rowstream::checkpoint::State;
use onionskin_rowstream::session::Session;
use onionskin_schema::identifier;
use onionskin_value::Family;

use crate::begun::Begun;
use crate::done::Done;
use crate::error::{MigrateError, Result};
use crate::everywhere::put_back;
use crate::facts;
use crate::foreign_keys::Moment;
use crate::imprint::made;
use crate::job::Job;
use crate::operation::Operation;
use crate::phase::{ABORT, PREPARE, is_reverse};
use crate::preflight::{self, Names};
use crate::progress::Progress;
use crate::switch::{drop_sentry, is_switched};

impl Job {
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
        let others = self.lock_out_others(&mut control)?;
        let checkpoint = self.checkpoint(&names);
        let Some(state) = checkpoint.read(&mut control)? else {
            // Killed in the first moment: nothing else was made.
            checkpoint.drop(&mut control)?;
            return self
                .must_be_begun(&mut control, &names)
                .map(|()| Done::default());
        };
        self.must_be_meant(&state)?;
        progress.note(format!("going on with {}", Begun::of(&state)?));
        let is_elsewhere = is_elsewhere(&mut control, &state)?;
        if is_elsewhere && !others.is_cluster() {
            return Err(began_elsewhere(&mut control, &state)?);
        }
        if others.is_cluster() && put_back(&mut control, &state.id, &self.table, &names)? {
            progress.note(format!("{} has its name back", self.table));
        }
        if is_reverse(&state) {
            return self.resume_reverse(control, family, state, progress);
        }
        if is_switched(&mut control, &names, Some(&state))? {
            return self.resume_switched(control, family, state, progress);
        }
        if state.phase == ABORT {
            return Err(MigrateError::Request(format!(
                "what the migration of {}.{} had made was being removed: --abort ends that",
                self.database, self.table
            )));
        }
        drop_sentry(&mut control, &names)?;
        if is_elsewhere && state.phase != PREPARE {
            progress.note(
                "the binary log that was read is another node's, or the node was started anew since: \
                 rows are copied from the beginning"
                    .into(),
            );
        }
        if is_elsewhere || state.phase == PREPARE {
            drop(others);
            return self.begin_again(control, state, progress);
        }
        preflight::check_log(&self.login, &mut control, &self.database, family)?;
        self.go_on(control, others, family, state, progress)
    }

    /// After the tables were switched by a process that was killed then.
    fn resume_switched(
        &self,
        mut control: Session,
        family: Family,
        mut state: State,
        progress: &Progress,
    ) -> Result<Done> {
        let names = Names::of(&self.table);
        self.triggers(&state, &names)
            .settle(&mut control, Moment::After)?;
        let told = self
            .moves(&state, &names, family)
            .settle(&mut control, Moment::After)?;
        told.into_iter().for_each(|told| progress.note(told));
        self.must_be_unchanged(&mut control, &self.table, made(&state)?)?;
        let noted = (made(&state)?, (names.old.as_str(), &state.original));
        let table = self.settled(&mut control, noted)?;
        let dropped = Operation::of(&state)?.dropped();
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
            ..Done::of(&state, None)
        };
        self.finish(&mut control, &state, done)
    }

    /// From the beginning, under the same id: a new table that is not finished holds no rows.
    fn begin_again(&self, mut control: Session, state: State, progress: &Progress) -> Result<Done> {
        let names = Names::of(&self.table);
        let operation = Operation::of(&state)?;
        let old = self.facts(&mut control, &self.table)?;
        operation.must_be_allowed(&old.logical, &self.consent)?;
        // The checkpoint stays: who is killed before there is another one has begun all the same.
        control.run(&format!("DROP TABLE IF EXISTS {}", identifier(&names.new)))?;
        drop(control);
        let again = Self {
            reverse: state.reverse,
            ..self.clone()
        };
        again.begin(self.control()?, &operation, progress, Some(state.id))
    }
}

/// Whether the position of a checkpoint is one in another server's binary log. A way back that has
/// begun there goes on with a comparison.
fn is_elsewhere(control: &mut Session, state: &State) -> Result<bool> {
    let is_here = state.server.is_empty() || state.server == control.identity()?;
    Ok(!is_here && !is_reverse(state))
}

fn began_elsewhere(control: &mut Session, state: &State) -> Result<MigrateError> {
    Ok(MigrateError::Request(format!(
        "the migration began on another server ({}, this is {}), whose binary log is not this one's: \
         clean up with --abort and begin again",
        state.server,
        control.identity()?
    )))
}
