//! What the generators of statements and sessions found, made small: each story once differed from
//! a plain server. Now it is the same, or refused.

use ::mysql::Value;
use onionskin_testkit::*;

on_both_servers!(
    a_connection_in_utf8mb3_has_no_four_bytes,
    a_key_over_columns_that_are_not_named_shows_no_token,
    unique_keys_are_looked_at_as_they_are_defined,
    whole_numbers_of_both_signs_beside_other_constants,
    what_a_star_stands_for_is_not_compared_with_tokens,
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
    parameters_are_read_by_their_company,
    bare_names_beside_a_named_new_row,
    rows_that_leave_their_key_are_not_met_by_it,
    numbers_that_a_failed_insert_has_given,
    lists_of_warnings_over_settings,
    warnings_of_values_beside_an_error,
    rows_to_be_changed_are_found_by_values_of_their_type,
    parameters_beyond_a_character_set_end_a_statement_early,
    rows_that_a_check_keeps_out_are_no_records,
    conditions_are_shown_as_the_server_writes_them,
    deprecated_calls_stand_beside_an_error,
    a_named_new_row_has_the_columns_of_the_list,
    a_definition_ends_savepoints,
    statements_by_name_under_locks,
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

/// To MySQL, what a parameter beside a date or a number means depends on the types of all
/// parameters.
fn parameters_are_read_by_their_company(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same(
        "CREATE TABLE plain (id INT PRIMARY KEY, d DATE, ts TIMESTAMP NULL, ti TIME, n INT, \
         p MEDIUMINT UNSIGNED {eq}, w VARCHAR(8) {eq})",
    );
    pair.same(
        "INSERT INTO plain VALUES (1, '9999-12-31', '2024-12-25 00:00:00', '10:00:00', 12, 26, 'a'), \
         (2, NULL, '2020-01-01 00:00:00', NULL, NULL, NULL, NULL)",
    );
    let text = |text: &str| Value::from(text);
    let mut done = 0;
    for (condition, value) in [
        ("d < ?", text("0x10")),
        ("d < ?", text("2024-12-25")),
        ("ts <= ?", Value::from(20_201_301)),
        ("ts <= ?", Value::from(20_201_231)),
        ("? <= ti", Value::from(20_241_225)),
        ("ti > ?", text("09:00:00")),
        ("ts BETWEEN ? AND '2030-01-01 00:00:00'", text("abc")),
        ("n IN (?, 12)", text("12abc")),
        ("n IN (?, 12)", text("12")),
        ("n = ?", Value::from(12)),
    ] {
        for (other, with) in [
            ("p != ?", Value::from(7)),
            ("p <=> ?", Value::from(26)),
            ("w = ?", text("a")),
            ("p <=> ?", Value::NULL),
        ] {
            for negated in ["", "NOT "] {
                let sql = format!("SELECT id FROM plain WHERE {negated}({condition} XOR {other})");
                let parameters = [value.clone(), with.clone()];
                done += usize::from(pair.same_if_done_with(&sql, &parameters));
            }
        }
    }
    let all = 10 * 4 * 2;
    let refused = if kind == Kind::MySql { 5 * 2 * 2 } else { 0 };
    assert_eq!(done, all - refused);
}

/// Which column a bare name means is settled before any value is looked at.
fn bare_names_beside_a_named_new_row(kind: Kind) {
    if kind == Kind::MariaDb {
        // it has no alias for the new row
        return;
    }
    for with_engine in [false, true] {
        let Some(mut pair) = filled(kind, with_engine) else {
            return;
        };
        pair.same("CREATE TABLE b (id INT PRIMARY KEY, word VARCHAR(4) {eq}, n INT, m INT)");
        pair.same("INSERT INTO b VALUES (1, 'a', 1, 1)");
        for (row, value) in [
            ("(id, word, n) VALUES (1, 'xxxxx', 5)", "n + 1"),
            ("(id, word, n) VALUES (1, 'x', 5)", "ABS(n)"),
            ("VALUES (1, 'xxxxx', 5, 6)", "new.n + id"),
            ("(id, word, n) VALUES (1, 'xxxxx', 5)", "new.n + 1"),
            ("(id, word, n) VALUES (1, 'x', 5)", "new.n + 1"),
            ("(id, word, n) VALUES (1, 'x', 5)", "new.n + b.n"),
            ("(id, word, n) VALUES (1, 'x', 5)", "m + 1"),
            ("(id, word, n) VALUES (1, 'x', 5)", "VALUES(n)"),
        ] {
            pair.same(&format!(
                "INSERT INTO b {row} AS new ON DUPLICATE KEY UPDATE n = {value}"
            ));
            pair.same("SELECT * FROM b");
        }
        pair.same_or_refused(
            "INSERT INTO b (id, word, n) VALUES (1, 'x', 5) AS new ON DUPLICATE KEY UPDATE n = new.n + m",
        );
    }
}

/// A row that was met may have left the key by which a later row would have met it.
fn rows_that_leave_their_key_are_not_met_by_it(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same(
        "CREATE TABLE keyed (id INT AUTO_INCREMENT PRIMARY KEY, d INT UNIQUE, \
         word VARCHAR(8) COLLATE utf8mb4_bin NOT NULL {range}, n INT NOT NULL UNIQUE)",
    );
    for (rows, assigned) in [
        (
            "(1, 'b', 10), (1, 'c', 77), (1, 'b', 10)",
            "word = VALUES(word), d = NULL",
        ),
        (
            "(1, 'b', 10), (2, 'c', 10), (2, 'b', 77)",
            "word = VALUES(word), d = VALUES(d)",
        ),
        (
            "(1, 'b', 10), (2, 'b', 10), (1, 'b', 78)",
            "word = VALUES(word), d = VALUES(d)",
        ),
        (
            "(1, 'b', 77), (3, 'b', 77), (3, 'b', 79)",
            "word = VALUES(word), n = 80",
        ),
        (
            "(1, 'a', 10), (1, 'a', 10), (5, 'b', 10)",
            "word = VALUES(word)",
        ),
    ] {
        pair.same("DELETE FROM keyed");
        pair.same("INSERT INTO keyed (d, word, n) VALUES (1, 'a', 10)");
        pair.same(&format!(
            "INSERT INTO keyed (d, word, n) VALUES {rows} ON DUPLICATE KEY UPDATE {assigned}"
        ));
        pair.same("SELECT d, word, n FROM keyed ORDER BY n");
    }
}

/// MySQL learns of such numbers when it opens a table once more, as it does for a query that names
/// the table twice.
fn numbers_that_a_failed_insert_has_given(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same(
        "CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, n INT NOT NULL UNIQUE, \
         d DECIMAL(5,3) NOT NULL {eq, range}, UNIQUE KEY (d))",
    );
    for (last, d) in [(40, "1.5"), (50, "2.5")] {
        let sql = format!("INSERT INTO counted VALUES (8, 9, {d}), ({last}, {last}, {d})");
        let said = pair.say(&sql);
        // the text of a duplicate is another one
        assert!(said.plain.starts_with("1062") && said.protected.starts_with("1062"));
        pair.same(&format!("REPLACE INTO counted (n, d) VALUES ({last}, {d})"));
        pair.same("SELECT * FROM counted");
        pair.same(&format!(
            "INSERT INTO counted (n, d) VALUES (7, {d}) ON DUPLICATE KEY UPDATE d = VALUES(d)"
        ));
        pair.same("SELECT * FROM counted");
    }
}

/// What the proxy asks for itself does not end a list that the client may still ask for.
fn lists_of_warnings_over_settings(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    if kind == Kind::MariaDb {
        for question in ["SHOW COUNT(*) WARNINGS", "SHOW WARNINGS"] {
            pair.say("DELETE FROM nowhere");
            pair.same("SET sql_mode = 'STRICT_TRANS_TABLES,MSSQL'");
            pair.same("SET sql_mode = 'NO_DIR_IN_CREATE'");
            pair.same_or_refused(question);
        }
    }
    pair.same("SET max_error_count = 0");
    for question in [
        "SELECT @@warning_count",
        "SHOW COUNT(*) WARNINGS",
        "SHOW WARNINGS",
    ] {
        pair.say("SELECT 1 FROM nowhere");
        pair.same_or_refused(question);
    }
}

/// MySQL warns of VALUES() once more where it prepares a statement again, which depends on the
/// types of its parameters.
fn warnings_of_values_beside_an_error(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same(
        "CREATE TABLE narrow (id BIGINT PRIMARY KEY, k SMALLINT UNSIGNED {eq}, \
         c VARCHAR(1) COLLATE latin1_swedish_ci NOT NULL)",
    );
    let sql = "INSERT INTO narrow (id, k, c) VALUES (?, ?, ?) \
               ON DUPLICATE KEY UPDATE k = VALUES(k), c = VALUES(c)";
    for question in ["SHOW WARNINGS", "SELECT @@warning_count", "SHOW ERRORS"] {
        for k in [Value::NULL, Value::from(7)] {
            pair.same_if_done_with(sql, &[Value::from(27), k, Value::from("ł")]);
            pair.same_or_refused(question);
        }
    }
}

/// A change whose rows the proxy reads first is another statement with fewer parameters.
fn rows_to_be_changed_are_found_by_values_of_their_type(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same("CREATE TABLE changed (id INT PRIMARY KEY, n SMALLINT, w CHAR(1), d DATE {})");
    pair.same("INSERT INTO changed VALUES (1, 1, 'a', NULL), (12, 2, 'b', '2000-01-01')");
    let mut done = 0;
    for id in ["", "abc", "12abc", "12"] {
        let parameters = ["2", "日", "9999-12-31", id].map(Value::from);
        let sql = "UPDATE changed SET n = ?, w = ?, d = ? WHERE id = ?";
        done += usize::from(pair.same_if_done_with(sql, &parameters));
        pair.same("SELECT * FROM changed ORDER BY id");
    }
    assert!(done > 0);
}

/// MySQL: the parameter is looked at before any value is stored, so nothing is said of values.
fn parameters_beyond_a_character_set_end_a_statement_early(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same(
        "CREATE TABLE narrow (c CHAR(0) COLLATE utf8mb4_unicode_ci {}, id INT PRIMARY KEY, \
         w VARCHAR(4) COLLATE latin1_swedish_ci)",
    );
    let parameters = ["ǆ", "60", "\u{200b}a"].map(Value::from);
    let sql = "INSERT IGNORE INTO narrow (c, id, w) VALUES (?, ?, ?)";
    assert!(pair.same_if_done_with(sql, &parameters));
    // MariaDB stores both, and its warnings stand in another order
    if kind == Kind::MySql {
        pair.same("SHOW WARNINGS");
    }
}

/// An UPDATE of a plain column can meet a key that a protected one is in.
fn a_key_over_columns_that_are_not_named_shows_no_token(kind: Kind) {
    let Some(mut pair) = Pair::of(
        kind,
        false,
        &[
            "CREATE TABLE k (id INT PRIMARY KEY, p INT, v VARCHAR(20) {eq}, UNIQUE both_of (p, v))",
            "INSERT INTO k VALUES (1, 1, 'same'), (2, 2, 'same')",
        ],
    ) else {
        return;
    };
    let sql = "UPDATE k SET p = 3 ORDER BY id";
    let text = pair.protected.run(sql).map(|_| ());
    let prepared = pair
        .protected
        .execute("UPDATE k SET p = ? ORDER BY id", (3,));
    for failed in [text, prepared.map(|_| ())] {
        let failed = failed.expect_err("a duplicate");
        assert!(failed.message.contains("(protected)"), "{failed}");
        assert!(!failed.message.contains("\\x"), "{failed}");
    }
    let listed = pair.protected.must("SHOW WARNINGS").text();
    assert!(listed.contains("(protected)"), "{listed}");
}

/// Old drivers call it `utf8`. What it lacks is an error, or becomes question marks.
fn a_connection_in_utf8mb3_has_no_four_bytes(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = Pair::of(
            kind,
            with_engine,
            &[
                "CREATE TABLE m (id INT PRIMARY KEY, a VARCHAR(20) COLLATE utf8mb4_bin {eq, like, range})",
                "INSERT INTO m VALUES (1, 'äß'), (2, 'p😀q'), (3, 'p????q')",
            ],
        ) else {
            return;
        };
        pair.same("SET NAMES utf8mb3");
        for mode in ["STRICT_ALL_TABLES", ""] {
            pair.same(&format!("SET sql_mode = '{mode}'"));
            for sql in [
                "INSERT INTO m VALUES (10, 'p😀q')",
                "INSERT IGNORE INTO m VALUES (11, 'p😀q')",
                "UPDATE m SET a = '😀' WHERE id = 1",
                "SELECT id FROM m WHERE a = 'p😀q'",
                "SELECT id FROM m WHERE a IN ('x', 'p😀q')",
                "SELECT id FROM m WHERE a LIKE '%😀%'",
                "SELECT id FROM m WHERE a > 'p😀'",
                "DELETE FROM m WHERE a = 'p😀q'",
                "INSERT INTO m VALUES (12, 'äöé') ON DUPLICATE KEY UPDATE a = '😀'",
                "SELECT id FROM m WHERE a = 'äß' ORDER BY id",
            ] {
                pair.same_if_done(sql);
            }
            for (sql, text) in [
                ("INSERT INTO m VALUES (20, ?)", "p😀q"),
                ("SELECT id FROM m WHERE a = ?", "p😀q"),
                ("SELECT id FROM m WHERE a = ?", "äß"),
                ("UPDATE m SET a = ? WHERE id = 2", "😀"),
            ] {
                pair.same_if_done_with(sql, &[Value::from(text)]);
            }
            pair.same("DELETE FROM m WHERE id >= 10");
        }
        pair.same("SET NAMES utf8mb4");
        pair.same("SELECT * FROM m ORDER BY id");
    }
}

