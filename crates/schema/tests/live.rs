//! Against real servers. Needs `ONIONSKIN_TEST_MARIADB` and `ONIONSKIN_TEST_MYSQL`: paths of Unix
//! sockets of servers on which root has no password. With `ONIONSKIN_UPDATE=1` the golden files are
//! written again.

mod support;

use std::sync::Mutex;

use mysql::{Conn, OptsBuilder, Value, prelude::Queryable};
use onionskin_schema::{
    DefaultLiteral, NewColumn, SchemaError, SetMark, Table, alter,
    alter::{Change, Position, Redefinition},
    catalog_query, information_schema_columns, is_our_constraint, physical_definitions,
    show_create_table,
};
use onionskin_value::Family;
use support::{
    CATALOG, Case, FAMILIES, Golden, Row, SHOW_COLUMNS, SHOW_CREATE, SHOW_FULL_COLUMNS, SHOW_INDEX,
    cases, logical, physical, tag,
};

/// The tests share their databases.
static SERVERS: Mutex<()> = Mutex::new(());

/// A connection to the family's server, or `None`, loudly.
fn connect(family: Family) -> Option<Conn> {
    let variable = match family {
        Family::MariaDb => "ONIONSKIN_TEST_MARIADB",
        Family::MySql => "ONIONSKIN_TEST_MYSQL",
    };
    let Ok(socket) = std::env::var(variable) else {
        eprintln!("SKIPPED: {variable} is not set, nothing was tested on {family:?}");
        return None;
    };
    let options = OptsBuilder::new()
        .user(Some("root"))
        .socket(Some(socket))
        .prefer_socket(true);
    Some(Conn::new(options).expect("the server answers"))
}

fn run(conn: &mut Conn, sql: &str) {
    conn.query_drop(sql)
        .unwrap_or_else(|error| panic!("{error}\n{sql}"));
}

fn rows(conn: &mut Conn, sql: &str) -> Vec<Row> {
    let rows: Vec<mysql::Row> = conn
        .query(sql)
        .unwrap_or_else(|error| panic!("{error}\n{sql}"));
    rows.into_iter()
        .map(|row| {
            row.unwrap()
                .into_iter()
                .map(|value| match value {
                    Value::NULL => None,
                    Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
                    other => panic!("text protocol gave {other:?}"),
                })
                .collect()
        })
        .collect()
}

fn fresh_database(conn: &mut Conn, database: &str) {
    run(conn, &format!("DROP DATABASE IF EXISTS `{database}`"));
    run(conn, &format!("CREATE DATABASE `{database}`"));
}

/// An unprotected table whose column has the form of a companion.
const LOOKALIKE: &str = "CREATE TABLE os_logical.lookalike (a int, `a$eq_1234` int INVISIBLE, b int, KEY (`a$eq_1234`))";

fn show_create(conn: &mut Conn, database: &str, table: &str) -> String {
    rows(conn, &format!("SHOW CREATE TABLE `{database}`.`{table}`"))[0][1]
        .clone()
        .expect("a text")
}

fn observe(conn: &mut Conn, case: &Case, family: Family) -> Golden {
    let mut golden = Golden::default();
    for (database, sql, title) in [
        (
            "os_physical",
            case.physical_sql("os_physical", family),
            physical as fn(&str) -> String,
        ),
        ("os_logical", case.logical_sql("os_logical"), logical),
    ] {
        run(conn, &sql);
        let name = case.name;
        golden.set(&title(SHOW_CREATE), &show_create(conn, database, name));
        for (what, sql) in [
            (
                SHOW_COLUMNS,
                format!("SHOW COLUMNS FROM `{database}`.`{name}`"),
            ),
            (
                SHOW_FULL_COLUMNS,
                format!("SHOW FULL COLUMNS FROM `{database}`.`{name}`"),
            ),
            (SHOW_INDEX, format!("SHOW INDEX FROM `{database}`.`{name}`")),
        ] {
            golden.set_rows(&title(what), &rows(conn, &sql));
        }
    }
    let mut catalog = rows(conn, &catalog_query("os_physical", &[case.name]));
    catalog.sort_by_key(|row| row[3].as_ref().and_then(|text| text.parse::<u32>().ok()));
    golden.set_rows(CATALOG, &catalog);
    golden
}

