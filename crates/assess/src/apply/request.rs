//! What is asked for.

use std::path::PathBuf;

use crate::server;

/// What is asked for.
pub struct Request {
    /// How the server is reached and looked at. Of its options the data directory, the planted
    /// database and the pace count.
    pub look: server::Request,
    /// Tablespaces, redo and undo logs, temporary files.
    pub tde: bool,
    /// The binary log.
    pub binlog: bool,
    /// Turn it off instead.
    pub revert: bool,
    /// Do it; otherwise the plan is told.
    pub yes: bool,
    /// The folder of the keys, if it is not beside the data directory.
    pub keys: Option<PathBuf>,
    /// The file of options that ours are written into.
    pub configuration: Option<PathBuf>,
    /// MySQL's server program, beside which its manifest lies.
    pub program: Option<PathBuf>,
    /// The command that restarts the server.
    pub restart_with: Option<String>,
    /// Old binary logs may be removed.
    pub purge_logs: bool,
    /// Largest table, in MiB, that MySQL may rewrite while its writers wait.
    pub writers_wait: u64,
}
