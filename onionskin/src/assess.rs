//! `onionskin assess`: what still lies open. The work is in the crate `onionskin-assess`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use onionskin_assess::{
    data,
    document::Document,
    files,
    finding::State,
    leaks, queries,
    server::{self, Request},
};
use onionskin_proxy::{Backend, BackendTls};
use onionskin_rowstream::client::ConnectOptions;
use serde::Serialize;

use crate::{config_file::ConfigFile, error::CommandError, home, serve::parse_backend, tls};

mod apply;

/// Say what still lies open on a server and around it, which columns hold personal data, what an
/// application needs of them, and what that would leak
///
/// Reads, judges and changes nothing, unless --plant, --apply or --revert is given. What this
/// account may not see is told as not visible. The exit code is 0 if nothing is open and everything
/// was visible, 1 if something is open, found or not visible, 2 if the arguments are wrong, 4 if
/// the server cannot be asked.
#[derive(Args)]
pub struct Assess {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Server(Box<AssessServer>),
    Data(AssessData),
    Queries(AssessQueries),
    Leaks(AssessLeaks),
}

/// Rows of a hundred that an attacker knows, if nothing else is said.
const HELD_APART: u8 = 50;

/// How the server is reached, and where the report goes.
#[derive(Args)]
struct Common {
    /// The configuration, for the server's address and for TLS to it [default: onionskin.toml, if
    /// there is one]; its keys are not read
    #[arg(short = 'c', value_name = "FILE")]
    config: Option<PathBuf>,
    /// The server, instead of the configuration's: host:port or unix:/path
    #[arg(long, value_name = "ADDR")]
    backend: Option<String>,
    /// Account that looks (docs/assess.md lists its privileges)
    #[arg(long, default_value = "root")]
    user: String,
    /// Environment variable that holds its password; no password if it is not set
    #[arg(long, value_name = "NAME", default_value = "ONIONSKIN_PASSWORD")]
    password_env: String,
    /// Write report.html, report.md and report.json into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The server's files, logs, memory, keys, accounts, network, replicas, leftovers and backups
///
/// On the server's own machine its files are looked at, too. Findings have stable codes, a severity
/// with its reason, evidence, and what closes them. With --apply the server's own encryption is
/// turned on, with --revert off again.
#[derive(Args)]
struct AssessServer {
    #[command(flatten)]
    common: Common,
    /// The server's data directory on this machine [default: what the server says, if it runs here]
    #[arg(long, value_name = "DIR")]
    datadir: Option<PathBuf>,
    /// Make this database, plant a text in it, look for the text in the server's files, and drop
    /// the database
    ///
    /// The database must not be there. With --apply the text is looked for before and behind, and
    /// the database stays until everything is done.
    #[arg(long, value_name = "DATABASE")]
    plant: Option<String>,
    /// Look for the values of this file, one a line, in the server's files; they are never shown
    #[arg(long, value_name = "FILE", conflicts_with = "change")]
    search: Option<PathBuf>,
    /// Look whether the files of this folder are sealed backups
    #[arg(long, value_name = "DIR", conflicts_with = "change")]
    backups: Option<PathBuf>,
    /// How many MiB of files are read in a second at most, and of tables encrypted
    #[arg(long, value_name = "MIB", default_value = "200", value_parser = clap::value_parser!(u32).range(1..100_000))]
    pace: u32,
    #[command(flatten)]
    apply: apply::Apply,
}

/// Which columns of a database hold personal data in plain
///
/// Columns are judged by their names, types and a sample of their values, which are neither shown
/// nor kept. Findings have shapes and counts, how sure they are, and a proposed policy.
#[derive(Args)]
struct AssessData {
    #[command(flatten)]
    common: Common,
    /// The database
    #[arg(long, value_name = "NAME")]
    database: String,
    /// How many rows of a table are looked at
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..10_001))]
    rows: u32,
    /// How many tables are looked at in a second at most
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..100_001))]
    pace: u32,
}

