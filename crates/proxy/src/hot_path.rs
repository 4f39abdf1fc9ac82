//! A session on a stage. Its client and its server are the other ends of two pairs of sockets,
//! which the measuring program holds.
//!
//! What the server will answer is written before the command. So one thread plays all three parts,
//! nothing waits, and the instructions of a turn are the same every time. `examples/hot_paths` runs
//! the statements of sysbench on it, and `tests/instruction_counts.rs` counts them under callgrind.
//! The session is the real one: the stage only spares it the login and the look-up of tables.
//!
//! Single steps of a turn can be run by themselves: [`Stage::recall`], [`Stage::bind`],
//! [`Stage::open_row`].

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use onionskin_keys::{KeySet, Suite};
use onionskin_plan::lex::LexError;
use onionskin_plan::{Action, OpenFrom, ResultItem};
use onionskin_schema::{Policy, Table};
use onionskin_value::Family;
use onionskin_wire::auth::LinkTrust;
use onionskin_wire::messages::OkPacket;
use onionskin_wire::{Capabilities, Connection, DefinitionForm, ParamType, Transport};

use crate::bind::{Binder, Values};
use crate::catalog::KeyedPlan;
use crate::certificates::CertificateRules;
use crate::client_address::ClientAddress;
use crate::config::{
    Backend, BackendTls, Config, FinishLimits, LoginLimits, SessionLimits, SlowLimits,
};
use crate::live::Live;
use crate::login::Login;
use crate::mask::Masks;
use crate::members::Era;
use crate::metrics::{Meter, Metrics};
use crate::open::{self, Opener};
use crate::session::Session;
use crate::{Shared, error::Failure, unusual};

/// The variables that stand behind the ones with places of their own in the question that a session
/// asks at login.
pub fn asked_at_login(family: Family) -> impl Iterator<Item = &'static str> {
    unusual::asked(family)
}

/// What a stage says when it fails. Measurements have no use for kinds of errors.
pub type StageResult<T> = Result<T, String>;

/// What client, proxy and server have agreed on: what a present client of either family does.
pub const CAPABILITIES: Capabilities = Capabilities::LONG_PASSWORD
    .union(Capabilities::LONG_FLAG)
    .union(Capabilities::PROTOCOL_41)
    .union(Capabilities::TRANSACTIONS)
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::MULTI_STATEMENTS)
    .union(Capabilities::MULTI_RESULTS)
    .union(Capabilities::PS_MULTI_RESULTS)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::SESSION_TRACK)
    .union(Capabilities::DEPRECATE_EOF);

/// What the session's connections are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wires {
    /// Unix sockets: nothing but copies.
    Unix,
    /// TCP over the loopback interface, as in most measurements of a proxy beside its server.
    Tcp,
}

/// The end of a connection that whoever measures holds.
pub enum End {
    /// See [`Wires`].
    Unix(UnixStream),
    /// See [`Wires`].
    Tcp(TcpStream),
}

impl End {
    /// A connection: the held end, and the session's.
    pub fn pair(wires: Wires) -> io::Result<(End, Transport)> {
        // a question that no answer was laid out for must not wait for one
        let patience = Some(Duration::from_secs(5));
        match wires {
            Wires::Unix => {
                let (held, other) = UnixStream::pair()?;
                other.set_read_timeout(patience)?;
                Ok((End::Unix(held), Transport::Unix(other)))
            }
            Wires::Tcp => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                let held = TcpStream::connect(listener.local_addr()?)?;
                held.set_nodelay(true)?;
                let (other, _) = listener.accept()?;
                other.set_read_timeout(patience)?;
                Ok((End::Tcp(held), Transport::tcp(other)?))
            }
        }
    }

    /// Sends.
    pub fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            End::Unix(end) => end.write_all(bytes),
            End::Tcp(end) => end.write_all(bytes),
        }
    }

    /// Reads what has arrived, and does not wait for more.
    pub fn take(&mut self, sink: &mut Vec<u8>) -> io::Result<()> {
        sink.clear();
        let read = match self {
            End::Unix(end) => {
                end.set_nonblocking(true)?;
                let read = end.read_to_end(sink);
                end.set_nonblocking(false)?;
                read
            }
            End::Tcp(end) => {
                end.set_nonblocking(true)?;
                let read = end.read_to_end(sink);
                end.set_nonblocking(false)?;
                read
            }
        };
        match read {
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => Err(e),
            _ => Ok(()),
        }
    }
}

/// A session between two held ends.
pub struct Stage {
    session: Session,
    client: End,
    server: End,
    /// What was read from the ends, to be thrown away.
    sink: Vec<u8>,
}

/// Opens rows of one result.
pub struct RowOpener {
    opener: Opener,
    shared: Arc<Shared>,
}

fn failed(failure: &Failure) -> String {
    format!("{failure:?}")
}

/// A configuration that protects and bounds nothing.
pub(crate) fn bare_config(keys: Arc<KeySet>) -> Config {
    Config {
        backend: Backend::Unix("/nowhere".into()),
        keys,
        keys_provider: None,
        suite: Suite::Aes,
        policy: Policy::default(),
        masks: Masks::default(),
        client_tls: None,
        proxy_networks: Vec::new(),
        requires_tls: false,
        client_authority: None,
        certificates_end: Vec::new(),
        certificates: CertificateRules::default(),
        tells_clients: false,
        member_timeout: None,
        causal: None,
        backend_tls: BackendTls::Never,
        backend_rsa_key: None,
        login: LoginLimits::default(),
        trace: false,
        shapes: None,
        sessions: SessionLimits::default(),
        finish: FinishLimits::default(),
        slow: SlowLimits::default(),
        audit: None,
        scratch: None,
        like_index: false,
        functions: None,
        pins: None,
        counts: false,
    }
}

