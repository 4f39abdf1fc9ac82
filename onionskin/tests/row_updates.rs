//! Updates that need the old value: `SET k = k + 1`, and assignments whose effect only the old
//! value tells.
//!
//! The proxy remembers the cells that it wrote and computes from them, so that a row that is
//! updated again costs one statement. What it remembers may be wrong at any time: another proxy, a
//! rollback, a replaced row. These tests make it wrong on purpose; the answers must be those of a
//! plain server.

use onionskin_testkit::*;

on_both_servers!(
    a_row_that_is_updated_again_is_not_read_again,
    what_is_remembered_is_never_trusted,
    many_sessions_count_in_one_row,
    rows_are_written_in_the_order_that_is_asked_for,
    ignored_inserts_meet_a_table_that_was_made_anew,
    warnings_of_triggers_are_kept,
    the_time_of_an_update_is_its_own,
);

const PROTECT: &str = r#"
[protect."app.*"]
k = ["eq", "range"]
c = []
"#;

/// Two proxies with the same keys before one server. There is no plain server: what the one has
/// written tells what the other must answer.
struct Proxies {
    server: Server,
    first: Proxy,
    second: Proxy,
}

/// Two proxies with the same keys, and a table.
fn proxies(kind: Kind) -> Option<Proxies> {
    let server = Server::start(kind, ServerOptions::default())?;
    let first = Proxy::start(&server, PROTECT);
    let second = Proxy::start_with(
        &server,
        ProxyOptions {
            tables: PROTECT.into(),
            keys: (!direct_mode()).then(|| first.keys()),
            ..ProxyOptions::default()
        },
    );
    server.connect().must("CREATE DATABASE app");
    let mut session = first.connect_to("app");
    session.must(
        "CREATE TABLE t (id INT PRIMARY KEY, k TINYINT, c VARCHAR(300), plain INT DEFAULT 0)",
    );
    session.must("INSERT INTO t (id, k, c) VALUES (1, 1, 'one'), (2, 2, 'two'), (3, NULL, NULL)");
    Some(Proxies {
        server,
        first,
        second,
    })
}

/// How many SELECTs and UPDATEs the server has run. A session that ends asks one more question.
fn counters(admin: &mut Session) -> (u64, u64) {
    let mut counter = |name: &str| -> u64 {
        let line = admin
            .text(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))
            .unwrap();
        line.split('\t').nth(1).unwrap().parse().unwrap()
    };
    (counter("Com_select"), counter("Com_update"))
}

fn a_row_that_is_updated_again_is_not_read_again(kind: Kind) {
    let Some(Proxies { server, first, .. }) = proxies(kind) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let mut admin = server.connect();
    let mut one = first.connect_to("app");
    let mut other = first.connect_to("app");
    let affected = |outcome: Outcome| outcome.affected;
    // the first update of each row reads it
    one.must("UPDATE t SET k = k + 1 WHERE id = 1");
    one.must("UPDATE t SET c = 'x' WHERE id = 2");
    // Tables are looked up again after a second; a run in which that happens is repeated.
    let mut quiet = false;
    for _ in 0..5 {
        one.must("SELECT k FROM t WHERE id = 1");
        let before = counters(&mut admin);
        for _ in 0..5 {
            assert_eq!(affected(one.must("UPDATE t SET k = k + 1 WHERE id = 1")), 1);
            assert_eq!(
                affected(other.must("UPDATE t SET k = k - 1, plain = plain + 1 WHERE id = 1")),
                1
            );
            let prepared = other.execute("UPDATE t SET k = k + ? WHERE id = ?", (1, 1));
            assert_eq!(affected(prepared.unwrap()), 1);
            one.must("BEGIN");
            assert_eq!(affected(one.must("UPDATE t SET k = k - 1 WHERE id = 1")), 1);
            one.must("COMMIT");
        }
        let after = counters(&mut admin);
        assert_eq!(after.1 - before.1, 20);
        quiet |= after.0 == before.0;
    }
    assert!(quiet, "rows were read before they were updated");
    assert_eq!(
        one.text("SELECT k, plain FROM t WHERE id = 1").unwrap(),
        "2\t25"
    );
    // nothing to do is noticed without a write, in the row as it is
    for expected in [0, 0] {
        assert_eq!(
            affected(one.must("UPDATE t SET c = 'x' WHERE id = 2")),
            expected
        );
    }
    assert_eq!(affected(one.must("UPDATE t SET c = 'y' WHERE id = 2")), 1);
}

const INCREMENT: &str = "UPDATE t SET k = k + 1 WHERE id = 1";

fn k(session: &mut Session, id: u32) -> String {
    session
        .text(&format!("SELECT k FROM t WHERE id = {id}"))
        .unwrap()
}

