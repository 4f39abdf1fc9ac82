//! Defaults of protected columns that are computed, and ON UPDATE CURRENT_TIMESTAMP: definitions,
//! rows and answers are as from a plain server, or the statement is refused.

#[path = "scratch/findings.rs"]
mod findings;
use ::mysql::{LocalInfileHandler, Value};
use findings::{Told, tell};
use onionskin_testkit::*;
use std::io::Write;

on_both_servers!(
    definitions_are_shown_as_on_a_plain_server,
    rows_get_what_a_plain_servers_rows_get,
    a_statement_has_one_time,
    without_an_engine_values_must_be_given,
    defaults_that_are_dropped,
);

/// Columns of a table `d` whose definition is compared in every place that shows it.
const COLUMNS: &[&str] = &[
    "DATETIME DEFAULT CURRENT_TIMESTAMP",
    "DATETIME(6) NOT NULL DEFAULT LOCALTIMESTAMP(6) ON UPDATE NOW(6)",
    "TIMESTAMP(3) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(3)",
    "TIMESTAMP NOT NULL DEFAULT LOCALTIME()",
    "DATETIME ON UPDATE CURRENT_TIMESTAMP()",
    "DATETIME ON UPDATE CURRENT_TIMESTAMP DEFAULT '2001-02-03 04:05:06' COMMENT 'when'",
    "DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP INVISIBLE",
    "CHAR(36) DEFAULT (UUID())",
    "INT DEFAULT (1+2)",
    "INT UNSIGNED NOT NULL DEFAULT ((2 * 3))",
    "VARCHAR(40) NOT NULL DEFAULT (CONCAT('it''s', \"b\\\\\", LOWER('X'))) COMMENT 'c'",
    "VARCHAR(10) CHARACTER SET latin1 DEFAULT (UPPER('x'))",
    "DATE DEFAULT (CURRENT_DATE)",
    "DATETIME DEFAULT (NOW() + INTERVAL 1 DAY)",
    "DOUBLE NOT NULL DEFAULT (RAND())",
    "DECIMAL(10,2) DEFAULT (ROUND(10 / 3, 2)) INVISIBLE",
    "VARBINARY(16) DEFAULT (UNHEX(REPEAT('41', 3)))",
    "TEXT DEFAULT (REPEAT('a', 3))",
    "JSON DEFAULT (JSON_OBJECT('a', 1))",
    "BIT(4) DEFAULT (1 + 2)",
];

/// The same where the server takes it: MariaDB 11.8 knows no other words for the present time
/// behind ON UPDATE than NOW and CURRENT_TIMESTAMP.
const COLUMNS_OF_SOME: &[&str] = &[
    "DATETIME(6) NOT NULL DEFAULT NOW(6) ON UPDATE LOCALTIMESTAMP(6)",
    "DATETIME ON UPDATE LOCALTIME",
];

/// The same where MariaDB takes them without parentheses.
const COLUMNS_OF_MARIADB: &[&str] = &[
    "CHAR(36) DEFAULT UUID()",
    "VARCHAR(30) DEFAULT NOW()",
    "DATETIME DEFAULT (NOW())",
    "INT DEFAULT (3)",
    "VARCHAR(9) DEFAULT ('x')",
];

/// Definitions that no server takes.
const WRONG: &[&str] = &[
    "INT DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
    "INT ON UPDATE CURRENT_TIMESTAMP",
    "DATE ON UPDATE CURRENT_TIMESTAMP",
];

/// Definitions that plain servers may take.
const REFUSED: &[&str] = &[
    "INT DEFAULT (id + 1)",
    "VARCHAR(80) DEFAULT (CURRENT_USER())",
    "INT DEFAULT (CONNECTION_ID())",
    "DATETIME DEFAULT (SYSDATE())",
    "DATETIME(3) DEFAULT CURRENT_TIMESTAMP",
];

const SHOWS: &[&str] = &[
    "SHOW CREATE TABLE d",
    "SHOW COLUMNS FROM d",
    "SHOW FULL COLUMNS FROM d",
    "DESCRIBE d",
    "SELECT COLUMN_NAME, COLUMN_DEFAULT, IS_NULLABLE, COLUMN_TYPE, EXTRA, COLUMN_COMMENT FROM information_schema.COLUMNS \
     WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = 'd' ORDER BY ORDINAL_POSITION",
    "SELECT * FROM d",
];

