//! A session at the scratch engine: made when a statement first needs it, kept as long as the
//! client's session, cleaned behind every statement.

use std::collections::HashSet;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{LexMode, errors};
use onionskin_value::{Charset, Family};
use onionskin_wire::messages::{
    AuthMoreData, AuthSwitchRequest, Command, ErrPacket, HandshakeResponse41, InitialHandshake,
};
use onionskin_wire::{
    Capabilities, Connection, DefinitionForm, MariaDbCapabilities, Step, Transport, WireError,
    WireResult,
};

use super::settings::Settings;
use super::tables::quoted;
use crate::config::ScratchConfig;
use crate::error::{Failure, Outcome};
use crate::exchange::{Question, Server};
use crate::packet_bound::PacketBound;
use crate::server_errors::TOO_BIG_SELECT;
use crate::watch::Activity;

/// Settings under which rows are loaded: whatever they hold arrives as it is, or the load fails.
///
/// They hold opened values, which must not come into a log. The server's own, if it is not one of
/// ours, may have any.
///
/// MariaDB's temporary tables are Aria's, and those lose rows where a condition is checked within
/// an index: `s = 'abc' AND BINARY s = 'abc'`, or a comparison under another collation than the
/// index has.
fn loading(family: Family) -> String {
    let own = match family {
        Family::MariaDb => {
            "SESSION max_statement_time = 0, SESSION slow_query_log = 0, \
             SESSION optimizer_switch = 'index_condition_pushdown=off'"
        }
        Family::MySql => "SESSION max_execution_time = 0",
    };
    format!(
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', SESSION time_zone = '+00:00', \
         SESSION sql_log_bin = 0, SESSION sql_log_off = 1, {own}, NAMES utf8mb4"
    )
}
/// Capabilities that are of no use between the proxy and its scratch engine.
const UNUSED: Capabilities = Capabilities::SSL
    .union(Capabilities::CONNECT_WITH_DB)
    .union(Capabilities::CONNECT_ATTRS)
    .union(Capabilities::SESSION_TRACK)
    .union(Capabilities::IGNORE_SPACE)
    .union(Capabilities::INTERACTIVE)
    .union(Capabilities::MULTI_STATEMENTS);
/// Databases of the server's own, which hold more than a session's temporary tables.
const SYSTEM: [&str; 4] = ["information_schema", "mysql", "performance_schema", "sys"];
/// A statement took too long: MariaDB's number and MySQL's.
const TIMEOUTS: [u16; 2] = [1969, 3024];
/// No space for temporary tables.
const FULL: [u16; 3] = [1021, 1114, 4200];
/// How long the engine may take to kill a session.
const KILL_WAIT: Duration = Duration::from_secs(10);
/// The collation utf8mb4_general_ci.
const UTF8MB4: u8 = 45;

/// A session at the scratch engine.
pub(crate) struct Engine {
    pub server: Server,
    /// Answers that were not read yet, all of statements without rows.
    pending: Vec<Question>,
    /// Statements that remove temporary tables in the end.
    left: Vec<String>,
    databases: HashSet<String>,
    current: Option<String>,
    /// User variables were set.
    has_variables: bool,
    /// Variables that both servers know.
    pub variables: Vec<&'static str>,
    pub system_time_zone: String,
    /// What a statement may take where the client's session does not say.
    pub seconds: u64,
    config: ScratchConfig,
    /// Which engine it is, of those that were at the place one after the other.
    edition: u64,
    family: Family,
    /// The session's number at the engine.
    id: u32,
    /// Those who end the session's statements have to know that it is there no more.
    shown: Option<Shown>,
    /// The present statement's time is bounded by that.
    bounded: bool,
    /// See [`loading`].
    loading: String,
}

/// A session at the scratch engine that others know of.
struct Shown(Arc<Activity>);

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.set_engine(None);
    }
}

/// Ends a session at the scratch engine, with what it is doing there, from another one.
struct EngineEnd {
    config: ScratchConfig,
    edition: u64,
    family: Family,
    capabilities: Capabilities,
    form: DefinitionForm,
    id: u32,
}

