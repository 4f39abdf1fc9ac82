//! `admin`: `host:port` or `unix:/path`, and the socket that is bound to it.

use std::fmt;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use onionskin_proxy::Backend;
use onionskin_wire::Socket;
use serde::Deserialize;
use socket2::{Domain, SockAddr, Type};

use crate::sockets::Inherited;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// Who may connect to a Unix socket: its owner and its group. Its folder says the rest.
const SOCKET_MODE: u32 = 0o660;

/// The setting.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct AdminAddress(Backend);

impl TryFrom<String> for AdminAddress {
    type Error = String;

    /// The forms are those of `backend`.
    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(AdminAddress)
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A bound socket.
pub enum Listener {
    /// TCP.
    Tcp(TcpListener, SocketAddr),
    /// A Unix socket, and its file.
    Unix(UnixListener, SocketFile),
}

impl AdminAddress {
    /// Whether only this machine can reach it.
    pub fn is_local(&self) -> io::Result<bool> {
        match &self.0 {
            Backend::Unix(_) => Ok(true),
            Backend::Tcp { host, port } => {
                let mut found = (host.as_str(), *port).to_socket_addrs()?;
                Ok(found.all(|address| address.ip().is_loopback()))
            }
        }
    }

    /// Binds it; of a name with several addresses, the first that can be bound.
    pub fn bind(&self) -> io::Result<Listener> {
        match &self.0 {
            Backend::Tcp { host, port } => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match bind_tcp(address) {
                        Ok(listener) => return Ok(listener),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Backend::Unix(path) => {
                let listener = bind_unix(path, SOCKET_MODE)?;
                Ok(Listener::Unix(listener, SocketFile::of(path, false)))
            }
        }
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<Listener> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    let listener = TcpListener::from(socket);
    let address = listener.local_addr()?;
    Ok(Listener::Tcp(listener, address))
}

/// Nobody can connect before the mode is set: a socket that does not listen refuses.
pub fn bind_unix(path: &Path, mode: u32) -> io::Result<UnixListener> {
    remove_abandoned(path)?;
    let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    socket.listen(BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// The file of a Unix socket, which is removed in the end by whoever has bound it.
#[derive(Clone, Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and number, so that no other program's is removed. `None`: it stays.
    own: Option<(u64, u64)>,
}

impl SocketFile {
    /// Of a socket that is bound to this path by now.
    pub fn of(path: &Path, is_systemds: bool) -> SocketFile {
        let number = || {
            let found = fs::symlink_metadata(path).ok()?;
            Some((found.dev(), found.ino()))
        };
        SocketFile {
            path: path.to_owned(),
            own: if is_systemds { None } else { number() },
        }
    }

    /// Whether it stays when the program ends.
    pub fn stays(&self) -> bool {
        self.own.is_none()
    }

    /// Another program answers by it.
    pub fn keep(&mut self) {
        self.own = None;
    }

    /// Removes it, if it is this program's.
    pub fn remove(&self) {
        let now = SocketFile::of(&self.path, false);
        if self.own.is_some() && now.own == self.own {
            // gone already, if somebody was faster
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes a socket that nobody listens on any more: a process that is killed leaves it behind.
fn remove_abandoned(path: &Path) -> io::Result<()> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is a file of that name, which is no socket",
        ));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}

impl Listener {
    /// One that another program has bound, if it is at this address.
    pub fn inherited(inherited: Inherited, wanted: &AdminAddress) -> Option<Listener> {
        let Inherited {
            socket,
            is_systemds,
        } = inherited;
        match &wanted.0 {
            Backend::Unix(path) => {
                let listener = UnixListener::from(socket);
                let address = listener.local_addr().ok()?;
                let is_same = address.as_pathname() == Some(path.as_path());
                is_same.then(|| Listener::Unix(listener, SocketFile::of(path, is_systemds)))
            }
            Backend::Tcp { host, port } => {
                let listener = TcpListener::from(socket);
                let address = listener.local_addr().ok()?;
                let mut wanted = (host.as_str(), *port).to_socket_addrs().ok()?;
                let is_same = wanted.any(|wanted| wanted == address);
                is_same.then_some(Listener::Tcp(listener, address))
            }
        }
    }

    /// Whoever accepts waits at a gate.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Listener::Tcp(listener, _) => listener.set_nonblocking(true),
            Listener::Unix(listener, _) => listener.set_nonblocking(true),
        }
    }

    /// A second handle, for a program that takes over.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.as_fd().try_clone_to_owned()
    }

    /// Waits for a connection.
    pub fn accept(&self) -> io::Result<Socket> {
        match self {
            Listener::Tcp(listener, _) => listener.accept().map(|(socket, _)| socket.into()),
            Listener::Unix(listener, _) => listener.accept().map(|(socket, _)| socket.into()),
        }
    }

    /// The file of a Unix socket.
    pub fn file(&self) -> Option<SocketFile> {
        match self {
            Listener::Tcp(..) => None,
            Listener::Unix(_, file) => Some(file.clone()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener, _) => listener.as_fd(),
            Listener::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listener::Tcp(_, address) => address.fmt(f),
            Listener::Unix(_, file) => write!(f, "unix:{}", file.path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Result<AdminAddress, String> {
        text.to_owned().try_into()
    }

    #[test]
    fn loopback_is_told_from_the_rest() {
        for (text, local) in [
            ("127.0.0.1:3380", true),
            ("127.1.2.3:3380", true),
            ("[::1]:3380", true),
            ("unix:/run/onionskin/admin.sock", true),
            ("0.0.0.0:3380", false),
            ("[::]:3380", false),
            ("10.1.2.3:3380", false),
        ] {
            let address = address(text).expect(text);
            assert_eq!(address.is_local().ok(), Some(local), "{text}");
        }
        for bad in [
            "",
            "3380",
            "127.0.0.1",
            "127.0.0.1:x",
            "unix:",
            "/run/a.sock",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_socket_is_taken_over_only_if_nobody_listens() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("admin.sock");
        let admin = address(&format!("unix:{}", path.display())).expect("an address");
        let bound = admin.bind().expect("bound");
        let mode = fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, SOCKET_MODE);
        let taken = admin.bind().err().expect("taken");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(bound);
        assert!(path.exists());
        drop(admin.bind().expect("abandoned"));
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "data").expect("written");
        assert!(admin.bind().is_err());
        assert_eq!(fs::read(&path).expect("there"), b"data");
    }
}
