//! One change of a table's protected columns at a time.
//!
//! Such a change writes the comments of all protected columns anew, from what the proxy knows of
//! them. If two overlapped, the second would write what was true before the first, and the table
//! would be damaged. So the proxies of one server take turns: they hold a lock by name
//! (`GET_LOCK`), under which the table is looked up again.

use onionskin_plan::{Catalog, Ddl, DdlPiece, Known, errors};

use crate::catalog::KeyedPlan;
use crate::define::follows_default;
use crate::error::{Failure, Outcome};
use crate::session::Session;

/// Seconds that a change waits for another one.
const PATIENCE: u32 = 50;

/// The name of a lock that is held.
#[must_use]
pub(crate) struct SetLock(String);

impl Session {
    /// Takes the lock if the definition changes protected columns that exist. [`Failure::Stale`]:
    /// the table is not what the definition was made for.
    pub(crate) fn lock_set(&mut self, ddl: &Ddl, keyed: &KeyedPlan) -> Outcome<Option<SetLock>> {
        if !ddl.pieces.contains(&DdlPiece::Renew) {
            return Ok(None);
        }
        let Some(table) = &ddl.table else {
            return Ok(None);
        };
        let Some(lock) = self.take_set_lock(table.table_id)? else {
            return Ok(None);
        };
        // another session may have seen a change first
        let was_fresh = self.account.is_fresh(keyed);
        let defaults = self.known_defaults(&keyed.plan.names);
        match self.look_up(&keyed.plan.names) {
            Ok(_) => {
                let now = self.account.table(&table.database, &table.name);
                let is_same = matches!(now, Known::Table(now) if now == *table);
                let has_same_texts = !follows_default(ddl)
                    || was_fresh && defaults == self.known_defaults(&keyed.plan.names);
                if is_same && has_same_texts {
                    return Ok(Some(lock));
                }
                self.release(&lock)?;
                Err(Failure::Stale)
            }
            Err(failure) if failure.is_fatal() => Err(failure),
            Err(failure) => {
                self.server.settle()?;
                self.release(&lock)?;
                Err(failure)
            }
        }
    }

    /// Takes the lock of the table with this id. A session may have it several times.
    pub(crate) fn take_set_lock(&mut self, id: Option<[u8; 8]>) -> Outcome<Option<SetLock>> {
        let Some(id) = id else {
            return Ok(None);
        };
        let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let lock = SetLock(format!("onionskin {digits}"));
        let sql = format!("SELECT GET_LOCK('{}', {PATIENCE})", lock.0);
        let rows = self.server.rows(sql.as_bytes())?;
        let cell = rows.first().and_then(|row| row.first()?.as_deref());
        if cell != Some(b"1") {
            let about = "another session changes its protected columns";
            return Err(Failure::refused(&errors::STALE, about));
        }
        Ok(Some(lock))
    }

    /// Gives the lock back. What the server says of the definition is kept, because the server's
    /// next statement ends that.
    pub(crate) fn unlock_set(
        &mut self,
        lock: Option<SetLock>,
        done: &Outcome<()>,
        keyed: &KeyedPlan,
    ) -> Outcome<()> {
        let Some(lock) = lock else {
            return Ok(());
        };
        match done {
            Err(failure) if failure.is_fatal() => return Ok(()),
            Err(failure) => {
                self.server.settle()?;
                self.keep_list_of(failure, keyed)?;
            }
            Ok(()) => {
                let shown = self.server.rows(b"SHOW WARNINGS")?;
                if !shown.is_empty() {
                    let count = u16::try_from(shown.len()).unwrap_or(u16::MAX);
                    self.diagnostics.keep(&shown, count);
                }
            }
        }
        self.release(&lock)
    }

    pub(crate) fn release(&mut self, lock: &SetLock) -> Outcome<()> {
        let sql = format!("SELECT RELEASE_LOCK('{}')", lock.0);
        self.server.rows(sql.as_bytes()).map(|_| ())
    }
}
