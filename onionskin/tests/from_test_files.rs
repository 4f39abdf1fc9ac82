//! What the servers' own test files (`mtr.rs`) found, made small: each story once differed from a
//! plain server. Now it is the same, or refused.

use onionskin_testkit::*;

on_both_servers!(
    a_group_knows_whether_its_key_is_null,
    rows_beside_a_query_that_finds_none,
    floats_with_digits_end_at_the_greatest_float,
    bits_without_a_length_or_a_digit,
    defaults_of_no_day,
    character_sets_that_a_query_has_chosen,
    deprecated_words_of_definitions,
    windows_behind_conditions,
    what_stays_null_does_not_change,
    lengths_in_statements_that_the_parser_does_not_read,
);

/// The server knows of a group what it is grouped by, which is a token.
fn a_group_knows_whether_its_key_is_null(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, x VARCHAR(9) {eq}, n INT {range}, p INT)";
    let rows = "INSERT INTO t VALUES (1, NULL, 1, 1), (2, 'a', NULL, 1), (3, 'b', 3, NULL), (4, NULL, 1, 2)";
    let Some(mut pair) = Pair::of(kind, false, &[create, rows]) else {
        return;
    };
    for sql in [
        "SELECT x IS NULL FROM t GROUP BY x ORDER BY 1",
        "SELECT x IS NOT NULL, COUNT(*) FROM t GROUP BY x ORDER BY 1, 2",
        "SELECT IF(x IS NULL, 'blank', 'not blank') AS b FROM t GROUP BY x ORDER BY b",
        "SELECT IF(n IS NULL, 1, 0), x IS NULL FROM t GROUP BY n, x ORDER BY 1, 2",
        "SELECT COUNT(*) FROM t GROUP BY n ORDER BY n IS NULL, n",
        "SELECT p, (SELECT COUNT(*) FROM t i WHERE i.x IS NULL) FROM t GROUP BY p ORDER BY p",
        "SELECT x IS NULL, COUNT(*) FROM t GROUP BY x IS NULL ORDER BY 1",
    ] {
        assert!(pair.same_or_refused(sql), "{sql}");
    }
    pair.run("CREATE VIEW v AS SELECT * FROM t");
    pair.same_or_refused("SELECT x IS NULL FROM v GROUP BY x ORDER BY 1");
}

/// To MySQL, `<=>` between rows is another matter if the query's table is empty.
fn rows_beside_a_query_that_finds_none(kind: Kind) {
    let create = "CREATE TABLE t (a INT {eq, range}, b INT {eq})";
    let Some(mut pair) = Pair::of(kind, true, &[create, "INSERT INTO t VALUES (20, 15)"]) else {
        return;
    };
    for sql in [
        "SELECT * FROM t WHERE ('a', NULL) <=> (SELECT 'a', b FROM t WHERE a = 0)",
        "SELECT * FROM t WHERE (NULL, NULL) <=> (SELECT a, b FROM t WHERE a = 0)",
        "SELECT * FROM t WHERE ROW(NULL, NULL) <=> (SELECT a, b FROM t WHERE a = 0)",
        "SELECT (SELECT a, b FROM t WHERE a = 0) <=> (NULL, NULL) AS c",
        "SELECT * FROM t WHERE (SELECT a, b FROM t WHERE a = 0) <=> (SELECT a, b FROM t WHERE a = 1)",
        "SELECT * FROM t WHERE (20, 15) <=> (SELECT a, b FROM t WHERE a = 20)",
        "SELECT a FROM t WHERE (a, b) <=> (SELECT a, b FROM t WHERE b = 15)",
    ] {
        pair.same_or_refused(sql);
    }
}

/// What is beyond it is no FLOAT, whatever digits the column has.
fn floats_with_digits_end_at_the_greatest_float(kind: Kind) {
    let create =
        "CREATE TABLE t (id INT PRIMARY KEY, f FLOAT(58,0) {eq, range}, u FLOAT(39,0) UNSIGNED {})";
    let Some(mut pair) = Pair::of(kind, false, &[create]) else {
        return;
    };
    for sql in [
        "INSERT INTO t VALUES (1, '1e+52', 0)",
        "INSERT INTO t VALUES (1, -1e52, 0)",
        "INSERT INTO t VALUES (1, 0, 4e38)",
        "INSERT INTO t VALUES (1, 0, 3.4028236e38)",
    ] {
        assert_eq!(pair.same_error(sql), 1264, "{sql}");
    }
    pair.same("INSERT INTO t VALUES (1, 1e38, 3.4028234663852886e38)");
    pair.same("SET sql_mode = ''");
    pair.same("INSERT INTO t VALUES (2, '-1e+52', 1e52)");
    pair.same("SELECT * FROM t ORDER BY id");
}

