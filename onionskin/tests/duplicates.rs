//! The text of error 1062 quotes the key of the row that is there already. Applications read it.
//! It is the plain server's text, or says `(protected)` where the value is not known for certain.

use ::mysql::Value;
use onionskin_testkit::*;

on_both_servers!(
    a_duplicate_is_quoted_as_by_a_plain_server,
    values_of_many_types_are_quoted,
    long_keys_are_cut_as_by_a_plain_server,
    what_is_not_known_is_not_quoted,
    tokens_are_never_quoted,
    what_is_shown_behind_the_error_agrees,
);

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(200) {eq}, a VARCHAR(200) {eq}, b VARCHAR(200) {eq}, \
                     p VARCHAR(9), UNIQUE name (n), UNIQUE two (a, b), UNIQUE three (p, a), UNIQUE four (a, p, b))";

fn pair(kind: Kind) -> Option<Pair> {
    let mut pair = Pair::of(kind, false, &[TABLE])?;
    pair.both("INSERT INTO t VALUES (1, 'Alice', 'x', 'y', 'p'), (2, 'bob', 'x-', '-y', NULL)");
    Some(pair)
}

/// Fails on both with the same text, which holds no `(protected)`.
fn quoted(pair: &mut Pair, sql: &str) {
    let said = pair.same(sql);
    assert!(said.contains("Duplicate entry"), "{sql}: {said}");
    assert!(!said.contains("(protected)"), "{sql}: {said}");
    let said = pair.execute(sql);
    assert_eq!(said.plain, said.protected, "{sql}");
}

/// Fails on both; the value is left out.
fn hidden(pair: &mut Pair, sql: &str) {
    let said = pair.say(sql);
    assert!(said.plain.contains("Duplicate entry '"), "{sql}: {said:?}");
    let text = "Duplicate entry '(protected)' for key";
    assert!(said.protected.contains(text), "{sql}: {said:?}");
}

fn a_duplicate_is_quoted_as_by_a_plain_server(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    for sql in [
        // as it is written in the statement, not as it is stored
        "INSERT INTO t VALUES (3, 'ALICE', 'q', 'q', NULL)",
        "INSERT INTO t (n, id) VALUES ('alice', 3)",
        "INSERT INTO t SET id = 3, n = 'aLice'",
        "INSERT INTO t (id, a, b) VALUES (3, 'X', 'Y')",
        "INSERT INTO t (id, a, b) VALUES (3, 'X-', '-Y')",
        "INSERT INTO t (id, a, p) VALUES (3, 'X', 'P')",
        // the second of several rows, folded and not
        "INSERT INTO t (id, n) VALUES (3, 'c'), (4, 'BOB'), (5, 'e')",
        "INSERT INTO t (id, n, p) VALUES (3, 'c', NULL), (4, 'BOB', 'w'), (5, 'e', NULL)",
        "INSERT INTO t (id, n) VALUES (3, 'same'), (4, 'same')",
        "UPDATE t SET n = 'ALICE' WHERE id = 2",
        "UPDATE t SET n = 'all the same'",
        "UPDATE t SET a = 'X', b = 'Y' WHERE id = 2",
        "UPDATE t SET a = 'X', p = 'P' WHERE id = 2",
    ] {
        quoted(&mut pair, sql);
        pair.same("SELECT * FROM t ORDER BY id");
    }
    // of a prepared one it is not known which values stand in the same row
    let rows = "INSERT INTO t (id, a, b) VALUES (3, 'x', 'c'), (4, 'X', 'Y'), (5, 'x', 'e')";
    pair.same(rows);
    assert!(pair.execute(rows).protected.contains("(protected)"));
    for (sql, values) in [
        ("INSERT INTO t (id, n) VALUES (?, ?)", ["3", "ALICE"]),
        ("UPDATE t SET n = ? WHERE id = ?", ["aLICE", "2"]),
        ("INSERT INTO t (id, a, b) VALUES (9, ?, ?)", ["X", "y"]),
    ] {
        assert!(pair.same_if_done_with(sql, &values.map(Value::from)));
    }
    pair.both("PREPARE w FROM 'INSERT INTO t (id, n) VALUES (?, ?)'");
    pair.both("SET @id = 3");
    pair.run("SET @n = 'ALICE'");
    pair.say("EXECUTE w USING @id, @n");
    pair.same("SELECT * FROM t ORDER BY id");
}

