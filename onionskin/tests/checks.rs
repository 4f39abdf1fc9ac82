//! CHECK constraints over protected columns: the proxy judges values as the server does, and the
//! server says the rest.

use ::mysql::Value;
use onionskin_testkit::*;

on_both_servers!(
    values_are_judged_as_the_server_judges_them,
    conditions_of_other_forms_are_refused,
    conditions_that_are_not_enforced_judge_nothing,
    every_statement_that_writes_is_held_to_them,
    definitions_keep_them,
    definitions_change_beside_them,
    constraints_are_dropped,
    nothing_that_breaks_one_is_stored_when_it_is_dropped_behind_the_proxy,
    constraints_of_the_proxy_stay_in_force,
    tables_that_have_them_are_migrated,
    tables_whose_conditions_are_not_enforced_are_migrated,
    views_are_held_to_them,
    what_a_server_says_of_constraints_names_no_physical_column,
);

/// A column's type, conditions on `c`, and values.
type Case = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const CASES: &[Case] = &[
    (
        "INT",
        &[
            "c > 3",
            "c > -1 AND c < +5",
            "c IN (0, 1)",
            "c NOT IN (1, -2, 3)",
            "c BETWEEN 1 AND 5",
            "c NOT BETWEEN -2 AND 1",
            "NOT c BETWEEN 2 AND 4",
            "3 <= c",
            "NOT (0 > c)",
            "NOT (c = 3)",
            "c = TRUE",
            "c <> false OR c IS NULL",
            "c IS NOT NULL",
            "c IS NULL",
            "NOT (c IS NULL) AND c != 4",
            "c = 1 OR (c > 2 AND c < 5) OR c = 7",
            "(c = 1 OR c > 2) AND (c < 5 AND c <> 3) AND c != 9",
            "c > 2.5",
            "c = 1.50 OR c = 4.0",
            "c < 99999999999999999999",
            "c > 007",
            "c IN (3)",
            "c NOT IN (3)",
            "((c > 3))",
        ],
        &[
            "-2", "-1", "0", "1", "2", "3", "4", "5", "7", "'4'", "2.5", "NULL",
        ],
    ),
    (
        "BIGINT UNSIGNED NOT NULL",
        &["c >= 18446744073709551615 OR c < 9", "c > -1", "c < 0.5"],
        &["0", "8", "9", "18446744073709551615", "-1", "NULL"],
    ),
    (
        "DECIMAL(8,2)",
        &[
            "c >= 0.50",
            "c > 1 AND c <= 99.999",
            "c IN (1, 2.50)",
            "c <> -1.5",
        ],
        &["0.5", "0.494", "0.495", "1", "2.5", "100", "-1.50", "NULL"],
    ),
    (
        "DOUBLE",
        &[
            "c > 0",
            "c <= 1000",
            "c BETWEEN 0.5 AND 2.25",
            "c IN (1, 2)",
        ],
        &[
            "0", "-0.0", "0.5", "2.25", "2.26", "1e3", "1001", "1", "NULL",
        ],
    ),
    (
        "FLOAT",
        &["c > 0 AND c <= 1000"],
        &["0", "0.1", "1000", "1e9", "NULL"],
    ),
    (
        "VARCHAR(20)",
        &[
            "c <> ''",
            "c IN ('a', 'B', 'it''s', 'back\\\\slash')",
            "c LIKE 'a%' OR c LIKE '%\u{e9}'",
            "c NOT LIKE '_b'",
            "NOT (c LIKE 'a_')",
            "c > 'b'",
            "c BETWEEN 'B' AND 'c'",
            "c = 'a ' OR c = '\u{7537}'",
            "c IS NOT NULL AND c <> 'x'",
            "'m' > c",
            "c = \"a\" or c = 'b'",
        ],
        &[
            "'a'",
            "'A '",
            "'ab'",
            "'B'",
            "''",
            "'   '",
            "'caf\u{e9}'",
            "'CAFE'",
            "'it''s'",
            "'back\\\\slash'",
            "'\u{7537}'",
            "'x'",
            "5",
            "NULL",
        ],
    ),
    (
        "CHAR(5) CHARACTER SET latin1 COLLATE latin1_bin",
        &["c <> 'a'", "c IN ('\u{e9}', 'b')", "c LIKE '_'"],
        &["'a'", "'A'", "'\u{e9}'", "'E'", "'b  '", "'bb'", "NULL"],
    ),
    (
        "TEXT",
        &["c <> 'a'", "c LIKE '%z%'"],
        &["'a'", "'A'", "'az'", "'AZ'", "NULL"],
    ),
    (
        "ENUM('x','y','it''s')",
        &["c IN ('x', 'it''s')", "c <> 'y'", "c = 'Y'"],
        &["'x'", "'y'", "'X'", "'it''s'", "2", "NULL"],
    ),
    (
        "DATE",
        &[
            "c > '2020-01-01'",
            "c IN ('2020-01-01', '1999-12-31')",
            "c BETWEEN '2000-01-01' AND '2020-12-31'",
        ],
        &[
            "'2020-01-01'",
            "'2020-01-02'",
            "20201231",
            "'1999-12-31'",
            "NULL",
        ],
    ),
    (
        "DATETIME(3)",
        &["c >= '2020-01-01 00:00:00'", "c <> '2020-01-01 12:30:00.5'"],
        &[
            "'2019-12-31 23:59:59.999'",
            "'2020-01-01'",
            "'2020-01-01 12:30:00.500'",
            "NULL",
        ],
    ),
];

