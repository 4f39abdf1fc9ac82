//! `INSERT … SELECT`: the query's rows become literals. These become an `INSERT … VALUES`, planned
//! and run like a client's.
//!
//! Before that they go into a temporary table with the columns of the target. It makes of them what
//! the target would: the engine gives conversions with their warnings and errors. Keys and
//! AUTO_INCREMENT are the server's, so the temporary table has none. A NULL that asks for a number
//! is kept. An `INSERT … VALUES` goes the same way if its values have forms that the proxy does not
//! convert.

use std::sync::Arc;

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{
    Action, ColumnUse, LiteralKind, NewRows, NewValues, ScratchWrite, WrittenColumn, errors, lex,
};
use onionskin_schema::Column;
use onionskin_value::{Family, Kind};
use onionskin_wire::Step;
use onionskin_wire::rows::TextRow;

use super::super::engine::{Engine, ours};
use super::super::tables::{column_type, default, quoted};
use super::super::{Parameters, renamed_part};
use super::values::{check_member, put_literal};
use super::{Change, Finished, names_of, run_there};
use crate::bind::{Binder, Moments, Values, check_moments, no_default, no_default_warning};
use crate::catalog::KeyedPlan;
use crate::diagnostics::{Diagnostics, shown, tells_of_values};
use crate::error::{Failure, Outcome};
use crate::exchange::{Done, Question};
use crate::server_errors::{CHECK_OF_MARIADB, CHECK_OF_MYSQL};
use crate::session::{Execution, Session, logical_text};

/// The temporary table of new rows.
pub(super) const NEW: &str = "onionskin$new";
/// Bytes of one `INSERT`, about.
const MAX_BATCH_BYTES: usize = 256 << 10;
/// Its rows.
const MAX_BATCH_ROWS: usize = 500;

/// What the statements that insert the rows have done so far.
#[derive(Default)]
pub(super) struct Inserted {
    pub records: u64,
    pub affected: u64,
    pub duplicates: u64,
    /// The first number that AUTO_INCREMENT gave, and how many statements had one.
    pub first_id: u64,
    pub of_ids: usize,
    pub last_id: u64,
    /// The statement is a prepared one: MySQL has warned of its words when it was prepared.
    pub prepared: bool,
}

impl Session {
    #[allow(clippy::too_many_arguments)] // a statement and what it is run with
    pub(super) fn insert_query(
        &mut self,
        engine: &mut Engine,
        keyed: &KeyedPlan,
        write: &ScratchWrite,
        new: &NewRows,
        values: Values,
        parameters: Option<Parameters>,
        change: &mut Change,
    ) -> Outcome<Finished> {
        if let Some(met) = &new.met {
            return self.upsert(engine, keyed, write, (new, met), values, parameters, change);
        }
        let bad = || Failure::refused(&errors::INTERNAL, "the statement's words");
        let settings = self.read_tables(engine, keyed, &write.scratch, values, Some(change))?;
        let sql = values.sql;
        let tokens = lex::tokens(sql, self.state.lex_mode()).map_err(|_| bad())?;
        let bytes = |(from, to): (usize, usize)| {
            let tokens = tokens.get(from..to).unwrap_or_default();
            match (tokens.first(), tokens.last()) {
                (Some(first), Some(last)) => first.start..last.end,
                _ => sql.len()..sql.len(),
            }
        };
        let place = bytes(new.query);
        let (mut query, of_one) = match &new.values {
            Some(values) => given(sql, &tokens, values)?,
            None => (
                renamed_part(sql, &tokens, &write.scratch, place.clone())?,
                false,
            ),
        };
        let reads_itself = write.scratch.reads.iter().any(|read| {
            let (read, table) = (&read.table, &new.table);
            read.name == table.name && read.database == table.database
        });
        if reads_itself {
            buffer(&mut query);
        }
        let mut text = format!(
            "INSERT {}INTO {} ({}) ",
            if new.ignore { "IGNORE " } else { "" },
            table_of_new(new),
            given_names(new),
        )
        .into_bytes();
        text.extend_from_slice(&query);
        // its parameters come first
        let count = values
            .literals
            .iter()
            .filter(|l| l.kind == LiteralKind::Parameter)
            .filter(|l| new.values.is_some() || l.start < place.end)
            .count();
        let parameters = parameters.map(|parameters| Parameters {
            params: parameters.params.get(..count).unwrap_or(parameters.params),
            long: parameters.long.get(..count).unwrap_or(parameters.long),
        });
        let is_prepared = parameters.is_some();
        begin_new(engine, new, self.state.family)?;
        engine.share(&settings)?;
        let names = names_of(write);
        let ran = run_there(engine, &text, parameters, &names);
        // before the table is dropped, which ends the list
        self.keep_list(engine, &ran, &names);
        let finished = ran.and_then(|(done, mut diagnostics)| {
            if new.values.is_none() {
                // those of its query
                diagnostics.found_rows = Some(done.affected_rows);
            }
            let head = sql[bytes(new.head)].to_vec();
            let tail = self.with_literals(keyed, values, bytes(new.tail))?;
            let mut finished =
                self.insert_new(engine, new, &head, &tail, is_prepared, diagnostics)?;
            if of_one {
                finished.done.info.clear();
            }
            Ok(finished)
        });
        engine.put(drop_new(new).as_bytes())?;
        finished
    }

