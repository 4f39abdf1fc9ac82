//! A temporary server with the configuration under test.
//!
//! A data directory is initialised once for each family and copied for every server. Everything
//! lies in one temporary folder that is removed in the end. Keys for encryption at rest are set up
//! as the servers' manuals ask for it: file_key_management for MariaDB; for MySQL the component
//! keyring_file, whose manifest must lie *beside the server's program*, so the program is reached
//! through a link in the temporary folder and the installation stays untouched.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fs,
    net::TcpListener,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use mysql::OptsBuilder;
use rand::RngExt;
use tempfile::TempDir;

use super::{Address, Family, Program, Session, keys::Keys};
use crate::{
    error::BenchError,
    process::{self, Running, Stop, Tie, User, last_lines},
};

/// How long a server may take to answer.
const START: Duration = Duration::from_secs(90);
/// The benchmark's account.
const ACCOUNT: &str = "onionskin_bench";

/// Where everything is made: the temporary folder, programs, ports.
pub struct Workshop {
    folder: TempDir,
    programs: Vec<Program>,
    /// See [`Tie`].
    pub tie: Tie,
    /// See [`Stop`].
    pub stop: Stop,
    /// `onionskin` itself.
    pub onionskin: PathBuf,
    /// The port of the next server that is started, if one was asked for.
    port: Cell<Option<u16>>,
    templates: RefCell<BTreeMap<Family, PathBuf>>,
    made: Cell<u32>,
}

impl Workshop {
    /// Makes the temporary folder, as near to the root as TMPDIR allows: names of sockets are
    /// short.
    pub fn open(
        programs: Vec<Program>,
        tie: Tie,
        stop: Stop,
        onionskin: PathBuf,
        port: Option<u16>,
    ) -> Result<Self, BenchError> {
        let folder =
            tempfile::Builder::new()
                .prefix("osb-")
                .tempdir()
                .map_err(BenchError::system(
                    std::env::temp_dir().display().to_string(),
                ))?;
        // The server's user passes through; only we can list it.
        set_mode(folder.path(), 0o711)?;
        Ok(Self {
            folder,
            programs,
            tie,
            stop,
            onionskin,
            port: Cell::new(port),
            templates: RefCell::default(),
            made: Cell::new(0),
        })
    }

    /// The temporary folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A new folder in it, for us alone.
    pub fn new_folder(&self, what: &str) -> Result<PathBuf, BenchError> {
        self.made.set(self.made.get() + 1);
        let path = self.folder().join(format!("{what}{}", self.made.get()));
        fs::create_dir(&path).map_err(BenchError::system(path.display().to_string()))?;
        set_mode(&path, 0o700)?;
        Ok(path)
    }

    /// Whether servers of a family can be started.
    pub fn program(&self, family: Family) -> Option<&Program> {
        self.programs
            .iter()
            .find(|program| program.family == family)
    }

    /// Removes everything now, so that an error of the removal is seen.
    pub fn close(self) -> Result<(), BenchError> {
        let path = self.folder.path().display().to_string();
        self.folder.close().map_err(BenchError::system(path))
    }

    /// The data directory to copy.
    fn template(&self, program: &Program) -> Result<PathBuf, BenchError> {
        if let Some(template) = self.templates.borrow().get(&program.family) {
            return Ok(template.clone());
        }
        let folder = self.new_folder("template")?;
        own(&folder, program.user.as_ref())?;
        let data = folder.join("data");
        let mut command = match &program.installer {
            Some((installer, base)) => {
                let mut command = Command::new(installer);
                command.args([
                    "--no-defaults",
                    "--auth-root-authentication-method=normal",
                    // whether this machine's names are known or not
                    "--force",
                    "--skip-test-db",
                    "--innodb-log-file-size=64M",
                ]);
                if let Some(base) = base {
                    command.arg(format!("--basedir={}", base.display()));
                }
                command
            }
            None => {
                let mut command = Command::new(&program.path);
                command.args(["--no-defaults", "--initialize-insecure"]);
                command
            }
        };
        command
            .arg(format!("--datadir={}", data.display()))
            // Ours need not be one in which the server's user can write.
            .env("TMPDIR", &folder)
            .current_dir(&folder);
        become_user(&mut command, program.user.as_ref());
        let ended = process::run(&mut command, &self.stop, Duration::from_secs(180))?;
        if !ended.success {
            return Err(BenchError::ServerStart {
                family: program.family.to_string(),
                said: ended.last_words(),
            });
        }
        // Copies make a new identity; replicas with the same one are refused.
        let _ = fs::remove_file(data.join("auto.cnf"));
        self.templates
            .borrow_mut()
            .insert(program.family, data.clone());
        Ok(data)
    }

