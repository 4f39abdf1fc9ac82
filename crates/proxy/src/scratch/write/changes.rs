//! Rows that a statement has changed on the scratch engine, or taken away. They are written to the
//! server by their keys.

use std::collections::{HashMap, HashSet};

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{
    ColumnUse, NamedBy, Purpose, Scratch, ScratchRead, ScratchWrite, Slot, Source, Written,
    WrittenColumn, errors, lex,
};
use onionskin_schema::{KeyRole, same_name};
use onionskin_value::Family;
use onionskin_wire::Step;
use onionskin_wire::rows::TextRow;

use super::super::engine::{Engine, ours};
use super::super::tables::{CHANGED, ROW, full_name, quoted};
use super::values::{payload, put_plain};
use super::{Change, DUPLICATE, put_name_of};
use crate::bind::{Binder, Filled, Values, put_filled};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::exchange::Question;
use crate::row_update::{matched_rows, physical_columns};
use crate::server_errors::{UNSAFE_STATEMENT, is_ignored};
use crate::session::Session;

/// Statements sent before their answers are read. There is no more than one: after a deadlock the
/// server has rolled back, and statements that were sent already would stand alone.
const AT_ONCE: usize = 1;
/// Rows deleted by one statement.
const DELETED: usize = 256;
/// Rows of a table without a primary key that one statement writes. The server looks through the
/// table for each of them.
const SCANS: u64 = 1000;
/// Stands behind the name of a row of such a table: of rows that are alike in everything, one is as
/// good as the other.
const ONE_OF_THEM: &[u8] = b" LIMIT 1";
/// Bytes of statements that wait for their turn.
const BOUND: usize = 64 << 20;

/// The place of each row in the order in which the statement looks at them; `None` if the order
/// does not matter.
pub(super) type Ranks = Option<Vec<usize>>;

impl Session {
    /// The order of rows whose keys change. While one is written, another may still have the key
    /// that it gets.
    pub(super) fn ranks(
        &self,
        engine: &mut Engine,
        write: &ScratchWrite,
        targets: &[Written],
        values: Values,
    ) -> Outcome<Vec<Ranks>> {
        let mut all = Vec::new();
        for target in targets {
            let Some((from, to)) = target.order else {
                all.push(None);
                continue;
            };
            let read = &write.scratch.reads[target.read];
            let bad = || Failure::refused(&errors::INTERNAL, "the order of rows");
            let tokens = lex::tokens(values.sql, self.state.lex_mode()).map_err(|_| bad())?;
            let order = tokens.get(from..to).unwrap_or_default();
            let (Some(first), Some(last)) = (order.first(), order.last()) else {
                return Err(bad());
            };
            let is_bound = |t: &lex::Token| {
                t.kind == lex::TokenKind::Literal(onionskin_plan::LiteralKind::Parameter)
            };
            if order.iter().any(is_bound) {
                all.push(None);
                continue;
            }
            let mut sql = format!("SELECT {ROW} FROM {} ", read.source).into_bytes();
            sql.extend_from_slice(&values.sql[first.start..last.end]);
            // the session may have a limit of its own
            sql.extend_from_slice(b" LIMIT 18446744073709551615");
            let question = engine.server.put_query(&sql).map_err(ours)?;
            engine.settle()?;
            let mut ranks = Vec::new();
            for (rank, row) in numbers(engine, question)?.into_iter().enumerate() {
                ranks.resize(ranks.len().max(row + 1), usize::MAX);
                ranks[row] = rank;
            }
            all.push(Some(ranks));
        }
        Ok(all)
    }

