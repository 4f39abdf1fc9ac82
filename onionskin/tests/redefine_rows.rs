//! MODIFY of protected columns where rows are: another type, other letters, another collation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use onionskin_testkit::*;

on_both_servers!(
    values_are_those_of_the_new_type,
    what_the_new_type_does_not_hold_leaves_the_table_alone,
    a_wildcard_is_kept,
    what_it_cannot_see_is_a_migration,
    nobody_is_between,
    a_proxy_that_is_killed_leaves_the_rows,
    digits_behind_a_second,
);

/// What physical columns there are beside those of the definition.
fn helpers(pair: &Pair) -> String {
    let sql = "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE COLUMN_NAME LIKE 'onionskin%'";
    pair.behind.connect().text(sql).expect("a number")
}

fn values_are_those_of_the_new_type(kind: Kind) {
    let Some(mut pair) = Pair::start(
        kind,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(40) {eq}, p INT, w TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP, \
             d DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) {range}, q INT UNSIGNED NOT NULL DEFAULT 7 COMMENT 'old' {eq, range}, \
             e ENUM('a','b') {eq}, l VARCHAR(60) NOT NULL {eq, like}, s TEXT {}, UNIQUE KEY k (n), KEY (p, q))",
        ],
    ) else {
        return;
    };
    pair.both(
        "INSERT INTO t (id, n, p, d, q, e, l, s) VALUES (1, 'Anna', 1, '2020-01-01 01:02:03.456', 1, 'a', 'a long letter', 'x'), \
         (2, NULL, 2, NULL, 2, NULL, 'another letter', NULL), (3, 'Berta', 3, '1999-12-31', 4294967295, 'b', '', '')",
    );
    pair.both(&format!(
        "INSERT INTO t (id, n, l, s, d) VALUES (9, '{SECRET}', '{SECRET}', '{SECRET}', NULL)"
    ));
    pair.both("UPDATE t SET w = '2001-01-01'");
    for sql in [
        "ALTER TABLE t MODIFY n VARCHAR(60)",
        "ALTER TABLE t MODIFY n VARCHAR(30) COLLATE utf8mb4_bin DEFAULT 'x' COMMENT 'it''s'",
        "ALTER TABLE t MODIFY q BIGINT NOT NULL, ADD COLUMN more INT DEFAULT 5 {eq}",
        "ALTER TABLE t MODIFY d DATETIME(6), MODIFY e ENUM('b','a')",
        "ALTER TABLE t MODIFY e VARCHAR(9)",
        "ALTER TABLE t MODIFY q DECIMAL(12,2) NOT NULL",
        "ALTER TABLE t MODIFY q VARCHAR(20) NOT NULL",
        "ALTER TABLE t MODIFY l VARCHAR(90) NULL, ADD KEY (l)",
        "ALTER TABLE t MODIFY s LONGTEXT",
        "ALTER TABLE t MODIFY s VARCHAR(300) DEFAULT 'none'",
    ] {
        // where the server changes a table without a copy, it counts no rows
        let (definition, bare) = with_and_without_protection(sql);
        pair.plain.must(&bare);
        pair.protected.must(&definition);
        for question in [
            "SHOW CREATE TABLE t",
            "SHOW FULL COLUMNS FROM t",
            "SELECT * FROM t ORDER BY id",
            "SELECT id FROM t WHERE n = 'anna'",
            "SELECT id FROM t WHERE n = 'Anna'",
            "SELECT id FROM t WHERE d > '2000-01-01'",
            "SELECT id FROM t WHERE q >= 2 ORDER BY q",
            "SELECT id FROM t WHERE e = 'b'",
            "SELECT id FROM t WHERE l LIKE '%letter%' ORDER BY id",
            "SELECT id FROM t WHERE s IS NULL",
        ] {
            pair.same(question);
        }
        assert_eq!(helpers(&pair), "0", "{sql}");
    }
    for sql in [
        "INSERT INTO t (id, n, q, l) VALUES (4, 'anna', '17', 'a letter')",
        "INSERT INTO t (id, n, q, l) VALUES (5, 'Anna', '17', 'a letter')",
        "UPDATE t SET l = 'no' WHERE n = 'Berta'",
        "SELECT * FROM t ORDER BY id",
    ] {
        pair.same(sql);
    }
    pair.nothing_leaked();
}

