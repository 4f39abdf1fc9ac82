//! Columns and connections of every character set that the servers have, against a plain server: what goes in and comes back
//! in both protocols, what is equal, ordered, grouped and LIKE, keys that collations take for equal, what a set lacks under
//! strict mode and without it, and texts whose bytes look like quotes. Nothing of it reaches the server's files.
//!
//! The tables behind this (`crates/value/charsets`) are compared with both servers, every character of every set and every
//! weight of every collation.

mod support;

#[allow(dead_code)] // of what the tests of the scratch engine need besides
#[path = "scratch/twins.rs"]
mod twins;

use ::mysql::Value;
use ::mysql::prelude::Queryable;
use onionskin_value::{
    Charset, Collation, Escape, Family, Input, LikePattern, SqlType, cmp, weight,
};
use support::*;
use twins::{Twins, twins};

on_both_servers!(columns_and_connections, tables_are_the_servers);

/// Sets besides those that other tests are about; the servers do not have all of them.
const SETS: &[&str] = &[
    "gbk", "gb18030", "utf16", "utf16le", "ucs2", "utf32", "big5", "cp932", "euckr", "gb2312",
    "ujis", "eucjpms", "latin2", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866",
    "dec8", "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin5", "latin7",
    "macce", "macroman", "armscii8",
];

/// MariaDB does not have them.
const OF_MYSQL: &[&str] = &["gb18030"];

/// Those that get tables of their own; the others differ from them by their tables only.
const WITH_TABLES: &[&str] = &[
    "gbk", "gb18030", "utf16", "utf16le", "ucs2", "utf32", "big5", "cp932", "latin2", "cp1251",
];

const MARKER: &str = "Kw7Rz2Ph";

/// Texts, of which no set has all.
const TEXTS: [&str; 16] = [
    "abc", "ABC", "abc  ", "Äbc", "äbc", "ł€", "Жук", "жук", "中文", "縗x", "ソ", "한글", "😀",
    "a'b\\c", "%_", "",
];

fn family(kind: Kind) -> Family {
    match kind {
        Kind::MariaDb => Family::MariaDb,
        Kind::MySql => Family::MySql,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The text in a character set; `None` where that lacks a part of it.
fn encoded(charset: Charset, text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    text.chars()
        .all(|c| charset.encode(u32::from(c), &mut out))
        .then_some(out)
}

/// The sets of the list that a server of this kind has.
fn known_sets(kind: Kind, names: &[&str]) -> Vec<Charset> {
    names
        .iter()
        .filter(|name| kind == Kind::MySql || !OF_MYSQL.contains(*name))
        .map(|name| Charset::from_name(name).expect(name))
        .collect()
}

/// What was not the same, or not allowed.
#[derive(Default)]
struct Findings {
    refused: Vec<String>,
    different: Vec<String>,
}

impl Findings {
    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, about: &str, plain: &T, protected: &T) {
        if plain != protected {
            let text = format!("{about}\n  {plain:?}\n  but {protected:?}");
            let text = text.chars().take(2000).collect();
            self.different.push(text);
        }
    }

    /// What was refused since it was asked for last.
    fn refused(&mut self, about: &str) -> Vec<String> {
        let refused = std::mem::take(&mut self.refused);
        announce(&format!("{about}: {} statements refused", refused.len()));
        refused
    }

    /// Panics if anything was different.
    fn conclude(&self) {
        let different = &self.different;
        assert!(
            different.is_empty(),
            "{} different:\n{}",
            different.len(),
            different[..different.len().min(40)].join("\n")
        );
    }
}

/// Runs a statement that writes, through the proxy first; one that it refuses is spared the plain server. Both answer alike.
fn write(twins: &mut Twins, findings: &mut Findings, sql: &str, parameters: &[Value]) {
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
        let text = format!("{sql} {parameters:?}: {failure}");
        findings.refused.push(text);
        return;
    }
    let plain = run(&mut twins.plain);
    // what the value is called matters; other texts name collations and keys
    let said = |f: Failure| {
        let shown = matches!(f.code, 1366 | 1406).then_some(f.message);
        (f.code, f.state, shown)
    };
    let about = format!("{sql} {parameters:?}");
    findings.compare(&about, &plain.map_err(said), &protected.map_err(said));
}

fn columns_and_connections(kind: Kind) {
    let Some(mut twins) = twins(kind, "") else {
        return;
    };
    let mut findings = Findings::default();
    let sets = known_sets(kind, WITH_TABLES);
    for charset in &sets {
        one_set(&mut twins, &mut findings, *charset, family(kind));
    }
    assert_eq!(findings.refused("columns"), [""; 0]);
    unique_keys(&mut twins, &mut findings, &sets, family(kind));
    assert_eq!(findings.refused("unique keys"), [""; 0]);
    for charset in known_sets(kind, SETS) {
        members(&mut twins, &mut findings, charset, family(kind));
    }
    assert_eq!(findings.refused("members"), [""; 0]);
    members_that_are_refused(&mut twins);
    a_name_of_mysqls(&mut twins, kind);
    a_name_of_mysqls_beside_protected_columns(&mut twins);
    connections(&mut twins, &mut findings, kind);
    // texts that the column's set lacks, in conditions
    let refused = findings.refused("connections");
    let fits = |r: &String| r.contains("WHERE a = ");
    assert!(refused.iter().all(fits), "{refused:#?}");
    connections_that_convert(&mut twins, &mut findings);
    texts_that_hide_quotes(&mut twins, &mut findings, kind);
    assert_eq!(findings.refused("hidden quotes"), [""; 0]);
    what_was_prepared_before(&mut twins, kind);
    several_statements(&mut twins);
    names_beyond_ascii(&mut twins);
    findings.conclude();
    twins.conclude(0);
    nothing_leaked(&mut twins, &sets);
}

