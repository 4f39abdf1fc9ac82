//! Which tables rows may move between: those that the migration began with and made, and no others.
//!
//! The server keeps both tables, so it can put others in their places at any time. What is known of
//! them is kept in the checkpoint as an [`Imprint`], under its tag. A [`Known`] table is one whose
//! definition was read just now and is that of its imprint, or, once, the one that was planned.
//! Only known tables make a route for rows ([`crate::definition::route`]), and a route does not
//! look at definitions again: what a row's values become is decided here.

use onionskin_keys::{KeySet, MetadataKey};
use onionskin_physical::PhysicalTable;
use onionskin_rowstream::checkpoint::{Imprint, State};
use onionskin_rowstream::session::Session;
use onionskin_schema::{
    ColumnRow, catalog_query, constraint_name, guard_name, identifier, same_name,
    split_foreign_keys,
};
use onionskin_value::{Family, SqlType};

use crate::error::{MigrateError, Result};
use crate::facts::{Facts, PhysicalColumn, definition, physical, stable};

/// What the tagged bytes begin with; see [`Imprint`].
const OF_COLUMN: &str = "onionskin imprint 1 column";
const OF_DEFINITION: &str = "onionskin imprint 1 definition";

/// A table of which it is known that it is the one that is meant.
#[derive(Clone, Debug)]
pub(crate) struct Known(Facts);

impl std::ops::Deref for Known {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.0
    }
}

impl Known {
    /// The table that the command line names, when a migration begins. Its protected columns are
    /// authentic.
    pub fn at_the_beginning(facts: Facts) -> Self {
        Self(facts)
    }

    /// A table whose imprint was noted.
    pub fn noted(facts: Facts, imprint: &Imprint) -> Result<Self> {
        must_be(&facts.table, &facts.imprint, imprint)?;
        Ok(Self(facts))
    }

    /// The table that was made a moment ago from `old`. With protected columns before or after,
    /// every column must be what `planned` says, and all but the `modified` ones what they were.
    pub fn made(
        facts: Facts,
        planned: Option<&PhysicalTable>,
        old: &Facts,
        modified: &[String],
        family: Family,
    ) -> Result<Self> {
        let exchanged = |what: String| MigrateError::Exchanged {
            table: facts.table.clone(),
            what,
        };
        let Some(planned) = planned else {
            return match facts.logical.is_protected() {
                true => Err(exchanged("it has protected columns".into())),
                false => Ok(Self(facts)),
            };
        };
        if let Some(reason) = &facts.logical.damaged {
            return Err(exchanged(reason.clone()));
        }
        let (is, was) = (&facts.logical.columns, &old.logical.columns);
        let same_names = is.len() == was.len()
            && is
                .iter()
                .zip(was)
                .all(|(is, was)| same_name(&is.name, &was.name));
        if !same_names {
            return Err(exchanged("it has other columns".into()));
        }
        for (is, was) in is.iter().zip(was) {
            let planned = planned
                .columns
                .iter()
                .find(|new| same_name(&new.name, &is.name));
            let column = || format!("column {}", is.name);
            let is_modified = modified.iter().any(|name| same_name(name, &is.name));
            if !is_modified && (is.type_text != was.type_text || is.nullable != was.nullable) {
                return Err(exchanged(format!("{} has another type", column())));
            }
            let (protection, planned) = match (&is.protection, planned) {
                (None, None) => continue,
                (Some(protection), Some(planned)) => (protection, planned),
                (None, Some(_)) => return Err(exchanged(format!("{} is not protected", column()))),
                (Some(_), None) => return Err(exchanged(format!("{} is protected", column()))),
            };
            let is_planned = facts.logical.table_id == Some(planned.table_id)
                && protection.column_id == planned.column_id
                && protection.key_id == planned.key_id
                && protection.suite == planned.suite
                && protection.capabilities == planned.capabilities
                && protection.names == planned.names()
                && is.nullable == planned.nullable
                && protection.checks == planned.checks
                && is
                    .sql_type
                    .is_some_and(|is| is_same(&is, &planned.sql_type, family));
            if !is_planned {
                return Err(exchanged(format!(
                    "{} is protected in another way",
                    column()
                )));
            }
            let (table_id, column_id) = (planned.table_id, planned.column_id);
            let guarded = planned.checks.is_empty()
                || facts.definition.contains(&format!(
                    "CONSTRAINT {} CHECK (",
                    identifier(&guard_name(table_id, column_id))
                ));
            if !guarded || !has_check(&facts.definition, table_id, column_id) {
                return Err(exchanged(format!("{} has not its CHECK", column())));
            }
        }
        Ok(Self(facts))
    }
}

/// The imprint of the table that was made, of a migration that has got so far.
pub(crate) fn made(state: &State) -> Result<&Imprint> {
    state.made.as_ref().ok_or_else(|| {
        MigrateError::Request(
            "the checkpoint is of a migration that had made no table: --abort, and begin again"
                .into(),
        )
    })
}

/// Whether it is the same type to the server, which gives numbers on MariaDB a width where none is
/// said.
fn is_same(is: &SqlType, planned: &SqlType, family: Family) -> bool {
    is.to_sql(family) == planned.to_sql(family) && is.collation == planned.collation
}

