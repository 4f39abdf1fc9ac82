//! What a command ends with when it cannot do its work: one sentence and the way out.
//!
//! Exit codes: 0 done; 1 it could not be done; 2 the arguments, the configuration or the keys are
//! not right, so that trying again cannot help (`clap` uses 2 for arguments, too); 3 a sealed
//! stream is damaged, cut, or none, or no server runs on it; 4 the source of a backup has failed,
//! or the server that is assessed or dumped; 5 a reload is in force, and statements that began
//! before still run.

use std::{io, path::PathBuf, process::ExitCode};

use onionskin_assess::AssessError;
use onionskin_backup::{
    StreamError, archive::ArchiveError, catalogue::ChainError, restore::RestoreError,
};
use onionskin_bench::BenchError;
use onionskin_dump::DumpError;
use onionskin_keys::{KeyError, RecipientError};
use onionskin_migrate::MigrateError;
use onionskin_objects::Fault;
use onionskin_proxy::PinError;

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
    /// Recipients or identities cannot be read.
    #[error(transparent)]
    Recipients(#[from] RecipientError),
    /// A file with a passphrase.
    #[error("{0}")]
    Secret(String),
    /// The private server.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// There is a file already, and it is not ours to overwrite.
    #[error("{} exists and is not overwritten: choose another folder with --dir, or remove it if nothing was written under its keys", .0.display())]
    Exists(PathBuf),
    /// There is a tenants file already.
    #[error("{} exists and is not overwritten: no value of a tenant could be read any more", .0.display())]
    TenantsExist(PathBuf),
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
    /// The audit log cannot be written or read.
    #[error("audit log: {0}")]
    Audit(#[from] onionskin_audit::AuditError),
    /// Lines of it were removed or changed.
    #[error("the audit log is not as it was written: {faults} faults")]
    AuditLog {
        /// How many.
        faults: usize,
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
    #[error(
        "listen: {address} stands for no address of this machine: {source}; write for example 127.0.0.1:3307"
    )]
    ListenAddress {
        /// The setting.
        address: String,
        /// What is wrong with it.
        source: io::Error,
    },
    /// The administration address is taken, or not ours.
    #[error(
        "cannot listen on admin = \"{address}\": {source}; choose another address, or leave admin out"
    )]
    AdminListen {
        /// The setting.
        address: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// Everybody on the network could read the metrics.
    #[error(
        "admin = \"{address}\" can be reached from other machines: name a file with a token in admin_token_file, \
         or listen on 127.0.0.1 or a Unix socket"
    )]
    OpenAdmin {
        /// The setting.
        address: String,
    },
    /// The token of the administration address.
    #[error("admin_token_file: {0}")]
    AdminToken(String),
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
    /// An incremental backup without what it continues.
    #[error("{0}: put the missing file back beside it, under any name")]
    Chain(#[from] ChainError),
    /// A folder holds streams whose footers do not verify.
    #[error("{streams} of the streams in {} do not verify: see the list", folder.display())]
    Unverified {
        /// The folder.
        folder: PathBuf,
        /// How many.
        streams: usize,
        /// Whether any of them is damaged, so that no key can help.
        damaged: bool,
    },
    /// A server that was started on a backup finds fault with it.
    #[error("{name}: {what}: look for an older backup")]
    Trial {
        /// The file.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// The server cannot be asked for a backup, or refuses it.
    #[error("{0}")]
    Clone(String),
    /// The binlog archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Archived transactions could not be replayed.
    #[error("{0}")]
    Replay(String),
    /// The benchmark.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// Nothing can be said of a server.
    #[error(transparent)]
    Assess(#[from] AssessError),
    /// No dump was written.
    #[error("{0}; there is no dump")]
    Dump(#[from] DumpError),
    /// The server cannot be asked what is protected.
    #[error("{0}; there is no dump")]
    DumpSource(String),
    /// Something lies open, or cannot be seen.
    #[error("{0}")]
    LiesOpen(String),
    /// Arguments that `clap` cannot judge.
    #[error("{0}")]
    Arguments(String),
    /// The back end cannot be asked.
    #[error("{0}")]
    Explain(String),
    /// The pins cannot be used by a proxy.
    #[error(transparent)]
    Pins(#[from] PinError),
    /// The pins could not be written, or hold what is not so any more.
    #[error("{0}")]
    Pin(String),
    /// A configuration was not put in force.
    #[error("{0}; nothing was changed")]
    Reload(String),
    /// The provider of the root key has not answered for the time that the keys may be used.
    #[error(
        "ended: the provider of the root key has not answered within keys_ttl_seconds ({0} seconds), and the keys may not be used any longer"
    )]
    KeysExpired(f64),
    /// A configuration is in force, and statements still run under the one before.
    #[error("{0}")]
    StillRunning(String),
    /// The running proxy cannot be asked, or does not do what it is asked.
    #[error("{0}")]
    Control(String),
    /// A table could not be changed.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// Something is still under a key, or is not known to be under another one.
    #[error("{0}")]
    KeyInUse(String),
    /// Not all tables are under the active key.
    #[error("{0}")]
    RollUnfinished(String),
    /// The demonstration saw something that must not be.
    #[error("the demonstration failed: {0}")]
    Demo(String),
}

impl CommandError {
    /// See the module.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            // a provider that is away comes back, and whoever restarts programs shall do so
            Self::Keys(error) if error.may_pass() => ExitCode::FAILURE,
            Self::Config(_)
            | Self::Keys(_)
            | Self::Recipients(_)
            | Self::Secret(_)
            | Self::Pins(_)
            | Self::Exists(_)
            | Self::TenantsExist(_)
            | Self::KeysLost { .. }
            | Self::ListenAddress { .. }
            | Self::BackendAddress(_)
            | Self::OpenAdmin { .. }
            | Self::AdminToken(_)
            | Self::Reload(_)
            | Self::OpenRoot { .. } => ExitCode::from(2),
            Self::Arguments(_) => ExitCode::from(2),
            Self::File { source, .. } if is_about_the_setup(source) => ExitCode::from(2),
            Self::Chain(_) | Self::Unverified { damaged: false, .. } => ExitCode::from(2),
            Self::DamagedPages { .. }
            | Self::Unverified { .. }
            | Self::Trial { .. }
            | Self::AuditLog { .. } => ExitCode::from(3),
            Self::Clone(_) => ExitCode::from(4),
            Self::Dump(error) if error.is_about_the_request() => ExitCode::from(2),
            Self::Dump(DumpError::Server { .. }) | Self::DumpSource(_) => ExitCode::from(4),
            Self::Assess(error) if error.is_about_the_request() => ExitCode::from(2),
            Self::Assess(_) => ExitCode::from(4),
            Self::StillRunning(_) => ExitCode::from(5),
            Self::Stream { source, .. } => of_stream(source),
            Self::Restore { source, .. } => match source {
                RestoreError::NotEmpty(_)
                | RestoreError::OtherSource(_)
                | RestoreError::Chain(_) => ExitCode::from(2),
                RestoreError::Content(_) | RestoreError::Member(_) | RestoreError::Setting(_) => {
                    ExitCode::from(3)
                }
                RestoreError::Stream(source) => of_stream(source),
                _ => ExitCode::FAILURE,
            },
            Self::Migrate(error) if error.is_about_the_request() => ExitCode::from(2),
            Self::Archive(error) => match error {
                ArchiveError::Stream { source, .. } => of_stream(source),
                ArchiveError::Gap { .. }
                | ArchiveError::NotASegment(_)
                | ArchiveError::OtherNote { .. }
                | ArchiveError::Refused { .. } => ExitCode::from(3),
                ArchiveError::InUse(_)
                | ArchiveError::OtherServer { .. }
                | ArchiveError::NoNote { .. }
                | ArchiveError::OtherBackup(_)
                | ArchiveError::NoBorder(_) => ExitCode::from(2),
                ArchiveError::Binlog(_)
                | ArchiveError::Purged(..)
                | ArchiveError::Reset(_)
                | ArchiveError::Torn(_)
                | ArchiveError::MissingGtids { .. } => ExitCode::from(4),
                _ => ExitCode::FAILURE,
            },
            Self::Bench(error) => bench::exit_code(error),
            Self::Private(error) if error.is_about_the_setup() => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

/// Whether an object store cannot be used with this environment.
fn is_about_the_setup(error: &io::Error) -> bool {
    let fault = error.get_ref().and_then(|inner| inner.downcast_ref());
    fault.is_some_and(Fault::is_about_the_setup)
}

fn of_stream(error: &StreamError) -> ExitCode {
    match error {
        StreamError::Key(_)
        | StreamError::WrongKey(_)
        | StreamError::NoIdentity { .. }
        | StreamError::Recipients(_)
        | StreamError::OtherKeySource(_) => ExitCode::from(2),
        StreamError::Source(_) => ExitCode::from(4),
        damage if damage.is_damage() => ExitCode::from(3),
        _ => ExitCode::FAILURE,
    }
}
