//! What systemd is told, if it asks: the protocol of `sd_notify`, one datagram to the socket that
//! NOTIFY_SOCKET names.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Tells it. Without such a socket there is nobody to tell.
pub fn notify(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
    let address = match bytes.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&path),
    };
    let told = address.and_then(|address| {
        let socket = UnixDatagram::unbound()?;
        socket.send_to_addr(state.as_bytes(), &address)
    });
    if let Err(error) = told {
        tracing::warn!(%error, "systemd cannot be told: {state}");
    }
}

/// This process is the service, and it is ready.
pub fn ready() {
    notify(&format!("READY=1\nMAINPID={}", std::process::id()));
}