/// MySQL has no BIT(0) and no b''; to MariaDB they are BIT(1) and 0.
fn bits_without_a_length_or_a_digit(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, true, &["CREATE TABLE t (a INT {})"]) else {
        return;
    };
    for sql in [
        "CREATE TABLE b (a INT, x BIT(0) {eq})",
        "CREATE TABLE c (a INT, x BIT(2) NOT NULL DEFAULT b'' {eq})",
    ] {
        match kind {
            Kind::MySql => {
                // behind ENCRYPTED FOR it is refused; a column of [protect] has the server's error
                let (protected, bare) = with_and_without_protection(sql);
                pair.protected.must_fail(&protected);
                pair.plain.must_fail(&bare);
            }
            Kind::MariaDb => {
                pair.same(sql);
            }
        }
    }
    if kind == Kind::MariaDb {
        pair.same("SHOW COLUMNS FROM b");
        pair.same("SHOW COLUMNS FROM c");
    }
}

/// A DEFAULT is a date that `sql_mode` allows.
fn defaults_of_no_day(kind: Kind) {
    let create = "CREATE TABLE t (a INT {}, d DATE)";
    let Some(mut pair) = Pair::of(kind, true, &[create]) else {
        return;
    };
    let definitions = [
        "(d DATE DEFAULT '0000-00-00' {eq})",
        "(d DATE DEFAULT '2012-02-00' {eq})",
        "(d DATETIME DEFAULT '0000-00-00 00:00:00' {range})",
        "(d DATETIME DEFAULT '2012-00-01 12:12:12' {})",
        "(d DATE DEFAULT '2012-02-01' {eq})",
    ];
    let strict = "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE";
    for mode in [
        strict,
        "STRICT_ALL_TABLES,NO_ZERO_DATE",
        "STRICT_ALL_TABLES,NO_ZERO_IN_DATE",
        "STRICT_TRANS_TABLES",
        "NO_ZERO_IN_DATE",
        "",
    ] {
        pair.same(&format!("SET sql_mode = '{mode}'"));
        for definition in definitions {
            let sql = format!("CREATE TABLE n {definition}");
            let plain = pair.plain.run(&with_and_without_protection(&sql).1);
            let protected = pair.protected.run(&with_and_without_protection(&sql).0);
            let code = |failure: &Failure| failure.code;
            let is_refused = protected
                .as_ref()
                .is_err_and(|f| f.message.starts_with("OS1"));
            if !is_refused {
                let (plain, protected) = (
                    plain.as_ref().err().map(code),
                    protected.as_ref().err().map(code),
                );
                assert_eq!(plain, protected, "{mode}: {sql}");
            }
            if plain.is_ok() && protected.is_ok() {
                pair.same("INSERT INTO n VALUES ()");
                pair.same("SELECT * FROM n");
                pair.same("SHOW CREATE TABLE n");
            }
            for session in [&mut pair.plain, &mut pair.protected] {
                session.must("DROP TABLE IF EXISTS n");
            }
        }
    }
    pair.same(&format!("SET sql_mode = '{strict}'"));
    let add = "ALTER TABLE t ADD e DATE DEFAULT '0000-00-00' {eq}";
    assert!(pair.plain.run(&with_and_without_protection(add).1).is_err());
    assert!(
        pair.protected
            .run(&with_and_without_protection(add).0)
            .is_err()
    );
}

/// MySQL shows a collation that is its character set's own where the definition has said so, and
/// does not where it follows from a query.
fn character_sets_that_a_query_has_chosen(kind: Kind) {
    if kind == Kind::MariaDb {
        return;
    }
    let create = "CREATE TABLE t (a VARCHAR(9) CHARACTER SET latin1 {eq}, b VARCHAR(9) CHARACTER SET latin2 COLLATE latin2_bin {})";
    let settings = "[protect.\"app.n\"]\n\"*\" = [\"eq\"]\n";
    let Some(pair) = Pair::with_settings(kind, create, settings) else {
        return;
    };
    let mut pair = pair.filled(&["INSERT INTO t VALUES ('x', 'y')"]);
    pair.same("SET NAMES latin1");
    for query in [
        "SELECT CONCAT(a, 'z') AS a, 'x' AS d FROM t",
        "SELECT a, CONCAT(b) AS c, TO_BASE64('x') AS d FROM t",
        "SELECT 'x' COLLATE latin1_bin AS d, _utf8mb4'y' AS e, _ucs2'y' AS f",
    ] {
        pair.run(&format!("CREATE TABLE n AS {query}"));
        pair.same("SHOW CREATE TABLE n");
        pair.same("SHOW FULL COLUMNS FROM n");
        pair.run("CREATE TABLE m LIKE n");
        pair.same("SHOW CREATE TABLE m");
        pair.run("DROP TABLE n");
        pair.run("DROP TABLE m");
    }
}

