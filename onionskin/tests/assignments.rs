//! Statements that assign one protected column more than once: servers assign from left to right,
//! and count a row as changed if it differs in the end. With a scratch engine UPDATEs do just that;
//! without one, and behind ON DUPLICATE KEY UPDATE, they are refused. Nothing else is ever stored.

use ::mysql::Value;
use onionskin_testkit::*;

on_both_servers!(
    updates_assign_from_left_to_right,
    new_rows_assign_a_column_once,
    without_an_engine_they_are_refused,
);

const TABLES: &str = "CREATE TABLE x (id INT PRIMARY KEY, i INT {eq, range}, s VARCHAR(20) {eq}, free INT {}, plain INT DEFAULT 0)";
const ROWS: &str =
    "INSERT INTO x VALUES (1, 5, 'a', 5, 5), (2, 1, 'b', 1, 1), (3, NULL, NULL, NULL, NULL)";

const UPDATES: &[&str] = &[
    "UPDATE x SET i = i + 1, i = i - 1 WHERE id = 1",
    "UPDATE x SET i = 10, i = i + 1 WHERE id = 1",
    "UPDATE x SET i = i + 1, i = 10 WHERE id = 1",
    "UPDATE x SET i = 5, i = 1 WHERE id = 2",
    "UPDATE x SET i = 1, i = 5 WHERE id = 2",
    "UPDATE x SET free = free + 1, free = free - 1",
    "UPDATE x SET free = 7, free = free * 2, free = free - 1 WHERE id < 3",
    "UPDATE x SET s = 'z', s = 'a' WHERE id = 1",
    "UPDATE x SET x.s = 'y', s = 'z', i = 4 ORDER BY id LIMIT 2",
    "UPDATE x SET I = 3, i = i + plain, plain = plain + 1",
    "UPDATE x AS y SET y.i = 3, i = 8 WHERE y.s = 'z'",
    "UPDATE x SET i = DEFAULT, i = 9 WHERE id = 3",
];

fn updates_assign_from_left_to_right(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(kind, TABLES) else {
        return;
    };
    pair.run(ROWS);
    for sql in UPDATES {
        pair.compare_text(sql);
        pair.compare_text("SELECT ROW_COUNT()");
        pair.compare_text("SELECT * FROM x ORDER BY id");
        pair.compare_prepared(sql);
        pair.compare_text("SELECT * FROM x ORDER BY id");
    }
    for values in [[2, 3], [6, -6]] {
        let values = values.map(Value::from);
        pair.compare("UPDATE x SET i = ?, i = i + ? WHERE id = 1", &values);
        pair.compare_text("SELECT * FROM x ORDER BY id");
        pair.compare("UPDATE x SET i = i + ?, i = i - ? WHERE id = 2", &values);
        pair.compare_text("SELECT * FROM x ORDER BY id");
    }
    // both servers do all of them
    pair.conclude(0);
}

fn new_rows_assign_a_column_once(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(kind, TABLES) else {
        return;
    };
    pair.run(ROWS);
    for assigned in [
        "i = 7, i = 8",
        "i = 8, i = 7",
        "i = VALUES(i), i = 3",
        "i = 3, i = VALUES(i)",
        "s = 'q', s = 'a'",
        "i = i + 1, i = i - 1",
        "i = 1, plain = plain + 1, i = 2",
    ] {
        let sql = format!(
            "INSERT INTO x VALUES (1, 6, 'n', 6, 6), (9, 6, 'n', 6, 6) ON DUPLICATE KEY UPDATE {assigned}"
        );
        let said = pair.protected.run(&sql).expect_err(&sql);
        assert!(said.message.starts_with("OS10"), "{sql}: {said}");
        assert!(pair.protected.answers_itself(), "{sql}");
        pair.compare_text("SELECT * FROM x ORDER BY id");
    }
    // one column twice in a list of columns is the server's error
    pair.compare_text("INSERT INTO x (id, i, i) VALUES (20, 1, 2)");
    pair.compare_text("INSERT INTO x SET id = 21, i = 1, i = 2");
    pair.compare_text("REPLACE INTO x SET id = 21, s = 'a', s = 'b'");
    pair.compare_text("SELECT * FROM x ORDER BY id");
    pair.conclude(0);
}

fn without_an_engine_they_are_refused(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let proxy = Proxy::start(&server, "");
    proxy.connect().must("CREATE DATABASE app");
    let mut session = proxy.connect_to("app");
    session.must(&with_and_without_protection(TABLES).0);
    session.must(ROWS);
    let before = session.text("SELECT * FROM x ORDER BY id");
    for sql in UPDATES {
        let said = session.run(sql).expect_err(sql);
        assert!(said.message.starts_with("OS10"), "{sql}: {said}");
        assert!(session.answers_itself(), "{sql}");
    }
    assert_eq!(session.text("SELECT * FROM x ORDER BY id"), before);
}
