//! What runs of a million statements found, made small: each story once differed from a plain
//! server. Now it is the same, or refused.

mod support;

use ::mysql::Value;
use support::*;

on_both_servers!(
    bits_are_those_of_their_own_row,
    defaults_that_the_server_shows_otherwise,
    a_look_at_the_tables_ends_no_savepoint,
    texts_that_do_not_convert_meet_no_row,
    rows_of_other_forms_warn_as_well,
    a_bound_time_beside_a_computed_constant,
    years_beyond_all_numbers,
    an_error_behind_definitions_has_a_list_of_its_own,
);

fn with_engine(kind: Kind, table: &str) -> Option<Pair> {
    Pair::with_engine(kind, table)
}

/// MariaDB's Aria and MyISAM keep the bits of BIT columns beside the row, and sort without them.
fn bits_are_those_of_their_own_row(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, a BIT(1), b BIT(1) {range}, c BIT(9))";
    let Some(mut pair) = with_engine(kind, table) else {
        return;
    };
    pair.both("INSERT INTO t VALUES (37, b'0', NULL, 1), (10, b'0', b'1', 2), (33, b'1', NULL, 3)");
    for sql in [
        "SELECT a + 0, COUNT(DISTINCT b), MIN(b) + 0, SUM(id) FROM t GROUP BY a ORDER BY a",
        "SELECT HEX(a), COUNT(DISTINCT b), MIN(b) + 0, SUM(id) FROM t GROUP BY a ORDER BY a",
        "SELECT a, COUNT(DISTINCT b), SUM(id) FROM t GROUP BY a ORDER BY a",
        "SELECT c, COUNT(DISTINCT b), SUM(id) FROM t GROUP BY c ORDER BY c",
        "SELECT a, c, MAX(b) + 0 FROM t GROUP BY a, c ORDER BY MAX(b), c",
    ] {
        pair.same_if_done(sql);
    }
}

/// In its tables of columns, MariaDB shows bytes that are no characters as `?`, MySQL shows bytes
/// as a number, and six digits of a FLOAT.
fn defaults_that_the_server_shows_otherwise(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, n BIGINT NOT NULL {range}, \
                 v VARBINARY(16) NOT NULL DEFAULT x'87fc3bb44335', w BINARY(2) DEFAULT '?a', \
                 x VARBINARY(4) DEFAULT x'00ff', f FLOAT NOT NULL DEFAULT 1.6777216e7, \
                 d DOUBLE DEFAULT 1.1, s VARCHAR(9) DEFAULT '0x41')";
    let Some(mut pair) = with_engine(kind, table) else {
        return;
    };
    let text = |text: &str| Value::Bytes(text.into());
    for (id, columns, values) in [
        (1, "n, v", "?, DEFAULT"),
        (2, "n, w", "?, DEFAULT"),
        (3, "n, x", "?, DEFAULT"),
        (4, "n, f", "?, DEFAULT"),
        (5, "n, d, s", "?, DEFAULT, DEFAULT"),
        (6, "n", "?"),
    ] {
        for verb in ["INSERT", "REPLACE", "INSERT IGNORE"] {
            let sql = format!("{verb} INTO t (id, {columns}) VALUES ({id}, {values})");
            // a number that the proxy leaves to the engine, and one that it takes itself
            for number in ["9223372036854775806.7", "5"] {
                pair.say("DELETE FROM t");
                if pair.same_if_done_with(&sql, &[text(number)]) {
                    pair.same("SELECT id, n, HEX(v), HEX(w), HEX(x), f + 0e0, d, s FROM t");
                }
            }
        }
    }
}

/// Without autocommit, what the proxy looks up behind its own savepoint ended the transaction: the
/// row was there, and the client got error 1305.
fn a_look_at_the_tables_ends_no_savepoint(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, n INT UNSIGNED {eq}, m TIME(1) NOT NULL {eq})";
    let Some(mut pair) = with_engine(kind, table) else {
        return;
    };
    for sql in [
        "SET sql_mode = ''",
        "SET autocommit = 0",
        "INSERT IGNORE INTO t (id, n, m) VALUES (1, '99999999999999999999', '0x10')",
        "SELECT id, n, m FROM t",
        "ROLLBACK",
        "SELECT id FROM t",
        "INSERT IGNORE INTO t (id, n, m) VALUES (2, 7 + 1, ADDTIME('1:00:00', '1:00:00'))",
        "ROLLBACK",
        "SELECT id FROM t",
    ] {
        pair.same_if_done(sql);
    }
}

