//! What a choice means: what it shows, what it stores, and how it is made.

use std::collections::BTreeMap;

use onionskin_schema::{
    Capabilities, SetMark, identifier, physical_definitions, same_name, split_foreign_keys,
};

use super::judge::{Choice, Judge};
use super::schema::{At, Described, Schema};
use super::search::Part;
use crate::data::toml_key;
use crate::text::{shell_word, shown};

/// As it stands in `[protect]`.
pub(super) fn word(part: Part, capabilities: &Capabilities) -> String {
    match part {
        Part::Equality => "eq".into(),
        Part::Range => "range".into(),
        Part::Like => "like".into(),
        Part::Join => format!("join:{}", capabilities.join.as_deref().unwrap_or_default()),
    }
}

/// What a capability shows the server, in the words of docs/capabilities.md.
pub(super) fn shows(part: Part) -> &'static str {
    match part {
        Part::Equality => "which rows are equal",
        Part::Join => "which rows are equal, and which across the columns of the group",
        Part::Like => "which texts are equal, and which share which runs of three characters",
        Part::Range => "the order, and more: see the threat model",
    }
}

/// Bytes that a row takes for a capability: what the definition of its physical column says, and
/// for grams the most that there may be.
pub(super) fn bytes(judge: &Judge<'_>, at: At, part: Part, capabilities: &Capabilities) -> u64 {
    let Some(template) = judge.template(at) else {
        return 0;
    };
    let stored = |capabilities: Capabilities| {
        let mut column = template.clone();
        column.capabilities = capabilities;
        column.column_id = [1; 4];
        let set = SetMark::of_new_table(&[], judge.family(), |_| [0; 16]);
        let texts = physical_definitions(&column, &set, judge.family(), |_| [0; 16]);
        texts
            .unwrap_or_default()
            .iter()
            .map(|t| binary(t))
            .sum::<u64>()
    };
    if part == Part::Like {
        const GRAM: u64 = 7;
        let kept = judge.keeps_grams();
        return match kept {
            true => onionskin_value::most_grams(&template.sql_type).saturating_mul(GRAM),
            false => 0,
        };
    }
    let mut less = capabilities.clone();
    match part {
        Part::Equality => less.eq = false,
        Part::Join => less.join = None,
        Part::Range => less.range = false,
        Part::Like => {}
    }
    stored(capabilities.clone()).saturating_sub(stored(less))
}

/// `n` of `` `c$ord_0101` BINARY(n) … ``
fn binary(definition: &str) -> u64 {
    let rest = definition.split_once("` BINARY(").map(|(_, rest)| rest);
    let digits = rest.and_then(|rest| rest.split_once(')')).map(|(n, _)| n);
    digits.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// `[protect]` sections.
pub(super) fn policy(schema: &Schema, choice: &Choice) -> Vec<String> {
    let mut text = Vec::new();
    for (table, columns) in by_table(choice) {
        let table = &schema.tables[table].table;
        let name = format!("{}.{}", table.database, table.name);
        let name = name.replace('\\', "\\\\").replace('"', "\\\"");
        text.push(format!("[protect.\"{name}\"]"));
        for (column, capabilities) in columns {
            let words: Vec<String> = capabilities
                .list()
                .iter()
                .map(|word| format!("\"{word}\""))
                .collect();
            let name = toml_key(&table.columns[column].name);
            text.push(shown(&format!("{name} = [{}]", words.join(", "))));
        }
        text.push(String::new());
    }
    text.pop();
    text
}

fn by_table(choice: &Choice) -> BTreeMap<usize, Vec<(usize, &Capabilities)>> {
    let mut tables: BTreeMap<usize, Vec<(usize, &Capabilities)>> = BTreeMap::new();
    for ((table, column), capabilities) in choice {
        tables
            .entry(*table)
            .or_default()
            .push((*column, capabilities));
    }
    tables
}

/// Commands that protect tables that are there. Foreign keys over columns that are protected are
/// dropped before, and added again afterwards: both of their sides have to change. Tables that
/// others refer to come first. A migration finds rows by a key that stays plain: a table that will
/// have none gets one before.
pub(super) fn commands(schema: &Schema, choice: &Choice) -> Vec<String> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for described in &schema.tables {
        let table = &described.table;
        let name = format!(
            "{}.{}",
            identifier(&table.database),
            identifier(&table.name)
        );
        for key in split_foreign_keys(&described.definition).1 {
            let own = |column: &str| schema.find(&table.name, column);
            let is_over = listed(&key)
                .iter()
                .filter_map(|column| own(column))
                .any(|at| choice.contains_key(&at));
            let Some(constraint) = constraint(&key).filter(|_| is_over) else {
                continue;
            };
            before.push(shown(&format!(
                "ALTER TABLE {name} DROP FOREIGN KEY {};",
                identifier(constraint)
            )));
            after.push(format!("ALTER TABLE {name} ADD {};", key.trim()));
        }
    }
    let mut commands = before;
    let tables = by_table(choice);
    for table in order(schema, choice) {
        let described = &schema.tables[table].table;
        let columns = tables.get(&table).into_iter().flatten();
        let columns: Vec<String> = columns
            .map(|(column, capabilities)| {
                let words = capabilities.list().join(" ");
                let name = &described.columns[*column].name;
                format!("{name}: {words}").trim_end().to_owned()
            })
            .collect();
        if !has_plain_key(&schema.tables[table], table, choice) {
            commands.push(shown(&key_before(&schema.tables[table])));
        }
        commands.push(shown(&format!(
            "onionskin migrate {} --encrypt {}",
            shell_word(&format!("{}.{}", described.database, described.name)),
            shell_word(&columns.join("; "))
        )));
    }
    commands.extend(after);
    commands
}

