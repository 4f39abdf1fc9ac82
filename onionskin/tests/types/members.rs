//! ENUM and SET.

use super::*;

const MEMBERS: &str = "
CREATE TABLE t (id INT PRIMARY KEY, \
 s ENUM('red','Green','it''s','x y','blü') {}, q ENUM('red','Green','it''s','x y','blü') NOT NULL DEFAULT 'Green' {eq}, \
 r ENUM('red','Green','it''s','x y','blü') NOT NULL {range}, ss SET('a','B','c d','é') {}, sq SET('a','B','c d','é') {eq}, \
 sr SET('a','B','c d','é') DEFAULT 'a,B' {range}, b ENUM('a','A','1') COLLATE utf8mb4_bin {eq, range}, l ENUM('é','€') CHARACTER SET latin1 {eq}, y ENUM('red','Green','it''s','2x') CHARACTER SET binary {eq}, ys SET('a','B','c d') CHARACTER SET binary {eq, range}, \
 p ENUM('z','y') DEFAULT 'y', ps SET('u','v') COLLATE utf8mb4_bin, \
 KEY (q), KEY (r), KEY (sq)) COLLATE utf8mb4_general_ci";

pub fn members_of_enum_and_set(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(kind, MEMBERS) else {
        return;
    };
    let mut refused = Vec::new();
    values_are_stored_alike(&mut pair, &mut refused);
    pair.both("SET sql_mode = 'STRICT_TRANS_TABLES'");
    for column in ["q", "r", "sq"] {
        for constant in ["''", "0", "'red'", "1"] {
            let sql = format!("SELECT id FROM t WHERE {column} = {constant} ORDER BY id");
            pair.compare(&sql, &[]);
        }
        let sql = format!("SELECT {column}, COUNT(*) FROM t GROUP BY {column} ORDER BY {column}");
        same_rows(&mut pair, &sql, &mut refused);
    }
    // The value that stands for errors cannot be carried to a scratch engine of MariaDB's; and on
    // MySQL a text that is no member finds its rows, if there is an index.
    pair.compare_text("SELECT MIN(q) FROM t");
    let bad = "SELECT GROUP_CONCAT(id) FROM t WHERE s = '' OR q = '' OR r = '' OR y = ''";
    let bad = pair.plain.text(bad).expect("numbers");
    pair.both(&format!("DELETE FROM t WHERE id IN ({bad})"));
    members_are_found_and_grouped(kind, &mut pair, &mut refused);
    members_are_joined_and_shown(&mut pair);
    at_most(&refused, 0);
    pair.conclude(usize::from(kind == Kind::MariaDb));
}

/// As MediaWiki makes its tables.
pub fn members_of_bytes_are_defined(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(kind, "") else {
        return;
    };
    for definition in [
        "a ENUM('UNKNOWN','BITMAP') DEFAULT NULL {eq}, b VARBINARY(20) {eq}) DEFAULT CHARSET=binary",
        "a ENUM('UNKNOWN','BITMAP') NOT NULL DEFAULT 'BITMAP' {}, s SET('x','y') DEFAULT 'x,y' {eq}) DEFAULT CHARACTER SET binary",
        "a ENUM('UNKNOWN','BITMAP') CHARACTER SET binary {eq}) DEFAULT CHARSET=utf8mb4",
        "a ENUM('u','v') CHARACTER SET latin1 {eq}, s SET('x','y') COLLATE binary {}) DEFAULT CHARSET=latin1",
    ] {
        pair.same(&format!(
            "CREATE TABLE made (id INT PRIMARY KEY, {definition}"
        ));
        pair.same("SHOW CREATE TABLE made");
        pair.same("SHOW FULL COLUMNS FROM made");
        pair.same(
            "SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, CHARACTER_MAXIMUM_LENGTH, CHARACTER_OCTET_LENGTH \
             FROM information_schema.COLUMNS WHERE TABLE_NAME = 'made' ORDER BY ORDINAL_POSITION",
        );
        pair.both("INSERT INTO made (id, a) VALUES (1, 2), (2, 1), (3, DEFAULT)");
        pair.compare("SELECT * FROM made ORDER BY id", &[]);
        pair.both("DROP TABLE made");
    }
    let refused = "CREATE TABLE made (id INT PRIMARY KEY, a ENUM('é') CHARACTER SET binary ENCRYPTED FOR (eq))";
    pair.protected.must_fail(refused);
    pair.conclude(0);
}

