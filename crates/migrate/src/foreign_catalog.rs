//! What the server's catalogue tells of foreign keys and their indexes.

use onionskin_rowstream::checkpoint::ForeignKey;
use onionskin_rowstream::session::Session;
use onionskin_schema::{identifier, same_name};
use onionskin_value::Family;

use crate::error::{MigrateError, Result};
use crate::facts::{OF_TABLE, family, is_named, name_literal, names_table};
use crate::preflight::Names;

/// All foreign keys of a table and to it, in a fixed order, but for those of the new table. An
/// error if there are some that the account may not see.
pub(crate) fn read(session: &mut Session, database: &str, table: &str) -> Result<Vec<ForeignKey>> {
    let mut found = visible(session, database, table)?;
    let pointing = found
        .iter()
        .filter(|key| same(&key.parent_database, &key.parent, database, table));
    if pointing_at(session, database, table)?.len() > pointing.count() {
        return Err(MigrateError::Refused {
            table: format!("{database}.{table}"),
            reason: "a foreign key points at it from a table that this account may not see: \
                     drop it first, and add it again afterwards"
                .into(),
        });
    }
    let new = Names::of(table).new;
    found.retain(|key| !same(&key.database, &key.table, database, &new));
    let unique = unique_columns(session, database, table)?;
    for key in &mut found {
        let is_unique = |name: &String| unique.iter().any(|column| same_name(column, name));
        let is_own = same(&key.database, &key.table, database, table);
        key.in_unique_key = is_own && key.columns.iter().any(is_unique);
    }
    Ok(found)
}

fn unique_columns(session: &mut Session, database: &str, table: &str) -> Result<Vec<String>> {
    let rows = session
        .texts(&format!(
            "SELECT COLUMN_NAME FROM information_schema.STATISTICS \
             WHERE {} AND NON_UNIQUE = 0 AND COLUMN_NAME IS NOT NULL",
            names_table(OF_TABLE, database, table)
        ))
        .map_err(MigrateError::sql("reading the foreign keys"))?;
    Ok(rows.into_iter().flatten().flatten().collect())
}

pub(crate) fn visible(
    session: &mut Session,
    database: &str,
    table: &str,
) -> Result<Vec<ForeignKey>> {
    let here = |columns: [&str; 2]| names_table(columns, database, table);
    let rows = session
        .texts(&format!(
            "SELECT k.CONSTRAINT_NAME, k.TABLE_SCHEMA, k.TABLE_NAME, k.COLUMN_NAME, \
             k.REFERENCED_TABLE_SCHEMA, k.REFERENCED_TABLE_NAME, k.REFERENCED_COLUMN_NAME, \
             r.DELETE_RULE, r.UPDATE_RULE \
             FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.REFERENTIAL_CONSTRAINTS r \
             ON r.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND r.TABLE_NAME = k.TABLE_NAME \
             AND CAST(r.TABLE_NAME AS BINARY) = CAST(k.TABLE_NAME AS BINARY) \
             WHERE k.REFERENCED_TABLE_NAME IS NOT NULL AND (({}) OR ({})) \
             ORDER BY k.TABLE_SCHEMA, k.TABLE_NAME, k.CONSTRAINT_NAME, k.ORDINAL_POSITION",
            here(["k.TABLE_SCHEMA", "k.TABLE_NAME"]),
            here(["k.REFERENCED_TABLE_SCHEMA", "k.REFERENCED_TABLE_NAME"])
        ))
        .map_err(MigrateError::sql("reading the foreign keys"))?;
    let mut keys: Vec<ForeignKey> = Vec::new();
    for row in rows {
        let cell = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        let is_next = |last: &ForeignKey| {
            (&last.database, &last.table, &last.name) == (&cell(1), &cell(2), &cell(0))
        };
        if !keys.last().is_some_and(is_next) {
            keys.push(ForeignKey {
                name: cell(0),
                database: cell(1),
                table: cell(2),
                columns: Vec::new(),
                parent_database: cell(4),
                parent: cell(5),
                parent_columns: Vec::new(),
                on_delete: cell(7),
                on_update: cell(8),
                in_unique_key: false,
            });
        }
        if let Some(last) = keys.last_mut() {
            last.columns.push(cell(3));
            last.parent_columns.push(cell(6));
        }
    }
    Ok(keys)
}

