//! The relayed login: users and passwords stay in MySQL.
//!
//! The server's greeting goes to the client with the capabilities that the proxy understands;
//! the client's answer goes to the server, and so on until the server says OK. Scrambles are
//! the same on both sides, so methods that answer a scramble need nothing from the proxy.
//!
//! `caching_sha2_password` is different in its full form: over a secure connection the password
//! travels in clear, else under the server's RSA key. When only one of the two connections is
//! secure, the proxy translates: it asks the server for its key, or shows the client one of its
//! own. The password is in its memory then, for that moment.
//!
//! | client | server | full authentication |
//! |---|---|---|
//! | TLS | TLS or socket | relayed |
//! | plain | plain | relayed, under the server's key |
//! | TLS | plain | encrypted here under the server's key |
//! | plain | TLS or socket | under a key of the proxy's, decrypted here |

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use onionskin_plan::{Refusal, errors};
use onionskin_value::Family;
use onionskin_wire::auth::{
    CACHING_SHA2_PASSWORD, MYSQL_CLEAR_PASSWORD, PasswordKey, cleartext_password, encrypt_password,
};
use onionskin_wire::messages::{
    AuthMoreData, AuthSwitchRequest, ComChangeUser, ErrPacket, HandshakeResponse41,
    InitialHandshake, SslRequest,
};
use onionskin_wire::trace::{Peer, Tracer};
use onionskin_wire::{Capabilities, Connection, MariaDbCapabilities, Transport, WireError};
use rustls::pki_types::ServerName;
use zeroize::Zeroizing;

use crate::config::{Backend, BackendTls, Config};

/// How long a login may wait for either side.
const PATIENCE: Duration = Duration::from_secs(30);

/// A session that is logged in, before the client knows.
pub(crate) struct Login {
    pub client: Connection,
    pub server: Connection,
    /// What was agreed with the client.
    pub client_capabilities: Capabilities,
    /// What was agreed with the server.
    pub server_capabilities: Capabilities,
    pub family: Family,
    /// The server's number of the connection.
    pub connection_id: u32,
    /// The server's OK, not forwarded yet.
    pub ok: Vec<u8>,
    /// The last scramble, for COM_CHANGE_USER.
    pub scramble: Vec<u8>,
}

/// What a login needs of the configuration.
pub(crate) struct LoginSettings {
    backend: Backend,
    client_tls: Option<Arc<rustls::ServerConfig>>,
    backend_tls: BackendTls,
    trace: bool,
}

impl LoginSettings {
    pub fn of(config: &Config) -> Self {
        LoginSettings {
            backend: config.backend.clone(),
            client_tls: config.client_tls.clone(),
            backend_tls: config.backend_tls.clone(),
            trace: config.trace,
        }
    }
}

/// Lines for `--trace`: kinds and lengths, never content.
fn tracer(id: u64, peer: Peer) -> Tracer {
    let side = match peer {
        Peer::Client => "client",
        Peer::Server => "server",
    };
    let sink = Box::new(|line: &str| tracing::info!(target: "onionskin::wire", "{line}"));
    Tracer::new(format!("{id} {side}"), peer, sink)
}

/// Why there was no login.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginError {
    #[error("{0}")]
    Unreachable(io::Error),
    #[error("client: {0}")]
    Client(WireError),
    #[error("server: {0}")]
    Server(WireError),
    #[error("{0}")]
    Refused(&'static str),
}

/// Which method answers which scramble.
struct Method {
    plugin: String,
    scramble: Vec<u8>,
}

/// Logs a client in. `None`: the server refused, and the client was told.
pub(crate) fn login(
    client: Transport,
    id: u64,
    config: &LoginSettings,
) -> Result<Option<Login>, LoginError> {
    let mut client = Connection::new(client);
    if config.trace {
        client.set_tracer(Some(tracer(id, Peer::Client)));
    }
    let transport = match config.backend.connect() {
        Ok(transport) => transport,
        Err(error) => {
            let refusal = Refusal::new(&errors::BACKEND_REFUSED, "");
            send_error(&mut client, &refusal);
            return Err(LoginError::Unreachable(error));
        }
    };
    let mut server = Connection::new(transport);
    if config.trace {
        server.set_tracer(Some(tracer(id, Peer::Server)));
    }
    for connection in [&client, &server] {
        let _ = connection.transport().set_read_timeout(Some(PATIENCE));
    }
    let done = greet(&mut client, &mut server, config);
    let (negotiated, method, connection_id, family) = match done? {
        Some(done) => done,
        None => return Ok(None),
    };
    let (client_capabilities, server_capabilities) = negotiated;
    let Some((ok, method)) = relay_answers(&mut client, &mut server, method)? else {
        return Ok(None);
    };
    for connection in [&client, &server] {
        let _ = connection.transport().set_read_timeout(None);
    }
    Ok(Some(Login {
        client,
        server,
        client_capabilities,
        server_capabilities,
        family,
        connection_id,
        ok,
        scramble: method.scramble,
    }))
}

type Greeted = ((Capabilities, Capabilities), Method, u32, Family);