/// The error of a statement that must fail.
fn error_of(session: &mut Session, sql: &str) -> Failure {
    match session.run(sql) {
        Ok(_) => panic!("{sql} is done"),
        Err(error) => error,
    }
}

/// What is there of the table, by all ways to ask.
fn shows_the_same(pair: &mut Pair, kind: Kind, table: &str) {
    pair.same(&format!("SHOW CREATE TABLE {table}"));
    let is_mysql = kind == Kind::MySql;
    // MySQL shows texts beyond ASCII there in a wrong character set
    let ascii = if is_mysql {
        " AND CHECK_CLAUSE NOT REGEXP '[^ -~]'"
    } else {
        ""
    };
    let shown = pair.same(&format!(
        "SELECT CONSTRAINT_NAME, CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS \
         WHERE CONSTRAINT_SCHEMA = DATABASE(){ascii} ORDER BY 1, 2"
    ));
    assert!(!shown.contains("onionskin"), "{shown}");
    let shown = pair.same(
        "SELECT CONSTRAINT_NAME, TABLE_NAME, CONSTRAINT_TYPE FROM information_schema.TABLE_CONSTRAINTS \
         WHERE CONSTRAINT_SCHEMA = DATABASE() ORDER BY 1, 2, 3",
    );
    assert!(!shown.contains("onionskin"), "{shown}");
}

fn values_are_judged_as_the_server_judges_them(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    pair.run("SET NAMES utf8mb4");
    for (ty, conditions, values) in CASES {
        for (n, condition) in conditions.iter().enumerate() {
            let words = if n % 2 == 0 { "" } else { "eq" };
            let in_column = n % 3 == 0;
            let column = format!("c {ty} {{{words}}}");
            let table = match in_column {
                true => {
                    format!("CREATE TABLE t (id INT PRIMARY KEY, {column} CHECK ({condition}))")
                }
                false => format!(
                    "CREATE TABLE t (id INT PRIMARY KEY, CONSTRAINT k CHECK ({condition}), {column})"
                ),
            };
            let said = pair.same(&table);
            assert!(!said.contains("10 "), "{table}: {said}");
            shows_the_same(&mut pair, kind, "t");
            for (row, value) in values.iter().enumerate() {
                pair.same(&format!("INSERT INTO t VALUES ({row}, {value})"));
            }
            let rows = pair.same("SELECT * FROM t ORDER BY id");
            for (row, value) in values.iter().enumerate() {
                let id = row + 100;
                pair.same(&format!("INSERT IGNORE INTO t VALUES ({id}, {value})"));
                pair.same("SHOW WARNINGS");
            }
            for value in *values {
                pair.same(&format!("UPDATE t SET c = {value} WHERE id = 999"));
                pair.same(&format!("UPDATE t SET c = {value} WHERE id < 3"));
            }
            pair.same("SELECT * FROM t ORDER BY id");
            assert!(rows.contains('['), "{rows}");
            pair.same("DROP TABLE t");
        }
    }
}