/// The smallest policy that keeps an application's statements running
///
/// The planner of the proxy is asked what would become of each statement, and which capability the
/// ones that are refused, or that read large tables whole, would need. Nothing is executed. The
/// report has shapes of statements, with ? in the place of values.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("source").required(true).multiple(true))]
struct AssessQueries {
    #[command(flatten)]
    common: Common,
    /// The database whose columns are to be protected
    #[arg(long, value_name = "NAME")]
    database: String,
    /// A file of statements, a general log or a slow log; - for standard input
    #[arg(long, value_name = "FILE", group = "source")]
    statements: Option<PathBuf>,
    /// Take the statements that performance_schema has counted
    #[arg(long, group = "source")]
    digests: bool,
    /// What is to be protected, such as customers.email,orders.* [default: what assess data
    /// proposes]
    #[arg(long, value_name = "COLUMNS")]
    columns: Option<String>,
    /// Without a scratch engine
    #[arg(long)]
    without_engine: bool,
    /// With like_index = true, which MariaDB needs for LIKE by an index [default: as the
    /// configuration says]
    #[arg(long)]
    like_index: bool,
    /// Tables of at most so many rows may be read whole
    #[arg(long, value_name = "ROWS", default_value = "1000")]
    small: u64,
}

/// What protected columns would leak, by attacks on their own rows
///
/// Through the proxy, or on a table that is still plain, rows are read, sealed as they would be,
/// and attacked with what an attacker may know; the report has the shares of rows and values that
/// were recovered, and advice. Values are neither shown nor kept. With --as-server only what the
/// server has is read, and no key is needed.
#[derive(Args)]
struct AssessLeaks {
    #[command(flatten)]
    common: Common,
    /// The database
    #[arg(long, value_name = "NAME")]
    database: String,
    /// One table of it [default: all]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// What is attacked, such as "patients.age: eq range; note" [default: all columns, for all
    /// that their types can have]
    #[arg(long, value_name = "COLUMNS")]
    columns: Option<String>,
    /// The attacker knows the values of this file, one a line, as VALUE or VALUE,COUNT
    #[arg(long, value_name = "FILE", group = "knowledge")]
    aux: Option<PathBuf>,
    /// The attacker knows the columns of this table, DATABASE.TABLE, that have the same names
    #[arg(long, value_name = "TABLE", group = "knowledge")]
    aux_table: Option<String>,
    /// The attacker knows so many of a hundred rows, and the others are attacked [default: 50]
    #[arg(long, value_name = "PERCENT", group = "knowledge", value_parser = clap::value_parser!(u8).range(1..100))]
    held_apart: Option<u8>,
    /// Read only what the server has
    #[arg(long)]
    as_server: bool,
    /// How many rows of a table are read at most
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u32).range(2..1_000_001))]
    rows: u32,
    /// How often the attacks are played, each time under other keys and with other rows held apart
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..101))]
    seeds: u32,
    /// How many rows are read in a second at most
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u32).range(20_000..10_000_001))]
    pace: u32,
}

impl Assess {
    /// Looks, and prints what was found.
    pub fn run(self) -> Result<(), CommandError> {
        match self.what {
            What::Server(server) => server.run(),
            What::Data(data) => data.run(),
            What::Queries(queries) => queries.run(),
            What::Leaks(leaks) => leaks.run(),
        }
    }
}

/// A server that can be reached.
struct Reached {
    connect: ConnectOptions,
    address: String,
    verified: bool,
    like_index: bool,
}

impl Common {
    fn reach(&self) -> Result<Reached, CommandError> {
        if let Some(out) = &self.out {
            files::check(out)?;
        }
        let path = self.config.clone().unwrap_or_else(home::default_config);
        let file = match self.config.is_some() || path.exists() {
            true => Some(ConfigFile::read(&path)?),
            false => None,
        };
        let backend = match (&self.backend, &file) {
            (Some(given), _) => parse_backend(given)?,
            (None, Some(file)) => file.backend.clone(),
            (None, None) => {
                return Err(CommandError::Arguments(
                    "name the server with --backend, or a configuration with -c".into(),
                ));
            }
        };
        let verified = match &file {
            Some(file) => matches!(tls::for_server(file, &backend)?, BackendTls::Verified(_)),
            None => false,
        };
        let password = std::env::var(&self.password_env).unwrap_or_default();
        let (address, is_here) = match &backend {
            Backend::Unix(path) => (format!("unix:{}", path.display()), true),
            Backend::Tcp { host, port } => {
                let here = ["localhost", "127.0.0.1", "::1"].contains(&host.as_str());
                (format!("{host}:{port}"), here)
            }
        };
        if !is_here && !verified {
            eprintln!(
                "onionskin: warning: nothing proves that {address} is the right server. It gets the answer to its \
                 challenge, from which a weak password can be guessed; set backend_tls = \"verify\" and backend_ca \
                 in the configuration, and name that with -c"
            );
        }
        let connect = tls::login(file.as_ref(), &backend, self.user.clone(), password)?;
        Ok(Reached {
            connect,
            address,
            verified,
            like_index: file.is_some_and(|file| file.like_index),
        })
    }