    /// A part of the statement's text, parameters as literals.
    pub(super) fn with_literals(
        &self,
        keyed: &KeyedPlan,
        values: Values,
        part: std::ops::Range<usize>,
    ) -> Outcome<Vec<u8>> {
        check_moments(keyed, values, &self.state, Moments::In(part.clone()))?;
        let mut out = Vec::new();
        let mut at = part.start;
        for (index, literal) in values.literals.iter().enumerate() {
            if literal.kind == LiteralKind::Parameter && part.contains(&literal.start) {
                out.extend_from_slice(&values.sql[at..literal.start]);
                values.put_literal(index, &self.state, &mut out)?;
                at = literal.end;
            }
        }
        out.extend_from_slice(values.sql.get(at..part.end).unwrap_or_default());
        Ok(out)
    }

    /// Inserts the rows of the temporary table by statements that begin and end like this.
    pub(super) fn insert_new(
        &mut self,
        engine: &mut Engine,
        new: &NewRows,
        head: &[u8],
        tail: &[u8],
        prepared: bool,
        mut diagnostics: Diagnostics,
    ) -> Outcome<Finished> {
        let columns: Vec<&str> = new.columns.iter().map(|c| c.text.as_str()).collect();
        let query = format!(
            "SELECT {} FROM {} ORDER BY `onionskin$key`",
            columns.join(", "),
            table_of_new(new)
        );
        engine.load_again()?;
        let question = engine.server.put_query(query.as_bytes()).map_err(ours)?;
        engine.settle()?;
        let mut inserted = Inserted {
            prepared,
            ..Inserted::default()
        };
        let done = self.insert_batches(
            question,
            engine,
            new,
            head,
            tail,
            &mut inserted,
            &mut diagnostics,
        );
        if let Err(failure) = done {
            engine.give_up()?;
            self.keep_list_before(&diagnostics, &failure);
            return Err(failure);
        }
        let is_of_query = new.values.is_none() && new.load.is_none();
        if inserted.records == 0 && is_of_query && self.state.family == Family::MariaDb {
            self.miss_defaults(new, &mut diagnostics)?;
        }
        // servers forget the last row's own number where rows may be updated instead
        let updates = !tail.is_empty()
            && memchr::memmem::find(&tail.to_ascii_lowercase(), b"last_insert_id").is_none();
        let id = self.keep_insert_id(&inserted, updates)?;
        let Inserted {
            records,
            duplicates,
            ..
        } = inserted;
        let info = match (&new.load, new.replaces) {
            (None, _) => format!("Records: {records}  Duplicates: {duplicates}  Warnings: 0"),
            (Some(_), true) => {
                format!("Records: {records}  Deleted: {duplicates}  Skipped: 0  Warnings: 0")
            }
            (Some(_), false) => {
                format!("Records: {records}  Deleted: 0  Skipped: {duplicates}  Warnings: 0")
            }
        };
        Ok(Finished {
            done: Done {
                affected_rows: inserted.affected,
                // of a file, servers do not tell it
                last_insert_id: if new.load.is_some() { 0 } else { id },
                warnings: 0,
                info: info.into_bytes(),
            },
            diagnostics,
        })
    }

