//! What is asked of a server.

use std::path::PathBuf;

use onionskin_rowstream::client::ConnectOptions;

/// What is asked for.
pub struct Request {
    /// How to reach the server.
    pub connect: ConnectOptions,
    /// What its address looks like, for the report.
    pub address: String,
    /// The server's certificate is verified.
    pub verified: bool,
    /// The data directory, if it is not to be found by the server's own word.
    pub data: Option<PathBuf>,
    /// A database to make, plant a text in, and drop.
    pub plant: Option<String>,
    /// A file of values to look for, one a line.
    pub search: Option<PathBuf>,
    /// A folder of backups.
    pub backups: Option<PathBuf>,
    /// MiB of files that are read in a second.
    pub pace: u32,
    /// This program's version.
    pub program: String,
}