fn what_is_remembered_is_never_trusted(kind: Kind) {
    let Some(Proxies {
        server,
        first,
        second,
    }) = proxies(kind)
    else {
        return;
    };
    let (mut here, mut there) = (first.connect_to("app"), second.connect_to("app"));
    another_proxy_has_written(&mut here, &mut there);
    a_transaction_was_rolled_back(&first, &mut here);
    errors_are_those_of_the_real_value(&mut here, &mut there);
    null_is_a_value_like_others(&mut here, &mut there);
    another_row_has_the_same_key(&mut here, &mut there);
    other_conditions_are_those_of_the_row_as_it_is(&mut here, &mut there);
    long_cells_are_not_remembered(&mut here);
    // a cell that somebody exchanged at the server is an error, whatever is remembered
    if !direct_mode() {
        here.must(INCREMENT);
        let mut admin = server.connect();
        admin.must("UPDATE app.t SET `k$enc` = CONCAT(SUBSTR(`k$enc`, 1, 7), REPEAT('x', LENGTH(`k$enc`) - 7))");
        let failure = here.run(INCREMENT).expect_err("the cell is not authentic");
        assert!(failure.message.contains("OS1102"), "{failure}");
    }
}

fn another_proxy_has_written(here: &mut Session, there: &mut Session) {
    assert_eq!(here.must(INCREMENT).affected, 1);
    assert_eq!(there.must("UPDATE t SET k = 100 WHERE id = 1").affected, 1);
    assert_eq!(here.must(INCREMENT).affected, 1);
    assert_eq!(k(here, 1), "101");
    assert_eq!(k(there, 1), "101");
}

/// A rollback of one's own and one of another session's.
fn a_transaction_was_rolled_back(first: &Proxy, here: &mut Session) {
    here.must("BEGIN");
    here.must(INCREMENT);
    here.must(INCREMENT);
    assert_eq!(k(here, 1), "103");
    here.must("ROLLBACK");
    assert_eq!(here.must(INCREMENT).affected, 1);
    assert_eq!(k(here, 1), "102");
    let mut neighbour = first.connect_to("app");
    neighbour.must("BEGIN");
    neighbour.must("UPDATE t SET k = 50 WHERE id = 1");
    neighbour.must("ROLLBACK");
    assert_eq!(here.must(INCREMENT).affected, 1);
    assert_eq!(k(here, 1), "103");
}

/// An error that the remembered value would raise and the real one does not, and the other way
/// round.
fn errors_are_those_of_the_real_value(here: &mut Session, there: &mut Session) {
    // round
    here.must("UPDATE t SET k = 126 WHERE id = 2");
    here.must("UPDATE t SET k = k + 1 WHERE id = 2");
    assert_eq!(k(here, 2), "127");
    assert_eq!(there.must("UPDATE t SET k = 5 WHERE id = 2").affected, 1);
    assert_eq!(
        here.must("UPDATE t SET k = k + 1 WHERE id = 2").affected,
        1,
        "127 + 1 is out of range, 5 + 1 is not"
    );
    assert_eq!(k(there, 2), "6");
    assert_eq!(there.must("UPDATE t SET k = 127 WHERE id = 2").affected, 1);
    assert_eq!(here.must_fail("UPDATE t SET k = k + 1 WHERE id = 2"), 1264);
    assert_eq!(k(here, 2), "127");
}

fn null_is_a_value_like_others(here: &mut Session, there: &mut Session) {
    assert_eq!(here.must("UPDATE t SET k = k + 1 WHERE id = 3").affected, 0);
    assert_eq!(
        here.must("UPDATE t SET k = 7, c = 'c' WHERE id = 3")
            .affected,
        1
    );
    assert_eq!(
        here.must("UPDATE t SET k = NULL, c = NULL WHERE id = 3")
            .affected,
        1
    );
    assert_eq!(
        there
            .must("UPDATE t SET k = 7, c = 'c' WHERE id = 3")
            .affected,
        1
    );
    assert_eq!(
        here.must("UPDATE t SET k = NULL, c = NULL WHERE id = 3")
            .affected,
        1
    );
    assert_eq!(
        here.text("SELECT k, c FROM t WHERE id = 3").unwrap(),
        "NULL\tNULL"
    );
}

/// Another row under the same key, a row that is gone, another table under the same name.
fn another_row_has_the_same_key(here: &mut Session, there: &mut Session) {
    there.must("DELETE FROM t WHERE id = 1");
    assert_eq!(here.must(INCREMENT).affected, 0);
    there.must("INSERT INTO t (id, k, c) VALUES (1, 9, 'nine')");
    assert_eq!(here.must(INCREMENT).affected, 1);
    assert_eq!(k(there, 1), "10");
    there.must("DROP TABLE t");
    there.must("CREATE TABLE t (id INT PRIMARY KEY, k INT, c VARCHAR(300))");
    there.must("INSERT INTO t VALUES (1, 1000, 'thousand')");
    assert_eq!(here.must(INCREMENT).affected, 1);
    assert_eq!(k(here, 1), "1001");
}

