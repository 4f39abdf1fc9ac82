//! Tier 2 for `UPDATE`: rows are read under locks, new values computed, what changed written.
//!
//! A row that the statement names by its primary key is read without a lock and written on the
//! condition that its cells are still the same: equal cells hold equal values. That is two
//! statements instead of four, and one if the row's cells are still remembered from the last update
//! ([`CellMemory`]). If the row has changed in between, or there may be several, rows are locked.
//!
//! Outside of a transaction of the client's the three steps are then one of ours. Statements that
//! do not depend on an answer travel together: `BEGIN` with the `SELECT … FOR UPDATE`, a single
//! `UPDATE` with the `COMMIT` ([`Session::run_and_commit`]), so that it costs two round trips. A
//! failed step leaves nothing behind: the transaction is rolled back, or what the statement did up
//! to a savepoint.

mod key;
mod memory;
mod read;
mod write;

use onionskin_crypt::TenantId;
use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{Piece, RowUpdate, Text, errors};
use onionskin_value::Family;

pub(crate) use self::key::{key_kind, key_literal};
pub(crate) use self::memory::CellMemory;
use self::read::Payload;
pub(crate) use self::write::physical_columns;
use crate::bind::{Binder, PlainParameters, Values};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::exchange::{ALL_ROWS, Done, Question, Rows};
use crate::part::killed;
use crate::session::{Session, hide_tokens};

/// Rows written by one statement.
const CHUNK: usize = 64;
/// Ends a transaction of ours, whatever `completion_type` says.
pub(crate) const COMMIT: &[u8] = b"COMMIT AND NO CHAIN NO RELEASE";

/// A row to be written.
#[derive(Default)]
struct Row {
    /// `key = literal AND …`
    condition: Vec<u8>,
    /// The sealed cells that it was read with, as in a text row; only of a single row.
    cells: Vec<u8>,
    /// For each assignment the new value, or nothing when it stays.
    values: Vec<Option<Payload>>,
    /// Whose it is, where its cells have keys of tenants.
    tenant: Option<TenantId>,
}

impl Row {
    /// Whether the statement may change the row.
    fn changes(&self, update: &RowUpdate) -> bool {
        !update.plain.is_empty() || self.values.iter().any(Option::is_some)
    }

    /// Bytes that it takes while it waits to be written.
    fn size(&self) -> usize {
        let values = self.values.iter().flatten().flatten();
        self.condition.len() + self.cells.len() + values.map(Vec::len).sum::<usize>() + 64
    }
}

/// What is written to rows, and how.
struct Written<'a> {
    keyed: &'a KeyedPlan,
    update: &'a RowUpdate,
    values: Values<'a>,
    memory_key: Option<u64>,
    /// There is one statement, and the COMMIT goes with it.
    commits: bool,
}