/// A row meets the first key that it collides with, and a key without a name gets that of its
/// column, with a number behind it if an earlier key has the name.
fn unique_keys_are_looked_at_as_they_are_defined(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    for (at, elements) in [
        "id INT PRIMARY KEY, b INT UNIQUE {eq}, c INT {eq}, UNIQUE KEY z (c)",
        "id INT PRIMARY KEY, UNIQUE KEY z (c), b INT {eq} UNIQUE, c INT {eq}",
        "id INT PRIMARY KEY, b INT UNIQUE {eq}, c INT UNIQUE",
        "id INT PRIMARY KEY, c INT UNIQUE, b INT UNIQUE {eq}",
        "id INT {eq} PRIMARY KEY, b INT UNIQUE {eq}, c INT {eq}, UNIQUE (b, c)",
        "id INT PRIMARY KEY, b INT UNIQUE {eq}, KEY b_2 (b), c INT {eq}, UNIQUE (b)",
        "id INT PRIMARY KEY, UNIQUE (b, c), b INT UNIQUE {eq}, c INT {eq} UNIQUE",
        "id INT PRIMARY KEY, b INT NOT NULL UNIQUE {eq}, KEY (b), c INT {eq}, UNIQUE (c, b)",
        "id INT PRIMARY KEY, b INT UNIQUE {eq}, c INT {eq}, KEY b (c)",
    ]
    .into_iter()
    .enumerate()
    {
        let table = format!("CREATE TABLE k{at} ({elements})");
        let (definition, bare) = with_and_without_protection(&table);
        let plain = pair.plain.run(&bare).map_err(|e| e.code);
        let done = pair.protected.run(&definition).map_err(|e| e.code);
        assert_eq!(plain.as_ref().err(), done.as_ref().err(), "{elements}");
        if plain.is_err() {
            continue;
        }
        let names = |session: &mut Session| -> Vec<String> {
            let shown = session
                .text(&format!("SHOW CREATE TABLE k{at}"))
                .expect("shown");
            let keys = shown.lines().map(str::trim);
            let keys = keys.filter(|line| line.contains("KEY `"));
            keys.map(|key| key.trim_end_matches(',').to_owned())
                .collect()
        };
        let [plain, done] = pair.sessions().map(names);
        assert_eq!(plain, done, "{elements}");
        pair.run(&format!("INSERT INTO k{at} VALUES (1,1,1), (2,2,2)"));
        for rows in ["(3,1,2)", "(4,2,1)", "(1,2,7)", "(5,9,1)"] {
            let sql =
                format!("INSERT INTO k{at} VALUES {rows} ON DUPLICATE KEY UPDATE id = id + 100");
            pair.same_if_done(&sql);
            pair.same(&format!("SELECT * FROM k{at} ORDER BY id"));
        }
    }
}

