//! Each question gets its own answer, whatever became of the ones before.
//!
//! Behind every statement stands a question with a fresh number. The refusals here are those that
//! come when something was sent already; faults are injected where no statement is known to fail.

use ::mysql::Value;
use ::mysql::prelude::Queryable;
use onionskin_testkit::*;

on_both_servers!(
    limits_are_read_as_the_server_reads_them,
    limits_without_an_engine_shift_no_answer,
    every_refusal_leaves_the_session_in_step,
    faults_in_the_middle_of_exchanges_leave_the_session_in_step,
);

const ROWS: &str = "INSERT INTO cu VALUES (1, 'a', 5, 1), (2, 'b', 4, 2), (3, 'c', 3, 3), (4, NULL, 2, 4), (5, 'e', 1, 5)";
const TABLE: &str =
    "CREATE TABLE cu (id INT PRIMARY KEY, name VARCHAR(20) {}, n INT {range}, plain INT)";

/// What may stand behind LIMIT in a text.
const LIMITS: &[&str] = &[
    "2",
    "0",
    "18446744073709551615",
    "'1'",
    "-1",
    "1.5",
    "1.0",
    "0x10",
    "0x1",
    "x'01'",
    "b'11'",
    "NULL",
    "TRUE",
    "1e1",
    "+1",
    "18446744073709551616",
    "1 OFFSET '1'",
    "1 OFFSET -1",
    "1 OFFSET NULL",
    "1 OFFSET 1",
    "2, 1",
    "1, '1'",
];

/// What may be bound to a parameter behind LIMIT.
fn parameters() -> Vec<Value> {
    let texts = [
        "2",
        "",
        "x",
        "-1",
        "1.5",
        "1e1",
        " 2",
        "2x",
        "18446744073709551616",
    ];
    let mut all: Vec<Value> = texts.iter().map(Value::from).collect();
    all.extend([
        Value::Int(2),
        Value::Int(0),
        Value::Int(-1),
        Value::UInt(u64::MAX),
        Value::NULL,
    ]);
    all.extend([1.5, 2.5, 2.0, 0.4, -1.0, 1e20].map(Value::Double));
    all
}

fn limits_are_read_as_the_server_reads_them(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[TABLE]) else {
        return;
    };
    pair.both(ROWS);
    for limit in LIMITS {
        for order in ["name", "n", "plain", "CONCAT(name, 'x')"] {
            let sql = format!("SELECT name FROM cu ORDER BY {order} LIMIT {limit}");
            let plain = pair.plain.run(&sql);
            let protected = pair.protected.run(&sql);
            assert!(pair.protected.answers_itself(), "{sql}");
            match (plain, protected) {
                (Ok(a), Ok(b)) => assert_eq!(a.text(), b.text(), "{sql}"),
                (Err(a), Err(b)) => assert_eq!(a.code, b.code, "{sql}\n{a}\n{b}"),
                (a, b) => panic!("{sql}\nplain {a:?}\nprotected {b:?}"),
            }
        }
    }
    for (n, parameter) in parameters().into_iter().enumerate() {
        for sql in [
            "SELECT name FROM cu ORDER BY name LIMIT ?",
            "SELECT name FROM cu ORDER BY name LIMIT 2 OFFSET ?",
            "SELECT name FROM cu ORDER BY n LIMIT ?",
        ] {
            // MariaDB takes a negative value for an unsigned one if the statement had one of those
            // before
            let sql = &format!("{sql} /* {n} */");
            let about = format!("{sql} with {parameter:?}");
            // MariaDB itself takes what is beyond its integers or refuses it, by how it was sent
            let is_odd = match &parameter {
                Value::Bytes(text) => text.starts_with(b"-") || text.len() > 18,
                Value::Double(n) => *n < 0.0,
                _ => false,
            };
            if kind == Kind::MariaDb && is_odd && sql.contains("ORDER BY n ") {
                continue;
            }
            let plain = pair.plain.execute(sql, vec![parameter.clone()]);
            let protected = pair.protected.execute(sql, vec![parameter.clone()]);
            assert!(pair.protected.answers_itself(), "{about}");
            match (plain, protected) {
                (Ok(a), Ok(b)) => assert_eq!(a.text(), b.text(), "{about}"),
                (Err(a), Err(b)) => assert_eq!(a.code, b.code, "{about}\n{a}\n{b}"),
                (a, b) => panic!("{about}\nplain {a:?}\nprotected {b:?}"),
            }
        }
    }
}

