//! A table with a column of every type, random values, and a comparison of every image with what
//! SELECT says.

use std::collections::HashMap;

use onionskin_rowstream::binlog::{Change, Item, RowKind, TableColumns, TableName, Value};
use onionskin_rowstream::client::Client;
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{client, follow, now, tables};
use onionskin_testkit::{Kind, Server};

/// How a column is read by SELECT so that the text is exact.
#[derive(Clone, Copy, PartialEq)]
enum Look {
    Plain,
    /// `c + 0`: numbers of ENUM, SET, BIT.
    Number,
    Float,
    Hex,
}

/// Type of the column, how to look at it, and literals to choose from.
struct Sample {
    definition: &'static str,
    look: Look,
    literals: Vec<String>,
}

fn add(all: &mut Vec<Sample>, definition: &'static str, look: Look, literals: Vec<String>) {
    all.push(Sample {
        definition,
        look,
        literals,
    });
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| s.to_string()).collect()
}

fn samples(kind: Kind, random: &mut StdRng) -> Vec<Sample> {
    let mut all = Vec::new();
    add_integers(&mut all, random);
    add_decimals(&mut all, random);
    add_other_numbers(&mut all, random);
    add_times(&mut all, random);
    add_texts(&mut all);
    add_bytes(&mut all);
    match kind {
        Kind::MySql => add_types_of_mysql(&mut all, random),
        Kind::MariaDb => add_types_of_mariadb(&mut all),
    }
    all
}

fn add_integers(all: &mut Vec<Sample>, random: &mut StdRng) {
    for (name, bits) in [
        ("TINYINT", 8),
        ("SMALLINT", 16),
        ("MEDIUMINT", 24),
        ("INT", 32),
        ("BIGINT", 64),
    ] {
        let half = 1i128 << (bits - 1);
        let mut signed = vec![-half, half - 1, 0, -1, 1];
        let mut unsigned = vec![0, half, 2 * half - 1, half - 1];
        for _ in 0..8 {
            let n = i128::from(random.random::<u64>()) % (2 * half);
            signed.push(n - half);
            unsigned.push(n);
        }
        let words = |numbers: Vec<i128>| numbers.iter().map(i128::to_string).collect();
        add(all, name, Look::Plain, words(signed));
        let definition: &'static str = Box::leak(format!("{name} UNSIGNED").into_boxed_str());
        add(all, definition, Look::Plain, words(unsigned));
    }
}

/// Numbers of so many digits before the point and behind it.
fn decimals(whole: usize, scale: usize, random: &mut StdRng) -> Vec<String> {
    let mut list: Vec<String> = texts(&["0", "-0.00"]);
    list.push(
        "9".repeat(whole.max(1))
            .chars()
            .take(whole)
            .chain("0.".chars())
            .collect::<String>()
            .replace("90.", "9."),
    );
    for _ in 0..10 {
        let digits = |n: usize, random: &mut StdRng| -> String {
            (0..n)
                .map(|_| char::from(b'0' + random.random_range(0..10u8)))
                .collect()
        };
        let length = random.random_range(0..=whole);
        let sign = if random.random() { "-" } else { "" };
        list.push(format!(
            "{sign}0{}.{}0",
            digits(length, random),
            digits(scale, random)
        ));
    }
    list.retain(|text| {
        text.trim_start_matches(['-', '0'])
            .split('.')
            .next()
            .unwrap_or("")
            .len()
            <= whole
    });
    list
}

fn add_decimals(all: &mut Vec<Sample>, random: &mut StdRng) {
    add(all, "DECIMAL(10,2)", Look::Plain, decimals(8, 2, random));
    add(all, "DECIMAL(65,30)", Look::Plain, decimals(35, 30, random));
    add(all, "DECIMAL(5,0)", Look::Plain, decimals(5, 0, random));
    add(all, "DECIMAL(9,9)", Look::Plain, decimals(0, 9, random));
    add(all, "DECIMAL(20,1)", Look::Plain, decimals(19, 1, random));
}