/// MySQL compares the whole numbers of a list bit by bit as soon as something else is in it.
fn whole_numbers_of_both_signs_beside_other_constants(kind: Kind) {
    for with_engine in [false, true] {
        let table = "CREATE TABLE t (id INT PRIMARY KEY, u BIGINT UNSIGNED {eq}, i INT {eq}, s BIGINT {eq, range})";
        let Some(mut pair) = Pair::of(kind, with_engine, &[table]) else {
            return;
        };
        pair.run("INSERT INTO t VALUES (1,18446744073709551615,1,1),(2,5,-1,-1),(3,1,NULL,9223372036854775807)");
        let mut done = 0;
        for column in ["u", "i", "s"] {
            for list in [
                "'1', -1",
                "'1.0', -1",
                "1e0, -1",
                "1.5, -1",
                "1, -1",
                "-1, NULL",
                "'x', -1",
                "'1', 18446744073709551615",
                "1, 18446744073709551615",
                "1.0, 18446744073709551615, 5",
                "'1', 5",
                "1.5, 5",
                "TRUE, -1",
                "'1', '-1'",
            ] {
                for not in ["", "NOT "] {
                    let sql =
                        format!("SELECT id FROM t WHERE {column} {not}IN ({list}) ORDER BY id");
                    done += u32::from(pair.same_if_done(&sql));
                }
            }
        }
        assert!(done > 50, "{done}");
    }
}

