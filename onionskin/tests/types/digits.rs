//! FLOAT(m,d) and DOUBLE(m,d): servers round what is stored to d places, and show as many.

use super::*;

const TABLE: &str = "CREATE TABLE r (id INT PRIMARY KEY, f FLOAT(8,2) {eq, range}, d DOUBLE(8,2) {eq, range}, w DOUBLE(20,10) {range}, \
     u FLOAT(5,3) UNSIGNED {}, z DOUBLE(7,2) ZEROFILL {eq}, n DOUBLE(3,0) {range}, t DOUBLE(4,4) {}, p DOUBLE(8,2), s VARCHAR(30) {eq})";

const VALUES: [&str; 26] = [
    "0",
    "-0e0",
    "1.1",
    "3.14159",
    "-3.14159",
    "0.125",
    "0.375e0",
    "2.675",
    "999999.99",
    "999999.994",
    "999999.996",
    "1000000",
    "-999999.999",
    "1e300",
    "-1e300",
    "'12.345'",
    "'12.345abc'",
    "'x'",
    "' 7.1 '",
    "99.9995",
    "0.00005",
    "-0.004",
    "123456.785",
    "16777.217",
    "NULL",
    "0x41",
];

pub fn real_numbers_with_digits(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(kind, TABLE) else {
        return;
    };
    let mut refused = Vec::new();
    stored(&mut pair, &mut refused);
    found(&mut pair, &mut refused);
    changed(&mut pair, &mut refused);
    at_most(&refused, 8);
    defined(&mut pair);
    pair.conclude(0);
}

fn stored(pair: &mut Pair, refused: &mut Vec<String>) {
    let mut ids = Ids(0);
    for mode in MODES {
        pair.both(&format!("SET sql_mode = '{mode}'"));
        for column in ["f", "d", "w", "u", "z", "n", "t"] {
            for value in VALUES {
                let insert = ids.insert("r", column, value);
                write(pair, refused, "r", &insert, &[]);
            }
            for value in [2.34567, -2.5, 1e9, 0.125, 999_999.99] {
                let insert = ids.insert("r", column, "?");
                write(pair, refused, "r", &insert, &[Value::from(value)]);
                let insert = ids.insert("r", column, "?");
                write(
                    pair,
                    refused,
                    "r",
                    &insert,
                    &[Value::from(value.to_string())],
                );
                let insert = ids.insert("r", column, "?");
                write(pair, refused, "r", &insert, &[Value::from(value as f32)]);
            }
        }
    }
    pair.both("SET sql_mode = DEFAULT");
    pair.both("UPDATE r SET p = 12.345, s = 'x' WHERE id < 40");
    pair.compare("SELECT * FROM r ORDER BY id", &[]);
}

fn found(pair: &mut Pair, refused: &mut Vec<String>) {
    for sql in [
        "SELECT id FROM r WHERE d = 3.14 ORDER BY id",
        "SELECT id FROM r WHERE d = 3.14159 ORDER BY id",
        "SELECT id FROM r WHERE d = '3.14' ORDER BY id",
        "SELECT id FROM r WHERE f = 3.14 ORDER BY id",
        "SELECT id FROM r WHERE f = 0.5 OR f = 0 ORDER BY id",
        "SELECT id FROM r WHERE d IN (1.1, 12.35, 999999.99) ORDER BY id",
        "SELECT id FROM r WHERE f IN (3.14, 0.5) ORDER BY id",
        "SELECT id FROM r WHERE f IN (3.14) ORDER BY id",
        "SELECT id FROM r WHERE f BETWEEN 3.14 AND 12.35 ORDER BY id",
        "SELECT id FROM r WHERE f < 3.14 OR f > 3.1400000 ORDER BY id",
        "SELECT id FROM r WHERE f <= 12.35 AND f <> 0.375 ORDER BY id",
        "SELECT id FROM r WHERE f = 999999.99 OR f = 16777.22 OR f = 123456.79 ORDER BY id",
        "SELECT id FROM r WHERE f = 3.14e0 OR f = '3.14' OR f = 3 ORDER BY id",
        "SELECT id FROM r WHERE NOT f = 3.14 AND 3.14 < f ORDER BY id",
        "SELECT id FROM r WHERE w = 3.14159 OR w = 123456.785 OR w = 2.675 ORDER BY id",
        "SELECT d, COUNT(*) FROM r GROUP BY d HAVING MAX(f) = 3.14 OR d = 12.35 ORDER BY d",
        "SELECT id FROM r WHERE d > 3.144 AND d < 1e5 ORDER BY id",
        "SELECT id FROM r WHERE f >= 999999.99 ORDER BY id",
        "SELECT id FROM r WHERE w BETWEEN 0.1 AND 3.14159 ORDER BY id",
        "SELECT id FROM r WHERE n > 2.5 ORDER BY id",
        "SELECT MIN(f), MAX(d), MIN(w), MAX(z), MAX(n) FROM r",
        "SELECT COUNT(DISTINCT d), COUNT(f) FROM r",
        "SELECT d, COUNT(*) FROM r GROUP BY d ORDER BY d",
        "SELECT DISTINCT f FROM r ORDER BY f DESC",
        "SELECT SUM(n) FROM r WHERE id < 20",
        "SELECT AVG(n) FROM r WHERE id < 20",
        "SELECT SUM(d) FROM r WHERE d BETWEEN 1 AND 4",
        "SELECT d + 1, d * 2, f / 3, -w FROM r ORDER BY id",
        "SELECT CONCAT(d, ''), CONCAT(f, 'x'), LENGTH(w), ROUND(d, 1) FROM r ORDER BY id",
        "SELECT GREATEST(d, p), IFNULL(d, 0), COALESCE(f, d) FROM r ORDER BY id",
        "SELECT a.id, b.id FROM r a JOIN r b ON a.d = b.d WHERE a.id < 10 AND b.id < 10 ORDER BY 1, 2",
        "SELECT a.id, b.id FROM r a JOIN r b ON a.d = b.p WHERE a.id < 40 AND b.id < 40 ORDER BY 1, 2",
        "SELECT id, d FROM r ORDER BY d, id",
    ] {
        same_rows(pair, sql, refused);
    }
    for (condition, value) in [
        ("f = ?", Value::from(12.35)),
        ("f = ?", Value::from(12.35_f32)),
        ("f = ?", Value::from("3.14")),
        ("f > ?", Value::from(3)),
        ("d = ?", Value::from(12.35)),
        ("d <= ?", Value::from("12.35")),
        ("d IN (?, 1.1)", Value::from(12.35)),
    ] {
        let sql = format!("SELECT id FROM r WHERE {condition} ORDER BY id");
        pair.compare(&sql, &[value]);
    }
    for sql in [
        "SELECT f, d, w, u, z, n, t, p FROM r ORDER BY id",
        "SELECT MIN(f), MAX(d), MIN(w), MAX(z) FROM r",
        "SELECT MAX(u), MAX(t) FROM r",
    ] {
        pair.compare(sql, &[]);
    }
}

