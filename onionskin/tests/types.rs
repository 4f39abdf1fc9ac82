//! Every type as a protected column, in each of its forms (sealed only, `eq`, `range`), against a plain server: what
//! INSERT and UPDATE take and refuse under which `sql_mode`, what SELECT shows in both protocols, what conditions, ORDER
//! BY and GROUP BY find, and how SHOW and information_schema describe it. Character sets of the connection and of the
//! results are among the dimensions.

mod support;

#[allow(dead_code)] // of what the tests of the scratch engine need besides
#[path = "scratch/twins.rs"]
mod twins;

#[path = "types/connections.rs"]
mod connections;

#[path = "types/protocol.rs"]
mod protocol;

use ::mysql::Value;
use connections::{
    announced_collations, character_sets_of_connections,
    character_sets_that_stand_for_other_collations, conversions_are_the_servers,
};
use protocol::{cursors_and_long_data, statements_in_texts};
use support::*;
use twins::{Twins, twins};

on_both_servers!(
    members_of_enum_and_set,
    bits,
    documents,
    numbers_and_dates_at_their_edges,
    character_sets_of_connections,
    definitions_are_shown,
    cursors_and_long_data,
    statements_in_texts,
    conversions_are_the_servers,
    announced_collations,
    character_sets_that_stand_for_other_collations,
    signed_zeros,
);

/// Runs a statement that writes, through the proxy first. One that it refuses is spared the plain server; otherwise both
/// answer alike, and hold the same rows afterwards.
fn write(
    twins: &mut Twins,
    refused: &mut Vec<String>,
    table: &str,
    sql: &str,
    parameters: &[Value],
) {
    let run = |session: &mut Session| {
        let answer = match parameters {
            [] => session.run(sql),
            values => session.execute(sql, values.to_vec()),
        };
        answer.map(|o| (o.affected, o.warnings))
    };
    let protected = run(&mut twins.protected);
    if let Err(failure) = &protected
        && failure.message.starts_with("OS")
    {
        refused.push(format!("{sql} {parameters:?}: {failure}"));
        return;
    }
    let plain = run(&mut twins.plain);
    let code = |failure: Failure| (failure.code, failure.state);
    assert_eq!(
        plain.map_err(code),
        protected.map_err(code),
        "{sql} {parameters:?}"
    );
    twins.compare_text(&format!("SELECT * FROM {table} ORDER BY id"));
}

/// No more was refused than that.
fn at_most(refused: &[String], count: usize) {
    assert!(
        refused.len() <= count,
        "{} refused: {refused:#?}",
        refused.len()
    );
}

/// Compares rows alone, in both protocols: how the columns of groups are described depends on how the plain server's
/// optimizer groups.
fn same_rows(twins: &mut Twins, sql: &str, refused: &mut Vec<String>) {
    let rows = |session: &mut Session, prepared: bool| {
        let answer = match prepared {
            true => session.execute(sql, ()),
            false => session.run(sql),
        };
        answer.map(|outcome| {
            (
                outcome.sets.into_iter().next().map(|s| s.rows),
                outcome.warnings,
            )
        })
    };
    for prepared in [false, true] {
        let (a, b) = (
            rows(&mut twins.plain, prepared),
            rows(&mut twins.protected, prepared),
        );
        if let Err(failure) = &b
            && failure.message.starts_with("OS")
        {
            refused.push(format!("{sql}: {failure}"));
            continue;
        }
        assert_eq!(
            a.map_err(|f| f.code),
            b.map_err(|f| f.code),
            "prepared {prepared}: {sql}"
        );
    }
}

/// Numbers of rows: a value that the proxy refuses leaves no gap in, one that the server refuses does.
struct Ids(u32);

impl Ids {
    fn insert(&mut self, table: &str, column: &str, value: &str) -> String {
        self.0 += 1;
        format!(
            "INSERT INTO {table} (id, {column}) VALUES ({}, {value})",
            self.0
        )
    }
}

const MODES: [&str; 2] = ["STRICT_TRANS_TABLES", ""];

