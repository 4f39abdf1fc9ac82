//! Errors that a plain server raises: through the proxy the statement fails as well, and it raises
//! none that a plain server does not.

use onionskin_testkit::*;

on_both_servers!(
    keys_that_no_server_takes,
    counters_in_hashes,
    all_parts_of_a_key_count,
    long_keys_are_cut_with_a_note,
    conditions_that_fail_beside_values_that_do_not_fit,
    read_locks_come_before_values,
    temporary_tables_with_like,
    blanks_before_parentheses,
    tables_that_are_changed_and_read,
    texts_joined_with_numbers,
    extremes_with_rollup,
);

/// Each with whether the key is too long or has no length; others are taken.
const KEYS: &[&str] = &[
    "CREATE TABLE k (id INT PRIMARY KEY, s TEXT {eq}, KEY (s))",
    "CREATE TABLE k (id INT PRIMARY KEY, s TEXT {eq}, KEY (s(20)))",
    "CREATE TABLE k (b BLOB {eq}, PRIMARY KEY (b))",
    "CREATE TABLE k (b BLOB {eq} PRIMARY KEY)",
    "CREATE TABLE k (id INT, s TEXT {eq} UNIQUE)",
    "CREATE TABLE k (id INT, s MEDIUMTEXT {eq}, UNIQUE (s))",
    "CREATE TABLE k (id INT, s VARCHAR(2000) {eq} UNIQUE) CHARSET utf8mb4",
    "CREATE TABLE k (id INT, s VARCHAR(2000) {eq}, KEY (s)) CHARSET utf8mb4",
    "CREATE TABLE k (id INT, s VARCHAR(2000) {eq}, KEY (s(700))) CHARSET utf8mb4",
    "CREATE TABLE k (id INT, s VARCHAR(2000) {eq}, PRIMARY KEY (s)) CHARSET utf8mb4",
    "CREATE TABLE k (id INT, s VARCHAR(768) {eq}, KEY (s)) CHARSET utf8mb4",
    "CREATE TABLE k (id INT, s VARCHAR(769) {eq}, KEY (s)) CHARSET utf8mb4",
    "CREATE TABLE k (id INT, s VARCHAR(3072) {eq}, KEY (s)) CHARSET latin1",
    "CREATE TABLE k (id INT, s VARBINARY(3073) {eq}, KEY (s))",
    "CREATE TABLE k (id INT, a VARCHAR(500) {eq}, b VARCHAR(500) {eq}, KEY (a, b)) CHARSET utf8mb4",
    "CREATE TABLE k (id INT, a VARCHAR(500) {eq}, b VARCHAR(200) {eq}, UNIQUE (a, b)) CHARSET utf8mb4",
    "CREATE TABLE k (id INT, a VARCHAR(500) {eq}, b VARCHAR(500) {eq}, PRIMARY KEY (a, b)) CHARSET utf8mb4",
];

/// On a table `k (id INT, s VARCHAR(2000) {eq}, t LONGTEXT {eq}, u VARCHAR(20) {eq})`.
const ADDED: &[&str] = &[
    "ALTER TABLE k ADD KEY (s)",
    "ALTER TABLE k ADD KEY (t)",
    "ALTER TABLE k ADD UNIQUE (s)",
    "ALTER TABLE k ADD UNIQUE (t)",
    "ALTER TABLE k ADD PRIMARY KEY (t)",
    "ALTER TABLE k ADD KEY (u)",
    "CREATE INDEX i ON k (s)",
    "CREATE INDEX i ON k (t)",
    "CREATE UNIQUE INDEX i ON k (s)",
    "CREATE UNIQUE INDEX i ON k (t)",
    "CREATE INDEX i ON k (t(20))",
    "CREATE INDEX i ON k (u)",
];

