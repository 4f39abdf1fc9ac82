//! `onionskin audit-log`: what `serve` has written under `[audit]`, looked at.

use std::path::PathBuf;
use std::time::SystemTime;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use onionskin_audit::{Report, RunReport, RunState, verify};

use crate::{config_file::ConfigFile, error::CommandError, home, key_place};

/// Look at the audit log
#[derive(Args)]
pub struct AuditLog {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Verify(Verify),
}

/// Find lines that were removed, changed, exchanged or cut off
///
/// Reads the folder and the file of heads that the configuration names, with the keys that it
/// names. Ends with 3 if something is wrong.
#[derive(Args)]
struct Verify {
    /// The configuration [default: onionskin.toml]
    #[arg(short = 'c', value_name = "FILE")]
    config: Option<PathBuf>,
    /// Another folder than the configuration's, such as a copy
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Another file of heads than the configuration's
    #[arg(long, value_name = "FILE")]
    heads: Option<PathBuf>,
    /// Files that end before this time may be gone: 2026-11-27 or 2026-11-27T20:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<DateTime<Utc>>,
    /// Print all of it as JSON
    #[arg(long)]
    json: bool,
}

impl AuditLog {
    /// Prints what is found.
    pub fn run(self) -> Result<(), CommandError> {
        let Command::Verify(verify) = self.command;
        verify.run()
    }
}

impl Verify {
    fn run(self) -> Result<(), CommandError> {
        let path = self.config.unwrap_or_else(home::default_config);
        let file = ConfigFile::read(&path)?;
        let configured = file.audit();
        let folder = self
            .folder
            .or_else(|| configured.as_ref().map(|settings| settings.folder.clone()))
            .ok_or_else(|| {
                let path = path.display();
                CommandError::Arguments(format!(
                    "{path} has no section [audit]: name the folder with --folder"
                ))
            })?;
        // Heads are written once something has happened.
        let heads = match self.heads {
            Some(heads) => Some(heads),
            None => configured
                .and_then(|settings| settings.heads)
                .filter(|heads| heads.exists() || folder_has_files(&folder)),
        };
        let keys = key_place::load_at_start(&file)?;
        let now = DateTime::<Utc>::from(SystemTime::now());
        let report = verify(
            &folder,
            heads.as_deref(),
            &keys.audit_key(),
            self.since,
            now,
        )?;
        match self.json {
            true => println!("{}", serde_json::json!(report)),
            false => print(&report, heads.is_some()),
        }
        match report.faults.len() {
            0 => Ok(()),
            faults => Err(CommandError::AuditLog { faults }),
        }
    }
}

/// A folder that has runs must have heads as well, if the configuration says so.
fn folder_has_files(folder: &std::path::Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

fn print(report: &Report, has_heads: bool) {
    for run in &report.runs {
        println!("{}", shown(run));
    }
    for fault in &report.faults {
        println!("WRONG: {fault}");
    }
    if !has_heads {
        println!(
            "Without a file of heads, nothing tells whether the newest lines of the newest run were cut off."
        );
    }
}

fn shown(run: &RunReport) -> String {
    let time = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
    let times = match run.times {
        Some((first, last)) => format!("{} to {}", time(first), time(last)),
        None => "empty".into(),
    };
    let state = match run.state {
        RunState::Closed => "ended",
        RunState::Running => "runs",
        RunState::Killed => "was killed",
        RunState::Unknown => "no sound end",
    };
    let mut text = format!(
        "run {}: {times}, {} statements in {} files, {state}",
        run.run,
        run.statements,
        run.parts.1 + 1 - run.parts.0
    );
    if run.lost > 0 {
        text += &format!(", {} statements lost for want of room", run.lost);
    }
    if run.unsealed > 0 {
        text += &format!(", the last {} lines not sealed yet", run.unsealed);
    }
    text
}

fn time(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(date) = text.parse::<NaiveDate>() {
        return Ok(date.and_time(chrono::NaiveTime::MIN).and_utc());
    }
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.to_utc())
        .map_err(|_| "a day as 2026-11-27, or a time as 2026-11-27T20:00:00Z".into())
}
