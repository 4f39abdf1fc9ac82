//! Names of tables and columns that are, or were, protected.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use onionskin_plan::Protects;
use onionskin_schema::{Pins, Table, TableName, folded as folded_name};
use parking_lot::RwLock;

use super::folded;
use crate::age::now;

/// How many names are kept. A program that makes tables under ever new names would fill the memory.
const MOST: usize = 100_000;

/// The names of all tables that any account has known to be protected since the program began.
/// Where one of these is missing, or an account does not see it, the values of a statement belong
/// into protected columns all the same, whatever `[protect]` says.
#[derive(Default)]
pub(crate) struct OnceProtected {
    /// When each was last found to be so, in milliseconds of [`now`].
    names: RwLock<HashMap<TableName, AtomicU64>>,
    /// The stems of the names of temporary ones, which are gone with their sessions. No account
    /// finds them, so they are none that may be found plain later.
    temporary: RwLock<HashSet<TableName>>,
    /// Names under which a table with protected columns was to be made. It may not have come to
    /// that, or the table may be gone before anybody has found it.
    meant: RwLock<HashSet<TableName>>,
    /// The names of their protected columns. A view may leave one out.
    columns: RwLock<HashSet<String>>,
    /// Grows with both.
    version: AtomicU64,
}

impl OnceProtected {
    pub fn note(&self, table: &Table) {
        if !table.is_protected() {
            return;
        }
        self.note_columns_of(table);
        let name = TableName::folded(&table.database, &table.name);
        if let Some(at) = self.names.read().get(&name) {
            at.fetch_max(now(), Ordering::Relaxed);
            return;
        }
        let mut names = self.names.write();
        if names.len() < MOST {
            names.insert(name, AtomicU64::new(now()));
            self.version.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Notes a temporary table's name; before the server hears of it, because a session can end at
    /// any moment.
    pub fn note_temporary(&self, name: &TableName) {
        let stem = stem(name);
        if self.temporary.read().contains(&stem) {
            return;
        }
        let mut known = self.temporary.write();
        if known.len() < MOST && known.insert(stem) {
            self.version.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Notes the name of a table that is to have protected columns, before the server hears of it.
    pub fn note_meant(&self, protects: &Protects) {
        if protects.temporary {
            return self.note_temporary(&protects.table);
        }
        let name = folded(&protects.table);
        if self.meant.read().contains(&name) {
            return;
        }
        let mut known = self.meant.write();
        if known.len() < MOST && known.insert(name) {
            self.version.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Notes the protected columns of a temporary table.
    pub fn note_columns_of(&self, table: &Table) {
        let columns = table.protected_columns().map(|(column, _)| &*column.name);
        self.note_columns(columns);
    }

    /// Notes what is pinned.
    pub fn note_pinned(&self, pins: &Pins) {
        let columns = pins.tables().flat_map(|table| &table.columns);
        self.note_columns(columns.map(|column| &*column.name));
    }

    fn note_columns<'c>(&self, names: impl Iterator<Item = &'c str>) {
        let new: Vec<String> = {
            let known = self.columns.read();
            let names = names.map(folded_name);
            names.filter(|name| !known.contains(name)).collect()
        };
        if new.is_empty() {
            return;
        }
        let mut known = self.columns.write();
        if known.len() < MOST {
            known.extend(new);
            self.version.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Whether some table had a protected column of this name.
    pub fn has_column(&self, name: &str) -> bool {
        let known = self.columns.read();
        !known.is_empty() && known.contains(&folded_name(name))
    }

    pub fn has(&self, name: &TableName) -> bool {
        let is_meant = || {
            let meant = self.meant.read();
            !meant.is_empty() && meant.contains(&folded(name))
        };
        let is_temporary = || {
            let temporary = self.temporary.read();
            !temporary.is_empty() && temporary.contains(&stem(name))
        };
        self.last_found(name).is_some() || is_meant() || is_temporary()
    }

    /// Whether one of them had this name, in whatever database.
    pub fn has_somewhere(&self, name: &str) -> bool {
        let name = TableName::folded("", name);
        let stem = stem(&name);
        let is_it = |known: &TableName| known.name == name.name;
        self.names.read().keys().any(is_it)
            || self.meant.read().iter().any(is_it)
            || self
                .temporary
                .read()
                .iter()
                .any(|known| known.name == stem.name)
    }

    /// When it was last found to be protected.
    pub fn last_found(&self, name: &TableName) -> Option<u64> {
        let names = self.names.read();
        if names.is_empty() {
            return None;
        }
        let at = names.get(&folded(name))?;
        Some(at.load(Ordering::Relaxed))
    }

    /// Whether there are others than before: what is known of one of them may be of another time.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }
}

/// A name without its hexadecimal digits. Programs number their temporary tables, and each new name
/// here costs all plans. A name that looks like one of them by chance costs a question.
fn stem(name: &TableName) -> TableName {
    let mut stem = folded(name);
    stem.name.retain(|letter| !letter.is_ascii_hexdigit());
    stem
}