/// The names of the foreign keys that point at a table, by the engine's own catalogue: that of the
/// server shows those of tables only that the account may see.
pub(crate) fn pointing_at(
    session: &mut Session,
    database: &str,
    table: &str,
) -> Result<Vec<String>> {
    let (database, table) = (name_literal(database), name_literal(table));
    // MariaDB writes tables there as it calls their files, in a character set of its own.
    let (list, name) = match family(session)? {
        Family::MySql => (
            "INNODB_FOREIGN",
            format!("CONCAT({database}, '/', {table})"),
        ),
        Family::MariaDb => {
            let file = |name: &str| {
                format!("CONVERT(CAST(CONVERT({name} USING filename) AS BINARY) USING utf8mb4)")
            };
            let name = format!("CONCAT({}, '/', {})", file(&database), file(&table));
            ("INNODB_SYS_FOREIGN", name)
        }
    };
    let rows = session
        .texts(&format!(
            "SELECT ID FROM information_schema.{list} WHERE {}",
            is_named("REF_NAME", &name)
        ))
        .map_err(MigrateError::sql("reading the foreign keys"))?;
    // The database of the table that has it, and its name.
    let name = |id: String| match id.split_once('/') {
        Some((_, name)) => name.to_owned(),
        None => id,
    };
    Ok(rows.into_iter().flatten().flatten().map(name).collect())
}

pub(crate) fn same(database: &str, table: &str, other_database: &str, other: &str) -> bool {
    same_name(database, other_database) && same_name(table, other)
}

pub(crate) fn exists(session: &mut Session, database: &str, table: &str) -> Result<bool> {
    let count = session
        .text(&format!(
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE {}",
            names_table(OF_TABLE, database, table)
        ))
        .map_err(MigrateError::sql("reading the foreign keys"))?;
    Ok(count == "1")
}

/// Indexes that are not unique, with their columns.
pub(crate) fn indexes(
    session: &mut Session,
    database: &str,
    table: &str,
) -> Result<Vec<(String, Vec<String>)>> {
    let rows = session
        .texts(&format!(
            "SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS \
             WHERE {} AND NON_UNIQUE = 1 ORDER BY INDEX_NAME, SEQ_IN_INDEX",
            names_table(OF_TABLE, database, table)
        ))
        .map_err(MigrateError::sql("reading the indexes of a foreign key"))?;
    let mut indexes: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows {
        let cell = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        match indexes.last_mut() {
            Some((name, columns)) if *name == cell(0) => columns.push(cell(1)),
            _ => indexes.push((cell(0), vec![cell(1)])),
        }
    }
    Ok(indexes)
}

/// How many rows of a key have no counterpart, as a sentence; nothing if there is none.
pub(crate) fn orphans(session: &mut Session, key: &ForeignKey) -> Result<Option<String>> {
    let pairs = || key.columns.iter().zip(&key.parent_columns);
    let on: Vec<String> = pairs()
        .map(|(own, theirs)| format!("c.{} = p.{}", identifier(own), identifier(theirs)))
        .collect();
    let set: Vec<String> = pairs()
        .map(|(own, _)| format!("c.{} IS NOT NULL", identifier(own)))
        .collect();
    let count = session
        .text(&format!(
            "SELECT COUNT(*) FROM {}.{} c LEFT JOIN {}.{} p ON {} WHERE {} AND p.{} IS NULL",
            identifier(&key.database),
            identifier(&key.table),
            identifier(&key.parent_database),
            identifier(&key.parent),
            on.join(" AND "),
            set.join(" AND "),
            identifier(&key.parent_columns[0])
        ))
        .map_err(MigrateError::sql("looking for rows without a counterpart"))?;
    let told = format!(
        "the foreign key {} of {} was missing for a time and is back: {count} rows of {} have no counterpart in {}",
        key.name, key.table, key.table, key.parent
    );
    Ok((count != "0").then_some(told))
}