impl EngineEnd {
    fn kill(&self) -> Outcome<()> {
        // with an engine its sessions end, and their numbers are others' from then on
        let Some(socket) = self.config.place.socket_of(self.edition) else {
            return Ok(());
        };
        let stream = UnixStream::connect(socket).map_err(|e| gone(e.to_string()))?;
        for limit in [UnixStream::set_read_timeout, UnixStream::set_write_timeout] {
            limit(&stream, Some(KILL_WAIT)).map_err(|e| gone(e.to_string()))?;
        }
        let connection = Connection::new(Transport::Unix(stream));
        let user = &self.config.user;
        let (connection, capabilities, _) =
            login(connection, user, self.family, self.capabilities, self.form)?;
        let mut server = Server::new(connection, capabilities, self.form);
        let kill = format!("KILL {}", self.id);
        server.run(kill.as_bytes()).map(|_| ())
    }

    /// The same in a thread of its own, for who cannot wait for the engine.
    pub fn kill_apart(self) {
        let spawned = thread::Builder::new()
            .name("kill".into())
            .spawn(move || match self.kill() {
                Ok(()) => {}
                Err(failure) => tracing::warn!(?failure, "a statement at the engine goes on"),
            });
        if let Err(error) = spawned {
            tracing::warn!(%error, "a statement at the engine goes on");
        }
    }
}

/// The engine failed, not the statement.
pub(super) fn gone(about: impl Into<String>) -> Failure {
    Failure::refused(&errors::SCRATCH_GONE, about)
}

/// An error on the engine's connection is none of the session's.
pub(super) fn ours(failure: Failure) -> Failure {
    match failure {
        Failure::Backend(error) => gone(error.to_string()),
        Failure::Server { code, .. } if FULL.contains(&code) => full(),
        // the text may quote a value
        Failure::Server { code, .. } => gone(format!("error {code}")),
        other => other,
    }
}

/// A broken connection is the engine's affair; its error is the statement's.
pub(super) fn wire(failure: Failure) -> Failure {
    match failure {
        Failure::Backend(_) => ours(failure),
        other => other,
    }
}

fn full() -> Failure {
    Failure::refused(&errors::SCRATCH_BOUND, "its temporary space")
}

impl Engine {
    /// Connects and logs in. `capabilities` and `form` are those of the session at the server:
    /// results look the same.
    pub fn connect(
        config: &ScratchConfig,
        family: Family,
        capabilities: Capabilities,
        form: DefinitionForm,
    ) -> Outcome<Engine> {
        let (socket, edition) = config.place.socket().map_err(gone)?;
        let stream = UnixStream::connect(&socket)
            .map_err(|e| gone(format!("{} ({e})", socket.display())))?;
        let connection = Connection::new(Transport::Unix(stream));
        let (connection, capabilities, id) =
            login(connection, &config.user, family, capabilities, form)?;
        let mut engine = Engine {
            server: Server::new(connection, capabilities, form),
            pending: Vec::new(),
            left: Vec::new(),
            databases: HashSet::new(),
            current: None,
            has_variables: false,
            variables: Vec::new(),
            system_time_zone: String::new(),
            seconds: config.seconds,
            config: config.clone(),
            edition,
            family,
            id,
            shown: None,
            bounded: false,
            loading: loading(family),
        };
        engine.quiet(config, family)?;
        let rows = engine
            .server
            .rows(b"SELECT @@system_time_zone, @@max_allowed_packet")
            .map_err(ours)?;
        let mut cells = rows.into_iter().flatten().flatten();
        let mut cell = || String::from_utf8_lossy(&cells.next().unwrap_or_default()).into_owned();
        engine.system_time_zone = cell();
        engine.server.bound = PacketBound {
            packet: cell().parse().unwrap_or(usize::MAX),
            // of the settings under which rows are loaded
            lex: LexMode {
                charset: Charset::Utf8mb4,
                ..LexMode::default()
            },
            introduced: true,
        };
        engine.put(engine.loading.clone().as_bytes())?;
        engine.settle()?;
        #[cfg(debug_assertions)]
        {
            engine.server.is_faulty = crate::faults::are_wanted();
        }
        Ok(engine)
    }