    /// MariaDB looks for defaults before it looks for rows. So it says what a row would miss even
    /// if there is no row. An ENUM has its first member.
    fn miss_defaults(&mut self, new: &NewRows, diagnostics: &mut Diagnostics) -> Outcome<()> {
        let is_strict = self.state.sql_mode.is_strict() && !new.ignore;
        let mut missed = Vec::new();
        for (index, column) in new.table.columns.iter().enumerate() {
            let is_given = new.columns.iter().any(|c| c.index == index);
            let is_made = column.auto_increment || column.generated;
            let is_enum = column.type_text.starts_with("enum");
            if is_given || is_made || is_enum || !column.is_required() {
                continue;
            }
            missed.push(&column.name);
        }
        let assigned = |name: &&&String| match &new.met {
            Some(_) => new.changed_if_met().any(|column| column == name.as_str()),
            None => new.tail.0 < new.tail.1,
        };
        if let Some(name) = missed.iter().find(assigned) {
            // a column that the clause assigns is given to MariaDB
            let about = format!("{name}, which ON DUPLICATE KEY UPDATE may assign");
            return Err(Failure::refused(&errors::VALUE, about));
        }
        if !is_strict {
            let warnings = missed.iter().map(|name| no_default_warning(name));
            diagnostics.warnings.extend(warnings);
            return Ok(());
        }
        let Some(first) = missed.first() else {
            return Ok(());
        };
        // each of them is an error, and the first is told
        let errors = missed.iter().map(|name| no_default(name));
        self.current.list = Some(
            errors
                .map(|e| shown(b"Error", e.code, e.message.as_bytes()))
                .collect(),
        );
        self.current.interfered = true;
        let error = no_default(first);
        Err(Failure::Server {
            code: error.code,
            state: error.sqlstate,
            message: error.message.into_bytes(),
        })
    }

    /// The number that the client is told, and that LAST_INSERT_ID() returns from now on.
    pub(super) fn keep_insert_id(&mut self, inserted: &Inserted, updates: bool) -> Outcome<u64> {
        let id = match inserted.of_ids {
            0 if updates => 0,
            0 => inserted.last_id,
            _ => inserted.first_id,
        };
        if inserted.of_ids > 1 {
            // to the server, the last of several statements counts
            let sql = format!("SET last_insert_id = {id}");
            self.server.run(sql.as_bytes())?;
        }
        Ok(id)
    }

    #[allow(clippy::too_many_arguments)] // rows, where they come from, and what becomes of them
    pub(super) fn insert_batches(
        &mut self,
        question: Question,
        engine: &mut Engine,
        new: &NewRows,
        head: &[u8],
        tail: &[u8],
        inserted: &mut Inserted,
        diagnostics: &mut Diagnostics,
    ) -> Outcome<()> {
        let mut begin = head.to_vec();
        begin.extend_from_slice(format!(" ({}) VALUES ", names(new)).as_bytes());
        let (mut sql, mut rows, mut generates) = (begin.clone(), 0, false);
        let counter = |c: &WrittenColumn| new.table.columns[c.index].auto_increment;
        let counted = new.table.columns.iter().any(|c| c.auto_increment);
        let left_out = counted && !new.columns.iter().any(counter);
        let is_of_query = new.values.is_none() && new.load.is_none();
        engine.server.begin(question).map_err(ours)?;
        loop {
            let ended = engine.server.tracker.is_complete();
            if rows > 0 && (ended || rows >= MAX_BATCH_ROWS || sql.len() >= MAX_BATCH_BYTES) {
                sql.push(b' ');
                sql.extend_from_slice(tail);
                let (count, generated) = (std::mem::take(&mut rows), generates);
                self.insert_batch(new, &sql, count, generated, inserted, diagnostics)?;
                sql.clone_from(&begin);
                generates = false;
            }
            if ended {
                return Ok(());
            }
            match engine.server.step().map_err(ours)? {
                Step::Err => return Err(ours(engine.server.error())),
                Step::Row => {}
                _ => continue,
            }
            sql.extend_from_slice(if rows > 0 { b",(" } else { b"(" });
            let cells = TextRow::new(engine.server.payload());
            for (n, (cell, column)) in cells.zip(&new.columns).enumerate() {
                let cell = cell.map_err(|e| ours(Failure::Backend(e)))?;
                if n > 0 {
                    sql.push(b',');
                }
                let asks = cell.is_none_or(|c| c == b"0");
                generates |= left_out || (counter(column) && asks);
                let used = ColumnUse {
                    table: Arc::clone(&new.table),
                    index: column.index,
                };
                match cell {
                    None => sql.extend_from_slice(b"NULL"),
                    Some(cell) => {
                        if is_of_query && used.column().protection.is_some() {
                            check_member(&used, cell)?;
                        }
                        put_literal(&used, column.carried, cell, &self.state, &mut sql)?;
                    }
                }
            }
            sql.push(b')');
            rows += 1;
        }
    }

