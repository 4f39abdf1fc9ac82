//! The name of a table.

use crate::folding::{folded, same_name};
use std::fmt;

/// A table's name together with its database.
///
/// `==` compares the letters as they are. Where letter case does not count, compare with
/// [`TableName::is_same`], or use [`TableName::folded`] as a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    /// The database.
    pub database: String,
    /// The table's name in it.
    pub name: String,
}

impl TableName {
    /// The table `name` of `database`.
    pub fn new(database: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            database: database.into(),
            name: name.into(),
        }
    }

    /// Both names in lower case: a key for maps in which letter case does not count.
    pub fn folded(database: &str, name: &str) -> Self {
        Self {
            database: folded(database),
            name: folded(name),
        }
    }

    /// Whether both name the same table if letter case does not count.
    pub fn is_same(&self, other: &Self) -> bool {
        same_name(&self.database, &other.database) && same_name(&self.name, &other.name)
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.name)
    }
}
