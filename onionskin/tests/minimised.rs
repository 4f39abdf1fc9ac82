//! What the generators of statements and sessions found, made small: each story once differed from
//! a plain server. Now it is the same, or refused.

mod support;

use support::*;

on_both_servers!(
    failures_keep_or_use_up_what_was_said_of_the_next_transaction,
    a_savepoint_outside_of_a_transaction_is_none,
    averages_have_the_digits_of_their_preparation,
    sums_beyond_the_greatest_double,
    a_text_beside_null_is_read_to_its_end,
    queries_without_rows_miss_defaults_all_the_same,
    warnings_before_the_row_that_fails,
    warnings_stay_over_statements_without_values,
    errors_of_the_engine_are_told_by_the_proxy,
    each_column_without_a_default_is_an_error,
    texts_behind_using_that_are_no_times,
    own_rows_are_not_inserted_under_locks,
    ill_formed_definitions_are_not_taken_for_others,
    a_constant_that_fails_may_leave_the_next_transaction,
    aggregates_of_no_rows_may_leave_found_rows,
);

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, k INT {eq, range}, r DOUBLE {}, g INT, d DOUBLE, \
                     word CHAR(1) COLLATE utf8mb4_unicode_ci, u INT UNIQUE, y YEAR NOT NULL)";
const ROWS: &str = "INSERT INTO t VALUES (1, 5, NULL, 1, 1.7976931348623157e308, 'a', 1, 2001), \
                    (2, 6, 0.5, 1, 1.7976931348623157e308, 'b', 2, 2002), (3, 7, 1.5, 2, -1, 'c', 3, 2003)";

fn filled(kind: Kind, with_engine: bool) -> Option<Pair> {
    Pair::of(kind, with_engine, &[TABLE, ROWS])
}

/// `SET TRANSACTION` is of the next statement that begins a transaction. Which failures do is the
/// server's way: MySQL resolves names before, MariaDB after, and a definition commits first.
fn failures_keep_or_use_up_what_was_said_of_the_next_transaction(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same("SET @c = 'a' COLLATE utf8mb4_general_ci");
    for between in [
        "SELECT nothing FROM t",
        "SELECT id FROM t, t AS x",
        "SELECT id FROM t, t",
        "SELECT nothing(id) FROM t",
        "SELECT id FROM t UNION SELECT 1, 2",
        "SELECT id FROM t WHERE word = @c",
        "SELECT id FROM nowhere",
        "SELECT id FROM t WHERE COUNT(*) > 1",
        "CALL nothing()",
        "DO nothing()",
        "CREATE TABLE t (a INT)",
        "ALTER TABLE nowhere ADD a INT",
        "ALTER TABLE t DROP COLUMN nothing",
        "DROP TABLE nowhere",
        "CREATE TABLE x (a INT b)",
        "CREATE TABLE nowhere.x (a INT)",
        "SELECT * FROM nowhere.x",
        "SHOW CREATE TABLE nowhere",
        "SET NAMES nothing",
    ] {
        for sql in [
            "SET TRANSACTION READ ONLY",
            between,
            // the proxy looks for it
            "SHOW CREATE TABLE elsewhere",
            "DELETE FROM t WHERE id = 77",
            "ROLLBACK",
        ] {
            if !pair.same_or_refused(sql) {
                pair.protected.must("ROLLBACK");
                pair.plain.must("ROLLBACK");
                break;
            }
        }
    }
    pair.same("LOCK TABLES t READ");
    for sql in [
        "SET TRANSACTION READ ONLY",
        "SELECT * FROM nowhere",
        "DROP TEMPORARY TABLE nowhere",
        "UNLOCK TABLES",
    ] {
        pair.same(sql);
    }
}

/// What the proxy looks up then begins no transaction in which the client could do less.
fn a_savepoint_outside_of_a_transaction_is_none(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    for sql in [
        "SAVEPOINT a",
        "SET autocommit = 0",
        "SELECT nothing FROM elsewhere",
        "SET TRANSACTION READ ONLY",
        "ROLLBACK",
        "SET autocommit = 1",
        "BEGIN",
        "SAVEPOINT a",
        "UPDATE t SET k = 9 WHERE id = 1",
        "SELECT nothing FROM elsewhere",
        "ROLLBACK TO a",
        "COMMIT",
        "SELECT k FROM t WHERE id = 1",
    ] {
        pair.same(sql);
    }
}