fn keys_that_no_server_takes(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    let table = "CREATE TABLE k (id INT, s VARCHAR(2000) {eq}, t LONGTEXT {eq}, u VARCHAR(20) {eq}) CHARSET utf8mb4";
    let mut failed = 0;
    let created = KEYS.iter().map(|sql| (None, *sql));
    let added = ADDED.iter().map(|sql| (Some(table), *sql));
    for (before, sql) in created.chain(added) {
        before.into_iter().for_each(|sql| {
            pair.same(sql);
        });
        let said = pair.say(sql);
        let number = |said: &str| said.split(' ').next().unwrap_or_default().to_owned();
        // with the numbers of the server's errors
        let is_too_long = ["1071", "1170"].contains(&number(&said.plain).as_str());
        failed += usize::from(is_too_long && number(&said.plain) == number(&said.protected));
        let is_alike = match is_too_long {
            true => number(&said.plain) == number(&said.protected),
            false => !said.protected.starts_with('1'),
        };
        let is_refused = said.is_refused() && !said.protected.starts_with("10");
        assert!(is_alike || is_refused, "{sql}\n{said:?}");
        pair.say("DROP TABLE IF EXISTS k");
    }
    let least = match kind {
        Kind::MariaDb => 5,
        Kind::MySql => 15,
    };
    assert!(failed >= least, "{failed}");
}

/// MariaDB makes a hash of a UNIQUE index over a long column, and takes no AUTO_INCREMENT column
/// into one.
fn counters_in_hashes(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    const COLUMNS: &str = "n INT AUTO_INCREMENT, t TEXT {eq}, v VARCHAR(2000) {eq}, w VARCHAR(20) {eq}, PRIMARY KEY (n)";
    for (keys, number) in [
        (", UNIQUE (n, t)", 4169),
        (", UNIQUE (v, n)", 4169),
        (", UNIQUE (n, w)", 0),
        (", UNIQUE (t), UNIQUE (n)", 0),
        (", KEY (n, w)", 0),
    ] {
        let said = pair.say(&format!("CREATE TABLE k ({COLUMNS}{keys}) CHARSET utf8mb4"));
        let expected = match kind {
            Kind::MariaDb => number,
            // no index at all
            Kind::MySql if keys.contains('t') => 1170,
            Kind::MySql if keys.contains('v') => 1071,
            Kind::MySql => 0,
        };
        for side in [&said.plain, &said.protected] {
            let first = side.split(' ').next().unwrap_or_default();
            assert_eq!(first.parse().unwrap_or(0), expected, "{keys}\n{said:?}");
        }
        pair.say("DROP TABLE IF EXISTS k");
    }
    pair.same(&format!("CREATE TABLE k ({COLUMNS}) CHARSET utf8mb4"));
    for sql in [
        "ALTER TABLE k ADD UNIQUE (n, t)",
        "CREATE UNIQUE INDEX i ON k (v, n)",
    ] {
        let said = pair.say(sql);
        let number = |said: &str| said.split(' ').next().unwrap_or_default().to_owned();
        assert_eq!(
            number(&said.plain),
            number(&said.protected),
            "{sql}\n{said:?}"
        );
    }
}

/// Keys over protected and plain columns, near the longest that servers take.
const SUMS: &[&str] = &[
    "CREATE TABLE k (v VARCHAR(700) COLLATE utf8mb4_bin {eq}, s MEDIUMTEXT COLLATE utf8mb4_bin NOT NULL, PRIMARY KEY (s(255), v))",
    "CREATE TABLE k (n INT, v VARCHAR(767) {eq}, PRIMARY KEY (n, v))",
    "CREATE TABLE k (n BIGINT, v VARCHAR(767) {eq}, PRIMARY KEY (n, v))",
    "CREATE TABLE k (n BIGINT, v VARCHAR(767) {eq}, KEY (v, n))",
    "CREATE TABLE k (n TIME(3), v VARCHAR(767) {eq}, KEY (v, n))",
    "CREATE TABLE k (n TIMESTAMP NULL, v VARCHAR(767) {eq}, KEY (v, n))",
    "CREATE TABLE k (n DATETIME(6), v VARCHAR(766) {eq}, KEY (v, n))",
    "CREATE TABLE k (n VARCHAR(300) CHARACTER SET latin1 DEFAULT 'x', v VARCHAR(700) {eq}, KEY (v, n))",
    "CREATE TABLE k (n VARCHAR(272) CHARSET latin1 NOT NULL, v VARCHAR(700) {eq}, KEY (v, n))",
    "CREATE TABLE k (n VARCHAR(80), v VARCHAR(700) {eq}, KEY (v, n(60)))",
    "CREATE TABLE k (n VARCHAR(80), v VARCHAR(700) {eq}, KEY (n, v))",
    "CREATE TABLE k (n VARCHAR(80), v VARCHAR(700) {eq}, UNIQUE (n(78), v))",
    "CREATE TABLE k (n ENUM('a', 'b'), d DATE, v VARCHAR(767) {eq}, KEY (v, n, d))",
    "CREATE TABLE k (n VARCHAR(800), v VARCHAR(20) {eq}, KEY (n), KEY (v))",
];

