//! What a session says about its next transaction is the client's: no statement of the proxy's own
//! uses it up. And a change that takes several statements of the proxy's is one to the client.

#[path = "transactions/killed.rs"]
mod killed;

#[path = "transactions/reads_only.rs"]
mod reads_only;

#[path = "transactions/steps.rs"]
mod steps;

use onionskin_testkit::*;

use self::killed::{
    a_killed_query_leaves_the_session_as_it_was, what_is_killed_has_changed_all_or_nothing,
};
use self::reads_only::{a_begin_within_one_that_only_reads, a_change_fails_before_its_table_does};
use self::steps::{
    a_bound_for_queries_is_none_for_changes, a_definition_in_the_middle_of_a_change_waits,
    what_fails_in_the_middle_has_changed_nothing,
};

on_both_servers!(
    the_next_transaction_is_the_clients,
    what_is_said_of_one_transaction_ends_with_it,
    prepared_statements_say_it_too,
    what_does_not_fit_in_a_transaction_that_only_reads,
    errors_of_the_proxy_begin_no_transaction_unsaid,
    who_waits_for_a_lock_reads_what_came_before_it,
    a_transaction_stays_what_it_was_begun_as,
    locks_that_a_failed_statement_gave_up,
    locks_that_a_flush_took,
    a_bound_for_queries_is_none_for_changes,
    a_definition_in_the_middle_of_a_change_waits,
    what_fails_in_the_middle_has_changed_nothing,
    what_is_killed_has_changed_all_or_nothing,
    a_killed_query_leaves_the_session_as_it_was,
    a_begin_within_one_that_only_reads,
    a_change_fails_before_its_table_does,
);

const TABLES: [&str; 2] = [
    "CREATE TABLE p (id INT PRIMARY KEY, n INT {range}, k VARCHAR(20) {}, plain INT)",
    "CREATE TABLE q (id INT PRIMARY KEY, plain INT)",
];

/// What a session sees: an error's number, or counts and rows.
fn seen(session: &mut Session, sql: &str) -> String {
    match session.run(sql) {
        Ok(done) => {
            let rows: Vec<_> = done.sets.iter().map(|set| &set.rows).collect();
            format!("{} {} {rows:?}", done.affected, done.warnings)
        }
        Err(error) => format!("{error}").chars().take(30).collect(),
    }
}

fn compare(pair: &mut Pair, sql: &str) {
    let (plain, protected) = (seen(&mut pair.plain, sql), seen(&mut pair.protected, sql));
    if !protected.contains("OS1") {
        assert_eq!(plain, protected, "{sql}");
    }
}

fn fill(pair: &mut Pair) {
    pair.both("INSERT INTO p VALUES (1, 1, 'a', 1), (2, 2, 'b', 2)");
    pair.both("INSERT INTO q VALUES (1, 1), (2, 2)");
}

/// Look-ups of tables, reads in front of writes and questions about warnings go over the client's
/// connection.
fn the_next_transaction_is_the_clients(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &TABLES) else {
        return;
    };
    fill(&mut pair);
    let read_only = match kind {
        Kind::MariaDb => "SET @@tx_read_only = 1",
        Kind::MySql => "SET @@transaction_read_only = 1",
    };
    let writes = [
        "INSERT INTO q VALUES (3, 3)",
        "INSERT INTO p VALUES (3, 3, 'c', 3)",
        "UPDATE q SET plain = 7",
        "UPDATE p SET plain = 7",
        "UPDATE p SET k = 'z' WHERE id = 1",
        "UPDATE p SET n = n + 1 WHERE id = 2",
        "UPDATE p SET n = n + 1",
        "DELETE FROM p WHERE id = 1",
        "DELETE FROM p WHERE k = 'b'",
        "DELETE FROM q",
        "INSERT INTO p VALUES (1, 1, 'a', 1) ON DUPLICATE KEY UPDATE k = 'y'",
        "UPDATE p SET k = UPPER(k)",
    ];
    for said in [
        "SET TRANSACTION READ ONLY",
        "/* app */ set  transaction\nread only",
        read_only,
    ] {
        for sql in writes {
            // waiting takes its time: once is enough
            for sleeps in [false, true]
                .into_iter()
                .take(1 + usize::from(said.starts_with("SET T")))
            {
                compare(&mut pair, said);
                if sleeps {
                    // what is known of the tables is looked up again
                    std::thread::sleep(std::time::Duration::from_millis(1_050));
                    compare(&mut pair, "SET @a = 1");
                }
                compare(&mut pair, sql);
                // it may have failed before it began
                compare(&mut pair, "SELECT plain FROM q WHERE id = 1");
                for table in ["p", "q"] {
                    compare(&mut pair, &format!("SELECT * FROM {table} ORDER BY id"));
                }
            }
        }
    }
    pair.proxy.assert_healthy();
}

