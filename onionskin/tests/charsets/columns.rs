//! Columns of a character set: what goes in and comes back, conditions, unique keys.

use super::*;

pub fn one_set(pair: &mut Pair, findings: &mut Findings, charset: Charset, family: Family) {
    let name = charset.name();
    let table = format!("t_{name}");
    let default = Collation::default_of(charset, family).expect("a collation");
    let (eq, range) = match default.is_searchable() {
        true => ("eq", "eq, range"),
        false => ("", ""),
    };
    create(
        pair,
        &format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, s VARCHAR(12) {{}}, e VARCHAR(12) {{{eq}}}, r CHAR(6) {{{range}}}, \
             b VARCHAR(12) COLLATE {name}_bin DEFAULT 'x' {{eq, range}}, l TEXT {{}}) CHARACTER SET {name}"
        ),
    );
    for sql in [
        format!("SHOW CREATE TABLE {table}"),
        format!("SHOW FULL COLUMNS FROM {table}"),
        format!(
            "SELECT COLUMN_NAME, CHARACTER_MAXIMUM_LENGTH, CHARACTER_OCTET_LENGTH, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_TYPE \
             FROM information_schema.columns WHERE table_schema = 'app' AND table_name = '{table}' ORDER BY ORDINAL_POSITION"
        ),
    ] {
        let (a, b) = (pair.plain.must(&sql), pair.protected.must(&sql));
        findings.compare(&sql, &a.text(), &b.text());
    }
    let mut id = 0;
    for mode in ["STRICT_TRANS_TABLES", ""] {
        pair.run(&format!("SET sql_mode = '{mode}'"));
        for text in TEXTS {
            for (column, value) in [
                ("s", text.to_owned()),
                ("e", format!("{text}{MARKER}")),
                ("r", text.to_owned()),
            ] {
                id += 1;
                let insert =
                    format!("INSERT INTO {table} (id, {column}, b, l) VALUES ({id}, ?, ?, ?)");
                let value = Value::from(value);
                write(
                    pair,
                    findings,
                    &insert,
                    &[value.clone(), Value::from(text), value],
                );
            }
        }
        // too long, with spaces and without
        for text in ["äbcdefghijklmn", "abcdef      ", "abcdefghijkl  "] {
            id += 1;
            let insert = format!("INSERT INTO {table} (id, r, b) VALUES ({id}, 'r', '{text}')");
            write(pair, findings, &insert, &[]);
            id += 1;
            let insert = format!("INSERT INTO {table} (id, r) VALUES ({id}, '{text}')");
            write(pair, findings, &insert, &[]);
        }
    }
    pair.run("SET sql_mode = DEFAULT");
    // of introducers of deprecated sets MySQL warns, the proxy does not
    let with_literals = family == Family::MariaDb || name != "ucs2";
    for text in TEXTS.iter().filter(|_| with_literals) {
        if let Some(bytes) = encoded(charset, text).filter(|bytes| !bytes.is_empty()) {
            id += 1;
            let literal = format!("_{name} x'{}'", hex(&bytes));
            write(
                pair,
                findings,
                &format!("INSERT INTO {table} (id, s, b) VALUES ({id}, {literal}, {literal})"),
                &[],
            );
            pair.compare(
                &format!("SELECT id FROM {table} WHERE b = {literal} ORDER BY id"),
                &[],
            );
        }
    }
    queries(pair, &table, default.is_searchable());
    if charset.has_ascii() {
        pair.run(&format!("SET NAMES {name}"));
        for text in TEXTS {
            if let Some(bytes) = encoded(charset, text) {
                id += 1;
                let value = Value::Bytes(bytes);
                let insert = format!("INSERT INTO {table} (id, s, e, b) VALUES ({id}, ?, ?, ?)");
                write(
                    pair,
                    findings,
                    &insert,
                    &[value.clone(), value.clone(), value.clone()],
                );
                pair.compare(
                    &format!("SELECT id, s, b FROM {table} WHERE b = ? ORDER BY id"),
                    &[value],
                );
            }
        }
        queries(pair, &table, default.is_searchable());
    }
    for results in ["latin1", "gbk", "cp1251", "NULL", "binary"] {
        pair.run("SET NAMES utf8mb4");
        pair.run(&format!("SET character_set_results = {results}"));
        pair.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
        pair.compare(&format!("SELECT MIN(b), MAX(b) FROM {table}"), &[]);
    }
    pair.run("SET NAMES utf8mb4");
    let word = ["äb", "жb", "中b"]
        .into_iter()
        .find(|word| encoded(charset, word).is_some())
        .expect("a word");
    pair.both(&format!(
        "UPDATE {table} SET s = 'ABC', e = 'abc', b = '{word}' WHERE b = 'abc'"
    ));
    pair.both(&format!(
        "UPDATE {table} SET b = '{word}' WHERE b = '{word}'"
    ));
    pair.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
}

