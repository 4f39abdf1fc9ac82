//! Row events: images of rows before and after a change.
//!
//! An event holds, for one table, which columns its images have, and then the images one after the
//! other: a bit for each NULL, and the values. With `binlog_row_image=FULL` every column is there;
//! only virtual columns may be left out.

use std::sync::Arc;

use onionskin_wire::Reader;

use super::columns::TableColumns;
use super::error::{BinlogError, BinlogResult};
use super::table_map::{TableMap, column_type, id48};
use super::value::{Value, decode};

/// The values of a row, one for each column of the table; [`Value::Absent`] for a virtual column
/// that the server leaves out.
pub type Row = Vec<Value>;

/// One changed row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowImage {
    /// Before an update or a delete.
    pub before: Option<Row>,
    /// After an insert or an update.
    pub after: Option<Row>,
}

/// What was done to the rows of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// New rows.
    Insert,
    /// Changed rows.
    Update,
    /// Rows that are gone.
    Delete,
}

/// A table whose rows are decoded.
#[derive(Clone, Debug)]
pub struct KnownTable {
    map: TableMap,
    columns: Arc<TableColumns>,
}

impl KnownTable {
    /// Brings together what the event and what the catalogue say; an error if they disagree.
    pub fn new(map: TableMap, columns: Arc<TableColumns>) -> BinlogResult<Self> {
        let changed = |detail: String| {
            Err(BinlogError::TableChanged {
                table: map.table.clone(),
                detail,
            })
        };
        if map.columns.len() != columns.columns.len() {
            return changed(format!(
                "{} columns instead of {}",
                map.columns.len(),
                columns.columns.len()
            ));
        }
        for (mapped, column) in map.columns.iter().zip(&columns.columns) {
            let sign = mapped.unsigned.filter(|_| mapped.ty != column_type::YEAR);
            if sign.is_some_and(|sign| sign != column.unsigned) {
                return changed(format!("the sign of column {}", column.name));
            }
        }
        Ok(Self { map, columns })
    }

    /// What the catalogue says.
    pub fn columns(&self) -> &Arc<TableColumns> {
        &self.columns
    }

    /// The event's own description.
    pub fn map(&self) -> &TableMap {
        &self.map
    }
}

/// The head of a row event: number of the table, flags, bitmaps; what is left are the images.
pub struct RowsEvent<'a> {
    /// Number of the table in its TABLE_MAP event.
    pub table: u64,
    columns: usize,
    before: &'a [u8],
    after: &'a [u8],
    kind: RowKind,
    /// The images; compressed in MariaDB's compressed events.
    pub images: &'a [u8],
}

impl<'a> RowsEvent<'a> {
    /// The number of the table alone.
    pub fn table_of(body: &[u8]) -> BinlogResult<u64> {
        id48(&mut Reader::new(body))
    }

    /// Reads the head. `extended` for the second version of the format, which has a field for
    /// extensions.
    pub fn decode(body: &'a [u8], kind: RowKind, extended: bool) -> BinlogResult<Self> {
        let mut r = Reader::new(body);
        let table = id48(&mut r)?;
        r.skip(2)?;
        if extended {
            let length = usize::from(r.u16()?);
            r.skip(
                length
                    .checked_sub(2)
                    .ok_or(BinlogError::Malformed("row event"))?,
            )?;
        }
        let columns = usize::try_from(r.lenenc_int()?).unwrap_or(usize::MAX);
        let bitmap = columns.div_ceil(8);
        let before = r.bytes(bitmap)?;
        let after = match kind {
            RowKind::Update => r.bytes(bitmap)?,
            _ => before,
        };
        Ok(Self {
            table,
            columns,
            before,
            after,
            kind,
            images: r.rest(),
        })
    }

    /// Decodes images, which may be those of the event or what was compressed in them.
    pub fn rows(&self, images: &[u8], table: &KnownTable) -> BinlogResult<Vec<RowImage>> {
        let present = |bitmap: &[u8]| (0..self.columns).any(|i| bit(bitmap, i));
        // Images without columns would have no length, and no end.
        if self.columns != table.map.columns.len() || !present(self.before) || !present(self.after)
        {
            return Err(BinlogError::Malformed("row event"));
        }
        let mut r = Reader::new(images);
        let mut rows = Vec::new();
        while !r.is_empty() {
            rows.push(match self.kind {
                RowKind::Insert => RowImage {
                    before: None,
                    after: Some(row(&mut r, self.after, table)?),
                },
                RowKind::Delete => RowImage {
                    before: Some(row(&mut r, self.before, table)?),
                    after: None,
                },
                RowKind::Update => RowImage {
                    before: Some(row(&mut r, self.before, table)?),
                    after: Some(row(&mut r, self.after, table)?),
                },
            });
        }
        Ok(rows)
    }
}

fn bit(bitmap: &[u8], i: usize) -> bool {
    bitmap
        .get(i / 8)
        .is_some_and(|byte| byte & (1 << (i % 8)) != 0)
}

fn row(r: &mut Reader<'_>, present: &[u8], table: &KnownTable) -> BinlogResult<Row> {
    let count = table.map.columns.len();
    let in_image = (0..count).filter(|i| bit(present, *i)).count();
    let nulls = r.bytes(in_image.div_ceil(8))?;
    let mut row = Vec::with_capacity(count);
    let mut at = 0;
    for (i, (mapped, column)) in table
        .map
        .columns
        .iter()
        .zip(&table.columns.columns)
        .enumerate()
    {
        if !bit(present, i) {
            if !column.virtual_column {
                return Err(BinlogError::Unsupported {
                    what: format!(
                        "a row event of {} leaves out column {}",
                        table.map.table, column.name
                    ),
                    way_out: "set binlog_row_image=FULL in every session that writes, and begin anew",
                });
            }
            row.push(Value::Absent);
            continue;
        }
        let null = bit(nulls, at);
        at += 1;
        row.push(match null {
            true => Value::Null,
            false => decode(r, mapped, column)?,
        });
    }
    Ok(row)
}
