//! The present time as a value of protected columns, without a scratch engine: rows, answers and
//! what is asked afterwards are as from a plain server, in one round trip more.

use ::mysql::Value;
use ::mysql::prelude::Queryable;
use onionskin_testkit::*;

on_both_servers!(
    values_are_the_servers_time,
    a_statement_has_one_time,
    the_session_stays_as_it_was,
    what_has_another_clock_is_refused,
);

const TABLES: &[&str] = &[
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(30) {eq}, at DATETIME DEFAULT CURRENT_TIMESTAMP {range}, \
     made TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) {}, day DATE {eq}, n INT {eq, range})",
    "CREATE TABLE changed (id INT PRIMARY KEY, name VARCHAR(30) {eq}, n INT {eq, range}, plain INT, at DATETIME(3) {range} DEFAULT CURRENT_TIMESTAMP(3) \
     ON UPDATE CURRENT_TIMESTAMP(3), seen TIMESTAMP NULL {} ON UPDATE CURRENT_TIMESTAMP)",
    "CREATE TABLE mixed (id INT AUTO_INCREMENT PRIMARY KEY, at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) {}, \
     open TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), brief DATETIME(2) DEFAULT CURRENT_TIMESTAMP(2), name VARCHAR(20) {eq}, UNIQUE KEY (name))",
    "CREATE TABLE own (id INT AUTO_INCREMENT PRIMARY KEY, at DATETIME DEFAULT CURRENT_TIMESTAMP {}, word VARCHAR(9) DEFAULT 'unknown', x INT, \
     open DATETIME NULL ON UPDATE CURRENT_TIMESTAMP, later DATETIME NULL)",
];

/// A protected database and a plain one on one server.
fn pair(kind: Kind) -> Option<Pair> {
    let options = PairOptions {
        tables: TABLES,
        on_one_server: true,
        database: "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
        server: ServerOptions {
            general_log: true,
            binlog: Some(Binlog::Row),
            flush_log_at_commit: 1,
            // SHOW STATUS is empty there without
            performance_schema: kind == Kind::MySql,
            ..ServerOptions::default()
        },
        ..PairOptions::default()
    };
    Pair::start_with(kind, options)
}

/// What both say to a statement, and are asked behind it, is the same.
fn same_and_asked_behind(pair: &mut Pair, sql: &str, parameters: Option<&[Value]>) {
    let [a, b] = pair.sessions().map(|s| told(s, sql, parameters));
    assert_eq!(a, b, "{sql} ({parameters:?})");
}

fn same_text(pair: &mut Pair, sql: &str, behind: &str) {
    let [a, b] = pair.sessions().map(|s| s.text(sql).expect(sql));
    assert_eq!(a, b, "{sql} behind {behind}");
}

fn told(session: &mut Session, sql: &str, parameters: Option<&[Value]>) -> String {
    let conn = session.conn();
    let done = match parameters {
        None => conn.query_drop(sql),
        Some(values) => conn.exec_drop(sql, values.to_vec()),
    };
    let said = match done {
        Ok(()) => format!(
            "{} {} {} {}",
            conn.affected_rows(),
            conn.last_insert_id(),
            conn.warnings(),
            conn.info_str()
        ),
        Err(error) => {
            let failure = Failure::from(error);
            assert!(!failure.message.starts_with("OS"), "{sql}\n{failure}");
            format!("{} {}", failure.code, failure.state)
        }
    };
    let asked =
        ["SELECT ROW_COUNT()", "SELECT LAST_INSERT_ID()"].map(|q| session.text(q).expect(q));
    format!("{said} / {asked:?}")
}

const CONTENTS: &[&str] = &[
    "SELECT id, name, at, made, day, n FROM t ORDER BY id",
    "SELECT id, name, n, plain, at, seen FROM changed ORDER BY id",
    "SELECT id, at, open, brief, name FROM mixed ORDER BY id",
];

