//! The login: relayed, so that users and passwords stay in the server.
//!
//! The server's greeting, with its scramble, goes to the client, and the client's answer to the server. What each method of
//! authentication needs then goes back and forth. The proxy has no user list and never learns a password, except in the
//! cases marked below, where it must pass one on under another encryption than it came in.
//!
//! Two things differ between the legs:
//!
//! - **Capabilities.** A client is offered what the server offers and the proxy can read. The server is told what
//!   the client chose and what the proxy needs itself ([`NEEDED`]).
//! - **TLS.** Each leg has it or not, independently; sequence numbers differ accordingly, and [`Connection`] counts each.
//!
//! # Methods on legs that are not alike
//!
//! A method that only answers a scramble is passed on as it is, whatever the legs: `mysql_native_password`,
//! `client_ed25519`, `parsec`, and the fast path of `caching_sha2_password`. Where a method asks for the password itself, it is
//! sent in the clear over a secure leg (TLS; for `caching_sha2_password` also a Unix socket), and encrypted under an RSA
//! key over others:
//!
//! | client's leg | server's leg | the proxy |
//! |---|---|---|
//! | secure | secure | passes the password on |
//! | not | not | passes the server's RSA key and the encrypted password on |
//! | secure | not | asks the server for its RSA key and encrypts the password |
//! | not | secure | shows the client an RSA key of its own, and decrypts the password |
//!
//! `mysql_clear_password` needs two secure legs. Methods that are not known here are passed on if the legs are equally
//! secure, and refused if not: nobody knows what they rely on.
//!
//! Clients put an answer into their login before they know the account's method. Where that answer could be a password, it is
//! withheld: the server then asks for the account's method as if the client had answered with another.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use onionskin_plan::{Refusal, errors};
use onionskin_value::Family;
use onionskin_wire::auth::{
    CACHING_SHA2_PASSWORD, MYSQL_CLEAR_PASSWORD, MYSQL_NATIVE_PASSWORD, PasswordKey,
    cleartext_password, encrypt_password,
};
use onionskin_wire::messages::{
    AuthMoreData, AuthSwitchRequest, ComChangeUser, ErrPacket, HandshakeResponse41,
    InitialHandshake, OkPacket, SslRequest,
};
use onionskin_wire::packets::DEFAULT_MAX_PAYLOAD;
use onionskin_wire::trace::{Peer, Tracer};
use onionskin_wire::{
    Capabilities, Connection, MariaDbCapabilities, Transport, WireError, WireResult,
};
use rustls::ServerConfig;
use zeroize::Zeroizing;

use crate::config::{Backend, BackendTls, Config};
use crate::error::{Failure, Outcome};
use crate::listener::keep_alive;

/// How long a login may take as a whole, and a TLS handshake may wait for each answer.
const TIME: Duration = Duration::from_secs(30);
/// How long a client may take for its answer to the greeting: less than servers wait, which by default is 10 seconds.
const FIRST_ANSWER: Duration = Duration::from_secs(8);
/// How long it may take to tell the server that nobody logs in.
const EXCUSE: Duration = Duration::from_secs(2);
/// Who then logs in: an account of this name should not be.
const NOBODY: &[u8] = b"onionskin: nobody";
/// `utf8mb4_general_ci`, which all supported servers know.
const UTF8MB4: u8 = 45;
/// Longest packet of a login, so that who is not logged in cannot fill the memory. Connection attributes have 64 KiB.
const MAX_PACKET: usize = 1 << 20;
/// How long to listen to one side before the other, where either may speak.
const TURN: Duration = Duration::from_millis(5);

/// What the proxy asks of the server whatever the client chose. Results are not formed differently by these, or are made to fit
/// when they are passed on.
const NEEDED: Capabilities = Capabilities::PROTOCOL_41
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(Capabilities::SESSION_TRACK)
    .union(Capabilities::MULTI_RESULTS)
    .union(Capabilities::PS_MULTI_RESULTS);

/// The part of the configuration that logins depend on.
pub(crate) struct LoginSettings {
    backend: Backend,
    client_tls: Option<Arc<ServerConfig>>,
    backend_tls: BackendTls,
    trace: bool,
}