/// MySQL gives an average its digits when the statement is prepared, MariaDB when it is executed.
fn averages_have_the_digits_of_their_preparation(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = filled(kind, with_engine) else {
            return;
        };
        let query = "SELECT g, AVG(k), COUNT(*) FROM t GROUP BY g ORDER BY g";
        for increment in ["DEFAULT", "0", "2", "9"] {
            pair.same(&format!("SET div_precision_increment = {increment}"));
            // prepared once
            let said = pair.execute(query);
            assert!(
                said.is_refused() || said.plain == said.protected,
                "{increment}: {said:?}"
            );
            if increment == "DEFAULT" {
                assert!(!said.is_refused(), "{said:?}");
                pair.same(&format!("PREPARE s FROM '{query}'"));
            }
            pair.same_or_refused("EXECUTE s");
        }
    }
}

/// A window function's value is the greatest DOUBLE there, the aggregate's 0.
fn sums_beyond_the_greatest_double(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    for sql in [
        "SELECT g, SUM(d), AVG(k) FROM t GROUP BY g ORDER BY g",
        "SELECT g, AVG(d), AVG(k) FROM t GROUP BY g ORDER BY g",
        "SELECT SUM(d), AVG(k) FROM t",
    ] {
        pair.same_or_refused(sql);
        let execution = pair.execute(sql);
        assert!(
            execution.is_refused() || execution.plain == execution.protected,
            "{execution:?}"
        );
    }
    pair.same("SELECT g, SUM(d), AVG(k) FROM t WHERE id > 2 GROUP BY g ORDER BY g");
}

fn a_text_beside_null_is_read_to_its_end(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    for operand in ["'12abc'", "'12'", "x'31'", "1", "1.5", "TRUE", "NULL"] {
        pair.same_or_refused(&format!("UPDATE t SET r = r - {operand} WHERE id = 1"));
    }
    pair.same("UPDATE t SET r = r + 1 WHERE id = 1");
    pair.same("SELECT r FROM t ORDER BY id");
}

fn queries_without_rows_miss_defaults_all_the_same(kind: Kind) {
    let Some(mut pair) = filled(kind, true) else {
        return;
    };
    for mode in ["DEFAULT", "''"] {
        pair.same(&format!("SET sql_mode = {mode}"));
        for sql in [
            "INSERT INTO t (id) SELECT id FROM t WHERE id < 0",
            "INSERT IGNORE INTO t (id) SELECT id FROM t WHERE k < 0",
            "REPLACE INTO t (id, y) SELECT k, 2000 FROM t WHERE k < 0",
        ] {
            if pair.same_or_refused(sql) {
                pair.same("SHOW WARNINGS");
            }
        }
    }
    for sql in [
        "START TRANSACTION READ ONLY",
        "INSERT INTO t (id, y) SELECT id, 2000 FROM t WHERE k < 0",
        "ROLLBACK",
    ] {
        pair.same(sql);
    }
}

/// How many rows an UPDATE had changed when it failed is not known, nor how often its values were
/// warned of.
fn warnings_before_the_row_that_fails(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same("SET sql_mode = ''");
    for sql in [
        "UPDATE t SET k = 99999999999, u = 8 ORDER BY id",
        "UPDATE t SET k = 99999999999, u = 8 WHERE id = 1",
    ] {
        for question in ["SHOW WARNINGS", "SELECT @@warning_count, @@error_count"] {
            pair.same_or_refused(sql);
            let said = pair.say(question);
            assert!(
                said.is_refused() || said.plain == said.protected,
                "{sql}; {question}: {said:?}"
            );
        }
    }
}

/// What the engine has warned of is kept by the proxy, and by MariaDB over statements without
/// tables.
fn warnings_stay_over_statements_without_values(kind: Kind) {
    let Some(mut pair) = filled(kind, true) else {
        return;
    };
    for between in [
        "SET @@sql_warnings = 1",
        "SET @@session.sql_notes = 1",
        "SET @a = 1",
        "SELECT 1",
    ] {
        for question in ["SHOW WARNINGS", "SELECT @@warning_count"] {
            pair.same("SELECT id FROM t WHERE k = '' ORDER BY id");
            pair.same(between);
            pair.same(question);
        }
    }
}

