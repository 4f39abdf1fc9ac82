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
//! | secure | secure | passes the password on, if the server is known to be the right one |
//! | not | not | passes the server's RSA key and the encrypted password on |
//! | secure | not | encrypts the password under the server's RSA key, if that is configured |
//! | not | secure | shows the client an RSA key of its own, and decrypts the password; then as in the first line |
//!
//! A server is known to be the right one at the other end of a Unix socket, and under TLS with a certificate that was
//! verified (`password`). `mysql_clear_password` needs that and a secure client. So do methods that are not known here, with a client that is secure; between
//! two legs that are not secure they are passed on.
//!
//! Clients put an answer into their login before they know the account's method. Unless that answer can only be one to the
//! scramble, it is withheld: the server then asks for the account's method as if the client had answered with another.
//!
//! # Time
//!
//! A login has one deadline, from the moment that the client was accepted. Within it, each answer of the client's has one, too: servers wait
//! for ten seconds by default. A login that the client breaks off is ended by the proxy, so that the server does not count it (`excuse`).

mod authenticate;
mod excuse;
mod method;
mod pace;
mod password;

use std::io;
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use onionskin_plan::{Refusal, errors};
use onionskin_value::Family;
use onionskin_wire::auth::{LinkTrust, MYSQL_NATIVE_PASSWORD, PasswordKey};
use onionskin_wire::messages::{
    ComChangeUser, ErrPacket, HandshakeResponse41, InitialHandshake, SslRequest,
};
use onionskin_wire::packets::DEFAULT_MAX_PAYLOAD;
use onionskin_wire::trace::{Peer, Tracer};
use onionskin_wire::{
    Capabilities, Connection, Deadline, MariaDbCapabilities, Transport, WireError, WireResult,
};
use rustls::ServerConfig;
use zeroize::Zeroizing;

use crate::config::{Backend, BackendTls, Config};
use crate::error::{Failure, Outcome};
use crate::keep_alive::keep_alive;
use excuse::Owed;
use method::{Method, is_for_clients, withhold};

pub(crate) use pace::Pace;

/// How long a change of user may take as a whole.
const CHANGE_OF_USER: Duration = Duration::from_secs(30);
/// How long a connection to one of the server's addresses may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a client may take for each of its answers, TLS included: less than servers wait, which by default is 10 seconds.
const ANSWER: Duration = Duration::from_secs(8);
/// The same while others wait for their turn to log in.
const HURRIED_ANSWER: Duration = Duration::from_secs(1);
/// How long it may take to tell a client why it is not logged in.
const LAST_WORD: Duration = Duration::from_secs(1);
/// Longest packet of a login, so that who is not logged in cannot fill the memory. It leaves room for what servers take of connection
/// attributes, which is a little less; more of them they count as a broken greeting.
const MAX_PACKET: usize = 64 << 10;

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
    trust: LinkTrust,
    trace: bool,
}

/// When a login must be done.
#[derive(Clone)]
pub(crate) struct Timing {
    /// All of it.
    pub whole: Instant,
    /// By which others who wait for their turn hurry or end it.
    pub pace: Option<Arc<Pace>>,
}

