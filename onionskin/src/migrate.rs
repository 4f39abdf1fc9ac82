//! `onionskin migrate`: changes a table while the application writes to it.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use onionskin_migrate::{
    Consent, Done, Job, Keys, Operation, Progress, Stragglers, parse_columns, status,
};
use onionskin_proxy::Backend;
use onionskin_rowstream::session::Login;
use onionskin_schema::TableName;

use crate::{
    config_file::ConfigFile, error::CommandError, home, key_place, pin, serve::parse_backend,
    termination::Termination, tls,
};

mod pace;
mod plan;
mod shown;

pub use pace::Pace;
pub use shown::Shown;

/// Change a table while it is read and written: encrypt, decrypt, other capabilities, other keys,
/// other definitions of protected columns, any ALTER
///
/// A new table is filled beside the old one, kept up to date from the binary log, compared with it
/// row by row, and takes its place. Nothing is locked but for the last moment; a kill at any time
/// loses nothing: --resume goes on. The configuration is needed for protected columns only.
#[derive(Args)]
pub struct Migrate {
    /// The table: DATABASE.TABLE
    #[arg(required_unless_present = "status", value_parser = parse_table)]
    table: Option<TableName>,
    #[command(flatten)]
    what: What,
    /// The configuration [default: onionskin.toml, if there is one]
    #[arg(short = 'c', value_name = "FILE")]
    config: Option<PathBuf>,
    /// The server, instead of the configuration's: host:port or unix:/path
    #[arg(long, value_name = "ADDR")]
    backend: Option<String>,
    /// Account that may define tables and read the binary log (docs/migrate.md lists its
    /// privileges)
    #[arg(long, default_value = "root")]
    user: String,
    /// Environment variable that holds its password; no password if it is not set
    #[arg(long, value_name = "NAME", default_value = "ONIONSKIN_PASSWORD")]
    password_env: String,
    /// A node of the server's Galera cluster, with the same account: host:port. Once for every
    /// node, where neither the configuration's backend names all of them nor the cluster itself
    #[arg(long = "node", value_name = "ADDR")]
    nodes: Vec<String>,
    #[command(flatten)]
    pace: Pace,
    /// Whether to switch tables as soon as everything is ready; if postponed, --resume does it
    #[arg(long, value_name = "WHEN", default_value = "now")]
    cut_over: CutOver,
    /// After the switch keep the old table up to date, for a way back, until --finish or
    /// --roll-back
    #[arg(long, conflicts_with_all = ["resume", "abort", "status", "finish", "roll_back"])]
    reverse: bool,
    /// Drop the old table after the switch, which otherwise stays as TABLE_onionskin_old
    #[arg(long)]
    drop_old: bool,
    /// Check everything and print the statements; nothing is changed
    #[arg(long, conflicts_with_all = ["resume", "abort", "status", "finish", "roll_back"])]
    dry_run: bool,
    /// No progress on standard error
    #[arg(short, long)]
    quiet: bool,
}

/// What is done. Exactly one of them, but that --decrypt and --add may stand beside --resume and
/// --roll-back.
#[derive(Args)]
#[group(required = true, multiple = true)]
struct What {
    /// Protect columns: "name: eq; age: eq range; note:"
    #[arg(long, value_name = "COLUMNS")]
    encrypt: Option<String>,
    /// Make protected columns plaintext again: "name, age". With --resume and --roll-back: that
    /// what they do may make these columns plaintext
    #[arg(long, value_name = "COLUMNS")]
    decrypt: Option<String>,
    /// Give protected columns more capabilities: "name: eq". With --resume and --roll-back: that
    /// what they do may give these
    #[arg(long, value_name = "COLUMNS")]
    add: Option<String>,
    /// Take capabilities from protected columns: "age: range"
    #[arg(long, value_name = "COLUMNS")]
    drop: Option<String>,
    /// Give a protected column another definition, from ciphertext to ciphertext: "name
    /// VARCHAR(200) NOT NULL". Once for every column
    #[arg(long, value_name = "DEFINITION")]
    modify: Vec<String>,
    /// Seal everything under the active key
    #[arg(long)]
    rotate: bool,
    /// Specifications of ALTER TABLE, for a table without protected columns: "ADD COLUMN c INT"
    #[arg(long, value_name = "SPECIFICATIONS")]
    alter: Option<String>,
    /// Write the table anew
    #[arg(long)]
    rebuild: bool,
    /// Go on with a migration that was killed, has failed or was postponed; with =ID, which is told
    /// at its beginning and by --status, with no other one
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    resume: Option<String>,
    /// Remove everything that an unfinished migration has made; the table is as it was
    #[arg(long)]
    abort: bool,
    /// After --reverse: keep the new table for good
    #[arg(long)]
    finish: bool,
    /// After --reverse: compare the tables and put the old one back
    #[arg(long)]
    roll_back: bool,
    /// List the migrations that have begun and not ended
    #[arg(long)]
    status: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CutOver {
    /// As soon as everything is ready
    Now,
    /// Not yet
    Postpone,
}

impl What {
    /// What may not stand together.
    fn check(&self) -> Result<(), CommandError> {
        let goes_on = self.resume.is_some() || self.roll_back;
        let given = [
            ("--encrypt", self.encrypt.is_some()),
            ("--decrypt", self.decrypt.is_some() && !goes_on),
            ("--add", self.add.is_some() && !goes_on),
            ("--drop", self.drop.is_some() && !goes_on),
            ("--modify", !self.modify.is_empty()),
            ("--rotate", self.rotate),
            ("--alter", self.alter.is_some()),
            ("--rebuild", self.rebuild),
            ("--resume", self.resume.is_some()),
            ("--abort", self.abort),
            ("--finish", self.finish),
            ("--roll-back", self.roll_back),
            ("--status", self.status),
        ];
        let given: Vec<&str> = given
            .into_iter()
            .filter_map(|(name, is_given)| is_given.then_some(name))
            .collect();
        match given.len() {
            1 => Ok(()),
            _ => Err(CommandError::Arguments(format!(
                "{} cannot stand together: one of them at a time",
                given.join(" and ")
            ))),
        }
    }

