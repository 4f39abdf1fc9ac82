//! Whether a server is there and takes logins, and which one it is, asked without an account.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use onionskin_value::Family;

use onionskin_wire::messages::{ErrPacket, InitialHandshake};
use onionskin_wire::{Connection, Transport, WireError};

use super::connect_for;
use super::error::{LoginError, LoginResult};
use super::greeting::{family_of, version_of};
use super::legs::{Legs, Owed, Timing};
use super::settings::LoginSettings;
use crate::config::Backend;

/// How long a server may take to be reached, greet, and refuse a login.
const PROBE: Duration = Duration::from_secs(5);

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerKind {
    /// MySQL or MariaDB.
    pub family: Family,
    /// Its version: `10.11.14-MariaDB-0+deb12u2`.
    pub version: String,
}

/// Asks a server without TLS which one it is. The error is part of a sentence.
pub fn server_at(backend: &Backend) -> Result<ServerKind, String> {
    ask(&LoginSettings::plain(backend.clone()))
}

/// Asks a server which one it is, in a few seconds. The error is part of a sentence.
pub(crate) fn ask(settings: &LoginSettings) -> Result<ServerKind, String> {
    probe(settings, Instant::now() + PROBE).map_err(|error| {
        let text = error.to_string();
        let fault = text.strip_prefix("server: ").unwrap_or(&text);
        fault.to_owned()
    })
}

/// Connects, reads the greeting, and has nobody log in. Servers do not count a login that they
/// refuse as broken off (see [`super::excuse`]): however often this is asked, the proxy's address
/// is not blocked by `max_connect_errors`.
pub(crate) fn probe(settings: &LoginSettings, whole: Instant) -> LoginResult<ServerKind> {
    let transport = connect_for(None, settings, whole)?;
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
        _ => Ok(ServerKind {
            family: family_of(&greeting),
            version: version_of(&greeting),
        }),
    }
}