const MEMBERS: &str = "
CREATE TABLE t (id INT PRIMARY KEY, \
 s ENUM('red','Green','it''s','x y','blü') {}, q ENUM('red','Green','it''s','x y','blü') NOT NULL DEFAULT 'Green' {eq}, \
 r ENUM('red','Green','it''s','x y','blü') NOT NULL {range}, ss SET('a','B','c d','é') {}, sq SET('a','B','c d','é') {eq}, \
 sr SET('a','B','c d','é') DEFAULT 'a,B' {range}, b ENUM('a','A','1') COLLATE utf8mb4_bin {eq, range}, l ENUM('é','€') CHARACTER SET latin1 {eq}, p ENUM('z','y') DEFAULT 'y', ps SET('u','v') COLLATE utf8mb4_bin, \
 KEY (q), KEY (r), KEY (sq)) COLLATE utf8mb4_general_ci";

fn members_of_enum_and_set(kind: Kind) {
    let Some(mut twins) = twins(kind, MEMBERS) else {
        return;
    };
    let mut ids = Ids(0);
    let mut refused = Vec::new();
    for mode in MODES {
        twins.both(&format!("SET sql_mode = '{mode}'"));
        for value in [
            "'red'",
            "'RED '",
            "'grün'",
            "'green'",
            "2",
            "0",
            "6",
            "-1",
            "'3'",
            "'it''s'",
            "''",
            "NULL",
            "DEFAULT",
            "1.7",
            "'blu'",
            "x'726564'",
            "_latin1'red'",
            "TRUE",
        ] {
            for column in ["s", "q", "r"] {
                let set = ids.insert("t", column, value);
                write(&mut twins, &mut refused, "t", &set, &[]);
            }
        }
        for value in [
            "'a'", "'b,A'", "'a,x'", "'c d,é'", "''", "3", "16", "-1", "'5'", "'a,,b'", "NULL",
            "DEFAULT", "'x'", "'a,a '", "2e0",
        ] {
            for column in ["ss", "sq", "sr"] {
                let set = ids.insert("t", column, value);
                write(&mut twins, &mut refused, "t", &set, &[]);
            }
        }
        for (column, value) in [
            ("q", Value::from("GREEN")),
            ("q", Value::from(3)),
            ("q", Value::from("nothing")),
            ("r", Value::from(b"red".as_slice())),
            ("r", Value::NULL),
            ("sq", Value::from("B,a")),
            ("sq", Value::from(9)),
            ("sr", Value::from("c d,x")),
            ("s", Value::from(2)),
        ] {
            let insert = ids.insert("t", column, "?");
            write(&mut twins, &mut refused, "t", &insert, &[value]);
        }
        write(
            &mut twins,
            &mut refused,
            "t",
            &ids.insert("t", "q, sq", "'none', 'a,none'")
                .replace("INSERT", "INSERT IGNORE"),
            &[],
        );
        write(
            &mut twins,
            &mut refused,
            "t",
            "INSERT INTO t (id, r, b, l) VALUES (1000, 1, 'a', 'é'), (1001, 1, 'A', '€'), (1002, 1, '1', NULL) ON DUPLICATE KEY UPDATE r = 2",
            &[],
        );
        for update in [
            "UPDATE t SET s = 'red', sq = 'a' WHERE q = 'green'",
            "UPDATE t SET r = 4 WHERE id < 5",
            "UPDATE t SET q = 'nothing' WHERE id = 3",
            "UPDATE t SET q = 'RED' WHERE q = 'red'",
            "UPDATE t SET sr = NULL WHERE sr = 'a,B'",
            "UPDATE t SET b = 'A' WHERE b = 'a'",
        ] {
            write(&mut twins, &mut refused, "t", update, &[]);
        }
    }
    twins.both("SET sql_mode = 'STRICT_TRANS_TABLES'");
    for column in ["q", "r", "sq"] {
        for constant in ["''", "0", "'red'", "1"] {
            let sql = format!("SELECT id FROM t WHERE {column} = {constant} ORDER BY id");
            twins.compare(&sql, &[]);
        }
        let sql = format!("SELECT {column}, COUNT(*) FROM t GROUP BY {column} ORDER BY {column}");
        same_rows(&mut twins, &sql, &mut refused);
    }
    // The value that stands for errors cannot be carried to a scratch engine of MariaDB's; and on MySQL a text that is
    // no member finds its rows, if there is an index.
    twins.compare_text("SELECT MIN(q) FROM t");
    let bad = "SELECT GROUP_CONCAT(id) FROM t WHERE s = '' OR q = '' OR r = ''";
    let bad = twins.plain.text(bad).expect("numbers");
    twins.both(&format!("DELETE FROM t WHERE id IN ({bad})"));
    for column in ["s", "q", "r", "ss", "sq", "sr", "b", "l"] {
        for sql in [
            format!("SELECT {column}, COUNT(*) FROM t GROUP BY {column} ORDER BY {column}"),
            format!("SELECT DISTINCT {column} FROM t ORDER BY {column} DESC"),
            format!("SELECT id, {column} FROM t ORDER BY {column}, id"),
            format!("SELECT id FROM t WHERE {column} IS NULL ORDER BY id"),
            format!("SELECT COUNT(DISTINCT {column}), COUNT({column}) FROM t"),
            format!("SELECT MIN({column}), MAX({column}) FROM t"),
            format!("SELECT SUM({column}) FROM t"),
            format!("SELECT id, {column} + 0 FROM t ORDER BY id"),
        ] {
            same_rows(&mut twins, &sql, &mut refused);
        }
        // In an index MySQL looks '2' up as it would store it, and finds the second member; without one it does not.
        let by_index = |constant: &&str| kind == Kind::MySql && *constant == "'2'";
        for constant in [
            "'red'", "'GREEN '", "'it''s'", "''", "0", "2", "2.0", "7", "'2'", "'a'", "'a,B'",
            "'B,a'", "'A'", "'none'", "'é'", "'a,é'", "NULL", "-1",
        ]
        .into_iter()
        .filter(|constant| !by_index(constant))
        {
            for operator in ["=", "<>", "<=>", "<", ">="] {
                let sql =
                    format!("SELECT id FROM t WHERE {column} {operator} {constant} ORDER BY id");
                twins.compare(&sql, &[]);
            }
        }
        for list in [
            "IN ('red', 'it''s', 'a')",
            "IN (1, 3)",
            "IN (1, 'red')",
            "NOT IN ('red', 'a')",
            "BETWEEN 2 AND 3",
            "BETWEEN 'a' AND 'm'",
        ] {
            twins.compare(
                &format!("SELECT id FROM t WHERE {column} {list} ORDER BY id"),
                &[],
            );
        }
        for parameter in [Value::from("red"), Value::from(2), Value::from("a,b")] {
            for operator in ["=", ">"] {
                let sql = format!("SELECT id FROM t WHERE {column} {operator} ? ORDER BY id");
                twins.compare(&sql, std::slice::from_ref(&parameter));
            }
        }
    }
    for sql in [
        "UPDATE t SET p = 'z', ps = 'v,u' WHERE id % 3 = 0",
        "SELECT id, CONCAT(q, p), p + 0, ps, ps + 0 FROM t ORDER BY p, ps, id",
    ] {
        twins.compare_text(sql);
    }
    twins.compare(
        "SELECT x.id, y.id FROM t x JOIN t y ON x.q = y.q WHERE x.id < 4 ORDER BY 1, 2",
        &[],
    );
    twins.compare(
        "SELECT x.id, y.id FROM t x JOIN t y ON x.r < y.r WHERE x.id < 9 ORDER BY 1, 2",
        &[],
    );
    twins.compare(
        "SELECT x.id, y.id FROM t x JOIN t y ON x.s = y.q WHERE x.id < 9 ORDER BY 1, 2",
        &[],
    );
    for results in ["latin1", "utf8mb3", "ascii"] {
        twins.both_text(&format!("SET character_set_results = {results}"));
        twins.compare("SELECT s, q, ss, l FROM t ORDER BY id", &[]);
    }
    at_most(&refused, 0);
    twins.conclude(usize::from(kind == Kind::MariaDb));
}

