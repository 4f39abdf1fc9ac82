//! Connections of which the other end is gone are noticed.

use std::io;
use std::time::Duration;

use onionskin_wire::Socket;
use socket2::{SockRef, TcpKeepalive};

/// A connection without traffic is probed after this time, then at the interval; a peer that is
/// gone is noticed, and what it had locked is released.
const KEEPALIVE_TIME: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Has the system notice peers that vanish without a word. Those of a Unix socket cannot.
pub(crate) fn keep_alive(socket: &Socket) -> io::Result<()> {
    if matches!(socket, Socket::Unix(_)) {
        return Ok(());
    }
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_TIME)
        .with_interval(KEEPALIVE_INTERVAL);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}