    fn write(&self, report: &impl Serialize, document: &Document) -> Result<(), CommandError> {
        print!("{}", files::terminal(document));
        if let Some(out) = &self.out {
            files::write(out, report, document)?;
            println!("{}", out.join("report.html").display());
        }
        Ok(())
    }
}

impl AssessServer {
    fn run(self) -> Result<(), CommandError> {
        let reached = self.common.reach()?;
        let request = Request {
            connect: reached.connect,
            address: reached.address,
            verified: reached.verified,
            data: self.datadir,
            plant: self.plant,
            search: self.search,
            backups: self.backups,
            pace: self.pace,
            program: env!("CARGO_PKG_VERSION").into(),
        };
        if self.apply.is_asked() {
            let (report, measured) = self.apply.run(request, self.common.out.as_ref())?;
            self.common.write(&report, &report.document())?;
            measured?;
            return match report.dry_run || report.is_complete() {
                true => Ok(()),
                false => Err(CommandError::LiesOpen(report.summary())),
            };
        }
        let report = server::assess(&request)?;
        self.common.write(&report, &report.document())?;
        match report.count(State::Open) + report.count(State::NotVisible) {
            0 => Ok(()),
            _ => Err(CommandError::LiesOpen(report.summary())),
        }
    }
}

impl AssessData {
    fn run(self) -> Result<(), CommandError> {
        let reached = self.common.reach()?;
        let report = data::assess(&data::Request {
            connect: reached.connect,
            address: reached.address,
            database: self.database,
            rows: self.rows,
            pace: self.pace,
            program: env!("CARGO_PKG_VERSION").into(),
        })?;
        self.common.write(&report, &report.document())?;
        match report.findings.is_empty() && report.left_out.is_empty() {
            true => Ok(()),
            false => Err(CommandError::LiesOpen(report.summary())),
        }
    }
}

impl AssessQueries {
    fn run(self) -> Result<(), CommandError> {
        let reached = self.common.reach()?;
        let report = queries::assess(&queries::Request {
            connect: reached.connect,
            address: reached.address,
            database: self.database,
            statements: self.statements,
            digests: self.digests,
            columns: self.columns,
            engine: !self.without_engine,
            like_index: self.like_index || reached.like_index,
            small: self.small,
            program: env!("CARGO_PKG_VERSION").into(),
        })?;
        self.common.write(&report, &report.document())?;
        match report.is_clean() {
            true => Ok(()),
            false => Err(CommandError::LiesOpen(report.summary())),
        }
    }
}

impl AssessLeaks {
    fn run(self) -> Result<(), CommandError> {
        let reached = self.common.reach()?;
        let auxiliary = match (self.aux, self.aux_table, self.held_apart) {
            (Some(file), _, _) => leaks::Auxiliary::File(file),
            (_, Some(table), _) => leaks::Auxiliary::Table(table),
            (_, _, Some(percent)) => leaks::Auxiliary::HeldApart(percent),
            _ if self.as_server => leaks::Auxiliary::Nothing,
            _ => leaks::Auxiliary::HeldApart(HELD_APART),
        };
        let report = leaks::assess(&leaks::Request {
            connect: reached.connect,
            address: reached.address,
            database: self.database,
            table: self.table,
            columns: self.columns,
            auxiliary,
            as_server: self.as_server,
            rows: self.rows,
            seeds: self.seeds,
            pace: self.pace,
            program: env!("CARGO_PKG_VERSION").into(),
        })?;
        self.common.write(&report, &report.document())?;
        match report.is_clean() {
            true => Ok(()),
            false => Err(CommandError::LiesOpen(report.summary())),
        }
    }
}
