//! Whether a table is what is known of it, by the definition that the server shows.

use onionskin_schema::comment::MARK;
use onionskin_schema::{Column, Protection, Table, same_name};

use crate::exchange::Definition;

/// How the names of sealed columns end.
const SEALED: &str = "$enc";

/// Whether a table is what is known of it, by its definition as it is now. `None`: no table, or one
/// of which nothing is shown.
pub(crate) fn is_shown(known: Option<&Table>, shown: &Definition) -> bool {
    let text = match shown {
        Definition::Absent => return known.is_none(),
        Definition::Unsaid(_) => return false,
        // the account can do nothing with it, but where privileges on columns show it some of them
        Definition::Hidden => return known.is_none_or(|table| table.damaged.is_some()),
        Definition::Columns(names) => {
            return known.is_some_and(|table| table.damaged.is_some() || has_columns(table, names));
        }
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
        word.trim_matches(['`', '"']).ends_with(SEALED)
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

/// Whether these are the columns of a table, as far as plain ones are there by their names and
/// sealed ones by theirs.
fn has_columns(table: &Table, names: &[String]) -> bool {
    let is_there = |name: &str| names.iter().any(|other| same_name(other, name));
    let sealed = names.iter().filter(|name| name.ends_with(SEALED)).count();
    let has = |column: &Column| match column.protection {
        None => is_there(&column.name),
        Some(_) => is_there(&format!("{}{SEALED}", column.name)),
    };
    sealed == table.protected_columns().count() && table.columns.iter().all(has)
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