const STATEMENTS: &[&str] = &[
    "INSERT INTO t (name) VALUES ('a')",
    "INSERT INTO t (name) VALUES ('b'), ('c')",
    "INSERT INTO t VALUES ()",
    "INSERT INTO t () VALUES (), ()",
    "INSERT INTO t (name, at) VALUES ('d', DEFAULT), ('e', NULL), ('f', '2001-02-03 04:05:06')",
    "INSERT INTO t (name, at) VALUES ('g', NOW()), ('h', CURRENT_TIMESTAMP)",
    "INSERT INTO t (name, at, made) VALUES ('i', LOCALTIME, now())",
    "INSERT INTO t (name, day) VALUES ('i', CURDATE()), ('i', CURRENT_DATE())",
    "INSERT INTO t SET name = 'j'",
    "INSERT INTO t (name, made) VALUES ('i', NOW(6))",
    "INSERT INTO t (name, made) VALUES ('i', NOW(6)), ('i', NOW(6))",
    "INSERT INTO t (name, made) VALUES ('i', NOW(3)), ('i', NOW(6))",
    "INSERT INTO t (name, made) VALUES ('i', NOW(3)), ('i', NOW(3))",
    "INSERT INTO t SET name = 'k', made = NOW(6), day = CURDATE()",
    "INSERT INTO t SET name = 'l', day = CURRENT_DATE, made = CURRENT_TIMESTAMP(3)",
    "INSERT INTO t SET name = 'l', made = CURRENT_TIMESTAMP(2)",
    "REPLACE INTO t (id, name) VALUES (2, 'm'), (90, 'n')",
    "INSERT IGNORE INTO t (id, name) VALUES (1, 'o'), (91, 'p')",
    "INSERT INTO t (id, name) VALUES (1, 'q')",
    "INSERT INTO t (name, n) VALUES ('x', 'no number')",
    "INSERT INTO t (id, name) VALUES (1, 'q'), (92, 'q') ON DUPLICATE KEY UPDATE name = VALUES(name)",
    "INSERT INTO t (id, name) VALUES (1, 'r') ON DUPLICATE KEY UPDATE name = 's', at = NOW()",
    "INSERT INTO t (id, name) VALUES (1, 'r') ON DUPLICATE KEY UPDATE at = VALUES(at), made = VALUES(made)",
    "INSERT INTO t (id, name) VALUES (1, 'r') ON DUPLICATE KEY UPDATE made = DEFAULT",
    "UPDATE t SET at = NOW() WHERE id = 1",
    "UPDATE t SET at = CURRENT_TIMESTAMP() WHERE id < 4",
    "UPDATE t SET made = NOW(6), name = 'x' WHERE id < 3",
    "UPDATE t SET made = NOW(3) WHERE id = 3",
    "UPDATE t SET made = NOW(4) WHERE id = 3",
    "UPDATE t SET at = DEFAULT, made = DEFAULT WHERE id = 3",
    "UPDATE t SET at = NOW() WHERE id = 12345",
    // ON UPDATE
    "INSERT INTO changed (id, name, n, plain) VALUES (1, 'a', 1, 1), (2, 'b', 2, 2), (3, NULL, NULL, 3)",
    "UPDATE changed SET name = 'z' WHERE id = 1",
    "UPDATE changed SET name = 'z' WHERE id = 1",
    "UPDATE changed SET name = 'Z' WHERE id = 1",
    "UPDATE changed SET n = 2",
    "UPDATE changed SET n = n + 1",
    "UPDATE changed SET n = 3, name = 'y' WHERE id IN (1, 2)",
    "UPDATE changed SET name = 'y' WHERE name = 'y' OR id = 3",
    "UPDATE changed SET name = 'w', at = '2001-01-01 01:01:01.5' WHERE id = 1",
    "UPDATE changed SET name = 'w', at = '2001-01-01 01:01:01.5' WHERE id = 1",
    "UPDATE changed SET name = 'v', seen = NULL WHERE id = 1",
    "UPDATE changed SET name = NULL ORDER BY id DESC LIMIT 1",
    "UPDATE changed SET name = 'nobody' WHERE id = 99",
    "UPDATE changed SET plain = 7, at = NOW(), seen = NOW() WHERE id = 2",
    // plain columns beside
    "INSERT INTO mixed (name) VALUES ('a'), ('b')",
    "INSERT INTO mixed (name, open) VALUES ('c', DEFAULT)",
    "INSERT INTO mixed SET name = 'd'",
    "INSERT INTO mixed VALUES ()",
    "INSERT INTO mixed (name, at, brief) VALUES ('e', NOW(), NULL)",
    "REPLACE INTO mixed (name) VALUES ('a'), ('f')",
    "INSERT INTO mixed (name) VALUES ('b') ON DUPLICATE KEY UPDATE brief = VALUES(brief)",
    "INSERT INTO mixed (name, open, brief) VALUES ('g', NOW(), CURRENT_TIMESTAMP)",
    "INSERT INTO mixed SET name = 'h', open = NOW(4), brief = NOW(2)",
    "UPDATE mixed SET at = NOW(6), open = NOW(5), brief = LOCALTIME() WHERE id < 4 OR name = 'h'",
    "UPDATE mixed SET at = NOW(6), brief = NOW(2) WHERE name = 'h'",
];