impl Session {
    /// Runs a tier 2 update and answers the client.
    pub fn row_update(
        &mut self,
        keyed: &KeyedPlan,
        update: &RowUpdate,
        values: Values,
    ) -> Outcome<()> {
        if update.single_row.is_none() {
            self.must_not_be_safe()?;
        }
        if self.state.family == Family::MySql && computes_with_text(&update.plain, values) {
            return Err(Failure::refused(
                &errors::VALUE,
                "a text as a parameter of an expression",
            ));
        }
        self.server.renew_status()?;
        let own = !self.server.in_transaction() && !self.locked_tables;
        let mut select = Vec::new();
        let indexed = self.grams_of_all(keyed, &update.select, values)?;
        let parameters = {
            let mut binder = Binder::new(keyed, &self.state, values, &mut self.buffers);
            binder.indexed = indexed;
            binder.plain_parameters = PlainParameters::Kept(Vec::new());
            binder.checks_moments = true;
            binder.must_all_be_held(&update.plain)?;
            binder.text(&update.select, 1, &mut select)?;
            binder.take_parameters()
        };
        let mut memory_key = None;
        // a conditional write does not repeat a test that only the proxy can make, nor one with
        // parameters
        let repeatable =
            update.filter.is_none() && parameters.is_empty() && !self.has_next_transaction();
        let alone = update.single_row.as_ref().filter(|_| repeatable);
        let mut asks_time = self.asks_time_with_rows(keyed);
        if asks_time && self.has_next_transaction() {
            // what was said of the next transaction is not for a question of ours
            asks_time = false;
            self.tell_time_now()?;
        }
        if let (Some(condition), Some(assign)) = (alone, update.assign.first()) {
            let table = &keyed.plan.columns[assign.column].table;
            let table = table.table_id.as_ref().map_or(&[][..], |id| id);
            let key = self.shared.cell_memory.key(table, &select);
            memory_key = Some(key);
            if asks_time && self.shared.cell_memory.remembers(key) {
                asks_time = false;
                self.tell_time_now()?;
            }
            let row = self.remembered_row(keyed, update, values, key);
            if let Some(row) = row
                && let Some(done) =
                    self.write_if_unchanged(keyed, update, values, condition, &row, key)?
            {
                return self.write_done(&done);
            }
            // whose SELECT sql_select_limit would cut
            if own && self.server.select_limit.is_none() {
                let asks_time = std::mem::take(&mut asks_time);
                let question = self.read_one(&select, asks_time)?;
                let done = self.compare_and_set(keyed, update, values, condition, question, key)?;
                if let Some(done) = done {
                    return self.write_done(&done);
                }
            }
        }
        let question = self.lock_rows(select, &parameters, own, asks_time)?;
        let done = self.read_and_write(question, keyed, update, values, own, memory_key);
        match done {
            Ok(done) => self.write_done(&done),
            Err(failure) => Err(self.undo(failure, own)?),
        }
    }

    /// Refuses `sql_safe_updates`. With it, the server allows changes of rows that a key or a LIMIT
    /// bounds. Here rows are read first, and their changes name them by the primary key in any
    /// case.
    pub(crate) fn must_not_be_safe(&self) -> Outcome<()> {
        match self.state.safe_updates {
            false => Ok(()),
            true => Err(NotUnderstood::SafeUpdates.into()),
        }
    }

    /// Asks for one row without a lock, and for the time if it is not known yet.
    fn read_one(&mut self, select: &[u8], asks_time: bool) -> Outcome<Question> {
        let time = match asks_time {
            true => Some(self.ask_time()?),
            false => None,
        };
        let question = self.server.put_select(select)?;
        self.server.flush()?;
        if let Some(time) = time {
            self.hear_time(time)?;
        }
        Ok(question)
    }

    /// Takes one row, which was read without a lock, and writes it if it is still the same. `None`:
    /// it is not.
    fn compare_and_set(
        &mut self,
        keyed: &KeyedPlan,
        update: &RowUpdate,
        values: Values,
        condition: &Text,
        question: Question,
        memory_key: u64,
    ) -> Outcome<Option<Done>> {
        let read = self.read_rows_to_update(question, keyed, update, values);
        let (rows, found) = read.map_err(Failure::before_a_change)?;
        let of_condition = self.warnings_of_condition()?;
        match rows.as_slice() {
            [row] => self.write_if_unchanged(keyed, update, values, condition, row, memory_key),
            _ if found > 1 => Ok(None),
            _ => {
                self.check_plain(keyed, update, values)?;
                Ok(Some(self.update_done(found, 0, of_condition)))
            }
        }
    }

