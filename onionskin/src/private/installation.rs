//! The folder of a private server: made, initialised on the first start, and nobody else's.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, lchown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock},
    process::{Pid, Signal, kill_process, kill_process_group, test_kill_process},
};

use onionskin_backup::environment::without_ours;

use super::{
    PrivateError,
    account::ServerUser,
    memory::Values,
    program::{Family, ServerProgram},
};
use crate::{termination::Termination, tied};

/// The longest name of a Unix socket: `sun_path` has 108 bytes and ends with zero.
const SOCKET_PATH_MAX: usize = 107;
/// How long a server of an earlier run may take to write its buffers and end.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether the tool that makes a data directory has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Which server is wanted.
pub(super) enum Wanted {
    /// Any, or that of the data.
    Any,
    /// One of this family.
    Family(Family),
    /// A scratch engine, by this program.
    Scratch(ServerProgram),
    /// The same, in a folder that is removed with it.
    Own(ServerProgram),
}

/// A private server that is ready to be started. Holds the folder's lock.
pub struct Installation {
    pub(super) folder: PathBuf,
    pub(super) program: ServerProgram,
    pub(super) user: Option<ServerUser>,
    /// Behind our own options.
    pub(super) more_options: Vec<String>,
    /// Of a scratch engine: where its temporary tables lie.
    values: Option<Values>,
    /// The folder is removed in the end.
    ends_with_us: bool,
    lock: File,
}

impl Installation {
    /// Makes the folder and its data if they are missing; ends a server that an earlier run left
    /// behind.
    pub fn open(folder: &Path, termination: &Termination) -> Result<Self, PrivateError> {
        Self::open_as(Wanted::Any, folder, termination)
    }

    /// A scratch engine in the folder `scratch` of another server's: the same program, its
    /// temporary tables in memory.
    pub fn open_scratch(beside: &Self, termination: &Termination) -> Result<Self, PrivateError> {
        let folder = beside.folder.join("scratch");
        let data = data_in(&folder);
        if Family::of_data(&data).is_some_and(|family| family != beside.program.family) {
            // nothing in it is worth keeping
            fs::remove_dir_all(&data).map_err(at(&data))?;
        }
        let wanted = Wanted::Scratch(beside.program.clone());
        Self::open_as(wanted, &folder, termination)
    }

    /// A scratch engine in a new folder, which is removed when the installation is dropped.
    pub(super) fn open_own(
        program: ServerProgram,
        folder: &Path,
        termination: &Termination,
    ) -> Result<Self, PrivateError> {
        Self::open_as(Wanted::Own(program), folder, termination)
    }

    /// The same for what is wanted.
    pub(super) fn open_as(
        wanted: Wanted,
        folder: &Path,
        termination: &Termination,
    ) -> Result<Self, PrivateError> {
        let first = fs::symlink_metadata(folder).is_err();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(at(folder))?;
        let folder = folder.canonicalize().map_err(at(folder))?;
        let socket = socket_in(&folder);
        let length = socket.as_os_str().as_bytes().len();
        if length > SOCKET_PATH_MAX {
            if first {
                // Only if it is empty.
                let _ = fs::remove_dir(&folder);
            }
            return Err(PrivateError::SocketPath { socket, length });
        }
        let is_scratch = matches!(wanted, Wanted::Scratch(_) | Wanted::Own(_));
        let ends_with_us = matches!(wanted, Wanted::Own(_));
        let program = match wanted {
            Wanted::Any => ServerProgram::find(&data_in(&folder))?,
            Wanted::Family(family) => ServerProgram::of_family(family)?,
            Wanted::Scratch(program) | Wanted::Own(program) => program,
        };
        let user = ServerUser::choose(&folder, &server_in(&folder))?;
        let mut installation = Self {
            lock: lock(&folder)?,
            folder,
            program,
            user,
            more_options: Vec::new(),
            values: None,
            ends_with_us,
        };
        end_leftover(&installation.folder)?;
        installation.make_folders()?;
        if is_scratch {
            installation.make_values()?;
        }
        installation.initialise(termination)?;
        Ok(installation)
    }

