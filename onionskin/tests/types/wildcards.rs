//! A wildcard of `[protect]` is for columns of any type.

use onionskin_testkit::*;

pub fn a_wildcard_gives_what_a_type_can_have(kind: Kind) {
    let settings = "enforce = true\n[protect.\"app.*\"]\n\"*\" = [\"eq\", \"range\", \"like\"]\n\
                    [protect.\"app.named\"]\ndoc = [\"eq\"]\n";
    let Some(mut pair) = Pair::start_with(
        kind,
        PairOptions {
            settings,
            database: "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
            ..PairOptions::default()
        },
    ) else {
        return;
    };
    let said = pair.same(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT, name VARCHAR(20), doc JSON, at DATETIME, kind ENUM('a', 'b'))",
    );
    assert!(!said.contains(" OS1"), "{said}");
    for sql in [
        "INSERT INTO t VALUES (1, 5, 'Ann', '[1, 2]', '2026-01-02 03:04:05', 'b'), (2, 7, 'Bob', NULL, NULL, 'a')",
        "SELECT * FROM t ORDER BY id",
        "SELECT id FROM t WHERE n > 5 AND name LIKE 'B%'",
        "SELECT doc FROM t WHERE name = 'Ann' AND kind = 'b'",
        "UPDATE t SET doc = '[3]' WHERE at < '2026-02-01'",
        "SELECT id, doc FROM t ORDER BY name DESC",
        "SELECT * FROM t ORDER BY id",
    ] {
        let said = pair.same(sql);
        assert!(!said.contains(" OS1"), "{sql}\n{said}");
    }
    // Servers add it without a look at the rows, and count none.
    for session in [&mut pair.plain, &mut pair.protected] {
        session.must("ALTER TABLE t ADD COLUMN more JSON");
    }
    pair.same("SELECT * FROM t ORDER BY id");
    let shown = "SELECT GROUP_CONCAT(COLUMN_NAME) FROM information_schema.COLUMNS \
                 WHERE TABLE_NAME = 't' AND COLUMN_NAME RLIKE '^(doc|more)[$]enc$'";
    let sealed = pair.behind.connect().text(shown).unwrap();
    assert_eq!(sealed, "doc$enc,more$enc");
    // What is named is meant.
    let named = pair
        .protected
        .run("CREATE TABLE named (id INT PRIMARY KEY, doc JSON)");
    match kind {
        Kind::MySql => assert!(named.unwrap_err().to_string().contains("OS1013")),
        Kind::MariaDb => assert!(named.is_ok()),
    }
}
