//! The login: relayed, so that users and passwords stay in the server.
//!
//! The server's greeting, with its scramble, goes to the client, and the client's answer to the
//! server. What each method of authentication needs then goes back and forth. The proxy has no user
//! list and never learns a password, except in the cases marked below, where it must pass one on
//! under another encryption than it came in.
//!
//! Two things differ between the legs:
//!
//! - **Capabilities.** A client is offered what the server offers and the proxy can read. The
//!   server is told what the client chose and what the proxy needs itself ([`greeting::NEEDED`]).
//! - **TLS.** Each leg has it or not, independently; sequence numbers differ accordingly, and
//!   [`Connection`] counts each.
//!
//! # Methods on legs that are not alike
//!
//! A method that only answers a scramble is passed on as it is, whatever the legs:
//! `mysql_native_password`, `client_ed25519`, `parsec`, and the fast path of
//! `caching_sha2_password`. Where a method asks for the password itself, it is sent in the clear
//! over a secure leg (TLS; for `caching_sha2_password` also a Unix socket), and encrypted under an
//! RSA key over others:
//!
//! | client's leg | server's leg | the proxy |
//! |---|---|---|
//! | secure | secure | passes the password on, if the server is known to be the right one |
//! | not | not | passes the server's RSA key and the encrypted password on |
//! | secure | not | encrypts the password under the server's RSA key, if that is configured |
//! | not | secure | shows the client an RSA key of its own, and decrypts the password; then as in the first line |
//!
//! A server is known to be the right one at the other end of a Unix socket, and under TLS with a
//! certificate that was verified (`password`). `mysql_clear_password` needs that and a secure
//! client. So do methods that are not known here, with a client that is secure; between two legs
//! that are not secure they are passed on.
//!
//! Clients put an answer into their login before they know the account's method. Unless that answer
//! can only be one to the scramble, it is withheld: the server then asks for the account's method
//! as if the client had answered with another.
//!
//! # Time
//!
//! A login has one deadline, from the moment that the client was accepted. Within it, each answer
//! of the client's has one, too: servers wait for ten seconds by default. A login that the client
//! breaks off is ended by the proxy, so that the server does not count it (`excuse`).
//!
//! | file | holds |
//! |---|---|
//! | `settings` | the part of the configuration that logins depend on |
//! | `connect` | the connection to the server |
//! | `legs` | client and server: packets, one at a time, in time |
//! | `greeting` | the greeting and its answer, with capabilities and TLS |
//! | `method`, `authenticate` | login methods, and how their messages are passed on |
//! | `password` | methods that send the password itself |
//! | `excuse` | the end of a login that the client broke off |
//! | `change_user` | COM_CHANGE_USER |
//! | `error` | why there is no login, and how the client is told |
//! | `pace` | what others in the line may do to a login |
//! | `probe` | whether a server takes logins, asked without an account |

mod authenticate;
mod change_user;
mod connect;
pub(crate) mod database;
mod error;
mod excuse;
mod greeting;
mod legs;
mod method;
mod pace;
mod password;
mod probe;
mod settings;

use std::io::Write;
use std::time::Instant;

use onionskin_value::Family;
use onionskin_wire::auth::LinkTrust;
use onionskin_wire::messages::{ErrPacket, InitialHandshake};
use onionskin_wire::trace::{Peer, Tracer};
use onionskin_wire::{Capabilities, Connection, DefinitionForm, Transport};

use crate::client_address::ClientAddress;
use crate::keep_alive::keep_alive;
use crate::members::{Era, Side};
use crate::proxy_protocol;
use connect::connect;
use error::{LoginError, LoginResult};
use greeting::{Agreed, relay_greeted};
use legs::{Legs, Owed};

pub(crate) use change_user::change_user;
pub(crate) use error::tell;
pub(crate) use legs::Timing;
pub(crate) use pace::Pace;
pub(crate) use probe::ask;
pub use probe::{ServerKind, server_at};
pub(crate) use settings::{LoginSettings, Now};

/// A client and a server that have agreed; only the client does not know yet.
pub(crate) struct Login {
    pub client: Connection,
    pub server: Connection,
    /// What the client negotiated with us.
    pub client_capabilities: Capabilities,
    /// What we negotiated with the server.
    pub server_capabilities: Capabilities,
    /// The form of column definitions, on both sides.
    pub form: DefinitionForm,
    pub family: Family,
    /// As the server tells it, without the `5.5.5-` that MariaDB puts before it.
    pub server_version: String,
    pub connection_id: u32,
    pub user: String,
    pub database: Option<String>,
    /// Low byte of the collation that the client asked for.
    pub charset: u8,
    /// The client's connection attributes, as they came.
    pub attributes: Option<Vec<u8>>,
    /// The authority whose certificate the client had to show.
    pub client_authority: Option<[u8; 32]>,
    /// What makes the connection to the server fit for a password.
    pub trust: LinkTrust,
    /// See [`crate::members`].
    pub era: Era,
    /// Payload of the server's last OK, not yet passed on. The client's sequence number is right
    /// for it.
    pub ok: Vec<u8>,
}