/// `*` in a subquery stands for plain values, and beside it stood the tokens of a column. An engine
/// compares them; without one nothing is sent.
fn what_a_star_stands_for_is_not_compared_with_tokens(kind: Kind) {
    const SECRET: &str = "quuxalot3Kp";
    for with_engine in [false, true] {
        let tables = [
            "CREATE TABLE g (id INT PRIMARY KEY, a INT {eq}, s VARCHAR(20) {eq, range}, p INT, r VARCHAR(20))",
            "CREATE TABLE g2 (zz VARCHAR(20))",
            "INSERT INTO g VALUES (1, 5, 'x', 9, 'q'), (2, 6, 'y', 9, 'q'), (10, 5, 'x', 5, 'x')",
            "INSERT INTO g2 VALUES ('x')",
        ];
        let Some(mut pair) = Pair::of(kind, with_engine, &tables) else {
            return;
        };
        pair.plain
            .must(&format!("UPDATE g SET s = '{SECRET}' WHERE id = 2"));
        pair.protected
            .must(&format!("UPDATE g SET s = '{SECRET}' WHERE id = 2"));
        let inner = [
            format!("SELECT * FROM (SELECT '{SECRET}' AS v) q"),
            format!("SELECT q.* FROM (SELECT '{SECRET}' AS v) q"),
            format!("SELECT DISTINCT * FROM (SELECT '{SECRET}' AS v UNION SELECT 'x') q WHERE 1"),
            "SELECT * FROM g2".to_owned(),
            "SELECT * FROM (SELECT s FROM g WHERE id = 1) q".to_owned(),
            "SELECT * FROM (SELECT r FROM g WHERE id = 10) q".to_owned(),
        ];
        for inner in &inner {
            for outer in [
                "SELECT id FROM g WHERE s IN ({}) ORDER BY id",
                "SELECT id FROM g WHERE s NOT IN ({}) ORDER BY id",
                "SELECT id FROM g WHERE ({} LIMIT 1) = s ORDER BY id",
                "SELECT id FROM g WHERE s <=> ({} LIMIT 1) ORDER BY id",
                "SELECT id FROM g WHERE s <> ({} LIMIT 1) ORDER BY id",
                "SELECT SUM(s IN ({})) FROM g",
                "SELECT id, IF(s IN ({}), 1, 2) FROM g ORDER BY s IN ({}), id",
                "UPDATE g SET p = 1 WHERE s IN ({})",
                "DELETE FROM g WHERE s NOT IN ({})",
            ] {
                pair.run("START TRANSACTION");
                pair.same_if_done(&outer.replace("{}", inner));
                pair.run("ROLLBACK");
            }
        }
        pair.same_if_done(
            "SELECT id FROM g WHERE a IN (SELECT * FROM (SELECT p FROM g) q) ORDER BY id",
        );
        pair.same_rows("SELECT * FROM g ORDER BY id", &[]);
        let view = format!(
            "CREATE VIEW v AS SELECT id FROM g WHERE s IN (SELECT * FROM (SELECT '{SECRET}') q)"
        );
        let failure = pair
            .protected
            .run(&view)
            .expect_err("a view of a constant beside tokens");
        assert!(failure.message.contains("OS1"), "{failure}");
        pair.nothing_leaked();
        pair.assert_no_trace_of(&[SECRET]);
    }
}

