//! Prepared statements.
//!
//! A statement that touches nothing protected is prepared at the server and its commands are
//! relayed. One with slots is prepared with a `?` for each slot; an execution's parameters are
//! bound into cells and tokens like literals. What cannot be prepared at the server (tier 2
//! updates, definitions) gets an id of ours and runs as text.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use onionskin_plan::{
    Action, Described, Facts, Finds, LexMode, Literal, LiteralKind, Piece, ResultItem, Template,
    errors,
};
use onionskin_value::{Charset, Family};
use onionskin_wire::messages::{
    ColumnDefault, ColumnDefinition, ComStmtExecute, ComStmtPrepareOk, ComStmtSendLongData,
    Command, CursorType, EofPacket, ExecuteWriter, Param, encode_statement_command, statement_id,
};
use onionskin_wire::{
    BinaryValue, Capabilities, ColumnFlags, ColumnType, ParamType, StatusFlags, Step, WireError,
};

use crate::bind::{Binder, FromVariable, StoreMode, Values, check_pieces, prepared_text};
use crate::by_name::{Named, cannot_be_prepared};
use crate::catalog::Prepared;
use crate::error::{Failure, Outcome};
use crate::exchange::{Found, Rows};
use crate::finish::lacks_index;
use crate::long_values::too_long;
use crate::open::{self, Opener};
use crate::relayed::Relayed;
use crate::scratch::Bound;
use crate::session::{Planned, Session, in_logical_terms};

/// Ids that no server gives out.
const OWN_IDS: u32 = 0x8000_0000;
/// To MariaDB, the statement that was prepared last, so that a client need not wait for its id.
const LAST_ID: u32 = u32::MAX;
/// Bytes of long data that the statements of a session may hold.
const LONG_DATA: usize = 256 << 20;
/// As many statements as the server has none for, and bytes of their texts, may a session hold: what the servers' `max_prepared_stmt_count` is by
/// default, for all of their sessions.
const MOST: usize = 16_382;
const TEXTS: usize = 256 << 20;

/// The session's prepared statements, and what else spans several packets.
#[derive(Default)]
pub(crate) struct Statements {
    pub open: HashMap<u32, Statement>,
    /// Those that are relayed and name tables, by the server's id.
    pub relayed: HashMap<u32, Relayed>,
    /// Those that are relayed and name none. An id that stands nowhere was never the client's: the server may know a statement
    /// of ours by it, whose parameters are cells.
    others: HashSet<u32>,
    /// The one that was prepared last, unless that failed.
    last: Option<u32>,
    /// Those that are prepared in SQL.
    pub named: Named,
    /// Literals of the statement that is to be run next that stand for user variables.
    pub from_variables: Vec<FromVariable>,
    next_own: u32,
    /// Bytes of long data that have arrived, as counted by [`Self::take_long_data`].
    long_data: usize,
    /// The tables of the statement that is relayed, if it makes warnings of errors: some may be of rows that must not be left out.
    pub watched: Vec<(String, String)>,
    /// The generation of the schema in which the statement that is relayed was planned.
    pub relayed_of: Option<u64>,
    /// The end of an answer that is still to be written, while the server was asked about it.
    pub kept: Option<Vec<u8>>,
    /// The statement is not the last of several: its answer says that more results follow.
    pub more_results: bool,
    /// Rows of the present statement were written.
    pub wrote: bool,
    /// The present statement has literals in the place of the client's expressions.
    pub computing: bool,
    /// Errors that were relayed behind other packets.
    pub errors_sent: u64,
    /// Relayed statements that ask about the statement before them, by id.
    asking: HashSet<u32>,
    /// Those of them that ask for `FOUND_ROWS()`.
    asking_found: HashSet<u32>,
    /// What the present statement does to `FOUND_ROWS()`.
    pub finds: Finds,
    /// The present statement calls `VALUES()`, of which MySQL warns before anything else.
    pub calls_values: bool,
    /// The present statement says COLLATE.
    pub says_collate: bool,
    /// The server has run another statement since it raised the present one's error.
    pub interfered: bool,
    /// What it showed of the error before that.
    pub list: Option<Rows>,
    /// There are warnings beside the error, and it is not known which.
    pub unclear: bool,
}

/// A prepared statement that is more than relayed.
pub(crate) struct Statement {
    sql: Vec<u8>,
    template: Template,
    pub prepared: Arc<Prepared>,
    setting: Setting,
    mode: StoreMode,
    /// The server's statement; `None` for those that run as text.
    pub server_id: Option<u32>,
    server_params: usize,
    indexed: Cell<Indexed>,
    params: usize,
    pub types: Vec<ParamType>,
    pub long: Vec<Option<Vec<u8>>>,
    /// More of that has come than the server takes, or the session may hold.
    too_long: bool,
    cursor: Option<Opener>,
}

/// What a text means depends on: the database that was current at its preparation, and how it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    database: Option<String>,
    lex: LexMode,
    client: Option<Charset>,
    connection: Option<Charset>,
}

