//! Whether a table is what is known of it, by the definition that the server shows.

use onionskin_schema::comment::MARK;
use onionskin_schema::{Protection, Table};

use crate::exchange::Definition;

/// Whether a table is what is known of it, by its definition as it is now. `None`: no table, or one
/// of which nothing is shown.
pub(crate) fn is_shown(known: Option<&Table>, shown: &Definition) -> bool {
    let text = match shown {
        Definition::Absent => return known.is_none(),
        // the account can do nothing with it
        Definition::Hidden => return true,
        Definition::Table(text) => text,
        Definition::View(view) => {
            let shows = |table: &Table| match table.is_protected() {
                false => view.reads_nothing_sealed(),
                true => table.damaged.is_none() && has_ids(&view.tables.concat(), table),
            };
            return known.is_some_and(shows);
        }
    };
    let is_sealed = |line: &str| {
        let word = line.trim_start().split(' ').next().unwrap_or_default();
        word.trim_matches(['`', '"']).ends_with("$enc")
    };
    let mark = format!("COMMENT '{MARK}");
    let marks = text.lines().filter(|line| line.contains(&mark)).count();
    let sealed = text.lines().filter(|line| is_sealed(line)).count();
    // one of the session's own stands before others
    if text.starts_with("CREATE TEMPORARY TABLE") {
        return marks == 0 && sealed == 0;
    }
    let Some(table) = known else {
        return false;
    };
    let count = table.protected_columns().count();
    table.damaged.is_none() && (marks, sealed) == (count, count) && has_ids(text, table)
}

/// Whether the ids of a table and of its protected columns stand in a definition, in the comments
/// of sealed columns.
fn has_ids(text: &str, table: &Table) -> bool {
    let ids = |protection: &Protection| {
        let (column, table) = (&protection.column_id, table.table_id.unwrap_or_default());
        format!("|{}|{}|", hex(column), hex(&table))
    };
    let mut columns = table.protected_columns();
    columns.all(|(_, protection)| text.contains(&ids(protection)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
