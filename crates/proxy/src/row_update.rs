//! Tier 2 for `UPDATE`: rows are read under locks, new values computed, what changed written.
//!
//! A row that the statement names by its primary key is read without a lock and written on the
//! condition that it is still the same: a sealed cell never comes back once it was replaced, so
//! equal bytes mean an untouched value. That is two statements instead of four. If the row has
//! changed in between, or there may be several, rows are locked.
//!
//! Outside of a transaction of the client's the three steps are then one of ours. Statements that do
//! not depend on an answer travel together: `BEGIN` with the `SELECT … FOR UPDATE`, the last
//! `UPDATE` with the `COMMIT`, so that it costs two round trips. A failed step leaves nothing
//! behind: the transaction is rolled back, or what the statement did up to a savepoint.

use onionskin_plan::{NewValue, Piece, Purpose, RowUpdate, Slot, Source, errors};
use onionskin_value::{Charset, Context, Family, Operator, Stored, add_sub};
use onionskin_wire::messages::{ColumnDefinition, Command};
use onionskin_wire::rows::TextRow;
use onionskin_wire::{ColumnType, Step};

use crate::bind::{Binder, Filled, Values, is_early, put_hex};
use crate::catalog::Prepared;
use crate::error::{Failure, Outcome};
use crate::exchange::Done;
use crate::open::{self};
use crate::session::Session;

/// Rows written by one statement.
const CHUNK: usize = 64;
/// Bytes of rows kept between reading and writing.
const BOUND: usize = 64 << 20;

/// A row to be written.
struct Row {
    /// `key = literal AND …`
    condition: Vec<u8>,
    /// `cell <=> x'…' AND …`: the cells are those that were read.
    unchanged: Vec<u8>,
    /// For each assignment: the new payload (`None` is NULL), or nothing when it stays.
    values: Vec<Option<Option<Vec<u8>>>>,
}

impl Session {
    /// Runs a tier 2 update and answers the client.
    pub fn row_update(
        &mut self,
        prepared: &Prepared,
        update: &RowUpdate,
        values: Values,
    ) -> Outcome<()> {
        let own = !self.server.in_transaction() && !self.locked_tables;
        let mut select = Vec::new();
        {
            let mut binder = Binder::new(prepared, &self.state, values, &mut self.scratch);
            binder.text(&update.select, 1, &mut select)?;
        }
        if own
            && update.single_row.is_some()
            && let Some(done) = self.compare_and_set(prepared, update, values, &select)?
        {
            return self.write_done(&done);
        }
        select.extend_from_slice(b" FOR UPDATE");
        if own {
            self.server.put_query(b"BEGIN")?;
        }
        self.server.put_query(&select)?;
        self.server.flush()?;
        if own {
            self.server.read_ok()?;
        }
        let done = self.read_and_write(prepared, update, values, own);
        match done {
            Ok(done) => self.write_done(&done),
            Err(failure) => {
                if own && !failure.is_fatal() {
                    self.server.drain()?;
                    self.server.put_query(b"ROLLBACK")?;
                    self.server.flush()?;
                    self.server.read_ok()?;
                }
                self.statements.interfered = true;
                Err(failure)
            }
        }
    }

