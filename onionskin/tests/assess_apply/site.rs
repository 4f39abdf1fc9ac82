//! A server with files of options of its own, which can be restarted, and a writer at it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use onionskin_rowstream::client::{Address, Client, ConnectOptions};
use onionskin_testkit::*;
use tempfile::TempDir;

/// How long a server, or what it does, is waited for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server as an administrator has it: with a file of options, and a command that restarts it.
pub struct Site {
    pub kind: Kind,
    folder: TempDir,
}

impl Site {
    /// Starts it; nothing where the server could not be installed.
    pub fn start(kind: Kind) -> Option<Site> {
        let folder = tempfile::Builder::new()
            .prefix("os-ap-")
            .tempdir_in(match fs::metadata("/dev/shm") {
                Ok(_) => "/dev/shm",
                Err(_) => "/tmp",
            })
            .expect("a temporary folder");
        let site = Site { kind, folder };
        if !kind.make_data(&site.at("data")) {
            return None;
        }
        // Servers that are copied from one template have to differ.
        let _ = fs::remove_file(site.at("data/auto.cnf"));
        for name in ["conf.d", "bin", "plugin", "tmp"] {
            fs::create_dir(site.at(name)).expect("a folder");
        }
        site.write_options();
        site.write_scripts();
        site.run("start.sh");
        site.client();
        Some(site)
    }