fn other_conditions_are_those_of_the_row_as_it_is(here: &mut Session, there: &mut Session) {
    assert_eq!(there.must("UPDATE t SET k = 2000 WHERE id = 1").affected, 1);
    assert_eq!(
        here.must("UPDATE t SET k = k + 1 WHERE id = 1 AND k < 1500")
            .affected,
        0
    );
    assert_eq!(
        here.must("UPDATE t SET k = k + 1 WHERE id = 1 AND k = 2000")
            .affected,
        1
    );
}

/// Nor is what they replaced.
fn long_cells_are_not_remembered(here: &mut Session) {
    let long = "z".repeat(300);
    here.must("UPDATE t SET c = 'short' WHERE id = 1");
    here.must(&format!("UPDATE t SET c = '{long}' WHERE id = 1"));
    assert_eq!(
        here.must("UPDATE t SET c = 'short' WHERE id = 1").affected,
        1
    );
    assert_eq!(
        here.must("UPDATE t SET c = 'short' WHERE id = 1").affected,
        0
    );
}

fn many_sessions_count_in_one_row(kind: Kind) {
    const SESSIONS: usize = 8;
    const EACH: usize = 40;
    let Some(Proxies {
        server: _server,
        first,
        second,
    }) = proxies(kind)
    else {
        return;
    };
    let mut session = first.connect_to("app");
    session.must("CREATE TABLE counter (id INT PRIMARY KEY, k INT)");
    session.must("INSERT INTO counter VALUES (1, 0)");
    std::thread::scope(|scope| {
        for number in 0..SESSIONS {
            let proxy = if number % 2 == 0 { &first } else { &second };
            scope.spawn(move || {
                let mut session = proxy.connect_to("app");
                for round in 0..EACH {
                    let transaction = (number + round) % 3 == 0;
                    if transaction {
                        session.must("BEGIN");
                    }
                    let done = session.must("UPDATE counter SET k = k + 1 WHERE id = 1");
                    assert_eq!(done.affected, 1);
                    if transaction {
                        session.must("COMMIT");
                    }
                }
            });
        }
    });
    assert_eq!(
        session.text("SELECT k FROM counter WHERE id = 1").unwrap(),
        (SESSIONS * EACH).to_string()
    );
}

/// Rows that take each other's values of a unique index: in one order that works, in the other it
/// is a duplicate.
fn rows_are_written_in_the_order_that_is_asked_for(kind: Kind) {
    let Some(stage) = proxies(kind) else { return };
    let mut session = stage.first.connect_to("app");
    session.must("CREATE TABLE places (id INT PRIMARY KEY, k SMALLINT NOT NULL, UNIQUE (k))");
    // More than one statement of the proxy's writes, against the order of the primary key.
    let rows: Vec<String> = (1..=150)
        .map(|id| format!("({id}, {})", 200 - id))
        .collect();
    session.must(&format!("INSERT INTO places VALUES {}", rows.join(", ")));
    let contents = |session: &mut Session| {
        session
            .text("SELECT MIN(k), MAX(k), COUNT(DISTINCT k) FROM places")
            .unwrap()
    };
    assert_eq!(contents(&mut session), "50\t199\t150");
    for (sql, code) in [
        ("UPDATE places SET k = k + 1 ORDER BY id", None),
        ("UPDATE places SET k = k + 1 ORDER BY id DESC", Some(1062)),
        ("UPDATE places SET k = k - 1 ORDER BY id DESC", None),
        ("UPDATE places SET k = k - 1 ORDER BY id", Some(1062)),
        (
            "UPDATE places SET k = k + 1 WHERE k > 100 ORDER BY k DESC LIMIT 80",
            None,
        ),
    ] {
        match code {
            None => drop(session.must(sql)),
            Some(code) => assert_eq!(session.must_fail(sql), code, "{sql}"),
        }
    }
    assert_eq!(contents(&mut session), "50\t200\t150");
    // Inside of the client's transaction, too.
    session.must("START TRANSACTION");
    session.must("UPDATE places SET k = k + 1 ORDER BY id");
    session.must("ROLLBACK");
    assert_eq!(contents(&mut session), "50\t200\t150");
}

