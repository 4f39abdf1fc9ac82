//! A session: read a command, recall or make its plan, bind, run, open, write.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the loop and the commands |
//! | `untold` | what changes in the session, told or not |
//! | `ending` | errors in the place of answers, and how a session ends |
//! | `change_user` | `COM_CHANGE_USER`, and what a session forgets |
//! | `database` | which database the session is in |
//! | `execution`, `statement_run` | one execution of a plan, and what is known of it meanwhile |
//! | `doubt` | whether tables that a plan takes for missing are there |
//! | `words` | statements that are told by their words |
//! | `planning` | plans, recalled or made |
//! | `query` | `COM_QUERY`: one statement or several, and the second attempt after a stale snapshot |
//! | `values` | a text's values bound, and what follows where one is wrong |
//! | `audit` | lines of the audit log |
//! | `demoted` | what follows if the session's server is no longer the primary |
//! | `reading` | what a session of `listen_read` may do, and what it waits for |
//! | `noting` | what is noted of refused statements |
//! | `slow` | the log of slow statements |
//! | `relay` | answers that go through as they are |
//! | `results` | results opened, and the packets that end an answer |
//! | `duplicate` | which value an error about a duplicate is about |
//! | `texts` | the server's error texts in logical terms |

mod audit;
mod change_user;
mod database;
mod demoted;
mod doubt;
mod duplicate;
mod ending;
mod execution;
mod noting;
mod planning;
mod query;
mod reading;
mod relay;
mod results;
mod slow;
mod statement_run;
mod texts;
mod untold;
mod values;
mod words;

use std::sync::Arc;

use onionskin_plan::{Template, errors};
use onionskin_value::Family;
use onionskin_wire::auth::LinkTrust;
use onionskin_wire::messages::Command;
use onionskin_wire::packets::DEFAULT_MAX_PAYLOAD;
use onionskin_wire::{Capabilities, Connection, WireError};

use crate::audit::Audited;
use crate::bind::Buffers;
use crate::catalog::{Account, PlanSpace};
use crate::client_address::ClientAddress;
use crate::diagnostics::Diagnostics;
use crate::error::{Failure, Outcome};
use crate::exchange::Server;
use crate::foreign_keys::KeyAnswers;
use crate::fresh_transaction::FreshTransaction;
use crate::functions::kept::Functions;
use crate::live::Live;
use crate::login::Login;
use crate::login::database::must_be;
use crate::members::Era;
use crate::metrics::{Ending, Meter};
use crate::next_transaction::NextTransaction;
use crate::prepared::Statements;
use crate::scratch::Engine;
use crate::server_errors::WRONG_DATABASE_NAME;
use crate::slow_log::Arrival;
use crate::state::{ClientTracking, Purpose, State};
use crate::unique_keys::UniqueKeys;
use crate::unseen::Unseen;
use crate::watch::Activity;
use crate::{Shared, touched};

pub(crate) use execution::{Execution, Protocol, Way};
pub(crate) use relay::shows_physical_name;
pub(crate) use statement_run::StatementRun;
pub(crate) use texts::{hide_tokens, in_logical_terms, logical_text, without_physical};
pub(crate) use untold::Unsure;