    /// Reads one row without a lock and writes it if it is still the same. `None`: it is not.
    fn compare_and_set(
        &mut self,
        prepared: &Prepared,
        update: &RowUpdate,
        values: Values,
        select: &[u8],
    ) -> Outcome<Option<Done>> {
        self.server.put_query(select)?;
        self.server.flush()?;
        let (rows, found) = self.read_rows_to_update(prepared, update, values)?;
        let mut changed = 0;
        let mut warnings = self.warnings_of_condition()?;
        if let [row] = rows.as_slice() {
            let sql =
                self.update_text(prepared, update, values, std::slice::from_ref(row), true)?;
            self.server.put_query(&sql)?;
            self.server.flush()?;
            let done = self.server.read_ok()?;
            let matched = matched_rows(&done.info).unwrap_or(done.affected_rows);
            if matched == 0 {
                return Ok(None);
            }
            changed = changed_rows(&done);
            warnings = done.warnings;
        } else if found > 1 {
            return Ok(None);
        } else {
            self.check_plain(prepared, update, values)?;
        }
        Ok(Some(self.update_done(found, changed, warnings)))
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
        prepared: &Prepared,
        update: &RowUpdate,
        values: Values,
        own: bool,
    ) -> Outcome<Done> {
        let (rows, found) = self.read_rows_to_update(prepared, update, values)?;
        let mut changed = 0;
        let mut warnings = 0;
        let of_condition = self.warnings_of_condition()?;
        if of_condition > 0 {
            self.keep_warnings(of_condition)?;
        }
        if rows.is_empty() {
            self.check_plain(prepared, update, values)?;
            if own {
                self.server.put_query(b"COMMIT")?;
                self.server.flush()?;
                self.server.read_ok()?;
            }
        } else {
            let chunks: Vec<&[Row]> = rows.chunks(CHUNK).collect();
            let savepoint = !own && chunks.len() > 1;
            if savepoint {
                self.server.put_query(b"SAVEPOINT `onionskin$update`")?;
                self.server.flush()?;
                self.server.read_ok()?;
            }
            let last = chunks.len() - 1;
            for chunk in chunks {
                let sql = self.update_text(prepared, update, values, chunk, false)?;
                self.server.put_query(&sql)?;
                // what earlier chunks did must not be committed with a last one that fails; and
                // what the server has to say about other columns is lost behind a COMMIT
                let alone = last == 0 && update.plain.is_empty();
                let commit = own && alone;
                if commit {
                    self.server.put_query(b"COMMIT")?;
                }
                self.server.flush()?;
                let done = self.server.read_ok();
                if commit {
                    self.server.read_ok()?;
                }
                match done {
                    Ok(done) => {
                        changed += changed_rows(&done);
                        if done.warnings > 0 && !alone {
                            self.keep_warnings(done.warnings)?;
                        } else {
                            warnings += done.warnings;
                        }
                    }
                    Err(failure) => {
                        if savepoint && !failure.is_fatal() {
                            self.server.put_query(b"ROLLBACK TO `onionskin$update`")?;
                            self.server.flush()?;
                            // a deadlock has rolled everything back, the savepoint included
                            let _ = self.server.read_ok();
                        }
                        return Err(failure);
                    }
                }
            }
            if own && (last > 0 || !update.plain.is_empty()) {
                self.server.put_query(b"COMMIT")?;
                self.server.flush()?;
                self.server.read_ok()?;
            }
            if savepoint {
                self.server
                    .put_query(b"RELEASE SAVEPOINT `onionskin$update`")?;
                self.server.flush()?;
                self.server.read_ok()?;
            }
        }
        Ok(self.update_done(found, changed, warnings))
    }

    /// No row will be written. MariaDB raises an error of `SET a = DEFAULT` even then, so it gets those assignments.
    fn check_plain(
        &mut self,
        prepared: &Prepared,
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
        Binder::new(prepared, &self.state, values, &mut self.scratch).text(
            &update.plain,
            1,
            &mut sql,
        )?;
        sql.extend_from_slice(b" WHERE FALSE");
        self.server.put_query(&sql)?;
        self.server.flush()?;
        self.server.read_ok().map(|_| ())
    }

    /// How many warnings reading the rows has raised: those that the condition raises in the client's statement, which
    /// under strict mode are errors there, or not, depending on how the server goes about it.
    fn warnings_of_condition(&self) -> Outcome<u16> {
        let count = self.server.warnings_at_end()?;
        if count > 0 && self.state.sql_mode.is_strict() {
            let about = "a condition with values that the server truncates";
            return Err(Failure::refused(&errors::VALUE, about));
        }
        Ok(count)
    }

    /// Keeps the server's warnings of a statement that is not the client's last.
    fn keep_warnings(&mut self, count: u16) -> Outcome<()> {
        let rows = self.server.rows(b"SHOW WARNINGS")?;
        self.diagnostics.keep(&rows, count);
        Ok(())
    }

