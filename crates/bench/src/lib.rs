//! `onionskin bench`: what every layer of encryption costs, on the machine at hand.
//!
//! ```text
//! scenarios.toml ─ catalogue ─┐
//!                             ├─ scenario::{backup, load, table_change, functions}: Experiment
//! server, relay, driver ──────┘        │ measure(group, variant, round) → metrics, series, proofs
//!                                      ▼
//!                       experiment::execute: rounds, A B B A, void runs, an end at any time
//!                                      ▼
//!                       report: runs → summaries, ratios → JSON, HTML, Markdown, terminal
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`catalogue`] | the scenarios as data |
//! | [`experiment`], `schedule` | rounds and pairs, what counts and what is void |
//! | [`proof`] | shows that a setting is in force |
//! | [`server`], [`relay`], [`process`] | temporary servers, proxies, their CPU time and memory |
//! | [`link`], [`ping`] | a network between proxy and server, and its proof |
//! | [`driver`] | sysbench, and a driver of our own |
//! | [`stats`], [`metric`] | medians, ratios with intervals; what is measured |
//! | [`report`], [`compare`] | what comes out |
//!
//! # What makes a figure honest
//!
//! Variants run in pairs, close in time and in changing order; a ratio is that of a pair, with a
//! confidence interval; an interval that holds 1 is "no difference measured". A run counts only if
//! the setting that it measures was in force before and after, by the server's own word and by its
//! files. What is void says so in the report.

pub mod catalogue;
pub mod compare;
pub mod driver;
mod error;
pub mod experiment;
pub mod link;
pub mod machine;
pub mod metric;
pub mod ping;
pub mod process;
mod progress;
pub mod proof;
pub mod relay;
pub mod report;
pub mod scenario;
mod schedule;
pub mod server;
pub mod stats;

pub use error::BenchError;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::Instant,
};

use catalogue::{Catalogue, Kind, Size, Spec, VariantSpec};
use driver::Driver;
use experiment::{Experiment, execute};
use machine::{Machine, version_of};
use process::{Stop, Tie, find_program};
use progress::{Progress, duration};
use report::{Report, Scenario, Status};
use scenario::{Backup, Functions, LoadExperiment, Setting, TableChange, estimate};
use server::{Dsn, Family, Given, Program, Workshop};

/// What was asked for.
pub struct Options {
    /// Names; all by default.
    pub scenarios: Vec<String>,
    /// How large.
    pub size: Size,
    /// How many rounds instead of the catalogue's.
    pub rounds: Option<usize>,
    /// Which families to start; the first that is installed if empty.
    pub families: Vec<Family>,
    /// A server that somebody runs instead.
    pub given: Option<Dsn>,
    /// Proxies before it, by name.
    pub peers: Vec<(String, Dsn)>,
    /// The port of the first private server.
    pub port: Option<u16>,
    /// Use our own driver even if sysbench is installed.
    pub built_in_driver: bool,
    /// Where the report goes.
    pub out: PathBuf,
    /// Another description than the program's own.
    pub catalogue: Option<String>,
    /// Nothing on standard error but errors.
    pub quiet: bool,
}

/// What the program brings along.
pub struct Surroundings {
    /// Installed servers.
    pub programs: Vec<Program>,
    /// See [`Tie`].
    pub tie: Tie,
    /// See [`Stop`].
    pub stop: Stop,
    /// The path of `onionskin`.
    pub onionskin: PathBuf,
    /// Its version.
    pub version: String,
}