/// NOT ENFORCED, which MySQL has.
fn conditions_that_are_not_enforced_judge_nothing(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    let table = "CREATE TABLE t (id INT PRIMARY KEY, a INT {eq} CHECK (a > 3) NOT ENFORCED NOT NULL, b VARCHAR(20) {} CONSTRAINT \
         z CHECK (b <> 'no') ENFORCED, c INT {range}, CHECK (c IS NOT NULL) NOT ENFORCED, CONSTRAINT y CHECK (c < 9) \
         ENFORCED, CONSTRAINT x CHECK (c <> 5) /*!80016 NOT ENFORCED */, d INT, CHECK (d > 3) NOT ENFORCED)";
    if kind == Kind::MariaDb {
        let said = pair.say(table);
        assert!(said.plain.contains("1064"), "{said:?}");
        assert!(
            said.is_refused() || said.plain == said.protected,
            "{said:?}"
        );
        return;
    }
    pair.same(table);
    let questions = [
        "SHOW CREATE TABLE t",
        "SELECT CONSTRAINT_NAME, ENFORCED FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = 'app' AND \
             TABLE_NAME = 't' ORDER BY 1",
        "SELECT CONSTRAINT_NAME, CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'app' \
             ORDER BY 1",
        "SELECT * FROM t ORDER BY id",
    ];
    for sql in [
        "INSERT INTO t VALUES (1, 1, 'Hb4YqMz7', 1, 1), (2, 9, 'x', NULL, 5)",
        "INSERT INTO t VALUES (3, 1, 'no', 1, 1)",
        "INSERT INTO t VALUES (3, 1, 'y', 10, 1)",
        "INSERT IGNORE INTO t VALUES (3, 1, 'y', 10, 1), (4, 2, 'y', 5, 1)",
        "UPDATE t SET c = 5, a = 0 WHERE id = 1",
        "UPDATE t SET c = 9 WHERE id = 1",
        "ALTER TABLE t ADD COLUMN e INT {eq} CHECK (e > 1) NOT ENFORCED, ADD COLUMN f INT",
        "INSERT INTO t VALUES (5, 1, 'a', 1, 1, 0, 0)",
        "CREATE TABLE u LIKE t",
        "INSERT INTO u VALUES (5, 1, 'a', 5, 1, 0, 0)",
        "INSERT INTO u VALUES (6, 1, 'no', 5, 1, 0, 0)",
        "ALTER TABLE t DROP CONSTRAINT x",
        "ALTER TABLE t DROP CHECK z",
        "INSERT INTO t VALUES (6, 1, 'no', 5, 1, 0, 0)",
    ] {
        match sql.contains("ADD COLUMN") {
            // sealed columns are added with a copy, whose rows are counted
            true => pair.create(sql),
            false => drop(pair.same(sql)),
        }
        for question in questions {
            pair.same(question);
        }
    }
    pair.same("SHOW CREATE TABLE u");
    // rows that break it would have to be found
    for sql in [
        "ALTER TABLE t ALTER CHECK t_chk_1 ENFORCED",
        "ALTER TABLE t ALTER CONSTRAINT y NOT ENFORCED",
    ] {
        let error = error_of(&mut pair.protected, sql);
        assert!(error.message.contains("OS1014"), "{sql}: {error:?}");
    }
    pair.nothing_leaked();
}

fn conditions_of_other_forms_are_refused(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    for (ty, condition) in [
        ("INT", "c > d"),
        ("INT", "c % 2 = 0"),
        ("INT", "c > 1 XOR c < 0"),
        ("INT", "c > 1 || c < 0"),
        ("INT", "c"),
        ("INT", "c = '3'"),
        ("INT", "c > 1e3"),
        ("INT", "c = NULL"),
        ("INT", "c <=> 3"),
        ("INT", "c LIKE '1%'"),
        ("INT", "NOT (c > 1 AND c < 5)"),
        ("INT", "c > 1 IS TRUE"),
        ("INT", "t.c > 1"),
        ("INT", "c + 1 > 2 AND c > 1"),
        ("VARCHAR(20)", "LENGTH(c) > 3"),
        ("VARCHAR(20)", "c COLLATE utf8mb4_bin = 'a'"),
        ("VARCHAR(20)", "c = 3"),
        ("VARCHAR(20)", "c LIKE 'a!%' ESCAPE '!'"),
        ("VARCHAR(20)", "c LIKE 'a\\\\%'"),
        ("VARCHAR(20)", "c REGEXP '^a'"),
        ("VARCHAR(20)", "c = x'41'"),
        ("VARCHAR(20)", "c = _gbk'a'"),
        ("VARCHAR(20) COLLATE utf8mb4_czech_ci", "c <> ''"),
        ("INT", "c < > 3"),
        ("DATE", "c <> '0000-00-00'"),
        ("VARCHAR(20)", "c = 'a\nb'"),
        ("VARCHAR(20)", "c = BINARY 'a'"),
        ("ENUM('x','y')", "c > 'x'"),
        ("ENUM('x','y')", "c = 1"),
        ("DATE", "c > 20200101"),
        ("DATE", "c > '2020-01-01 12:00:00'"),
        ("DATE", "c > DATE '2020-01-01'"),
        ("TIMESTAMP NULL", "c > '2020-01-01'"),
        ("TIME", "c > '10:00:00'"),
        ("YEAR", "c > 2000"),
        ("BIT(8)", "c > 3"),
        ("SET('x','y')", "c = 'x'"),
        ("VARBINARY(20)", "c = 'a'"),
        ("JSON", "c = '1'"),
    ] {
        let sql = format!(
            "CREATE TABLE r (id INT PRIMARY KEY, d INT {{eq}}, c {ty} {{}}, CHECK ({condition}))"
        );
        let (protected, _) = with_and_without_protection(&sql);
        let error = error_of(&mut pair.protected, &protected);
        assert!(
            error.message.contains("OS1013") || error.code == 1064,
            "{sql}: {error:?}"
        );
    }
    let many: Vec<String> = (0..17).map(|n| format!("CHECK (c > -{n})")).collect();
    let sql = format!(
        "CREATE TABLE r (id INT, c INT ENCRYPTED FOR (), {})",
        many.join(", ")
    );
    assert!(
        error_of(&mut pair.protected, &sql)
            .message
            .contains("more than 16")
    );
    pair.protected
        .must("CREATE TABLE r (id INT, c INT ENCRYPTED FOR ())");
    if kind == Kind::MySql {
        let sql = format!(
            "ALTER TABLE r ADD COLUMN e INT ENCRYPTED FOR () {}",
            many.join(" ")
        );
        let sql = sql.replace("(c > -", "(e > -");
        assert!(
            error_of(&mut pair.protected, &sql)
                .message
                .contains("more than 16")
        );
        // MySQL looks at constraints by their names, and at the guard last
        for sql in [
            "CREATE TABLE s (id INT, c INT ENCRYPTED FOR (), CONSTRAINT 年齢 CHECK (c > 1))",
            "CREATE TABLE s (id INT, c INT ENCRYPTED FOR (), CONSTRAINT `~s` CHECK (c > 1))",
            "CREATE TABLE 表 (id INT, c INT ENCRYPTED FOR (), CHECK (c > 1))",
            "CREATE TABLE 表 (id INT, c INT ENCRYPTED FOR () CHECK (c > 1))",
        ] {
            assert!(
                error_of(&mut pair.protected, sql)
                    .message
                    .contains("not ASCII")
            );
        }
        pair.same("CREATE TABLE 表 (id INT, c INT {}, CONSTRAINT k CHECK (c > 1))");
        pair.same("INSERT INTO 表 VALUES (1, 1)");
        pair.same("INSERT IGNORE INTO 表 VALUES (1, 1), (2, 2)");
    }
    pair.protected.must("DROP TABLE r");
    // a plain column's is the server's, beside protected ones
    pair.same("CREATE TABLE r (id INT PRIMARY KEY, c INT {eq}, d INT, CHECK (d % 2 = 0))");
    pair.same("INSERT INTO r VALUES (1, 1, 1)");
    pair.same("INSERT INTO r VALUES (1, 1, 2)");
}

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, a INT {range} CHECK (a > 3 AND a <> 7), \
     c VARCHAR(20) DEFAULT 'x' {eq}, p INT, CONSTRAINT z CHECK (a < 100), \
     CHECK (c IN ('x', 'it''s') OR c LIKE 'y%'), CONSTRAINT nn CHECK (c IS NOT NULL), \
     CONSTRAINT plain CHECK (p < 50), UNIQUE KEY u (c, id))";