fn definitions_are_shown_as_on_a_plain_server(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[]) else {
        return;
    };
    let of_mariadb = COLUMNS_OF_MARIADB.iter().filter(|_| kind == Kind::MariaDb);
    let shows = |pair: &mut Pair| {
        for sql in SHOWS {
            let (a, b) = (pair.plain.text(sql), pair.protected.text(sql));
            assert_eq!(a, b, "{sql}");
        }
    };
    let taken: Vec<&str> = COLUMNS_OF_SOME
        .iter()
        .filter(|column| is_taken(&mut pair.plain, column))
        .copied()
        .collect();
    for column in COLUMNS.iter().chain(of_mariadb).chain(&taken) {
        define(
            &mut pair,
            &format!("CREATE TABLE d (id INT PRIMARY KEY, c {column} {{}}, e INT)"),
        );
        shows(&mut pair);
        // a copy and a new name say the same
        if kind == Kind::MariaDb || !column.contains("INVISIBLE") {
            pair.both("CREATE TABLE twin LIKE d");
            pair.both("DROP TABLE d");
            pair.both("RENAME TABLE twin TO d");
        }
        for session in [&mut pair.plain, &mut pair.protected] {
            session.must("ALTER TABLE d RENAME COLUMN c TO renamed");
        }
        shows(&mut pair);
        pair.both("DROP TABLE d");
    }
    for column in WRONG {
        let create = format!("CREATE TABLE d (id INT PRIMARY KEY, c {column} {{}})");
        let (definition, bare) = with_and_without_protection(&create);
        // an engine does not take the proxy's own words, a policy's tables have none
        assert!(pair.protected.run(&definition).is_err(), "{definition}");
        pair.plain.must_fail(&bare);
    }
    for column in REFUSED {
        let create = format!("CREATE TABLE d (id INT PRIMARY KEY, c {column} {{}})");
        let (definition, _) = with_and_without_protection(&create);
        let failure = pair.protected.run(&definition).expect_err(column);
        assert!(failure.message.starts_with("OS1013"), "{column}: {failure}");
    }
    // what ALTER TABLE makes of them; MySQL does not log one with UUID()
    define(
        &mut pair,
        "CREATE TABLE d (id INT PRIMARY KEY, at DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP {}, n INT DEFAULT 4 {eq})",
    );
    define(
        &mut pair,
        "ALTER TABLE d ADD COLUMN code CHAR(36) NOT NULL DEFAULT (CONCAT('a', 1 + 1)) {eq}, ADD COLUMN made TIMESTAMP(3) NULL DEFAULT CURRENT_TIMESTAMP(3) {} FIRST",
    );
    shows(&mut pair);
    for sql in [
        "ALTER TABLE d ALTER COLUMN n SET DEFAULT (3 * 3)",
        "ALTER TABLE d ALTER COLUMN code DROP DEFAULT",
        "ALTER TABLE d ALTER COLUMN n SET DEFAULT 5, ALTER COLUMN code SET DEFAULT (CONCAT('b', 'c'))",
        "ALTER TABLE d ALTER COLUMN made SET DEFAULT NULL",
        "ALTER TABLE d DROP COLUMN code, RENAME COLUMN at TO seen",
    ] {
        for session in [&mut pair.plain, &mut pair.protected] {
            session.must(sql);
        }
        shows(&mut pair);
    }
    // rows that are there would need a value each
    pair.both("INSERT INTO d (id, seen) VALUES (1, '2002-02-02 02:02:02')");
    let add = "ALTER TABLE d ADD COLUMN x CHAR(36) DEFAULT (UUID()) ENCRYPTED FOR (eq)";
    let failure = pair.protected.run(add).expect_err("rows need values");
    assert!(failure.message.starts_with("OS"), "{failure}");
    pair.same_result_of_text("SELECT id, n, seen FROM d");
    pair.proxy.assert_healthy();
}

/// Whether a plain server takes the definition of a column, or finds it no SQL.
fn is_taken(plain: &mut Session, column: &str) -> bool {
    match plain.run(&format!("CREATE TABLE asked (c {column})")) {
        Ok(_) => {
            plain.must("DROP TABLE asked");
            true
        }
        Err(failure) => {
            assert_eq!(failure.code, 1064, "{column}: {failure}");
            false
        }
    }
}