fn what_the_new_type_does_not_hold_leaves_the_table_alone(kind: Kind) {
    let Some(mut pair) = Pair::start(
        kind,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(40) {eq}, c VARCHAR(9) COLLATE utf8mb4_bin {eq}, q INT {range}, UNIQUE KEY (c))",
        ],
    ) else {
        return;
    };
    pair.both(&format!("INSERT INTO t VALUES (7, '{SECRET}', 'x', 1)"));
    pair.both("INSERT INTO t VALUES (1, 'a long text', 'a', 300), (2, 'b', 'A', -1), (3, NULL, NULL, NULL)");
    let before = pair.protected.text("SHOW CREATE TABLE t").unwrap();
    for sql in [
        "ALTER TABLE t MODIFY n VARCHAR(5)",
        "ALTER TABLE t MODIFY n INT",
        "ALTER TABLE t MODIFY n VARCHAR(50) NOT NULL",
        "ALTER TABLE t MODIFY q TINYINT",
        "ALTER TABLE t MODIFY q BIGINT UNSIGNED",
        // two rows are one then
        "ALTER TABLE t MODIFY c VARCHAR(9) COLLATE utf8mb4_general_ci",
        // the one may be and the other not
        "ALTER TABLE t MODIFY n TEXT, MODIFY q TINYINT",
    ] {
        let said = pair.say(sql);
        assert!(!said.plain.starts_with("0 "), "{sql}: {said:?}");
        let failure = pair.protected.run(sql).expect_err(sql).to_string();
        assert!(
            !failure.contains("long text") && !failure.contains(SECRET),
            "{failure}"
        );
        assert_eq!(pair.protected.text("SHOW CREATE TABLE t").unwrap(), before);
        pair.same("SELECT * FROM t ORDER BY id");
        assert_eq!(helpers(&pair), "0", "{sql}");
    }
    let twice = "ALTER TABLE t MODIFY c VARCHAR(9) COLLATE utf8mb4_general_ci";
    assert_eq!(pair.protected.run(twice).unwrap_err().code, 1062);
    // nobody's tables are locked, and all goes on
    pair.same("INSERT INTO t VALUES (4, 'c', 'c', 4)");
    pair.nothing_leaked();
}