/// IGNORE leaves a row out for a CHECK, and counts it nowhere.
fn rows_that_a_check_keeps_out_are_no_records(kind: Kind) {
    const CHECKED: &str =
        "CREATE TABLE c (id INT PRIMARY KEY, c INT NOT NULL {range}, CHECK (c <> 7 AND c <> 3))";
    for with_engine in [false, true] {
        let Some(mut pair) = Pair::of(kind, with_engine, &[CHECKED]) else {
            return;
        };
        let mut equal = 0;
        for sql in [
            "INSERT IGNORE INTO c (id, c) VALUES (14, DEFAULT), (52, 7)",
            "INSERT IGNORE INTO c (id, c) VALUES (15, 1), (53, 7), (54, 3), (55, 4), (15, 2)",
            "INSERT IGNORE INTO c (id, c) VALUES (53, 7), (54, 3)",
            "INSERT IGNORE INTO c (id, c) VALUES (60, ABS(-7)), (61, ABS(-8)), (61, 9)",
            "INSERT IGNORE INTO c (id, c) VALUES (60, ABS(-7))",
            "INSERT IGNORE INTO c (id, c) SELECT id + 100, c + 3 FROM c",
            "INSERT IGNORE INTO c (id, c) SELECT id + 200, c + 6 FROM c",
            "REPLACE INTO c (id, c) SELECT id, c + 1 FROM c WHERE c = 9",
        ] {
            if pair.same_if_done(sql) {
                pair.same("SHOW COUNT(*) WARNINGS");
                pair.same_rows("SELECT * FROM c ORDER BY id", &[]);
                equal += 1;
            }
        }
        let values = [Value::from(70), Value::from(71), Value::from(7)];
        let prepared = "INSERT IGNORE INTO c (id, c) VALUES (?, DEFAULT), (?, ?)";
        equal += u32::from(pair.same_if_done_with(prepared, &values));
        assert!(equal > if with_engine { 6 } else { 1 }, "{equal}");
    }
}

