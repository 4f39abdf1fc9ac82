//! What stored programs leave behind them in a session: settings, transactions, a database, a role.
//! An answer does not always tell of it. An error never does, and what is told in the middle of an
//! answer the server may have taken back at its end. The next statement is read, sealed and
//! answered as on a plain server.

use ::mysql::Value;
use onionskin_testkit::*;

on_both_servers!(
    settings_of_programs_that_fail_or_show_rows,
    transactions_that_programs_begin_and_end,
    a_program_of_another_database_leaves_it,
    blocks_of_statements,
);

const TABLES: [&str; 2] = [
    "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(40) {eq}, city VARCHAR(40), n TINYINT {eq})",
    "CREATE TABLE s (id INT PRIMARY KEY, at TIMESTAMP NULL {eq})",
];

/// A setting of a program's, and statements that it would give another meaning.
const SETTINGS: [(&str, &[&str]); 7] = [
    (
        "time_zone = '+05:00'",
        &[
            "SELECT id, at FROM s",
            "INSERT INTO s VALUES (9, '2021-01-01 00:00:00')",
            "SELECT UNIX_TIMESTAMP('2021-01-01 00:00:00')",
        ],
    ),
    (
        "sql_mode = 'NO_BACKSLASH_ESCAPES'",
        &[
            r"INSERT INTO t (id, name) VALUES (9, 'a\\nb')",
            r"SELECT id FROM t WHERE name = 'a\\nb'",
        ],
    ),
    (
        "sql_mode = 'ANSI_QUOTES'",
        &[r#"SELECT id FROM t WHERE name = "quoted""#],
    ),
    (
        "sql_mode = ''",
        &[
            "INSERT INTO t (id, n) VALUES (9, 9999)",
            "SELECT n FROM t WHERE id = 9",
        ],
    ),
    (
        "NAMES latin1",
        &[
            "INSERT INTO t (id, name, city) VALUES (9, 'é', 'é')",
            "SELECT id FROM t WHERE name = 'é'",
        ],
    ),
    (
        "character_set_results = latin1",
        &["SELECT name FROM t WHERE id = 2"],
    ),
    (
        "sql_select_limit = 1",
        &["SELECT id, name FROM t ORDER BY name, id"],
    ),
];

fn begin_anew(pair: &mut Pair) {
    for sql in [
        "SET NAMES utf8mb4",
        "SET time_zone = '+00:00', sql_select_limit = DEFAULT, sql_mode = 'STRICT_ALL_TABLES'",
        "DELETE FROM t WHERE id > 3",
        "DELETE FROM s WHERE id > 1",
    ] {
        pair.both(sql);
    }
}

fn settings_of_programs_that_fail_or_show_rows(kind: Kind) {
    const FAILS: &str = "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'stop'";
    let Some(mut pair) = Pair::start(kind, &TABLES) else {
        return;
    };
    pair.both("SET time_zone = '+00:00'");
    pair.both("CREATE TABLE plain (id INT PRIMARY KEY)");
    pair.both("CREATE TABLE keyed (id INT PRIMARY KEY)");
    pair.both("INSERT INTO keyed VALUES (1)");
    pair.both("INSERT INTO t (id, name, n) VALUES (1, 'a', 1), (2, 'é', 2), (3, 'quoted', 3)");
    pair.both("INSERT INTO s VALUES (1, '2020-01-01 12:00:00')");
    for (setting, probes) in SETTINGS {
        for (name, body) in [
            ("p", format!("SET {setting}; {FAILS}")),
            ("c", format!("SET {setting}; SELECT 5")),
            ("e", format!("SET {setting}; SELECT 5; {FAILS}")),
            ("o", format!("SET {setting}")),
        ] {
            pair.both(&format!("DROP PROCEDURE IF EXISTS {name}"));
            pair.both(&format!("CREATE PROCEDURE {name}() BEGIN {body}; END"));
        }
        pair.both("DROP FUNCTION IF EXISTS f");
        pair.both(&format!(
            "CREATE FUNCTION f() RETURNS INT NO SQL BEGIN SET {setting}; {FAILS}; RETURN 1; END"
        ));
        pair.both("CREATE OR REPLACE VIEW k AS SELECT id, f() AS z FROM keyed");
        pair.both("DROP TRIGGER IF EXISTS tr");
        pair.both(&format!(
            "CREATE TRIGGER tr BEFORE INSERT ON plain FOR EACH ROW BEGIN SET {setting}; {FAILS}; END"
        ));
        for call in [
            "CALL p()",
            "CALL c()",
            "CALL e()",
            "CALL o()",
            "SELECT f()",
            "SELECT * FROM k",
            "DO f()",
            "INSERT INTO plain VALUES (1)",
            "INSERT INTO plain SELECT id FROM t WHERE name = 'a'",
        ] {
            for prepared in [false, true] {
                begin_anew(&mut pair);
                for session in pair.sessions() {
                    // it fails, or shows rows
                    let _ = match prepared {
                        true => session.execute(call, ()).map(drop),
                        false => session.run(call).map(drop),
                    };
                }
                for probe in probes {
                    assert!(pair.same_or_refused(probe), "{setting}, {call}: {probe}");
                }
            }
        }
        // a question about the error comes first, and what is behind it in its text does not
        begin_anew(&mut pair);
        for session in pair.sessions() {
            assert!(session.run("CALL p()").is_err());
        }
        let text = format!("SHOW WARNINGS; {}", probes[0]);
        assert!(pair.same_or_refused(&text), "{setting}: {text}");
        for probe in probes {
            assert!(pair.same_or_refused(probe), "{setting}: {text}; {probe}");
        }
    }
    begin_anew(&mut pair);
    pair.same("SELECT id, name, city, n FROM t");
}

fn transactions_that_programs_begin_and_end(kind: Kind) {
    let tables = ["CREATE TABLE acct (id INT PRIMARY KEY, tries INT {}, note VARCHAR(60) {eq})"];
    let Some(mut pair) = Pair::start(kind, &tables) else {
        return;
    };
    pair.both("CREATE TABLE orders (id INT PRIMARY KEY)");
    pair.both("INSERT INTO orders VALUES (1)");
    for (name, body) in [
        (
            "books",
            "START TRANSACTION; INSERT INTO orders VALUES (9); INSERT INTO orders VALUES (1); COMMIT",
        ),
        (
            "holds",
            "SET autocommit = 0; INSERT INTO orders VALUES (9); INSERT INTO orders VALUES (1)",
        ),
        (
            "ends",
            "INSERT INTO orders VALUES (9); COMMIT; INSERT INTO orders VALUES (1)",
        ),
        (
            "takes_back",
            "INSERT INTO orders VALUES (9); ROLLBACK; INSERT INTO orders VALUES (1)",
        ),
    ] {
        pair.both(&format!("CREATE PROCEDURE {name}() BEGIN {body}; END"));
    }
    let writes = [
        "UPDATE acct SET tries = tries + 1",
        "UPDATE acct SET note = CONCAT(note, 'x') ORDER BY id",
        "UPDATE acct SET tries = tries + 1, id = 1 WHERE tries > 0",
        "DELETE FROM acct WHERE tries + 1 > 2",
        "INSERT INTO acct VALUES (3, 3, 'c')",
    ];
    for program in ["books", "holds", "ends", "takes_back"] {
        for write in writes {
            for begin in ["DO 0", "BEGIN"] {
                pair.both("SET autocommit = 1");
                pair.both("DELETE FROM orders WHERE id > 1");
                pair.both("DELETE FROM acct");
                pair.both("INSERT INTO acct VALUES (1, 1, 'a'), (2, 2, 'b')");
                pair.both(begin);
                pair.both("INSERT INTO orders VALUES (7)");
                pair.same_error(&format!("CALL {program}()"));
                pair.same_or_refused(write);
                pair.both("ROLLBACK");
                let context = format!("{begin}, {program}, {write}");
                for table in ["orders", "acct"] {
                    let select = format!("SELECT * FROM {table}");
                    assert!(pair.same_or_refused(&select), "{context}");
                }
            }
        }
    }
    for ends in [
        "SET PASSWORD FOR nobody = 'x'",
        "GRANT SELECT ON nosuch.* TO nobody",
    ] {
        for write in writes {
            pair.both("SET autocommit = 1");
            pair.both("DELETE FROM acct");
            pair.both("INSERT INTO acct VALUES (1, 1, 'a'), (2, 2, 'b')");
            pair.both("BEGIN");
            for session in pair.sessions() {
                assert!(session.run(ends).is_err(), "{ends}");
            }
            pair.same_or_refused(write);
            pair.both("ROLLBACK");
            pair.same("SELECT * FROM acct");
        }
    }
}

fn a_program_of_another_database_leaves_it(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[TABLES[0]]) else {
        return;
    };
    pair.both("CREATE DATABASE other");
    pair.both("CREATE TABLE other.t (id INT PRIMARY KEY, name VARCHAR(40), city INT, n INT)");
    pair.both("CREATE PROCEDURE other.pe() BEGIN SELECT 5; SIGNAL SQLSTATE '45000'; END");
    pair.both("CREATE PROCEDURE other.shows() BEGIN SELECT 5; SELECT 6; END");
    pair.both("BEGIN");
    for (at, call) in ["CALL other.pe()", "CALL other.shows()"]
        .into_iter()
        .enumerate()
    {
        for session in pair.sessions() {
            let _ = session.run(call);
        }
        pair.same(&format!("INSERT INTO t (id, name) VALUES ({at}, 'a')"));
        pair.same("SELECT DATABASE()");
    }
    pair.both("COMMIT");
    pair.same("SELECT id, name FROM t WHERE name = 'a'");
    pair.same("SELECT COUNT(*) FROM other.t");
}

