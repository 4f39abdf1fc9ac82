//! The servers that are measured: private ones with the configuration under test, or one that is
//! given.
//!
//! | module | what it holds |
//! |---|---|
//! | `private` | a temporary server: its data, options, keys; started and ended |
//! | `keys` | keys for encryption at rest |
//! | `given` | a server by its DSN, where no restart is needed |
//! | `session` | statements of the benchmark itself |
//!
//! The benchmark's account on a private server has a random password, and its data directory is
//! readable by its user alone. On a given server, databases named `onionskin_bench_…` are made and
//! dropped, nothing else is touched.

mod given;
mod keys;
mod private;
mod session;

pub use given::{Dsn, Given};
pub use private::{Configuration, Private, Workshop, free_port};
pub use session::Session;

use std::{fmt, path::PathBuf};

use crate::{error::BenchError, process::User, report::ServerInfo};

/// The two kinds of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// MariaDB
    MariaDb,
    /// MySQL
    MySql,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Family {
    /// As its makers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "MariaDB",
            Self::MySql => "MySQL",
        }
    }

    /// Of what `SELECT VERSION()` says.
    pub fn of_version(version: &str) -> Self {
        match version.contains("MariaDB") {
            true => Self::MariaDb,
            false => Self::MySql,
        }
    }
}

/// A server program that is installed here.
#[derive(Clone, Debug)]
pub struct Program {
    /// Which kind.
    pub family: Family,
    /// `mariadbd`, `mysqld`, or a script that becomes one of them.
    pub path: PathBuf,
    /// `mariadb-install-db` with the folder that it belongs to if it came with the server; MySQL
    /// needs none.
    pub installer: Option<(PathBuf, Option<PathBuf>)>,
    /// As whom it runs, if not as the caller.
    pub user: Option<User>,
}

/// Where a load goes, and as whom.
#[derive(Clone, Debug)]
pub struct Address {
    /// Name or number.
    pub host: String,
    /// TCP.
    pub port: u16,
    /// The account.
    pub user: String,
    /// Its password.
    pub password: String,
}

impl Address {
    /// The same account through a relay on this machine.
    pub fn through(&self, port: u16) -> Self {
        Self {
            host: "127.0.0.1".into(),
            port,
            ..self.clone()
        }
    }

    /// HOST:PORT
    pub fn text(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// A server that can be measured.
pub enum Server {
    /// Ours.
    Private(Box<Private>),
    /// Somebody's.
    Given(Given),
}

impl Server {
    /// Where it listens.
    pub fn address(&self) -> &Address {
        match self {
            Self::Private(server) => server.address(),
            Self::Given(server) => server.address(),
        }
    }

    /// A session of the benchmark's account.
    pub fn session(&self) -> Result<Session, BenchError> {
        match self {
            Self::Private(server) => server.session(),
            Self::Given(server) => server.session(),
        }
    }

    /// Its process, if it is ours.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Self::Private(server) => Some(server.pid()),
            Self::Given(_) => None,
        }
    }

    /// Its data directory, if it is ours.
    pub fn data(&self) -> Option<PathBuf> {
        match self {
            Self::Private(server) => Some(server.data()),
            Self::Given(_) => None,
        }
    }

    /// For the report.
    pub fn info(&self, settings: Vec<String>) -> Result<ServerInfo, BenchError> {
        let version = self.session()?.text("SELECT VERSION()")?;
        Ok(ServerInfo {
            family: Family::of_version(&version).name().into(),
            version,
            settings,
        })
    }
}
