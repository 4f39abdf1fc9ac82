//! Words that a client reads: names of columns, texts of warnings and of errors, and
//! `FOUND_ROWS()`, which outlives the statements behind it. All of them are those of a plain
//! server, or the statement is refused. Values of duplicates are left out.

use onionskin_testkit::*;

on_both_servers!(
    columns_in_parentheses_keep_their_names,
    found_rows_outlive_statements_that_find_none,
    warnings_show_no_tokens,
    errors_quote_nothing_that_the_client_has_not_written,
    warnings_are_not_those_of_the_proxys_questions,
    warnings_outlive_a_look_at_the_tables,
    definitions_are_not_copied_from_shortened_texts,
    errors_of_the_servers_own_are_in_its_words,
    units_are_no_columns,
    refusals_say_what_they_are_about,
);

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, k INT {eq, range}, s VARCHAR(20) {eq, like}, free VARCHAR(20) {}, \
                     plain INT, UNIQUE (k))";
const ROWS: &str = "INSERT INTO t VALUES (1, 5, 'tab', 'x', 1), (2, 6, 'tic', 'y', 2), (3, 7, 'top', 'z', 3), (4, 8, 'other', 'q', 4)";

fn filled(kind: Kind, with_engine: bool) -> Option<Pair> {
    Pair::of(kind, with_engine, &[TABLE, ROWS])
}

fn columns_in_parentheses_keep_their_names(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = filled(kind, with_engine) else {
            return;
        };
        for sql in [
            "SELECT (k) FROM t",
            "SELECT ((k)) FROM t",
            "SELECT ( k ) FROM t",
            "SELECT (t.k), (`s`), (free), (plain) FROM t",
            "SELECT (k) AS x, (K) FROM t",
            "SELECT DISTINCT(k) FROM t",
            "SELECT (k) FROM t ORDER BY (k)",
            "SELECT (k) FROM t GROUP BY (k)",
            "SELECT COUNT(DISTINCT(k)), MIN((k)), MAX( k ) FROM t",
            "SELECT (k) FROM t WHERE (k) = (5)",
            // finished by the proxy
            "SELECT DISTINCT(free) FROM t ORDER BY free",
            "SELECT DISTINCT ( t . free ) FROM t ORDER BY free",
            "SELECT ((free)), COUNT(*) FROM t GROUP BY (free) ORDER BY free",
            "SELECT (free), ((plain)), SUM(k) FROM t GROUP BY free, plain ORDER BY free",
            "SELECT ((id)), (`free`), (plain) FROM t ORDER BY (free)",
            "SELECT (s) AS x, (t.S) FROM t ORDER BY free",
        ] {
            pair.same(sql);
            let said = pair.execute(sql);
            assert_eq!(said.plain, said.protected, "{sql}");
        }
        for sql in [
            "SELECT (SELECT (k) FROM t WHERE id = 1)",
            "SELECT x.k FROM (SELECT (k) FROM t) x",
            "SELECT (k), UPPER((s)) FROM t",
            "SELECT (k), (1), ('a'), (plain + 1) FROM t",
        ] {
            pair.same_or_refused(sql);
        }
    }
}

/// Statements behind which `FOUND_ROWS()` is certain, and such where it may be refused.
const KEEPING: &[&str] = &[
    "SHOW WARNINGS",
    "SHOW ERRORS",
    "SET @a = 1",
    "BEGIN",
    "COMMIT",
    "INSERT INTO t (id, k) VALUES (9, 99)",
    "SELECT 1",
    "SELECT id FROM clear LIMIT 3",
    "SELECT k FROM t WHERE k = 5",
    "SELECT k FROM t ORDER BY free LIMIT 2",
    "SELECT id FROM t WHERE s LIKE 'nothing%'",
];
const OTHERS: &[&str] = &[
    "SELECT * FROM nowhere",
    "UPDATE t SET plain = 9 WHERE s LIKE 't%'",
    "UPDATE t SET plain = plain + 1",
    "UPDATE t SET k = k + 100 WHERE id = 4",
    "DELETE FROM t WHERE s LIKE 'other%'",
    "DELETE FROM clear WHERE id = 5",
    "INSERT INTO clear (id) SELECT id + 100 FROM clear",
    "SELECT @@warning_count",
    "SHOW COUNT(*) WARNINGS",
    "SHOW TABLES",
    "SHOW COLUMNS FROM t",
    "EXPLAIN SELECT * FROM clear",
    "VALUES (1), (2), (3)",
    "SET @b = (SELECT COUNT(*) FROM clear)",
    "DO 1",
    "PREPARE p FROM 'SELECT id FROM clear LIMIT 2'",
    "EXECUTE p",
    "SELECT id FROM clear; SHOW WARNINGS",
    "DEALLOCATE PREPARE p",
    "TRUNCATE TABLE clear",
];