/// What a wildcard has protected stays protected, keys with groups of their own as well.
fn a_wildcard_is_kept(kind: Kind) {
    let options = PairOptions {
        settings: "enforce = true\n[protect.\"app.*\"]\n\"*\" = [\"eq\", \"range\"]\n",
        database: "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
        ..PairOptions::default()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    for sql in [
        "CREATE TABLE u (id INT AUTO_INCREMENT PRIMARY KEY, nm VARCHAR(20), n INT, UNIQUE KEY (nm))",
        "INSERT INTO u (nm, n) VALUES ('a', 1), ('b', NULL), (NULL, 3)",
        "ALTER TABLE u MODIFY nm VARCHAR(30), MODIFY n BIGINT",
        "SHOW CREATE TABLE u",
        "SELECT * FROM u WHERE nm = 'A' OR n > 2 ORDER BY id",
        "CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, nm VARCHAR(30), FOREIGN KEY (nm) REFERENCES u (nm))",
        "INSERT INTO c (nm) VALUES ('b')",
        "SELECT u.n, c.nm FROM u JOIN c ON u.nm = c.nm",
        "INSERT INTO c (nm) VALUES ('nobody')",
    ] {
        let said = pair.say(sql);
        assert!(!said.protected.contains(" OS1"), "{sql}: {said:?}");
    }
    pair.same("SELECT * FROM u ORDER BY id");
    pair.same("SELECT * FROM c ORDER BY id");
    let sealed = "SELECT GROUP_CONCAT(COLUMN_NAME ORDER BY COLUMN_NAME) FROM information_schema.COLUMNS \
                  WHERE TABLE_NAME = 'u' AND COLUMN_NAME LIKE '%$enc'";
    let names = pair.behind.connect().text(sealed).unwrap();
    assert_eq!(names, "n$enc,nm$enc");
    // a key that another table refers to stays
    let failure = pair.protected.run("ALTER TABLE u MODIFY nm VARCHAR(31)");
    let failure = failure.unwrap_err().to_string();
    assert!(failure.contains("OS1040"), "{failure}");
    pair.same("SELECT * FROM u ORDER BY id");
    assert_eq!(helpers(&pair), "0");
}

fn what_it_cannot_see_is_a_migration(kind: Kind) {
    let Some(mut pair) = Pair::start(
        kind,
        &["CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(40) {eq}, p INT)"],
    ) else {
        return;
    };
    pair.both("INSERT INTO t VALUES (1, 'a', 1)");
    let change = "ALTER TABLE t MODIFY n VARCHAR(80)";
    let refused = |session: &mut Session, sql: &str| {
        let said = session.run(sql).map(|_| sql.to_owned());
        let said = said.unwrap_err().to_string();
        let is_told = said.contains("OS1040") && said.contains("onionskin migrate");
        assert!(is_told, "{said}");
    };
    let mut behind = pair.behind.connect();
    behind.must("USE app");
    // a trigger would run for rows that nobody has changed
    behind.must("CREATE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW SET NEW.p = NEW.p + 1");
    refused(&mut pair.protected, change);
    behind.must("DROP TRIGGER x");
    // an account that would not see one
    behind.must("CREATE USER low IDENTIFIED BY 'low'");
    behind.must("GRANT SELECT, INSERT, UPDATE, DELETE, ALTER, CREATE, DROP, INDEX, LOCK TABLES ON app.* TO low");
    let mut low = Session::open(pair.proxy.port(), "low", "low", Some("app"));
    refused(&mut low, change);
    pair.protected.must("SET sql_safe_updates = 1");
    refused(&mut pair.protected, change);
    pair.protected.must("SET sql_safe_updates = 0");
    // many rows
    let rows: Vec<String> = (2..20_002).map(|id| format!("({id}, 'a', 1)")).collect();
    let insert = format!("INSERT INTO t VALUES {}", rows.join(","));
    pair.protected.must(&insert);
    refused(&mut pair.protected, change);
    behind.must("DELETE FROM t WHERE id > 20000");
    pair.protected.must(change);
    assert_eq!(
        pair.protected
            .text("SELECT COUNT(*), SUM(p) FROM t WHERE n = 'A'")
            .unwrap(),
        "20000\t20000"
    );
    assert_eq!(helpers(&pair), "0");
}

/// Writers that never stop: each of their rows is there afterwards, and none is of before.
fn nobody_is_between(kind: Kind) {
    let Some(mut pair) = Pair::start(
        kind,
        &[
            "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n VARCHAR(40) NOT NULL {eq}, s VARCHAR(40) {})",
        ],
    ) else {
        return;
    };
    let stop = AtomicBool::new(false);
    let mut sessions: Vec<Session> = (0..3).map(|_| pair.proxy.connect_to("app")).collect();
    let written: Vec<u64> = std::thread::scope(|scope| {
        let writers: Vec<_> = sessions
            .iter_mut()
            .enumerate()
            .map(|(who, session)| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut done = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let sql = format!("INSERT INTO t (n, s) VALUES ('w{who}', 'text {done}')");
                        match session.run(&sql) {
                            Ok(_) => done += 1,
                            // it was planned before the definition
                            Err(failure) => {
                                assert!(failure.message.contains("OS1101"), "{failure}");
                            }
                        }
                    }
                    done
                })
            })
            .collect();
        for length in 41..47 {
            std::thread::sleep(Duration::from_millis(150));
            let sql = format!(
                "ALTER TABLE t MODIFY n VARCHAR({length}) NOT NULL, MODIFY s VARCHAR({length})"
            );
            pair.protected.must(&sql);
        }
        stop.store(true, Ordering::Relaxed);
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect()
    });
    for (who, done) in written.iter().enumerate() {
        let sql = format!("SELECT COUNT(*), COUNT(DISTINCT s) FROM t WHERE n = 'W{who}'");
        let found = pair.protected.text(&sql).unwrap();
        assert_eq!(found, format!("{done}\t{done}"));
    }
    assert!(written.iter().sum::<u64>() > 50, "{written:?}");
}