fn every_statement_that_writes_is_held_to_them(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = Pair::of(kind, with_engine, &[TABLE]) else {
            return;
        };
        let mut done = 0;
        for sql in [
            "INSERT INTO t VALUES (1, 5, 'x', 1), (2, 6, 'yes', 2), (3, NULL, 'it''s', 3)",
            "INSERT INTO t VALUES (4, 3, 'x', 1)",
            "INSERT INTO t VALUES (4, 200, 'x', 1)",
            "INSERT INTO t VALUES (4, 7, 'no', 100)",
            "INSERT INTO t VALUES (4, 8, NULL, 1)",
            "INSERT INTO t VALUES (1, 8, 'no', 1)",
            "INSERT INTO t VALUES (4, 8, 'x', 1), (1, 8, 'x', 1), (5, 1, 'x', 1)",
            "INSERT INTO t VALUES (4, 8, 'x', 1), (5, 1, 'x', 1), (1, 8, 'x', 1)",
            "INSERT INTO t (id, a) VALUES (4, 10)",
            "INSERT INTO t (id, c) VALUES (5, DEFAULT)",
            "INSERT IGNORE INTO t VALUES (6, 1, 'x', 1), (7, 5, 'x', 1), (8, 5, NULL, 1), (1, 1, 'x', 1)",
            "SHOW WARNINGS",
            "INSERT INTO t SET id = 6, a = 300",
            "UPDATE t SET a = 7",
            "UPDATE t SET a = 7 WHERE id = 99",
            "UPDATE t SET a = 7, c = 'no' WHERE id = 1",
            "UPDATE t SET c = NULL WHERE id = 2",
            "UPDATE t SET p = 60 WHERE id = 2",
            "UPDATE t SET p = 40 WHERE id = 2",
            "UPDATE t SET a = a + 1",
            "UPDATE t SET a = a + 1 WHERE a = 6",
            "UPDATE t SET a = a * 30 ORDER BY id LIMIT 1",
            "UPDATE IGNORE t SET a = 1 WHERE id < 4",
            "SHOW WARNINGS",
            "UPDATE t SET a = IF(id = 1, 1, 9)",
            "UPDATE t SET c = UPPER(c)",
            "UPDATE t SET c = CONCAT(c, 'z')",
            "INSERT INTO t VALUES (1, 8, 'x', 1) ON DUPLICATE KEY UPDATE a = 2",
            "INSERT INTO t VALUES (1, 2, 'x', 1) ON DUPLICATE KEY UPDATE a = 9",
            "INSERT INTO t VALUES (1, 9, 'x', 1) ON DUPLICATE KEY UPDATE a = VALUES(a)",
            "INSERT INTO t VALUES (1, 9, 'x', 1) ON DUPLICATE KEY UPDATE a = a + 1",
            "INSERT INTO t VALUES (1, 9, 'x', 1) ON DUPLICATE KEY UPDATE a = a * 90, p = 2",
            "INSERT INTO t VALUES (50, 9, 'x', 1) ON DUPLICATE KEY UPDATE a = 1",
            "REPLACE INTO t VALUES (1, 7, 'x', 1)",
            "REPLACE INTO t VALUES (1, 8, 'y', 1)",
            "INSERT INTO t SELECT id + 100, a, c, p FROM t WHERE id < 3",
            "INSERT INTO t SELECT id + 200, 1, c, p FROM t WHERE id < 3",
            "INSERT INTO t SELECT id + 300, a, 'no', p FROM t WHERE id < 0",
            "UPDATE t x JOIN t y ON x.id = y.id SET x.a = 1",
            "DELETE FROM t WHERE a = 10",
        ] {
            done += usize::from(pair.same_if_done(sql));
            pair.same("SELECT * FROM t ORDER BY id");
        }
        assert!(done >= if with_engine { 37 } else { 28 }, "{done}");
        for (a, c) in [(5, "x"), (1, "x"), (8, "no"), (99, "y%")] {
            let values = [Value::from(900 + a), Value::from(a), Value::from(c)];
            assert!(pair.same_if_done_with("INSERT INTO t (id, a, c) VALUES (?, ?, ?)", &values));
            let values = [Value::from(a), Value::from(c)];
            assert!(pair.same_if_done_with("UPDATE t SET a = ?, c = ? WHERE id = 2", &values));
        }
        pair.same("SELECT * FROM t ORDER BY id");
        for mode in ["''", "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES'"] {
            pair.run(&format!("SET sql_mode = {mode}"));
            pair.same("INSERT INTO t VALUES (70, 'seven', 'x', 1)");
            pair.same("INSERT INTO t VALUES (71, 70000000000, 'x', 1)");
            pair.same("INSERT INTO t VALUES (72, '8a', 'it''s', 1)");
        }
        pair.same("SHOW CREATE TABLE t");
        pair.run("SET sql_mode = DEFAULT");
        shows_the_same(&mut pair, kind, "t");
    }
}