impl LoginSettings {
    /// Takes it out of a configuration.
    pub fn of(config: &Config) -> Self {
        Self {
            backend: config.backend.clone(),
            client_tls: config.client_tls.clone(),
            backend_tls: config.backend_tls.clone(),
            trace: config.trace,
        }
    }
}

/// A client and a server that have agreed; only the client does not know yet.
pub(crate) struct Login {
    pub client: Connection,
    pub server: Connection,
    /// What the client negotiated with us.
    pub client_capabilities: Capabilities,
    /// What we negotiated with the server.
    pub server_capabilities: Capabilities,
    pub family: Family,
    /// As the server tells it, without the `5.5.5-` that MariaDB puts before it.
    pub server_version: String,
    pub connection_id: u32,
    pub user: String,
    pub database: Option<String>,
    /// Low byte of the collation that the client asked for.
    pub charset: u8,
    /// Payload of the server's last OK, not yet passed on. The client's sequence number is right for it.
    pub ok: Vec<u8>,
}

/// Why there was no login, besides a refusal by the server. The client has been told, if it could be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginError {
    #[error("client: {0}")]
    Client(WireError),
    #[error("server: {0}")]
    Server(WireError),
    #[error("server: cannot be reached: {0}")]
    Unreachable(std::io::Error),
    #[error("{0}")]
    Refused(&'static str),
}

type LoginResult<T> = Result<T, LoginError>;

/// The server's answer at the end: the payload of OK, or `None` for an error, which the client has been sent.
type Verdict = Option<Vec<u8>>;

/// An answer that may hold a password.
type Secret = Zeroizing<Vec<u8>>;

const SERVER_WITHOUT_TLS: &str = "TLS is required and the server does not offer it";
const BAD_HANDSHAKE: &str = "the login asks for TLS, which was not offered";
const OLD_CLIENT: &str = "the client does not support login methods of 4.1 and later";
const UNLIKE_LEGS: &str = "the login method relies on the security of the whole way, and only one of client and server is connected by TLS";
const CLEAR_PASSWORD: &str = "mysql_clear_password needs TLS between client and proxy, and TLS or a Unix socket between proxy and server";
const FOREIGN_KEY: &str = "the password is encrypted under a key that is not the proxy's";