/// Later versions of MariaDB take the name for weights of their own, which are not those known by it.
fn a_name_of_mysqls(twins: &mut Twins, kind: Kind) {
    for (column, table) in [
        ("COLLATE utf8mb4_0900_ai_ci", ""),
        ("", "COLLATE utf8mb4_0900_ai_ci"),
    ] {
        let sql = format!(
            "CREATE TABLE mysqls (id INT, c VARCHAR(9) {column} ENCRYPTED FOR (eq)) {table}"
        );
        let answer = twins.protected.run(&sql);
        match kind {
            Kind::MySql => drop((
                answer.expect(&sql),
                twins.protected.must("DROP TABLE mysqls"),
            )),
            Kind::MariaDb => {
                let failure = answer.expect_err(&sql);
                let advice = "utf8mb4_uca1400_nopad_ai_ci";
                assert!(failure.message.contains(advice), "{sql}: {failure}");
            }
        }
    }
}

/// A plain column of that name is compared as the server means it: the letters are equal to MariaDB; the tables behind
/// MySQL's collation do not have them.
fn a_name_of_mysqls_beside_protected_columns(twins: &mut Twins) {
    for (session, protection) in [
        (&mut twins.plain, ""),
        (&mut twins.protected, "ENCRYPTED FOR ()"),
    ] {
        let created = session.run(&format!(
            "CREATE TABLE named (id INT PRIMARY KEY, s VARCHAR(9) {protection}, p VARCHAR(9) COLLATE utf8mb4_0900_ai_ci)"
        ));
        if created.is_err() {
            // MariaDB 10.11
            return;
        }
        session.must(
            "INSERT INTO named VALUES (1, 'x', 'Ꞻ'), (2, 'x', 'ꞻ'), (3, 'x', 'Ꞔ'), (4, 'x', 'ꞔ')",
        );
    }
    for sql in [
        "SELECT COUNT(*) FROM named WHERE p = 'ꞻ' AND s = 'x'",
        "SELECT COUNT(DISTINCT s, p) FROM named",
        "SELECT COUNT(*) FROM named GROUP BY s, p",
        "SELECT s, COUNT(DISTINCT p) FROM named GROUP BY s",
        "SELECT COUNT(*) FROM (SELECT DISTINCT p, s FROM named) d",
        "SELECT COUNT(*) FROM named WHERE s = p",
        "SELECT id FROM named ORDER BY s, p, id DESC",
        "SELECT COUNT(*) FROM named a JOIN named b ON a.p = b.p AND a.s = b.s",
        "SELECT MAX(s), COUNT(DISTINCT p) FROM named",
        "SELECT COUNT(*) FROM (SELECT s, p FROM named UNION SELECT s, p FROM named) u",
        "SELECT s, COUNT(*) FROM named GROUP BY p, s ORDER BY s, p LIMIT 1, 1",
        "SELECT MAX(id) FROM named WHERE s LIKE 'x' AND p LIKE 'ꞻ'",
    ] {
        let said = [&mut twins.plain, &mut twins.protected].map(|session| {
            let answer = session.run(sql);
            answer.map(|o| o.text()).map_err(|failure| failure.code)
        });
        assert_eq!(said[0], said[1], "{sql}");
    }
    twins.both("DROP TABLE named");
}

fn create(twins: &mut Twins, definition: &str) {
    let (mut protected, mut bare) = (String::new(), String::new());
    for part in definition.split_inclusive('}') {
        let (text, words) = part.split_once('{').unwrap_or((part, ""));
        protected += text;
        bare += text;
        if let Some(words) = words.strip_suffix('}') {
            protected += &format!("ENCRYPTED FOR ({words})");
        }
    }
    twins.plain.must(&bare);
    twins.protected.must(&protected);
}

fn one_set(twins: &mut Twins, findings: &mut Findings, charset: Charset, family: Family) {
    let name = charset.name();
    let table = format!("t_{name}");
    let default = Collation::default_of(charset, family).expect("a collation");
    let (eq, range) = match default.is_searchable() {
        true => ("eq", "eq, range"),
        false => ("", ""),
    };
    create(
        twins,
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
        let (a, b) = (twins.plain.must(&sql), twins.protected.must(&sql));
        findings.compare(&sql, &a.text(), &b.text());
    }
    let mut id = 0;
    for mode in ["STRICT_TRANS_TABLES", ""] {
        twins.both_text(&format!("SET sql_mode = '{mode}'"));
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
                    twins,
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
            write(twins, findings, &insert, &[]);
            id += 1;
            let insert = format!("INSERT INTO {table} (id, r) VALUES ({id}, '{text}')");
            write(twins, findings, &insert, &[]);
        }
    }
    twins.both_text("SET sql_mode = DEFAULT");
    // of introducers of deprecated sets MySQL warns, the proxy does not
    let with_literals = family == Family::MariaDb || name != "ucs2";
    for text in TEXTS.iter().filter(|_| with_literals) {
        if let Some(bytes) = encoded(charset, text).filter(|bytes| !bytes.is_empty()) {
            id += 1;
            let literal = format!("_{name} x'{}'", hex(&bytes));
            write(
                twins,
                findings,
                &format!("INSERT INTO {table} (id, s, b) VALUES ({id}, {literal}, {literal})"),
                &[],
            );
            twins.compare(
                &format!("SELECT id FROM {table} WHERE b = {literal} ORDER BY id"),
                &[],
            );
        }
    }
    queries(twins, &table, default.is_searchable());
    if charset.has_ascii() {
        twins.both_text(&format!("SET NAMES {name}"));
        for text in TEXTS {
            if let Some(bytes) = encoded(charset, text) {
                id += 1;
                let value = Value::Bytes(bytes);
                let insert = format!("INSERT INTO {table} (id, s, e, b) VALUES ({id}, ?, ?, ?)");
                write(
                    twins,
                    findings,
                    &insert,
                    &[value.clone(), value.clone(), value.clone()],
                );
                twins.compare(
                    &format!("SELECT id, s, b FROM {table} WHERE b = ? ORDER BY id"),
                    &[value],
                );
            }
        }
        queries(twins, &table, default.is_searchable());
    }
    for results in ["latin1", "gbk", "cp1251", "NULL", "binary"] {
        twins.both_text("SET NAMES utf8mb4");
        twins.both_text(&format!("SET character_set_results = {results}"));
        twins.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
        twins.compare(&format!("SELECT MIN(b), MAX(b) FROM {table}"), &[]);
    }
    twins.both_text("SET NAMES utf8mb4");
    let word = ["äb", "жb", "中b"]
        .into_iter()
        .find(|word| encoded(charset, word).is_some())
        .expect("a word");
    twins.both(&format!(
        "UPDATE {table} SET s = 'ABC', e = 'abc', b = '{word}' WHERE b = 'abc'"
    ));
    twins.both(&format!(
        "UPDATE {table} SET b = '{word}' WHERE b = '{word}'"
    ));
    twins.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
}