/// Runs a definition on both.
fn define(pair: &mut Pair, sql: &str) {
    let (definition, bare) = with_and_without_protection(sql);
    pair.plain.must(&bare);
    pair.protected.must(&definition);
}

const TABLES: &[&str] = &[
    "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(30) {eq}, at DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP {range}, \
     made TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) {}, n INT DEFAULT (1+2) {eq, range}, word VARCHAR(30) DEFAULT (CONCAT('a', LOWER('B'))) {eq}, \
     code CHAR(36) DEFAULT (UUID()) {eq}, open TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), u INT, UNIQUE KEY (code))",
    "CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) {}, name VARCHAR(20) UNIQUE {eq}, \
     changed TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP {}, hits INT DEFAULT 1 {})",
    "CREATE TABLE days (id INT PRIMARY KEY, day DATE DEFAULT (CURRENT_DATE) {eq}, at DATETIME(6) DEFAULT NOW(6) {}, open DATE DEFAULT (CURRENT_DATE), \
     moment DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3))",
    "CREATE TABLE later (id INT PRIMARY KEY, at DATETIME DEFAULT CURRENT_TIMESTAMP {}, open DATETIME DEFAULT (NOW() + INTERVAL 1 DAY))",
    "CREATE TABLE plain (id INT PRIMARY KEY, name VARCHAR(30))",
];

const CONTENTS: &[&str] = &[
    "SELECT id, name, at, made, n, word, CHAR_LENGTH(code), open, u FROM t ORDER BY id",
    "SELECT COUNT(code) - COUNT(DISTINCT code) FROM t",
    "SELECT id, at, name, changed, hits FROM counted ORDER BY id",
    "SELECT id, day, at, open, moment FROM days ORDER BY id",
    "SELECT id, at FROM later ORDER BY id",
];

