//! Numbers, dates and times at the edges of their types.

use super::*;

pub fn numbers_and_dates_at_their_edges(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(
        kind,
        "CREATE TABLE n (id INT PRIMARY KEY, flag BOOL {eq}, one TINYINT UNSIGNED {range}, z INT(5) ZEROFILL {range}, f FLOAT {range}, d DOUBLE {range}, \
         m DECIMAL(65,30) {range}, h TIME(3) {range}, y YEAR {eq}, u BIGINT UNSIGNED {eq}); \
         CREATE TABLE t (id INT PRIMARY KEY, d DATE {range}, dt DATETIME {eq}, ts TIMESTAMP NULL {range})",
    ) else {
        return;
    };
    let mut ids = Ids(0);
    let mut refused = Vec::new();
    numbers_are_stored_and_sorted_alike(&mut pair, &mut ids, &mut refused);
    dates_are_stored_and_sorted_alike(&mut pair, &mut ids, &mut refused);
    // negative zeros, numbers beyond DOUBLE, times in short forms
    at_most(&refused, 12);
    pair.conclude(0);
}

fn numbers_are_stored_and_sorted_alike(pair: &mut Pair, ids: &mut Ids, refused: &mut Vec<String>) {
    for mode in MODES {
        pair.both(&format!("SET sql_mode = '{mode}'"));
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
                write(pair, refused, "n", &ids.insert("n", column, value), &[]);
            }
        }
    }
    for column in ["flag", "one", "z", "f", "d", "m", "h", "y", "u"] {
        same_rows(
            pair,
            &format!("SELECT id, {column} FROM n ORDER BY {column}, id"),
            refused,
        );
        same_rows(
            pair,
            &format!("SELECT COUNT(DISTINCT {column}) FROM n"),
            refused,
        );
        same_rows(
            pair,
            &format!("SELECT id FROM n WHERE {column} = 0 ORDER BY id"),
            refused,
        );
        same_rows(
            pair,
            &format!("SELECT id FROM n WHERE {column} = 1 ORDER BY id"),
            refused,
        );
    }
}

fn dates_are_stored_and_sorted_alike(pair: &mut Pair, ids: &mut Ids, refused: &mut Vec<String>) {
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
        pair.run(&format!("SET sql_mode = '{mode}', time_zone = '+00:00'"));
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
                write(pair, refused, "t", &ids.insert("t", column, value), &[]);
            }
        }
        pair.run("DELETE FROM t WHERE id % 3 = 0");
    }
    for column in ["d", "dt", "ts"] {
        same_rows(
            pair,
            &format!("SELECT id, {column} FROM t ORDER BY {column}, id"),
            refused,
        );
        same_rows(
            pair,
            &format!("SELECT {column}, COUNT(*) FROM t GROUP BY {column} ORDER BY {column}"),
            refused,
        );
    }
}

/// Whether a zero keeps its sign depends on the version of MariaDB.
pub fn signed_zeros(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(
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
        write(&mut pair, &mut refused, "t", &insert, &[]);
    }
    let parameter = Value::from(-0.0);
    let values = std::array::from_fn::<_, 4, _>(|_| parameter.clone());
    write(
        &mut pair,
        &mut refused,
        "t",
        "INSERT INTO t VALUES (9, ?, ?, ?, ?)",
        &values,
    );
    for column in ["f", "d"] {
        for condition in ["= 0", "= -0e0", "< 0", ">= 0"] {
            pair.compare(
                &format!("SELECT id FROM t WHERE {column} {condition} ORDER BY id"),
                &[],
            );
        }
    }
    at_most(&refused, 0);
    pair.conclude(0);
}