fn add_other_numbers(all: &mut Vec<Sample>, random: &mut StdRng) {
    let mut doubles = texts(&["0", "-0e0", "1e-300", "1.5", "-2.25e10", "1e20", "0.1"]);
    doubles.extend((0..8).map(|_| format!("{:e}", (random.random::<f64>() - 0.5) * 1e15)));
    add(all, "DOUBLE", Look::Plain, doubles);
    add(
        all,
        "FLOAT",
        Look::Float,
        texts(&["0", "0.1", "-3.25", "1e30", "16777217", "1.17549e-38"]),
    );
    let mut bits = texts(&["0", "1", "x'1fff'"]);
    bits.push(format!("{}", random.random_range(0..8192)));
    add(all, "BIT(13)", Look::Number, bits);
    add(
        all,
        "BIT(64)",
        Look::Number,
        texts(&["0", "18446744073709551615", "x'0102030405060708'"]),
    );
    add(all, "BIT(1)", Look::Number, texts(&["0", "1"]));
    add(
        all,
        "ENUM('a','b','ü')",
        Look::Number,
        texts(&["'a'", "'b'", "'ü'", "3"]),
    );
    add(
        all,
        "SET('p','q','r','s','t','u','v','w','x')",
        Look::Number,
        texts(&["''", "'p'", "'p,x'", "511", "'q,r'"]),
    );
}

fn add_times(all: &mut Vec<Sample>, random: &mut StdRng) {
    add(
        all,
        "YEAR",
        Look::Plain,
        texts(&["0", "1901", "2155", "2026", "1970"]),
    );
    add(
        all,
        "DATE",
        Look::Plain,
        texts(&[
            "'0000-00-00'",
            "'1000-01-01'",
            "'9999-12-31'",
            "'2026-02-28'",
            "'2024-02-29'",
            "'2024-00-00'",
        ]),
    );
    for digits in [0, 1, 2, 3, 4, 5, 6] {
        let fraction = |random: &mut StdRng| format!("{:06}", random.random_range(0..1_000_000));
        let mut times = texts(&[
            "'0'",
            "'-00:00:00.000001'",
            "'838:59:59'",
            "'-838:59:59'",
            "'-00:00:01'",
        ]);
        let mut datetimes = texts(&[
            "'0000-00-00 00:00:00'",
            "'1000-01-01 00:00:00'",
            "'9999-12-31 23:59:59'",
        ]);
        let mut timestamps = texts(&[
            "'0000-00-00 00:00:00'",
            "'1970-01-01 00:00:01'",
            "'2038-01-19 03:14:07'",
        ]);
        for _ in 0..6 {
            let sign = if random.random() { "-" } else { "" };
            let (h, m, s) = (
                random.random_range(0..838),
                random.random_range(0..60),
                random.random_range(0..60),
            );
            times.push(format!("'{sign}{h}:{m:02}:{s:02}.{}'", fraction(random)));
            let (y, mo, d) = (
                random.random_range(1971..2037),
                random.random_range(1..13),
                random.random_range(1..29),
            );
            let text = format!(
                "'{y}-{mo:02}-{d:02} {:02}:{m:02}:{s:02}.{}'",
                h % 24,
                fraction(random)
            );
            datetimes.push(text.clone());
            timestamps.push(text);
        }
        let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        add(all, leak(format!("TIME({digits})")), Look::Plain, times);
        add(
            all,
            leak(format!("DATETIME({digits})")),
            Look::Plain,
            datetimes,
        );
        add(
            all,
            leak(format!("TIMESTAMP({digits}) NULL")),
            Look::Plain,
            timestamps,
        );
    }
}

fn add_texts(all: &mut Vec<Sample>) {
    let words = texts(&[
        "''",
        "'a'",
        "'Grüße'",
        "'  spaces  '",
        "'\\0\\\\\\''",
        "'ä ö ü ß'",
    ]);
    for definition in [
        "CHAR(20)",
        "VARCHAR(30)",
        "VARCHAR(300)",
        "CHAR(200)",
        "TINYTEXT",
        "TEXT",
        "MEDIUMTEXT",
        "LONGTEXT",
        "VARCHAR(20) CHARACTER SET latin1",
        "CHAR(20) CHARACTER SET utf16",
        "VARCHAR(20) CHARACTER SET gbk",
    ] {
        let mut literals = words.clone();
        if !definition.contains("gbk") {
            literals.push("'0123456789 ÿ'".into());
        }
        if definition.contains("300") || definition.contains("TEXT") {
            literals.push("REPEAT('é', 120)".into());
        }
        if definition == "LONGTEXT" {
            literals.push("REPEAT('long', 20000)".into());
        }
        add(all, definition, Look::Hex, literals);
    }
}