fn values_of_many_types_are_quoted(kind: Kind) {
    let types = [
        ("INT {eq, range}", &["-5", "17"][..]),
        ("BIGINT {eq, range}", &["-9223372036854775808"]),
        ("BIGINT UNSIGNED {eq}", &["18446744073709551615"]),
        ("INT(6) ZEROFILL {eq}", &["42"]),
        ("DECIMAL(9,3) {eq, range}", &["300", "-1.25"]),
        ("DATE {eq, range}", &["'2020-02-03'"]),
        ("DATETIME(3) {eq, range}", &["'2020-02-03 04:05:06.5'"]),
        ("TIMESTAMP(2) {eq}", &["'2020-02-03 04:05:06'"]),
        ("TIME(1) {eq}", &["'-100:02:03.1'"]),
        ("YEAR {eq}", &["2020"]),
        ("ENUM('x', 'yé') {eq}", &["'yé'", "1"]),
        ("SET('p', 'q', 'r') {eq}", &["'r,p'", "''"]),
        ("CHAR(20) {eq}", &["'abc  '", "''", "'a-b'"]),
        ("BINARY(6) {eq}", &["'ab'", "''", "x'00ff0000'"]),
        (
            "VARBINARY(9) {eq}",
            &["'ab'", "''", "x'00ff0000'", "'\\\\'"],
        ),
        (
            "VARCHAR(9) CHARACTER SET latin1 {eq}",
            &["'müller '", "'Û'"],
        ),
        (
            "VARCHAR(20) {eq}",
            &[
                "'日本'",
                "'a😀b'",
                "'it''s \"so\"'",
                "'\\\\x01'",
                "'%s%d'",
                "''",
                "'a'' for key ''b'",
                "'...'",
            ],
        ),
    ];
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    for (ty, values) in types {
        pair.create(&format!("CREATE TABLE v (id INT, v {ty} NULL, UNIQUE (v))"));
        for value in values {
            pair.both(&format!("INSERT INTO v VALUES (1, {value})"));
            quoted(&mut pair, &format!("INSERT INTO v VALUES (2, {value})"));
        }
        pair.both("DROP TABLE v");
        pair.create(&format!(
            "CREATE TABLE v (id INT, v {ty} NOT NULL, PRIMARY KEY (id, v))"
        ));
        for value in values {
            pair.both(&format!("INSERT INTO v VALUES (1, {value})"));
            quoted(&mut pair, &format!("INSERT INTO v VALUES (1, {value})"));
        }
        pair.both("DROP TABLE v");
    }
}

fn long_keys_are_cut_as_by_a_plain_server(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    for (n, length) in [60, 61, 62, 63, 64, 65, 66, 190].into_iter().enumerate() {
        let id = 10 * n + 10;
        let long = "a".repeat(length);
        pair.both(&format!(
            "INSERT INTO t (id, n, a, b) VALUES ({id}, '{long}', '{long}', 'y')"
        ));
        quoted(
            &mut pair,
            &format!("INSERT INTO t (id, n) VALUES ({id}1, '{long}')"),
        );
        quoted(
            &mut pair,
            &format!("INSERT INTO t (id, a, b) VALUES ({id}1, '{long}', 'Y')"),
        );
        if length % 2 == 1 {
            continue;
        }
        let wide = "é".repeat(length / 2);
        pair.both(&format!(
            "INSERT INTO t (id, n) VALUES ({id}2, '{wide}'), ({id}3, 'a{wide}')"
        ));
        for wide in [wide.clone(), format!("a{wide}")] {
            let sql = format!("INSERT INTO t (id, n) VALUES ({id}4, '{wide}')");
            let said = pair.say(&sql);
            let is_hidden = said.protected.contains("(protected)");
            // MySQL cuts characters
            let may_hide = kind == Kind::MySql && wide.len() > 64 && wide.len() % 2 == 1;
            assert!(
                said.plain == said.protected || is_hidden && may_hide,
                "{said:?}"
            );
        }
    }
    // a plain column between two tokens: of the second one too little may be shown
    pair.both("INSERT INTO t (id, a, p, b) VALUES (7, 'one', 'p-q', 'two')");
    pair.both("DROP INDEX two ON t");
    pair.both("DROP INDEX three ON t");
    for sql in [
        "INSERT INTO t (id, a, p, b) VALUES (8, 'ONE', 'P-q', 'Two')",
        "INSERT INTO t (id, a, p, b) VALUES (8, 'ONE', 'P-r', 'Two'), (9, 'ONE', 'P-q', 'Two')",
        "UPDATE t SET a = 'ONE', p = 'p-q', b = 'tWo' WHERE id = 2",
    ] {
        let said = pair.say(sql);
        let is_hidden = said.protected.contains("'(protected)'");
        assert!(said.plain == said.protected || is_hidden, "{said:?}");
    }
    // an UPDATE knows no more than what it assigns
    pair.both("INSERT INTO t (id, a, p, b) VALUES (8, 'one', 'r', 'two')");
    hidden(&mut pair, "UPDATE t SET a = 'ONE', p = 'p-q' WHERE id = 8");
}

