//! The writing half: the text of an `UPDATE` that sets the cells of some rows.

use onionskin_plan::{ColumnUse, Purpose, RowUpdate, Slot, Source, Text};
use onionskin_wire::rows::{TextRow, put_text_cell};

use super::Row;
use crate::bind::{Binder, Filled, Values, put_bytes, put_filled};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::session::Session;

/// An `UPDATE`, and what its row has afterwards.
pub(super) struct Write {
    pub sql: Vec<u8>,
    /// The sealed cells that the statement leaves behind, as in a text row; empty when the
    /// statement writes several rows.
    pub cells: Vec<u8>,
}

impl Session {
    /// `UPDATE t SET … WHERE condition AND cell <=> x'…' AND …`: writes one row if it still has the
    /// cells that it was read with, or is remembered with. The client's whole condition stands
    /// there again: what it tests may have changed with the row.
    pub(super) fn guarded_write(
        &mut self,
        keyed: &KeyedPlan,
        update: &RowUpdate,
        values: Values,
        condition: &Text,
        row: &Row,
    ) -> Outcome<Write> {
        let mut binder = Binder::new(keyed, &self.state, values, &mut self.buffers);
        binder.checks_moments = true;
        let mode = self.state.lex_mode();
        let mut write = assignments(&mut binder, update, std::slice::from_ref(row))?;
        let sql = &mut write.sql;
        sql.push(b' ');
        binder.text(condition, 1, sql)?;
        for (cell, assign) in TextRow::new(&row.cells).zip(&update.assign) {
            sql.extend_from_slice(b" AND ");
            put_name(keyed.plan.columns[assign.column].sealed(), sql);
            sql.extend_from_slice(b" <=> ");
            match cell.map_err(Failure::Backend)? {
                None => sql.extend_from_slice(b"NULL"),
                Some(bytes) => put_bytes(bytes, mode, sql),
            }
        }
        Ok(write)
    }

    /// `UPDATE t SET plain, k$enc = CASE … END, … WHERE keys`: writes rows that are locked. If the
    /// statement has ORDER BY, they are written one after the other as they stand here, because a
    /// row may take the value in a unique index that another one has just given up.
    pub(super) fn locked_write(
        &mut self,
        keyed: &KeyedPlan,
        update: &RowUpdate,
        values: Values,
        rows: &[Row],
    ) -> Outcome<Write> {
        let mut binder = Binder::new(keyed, &self.state, values, &mut self.buffers);
        binder.checks_moments = true;
        let mut write = assignments(&mut binder, update, rows)?;
        let sql = &mut write.sql;
        sql.extend_from_slice(b" WHERE ");
        for (i, row) in rows.iter().enumerate() {
            if i > 0 {
                sql.extend_from_slice(b" OR ");
            }
            sql.push(b'(');
            sql.extend_from_slice(&row.condition);
            sql.push(b')');
        }
        if update.ordered && rows.len() > 1 {
            sql.extend_from_slice(b" ORDER BY CASE");
            for (place, row) in rows.iter().enumerate() {
                sql.extend_from_slice(b" WHEN ");
                sql.extend_from_slice(&row.condition);
                sql.extend_from_slice(format!(" THEN {place}").as_bytes());
            }
            sql.extend_from_slice(b" END");
        }
        Ok(write)
    }
}

/// `UPDATE t SET …`. Of several rows, each takes its value from a `CASE`.
fn assignments(binder: &mut Binder, update: &RowUpdate, rows: &[Row]) -> Outcome<Write> {
    let mut sql = Vec::with_capacity(512);
    let mut cells = Vec::new();
    sql.extend_from_slice(b"UPDATE ");
    sql.extend_from_slice(update.target.as_bytes());
    sql.extend_from_slice(b" SET ");
    let mut first = true;
    let keyed = binder.keyed;
    let mode = binder.state.lex_mode();
    let single = match rows {
        [row] => Some(row),
        _ => None,
    };
    let mut old_cells = TextRow::new(single.map_or(&[], |row| &row.cells));
    for (i, assign) in update.assign.iter().enumerate() {
        let used = &keyed.plan.columns[assign.column];
        let old_cell = if old_cells.is_empty() {
            None
        } else {
            Some(old_cells.raw_cell().map_err(Failure::Backend)?)
        };
        for (name, purpose) in physical_columns(used) {
            if !std::mem::take(&mut first) {
                sql.extend_from_slice(b", ");
            }
            put_name(name, &mut sql);
            sql.extend_from_slice(b" = ");
            let slot = Slot {
                column: assign.column,
                purpose,
                source: Source::Null,
                among: None,
            };
            if single.is_none() {
                sql.extend_from_slice(b"CASE");
            }
            for row in rows {
                if single.is_none() {
                    sql.extend_from_slice(b" WHEN ");
                    sql.extend_from_slice(&row.condition);
                    sql.extend_from_slice(b" THEN ");
                }
                binder.tenant = row.tenant;
                let seals = single.is_some() && purpose == Purpose::Seal;
                match &row.values[i] {
                    None => {
                        put_name(name, &mut sql);
                        if let Some(cell) = old_cell.filter(|_| seals) {
                            cells.extend_from_slice(cell);
                        }
                    }
                    Some(new) => {
                        let filled = match new {
                            None => Filled::Null,
                            Some(payload) => binder.fill_payload(&slot, payload)?,
                        };
                        let bytes = match filled {
                            Filled::Null => None,
                            Filled::Bytes(bytes) => Some(bytes),
                        };
                        match bytes {
                            None => sql.extend_from_slice(b"NULL"),
                            Some(bytes) => put_filled(used, purpose, bytes, mode, &mut sql),
                        }
                        if seals {
                            put_text_cell(&mut cells, bytes);
                        }
                    }
                }
            }
            if single.is_none() {
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
    Ok(Write { sql, cells })
}

/// A protected column's physical columns, and what they hold.
pub(crate) fn physical_columns(used: &ColumnUse) -> impl Iterator<Item = (&str, Purpose)> {
    let column = used.column();
    std::iter::once((used.sealed(), Purpose::Seal))
        .chain(column.eq_name().map(|n| (n, Purpose::StoreEquality)))
        .chain(column.ord_name().map(|n| (n, Purpose::StoreOrder)))
        .chain(column.gram_name().map(|n| (n, Purpose::StoreGrams)))
}

/// Appends an identifier in backticks.
fn put_name(name: &str, sql: &mut Vec<u8>) {
    sql.push(b'`');
    for byte in name.bytes() {
        if byte == b'`' {
            sql.push(b'`');
        }
        sql.push(byte);
    }
    sql.push(b'`');
}
