//! Transactions of the tables that are wanted, one after the other.
//!
//! A transaction is a group of events: its GTID; BEGIN (MySQL); for each statement the tables
//! (TABLE_MAP) and their rows; and XID or COMMIT. A group of MariaDB may be a single statement
//! (`standalone`), as are definitions on MySQL. The server writes a group to the binlog when it
//! commits, so whatever is read here has been committed. There are two exceptions, which are
//! refused if they touch wanted tables: transactions of two phases (XA), whose rows are logged when
//! they are prepared, and groups that end with ROLLBACK because they changed tables that cannot be
//! rolled back.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use onionskin_schema::TableName;
use onionskin_wire::{Socket, WireError};

use super::columns::TableColumns;
use super::compression::{Payload, decompress_mariadb};
use super::error::{BinlogError, BinlogResult};
use super::event::{EventHead, GtidEvent, HEAD, MAGIC, Query, kind};
use super::position::{Gtid, GtidPosition, Position};
use super::rows::{KnownTable, RowImage, RowsEvent};
use super::stream::{EventStream, StreamOptions};
use super::table_map::TableMap;
use crate::client::{ClientError, ConnectOptions, Family};

pub use super::rows::RowKind;

/// The tables whose rows are wanted, with their columns.
pub type Tables = HashMap<TableName, Arc<TableColumns>>;

/// How the binlog is followed.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// Server id, heartbeat, whether to end at the end.
    pub stream: StreamOptions,
    /// The tables whose rows are wanted. Rows of all others are skipped.
    pub tables: Tables,
    /// Bytes of row events after which a long transaction is handed out in pieces. In memory, a
    /// piece takes several times as much.
    pub piece: usize,
}

impl FollowOptions {
    /// Pieces of 8 MiB.
    pub fn new(server_id: u32, tables: Tables) -> Self {
        Self {
            stream: StreamOptions::new(server_id),
            tables,
            piece: 8 << 20,
        }
    }
}

/// What happened, in the order of the commits.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A transaction, or a piece of a long one, that has changes.
    Transaction(Transaction),
    /// Nothing that is wanted has happened up to this position. It comes before the follower waits,
    /// and at times between transactions of other tables. After a heartbeat it repeats itself.
    Progress(Position),
}

/// Changes that were committed together.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// Its identity, if the server numbers transactions.
    pub gtid: Option<Gtid>,
    /// Where to go on. For a piece that is not the last it is the beginning of the transaction, so
    /// that a follower that goes on from there gets all pieces again.
    pub end: Position,
    /// When it was committed, in microseconds since 1970 by the server's clock. MariaDB tells only
    /// whole seconds, of the time at which the statement began.
    pub commit_timestamp: u64,
    /// What was changed, in order.
    pub changes: Vec<Change>,
    /// False if more pieces of the same transaction follow.
    pub last: bool,
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Rows of a wanted table.
    Rows {
        /// Which table.
        table: TableName,
        /// What was done to them.
        kind: RowKind,
        /// Before and after.
        rows: Vec<RowImage>,
    },
    /// A definition, or a change that was logged as a statement. It may be about any table: only
    /// its text says which.
    Statement {
        /// The session's database.
        database: String,
        /// The text, in the session's character set; bytes that are not UTF-8 are replaced.
        sql: String,
    },
}

/// How long progress may stay unsaid while transactions of other tables go by.
const PROGRESS_EVERY: Duration = Duration::from_millis(20);

/// An iterator over what happens, from a position on.
pub struct Follower {
    stream: EventStream,
    tables: Tables,
    piece: usize,
    /// It was asked for the end.
    may_end: bool,
    at_end: bool,
    /// The end of the last whole transaction.
    end: Position,
    /// Something moved `end` since it was last said.
    unsaid: bool,
    said: Instant,
    ready: VecDeque<Item>,
    group: Option<Group>,
    /// Tables by the numbers of their TABLE_MAP events; `None` for those that are not wanted.
    maps: HashMap<u64, Option<KnownTable>>,
    payload: Option<Payload>,
    /// The event that was read last from a payload.
    inner: Vec<u8>,
}