    /// Makes everything anew for a scratch engine that does not start any more, in the place where
    /// it was: nothing in it is worth keeping.
    pub(super) fn make_anew(&mut self, termination: &Termination) -> Result<(), PrivateError> {
        let server = server_in(&self.folder);
        match fs::remove_dir_all(&server) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(at(&server)(error));
            }
            _ => {}
        }
        if fs::symlink_metadata(&self.folder).is_err() {
            // somebody has removed it, and with it the file that is locked
            let mut folder = DirBuilder::new();
            let made = folder.mode(0o700).create(&self.folder);
            made.map_err(at(&self.folder))?;
            self.lock = lock(&self.folder)?;
        }
        self.make_folders()?;
        self.make_values()?;
        self.initialise(termination)
    }

    /// Whether it is a scratch engine.
    pub(super) fn is_scratch(&self) -> bool {
        self.values.is_some()
    }

    fn make_values(&mut self) -> Result<(), PrivateError> {
        // first the ones before: they may be in the same place
        self.values.take();
        self.values = Some(Values::make(&self.folder, self.user.as_ref())?);
        Ok(())
    }

    /// Which kind of server it is.
    pub fn family(&self) -> Family {
        self.program.family
    }

    /// With further options behind our own.
    pub fn with_options(mut self, options: &[&str]) -> Self {
        let options = options.iter().map(|option| (*option).to_owned());
        self.more_options.extend(options);
        self
    }

    /// The server's socket, absolute.
    pub fn socket(&self) -> PathBuf {
        socket_in(&self.folder)
    }

    /// Where the server stores everything, absolute.
    pub fn data(&self) -> PathBuf {
        data_in(&self.folder)
    }

    /// Whether there is a data directory in a folder already.
    pub fn is_initialised(folder: &Path) -> bool {
        data_in(folder).exists()
    }

    /// The socket of the server in a folder that exists, absolute.
    pub fn socket_of(folder: &Path) -> Result<PathBuf, PrivateError> {
        folder
            .canonicalize()
            .map(|folder| socket_in(&folder))
            .map_err(at(folder))
    }

    /// What it is called in messages.
    pub fn what(&self) -> &'static str {
        match self.values {
            Some(_) => "the scratch engine",
            None => "the private server",
        }
    }

    /// What the server says goes here. A scratch engine that crashes says which statement it ran,
    /// values and all.
    pub fn log(&self) -> PathBuf {
        match &self.values {
            Some(values) => values.log(),
            None => self.folder.join("server.log"),
        }
    }

    /// Starts the server. To be called by a thread that lives as long as the server should: see
    /// [`tied::command`].
    pub fn spawn(&self) -> Result<Child, PrivateError> {
        let server = server_in(&self.folder);
        // Opened here and not by the server, whose user could put a link to another file in its
        // place.
        let log = self.open_log()?;
        let mut command = tied::command(&self.program.path);
        command.args(self.options());
        // A group of its own: Ctrl-C on the terminal is for the proxy, which stops the server after
        // its sessions.
        command.process_group(0).current_dir(&server);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(at(&self.log()))?)
            .stderr(log);
        without_ours(&mut command);
        let child = self.run_as_user(&mut command, Command::spawn)?;
        let pid_file = self.pid_file();
        // Without the file, the server still ends with this process.
        if let Err(error) = fs::write(&pid_file, child.id().to_string()) {
            tracing::warn!("{}: {error}", pid_file.display());
        }
        Ok(child)
    }

    /// The server has ended.
    pub fn ended(&self) {
        if let Some(values) = &self.values {
            values.empty();
        }
        let _ = fs::remove_file(self.pid_file());
    }

    fn pid_file(&self) -> PathBuf {
        pid_file_in(&self.folder)
    }

    fn open_log(&self) -> Result<File, PrivateError> {
        OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(self.log())
            .map_err(at(&self.log()))
    }

    /// What is the same for both families, and what is not.
    fn options(&self) -> Vec<String> {
        let server = server_in(&self.folder);
        let path = |option: &str, path: &Path| format!("--{option}={}", path.display());
        let mut options = vec![
            // Must be the first. The system's configuration is that of another server.
            "--no-defaults".into(),
            path("datadir", &self.data()),
            path("socket", &self.socket()),
            path("pid-file", &server.join("pid")),
            path(
                "tmpdir",
                &match &self.values {
                    Some(values) => values.tables(),
                    None => server.join("tmp"),
                },
            ),
            path("secure-file-priv", &server.join("files")),
            "--skip-networking".into(),
            "--character-set-server=utf8mb4".into(),
            // As many as the proxy's clients, if the limit of open files allows.
            "--max-connections=4000".into(),
        ];
        match self.program.family {
            // Newer versions have another default, whose order the proxy does not know.
            Family::MariaDb => options.push("--collation-server=utf8mb4_general_ci".into()),
            // There are no replicas, and every commit would wait for a second file.
            Family::MySql => options.extend(["--mysqlx=OFF".into(), "--skip-log-bin".into()]),
        }
        options.extend_from_slice(&self.more_options);
        if let Some(values) = &self.values {
            options.extend(self.scratch_options(values));
        }
        options
    }

    /// For a scratch engine: logs of InnoDB's that take little memory, already when the data are
    /// made.
    fn small_logs(&self) -> Option<&'static str> {
        self.values.as_ref()?;
        Some(match self.program.family {
            Family::MariaDb => "--innodb-log-file-size=8M",
            Family::MySql => "--innodb-redo-log-capacity=16M",
        })
    }

    /// What keeps the values of a scratch engine in memory, and out of logs.
    fn scratch_options(&self, values: &Values) -> Vec<String> {
        let mut options: Vec<String> = [
            "--skip-log-bin",
            "--performance-schema=OFF",
            "--general-log=OFF",
            "--slow-query-log=OFF",
            "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=64M",
            "--max-allowed-packet=1G",
        ]
        .map(String::from)
        .to_vec();
        options.extend(self.small_logs().map(String::from));
        if self.program.family == Family::MySql {
            // its temporary tables are InnoDB's, with files of their own, and undo in another
            let tablespaces = values.tablespaces();
            options.push(format!(
                "--innodb-temp-tablespaces-dir={}",
                tablespaces.display()
            ));
            // undo of temporary tables; the name counts from the data directory
            let up = "../".repeat(self.data().components().count() - 1);
            let tables = values.tables();
            let below = tables.strip_prefix("/").unwrap_or(&tables);
            options.push(format!(
                "--innodb-temp-data-file-path={up}{}/ibtmp1:12M:autoextend",
                below.display()
            ));
            // in memory, too, whatever the temporary files' place
            options.push("--temptable-max-mmap=0".into());
            // files of clients are read there
            options.push("--local-infile=ON".into());
        }
        options
    }

    /// The folders that the server writes to.
    fn make_folders(&self) -> Result<(), PrivateError> {
        let server = server_in(&self.folder);
        if let Some(user) = &self.user {
            // Others may pass through to what is theirs; they cannot list it.
            set_mode(&self.folder, 0o711)?;
            tracing::debug!("the private server runs as {}", user.name);
        }
        for folder in [&server, &server.join("files"), &server.join("tmp")] {
            match DirBuilder::new().mode(0o700).create(folder) {
                Ok(()) => {
                    if let Some(user) = &self.user {
                        lchown(folder, Some(user.uid), Some(user.gid)).map_err(at(folder))?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(at(folder)(error)),
            }
        }
        Ok(())
    }

    /// Makes the data directory under another name first, so that one that is half made is never
    /// taken for whole.
    fn initialise(&self, termination: &Termination) -> Result<(), PrivateError> {
        let data = self.data();
        if data.exists() {
            return Ok(());
        }
        tracing::info!(
            "first start: making a {} data directory in {}",
            self.program.family,
            data.display()
        );
        let server = server_in(&self.folder);
        let new = server.join("data.new");
        match fs::remove_dir_all(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&new)(error)),
            _ => {}
        }
        let new_data = format!("--datadir={}", new.display());
        let (program, mut command) = match self.program.family {
            Family::MariaDb => {
                let (installer, base) = self.program.installer()?;
                let mut command = tied::command(&installer);
                command.args(["--no-defaults", &new_data, "--skip-test-db"]);
                command.arg("--auth-root-authentication-method=normal");
                // this machine's own name may be unknown to it
                command.arg("--force");
                if let Some(base) = base {
                    command.arg(format!("--basedir={}", base.display()));
                }
                (installer, command)
            }
            Family::MySql => {
                let mut command = tied::command(&self.program.path);
                command.args(["--no-defaults", "--initialize-insecure", &new_data]);
                (self.program.path.clone(), command)
            }
        };
        // servers that start remove temporary tables that they find, those of others in /tmp as
        // well
        command.env("TMPDIR", server.join("tmp"));
        without_ours(&mut command);
        command.args(self.small_logs());
        command.current_dir(&server).stdin(Stdio::null());
        let (succeeded, said) = self.run_to_its_end(&mut command, termination)?;
        if !succeeded {
            return Err(PrivateError::Initialise {
                data: new,
                program,
                said: last_lines(&said),
            });
        }
        fs::rename(&new, &data).map_err(at(&data))
    }

    /// Runs a command as the server's user until it ends, or is not wanted any more. Returns
    /// whether it succeeded, and what it said.
    fn run_to_its_end(
        &self,
        command: &mut Command,
        termination: &Termination,
    ) -> Result<(bool, String), PrivateError> {
        let system = at(&self.program.path);
        // a read-only root has no place for it in /tmp
        let mut said = tempfile::tempfile_in(&self.folder).map_err(at(&self.folder))?;
        command.stdout(said.try_clone().map_err(&system)?);
        command.stderr(said.try_clone().map_err(&system)?);
        // the tool is a script, and starts others
        command.process_group(0);
        let mut child = self.run_as_user(command, Command::spawn)?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(&system)? {
                break status;
            }
            if termination.requested() {
                // Not waited for yet, so the number cannot be that of another group.
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                let _ = child.wait();
                return Err(PrivateError::Interrupted);
            }
            thread::sleep(LOOK);
        };
        let mut text = Vec::new();
        let read = said
            .seek(SeekFrom::Start(0))
            .and_then(|_| said.read_to_end(&mut text));
        read.map_err(&system)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok((status.success(), text))
    }

    /// Runs a command as the server's user.
    fn run_as_user<T>(
        &self,
        command: &mut Command,
        run: impl FnOnce(&mut Command) -> io::Result<T>,
    ) -> Result<T, PrivateError> {
        run(ServerUser::applied_to(self.user.as_ref(), command)).map_err(|source| {
            match (&self.user, source.kind()) {
                // It is this user already that enters the folder and executes the program.
                (Some(user), io::ErrorKind::PermissionDenied) => PrivateError::Unreachable {
                    user: user.name.clone(),
                    folder: self.folder.clone(),
                    program: self.program.path.clone(),
                },
                _ => at(&self.program.path)(source),
            }
        })
    }
}