fn definitions_keep_them(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[TABLE]) else {
        return;
    };
    shows_the_same(&mut pair, kind, "t");
    pair.same("CREATE TABLE u LIKE t");
    pair.same("INSERT INTO u VALUES (1, 1, 'x', 1)");
    pair.same("INSERT INTO u VALUES (1, 8, 'x', 1)");
    pair.same("ALTER TABLE u RENAME TO v");
    pair.same("INSERT INTO v VALUES (2, 1, 'x', 1)");
    pair.same("ALTER TABLE v ALTER COLUMN a SET DEFAULT 1");
    pair.same("INSERT INTO v (id) VALUES (2)");
    pair.same("ALTER TABLE v ALTER COLUMN a SET DEFAULT 9");
    pair.same("INSERT INTO v (id) VALUES (2)");
    // which copies the table and counts its rows
    let added =
        "ALTER TABLE v ADD COLUMN w INT {eq} CHECK (w <> 5), ADD COLUMN q INT CHECK (q <> 6)";
    let (protected, plain) = with_and_without_protection(added);
    pair.plain.must(&plain);
    pair.protected.must(&protected);
    pair.same("INSERT INTO v (id, w) VALUES (3, 5)");
    pair.same("INSERT INTO v (id, w) VALUES (3, 6)");
    pair.same("INSERT INTO v (id, q) VALUES (4, 6)");
    shows_the_same(&mut pair, kind, "v");
    pair.same("DROP TABLE t");
    // servers drop the constraints in its definition, or over it alone
    pair.same("ALTER TABLE v DROP COLUMN w");
    pair.same("INSERT INTO v (id, a) VALUES (5, 1)");
    shows_the_same(&mut pair, kind, "v");
    for sql in [
        "ALTER TABLE v RENAME COLUMN a TO b",
        "ALTER TABLE v CHANGE a b INT",
        "ALTER TABLE v CHANGE a b INT NOT NULL",
        "ALTER TABLE v MODIFY a INT CHECK (a > 1)",
        "ALTER TABLE v ADD CONSTRAINT y CHECK (a > 1)",
        "ALTER TABLE v ADD COLUMN y INT CHECK (a > y)",
    ] {
        let error = error_of(&mut pair.protected, sql);
        assert!(error.message.contains("OS1"), "{sql}: {error:?}");
    }
    shows_the_same(&mut pair, kind, "v");
    pair.same("CREATE TEMPORARY TABLE m (id INT PRIMARY KEY, a INT {} CHECK (a > 3))");
    pair.same("INSERT INTO m VALUES (1, 3)");
    pair.same("INSERT INTO m VALUES (1, 4)");
    pair.same("SHOW CREATE TABLE m");
}

