//! ENUM and SET of every character set.

use super::*;

/// Names of members, of which no set has all. No collation takes two of them for one.
const MEMBERS: [&str; 10] = [
    "abc", "x y", "it's", "Äb", "ÿ", "Жук", "中文", "縗x", "ソ", "한글",
];

/// ENUM and SET: what names a member by the column's collation, in the session's character set, and
/// how members are shown.
pub fn members(pair: &mut Pair, findings: &mut Findings, charset: Charset, family: Family) {
    if !charset.has_ascii() {
        return;
    }
    let name = charset.name();
    let table = format!("m_{name}");
    let default = Collation::default_of(charset, family).filter(|c| c.is_searchable());
    let collation = default.map_or(format!("{name}_bin"), |c| c.name().to_owned());
    let known = |text: &&&str| encoded(charset, text).is_some();
    let words: Vec<&str> = MEMBERS.iter().filter(known).copied().collect();
    let quoted: Vec<String> = words.iter().map(|w| quoted_text(w)).collect();
    let list = quoted.join(", ");
    let last = words[words.len() - 1];
    let both = quoted_text(&format!("abc,{last}"));
    create(
        pair,
        &format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, e ENUM({list}) {{eq, range}}, s SET({list}) DEFAULT {both} {{eq}}, \
             n ENUM({list}) NOT NULL {{}}) CHARACTER SET {name} COLLATE {collation}"
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
    let mut given: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    given.extend(["ABC", "abc  ", "äB", "жУК", "abd", "ж", "", "2", "99", "😀"].map(String::from));
    given.push(format!("{last},abc"));
    given.push(format!("abc,{last}"));
    let mut id = 0;
    let sessions = ["utf8mb4", name];
    for session in sessions {
        pair.run(&format!("SET NAMES {session}"));
        let of_session = Charset::from_name(session).expect(session);
        for mode in ["STRICT_TRANS_TABLES", ""] {
            pair.run(&format!("SET sql_mode = '{mode}'"));
            for text in &given {
                let Some(bytes) = encoded(of_session, text) else {
                    continue;
                };
                id += 1;
                let value = Value::Bytes(bytes);
                let insert = format!("INSERT INTO {table} (id, e) VALUES ({id}, ?)");
                write(pair, findings, &insert, std::slice::from_ref(&value));
                id += 1;
                let insert = format!("INSERT INTO {table} (id, s) VALUES ({id}, ?)");
                write(pair, findings, &insert, &[value]);
            }
        }
        pair.run("SET sql_mode = DEFAULT");
        pair.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
        pair.compare(&format!("SELECT id, e FROM {table} ORDER BY e, id"), &[]);
        pair.compare(
            &format!("SELECT e, COUNT(*) FROM {table} GROUP BY e ORDER BY e"),
            &[],
        );
        pair.compare(
            &format!("SELECT id, CONCAT(n, s, '!'), HEX(s), n + 0 FROM {table} ORDER BY id"),
            &[],
        );
    }
    pair.run("SET NAMES utf8mb4");
    // what the column's set lacks, or reads as a number, is refused in conditions
    for text in given.iter().filter(|text| encoded(charset, text).is_some()) {
        if text.parse::<u8>().is_ok() {
            continue;
        }
        let text = quoted_text(text);
        for column in ["e", "s"] {
            pair.compare(
                &format!("SELECT id FROM {table} WHERE {column} = {text} ORDER BY id"),
                &[],
            );
        }
    }
    for results in ["latin1", "cp1251", "binary"] {
        pair.run(&format!("SET character_set_results = {results}"));
        pair.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
    }
    pair.run("SET NAMES utf8mb4");
    let last = quoted_text(last);
    pair.both(&format!(
        "UPDATE {table} SET e = {last}, s = 'abc' WHERE e = 'abc'"
    ));
    pair.both(&format!("UPDATE {table} SET n = {last} WHERE e = {last}"));
    pair.both(&format!("DELETE FROM {table} WHERE s = {last}"));
    pair.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
    pair.compare(
        &format!("SELECT id, LOWER(n) FROM {table} ORDER BY id"),
        &[],
    );
}

fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Of these, what the servers do is not known, or not done.
pub fn members_that_are_refused(pair: &mut Pair) {
    for definition in [
        "ENUM('a') CHARACTER SET utf16",
        "SET('a') CHARACTER SET ucs2",
        "ENUM('a') CHARACTER SET utf32",
        "ENUM('a') CHARACTER SET tis620",
        "ENUM('a') CHARACTER SET swe7",
        "ENUM('a') CHARACTER SET sjis",
        "ENUM('a') CHARACTER SET big5",
        "ENUM('晡') COLLATE cp932_bin",
        "ENUM('Ж') CHARACTER SET latin2",
    ] {
        let sql = format!("CREATE TABLE refused (id INT, e {definition} ENCRYPTED FOR ())");
        let failure = pair.protected.run(&sql).expect_err(&sql);
        assert!(failure.message.starts_with("OS1013"), "{sql}: {failure}");
    }
}