/// The transaction that is being read.
struct Group {
    gtid: Option<Gtid>,
    committed: Option<u64>,
    /// An event that commits will end it.
    begun: bool,
    xa: bool,
    changes: Vec<Change>,
    bytes: usize,
    /// A row of a wanted table was in it, maybe in a piece that is gone.
    rows: bool,
}

impl Follower {
    /// Begins behind `from`.
    pub fn connect(
        connect: &ConnectOptions,
        options: FollowOptions,
        from: &Position,
    ) -> BinlogResult<Self> {
        let stream = match from.offset > u64::from(u32::MAX) && !from.file.is_empty() {
            false => EventStream::open(connect, &options.stream, from)?,
            true => {
                let beginning = Position::new(&from.file, MAGIC.len() as u64);
                let mut stream = EventStream::open(connect, &options.stream, &beginning)?;
                stream.skip_to(from.offset)?;
                stream
            }
        };
        Ok(Self {
            stream,
            may_end: options.stream.stop_at_end,
            tables: options.tables,
            piece: options.piece,
            at_end: false,
            end: from.clone(),
            unsaid: false,
            said: Instant::now(),
            ready: VecDeque::new(),
            group: None,
            maps: HashMap::new(),
            payload: None,
            inner: Vec::new(),
        })
    }

    /// The end of the last whole transaction: where to go on.
    pub fn position(&self) -> &Position {
        &self.end
    }

    /// A handle with which another thread can end the stream.
    pub fn closer(&self) -> Result<Socket, ClientError> {
        self.stream.closer()
    }

    /// Also follow this table from here on, or with other columns.
    pub fn set_table(&mut self, table: TableName, columns: Arc<TableColumns>) {
        self.tables.insert(table, columns);
    }

