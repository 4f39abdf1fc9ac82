//! What a session knows of tables' unique keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// The physical columns of each unique key of a table, in the order in which the server checks
/// them.
pub(crate) type Keys = Arc<Vec<Vec<String>>>;

/// What the session knows of tables' unique keys, by database and name in the statement.
#[derive(Default)]
pub(crate) struct UniqueKeys(pub HashMap<(Option<String>, String), (Instant, Keys)>);
