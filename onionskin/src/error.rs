//! What a command ends with when it cannot do its work: one sentence and the way out.
//!
//! Exit codes: 0 done; 1 it could not be done; 2 the arguments, the configuration or the keys are not right, so that
//! trying again cannot help (`clap` uses 2 for arguments, too); 3 a sealed stream is damaged, cut, or none; 4 the source
//! of a backup has failed.

use std::{io, path::PathBuf, process::ExitCode};

use onionskin_backup::{StreamError, restore::RestoreError};
use onionskin_bench::BenchError;
use onionskin_keys::KeyError;

use crate::{bench, config_file::ConfigError, private::PrivateError};

/// Why a command ended early. No text holds a value, a key or a password.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// `onionskin.toml`.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `keys.json`.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The private server.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// There is a file already, and it is not ours to overwrite.
    #[error("{} exists and is not overwritten: choose another folder with --dir, or remove it if nothing was written under its keys", .0.display())]
    Exists(PathBuf),
    /// A file or folder could not be made or read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The keys of an existing private server are gone.
    #[error(
        "{} holds a private server's data, but {} is missing: put the file back, without it nothing that is encrypted there can be read",
        data.display(),
        keys.display()
    )]
    KeysLost {
        /// The data directory.
        data: PathBuf,
        /// Where the key file was.
        keys: PathBuf,
    },
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Listen {
        /// The address.
        address: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The name in `listen` stands for no address.
    #[error("listen = \"{address}\" is not HOST:PORT: {source}; write for example 127.0.0.1:3307")]
    ListenAddress {
        /// The setting.
        address: String,
        /// What is wrong with it.
        source: io::Error,
    },
    /// `--backend`
    #[error("--backend: {0}; write host:port or unix:/path/to/its.sock")]
    BackendAddress(String),
    /// Everybody on the network could administer the private server.
    #[error(
        "the private server's root account has no password, and {address} can be reached from other machines: \
         listen on 127.0.0.1 first, run ALTER USER 'root'@'localhost' IDENTIFIED BY '...' through the proxy, then start it with this address"
    )]
    OpenRoot {
        /// The setting.
        address: String,
    },
    /// The operating system refused something that always works.
    #[error("{doing}: {source}")]
    System {
        /// What was attempted.
        doing: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// A stream could not be sealed, opened or verified.
    #[error("{name}: {source}")]
    Stream {
        /// What was read.
        name: String,
        /// What went wrong.
        source: StreamError,
    },
    /// A backup could not be restored.
    #[error("{name}: {source}")]
    Restore {
        /// The file.
        name: String,
        /// What went wrong.
        source: RestoreError,
    },
    /// A backup is what was written, and was damaged before.
    #[error(
        "{name}: {pages} InnoDB pages were damaged when the backup was made: look for an older backup, and at the server's disks"
    )]
    DamagedPages {
        /// The file.
        name: String,
        /// How many.
        pages: u64,
    },
    /// The benchmark.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// Arguments that `clap` cannot judge.
    #[error("{0}")]
    Arguments(String),
    /// The back end cannot be asked.
    #[error("{0}")]
    Explain(String),
    /// The demonstration saw something that must not be.
    #[error("the demonstration failed: {0}")]
    Demo(String),
}

impl CommandError {
    /// See the module.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_)
            | Self::Keys(_)
            | Self::Exists(_)
            | Self::KeysLost { .. }
            | Self::ListenAddress { .. }
            | Self::BackendAddress(_)
            | Self::OpenRoot { .. } => ExitCode::from(2),
            Self::Arguments(_) => ExitCode::from(2),
            Self::DamagedPages { .. } => ExitCode::from(3),
            Self::Stream { source, .. } => of_stream(source),
            Self::Restore { source, .. } => match source {
                RestoreError::NotEmpty(_) | RestoreError::OtherSource(_) => ExitCode::from(2),
                RestoreError::Stream(source) => of_stream(source),
                _ => ExitCode::FAILURE,
            },
            Self::Bench(error) => bench::exit_code(error),
            Self::Private(error) if error.is_about_the_setup() => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

fn of_stream(error: &StreamError) -> ExitCode {
    match error {
        StreamError::Key(_) | StreamError::WrongKey(_) | StreamError::OtherKeySource(_) => {
            ExitCode::from(2)
        }
        StreamError::Source(_) => ExitCode::from(4),
        damage if damage.is_damage() => ExitCode::from(3),
        _ => ExitCode::FAILURE,
    }
}
