//! Sockets that listen already when the program starts: systemd's (socket activation), or those of
//! the program before.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

use onionskin_proxy::{Bound, ListenAddress};
use rustix::net::{SocketType, sockopt};
use socket2::SockRef;

use crate::config_file::ConfigFile;
use crate::control::handover::TakeOver;
use crate::error::CommandError;

/// The name of a socket for clients.
const LISTEN: &str = "listen";
/// The first socket that systemd passes.
const FIRST: i32 = 3;
/// Sockets that systemd may pass.
const MOST: i32 = 16;

/// A socket that listened before this program.
pub struct Inherited {
    /// The socket.
    pub socket: OwnedFd,
    /// systemd has bound it: its file stays for the next start, whatever ends.
    pub is_systemds: bool,
}

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
    pub fn find(
        file: &ConfigFile,
        takes_over: bool,
        passed: Vec<(String, OwnedFd)>,
    ) -> Result<Given, CommandError> {
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
        for (name, socket) in &passed {
            must_accept(name, socket)?;
        }
        Ok(match passed.is_empty() {
            true => Given::Nothing,
            false => Given::Systemd(passed),
        })
    }

    /// A socket for `admin`, `control` or [`LISTEN`], if one was given that is where it is wanted.
    /// systemd's that are named otherwise are for clients.
    pub fn take(
        &mut self,
        purpose: &str,
        is_wanted: impl Fn(&OwnedFd) -> bool,
    ) -> Option<Inherited> {
        let is_meant = |name: &str| match name {
            "admin" | "control" => name == purpose,
            _ => purpose == LISTEN,
        };
        let is_it = |(name, socket): &(String, OwnedFd)| is_meant(name) && is_wanted(socket);
        match self {
            Given::Nothing => None,
            Given::Before(before) => before.take(is_it),
            Given::Systemd(sockets) => {
                let at = sockets.iter().position(is_it)?;
                Some(Inherited {
                    socket: sockets.swap_remove(at).1,
                    is_systemds: true,
                })
            }
        }
    }

    /// The sockets for clients that were given and are at one of these addresses, each in its
    /// address's place. One of systemd's that is somewhere else is an error.
    pub fn listeners(
        &mut self,
        addresses: &[ListenAddress],
    ) -> Result<Vec<Option<Bound>>, CommandError> {
        let mut listeners = Vec::with_capacity(addresses.len());
        for address in addresses {
            let taken = self.take(LISTEN, |socket| address.is_of(socket));
            let bound = taken.map(|it| address.take(it.socket, it.is_systemds));
            let bound = bound.transpose();
            listeners.push(bound.map_err(|source| cannot_listen(address, source))?);
        }
        if matches!(self, Given::Systemd(_))
            && let Some(Inherited { socket, .. }) = self.take(LISTEN, |_| true)
        {
            return Err(not_wanted(&socket, addresses));
        }
        Ok(listeners)
    }

    /// This program is ready; the one before accepts nobody when this returns.
    pub fn finish(self) -> Result<(), CommandError> {
        match self {
            Given::Before(before) => before.finish(),
            Given::Nothing | Given::Systemd(_) => Ok(()),
        }
    }
}

/// A socket for clients that is systemd's, at an address where this program does not listen.
fn not_wanted(socket: &OwnedFd, addresses: &[ListenAddress]) -> CommandError {
    let at = SockRef::from(socket).local_addr().ok();
    let unix = |path: &Path| format!("unix:{}", path.display());
    let at = at.and_then(|at| {
        let tcp = at.as_socket().map(|tcp| tcp.to_string());
        tcp.or_else(|| at.as_pathname().map(unix))
    });
    CommandError::Arguments(format!(
        "systemd listens on {}, and listen is {}: make ListenStream= in the socket unit and listen the same",
        at.unwrap_or_else(|| "an unknown address".into()),
        listed(addresses),
    ))
}

/// Addresses in a sentence.
pub fn listed<T: ToString>(addresses: &[T]) -> String {
    let texts: Vec<String> = addresses.iter().map(T::to_string).collect();
    texts.join(", ")
}

/// Why nobody can connect.
pub fn cannot_listen(address: &ListenAddress, source: io::Error) -> CommandError {
    CommandError::Listen {
        address: address.to_string(),
        source,
    }
}

/// The names of sockets for clients, as a program calls those that it hands over. The first is the
/// only one that older programs know.
pub fn listener_names(count: usize) -> impl Iterator<Item = String> {
    (1..=count).map(|n| match n {
        1 => LISTEN.to_owned(),
        n => format!("{LISTEN}{n}"),
    })
}

/// What systemd has passed to this process.
pub type Passed = Result<Vec<(String, OwnedFd)>, CommandError>;

/// The sockets that systemd has passed to this process, and to no other. The program has to ask
/// before it opens anything: a number that is in use by then is systemd's.
pub fn passed_by_systemd() -> Passed {
    let variable = |name: &str| std::env::var(name).ok();
    let pid: Option<u32> = variable("LISTEN_PID").and_then(|pid| pid.parse().ok());
    let (true, Some(count)) = (pid == Some(std::process::id()), variable("LISTEN_FDS")) else {
        return Ok(Vec::new());
    };
    let wrong = |what: String| {
        CommandError::Arguments(format!(
            "LISTEN_FDS={count}: {what}; whatever has started this program must pass as many sockets as it says"
        ))
    };
    let Some(count) = count
        .parse()
        .ok()
        .filter(|count| (0..=MOST).contains(count))
    else {
        return Err(wrong(format!("it is a number of sockets, at most {MOST}")));
    };
    let numbers = FIRST..FIRST + count;
    for number in numbers.clone() {
        // the link tells what the number stands for, and opens nothing
        let is_socket = std::fs::read_link(format!("/proc/self/fd/{number}")).is_ok_and(|target| {
            target
                .as_os_str()
                .as_encoded_bytes()
                .starts_with(b"socket:")
        });
        if !is_socket {
            return Err(wrong(format!("file descriptor {number} is no socket")));
        }
    }
    let names = variable("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':').map(str::to_owned);
    let mut sockets = Vec::new();
    for number in numbers {
        let socket = own(number);
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)
            .map_err(|error| wrong(format!("file descriptor {number}: {error}")))?;
        sockets.push((names.next().unwrap_or_default(), socket));
    }
    Ok(sockets)
}

#[allow(unsafe_code)]
fn own(number: i32) -> OwnedFd {
    // SAFETY: the number stands for an open socket, which was looked up just now. The program has
    // opened nothing yet, so that socket was passed to it, and systemd says for this very process
    // that it is this program's. Each number is taken once: the caller is the first thing that
    // `main` does, and nothing else does it.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// One that accepts connections, or why it is none.
fn must_accept(name: &str, socket: &OwnedFd) -> Result<(), CommandError> {
    let is_stream = sockopt::socket_type(socket).is_ok_and(|kind| kind == SocketType::STREAM);
    match is_stream && sockopt::socket_acceptconn(socket).unwrap_or(false) {
        true => Ok(()),
        false => Err(CommandError::Arguments(format!(
            "the socket that was passed for {name} accepts no connections: it must be a ListenStream= of the socket unit, with Accept=no"
        ))),
    }
}