    /// Reads the rows and computes their new values. Returns those to be written, and how many
    /// there were.
    fn read_rows_to_update(
        &mut self,
        prepared: &Prepared,
        update: &RowUpdate,
        values: Values,
    ) -> Outcome<(Vec<Row>, u64)> {
        self.server.begin(Command::Query)?;
        let count = match self.server.step()? {
            Step::ColumnCount(count) => usize::from(count),
            Step::Err => return Err(self.server.error()),
            _ => return Err(Failure::Stale),
        };
        if count != update.key.len() + update.assign.len() {
            return Err(Failure::Stale);
        }
        let mut definitions = Vec::new();
        for _ in 0..count {
            if self.server.step()? != Step::ColumnDef {
                return Err(self.server.error());
            }
            definitions.push(self.server.payload().to_vec());
        }
        let mut items: Vec<onionskin_plan::ResultItem> = Vec::new();
        for _ in &update.key {
            items.push(onionskin_plan::ResultItem {
                open: None,
                name: None,
                computed: false,
            });
        }
        for assign in &update.assign {
            items.push(onionskin_plan::ResultItem {
                open: Some((assign.column, onionskin_plan::OpenFrom::Sealed)),
                name: None,
                computed: false,
            });
        }
        let key_kinds = definitions[..update.key.len()]
            .iter()
            .map(|p| key_kind(p))
            .collect::<Outcome<Vec<_>>>()?;
        // keys may be tokens, which are physical names by intent
        let opener =
            open::definitions_of(prepared, &items, &definitions, &self.state, false, true)?;
        let mut opener = opener.1;
        // what is wrong with a constant matters only if there is a row
        let mut constants = self.constants(prepared, update, values);
        if let Err(Failure::Value(error)) = &constants
            && is_early(error, self.state.family)
        {
            return Err(Failure::Value(error.clone()));
        }
        let of_constants = self.diagnostics.take_of_rows();
        let charset = self.state.results_charset;
        let keys = std::sync::Arc::clone(&self.shared);
        let mut rows = Vec::new();
        let mut size = 0usize;
        let mut found = 0u64;
        while !self.server.tracker.is_complete() {
            match self.server.step()? {
                Step::Row => {}
                Step::Err => return Err(self.server.error()),
                _ => continue,
            }
            found += 1;
            let constants = match &mut constants {
                Ok(constants) => constants,
                Err(_) => return Err(constants.err().unwrap_or(Failure::Stale)),
            };
            self.diagnostics.add_row(&of_constants, found);
            let mut row = Row {
                condition: Vec::new(),
                unchanged: Vec::new(),
                values: Vec::new(),
            };
            let mut old: Vec<Option<Vec<u8>>> = Vec::new();
            let key_columns = update.key.len();
            opener.cells(
                self.server.connection.last_payload(),
                &keys.config.keys,
                |n, cell| {
                    if n < key_columns {
                        if n > 0 {
                            row.condition.extend_from_slice(b" AND ");
                        }
                        row.condition.extend_from_slice(update.key[n].as_bytes());
                        row.condition.extend_from_slice(b" = ");
                        let Some(cell) = cell else {
                            return Err(Failure::refused(&errors::NEEDS_KEY, ""));
                        };
                        key_literal(cell, key_kinds[n], charset, &mut row.condition)?;
                    } else {
                        old.push(cell.map(<[u8]>::to_vec));
                    }
                    Ok(())
                },
            )?;
            if update.single_row.is_some() {
                let cells = TextRow::new(self.server.payload()).skip(key_columns);
                for (cell, assign) in cells.zip(&update.assign) {
                    let name = prepared.plan.columns[assign.column]
                        .sealed()
                        .replace('`', "``");
                    row.unchanged
                        .extend_from_slice(format!(" AND `{name}` <=> ").as_bytes());
                    match cell.map_err(Failure::Backend)? {
                        None => row.unchanged.extend_from_slice(b"NULL"),
                        Some(bytes) => put_hex(bytes, &mut row.unchanged),
                    }
                }
            }
            let mut any = !update.plain.is_empty();
            for (i, assign) in update.assign.iter().enumerate() {
                let new = match assign.value {
                    NewValue::Constant(_) => constants[i].clone(),
                    NewValue::Arithmetic { operator, operand } => self.computed(
                        prepared,
                        assign.column,
                        operator,
                        operand,
                        old[i].as_deref(),
                        values,
                        found,
                    )?,
                };
                let same = new == old[i];
                any |= !same;
                row.values.push((!same).then_some(new));
            }
            if any {
                size += row.condition.len()
                    + row
                        .values
                        .iter()
                        .flatten()
                        .flatten()
                        .map(Vec::len)
                        .sum::<usize>()
                    + 64;
                if size > BOUND {
                    return Err(Failure::refused(&errors::MEMORY, ""));
                }
                rows.push(row);
            }
        }
        Ok((rows, found))
    }