fn values_are_stored_alike(pair: &mut Pair, refused: &mut Vec<String>) {
    let mut ids = Ids(0);
    for mode in MODES {
        pair.both(&format!("SET sql_mode = '{mode}'"));
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
            for column in ["s", "q", "r", "y"] {
                let set = ids.insert("t", column, value);
                write(pair, refused, "t", &set, &[]);
            }
        }
        for value in [
            "'a'", "'b,A'", "'a,x'", "'c d,é'", "''", "3", "16", "-1", "'5'", "'a,,b'", "NULL",
            "DEFAULT", "'x'", "'a,a '", "2e0",
        ] {
            for column in ["ss", "sq", "sr", "ys"] {
                let set = ids.insert("t", column, value);
                write(pair, refused, "t", &set, &[]);
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
            ("y", Value::from("red")),
            ("y", Value::from("red ")),
            ("y", Value::from(b"Green".as_slice())),
            ("ys", Value::from("B,a")),
        ] {
            let insert = ids.insert("t", column, "?");
            write(pair, refused, "t", &insert, &[value]);
        }
        write(
            pair,
            refused,
            "t",
            &ids.insert("t", "q, sq", "'none', 'a,none'")
                .replace("INSERT", "INSERT IGNORE"),
            &[],
        );
        write(
            pair,
            refused,
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
            write(pair, refused, "t", update, &[]);
        }
    }
}

fn members_are_found_and_grouped(kind: Kind, pair: &mut Pair, refused: &mut Vec<String>) {
    for column in ["s", "q", "r", "ss", "sq", "sr", "b", "l", "y", "ys"] {
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
            same_rows(pair, &sql, refused);
        }
        // In an index MySQL looks '2' up as it would store it, and finds the second member; without
        // one it does not.
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
                pair.compare(&sql, &[]);
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
            pair.compare(
                &format!("SELECT id FROM t WHERE {column} {list} ORDER BY id"),
                &[],
            );
        }
        for parameter in [Value::from("red"), Value::from(2), Value::from("a,b")] {
            for operator in ["=", ">"] {
                let sql = format!("SELECT id FROM t WHERE {column} {operator} ? ORDER BY id");
                pair.compare(&sql, std::slice::from_ref(&parameter));
            }
        }
    }
}

fn members_are_joined_and_shown(pair: &mut Pair) {
    for sql in [
        "UPDATE t SET p = 'z', ps = 'v,u' WHERE id % 3 = 0",
        "SELECT id, CONCAT(q, p), p + 0, ps, ps + 0 FROM t ORDER BY p, ps, id",
    ] {
        pair.compare_text(sql);
    }
    pair.compare(
        "SELECT x.id, y.id FROM t x JOIN t y ON x.q = y.q WHERE x.id < 4 ORDER BY 1, 2",
        &[],
    );
    pair.compare(
        "SELECT x.id, y.id FROM t x JOIN t y ON x.r < y.r WHERE x.id < 9 ORDER BY 1, 2",
        &[],
    );
    pair.compare(
        "SELECT x.id, y.id FROM t x JOIN t y ON x.s = y.q WHERE x.id < 9 ORDER BY 1, 2",
        &[],
    );
    for results in ["latin1", "utf8mb3", "ascii"] {
        pair.run(&format!("SET character_set_results = {results}"));
        pair.compare("SELECT s, q, ss, l, y, ys FROM t ORDER BY id", &[]);
    }
}