/// Measures, and writes the report into `options.out`. A signal leaves a valid report of what was
/// measured.
pub fn run(options: &Options, surroundings: Surroundings) -> Result<Report, BenchError> {
    let text = options.catalogue.as_deref().unwrap_or(catalogue::BUILT_IN);
    let catalogue = Catalogue::parse(text)?;
    let specs = catalogue.choose(&options.scenarios)?;
    let families = families(options, &surroundings, &specs)?;
    if let Some(dsn) = &options.given {
        // Everything that is wrong with it is said before anything is made.
        Given::open(dsn.clone())?;
    }
    check_space(options, &specs, &std::env::temp_dir())?;
    let out_is_new = prepare_out(&options.out)?;
    let stop = surroundings.stop.clone();
    let measured = measure(options, surroundings, &specs, &families);
    match measured {
        Ok(report) => {
            report.write(&options.out)?;
            match stop.load(Ordering::Relaxed) {
                true => Err(BenchError::Interrupted),
                false => Ok(report),
            }
        }
        Err(error) => {
            if out_is_new {
                // Only if nothing was written into it.
                let _ = std::fs::remove_dir(&options.out);
            }
            Err(error)
        }
    }
}

fn measure(
    options: &Options,
    surroundings: Surroundings,
    specs: &[&Spec],
    families: &[Family],
) -> Result<Report, BenchError> {
    let driver = match options.built_in_driver {
        true => Driver::BuiltIn,
        false => Driver::find(),
    };
    let workshop = Workshop::open(
        surroundings.programs,
        surroundings.tie,
        surroundings.stop,
        surroundings.onionskin,
        options.port,
    )?;
    let mut report = Report {
        format: report::FORMAT.into(),
        version: report::VERSION,
        started: now(),
        finished: now(),
        size: options.size.name().into(),
        incomplete: None,
        machine: Machine::look(workshop.folder()),
        scenarios: Vec::new(),
    };
    report.machine.programs = programs(&workshop, &driver, surroundings.version);
    let mut progress = match options.quiet {
        true => Progress::silent(),
        false => Progress::on_terminal(),
    };
    let jobs: Vec<(&Spec, Family)> = families
        .iter()
        .flat_map(|family| specs.iter().map(|spec| (*spec, *family)))
        // Backups need no server, and are the same for all.
        .filter(|(spec, family)| spec.kind != Kind::Backup || *family == families[0])
        .collect();
    let extents: Vec<_> = jobs
        .iter()
        .map(|(spec, _)| {
            let mut extent = spec.extent(options.size).clone();
            extent.rounds = options.rounds.unwrap_or(extent.rounds);
            extent
        })
        .collect();
    let estimates: Vec<f64> = jobs
        .iter()
        .zip(&extents)
        .map(|((spec, _), extent)| {
            let available = spec
                .variants
                .iter()
                .filter(|variant| relay::missing(&variant.needs, &workshop).is_none());
            let peers = |variant: &&VariantSpec| variant.path == catalogue::Path::Peer;
            let own = available.clone().filter(|v| !peers(v)).count();
            let others = available.filter(peers).count() * options.peers.len();
            estimate(spec, extent, own + others)
        })
        .collect();
    let total: f64 = estimates.iter().sum();
    progress.say(&format!(
        "{} scenarios with {}, about {}; the report goes to {}",
        jobs.len(),
        driver.name(),
        duration(total),
        options.out.display()
    ));
    let mut fatal = None;
    for (n, (spec, family)) in jobs.iter().enumerate() {
        if workshop.stop.load(Ordering::Relaxed) {
            break;
        }
        progress.scenario(&spec.name, estimates[n], estimates[n + 1..].iter().sum());
        let setting = Setting {
            workshop: &workshop,
            family: *family,
            given: options.given.as_ref(),
            peers: &options.peers,
            driver: driver.clone(),
        };
        let (scenario, ended) = one(&setting, spec, &extents[n], &mut progress);
        progress.clear();
        let line = format!(
            "{}: {} after {}",
            spec.name,
            match &scenario.reason {
                None => "done".into(),
                Some(reason) => reason.clone(),
            },
            duration(scenario.seconds)
        );
        progress.say(&line);
        report.scenarios.push(scenario);
        report.finished = now();
        match ended {
            Ok(()) => {}
            Err(BenchError::Interrupted) => break,
            // Nothing else will go better; others may.
            Err(error) if error.is_about_the_setup() => {
                fatal = Some(error);
                break;
            }
            Err(_) => {}
        }
    }
    if workshop.stop.load(Ordering::Relaxed) {
        report.incomplete = Some("ended by a signal".into());
    }
    workshop.close()?;
    match fatal {
        Some(error) => Err(error),
        None => Ok(report),
    }
}