fn add_bytes(all: &mut Vec<Sample>) {
    let bytes = texts(&[
        "''",
        "x'00'",
        "x'ff00ff00'",
        "x'2000'",
        "'abc  '",
        "x'0000000000000001'",
    ]);
    for definition in [
        "BINARY(8)",
        "BINARY(255)",
        "VARBINARY(40)",
        "VARBINARY(400)",
        "TINYBLOB",
        "BLOB",
        "MEDIUMBLOB",
        "LONGBLOB",
    ] {
        add(all, definition, Look::Hex, bytes.clone());
    }
    add(
        all,
        "GEOMETRY",
        Look::Hex,
        texts(&[
            "ST_GeomFromText('POINT(1 2)')",
            "ST_GeomFromText('LINESTRING(0 0,1 1,2 1)', 0)",
            "ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')",
        ]),
    );
}

fn add_types_of_mysql(all: &mut Vec<Sample>, random: &mut StdRng) {
    let mut documents = texts(&[
        "'null'",
        "'[]'",
        "'{}'",
        "'{\"a\": 1, \"b\": [true, false, null, -1, 65536, 4294967296, 18446744073709551615]}'",
        "'\"tab\\\\t quote\\\\\" \\\\u0001 ü\"'",
        "'[1.2345678901234567e18, 1.2345678901234567e19, -1.2345678901234567e20, 1.2345678901234567e21, 1.2345678901234567e22, 1e14, 1.5, 1e20, 1e300, 0.00001, 100.0, -0.0, 123456789012345680, 1e15, 1e16, 1e17, 1.7976931348623157e308, 5e-324, 0.000123]'",
        "JSON_ARRAY(REPEAT('x', 200), REPEAT('y', 70000), 70000, -70000)",
        "JSON_OBJECT('d', CAST('2026-01-02' AS DATE), 'n', CAST('-12.50' AS DECIMAL(10,2)), 't', CAST('-10:11:12.5' AS TIME(6)), 'dt', CAST('2026-01-02 03:04:05.6' AS DATETIME(6)), 'b', x'00ff10')",
        "'{\"deep\": [[[[{\"x\": {\"y\": [1, 2, {\"z\": \"end\"}]}}]]]]}'",
    ]);
    documents.extend((0..12).map(|_| {
        let exponent = random.random_range(-30..30);
        format!(
            "'[{}e{exponent}, {}]'",
            random.random::<f64>(),
            random.random::<i64>()
        )
    }));
    add(all, "JSON", Look::Plain, documents);
    add(
        all,
        "VECTOR(3)",
        Look::Hex,
        texts(&["STRING_TO_VECTOR('[1,2.5,-3]')"]),
    );
}

fn add_types_of_mariadb(all: &mut Vec<Sample>) {
    add(all, "JSON", Look::Hex, texts(&["'{\"a\":   1}'", "'[]'"]));
    add(
        all,
        "UUID",
        Look::Plain,
        texts(&[
            "'123e4567-e89b-12d3-a456-426655440000'",
            "'00000000-0000-0000-0000-000000000000'",
            "'ffffffff-ffff-4fff-bfff-ffffffffff00'",
            "'01234567-89ab-7cde-8f00-112233445566'",
        ]),
    );
    add(
        all,
        "INET6",
        Look::Hex,
        texts(&[
            "'::'",
            "'2001:db8::ff00:42:8300'",
            "'fe80::'",
            "'::ffff:1.2.3.4'",
        ]),
    );
    add(
        all,
        "INET4",
        Look::Hex,
        texts(&["'0.0.0.0'", "'10.0.0.0'", "'255.255.255.255'"]),
    );
}

