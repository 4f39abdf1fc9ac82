//! Drivers set what the server tells them of a session's changes. The proxy learns from the same
//! messages which statements mean what, and goes on to be told whatever a client sets.

use ::mysql::Value;
use ::mysql::prelude::Queryable;
use onionskin_testkit::*;

on_both_servers!(
    clients_may_set_what_they_are_told_of,
    programs_may_set_it,
    transactions_are_told_of,
    a_program_that_hides_the_session_shows_no_constant,
    stored_functions_are_noticed,
    own_functions_cost_no_question,
    words_before_parentheses_call_no_program,
);

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(9) {eq})";

/// Each way to have the server tell less, or something else.
const WAYS: [&str; 9] = [
    "SET session_track_schema = 1",
    "SET session_track_schema = OFF, session_track_state_change = 1",
    "set autocommit=1, session_track_schema=1, session_track_system_variables='auto_increment_increment'",
    "SET SESSION session_track_system_variables = ''",
    "SET @@session_track_system_variables = 'sql_mode'",
    "SET `session_track_system_variables` = DEFAULT",
    "SET session_track_system_variables = '*'",
    "/*!40101 SET session_track_system_variables = CONCAT('', '') */",
    "SET @@session.session_track_system_variables = 'autocommit', @x = 1",
];

fn clients_may_set_what_they_are_told_of(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[TABLE]) else {
        return;
    };
    pair.both("INSERT INTO t VALUES (1, 'a')");
    for way in WAYS {
        pair.same(way);
        pair.same("SELECT ROW_COUNT()");
        follows_the_session(&mut pair, way);
    }
    pair.both("DO 1; SET session_track_system_variables = ''; SET sql_mode = 'ANSI_QUOTES'");
    pair.same("SELECT \"n\" FROM t WHERE n = 'a'");
    let set = "SET session_track_system_variables = ?";
    assert!(pair.same_if_done_with(set, &[Value::from("autocommit")]));
    follows_the_session(&mut pair, set);
    pair.same(
        "PREPARE s FROM 'SET session_track_schema = 0, session_track_system_variables = \"\"'",
    );
    pair.same("EXECUTE s");
    follows_the_session(&mut pair, "EXECUTE");
    for wrong in [
        "SET session_track_schema = 'nonsense'",
        "SET session_track_system_variables = 7",
    ] {
        pair.same_error(wrong);
        follows_the_session(&mut pair, wrong);
    }
}

/// A program tells less of the session. What the proxy hears of, it mends.
fn programs_may_set_it(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[TABLE]) else {
        return;
    };
    pair.both("INSERT INTO t VALUES (1, 'a')");
    pair.both("CREATE PROCEDURE p() SET session_track_schema = 0");
    pair.both("CREATE PROCEDURE q() SET session_track_system_variables = 'session_track_system_variables'");
    for call in ["CALL p()", "CALL q()"] {
        pair.both(call);
        follows_the_session(&mut pair, call);
    }
}

/// Pools and proxies go by `session_track_transaction_info`: they must not take an open transaction
/// for an idle session, whatever statements of the proxy's own the client's has taken.
fn transactions_are_told_of(kind: Kind) {
    const TABLES: [&str; 2] = [
        "CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(9) {eq}, k INT {range}, p INT)",
        "CREATE TABLE u (id INT PRIMARY KEY, n VARCHAR(9) {eq}, p INT)",
    ];
    let Some(mut pair) = Pair::of(kind, true, &TABLES) else {
        return;
    };
    pair.both("INSERT INTO t VALUES (1, 'a', 1, 1), (2, 'b', 2, 2), (3, 'c', 3, 3)");
    pair.both("INSERT INTO u VALUES (1, 'a', 1), (2, 'x', 2)");
    let statements = [
        "BEGIN",
        "UPDATE t SET k = k + 1 WHERE id = 1",
        "COMMIT",
        "UPDATE t SET k = k + 1 WHERE id = 1",
        "UPDATE t SET n = 'z' WHERE id = 2",
        "START TRANSACTION",
        "UPDATE t SET k = k + 1, p = 5",
        "ROLLBACK",
        "START TRANSACTION",
        "DELETE FROM t WHERE LENGTH(n) = 1 AND id = 3",
        "UPDATE t SET n = 'y' WHERE id = 1",
        "COMMIT",
        "BEGIN",
        "INSERT INTO u SELECT id + 10, CONCAT(n, 'q'), p FROM t",
        "ROLLBACK",
        "BEGIN",
        "REPLACE INTO u VALUES (1, 'r', 1), (7, 's', 7)",
        "INSERT INTO u VALUES (1, 't', 1) ON DUPLICATE KEY UPDATE n = CONCAT(n, '1')",
        "COMMIT",
        "SET autocommit = 0",
        "UPDATE t SET k = k + 1 WHERE id = 1",
        "COMMIT",
        "SET autocommit = 1",
    ];
    let ports = [pair.beside().port(), pair.proxy.port()];
    let [mut plain, mut protected] = ports.map(RawClient::login_tracking);
    let set = "SET session_track_transaction_info = 'STATE'";
    let mut told = [String::new(), String::new()];
    for sql in ["USE app", set].iter().chain(&statements) {
        for (client, told) in [&mut plain, &mut protected].into_iter().zip(&mut told) {
            match client.query(sql.as_bytes()) {
                Reply::Packet(ok) => {
                    if let Some(state) = transaction_state(&ok) {
                        *told = state;
                    }
                }
                other => panic!("{sql}: {other:?}"),
            }
        }
        // reads of the proxy's own may be told beside it
        let [plain, protected] = &told;
        let lacks = plain
            .chars()
            .zip(protected.chars())
            .any(|(p, o)| p != '_' && p != o);
        let is_open = [plain, protected].map(|state| !state.starts_with('_'));
        assert!(
            !lacks && is_open[0] == is_open[1],
            "{sql}: {plain}, {protected}"
        );
    }
}

