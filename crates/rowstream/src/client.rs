//! A connection of our own to a server: login, statements in the text protocol, and the commands of
//! a replica.
//!
//! The proxy relays its clients' logins and needs none of this. Whoever follows the binlog has no
//! client, and has to log in by itself: with `mysql_native_password` and `caching_sha2_password`,
//! which all supported servers know. Under TLS the password's full check sends the password itself;
//! on a plain socket it is encrypted for the server's RSA key.

use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use onionskin_wire::auth::LinkTrust;
use onionskin_wire::messages::{
    AuthMoreData, AuthSwitchRequest, ColumnDefinition, ErrPacket, HandshakeResponse41,
    InitialHandshake, OkPacket,
};
use onionskin_wire::rows::{ResponseHead, RowPacket, TextRow};
use onionskin_wire::{
    Capabilities, Connection, DefinitionForm, MariaDbCapabilities, Socket, Transport, WireError,
    auth,
};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};

/// Bytes of memory that a cell of an answer takes beside its text.
const CELL: usize = size_of::<Option<Vec<u8>>>();
/// `utf8mb4_general_ci`, which all supported servers know.
const UTF8MB4: u8 = 45;
/// How long a server may take to answer during login and for a statement of ours.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one of its addresses may take to accept a connection.
const CONNECTING: Duration = Duration::from_secs(10);
/// After this long a network is taken for dead that acknowledges nothing: of what was sent, or of
/// the kernel's questions in silence.
const DEAD: Duration = Duration::from_secs(30);

/// Bytes and rows of a short answer: see [`Client::connect_within`].
const SHORT_BYTES: usize = 64 << 10;
const SHORT_ROWS: usize = 1000;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host and TCP port.
    Tcp {
        /// Name or address.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// Path of a Unix socket.
    Unix(PathBuf),
}

/// How to reach a server, and as whom.
#[derive(Clone)]
pub struct ConnectOptions {
    /// Where it listens.
    pub address: Address,
    /// Account name.
    pub user: String,
    /// Its password; empty for none.
    pub password: String,
    /// TLS for TCP; a server that does not offer it is then an error.
    /// `onionskin_wire::tls::client_config` makes one.
    pub tls: Option<Arc<ClientConfig>>,
    /// Why the server may be given the password, where the method sends it.
    pub trust: LinkTrust,
    /// The [`Client::identity`] that the server must have: a name may lead to one server now and to
    /// its replica later, whose binary log has other positions.
    pub identity: Option<String>,
}

impl std::fmt::Debug for ConnectOptions {
    /// Leaves out the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("address", &self.address)
            .field("user", &self.user)
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

/// Why a server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection failed, or what came over it made no sense.
    #[error("{0}")]
    Wire(#[from] WireError),
    /// The server refused something.
    #[error("the server says: {message} (error {code})")]
    Server {
        /// MySQL error number.
        code: u16,
        /// The server's text.
        message: String,
    },
    /// The account uses a login method that is not spoken here.
    #[error(
        "the account logs in with {0}; use an account with mysql_native_password or caching_sha2_password"
    )]
    Method(String),
    /// The method sends the password, and nothing says that the server is the right one.
    #[error(
        "the server asks for the password itself, and nothing proves that it is the right server: set backend_ca and \
         backend_tls = \"verify\" (\"required\" where the certificate names no host, as MySQL's own), reach it over a \
         Unix socket, or set backend_tls = \"never\" and name its public_key.pem in backend_rsa_key"
    )]
    Untrusted,
    /// TLS was asked for, and the server has none.
    #[error("the server offers no TLS")]
    NoTls,
    /// A server outside the supported families.
    #[error("the server is neither MySQL nor MariaDB: {0}")]
    UnknownServer(String),
    /// An answer is larger than the asker can use.
    #[error("the server's answer is larger than {rows} rows or {bytes} bytes")]
    TooMuch {
        /// Most rows of an answer.
        rows: usize,
        /// Most bytes of their cells.
        bytes: usize,
    },
    /// Another server answers than before.
    #[error("another server answers at this address: it is {found}, and not {expected}")]
    OtherServer {
        /// The one that was meant.
        expected: String,
        /// The one that is there.
        found: String,
    },
}

impl From<std::io::Error> for ClientError {
    fn from(error: std::io::Error) -> Self {
        Self::Wire(error.into())
    }
}

impl ClientError {
    fn of_packet(payload: &[u8]) -> Self {
        match ErrPacket::decode(payload) {
            Ok(error) => Self::Server {
                code: error.code,
                message: String::from_utf8_lossy(&error.message).into_owned(),
            },
            Err(error) => error.into(),
        }
    }
}