/// The cell as SELECT shows it in the way that `look` asks for.
fn shown(value: &Value, look: Look, definition: &str) -> Option<Vec<u8>> {
    let digits: usize = definition
        .split_once('(')
        .and_then(|(_, rest)| rest.split(')').next())
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0);
    let fraction = |micros: u32| match digits {
        0 => String::new(),
        n => format!(".{}", &format!("{micros:06}")[..n.min(6)]),
    };
    let text = match value {
        Value::Null => return None,
        Value::Absent => panic!("absent"),
        Value::Int(n) => n.to_string(),
        Value::UInt(n) => n.to_string(),
        Value::Float(x) => f64::from(*x).to_string(),
        Value::Double(x) => x.to_string(),
        Value::Decimal(text) => text.clone(),
        Value::Bit(n) => n.to_string(),
        Value::Enum(n) => n.to_string(),
        Value::Set(n) => n.to_string(),
        Value::Year(n) => format!("{n:04}"),
        Value::Date(d) => format!("{:04}-{:02}-{:02}", d.year, d.month, d.day),
        Value::DateTime(d, t) => format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}{}",
            d.year,
            d.month,
            d.day,
            t.hour,
            t.minute,
            t.second,
            fraction(t.microsecond)
        ),
        Value::Timestamp(0, 0) => format!("0000-00-00 00:00:00{}", fraction(0)),
        Value::Timestamp(seconds, micros) => {
            let days = i64::from(*seconds / 86400);
            // Days since 0000-03-01, in eras of 400 years.
            let z = days + 719_468;
            let (era, of_era) = (z / 146_097, z % 146_097);
            let year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146_096) / 365;
            let of_year = of_era - (365 * year + year / 4 - year / 100);
            let month = (5 * of_year + 2) / 153;
            let day = of_year - (153 * month + 2) / 5 + 1;
            let month = if month < 10 { month + 3 } else { month - 9 };
            let year = year + era * 400 + i64::from(month <= 2);
            let s = seconds % 86400;
            format!(
                "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}{}",
                s / 3600,
                s / 60 % 60,
                s % 60,
                fraction(*micros)
            )
        }
        Value::Time { negative, time: t } => format!(
            "{}{:02}:{:02}:{:02}{}",
            if *negative { "-" } else { "" },
            t.hour,
            t.minute,
            t.second,
            fraction(t.microsecond)
        ),
        Value::Bytes(bytes) if look == Look::Hex => {
            bytes.iter().map(|byte| format!("{byte:02X}")).collect()
        }
        Value::Bytes(bytes) if definition == "UUID" => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!(
                "{}-{}-{}-{}-{}",
                &hex[..8],
                &hex[8..12],
                &hex[12..16],
                &hex[16..20],
                &hex[20..]
            )
        }
        Value::Bytes(bytes) => return Some(bytes.clone()),
        Value::Json(json) => json.text.clone(),
    };
    Some(text.into_bytes())
}

fn same(value: &Value, look: Look, definition: &str, cell: &Option<Vec<u8>>) -> bool {
    match (value, cell) {
        // As numbers: the texts differ, the bits must not.
        (Value::Float(x), Some(cell)) => {
            std::str::from_utf8(cell).unwrap().parse::<f64>().unwrap() == f64::from(*x)
        }
        (Value::Double(x), Some(cell)) => {
            std::str::from_utf8(cell).unwrap().parse::<f64>().unwrap() == *x
        }
        _ => shown(value, look, definition) == *cell,
    }
}

type Row = Vec<Option<Vec<u8>>>;

fn select(client: &mut Client, list: &str) -> HashMap<i64, Row> {
    let rows = client
        .query(&format!("SELECT id, {list} FROM d.t"))
        .unwrap();
    rows.into_iter()
        .map(|mut row| {
            let rest = row.split_off(1);
            let id = String::from_utf8(row[0].clone().unwrap()).unwrap();
            (id.parse().unwrap(), rest)
        })
        .collect()
}

/// What SELECT showed after all rows were inserted, and after some were changed.
struct Written {
    count: i64,
    inserted: HashMap<i64, Row>,
    updated: HashMap<i64, Row>,
}

/// Creates the table; returns what SELECT asks for.
fn create(client: &mut Client, samples: &[Sample]) -> String {
    let columns: Vec<String> = samples
        .iter()
        .enumerate()
        .map(|(i, s)| format!("c{i} {}", s.definition))
        .collect();
    client
        .query(&format!(
            "CREATE TABLE d.t (id BIGINT PRIMARY KEY, {}, g1 VARCHAR(40) AS (CONCAT(c0, 'x')) VIRTUAL, g2 INT AS (c0 + 1) STORED) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
            columns.join(", ")
        ))
        .unwrap();
    let list: Vec<String> = samples
        .iter()
        .enumerate()
        .map(|(i, sample)| match sample.look {
            Look::Plain => format!("c{i}"),
            Look::Number => format!("c{i}+0"),
            Look::Float => format!("c{i}+0e0"),
            Look::Hex if sample.definition.starts_with("INET") => {
                format!("HEX(CAST(c{i} AS BINARY))")
            }
            Look::Hex => format!("HEX(c{i})"),
        })
        .collect();
    list.join(", ")
}

