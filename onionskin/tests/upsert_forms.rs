//! The forms in which frameworks write an upsert: with a name for the new row on MySQL, and with
//! RETURNING on MariaDB.

use ::mysql::Value;
use onionskin_testkit::*;

on_both_servers!(rows_of_one_statement_spell_a_key_otherwise);

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(9) {eq}, p VARCHAR(9), \
                     q INT {range}, s TEXT {}, u INT UNIQUE)";

fn pair(kind: Kind) -> Option<Pair> {
    let mut pair = Pair::start(kind, &[TABLE])?;
    pair.both("INSERT INTO t VALUES (1, 'a', 'b', 1, 's', 10), (2, 'c', 'd', 2, NULL, 20)");
    Some(pair)
}

/// A column that the new row does not have is missed before any value is looked at.
#[test]
fn mysql_misses_a_column_of_the_new_row_first() {
    let Some(mut pair) = pair(Kind::MySql) else {
        return;
    };
    for change in ["p = new.p, q = new.q", "q = new.q + 1, p = new.p"] {
        let sql = format!(
            "INSERT INTO t (id, q) VALUES (1, '0x10') AS new ON DUPLICATE KEY UPDATE {change}"
        );
        let said = pair.same(&sql);
        assert!(said.starts_with("1054 "), "{said}");
        assert!(pair.same_if_done_with(&sql, &[]));
    }
}

/// Beside the new row, a bare name of a column means both rows.
#[test]
fn mysql_names_the_new_row() {
    let Some(mut pair) = pair(Kind::MySql) else {
        return;
    };
    let rows = [
        "(id, n, p, q) VALUES (1, 'x', 'y', 5)",
        "(id, n, p, q) VALUES (1, 'x', 'y', 5), (7, 'X', NULL, NULL), (2, 'c', 'd', 2)",
    ];
    let changes = [
        "n = 'Up'",
        "n = new.n",
        "n = new.n, p = new.p, q = new.q",
        "q = 12, n = 'a', s = 'sealed'",
        "q = new.q, s = 'sealed'",
        "p = new.n",
        "p = 'plain'",
        "n = 'much too long for it'",
        "n = DEFAULT, q = NULL",
    ];
    for name in ["new", "`new`", "`n w`"] {
        for (row, change) in rows.iter().flat_map(|r| changes.map(|c| (r, c))) {
            let change = change.replace("new.", &format!("{name}."));
            let sql = format!("INSERT INTO t {row} AS {name} ON DUPLICATE KEY UPDATE {change}");
            pair.same_if_done(&sql);
            pair.same_if_done_with(&sql, &[]);
            pair.same("SELECT * FROM t ORDER BY id");
        }
    }
    let sql = "INSERT INTO t (id, n) VALUES (?, ?) AS new ON DUPLICATE KEY UPDATE n = ?, p = new.p";
    for unknown in ["p = new.p", "q = new.q", "n = 'x', s = new.s"] {
        let sql = format!(
            "INSERT INTO t (id, n) VALUES (1, 'a') AS new ON DUPLICATE KEY UPDATE {unknown}"
        );
        assert_eq!(pair.plain.must_fail(&sql), 1054, "{unknown}");
        assert_eq!(pair.protected.must_fail(&sql), 1054, "{unknown}");
    }
    let sql = sql.replace(", p = new.p", ", q = 3");
    for id in [1, 8] {
        let values = [Value::Int(id), Value::from("k"), Value::from("m")];
        assert!(pair.same_if_done_with(&sql, &values));
    }
    pair.same("SELECT * FROM t ORDER BY id");
}

#[test]
fn mariadb_returns_the_rows() {
    let Some(mut pair) = pair(Kind::MariaDb) else {
        return;
    };
    let rows = [
        "VALUES (1, 'x', 'y', 5, 'S', 11)",
        "VALUES (9, 'x', 'y', 5, 'S', 20)",
        "VALUES (1, 'x', 'y', 5, 's', 10), (7, 'X', NULL, NULL, NULL, 70), (2, 'c', 'd', 2, NULL, 20)",
        "SET id = 2, n = 'e', q = 4",
    ];
    let changes = [
        "n = 'Up'",
        "n = VALUES(n)",
        "n = VALUE(n), p = 'r', q = VALUES(q)",
        "q = 12, n = 'a', s = 'sealed'",
        "p = 'plain'",
        "s = VALUES(s)",
    ];
    for shown in ["*", "id", "n, q, id + 1", "s, p AS n, n AS p"] {
        for (row, change) in rows.iter().flat_map(|r| changes.map(|c| (r, c))) {
            let sql =
                format!("INSERT INTO t {row} ON DUPLICATE KEY UPDATE {change} RETURNING {shown}");
            assert!(
                pair.same_if_done(&sql) && pair.same_if_done_with(&sql, &[]),
                "{sql}"
            );
            pair.same("SELECT * FROM t ORDER BY id");
        }
    }
    let sql =
        "INSERT INTO t (id, n) VALUES (?, ?) ON DUPLICATE KEY UPDATE n = ? RETURNING id, n, q";
    for id in [1, 8] {
        let values = [Value::Int(id), Value::from("k"), Value::from("m")];
        assert!(pair.same_if_done_with(sql, &values));
    }
    // whether the value counts depends on whether a row is met, and the row is to be shown
    for id in [1, 99] {
        pair.same_if_done(&format!(
            "INSERT INTO t (id) VALUES ({id}) ON DUPLICATE KEY UPDATE n = 'much too long' RETURNING id"
        ));
    }
    pair.protected.must("DELETE FROM t WHERE id = 99");
    pair.same("SELECT * FROM t ORDER BY id");
}

