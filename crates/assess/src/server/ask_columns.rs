//! Which columns the proxy protects, by the comments on the server.
//!
//! No key is here, so the tags of the comments are not verified: what is said is what the server
//! says. `onionskin pin` and `enforce` hold it to that.

use onionskin_schema::{COLUMNS_QUERY_FIELDS, ColumnRow, Table, tables_from_rows};

use super::facts::{ProtectedTable, Seen};
use crate::{
    AssessError,
    reader::{MAX_ROWS, Reader, Refusal},
    text::shown,
};

/// Most tables that are told one by one.
pub(super) const MAX_TABLES: usize = 10_000;
/// Tables whose columns are asked for at once.
const AT_ONCE: usize = 50;

/// Tables with sealed columns.
pub(super) fn protected(reader: &mut Reader) -> Result<Seen<Vec<ProtectedTable>>, AssessError> {
    let sql = format!(
        "SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME FROM information_schema.COLUMNS \
         WHERE COLUMN_COMMENT LIKE 'onionskin:%' LIMIT {MAX_ROWS}"
    );
    let names = match reader.raw(&sql)? {
        Ok(names) => names,
        Err(Refusal::Denied(_)) => return Ok(Seen::Hidden("GRANT SELECT ON *.*".into())),
        Err(_) => {
            return Ok(Seen::Hidden(
                "an answer of information_schema.COLUMNS".into(),
            ));
        }
    };
    if names.len() > MAX_TABLES {
        return Ok(Seen::Hidden(format!(
            "fewer than {MAX_TABLES} tables: {} have sealed columns",
            names.len()
        )));
    }
    let names: Vec<(String, String)> = names
        .into_iter()
        .filter_map(|row| {
            let mut cells = row.into_iter().flatten();
            Some((cells.next()?, cells.next()?))
        })
        .collect();
    let mut found = Vec::new();
    for some in names.chunks(AT_ONCE) {
        let Ok(mut tables) = some_of(reader, some)? else {
            return Ok(Seen::Hidden(
                "an answer of information_schema.COLUMNS".into(),
            ));
        };
        let made = made(reader, some)?;
        for table in &mut tables {
            let at = made.iter().find(|(name, _)| *name == table.name);
            table.made = at.map(|(_, made)| *made);
        }
        found.append(&mut tables);
    }
    Ok(Seen::Known(found))
}

fn some_of(
    reader: &mut Reader,
    names: &[(String, String)],
) -> Result<Result<Vec<ProtectedTable>, Refusal>, AssessError> {
    // Each by itself: MariaDB opens every table of a database for any other condition.
    let each: Vec<String> = names
        .iter()
        .map(|(database, name)| {
            format!(
                "SELECT {COLUMNS_QUERY_FIELDS} FROM information_schema.COLUMNS \
                 WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
                crate::text::sql_string(database),
                crate::text::sql_string(name)
            )
        })
        .collect();
    let rows = reader.raw(&each.join(" UNION ALL "))?;
    Ok(rows.map(|rows| {
        let rows = rows.iter().map(|row| ColumnRow::of(row));
        let tables = tables_from_rows(rows, |_, _| true);
        let kept = tables
            .iter()
            .filter(|t| t.is_protected() || t.damaged.is_some());
        kept.filter(|t| !t.view).map(told).collect()
    }))
}

/// When tables were made, in seconds since 1970.
fn made(
    reader: &mut Reader,
    names: &[(String, String)],
) -> Result<Vec<(String, i64)>, AssessError> {
    let each: Vec<String> = names
        .iter()
        .map(|(database, name)| {
            format!(
                "SELECT TABLE_SCHEMA, TABLE_NAME, UNIX_TIMESTAMP(CREATE_TIME) FROM information_schema.TABLES \
                 WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
                crate::text::sql_string(database),
                crate::text::sql_string(name)
            )
        })
        .collect();
    let rows = reader.rows(&each.join(" UNION ALL "))?.unwrap_or_default();
    let made = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter().flatten();
        let name = format!("{}.{}", cells.next()?, cells.next()?);
        Some((name, cells.next()?.parse().ok()?))
    };
    Ok(rows.into_iter().filter_map(made).collect())
}

fn told(table: &Table) -> ProtectedTable {
    let mut told = ProtectedTable {
        name: shown(&format!("{}.{}", table.database, table.name)),
        sealed: Vec::new(),
        plain: Vec::new(),
        damaged: table.damaged.as_deref().map(shown),
        made: None,
    };
    for column in &table.columns {
        match &column.protection {
            Some(protection) => {
                let words = protection.capabilities.list().join(", ");
                told.sealed.push(shown(&match words.as_str() {
                    "" => column.name.clone(),
                    words => format!("{} ({words})", column.name),
                }));
            }
            None => told.plain.push(shown(&column.name)),
        }
    }
    told
}