    /// Lets the engine find all rows before it changes one. A server does so if it reads along a
    /// key that the statement changes. MariaDB is not strict then about what the condition
    /// truncates.
    pub(super) fn look_for_rows_first(
        &self,
        scratch: &Scratch,
        targets: &[Written],
        sql: &mut Vec<u8>,
    ) -> Outcome<()> {
        if self.state.family != Family::MariaDb || !moves_along_the_scan(scratch, targets) {
            return Ok(());
        }
        let bad = || Failure::refused(&errors::INTERNAL, "the statement's words");
        let tokens = lex::tokens(sql, self.state.lex_mode()).map_err(|_| bad())?;
        let (mut depth, mut end) = (0usize, sql.len());
        let mut assigns = false;
        for token in &tokens {
            let is = |word: &str| depth == 0 && token.is_word(sql, word);
            match token.kind {
                lex::TokenKind::Punct(b'(') => depth += 1,
                lex::TokenKind::Punct(b')') => depth = depth.saturating_sub(1),
                // several tables are changed in another way, and an order finds the rows first
                // anyway
                lex::TokenKind::Punct(b',') if !assigns && depth == 0 => return Ok(()),
                _ if is("order") || (!assigns && is("join")) => return Ok(()),
                _ if is("set") => assigns = true,
                _ if is("limit") || (depth == 0 && token.is(b';')) => {
                    end = token.start;
                    break;
                }
                _ => {}
            }
        }
        let order = format!(" ORDER BY {ROW} ");
        sql.splice(end..end, order.into_bytes());
        Ok(())
    }

    /// Writes the rows that carry the mark. Returns how many.
    pub(super) fn write_changed(
        &mut self,
        engine: &mut Engine,
        keyed: &KeyedPlan,
        scratch: &Scratch,
        target: &Written,
        change: &Change,
        ranks: &Ranks,
    ) -> Outcome<u64> {
        let read = &scratch.reads[target.read];
        let mut query = format!("SELECT {ROW}");
        for column in &target.columns {
            query.push_str(", ");
            query.push_str(&column.text);
        }
        query += &format!(
            " FROM {} WHERE {CHANGED} IS NOT NULL ORDER BY {ROW}",
            full_name(read)
        );
        let question = engine.server.put_query(query.as_bytes()).map_err(ours)?;
        engine.settle()?;
        let keys = change.keys.get(target.read).map_or(&[][..], Vec::as_slice);
        let written = self.write_rows(question, engine, keyed, read, target, keys, ranks);
        if written.is_err() {
            engine.give_up()?;
        }
        match written {
            // which rows stay as they are, and what else IGNORE makes of errors, is not computed
            // here
            Err(Failure::Server { code, .. }) if target.ignores => match code {
                DUPLICATE => Err(NotUnderstood::IgnoreMeetsKey.into()),
                _ if is_ignored(code) => Err(NotUnderstood::IgnoreMeetsError(code).into()),
                _ => written,
            },
            written => written,
        }
    }

    #[allow(clippy::too_many_arguments)] // a statement's rows, where they come from and where they go
    fn write_rows(
        &mut self,
        question: Question,
        engine: &mut Engine,
        keyed: &KeyedPlan,
        read: &ScratchRead,
        target: &Written,
        keys: &[Vec<u8>],
        ranks: &Ranks,
    ) -> Outcome<u64> {
        let mut sent = Vec::new();
        let keys = (keys, ranks);
        let done = self.send_rows(question, engine, keyed, read, target, keys, &mut sent);
        // what was sent is answered, whatever came of the others
        match (self.rows_written(&mut sent), done) {
            (Err(failure), done) if failure.is_fatal() || done.is_ok() => Err(failure),
            (_, done) => done,
        }
    }

