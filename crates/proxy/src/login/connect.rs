//! The connection to the server.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use onionskin_wire::Transport;

use crate::config::Backend;

/// How long a connection to one of the server's addresses may take.
const CONNECT: Duration = Duration::from_secs(10);

/// Connects to the server; its name's addresses are asked for within the same time, unless the one
/// address is given.
pub(crate) fn connect(
    backend: &Backend,
    address: Option<SocketAddr>,
    whole: Instant,
) -> io::Result<Transport> {
    let left = || whole.saturating_duration_since(Instant::now());
    if let Some(address) = address {
        let limit = left().clamp(Duration::from_millis(1), CONNECT);
        return Transport::tcp(TcpStream::connect_timeout(&address, limit)?);
    }
    let Backend::Tcp { host, port } = backend else {
        return backend.connect_within(left());
    };
    if host.parse::<IpAddr>().is_ok() {
        return backend.connect_within(left());
    }
    let name = (host.clone(), *port);
    let addresses = within(left(), move || {
        Ok(name.to_socket_addrs()?.collect::<Vec<_>>())
    })?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
    for address in addresses {
        let limit = left().min(CONNECT);
        if limit.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&address, limit) {
            Ok(stream) => return Transport::tcp(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What the system is asked for without a time limit of its own. After that the thread that asks is
/// left alone; it ends by itself.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    ask: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (answer, answered) = sync_channel(1);
    thread::Builder::new()
        .name("resolve".into())
        .spawn(move || {
            // Nobody may be waiting any more.
            let _ = answer.send(ask());
        })?;
    answered
        .recv_timeout(limit)
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
