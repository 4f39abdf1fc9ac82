//! What a plan says of the scratch engine: the tables to bring there, and what becomes of its
//! answer.

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::Table;

use super::{ColumnUse, ResultItem, Text};

/// A statement for the scratch engine, and the tables that it needs there.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// One for each reference to a table.
    pub reads: Vec<ScratchRead>,
    /// The user variables that the statement reads, as it writes them: `@x`.
    pub variables: Vec<Vec<u8>>,
    /// References with a name of their own, in the order of the statement.
    pub renamed: Vec<Renamed>,
    /// `FOUND_ROWS()` may be more than the rows that are shown: SQL_CALC_FOUND_ROWS, LIMIT.
    pub finds_more: bool,
}

/// A table of the statement: how its rows are read, and where they go.
#[derive(Clone, Debug)]
pub struct ScratchRead {
    /// The table.
    pub table: Arc<Table>,
    /// The temporary table's name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ScratchColumn>,
    /// What the server's result consists of, column by column.
    pub fetch: Vec<ResultItem>,
    /// The table with its alias, as the server knows it.
    pub source: String,
    /// `SELECT … FROM …`
    pub text: Text,
    /// What the rows have to fulfil. A condition whose constants cannot be bound may be left out.
    pub conditions: Vec<Text>,
    /// The clause behind it that locks the rows, or nothing.
    pub lock: &'static str,
    /// How many seconds it waits for rows that others have locked: MariaDB's WAIT, in digits.
    pub seconds: Option<String>,
    /// Of a table that is written to: what names a row, as the server is asked for it; the last of
    /// the result. The physical columns of the primary key, where there is one.
    pub key: Vec<String>,
    /// What the values of `key` are.
    pub named_by: NamedBy,
    /// The columns of another table are made from these: they have all defaults and comments.
    pub defines: bool,
    /// The collation of that table.
    pub collation: Option<String>,
}

/// A column of a temporary table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScratchColumn {
    /// Its place among the table's columns.
    pub index: usize,
    /// In which form it comes from the server.
    pub carried: Carried,
}

/// What a server answers in the place of digits that are longer than its `max_allowed_packet`.
pub const TOO_LONG: &[u8] = b"-";

/// The form in which the server is asked for a column, so that the value arrives exactly, whatever
/// the session's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// The sealed cell.
    Sealed,
    /// A number in digits.
    Number,
    /// The bytes of a string in hexadecimal digits, in the column's own character set; or
    /// [`TOO_LONG`].
    Hex,
    /// A text of digits and punctuation: a date, a time, an address.
    Quoted,
    /// Seconds since 1970 in UTC: a TIMESTAMP.
    Epoch,
}

/// A part of the statement that is written otherwise for the scratch engine: a reference to a
/// table, or the end of an item that gets a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// Its tokens: the first, and one past the last.
    pub tokens: (usize, usize),
    /// What stands there instead.
    pub text: String,
}

/// A statement that changes tables by way of the scratch engine.
#[derive(Clone, Debug)]
pub struct ScratchWrite {
    /// What is read, as for a query.
    pub scratch: Scratch,
    /// What is written.
    pub effect: Effect,
}

impl ScratchWrite {
    /// Whether it reads a file of the client's, in which case servers do not prepare it.
    pub fn loads(&self) -> bool {
        matches!(&self.effect, Effect::Insert(new) if new.load.is_some())
    }

    /// Whether rows of a table are inserted into the same table.
    pub fn inserts_its_own_rows(&self) -> bool {
        let reads = |table: &Arc<Table>| {
            let mut sources = self.scratch.reads.iter().map(|read| &read.table);
            sources.any(|s| s.database == table.database && s.name == table.name)
        };
        matches!(&self.effect, Effect::Insert(new) if reads(&new.table))
    }

    /// Whether rows that are met get values that are computed from both.
    pub fn upserts(&self) -> bool {
        matches!(&self.effect, Effect::Insert(new) if new.met.is_some())
    }

    /// The names of the columns that rows which are met get such values in.
    pub fn changed_if_met(&self) -> impl Iterator<Item = &str> {
        let new = match &self.effect {
            Effect::Insert(new) => Some(new),
            _ => None,
        };
        new.into_iter().flat_map(|new| new.changed_if_met())
    }
}

/// What becomes of the temporary tables.
#[derive(Clone, Debug)]
pub enum Effect {
    /// The rows of a query are new ones.
    Insert(Box<NewRows>),
    /// Rows that have changed are written.
    Update(Vec<Written>),
    /// Rows that are gone are deleted.
    Delete(Vec<Written>),
    /// The rows of a query are a new table.
    Create(Box<NewTable>),
}

/// `INSERT … SELECT`
#[derive(Clone, Debug)]
pub struct NewRows {
    /// The table.
    pub table: Arc<Table>,
    /// Its columns: those that the rows give, in the order of the query's, and those of which the
    /// temporary table computes the default.
    pub columns: Vec<WrittenColumn>,
    /// How many of them the rows give.
    pub given: usize,
    /// The tokens from the verb to the table's name: the first, and one past the last.
    pub head: (usize, usize),
    /// Those of the query.
    pub query: (usize, usize),
    /// Those behind it, ON DUPLICATE KEY UPDATE.
    pub tail: (usize, usize),
    /// What does not fit is changed until it does.
    pub ignore: bool,
    /// `REPLACE`
    pub replaces: bool,
    /// They come from a file of the client's instead of a query.
    pub load: Option<Load>,
    /// Rows that they meet get values that are computed from both.
    pub met: Option<Box<MetRows>>,
    /// They stand in the statement, which has no such clause.
    pub values: Option<NewValues>,
}

