//! What the server says of a table: columns, keys, and what is in the way of changing it.

use std::collections::BTreeMap;

use onionskin_keys::KeySet;
use onionskin_rowstream::checkpoint::Imprint;
use onionskin_rowstream::key::{KeyColumn, KeyDefinition, KeyKind, hex_literal};
use onionskin_rowstream::session::{Session, SqlError};
use onionskin_schema::{
    ColumnRow, Table, catalog_query, folded, identifier, same_name, show_create_table,
    split_foreign_keys, tables_from_rows,
};
use onionskin_value::Family;

use crate::error::{MigrateError, Result};
use crate::imprint::imprint_of;

/// A physical column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhysicalColumn {
    pub name: String,
    pub data_type: String,
    pub column_type: String,
    pub charset: Option<String>,
    pub collation: Option<String>,
    pub nullable: bool,
    pub default: Option<String>,
    pub extra: String,
    pub generated: bool,
    /// What it is generated from; empty for others.
    pub expression: String,
    /// In which a protected column's logical definition stands.
    pub comment: String,
}

/// A unique index without parts that can be NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueIndex {
    pub name: String,
    pub columns: Vec<String>,
}

/// A table as it is on the server.
#[derive(Clone, Debug)]
pub struct Facts {
    pub database: String,
    pub table: String,
    pub columns: Vec<PhysicalColumn>,
    pub unique: Vec<UniqueIndex>,
    /// Every unique index as a text that is the same where the same rows meet on it; `None` where
    /// that is not known.
    pub uniqueness: Vec<Option<String>>,
    /// The server's estimate of a row's length in bytes.
    pub row_length: u64,
    /// SHOW CREATE TABLE.
    pub definition: String,
    /// The definition by tags; empty without keys.
    pub imprint: Imprint,
    /// As applications see it; without keys, protected columns make it damaged.
    pub logical: Table,
    /// The server's estimate.
    pub rows: u64,
}

/// The columns of a list of the catalogue in which a table's names stand.
pub(crate) const OF_TABLE: [&str; 2] = ["TABLE_SCHEMA", "TABLE_NAME"];

/// A name as a literal that means the same everywhere.
pub(crate) fn name_literal(name: &str) -> String {
    format!("CONVERT({} USING utf8mb4)", hex_literal(name.as_bytes()))
}

/// A condition that names a table in the server's catalogue, whose columns for the database and the
/// table are these.
pub(crate) fn names_table(columns: [&str; 2], database: &str, table: &str) -> String {
    let [of_database, of_table] = columns;
    format!(
        "{} AND {}",
        is_named(of_database, &name_literal(database)),
        is_named(of_table, &name_literal(table))
    )
}

/// A condition that a column of the server's catalogue holds a name, which is an expression. The
/// catalogue's collation takes `c` for `C` and `a` for `ä`, which are two tables unless names have
/// no letter case.
pub(crate) fn is_named(column: &str, name: &str) -> String {
    format!(
        "{column} = {name} AND (@@lower_case_table_names <> 0 OR CAST({column} AS BINARY) = CAST({name} AS BINARY))"
    )
}

/// Which server it is.
pub(crate) fn family(session: &mut Session) -> std::result::Result<Family, SqlError> {
    Ok(match session.is_mariadb()? {
        true => Family::MariaDb,
        false => Family::MySql,
    })
}

impl Facts {
    /// Reads them; `None` if there is no such table.
    pub fn read(
        session: &mut Session,
        database: &str,
        table: &str,
        keys: Option<&KeySet>,
    ) -> Result<Option<Self>> {
        let doing = MigrateError::sql("reading the table's definition");
        let mut rows = session
            .texts(&catalog_query(database, &[table]))
            .map_err(&doing)?;
        // The catalogue has no order of its own.
        rows.sort_by_key(|row| ColumnRow::of(row).ordinal_position);
        if rows.is_empty() {
            return Ok(None);
        }
        let verify = |bytes: &[u8], tag: &[u8; 16]| {
            keys.is_some_and(|keys| keys.metadata_key().verify(bytes, tag))
        };
        let logical = tables_from_rows(rows.iter().map(|row| ColumnRow::of(row)), verify)
            .into_iter()
            .next();
        let columns: Vec<PhysicalColumn> = rows
            .iter()
            .map(|row| physical(&ColumnRow::of(row)))
            .collect();
        let here = names_table(OF_TABLE, database, table);
        let estimate = session
            .text(&format!(
                "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE {here}"
            ))
            .map_err(&doing)?;
        let row_length = session
            .text(&format!(
                "SELECT AVG_ROW_LENGTH FROM information_schema.TABLES WHERE {here}"
            ))
            .map_err(&doing)?;
        let definition = definition(session, database, table)?;
        let unique = unique_indexes(session, &here).map_err(&doing)?;
        let uniqueness = uniqueness(session, database, table, &columns).map_err(&doing)?;
        let imprint = imprint_of(keys, table, &columns, &definition);
        Ok(logical.map(|logical| Self {
            database: database.to_owned(),
            table: table.to_owned(),
            imprint,
            columns,
            unique,
            uniqueness,
            row_length: row_length.parse().unwrap_or(0),
            definition,
            logical,
            rows: estimate.parse().unwrap_or(0),
        }))
    }