/// One client and its server connection.
pub(crate) struct Session {
    pub client: Connection,
    pub client_capabilities: Capabilities,
    pub server: Server,
    /// What holds now for all sessions.
    pub live: Arc<Live>,
    /// What holds for this session's command.
    pub shared: Arc<Shared>,
    pub state: State,
    pub account: Arc<Account>,
    pub space: Arc<PlanSpace>,
    pub template: Template,
    pub buffers: Buffers,
    pub statements: Statements,
    pub functions: Functions,
    /// The statement that runs.
    pub current: StatementRun,
    pub diagnostics: Diagnostics,
    pub unique_keys: UniqueKeys,
    /// `LOCK TABLES` is in force: a transaction of ours would end it.
    pub locked_tables: bool,
    /// What the server has said of keys to which others refer.
    pub(crate) key_answers: KeyAnswers,
    /// Whether the server's full-text indexes take gram tokens, once it was asked.
    pub indexes_tokens: Option<bool>,
    /// The client's `sql_select_limit`, while the server's is lifted.
    pub lifted_limit: Option<u64>,
    /// What the statements before this may have changed, and nobody has told.
    pub unsure: Unsure,
    /// Temporary tables that nobody has told of.
    pub unseen: Unseen,
    /// Whether a savepoint may hide the end of a transaction, once the server was asked.
    pub savepoints_hide: Option<bool>,
    /// There may be savepoints: the end of a transaction would end them.
    pub has_savepoints: bool,
    /// How often `collation_connection` may have been set, which servers do not track.
    pub collations_set: u64,
    /// The variables of whose changes the client wants to know.
    pub client_tracking: ClientTracking,
    /// What the client has said of its next transaction.
    pub next_transaction: NextTransaction,
    /// How the client has begun its transaction, if nothing was asked in it yet.
    pub fresh_transaction: FreshTransaction,
    /// The session at the scratch engine, once there is one.
    pub engine: Option<Engine>,
    /// What the session is doing, for the thread that watches its connections.
    pub activity: Arc<Activity>,
    /// What is counted of the statement that runs.
    pub meter: Meter,
    /// For the audit log.
    pub audited: Audited,
    /// What held when the command arrived, where statements are told of with their shapes.
    arrival: Arrival,
    connection_id: u32,
    /// That of its login: see [`crate::members`].
    era: Era,
    /// What the session has waited for: see [`crate::written`].
    caught_up: u64,
    /// What makes the connection to the server fit for a password, as it was made.
    trust: LinkTrust,
    /// The authority whose certificate the client had to show when it connected.
    client_authority: Option<[u8; 32]>,
}

/// Runs a session until its client leaves.
pub(crate) fn run(login: Login, peer: ClientAddress, live: Arc<Live>, activity: Arc<Activity>) {
    let id = login.connection_id;
    let mut session = match Session::begin(login, peer, live, activity) {
        Ok(session) => session,
        Err(failure) => {
            tracing::warn!(id, ?failure, "the session could not begin");
            return;
        }
    };
    while session.turn() {}
}

/// Bytes beyond twice the server's `max_allowed_packet` that a command may have: refused, and the
/// session goes on.
const MORE: usize = 16 << 20;