/// MySQL writes the conditions of a table that is changed anew, with quotes or without.
fn conditions_are_shown_as_the_server_writes_them(kind: Kind) {
    const CHECKED: &str = "CREATE TABLE c (id INT PRIMARY KEY, c INT {range}, at TIMESTAMP, CHECK (c <> 7 OR c IS NULL))";
    let Some(mut pair) = Pair::of(kind, false, &[CHECKED]) else {
        return;
    };
    for sql in [
        "SET sql_quote_show_create = 0",
        "ALTER TABLE c ADD KEY odd (at)",
        "ALTER TABLE c ADD d INT {eq}",
        "CREATE TABLE e (id INT PRIMARY KEY, c INT {range}, CHECK (c <> 7))",
    ] {
        pair.same_if_done(sql);
    }
    pair.same("SET sql_quote_show_create = 1");
    for table in ["c", "e"] {
        pair.same_or_refused(&format!("SHOW CREATE TABLE {table}"));
    }
    pair.same("ALTER TABLE c ADD f INT");
    pair.same("SHOW CREATE TABLE c");
}

/// MySQL warns of `VALUES()` in each text, whatever becomes of the statement.
fn deprecated_calls_stand_beside_an_error(kind: Kind) {
    const UPSERTED: &str =
        "CREATE TABLE c (id INT PRIMARY KEY, f FLOAT NOT NULL, a TIME, b TIME NOT NULL {range})";
    for with_engine in [false, true] {
        let Some(mut pair) = Pair::of(kind, with_engine, &[UPSERTED]) else {
            return;
        };
        let mut equal = 0;
        for sql in [
            "INSERT INTO c VALUES (8, 0.5, '23:59:59', '1e2'), (60, -1e0, '00:00:00', NULL) ON DUPLICATE KEY UPDATE b = VALUES(b), a = '10:11:12', f = VALUES(f)",
            "INSERT INTO c VALUES (8, 0.5, NULL, '10:00'), (60, 1, NULL, NULL) ON DUPLICATE KEY UPDATE b = VALUES(b)",
            "INSERT INTO c VALUES (8, 0.5, NULL, NULL) ON DUPLICATE KEY UPDATE b = VALUES(b), a = VALUES(a)",
            "INSERT INTO c VALUES (8, 0.5, NULL, 'x') ON DUPLICATE KEY UPDATE b = VALUES(b), a = VALUES(a)",
            "INSERT INTO c VALUES (8, 0.5, '10:11:12.123', '10:11:12.123'), (9, 1, NULL, NULL) ON DUPLICATE KEY UPDATE b = VALUES(b), a = '10:11:12.12'",
        ] {
            for question in [
                "SELECT @@warning_count, @@error_count",
                "SHOW COUNT(*) WARNINGS",
                "SHOW WARNINGS",
            ] {
                if pair.same_or_refused(sql) {
                    equal += u32::from(pair.same_or_refused(question));
                }
            }
        }
        println!("{equal} questions are answered");
    }
}