fn queries(twins: &mut Twins, table: &str, searchable: bool) {
    twins.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
    twins.compare(&format!("SELECT id, b FROM {table} ORDER BY b, id"), &[]);
    twins.compare(
        &format!(
            "SELECT id, CONCAT(s, '!'), LENGTH(e), CHAR_LENGTH(l), HEX(r) FROM {table} ORDER BY id"
        ),
        &[],
    );
    twins.compare(
        &format!("SELECT id FROM {table} WHERE b LIKE 'a%' OR b LIKE '%\\\\%' ORDER BY id"),
        &[],
    );
    twins.compare(
        &format!("SELECT COUNT(*) FROM {table} GROUP BY b ORDER BY b"),
        &[],
    );
    for constant in ["'abc'", "'ABC  '", "'ab'", "''", "'a''b\\\\c'"] {
        twins.compare(
            &format!("SELECT id FROM {table} WHERE b = {constant} ORDER BY id"),
            &[],
        );
        twins.compare(
            &format!("SELECT id FROM {table} WHERE b > {constant} ORDER BY id"),
            &[],
        );
        twins.compare(
            &format!("SELECT id FROM {table} WHERE e = {constant} ORDER BY id"),
            &[],
        );
        if searchable {
            twins.compare(
                &format!("SELECT id FROM {table} WHERE r >= {constant} ORDER BY id"),
                &[],
            );
            twins.compare(
                &format!("SELECT id FROM {table} WHERE e LIKE {constant} ORDER BY id"),
                &[],
            );
        }
    }
    if searchable {
        twins.compare(&format!("SELECT id, r FROM {table} ORDER BY r, id"), &[]);
        twins.compare(&format!("SELECT id, e FROM {table} ORDER BY e, id"), &[]);
        twins.compare(
            &format!("SELECT COUNT(DISTINCT e), COUNT(DISTINCT r) FROM {table}"),
            &[],
        );
        twins.compare(&format!("SELECT MIN(r), MAX(r) FROM {table}"), &[]);
        twins.compare(
            &format!("SELECT id FROM {table} WHERE e LIKE '%b_%' ORDER BY id"),
            &[],
        );
    }
}

/// Values that are one to the collation meet in a unique key.
fn unique_keys(twins: &mut Twins, findings: &mut Findings, sets: &[Charset], family: Family) {
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
                twins,
                &format!(
                    "CREATE TABLE {table} (id INT PRIMARY KEY, n VARCHAR(9) CHARACTER SET {name} COLLATE {collation} {{eq}}, UNIQUE KEY n (n))"
                ),
            );
            for (id, text) in (1..).zip([
                "abc", "ABC", "abc ", "Äb", "äb", "äB", "ж", "Ж", "中", "a", "a\\t",
            ]) {
                // what the set lacks would be a question mark: an error in strict mode
                let insert = format!("INSERT INTO {table} VALUES ({id}, '{text}')");
                write(twins, findings, &insert, &[]);
            }
            twins.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
        }
    }
}

/// Names of members, of which no set has all. No collation takes two of them for one.
const MEMBERS: [&str; 10] = [
    "abc", "x y", "it's", "Äb", "ÿ", "Жук", "中文", "縗x", "ソ", "한글",
];