fn changed(pair: &mut Pair, refused: &mut Vec<String>) {
    for sql in [
        "UPDATE r SET d = d + 1.006 WHERE d = 3.14",
        "UPDATE r SET d = d * 1.5 WHERE id < 30 AND d < 1000",
        "UPDATE r SET d = 3.14 WHERE d = 3.14",
        "UPDATE r SET d = 3.1449 WHERE id = 3",
        "UPDATE r SET d = 3.14 WHERE id = 3",
        "UPDATE r SET w = d WHERE id < 30",
        "UPDATE r SET d = w / 3 WHERE id < 30",
        "UPDATE r SET f = d WHERE id < 10",
        "INSERT INTO r (id, d, f, s) SELECT id + 10000, d, f, d FROM r WHERE id < 30",
        "INSERT INTO r (id, d) VALUES (1, 7.777) ON DUPLICATE KEY UPDATE d = VALUES(d)",
        "INSERT INTO r (id, d) VALUES (1, 7.777) ON DUPLICATE KEY UPDATE d = d + VALUES(d)",
        "DELETE FROM r WHERE d = 7.78",
    ] {
        write(pair, refused, "r", sql, &[]);
    }
    pair.compare("SELECT * FROM r ORDER BY id", &[]);
}

fn defined(pair: &mut Pair) {
    pair.same("SHOW CREATE TABLE r");
    pair.same("SHOW COLUMNS FROM r");
    pair.same(
        "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, NUMERIC_PRECISION, NUMERIC_SCALE FROM information_schema.COLUMNS \
         WHERE TABLE_NAME = 'r' ORDER BY ORDINAL_POSITION",
    );
    for definition in [
        "a DOUBLE(8,2) NOT NULL DEFAULT 0 {eq}",
        "a DOUBLE PRECISION (8, 2) DEFAULT 1.5 {}",
        "a REAL(10,4) DEFAULT '2.5' {range}",
        "a FLOAT4(6,1) UNSIGNED ZEROFILL DEFAULT 3 {}",
        "a FLOAT(255,30) {}",
        "a FLOAT(30,30) {}",
        "a DOUBLE(8,9) {}",
        "a DOUBLE(256,2) {}",
        "a DOUBLE(40,31) {}",
    ] {
        let sql = format!("CREATE TABLE made (id INT, {definition})");
        let said = pair.say(&sql);
        let (plain, protected) = (&said.plain, &said.protected);
        if !plain.starts_with('[') {
            // which of the two says it does not matter
            assert!(!protected.starts_with('['), "{sql}: {plain} {protected}");
            continue;
        }
        assert_eq!(plain, protected, "{sql}");
        pair.same("SHOW CREATE TABLE made");
        pair.both("INSERT INTO made (id) VALUES (1)");
        pair.compare("SELECT * FROM made", &[]);
        pair.both("DROP TABLE made");
    }
}