/// The server's statement that uses full-text indexes.
#[derive(Clone, Copy, Default)]
enum Indexed {
    /// It was not wanted yet.
    #[default]
    Unknown,
    /// Its id and its parameters.
    Prepared(u32, usize),
    /// The server has refused it.
    Unusable,
}

impl Indexed {
    fn id(self) -> Option<u32> {
        match self {
            Indexed::Prepared(id, _) => Some(id),
            _ => None,
        }
    }
}

impl Statement {
    /// Of a text that was read without folding; nothing is prepared at the server.
    pub fn new(
        sql: Vec<u8>,
        template: &Template,
        prepared: &Arc<Prepared>,
        params: usize,
        setting: Setting,
    ) -> Self {
        Statement {
            setting,
            mode: StoreMode::of(&prepared.plan.facts, None),
            sql,
            template: Template {
                key: template.key.clone(),
                literals: template.literals.clone(),
                rows: None,
                multiple: false,
            },
            prepared: Arc::clone(prepared),
            server_id: None,
            server_params: 0,
            indexed: Cell::default(),
            params,
            types: Vec::new(),
            long: vec![None; params],
            too_long: false,
            cursor: None,
        }
    }
}

impl Statements {
    pub fn clear(&mut self) {
        self.open.clear();
        self.relayed.clear();
        self.others.clear();
        self.last = None;
        self.asking.clear();
        self.asking_found.clear();
        self.named.clear();
    }

    /// Whether the server knows this statement by the client's id.
    pub fn is_relayed(&self, id: u32) -> bool {
        self.relayed.contains_key(&id) || self.others.contains(&id)
    }

    /// Counts long data that arrives: whether there is room for it. What executions have used up is only looked for when there seems
    /// to be too much.
    fn take_long_data(&mut self, length: usize) -> bool {
        if self.long_data + length > LONG_DATA {
            let all = self.open.values().flat_map(|s| &s.long);
            self.long_data = all.flatten().map(Vec::len).sum();
        }
        let fits = self.long_data + length <= LONG_DATA;
        self.long_data += if fits { length } else { 0 };
        fits
    }

    /// Whether another statement of ours with a text of this length may be kept.
    fn has_room(&self, length: usize) -> Outcome<()> {
        let ours = self.open.values().filter(|s| s.server_id.is_none());
        let (count, bytes) = ours.fold((0, length), |(n, b), s| (n + 1, b + s.sql.len()));
        if count >= MOST {
            return Err(too_many(MOST));
        }
        if bytes > TEXTS {
            let about = "texts of prepared statements";
            return Err(Failure::refused(&errors::MEMORY, about));
        }
        Ok(())
    }

    /// The statement that a command is about. The highest id becomes that of the last one where the server means it so.
    fn id_in(&self, payload: &mut [u8], family: Family) -> Outcome<u32> {
        let id = statement_id(payload).map_err(Failure::Client)?;
        let (LAST_ID, Family::MariaDb, Some(last)) = (id, family, self.last) else {
            return Ok(id);
        };
        payload[1..5].copy_from_slice(&last.to_le_bytes());
        Ok(last)
    }

    /// The text of the statement that a command is about, if it is kept.
    pub fn text_of(&self, command: &[u8]) -> Option<&[u8]> {
        let id = statement_id(command).ok()?;
        let open = self.open.get(&id).map(|s| s.sql.as_slice());
        open.or_else(|| self.relayed.get(&id).map(Relayed::text))
    }

    /// Notes of the present statement what its end depends on.
    pub fn note(&mut self, facts: &Facts) {
        self.finds = facts.finds;
        self.calls_values = facts.values_calls > 0;
        self.says_collate = facts.says_collate;
    }

    /// A statement begins, of which the server has said nothing yet.
    pub fn begin(&mut self) {
        self.interfered = false;
        self.list = None;
        self.unclear = false;
    }
}

impl Session {
    pub fn prepare(&mut self) -> Outcome<()> {
        let sql = self
            .client
            .last_payload()
            .get(1..)
            .unwrap_or_default()
            .to_vec();
        self.statements.last = None;
        self.statements.begin();
        let mode = self.space.settings.lex;
        if self.template.read_unfolded(&sql, mode).is_err() || !self.reads_names() {
            return Err(Failure::refused(
                &errors::CHARACTER_SET,
                "a prepared statement",
            ));
        }
        if self.template.multiple {
            return Err(Failure::Server {
                code: 1064,
                state: *b"42000",
                message: b"You have an error in your SQL syntax near ';'".to_vec(),
            });
        }
        let mut prepared = self.plan(&sql)?;
        let mut attempts = 0;
        loop {
            let done = self.prepare_planned(&sql, &prepared);
            match done {
                Err(ref failure) if attempts == 0 && self.may_run_again(failure, &prepared) => {
                    attempts += 1;
                    self.server.settle()?;
                    if !self.looks_different(&prepared, &done)? {
                        // what is left is of the statement before
                        self.diagnostics.clear();
                        return done;
                    }
                    prepared = self.make_plan(&sql, true)?;
                }
                done => return done.map_err(|failure| in_logical_terms(failure, &prepared)),
            }
        }
    }