    /// Sends a statement for each row. Returns how many.
    #[allow(clippy::too_many_arguments)] // a statement's rows, where they come from and where they go
    fn send_rows(
        &mut self,
        question: Question,
        engine: &mut Engine,
        keyed: &KeyedPlan,
        read: &ScratchRead,
        target: &Written,
        (keys, ranks): (&[Vec<u8>], &Ranks),
        sent: &mut Vec<Question>,
    ) -> Outcome<u64> {
        let mut waiting: Vec<(usize, Vec<u8>)> = Vec::new();
        let (mut written, mut size) = (0, 0);
        let mut kept = self.kept();
        engine.server.begin(question).map_err(ours)?;
        while !engine.server.tracker.is_complete() {
            match engine.server.step().map_err(ours)? {
                Step::Err => return Err(ours(engine.server.error())),
                Step::Row => {}
                _ => continue,
            }
            let row = engine.server.payload();
            let (number, sql) = self.row_text(row, keyed, read, target, keys)?;
            written += 1;
            check_scans(read, written)?;
            match ranks {
                Some(ranks) => {
                    size += sql.len() + 64;
                    if size > BOUND && !target.moves {
                        // should one of them still need another's key, the server says so
                        self.send_in_order(&mut waiting, sent)?;
                        size = 0;
                    }
                    kept.hold(size)?;
                    waiting.push((ranks.get(number).copied().unwrap_or(usize::MAX), sql));
                }
                // none is sent before it is known that there are not too many
                None if read.named_by == NamedBy::Row => {
                    size += sql.len() + 64;
                    kept.hold(size)?;
                    waiting.push((0, sql));
                }
                None => self.send_row(&sql, sent)?,
            }
        }
        self.send_in_order(&mut waiting, sent)?;
        Ok(written)
    }

    /// Sends the statements of rows in the order of their ranks.
    fn send_in_order(
        &mut self,
        waiting: &mut Vec<(usize, Vec<u8>)>,
        sent: &mut Vec<Question>,
    ) -> Outcome<()> {
        waiting.sort_by_key(|(rank, _)| *rank);
        waiting
            .drain(..)
            .try_for_each(|(_, sql)| self.send_row(&sql, sent))
    }

    /// `UPDATE t SET c$enc = x'…', … WHERE key`, and the row's number.
    fn row_text(
        &mut self,
        row: &[u8],
        keyed: &KeyedPlan,
        read: &ScratchRead,
        target: &Written,
        keys: &[Vec<u8>],
    ) -> Outcome<(usize, Vec<u8>)> {
        let broken = || Failure::refused(&errors::INTERNAL, "a row of the scratch engine");
        let mut cells = TextRow::new(row);
        let number = cells.cell().map_err(|e| ours(Failure::Backend(e)))?;
        let number = row_number(number).ok_or_else(broken)?;
        let key = keys.get(number).ok_or_else(broken)?;
        let family = self.state.family;
        let none = Values::none();
        let mut binder = Binder::new(keyed, &self.state, none, &mut self.buffers);
        let mut sql = b"UPDATE ".to_vec();
        put_name_of(&read.table, &mut sql);
        for (n, column) in target.columns.iter().enumerate() {
            sql.extend_from_slice(if n == 0 { b" SET " } else { b", " });
            let cell = cells.cell().map_err(|e| ours(Failure::Backend(e)))?;
            let used = onionskin_plan::ColumnUse {
                table: read.table.clone(),
                index: column.index,
            };
            let Some(sealed) = column.sealed else {
                sql.extend_from_slice(quoted(&used.column().name).as_bytes());
                sql.extend_from_slice(b" = ");
                match cell {
                    None => sql.extend_from_slice(b"NULL"),
                    Some(cell) => {
                        put_plain(&used, column.carried, cell, &self.state, &mut sql)?;
                    }
                }
                continue;
            };
            let value = match cell {
                None => None,
                Some(cell) => Some(payload(&used, column.carried, cell, family)?),
            };
            for (i, (name, purpose)) in physical_columns(&used).enumerate() {
                if i > 0 {
                    sql.extend_from_slice(b", ");
                }
                sql.extend_from_slice(quoted(name).as_bytes());
                sql.extend_from_slice(b" = ");
                match &value {
                    None => sql.extend_from_slice(b"NULL"),
                    Some(value) => {
                        put_value(&mut binder, &used, (sealed, purpose), value, &mut sql)?
                    }
                }
            }
        }
        sql.extend_from_slice(b" WHERE ");
        sql.extend_from_slice(key);
        if read.named_by == NamedBy::Row {
            sql.extend_from_slice(ONE_OF_THEM);
        }
        Ok((number, sql))
    }

    fn send_row(&mut self, sql: &[u8], sent: &mut Vec<Question>) -> Outcome<()> {
        sent.push(self.server.put_query(sql)?);
        match sent.len() >= AT_ONCE {
            true => self.rows_written(sent),
            false => Ok(()),
        }
    }