const STATEMENTS: &[&str] = &[
    "INSERT INTO t (id, name) VALUES (1, 'Hb4YqMz7'), (2, 'b')",
    "INSERT INTO t (id, at, n, word, made, code) VALUES (3, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT), \
     (4, '2001-02-03 04:05:06', 7, 'x', '2001-02-03 04:05:06.5', 'y')",
    "INSERT INTO t SET id = 5, name = 'c'",
    "INSERT INTO t SET id = 6, at = DEFAULT, name = LOWER('D')",
    "INSERT INTO t (id, name, open, made) VALUES (7, 'd', NOW(6), NOW(6) - INTERVAL 1 DAY)",
    "INSERT INTO t (id, at, n) VALUES (8, NULL, NULL)",
    "INSERT INTO t (id, made) VALUES (9, NULL)",
    "INSERT INTO t (id, n) VALUES (9, 'x')",
    "INSERT IGNORE INTO t (id, name) VALUES (1, 'again'), (10, 'ten')",
    "INSERT INTO t (id) VALUES (1)",
    "REPLACE INTO t (id, name) VALUES (2, 'e'), (11, 'f')",
    "REPLACE INTO t SET id = 5, word = 'given'",
    "INSERT INTO t (id, name) SELECT id + 100, name FROM t WHERE id < 4",
    "INSERT INTO t (id, name, made) SELECT id + 200, name, made FROM t WHERE n = 3 ORDER BY id LIMIT 2",
    "REPLACE INTO t (id, name) SELECT id, CONCAT(name, '2') FROM t WHERE id IN (2, 11)",
    "INSERT INTO plain SELECT id, 'x' FROM t",
    "INSERT INTO t (id, name) SELECT id + 300, name FROM plain WHERE id < 3",
    // what changes, and what does not
    "UPDATE t SET name = 'A' WHERE id = 1",
    "UPDATE t SET name = 'A' WHERE id = 1",
    "UPDATE t SET name = 'a' WHERE id = 1",
    "UPDATE t SET u = 5 WHERE id IN (1, 2)",
    "UPDATE t SET u = 5 WHERE id IN (1, 2, 3)",
    "UPDATE t SET u = u + 1, n = n * 2 WHERE n IS NOT NULL",
    "UPDATE t SET name = 'z', at = '2000-01-01 00:00:00' WHERE id = 3",
    "UPDATE t SET at = at, name = 'q' WHERE id = 3",
    "UPDATE t SET at = NULL WHERE id = 4",
    "UPDATE t SET n = DEFAULT, word = DEFAULT WHERE id = 4",
    "UPDATE t SET at = DEFAULT WHERE id = 4",
    "UPDATE t SET name = CONCAT(name, '!') WHERE n > 3",
    "UPDATE t SET u = 1 ORDER BY id DESC LIMIT 2",
    "UPDATE t JOIN plain USING (id) SET t.name = plain.name WHERE t.id > 100",
    "UPDATE t SET u = 9 WHERE name = 'nobody'",
    "UPDATE t SET id = id + 1000 WHERE id = 8",
    // rows that are met
    "INSERT INTO t (id, name) VALUES (1, 'k') ON DUPLICATE KEY UPDATE name = VALUES(name)",
    "INSERT INTO t (id, name) VALUES (1, 'k') ON DUPLICATE KEY UPDATE name = VALUES(name)",
    "INSERT INTO t (id, name) VALUES (1, 'l'), (20, 'm') ON DUPLICATE KEY UPDATE u = IFNULL(u, 0) + 1",
    "INSERT INTO t (id) VALUES (1), (21) ON DUPLICATE KEY UPDATE n = DEFAULT",
    "INSERT INTO t (id, name) VALUES (1, 'o') ON DUPLICATE KEY UPDATE at = '2003-03-03 03:03:03', name = 'p'",
    "INSERT INTO t (id, name) VALUES (1, 'o') ON DUPLICATE KEY UPDATE made = VALUES(made), word = CONCAT(word, VALUES(word))",
    "INSERT INTO t (id, name) SELECT id, name FROM plain WHERE id < 5 ON DUPLICATE KEY UPDATE name = VALUES(name)",
    "INSERT INTO t (id, name) SELECT id + 20, name FROM plain WHERE id < 5 ON DUPLICATE KEY UPDATE u = 77",
    // numbers of the server's
    "INSERT INTO counted VALUES ()",
    "INSERT INTO counted () VALUES (), ()",
    "INSERT INTO counted (name) VALUES ('x'), ('y')",
    "INSERT INTO counted (name) VALUES ('x') ON DUPLICATE KEY UPDATE hits = hits + 1",
    "INSERT INTO counted (name) VALUES ('X') ON DUPLICATE KEY UPDATE hits = hits",
    "INSERT INTO counted (name, changed) VALUES ('z', '2001-01-01 01:01:01')",
    "UPDATE counted SET hits = 1 WHERE name = 'z'",
    "UPDATE counted SET hits = 2 WHERE name = 'z'",
    "DELETE FROM t WHERE at > '2000-01-02' AND id < 3",
    // the time, told by the server, or by the engine beside a plain column with a time of its own
    "INSERT INTO days (id) VALUES (1), (2)",
    "INSERT INTO days VALUES (3, DEFAULT, DEFAULT, DEFAULT, DEFAULT), (4, CURDATE(), NOW(), NULL, NULL)",
    "INSERT INTO days SET id = 5, day = '2001-01-01'",
    "INSERT INTO days (id, open) VALUES (6, CURDATE())",
    "INSERT INTO days (id, at) VALUES (7, NOW() + INTERVAL 1 DAY)",
    "UPDATE days SET day = CURDATE(), at = DEFAULT WHERE id < 3",
    "UPDATE days SET day = CURDATE(), moment = NOW(3) WHERE id < 3",
    "INSERT INTO days (id) SELECT id + 50 FROM plain WHERE id < 3",
    "INSERT INTO later (id) VALUES (1), (2)",
    "INSERT INTO later (id, at, open) VALUES (3, NOW(), DEFAULT)",
    "INSERT INTO later (id, open) VALUES (4, NULL)",
];