/// MySQL's constraints are the table's. MariaDB's may belong to the column, and go with a
/// definition that does not repeat them.
fn definitions_change_beside_them(kind: Kind) {
    const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, a INT {} CHECK (a >= 0), \
                         b VARCHAR(20) NOT NULL {}, CONSTRAINT short CHECK (b LIKE 'x%'))";
    let Some(mut pair) = Pair::of(kind, false, &[TABLE]) else {
        return;
    };
    pair.same("INSERT INTO t VALUES (1, 1, 'x')");
    for sql in [
        "ALTER TABLE t MODIFY b VARCHAR(20) DEFAULT 'x1'",
        "ALTER TABLE t MODIFY b VARCHAR(20) NOT NULL COMMENT 'mine'",
        "ALTER TABLE t MODIFY a INT NOT NULL DEFAULT 3",
        "ALTER TABLE t MODIFY a INT NULL FIRST",
    ] {
        // MariaDB's own CHECK is repeated
        let sql = match (kind, sql.contains("MODIFY a")) {
            (Kind::MariaDb, true) if sql.contains("FIRST") => {
                sql.replace("FIRST", "CHECK (a >= 0)")
            }
            (Kind::MariaDb, true) => format!("{sql} CHECK (`a` >= 0)"),
            _ => sql.to_owned(),
        };
        let said = pair.say(&sql);
        assert!(!said.protected.contains("OS1"), "{sql}: {}", said.protected);
        shows_the_same(&mut pair, kind, "t");
        for row in [
            "(2, -1, 'x')",
            "(2, 1, 'y')",
            "(2, NULL, 'x')",
            "(3, 1, NULL)",
        ] {
            pair.same(&format!("INSERT INTO t (id, a, b) VALUES {row}"));
        }
        pair.same("DELETE FROM t WHERE id > 1");
    }
    for sql in [
        "ALTER TABLE t MODIFY a INT CHECK (a >= 1)",
        "ALTER TABLE t MODIFY b VARCHAR(20) CHECK (b <> 'z')",
    ] {
        let error = error_of(&mut pair.protected, sql);
        assert!(error.message.contains("OS1014"), "{sql}: {error:?}");
    }
    // a plan that is older
    let mut other = pair.proxy.connect_to("app");
    let insert = "INSERT INTO t VALUES (9, -5, 'x')";
    if kind == Kind::MariaDb {
        assert_eq!(error_of(&mut other, insert).code, 4025);
    }
    let sql = "ALTER TABLE t MODIFY a INT";
    pair.say(sql);
    shows_the_same(&mut pair, kind, "t");
    if kind == Kind::MariaDb {
        other.must(insert);
        pair.plain.must(insert);
    }
    for row in ["(10, -1, 'x')", "(11, 1, 'y')"] {
        pair.same(&format!("INSERT INTO t (id, a, b) VALUES {row}"));
    }
    let said = pair
        .protected
        .run("ALTER TABLE t DROP CONSTRAINT short, MODIFY b VARCHAR(20)");
    assert!(said.unwrap_err().to_string().contains("OS1014"));
    pair.same("ALTER TABLE t DROP CONSTRAINT short");
    pair.same("INSERT INTO t (id, a, b) VALUES (12, 1, 'y')");
    shows_the_same(&mut pair, kind, "t");
}

fn constraints_are_dropped(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[TABLE]) else {
        return;
    };
    // whose plans are older than the change
    let mut other = pair.proxy.connect_to("app");
    let insert = "INSERT INTO t VALUES (20, 400, 'x', 1)";
    assert!([3819, 4025].contains(&error_of(&mut other, insert).code));
    pair.same("INSERT INTO t VALUES (1, 200, 'x', 1)");
    pair.same("ALTER TABLE t DROP CONSTRAINT z");
    other.must(insert);
    pair.plain.must(insert);
    pair.same("INSERT INTO t VALUES (1, 200, 'x', 1)");
    pair.same("INSERT INTO t VALUES (2, 7, 'x', 1)");
    pair.same("INSERT INTO t VALUES (2, 5, 'no', 1)");
    shows_the_same(&mut pair, kind, "t");
    pair.same("ALTER TABLE t DROP CONSTRAINT z");
    pair.same("ALTER TABLE t DROP CONSTRAINT plain, ADD COLUMN w INT");
    pair.same("INSERT INTO t (id, a, p) VALUES (3, 5, 200)");
    pair.same("ALTER TABLE t DROP CONSTRAINT nn");
    pair.same("INSERT INTO t (id, c) VALUES (4, NULL)");
    if kind == Kind::MySql {
        pair.same("ALTER TABLE t DROP CHECK t_chk_1, DROP CHECK T_chk_2");
        pair.same("INSERT INTO t (id, a, c) VALUES (5, 7, 'no')");
    } else {
        pair.same(
            "ALTER TABLE t DROP CONSTRAINT IF EXISTS CONSTRAINT_1, DROP CONSTRAINT IF EXISTS gone",
        );
        pair.same("INSERT INTO t (id, a, c) VALUES (5, 8, 'no')");
        pair.same("INSERT INTO t (id, a, c) VALUES (6, 7, 'no')");
    }
    shows_the_same(&mut pair, kind, "t");
    pair.same("CREATE TABLE u LIKE t");
    shows_the_same(&mut pair, kind, "u");
    pair.same("CREATE TABLE x (id INT PRIMARY KEY, a INT {eq}, CONSTRAINT k CHECK (a < 9))");
    for session in pair.sessions() {
        // the index's name is asked of the server as well
        session.must("ALTER TABLE x DROP CONSTRAINT k, ADD INDEX (a)");
    }
    pair.same("INSERT INTO x VALUES (1, 10)");
    for session in pair.sessions() {
        session.must("ALTER TABLE x RENAME COLUMN a TO b");
    }
    pair.same("INSERT INTO x VALUES (2, 11)");
    pair.same("SHOW CREATE TABLE x");
    pair.same("ALTER TABLE x DROP COLUMN b");
    pair.same("ALTER TABLE t DROP COLUMN c");
    pair.same("SELECT * FROM t ORDER BY id");
    pair.same("INSERT INTO t (id, a) VALUES (7, 3)");
}