fn bits(kind: Kind) {
    let Some(mut twins) = twins(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, a BIT(1) NOT NULL DEFAULT b'1' {eq}, b BIT(9) {range}, c BIT(64) {eq, range}, d BIT(8) {}, KEY (a), KEY (b))",
    ) else {
        return;
    };
    let mut ids = Ids(0);
    let mut refused = Vec::new();
    for mode in MODES {
        twins.both(&format!("SET sql_mode = '{mode}'"));
        for value in [
            "b'1'",
            "b'0'",
            "b'101'",
            "0",
            "1",
            "2",
            "255",
            "511",
            "512",
            "-1",
            "x'01'",
            "0x1ff",
            "'a'",
            "''",
            "1.5",
            "NULL",
            "DEFAULT",
            "TRUE",
            "18446744073709551615",
        ] {
            for column in ["a", "b", "c", "d"] {
                write(
                    &mut twins,
                    &mut refused,
                    "t",
                    &ids.insert("t", column, value),
                    &[],
                );
            }
        }
        for value in [
            Value::from(1),
            Value::from(300),
            Value::from(b"\x01".as_slice()),
            Value::from("a"),
            Value::NULL,
        ] {
            for column in ["a", "b", "d"] {
                write(
                    &mut twins,
                    &mut refused,
                    "t",
                    &ids.insert("t", column, "?"),
                    std::slice::from_ref(&value),
                );
            }
        }
        write(
            &mut twins,
            &mut refused,
            "t",
            "UPDATE t SET d = b'1010', a = 0 WHERE b = 255",
            &[],
        );
        write(
            &mut twins,
            &mut refused,
            "t",
            "UPDATE t SET b = b'11' WHERE a = b'1' AND id < 5",
            &[],
        );
    }
    twins.both("SET sql_mode = 'STRICT_TRANS_TABLES'");
    // to MySQL a parameter is a number, if its text is one
    for text in ["-7", " -7 ", "-7a", "-", "7", "18446744073709551616", "1e3"] {
        for column in ["b", "c"] {
            let sql = ids.insert("t", column, "?");
            write(&mut twins, &mut refused, "t", &sql, &[Value::from(text)]);
        }
    }
    for column in ["a", "b", "c", "d"] {
        for sql in [
            format!("SELECT {column}, COUNT(*) FROM t GROUP BY {column} ORDER BY {column}"),
            format!("SELECT id, {column} FROM t ORDER BY {column} DESC, id"),
            format!("SELECT MIN({column}), MAX({column}), SUM({column}) FROM t"),
            format!("SELECT id, {column} + 0, BIN({column}), HEX({column}) FROM t ORDER BY id"),
            format!("SELECT COUNT(DISTINCT {column}) FROM t"),
        ] {
            same_rows(&mut twins, &sql, &mut refused);
        }
        for constant in [
            "0",
            "1",
            "b'1'",
            "b'11111111'",
            "255",
            "255.5",
            "-1",
            "512",
            "NULL",
            "18446744073709551615",
            "TRUE",
        ] {
            for operator in ["=", "<>", "<", ">="] {
                twins.compare(
                    &format!("SELECT id FROM t WHERE {column} {operator} {constant} ORDER BY id"),
                    &[],
                );
            }
        }
        twins.compare(
            &format!("SELECT id FROM t WHERE {column} IN (0, 1, 255) ORDER BY id"),
            &[],
        );
        twins.compare(
            &format!("SELECT id FROM t WHERE {column} = ? ORDER BY id"),
            &[Value::from(1)],
        );
    }
    at_most(&refused, 0);
    twins.conclude(0);
}