    /// Writes one row if it still has the cells that it was read with. `None`: it has not.
    fn write_if_unchanged(
        &mut self,
        keyed: &KeyedPlan,
        update: &RowUpdate,
        values: Values,
        condition: &Text,
        row: &Row,
        memory_key: u64,
    ) -> Outcome<Option<Done>> {
        let write = self.guarded_write(keyed, update, values, condition, row)?;
        let done = self.server.run(&write.sql)?;
        let matched = matched_rows(&done.info).unwrap_or(done.affected_rows);
        let memory = &self.shared.cell_memory;
        if matched == 0 {
            memory.forget(memory_key);
            return Ok(None);
        }
        memory.keep(memory_key, &write.cells);
        Ok(Some(self.update_done(
            1,
            changed_rows(&done),
            done.warnings,
        )))
    }

    fn update_done(&self, found: u64, changed: u64, warnings: u16) -> Done {
        let affected_rows = if self.state.found_rows {
            found
        } else {
            changed
        };
        let info = format!("Rows matched: {found}  Changed: {changed}  Warnings: {warnings}");
        Done {
            affected_rows,
            last_insert_id: 0,
            warnings,
            info: info.into_bytes(),
        }
    }

    fn read_and_write(
        &mut self,
        question: Question,
        keyed: &KeyedPlan,
        update: &RowUpdate,
        values: Values,
        own: bool,
        memory_key: Option<u64>,
    ) -> Outcome<Done> {
        let read = self.read_rows_to_update(question, keyed, update, values);
        let (rows, found) = read.map_err(Failure::before_a_change)?;
        let changed;
        let of_condition = self.warnings_of_condition()?;
        if of_condition > 0 {
            self.keep_warnings(of_condition)?;
        }
        if rows.is_empty() {
            changed = 0;
            self.check_plain(keyed, update, values)?;
            if own {
                self.server.run(COMMIT)?;
            }
        } else {
            let chunk = self.chunk(CHUNK, rows.len(), own)?;
            let chunks: Vec<&[Row]> = rows.chunks(chunk).collect();
            // what earlier chunks did must not be committed with a last one that fails
            let commits = own && chunks.len() == 1;
            let written = Written {
                keyed,
                update,
                values,
                memory_key,
                commits,
            };
            changed = match !own && chunks.len() > 1 {
                true => self.in_part(|session| session.write_all(&written, &chunks))?,
                false => self.write_all(&written, &chunks)?,
            };
            if own && !commits {
                self.server.run(COMMIT)?;
            }
        }
        Ok(self.update_done(found, changed, 0))
    }

    /// Writes the rows, a statement for each chunk of them. Returns how many have changed.
    fn write_all(&mut self, written: &Written, chunks: &[&[Row]]) -> Outcome<u64> {
        let Written {
            keyed,
            update,
            values,
            memory_key,
            commits,
        } = *written;
        let mut changed = 0;
        for chunk in chunks {
            let write = self.locked_write(keyed, update, values, chunk)?;
            let (done, list) = match commits {
                true => self.run_and_commit(&write.sql)?,
                false => (self.server.run(&write.sql), Rows::new()),
            };
            match done {
                // the rows are locked: all are there, unless the statement was killed early
                Ok(done) if matched_rows(&done.info).is_some_and(|n| n < chunk.len() as u64) => {
                    return Err(killed());
                }
                Ok(done) => {
                    changed += changed_rows(&done);
                    self.keep_warnings_of(&done, list, commits)?;
                    if let (Some(key), [_]) = (memory_key, chunk) {
                        self.shared.cell_memory.keep(key, &write.cells);
                    }
                }
                Err(failure) => {
                    if chunk.len() > 1 && !self.diagnostics.warnings.is_empty() {
                        // of which rows is not known
                        self.current.unclear = true;
                    } else if !commits {
                        self.keep_list_of(&failure, keyed)?;
                    } else if !update.plain.is_empty() {
                        self.keep_this_list(list, &failure, keyed);
                    }
                    return Err(failure);
                }
            }
        }
        Ok(changed)
    }

