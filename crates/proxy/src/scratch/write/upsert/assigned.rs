//! The client's clause for one row. It runs on the engine, and is written down as constants for the
//! server, on the condition that the server meets the very row that was read.

use super::super::changes::{put_value, row_number};
use super::super::rows::names;
use super::super::run_there;
use super::super::values::{payload, put_plain};
use super::{Cell, LENIENT, Row, Upsert, ask, broken, of_row};
use crate::bind::{Binder, Values};
use crate::diagnostics::DEPRECATED;
use crate::error::{Failure, Outcome};
use crate::row_update::physical_columns;
use crate::scratch::engine::Engine;
use crate::scratch::tables::{CHANGED, ROW, full_name, quoted};
use crate::server_errors::{NO_DEFAULT, NOT_NULL};
use crate::session::Session;
use onionskin_plan::ColumnUse;
use onionskin_plan::errors::NotUnderstood;
use onionskin_value::Warning;
use std::sync::Arc;

/// What the engine has made of a row.
pub(super) enum There {
    /// It has met none.
    Inserted,
    /// The row that it has met stays as it is.
    Same,
    /// The row with this number has changed: the assigned cells.
    Changed(usize, Vec<Cell>),
}

impl Session {
    /// Runs the client's clause for one row and the `met` ones. Returns what became of it, and the
    /// warnings.
    pub(super) fn on_engine(
        &mut self,
        engine: &mut Engine,
        upsert: &Upsert,
        row: &Row,
        met: usize,
    ) -> Outcome<(There, Vec<Warning>)> {
        let there = full_name(&upsert.met.read);
        engine.share(&upsert.settings)?;
        let mut sql = format!("INSERT INTO {there} ({}) VALUES (", names(upsert.new)).into_bytes();
        for (n, (literal, column)) in row.literals.iter().zip(&upsert.new.columns).enumerate() {
            if n > 0 {
                sql.push(b',');
            }
            match upsert.new.table.columns[column.index].auto_increment && row.generates {
                true => sql.push(b'0'),
                false => sql.extend_from_slice(literal),
            }
        }
        sql.extend_from_slice(b") ");
        sql.extend_from_slice(&upsert.clause);
        let is_lenient = upsert.many && !self.state.sql_mode.is_strict();
        let ran = run_there(engine, &sql, None, &[]);
        let (_, told) = ran.map_err(|failure| match failure {
            // an error where it is the only row; among several, a value of the type's
            Failure::Server { code: NOT_NULL, .. } if is_lenient => {
                let about = "NULL for a column that is NOT NULL, behind several rows,";
                NotUnderstood::Under(about, LENIENT).into()
            }
            _ => failure,
        })?;
        engine.load_again()?;
        let mut query = format!("SELECT {ROW}");
        for column in &upsert.met.columns {
            query.push_str(", ");
            query.push_str(&column.text);
        }
        query += &format!(" FROM {there} WHERE {CHANGED} IS NOT NULL OR {ROW} IS NULL");
        let mut rows = ask(engine, &query)?;
        let changed = match (rows.pop(), rows.is_empty(), met) {
            (None, _, 1..) => There::Same,
            (Some(mut cells), true, _) => {
                match (row_number(cells.first().and_then(|c| c.as_deref())), met) {
                    (Some(number), 1..) => {
                        cells.remove(0);
                        There::Changed(number, cells)
                    }
                    (None, 0) => There::Inserted,
                    _ => return Err(broken()),
                }
            }
            _ => return Err(broken()),
        };
        let warnings = told.warnings.into_iter().filter(|w| match w.code {
            // the server says it
            NO_DEFAULT => false,
            // once a statement, and where it is prepared, then
            DEPRECATED => row.number == 1 && !upsert.is_prepared,
            _ => true,
        });
        let mut warnings: Vec<Warning> = warnings.collect();
        warnings
            .iter_mut()
            .for_each(|w| w.message = of_row(&w.message, row.number));
        Ok((changed, warnings))
    }