fn values_are_the_servers_time(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    // in 2033; no text of it may come to the server for protected columns
    let mut clock = 2_000_000_000.25;
    for zone in ["+00:00", "-09:30"] {
        pair.run(&format!("SET time_zone = '{zone}'"));
        for table in ["t", "changed", "mixed"] {
            pair.run(&format!("TRUNCATE TABLE {table}"));
        }
        for sql in STATEMENTS {
            if sql.contains("mixed") {
                clock = f64::max(clock, 2_100_000_000.75);
            }
            clock += 10.123;
            pair.run(&format!("SET timestamp = {clock:.6}"));
            same_and_asked_behind(&mut pair, sql, None);
            for query in CONTENTS {
                same_text(&mut pair, query, sql);
            }
        }
        clock = 2_000_001_000.5;
    }
    for (sql, values) in [
        (
            "INSERT INTO t (name, n) VALUES (?, ?)",
            vec![Value::from("p"), 4.into()],
        ),
        (
            "INSERT INTO t (name, at, made) VALUES (?, NOW(), NOW(6))",
            vec!["q".into()],
        ),
        (
            "UPDATE t SET made = NOW(6), name = ? WHERE id = ?",
            vec!["r".into(), 1.into()],
        ),
        (
            "UPDATE changed SET name = ? WHERE id < ?",
            vec!["bound".into(), 3.into()],
        ),
        ("INSERT INTO mixed (name) VALUES (?)", vec!["s".into()]),
    ] {
        for _ in 0..2 {
            clock += 10.123;
            if sql.contains("mixed") {
                clock = f64::max(clock, 2_100_000_000.75);
            }
            pair.run(&format!("SET timestamp = {clock:.6}"));
            same_and_asked_behind(&mut pair, sql, Some(&values));
            for query in CONTENTS {
                same_text(&mut pair, query, sql);
            }
        }
    }
    // more rows in a plan of one row's shape
    pair.run("SET timestamp = 2000002000.5");
    let rows: Vec<String> = (0..500).map(|n| format!("('n{n}')")).collect();
    same_and_asked_behind(
        &mut pair,
        &format!("INSERT INTO t (name) VALUES {}", rows.join(", ")),
        None,
    );
    same_text(&mut pair, CONTENTS[0], "500 rows");
    pair.proxy.assert_healthy();
    pair.behind.shutdown();
    pair.behind.assert_no_trace_of(&["2033-05-"]);
}