    /// Runs the one statement that writes in a transaction of ours, and commits, in one round trip.
    /// If it fails it has changed nothing, and there is nothing to commit. What it warns of is read
    /// in between, because behind the COMMIT the list is another one's.
    pub(crate) fn run_and_commit(&mut self, sql: &[u8]) -> Outcome<(Outcome<Done>, Rows)> {
        let question = self.server.put_query(sql)?;
        let listed = self.server.put_query(b"SHOW WARNINGS")?;
        let committed = self.server.put_query(COMMIT)?;
        self.server.flush()?;
        let done = match self.server.read_ok(question) {
            Err(failure) if failure.is_fatal() => return Err(failure),
            done => done,
        };
        let mut ended = None;
        let list = match self.server.read_rows(listed) {
            // a cluster says with whichever statement comes next that it has ended the transaction
            // for another node's, and then there is nothing to commit
            Err(failure) if failure.ends_transaction() => {
                ended = Some(failure);
                Rows::new()
            }
            // whoever ends the session's statement now comes too late
            Err(Failure::Server { .. }) => Rows::new(),
            list => list?,
        };
        let committed = self.server.read_ok(committed);
        if done.is_ok() {
            committed?;
        }
        match ended {
            Some(failure) if done.is_ok() => Ok((Err(failure), list)),
            _ => Ok((done, list)),
        }
    }

    /// Keeps what a statement has warned of. `is_read`: this is its list.
    pub(crate) fn keep_warnings_of(
        &mut self,
        done: &Done,
        mut list: Rows,
        is_read: bool,
    ) -> Outcome<()> {
        match (done.warnings, is_read) {
            (0, _) => Ok(()),
            (count, false) => self.keep_warnings(count),
            (count, true) => {
                hide_tokens(&mut list);
                self.diagnostics.keep(&list, count);
                Ok(())
            }
        }
    }

    /// How many rows one statement writes: all of them if several statements would not be one
    /// transaction, or could not be taken back as one.
    pub(crate) fn chunk(&mut self, usual: usize, rows: usize, own: bool) -> Outcome<usize> {
        let in_parts = match own || rows <= usual {
            true => true,
            false => self.server.in_transaction() && !self.savepoints_hide()?,
        };
        Ok(if in_parts { usual } else { rows })
    }

    /// Gives a LIMIT to a `SELECT` that is not the client's, if the session has a
    /// `sql_select_limit`: that must not cut its rows. A statement that may have a LIMIT already is
    /// refused.
    fn with_limit(&self, select: &mut Vec<u8>) -> Outcome<()> {
        let Some(limit) = &self.server.select_limit else {
            return Ok(());
        };
        // in a name or a text, perhaps
        if select
            .windows(5)
            .any(|word| word.eq_ignore_ascii_case(b"limit"))
        {
            return Err(NotUnderstood::SelectLimit(limit.clone()).into());
        }
        select.extend_from_slice(ALL_ROWS.as_bytes());
        Ok(())
    }

    /// Sends `SELECT … FOR UPDATE`, in a transaction of ours if `own`, and asks for the time before
    /// it if `asks_time`. Returns the question whose answer has the rows. If there is no
    /// transaction, nobody reads that answer.
    pub(crate) fn lock_rows(
        &mut self,
        mut select: Vec<u8>,
        parameters: &[Vec<u8>],
        own: bool,
        asks_time: bool,
    ) -> Outcome<Question> {
        self.with_limit(&mut select)?;
        select.extend_from_slice(b" FOR UPDATE");
        self.say_next_transaction()?;
        let time = match asks_time {
            true => Some(self.ask_time()?),
            false => None,
        };
        let begun = match own {
            true => Some(self.server.put_query(b"BEGIN")?),
            false => None,
        };
        let select = self.server.unbounded(&select).concat();
        let asked = self.put_with_parameters(&select, parameters)?;
        self.server.flush()?;
        if let Some(time) = time
            && let Err(failure) = self.hear_time(time)
        {
            return Err(self.undo(failure, own)?);
        }
        if let Some(begun) = begun
            && let Err(failure) = self.server.read_ok(begun)
        {
            self.current.interfered = true;
            return Err(failure);
        }
        match self.executed(asked) {
            Err(failure) => Err(self.undo(failure, own)?),
            executed => executed,
        }
    }