    /// The next item; `None` at the end of the log, if that was asked for. Waits.
    pub fn next_item(&mut self) -> BinlogResult<Option<Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            if self.unsaid && self.group.is_none() && self.payload.is_none() {
                let waits = !self.stream.has_event();
                if waits || self.at_end || self.said.elapsed() > PROGRESS_EVERY {
                    return Ok(Some(self.progress()));
                }
            }
            if self.at_end {
                return Ok(None);
            }
            self.read()?;
        }
    }

    fn progress(&mut self) -> Item {
        self.unsaid = false;
        self.said = Instant::now();
        Item::Progress(self.end.clone())
    }

    /// Reads one event, of the stream or of a compressed transaction.
    fn read(&mut self) -> BinlogResult<()> {
        if let Some(payload) = &mut self.payload {
            if !payload.next_event(&mut self.inner)? {
                self.payload = None;
                return Ok(());
            }
            let inner = std::mem::take(&mut self.inner);
            let head = EventHead::decode(&inner)?;
            let done = self.event(head, &inner[HEAD..]);
            self.inner = inner;
            return done;
        }
        let mut buffer = std::mem::take(&mut self.inner);
        buffer.clear();
        let Some(event) = self.stream.next_event()? else {
            if !self.may_end {
                // A server says so when its thread was ended, be it in the middle of a transaction.
                return Err(ClientError::from(WireError::Closed).into());
            }
            self.at_end = true;
            return match self.group {
                None => Ok(()),
                Some(_) => Err(BinlogError::Malformed("end in the middle of a transaction")),
            };
        };
        let head = event.head;
        // Rows of other tables are most of what comes: they are not even copied.
        if is_rows(head.kind)
            && let Some(None) = self.maps.get(&RowsEvent::table_of(event.body())?)
        {
            return Ok(());
        }
        buffer.extend_from_slice(event.body());
        let done = self.event(head, &buffer);
        self.inner = buffer;
        done
    }

    fn event(&mut self, head: EventHead, body: &[u8]) -> BinlogResult<()> {
        match head.kind {
            kind::ROTATE | kind::FORMAT_DESCRIPTION | kind::STOP => self.between()?,
            kind::HEARTBEAT | kind::HEARTBEAT_V2 => self.unsaid = true,
            kind::PREVIOUS_GTIDS => {
                if self.end.gtid.is_none() {
                    self.end.gtid = GtidPosition::decode_mysql(body)?;
                }
                self.between()?;
            }
            kind::MARIA_GTID_LIST => {
                if self.end.gtid.is_none() && !head.is_artificial() {
                    self.end.gtid = Some(GtidPosition::decode_mariadb(body)?);
                }
                self.between()?;
            }
            kind::MARIA_BINLOG_CHECKPOINT | kind::MARIA_START_ENCRYPTION => self.between()?,
            kind::GTID => self.begin(GtidEvent::decode_mysql(body, false)?)?,
            kind::ANONYMOUS_GTID => self.begin(GtidEvent::decode_mysql(body, true)?)?,
            kind::GTID_TAGGED => self.begin(GtidEvent::decode_tagged(body)?)?,
            kind::MARIA_GTID => self.begin(GtidEvent::decode_mariadb(body, head.server_id)?)?,
            kind::TRANSACTION_PAYLOAD => self.payload = Some(Payload::begin(body)?),
            kind::QUERY => {
                let query = Query::decode(body, false)?;
                self.query(head, query.database, query.sql)?;
            }
            kind::MARIA_QUERY_COMPRESSED => {
                let query = Query::decode(body, false)?;
                self.query(head, query.database, &decompress_mariadb(query.sql)?)?;
            }
            kind::EXECUTE_LOAD_QUERY => {
                let query = Query::decode(body, true)?;
                self.query(head, query.database, query.sql)?;
            }
            kind::TABLE_MAP => self.table_map(body)?,
            kind::PARTIAL_UPDATE_ROWS => {
                if self.is_wanted(body)? {
                    return Err(BinlogError::Unsupported {
                        what: "a row event holds only what changed of a JSON document".into(),
                        way_out: "set binlog_row_value_options='' in every session that writes, and begin anew",
                    });
                }
            }
            kind if is_rows(kind) => self.rows(head, body)?,
            kind::XID => self.commit(head)?,
            kind::XA_PREPARE => self.xa_prepare(head, body)?,
            kind::INCIDENT => return Err(BinlogError::Incident),
            // What statements depend on, and what they load; their text comes behind.
            kind::INTVAR
            | kind::RAND
            | kind::USER_VAR
            | kind::APPEND_BLOCK
            | kind::BEGIN_LOAD_QUERY
            | kind::DELETE_FILE => {}
            // Texts of statements, and what group replication tells its members.
            kind::IGNORABLE
            | kind::ROWS_QUERY
            | kind::MARIA_ANNOTATE_ROWS
            | kind::TRANSACTION_CONTEXT
            | kind::VIEW_CHANGE => {}
            _ if head.may_be_ignored() => {}
            unknown => return Err(BinlogError::UnknownEvent(unknown)),
        }
        Ok(())
    }

    /// An event that belongs to no transaction.
    fn between(&mut self) -> BinlogResult<()> {
        if self.group.is_some() {
            return Err(BinlogError::Malformed("order of events"));
        }
        self.moved();
        Ok(())
    }

    /// The stream stands behind something whole.
    fn moved(&mut self) {
        if !Arc::ptr_eq(&self.end.file, self.stream.file()) {
            self.end.file = Arc::clone(self.stream.file());
        }
        self.end.offset = self.stream.offset();
        self.unsaid = true;
    }

    fn begin(&mut self, event: GtidEvent) -> BinlogResult<()> {
        if self.group.is_some() {
            return Err(BinlogError::Malformed("order of events"));
        }
        self.group = Some(Group {
            gtid: event.gtid,
            committed: event.committed,
            // MySQL says so by BEGIN, which comes behind.
            begun: self.stream.family() == Family::MariaDb && !event.standalone,
            xa: event.xa,
            changes: Vec::new(),
            bytes: 0,
            rows: false,
        });
        Ok(())
    }

    /// The transaction that is being read; servers without GTIDs begin one by BEGIN alone.
    fn group(&mut self) -> &mut Group {
        self.group.get_or_insert_with(|| Group {
            gtid: None,
            committed: None,
            begun: false,
            xa: false,
            changes: Vec::new(),
            bytes: 0,
            rows: false,
        })
    }

    fn query(&mut self, head: EventHead, database: &[u8], sql: &[u8]) -> BinlogResult<()> {
        let text = String::from_utf8_lossy(sql);
        let word = |prefix: &str| {
            text.get(..prefix.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(prefix))
        };
        if text.eq_ignore_ascii_case("BEGIN") {
            self.group().begun = true;
            return Ok(());
        }
        if text.eq_ignore_ascii_case("COMMIT") {
            return self.commit(head);
        }
        if word("XA ") {
            let group = self.group();
            // XA START begins a group, XA END is inside; XA COMMIT and XA ROLLBACK are groups of
            // their own.
            group.xa = true;
            return match word("XA COMMIT") || word("XA ROLLBACK") {
                true => self.commit(head),
                false => Ok(()),
            };
        }
        if word("SAVEPOINT ") || word("RELEASE SAVEPOINT ") {
            return Ok(());
        }
        if word("ROLLBACK") {
            if self.group().rows {
                return Err(BinlogError::Unsupported {
                    what: "a transaction was rolled back, but not in the tables that cannot be rolled back".into(),
                    way_out: "write to tables without transactions in statements of their own, and begin anew",
                });
            }
            return match text.eq_ignore_ascii_case("ROLLBACK") {
                true => self.commit(head),
                false => Ok(()),
            };
        }
        // A definition is a group of its own, without an event that commits it.
        let alone = !self.group().begun;
        let database = String::from_utf8_lossy(database).into_owned();
        let sql = text.into_owned();
        let group = self.group();
        group.bytes += sql.len();
        group.changes.push(Change::Statement { database, sql });
        match alone {
            true => self.commit(head),
            false => Ok(()),
        }
    }

    fn table_map(&mut self, body: &[u8]) -> BinlogResult<()> {
        let (id, table) = TableMap::decode_names(body)?;
        let known = match self.tables.get(&table) {
            None => None,
            Some(columns) => Some(KnownTable::new(
                TableMap::decode(body)?,
                Arc::clone(columns),
            )?),
        };
        self.maps.insert(id, known);
        Ok(())
    }

    fn is_wanted(&self, body: &[u8]) -> BinlogResult<bool> {
        /// The number of no table, in an event that only ends a statement.
        const NONE: u64 = 0xff_ffff;
        let id = RowsEvent::table_of(body)?;
        match self.maps.get(&id) {
            Some(known) => Ok(known.is_some()),
            None if id == NONE => Ok(false),
            None => Err(BinlogError::Malformed("row event without a table")),
        }
    }

    fn rows(&mut self, head: EventHead, body: &[u8]) -> BinlogResult<()> {
        if !self.is_wanted(body)? {
            return Ok(());
        }
        let (row_kind, extended, compressed) = rows_format(head.kind);
        let event = RowsEvent::decode(body, row_kind, extended)?;
        let Some(Some(known)) = self.maps.get(&event.table) else {
            return Ok(());
        };
        let table = known.map().table.clone();
        let rows = match compressed {
            true => event.rows(&decompress_mariadb(event.images)?, known)?,
            false => event.rows(event.images, known)?,
        };
        let piece = self.piece;
        let group = self.group();
        if group.xa {
            return Err(BinlogError::Unsupported {
                what: format!("{table} was changed in a transaction of two phases (XA)"),
                way_out: "let the application use plain transactions for this table meanwhile",
            });
        }
        group.rows = true;
        group.bytes += body.len();
        match group.changes.last_mut() {
            // Large statements come in many events.
            Some(Change::Rows {
                table: last,
                kind: last_kind,
                rows: all,
            }) if *last == table && *last_kind == row_kind => all.extend(rows),
            _ => group.changes.push(Change::Rows {
                table,
                kind: row_kind,
                rows,
            }),
        }
        if group.bytes >= piece {
            let changes = std::mem::take(&mut group.changes);
            group.bytes = 0;
            let (gtid, committed) = (group.gtid.clone(), group.committed);
            self.ready.push_back(Item::Transaction(Transaction {
                gtid,
                end: self.end.clone(),
                commit_timestamp: committed.unwrap_or(u64::from(head.timestamp) * 1_000_000),
                changes,
                last: false,
            }));
        }
        Ok(())
    }

    fn xa_prepare(&mut self, head: EventHead, body: &[u8]) -> BinlogResult<()> {
        let one_phase = body.first() == Some(&1);
        if let Some(group) = &mut self.group {
            if group.rows && !one_phase {
                return Err(BinlogError::Malformed("transaction of two phases"));
            }
            group.xa = false;
        }
        self.commit(head)
    }

    /// The group is whole.
    fn commit(&mut self, head: EventHead) -> BinlogResult<()> {
        let Some(group) = self.group.take() else {
            return Err(BinlogError::Malformed("order of events"));
        };
        self.maps.clear();
        if let (Some(position), Some(gtid)) = (&mut self.end.gtid, &group.gtid) {
            position.add(gtid);
        }
        self.moved();
        if group.changes.is_empty() && !group.rows {
            return Ok(());
        }
        self.unsaid = false;
        self.said = Instant::now();
        self.ready.push_back(Item::Transaction(Transaction {
            gtid: group.gtid,
            end: self.end.clone(),
            commit_timestamp: group
                .committed
                .unwrap_or(u64::from(head.timestamp) * 1_000_000),
            changes: group.changes,
            last: true,
        }));
        Ok(())
    }
}