impl Session {
    pub fn begin(
        login: Login,
        peer: ClientAddress,
        live: Arc<Live>,
        activity: Arc<Activity>,
    ) -> Outcome<Session> {
        let shared = live.current();
        activity.runs_under(shared.edition);
        let mut server = Server::new(login.server, login.server_capabilities, login.form);
        let only_reads = shared.leading.only_reads();
        server.written = shared.written.clone().filter(|_| !only_reads);
        let found_rows = login.server_capabilities.contains(Capabilities::FOUND_ROWS);
        tracing::debug!(
            id = login.connection_id,
            user = %login.user,
            database = login.database.as_deref(),
            charset = login.charset,
            server = %login.server_version,
            "logged in"
        );
        let mut client = login.client;
        if shared.leading.era() != login.era {
            shared.leading.tell_demoted(&mut client);
            return Err(Failure::Client(WireError::Closed));
        }
        // a reload may have come while the password was on its way
        let admitted = shared
            .login
            .must_admit(client.transport(), login.client_authority);
        if let Err(error) = admitted {
            crate::login::tell(&mut client, &error);
            return Err(Failure::Client(WireError::Closed));
        }
        let state = match State::read(
            &mut server,
            login.family,
            found_rows,
            &ClientTracking::default(),
            Purpose::of(&shared.leading, shared.written.is_some()),
        ) {
            Ok(state) => state,
            // the server took the password and then no statement: the account's may have expired
            Err(failure) => {
                if let Some(packet) = failure.packet() {
                    let mut out = Vec::new();
                    packet.encode(&mut out);
                    let told = client.write_payload(&out).and_then(|()| client.flush());
                    tracing::debug!(id = login.connection_id, ?told, "why it could not begin");
                }
                return Err(failure);
            }
        };
        let fits = shared.login.must_fit(&state.account, client.transport());
        let told = state.database.as_deref();
        let fits = fits.and_then(|()| must_be(told, login.database.as_deref()));
        if let Err(error) = fits {
            crate::login::tell(&mut client, &error);
            return Err(Failure::Client(WireError::Closed));
        }
        // What the server would never take is not gathered either. Hexadecimal digits may become
        // half as long.
        let most = server.bound.packet.saturating_mul(2).saturating_add(MORE);
        client.set_max_payload(most.min(DEFAULT_MAX_PAYLOAD));
        server.keeps_snapshots = state.family == Family::MySql;
        server.bounds_selects = state.family == Family::MySql;
        let mut meter = Meter::new(shared.metrics.clone(), shared.config.slow.after);
        let is_audited = shared.config.audit.is_some();
        meter.tell_all(is_audited);
        let mut audited = Audited::of(peer, login.attributes.as_deref());
        audited.opened.name_columns(is_audited);
        let mut buffers = Buffers::default();
        buffers.sealed.name_columns(is_audited);
        // from now on cells are counted as is asked for here
        touched::take_opened(&mut audited.opened);
        if meter.is_on() {
            server.connection.measure_waits();
        }
        let account = shared.accounts.get(&state.account);
        let tier3 = shared.use_scratch();
        let space = account.space(state.settings_key(), state.settings(tier3));
        let unseen = Unseen::at_login(&state);
        let mut session = Session {
            client,
            client_capabilities: login.client_capabilities,
            server,
            live,
            shared,
            state,
            account,
            space,
            template: Template::default(),
            buffers,
            statements: Statements::default(),
            functions: Functions::default(),
            current: StatementRun::default(),
            diagnostics: Diagnostics::default(),
            unique_keys: UniqueKeys::default(),
            locked_tables: false,
            key_answers: KeyAnswers::default(),
            indexes_tokens: None,
            lifted_limit: None,
            unsure: Unsure::default(),
            unseen,
            savepoints_hide: None,
            has_savepoints: false,
            collations_set: 0,
            client_tracking: ClientTracking::default(),
            next_transaction: NextTransaction::default(),
            fresh_transaction: FreshTransaction::default(),
            engine: None,
            activity,
            meter,
            audited,
            arrival: Arrival::default(),
            connection_id: login.connection_id,
            era: login.era,
            caught_up: 0,
            trust: login.trust,
            client_authority: login.client_authority,
        };
        session.state.changed = false;
        session.state.announce(u16::from(login.charset));
        // only now does the client learn that it is logged in
        session.write_ok_payload(&login.ok)?;
        session.flush()?;
        #[cfg(debug_assertions)]
        {
            session.server.is_faulty = crate::faults::are_wanted();
        }
        Ok(session)
    }