/// The server never heard of them, whatever its settings are.
fn errors_of_the_engine_are_told_by_the_proxy(kind: Kind) {
    let Some(mut pair) = filled(kind, true) else {
        return;
    };
    for setting in [
        "SET sql_mode = 'NO_ZERO_DATE'",
        "SET sql_mode = 'REAL_AS_FLOAT'",
        "SET max_error_count = 0",
    ] {
        pair.same(setting);
        for question in ["SHOW WARNINGS", "SHOW ERRORS"] {
            for sql in [
                "SELECT id FROM t WHERE k + nothing = 1",
                "SELECT id FROM t WHERE nothing(k) = 1",
            ] {
                let failed = pair.say(sql);
                let said = pair.say(question);
                let has_same_error = failed.plain == failed.protected;
                assert!(
                    said.is_refused() || !has_same_error || said.plain == said.protected,
                    "{setting}; {sql}; {question}: {said:?}"
                );
            }
        }
    }
}

/// MariaDB names every column that a query gives nothing.
fn each_column_without_a_default_is_an_error(kind: Kind) {
    let Some(mut pair) = filled(kind, true) else {
        return;
    };
    pair.same(
        "CREATE TABLE required (id INT PRIMARY KEY, a TIME NOT NULL {range}, b TEXT NOT NULL, c INT NOT NULL {})",
    );
    for sql in [
        "INSERT INTO required (id) SELECT id FROM t WHERE id < 0",
        "INSERT INTO required (id, b) SELECT id, 'x' FROM t WHERE id < 0",
        "INSERT INTO required (id) SELECT id FROM required",
        "INSERT IGNORE INTO required (id) SELECT id FROM t WHERE id < 0",
    ] {
        pair.same(sql);
        pair.same("SHOW WARNINGS");
        pair.same("SHOW ERRORS");
        pair.same(sql);
        pair.same("SELECT @@warning_count, @@error_count");
    }
}

/// To MySQL, a text that is no time is NULL as a parameter beside one, and a text as a literal.
fn texts_behind_using_that_are_no_times(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = filled(kind, with_engine) else {
            return;
        };
        pair.same("CREATE TABLE times (id INT PRIMARY KEY, a TIME(1) {eq}, b TIME, k INT {eq})");
        pair.same("INSERT INTO times VALUES (1, '838:59:59', '12:00:00', 1)");
        for text in ["''", "'abc'", "'12'", "'12:00:00'", "NULL"] {
            pair.same(&format!("SET @text = {text}"));
            for condition in ["a <> ?", "a = ?", "a <> ? AND k = 1", "k = 1 AND NOT a = ?"] {
                let sql = format!("SELECT id FROM times WHERE {condition}");
                pair.same(&format!("PREPARE p FROM '{sql}'"));
                pair.same_or_refused("EXECUTE p USING @text");
            }
        }
    }
}

/// Servers want a second lock for a table that is read and written to.
fn own_rows_are_not_inserted_under_locks(kind: Kind) {
    let Some(mut pair) = filled(kind, true) else {
        return;
    };
    for autocommit in [1, 0] {
        pair.same(&format!("SET autocommit = {autocommit}"));
        for lock in ["READ", "WRITE"] {
            pair.same(&format!("LOCK TABLES t {lock}"));
            pair.same_or_refused("INSERT INTO t (id, y) SELECT id + 10, y FROM t WHERE id < 0");
            pair.same_or_refused("INSERT INTO t (id, y) SELECT id + 10, y FROM t WHERE k = 5");
            pair.same("UNLOCK TABLES");
            pair.same("SELECT * FROM t ORDER BY id");
            pair.same("ROLLBACK");
        }
    }
}