    /// Reads the answers of the rows that were sent. All are read, whatever came of the first.
    fn rows_written(&mut self, sent: &mut Vec<Question>) -> Outcome<()> {
        self.server.flush()?;
        let mut done = Ok(());
        for question in std::mem::take(sent) {
            let one = match self.server.read_ok(question) {
                Err(failure) if failure.is_fatal() => return Err(failure),
                Err(failure) => Err(failure),
                Ok(ok) if ok.warnings > 0 && !self.notes_the_log()? => {
                    let about = "a warning while rows were written";
                    Err(Failure::refused(&errors::VALUE, about))
                }
                // the rows are locked; it must be there
                Ok(ok) if matched_rows(&ok.info) != Some(1) => Err(Failure::refused(
                    &errors::INTERNAL,
                    "a row that was locked is gone",
                )),
                Ok(_) => Ok(()),
            };
            done = done.and(one);
        }
        done
    }

    /// Whether the server's list holds nothing but notes that a binary log of statements may not
    /// repeat one. They come where rows are written one by one, and say nothing of the row. The
    /// list is of the last statement, so no other may be on its way ([`AT_ONCE`]).
    fn notes_the_log(&mut self) -> Outcome<bool> {
        let shown = self.server.rows(b"SHOW WARNINGS")?;
        let is_note = |row: &Vec<Option<Vec<u8>>>| {
            let code = row.get(1).and_then(Option::as_deref);
            code.is_some_and(|code| code == UNSAFE_STATEMENT.to_string().as_bytes())
        };
        Ok(!shown.is_empty() && shown.iter().all(is_note))
    }

    /// Deletes the rows that are no longer among the engine's.
    pub(super) fn delete_missing(
        &mut self,
        engine: &mut Engine,
        scratch: &Scratch,
        target: &Written,
        change: &Change,
        gone_twice: &mut GoneTwice,
    ) -> Outcome<u64> {
        let read = &scratch.reads[target.read];
        let keys = change.keys.get(target.read).map_or(&[][..], Vec::as_slice);
        let query = format!("SELECT {ROW} FROM {}", full_name(read));
        let question = engine.server.put_query(query.as_bytes()).map_err(ours)?;
        engine.settle()?;
        let mut stays = vec![false; keys.len()];
        for row in numbers(engine, question)? {
            match stays.get_mut(row) {
                Some(stays) => *stays = true,
                None => {
                    let about = "a row of the scratch engine";
                    return Err(Failure::refused(&errors::INTERNAL, about));
                }
            }
        }
        let mut gone: Vec<&Vec<u8>> = keys
            .iter()
            .zip(stays)
            .filter_map(|(key, stays)| (!stays).then_some(key))
            .collect();
        let missing = gone.len() as u64;
        gone.retain(|key| gone_twice.is_first(target.read, key));
        check_scans(read, gone.len() as u64)?;
        let at_once = match read.named_by {
            NamedBy::Row => 1,
            NamedBy::Key | NamedBy::Cells => DELETED,
        };
        for chunk in gone.chunks(at_once) {
            let (mut target, mut of) = (Vec::new(), Vec::new());
            put_name_of(&read.table, &mut target);
            for (i, key) in chunk.iter().enumerate() {
                of.extend_from_slice(if i == 0 { b" WHERE (" } else { b" OR (" });
                of.extend_from_slice(key);
                of.push(b')');
            }
            let limit: &[u8] = match read.named_by {
                NamedBy::Row => ONE_OF_THEM,
                NamedBy::Key | NamedBy::Cells => b"",
            };
            let done = self
                .server
                .run(&[b"DELETE FROM ", &target[..], &of, limit].concat())?;
            if done.warnings > 0 {
                let about = "a warning while rows were deleted";
                return Err(Failure::refused(&errors::VALUE, about));
            }
            if read.named_by == NamedBy::Row && done.affected_rows != 1 {
                let about = format!(
                    "{}.{}, a row that is gone meanwhile, by a foreign key perhaps",
                    read.table.database, read.table.name
                );
                return Err(Failure::refused(&errors::NEEDS_KEY, about));
            }
            if done.affected_rows < chunk.len() as u64 {
                self.must_be_gone(&target, &of)?;
            }
        }
        Ok(missing)
    }
}