fn a_proxy_that_is_killed_leaves_the_rows(kind: Kind) {
    let Some(mut pair) = Pair::start(
        kind,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n VARCHAR(40) {eq, range}, s VARCHAR(40) {})",
        ],
    ) else {
        return;
    };
    let rows: Vec<String> = (0..2_000).map(|n| format!("('n{n}', 's{n}')")).collect();
    pair.protected
        .must(&format!("INSERT INTO t (n, s) VALUES {}", rows.join(",")));
    let sums = "SELECT COUNT(*), COUNT(DISTINCT n), COUNT(DISTINCT s), MIN(n), MAX(n) FROM t";
    let expected = pair.protected.text(sums).unwrap();
    let mut left = 0;
    for round in 0..8 {
        let mut session = pair.proxy.connect_to("app");
        let sql = format!(
            "ALTER TABLE t MODIFY n VARCHAR({}), MODIFY s TEXT",
            41 + round
        );
        let change = std::thread::spawn(move || session.run(&sql).is_ok());
        std::thread::sleep(Duration::from_millis(rand::random_range(5..250)));
        pair.proxy.kill9();
        change.join().unwrap();
        pair.proxy.restart();
        left += i32::from(helpers(&pair) != "0");
        let mut session = pair.proxy.connect_to("app");
        assert_eq!(session.text(sums).unwrap(), expected, "{round}");
        session.must("INSERT INTO t VALUES (0, 'n5', 's5')");
        session.must("DELETE FROM t ORDER BY id DESC LIMIT 1");
        // the next one cleans up
        session.must("ALTER TABLE t MODIFY n VARCHAR(60), MODIFY s VARCHAR(60)");
        session.must("ALTER TABLE t MODIFY n VARCHAR(40), MODIFY s VARCHAR(40)");
        assert_eq!(helpers(&pair), "0");
        assert_eq!(session.text(sums).unwrap(), expected, "{round}");
    }
    println!("{left} of 8 kills were in the middle");
}

/// Digits that a new type has no room for are cut or rounded by the session's `sql_mode`.
fn digits_behind_a_second(kind: Kind) {
    const TABLE: &str = "CREATE TABLE s (id INT PRIMARY KEY, d DATETIME(6) {}, t TIME(6) {eq})";
    let Some(mut pair) = Pair::start(kind, &[TABLE]) else {
        return;
    };
    let other = match kind {
        Kind::MariaDb => "TIME_ROUND_FRACTIONAL",
        Kind::MySql => "TIME_TRUNCATE_FRACTIONAL",
    };
    let rows = [
        ("2000-12-31 23:59:59.999999", "23:59:59.999999"),
        ("2000-12-31 23:59:59.123000", "-23:59:59.123000"),
    ];
    let mut done = 0;
    for mode in ["", "STRICT_ALL_TABLES", other] {
        for (date, time) in rows {
            pair.both(&format!("SET sql_mode = '{mode}'"));
            pair.both(&format!("REPLACE INTO s VALUES (1, '{date}', '{time}')"));
            for column in ["d DATETIME(3)", "t TIME(3)", "t TIME(6)", "d DATETIME(6)"] {
                done += usize::from(pair.same_if_done(&format!("ALTER TABLE s MODIFY {column}")));
                pair.same("SELECT d, t FROM s");
            }
        }
    }
    assert!(done >= 6, "{done}");
}