/// ENUM and SET: what names a member by the column's collation, in the session's character set, and how members are shown.
fn members(twins: &mut Twins, findings: &mut Findings, charset: Charset, family: Family) {
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
        twins,
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
        let (a, b) = (twins.plain.must(&sql), twins.protected.must(&sql));
        findings.compare(&sql, &a.text(), &b.text());
    }
    let mut given: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    given.extend(["ABC", "abc  ", "äB", "жУК", "abd", "ж", "", "2", "99", "😀"].map(String::from));
    given.push(format!("{last},abc"));
    given.push(format!("abc,{last}"));
    let mut id = 0;
    let sessions = ["utf8mb4", name];
    for session in sessions {
        twins.both_text(&format!("SET NAMES {session}"));
        let of_session = Charset::from_name(session).expect(session);
        for mode in ["STRICT_TRANS_TABLES", ""] {
            twins.both_text(&format!("SET sql_mode = '{mode}'"));
            for text in &given {
                let Some(bytes) = encoded(of_session, text) else {
                    continue;
                };
                id += 1;
                let value = Value::Bytes(bytes);
                let insert = format!("INSERT INTO {table} (id, e) VALUES ({id}, ?)");
                write(twins, findings, &insert, std::slice::from_ref(&value));
                id += 1;
                let insert = format!("INSERT INTO {table} (id, s) VALUES ({id}, ?)");
                write(twins, findings, &insert, &[value]);
            }
        }
        twins.both_text("SET sql_mode = DEFAULT");
        twins.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
        twins.compare(&format!("SELECT id, e FROM {table} ORDER BY e, id"), &[]);
        twins.compare(
            &format!("SELECT e, COUNT(*) FROM {table} GROUP BY e ORDER BY e"),
            &[],
        );
        twins.compare(
            &format!("SELECT id, CONCAT(n, s, '!'), HEX(s), n + 0 FROM {table} ORDER BY id"),
            &[],
        );
    }
    twins.both_text("SET NAMES utf8mb4");
    // what the column's set lacks, or reads as a number, is refused in conditions
    for text in given.iter().filter(|text| encoded(charset, text).is_some()) {
        if text.parse::<u8>().is_ok() {
            continue;
        }
        let text = quoted_text(text);
        for column in ["e", "s"] {
            twins.compare(
                &format!("SELECT id FROM {table} WHERE {column} = {text} ORDER BY id"),
                &[],
            );
        }
    }
    for results in ["latin1", "cp1251", "binary"] {
        twins.both_text(&format!("SET character_set_results = {results}"));
        twins.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
    }
    twins.both_text("SET NAMES utf8mb4");
    let last = quoted_text(last);
    twins.both(&format!(
        "UPDATE {table} SET e = {last}, s = 'abc' WHERE e = 'abc'"
    ));
    twins.both(&format!("UPDATE {table} SET n = {last} WHERE e = {last}"));
    twins.both(&format!("DELETE FROM {table} WHERE s = {last}"));
    twins.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
    twins.compare(
        &format!("SELECT id, LOWER(n) FROM {table} ORDER BY id"),
        &[],
    );
}

fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Of these, what the servers do is not known, or not done.
fn members_that_are_refused(twins: &mut Twins) {
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
        let failure = twins.protected.run(&sql).expect_err(&sql);
        assert!(failure.message.starts_with("OS1013"), "{sql}: {failure}");
    }
}

/// Everything that a side says to a statement.
fn answer(client: &mut RawClient, sql: &[u8]) -> Vec<Reply> {
    client.command(3, sql);
    let mut all = Vec::new();
    let mut ends = 0;
    loop {
        let mut reply = client.read();
        let last = match &mut reply {
            Reply::Packet(packet) if all.is_empty() && packet.first() == Some(&0) => {
                // whether an index was used depends on the physical table: 0x20 of the status, behind two numbers of one byte
                packet[3] &= !0x20;
                true
            }
            Reply::Packet(_) if all.is_empty() => false,
            Reply::Packet(packet) => {
                ends += usize::from(packet.first() == Some(&0xfe) && packet.len() < 9);
                ends == 2
            }
            _ => true,
        };
        all.push(reply);
        if last {
            return all;
        }
    }
}

/// A statement in which `{c}` stands for bytes.
fn filled(sql: &str, table: &str, bytes: &[u8]) -> Vec<u8> {
    let sql = sql.replace("{t}", table);
    let mut out = Vec::new();
    for (at, part) in sql.split("{c}").enumerate() {
        out.extend_from_slice(if at > 0 { bytes } else { b"" });
        out.extend_from_slice(part.as_bytes());
    }
    out
}

/// Whether the proxy itself has refused the statement.
fn is_refusal(answer: &[Reply]) -> bool {
    matches!(answer.first(), Some(Reply::Error(_, message)) if message.contains("OS1"))
}

/// Every character set that a client may use, in the text protocol: what it says reaches columns of other sets, and comes back.
fn connections(twins: &mut Twins, findings: &mut Findings, kind: Kind) {
    let mut plain = RawClient::login(twins.plain_server.port());
    let mut protected = RawClient::login(twins.proxy.port());
    let mut id = 5000;
    let tables = [("t_all", "utf8mb4"), ("t_far", "gbk"), ("t_near", "latin2")];
    for (table, charset) in tables {
        create(
            twins,
            &format!(
                "CREATE TABLE {table} (id INT PRIMARY KEY, a VARCHAR(40) {{eq}}, p VARCHAR(40)) CHARACTER SET {charset} COLLATE {charset}_bin"
            ),
        );
    }
    for client in [&mut plain, &mut protected] {
        answer(client, b"USE app");
    }
    let sets = known_sets(kind, SETS).into_iter();
    for charset in sets.filter(|c| c.has_ascii()) {
        let name = charset.name();
        for client in [&mut plain, &mut protected] {
            answer(client, format!("SET NAMES {name}").as_bytes());
        }
        let texts = TEXTS.iter().filter(|t| !t.contains('\''));
        let texts: Vec<Vec<u8>> = texts.filter_map(|t| encoded(charset, t)).collect();
        assert!(texts.len() >= 5, "{name}");
        for (table, _) in tables {
            let mut ask = |sql: &[u8]| {
                let (a, b) = (answer(&mut plain, sql), answer(&mut protected, sql));
                let shown = format!("{name}: {}", String::from_utf8_lossy(sql));
                match is_refusal(&b) {
                    true => findings.refused.push(format!("{shown}: {b:?}")),
                    false => findings.compare(&shown, &a, &b),
                }
            };
            let first = id + 1;
            for text in &texts {
                id += 1;
                let insert = format!("INSERT INTO {{t}} VALUES ({id}, '{{c}}', '{{c}}')");
                ask(&filled(&insert, table, text));
                ask(&filled(
                    "SELECT COUNT(*) FROM {t} WHERE a = '{c}'",
                    table,
                    text,
                ));
            }
            ask(format!("SELECT a, p FROM {table} WHERE id >= {first} ORDER BY id").as_bytes());
            ask(format!("SELECT MAX(a) FROM {table} WHERE id >= {first}").as_bytes());
        }
    }
}

