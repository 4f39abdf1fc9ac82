//! MODIFY and CHANGE of protected columns, as frameworks send them: what no cell depends on passes,
//! and what does is refused with the command that does it.

use onionskin_testkit::*;

on_both_servers!(
    definitions_change_where_no_cell_does,
    what_needs_other_cells_is_a_migration,
    rows_stay_through_it,
    null_comes_and_goes,
    keys_of_others_get_null,
    no_name_is_given_twice,
    an_empty_table_takes_any_definition,
    places_are_those_of_the_columns,
    names_that_ask_for_less_are_refused,
    rows_keep_an_empty_tables_way_shut,
);

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(40) {eq}, p INT, \
                     d DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) {range}, \
                     q INT UNSIGNED NOT NULL DEFAULT 7 COMMENT 'old' {range}, \
                     e ENUM('a','b') {eq}, UNIQUE KEY k (n))";

fn pair(kind: Kind) -> Option<Pair> {
    let mut pair = Pair::start(kind, &[TABLE])?;
    pair.both(
        "INSERT INTO t VALUES (1, 'a', 1, '2020-01-01', 1, 'a'), (2, NULL, 2, NULL, 2, NULL)",
    );
    Some(pair)
}

/// What a definition looks like, by all ways to ask.
fn shows_the_same(pair: &mut Pair, sql: &str) {
    pair.same("SHOW CREATE TABLE t");
    pair.same("SHOW FULL COLUMNS FROM t");
    pair.same(
        "SELECT COLUMN_NAME, ORDINAL_POSITION, COLUMN_DEFAULT, IS_NULLABLE, COLUMN_TYPE, COLUMN_KEY, EXTRA, \
         COLUMN_COMMENT FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() \
         AND TABLE_NAME = 't' ORDER BY ORDINAL_POSITION",
    );
    assert_eq!(
        pair.plain.text("SELECT * FROM t ORDER BY id").expect(sql),
        pair.protected
            .text("SELECT * FROM t ORDER BY id")
            .expect(sql),
        "{sql}"
    );
}

fn definitions_change_where_no_cell_does(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    for sql in [
        "ALTER TABLE t MODIFY n VARCHAR(40)",
        "ALTER TABLE t MODIFY COLUMN n varchar(40) DEFAULT NULL",
        "ALTER TABLE t CHANGE n n VARCHAR(40) NULL",
        "ALTER TABLE t CHANGE COLUMN `n` `n` VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "ALTER TABLE t MODIFY n VARCHAR(40) DEFAULT 'x' COMMENT 'it''s | new'",
        "ALTER TABLE t MODIFY n VARCHAR(40) COMMENT 'second'",
        "ALTER TABLE t MODIFY q INT UNSIGNED NOT NULL",
        "ALTER TABLE t MODIFY q INT UNSIGNED NOT NULL DEFAULT 9 COMMENT 'c'",
        "ALTER TABLE t MODIFY d DATETIME(3) DEFAULT NULL, MODIFY q INT UNSIGNED NOT NULL DEFAULT 8",
        "ALTER TABLE t MODIFY d DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3)",
        "ALTER TABLE t MODIFY e ENUM('a','b') DEFAULT 'b', ADD COLUMN w INT, DROP COLUMN p",
        "ALTER TABLE t MODIFY e ENUM('a','b') FIRST",
        "ALTER TABLE t MODIFY e ENUM('a','b') AFTER q",
        "ALTER TABLE t MODIFY n VARCHAR(40) AFTER id",
        "ALTER TABLE t CHANGE n m VARCHAR(40)",
        "ALTER TABLE t CHANGE m n VARCHAR(40) DEFAULT NULL",
        "ALTER TABLE t CHANGE n m VARCHAR(40) DEFAULT 'q' COMMENT 'both' FIRST",
        "ALTER TABLE t CHANGE m N VARCHAR(40) AFTER e",
        "ALTER TABLE t CHANGE N n VARCHAR(40)",
        "ALTER TABLE t MODIFY w BIGINT NOT NULL DEFAULT 3, MODIFY n VARCHAR(40) COMMENT 'z'",
    ] {
        // a new name makes servers copy the rows of a protected column's table, and count them
        let said = pair.say(sql);
        assert_eq!(
            said.plain.contains("1235 "),
            said.protected.contains("1235 "),
            "{sql}"
        );
        if !sql.contains("CHANGE") {
            assert_eq!(said.plain, said.protected, "{sql}");
        }
        shows_the_same(&mut pair, sql);
    }
    // said again, as a dump of the logical definition says it
    pair.protected
        .must("ALTER TABLE t MODIFY n VARCHAR(40) COMMENT 'y' ENCRYPTED FOR (eq)");
    pair.plain
        .must("ALTER TABLE t MODIFY n VARCHAR(40) COMMENT 'y'");
    shows_the_same(&mut pair, "with its capabilities");
}

