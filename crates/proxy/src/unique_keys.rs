//! What a session knows of tables' unique keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// The unique keys of a table, in the order in which the server checks them.
pub(crate) type Keys = Arc<Vec<UniqueKey>>;

/// A unique key of a table.
pub(crate) struct UniqueKey {
    pub name: String,
    /// Its physical columns.
    pub columns: Vec<String>,
}

/// What the session knows of tables' unique keys, by database and name in the statement.
#[derive(Default)]
pub(crate) struct UniqueKeys(pub HashMap<(Option<String>, String), (Instant, Keys)>);
