//! What runs of a million statements found, made small: each story once differed from a plain
//! server. Now it is the same, or refused.

use ::mysql::Value;
use onionskin_testkit::*;

on_both_servers!(
    bits_are_those_of_their_own_row,
    defaults_that_the_server_shows_otherwise,
    a_look_at_the_tables_ends_no_savepoint,
    texts_that_do_not_convert_meet_no_row,
    rows_of_other_forms_warn_as_well,
    a_bound_time_beside_a_computed_constant,
    years_beyond_all_numbers,
    an_error_behind_definitions_has_a_list_of_its_own,
    bound_texts_have_the_connections_collation,
    null_of_a_computation_is_not_for_every_column,
    rows_that_ignore_would_not_take,
    keys_are_shown_as_those_of_plaintext,
    a_column_that_only_a_met_row_gets,
    averages_of_one_row_that_has_none,
    numbers_without_a_month_or_a_day,
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

/// Rows are read before they are changed, and what is bound stands as literals in that query. Named
/// by a character set, a literal had that set's own collation, and other rows were found.
fn bound_texts_have_the_connections_collation(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, p VARCHAR(9), c VARCHAR(9) NOT NULL {eq})";
    let Some(mut pair) = with_engine(kind, table) else {
        return;
    };
    let names = [
        "utf8mb4",
        "utf8mb4 COLLATE utf8mb4_bin",
        "utf8mb4 COLLATE utf8mb4_general_ci",
        "utf8mb4 COLLATE utf8mb4_unicode_ci",
        "latin1",
        "latin1 COLLATE latin1_bin",
        "gbk",
        "gbk COLLATE gbk_bin",
    ];
    let text = |text: &[u8]| Value::Bytes(text.into());
    let conditions = [
        ("? = UPPER(?)", vec![text(b"a"), text(b"a")]),
        ("? LIKE ?", vec![text(b"A"), text(b"a")]),
        ("id LIKE ? ESCAPE '|'", vec![text(b"1")]),
        ("? = 'A'", vec![text(b"a")]),
        (
            "CONCAT(id, ?) = CONCAT(?, ?)",
            vec![text(b"A"), text(b"1"), text(b"a")],
        ),
        ("? = ?", vec![text(b"'\\x\n%\0\""), text(b"'\\x\n%\0\"")]),
        ("? = '\\\\' AND p = ?", vec![text(b"\\"), text(b"P")]),
    ];
    let mut done = 0;
    for (mode, names) in ["", "NO_BACKSLASH_ESCAPES"]
        .iter()
        .flat_map(|m| names.map(|n| (m, n)))
    {
        pair.same(&format!("SET sql_mode = '{mode}'"));
        pair.both(&format!("SET NAMES {names}"));
        for (condition, values) in &conditions {
            pair.say("REPLACE INTO t VALUES (1, 'p', 'c')");
            // MySQL's parameters keep the collation that the connection had at PREPARE
            let sql = format!("UPDATE t SET p = ?, c = ? WHERE {condition} /* {names} {mode} */");
            let mut parameters = vec![text(b"q"), text(b"d")];
            parameters.extend(values.iter().cloned());
            done += usize::from(pair.same_if_done_with(&sql, &parameters));
            pair.same("SELECT * FROM t");
        }
    }
    // A backslash is refused in gbk, where it may be a half of a character, and where it is not
    // written twice. All else is done: 5 conditions of 16 settings, and 2 of 6.
    assert_eq!(done, 5 * 16 + 2 * 6);
}

/// A CHECK of the proxy's own refused the row, by its name.
fn null_of_a_computation_is_not_for_every_column(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, p INT, c INT NOT NULL {eq})";
    let Some(mut pair) = Pair::start(kind, &[table]) else {
        return;
    };
    pair.both("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)");
    for mode in ["", "STRICT_ALL_TABLES"] {
        pair.same(&format!("SET sql_mode = '{mode}'"));
        for sql in [
            "UPDATE t SET c = c + NULL WHERE id = 1",
            "UPDATE t SET c = c - NULL",
            "UPDATE t SET c = c * NULL WHERE p NOT IN (7) ORDER BY id",
        ] {
            pair.same_if_done(sql);
        }
        pair.same_if_done_with("UPDATE t SET c = c + ? WHERE id = 2", &[Value::NULL]);
        pair.same("SELECT * FROM t ORDER BY id");
    }
}

/// The scratch engine computes rows under IGNORE, and they are written without it.
fn rows_that_ignore_would_not_take(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, c TEXT NOT NULL {eq}, d DATE NOT NULL, \
                 at DATETIME(3) NOT NULL, ts TIMESTAMP(6) NOT NULL, \
                 up TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3))";
    let Some(mut pair) = with_engine(kind, table) else {
        return;
    };
    for sql in [
        "UPDATE IGNORE t SET d = '--1', c = 'x' WHERE 29 >= id ORDER BY id DESC",
        "UPDATE IGNORE t SET at = '2020-01-31 25:00:00', c = 'x' ORDER BY id DESC",
        "UPDATE IGNORE t SET ts = DEFAULT, c = UPPER(c) ORDER BY id",
        "UPDATE IGNORE t SET up = '2020-02-30 10:00:00', c = CONCAT(c, 'y') ORDER BY id",
        "UPDATE IGNORE t SET d = NULL, c = CONCAT(c, 'y') WHERE id = 1",
    ] {
        pair.both(
            "REPLACE INTO t VALUES (1, 'a', '2020-01-01', '2020-01-01', '2020-01-01', '2020-01-01')",
        );
        pair.same_if_done(sql);
        pair.same("SELECT * FROM t");
    }
}

