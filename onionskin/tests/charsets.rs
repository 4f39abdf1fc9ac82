//! Columns and connections of every character set that the servers have, against a plain server:
//! what goes in and comes back in both protocols, what is equal, ordered, grouped and LIKE, keys
//! that collations take for equal, what a set lacks under strict mode and without it, and texts
//! whose bytes look like quotes. Nothing of it reaches the server's files.
//!
//! The tables behind this (`crates/value/charsets`) are compared with both servers, every character
//! of every set and every weight of every collation.

#[path = "charsets/columns.rs"]
mod columns;

#[path = "charsets/members.rs"]
mod members;

#[path = "charsets/connections.rs"]
mod connections;

#[path = "charsets/parameters.rs"]
mod parameters;

#[path = "charsets/quotes.rs"]
mod quotes;

#[path = "charsets/weights.rs"]
mod weights;

use ::mysql::Value;
use ::mysql::prelude::Queryable;
use columns::{one_set, unique_keys};
use connections::{answer, connections, connections_that_convert, filled, is_refusal};
use members::{members, members_that_are_refused};
use onionskin_testkit::*;
use onionskin_value::{
    Charset, Collation, Escape, Family, Input, LikePattern, SqlType, cmp, weight,
};
use parameters::parameters_between_sets;
use quotes::texts_that_hide_quotes;
use weights::tables_are_the_servers;

on_both_servers!(columns_and_connections, parameters, tables_are_the_servers);

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

/// Runs a statement that writes, through the proxy first; one that it refuses is spared the plain
/// server. Both answer alike.
fn write(pair: &mut Pair, findings: &mut Findings, sql: &str, parameters: &[Value]) {
    let run = |session: &mut Session| {
        let answer = match parameters {
            [] => session.run(sql),
            values => session.execute(sql, values.to_vec()),
        };
        answer.map(|o| (o.affected, o.warnings))
    };
    let protected = run(&mut pair.protected);
    if let Err(failure) = &protected
        && failure.message.starts_with("OS")
    {
        let text = format!("{sql} {parameters:?}: {failure}");
        findings.refused.push(text);
        return;
    }
    let plain = run(&mut pair.plain);
    // what the value is called matters; other texts name collations and keys
    let said = |f: Failure| {
        let shown = matches!(f.code, 1366 | 1406).then_some(f.message);
        (f.code, f.state, shown)
    };
    let about = format!("{sql} {parameters:?}");
    findings.compare(&about, &plain.map_err(said), &protected.map_err(said));
}

fn columns_and_connections(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(kind, "") else {
        return;
    };
    let mut findings = Findings::default();
    let sets = known_sets(kind, WITH_TABLES);
    for charset in &sets {
        one_set(&mut pair, &mut findings, *charset, family(kind));
    }
    assert_eq!(findings.refused("columns"), [""; 0]);
    unique_keys(&mut pair, &mut findings, &sets, family(kind));
    assert_eq!(findings.refused("unique keys"), [""; 0]);
    for charset in known_sets(kind, SETS) {
        members(&mut pair, &mut findings, charset, family(kind));
    }
    assert_eq!(findings.refused("members"), [""; 0]);
    members_that_are_refused(&mut pair);
    a_name_of_mysqls(&mut pair, kind);
    a_name_of_mysqls_beside_protected_columns(&mut pair);
    connections(&mut pair, &mut findings, kind);
    // texts that the column's set lacks, in conditions
    let refused = findings.refused("connections");
    let fits = |r: &String| r.contains("WHERE a = ");
    assert!(refused.iter().all(fits), "{refused:#?}");
    connections_that_convert(&mut pair, &mut findings);
    texts_that_hide_quotes(&mut pair, &mut findings, kind);
    assert_eq!(findings.refused("hidden quotes"), [""; 0]);
    what_was_prepared_before(&mut pair, kind);
    several_statements(&mut pair);
    names_beyond_ascii(&mut pair);
    databases_beyond_ascii(&mut pair);
    findings.conclude();
    pair.conclude(0);
    nothing_leaked(&mut pair, &sets);
}

fn parameters(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(kind, "") else {
        return;
    };
    let mut findings = Findings::default();
    parameters_between_sets(&mut pair, &mut findings);
    findings.conclude();
    pair.conclude(0);
}

/// Later versions of MariaDB take the name for weights of their own, which are not those known by
/// it.
fn a_name_of_mysqls(pair: &mut Pair, kind: Kind) {
    for (column, table) in [
        ("COLLATE utf8mb4_0900_ai_ci", ""),
        ("", "COLLATE utf8mb4_0900_ai_ci"),
    ] {
        let sql = format!(
            "CREATE TABLE mysqls (id INT, c VARCHAR(9) {column} ENCRYPTED FOR (eq)) {table}"
        );
        let answer = pair.protected.run(&sql);
        match kind {
            Kind::MySql => drop((
                answer.expect(&sql),
                pair.protected.must("DROP TABLE mysqls"),
            )),
            Kind::MariaDb => {
                let failure = answer.expect_err(&sql);
                let advice = "utf8mb4_uca1400_nopad_ai_ci";
                assert!(failure.message.contains(advice), "{sql}: {failure}");
            }
        }
    }
}

