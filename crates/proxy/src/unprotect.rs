//! A foreign key from a protected column to a plaintext one.
//!
//! Where a wildcard of `[protect]` has protected the column, and the table is empty, the column
//! becomes plaintext as CREATE TABLE with the same key would have made it. LOCK TABLES keeps rows
//! away from the moment at which the table is looked at until the key is there. Any row, and
//! whatever is not as expected, is an error that names what can be done.

use onionskin_plan::{Action, Unprotected, errors};
use onionskin_schema::{TableName, identifier, unprotect_specifications};

use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::session::Session;

impl Session {
    /// Carries it out and relays the server's answer.
    pub fn unprotect(&mut self, unprotected: &Unprotected, keyed: &KeyedPlan) -> Outcome<()> {
        if self.locked_tables {
            return Err(refused(unprotected, "under LOCK TABLES"));
        }
        let tables: Vec<String> = unprotected.locked.iter().map(full_name).collect();
        let lock = format!("LOCK TABLES {} WRITE", tables.join(" WRITE, "));
        match self.server.run(lock.as_bytes()) {
            Ok(_) => {}
            Err(Failure::Server { .. }) => {
                self.server.settle()?;
                return Err(refused(unprotected, "and the tables cannot be locked"));
            }
            Err(failure) => return Err(failure),
        }
        let done = self.unprotect_locked(unprotected, keyed);
        match &done {
            Err(failure) if failure.is_fatal() => return done,
            Err(_) => self.server.settle()?,
            Ok(()) => {}
        }
        // what the server has said of the definition is kept: this ends it
        self.diagnostics.hides_servers = true;
        self.server.run(b"UNLOCK TABLES")?;
        done?;
        self.after_relay(keyed)
    }

    fn unprotect_locked(&mut self, unprotected: &Unprotected, keyed: &KeyedPlan) -> Outcome<()> {
        let table = &unprotected.table;
        let name = full_name(&TableName::new(&table.database, &table.name));
        let first = format!("SELECT 1 FROM {name} LIMIT 1");
        if !self.server.rows(first.as_bytes())?.is_empty() {
            return Err(refused(unprotected, "and the table has rows"));
        }
        let shown = self
            .server
            .rows(format!("SHOW CREATE TABLE {name}").as_bytes())?;
        let text = shown.first().and_then(|row| row.get(1)?.as_deref());
        let physical = String::from_utf8_lossy(text.unwrap_or_default()).into_owned();
        self.must_be_exact(&physical)?;
        let columns = &unprotected.columns;
        let specifications = unprotect_specifications(&physical, table, columns, self.state.family)
            .map_err(|e| refused(unprotected, &format!("and {e}")))?;
        let sql = format!(
            "{} {}, {}",
            String::from_utf8_lossy(&unprotected.head),
            specifications.join(", "),
            String::from_utf8_lossy(&unprotected.specifications)
        );
        let plan = self.plan_own(&sql, &table.name)?;
        match &plan.action {
            Action::Define(ddl) => self.define(ddl, keyed),
            Action::Refuse(refusal) => Err(refusal.clone().into()),
            _ => Err(Failure::refused(&errors::INTERNAL, "a foreign key")),
        }
    }
}

fn full_name(name: &TableName) -> String {
    format!("{}.{}", identifier(&name.database), identifier(&name.name))
}

fn refused(unprotected: &Unprotected, why: &str) -> Failure {
    let table = &unprotected.table;
    let columns = unprotected.columns.iter();
    let names: Vec<&str> = columns
        .map(|index| table.columns[*index].name.as_str())
        .collect();
    let about = format!(
        "from the protected column {} of {} to one that is not protected, {why}",
        names.join(", "),
        table.name
    );
    Failure::refused(&errors::FOREIGN_KEY, about)
}