/// One scenario, and how it ended.
fn one(
    setting: &Setting<'_>,
    spec: &Spec,
    extent: &catalogue::Extent,
    progress: &mut Progress,
) -> (Scenario, Result<(), BenchError>) {
    let begin = Instant::now();
    let mut scenario = Scenario {
        name: spec.name.clone(),
        title: spec.title.clone(),
        question: spec.question.clone(),
        method: spec.method.clone(),
        status: Status::NotAvailable,
        reason: None,
        server: None,
        seconds: 0.0,
        groups: Vec::new(),
    };
    if let (Some(_), Some(reason)) = (setting.given, needs_own_server(spec)) {
        scenario.reason = Some(reason.into());
        return (scenario, Ok(()));
    }
    progress.show("preparing");
    let prepared: Result<Box<dyn Experiment + '_>, BenchError> = match spec.kind {
        Kind::Backup => Backup::prepare(setting, spec, extent).map(|e| Box::new(e) as _),
        Kind::Load => LoadExperiment::prepare(setting, spec, extent).map(|e| Box::new(e) as _),
        Kind::TableChange => TableChange::prepare(setting, spec, extent).map(|e| Box::new(e) as _),
        Kind::Functions => Functions::prepare(setting, spec, extent).map(|e| Box::new(e) as _),
    };
    let ended = match prepared {
        Ok(mut experiment) => {
            let stop = &setting.workshop.stop;
            execute(
                &mut *experiment,
                &mut scenario,
                extent.rounds,
                progress,
                stop,
            )
        }
        Err(error) => {
            scenario.status = match error {
                BenchError::Interrupted => Status::Partial,
                _ => Status::Failed,
            };
            scenario.reason = Some(error.to_string());
            Err(error)
        }
    };
    scenario.seconds = begin.elapsed().as_secs_f64();
    (scenario, ended)
}

/// Why a scenario cannot be run on a server that is not ours.
fn needs_own_server(spec: &Spec) -> Option<&'static str> {
    let settings = spec.canary.is_some() || spec.replica || spec.variants.iter().any(|v| v.keys);
    settings.then_some(
        "it compares settings of the server, which need restarts: run it with --server mariadb or --server mysql",
    )
}

/// Which families to start servers of.
fn families(
    options: &Options,
    surroundings: &Surroundings,
    specs: &[&Spec],
) -> Result<Vec<Family>, BenchError> {
    if let Some(dsn) = &options.given {
        let mut session = Given::peek(dsn)?;
        return Ok(vec![Family::of_version(&session.text("SELECT VERSION()")?)]);
    }
    let installed = |family: Family| {
        surroundings
            .programs
            .iter()
            .any(|program| program.family == family)
    };
    if let Some(missing) = options.families.iter().find(|family| !installed(**family)) {
        return Err(BenchError::NoServer(missing.name()));
    }
    if !options.families.is_empty() {
        return Ok(options.families.clone());
    }
    let first = [Family::MariaDb, Family::MySql]
        .into_iter()
        .find(|family| installed(*family));
    match first {
        Some(family) => Ok(vec![family]),
        None if specs.iter().all(|spec| spec.kind == Kind::Backup) => Ok(vec![Family::MariaDb]),
        None => Err(BenchError::NoServer("MariaDB or MySQL")),
    }
}