/// A literal for each column.
fn choose(samples: &[Sample], random: &mut StdRng) -> Vec<String> {
    samples
        .iter()
        .map(|sample| match random.random_range(0..10) {
            0 => "NULL".into(),
            _ => sample.literals[random.random_range(0..sample.literals.len())].clone(),
        })
        .collect()
}

/// Writes rows, changes some, and deletes all.
fn write(
    client: &mut Client,
    samples: &[Sample],
    random: &mut StdRng,
    list: &str,
    rows: i64,
) -> Written {
    // In several transactions and with several rows to a statement.
    let mut id = 0;
    while id < rows {
        let count = random.random_range(1..6);
        let values: Vec<String> = (0..count)
            .map(|_| {
                id += 1;
                format!(
                    "({id}, {}, DEFAULT, DEFAULT)",
                    choose(samples, random).join(", ")
                )
            })
            .collect();
        client
            .query(&format!("INSERT INTO d.t VALUES {}", values.join(", ")))
            .unwrap();
    }
    let inserted = select(client, list);
    for target in 1..=id {
        if random.random_range(0..3) == 0 {
            let sets: Vec<String> = choose(samples, random)
                .iter()
                .enumerate()
                .map(|(i, v)| format!("c{i} = {v}"))
                .collect();
            client
                .query(&format!(
                    "UPDATE d.t SET {} WHERE id = {target}",
                    sets.join(", ")
                ))
                .unwrap();
        }
    }
    let updated = select(client, list);
    client.query("DELETE FROM d.t").unwrap();
    Written {
        count: id,
        inserted,
        updated,
    }
}

fn check(samples: &[Sample], image: &Option<Vec<Value>>, rows: &HashMap<i64, Row>, what: &str) {
    let row = image.as_ref().expect("an image");
    let Value::Int(id) = row[0] else {
        panic!("{:?}", row[0])
    };
    for (i, sample) in samples.iter().enumerate() {
        let cell = &rows[&id][i];
        assert!(
            same(&row[i + 1], sample.look, sample.definition, cell),
            "{what} {id}, c{i} {}: {:?} is shown as {:?}",
            sample.definition,
            row[i + 1],
            cell.as_ref()
                .map(|c| String::from_utf8_lossy(c).into_owned())
        );
    }
    // The stored one is always there.
    let expected = match &row[1] {
        Value::Int(n) => Value::Int(n + 1),
        other => other.clone(),
    };
    assert_eq!(row[samples.len() + 2], expected);
}

/// Writes random rows, updates and deletes them, and compares all images.
pub fn compare(server: &Server, rows: i64) {
    let seed: u64 = std::env::var("ONIONSKIN_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or_else(rand::random);
    println!("ONIONSKIN_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let samples = samples(server.kind(), &mut random);
    let mut client = client(server);
    client.query("SET sql_mode='', time_zone='+00:00'").unwrap();
    client
        .query("CREATE DATABASE d CHARACTER SET utf8mb4")
        .unwrap();
    let list = create(&mut client, &samples);
    let begin = now(server);
    let written = write(&mut client, &samples, &mut random, &list, rows);

    let described = TableColumns::describe(&mut client, &TableName::new("d", "t")).unwrap();
    assert_eq!(described.columns.len(), samples.len() + 3);
    assert!(described.columns[samples.len() + 1].virtual_column);
    let (mut inserts, mut updates, mut deletes) = (0, 0, 0);
    assert_eq!(tables(server, &["t"]).len(), 1);
    for item in follow(server, &["t"], &begin) {
        let Item::Transaction(transaction) = item.unwrap() else {
            continue;
        };
        for change in transaction.changes {
            let Change::Rows { kind, rows, .. } = change else {
                panic!("{change:?}")
            };
            for image in rows {
                match kind {
                    RowKind::Insert => {
                        check(&samples, &image.after, &written.inserted, "insert");
                        inserts += 1;
                    }
                    RowKind::Update => {
                        check(&samples, &image.before, &written.inserted, "before update");
                        check(&samples, &image.after, &written.updated, "after update");
                        updates += 1;
                    }
                    RowKind::Delete => {
                        check(&samples, &image.before, &written.updated, "delete");
                        deletes += 1;
                    }
                }
            }
        }
    }
    assert_eq!((inserts, deletes), (written.count, written.count));
    assert!(updates > 0);
}