/// It is not said again for the transaction after the next.
fn what_is_said_of_one_transaction_ends_with_it(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &TABLES) else {
        return;
    };
    fill(&mut pair);
    for uses in [
        &["SELECT * FROM q ORDER BY id"][..],
        &["SELECT k FROM p ORDER BY id"],
        &["SELECT SUM(n) FROM p"],
        &["BEGIN", "COMMIT"],
        &[
            "START TRANSACTION",
            "SELECT k FROM p ORDER BY id",
            "ROLLBACK",
        ],
        &["SELECT 41", "SHOW WARNINGS", "SELECT * FROM q WHERE id = 1"],
    ] {
        compare(&mut pair, "SET TRANSACTION READ ONLY");
        for sql in uses {
            compare(&mut pair, sql);
        }
        std::thread::sleep(std::time::Duration::from_millis(1_050));
        for sql in [
            "UPDATE q SET plain = plain + 1",
            "UPDATE p SET plain = plain + 1",
            "UPDATE p SET k = 'x' WHERE id = 1",
            "SELECT * FROM p ORDER BY id",
        ] {
            compare(&mut pair, sql);
        }
    }
    // within a transaction it is an error, and not of the next one either
    for sql in [
        "BEGIN",
        "SELECT k FROM p WHERE id = 1",
        "SET TRANSACTION READ ONLY",
        "UPDATE p SET plain = 9",
        "COMMIT",
        "UPDATE p SET k = 'w'",
        "SET SESSION TRANSACTION READ ONLY",
        "UPDATE p SET k = 'v'",
        "SELECT * FROM p ORDER BY id",
        "SET SESSION TRANSACTION READ WRITE",
        "UPDATE p SET k = 'u'",
        "SELECT * FROM p ORDER BY id",
    ] {
        compare(&mut pair, sql);
    }
    pair.proxy.assert_healthy();
}

/// What bounds a transaction may be prepared: the session learns it as from a text.
fn prepared_statements_say_it_too(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &TABLES) else {
        return;
    };
    fill(&mut pair);
    let compare_prepared = |pair: &mut Pair, sql: &str| {
        let of = |session: &mut Session| match session.execute(sql, ()) {
            Ok(_) => "done".to_owned(),
            Err(error) => format!("{error}").chars().take(30).collect(),
        };
        let said = (of(&mut pair.plain), of(&mut pair.protected));
        assert_eq!(said.0, said.1, "{sql}");
    };
    // they are looked up again
    let a_second = || std::thread::sleep(std::time::Duration::from_millis(1_050));
    compare_prepared(&mut pair, "SET TRANSACTION READ ONLY");
    a_second();
    compare(&mut pair, "UPDATE p SET k = 'x' WHERE id = 1");
    compare(&mut pair, "SELECT * FROM p ORDER BY id");
    // a look-up that began a transaction must not end it with its savepoints
    for sql in ["SET autocommit = 0", "SAVEPOINT here"] {
        compare_prepared(&mut pair, sql);
    }
    a_second();
    for sql in [
        "UPDATE p SET k = 'y' WHERE id = 1",
        "ROLLBACK TO here",
        "COMMIT",
        "SET autocommit = 1",
        "SELECT * FROM p ORDER BY id",
    ] {
        compare(&mut pair, sql);
    }
    // and locks
    for sql in ["LOCK TABLES p WRITE", "LOCK TABLES q READ"] {
        compare_prepared(&mut pair, sql);
        for write in [
            "INSERT INTO p VALUES (5, 5, 'e', 5) ON DUPLICATE KEY UPDATE k = 'y'",
            "UPDATE p SET k = 'q' WHERE id = 5",
            "INSERT INTO q VALUES (7, 7)",
        ] {
            compare(&mut pair, write);
        }
        compare_prepared(&mut pair, "UNLOCK TABLES");
        compare(&mut pair, "SELECT * FROM p ORDER BY id");
    }
    pair.proxy.assert_healthy();
}

