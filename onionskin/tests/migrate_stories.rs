//! Stories of tables: each is changed while it is written, and must then be what it would have been
//! with ALTER TABLE.
//!
//! Which cases matter is known from what other tools for this purpose test; every story is told in
//! our own words.

use onionskin_testkit::*;

on_both_servers!(
    stories_end_as_with_alter_table,
    what_no_tool_should_try_is_refused,
    transactions_that_were_prepared_before,
    definitions_with_marks_of_versions,
);

/// A table `t`, statements before and during the migration, and the change.
struct Story {
    name: &'static str,
    columns: &'static str,
    before: &'static [&'static str],
    during: &'static [&'static str],
    change: &'static str,
}

const STORIES: &[Story] = &[
    Story {
        name: "an AUTO_INCREMENT column holds zero",
        columns: "id INT AUTO_INCREMENT PRIMARY KEY, v INT",
        before: &[
            "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
            "INSERT INTO t VALUES (0, 23), (1, 1)",
        ],
        during: &[
            "UPDATE t SET v = 24 WHERE id = 0",
            "INSERT INTO t VALUES (7, 7)",
        ],
        change: "ADD COLUMN w INT",
    },
    Story {
        name: "bits are added and changed",
        columns: "id INT PRIMARY KEY, a BIT NOT NULL, b BIT(10)",
        before: &["INSERT INTO t VALUES (1, b'1', b'1010101010'), (2, b'0', NULL)"],
        during: &[
            "UPDATE t SET a = b'0', b = b'1' WHERE id = 1",
            "INSERT INTO t VALUES (3, b'1', b'0')",
        ],
        change: "ADD COLUMN c BIT(1) NOT NULL DEFAULT b'1', MODIFY a BIT(3) NOT NULL",
    },
    Story {
        name: "the key has several columns, one of them a text",
        columns: "a INT NOT NULL, b VARCHAR(20) CHARACTER SET latin1 NOT NULL, ts TIMESTAMP(3) NOT NULL DEFAULT '2020-01-01 00:00:00', v INT, PRIMARY KEY (b, a, ts)",
        before: &[
            "INSERT INTO t VALUES (1, 'x', '2020-03-29 02:30:00.5', 1), (1, 'X y', '2020-10-25 02:30:00', 2), (2, '', '2021-01-01', 3)",
        ],
        during: &[
            "UPDATE t SET b = 'ä' WHERE a = 2",
            "DELETE FROM t WHERE b = 'x'",
            "INSERT INTO t VALUES (9, 'ß', '2022-01-01', 1)",
        ],
        change: "ADD COLUMN w VARCHAR(10) DEFAULT 'ü', ADD INDEX (v)",
    },
    Story {
        name: "dates that are none",
        columns: "id INT PRIMARY KEY, d DATE NOT NULL, dt DATETIME(6) NOT NULL, ts TIMESTAMP NULL",
        before: &[
            "SET sql_mode = 'ALLOW_INVALID_DATES'",
            "INSERT INTO t VALUES (1, '0000-00-00', '0000-00-00', NULL), (2, '2020-02-31', '2020-01-00 10:00:00.000001', '1999-12-31 23:59:59')",
        ],
        during: &[
            "UPDATE t SET dt = '2021-00-00' WHERE id = 1",
            "INSERT INTO t VALUES (3, '2020-00-10', '0000-00-00 00:00:00', NULL)",
        ],
        change: "ADD INDEX (d), ADD COLUMN w INT NOT NULL",
    },
    Story {
        name: "a time is written in one zone and becomes a date without one",
        columns: "id INT PRIMARY KEY, dt DATETIME, ts TIMESTAMP NULL",
        before: &[
            "SET time_zone = '+05:00'",
            "INSERT INTO t VALUES (1, '2020-01-01 00:00:00', '2020-01-01 00:00:00')",
        ],
        during: &[
            "SET time_zone = '-08:00'",
            "INSERT INTO t VALUES (2, '2020-06-01 00:00:00', '2020-06-01 00:00:00')",
            "UPDATE t SET ts = '2021-01-01 00:00:00' WHERE id = 1",
            "SET time_zone = '+00:00'",
        ],
        change: "MODIFY dt DATETIME(3), ADD INDEX (ts)",
    },
    Story {
        name: "decimals grow and keep their digits",
        columns: "id INT PRIMARY KEY, d DECIMAL(5,2) NOT NULL, e DECIMAL(30,10)",
        before: &[
            "INSERT INTO t VALUES (1, 999.99, -0.0000000001), (2, -0.01, 12345678901234567890.0123456789)",
        ],
        during: &[
            "UPDATE t SET d = -999.99 WHERE id = 2",
            "INSERT INTO t VALUES (3, 0, NULL)",
        ],
        change: "MODIFY d DECIMAL(7,2) NOT NULL, ADD INDEX (e)",
    },
    Story {
        name: "an ENUM and a SET gain members in the middle",
        columns: "id INT PRIMARY KEY, e ENUM('red','green') NOT NULL DEFAULT 'red', s SET('a','b')",
        before: &["INSERT INTO t VALUES (1, 'red', 'a'), (2, 'green', 'a,b'), (3, 'green', '')"],
        during: &[
            "UPDATE t SET e = 'red', s = NULL WHERE id = 2",
            "INSERT INTO t VALUES (4, 'green', 'b')",
        ],
        change: "MODIFY e ENUM('red','orange','green') NOT NULL DEFAULT 'orange', MODIFY s SET('0','a','b')",
    },
    Story {
        name: "an ENUM becomes a text",
        columns: "id INT PRIMARY KEY, e ENUM('red','green','grün') CHARACTER SET utf8mb4 NOT NULL",
        before: &["INSERT INTO t VALUES (1, 'red'), (2, 'grün')"],
        during: &[
            "UPDATE t SET e = 'green' WHERE id = 1",
            "INSERT INTO t VALUES (3, 'red')",
        ],
        change: "MODIFY e VARCHAR(20) CHARACTER SET utf8mb4 NOT NULL",
    },
    Story {
        name: "computed columns, stored, virtual and indexed",
        columns: "id INT PRIMARY KEY, a INT NOT NULL, s INT AS (a * 2) STORED, v INT AS (a + 1) VIRTUAL, UNIQUE (s), KEY (v)",
        before: &["INSERT INTO t (id, a) VALUES (1, 10), (2, 20), (3, 30)"],
        during: &[
            "UPDATE t SET a = 11 WHERE id = 1",
            "DELETE FROM t WHERE id = 2",
            "INSERT INTO t (id, a) VALUES (4, 20)",
        ],
        change: "ADD COLUMN w INT AS (a + 3) STORED, DROP COLUMN v",
    },
    Story {
        name: "points on a map",
        columns: "id INT PRIMARY KEY, g GEOMETRY, p POINT NOT NULL",
        before: &[
            "INSERT INTO t VALUES (1, ST_GeomFromText('LINESTRING(0 0, 1 1.5)'), ST_GeomFromText('POINT(1 2)')), (2, NULL, ST_GeomFromText('POINT(-1 0)'))",
        ],
        during: &[
            "UPDATE t SET g = ST_GeomFromText('POINT(7 7)') WHERE id = 2",
            "INSERT INTO t VALUES (3, NULL, ST_GeomFromText('POINT(0 0)'))",
        ],
        change: "ADD COLUMN w INT, MODIFY id BIGINT",
    },
    Story {
        name: "JSON keeps its numbers and its text",
        columns: "id INT PRIMARY KEY, j JSON",
        before: &[
            r#"INSERT INTO t VALUES (1, '{"a": 1.0, "b": [null, "ü"], "c": 1e100}'), (2, 'null'), (3, NULL)"#,
        ],
        during: &[
            r#"UPDATE t SET j = JSON_SET(j, '$.a', 2) WHERE id = 1"#,
            "INSERT INTO t VALUES (4, '[]')",
        ],
        change: "ADD COLUMN w JSON, ADD COLUMN n INT",
    },
    Story {
        name: "names are reserved words, with quotes and spaces",
        columns: "`select` INT NOT NULL, `from` VARCHAR(10), `a ``b` INT, `group` INT, PRIMARY KEY (`select`), KEY `order` (`from`)",
        before: &["INSERT INTO t VALUES (1, 'x', 2, 3), (2, 'y', NULL, 4)"],
        during: &[
            "UPDATE t SET `select` = 5 WHERE `select` = 1",
            "INSERT INTO t VALUES (3, 'z', 0, 0)",
        ],
        change: "ADD COLUMN `where` INT DEFAULT 1, DROP INDEX `order`, ADD INDEX `by` (`group`)",
    },
    Story {
        name: "latin1 and gbk hold what utf8 spells differently",
        columns: "id INT PRIMARY KEY, l VARCHAR(20) CHARACTER SET latin1, g VARCHAR(20) CHARACTER SET gbk, u TEXT CHARACTER SET utf8mb4",
        before: &[
            "INSERT INTO t VALUES (1, 'Grüße €', '中文', '😀'), (2, x'e4f6', _gbk x'bf5c', 'e\u{301}')",
        ],
        during: &[
            "UPDATE t SET l = 'é', g = '汉' WHERE id = 2",
            "INSERT INTO t VALUES (3, '', '', '')",
        ],
        change: "MODIFY l VARCHAR(20) CHARACTER SET utf8mb4, MODIFY g TEXT CHARACTER SET utf8mb4",
    },
    Story {
        name: "the whole table changes its character set",
        columns: "id INT PRIMARY KEY, a VARCHAR(20), b CHAR(5)) DEFAULT CHARSET=latin1 COMMENT=(",
        before: &["INSERT INTO t VALUES (1, 'ä ', 'x '), (2, 'Ñ', '')"],
        during: &[
            "UPDATE t SET a = 'ß' WHERE id = 2",
            "INSERT INTO t VALUES (3, 'é', 'ö')",
        ],
        change: "CONVERT TO CHARACTER SET utf8mb4",
    },
    Story {
        name: "two unique keys exchange values",
        columns: "a INT NOT NULL, b INT NOT NULL, v VARCHAR(10), PRIMARY KEY (a), UNIQUE (b)",
        before: &["INSERT INTO t VALUES (1, 2, 'x'), (2, 1, 'y'), (3, 3, 'z')"],
        during: &[
            "UPDATE t SET b = 9 WHERE a = 1",
            "UPDATE t SET b = 2 WHERE a = 2",
            "UPDATE t SET b = 1 WHERE a = 1",
            "DELETE FROM t WHERE a = 3",
            "INSERT INTO t VALUES (4, 3, 'w')",
        ],
        change: "DROP PRIMARY KEY, DROP INDEX b, ADD PRIMARY KEY (b), ADD UNIQUE INDEX a (a)",
    },
    Story {
        name: "a unique key without NULL stands in for a missing primary key",
        columns: "a INT NOT NULL, b INT, c VARCHAR(10) NOT NULL, UNIQUE n (b), UNIQUE u (c, a)",
        before: &["INSERT INTO t VALUES (1, NULL, 'x'), (2, NULL, 'x'), (3, 7, 'y')"],
        during: &[
            "UPDATE t SET b = 8 WHERE a = 1",
            "UPDATE t SET b = NULL WHERE a = 3",
            "INSERT INTO t VALUES (4, NULL, 'x')",
        ],
        change: "DROP INDEX n, ADD COLUMN id INT",
    },
    Story {
        name: "a unique key with NULLs comes",
        columns: "id INT PRIMARY KEY, b INT",
        before: &["INSERT INTO t VALUES (1, NULL), (2, NULL), (3, 7)"],
        during: &[
            "UPDATE t SET b = 8 WHERE id = 1",
            "INSERT INTO t VALUES (4, NULL)",
        ],
        change: "ADD UNIQUE INDEX (b)",
    },
    Story {
        name: "columns change places and the case of their names",
        columns: "id INT PRIMARY KEY, a INT, B VARCHAR(10), c INT",
        before: &["INSERT INTO t VALUES (1, 2, 'x', 3)"],
        during: &[
            "INSERT INTO t VALUES (2, 3, 'y', 4)",
            "UPDATE t SET a = c, c = 9 WHERE id = 1",
        ],
        change: "MODIFY c INT FIRST, MODIFY a INT AFTER B, MODIFY b VARCHAR(12)",
    },
    Story {
        name: "spaces at the end",
        columns: "c VARCHAR(10) COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, d CHAR(10), v TEXT",
        before: &["INSERT INTO t VALUES ('a', 'x ', 'x '), (' a', '', ' ')"],
        during: &[
            "UPDATE t SET c = 'a ' WHERE c = 'a'",
            "INSERT INTO t VALUES ('b  ', 'b  ', 'b  ')",
        ],
        change: "ADD COLUMN w INT",
    },
    Story {
        name: "numbers lose and gain their sign and width",
        columns: "id BIGINT UNSIGNED PRIMARY KEY, a INT UNSIGNED, b SMALLINT(4) ZEROFILL, c TINYINT",
        before: &["INSERT INTO t VALUES (18446744073709551615, 4294967295, 7, -128), (0, 0, 0, 0)"],
        during: &[
            "UPDATE t SET a = 1 WHERE id = 0",
            "UPDATE t SET id = 9223372036854775808 WHERE a = 4294967295",
            "INSERT INTO t VALUES (5, 5, 5, 5)",
        ],
        change: "MODIFY a BIGINT, MODIFY b INT, MODIFY c SMALLINT",
    },
    Story {
        name: "bytes, with zeros at their ends",
        columns: "k VARBINARY(16) NOT NULL PRIMARY KEY, b BINARY(8), v BLOB",
        before: &[
            "INSERT INTO t VALUES (x'00', x'0100', x''), (x'0000', x'', x'00ff'), (x'ff27', NULL, NULL)",
        ],
        during: &[
            "UPDATE t SET k = x'000000' WHERE k = x'00'",
            "DELETE FROM t WHERE k = x'0000'",
            "INSERT INTO t VALUES (x'', x'5c', x'0a')",
        ],
        change: "MODIFY v LONGBLOB, ADD INDEX (b)",
    },
    Story {
        name: "the default comes from now, on update too",
        columns: "id INT PRIMARY KEY, v INT, ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, dt DATETIME DEFAULT CURRENT_TIMESTAMP",
        before: &[
            "SET timestamp = 1600000000",
            "INSERT INTO t (id, v) VALUES (1, 1), (2, 2)",
        ],
        during: &[
            "SET timestamp = 1600000100",
            "UPDATE t SET v = 3 WHERE id = 1",
            "INSERT INTO t (id, v) VALUES (3, 3)",
            "SET timestamp = DEFAULT",
        ],
        change: "ADD COLUMN w INT DEFAULT 5",
    },
    Story {
        name: "texts move to other character sets",
        columns: "id INT PRIMARY KEY, a VARCHAR(40) CHARACTER SET latin1, b VARCHAR(40) CHARACTER SET utf8mb4, c VARCHAR(40) CHARACTER SET ascii, d TEXT CHARACTER SET utf8mb3",
        before: &[
            "INSERT INTO t VALUES (1, 'été', 'naïve', 'plain', 'čas'), (2, '', '', '', ''), (3, NULL, NULL, NULL, NULL)",
        ],
        during: &[
            "UPDATE t SET a = 'Ärger', b = 'übel', d = '時' WHERE id = 1",
            "DELETE FROM t WHERE id = 2",
            "INSERT INTO t VALUES (4, 'ÿ', 'ÿ', '~', 'ÿ')",
        ],
        change: "MODIFY a VARCHAR(40) CHARACTER SET utf8mb4, MODIFY b VARCHAR(40) CHARACTER SET latin1, MODIFY c VARCHAR(60) CHARACTER SET utf8mb4, MODIFY d TEXT CHARACTER SET utf8mb4",
    },
    Story {
        name: "columns go, and others of their names come",
        columns: "id INT PRIMARY KEY, c INT NULL, d INT NOT NULL, e VARCHAR(10), KEY (c)",
        before: &["INSERT INTO t VALUES (1, NULL, 17, 'x'), (2, 5, 19, 'y')"],
        during: &[
            "UPDATE t SET c = 6, e = 'new' WHERE id = 2",
            "INSERT INTO t VALUES (3, 7, 23, 'z')",
        ],
        change: "DROP COLUMN c, ADD COLUMN c INT NOT NULL DEFAULT 47, DROP `e`, ADD COLUMN e VARCHAR(20)",
    },
    Story {
        name: "columns lose and gain NULL",
        columns: "id INT PRIMARY KEY, a BIGINT NOT NULL, b BIGINT UNSIGNED, c VARCHAR(10)",
        before: &[
            "INSERT INTO t VALUES (1, 9223372036854775807, 18446744073709551615, 'x'), (2, -9223372036854775808, 0, '')",
        ],
        during: &[
            "UPDATE t SET b = 18446744073709551614 WHERE id = 2",
            "INSERT INTO t VALUES (3, 0, 1, 'z')",
        ],
        change: "MODIFY a BIGINT NULL, MODIFY b BIGINT UNSIGNED NOT NULL, MODIFY c VARCHAR(10) NOT NULL DEFAULT 'none'",
    },
    Story {
        name: "bytes of one length become bytes of any",
        columns: "id INT PRIMARY KEY, b BINARY(20) NOT NULL, c BINARY(4)",
        before: &[
            "INSERT INTO t VALUES (1, x'aabb0000', x'00'), (2, x'', NULL), (3, REPEAT(x'ff', 20), x'01020304')",
        ],
        during: &[
            "UPDATE t SET b = x'ccdd00', c = x'2000' WHERE id = 3",
            "INSERT INTO t VALUES (4, x'00ee', x'20')",
        ],
        change: "MODIFY b VARBINARY(32) NOT NULL, MODIFY c VARBINARY(4)",
    },
    Story {
        name: "moments become times of the server's zone, and times moments",
        columns: "id INT PRIMARY KEY, ts TIMESTAMP(3) NULL, dt DATETIME NULL, da DATE",
        before: &[
            "SET sql_mode = ''",
            "INSERT INTO t VALUES (1, '2020-07-01 12:00:00.123', '2020-07-01 12:00:00', '2020-07-01'), (2, NULL, NULL, NULL), \
             (3, '1970-01-02 00:00:01', '1980-01-01', '1990-12-31'), (4, '0000-00-00', '0000-00-00', '0000-00-00')",
        ],
        during: &[
            "UPDATE t SET ts = '2021-01-01 00:00:00', dt = '2037-12-31 23:59:59' WHERE id = 1",
            "INSERT INTO t VALUES (5, '2022-02-28 23:59:59.999', '1971-01-01', '2022-02-28')",
        ],
        change: "MODIFY ts DATETIME(3), MODIFY dt TIMESTAMP NULL, MODIFY da TIMESTAMP NULL",
    },
    Story {
        name: "fractions of seconds become fewer",
        columns: "id INT PRIMARY KEY, dt DATETIME(6), t TIME(3), ts TIMESTAMP(6) NULL",
        before: &[
            "INSERT INTO t VALUES (1, '2020-01-01 00:00:00.999999', '-00:00:01.499', '2020-01-01 00:00:00.000001'), (2, NULL, NULL, NULL)",
        ],
        during: &[
            "UPDATE t SET dt = '1969-12-31 23:59:59.5', t = '838:59:58.5' WHERE id = 2",
            "INSERT INTO t VALUES (3, '9999-12-31 23:59:59', '00:00:00', '1970-01-02 00:00:00.995')",
        ],
        change: "MODIFY dt DATETIME(3), MODIFY t TIME, MODIFY ts TIMESTAMP(2) NULL",
    },
    Story {
        name: "a key of a decimal, a time and a year",
        columns: "d DECIMAL(10,3) NOT NULL, tm TIME(2) NOT NULL, y YEAR NOT NULL, dt DATETIME(6) NOT NULL, v INT, PRIMARY KEY (d, tm, y, dt)",
        before: &[
            "INSERT INTO t VALUES (-0.001, '-01:00:00.25', 1901, '1969-12-31 23:59:59.999999', 1), (12.5, '00:00:00', 2155, '2020-01-01', 2), (0, '838:59:59', 0, '1000-01-01', 3)",
        ],
        during: &[
            "UPDATE t SET v = 7, tm = '23:59:59.99' WHERE d = 12.5",
            "DELETE FROM t WHERE d = -0.001",
            "INSERT INTO t VALUES (9999999.999, '00:00:00.01', 2000, '2020-01-01 00:00:00.000001', 4)",
        ],
        change: "ADD COLUMN w INT, ADD INDEX (v)",
    },
    Story {
        name: "points on a map under an index",
        columns: "id INT PRIMARY KEY, g GEOMETRY NOT NULL, p POINT NOT NULL",
        before: &[
            "INSERT INTO t VALUES (1, ST_GeomFromText('POLYGON((0 0, 4 0, 4 4, 0 0))'), ST_GeomFromText('POINT(1 2)'))",
        ],
        during: &[
            "UPDATE t SET p = ST_GeomFromText('POINT(5 5)') WHERE id = 1",
            "INSERT INTO t VALUES (2, ST_GeomFromText('POINT(0 0)'), ST_GeomFromText('POINT(-3.5 1e9)'))",
        ],
        change: "ADD SPATIAL INDEX (p), ADD COLUMN w INT",
    },
    Story {
        name: "the next number is told",
        columns: "id INT AUTO_INCREMENT PRIMARY KEY, v INT",
        before: &[
            "INSERT INTO t (v) VALUES (1), (2), (3), (4), (5), (6), (7)",
            "DELETE FROM t WHERE id >= 5",
        ],
        during: &["UPDATE t SET v = 9 WHERE id = 4"],
        change: "AUTO_INCREMENT=7",
    },
    Story {
        name: "numbers that were given out and deleted stay given out",
        columns: "id INT AUTO_INCREMENT PRIMARY KEY, v INT",
        before: &[
            "INSERT INTO t (v) VALUES (1), (2), (3), (4)",
            "DELETE FROM t WHERE id = 4",
        ],
        during: &[
            "INSERT INTO t (v) VALUES (5), (6)",
            "DELETE FROM t WHERE id >= 5",
        ],
        change: "ADD COLUMN w INT",
    },
    Story {
        name: "words in names and comments say nothing",
        columns: "id INT PRIMARY KEY, c INT NOT NULL",
        before: &["INSERT INTO t VALUES (1, 1)"],
        during: &["UPDATE t SET c = 2", "INSERT INTO t VALUES (2, 2)"],
        change: "ADD COLUMN exchange DOUBLE COMMENT 'to rename or change: foreign keys', ADD COLUMN `fulltext` INT",
    },
    Story {
        name: "the key's name changes its case",
        columns: "id INT, c INT, PRIMARY KEY (id)",
        before: &["INSERT INTO t VALUES (1, 1), (2, 2)"],
        during: &[
            "DELETE FROM t WHERE id = 1",
            "UPDATE t SET id = 9 WHERE id = 2",
            "INSERT INTO t VALUES (3, 3)",
        ],
        change: "MODIFY ID BIGINT",
    },
    Story {
        name: "lists lose members that nobody has",
        columns: "id INT PRIMARY KEY, e ENUM('a','b','c') NOT NULL, s SET('x','y','z')",
        before: &["INSERT INTO t VALUES (1, 'a', 'x,z'), (2, 'c', ''), (3, 'c', NULL)"],
        during: &[
            "UPDATE t SET e = 'c', s = 'z' WHERE id = 1",
            "INSERT INTO t VALUES (4, 'a', 'x')",
        ],
        change: "MODIFY e ENUM('a','c') NOT NULL, MODIFY s SET('z','x')",
    },
    Story {
        name: "new columns without a default get what their types make of zero and nothing",
        columns: "id INT PRIMARY KEY, v INT",
        before: &["INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)"],
        during: &[
            "UPDATE t SET v = 4 WHERE id = 1",
            "INSERT INTO t VALUES (9, 9)",
        ],
        change: "ADD COLUMN price DECIMAL(10,2) NOT NULL, ADD COLUMN y YEAR NOT NULL, ADD COLUMN b BIT(3) NOT NULL, ADD COLUMN h BINARY(4) NOT NULL, \
            ADD COLUMN z INT(5) UNSIGNED ZEROFILL NOT NULL, ADD COLUMN w DOUBLE NOT NULL, ADD COLUMN x CHAR(3) NOT NULL",
    },
    Story {
        name: "a text loses the blanks at its end",
        columns: "id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET latin1, w TEXT",
        before: &["INSERT INTO t VALUES (1, 'a  ', ' b '), (2, ' ', ''), (3, NULL, NULL)"],
        during: &["UPDATE t SET v = 'ü ', w = 'ü ' WHERE id = 2"],
        change: "MODIFY v CHAR(20) CHARACTER SET utf8mb4, MODIFY w CHAR(30)",
    },
    Story {
        name: "columns are computed and kept",
        columns: "id INT PRIMARY KEY, a INT, dt DATETIME, s INT AS (a * 2) STORED, d DATE AS (DATE(dt)) STORED, u VARCHAR(20) AS (CONCAT('x', a)) VIRTUAL, KEY (d), KEY (u)",
        before: &[
            "INSERT INTO t (id, a, dt) VALUES (1, 1, '2024-05-01 00:30:00'), (2, NULL, NULL)",
        ],
        during: &[
            "UPDATE t SET a = 7 WHERE id = 2",
            "INSERT INTO t (id, a, dt) VALUES (3, 3, '2024-05-01 23:30:00')",
        ],
        change: "ADD COLUMN w INT",
    },
    Story {
        name: "columns are computed from JSON",
        columns: "id INT PRIMARY KEY, j JSON, n INT AS (JSON_UNQUOTE(JSON_EXTRACT(j, '$.n'))) STORED, UNIQUE (n)",
        before: &[r#"INSERT INTO t (id, j) VALUES (1, '{"n": 1}'), (2, '{"n": 2}'), (3, '{}')"#],
        during: &[
            r#"UPDATE t SET j = '{"n": 3}' WHERE id = 1"#,
            r#"UPDATE t SET j = '{"n": 1}' WHERE id = 2"#,
            r#"INSERT INTO t (id, j) VALUES (4, '{"n": 2}')"#,
        ],
        change: "ADD COLUMN m INT AS (n + 1) VIRTUAL, ADD INDEX (m)",
    },
];

fn stories_end_as_with_alter_table(kind: Kind) {
    // Moments, GTIDs and packed events are told apart from what they look like.
    let options: &[&str] = match kind {
        Kind::MariaDb => &[
            "--default-time-zone=+05:30",
            "--log-bin-compress=ON",
            "--log-bin-compress-min-len=10",
        ],
        Kind::MySql => &[
            "--default-time-zone=+05:30",
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--binlog-transaction-compression=ON",
        ],
    };
    let Some(server) = logging_server(kind, options) else {
        return;
    };
    let mut control = server.connect();
    for (n, story) in STORIES.iter().enumerate() {
        let databases = [format!("app{n}"), format!("twin{n}")];
        let mut sessions = databases.clone().map(|database| {
            control.must(&format!("CREATE DATABASE {database} CHARACTER SET utf8mb4"));
            Session::open(server.port(), "root", "", Some(&database))
        });
        let definition = match story.columns.strip_suffix(" COMMENT=(") {
            Some(columns) => format!("CREATE TABLE t ({columns}"),
            None => format!("CREATE TABLE t ({})", story.columns),
        };
        for session in &mut sessions {
            session.must(&definition);
            story.before.iter().for_each(|sql| drop(session.must(sql)));
        }
        let table = format!("{}.t", databases[0]);
        let text = must_migrate(
            &server,
            None,
            &[&table, "--alter", story.change, "--cut-over", "postpone"],
        );
        assert!(text.contains(" 0 repaired"), "{}: {text}", story.name);
        for session in &mut sessions {
            story.during.iter().for_each(|sql| drop(session.must(sql)));
        }
        let text = must_migrate(&server, None, &[&table, "--resume", "--drop-old"]);
        assert!(text.contains(" 0 repaired"), "{}: {text}", story.name);
        let [session, twin] = &mut sessions;
        twin.must(&format!("ALTER TABLE t {}", story.change));
        for session in [&mut *session, &mut *twin] {
            session.must("SET time_zone = '+00:00', NAMES binary");
        }
        let shown = |session: &mut Session| {
            let columns = session
                .text("SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 't' ORDER BY ORDINAL_POSITION")
                .unwrap();
            // As bytes, but for lists, whose numbers matter.
            let list: Vec<String> = columns
                .lines()
                .map(|name| format!("HEX(`{0}`), `{0}` + 0", name.replace('`', "``")))
                .collect();
            let list = list.join(", ");
            let is_map = story.columns.contains("POINT");
            let list = if is_map {
                "id, HEX(g), HEX(p), w".to_owned()
            } else {
                list
            };
            let rows = session
                .text(&format!("SELECT {list} FROM t ORDER BY 1, 2, 3"))
                .unwrap();
            let definition = session.text("SHOW CREATE TABLE t").unwrap();
            (rows, definition)
        };
        let (is, should) = (shown(session), shown(twin));
        assert_eq!(is, should, "{}", story.name);
        assert!(!is.0.is_empty(), "{}", story.name);
    }
}

fn what_no_tool_should_try_is_refused(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("USE app");
    for (name, columns, change, reason) in [
        (
            "nullable",
            "a INT, b INT, UNIQUE (a)",
            "ADD COLUMN c INT",
            "no primary or unique key",
        ),
        (
            "float",
            "a FLOAT NOT NULL PRIMARY KEY",
            "ADD COLUMN c INT",
            "no primary or unique key",
        ),
        (
            "list",
            "e ENUM('a','b') NOT NULL PRIMARY KEY",
            "ADD COLUMN c INT",
            "no primary or unique key",
        ),
        (
            "keyless",
            "a INT PRIMARY KEY, b INT",
            "DROP PRIMARY KEY",
            "no primary or unique key",
        ),
        (
            "unrelated",
            "a INT NOT NULL PRIMARY KEY, b INT NOT NULL",
            "DROP PRIMARY KEY, ADD PRIMARY KEY (b)",
            "no primary or unique key",
        ),
        (
            "rename",
            "a INT PRIMARY KEY, b INT",
            "CHANGE COLUMN b c INT",
            "RENAME COLUMN",
        ),
        (
            "moment",
            "a INT, dt DATETIME NOT NULL, PRIMARY KEY (a, dt)",
            "MODIFY dt TIMESTAMP NOT NULL",
            "no primary or unique key",
        ),
        (
            "words",
            "a INT PRIMARY KEY, v VARCHAR(30)",
            "MODIFY v TIMESTAMP NULL",
            "time zone",
        ),
        (
            "other",
            "a INT PRIMARY KEY",
            "RENAME AS somebody_else",
            "RENAME",
        ),
        (
            "prefix",
            "v VARCHAR(50) NOT NULL, UNIQUE (v(5))",
            "ADD COLUMN c INT",
            "no primary or unique key",
        ),
        (
            "place",
            "a INT PRIMARY KEY",
            "ADD COLUMN p POINT NOT NULL",
            "without a default",
        ),
        (
            "engine",
            "a INT PRIMARY KEY",
            "ENGINE MyISAM",
            "only InnoDB",
        ),
        (
            "numbers",
            "a INT PRIMARY KEY",
            "ADD COLUMN n INT NOT NULL AUTO_INCREMENT, ADD UNIQUE (n)",
            "AUTO_INCREMENT",
        ),
    ] {
        session.must(&format!("CREATE TABLE `{name}` ({columns})"));
        let text = must_not_migrate(&server, None, &[&format!("app.{name}"), "--alter", change]);
        assert!(text.contains(reason), "{name}: {text}");
    }
    // A day is another one in another zone, and ours write in UTC.
    if session
        .run("CREATE TABLE zones (a INT PRIMARY KEY, ts TIMESTAMP NULL, d DATE AS (DATE(ts)) STORED)")
        .is_ok()
    {
        let text = must_not_migrate(&server, None, &["app.zones", "--rebuild"]);
        assert!(text.contains("time zone of whoever writes"), "{text}");
    }
    assert!(!session.text("SHOW TABLES").unwrap().contains("onionskin"));
    // What has a helper's name is somebody's.
    session.must("CREATE TABLE mine (a INT PRIMARY KEY)");
    session.must("CREATE TABLE mine_onionskin (a INT PRIMARY KEY)");
    session.must("CREATE TABLE mine_onionskin_new (a INT PRIMARY KEY)");
    for what in ["--abort", "--resume", "--finish", "--roll-back"] {
        let text = must_not_migrate(&server, None, &["app.mine", what]);
        assert!(text.contains("is no migration's"), "{what}: {text}");
    }
    let tables = session.text("SHOW TABLES LIKE 'mine%'").unwrap();
    assert_eq!(tables, "mine\nmine_onionskin\nmine_onionskin_new");
    keys_of_other_databases(&server, &mut session);
}

/// A key of a table in another database.
fn keys_of_other_databases(server: &Server, session: &mut Session) {
    session.must("CREATE DATABASE `else-where`");
    session.must("CREATE TABLE `else-where`.child (a INT PRIMARY KEY, FOREIGN KEY (a) REFERENCES app.mine (a))");
    session.must("DROP TABLE mine_onionskin, mine_onionskin_new");
    let shown = session
        .text("SHOW CREATE TABLE `else-where`.child")
        .unwrap();
    must_migrate(server, None, &["app.mine", "--rebuild", "--drop-old"]);
    let after = session
        .text("SHOW CREATE TABLE `else-where`.child")
        .unwrap();
    assert_eq!(after, shown);
    // The account does not see the table that has it, and could not alter it.
    session.must("CREATE USER 'mover'@'%'");
    session.must("GRANT ALL ON app.* TO 'mover'@'%'");
    session.must("GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.* TO 'mover'@'%'");
    if server.kind() == Kind::MySql {
        session.must("GRANT XA_RECOVER_ADMIN ON *.* TO 'mover'@'%'");
    }
    let arguments = ["app.mine", "--rebuild", "--user", "mover"];
    let text = must_not_migrate(server, None, &arguments);
    assert!(text.contains("may not see"), "{text}");
}

/// Rows of a transaction of two phases are logged when it is prepared, and seen when it is
/// committed: a migration that began between both would miss them.
fn transactions_that_were_prepared_before(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("USE app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))");
    session.must("CREATE TABLE other (id INT PRIMARY KEY)");
    session.must("INSERT INTO t VALUES (1, 'before'), (3, 'before')");
    let prepare = |statements: &[&str]| {
        let mut session = server.connect();
        session.must("USE app");
        session.must("XA START 'g1'");
        for sql in statements {
            session.must(sql);
        }
        session.must("XA END 'g1'");
        session.must("XA PREPARE 'g1'");
        session
    };
    let held = prepare(&[
        "UPDATE t SET v = 'changed' WHERE id = 1",
        "INSERT INTO t VALUES (10, 'new')",
        "DELETE FROM t WHERE id = 3",
    ]);
    for arguments in [
        &["app.t", "--rebuild"][..],
        &["app.t", "--rebuild", "--dry-run"],
    ] {
        let text = must_not_migrate(&server, None, arguments);
        assert!(text.contains("two phases"), "{text}");
    }
    let tables = session.text("SHOW TABLES").expect("tables");
    assert!(!tables.contains("onionskin"), "{tables}");
    drop(held);
    wait_until("the commit", std::time::Duration::from_secs(20), || {
        session.run("XA COMMIT 'g1'").is_ok()
    });
    must_migrate(&server, None, &["app.t", "--rebuild", "--drop-old"]);
    let rows = session.text("SELECT id, v FROM t ORDER BY id");
    assert_eq!(rows.as_deref(), Ok("1\tchanged\n10\tnew"));
    // of other tables, too: nobody knows which ones they changed
    let mut held = prepare(&["INSERT INTO other VALUES (1)"]);
    must_not_migrate(&server, None, &["app.t", "--rebuild"]);
    held.must("XA ROLLBACK 'g1'");
    must_migrate(&server, None, &["app.t", "--rebuild", "--drop-old"]);
}

/// Servers show what older versions do not know in executable comments.
fn definitions_with_marks_of_versions(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let proxy = Proxy::start(&server, "");
    let mut session = server.connect();
    session.must("CREATE DATABASE app DEFAULT CHARSET utf8mb4");
    session.must("USE app");
    let definitions: &[&str] = match kind {
        Kind::MySql => &[
            "CREATE TABLE t0 (id INT PRIMARY KEY, s VARCHAR(30), h INT INVISIBLE DEFAULT 5, n INT, KEY iv (n) INVISIBLE)",
            "CREATE TABLE t1 (id INT PRIMARY KEY, s VARCHAR(30), n INT, CHECK (n > 5) NOT ENFORCED)",
            "CREATE TABLE t2 (s VARCHAR(30), n INT)",
        ],
        Kind::MariaDb => &[
            "CREATE TABLE t0 (id INT PRIMARY KEY, s VARCHAR(30), h INT INVISIBLE DEFAULT 5, n INT)",
            "CREATE TABLE t1 (id INT PRIMARY KEY, s VARCHAR(30), t TEXT COMPRESSED, n INT)",
        ],
    };
    if kind == Kind::MySql {
        session.must("SET sql_generate_invisible_primary_key = ON");
    }
    let mut ours = proxy.connect_to("app");
    for (number, definition) in definitions.iter().enumerate() {
        session.must(definition);
        session.must(
            &format!("INSERT INTO t{number} (s, n) VALUES ('a', 7)").replace(
                "(s, n) VALUES (",
                match definition.contains("id INT") {
                    true => "(id, s, n) VALUES (1, ",
                    false => "(s, n) VALUES (",
                },
            ),
        );
        let show = format!("SHOW CREATE TABLE t{number}");
        let before = session.text(&show).expect("a definition");
        let table = format!("app.t{number}");
        let arguments = [&table, "--encrypt", "s: eq", "--drop-old"];
        must_migrate(&server, Some(&proxy), &arguments);
        assert_eq!(ours.text(&show).as_ref(), Ok(&before));
        let rows = ours.text(&format!("SELECT s, n FROM t{number} WHERE s = 'A'"));
        assert_eq!(rows.as_deref(), Ok("a\t7"), "{definition}");
        ours.must(&format!("CREATE TABLE like{number} LIKE t{number}"));
        must_migrate(
            &server,
            Some(&proxy),
            &[&table, "--decrypt", "s", "--drop-old"],
        );
        assert_eq!(session.text(&show).as_ref(), Ok(&before));
    }
}