/// Rows of tables that a DELETE deletes from by two names. The engine has a copy for each name; at
/// the server a row goes once, and counts once.
pub(super) struct GoneTwice {
    /// For each read that changes, the first one of the same table, if there are others.
    tables: HashMap<usize, usize>,
    rows: HashSet<(usize, Vec<u8>)>,
    /// How many were met again.
    pub again: u64,
}

impl GoneTwice {
    pub(super) fn new(scratch: &Scratch, targets: &[Written]) -> GoneTwice {
        let table = |target: &Written| &scratch.reads[target.read].table;
        let is_same = |a: &Written, b: &Written| {
            let (a, b) = (table(a), table(b));
            same_name(&a.database, &b.database) && same_name(&a.name, &b.name)
        };
        let mut tables = HashMap::new();
        for target in targets {
            let mut same = targets.iter().filter(|other| is_same(other, target));
            if let (Some(first), Some(_)) = (same.next(), same.next()) {
                tables.insert(target.read, first.read);
            }
        }
        GoneTwice {
            tables,
            rows: HashSet::new(),
            again: 0,
        }
    }

    /// Whether the row of this read was not met by another name yet. `key` is the condition that
    /// names it.
    fn is_first(&mut self, read: usize, key: &[u8]) -> bool {
        let Some(table) = self.tables.get(&read) else {
            return true;
        };
        let is_first = self.rows.insert((*table, key.to_vec()));
        self.again += u64::from(!is_first);
        is_first
    }
}

/// Whether an `UPDATE` changes a column of its table's primary key. InnoDB reads along that key if
/// no other is of use.
fn moves_along_the_scan(scratch: &Scratch, targets: &[Written]) -> bool {
    let [target] = targets else { return false };
    let columns = &scratch.reads[target.read].table.columns;
    let is_primary = |c: &WrittenColumn| columns[c.index].key == KeyRole::Primary;
    target.columns.iter().any(is_primary)
}

pub(super) fn put_value(
    binder: &mut Binder,
    used: &ColumnUse,
    (column, purpose): (usize, Purpose),
    payload: &[u8],
    sql: &mut Vec<u8>,
) -> Outcome<()> {
    let slot = Slot {
        column,
        purpose,
        source: Source::Null,
        among: None,
    };
    let mode = binder.state.lex_mode();
    match binder.fill_payload(&slot, payload)? {
        Filled::Null => sql.extend_from_slice(b"NULL"),
        Filled::Bytes(bytes) => put_filled(used, purpose, bytes, mode, sql),
    }
    Ok(())
}

pub(super) fn row_number(cell: Option<&[u8]>) -> Option<usize> {
    std::str::from_utf8(cell?).ok()?.parse().ok()
}

/// Refuses to look through a table without a primary key for very many rows.
fn check_scans(read: &ScratchRead, rows: u64) -> Outcome<()> {
    if read.named_by != NamedBy::Row || rows <= SCANS {
        return Ok(());
    }
    let table = format!("{}.{}", read.table.database, read.table.name);
    let about = format!("more than {SCANS} rows of {table} in one statement");
    Err(Failure::refused(&errors::NEEDS_KEY, about))
}

/// The numbers of rows that a query returns.
fn numbers(engine: &mut Engine, question: Question) -> Outcome<Vec<usize>> {
    let mut found = Vec::new();
    engine.server.begin(question).map_err(ours)?;
    while !engine.server.tracker.is_complete() {
        match engine.server.step().map_err(ours)? {
            Step::Err => return Err(engine.failure()),
            Step::Row => {
                let cell = TextRow::new(engine.server.payload()).cell();
                let number = cell.map_err(|e| ours(Failure::Backend(e)))?;
                found.push(row_number(number).ok_or_else(|| {
                    Failure::refused(&errors::INTERNAL, "a row of the scratch engine")
                })?);
            }
            _ => {}
        }
    }
    Ok(found)
}