    /// A path of its folder.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write_options(&self) {
        let at = |name: &str| self.at(name).display().to_string();
        let user = match rustix::process::geteuid().is_root() {
            true => "user = root\n",
            false => "",
        };
        let own: &str = match self.kind {
            Kind::MariaDb => "",
            Kind::MySql => "mysqlx = OFF\ninnodb_redo_log_capacity = 64M\n",
        };
        let text = format!(
            "[mysqld]\ndatadir = {}\nsocket = {}\npid_file = {}\nlog_error = {}\ntmpdir = {}\nskip_networking\n\
             log_bin = binlog\nserver_id = 1\nbinlog_format = ROW\nsync_binlog = 0\nsecure_file_priv =\ninnodb_flush_log_at_trx_commit = 2\n\
             {user}{own}!includedir {}\n",
            at("data"),
            at("s"),
            at("pid"),
            at("data/errors.err"),
            at("tmp"),
            at("conf.d")
        );
        fs::write(self.at("my.cnf"), text).expect("written");
    }

    fn write_scripts(&self) {
        let at = |name: &str| self.at(name).display().to_string();
        let program = self.kind.server_program().display().to_string();
        let mut arguments = format!("--defaults-file={}", at("my.cnf"));
        let mut environment = String::new();
        if self.kind == Kind::MySql {
            // A manifest lies beside the program, so both are links in a folder of the test's.
            let installed = checkout().join(".servers/mysql/usr");
            symlink(installed.join("sbin/mysqld"), self.at("bin/mysqld")).expect("a link");
            let plugins = fs::read_dir(installed.join("lib/mysql/plugin")).expect("plugins");
            for plugin in plugins.flatten() {
                let link = self.at("plugin").join(plugin.file_name());
                symlink(plugin.path(), link).expect("a link");
            }
            environment = format!("MYSQLD_PROGRAM={} ", at("bin/mysqld"));
            arguments += &format!(" --plugin-dir={}", at("plugin"));
        }
        // The limit is for a test that is killed itself.
        let start = format!(
            "{environment}setsid timeout 300 {program} {arguments} </dev/null >/dev/null 2>&1 &\n"
        );
        fs::write(self.at("start.sh"), start).expect("written");
        let restart = format!(
            "pid=$(cat {pid}) && kill $pid && while kill -0 $pid 2>/dev/null; do sleep 0.05; done\nsh {start}\n",
            pid = at("pid"),
            start = at("start.sh")
        );
        fs::write(self.at("restart.sh"), restart).expect("written");
    }

    /// Runs one of its scripts.
    pub fn run(&self, script: &str) {
        let status = Command::new("sh").arg(self.at(script)).status();
        assert!(status.expect("a shell").success());
    }

    /// A connection, if it answers.
    pub fn connect(&self, user: &str) -> Option<Client> {
        let options = ConnectOptions {
            address: Address::Unix(self.at("s")),
            user: user.into(),
            password: String::new(),
            tls: None,
            trust: Default::default(),
            identity: None,
        };
        Client::connect(&options).ok()
    }

    /// Waits until it answers.
    pub fn client(&self) -> Client {
        let begun = Instant::now();
        loop {
            if let Some(client) = self.connect("root") {
                return client;
            }
            let errors = || fs::read_to_string(self.at("data/errors.err")).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "no server: {}", errors());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Statements that must work.
    pub fn must(&self, sql: &[&str]) {
        let mut client = self.client();
        for sql in sql {
            client.run(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
    }

    /// One cell.
    pub fn text(&self, sql: &str) -> String {
        let text = self.client().query_text(sql);
        text.unwrap_or_else(|e| panic!("{sql}: {e}"))
            .unwrap_or_default()
    }

    /// `pace`: MiB a second.
    pub fn program(&self, pace: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onionskin"));
        command
            .args(["assess", "server", "--pace", pace, "--backend"])
            .arg(format!("unix:{}", self.at("s").display()))
            .args(arguments)
            .env_remove("ONIONSKIN_PASSWORD")
            // of --measure
            .env("ONIONSKIN_MYSQLD", checkout().join("scripts/mysqld97"))
            .current_dir("/")
            .stdin(Stdio::null());
        command
    }

    /// Runs the command, which must end with a code, and hands out what it says.
    pub fn ends(&self, arguments: &[&str], code: i32) -> String {
        let output = self
            .program("2000", arguments)
            .output()
            .expect("onionskin runs");
        let text = text(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }

    /// For `--restart-with`.
    pub fn restart_command(&self) -> String {
        format!("sh {}", self.at("restart.sh").display())
    }

    /// Files of the server that hold a text, once its tables are written.
    pub fn files_with(&self, what: &str) -> Vec<String> {
        let mut client = self.client();
        client
            .run("FLUSH TABLES app.t FOR EXPORT")
            .expect("written");
        let mut found = Vec::new();
        let mut folders = vec![self.at("data")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    _ => {
                        let bytes = fs::read(&path).unwrap_or_default();
                        let mut windows = bytes.windows(what.len());
                        if windows.any(|window| window == what.as_bytes()) {
                            let name = path.strip_prefix(self.at("data")).expect("below");
                            found.push(name.display().to_string());
                        }
                    }
                }
            }
        }
        client.run("UNLOCK TABLES").expect("unlocked");
        found.sort();
        found
    }

    /// Everything beside the data: files of options, manifests, keys, with their contents.
    pub fn beside(&self) -> BTreeMap<PathBuf, String> {
        let read = |path: &Path| {
            fs::read(path)
                .ok()
                .map(|b| String::from_utf8_lossy(&b).into_owned())
        };
        let mut found = BTreeMap::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                let path = entry.path();
                let kind = entry.file_type().expect("a kind");
                let is_data = path == self.at("data");
                if kind.is_dir() && !is_data {
                    folders.push(path);
                } else if kind.is_file() && !is_data {
                    let text = read(&path).expect("read");
                    found.insert(path, text);
                }
            }
        }
        for name in [
            "data/mysqld.my",
            "data/component_keyring_file.cnf",
            "data/mysqld-auto.cnf",
        ] {
            if let Some(text) = read(&self.at(name)) {
                found.insert(self.at(name), text);
            }
        }
        found
    }

    /// Files with keys.
    pub fn keys(&self) -> BTreeMap<PathBuf, String> {
        let mut found = self.beside();
        found.retain(|path, _| path.starts_with(self.at("data-keys")));
        found
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let Ok(pid) = fs::read_to_string(self.at("pid")) else {
            return;
        };
        let pid = pid.trim();
        let _ = Command::new("kill").args(["-9", pid]).status();
        let gone = || !Path::new(&format!("/proc/{pid}")).exists();
        let begun = Instant::now();
        while !gone() && begun.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Writes rows until it is told to stop, and knows which ones the server has confirmed. A server
/// that is away, or a table that is locked, is tried again.
pub struct Writer {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<u64>>,
}

impl Writer {
    /// Begins.
    pub fn start(site: &Arc<Site>) -> Writer {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, site) = (Arc::clone(&stop), Arc::clone(site));
        let thread = thread::spawn(move || {
            let mut confirmed = 0;
            let mut client = None;
            while !told.load(Ordering::Relaxed) {
                let Some(open) = client.as_mut() else {
                    client = site.connect("root");
                    thread::sleep(Duration::from_millis(5));
                    continue;
                };
                let open: &mut Client = open;
                let next = confirmed + 1;
                // Whether a row came through when the connection broke is not known: it is written
                // again.
                let sql = format!("REPLACE INTO app.t VALUES ({}, 'row {next}')", next + 1000);
                match open.run(&sql) {
                    Ok(_) => confirmed = next,
                    Err(_) => client = None,
                }
                thread::sleep(Duration::from_millis(1));
            }
            confirmed
        });
        Writer {
            stop,
            thread: Some(thread),
        }
    }

    /// How many rows the server has confirmed.
    pub fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("a writer");
        thread.join().expect("the writer")
    }
}

// A test that fails ends its server, too.
impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
