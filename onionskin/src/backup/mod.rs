//! `onionskin backup`: a server's data into one sealed file; what a folder of such files holds, and
//! which of them may go.

mod clone;
mod dump;
mod identity;
mod list;
mod prune;
mod reach;

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use chrono::{DateTime, Timelike};
use clap::{Args, Subcommand, ValueEnum};
use onionskin_backup::{
    Level, SealKey, SealOptions,
    catalogue::Entry,
    default_threads,
    manifest::{Base, Server},
    source::{Dump, MariadbBackup, Plain, Program},
};
use onionskin_keys::{Suite, recipient_file::suite_of};
use tempfile::TempDir;

use crate::{
    chain::{Chain, read_catalogue},
    config_file::ConfigFile,
    error::CommandError,
    meter::Meter,
    place,
    private::Family,
    seal::{finish, parse_level, parse_threads},
    serve::parse_backend,
    stream_io::{Input, Output, also_remove_at_signal, file_error, start_source, watch_signals},
    stream_keys::{KeyFinder, OpeningKeys, RecipientArguments, wanted_suite},
    termination::Termination,
    trial_start::default_work,
};
use clone::{Clone, Copied};
use dump::Dumper;
use reach::Reach;

/// After so long nobody goes on with an upload.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// Back up a server into a sealed file, with a manifest of what is in it
///
/// Arguments after -- go to the program that makes the backup; for dump they take the place of
/// --all-databases.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Backup {
    #[command(subcommand)]
    existing: Option<Existing>,
    #[command(flatten)]
    keys: OpeningKeys,
    #[command(flatten)]
    recipients: RecipientArguments,
    /// Who makes the backup
    #[arg(long, default_value = "mariadb-backup")]
    source: BackupSource,
    /// The new file; or a folder, in which it is named by its time and source; or either of a
    /// bucket, s3://BUCKET/PREFIX
    #[arg(long, value_name = "PATH", required = true)]
    to: Option<PathBuf>,
    /// Only what has changed since this backup, or since the newest one in this folder; for
    /// mariadb-backup
    #[arg(long, value_name = "BASE")]
    incremental: Option<PathBuf>,
    /// Where clone makes its temporary copy, which needs room for all data [default: the system's
    /// temporary folder]
    #[arg(long, value_name = "FOLDER")]
    work: Option<PathBuf>,
    /// The server, in the place of the configuration's: host:port or unix:/path
    #[arg(long, value_name = "ADDR")]
    backend: Option<String>,
    /// Account of the server that may make backups
    #[arg(long, default_value = "root")]
    user: String,
    /// Environment variable that holds its password; no password if it is not set
    #[arg(long, value_name = "NAME", default_value = "ONIONSKIN_PASSWORD")]
    password_env: String,
    /// aes (AES-256-GCM) or sm (SM4-GCM, SM3) [default: that of the recipients or the
    /// configuration, else aes]
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

#[derive(Subcommand)]
enum Existing {
    List(list::List),
    Prune(prune::Prune),
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BackupSource {
    /// A physical backup of MariaDB while it runs; `restore` brings it back
    MariadbBackup,
    /// A physical backup of MySQL 8 and 9 by their clone plugin; `restore` brings it back
    Clone,
    /// A logical dump by mariadb-dump or mysqldump
    Dump,
    /// Standard input
    Stdin,
}

impl BackupSource {
    fn name(self) -> &'static str {
        match self {
            Self::MariadbBackup => "mariadb-backup",
            Self::Clone => "clone",
            Self::Dump => "dump",
            Self::Stdin => "stdin",
        }
    }
}

impl Backup {
    /// Makes the backup, or looks after those that there are.
    pub fn run(mut self) -> Result<(), CommandError> {
        match self.existing.take() {
            Some(Existing::List(list)) => list.run(),
            Some(Existing::Prune(prune)) => prune.run(),
            None => self.make(),
        }
    }

