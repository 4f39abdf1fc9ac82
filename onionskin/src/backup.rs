//! `onionskin backup`: a server's data into one sealed file.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use chrono::{DateTime, Datelike, Timelike};
use clap::{Args, ValueEnum};
use onionskin_backup::{
    Level, SealKey, SealOptions, default_threads,
    source::{Dump, MariadbBackup, Plain, Program},
};
use onionskin_keys::Suite;
use onionskin_proxy::Backend;
use tempfile::TempDir;

use crate::{
    error::CommandError,
    meter::Meter,
    seal::{finish, parse_level, parse_threads},
    stream_io::{Input, Output, Secret, start_source},
    stream_keys::{KeyArguments, Loaded},
};

/// Back up a server into a sealed file, with a manifest of what is in it
///
/// Arguments after -- go to the program that makes the backup; for dump they take the place of --all-databases.
#[derive(Args)]
pub struct Backup {
    #[command(flatten)]
    keys: KeyArguments,
    /// Who makes the backup
    #[arg(long, default_value = "mariadb-backup")]
    source: BackupSource,
    /// The new file; or a folder, in which it is named by its time and source
    #[arg(long, value_name = "PATH")]
    to: PathBuf,
    /// Account of the server that may make backups
    #[arg(long, default_value = "root")]
    user: String,
    /// Environment variable that holds its password; no password if it is not set
    #[arg(long, value_name = "NAME", default_value = "ONIONSKIN_PASSWORD")]
    password_env: String,
    /// aes (AES-256-GCM) or sm (SM4-GCM, SM3) [default: the configuration's, else aes]
    #[arg(long)]
    suite: Option<Suite>,
    /// How many threads compress and encrypt [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,
    /// Compression: 0 none, 1 fast to 19 small
    #[arg(long, value_name = "N", default_value = "3", value_parser = parse_level)]
    level: Level,
    /// No progress and no summary on standard error
    #[arg(short, long)]
    quiet: bool,
    /// More arguments for the program that makes the backup
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BackupSource {
    /// A physical backup of MariaDB while it runs; `restore` brings it back
    MariadbBackup,
    /// A logical dump by mariadb-dump, of MariaDB and MySQL
    Dump,
    /// Standard input
    Stdin,
}

impl BackupSource {
    fn name(self) -> &'static str {
        match self {
            Self::MariadbBackup => "mariadb-backup",
            Self::Dump => "dump",
            Self::Stdin => "stdin",
        }
    }
}

impl Backup {
    /// Makes the backup.
    pub fn run(self) -> Result<(), CommandError> {
        let Loaded {
            keys,
            suite,
            backend,
        } = self.keys.load()?;
        let options = SealOptions {
            level: self.level,
            threads: self.threads.unwrap_or_else(default_threads),
            ..SealOptions::new(self.suite.unwrap_or(suite))
        };
        let path = match self.to.is_dir() {
            true => self.to.join(file_name(self.source)),
            false => self.to.clone(),
        };
        let mut output = Output::create(Some(&path), Secret::Sealed)?;
        let meter = Meter::start("backing up", None, self.quiet);
        let progress = meter.progress().clone();
        let key = SealKey::KeySet(&keys);
        let sealed = match self.source {
            BackupSource::MariadbBackup => {
                // For its own notes; the backup goes through the pipe.
                let scratch = TempDir::new().map_err(|source| CommandError::System {
                    doing: "making a temporary folder",
                    source,
                })?;
                let program = self.start_mariadb_backup(backend.as_ref(), scratch.path())?;
                let source = MariadbBackup::new(program);
                onionskin_backup::seal(source, &mut output, key, &options, &progress)
            }
            BackupSource::Dump => {
                let source = Dump::new(self.start_dump(backend.as_ref())?);
                onionskin_backup::seal(source, &mut output, key, &options, &progress)
            }
            BackupSource::Stdin => {
                let source = Plain::stdin(Input::open(None)?.file);
                onionskin_backup::seal(source, &mut output, key, &options, &progress)
            }
        };
        finish(self.source.name(), sealed, output, meter)?;
        println!("{}", path.display());
        Ok(())
    }

    fn start_mariadb_backup(
        &self,
        backend: Option<&Backend>,
        scratch: &Path,
    ) -> Result<Program, CommandError> {
        // The user's own come first: --defaults-file works in no other place.
        let mut arguments = self.arguments.clone();
        arguments.extend(["--backup", "--stream=mbstream"].map(OsString::from));
        let mut target = OsString::from("--target-dir=");
        target.push(scratch);
        arguments.push(target);
        arguments.extend(self.connection(backend));
        self.start("mariadb-backup", &arguments)
    }

    fn start_dump(&self, backend: Option<&Backend>) -> Result<Program, CommandError> {
        let mut arguments = self.arguments.clone();
        if arguments.is_empty() {
            arguments.push("--all-databases".into());
        }
        // Options may follow the names of databases.
        let wanted = [
            "--single-transaction",
            "--routines",
            "--events",
            "--comments",
        ];
        arguments.extend(wanted.map(OsString::from));
        arguments.extend(self.connection(backend));
        self.start("mariadb-dump", &arguments)
    }

    fn connection(&self, backend: Option<&Backend>) -> Vec<OsString> {
        let mut arguments = vec![format!("--user={}", self.user).into()];
        match backend {
            Some(Backend::Tcp { host, port }) => {
                arguments.push("--protocol=TCP".into());
                arguments.push(format!("--host={host}").into());
                arguments.push(format!("--port={port}").into());
            }
            Some(Backend::Unix(path)) => {
                let mut socket = OsString::from("--socket=");
                socket.push(path);
                arguments.push(socket);
            }
            None => {}
        }
        arguments
    }

    fn start(&self, program: &str, arguments: &[OsString]) -> Result<Program, CommandError> {
        // In the environment, because everybody can read the arguments of a process.
        let password = std::env::var_os(&self.password_env).map(|password| ("MYSQL_PWD", password));
        start_source(program.as_ref(), arguments, password)
    }
}

/// `20261121-171736-mariadb-backup.sealed`, in UTC.
fn file_name(source: BackupSource) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let now = i64::try_from(now)
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .unwrap_or_default();
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}-{}.sealed",
        now.year(),
        now.month(),
        now.day(),
        now.hour(),
        now.minute(),
        now.second(),
        source.name()
    )
}