/// The statement that adds a key to a table that has none which stays plain: over its column with
/// AUTO_INCREMENT, or over a new one that `SELECT *` leaves out. Where the server could not add it,
/// or replicas might number the rows in another order, it is a comment that says so.
fn key_before(described: &Described) -> String {
    const NAME: &str = "onionskin_key";
    let (table, definition) = (&described.table, &described.definition);
    let name = format!(
        "{}.{}",
        identifier(&table.database),
        identifier(&table.name)
    );
    let by_hand = |why| format!("-- {name} needs a key that stays plain, by hand: {why}");
    let has_column = table.columns.iter().any(|c| same_name(&c.name, NAME));
    if definition.is_empty() {
        return by_hand("its definition is not visible");
    }
    if has_column || definition.contains(&format!("KEY `{NAME}`")) {
        return by_hand("the name onionskin_key is taken");
    }
    if definition.contains("PARTITION BY") {
        return by_hand("each unique key has to hold the columns that part it");
    }
    if let Some(numbered) = table.columns.iter().find(|c| c.auto_increment) {
        let column = identifier(&numbered.name);
        return format!("ALTER TABLE {name} ADD UNIQUE KEY {NAME} ({column});");
    }
    // its rows are numbered in the order of this key
    let has_order = described
        .unique
        .iter()
        .any(|key| key.iter().all(|column| !table.columns[*column].nullable));
    match has_order {
        true => format!(
            "ALTER TABLE {name} ADD COLUMN {NAME} BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE INVISIBLE;"
        ),
        false => by_hand("it has no key at all, and replicas may number its rows otherwise"),
    }
}

/// Whether a key will be left by which `migrate` finds the table's rows, before and afterwards.
fn has_plain_key(described: &Described, table: usize, choice: &Choice) -> bool {
    /// Types of keys that `migrate` can put in order.
    const ORDERED: [&str; 15] = [
        "tinyint",
        "smallint",
        "mediumint",
        "int",
        "bigint",
        "decimal",
        "date",
        "datetime",
        "timestamp",
        "time",
        "year",
        "char",
        "varchar",
        "binary",
        "varbinary",
    ];
    let is_good = |column: &usize| {
        let is_protected = choice.contains_key(&(table, *column));
        let column = &described.table.columns[*column];
        let name = column.type_text.split(['(', ' ']).next();
        let name = name.unwrap_or_default().to_ascii_lowercase();
        !is_protected && !column.nullable && !column.generated && ORDERED.contains(&name.as_str())
    };
    let mut keys = described.unique.iter();
    keys.any(|key| key.iter().all(is_good))
}

/// Tables in an order in which what others refer to comes first, as far as there is one.
pub(super) fn order(schema: &Schema, choice: &Choice) -> Vec<usize> {
    let mut left: Vec<usize> = by_table(choice).into_keys().collect();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let waits = |table: usize| {
            let references = schema.references.iter();
            references
                .filter(|(from, to)| from.0 == table && to.0 != table)
                .any(|(_, to)| left.contains(&to.0))
        };
        let next = left.iter().position(|table| !waits(*table)).unwrap_or(0);
        ordered.push(left.remove(next));
    }
    ordered
}

