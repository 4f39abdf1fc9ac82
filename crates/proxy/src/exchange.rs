//! What a session asks its server, and who reads the answers.
//!
//! A server answers commands in their order and does not say which one an answer belongs to. So
//! each command that has an answer returns a [`Question`], and an answer can be read with its
//! question only. [`Server::begin`] throws away the answers to earlier questions that nobody asks
//! for any more: those that were dropped, by `?` or by a refusal. [`Server::settle`] throws away
//! all of them, and takes back what was not sent yet. No path can hand one question's answer to
//! another.
//!
//! Questions may be sent before the answers to earlier ones are read: two of them then cost one
//! round trip.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use onionskin_schema::{TableName, identifier};
use onionskin_wire::messages::{
    ColumnDefinition, Command, CursorType, EofPacket, ErrPacket, OkPacket, SessionChange,
    SessionChanges, encode_statement_command,
};
use onionskin_wire::rows::TextRow;
use onionskin_wire::{
    Capabilities, Connection, DefinitionForm, ResponseTracker, StatusFlags, Step, WireError,
};

use crate::age::{RECHECK, now};
use crate::error::{Failure, Outcome, too_long};
use crate::packet_bound::PacketBound;
use crate::server_errors::{IS_ABSENT, IS_HIDDEN, ROLLED_BACK};
use crate::view_text::{self, ViewText};
use crate::written::Written;

/// A command that was given to the connection, and the right to read its answer.
#[must_use = "nobody else can read its answer"]
#[derive(Debug)]
pub(crate) struct Question(u64);

/// A question whose answer has not begun to be read.
struct Outstanding {
    number: u64,
    /// Where in all that is written to the server it begins.
    place: u64,
    /// The sequence number that the answer begins with.
    sequence: u8,
    command: Command,
    /// It is an execution that asks for a cursor.
    cursor: bool,
}

/// The server's side of a session.
pub(crate) struct Server {
    pub connection: Connection,
    pub tracker: ResponseTracker,
    pub capabilities: Capabilities,
    /// The form of column definitions, to the client, too.
    pub form: DefinitionForm,
    /// Status flags of the last answer.
    pub status: StatusFlags,
    /// They are those of an answer before an error, which told none.
    status_is_old: bool,
    /// Rows were changed since this was set back.
    pub has_written: bool,
    /// How many questions there have been.
    asked: u64,
    /// `ROW_COUNT()` behind the last answer.
    pub row_count: i64,
    outstanding: VecDeque<Outstanding>,
    /// Where the command that was begun last begins.
    place: u64,
    /// Session state changes that were not looked at yet, as sent.
    pub changes: Vec<u8>,
    /// Tests may let exchanges fail.
    #[cfg(debug_assertions)]
    pub is_faulty: bool,
    /// Something has changed in the session that the server has not told: a result has ended with a
    /// flag that says so, and no more.
    pub untold: bool,
    /// A result has ended with a packet that could not tell of changes.
    pub silent_end: bool,
    /// An answer was an error, which tells neither changes nor the status. Whoever takes this asks.
    pub failed: bool,
    /// Changes were told before the end of an answer: they may not be the last.
    pub told_within: bool,
    /// Something was set or made in the session, a temporary table or not: see
    /// [`crate::state::tracking`].
    pub told_state: bool,
    /// The session's `sql_select_limit`, if it limits. The server applies it to statements of the
    /// proxy's own, too.
    pub select_limit: Option<String>,
    /// What the server takes, once it was asked.
    pub bound: PacketBound,
    /// What `FOUND_ROWS()` is to the client.
    pub found: Found,
    /// The server reads information_schema in the transaction's snapshot. MySQL does, because its
    /// definitions are rows of tables.
    pub keeps_snapshots: bool,
    /// The session's `max_execution_time` bounds each `SELECT` and nothing else, as MySQL's does.
    pub bounds_selects: bool,
    /// The session's `max_join_size` bounds what a `SELECT` may read: `sql_big_selects` is off.
    pub bounds_joins: bool,
    /// The server's list of warnings may hold something.
    pub may_hold_list: bool,
    /// Without autocommit, a statement that failed may have begun a transaction all the same.
    /// Errors do not tell.
    may_be_in_transaction: bool,
    /// When a command was given last outside of a transaction, in milliseconds of [`now`].
    asked_at: u64,
    /// When the transaction began, likewise; 0 if that is not known.
    began: u64,
    /// Where the GTIDs of what is written here are noted, if anybody waits for them.
    pub written: Option<Arc<Written>>,
    /// The definitions that were confirmed last in a transaction, and when: see
    /// [`Self::sees_the_past`].
    pub confirmed: Confirmed,
}

