//! `onionskin demo assess`: from plain tables to a protected and measured installation, in one go.
//!
//! What must hold is checked on the way: every statement is answered as it was on plain tables,
//! while and after they are encrypted, and nothing that was written is read in the tables' files
//! any more. Everything lives in a temporary folder; the reports stay.
//!
//! | file | what it holds |
//! |---|---|
//! | `data` | the tables of the shop, and their rows |
//! | `application` | its statements, which leave the tables as they were |
//! | `proxies` | this program as proxy and migration |
//! | `change` | the tables encrypted while the application runs |
//! | `cost` | statements a second, relayed and protected in turns |
//! | `traces` | planted texts in the server's files |
//! | `report` | the report of it all |

mod application;
mod change;
mod cost;
mod data;
mod proxies;
mod report;
mod traces;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use clap::Args;
use mysql::prelude::Queryable;
use onionskin_assess::{data as personal, files, leaks, queries, server};
use onionskin_proxy::Backend;
use onionskin_rowstream::client::ConnectOptions;
use serde::Serialize;
use tracing_subscriber::filter::LevelFilter;

use self::{
    application::{Answers, Application},
    proxies::Served,
    report::DemoReport,
};
use super::{
    client::{self, Client},
    failed,
    screen::Screen,
    temporary_folder,
};
use crate::{
    error::CommandError,
    home, logging,
    private::{Family, Installation, PrivateServer},
    termination::Termination,
    tls,
};

/// From plain tables to a protected and measured installation, in one go
///
/// Makes a small shop in plain tables on a server of its own, has an application run through the
/// proxy, and asks assess what is personal, what the application needs, and what that would leak.
/// Then it encrypts the tables while the application runs, compares all answers with those of
/// before, looks for planted texts in the server's files, and measures what it costs. The server is
/// removed, the reports stay. Takes about a minute.
#[derive(Args)]
pub struct DemoAssess {
    /// Where the reports go [default: demo-assess-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only to see that it works
    #[arg(long, hide = true)]
    tiny: bool,
}

/// What all steps share.
struct Stage<'a> {
    termination: &'a Termination,
    /// Configuration, keys, sockets of proxies. For this user alone.
    home: PathBuf,
    /// Where the reports go.
    out: PathBuf,
    /// The server's socket.
    socket: PathBuf,
    /// Everything of the server's.
    files: PathBuf,
    connect: ConnectOptions,
    address: String,
}

impl DemoAssess {
    /// Returns an error if anything was not as it must be.
    pub fn run(self) -> Result<(), CommandError> {
        logging::start(LevelFilter::WARN);
        let begun = Instant::now();
        let out = self.out.clone().unwrap_or_else(|| {
            let time = onionskin_bench::time_for_names();
            PathBuf::from(format!("demo-assess-{time}"))
        });
        files::check(&out)?;
        let termination = Termination::watch().map_err(|source| CommandError::System {
            doing: "waiting for signals",
            source,
        })?;
        let folder = temporary_folder()?;
        let mut screen = Screen::default();
        screen.chapter("A server of its own, and a shop in plain tables");
        let server = start_server(&folder.path().join("server"), &termination)?;
        let stage = Stage::set(folder.path(), &out, &server, &termination)?;
        let mut report = stage.play(&mut screen, self.tiny)?;

        screen.chapter("Planted texts in the server's files");
        // all that it still has in memory goes to its files
        server.stop();
        report.traces_left(&stage.files)?;
        for line in report.traces_told() {
            screen.text(&format!("  {line}"));
        }
        report.check()?;
        report.seconds = begun.elapsed().as_secs();
        files::write(&out, &report, &report.document())?;
        let at = folder.path().to_owned();
        folder
            .close()
            .map_err(|source| CommandError::File { path: at, source })?;
        screen.text(&format!(
            "\nThe server is removed again. {} s. The reports stay:\n{}",
            report.seconds,
            out.join("report.html").display()
        ));
        Ok(())
    }
}

/// With a binary log, which migrations read. Commits are not waited for: a disk that others use as
/// well would be all that is measured.
fn start_server(folder: &Path, termination: &Termination) -> Result<PrivateServer, CommandError> {
    let installation = Installation::open(folder, termination)?;
    // What is written over sooner is sooner gone.
    let small_log = match installation.family() {
        Family::MariaDb => "--innodb-log-file-size=32M",
        Family::MySql => "--innodb-redo-log-capacity=32M",
    };
    let installation = installation.with_options(&[
        "--log-bin=binlog",
        "--server-id=1",
        "--binlog-format=ROW",
        "--sync-binlog=0",
        "--innodb-flush-log-at-trx-commit=2",
        small_log,
    ]);
    Ok(PrivateServer::start(installation, termination)?)
}