/// Connects to the server and has it log the client in. `Ok(None)`: the server refused, and the client was told so;
/// or the client left.
pub(crate) fn login(
    client: Transport,
    session: u64,
    settings: &LoginSettings,
) -> LoginResult<Option<Login>> {
    let mut client = Connection::new(client);
    if settings.trace {
        client.set_tracer(Some(tracer("client", session, Peer::Client)));
    }
    match relay_login(&mut client, session, settings) {
        Ok(Some((server, agreed, ok))) => Ok(Some(Login {
            client,
            server,
            client_capabilities: agreed.client_capabilities,
            server_capabilities: agreed.server_capabilities,
            family: agreed.family,
            server_version: agreed.server_version,
            connection_id: agreed.connection_id,
            user: agreed.user,
            database: agreed.database,
            charset: agreed.charset,
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

/// Relays COM_CHANGE_USER with all that follows. `payload` is the command, which was just read from the client.
///
/// The server's OK is returned, not passed on. `None`: the server refused, and the client was told so. MySQL then closes the
/// connection; MariaDB leaves it open for the user that it had, with everything else reset.
pub(crate) fn change_user(
    client: &mut Connection,
    server: &mut Connection,
    payload: &[u8],
    client_capabilities: Capabilities,
    server_capabilities: Capabilities,
) -> Outcome<Option<Vec<u8>>> {
    let done = relay_change_user(
        client,
        server,
        payload,
        client_capabilities,
        server_capabilities,
    );
    match done {
        Ok(verdict) => Ok(verdict),
        Err(LoginError::Client(e)) => Err(Failure::Client(e)),
        Err(LoginError::Server(e)) => Err(Failure::Backend(e)),
        Err(error) => {
            // The server waits in the middle of a login; it can be used for nothing else.
            tracing::info!(%error, "no change of user");
            tell(client, &error);
            Err(Failure::Client(WireError::Closed))
        }
    }
}

/// Tells the client why it is not logged in. That it is gone by now is no further error.
fn tell(client: &mut Connection, error: &LoginError) {
    let mut packet = match error {
        // It is too slow, or gone.
        LoginError::Client(e) if e.is_timeout() || e.is_disconnect() => return,
        LoginError::Client(WireError::Io(_) | WireError::Tls(_)) => return,
        LoginError::Client(_) => of_table(&errors::MALFORMED, ""),
        LoginError::Server(WireError::Tls(_)) => of_table(&errors::BACKEND_REFUSED, "TLS"),
        LoginError::Server(_) | LoginError::Unreachable(_) => {
            of_table(&errors::BACKEND_REFUSED, "")
        }
        LoginError::Refused(SERVER_WITHOUT_TLS) => {
            of_table(&errors::BACKEND_REFUSED, SERVER_WITHOUT_TLS)
        }
        LoginError::Refused(BAD_HANDSHAKE) => of_table(&errors::MALFORMED, BAD_HANDSHAKE),
        // the number of ER_NOT_SUPPORTED_AUTH_MODE, which clients know
        LoginError::Refused(text) => of_table(&errors::LOGIN, text),
    };
    if client.sequence() == 0 {
        // Nobody has agreed on protocol 4.1 yet: servers leave the state out here, and clients show it as text.
        packet.sqlstate = None;
    }
    packet.encode(client.begin_payload());
    let _ = client.end_payload().and_then(|()| client.flush());
}

fn of_table(entry: &'static errors::Entry, about: &str) -> ErrPacket<'static> {
    let state = entry.state.as_bytes().try_into().unwrap_or(*b"HY000");
    let text = Refusal::new(entry, about).message();
    ErrPacket::new(entry.number, state, text.into_bytes())
}

fn tracer(who: &str, session: u64, peer: Peer) -> Tracer {
    let sink = Box::new(|line: &str| tracing::info!(target: "onionskin::wire", "{line}"));
    Tracer::new(format!("{who} {session}"), peer, sink)
}

// --- the greeting and its answer ---

/// What was settled before the authentication.
struct Agreed {
    client_capabilities: Capabilities,
    server_capabilities: Capabilities,
    family: Family,
    server_version: String,
    connection_id: u32,
    user: String,
    database: Option<String>,
    charset: u8,
}

fn relay_login(
    client: &mut Connection,
    session: u64,
    settings: &LoginSettings,
) -> LoginResult<Option<(Connection, Agreed, Vec<u8>)>> {
    let transport = settings
        .backend
        .connect()
        .map_err(LoginError::Unreachable)?;
    if let Transport::Tcp(socket) = &transport {
        keep_alive(socket).map_err(LoginError::Unreachable)?;
    }
    let mut server = Connection::new(transport);
    if settings.trace {
        server.set_tracer(Some(tracer("server", session, Peer::Server)));
    }
    let mut legs = Legs::new(client, &mut server)?;

    let payload = legs.read_server()?;
    if ErrPacket::is_err(&payload) {
        // Too many connections, a blocked host: the first packet that the client gets.
        legs.write_client(&payload)?;
        return Ok(None);
    }
    let greeting = InitialHandshake::decode(&payload).map_err(LoginError::Server)?;
    let wants_tls = settings.wants_backend_tls(greeting.capabilities)?;
    let offered = settings.offer(greeting.capabilities);
    legs.greet(&InitialHandshake {
        capabilities: offered,
        mariadb_capabilities: MariaDbCapabilities::SUPPORTED,
        ..greeting.clone()
    })?;
    let login = legs.read_response(settings).and_then(|response| {
        let capabilities = response.capabilities & offered;
        match capabilities.contains(Capabilities::SECURE_CONNECTION) {
            true => Ok((response, capabilities)),
            false => Err(LoginError::Refused(OLD_CLIENT)),
        }
    });
    let (mut response, client_capabilities) = match login {
        Ok(login) => login,
        Err(error) => {
            legs.excuse(settings, &greeting, wants_tls);
            return Err(error);
        }
    };

    response.mariadb_capabilities = MariaDbCapabilities::SUPPORTED;
    response.capabilities = (client_capabilities | NEEDED) & greeting.capabilities;
    if wants_tls {
        legs.upgrade_server(settings, &mut response)?;
    } else {
        response.capabilities.remove(Capabilities::SSL);
    }
    let server_capabilities = response.capabilities;
    let named = client_capabilities.contains(Capabilities::PLUGIN_AUTH);
    let method = legs.first_method(
        named,
        &mut response.auth_plugin,
        &mut response.auth_response,
    );
    legs.write_server(|out| response.encode(out))?;

    let (user, database) = (
        text(&response.username),
        response.database.as_deref().map(text),
    );
    let scramble = greeting.auth_data.clone();
    let Some(ok) = legs.authenticate(method, scramble, named)? else {
        return Ok(None);
    };
    legs.end()?;
    let agreed = Agreed {
        client_capabilities,
        server_capabilities,
        family: if greeting.is_mariadb() {
            Family::MariaDb
        } else {
            Family::MySql
        },
        server_version: text(
            greeting
                .server_version
                .strip_prefix(b"5.5.5-")
                .unwrap_or(&greeting.server_version),
        ),
        connection_id: greeting.connection_id,
        user,
        database: database.filter(|name| !name.is_empty()),
        charset: response.charset,
    };
    Ok(Some((server, agreed, ok)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn relay_change_user(
    client: &mut Connection,
    server: &mut Connection,
    payload: &[u8],
    client_capabilities: Capabilities,
    server_capabilities: Capabilities,
) -> LoginResult<Verdict> {
    let mut command =
        ComChangeUser::decode(payload, client_capabilities).map_err(LoginError::Client)?;
    let mut legs = Legs::new(client, server)?;
    let named = client_capabilities.contains(Capabilities::PLUGIN_AUTH);
    let mut method = legs.first_method(named, &mut command.auth_plugin, &mut command.auth_response);
    if method == Method::CachingSha2 && !legs.are_alike() {
        // To encrypt a password takes the scramble, so have the server send one.
        withhold(&mut command.auth_plugin, &mut command.auth_response);
        method = Method::Withheld;
    }
    legs.server.reset_sequence();
    legs.write_server(|out| command.encode(out, server_capabilities))?;
    let verdict = legs.authenticate(method, Vec::new(), named)?;
    legs.end()?;
    Ok(verdict)
}

impl LoginSettings {
    /// What the client is offered by a server that offers `greeted`.
    fn offer(&self, greeted: Capabilities) -> Capabilities {
        let mut offered = greeted & Capabilities::SUPPORTED;
        offered.set(Capabilities::SSL, self.client_tls.is_some());
        offered
    }

    fn wants_backend_tls(&self, greeted: Capabilities) -> LoginResult<bool> {
        let offered = greeted.contains(Capabilities::SSL);
        match (&self.backend_tls, &self.backend) {
            (BackendTls::Never, _) | (BackendTls::IfOffered(_), Backend::Unix(_)) => Ok(false),
            (BackendTls::IfOffered(_), Backend::Tcp { .. }) => Ok(offered),
            (BackendTls::Required(_), _) if offered => Ok(true),
            (BackendTls::Required(_), _) => Err(LoginError::Refused(SERVER_WITHOUT_TLS)),
        }
    }
}

// --- methods ---

/// How the messages of a login method are to be treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// One answer to a scramble: `mysql_native_password`, its predecessor, `client_ed25519`.
    Scramble,
    /// A first answer to a scramble, then perhaps the password.
    CachingSha2,
    /// The password at once, encrypted over all but TLS.
    Sha256,
    /// MariaDB's `parsec`: challenges and answers in turn, which no password can be read from.
    InTurn,
    /// The password itself.
    Clear,
    /// Any other.
    Unknown,
    /// The client's first answer was not passed on; the server must name a method.
    Withheld,
}

impl Method {
    fn of(plugin: &[u8]) -> Self {
        const NATIVE: &[u8] = MYSQL_NATIVE_PASSWORD.as_bytes();
        const CACHING: &[u8] = CACHING_SHA2_PASSWORD.as_bytes();
        const CLEAR: &[u8] = MYSQL_CLEAR_PASSWORD.as_bytes();
        match plugin {
            NATIVE | b"mysql_old_password" | b"client_ed25519" => Self::Scramble,
            CACHING => Self::CachingSha2,
            b"sha256_password" => Self::Sha256,
            b"parsec" => Self::InTurn,
            CLEAR => Self::Clear,
            _ => Self::Unknown,
        }
    }
}

/// Takes the client's first answer out of a login. No account has a method without a name, so the server asks for the right
/// one.
fn withhold(plugin: &mut Option<Vec<u8>>, answer: &mut Vec<u8>) {
    *plugin = Some(Vec::new());
    drop(Zeroizing::new(std::mem::take(answer)));
}

/// Client and server during a login.
struct Legs<'a> {
    client: &'a mut Connection,
    server: &'a mut Connection,
    deadline: Instant,
}

impl<'a> Legs<'a> {
    fn new(client: &'a mut Connection, server: &'a mut Connection) -> LoginResult<Self> {
        client.set_max_payload(MAX_PACKET);
        server.set_max_payload(MAX_PACKET);
        limit_writes(client, Some(TIME)).map_err(LoginError::Client)?;
        limit_writes(server, Some(TIME)).map_err(LoginError::Server)?;
        Ok(Self {
            client,
            server,
            deadline: Instant::now() + TIME,
        })
    }

    /// Takes the limits of a login away.
    fn end(&mut self) -> LoginResult<()> {
        self.client.set_max_payload(DEFAULT_MAX_PAYLOAD);
        self.server.set_max_payload(DEFAULT_MAX_PAYLOAD);
        limit_reads(self.client, None).map_err(LoginError::Client)?;
        limit_reads(self.server, None).map_err(LoginError::Server)?;
        limit_writes(self.client, None).map_err(LoginError::Client)?;
        limit_writes(self.server, None).map_err(LoginError::Server)
    }

    fn are_alike(&self) -> bool {
        self.client.is_secure() == self.server.is_secure()
    }

    fn read_client(&mut self) -> LoginResult<Secret> {
        read(self.client, self.deadline).map_err(LoginError::Client)
    }

    fn read_server(&mut self) -> LoginResult<Vec<u8>> {
        read(self.server, self.deadline)
            .map(|mut payload| std::mem::take(&mut *payload))
            .map_err(LoginError::Server)
    }

    fn write_client(&mut self, payload: &[u8]) -> LoginResult<()> {
        write(self.client, payload).map_err(LoginError::Client)
    }

    fn send_server(&mut self, payload: &[u8]) -> LoginResult<()> {
        write(self.server, payload).map_err(LoginError::Server)
    }

    fn write_server(
        &mut self,
        encode: impl FnOnce(&mut Vec<u8>) -> WireResult<()>,
    ) -> LoginResult<()> {
        let mut payload = Zeroizing::new(Vec::new());
        // What cannot be told to the server is the fault of what the client sent.
        encode(&mut payload).map_err(LoginError::Client)?;
        self.send_server(&payload)
    }

    fn greet(&mut self, greeting: &InitialHandshake) -> LoginResult<()> {
        let mut payload = Vec::new();
        greeting.encode(&mut payload).map_err(LoginError::Server)?;
        self.write_client(&payload)
    }

    /// Reads the client's login, after TLS if it asks for it.
    fn read_response(&mut self, settings: &LoginSettings) -> LoginResult<HandshakeResponse41> {
        let deadline = self.deadline;
        self.deadline = Instant::now() + FIRST_ANSWER;
        let response = self.read_response_in_time(settings);
        self.deadline = deadline;
        response
    }

    fn read_response_in_time(
        &mut self,
        settings: &LoginSettings,
    ) -> LoginResult<HandshakeResponse41> {
        let mut payload = self.read_client()?;
        if SslRequest::is_ssl_request(&payload) {
            let Some(config) = &settings.client_tls else {
                return Err(LoginError::Refused(BAD_HANDSHAKE));
            };
            // The login under TLS says all of it again.
            SslRequest::decode(&payload).map_err(LoginError::Client)?;
            self.client
                .upgrade_server_tls(config.clone())
                .map_err(LoginError::Client)?;
            payload = self.read_client()?;
        }
        HandshakeResponse41::decode(&payload).map_err(LoginError::Client)
    }

    /// Ends the server's greeting with a login that it refuses: nobody logs in.
    ///
    /// Servers count connections that break off in the greeting, and after `max_connect_errors` of them in a row they block the address, which is
    /// the proxy's: whoever can reach it, a balancer's health check or anybody, would keep all applications out. Refused logins they do not
    /// count.
    fn excuse(&mut self, settings: &LoginSettings, greeting: &InitialHandshake, wants_tls: bool) {
        self.deadline = Instant::now() + EXCUSE;
        // It goes as it may: the client is told about its own error.
        let _ = self.log_nobody_in(settings, greeting, wants_tls);
    }

    fn log_nobody_in(
        &mut self,
        settings: &LoginSettings,
        greeting: &InitialHandshake,
        wants_tls: bool,
    ) -> LoginResult<()> {
        let wrong = [0xff; 20];
        let mut login = HandshakeResponse41 {
            capabilities: NEEDED & greeting.capabilities,
            mariadb_capabilities: MariaDbCapabilities::empty(),
            max_packet_size: 1 << 24,
            charset: UTF8MB4,
            username: NOBODY.to_vec(),
            auth_response: wrong.to_vec(),
            database: None,
            auth_plugin: Some(MYSQL_NATIVE_PASSWORD.as_bytes().to_vec()),
            connect_attrs: None,
        };
        if wants_tls {
            self.upgrade_server(settings, &mut login)?;
        }
        self.write_server(|out| login.encode(out))?;
        // Methods ask for more at most twice.
        for _ in 0..3 {
            match self.read_server()?.first() {
                Some(&(AuthSwitchRequest::HEADER | AuthMoreData::HEADER)) => {
                    self.send_server(&wrong)?;
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Goes on under TLS with the server, and makes the login say so.
    fn upgrade_server(
        &mut self,
        settings: &LoginSettings,
        response: &mut HandshakeResponse41,
    ) -> LoginResult<()> {
        let (BackendTls::IfOffered(config) | BackendTls::Required(config)) = &settings.backend_tls
        else {
            return Ok(());
        };
        let name = settings
            .backend
            .server_name()
            .map_err(|e| LoginError::Unreachable(std::io::Error::other(e)))?;
        response.capabilities |= Capabilities::SSL;
        let request = response.ssl_request();
        self.write_server(|out| {
            request.encode(out);
            Ok(())
        })?;
        limit_reads(self.server, Some(TIME)).map_err(LoginError::Server)?;
        self.server
            .upgrade_client_tls(config.clone(), name)
            .map_err(LoginError::Server)
    }

    /// The method of the client's first answer, which is taken out of the login if it could be a password.
    fn first_method(
        &self,
        named: bool,
        plugin: &mut Option<Vec<u8>>,
        answer: &mut Vec<u8>,
    ) -> Method {
        let name = plugin.get_or_insert_default();
        if !named || name.is_empty() {
            // Clients that do not name their method have this one.
            *name = MYSQL_NATIVE_PASSWORD.into();
        }
        match Method::of(name) {
            method @ (Method::Scramble | Method::CachingSha2 | Method::InTurn) => method,
            Method::Sha256 | Method::Clear | Method::Unknown | Method::Withheld => {
                withhold(plugin, answer);
                Method::Withheld
            }
        }
    }

    // --- authentication ---

    /// Passes the messages of the methods on until the server says yes or no. The client's first answer, by `method` and to
    /// `scramble`, has been sent to the server.
    fn authenticate(
        &mut self,
        mut method: Method,
        mut scramble: Vec<u8>,
        named: bool,
    ) -> LoginResult<Verdict> {
        let mut next = None;
        loop {
            let payload = match next.take() {
                Some(payload) => payload,
                None if method == Method::Unknown => self.read_either()?,
                None => self.read_server()?,
            };
            match payload.first() {
                Some(&OkPacket::HEADER) => return Ok(Some(payload)),
                Some(&ErrPacket::HEADER) => {
                    self.write_client(&payload)?;
                    return Ok(None);
                }
                Some(&AuthSwitchRequest::HEADER) => {
                    if !named {
                        return Err(LoginError::Refused(OLD_CLIENT));
                    }
                    let switch = AuthSwitchRequest::decode(&payload).map_err(LoginError::Server)?;
                    method = Method::of(&switch.plugin);
                    scramble = switch.scramble().to_vec();
                    self.check(method)?;
                    self.write_client(&payload)?;
                    next = self.first_answer(method, &scramble)?;
                }
                _ => next = self.more_data(method, &payload, &scramble)?,
            }
        }
    }

    /// Refuses what would be passed on over a leg less secure than the other.
    fn check(&self, method: Method) -> LoginResult<()> {
        match method {
            Method::Clear if !(self.client.is_secure() && self.server.is_secure()) => {
                Err(LoginError::Refused(CLEAR_PASSWORD))
            }
            Method::Unknown if !self.are_alike() => Err(LoginError::Refused(UNLIKE_LEGS)),
            _ => Ok(()),
        }
    }

    /// The client's answer to a request to switch to `method`. If that took an exchange with the server that ended otherwise
    /// than expected, its packet is returned.
    fn first_answer(&mut self, method: Method, scramble: &[u8]) -> LoginResult<Option<Vec<u8>>> {
        match method {
            Method::Scramble | Method::CachingSha2 | Method::InTurn | Method::Clear => {
                let answer = self.read_client()?;
                self.send_server(&answer)?;
                Ok(None)
            }
            Method::Sha256 => {
                // Here a Unix socket does not count: clients and servers ask for TLS.
                let secure = (
                    self.client.transport().is_tls(),
                    self.server.transport().is_tls(),
                );
                self.relay_password(AuthMoreData::SHA256_REQUEST_PUBLIC_KEY, secure, scramble)
            }
            Method::Unknown | Method::Withheld => Ok(None),
        }
    }

    /// Data of the method from the server.
    fn more_data(
        &mut self,
        method: Method,
        payload: &[u8],
        scramble: &[u8],
    ) -> LoginResult<Option<Vec<u8>>> {
        match method {
            Method::CachingSha2 => {
                let more = AuthMoreData::decode(payload).map_err(LoginError::Server)?;
                self.write_client(payload)?;
                match more.data {
                    AuthMoreData::FAST_AUTH_OK => Ok(None),
                    AuthMoreData::FULL_AUTH => {
                        let secure = (self.client.is_secure(), self.server.is_secure());
                        self.relay_password(AuthMoreData::REQUEST_PUBLIC_KEY, secure, scramble)
                    }
                    _ => Err(LoginError::Server(WireError::Malformed(
                        "data of caching_sha2_password",
                    ))),
                }
            }
            Method::InTurn => {
                self.write_client(payload)?;
                let answer = self.read_client()?;
                self.send_server(&answer)?;
                Ok(None)
            }
            Method::Unknown => {
                self.write_client(payload)?;
                Ok(None)
            }
            Method::Scramble | Method::Sha256 | Method::Clear | Method::Withheld => Err(
                LoginError::Server(WireError::Malformed("data of a login method out of place")),
            ),
        }
    }

    /// Passes the password on, which the client sends now. `request` is how a method asks for an RSA key; `secure` tells
    /// of both legs, client first.
    ///
    /// Returns a packet of the server that is not the key it was asked for.
    fn relay_password(
        &mut self,
        request: &[u8],
        secure: (bool, bool),
        scramble: &[u8],
    ) -> LoginResult<Option<Vec<u8>>> {
        let answer = self.read_client()?;
        // An account without a password needs no protection for it.
        let blank = answer.is_empty() || answer[..] == [0];
        match secure {
            _ if blank => self.send_server(&answer)?,
            (true, true) => self.send_server(&answer)?,
            (false, false) => {
                self.send_server(&answer)?;
                if answer[..] == *request {
                    let key = self.read_server()?;
                    if key.first() != Some(&AuthMoreData::HEADER) {
                        return Ok(Some(key));
                    }
                    self.write_client(&key)?;
                    let encrypted = self.read_client()?;
                    self.send_server(&encrypted)?;
                }
            }
            (true, false) => {
                self.send_server(request)?;
                let payload = self.read_server()?;
                let Ok(key) = AuthMoreData::decode(&payload) else {
                    return Ok(Some(payload));
                };
                let password = answer.strip_suffix(&[0]).unwrap_or(&answer);
                let encrypted =
                    encrypt_password(password, scramble, key.data).map_err(LoginError::Server)?;
                self.send_server(&encrypted)?;
            }
            (false, true) => {
                let own = password_key().map_err(LoginError::Client)?;
                let mut encrypted = answer;
                if encrypted[..] == *request {
                    let mut key = Vec::new();
                    let data = own.public_pem().as_bytes();
                    AuthMoreData { data }.encode(&mut key);
                    self.write_client(&key)?;
                    encrypted = self.read_client()?;
                }
                // Otherwise it has a key already, hopefully ours from an earlier login.
                let password = own
                    .decrypt_password(&encrypted, scramble)
                    .map(Zeroizing::new)
                    .map_err(|_| LoginError::Refused(FOREIGN_KEY))?;
                self.send_server(&Zeroizing::new(cleartext_password(&password)))?;
            }
        }
        Ok(None)
    }

    /// The server's next packet; what the client says before it is passed on. For methods of which it is not known whose turn
    /// it is.
    fn read_either(&mut self) -> LoginResult<Vec<u8>> {
        while Instant::now() < self.deadline {
            match read(self.server, Instant::now() + TURN) {
                Err(e) if e.is_timeout() => {}
                Err(e) => return Err(LoginError::Server(e)),
                Ok(mut payload) => return Ok(std::mem::take(&mut *payload)),
            }
            match read(self.client, Instant::now() + TURN) {
                Err(e) if e.is_timeout() => {}
                Err(e) => return Err(LoginError::Client(e)),
                Ok(answer) => self.send_server(&answer)?,
            }
        }
        Err(LoginError::Client(timed_out()))
    }
}

/// The proxy's own RSA key, made when it is first needed.
fn password_key() -> WireResult<&'static PasswordKey> {
    static KEY: OnceLock<Option<PasswordKey>> = OnceLock::new();
    KEY.get_or_init(|| PasswordKey::generate().ok())
        .as_ref()
        .ok_or(WireError::Malformed("no RSA key could be made"))
}

// --- packets, one at a time, in time ---

fn timed_out() -> WireError {
    WireError::Io(std::io::ErrorKind::TimedOut.into())
}

fn limit_reads(connection: &Connection, limit: Option<Duration>) -> WireResult<()> {
    Ok(connection.transport().set_read_timeout(limit)?)
}

fn limit_writes(connection: &Connection, limit: Option<Duration>) -> WireResult<()> {
    Ok(connection.transport().set_write_timeout(limit)?)
}

fn read(connection: &mut Connection, deadline: Instant) -> WireResult<Secret> {
    if !connection.has_buffered_packet() {
        // A limit of zero would mean none.
        let left = deadline.saturating_duration_since(Instant::now());
        limit_reads(connection, Some(left.max(Duration::from_millis(1))))?;
    }
    connection
        .read_payload()
        .map(|payload| Zeroizing::new(payload.to_vec()))
}

fn write(connection: &mut Connection, payload: &[u8]) -> WireResult<()> {
    connection.write_payload(payload)?;
    connection.flush()
}

#[cfg(test)]
mod tests;