fn documents(kind: Kind) {
    let Some(mut twins) = twins(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, j JSON {}, k JSON NOT NULL {}, plain JSON)",
    ) else {
        return;
    };
    let mut ids = Ids(0);
    let mut refused = Vec::new();
    for value in [
        "'{\"b\": 1, \"a\":[1,2.0,\"x\"], \"bb\":{\"z\":null,\"y\":true}}'",
        "'[1, 2 ,3]'",
        "'\"text \\\\u00e9 😀\"'",
        "'null'",
        "'12345678901234567890'",
        "'1e3'",
        "NULL",
        "'{\"a\":1,\"a\":2}'",
        "'{'",
        "'abc'",
        "''",
        "'[1,]'",
        "'{\"a\" 1}'",
        "'  [ ]  '",
    ] {
        write(
            &mut twins,
            &mut refused,
            "t",
            &ids.insert("t", "j, k, plain", &format!("{value}, '{{}}', {value}")),
            &[],
        );
    }
    for value in [
        Value::from("{\"b\":2,\"a\":1}"),
        Value::from("[1"),
        Value::from("[\"\u{e9}\"]"),
    ] {
        write(
            &mut twins,
            &mut refused,
            "t",
            &ids.insert("t", "j, k", "?, '[]'"),
            std::slice::from_ref(&value),
        );
    }
    write(
        &mut twins,
        &mut refused,
        "t",
        &ids.insert(
            "t",
            "j, k",
            "JSON_OBJECT('b', 1, 'a', JSON_ARRAY('x', NULL, 1e3)), JSON_QUOTE('é')",
        ),
        &[],
    );
    write(
        &mut twins,
        &mut refused,
        "t",
        "UPDATE t SET j = '{\"changed\": [true]}' WHERE id = 2",
        &[],
    );
    write(
        &mut twins,
        &mut refused,
        "t",
        "UPDATE t SET j = '{\"changed\":[true]}' WHERE id = 2",
        &[],
    );
    for sql in [
        "SELECT id, j, k FROM t WHERE j IS NOT NULL ORDER BY id",
        "SELECT id, JSON_EXTRACT(j, '$.a') FROM t ORDER BY id",
        "SELECT id, JSON_UNQUOTE(JSON_EXTRACT(j, '$.bb.z')), JSON_VALID(j), JSON_TYPE(j), JSON_LENGTH(j) FROM t ORDER BY id",
        "SELECT id FROM t WHERE JSON_EXTRACT(j, '$.b') = 1 ORDER BY id",
        "SELECT id, JSON_OBJECT('j', j) FROM t ORDER BY id",
        "SELECT COUNT(j) FROM t",
        "SELECT id, j FROM t ORDER BY j, id",
        "SELECT j, COUNT(*) FROM t GROUP BY j ORDER BY COUNT(*), MIN(id)",
        "SELECT DISTINCT k FROM t ORDER BY 1",
        "SELECT id FROM t WHERE j = '[1, 2, 3]' ORDER BY id",
    ] {
        twins.compare(sql, &[]);
    }
    for results in ["latin1", "utf8mb3", "binary"] {
        twins.both_text(&format!("SET character_set_results = {results}"));
        twins.compare("SELECT j, k FROM t ORDER BY id", &[]);
    }
    twins.both_text("SET NAMES latin1");
    write(
        &mut twins,
        &mut refused,
        "t",
        &ids.insert("t", "j, k", "_latin1 x'5b22e9225d', '[]'"),
        &[],
    );
    at_most(&refused, 4);
    twins.conclude(0);
}

