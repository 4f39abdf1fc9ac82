//! The installed sysbench, unmodified: its options, its report, its interval output and its
//! histogram.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    process::Command,
    time::Duration,
};

use super::{Load, Loaded, Statements, statements::own_select};
use crate::{
    error::BenchError,
    machine::version_of,
    process::{self, Stop, find_program},
    report::Series,
    server::Address,
};

/// An installed sysbench.
#[derive(Clone, Debug)]
pub struct Sysbench {
    program: PathBuf,
    /// What `--version` says.
    pub version: String,
}

impl Sysbench {
    /// In PATH, if it runs.
    pub fn find() -> Option<Self> {
        let program = find_program("sysbench")?;
        let version = version_of(&program, "--version")?;
        version
            .starts_with("sysbench")
            .then_some(Self { program, version })
    }

    /// Makes and fills the tables.
    pub fn prepare(&self, address: &Address, load: &Load, stop: &Stop) -> Result<(), BenchError> {
        let mut load = load.clone();
        load.workload = "oltp_read_write".into();
        load.threads = load.tables.min(4);
        let options = options(&load, &[]);
        self.call(
            address,
            &options,
            "prepare",
            stop,
            Duration::from_secs(3600),
        )
        .map(drop)
    }

    /// Runs it.
    pub fn run(&self, address: &Address, load: &Load, stop: &Stop) -> Result<Loaded, BenchError> {
        let (seconds, events) = match load.events {
            0 => (load.seconds.ceil(), 0),
            events => (0.0, events),
        };
        let (seconds, events) = (format!("--time={seconds}"), format!("--events={events}"));
        let script = own_select(&load.workload)
            .map(|select| Temporary::write("lua", &script(select)))
            .transpose()?;
        let mut named = load.clone();
        if let Some(script) = &script {
            named.workload = script.0.display().to_string();
        }
        let options = options(
            &named,
            &[
                &seconds,
                &events,
                "--rand-type=uniform",
                match load.statements {
                    Statements::Text => "--db-ps-mode=disable",
                    Statements::Prepared => "--db-ps-mode=auto",
                },
                "--report-interval=1",
                "--percentile=95",
                "--histogram=on",
            ],
        );
        // A peer that hangs must not hang the benchmark; slow ones took a day for a million rows.
        let limit = Duration::from_secs_f64(load.seconds * 2.0 + 60.0 + load.events as f64 / 20.0);
        let text = self.call(address, &options, "run", stop, limit)?;
        let mut loaded = parse(&text).ok_or_else(|| BenchError::Program {
            program: "sysbench".into(),
            said: format!(
                "its report is not understood: {}",
                process::last_lines(&text, 4)
            ),
        })?;
        let words = options[1..].join(" ");
        loaded.command = format!("sysbench {} {words} run", load.workload);
        Ok(loaded)
    }

    fn call(
        &self,
        address: &Address,
        options: &[String],
        command: &str,
        stop: &Stop,
        limit: Duration,
    ) -> Result<String, BenchError> {
        // Arguments can be read by everybody on the machine.
        let secret = Temporary::write("cnf", &format!("mysql-password={}\n", address.password))?;
        let mut call = Command::new(&self.program);
        call.arg(format!("--config-file={}", secret.0.display()))
            .args(options)
            .arg("--db-driver=mysql")
            .arg(format!("--mysql-host={}", address.host))
            .arg(format!("--mysql-port={}", address.port))
            .arg(format!("--mysql-user={}", address.user))
            .arg(command);
        let ended = process::run(&mut call, stop, limit)?;
        if !ended.success || ended.text.contains("FATAL") {
            let complaint = ended
                .text
                .lines()
                .find(|line| line.contains("FATAL") || line.contains("ALERT"))
                .map_or_else(|| ended.last_words(), |line| line.trim().to_owned());
            let said = match ended.timed_out {
                true => format!("it does not end; {complaint}"),
                false => complaint,
            };
            return Err(BenchError::Program {
                program: "sysbench".into(),
                said,
            });
        }
        Ok(ended.text)
    }
}

/// A script of sysbench's for a workload of ours: a hundred rows by their ids.
fn script((select, tail): (&str, &str)) -> String {
    format!(
        "require('oltp_common')\n\
         function prepare_statements() end\n\
         function event()\n\
         local first = sysbench.rand.default(1, sysbench.opt.table_size)\n\
         con:query(string.format([[SELECT {} FROM sbtest%u WHERE id BETWEEN %u AND %u{tail}]],\n\
         sysbench.rand.uniform(1, sysbench.opt.tables), first, first + 99))\n\
         end\n",
        select.replace('%', "%%")
    )
}

/// A file for us alone, the password's for one, removed after the call.
struct Temporary(PathBuf);