    /// The clause for the server behind a row that changes none of the rows that `keys` name. If
    /// the row meets another one, or one with other values than the clause has read, that one
    /// changes, and the change is taken back.
    pub(super) fn nothing_assigned(
        &mut self,
        upsert: &Upsert,
        row: &Row,
        keys: &[Vec<u8>],
    ) -> Outcome<Vec<u8>> {
        let table = &upsert.new.table;
        let mut guards = Vec::new();
        for key in keys {
            guards.push(format!("({})", self.guard(upsert, row, key)?));
        }
        let mut sql = b" ON DUPLICATE KEY UPDATE ".to_vec();
        if let Some(told) = upsert.met.told {
            let name = quoted(&table.columns[told].name);
            sql.extend_from_slice(format!("{name} = LAST_INSERT_ID({name}), ").as_bytes());
        }
        let mut sealed = table.protected_columns().filter_map(|(c, _)| c.enc_name());
        let name = quoted(sealed.next().ok_or_else(broken)?);
        let guard = guards.join(" OR ");
        let part = format!("{name} = IF({guard}, {name}, CONCAT(IFNULL({name}, ''), x'00'))");
        sql.extend_from_slice(part.as_bytes());
        Ok(sql)
    }

    /// What stands behind the row for the server, with the new cells of the row that `key` names.
    pub(super) fn assignments(
        &mut self,
        upsert: &Upsert,
        row: &Row,
        key: &[u8],
        cells: &[Cell],
    ) -> Outcome<Vec<u8>> {
        let table = &upsert.new.table;
        let family = self.state.family;
        let mut sql = b" ON DUPLICATE KEY UPDATE ".to_vec();
        if let Some(told) = upsert.met.told {
            let name = quoted(&table.columns[told].name);
            sql.extend_from_slice(format!("{name} = LAST_INSERT_ID({name})").as_bytes());
        }
        let guard = self.guard(upsert, row, key)?;
        let none = Values::none();
        let mut binder = Binder::new(upsert.keyed, &self.state, none, &mut self.buffers);
        // those that the condition reads come last
        let (mut others, mut of_key) = (Vec::new(), Vec::new());
        for (column, cell) in upsert.met.columns.iter().zip(cells) {
            let used = ColumnUse {
                table: Arc::clone(table),
                index: column.index,
            };
            let value = match (cell, column.sealed) {
                (Some(cell), Some(_)) => Some(payload(&used, column.carried, cell, family)?),
                _ => None,
            };
            let mut put = |name: &str, text: &[u8]| {
                let name = quoted(name);
                let mut part = format!("{name} = IF({guard}, ").into_bytes();
                part.extend_from_slice(text);
                part.extend_from_slice(format!(", {name})").as_bytes());
                match upsert.met.read.key.contains(&name) {
                    true => of_key.push(part),
                    false => others.push(part),
                }
            };
            let Some(sealed) = column.sealed else {
                let mut text = Vec::new();
                match cell {
                    None => text.extend_from_slice(b"NULL"),
                    Some(cell) => put_plain(&used, column.carried, cell, &self.state, &mut text)?,
                }
                put(&used.column().name, &text);
                continue;
            };
            for (name, purpose) in physical_columns(&used) {
                let mut text = Vec::new();
                match &value {
                    None => text.extend_from_slice(b"NULL"),
                    Some(value) => {
                        put_value(&mut binder, &used, (sealed, purpose), value, &mut text)?
                    }
                }
                put(name, &text);
            }
        }
        if of_key.len() > 1 {
            return Err(NotUnderstood::Within(
                "several columns of the primary key",
                "ON DUPLICATE KEY UPDATE",
            )
            .into());
        }
        for (n, part) in others.iter().chain(&of_key).enumerate() {
            if n > 0 || upsert.met.told.is_some() {
                sql.extend_from_slice(b", ");
            }
            sql.extend_from_slice(part);
        }
        Ok(sql)
    }

    /// The condition that the server has met the very row, and that the clause has read the new
    /// row's values as they are.
    pub(super) fn guard(&self, upsert: &Upsert, row: &Row, key: &[u8]) -> Outcome<String> {
        let mut guard = String::from_utf8(key.to_vec()).map_err(|_| broken())?;
        for &index in &upsert.met.given {
            let column = &upsert.new.table.columns[index];
            let name = quoted(&column.name);
            let given = upsert.new.columns.iter().position(|c| c.index == index);
            let value = match given.map(|n| (&upsert.new.columns[n], row.cells.get(n))) {
                None if column.default.is_none() => continue,
                None => format!("DEFAULT({name})"),
                Some((_, None | Some(None))) => "NULL".into(),
                Some((c, Some(Some(cell)))) => {
                    let used = ColumnUse {
                        table: Arc::clone(&upsert.new.table),
                        index,
                    };
                    let mut text = Vec::new();
                    put_plain(&used, c.carried, cell, &self.state, &mut text)?;
                    String::from_utf8(text).map_err(|_| broken())?
                }
            };
            guard += &format!(" AND VALUES({name}) <=> {value}");
        }
        Ok(guard)
    }
}