fn numbers_and_dates_at_their_edges(kind: Kind) {
    let Some(mut twins) = twins(
        kind,
        "CREATE TABLE n (id INT PRIMARY KEY, flag BOOL {eq}, one TINYINT UNSIGNED {range}, z INT(5) ZEROFILL {range}, f FLOAT {range}, d DOUBLE {range}, \
         m DECIMAL(65,30) {range}, h TIME(3) {range}, y YEAR {eq}, u BIGINT UNSIGNED {eq}); \
         CREATE TABLE t (id INT PRIMARY KEY, d DATE {range}, dt DATETIME {eq}, ts TIMESTAMP NULL {range})",
    ) else {
        return;
    };
    let mut ids = Ids(0);
    let mut refused = Vec::new();
    for mode in MODES {
        twins.both(&format!("SET sql_mode = '{mode}'"));
        for (column, values) in [
            ("flag", &["TRUE", "FALSE", "127", "128", "'x'"][..]),
            ("one", &["1", "255", "256", "-1"]),
            (
                "z",
                &["0", "42", "100000", "4294967295", "4294967296", "-1"],
            ),
            (
                "f",
                &[
                    "-0e0",
                    "1e-45",
                    "1.4e-45",
                    "3.4028235e38",
                    "3.5e38",
                    "-3.5e38",
                    "0.1",
                    "16777217",
                ],
            ),
            (
                "d",
                &[
                    "-0e0",
                    "5e-324",
                    "2.2250738585072011e-308",
                    "1.7976931348623157e308",
                    "'1e309'",
                    "0.1",
                    "-1e308",
                ],
            ),
            (
                "m",
                &[
                    "99999999999999999999999999999999999.999999999999999999999999999999",
                    "100000000000000000000000000000000000",
                    "0.000000000000000000000000000001",
                    "0.0000000000000000000000000000005",
                    "-1",
                ],
            ),
            (
                "h",
                &[
                    "'34 22:59:59.999'",
                    "'-838:59:59'",
                    "'839:00:00'",
                    "'10:11:12.1235'",
                    "'1 2'",
                    "'0:0:60'",
                    "101112",
                    "'-0:0:0.001'",
                ],
            ),
            (
                "y",
                &[
                    "0", "'0'", "'00'", "1901", "2155", "2156", "69", "70", "'2024'", "'x'",
                ],
            ),
            (
                "u",
                &[
                    "18446744073709551615",
                    "18446744073709551616",
                    "-1",
                    "'18446744073709551615'",
                ],
            ),
        ] {
            for value in values {
                write(
                    &mut twins,
                    &mut refused,
                    "n",
                    &ids.insert("n", column, value),
                    &[],
                );
            }
        }
    }
    for column in ["flag", "one", "z", "f", "d", "m", "h", "y", "u"] {
        same_rows(
            &mut twins,
            &format!("SELECT id, {column} FROM n ORDER BY {column}, id"),
            &mut refused,
        );
        same_rows(
            &mut twins,
            &format!("SELECT COUNT(DISTINCT {column}) FROM n"),
            &mut refused,
        );
        same_rows(
            &mut twins,
            &format!("SELECT id FROM n WHERE {column} = 0 ORDER BY id"),
            &mut refused,
        );
        same_rows(
            &mut twins,
            &format!("SELECT id FROM n WHERE {column} = 1 ORDER BY id"),
            &mut refused,
        );
    }
    for mode in [
        "STRICT_TRANS_TABLES",
        "",
        "STRICT_TRANS_TABLES,NO_ZERO_DATE",
        "STRICT_TRANS_TABLES,NO_ZERO_IN_DATE",
        "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE",
        "NO_ZERO_DATE",
        "NO_ZERO_IN_DATE",
        "NO_ZERO_DATE,NO_ZERO_IN_DATE",
        "ALLOW_INVALID_DATES",
        "STRICT_TRANS_TABLES,ALLOW_INVALID_DATES",
    ] {
        twins.both_text(&format!("SET sql_mode = '{mode}', time_zone = '+00:00'"));
        for value in [
            "'0000-00-00'",
            "'2024-00-05'",
            "'2024-05-00'",
            "'2024-02-30'",
            "'2024-13-01'",
            "0",
            "'9999-12-31 23:59:59'",
            "'1970-01-01 00:00:01'",
            "'1970-01-01 00:00:00'",
            "'2038-01-19 03:14:07'",
            "'2038-01-19 03:14:08'",
            "'2106-02-07 06:28:15'",
            "'0001-01-01'",
        ] {
            for column in ["d", "dt", "ts"] {
                write(
                    &mut twins,
                    &mut refused,
                    "t",
                    &ids.insert("t", column, value),
                    &[],
                );
            }
        }
        twins.both_text("DELETE FROM t WHERE id % 3 = 0");
    }
    for column in ["d", "dt", "ts"] {
        same_rows(
            &mut twins,
            &format!("SELECT id, {column} FROM t ORDER BY {column}, id"),
            &mut refused,
        );
        same_rows(
            &mut twins,
            &format!("SELECT {column}, COUNT(*) FROM t GROUP BY {column} ORDER BY {column}"),
            &mut refused,
        );
    }
    // negative zeros, numbers beyond DOUBLE, times in short forms
    at_most(&refused, 12);
    twins.conclude(0);
}