#[test]
fn servers_show_what_was_recorded() {
    let _one_at_a_time = SERVERS.lock();
    let record = std::env::var("ONIONSKIN_UPDATE").is_ok();
    for family in FAMILIES {
        let Some(mut conn) = connect(family) else {
            continue;
        };
        run(&mut conn, "SET NAMES utf8mb4");
        // The test's columns are many and their defaults valid.
        fresh_database(&mut conn, "os_physical");
        fresh_database(&mut conn, "os_logical");
        run(&mut conn, LOOKALIKE);
        for case in cases(family) {
            let golden = observe(&mut conn, &case, family);
            if record {
                golden.write(family, case.name);
            } else {
                let recorded = Golden::read(family, case.name);
                for title in [
                    physical(SHOW_CREATE),
                    logical(SHOW_CREATE),
                    CATALOG.to_owned(),
                ] {
                    assert_eq!(
                        golden.get(&title),
                        recorded.get(&title),
                        "{family:?} {}",
                        case.name
                    );
                }
            }
            let of = |database: &str, from: &str| {
                format!(
                    "SELECT * FROM {from} AS x WHERE TABLE_SCHEMA = '{database}' AND TABLE_NAME = '{}' ORDER BY ORDINAL_POSITION",
                    case.name
                )
            };
            let mut expected = rows(&mut conn, &of("os_logical", "information_schema.columns"));
            for row in &mut expected {
                row[1] = Some("os_physical".to_owned());
            }
            let mut derived = rows(
                &mut conn,
                &of("os_physical", &information_schema_columns(family)),
            );
            for row in &mut derived {
                // The one known difference: we do not lose characters of four bytes.
                row[5] = row[5].as_ref().map(|text| text.replace('😀', "?"));
            }
            for (expected, derived) in expected.iter().zip(&derived) {
                assert_eq!(expected, derived, "{family:?} {}", case.name);
            }
            assert_eq!(expected.len(), derived.len());
            assert_eq!(rows(&mut conn, "SHOW WARNINGS"), Vec::<Row>::new());
        }
        let all = |from: &str| {
            format!(
                "SELECT * FROM {from} AS x WHERE TABLE_SCHEMA <> 'os_physical' ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
            )
        };
        let plain = rows(&mut conn, &all(&information_schema_columns(family)));
        let direct = rows(&mut conn, &all("information_schema.columns"));
        for (plain, direct) in plain.iter().zip(&direct) {
            assert_eq!(plain, direct, "unprotected tables are shown as they are");
        }
        assert_eq!(plain.len(), direct.len());
        for database in ["os_logical", "os_physical"] {
            run(&mut conn, &format!("DROP DATABASE {database}"));
        }
    }
}

/// The logical table is changed by the logical statement, the physical one by ours; both must show
/// the same.
fn alter_both(conn: &mut Conn, family: Family, logical: &str, physical: &[String]) {
    run(conn, &format!("ALTER TABLE os_logical.t {logical}"));
    run(
        conn,
        &format!("ALTER TABLE os_physical.t {}", physical.join(", ")),
    );
    let table = current(conn);
    assert_eq!(table.damaged, None, "{logical}");
    let shown = show_create_table(&show_create(conn, "os_physical", "t"), &table, family)
        .expect("understood");
    assert_eq!(
        shown,
        show_create(conn, "os_logical", "t"),
        "{family:?} {logical}"
    );
}

fn current(conn: &mut Conn) -> Table {
    support::table(&rows(conn, &catalog_query("os_physical", &["t"])))
}

fn position(table: &Table, name: &str) -> usize {
    let is_it = |column: &onionskin_schema::Column| column.name == name;
    table.columns.iter().position(is_it).expect(name)
}

/// The specifications of one change, and the new comments of the columns that it leaves alone.
fn changed(
    table: &Table,
    change: Change<'_>,
    family: Family,
    specifications: impl Fn(&SetMark) -> Result<Vec<String>, SchemaError>,
) -> Vec<String> {
    assert_eq!(table.damaged, None);
    let set = alter::set_after(table, &[change], &[], family, tag).expect("sound");
    let (Change::Drop(own)
    | Change::Rename(own, _)
    | Change::Default(own, _)
    | Change::ForgetCheck(own, _)
    | Change::Redefine(own, _)
    | Change::Actions(own, _)) = change;
    let mut all = renewed(table, &set, Some(own), family);
    all.extend(specifications(&set).expect("sound"));
    all
}

fn add(
    table: &Table,
    column: &NewColumn,
    position: alter::Position<'_>,
    family: Family,
) -> Vec<String> {
    let added = std::slice::from_ref(column);
    let set = alter::set_after(table, &[], added, family, tag).expect("sound");
    let mut all = renewed(table, &set, None, family);
    all.extend(alter::add_column(column, position, &set, family, tag).expect("sound"));
    all
}

