//! BIT.

use super::*;

pub fn bits(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, a BIT(1) NOT NULL DEFAULT b'1' {eq}, b BIT(9) {range}, c BIT(64) {eq, range}, d BIT(8) {}, KEY (a), KEY (b))",
    ) else {
        return;
    };
    let mut refused = Vec::new();
    bits_are_stored_alike(&mut pair, &mut refused);
    bits_are_found_and_grouped(&mut pair, &mut refused);
    at_most(&refused, 0);
    pair.conclude(0);
}

fn bits_are_stored_alike(pair: &mut Pair, refused: &mut Vec<String>) {
    let mut ids = Ids(0);
    for mode in MODES {
        pair.both(&format!("SET sql_mode = '{mode}'"));
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
                write(pair, refused, "t", &ids.insert("t", column, value), &[]);
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
                    pair,
                    refused,
                    "t",
                    &ids.insert("t", column, "?"),
                    std::slice::from_ref(&value),
                );
            }
        }
        write(
            pair,
            refused,
            "t",
            "UPDATE t SET d = b'1010', a = 0 WHERE b = 255",
            &[],
        );
        write(
            pair,
            refused,
            "t",
            "UPDATE t SET b = b'11' WHERE a = b'1' AND id < 5",
            &[],
        );
    }
    pair.both("SET sql_mode = 'STRICT_TRANS_TABLES'");
    // to MySQL a parameter is a number, if its text is one
    for text in ["-7", " -7 ", "-7a", "-", "7", "18446744073709551616", "1e3"] {
        for column in ["b", "c"] {
            let sql = ids.insert("t", column, "?");
            write(pair, refused, "t", &sql, &[Value::from(text)]);
        }
    }
}

fn bits_are_found_and_grouped(pair: &mut Pair, refused: &mut Vec<String>) {
    for column in ["a", "b", "c", "d"] {
        for sql in [
            format!("SELECT {column}, COUNT(*) FROM t GROUP BY {column} ORDER BY {column}"),
            format!("SELECT id, {column} FROM t ORDER BY {column} DESC, id"),
            format!("SELECT MIN({column}), MAX({column}), SUM({column}) FROM t"),
            format!("SELECT id, {column} + 0, BIN({column}), HEX({column}) FROM t ORDER BY id"),
            format!("SELECT COUNT(DISTINCT {column}) FROM t"),
        ] {
            same_rows(pair, &sql, refused);
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
                pair.compare(
                    &format!("SELECT id FROM t WHERE {column} {operator} {constant} ORDER BY id"),
                    &[],
                );
            }
        }
        // what is NULL and what is false: MariaDB compares bits with bits as signed numbers
        for (low, high) in [
            ("b'11'", "NULL"),
            ("NULL", "b'11'"),
            ("3", "NULL"),
            ("NULL", "3"),
            ("x'03'", "b'100'"),
            ("x'8000000000000000'", "8"),
            ("3", "x'ffffffffffffffff'"),
            ("b'11'", "18446744073709551615"),
        ] {
            for not in ["", "NOT "] {
                let between = format!("{column} {not}BETWEEN {low} AND {high}");
                pair.compare(
                    &format!("SELECT id FROM t WHERE ({between}) XOR id > 0 ORDER BY id"),
                    &[],
                );
                pair.compare(
                    &format!("SELECT id FROM t WHERE {between} ORDER BY id"),
                    &[],
                );
            }
        }
        pair.compare(
            &format!("SELECT id FROM t WHERE {column} IN (0, 1, 255) ORDER BY id"),
            &[],
        );
        pair.compare(
            &format!("SELECT id FROM t WHERE {column} = ? ORDER BY id"),
            &[Value::from(1)],
        );
    }
}