fn definitions_are_shown(kind: Kind) {
    let Some(mut twins) = twins(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, s ENUM('red','Green','it''s') DEFAULT 'GREEN' COMMENT 'colour' {}, q ENUM('a','é') CHARACTER SET latin1 NOT NULL {eq}, \
         st SET('x','y z') NOT NULL DEFAULT 'x,y z' {range}, b BIT(5) DEFAULT b'00101' {eq}, c BIT NOT NULL {}, d BIT(3) DEFAULT 7 {}, j JSON {}, k JSON NOT NULL COMMENT 'k' {}, \
         flag BOOL DEFAULT TRUE {}, z INT(7) ZEROFILL {eq}, y YEAR DEFAULT '2020' {}, m DECIMAL(65,30) {})",
    ) else {
        return;
    };
    for sql in [
        "SHOW CREATE TABLE t",
        "DESCRIBE t",
        "SHOW FULL COLUMNS FROM t",
        "SELECT COLUMN_NAME, ORDINAL_POSITION, COLUMN_DEFAULT, IS_NULLABLE, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, \
         DATETIME_PRECISION, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_TYPE, COLUMN_KEY, COLUMN_COMMENT FROM information_schema.columns WHERE table_schema = 'app' \
         AND table_name = 't' ORDER BY ORDINAL_POSITION",
    ] {
        let (a, b) = (twins.plain.must(sql), twins.protected.must(sql));
        assert_eq!(a.text(), b.text(), "{sql}");
    }
    twins.both("INSERT INTO t (id, q, c, k) VALUES (1, DEFAULT, 1, '[]')");
    twins.compare("SELECT * FROM t", &[]);
    for statement in [
        "CREATE TABLE r (id INT PRIMARY KEY, e ENUM('a','A') {})",
        "CREATE TABLE r (id INT PRIMARY KEY, e ENUM('a','b') DEFAULT 'c' {})",
        "CREATE TABLE r (id INT PRIMARY KEY, e ENUM('a','b') {join:g})",
        "CREATE TABLE r (id INT PRIMARY KEY, b BIT(3) DEFAULT b'1000' {})",
        "CREATE TABLE r (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET swe7 {eq})",
        "CREATE TABLE r (id INT PRIMARY KEY, v VARCHAR(9) COLLATE utf8mb4_czech_ci {eq})",
    ] {
        let (text, rest) = statement.split_once('{').expect("a place");
        let (words, tail) = rest.split_once('}').expect("a place");
        let protected = format!("{text}ENCRYPTED FOR ({words}){tail}");
        let refused = twins.protected.run(&protected).expect_err("a refusal");
        assert!(refused.message.starts_with("OS"), "{protected}: {refused}");
    }
    twins.conclude(0);
}