/// Definitions that a session has found to be as they are known, while its transaction sees older
/// ones.
#[derive(Default)]
pub(crate) struct Confirmed {
    /// In this generation of what is known.
    pub generation: u64,
    /// When each name was.
    pub names: HashMap<TableName, u64>,
}

/// What `SHOW CREATE TABLE` says of a name.
pub(crate) enum Definition {
    /// There is no such table.
    Absent,
    /// It does not show it: the account may not see it, or a view is broken.
    Hidden,
    /// The table's definition.
    Table(String),
    /// A view's.
    View(ViewText),
    /// It shows none, and the account may read it: the columns that it has now.
    Columns(Vec<String>),
    /// The server has said something else, which says nothing of the table: that a lock was waited
    /// for in vain, that the account has asked as often as it may.
    Unsaid(Failure),
}

/// What `FOUND_ROWS()` is to the client. At the server it is about the last query, which may be one
/// of the proxy's own. It stays over statements that find no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// What the server says.
    Servers,
    Is(u64),
    /// The server has run another query since.
    Lost,
}

/// Behind a `SELECT` of the proxy's own: the session's `sql_select_limit` does not count.
pub(crate) const ALL_ROWS: &str = " LIMIT 18446744073709551615";

/// Behind the first word of a `SELECT` of the proxy's own: the session's `max_execution_time` does
/// not count. It is the longest time there is, about fifty days; 0 would leave the session's.
const UNBOUNDED: &[u8] = b"SELECT /*+ MAX_EXECUTION_TIME(4294967295) */";

/// The same where `max_join_size` would count.
const OF_ANY_SIZE: &[u8] =
    b"SELECT /*+ MAX_EXECUTION_TIME(4294967295) SET_VAR(sql_big_selects = 1) */";

/// The same on MariaDB, in front of the whole: it has no such hints.
const FOR_ANY_SIZE: &[u8] = b"SET STATEMENT sql_big_selects = 1 FOR ";

/// A row: NULL, or bytes.
pub(crate) type Cells = Vec<Option<Vec<u8>>>;

/// A result of text rows.
pub(crate) type Rows = Vec<Vec<Option<Vec<u8>>>>;

impl Server {
    pub fn new(connection: Connection, capabilities: Capabilities, form: DefinitionForm) -> Self {
        Server {
            connection,
            tracker: ResponseTracker::new(capabilities),
            capabilities,
            form,
            status: StatusFlags::AUTOCOMMIT,
            status_is_old: false,
            has_written: false,
            asked: 0,
            row_count: 0,
            outstanding: VecDeque::new(),
            place: 0,
            changes: Vec::new(),
            #[cfg(debug_assertions)]
            is_faulty: false,
            untold: false,
            silent_end: false,
            failed: false,
            told_within: false,
            told_state: false,
            select_limit: None,
            bound: PacketBound::default(),
            found: Found::Lost,
            keeps_snapshots: false,
            bounds_selects: false,
            bounds_joins: false,
            may_hold_list: false,
            may_be_in_transaction: false,
            asked_at: 0,
            began: 0,
            written: None,
            confirmed: Confirmed::default(),
        }
    }

    /// Appends a statement to the output; [`Self::flush`] sends it. One of the proxy's own that
    /// reads goes by [`Self::put_select`]: bounds of the client's session would end it.
    pub fn put_query(&mut self, sql: &[u8]) -> Outcome<Question> {
        self.put_parts(&[sql])
    }

    /// The same of a statement in parts.
    fn put_parts(&mut self, parts: &[&[u8]]) -> Outcome<Question> {
        if self.found == Found::Servers {
            self.found = Found::Lost;
        }
        let out = self.begin_command();
        out.push(Command::Query.to_byte());
        for part in parts {
            out.extend_from_slice(part);
        }
        self.end_command(Command::Query)
    }

    /// Appends a `SELECT` of the proxy's own that the client has not asked for, such as one that
    /// reads the rows of a change. The client's bounds for queries are not about it.
    pub fn put_select(&mut self, sql: &[u8]) -> Outcome<Question> {
        self.put_parts(&self.unbounded(sql))
    }

    /// Appends a `SELECT` that reads for a query of the client's: its time is the client's, and
    /// what it reads is not what the query would.
    pub fn put_read(&mut self, sql: &[u8]) -> Outcome<Question> {
        const HINTED: &[u8] = b"SELECT /*+ SET_VAR(sql_big_selects = 1) */ ";
        match sql.strip_prefix(b"SELECT ") {
            Some(behind) if self.bounds_joins && self.bounds_selects => {
                self.put_parts(&[HINTED, behind])
            }
            Some(_) if self.bounds_joins => self.put_parts(&[FOR_ANY_SIZE, sql]),
            _ => self.put_query(sql),
        }
    }

