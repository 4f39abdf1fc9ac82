//! Rows that only the scratch engine can make or find: values in forms that the proxy does not
//! convert, tables without a primary key, tables that another proxy has made meanwhile. What
//! becomes of them, and what a client is told, is as on a plain server.

#[path = "scratch/findings.rs"]
mod findings;
use ::mysql::Value;
use findings::Findings;
use onionskin_testkit::*;

on_both_servers!(
    values_are_converted_as_by_a_plain_server,
    rows_without_a_key_are_found,
    definitions_and_tables_that_are_not,
);

const TABLES: &str = "
CREATE TABLE kinds (id INT PRIMARY KEY AUTO_INCREMENT, i INT {range}, big BIGINT UNSIGNED {}, d DECIMAL(10,2) {eq}, f DOUBLE {}, \
 day DATE {range}, at DATETIME(2) {}, stamp TIMESTAMP NULL {}, t TIME(1) {}, y YEAR {}, s VARCHAR(6) {eq}, e ENUM('a','b') {}, b VARBINARY(8) {}, \
 seen DATETIME(6), n INT DEFAULT 5, word VARCHAR(20) {} DEFAULT 'none');
CREATE TABLE loose (a INT {eq}, b VARCHAR(20) {}, c INT, d DATETIME(3), e FLOAT, f VARCHAR(10), g ENUM('', 'x'), KEY (a), KEY (c));
CREATE TABLE sealed (x INT {range}, y VARCHAR(10) {eq});
CREATE TABLE loose_unique (a INT {eq}, b INT, c INT {range}, d VARCHAR(9) {}, UNIQUE KEY (a), UNIQUE KEY (b));
CREATE TABLE keyed (id INT PRIMARY KEY, a INT {eq}, b INT)
";

const ROWS: &[&str] = &[
    "SET timestamp = 1700000000",
    "INSERT INTO loose VALUES (1, 'one', 10, '2024-01-01 00:00:00.125', 0.1, 'p', 'x'), (2, 'two', 20, NULL, 16777217, 'q', ''), (2, 'two', 20, NULL, 16777217, 'q', ''), \
     (NULL, NULL, NULL, NULL, NULL, NULL, NULL), (NULL, NULL, NULL, NULL, NULL, NULL, NULL), (NULL, NULL, 7, NULL, 0.1, 'P', NULL), (3, 'Zoë', 30, '2024-01-01', -0.0, 'q ', 'x')",
    "INSERT INTO sealed VALUES (1, 'a'), (1, 'a'), (2, NULL), (NULL, NULL), (NULL, NULL)",
    "INSERT INTO loose_unique VALUES (1, 10, 5, 'x'), (2, 20, NULL, NULL), (NULL, 30, 7, 'z')",
    "INSERT INTO keyed VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
];

const CONTENTS: &[&str] = &[
    "SELECT * FROM kinds ORDER BY id",
    "SELECT a, b, c, d, e, f, g + 0 FROM loose ORDER BY a, c, f, e",
    "SELECT x, y FROM sealed ORDER BY x, y",
    "SELECT a, b, c, d FROM loose_unique ORDER BY b, a, c",
    "SELECT id, a, b FROM keyed ORDER BY id",
];

/// Values in forms of their own, and rows that hold some.
const VALUES: &[&str] = &[
    "INSERT INTO kinds (at) VALUES ('20030102T131415'), ('2001-1-1T1:01:01'), ('2001-01-01 10:11:12.345678')",
    "INSERT INTO kinds (at, n) VALUES (20101211010203.45678, DEFAULT), (991231, 2)",
    "INSERT INTO kinds (day) VALUES (20061108.01), (TIME('48:20:30'))",
    "INSERT INTO kinds (day) VALUES ('2010-10-10 15:foobar')",
    "INSERT INTO kinds (t) VALUES ('10 22:22'), (123456.78), ('10.22'), (1234559.99)",
    "INSERT INTO kinds (y) VALUES (2000.5), ('2.001E3')",
    "INSERT INTO kinds (i) VALUES ('1e+')",
    "INSERT INTO kinds (i, big) VALUES ('1e+x', 1)",
    "INSERT INTO kinds (i) VALUES (TIME'00:00:10.1'), (TIME'00:00:10.9')",
    "INSERT INTO kinds (d) VALUES ('1e-10000 '), (0x31)",
    "INSERT INTO kinds (d) VALUES ('1e+1000')",
    "INSERT INTO kinds (big) VALUES (0xfffffffffffffffff)",
    "INSERT INTO kinds (s) VALUES (9.999999e+0)",
    "INSERT INTO kinds (s, n) VALUES (1e0, 1), (1.5e100, 2)",
    "INSERT INTO kinds (at, seen) VALUES (CURRENT_TIME(2), NOW(6))",
    "INSERT INTO kinds (at, seen, word) VALUES (NOW(2), NOW(2), 'now'), (NOW(), NOW(), DEFAULT)",
    "INSERT INTO kinds SET i = '7e+', s = 'set', seen = NOW()",
    "INSERT INTO kinds (i) VALUES (1 / 0)",
    "INSERT INTO kinds (i, e) VALUES ('1e+', 'c')",
    "INSERT INTO kinds (id, i) VALUES (1, '1e+0 ')",
    "INSERT INTO kinds (id, i) VALUES (2000000, '1e+0 '), (2000001, ' 2e-0')",
    "REPLACE INTO kinds (id, i) VALUES (2000000, '5e+0 ')",
    "REPLACE INTO kinds (id, i) VALUES (2000000, '6e+0 '), (2000002, '7e+0 ')",
    "INSERT INTO kinds (f) VALUES ('1e4294967297')",
    // conditions whose constants the proxy does not convert
    "UPDATE kinds SET s = 'some' WHERE at = '20030102T131415'",
    "DELETE FROM kinds WHERE i = '1e+0 x'",
];