/// MariaDB runs statements of programs outside of programs.
fn blocks_of_statements(kind: Kind) {
    if kind != Kind::MariaDb {
        return;
    }
    let Some(mut pair) = Pair::start(kind, &TABLES) else {
        return;
    };
    pair.both("SET time_zone = '+00:00'");
    pair.both("INSERT INTO t (id, name, n) VALUES (1, 'a', 1), (2, 'é', 2), (3, 'quoted', 3)");
    pair.both("INSERT INTO s VALUES (1, '2020-01-01 12:00:00')");
    for (setting, probes) in SETTINGS {
        for block in [
            format!("BEGIN NOT ATOMIC SET {setting}; SIGNAL SQLSTATE '45000'; END"),
            format!("BEGIN NOT ATOMIC SET {setting}; SELECT 5; END"),
            format!("IF 1 THEN SET {setting}; SELECT 5; END IF"),
            format!("EXECUTE IMMEDIATE \"SET {setting}\""),
        ] {
            begin_anew(&mut pair);
            for session in pair.sessions() {
                let _ = session.run(&block);
            }
            for probe in probes {
                assert!(pair.same_or_refused(probe), "{block}: {probe}");
            }
        }
    }
    let parameter = [Value::from(1)];
    assert!(pair.same_if_done_with("SELECT id FROM t WHERE id = ?", &parameter));
}
