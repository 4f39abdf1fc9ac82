//! Whether a server is there and takes logins, asked without an account.

use std::os::unix::net::UnixStream;
use std::time::Instant;

use onionskin_wire::messages::{ErrPacket, InitialHandshake};
use onionskin_wire::{Connection, Transport, WireError};

use super::connect::connect;
use super::error::{LoginError, LoginResult};
use super::legs::{Legs, Owed, Timing};
use super::settings::LoginSettings;

/// Connects, reads the greeting, and has nobody log in. Servers do not count a login that they
/// refuse as broken off (see [`super::excuse`]): however often this is asked, the proxy's address
/// is not blocked by `max_connect_errors`.
pub(crate) fn probe(settings: &LoginSettings, whole: Instant) -> LoginResult<()> {
    let transport = connect(&settings.backend, whole).map_err(LoginError::Unreachable)?;
    let mut server = Connection::new(transport);
    // There is no client, and none is read or written.
    let (nobody, _) = UnixStream::pair().map_err(LoginError::Unreachable)?;
    let mut client = Connection::new(Transport::Unix(nobody));
    let timing = Timing { whole, pace: None };
    let mut legs = Legs::new(&mut client, &mut server, timing, settings.trust.clone());
    let payload = legs.read_server()?;
    if ErrPacket::is_err(&payload) {
        // Too many connections, a blocked address: nobody could log in now.
        let number = ErrPacket::decode(&payload)
            .map_err(LoginError::Server)?
            .code;
        return Err(LoginError::TurnedAway(number));
    }
    let greeting = InitialHandshake::decode(&payload).map_err(LoginError::Server)?;
    legs.owed = Owed::Login;
    let wants_tls = settings.wants_backend_tls(greeting.capabilities)?;
    match legs.log_nobody_in(settings, &greeting, wants_tls) {
        // A certificate that is not the server's.
        Err(LoginError::Server(error @ WireError::Tls(_))) => Err(LoginError::Server(error)),
        _ => Ok(()),
    }
}
