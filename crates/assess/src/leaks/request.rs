//! What is asked of a database.

use std::path::PathBuf;

use onionskin_rowstream::client::ConnectOptions;

/// What an attacker knows beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auxiliary {
    /// Nothing.
    Nothing,
    /// This many rows of a hundred, drawn by each seed.
    HeldApart(u8),
    /// Columns of the same names of another table, as `database.table`.
    Table(String),
    /// Lines `value` or `value,count`, for one column.
    File(PathBuf),
}

/// What is asked for.
pub struct Request {
    /// How to reach the server or the proxy.
    pub connect: ConnectOptions,
    /// What its address looks like, for the report.
    pub address: String,
    /// The database.
    pub database: String,
    /// One table of it; `None`: all.
    pub table: Option<String>,
    /// `patients.age: eq range; note`; `None`: all columns, for all that their types can have.
    pub columns: Option<String>,
    /// What an attacker knows.
    pub auxiliary: Auxiliary,
    /// Reads what the server has, and no value of a protected column.
    pub as_server: bool,
    /// Rows of a table that are read at most.
    pub rows: u32,
    /// How often the attacks are played, each time under other keys.
    pub seeds: u32,
    /// Rows a second.
    pub pace: u32,
    /// This program's version.
    pub program: String,
}