/// Rows of one statement that meet each other under a plaintext key, which they spell otherwise:
/// the server counts what has changed, and a value that was sealed twice must not.
fn rows_of_one_statement_spell_a_key_otherwise(kind: Kind) {
    let tables = [
        "CREATE TABLE words (id INT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(20) COLLATE utf8mb4_general_ci UNIQUE, \
         s TEXT {})",
        "CREATE TABLE bits (id INT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(20) COLLATE utf8mb4_bin UNIQUE, s TEXT {})",
        "CREATE TABLE years (id INT AUTO_INCREMENT PRIMARY KEY, k YEAR UNIQUE, s TEXT {})",
        "CREATE TABLE sums (id INT AUTO_INCREMENT PRIMARY KEY, k DECIMAL(8,2) UNIQUE, s TEXT {})",
        "CREATE TABLE days (id INT AUTO_INCREMENT PRIMARY KEY, k DATE UNIQUE, s TEXT {})",
        "CREATE TABLE moments (id INT AUTO_INCREMENT PRIMARY KEY, k DATETIME UNIQUE, s TEXT {})",
        "CREATE TABLE numbers (id INT AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 7 UNIQUE, s TEXT {})",
        "CREATE TABLE heads (id INT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(20), UNIQUE (k(3)), s TEXT {})",
        "CREATE TABLE made (id INT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(20), low VARCHAR(20) AS (LOWER(k)) UNIQUE, \
         s TEXT {})",
        "CREATE TABLE kinds (id INT AUTO_INCREMENT PRIMARY KEY, k ENUM('a','b','c') UNIQUE, s TEXT {})",
        "CREATE TABLE flags (id INT AUTO_INCREMENT PRIMARY KEY, k BIT(8) UNIQUE, s TEXT {})",
        "CREATE TABLE marks (id INT AUTO_INCREMENT PRIMARY KEY, k VARBINARY(8) UNIQUE, s TEXT {})",
    ];
    let Some(mut pair) = Pair::start(kind, &tables) else {
        return;
    };
    let mut cases = vec![
        (
            "words",
            vec!["'a'", "'A'", "'ä'", "'a '", "x'41'", "NULL", "_latin1'A'"],
        ),
        ("bits", vec!["'a'", "'A'", "'a '", "0x61", "NULL"]),
        (
            "years",
            vec![
                "2000", "'2000'", "'00'", "'0'", "0", "20", "'20'", "2020", "NULL",
            ],
        ),
        (
            "sums",
            vec![
                "1", "1.0", "'1.00'", "+1", "1e0", "-1", "'-1'", "1.001", "TRUE",
            ],
        ),
        (
            "days",
            vec![
                "'2020-01-02'",
                "20200102",
                "'2020-1-2'",
                "DATE '2020-01-02'",
                "'20200102'",
            ],
        ),
        (
            "moments",
            vec![
                "'2020-01-02'",
                "20200102",
                "'2020-01-02 00:00:00'",
                "DATE'2020-01-02'",
            ],
        ),
        (
            "numbers",
            vec![
                "7", "'7'", "07", "7.0", "7.4", "DEFAULT", "3 + 4", "0x07", "TRUE", "1",
            ],
        ),
        ("heads", vec!["'abcd'", "'abce'", "'ABC'", "'ab'", "NULL"]),
        ("made", vec!["'a'", "'A'", "'b'"]),
        ("kinds", vec!["'a'", "1", "'A'", "'1'", "'b'", "NULL"]),
        ("flags", vec!["1", "b'1'", "x'01'", "'\u{1}'"]),
        ("marks", vec!["'a'", "x'61'", "97", "'97'"]),
    ];
    if kind == Kind::MySql {
        let table = "CREATE TABLE lowered (id INT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(20), s TEXT {}, \
                     UNIQUE ((LOWER(k))))";
        pair.plain.must(&table.replace("{}", ""));
        pair.protected
            .must(&table.replace("{}", "ENCRYPTED FOR ()"));
        cases.push(("lowered", vec!["'a'", "'A'", "'b'"]));
    }
    let (mut done, mut wrong) = (0, Vec::new());
    for (table, keys) in cases {
        for (n, first) in keys.iter().enumerate() {
            for second in &keys[n..] {
                let rows = format!("INTO {table} (k, s) VALUES ({first}, 'v'), ({second}, 'v')");
                for change in ["s = VALUES(s)", "s = 'v'"] {
                    pair.say(&format!("DELETE FROM {table}"));
                    let insert = format!("INSERT {rows} ON DUPLICATE KEY UPDATE {change}");
                    // the second time, both meet a row that is there
                    for sql in [&insert, &insert, &format!("REPLACE {rows}")] {
                        match affected(&mut pair.protected, sql) {
                            Err(1235) => {}
                            is => {
                                done += 1;
                                let should = affected(&mut pair.plain, sql);
                                if is != should {
                                    wrong.push(format!("{sql}: {is:?} instead of {should:?}"));
                                }
                            }
                        }
                    }
                    let said = pair.say(&format!("SELECT k, s FROM {table} ORDER BY id"));
                    if said.plain != said.protected {
                        wrong.push(format!("after {rows}: {said:?}"));
                    }
                }
            }
        }
    }
    announce(&format!("{}: {done} statements were done", kind.name()));
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}

/// How many rows, or the error.
fn affected(session: &mut Session, sql: &str) -> Result<u64, u16> {
    session
        .run(sql)
        .map(|done| done.affected)
        .map_err(|e| e.code)
}
