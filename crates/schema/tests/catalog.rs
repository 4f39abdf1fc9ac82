//! Tables from rows that somebody tampered with.

mod support;

use onionskin_schema::{
    ColumnRow, KeyRole, NewColumn, SchemaError, SetMark, Table, TokenKind, Whole,
    physical_definitions, show_create_table, tables_from_rows,
};
use onionskin_value::Family;
use support::{CATALOG, Golden, Row, catalog_row, table, verify};

fn keys() -> Vec<Row> {
    Golden::read(Family::MariaDb, "keys").rows(CATALOG)
}

/// The table after a change of its rows.
fn changed(change: impl FnOnce(&mut Vec<Row>)) -> Table {
    let mut rows = keys();
    change(&mut rows);
    table(&rows)
}

fn at(rows: &[Row], column: &str) -> usize {
    rows.iter()
        .position(|row| {
            row[2]
                .as_deref()
                .is_some_and(|name| name.starts_with(column))
        })
        .expect(column)
}

fn set(column: &'static str, field: usize, text: &'static str) -> impl FnOnce(&mut Vec<Row>) {
    move |rows| {
        let at = at(rows, column);
        rows[at][field] = Some(text.to_owned());
    }
}

#[test]
fn a_sound_table() {
    let table = changed(|_| ());
    assert_eq!(table.damaged, None);
    assert!(table.is_protected());
    let names: Vec<&str> = table
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b", "plain", "u", "m", "j", "s"]);
    let primary: Vec<&str> = table
        .primary_key()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(primary, ["a", "b", "plain"]);
    let column = |name: &str| table.column(name).expect(name);
    assert_eq!(column("U").key, KeyRole::Unique);
    assert_eq!(column("m").key, KeyRole::Multiple);
    assert_eq!(column("s").key, KeyRole::None);
    let kind = |name: &str| column(name).equality_column().map(|(_, kind)| kind);
    assert_eq!(kind("a"), Some(TokenKind::Order), "of fixed width");
    assert_eq!(
        kind("b"),
        Some(TokenKind::Equality),
        "longer than the order key"
    );
    assert_eq!(kind("s"), None);
    assert!(column("j").eq_name().is_some() && column("j").ord_name().is_some());
    assert!(column("a").eq_name().is_none());
    assert_eq!(
        table
            .owner_of(column("b").ord_name().expect("range"))
            .map(|c| c.name.as_str()),
        Some("b")
    );
}

#[test]
fn tampering_is_noticed() {
    const NAME: usize = 2;
    const NULLABLE: usize = 5;
    const TYPE: usize = 7;
    const EXTRA: usize = 11;
    const COMMENT: usize = 12;
    type Change = Box<dyn FnOnce(&mut Vec<Row>)>;
    let cases: Vec<(&str, Change)> = vec![
        ("the comment is gone", Box::new(set("a$enc", COMMENT, ""))),
        (
            "the comment is another's",
            Box::new(|rows| {
                let (a, b) = (at(rows, "a$enc"), at(rows, "b$enc"));
                rows[a][COMMENT] = rows[b][COMMENT].clone();
            }),
        ),
        (
            "a capability is added to the comment",
            Box::new(|rows| {
                let a = at(rows, "m$enc");
                rows[a][COMMENT] = rows[a][COMMENT]
                    .as_ref()
                    .map(|text| text.replace("|eq|", "|eq,range|"));
            }),
        ),
        (
            "a companion is missing",
            Box::new(|rows| {
                rows.remove(at(rows, "a$ord"));
            }),
        ),
        (
            "a companion has another key's suffix",
            Box::new(set("a$ord", NAME, "a$ord_0000")),
        ),
        (
            "a companion too many",
            Box::new(|rows| {
                let mut row = rows[at(rows, "a$ord")].clone();
                row[NAME] = Some("s$eq_1234".to_owned());
                rows.push(row);
            }),
        ),
        (
            "a companion is shorter",
            Box::new(set("a$ord", TYPE, "binary(8)")),
        ),
        ("a companion is visible", Box::new(set("a$ord", EXTRA, ""))),
        (
            "a companion may be NULL",
            Box::new(set("a$ord", NULLABLE, "YES")),
        ),
        (
            "the sealed column is shorter",
            Box::new(set("a$enc", TYPE, "varbinary(38)")),
        ),
        (
            "the sealed column was renamed",
            Box::new(set("a$enc", NAME, "z$enc")),
        ),
        (
            "the sealed column lost its suffix",
            Box::new(set("a$enc", NAME, "a")),
        ),
        (
            "a plaintext column of the same name",
            Box::new(set("plain", NAME, "A")),
        ),
        (
            "a newer version wrote it",
            Box::new(|rows| {
                let a = at(rows, "m$enc");
                rows[a][COMMENT] = rows[a][COMMENT]
                    .as_ref()
                    .map(|text| text.replace("onionskin:2", "onionskin:9"));
            }),
        ),
        (
            "a column was copied from another table",
            Box::new(|rows| {
                let other = Golden::read(Family::MariaDb, "mixed").rows(CATALOG);
                let mut row = other[at(&other, "note$enc")].clone();
                row[NAME] = Some("s$enc".to_owned());
                let s = at(rows, "s$enc");
                rows[s] = row;
                rows[s][1] = Some("keys".to_owned());
            }),
        ),
    ];
    for (what, change) in cases {
        let table = changed(change);
        assert!(table.damaged.is_some(), "{what}");
        assert!(table.is_protected(), "{what}");
        assert!(matches!(
            show_create_table(
                "CREATE TABLE `keys` (\n  `a` int\n)",
                &table,
                Family::MariaDb
            ),
            Err(SchemaError::DamagedTable { .. })
        ));
    }
}

