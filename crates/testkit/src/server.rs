//! Private MariaDB and MySQL servers.

use crate::cluster::{Cluster, Topology, rejoin, same_tables};
use crate::search::{Pattern, find_all, written_in};
use crate::session::Session;
use crate::{announce, checkout, free_port, lasting_folder, signal, tied_command};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Which database server a test runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The system's MariaDB.
    MariaDb,
    /// The MySQL in `.servers/mysql`.
    MySql,
}

/// An account for the tests of login. `root` without a password exists besides, with all
/// privileges.
#[derive(Clone, Copy, Debug)]
pub struct TestUser {
    /// Account name; the host part is `%`.
    pub name: &'static str,
    /// Its password.
    pub password: &'static str,
    /// The authentication plugin as the server calls it.
    pub plugin: &'static str,
}

impl Kind {
    /// The accounts with a password, one for each authentication plugin that the server has.
    pub fn users(self) -> &'static [TestUser] {
        match self {
            Kind::MariaDb => &[
                TestUser {
                    name: "native",
                    password: "native secret",
                    plugin: "mysql_native_password",
                },
                TestUser {
                    name: "edwards",
                    password: "edwards secret",
                    plugin: "ed25519",
                },
            ],
            // mysql_native_password is gone since MySQL 9.0.
            Kind::MySql => &[
                TestUser {
                    name: "sha",
                    password: "sha secret",
                    plugin: "caching_sha2_password",
                },
                TestUser {
                    name: "shorter",
                    password: "s",
                    plugin: "caching_sha2_password",
                },
            ],
        }
    }

    /// Name for messages and file names.
    pub fn name(self) -> &'static str {
        match self {
            Kind::MariaDb => "mariadb",
            Kind::MySql => "mysql",
        }
    }

    fn account_statements(self, quiet: bool) -> String {
        let mut sql = String::new();
        if quiet {
            sql += "SET SESSION sql_log_bin = 0;\n";
            if self == Kind::MariaDb {
                sql += "SET SESSION wsrep_on = OFF;\n";
            }
        }
        for host in ["127.0.0.1", "localhost"] {
            sql += &format!("CREATE USER IF NOT EXISTS 'root'@'{host}' IDENTIFIED BY '';\n");
            sql += &format!("GRANT ALL PRIVILEGES ON *.* TO 'root'@'{host}' WITH GRANT OPTION;\n");
        }
        for user in self.users() {
            let TestUser {
                name,
                password,
                plugin,
            } = user;
            sql += &match self {
                Kind::MariaDb => format!(
                    "CREATE USER IF NOT EXISTS '{name}'@'%' IDENTIFIED VIA {plugin} USING PASSWORD('{password}');\n"
                ),
                Kind::MySql => format!(
                    "CREATE USER IF NOT EXISTS '{name}'@'%' IDENTIFIED WITH {plugin} BY '{password}';\n"
                ),
            };
            sql += &format!("GRANT ALL PRIVILEGES ON *.* TO '{name}'@'%';\n");
        }
        sql
    }

    /// Why this kind of server is not available, if so.
    fn unavailable(self) -> Option<String> {
        match self {
            Kind::MariaDb => None,
            Kind::MySql if std::env::var_os("ONIONSKIN_TEST_MARIADB_ONLY").is_some() => {
                Some("ONIONSKIN_TEST_MARIADB_ONLY is set".into())
            }
            Kind::MySql => {
                let servers = checkout().join(".servers");
                if servers.join("mysql/.complete").exists() {
                    return None;
                }
                Some(
                    fs::read_to_string(servers.join("mysql.skipped")).map_or_else(
                        |_| "scripts/install-deps.sh tests has not been run".into(),
                        |reason| reason.trim().to_owned(),
                    ),
                )
            }
        }
    }

    /// Makes a data directory of its own for a server that a test starts by itself; false, with a
    /// loud message, where it could not be installed.
    pub fn make_data(self, data: &Path) -> bool {
        if let Some(reason) = self.unavailable() {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            announce(&format!("{test} ... skipped: MySQL is not there: {reason}"));
            return false;
        }
        copy(&template(self), data);
        true
    }

    /// The program that runs it.
    pub fn server_program(self) -> PathBuf {
        match self {
            Kind::MariaDb => in_sbin("mariadbd"),
            Kind::MySql => checkout().join("scripts/mysqld97"),
        }
    }
}

