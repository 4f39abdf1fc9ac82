//! From nothing to a new table and a checkpoint: the phase "prepare". And what of it can be told
//! before.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use onionskin_rowstream::checkpoint::{
    Imprint, State, VERSION, VERSION_WITH_FOREIGN_KEYS, VERSION_WITH_TRIGGERS,
};
use onionskin_rowstream::session::Session;
use onionskin_schema::identifier;
use onionskin_value::Family;

use crate::abort::clean_up;
use crate::begun::Begun;
use crate::cluster;
use crate::consent::Consent;
use crate::definition::{self, Planned};
use crate::done::Done;
use crate::error::{MigrateError, Result};
use crate::facts::{self, Facts};
use crate::foreign_catalog;
use crate::foreign_keys::{self, Moves};
use crate::imprint::Known;
use crate::job::Job;
use crate::operation::Operation;
use crate::phase::PREPARE;
use crate::preflight::{self, Names};
use crate::prepared;
use crate::privileges;
use crate::progress::Progress;
use crate::reverse::check_reversible;
use crate::switch::exists;
use crate::tenants;
use crate::trigger_catalog;
use crate::trigger_reach::must_not_see;
use crate::triggers::Triggers;

/// What the new table is made from.
struct Making<'a> {
    old: &'a Known,
    names: &'a Names,
    operation: &'a Operation,
    planned: &'a Planned,
    moves: &'a Moves<'a>,
    triggers: Triggers<'a>,
    family: Family,
}

impl Job {
    /// Does it, from the beginning.
    pub fn run(&self, operation: &Operation, progress: &Progress) -> Result<Done> {
        let (mut job, control) = self.spelled()?;
        job.consent = Consent::of(operation, job.reverse);
        job.begin(control, operation, progress, None)
            .map_err(MigrateError::of_lost_connection)
    }

    /// `again` is the id of a migration that had begun, whose checkpoint stands and whose new table
    /// does not.
    pub(crate) fn begin(
        &self,
        mut control: Session,
        operation: &Operation,
        progress: &Progress,
        again: Option<String>,
    ) -> Result<Done> {
        let (family, old) = self.inspected(&mut control)?;
        let names = Names::of(&self.table);
        let others = self.lock_out_others(&mut control)?;
        let is_again = again.is_some();
        self.must_be_the_first(&mut control, &names, is_again)?;
        let planned = definition::statements(&old, &names, operation, self.keys.as_ref(), family)?;
        let checkpoint = self.checkpoint(&names);
        let id = again.unwrap_or_else(new_id);
        let mut state = self.first_state(&mut control, operation, &old, id)?;
        let moves = self.moves(&state, &names, family);
        self.must_be_followed(&moves)?;
        moves.must_be_permitted(&mut control)?;
        moves.must_be_alone(&mut control)?;
        cluster::must_suit(&mut control, &state, &old, self.reverse)?;
        must_stay_plain(&mut control, &state, operation, &old)?;
        tenants::must_be_kept(&state, operation, &old)?;
        self.triggers(&state, &names)
            .must_have_names(&mut control)?;
        let beside = self.named_elsewhere(&mut control, operation, &old)?;
        match is_again {
            true => checkpoint.write(&mut control, &state)?,
            false => checkpoint.create(&mut control, &state)?,
        }
        progress.note(Begun::of(&state)?.to_string());
        beside.into_iter().for_each(|told| progress.note(told));
        let making = Making {
            old: &Known::at_the_beginning(old),
            names: &names,
            operation,
            planned: &planned,
            moves: &moves,
            triggers: self.triggers(&state, &names),
            family,
        };
        match self.make(&mut control, &making) {
            Ok(made) => state.made = Some(made),
            Err(error) => {
                // Nothing was copied yet, so nothing is left behind.
                clean_up(&mut control, &names, &checkpoint)?;
                return Err(error);
            }
        }
        checkpoint.write(&mut control, &state)?;
        self.go_on(control, others, family, state, progress)
    }

    /// The server's family and the table, of which all of it can be done.
    fn inspected(&self, control: &mut Session) -> Result<(Family, Facts)> {
        let family = facts::family(control)?;
        let old = self.facts(control, &self.table)?;
        self.must_be_pinned(&[&old.logical])?;
        preflight::check_log(&self.login, control, &self.database, family)?;
        preflight::check_table(control, &old)?;
        prepared::must_be_none(control)?;
        let table = (self.database.as_str(), self.table.as_str());
        let why = "without which nobody can tell whether it has triggers";
        privileges::must_have(control, &["TRIGGER"], table, why)?;
        Ok((family, old))
    }

