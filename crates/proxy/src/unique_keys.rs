//! What a session knows of tables' unique keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// The unique keys of a table, in the order in which the server checks them.
pub(crate) type Keys = Arc<Vec<UniqueKey>>;

/// A unique key of a table.
#[derive(Default)]
pub(crate) struct UniqueKey {
    pub name: String,
    /// Its physical columns.
    pub columns: Vec<KeyColumn>,
    /// It covers an expression, which is none of its columns.
    pub computed: bool,
}

/// A column of a key.
pub(crate) struct KeyColumn {
    pub name: String,
    /// So many characters or bytes of it are in the key.
    pub prefix: Option<usize>,
}

impl UniqueKey {
    pub fn names(&self) -> Vec<String> {
        self.columns.iter().map(|c| c.name.clone()).collect()
    }
}

/// What the session knows of tables' unique keys, by database and name in the statement.
#[derive(Default)]
pub(crate) struct UniqueKeys(pub HashMap<(Option<String>, String), (Instant, Keys)>);