/// Everything up to the client's login on its way to the server.
fn greet(
    client: &mut Connection,
    server: &mut Connection,
    config: &LoginSettings,
) -> Result<Option<Greeted>, LoginError> {
    use LoginError::{Client, Server};
    let payload = server.read_payload().map_err(Server)?;
    if !InitialHandshake::is_handshake(payload) {
        // "too many connections", "host is blocked"
        let payload = payload.to_vec();
        client.write_payload(&payload).and_then(|()| client.flush()).map_err(Client)?;
        return Ok(None);
    }
    let mut greeting = InitialHandshake::decode(payload).map_err(Server)?;
    let offered = greeting.capabilities;
    let family = if greeting.is_mariadb() { Family::MariaDb } else { Family::MySql };
    greeting.capabilities &= Capabilities::SUPPORTED - Capabilities::SSL;
    if config.client_tls.is_some() {
        greeting.capabilities |= Capabilities::SSL;
    }
    greeting.mariadb_capabilities &= MariaDbCapabilities::SUPPORTED;
    greeting.encode(client.begin_payload()).map_err(Client)?;
    client.end_payload().and_then(|()| client.flush()).map_err(Client)?;

    let mut payload = client.read_payload().map_err(Client)?;
    if SslRequest::is_ssl_request(payload) {
        let Some(tls) = &config.client_tls else {
            return Err(LoginError::Refused("a client began TLS that was not offered"));
        };
        client.upgrade_server_tls(Arc::clone(tls)).map_err(Client)?;
        payload = client.read_payload().map_err(Client)?;
    }
    let mut answer = match HandshakeResponse41::decode(payload) {
        Ok(answer) => answer,
        Err(error) => {
            send_error(client, &Refusal::new(&errors::MALFORMED, "login"));
            return Err(Client(error));
        }
    };
    // clients are known to set bits that were not offered, and servers to believe them
    answer.capabilities &= greeting.capabilities - Capabilities::SSL;
    answer.mariadb_capabilities &= greeting.mariadb_capabilities;
    let client_capabilities = answer.capabilities;
    // the session's state must be known whether the client asks for it or not
    let always = Capabilities::SESSION_TRACK & offered;
    answer.capabilities |= always;
    secure_server(server, config, offered, &mut answer)?;
    let server_capabilities = answer.capabilities - Capabilities::SSL;
    let plugin = answer.auth_plugin.clone().unwrap_or_else(|| greeting.auth_plugin.clone());
    let plugin = String::from_utf8_lossy(&plugin).into_owned();
    let method = Method { plugin, scramble: greeting.auth_data.clone() };
    check_method(&method, client, server)?;
    answer.encode(server.begin_payload()).map_err(Server)?;
    server.end_payload().and_then(|()| server.flush()).map_err(Server)?;
    Ok(Some((
        (client_capabilities, server_capabilities),
        method,
        greeting.connection_id,
        family,
    )))
}

/// Goes on under TLS towards the server, if that is wanted.
fn secure_server(
    server: &mut Connection,
    config: &LoginSettings,
    offered: Capabilities,
    answer: &mut HandshakeResponse41,
) -> Result<(), LoginError> {
    let (tls, required) = match &config.backend_tls {
        BackendTls::Never => return Ok(()),
        BackendTls::IfOffered(tls) => (tls, false),
        BackendTls::Required(tls) => (tls, true),
    };
    if !offered.contains(Capabilities::SSL) {
        return if required {
            Err(LoginError::Refused("the server offers no TLS, which the configuration requires"))
        } else {
            Ok(())
        };
    }
    let name = ServerName::try_from(config.backend.host())
        .map_err(|_| LoginError::Refused("the server's name cannot be checked"))?;
    answer.capabilities |= Capabilities::SSL;
    answer.ssl_request().encode(server.begin_payload());
    server
        .end_payload()
        .and_then(|()| server.flush())
        .and_then(|()| server.upgrade_client_tls(Arc::clone(tls), name))
        .map_err(LoginError::Server)
}

/// Refuses methods that would show a password on a connection that everybody can read.
fn check_method(
    method: &Method,
    client: &mut Connection,
    server: &Connection,
) -> Result<(), LoginError> {
    let in_clear = method.plugin == MYSQL_CLEAR_PASSWORD || method.plugin == "dialog";
    let same = client.is_secure() == server.is_secure();
    let fine = if in_clear {
        client.is_secure() && server.is_secure()
    } else {
        method.plugin != "sha256_password" || same
    };
    if fine {
        return Ok(());
    }
    let refusal = Refusal::new(&errors::COMMAND, "a login method that needs TLS on both sides");
    send_error(client, &refusal);
    Err(LoginError::Refused("a login method that needs TLS on both sides"))
}

