//! The new table, and which of its columns come from where.

use std::collections::BTreeMap;
use std::sync::Arc;

use onionskin_keys::{KeySet, Suite};
use onionskin_physical::{CreateTable, PhysicalTable};
use onionskin_rowstream::route::{Copied, Route, Transform};
use onionskin_rowstream::session::Session;
use onionskin_schema::{Column, Policy, identifier, lost_defaults, same_name, split_foreign_keys};
use onionskin_value::Family;

use crate::consent::Consent;
use crate::error::{MigrateError, Result};
use crate::facts::{Facts, OF_TABLE, PhysicalColumn, names_table};
use crate::imprint::Known;
use crate::modify;
use crate::operation::Operation;
use crate::preflight::{Names, choose_key};
use crate::sealing::{ColumnChange, Resealing, Tenants};
use crate::specifications::Specifications;

/// Keys and the suite for new cells.
#[derive(Clone)]
pub struct Keys {
    /// The data keys.
    pub set: Arc<KeySet>,
    /// For new cells.
    pub suite: Suite,
    /// Whether MariaDB keeps grams of columns with LIKE.
    pub like_index: bool,
}

/// About how many bytes of rows one statement may read into memory.
const MAX_IN_MEMORY: u64 = 8 << 20;

/// How the new table is made.
pub struct Planned {
    /// Without rows.
    pub statements: Vec<String>,
    /// What must come of it, where columns are protected before or after.
    pub physical: Option<PhysicalTable>,
}

/// The statements that make the new table.
pub fn statements(
    old: &Facts,
    names: &Names,
    operation: &Operation,
    keys: Option<&Keys>,
    family: Family,
) -> Result<Planned> {
    let after = operation.protected_after(&old.logical)?;
    let new = identifier(&names.new);
    if after.is_empty() && !old.logical.is_protected() {
        let mut statements = vec![format!(
            "CREATE TABLE {new} LIKE {}",
            identifier(&old.table)
        )];
        if let Operation::Alter(specifications) = operation {
            Specifications::read(specifications).check()?;
            // What stands there about times is of the server's zone.
            statements.push("SET SESSION time_zone = @@GLOBAL.time_zone".into());
            statements.push(format!("ALTER TABLE {new} {specifications}"));
            statements.push("SET SESSION time_zone = '+00:00'".into());
        }
        return Ok(Planned {
            statements,
            physical: None,
        });
    }
    let keys = keys.ok_or_else(|| {
        MigrateError::Request("protected columns need keys: name the configuration with -c".into())
    })?;
    // Everything that is protected gets new ids, which a writer with an outdated schema does not
    // know. On MySQL the names of CHECK constraints, in which the ids stand, are unique in the
    // database besides.
    // Foreign keys are moved by themselves.
    let (logical, _) = split_foreign_keys(&old.logical_definition(family)?);
    let head = format!("CREATE TABLE {} (", identifier(&old.table));
    let rest = logical
        .strip_prefix(&head)
        .ok_or_else(|| MigrateError::Refused {
            table: old.table.clone(),
            reason: "its definition is not understood".into(),
        })?;
    let rest = match family {
        Family::MySql => without_check_names(rest),
        Family::MariaDb => rest.to_owned(),
    };
    let mut lost = match family {
        Family::MySql => without_default(old),
        Family::MariaDb => Vec::new(),
    };
    let rest = match operation {
        Operation::Modify(texts) => {
            let definitions = modify::read_all(texts)?;
            lost.retain(|name| !definitions.iter().any(|new| same_name(&new.name, name)));
            let mut definitions = definitions.iter();
            definitions.try_fold(rest, |rest, new| new.put(&old.logical, &rest))?
        }
        _ => rest,
    };
    let logical = format!("CREATE TABLE {new} ({rest}");
    let pattern = format!("{}.{}", old.database, names.new);
    let policy = Policy::parse(&BTreeMap::from([(pattern, after)]))
        .map_err(|error| MigrateError::Request(error.to_string()))?;
    let physical = CreateTable {
        sql: &logical,
        database: &old.database,
        default_collation: "utf8mb4_general_ci",
        family,
        policy: &policy,
        keys: &keys.set,
        suite: keys.suite,
        like_index: keys.like_index,
        without_default: &lost,
    }
    .physical()
    .map_err(|reason| MigrateError::Refused {
        table: old.table.clone(),
        reason,
    })?;
    let is_plain = |name: &&String| !physical.columns.iter().any(|c| same_name(&c.name, name));
    let dropped: Vec<String> = lost
        .iter()
        .filter(is_plain)
        .map(|name| format!("ALTER COLUMN {} DROP DEFAULT", identifier(name)))
        .collect();
    let mut statements = vec![physical.sql.clone()];
    if !dropped.is_empty() {
        statements.push(format!("ALTER TABLE {new} {}", dropped.join(", ")));
    }
    Ok(Planned {
        statements,
        physical: Some(physical),
    })
}