impl<'a> Stage<'a> {
    fn set(
        folder: &Path,
        out: &Path,
        server: &PrivateServer,
        termination: &'a Termination,
    ) -> Result<Self, CommandError> {
        let address = format!("unix:{}", server.socket().display());
        let backend = Backend::Unix(server.socket().to_owned());
        let home = folder.join("home");
        home::create(&home, &address, false)?;
        Ok(Self {
            termination,
            home,
            out: out.to_owned(),
            socket: server.socket().to_owned(),
            files: server.data().to_owned(),
            connect: tls::login(None, &backend, "root".into(), String::new())?,
            address,
        })
    }

    /// Everything while the server runs.
    fn play(&self, screen: &mut Screen, tiny: bool) -> Result<DemoReport, CommandError> {
        let mut direct = client::direct(&self.socket)?;
        for database in [data::SHOP, data::TWIN] {
            data::make(&mut direct, database).map_err(client::broken)?;
        }
        let version = Client::at(&self.socket, data::SHOP)?.server()?;
        let mut report = DemoReport::new(version.clone());
        for (table, _) in data::TABLES {
            let rows = data::rows(table);
            screen.text(&format!("  {}.{table}: {rows} rows", data::SHOP));
            report.tables.push(((*table).to_owned(), rows));
        }
        report.planted = traces::planted(&mut direct, &self.files)?;

        screen.chapter("The application runs through a proxy that relays and observes");
        let asked = self.out.join("asked.json");
        home::create_folder(&self.out)?;
        let before = self.observed(&asked)?;
        report.observed = application::count(&before);
        screen.text(&format!(
            "  {version}: {} statements, answered by plain tables; what was asked, without values, is in {}",
            report.observed,
            asked.display()
        ));

        screen.chapter("assess data: which columns hold personal data");
        let columns = self.look_at_data(screen, &mut report)?;
        screen.chapter("assess queries: the smallest policy for this application");
        let proposed = self.look_at_queries(screen, &asked, columns, &mut report)?;
        screen.chapter("assess leaks: what that would give away");
        self.look_at_leaks(screen, &proposed, tiny, &mut report)?;

        screen.chapter("The tables are encrypted while the application runs");
        let relaying = Served::start(&self.home, "relay.sock", &[], self.termination)?;
        self.change(screen, &proposed, &before, relaying.socket(), &mut report)?;

        screen.chapter("The same application, under the policy");
        let protecting = Served::start(&self.home, "protect.sock", &[], self.termination)?;
        let mut application = Application::start(protecting.socket(), data::SHOP)?;
        for _ in 0..application::PASSES {
            self.go_on()?;
            application.pass_as_before(&before)?;
        }
        report.compared = application.spent.statements;
        screen.text(&format!(
            "  {} statements: none is refused, and every answer is the one of the plain tables",
            report.compared
        ));
        drop(application);

        screen.chapter("What it costs");
        let sides = [relaying.socket(), protecting.socket()];
        let cost = cost::measure(sides, tiny, self.termination)?;
        for line in cost.lines() {
            screen.text(&format!("  {line}"));
        }
        report.cost = Some(cost);

        screen.chapter("assess server: what still lies open");
        traces::later(protecting.socket())?;
        direct
            .query_drop(format!("DROP DATABASE {}", data::TWIN))
            .map_err(client::broken)?;
        self.look_at_server(screen, proposed.columns.len(), &mut report)?;
        protecting.stop(self.termination)?;
        relaying.stop(self.termination)?;
        traces::forget_logs(&mut direct)?;
        let configuration = self.home.join(home::CONFIG);
        let kept = self.out.join(home::CONFIG);
        fs::copy(&configuration, &kept)
            .map_err(|source| CommandError::File { path: kept, source })?;
        Ok(report)
    }

    /// An error once a signal has come.
    fn go_on(&self) -> Result<(), CommandError> {
        match self.termination.requested() {
            true => Err(failed("ended by a signal")),
            false => Ok(()),
        }
    }

    fn observed(&self, asked: &Path) -> Result<Answers, CommandError> {
        let observe = [OsStr::new("--observe"), asked.as_os_str()];
        let observing = Served::start(&self.home, "observe.sock", &observe, self.termination)?;
        let answers = Application::start(observing.socket(), data::SHOP)?.answers()?;
        observing.stop(self.termination)?;
        Ok(answers)
    }

    fn keep(
        &self,
        name: &str,
        report: &impl Serialize,
        document: &onionskin_assess::document::Document,
    ) -> Result<(), CommandError> {
        self.go_on()?;
        Ok(files::write(&self.out.join(name), report, document)?)
    }