    fn take_port(&self) -> Result<(u16, bool), BenchError> {
        match self.port.take() {
            Some(port) => match TcpListener::bind(("127.0.0.1", port)) {
                Ok(_) => Ok((port, true)),
                Err(error) => Err(BenchError::Port {
                    port,
                    said: error.to_string(),
                }),
            },
            None => free_port().map(|port| (port, false)),
        }
    }
}

/// A port on 127.0.0.1 that is free at this moment, below those that the kernel gives to outgoing
/// connections.
pub fn free_port() -> Result<u16, BenchError> {
    let mut said = String::new();
    for _ in 0..200 {
        let port = rand::rng().random_range(15_000..32_000);
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => said = error.to_string(),
        }
    }
    Err(BenchError::Port { port: 15_000, said })
}

/// What distinguishes a server from the default one of the benchmark.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Configuration {
    /// More options for its command line; `{folder}` stands for a folder that the server can write
    /// to.
    pub options: Vec<String>,
    /// Set up keys for encryption at rest.
    pub keys: bool,
    /// Statements after the start.
    pub setup: Vec<String>,
}

/// A temporary server. Dropping it ends it and removes its files.
pub struct Private {
    // Ended before its folder is removed.
    running: Option<Running>,
    address: Address,
    folder: PathBuf,
    family: Family,
}

impl Private {
    /// Starts it and waits until it answers.
    pub fn start(
        workshop: &Workshop,
        family: Family,
        configuration: &Configuration,
    ) -> Result<Self, BenchError> {
        let program = workshop
            .program(family)
            .ok_or(BenchError::NoServer(family.name()))?;
        let template = workshop.template(program)?;
        let (mut port, asked_for) = workshop.take_port()?;
        let folder = workshop.new_folder("s")?;
        let password: String = (0..24)
            .map(|_| char::from(b'a' + rand::rng().random_range(0..26_u8)))
            .collect();
        let mut server = Self {
            running: None,
            address: Address {
                host: "127.0.0.1".into(),
                port,
                user: ACCOUNT.into(),
                password,
            },
            folder,
            family,
        };
        copy(&template, &server.data(), program.user.as_ref())?;
        let keyring = match configuration.keys {
            true => Keys::make(&server.folder, server.family, program)?,
            false => Keys::default(),
        };
        for path in ["files", "tmp"] {
            let path = server.folder.join(path);
            fs::create_dir(&path).map_err(BenchError::system(path.display().to_string()))?;
            own(&path, program.user.as_ref())?;
        }
        server.write_accounts(program)?;
        own(&server.folder, program.user.as_ref())?;
        // A port may be taken between its choice and the server's start.
        for attempt in 0..3 {
            match server.launch(workshop, program, configuration, &keyring) {
                Ok(()) => break,
                Err(BenchError::ServerStart { said, .. })
                    if !asked_for && attempt < 2 && said.contains("ddress already in use") =>
                {
                    port = free_port()?;
                    server.address.port = port;
                }
                Err(error) => return Err(error),
            }
        }
        let mut session = server.session()?;
        for sql in &configuration.setup {
            session.run(sql)?;
        }
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Which kind.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().map_or(0, Running::pid)
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Its Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("s")
    }

    /// A session over its Unix socket.
    pub fn session(&self) -> Result<Session, BenchError> {
        Session::open(
            OptsBuilder::new()
                .socket(Some(self.socket().to_string_lossy()))
                .user(Some(self.address.user.clone()))
                .pass(Some(self.address.password.clone())),
        )
        .map_err(|error| BenchError::Unreachable {
            server: self.socket().display().to_string(),
            said: error.to_string(),
        })
    }

    fn write_accounts(&self, program: &Program) -> Result<(), BenchError> {
        let Address { user, password, .. } = &self.address;
        let path = self.folder.join("accounts.sql");
        let text = format!(
            "CREATE USER '{user}'@'%' IDENTIFIED BY '{password}';\nGRANT ALL PRIVILEGES ON *.* TO '{user}'@'%' WITH GRANT OPTION;\n"
        );
        fs::write(&path, text).map_err(BenchError::system(path.display().to_string()))?;
        set_mode(&path, 0o600)?;
        own(&path, program.user.as_ref())
    }