/// The server makes every literal the connection's before it is anything else, and loses what that lacks. The same, or an error.
fn connections_that_convert(twins: &mut Twins, findings: &mut Findings) {
    create(
        twins,
        "CREATE TABLE t_conn (id INT PRIMARY KEY, a VARCHAR(40) {eq}, g VARCHAR(40) CHARACTER SET gbk {}) CHARACTER SET utf8mb4",
    );
    let mut id = 0;
    for connection in ["gbk", "latin1", "cp1251", "binary", "utf8mb4"] {
        twins.both_text("SET NAMES utf8mb4");
        twins.both_text(&format!("SET character_set_connection = {connection}"));
        for mode in ["STRICT_TRANS_TABLES", ""] {
            twins.both_text(&format!("SET sql_mode = '{mode}'"));
            for text in ["abc", "Äbc", "Жук", "中文", "😀"] {
                id += 1;
                let sql = format!("INSERT INTO t_conn VALUES ({id}, '{text}', '{text}')");
                write(twins, findings, &sql, &[]);
                id += 1;
                let sql = format!("INSERT INTO t_conn VALUES ({id}, ?, ?)");
                write(twins, findings, &sql, &[text.into(), text.into()]);
                twins.compare(&format!("SELECT id FROM t_conn WHERE a = '{text}'"), &[]);
            }
        }
    }
    twins.both_text("SET NAMES utf8mb4");
    twins.both_text("SET sql_mode = DEFAULT");
    twins.compare("SELECT * FROM t_conn ORDER BY id", &[]);
    let refused = findings.refused("conversions");
    // what the connection's set lacks
    let loses = |r: &String| r.contains("Жук") || r.contains("中文") || r.contains("😀");
    assert!(
        refused.len() <= 2 && refused.iter().all(loses),
        "{refused:#?}"
    );
}