    fn prepare_planned(&mut self, sql: &[u8], prepared: &Arc<Prepared>) -> Outcome<()> {
        let params = self
            .template
            .literals
            .iter()
            .filter(|l| l.kind == LiteralKind::Parameter)
            .count();
        let text = match &prepared.plan.action {
            Action::Relay => {
                self.check_temporary(prepared)?;
                let id = self.relay_preparation(prepared)?;
                if prepared.plan.facts.question.asks() {
                    self.statements.asking.insert(id);
                    if prepared.plan.facts.says_found_rows {
                        self.statements.asking_found.insert(id);
                    }
                }
                if prepared.plan.names.is_empty() {
                    self.statements.others.insert(id);
                } else {
                    let relayed = Relayed::new(sql, prepared, params, self.setting());
                    self.statements.relayed.insert(id, relayed);
                }
                self.statements.last = Some(id);
                return Ok(());
            }
            Action::Refuse(refusal) => return Err(refusal.clone().into()),
            Action::ByName(_) => return Err(cannot_be_prepared()),
            Action::ScratchWrite(write) if write.loads() => return Err(cannot_be_prepared()),
            Action::Server { text, .. } => Some(text),
            Action::Finish(finish) => Some(&finish.text),
            Action::Update(_)
            | Action::Delete(_)
            | Action::Define(_)
            | Action::Copy(_)
            | Action::Scratch(_)
            | Action::ScratchWrite(_)
            | Action::Compute { .. } => None,
            Action::Show { .. } if params > 0 => {
                return Err(Failure::refused(
                    &errors::STATEMENT,
                    "a prepared SHOW with parameters",
                ));
            }
            Action::Show { .. } => None,
        };
        let setting = self.setting();
        let mut statement = Statement::new(sql.to_vec(), &self.template, prepared, params, setting);
        let Some(text) = text else {
            self.statements.has_room(sql.len())?;
            let shown = match &prepared.plan.action {
                Action::Scratch(scratch) => self.scratch_definitions(scratch, sql)?,
                Action::Show { text, .. } => {
                    let (id, _, definitions) = self.prepare_at_server(&statement, text, false)?;
                    self.close_at_server(id)?;
                    definitions
                }
                _ => Vec::new(),
            };
            self.statements.next_own = self.statements.next_own.wrapping_add(1) & !OWN_IDS;
            let id = OWN_IDS | self.statements.next_own;
            self.write_prepared(id, params, &shown)?;
            self.statements.open.insert(id, statement);
            self.statements.last = Some(id);
            return Ok(());
        };
        let (id, count, definitions) = self.prepare_at_server(&statement, text, false)?;
        statement.server_id = Some(id);
        statement.server_params = count;
        let shown = match &prepared.plan.action {
            // of RETURNING, servers tell with the rows
            Action::Server { .. } if definitions.is_empty() => definitions,
            Action::Server {
                result: Some(items),
                ..
            } => {
                // servers prepare without a temporary table
                let natural = |item: &ResultItem| {
                    let mut item = item.clone();
                    match &mut item.described {
                        described if item.computed => *described = Described::AsSent,
                        Described::Column { sorted, .. } => *sorted = false,
                        _ => {}
                    }
                    item
                };
                let items: Vec<ResultItem> = items.iter().map(natural).collect();
                self.checked_definitions(id, prepared, &items, &definitions)?
            }
            Action::Finish(finish) => {
                let fetched =
                    self.checked_definitions(id, prepared, &finish.fetch, &definitions)?;
                self.output_definitions(prepared, finish, &fetched, false)?
            }
            _ => definitions,
        };
        self.write_prepared(id, params, &shown)?;
        self.statements.open.insert(id, statement);
        self.statements.last = Some(id);
        Ok(())
    }

    fn checked_definitions(
        &mut self,
        id: u32,
        prepared: &Prepared,
        items: &[ResultItem],
        definitions: &[Vec<u8>],
    ) -> Outcome<Vec<Vec<u8>>> {
        match open::definitions(prepared, items, definitions, &self.state, true) {
            Ok((shown, _)) => Ok(shown),
            Err(failure) => {
                self.close_at_server(id)?;
                Err(failure)
            }
        }
    }