    fn launch(
        &mut self,
        workshop: &Workshop,
        program: &Program,
        configuration: &Configuration,
        keys: &Keys,
    ) -> Result<(), BenchError> {
        let folder = self.folder.display().to_string();
        let mut arguments = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={folder}/data"),
            format!("--socket={folder}/s"),
            format!("--port={}", self.address.port),
            format!("--pid-file={folder}/pid"),
            format!("--tmpdir={folder}/tmp"),
            format!("--secure-file-priv={folder}/files"),
            format!("--init-file={folder}/accounts.sql"),
            "--bind-address=127.0.0.1".into(),
            "--skip-name-resolve".into(),
            "--max-connections=1200".into(),
            "--max-prepared-stmt-count=200000".into(),
            "--character-set-server=utf8mb4".into(),
            "--innodb-buffer-pool-size=256M".into(),
            "--innodb-flush-log-at-trx-commit=2".into(),
        ];
        match self.family {
            Family::MariaDb => arguments.extend([
                "--collation-server=utf8mb4_general_ci".to_owned(),
                "--innodb-log-file-size=64M".into(),
            ]),
            Family::MySql => arguments.extend([
                "--mysqlx=OFF".to_owned(),
                "--innodb-redo-log-capacity=128M".into(),
            ]),
        }
        let wants_binlog = configuration
            .options
            .iter()
            .any(|option| option.starts_with("--log-bin"));
        if self.family == Family::MySql && !wants_binlog {
            arguments.push("--skip-log-bin".into());
        }
        arguments.extend(keys.options.iter().cloned());
        arguments.extend(
            configuration
                .options
                .iter()
                .map(|option| option.replace("{folder}", &folder)),
        );
        let log = self.folder.join("server.log");
        let mut running = Running::start(
            workshop.tie,
            keys.program.as_deref().unwrap_or(&program.path),
            &arguments,
            &keys.environment,
            program.user.as_ref(),
            &log,
        )?;
        let begin = Instant::now();
        loop {
            let last_words = || {
                let text = fs::read(&log).unwrap_or_default();
                let text = String::from_utf8_lossy(&text).into_owned();
                let errors: Vec<&str> = text
                    .lines()
                    .filter(|line| line.contains("ERROR") && !line.contains("Aborting"))
                    .collect();
                match errors.is_empty() {
                    true => last_lines(&text, 3),
                    false => last_lines(&errors.join("\n"), 3),
                }
            };
            if running.ended().is_some() {
                return Err(BenchError::ServerStart {
                    family: self.family.to_string(),
                    said: last_words(),
                });
            }
            if workshop.stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(BenchError::Interrupted);
            }
            if self.session().is_ok() {
                self.running = Some(running);
                return Ok(());
            }
            if begin.elapsed() > START {
                return Err(BenchError::ServerStart {
                    family: self.family.to_string(),
                    said: format!(
                        "it does not answer within {} s; {}",
                        START.as_secs(),
                        last_words()
                    ),
                });
            }
            thread::sleep(Duration::from_millis(30));
        }
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
        // Hundreds of megabytes, which later servers may need.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(super) fn set_mode(path: &Path, mode: u32) -> Result<(), BenchError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(BenchError::system(path.display().to_string()))
}

pub(super) fn own(path: &Path, user: Option<&User>) -> Result<(), BenchError> {
    match user {
        None => Ok(()),
        Some(user) => chown(path, Some(user.uid), Some(user.gid))
            .map_err(BenchError::system(path.display().to_string())),
    }
}

fn become_user(command: &mut Command, user: Option<&User>) {
    use std::os::unix::process::CommandExt;
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
}

/// Copies a data directory.
fn copy(from: &Path, to: &Path, user: Option<&User>) -> Result<(), BenchError> {
    let at = |path: &Path| BenchError::system(path.display().to_string());
    fs::create_dir(to).map_err(at(to))?;
    set_mode(to, 0o700)?;
    own(to, user)?;
    for entry in fs::read_dir(from).map_err(at(from))? {
        let entry = entry.map_err(at(from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(at(&source))?;
        if kind.is_dir() {
            copy(&source, &target, user)?;
        } else if kind.is_file() {
            fs::copy(&source, &target).map_err(at(&target))?;
            own(&target, user)?;
        }
    }
    Ok(())
}