/// MySQL or MariaDB: they write different events and count transactions differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// MySQL and its relatives.
    MySql,
    /// MariaDB.
    MariaDb,
}

/// Rows of a statement: cells as the text protocol sends them.
pub type TextRows = Vec<Vec<Option<Vec<u8>>>>;

/// What a statement was answered with.
#[derive(Default)]
pub struct Answer {
    /// How many rows it affected, for a statement without a result.
    pub affected: u64,
    /// The names of the result's columns.
    pub names: Vec<String>,
    /// Its rows.
    pub rows: TextRows,
}

/// A connection that is logged in.
pub struct Client {
    connection: Connection,
    /// The connection's number on the server.
    id: u32,
    capabilities: Capabilities,
    deprecate_eof: bool,
    version: String,
    family: Family,
    /// Most rows of an answer, and most bytes of its cells.
    largest: (usize, usize),
}

impl Client {
    /// Connects and logs in; `autocommit` and character set are the server's defaults with utf8mb4.
    pub fn connect(options: &ConnectOptions) -> Result<Self, ClientError> {
        Self::connect_in(options, CONNECTING, PATIENCE)
    }

    /// The same with a server that has to accept, and to give each of its answers, in this time.
    /// For short answers: a longer one is an error, whatever the server is up to.
    pub fn connect_within(options: &ConnectOptions, limit: Duration) -> Result<Self, ClientError> {
        let mut client = Self::connect_in(options, limit.min(CONNECTING), limit)?;
        client.set_largest_answer(SHORT_ROWS, SHORT_BYTES);
        Ok(client)
    }

    fn connect_in(
        options: &ConnectOptions,
        connecting: Duration,
        patience: Duration,
    ) -> Result<Self, ClientError> {
        let (transport, name) = match &options.address {
            Address::Tcp { host, port } => {
                let stream = dial(host, *port, connecting)?;
                (Transport::tcp(stream)?, host.as_str())
            }
            Address::Unix(path) => (Transport::Unix(UnixStream::connect(path)?), "localhost"),
        };
        transport.set_read_timeout(Some(patience))?;
        let mut connection = Connection::new(transport);
        let greeting = connection.read_payload()?;
        if ErrPacket::is_err(greeting) {
            return Err(ClientError::of_packet(greeting));
        }
        let greeting = InitialHandshake::decode(greeting)?;
        let version = String::from_utf8_lossy(&greeting.server_version).into_owned();
        let family = match greeting.is_mariadb() || version.contains("MariaDB") {
            true => Family::MariaDb,
            false => Family::MySql,
        };
        let wanted = Capabilities::LONG_PASSWORD
            | Capabilities::LONG_FLAG
            | Capabilities::PROTOCOL_41
            | Capabilities::TRANSACTIONS
            | Capabilities::SECURE_CONNECTION
            | Capabilities::PLUGIN_AUTH
            | Capabilities::DEPRECATE_EOF;
        let mut login = HandshakeResponse41 {
            // What this bit means depends on the family; set, it asks for nothing.
            capabilities: wanted & (greeting.capabilities | Capabilities::LONG_PASSWORD),
            mariadb_capabilities: MariaDbCapabilities::empty(),
            max_packet_size: 1 << 30,
            charset: UTF8MB4,
            username: options.user.clone().into_bytes(),
            auth_response: Vec::new(),
            database: None,
            auth_plugin: None,
            connect_attrs: None,
        };
        if let (Some(tls), Address::Tcp { .. }) = (&options.tls, &options.address) {
            if !greeting.capabilities.contains(Capabilities::SSL) {
                return Err(ClientError::NoTls);
            }
            let name = ServerName::try_from(name.to_owned())
                .map_err(|_| WireError::Malformed("host name"))?;
            login.capabilities |= Capabilities::SSL;
            login.ssl_request().encode(connection.begin_payload());
            connection.end_payload()?;
            connection.flush()?;
            connection.upgrade_client_tls(Arc::clone(tls), name)?;
        }
        let password = options.password.as_bytes();
        let mut method = greeting.auth_plugin.clone();
        let mut scramble = scramble_of(&greeting.auth_data).to_vec();
        // A method that is not known yet may be changed by the server's next word.
        if let Some(answer) = first_answer(&method, password, &scramble) {
            login.auth_response = answer;
        } else {
            method = auth::MYSQL_NATIVE_PASSWORD.as_bytes().to_vec();
            login.auth_response = auth::native_password(password, &scramble);
        }
        login.auth_plugin = Some(method.clone());
        login.encode(connection.begin_payload())?;
        connection.end_payload()?;
        connection.flush()?;
        loop {
            let payload = connection.read_payload()?.to_vec();
            match payload.first() {
                Some(0x00) => break,
                Some(&ErrPacket::HEADER) => return Err(ClientError::of_packet(&payload)),
                Some(&AuthSwitchRequest::HEADER) => {
                    let switch = AuthSwitchRequest::decode(&payload)?;
                    method = switch.plugin.clone();
                    scramble = switch.scramble().to_vec();
                    let answer = first_answer(&method, password, &scramble).ok_or_else(|| {
                        ClientError::Method(String::from_utf8_lossy(&method).into_owned())
                    })?;
                    connection.write_payload(&answer)?;
                    connection.flush()?;
                }
                Some(&AuthMoreData::HEADER) => {
                    let data = AuthMoreData::decode(&payload)?.data.to_vec();
                    let trust = &options.trust;
                    full_authentication(&mut connection, &data, password, &scramble, trust)?;
                }
                _ => return Err(WireError::Malformed("answer to a login").into()),
            }
        }
        let mut client = Self {
            id: greeting.connection_id,
            capabilities: login.capabilities,
            deprecate_eof: login.capabilities.contains(Capabilities::DEPRECATE_EOF),
            connection,
            version,
            family,
            largest: (usize::MAX, usize::MAX),
        };
        if let Some(expected) = &options.identity {
            let found = client.identity()?;
            if found != *expected {
                client.quit();
                let expected = expected.clone();
                return Err(ClientError::OtherServer { expected, found });
            }
        }
        Ok(client)
    }