/// MariaDB shows a unique key as a hash if its columns are too long, each by its own bytes.
fn keys_are_shown_as_those_of_plaintext(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &["CREATE TABLE t (id INT PRIMARY KEY)"]) else {
        return;
    };
    let long = "VARCHAR(700) COLLATE utf8mb4_bin {eq}";
    for (columns, key) in [
        (
            format!("v {long}, s TEXT COLLATE latin1_swedish_ci"),
            "s(255), v",
        ),
        (
            format!("v {long}, s TEXT COLLATE latin1_swedish_ci"),
            "s(276), v",
        ),
        (
            format!("v {long}, s VARCHAR(272) COLLATE latin1_swedish_ci"),
            "s, v",
        ),
        (
            format!("v {long}, s VARCHAR(273) COLLATE latin1_swedish_ci"),
            "s, v",
        ),
        (format!("v {long}, b VARBINARY(268), i INT"), "i, b, v"),
        (format!("v {long}, b VARBINARY(269), i INT"), "i, b, v"),
        (
            format!("v {long}, b VARBINARY(268), i INT {{eq}}"),
            "i, b, v",
        ),
        (format!("v {long}, b VARBINARY(264), i BIGINT"), "i, b, v"),
        (
            format!("v {long}, b VARBINARY(265), i DATETIME(6)"),
            "i, b, v",
        ),
        (
            format!("v {long}, b VARBINARY(271), i ENUM('a', 'b') {{eq}}"),
            "i, b, v",
        ),
        ("v VARCHAR(768) COLLATE utf8mb4_bin {eq}".to_owned(), "v"),
        ("v VARCHAR(769) COLLATE utf8mb4_bin {eq}".to_owned(), "v"),
    ] {
        let create =
            format!("CREATE TABLE k (id INT PRIMARY KEY, {columns}, UNIQUE KEY k ({key}))");
        let (definition, bare) = with_and_without_protection(&create);
        let plain = pair.plain.run(&bare).map_err(|e| e.code);
        let made = pair.protected.run(&definition).map_err(|e| e.code);
        assert_eq!(plain.is_ok(), made.is_ok(), "{create}");
        if plain.is_ok() {
            pair.same("SHOW CREATE TABLE k");
            pair.both("DROP TABLE k");
        }
    }
}

/// To MariaDB a column is given, too, that only ON DUPLICATE KEY UPDATE assigns. The INSERT that is
/// tried without the clause, because a value in it does not fit, found no default.
fn a_column_that_only_a_met_row_gets(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, y YEAR NOT NULL, n INT {eq, range})";
    let Some(mut pair) = Pair::start(kind, &[table]) else {
        return;
    };
    for id in [1, 1, 2] {
        for value in ["'12abc'", "7"] {
            pair.same_if_done(&format!(
                "INSERT INTO t (id, n) VALUES ({id}, 1) ON DUPLICATE KEY UPDATE n = {value}, y = 1901"
            ));
            pair.same("SELECT * FROM t ORDER BY id");
        }
        pair.both("REPLACE INTO t VALUES (1, 2000, 1)");
    }
}

/// As a window function, MySQL's AVG is 0 where the server knows the one row before it looks.
fn averages_of_one_row_that_has_none(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, a BIGINT UNSIGNED, b DECIMAL(5,2), c DOUBLE, \
                 n DATETIME(1) {}, k INT {eq})";
    let Some(mut pair) = Pair::start(kind, &[table]) else {
        return;
    };
    pair.both(
        "INSERT INTO t VALUES (1, NULL, NULL, NULL, '2020-01-01', 1), (2, 3, 4.5, 6, NULL, 1)",
    );
    for rows in [
        "",
        " WHERE id = 1",
        " WHERE id BETWEEN 1 AND 1",
        " WHERE id IN (1, 2)",
        " WHERE id = 9",
    ] {
        for sql in [
            "SELECT AVG(a), MIN(n) FROM t",
            "SELECT AVG(b), AVG(c), SUM(a), COUNT(a), MAX(n) FROM t",
            "SELECT AVG(a + 1), AVG(a * b), MIN(n) FROM t",
        ] {
            pair.same_result(&format!("{sql}{rows}"));
        }
        pair.same_result(&format!(
            "SELECT k, AVG(a), AVG(b), MIN(n) FROM t{rows} GROUP BY k"
        ));
    }
}

/// To MySQL, 20200000 is a date beside a DATE, and nothing beside a DATETIME.
fn numbers_without_a_month_or_a_day(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, at DATETIME(6) {range}, d DATE {range})";
    let Some(mut pair) = Pair::start(kind, &[table]) else {
        return;
    };
    pair.both(
        "INSERT INTO t VALUES (1, '9999-12-31', '9999-12-31'), (2, '2020-01-01', '2020-01-01'), \
         (3, '2000-01-01', '2000-01-01')",
    );
    for mode in [
        "STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE",
        "ALLOW_INVALID_DATES",
        "",
    ] {
        pair.same(&format!("SET sql_mode = '{mode}'"));
        for (column, number) in ["at", "d"].iter().flat_map(|c| {
            ["20200000", "20200100", "20190000", "20210000000000", "0"].map(|n| (c, n))
        }) {
            for condition in [
                format!("{column} >= {number}"),
                format!("{column} <> {number}"),
                format!("{column} BETWEEN {number} AND 20200101"),
                format!("{column} NOT BETWEEN {number} AND 20200101"),
                format!("{column} NOT BETWEEN 20200101 AND {number}"),
                format!("{column} IN ({number}, 20200101)"),
                format!("{column} NOT IN ({number}, 20200101)"),
            ] {
                pair.same_if_done(&format!("SELECT id FROM t WHERE {condition} ORDER BY id"));
            }
        }
    }
}