/// The state of the transaction that an OK packet tells, if it does.
fn transaction_state(ok: &[u8]) -> Option<String> {
    // its kind, the length of the change, the length of the state, which has eight letters
    const BEGINS: [u8; 3] = [5, 9, 8];
    let at = ok.windows(3).rposition(|bytes| bytes == BEGINS)?;
    let state = ok.get(at + 3..at + 11)?;
    Some(String::from_utf8_lossy(state).into_owned())
}

/// Both read double quotes, databases and times by what the session was set to.
fn follows_the_session(pair: &mut Pair, behind: &str) {
    for sql in [
        "SET sql_mode = 'ANSI_QUOTES'",
        "SELECT \"n\", @@sql_mode FROM t WHERE n = 'a'",
        "SET sql_mode = ''",
        "SELECT \"n\", @@sql_mode FROM t WHERE n = \"a\"",
        "SET time_zone = '+05:00'",
        "SELECT n, FROM_UNIXTIME(0) FROM t WHERE n = 'a'",
        "SET time_zone = '+00:00'",
    ] {
        pair.same(sql);
    }
    let database = pair.protected.text("SELECT DATABASE()").expect("a name");
    pair.protected.must("USE information_schema");
    let missing = pair.protected.must_fail("SELECT n FROM t WHERE n = 'a'");
    assert!([1109, 1146].contains(&missing), "{missing}, {behind}");
    pair.protected.must(&format!("USE {database}"));
}

/// A program takes the telling away, and then has texts read otherwise. The proxy cannot know. What
/// the client means for protected columns reaches the server sealed all the same.
fn a_program_that_hides_the_session_shows_no_constant(kind: Kind) {
    let Some(server) = logging_server(
        kind,
        &["--general-log=1", "--general-log-file=everything.log"],
    ) else {
        return;
    };
    let mut admin = server.connect();
    admin.must("CREATE DATABASE app");
    let proxy = Proxy::start(&server, "[protect]\n");
    let mut session = proxy.connect_to("app");
    session.must(
        "CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(40) ENCRYPTED FOR (eq), p VARCHAR(40))",
    );
    for mode in ["NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "PIPES_AS_CONCAT"] {
        admin.must(&format!(
            "CREATE PROCEDURE app.{mode}() BEGIN SET session_track_system_variables = ''; \
             SET session_track_schema = 0; SET sql_mode = '{mode}'; END"
        ));
        session.must(&format!("CALL {mode}()"));
        for sql in [
            "INSERT INTO t VALUES (1, 'canaryone', 'x')",
            "INSERT INTO t VALUES (2, 'canary\\'two', '\\'')",
            "INSERT INTO t VALUES (3, \"canarythree\", \"y\")",
            "UPDATE t SET n = 'canary\\'four' WHERE p = '\\'' OR n = \"canaryfive\"",
            "SELECT id FROM t WHERE n = 'canarysix\\\\' AND p = 'z'",
            "DELETE FROM t",
        ] {
            // it may be read otherwise
            let _ = session.run(sql);
        }
    }
    drop(session);
    server.assert_no_trace_of(&["canary"]);
}

