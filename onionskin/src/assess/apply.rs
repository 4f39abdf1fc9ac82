//! `onionskin assess server --apply` and `--revert`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use onionskin_assess::{apply, server};
use onionskin_bench::{
    BenchError, Options,
    catalogue::Size,
    report::{proofs, terminal_summary},
    server::Family,
};

use crate::{bench, error::CommandError};

/// What is encrypted.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Tablespaces, redo and undo logs, temporary files
    Tde,
    /// The binary log
    Binlog,
}

/// How the server's own encryption is turned on, and off again.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("change"))]
pub(super) struct Apply {
    /// Turn the server's own encryption on: tde, binlog, or both with a comma. Without --yes the
    /// plan is told and nothing is changed
    #[arg(long, value_name = "WHAT", value_delimiter = ',', group = "change")]
    apply: Vec<What>,
    /// Decrypt tables and the binary log again, and take our options away; keys stay
    #[arg(long, group = "change", conflicts_with = "plant")]
    revert: bool,
    /// Do it. What needs a restart of the server is told, and the same command goes on behind it
    #[arg(long, requires = "change")]
    yes: bool,
    /// Folder of the keys, where the server has none yet [default: beside the data directory, with
    /// its name and -keys]
    #[arg(long, value_name = "DIR", requires = "change")]
    keys: Option<PathBuf>,
    /// File of options that MariaDB reads, for ours [default: zz-onionskin.cnf in the last folder
    /// that its options include]
    #[arg(long, value_name = "FILE", requires = "change")]
    options_file: Option<PathBuf>,
    /// MySQL's server program, beside which its manifest lies [default: the running one]
    #[arg(long, value_name = "FILE", requires = "change")]
    program: Option<PathBuf>,
    /// Restart the server with this command of a shell, when it has to be
    #[arg(long, value_name = "COMMAND", requires = "yes")]
    restart_with: Option<String>,
    /// Remove old files of the binary log, which cannot be encrypted, for good. Replicas that are
    /// not connected, and restores to a point in time, may still need them
    #[arg(long, requires = "change")]
    purge_logs: bool,
    /// Largest table that MySQL may rewrite while its writers wait
    #[arg(long, value_name = "MIB", default_value = "256", requires = "change")]
    writers_wait: u64,
    /// Measure on private servers of this machine what it costs, for the same report (minutes)
    #[arg(long, requires_all = ["apply", "yes", "out"])]
    measure: bool,
    /// Only to see that it works
    #[arg(long, hide = true, requires = "measure")]
    tiny: bool,
}

impl Apply {
    /// Whether anything of it was asked for.
    pub(super) fn is_asked(&self) -> bool {
        !self.apply.is_empty() || self.revert
    }

    /// Says what there is to do, or does it. What was done is told, whatever becomes of the
    /// measurement behind it.
    pub(super) fn run(
        self,
        look: server::Request,
        out: Option<&PathBuf>,
    ) -> Result<(apply::ApplyReport, Result<(), CommandError>), CommandError> {
        let has = |what| self.revert || self.apply.contains(&what);
        let (tde, binlog) = (has(What::Tde), has(What::Binlog));
        let request = apply::Request {
            look,
            tde,
            binlog,
            revert: self.revert,
            yes: self.yes,
            keys: self.keys,
            configuration: self.options_file,
            program: self.program,
            restart_with: self.restart_with,
            purge_logs: self.purge_logs,
            writers_wait: self.writers_wait,
        };
        let mut report = apply::apply(&request, &mut |told| eprintln!("onionskin: {told}"))?;
        let (true, Some(out)) = (self.measure, out) else {
            return Ok((report, Ok(())));
        };
        if report.count(apply::Outcome::ToDo) > 0 {
            let later = "not measured: the run that finds nothing left to do measures it";
            report.cost.push(later.into());
            return Ok((report, Ok(())));
        }
        let family = match report.family.as_str() {
            "MariaDB" => Family::MariaDb,
            _ => Family::MySql,
        };
        let named = [("tde", tde), ("binlog", binlog)];
        let scenarios = named.iter().filter(|(_, on)| *on);
        let scenarios = scenarios.map(|(name, _)| (*name).to_owned()).collect();
        let size = match self.tiny {
            true => Size::Tiny,
            false => Size::Quick,
        };
        let measured = measured(family, scenarios, size, out.join("bench"));
        let failed = match measured {
            Ok(lines) => {
                report.cost = lines;
                Ok(())
            }
            Err(error) => {
                report.cost.push(format!("not measured: {error}"));
                Err(error)
            }
        };
        Ok((report, failed))
    }
}

/// What the benchmark says of these layers, what shows that they were in force meanwhile, and where
/// its own report lies.
fn measured(
    family: Family,
    scenarios: Vec<String>,
    size: Size,
    out: PathBuf,
) -> Result<Vec<String>, CommandError> {
    let options = Options {
        scenarios,
        size,
        rounds: None,
        families: vec![family],
        given: None,
        peers: Vec::new(),
        port: None,
        built_in_driver: false,
        out: out.clone(),
        catalogue: None,
        quiet: false,
    };
    let report = onionskin_bench::run(&options, bench::surroundings()?)?;
    let failed = report.failed();
    if !failed.is_empty() {
        return Err(BenchError::Incomplete(failed.join(", ")).into());
    }
    let summary = terminal_summary(&report);
    let mut lines: Vec<String> = summary.lines().map(str::to_owned).collect();
    lines.extend(proofs(&report));
    lines.push(out.join("report.html").display().to_string());
    Ok(lines)
}