fn what_needs_other_cells_is_a_migration(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    // otherwise the rows would get new cells at once
    pair.protected.must("SET sql_safe_updates = 1");
    let before = pair
        .protected
        .text("SHOW CREATE TABLE t")
        .expect("a definition");
    for sql in [
        "ALTER TABLE t MODIFY n VARCHAR(60)",
        "ALTER TABLE t MODIFY n VARCHAR(30)",
        "ALTER TABLE t CHANGE n m VARCHAR(40) NOT NULL",
        "ALTER TABLE t MODIFY n VARCHAR(40) COLLATE utf8mb4_bin",
        "ALTER TABLE t MODIFY n TEXT",
        "ALTER TABLE t MODIFY q INT NOT NULL",
        "ALTER TABLE t MODIFY q BIGINT UNSIGNED NOT NULL",
        "ALTER TABLE t MODIFY d DATETIME(6)",
        "ALTER TABLE t MODIFY d DATETIME(3) ON UPDATE CURRENT_TIMESTAMP(3)",
        "ALTER TABLE t MODIFY e ENUM('b','a')",
        "ALTER TABLE t CHANGE n m VARCHAR(60) FIRST",
        "ALTER TABLE t MODIFY n VARCHAR(40) ENCRYPTED FOR (eq, range)",
        "ALTER TABLE t MODIFY n VARCHAR(40) ENCRYPTED FOR ()",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(
            failure.message.starts_with("OS1040 onionskin migrate"),
            "{sql}: {failure}"
        );
    }
    for sql in [
        "ALTER TABLE t MODIFY n VARCHAR(40) GENERATED ALWAYS AS (p)",
        "ALTER TABLE t MODIFY n",
    ] {
        assert!(pair.protected.run(sql).is_err(), "{sql}");
    }
    let after = pair
        .protected
        .text("SHOW CREATE TABLE t")
        .expect("a definition");
    assert_eq!(before, after);
}

/// Cells, tokens and keys are those of before, and new rows join them.
fn rows_stay_through_it(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    pair.say(
        "ALTER TABLE t MODIFY q INT UNSIGNED NOT NULL DEFAULT 3 AFTER id, CHANGE n m VARCHAR(40)",
    );
    for sql in [
        "INSERT INTO t (id, m) VALUES (3, 'B'), (4, 'd')",
        "INSERT INTO t (id, m) VALUES (5, 'c')",
        "SELECT id, m, q FROM t WHERE m = 'A' ORDER BY id",
        "SELECT id FROM t WHERE q BETWEEN 2 AND 3 ORDER BY q, id",
        "UPDATE t SET q = q + 1 WHERE m = 'c'",
        "SELECT MAX(q), COUNT(DISTINCT m) FROM t",
    ] {
        pair.same(sql);
    }
}