    /// What names columns that become protected, or are no more, elsewhere.
    fn named_elsewhere(
        &self,
        control: &mut Session,
        operation: &Operation,
        old: &Facts,
    ) -> Result<Vec<String>> {
        let before = old.logical.protected_columns();
        let before: BTreeSet<String> = before.map(|(column, _)| column.name.clone()).collect();
        let after = operation.protected_after(&old.logical)?.into_keys();
        let after: BTreeSet<String> = after.collect();
        let changed = before.symmetric_difference(&after).cloned().collect();
        let table = (self.database.as_str(), self.table.as_str());
        preflight::named_elsewhere(control, table, &changed)
    }

    /// An error if another migration has left tables.
    fn must_be_the_first(
        &self,
        control: &mut Session,
        names: &Names,
        is_again: bool,
    ) -> Result<()> {
        let all = [&names.checkpoint, &names.new, &names.old];
        for name in &all[usize::from(is_again)..] {
            if exists(control, name)? {
                return Err(MigrateError::Refused {
                    table: format!("{}.{}", self.database, self.table),
                    reason: format!(
                        "there is a table {name}, from a migration that was not ended or whose old table was kept: \
                         --resume goes on with it, --abort cleans up, and an old table is yours to drop"
                    ),
                });
            }
        }
        Ok(())
    }

    fn first_state(
        &self,
        control: &mut Session,
        operation: &Operation,
        old: &Facts,
        id: String,
    ) -> Result<State> {
        let foreign_keys = foreign_catalog::read(control, &self.database, &self.table)?;
        let triggers = trigger_catalog::read(control, &self.database, &self.table)?;
        Ok(State {
            version: match (triggers.is_empty(), foreign_keys.is_empty()) {
                (true, true) => VERSION,
                (true, false) => VERSION_WITH_FOREIGN_KEYS,
                (false, _) => VERSION_WITH_TRIGGERS,
            },
            foreign_keys,
            triggers,
            id,
            operation: serde_json::to_string(operation)
                .map_err(|error| MigrateError::Request(error.to_string()))?,
            definition: old.definition.clone(),
            phase: PREPARE.into(),
            position: String::new(),
            copied_to: None,
            copied: false,
            rows: 0,
            estimate: rows_about(control, old)?,
            changes: 0,
            repaired: 0,
            began: now(),
            server: control.identity()?,
            reverse: self.reverse,
            locked_at: None,
            original: old.imprint.clone(),
            made: None,
        })
    }

    /// Makes the new table and looks whether rows can get there, and back if they have to.
    fn make(&self, control: &mut Session, making: &Making<'_>) -> Result<Imprint> {
        let Making {
            old,
            names,
            operation,
            planned,
            moves,
            triggers,
            family,
        } = *making;
        definition::create(control, old, names, &planned.statements, operation)?;
        let new = self.facts(control, &names.new)?;
        if cluster::is_galera(control)? && !cluster::has_primary_key(&new.definition) {
            return Err(cluster::without_primary_key(&new));
        }
        let modified = operation.modified()?;
        let new = Known::made(new, planned.physical.as_ref(), old, &modified, family)?;
        let dropped = operation.dropped();
        let (keys, consent) = (self.keys.as_ref(), &self.consent);
        if self.reverse {
            check_reversible(&new, old, &dropped)?;
            definition::route((&new, old), consent, keys, family, &[])?;
        }
        definition::route((old, &new), consent, keys, family, &dropped)?;
        foreign_keys::must_be_plain(moves.keys, old, &new)?;
        triggers.rehearse(control)?;
        moves.follow(control)?;
        Ok(new.imprint.clone())
    }

    /// An error if the server changes rows of the table by foreign keys, and these changes would
    /// have to be followed after the switch, too.
    fn must_be_followed(&self, moves: &Moves<'_>) -> Result<()> {
        if let Some(key) = moves.changing_keys() {
            return Err(MigrateError::Refused {
                table: format!("{}.{}", self.database, self.table),
                reason: format!(
                    "the foreign key {} changes columns of a unique key (ON UPDATE {}), which the binary log does not tell: \
                     drop it first, and add it again afterwards",
                    key.name, key.on_update
                ),
            });
        }
        match moves.cascading().filter(|_| self.reverse) {
            None => Ok(()),
            Some(key) => Err(MigrateError::Request(format!(
                "--reverse cannot follow what the foreign key {} does to the rows of {} (ON DELETE {}, ON UPDATE {}): \
                 do it without --reverse",
                key.name, self.table, key.on_delete, key.on_update
            ))),
        }
    }

    /// What a run would do: statements, and comments between them.
    pub fn dry_run(&self, operation: &Operation) -> Result<Vec<String>> {
        let (job, control) = self.spelled()?;
        job.rehearse(control, operation)
    }