    /// The text of such a `SELECT`, in parts.
    pub fn unbounded<'a>(&self, sql: &'a [u8]) -> [&'a [u8]; 3] {
        const SELECT: &[u8] = b"SELECT";
        const SETTING: &[u8] = b"SET STATEMENT ";
        if self.bounds_joins && !self.bounds_selects {
            match sql.strip_prefix(SETTING) {
                Some(rest) => return [b"SET STATEMENT sql_big_selects = 1, ", rest, b""],
                None if lists(sql) => return [FOR_ANY_SIZE, sql, b""],
                None => {}
            }
        }
        let open = usize::from(sql.first() == Some(&b'('));
        let behind = match self.bounds_selects || self.bounds_joins {
            true => sql[open..].strip_prefix(SELECT),
            false => None,
        };
        let hints = match self.bounds_joins {
            true => OF_ANY_SIZE,
            false => UNBOUNDED,
        };
        match behind {
            Some(behind) if behind.first() != Some(&b' ') => [sql, b"", b""],
            Some(behind) if self.bounds_selects => [&sql[..open], hints, behind],
            Some(_) => [FOR_ANY_SIZE, sql, b""],
            None => [sql, b"", b""],
        }
    }

    /// Appends a command as it is.
    pub fn put_command(&mut self, payload: &[u8]) -> Outcome<Question> {
        if !self.takes(payload.len()) {
            return Err(too_long());
        }
        let command = Command::of(payload).map_err(Failure::Client)?;
        self.place = self.connection.written();
        self.connection.reset_sequence();
        self.connection
            .write_payload(payload)
            .map_err(Failure::Backend)?;
        self.ask(command, CursorType::is_asked_for(payload))
    }

    /// Appends a command that has no answer.
    pub fn put_silent(&mut self, payload: &[u8]) -> Outcome<()> {
        self.connection.reset_sequence();
        self.connection
            .write_payload(payload)
            .map_err(Failure::Backend)
    }

    /// Begins a command that is built in the connection's buffer; [`Self::end_command`] ends it.
    pub fn begin_command(&mut self) -> &mut Vec<u8> {
        self.place = self.connection.written();
        self.connection.reset_sequence();
        self.connection.begin_payload()
    }

    /// Ends a command that was built in the connection's buffer. Long ones take several packets,
    /// and the answer goes on counting behind the last.
    pub fn end_command(&mut self, command: Command) -> Outcome<Question> {
        if !self.takes(self.connection.payload_in_work().len()) {
            return self.end_long_command(command);
        }
        let cursor = CursorType::is_asked_for(self.connection.payload_in_work());
        self.connection.end_payload().map_err(Failure::Backend)?;
        self.ask(command, cursor)
    }

    /// How many questions there have been.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// A command was given to the connection.
    fn ask(&mut self, command: Command, cursor: bool) -> Outcome<Question> {
        let number = self.asked;
        self.asked += 1;
        if self.keeps_snapshots && !self.is_in_transaction() {
            self.asked_at = now();
        }
        self.outstanding.push_back(Outstanding {
            number,
            place: self.place,
            sequence: self.connection.sequence(),
            command,
            cursor: cursor && command == Command::StmtExecute,
        });
        self.strike()?;
        Ok(Question(number))
    }

    /// Fails where a test wants it; see `faults.rs`.
    #[inline]
    fn strike(&self) -> Outcome<()> {
        #[cfg(debug_assertions)]
        if self.is_faulty {
            return crate::faults::strike();
        }
        Ok(())
    }

    pub fn flush(&mut self) -> Outcome<()> {
        self.connection.flush().map_err(Failure::Backend)
    }

    /// Begins to read the answer to a question. What is left of earlier answers is thrown away:
    /// whoever asked for them has given them up.
    pub fn begin(&mut self, question: Question) -> Outcome<()> {
        let Question(number) = question;
        self.drain()?;
        while let Some(next) = self.outstanding.front()
            && next.number <= number
        {
            let is_asked_for = next.number == number;
            self.begin_next()?;
            if is_asked_for {
                return self.strike();
            }
            self.drain()?;
        }
        Err(Failure::OutOfStep("an answer that is no longer there"))
    }

    /// Begins to read the first answer that is outstanding, if there is one.
    fn begin_next(&mut self) -> Outcome<()> {
        let Some(next) = self.outstanding.pop_front() else {
            return Ok(());
        };
        self.connection.set_sequence(next.sequence);
        match next.cursor {
            true => self.tracker.begin_cursor(),
            false => self.tracker.begin(next.command).map_err(Failure::Backend)?,
        }
        Ok(())
    }

    /// Between two commands of the client nothing may have come that nobody asked for.
    pub fn check_silence(&self) -> Outcome<()> {
        match self.is_settled() && self.connection.has_buffered_input() {
            true => Err(Failure::OutOfStep("a packet that nobody asked for")),
            false => Ok(()),
        }
    }

    /// Whether every question has its answer read.
    pub fn is_settled(&self) -> bool {
        self.outstanding.is_empty() && self.tracker.is_complete()
    }

    /// Gives up everything that was asked and not read: what was not sent yet is not sent, and the
    /// answers to the rest are read and thrown away.
    pub fn settle(&mut self) -> Outcome<()> {
        self.connection.cancel_payload();
        while let Some(last) = self.outstanding.back()
            && self.connection.take_back(last.place)
        {
            self.outstanding.pop_back();
        }
        if !self.is_settled() {
            // a command may have been sent by half
            self.flush()?;
        }
        self.drain()?;
        while !self.outstanding.is_empty() {
            self.begin_next()?;
            self.drain()?;
        }
        Ok(())
    }

    /// Reads the next packet of an answer.
    pub fn step(&mut self) -> Outcome<Step> {
        self.strike()?;
        self.read_step()
    }

    fn read_step(&mut self) -> Outcome<Step> {
        let payload = self.connection.read_payload().map_err(Failure::Backend)?;
        let step = self.tracker.step(payload).map_err(Failure::Backend)?;
        if matches!(step, Step::Ok { .. } | Step::EndOfRows { .. }) {
            self.may_hold_list |= self.warnings_at_end()? > 0;
        }
        match step {
            Step::Ok { status } => {
                self.note(status);
                self.row_count = affected_rows(self.connection.last_payload());
                self.may_be_in_transaction = false;
                // it tells what ends before it did not
                self.silent_end = false;
                if status.contains(StatusFlags::SESSION_STATE_CHANGED)
                    && self.capabilities.contains(Capabilities::SESSION_TRACK)
                {
                    let ok = OkPacket::decode(self.connection.last_payload(), self.capabilities)
                        .map_err(Failure::Backend)?;
                    if let Some(written) = &self.written {
                        note_written(written, ok.session_changes);
                    }
                    self.told_state |= tells_state(ok.session_changes);
                    match status.contains(StatusFlags::MORE_RESULTS) {
                        true => self.told_within = true,
                        false => self.changes.extend_from_slice(ok.session_changes.0),
                    }
                }
            }
            Step::EndOfRows { status } => {
                self.note(status);
                self.row_count = -1;
                if !self.capabilities.contains(Capabilities::DEPRECATE_EOF) {
                    self.silent_end = true;
                    let has_changed = status.contains(StatusFlags::SESSION_STATE_CHANGED);
                    self.untold |= has_changed;
                    self.told_state |= has_changed;
                    if let Some(written) = self.written.as_ref().filter(|_| has_changed) {
                        written.unclear();
                    }
                }
                if status.contains(StatusFlags::SESSION_STATE_CHANGED)
                    && self.capabilities.contains(Capabilities::DEPRECATE_EOF)
                    && let Ok(ok) =
                        OkPacket::decode(self.connection.last_payload(), self.capabilities)
                {
                    if let Some(written) = &self.written {
                        note_written(written, ok.session_changes);
                    }
                    self.told_state |= tells_state(ok.session_changes);
                    match status.contains(StatusFlags::MORE_RESULTS) {
                        true => self.told_within = true,
                        false => self.changes.extend_from_slice(ok.session_changes.0),
                    }
                }
            }
            // a deadlock has ended the transaction, and errors do not tell the status
            Step::Err => {
                if self.connection.said_farewell() {
                    return Err(Failure::Backend(WireError::Closed));
                }
                self.may_hold_list = true;
                self.row_count = -1;
                self.failed = true;
                self.may_be_in_transaction = !self.status.contains(StatusFlags::AUTOCOMMIT);
                let error = ErrPacket::decode(self.connection.last_payload());
                if error.is_ok_and(|e| ROLLED_BACK.contains(&e.code)) {
                    self.status.remove(StatusFlags::IN_TRANS);
                }
                self.status_is_old = self.status.contains(StatusFlags::IN_TRANS);
            }
            _ => {}
        }
        Ok(step)
    }

    /// Takes over the status in an answer.
    #[inline]
    fn note(&mut self, status: StatusFlags) {
        let begins = status.contains(StatusFlags::IN_TRANS) && !self.is_in_transaction();
        if self.keeps_snapshots && begins {
            self.began = match self.may_be_in_transaction {
                true => 0,
                false => self.asked_at,
            };
        }
        // what a statement says of a cursor is not about the ones behind it
        self.status = status - StatusFlags::CURSOR_EXISTS - StatusFlags::LAST_ROW_SENT;
        self.status_is_old = false;
    }

    /// Asks whether a transaction is still open if the last answer was an error: there are errors
    /// that end it under some settings only, and none tells.
    pub fn renew_status(&mut self) -> Outcome<()> {
        match self.status_is_old {
            true => self.run(b"DO 0").map(|_| ()),
            false => Ok(()),
        }
    }

    /// Whether a transaction is open.
    pub fn is_in_transaction(&self) -> bool {
        self.status.contains(StatusFlags::IN_TRANS)
    }

    /// The packet that the last step read.
    pub fn payload(&self) -> &[u8] {
        self.connection.last_payload()
    }

    /// The server's error in the last packet.
    pub fn error(&self) -> Failure {
        match ErrPacket::decode(self.payload()) {
            Ok(e) => Failure::Server {
                code: e.code,
                state: e.sqlstate.unwrap_or(*b"HY000"),
                message: e.message.into_owned(),
            },
            Err(e) => Failure::Backend(e),
        }
    }

    /// Reads what is left of the present answer and throws it away.
    fn drain(&mut self) -> Outcome<()> {
        while !self.tracker.is_complete() {
            match self.read_step()? {
                Step::LocalInfileRequest => {
                    // an empty packet: no file
                    self.connection
                        .write_payload(&[])
                        .map_err(Failure::Backend)?;
                    self.flush()?;
                }
                _ => continue,
            }
        }
        Ok(())
    }

    /// Runs a statement without rows. The server's error becomes `Err(Failure::Server)`.
    pub fn run(&mut self, sql: &[u8]) -> Outcome<Done> {
        let question = self.put_query(sql)?;
        self.flush()?;
        self.read_ok(question)
    }

    /// Reads an answer without rows. The server's error becomes `Err(Failure::Server)`.
    pub fn read_ok(&mut self, question: Question) -> Outcome<Done> {
        self.begin(question)?;
        let step = self.step()?;
        let done = match step {
            Step::Ok { .. } => {
                let ok = OkPacket::decode(self.payload(), self.capabilities)
                    .map_err(Failure::Backend)?;
                let has_written = ok.affected_rows > 0;
                let done = Done {
                    affected_rows: ok.affected_rows,
                    last_insert_id: ok.last_insert_id,
                    warnings: ok.warnings,
                    info: ok.info.to_vec(),
                };
                self.has_written |= has_written;
                done
            }
            Step::Err => return Err(self.error()),
            _ => Done::default(),
        };
        self.drain()?;
        Ok(done)
    }

    /// Reads an answer with text rows.
    pub fn read_rows(&mut self, question: Question) -> Outcome<Rows> {
        self.begin(question)?;
        let mut rows = Vec::new();
        let mut held = Held::default();
        // what the proxy asks calls no function of anybody's
        let silent_end = self.silent_end;
        while !self.tracker.is_complete() {
            match self.step()? {
                Step::Err => return Err(self.error()),
                Step::Row => {
                    held.add(self.payload())?;
                    rows.push(text_cells(self.payload())?);
                }
                _ => {}
            }
        }
        self.silent_end = silent_end;
        Ok(rows)
    }

    /// Reads the answer to a question for one row: its column definitions, and its cells.
    pub fn one_row(&mut self, question: Question) -> Outcome<(Vec<Vec<u8>>, Cells)> {
        let mut definitions = Vec::new();
        let mut cells = Vec::new();
        self.begin(question)?;
        while !self.tracker.is_complete() {
            match self.step()? {
                Step::Err => return Err(self.error()),
                Step::ColumnDef => definitions.push(self.payload().to_vec()),
                Step::Row => cells = text_cells(self.payload())?,
                _ => {}
            }
        }
        Ok((definitions, cells))
    }

    /// Runs a statement and reads its rows. The session's `sql_select_limit`, which cuts `SHOW` as
    /// well, is lifted for it.
    pub fn rows(&mut self, sql: &[u8]) -> Outcome<Rows> {
        self.rows_and_count(sql).map(|(rows, _)| rows)
    }

    /// The same, with the number of warnings that it has raised. `SHOW WARNINGS` may be about
    /// another statement then.
    pub fn rows_and_count(&mut self, sql: &[u8]) -> Outcome<(Rows, u16)> {
        if self.bounds_joins && self.bounds_selects && lists(sql) {
            // no hint is of SHOW
            self.run_to_its_end(b"SET SESSION sql_big_selects = 1")?;
            self.bounds_joins = false;
            let done = self.rows_and_count(sql);
            self.bounds_joins = true;
            return match done {
                Err(failure) if failure.is_fatal() => Err(failure),
                done => {
                    self.run_to_its_end(b"SET SESSION sql_big_selects = 0")?;
                    done
                }
            };
        }
        // warnings are not cut, and another statement would clear them
        let whole = sql.starts_with(b"SHOW WARNINGS") || sql.ends_with(ALL_ROWS.as_bytes());
        let limit = match whole {
            true => None,
            false => self.select_limit.clone(),
        };
        let Some(limit) = limit else {
            let question = self.put_select(sql)?;
            self.flush()?;
            let rows = self.read_rows(question)?;
            return Ok((rows, self.warnings_at_end()?));
        };
        self.set_select_limit(&u64::MAX.to_string())?;
        let question = self.put_select(sql)?;
        self.flush()?;
        let rows = self.read_rows(question);
        let done = rows.and_then(|rows| Ok((rows, self.warnings_at_end()?)));
        match &done {
            Err(failure) if failure.is_fatal() => {}
            _ => self.set_select_limit(&limit)?,
        }
        done
    }

    /// Runs a `SELECT` without a LIMIT. Returns its rows and how many warnings it has raised.
    /// `SHOW WARNINGS` is about it then: no other statement is needed to lift `sql_select_limit`.
    pub fn rows_and_warnings(&mut self, select: &str) -> Outcome<(Rows, u16)> {
        self.rows_and_count([select, ALL_ROWS].concat().as_bytes())
    }

    pub fn set_select_limit(&mut self, limit: &str) -> Outcome<()> {
        let sql = format!("SET SESSION sql_select_limit = {limit}");
        self.run_to_its_end(sql.as_bytes()).map(|_| ())
    }

    /// The warnings that the end of a result, the last packet, counts.
    pub fn warnings_at_end(&self) -> Outcome<u16> {
        let payload = self.payload();
        let deprecated = self.capabilities.contains(Capabilities::DEPRECATE_EOF);
        let has_no_rows = payload.first() == Some(&0);
        if has_no_rows || deprecated && payload.len() >= 7 {
            return OkPacket::warnings_of(payload).map_err(Failure::Backend);
        }
        let eof = EofPacket::decode(payload).map_err(Failure::Backend)?;
        Ok(eof.warnings)
    }

    /// The collation that string columns of results are announced with. Warnings, `ROW_COUNT()` and
    /// `FOUND_ROWS()` stay what they are.
    pub fn announced_collation(&mut self) -> Outcome<u16> {
        let collations = self.columns_of("SELECT 'a'", |column| column.charset)?;
        let none = WireError::Malformed("a preparation without columns");
        collations.last().copied().ok_or(Failure::Backend(none))
    }

    /// What the server says of the columns that a query would have. It is prepared and not run.
    fn columns_of<T>(
        &mut self,
        sql: &str,
        of: impl Fn(&ColumnDefinition<'_>) -> T,
    ) -> Outcome<Vec<T>> {
        let mut command = vec![Command::StmtPrepare.to_byte()];
        command.extend_from_slice(sql.as_bytes());
        let question = self.put_command(&command)?;
        self.flush()?;
        self.begin(question)?;
        let (mut statement, mut columns) = (None, Vec::new());
        while !self.tracker.is_complete() {
            match self.step()? {
                Step::Err => return Err(self.error()),
                Step::PrepareOk(ok) => statement = Some(ok.statement_id),
                Step::ColumnDef => {
                    let definition = ColumnDefinition::decode(self.payload(), self.form);
                    columns.push(of(&definition.map_err(Failure::Backend)?));
                }
                _ => {}
            }
        }
        if let Some(id) = statement {
            let mut close = Vec::new();
            encode_statement_command(&mut close, Command::StmtClose, id);
            self.put_silent(&close)?;
        }
        Ok(columns)
    }

    /// Whether look-ups show definitions as they were when the transaction began.
    pub fn sees_the_past(&self) -> bool {
        self.keeps_snapshots && (self.is_in_transaction() || self.may_be_in_transaction)
    }

    /// Whether questions that follow each other show what there was at the time of the first one:
    /// without autocommit it begins a transaction, and MySQL answers the others in its snapshot.
    pub fn questions_share_a_past(&self) -> bool {
        self.keeps_snapshots && !self.status.contains(StatusFlags::AUTOCOMMIT)
    }

    /// Whether what look-ups show may be older than a second.
    pub fn sees_an_old_past(&self) -> bool {
        let is_new = !self.may_be_in_transaction && now().saturating_sub(self.began) <= RECHECK;
        self.sees_the_past() && !is_new
    }

    /// Definitions as they are now, whatever the transaction sees, in the order of the names. The
    /// server is asked for all of them at once.
    pub fn definitions(&mut self, names: &[TableName]) -> Outcome<Vec<Definition>> {
        /// Views behind views.
        const LEVELS: usize = 4;
        let mut shown = self.shown(names)?;
        // of a view, what is behind it counts
        let mut asked: Vec<(usize, TableName)> = Vec::new();
        for (at, (name, shown)) in names.iter().zip(&mut shown).enumerate() {
            if let Definition::Table(text) = shown
                && !is_table(text)
            {
                let read = view_text::tables(text, &name.database);
                asked.extend(read.into_iter().map(|table| (at, table)));
                *shown = Definition::View(ViewText {
                    text: std::mem::take(text),
                    tables: Vec::new(),
                    views: Vec::new(),
                    is_unclear: false,
                });
            }
        }
        for _ in 0..LEVELS {
            if asked.is_empty() {
                break;
            }
            let tables: Vec<TableName> = asked.iter().map(|(_, table)| table.clone()).collect();
            let found = self.shown(&tables)?;
            for ((at, table), found) in std::mem::take(&mut asked).into_iter().zip(found) {
                let Some(Definition::View(view)) = shown.get_mut(at) else {
                    continue;
                };
                match found {
                    Definition::Table(text) if is_table(&text) => view.tables.push(text),
                    Definition::Table(text) => {
                        let read = view_text::tables(&text, &table.database);
                        asked.extend(read.into_iter().map(|table| (at, table)));
                        view.views.push(text);
                    }
                    _ => view.is_unclear = true,
                }
            }
        }
        for (at, _) in asked {
            if let Some(Definition::View(view)) = shown.get_mut(at) {
                view.is_unclear = true;
            }
        }
        Ok(shown)
    }

    /// The same in a transaction that sees the past. What the server shows nothing of may be used
    /// all the same: a view without the right SHOW VIEW, a table by privileges on columns. Of that,
    /// and of a view that reads what is not shown, the columns count that it has now.
    pub fn present_definitions(&mut self, names: &[TableName]) -> Outcome<Vec<Definition>> {
        let shown = self.definitions(names)?;
        let shown = names.iter().zip(shown).map(|(name, shown)| match shown {
            Definition::Hidden => self.present_columns(name),
            Definition::View(view) if view.is_unclear => self.present_columns(name),
            Definition::Unsaid(failure) => Err(failure),
            shown => Ok(shown),
        });
        shown.collect()
    }

    /// A snapshot is not made by that.
    fn present_columns(&mut self, TableName { database, name }: &TableName) -> Outcome<Definition> {
        let (database, name) = (identifier(database), identifier(name));
        let sql = format!("SELECT * FROM {database}.{name}");
        let of = |column: &ColumnDefinition<'_>| String::from_utf8_lossy(&column.name).into_owned();
        match self.columns_of(&sql, of).map(Definition::Columns) {
            Err(failure) => match not_shown(failure)? {
                Definition::Unsaid(failure) => Err(failure),
                shown => Ok(shown),
            },
            columns => columns,
        }
    }

    /// Whether the session has temporary tables of these names; `None` where it does not show what
    /// the name is. `ahead` is a statement of the proxy's own that goes out in front of that.
    pub fn are_temporary(
        &mut self,
        names: &[TableName],
        ahead: Option<&str>,
    ) -> Outcome<Vec<Option<bool>>> {
        let is_one = |shown| match shown {
            Definition::Table(text) | Definition::View(ViewText { text, .. }) => {
                Ok(Some(text.starts_with("CREATE TEMPORARY ")))
            }
            Definition::Absent => Ok(Some(false)),
            Definition::Hidden | Definition::Columns(_) => Ok(None),
            Definition::Unsaid(failure) => Err(failure),
        };
        // what the proxy asks runs no program, and what it sets is nothing that it hears of
        let (failed, told_state) = (self.failed, self.told_state);
        let ahead = match ahead {
            Some(sql) => Some(self.put_query(sql.as_bytes())?),
            None => None,
        };
        let asked = self.put_shown(names)?;
        self.flush()?;
        let mut done = Ok(());
        if let Some(question) = ahead {
            let known = self.changes.len();
            done = match self.read_ok(question) {
                Err(failure) if failure.is_fatal() => return Err(failure),
                // an error of the server's is said when the other answers have been read
                answered => answered.map(drop),
            };
            // the server may tell of a statement before it as well
            let told = self.changes.split_off(known);
            let all = SessionChanges(&told).flatten();
            for change in all.filter(|change| !is_of_tracking(change)) {
                change.encode(&mut self.changes);
            }
        }
        let shown = self.read_shown(asked)?;
        done?;
        (self.failed, self.told_state) = (failed, told_state);
        shown.into_iter().map(is_one).collect()
    }

    fn shown(&mut self, names: &[TableName]) -> Outcome<Vec<Definition>> {
        let asked = self.put_shown(names)?;
        self.flush()?;
        self.read_shown(asked)
    }

    fn put_shown(&mut self, names: &[TableName]) -> Outcome<Vec<Question>> {
        let mut questions = Vec::with_capacity(names.len());
        for TableName { database, name } in names {
            let (database, name) = (identifier(database), identifier(name));
            let sql = format!("SHOW CREATE TABLE {database}.{name}");
            questions.push(self.put_query(sql.as_bytes())?);
        }
        Ok(questions)
    }

    fn read_shown(&mut self, questions: Vec<Question>) -> Outcome<Vec<Definition>> {
        let mut shown = Vec::with_capacity(questions.len());
        for question in questions {
            shown.push(match self.read_rows(question) {
                Ok(rows) => {
                    let mut cells = rows.into_iter().next().unwrap_or_default().into_iter();
                    let text = cells.nth(1).flatten().unwrap_or_default();
                    Definition::Table(String::from_utf8_lossy(&text).into_owned())
                }
                Err(failure) => not_shown(failure)?,
            });
        }
        Ok(shown)
    }

    /// Whether a transaction is open, or would be by the next statement.
    pub fn in_transaction(&self) -> bool {
        self.status.contains(StatusFlags::IN_TRANS)
            || !self.status.contains(StatusFlags::AUTOCOMMIT)
    }
}

