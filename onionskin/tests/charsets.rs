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
use onionskin_value::{Charset, Collation, Family, SqlType, cmp, weight};
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

/// The sets of the list that this server has, and that the proxy knows.
fn known_sets(session: &mut Session, names: &[&str]) -> Vec<Charset> {
    let there = session
        .text("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS")
        .expect("a list");
    names
        .iter()
        .filter(|name| there.lines().any(|line| line == **name))
        .filter_map(|name| Charset::from_name(name))
        .collect()
}

/// Runs a statement that writes, through the proxy first; one that it refuses is spared the plain server. Both answer alike.
fn write(twins: &mut Twins, refused: &mut Vec<String>, sql: &str, parameters: &[Value]) {
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
    // what the value is called matters; other texts name collations and keys
    let said = |f: Failure| {
        let shown = matches!(f.code, 1366 | 1406).then_some(f.message);
        (f.code, f.state, shown)
    };
    assert_eq!(
        plain.map_err(said),
        protected.map_err(said),
        "{sql} {parameters:?}"
    );
}

fn columns_and_connections(kind: Kind) {
    let Some(mut twins) = twins(kind, "") else {
        return;
    };
    let mut refused = Vec::new();
    let sets = known_sets(&mut twins.plain, WITH_TABLES);
    assert!(sets.len() >= 9, "{sets:?}");
    for charset in &sets {
        one_set(&mut twins, &mut refused, *charset, family(kind));
    }
    unique_keys(&mut twins, &sets, family(kind));
    texts_that_hide_quotes(&mut twins);
    announce(&format!("{} writes refused: {refused:#?}", refused.len()));
    // texts that are too long for what counts bytes, and what a server makes of them
    assert!(refused.len() <= 40, "{refused:#?}");
    twins.conclude(40);
    nothing_leaked(&mut twins, &sets);
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

fn one_set(twins: &mut Twins, refused: &mut Vec<String>, charset: Charset, family: Family) {
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
        assert_eq!(a.text(), b.text(), "{sql}");
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
                    refused,
                    &insert,
                    &[value.clone(), Value::from(text), value],
                );
            }
        }
        // too long, with spaces and without
        for text in ["äbcdefghijklmn", "abcdef      ", "abcdefghijkl  "] {
            id += 1;
            let insert = format!("INSERT INTO {table} (id, r, b) VALUES ({id}, 'r', '{text}')");
            write(twins, refused, &insert, &[]);
            id += 1;
            let insert = format!("INSERT INTO {table} (id, r) VALUES ({id}, '{text}')");
            write(twins, refused, &insert, &[]);
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
                refused,
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
                    refused,
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
        &format!("SELECT b, COUNT(*) FROM {table} GROUP BY b ORDER BY b"),
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
fn unique_keys(twins: &mut Twins, sets: &[Charset], family: Family) {
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
                let mut refused = Vec::new();
                write(
                    twins,
                    &mut refused,
                    &format!("INSERT INTO {table} VALUES ({id}, '{text}')"),
                    &[],
                );
                assert!(refused.is_empty(), "{refused:?}");
            }
            twins.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
        }
    }
}