    /// Prepares the physical text. Returns the server's id, its parameters and its columns.
    pub fn prepare_at_server(
        &mut self,
        statement: &Statement,
        text: &[Piece],
        indexed: bool,
    ) -> Outcome<(u32, usize, Vec<Vec<u8>>)> {
        let values = Values {
            sql: &statement.sql,
            literals: &statement.template.literals,
            params: &[],
            long_data: &[],
            from_variables: &[],
        };
        check_pieces(text, &self.state)?;
        // in a transaction that only reads, a statement that writes cannot be prepared
        self.say_next_transaction()?;
        let out = self.server.begin_command();
        out.push(Command::StmtPrepare.to_byte());
        let columns = &statement.prepared.plan.columns;
        prepared_text(text, columns, 1, &values, indexed, out);
        let question = self.server.end_command(Command::StmtPrepare)?;
        self.server.flush()?;
        self.server.begin(question)?;
        let mut ok = None;
        let mut definitions = Vec::new();
        while !self.server.tracker.is_complete() {
            match self.server.step()? {
                Step::Err => return Err(self.server.error()),
                Step::PrepareOk(found) => ok = Some(found),
                Step::ColumnDef => definitions.push(self.server.payload().to_vec()),
                _ => {}
            }
        }
        let ok = ok.ok_or(Failure::Backend(WireError::Malformed(
            "no answer to a preparation",
        )))?;
        Ok((ok.statement_id, usize::from(ok.num_params), definitions))
    }

    fn write_prepared(&mut self, id: u32, params: usize, columns: &[Vec<u8>]) -> Outcome<()> {
        let number = |n: usize| {
            u16::try_from(n).map_err(|_| Failure::refused(&errors::NOT_UNDERSTOOD, "parameters"))
        };
        let ok = ComStmtPrepareOk {
            statement_id: id,
            num_columns: number(columns.len())?,
            num_params: number(params)?,
            warnings: 0,
        };
        let mut out = Vec::new();
        ok.encode(&mut out);
        self.write(&out)?;
        let with_eof = !self
            .client_capabilities
            .contains(Capabilities::DEPRECATE_EOF);
        let mut eof = Vec::new();
        let status = self.server.status - StatusFlags::SESSION_STATE_CHANGED;
        EofPacket {
            status,
            warnings: 0,
        }
        .encode(&mut eof);
        if params > 0 {
            let mut definition = Vec::new();
            ColumnDefinition {
                catalog: b"def".as_slice().into(),
                schema: b"".as_slice().into(),
                table: b"".as_slice().into(),
                org_table: b"".as_slice().into(),
                name: b"?".as_slice().into(),
                org_name: b"".as_slice().into(),
                charset: 63,
                length: 0,
                column_type: ColumnType::VAR_STRING,
                flags: ColumnFlags::BINARY,
                decimals: 0,
                default: ColumnDefault::Absent,
            }
            .encode(&mut definition);
            for _ in 0..params {
                self.write(&definition)?;
            }
            if with_eof {
                self.write(&eof)?;
            }
        }
        if !columns.is_empty() {
            for column in columns {
                self.write(column)?;
            }
            if with_eof {
                self.write(&eof)?;
            }
        }
        Ok(())
    }

    pub fn execute(&mut self) -> Outcome<()> {
        self.statements.wrote = false;
        self.statements.begin();
        let mut payload = self.client.last_payload().to_vec();
        let id = self.statements.id_in(&mut payload, self.state.family)?;
        self.keep_found();
        let of_found =
            self.server.found != Found::Servers && self.statements.asking_found.contains(&id);
        let of_last = self.diagnostics.any() && self.statements.asking.contains(&id);
        if of_last || of_found {
            let about = "a prepared question about the last statement";
            return Err(Failure::refused(&errors::NOT_UNDERSTOOD, about));
        }
        self.diagnostics.clear();
        let Some(mut statement) = self.statements.open.remove(&id) else {
            self.statements.finds = Finds::Unknown;
            return self.execute_relayed(id, &payload);
        };
        self.statements.note(&statement.prepared.plan.facts);
        if std::mem::take(&mut statement.too_long) {
            statement.long.iter_mut().for_each(|l| *l = None);
            self.statements.open.insert(id, statement);
            return Err(too_long());
        }
        let mut done = self.execute_statement(&mut statement, &payload);
        if let Err(Failure::Server { code, .. }) = &done
            && lacks_index(*code)
            && !self.statements.wrote
            && let Some(id) = statement.indexed.get().id()
        {
            self.server.settle()?;
            self.close_at_server(id)?;
            statement.indexed.set(Indexed::Unusable);
            done = self.execute_statement(&mut statement, &payload);
        }
        let names = !statement.prepared.plan.names.is_empty();
        let facts = &statement.prepared.plan.facts;
        self.learn_next_transaction(facts, &statement.sql, names, &done);
        let prepared = Arc::clone(&statement.prepared);
        let failed = done.as_ref().err();
        if failed.is_some_and(|failure| self.may_run_again(failure, &prepared)) {
            self.server.settle()?;
            if self.looks_different(&prepared, &done)? {
                done = self.execute_statement(&mut statement, &payload);
            }
        }
        for long in &mut statement.long {
            *long = None;
        }
        let prepared = Arc::clone(&statement.prepared);
        self.statements.open.insert(id, statement);
        self.diagnostics.shows_tokens |= prepared.warns_of_tokens();
        if done.is_ok() {
            self.has_found_by(&prepared.plan.action);
        }
        self.concluded(done, &prepared)
    }