fn found_rows_outlive_statements_that_find_none(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same("CREATE TABLE clear (id INT PRIMARY KEY)");
    pair.same("INSERT INTO clear VALUES (1), (2), (3), (4), (5), (6)");
    let mut answered = 0;
    for query in [
        "SELECT id FROM t WHERE s LIKE 't%'",
        "SELECT id FROM clear WHERE id < 5",
        "SELECT id FROM t ORDER BY free",
    ] {
        for between in KEEPING {
            pair.same(query);
            pair.say(between);
            for question in ["SELECT FOUND_ROWS(), ROW_COUNT()", "SELECT FOUND_ROWS()"] {
                let said = pair.say(question);
                assert_eq!(said.plain, said.protected, "{query}; {between}; {question}");
            }
            pair.say("DELETE FROM t WHERE id = 9");
        }
        for between in OTHERS {
            pair.same(query);
            pair.say(between);
            answered += usize::from(pair.same_or_refused("SELECT FOUND_ROWS()"));
            pair.same(query);
            pair.say(between);
            let said = pair.execute("SELECT FOUND_ROWS()");
            assert!(
                said.is_refused() || said.plain == said.protected,
                "{said:?}"
            );
        }
        // the time that a table was looked at is over
        pair.same(query);
        std::thread::sleep(std::time::Duration::from_millis(1200));
        pair.say("SELECT * FROM nowhere");
        pair.same_or_refused("SELECT FOUND_ROWS()");
    }
    // not all of them are refused
    assert!(answered > 10, "{answered}");
}

fn warnings_show_no_tokens(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = filled(kind, with_engine) else {
            return;
        };
        for write in [
            "INSERT IGNORE INTO t VALUES (9, 5, 'a', 'b', 1)",
            "INSERT IGNORE INTO t VALUES (1, 55, 'a', 'b', 1), (10, 6, 'b', 'c', 1), (11, 5, 'b', 'c', 1)",
            "UPDATE IGNORE t SET k = 5 WHERE id = 2",
            "UPDATE IGNORE t SET k = k - 1",
            "INSERT IGNORE INTO t (id, k) SELECT id + 100, k FROM t",
            "INSERT IGNORE INTO t (id, k) VALUES (9, 5 + 0)",
        ] {
            let say = |pair: &mut Pair, way: usize| match way {
                0 => pair.say(write),
                1 => pair.execute(write),
                _ => {
                    let prepared = pair.say(&format!("PREPARE w FROM \"{write}\""));
                    match prepared.is_refused() {
                        true => prepared,
                        false => pair.say("EXECUTE w"),
                    }
                }
            };
            for way in 0..3 {
                let said = say(&mut pair, way);
                if said.is_refused() {
                    continue;
                }
                assert_eq!(said.plain, said.protected, "{write}");
                let shown = pair.say("SHOW WARNINGS");
                let hidden = hide_values(&shown.plain);
                assert_eq!(hide_values(&shown.protected), hidden, "{write}");
                say(&mut pair, way);
                let said = pair.say("SELECT @@warning_count");
                assert!(said.is_refused() || said.plain == said.protected, "{write}");
                say(&mut pair, way);
                let told = "GET DIAGNOSTICS CONDITION 1 @told = MESSAGE_TEXT";
                if !pair.say(told).is_refused() {
                    let told = pair.say("SELECT @told").protected;
                    assert_eq!(hide_values(&told), told, "{write}");
                }
            }
        }
        pair.same("SELECT COUNT(*) FROM t");
    }
}

/// The values of duplicates in protected columns become one word.
fn hide_values(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("Duplicate entry '") {
        let (value, behind) = behind.split_once("' for key").expect("a key");
        out += before;
        // of the plain key the value stays
        let is_plain = behind.starts_with(" 'PRIMARY'") || behind.starts_with(" 't.PRIMARY'");
        let value = if is_plain { value } else { "(protected)" };
        out += &format!("Duplicate entry '{value}' for key");
        rest = behind;
    }
    out + rest
}