/// Somebody with rights at the server drops the client's constraint.
fn nothing_that_breaks_one_is_stored_when_it_is_dropped_behind_the_proxy(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[TABLE]) else {
        return;
    };
    pair.same("INSERT INTO t VALUES (1, 5, 'x', 1)");
    let mut admin = pair.behind.connect();
    admin.must("ALTER TABLE app.t DROP CONSTRAINT z");
    let error = error_of(&mut pair.protected, "INSERT INTO t VALUES (2, 200, 'x', 1)");
    assert!([3819, 4025].contains(&error.code), "{error:?}");
    pair.protected.must("INSERT INTO t VALUES (3, 50, 'x', 1)");
    let rows = pair.protected.text("SELECT id, a FROM t ORDER BY id");
    assert_eq!(rows.expect("rows"), "1\t5\n3\t50");
    let cells = admin.text("SELECT COUNT(*) FROM app.t WHERE SUBSTR(a$enc, 2, 2) = X'0000'");
    assert_eq!(cells.expect("a count"), "0");
}

fn constraints_of_the_proxy_stay_in_force(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[TABLE]) else {
        return;
    };
    let mut admin = pair.behind.connect();
    let names = admin.text(
        "SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS \
         WHERE CONSTRAINT_SCHEMA = 'app' AND CONSTRAINT_NAME LIKE '%onionskin%'",
    );
    let names = names.expect("names");
    assert_eq!(names.lines().count(), 4, "{names}");
    for name in names.lines() {
        let mut changes = vec![
            format!("DROP CONSTRAINT `{name}`"),
            format!("DROP CONSTRAINT `{}`", name.to_uppercase()),
        ];
        if kind == Kind::MySql {
            changes.push(format!("DROP CHECK `{name}`"));
            changes.push(format!("ALTER CHECK `{name}` NOT ENFORCED"));
            changes.push(format!("ALTER CONSTRAINT `{name}` NOT ENFORCED"));
        }
        for change in changes {
            let error = error_of(&mut pair.protected, &format!("ALTER TABLE t {change}"));
            assert!(error.message.contains("OS1014"), "{change}: {error:?}");
        }
    }
}

fn tables_that_have_them_are_migrated(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let proxy = Proxy::start(&server, "");
    let mut admin = server.connect();
    admin.must("CREATE DATABASE app");
    admin.must("USE app");
    admin.must("CREATE TABLE t (id INT PRIMARY KEY, a INT CHECK (a > 3), c VARCHAR(20), l VARCHAR(9) CHARACTER SET latin1 CHECK (l <> 'q'), CONSTRAINT z CHECK (c <> 'no' AND c <> 'never'), CONSTRAINT y CHECK (a > -1))");
    admin.must("INSERT INTO t (id, a, c) VALUES (1, 5, 'x'), (2, NULL, NULL)");
    // MySQL prints some constants in another way then
    admin.must("ALTER TABLE t FORCE");
    let mut session = proxy.connect_to("app");
    let before = session.text("SHOW CREATE TABLE t").expect("a definition");
    let judged = |session: &mut Session, id: u32| {
        for (a, c) in [("3", "'x'"), ("4", "'no'")] {
            let sql = format!("INSERT INTO t (id, a, c) VALUES ({id}, {a}, {c})");
            let error = error_of(session, &sql);
            assert!([3819, 4025].contains(&error.code), "{error:?}");
        }
        let sql = format!("INSERT INTO t (id, l) VALUES ({id}, 'Q')");
        assert!([3819, 4025].contains(&error_of(session, &sql).code));
        session.must(&format!("INSERT INTO t (id, a, c) VALUES ({id}, 9, 'yes')"));
    };
    judged(&mut session, 3);
    let encrypt = ["app.t", "--drop-old", "--encrypt", "a: range; c: eq; l:"];
    must_migrate(&server, Some(&proxy), &encrypt);
    judged(&mut session, 4);
    must_migrate(&server, Some(&proxy), &["app.t", "--drop-old", "--rotate"]);
    let modify = ["app.t", "--modify", "c VARCHAR(30)"];
    let refused = must_not_migrate(&server, Some(&proxy), &modify);
    assert!(refused.contains("CHECK"), "{refused}");
    judged(&mut session, 5);
    let without_names = |text: &str| {
        text.replace("`z`", "")
            .replace("`t_chk_1`", "")
            .replace("`t_chk_2`", "")
    };
    let after = session.text("SHOW CREATE TABLE t").expect("a definition");
    if kind == Kind::MariaDb {
        assert_eq!(before, after);
    } else {
        assert!(
            without_names(&after).contains("CHECK ((`a` > 3))"),
            "{after}"
        );
        assert!(
            without_names(&after).contains("CHECK (((`c` <> _utf8mb4'no') and "),
            "{after}"
        );
    }
    must_migrate(
        &server,
        Some(&proxy),
        &["app.t", "--drop-old", "--decrypt", "a, c, l"],
    );
    judged(&mut session, 6);
    let rows = session
        .text("SELECT id, a, c FROM t ORDER BY id")
        .expect("rows");
    assert_eq!(
        rows,
        "1\t5\tx\n2\tNULL\tNULL\n3\t9\tyes\n4\t9\tyes\n5\t9\tyes\n6\t9\tyes"
    );
}

