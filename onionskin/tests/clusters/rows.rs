//! What is written through one proxy is read through the others, and no node has another cell.

use super::guarded::{CONTROL, Guarded, SECRET};
use onionskin_testkit::*;

/// Types, a value as a literal, and what is read.
const VALUES: &[(&str, &str, &str)] = &[
    ("TINYINT", "-128", "-128"),
    ("SMALLINT UNSIGNED", "65535", "65535"),
    ("MEDIUMINT", "-8388608", "-8388608"),
    ("INT", "2147483647", "2147483647"),
    (
        "BIGINT UNSIGNED",
        "18446744073709551615",
        "18446744073709551615",
    ),
    (
        "DECIMAL(20,6)",
        "-12345678901234.567890",
        "-12345678901234.567890",
    ),
    ("FLOAT", "1.5", "1.5"),
    ("DOUBLE", "-2.25e100", "-2.25e100"),
    ("BOOLEAN", "TRUE", "1"),
    ("DATE", "'2024-02-29'", "2024-02-29"),
    (
        "DATETIME(6)",
        "'2024-02-29 23:59:59.123456'",
        "2024-02-29 23:59:59.123456",
    ),
    (
        "TIMESTAMP(3) NULL",
        "'2024-02-29 12:00:00.125'",
        "2024-02-29 12:00:00.125",
    ),
    ("TIME(2)", "'-838:59:58.25'", "-838:59:58.25"),
    ("YEAR", "2155", "2155"),
    ("CHAR(40)", "'Zk7QvWm3 fixed'", "Zk7QvWm3 fixed"),
    (
        "VARCHAR(60)",
        "'Zk7QvWm3 žluťoučký 🦓'",
        "Zk7QvWm3 žluťoučký 🦓",
    ),
    ("TINYTEXT", "'Zk7QvWm3 tiny'", "Zk7QvWm3 tiny"),
    ("TEXT", "REPEAT('x', 9)", "xxxxxxxxx"),
    ("MEDIUMTEXT", "''", ""),
    ("LONGTEXT", "NULL", "NULL"),
    ("BINARY(12)", "'Zk7QvWm3\\0b'", "Zk7QvWm3\0b\0\0"),
    ("VARBINARY(40)", "'Zk7QvWm3 bytes'", "Zk7QvWm3 bytes"),
    ("BLOB", "x'00017f'", "\0\u{1}\u{7f}"),
    ("ENUM('Zk7QvWm3 a','b')", "'b'", "b"),
    ("SET('a','b','c')", "'a,c'", "a,c"),
];

/// Rows of every type go from each node that is written to, to all others.
pub fn of_every_type(guarded: &mut Guarded) {
    let writers = guarded.writers();
    let mut own: Vec<(&str, &str, &str)> = VALUES.to_vec();
    let (document, shown) = ("'{\"Zk7QvWm3\": [1, null]}'", "{\"Zk7QvWm3\": [1, null]}");
    own.push(("JSON", document, shown));
    if guarded.cluster.topology().kind() == Kind::MariaDb {
        let id = "00112233-4455-6677-8899-aabbccddeeff";
        own.push(("UUID", "'00112233-4455-6677-8899-aabbccddeeff'", id));
        own.push(("INET6", "'2001:db8::1'", "2001:db8::1"));
    }
    // an ENUM's members stand in the definition, which is no secret
    own.retain(|(name, ..)| !name.starts_with("ENUM('Zk"));
    own.push(("ENUM('a','b')", "'b'", "b"));
    let columns: Vec<String> = (0..own.len()).map(|n| format!("c{n}")).collect();
    let defined: Vec<String> = own
        .iter()
        .zip(&columns)
        .map(|((name, ..), column)| match name.split_once(" NULL") {
            Some((name, _)) => format!("{column} {name} NULL ENCRYPTED FOR ()"),
            None => format!("{column} {name} ENCRYPTED FOR ()"),
        })
        .collect();
    guarded.at(writers[0]).must(&format!(
        "CREATE TABLE types (id INT PRIMARY KEY, open VARCHAR(40), {})",
        defined.join(", ")
    ));
    guarded.settle_tables();
    let literals: Vec<&str> = own.iter().map(|(_, literal, _)| *literal).collect();
    for (id, writer) in writers.iter().enumerate() {
        guarded.at(*writer).must(&format!(
            "INSERT INTO types (id, open, {}) VALUES ({id}, '{CONTROL}', {})",
            columns.join(", "),
            literals.join(", ")
        ));
    }
    for ((name, _, expected), column) in own.iter().zip(&columns) {
        let read = guarded.same(&format!("SELECT {column} FROM types ORDER BY id"));
        let all: Vec<&str> = writers.iter().map(|_| *expected).collect();
        assert_eq!(read, all.join("\n"), "{name}");
    }
    let cells = guarded.cluster.same_cells("app", "types");
    assert_eq!(cells.len(), writers.len());
    assert!(cells.iter().all(|cell| !cell.contains(&hex(SECRET))));
    let open = format!("{}\t", hex(CONTROL));
    assert!(cells.iter().all(|cell| cell.contains(&open)), "{cells:?}");
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02X}")).collect()
}

/// Tokens, order keys and grams are the same everywhere: rows are found by each node.
pub fn tables_are_protected_everywhere(guarded: &mut Guarded) {
    let writers = guarded.writers();
    guarded.at(writers[0]).must(
        "CREATE TABLE found (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) ENCRYPTED FOR (eq, like), \
         n INT ENCRYPTED FOR (range), born DATE ENCRYPTED FOR (eq, range), UNIQUE KEY (name))",
    );
    guarded.settle_tables();
    for writer in &writers {
        let mut session = guarded.at(*writer);
        for n in 0..5 {
            session.must(&format!(
                "INSERT INTO found (name, n, born) VALUES ('{SECRET} {writer} {n}', {writer}{n}, '2001-01-0{}')",
                n + 1
            ));
        }
        guarded.settle();
    }
    for writer in &writers {
        let name = format!("{SECRET} {writer} 3");
        for (sql, expected) in [
            (
                format!("SELECT n FROM found WHERE name = '{name}'"),
                format!("{}", writer * 10 + 3),
            ),
            (
                format!("SELECT COUNT(*) FROM found WHERE name LIKE '%{writer} 3'"),
                "1".into(),
            ),
            (
                format!("SELECT name FROM found WHERE n = {writer}3"),
                name.clone(),
            ),
            (
                format!("SELECT COUNT(*) FROM found WHERE n BETWEEN {writer}1 AND {writer}3"),
                "3".into(),
            ),
        ] {
            assert_eq!(guarded.same(&sql), expected, "{sql}");
        }
        // a unique key holds across nodes
        for other in &writers {
            let again = format!("INSERT INTO found (name) VALUES ('{name}')");
            assert_eq!(guarded.at(*other).must_fail(&again), 1062);
        }
    }
    for number in guarded.cluster.running() {
        let shown = guarded.at(number).text("SHOW CREATE TABLE found");
        let shown = shown.expect("a definition");
        assert!(shown.contains("`name` varchar(40)"), "{shown}");
        let mut plain = guarded.cluster.connect(number);
        let columns = plain.text("SHOW COLUMNS FROM app.found").expect("columns");
        assert!(columns.contains("name$enc"), "node {number}: {columns}");
    }
}
