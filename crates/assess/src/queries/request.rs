//! What is asked of an application's statements.

use std::path::PathBuf;

use onionskin_rowstream::client::ConnectOptions;

/// What is asked for.
pub struct Request {
    /// How to reach the server.
    pub connect: ConnectOptions,
    /// What its address looks like, for the report.
    pub address: String,
    /// The database whose tables are to be protected.
    pub database: String,
    /// A file of statements or a log; `-` for standard input.
    pub statements: Option<PathBuf>,
    /// The server's digests of statements.
    pub digests: bool,
    /// `customers.email,orders.*`; `None`: what `assess data` proposes.
    pub columns: Option<String>,
    /// Whether there will be a scratch engine.
    pub engine: bool,
    /// Whether MariaDB keeps grams for LIKE.
    pub like_index: bool,
    /// Rows of a table that may be read whole.
    pub small: u64,
    /// This program's version.
    pub program: String,
}