    /// What tells the server from its replicas: `server_uuid` of MySQL, `server_id` of MariaDB,
    /// which has nothing better.
    ///
    /// The nodes of a Galera cluster may share a `server_id`, and a node that starts may get the
    /// files of another one, binary log included. So there it is the node's name in the cluster and
    /// when it was started, too: the two times of that subtraction are one moment of one clock.
    pub fn identity(&mut self) -> Result<String, ClientError> {
        let sql = match self.family {
            Family::MySql => "SELECT @@GLOBAL.server_uuid",
            Family::MariaDb => {
                "SELECT CONCAT(@@GLOBAL.server_id, COALESCE((SELECT CONCAT(' ', u.VARIABLE_VALUE, ' ', \
                 UNIX_TIMESTAMP() - s.VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS u \
                 JOIN information_schema.GLOBAL_STATUS s \
                 WHERE u.VARIABLE_NAME = 'WSREP_GCOMM_UUID' AND u.VARIABLE_VALUE <> '' AND s.VARIABLE_NAME = 'UPTIME'), ''))"
            }
        };
        let rows = self.query(sql)?;
        let cell = rows.into_iter().flatten().next().flatten();
        let cell = cell.ok_or(WireError::Malformed("identity of the server"))?;
        Ok(String::from_utf8_lossy(&cell).into_owned())
    }

    /// The server's version as it greets.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The server's family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The connection's number on the server.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Runs one statement and returns its rows; none for a statement without a result.
    pub fn query(&mut self, sql: &str) -> Result<TextRows, ClientError> {
        self.run(sql).map(|answer| answer.rows)
    }

    /// Runs one statement. A connection on which that failed halfway is ended, lest a late answer
    /// be taken for the next statement's.
    pub fn run(&mut self, sql: &str) -> Result<Answer, ClientError> {
        self.run_bytes(sql.as_bytes())
    }

    /// The same with a statement in the bytes of the session's character set.
    pub fn run_bytes(&mut self, sql: &[u8]) -> Result<Answer, ClientError> {
        let answer = self.exchange(sql);
        if let Err(ClientError::Wire(_) | ClientError::TooMuch { .. }) = &answer
            && let Ok(socket) = self.closer()
        {
            let _ = socket.shutdown();
        }
        answer
    }

