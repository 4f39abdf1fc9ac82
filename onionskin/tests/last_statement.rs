//! What a session can ask about the statement before, and what another statement leaves of that:
//! warnings, errors, `FOUND_ROWS()`; and what the words around a statement must not change. All of
//! it is a plain server's, or refused.

use ::mysql::prelude::Queryable;
use onionskin_testkit::*;

on_both_servers!(
    warnings_outlive_statements_without_tables,
    warnings_of_their_own,
    commands_in_front_of_a_question,
    found_rows_count_what_offset_skips,
    what_stands_behind_an_error_is_certain,
    copies_have_no_notes,
    transactions_that_only_read,
    questions_under_a_limit,
    a_look_up_begins_no_transaction,
    comments_in_front_change_nothing,
    an_unknown_statement_is_an_error_that_is_kept,
    computed_assignments_beside_a_wrong_value,
    without_room_for_errors_none_is_shown,
    a_null_in_the_only_row_of_an_insert,
);

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, k INT {eq, range}, s VARCHAR(5) {eq}, free VARCHAR(20) {}, \
                     plain INT UNSIGNED NOT NULL DEFAULT 1)";
const ROWS: &str = "INSERT INTO t VALUES (1, 5, 'a', 'x', 1), (2, 6, 'b', 'y', 2), (3, 7, 'c', 'z', 3), (4, 8, 'd', 'q', 4)";

fn filled(kind: Kind, with_engine: bool) -> Option<Pair> {
    Pair::of(kind, with_engine, &[TABLE, ROWS])
}

/// MariaDB keeps its list over them, MySQL does not; a statement that fails has a list of its own.
fn warnings_outlive_statements_without_tables(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    for between in [
        "SET @a = 1",
        "/* app */ SET autocommit = 1",
        "SET NAMES utf8mb4",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "START TRANSACTION",
        "USE app",
        "DO 1",
        "SELECT 1",
        "UNLOCK TABLES",
        "SET nothing = 1",
        "ROLLBACK TO SAVEPOINT nothing",
        "SELECT COUNT(*) FROM t",
    ] {
        for before in [
            "INSERT IGNORE INTO t (id, s) VALUES (9, 'longer than five')",
            "INSERT INTO t (id, s) VALUES (8, 'longer than five')",
        ] {
            pair.same("DELETE FROM t WHERE id > 7");
            pair.same(before);
            pair.same(between);
            for question in ["SELECT @@warning_count, @@error_count", "SHOW WARNINGS"] {
                let said = pair.say(question);
                assert!(
                    said.is_refused() || said.plain == said.protected,
                    "{before}; {between}; {question}: {said:?}"
                );
            }
        }
    }
    pair.same("ROLLBACK");
}

/// Warnings that such a statement raises itself take the place of those before.
fn warnings_of_their_own(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    let own = ["SET net_retry_count = 0", "SELECT CONVERT('a', DATE)"];
    for before in [
        "INSERT IGNORE INTO t (id, s) VALUES (9, 'longer than five')",
        "CREATE TEMPORARY TABLE copy LIKE t",
        "DROP TEMPORARY TABLE copy",
    ] {
        for own in own {
            pair.same(before);
            pair.same(own);
            for question in ["SHOW COUNT(*) WARNINGS", "SHOW WARNINGS"] {
                let said = pair.say(question);
                assert!(!said.is_refused(), "{before}; {own}; {question}: {said:?}");
                assert_eq!(said.plain, said.protected, "{before}; {own}; {question}");
            }
        }
    }
}