/// What an error in the place of a definition says of the table. It is one of the question where
/// somebody has ended that.
fn not_shown(failure: Failure) -> Outcome<Definition> {
    match failure {
        Failure::Server { code, .. } if IS_ABSENT.contains(&code) => Ok(Definition::Absent),
        Failure::Server { code, .. } if IS_HIDDEN.contains(&code) => Ok(Definition::Hidden),
        failure if failure.ends_transaction() || failure.is_interrupted() => Err(failure),
        failure @ Failure::Server { .. } => Ok(Definition::Unsaid(failure)),
        failure => Err(failure),
    }
}

/// Notes what a server tells of a transaction that is committed: before the client hears of it.
#[cold]
fn note_written(written: &Written, changes: SessionChanges) {
    for change in changes {
        match change {
            Ok(SessionChange::Gtids { ids, .. }) => written.note(ids),
            Ok(SessionChange::SystemVariable { name, value }) if name == b"last_gtid" => {
                // none yet
                if !value.is_empty() {
                    written.note(value);
                }
            }
            Ok(SessionChange::SystemVariable { name, .. }) if name == b"session_track_gtids" => {
                written.unclear();
            }
            Ok(_) => {}
            Err(_) => written.unclear(),
        }
    }
}

/// Whether it tells what the server is to tell.
fn is_of_tracking(change: &SessionChange) -> bool {
    matches!(change, SessionChange::SystemVariable { name, .. } if name.starts_with(b"session_track_"))
}