/// A stored function that sets a variable, by whatever it is called: the next statement is read and
/// answered as the server does. MySQL says nothing of it at the end of a result.
fn stored_functions_are_noticed(kind: Kind) {
    const STAMPS: &str = "CREATE TABLE s (id INT PRIMARY KEY, at TIMESTAMP NULL {eq})";
    let Some(mut pair) = Pair::start(kind, &[TABLE, STAMPS]) else {
        return;
    };
    pair.both("SET time_zone = '+00:00'");
    pair.both("INSERT INTO t VALUES (1, 'a')");
    pair.both("INSERT INTO s VALUES (1, '2020-01-01 12:00:00')");
    pair.both(
        "CREATE FUNCTION go_east() RETURNS INT NO SQL BEGIN SET time_zone = '+05:00'; RETURN 1; END",
    );
    pair.both("CREATE VIEW v AS SELECT go_east() AS z");
    pair.both("CREATE VIEW w AS SELECT z FROM v");
    pair.both("CREATE TABLE keyed (id INT PRIMARY KEY, n INT UNIQUE)");
    pair.both("INSERT INTO keyed VALUES (1, 1)");
    pair.both("CREATE VIEW k AS SELECT id, n, go_east() AS z FROM keyed");
    pair.both("PREPARE direct FROM 'SELECT go_east()'");
    pair.both("PREPARE hidden FROM 'SELECT * FROM w'");
    for call in [
        "SELECT go_east()",
        "SELECT `go_east` ()",
        "SELECT app.go_east()",
        "SELECT COUNT(*), MAX(go_east()) FROM t",
        "SELECT * FROM v",
        "SELECT z FROM w",
        "SELECT t.id, w.z FROM t, w",
        "SELECT * FROM k WHERE id = 1",
        "SELECT t.id, k.z FROM t JOIN k ON k.id = t.id",
        "SELECT (SELECT z FROM w LIMIT 1) FROM t WHERE n = 'a'",
        "EXECUTE direct",
        "EXECUTE hidden",
        "DO 1; SELECT * FROM w; SELECT id, at FROM s",
        "SELECT go_east() FROM t; SELECT id, at FROM s",
        "/*!50000 SELECT go_east() */",
    ] {
        pair.same(call);
        pair.same("SELECT id, at FROM s");
        pair.same("SELECT id FROM s WHERE at = '2020-01-01 17:00:00'");
        pair.both("SET time_zone = '+00:00'");
        pair.same("SELECT id, at FROM s");
    }
    for call in ["SELECT go_east() + ?", "SELECT z + ? FROM w"] {
        assert!(pair.same_if_done_with(call, &[Value::from(1)]), "{call}");
        pair.same("SELECT id, at FROM s");
        pair.both("SET time_zone = '+00:00'");
    }
}

/// Behind a result, MySQL is asked what a stored function may have set; where none can have run, it
/// is not.
fn own_functions_cost_no_question(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut admin = server.connect();
    admin.must("CREATE DATABASE app");
    let proxy = Proxy::start(&server, "[protect]\n");
    let mut session = proxy.connect_to("app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(40) ENCRYPTED FOR (eq))");
    session.must("CREATE FUNCTION the_one() RETURNS INT NO SQL RETURN 1");
    session.must("CREATE TABLE plain (id INT PRIMARY KEY)");
    session.must("CREATE TABLE keyless (a INT)");
    session.must("CREATE VIEW v AS SELECT the_one() AS x");
    let mut pings = |sql: &str| {
        let mut count = |session: &mut Session| -> u64 {
            // in order behind what the proxy asks
            session.must("DO 0");
            let status = admin.text("SHOW GLOBAL STATUS LIKE 'Com_admin_commands'");
            let count = status.unwrap();
            count.split('\t').next_back().unwrap().parse().unwrap()
        };
        // what the first one looks up is known afterwards
        session.must(sql);
        let before = count(&mut session);
        session.must(sql);
        session.conn().exec_drop(sql, ()).unwrap();
        session.conn().exec_drop(sql, ()).unwrap();
        count(&mut session) - before
    };
    for sql in [
        "SELECT COUNT(*) FROM t",
        "SELECT SUM(id), MAX( id ) FROM t WHERE id IN (1, 2) AND (n = 'a' OR n IN ('b'))",
        "SELECT ROW_NUMBER() OVER (ORDER BY id) FROM plain",
        "SELECT CONCAT(UPPER('a'), CAST(1 AS DECIMAL(10, 2)))",
        "SELECT n FROM t WHERE id BETWEEN (1) AND (2) GROUP BY (n)",
    ] {
        assert_eq!(pings(sql), 0, "{sql}");
    }
    for sql in [
        "SELECT the_one()",
        "SELECT * FROM v",
        "SELECT a FROM keyless",
    ] {
        let wanted = if kind == Kind::MySql { 3 } else { 0 };
        assert_eq!(pings(sql), wanted, "{sql}");
    }
}

/// The words behind which the proxy expects no stored function are MySQL's own.
fn words_before_parentheses_call_no_program(kind: Kind) {
    /// Of a function that does not exist.
    const UNKNOWN: u16 = 1305;
    if kind != Kind::MySql {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("USE app");
    assert_eq!(session.must_fail("SELECT nope()"), UNKNOWN);
    let (mut words, mut others) = (0, Vec::new());
    for word in onionskin_plan::own_words() {
        for arguments in ["", "1", "1, 1"] {
            let call = format!("SELECT {word}({arguments})");
            if session.run(&call).is_err_and(|e| e.code == UNKNOWN) {
                others.push(word);
            }
        }
        words += 1;
    }
    assert!(others.is_empty(), "{others:?}");
    assert!(words > 250, "{words}");
}
