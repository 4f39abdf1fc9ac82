//! The temporary tables of a session.

use std::collections::HashMap;
use std::sync::Arc;

use onionskin_schema::{Table, TableName};
use parking_lot::RwLock;

/// By their names without letter case, which a server may or may not count, the names as they were
/// given.
#[derive(Default)]
pub(crate) struct TemporaryTables(RwLock<HashMap<TableName, (TableName, Temporary)>>);

/// What is known of a temporary table.
#[derive(Clone)]
pub(crate) enum Temporary {
    /// It is being made.
    Expected,
    /// It exists.
    Known(Arc<Table>),
}

/// The letters of a name by which tables are told apart here.
pub(crate) fn folded(table: &TableName) -> TableName {
    TableName::folded(&table.database, &table.name)
}

impl TemporaryTables {
    /// The same tables, for the snapshot that takes this one's place.
    pub fn copy(&self) -> Self {
        TemporaryTables(RwLock::new(self.0.read().clone()))
    }

    pub fn names(&self) -> Vec<TableName> {
        self.0
            .read()
            .values()
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Whether there is one of this name, which hides a table.
    pub fn hide(&self, name: &TableName) -> bool {
        self.0.read().contains_key(&folded(name))
    }

    pub fn get(&self, name: &TableName) -> Option<Temporary> {
        let found = self.0.read();
        found.get(&folded(name)).map(|(_, found)| found.clone())
    }

    /// One is about to be made. Returns what was known under the name before.
    pub fn expect(&self, name: &TableName) -> Option<Arc<Table>> {
        let expected = (name.clone(), Temporary::Expected);
        match self.0.write().insert(folded(name), expected) {
            Some((_, Temporary::Known(table))) => Some(table),
            _ => None,
        }
    }

    /// It was not made: what was known before still holds.
    pub fn give_up(&self, name: &TableName, before: Option<Arc<Table>>) {
        let mut tables = self.0.write();
        match before {
            Some(table) => {
                let known = (name.clone(), Temporary::Known(table));
                tables.insert(folded(name), known)
            }
            None => tables.remove(&folded(name)),
        };
    }

    /// It is one, whatever was known before. Returns whether that was something else.
    pub fn take(&self, name: &TableName, table: Arc<Table>) -> bool {
        let known = (name.clone(), Temporary::Known(Arc::clone(&table)));
        match self.0.write().insert(folded(name), known) {
            Some((_, Temporary::Known(before))) => *before != *table,
            _ => true,
        }
    }

    /// What the server shows under the name. One with other ids is another table.
    pub fn set(&self, name: &TableName, table: Option<Arc<Table>>) {
        let mut tables = self.0.write();
        let same = match (tables.get(&folded(name)), &table) {
            (Some((_, Temporary::Known(old))), Some(new)) => {
                old.table_id == new.table_id || new.damaged.is_some()
            }
            (_, Some(_)) => true,
            (_, None) => false,
        };
        match table {
            Some(table) if same => {
                let known = (name.clone(), Temporary::Known(table));
                tables.insert(folded(name), known)
            }
            _ => tables.remove(&folded(name)),
        };
    }
}