/// The cells stay, and so do their tokens. Only the server's columns and their CHECK change.
fn null_comes_and_goes(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    pair.create("CREATE TABLE u (id INT PRIMARY KEY, a VARCHAR(20) {eq, range}, b TEXT {like}, c INT {}, KEY (a))");
    pair.both("INSERT INTO u VALUES (1, 'one', 'some text', 5), (2, 'two', 'other text', 6)");
    // a NULL is in the way
    let with_null = "ALTER TABLE t MODIFY n VARCHAR(40) NOT NULL";
    let codes = [&mut pair.plain, &mut pair.protected].map(|session| session.must_fail(with_null));
    match kind {
        // MySQL's words where it copies rows are other ones
        Kind::MySql => assert_eq!(codes, [1138, 1265]),
        Kind::MariaDb => assert_eq!(codes, [1265, 1265]),
    }
    shows_the_same(&mut pair, with_null);
    pair.both("UPDATE t SET n = 'b', d = '2021-01-01', e = 'b' WHERE id = 2");
    for sql in [
        with_null,
        "ALTER TABLE t MODIFY q INT UNSIGNED",
        "ALTER TABLE t MODIFY q INT UNSIGNED DEFAULT 3 COMMENT 'c' AFTER id",
        "ALTER TABLE t MODIFY q INT UNSIGNED NOT NULL",
        "ALTER TABLE t MODIFY d DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), MODIFY e ENUM('a','b') NOT NULL DEFAULT 'b'",
        "ALTER TABLE t MODIFY n VARCHAR(40) NOT NULL DEFAULT 'x' FIRST",
        "ALTER TABLE t CHANGE n n VARCHAR(40) NULL",
        "ALTER TABLE t MODIFY n VARCHAR(40) NOT NULL, ADD COLUMN w INT",
    ] {
        let said = pair.say(sql);
        assert!(
            !said.plain.contains("1235 ") && !said.protected.contains("1235 "),
            "{sql}: {said:?}"
        );
        shows_the_same(&mut pair, sql);
    }
    for sql in [
        "INSERT INTO t (id, n) VALUES (3, NULL)",
        "INSERT INTO t (id) VALUES (3)",
        "INSERT INTO t (id, n, q) VALUES (3, 'A', 4)",
        "INSERT INTO t (id, n, q) VALUES (3, 'c', 4)",
        "UPDATE t SET n = NULL WHERE id = 3",
        "SELECT id FROM t WHERE n = 'C' AND q > 3",
    ] {
        pair.same(sql);
    }
    for sql in [
        "ALTER TABLE u MODIFY a VARCHAR(20) NOT NULL, MODIFY b TEXT NOT NULL, MODIFY c INT NOT NULL",
        "ALTER TABLE u MODIFY b TEXT, MODIFY c INT NULL DEFAULT 4",
    ] {
        pair.say(sql);
        for sql in [
            "SHOW CREATE TABLE u",
            "INSERT INTO u (id, a) VALUES (3, 'three')",
            "INSERT INTO u (id, a, b, c) VALUES (4, 'four', NULL, 4)",
            "SELECT id FROM u WHERE b LIKE '%text%' AND a BETWEEN 'a' AND 'z' ORDER BY id",
            "SELECT * FROM u ORDER BY a",
            "DELETE FROM u WHERE id > 2",
        ] {
            pair.same(sql);
        }
    }
    // a server would make values of NULLs
    pair.protected
        .must("INSERT INTO u (id, a) VALUES (9, 'nine')");
    pair.protected.must("SET sql_mode = ''");
    let failure = pair.protected.run("ALTER TABLE u MODIFY b TEXT NOT NULL");
    let failure = failure.expect_err("outside of strict mode");
    assert!(failure.message.starts_with("OS1040"), "{failure}");
    pair.nothing_leaked();
}

