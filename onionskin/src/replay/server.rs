//! The server of a restored directory.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use onionskin_backup::settings::{noted, options};
use onionskin_rowstream::client::{Address, Client, ConnectOptions};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::{staging::WorkFolder, tools::path};
use crate::{
    error::CommandError,
    private::{Family, ServerProgram, without_ours},
    tied,
};

/// How often it is looked after.
const LOOK: Duration = Duration::from_millis(50);

/// The server of the restored directory, while it is being written to.
pub struct Server {
    child: Child,
    /// The only way to it.
    pub socket: PathBuf,
}

impl Server {
    /// Starts it and waits until it answers. `needed` are settings without which it cannot read the
    /// files.
    pub fn start(
        program: &ServerProgram,
        datadir: &Path,
        folder: &WorkFolder,
        needed: &BTreeMap<String, String>,
    ) -> Result<Self, CommandError> {
        let failed =
            |what: String| CommandError::Replay(format!("{}: {what}", program.path.display()));
        let socket = folder.short().join("s");
        let log = folder.short().join("log");
        // Absolute, because a server changes into it.
        let datadir = datadir
            .canonicalize()
            .map_err(|error| failed(error.to_string()))?;
        let mut command = tied::command(&program.path);
        command
            .arg("--no-defaults")
            .arg(path("datadir", &datadir))
            .arg(path("socket", &socket))
            .arg(path("pid-file", &folder.short().join("pid")))
            .arg(path("tmpdir", folder.files()))
            // The default of MySQL is a folder of an installed server.
            .arg(path("secure-file-priv", folder.files()));
        command.args([
            "--skip-networking",
            "--skip-grant-tables",
            "--skip-log-bin",
            "--event-scheduler=OFF",
            "--max-allowed-packet=1G",
            // Files of LOAD DATA come from the client, through the relay.
            "--local-infile=ON",
            // What it runs was written by others: tables stay in the data directory.
            "--loose-skip-symbolic-links",
        ]);
        if !has_manifest(&program.path) {
            // No plugins, and no functions in libraries.
            let plugins = folder.short().join("plugins");
            fs::create_dir(&plugins).map_err(|error| failed(error.to_string()))?;
            command.arg(path("plugin-dir", &plugins));
        }
        command.args(noted(&datadir, &NOTED).map_err(|error| failed(error.to_string()))?);
        command.args(options(needed).map_err(|error| failed(error.to_string()))?);
        match program.family {
            Family::MariaDb => {
                command.arg("--skip-slave-start");
            }
            Family::MySql => {
                command.args(["--skip-replica-start", "--mysqlx=OFF"]);
                // Takes transactions with a GTID and those without, as they come: the server may
                // have changed its mode, and did before it was switched. What it has logged it has
                // found consistent enough.
                command.args([
                    "--gtid-mode=ON_PERMISSIVE",
                    "--enforce-gtid-consistency=OFF",
                ]);
            }
        }
        if geteuid().is_root() {
            command.arg("--user=root");
        }
        without_ours(&mut command);
        let file = fs::File::create(&log).map_err(|error| failed(error.to_string()))?;
        let errors = file
            .try_clone()
            .map_err(|error| failed(error.to_string()))?;
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(file).stderr(errors);
        let child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let mut server = Self { child, socket };
        let login = ConnectOptions {
            address: Address::Unix(server.socket.clone()),
            user: "root".into(),
            password: String::new(),
            tls: None,
            trust: Default::default(),
            identity: None,
        };
        // Recovery may take its time; the server's end does not.
        while Client::connect(&login).is_err() {
            if let Ok(Some(status)) = server.child.try_wait() {
                let said = fs::read_to_string(&log).unwrap_or_default();
                let errors: Vec<&str> =
                    said.lines().filter(|line| line.contains("ERROR")).collect();
                // The very last one says only that it gives up.
                let errors = match errors.len() {
                    0 => "it says nothing".to_owned(),
                    count => errors[count.saturating_sub(3)..].join("; "),
                };
                return Err(failed(format!(
                    "does not start on the restored directory ({status}): {errors}"
                )));
            }
            thread::sleep(LOOK);
        }
        Ok(server)
    }

    /// Asks it to end, and waits for that: its buffers may be large.
    pub fn stop(mut self) -> Result<(), CommandError> {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(CommandError::Replay(format!(
                "the server on the restored directory ended with {status}"
            ))),
            Err(source) => Err(CommandError::System {
                doing: "waiting for the server",
                source,
            }),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` there is nothing left to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Settings without which no server reads the files, as mariadb-backup leaves them beside the data.
const NOTED: [&str; 4] = [
    "innodb_page_size",
    "innodb_data_file_path",
    "innodb_undo_tablespaces",
    "innodb_checksum_algorithm",
];

/// Whether components are to be loaded, as whoever installed the server says: a keyring, without
/// which encrypted data cannot be read.
fn has_manifest(program: &Path) -> bool {
    program.with_file_name("mysqld.my").exists()
}
