//! `INSERT … ON DUPLICATE KEY UPDATE` with expressions over protected columns, row by row.
//!
//! A row's unique keys name the rows of the table that it may meet. These are looked for without a
//! lock first: a lock on a key that is not there yet would be one on its neighbourhood, and two
//! sessions with new keys would wait for each other. What is found is read again under a lock and
//! brought to the engine. The engine runs the client's clause for this row and those. The server
//! then gets the row with constants behind ON DUPLICATE KEY UPDATE, each on the condition that the
//! row is the one that was read. If another row was met, or a trigger has changed what the clause
//! reads, nothing changes, and the statement is taken back.
//!
//! If another session inserts a key between search and row, the server's error shows it, and the
//! search begins again.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the statement, row by row |
//! | `met` | which rows a new row meets |
//! | `assigned` | what the clause makes of them |

mod assigned;
mod met;

use self::assigned::There;
use super::rows::{
    Inserted, OF_STORING, begin_new, drop_new, given_names, is_about_values, is_of_storing, names,
    names_column, table_of_new,
};
use super::values::put_literal;
use super::{Change, DUPLICATE, Finished, names_of, put_name_of, run_there};
use crate::bind::Values;
use crate::catalog::KeyedPlan;
use crate::diagnostics::Diagnostics;
use crate::error::{Failure, Outcome};
use crate::exchange::{Done, Rows};
use crate::scratch::engine::{Engine, ours};
use crate::scratch::settings::Settings;
use crate::scratch::tables::{UniqueKey, definition_of_met, full_name, quoted};
use crate::scratch::{Brought, Parameters, renamed_part};
use crate::server_errors::NO_DEFAULT;
use crate::session::{Session, logical_text};
use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{
    ColumnUse, LiteralKind, MetRows, NewRows, NewValues, Purpose, ScratchWrite, WrittenColumn,
    errors, lex,
};
use onionskin_value::{Family, SqlMode, Warning};
use std::sync::Arc;

const LENIENT: &str = "a `sql_mode` that is not strict";

/// The statement, and what is known of its table.
struct Upsert<'s> {
    keyed: &'s KeyedPlan,
    new: &'s NewRows,
    met: &'s MetRows,
    settings: Settings,
    /// The clause, parameters as literals.
    clause: Vec<u8>,
    keys: Vec<Key>,
    /// The statement has more than one row, or may have.
    many: bool,
    is_prepared: bool,
}

/// What the engine says of a column of a row.
type Cell = Option<Vec<u8>>;

/// A unique key: columns of the table, each with its place, its name on the server and what the
/// column of that name holds.
struct Key {
    name: String,
    parts: Vec<(usize, String, Option<Purpose>)>,
}

/// A new row: its place in the statement, its cells as the engine has them and as literals.
struct Row {
    number: u64,
    cells: Vec<Cell>,
    literals: Vec<Vec<u8>>,
    /// The server gives it a number.
    generates: bool,
}

impl Session {
    #[allow(clippy::too_many_arguments)] // a statement and what it is run with
    pub(super) fn upsert(
        &mut self,
        engine: &mut Engine,
        keyed: &KeyedPlan,
        write: &ScratchWrite,
        (new, met): (&NewRows, &MetRows),
        values: Values,
        parameters: Option<Parameters>,
        change: &mut Change,
    ) -> Outcome<Finished> {
        self.must_have_defaults(new)?;
        let settings = self.read_tables(engine, keyed, &write.scratch, values, Some(change))?;
        let (source, clause, many, count) = self.sources(keyed, write, new, met, values)?;
        let mut text =
            format!("INSERT INTO {} ({}) ", table_of_new(new), given_names(new)).into_bytes();
        text.extend_from_slice(&source);
        let is_prepared = parameters.is_some();
        let parameters = parameters.map(|parameters| Parameters {
            params: parameters.params.get(..count).unwrap_or(parameters.params),
            long: parameters.long.get(..count).unwrap_or(parameters.long),
        });
        begin_new(engine, new, self.state.family)?;
        engine.share(&settings)?;
        let names = names_of(write);
        let ran = run_there(engine, &text, parameters, &names);
        // before the table is dropped, which ends the list
        self.keep_list(engine, &ran, &names);
        let finished = ran.and_then(|(_, diagnostics)| {
            let upsert = Upsert {
                keyed,
                new,
                met,
                settings,
                clause,
                keys: self.keys_of(&met.read)?,
                many,
                is_prepared,
            };
            engine.load_again()?;
            // the query may have read the table itself
            let mut tables: Vec<String> = write.scratch.reads.iter().map(full_name).collect();
            tables.push(full_name(&met.read));
            tables.sort();
            tables.dedup();
            let gone = format!("DROP TEMPORARY TABLE IF EXISTS {}", tables.join(", "));
            engine.put(gone.as_bytes())?;
            self.upsert_rows(engine, &upsert, diagnostics)
        });
        engine.drop_in_the_end(drop_new(new));
        let gone = format!("DROP TEMPORARY TABLE IF EXISTS {}", full_name(&met.read));
        engine.drop_in_the_end(gone);
        finished
    }