/// What the proxy reads of a definition is all that stands there.
fn ill_formed_definitions_are_not_taken_for_others(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    for sql in [
        "ALTER TABLE t ADD COLUMN x INT {eq} AFTER 5",
        "ALTER TABLE t ADD COLUMN x INT {eq} AFTER k",
        "ALTER TABLE t ADD COLUMN x INT AFTER 5",
        "CREATE TABLE keyed (a INT {eq} UNIQUE PRIMARY KEY)",
        "CREATE TABLE keyed (a INT {eq} DEFAULT NULL PRIMARY KEY)",
        "CREATE TABLE keyed (a INT {eq} DEFAULT NULL, PRIMARY KEY (a))",
        "CREATE TABLE keyed (a INT {eq} DEFAULT NULL KEY)",
        "CREATE TABLE keyed (a INT {eq} NULL KEY)",
        "CREATE TABLE keyed (a INT {eq} NULL, PRIMARY KEY (a))",
        "CREATE TABLE keyed (a INT {eq} NULL NOT NULL, PRIMARY KEY (a))",
        "CREATE TABLE keyed (a INT {eq} NOT NULL NULL)",
        "CREATE TABLE keyed (a INT {eq} NULL NOT NULL)",
        "CREATE TABLE keyed (a INT {eq} KEY)",
        "DESC t *",
        "DESC t k",
        "SHOW FULL INDEX FROM t",
        "SHOW FULL KEYS FROM t",
        "SHOW INDEX FROM t",
    ] {
        let said = pair.say(sql);
        // a refusal and the server's error do the same
        if said.plain.starts_with('[') && !said.is_refused() {
            assert!(said.protected.starts_with('['), "{sql}: {said:?}");
        } else {
            assert!(!said.protected.starts_with('['), "{sql}: {said:?}");
        }
        pair.same("DESCRIBE t");
        if !said.is_refused() {
            pair.same("DESCRIBE keyed");
        }
        pair.say("DROP TABLE keyed");
    }
}

/// Where MariaDB sees at once that no row can be found, an aggregate leaves FOUND_ROWS() as it was.
fn aggregates_of_no_rows_may_leave_found_rows(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same("CREATE TABLE plain (id INT PRIMARY KEY, c VARCHAR(4))");
    for sql in [
        "SELECT MAX(c) FROM plain WHERE id = 26",
        "SELECT MAX(c) FROM plain WHERE id <=> 26",
        "SELECT COUNT(c) FROM plain WHERE 1 = 0",
        "SELECT MAX(id) FROM plain",
        "SELECT COUNT(*) FROM plain",
        "SELECT MAX(k) FROM t WHERE k = 5",
        "SELECT COUNT(*) FROM t WHERE k = 77",
        "SELECT COUNT(*) FROM t WHERE id = 77",
    ] {
        for waits in [false, true] {
            pair.same("SELECT 1 UNION SELECT 2 UNION SELECT 3");
            if waits {
                // the proxy looks at the tables again
                std::thread::sleep(std::time::Duration::from_millis(1100));
            }
            pair.same(sql);
            pair.same_or_refused("SELECT FOUND_ROWS()");
        }
    }
    // what is certain is not refused
    pair.same("SELECT 1 UNION SELECT 2 UNION SELECT 3");
    pair.same("SELECT COUNT(*) FROM plain");
    pair.same("SELECT FOUND_ROWS()");
}

/// MariaDB computes constants before it begins a transaction, and rows after.
fn a_constant_that_fails_may_leave_the_next_transaction(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same("CREATE TABLE plain (id INT PRIMARY KEY, n INT)");
    pair.same("INSERT INTO plain VALUES (1, 1)");
    for fails in [
        "SELECT * FROM plain WHERE id = (SELECT 1 UNION SELECT 2)",
        "SELECT (SELECT id FROM t WHERE id > plain.n - 5) FROM plain",
    ] {
        for waits in [false, true] {
            pair.same("SET TRANSACTION READ ONLY");
            pair.same(fails);
            if waits {
                // the proxy looks at the tables again
                std::thread::sleep(std::time::Duration::from_millis(1100));
            }
            if pair.same_or_refused("UPDATE plain SET n = 2 WHERE id = 1") {
                pair.same("SELECT n FROM plain");
            }
            pair.say("UPDATE plain SET n = 1");
        }
    }
}