/// Relays what follows a login up to the server's OK, which is returned, or its refusal.
fn relay_answers(
    client: &mut Connection,
    server: &mut Connection,
    mut method: Method,
) -> Result<Option<(Vec<u8>, Method)>, LoginError> {
    use LoginError::{Client, Server};
    loop {
        let packet = server.read_payload().map_err(Server)?.to_vec();
        match packet.as_slice() {
            [0x00, ..] => return Ok(Some((packet, method))),
            [AuthSwitchRequest::HEADER, ..] => {
                let switch = AuthSwitchRequest::decode(&packet).map_err(Server)?;
                method = Method {
                    plugin: String::from_utf8_lossy(&switch.plugin).into_owned(),
                    scramble: switch.scramble().to_vec(),
                };
                check_method(&method, client, server)?;
            }
            [AuthMoreData::HEADER, data @ ..] if method.plugin == CACHING_SHA2_PASSWORD => {
                if data == AuthMoreData::FAST_AUTH_OK {
                    client.write_payload(&packet).map_err(Client)?;
                    continue;
                }
                if data == AuthMoreData::FULL_AUTH && client.is_secure() != server.is_secure() {
                    client.write_payload(&packet).and_then(|()| client.flush()).map_err(Client)?;
                    translate_password(client, server, &method)?;
                    continue;
                }
            }
            [AuthMoreData::HEADER, ..] => {}
            _ => {
                // an error, or something that no login has
                client.write_payload(&packet).and_then(|()| client.flush()).map_err(Client)?;
                return Ok(None);
            }
        }
        client.write_payload(&packet).and_then(|()| client.flush()).map_err(Client)?;
        let answer = Zeroizing::new(client.read_payload().map_err(Client)?.to_vec());
        server.write_payload(&answer).and_then(|()| server.flush()).map_err(Server)?;
    }
}

/// Full `caching_sha2_password` authentication between a secure and an insecure connection.
fn translate_password(
    client: &mut Connection,
    server: &mut Connection,
    method: &Method,
) -> Result<(), LoginError> {
    use LoginError::{Client, Server};
    if client.is_secure() {
        // in clear from the client, under the server's key to the server
        let clear = Zeroizing::new(client.read_payload().map_err(Client)?.to_vec());
        let password = clear.strip_suffix(&[0]).unwrap_or(&clear);
        server
            .write_payload(AuthMoreData::REQUEST_PUBLIC_KEY)
            .and_then(|()| server.flush())
            .map_err(Server)?;
        let packet = server.read_payload().map_err(Server)?;
        let key = AuthMoreData::decode(packet).map_err(Server)?;
        let encrypted = encrypt_password(password, &method.scramble, key.data).map_err(Server)?;
        return server.write_payload(&encrypted).and_then(|()| server.flush()).map_err(Server);
    }
    // under a key of ours from the client, in clear over the secure connection to the server
    let key = own_key()?;
    let mut answer = client.read_payload().map_err(Client)?.to_vec();
    if answer == AuthMoreData::REQUEST_PUBLIC_KEY {
        AuthMoreData { data: key.public_pem().as_bytes() }.encode(client.begin_payload());
        client.end_payload().and_then(|()| client.flush()).map_err(Client)?;
        answer = client.read_payload().map_err(Client)?.to_vec();
    }
    let password =
        Zeroizing::new(key.decrypt_password(&answer, &method.scramble).map_err(Client)?);
    let clear = Zeroizing::new(cleartext_password(&password));
    server.write_payload(&clear).and_then(|()| server.flush()).map_err(Server)
}

/// The proxy's RSA key, made when it is first needed.
fn own_key() -> Result<&'static PasswordKey, LoginError> {
    static KEY: OnceLock<PasswordKey> = OnceLock::new();
    if let Some(key) = KEY.get() {
        return Ok(key);
    }
    let key = PasswordKey::generate().map_err(LoginError::Server)?;
    Ok(KEY.get_or_init(|| key))
}

/// Relays COM_CHANGE_USER. Returns the server's OK, not forwarded yet; `None` when the server
/// refused, after which it closes the connection.
pub(crate) fn change_user(
    client: &mut Connection,
    server: &mut Connection,
    payload: &[u8],
    client_capabilities: Capabilities,
    server_capabilities: Capabilities,
    scramble: &mut Vec<u8>,
) -> Result<Option<Vec<u8>>, LoginError> {
    let message =
        ComChangeUser::decode(payload, client_capabilities).map_err(LoginError::Client)?;
    let plugin = message.auth_plugin.clone().unwrap_or_default();
    let plugin = String::from_utf8_lossy(&plugin).into_owned();
    let method = Method { plugin, scramble: scramble.clone() };
    check_method(&method, client, server)?;
    server.reset_sequence();
    message.encode(server.begin_payload(), server_capabilities).map_err(LoginError::Server)?;
    server.end_payload().and_then(|()| server.flush()).map_err(LoginError::Server)?;
    match relay_answers(client, server, method)? {
        Some((ok, method)) => {
            *scramble = method.scramble;
            Ok(Some(ok))
        }
        None => Ok(None),
    }
}

fn send_error(client: &mut Connection, refusal: &Refusal) {
    let state = refusal.entry.state.as_bytes().try_into().unwrap_or(*b"HY000");
    let mut packet = Vec::new();
    ErrPacket::new(refusal.entry.number, state, refusal.message().into_bytes()).encode(&mut packet);
    let _ = client.write_payload(&packet).and_then(|()| client.flush());
}