impl Stage {
    /// A session that has logged in, into the database of the tables. `no_tables` are
    /// words of statements that the proxy would otherwise look up there. `settings` is the server's
    /// whole answer to what the proxy asks at login, framed in packets.
    pub fn new(
        keys: Arc<KeySet>,
        family: Family,
        tables: Vec<Table>,
        no_tables: &[&str],
        settings: &[u8],
        wires: Wires,
    ) -> StageResult<Self> {
        let pair = || End::pair(wires).map_err(|e| e.to_string());
        let (client, client_of_proxy) = pair()?;
        let (mut server, server_of_proxy) = pair()?;
        server.put(settings).map_err(|e| e.to_string())?;
        let shared = Shared::new(bare_config(keys));
        let mut ok = Vec::new();
        OkPacket::default().encode(&mut ok, CAPABILITIES);
        let login = Login {
            client: Connection::new(client_of_proxy),
            server: Connection::new(server_of_proxy),
            client_capabilities: CAPABILITIES,
            server_capabilities: CAPABILITIES,
            form: DefinitionForm::Standard,
            family,
            server_version: String::new(),
            connection_id: 1,
            user: "stage".into(),
            database: tables.first().map(|table| table.database.clone()),
            charset: 45,
            attributes: None,
            client_authority: None,
            trust: LinkTrust::default(),
            era: Era::default(),
            ok,
        };
        let peer = ClientAddress::Tcp((Ipv4Addr::LOCALHOST, 0).into());
        let session = Session::begin(login, peer, Live::new(shared), Arc::default())
            .map_err(|e| failed(&e))?;
        let database = session.state.database.clone().unwrap_or_default();
        for name in no_tables {
            session.account.know(&database, name, None);
        }
        for table in tables {
            let name = table.name.clone();
            session.account.know(&database, &name, Some(table));
        }
        let mut stage = Stage {
            session,
            client,
            server,
            sink: Vec::new(),
        };
        stage.received_by_client()?;
        stage.received_by_server()?;
        Ok(stage)
    }

    /// Counts from now on what the session does, as with an administration address.
    pub fn count(&mut self) {
        self.session.meter = Meter::new(Some(Arc::new(Metrics::new())), None);
        self.session.server.connection.measure_waits();
    }

    /// Lays out a command, and what the server will answer; both framed in packets.
    pub fn put(&mut self, command: &[u8], answers: &[u8]) -> StageResult<()> {
        self.server.put(answers).map_err(|e| e.to_string())?;
        self.client.put(command).map_err(|e| e.to_string())
    }

    /// The session does the command that was laid out and answers. `false`: it has ended.
    pub fn turn(&mut self) -> bool {
        self.session.turn()
    }

    /// What the client has received since it was asked last.
    pub fn received_by_client(&mut self) -> StageResult<&[u8]> {
        self.client
            .take(&mut self.sink)
            .map_err(|e| e.to_string())?;
        Ok(&self.sink)
    }

    /// What the server has received since it was asked last.
    pub fn received_by_server(&mut self) -> StageResult<&[u8]> {
        self.server
            .take(&mut self.sink)
            .map_err(|e| e.to_string())?;
        Ok(&self.sink)
    }

    /// Reads a statement's shape and recalls its plan: the first step of every statement. `false`:
    /// there is no plan yet.
    pub fn recall(&mut self, sql: &[u8]) -> Result<bool, LexError> {
        let session = &mut self.session;
        session.template.read(sql, session.space.settings.lex)?;
        Ok(session.space.get(&session.template.key).is_some())
    }

    fn keyed_plan(&mut self, sql: &[u8]) -> StageResult<Arc<KeyedPlan>> {
        self.recall(sql).map_err(|e| e.to_string())?;
        let found = self.session.space.get(&self.session.template.key);
        found.ok_or_else(|| "the statement has no plan yet".to_string())
    }

    /// Appends the text that the server gets for a statement that has a plan.
    pub fn bind(&mut self, sql: &[u8], out: &mut Vec<u8>) -> StageResult<()> {
        let keyed = self.keyed_plan(sql)?;
        let Action::Server { text, .. } = &keyed.plan.action else {
            return Err("not a statement of tier 1".into());
        };
        let session = &mut self.session;
        let values = Values {
            sql,
            literals: &session.template.literals,
            params: &[],
            long_data: &[],
            from_variables: &[],
        };
        Binder::new(&keyed, &session.state, values, &mut session.buffers)
            .text(text, 1, out)
            .map_err(|e| failed(&e))
    }

    /// What opens rows whose columns are these columns of a statement's plan, or plain ones.
    pub fn opener(
        &mut self,
        sql: &[u8],
        columns: &[(Option<usize>, ParamType)],
        binary: bool,
    ) -> StageResult<RowOpener> {
        let keyed = self.keyed_plan(sql)?;
        let types = columns.iter().map(|(_, ty)| *ty).collect();
        let columns = columns.iter().map(|(column, _)| {
            let open = column.map(|c| (c, OpenFrom::Sealed));
            ResultItem {
                open,
                ..ResultItem::plain()
            }
        });
        Ok(RowOpener {
            opener: Opener::of_items(&keyed, columns, types, binary),
            shared: Arc::clone(&self.session.shared),
        })
    }

    /// Appends a row, as the client gets it.
    pub fn open_row(
        &self,
        opener: &mut RowOpener,
        row: &[u8],
        out: &mut Vec<u8>,
    ) -> StageResult<()> {
        let ctx = open::format_context(&self.session.state).map_err(|e| failed(&e))?;
        let keys = &opener.shared.config.keys;
        opener
            .opener
            .row(row, keys, &ctx, out)
            .map_err(|e| failed(&e))
    }
}