/// The name of a foreign key: CONSTRAINT `name` FOREIGN KEY …
fn constraint(key: &str) -> Option<&str> {
    let rest = key.trim().strip_prefix("CONSTRAINT `")?;
    rest.split_once('`').map(|(name, _)| name)
}

/// The columns that refer: FOREIGN KEY (`a`, `b`) …
fn listed(key: &str) -> Vec<String> {
    let list = key.split_once("FOREIGN KEY (").map(|(_, rest)| rest);
    let list = list.and_then(|rest| rest.split_once(')')).map(|(l, _)| l);
    let names = list.unwrap_or_default().split(',');
    names
        .map(|n| n.trim().trim_matches('`').to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use onionskin_schema::{ColumnRow, tables_from_rows};

    use super::*;

    #[test]
    fn a_migration_needs_a_key_that_stays_plain() {
        let row = |name, ty, nullable, at| ColumnRow {
            table_schema: "app",
            table_name: "t",
            column_name: name,
            ordinal_position: at,
            is_nullable: nullable,
            data_type: ty,
            column_type: ty,
            ..ColumnRow::default()
        };
        let rows = [
            row("id", "int", "NO", 1),
            row("other", "bigint", "NO", 2),
            row("empty", "int", "YES", 3),
            row("whole", "uuid", "NO", 4),
        ];
        let table = tables_from_rows(rows, |_, _| true).remove(0);
        let has = |unique: &[&[usize]], protected: &[usize]| {
            let described = Described {
                table: Arc::new(table.clone()),
                definition: String::new(),
                rows: 0,
                keyed: BTreeSet::new(),
                unique: unique.iter().map(|key| key.to_vec()).collect(),
            };
            let choice = protected.iter().map(|c| ((7, *c), Capabilities::default()));
            has_plain_key(&described, 7, &choice.collect())
        };
        assert!(has(&[&[0]], &[1]));
        assert!(!has(&[&[0]], &[0]));
        assert!(has(&[&[0], &[1]], &[0]));
        assert!(!has(&[&[0, 1]], &[1]));
        assert!(!has(&[], &[]));
        assert!(!has(&[&[2], &[3]], &[]));
    }

    #[test]
    fn a_key_is_added_where_the_server_can_and_replicas_agree() {
        let column = |name, extra| ColumnRow {
            table_schema: "app",
            table_name: "t",
            column_name: name,
            is_nullable: "NO",
            data_type: "bigint",
            column_type: "bigint",
            extra,
            ..ColumnRow::default()
        };
        let added = |name, extra, definition: &str, unique: &[&[usize]]| {
            let rows = [column(name, extra)];
            key_before(&Described {
                table: Arc::new(tables_from_rows(rows, |_, _| true).remove(0)),
                definition: definition.into(),
                rows: 0,
                keyed: BTreeSet::new(),
                unique: unique.iter().map(|key| key.to_vec()).collect(),
            })
        };
        let plain = "CREATE TABLE `t` (`id` bigint NOT NULL)";
        assert_eq!(
            added("id", "", plain, &[&[0]]),
            "ALTER TABLE `app`.`t` ADD COLUMN onionskin_key BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE INVISIBLE;"
        );
        assert_eq!(
            added("id", "auto_increment", plain, &[]),
            "ALTER TABLE `app`.`t` ADD UNIQUE KEY onionskin_key (`id`);"
        );
        let parts = "CREATE TABLE `t` (`id` bigint NOT NULL)\n PARTITION BY HASH (`id`)";
        let taken = "CREATE TABLE `t` (`id` bigint NOT NULL, KEY `onionskin_key` (`id`))";
        for by_hand in [
            added("id", "", plain, &[]),
            added("id", "", parts, &[&[0]]),
            added("id", "", taken, &[&[0]]),
            added("Onionskin_Key", "", plain, &[&[0]]),
            added("id", "", "", &[&[0]]),
        ] {
            let comment = "-- `app`.`t` needs a key that stays plain, by hand: ";
            assert!(by_hand.starts_with(comment), "{by_hand}");
        }
    }

    #[test]
    fn foreign_keys_are_read_as_servers_show_them() {
        let key = "CONSTRAINT `fk 1` FOREIGN KEY (`a`, `b c`) REFERENCES `t` (`x`, `y`) ON DELETE CASCADE";
        assert_eq!(constraint(key), Some("fk 1"));
        assert_eq!(listed(key), ["a", "b c"]);
        assert_eq!(binary("`c$ord_0101` BINARY(64) NULL INVISIBLE"), 64);
        assert_eq!(binary("`c$enc` VARBINARY(75) NULL"), 0);
    }
}
