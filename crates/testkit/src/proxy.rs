//! The program under test: `onionskin init` and `onionskin serve` as a user would call them.

use crate::session::Session;
use crate::{Server, announce, free_port, is_listening, onionskin_program, signal, tied_command};
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Whether `ONIONSKIN_TEST_DIRECT` asks for plain servers in place of the proxy.
pub fn direct_mode() -> bool {
    std::env::var_os("ONIONSKIN_TEST_DIRECT").is_some_and(|value| value != "0" && !value.is_empty())
}

/// How a proxy is started.
#[derive(Clone, Debug, Default)]
pub struct ProxyOptions {
    /// Lines put before the first table of `onionskin.toml`, such as `suite = "sm"`.
    pub settings: String,
    /// Tables appended to `onionskin.toml`, such as `[protect."app.*"]`.
    pub tables: String,
    /// Where the server is; by default its TCP address.
    pub backend: Option<String>,
    /// `keys.json` of another proxy, to share its keys.
    pub keys: Option<PathBuf>,
    /// Log filter; `info` by default.
    pub log: Option<&'static str>,
    /// More arguments for `onionskin serve`.
    pub arguments: Vec<String>,
    /// Environment variables for both commands.
    pub environment: Vec<(String, String)>,
}

/// A running proxy with its own configuration, keys, log and port. Dropping it kills it.
pub struct Proxy {
    child: Option<Child>,
    port: u16,
    options: ProxyOptions,
    backend: String,
    /// Settings by which the server may be given passwords.
    trust: String,
    folder: TempDir,
}

impl Proxy {
    /// Starts a proxy before `server`; `tables` is appended to its configuration.
    pub fn start(server: &Server, tables: &str) -> Proxy {
        Self::start_with(
            server,
            ProxyOptions {
                tables: tables.into(),
                ..ProxyOptions::default()
            },
        )
    }

    /// Starts a proxy before `server`.
    pub fn start_with(server: &Server, options: ProxyOptions) -> Proxy {
        let folder = tempfile::Builder::new()
            .prefix("osp-")
            .tempdir_in("/tmp")
            .expect("a temporary folder");
        let backend = options.backend.clone().unwrap_or_else(|| server.address());
        let mut proxy = Proxy {
            child: None,
            port: 0,
            trust: trust(server, &options, &backend),
            options,
            backend,
            folder,
        };
        if direct_mode() {
            proxy.port = server.port();
            return proxy;
        }
        proxy.init();
        proxy.launch();
        proxy
    }

    /// Its TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder with `onionskin.toml`, `keys.json` and `proxy.log`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The key file.
    pub fn keys(&self) -> PathBuf {
        self.folder.path().join("keys.json")
    }