/// IGNORE makes a warning of the CHECK by which a table refuses another table's cells.
fn ignored_inserts_meet_a_table_that_was_made_anew(kind: Kind) {
    let Some(Proxies {
        server: _server,
        first,
        second,
    }) = proxies(kind)
    else {
        return;
    };
    if direct_mode() {
        return;
    }
    let (mut here, mut there) = (first.connect_to("app"), second.connect_to("app"));
    for prepares in [false, true] {
        let mut insert = |id: u32| {
            let done = match prepares {
                true => here.execute("INSERT IGNORE INTO n (id, c) VALUES (?, 'x')", (id,)),
                false => here.run(&format!("INSERT IGNORE INTO n (id, c) VALUES ({id}, 'x')")),
            };
            let done = done.expect("inserted");
            (done.affected, done.warnings)
        };
        let table = "CREATE TABLE n (id INT PRIMARY KEY, c VARCHAR(300))";
        there.must(table);
        assert_eq!(insert(1), (1, 0));
        there.must("DROP TABLE n");
        there.must(table);
        assert_eq!(insert(2), (1, 0), "prepared: {prepares}");
        assert_eq!(there.text("SELECT c FROM n").unwrap(), "x");
        there.must("DROP TABLE n");
    }
}

/// What triggers warn of is in the list, also where the COMMIT travels with the statement.
fn warnings_of_triggers_are_kept(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(40) {}, plain TINYINT)";
    let options = PairOptions {
        tables: &[table],
        ..PairOptions::default()
    };
    let Some(pair) = Pair::start_with(kind, options) else {
        return;
    };
    let mut pair = pair.filled(&[
        "INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3), (4, 'four', 4)",
        "CREATE TRIGGER up BEFORE UPDATE ON t FOR EACH ROW \
         SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'changed'",
        "CREATE TRIGGER gone BEFORE DELETE ON t FOR EACH ROW \
         SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'gone'",
    ]);
    for mode in ["''", "'STRICT_TRANS_TABLES'"] {
        pair.run(&format!("SET sql_mode = {mode}"));
        for statement in [
            "UPDATE t SET note = 'new' WHERE id < 3",
            "UPDATE t SET note = 'new' WHERE id < 3",
            "UPDATE t SET note = 'newer', plain = plain + 1 WHERE id < 3",
            "UPDATE t SET note = 'by key' WHERE id = 2",
            "UPDATE t SET note = 'newest', plain = 1000 WHERE id < 3",
            "DELETE FROM t WHERE note LIKE 'newe%'",
            "DELETE FROM t WHERE note LIKE 'nothing%'",
            "INSERT IGNORE INTO t VALUES (1, 'one', 1), (2, 'two', 2)",
        ] {
            pair.same(statement);
            pair.same("SHOW WARNINGS");
            pair.same("SELECT * FROM t ORDER BY id");
        }
    }
}

/// NOW() of a protected column, asked for in one round trip with the row.
fn the_time_of_an_update_is_its_own(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, made DATETIME(6) {}, plain DATETIME(6), \
                 at TIMESTAMP(3) NULL {eq}, n INT {})";
    let options = PairOptions {
        tables: &[table],
        ..PairOptions::default()
    };
    let Some(pair) = Pair::start_with(kind, options) else {
        return;
    };
    let mut pair = pair.filled(&["INSERT INTO t (id, n) VALUES (1, 1), (2, 2), (3, 3)"]);
    let times = ["2001-02-03 04:05:06.123456", "2011-12-13 14:15:16.5"];
    for time in times {
        pair.run(&format!("SET timestamp = UNIX_TIMESTAMP('{time}')"));
        for [begin, end] in [["DO 0", "DO 0"], ["BEGIN", "COMMIT"]] {
            pair.run("UPDATE t SET made = NULL, plain = NULL, at = NULL WHERE id < 4");
            pair.run("SELECT id FROM t WHERE id < 3");
            pair.run(begin);
            for statement in [
                "UPDATE t SET made = NOW(6) WHERE id = 1",
                "UPDATE t SET made = NOW(6) WHERE id = 1",
                "UPDATE t SET made = NOW(6), plain = NOW(6), at = NOW(3) WHERE id = 1",
                "UPDATE t SET made = NOW(6), n = n + 1 WHERE id = 2",
                "UPDATE t SET made = NOW(6) WHERE id = 9",
                "UPDATE t SET made = NOW(6) WHERE id = 3 AND n = 3",
                "UPDATE t SET at = NOW(3) WHERE id < 3 AND n = 1",
            ] {
                pair.same_if_done(statement);
            }
            pair.same_or_refused("SELECT FOUND_ROWS()");
            pair.run(end);
            pair.same("SELECT * FROM t ORDER BY id");
        }
    }
    // the real time goes on
    pair.run("SET timestamp = DEFAULT");
    for _ in 0..3 {
        pair.run("UPDATE t SET made = NOW(6) WHERE id = 1");
        let made = pair
            .protected
            .text("SELECT made FROM t WHERE id = 1")
            .unwrap();
        let off = format!("SELECT '{made}' > NOW(6) OR '{made}' < NOW(6) - INTERVAL 5 SECOND");
        assert_eq!(pair.protected.text(&off).unwrap(), "0", "{made}");
    }
}
