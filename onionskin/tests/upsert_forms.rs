//! The forms in which frameworks write an upsert: with a name for the new row on MySQL, and with
//! RETURNING on MariaDB.

use ::mysql::Value;
use onionskin_testkit::*;

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(9) {eq}, p VARCHAR(9), \
                     q INT {range}, s TEXT {}, u INT UNIQUE)";

fn pair(kind: Kind) -> Option<Pair> {
    let mut pair = Pair::start(kind, &[TABLE])?;
    pair.both("INSERT INTO t VALUES (1, 'a', 'b', 1, 's', 10), (2, 'c', 'd', 2, NULL, 20)");
    Some(pair)
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
