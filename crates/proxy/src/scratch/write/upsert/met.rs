//! Which rows a new row meets: the conditions that its unique keys make, and the rows that these
//! find.

use super::super::changes::put_value;
use super::super::values::{payload, put_plain};
use super::{Key, Row, Upsert, ask, broken};
use crate::bind::{Binder, Filled, Values};
use crate::error::{Failure, Outcome};
use crate::hex::put_hex;
use crate::row_update::physical_columns;
use crate::scratch::Brought;
use crate::scratch::engine::Engine;
use crate::scratch::tables::{ROW, full_name, quoted};
use crate::session::Session;
use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{ColumnUse, ScratchRead, Slot, Source};
use onionskin_schema::{Default as ColumnDefault, DefaultLiteral};
use std::sync::Arc;

impl Session {
    /// The table's unique keys, in the order in which the server looks at them.
    pub(super) fn keys_of(&mut self, read: &ScratchRead) -> Outcome<Vec<Key>> {
        let table = &read.table;
        let unclear = |key| {
            let of = format!("{}.{}", table.database, table.name);
            Failure::from(NotUnderstood::UniqueKey(key, of))
        };
        let rows = self
            .server
            .rows(format!("SHOW INDEX FROM {}", read.source).as_bytes())?;
        let mut keys: Vec<Key> = Vec::new();
        for row in &rows {
            let cell = |n: usize| row.get(n).and_then(Option::as_deref);
            let text = |n: usize| cell(n).map(|c| String::from_utf8_lossy(c).into_owned());
            if cell(1) != Some(b"0") {
                continue;
            }
            let (Some(name), Some(column)) = (text(2), text(4)) else {
                return Err(unclear("a unique key over an expression"));
            };
            if cell(7).is_some() {
                return Err(unclear("a unique key over the beginnings of values"));
            }
            let part = table.columns.iter().enumerate().find_map(|(index, c)| {
                let used = ColumnUse {
                    table: Arc::clone(table),
                    index,
                };
                if c.protection.is_none() {
                    return c
                        .name
                        .eq_ignore_ascii_case(&column)
                        .then_some((index, None));
                }
                physical_columns(&used)
                    .find(|(n, _)| n.eq_ignore_ascii_case(&column))
                    .map(|(_, purpose)| (index, Some(purpose)))
            });
            let Some((index, purpose)) = part else {
                return Err(unclear("a unique key"));
            };
            let part = (index, column, purpose);
            match keys.last_mut().filter(|k| k.name == name) {
                Some(key) => key.parts.push(part),
                None => keys.push(Key {
                    name,
                    parts: vec![part],
                }),
            }
        }
        Ok(keys)
    }