    /// Rolls a transaction of ours back after a failure, which is returned for the client.
    pub(crate) fn undo(&mut self, failure: Failure, own: bool) -> Outcome<Failure> {
        if own && !failure.is_fatal() {
            self.roll_back_own()?;
        }
        self.current.interfered = true;
        Ok(failure)
    }

    /// Runs the assignments of plain columns though no row will be written: MariaDB raises an error
    /// of `SET a = DEFAULT` even then.
    fn check_plain(
        &mut self,
        keyed: &KeyedPlan,
        update: &RowUpdate,
        values: Values,
    ) -> Outcome<()> {
        let mentions_default = update.plain.iter().any(|piece| match piece {
            Piece::Sql(sql) => sql.to_ascii_lowercase().windows(7).any(|w| w == b"default"),
            _ => false,
        });
        if !mentions_default || self.state.family != Family::MariaDb {
            return Ok(());
        }
        let mut sql = format!("UPDATE {} SET ", update.target).into_bytes();
        Binder::new(keyed, &self.state, values, &mut self.buffers).text(
            &update.plain,
            1,
            &mut sql,
        )?;
        sql.extend_from_slice(b" WHERE FALSE");
        self.server.run(&sql).map(|_| ())
    }

    /// How many warnings reading the rows has raised. The condition raises them in the client's
    /// statement. Under strict mode they are errors there, or not: that depends on how the server
    /// goes about it.
    pub(crate) fn warnings_of_condition(&self) -> Outcome<u16> {
        let count = self.server.warnings_at_end()?;
        if count > 0 && self.state.sql_mode.is_strict() {
            let about = "a condition with values that the server truncates";
            return Err(Failure::refused(&errors::VALUE, about));
        }
        Ok(count)
    }

    /// Keeps the server's warnings of a statement that is not the client's last.
    pub(crate) fn keep_warnings(&mut self, count: u16) -> Outcome<()> {
        let mut rows = match self.server.rows(b"SHOW WARNINGS") {
            // what they are about is done
            Err(failure) if failure.is_interrupted() => {
                self.server.settle()?;
                self.diagnostics.is_lost = true;
                return Ok(());
            }
            rows => rows?,
        };
        hide_tokens(&mut rows);
        self.diagnostics.keep(&rows, count);
        Ok(())
    }
}

/// Whether a parameter that is a text stands in an expression, `a = a + ?`, and not by itself,
/// `a = ?`. MySQL gives such a parameter the type of what it is computed with. In a text it would
/// be a floating-point number.
fn computes_with_text(assignments: &Text, values: Values) -> bool {
    let sql = |piece: Option<&Piece>| match piece {
        Some(Piece::Sql(sql)) => sql.trim_ascii().to_vec(),
        _ => Vec::new(),
    };
    (0..assignments.len()).any(|at| {
        let Piece::Literal(index) = assignments[at] else {
            return false;
        };
        let before = at.checked_sub(1).and_then(|i| assignments.get(i));
        let behind = sql(assignments.get(at + 1));
        let alone = sql(before).ends_with(b"=") && (behind.is_empty() || behind.starts_with(b","));
        !alone && values.is_text_parameter(index)
    })
}

/// `Rows matched: 1  Changed: 0  Warnings: 0`
pub(crate) fn matched_rows(info: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(info).ok()?;
    text.strip_prefix("Rows matched: ")?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// The affected rows that are not only found: `Rows matched: 1  Changed: 0  Warnings: 0`.
pub(crate) fn changed_rows(done: &Done) -> u64 {
    let words = String::from_utf8_lossy(&done.info);
    let mut words = words.split_whitespace().skip_while(|w| *w != "Changed:");
    words
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(done.affected_rows)
}