/// The change is not sent where it finds no row for a value that does not fit. That the transaction
/// only reads is an error all the same.
fn what_does_not_fit_in_a_transaction_that_only_reads(kind: Kind) {
    let tables = [
        "CREATE TABLE sets (id INT PRIMARY KEY, s SET('red', 'Green') {range})",
        "CREATE TABLE t (id INT PRIMARY KEY, k INT {eq, range})",
    ];
    let Some(mut pair) = Pair::of(kind, false, &tables) else {
        return;
    };
    for begin in ["SET TRANSACTION READ ONLY", "START TRANSACTION READ ONLY"] {
        for change in [
            "UPDATE sets SET s = -129 WHERE id = 19",
            "UPDATE sets SET s = 'blue' WHERE id = 19",
            "UPDATE t SET k = 'x' WHERE id = 19",
        ] {
            pair.same(begin);
            assert_eq!(pair.same_error(change), 1792, "{begin}; {change}");
            pair.same("ROLLBACK");
        }
    }
    // what was said of the next transaction is said of the change, too
    pair.same("SET TRANSACTION READ WRITE");
    pair.same("UPDATE sets SET s = 'blue' WHERE id = 19");
    pair.same("UPDATE sets SET s = 'red' WHERE id = 19");
}

/// Without autocommit, servers begin a transaction by a statement that fails when its tables are
/// open. Where the proxy has the error, the server has not seen the statement.
fn errors_of_the_proxy_begin_no_transaction_unsaid(kind: Kind) {
    let texts = "CREATE TABLE texts (id INT PRIMARY KEY, s TEXT COLLATE utf8mb4_bin {eq})";
    let Some(mut pair) = Pair::of(kind, false, &[texts]) else {
        return;
    };
    pair.same("SET autocommit = 0");
    let fails = [
        "SELECT nothing FROM texts",
        "INSERT INTO texts VALUES (1, x'ff')",
    ];
    for fails in fails {
        for ends in ["COMMIT", "ROLLBACK", "SET autocommit = 1"] {
            pair.same_error(fails);
            pair.same_or_refused("SET TRANSACTION READ ONLY");
            pair.same_if_done_with("SET TRANSACTION READ ONLY", &[]);
            pair.same_or_refused("INSERT INTO texts VALUES (2, 'b')");
            // a session that is told of the doubt can go on
            pair.same(ends);
            pair.same("SET TRANSACTION READ WRITE");
            pair.same("SELECT id FROM texts");
            pair.same("ROLLBACK");
            pair.same("SET autocommit = 0");
        }
    }
    pair.same("SET autocommit = 1");
    // what is shown of an error depends on settings that the proxy does not follow
    pair.same("SET max_error_count = 0");
    assert!(!pair.same_or_refused("SELECT nothing FROM texts"));
    pair.same("SET max_error_count = DEFAULT");
    assert_eq!(pair.same_error("SELECT nothing FROM texts"), 1054);
    pair.same("SHOW WARNINGS");
}