/// A plain column of that name is compared as the server means it: the letters are equal to
/// MariaDB; the tables behind MySQL's collation do not have them.
fn a_name_of_mysqls_beside_protected_columns(pair: &mut Pair) {
    for (session, protection) in [
        (&mut pair.plain, ""),
        (&mut pair.protected, "ENCRYPTED FOR ()"),
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
        let said = [&mut pair.plain, &mut pair.protected].map(|session| {
            let answer = session.run(sql);
            answer.map(|o| o.text()).map_err(|failure| failure.code)
        });
        assert_eq!(said[0], said[1], "{sql}");
    }
    pair.both("DROP TABLE named");
}

fn create(pair: &mut Pair, definition: &str) {
    let (mut protected, mut bare) = (String::new(), String::new());
    for part in definition.split_inclusive('}') {
        let (text, words) = part.split_once('{').unwrap_or((part, ""));
        protected += text;
        bare += text;
        if let Some(words) = words.strip_suffix('}') {
            protected += &format!("ENCRYPTED FOR ({words})");
        }
    }
    pair.plain.must(&bare);
    pair.protected.must(&protected);
}

/// A text in a prepared statement means what it meant when that was prepared; a parameter, what it
/// means when it is bound.
fn what_was_prepared_before(pair: &mut Pair, kind: Kind) {
    create(
        pair,
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
        for session in [&mut pair.plain, &mut pair.protected] {
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
    pair.compare("SELECT * FROM t_prep ORDER BY id", &[]);
}

/// Where a statement ends depends on the character set that the one before it has set. `中\` in
/// UTF-8 is 涓璡 in gbk, whose last byte is the backslash.
fn several_statements(pair: &mut Pair) {
    create(
        pair,
        "CREATE TABLE t_two (id INT PRIMARY KEY, a VARCHAR(40) {eq}) CHARACTER SET gbk",
    );
    let hidden =
        format!("SELECT '中\\'; INSERT INTO t_two VALUES (1, \"{MARKER}\") -- ' FROM DUAL");
    let refused = pair.protected.run(&format!("SET NAMES gbk; {hidden}"));
    let refused = refused.expect_err("a refusal");
    assert!(refused.message.starts_with("OS"), "{refused}");
    pair.run("SET NAMES gbk");
    pair.run(&hidden);
    pair.run("SET NAMES utf8mb4");
    pair.compare("SELECT * FROM t_two", &[]);
    let count = pair.protected.text("SELECT COUNT(*) FROM t_two");
    assert_eq!(count.expect("a number"), "1");
}

/// Names reach the client in the character set of results, and are looked up whatever that is.
fn names_beyond_ascii(pair: &mut Pair) {
    create(
        pair,
        "CREATE TABLE `名前` (id INT PRIMARY KEY, `値` VARCHAR(40) {eq, range}, p VARCHAR(40)) CHARACTER SET utf8mb4",
    );
    for (id, results) in (1..).zip(["utf8mb4", "latin1", "gbk", "cp1251", "NULL", "binary"]) {
        pair.run("SET NAMES utf8mb4");
        // so that it is looked up again
        pair.run(&format!("ALTER TABLE `名前` COMMENT = '{results}'"));
        pair.run(&format!("SET character_set_results = {results}"));
        pair.both(&format!(
            "INSERT INTO `名前` VALUES ({id}, '{MARKER}', 'p')"
        ));
        for sql in [
            "SELECT * FROM `名前` ORDER BY id",
            "SELECT id, `値` AS w, MAX(`値`) m FROM `名前` WHERE `値` = 'Kw7Rz2Ph' GROUP BY id, `値`",
            "SELECT MIN(`値`) FROM `名前`",
            "SELECT id, `値`, 'é' FROM `名前` ORDER BY id",
        ] {
            pair.compare(sql, &[]);
        }
    }
    pair.run("SET NAMES gbk");
    let failed = pair.protected.run("SELECT * FROM `名前`");
    let failed = failed.expect_err("a refusal");
    assert!(failed.message.starts_with("OS"), "{failed}");
    pair.run("SET NAMES utf8mb4");
}

/// The session's database is the one that it is, whatever the client's character set makes of its
/// name.
fn databases_beyond_ascii(pair: &mut Pair) {
    pair.run("SET NAMES utf8mb4");
    pair.protected.must("CREATE DATABASE `dbé`");
    pair.protected
        .must("CREATE TABLE `dbé`.t (id INT PRIMARY KEY, v VARCHAR(40) ENCRYPTED FOR (eq))");
    // latin1, cp1250
    for charset in [8, 26] {
        let mut client = RawClient::login_into(pair.proxy.port(), b"db\xe9", charset);
        for sql in [
            format!("REPLACE INTO t VALUES (1, '{MARKER}')"),
            format!("SELECT id FROM t WHERE v = '{MARKER}'"),
        ] {
            let answer = client.query(sql.as_bytes());
            assert!(matches!(answer, Reply::Packet(_)), "{charset}: {answer:?}");
        }
    }
    let row = pair.protected.text("SELECT v FROM `dbé`.t");
    assert_eq!(row.expect("a row"), MARKER);
}

fn nothing_leaked(pair: &mut Pair, sets: &[Charset]) {
    let mut patterns = Pattern::of_text(MARKER);
    for charset in sets.iter().filter(|c| !c.has_ascii()) {
        let bytes = encoded(*charset, MARKER).expect("a text");
        patterns.push(Pattern::of_bytes(charset.name(), bytes));
    }
    pair.behind.shutdown();
    for file in pair.behind.data_files() {
        let bytes = std::fs::read(&file).unwrap_or_default();
        let found = find_all(&patterns, &bytes);
        assert!(found.is_empty(), "{}: {found:?}", file.display());
    }
}