    fn exchange(&mut self, sql: &[u8]) -> Result<Answer, ClientError> {
        self.command(0x03, sql)?;
        let head = self.connection.read_payload()?;
        let columns = match ResponseHead::classify(head)? {
            ResponseHead::Ok => {
                let ok = OkPacket::decode(head, self.capabilities)?;
                return Ok(Answer {
                    affected: ok.affected_rows,
                    ..Answer::default()
                });
            }
            ResponseHead::Err => return Err(ClientError::of_packet(head)),
            ResponseHead::LocalInfile => {
                return Err(WireError::Malformed("a request for a local file").into());
            }
            ResponseHead::Columns(columns) => columns,
        };
        let mut answer = Answer::default();
        let (rows, bytes) = self.largest;
        let mut left = bytes;
        let mut fits = |length: usize, count: usize| match left.checked_sub(length) {
            Some(rest) if count < rows => {
                left = rest;
                Ok(())
            }
            _ => Err(ClientError::TooMuch { rows, bytes }),
        };
        for _ in 0..columns {
            let payload = self.connection.read_payload()?;
            fits(payload.len(), 0)?;
            let definition = ColumnDefinition::decode(payload, DefinitionForm::Standard)?;
            let name = String::from_utf8_lossy(&definition.name).into_owned();
            answer.names.push(name);
        }
        if !self.deprecate_eof {
            self.connection.read_payload()?;
        }
        loop {
            let payload = self.connection.read_payload()?;
            match RowPacket::classify(payload, self.deprecate_eof) {
                RowPacket::End => return Ok(answer),
                RowPacket::Err => return Err(ClientError::of_packet(payload)),
                RowPacket::Row => {
                    // A cell takes its place in memory even if it is empty.
                    let cells = (columns as usize).saturating_mul(CELL);
                    fits(payload.len().saturating_add(cells), answer.rows.len())?;
                    let mut row = TextRow::new(payload);
                    let mut cells = Vec::with_capacity(columns as usize);
                    while !row.is_empty() {
                        cells.push(row.cell()?.map(<[u8]>::to_vec));
                    }
                    answer.rows.push(cells);
                }
            }
        }
    }

    /// Runs a query and hands its rows to `each` as they come, one at a time in memory. Ends the
    /// connection if `each` fails, or the answer breaks off.
    pub fn each_row<E: From<ClientError>>(
        &mut self,
        sql: &str,
        each: impl FnMut(&[Option<&[u8]>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut is_whole = false;
        let done = self.stream_rows(sql, each, &mut is_whole);
        if !is_whole && let Ok(socket) = self.closer() {
            let _ = socket.shutdown();
        }
        done
    }

    /// `is_whole`: whether the answer was read to its end.
    fn stream_rows<E: From<ClientError>>(
        &mut self,
        sql: &str,
        mut each: impl FnMut(&[Option<&[u8]>]) -> Result<(), E>,
        is_whole: &mut bool,
    ) -> Result<(), E> {
        let wire = |error: WireError| E::from(ClientError::from(error));
        self.command(0x03, sql.as_bytes())?;
        let head = self.connection.read_payload().map_err(wire)?;
        let columns = match ResponseHead::classify(head).map_err(wire)? {
            ResponseHead::Columns(columns) => columns as usize,
            ResponseHead::Err => {
                *is_whole = true;
                return Err(ClientError::of_packet(head).into());
            }
            _ => return Err(wire(WireError::Malformed("answer to a query"))),
        };
        for _ in 0..columns + usize::from(!self.deprecate_eof) {
            self.connection.read_payload().map_err(wire)?;
        }
        loop {
            let payload = self.connection.read_payload().map_err(wire)?;
            match RowPacket::classify(payload, self.deprecate_eof) {
                RowPacket::End => {
                    *is_whole = true;
                    return Ok(());
                }
                RowPacket::Err => {
                    *is_whole = true;
                    return Err(ClientError::of_packet(payload).into());
                }
                RowPacket::Row => {
                    let mut row = TextRow::new(payload);
                    let mut cells = Vec::with_capacity(columns);
                    while !row.is_empty() {
                        cells.push(row.cell().map_err(wire)?);
                    }
                    if cells.len() != columns {
                        return Err(wire(WireError::Malformed("row of a result")));
                    }
                    each(&cells)?;
                }
            }
        }
    }

    /// The first cell of the first row as text; `None` for NULL and for no row.
    pub fn query_text(&mut self, sql: &str) -> Result<Option<String>, ClientError> {
        let rows = self.query(sql)?;
        let cell = rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next());
        Ok(cell
            .flatten()
            .map(|cell| String::from_utf8_lossy(&cell).into_owned()))
    }

    /// Sends a command.
    pub(crate) fn command(&mut self, command: u8, arguments: &[u8]) -> Result<(), ClientError> {
        self.connection.reset_sequence();
        let out = self.connection.begin_payload();
        out.push(command);
        out.extend_from_slice(arguments);
        self.connection.end_payload()?;
        self.connection.flush()?;
        Ok(())
    }

    /// Reads the answer of a command that is answered by OK or an error.
    pub(crate) fn read_ok(&mut self) -> Result<(), ClientError> {
        let payload = self.connection.read_payload()?;
        match ErrPacket::is_err(payload) {
            true => Err(ClientError::of_packet(payload)),
            false => Ok(()),
        }
    }

    /// The next packet of a stream; `None` at its end.
    pub(crate) fn read_streamed(&mut self) -> Result<Option<&[u8]>, ClientError> {
        let payload = self.connection.read_payload()?;
        match payload.first() {
            Some(0x00) => Ok(Some(&payload[1..])),
            Some(&ErrPacket::HEADER) => Err(ClientError::of_packet(payload)),
            Some(0xfe) if payload.len() < 9 => Ok(None),
            _ => Err(WireError::Malformed("packet of a binlog stream").into()),
        }
    }

    /// Whether a packet can be read without waiting.
    pub(crate) fn has_packet(&self) -> bool {
        self.connection.has_buffered_packet()
    }

    /// Limits how long a read waits.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> Result<(), ClientError> {
        Ok(self.connection.transport().set_read_timeout(limit)?)
    }

