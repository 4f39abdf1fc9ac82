//! What a plan says of a definition: its text, with places for what only its execution knows.

use std::sync::Arc;

use onionskin_schema::{DefaultLiteral, KeyActions, NewColumn, Table, TableName};

use super::Slot;
use crate::errors::Refusal;

/// A definition with places for what only its execution knows.
#[derive(Clone, Debug)]
pub struct Ddl {
    /// Its text.
    pub pieces: Vec<DdlPiece>,
    /// New protected columns; their ids are still zero.
    pub new_columns: Vec<NewColumn>,
    /// The table, when it exists already and has protected columns.
    pub table: Option<Arc<Table>>,
    /// Columns of other tables whose tokens those of new columns are compared with.
    pub references: Vec<Reference>,
    /// `CREATE TEMPORARY TABLE`: the table's name.
    pub temporary: Option<TableName>,
    /// Columns stay plaintext because foreign keys have them refer to others: the table has to be
    /// InnoDB's, which keeps the keys.
    pub rests_on_keys: bool,
    /// Plaintext columns that stay so by right, and would lose the reason.
    pub kept_plain: Vec<KeptPlain>,
    /// Where texts among the new columns have the collation of the database.
    pub of_database: Option<OfDatabase>,
}

/// A new table's collation that is its database's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfDatabase {
    /// The database.
    pub database: String,
    /// Its collation, as it was looked up.
    pub collation: String,
}

/// A column that an enforced wildcard leaves plaintext, of a table of which the statement drops a
/// foreign key or a column, or renames the column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPlain {
    /// Its name before the statement.
    pub before: String,
    /// Its name afterwards.
    pub after: String,
    /// The constraints that the statement drops, by their names.
    pub dropped: Vec<String>,
    /// The statement drops columns, and with them the marks that the table has.
    pub drops_columns: bool,
}

/// A foreign key's column that is new, and the protected one that it refers to.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Which of the new columns.
    pub column: usize,
    /// The other table.
    pub table: Arc<Table>,
    /// Its column.
    pub index: usize,
}

/// `CREATE TABLE … LIKE`.
#[derive(Clone, Debug)]
pub struct Copied {
    /// The statement up to the new table's name.
    pub head: Vec<u8>,
    /// The table whose definition is taken.
    pub source: Arc<Table>,
}

/// What becomes of a protected column so that a foreign key can be over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refitted {
    /// It becomes plaintext, as what it refers to is.
    Plaintext,
    /// It joins a group: it is `ENCRYPTED FOR` this.
    Joined(String),
    /// It gets another definition: name, type and attributes, and `ENCRYPTED FOR`.
    Redefined(String),
}

/// ALTER TABLE that adds a foreign key over protected columns which are not made for it, or gives
/// them definitions by which every cell would be another. If the table has no rows, they are made
/// anew.
#[derive(Clone, Debug)]
pub struct Refit {
    /// The table that is altered.
    pub table: Arc<Table>,
    /// What becomes of which of its columns.
    pub columns: Vec<(usize, Refitted)>,
    /// The statement up to the table's name.
    pub head: Vec<u8>,
    /// What stands behind the name.
    pub specifications: Vec<u8>,
    /// The table and those that the foreign keys name: no row may come while the statement runs.
    pub locked: Vec<TableName>,
    /// What is said where it cannot be; `None`: that of foreign keys.
    pub otherwise: Option<Refusal>,
}

/// A part of a definition's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DdlPiece {
    /// Text as it is.
    Sql(Vec<u8>),
    /// The physical definitions of a new column, in `CREATE TABLE`.
    Definitions(usize),
    /// `CHECK (…)` over a new column, in `CREATE TABLE`.
    Check {
        /// Which of the new columns.
        column: usize,
        /// The condition's number.
        number: usize,
    },
    /// The guard of a new column's CHECK constraints, in `CREATE TABLE`.
    Guard(usize),
    /// The specifications that add a new column, in `ALTER TABLE`.
    Add {
        /// Which of the new columns.
        column: usize,
        /// Where: `None` at the end, `Some(None)` first, `Some(Some(name))` after a column.
        place: Option<Option<String>>,
    },
    /// The column that an index on a new column is built on.
    IndexColumn(usize),
    /// The comment of an index over prefixes of protected columns: which columns it is built on,
    /// and how long the prefixes are.
    PrefixLengths(Vec<(Prefixed, u32)>),
    /// New comments for the protected columns that the statement does not change otherwise, each
    /// with a comma behind it. The mark of all of them changes.
    Renew,
    /// The specifications that drop a protected column, by its index in [`Ddl::table`].
    Drop(usize),
    /// The specifications that rename a protected column.
    Rename(usize, String),
    /// The specifications that change a protected column's default.
    SetDefault(usize, Option<DefaultLiteral>),
    /// The specification that gives a protected column another definition, by which no cell
    /// changes.
    Redefine(Redefined),
    /// The specification by which a protected column keeps the actions of the foreign keys whose
    /// first column it is.
    SetActions(usize, KeyActions),
    /// Behind DROP CONSTRAINT: which columns the constraint of this name is over is asked of the
    /// server. What it becomes begins with a comma.
    DroppedConstraint(String),
    /// The specification by which a protected column forgets one of its CHECK constraints, with a
    /// comma before it: the column's index in [`Ddl::table`], and the condition's number.
    ForgetCheck(usize, usize),
    /// The name of an index that has none. It is made up as the server would: from the column's
    /// name, beside the indexes that the table has.
    IndexName {
        /// The column's.
        base: String,
        /// Names that stand before it in the statement.
        taken: Vec<String>,
        /// Indexes that the statement drops.
        freed: Vec<String>,
    },
    /// A foreign key refers to a table that is not there, which the server says unless it does not
    /// look at foreign keys: then it is refused with these words. No text.
    MissingReference(String),
    /// A note about a column that is there already; no text.
    Present(String),
    /// MariaDB's note about an index that would be too long over the whole of a protected column;
    /// no text.
    KeyTooLong,
    /// The columns of a view that say how the table calls one of its columns.
    AliasMarks(AliasMarks),
    /// A constant of a view's query that a protected column is compared with. The proxy puts its
    /// token in its place, with what the client wrote.
    Constant(Slot),
}

/// What `MODIFY` or `CHANGE` says of a protected column beside its type and whether there may be
/// NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redefined {
    /// Its place in [`Ddl::table`].
    pub index: usize,
    /// Its name, perhaps another one.
    pub name: String,
    /// Whether there may be NULL.
    pub nullable: bool,
    /// DEFAULT.
    pub default: Option<DefaultLiteral>,
    /// COMMENT, empty if there is none.
    pub comment: String,
    /// It names a character set or a collation.
    pub explicit_collation: bool,
    /// The CHECK that belongs to its definition is left out (MariaDB).
    pub drops_check: bool,
    /// Where it goes, as in [`DdlPiece::Add`]; `None`: it stays.
    pub place: Option<Option<String>>,
}

/// What an index over a protected column's prefix is built on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prefixed {
    /// A column of the server's table.
    Existing(String),
    /// One of the new columns.
    New(usize),
}

/// A view's own name for a protected column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasMarks {
    /// The view's.
    pub name: String,
    /// The table's.
    pub original: String,
    /// The ids of the table and of the column.
    pub ids: ([u8; 8], [u8; 4]),
    /// In the view's list of columns; else in its query.
    pub listed: bool,
}