fn errors_quote_nothing_that_the_client_has_not_written(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    let mut failed = 0;
    for sql in [
        "DELETE FROM t WHERE k = 5 RETURNING id",
        "DELETE FROM t WHERE k = 77 RETURNING k, s",
        "INSERT INTO t (id, k) VALUES (50, 51) RETURNING id, k",
        "INSERT INTO t (id, k) VALUES (60, 61) AS n ON DUPLICATE KEY UPDATE k = 7",
        "SELECT k FROM t WHERE k = 5 FOR SHARE",
        "SELECT k FROM t FOR SHARE OF t",
        "SELECT k FROM t WHERE k = 5 FOR UPDATE WAIT 3",
        "SELECT SQL_CACHE k FROM t",
        "SELECT SQL_CACHE id, plain FROM t WHERE s = 'tab' AND k = 5",
        "SELECT k FROM t USE INDEX (nowhere) WHERE k = 5",
        "SELECT k FROM t PARTITION (p0) WHERE k = 5",
        "SELECT k FROM t OFFSET 1 ROWS FETCH FIRST 2 ROWS ONLY",
        "SELECT STRAIGHT_JOIN HIGH_PRIORITY k FROM t LIMIT 1",
        "SELECT k FROM t WHERE k = 5 LIMIT 1 ROWS EXAMINED 10",
        "INSERT DELAYED INTO t (id, k) VALUES (80, 81)",
        "INSERT HIGH_PRIORITY INTO t (id, k) VALUES (90, 91)",
        "REPLACE DELAYED INTO t (id, k) VALUES (80, 81)",
        "SELECT k FROM t WHERE plain IS NOT DISTINCT FROM 5 AND k = 6",
        "SELECT k FROM t WHERE plain MEMBER OF ('[1]') AND k = 5",
        "SELECT id FROM t WHERE plain = ANY(1) AND k = 5",
    ] {
        let said = pair.say(sql);
        let (plain, protected) = (said.plain.as_str(), said.protected.as_str());
        if !protected.starts_with("1064") || said.is_refused() {
            continue;
        }
        failed += 1;
        // as far as the two texts are alike
        let quoted = |text: &str| {
            let (_, behind) = text.split_once('\'').expect("a quotation");
            behind.rsplit_once('\'').expect("its end").0.to_owned()
        };
        let (plain, protected) = (quoted(plain), quoted(protected));
        assert!(plain.starts_with(protected.trim_end()), "{sql}\n{said:?}");
        assert!(!protected.contains('$'), "{sql}\n{said:?}");
    }
    assert!(failed > 1, "{failed}");
}

/// Behind a definition the proxy looks at the session's temporary tables, also at those that are
/// gone.
fn warnings_are_not_those_of_the_proxys_questions(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    for create in [
        "CREATE TEMPORARY TABLE tmp LIKE t",
        "CREATE TEMPORARY TABLE tmp (id INT PRIMARY KEY, n INT)",
    ] {
        for question in [
            "SHOW WARNINGS",
            "SHOW ERRORS",
            "SHOW COUNT(*) WARNINGS",
            "SELECT @@warning_count",
            "SELECT @@error_count",
        ] {
            pair.same(create);
            pair.same_or_refused(question);
            pair.same("DROP TEMPORARY TABLE tmp");
            pair.same_or_refused(question);
        }
    }
}