    fn insert_batch(
        &mut self,
        new: &NewRows,
        sql: &[u8],
        rows: usize,
        generates: bool,
        inserted: &mut Inserted,
        diagnostics: &mut Diagnostics,
    ) -> Outcome<()> {
        let (done, keyed) = self.run_quietly(sql, b"", new)?;
        let mut ours = std::mem::take(&mut self.diagnostics.warnings);
        ours.retain(|w| !OF_STORING.contains(&w.code));
        let mut broken = 0;
        if done.warnings > 0 {
            let mut shown = self.server.rows(b"SHOW WARNINGS")?;
            broken = shown.iter().filter(|row| is_about_check(row)).count() as u64;
            let before = shown.len();
            shown.retain(|row| !is_of_storing(row, new));
            // the server's parser warns of VALUES() in each of these statements; the client has
            // written one
            let told = shown.iter().filter(|row| is_about_values(row)).count() as u64;
            let mut calls = match inserted.records {
                0 if !inserted.prepared => {
                    usize::try_from(told.saturating_sub(self.diagnostics.surplus)).unwrap_or(0)
                }
                _ => 0,
            };
            shown.retain(|row| {
                let counts = is_about_values(row);
                let kept = !counts || calls > 0;
                calls -= usize::from(counts && kept);
                kept
            });
            for row in &mut shown {
                if let Some(Some(message)) = row.get_mut(2) {
                    *message = logical_text(message, &keyed);
                }
            }
            let left_out = u16::try_from(before - shown.len()).unwrap_or(u16::MAX);
            diagnostics.keep(&shown, done.warnings.saturating_sub(left_out));
        }
        diagnostics.warnings.extend(ours);
        let sent = rows as u64;
        // a row that IGNORE leaves out for a CHECK counts nowhere
        let rows = match told(&done.info, "Records: ") {
            _ if new.load.is_some() => sent,
            Some(told) => told,
            // of one row nothing is told
            None => sent.saturating_sub(broken),
        };
        inserted.records += rows;
        inserted.affected += done.affected_rows;
        inserted.duplicates += match told(&done.info, "Duplicates: ") {
            Some(told) => told,
            None if new.ignore && !new.replaces => rows.saturating_sub(done.affected_rows),
            None => done.affected_rows.saturating_sub(rows),
        };
        if generates && done.last_insert_id > 0 {
            if inserted.of_ids == 0 {
                inserted.first_id = done.last_insert_id;
            }
            inserted.of_ids += 1;
        }
        inserted.last_id = done.last_insert_id;
        Ok(())
    }