fn a_statement_has_one_time(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    pair.run("SET time_zone = '+03:00'");
    let session = &mut pair.protected;
    let before = session.text("SELECT NOW(6)").unwrap();
    session.must("INSERT INTO mixed (name) VALUES ('a'), ('b'), (NULL)");
    session.must("INSERT INTO mixed SET name = 'c'");
    let after = session.text("SELECT NOW(6)").unwrap();
    let rows = session
        .text("SELECT at, open, brief FROM mixed ORDER BY id")
        .unwrap();
    let mut last = before;
    for row in rows.lines() {
        let [at, open, brief] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        assert_eq!(at, open);
        assert_eq!(&at[..22], brief);
        assert!(*last <= *at && *at <= *after, "{last} {at} {after}");
        last = at.to_owned();
    }
    let times: std::collections::BTreeSet<&str> = rows.lines().take(3).collect();
    assert_eq!(times.len(), 1, "{rows}");
    // one question before the statement, however many rows and columns
    let questions = |session: &mut Session| -> u64 {
        let shown = session.text("SHOW SESSION STATUS LIKE 'Questions'");
        let shown = shown.unwrap();
        shown.split('\t').nth(1).unwrap().trim().parse().unwrap()
    };
    for (sql, expected) in [
        ("INSERT INTO t (name) VALUES ('a')", 2),
        ("INSERT INTO t (name) VALUES ('a'), ('b'), ('c')", 2),
        (
            "INSERT INTO t SET name = 'b', at = NOW(), day = CURDATE()",
            2,
        ),
        ("UPDATE t SET at = NOW() WHERE id = 1", 2),
        ("INSERT INTO mixed (name) VALUES ('z')", 2),
        (
            "INSERT INTO t (name, at, made) VALUES ('a', NULL, '2020-02-02')",
            1,
        ),
    ] {
        // now and then the proxy looks at the definitions again
        let tries = ["k", "l", "m", "n"].map(|letter| {
            let first = questions(session);
            session.must(&sql.replace('z', letter));
            questions(session) - first - 1
        });
        let asked = tries.into_iter().min();
        let asked = asked.unwrap_or_default();
        assert_eq!(asked, expected, "{sql}");
        announce(&format!("{kind:?}: {asked} statements for {sql}"));
    }
    pair.proxy.assert_healthy();
}

fn the_session_stays_as_it_was(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    pair.run("SET timestamp = 2000000000.5");
    let insert = "INSERT INTO t (name) VALUES ('a')";
    for (before, after) in [
        ("SET insert_id = 77", "SELECT LAST_INSERT_ID()"),
        ("SELECT 1", "SELECT ROW_COUNT()"),
        ("SELECT LAST_INSERT_ID(900)", "SELECT LAST_INSERT_ID()"),
        (
            "SELECT id FROM t UNION ALL SELECT id FROM t",
            "SELECT FOUND_ROWS()",
        ),
        ("SELECT id FROM t WHERE id = 0", "SELECT FOUND_ROWS()"),
        ("SELECT id FROM t LIMIT 1", "SELECT FOUND_ROWS()"),
        ("SELECT CAST('x' AS SIGNED)", "SHOW WARNINGS"),
        ("SET autocommit = 0", "ROLLBACK"),
        ("SET autocommit = 1", "SELECT COUNT(*) FROM t"),
        ("START TRANSACTION", "ROLLBACK"),
        ("SELECT 1", "SELECT COUNT(*) FROM t"),
        ("START TRANSACTION READ ONLY", "ROLLBACK"),
        ("SET TRANSACTION READ ONLY", "SELECT COUNT(*) FROM t"),
        ("SET sql_select_limit = 0", "SET sql_select_limit = DEFAULT"),
        ("LOCK TABLES t WRITE", "UNLOCK TABLES"),
        (
            "SET sql_mode = 'ANSI,IGNORE_SPACE'",
            "SET sql_mode = DEFAULT",
        ),
        ("SET NAMES latin1", "SET NAMES utf8mb4"),
        ("SET character_set_results = NULL", "SET NAMES utf8mb4"),
    ] {
        pair.run(before);
        let done = pair.sessions().map(|session| {
            let done = session.run(insert);
            done.map(|o| (o.affected, o.insert_id, o.warnings))
                .map_err(|failure| failure.code)
        });
        assert_eq!(done[0], done[1], "{before}");
        same_text(&mut pair, after, before);
    }
    same_text(&mut pair, CONTENTS[0], "all");
    same_text(&mut pair, "SELECT COUNT(*) FROM t", "all");
    // the session's own clock goes on
    pair.run("SET timestamp = DEFAULT");
    pair.protected.must(insert);
    let query = "SELECT at FROM t ORDER BY id DESC LIMIT 1";
    let at = pair.protected.text(query).unwrap();
    assert!(!at.starts_with("2033"), "{at}");
    pair.proxy.assert_healthy();
}

