//! Sockets that listen already when the program starts: systemd's (socket activation), or those of
//! the program before.

use std::net::{TcpListener, ToSocketAddrs};
use std::os::fd::{FromRawFd, OwnedFd};

use crate::config_file::ConfigFile;
use crate::control::handover::TakeOver;
use crate::error::CommandError;

/// The first socket that systemd passes.
const FIRST: i32 = 3;
/// Sockets that systemd may pass.
const MOST: i32 = 16;

/// The sockets that this program was given.
pub enum Given {
    /// None: it binds its own.
    Nothing,
    /// systemd's, by their names: `FileDescriptorName=`.
    Systemd(Vec<(String, OwnedFd)>),
    /// Those of the program before.
    Before(TakeOver),
}

impl Given {
    /// What there is.
    pub fn find(file: &ConfigFile, takes_over: bool) -> Result<Given, CommandError> {
        if takes_over {
            let Some(path) = file.control_path() else {
                return Err(CommandError::Arguments(format!(
                    "--take-over needs control in {}: the program that runs is reached by it",
                    file.path.display()
                )));
            };
            if let Some(before) = TakeOver::begin(&path)? {
                return Ok(Given::Before(before));
            }
            tracing::info!("--take-over: no program runs on {}", path.display());
        }
        let sockets = of_systemd();
        Ok(match sockets.is_empty() {
            true => Given::Nothing,
            false => Given::Systemd(sockets),
        })
    }

    /// The socket of this name: `listen`, `admin` or `control`. systemd's that are named otherwise
    /// are for clients.
    pub fn take(&mut self, name: &'static str) -> Option<OwnedFd> {
        match self {
            Given::Nothing => None,
            Given::Before(before) => before.socket(name),
            Given::Systemd(sockets) => {
                let is_meant = |known: &str| match known {
                    "admin" | "control" => known == name,
                    _ => name == "listen",
                };
                let at = sockets.iter().position(|(known, _)| is_meant(known))?;
                Some(sockets.swap_remove(at).1)
            }
        }
    }

    /// The socket for clients, if one was given that is at this address.
    pub fn listener(&mut self, address: &str) -> Result<Option<TcpListener>, CommandError> {
        let Some(socket) = self.take("listen") else {
            return Ok(None);
        };
        let listener = TcpListener::from(socket);
        let failed = |source| CommandError::Listen {
            address: address.to_owned(),
            source,
        };
        let bound = listener.local_addr().map_err(failed)?;
        let mut wanted = address.to_socket_addrs().map_err(failed)?;
        match (wanted.any(|wanted| wanted == bound), &self) {
            (true, _) => Ok(Some(listener)),
            // a new address is one of the reasons to take over
            (false, Given::Before(_)) => Ok(None),
            (false, _) => Err(CommandError::Arguments(format!(
                "systemd listens on {bound}, and listen = \"{address}\": make ListenStream= in the socket unit and listen the same"
            ))),
        }
    }

    /// This program is ready; the one before accepts nobody when this returns.
    pub fn finish(self) -> Result<(), CommandError> {
        match self {
            Given::Before(before) => before.finish(),
            Given::Nothing | Given::Systemd(_) => Ok(()),
        }
    }
}

/// The sockets that systemd has passed to this process, and to no other.
fn of_systemd() -> Vec<(String, OwnedFd)> {
    let variable = |name: &str| std::env::var(name).ok();
    let pid: Option<u32> = variable("LISTEN_PID").and_then(|pid| pid.parse().ok());
    let count: Option<i32> = variable("LISTEN_FDS").and_then(|count| count.parse().ok());
    let (Some(pid), Some(count)) = (pid, count) else {
        return Vec::new();
    };
    if std::process::id() != pid || !(1..=MOST).contains(&count) {
        return Vec::new();
    }
    let names = variable("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':').map(str::to_owned);
    let named = (FIRST..FIRST + count).map(|number| {
        let name = names.next().unwrap_or_default();
        (name, passed(number))
    });
    let mut sockets = Vec::new();
    for (name, socket) in named {
        if let Err(error) = rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC) {
            tracing::warn!(%error, "a socket of systemd's stays open in programs that are started");
        }
        sockets.push((name, socket));
    }
    sockets
}

#[allow(unsafe_code)]
fn passed(number: i32) -> OwnedFd {
    // SAFETY: systemd says, for this very process, that the file of this number is a socket that is
    // this program's. It is taken once, before anything else has been opened under that number: the
    // number was in use when the program began.
    unsafe { OwnedFd::from_raw_fd(number) }
}