/// A transaction that locks a row first sees what others have committed before it got the lock. The
/// tables are new to the account: what they look like is asked within the transaction.
fn who_waits_for_a_lock_reads_what_came_before_it(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[]) else {
        return;
    };
    let ports = [pair.beside().port(), pair.proxy.port()];
    let mut servers = [pair.beside().connect(), pair.behind.connect()];
    pair.both("CREATE USER other");
    pair.both("GRANT ALL ON app.* TO other");
    let waits = [
        "UPDATE q SET plain = plain + 1 WHERE id = 1",
        "UPDATE q SET k = 'c' WHERE id = 1",
        "SELECT plain FROM q WHERE id = 1 FOR UPDATE",
        "SELECT k FROM q WHERE id = 1 FOR UPDATE",
        "INSERT IGNORE INTO q VALUES (1, 'z', 1)",
        "UPDATE IGNORE q SET k = 'c' WHERE id = 1",
        "DELETE FROM q WHERE id = 1",
    ];
    let begins = [
        "BEGIN",
        "START TRANSACTION READ WRITE",
        "SET autocommit = 0",
    ];
    for (i, wait) in waits.iter().enumerate() {
        // how it begins makes no other difference
        let count = if i < 2 { begins.len() } else { 1 };
        for (j, begin) in begins.iter().take(count).enumerate() {
            let [q, r] = ["q", "r"].map(|table| format!("{table}{i}_{j}"));
            for table in [&q, &r] {
                let columns = "(id INT PRIMARY KEY, k VARCHAR(20) {}, plain INT)";
                pair.create(&format!("CREATE TABLE {table} {columns}"));
                pair.both(&format!("INSERT INTO {table} VALUES (1, 'a', 1)"));
            }
            let wait = wait.replace("q ", &format!("{q} "));
            let read = format!("SELECT k, plain FROM {r}");
            let mut seen = Vec::new();
            let others = [&mut pair.plain, &mut pair.protected];
            for ((other, port), server) in others.into_iter().zip(ports).zip(&mut servers) {
                let mut session = Session::open(port, "other", "", Some("app"));
                other.must("BEGIN");
                other.must(&format!("UPDATE {q} SET plain = plain + 10 WHERE id = 1"));
                let wait = &wait;
                let waiting = std::thread::spawn({
                    let (begin, wait, read) = (begin.to_string(), wait.clone(), read.clone());
                    move || {
                        session.must(&begin);
                        session.must(&wait);
                        let read = session.text(&read).expect("rows");
                        session.must("ROLLBACK");
                        read
                    }
                });
                until_one_waits(server, wait);
                other.must(&format!("UPDATE {r} SET k = 'b', plain = 2"));
                other.must("COMMIT");
                seen.push(waiting.join().expect("no panic"));
            }
            assert_eq!(seen[0], seen[1], "{begin}; {wait}");
        }
    }
}

fn until_one_waits(server: &mut Session, sql: &str) {
    let asked = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
    for _ in 0..100 {
        if server.text(asked).expect("a number") == "1" {
            return;
        }
        // servers renew the table only if nobody has read it for a tenth of a second
        std::thread::sleep(std::time::Duration::from_millis(150));
    }
    panic!("nobody waits for a lock: {sql}");
}