/// NOT ENFORCED is kept by a migration: rows that break the condition are there, and others come.
fn tables_whose_conditions_are_not_enforced_are_migrated(kind: Kind) {
    if kind == Kind::MariaDb {
        return;
    }
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let proxy = Proxy::start(&server, "");
    let mut admin = server.connect();
    admin.must("CREATE DATABASE app");
    admin.must("USE app");
    admin.must(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, CONSTRAINT z CHECK (a > 3) NOT ENFORCED)",
    );
    admin.must("INSERT INTO t VALUES (1, 2), (2, NULL)");
    let mut session = proxy.connect_to("app");
    let before = session.text("SHOW CREATE TABLE t").expect("a definition");
    assert!(before.contains("/*!80016 NOT ENFORCED */"), "{before}");
    for (id, migration) in [
        (3, ["app.t", "--drop-old", "--encrypt", "a: range"]),
        (4, ["app.t", "--drop-old", "--decrypt", "a"]),
    ] {
        must_migrate(&server, Some(&proxy), &migration);
        session.must(&format!("INSERT INTO t VALUES ({id}, 1)"));
        let after = session.text("SHOW CREATE TABLE t").expect("a definition");
        // a constraint has another name in the new table
        let behind = |text: &str| text.split_once(" CHECK ").map(|(_, rest)| rest.to_owned());
        assert_eq!(behind(&before), behind(&after));
    }
    let rows = session
        .text("SELECT id, a FROM t ORDER BY id")
        .expect("rows");
    assert_eq!(rows, "1\t2\n2\tNULL\n3\t1\n4\t1");
}

fn views_are_held_to_them(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[TABLE]) else {
        return;
    };
    pair.same("CREATE VIEW w AS SELECT id, a, c FROM t");
    pair.same("INSERT INTO w VALUES (1, 3, 'x')");
    pair.same("INSERT INTO w VALUES (1, 4, 'x')");
    pair.same("UPDATE w SET a = 7");
    pair.same("UPDATE w SET a = 8, c = 'no'");
    pair.same("UPDATE w SET a = 8, c = 'y'");
    pair.same("SELECT * FROM w");
    pair.same("SHOW CREATE VIEW w");
}

fn what_a_server_says_of_constraints_names_no_physical_column(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[TABLE]) else {
        return;
    };
    pair.same("CREATE TABLE p (id INT {join:g}, PRIMARY KEY (id))");
    pair.same(
        "CREATE TABLE f (id INT PRIMARY KEY, r INT {join:g}, \
         CONSTRAINT ff FOREIGN KEY (r) REFERENCES p (id))",
    );
    pair.same("INSERT INTO p VALUES (1)");
    pair.same("INSERT INTO f VALUES (1, 1)");
    // a plain table's are told as ever
    pair.same("CREATE TABLE pp (id INT PRIMARY KEY)");
    pair.same(
        "CREATE TABLE pf (id INT PRIMARY KEY, CONSTRAINT pk FOREIGN KEY (id) REFERENCES pp (id))",
    );
    pair.same("INSERT INTO pf VALUES (1)");
    pair.same("GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT");
    pair.same("SELECT @m");
    for sql in [
        "INSERT INTO t VALUES (1, 3, 'x', 1)",
        "INSERT INTO f VALUES (2, 2)",
        "UPDATE f SET r = 3",
        "DELETE FROM p",
        "DELETE FROM p WHERE id = 1",
    ] {
        pair.same(sql);
        let said = pair.same("SHOW WARNINGS");
        assert!(!said.contains('$'), "{sql}: {said}");
        pair.same(sql);
        pair.same("SHOW ERRORS");
    }
}