    /// The payloads of constant assignments.
    fn constants(
        &mut self,
        prepared: &Prepared,
        update: &RowUpdate,
        values: Values,
    ) -> Outcome<Vec<Option<Vec<u8>>>> {
        let mut constants = Vec::new();
        let mut binder = Binder::new(prepared, &self.state, values, &mut self.scratch);
        binder.lenient_nulls = true;
        for assign in &update.assign {
            constants.push(match assign.value {
                NewValue::Constant(source) => binder
                    .stored_payload(assign.column, source)?
                    .map(<[u8]>::to_vec),
                NewValue::Arithmetic { .. } => None,
            });
        }
        self.diagnostics.clear();
        self.diagnostics.warnings = binder.warnings;
        Ok(constants)
    }

    #[allow(clippy::too_many_arguments)] // the pieces of one row's one assignment
    fn computed(
        &mut self,
        prepared: &Prepared,
        column: usize,
        operator: u8,
        operand: Source,
        old: Option<&[u8]>,
        values: Values,
        row: u64,
    ) -> Outcome<Option<Vec<u8>>> {
        let Some(old) = old else { return Ok(None) };
        let used = &prepared.plan.columns[column];
        let Some(ty) = used.column().sql_type.as_ref() else {
            return Err(Failure::refused(&errors::INTERNAL, used.path()));
        };
        let mut scratch = Vec::new();
        let input = match operand {
            Source::Literal { index, negative } => {
                values.input(index, negative, &self.state, &mut scratch, &used.path())?
            }
            Source::Null => return Ok(None),
            Source::Bool(b) => onionskin_value::Input::Bool(b),
            Source::Default => return Err(Failure::refused(&errors::NOT_CONSTANT, used.path())),
        };
        let operator = match operator {
            b'+' => Operator::Add,
            b'-' => Operator::Subtract,
            _ => Operator::Multiply,
        };
        let ctx = Context {
            sql_mode: self.state.sql_mode,
            time_zone: &self.state.time_zone,
            family: self.state.family,
            ignore: false,
            row,
            column: &used.column().name,
            database: &used.table.database,
            table: &used.table.name,
        };
        let mut out = Vec::new();
        let stored = add_sub(
            ty,
            old,
            operator,
            input,
            &ctx,
            &mut out,
            &mut self.diagnostics.warnings,
        )
        .map_err(|e| Failure::store(e, &used.path()))?;
        match stored {
            Stored::Null if !used.column().nullable => {
                Err(Failure::refused(&errors::VALUE, used.path()))
            }
            Stored::Null => Ok(None),
            Stored::Value => Ok(Some(out)),
        }
    }