impl Iterator for Follower {
    type Item = BinlogResult<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_item().transpose()
    }
}

fn is_rows(kind: u8) -> bool {
    matches!(
        kind,
        kind::WRITE_ROWS_V1..=kind::DELETE_ROWS_V1
            | kind::WRITE_ROWS..=kind::DELETE_ROWS
            | kind::MARIA_WRITE_ROWS_COMPRESSED_V1..=kind::MARIA_DELETE_ROWS_COMPRESSED
    )
}

/// What an event does, whether its head has the extended form, and whether its images are
/// compressed.
fn rows_format(event: u8) -> (RowKind, bool, bool) {
    use RowKind::*;
    match event {
        kind::WRITE_ROWS_V1 => (Insert, false, false),
        kind::UPDATE_ROWS_V1 => (Update, false, false),
        kind::DELETE_ROWS_V1 => (Delete, false, false),
        kind::WRITE_ROWS => (Insert, true, false),
        kind::UPDATE_ROWS => (Update, true, false),
        kind::DELETE_ROWS => (Delete, true, false),
        kind::MARIA_WRITE_ROWS_COMPRESSED_V1 => (Insert, false, true),
        kind::MARIA_UPDATE_ROWS_COMPRESSED_V1 => (Update, false, true),
        kind::MARIA_DELETE_ROWS_COMPRESSED_V1 => (Delete, false, true),
        kind::MARIA_WRITE_ROWS_COMPRESSED => (Insert, true, true),
        kind::MARIA_UPDATE_ROWS_COMPRESSED => (Update, true, true),
        _ => (Delete, true, true),
    }
}