/// On a table `k (n BIGINT, p VARCHAR(100), v VARCHAR(700) {eq}, w VARCHAR(767) {eq})`.
const ADDED_SUMS: &[&str] = &[
    "ALTER TABLE k ADD KEY (n, v)",
    "ALTER TABLE k ADD KEY (n, w)",
    "ALTER TABLE k ADD KEY (p, v)",
    "ALTER TABLE k ADD KEY (v, p(60))",
    "CREATE INDEX i ON k (p, v)",
    "CREATE INDEX i ON k (v, p(60), n)",
    "ALTER TABLE k ADD COLUMN q VARCHAR(100), ADD KEY (q, v)",
    "ALTER TABLE k ADD COLUMN q VARCHAR(60), ADD KEY (q, v)",
];

fn all_parts_of_a_key_count(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    let table =
        "CREATE TABLE k (n BIGINT, p VARCHAR(100), v VARCHAR(700) {eq}, w VARCHAR(767) {eq})";
    let created = SUMS.iter().map(|sql| (None, *sql));
    let added = ADDED_SUMS.iter().map(|sql| (Some(table), *sql));
    let (mut taken, mut failed) = (0, 0);
    for (before, sql) in created.chain(added) {
        before.into_iter().for_each(|sql| {
            pair.same(sql);
        });
        let said = pair.say(sql);
        let is_too_long = said.plain.starts_with("1071 ");
        let alike = match is_too_long {
            true => said.protected.starts_with("1071 "),
            false => said.plain == said.protected,
        };
        assert!(alike, "{sql}\n{said:?}");
        taken += usize::from(!is_too_long);
        failed += usize::from(is_too_long);
        if !is_too_long {
            // the name of the engine's hash is another
            pair.same("SHOW COLUMNS FROM k");
        }
        pair.say("DROP TABLE IF EXISTS k");
    }
    assert!(taken > 8 && failed > 8, "{taken} {failed}");
}