    /// Plans and runs a statement that inserts new rows as a part of the client's and returns no
    /// rows. The server gets `behind` after it, as it is.
    pub(super) fn run_quietly(
        &mut self,
        sql: &[u8],
        behind: &[u8],
        new: &NewRows,
    ) -> Outcome<(Done, Arc<KeyedPlan>)> {
        let table = &new.table;
        self.diagnostics.clear();
        let mode = self.space.settings.lex;
        let outer = std::mem::take(&mut self.template);
        let read = self.template.read(sql, mode);
        let keyed = match read {
            Ok(()) => self.plan(sql),
            Err(_) => Err(Failure::refused(&errors::INTERNAL, "a row's literals")),
        };
        let template = std::mem::replace(&mut self.template, outer);
        let keyed = keyed?;
        self.must_be_recordable(&keyed)?;
        let execution = Execution::of_text(sql, &template, &keyed, &[], false);
        // Another table may have taken the name since. Opened values that were meant for a
        // protected table must not reach a plain one.
        let columns = &keyed.plan.columns;
        let is_same = |used: &ColumnUse| used.table.table_id == table.table_id;
        let refused = matches!(keyed.plan.action, Action::Refuse(_));
        let seals = |c: &WrittenColumn| table.columns[c.index].protection.is_some();
        let is_plain = columns.is_empty() && new.columns.iter().any(seals);
        if table.table_id.is_some() && !refused && (is_plain || !columns.iter().all(is_same)) {
            return Err(Failure::Stale);
        }
        let question = match &keyed.plan.action {
            Action::Relay if behind.is_empty() => self.server.put_query(sql)?,
            Action::Server { text, result: None } if !behind.is_empty() => {
                let mut bound = Vec::new();
                let values = execution.values;
                let mut binder = Binder::new(&keyed, &self.state, values, &mut self.buffers);
                binder.mode.lenient_nulls = execution.mode.lenient_nulls;
                binder.text(text, 1, &mut bound)?;
                self.diagnostics.warnings = binder.warnings;
                bound.extend_from_slice(behind);
                self.server.put_query(&bound)?
            }
            Action::Server { text, result: None } => {
                if let Some(upsert) = &keyed.plan.upsert {
                    self.keep_cells(&execution, upsert)?;
                }
                self.send_text(&execution, text, false)?
            }
            Action::Refuse(refusal) => return Err(refusal.clone().into()),
            _ => {
                return Err(NotUnderstood::MetRows.into());
            }
        };
        self.server.flush()?;
        let done = self.server.read_ok(question)?;
        Ok((done, keyed))
    }
}

/// The rows that stand in a statement, as they follow the list of columns, and whether there is
/// only one.
fn given(sql: &[u8], tokens: &[lex::Token], values: &NewValues) -> Outcome<(Vec<u8>, bool)> {
    let bad = || Failure::refused(&errors::INTERNAL, "the statement's words");
    let text = |from: usize, to: usize| match tokens.get(from..to) {
        Some([first, .., last]) => Ok(&sql[first.start..last.end]),
        Some([one]) => Ok(&sql[one.start..one.end]),
        _ => Err(bad()),
    };
    match values {
        NewValues::Rows(first) => {
            let end = tokens.iter().rposition(|t| !t.is(b';')).ok_or_else(bad)? + 1;
            let (mut depth, mut rows) = (0usize, 0usize);
            for token in tokens.get(*first..end).ok_or_else(bad)? {
                if token.is(b'(') {
                    rows += usize::from(depth == 0);
                    depth += 1;
                } else if token.is(b')') {
                    depth = depth.saturating_sub(1);
                }
            }
            Ok((text(*first, end)?.to_vec(), rows == 1))
        }
        NewValues::Set(places) => {
            let parts = places.iter().map(|(from, to)| text(*from, *to));
            let parts: Vec<&[u8]> = parts.collect::<Outcome<_>>()?;
            let mut out = b"VALUES (".to_vec();
            out.extend_from_slice(&parts.join(&b", "[..]));
            out.push(b')');
            Ok((out, true))
        }
    }
}

/// Makes a query gather its rows first. Servers do so if the table that they insert into is read,
/// and say what there is to say of a zero date when they put it there. Here these are two temporary
/// tables, so the engine would not.
fn buffer(query: &mut Vec<u8>) {
    const SELECT: &[u8] = b"select";
    let begins = query.get(..SELECT.len());
    if begins.is_some_and(|word| word.eq_ignore_ascii_case(SELECT)) {
        let option = b" SQL_BUFFER_RESULT".iter().copied();
        query.splice(SELECT.len()..SELECT.len(), option);
    }
}

/// What is said of a value that a column changes. The engine has said it when it stored the value.
/// So it is no news if the value is stored once more (a member of an ENUM that is none, a date that
/// sql_mode has forbidden since).
pub(super) const OF_STORING: [u16; 5] = [1264, 1265, 1292, 1299, 1366];

/// Whether a warning names a column.
pub(super) fn names_column(message: &str, name: &str) -> bool {
    message.contains(&format!("'{name}'")) || message.contains(&quoted(name))
}