/// What the list of columns leaves out is no column of the new row. MySQL says so before it looks
/// at a value.
fn a_named_new_row_has_the_columns_of_the_list(kind: Kind) {
    if kind == Kind::MariaDb {
        // no name for the new row
        return;
    }
    const UPSERTED: &str =
        "CREATE TABLE c (id INT PRIMARY KEY, a VARCHAR(4), b INT {eq}, v VARBINARY(5) {})";
    let Some(mut pair) = Pair::of(kind, false, &[UPSERTED]) else {
        return;
    };
    for sql in [
        "INSERT INTO c (id, v) VALUES (1, 'too long') AS new ON DUPLICATE KEY UPDATE v = 'x', a = new.a",
        "INSERT INTO c (id, v) VALUES (1, 'short') AS new ON DUPLICATE KEY UPDATE a = new.a",
        "INSERT INTO c (id, v) VALUES (1, 'short') AS `new` ON DUPLICATE KEY UPDATE a = CONCAT(`new`.a, 'x')",
        "INSERT INTO c (id, v) VALUES (1, 'too long') AS new ON DUPLICATE KEY UPDATE b = new.b",
        "INSERT INTO c (id, a, v) VALUES (1, 'a', 'short') AS new ON DUPLICATE KEY UPDATE a = new.a, v = new.v",
        "INSERT INTO c VALUES (1, 'a', 5, 'short') AS new ON DUPLICATE KEY UPDATE a = new.a, b = new.b",
        "INSERT INTO c (id, A) VALUES (1, 'q') AS NEW ON DUPLICATE KEY UPDATE a = new.a",
        "INSERT INTO c SET id = 1, a = 'r' AS new ON DUPLICATE KEY UPDATE a = new.a",
        "INSERT INTO c SET id = 1, a = 'r' AS new ON DUPLICATE KEY UPDATE a = new.v",
    ] {
        pair.same_or_refused(sql);
        pair.same_rows("SELECT * FROM c ORDER BY id", &[]);
    }
}

/// Without autocommit, a savepoint is kept outside of a transaction. A definition ends it, and what
/// the proxy asks then must not leave a transaction of its own.
fn a_definition_ends_savepoints(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    for definition in [
        "CREATE PROCEDURE p() SELECT * FROM t",
        "CREATE TABLE plain (a INT)",
        "ALTER TABLE t ADD z INT",
        "DROP TABLE plain",
        "DROP PROCEDURE p",
        "CREATE VIEW v AS SELECT id FROM t",
    ] {
        for sql in [
            "SET autocommit = 0",
            "SAVEPOINT a",
            definition,
            "SHOW CREATE TABLE elsewhere",
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SELECT @@transaction_isolation",
            "SELECT k FROM t WHERE id = 1",
            "ROLLBACK TO a",
            "ROLLBACK",
            "SET autocommit = 1",
        ] {
            pair.same_if_done(sql);
        }
    }
}

/// A server opens the tables when a statement is prepared.
fn statements_by_name_under_locks(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = filled(kind, with_engine) else {
            return;
        };
        pair.same("CREATE TABLE other (id INT PRIMARY KEY)");
        pair.same("LOCK TABLES other WRITE");
        for text in [
            "UPDATE t SET k = ? WHERE id = ?",
            "UPDATE t SET k = k + ? WHERE id = ?",
            "DELETE FROM t WHERE r = ? AND id = ?",
            "INSERT INTO t (id, k, y) VALUES (?, ?, 2001)",
            "SELECT k FROM t WHERE id = ? AND g = ?",
            "SELECT id FROM t WHERE ABS(k) = ? OR r = ?",
        ] {
            pair.same_or_refused(&format!("PREPARE s FROM '{text}'"));
        }
        pair.same("UNLOCK TABLES");
        pair.same("LOCK TABLES t WRITE");
        pair.same("PREPARE s FROM 'UPDATE t SET k = ? WHERE id = ?'");
        pair.same("SET @a = 77, @b = 1");
        pair.same("EXECUTE s USING @a, @b");
        pair.same("UNLOCK TABLES");
        pair.same_rows("SELECT id, k FROM t ORDER BY id", &[]);
    }
}