/// In gbk `0xBF 0x5C` is a character, though its second byte is a backslash; in cp932 `0x83 0x5C` is. Who reads bytes ends the string
/// somewhere else than the server does.
fn texts_that_hide_quotes(twins: &mut Twins, findings: &mut Findings, kind: Kind) {
    let mut plain = RawClient::login(twins.plain_server.port());
    let mut protected = RawClient::login(twins.proxy.port());
    for charset in known_sets(kind, &["gbk", "gb18030", "big5", "cp932"]) {
        // one with a backslash, and one byte that begins a character
        let (first, half): (&[u8], &[u8]) = match charset.name() {
            "big5" => (b"\xa4\x5c", b"\xa4"),
            "cp932" => (b"\x83\x5c", b"\x83"),
            _ => (b"\xbf\x5c", b"\xbf"),
        };
        let charset = charset.name();
        let table = format!("q_{charset}");
        create(
            twins,
            &format!(
                "CREATE TABLE {table} (id INT PRIMARY KEY, a VARCHAR(40) CHARACTER SET {charset} COLLATE {charset}_bin {{eq}}, p VARCHAR(40) CHARACTER SET {charset})"
            ),
        );
        for client in [&mut plain, &mut protected] {
            answer(client, b"USE app");
            answer(client, format!("SET NAMES {charset}").as_bytes());
        }
        let with_backslashes = [
            "INSERT INTO {t} VALUES (1, '{c}', 'p')",
            "INSERT INTO {t} VALUES (2, '{c}'' OR 1=1 -- ', '{c}')",
            "INSERT INTO {t} VALUES (3, 'x{c}\\'y', \"{c}\")",
            "INSERT INTO {t} (id, p, a) VALUES (4, '{c}\\\\', 'z{c}{c}'), (5, '{c}', '{c}' '\\\\')",
            "SELECT id, a, p FROM {t} ORDER BY id",
            "SELECT id, '{c}\\n{c}', a FROM {t} ORDER BY id",
            "SELECT id FROM {t} WHERE a = '{c}' ORDER BY id",
            "SELECT id FROM {t} WHERE a = '{c}' OR p = '{c}' ORDER BY id",
            "SELECT id FROM {t} WHERE a = '{c}'' OR 1=1 -- ' ORDER BY id",
            "SELECT id FROM {t} WHERE a = '{c}' OR 1=1 -- '",
            "SELECT id FROM {t} WHERE a = '{c}\\' OR 1=1 -- '",
            "SELECT id FROM {t} WHERE a LIKE '%{c}_y' ORDER BY id",
            "SELECT id FROM {t} WHERE a LIKE '%\\\\\\\\' ORDER BY id",
            "SELECT CONCAT(a, '{c}'), CHAR_LENGTH(a) FROM {t} ORDER BY id",
            "UPDATE {t} SET a = '{c}{c}' WHERE a = '{c}'",
            "SELECT HEX(a), HEX(p), id FROM {t} ORDER BY id",
        ];
        let without = [
            "INSERT INTO {t} VALUES (11, '{c}', '\\')",
            "INSERT INTO {t} VALUES (12, 'x{c}''\\', '{c}\\'), (13, '\\{c}', '''')",
            "SELECT id, a, p FROM {t} WHERE a = '\\{c}' OR p = '\\' ORDER BY id",
            "SELECT id FROM {t} WHERE a = 'x{c}''\\' ORDER BY id",
            "SELECT a FROM {t} WHERE a LIKE '%{c}' ORDER BY id",
        ];
        for (mode, statements) in [
            ("", &with_backslashes[..]),
            ("NO_BACKSLASH_ESCAPES", &without[..]),
        ] {
            for client in [&mut plain, &mut protected] {
                answer(client, format!("SET sql_mode = '{mode}'").as_bytes());
            }
            for sql in statements {
                let sql = filled(sql, &table, first);
                let (a, b) = (answer(&mut plain, &sql), answer(&mut protected, &sql));
                let shown = String::from_utf8_lossy(&sql).into_owned();
                let failed = matches!(a.first(), Some(Reply::Error(..)));
                assert!(!failed, "{charset}: {shown}: {a:?}");
                findings.compare(&format!("{charset}: {shown}"), &a, &b);
            }
        }
        for client in [&mut plain, &mut protected] {
            answer(client, b"SET sql_mode = ''");
        }
        // what definitions say
        let defined = "CREATE TABLE d{t} (id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET {set} DEFAULT '{c}\\n'{words}, \
                       e ENUM('x', '{c}') CHARACTER SET utf8mb4{words}, p VARCHAR(9) DEFAULT '{c}') CHARACTER SET utf8mb4"
            .replace("{set}", charset);
        for (client, words) in [(&mut plain, ""), (&mut protected, " ENCRYPTED FOR ()")] {
            let sql = filled(&defined.replace("{words}", words), &table, first);
            let made = answer(client, &sql);
            assert!(matches!(made.first(), Some(Reply::Packet(_))), "{made:?}");
        }
        for sql in [
            "INSERT INTO d{t} (id) VALUES (1)",
            "INSERT INTO d{t} (id, e) VALUES (2, 'x')",
            "SELECT * FROM d{t} ORDER BY id",
        ] {
            let sql = filled(sql, &table, first);
            let (a, b) = (answer(&mut plain, &sql), answer(&mut protected, &sql));
            findings.compare(&format!("{charset}: {sql:x?}"), &a, &b);
        }
        // what is no character, or stands where a quote could be its half, is not read near a protected table
        let (quote, whole): (&[u8], &[u8]) = match charset {
            "big5" => (b"\xa4\x60", b"\xa4\x40"),
            _ => (b"\x81\x60", b"\x83\x40"),
        };
        for (sql, bytes) in [
            ("INSERT INTO {t} VALUES (99, '{c}' , 'Kw7Rz2Ph')", half),
            ("INSERT INTO {t} VALUES (99, 'Kw7Rz2Ph{c}', '')", half),
            ("INSERT INTO {t} VALUES (99, 'Kw7Rz2Ph', '\\{c}')", first),
            (
                "INSERT INTO {t} VALUES (99, 'Kw7Rz2Ph', '{c}')",
                b"\xff\xff",
            ),
            ("INSERT INTO {t} VALUES (99, 'Kw7Rz2Ph', `{c}`)", quote),
            ("SELECT a AS `{c}` FROM {t} WHERE a = 'Kw7Rz2Ph'", quote),
            ("SELECT a AS {c} FROM {t} WHERE a = 'Kw7Rz2Ph'", whole),
            (
                "SELECT a FROM {t} /*! WHERE a = 'Kw7Rz2Ph' AND `{c}` */",
                quote,
            ),
        ] {
            let sql = filled(sql, &table, bytes);
            let answered = answer(&mut protected, &sql);
            assert!(is_refusal(&answered), "{charset} {sql:x?}: {answered:?}");
        }
        // not well-formed in the set that it says
        let sql = filled(
            "INSERT INTO {t} VALUES (98, _utf8mb4'x{c}', '')",
            &table,
            first,
        );
        let b = answer(&mut protected, &sql);
        if !is_refusal(&b) {
            let a = answer(&mut plain, &sql);
            findings.compare(&format!("{charset}: {sql:x?}"), &a, &b);
        }
        // and where nothing is protected, it goes through
        for sql in [
            "SELECT 1 AS `{c}`",
            "SELECT 1 AS {c}, 'x'",
            "SELECT HEX('\\{c}')",
        ] {
            let sql = filled(sql, &table, whole);
            let (a, b) = (answer(&mut plain, &sql), answer(&mut protected, &sql));
            findings.compare(&format!("{charset}: {sql:x?}"), &a, &b);
        }
        twins.both_text("SET NAMES utf8mb4");
        twins.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
        twins.compare(&format!("SHOW CREATE TABLE d{table}"), &[]);
    }
}