    /// Refuses a server that would write statements to a log all the same; bounds the session's
    /// temporary space where it can.
    fn quiet(&mut self, config: &ScratchConfig, family: Family) -> Outcome<()> {
        let mut first = |sql: &[u8]| -> Outcome<Option<Vec<u8>>> {
            let rows = self.server.rows(sql).map_err(ours)?;
            Ok(rows.into_iter().flatten().next().flatten())
        };
        match family {
            // no session can leave this log
            Family::MySql => {
                if first(b"SELECT @@GLOBAL.slow_query_log")?.as_deref() != Some(b"0") {
                    return Err(gone("its slow query log is on"));
                }
            }
            Family::MariaDb => {
                let space = "max_tmp_session_space_usage";
                let question = format!("SHOW SESSION VARIABLES LIKE '{space}'");
                if first(question.as_bytes())?.is_some() {
                    // in blocks of 64 KiB
                    let bytes = (config.memory.saturating_mul(16) >> 16).max(1) << 16;
                    self.put(format!("SET SESSION {space} = {bytes}").as_bytes())?;
                }
            }
        }
        Ok(())
    }

    /// The session, which was not used for a while, if its connection still works and its last
    /// statements succeeded.
    pub fn alive(mut self) -> Option<Self> {
        (self.put(b"DO 0").is_ok() && self.settle().is_ok()).then_some(self)
    }

    /// The error that the engine answered with: the statement's own, or that of a bound.
    pub fn failure(&self) -> Failure {
        let failure = self.server.error();
        match failure {
            Failure::Server { code, .. } if self.bounded && TIMEOUTS.contains(&code) => {
                Failure::refused(&errors::SCRATCH_BOUND, "`scratch_seconds`")
            }
            Failure::Server { code, .. } if FULL.contains(&code) => full(),
            // its tables have no keys: the server may read less for the same
            Failure::Server {
                code: TOO_BIG_SELECT,
                ..
            } => NotUnderstood::UnusualVariable("max_join_size").into(),
            other => other,
        }
    }

    /// Waits for the answer to a statement that changes rows. MySQL bounds the time of queries
    /// only: there the bound is on the wait, and behind it the session at the engine is ended.
    pub(super) fn wait(&mut self) -> Outcome<Step> {
        if self.family == Family::MariaDb || self.seconds == 0 {
            return self.server.step().map_err(ours);
        }
        let limit = |limit| {
            let transport = self.server.connection.transport();
            transport
                .set_read_timeout(limit)
                .map_err(|e| gone(e.to_string()))
        };
        limit(Some(Duration::from_secs(self.seconds)))?;
        let step = self.server.step();
        let transport = self.server.connection.transport();
        let reset = transport.set_read_timeout(None);
        match step {
            Err(Failure::Backend(error)) if error.is_timeout() => {
                // whether or not that succeeds, the session is not used again
                let _ = self.end().kill();
                Err(Failure::refused(
                    &errors::SCRATCH_BOUND,
                    "`scratch_seconds`",
                ))
            }
            step => reset
                .map_err(|e| gone(e.to_string()))
                .and_then(|()| step.map_err(ours)),
        }
    }

    /// How to end the session's statement from another session.
    fn end(&self) -> EngineEnd {
        EngineEnd {
            config: self.config.clone(),
            edition: self.edition,
            family: self.family,
            capabilities: self.server.capabilities,
            form: self.server.form,
            id: self.id,
        }
    }

    /// Lets what the session does be ended by who sees that nobody waits for it, as long as it is
    /// there.
    pub(super) fn show(&mut self, activity: &Arc<Activity>) {
        let end = self.end();
        activity.set_engine(Some(Box::new(move || end.kill_apart())));
        self.shown = Some(Shown(Arc::clone(activity)));
    }

