//! Tables from the rows of look-ups.

use std::collections::HashSet;

use onionskin_keys::KeySet;
use onionskin_plan::{HIDDEN, errors};
use onionskin_schema::{ColumnRow, Table, tables_from_rows};

use crate::error::{Failure, Outcome};
use crate::exchange::Rows;

/// The tables that rows of `information_schema.columns` are about.
pub(crate) fn tables(rows: &Rows, keys: &KeySet) -> Outcome<Vec<Table>> {
    let bad = || Failure::refused(&errors::INTERNAL, "the schema's rows");
    let mut decoded = Vec::with_capacity(rows.len());
    for row in rows {
        let mut cells = Vec::with_capacity(row.len());
        for cell in row {
            cells.push(
                cell.as_ref()
                    .map(|b| String::from_utf8_lossy(b).into_owned()),
            );
        }
        decoded.push(cells);
    }
    let mut parsed = Vec::with_capacity(decoded.len());
    for cells in &decoded {
        if cells.len() < 14 {
            return Err(bad());
        }
        let row = ColumnRow::of(cells);
        // a name in another character set would be taken for another table's
        if row.table_name.contains(char::REPLACEMENT_CHARACTER) {
            return Err(Failure::refused(
                &errors::CHARACTER_SET,
                "character_set_results",
            ));
        }
        // they are counted from 1
        if row.ordinal_position == 0 {
            return Err(bad());
        }
        parsed.push(row);
    }
    // where names have no letter case, both spellings of a name find the table
    let mut met = HashSet::new();
    parsed.retain(|row| met.insert(*row));
    let verify = |bytes: &[u8], tag: &[u8; 16]| keys.metadata_key().verify(bytes, tag);
    Ok(tables_from_rows(parsed, verify))
}

/// A table of which the account sees that it is there, and none of its columns: they may be
/// protected.
pub(crate) fn hidden(database: &str, name: &str) -> Table {
    Table {
        damaged: Some(HIDDEN.into()),
        ..Table::named(database, name)
    }
}

/// Whether the server has left out a table because its definition is changing: in the words of
/// either server.
pub(crate) fn is_locked(warnings: &Rows) -> bool {
    let code = |row: &Vec<Option<Vec<u8>>>| row.get(1).cloned().flatten().unwrap_or_default();
    let mut codes = warnings.iter().map(code);
    codes.any(|code| matches!(code.as_slice(), b"1205" | b"1684"))
}