/// The server programs live in sbin, which is not in every PATH.
fn in_sbin(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.exists())
        .unwrap_or_else(|| panic!("{program} is not installed; run scripts/install-deps.sh tests"))
}

/// Format of the binary log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binlog {
    /// `ROW`
    Row,
    /// `STATEMENT`
    Statement,
}

/// What a test wants from its server beyond the defaults.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Write every statement to `general.log` in the data directory.
    pub general_log: bool,
    /// Write every statement to `slow.log` in the data directory.
    pub slow_log: bool,
    /// Write a binary log of this format.
    pub binlog: Option<Binlog>,
    /// Statement history in performance_schema, with long texts.
    pub performance_schema: bool,
    /// `innodb_flush_log_at_trx_commit`. The default here is 2: survives a kill of the server, not
    /// of the machine.
    pub flush_log_at_commit: u8,
    /// Offer TLS.
    pub tls: bool,
    /// Look the names of clients' addresses up, by a file of hosts of the server's own: servers
    /// count broken-off logins only then.
    pub hosts: Option<String>,
    /// More options for the server's command line.
    pub extra: Vec<String>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// Its accounts are its own: the binary log and the cluster that it is in are not told of them.
    pub quiet_accounts: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            general_log: false,
            slow_log: false,
            binlog: None,
            performance_schema: false,
            flush_log_at_commit: 2,
            tls: true,
            hosts: None,
            extra: Vec::new(),
            environment: Vec::new(),
            quiet_accounts: false,
        }
    }
}

/// A running server of a test's own. Dropping it kills it and removes its data.
pub struct Server {
    kind: Kind,
    options: ServerOptions,
    child: Option<Child>,
    port: u16,
    /// The other nodes of its cluster, where the environment asks for one.
    others: Option<(Topology, Vec<Server>)>,
    // Removed last: after the process is gone.
    folder: TempDir,
}

impl Server {
    /// MariaDB with the default options.
    pub fn mariadb() -> Server {
        Self::start(Kind::MariaDb, ServerOptions::default()).expect("MariaDB is never skipped")
    }

    /// MySQL with the default options, or `None` where it could not be installed.
    pub fn mysql() -> Option<Server> {
        Self::start(Kind::MySql, ServerOptions::default())
    }

    /// Starts a server and waits until it answers; `None`, with a loud message, where it could not
    /// be installed. With `ONIONSKIN_TEST_CLUSTER` it is a node of a cluster.
    pub fn start(kind: Kind, options: ServerOptions) -> Option<Server> {
        match Topology::asked_for(kind, &options) {
            Some(topology) => {
                let mut options = options;
                // rows are numbered as on a plain server: one node is written to
                options.extra.extend([
                    "--loose-wsrep-auto-increment-control=OFF".into(),
                    "--loose-group-replication-auto-increment-increment=1".into(),
                ]);
                let mut nodes = Cluster::of(topology, &options, 2)?.into_nodes();
                let mut server = nodes.remove(0);
                server.others = Some((topology, nodes));
                Some(server)
            }
            None => Self::alone(kind, options),
        }
    }

    /// A server that is in no cluster, whatever the environment asks for.
    pub(crate) fn alone(kind: Kind, options: ServerOptions) -> Option<Server> {
        let mut server = Self::prepared(kind, options)?;
        server.launch();
        Some(server)
    }

    /// One that has its data and was not started yet.
    pub(crate) fn prepared(kind: Kind, options: ServerOptions) -> Option<Server> {
        if let Some(reason) = kind.unavailable() {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            announce(&format!("{test} ... skipped: MySQL is not there: {reason}"));
            return None;
        }
        Some(Self::prepared_on(kind, options, &template(kind)))
    }

    /// The same, on a copy of a data directory.
    pub(crate) fn prepared_on(kind: Kind, options: ServerOptions, data: &Path) -> Server {
        let folder = folder();
        copy(data, &folder.path().join("data"));
        Server {
            kind,
            options,
            child: None,
            port: 0,
            others: None,
            folder,
        }
    }

    /// Further options of its command line, for its next start.
    pub(crate) fn options_mut(&mut self) -> &mut Vec<String> {
        &mut self.options.extra
    }

