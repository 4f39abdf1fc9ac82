//! `DATE '…'` and `TIMESTAMP '…'` as constants of protected columns, without a scratch engine.

mod support;

use support::*;

on_both_servers!(
    compared_with_every_type,
    stored_in_every_type,
    escape_of_nothing,
);

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, d DATE {range}, dt DATETIME {range}, \
                     d6 DATETIME(6) {range}, ts TIMESTAMP NULL {range}, e DATE {eq}, \
                     s VARCHAR(30) {eq, range}, n BIGINT {range}, ti TIME {range}, y YEAR {range})";

const CONSTANTS: [&str; 12] = [
    "DATE '2020-01-31'",
    "DATE'1999-12-31'",
    "TIMESTAMP '2020-01-31 00:00:00'",
    "timestamp'2020-01-31 10:11:12'",
    "TIMESTAMP '2020-01-31 10:11:12.5'",
    "DATE '2020-02-30'",
    "DATE '2020-1-1'",
    "DATE '0000-00-00'",
    "DATE '20200131'",
    "TIMESTAMP '2020-01-31'",
    "TIMESTAMP '2038-01-19 03:14:08'",
    "TIME '10:11:12'",
];

const COLUMNS: [&str; 9] = ["d", "dt", "d6", "ts", "e", "s", "n", "ti", "y"];

fn pair(kind: Kind) -> Option<Pair> {
    let mut pair = Pair::of(kind, false, &[])?;
    let (definition, bare) = with_and_without_protection(TABLE);
    pair.plain.must(&bare);
    pair.protected.must(&definition);
    pair.both(
        "INSERT INTO t VALUES \
         (1, '2020-01-31', '2020-01-31', '2020-01-31', '2020-01-31', '2020-01-31', '2020-01-31', 20200131, '00:00:00', 2020), \
         (2, '1999-12-31', '2020-01-31 10:11:12', '2020-01-31 10:11:12.5', '2020-01-31 10:11:12', '1999-12-31', '2020-01-31 10:11:12', 20200131101112, '10:11:12', 1999), \
         (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
         (4, '2021-01-01', '2021-01-01', '2021-01-01', '2021-01-01', '2021-01-01', 'x', 0, '-01:00:00', 0)",
    );
    Some(pair)
}

fn compared_with_every_type(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    let mut done = 0;
    for zone in ["+00:00", "+05:00"] {
        pair.same(&format!("SET time_zone = '{zone}'"));
        for (column, constant) in COLUMNS.iter().flat_map(|c| CONSTANTS.map(|k| (c, k))) {
            for condition in [
                format!("{column} = {constant}"),
                format!("{constant} <=> {column}"),
                format!("{column} <> {constant}"),
                format!("{column} >= {constant}"),
                format!("{column} < {constant}"),
                format!("{column} BETWEEN {constant} AND DATE '2020-12-31'"),
                format!("{column} NOT BETWEEN DATE '2000-01-01' AND {constant}"),
                format!("{column} IN ({constant}, DATE '2021-01-01')"),
                format!("{column} NOT IN (DATE '1999-12-31', {constant})"),
                format!("{column} IN ({constant}, '2021-01-01')"),
                format!("{column} BETWEEN {constant} AND '2021-01-01'"),
                format!("{column} IN ({constant}, NULL)"),
            ] {
                let sql = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
                done += usize::from(pair.same_if_done(&sql) && pair.same_if_done_with(&sql, &[]));
            }
        }
    }
    assert!(done > 100, "{done}");
    assert!(pair.same_if_done("SELECT id FROM t WHERE d = DATE '2020-01-31'"));
    assert!(
        pair.same_if_done(
            "SELECT id FROM t WHERE dt BETWEEN DATE'2020-01-01' AND DATE'2020-12-31'"
        )
    );
    assert!(pair.same_if_done("DELETE FROM t WHERE ts < TIMESTAMP'2020-01-31 01:00:00'"));
}

fn stored_in_every_type(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    for (column, constant) in COLUMNS.iter().flat_map(|c| CONSTANTS.map(|k| (c, k))) {
        for sql in [
            format!("INSERT INTO t (id, {column}) VALUES (9, {constant})"),
            format!("UPDATE t SET {column} = {constant} WHERE id = 1"),
            format!(
                "INSERT IGNORE INTO t (id, {column}) VALUES (1, {constant}) ON DUPLICATE KEY UPDATE {column} = {constant}"
            ),
            "DELETE FROM t WHERE id = 9".to_owned(),
        ] {
            pair.same_if_done(&sql);
        }
        pair.same("SELECT * FROM t ORDER BY id");
    }
}

/// Frameworks write it where they want no character to escape.
fn escape_of_nothing(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20) {like}, b VARBINARY(20) {})";
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    let (definition, bare) = with_and_without_protection(table);
    pair.plain.must(&bare);
    pair.protected.must(&definition);
    pair.both(
        "INSERT INTO t VALUES (1, 'a%', 'a%'), (2, 'a\\\\%b', 'a\\\\%b'), (3, 'a\\\\', 'a\\\\'), (4, 'abc', 'abc'), (5, NULL, NULL)",
    );
    for mode in ["", "NO_BACKSLASH_ESCAPES"] {
        pair.same(&format!("SET sql_mode = '{mode}'"));
        for (column, pattern) in ["s", "b"]
            .iter()
            .flat_map(|c| ["a%", "a\\\\%", "a\\\\\\\\%", "a_", "%", "abc", "a\\\\"].map(|p| (c, p)))
        {
            for not in ["", "NOT "] {
                let sql = format!(
                    "SELECT id FROM t WHERE {column} {not}LIKE '{pattern}' ESCAPE '' ORDER BY id"
                );
                pair.same_if_done(&sql);
                let parameter = [::mysql::Value::from(pattern)];
                let bound =
                    format!("SELECT id FROM t WHERE {column} {not}LIKE ? ESCAPE '' ORDER BY id");
                pair.same_if_done_with(&bound, &parameter);
            }
        }
    }
    pair.same("SET sql_mode = ''");
    assert!(pair.same_if_done("SELECT id FROM t WHERE s LIKE 'a%' ESCAPE ''"));
}