fn what_has_another_clock_is_refused(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    let code = |session: &mut Session, sql: &str| {
        let failure = session.run(sql).expect_err(sql);
        let code = failure.message.split(' ').next();
        code.unwrap_or_default().to_owned()
    };
    let session = &mut pair.protected;
    for sql in [
        // the server's own time beside
        "INSERT INTO own (later) VALUES (NOW() + INTERVAL 1 DAY)",
        "INSERT INTO own SET later = DATE(CURRENT_TIMESTAMP)",
        "INSERT INTO own (later) VALUES (CURDATE())",
        "INSERT INTO own (x, later) VALUES (YEAR(NOW()), NOW())",
        "INSERT INTO own (x) VALUES (UNIX_TIMESTAMP())",
        "INSERT INTO own (later) VALUES (SYSDATE())",
        "INSERT INTO own (x) VALUES (@@timestamp)",
        "INSERT INTO own (x) VALUES (somebodys_function())",
        "INSERT INTO own (id) VALUES (1) ON DUPLICATE KEY UPDATE x = 1",
        // the server decides which rows change
        "UPDATE changed SET plain = 1",
        "UPDATE changed SET name = 'a', plain = 1 WHERE id = 1",
        "INSERT INTO changed (id) VALUES (1) ON DUPLICATE KEY UPDATE name = 'a'",
    ] {
        assert_eq!(code(session, sql), "OS1035", "{sql}");
    }
    for sql in [
        // what the question before would change
        "INSERT INTO own (x) VALUES (FOUND_ROWS())",
        "INSERT INTO own (x) VALUES (ROW_COUNT())",
        // the column would change it
        "UPDATE t SET at = NOW(6)",
        "UPDATE t SET day = NOW()",
        "UPDATE t SET name = NOW()",
        "INSERT INTO t (at) VALUES (NOW(6))",
        "INSERT INTO t SET at = NOW(6)",
        "INSERT INTO t SET at = NOW() + INTERVAL 1 DAY",
        "UPDATE own SET at = NOW()",
    ] {
        let code = code(session, sql);
        assert!(code.starts_with("OS"), "{sql}: {code}");
    }
    if kind == Kind::MariaDb {
        // that it means the present time is seen too late
        let insert = "INSERT INTO t (id, made) VALUES (93, ?)";
        let failure = session.execute(insert, vec![Value::NULL]);
        let failure = failure.expect_err(insert);
        assert!(failure.message.starts_with("OS1018"), "{failure}");
        pair.run("INSERT INTO t (id, made) VALUES (93, NULL)");
    }
    let session = &mut pair.protected;
    session.must("INSERT INTO own (x) VALUES (5 + 1)");
    let row = session.text("SELECT x, word FROM own").unwrap();
    assert_eq!(row, "6\tunknown");
    pair.proxy.assert_healthy();
}