/// Whether something was set or made in the session, or what has changed cannot be read.
fn tells_state(mut changes: SessionChanges) -> bool {
    changes.any(|change| matches!(change, Ok(SessionChange::State(_)) | Err(_)))
}

fn is_table(text: &str) -> bool {
    text.starts_with("CREATE TABLE") || text.starts_with("CREATE TEMPORARY TABLE")
}

/// Whether it is one of the `SHOW` that servers make a query of, which `max_join_size` bounds.
fn lists(sql: &[u8]) -> bool {
    const OTHERS: [&[u8]; 3] = [b"WARNINGS", b"ERRORS", b"CREATE "];
    let shown = sql.strip_prefix(b"SHOW ");
    shown.is_some_and(|shown| !OTHERS.iter().any(|other| shown.starts_with(other)))
}

/// How much of an answer is kept in memory before it is used. A server that says more than any
/// server does is not believed.
#[derive(Default)]
pub(crate) struct Held(usize);

impl Held {
    /// The names of a million tables take less.
    const MAX_BYTES: usize = 256 << 20;

    /// One more packet is kept.
    pub fn add(&mut self, packet: &[u8]) -> Outcome<()> {
        self.0 += packet.len() + size_of::<Vec<u8>>();
        match self.0 > Self::MAX_BYTES {
            true => Err(Failure::OutOfStep("an answer without end")),
            false => Ok(()),
        }
    }
}

/// What an OK packet said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub warnings: u16,
    pub info: Vec<u8>,
}

/// The cells of a text row.
fn text_cells(payload: &[u8]) -> Outcome<Cells> {
    TextRow::new(payload)
        .map(|cell| cell.map(|c| c.map(<[u8]>::to_vec)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Failure::Backend)
}

/// The number of rows in an OK packet.
fn affected_rows(packet: &[u8]) -> i64 {
    let mut reader = onionskin_wire::Reader::new(packet.get(1..).unwrap_or_default());
    let rows = reader.lenenc_int().unwrap_or_default();
    i64::try_from(rows).unwrap_or(-1)
}
