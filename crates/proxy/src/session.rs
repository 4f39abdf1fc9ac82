//! A session: read a command, recall or make its plan, bind, run, open, write.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use onionskin_plan::{Action, Outcome as PlanOutcome, Request, Template, errors};
use onionskin_value::Family;
use onionskin_wire::messages::{Command, OkPacket};
use onionskin_wire::{Capabilities, Connection, StatusFlags, Step, WireError};

use crate::Shared;
use crate::bind::{Binder, Scratch, Values, is_early};
use crate::catalog::{Account, PlanSpace, Prepared};
use crate::diagnostics::{self, Diagnostics};
use crate::error::{Failure, Outcome};
use crate::exchange::{Done, Server};
use crate::login::Login;
use crate::open::{self, Opener};
use crate::prepared::Statements;
use crate::row_update::matched_rows;
use crate::scratch::Engine;
use crate::state::State;
use crate::upsert::UniqueKeys;

/// One client and its server connection.
pub(crate) struct Session {
    pub client: Connection,
    pub client_capabilities: Capabilities,
    pub server: Server,
    pub shared: Arc<Shared>,
    pub state: State,
    pub account: Arc<Account>,
    pub space: Arc<PlanSpace>,
    pub template: Template,
    pub scratch: Scratch,
    pub statements: Statements,
    pub diagnostics: Diagnostics,
    pub unique_keys: UniqueKeys,
    /// `LOCK TABLES` is in force: a transaction of ours would end it.
    pub locked_tables: bool,
    /// Whether the server's full-text indexes take gram tokens, once it was asked.
    pub indexes_tokens: Option<bool>,
    /// The session at the scratch engine, once there is one.
    pub engine: Option<Engine>,
    connection_id: u32,
}

/// A statement's text and shape, and its plan.
pub(crate) struct Planned {
    pub sql: Vec<u8>,
    pub template: Template,
    pub prepared: Arc<Prepared>,
}

/// Runs a session until its client leaves.
pub(crate) fn run(login: Login, shared: Arc<Shared>) {
    let id = login.connection_id;
    let busy = shared.sessions.busy_flag(id);
    let mut session = match Session::begin(login, shared) {
        Ok(session) => session,
        Err(failure) => {
            tracing::warn!(id, ?failure, "the session could not begin");
            return;
        }
    };
    loop {
        session.client.shrink_idle();
        session.server.connection.shrink_idle();
        if !session.client.has_buffered_packet() {
            busy.store(false, Ordering::Release);
        }
        let received = session.client.read_command().map(<[u8]>::len);
        busy.store(true, Ordering::Release);
        let done = match received {
            Ok(_) => session.command(),
            Err(WireError::Closed) => break,
            Err(error) => Err(Failure::Client(error)),
        };
        match done {
            Ok(true) => {}
            Ok(false) => break,
            Err(failure) => {
                if !failure.is_fatal() {
                    if session.refuse(&failure).is_err() {
                        break;
                    }
                    continue;
                }
                session.farewell(&failure);
                break;
            }
        }
    }
}

impl Session {
    fn begin(login: Login, shared: Arc<Shared>) -> Outcome<Session> {
        let mut server = Server::new(login.server, login.server_capabilities);
        let found_rows = login.server_capabilities.contains(Capabilities::FOUND_ROWS);
        tracing::debug!(
            id = login.connection_id,
            user = %login.user,
            database = login.database.as_deref(),
            charset = login.charset,
            server = %login.server_version,
            "logged in"
        );
        let client = login.client;
        let state = State::read(&mut server, login.family, found_rows)?;
        let account = shared.accounts.get(&state.account);
        let tier3 = shared.use_scratch();
        let space = account.space(state.settings_key(), state.settings(tier3));
        let mut session = Session {
            client,
            client_capabilities: login.client_capabilities,
            server,
            shared,
            state,
            account,
            space,
            template: Template::default(),
            scratch: Scratch::default(),
            statements: Statements::default(),
            diagnostics: Diagnostics::default(),
            unique_keys: UniqueKeys::default(),
            locked_tables: false,
            indexes_tokens: None,
            engine: None,
            connection_id: login.connection_id,
        };
        session.state.changed = false;
        session.state.announce(u16::from(login.charset));
        // only now does the client learn that it is logged in
        session.write_ok_payload(&login.ok)?;
        session.flush()?;
        Ok(session)
    }