/// The columns that allow NULL and have no default, not even NULL.
fn without_default(old: &Facts) -> Vec<String> {
    let is_lost = |column: &&Column| column.nullable && column.default.is_none();
    let protected = old.logical.protected_columns().map(|(column, _)| column);
    let protected = protected.filter(is_lost).map(|column| column.name.clone());
    let is_plain = |name: &String| {
        let column = old.logical.column(name);
        column.is_some_and(|column| column.protection.is_none())
    };
    let plain = lost_defaults(&old.definition).into_iter().filter(is_plain);
    plain.chain(protected).collect()
}

/// MySQL wants the names of CHECK constraints to be unique in the database; it makes up new ones.
/// MariaDB wants that in a table only.
fn without_check_names(elements: &str) -> String {
    let lines = elements.lines().map(|line| {
        let Some(at) = line.find("` CHECK (") else {
            return line.to_owned();
        };
        match line.trim_start().starts_with("CONSTRAINT `") {
            true => format!("  {}", &line[at + 2..]),
            false => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Makes the new table; it must not be there.
pub fn create(
    session: &mut Session,
    old: &Facts,
    names: &Names,
    statements: &[String],
    operation: &Operation,
) -> Result<()> {
    session.run(&format!("USE {}", identifier(&old.database)))?;
    for sql in statements {
        session
            .run(sql)
            .map_err(MigrateError::sql("making the new table"))?;
    }
    let engine = session.text(&format!(
        "SELECT ENGINE FROM information_schema.TABLES WHERE {}",
        names_table(OF_TABLE, &old.database, &names.new)
    ))?;
    if !engine.eq_ignore_ascii_case("InnoDB") {
        return Err(MigrateError::Refused {
            table: format!("{}.{}", old.database, old.table),
            reason: format!(
                "its new engine would be {engine}: only InnoDB keeps readers and writers apart"
            ),
        });
    }
    if operation.tells_number() {
        return Ok(());
    }
    // So that numbers that were given out and deleted again are not given out once more.
    let next = session.text(&format!(
        "SELECT AUTO_INCREMENT FROM information_schema.TABLES WHERE {}",
        names_table(OF_TABLE, &old.database, &old.table)
    ))?;
    if let Ok(next) = next.parse::<u64>()
        && next > 1
    {
        session.run(&format!(
            "ALTER TABLE {} AUTO_INCREMENT = {next}",
            identifier(&names.new)
        ))?;
    }
    Ok(())
}

/// How rows get from the old table into the new one, which exists. What the server may learn more
/// of is in `consent`. Columns of the old table that were `dropped` have nothing but the name in
/// common with those that the new table has under their names.
pub fn route(
    (old, new): (&Known, &Known),
    consent: &Consent,
    keys: Option<&Keys>,
    family: Family,
    dropped: &[String],
) -> Result<Route> {
    if let Some(reason) = &new.logical.damaged {
        return Err(MigrateError::Refused {
            table: new.table.clone(),
            reason: reason.clone(),
        });
    }
    let mut copied = Vec::new();
    let mut changes = Vec::new();
    let mut is_replaced = false;
    for column in &new.logical.columns {
        let is_other = dropped.iter().any(|name| same_name(name, &column.name));
        is_replaced |= is_other;
        let before = old.logical.column(&column.name).filter(|_| !is_other);
        if let Some(before) = before
            && (before.protection.is_some() || column.protection.is_some())
        {
            consent.check(before, column, &new.table)?;
            changes.push(ColumnChange::new(
                (&old.logical, before),
                (&new.logical, column),
                keys,
                family,
            )?);
            continue;
        }
        let Some(there) = new.column(&column.name) else {
            continue;
        };
        if there.generated {
            let here = before.and_then(|before| old.column(&before.name));
            copied.extend(here.and_then(|here| computed_alike(here, there)));
            continue;
        }
        match before.and_then(|before| old.column(&before.name)) {
            Some(here) => copied.push(Copied {
                target: there.name.clone(),
                source: Some(here.name.clone()),
                constant: String::new(),
                converted: conversion(&old.table, here, there)?,
                compared: Some(comparison(here, there)),
                is_generated: false,
            }),
            None => copied.extend(added(new, there)?),
        }
    }
    let changed: Vec<&str> = changes.iter().map(ColumnChange::name).collect();
    let key = choose_key(old, new, |name| {
        !changed
            .iter()
            .any(|changed| changed.eq_ignore_ascii_case(name))
            && copied.iter().any(|copied| {
                !copied.is_generated
                    && copied
                        .source
                        .as_deref()
                        .is_some_and(|s| s.eq_ignore_ascii_case(name))
            })
    })?;
    let is_retyped = changes.iter().any(ColumnChange::is_retyped);
    let sealed = changed.iter().map(|&name| name.to_owned()).collect();
    let transform = match changes.is_empty() {
        true => None,
        false => {
            let tenants = Tenants::of(&new.logical, keys, family)?;
            Some(Arc::new(Resealing::new(changes, tenants)) as Arc<dyn Transform>)
        }
    };
    // Rows that are computed pass through this process, a statement's at once.
    let most_rows = match transform {
        Some(_) => (MAX_IN_MEMORY / old.row_length.max(1)).clamp(1, 50_000) as usize,
        None => 50_000,
    };
    Ok(Route {
        replaces: new.is_no_more_unique_than(old) && !is_replaced && !is_retyped,
        most_rows,
        database: old.database.clone(),
        source: old.table.clone(),
        target: new.table.clone(),
        key,
        copied,
        transform,
        sealed,
    })
}

/// A stored column that both servers compute from others: it is compared, for its expression may
/// depend on who writes the row.
fn computed_alike(old: &PhysicalColumn, new: &PhysicalColumn) -> Option<Copied> {
    let is_stored = |column: &PhysicalColumn| column.generated && !column.extra.contains("virtual");
    let is_same = is_stored(old)
        && is_stored(new)
        && old.expression == new.expression
        && old.column_type == new.column_type;
    is_same.then(|| Copied {
        target: new.name.clone(),
        source: Some(old.name.clone()),
        constant: String::new(),
        converted: None,
        compared: Some(comparison(old, new)),
        is_generated: true,
    })
}

/// A column that the old table does not have: its default, or what ALTER TABLE would put into a
/// column without one.
fn added(new: &Facts, column: &PhysicalColumn) -> Result<Option<Copied>> {
    let refused = |reason: String| MigrateError::Refused {
        table: new.table.clone(),
        reason,
    };
    if column.extra.contains("auto_increment") {
        return Err(refused(format!(
            "an AUTO_INCREMENT column ({}) cannot be added while rows are written: their numbers would change",
            column.name
        )));
    }
    let of_a_zone = matches!(column.data_type.as_str(), "datetime" | "date" | "time");
    let is_computed = column.extra.contains("default_generated")
        || column
            .default
            .as_deref()
            .is_some_and(|text| text.contains('('));
    if of_a_zone && is_computed {
        return Err(refused(format!(
            "the new column {} has a default that may tell the time, which is not one for all rows here: \
             add it with a constant or without a default, and change that on the server afterwards",
            column.name
        )));
    }
    if column.nullable || column.default.is_some() || column.extra.contains("default_generated") {
        return Ok(None);
    }
    let constant = match column.data_type.as_str() {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float"
        | "double" | "bit" | "year" => "0",
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "binary"
        | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => "''",
        other => {
            return Err(refused(format!(
                "the new column {} is NOT NULL and a {other} without a default: give it one",
                column.name
            )));
        }
    };
    Ok(Some(Copied {
        target: column.name.clone(),
        source: None,
        constant: constant.to_owned(),
        converted: None,
        // What the server makes of it depends on the type.
        compared: None,
        is_generated: false,
    }))
}

/// A TIMESTAMP is a moment, everything else that looks like a time is one in some zone. ALTER TABLE
/// takes the session's, which is the server's unless somebody sets another; sessions of ours have
/// UTC.
fn conversion(table: &str, old: &PhysicalColumn, new: &PhysicalColumn) -> Result<Option<String>> {
    // A date that is none has no zone.
    let between = |from: &str, to: &str| {
        Some(format!(
            "IF({{}} = 0, {{}}, CONVERT_TZ({{}}, {from}, {to}))"
        ))
    };
    let (utc, local) = ("'+00:00'", "@@GLOBAL.time_zone");
    Ok(match (old.data_type.as_str(), new.data_type.as_str()) {
        ("timestamp", "timestamp") => None,
        ("timestamp", _) => between(utc, local),
        // Beyond a TIMESTAMP's range CONVERT_TZ gives back what it was given; no TIMESTAMP takes
        // the year 1000, and the statement fails.
        ("datetime" | "date", "timestamp") => between(local, utc).map(|convert| {
            format!(
                "IF({{}} <> 0 AND ({{}} < '1970-01-02' OR {{}} >= '2038-01-18'), '1000-01-01', {convert})"
            )
        }),
        (_, "timestamp") => {
            return Err(MigrateError::Refused {
                table: table.to_owned(),
                reason: format!(
                    "column {} is a {}, and in which time zone it would become a TIMESTAMP cannot be told: make it a DATETIME first",
                    old.name, old.data_type
                ),
            });
        }
        _ => None,
    })
}

/// An expression that has the same value in both tables where the value was copied right.
fn comparison(old: &PhysicalColumn, new: &PhysicalColumn) -> String {
    let exact = match new.data_type.as_str() {
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => {
            "CAST({} AS BINARY)"
        }
        "json" => "CAST(CAST({} AS CHAR) AS BINARY)",
        "enum" | "set" | "bit" => "({} + 0)",
        // As a text, a FLOAT is shown with six digits only.
        "float" => "({} * 1e0)",
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "double" | "date"
        | "datetime" | "timestamp" | "time" | "year" | "binary" | "varbinary" | "tinyblob"
        | "blob" | "mediumblob" | "longblob" => "{}",
        _ => "HEX({})",
    };
    let integer = |column: &PhysicalColumn| column.data_type.ends_with("int");
    let text = |column: &PhysicalColumn| column.charset.is_some() && !is_list(column);
    let becomes_char = new.data_type == "char" && old.data_type != "char";
    if becomes_char && text(old) {
        // Which does not keep the blanks at the end.
        "CAST(TRIM(TRAILING ' ' FROM CONVERT({} USING utf8mb4)) AS BINARY)".into()
    } else if old.column_type == new.column_type && old.charset == new.charset {
        exact.into()
    } else if integer(old) && integer(new) {
        // One of them may show zeros before the number.
        "({} + 0)".into()
    } else if text(old) && text(new) {
        "CAST(CONVERT({} USING utf8mb4) AS BINARY)".into()
    } else {
        // The server converts it, and nobody else knows how.
        "({} IS NULL)".into()
    }
}

fn is_list(column: &PhysicalColumn) -> bool {
    matches!(column.data_type.as_str(), "enum" | "set")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_checks_are_left_to_the_server() {
        let text = "\n  `a` int DEFAULT NULL,\n  CONSTRAINT `t_chk_1` CHECK ((`a` > 1)),\n  CONSTRAINT `x``y` CHECK ((`a` > 2))\n) ENGINE=InnoDB";
        assert_eq!(
            without_check_names(text),
            "\n  `a` int DEFAULT NULL,\n  CHECK ((`a` > 1)),\n  CHECK ((`a` > 2))\n) ENGINE=InnoDB"
        );
    }
}
