//! Named locks: one migration of a table at a time.

use onionskin_rowstream::session::Session;

use crate::error::{MigrateError, Result};
use crate::job::Job;
use crate::others::Others;

/// Most threads.
pub const MAX_THREADS: usize = 32;
/// Sessions of one migration beside those for rows: for marks, for the lock, for the rename.
const OTHER_SESSIONS: usize = 3;

impl Job {
    /// Holds named locks until the session ends, on all nodes of a cluster as long as what is
    /// returned is kept.
    pub(crate) fn lock_out_others(&self, control: &mut Session) -> Result<Others> {
        self.lock_out(control)?;
        Others::of(self, control)
    }

    /// Holds named locks until the session ends. Every session of a migration holds one: after a
    /// kill, statements of its sessions may still run, and whoever goes on must wait for their end.
    pub(crate) fn lock_out(&self, control: &mut Session) -> Result<()> {
        for number in (0..MAX_THREADS + OTHER_SESSIONS).rev() {
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
        lock_name(&self.database, &self.table, number)
    }

    /// Takes the lock of a session.
    pub(crate) fn register(&self, session: &mut Session, number: usize) -> Result<()> {
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
}

fn lock_name(database: &str, table: &str, number: usize) -> String {
    // FNV-1a: names are longer than a lock's may be.
    let hash = format!("{database}\0{table}")
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("onionskin-{hash:016x}-{number}")
}

/// Whether a process works on a migration of the table.
pub(crate) fn is_worked_on(session: &mut Session, database: &str, table: &str) -> Result<bool> {
    let name = lock_name(database, table, 0);
    let holder = session.text(&format!("SELECT COALESCE(IS_USED_LOCK('{name}'), '')"))?;
    Ok(!holder.is_empty())
}

/// The lock and the rename each take a number of their own.
pub(crate) fn free_number() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    MAX_THREADS + NEXT.fetch_add(1, Ordering::Relaxed) % OTHER_SESSIONS
}