/// MariaDB takes the beginning of what is too long for an index, and says so; MySQL refuses it.
fn long_keys_are_cut_with_a_note(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    for (definition, added) in [
        ("s TEXT {eq}, KEY s (s)", None),
        ("s VARCHAR(769) {eq}, KEY (s)", None),
        ("s VARCHAR(768) {eq}, KEY (s)", None),
        ("s TINYTEXT {eq}, n INT, KEY (s, n)", None),
        ("s TINYBLOB {eq}, KEY (s)", None),
        ("s BLOB {eq}, KEY (s)", None),
        ("s VARBINARY(3073) {eq}, KEY (s)", None),
        (
            "s TEXT COLLATE latin1_swedish_ci {eq, range}, t TEXT {eq}, KEY (s), KEY (t)",
            None,
        ),
        ("s TEXT {eq}, n INT, KEY (n, s)", None),
        (
            "s TEXT COLLATE latin1_swedish_ci {eq, range}",
            Some("ALTER TABLE k ADD KEY odd_key (s)"),
        ),
        ("s TEXT {eq}", Some("CREATE INDEX odd_key ON k (s)")),
        ("s TEXT {eq}", Some("ALTER TABLE k ADD KEY (s(20))")),
        (
            "s TEXT {eq}, n INT",
            Some("CREATE INDEX odd_key ON k (s, n)"),
        ),
        (
            "s VARCHAR(2000) {eq}",
            Some("ALTER TABLE k ADD COLUMN t VARCHAR(900) {eq}, ADD KEY (t)"),
        ),
        ("s TEXT {eq}", Some("CREATE TABLE copied LIKE k")),
    ] {
        let create = format!("CREATE TABLE k (id INT PRIMARY KEY, {definition})");
        let mut fails = false;
        for sql in std::iter::once(create.as_str()).chain(added) {
            let said = pair.say(sql);
            fails |= said.plain.starts_with("10") || said.plain.starts_with("11");
            let number = |said: &str| said.split(' ').next().unwrap_or_default().to_owned();
            match said.plain.starts_with('1') {
                true => assert_eq!(number(&said.plain), number(&said.protected), "{sql}"),
                false => assert_eq!(said.plain, said.protected, "{sql}"),
            }
        }
        if !fails {
            pair.same("SHOW WARNINGS");
            pair.same("SHOW CREATE TABLE k");
            pair.same("SHOW COLUMNS FROM k");
            pair.same("INSERT INTO k (id, s) VALUES (1, 'some words'), (2, 'others')");
            pair.same("SELECT id FROM k WHERE s = 'some words'");
        }
        pair.say("DROP TABLE IF EXISTS k, copied");
    }
    if kind == Kind::MariaDb {
        pair.same("CREATE TABLE k (id INT PRIMARY KEY, s TEXT {eq}, KEY (s))");
        assert!(pair.same("SHOW WARNINGS").contains("1071"));
        pair.same("DROP TABLE k");
        pair.same("SET sql_notes = 0");
        pair.same("CREATE TABLE k (id INT PRIMARY KEY, s TEXT {eq}, KEY (s))");
        pair.same("SHOW WARNINGS");
    }
}

/// What the server says of the condition comes first, whether or not there are rows.
fn conditions_that_fail_beside_values_that_do_not_fit(kind: Kind) {
    let table = "CREATE TABLE x (id BIGINT NOT NULL AUTO_INCREMENT, i INT UNSIGNED {eq}, \
                 changed TIMESTAMP(6) NOT NULL DEFAULT '2020-01-01' ON UPDATE CURRENT_TIMESTAMP(6), plain INT, PRIMARY KEY (id)) \
                 DEFAULT CHARSET=latin1";
    let Some(mut pair) = Pair::of(kind, false, &[table]) else {
        return;
    };
    for rows in [false, true] {
        if rows {
            pair.same("INSERT INTO x (i, plain) VALUES (1, 1)");
        }
        for condition in [
            "changed = 7",
            "changed > 'abc'",
            "plain = 'abc'",
            "plain = 77",
        ] {
            for value in ["18446744073709551615", "-1", "5"] {
                for tail in ["", " ORDER BY id", " LIMIT 1"] {
                    let sql = format!("UPDATE x SET i = {value} WHERE {condition}{tail}");
                    let said = pair.say(&sql);
                    let fails = |said: &str| !said.starts_with('[');
                    let is_alike = fails(&said.plain) == fails(&said.protected);
                    assert!(is_alike || said.is_refused(), "{sql}\n{said:?}");
                }
            }
        }
    }
}

