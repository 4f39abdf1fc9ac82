//! A foreign key over a protected column that was not made for it.
//!
//! Where a wildcard of `[protect]` has protected the column, and the table is empty, the column
//! becomes what CREATE TABLE with the same key would have made it: plaintext, or one in the group
//! of what it refers to. LOCK TABLES keeps rows away from the moment at which the table is looked
//! at until the key is there. Any row, and whatever is not as expected, is an error that names what
//! can be done.

use onionskin_plan::{Action, Refit, Refitted, errors};
use onionskin_schema::{Remade, Table, TableName, identifier, refit_specifications};

use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::filled::path;
use crate::refill::has_helpers;
use crate::session::Session;

/// A column or an index cannot be dropped because of a foreign key.
const IN_USE: [u16; 4] = [1553, 1828, 1829, 3730];
/// What cannot be made good while a client waits.
const UNLOCKING: &str = "tables that were locked for a definition stay locked";

impl Session {
    /// Carries it out and relays the server's answer.
    pub fn refit(&mut self, refit: &Refit, keyed: &KeyedPlan) -> Outcome<()> {
        if self.locked_tables {
            return Err(refused(refit, "LOCK TABLES is in force"));
        }
        if self.others_write()? {
            let why = "LOCK TABLES holds on one node of a cluster that all nodes write to";
            return Err(refused(refit, why));
        }
        // the definition takes it once more: nobody waits for it while the tables are locked
        let name = self.take_set_lock(refit.table.table_id)?;
        let done = self.refit_named(refit, keyed);
        match &done {
            Err(failure) if failure.is_fatal() => return done,
            Err(_) => self.server.settle()?,
            Ok(()) => {}
        }
        match name.map(|name| self.release(&name)).transpose() {
            Ok(_) => done,
            // the client has its answer, and must not get another one
            Err(Failure::Server { .. }) if done.is_ok() => Err(Failure::OutOfStep(UNLOCKING)),
            Err(failure) => Err(failure),
        }
    }

    fn refit_named(&mut self, refit: &Refit, keyed: &KeyedPlan) -> Outcome<()> {
        let tables: Vec<String> = refit.locked.iter().map(full_name).collect();
        let lock = format!("LOCK TABLES {} WRITE", tables.join(" WRITE, "));
        match self.server.run(lock.as_bytes()) {
            Ok(_) => {}
            Err(Failure::Server { .. }) => {
                self.server.settle()?;
                return Err(refused(refit, "the tables cannot be locked"));
            }
            Err(failure) => return Err(failure),
        }
        let mut carries = false;
        let done = self.refit_locked(refit, keyed, &mut carries);
        match &done {
            Err(failure) if failure.is_fatal() => return done,
            Err(_) => self.server.settle()?,
            Ok(()) => {}
        }
        // what the server has said of the definition is kept: this ends it
        self.diagnostics.hides_servers = true;
        match self.server.run_to_its_end(b"UNLOCK TABLES") {
            Ok(_) => {}
            // as long as it is not done, the tables are locked
            Err(Failure::Server { .. }) => return Err(Failure::OutOfStep(UNLOCKING)),
            Err(failure) => return Err(failure),
        }
        if carries && done.is_err() {
            // MariaDB has lost the lock with the failure; what is left is invisible to all others
            match self.drop_helpers(&refit.table) {
                Err(Failure::Server { code, .. }) => {
                    self.server.settle()?;
                    tracing::warn!(code, "columns of a change that failed stay in the table");
                }
                dropped => dropped?,
            }
        }
        match done {
            Ok(()) => self.after_relay(keyed),
            Err(Failure::Server { code, .. }) if IN_USE.contains(&code) => Err(refused(
                refit,
                "another foreign key refers to the column or needs its index",
            )),
            Err(failure) => Err(failure),
        }
    }

    fn refit_locked(
        &mut self,
        refit: &Refit,
        keyed: &KeyedPlan,
        carries: &mut bool,
    ) -> Outcome<()> {
        let table = &refit.table;
        let name = full_name(&TableName::new(&table.database, &table.name));
        let mut physical = self.physical_text(table)?;
        if has_helpers(&physical) {
            self.drop_helpers(table)?;
            physical = self.physical_text(table)?;
        }
        self.must_be_exact(&physical)?;
        let first = format!("SELECT 1 FROM {name} LIMIT 1");
        let mut refill = match self.server.rows(first.as_bytes())?.is_empty() {
            true => None,
            false => match self.refill(refit, &physical)? {
                Ok(refill) => Some(refill),
                Err(why) => return Err(refused(refit, why)),
            },
        };
        if !physical.contains("ENGINE=InnoDB") {
            return Err(refused(refit, "foreign keys are InnoDB's"));
        }
        let columns: Vec<(usize, Remade<'_>)> = refit
            .columns
            .iter()
            .map(|(index, becomes)| match becomes {
                Refitted::Plaintext => (*index, Remade::Plaintext),
                Refitted::Joined(clause) => (*index, Remade::Protected(clause)),
                Refitted::Redefined(definition) => (*index, Remade::Defined(definition)),
            })
            .collect();
        let specifications = refit_specifications(&physical, table, &columns, self.state.family)
            .map_err(|e| refused(refit, &e.to_string()))?;
        let text = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).map(str::to_owned);
            text.map_err(|_| refused(refit, "its text is not UTF-8"))
        };
        let (head, rest) = (text(&refit.head)?, text(&refit.specifications)?);
        let mut specifications = specifications;
        specifications.extend((!rest.trim().is_empty()).then_some(rest));
        let sql = format!("{head} {}", specifications.join(", "));
        // what the comments of protected columns say is in it now
        self.must_be_exact(&sql)?;
        let plan = self.plan_own(&sql, &table.name)?;
        match &plan.action {
            Action::Define(ddl) => {
                *carries = refill.is_some();
                self.define_over(ddl, keyed, refill.as_mut())
            }
            Action::Refuse(refusal) => Err(refusal.clone().into()),
            _ => Err(Failure::refused(&errors::INTERNAL, "a foreign key")),
        }
    }
}

impl Session {
    fn physical_text(&mut self, table: &Table) -> Outcome<String> {
        let show = format!("SHOW CREATE TABLE {}", path(table));
        let shown = self.server.rows(show.as_bytes())?;
        let text = shown.first().and_then(|row| row.get(1)?.as_deref());
        Ok(String::from_utf8_lossy(text.unwrap_or_default()).into_owned())
    }
}

fn full_name(name: &TableName) -> String {
    format!("{}.{}", identifier(&name.database), identifier(&name.name))
}

pub(crate) fn refused(refit: &Refit, why: &str) -> Failure {
    if let Some(refusal) = &refit.otherwise {
        tracing::debug!(why, "a definition is not made anew");
        return refusal.clone().into();
    }
    let table = &refit.table;
    let columns = refit.columns.iter();
    let names: Vec<&str> = columns
        .map(|(index, _)| table.columns[*index].name.as_str())
        .collect();
    let names = names.join(", ");
    let of_table = format!("{names} of {}.{}", table.database, table.name);
    let is_plain = |(_, becomes): &(usize, Refitted)| *becomes == Refitted::Plaintext;
    match refit.columns.iter().any(is_plain) {
        true => {
            let about =
                format!("from the protected column {of_table} to one that is not protected; {why}");
            Failure::refused(&errors::FOREIGN_KEY, about)
        }
        false => {
            let about = format!("{of_table} and what it refers to; {why}");
            Failure::refused(&errors::OTHER_KEY, about)
        }
    }
}