fn limits_without_an_engine_shift_no_answer(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let proxy = Proxy::start(&server, "");
    proxy.connect().must("CREATE DATABASE app");
    let mut session = proxy.connect_to("app");
    session.must(
        "CREATE TABLE cu (id INT PRIMARY KEY, name VARCHAR(20) ENCRYPTED FOR (), n INT, plain INT)",
    );
    session.must(ROWS);
    for limit in LIMITS {
        let sql = format!("SELECT name FROM cu ORDER BY name LIMIT {limit}");
        let _ = session.run(&sql);
        assert!(session.answers_itself(), "{sql}");
        let updated = session.must("UPDATE cu SET plain = plain + 1 WHERE id = 1");
        assert_eq!(updated.affected, 1, "{sql}");
    }
    for parameter in parameters() {
        let sql = "SELECT name FROM cu ORDER BY name LIMIT ?";
        let _ = session.execute(sql, vec![parameter.clone()]);
        assert!(session.answers_itself(), "{parameter:?}");
    }
}

/// Statements of every tier, most of them refused or failing somewhere on their way.
const STATEMENTS: &[&str] = &[
    "SELECT name FROM cu ORDER BY name",
    "SELECT name FROM cu WHERE name = 'a'",
    "SELECT name, SUM(n) FROM cu GROUP BY name ORDER BY 2 LIMIT 3",
    "SELECT n FROM cu WHERE n > 2 ORDER BY n LIMIT 2",
    "SELECT MAX(n), MIN(n), COUNT(DISTINCT name) FROM cu",
    "SELECT CONCAT(name, n) FROM cu ORDER BY 1",
    "SELECT UPPER(a.name) FROM cu a JOIN cu b ON a.n = b.n + 1",
    "SELECT name FROM cu WHERE name LIKE '%a%'",
    "SELECT name FROM cu WHERE NO_SUCH(name)",
    "SELECT name FROM cu WHERE missing = 1",
    "SELECT name FROM cu INTO OUTFILE '/x'",
    "INSERT INTO cu VALUES (1, 'dup', 1, 1)",
    "INSERT INTO cu VALUES (6, 'six', 'not a number', 1)",
    "INSERT INTO cu VALUES (6, 'a name that is much too long for it', 1, 1)",
    "INSERT INTO cu VALUES (7, 'seven', 7, 7), (1, 'dup', 1, 1)",
    "INSERT INTO cu SELECT id + 10, UPPER(name), n, plain FROM cu",
    "INSERT INTO cu VALUES (1, 'met', 1, 1) ON DUPLICATE KEY UPDATE name = 'met', n = n + 1",
    "INSERT INTO cu VALUES (1, 'met', 1, 1) ON DUPLICATE KEY UPDATE name = CONCAT(name, 'x')",
    "REPLACE INTO cu VALUES (2, 'replaced', 2, 2)",
    "UPDATE cu SET n = n + 1 WHERE id = 1",
    "UPDATE cu SET n = n + 2147483640",
    "UPDATE cu SET n = 'x' WHERE id = 1",
    "UPDATE cu SET name = 'b' WHERE name = 'a'",
    "UPDATE cu SET name = CONCAT(name, '!') WHERE n < 3",
    "UPDATE cu SET id = 2 WHERE id = 1",
    "UPDATE cu SET name = REPEAT('x', 30) WHERE id = 1",
    "DELETE FROM cu WHERE name LIKE '%zz%'",
    "DELETE FROM cu WHERE UPPER(name) = 'ZZ'",
    "DELETE FROM cu WHERE id > 20",
    "BEGIN",
    "SAVEPOINT a",
    "ROLLBACK TO a",
    "COMMIT",
    "SET sql_select_limit = 2",
    "SELECT name FROM cu ORDER BY name",
    "UPDATE cu SET n = n + 1",
    "SET sql_select_limit = DEFAULT",
    "CREATE TEMPORARY TABLE tt SELECT name FROM cu",
    "CREATE TEMPORARY TABLE tt (a INT, b VARCHAR(10) ENCRYPTED FOR ())",
    "INSERT INTO tt VALUES (1, 'x')",
    "SELECT b FROM tt ORDER BY b LIMIT '1'",
    "DROP TEMPORARY TABLE IF EXISTS tt",
    "ALTER TABLE cu ADD missing INT AFTER nowhere",
    "SHOW CREATE TABLE cu",
    "SHOW COLUMNS FROM cu LIKE 'n%'",
    "EXPLAIN SELECT name FROM cu ORDER BY name",
    "PREPARE s FROM 'SELECT name FROM cu ORDER BY name LIMIT ?'",
    "SET @a = 1",
    "EXECUTE s USING @a",
    "DEALLOCATE PREPARE s",
    "SELECT name FROM cu WHERE name = 'a'; SELECT CONCAT(name, 'x') FROM cu; SELECT missing FROM cu",
    "SHOW WARNINGS",
    "SELECT ROW_COUNT(), FOUND_ROWS()",
    "LOCK TABLES cu WRITE",
    "UPDATE cu SET n = n - 1",
    "UNLOCK TABLES",
    "SELECT '",
    "SELECT \"a\" FROM cu WHERE",
];