    /// For each unique key of which the row has all values, the condition that finds them.
    pub(super) fn conditions(&mut self, upsert: &Upsert, row: &Row) -> Outcome<Vec<Vec<u8>>> {
        let family = self.state.family;
        let table = &upsert.new.table;
        let none = Values::none();
        let mut binder = Binder::new(upsert.keyed, &self.state, none, &mut self.buffers);
        let mut conditions = Vec::new();
        'keys: for key in &upsert.keys {
            let mut sql = Vec::new();
            for (index, name, purpose) in &key.parts {
                let column = &table.columns[*index];
                let used = ColumnUse {
                    table: Arc::clone(table),
                    index: *index,
                };
                if !sql.is_empty() {
                    sql.extend_from_slice(b" AND ");
                }
                sql.extend_from_slice(quoted(name).as_bytes());
                sql.extend_from_slice(b" = ");
                let given = upsert.new.columns.iter().position(|c| c.index == *index);
                if column.auto_increment && row.generates {
                    continue 'keys;
                }
                let cell = given.map(|n| (&upsert.new.columns[n], row.cells.get(n)));
                match (cell, purpose) {
                    (Some((_, Some(None) | None)), _) => continue 'keys,
                    (Some((column, Some(Some(cell)))), Some(purpose)) => {
                        let value = payload(&used, column.carried, cell, family)?;
                        let sealed = column.sealed.ok_or_else(broken)?;
                        put_value(&mut binder, &used, (sealed, *purpose), &value, &mut sql)?;
                    }
                    (Some((column, Some(Some(cell)))), None) => {
                        put_plain(&used, column.carried, cell, &self.state, &mut sql)?;
                    }
                    // left out: the default
                    (None, purpose) => {
                        let has_literal = match &column.default {
                            Some(ColumnDefault::Literal(DefaultLiteral::Value(_))) => true,
                            Some(ColumnDefault::Server(text)) => !text.contains('('),
                            _ => false,
                        };
                        if !has_literal {
                            // it is NULL, or new every time, or an error
                            continue 'keys;
                        }
                        let Some(purpose) = *purpose else {
                            let text = format!("DEFAULT({})", quoted(name));
                            sql.extend_from_slice(text.as_bytes());
                            continue;
                        };
                        let mut reads = upsert.met.read.columns.iter().zip(&upsert.met.read.fetch);
                        let fetched = reads.find(|(c, _)| c.index == *index);
                        let sealed = fetched.and_then(|(_, item)| item.open).ok_or_else(broken)?;
                        let slot = Slot {
                            column: sealed.0,
                            purpose,
                            source: Source::Default,
                            among: None,
                        };
                        match binder.fill(&slot, 0, 1)? {
                            Filled::Null => continue 'keys,
                            Filled::Bytes(bytes) => put_hex(bytes, &mut sql),
                        }
                    }
                }
            }
            conditions.push(sql);
        }
        Ok(conditions)
    }

    /// Reads the rows under these conditions, locked, into the engine's table. The table is emptied
    /// before. Returns what names the rows.
    pub(super) fn met_rows(
        &mut self,
        engine: &mut Engine,
        upsert: &Upsert,
        conditions: &[&[u8]],
        brought: &mut Brought,
    ) -> Outcome<Vec<Vec<u8>>> {
        let read = &upsert.met.read;
        engine.put(format!("DELETE FROM {}", full_name(read)).as_bytes())?;
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for condition in conditions {
            let mut sql = Vec::new();
            let none = Values::none();
            let mut binder = Binder::new(upsert.keyed, &self.state, none, &mut self.buffers);
            binder.text(&read.text, 1, &mut sql)?;
            sql.extend_from_slice(b" WHERE ");
            sql.extend_from_slice(condition);
            for key in &keys {
                // it is there already
                sql.extend_from_slice(b" AND NOT (");
                sql.extend_from_slice(key);
                sql.push(b')');
            }
            sql.extend_from_slice(format!(" LIMIT 2{}", read.lock).as_bytes());
            let question = self.server.put_select(&sql)?;
            self.server.flush()?;
            let found =
                self.read_table(question, engine, upsert.keyed, read, keys.len(), brought)?;
            keys.extend(found);
        }
        engine.settle()?;
        Ok(keys)
    }

    /// The numbers, by AUTO_INCREMENT, of the `met` rows, if the new one is to get one. If a row
    /// meets another, a server gives its number to the statement's next row. Here the next row is a
    /// statement of its own. So a row that is known to meet another brings the other's number.
    pub(super) fn numbers_of(
        &mut self,
        engine: &mut Engine,
        upsert: &Upsert,
        row: &Row,
        met: usize,
    ) -> Outcome<Vec<Vec<u8>>> {
        let Some(counter) = upsert.counter().filter(|_| met > 0 && row.generates) else {
            return Ok(Vec::new());
        };
        let name = quoted(&upsert.new.table.columns[counter].name);
        let there = full_name(&upsert.met.read);
        let query = format!("SELECT {name} FROM {there} ORDER BY {ROW}");
        let mut numbers = Vec::new();
        for row in ask(engine, &query)? {
            let number = row.into_iter().next().flatten().ok_or_else(broken)?;
            if number == b"0" {
                // in the engine's table that stands for the number to come
                return Err(NotUnderstood::NumberZero(name).into());
            }
            numbers.push(number);
        }
        match numbers.len() == met {
            true => Ok(numbers),
            false => Err(broken()),
        }
    }
}