    /// What the command line allows the server to learn, beside --resume and --roll-back.
    fn consent(&self) -> Result<Consent, CommandError> {
        let columns = |text: &Option<String>| match text {
            Some(text) => parse_columns(text).map_err(CommandError::Arguments),
            None => Ok(Default::default()),
        };
        Ok(Consent {
            plain: self.decrypt.as_deref().map(names).unwrap_or_default(),
            more: columns(&self.add)?,
            fewer: columns(&self.drop)?,
        })
    }

    fn operation(&self) -> Result<Option<Operation>, CommandError> {
        if self.resume.is_some() || self.roll_back {
            return Ok(None);
        }
        let columns = |text: &String| parse_columns(text).map_err(CommandError::Arguments);
        Ok(Some(match self {
            Self {
                encrypt: Some(text),
                ..
            } => Operation::Encrypt(columns(text)?),
            Self {
                decrypt: Some(text),
                ..
            } => Operation::Decrypt(names(text)),
            Self {
                add: Some(text), ..
            } => Operation::Add(columns(text)?),
            Self {
                drop: Some(text), ..
            } => Operation::Drop(columns(text)?),
            Self {
                alter: Some(text), ..
            } => Operation::Alter(text.clone()),
            Self { modify, .. } if !modify.is_empty() => Operation::Modify(modify.clone()),
            Self { rotate: true, .. } => Operation::Rotate,
            Self { rebuild: true, .. } => Operation::Rebuild,
            _ => return Ok(None),
        }))
    }
}

impl Migrate {
    /// Does it.
    pub fn run(self) -> Result<(), CommandError> {
        self.what.check()?;
        let (file, backend) = self.configuration()?;
        let login = self.login(file.as_ref(), &backend)?;
        if self.what.status {
            // Without the right keys it still lists what has begun.
            let keys = file.as_ref().and_then(|file| keys(file).ok());
            return print_status(&login, keys.as_ref());
        }
        let operation = self.what.operation()?;
        let Some(TableName { database, name }) = self.table.clone() else {
            return Err(CommandError::Arguments("which table?".into()));
        };
        let keys = file.as_ref().map(keys).transpose()?;
        let pinned = match (&file, &keys) {
            (Some(file), Some(keys)) => pin::pinned(file, &keys.set, (&database, &name))?,
            _ => None,
        };
        let job = Job {
            limits: self
                .pace
                .limits(|address| self.login(file.as_ref(), address))?,
            login,
            nodes: self.nodes(file.as_ref())?,
            database,
            table: name,
            keys,
            threads: self.pace.threads(),
            switch: self.cut_over == CutOver::Now,
            reverse: self.reverse,
            drop_old: self.drop_old,
            consent: self.what.consent()?,
            pinned,
            id: self.what.resume.clone().filter(|id| !id.is_empty()),
        };
        match operation {
            Some(operation) if self.dry_run => {
                print!("{}", plan::readable(&job.dry_run(&operation)?));
                Ok(())
            }
            None if self.what.abort => {
                for told in job.abort()? {
                    eprintln!("{told}");
                }
                println!("{}.{} is as it was", job.database, job.table);
                Ok(())
            }
            None if self.what.finish => {
                let done = job.end_reverse()?;
                println!("{}.{} is the new table for good", job.database, job.table);
                print_begun(&done);
                print_plaintext_logs(&done);
                match &file {
                    Some(file) if done.table.is_some() => renew_pins(file, &job, &done),
                    _ => Ok(()),
                }
            }
            operation => {
                let progress = Progress::default();
                tell_at_signal(&job, &progress)?;
                let shown = Shown::start(&progress, self.quiet);
                let begun = Instant::now();
                let done = match &operation {
                    Some(operation) => job.run(operation, &progress),
                    None if self.what.roll_back => job.roll_back(&progress),
                    None => job.resume(&progress),
                };
                drop(shown);
                let done = done?;
                print_done(&job, &done, begun.elapsed());
                let is_other =
                    done.old.is_some() || done.switched.is_some() || done.table.is_some();
                match &file {
                    Some(file) if is_other => renew_pins(file, &job, &done),
                    _ => Ok(()),
                }
            }
        }
    }