/// A pool's ping, a preparation: commands that are no statements, and change what a question is
/// about.
fn commands_in_front_of_a_question(kind: Kind) {
    let Some(mut pair) = filled(kind, true) else {
        return;
    };
    type Command = (&'static str, fn(&mut Session));
    let commands: [Command; 6] = [
        ("nothing", |_| {}),
        ("ping", |session| session.conn().ping().expect("an answer")),
        ("init db", |session| drop(session.conn().select_db("app"))),
        ("prepare", |session| {
            let _ = session.conn().prep("SELECT id FROM t WHERE s = ?");
        }),
        ("prepare without a table", |session| {
            let _ = session.conn().prep("SELECT 1 + ?");
        }),
        ("prepare for the engine", |session| {
            let _ = session
                .conn()
                .prep("SELECT UPPER(free) FROM t WHERE id = ?");
        }),
    ];
    let statements = [
        "UPDATE t SET k = k + 1",
        "UPDATE t SET free = REVERSE(free)",
        "UPDATE t SET plain = plain + 1 WHERE s = 'a'",
        "INSERT IGNORE INTO t (id, s) VALUES (1, 'longer than five')",
        "INSERT IGNORE INTO t (id, plain) VALUES (1, -7)",
        "SELECT nosuch FROM t",
        "SELECT UPPER(free) FROM t LIMIT 2",
    ];
    let questions = [
        "SELECT ROW_COUNT()",
        "SHOW WARNINGS",
        "SELECT @@warning_count",
        "SHOW COUNT(*) ERRORS",
        "SELECT FOUND_ROWS()",
    ];
    for sql in statements {
        for (name, command) in commands {
            for question in questions {
                let [plain, protected] = pair.sessions().map(|session| {
                    let _ = session.run(sql);
                    command(session);
                    let answer = session.run(question);
                    answer.map(|answer| answer.text()).map_err(|e| e.message)
                });
                let is_refused = protected.as_ref().is_err_and(|m| m.contains("OS1"));
                assert!(
                    is_refused || plain == protected,
                    "{sql}; {name}; {question}: {plain:?}, {protected:?}"
                );
            }
        }
    }
}

fn found_rows_count_what_offset_skips(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = filled(kind, with_engine) else {
            return;
        };
        for query in [
            "SELECT id FROM t ORDER BY free LIMIT 1 OFFSET 1",
            "SELECT id FROM t ORDER BY free LIMIT 2, 7",
            "SELECT id FROM t ORDER BY free LIMIT 2 OFFSET 9",
            "SELECT id FROM t ORDER BY free LIMIT 0",
            "SELECT id FROM t ORDER BY free LIMIT 2, 0",
            "SELECT DISTINCT free FROM t ORDER BY free LIMIT 1, 2",
            "SELECT free, COUNT(*) FROM t GROUP BY free ORDER BY free LIMIT 1, 2",
            "SELECT id FROM t WHERE free LIKE '%' ORDER BY id LIMIT 1, 2",
            "SELECT UPPER(s) FROM t ORDER BY id LIMIT 1, 2",
        ] {
            if pair.same_or_refused(query) {
                pair.same("SELECT FOUND_ROWS()");
            }
        }
    }
}

