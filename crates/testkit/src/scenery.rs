//! A server with rows in it, and a folder with keys for its backups.

use crate::{Binlog, Kind, Server, ServerOptions, Session, announce, checkout, onionskin_program};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A server with rows in it, and a folder with keys and a configuration for it.
pub struct Scenery {
    /// The server.
    pub server: Server,
    /// The folder.
    pub home: TempDir,
}

/// What is in it.
pub const TABLES: [&str; 4] = ["app.one", "app.two", "app.parted", "`odd-name`.`t t`"];

impl Scenery {
    /// MariaDB with the tables of [`TABLES`] and a binlog.
    pub fn build() -> Self {
        let options = ServerOptions {
            binlog: Some(Binlog::Row),
            ..ServerOptions::default()
        };
        let server = Server::start(Kind::MariaDb, options).expect("MariaDB is never skipped");
        let mut session = server.connect();
        session.must("CREATE DATABASE app");
        session.must("CREATE DATABASE `odd-name`");
        session.must("CREATE TABLE app.one (id INT PRIMARY KEY, c VARCHAR(200), KEY (c))");
        session.must("CREATE TABLE app.two (id INT PRIMARY KEY, c TEXT) ENGINE=Aria");
        session.must(
            "CREATE TABLE app.parted (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 3",
        );
        session.must("CREATE TABLE `odd-name`.`t t` (id INT PRIMARY KEY, b BLOB)");
        for table in TABLES {
            let columns = session
                .text(&format!("SHOW COLUMNS FROM {table}"))
                .expect("columns");
            let value = match columns.lines().count() {
                1 => "seq",
                _ => "seq, REPEAT(MD5(seq), 5)",
            };
            session.must(&format!(
                "INSERT INTO {table} SELECT {value} FROM mysql.seq_1_to_5000"
            ));
        }
        // Of the others the pages may still be in memory, and their rows in the redo log only.
        session.must("FLUSH TABLES app.one FOR EXPORT");
        session.must("UNLOCK TABLES");
        Self::around(server)
    }

    /// Keys and a configuration for this server.
    pub fn around(server: Server) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let scenery = Scenery { server, home };
        let backend = format!("unix:{}", scenery.server.socket().display());
        let output = scenery.onionskin(&["init", "--backend", &backend]);
        assert!(output.status.success(), "{output:?}");
        scenery
    }

    /// The program in the folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(onionskin_program());
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env_remove("ONIONSKIN_PASSPHRASE")
            .env("ONIONSKIN_MYSQLD", self.server.kind().server_program());
        command
    }

    /// Runs the program in the folder.
    pub fn onionskin(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("onionskin runs")
    }

    /// Runs it, and returns what it printed.
    pub fn must(&self, arguments: &[&str]) -> String {
        let output = self.onionskin(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Runs it; it must end with this code, and say this.
    pub fn fails(&self, arguments: &[&str], code: i32, text: &str) {
        let output = self.onionskin(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(text), "{text:?} is not in: {said}");
    }

    /// A folder with keys and a configuration that reaches the server over TCP under the name
    /// `host`, with more `settings`. Its configuration.
    pub fn over_tcp(&self, folder: &str, host: &str, settings: &str) -> String {
        let backend = format!("{host}:{}", self.server.port());
        self.must(&["init", "--dir", folder, "--backend", &backend]);
        let name = format!("{folder}/onionskin.toml");
        let path = self.home.path().join(&name);
        let text = fs::read_to_string(&path).expect("a configuration");
        fs::write(path, format!("{settings}\n{text}")).expect("written");
        name
    }

    /// Makes a backup under a configuration, which tells that it is of `server`, and removes it;
    /// or, without one, the backup must fail and leave nothing.
    pub fn backs_up(&self, config: &str, source: &str, server: Option<&str>) {
        let backup = ["backup", "-c", config, "--source", source, "--to", "sealed"];
        match server {
            Some(server) => {
                self.must(&backup);
                let said = self.must(&["verify", "-c", config, "sealed"]);
                assert!(said.contains(&format!("server    {server}")), "{said}");
                fs::remove_file(self.home.path().join("sealed")).expect("removed");
            }
            None => self.fails(&backup, 4, "onionskin: "),
        }
        assert!(!self.files().contains(&"sealed".to_owned()));
    }

    /// A PATH that begins with a folder of MySQL's own reader of binlogs and client.
    pub fn path_of_mysql(&self) -> String {
        let folder = self.home.path().join("programs");
        fs::create_dir(&folder).expect("made");
        for name in ["mysqlbinlog", "mysql"] {
            let script = folder.join(name);
            let program = checkout().join(format!("scripts/{name}97"));
            fs::write(
                &script,
                format!("#!/bin/sh\nexec {} \"$@\"\n", program.display()),
            )
            .expect("written");
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("set");
        }
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", folder.display())
    }

    /// Names in the folder besides keys and configuration.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.home.path()).expect("the folder");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("UTF-8")
            })
            .filter(|name| name != "keys.json" && name != "onionskin.toml")
            .collect();
        names.sort();
        names
    }
}

/// Of all [`TABLES`].
pub fn checksums(session: &mut Session) -> Vec<String> {
    TABLES
        .iter()
        .map(|table| {
            session
                .text(&format!("CHECKSUM TABLE {table}"))
                .expect("a checksum")
        })
        .collect()
}

/// Whether it is installed; says so loudly if not.
pub fn has_mariadb_backup() -> bool {
    let found = Command::new("mariadb-backup")
        .arg("--version")
        .output()
        .is_ok();
    if !found {
        announce(
            "backup tests ... SKIPPED: mariadb-backup is not installed; run scripts/install-deps.sh tests",
        );
    }
    found
}