    /// Makes a statement's plan again when the schema has changed since.
    fn replan(&mut self, statement: &mut Statement) -> Outcome<()> {
        // A preparation at the server may have failed the last time, for want of room for one.
        let is_whole = statement.server_id.is_some() || !runs_at_server(&statement.prepared);
        let prepared = Arc::clone(&statement.prepared);
        if self.is_of_now(&prepared)? && is_whole {
            return Ok(());
        }
        self.must_be_of_now(statement)?;
        let mode = self.space.settings.lex;
        let mut template = Template::default();
        if template.read_unfolded(&statement.sql, mode).is_err() {
            return Err(Failure::refused(&errors::NOT_UNDERSTOOD, "its words"));
        }
        std::mem::swap(&mut self.template, &mut template);
        let planned = self.make_plan(&statement.sql, false);
        std::mem::swap(&mut self.template, &mut template);
        statement.prepared = planned?;
        let indexed = statement.indexed.take().id();
        for id in statement.server_id.take().into_iter().chain(indexed) {
            self.close_at_server(id)?;
        }
        let prepared = Arc::clone(&statement.prepared);
        let text = match &prepared.plan.action {
            Action::Server { text, .. } => text,
            Action::Finish(finish) => &finish.text,
            Action::Refuse(refusal) => return Err(refusal.clone().into()),
            Action::ByName(_) => return Err(cannot_be_prepared()),
            Action::Update(_)
            | Action::Delete(_)
            | Action::Define(_)
            | Action::Copy(_)
            | Action::Scratch(_)
            | Action::ScratchWrite(_)
            | Action::Compute { .. } => {
                return Ok(());
            }
            Action::Relay => {
                let text = vec![Piece::Sql(statement.sql.clone())];
                let (id, count, _) = self.prepare_at_server(statement, &text, false)?;
                statement.server_id = Some(id);
                statement.server_params = count;
                return Ok(());
            }
            Action::Show { .. } => return Ok(()),
        };
        let (id, count, _) = self.prepare_at_server(statement, text, false)?;
        statement.server_id = Some(id);
        statement.server_params = count;
        Ok(())
    }

    /// What a text prepared now depends on.
    pub fn setting(&self) -> Setting {
        Setting {
            database: self.state.database.clone(),
            lex: self.space.settings.lex,
            client: self.state.client_charset,
            connection: self.state.connection_charset,
        }
    }

    /// A text that is planned or sent again would mean other tables in another database.
    fn must_be_of_now(&self, statement: &Statement) -> Outcome<()> {
        let setting = &statement.setting;
        let is_alike = self.reads_alike(setting, false)
            || (self.reads_alike(setting, true) && statement.sql.is_ascii());
        match is_alike && setting.database == self.state.database {
            true => Ok(()),
            false => Err(prepared_otherwise()),
        }
    }

    /// Texts in a statement that is at the server were read there when it was prepared. Here they are read when they are sealed,
    /// which has to come to the same.
    fn must_read_alike(&self, statement: &Statement) -> Outcome<()> {
        if self.reads_alike(&statement.setting, false) {
            return Ok(());
        }
        let is_text =
            |l: &&Literal| matches!(l.kind, LiteralKind::String | LiteralKind::Introduced);
        let mut texts = statement.template.literals.iter().filter(is_text);
        let none = texts.clone().next().is_none();
        let is_ascii = texts.all(|l| l.text(&statement.sql).is_ascii());
        match none || (is_ascii && self.reads_alike(&statement.setting, true)) {
            true => Ok(()),
            false => Err(prepared_otherwise()),
        }
    }

    /// MySQL reads a parameter in the character sets of the preparation, MariaDB in those of the execution, as it is done here.
    fn must_bind_alike(&self, setting: &Setting, values: &Values) -> Outcome<()> {
        if self.state.family == Family::MariaDb || self.reads_alike(setting, false) {
            return Ok(());
        }
        let ascii = |param: &Param| match param.value {
            BinaryValue::Bytes(bytes) => bytes.is_ascii(),
            _ => true,
        };
        let mut long = values.long_data.iter().flatten();
        match values.params.iter().all(ascii) && long.all(|bytes| bytes.is_ascii()) {
            true => Ok(()),
            false => Err(prepared_otherwise()),
        }
    }

    /// Whether texts mean now what they meant in another setting. Those of ASCII alone mean the same in every character set that is
    /// read here.
    fn reads_alike(&self, then: &Setting, is_ascii: bool) -> bool {
        let now = self.space.settings.lex;
        let modes = LexMode {
            charset: now.charset,
            ignore_space: now.ignore_space,
            ..then.lex
        };
        let known = self.state.client_charset.is_some();
        modes == now
            && ((is_ascii && known)
                || (then.client, then.connection)
                    == (self.state.client_charset, self.state.connection_charset))
    }

