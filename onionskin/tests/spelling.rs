//! How servers cut names and numbers apart where they touch: `app 1.e.patients` is `app.patients`
//! to MySQL. Wherever a server finds a protected table, the proxy has found it, too: it answers as
//! the server would answer in the clear, or refuses.

use onionskin_testkit::*;

on_both_servers!(
    numbers_that_hide_names,
    numbers_that_hide_comments,
    names_that_begin_with_digits,
    every_spelling_between_two_names,
);

const TABLES: &str = "
CREATE TABLE patients (id INT PRIMARY KEY, name VARCHAR(20) {eq}, note VARCHAR(20));
CREATE TABLE plain (id INT PRIMARY KEY, 1st VARCHAR(20), 1e VARCHAR(20))
";

fn stage(kind: Kind) -> Option<Pair> {
    let mut pair = Pair::with_engine(kind, TABLES)?;
    pair.both("INSERT INTO patients VALUES (7, 'zanzibar', 'x')");
    pair.both("INSERT INTO plain VALUES (1, 'a', 'b')");
    Some(pair)
}

/// Whether the server in the clear executes a statement. The proxy then answers the same, or
/// refuses it itself: an error of the server would mean that the statement went there as it was.
fn holds(pair: &mut Pair, sql: &str) -> bool {
    let Ok(plain) = pair.plain.run(sql) else {
        return false;
    };
    match pair.protected.run(sql) {
        Ok(protected) => {
            let rows = |outcome: &Outcome| format!("{:?}", outcome.sets);
            assert_eq!(rows(&protected), rows(&plain), "{sql}");
        }
        Err(failure) => assert!(failure.message.starts_with("OS"), "{sql}: {failure}"),
    }
    let fresh = pair.protected.text("SELECT 40 + 2");
    assert_eq!(fresh.as_deref(), Ok("42"), "behind {sql}");
    true
}

fn numbers_that_hide_names(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    // in another database the table is found by its qualified name alone
    for session in [&mut pair.plain, &mut pair.protected] {
        session.must("CREATE DATABASE elsewhere");
        session.must("USE elsewhere");
    }
    let mut found = 0;
    for name in [
        "app 1.e.patients",
        "app 1.E.patients",
        "app 1.e+.patients",
        "app 1.e-.patients",
        "app .1e.patients",
        "app .1e+.patients",
        "app 12.34e.patients",
        "`app`.1e.patients",
        "`app`.6e.patients",
        "`app`.6e.`patients`",
        "`app`1.e.patients",
        "app/**/1.e.patients",
        "app.1.e.patients",
        "app 0x1.1e.patients",
        "app 1.e .patients",
        "app 1.e. patients",
        "app 1.e 1.e.patients",
    ] {
        for sql in [
            format!("SELECT * FROM {name}"),
            format!("INSERT INTO {name} (id, name) VALUES (1, 'zanzibarsecret')"),
            format!("UPDATE {name} SET name = 'zanzibarsecret' WHERE id = 1"),
            format!("DELETE FROM {name} WHERE name = 'zanzibarsecret'"),
        ] {
            found += usize::from(holds(&mut pair, &sql));
        }
    }
    // MariaDB takes none of them
    assert_eq!(found > 10, kind == Kind::MySql, "{found} are executed");
    let log = std::fs::read_to_string(pair.behind.data_dir().join("general.log")).unwrap();
    assert!(
        !log.contains("zanzibarsecret"),
        "a value reached the server"
    );
}

fn numbers_that_hide_comments(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    for sql in [
        "SELECT 9 1.e-- 2 FROM app.patients",
        "SELECT 9 1.e--2 FROM app.patients",
        "SELECT 9 1.e-- (SELECT COUNT(name) FROM app.patients)",
        "SELECT 1.e(name) FROM patients",
        "SELECT 9 1.e, name FROM patients",
        "SELECT 9 1.e* id, name FROM patients",
        "SELECT 'x'.1e, name FROM patients",
        "SELECT 0x41.1e, name FROM patients",
        "SELECT 1.5.1e, name FROM patients",
        "SELECT @`a`.1e, name FROM patients",
        "SELECT 9 1.e; SELECT name FROM patients",
        "SELECT 9 1.e/ 2, name FROM patients",
        "SELECT 9 1.e# 2, name FROM patients\n, 1",
        "SELECT 1.e'x', name FROM patients",
        "SELECT 1.e`name`, name FROM patients",
    ] {
        holds(&mut pair, sql);
    }
}

/// What both servers take for names stays one.
fn names_that_begin_with_digits(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    for sql in [
        "SELECT plain.1st FROM plain",
        "SELECT 1e.1st FROM plain 1e",
        "SELECT 1e.1e FROM plain AS 1e",
        "SELECT plain . 1st FROM plain",
        "SELECT 0b1x.1e FROM plain 0b1x",
        "SELECT 1e FROM plain",
        "SELECT 1.e1, 1.5e-3, .5e1, 1e5, 1. FROM plain",
        "SELECT 1e.name FROM patients 1e WHERE 1e.name = 'zanzibar'",
        "SELECT p.name, 1.5e3, .5 FROM patients p WHERE p.id = 7.",
    ] {
        assert!(holds(&mut pair, sql), "{sql}");
        let refused = pair.protected.run(sql).err();
        assert_eq!(refused, None, "{sql}");
    }
}

fn every_spelling_between_two_names(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    const BETWEEN: [&str; 40] = [
        "", " ", ".", " .", ". ", "1", "1.", ".1", "1e", "1.e", ".1e", "1.e+", "1.e-", "1.1e",
        "1e5", "1.e5", ".1e5", "1ee", "0x1", "0b1", "x'1'", "'1'", "\"1\"", "`1`", "@a", "@@a",
        "-", "--", "-- ", "#", "/**/", "/*!*/", "/*!1*/", "\n", "*", "(", ")", ",", "e", "_utf8",
    ];
    for session in [&mut pair.plain, &mut pair.protected] {
        session.must("CREATE DATABASE elsewhere");
        session.must("USE elsewhere");
    }
    let mut found = 0;
    for first in BETWEEN {
        for second in BETWEEN {
            for dot in ["", "."] {
                for (database, table) in [
                    ("app", "patients"),
                    ("`app`", "patients"),
                    ("app", "`patients`"),
                    ("app ", "patients"),
                ] {
                    let sql = format!("SELECT * FROM {database}{first}{second}{dot}{table}");
                    found += usize::from(holds(&mut pair, &sql));
                }
                let sql = format!("SELECT 9 {first}{second}{dot}name FROM app.patients");
                found += usize::from(holds(&mut pair, &sql));
            }
        }
    }
    assert!(found > 100, "{found} are executed");
}