    /// Bounds the answers to come. One that is larger is an error, and ends the connection: a
    /// server that is not trusted must not fill this side's memory.
    pub fn set_largest_answer(&mut self, rows: usize, bytes: usize) {
        self.largest = (rows, bytes);
        self.connection.set_max_payload(bytes);
    }

    /// Whether the connection is under TLS.
    pub fn is_tls(&self) -> bool {
        self.connection.transport().is_tls()
    }

    /// Says goodbye, so that the server does not log a broken connection.
    pub fn quit(&mut self) {
        let _ = self.command(0x01, &[]);
    }

    /// A handle with which another thread can end this connection.
    pub fn closer(&self) -> Result<Socket, ClientError> {
        Ok(self.connection.transport().try_clone_socket()?)
    }
}

/// A connection over TCP to the first of the host's addresses that accepts one. Where the network
/// dies without a word, the kernel ends it after [`DEAD`], however long the server may take to
/// answer.
fn dial(host: &str, port: u16, limit: Duration) -> std::io::Result<TcpStream> {
    let mut failure = std::io::Error::other("the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, limit) {
            Ok(stream) => {
                let keepalive = TcpKeepalive::new()
                    .with_time(DEAD / 2)
                    .with_interval(DEAD / 6)
                    .with_retries(3);
                let socket = SockRef::from(&stream);
                socket.set_tcp_keepalive(&keepalive)?;
                socket.set_tcp_user_timeout(Some(DEAD))?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The greeting's scramble without the zero byte that closes it.
fn scramble_of(data: &[u8]) -> &[u8] {
    data.strip_suffix(&[0])
        .filter(|s| s.len() >= 20)
        .unwrap_or(data)
}

/// The answer to the server's scramble; `None` for a method not spoken here.
fn first_answer(method: &[u8], password: &[u8], scramble: &[u8]) -> Option<Vec<u8>> {
    match std::str::from_utf8(method).ok()? {
        auth::MYSQL_NATIVE_PASSWORD => Some(auth::native_password(password, scramble)),
        auth::CACHING_SHA2_PASSWORD => Some(auth::caching_sha2_password(password, scramble)),
        _ => None,
    }
}

/// The second half of `caching_sha2_password`, when the server does not remember the password.
fn full_authentication(
    connection: &mut Connection,
    data: &[u8],
    password: &[u8],
    scramble: &[u8],
    trust: &LinkTrust,
) -> Result<(), ClientError> {
    let answer = match (data, &trust.rsa_key) {
        (AuthMoreData::FAST_AUTH_OK, _) => return Ok(()),
        // Without a password there is nothing to protect.
        (AuthMoreData::FULL_AUTH, _) if password.is_empty() => vec![0],
        (AuthMoreData::FULL_AUTH, _) if trust.covers(connection.transport()) => {
            auth::cleartext_password(password)
        }
        // Under TLS servers want the password as it is.
        (AuthMoreData::FULL_AUTH, Some(key)) if !connection.transport().is_tls() => {
            key.encrypt_password(password, scramble)?
        }
        (AuthMoreData::FULL_AUTH, _) => return Err(ClientError::Untrusted),
        _ => return Err(WireError::Malformed("data of caching_sha2_password").into()),
    };
    connection.write_payload(&answer)?;
    Ok(connection.flush()?)
}