    /// Waits for a command, does it and answers. `false`: the session has ended.
    pub fn turn(&mut self) -> bool {
        self.client.shrink_idle();
        self.server.connection.shrink_idle();
        let rests = !self.client.has_buffered_packet();
        if self.era.term > 0 {
            self.tell_transaction();
        }
        if rests && !self.activity.rest() {
            return self.follow_server();
        }
        let received = self.client.read_command().map(<[u8]>::len);
        self.activity.begin(rests);
        if !self.live.is_current(&self.shared) {
            self.adopt();
        }
        if self.is_demoted() && (received.is_err() || !self.may_finish()) {
            return self.leave(received.is_ok());
        }
        self.meter.begin();
        if self.meter.tells_shapes() || self.shared.config.shapes.is_some() {
            self.arrival = self.arrival();
        }
        let done = match received {
            Ok(_) => self.server.check_silence().and_then(|()| self.command()),
            // the thread that watches has shut the client's socket down
            Err(_) if self.activity.is_server_gone() => return self.follow_server(),
            Err(WireError::Closed) => return false,
            Err(error) => Err(Failure::Client(error)),
        };
        let done = done.and_then(|goes_on| self.settled().map(|()| goes_on));
        let has_server = !matches!(&done, Err(failure) if failure.is_lost_server());
        let (goes_on, failure) = match done {
            Ok(goes_on) => (goes_on, None),
            Err(failure) => {
                self.meter.failed(failure.code());
                self.note_refusal(&failure);
                let goes_on = match failure.is_fatal() {
                    true => {
                        self.farewell(&failure);
                        false
                    }
                    false => self.refuse(&failure).is_ok(),
                };
                (goes_on, Some(failure))
            }
        };
        self.count(has_server, failure.as_ref(), goes_on);
        goes_on
    }

    /// Takes over the configuration that holds now. What the session has prepared is planned again
    /// before it is executed next, if plans rest on something else by now.
    #[cold]
    pub(super) fn adopt(&mut self) {
        let next = self.live.current();
        let keeps_plans = Arc::ptr_eq(&next.accounts, &self.shared.accounts);
        // other names may concern [protect] by now
        self.unseen.ask_again();
        self.shared = next;
        if !keeps_plans {
            self.account = match self.account.is_private() {
                // what others of its account know is known of another server
                false if self.is_demoted() => self.shared.accounts.private(&self.state.account),
                true => {
                    let accounts = &self.shared.accounts;
                    accounts.private_after(&self.account, &self.state.account)
                }
                false => self.shared.accounts.get(&self.state.account),
            };
            let tier3 = self.shared.use_scratch();
            let (key, settings) = (self.state.settings_key(), self.state.settings(tier3));
            self.space = self.account.space(key, settings);
        }
        let was_on = self.meter.is_on();
        self.meter.look_for_slow(self.shared.config.slow.after);
        if self.meter.is_on() && !was_on {
            self.server.connection.measure_waits();
        }
        self.activity.runs_under(self.shared.edition);
    }

    /// Adds what was counted of a command to what all sessions have done.
    fn count(&mut self, has_server: bool, failure: Option<&Failure>, goes_on: bool) {
        touched::take_opened(&mut self.audited.opened);
        #[cfg(debug_assertions)]
        self.assert_recordable();
        if self.meter.is_on() {
            let engine = self.engine.as_mut();
            let at_engine = engine.map(|engine| engine.server.connection.take_waited());
            let at_server = self.server.connection.take_waited();
            let ended = self.meter.end(&Ending {
                at_server,
                at_engine: at_engine.unwrap_or_default(),
                sealed: self.buffers.sealed.total(),
                opened: self.audited.opened.total(),
                rows: self.server.tracker.take_rows(),
                has_server,
            });
            if let Some(ended) = ended {
                if ended.is_slow {
                    self.log_slow(&ended, goes_on);
                }
                self.record(&ended, failure, goes_on);
            }
        }
        self.buffers.sealed.clear();
        if let Some(shapes) = &self.shared.config.shapes {
            self.note_shapes(shapes);
        }
    }

    /// A command is done: no answer of the server's is left that it has asked for.
    fn settled(&mut self) -> Outcome<()> {
        if !self.server.is_settled() {
            tracing::debug!(id = self.connection_id, "an answer was left");
            self.server.settle()?;
        }
        Ok(())
    }