/// The same with values that are changed until they fit.
const IGNORED: &[&str] = &[
    "INSERT IGNORE INTO kinds (at) VALUES ('2003-0303 12:13:14'), (20030132030401), ('2003-01-02 24:04:01')",
    "INSERT IGNORE INTO kinds (i, e, day) VALUES ('1e+x', 'c', '2010-10-10 15:foobar'), (3, 'a', '2010-02-31')",
    "INSERT IGNORE INTO kinds (d) VALUES ('1e+1000'), ('1e-1000'), ('-1e+1000')",
    "INSERT IGNORE INTO kinds (id, t) VALUES (2000000, '916:00:00 a'), (2000003, '10.22.22')",
    "INSERT IGNORE INTO kinds (b) VALUES (x'00112233445566778899'), (1.5e100)",
];

/// Changes of tables without a primary key.
const CHANGES: &[&str] = &[
    "UPDATE loose SET b = CONCAT(b, '!') WHERE a = 2",
    "UPDATE loose SET c = c + 1 WHERE LENGTH(b) > 2",
    "UPDATE loose SET a = COALESCE(a, 0) + 1, f = 'new'",
    "UPDATE loose SET b = UPPER(b) ORDER BY c DESC, a LIMIT 2",
    "UPDATE loose SET c = NULL, d = NOW(3) WHERE b IS NULL AND ABS(a) = 1",
    "UPDATE loose SET e = e * 2 WHERE CHAR_LENGTH(b) = 4",
    "UPDATE loose l JOIN keyed k ON k.id = l.a SET l.b = CONCAT(k.a, l.b), k.a = k.a + 10",
    "UPDATE sealed SET x = x + 1",
    "UPDATE sealed SET y = CONCAT('n', x) WHERE y IS NULL LIMIT 2",
    "UPDATE sealed SET y = 'b' ORDER BY x LIMIT 1",
    "UPDATE loose SET b = 'same' WHERE a < 100",
    "DELETE FROM loose WHERE LENGTH(b) > 100",
    "DELETE FROM loose ORDER BY c, a LIMIT 1",
    "DELETE FROM sealed WHERE ABS(x) = 2 LIMIT 1",
    "DELETE FROM sealed ORDER BY y DESC LIMIT 2",
    "DELETE FROM loose WHERE UPPER(b) = 'SAME' AND c > 15 LIMIT 1",
    // rows that are met
    "INSERT INTO loose_unique (a, b, c) VALUES (1, 99, 1) ON DUPLICATE KEY UPDATE c = c + 100",
    "INSERT INTO loose_unique (a, b, c) VALUES (5, 20, 1), (6, 60, 2), (6, 61, 3) ON DUPLICATE KEY UPDATE c = IFNULL(c, 0) + VALUES(c), d = CONCAT('d', b)",
    "INSERT INTO loose_unique (b, c) VALUES (30, 1) ON DUPLICATE KEY UPDATE c = c * 2",
    // other forms of DELETE
    "DELETE FROM keyed USING keyed WHERE a = 2",
    "DELETE k.* FROM keyed AS k WHERE k.a = 1",
    "DELETE FROM k, loose USING keyed k, loose WHERE k.a = loose.c AND LENGTH(loose.b) > 1000",
    "DELETE FROM keyed, l USING keyed, loose AS l WHERE keyed.id = 3 AND LENGTH(l.b) > 1",
];

