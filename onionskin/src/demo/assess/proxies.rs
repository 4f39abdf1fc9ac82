//! This program as other people start it: proxies, and a migration.

use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::super::failed;
use crate::{error::CommandError, termination::Termination, tied};

/// How often it is looked at a program.
const LOOK: Duration = Duration::from_millis(10);
/// How long a proxy may take to listen, and to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a migration of some thousand rows may take.
pub const MIGRATION: Duration = Duration::from_secs(120);

/// A program that ends with this one, whose words go into a file.
struct Started {
    child: Child,
    log: PathBuf,
}

impl Started {
    fn start(mut command: Command, log: PathBuf) -> Result<Self, CommandError> {
        let file = |source| CommandError::File {
            path: log.clone(),
            source,
        };
        let out = File::create(&log).map_err(file)?;
        let errors = out.try_clone().map_err(file)?;
        let spawned = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .spawn();
        let child = spawned.map_err(|source| CommandError::System {
            doing: "starting onionskin",
            source,
        })?;
        Ok(Self { child, log })
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits for it; one that takes too long is ended.
    fn wait(&mut self, time: Duration, termination: &Termination) -> Option<ExitStatus> {
        let until = Instant::now() + time;
        loop {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            if Instant::now() > until || termination.requested() {
                return None;
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.ended().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A proxy.
pub struct Served {
    started: Started,
    socket: PathBuf,
}

impl Served {
    /// Starts `onionskin serve` in a folder with a configuration, on a Unix socket of that name.
    /// Nobody but this user reaches the folder.
    pub fn start(
        folder: &Path,
        name: &str,
        arguments: &[&OsStr],
        termination: &Termination,
    ) -> Result<Self, CommandError> {
        let socket = folder.join(name);
        let mut command = tied::command(this_program()?);
        command
            .args(["serve", "-c"])
            .arg(folder.join(crate::home::CONFIG))
            .arg("--listen")
            .arg(format!("unix:{}", socket.display()))
            .args(arguments);
        let started = Started::start(command, folder.join(format!("{name}.log")))?;
        let mut served = Self { started, socket };
        let until = Instant::now() + PATIENCE;
        while UnixStream::connect(&served.socket).is_err() {
            let is_over = Instant::now() > until || termination.requested();
            if is_over || served.started.ended().is_some() {
                let said = served.started.said();
                return Err(failed(format!("a proxy does not listen: {said}")));
            }
            thread::sleep(LOOK);
        }
        Ok(served)
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Has it end in order.
    pub fn stop(mut self, termination: &Termination) -> Result<(), CommandError> {
        let pid = Pid::from_child(&self.started.child);
        if self.started.ended().is_none() {
            let _ = kill_process(pid, Signal::TERM);
        }
        match self.started.wait(PATIENCE, termination) {
            Some(status) if status.success() => Ok(()),
            _ => {
                let said = self.started.said();
                Err(failed(format!("a proxy does not end in order: {said}")))
            }
        }
    }
}

/// Runs a command of a report, which begins with `onionskin`, with further arguments; what it has
/// said.
pub fn run_proposed(
    folder: &Path,
    proposed: &str,
    more: &[&str],
    termination: &Termination,
) -> Result<String, CommandError> {
    let Some(arguments) = proposed.strip_prefix("onionskin ") else {
        return Err(failed(format!("{proposed} is no command of onionskin")));
    };
    // Quoted for a shell, so one reads it.
    let mut command = tied::command("sh");
    command
        .arg("-c")
        .arg(format!("exec \"$0\" {arguments} \"$@\""))
        .arg(this_program()?)
        .args(more)
        .arg("-c")
        .arg(folder.join(crate::home::CONFIG));
    let mut started = Started::start(command, folder.join("command.log"))?;
    let status = started.wait(MIGRATION, termination);
    let said = started.said();
    match status {
        Some(status) if status.success() => Ok(said),
        Some(_) => Err(failed(format!("{proposed} has failed: {said}"))),
        None if termination.requested() => Err(failed("ended by a signal")),
        None => Err(failed(format!(
            "{proposed} takes longer than {} s",
            MIGRATION.as_secs()
        ))),
    }
}

fn this_program() -> Result<PathBuf, CommandError> {
    std::env::current_exe().map_err(|source| CommandError::System {
        doing: "looking for this program",
        source,
    })
}