/// Whether a warning is one of these about a column that was given a value.
pub(super) fn is_of_storing(row: &[Option<Vec<u8>>], new: &NewRows) -> bool {
    let cell = |n: usize| row.get(n).and_then(Option::as_deref);
    let text = |n: usize| cell(n).map(String::from_utf8_lossy).unwrap_or_default();
    let message = text(2);
    let given = |c: &WrittenColumn| names_column(&message, &new.table.columns[c.index].name);
    let of_storing = text(1).parse().is_ok_and(|c: u16| OF_STORING.contains(&c));
    of_storing && new.columns.iter().any(given)
}

/// MySQL warns of VALUES() in ON DUPLICATE KEY UPDATE, as of what will go.
pub(super) fn is_about_values(row: &[Option<Vec<u8>>]) -> bool {
    let cell = |n: usize| row.get(n).and_then(Option::as_deref);
    tells_of_values(cell(1), cell(2))
}

/// Whether a warning is about a row that a CHECK has kept out.
fn is_about_check(row: &[Option<Vec<u8>>]) -> bool {
    let code = row.get(1).and_then(Option::as_deref);
    let code: Option<u16> = code.and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
    matches!(code, Some(CHECK_OF_MYSQL | CHECK_OF_MARIADB))
}

/// A count in `Records: 3  Duplicates: 1  Warnings: 0`.
fn told(info: &[u8], word: &str) -> Option<u64> {
    let text = std::str::from_utf8(info).ok()?;
    let (_, behind) = text.split_once(word)?;
    behind.split_whitespace().next()?.parse().ok()
}

/// The temporary table's full name.
pub(super) fn table_of_new(new: &NewRows) -> String {
    format!("{}.{}", quoted(&new.table.database), quoted(NEW))
}

/// The names of its columns.
pub(super) fn names(new: &NewRows) -> String {
    joined(new, new.columns.len())
}

/// The names of those that the statement's rows give.
pub(super) fn given_names(new: &NewRows) -> String {
    joined(new, new.given)
}

fn joined(new: &NewRows, count: usize) -> String {
    let columns = new.columns.iter().take(count);
    let names: Vec<String> = columns
        .map(|c| quoted(&new.table.columns[c.index].name))
        .collect();
    names.join(", ")
}

/// Makes the temporary table.
pub(super) fn begin_new(engine: &mut Engine, new: &NewRows, family: Family) -> Outcome<()> {
    engine.need_database(&new.table.database)?;
    engine.put(drop_new(new).as_bytes())?;
    engine.put(definition(new, family).as_bytes())
}

pub(super) fn drop_new(new: &NewRows) -> String {
    format!("DROP TEMPORARY TABLE IF EXISTS {}", table_of_new(new))
}

/// What a column without a default gets where its value is not missed (`not_missed` in the plan).
fn implicit(column: &Column) -> Option<String> {
    let ty = column.sql_type.as_ref()?;
    let text = ty.is_character() || ty.is_binary();
    let text = text || matches!(ty.kind, Kind::Set(_));
    Some(
        match ty.kind {
            Kind::Uuid => "'00000000-0000-0000-0000-000000000000'",
            Kind::Inet6 => "'::'",
            Kind::Inet4 => "'0.0.0.0'",
            _ if text => "''",
            _ => "0",
        }
        .to_string(),
    )
}

/// The temporary table: the target's columns, without its keys.
fn definition(new: &NewRows, family: Family) -> String {
    let mut parts = Vec::new();
    for (n, column) in new.columns.iter().enumerate() {
        let column = &new.table.columns[column.index];
        let null = match column.nullable || column.auto_increment {
            true => "NULL",
            false => "NOT NULL",
        };
        // lines of a file may have too few fields; behind a value that does not fit, MySQL misses
        // the defaults of the others
        let default = default(column, family, true);
        let missed = || (n >= new.given && column.default.is_none()).then(|| implicit(column));
        let default = default.or_else(|| missed().flatten());
        let default = default.map_or(String::new(), |d| format!(" DEFAULT {d}"));
        parts.push(format!(
            "{} {} {null}{default}",
            quoted(&column.name),
            column_type(column, family)
        ));
    }
    let engine = match family {
        Family::MariaDb => "ENGINE=Aria TRANSACTIONAL=0",
        Family::MySql => "ENGINE=InnoDB",
    };
    format!(
        "CREATE TEMPORARY TABLE {} ({}, `onionskin$key` BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY) {engine} DEFAULT CHARSET=utf8mb4",
        table_of_new(new),
        parts.join(", ")
    )
}