fn rows_get_what_a_plain_servers_rows_get(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, TABLES) else {
        return;
    };
    let (mut compared, mut different) = (0, Vec::new());
    let mut clock = 1_700_000_000.25;
    let mut compare = |pair: &mut Pair, sql: &str, prepared: Option<&[Value]>| {
        // the clock stands still while a statement runs on both
        clock += 10.125;
        let time = format!("SET timestamp = {clock}");
        pair.plain.must(&time);
        pair.protected.must(&time);
        let a = tell(&mut pair.plain, sql, prepared);
        let b = tell(&mut pair.protected, sql, prepared);
        assert!(!b.refused(), "{sql}\n{b:?}");
        let bare = |mut told: Told| (told.without_message(), told);
        let ((said, a), (says, b)) = (bare(a), bare(b));
        if a != b {
            different.push(format!(
                "{sql} ({prepared:?})\n  {a:?} {said}\n  {b:?} {says}"
            ));
        }
        for query in CONTENTS {
            let (a, b) = (pair.plain.text(query), pair.protected.text(query));
            if a != b {
                let (a, b) = (a.expect(query), b.expect(query));
                different.push(format!("{query} after {sql}\n{a}\n---\n{b}"));
            }
        }
        compared += 1;
    };
    for sql in STATEMENTS {
        compare(&mut pair, sql, None);
    }
    let values = [Value::from(30), "bound".into(), 31.into(), Value::NULL];
    compare(
        &mut pair,
        "INSERT INTO t (id, name) VALUES (?, ?), (?, ?)",
        Some(&values),
    );
    compare(
        &mut pair,
        "INSERT INTO t (id, at, name) VALUES (?, DEFAULT, ?)",
        Some(&[Value::from(32), "bound".into()]),
    );
    compare(
        &mut pair,
        "UPDATE t SET name = ? WHERE id < ?",
        Some(&["by a parameter".into(), 9.into()]),
    );
    compare(
        &mut pair,
        "INSERT INTO counted (name) VALUES (?) ON DUPLICATE KEY UPDATE hits = hits + ?",
        Some(&["y".into(), 5.into()]),
    );
    // a transaction that is taken back
    for sql in [
        "BEGIN",
        "INSERT INTO t (id) VALUES (50)",
        "UPDATE t SET name = 'gone'",
        "ROLLBACK",
    ] {
        compare(&mut pair, sql, None);
    }
    // files of the client's
    for server in [&pair.behind, pair.beside()] {
        server.connect().must("SET GLOBAL local_infile = 1");
    }
    for session in [&mut pair.plain, &mut pair.protected] {
        let handler =
            LocalInfileHandler::new(|_, writer| writer.write_all(b"60\tsixty\n61\tmore\n"));
        session.conn().set_local_infile_handler(Some(handler));
    }
    compare(
        &mut pair,
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE t (id, name)",
        None,
    );
    compare(
        &mut pair,
        "LOAD DATA LOCAL INFILE 'rows' REPLACE INTO TABLE t (id, name) SET u = 4",
        None,
    );
    if kind == Kind::MariaDb {
        compare_the_ways(&mut pair);
    }
    // what is asked of a default by itself
    pair.same_result_of_text("SELECT DEFAULT(at), id FROM t WHERE id = 1");
    announce(&format!(
        "{kind:?}: {compared} statements compared, {} different",
        different.len()
    ));
    assert!(different.is_empty(), "{}", different.join("\n"));
    pair.nothing_leaked();
}

/// The statements that the way through the engine takes, and that one question for the time takes
/// (`present.rs`).
fn compare_the_ways(pair: &mut Pair) {
    let questions = |session: &mut Session, scope: &str| -> u64 {
        let shown = session.text(&format!("SHOW {scope} STATUS LIKE 'Questions'"));
        let shown = shown.unwrap();
        shown.split('\t').nth(1).unwrap().trim().parse().unwrap()
    };
    let mut watch = pair.beside().connect();
    let ways = [
        "INSERT INTO later (id) VALUES",
        "INSERT INTO days (id) VALUES",
    ]
    .map(|insert| {
        let counts = [600, 601, 602].map(|id| {
            let before = questions(&mut pair.protected, "SESSION");
            let at_engine = questions(&mut watch, "GLOBAL");
            pair.protected.must(&format!("{insert} ({id})"));
            let at_engine = questions(&mut watch, "GLOBAL") - at_engine - 1;
            (
                questions(&mut pair.protected, "SESSION") - before - 1,
                at_engine,
            )
        });
        counts.into_iter().min().unwrap_or_default()
    });
    announce(&format!(
        "statements to the server and to the engine: {:?} by the engine, {:?} by the server's time",
        ways[0], ways[1]
    ));
    assert_eq!(ways[1], (2, 0));
    assert!(ways[0].1 > 0);
}