fn check_space(options: &Options, specs: &[&Spec], folder: &Path) -> Result<(), BenchError> {
    let free = rustix::fs::statvfs(folder).map_err(|error| BenchError::System {
        doing: folder.display().to_string(),
        source: error.into(),
    })?;
    let free_mib = free.f_bavail.saturating_mul(free.f_frsize) >> 20;
    match specs
        .iter()
        .map(|spec| (spec.extent(options.size).disk_mib, spec))
        .max_by_key(|(needed, _)| *needed)
    {
        Some((needed_mib, spec)) if needed_mib > free_mib => Err(BenchError::NoSpace {
            folder: folder.to_owned(),
            free_mib,
            needed_mib,
            scenario: spec.name.clone(),
        }),
        _ => Ok(()),
    }
}

/// Whether the folder was made.
fn prepare_out(out: &Path) -> Result<bool, BenchError> {
    if out.join("report.json").exists() {
        return Err(BenchError::Exists(out.to_owned()));
    }
    let new = !out.exists();
    std::fs::create_dir_all(out).map_err(BenchError::system(out.display().to_string()))?;
    Ok(new)
}

/// Versions of all that takes part.
fn programs(workshop: &Workshop, driver: &Driver, onionskin: String) -> BTreeMap<String, String> {
    let mut programs: BTreeMap<String, String> = [("onionskin".to_owned(), onionskin)].into();
    programs.insert("load".into(), driver.name());
    for (name, argument) in [
        ("haproxy", "-v"),
        ("openssl", "version"),
        ("zstd", "--version"),
        ("pt-online-schema-change", "--version"),
        ("gh-ost", "--version"),
    ] {
        let version = find_program(name).and_then(|program| version_of(&program, argument));
        programs.insert(
            name.into(),
            version.unwrap_or_else(|| "not installed".into()),
        );
    }
    for family in [Family::MariaDb, Family::MySql] {
        if let Some(program) = workshop.program(family)
            && let Some(version) = version_of(&program.path, "--version")
        {
            // behind the program's path, which may be another than the one that was asked
            let version = version.find("Ver ").map_or(&*version, |at| &version[at..]);
            programs.insert(family.name().into(), version.to_owned());
        }
    }
    programs
}

/// The time in UTC.
fn now() -> String {
    chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The time in UTC, as it can stand in the name of a folder.
pub fn time_for_names() -> String {
    chrono::Utc::now().format("%Y-%m-%d-%H%M%S").to_string()
}

/// A scenario in `bench list`.
pub struct Listed {
    /// On the command line.
    pub name: String,
    /// Headline.
    pub title: String,
    /// What it answers.
    pub question: String,
    /// About how long `--quick` takes, in seconds.
    pub quick: f64,
    /// About how long `--full` takes, in seconds.
    pub full: f64,
}

/// The scenarios, for `bench list`.
pub fn list() -> Result<Vec<Listed>, BenchError> {
    Ok(Catalogue::parse(catalogue::BUILT_IN)?
        .scenarios
        .iter()
        .map(|spec| Listed {
            name: spec.name.clone(),
            title: spec.title.clone(),
            question: spec.question.clone(),
            quick: estimate(spec, &spec.quick, expected(spec)),
            full: estimate(spec, &spec.full, expected(spec)),
        })
        .collect())
}

/// How many variants there usually are: without other proxies, and with the tools that
/// distributions have.
fn expected(spec: &Spec) -> usize {
    let packaged = |need: &String| !need.contains(' ') && need != "gh-ost";
    spec.variants
        .iter()
        .filter(|variant| variant.path != catalogue::Path::Peer)
        .filter(|variant| variant.needs.iter().all(packaged))
        .count()
}

/// Seconds, for people.
pub fn for_people(seconds: f64) -> String {
    duration(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_run_of_everything_ends_within_ten_minutes() {
        let catalogue = Catalogue::parse(catalogue::BUILT_IN).expect("sound");
        let total: f64 = catalogue
            .choose(&[])
            .expect("all")
            .iter()
            .map(|spec| estimate(spec, &spec.quick, expected(spec)))
            .sum();
        assert!((120.0..600.0).contains(&total), "{total}");
    }
}
