//! Texts whose bytes look like quotes and backslashes.

use super::*;

/// In gbk `0xBF 0x5C` is a character, though its second byte is a backslash; in cp932 `0x83 0x5C`
/// is. Who reads bytes ends the string somewhere else than the server does.
pub fn texts_that_hide_quotes(pair: &mut Pair, findings: &mut Findings, kind: Kind) {
    let mut clients = Clients {
        plain: RawClient::login(pair.beside().port()),
        protected: RawClient::login(pair.proxy.port()),
    };
    for charset in known_sets(kind, &["gbk", "gb18030", "big5", "cp932"]) {
        let set = Hiding::of(charset);
        let (name, table) = (set.name, &set.table);
        create(
            pair,
            &format!(
                "CREATE TABLE {table} (id INT PRIMARY KEY, a VARCHAR(40) CHARACTER SET {name} COLLATE {name}_bin {{eq}}, p VARCHAR(40) CHARACTER SET {name})"
            ),
        );
        for client in clients.each() {
            answer(client, b"USE app");
            answer(client, format!("SET NAMES {name}").as_bytes());
        }
        statements_mean_the_same(&mut clients, findings, &set);
        definitions_mean_the_same(&mut clients, findings, &set);
        half_characters_are_refused(&mut clients, &set);
        other_sets_and_open_statements_pass(&mut clients, findings, &set);
        pair.run("SET NAMES utf8mb4");
        pair.compare(&format!("SELECT * FROM {table} ORDER BY id"), &[]);
        pair.compare(&format!("SHOW CREATE TABLE d{table}"), &[]);
    }
}

/// A client of the plain server and one of the proxy.
struct Clients {
    plain: RawClient,
    protected: RawClient,
}

impl Clients {
    fn each(&mut self) -> [&mut RawClient; 2] {
        [&mut self.plain, &mut self.protected]
    }

    /// Both say the same to a statement; what the plain server says.
    fn same(&mut self, findings: &mut Findings, about: &str, sql: &[u8]) -> Vec<Reply> {
        let [plain, protected] = self.each().map(|client| answer(client, sql));
        findings.compare(about, &plain, &protected);
        plain
    }
}

/// A character set in which a second byte may look like a backslash, and a table with columns of
/// it.
struct Hiding {
    name: &'static str,
    table: String,
    /// A character that ends with the byte of a backslash.
    first: &'static [u8],
    /// A byte that begins a character.
    half: &'static [u8],
    /// A character that ends with the byte of a backtick.
    quote: &'static [u8],
    /// A character that ends with a byte of no meaning.
    whole: &'static [u8],
}

impl Hiding {
    fn of(charset: Charset) -> Hiding {
        let (first, half): (&[u8], &[u8]) = match charset.name() {
            "big5" => (b"\xa4\x5c", b"\xa4"),
            "cp932" => (b"\x83\x5c", b"\x83"),
            _ => (b"\xbf\x5c", b"\xbf"),
        };
        let (quote, whole): (&[u8], &[u8]) = match charset.name() {
            "big5" => (b"\xa4\x60", b"\xa4\x40"),
            _ => (b"\x81\x60", b"\x83\x40"),
        };
        Hiding {
            name: charset.name(),
            table: format!("q_{}", charset.name()),
            first,
            half,
            quote,
            whole,
        }
    }
}

fn statements_mean_the_same(both: &mut Clients, findings: &mut Findings, set: &Hiding) {
    let (charset, table, first) = (set.name, &set.table, set.first);
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
        for client in both.each() {
            answer(client, format!("SET sql_mode = '{mode}'").as_bytes());
        }
        for sql in statements {
            let sql = filled(sql, table, first);
            let about = format!("{charset}: {}", String::from_utf8_lossy(&sql));
            let plain = both.same(findings, &about, &sql);
            let failed = matches!(plain.first(), Some(Reply::Error(..)));
            assert!(!failed, "{about}: {plain:?}");
        }
    }
    for client in both.each() {
        answer(client, b"SET sql_mode = ''");
    }
}

fn definitions_mean_the_same(both: &mut Clients, findings: &mut Findings, set: &Hiding) {
    let (charset, table, first) = (set.name, &set.table, set.first);
    let defined = "CREATE TABLE d{t} (id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET {set} DEFAULT '{c}\\n'{words}, \
                   e ENUM('x', '{c}') CHARACTER SET utf8mb4{words}, p VARCHAR(9) DEFAULT '{c}') CHARACTER SET utf8mb4"
        .replace("{set}", charset);
    for (client, words) in [
        (&mut both.plain, ""),
        (&mut both.protected, " ENCRYPTED FOR ()"),
    ] {
        let sql = filled(&defined.replace("{words}", words), table, first);
        let made = answer(client, &sql);
        assert!(matches!(made.first(), Some(Reply::Packet(_))), "{made:?}");
    }
    for sql in [
        "INSERT INTO d{t} (id) VALUES (1)",
        "INSERT INTO d{t} (id, e) VALUES (2, 'x')",
        "SELECT * FROM d{t} ORDER BY id",
    ] {
        let sql = filled(sql, table, first);
        both.same(findings, &format!("{charset}: {sql:x?}"), &sql);
    }
}

/// What is no character, or stands where a quote could be its half, is not read near a protected
/// table.
fn half_characters_are_refused(both: &mut Clients, set: &Hiding) {
    let (charset, table) = (set.name, &set.table);
    let (first, half, quote, whole) = (set.first, set.half, set.quote, set.whole);
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
        let sql = filled(sql, table, bytes);
        let answered = answer(&mut both.protected, &sql);
        assert!(is_refusal(&answered), "{charset} {sql:x?}: {answered:?}");
    }
}

fn other_sets_and_open_statements_pass(both: &mut Clients, findings: &mut Findings, set: &Hiding) {
    let (charset, table, first, whole) = (set.name, &set.table, set.first, set.whole);
    // not well-formed in the set that it says
    let sql = filled(
        "INSERT INTO {t} VALUES (98, _utf8mb4'x{c}', '')",
        table,
        first,
    );
    let b = answer(&mut both.protected, &sql);
    if !is_refusal(&b) {
        let a = answer(&mut both.plain, &sql);
        findings.compare(&format!("{charset}: {sql:x?}"), &a, &b);
    }
    // and where nothing is protected, it goes through
    for sql in [
        "SELECT 1 AS `{c}`",
        "SELECT 1 AS {c}, 'x'",
        "SELECT HEX('\\{c}')",
    ] {
        let sql = filled(sql, table, whole);
        both.same(findings, &format!("{charset}: {sql:x?}"), &sql);
    }
}