impl LoginSettings {
    /// Takes it out of a configuration.
    pub fn of(config: &Config) -> Self {
        Self {
            backend: config.backend.clone(),
            client_tls: config.client_tls.clone(),
            backend_tls: config.backend_tls.clone(),
            trust: config.trust(),
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

impl LoginError {
    /// The client's time is over.
    pub fn is_too_slow(&self) -> bool {
        matches!(self, LoginError::Client(e) if e.is_timeout())
    }
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
const CLEAR_PASSWORD: &str = "mysql_clear_password needs TLS between client and proxy, and a Unix socket between proxy and server or backend_tls = \"verify\" with backend_ca";
const STRANGE_ANSWER: &str =
    "the answer to the server's scramble has a length that the login method does not know";
const STRANGE_CHARSET: &str = "a client cannot have the character set that the login asks for";

/// Connects to the server and has it log the client in. `Ok(None)`: the server refused, and the client was told so;
/// or the client left.
pub(crate) fn login(
    client: Transport,
    session: u64,
    settings: &LoginSettings,
    timing: &Timing,
) -> LoginResult<Option<Login>> {
    let mut client = Connection::new(client);
    if settings.trace {
        client.set_tracer(Some(tracer("client", session, Peer::Client)));
    }
    match relay_login(&mut client, session, settings, timing) {
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
    trust: LinkTrust,
    client_capabilities: Capabilities,
    server_capabilities: Capabilities,
) -> Outcome<Option<Vec<u8>>> {
    let done = relay_change_user(
        client,
        server,
        payload,
        trust,
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
        LoginError::Refused(text @ (BAD_HANDSHAKE | STRANGE_ANSWER | STRANGE_CHARSET)) => {
            of_table(&errors::MALFORMED, text)
        }
        // the number of ER_NOT_SUPPORTED_AUTH_MODE, which clients know
        LoginError::Refused(text) => of_table(&errors::LOGIN, text),
    };
    if client.sequence() == 0 {
        // Nobody has agreed on protocol 4.1 yet: servers leave the state out here, and clients show it as text.
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
    timing: &Timing,
) -> LoginResult<Option<(Connection, Agreed, Vec<u8>)>> {
    let transport = connect(&settings.backend, timing.whole).map_err(LoginError::Unreachable)?;
    if let Transport::Tcp(socket) = &transport {
        keep_alive(socket).map_err(LoginError::Unreachable)?;
    }
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
            let done = relay_greeted(&mut legs, settings, &greeting, wants_tls);
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

/// Connects to the server; its name's addresses are asked for within the same time.
fn connect(backend: &Backend, whole: Instant) -> io::Result<Transport> {
    let left = || whole.saturating_duration_since(Instant::now());
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

/// What the system is asked for without a time limit of its own. After that the thread that asks is left alone; it ends by itself.
fn within<T: Send + 'static>(
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

/// The login from the server's greeting on.
fn relay_greeted(
    legs: &mut Legs<'_>,
    settings: &LoginSettings,
    greeting: &InitialHandshake,
    wants_tls: bool,
) -> LoginResult<Option<(Agreed, Vec<u8>)>> {
    let offered = settings.offer(greeting.capabilities);
    legs.greet(&InitialHandshake {
        capabilities: offered,
        mariadb_capabilities: MariaDbCapabilities::SUPPORTED,
        ..greeting.clone()
    })?;
    let mut response = legs.read_response(settings)?;
    let client_capabilities = response.capabilities & offered;
    if !client_capabilities.contains(Capabilities::SECURE_CONNECTION) {
        return Err(LoginError::Refused(OLD_CLIENT));
    }
    if !is_for_clients(response.charset) {
        return Err(LoginError::Refused(STRANGE_CHARSET));
    }

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
    response.database = response.database.filter(|name| !name.is_empty());
    // A name that is ill-formed in its character set MariaDB counts as a broken greeting: it is asked for afterwards.
    let later = response.database.take_if(|name| !name.is_ascii());
    legs.write_server(|out| response.encode(out))?;
    legs.owed = Owed::Nothing;

    let user = text(&response.username);
    let scramble = greeting.auth_data.clone();
    let Some(ok) = legs.authenticate(method, scramble, named)? else {
        return Ok(None);
    };
    if let Some(name) = &later
        && !legs.use_database(name)?
    {
        return Ok(None);
    }
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
        database: response.database.or(later).map(|name| text(&name)),
        charset: response.charset,
    };
    Ok(Some((agreed, ok)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn relay_change_user(
    client: &mut Connection,
    server: &mut Connection,
    payload: &[u8],
    trust: LinkTrust,
    client_capabilities: Capabilities,
    server_capabilities: Capabilities,
) -> LoginResult<Verdict> {
    let mut command =
        ComChangeUser::decode(payload, client_capabilities).map_err(LoginError::Client)?;
    let timing = Timing {
        whole: Instant::now() + CHANGE_OF_USER,
        pace: None,
    };
    let mut legs = Legs::new(client, server, timing, trust);
    let named = client_capabilities.contains(Capabilities::PLUGIN_AUTH);
    let mut method = legs.first_method(named, &mut command.auth_plugin, &mut command.auth_response);
    if method == Method::CachingSha2 && !legs.are_alike() {
        // To encrypt a password takes the scramble, so have the server send one.
        withhold(&mut command.auth_plugin, &mut command.auth_response);
        method = Method::Withheld;
    }
    legs.server.reset_sequence();
    legs.write_server(|out| command.encode(out, server_capabilities))?;
    let verdict = legs.authenticate(method, Vec::new(), named);
    if let Err(LoginError::Client(_) | LoginError::Refused(_)) = &verdict {
        legs.excuse_change();
    }
    let verdict = verdict?;
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
            (BackendTls::Required(_) | BackendTls::Verified(_), _) if offered => Ok(true),
            (BackendTls::Required(_) | BackendTls::Verified(_), _) => {
                Err(LoginError::Refused(SERVER_WITHOUT_TLS))
            }
        }
    }
}

// --- both sides ---

/// Client and server during a login.
struct Legs<'a> {
    client: &'a mut Connection,
    server: &'a mut Connection,
    /// When all of it must be done.
    whole: Instant,
    pace: Option<Arc<Pace>>,
    trust: LinkTrust,
    /// What the server waits for, so that it gets something should the client fail.
    owed: Owed,
}

impl<'a> Legs<'a> {
    fn new(
        client: &'a mut Connection,
        server: &'a mut Connection,
        timing: Timing,
        trust: LinkTrust,
    ) -> Self {
        client.set_max_payload(MAX_PACKET);
        server.set_max_payload(MAX_PACKET);
        Self {
            client,
            server,
            whole: timing.whole,
            pace: timing.pace,
            trust,
            owed: Owed::Nothing,
        }
    }

    /// Takes the limits of a login away.
    fn end(&mut self) -> LoginResult<()> {
        self.client.set_max_payload(DEFAULT_MAX_PAYLOAD);
        self.server.set_max_payload(DEFAULT_MAX_PAYLOAD);
        self.client.set_deadline(None).map_err(LoginError::Client)?;
        self.server.set_deadline(None).map_err(LoginError::Server)
    }

    /// When the client must have answered, if its turn begins now.
    fn turn(&self) -> Deadline {
        let now = Instant::now();
        let deadline = Deadline::at(self.whole.min(now + ANSWER));
        match &self.pace {
            Some(pace) => deadline.or_if(pace.flag(), now + HURRIED_ANSWER),
            None => deadline,
        }
    }

    fn limit_client(&mut self, deadline: Deadline) -> LoginResult<()> {
        self.client
            .set_deadline(Some(deadline))
            .map_err(LoginError::Client)
    }

    fn limit_server(&mut self, deadline: Deadline) -> LoginResult<()> {
        self.server
            .set_deadline(Some(deadline))
            .map_err(LoginError::Server)
    }

    fn are_alike(&self) -> bool {
        self.client.is_secure() == self.server.is_secure()
    }

    fn read_client(&mut self) -> LoginResult<Secret> {
        let turn = self.turn();
        self.limit_client(turn)?;
        self.waits(true)?;
        let answer = read(self.client).map_err(LoginError::Client);
        self.goes_on()?;
        answer
    }

    /// It waits for the client from now on, and may lose its place.
    fn waits(&self, has_answered: bool) -> LoginResult<()> {
        let waits = |pace: &Arc<Pace>| pace.waits(Instant::now(), has_answered);
        match self.pace.as_ref().is_none_or(waits) {
            true => Ok(()),
            false => Err(LoginError::Client(timed_out())),
        }
    }

    /// The client has answered; an error if that was too late.
    fn goes_on(&self) -> LoginResult<()> {
        match self.pace.as_ref().is_none_or(|pace| pace.goes_on()) {
            true => Ok(()),
            false => Err(LoginError::Client(timed_out())),
        }
    }

    fn read_server(&mut self) -> LoginResult<Vec<u8>> {
        self.limit_server(Deadline::at(self.whole))?;
        read(self.server)
            .map(|mut payload| std::mem::take(&mut *payload))
            .map_err(LoginError::Server)
    }

    fn write_client(&mut self, payload: &[u8]) -> LoginResult<()> {
        let turn = self.turn();
        self.limit_client(turn)?;
        write(self.client, payload).map_err(LoginError::Client)
    }

    fn send_server(&mut self, payload: &[u8]) -> LoginResult<()> {
        self.limit_server(Deadline::at(self.whole))?;
        write(self.server, payload).map_err(LoginError::Server)?;
        self.owed = Owed::Nothing;
        Ok(())
    }

    fn write_server(
        &mut self,
        encode: impl FnOnce(&mut Vec<u8>) -> WireResult<()>,
    ) -> LoginResult<()> {
        let mut payload = Zeroizing::new(Vec::new());
        // What cannot be told to the server is the fault of what the client sent.
        encode(&mut payload).map_err(LoginError::Client)?;
        let owed = self.owed;
        self.send_server(&payload)?;
        // A request for TLS is not yet what is owed.
        self.owed = owed;
        Ok(())
    }

    fn greet(&mut self, greeting: &InitialHandshake) -> LoginResult<()> {
        let mut payload = Vec::new();
        greeting.encode(&mut payload).map_err(LoginError::Server)?;
        self.write_client(&payload)
    }

    /// Reads the client's login, after TLS if it asks for it: all of that is one turn.
    fn read_response(&mut self, settings: &LoginSettings) -> LoginResult<HandshakeResponse41> {
        self.waits(false)?;
        let response = self.read_response_in_turn(settings);
        self.goes_on()?;
        response
    }

    fn read_response_in_turn(
        &mut self,
        settings: &LoginSettings,
    ) -> LoginResult<HandshakeResponse41> {
        let turn = self.turn();
        self.limit_client(turn)?;
        let mut payload = read(self.client).map_err(LoginError::Client)?;
        if SslRequest::is_ssl_request(&payload) {
            let Some(config) = &settings.client_tls else {
                return Err(LoginError::Refused(BAD_HANDSHAKE));
            };
            // The login under TLS says all of it again.
            SslRequest::decode(&payload).map_err(LoginError::Client)?;
            self.waits(true)?;
            self.client
                .upgrade_server_tls(config.clone())
                .map_err(LoginError::Client)?;
            payload = read(self.client).map_err(LoginError::Client)?;
        }
        HandshakeResponse41::decode(&payload).map_err(LoginError::Client)
    }

    /// Chooses a database that was left out of the login. False if the server refuses; the client has its error then.
    fn use_database(&mut self, name: &[u8]) -> LoginResult<bool> {
        const COM_INIT_DB: u8 = 2;
        self.server.reset_sequence();
        self.send_server(&[&[COM_INIT_DB], name].concat())?;
        let payload = self.read_server()?;
        if ErrPacket::is_err(&payload) {
            self.write_client(&payload)?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Goes on under TLS with the server, and makes the login say so.
    fn upgrade_server(
        &mut self,
        settings: &LoginSettings,
        response: &mut HandshakeResponse41,
    ) -> LoginResult<()> {
        let (BackendTls::IfOffered(config)
        | BackendTls::Required(config)
        | BackendTls::Verified(config)) = &settings.backend_tls
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
        self.server
            .upgrade_client_tls(config.clone(), name)
            .map_err(LoginError::Server)
    }

    /// The method of the client's first answer, which is taken out of the login unless it can only be one to the scramble.
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
            method @ (Method::Native | Method::CachingSha2) if method.accepts(answer) => method,
            _ => {
                withhold(plugin, answer);
                Method::Withheld
            }
        }
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

fn read(connection: &mut Connection) -> WireResult<Secret> {
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
