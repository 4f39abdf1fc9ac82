//! Character sets and collations of connections and of results.

use ::mysql::Value;
use onionskin_value::Charset;

use super::{Ids, MODES, at_most, write};
use onionskin_testkit::*;

/// `NAMES`, text in it: é, ß, € where there is one, 中 where there is one.
pub fn character_sets_of_connections(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, u VARCHAR(20) COLLATE utf8mb4_general_ci {eq}, b VARCHAR(20) COLLATE utf8mb4_bin {eq}, l VARCHAR(20) CHARACTER SET latin1 {eq}, \
         a CHAR(8) CHARACTER SET ascii {}, three TEXT CHARACTER SET utf8mb3 {}, x VARBINARY(40) {eq})",
    ) else {
        return;
    };
    let mut ids = Ids(0);
    let mut refused = Vec::new();
    let texts: &[(&str, &[&[u8]])] = &[
        (
            "utf8mb4",
            &[
                "Zoë".as_bytes(),
                "straße".as_bytes(),
                "€".as_bytes(),
                "中".as_bytes(),
                "😀".as_bytes(),
                b"plain",
            ],
        ),
        (
            "utf8mb3",
            &["Zoë".as_bytes(), "€".as_bytes(), "中".as_bytes(), b"plain"],
        ),
        (
            "latin1",
            &[b"Zo\xeb", b"stra\xdfe", b"\x80", b"\x81", b"plain"],
        ),
        ("ascii", &[b"plain"]),
        ("binary", &["Zoë".as_bytes(), b"plain"]),
    ];
    for mode in MODES {
        for (names, values) in texts {
            pair.run(&format!("SET NAMES {names}"));
            pair.run(&format!("SET sql_mode = '{mode}'"));
            for value in *values {
                for column in ["u", "b", "l", "a", "three", "x"] {
                    let insert = ids.insert("t", column, "?");
                    write(
                        &mut pair,
                        &mut refused,
                        "t",
                        &insert,
                        &[Value::Bytes(value.to_vec())],
                    );
                    pair.compare(
                        &format!("SELECT id, {column} FROM t WHERE {column} = ? ORDER BY id"),
                        &[Value::Bytes(value.to_vec())],
                    );
                }
            }
        }
    }
    pair.run("SET NAMES utf8mb4");
    // MySQL warns of literals in utf8mb3, the proxy does not
    let three = match kind {
        Kind::MariaDb => &["N'Zoë'", "n'plain'", "_utf8mb3'Zoë'"][..],
        Kind::MySql => &[],
    };
    for literal in [
        "_latin1'Zoe'",
        "_latin1 x'5a6feb'",
        "_utf8mb4 x'5a6fc3ab'",
        "_binary'plain'",
        "'Zoë' COLLATE utf8mb4_bin",
        "_ascii'plain'",
        "_gbk x'd6d0'",
        "_utf16 x'4e2d'",
    ]
    .iter()
    .chain(three)
    {
        for column in ["u", "b", "l"] {
            write(
                &mut pair,
                &mut refused,
                "t",
                &ids.insert("t", column, literal),
                &[],
            );
            pair.compare(
                &format!("SELECT id FROM t WHERE {column} = {literal} ORDER BY id"),
                &[],
            );
        }
    }
    at_most(&refused, 40);
    pair.conclude(0);
}

/// Every code point, to each character set and back: the bytes are those of the server.
pub fn conversions_are_the_servers(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut session = server.connect();
    session.must("SET NAMES utf8mb4");
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02X}")).collect() };
    let mut checked = 0;
    for plane in 0..17u32 {
        let plane: String = (plane << 16..=plane << 16 | 0xFFFF)
            .filter_map(char::from_u32)
            .collect();
        for charset in [Charset::Utf8mb3, Charset::Latin1, Charset::Ascii] {
            let mut ours = Vec::new();
            for c in plane.chars() {
                checked += 1;
                if !charset.encode(u32::from(c), &mut ours) {
                    ours.push(b'?');
                }
            }
            let sql = format!(
                "SELECT HEX(CONVERT(_utf8mb4 x'{}' USING {}))",
                hex(plane.as_bytes()),
                charset.name()
            );
            let theirs = session.text(&sql).expect("a conversion");
            assert!(
                theirs == hex(&ours),
                "{} from U+{:X}",
                charset.name(),
                plane.chars().next().map_or(0, u32::from)
            );
        }
    }
    assert_eq!(checked, 3 * (0x11_0000 - 0x800));
    for (charset, bytes) in [(Charset::Latin1, 0..=255u8), (Charset::Ascii, 0..=127)] {
        let bytes: Vec<u8> = bytes.collect();
        let mut ours = Vec::new();
        for byte in &bytes {
            let (code, _) = charset
                .decode(std::slice::from_ref(byte))
                .expect("a character");
            assert!(Charset::Utf8mb4.encode(code, &mut ours));
        }
        let sql = format!(
            "SELECT HEX(CONVERT(_{} x'{}' USING utf8mb4))",
            charset.name(),
            hex(&bytes)
        );
        assert_eq!(session.text(&sql), Ok(hex(&ours)), "{}", charset.name());
    }
}

