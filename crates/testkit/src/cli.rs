//! The command-line clients: Debian's `mariadb`, and the `mysql` of MySQL 9.7.

use crate::{Kind, checkout};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A client program with its connection options.
#[derive(Clone, Debug)]
pub struct Cli {
    kind: Kind,
    arguments: Vec<String>,
    password: String,
}

/// What the client printed.
#[derive(Clone, Debug)]
pub struct CliOutput {
    /// Exit code 0.
    pub success: bool,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Cli {
    /// A client over TCP to 127.0.0.1.
    pub fn tcp(kind: Kind, port: u16, user: &str, password: &str) -> Cli {
        let port = format!("--port={port}");
        let way = ["--protocol=TCP", "--host=127.0.0.1", &port];
        Self::by(kind, &way, user, password)
    }

    /// A client over a Unix socket.
    pub fn unix(kind: Kind, socket: &Path, user: &str, password: &str) -> Cli {
        let socket = format!("--socket={}", socket.display());
        Self::by(kind, &["--protocol=SOCKET", &socket], user, password)
    }

    fn by(kind: Kind, way: &[&str], user: &str, password: &str) -> Cli {
        let mut arguments = vec!["--no-defaults".to_owned()];
        arguments.extend(way.iter().map(|option| (*option).to_owned()));
        arguments.push(format!("--user={user}"));
        arguments.push("--connect-timeout=20".into());
        if kind == Kind::MySql {
            let plugins = checkout().join(".servers/mysql/usr/lib/mysql/plugin");
            arguments.push(format!("--plugin-dir={}", plugins.display()));
            // `status`, `\s`, `delimiter` and their like are off by default since MySQL 9.
            arguments.push("--commands".into());
        }
        Cli {
            kind,
            arguments,
            password: password.into(),
        }
    }

    /// Adds an option, such as `--ssl` or `--ssl-mode=REQUIRED`.
    pub fn option(mut self, option: &str) -> Cli {
        self.arguments.push(option.into());
        self
    }

    /// Forces TLS.
    pub fn with_tls(self) -> Cli {
        match self.kind {
            Kind::MariaDb => self.option("--ssl"),
            Kind::MySql => self.option("--ssl-mode=REQUIRED"),
        }
    }

    /// Forbids TLS.
    pub fn without_tls(self) -> Cli {
        match self.kind {
            Kind::MariaDb => self.option("--skip-ssl"),
            // Without TLS, the full login of caching_sha2_password needs the server's public key.
            Kind::MySql => self
                .option("--ssl-mode=DISABLED")
                .option("--get-server-public-key"),
        }
    }

    /// Runs it with statements on its standard input.
    pub fn run(&self, sql: &str) -> CliOutput {
        let program = match self.kind {
            Kind::MariaDb => "mariadb".into(),
            Kind::MySql => checkout().join("scripts/mysql97"),
        };
        self.output(program, &[], sql)
    }

    /// What the family's own program writes about these databases: tables, rows, views, triggers.
    pub fn dump(kind: Kind, port: u16, user: &str, password: &str, databases: &[&str]) -> String {
        let program = match kind {
            Kind::MariaDb => "mariadb-dump".into(),
            Kind::MySql => checkout().join("scripts/mysqldump97"),
        };
        let mut client = Cli::tcp(kind, port, user, password);
        let unknown = ["--connect-timeout=20", "--commands"];
        client.arguments.retain(|a| !unknown.contains(&a.as_str()));
        if kind == Kind::MySql {
            client = client
                .option("--ssl-mode=PREFERRED")
                .option("--get-server-public-key");
        }
        let output = client.output(program, databases, "");
        assert!(output.success, "{}", output.err);
        output.out
    }

    fn output(&self, program: PathBuf, more: &[&str], input: &str) -> CliOutput {
        let mut child = Command::new("timeout")
            .args(["--kill-after=5", "60"])
            .arg(program)
            .args(&self.arguments)
            .args(more)
            // All clients read it; it is not in the process list.
            .env("MYSQL_PWD", &self.password)
            .env("MYSQL_HISTFILE", "/dev/null")
            .current_dir(Path::new("/tmp"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the client starts");
        // A client that cannot log in closes its standard input before reading it.
        let _ = child
            .stdin
            .take()
            .expect("piped")
            .write_all(input.as_bytes());
        let output = child.wait_with_output().expect("the client ends");
        CliOutput {
            success: output.status.success(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs it, expects success, returns standard output.
    pub fn must(&self, sql: &str) -> String {
        let output = self.run(sql);
        assert!(
            output.success,
            "{:?}\n{sql}\n→ {}\n{}",
            self.arguments, output.out, output.err
        );
        output.out
    }
}