fn every_refusal_leaves_the_session_in_step(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[TABLE]) else {
        return;
    };
    pair.both(ROWS);
    for sql in STATEMENTS {
        let _ = pair.protected.run(sql);
        assert!(pair.protected.answers_itself(), "{sql}");
        let _ = pair.protected.execute(sql, ());
        assert!(pair.protected.answers_itself(), "prepared: {sql}");
    }
    pair.proxy.assert_healthy();
}

/// Whatever fails between a question and its answer, at the server and at the engine: no answer is
/// taken for another's. A session may end; then it says so.
fn faults_in_the_middle_of_exchanges_leave_the_session_in_step(kind: Kind) {
    // release builds have no faults
    if direct_mode() || !cfg!(debug_assertions) {
        return;
    }
    let Some(behind) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let Some(beside) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let seed = match std::env::var("ONIONSKIN_SEED") {
        Ok(seed) => seed.parse().expect("a number"),
        Err(_) => 20_261_123_u64,
    };
    behind.connect().must("CREATE DATABASE app");
    let mut first = None;
    let (mut failed, mut ended) = (0, 0);
    for (n, one_in) in [7, 23, 61].into_iter().enumerate() {
        let seed = seed + n as u64;
        announce(&format!("ONIONSKIN_SEED={seed}, one fault in {one_in}"));
        let proxy = Proxy::start_with(
            &behind,
            ProxyOptions {
                tables: format!("[scratch]\nsocket = \"{}\"\n", beside.socket().display()),
                keys: first.as_ref().map(Proxy::keys),
                environment: vec![("ONIONSKIN_TEST_FAULTS".into(), format!("{seed}:{one_in}"))],
                ..ProxyOptions::default()
            },
        );
        // where statements fail at random, the table is made by trying
        let table = TABLE.replace('{', "ENCRYPTED FOR (").replace('}', ")");
        wait_until(
            "the table is made",
            std::time::Duration::from_secs(30),
            || {
                let mut session = proxy.connect_to("app");
                let _ = session.conn().query_drop(&table);
                let _ = session.run(ROWS);
                session
                    .text("SELECT COUNT(*) FROM cu")
                    .is_ok_and(|count| count != "0")
            },
        );
        let rounds = if long_run() { 40 } else { 3 };
        let mut session = proxy.connect_to("app");
        for sql in STATEMENTS.iter().cycle().take(rounds * STATEMENTS.len()) {
            for prepared in [false, true] {
                let done = match prepared {
                    false => session.run(sql),
                    true => session.execute(sql, ()),
                };
                failed += u32::from(done.is_err());
                // the question may fail by itself, but its answer is nobody else's
                let is_lost = done.is_err_and(|e| e.is_disconnect());
                if is_lost
                    || !session.answers_itself()
                        && session.run("DO 0").is_err_and(|e| e.is_disconnect())
                {
                    ended += 1;
                    session = proxy.connect_to("app");
                }
            }
        }
        drop(session);
        first.get_or_insert(proxy);
    }
    assert!(failed > 50, "faults were injected: {failed}");
    announce(&format!(
        "{failed} statements failed, {ended} sessions ended"
    ));
}