fn what_is_not_known_is_not_quoted(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    pair.both(
        "INSERT INTO t VALUES (3, 'Carl', 'ONE', 'two', 'v'), (4, 'dora', 'one', 'other', 'w')",
    );
    // the row that is met keeps some of its values
    hidden(
        &mut pair,
        "INSERT INTO t (id, n) VALUES (1, 'CARL') ON DUPLICATE KEY UPDATE n = VALUES(n)",
    );
    // two values are equal
    hidden(
        &mut pair,
        "INSERT INTO t (id, n) VALUES (10, 'ALICE'), (11, 'aLICE')",
    );
    // of these values only the server has heard
    hidden(&mut pair, "UPDATE t SET b = 'TWO' WHERE id = 4");
    hidden(
        &mut pair,
        "INSERT INTO t (id, n) VALUES (10, 'same'), (11, 'SAME')",
    );
    pair.same("SELECT * FROM t ORDER BY id");
}

/// In every character set of results, the text is the plain server's or quotes nothing.
fn tokens_are_never_quoted(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    pair.both("INSERT INTO t (id, n) VALUES (5, 'é')");
    for charset in ["utf8mb4", "latin1", "utf8mb3", "NULL", "binary", "ascii"] {
        pair.run(&format!("SET character_set_results = {charset}"));
        for value in ["é", "Alice"] {
            for sql in [
                format!("INSERT INTO t (id, n) VALUES (6, '{value}')"),
                format!("UPDATE t SET n = '{value}' WHERE id = 2"),
                format!("INSERT IGNORE INTO t (id, n) VALUES (6, '{value}')"),
            ] {
                let said = pair.say(&sql);
                assert!(!said.protected.contains("\\x"), "{charset}: {said:?}");
                let is_known = said.plain == said.protected
                    || said.is_refused()
                    || said.protected.contains("'(protected)'");
                assert!(is_known, "{charset} {sql}: {said:?}");
            }
        }
    }
}

fn what_is_shown_behind_the_error_agrees(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    for sql in [
        "INSERT INTO t (id, n) VALUES (3, 'ALICE')",
        // the server was asked for the key's columns
        "INSERT INTO t (id, a, b) VALUES (3, 'X', 'Y')",
        "UPDATE t SET a = 'X', b = 'Y' WHERE id = 2",
    ] {
        for question in [
            "SHOW WARNINGS",
            "SHOW ERRORS",
            "SELECT @@warning_count, @@error_count",
            "SHOW COUNT(*) ERRORS",
            "SELECT ROW_COUNT()",
        ] {
            quoted(&mut pair, sql);
            pair.same_or_refused(question);
        }
        pair.same("BEGIN");
        pair.both("INSERT INTO t (id) VALUES (77)");
        quoted(&mut pair, sql);
        pair.same("SELECT COUNT(*) FROM t");
        pair.same("ROLLBACK");
        pair.same("LOCK TABLES t WRITE");
        quoted(&mut pair, sql);
        pair.same("UNLOCK TABLES");
        // of several statements the others are not run
        pair.say(&format!("{sql}; INSERT INTO t (id) VALUES (78)"));
        pair.same("SELECT COUNT(*) FROM t");
    }
}