#[test]
fn a_view_is_known_by_companions_that_are_visible() {
    const EXTRA: usize = 11;
    let visible = |rows: &mut Vec<Row>, only_first: bool| {
        let companion = |row: &&mut Row| {
            row[2]
                .as_deref()
                .is_some_and(|name| name.contains("$eq_") || name.contains("$ord_"))
        };
        let count = if only_first { 1 } else { usize::MAX };
        for row in rows.iter_mut().filter(companion).take(count) {
            row[EXTRA] = Some(String::new());
        }
    };
    let table = changed(|rows| visible(rows, false));
    assert!(table.view && table.is_protected());
    assert_eq!(table.damaged, None);
    assert!(!changed(|_| ()).view);
    let mixed = changed(|rows| visible(rows, true));
    assert!(!mixed.view && mixed.damaged.is_some());
    // a view that leaves a companion out could be searched in part only
    let partial = changed(|rows| {
        visible(rows, false);
        let at = at(rows, "u$ord");
        rows.remove(at);
    });
    assert!(partial.damaged.is_some());
}

#[test]
fn all_columns_of_a_table_have_its_id_and_their_own() {
    let define = |name: &str, change: &dyn Fn(&mut NewColumn)| {
        let mut column = support::column(name, "int", None);
        change(&mut column);
        column
    };
    let stored = |column: &NewColumn, set: &SetMark| {
        let sql = physical_definitions(column, set, Family::MySql, support::tag).expect("sound");
        let name = &column.name;
        let (_, rest) = sql[0].split_once("COMMENT '").expect("a comment");
        (
            format!("{name}$enc"),
            rest.trim_end_matches('\'').to_owned(),
        )
    };
    let table_of = |columns: &[NewColumn]| {
        let set = SetMark::of_new_table(columns, Family::MySql, support::tag);
        let columns: Vec<_> = columns.iter().map(|c| stored(c, &set)).collect();
        let rows = columns
            .iter()
            .zip(1..)
            .map(|((name, comment), position)| ColumnRow {
                table_schema: "d",
                table_name: "t",
                column_name: name,
                ordinal_position: position,
                is_nullable: "YES",
                data_type: "varbinary",
                column_type: "varbinary(39)",
                column_comment: comment,
                ..ColumnRow::default()
            });
        tables_from_rows(rows, verify).remove(0)
    };
    let a = define("a", &|_| ());
    assert_eq!(table_of(&[a.clone(), define("b", &|_| ())]).damaged, None);
    let foreign = table_of(&[a.clone(), define("b", &|column| column.table_id = [9; 8])]);
    assert_eq!(
        foreign.damaged.as_deref(),
        Some("column 'b$enc' belongs to another table")
    );
    let id = support::column("a", "int", None).column_id;
    let twice = table_of(&[a, define("b", &|column| column.column_id = id)]);
    assert_eq!(
        twice.damaged.as_deref(),
        Some("column 'b$enc' has the id of another column")
    );
}

#[test]
fn rows_may_come_in_any_order_and_of_many_tables() {
    let mut rows = keys();
    let mut other = vec![rows[2].clone()];
    other[0][1] = Some("other".to_owned());
    other[0][2] = Some("x$eq_1234".to_owned());
    other[0][12] = Some("a user's comment".to_owned());
    rows.reverse();
    rows.insert(3, other.remove(0));
    let tables = tables_from_rows(rows.iter().map(catalog_row), verify);
    assert_eq!(tables.len(), 2);
    assert_eq!(tables[0], table(&keys()));
    assert!(
        !tables[1].is_protected(),
        "a lookalike alone protects nothing"
    );
    assert_eq!(tables[1].columns[0].name, "x$eq_1234");
    assert_eq!(tables_from_rows([], verify), []);
}

#[test]
fn protected_columns_belong_together() {
    let whole = |table: &Table| table.protected_columns().next().map(|(_, p)| p.whole);
    assert_eq!(whole(&changed(|_| ())), Some(Whole::All(1)));
    // without one of them, and without its companions
    let without = changed(|rows| rows.retain(|row| !row[2].as_deref().unwrap().starts_with("u$")));
    assert!(without.is_part(), "{:?}", without.damaged);
    assert_eq!(whole(&without), Some(Whole::Part(1)));
    // what else is wrong with the table is never taken for a view's part
    let worse = changed(|rows| {
        rows.retain(|row| !row[2].as_deref().unwrap().starts_with("u$"));
        set("s$enc", 12, "")(rows);
    });
    assert!(worse.damaged.is_some() && !worse.is_part());
}

#[test]
fn comments_of_different_times_do_not_go_together() {
    let old = Golden::of_earlier_version(Family::MariaDb, "keys").rows(CATALOG);
    let mixed = changed(|rows| {
        let at = at(rows, "u$enc");
        rows[at][12] = old[at][12].clone();
    });
    assert!(
        mixed.damaged.is_some() && !mixed.is_part(),
        "{:?}",
        mixed.damaged
    );
}

#[test]
fn tables_of_earlier_versions_are_read() {
    for family in support::FAMILIES {
        for case in ["keys", "mixed", "strings"] {
            let old = table(&Golden::of_earlier_version(family, case).rows(CATALOG));
            assert_eq!(old.damaged, None, "{family:?} {case}");
            assert_eq!(old.generation(), 0);
            let new = Golden::read(family, case).table();
            assert_eq!(new.generation(), 1);
            let columns = |table: &Table| {
                let of = |c: &onionskin_schema::Column| {
                    (c.name.clone(), c.type_text.clone(), c.default.clone())
                };
                table.columns.iter().map(of).collect::<Vec<_>>()
            };
            assert_eq!(columns(&old), columns(&new), "{family:?} {case}");
        }
    }
}
