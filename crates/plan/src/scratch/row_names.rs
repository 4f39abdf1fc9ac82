//! What names a row that was read, so that it can be written.
//!
//! A primary key does, in one look-up. A table without one has rows all the same: what stands in
//! all their columns names them, and rows that are alike in every column are one as good as the
//! other, if each statement takes one of them. Sealed cells tell most rows apart, but not all: one
//! UPDATE seals a constant once for all its rows. Finding such a row is a scan of the table, or of
//! an index over one of its columns.

use onionskin_schema::{Column, KeyRole, Table};

use super::Carried;
use super::reads::in_the_clear;
use crate::errors;
pub(super) use crate::plan::NamedBy;
use crate::planner::{Planned, Planner, quoted, refuse};

/// How the server is asked for what names a row.
pub(super) struct RowNames {
    pub parts: Vec<String>,
    pub by: NamedBy,
}

fn no_key<T>(table: &Table) -> Planned<T> {
    refuse(
        &errors::NEEDS_KEY,
        format!("{}.{}", table.database, table.name),
    )
}

/// The names of rows that are changed or deleted.
pub(super) fn row_names(planner: &Planner<'_>, table: &Table) -> Planned<RowNames> {
    if table.primary_key().next().is_some() {
        let parts = planner.key_columns(table)?;
        return Ok(RowNames {
            parts,
            by: NamedBy::Key,
        });
    }
    Ok(RowNames {
        parts: parts_of(table, table.columns.iter())?,
        by: NamedBy::Row,
    })
}

/// What the server compares of these columns.
fn parts_of<'t>(table: &Table, columns: impl Iterator<Item = &'t Column>) -> Planned<Vec<String>> {
    let mut parts = Vec::new();
    for column in columns.filter(|c| !c.generated) {
        if let Some(indexed) = indexed(column) {
            parts.push(indexed);
        }
        let text = match column.enc_name() {
            Some(sealed) => quoted(sealed),
            None => match in_the_clear(column) {
                // of a member its number: an empty one is shown like the value of an error
                _ if is_enumerated(column) => {
                    format!("CAST(({} + 0) AS BINARY)", quoted(&column.name))
                }
                Some((_, text)) => format!("CAST({text} AS BINARY)"),
                None => return no_key(table),
            },
        };
        parts.push(text);
    }
    Ok(parts)
}

/// The names of rows that new ones meet, in which the columns with these places get new values one
/// after the other.
pub(super) fn met_names(
    planner: &Planner<'_>,
    table: &Table,
    assigned: &[usize],
) -> Planned<RowNames> {
    if table.primary_key().next().is_some() {
        return row_names(planner, table);
    }
    let columns = table.columns.iter().enumerate();
    let stay = columns.filter(|(i, _)| !assigned.contains(i));
    let stay: Vec<&Column> = stay.map(|(_, column)| column).collect();
    if stay.iter().all(|column| column.enc_name().is_none()) {
        return no_key(table);
    }
    Ok(RowNames {
        parts: parts_of(table, stay.into_iter())?,
        by: NamedBy::Cells,
    })
}

fn is_enumerated(column: &Column) -> bool {
    let text = column.type_text.to_ascii_lowercase();
    text.starts_with("enum(") || text.starts_with("set(")
}

/// What an index over the column holds, in a form by which the server can look it up.
fn indexed(column: &Column) -> Option<String> {
    if column.key == KeyRole::None {
        return None;
    }
    if column.protection.is_some() {
        return column.equality_column().map(|(name, _)| quoted(name));
    }
    let name = quoted(&column.name);
    let whole = in_the_clear(column).filter(|(carried, text)| {
        let inexact = column.type_text.to_ascii_lowercase().starts_with("double");
        *carried == Carried::Number && *text == name && !inexact
    });
    whole.map(|_| name)
}