/// Behind a statement that failed, a question is answered as on a plain server, or not.
fn what_stands_behind_an_error_is_certain(kind: Kind) {
    let Some(mut pair) = Pair::of(
        kind,
        false,
        &[
            "CREATE TABLE e (id INT PRIMARY KEY, n INT NOT NULL, l VARCHAR(9) CHARACTER SET latin1 {eq}, \
             d VARCHAR(9) {}, f INT NOT NULL)",
            "CREATE TABLE none (id INT)",
            "INSERT INTO e VALUES (1, 1, 'a', 'x', 1), (2, 2, 'b', 'y', 2), (3, 3, 'c', 'x', 3)",
        ],
    ) else {
        return;
    };
    // how many rows were counted before the error depends on what the server has run before
    for before in [
        "SELECT DISTINCT d FROM e",
        "SELECT id FROM e",
        "SELECT id FROM none",
    ] {
        for failing in [
            "SELECT * FROM none WHERE id = (SELECT 1 UNION SELECT 2)",
            "SELECT id FROM e WHERE id = (SELECT 1 UNION SELECT 2)",
            "SELECT nothing FROM none",
            "INSERT INTO e (id) VALUES (1)",
        ] {
            pair.say(before);
            pair.say(failing);
            pair.same_or_refused("SELECT FOUND_ROWS()");
        }
    }
    // the assignment that fails may come before the one that warns
    for failing in [
        "UPDATE e SET n = DEFAULT, l = 'a         ' WHERE id = 1",
        "UPDATE e SET l = 'a         ', n = DEFAULT WHERE id = 1",
        "INSERT INTO e (id, n, l, f) VALUES (7, 1, 'a         ', 1), (8, DEFAULT, 'b', 1)",
        "INSERT INTO e (id, l) VALUES (7, 'a         ')",
    ] {
        pair.same_or_refused(failing);
        pair.same_or_refused("SHOW WARNINGS");
    }
    // parameters are converted before any row is stored
    let sql = "INSERT IGNORE INTO e (id, n, l, f) VALUES (?, 1, ?, 1), (?, 1, ?, 1)";
    let parameters = [
        ::mysql::Value::from(11),
        "a         ".into(),
        12.into(),
        "\u{1f601}".into(),
    ];
    // the text names the collation of the login on a plain server, and here the character set's
    let code = |done: Result<Outcome, Failure>| done.err().map(|error| error.code);
    let codes = |session: &mut Session| {
        let code = code(session.execute(sql, parameters.to_vec()));
        let shown = session.must("SHOW WARNINGS");
        let rows = shown.sets[0].rows.iter();
        (code, rows.map(|row| row[1].clone()).collect::<Vec<_>>())
    };
    let [plain, heard] = pair.sessions().map(codes);
    assert_eq!(plain, heard, "{sql}");
}

fn copies_have_no_notes(kind: Kind) {
    let Some(mut pair) = Pair::of(
        kind,
        false,
        &[
            "CREATE TABLE twice (id INT PRIMARY KEY, a DECIMAL(9,2) {eq}, b INT, KEY one (b), KEY two (b))",
        ],
    ) else {
        return;
    };
    for sql in [
        "CREATE TABLE copy LIKE twice",
        "SHOW WARNINGS",
        "CREATE TEMPORARY TABLE other LIKE twice",
        "SHOW WARNINGS",
        "DROP TEMPORARY TABLE other",
        "SHOW WARNINGS",
        "SHOW ERRORS",
        "SHOW COUNT(*) ERRORS",
    ] {
        pair.same(sql);
    }
}

/// What a plain server says first, it says first here.
fn transactions_that_only_read(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    for begin in ["START TRANSACTION READ ONLY", "SET TRANSACTION READ ONLY"] {
        for sql in [
            "INSERT INTO t (id, k) VALUES (7, 'no number')",
            "UPDATE t SET s = 'longer than five' WHERE id = 1",
            "REPLACE INTO t (id, s) VALUES (1, 'longer than five')",
            "INSERT IGNORE INTO t (id, s) VALUES (8, 'longer than five')",
            "PREPARE p FROM 'UPDATE t SET k = ? WHERE id = ?'",
            "PREPARE p FROM 'UPDATE t SET k = k + ? WHERE id = ?'",
            "PREPARE p FROM 'DELETE FROM t WHERE id = ?'",
        ] {
            pair.same(begin);
            if pair.same_or_refused(sql) {
                let said = pair.same(sql);
                assert!(said.starts_with("1792 "), "{begin}; {sql}: {said}");
                pair.same("SHOW WARNINGS");
            }
            pair.same("ROLLBACK");
        }
    }
    // what begins no transaction leaves it to the next statement, also where it fails
    for between in [
        "DEALLOCATE PREPARE nobody",
        "SET sql_mode = 'NOTHING'",
        "ROLLBACK TO SAVEPOINT nowhere",
        "USE app",
        "USE nowhere",
    ] {
        for sql in [
            "SET TRANSACTION READ ONLY",
            between,
            "DELETE FROM t WHERE id = 7",
            "ROLLBACK",
        ] {
            pair.same(sql);
        }
    }
    // the end that autocommit brings about leaves the next one as it was
    for sql in [
        "SET autocommit = 0",
        "START TRANSACTION READ ONLY",
        "SET autocommit = 1",
        "UPDATE t SET free = 'x' WHERE id = 1",
        "UPDATE t SET free = 'x' WHERE id = 1",
        "ROLLBACK",
    ] {
        pair.same(sql);
    }
}