/// REPLACE looks for the rows that it meets. A text that a key's character set does not have meets
/// none, and the statement itself says what there is to say.
fn texts_that_do_not_convert_meet_no_row(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, n INT {range}, \
                 k VARCHAR(40) COLLATE latin1_swedish_ci UNIQUE)";
    let Some(mut pair) = Pair::start(kind, &[table]) else {
        return;
    };
    for mode in ["", "STRICT_ALL_TABLES"] {
        pair.same(&format!("SET sql_mode = '{mode}'"));
        for sql in [
            "REPLACE INTO t (id, k, n) VALUES (12, '\u{1c4}', 1)",
            "REPLACE INTO t (id, k, n) VALUES (13, 'a', 1), (14, '\u{130}', 2)",
            "INSERT INTO t (id, k, n) VALUES (12, '\u{130}', 3) ON DUPLICATE KEY UPDATE n = 4",
            "SELECT id, k, n FROM t ORDER BY id",
        ] {
            pair.same_if_done(sql);
        }
    }
}

/// A row with `TIMESTAMP'…'` is not of the form of one with `'…'`.
fn rows_of_other_forms_warn_as_well(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP NULL, n INT NOT NULL {eq})";
    let Some(mut pair) = Pair::start(kind, &[table]) else {
        return;
    };
    for sql in [
        "INSERT IGNORE INTO t VALUES (1, '2020-07-01', NULL), (2, TIMESTAMP'2020-07-01 01:02:03', NULL)",
        "INSERT IGNORE INTO t VALUES (3, '2020-07-01', NULL), (4, '2020-07-01', NULL)",
        "INSERT IGNORE INTO t VALUES (5, 1 + 1, NULL), (6, NULL, 6), (7, '2020-07-01', NULL)",
    ] {
        pair.same_if_done(sql);
        pair.same_if_done("SHOW WARNINGS");
    }
    pair.same("SELECT id, n FROM t ORDER BY id");
}

/// What is bound stands as a literal where the engine computes a constant, and the statement may
/// run whole on the engine then. It ended with OS1105.
fn a_bound_time_beside_a_computed_constant(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9) {eq}, at DATETIME, n INT {eq})";
    let Some(mut pair) = with_engine(kind, table) else {
        return;
    };
    let at = Value::Date(2020, 1, 31, 1, 2, 3, 0);
    for (sql, parameters) in [
        (
            "INSERT INTO t VALUES (1, UPPER('a'), ?, 1)",
            vec![at.clone()],
        ),
        (
            "INSERT INTO t VALUES (2, UPPER('b'), ?, ?)",
            vec![at.clone(), Value::Int(2)],
        ),
        (
            "UPDATE t SET s = UPPER('c'), at = ? WHERE id = 1",
            vec![at.clone()],
        ),
        (
            "UPDATE t SET n = (?) WHERE (at) IN ((?), (?))",
            vec![Value::Int(5), at.clone(), at],
        ),
    ] {
        assert!(pair.same_if_done_with(sql, &parameters), "{sql}");
    }
    pair.same("SELECT * FROM t ORDER BY id");
}

/// MySQL reads a bound number beside a YEAR by sixteen of its bits, at times.
fn years_beyond_all_numbers(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, y YEAR {range})";
    let Some(mut pair) = Pair::start(kind, &[table]) else {
        return;
    };
    pair.both("INSERT INTO t VALUES (1, 2024), (2, 0), (3, NULL)");
    for condition in ["? < y", "y < ?", "y = ?", "y BETWEEN 5 AND ?", "y <> ?"] {
        for number in [
            Value::UInt(u64::MAX),
            Value::UInt(1 << 63),
            Value::Int(-1),
            Value::Int(i64::MAX),
            Value::Int(1 << 31),
            Value::Int((1 << 31) - 1),
            Value::Int(32_767),
            Value::Int(2_155),
            Value::Int(70_000),
        ] {
            let sql = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
            pair.same_if_done_with(&sql, &[number]);
        }
    }
}

/// The second error comes behind the definitions of its result. SHOW WARNINGS showed the first.
fn an_error_behind_definitions_has_a_list_of_its_own(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &["CREATE TABLE t (id INT PRIMARY KEY, n INT {eq})"])
    else {
        return;
    };
    for sql in [
        "SELECT (-9223372036854775808) DIV -1",
        "SHOW WARNINGS",
        "SELECT '123456789012345678901234567890.1' DIV 1 AS x",
        "SHOW WARNINGS",
        "SELECT @@warning_count, @@error_count",
    ] {
        pair.same(sql);
    }
}
