//! A session at the scratch engine: made when a statement first needs it, kept as long as the client's session, cleaned
//! behind every statement.

use std::collections::HashSet;
use std::os::unix::net::UnixStream;

use onionskin_plan::errors;
use onionskin_value::Family;
use onionskin_wire::messages::{
    AuthMoreData, AuthSwitchRequest, Command, ErrPacket, HandshakeResponse41, InitialHandshake,
};
use onionskin_wire::{
    Capabilities, Connection, MariaDbCapabilities, Transport, WireError, WireResult,
};

use super::settings::Settings;
use super::tables::quoted;
use crate::config::ScratchConfig;
use crate::error::{Failure, Outcome};
use crate::exchange::Server;

/// Settings under which rows are loaded: whatever they hold arrives as it is, or the load fails.
const LOADING: &str = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', \
     SESSION time_zone = '+00:00', NAMES utf8mb4";
/// Capabilities that are of no use between the proxy and its scratch engine.
const UNUSED: Capabilities = Capabilities::SSL
    .union(Capabilities::CONNECT_WITH_DB)
    .union(Capabilities::CONNECT_ATTRS)
    .union(Capabilities::SESSION_TRACK)
    .union(Capabilities::LOCAL_FILES)
    .union(Capabilities::IGNORE_SPACE)
    .union(Capabilities::INTERACTIVE)
    .union(Capabilities::MULTI_STATEMENTS)
    .union(Capabilities::CAN_HANDLE_EXPIRED_PASSWORDS);
/// The collation utf8mb4_general_ci.
const UTF8MB4: u8 = 45;

/// A session at the scratch engine.
pub(crate) struct Engine {
    pub server: Server,
    /// Answers that were not read yet, all of statements without rows.
    pending: usize,
    databases: HashSet<String>,
    current: Option<String>,
    /// User variables were set.
    has_variables: bool,
    /// Variables that both servers know.
    pub variables: Vec<&'static str>,
    pub system_time_zone: String,
}

/// The engine failed, not the statement.
pub(super) fn gone(about: impl Into<String>) -> Failure {
    Failure::refused(&errors::SCRATCH_GONE, about)
}

/// An error on the engine's connection is none of the session's.
pub(super) fn ours(failure: Failure) -> Failure {
    match failure {
        Failure::Backend(error) => gone(error.to_string()),
        // the text may quote a value
        Failure::Server { code, .. } => gone(format!("error {code}")),
        other => other,
    }
}

impl Engine {
    /// Connects and logs in. `capabilities` are those of the session at the server: results have the same form.
    pub fn connect(
        config: &ScratchConfig,
        family: Family,
        capabilities: Capabilities,
    ) -> Outcome<Engine> {
        let stream = UnixStream::connect(&config.socket)
            .map_err(|e| gone(format!("{} ({e})", config.socket.display())))?;
        let connection = Connection::new(Transport::Unix(stream));
        let (connection, capabilities) = login(connection, &config.user, family, capabilities)?;
        let mut engine = Engine {
            server: Server::new(connection, capabilities),
            pending: 0,
            databases: HashSet::new(),
            current: None,
            has_variables: false,
            variables: Vec::new(),
            system_time_zone: String::new(),
        };
        let rows = engine
            .server
            .rows(b"SELECT @@system_time_zone")
            .map_err(ours)?;
        let cell = rows.into_iter().flatten().flatten().next();
        engine.system_time_zone = String::from_utf8_lossy(&cell.unwrap_or_default()).into_owned();
        engine.put(LOADING.as_bytes())?;
        Ok(engine)
    }

    /// Sends a statement without rows; its answer is read later.
    pub fn put(&mut self, sql: &[u8]) -> Outcome<()> {
        self.server.put_query(sql).map_err(ours)?;
        self.pending += 1;
        // the engine must be able to write its answers
        if self.pending > 64 {
            self.settle()?;
        }
        Ok(())
    }

    /// Reads the answers of all statements without rows.
    pub fn settle(&mut self) -> Outcome<()> {
        self.server.flush().map_err(ours)?;
        while self.pending > 0 {
            self.pending -= 1;
            self.server.read_ok().map_err(ours)?;
        }
        Ok(())
    }