/// MySQL will not have these words for ever, and says so.
fn deprecated_words_of_definitions(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &["CREATE TABLE t (id INT PRIMARY KEY)"]) else {
        return;
    };
    for column in [
        "VARCHAR(9) BINARY",
        "VARCHAR(9) CHARACTER SET utf8mb3",
        "VARCHAR(9) CHARACTER SET utf8",
        "TEXT COLLATE utf8mb3_bin",
        "CHAR(3) CHARACTER SET ucs2 COLLATE ucs2_bin",
        "VARCHAR(9) CHARACTER SET latin1",
        "ENUM('a', 'b') CHARACTER SET utf8mb3",
        "YEAR(4)",
        "INT(11)",
        "INT(0)",
        "TINYINT(1)",
        "BOOLEAN",
        "BIGINT(20) UNSIGNED ZEROFILL",
        "DECIMAL(5,2) ZEROFILL",
        "DECIMAL(5,2) UNSIGNED",
        "DECIMAL(5,2) UNSIGNED ZEROFILL",
        "FLOAT ZEROFILL",
        "DOUBLE(5,2) UNSIGNED",
    ] {
        for sql in [
            format!("CREATE TABLE n (id INT PRIMARY KEY, a {column} {{}})"),
            format!("ALTER TABLE t ADD a {column} {{}}"),
        ] {
            if pair.same_if_done(&sql) {
                pair.same("SHOW WARNINGS");
            }
        }
        pair.same_if_done("DROP TABLE IF EXISTS n");
        pair.same_if_done("ALTER TABLE t DROP a");
    }
}

/// Behind a condition that goes to the server, WINDOW stays with the scratch engine.
fn windows_behind_conditions(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, i INT {range}, d DATE {eq, range}, p INT)";
    let rows =
        "INSERT INTO t VALUES (1, 7, '2020-01-01', 1), (2, NULL, NULL, 2), (3, 9, '2020-01-03', 2)";
    let Some(mut pair) = Pair::of(kind, true, &[create, rows]) else {
        return;
    };
    for sql in [
        "SELECT id, COUNT(*) OVER w FROM t WHERE d > '2020-01-01' WINDOW w AS ()",
        "SELECT id, SUM(i) OVER w FROM t WHERE p > 1 WINDOW w AS () ORDER BY id",
        "SELECT id, SUM(i) OVER w FROM t WHERE i > 1 WINDOW w AS (ORDER BY i) ORDER BY id",
        "SELECT i, COUNT(*) OVER w FROM t WHERE p > 0 GROUP BY i HAVING i > 1 WINDOW w AS () ORDER BY i",
    ] {
        pair.same_or_refused(sql);
    }
}

/// MySQL compares rows by their bytes where they get the time of their change, and those of a NULL
/// are the default's.
fn what_stays_null_does_not_change(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, i INT DEFAULT 7 {range}, c INT NOT NULL DEFAULT 3 {}, p INT DEFAULT 5)";
    let rows = "INSERT INTO t VALUES (1, 7, 1, 1), (2, NULL, 2, NULL), (3, 9, 3, 3)";
    let Some(mut pair) = Pair::of(kind, true, &[create, rows]) else {
        return;
    };
    for sql in [
        "UPDATE t SET i = MOD(i, 3)",
        "UPDATE t SET i = i + 0, p = p + 0",
        "UPDATE t SET i = COALESCE(i, NULL), c = ABS(c)",
        "UPDATE t SET i = NULLIF(i, i)",
        "UPDATE t SET i = DEFAULT, c = DEFAULT(c) + 1 WHERE ABS(id) = 2",
        "UPDATE t SET i = i + c",
    ] {
        pair.same_if_done(sql);
        pair.same("SELECT * FROM t ORDER BY id");
    }
}

/// Where tables may be missing, the server is asked about the text with other values first. A
/// length is not 0 there.
fn lengths_in_statements_that_the_parser_does_not_read(kind: Kind) {
    if kind == Kind::MariaDb || direct_mode() {
        return;
    }
    let Some(server) = Server::mysql() else {
        return;
    };
    let proxy = Proxy::start(&server, "[protect.\"*.*\"]\n\"*\" = [\"eq\"]\n");
    server.connect().must("CREATE DATABASE app");
    let mut session = proxy.connect_to("app");
    for sql in [
        "SELECT HEX(WEIGHT_STRING('abc' AS CHAR(2)))",
        "SELECT HEX(WEIGHT_STRING('abc' AS BINARY(3)))",
    ] {
        let plain = server.connect().text(sql);
        assert!(plain.is_ok(), "{plain:?}");
        assert_eq!(session.text(sql), plain, "{sql}");
    }
}
