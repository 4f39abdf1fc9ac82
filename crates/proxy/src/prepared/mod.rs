//! Prepared statements.
//!
//! A statement that touches nothing protected is prepared at the server and its commands are
//! relayed. One with slots is prepared with a `?` for each slot; an execution's parameters are
//! bound into cells and tokens like literals. What cannot be prepared at the server (tier 2
//! updates, definitions) gets an id of ours and runs as text.

use std::cell::Cell;
use std::sync::Arc;

use ahash::AHashMap;
use onionskin_plan::{Template, errors};
use onionskin_value::Family;
use onionskin_wire::ParamType;
use onionskin_wire::messages::{Command, encode_statement_command, statement_id};

use self::relayed::Relayed;
pub(crate) use self::setting::Setting;
use crate::bind::StoreMode;
use crate::by_name::Named;
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::finish::Kept;
use crate::open::Opener;
use crate::session::Session;

mod commands;
mod cursor;
mod execute;
mod prepare;
mod relayed;
mod setting;

/// Ids that no server gives out.
const OWN_IDS: u32 = 0x8000_0000;
/// To MariaDB, the statement that was prepared last, so that a client need not wait for its id.
const LAST_ID: u32 = u32::MAX;
/// Bytes of long data that the statements of a session may hold.
pub(crate) const MAX_LONG_DATA_BYTES: usize = 256 << 20;
/// How many statements a session may hold that the server does not have, and how many bytes of
/// their texts. The number is the default of the servers' `max_prepared_stmt_count`, which counts
/// all sessions.
const MAX_STATEMENTS: usize = 16_382;
const MAX_TEXT_BYTES: usize = 256 << 20;

/// The session's prepared statements.
#[derive(Default)]
pub(crate) struct Statements {
    pub open: AHashMap<u32, Statement>,
    /// Those that are relayed, by the server's id. An id that stands in neither was never the
    /// client's: the server may know a statement of ours by it, whose parameters are cells.
    relayed: AHashMap<u32, Relayed>,
    /// Cursors that the proxy holds the rows of, by the client's id of the statement.
    cursors: AHashMap<u32, Cursor>,
    /// The one that was prepared last, unless that failed.
    last: Option<u32>,
    /// Those that are prepared in SQL.
    pub named: Named,
    next_own: u32,
    /// Bytes of long data that have arrived, as counted by [`Self::take_long_data`].
    long_data: usize,
}

/// A prepared statement that is more than relayed.
pub(crate) struct Statement {
    sql: Vec<u8>,
    template: Template,
    pub keyed: Arc<KeyedPlan>,
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

/// Rows that wait to be fetched.
struct Cursor {
    /// Their packets, with headers.
    rows: Vec<u8>,
    /// Bytes of them that have been fetched.
    fetched: usize,
    /// Reserves the memory that they take.
    _kept: Kept,
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
    /// Its id and its parameters.
    fn prepared(self) -> Option<(u32, usize)> {
        match self {
            Indexed::Prepared(id, params) => Some((id, params)),
            _ => None,
        }
    }

