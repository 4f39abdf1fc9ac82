//! New protected columns: their ids, and under which key and in which format their cells are
//! sealed.

use onionskin_crypt::CellFormat;
use onionskin_keys::{KeySet, Suite};
use onionskin_plan::Ddl;
use onionskin_schema::{Capabilities, NewColumn};
use onionskin_value::Family;

/// Whether new columns with LIKE get grams: not where no statement would look for one.
pub fn keeps_grams(like_index: bool, family: Family) -> bool {
    like_index || family == Family::MySql
}

/// The name of a key's own group, now that there are ids.
fn key_group(column: &NewColumn, columns: &[NewColumn]) -> Option<String> {
    let group = column.capabilities.join.as_deref()?;
    let key = columns.get(Capabilities::new_key_of(group)?)?;
    Some(Capabilities::key_group(key.table_id, key.column_id))
}

/// The new columns of a definition, under ids of their own and the key of today. `grams` says
/// whether any are kept of those that have LIKE.
pub fn with_ids(ddl: &Ddl, keys: &KeySet, suite: Suite, grams: bool) -> Vec<NewColumn> {
    let table_id = ddl
        .table
        .as_ref()
        .and_then(|t| t.table_id)
        .unwrap_or_else(|| keys.random_table_id());
    let mut columns: Vec<NewColumn> = Vec::new();
    for column in &ddl.new_columns {
        let mut column = column.clone();
        column.table_id = table_id;
        column.key_id = keys.active_key();
        column.without_grams = column.capabilities.like && !grams;
        let cells = match column.capabilities.tenant {
            None => CellFormat::newest(suite),
            Some(_) => CellFormat::of_tenants(suite),
        };
        (column.suite, column.cell_version) = (suite.id(), cells.version());
        loop {
            column.column_id = keys.random_column_id();
            // the first four digits name the companions
            if columns
                .iter()
                .all(|c| c.column_id[..2] != column.column_id[..2])
            {
                break;
            }
        }
        columns.push(column);
    }
    let groups: Vec<Option<String>> = columns.iter().map(|c| key_group(c, &columns)).collect();
    for (column, group) in columns.iter_mut().zip(groups) {
        column.capabilities.join = group.or(column.capabilities.join.take());
    }
    columns
}