/// MySQL shows the columns that it makes for indexes over expressions, of temporary tables only.
fn temporary_tables_with_like(kind: Kind) {
    let tables = [
        "CREATE TABLE x (id INT NOT NULL AUTO_INCREMENT, s VARCHAR(8) COLLATE utf8mb4_bin {eq, like}, PRIMARY KEY (id))",
        "CREATE TABLE y (id INT PRIMARY KEY, s INT {eq})",
        "INSERT INTO x (s) VALUES ('one'), ('two')",
    ];
    let Some(mut pair) = Pair::of(kind, false, &tables) else {
        return;
    };
    for create in [
        "CREATE TEMPORARY TABLE made LIKE x",
        "CREATE TEMPORARY TABLE made (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, p INT, s TEXT COLLATE utf8mb4_bin {like})",
        "CREATE TEMPORARY TABLE y (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, s TEXT COLLATE utf8mb4_bin {like}, u VARCHAR(20) {like})",
        "CREATE TEMPORARY TABLE x (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, s TEXT COLLATE utf8mb4_bin {like}, KEY odd (id))",
    ] {
        let name = create.split(' ').nth(3).unwrap_or_default();
        pair.same(create);
        for sql in [
            "SELECT * FROM made ORDER BY id",
            "INSERT INTO made (s) VALUES ('abc'), ('bcd'), (NULL)",
            "SELECT * FROM made ORDER BY id",
            "SELECT id FROM made WHERE s LIKE '%bc%' ORDER BY id",
            "UPDATE made SET s = 'abcd' WHERE id = 1",
            "DELETE FROM made WHERE s LIKE 'bcd'",
            "SELECT * FROM made ORDER BY id",
            "DESCRIBE made",
            "SHOW COLUMNS FROM made",
            "SHOW FULL COLUMNS FROM made LIKE 's'",
            "SHOW CREATE TABLE made",
        ] {
            let sql = sql.replace("made", name);
            pair.same(&sql);
        }
        pair.same(&format!("DROP TEMPORARY TABLE {name}"));
    }
    pair.same("SELECT * FROM x ORDER BY id");
}

fn read_locks_come_before_values(kind: Kind) {
    let tables = [
        "CREATE TABLE x (id INT PRIMARY KEY, i TINYINT {eq}, s VARCHAR(3) NOT NULL {eq}, free VARCHAR(3) {}, plain INT)",
        "INSERT INTO x VALUES (1, 1, 'a', 'b', 1)",
    ];
    let Some(mut pair) = Pair::of(kind, false, &tables) else {
        return;
    };
    let statements = [
        "INSERT INTO x VALUES (2, 1000, 'a', 'b', 1)",
        "INSERT INTO x (id, s) VALUES (2, 'too long'), (3, 'b')",
        "INSERT INTO x (id, s) VALUES (2, NULL)",
        "INSERT INTO x (id, s) VALUES (2, 'a')",
        "REPLACE INTO x VALUES (1, 'x', 'a', 'b', 1)",
        "INSERT INTO x (id, s) VALUES (1, 'a') ON DUPLICATE KEY UPDATE i = 1000",
        "UPDATE x SET i = 1000",
        "UPDATE x SET i = 1000 WHERE id = 77",
        "UPDATE x SET free = 'too long' WHERE id = 1",
        "UPDATE x SET i = 5 WHERE id = 77",
    ];
    for (lock, end) in [
        ("LOCK TABLES x READ", "UNLOCK TABLES"),
        ("LOCK TABLES x WRITE", "UNLOCK TABLES"),
    ] {
        pair.same(lock);
        for sql in statements {
            for prepared in [false, true] {
                let said = match prepared {
                    false => pair.say(sql),
                    true => pair.execute(sql),
                };
                let number = |said: &str| said.split(' ').next().unwrap_or_default().to_owned();
                let is_alike = match said.plain.starts_with('1') {
                    true => number(&said.plain) == number(&said.protected),
                    false => said.plain == said.protected,
                };
                let is_read = lock.ends_with("READ");
                assert!(
                    is_alike || (said.is_refused() && !is_read),
                    "{lock}; {sql}\n{said:?}"
                );
                assert!(
                    !is_read || said.plain.starts_with("1099"),
                    "{sql}\n{said:?}"
                );
            }
        }
        pair.same(end);
        pair.same("DELETE FROM x");
        pair.same("INSERT INTO x VALUES (1, 1, 'a', 'b', 1)");
    }
}