/// MariaDB keeps warnings over statements without tables. A second after the last look at the
/// tables the proxy looks again.
fn warnings_outlive_a_look_at_the_tables(kind: Kind) {
    let Some(mut pair) = filled(kind, false) else {
        return;
    };
    pair.same("CREATE TABLE plain (id INT PRIMARY KEY, n INT NOT NULL)");
    for (raises, next) in [
        ("SELECT nothing FROM plain", "USE app"),
        ("INSERT INTO plain VALUES (1, 'x')", "SET @a = 1"),
        ("INSERT IGNORE INTO plain VALUES (2, NULL)", "DO 1"),
        ("SELECT * FROM nowhere", "SELECT n FROM plain"),
        ("SELECT * FROM nowhere", "SELECT 1; SHOW WARNINGS"),
    ] {
        pair.same(raises);
        pair.same(next);
        pair.same("SHOW WARNINGS");
    }
    pair.same("SET @text = 'SET @a = 1'");
    for waits in [false, true] {
        for by_name in [
            "PREPARE p FROM 'SELECT 1'",
            "EXECUTE p",
            "PREPARE p FROM 'SELECT n FROM plain'",
            "EXECUTE p",
            "PREPARE p FROM @text",
            "EXECUTE p",
            "PREPARE p FROM 'SELECT k FROM t WHERE id = 1'",
            "EXECUTE p",
            "DEALLOCATE PREPARE p",
        ] {
            let raising = [
                "SELECT * FROM nowhere",
                "INSERT IGNORE INTO t (id, s) VALUES (77, '123456789012345678901')",
            ];
            // what the proxy itself has raised no question of its own ends
            for raises in &raising[..if waits { 1 } else { 2 }] {
                pair.same("SELECT n FROM plain");
                pair.same("DELETE FROM t WHERE id = 77");
                pair.same(raises);
                if waits {
                    std::thread::sleep(std::time::Duration::from_millis(1100));
                }
                pair.same_or_refused(by_name);
                pair.same("SHOW WARNINGS");
                if by_name.starts_with("DEALLOCATE") {
                    pair.same("PREPARE p FROM 'SELECT 1'");
                }
            }
        }
    }
    for text in [
        "SHOW WARNINGS; SELECT n FROM plain",
        "SELECT 1; SHOW WARNINGS; SELECT n FROM plain",
    ] {
        pair.same("SELECT n FROM plain");
        pair.same("SELECT * FROM nowhere");
        std::thread::sleep(std::time::Duration::from_millis(1100));
        pair.same(text);
    }
    for next in ["SELECT 1", "SELECT n FROM plain"] {
        pair.same("SELECT * FROM nowhere");
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let said = pair.execute(next);
        assert_eq!(said.plain, said.protected, "{next}");
        pair.same("SHOW WARNINGS");
    }
}

/// Some words of sql_mode leave things out of what SHOW CREATE TABLE shows, of which copies are
/// made.
fn definitions_are_not_copied_from_shortened_texts(kind: Kind) {
    if kind == Kind::MySql {
        // it has no such words
        return;
    }
    let Some(mut pair) = filled(kind, true) else {
        return;
    };
    for word in [
        "NO_FIELD_OPTIONS",
        "NO_KEY_OPTIONS",
        "NO_TABLE_OPTIONS",
        "POSTGRESQL",
        "DB2",
        "MYSQL323",
        "MYSQL40",
        "ANSI",
    ] {
        for create in [
            "CREATE TEMPORARY TABLE copy LIKE t",
            "CREATE TABLE copy LIKE t",
            "CREATE TABLE copy (k INT) SELECT k, s FROM t",
        ] {
            pair.same(&format!("SET sql_mode = '{word}'"));
            let runs = pair.same_or_refused(create);
            pair.same("SET sql_mode = DEFAULT");
            if runs {
                pair.same("SHOW CREATE TABLE copy");
                pair.same("DROP TABLE copy");
            }
        }
    }
}

/// The proxy raises them, because the server never sees such a statement.
fn errors_of_the_servers_own_are_in_its_words(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = filled(kind, with_engine) else {
            return;
        };
        for sql in [
            "SELECT nope FROM t",
            "SELECT k, t.nope FROM t",
            "SELECT u.k FROM t",
            "SELECT COUNT(nope) FROM t",
            "SELECT k FROM t WHERE nope = 1",
            "SELECT k FROM t WHERE k = 1 AND (plain = 2 OR nope IS NULL)",
            "SELECT k FROM t WHERE plain IN (SELECT nope FROM t AS u)",
            "SELECT k FROM t WHERE plain IN (SELECT plain FROM t AS u WHERE u.nope = 2)",
            "SELECT t.k FROM t JOIN t AS u ON t.id = u.nope",
            "SELECT k FROM t ORDER BY nope",
            "SELECT k FROM t ORDER BY k, plain, nope DESC",
            "SELECT k FROM t GROUP BY k, nope",
            "SELECT k FROM t GROUP BY k HAVING nope = 1",
            "INSERT INTO t (id, nope) VALUES (10, 1)",
            "INSERT INTO t (id, k) VALUES (10, nope)",
            "INSERT INTO t SET id = 10, nope = 1",
            "INSERT INTO t (id, k) VALUES (10, 10) ON DUPLICATE KEY UPDATE nope = 1",
            "INSERT INTO t VALUES (10, 10)",
            "INSERT INTO t (id, k) VALUES (10, 10), (11), (12, 12)",
            "REPLACE INTO t (id, k) VALUES (10)",
            "UPDATE t SET nope = 1",
            "UPDATE t SET k = 1 WHERE nope = 1",
            "UPDATE t SET k = 1 WHERE t.nope = 1 AND id = 3",
            "DELETE FROM t WHERE nope = 1",
            "ALTER TABLE t ADD COLUMN k INT",
        ] {
            pair.same_if_done(sql);
        }
        for (sql, text) in [
            ("SELECT nope FROM t", "Unknown column 'nope' in "),
            ("SELECT k FROM t WHERE u.k = 1", "Unknown column 'u.k' in "),
            (
                "INSERT INTO t (id) VALUES (1), (2, 3)",
                "Column count doesn't match value count at row ",
            ),
            (
                "ALTER TABLE t ADD COLUMN k INT",
                "Duplicate column name 'k'",
            ),
        ] {
            for session in pair.sessions() {
                let failure = session.run(sql).expect_err(sql);
                assert!(failure.message.starts_with(text), "{sql}: {failure}");
            }
        }
    }
}