    /// All that it finds shall be protected, for `--columns`. Whoever reads the report decides of
    /// what is only possible; here it is free text, which holds more than anybody knows.
    fn look_at_data(
        &self,
        screen: &mut Screen,
        report: &mut DemoReport,
    ) -> Result<String, CommandError> {
        let found = personal::assess(&personal::Request {
            connect: self.connect.clone(),
            address: self.address.clone(),
            database: data::SHOP.into(),
            rows: 100,
            pace: 50,
            program: env!("CARGO_PKG_VERSION").into(),
        })?;
        self.keep("data", &found, &found.document())?;
        for finding in &found.findings {
            screen.text(&format!(
                "  {:<8} {}.{}: {}",
                finding.confidence.word(),
                finding.table,
                finding.column,
                finding.kind.title()
            ));
        }
        report.personal = found.summary();
        let columns = found.findings.iter().map(|finding| {
            let table = finding.table.split_once('.').map(|(_, table)| table);
            format!("{}.{}", table.unwrap_or(&finding.table), finding.column)
        });
        let columns: Vec<String> = columns.collect();
        match columns.is_empty() {
            true => Err(failed("assess data finds nothing in the shop")),
            false => Ok(columns.join(", ")),
        }
    }

    fn look_at_queries(
        &self,
        screen: &mut Screen,
        asked: &Path,
        columns: String,
        report: &mut DemoReport,
    ) -> Result<queries::QueriesReport, CommandError> {
        let proposed = queries::assess(&queries::Request {
            connect: self.connect.clone(),
            address: self.address.clone(),
            database: data::SHOP.into(),
            statements: Some(asked.to_owned()),
            digests: false,
            columns: Some(columns),
            engine: false,
            like_index: false,
            small: 1_000,
            program: env!("CARGO_PKG_VERSION").into(),
        })?;
        self.keep("queries", &proposed, &proposed.document())?;
        for line in &proposed.policy {
            screen.text(&format!("  {line}"));
        }
        report.asked = proposed.summary();
        report.policy.clone_from(&proposed.policy);
        let refused = proposed.refused().count() + proposed.wide().count();
        if refused > 0 || !proposed.skipped.is_empty() {
            return Err(failed(format!("not carried: {}", proposed.summary())));
        }
        let is_protected = |name: &str| {
            let mut columns = proposed.columns.iter();
            columns.any(|c| format!("{}.{}", c.table, c.column) == name)
        };
        let plain = data::PLANTED.iter().find(|(name, _)| !is_protected(name));
        match plain {
            Some((name, _)) => Err(failed(format!("the policy leaves {name} plain"))),
            None => Ok(proposed),
        }
    }

    fn look_at_leaks(
        &self,
        screen: &mut Screen,
        proposed: &queries::QueriesReport,
        tiny: bool,
        report: &mut DemoReport,
    ) -> Result<(), CommandError> {
        let chosen = proposed.columns.iter().map(|column| {
            let words = column.capabilities.iter().map(|c| c.word.as_str());
            let words: Vec<&str> = words.collect();
            match words.is_empty() {
                true => format!("{}.{}: sealed", column.table, column.column),
                false => format!("{}.{}: {}", column.table, column.column, words.join(" ")),
            }
        });
        let chosen: Vec<String> = chosen.collect();
        let leaking = leaks::assess(&leaks::Request {
            connect: self.connect.clone(),
            address: self.address.clone(),
            database: data::SHOP.into(),
            table: None,
            columns: Some(chosen.join("; ")),
            auxiliary: leaks::Auxiliary::HeldApart(50),
            as_server: false,
            rows: 100_000,
            seeds: if tiny { 1 } else { 3 },
            pace: 1_000_000,
            program: env!("CARGO_PKG_VERSION").into(),
        })?;
        self.keep("leaks", &leaking, &leaking.document())?;
        report.leaks = report::leaks(&leaking);
        for row in &report.leaks {
            let [column, capability, tells, rows, _] = row;
            screen.text(&format!(
                "  {column:<24} {capability:<7} tells {tells:<7} {rows} of the rows"
            ));
        }
        report.leaking = leaking.summary();
        Ok(())
    }

    /// The server's own layers; and that everything that was to be protected is.
    fn look_at_server(
        &self,
        screen: &mut Screen,
        columns: usize,
        report: &mut DemoReport,
    ) -> Result<(), CommandError> {
        let found = server::assess(&server::Request {
            connect: self.connect.clone(),
            address: self.address.clone(),
            verified: false,
            data: None,
            plant: None,
            search: None,
            backups: None,
            pace: 2_000,
            program: env!("CARGO_PKG_VERSION").into(),
        })?;
        self.keep("server", &found, &found.document())?;
        screen.text(&format!("  {}", found.summary()));
        report.open = found.summary();
        let tables = found.tables.iter();
        let sealed: usize = tables.map(|table| table.sealed.len()).sum();
        match sealed == columns {
            true => Ok(()),
            false => Err(failed(format!(
                "{sealed} columns are protected, {columns} were to be"
            ))),
        }
    }
}
