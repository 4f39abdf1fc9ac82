//! Connections of which the other end is gone are noticed.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// A connection without traffic is probed after this time, then at the interval; a peer that is
/// gone is noticed, and what it had locked is released.
const KEEPALIVE_TIME: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Has the system notice peers that vanish without a word.
pub(crate) fn keep_alive(socket: &TcpStream) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_TIME)
        .with_interval(KEEPALIVE_INTERVAL);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}