    /// Sends a statement without rows; its answer is read later.
    pub fn put(&mut self, sql: &[u8]) -> Outcome<()> {
        if !self.server.takes(sql.len() + 1) {
            // what goes in pieces goes alone
            self.settle()?;
        }
        self.pending.push(self.server.put_query(sql).map_err(ours)?);
        // the engine must be able to write its answers
        if self.pending.len() > 64 {
            self.settle()?;
        }
        Ok(())
    }

    /// Reads the answers of all statements without rows.
    pub fn settle(&mut self) -> Outcome<()> {
        self.server.flush().map_err(ours)?;
        for question in std::mem::take(&mut self.pending) {
            self.server.read_ok(question).map_err(ours)?;
        }
        Ok(())
    }

    /// Gives up all that was asked and not read.
    pub(super) fn give_up(&mut self) -> Outcome<()> {
        self.pending.clear();
        self.server.settle().map_err(ours)
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
        if SYSTEM.iter().any(|s| s.eq_ignore_ascii_case(name)) {
            // nothing there is the statement's
            return Ok(());
        }
        self.need_database(name)?;
        if self.current.as_deref() != Some(name) {
            self.put(format!("USE {}", quoted(name)).as_bytes())?;
            self.current = Some(name.to_string());
        }
        Ok(())
    }

    /// Makes the session like the client's.
    pub(super) fn share(&mut self, settings: &Settings) -> Outcome<()> {
        self.bounded = settings.bounded;
        let mut statements = settings.statements.iter();
        statements.try_for_each(|statement| self.put(statement))
    }

    /// Begins the session again if user variables were set in it; some are about to be.
    pub fn forget_variables(&mut self) -> Outcome<()> {
        if std::mem::replace(&mut self.has_variables, true) {
            let command = [Command::ResetConnection.to_byte()];
            let question = self.server.put_command(&command).map_err(ours)?;
            self.pending.push(question);
            self.current = None;
            self.put(self.loading.clone().as_bytes())?;
        }
        Ok(())
    }

    /// Goes back to the settings under which rows are loaded, and read again: all of them.
    pub(super) fn load_again(&mut self) -> Outcome<()> {
        self.put(self.loading.clone().as_bytes())?;
        self.put(
            b"SET SESSION sql_select_limit = 18446744073709551615, SESSION sql_big_selects = 1",
        )
    }

    /// Keeps a statement that removes a temporary table for [`Engine::clean`]: what is asked at
    /// once is given up with a statement that fails.
    pub fn drop_in_the_end(&mut self, sql: String) {
        self.left.push(sql);
    }

    /// Back to the state in which tables are loaded; the tables go.
    pub fn clean(&mut self, tables: &[String]) -> Outcome<()> {
        self.put(self.loading.clone().as_bytes())?;
        for sql in std::mem::take(&mut self.left) {
            self.put(sql.as_bytes())?;
        }
        if !tables.is_empty() {
            let sql = format!("DROP TEMPORARY TABLE IF EXISTS {}", tables.join(", "));
            self.put(sql.as_bytes())?;
        }
        self.server.flush().map_err(ours)?;
        self.server.connection.shrink_idle();
        Ok(())
    }
}

/// Logs in with an account that has no password. Returns the session's number as well.
fn login(
    mut connection: Connection,
    user: &str,
    family: Family,
    session: Capabilities,
    form: DefinitionForm,
) -> Outcome<(Connection, Capabilities, u32)> {
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
    let mariadb_capabilities = match form {
        DefinitionForm::Standard => MariaDbCapabilities::empty(),
        DefinitionForm::Extended => MariaDbCapabilities::EXTENDED_METADATA,
    };
    if !greeting.mariadb_capabilities.contains(mariadb_capabilities) {
        return Err(gone("it is too old"));
    }
    // a MariaDB server does not offer the lowest bit, which says that its own capabilities are not
    // used
    let offered = greeting.capabilities | Capabilities::LONG_PASSWORD;
    let capabilities = session & (offered - UNUSED);
    let answer = HandshakeResponse41 {
        capabilities,
        mariadb_capabilities,
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
            Some(0x00) => return Ok((connection, capabilities, greeting.connection_id)),
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