const TABLES: [&str; 4] = [
    "CREATE TABLE x (id INT PRIMARY KEY, i INT {eq, range}, s VARCHAR(20) {eq}, free INT {}, plain INT)",
    "CREATE TABLE y (id INT PRIMARY KEY, i INT {eq, range}, dt DATETIME {eq, range}, plain INT)",
    "INSERT INTO x VALUES (1, 5, 'abc', 5, 1), (2, 6, '2', 6, 2), (3, 7, NULL, 7, 3)",
    "INSERT INTO y VALUES (1, 5, '2020-01-01', 1), (2, 6, '2021-01-01', 2), (3, 7, NULL, 3)",
];

/// To a plain server, `SUM (k)` is a call of a stored function, unless `IGNORE_SPACE` is set.
fn blanks_before_parentheses(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = Pair::of(kind, with_engine, &TABLES) else {
            return;
        };
        for mode in ["", "IGNORE_SPACE"] {
            pair.same(&format!("SET sql_mode = '{mode}'"));
            for sql in [
                "SELECT SUM (i) FROM x",
                "SELECT COUNT (i) FROM x",
                "SELECT COUNT (*) FROM x WHERE i = 5",
                "SELECT MIN\t(i), MAX\n(i) FROM x",
                "SELECT MIN/**/(i) FROM x",
                "SELECT plain, SUM (i) FROM x GROUP BY plain ORDER BY plain",
                "SELECT GROUP_CONCAT (i) FROM x",
                "SELECT SUBSTRING (s, 1, 1) FROM x",
                "SELECT id FROM x WHERE i = 5 AND TRIM (s) = 'abc'",
                "UPDATE x SET s = TRIM ('abc') WHERE id = 77",
                "INSERT INTO x (id, s) SELECT 9, SUBSTR ('abc', 1) FROM x WHERE id = 77",
                "DELETE FROM x WHERE id = 77 AND s = TRIM ('abc')",
            ] {
                if pair.same_or_refused(sql) || mode.is_empty() {
                    continue;
                }
                // what the mode allows is refused for other reasons, if at all
                let said = pair.say(sql);
                assert!(
                    said.plain.starts_with("16") || !said.protected.contains("a blank between"),
                    "{sql}: {said:?}"
                );
            }
            pair.same("SELECT AVG (i) FROM x");
            pair.same("SELECT SUM(i), COUNT(i), MIN(i) FROM x");
        }
        // there they are names
        pair.same("SET sql_mode = ''");
        for sql in [
            "CREATE TABLE count (id INT, now INT {eq}, KEY sum (now))",
            "INSERT INTO count (id, now) VALUES (1, 2)",
            "SELECT now FROM count WHERE now = 2",
            "CREATE INDEX max ON count (now)",
            "DROP TABLE count",
        ] {
            pair.same(sql);
        }
    }
}

/// MySQL changes no table that a subquery of the statement reads.
fn tables_that_are_changed_and_read(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = Pair::of(kind, with_engine, &TABLES) else {
            return;
        };
        for sql in [
            "UPDATE x SET i = 1 WHERE id IN (SELECT id FROM x WHERE plain = 99)",
            "UPDATE x SET free = 1 WHERE id IN (SELECT id FROM x WHERE plain = 1)",
            "UPDATE x SET i = i + 1 WHERE id IN (SELECT id FROM x WHERE plain = 1)",
            "UPDATE x SET free = free + 1 WHERE plain IN (SELECT plain FROM x)",
            "UPDATE x SET free = free + 1 WHERE id = (SELECT MIN(id) FROM x)",
            "UPDATE x SET free = free + 1 WHERE EXISTS (SELECT 1 FROM x z WHERE z.i = x.i)",
            "UPDATE x SET plain = 1 WHERE free = 5 AND id IN (SELECT id FROM x)",
            "UPDATE x SET plain = (SELECT MAX(plain) FROM x) WHERE i = 1",
            "UPDATE x SET i = (SELECT MAX(i) FROM x) WHERE id = 1",
            "UPDATE x SET s = 'q' WHERE s LIKE 'a%' AND id IN (SELECT id FROM x)",
            "DELETE FROM x WHERE id IN (SELECT id FROM x WHERE plain = 99)",
            "DELETE FROM x WHERE free = 5 AND id IN (SELECT id FROM x WHERE plain = 99)",
            "DELETE FROM x WHERE s LIKE 'z%' AND id IN (SELECT id FROM x)",
            "DELETE FROM x WHERE i = (SELECT MAX(i) FROM x WHERE id > 100)",
            "UPDATE x JOIN y ON x.id = y.id SET x.free = (SELECT COUNT(*) FROM x)",
            "INSERT INTO x (id, i) VALUES (30, (SELECT MAX(i) FROM x))",
            "UPDATE x SET i = i + 1 WHERE id IN (SELECT id FROM y)",
            "UPDATE x SET free = free + 1 WHERE id IN (SELECT id FROM y WHERE plain = 1)",
        ] {
            let said = pair.say(sql);
            assert!(
                said.is_refused() || said.plain == said.protected,
                "{with_engine}: {sql}\n{said:?}"
            );
            // both as before
            pair.same("SET @before = 0");
            for table in ["x", "y"] {
                for session in [&mut pair.plain, &mut pair.protected] {
                    session.must(&format!("DELETE FROM {table}"));
                }
            }
            pair.same(TABLES[2]);
            pair.same(TABLES[3]);
        }
    }
}

