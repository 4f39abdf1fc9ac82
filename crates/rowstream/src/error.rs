//! What can go wrong while rows are moved.

use crate::checkpoint::Untrusted;
use crate::session::SqlError;

/// Why rows could not be copied, written or compared.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The server refused a statement, or the connection broke.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// A value could not be sealed, opened or understood.
    #[error("the row with key {key}: {reason}")]
    Value {
        /// Its key.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The key has a NULL although its columns are NOT NULL.
    #[error(
        "a row has NULL in its key: the table's definition has changed, begin again with --abort"
    )]
    NullKey,
    /// The checkpoint cannot be read.
    #[error(
        "the state in the table {table} is damaged or was written by a newer version: use that version, or begin again with --abort"
    )]
    Checkpoint {
        /// The checkpoint's table.
        table: String,
    },
    /// The checkpoint may be somebody else's work.
    #[error("{}", untrusted(.table, *.why))]
    Untrusted {
        /// The checkpoint's table.
        table: String,
        /// Why.
        why: Untrusted,
    },
    /// Digests of many rows differ, and none of the rows does.
    #[error("the tables differ, but no row does: --abort, and report this")]
    Unexplained,
    /// A thread of ours panicked.
    #[error("a thread has ended unexpectedly; --resume goes on from the last checkpoint")]
    Panicked,
}

fn untrusted(table: &str, why: Untrusted) -> String {
    match why {
        Untrusted::NotAuthentic => format!(
            "the state in the table {table} is not authentic: it was changed on the server, comes from another table, or was \
             written under other keys or without any; nothing was done: --abort removes it and what the migration has made"
        ),
        Untrusted::Outdated => format!(
            "the state in the table {table} was written by an earlier version, which did not authenticate it: go on with that \
             version, or --abort and begin again"
        ),
        Untrusted::NoKeys => format!(
            "the state in the table {table} was written with keys: name the configuration with -c"
        ),
    }
}