/// Ends the server that an earlier run has left in a folder, if there is one: its proxy is gone,
/// for we have the lock.
pub(super) fn end_leftover(folder: &Path) -> Result<(), PrivateError> {
    let Some(pid) = leftover(folder) else {
        return Ok(());
    };
    tracing::warn!("a server of an earlier run is still there, ending it");
    for signal in [Signal::TERM, Signal::KILL] {
        // It may end by itself meanwhile.
        let _ = kill_process(pid, signal);
        let start = Instant::now();
        while leftover(folder).is_some() {
            if start.elapsed() > PATIENCE {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
    match leftover(folder) {
        Some(pid) => Err(PrivateError::StillRunning {
            pid: pid.as_raw_pid(),
            data: data_in(folder),
        }),
        None => Ok(()),
    }
}

/// The process that the pid file names, if it is a server on the data of this folder.
fn leftover(folder: &Path) -> Option<Pid> {
    let pid = fs::read_to_string(pid_file_in(folder)).ok()?;
    let pid = Pid::from_raw(pid.trim().parse().ok()?)?;
    test_kill_process(pid).ok()?;
    // The number may have been given to another process since.
    let command_line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).ok()?;
    let ours = format!("--datadir={}", data_in(folder).display());
    command_line
        .split(|byte| *byte == 0)
        .any(|argument| argument == ours.as_bytes())
        .then_some(pid)
}

impl Drop for Installation {
    fn drop(&mut self) {
        self.values.take();
        if self.ends_with_us {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

pub(super) fn server_in(folder: &Path) -> PathBuf {
    folder.join("server")
}

pub(super) fn data_in(folder: &Path) -> PathBuf {
    server_in(folder).join("data")
}

fn pid_file_in(folder: &Path) -> PathBuf {
    folder.join("server.pid")
}

fn socket_in(folder: &Path) -> PathBuf {
    server_in(folder).join("mysql.sock")
}

/// Held until the program ends, however it ends.
pub(super) fn lock(folder: &Path) -> Result<File, PrivateError> {
    let path = folder.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(at(&path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(PrivateError::InUse(folder.to_owned())),
        Err(error) => Err(at(&path)(error.into())),
    }
}

pub(super) fn set_mode(path: &Path, mode: u32) -> Result<(), PrivateError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(at(path))
}

/// Characters of a line that are shown: a statement in it can be long.
const LINE: usize = 300;

/// What a server or its installer said last; its errors, if it marked them.
pub fn last_lines(text: &str) -> String {
    let errors: Vec<&str> = text
        .lines()
        .filter(|line| line.to_uppercase().contains("ERROR"))
        .collect();
    let lines: Vec<&str> = match errors.is_empty() {
        true => text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect(),
        false => errors,
    };
    lines[lines.len().saturating_sub(8)..]
        .iter()
        .map(|line| match line.char_indices().nth(LINE) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => (*line).to_owned(),
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Says which file an error is about.
pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> PrivateError {
    move |source| PrivateError::System {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_path_that_is_too_long_is_refused_with_the_way_out() {
        let outer = tempfile::tempdir().expect("a folder");
        let folder = outer.path().join("x".repeat(120));
        let error = Installation::open(&folder, &Termination::default())
            .err()
            .expect("too long");
        assert!(
            matches!(error, PrivateError::SocketPath { length, .. } if length > SOCKET_PATH_MAX)
        );
        assert!(error.to_string().contains("shorter --private folder"));
        assert!(!folder.exists(), "nothing is left behind");
    }

    #[test]
    fn a_folder_has_one_user() {
        let folder = tempfile::tempdir().expect("a folder");
        let held = lock(folder.path()).expect("free");
        assert!(matches!(lock(folder.path()), Err(PrivateError::InUse(_))));
        drop(held);
        lock(folder.path()).expect("free again");
    }

    #[test]
    fn marked_errors_are_what_is_shown() {
        assert_eq!(
            last_lines("note\n[ERROR] a\nnote\n[ERROR] b\nbye"),
            "[ERROR] a\n[ERROR] b"
        );
        assert_eq!(last_lines("\none\n\ntwo\n"), "one\ntwo");
        assert_eq!(last_lines(&"é".repeat(400)).chars().count(), LINE + 1);
    }
}
