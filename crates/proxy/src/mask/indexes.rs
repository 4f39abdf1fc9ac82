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
        let is_masked = format!("COLUMN_NAME IN ({})", columns.join(", "));
        let sql = format!(
            "SELECT CAST(INDEX_NAME AS BINARY), MIN(NON_UNIQUE), MAX({is_masked}) \
             FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} \
             GROUP BY CAST(INDEX_NAME AS BINARY) ORDER BY 1",
            literal(&table.database),
            literal(&table.name),
        );
        let (mut has_primary, mut may_be_clustered) = (false, false);
        for row in server.rows(sql.as_bytes())? {
            let is = |at: usize, word: &[u8]| row.get(at).and_then(Option::as_deref) == Some(word);
            let name = row.first().cloned().flatten().unwrap_or_default();
            let name = String::from_utf8(name).map_err(|_| Failure::Stale)?;
            has_primary |= name == PRIMARY;
            if is(2, b"1") {
                may_be_clustered |= is(1, b"0");
                table.hidden_indexes.push(name);
            }
        }
        // without a primary key, rows may lie in the order of a unique one
        if may_be_clustered && !has_primary {
            table.hidden_indexes.push(PRIMARY.to_owned());
        }
    }
    Ok(())
}