/// The proxy lifts the limit for its own questions, and answers none of them with another's end.
fn questions_under_a_limit(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same("CREATE TABLE needed (id INT PRIMARY KEY, d DATE NOT NULL {eq})");
    for limit in ["SET sql_select_limit = 3", "SET sql_select_limit = 0"] {
        pair.same(limit);
        for sql in [
            "UPDATE needed SET d = DEFAULT WHERE id = 9",
            "UPDATE needed SET d = DEFAULT WHERE id = 9 ORDER BY id DESC",
            "UPDATE t SET s = 'longer than five' WHERE id = 99",
            "UPDATE t SET s = 'longer than five' WHERE id = 1",
        ] {
            pair.same_or_refused(sql);
            pair.same("SELECT 41");
        }
    }
}

/// Without autocommit, a question of the proxy's own would begin one, in which less may be done.
fn a_look_up_begins_no_transaction(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same("SET autocommit = 0");
    // what is refused is looked up before
    let _ = pair.protected.run("SELECT k * 2 FROM t WHERE nothing(k)");
    let _ = pair.protected.run("UPDATE t SET s = nothing(s)");
    pair.same("PREPARE p FROM 'SELECT k FROM t WHERE id = ?'");
    pair.same("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    if kind == Kind::MySql {
        pair.same("SET SESSION explicit_defaults_for_timestamp = 1");
    }
    pair.same("ROLLBACK");
    // nor does the end of one take a savepoint away
    pair.same("SAVEPOINT s");
    let _ = pair.protected.run("UPDATE t SET s = nothing(s)");
    pair.same("UPDATE nowhere SET a = 1");
    pair.same("ROLLBACK TO SAVEPOINT s");
    pair.same("SET autocommit = 1");
}

/// What is done with a statement does not depend on a comment before it, nor on words in its texts.
fn comments_in_front_change_nothing(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    for comment in ["", "/* app */ ", "-- app\n", "/* insert ignore */ # call\n"] {
        for sql in [
            "INSERT INTO t (id, s) VALUES (9, 'longer than five')",
            "INSERT IGNORE INTO t (id, s) VALUES (9, 'longer than five')",
            "UPDATE t SET s = 'longer than five' WHERE id = 99",
            "UPDATE t SET free = 'default', s = 'longer than five' WHERE id = 99",
            "UPDATE t SET free = 'returning', k = 1 WHERE id = 99",
            "SELECT k FROM t WHERE id = 1",
            "LOCK TABLES t READ",
            "UPDATE t SET s = 'longer than five' WHERE id = 1",
            "UNLOCK TABLES",
            "SET TRANSACTION READ ONLY",
            "DELETE FROM t WHERE id = 9",
            "ROLLBACK",
            "DELETE FROM t WHERE id = 9",
        ] {
            pair.same(&format!("{comment}{sql}"));
            pair.same_or_refused("SHOW WARNINGS");
        }
        // under another name a temporary table would not be known as a protected one
        let session = &mut pair.protected;
        session.must("CREATE TEMPORARY TABLE own (id INT, name VARCHAR(9) ENCRYPTED FOR (eq))");
        for rename in [
            "ALTER TABLE own RENAME TO moved",
            "ALTER TABLE own RENAME COLUMN id TO number",
        ] {
            let failure = session.run(&format!("{comment}{rename}"));
            let failure = failure.expect_err(rename);
            assert!(
                failure.message.contains("OS1"),
                "{comment}{rename}: {failure}"
            );
        }
        session.must("DROP TEMPORARY TABLE own");
    }
}