    /// Runs the server's program for something else than serving, and waits for its end.
    pub(crate) fn run_program(&self, more: &[&str]) -> bool {
        let status = self.command().args(more).status();
        status.is_ok_and(|status| status.success())
    }

    /// Starts a server on a copy of a data directory that something else made; its accounts are
    /// added.
    pub fn start_on(kind: Kind, options: ServerOptions, data: &Path) -> Server {
        let mut server = Self::prepared_on(kind, options, data);
        server.launch();
        server
    }

    /// Which server it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// Its data directory, with all logs in it.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A direct connection as root.
    pub fn connect(&self) -> Session {
        Session::open(self.port, "root", "", None)
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the server runs").id()
    }

    /// Whether it was started, and has neither been ended nor ended by itself.
    pub(crate) fn is_running(&mut self) -> bool {
        let ended = |child: &mut Child| child.try_wait().map(|status| status.is_some());
        self.child
            .as_mut()
            .is_some_and(|child| matches!(ended(child), Ok(false)))
    }

    /// All that it has: its data directory, its socket and its temporary files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `kill -9`
    pub fn kill9(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// A clean shutdown, which writes everything to the data directory.
    pub fn shutdown(&mut self) {
        if let Some(mut child) = self.child.take() {
            signal("TERM", child.id());
            let start = Instant::now();
            while child
                .try_wait()
                .expect("the server can be waited for")
                .is_none()
            {
                assert!(
                    start.elapsed() < Duration::from_secs(60),
                    "the server does not shut down"
                );
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Starts it again on the same data, port and socket.
    pub fn restart(&mut self) {
        assert!(self.child.is_none(), "restart after kill9 or shutdown");
        match &self.others {
            Some((topology, _)) => rejoin(self, *topology),
            None => self.launch(),
        }
    }

    /// Every file of the data directory.
    pub fn data_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        collect_files(&self.data_dir(), &mut files);
        files
    }

    /// Looks for texts in all files of the server, which should have ended.
    pub fn assert_no_trace_of(&self, texts: &[&str]) {
        let files = self.data_files();
        assert!(files.len() > 10, "{files:?}");
        let patterns: Vec<Pattern> = texts.iter().flat_map(|t| Pattern::of_text(t)).collect();
        for file in &files {
            let found = find_all(&patterns, &written_in(file));
            assert!(found.is_empty(), "in {}: {found:?}", file.display());
        }
    }

    /// Starts it and waits until it answers.
    pub(crate) fn launch(&mut self) {
        // A port may be taken between its choice and the server's start.
        for _ in 0..3 {
            if self.port == 0 {
                self.port = free_port();
            }
            let mut child = self.command().spawn().expect("the server's program starts");
            let start = Instant::now();
            loop {
                if child
                    .try_wait()
                    .expect("the server can be waited for")
                    .is_some()
                {
                    break;
                }
                if let Ok(mut session) = Session::try_open(self.port, "root", "", None)
                    && session.text("SELECT 1").is_ok()
                {
                    self.child = Some(child);
                    return;
                }
                if start.elapsed() > Duration::from_secs(90) {
                    let _ = child.kill();
                    let _ = child.wait();
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            self.port = 0;
        }
        let log = fs::read_to_string(self.data_dir().join("error.log")).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(20).collect();
        panic!(
            "{} does not start:\n{}",
            self.kind.name(),
            tail.into_iter().rev().collect::<Vec<_>>().join("\n")
        );
    }

    /// The certificate of the authority that signed the server's, where it offers TLS and has one.
    pub fn authority(&self) -> Option<PathBuf> {
        let path = self.data_dir().join("ca.pem");
        (self.options.tls && path.exists()).then_some(path)
    }

    fn command(&self) -> Command {
        let data = self.data_dir();
        let mut command = match &self.options.hosts {
            None => tied_command(self.kind.server_program()),
            Some(hosts) => {
                let file = self.folder.path().join("hosts");
                fs::write(&file, hosts).expect("a file of hosts");
                let mut command = tied_command("unshare");
                command.args(["--mount", "sh", "-c"]);
                command.arg("mount --bind \"$0\" /etc/hosts && exec \"$@\"");
                command.arg(file).arg(self.kind.server_program());
                command
            }
        };
        command.arg("--no-defaults");
        user_option(&mut command);
        let option = |name: &str, value: &dyn AsRef<OsStr>| {
            let mut text = std::ffi::OsString::from(format!("--{name}="));
            text.push(value.as_ref());
            text
        };
        command.arg(option("datadir", &data));
        command.arg(option("socket", &self.socket()));
        command.arg(option("pid-file", &self.folder.path().join("pid")));
        command.arg(option("log-error", &data.join("error.log")));
        command.arg(option("tmpdir", &self.folder.path()));
        command.arg(option("init-file", &data.with_file_name("accounts.sql")));
        command.arg(format!("--port={}", self.port));
        command.args(["--bind-address=127.0.0.1", "--max-connections=500"]);
        // MySQL forgets hosts for good once it was told, even if it is told otherwise later.
        if self.options.hosts.is_none() {
            command.arg("--skip-name-resolve");
        }
        command.args(["--max-allowed-packet=64M", "--secure-file-priv="]);
        let options = &self.options;
        command.arg(format!(
            "--innodb-flush-log-at-trx-commit={}",
            options.flush_log_at_commit
        ));
        if options.general_log {
            command.args(["--general-log=ON", "--general-log-file=general.log"]);
        }
        if options.slow_log {
            command.args([
                "--slow-query-log=ON",
                "--slow-query-log-file=slow.log",
                "--long-query-time=0",
            ]);
        }
        match options.binlog {
            Some(format) => {
                command.args(["--log-bin=binlog", "--server-id=1", "--sync-binlog=0"]);
                command.arg(match format {
                    Binlog::Row => "--binlog-format=ROW",
                    Binlog::Statement => "--binlog-format=STATEMENT",
                });
            }
            None if self.kind == Kind::MySql => {
                command.arg("--skip-log-bin");
            }
            None => {}
        }
        if options.performance_schema {
            command.args([
                "--performance-schema=ON",
                "--performance-schema-consumer-events-statements-history=ON",
            ]);
            command.arg("--performance-schema-consumer-events-statements-history-long=ON");
            command.args(["--performance-schema-max-sql-text-length=16384"]);
            command.args([
                "--performance-schema-max-digest-length=16384",
                "--max-digest-length=16384",
            ]);
        }
        match self.kind {
            Kind::MariaDb => {
                command.arg("--plugin-load-add=auth_ed25519");
                if options.tls {
                    command.arg(option("ssl-cert", &data.join("server-cert.pem")));
                    command.arg(option("ssl-key", &data.join("server-key.pem")));
                }
            }
            Kind::MySql => {
                command.args(["--mysqlx=OFF", "--innodb-redo-log-capacity=64M"]);
                if !options.performance_schema {
                    // It stays on, as for users. A server fills its tables with zeros when it
                    // starts: for the few sessions of a test that took a third of the time.
                    command.args(SMALL_PERFORMANCE_SCHEMA);
                }
                if !options.tls {
                    command.arg("--tls-version=");
                }
            }
        }
        if options.hosts.is_some() {
            command.arg("--performance-schema=ON");
            command.arg("--bind-address=0.0.0.0");
        }
        command.args(&options.extra);
        command.envs(options.environment.iter().cloned());
        fs::write(
            data.with_file_name("accounts.sql"),
            self.kind.account_statements(options.quiet_accounts),
        )
        .expect("accounts.sql");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

/// Of a test's few sessions, fewer things are remembered than by default.
const SMALL_PERFORMANCE_SCHEMA: [&str; 7] = [
    "--performance-schema-digests-size=200",
    "--performance-schema-events-statements-history-long-size=100",
    "--performance-schema-error-size=0",
    "--performance-schema-accounts-size=10",
    "--performance-schema-hosts-size=10",
    "--performance-schema-users-size=10",
    "--performance-schema-max-table-instances=400",
];

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((topology, others)) = self.others.take()
            && !std::thread::panicking()
            && self.is_running()
        {
            let nodes: Vec<&Server> = std::iter::once(&*self).chain(&others).collect();
            same_tables(topology, &nodes);
        }
        self.kill9();
    }
}

/// Both servers refuse to run as root unless told so.
fn user_option(command: &mut Command) {
    if rustix::process::geteuid().is_root() {
        command.arg("--user=root");
    }
}

/// A folder for a server, in memory where there is enough: servers wait for the disk more than they
/// compute. A Unix socket's path is limited to 108 bytes, so it is as near to the root as possible.
fn folder() -> TempDir {
    const ENOUGH_KIB: u64 = 8 << 20;
    const IN_MEMORY: &str = "/dev/shm";
    static HOME: LazyLock<&str> = LazyLock::new(|| {
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let available = memory.lines().find_map(|line| {
            let kib = line
                .strip_prefix("MemAvailable:")?
                .split_whitespace()
                .next()?;
            kib.parse::<u64>().ok()
        });
        let room = rustix::fs::statvfs(IN_MEMORY).map_or(0, |s| s.f_bavail * s.f_frsize / 1024);
        match available.unwrap_or(0).min(room) {
            enough if enough >= ENOUGH_KIB => IN_MEMORY,
            _ => "/tmp",
        }
    });
    tempfile::Builder::new()
        .prefix("os-")
        .tempdir_in(*HOME)
        .expect("a temporary folder")
}

/// The version of the server's program, in letters of file names.
fn version_of(kind: Kind) -> String {
    let said = output(Command::new(kind.server_program()).args(["--no-defaults", "--version"]));
    said.split_whitespace()
        .skip_while(|word| *word != "Ver")
        .nth(1)
        .unwrap_or("unknown")
        .chars()
        .map(|c| match c {
            '.' => c,
            _ if c.is_ascii_alphanumeric() => c,
            _ => '-',
        })
        .collect()
}

/// An initialised data directory, made once and kept with the build's files.
pub(crate) fn template(kind: Kind) -> PathBuf {
    static MADE: Mutex<Vec<(Kind, PathBuf)>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((_, template)) = made.iter().find(|(known, _)| *known == kind) {
        return template.clone();
    }
    let template = make_template(kind);
    made.push((kind, template.clone()));
    template
}

fn make_template(kind: Kind) -> PathBuf {
    let version = version_of(kind);
    let home = lasting_folder();
    let template = home.join(format!("{}-{version}", kind.name()));
    if template.exists() {
        return template;
    }
    fs::create_dir_all(&home).expect("the build's temporary folder");
    // Another test program may do the same at the same time: both make one, the first rename wins.
    let making = tempfile::Builder::new()
        .prefix("tpl")
        .tempdir_in(&home)
        .expect("a temporary folder");
    let data = making.path().join("data");
    let mut command;
    match kind {
        Kind::MariaDb => {
            command = Command::new("mariadb-install-db");
            command.args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ]);
            command.arg("--innodb-log-file-size=16M");
        }
        Kind::MySql => {
            command = Command::new(kind.server_program());
            command.args([
                "--no-defaults",
                "--initialize-insecure",
                "--innodb-redo-log-capacity=64M",
            ]);
        }
    }
    command.arg(format!("--datadir={}", data.display()));
    // MariaDB removes the temporary files of another server in the same folder when it starts
    command.env("TMPDIR", making.path());
    user_option(&mut command);
    output(&mut command);
    let sparse = making.path().join("sparse");
    copy(&data, &sparse);
    let data = sparse;
    if kind == Kind::MariaDb {
        // MySQL makes a certificate of its own.
        let mut command = Command::new("openssl");
        command.args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "3650",
            "-subj",
            "/CN=localhost",
        ]);
        command.arg("-keyout").arg(data.join("server-key.pem"));
        command.arg("-out").arg(data.join("server-cert.pem"));
        output(&mut command);
    }
    if fs::rename(&data, &template).is_err() {
        assert!(
            template.exists(),
            "cannot keep the initialised data directory in {}",
            home.display()
        );
    }
    template
}

fn output(command: &mut Command) -> String {
    let result = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&result.stdout).into_owned();
    assert!(
        result.status.success(),
        "{command:?}:\n{text}\n{}",
        String::from_utf8_lossy(&result.stderr)
    );
    text
}

/// Copies a folder; zeros become holes, as most of a new server's logs are.
pub(crate) fn copy(from: &Path, to: &Path) {
    output(
        Command::new("cp")
            .args(["-a", "--reflink=auto", "--sparse=always", "--"])
            .args([from, to]),
    );
}

fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect_files(&entry.path(), files),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
}