    /// Whether rows that meet on a unique index of this table have to meet on one of `other`, too.
    pub fn is_no_more_unique_than(&self, other: &Self) -> bool {
        self.uniqueness
            .iter()
            .all(|index| index.is_some() && other.uniqueness.contains(index))
    }

    /// The physical column of this name.
    pub fn column(&self, name: &str) -> Option<&PhysicalColumn> {
        self.columns
            .iter()
            .find(|column| same_name(&column.name, name))
    }

    /// The definition as applications see it.
    pub fn logical_definition(&self, family: Family) -> Result<String> {
        if !self.logical.is_protected() {
            return Ok(self.definition.clone());
        }
        show_create_table(&self.definition, &self.logical, family).map_err(|error| {
            MigrateError::Refused {
                table: self.table.clone(),
                reason: error.to_string(),
            }
        })
    }

    /// The key of a unique index, if constants of all its columns can be written and rows be found
    /// by them.
    pub fn key(&self, index: &UniqueIndex) -> Option<KeyDefinition> {
        let columns = index.columns.iter().map(|name| {
            let ordinal = self
                .columns
                .iter()
                .position(|column| same_name(&column.name, name))?;
            let column = &self.columns[ordinal];
            if column.generated {
                return None;
            }
            let kind = match column.data_type.as_str() {
                "tinyint" | "smallint" | "mediumint" | "int" | "bigint" => KeyKind::Integer,
                "decimal" => KeyKind::Decimal,
                "date" | "datetime" | "timestamp" | "time" | "year" => KeyKind::Temporal,
                "char" | "varchar" => KeyKind::Text {
                    charset: column.charset.clone()?,
                },
                "binary" | "varbinary" => KeyKind::Binary,
                _ => return None,
            };
            Some(KeyColumn {
                name: column.name.clone(),
                kind,
                ordinal,
                unsigned: column.column_type.contains("unsigned"),
                column_type: column.column_type.clone(),
            })
        });
        Some(KeyDefinition {
            index: index.name.clone(),
            columns: columns.collect::<Option<Vec<_>>>()?,
        })
    }
}

/// SHOW CREATE TABLE.
pub(crate) fn definition(session: &mut Session, database: &str, table: &str) -> Result<String> {
    let rows = session
        .texts(&format!(
            "SHOW CREATE TABLE {}.{}",
            identifier(database),
            identifier(table)
        ))
        .map_err(MigrateError::sql("reading the table's definition"))?;
    let text = rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().nth(1));
    Ok(text.flatten().unwrap_or_default())
}

/// The comment of a table in the session's database; `None` if there is no such table.
pub(crate) fn comment(session: &mut Session, table: &str) -> Result<Option<String>> {
    let is_table = is_named("TABLE_NAME", &name_literal(table));
    comment_where(
        session,
        &format!("TABLE_SCHEMA = DATABASE() AND {is_table}"),
    )
}

/// Whether a table is in a database.
pub(crate) fn is_in(session: &mut Session, database: &str, table: &str) -> Result<bool> {
    let is_table = names_table(["TABLE_SCHEMA", "TABLE_NAME"], database, table);
    Ok(comment_where(session, &is_table)?.is_some())
}

fn comment_where(session: &mut Session, condition: &str) -> Result<Option<String>> {
    let rows = session
        .texts(&format!(
            "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE {condition}"
        ))
        .map_err(MigrateError::sql("reading the table's definition"))?;
    let row = rows.into_iter().next();
    Ok(row.map(|row| row.into_iter().next().flatten().unwrap_or_default()))
}

