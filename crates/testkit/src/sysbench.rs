//! sysbench, unmodified, as it is packaged.

use std::process::Command;

/// One run of sysbench: `Sysbench::new(port, "oltp_insert").threads(24).seconds(3).run("run")`.
#[derive(Clone, Debug)]
pub struct Sysbench {
    script: String,
    arguments: Vec<String>,
    database: String,
}

/// What a run reports.
#[derive(Clone, Debug, Default)]
pub struct SysbenchReport {
    /// Completed transactions (iterations of the script).
    pub transactions: u64,
    /// Executed statements.
    pub queries: u64,
    /// Errors that sysbench tolerates and retries: deadlocks and lock wait timeouts.
    pub ignored_errors: u64,
    /// Sessions that had to be opened again.
    pub reconnects: u64,
    /// All output.
    pub text: String,
}

impl Sysbench {
    /// A script of /usr/share/sysbench against 127.0.0.1:`port`, as root, in the database `sbtest`.
    pub fn new(port: u16, script: &str) -> Sysbench {
        let arguments = [
            "--db-driver=mysql",
            "--mysql-host=127.0.0.1",
            &format!("--mysql-port={port}"),
            "--mysql-user=root",
            "--mysql-password=",
        ];
        Sysbench {
            script: script.into(),
            arguments: arguments.map(String::from).into(),
            database: "sbtest".into(),
        }
    }

    /// Another database than `sbtest`.
    pub fn database(mut self, name: &str) -> Self {
        self.database = name.into();
        self
    }

    /// Adds an option.
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.arguments.push(option.into());
        self
    }

    /// Number of client threads.
    pub fn threads(self, threads: u32) -> Self {
        self.option(format!("--threads={threads}"))
    }

    /// Runs for this time, however many statements that is.
    pub fn seconds(self, seconds: u32) -> Self {
        self.option(format!("--time={seconds}"))
            .option("--events=0")
    }

    /// Runs this number of transactions, however long that takes. With one thread and the same
    /// seed, two runs send exactly the same statements.
    pub fn events(self, events: u32) -> Self {
        self.option("--time=0").option(format!("--events={events}"))
    }

    /// The size of the load: number of tables and rows in each.
    pub fn tables(self, tables: u32, rows: u32) -> Self {
        self.option(format!("--tables={tables}"))
            .option(format!("--table-size={rows}"))
    }

    /// Server-side prepared statements (`auto`) or text (`disable`).
    pub fn prepared(self, prepared: bool) -> Self {
        self.option(if prepared {
            "--db-ps-mode=auto"
        } else {
            "--db-ps-mode=disable"
        })
    }

    /// Runs `prepare`, `run` or `cleanup`. Panics on any error that sysbench reports.
    pub fn run(&self, command: &str) -> SysbenchReport {
        let (succeeded, report) = self.attempt(command);
        let complaint = report.text.lines().find(|line| is_complaint(line));
        assert!(
            succeeded && complaint.is_none() && report.reconnects == 0,
            "sysbench {} {:?} {command}:\n{}",
            self.script,
            self.arguments,
            report.text
        );
        report
    }

    /// Like [`Sysbench::run`], for tests that expect it to fail; tells whether it succeeded.
    pub fn attempt(&self, command: &str) -> (bool, SysbenchReport) {
        // A hanging proxy must fail the test, not stop it.
        let output = Command::new("timeout")
            .args(["--kill-after=5", "240", "sysbench", &self.script])
            .args(&self.arguments)
            .arg(format!("--mysql-db={}", self.database))
            .arg(command)
            .output()
            .expect("sysbench is installed");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let number = |label: &str| {
            text.lines()
                .find_map(|line| line.trim().strip_prefix(label))
                .and_then(|rest| rest.split_whitespace().next())
                .and_then(|word| word.parse().ok())
                .unwrap_or(0)
        };
        let report = SysbenchReport {
            transactions: number("transactions:"),
            queries: number("queries:"),
            ignored_errors: number("ignored errors:"),
            reconnects: number("reconnects:"),
            text,
        };
        (output.status.success(), report)
    }
}

fn is_complaint(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("FATAL")
        || line.starts_with("ALERT")
        || line.starts_with("(last message repeated")
        || (line.contains("error") && !line.starts_with("ignored errors:"))
}
