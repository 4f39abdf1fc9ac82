//! Why the benchmark, a scenario or a run cannot be had: one sentence and the way out.

use std::{io, path::PathBuf};

use crate::report::ReportError;

/// What can go wrong. No text holds a password.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A signal came.
    #[error("ended by a signal")]
    Interrupted,
    /// No such scenario.
    #[error("there is no scenario {name}: `onionskin bench list` shows {known}")]
    UnknownScenario {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A server of that family is not installed.
    #[error(
        "no {0} server is installed: apt install mariadb-server (or mysql-server), or set ONIONSKIN_MYSQLD to the path of mariadbd or mysqld"
    )]
    NoServer(&'static str),
    /// The temporary folder is too small.
    #[error(
        "{} has {free_mib} MiB free, and {scenario} needs about {needed_mib}: free some, set TMPDIR to a larger place, or choose a smaller run", folder.display()
    )]
    NoSpace {
        /// Where the servers would lie.
        folder: PathBuf,
        /// What is free there.
        free_mib: u64,
        /// What is needed.
        needed_mib: u64,
        /// For what.
        scenario: String,
    },
    /// The results are to be written where others are.
    #[error(
        "{} holds a report already and is not overwritten: choose another folder with --out", .0.display()
    )]
    Exists(PathBuf),
    /// The given server refuses what the measurements need.
    #[error(
        "the account {user} may not {doing} on {server} ({said}): give the DSN of an account with ALL PRIVILEGES on `onionskin_bench%`.*"
    )]
    NoRights {
        /// The account.
        user: String,
        /// The server's address.
        server: String,
        /// What was tried.
        doing: String,
        /// What the server said.
        said: String,
    },
    /// The given server has something of ours, and nobody knows whose.
    #[error(
        "the database {database} exists on {server} already: another benchmark runs there, or one was killed; drop it if it is of no use"
    )]
    DatabaseExists {
        /// Its name.
        database: String,
        /// Where.
        server: String,
    },
    /// `--server`
    #[error(
        "--server {given}: {said}; write mariadb, mysql, or mysql://user@host:port, with the password in ONIONSKIN_PASSWORD"
    )]
    Dsn {
        /// Without its password.
        given: String,
        /// What is wrong.
        said: String,
    },
    /// The given server does not answer.
    #[error("{server} cannot be reached: {said}; start it, or correct --server")]
    Unreachable {
        /// Its address.
        server: String,
        /// Why not.
        said: String,
    },
    /// The port that was asked for is taken.
    #[error(
        "port {port} on 127.0.0.1 is in use ({said}): choose another with --port, or leave it out"
    )]
    Port {
        /// Which.
        port: u16,
        /// What the operating system said.
        said: String,
    },
    /// A private server does not come up.
    #[error("a private {family} server does not start: {said}")]
    ServerStart {
        /// Which.
        family: String,
        /// Its last words.
        said: String,
    },
    /// A program of ours or of others.
    #[error("{program}: {said}")]
    Program {
        /// Its name.
        program: String,
        /// Its last words.
        said: String,
    },
    /// A statement that had to succeed.
    #[error("{sql}: {said}")]
    Statement {
        /// The beginning of its text.
        sql: String,
        /// What the server said.
        said: String,
    },
    /// A file, folder or process.
    #[error("{doing}: {source}")]
    System {
        /// What was attempted.
        doing: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The description of the scenarios.
    #[error("the description of the scenarios: {0}")]
    Catalogue(String),
    /// The report is written, and not all is in it.
    #[error("not everything could be measured: {0}; the report says why")]
    Incomplete(String),
    /// A report.
    #[error(transparent)]
    Report(#[from] ReportError),
}

impl BenchError {
    /// For `map_err`.
    pub fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }

    /// Whether trying again cannot help.
    pub fn is_about_the_setup(&self) -> bool {
        matches!(
            self,
            Self::UnknownScenario { .. }
                | Self::NoServer(_)
                | Self::NoSpace { .. }
                | Self::Exists(_)
                | Self::NoRights { .. }
                | Self::DatabaseExists { .. }
                | Self::Dsn { .. }
                | Self::Port { .. }
                | Self::Catalogue(_)
                | Self::Report(_)
        )
    }
}