/// Whether a definition has the CHECK of a protected column.
fn has_check(definition: &str, table_id: [u8; 8], column_id: [u8; 4]) -> bool {
    let head = format!(
        "CONSTRAINT {} CHECK (",
        identifier(&constraint_name(table_id, column_id))
    );
    let digits: String = column_id.iter().map(|byte| format!("{byte:02x}")).collect();
    definition.lines().any(|line| {
        line.trim_start().starts_with(&head)
            && line.to_ascii_lowercase().contains(&digits)
            && !line.to_ascii_uppercase().contains("NOT ENFORCED")
    })
}

/// The definition of a table as it is now; `None` if there is no such table. Without keys it is
/// empty.
pub(crate) fn read(
    session: &mut Session,
    database: &str,
    table: &str,
    keys: Option<&KeySet>,
) -> Result<Option<Imprint>> {
    let mut rows = session
        .texts(&catalog_query(database, &[table]))
        .map_err(MigrateError::sql("reading the table's definition"))?;
    rows.sort_by_key(|row| ColumnRow::of(row).ordinal_position);
    if rows.is_empty() {
        return Ok(None);
    }
    let columns: Vec<PhysicalColumn> = rows
        .iter()
        .map(|row| physical(&ColumnRow::of(row)))
        .collect();
    let definition = definition(session, database, table)?;
    Ok(Some(imprint_of(keys, table, &columns, &definition)))
}

/// A table's imprint; its columns come in the table's order.
pub(crate) fn imprint_of(
    keys: Option<&KeySet>,
    table: &str,
    columns: &[PhysicalColumn],
    definition: &str,
) -> Imprint {
    let Some(key) = keys.map(KeySet::metadata_key) else {
        return Imprint::default();
    };
    let columns = columns.iter().enumerate().map(|(place, column)| {
        let fields = [
            Some(place.to_string()),
            Some(column.name.clone()),
            Some(column.column_type.clone()),
            column.charset.clone(),
            column.collation.clone(),
            Some(column.nullable.to_string()),
            column.default.clone(),
            Some(column.extra.clone()),
            Some(column.generated.to_string()),
            Some(column.expression.clone()),
            Some(column.comment.clone()),
        ];
        (column.name.clone(), tag(key, OF_COLUMN, &fields))
    });
    Imprint {
        columns: columns.collect(),
        definition: tag(key, OF_DEFINITION, &[Some(nameless(definition, table))]),
    }
}

/// The digits of a tag of fields, of which each has its length before it.
fn tag(key: &MetadataKey, what: &str, fields: &[Option<String>]) -> String {
    let mut bytes = format!("{what}\0").into_bytes();
    for field in fields {
        let length = field.as_ref().map_or(u64::MAX, |text| text.len() as u64);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(field.as_deref().unwrap_or_default().as_bytes());
    }
    key.tag(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A definition without the table's name and its foreign keys, which change at the switch, and
/// without what changes by itself. MySQL calls CHECKs that have no name after the table.
fn nameless(definition: &str, table: &str) -> String {
    let (definition, _) = split_foreign_keys(definition);
    let head = format!("CREATE TABLE {} (", identifier(table));
    let rest = definition.strip_prefix(&head).unwrap_or(&definition);
    let check = identifier(&format!("{table}_chk_"));
    let check = check.trim_end_matches('`');
    stable(&rest.replace(&format!("CONSTRAINT {check}"), "CONSTRAINT `_chk_"))
}

/// An error unless a table's definition is the one that was noted.
pub(crate) fn must_be(table: &str, is: &Imprint, noted: &Imprint) -> Result<()> {
    if is == noted {
        return Ok(());
    }
    let other = |name: &&String| is.columns.get(*name) != noted.columns.get(*name);
    let mut names = noted.columns.keys().chain(is.columns.keys());
    Err(MigrateError::Exchanged {
        table: table.to_owned(),
        what: match names.find(other) {
            Some(name) => format!("column {name} is another one"),
            None => "a CHECK, a key or an option is another one".into(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_the_same_under_both_names_of_its_table() {
        let definition = |name: &str, check: &str| {
            format!(
                "CREATE TABLE `{name}` (\n  `a` int,\n  CONSTRAINT `{name}_chk_1` CHECK ((`a` > {check}))\n) \
                 ENGINE=InnoDB AUTO_INCREMENT={check} DEFAULT CHARSET=utf8mb4"
            )
        };
        let before = nameless(&definition("t_onionskin_new", "1"), "t_onionskin_new");
        assert_eq!(before, nameless(&definition("t", "1"), "t"));
        assert_ne!(before, nameless(&definition("t", "2"), "t"));
    }

    #[test]
    fn a_check_counts_only_with_the_ids_and_if_it_is_enforced() {
        let line = |end: &str| {
            format!(
                "CREATE TABLE `t` (\n  CONSTRAINT `onionskin_0101010101010101_0a0b0c0d` CHECK ((substr(`v$enc`,4,4) = 0x0A0B0C0D)){end}\n)"
            )
        };
        let ids = ([1; 8], [10, 11, 12, 13]);
        assert!(has_check(&line(""), ids.0, ids.1));
        assert!(!has_check(&line(" /*!80016 NOT ENFORCED */"), ids.0, ids.1));
        assert!(!has_check(&line(""), [2; 8], ids.1));
        assert!(!has_check(&line(""), ids.0, [10, 11, 12, 14]));
    }
}