    /// Does one command. `Ok(false)` ends the session.
    fn command(&mut self) -> Outcome<bool> {
        let command = match Command::of(self.client.last_payload()) {
            Ok(command) => command,
            Err(error) => return Err(Failure::Client(error)),
        };
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
                self.relay_command(command)?;
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
                self.relay_command(command)?;
                if command == Command::InitDb
                    && !self
                        .server
                        .capabilities
                        .contains(Capabilities::SESSION_TRACK)
                {
                    self.refresh_state()?;
                }
            }
            _ => {
                return Err(Failure::refused(&errors::COMMAND, command.name()));
            }
        }
        self.flush()?;
        self.after_command();
        Ok(true)
    }

    /// Takes over what the server reported during a command.
    pub fn after_command(&mut self) {
        if !self.server.changes.is_empty() {
            let changes = std::mem::take(&mut self.server.changes);
            self.state.observe(&changes);
            self.server.changes = changes;
            self.server.changes.clear();
        }
        if self.state.changed {
            self.state.changed = false;
            let tier3 = self.shared.use_scratch();
            self.space = self
                .account
                .space(self.state.settings_key(), self.state.settings(tier3));
        }
    }

    /// Forgets what the session did: it begins again, perhaps with another user.
    fn forget_session(&mut self) -> Outcome<()> {
        self.statements.clear();
        self.diagnostics.clear();
        self.unique_keys = UniqueKeys::default();
        self.locked_tables = false;
        self.engine = None;
        self.refresh_state()
    }

    /// Asks the server for the session's settings again, after everything was reset.
    fn refresh_state(&mut self) -> Outcome<()> {
        let family = self.state.family;
        self.state = State::read(&mut self.server, family, self.state.found_rows)?;
        self.account = self.shared.accounts.get(&self.state.account);
        Ok(())
    }

    fn change_user(&mut self) -> Outcome<()> {
        let payload = self.client.last_payload().to_vec();
        let done = crate::login::change_user(
            &mut self.client,
            &mut self.server.connection,
            &payload,
            self.client_capabilities,
            self.server.capabilities,
        )?;
        let Some(ok) = done else {
            return Err(Failure::Client(WireError::Closed));
        };
        self.forget_session()?;
        self.write_ok_payload(&ok)
    }

    pub fn flush(&mut self) -> Outcome<()> {
        self.client.flush().map_err(Failure::Client)
    }

    pub fn write(&mut self, payload: &[u8]) -> Outcome<()> {
        self.client.write_payload(payload).map_err(Failure::Client)
    }

    /// Sends the client an error in the place of an answer. What the server still has to say is
    /// read and thrown away.
    fn refuse(&mut self, failure: &Failure) -> Result<(), WireError> {
        tracing::debug!(id = self.connection_id, ?failure, "refused");
        self.client.cancel_payload();
        if self.server.drain().is_err() {
            return Err(WireError::Closed);
        }
        if let Some(packet) = failure.packet() {
            let mut out = Vec::new();
            packet.encode(&mut out);
            self.client.write_payload(&out)?;
            // of an error of its own the server keeps what SHOW WARNINGS shows, unless it has run
            // another statement since
            let interfered = std::mem::take(&mut self.statements.interfered);
            let ours = interfered || !matches!(failure, Failure::Server { .. });
            let surplus = self.diagnostics.surplus;
            let warnings = std::mem::take(&mut self.diagnostics.warnings);
            self.diagnostics.clear();
            if !ours {
                // what the server shows stands among them
                self.diagnostics.surplus = surplus;
                self.diagnostics.warnings = warnings;
                self.diagnostics.failed_at_server();
            } else {
                let others = std::mem::take(&mut self.scratch.refused_among_others);
                let among_others = others && matches!(failure, Failure::Value(_));
                self.diagnostics.unclear = among_others
                    || self.state.family == Family::MySql
                        && diagnostics::calls_values(&self.template.key);
                self.diagnostics.error = Some((packet.code, packet.message.to_vec()));
                self.diagnostics.row_count = Some(-1);
            }
        }
        self.client.flush()?;
        self.after_command();
        Ok(())
    }

    /// The last packet before a session that cannot go on is closed.
    fn farewell(&mut self, failure: &Failure) {
        tracing::info!(
            id = self.connection_id,
            ?failure,
            "the session is broken off"
        );
        self.client.cancel_payload();
        if let Failure::Client(WireError::Malformed(_) | WireError::SequenceMismatch { .. }) =
            failure
        {
            let packet = Failure::refused(&errors::MALFORMED, "");
            if let Some(packet) = packet.packet() {
                let mut out = Vec::new();
                packet.encode(&mut out);
                let _ = self.client.write_payload(&out);
            }
        } else if let Failure::Client(WireError::TooLarge { .. }) = failure {
            let packet = Failure::refused(&errors::TOO_BIG, "");
            if let Some(packet) = packet.packet() {
                let mut out = Vec::new();
                packet.encode(&mut out);
                let _ = self.client.write_payload(&out);
            }
        } else if let Some(packet) = failure.packet() {
            let mut out = Vec::new();
            packet.encode(&mut out);
            let _ = self.client.write_payload(&out);
        }
        let _ = self.client.flush();
    }

    // --- plans ---

    /// Recalls or makes the plan of one statement. The template has been read.
    pub fn plan(&mut self, sql: &[u8]) -> Outcome<Arc<Prepared>> {
        if let Some(found) = self.space.get(&self.template.key)
            && found.generation == self.account.generation()
            && self.pinned_hold(&found, sql)
        {
            if self.account.recheck_due(&found) {
                let names = found.plan.names.clone();
                if self.look_up(&names)? {
                    return self.make_plan(sql, false);
                }
            }
            return Ok(found);
        }
        self.make_plan(sql, false)
    }

    fn pinned_hold(&self, prepared: &Prepared, sql: &[u8]) -> bool {
        prepared.plan.pinned.iter().all(|(index, text)| {
            self.template
                .literals
                .get(*index)
                .is_some_and(|l| l.text(sql) == text.as_slice())
        })
    }

    pub fn look_up(&mut self, names: &[(String, String)]) -> Outcome<bool> {
        self.account
            .look_up(&mut self.server, &self.shared.config.keys, names)
    }

    /// Plans a statement. With `fresh`, every table that it names is looked up again first.
    pub fn make_plan(&mut self, sql: &[u8], fresh: bool) -> Outcome<Arc<Prepared>> {
        let mut looked_up = fresh;
        for _ in 0..8 {
            let generation = self.account.generation();
            let outcome = onionskin_plan::plan(&Request {
                sql,
                template: &self.template,
                settings: &self.space.settings,
                catalog: self.account.as_ref(),
                policy: &self.shared.config.policy,
            });
            match outcome {
                PlanOutcome::Need(names) => {
                    looked_up = true;
                    self.look_up(&names)?;
                }
                PlanOutcome::Plan(plan) => {
                    let refused = matches!(plan.action, Action::Refuse(_));
                    if refused && !looked_up {
                        // a refusal must not rest on an old snapshot
                        looked_up = true;
                        let names = plan.names.clone();
                        if self.look_up(&names)? {
                            continue;
                        }
                    }
                    self.check_settings(&plan)?;
                    let keys = Arc::clone(&self.shared);
                    let prepared = self.account.prepare(*plan, &keys.config.keys, generation)?;
                    let once = matches!(prepared.plan.action, Action::Compute { .. });
                    if !refused && !once && !prepared.plan.defines {
                        self.space.put(&self.template.key, &prepared);
                    }
                    return Ok(prepared);
                }
            }
        }
        Err(Failure::Stale)
    }

    /// Statements near protected tables need a session whose settings are known.
    fn check_settings(&self, plan: &onionskin_plan::Plan) -> Outcome<()> {
        if matches!(plan.action, Action::Relay | Action::Refuse(_)) {
            return Ok(());
        }
        if !self.state.tracked {
            return Err(Failure::refused(
                &errors::TRACKING,
                "session_track_system_variables",
            ));
        }
        if self.state.client_charset.is_none() || self.state.connection_charset.is_none() {
            return Err(Failure::refused(
                &errors::CHARACTER_SET,
                "character_set_client",
            ));
        }
        Ok(())
    }

    // --- COM_QUERY ---

    fn query(&mut self) -> Outcome<()> {
        let mode = self.space.settings.lex;
        let sql = self.client.last_payload().get(1..).unwrap_or_default();
        let readable = self.state.client_charset.is_some() && self.state.tracked;
        if self.template.read(sql, mode).is_err() || !readable {
            let sql = sql.to_vec();
            return self.unreadable(&sql);
        }
        if self.template.multiple {
            let sql = sql.to_vec();
            return self.several(&sql);
        }
        if self.diagnostics.any() {
            let sql = sql.to_vec();
            return match self.ask(&sql)? {
                true => Ok(()),
                false => self.statement(&sql, true),
            };
        }
        // the common case: a plan is at hand and nothing protected is near
        if let Some(found) = self.space.get(&self.template.key)
            && found.generation == self.account.generation()
            && matches!(found.plan.action, Action::Relay)
        {
            let locks = locks_tables(&self.template.key);
            let done = self.relay_query(&found, locks);
            return self.relayed_again(&found, done);
        }
        let sql = sql.to_vec();
        self.statement(&sql, true)
    }

    /// After a relayed statement: if it failed because a table has become a protected one (a migration puts another in its
    /// place), it is planned and run once more.
    fn relayed_again(&mut self, relayed: &Prepared, done: Outcome<()>) -> Outcome<()> {
        let is_stale = match &done {
            Err(Failure::Stale) => true,
            Err(Failure::Server { code, message, .. }) => looks_stale(*code, message),
            _ => false,
        };
        if !is_stale {
            return done;
        }
        self.server.drain()?;
        let changed =
            self.look_up(&relayed.plan.names)? || self.account.generation() != relayed.generation;
        if !changed {
            return done;
        }
        let sql = self.client.last_payload().get(1..).unwrap_or_default();
        let sql = sql.to_vec();
        self.statement(&sql, true)
    }

    /// A text that cannot be lexed, or a session whose character set cannot: it goes through if
    /// no word of it is the name of a protected table. Words may be values here, so the server
    /// is asked for all protected tables, not for the words.
    fn unreadable(&mut self, sql: &[u8]) -> Outcome<()> {
        let names = self.server.rows(
            b"SELECT DISTINCT TABLE_NAME FROM information_schema.COLUMNS WHERE COLUMN_NAME LIKE '%$enc'",
        )?;
        let is_word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || *b >= 0x80;
        let mut words = sql.split(|b| !is_word(b)).filter(|w| !w.is_empty());
        let near = words.any(|word| {
            names
                .iter()
                .flatten()
                .flatten()
                .any(|name| name.eq_ignore_ascii_case(word))
        }) || names.iter().flatten().flatten().any(|name| {
            // a name that needs quotes
            !name.iter().all(is_word) && memchr::memmem::find(sql, name).is_some()
        });
        if near {
            let entry = if self.state.client_charset.is_none() {
                &errors::CHARACTER_SET
            } else {
                &errors::NOT_UNDERSTOOD
            };
            return Err(Failure::refused(entry, ""));
        }
        self.put_client_query()?;
        self.relay_answer(Command::Query, &[])
    }

    /// Several statements in one text: relayed as they are if nothing protected is near any of
    /// them, else run one after the other.
    fn several(&mut self, sql: &[u8]) -> Outcome<()> {
        let mode = self.space.settings.lex;
        let parts = onionskin_plan::lex::split(sql, mode)
            .map_err(|_| Failure::refused(&errors::NOT_UNDERSTOOD, "its words"))?;
        let allowed = self
            .server
            .capabilities
            .contains(Capabilities::MULTI_STATEMENTS);
        let Some(parts) = parts.filter(|_| allowed) else {
            // a stored program: its semicolons belong to it
            return self.unreadable(sql);
        };
        let mut all_relay = true;
        for range in &parts {
            let part = &sql[range.clone()];
            self.template
                .read(part, mode)
                .map_err(|_| Failure::refused(&errors::NOT_UNDERSTOOD, "its words"))?;
            let planned = self.plan(part)?;
            all_relay &= matches!(planned.plan.action, Action::Relay) && !planned.plan.defines;
            let changes_mode = part
                .get(..4)
                .is_some_and(|w| w.eq_ignore_ascii_case(b"set "))
                || part
                    .get(..4)
                    .is_some_and(|w| w.eq_ignore_ascii_case(b"use "));
            all_relay &= !changes_mode;
            all_relay &= !(self.diagnostics.any() && diagnostics::asks(&self.template.key));
        }
        if all_relay {
            self.diagnostics.clear();
            self.put_client_query()?;
            return self.relay_answer(Command::Query, &[]);
        }
        for (i, range) in parts.iter().enumerate() {
            let part = sql[range.clone()].to_vec();
            self.template
                .read(&part, self.space.settings.lex)
                .map_err(|_| Failure::refused(&errors::NOT_UNDERSTOOD, "its words"))?;
            let last = i + 1 == parts.len();
            if !self.one_of_several(&part, last)? {
                break;
            }
            self.after_command();
        }
        Ok(())
    }

    /// Runs one of several statements. `Ok(false)`: it failed, the others are not run.
    fn one_of_several(&mut self, sql: &[u8], last: bool) -> Outcome<bool> {
        self.statements.more_results = !last;
        let before = self.statements.errors_sent;
        let done = match self.ask(sql) {
            Ok(false) => self.statement(sql, false),
            answered => answered.map(|_| ()),
        };
        self.statements.more_results = false;
        done?;
        Ok(self.statements.errors_sent == before)
    }

    /// Plans and runs one statement; `whole` says that it is the client's packet.
    pub fn statement(&mut self, sql: &[u8], whole: bool) -> Outcome<()> {
        let mut prepared = self.plan(sql)?;
        let mut template = std::mem::take(&mut self.template);
        let mut attempts = 0;
        self.statements.wrote = false;
        self.statements.interfered = false;
        let done = loop {
            let planned = Planned {
                sql: sql.to_vec(),
                template,
                prepared: Arc::clone(&prepared),
            };
            let done = self.run(&planned, whole);
            template = planned.template;
            let retry = match &done {
                // a value may be wrong for what the table was, and right for what it is
                Err(Failure::Stale | Failure::Value(_)) => true,
                Err(Failure::Server { code, message, .. }) => looks_stale(*code, message),
                Err(Failure::Refused(r)) => does_not_open(r) && !self.statements.wrote,
                _ => false,
            };
            if let Err(Failure::Refused(refusal)) = &done
                && attempts < 2
                && self.scratch_may_do(&prepared, refusal)
            {
                attempts = 2;
                self.server.drain()?;
                if let Some(other) = self.scratch_plan(sql, &template)? {
                    prepared = other;
                    continue;
                }
            }
            if !retry || attempts > 0 {
                break done;
            }
            attempts += 1;
            self.server.drain()?;
            let names = prepared.plan.names.clone();
            // another session may have been faster to see the change
            let changed = self.look_up(&names)? || self.account.generation() != prepared.generation;
            if !changed && !matches!(done, Err(Failure::Stale)) {
                self.statements.interfered = true;
                break done;
            }
            self.template = template;
            prepared = self.make_plan(sql, true)?;
            template = std::mem::take(&mut self.template);
        };
        self.template = template;
        if let Err(Failure::Server {
            code,
            state,
            message,
        }) = done
        {
            let message = logical_text(&message, &prepared);
            return Err(Failure::Server {
                code,
                state,
                message,
            });
        }
        done
    }

    fn run(&mut self, planned: &Planned, whole: bool) -> Outcome<()> {
        let prepared = &planned.prepared;
        match &prepared.plan.action {
            Action::Relay => {
                let locks = locks_tables(&planned.template.key);
                if whole {
                    self.relay_query(prepared, locks)
                } else {
                    self.server.put_query(&planned.sql)?;
                    self.server.flush()?;
                    self.relay_answer(Command::Query, &[])?;
                    self.locked_tables = locks.unwrap_or(self.locked_tables);
                    self.after_relay(prepared)
                }
            }
            Action::Refuse(refusal) => Err(refusal.clone().into()),
            Action::Server { text, result } => {
                if let Some(upsert) = &prepared.plan.upsert {
                    let rows = planned.template.rows.map_or(1, |r| r.count);
                    let ignore = planned.is_ignore();
                    self.keep_cells(prepared, upsert, planned.values(), rows, ignore)?;
                }
                match self.send_text(planned, text, false) {
                    Err(Failure::Value(error)) => {
                        let rows = planned.template.rows.map_or(1, |r| r.count);
                        let flags = (planned.is_ignore(), planned.is_lenient());
                        return self.not_looked_at(prepared, planned.values(), rows, flags, error);
                    }
                    sent => sent?,
                }
                match result {
                    None => self.relay_answer(Command::Query, &[]),
                    Some(items) => self.open_result(prepared, items, false).map(|_| ()),
                }
            }
            Action::Finish(finish) => self.finish_query(planned, finish),
            Action::Compute { .. } => self.compute_and_run(planned.values()),
            Action::Scratch(scratch) => {
                self.scratch_query(prepared, scratch, planned.values(), None)
            }
            Action::Update(update) => {
                let values = planned.values();
                self.row_update(prepared, update, values)
            }
            Action::Delete(delete) => self.row_delete(prepared, delete, planned.values()),
            Action::Define(ddl) => {
                self.define(ddl, prepared)?;
                self.after_relay(prepared)
            }
            Action::Show { what, text, table } => self.show(planned, what, text, table),
        }
    }

    /// A value is wrong. That is no error where the server never looks at it: the new values of
    /// an `UPDATE` that finds no row, and of an `INSERT` that meets none. `flags` are whether
    /// errors are ignored, and whether NULLs are taken leniently.
    pub fn not_looked_at(
        &mut self,
        prepared: &Prepared,
        values: Values,
        rows: usize,
        flags: (bool, bool),
        error: onionskin_value::ValueError,
    ) -> Outcome<()> {
        if is_early(&error, self.state.family) {
            return Err(Failure::Value(error));
        }
        let plan = &prepared.plan;
        let Some(text) = plan.probe.as_ref().or(plan.insert_only.as_ref()) else {
            return Err(Failure::Value(error));
        };
        let mut sql = Vec::new();
        let mut binder = Binder::new(prepared, &self.state, values, &mut self.scratch);
        (binder.ignore, binder.lenient_nulls) = flags;
        binder.text(text, rows, &mut sql)?;
        let warnings = binder.warnings;
        self.diagnostics.clear();
        if plan.probe.is_some() {
            if !self.server.rows(&sql)?.is_empty() {
                return Err(Failure::Value(error));
            }
            let info = b"Rows matched: 0  Changed: 0  Warnings: 0".to_vec();
            return self.write_done(&Done {
                info,
                ..Done::default()
            });
        }
        self.server.put_query(&sql)?;
        self.server.flush()?;
        self.diagnostics.warnings = warnings;
        match self.relay_answer(Command::Query, &[]) {
            // a duplicate: the server would look at the value now
            Err(Failure::Server { code: 1062, .. }) => Err(Failure::Value(error)),
            done => done,
        }
    }

    /// Tells the warnings of new values, of which a row that is met takes notice, from those of the rows of an `INSERT`.
    pub fn warnings_of_rows(
        &mut self,
        prepared: &Prepared,
        values: Values,
        rows: usize,
        flags: (bool, bool),
    ) -> Outcome<()> {
        let Some(text) = &prepared.plan.insert_only else {
            return Ok(());
        };
        let all = self.diagnostics.warnings.len();
        let mut binder = Binder::new(prepared, &self.state, values, &mut self.scratch);
        (binder.ignore, binder.lenient_nulls) = flags;
        binder.text(text, rows, &mut Vec::new())?;
        let of_rows = binder.warnings.len();
        if of_rows == all {
            return Ok(());
        }
        let of_rows = of_rows.min(all);
        let (_, several) = flags;
        if several || self.state.found_rows {
            // how many rows are met is not told
            let about = "a value behind ON DUPLICATE KEY UPDATE that does not fit";
            return Err(Failure::refused(&errors::VALUE, about));
        }
        self.diagnostics.if_met = self.diagnostics.warnings.split_off(of_rows);
        Ok(())
    }

    /// Binds and sends a text; `indexed` says that full-text indexes are used.
    pub fn send_text(
        &mut self,
        planned: &Planned,
        text: &[onionskin_plan::Piece],
        indexed: bool,
    ) -> Outcome<()> {
        let rows = planned.template.rows.map_or(1, |r| r.count);
        let mut binder = Binder::new(
            &planned.prepared,
            &self.state,
            planned.values(),
            &mut self.scratch,
        );
        binder.ignore = planned.is_ignore();
        binder.lenient_nulls = planned.is_lenient();
        binder.indexed = indexed;
        self.server.connection.reset_sequence();
        let out = self.server.connection.begin_payload();
        out.push(Command::Query.to_byte());
        if let Err(failure) = binder.text(text, rows, out) {
            self.server.connection.cancel_payload();
            return Err(failure);
        }
        self.diagnostics.warnings = binder.warnings;
        self.diagnostics.each_row = planned.prepared.plan.probe.is_some();
        if self.state.family == Family::MySql {
            self.diagnostics.surplus = planned.prepared.plan.surplus_values;
        }
        let flags = (planned.is_ignore(), planned.is_lenient());
        let prepared = &planned.prepared;
        if let Err(failure) = self.warnings_of_rows(prepared, planned.values(), rows, flags) {
            self.server.connection.cancel_payload();
            return Err(failure);
        }
        self.server.end_command()?;
        self.server.flush()
    }

    fn put_client_query(&mut self) -> Outcome<()> {
        let payload = self.client.last_payload();
        self.server.put_command(payload)?;
        self.server.flush()
    }

    fn relay_query(&mut self, prepared: &Prepared, locks: Option<bool>) -> Outcome<()> {
        self.put_client_query()?;
        self.relay_answer(Command::Query, &prepared.plan.names)?;
        self.locked_tables = locks.unwrap_or(self.locked_tables);
        self.after_relay(prepared)
    }

    fn after_relay(&mut self, prepared: &Prepared) -> Outcome<()> {
        if prepared.plan.defines {
            self.unique_keys = UniqueKeys::default();
            self.shared.accounts.forget(&prepared.plan.names);
        }
        Ok(())
    }

    /// Relays a command that touches no rows.
    fn relay_command(&mut self, command: Command) -> Outcome<()> {
        self.put_client_query()?;
        self.relay_answer(command, &[])
    }

    /// Relays an answer. Results that would show physical columns are not relayed: the snapshot
    /// is stale ([`Failure::Stale`], before anything was written), or a view or a program reads
    /// a protected table.
    pub fn relay_answer(&mut self, command: Command, names: &[(String, String)]) -> Outcome<()> {
        self.server.begin(command)?;
        let mut held: Vec<Vec<u8>> = Vec::new();
        let mut wrote = false;
        while !self.server.tracker.is_complete() {
            let step = self.server.step()?;
            match step {
                Step::Row => {
                    let payload = self.server.connection.last_payload();
                    self.client
                        .write_payload(payload)
                        .map_err(Failure::Client)?;
                }
                Step::ColumnCount(_) => held.push(self.server.payload().to_vec()),
                Step::ColumnDef => {
                    if open::names_physical(self.server.payload())
                        && shows_physical_name(self.server.payload())
                    {
                        self.server.drain()?;
                        return if wrote || names.is_empty() {
                            Err(Failure::refused(&errors::PHYSICAL, ""))
                        } else {
                            Err(self.stale_or_physical(names))
                        };
                    }
                    if held.is_empty() {
                        let payload = self.server.connection.last_payload();
                        self.client
                            .write_payload(payload)
                            .map_err(Failure::Client)?;
                    } else {
                        held.push(self.server.payload().to_vec());
                    }
                    continue;
                }
                Step::LocalInfileRequest => {
                    let payload = self.server.connection.last_payload();
                    self.client
                        .write_payload(payload)
                        .map_err(Failure::Client)?;
                    self.relay_file()?;
                }
                Step::Err => {
                    for packet in held.drain(..) {
                        self.client
                            .write_payload(&packet)
                            .map_err(Failure::Client)?;
                    }
                    if !wrote {
                        return Err(self.server.error());
                    }
                    self.statements.errors_sent += 1;
                    let payload = self.server.connection.last_payload();
                    self.client
                        .write_payload(payload)
                        .map_err(Failure::Client)?;
                }
                Step::Ok { .. } | Step::EndOfRows { .. } | Step::EofAfterColumns { .. } => {
                    for packet in held.drain(..) {
                        self.client
                            .write_payload(&packet)
                            .map_err(Failure::Client)?;
                    }
                    self.write_end(step)?;
                    wrote = true;
                    continue;
                }
                _ => {
                    if let Step::PrepareOk(prepared) = step {
                        self.statements.relayed = Some(prepared.statement_id);
                    }
                    let payload = self.server.connection.last_payload();
                    self.client
                        .write_payload(payload)
                        .map_err(Failure::Client)?;
                }
            }
            if !held.is_empty() && matches!(step, Step::Row) {
                return Err(Failure::refused(
                    &errors::INTERNAL,
                    "rows before their definitions",
                ));
            }
            wrote |= held.is_empty();
            if matches!(step, Step::ColumnCount(_)) {
                self.release_definitions(&mut held, names)?;
                wrote = true;
            }
        }
        Ok(())
    }

    /// Reads a result's definitions, checks all of them, then writes them.
    fn release_definitions(
        &mut self,
        held: &mut Vec<Vec<u8>>,
        names: &[(String, String)],
    ) -> Outcome<()> {
        let count = {
            let mut reader = onionskin_wire::Reader::new(&held[0]);
            reader.lenenc_int().map_err(Failure::Backend)?
        };
        for _ in 0..count {
            if self.server.step()? != Step::ColumnDef {
                return Err(Failure::Backend(WireError::Malformed(
                    "a definition is missing",
                )));
            }
            let payload = self.server.payload();
            if open::names_physical(payload) && shows_physical_name(payload) {
                self.server.drain()?;
                return Err(if names.is_empty() {
                    Failure::refused(&errors::PHYSICAL, "")
                } else {
                    self.stale_or_physical(names)
                });
            }
            held.push(payload.to_vec());
        }
        for packet in held.drain(..) {
            self.client
                .write_payload(&packet)
                .map_err(Failure::Client)?;
        }
        Ok(())
    }

    /// A result shows physical names: if the snapshot was stale, plan again; else a view or a
    /// program shows them, and that is refused.
    fn stale_or_physical(&mut self, names: &[(String, String)]) -> Failure {
        match self.look_up(names) {
            Ok(true) => Failure::Stale,
            Ok(false) => Failure::refused(&errors::PHYSICAL, ""),
            Err(failure) => failure,
        }
    }

    /// `LOAD DATA LOCAL`: the client's packets up to the empty one.
    fn relay_file(&mut self) -> Outcome<()> {
        self.flush()?;
        self.server.connection.set_sequence(self.client.sequence());
        loop {
            let payload = self.client.read_payload().map_err(Failure::Client)?;
            let end = payload.is_empty();
            self.server
                .connection
                .write_payload(payload)
                .map_err(Failure::Backend)?;
            if end {
                break;
            }
        }
        self.server.flush()?;
        Ok(())
    }

    /// Writes the end of a result: the client may not track the session, and more results of
    /// ours may follow.
    pub fn write_end(&mut self, step: Step) -> Outcome<()> {
        let payload = self.server.connection.last_payload();
        let more = self.statements.more_results && self.server.tracker.is_complete();
        let untouched = self.diagnostics.adds_nothing();
        let same = self
            .client_capabilities
            .contains(Capabilities::SESSION_TRACK)
            || !self
                .server
                .capabilities
                .contains(Capabilities::SESSION_TRACK);
        let is_eof = matches!(step, Step::EofAfterColumns { .. })
            || (matches!(step, Step::EndOfRows { .. })
                && (!self
                    .server
                    .capabilities
                    .contains(Capabilities::DEPRECATE_EOF)
                    || payload.len() < 7));
        if (same || is_eof) && !more && untouched {
            return self.client.write_payload(payload).map_err(Failure::Client);
        }
        if matches!(step, Step::EofAfterColumns { .. }) {
            return self.client.write_payload(payload).map_err(Failure::Client);
        }
        let mut out = Vec::new();
        if is_eof {
            let mut eof =
                onionskin_wire::messages::EofPacket::decode(payload).map_err(Failure::Backend)?;
            if more {
                eof.status |= StatusFlags::MORE_RESULTS;
            }
            eof.warnings = self.diagnostics.sum(eof.warnings);
            eof.encode(&mut out);
        } else {
            let mut ok =
                OkPacket::decode(payload, self.server.capabilities).map_err(Failure::Backend)?;
            if more {
                ok.status |= StatusFlags::MORE_RESULTS;
            }
            // MariaDB tells nothing of an UPDATE that it sees to find no row
            let rows = matched_rows(ok.info).unwrap_or(ok.affected_rows);
            self.diagnostics.found(rows);
            self.diagnostics.inserted(ok.affected_rows == 1);
            ok.warnings = self.diagnostics.sum(ok.warnings);
            let info = self.diagnostics.info(ok.info);
            ok.info = &info;
            ok.encode(&mut out, self.client_capabilities);
        }
        self.client.write_payload(&out).map_err(Failure::Client)
    }

    /// Forwards an OK packet of the server's that was kept.
    fn write_ok_payload(&mut self, payload: &[u8]) -> Outcome<()> {
        let ok = OkPacket::decode(payload, self.server.capabilities).map_err(Failure::Backend)?;
        let mut out = Vec::new();
        ok.encode(&mut out, self.client_capabilities);
        self.client.write_payload(&out).map_err(Failure::Client)
    }

    /// Answers the client with an OK packet of our own.
    pub fn write_done(&mut self, done: &Done) -> Outcome<()> {
        let mut status = self.server.status - StatusFlags::SESSION_STATE_CHANGED;
        status.set(StatusFlags::MORE_RESULTS, self.statements.more_results);
        let warnings = self.diagnostics.sum(done.warnings);
        let info = self.diagnostics.info(&done.info);
        self.diagnostics.row_count = i64::try_from(done.affected_rows).ok();
        let ok = OkPacket {
            affected_rows: done.affected_rows,
            last_insert_id: done.last_insert_id,
            warnings,
            info: &info,
            status,
            ..OkPacket::default()
        };
        let mut out = Vec::new();
        ok.encode(&mut out, self.client_capabilities);
        self.client.write_payload(&out).map_err(Failure::Client)
    }

    /// Reads a result and writes it with its protected columns opened.
    /// Returns what opens its rows, for a cursor.
    pub fn open_result(
        &mut self,
        prepared: &Prepared,
        items: &[onionskin_plan::ResultItem],
        binary: bool,
    ) -> Outcome<Opener> {
        let command = if binary {
            Command::StmtExecute
        } else {
            Command::Query
        };
        self.server.begin(command)?;
        let count = match self.server.step()? {
            Step::ColumnCount(count) => count,
            Step::Err => return Err(self.server.error()),
            _ => return Err(Failure::Stale),
        };
        let mut definitions = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            match self.server.step()? {
                Step::ColumnDef => definitions.push(self.server.payload().to_vec()),
                Step::Err => return Err(self.server.error()),
                _ => return Err(Failure::Stale),
            }
        }
        let (shown, mut opener) =
            open::shown(prepared, items, &mut definitions, &self.state, binary)?;
        open::format_context(&self.state)?;
        let mut head = Vec::new();
        onionskin_wire::PutWire::put_lenenc_int(&mut head, u64::from(count));
        // the first row is opened before anything is written: if it does not open, the table may
        // be another one than the snapshot says
        let mut behind = Vec::new();
        let mut step = self.server.step()?;
        if let Step::EofAfterColumns { .. } = step {
            behind.push(self.server.payload().to_vec());
            if !self.server.tracker.is_complete() {
                step = self.server.step()?;
            }
        }
        if step == Step::Row {
            let mut row = Vec::new();
            let ctx = open::format_context(&self.state)?;
            opener.row(
                self.server.payload(),
                &self.shared.config.keys,
                &ctx,
                &mut row,
            )?;
            behind.push(row);
        }
        if step == Step::Err {
            return Err(self.server.error());
        }
        self.statements.wrote = true;
        for packet in std::iter::once(&head).chain(shown.client()).chain(&behind) {
            self.write(packet)?;
        }
        if let Step::EndOfRows { .. } = step {
            self.write_end(step)?;
        }
        self.open_rows(opener)
    }

    /// Reads rows up to their end and writes them opened. Returns the opener, for a cursor.
    pub fn open_rows(&mut self, mut opener: Opener) -> Outcome<Opener> {
        let shared = Arc::clone(&self.shared);
        while !self.server.tracker.is_complete() {
            let step = self.server.step()?;
            match step {
                Step::Row => {
                    let ctx = open::format_context(&self.state)?;
                    let out = self.client.begin_payload();
                    let payload = self.server.connection.last_payload();
                    opener.row(payload, &shared.config.keys, &ctx, out)?;
                    self.client.end_payload().map_err(Failure::Client)?;
                }
                Step::Err => return Err(self.server.error()),
                Step::EndOfRows { .. } | Step::EofAfterColumns { .. } => self.write_end(step)?,
                _ => return Err(Failure::Backend(WireError::Malformed("not a row"))),
            }
        }
        Ok(opener)
    }

    fn field_list(&mut self) -> Outcome<()> {
        let payload = self.client.last_payload().to_vec();
        let list =
            onionskin_wire::messages::ComFieldList::decode(&payload).map_err(Failure::Client)?;
        let table = String::from_utf8_lossy(list.table).to_ascii_lowercase();
        let database = self
            .state
            .database
            .clone()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let name = (database.clone(), table.clone());
        self.look_up(std::slice::from_ref(&name))?;
        if let onionskin_plan::Known::Table(found) =
            onionskin_plan::Catalog::table(self.account.as_ref(), &database, &table)
            && found.is_protected()
        {
            return self.show_field_list(&payload, &found);
        }
        self.put_client_query()?;
        self.relay_answer(Command::FieldList, &[])
    }
}