    pub fn execute_statement(&mut self, statement: &mut Statement, payload: &[u8]) -> Outcome<()> {
        self.replan(statement)?;
        if !self.state.is_usual() {
            self.check_variables(&statement.prepared.plan, &statement.sql)?;
        }
        match statement.prepared.plan.action {
            Action::Finish(_) => {
                self.with_all_rows(|session| session.execute_planned(statement, payload))
            }
            _ => self.execute_planned(statement, payload),
        }
    }

    fn execute_planned(&mut self, statement: &mut Statement, payload: &[u8]) -> Outcome<()> {
        match (statement.server_id, &statement.prepared.plan.action) {
            (None, _) => self.must_be_of_now(statement)?,
            // all of it is the server's
            (Some(_), Action::Relay) => {}
            (Some(_), _) => self.must_read_alike(statement)?,
        }
        statement.cursor = None;
        let mut types = std::mem::take(&mut statement.types);
        let head = ComStmtExecute::decode(payload, statement.params, &mut types);
        statement.types = types;
        let head = head.map_err(Failure::Client)?;
        let long = &statement.long;
        let params: Vec<Param> = head
            .params(&statement.types, |i| {
                long.get(i).is_some_and(Option::is_some)
            })
            .collect::<Result<_, _>>()
            .map_err(Failure::Client)?;
        let values = Values {
            sql: &statement.sql,
            literals: &statement.template.literals,
            params: &params,
            long_data: &statement.long,
            from_variables: &[],
        };
        let prepared = Arc::clone(&statement.prepared);
        if !matches!(prepared.plan.action, Action::Relay) {
            must_be_bindable(&params)?;
            self.must_bind_alike(&statement.setting, &values)?;
        }
        self.must_begin_at_once(&prepared.plan)?;
        self.tell_time(&prepared)?;
        let text = match &prepared.plan.action {
            Action::Update(update) => return self.row_update(&prepared, update, values),
            Action::Delete(delete) => return self.row_delete(&prepared, delete, values),
            Action::Define(ddl) => return self.define(ddl, &prepared),
            Action::Copy(copied) => return self.copy_table(copied, &prepared),
            Action::Compute { .. } => {
                let done = self.compute_and_run(&prepared, values);
                let Err(Failure::Refused(refusal)) = &done else {
                    return done;
                };
                if !self.scratch_may_do(&prepared, refusal) {
                    return done;
                }
                self.server.settle()?;
                return match self.scratch_plan(&statement.sql, &statement.template)? {
                    Some(other) => self.scratch_execution(&other, values, &params, &statement.long),
                    None => done,
                };
            }
            Action::ScratchWrite(write) => {
                let long = &statement.long;
                let params = &params;
                return self.scratch_write(&prepared, write, values, Some(Bound { params, long }));
            }
            Action::Scratch(scratch) => {
                let long = &statement.long;
                let bound = Bound {
                    params: &params,
                    long,
                };
                return self.scratch_query(&prepared, scratch, values, Some(bound));
            }
            Action::Refuse(refusal) => return Err(refusal.clone().into()),
            Action::Server { text, .. } => text,
            Action::Finish(finish) => &finish.text,
            Action::Relay => return self.execute_renumbered(statement, payload),
            Action::Show { what, text, table } => {
                let planned = Planned {
                    sql: statement.sql.clone(),
                    template: Template {
                        literals: statement.template.literals.clone(),
                        ..Template::default()
                    },
                    prepared: Arc::clone(&prepared),
                    from_variables: Vec::new(),
                };
                return self.show(&planned, what, text, table, true);
            }
            Action::ByName(_) => return Err(Failure::Stale),
        };
        let Some(server_id) = statement.server_id else {
            return Err(Failure::refused(&errors::INTERNAL, "a prepared statement"));
        };
        // tier 2 answers at once, whatever cursor was asked for
        let finish = matches!(prepared.plan.action, Action::Finish(_));
        let cursor = if finish {
            CursorType::NO_CURSOR
        } else {
            head.cursor
        };
        if let Some(upsert) = &prepared.plan.upsert {
            self.keep_cells(&prepared, upsert, values, 1, statement.mode.ignore)?;
        }
        let (ready, indexed) = match self.ready(&prepared, values) {
            Ok(true) => match self.indexed_statement(statement, text) {
                Ok(found) => (Ok(()), found),
                Err(failure) => return Err(failure),
            },
            Ok(false) => (Ok(()), None),
            Err(failure) => (Err(failure), None),
        };
        let (server_id, server_params) = indexed.unwrap_or((server_id, statement.server_params));
        self.say_next_transaction()?;
        let mut binder = Binder::new(&prepared, &self.state, values, &mut self.scratch);
        let mode = statement.mode;
        binder.mode = mode;
        binder.indexed = indexed.is_some();
        let out = self.server.begin_command();
        let mut body = Vec::new();
        let mut writer = ExecuteWriter::begin(&mut body, server_id, cursor, server_params);
        let bound = ready.and_then(|()| binder.params(text, 1, &mut writer, &mut body));
        let bound = bound.and_then(|()| {
            writer
                .finish()
                .map_err(|_| Failure::refused(&errors::INTERNAL, "parameters"))
        });
        if let Err(failure) = bound {
            self.server.connection.cancel_payload();
            return match failure {
                // the engine would have the lifted limit of the session
                Failure::Refused(refusal)
                    if self.lifted_limit.is_none() && self.scratch_may_do(&prepared, &refusal) =>
                {
                    match self.scratch_plan(&statement.sql, &statement.template)? {
                        Some(other) => {
                            self.scratch_execution(&other, values, &params, &statement.long)
                        }
                        None => Err(refusal.into()),
                    }
                }
                Failure::Value(error) => {
                    self.not_looked_at(&prepared, values, 1, mode, Vec::new(), error)
                }
                other => Err(other),
            };
        }
        out.extend_from_slice(&body);
        self.diagnostics.warnings = binder.warnings;
        self.diagnostics.each_row = prepared.plan.probe.is_some();
        self.diagnostics.of_several = mode.lenient_nulls;
        if let Err(failure) = self.warnings_of_rows(&prepared, values, 1, mode) {
            self.server.connection.cancel_payload();
            return Err(failure);
        }
        let question = self.server.end_execution(server_params)?;
        self.server.flush()?;
        match &prepared.plan.action {
            Action::Finish(finish) => self.finish_rows(question, &prepared, finish, values, true),
            Action::Server {
                result: Some(items),
                ..
            } => {
                let opener = self.open_result(question, &prepared, items, true)?;
                statement.cursor = opener;
                Ok(())
            }
            _ => self.relay_answer(question, &[]),
        }
    }