/// String columns are announced with the collation that the server would announce, however the
/// session came to it.
pub fn announced_collations(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9) {eq}, b TEXT {}, e ENUM('x','y') {}, l CHAR(5) CHARACTER SET latin1 {range})",
    ) else {
        return;
    };
    pair.both("INSERT INTO t VALUES (1, 'a', 'bb', 'x', 'l'), (2, 'A', NULL, 'y', 'L')");
    for setting in [
        "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
        "SET NAMES utf8mb4",
        "SET character_set_results = utf8mb4",
        "SET CHARACTER SET utf8mb4",
        "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
        "SET character_set_results = NULL",
        "SET NAMES latin1 COLLATE latin1_german1_ci",
        "SET NAMES utf8mb3",
        "SET NAMES DEFAULT",
    ] {
        pair.run(setting);
        pair.compare("SELECT * FROM t ORDER BY id", &[]);
        pair.compare("SELECT a, l, e FROM t ORDER BY l DESC, a, id", &[]);
        pair.compare("SELECT UPPER(a), CONCAT(b, e) FROM t ORDER BY id", &[]);
    }
    // the question behind such a statement leaves no trace
    let setting = "SET character_set_results = utf8mb4, sort_buffer_size = 1";
    for question in ["SHOW WARNINGS", "SELECT ROW_COUNT()", "SELECT FOUND_ROWS()"] {
        pair.run("SELECT id FROM t ORDER BY id");
        pair.run(setting);
        pair.compare_text(question);
    }
    pair.conclude(0);
}

/// A character set in a definition means its collation in the session: MariaDB 11.8 has others than
/// 10.11, and lets sessions choose.
pub fn character_sets_that_stand_for_other_collations(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET utf8mb4 {eq}, b VARCHAR(9) CHARACTER SET latin1 {eq}); \
         CREATE TABLE u (id INT PRIMARY KEY, a VARCHAR(9) {eq}) CHARACTER SET utf8mb3",
    ) else {
        return;
    };
    let chosen = "SET character_set_collations = 'latin1=latin1_bin,utf8mb4=utf8mb4_bin'";
    if pair.plain.run(chosen).is_ok() {
        pair.protected.must(chosen);
        let create = "CREATE TABLE v (id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET utf8mb4, b VARCHAR(9) CHARACTER SET latin1)";
        pair.plain.must(create);
        let words = create.replace("utf8mb4", "utf8mb4 ENCRYPTED FOR (eq)");
        pair.protected
            .must(&words.replace("latin1", "latin1 ENCRYPTED FOR (eq)"));
    } else {
        pair.both("CREATE TABLE v (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9))");
    }
    for table in ["t", "u", "v"] {
        let columns = if table == "u" { "id, a" } else { "id, a, b" };
        for (id, text) in ["ss", "\u{df}", "s", "S", "SS "].iter().enumerate() {
            let more = if table == "u" {
                String::new()
            } else {
                format!(", '{text}'")
            };
            pair.both(&format!(
                "INSERT INTO {table} ({columns}) VALUES ({id}, '{text}'{more})"
            ));
        }
        let show = format!("SHOW CREATE TABLE {table}");
        let (a, b) = (pair.plain.must(&show), pair.protected.must(&show));
        assert_eq!(a.text(), b.text(), "{show}");
        for column in columns.split(", ").skip(1) {
            for text in ["ss", "\u{df}", "s"] {
                pair.compare_text(&format!(
                    "SELECT id FROM {table} WHERE {column} = '{text}' ORDER BY id"
                ));
            }
        }
    }
    pair.conclude(0);
}
