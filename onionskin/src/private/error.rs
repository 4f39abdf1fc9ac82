//! Why there is no private server.

use std::{io, path::PathBuf};

use super::program::Family;

/// One sentence and the way out.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// Neither in PATH nor where servers usually are.
    #[error(
        "no database server is installed: apt install mariadb-server (or mysql-server), \
         or set ONIONSKIN_MYSQLD to the path of mariadbd or mysqld"
    )]
    NoServer,
    /// Data of one, program of the other.
    #[error(
        "{} holds the data of a {family} server, and no {family} is installed: install it, or set ONIONSKIN_MYSQLD to its path",
        data.display()
    )]
    WrongFamily {
        /// The data directory.
        data: PathBuf,
        /// What it needs.
        family: Family,
    },
    /// Only the other one.
    #[error(
        "this needs the program of a {0} server, and none is installed: install the package {package}, or set ONIONSKIN_MYSQLD to its path",
        package = .0.package()
    )]
    NoServerOf(Family),
    /// Not a database server, or not one that runs here.
    #[error("{} does not say which server it is{said}; set ONIONSKIN_MYSQLD to the path of mariadbd or mysqld", path.display())]
    NotAServer {
        /// The program.
        path: PathBuf,
        /// What it said.
        said: String,
    },
    /// MariaDB without its scripts.
    #[error("{} has no mariadb-install-db beside it or in PATH: install MariaDB completely", .0.display())]
    NoInstaller(PathBuf),
    /// Root, and nobody else to run the server.
    #[error(
        "a database server should not run as root, and there is no user mysql: \
         make one with useradd --system mysql, or run onionskin as an ordinary user"
    )]
    NoServerUser,
    /// Made under another user.
    #[error("{} belongs to another user: run onionskin as that user, or choose another folder", .0.display())]
    NotOurs(PathBuf),
    /// The server's user may not pass a folder above.
    #[error(
        "the user {user}, as which the server runs because onionskin runs as root, cannot reach {} or {}: \
         choose a folder and a server that every user can reach, or run onionskin as an ordinary user",
        folder.display(),
        program.display()
    )]
    Unreachable {
        /// The user's name or number.
        user: String,
        /// Where the server is to run.
        folder: PathBuf,
        /// What it is to run.
        program: PathBuf,
    },
    /// Unix sockets have short names.
    #[error(
        "the path of the private server's socket would have {length} bytes ({}), and Unix allows 107: choose a shorter --private folder",
        socket.display()
    )]
    SocketPath {
        /// The path.
        socket: PathBuf,
        /// Its length.
        length: usize,
    },
    /// A scratch engine, and no memory for its tables.
    #[error(
        "there is no folder in memory (tmpfs) that can be written to, such as /dev/shm, and opened values must not come to a disk: mount one"
    )]
    NoMemory,
    /// A scratch engine, and a file system that is full, or nearly.
    #[error(
        "{} has {free} MiB free, and a scratch engine of {family}'s takes {needed} MiB: make room, or name another folder",
        folder.display()
    )]
    NoRoom {
        /// Where its folder was to be.
        folder: PathBuf,
        /// What is there.
        free: u64,
        /// What it takes.
        needed: u64,
        /// Which server.
        family: Family,
    },
    /// Two programs, one folder.
    #[error("{} is in use by another onionskin: stop that one, or choose another folder", .0.display())]
    InUse(PathBuf),
    /// A server of an earlier run that does not end.
    #[error("the server with process id {pid} still uses {} and does not end: stop it by hand", data.display())]
    StillRunning {
        /// Its process id.
        pid: i32,
        /// Its data directory.
        data: PathBuf,
    },
    /// The first data directory could not be made.
    #[error("{} could not be initialised by {}: {said}", data.display(), program.display())]
    Initialise {
        /// The data directory.
        data: PathBuf,
        /// What should have made it.
        program: PathBuf,
        /// Its last words.
        said: String,
    },
    /// It ended before it answered.
    #[error("the private server does not start ({status}); {} ends with:\n{said}", log.display())]
    DoesNotStart {
        /// How it ended.
        status: String,
        /// Its log.
        log: PathBuf,
        /// The end of it.
        said: String,
    },
    /// A signal came first.
    #[error("ended by a signal while the private server was starting")]
    Interrupted,
    /// A file, folder or process.
    #[error("{}: {source}", path.display())]
    System {
        /// Which one.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

impl PrivateError {
    /// The sentence without what a server or its installer has said.
    pub fn without_details(&self) -> String {
        match self {
            Self::Initialise { .. } => {
                "its data directory could not be made, and the log says why".into()
            }
            Self::DoesNotStart { .. } => "it does not start, and the log says why".into(),
            other => other.to_string(),
        }
    }

    /// Whether trying again cannot help.
    pub fn is_about_the_setup(&self) -> bool {
        !matches!(
            self,
            Self::InUse(_)
                | Self::StillRunning { .. }
                | Self::DoesNotStart { .. }
                | Self::Interrupted
                | Self::System { .. }
        )
    }
}