fn stage(kind: Kind) -> Option<Pair> {
    Some(Pair::with_engine(kind, TABLES)?.filled(ROWS))
}

fn findings() -> Findings {
    Findings {
        tables: CONTENTS,
        counted: &["kinds"],
        ..Findings::default()
    }
}

fn values_are_converted_as_by_a_plain_server(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = findings();
    for sql in VALUES.iter().chain(IGNORED) {
        findings.both_ways(&mut pair, sql, &[]);
    }
    findings.both_ways(
        &mut pair,
        "INSERT INTO kinds (at, i, n) VALUES (?, ?, ?), ('2001-1-1T1:01:01', 1, 2)",
        &[
            Value::from("20030102T131415"),
            Value::from("1e+0 "),
            9.into(),
        ],
    );
    // a row that is replaced by an equal one counts otherwise
    pair.run("DELETE FROM kinds WHERE id >= 2000000");
    pair.run("SET sql_mode = ''");
    for sql in VALUES {
        findings.both_ways(&mut pair, sql, &[]);
    }
    findings.conclude(&mut pair, 0);
}

fn rows_without_a_key_are_found(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = findings();
    for sql in CHANGES {
        findings.both_ways(&mut pair, sql, &[]);
    }
    findings.conclude(&mut pair, 0);
    // each row is a scan: not for ever
    let many: Vec<String> = (0..1001).map(|n| format!("({n}, 'y')")).collect();
    pair.protected.must("DELETE FROM sealed");
    pair.protected
        .must(&format!("INSERT INTO sealed VALUES {}", many.join(",")));
    for sql in [
        "UPDATE sealed SET x = ABS(x) + 1",
        "DELETE FROM sealed WHERE ABS(x) >= 0",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1009"), "{sql}: {failure}");
    }
    let left = "SELECT COUNT(*), SUM(x) FROM sealed";
    assert_eq!(pair.protected.text(left).expect("rows"), "1001\t500500");
    // a row of which little more than NULL stays as it is
    for sql in [
        "UPDATE loose_unique SET c = NULL, d = NULL, a = NULL WHERE b = 10",
        "INSERT INTO loose_unique (b, c) VALUES (10, 1) ON DUPLICATE KEY UPDATE c = IFNULL(c, 0) + 1, a = b",
    ] {
        pair.run(sql);
    }
    let rows = "SELECT a, b, c, d FROM loose_unique ORDER BY b, a, c, d";
    let [plain, ours] = [&mut pair.plain, &mut pair.protected].map(|s| s.text(rows).expect("rows"));
    assert_eq!(plain, ours);
}

/// What no server would have is an error of the server's, by name and number; and a table that
/// another proxy has made is found.
fn definitions_and_tables_that_are_not(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let other = Proxy::start_with(
        &pair.behind,
        ProxyOptions {
            tables: format!(
                "[scratch]\nsocket = \"{}\"\n[protect.\"app.*\"]\n\"*\" = [\"eq\", \"range\"]\n",
                pair.engine().socket().display()
            ),
            keys: Some(pair.proxy.keys()),
            ..ProxyOptions::default()
        },
    );
    let mut other = other.connect_to("app");
    for sql in [
        "CREATE TABLE bad (a INT DEFAULT 'x')",
        "CREATE TABLE bad (a BIT(65))",
        "CREATE TABLE bad (a DECIMAL(5, 7))",
        "CREATE TABLE bad (a DECIMAL(70, 7))",
        "CREATE TABLE bad (a CHAR(256))",
        "CREATE TABLE bad (a NUMBERS(5))",
        "CREATE TABLE bad (a BLOB(-1))",
        "CREATE TABLE bad (a DATE DEFAULT '2001-02-31')",
    ] {
        let expected = pair.plain.must_fail(sql);
        assert_eq!(other.must_fail(sql), expected, "{sql}");
    }
    // the proxy of the pair has looked for it and found nothing
    let joined =
        "SELECT keyed.id, UPPER(late.a) FROM keyed, late WHERE keyed.a = late.b ORDER BY 1";
    assert_eq!(pair.plain.must_fail(joined), 1146);
    assert_eq!(pair.protected.must_fail(joined), 1146);
    for sql in [
        "CREATE TABLE late (a VARCHAR(5), b INT)",
        "INSERT INTO late VALUES ('x', 1), ('y', 3)",
    ] {
        pair.plain.must(sql);
        other.must(sql);
    }
    let rows = pair.plain.text(joined).expect("rows");
    assert_eq!(pair.protected.text(joined).expect("rows"), rows);
    assert_eq!(rows, "1\tX\n3\tY");
}