impl Temporary {
    fn write(kind: &str, text: &str) -> Result<Self, BenchError> {
        let path = std::env::temp_dir().join(format!(
            "osb-{}-{:016x}.{kind}",
            std::process::id(),
            rand::random::<u64>()
        ));
        let at = BenchError::system(path.display().to_string());
        let mut file: File = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(at)?;
        let written = Self(path);
        file.write_all(text.as_bytes())
            .map_err(BenchError::system(written.0.display().to_string()))?;
        Ok(written)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn options(load: &Load, more: &[&str]) -> Vec<String> {
    let mut options = vec![
        load.workload.clone(),
        format!("--mysql-db={}", load.database),
        format!("--tables={}", load.tables),
        format!("--table-size={}", load.rows),
        format!("--threads={}", load.threads),
    ];
    options.extend(more.iter().map(|option| (*option).to_owned()));
    options
}

/// Reads what sysbench 1.0 prints.
fn parse(text: &str) -> Option<Loaded> {
    let number = |label: &str| -> Option<f64> {
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(label))?;
        line.split_whitespace()
            .next()?
            .trim_end_matches('s')
            .parse()
            .ok()
    };
    let histogram = histogram(text);
    let percentile = |share: f64| -> f64 {
        let total: f64 = histogram.iter().map(|(_, count)| count).sum();
        let mut seen = 0.0;
        histogram
            .iter()
            .find(|(_, count)| {
                seen += count;
                seen >= total * share
            })
            .map_or(0.0, |(value, _)| *value)
    };
    Some(Loaded {
        transactions: number("transactions:")?,
        queries: number("queries:")?,
        seconds: number("total time:")?,
        latency_ms: [
            number("avg:")?,
            percentile(0.5),
            number("95th percentile:")?,
            percentile(0.99),
        ],
        longest_ms: number("max:")?,
        // those after which it begins the transaction again
        errors: number("ignored errors:")?,
        series: vec![Series {
            name: "statements".into(),
            unit: "1/s".into(),
            points: text.lines().filter_map(interval).collect(),
        }],
        command: String::new(),
    })
}

/// `[ 1s ] thds: 4 tps: 2.00 qps: 40.00 (r/w/o: …) lat (ms,95%): 3.62 …` → (1, 40)
fn interval(line: &str) -> Option<(f64, f64)> {
    let rest = line.strip_prefix("[ ")?;
    let (second, rest) = rest.split_once("s ]")?;
    let qps = rest.split_once("qps: ")?.1.split_whitespace().next()?;
    Some((second.trim().parse().ok()?, qps.parse().ok()?))
}

/// `  0.124 |*****     12` → (0.124, 12)
fn histogram(text: &str) -> Vec<(f64, f64)> {
    text.lines()
        .skip_while(|line| !line.starts_with("Latency histogram"))
        .filter_map(|line| {
            let (value, rest) = line.split_once('|')?;
            let count = rest.split_whitespace().next_back()?;
            Some((value.trim().parse().ok()?, count.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
[ 1s ] thds: 2 tps: 1490.45 qps: 1490.45 (r/w/o: 0.00/1490.45/0.00) lat (ms,95%): 1.89 err/s: 0.00 reconn/s: 0.00
[ 2s ] thds: 2 tps: 1511.02 qps: 1511.02 (r/w/o: 0.00/1511.02/0.00) lat (ms,95%): 1.86 err/s: 0.00 reconn/s: 0.00
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.500 |**********                               50
       1.000 |********                                 45
       2.000 |*                                        4
       9.000 |                                         1

SQL statistics:
    queries performed:
        read:                            0
        write:                           3003
        other:                           0
        total:                           3003
    transactions:                        3003   (1501.06 per sec.)
    queries:                             3003   (1501.06 per sec.)
    ignored errors:                      3      (1.50 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          2.0003s
    total number of events:              3003

Latency (ms):
         min:                                    0.46
         avg:                                    1.33
         max:                                   14.58
         95th percentile:                        1.89
         sum:                                 3996.02
";

    #[test]
    fn workloads_of_ours_are_scripts() {
        let select = own_select("tier_scratch").expect("one of ours");
        let script = script(select);
        // a percent sign stands for itself behind Lua's formatting
        let line = "[[SELECT id, UPPER(c), k %% 7 FROM sbtest%u WHERE id BETWEEN %u AND %u]]";
        assert!(script.contains(line), "{script}");
        assert!(own_select("oltp_read_only").is_none());
    }

    #[test]
    fn a_report_is_read() {
        let loaded = parse(REPORT).expect("understood");
        assert_eq!((loaded.transactions, loaded.queries), (3003.0, 3003.0));
        assert_eq!(loaded.seconds, 2.0003);
        assert_eq!(loaded.latency_ms, [1.33, 0.5, 1.89, 2.0]);
        assert_eq!((loaded.longest_ms, loaded.errors), (14.58, 3.0));
        assert_eq!(loaded.series[0].points, [(1.0, 1490.45), (2.0, 1511.02)]);
        assert!(parse("nothing").is_none());
    }
}