fn a_statement_has_one_time(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, TABLES) else {
        return;
    };
    let session = &mut pair.protected;
    let rows: Vec<String> = (1..=1200).map(|id| format!("({id}, 'n{id}')")).collect();
    session.must(&format!(
        "INSERT INTO t (id, name) VALUES {}",
        rows.join(", ")
    ));
    let times = "SELECT COUNT(DISTINCT made), COUNT(DISTINCT open), SUM(made <> open), COUNT(DISTINCT code), COUNT(*) FROM t";
    assert_eq!(session.text(times).unwrap(), "1\t1\t0\t1200\t1200");
    session.must("REPLACE INTO t (id, name) SELECT id, CONCAT(name, '!') FROM t");
    assert_eq!(session.text(times).unwrap(), "1\t1\t0\t1200\t1200");
    // between the beginning of the statement and its end
    let before = session.text("SELECT NOW()").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    session.must("UPDATE t SET name = 'changed' WHERE id < 700");
    let after = session.text("SELECT NOW()").unwrap();
    let changed = format!(
        "SELECT COUNT(*), COUNT(DISTINCT at), MAX(at) > '{before}' AND MAX(at) <= '{after}' FROM t WHERE name = 'changed'"
    );
    assert_eq!(session.text(&changed).unwrap(), "699\t1\t1");
    let others =
        "SELECT COUNT(*) FROM t WHERE name <> 'changed' AND at > (SELECT MAX(made) FROM t)";
    assert_eq!(session.text(others).unwrap(), "0");
    pair.proxy.assert_healthy();
}

/// Of a column that allows NULL, MySQL takes away that default as well: a row needs a value then.
/// MariaDB has NULL left.
fn defaults_that_are_dropped(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(20) {eq} DEFAULT 'x', n INT {eq}, \
         e ENUM('a','b') {eq}, b BINARY(4) NOT NULL {} DEFAULT 'y')";
    let Some(mut pair) = Pair::of(kind, true, &[table]) else {
        return;
    };
    pair.both("CREATE VIEW v AS SELECT id, a, n, e, b FROM t");
    pair.both("INSERT INTO t VALUES (1, 'one', 1, 'a', 'z')");
    for column in ["a", "n", "e", "b"] {
        pair.same(&format!("ALTER TABLE t ALTER COLUMN {column} DROP DEFAULT"));
        pair.same("SHOW CREATE TABLE t");
    }
    pair.same("DESCRIBE t");
    let mut equal = 0;
    for mode in ["@@global.sql_mode", "''"] {
        pair.both(&format!("SET sql_mode = {mode}"));
        for sql in [
            "INSERT INTO t (b) VALUES ('b')",
            "INSERT INTO t (a, b) VALUES ('a', 'b')",
            "INSERT INTO t (a, n, b) VALUES ('a', 2, 'b'), ('c', NULL, 'd')",
            "INSERT INTO t VALUES (NULL, DEFAULT, 3, 'a', 'b')",
            "INSERT INTO t VALUES (NULL, 'a', DEFAULT, DEFAULT, 'b')",
            "INSERT INTO t SET n = 4, b = 'b', a = DEFAULT(a)",
            "INSERT INTO t () VALUES ()",
            "INSERT IGNORE INTO t (n, b) VALUES (5, 'b')",
            "REPLACE INTO t (id, b) VALUES (1, 'b')",
            "INSERT INTO t (id, a, n, b) VALUES (1, 'q', 1, 'b') ON DUPLICATE KEY UPDATE a = DEFAULT",
            "INSERT INTO t (id, a, n, b) VALUES (1, 'q', 6, 'b') ON DUPLICATE KEY UPDATE n = VALUES(n)",
            "INSERT INTO t (n, b) SELECT n + 1, b FROM t WHERE id = 1",
            "INSERT INTO t (a, n, b) SELECT UPPER(a), n + 1, b FROM t WHERE id = 1",
            "INSERT INTO v (n, b) VALUES (7, 'b')",
            "INSERT INTO v (a, n, b) VALUES ('v', 7, 'b')",
            "UPDATE t SET a = DEFAULT WHERE id = 1",
            "UPDATE t SET n = DEFAULT, e = DEFAULT WHERE id = 1",
            "SELECT DEFAULT(a) FROM t WHERE id = 1",
        ] {
            let said = pair.say(sql);
            if said.is_refused() {
                // so that both go on from the same rows
                for session in [&mut pair.plain, &mut pair.protected] {
                    session.must("DELETE FROM t");
                    session.must("INSERT INTO t VALUES (1, 'one', 1, 'a', 'z')");
                }
                continue;
            }
            assert_eq!(said.plain, said.protected, "{mode}: {sql}");
            pair.same_rows("SELECT a, n, e, b FROM t ORDER BY n, a, b, e", &[]);
            equal += 1;
        }
    }
    assert!(equal > 20, "only {equal} were compared");
    // as it was
    pair.both("SET sql_mode = @@global.sql_mode");
    copies_without_defaults(&mut pair, kind);
    pair.same("ALTER TABLE t ALTER COLUMN a SET DEFAULT NULL");
    pair.same("ALTER TABLE t MODIFY n INT");
    pair.same("DESCRIBE t");
    pair.same("INSERT INTO t (b) VALUES ('b')");
    pair.proxy.assert_healthy();
}