/// Of columns that a wildcard has protected, and that foreign keys refer to or from.
fn keys_of_others_get_null(kind: Kind) {
    let options = PairOptions {
        settings: "enforce = true\n[protect.\"app.*\"]\n\"*\" = [\"eq\"]\n",
        database: "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
        ..PairOptions::default()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    for sql in [
        "CREATE TABLE net (id VARCHAR(36) PRIMARY KEY, x VARCHAR(9), name VARCHAR(20), UNIQUE KEY (name))",
        "CREATE TABLE sub (id VARCHAR(36) PRIMARY KEY, net VARCHAR(36), FOREIGN KEY (net) REFERENCES net (id))",
        "INSERT INTO net VALUES ('a', 'Hb4YqMz7', 'n')",
        "INSERT INTO sub VALUES ('s', 'a')",
        "ALTER TABLE sub MODIFY net VARCHAR(36) NOT NULL",
        "ALTER TABLE net MODIFY name VARCHAR(20) NOT NULL",
        "INSERT INTO sub VALUES ('t', NULL)",
        "INSERT INTO sub VALUES ('t', 'missing')",
        "INSERT INTO sub VALUES ('t', 'A')",
        "ALTER TABLE sub MODIFY net VARCHAR(36)",
        "INSERT INTO sub VALUES ('u', NULL)",
        "SELECT sub.id, x FROM sub JOIN net ON net.id = sub.net ORDER BY sub.id",
        "DELETE FROM net WHERE id = 'a'",
    ] {
        // MySQL does not copy the rows of a foreign key's column into one without NULL
        if kind == Kind::MySql && sql.contains("sub MODIFY net VARCHAR(36) NOT") {
            assert_eq!(pair.protected.must_fail(sql), 1832);
            continue;
        }
        if kind == Kind::MySql && sql == "INSERT INTO sub VALUES ('t', NULL)" {
            continue;
        }
        let said = pair.say(sql);
        assert!(!said.protected.contains(" OS1"), "{sql}: {said:?}");
        if !sql.starts_with("ALTER") {
            assert_eq!(said.plain, said.protected, "{sql}");
        }
    }
    for table in ["net", "sub"] {
        pair.same(&format!("SHOW CREATE TABLE {table}"));
    }
    pair.nothing_leaked();
}

/// A protected column and a plain one of the same name made the table one that no statement could
/// name any more.
fn no_name_is_given_twice(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    for sql in [
        "ALTER TABLE t RENAME COLUMN n TO p",
        "ALTER TABLE t CHANGE n P VARCHAR(40)",
        "ALTER TABLE t RENAME COLUMN n TO q",
        "ALTER TABLE t RENAME COLUMN p TO n",
        "ALTER TABLE t CHANGE p N INT",
        "ALTER TABLE t ADD COLUMN p INT {eq}",
        "ALTER TABLE t ADD COLUMN n INT",
        "ALTER TABLE t ADD COLUMN n INT {eq}",
        "ALTER TABLE t ADD COLUMN w INT {eq}, ADD COLUMN W INT",
        "ALTER TABLE t ADD COLUMN w INT, ADD COLUMN w INT {}",
        "ALTER TABLE t RENAME COLUMN n TO w, ADD COLUMN w INT",
        "ALTER TABLE t RENAME COLUMN p TO w, ADD COLUMN w INT {eq}",
        "CREATE TABLE u (id INT PRIMARY KEY, p VARCHAR(9) {eq}, p INT)",
        "CREATE TABLE u (id INT PRIMARY KEY, p INT, P VARCHAR(9) {eq})",
        "CREATE TABLE u (id INT PRIMARY KEY, p INT {}, p VARCHAR(9) {eq})",
    ] {
        let (definition, bare) = with_and_without_protection(sql);
        assert_eq!(pair.plain.must_fail(&bare), 1060, "{sql}");
        assert_eq!(pair.protected.must_fail(&definition), 1060, "{sql}");
        shows_the_same(&mut pair, sql);
    }
    for sql in [
        "ALTER TABLE t RENAME COLUMN p TO w, RENAME COLUMN n TO p",
        "ALTER TABLE t DROP COLUMN w, RENAME COLUMN p TO w",
        "ALTER TABLE t DROP COLUMN e, ADD COLUMN e INT {eq}",
    ] {
        let (definition, bare) = with_and_without_protection(sql);
        pair.plain.must(&bare);
        pair.protected.must(&definition);
        shows_the_same(&mut pair, sql);
    }
}

/// As `synchronize` of TypeORM and `sync({alter})` of Sequelize change tables that nobody uses yet.
fn an_empty_table_takes_any_definition(kind: Kind) {
    let settings = "enforce = true\n[protect.\"app.*\"]\n\"*\" = [\"eq\", \"range\"]\n";
    let options = PairOptions {
        settings,
        database: "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
        ..PairOptions::default()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    for sql in [
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, tag VARCHAR(20) NOT NULL, n INT, m INT DEFAULT 5 COMMENT 'm', \
         KEY a (tag), KEY b (n, tag), KEY c (m))",
        "ALTER TABLE t MODIFY tag VARCHAR(255) NULL",
        "SHOW CREATE TABLE t",
        "ALTER TABLE t CHANGE `tag` `tag` VARCHAR(30) NOT NULL DEFAULT 'x' COMMENT 'it''s'",
        "ALTER TABLE t MODIFY n BIGINT NOT NULL, MODIFY m VARCHAR(10), ADD COLUMN more INT",
        "SHOW CREATE TABLE t",
        "ALTER TABLE t MODIFY n DECIMAL(8,2), ADD UNIQUE KEY u (m)",
        "SHOW CREATE TABLE t",
        "SELECT COLUMN_NAME, ORDINAL_POSITION, COLUMN_DEFAULT, IS_NULLABLE, COLUMN_TYPE, COLUMN_KEY, COLUMN_COMMENT \
         FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 't' ORDER BY ORDINAL_POSITION",
        "ALTER TABLE t CHANGE m M VARCHAR(11), MODIFY TAG VARCHAR(31) NOT NULL DEFAULT 'x'",
        "SHOW CREATE TABLE t",
        "INSERT INTO t (tag, n, m, more) VALUES ('a', 1.5, 'm', 3)",
        "SELECT * FROM t WHERE n > 1 AND tag = 'A'",
    ] {
        let said = pair.same(sql);
        assert!(!said.contains(" OS1"), "{sql}\n{said}");
    }
    let sealed = "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_NAME = 't' AND COLUMN_NAME LIKE '%$enc'";
    assert_eq!(pair.behind.connect().text(sealed).unwrap(), "4");
    // a number that the server is to make
    for sql in [
        "CREATE TABLE k (id INT NOT NULL, v INT, KEY (id))",
        "ALTER TABLE k CHANGE id id INT NOT NULL AUTO_INCREMENT",
        "SHOW CREATE TABLE k",
        "INSERT INTO k (v) VALUES (7)",
        "SELECT * FROM k",
    ] {
        let said = pair.same(sql);
        assert!(!said.contains(" OS1"), "{sql}\n{said}");
    }
    // keys, which foreign keys refer to then
    for sql in [
        "CREATE TABLE u (id INT AUTO_INCREMENT PRIMARY KEY, nm VARCHAR(20), UNIQUE KEY (nm)) DEFAULT CHARSET latin1",
        "ALTER TABLE u MODIFY nm VARCHAR(30) CHARACTER SET utf8mb4 NOT NULL",
        "ALTER TABLE u ADD COLUMN code VARCHAR(9), ADD UNIQUE KEY (code)",
        "ALTER TABLE u ADD COLUMN tag VARCHAR(9) UNIQUE",
        "SHOW CREATE TABLE u",
        "CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, nm VARCHAR(30), code VARCHAR(9) CHARACTER SET latin1, tag VARCHAR(9) CHARACTER SET latin1, \
         FOREIGN KEY (nm) REFERENCES u (nm), FOREIGN KEY (code) REFERENCES u (code), FOREIGN KEY (tag) REFERENCES u (tag)) \
         DEFAULT CHARSET utf8mb4",
    ] {
        let said = pair.say(sql);
        assert!(!said.protected.contains(" OS1"), "{sql}: {said:?}");
        if !sql.contains("FOREIGN") {
            assert_eq!(said.plain, said.protected, "{sql}");
        }
    }
    pair.nothing_leaked();
}

/// A column that has been moved is where it is for those that come behind it.
fn places_are_those_of_the_columns(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[]) else {
        return;
    };
    let create = "CREATE TABLE t (id INT PRIMARY KEY, a INT {eq}, b INT {eq}, c INT {eq}, p INT, KEY k (c, b))";
    let (protected, plain) = with_and_without_protection(create);
    pair.protected.must(&protected);
    pair.plain.must(&plain);
    for sql in [
        "ALTER TABLE t MODIFY c INT AFTER id",
        "ALTER TABLE t MODIFY a BIGINT",
        "ALTER TABLE t ADD COLUMN q INT AFTER c",
        "ALTER TABLE t MODIFY q BIGINT AFTER b",
        "ALTER TABLE t ADD COLUMN w VARCHAR(9) {eq} AFTER c, ADD COLUMN v INT {eq} FIRST",
        "ALTER TABLE t MODIFY v INT AFTER a, MODIFY p INT AFTER id",
        "ALTER TABLE t MODIFY b BIGINT, ADD COLUMN z INT {eq} AFTER v",
    ] {
        let (protected, plain) = with_and_without_protection(sql);
        pair.protected.must(&protected);
        pair.plain.must(&plain);
        shows_the_same(&mut pair, sql);
    }
    pair.same("INSERT INTO t VALUES (1, 2, 3, '4', 5, 6, 7, 8, 9)");
    shows_the_same(&mut pair, "with a row");
}