/// A definition without what changes by itself: the next number, the order of foreign keys.
pub(crate) fn stable(definition: &str) -> String {
    let (rest, foreign) = split_foreign_keys(definition);
    let words = rest.split(' ');
    let kept: Vec<&str> = words
        .filter(|word| !word.starts_with("AUTO_INCREMENT="))
        .chain(foreign.iter().map(String::as_str))
        .collect();
    kept.join(" ")
}

/// All unique indexes by what decides whether two rows meet: columns, their types and collations,
/// lengths of prefixes.
fn uniqueness(
    session: &mut Session,
    database: &str,
    table: &str,
    columns: &[PhysicalColumn],
) -> std::result::Result<Vec<Option<String>>, SqlError> {
    // STATISTICS has expressions on MySQL only; what has no column here is one.
    let rows = session.named(&format!(
        "SHOW INDEX FROM {}.{}",
        identifier(database),
        identifier(table)
    ))?;
    let mut indexes: BTreeMap<String, Option<Vec<String>>> = BTreeMap::new();
    for row in rows {
        let cell = |name: &str| {
            let found = row.iter().find(|(column, _)| same_name(column, name));
            found.and_then(|(_, value)| value.clone())
        };
        if cell("Non_unique").as_deref() != Some("0") {
            continue;
        }
        let parts = indexes
            .entry(cell("Key_name").unwrap_or_default())
            .or_insert_with(|| Some(Vec::new()));
        let part = cell("Column_name").and_then(|name| {
            let column = columns
                .iter()
                .find(|column| same_name(&column.name, &name))?;
            // What it is computed from may be another thing.
            (!column.generated).then(|| {
                format!(
                    "{} {} {:?} {:?}",
                    identifier(&folded(&column.name)),
                    column.column_type,
                    column.collation,
                    cell("Sub_part")
                )
            })
        });
        match (parts.as_mut(), part) {
            (Some(parts), Some(part)) => parts.push(part),
            _ => *parts = None,
        }
    }
    Ok(indexes
        .into_values()
        .map(|parts| {
            let mut parts = parts?;
            parts.sort();
            Some(parts.join(", "))
        })
        .collect())
}

fn unique_indexes(
    session: &mut Session,
    here: &str,
) -> std::result::Result<Vec<UniqueIndex>, SqlError> {
    let rows = session.texts(&format!(
        "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART, NULLABLE FROM information_schema.STATISTICS \
         WHERE {here} AND NON_UNIQUE = 0 ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX"
    ))?;
    let mut indexes: Vec<(UniqueIndex, bool)> = Vec::new();
    for row in rows {
        let cell = |at: usize| row.get(at).cloned().flatten();
        let name = cell(0).unwrap_or_default();
        if indexes.last().is_none_or(|(last, _)| last.name != name) {
            let columns = Vec::new();
            indexes.push((UniqueIndex { name, columns }, true));
        }
        if let Some((index, usable)) = indexes.last_mut() {
            // An expression has no column; a prefix tells rows apart, but does not find them.
            *usable &= cell(1).is_some() && cell(2).is_none() && cell(3).as_deref() != Some("YES");
            index.columns.extend(cell(1));
        }
    }
    Ok(indexes
        .into_iter()
        .filter(|(_, usable)| *usable)
        .map(|(index, _)| index)
        .collect())
}

pub(crate) fn physical(row: &ColumnRow<'_>) -> PhysicalColumn {
    let extra = row.extra.to_ascii_lowercase();
    PhysicalColumn {
        name: row.column_name.to_owned(),
        data_type: row.data_type.to_ascii_lowercase(),
        column_type: row.column_type.to_ascii_lowercase(),
        charset: row.character_set.map(str::to_owned),
        collation: row.collation.map(str::to_owned),
        nullable: row.is_nullable == "YES",
        default: row.column_default.map(str::to_owned),
        generated: row
            .generation_expression
            .is_some_and(|text| !text.is_empty())
            || extra.contains("virtual generated")
            || extra.contains("stored generated"),
        expression: row.generation_expression.unwrap_or_default().to_owned(),
        comment: row.column_comment.to_owned(),
        extra,
    }
}