fn texts_joined_with_numbers(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = Pair::of(kind, with_engine, &TABLES) else {
            return;
        };
        for sql in [
            "UPDATE x JOIN y ON x.s = y.id SET x.plain = 5",
            "UPDATE x JOIN y ON x.s = y.id SET x.i = 5",
            "UPDATE x JOIN y ON x.s = y.id SET x.s = 'q' WHERE y.id = 77",
            "UPDATE x JOIN y ON x.s = y.i SET x.plain = 5",
            "UPDATE x JOIN y ON y.i = x.s SET y.plain = 5",
            "UPDATE x JOIN y ON x.s = y.plain SET y.i = 5 WHERE x.id = 1",
            "DELETE x FROM x JOIN y ON x.s = y.id WHERE y.id = 77",
            "DELETE FROM x WHERE s = 77",
            "UPDATE x SET plain = 5 WHERE s = id",
            "UPDATE x SET i = 5 WHERE s = 2",
            "SELECT x.id FROM x JOIN y ON x.s = y.id ORDER BY 1",
            "SELECT id FROM x WHERE s = 2",
            "SELECT id FROM x WHERE s + 0 = 2",
        ] {
            let said = pair.say(sql);
            assert!(
                said.is_refused() || said.plain == said.protected,
                "{with_engine}: {sql}\n{said:?}"
            );
            for session in [&mut pair.plain, &mut pair.protected] {
                session.must("DELETE FROM x");
                session.must("DELETE FROM y");
            }
            pair.same(TABLES[2]);
            pair.same(TABLES[3]);
        }
    }
}

fn extremes_with_rollup(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = Pair::of(kind, with_engine, &TABLES) else {
            return;
        };
        for sql in [
            "SELECT MIN(a.dt), b.id FROM y a JOIN x b ON a.id = b.id GROUP BY b.id WITH ROLLUP",
            "SELECT MIN(a.dt), a.id FROM y a GROUP BY a.id WITH ROLLUP",
            "SELECT MAX(i), plain FROM x GROUP BY plain WITH ROLLUP",
            "SELECT COUNT(i), plain FROM x GROUP BY plain WITH ROLLUP",
            "SELECT i, COUNT(*) FROM x GROUP BY i WITH ROLLUP",
            "SELECT SUM(i), plain, id FROM x GROUP BY plain, id WITH ROLLUP",
            "SELECT dt, MAX(i) FROM y GROUP BY dt WITH ROLLUP",
        ] {
            let said = pair.say(sql);
            // OS1105 says that the table changes for ever
            assert!(!said.protected.contains("OS1105"), "{sql}\n{said:?}");
            assert!(
                said.is_refused() || said.plain == said.protected,
                "{with_engine}: {sql}\n{said:?}"
            );
        }
    }
}