/// Everything that a side says to a statement.
fn answer(client: &mut RawClient, sql: &[u8]) -> Vec<Reply> {
    client.command(3, sql);
    let mut all = Vec::new();
    let mut ends = 0;
    loop {
        let reply = client.read();
        let last = match &reply {
            Reply::Packet(packet) if all.is_empty() => packet.first() == Some(&0),
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

/// In gbk `0xBF 0x5C` is a character, though its second byte is a backslash; in cp932 `0x83 0x5C` is. Who reads bytes ends the string
/// somewhere else than the server does.
fn texts_that_hide_quotes(twins: &mut Twins) {
    let mut plain = RawClient::login(twins.plain_server.port());
    let mut protected = RawClient::login(twins.proxy.port());
    let mut id = 0;
    for (charset, first) in [
        ("gbk", b"\xbf\x5c"),
        ("big5", b"\xa4\x5c"),
        ("cp932", b"\x83\x5c"),
    ] {
        create(
            twins,
            &format!(
                "CREATE TABLE q_{charset} (id INT PRIMARY KEY, a VARCHAR(40) CHARACTER SET {charset} COLLATE {charset}_bin {{eq}}, p VARCHAR(40) CHARACTER SET {charset})"
            ),
        );
        for client in [&mut plain, &mut protected] {
            answer(client, b"USE app");
            answer(client, format!("SET NAMES {charset}").as_bytes());
        }
        let fill = |sql: &str| -> Vec<u8> {
            let sql = sql.replace("{t}", &format!("q_{charset}"));
            let mut out = Vec::new();
            for (at, part) in sql.split("{c}").enumerate() {
                out.extend_from_slice(if at > 0 { first } else { b"" });
                out.extend_from_slice(part.as_bytes());
            }
            out
        };
        for sql in [
            "INSERT INTO {t} VALUES (1, '{c}', 'p')",
            "INSERT INTO {t} VALUES (2, '{c}'' OR 1=1 -- ', '{c}')",
            "INSERT INTO {t} VALUES (3, 'x{c}\\'y', \"{c}\")",
            "INSERT INTO {t} (id, p, a) VALUES (4, '{c}\\\\', 'z{c}{c}'), (5, '{c}', _utf8mb4'{c}')",
            "SELECT id, a, p FROM {t} ORDER BY id",
            "SELECT id FROM {t} WHERE a = '{c}' ORDER BY id",
            "SELECT id FROM {t} WHERE a = '{c}' OR p = '{c}' ORDER BY id",
            "SELECT id FROM {t} WHERE a = '{c}'' OR 1=1 -- ' ORDER BY id",
            "SELECT id FROM {t} WHERE a = '{c}' OR 1=1 -- '",
            "SELECT id FROM {t} WHERE a = '{c}\\' OR 1=1 -- '",
            "UPDATE {t} SET a = '{c}{c}' WHERE a = '{c}'",
            "SELECT HEX(a), HEX(p), id FROM {t} ORDER BY id",
        ] {
            id += 1;
            let sql = fill(sql);
            let (a, b) = (answer(&mut plain, &sql), answer(&mut protected, &sql));
            let shown = String::from_utf8_lossy(&sql).into_owned();
            if let Some(Reply::Error(_, message)) = b.first()
                && message.contains("OS")
            {
                // a literal of another set than the client's, which is not one of that
                assert!(
                    shown.contains("_utf8mb4"),
                    "{charset} {id}: {shown}: {message}"
                );
                continue;
            }
            match (&a[..], &b[..]) {
                ([Reply::Error(a, _)], [Reply::Error(b, _)]) => {
                    assert_eq!(a, b, "{charset}: {shown}")
                }
                _ => assert_eq!(a, b, "{charset}: {shown}"),
            }
        }
        // what is no character, or stands where a quote could be its half, is not read near a protected table
        for sql in [
            &b"INSERT INTO {t} VALUES (9, '\xbf' , '')"[..],
            b"INSERT INTO {t} VALUES (9, '\\\xbf\x5c', '')",
            b"INSERT INTO {t} VALUES (9, 'a', '\xff\xff')",
            b"SELECT a AS `\x81\x60` FROM {t}",
        ] {
            let at = sql.windows(3).position(|w| w == b"{t}").expect("a table");
            let sql = [
                &sql[..at],
                format!("q_{charset}").as_bytes(),
                &sql[at + 3..],
            ]
            .concat();
            match answer(&mut protected, &sql).first() {
                Some(Reply::Error(..)) => {}
                other => panic!("{charset} {sql:x?}: {other:?}"),
            }
        }
        twins.both_text("SET NAMES utf8mb4");
        twins.compare(&format!("SELECT * FROM q_{charset} ORDER BY id"), &[]);
    }
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
    let sets = known_sets(&mut session, SETS);
    assert!(sets.len() > 25, "{sets:?}");
    for charset in &sets {
        for chunk in all.chunks(0x1_0000) {
            let is_last = chunk[0] > 0xFFFF
                && !matches!(charset.name(), "gb18030" | "utf16" | "utf16le" | "utf32");
            if is_last {
                break;
            }
            conversions(&mut session, *charset, chunk);
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
        let Some(collation) = Collation::from_name(&full)
            .filter(|c| c.is_searchable() && c.charset() != Charset::Binary)
        else {
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
        if !is_bin {
            weights(&mut session, collation, &codes);
        }
        if collation.charset().is_measured() || collation.charset() == Charset::Latin1 {
            order(&mut session, collation, &codes);
        }
        compared += 1;
    }
    announce(&format!("{} sets, {compared} collations", sets.len()));
    assert!(compared > 70, "{compared}");
}

fn conversions(session: &mut Session, charset: Charset, codes: &[u32]) {
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
    let same = theirs
        .expect("a conversion")
        .eq_ignore_ascii_case(&hex(&ours));
    assert!(same, "{} from U+{:X}", charset.name(), codes[0]);
    let back = session.text(&format!(
        "SELECT HEX(CONVERT(_{} x'{}' USING utf8mb4))",
        charset.name(),
        hex(&own)
    ));
    let read = charset.to_utf8(&own).expect("characters");
    let same = back
        .expect("a conversion")
        .eq_ignore_ascii_case(&hex(&read));
    assert!(same, "{} to U+{:X}", charset.name(), codes[0]);
}

/// Weights of all characters of the collation's set, in rows of some length: what stands side by side must not matter.
fn weights(session: &mut Session, collation: Collation, all: &[u32]) {
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
        let same = theirs.eq_ignore_ascii_case(&hex(&ours));
        assert!(
            same,
            "{} {}\n{}\n{theirs}",
            collation.name(),
            hex(&text),
            hex(&ours)
        );
    }
}

/// Comparison itself, of each character with the next one in our order: in some collations it does not go by
/// WEIGHT_STRING().
fn order(session: &mut Session, collation: Collation, all: &[u32]) {
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
                format!("IF({a} = {b}, '=', IF({a} < {b}, '<', '>'))")
            })
            .collect();
        let theirs = session
            .text(&format!("SELECT CONCAT({})", pairs.join(",")))
            .expect("an answer");
        for (pair, theirs) in chunk.windows(2).zip(theirs.chars()) {
            let ours = match compare(&pair[0], &pair[1]).is_eq() {
                true => '=',
                false => '<',
            };
            assert_eq!(
                ours,
                theirs,
                "{} {} {}",
                collation.name(),
                hex(&pair[0]),
                hex(&pair[1])
            );
        }
    }
}
