//! The question of a renewal, and the rows of its answer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use onionskin_plan::errors;
use onionskin_schema::{COLUMNS_QUERY_FIELDS, TableName};
use onionskin_schema::{comment::MARK, folded};
use onionskin_value::Family;

use super::lists::DATABASES;
use crate::error::{Failure, Outcome};
use crate::exchange::Rows;

/// As many tables of a database are asked for one by one. More are asked for in one list, for which
/// MariaDB reads all names.
const ONE_BY_ONE: usize = 4;

/// What the renewal of an account asks for.
pub(crate) struct Wanted {
    /// Databases whose tables are listed. The list of the databases is always asked for.
    pub lists: Vec<String>,
    /// Tables of which all is asked for, by database.
    pub whole: BTreeMap<String, BTreeSet<String>>,
    /// Others, of which only is asked whether they have become protected.
    pub others: BTreeMap<String, BTreeSet<String>>,
}

impl Wanted {
    /// Only lists of names.
    pub fn lists(of: Vec<String>) -> Wanted {
        Wanted {
            lists: of,
            whole: BTreeMap::new(),
            others: BTreeMap::new(),
        }
    }
}

/// The question for lists of names, and for tables.
pub(crate) fn question(wanted: &Wanted, family: Family) -> String {
    let fields: Vec<String> = COLUMNS_QUERY_FIELDS
        .split(", ")
        .map(|field| format!("CAST({field} AS BINARY)"))
        .collect();
    let has_tables = !wanted.whole.is_empty() || !wanted.others.is_empty();
    // what has no column is the name of a table
    let rest = ", x''".repeat(if has_tables { fields.len() - 2 } else { 1 });
    let mut sql = String::new();
    if family == Family::MariaDb {
        // a table whose definition changes at this moment is left out, with a warning
        sql += "SET STATEMENT lock_wait_timeout = 0 FOR ";
    }
    let _ = write!(
        sql,
        "SELECT CAST(SCHEMA_NAME AS BINARY), x''{rest} FROM information_schema.SCHEMATA"
    );
    for database in &wanted.lists {
        let _ = write!(
            sql,
            " UNION ALL SELECT CAST(TABLE_SCHEMA AS BINARY), CAST(TABLE_NAME AS BINARY){rest} \
             FROM information_schema.TABLES WHERE TABLE_SCHEMA = {}",
            literal(database)
        );
    }
    let sealed = format!(
        " AND (ORDINAL_POSITION = 1 OR COLUMN_NAME LIKE '%$enc' OR COLUMN_COMMENT LIKE '{MARK}%')"
    );
    for (tables, condition) in [(&wanted.whole, ""), (&wanted.others, &sealed)] {
        for (database, names) in tables {
            let each = match names.len() <= ONE_BY_ONE {
                true => 1,
                false => names.len(),
            };
            let names: Vec<String> = names.iter().map(|n| literal(n)).collect();
            for names in names.chunks(each) {
                let _ = write!(
                    sql,
                    " UNION ALL SELECT {} FROM information_schema.COLUMNS \
                     WHERE TABLE_SCHEMA = {} AND TABLE_NAME IN ({}){condition}",
                    fields.join(", "),
                    literal(database),
                    names.join(", ")
                );
            }
        }
    }
    sql
}

/// A name in a query whose meaning no setting changes. As a constant of its own character set it is
/// compared in the column's, with the column's index.
fn literal(name: &str) -> String {
    let hex: String = name.bytes().map(|b| format!("{b:02x}")).collect();
    format!("_utf8mb4 X'{hex}'")
}

fn text(cell: Option<&Option<Vec<u8>>>) -> String {
    let bytes = cell.and_then(Option::as_deref).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// The name of the table that a row is about.
pub(crate) fn name_of(row: &[Option<Vec<u8>>]) -> TableName {
    TableName::new(text(row.first()), text(row.get(1)))
}

/// The lists in an answer: that of the databases, and those that were asked for. One without tables
/// is a list as well.
pub(crate) fn names_of(rows: Rows, asked: &[String]) -> Outcome<Vec<(String, Vec<String>)>> {
    let mut lists: HashMap<String, Vec<String>> = asked
        .iter()
        .map(|name| (name.clone(), Vec::new()))
        .collect();
    lists.insert(DATABASES.into(), Vec::new());
    for row in &rows {
        let TableName { database, name } = name_of(row);
        if database.contains(char::REPLACEMENT_CHARACTER)
            || name.contains(char::REPLACEMENT_CHARACTER)
        {
            let about = "a name in another character set";
            return Err(Failure::refused(&errors::CHARACTER_SET, about));
        }
        let (of, name) = match name.is_empty() {
            true => (DATABASES.to_owned(), database),
            false => (database, name),
        };
        // servers compare names of databases more freely
        if let Some(list) = lists.get_mut(&of) {
            list.push(name);
        }
    }
    for list in lists.values_mut() {
        list.sort_unstable();
    }
    Ok(lists.into_iter().collect())
}

/// The tables of these rows, and whether one of their rows is a sealed column's.
pub(crate) fn by_name(rows: &Rows) -> HashMap<TableName, bool> {
    let mut found = HashMap::new();
    for row in rows {
        let is_sealed =
            folded(&text(row.get(2))).ends_with("$enc") || text(row.get(12)).starts_with(MARK);
        *found.entry(name_of(row)).or_insert(false) |= is_sealed;
    }
    found
}