    /// `UPDATE t SET plain, k$enc = CASE … END, … WHERE keys`
    fn update_text(
        &mut self,
        prepared: &Prepared,
        update: &RowUpdate,
        values: Values,
        rows: &[Row],
        guarded: bool,
    ) -> Outcome<Vec<u8>> {
        let mut sql = format!("UPDATE {} SET ", update.target).into_bytes();
        let mut binder = Binder::new(prepared, &self.state, values, &mut self.scratch);
        let mut first = true;
        for (i, assign) in update.assign.iter().enumerate() {
            let used = &prepared.plan.columns[assign.column];
            let column = used.column();
            let mut parts = vec![(used.sealed(), Purpose::Seal)];
            parts.extend(column.eq_name().map(|n| (n, Purpose::StoreEquality)));
            parts.extend(column.ord_name().map(|n| (n, Purpose::StoreOrder)));
            for (name, purpose) in parts {
                if !std::mem::take(&mut first) {
                    sql.extend_from_slice(b", ");
                }
                let name = format!("`{}`", name.replace('`', "``"));
                sql.extend_from_slice(format!("{name} = ").as_bytes());
                let slot = Slot {
                    column: assign.column,
                    purpose,
                    source: Source::Null,
                };
                let many = rows.len() > 1;
                if many {
                    sql.extend_from_slice(b"CASE");
                }
                for row in rows {
                    if many {
                        sql.extend_from_slice(b" WHEN ");
                        sql.extend_from_slice(&row.condition);
                        sql.extend_from_slice(b" THEN ");
                    }
                    match &row.values[i] {
                        None => sql.extend_from_slice(name.as_bytes()),
                        Some(None) => sql.extend_from_slice(b"NULL"),
                        Some(Some(payload)) => match binder.fill_payload(&slot, payload)? {
                            Filled::Null => sql.extend_from_slice(b"NULL"),
                            Filled::Bytes(bytes) => put_hex(bytes, &mut sql),
                        },
                    }
                }
                if many {
                    sql.extend_from_slice(b" END");
                }
            }
        }
        if !update.plain.is_empty() {
            if !first {
                sql.extend_from_slice(b", ");
            }
            binder.text(&update.plain, 1, &mut sql)?;
        }
        if let ([row], Some(condition), true) = (rows, &update.single_row, guarded) {
            // the whole condition again: what it tests may have changed with the row
            sql.push(b' ');
            binder.text(condition, 1, &mut sql)?;
            sql.extend_from_slice(&row.unchanged);
            return Ok(sql);
        }
        sql.extend_from_slice(b" WHERE ");
        for (i, row) in rows.iter().enumerate() {
            if i > 0 {
                sql.extend_from_slice(b" OR ");
            }
            sql.push(b'(');
            sql.extend_from_slice(&row.condition);
            sql.push(b')');
        }
        Ok(sql)
    }
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
fn changed_rows(done: &Done) -> u64 {
    let words = String::from_utf8_lossy(&done.info);
    let mut words = words.split_whitespace().skip_while(|w| *w != "Changed:");
    words
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(done.affected_rows)
}

/// How a key column's text becomes a literal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Number,
    Text,
    Bytes,
    Temporal,
}

fn key_kind(packet: &[u8]) -> Outcome<KeyKind> {
    let definition = ColumnDefinition::decode(packet).map_err(Failure::Backend)?;
    Ok(match definition.column_type {
        ColumnType::TINY
        | ColumnType::SHORT
        | ColumnType::INT24
        | ColumnType::LONG
        | ColumnType::LONGLONG
        | ColumnType::NEWDECIMAL
        | ColumnType::DECIMAL
        | ColumnType::YEAR => KeyKind::Number,
        ColumnType::DATE | ColumnType::DATETIME | ColumnType::TIMESTAMP | ColumnType::TIME => {
            KeyKind::Temporal
        }
        ColumnType::STRING | ColumnType::VAR_STRING | ColumnType::VARCHAR | ColumnType::BLOB => {
            if definition.charset == 63 {
                KeyKind::Bytes
            } else {
                KeyKind::Text
            }
        }
        _ => return Err(Failure::refused(&errors::NEEDS_KEY, "a key of this type")),
    })
}

fn key_literal(
    cell: &[u8],
    kind: KeyKind,
    charset: Option<Charset>,
    out: &mut Vec<u8>,
) -> Outcome<()> {
    match kind {
        KeyKind::Number => out.extend_from_slice(cell),
        KeyKind::Temporal => {
            out.push(b'\'');
            out.extend_from_slice(cell);
            out.push(b'\'');
        }
        KeyKind::Bytes => put_hex(cell, out),
        KeyKind::Text => {
            let charset = charset
                .filter(|&c| c != Charset::Binary)
                .ok_or_else(|| Failure::refused(&errors::CHARACTER_SET, "character_set_results"))?;
            out.extend_from_slice(format!("_{} ", charset.name()).as_bytes());
            put_hex(cell, out);
        }
    }
    Ok(())
}