    /// Does one command. `Ok(false)` ends the session.
    fn command(&mut self) -> Outcome<bool> {
        let command = match Command::of(self.client.last_payload()) {
            Ok(command) => command,
            Err(error) => return Err(Failure::Client(error)),
        };
        self.be_certain(command)?;
        self.keep_row_count();
        self.current = StatementRun::new(self.server.status);
        let runs = matches!(command, Command::Query | Command::StmtExecute);
        self.meter.statement(runs);
        if self.shared.leading.only_reads() {
            self.may_read(command)?;
        }
        match command {
            Command::Quit => {
                self.server.connection.reset_sequence();
                let _ = self
                    .server
                    .connection
                    .write_payload(&[Command::Quit.to_byte()]);
                let _ = self.server.connection.flush();
                return Ok(false);
            }
            Command::Query => self.query()?,
            Command::StmtPrepare => self.prepare()?,
            Command::StmtExecute => self.execute()?,
            Command::StmtFetch => self.fetch()?,
            Command::StmtClose | Command::StmtReset | Command::StmtSendLongData => {
                self.statement_command(command)?;
            }
            Command::FieldList => self.field_list()?,
            Command::ChangeUser => self.change_user()?,
            Command::ResetConnection => {
                self.relay_command()?;
                self.forget_session()?;
            }
            Command::InitDb
            | Command::Ping
            | Command::Statistics
            | Command::SetOption
            | Command::ProcessInfo
            | Command::ProcessKill
            | Command::Refresh
            | Command::Debug
            | Command::Shutdown => {
                let option = self.client.last_payload().get(1).copied();
                if command == Command::InitDb {
                    self.must_be_a_name()?;
                }
                self.relay_command()?;
                if command == Command::SetOption {
                    // 0: a text may hold several statements, 1: it may not
                    let several = option == Some(0);
                    self.server
                        .capabilities
                        .set(Capabilities::MULTI_STATEMENTS, several);
                }
                self.current.has_chosen = command == Command::InitDb;
                if self.current.has_chosen {
                    self.state.present_collation = None;
                }
                if command == Command::InitDb
                    && !self
                        .server
                        .capabilities
                        .contains(Capabilities::SESSION_TRACK)
                {
                    self.refresh_state()?;
                }
            }
            // No client sends this. It is how the first packet looks of one that compresses
            // although that was not offered. It would wait for ever for an answer that it can read.
            Command::Sleep => {
                tracing::warn!(
                    id = self.connection_id,
                    "a packet that seems to be compressed, which was not offered"
                );
                let about = "compressed, which was not offered";
                return Err(Failure::Client(WireError::Malformed(about)));
            }
            _ => {
                return Err(Failure::refused(&errors::COMMAND, command.name()));
            }
        }
        self.tells_of_command(command);
        self.flush()?;
        self.after_command()?;
        self.note_untold()?;
        self.learn_collation()?;
        Ok(true)
    }

    /// A command that is no statement has been done. What the client may ask about its last
    /// statement is about the command now, as at a server: `ROW_COUNT()` is 0 behind an OK, -1
    /// behind the EOF that answers COM_SET_OPTION, and the list of warnings stays.
    fn tells_of_command(&mut self, command: Command) {
        let rows = match command {
            Command::InitDb | Command::Ping | Command::ProcessKill | Command::StmtReset => 0,
            Command::SetOption => -1,
            _ => return,
        };
        self.diagnostics.row_count = Some(rows);
    }

    /// Refuses COM_INIT_DB with more behind the database's name: MySQL reads the name up to a NUL,
    /// and remembers all of it.
    fn must_be_a_name(&self) -> Outcome<()> {
        let name = self.client.last_payload().get(1..).unwrap_or_default();
        match name.contains(&0) {
            true => Err(Failure::Server {
                code: WRONG_DATABASE_NAME,
                state: *b"42000",
                message: [b"Incorrect database name '", name, b"'"].concat(),
            }),
            false => Ok(()),
        }
    }

    pub fn flush(&mut self) -> Outcome<()> {
        self.client.flush().map_err(Failure::Client)
    }

    pub fn write(&mut self, payload: &[u8]) -> Outcome<()> {
        self.client.write_payload(payload).map_err(Failure::Client)
    }
}
