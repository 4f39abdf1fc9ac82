//! Why there is no login, and how the client is told.

use std::time::{Duration, Instant};

use onionskin_plan::{Refusal, errors};
use onionskin_wire::messages::ErrPacket;
use onionskin_wire::{Connection, Deadline, WireError};

/// How long it may take to tell a client why it is not logged in.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Why there was no login, besides a refusal by the server. The client has been told, if it could
/// be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginError {
    #[error("client: {0}")]
    Client(WireError),
    #[error("server: {0}")]
    Server(WireError),
    #[error("server: cannot be reached: {0}")]
    Unreachable(std::io::Error),
    #[error("server: turns connections away with its error {0}")]
    TurnedAway(u16),
    #[error("{0}")]
    Refused(&'static str),
    #[error("no member can take new sessions: {0}")]
    NoPrimary(String),
    #[error("no member can take sessions of listen_read: {0}")]
    NoReplica(String),
}

impl LoginError {
    /// The client's time is over.
    pub fn is_too_slow(&self) -> bool {
        matches!(self, LoginError::Client(e) if e.is_timeout())
    }
}

pub(crate) type LoginResult<T> = Result<T, LoginError>;

pub(crate) const SERVER_WITHOUT_TLS: &str = "TLS is required and the server does not offer it";
pub(crate) const TLS_REQUIRED: &str =
    "Connections using insecure transport are prohibited: the proxy takes logins under TLS only";
pub(crate) const CERTIFICATE_REQUIRED: &str = "Connections using insecure transport are prohibited: the proxy takes logins with a certificate of client_ca only, and this connection was made before that";
pub(crate) const ANOTHER_CERTIFICATE: &str =
    "Access denied: [tls.accounts] asks this account for another certificate";
pub(crate) const BAD_HANDSHAKE: &str = "the login asks for TLS, which was not offered";
pub(crate) const OLD_CLIENT: &str = "the client does not support login methods of 4.1 and later";
pub(crate) const UNLIKE_LEGS: &str = "the login method relies on the security of the whole way, and only one of client and server is connected by TLS";
pub(crate) const CLEAR_PASSWORD: &str = "mysql_clear_password needs TLS between client and proxy, and a Unix socket between proxy and server or backend_tls = \"verify\" with backend_ca";
pub(crate) const STRANGE_ANSWER: &str =
    "the answer to the server's scramble has a length that the login method does not know";
pub(crate) const OTHER_DATABASE: &str = "at login";
pub(crate) const STRANGE_CHARSET: &str =
    "a client cannot have the character set that the login asks for";

/// Tells the client why it is not logged in. That it is gone by now is no further error.
pub(crate) fn tell(client: &mut Connection, error: &LoginError) {
    let mut packet = match error {
        // It is too slow, or gone.
        LoginError::Client(e) if e.is_timeout() || e.is_disconnect() => return,
        LoginError::Client(WireError::Io(_) | WireError::Tls(_)) => return,
        LoginError::Client(_) => of_table(&errors::MALFORMED, ""),
        LoginError::Server(WireError::Tls(_)) => of_table(&errors::BACKEND_REFUSED, "TLS"),
        LoginError::Server(_) | LoginError::Unreachable(_) | LoginError::TurnedAway(_) => {
            of_table(&errors::BACKEND_REFUSED, "")
        }
        LoginError::NoPrimary(why) => of_table(&errors::NO_PRIMARY, why),
        LoginError::NoReplica(why) => of_table(&errors::NO_REPLICA, why),
        LoginError::Refused(SERVER_WITHOUT_TLS) => {
            of_table(&errors::BACKEND_REFUSED, SERVER_WITHOUT_TLS)
        }
        LoginError::Refused(text @ (BAD_HANDSHAKE | STRANGE_ANSWER | STRANGE_CHARSET)) => {
            of_table(&errors::MALFORMED, text)
        }
        LoginError::Refused(OTHER_DATABASE) => of_table(&errors::OTHER_DATABASE, OTHER_DATABASE),
        // as servers with require_secure_transport say it
        LoginError::Refused(text @ (TLS_REQUIRED | CERTIFICATE_REQUIRED)) => {
            ErrPacket::new(3159, *b"HY000", text.as_bytes().to_vec())
        }
        LoginError::Refused(ANOTHER_CERTIFICATE) => {
            ErrPacket::new(1045, *b"28000", ANOTHER_CERTIFICATE.as_bytes().to_vec())
        }
        // the number of ER_NOT_SUPPORTED_AUTH_MODE, which clients know
        LoginError::Refused(text) => of_table(&errors::LOGIN, text),
    };
    if client.sequence() == 0 {
        // Nobody has agreed on protocol 4.1 yet: servers leave the state out here, and clients show
        // it as text.
        packet.sqlstate = None;
    }
    packet.encode(client.begin_payload());
    let _ = client
        .end_payload()
        .and_then(|()| client.set_deadline(Some(Deadline::at(Instant::now() + LAST_WORD))))
        .and_then(|()| client.flush());
}

fn of_table(entry: &'static errors::Entry, about: &str) -> ErrPacket<'static> {
    let state = entry.state.as_bytes().try_into().unwrap_or(*b"HY000");
    let text = Refusal::new(entry, about).message();
    ErrPacket::new(entry.number, state, text.into_bytes())
}