fn an_unknown_statement_is_an_error_that_is_kept(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    // the preparation is refused here, and is an error there
    let _ = pair.say("PREPARE p FROM 'SELECT nothing(k) FROM t'");
    for sql in [
        "EXECUTE p",
        "SHOW WARNINGS",
        "DEALLOCATE PREPARE p",
        "SHOW ERRORS",
    ] {
        pair.same(sql);
    }
}

fn computed_assignments_beside_a_wrong_value(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    for mode in ["''", "'STRICT_ALL_TABLES'"] {
        pair.same(&format!("SET sql_mode = {mode}"));
        for sql in [
            "UPDATE t SET k = 'no number', plain = plain * -3 WHERE id = 1",
            "UPDATE t SET plain = plain * -3, k = k + 99999999999 WHERE id = 1",
            "UPDATE t SET plain = DEFAULT, k = k + 99999999999 WHERE id = 1",
        ] {
            // of several errors, another one may be the first: then nothing about it is the same
            let said = pair.say(sql);
            if said.plain == said.protected {
                pair.same_or_refused("SHOW WARNINGS");
            }
        }
    }
}

fn without_room_for_errors_none_is_shown(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same("SET max_error_count = 0");
    for sql in ["SELECT * FROM nowhere", "INSERT INTO nowhere VALUES (1)"] {
        pair.same(sql);
        pair.same("SHOW WARNINGS");
        pair.same("SHOW ERRORS");
    }
}

/// MariaDB adds an error without a cause to that of a NULL, where the statement inserts one row and
/// names its columns.
fn a_null_in_the_only_row_of_an_insert(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, e INT NOT NULL {range}, s VARCHAR(5) {eq}, p INT NOT NULL)";
    let Some(mut pair) = Pair::of(kind, false, &[table]) else {
        return;
    };
    const QUESTIONS: [&str; 4] = [
        "SELECT @@warning_count, @@error_count",
        "SHOW WARNINGS",
        "SHOW ERRORS",
        "SHOW COUNT(*) WARNINGS",
    ];
    let mut told = 0;
    for sql in [
        "INSERT INTO t (id, e, s, p) VALUES (1, NULL, 'a', 2)",
        "INSERT INTO t VALUES (1, NULL, 'a', 2)",
        "INSERT INTO t SET p = 2, id = 1, e = NULL",
        "REPLACE INTO t (id, p, e) VALUES (1, 2, NULL)",
        "INSERT INTO t (id, e, p) VALUES (1, NULL, NULL)",
        "INSERT INTO t (id, e, p) VALUES (1, 1, 1), (2, NULL, 2)",
        "INSERT INTO t (id, e, p) VALUES (1, NULL, 1) ON DUPLICATE KEY UPDATE p = 2",
        "INSERT INTO t (id, e, s, p) VALUES (1, 1, 'too long', 1)",
        "INSERT INTO t (id, p) VALUES (1, 2)",
        "INSERT IGNORE INTO t (id, e, p) VALUES (1, NULL, 2)",
        "UPDATE t SET e = NULL WHERE id = 1",
    ] {
        for question in QUESTIONS {
            pair.both("DELETE FROM t");
            pair.same(sql);
            told += usize::from(pair.same_if_done(question));
        }
    }
    assert!(told > 36, "{told}");
    use ::mysql::Value;
    let (null, two) = (Value::NULL, Value::Int(2));
    for (sql, parameters) in [
        (
            "INSERT INTO t (id, e, p) VALUES (?, ?, ?)",
            vec![two.clone(), null.clone(), two.clone()],
        ),
        (
            "REPLACE INTO t (id, p, e) VALUES (?, ?, NULL)",
            vec![two.clone(), two.clone()],
        ),
        (
            "INSERT INTO t SET id = ?, p = 7, e = ?",
            vec![two.clone(), null.clone()],
        ),
        ("INSERT INTO t VALUES (?, ?, 's', 1)", vec![two, null]),
    ] {
        for question in QUESTIONS {
            assert!(pair.same_if_done_with(sql, &parameters), "{sql}");
            pair.same_if_done(question);
        }
    }
}