fn renewed(table: &Table, set: &SetMark, but: Option<usize>, family: Family) -> Vec<String> {
    let columns = table.columns.iter().enumerate();
    let others = columns.filter(|(n, c)| c.protection.is_some() && Some(*n) != but);
    let parts = others.map(|(_, c)| alter::renew_comment(table, c, set, family, tag));
    parts.flat_map(|part| part.expect("sound")).collect()
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "each change needs the table that the one before has left"
)]
fn altering_the_physical_table_alters_the_logical_one() {
    let _one_at_a_time = SERVERS.lock();
    for family in FAMILIES {
        let Some(mut conn) = connect(family) else {
            continue;
        };
        let conn = &mut conn;
        fresh_database(conn, "os_physical");
        fresh_database(conn, "os_logical");
        let mut first = support::column("a", "int", None);
        first.capabilities = support::capabilities("eq range group");
        first.nullable = false;
        let set = SetMark::of_new_table(std::slice::from_ref(&first), family, tag);
        let definitions = physical_definitions(&first, &set, family, tag).expect("sound");
        run(
            conn,
            "CREATE TABLE os_logical.t (a int NOT NULL, id int, KEY k (a))",
        );
        let index = first.index_column_name(true).expect("eq");
        run(
            conn,
            &format!(
                "CREATE TABLE os_physical.t ({}, id int, KEY k (`{index}`))",
                definitions.join(", ")
            ),
        );

        let mut added = support::column("b", "varchar(20)", Some("latin1_swedish_ci"));
        added.explicit_collation = true;
        added.capabilities = support::capabilities("eq range");
        added.comment = Some("it's new".to_owned());
        assert!(!alter::needs_values(&added));
        let table = current(conn);
        let a = table.column("a").expect("there");
        let physical = add(&table, &added, alter::Position::After(a), family);
        let definition = "varchar(20) CHARACTER SET latin1 COMMENT 'it''s new'";
        alter_both(
            conn,
            family,
            &format!("ADD COLUMN b {definition} AFTER a"),
            &physical,
        );
        added.name = "c".to_owned();
        added.column_id = [7; 4];
        let physical = add(&current(conn), &added, alter::Position::First, family);
        alter_both(
            conn,
            family,
            &format!("ADD COLUMN c {definition} FIRST"),
            &physical,
        );
        added.name = "d".to_owned();
        added.column_id = [8; 4];
        added.capabilities = support::capabilities("");
        let physical = add(&current(conn), &added, alter::Position::Last, family);
        alter_both(
            conn,
            family,
            &format!("ADD COLUMN d {definition}"),
            &physical,
        );
        let names: Vec<String> = current(conn)
            .columns
            .into_iter()
            .map(|column| column.name)
            .collect();
        assert_eq!(names, ["c", "a", "b", "id", "d"]);

        for (old, new) in [("a", "sel`ect"), ("b", "x")] {
            let table = current(conn);
            let column = table.column(old).expect(old);
            let change = Change::Rename(position(&table, old), new);
            let physical = changed(&table, change, family, |set| {
                alter::rename_column(&table, column, new, set, family, tag)
            });
            alter_both(
                conn,
                family,
                &format!(
                    "RENAME COLUMN {old} TO {}",
                    onionskin_schema::identifier(new)
                ),
                &physical,
            );
        }
        let table = current(conn);
        let x = table.column("x").expect("renamed");
        let value = DefaultLiteral::Value(b"o'clock\\".to_vec());
        let change = Change::Default(position(&table, "x"), Some(&value));
        let physical = changed(&table, change, family, |set| {
            alter::set_default(&table, x, Some(&value), set, family, tag)
        });
        alter_both(
            conn,
            family,
            "ALTER COLUMN x SET DEFAULT 'o''clock\\\\'",
            &physical,
        );
        let table = current(conn);
        let x = table.column("x").expect("x");
        let change = Change::Default(position(&table, "x"), None);
        let physical = changed(&table, change, family, |set| {
            alter::set_default(&table, x, None, set, family, tag)
        });
        alter_both(conn, family, "ALTER COLUMN x DROP DEFAULT", &physical);
        let table = current(conn);
        let d = table.column("d").expect("d");
        let new = Redefinition {
            name: "d",
            nullable: d.nullable,
            comment: "ä|%",
            default: None,
            explicit_collation: true,
            drops_check: false,
        };
        let change = Change::Redefine(position(&table, "d"), new);
        let physical = changed(&table, change, family, |set| {
            alter::redefine(&table, d, &new, Position::Last, set, family, tag)
        });
        alter_both(
            conn,
            family,
            "MODIFY COLUMN d varchar(20) CHARACTER SET latin1 COMMENT 'ä|%'",
            &physical,
        );
        for name in ["c", "sel`ect", "d"] {
            let table = current(conn);
            let column = table.column(name).expect(name);
            let change = Change::Drop(position(&table, name));
            let physical = changed(&table, change, family, |_| {
                alter::drop_column(&table, column)
            });
            alter_both(
                conn,
                family,
                &format!("DROP COLUMN {}", onionskin_schema::identifier(name)),
                &physical,
            );
        }
        for database in ["os_logical", "os_physical"] {
            run(conn, &format!("DROP DATABASE {database}"));
        }
    }
}

