//! The search for the smallest policy, with answers that were planted. No server is asked: tables
//! are written down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use onionskin_assess::queries::{
    asked::{Asked, Shape},
    columns::{Chosen, by_patterns, choose},
    judge::{Judge, Verdict},
    schema::{Described, Schema},
    search::{Addition, Part, Search},
};
use onionskin_schema::{ColumnRow, tables_from_rows};
use onionskin_value::Family;

/// A column of a table: its name, its type, and its place in keys (`PRI`, `UNI`, `MUL`).
type Column = (&'static str, &'static str, &'static str);

fn schema(tables: &[(&str, u64, &[Column])]) -> Schema {
    let mut schema = Schema::new(Family::MySql, "app", "utf8mb4_general_ci");
    for (name, rows, columns) in tables {
        let is_text = |ty: &str| ty.contains("char") || ty.contains("text");
        let cells = columns
            .iter()
            .enumerate()
            .map(|(at, (column, ty, key))| ColumnRow {
                table_schema: "app",
                table_name: name,
                column_name: column,
                ordinal_position: at as u64 + 1,
                is_nullable: "NO",
                data_type: ty.split('(').next().unwrap_or_default(),
                column_type: ty,
                collation: is_text(ty).then_some("utf8mb4_general_ci"),
                character_set: is_text(ty).then_some("utf8mb4"),
                column_key: key,
                ..ColumnRow::default()
            });
        let table = tables_from_rows(cells, |_, _| true).remove(0);
        let mut lines: Vec<String> = columns
            .iter()
            .map(|(column, ty, _)| format!("  `{column}` {ty} NOT NULL"))
            .collect();
        for (column, _, key) in *columns {
            lines.extend(match *key {
                "PRI" => Some(format!("  PRIMARY KEY (`{column}`)")),
                "UNI" => Some(format!("  UNIQUE KEY `{column}` (`{column}`)")),
                "MUL" => Some(format!("  KEY `{column}` (`{column}`)")),
                _ => None,
            });
        }
        let keyed = columns.iter().enumerate().filter(|(_, c)| !c.2.is_empty());
        let unique = columns.iter().enumerate();
        let unique = unique.filter(|(_, c)| ["PRI", "UNI"].contains(&c.2));
        schema.tables.push(Described {
            table: Arc::new(table),
            definition: format!(
                "CREATE TABLE `{name}` (\n{}\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
                lines.join(",\n")
            ),
            rows: *rows,
            keyed: keyed.map(|(at, _)| at).collect(),
            unique: unique.map(|(at, _)| vec![at]).collect(),
        });
    }
    schema
}

fn shapes(statements: &[&str]) -> Vec<Shape> {
    let mut asked = Asked::default();
    let most = statements.len() as u64;
    for (n, sql) in statements.iter().enumerate() {
        // in the order in which they stand
        asked.add(sql, "app", most - n as u64);
    }
    asked.shapes()
}

/// A person's table of many rows, and one that refers to it by mail.
fn people() -> Schema {
    schema(&[
        (
            "people",
            1_000_000,
            &[
                ("id", "int", "PRI"),
                ("name", "varchar(80)", ""),
                ("mail", "varchar(80)", "UNI"),
                ("age", "int", ""),
                ("city", "varchar(20)", ""),
            ],
        ),
        (
            "visits",
            5_000_000,
            &[
                ("id", "int", "PRI"),
                ("visitor", "varchar(80)", ""),
                ("day", "date", ""),
            ],
        ),
        (
            "states",
            16,
            &[("id", "int", "PRI"), ("title", "varchar(80)", "")],
        ),
    ])
}

/// What is found for statements, as `people.name: eq` and the like.
fn found(schema: &Schema, engine: bool, columns: &str, statements: &[&str]) -> Vec<String> {
    let wanted = by_patterns(schema, columns).expect("columns");
    let mut judge = Judge::new(schema, engine, 1_000, true);
    let chosen = choose(&mut judge, &wanted);
    let shapes = shapes(statements);
    let search = Search::run(&judge, &shapes, chosen.choice);
    let found = search.choice().iter().map(|(at, capabilities)| {
        format!("{}: {}", schema.path(*at), capabilities.list().join(" "))
            .trim_end()
            .to_owned()
    });
    found.collect()
}

#[test]
fn each_statement_gets_what_shows_least() {
    let people = people();
    for (statement, wanted) in [
        ("SELECT name FROM people WHERE id = 1", "people.name:"),
        ("SELECT id FROM people WHERE name = 'x'", "people.name: eq"),
        (
            "SELECT id FROM people WHERE name IN ('x', 'y')",
            "people.name: eq",
        ),
        (
            "SELECT id FROM people WHERE name LIKE '%xyz%'",
            "people.name: like",
        ),
        (
            "SELECT id FROM people WHERE name < 'x'",
            "people.name: range",
        ),
        // the server narrows by the city, the proxy does the rest
        (
            "SELECT id FROM people WHERE name LIKE '%xyz%' AND city = 'Ulm'",
            "people.name:",
        ),
    ] {
        for engine in [false, true] {
            let found = found(&people, engine, "people.name", &[statement]);
            assert_eq!(found, [wanted], "{statement}, engine: {engine}");
        }
    }
}

#[test]
fn what_another_capability_answers_is_taken_away() {
    let statements = [
        "SELECT id FROM people WHERE age = 5",
        "SELECT id FROM people WHERE age BETWEEN 5 AND 7",
    ];
    // order keys of whole numbers answer equality
    assert_eq!(
        found(&people(), false, "people.age", &statements),
        ["people.age: range"]
    );
}

#[test]
fn columns_that_are_joined_get_one_group() {
    let statements =
        ["SELECT v.day FROM visits v JOIN people p ON p.mail = v.visitor WHERE p.id = 7"];
    assert_eq!(
        found(&people(), false, "people.mail,visits.visitor", &statements),
        [
            "people.mail: join:people.mail",
            "visits.visitor: join:people.mail"
        ]
    );
}

#[test]
fn a_unique_key_needs_equality() {
    assert_eq!(
        found(&people(), false, "people.*", &["SELECT 1"]),
        [
            "people.id: eq",
            "people.name:",
            "people.mail: eq",
            "people.age:",
            "people.city:"
        ]
    );
}

#[test]
fn small_tables_may_be_read_whole() {
    let statements = ["SELECT id FROM states WHERE title LIKE '%x%'"];
    assert_eq!(
        found(&people(), false, "states.title", &statements),
        ["states.title:"]
    );
}

fn with_reference() -> Schema {
    let mut schema = people();
    let (from, to) = (
        schema.find("visits", "visitor").expect("it is there"),
        schema.find("people", "mail").expect("it is there"),
    );
    schema.references.push((from, to));
    let definition = &mut schema.tables[from.0].definition;
    *definition = definition.replace(
        "\n) ENGINE",
        ",\n  KEY `v` (`visitor`),\n  CONSTRAINT `fk` FOREIGN KEY (`visitor`) REFERENCES `people` (`mail`)\n) ENGINE",
    );
    schema.tables[from.0].keyed.insert(from.1);
    schema
}

#[test]
fn foreign_keys_tie_columns_together() {
    let schema = with_reference();
    assert_eq!(
        found(&schema, false, "people.mail", &["SELECT 1"]),
        [
            "people.mail: join:people.mail",
            "visits.visitor: join:people.mail"
        ]
    );
    let mut tied = schema.clone();
    tied.tied.extend(tied.find("visits", "visitor"));
    let wanted = by_patterns(&tied, "people.mail").expect("columns");
    let mut judge = Judge::new(&tied, false, 1_000, true);
    let Chosen { choice, plain, .. } = choose(&mut judge, &wanted);
    assert!(choice.is_empty() && plain.len() == 1, "{plain:?}");
}

#[test]
fn what_nothing_carries_keeps_its_refusal() {
    let people = people();
    let wanted = by_patterns(&people, "people.name,people.age").expect("columns");
    let mut judge = Judge::new(&people, false, 1_000, true);
    let chosen = choose(&mut judge, &wanted);
    let shapes = shapes(&[
        "SELECT UPPER(name) FROM people WHERE id = 1",
        "SELECT SUM(age) FROM people",
        "SELECT SUM(age) FROM people WHERE city = 'Ulm'",
        "SELECT id FROM people WHERE age < 5",
    ]);
    let mut search = Search::run(&judge, &shapes, chosen.choice);
    let verdicts = search.verdicts();
    assert!(
        matches!(&verdicts[0], Verdict::Refused { code, .. } if *code == "OS1004"),
        "{verdicts:?}"
    );
    assert_eq!(verdicts[1].level(), 1);
    assert_eq!((verdicts[2].level(), verdicts[2].tier()), (2, Some(2)));
    let age = people.find("people", "age").expect("it is there");
    let needs = search.needs();
    assert_eq!(needs.len(), 1);
    let needs = &needs[&(age, Part::Range)];
    assert_eq!(
        (needs.definition, needs.shapes.as_slice()),
        (false, &[3][..])
    );
    // nothing speeds up a sum
    assert!(search.faster().is_empty());
}

#[test]
fn one_more_capability_can_be_faster() {
    let people = people();
    let wanted = by_patterns(&people, "people.age").expect("columns");
    let mut judge = Judge::new(&people, true, 1_000, true);
    let chosen = choose(&mut judge, &wanted);
    let shapes = shapes(&["SELECT id FROM people WHERE age < 5 AND city = 'Ulm'"]);
    let mut search = Search::run(&judge, &shapes, chosen.choice);
    let age = people.find("people", "age").expect("it is there");
    assert_eq!(search.verdicts()[0].tier(), Some(3));
    assert_eq!(
        search.faster(),
        BTreeMap::from([(0, (Addition::Range(age), 1))])
    );
}

/// 40 tables, 200 shapes.
#[test]
fn an_application_takes_bounded_time() {
    let mut names = Vec::new();
    for n in 0..40 {
        names.push(format!("t{n}"));
    }
    let columns: &[Column] = &[
        ("id", "int", "PRI"),
        ("a", "varchar(80)", "MUL"),
        ("b", "varchar(80)", ""),
        ("c", "int", ""),
        ("d", "date", ""),
        ("e", "decimal(10,2)", ""),
        ("f", "varchar(40)", ""),
        ("g", "text", ""),
    ];
    let tables: Vec<_> = names
        .iter()
        .map(|n| (n.as_str(), 100_000, columns))
        .collect();
    let schema = schema(&tables);
    let mut statements = Vec::new();
    for (n, name) in names.iter().enumerate() {
        let other = &names[(n + 1) % names.len()];
        statements.extend([
            format!("SELECT id, a, b, c, d, e, f, g FROM {name} WHERE a = 'x' AND c > 5 ORDER BY d LIMIT 10"),
            format!("UPDATE {name} SET a = 'y', b = 'z', c = c + 1 WHERE id = 5"),
            format!("SELECT x.id FROM {name} x JOIN {other} y ON x.b = y.b WHERE x.f LIKE '%abc%'"),
            format!("SELECT UPPER(a), SUM(e) FROM {name} GROUP BY UPPER(a)"),
            format!("INSERT INTO {name} (id, a, b, c, d, e, f, g) VALUES (1, 'a', 'b', 2, '2026-01-01', 3, 'f', 'g')"),
        ]);
    }
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let shapes = shapes(&statements);
    assert_eq!(shapes.len(), 200);
    let columns = "*.a,*.b,*.c,*.d,*.e,*.f,*.g";
    let wanted = by_patterns(&schema, columns).expect("columns");
    let begin = Instant::now();
    let mut judge = Judge::new(&schema, false, 1_000, true);
    let chosen = choose(&mut judge, &wanted);
    let mut search = Search::run(&judge, &shapes, chosen.choice);
    let needs = search.needs();
    search.faster();
    let taken = begin.elapsed();
    println!(
        "200 shapes, 40 tables, {} capabilities: {taken:?}, the planner was asked {} times",
        needs.len(),
        search.asked
    );
    assert!(taken.as_secs() < 60, "{taken:?}");
}