/// A copy has no defaults either. That of a plain column is made of a definition, which does not
/// tell.
fn copies_without_defaults(pair: &mut Pair, kind: Kind) {
    pair.same("CREATE TABLE copied LIKE t");
    pair.same("SHOW CREATE TABLE copied");
    for sql in [
        "INSERT INTO copied (b) VALUES ('b')",
        "INSERT INTO copied (a, b) VALUES ('a', 'b')",
        "INSERT INTO copied (a, n, b) VALUES ('a', 2, 'b')",
        "SELECT * FROM copied",
        "CREATE TABLE twice LIKE copied",
        "INSERT INTO twice (a, b) VALUES ('a', 'b')",
        "ALTER TABLE t ADD z VARCHAR(5)",
        "ALTER TABLE t ALTER z DROP DEFAULT",
    ] {
        pair.same(sql);
    }
    let done = pair.same_or_refused("CREATE TABLE thrice LIKE t");
    assert_eq!(done, kind == Kind::MariaDb);
    pair.same("ALTER TABLE t DROP COLUMN z");
}

fn without_an_engine_values_must_be_given(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut proxy = Proxy::start(&server, "");
    server.connect().must("CREATE DATABASE app");
    let mut session = proxy.connect_to("app");
    session.must(
        "CREATE TABLE t (id INT PRIMARY KEY, at DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP ENCRYPTED FOR (), \
         name VARCHAR(20) ENCRYPTED FOR (eq))",
    );
    let code = |session: &mut Session, sql: &str| {
        let failure = session.run(sql).expect_err(sql);
        failure
            .message
            .split(' ')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    session.must("INSERT INTO t VALUES (1, '2001-02-03 04:05:06', 'a')");
    // the server tells the time
    for sql in [
        "INSERT INTO t (id, name) VALUES (2, 'b')",
        "INSERT INTO t VALUES (3, DEFAULT, 'b')",
        "REPLACE INTO t (id) VALUES (1)",
        "UPDATE t SET name = 'b'",
        "UPDATE t SET at = DEFAULT",
        "DELETE FROM t WHERE id > 1",
    ] {
        session.must(sql);
    }
    // but not which rows an expression changes, or what else there is
    for sql in [
        "UPDATE t SET id = id + 5",
        "INSERT INTO t (id, at) VALUES (1, NULL) ON DUPLICATE KEY UPDATE name = 'c'",
    ] {
        assert_eq!(code(&mut session, sql), "OS1035", "{sql}");
    }
    session.must("UPDATE t SET name = 'c', at = '2002-02-02 02:02:02' WHERE id = 1");
    session.must(
        "INSERT INTO t (id, at) VALUES (1, NULL) ON DUPLICATE KEY UPDATE name = 'd', at = '2003-03-03 03:03:03'",
    );
    assert_eq!(
        session.text("SELECT id, at, name FROM t").unwrap(),
        "1\t2003-03-03 03:03:03\td"
    );
    let create = "CREATE TABLE u (id INT, code CHAR(36) DEFAULT (UUID()) ENCRYPTED FOR (eq))";
    assert_eq!(code(&mut session, create), "OS1013");
    proxy.assert_healthy();
}