/// Rows that a CHECK must let through or refuse, as values of `n$enc, n$eq, o$enc, o$ord`.
const CELLS: [(&str, bool); 14] = [
    ("{n}, 'token', {o}, 'key'", true),
    ("{n}, 'token', NULL, NULL", true),
    ("CONCAT({n}, REPEAT(X'FF', 70)), X'FF', {o}, ''", true),
    ("'', 'token', NULL, NULL", false),
    ("LEFT({n}, 34), 'token', NULL, NULL", false),
    ("CONCAT(X'21', SUBSTR({n}, 2)), 'token', NULL, NULL", false),
    ("CONCAT(X'12', SUBSTR({n}, 2)), 'token', NULL, NULL", false),
    ("{o}, 'token', NULL, NULL", false),
    (
        "CONCAT(LEFT({n}, 3), 'abcd', SUBSTR({n}, 8)), 'token', NULL, NULL",
        false,
    ),
    ("{n}, '', NULL, NULL", false),
    ("{n}, DEFAULT, NULL, NULL", false),
    ("{n}, 'token', {o}, NULL", false),
    ("{n}, 'token', NULL, 'key'", false),
    ("{n}, 'token', 'plaintext', 'key'", false),
];

#[test]
fn only_cells_with_companions_pass_the_checks() {
    let _one_at_a_time = SERVERS.lock();
    for family in FAMILIES {
        let Some(mut conn) = connect(family) else {
            continue;
        };
        let conn = &mut conn;
        fresh_database(conn, "os_physical");
        let mut n = support::column("n", "varchar(30)", Some("utf8mb4_bin"));
        n.capabilities = support::capabilities("eq");
        n.nullable = false;
        n.column_id = *b"ABCD";
        let mut o = support::column("o", "int", None);
        o.capabilities = support::capabilities("eq range");
        o.column_id = *b"ABCE";
        for mode in [
            "",
            "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES",
            "ANSI,TRADITIONAL",
        ] {
            for charset in ["utf8mb4", "latin1", "gbk"] {
                run(conn, &format!("SET sql_mode = '{mode}'"));
                run(conn, &format!("SET NAMES {charset}"));
                run(conn, "DROP TABLE IF EXISTS os_physical.t");
                let set = SetMark::of_new_table(&[n.clone(), o.clone()], family, tag);
                let mut definitions = physical_definitions(&n, &set, family, tag).expect("sound");
                definitions.extend(physical_definitions(&o, &set, family, tag).expect("sound"));
                run(
                    conn,
                    &format!("CREATE TABLE os_physical.t ({})", definitions.join(", ")),
                );
                assert_eq!(rows(conn, "SHOW WARNINGS"), Vec::<Row>::new());
                assert_eq!(current(conn).damaged, None, "{mode} {charset}");
                run(conn, "SET sql_mode = 'STRICT_ALL_TABLES'");
                for (cells, passes) in CELLS {
                    let cells = cells
                        .replace("{n}", "CONCAT(X'110001', 'ABCD', REPEAT(X'FF', 28))")
                        .replace("{o}", "CONCAT(X'117FFF', 'ABCE', REPEAT(X'00', 32))");
                    let (eq, ord) = (n.names().eq.expect("eq"), o.names().ord.expect("range"));
                    let insert = format!(
                        "INSERT INTO os_physical.t (`n$enc`, `{eq}`, `o$enc`, `{ord}`) VALUES ({cells})"
                    );
                    match conn.query_drop(&insert) {
                        Ok(()) => assert!(passes, "{family:?} {mode} {charset} {cells}"),
                        Err(mysql::Error::MySqlError(error)) => {
                            assert!(!passes, "{family:?} {mode} {charset} {cells}: {error}");
                            assert!([3819, 4025].contains(&error.code), "{error}");
                            let name = error.message.split(['`', '\'']).nth(1).expect("a name");
                            assert!(is_our_constraint(name), "{error}");
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                let shown: Vec<Row> = rows(
                    conn,
                    &format!(
                        "SELECT COLUMN_NAME FROM {} AS c WHERE TABLE_SCHEMA = 'os_physical'",
                        information_schema_columns(family)
                    ),
                );
                assert_eq!(
                    shown,
                    [[Some("n".to_owned())], [Some("o".to_owned())]],
                    "{mode} {charset}"
                );
            }
        }
        run(conn, "DROP DATABASE os_physical");
    }
}
