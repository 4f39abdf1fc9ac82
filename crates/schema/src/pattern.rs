//! Patterns of the configuration that stand for tables and columns: `sbtest.*`, `*_id`.
//!
//! `*` stands for any characters, and letter case does not count. Of several patterns that match,
//! the most specific is meant: an exact table before an exact database before wildcards, and among
//! equals the one with more letters.

pub use crate::folding::folded;

use std::cmp::Reverse;
use std::fmt;

use crate::errors::SchemaError;

/// `database.table`, both of which may hold `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePattern {
    database: String,
    table: String,
}

impl TablePattern {
    /// Reads it.
    pub fn parse(pattern: &str) -> Result<Self, SchemaError> {
        let parts = pattern.split_once('.');
        let (database, table) = parts
            .filter(|(database, table)| !database.is_empty() && !table.is_empty())
            .ok_or_else(|| SchemaError::BadPattern {
                pattern: pattern.to_owned(),
            })?;
        Ok(TablePattern {
            database: folded(database),
            table: folded(table),
        })
    }

    /// That of the database, folded.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// That of the table, folded.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Whether it is about this table, whose names are [`folded`].
    pub fn matches(&self, database: &str, table: &str) -> bool {
        matches(&self.database, database) && matches(&self.table, table)
    }

    /// Whether it names one table.
    pub fn is_exact(&self) -> bool {
        !self.database.contains('*') && !self.table.contains('*')
    }

    /// Less is more specific.
    pub fn specificity(&self) -> impl Ord + use<> {
        let (table, table_letters) = specificity(&self.table);
        let (database, database_letters) = specificity(&self.database);
        // In `other.t` against `db.*`, only one can match, so the order of these two does not
        // matter.
        (table, database, table_letters, database_letters)
    }
}

impl fmt::Display for TablePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

/// How specific a pattern of one name is: less is more specific.
pub fn specificity(pattern: &str) -> (bool, Reverse<usize>) {
    let letters = pattern.chars().filter(|c| *c != '*').count();
    (pattern.contains('*'), Reverse(letters))
}

/// Whether `*` in `pattern` can be replaced by strings to give `text`.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|front| text.strip_prefix(front)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}