    /// All that it has written to its log, standard output and standard error.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log_file()).unwrap_or_default()).into_owned()
    }

    /// What it has written behind so many bytes.
    fn log_since(&self, before: u64) -> String {
        let log = fs::read(self.log_file()).unwrap_or_default();
        let since = log.get(before as usize..).unwrap_or_default();
        String::from_utf8_lossy(since).into_owned()
    }

    /// The file with its log.
    pub fn log_file(&self) -> PathBuf {
        self.folder.path().join("proxy.log")
    }

    /// The proxy's process id; `None` in direct mode.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// A session through the proxy as root.
    pub fn connect(&self) -> Session {
        Session::open(self.port, "root", "", None)
    }

    /// A session through the proxy as root in a database.
    pub fn connect_to(&self, database: &str) -> Session {
        Session::open(self.port, "root", "", Some(database))
    }

    /// `kill -9`
    pub fn kill9(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// `SIGTERM`; returns how long it took to end. Panics when it does not end within 30 seconds,
    /// or not with 0.
    pub fn terminate(&mut self) -> Duration {
        let start = Instant::now();
        if let Some(mut child) = self.child.take() {
            signal("TERM", child.id());
            let status = loop {
                if let Some(status) = child.try_wait().expect("the proxy can be waited for") {
                    break status;
                }
                if start.elapsed() > Duration::from_secs(30) {
                    let _ = child.kill();
                    let _ = child.wait();
                    panic!("the proxy does not end on SIGTERM\n{}", self.log());
                }
                std::thread::sleep(Duration::from_millis(20));
            };
            assert!(status.success(), "SIGTERM: {status}\n{}", self.log());
        }
        start.elapsed()
    }

    /// Starts it again with the same configuration, keys and port.
    pub fn restart(&mut self) {
        if !direct_mode() {
            assert!(self.child.is_none(), "restart after kill9 or terminate");
            self.launch();
        }
    }

    /// Panics if the proxy has ended or has logged a panic.
    pub fn assert_healthy(&mut self) {
        if let Some(child) = &mut self.child {
            let ended = child.try_wait().expect("the proxy can be waited for");
            assert!(
                ended.is_none(),
                "the proxy has ended: {ended:?}\n{}",
                self.log()
            );
        }
        let log = self.log();
        assert!(
            !log.contains("panicked"),
            "a panic in the proxy's log:\n{log}"
        );
    }

    /// Runs `onionskin` with arguments, in the proxy's folder; returns whether it succeeded, and
    /// what it printed.
    pub fn command(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.output(arguments);
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }

    /// The same, with its exit code.
    pub fn output(&self, arguments: &[&str]) -> Output {
        let output = self.program().args(arguments).output();
        output.expect("onionskin runs")
    }

    fn program(&self) -> Command {
        let mut command = tied_command(onionskin_program());
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.envs(self.options.environment.iter().cloned());
        command
    }

    fn init(&self) {
        let folder = self.folder.path().to_str().expect("a plain path");
        let (succeeded, text) =
            self.command(&["init", "--dir", folder, "--backend", &self.backend]);
        assert!(succeeded, "onionskin init: {text}");
        let file = self.folder.path().join("onionskin.toml");
        let generated = fs::read_to_string(&file).expect("onionskin init writes onionskin.toml");
        let ProxyOptions {
            settings, tables, ..
        } = &self.options;
        // A setting given by the test replaces the generated one; TOML does not allow both.
        let given = |line: &str| {
            let name = |line: &str| line.split_once('=').map(|(name, _)| name.trim().to_owned());
            name(line).is_some_and(|n| settings.lines().any(|s| name(s).as_deref() == Some(&n)))
        };
        // Most tests begin with plaintext under names that `[protect]` has; those about enforcing
        // say so.
        let enforces = |line: &str| line.starts_with("enforce");
        // So do those that want an engine that comes by itself.
        let engine = |line: &str| line == "[scratch]" || line == "engine = \"auto\"";
        let kept = generated
            .lines()
            .filter(|l| !given(l) && !enforces(l) && !engine(l));
        let kept: Vec<&str> = kept.collect();
        fs::write(
            &file,
            format!(
                "{settings}\n{}\n{}\n{tables}\n",
                self.trust,
                kept.join("\n")
            ),
        )
        .expect("onionskin.toml");
        if let Some(keys) = &self.options.keys {
            fs::copy(keys, self.keys()).expect("the keys of the other proxy");
        }
        if settings.lines().any(|line| line.starts_with("tenants")) {
            let (succeeded, text) = self.command(&["tenants", "-c", "onionskin.toml", "init"]);
            assert!(succeeded, "onionskin tenants init: {text}");
        }
    }

    fn launch(&mut self) {
        for attempt in 0..3 {
            if self.port == 0 {
                self.port = free_port();
            }
            let log = open_log(&self.log_file());
            let before = log.metadata().map_or(0, |file| file.len());
            let listen = format!("127.0.0.1:{}", self.port);
            let asked = std::env::var("ONIONSKIN_TEST_LOG").ok();
            let filter = asked.as_deref().or(self.options.log).unwrap_or("info");
            let mut command = self.program();
            command
                .args(["serve", "-c", "onionskin.toml", "--listen", &listen])
                .args(&self.options.arguments);
            command.env("RUST_LOG", filter).env("RUST_BACKTRACE", "1");
            command
                .stdout(log.try_clone().expect("a file handle"))
                .stderr(log);
            let mut child = command.spawn().expect("onionskin starts");
            let start = Instant::now();
            while child
                .try_wait()
                .expect("the proxy can be waited for")
                .is_none()
            {
                // It may be another program that listens, for the moment in which it looks whether
                // the port is free; only the log tells. A test can hide that line.
                let is_said = || self.log_since(before).contains("listening on ");
                let is_late = start.elapsed() > Duration::from_secs(1);
                if is_listening(self.port) && (is_said() || is_late) {
                    self.child = Some(child);
                    return;
                }
                if start.elapsed() > Duration::from_secs(30) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = child.kill();
            let _ = child.wait();
            // Taken between its choice and the proxy's start.
            if attempt < 2 && self.log().to_lowercase().contains("address already in use") {
                announce(&format!("port {} was taken, trying another one", self.port));
                self.port = 0;
                continue;
            }
            break;
        }
        panic!("onionskin serve does not start:\n{}", self.log());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.kill9();
        if std::thread::panicking() && !direct_mode() {
            // What the proxy said is usually the explanation.
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(30).collect();
            eprintln!(
                "the proxy's log ends with:\n{}",
                tail.into_iter().rev().collect::<Vec<_>>().join("\n")
            );
        }
    }
}

/// TLS that verifies the server, where a test says nothing about TLS and the server has an
/// authority: passwords go to a server only that is known. MariaDB's methods send none.
fn trust(server: &Server, options: &ProxyOptions, backend: &str) -> String {
    let is_said = options.settings.contains("backend_");
    match server.authority() {
        Some(authority) if !is_said && !backend.starts_with("unix:") => format!(
            "backend_tls = \"required\"\nbackend_ca = \"{}\"",
            authority.display()
        ),
        _ => String::new(),
    }
}

fn open_log(path: &Path) -> File {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .expect("the proxy's log file")
}