/// A name of which [protect] says less than the column shows.
fn names_that_ask_for_less_are_refused(kind: Kind) {
    let settings =
        "enforce = true\n[protect.\"app.*\"]\ns = [\"eq\", \"range\"]\nu = [\"eq\"]\nw = []\n";
    let options = PairOptions {
        settings,
        ..PairOptions::default()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    pair.both("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(10))");
    pair.both("INSERT INTO t VALUES (1, 'x')");
    for sql in [
        "ALTER TABLE t CHANGE s u VARCHAR(10)",
        "ALTER TABLE t RENAME COLUMN s TO u",
        "ALTER TABLE t CHANGE s w VARCHAR(10)",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.contains("OS1108"), "{sql}: {failure}");
        pair.same("SELECT * FROM t WHERE s = 'X'");
    }
}

/// Rows, of a transaction that is not over too, and tables that cannot be locked.
fn rows_keep_an_empty_tables_way_shut(kind: Kind) {
    let Some(mut pair) = Pair::start(
        kind,
        &["CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(40) {eq}, p INT)"],
    ) else {
        return;
    };
    let change = "ALTER TABLE t MODIFY n VARCHAR(80)";
    let mut other = pair.proxy.connect_to("app");
    other.must("BEGIN");
    other.must("INSERT INTO t VALUES (1, 'a', 1)");
    pair.protected
        .must("SET lock_wait_timeout = 1, sql_safe_updates = 1");
    let refused = |session: &mut Session, sql: &str| {
        let said = session.run(sql).map(|_| sql.to_owned());
        let said = said.unwrap_err().to_string();
        assert!(
            said.contains("OS1040") && said.contains("onionskin migrate"),
            "{said}"
        );
    };
    refused(&mut pair.protected, change);
    other.must("COMMIT");
    refused(&mut pair.protected, change);
    other.must("DELETE FROM t");
    pair.protected.must("SET sql_safe_updates = 0");
    pair.protected.must("LOCK TABLES t WRITE");
    refused(&mut pair.protected, change);
    pair.protected.must("UNLOCK TABLES");
    // it is not for other names, nor beside other changes
    refused(&mut pair.protected, "ALTER TABLE t CHANGE n m VARCHAR(80)");
    refused(
        &mut pair.protected,
        "ALTER TABLE t MODIFY n VARCHAR(80), DROP COLUMN p",
    );
    pair.protected.must(change);
    other.must("INSERT INTO t VALUES (2, 'b', 1)");
    let long = "x".repeat(70);
    pair.protected.must(&format!("UPDATE t SET n = '{long}'"));
    assert_eq!(pair.protected.text("SELECT n FROM t").unwrap(), long);
}