    fn rehearse(&self, mut control: Session, operation: &Operation) -> Result<Vec<String>> {
        let (family, old) = self.inspected(&mut control)?;
        let names = Names::of(&self.table);
        let planned = definition::statements(&old, &names, operation, self.keys.as_ref(), family)?;
        let state = self.first_state(&mut control, operation, &old, new_id())?;
        let moves = self.moves(&state, &names, family);
        self.must_be_followed(&moves)?;
        moves.must_be_permitted(&mut control)?;
        moves.must_be_alone(&mut control)?;
        cluster::must_suit(&mut control, &state, &old, self.reverse)?;
        must_stay_plain(&mut control, &state, operation, &old)?;
        self.triggers(&state, &names)
            .must_have_names(&mut control)?;
        let beside = self.named_elsewhere(&mut control, operation, &old)?;
        let is_everywhere = cluster::is_galera(&mut control)?;
        let mut lines: Vec<String> = beside
            .iter()
            .map(|told| format!("-- Note: {told}"))
            .collect();
        lines.push(format!("-- 1. A new table is made beside {}:", self.table));
        lines.extend(planned.statements);
        let key = old.unique.iter().find_map(|index| old.key(index));
        lines.push(match key {
            Some(key) => format!(
                "-- 2. About {} rows are copied in the order of {}, compared, and kept up to date from the binary log.",
                state.estimate, key.index
            ),
            None => "-- 2. There is no key to copy by.".into(),
        });
        let renames = [(&self.table, &names.old), (&names.new, &self.table)]
            .map(|(from, to)| format!("{} TO {}", identifier(from), identifier(to)));
        if is_everywhere {
            lines.push(
                "-- 3. On all nodes the old table loses its name, and the new one gets it:".into(),
            );
            lines.extend(renames.map(|rename| format!("RENAME TABLE {rename}")));
            return Ok(lines);
        }
        lines.push("-- 3. Under a lock the new table takes the old one's place:".into());
        lines.extend(moves.statements());
        lines.push(format!("RENAME TABLE {}", renames.join(", ")));
        let triggers = self.triggers(&state, &names);
        lines.extend(triggers.plan());
        Ok(lines)
    }
}

/// An error if a trigger or a foreign key has to do with a column that is protected before or
/// after, or a key with one that gets another type.
fn must_stay_plain(
    control: &mut Session,
    state: &State,
    operation: &Operation,
    old: &Facts,
) -> Result<()> {
    let before = old.logical.protected_columns();
    let before = before.map(|(column, _)| column.name.clone());
    let after = operation.protected_after(&old.logical)?.into_keys();
    let mut columns: BTreeSet<String> = before.chain(after).collect();
    must_not_see(control, &state.triggers, &columns, old)?;
    if let Operation::Alter(specifications) = operation
        && !state.foreign_keys.is_empty()
    {
        columns.extend(retyped(control, old, specifications));
    }
    foreign_keys::must_not_be_over(&state.foreign_keys, old, &columns)
}

/// The columns that an ALTER TABLE gives another type, or takes away, tried on a temporary table.
/// None where that cannot be: the new table tells.
fn retyped(control: &mut Session, old: &Facts, specifications: &str) -> Vec<String> {
    let trial = identifier(&format!("{}_onionskin_trial", old.table));
    let columns = |control: &mut Session, table: &str| {
        let rows = control
            .texts(&format!("SHOW FULL COLUMNS FROM {table}"))
            .ok()?;
        // Name, type and collation.
        let rows = rows
            .into_iter()
            .map(|row| row.into_iter().take(3).collect());
        Some(rows.collect::<Vec<Vec<Option<String>>>>())
    };
    let before = columns(control, &identifier(&old.table));
    let made = control
        .run(&format!(
            "CREATE TEMPORARY TABLE {trial} LIKE {}",
            identifier(&old.table)
        ))
        .and_then(|_| control.run(&format!("ALTER TABLE {trial} {specifications}")));
    let after = match made {
        Ok(_) => columns(control, &trial),
        Err(_) => None,
    };
    let _ = control.run(&format!("DROP TEMPORARY TABLE IF EXISTS {trial}"));
    let (Some(before), Some(after)) = (before, after) else {
        return Vec::new();
    };
    let changed = before.into_iter().filter(|row| !after.contains(row));
    changed.filter_map(|row| row.into_iter().next()?).collect()
}

/// How many rows a table has: what the server estimates may be from when it was empty, so a few are
/// counted.
fn rows_about(control: &mut Session, table: &Facts) -> Result<u64> {
    const FEW: u64 = 200_000;
    if table.rows >= FEW {
        return Ok(table.rows);
    }
    let counted = control
        .text(&format!(
            "SELECT COUNT(*) FROM (SELECT 1 FROM {} LIMIT {FEW}) few",
            identifier(&table.table)
        ))
        .map_err(MigrateError::sql("counting rows"))?;
    let counted = counted.parse().unwrap_or(0);
    Ok(if counted < FEW {
        counted
    } else {
        table.rows.max(FEW)
    })
}

/// Digits that no other migration has.
fn new_id() -> String {
    format!("{:016x}", rand::random::<u64>())
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_secs())
}