impl Planned {
    /// The values of a text statement.
    pub fn values(&self) -> Values<'_> {
        Values {
            sql: &self.sql,
            literals: &self.template.literals,
            params: &[],
            long_data: &[],
        }
    }

    /// Everything but an insert of one row takes NULL for a NOT NULL column leniently.
    fn is_lenient(&self) -> bool {
        is_lenient(&self.template.key, self.template.rows.map(|r| r.count))
    }

    /// `INSERT IGNORE`, `UPDATE IGNORE`: errors of values become warnings.
    pub fn is_ignore(&self) -> bool {
        is_ignore(&self.template.key)
    }
}

/// Whether a statement begins or ends `LOCK TABLES`.
fn locks_tables(key: &[u8]) -> Option<bool> {
    let begins = |word: &[u8]| {
        key.get(..word.len())
            .is_some_and(|k| k.eq_ignore_ascii_case(word))
    };
    if begins(b"lock t") {
        Some(true)
    } else if begins(b"unlock t") || begins(b"begin") || begins(b"start t") {
        Some(false)
    } else {
        None
    }
}

/// Whether a definition's names, not its table or alias by chance, are physical.
fn shows_physical_name(definition: &[u8]) -> bool {
    onionskin_wire::messages::ColumnDefinition::decode(definition)
        .is_ok_and(|d| is_physical(&d.org_name) || (d.org_name.is_empty() && is_physical(&d.name)))
}

