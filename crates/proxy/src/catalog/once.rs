//! Names of tables that are, or were, protected.

use std::collections::HashSet;

use onionskin_schema::{Table, TableName};
use parking_lot::RwLock;

use super::folded;

/// How many names are kept. A program that makes tables under ever new names would fill the memory.
const MOST: usize = 100_000;

/// The names of all tables that any account has known to be protected since the program began.
/// Where one of these is missing, or an account does not see it, the values of a statement belong
/// into protected columns all the same, whatever `[protect]` says.
#[derive(Default)]
pub(crate) struct OnceProtected(RwLock<HashSet<TableName>>);

impl OnceProtected {
    pub fn note(&self, table: &Table) {
        if !table.is_protected() {
            return;
        }
        let name = TableName::folded(&table.database, &table.name);
        if self.0.read().contains(&name) {
            return;
        }
        let mut names = self.0.write();
        if names.len() < MOST {
            names.insert(name);
        }
    }

    pub fn has(&self, name: &TableName) -> bool {
        let names = self.0.read();
        !names.is_empty() && names.contains(&folded(name))
    }
}