    /// Sees to it that a database is there.
    pub fn need_database(&mut self, name: &str) -> Outcome<()> {
        if self.databases.contains(name) {
            return Ok(());
        }
        let sql = format!("CREATE DATABASE IF NOT EXISTS {}", quoted(name));
        self.put(sql.as_bytes())?;
        self.databases.insert(name.to_string());
        Ok(())
    }

    /// Makes a database the current one.
    pub fn enter(&mut self, name: &str) -> Outcome<()> {
        self.need_database(name)?;
        if self.current.as_deref() != Some(name) {
            self.put(format!("USE {}", quoted(name)).as_bytes())?;
            self.current = Some(name.to_string());
        }
        Ok(())
    }

    /// Makes the session like the client's.
    pub(super) fn share(&mut self, settings: &Settings) -> Outcome<()> {
        let mut statements = settings.statements.iter();
        statements.try_for_each(|statement| self.put(statement))
    }

    /// Begins the session again if user variables were set in it; some are about to be.
    pub fn forget_variables(&mut self) -> Outcome<()> {
        if std::mem::replace(&mut self.has_variables, true) {
            let command = [Command::ResetConnection.to_byte()];
            self.server.put_command(&command).map_err(ours)?;
            self.pending += 1;
            self.current = None;
            self.put(LOADING.as_bytes())?;
        }
        Ok(())
    }

    /// Back to the state in which tables are loaded; the tables go.
    pub fn clean(&mut self, tables: &[String]) -> Outcome<()> {
        self.put(LOADING.as_bytes())?;
        if !tables.is_empty() {
            let sql = format!("DROP TEMPORARY TABLE IF EXISTS {}", tables.join(", "));
            self.put(sql.as_bytes())?;
        }
        self.server.flush().map_err(ours)?;
        self.server.connection.shrink_idle();
        Ok(())
    }
}

/// Logs in with an account that has no password.
fn login(
    mut connection: Connection,
    user: &str,
    family: Family,
    session: Capabilities,
) -> Outcome<(Connection, Capabilities)> {
    let broken = |e: WireError| gone(e.to_string());
    let greeting = connection.read_payload().map_err(broken)?.to_vec();
    if !InitialHandshake::is_handshake(&greeting) {
        return Err(gone(refused(&greeting)));
    }
    let greeting = InitialHandshake::decode(&greeting).map_err(broken)?;
    if greeting.is_mariadb() != (family == Family::MariaDb) {
        return Err(gone("it is of the other family"));
    }
    let eof = Capabilities::DEPRECATE_EOF;
    if session.contains(eof) && !greeting.capabilities.contains(eof) {
        return Err(gone("it is too old"));
    }
    // a MariaDB server does not offer the lowest bit, which says that its own capabilities are not used
    let offered = greeting.capabilities | Capabilities::LONG_PASSWORD;
    let capabilities = session & (offered - UNUSED);
    let answer = HandshakeResponse41 {
        capabilities,
        mariadb_capabilities: MariaDbCapabilities::empty(),
        max_packet_size: 1 << 30,
        charset: UTF8MB4,
        username: user.as_bytes().to_vec(),
        auth_response: Vec::new(),
        database: None,
        auth_plugin: Some(greeting.auth_plugin),
        connect_attrs: None,
    };
    let mut out = Vec::new();
    answer.encode(&mut out).map_err(broken)?;
    send(&mut connection, &out).map_err(broken)?;
    loop {
        let packet = connection.read_payload().map_err(broken)?.to_vec();
        match packet.first() {
            Some(0x00) => return Ok((connection, capabilities)),
            Some(&AuthSwitchRequest::HEADER) => {
                send(&mut connection, &[]).map_err(broken)?;
            }
            Some(&AuthMoreData::HEADER) if packet.get(1) == Some(&3) => {}
            Some(0xff) => return Err(gone(refused(&packet))),
            _ => return Err(gone("its account has a password")),
        }
    }
}

fn refused(packet: &[u8]) -> String {
    match ErrPacket::decode(packet) {
        Ok(error) => String::from_utf8_lossy(&error.message).into_owned(),
        Err(error) => error.to_string(),
    }
}

fn send(connection: &mut Connection, payload: &[u8]) -> WireResult<()> {
    connection.write_payload(payload)?;
    connection.flush()
}