    fn configuration(&self) -> Result<(Option<ConfigFile>, Backend), CommandError> {
        let path = self.config.clone().unwrap_or_else(home::default_config);
        let file = match self.config.is_some() || path.exists() {
            true => Some(ConfigFile::read(&path)?),
            false => None,
        };
        let backend = match (&self.backend, &file) {
            (Some(given), _) => parse_backend(given)?,
            (None, Some(file)) => file.one_backend()?.clone(),
            (None, None) => {
                return Err(CommandError::Arguments(
                    "name the server with --backend, or a configuration with -c".into(),
                ));
            }
        };
        Ok((file, backend))
    }

    /// All nodes of a cluster, if somebody names them.
    fn nodes(&self, file: Option<&ConfigFile>) -> Result<Vec<Login>, CommandError> {
        let given = self.nodes.iter().map(|address| parse_backend(address));
        let given: Vec<Backend> = given.collect::<Result<_, _>>()?;
        let listed = file.iter().flat_map(|file| file.nodes().cloned());
        let nodes = match given.is_empty() {
            true => listed.collect(),
            false => given,
        };
        nodes.iter().map(|node| self.login(file, node)).collect()
    }

    fn login(&self, file: Option<&ConfigFile>, backend: &Backend) -> Result<Login, CommandError> {
        let password = std::env::var(&self.password_env).unwrap_or_default();
        Ok(tls::login(file, backend, self.user.clone(), password)?)
    }
}

/// The table has other ids now: proxies that load pins would refuse it.
pub fn renew_pins(file: &ConfigFile, job: &Job, done: &Done) -> Result<(), CommandError> {
    let Some(keys) = &job.keys else {
        return Ok(());
    };
    let table = (job.database.as_str(), job.table.as_str());
    let is_pinned = pin::renew(file, &keys.set, table, done.table.as_ref(), &job.consent)?;
    if !is_pinned {
        let reason = match done.table {
            Some(_) => "less of it is protected than was pinned",
            None => "it cannot be told any more whether it came from the table that was pinned",
        };
        println!(
            "warning: {}.{} is not pinned as it is now, because {reason}; \
             if that is wanted, run onionskin pin --accept",
            job.database, job.table
        );
    }
    Ok(())
}

/// The keys of a configuration, as migrations take them.
pub fn keys(file: &ConfigFile) -> Result<Keys, CommandError> {
    let keys = key_place::load_at_start(file)?;
    Ok(Keys {
        set: Arc::new(keys),
        suite: file.suite,
        like_index: file.like_index,
    })
}

fn parse_table(text: &str) -> Result<TableName, String> {
    match text.split_once('.') {
        Some((database, table)) if !database.is_empty() && !table.is_empty() => {
            Ok(TableName::new(database, table))
        }
        _ => Err("write DATABASE.TABLE".into()),
    }
}

/// Names with commas between them.
fn names(text: &str) -> Vec<String> {
    let names = text.split([',', ';', ' ']).map(str::trim);
    names.filter(|n| !n.is_empty()).map(str::to_owned).collect()
}

/// A text from the server without what a terminal would obey.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

fn print_status(login: &Login, keys: Option<&Keys>) -> Result<(), CommandError> {
    let (running, unread) = status(login, keys.map(|keys| &keys.set))?;
    if running.is_empty() && unread.is_empty() {
        println!("no migration has begun on this server that has not ended");
    }
    for line in unread {
        eprintln!("{}", printable(&line));
    }
    for running in running {
        let checked = match running.is_checked {
            true => "",
            false => "  (as the server says: name the configuration with -c to have it checked)",
        };
        let table = format!("{}.{}", running.database, running.table);
        let worked = match running.is_worked_on {
            true => "a process works on it".to_owned(),
            false => format!(
                "no process works on it: onionskin migrate {table} --resume goes on, --abort gives it up"
            ),
        };
        let line = format!(
            "{table}  {}  phase {}  {} of about {} rows copied, {} changes written, binary log at {}, as of {} UTC; {worked}{checked}",
            running.begun(),
            running.phase,
            running.rows,
            running.estimate,
            running.changes,
            running.position,
            running.written_at
        );
        println!("{}", printable(&line));
    }
    Ok(())
}

/// A signal ends the command as a kill does, which harms nothing, and says how to go on.
fn tell_at_signal(job: &Job, progress: &Progress) -> Result<(), CommandError> {
    let termination = Termination::watch().map_err(|source| CommandError::System {
        doing: "watching for signals",
        source,
    })?;
    let table = format!("{}.{}", job.database, job.table);
    let progress = progress.clone();
    termination.on_signal(move || {
        let what = match progress.phase() {
            "" => format!("what has begun with {table}, if anything has, stays as it is"),
            "keeping the old table" => format!(
                "{table} is the new table, and the old one is not kept up to date from here on"
            ),
            "switching" => {
                format!("{table} was about to be switched, and what was made for that stays")
            }
            _ => format!("{table} is as it was, and what was made beside it stays"),
        };
        let ways = match progress.phase() {
            "keeping the old table" => {
                "--resume goes on, --finish ends it, --roll-back brings the old table back"
            }
            _ => "--resume goes on where it was, --abort gives it up",
        };
        eprintln!("\nonionskin: ended by a signal: {what}. onionskin migrate {table} {ways}");
        std::process::exit(1);
    });
    Ok(())
}

fn print_begun(done: &Done) {
    if let Some(begun) = &done.begun {
        println!("this was {begun}");
    }
}

fn print_done(job: &Job, done: &Done, time: Duration) {
    println!(
        "{}.{}: {} rows copied, {} changes written, all rows compared, {} repaired, in {:.1} s",
        job.database,
        job.table,
        done.rows,
        done.changes,
        done.repaired,
        time.as_secs_f64()
    );
    print_begun(done);
    match &done.switched {
        // who goes on behind the switch may have dropped the old table
        None if done.old.is_none() && !job.switch => {
            let id = done.begun.as_ref().map(|begun| begun.id.as_str());
            let id = printable(id.unwrap_or_default());
            println!(
                "everything is ready: --resume switches the tables when you want it (--resume={id} this migration and no other)"
            );
        }
        None => println!("the tables had been switched"),
        Some(switched) => {
            let what = match switched.nameless {
                true => "there was no table of the name",
                false => "statements on the table waited",
            };
            println!(
                "switched: {what} for at most {:.1} ms (attempt {})",
                switched.stall.as_secs_f64() * 1e3,
                switched.attempts
            );
        }
    }
    print_stragglers(&done.stragglers);
    match &done.old {
        Some(old) if done.handed_over => println!(
            "{}.{old} was kept up to date until another process took over",
            job.database
        ),
        Some(old) => println!(
            "the rows as they were before the switch are in {}.{old} until you drop it",
            job.database
        ),
        None => {}
    }
    print_plaintext_logs(done);
}

fn print_stragglers(stragglers: &Stragglers) {
    const MAX_TOLD: usize = 20;
    if stragglers.written > 0 {
        println!(
            "warning: {} rows were written between the lock and the rename, and were written again to the new table",
            stragglers.written
        );
    }
    let left = &stragglers.left;
    if !left.is_empty() {
        let more = if left.len() > MAX_TOLD { "; …" } else { "" };
        println!(
            "warning: {} rows were written to the old table between the lock and the rename, and to the new one after it, which keeps the newer ones: compare \
             the rows with the keys {}{more}",
            left.len(),
            left[..left.len().min(MAX_TOLD)].join("; ")
        );
    }
}

fn print_plaintext_logs(done: &Done) {
    if !done.plaintext_logs.is_empty() {
        println!(
            "warning: what is encrypted now stands in plaintext in the binary logs up to now ({}), on replicas, in backups, \
             and in the old table's file and undo: purge, expire or destroy them",
            done.plaintext_logs.join(", ")
        );
    }
}
