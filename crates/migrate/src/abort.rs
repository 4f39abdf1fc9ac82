//! Giving up: what a migration has made beside the table is removed.

use onionskin_rowstream::checkpoint::{Checkpoint, Untrusted};
use onionskin_rowstream::session::Session;
use onionskin_schema::identifier;

use crate::error::{MigrateError, Result};
use crate::everywhere::put_back;
use crate::facts;
use crate::foreign_keys::Moment;
use crate::job::Job;
use crate::phase::{ABORT, SWITCH, is_reverse};
use crate::preflight::Names;
use crate::reverse::switched_already;
use crate::switch::{drop_sentry, is_switched};

impl Job {
    /// Removes everything that a migration has made beside the table. The table itself is as it
    /// was. Returns what has to be told.
    pub fn abort(&self) -> Result<Vec<String>> {
        let (job, control) = self.spelled()?;
        job.undo(control)
    }

    fn undo(&self, mut control: Session) -> Result<Vec<String>> {
        let names = Names::of(&self.table);
        self.must_be_begun(&mut control, &names)?;
        let others = self.lock_out_others(&mut control)?;
        let checkpoint = self.checkpoint(&names);
        // A damaged or forged checkpoint is no reason to keep it. Nothing is read or written here
        // but names.
        let found = checkpoint.peek(&mut control).unwrap_or_default();
        let is_ours = |why| matches!(why, None | Some(Untrusted::NoKeys));
        let state = found.and_then(|found| found.state.filter(|_| is_ours(found.untrusted)));
        if state.as_ref().is_some_and(is_reverse) {
            return Err(switched_already(&self.table));
        }
        let id = state.as_ref().map_or("", |state| &state.id);
        if others.is_cluster() {
            put_back(&mut control, id, &self.table, &names)?;
        }
        let is_switched = is_switched(&mut control, &names, state.as_ref())?;
        let mut told = Vec::new();
        if let Some(state) = state.as_ref().filter(|state| state.phase == SWITCH) {
            let family = facts::family(&mut control)?;
            let moment = match is_switched {
                true => Moment::After,
                false => Moment::Before,
            };
            self.triggers(state, &names).settle(&mut control, moment)?;
            told = self
                .moves(state, &names, family)
                .settle(&mut control, moment)?;
        }
        if is_switched {
            // Where --resume cannot read what came behind the lock, this is what is left.
            if state.is_some_and(|state| state.reverse && state.locked_at.is_none()) {
                return Err(switched_already(&self.table));
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
        clean_up(&mut control, &names, &checkpoint)?;
        Ok(told)
    }
}

/// Removes the new table, the sentry and the checkpoint.
pub(crate) fn clean_up(
    control: &mut Session,
    names: &Names,
    checkpoint: &Checkpoint,
) -> Result<()> {
    control.run(&format!("DROP TABLE IF EXISTS {}", identifier(&names.new)))?;
    drop_sentry(control, names)?;
    checkpoint.drop(control)?;
    Ok(())
}