impl NewRows {
    /// The names of the columns that rows which are met get computed values in.
    pub fn changed_if_met(&self) -> impl Iterator<Item = &str> {
        let columns = self.met.iter().flat_map(|met| &met.columns);
        columns.filter_map(|column| Some(self.table.columns.get(column.index)?.name.as_str()))
    }
}

/// A table that an `UPDATE` or `DELETE` writes to.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its place among the reads.
    pub read: usize,
    /// The columns that are assigned.
    pub columns: Vec<WrittenColumn>,
    /// One of them is a key or the first column of one.
    pub moves: bool,
    /// The tokens of ORDER BY with what it sorts by: rows are written in that order, strictly so if
    /// one of the columns is known to be in a key.
    pub order: Option<(usize, usize)>,
    /// `UPDATE IGNORE`: a row that would get another's key stays as it is.
    pub ignores: bool,
}

/// A column that gets values out of a temporary table.
#[derive(Clone, Debug)]
pub struct WrittenColumn {
    /// Its place among the table's columns.
    pub index: usize,
    /// Its place among the plan's columns, if it is protected.
    pub sealed: Option<usize>,
    /// How the temporary table is asked for it.
    pub text: String,
    /// In which form it comes then.
    pub carried: Carried,
}

/// `CREATE TABLE … SELECT`. Ranges are of tokens: the first, and one past the last.
#[derive(Clone, Debug)]
pub struct NewTable {
    /// Its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// `TEMPORARY`
    pub temporary: bool,
    /// `OR REPLACE`
    pub or_replace: bool,
    /// `IF NOT EXISTS`
    pub if_absent: bool,
    /// `IGNORE`
    pub ignore: bool,
    /// `REPLACE`
    pub replaces: bool,
    /// What stands in the parentheses of the column list.
    pub list: Option<(usize, usize)>,
    /// What of it is the proxy's own: ENCRYPTED FOR.
    pub cut: Vec<(usize, usize)>,
    /// The columns with such words, and the words.
    pub encrypted: Vec<(String, String)>,
    /// The columns of the list.
    pub listed: Vec<String>,
    /// Options and partitions.
    pub options: (usize, usize),
    /// The query.
    pub query: (usize, usize),
    /// The table's collation.
    pub collation: String,
    /// For each column of the query, whether it is made from protected ones.
    pub handed: Vec<bool>,
    /// For each column of the query, whether it is called after an expression with a constant in
    /// it; or one word about all of them.
    pub called: Vec<bool>,
    /// There are so many columns as `handed` has. Otherwise their number is not known, and its only
    /// word is about all of them.
    pub positional: bool,
}

/// The clauses of a `LOAD DATA`, as tokens: each the first, and one past the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The name of the file, a literal.
    pub file: usize,
    /// What stands between the table's name and the list of columns: CHARACTER SET, FIELDS, LINES,
    /// IGNORE n LINES.
    pub clauses: (usize, usize),
    /// They say which character set the file has.
    pub names_charset: bool,
    /// The list of columns and variables, parentheses included; empty if there is none.
    pub list: (usize, usize),
    /// SET and the assignments behind it.
    pub assignments: (usize, usize),
}

/// How rows that are there already get their new values.
#[derive(Clone, Debug)]
pub struct MetRows {
    /// How they are read, all of their columns; conditions are added for each new row.
    pub read: ScratchRead,
    /// The columns that are assigned.
    pub columns: Vec<WrittenColumn>,
    /// A column that is assigned to itself as `LAST_INSERT_ID(id)`, by its place among the table's.
    pub told: Option<usize>,
    /// Plain columns of which the clause reads the new row's value. A trigger may have changed it.
    pub given: Vec<usize>,
    /// The tokens of the clause, the new row's alias included, counted from the statement's end.
    pub tail: usize,
    /// The columns that a row leaves out and that get a value which only the server knows.
    pub unknown: Vec<usize>,
    /// Where the new rows come from, if not from a query.
    pub values: Option<NewValues>,
}

impl MetRows {
    /// The tokens of the clause in a statement of so many, without those behind its end.
    pub fn clause(&self, end: usize) -> Range<usize> {
        end.saturating_sub(self.tail)..end
    }
}

/// New rows that stand in the statement.
#[derive(Clone, Debug)]
pub enum NewValues {
    /// `VALUES (…), (…)`: the token of the word; they end where the clause begins.
    Rows(usize),
    /// `SET a = 1, b = 2`: the tokens of each value.
    Set(Vec<(usize, usize)>),
}

/// What the values of [`RowNames::parts`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// The primary key.
    Key,
    /// Sealed cells, and what else stays as it is. A row in which all of that is NULL has no name.
    Cells,
    /// The whole row: several rows may be alike.
    Row,
}

/// A constant that has to be computed.
#[derive(Clone, Debug)]
pub struct Computed {
    /// Its first byte in the statement, and one past its last.
    pub place: (usize, usize),
    /// What it is meant for.
    pub column: ColumnUse,
}