fn is_physical(name: &[u8]) -> bool {
    let digits = |tail: &[u8]| tail.len() == 4 && tail.iter().all(u8::is_ascii_hexdigit);
    name.ends_with(b"$enc")
        || [b"$ord_".as_slice(), b"$eq_"].iter().any(|infix| {
            memchr::memmem::rfind(name, infix).is_some_and(|at| digits(&name[at + infix.len()..]))
        })
}

/// See [`Planned::is_lenient`]; `text` is a statement or its shape.
pub(crate) fn is_lenient(text: &[u8], rows: Option<usize>) -> bool {
    let begins = |word: &[u8]| {
        text.get(..word.len())
            .is_some_and(|w| w.eq_ignore_ascii_case(word))
    };
    if !begins(b"insert") && !begins(b"replace") {
        return true;
    }
    match rows {
        Some(count) => count > 1,
        // rows of different shape are not folded: there are several
        None => memchr::memmem::find(text, b"),").is_some(),
    }
}

/// See [`Planned::is_ignore`].
pub(crate) fn is_ignore(text: &[u8]) -> bool {
    text.split(|&b| b == b' ')
        .take(4)
        .any(|word| word.eq_ignore_ascii_case(b"ignore"))
}

/// Whether a cell did not open, which an outdated snapshot can cause.
pub(crate) fn does_not_open(refusal: &onionskin_plan::Refusal) -> bool {
    refusal.entry == &errors::TAMPERED || refusal.entry == &errors::UNKNOWN_KEY
}