/// A text in a prepared statement means what it meant when that was prepared; a parameter, what it means when it is bound.
fn what_was_prepared_before(twins: &mut Twins, kind: Kind) {
    create(
        twins,
        "CREATE TABLE t_prep (id INT PRIMARY KEY, a VARCHAR(40) {eq}) CHARACTER SET utf8mb4",
    );
    let mut id = 0;
    for (text, changed) in [
        ("plain", "SET NAMES gbk"),
        ("中文", "SET NAMES gbk"),
        ("中文", "SET NAMES latin1"),
        ("中文", "SET character_set_connection = latin1"),
        ("a\\\\b", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"),
    ] {
        id += 2;
        // MySQL keeps the parameter's character set, too
        let bound = match kind {
            Kind::MariaDb if text == "plain" => "é",
            _ => "abc",
        };
        for session in [&mut twins.plain, &mut twins.protected] {
            session.must("SET NAMES utf8mb4");
            let sql = format!("INSERT INTO t_prep VALUES ({id}, '{text}'), ({id} + 1, ?)");
            let statement = session.conn().prep(&sql).expect("a statement");
            session.must(changed);
            let ran = session.conn().exec_drop(&statement, (bound,));
            session.must("SET sql_mode = DEFAULT");
            session.must("SET NAMES utf8mb4");
            if let Err(error) = ran {
                let failure = Failure::from(error);
                let is_refusal = failure.message.starts_with("OS");
                assert!(text != "plain" && is_refusal, "{text} {changed}: {failure}");
                // as it was when it was prepared
                let again = session.conn().exec_drop(&statement, (bound,));
                again.expect("the statement");
            }
            session.conn().close(statement).expect("an end");
        }
    }
    twins.compare("SELECT * FROM t_prep ORDER BY id", &[]);
}

/// Where a statement ends depends on the character set that the one before it has set. `中\` in UTF-8 is 涓璡 in gbk, whose last byte is
/// the backslash.
fn several_statements(twins: &mut Twins) {
    create(
        twins,
        "CREATE TABLE t_two (id INT PRIMARY KEY, a VARCHAR(40) {eq}) CHARACTER SET gbk",
    );
    let hidden =
        format!("SELECT '中\\'; INSERT INTO t_two VALUES (1, \"{MARKER}\") -- ' FROM DUAL");
    let refused = twins.protected.run(&format!("SET NAMES gbk; {hidden}"));
    let refused = refused.expect_err("a refusal");
    assert!(refused.message.starts_with("OS"), "{refused}");
    twins.both_text("SET NAMES gbk");
    twins.both_text(&hidden);
    twins.both_text("SET NAMES utf8mb4");
    twins.compare("SELECT * FROM t_two", &[]);
    let count = twins.protected.text("SELECT COUNT(*) FROM t_two");
    assert_eq!(count.expect("a number"), "1");
}

/// Names reach the client in the character set of results, and are looked up whatever that is.
fn names_beyond_ascii(twins: &mut Twins) {
    create(
        twins,
        "CREATE TABLE `名前` (id INT PRIMARY KEY, `値` VARCHAR(40) {eq, range}, p VARCHAR(40)) CHARACTER SET utf8mb4",
    );
    for (id, results) in (1..).zip(["utf8mb4", "latin1", "gbk", "cp1251", "NULL", "binary"]) {
        twins.both_text("SET NAMES utf8mb4");
        // so that it is looked up again
        twins.both_text(&format!("ALTER TABLE `名前` COMMENT = '{results}'"));
        twins.both_text(&format!("SET character_set_results = {results}"));
        twins.both(&format!(
            "INSERT INTO `名前` VALUES ({id}, '{MARKER}', 'p')"
        ));
        for sql in [
            "SELECT * FROM `名前` ORDER BY id",
            "SELECT id, `値` AS w, MAX(`値`) m FROM `名前` WHERE `値` = 'Kw7Rz2Ph' GROUP BY id, `値`",
            "SELECT MIN(`値`) FROM `名前`",
            "SELECT id, `値`, 'é' FROM `名前` ORDER BY id",
        ] {
            twins.compare(sql, &[]);
        }
    }
    twins.both_text("SET NAMES gbk");
    let failed = twins.protected.run("SELECT * FROM `名前`");
    let failed = failed.expect_err("a refusal");
    assert!(failed.message.starts_with("OS"), "{failed}");
    twins.both_text("SET NAMES utf8mb4");
}

fn nothing_leaked(twins: &mut Twins, sets: &[Charset]) {
    let mut patterns = Pattern::of_text(MARKER);
    for charset in sets.iter().filter(|c| !c.has_ascii()) {
        let bytes = encoded(*charset, MARKER).expect("a text");
        patterns.push(Pattern::of_bytes(charset.name(), bytes));
    }
    twins.behind.shutdown();
    for file in twins.behind.data_files() {
        let bytes = std::fs::read(&file).unwrap_or_default();
        let found = find_all(&patterns, &bytes);
        assert!(found.is_empty(), "{}: {found:?}", file.display());
    }
}

/// Every character of every set, there and back, and the weights of every collation with a table.
fn tables_are_the_servers(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut session = server.connect();
    session.must("SET NAMES utf8mb4");
    let all: Vec<u32> = (0..0x11_0000)
        .filter(|code| char::from_u32(*code).is_some())
        .collect();
    let sets = known_sets(kind, SETS);
    let mut findings = Findings::default();
    for charset in &sets {
        for chunk in all.chunks(0x1_0000) {
            let is_last = chunk[0] > 0xFFFF
                && !matches!(charset.name(), "gb18030" | "utf16" | "utf16le" | "utf32");
            if is_last {
                break;
            }
            conversions(&mut session, &mut findings, *charset, chunk);
        }
    }
    let names = session
        .text("SELECT DISTINCT COLLATION_NAME FROM information_schema.COLLATIONS ORDER BY 1")
        .expect("a list");
    let mut compared = 0;
    for name in names.lines() {
        // MariaDB lists those of Unicode without the set
        let full = match name.starts_with("uca1400") {
            true => format!("utf8mb4_{name}"),
            false => name.to_owned(),
        };
        let Some(collation) = Collation::from_name(&full).filter(|c| {
            c.is_searchable() && c.charset() != Charset::Binary && c.is_of(family(kind))
        }) else {
            continue;
        };
        // the tables of Unicode are compared in full with the crate's own tests
        let has_table = matches!(collation.charset(), Charset::Single(_) | Charset::Multi(_));
        let codes = all.iter().filter(|code| match **code {
            0..=0xFFFF => has_table || *code % 5 == 0,
            _ => *code % 101 == 0,
        });
        let codes: Vec<u32> = codes.copied().collect();
        // those of `_bin` are shown in other forms, but are in the same order
        let is_bin = collation.name().ends_with("_bin");
        // two bytes here
        let is_ascii = collation.charset() == Charset::Ascii;
        if !is_bin && !is_ascii {
            weights(&mut session, &mut findings, collation, &codes);
        }
        if collation.charset().is_measured() || collation.charset().max_bytes() == 1 {
            order(&mut session, &mut findings, collation, &codes);
        }
        compared += 1;
    }
    findings.conclude();
    announce(&format!("{} sets, {compared} collations", sets.len()));
    let least = match kind {
        Kind::MariaDb => 161,
        Kind::MySql => 90,
    };
    assert!(compared >= least, "{compared}");
}

fn conversions(session: &mut Session, findings: &mut Findings, charset: Charset, codes: &[u32]) {
    let mut given = String::new();
    let mut ours = Vec::new();
    let mut own = Vec::new();
    for code in codes {
        given.push_str(&format!("{code:08x}"));
        let before = ours.len();
        if charset.encode(*code, &mut ours) {
            own.extend_from_slice(&ours[before..]);
        } else {
            charset.encode(u32::from(b'?'), &mut ours);
        }
    }
    let theirs = session.text(&format!(
        "SELECT HEX(CONVERT(_utf32 x'{given}' USING {}))",
        charset.name()
    ));
    let theirs = theirs.expect("a conversion").trim_end().to_lowercase();
    let about = format!("{} from U+{:X}", charset.name(), codes[0]);
    findings.compare(&about, &theirs, &hex(&ours));
    let back = session.text(&format!(
        "SELECT HEX(CONVERT(_{} x'{}' USING utf8mb4))",
        charset.name(),
        hex(&own)
    ));
    let read = charset.to_utf8(&own).expect("characters");
    let back = back.expect("a conversion").trim_end().to_lowercase();
    let about = format!("{} to U+{:X}", charset.name(), codes[0]);
    findings.compare(&about, &back, &hex(&read));
}

/// Weights of all characters of the collation's set, in rows of some length: what stands side by side must not matter.
fn weights(session: &mut Session, findings: &mut Findings, collation: Collation, all: &[u32]) {
    let ty = SqlType::parse("longtext", Some(collation.name())).expect("a type");
    let charset = collation.charset();
    let mut texts = vec![Vec::new()];
    for code in all {
        let text = texts.last_mut().expect("a text");
        charset.encode(*code, text);
        if text.len() > 2000 {
            // no space at the end, which comparison does not see
            charset.encode(u32::from(b'.'), text);
            texts.push(Vec::new());
        }
    }
    charset.encode(u32::from(b'.'), texts.last_mut().expect("a text"));
    for text in texts {
        let mut ours = Vec::new();
        match weight(&ty, &text, &mut ours) {
            Ok(()) => {}
            Err(onionskin_value::WeightError::Contraction) => continue,
            Err(other) => panic!("{collation:?}: {other}"),
        }
        let theirs = session
            .text(&format!(
                "SELECT HEX(WEIGHT_STRING(_{} x'{}' COLLATE {}))",
                charset.name(),
                hex(&text),
                collation.name()
            ))
            .expect("weights");
        let about = format!("{} {}", collation.name(), hex(&text));
        let theirs = theirs.trim_end().to_lowercase();
        findings.compare(&about, &theirs, &hex(&ours));
    }
}

/// Comparison itself, and LIKE, of each character with the next one in our order: in some collations it does not go by
/// WEIGHT_STRING().
fn order(session: &mut Session, findings: &mut Findings, collation: Collation, all: &[u32]) {
    let ty = SqlType::parse("longtext", Some(collation.name())).expect("a type");
    let charset = collation.charset();
    let encode = |code: &u32| encoded(charset, char::from_u32(*code)?.encode_utf8(&mut [0; 4]));
    let compare = |a: &Vec<u8>, b: &Vec<u8>| cmp(&ty, a, b).expect("weights");
    let step = match charset {
        Charset::Wide(_) => 7,
        _ if collation.name().ends_with("_bin") => 5,
        _ => 1,
    };
    let mut texts: Vec<Vec<u8>> = all.iter().step_by(step).filter_map(encode).collect();
    texts.sort_by(compare);
    for chunk in texts.chunks(1000) {
        let text = |bytes: &[u8]| {
            format!(
                "_{} x'{}' COLLATE {}",
                charset.name(),
                hex(bytes),
                collation.name()
            )
        };
        let pairs: Vec<String> = chunk
            .windows(2)
            .map(|pair| {
                let (a, b) = (text(&pair[0]), text(&pair[1]));
                format!("IF({a} = {b}, '=', IF({a} < {b}, '<', '>')), {a} LIKE {b}")
            })
            .collect();
        let theirs = session
            .text(&format!("SELECT CONCAT({})", pairs.join(",")))
            .expect("an answer");
        let theirs: Vec<char> = theirs.trim_end().chars().collect();
        assert_eq!(theirs.len(), 2 * pairs.len(), "{collation:?}");
        for (pair, theirs) in chunk.windows(2).zip(theirs.chunks(2)) {
            let equal = match compare(&pair[0], &pair[1]).is_eq() {
                true => '=',
                false => '<',
            };
            let like = match is_like(&ty, &pair[0], &pair[1]) {
                true => '1',
                false => '0',
            };
            let [a, b] = [&pair[0], &pair[1]].map(|text| hex(text));
            let about = format!("{} {a} {b}", collation.name());
            findings.compare(&about, &[theirs[0], theirs[1]], &[equal, like]);
        }
    }
}

fn is_like(ty: &SqlType, value: &[u8], pattern: &[u8]) -> bool {
    let input = Input::Text {
        bytes: pattern,
        charset: ty.charset(),
    };
    match LikePattern::read(ty, input, Escape::Backslash).expect("a pattern") {
        onionskin_value::Pattern::Like(pattern) => pattern.matches(value).expect("a text"),
        onionskin_value::Pattern::Null => false,
    }
}
