//! New protected columns: their ids, and under which key and in which format their cells are
//! sealed.

use onionskin_crypt::CellFormat;
use onionskin_keys::{KeySet, Suite};
use onionskin_plan::Ddl;
use onionskin_schema::NewColumn;
use onionskin_value::Family;

/// Whether new columns with LIKE get grams: not where no statement would look for one.
pub fn keeps_grams(like_index: bool, family: Family) -> bool {
    like_index || family == Family::MySql
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
        let cells = CellFormat::newest(suite);
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
    columns
}