    /// Without a strict `sql_mode` a column that has no default gets a value of its type's. It may
    /// stand in a unique key, and servers warn of it in their own ways.
    fn must_have_defaults(&self, new: &NewRows) -> Outcome<()> {
        let given = |index| new.columns.iter().any(|c| c.index == index);
        let mut lacking = new.table.columns.iter().enumerate().filter(|(index, c)| {
            let has_value = c.nullable || c.default.is_some() || c.auto_increment || c.generated;
            !has_value && !given(*index)
        });
        match lacking.next() {
            Some(_) if !self.state.sql_mode.is_strict() => Err(NotUnderstood::Under(
                "ON DUPLICATE KEY UPDATE by the scratch engine, without a value for a column that \
                 has no default,",
                LENIENT,
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// The text that the new rows come from, the clause, whether there may be several rows, and how
    /// many parameters stand before the clause.
    #[allow(clippy::type_complexity)] // four parts of one text
    fn sources(
        &self,
        keyed: &KeyedPlan,
        write: &ScratchWrite,
        new: &NewRows,
        met: &MetRows,
        values: Values,
    ) -> Outcome<(Vec<u8>, Vec<u8>, bool, usize)> {
        let bad = || Failure::refused(&errors::INTERNAL, "the statement's words");
        let sql = values.sql;
        let tokens = lex::tokens(sql, self.state.lex_mode()).map_err(|_| bad())?;
        let end = tokens.iter().rposition(|t| !t.is(b';')).ok_or_else(bad)? + 1;
        // places behind folded rows are counted from the end
        let clause = met.clause(end);
        let bytes = |from: usize, to: usize| -> Outcome<std::ops::Range<usize>> {
            match tokens.get(from..to) {
                Some([first, .., last]) => Ok(first.start..last.end),
                Some([one]) => Ok(one.start..one.end),
                _ => Err(bad()),
            }
        };
        let place = bytes(clause.start, clause.end)?;
        let (source, many) = match &met.values {
            None => {
                let query = bytes(new.query.0, clause.start)?;
                (renamed_part(sql, &tokens, &write.scratch, query)?, true)
            }
            Some(NewValues::Rows(first)) => {
                let mut depth = 0usize;
                let mut rows = 0;
                for token in tokens.get(*first..clause.start).ok_or_else(bad)? {
                    if token.is(b'(') {
                        rows += usize::from(depth == 0);
                        depth += 1;
                    } else if token.is(b')') {
                        depth = depth.saturating_sub(1);
                    }
                }
                (sql[bytes(*first, clause.start)?].to_vec(), rows > 1)
            }
            Some(NewValues::Set(places)) => {
                let mut text = b"VALUES (".to_vec();
                for (n, (from, to)) in places.iter().enumerate() {
                    if n > 0 {
                        text.extend_from_slice(b", ");
                    }
                    text.extend_from_slice(&sql[bytes(*from, *to)?]);
                }
                text.push(b')');
                (text, false)
            }
        };
        let before = |l: &&onionskin_plan::Literal| {
            l.kind == LiteralKind::Parameter && l.start < place.start
        };
        let count = values.literals.iter().filter(before).count();
        let clause = self.with_literals(keyed, values, place)?;
        Ok((source, clause, many, count))
    }

    fn upsert_rows(
        &mut self,
        engine: &mut Engine,
        upsert: &Upsert,
        mut diagnostics: Diagnostics,
    ) -> Outcome<Finished> {
        let met = upsert.met;
        let unique: Vec<UniqueKey> = upsert.keys.iter().map(Key::on_engine).collect();
        let definition = definition_of_met(&met.read, &unique, &met.unknown, self.state.family)?;
        engine.put(definition.as_bytes())?;
        let texts: Vec<&str> = upsert.new.columns.iter().map(|c| c.text.as_str()).collect();
        let mut inserted = Inserted {
            prepared: upsert.is_prepared,
            ..Inserted::default()
        };
        let (mut brought, mut last) = (Brought::default(), String::from("0"));
        loop {
            engine.load_again()?;
            let query = format!(
                "SELECT `onionskin$key`, {} FROM {} WHERE `onionskin$key` > {last} ORDER BY `onionskin$key` LIMIT 1",
                texts.join(", "),
                table_of_new(upsert.new)
            );
            let Some(mut cells) = ask(engine, &query)?.pop() else {
                break;
            };
            let number = inserted.records + 1;
            match cells.first() {
                Some(Some(key)) if key.iter().all(u8::is_ascii_digit) => {
                    last = String::from_utf8_lossy(key).into_owned();
                }
                _ => return Err(broken()),
            }
            cells.remove(0);
            let row = self.row_of(upsert, number, cells)?;
            let row_done = self.upsert_row(engine, upsert, &row, &mut brought, &mut diagnostics);
            let (done, changes) = match row_done {
                Ok(done) => done,
                Err(failure) => {
                    // what was said of earlier rows stands beside it
                    self.current.unclear = !diagnostics.warnings.is_empty();
                    return Err(at_row(failure, number));
                }
            };
            inserted.records += 1;
            inserted.affected += done.affected_rows;
            // a client that counts found rows is told of all that were met
            let is_told = done.affected_rows == 2 || self.state.found_rows;
            inserted.duplicates += u64::from(changes.is_some() && is_told);
            if changes.is_none() && row.generates && done.last_insert_id > 0 {
                if inserted.of_ids == 0 {
                    inserted.first_id = done.last_insert_id;
                }
                inserted.of_ids += 1;
            }
            inserted.last_id = done.last_insert_id;
        }
        let from_query = met.values.is_none();
        let id = match inserted.of_ids {
            // servers forget the last row's own number where a query's rows may be updated instead
            0 if from_query && met.told.is_none() => 0,
            0 => inserted.last_id,
            _ => inserted.first_id,
        };
        if inserted.of_ids > 0 && inserted.records > 1 {
            // to the server, the last of several statements counts
            let sql = format!("SET last_insert_id = {id}");
            self.server.run(sql.as_bytes())?;
        }
        let Inserted {
            records,
            duplicates,
            ..
        } = inserted;
        let info = match upsert.many {
            true => format!("Records: {records}  Duplicates: {duplicates}  Warnings: 0"),
            false => String::new(),
        };
        Ok(Finished {
            done: Done {
                affected_rows: inserted.affected,
                last_insert_id: id,
                warnings: 0,
                info: info.into_bytes(),
            },
            diagnostics,
        })
    }

    fn row_of(&self, upsert: &Upsert, number: u64, cells: Vec<Cell>) -> Outcome<Row> {
        let table = &upsert.new.table;
        let counts = |c: &WrittenColumn| table.columns[c.index].auto_increment;
        let columns = &upsert.new.columns;
        let mut generates =
            table.columns.iter().any(|c| c.auto_increment) && !columns.iter().any(counts);
        let mut literals = Vec::new();
        for (cell, column) in cells.iter().zip(columns) {
            let mut literal = Vec::new();
            match cell {
                None => literal.extend_from_slice(b"NULL"),
                Some(cell) => {
                    let used = ColumnUse {
                        table: Arc::clone(table),
                        index: column.index,
                    };
                    put_literal(&used, column.carried, cell, &self.state, &mut literal)?;
                }
            }
            let is_zero = cell.as_ref().is_some_and(|c| c == b"0");
            if counts(column)
                && is_zero
                && self.state.sql_mode.contains(SqlMode::NO_AUTO_VALUE_ON_ZERO)
            {
                return Err(NotUnderstood::Under(
                    "0 for an AUTO_INCREMENT column",
                    "NO_AUTO_VALUE_ON_ZERO",
                )
                .into());
            }
            generates |= counts(column) && (cell.is_none() || is_zero);
            literals.push(literal);
        }
        Ok(Row {
            number,
            cells,
            literals,
            generates,
        })
    }

    /// Inserts a row, or changes the one that it meets. Returns what the server says, and whether a
    /// row that was met changes; `None` if there was none.
    fn upsert_row(
        &mut self,
        engine: &mut Engine,
        upsert: &Upsert,
        row: &Row,
        brought: &mut Brought,
        diagnostics: &mut Diagnostics,
    ) -> Outcome<(Done, Option<bool>)> {
        let conditions = self.conditions(upsert, row)?;
        let mut sought: Vec<&[u8]> = Vec::new();
        for (n, condition) in conditions.iter().enumerate() {
            let mut sql = format!("SELECT 1 FROM {} WHERE ", upsert.met.read.source).into_bytes();
            sql.extend_from_slice(condition);
            sql.extend_from_slice(b" LIMIT 1");
            if !self.server.rows(&sql)?.is_empty() {
                // A transaction's snapshot may not show a row that stands under an earlier key,
                // which the server meets first.
                sought = conditions[..=n].iter().map(Vec::as_slice).collect();
                break;
            }
        }
        let mut duplicate = None;
        loop {
            let keys = self.met_rows(engine, upsert, &sought, brought)?;
            if keys.is_empty()
                && let Some(failure) = duplicate
            {
                // of a row that cannot be seen, or of another table's, by a trigger
                return Err(failure);
            }
            let numbers = self.numbers_of(engine, upsert, row, keys.len())?;
            let (there, told) = self.on_engine(engine, upsert, row, keys.len())?;
            let (tail, number) = match &there {
                There::Inserted => match self.insert_row(upsert, row, None, b"", diagnostics) {
                    Err(Failure::Server {
                        code,
                        state,
                        message,
                    }) if code == DUPLICATE && duplicate.is_none() && !conditions.is_empty() => {
                        // another session was faster, or the transaction's snapshot is older
                        duplicate = Some(Failure::Server {
                            code,
                            state,
                            message,
                        });
                        sought = conditions.iter().map(Vec::as_slice).collect();
                        continue;
                    }
                    done => {
                        // the row's values were stored before
                        let is_news = |w: &Warning| !OF_STORING.contains(&w.code);
                        diagnostics
                            .warnings
                            .extend(told.into_iter().filter(is_news));
                        return Ok((done?, None));
                    }
                },
                There::Same => {
                    let only = numbers.first().filter(|_| numbers.len() == 1);
                    (self.nothing_assigned(upsert, row, &keys)?, only)
                }
                There::Changed(number, cells) => {
                    let key: &[u8] = keys.get(*number).ok_or_else(broken)?;
                    let tail = self.assignments(upsert, row, key, cells.as_slice())?;
                    (tail, numbers.get(*number))
                }
            };
            let changes = matches!(there, There::Changed(..));
            let number = number.map(Vec::as_slice).filter(|_| upsert.many);
            let done = self.insert_row(upsert, row, number, &tail, diagnostics)?;
            let is_news = |w: &Warning| !OF_STORING.contains(&w.code) || upsert.assigns(&w.message);
            diagnostics
                .warnings
                .extend(told.into_iter().filter(is_news));
            if changes != (done.affected_rows == 2) {
                return Err(NotUnderstood::ChangesOtherwise.into());
            }
            return Ok((done, Some(changes)));
        }
    }

    /// Sends the row, perhaps with a number, and what stands behind it.
    fn insert_row(
        &mut self,
        upsert: &Upsert,
        row: &Row,
        number: Option<&[u8]>,
        behind: &[u8],
        diagnostics: &mut Diagnostics,
    ) -> Outcome<Done> {
        let mut sql = b"INSERT INTO ".to_vec();
        put_name_of(&upsert.new.table, &mut sql);
        let (mut columns, mut literals) = (names(upsert.new), row.literals.clone());
        if let (Some(number), Some(counter)) = (number, upsert.counter()) {
            match upsert.new.columns.iter().position(|c| c.index == counter) {
                Some(at) => literals[at] = number.to_vec(),
                None => {
                    if !columns.is_empty() {
                        columns.push_str(", ");
                    }
                    columns += &quoted(&upsert.new.table.columns[counter].name);
                    literals.push(number.to_vec());
                }
            }
        }
        sql.extend_from_slice(format!(" ({columns}) VALUES (").as_bytes());
        sql.extend_from_slice(&literals.join(&b','));
        sql.push(b')');
        let (done, keyed) = self.run_quietly(&sql, behind, upsert.new)?;
        let mut ours = std::mem::take(&mut self.diagnostics.warnings);
        // MySQL misses a default once in a statement; the engine has said what there is to say of
        // storing the row's values
        ours.retain(|w| match w.code {
            NO_DEFAULT => row.number == 1 || self.state.family == Family::MariaDb,
            code => !OF_STORING.contains(&code),
        });
        ours.iter_mut()
            .for_each(|w| w.message = of_row(&w.message, row.number));
        if done.warnings > 0 {
            let mut shown = self.server.rows(b"SHOW WARNINGS")?;
            let before = shown.len();
            // of VALUES() in the condition
            shown.retain(|row| !is_about_values(row));
            shown.retain(|line| !is_of_storing(line, upsert.new));
            for line in &mut shown {
                if let Some(Some(message)) = line.get_mut(2) {
                    let text = String::from_utf8_lossy(&logical_text(message, &keyed)).into_owned();
                    *message = of_row(&text, row.number).into_bytes();
                }
            }
            let left_out = u16::try_from(before - shown.len()).unwrap_or(u16::MAX);
            diagnostics.keep(&shown, done.warnings.saturating_sub(left_out));
        }
        diagnostics.warnings.extend(ours);
        Ok(done)
    }
}

impl Upsert<'_> {
    /// Whether a warning is about a column to which the clause gives a value.
    fn assigns(&self, message: &str) -> bool {
        let columns = &self.new.table.columns;
        let is_about = |c: &WrittenColumn| names_column(message, &columns[c.index].name);
        self.met.columns.iter().any(is_about)
    }

    /// The column that AUTO_INCREMENT numbers.
    fn counter(&self) -> Option<usize> {
        let columns = &self.new.table.columns;
        columns.iter().position(|c| c.auto_increment)
    }
}

impl Key {
    fn on_engine(&self) -> UniqueKey {
        UniqueKey {
            name: self.name.clone(),
            columns: self.parts.iter().map(|(index, ..)| *index).collect(),
        }
    }
}

fn broken() -> Failure {
    Failure::refused(&errors::INTERNAL, "a row of the scratch engine")
}

/// What a query on the engine returns.
fn ask(engine: &mut Engine, sql: &str) -> Outcome<Rows> {
    engine.settle()?;
    engine.server.rows(sql.as_bytes()).map_err(ours)
}

/// A message of one row, as of a row in the client's statement.
fn of_row(message: &str, number: u64) -> String {
    match message.strip_suffix(" at row 1") {
        Some(head) => format!("{head} at row {number}"),
        None => message.to_string(),
    }
}

fn at_row(failure: Failure, number: u64) -> Failure {
    failure.reworded(|message| of_row(&String::from_utf8_lossy(message), number).into_bytes())
}