fn queries(pair: &mut Pair, table: &str, searchable: bool) {
    pair.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
    pair.compare(&format!("SELECT id, b FROM {table} ORDER BY b, id"), &[]);
    pair.compare(
        &format!(
            "SELECT id, CONCAT(s, '!'), LENGTH(e), CHAR_LENGTH(l), HEX(r) FROM {table} ORDER BY id"
        ),
        &[],
    );
    pair.compare(
        &format!("SELECT id FROM {table} WHERE b LIKE 'a%' OR b LIKE '%\\\\%' ORDER BY id"),
        &[],
    );
    pair.compare(
        &format!("SELECT COUNT(*) FROM {table} GROUP BY b ORDER BY b"),
        &[],
    );
    for constant in ["'abc'", "'ABC  '", "'ab'", "''", "'a''b\\\\c'"] {
        pair.compare(
            &format!("SELECT id FROM {table} WHERE b = {constant} ORDER BY id"),
            &[],
        );
        pair.compare(
            &format!("SELECT id FROM {table} WHERE b > {constant} ORDER BY id"),
            &[],
        );
        pair.compare(
            &format!("SELECT id FROM {table} WHERE e = {constant} ORDER BY id"),
            &[],
        );
        if searchable {
            pair.compare(
                &format!("SELECT id FROM {table} WHERE r >= {constant} ORDER BY id"),
                &[],
            );
            pair.compare(
                &format!("SELECT id FROM {table} WHERE e LIKE {constant} ORDER BY id"),
                &[],
            );
        }
    }
    if searchable {
        pair.compare(&format!("SELECT id, r FROM {table} ORDER BY r, id"), &[]);
        pair.compare(&format!("SELECT id, e FROM {table} ORDER BY e, id"), &[]);
        pair.compare(
            &format!("SELECT COUNT(DISTINCT e), COUNT(DISTINCT r) FROM {table}"),
            &[],
        );
        pair.compare(&format!("SELECT MIN(r), MAX(r) FROM {table}"), &[]);
        pair.compare(
            &format!("SELECT id FROM {table} WHERE e LIKE '%b_%' ORDER BY id"),
            &[],
        );
    }
}

/// Values that are one to the collation meet in a unique key.
pub fn unique_keys(pair: &mut Pair, findings: &mut Findings, sets: &[Charset], family: Family) {
    for charset in sets {
        let name = charset.name();
        let collations = [
            Collation::default_of(*charset, family),
            Collation::from_name(&format!("{name}_bin")),
        ];
        for collation in collations
            .into_iter()
            .flatten()
            .filter(|c| c.is_searchable())
        {
            let collation = collation.name();
            let table = format!("u_{collation}");
            create(
                pair,
                &format!(
                    "CREATE TABLE {table} (id INT PRIMARY KEY, n VARCHAR(9) CHARACTER SET {name} COLLATE {collation} {{eq}}, UNIQUE KEY n (n))"
                ),
            );
            for (id, text) in (1..).zip([
                "abc", "ABC", "abc ", "Äb", "äb", "äB", "ж", "Ж", "中", "a", "a\\t",
            ]) {
                // what the set lacks would be a question mark: an error in strict mode
                let insert = format!("INSERT INTO {table} VALUES ({id}, '{text}')");
                write(pair, findings, &insert, &[]);
            }
            pair.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
        }
    }
}