/// Whether a zero keeps its sign depends on the version of MariaDB.
fn signed_zeros(kind: Kind) {
    let Some(mut twins) = twins(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, f FLOAT {range}, d DOUBLE {range}, v VARCHAR(20) {eq}, g DOUBLE {})",
    ) else {
        return;
    };
    let mut refused = Vec::new();
    for (id, zero) in ["-0e0", "'-0'", "-0", "-0.0", "'-0e5'", "0e0"]
        .iter()
        .enumerate()
    {
        let insert = format!("INSERT INTO t VALUES ({id}, {zero}, {zero}, {zero}, {zero})");
        write(&mut twins, &mut refused, "t", &insert, &[]);
    }
    let parameter = Value::from(-0.0);
    let values = std::array::from_fn::<_, 4, _>(|_| parameter.clone());
    write(
        &mut twins,
        &mut refused,
        "t",
        "INSERT INTO t VALUES (9, ?, ?, ?, ?)",
        &values,
    );
    for column in ["f", "d"] {
        for condition in ["= 0", "= -0e0", "< 0", ">= 0"] {
            twins.compare(
                &format!("SELECT id FROM t WHERE {column} {condition} ORDER BY id"),
                &[],
            );
        }
    }
    at_most(&refused, 0);
    twins.conclude(0);
}