/// A look-up within a transaction leaves it as the client has begun it.
fn a_transaction_stays_what_it_was_begun_as(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &TABLES) else {
        return;
    };
    fill(&mut pair);
    pair.both("CREATE USER other");
    pair.both("GRANT ALL ON app.* TO other");
    let ports = [pair.beside().port(), pair.proxy.port()];
    let mut others = ports.map(|port| Session::open(port, "other", "", Some("app")));
    let stories: [&[&str]; 6] = [
        &[
            "START TRANSACTION READ ONLY",
            "UPDATE n SET plain = 2",
            "COMMIT",
        ],
        &[
            "SET TRANSACTION READ ONLY",
            "BEGIN",
            "UPDATE n SET k = 'b'",
            "COMMIT",
        ],
        &[
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "BEGIN",
            "SELECT k FROM n",
            "!",
            "SELECT k FROM n",
            "COMMIT",
        ],
        &[
            "BEGIN",
            "SELECT k FROM n",
            "!",
            "SELECT k FROM n",
            "COMMIT",
            "SELECT k FROM n",
        ],
        &[
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            "!",
            "SELECT k FROM p",
            "COMMIT",
        ],
        &[
            "SET completion_type = CHAIN",
            "BEGIN",
            "SELECT k FROM n",
            "!",
            "COMMIT",
            "SELECT k FROM n",
            "ROLLBACK",
            "ROLLBACK AND NO CHAIN",
        ],
    ];
    for (number, story) in stories.iter().enumerate() {
        let new = format!("n{number}");
        pair.create(&format!(
            "CREATE TABLE {new} (id INT PRIMARY KEY, k VARCHAR(20) {{}}, plain INT)"
        ));
        pair.both(&format!("INSERT INTO {new} VALUES (1, 'a', 1)"));
        for sql in story.iter() {
            if *sql == "!" {
                pair.both(&format!("UPDATE {new} SET k = CONCAT(k, 'x')"));
                pair.both("UPDATE p SET k = CONCAT(k, 'x') WHERE id = 1");
                continue;
            }
            let sql = sql.replace(" n", &format!(" {new}"));
            let [plain, protected] = others.each_mut().map(|other| seen(other, &sql));
            assert_eq!(plain, protected, "{sql} in {story:?}");
        }
    }
}

/// A LOCK TABLES that fails has given up the locks from before, if the account may lock the tables:
/// changes by the engine, which locks do not go with, are taken again, and are whole.
fn locks_that_a_failed_statement_gave_up(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, true, &TABLES) else {
        return;
    };
    pair.both("INSERT INTO p VALUES (1, 1, 'a', 1), (2, 2, 'b', 2)");
    let change = "UPDATE p SET n = ABS(n) + 1 WHERE ABS(n) > 0";
    for lock in ["LOCK TABLES p WRITE", "LOCK TABLES p WRITE, q READ"] {
        pair.same(lock);
        assert_eq!(pair.protected.must_fail(change), 1235);
        let failed = pair.same_error("LOCK TABLES p WRITE, missing READ");
        assert_eq!(failed, 1146);
        pair.same(change);
        pair.same_result("SELECT * FROM p ORDER BY id");
        pair.same("SELECT plain FROM q");
    }
}

/// `FLUSH TABLES … WITH READ LOCK` and `FOR EXPORT` lock like LOCK TABLES. A transaction of the
/// proxy's would give the client's locks away unsaid.
fn locks_that_a_flush_took(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, true, &TABLES) else {
        return;
    };
    pair.both("INSERT INTO p VALUES (1, 1, 'a', 1), (2, 2, 'b', 2)");
    for (flush, locked) in [
        ("FLUSH TABLES q WITH READ LOCK", "q"),
        ("FLUSH TABLES q FOR EXPORT", "q"),
        ("FLUSH LOCAL TABLE q WITH READ LOCK", "q"),
    ] {
        pair.same(flush);
        for change in [
            "UPDATE p SET n = n + 1",
            "UPDATE p SET n = ABS(n) + 1 WHERE ABS(n) > 0",
            "DELETE FROM p WHERE k LIKE '%a%'",
            "INSERT INTO p SELECT id + 10, ABS(n), k, plain FROM p",
            "INSERT INTO p VALUES (1, 1, 'a', 1) ON DUPLICATE KEY UPDATE n = n + 1",
        ] {
            assert!(pair.plain.run(change).is_err(), "{flush}; {change}");
            assert!(pair.protected.run(change).is_err(), "{flush}; {change}");
        }
        // the lock is there still
        let mut other = pair.behind.connect();
        other.must("SET lock_wait_timeout = 1");
        let waits = other.run(&format!("INSERT INTO app.{locked} VALUES (9, 9)"));
        assert_eq!(waits.map_err(|e| e.code).unwrap_err(), 1205, "{flush}");
        pair.same("UNLOCK TABLES");
        pair.same_result("SELECT * FROM p ORDER BY id");
    }
}