/// Is told of the connection to the server once it is there, and of the era (see
/// [`crate::members`]) that it belongs to: should another begin, somebody ends it.
pub(crate) type Connected<'a> = &'a dyn Fn(&Transport, Era) -> std::io::Result<()>;

/// Connects to the server and has it log the client in. `Ok(None)`: the server refused, and the
/// client was told so; or the client left.
pub(crate) fn login(
    client: Transport,
    from: ClientAddress,
    session: u64,
    now: Now<'_>,
    connected: Connected<'_>,
    timing: &Timing,
) -> LoginResult<Option<Login>> {
    let settings = &*now();
    let mut client = Connection::new(client);
    if settings.trace {
        client.set_tracer(Some(tracer("client", session, Peer::Client)));
    }
    let way = (now, connected);
    match relay_login(&mut client, from, session, settings, way, timing) {
        Ok(Some((server, agreed, ok))) => Ok(Some(Login {
            client,
            server,
            client_capabilities: agreed.client_capabilities,
            server_capabilities: agreed.server_capabilities,
            form: agreed.form,
            family: agreed.family,
            server_version: agreed.server_version,
            connection_id: agreed.connection_id,
            user: agreed.user,
            database: agreed.database,
            charset: agreed.charset,
            attributes: agreed.attributes,
            client_authority: agreed.client_authority,
            trust: settings.trust.clone(),
            era: settings.era,
            ok,
        })),
        Ok(None) => Ok(None),
        Err(LoginError::Client(e)) if e.is_disconnect() => Ok(None),
        Err(error) => {
            tell(&mut client, &error);
            Err(error)
        }
    }
}

/// The login up to the server's OK.
fn relay_login(
    client: &mut Connection,
    from: ClientAddress,
    session: u64,
    settings: &LoginSettings,
    (now, connected): (Now<'_>, Connected<'_>),
    timing: &Timing,
) -> LoginResult<Option<(Connection, Agreed, Vec<u8>)>> {
    let transport = connect_for(Some(from), settings, timing.whole)?;
    connected(&transport, settings.era).map_err(LoginError::Unreachable)?;
    let mut server = Connection::new(transport);
    if settings.trace {
        server.set_tracer(Some(tracer("server", session, Peer::Server)));
    }
    let mut legs = Legs::new(client, &mut server, timing.clone(), settings.trust.clone());

    let payload = legs.read_server()?;
    if ErrPacket::is_err(&payload) {
        // Too many connections, a blocked host: the first packet that the client gets.
        legs.write_client(&payload)?;
        return Ok(None);
    }
    let greeting = InitialHandshake::decode(&payload).map_err(LoginError::Server)?;
    legs.owed = Owed::Login;
    let done = settings
        .wants_backend_tls(greeting.capabilities)
        .and_then(|wants_tls| {
            let done = relay_greeted(&mut legs, settings, now, &greeting, wants_tls);
            if let Err(LoginError::Client(_) | LoginError::Refused(_)) = &done {
                legs.excuse(settings, &greeting, wants_tls);
            }
            done
        })?;
    let Some((agreed, ok)) = done else {
        return Ok(None);
    };
    legs.end()?;
    Ok(Some((server, agreed, ok)))
}

/// Connects to the server for this client; `None`: for nobody.
fn connect_for(
    client: Option<ClientAddress>,
    settings: &LoginSettings,
    whole: Instant,
) -> LoginResult<Transport> {
    if let Some(why) = &settings.closed {
        let why = why.clone();
        return Err(match settings.era.side {
            Side::Primary => LoginError::NoPrimary(why),
            Side::Reading(_) => LoginError::NoReplica(why),
        });
    }
    let connected = || {
        let connecting = settings.connecting.map(|limit| Instant::now() + limit);
        let until = connecting.map_or(whole, |until| until.min(whole));
        let mut transport = connect(&settings.backend, settings.address, until)?;
        keep_alive(&transport.try_clone_socket()?)?;
        if settings.tells_clients {
            // far less than what the system takes at once
            transport.write_all(&proxy_protocol::header(client))?;
        }
        Ok(transport)
    };
    connected().map_err(LoginError::Unreachable)
}

fn tracer(who: &str, session: u64, peer: Peer) -> Tracer {
    let sink = Box::new(|line: &str| tracing::info!(target: "onionskin::wire", "{line}"));
    Tracer::new(format!("{who} {session}"), peer, sink)
}

#[cfg(test)]
mod tests;