/// They were taken for columns, and unknown ones.
fn units_are_no_columns(kind: Kind) {
    for with_engine in [false, true] {
        let table = "CREATE TABLE t (id INT PRIMARY KEY, d DATETIME {range}, p DATETIME, year INT)";
        let rows = "INSERT INTO t VALUES (1, '2020-01-31 10:11:12', '2020-02-29', 2), (2, NULL, NULL, NULL)";
        let Some(mut pair) = Pair::of(kind, with_engine, &[table, rows]) else {
            return;
        };
        for unit in [
            "MICROSECOND",
            "second",
            "MINUTE",
            "Hour",
            "DAY",
            "WEEK",
            "MONTH",
            "QUARTER",
            "YEAR",
            "SQL_TSI_DAY",
        ] {
            for sql in [
                format!("SELECT id, d, TIMESTAMPDIFF({unit}, p, '2024-01-01') FROM t ORDER BY id"),
                format!("SELECT d FROM t WHERE TIMESTAMPADD({unit}, 1, p) > '2020-02-01'"),
                format!("SELECT TIMESTAMPDIFF({unit}, d, '2024-01-01'), year FROM t ORDER BY id"),
                format!(
                    "SELECT id FROM t WHERE TIMESTAMPDIFF({unit}, d, '2024-01-01') > year ORDER BY id"
                ),
                format!("UPDATE t SET d = TIMESTAMPADD({unit}, 1, p) WHERE id = 1"),
                format!("SELECT EXTRACT({unit} FROM d) FROM t ORDER BY id"),
            ] {
                let done = pair.same_if_done(&sql);
                assert!(done || !with_engine || unit.starts_with("SQL"), "{sql}");
            }
        }
        for format in ["DATE", "time", "DATETIME", "TIMESTAMP"] {
            assert!(pair.same_if_done(&format!(
                "SELECT d, GET_FORMAT({format}, 'EUR') FROM t ORDER BY id"
            )));
        }
        assert!(pair.same_if_done("SELECT d, GREATEST(year, 1) FROM t ORDER BY id"));
        // A name in quotes may be a stored function's, and what looks like a unit a column.
        let named = "CREATE TABLE w (id INT PRIMARY KEY, day DATETIME {range})";
        pair.create(named);
        let is_done = pair.same_if_done("SELECT `timestampdiff`(day, day, day) FROM w");
        assert!(with_engine || !is_done);
        let plain = "SELECT d, TIMESTAMPDIFF(YEAR, p, '2024-01-01') FROM t ORDER BY id";
        assert!(pair.same_if_done(plain));
    }
}

fn refusals_say_what_they_are_about(kind: Kind) {
    for with_engine in [false, true] {
        let Some(mut pair) = filled(kind, with_engine) else {
            return;
        };
        let mut says = |sql: &str, text: &str| {
            let failure = pair.protected.run(sql).expect_err(sql);
            assert!(failure.message.contains(text), "{sql}: {failure}");
        };
        // No engine makes a view.
        says("CREATE VIEW v AS SELECT UPPER(s) FROM t", "OS1028");
        says(
            "CREATE VIEW v AS SELECT k, COUNT(*) FROM t GROUP BY k",
            "OS1028",
        );
        says("CHECKSUM TABLE t", "OS1008 CHECKSUM TABLE");
        if !with_engine {
            says("SELECT id FROM t WHERE s = @e", "and a variable");
            says(
                "SELECT id FROM t WHERE s = plain",
                "and a column that is not protected",
            );
            says("SELECT TIMESTAMPDIFF(YEAR, s, s) FROM t", "OS1004 ");
        }
    }
}