    fn id(self) -> Option<u32> {
        self.prepared().map(|(id, _)| id)
    }
}

impl Statement {
    /// Of a text that was read without folding; nothing is prepared at the server.
    pub fn new(
        sql: Vec<u8>,
        template: &Template,
        keyed: &Arc<KeyedPlan>,
        params: usize,
        setting: Setting,
    ) -> Self {
        Statement {
            setting,
            mode: StoreMode::of(&keyed.plan.facts, None),
            sql,
            template: Template {
                key: template.key.clone(),
                literals: template.literals.clone(),
                rows: None,
                multiple: false,
                trailed: false,
            },
            keyed: Arc::clone(keyed),
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
        self.cursors.clear();
        self.last = None;
        self.named.clear();
    }

    /// The pieces of values that have come for a statement are not for its next execution.
    pub fn forget_long(&mut self, id: u32) {
        if let Some(statement) = self.open.get_mut(&id) {
            statement.long.iter_mut().for_each(|long| *long = None);
            statement.too_long = false;
        }
    }

    /// The rows that are held of a statement are not fetched any more.
    fn close_cursor(&mut self, id: u32) {
        if !self.cursors.is_empty() {
            self.cursors.remove(&id);
        }
    }

    /// A preparation begins: until it is done, none was prepared last.
    pub fn forget_last(&mut self) {
        self.last = None;
    }

    /// The statement that was prepared last.
    pub fn last(&self) -> Option<u32> {
        self.last
    }

    /// A server numbers the statements of a session. [`Failure::OutOfStep`] of a number that one
    /// has already: the client's values for the one would go to the other.
    fn must_be_new(&self, id: u32) -> Outcome<()> {
        let is_used = self.open.contains_key(&id) || self.relayed.contains_key(&id);
        match is_used || id & OWN_IDS != 0 {
            true => Err(Failure::OutOfStep("a statement's number that is taken")),
            false => Ok(()),
        }
    }

    /// Whether the server knows this statement by the client's id.
    fn is_relayed(&self, id: u32) -> bool {
        self.relayed.contains_key(&id)
    }

    /// Counts long data that arrives. Returns whether there is room for it. Only if there seems to
    /// be too much, it looks for what executions have used up.
    fn take_long_data(&mut self, length: usize) -> bool {
        if self.long_data + length > MAX_LONG_DATA_BYTES {
            let all = self.open.values().flat_map(|s| &s.long);
            self.long_data = all.flatten().map(Vec::len).sum();
        }
        let fits = self.long_data + length <= MAX_LONG_DATA_BYTES;
        self.long_data += if fits { length } else { 0 };
        fits
    }

    /// Whether another statement of ours with a text of this length may be kept.
    fn has_room(&self, length: usize) -> Outcome<()> {
        let ours = self.open.values().filter(|s| s.server_id.is_none());
        let (count, bytes) = ours.fold((0, length), |(n, b), s| (n + 1, b + s.sql.len()));
        if count >= MAX_STATEMENTS {
            return Err(too_many(MAX_STATEMENTS));
        }
        if bytes > MAX_TEXT_BYTES {
            let about = "texts of prepared statements";
            return Err(Failure::refused(&errors::MEMORY, about));
        }
        Ok(())
    }

    /// The statement that a command is about. The highest id means the last statement if the server
    /// takes it so.
    fn id_in(&self, payload: &mut [u8], family: Family) -> Outcome<u32> {
        let id = statement_id(payload).map_err(Failure::Client)?;
        let (LAST_ID, Family::MariaDb, Some(last)) = (id, family, self.last) else {
            return Ok(id);
        };
        payload[1..5].copy_from_slice(&last.to_le_bytes());
        Ok(last)
    }

    /// The text of the statement that an execution is of, and its shape as it was read when the
    /// statement was prepared: by now the session may take a text for a name. `None` if it was
    /// relayed.
    pub fn shape_of(&self, command: &[u8]) -> Option<(&[u8], &Template)> {
        let id = statement_id(command).ok()?;
        let open = self.open.get(&id)?;
        Some((&open.sql, &open.template))
    }

    /// Whether the statement that a command executes asks about the one before.
    pub fn asks_about_the_last(&self, command: &[u8]) -> bool {
        let keyed = statement_id(command).ok().and_then(|id| {
            let open = self.open.get(&id).map(|statement| &*statement.keyed);
            open.or_else(|| self.relayed.get(&id).map(Relayed::keyed))
        });
        keyed.is_some_and(|keyed| keyed.plan.facts.question.asks())
    }

    /// The text of the statement that a command is about, if it is kept.
    pub fn text_of(&self, command: &[u8]) -> Option<&[u8]> {
        let id = statement_id(command).ok()?;
        let open = self.open.get(&id).map(|s| s.sql.as_slice());
        open.or_else(|| self.relayed.get(&id).and_then(Relayed::text))
    }
}

impl Session {
    /// The servers' error for an id that is no statement's.
    pub fn unknown_statement(&mut self, id: u32, by: &str) -> Failure {
        let by = match self.state.family {
            Family::MariaDb => by,
            Family::MySql => "mysql_stmt_precheck",
        };
        self.no_such_statement(&id.to_string(), by)
    }

    /// The same for an id or a name.
    pub fn no_such_statement(&mut self, name: &str, by: &str) -> Failure {
        // the server does not know of this error
        self.current.interfered = true;
        let message = format!("Unknown prepared statement handler ({name}) given to {by}");
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