/// Errors that an outdated snapshot can cause.
fn looks_stale(code: u16, message: &[u8]) -> bool {
    match code {
        // unknown column, column count, no default, no such key column
        1054 | 1136 | 1364 | 1072 | 1091 | 1146 => true,
        // a CHECK constraint, if it is ours
        3819 | 4025 => memchr::memmem::find(message, b"onionskin_").is_some(),
        _ => false,
    }
}

/// An error text of the server's with logical names.
pub(crate) fn logical_text(message: &[u8], prepared: &Prepared) -> Vec<u8> {
    let mut text = String::from_utf8_lossy(message).into_owned();
    let mut tables: Vec<_> = prepared
        .plan
        .columns
        .iter()
        .map(|c| Arc::clone(&c.table))
        .collect();
    if let Action::Define(ddl) = &prepared.plan.action {
        tables.extend(ddl.table.clone());
    }
    tables.dedup_by(|a, b| Arc::ptr_eq(a, b));
    let touched = !tables.is_empty();
    for table in tables {
        for (column, protection) in table.protected_columns() {
            for name in protection.names.all() {
                if text.contains(name) {
                    text = text.replace(name, &column.name);
                }
            }
        }
    }
    // a duplicate's value is printed as bytes of a token
    if touched
        && text.starts_with("Duplicate entry '")
        && let Some(end) = text.rfind("' for key ")
    {
        let value = &text["Duplicate entry '".len()..end];
        let binary =
            value.contains("\\x") || value.chars().any(|c| c.is_control() || c == '\u{fffd}');
        if binary {
            text = format!(
                "Duplicate entry '(protected)' for key {}",
                &text[end + "' for key ".len()..]
            );
        }
    }
    text.into_bytes()
}
