//! Where clients connect: `host:port` or `unix:/path`, and the sockets that are bound to it.

use std::fmt;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use onionskin_wire::Socket;
use rustix::net::sockopt::socket_peercred;
use socket2::{Domain, SockAddr, SockRef, Type};

use crate::client_address::ClientAddress;
use crate::config::Backend;

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress(Backend);

/// How a socket is bound.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Clients that wait to be accepted.
    pub backlog: i32,
    /// Who may connect to a Unix socket. Its folder says the rest.
    pub mode: u32,
}

impl Manner {
    /// For clients: whoever reaches the socket may log in, as at a server's.
    pub const CLIENTS: Manner = Manner {
        backlog: 4096,
        mode: 0o777,
    };
}

impl FromStr for ListenAddress {
    type Err = String;

    /// The forms are those of a back end's, and port 0 stands for one that is free.
    fn from_str(text: &str) -> Result<Self, String> {
        Backend::parse(text, 0).map(ListenAddress)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ListenAddress {
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

    /// Whether who connects to a server at `backend` would be connected here.
    pub fn answers(&self, backend: &Backend) -> bool {
        let addresses = |backend: &Backend| -> Vec<SocketAddr> {
            match backend {
                Backend::Tcp { host, port } => (host.as_str(), *port)
                    .to_socket_addrs()
                    .map(Iterator::collect)
                    .unwrap_or_default(),
                Backend::Unix(_) => Vec::new(),
            }
        };
        if self.0 == *backend {
            return true;
        }
        let there = addresses(backend);
        addresses(&self.0).iter().any(|listen| {
            there.iter().any(|address| {
                let any = listen.ip().is_unspecified() && address.ip().is_loopback();
                address.port() == listen.port() && (any || address.ip() == listen.ip())
            })
        })
    }

    /// Binds it; of a name with several addresses, the first that can be bound.
    pub fn bind(&self, manner: Manner) -> io::Result<Bound> {
        match &self.0 {
            Backend::Tcp { host, port } => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match bind_tcp(address, manner) {
                        Ok(bound) => return Ok(bound),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Backend::Unix(path) => {
                let listener = bind_unix(path, manner)?;
                Ok(Bound::Unix(listener, SocketFile::of(path, false)))
            }
        }
    }

    /// Whether a socket is bound to it that listens already.
    pub fn is_of(&self, socket: &impl AsFd) -> bool {
        let Ok(address) = SockRef::from(socket).local_addr() else {
            return false;
        };
        match &self.0 {
            Backend::Unix(path) => address.as_pathname() == Some(path.as_path()),
            Backend::Tcp { host, port } => {
                let wanted = (host.as_str(), *port).to_socket_addrs();
                let is_it = |wanted| address.as_socket() == Some(wanted);
                wanted.is_ok_and(|mut wanted| wanted.any(is_it))
            }
        }
    }

    /// A socket that is bound to it already. `is_systemds`: its file stays, whatever ends.
    pub fn take(&self, socket: OwnedFd, is_systemds: bool) -> io::Result<Bound> {
        match &self.0 {
            Backend::Unix(path) => Ok(Bound::Unix(
                UnixListener::from(socket),
                SocketFile::of(path, is_systemds),
            )),
            Backend::Tcp { .. } => {
                let listener = TcpListener::from(socket);
                let address = listener.local_addr()?;
                Ok(Bound::Tcp(listener, address))
            }
        }
    }
}

fn bind_tcp(address: SocketAddr, manner: Manner) -> io::Result<Bound> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(manner.backlog)?;
    let listener = TcpListener::from(socket);
    let address = listener.local_addr()?;
    Ok(Bound::Tcp(listener, address))
}

/// Nobody can connect before the mode is set: a socket that does not listen refuses.
pub fn bind_unix(path: &Path, manner: Manner) -> io::Result<UnixListener> {
    remove_abandoned(path)?;
    let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(manner.mode))?;
    socket.listen(manner.backlog)?;
    Ok(UnixListener::from(socket))
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

/// A socket that listens.
pub enum Bound {
    /// TCP.
    Tcp(TcpListener, SocketAddr),
    /// A Unix socket, and its file.
    Unix(UnixListener, SocketFile),
}

impl Bound {
    /// Whoever accepts waits at a gate.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Bound::Tcp(listener, _) => listener.set_nonblocking(true),
            Bound::Unix(listener, _) => listener.set_nonblocking(true),
        }
    }

    /// A second handle, for a program that takes over.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.as_fd().try_clone_to_owned()
    }

    /// Takes a connection that waits.
    pub fn accept(&self) -> io::Result<(Socket, ClientAddress)> {
        match self {
            Bound::Tcp(listener, _) => {
                let (socket, address) = listener.accept()?;
                Ok((socket.into(), ClientAddress::Tcp(address)))
            }
            Bound::Unix(listener, _) => {
                let (socket, _) = listener.accept()?;
                let user = socket_peercred(&socket).ok().map(|peer| peer.uid.as_raw());
                Ok((socket.into(), ClientAddress::Unix { user }))
            }
        }
    }

    /// The file of a Unix socket.
    pub fn file(&self) -> Option<&SocketFile> {
        match self {
            Bound::Tcp(..) => None,
            Bound::Unix(_, file) => Some(file),
        }
    }
}

impl AsFd for Bound {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Bound::Tcp(listener, _) => listener.as_fd(),
            Bound::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Tcp(_, address) => address.fmt(f),
            Bound::Unix(_, file) => write!(f, "unix:{}", file.path.display()),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const MANNER: Manner = Manner {
        backlog: 8,
        mode: 0o660,
    };

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
            let address: ListenAddress = text.parse().expect(text);
            assert_eq!(address.is_local().ok(), Some(local), "{text}");
            assert_eq!(address.to_string(), text);
        }
        for bad in [
            "",
            "3380",
            "127.0.0.1",
            "127.0.0.1:x",
            "unix:",
            "/run/a.sock",
        ] {
            assert!(bad.parse::<ListenAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_socket_is_taken_over_only_if_nobody_listens() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("admin.sock");
        let address = format!("unix:{}", path.display());
        let address: ListenAddress = address.parse().expect("an address");
        let bound = address.bind(MANNER).expect("bound");
        assert!(address.is_of(&bound));
        let mode = fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, MANNER.mode);
        let taken = address.bind(MANNER).err().expect("taken");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(bound);
        assert!(path.exists());
        drop(address.bind(MANNER).expect("abandoned"));
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "data").expect("written");
        assert!(address.bind(MANNER).is_err());
        assert_eq!(fs::read(&path).expect("there"), b"data");
    }

    #[test]
    fn a_server_is_told_from_the_proxy_itself() {
        let is_here = |listen: &str, backend: &str| {
            let listen: ListenAddress = listen.parse().expect("an address");
            listen.answers(&backend.parse().expect("an address"))
        };
        assert!(is_here("127.0.0.1:3307", "127.0.0.1:3307"));
        assert!(is_here("0.0.0.0:3307", "127.0.0.1:3307"));
        assert!(is_here("unix:/run/a.sock", "unix:/run/a.sock"));
        assert!(!is_here("127.0.0.1:3307", "127.0.0.1:3306"));
        assert!(!is_here("unix:/run/a.sock", "unix:/run/b.sock"));
        assert!(!is_here("unix:/run/a.sock", "127.0.0.1:3306"));
    }
}