    /// The server's statement that uses full-text indexes; `None` where the server cannot do that.
    fn indexed_statement(
        &mut self,
        statement: &Statement,
        text: &[Piece],
    ) -> Outcome<Option<(u32, usize)>> {
        match statement.indexed.get() {
            Indexed::Unknown => {}
            Indexed::Prepared(id, count) => return Ok(Some((id, count))),
            Indexed::Unusable => return Ok(None),
        }
        match self.prepare_at_server(statement, text, true) {
            Ok((id, count, _)) => {
                statement.indexed.set(Indexed::Prepared(id, count));
                Ok(Some((id, count)))
            }
            Err(Failure::Server { code, .. }) if lacks_index(code) => {
                self.server.settle()?;
                statement.indexed.set(Indexed::Unusable);
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Rows of a cursor.
    pub fn fetch(&mut self) -> Outcome<()> {
        let mut payload = self.client.last_payload().to_vec();
        let id = self.statements.id_in(&mut payload, self.state.family)?;
        let Some(mut statement) = self.statements.open.remove(&id) else {
            if !self.statements.is_relayed(id) {
                return Err(self.unknown_statement(id, "mysqld_stmt_fetch"));
            }
            let question = self.server.put_command(&payload)?;
            self.server.flush()?;
            return self.relay_answer(question, &[]);
        };
        let mut own = payload.clone();
        if let (Some(place), Some(server_id)) = (own.get_mut(1..5), statement.server_id) {
            place.copy_from_slice(&server_id.to_le_bytes());
        }
        let is_relayed = matches!(statement.prepared.plan.action, Action::Relay);
        let done = match (statement.cursor.take(), statement.server_id) {
            (_, Some(_)) if is_relayed => {
                let question = self.server.put_command(&own)?;
                self.server.flush()?;
                self.relay_answer(question, &[])
            }
            (Some(opener), Some(_)) => {
                let question = self.server.put_command(&own)?;
                self.server.flush()?;
                self.server.begin(question)?;
                self.open_rows(opener)
                    .map(|opener| statement.cursor = Some(opener))
            }
            _ => Err(Failure::Server {
                code: 1421,
                state: *b"HY000",
                message: b"The statement has no open cursor.".to_vec(),
            }),
        };
        self.statements.open.insert(id, statement);
        done
    }

    /// Close, reset, long data.
    pub fn statement_command(&mut self, command: Command) -> Outcome<()> {
        let mut payload = self.client.last_payload().to_vec();
        let id = self.statements.id_in(&mut payload, self.state.family)?;
        if command == Command::StmtClose && self.statements.last == Some(id) {
            self.statements.last = None;
        }
        if command == Command::StmtSendLongData && !self.takes_piece(id)? {
            return Ok(());
        }
        if !self.statements.open.contains_key(&id) {
            if !self.statements.is_relayed(id) {
                return match command {
                    Command::StmtReset => Err(self.unknown_statement(id, "mysqld_stmt_reset")),
                    // these have no answer
                    _ => Ok(()),
                };
            }
            if command == Command::StmtClose {
                self.statements.relayed.remove(&id);
                self.statements.others.remove(&id);
                self.statements.asking.remove(&id);
                self.statements.asking_found.remove(&id);
            } else if let Some(relayed) = self.statements.relayed.get_mut(&id) {
                relayed.has_long_data = command == Command::StmtSendLongData;
            }
            if command == Command::StmtReset {
                let question = self.server.put_command(&payload)?;
                self.server.flush()?;
                return self.relay_answer(question, &[]);
            }
            self.server.put_silent(&payload)?;
            return self.server.flush();
        }
        match command {
            Command::StmtClose => {
                if let Some(statement) = self.statements.open.remove(&id)
                    && let Some(server_id) = statement.server_id
                {
                    self.close_at_server(server_id)?;
                    if let Some(id) = statement.indexed.take().id() {
                        self.close_at_server(id)?;
                    }
                    self.server.flush()?;
                }
                Ok(())
            }
            Command::StmtSendLongData => {
                let data = ComStmtSendLongData::decode(&payload).map_err(Failure::Client)?;
                let has_room = self.statements.take_long_data(data.data.len());
                let statement = self.statements.open.get_mut(&id);
                let param = usize::from(data.param);
                let most = self.server.bound.packet;
                if let Some(statement) = statement
                    && let Some(long) = statement.long.get_mut(param)
                {
                    let long = long.get_or_insert_default();
                    // there is no answer to this: the execution is refused
                    if has_room && long.len() + data.data.len() <= most {
                        long.extend_from_slice(data.data);
                    } else {
                        statement.too_long = true;
                    }
                }
                Ok(())
            }
            _ => {
                let mut server_id = None;
                if let Some(statement) = self.statements.open.get_mut(&id) {
                    statement.long.iter_mut().for_each(|l| *l = None);
                    statement.too_long = false;
                    statement.cursor = None;
                    server_id = statement.server_id;
                }
                let Some(server_id) = server_id else {
                    return self.write_done(&crate::exchange::Done::default());
                };
                let mut own = Vec::new();
                encode_statement_command(&mut own, Command::StmtReset, server_id);
                let question = self.server.put_command(&own)?;
                self.server.flush()?;
                self.relay_answer(question, &[])
            }
        }
    }

    /// The servers' error for an id that is no statement's.
    pub fn unknown_statement(&mut self, id: u32, by: &str) -> Failure {
        // the server does not know of this error
        self.statements.interfered = true;
        let by = match self.state.family {
            Family::MariaDb => by,
            Family::MySql => "mysql_stmt_precheck",
        };
        let message = format!("Unknown prepared statement handler ({id}) given to {by}");
        Failure::Server {
            code: 1243,
            state: *b"HY000",
            message: message.into_bytes(),
        }
    }

    pub fn close_at_server(&mut self, id: u32) -> Outcome<()> {
        let mut packet = Vec::new();
        encode_statement_command(&mut packet, Command::StmtClose, id);
        self.server.put_silent(&packet)
    }
}

/// The servers' error for more prepared statements than may be.
pub(crate) fn too_many(most: usize) -> Failure {
    let message = format!(
        "Can't create more than max_prepared_stmt_count statements (current value: {most})"
    );
    Failure::Server {
        code: 1461,
        state: *b"42000",
        message: message.into_bytes(),
    }
}

/// Whether the server has a statement of its own for it.
fn runs_at_server(prepared: &Prepared) -> bool {
    matches!(
        prepared.plan.action,
        Action::Server { .. } | Action::Finish(_) | Action::Relay
    )
}

/// Refuses parameters of types that only results have, such as YEAR. MySQL calls them wrong. MariaDB takes NULL for one without
/// reading its bytes, and then takes these for the next parameter.
fn must_be_bindable(params: &[Param]) -> Outcome<()> {
    let is_bindable = |param: &Param| {
        matches!(
            param.ty.kind,
            ColumnType::TINY
                | ColumnType::SHORT
                | ColumnType::LONG
                | ColumnType::LONGLONG
                | ColumnType::FLOAT
                | ColumnType::DOUBLE
                | ColumnType::DECIMAL
                | ColumnType::NEWDECIMAL
                | ColumnType::DATE
                | ColumnType::TIME
                | ColumnType::DATETIME
                | ColumnType::TIMESTAMP
                | ColumnType::VARCHAR
                | ColumnType::VAR_STRING
                | ColumnType::STRING
                | ColumnType::TINY_BLOB
                | ColumnType::BLOB
                | ColumnType::MEDIUM_BLOB
                | ColumnType::LONG_BLOB
                | ColumnType::NULL
        )
    };
    match params.iter().all(is_bindable) {
        true => Ok(()),
        false => Err(Failure::refused(
            &errors::VALUE,
            "a parameter of a type that servers do not take",
        )),
    }
}

fn prepared_otherwise() -> Failure {
    let about = "a statement that was prepared in another database, SQL mode or character set; prepare it again";
    Failure::refused(&errors::NOT_UNDERSTOOD, about)
}
