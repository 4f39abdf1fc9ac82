//! `onionskin bench`: what each layer of encryption costs on this machine. The work is in the crate
//! `onionskin-bench`.

use std::{
    path::PathBuf,
    process::{Command, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use clap::{Args, Subcommand};
use onionskin_bench::{
    BenchError, Options, Surroundings,
    catalogue::Size,
    compare, for_people, list,
    process::{Stop, User},
    report::{Report, terminal_summary},
    server::{Dsn, Family, Program},
};

use crate::{
    error::CommandError,
    private::{self, ServerProgram, ServerUser},
    termination::Termination,
    tied,
};

/// Holds the password of accounts of given servers.
const PASSWORD: &str = "ONIONSKIN_PASSWORD";

/// Measure what each layer of encryption costs on this machine
///
/// Starts private servers with the configurations under test in a temporary folder, loads them in
/// turns, proves before and after each run that the setting was in force, and writes report.html,
/// report.md and report.json. Ctrl-C leaves a valid report of what was measured. ONIONSKIN_MYSQLD
/// names a server program that is not in PATH; several are separated by colons. ONIONSKIN_PASSWORD
/// holds the password of accounts that are named without one: everybody on the machine can read the
/// arguments of a program.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Bench {
    #[command(subcommand)]
    command: Option<Subcommands>,
    #[command(flatten)]
    run: Run,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Show the scenarios, and how long they take
    List,
    /// Compare two reports
    Compare {
        /// A report.json
        first: PathBuf,
        /// Another one
        second: PathBuf,
    },
    /// Make one report of several from this machine, for example of single scenarios
    Merge {
        /// Where report.html, report.md and report.json go
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Files named report.json; of a scenario that is in more than one, the last counts
        #[arg(required = true)]
        reports: Vec<PathBuf>,
    },
}

#[derive(Args)]
struct Run {
    /// Which scenarios [default: all but `large`]
    scenarios: Vec<String>,
    /// Everything within ten minutes on two processors (the default)
    #[arg(long)]
    quick: bool,
    /// Long measurements of large data; says first how long it will take
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Only to see that everything works
    #[arg(long, hide = true, conflicts_with_all = ["quick", "full"])]
    tiny: bool,
    /// mariadb, mysql, or both with a comma: start private ones; or a DSN, mysql://user@host:port,
    /// for what needs no restart, with the password in ONIONSKIN_PASSWORD [default: the first that
    /// is installed]
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Another proxy to compare with, which stands before a given server:
    /// NAME=mysql://user@host:port
    ///
    /// The password is in ONIONSKIN_PASSWORD, or behind the user (mysql://user:password@host:port).
    /// Its back end must be the server that --server names by a DSN.
    #[arg(long, value_name = "NAME=DSN")]
    peer: Vec<String>,
    /// Port of the first private server [default: any that is free]
    #[arg(long)]
    port: Option<u16>,
    /// How often everything is measured [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..1000))]
    rounds: Option<u32>,
    /// Make the load with the built-in driver even if sysbench is installed
    #[arg(long)]
    built_in_driver: bool,
    /// Where report.html, report.md and report.json go [default: bench-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Another description of the scenarios
    #[arg(long, hide = true, value_name = "FILE")]
    catalogue: Option<PathBuf>,
    /// No progress on standard error
    #[arg(short, long)]
    quiet: bool,
}

impl Bench {
    /// Measures, lists, compares or merges.
    pub fn run(self) -> Result<(), CommandError> {
        match self.command {
            None => self.run.run(),
            Some(Subcommands::List) => {
                for listed in list()? {
                    println!(
                        "{}: {}\n    {}\n    --quick about {}, --full about {}",
                        listed.name,
                        listed.title,
                        listed.question,
                        for_people(listed.quick),
                        for_people(listed.full)
                    );
                }
                Ok(())
            }
            Some(Subcommands::Compare { first, second }) => {
                let read = |path: &PathBuf| Report::read(path).map_err(BenchError::from);
                let (first, second) = (read(&first)?, read(&second)?);
                let lines = compare::compare(&first, &second);
                print!("{}", compare::text(&first, &second, &lines));
                Ok(())
            }
            Some(Subcommands::Merge { out, reports }) => {
                let report = Report::merge(&reports).map_err(BenchError::from)?;
                std::fs::create_dir_all(&out).map_err(|source| CommandError::File {
                    path: out.clone(),
                    source,
                })?;
                if out.join("report.json").exists() {
                    return Err(BenchError::Exists(out).into());
                }
                report.write(&out).map_err(BenchError::from)?;
                println!("{}", out.join("report.html").display());
                Ok(())
            }
        }
    }
}

impl Run {
    fn run(self) -> Result<(), CommandError> {
        let password = std::env::var(PASSWORD).ok();
        let (families, given) = self.servers(password.as_deref())?;
        let peers = self
            .peer
            .iter()
            .map(|text| {
                let (name, dsn) = text.split_once('=').ok_or_else(|| {
                    CommandError::Arguments(format!("--peer {text}: write NAME=DSN"))
                })?;
                Ok((name.to_owned(), Dsn::parse(dsn, password.as_deref())?))
            })
            .collect::<Result<Vec<_>, CommandError>>()?;
        let catalogue = self
            .catalogue
            .as_ref()
            .map(|path| {
                std::fs::read_to_string(path).map_err(|source| CommandError::File {
                    path: path.clone(),
                    source,
                })
            })
            .transpose()?;
        let size = match (self.full, self.tiny) {
            (true, _) => Size::Full,
            (_, true) => Size::Tiny,
            _ => Size::Quick,
        };
        let out = self.out.unwrap_or_else(|| {
            PathBuf::from(format!("bench-{}", onionskin_bench::time_for_names()))
        });
        let options = Options {
            scenarios: self.scenarios,
            size,
            rounds: self.rounds.map(|rounds| rounds as usize),
            families,
            given,
            peers,
            port: self.port,
            built_in_driver: self.built_in_driver,
            out,
            catalogue,
            quiet: self.quiet,
        };
        let report = onionskin_bench::run(&options, surroundings()?)?;
        print!("{}", terminal_summary(&report));
        println!("\n{}", options.out.join("report.html").display());
        let failed = report.failed();
        match failed.is_empty() {
            true => Ok(()),
            false => Err(BenchError::Incomplete(failed.join(", ")).into()),
        }
    }

    /// Families to start, or the server to use, with the password of an account that is named
    /// without one.
    fn servers(&self, password: Option<&str>) -> Result<(Vec<Family>, Option<Dsn>), CommandError> {
        let Some(text) = &self.server else {
            return Ok((Vec::new(), None));
        };
        if text.contains("://") {
            return Ok((Vec::new(), Some(Dsn::parse(text, password)?)));
        }
        let families = text
            .split(',')
            .map(|name| match name {
                "mariadb" => Ok(Family::MariaDb),
                "mysql" => Ok(Family::MySql),
                _ => Err(BenchError::Dsn {
                    given: text.clone(),
                    said: format!("{name} is neither a kind of server nor a DSN"),
                }),
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok((families, None))
    }
}

/// Servers, signals and this program itself.
pub fn surroundings() -> Result<Surroundings, CommandError> {
    let system = |doing| move |source| CommandError::System { doing, source };
    let termination = Termination::watch().map_err(system("waiting for signals"))?;
    let stop: Stop = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&stop);
    termination.on_signal(move || set.store(true, Ordering::Relaxed));
    Ok(Surroundings {
        programs: programs()?,
        tie,
        stop,
        onionskin: std::env::current_exe().map_err(system("looking for this program"))?,
        version: env!("CARGO_PKG_VERSION").into(),
    })
}

fn tie(program: &std::ffi::OsStr) -> Command {
    tied::command(program)
}

/// The servers that are installed, one of each family.
fn programs() -> Result<Vec<Program>, CommandError> {
    let user = ServerUser::for_new_folders()?.map(|user| User {
        uid: user.uid,
        gid: user.gid,
    });
    let mut programs: Vec<Program> = Vec::new();
    for found in ServerProgram::installed()? {
        let family = match found.family {
            private::Family::MariaDb => Family::MariaDb,
            private::Family::MySql => Family::MySql,
        };
        if programs.iter().any(|program| program.family == family) {
            continue;
        }
        let installer = match family {
            Family::MariaDb => Some(found.installer()?),
            Family::MySql => None,
        };
        programs.push(Program {
            family,
            path: found.path,
            installer,
            user: user.clone(),
        });
    }
    Ok(programs)
}

/// The exit code of an error of the benchmark.
pub fn exit_code(error: &BenchError) -> ExitCode {
    match error {
        error if error.is_about_the_setup() => ExitCode::from(2),
        _ => ExitCode::FAILURE,
    }
}
