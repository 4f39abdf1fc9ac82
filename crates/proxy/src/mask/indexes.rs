//! Indexes over masked columns. A server that reads by one gives rows in the order of its values,
//! or those that come first in it, to a statement that names no masked column.

use onionskin_plan::PRIMARY;
use onionskin_schema::Table;

use super::{AccountMasks, Show};
use crate::catalog::literal;
use crate::error::{Failure, Outcome};
use crate::exchange::Server;

/// Notes with each table by which of its indexes the account's statements must not read.
///
/// The server tells of indexes with columns that the account has a privilege on.
pub(crate) fn settle_indexes<'t>(
    server: &mut Server,
    tables: impl Iterator<Item = &'t mut Table>,
    masks: &AccountMasks,
) -> Outcome<()> {
    if !masks.masks() {
        return Ok(());
    }
    for table in tables.filter(|table| !table.view) {
        let masked = table.columns.iter().filter_map(|column| {
            let is_masked = masks.show(table, &column.name) != Show::Clear;
            column.protection.as_ref().filter(|_| is_masked)
        });
        let columns: Vec<String> = masked.flat_map(|p| p.names.all()).map(literal).collect();
        if columns.is_empty() {
            continue;
        }
        // a part of an index that is an expression has no column, and may be of any
        let is_masked = format!("COALESCE(COLUMN_NAME IN ({}), 1)", columns.join(", "));
        let sql = format!(
            "SELECT CAST(INDEX_NAME AS BINARY), CAST(COLUMN_NAME AS BINARY), NON_UNIQUE, {is_masked} \
             FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} \
             ORDER BY 1, SEQ_IN_INDEX",
            literal(&table.database),
            literal(&table.name),
        );
        let rows = server.rows(sql.as_bytes())?;
        let text = |row: &Vec<Option<Vec<u8>>>, at: usize| {
            let bytes = row.get(at).cloned().flatten().unwrap_or_default();
            String::from_utf8(bytes).map_err(|_| Failure::Stale)
        };
        let mut parts = Vec::with_capacity(rows.len());
        for row in &rows {
            let (is_unique, is_masked) = (text(row, 2)? == "0", text(row, 3)? == "1");
            parts.push((text(row, 0)?, text(row, 1)?, is_unique, is_masked));
        }
        let is_hidden = |name: &str| {
            parts
                .iter()
                .any(|(index, .., masked)| *masked && index == name)
        };
        for (index, column, is_unique, is_masked) in &parts {
            if !is_hidden(index) {
                continue;
            }
            if !table.hidden_indexes.contains(index) {
                table.hidden_indexes.push(index.clone());
            }
            if *is_unique && !is_masked {
                table.guarded.push(column.clone());
            }
        }
        // without a primary key, rows may lie in the order of a unique one
        let may_be_clustered = parts.iter().any(|(.., unique, masked)| *unique && *masked);
        if may_be_clustered && !parts.iter().any(|(index, ..)| index == PRIMARY) {
            table.hidden_indexes.push(PRIMARY.to_owned());
        }
    }
    Ok(())
}
