//! What is asked of a database.

use onionskin_rowstream::client::ConnectOptions;

/// What is asked for.
pub struct Request {
    /// How to reach the server.
    pub connect: ConnectOptions,
    /// What its address looks like, for the report.
    pub address: String,
    /// The database.
    pub database: String,
    /// Rows of a table that are looked at.
    pub rows: u32,
    /// Tables a second.
    pub pace: u32,
    /// This program's version.
    pub program: String,
}