    fn make(self) -> Result<(), CommandError> {
        let finder = KeyFinder::new(&self.keys);
        let recipients = self.recipients.read()?;
        let own_config;
        let (key, suite, config) = if recipients.is_empty() {
            let loaded = finder.loaded()?;
            let suite = self.suite.unwrap_or(loaded.suite);
            (SealKey::KeySet(&loaded.keys), suite, loaded.config.as_ref())
        } else {
            own_config = self.keys.keys().config_if_there()?;
            let wanted = wanted_suite(self.suite, own_config.as_ref());
            let suite = suite_of(&recipients, wanted)?;
            (SealKey::Recipients(&recipients), suite, own_config.as_ref())
        };
        let server = self.server(config)?;
        let server = server.as_ref();
        let asked = self.asked(server);
        self.fits(asked.as_ref())?;
        let base = self.base(&finder, asked.as_ref())?;
        let options = SealOptions {
            level: self.level,
            threads: self.threads.unwrap_or_else(default_threads),
            ..SealOptions::new(suite)
        };
        let path = match &self.to {
            Some(to) if place::is_folder(to) => to.join(file_name(self.source)),
            Some(to) => to.clone(),
            None => {
                return Err(CommandError::Arguments(
                    "name the new file with --to".into(),
                ));
            }
        };
        let termination = watch_signals()?;
        self.clear_unfinished()?;
        let mut output = Output::create_watched(&path, &termination)?;
        let meter = Meter::start("backing up", None, self.quiet);
        let progress = meter.progress().clone();
        let sealed = match self.source {
            BackupSource::MariadbBackup => {
                // For its own notes; the backup goes through the pipe.
                let scratch = TempDir::new().map_err(|source| CommandError::System {
                    doing: "making a temporary folder",
                    source,
                })?;
                also_remove_at_signal(&termination, scratch.path());
                let lsn = base.as_ref().map(|(_, lsn)| *lsn);
                let program = self.start_mariadb_backup(server, scratch.path(), lsn)?;
                let source = match base {
                    Some((base, lsn)) => MariadbBackup::incremental(program, base, lsn),
                    None => MariadbBackup::new(program),
                };
                let source = source.of(asked);
                onionskin_backup::seal(source, &mut output, key, &options, &progress)
            }
            BackupSource::Clone => {
                let copied = self.clone_server(server, &termination)?;
                onionskin_backup::seal(copied.source, &mut output, key, &options, &progress)
            }
            BackupSource::Dump => {
                let source = Dump::new(self.start_dump(server)?).of(asked);
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

    /// Ends uploads into the same place that killed processes have left in a bucket.
    fn clear_unfinished(&self) -> Result<(), CommandError> {
        let Some(to) = self.to.as_deref().filter(|to| place::is_bucket(to)) else {
            return Ok(());
        };
        let store = match place::is_folder(to) {
            true => place::folder(to)?,
            false => place::file(to)?.0,
        };
        let cleared = store.clear_unfinished(ABANDONED, &|_| false);
        cleared.map(drop).map_err(|source| file_error(to, source))
    }

    /// The server of the configuration. Without one, programs follow their own.
    fn server(&self, config: Option<&ConfigFile>) -> Result<Option<Reach>, CommandError> {
        let Some(config) = config.filter(|_| self.source != BackupSource::Stdin) else {
            return Ok(None);
        };
        let password = std::env::var(&self.password_env).unwrap_or_default();
        let backend = match &self.backend {
            Some(given) => parse_backend(given)?,
            None => config.one_backend()?.clone(),
        };
        Reach::of(config, backend, &self.user, &password).map(Some)
    }

    /// Which server it is, so that its backups can be told from others' in the same folder.
    fn asked(&self, server: Option<&Reach>) -> Option<Server> {
        match self.source {
            BackupSource::MariadbBackup | BackupSource::Dump => {}
            // Asks for itself; there is nobody to ask.
            BackupSource::Clone | BackupSource::Stdin => return None,
        }
        let asked = server?
            .connect()
            .and_then(|mut client| identity::of(&mut client));
        if let Err(error) = &asked
            && !self.quiet
        {
            eprintln!("onionskin: the backup will not tell which server it is of: {error}");
        }
        asked.ok()
    }

    /// What mariadb-backup says of a MySQL server does not tell what is wrong.
    fn fits(&self, server: Option<&Server>) -> Result<(), CommandError> {
        let mysql = server.is_some_and(|server| server.family == "mysql");
        if mysql && self.source == BackupSource::MariadbBackup {
            return Err(CommandError::Arguments(
                "the server is MySQL, and mariadb-backup is for MariaDB: use --source clone or dump"
                    .into(),
            ));
        }
        Ok(())
    }

    /// What is continued, and from which log sequence number. `server` is the one that is backed
    /// up, if it is known.
    fn base(
        &self,
        finder: &KeyFinder,
        server: Option<&Server>,
    ) -> Result<Option<(Base, u64)>, CommandError> {
        let Some(path) = &self.incremental else {
            return Ok(None);
        };
        let refused = |why: String| Err(CommandError::Arguments(format!("--incremental: {why}")));
        if self.source != BackupSource::MariadbBackup {
            return refused(format!(
                "{} always copies everything; only mariadb-backup can leave out what has not changed",
                self.source.name()
            ));
        }
        if self.recipients.are_given() && !self.keys.has_identities() {
            return refused(
                "where BASE ends is sealed in it, and a machine that knows recipients alone cannot read that: \
                 make full backups, or name the identity with --identity"
                    .into(),
            );
        }
        let path = match place::is_folder(path) {
            false => path.clone(),
            true => {
                let store = place::folder(path)?;
                let catalogue = read_catalogue(&*store, finder)?;
                let entries = catalogue.entries.iter().enumerate();
                let fits = |(place, entry): (usize, &Entry)| {
                    let content = entry.content.as_ref().ok()?;
                    let manifest = &content.manifest;
                    let whole = matches!(catalogue.chain(place), Some(Ok(_)));
                    let ours = identity::may_be_one(manifest.server.as_ref(), server);
                    (whole && ours && manifest.source == self.source.name())
                        .then(|| store.path(&entry.name))
                };
                match entries.rev().find_map(fits) {
                    Some(path) => path,
                    None => {
                        return refused(format!(
                            "{} holds no backup of this server by mariadb-backup that can be continued: make a full one first",
                            path.display()
                        ));
                    }
                }
            }
        };
        let name = path.display();
        let chain = Chain::find(&path, finder)?;
        if chain.manifest.source != self.source.name() {
            return refused(format!(
                "{name} was made from {:?}; only backups by mariadb-backup can be continued",
                chain.manifest.source
            ));
        }
        if !identity::may_be_one(chain.manifest.server.as_ref(), server) {
            return refused(format!(
                "{name} is of another server ({}), this is {}: make a full backup first",
                identity::text(chain.manifest.server.as_ref()),
                identity::text(server)
            ));
        }
        let Some(lsn) = chain.manifest.lsn else {
            return refused(format!(
                "{name} does not say where it ends in InnoDB's log: make a full backup first"
            ));
        };
        let base = Base {
            stream: chain.id,
            name: path
                .file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        };
        Ok(Some((base, lsn.to)))
    }

    fn clone_server(
        &self,
        server: Option<&Reach>,
        termination: &Termination,
    ) -> Result<Copied, CommandError> {
        let server = server.ok_or_else(|| {
            CommandError::Arguments(
                "--source clone needs the server's address: name a configuration with -c".into(),
            )
        })?;
        let work = self.work.clone().unwrap_or_else(default_work);
        let clone = Clone {
            server,
            work: &work,
            termination,
        };
        clone.copy()
    }

    fn start_mariadb_backup(
        &self,
        server: Option<&Reach>,
        scratch: &Path,
        since: Option<u64>,
    ) -> Result<Program, CommandError> {
        // The user's own come first: --defaults-file works in no other place.
        let mut arguments = self.arguments.clone();
        arguments.extend(["--backup", "--stream=mbstream"].map(OsString::from));
        let mut target = OsString::from("--target-dir=");
        target.push(scratch);
        arguments.push(target);
        arguments.extend(since.map(|lsn| format!("--incremental-lsn={lsn}").into()));
        arguments.extend(self.connection(server, Family::MariaDb));
        self.start("mariadb-backup", &arguments)
    }

    fn start_dump(&self, server: Option<&Reach>) -> Result<Program, CommandError> {
        let dumper = self.dumper(server).unless_in(&self.arguments);
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
        arguments.extend(dumper.position);
        arguments.extend(self.connection(server, dumper.family));
        self.start(dumper.program, &arguments)
    }

    /// The program for this server. That it cannot be asked is no error here: the program will say
    /// so better.
    fn dumper(&self, server: Option<&Reach>) -> Dumper {
        let Some(server) = server else {
            return Dumper::default();
        };
        let asked = server
            .connect()
            .and_then(|mut client| Dumper::of(&mut client));
        let dumper = asked.unwrap_or_else(|error| Dumper {
            without: Some(error.to_string()),
            ..Dumper::default()
        });
        if let Some(why) = dumper.without.as_ref().filter(|_| !self.quiet) {
            eprintln!("onionskin: the dump will not say its position in the binlog: {why}");
        }
        dumper
    }

    fn connection(&self, server: Option<&Reach>, family: Family) -> Vec<OsString> {
        let mut arguments = vec![format!("--user={}", self.user).into()];
        if let Some(server) = server {
            arguments.extend(server.arguments(family, &self.arguments));
        }
        arguments
    }

    fn start(
        &self,
        program: impl AsRef<OsStr>,
        arguments: &[OsString],
    ) -> Result<Program, CommandError> {
        // In the environment, because everybody can read the arguments of a process.
        let password = std::env::var_os(&self.password_env).map(|password| ("MYSQL_PWD", password));
        start_source(program.as_ref(), arguments, password)
    }
}

/// `20261121-171736-482913-mariadb-backup.sealed`, in UTC: the second, and the millionth part of
/// it, because timers start the backups of several servers in the same second.
fn file_name(source: BackupSource) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| {
            let seconds = i64::try_from(since.as_secs()).ok()?;
            DateTime::from_timestamp(seconds, since.subsec_nanos())
        })
        .unwrap_or_default();
    let micros = now.nanosecond() / 1000;
    let time = now.format("%Y%m%d-%H%M%S");
    format!("{time}-{micros:06}-{}.sealed", source.name())
}
