//! LIKE: the matcher against both servers, and protected columns against plain ones, with the
//! capability `like` and without.

#[path = "like/conditions.rs"]
mod conditions;
use onionskin_testkit::*;

#[path = "like/matcher.rs"]
mod matcher;
#[path = "like/soundness.rs"]
mod soundness;
#[path = "like/speed.rs"]
mod speed;
#[path = "like/unindexed.rs"]
mod unindexed;

use conditions::conditions_answer_as_on_a_plain_server;
use matcher::{
    characters_are_alike_where_the_server_says_so,
    random_patterns_match_what_they_match_on_the_server,
};
use soundness::{an_index_answers_as_a_scan_while_others_write, long_texts_are_found};
use speed::selective_patterns_do_not_open_all_rows;
use unindexed::no_grams_are_kept_for_an_index_that_is_not_used;

on_both_servers!(
    characters_are_alike_where_the_server_says_so,
    random_patterns_match_what_they_match_on_the_server,
    conditions_answer_as_on_a_plain_server,
    an_index_is_used_where_it_can_be_trusted,
    an_index_answers_as_a_scan_while_others_write,
    tables_of_the_older_form_are_opened,
    long_texts_are_found,
    definitions_show_the_logical_table,
    changed_grams_hide_rows_and_never_add_any,
    rows_beside_duplicates_are_found,
    rows_that_match_are_always_found,
    tables_are_migrated_to_grams_and_back,
    no_grams_are_kept_for_an_index_that_is_not_used,
    selective_patterns_do_not_open_all_rows,
);

/// The index over a column's grams.
const GRAM_INDEX: &str = "SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'app' AND INDEX_NAME LIKE 'onionskin\\_%'";
/// The column of a column's grams.
const GRAM_COLUMN: &str = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'app' AND COLUMN_NAME LIKE '%$gram%'";

const PEOPLE: &str = "CREATE TABLE people (
    id INT PRIMARY KEY, kind INT,
    sealed VARCHAR(60) COLLATE utf8mb4_unicode_ci {},
    name VARCHAR(60) COLLATE utf8mb4_general_ci {like},
    note TEXT COLLATE utf8mb4_bin {eq, like},
    code CHAR(20) COLLATE latin1_swedish_ci NOT NULL {range, like},
    raw VARBINARY(60) {}, born DATE {}, n INT {eq}, price DECIMAL(8,2) {}, at TIME(2) {},
    city VARCHAR(60) COLLATE utf8mb4_general_ci) DEFAULT CHARSET utf8mb4";

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

/// How many rows the server has touched for a statement.
fn touched(pair: &mut Pair, sql: &str) -> u64 {
    pair.protected.must("FLUSH STATUS");
    pair.protected.must(sql);
    let status = pair
        .protected
        .text("SHOW SESSION STATUS LIKE 'Handler_read_rnd_next'")
        .unwrap();
    status.split('\t').nth(1).unwrap().parse().unwrap()
}

/// Names of which many share grams.
fn people(pair: &mut Pair) {
    let mut values = vec![
        "Alice",
        "alice",
        "ALICIA",
        "Malice ",
        "al",
        "a",
        "",
        "Ünal",
        "unal",
        "100%",
        "a_b",
        "a\\b",
        "Straße",
        "Strasse",
        "it's",
        "中文名字",
        "中文",
        "aaaa",
        "aaaaaaa",
        "x|y",
        "Zoë Alice",
    ];
    values.extend(["one two three four", "four three two one", "twoo"]);
    for (id, value) in values.iter().enumerate() {
        let latin = match value.chars().all(|c| u32::from(c) < 256) {
            true => text(value),
            false => "''".into(),
        };
        let value = text(value);
        pair.both(&format!(
            "INSERT INTO people VALUES ({id}, {}, {value}, {value}, {value}, {latin}, {value}, \
             '20{:02}-0{}-11', {}, {}.5, '{}:20:30.25', {value})",
            id % 3,
            id,
            id % 9 + 1,
            (id as i64 - 4) * 13,
            id * 7,
            id
        ));
    }
    pair.both("INSERT INTO people (id, code) VALUES (900, 'only a code')");
}

/// MariaDB's full-text index outside of transactions only, MySQL's index over numbers everywhere.
fn an_index_is_used_where_it_can_be_trusted(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(60) {like}) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci";
    let Some(mut pair) = Pair::on_one_server(kind, create, "like_index = true\n") else {
        return;
    };
    for chunk in 0..10 {
        let rows: Vec<String> = (0..100)
            .map(|n| format!("('person number {:05}')", chunk * 100 + n))
            .collect();
        pair.both(&format!("INSERT INTO t (name) VALUES {}", rows.join(",")));
    }
    let query = "SELECT id, name FROM t WHERE name LIKE '%00123%'";
    assert_eq!(pair.same_rows_in_any_order(query, &[]), 1);
    assert!(touched(&mut pair, query) < 100);
    let everywhere = kind == Kind::MySql;
    // too short for a gram, negated, beside OR: all rows are opened
    for all in [
        "SELECT id FROM t WHERE name LIKE '%12%'",
        "SELECT id FROM t WHERE name NOT LIKE '%00123%'",
        "SELECT id FROM t WHERE name LIKE '%00123%' OR id = 5",
    ] {
        pair.same_rows_in_any_order(all, &[]);
        assert!(touched(&mut pair, all) >= 1000, "{all}");
    }
    for sql in [
        "SELECT id FROM t WHERE name LIKE '%00123%' FOR UPDATE",
        "UPDATE t SET name = 'person number 00123' WHERE name LIKE '%number 00123'",
        "DELETE FROM t WHERE name LIKE '%nobody%'",
    ] {
        let touched = touched(&mut pair, sql);
        assert_eq!(touched < 100, everywhere, "{sql}: {touched}");
    }
    let prepared = "SELECT id FROM t WHERE name LIKE ?";
    for (pattern, rows) in [
        ("%00123%", 1),
        ("%12%", 20),
        ("%0012%", 11),
        ("person number 00999", 1),
    ] {
        assert_eq!(
            pair.same_rows_in_any_order(prepared, &[pattern]),
            rows,
            "{pattern}"
        );
    }
    // the index does not know a transaction's own rows, nor what its snapshot sees of rows that
    // others have changed
    for session in ["plain", "protected"] {
        let session = match session {
            "plain" => &mut pair.plain,
            _ => &mut pair.protected,
        };
        session.must("START TRANSACTION");
        session.must("INSERT INTO t (name) VALUES ('a new 00123')");
        session.must("UPDATE t SET name = 'was 00123' WHERE id = 124");
        let text = session.text(&format!("{query} ORDER BY id")).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        let gone = session.text("SELECT id FROM t WHERE name LIKE 'person%00123'");
        assert_eq!(gone.unwrap(), "");
        let text = session.execute_text(prepared, ("%00123%",)).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        session.must("ROLLBACK");
    }
    assert_eq!(pair.same_rows_in_any_order(query, &[]), 1);
    let mut other = pair.proxy.connect_to("app");
    other.must("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    pair.protected
        .must("UPDATE t SET name = 'changed' WHERE id = 124");
    assert_eq!(
        other.text(query).unwrap().lines().count(),
        1,
        "the snapshot's row"
    );
    assert_eq!(pair.protected.text(query).unwrap(), "");
    other.must("COMMIT");
    assert_eq!(other.text(query).unwrap(), "");
    other.must("SET autocommit = 0");
    other.must("INSERT INTO t (name) VALUES ('another 00123')");
    assert_eq!(other.text(query).unwrap().lines().count(), 1);
    other.must("COMMIT");
    other.must("SET autocommit = 1");
    assert_eq!(other.text(query).unwrap().lines().count(), 1);
    assert_eq!(pair.protected.text(query).unwrap().lines().count(), 1);
    if everywhere {
        pair.protected.must("START TRANSACTION");
        let sent = soundness::sent_for(&mut pair, query);
        assert!(sent.contains(" MEMBER OF("), "{sent}");
        pair.protected.must("COMMIT");
    }
    // a table that is rebuilt, and one whose index is gone: slower, and right
    pair.protected.must("ALTER TABLE t FORCE");
    assert!(touched(&mut pair, query) < 100);
    assert_eq!(pair.protected.text(query).unwrap().lines().count(), 1);
    let index = pair.behind.connect().text(GRAM_INDEX).unwrap();
    pair.behind
        .connect()
        .must(&format!("DROP INDEX `{index}` ON app.t"));
    assert_eq!(pair.protected.text(query).unwrap().lines().count(), 1);
    assert_eq!(
        pair.protected
            .execute_text(prepared, ("%00123%",))
            .unwrap()
            .lines()
            .count(),
        1
    );
    pair.proxy.assert_healthy();
}

fn definitions_show_the_logical_table(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(60) {like}, note LONGTEXT NOT NULL {eq, like}) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin";
    let Some(mut pair) = Pair::on_one_server(kind, create, "") else {
        return;
    };
    let same = |pair: &mut Pair| {
        for sql in [
            "SHOW CREATE TABLE t",
            "DESCRIBE t",
            "SHOW FULL COLUMNS FROM t",
            "SHOW INDEX FROM t",
            "SELECT COLUMN_NAME, COLUMN_KEY, COLUMN_TYPE, EXTRA FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() ORDER BY ORDINAL_POSITION",
        ] {
            assert_eq!(
                pair.plain.text(sql).unwrap(),
                pair.protected.text(sql).unwrap(),
                "{sql}"
            );
        }
    };
    same(&mut pair);
    let change = |pair: &mut Pair, sql: &str, words: &str| {
        pair.plain.must(&sql.replace("{}", ""));
        let protection = format!("ENCRYPTED FOR ({words})");
        pair.protected.must(&sql.replace("{}", &protection));
        same(pair);
    };
    pair.both("INSERT INTO t VALUES (1, 'one two three', 'first note'), (2, NULL, '')");
    change(&mut pair, "ALTER TABLE t RENAME COLUMN name TO called", "");
    change(
        &mut pair,
        "ALTER TABLE t ADD COLUMN more TINYTEXT {} AFTER id",
        "like",
    );
    pair.both("UPDATE t SET more = 'something more', called = 'four five' WHERE id = 1");
    for sql in [
        "SELECT * FROM t WHERE called LIKE '%r fi%'",
        "SELECT * FROM t WHERE more LIKE '%thing%'",
        "SELECT * FROM t WHERE note LIKE 'first%'",
    ] {
        assert_eq!(pair.same_rows_in_any_order(sql, &[]), 1, "{sql}");
    }
    change(&mut pair, "ALTER TABLE t DROP COLUMN more", "");
    change(&mut pair, "ALTER TABLE t DROP COLUMN called", "");
    change(&mut pair, "ALTER TABLE t DROP COLUMN note", "");
    for definition in [
        "INT",
        "VARBINARY(20)",
        "DATE",
        "VARCHAR(20) COLLATE utf8mb4_lithuanian_ci",
    ] {
        let sql = format!("CREATE TABLE refused (c {definition} ENCRYPTED FOR (like))");
        let failure = pair.protected.run(&sql).expect_err(&sql);
        assert!(
            failure.message.contains("cannot have the capability like"),
            "{failure}"
        );
    }
}

/// Whoever changes grams on the server can hide rows, and nothing else.
fn changed_grams_hide_rows_and_never_add_any(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(60) {like}) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin";
    let Some(mut pair) = Pair::on_one_server(kind, create, "like_index = true\n") else {
        return;
    };
    pair.both("INSERT INTO t VALUES (1, 'needle in hay'), (2, 'only hay'), (3, 'a needle')");
    let gram = pair
        .behind.connect()
        .text("SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'app' AND COLUMN_NAME LIKE 'name$gram%'")
        .unwrap();
    let ids = |pair: &mut Pair, pattern: &str| {
        let sql = format!("SELECT id FROM t WHERE name LIKE '{pattern}' ORDER BY id");
        pair.protected.text(&sql).unwrap().replace('\n', " ")
    };
    // tokens are words of six characters, or numbers, each once and sorted, and tell no text
    let tokens = pair
        .behind
        .connect()
        .text(&format!("SELECT `{gram}` FROM app.t ORDER BY id"))
        .unwrap();
    for line in tokens.lines() {
        if kind == Kind::MySql {
            let numbers = line.trim_matches(['[', ']']).split(", ");
            let numbers: Vec<u32> = numbers.map(|n| n.parse().unwrap()).collect();
            assert!(numbers.windows(2).all(|w| w[0] < w[1]), "{line}");
            assert!(numbers.iter().all(|n| *n < 729_000_000), "{line}");
            continue;
        }
        let words: Vec<&str> = line.split(' ').collect();
        assert!(words.windows(2).all(|w| w[0] < w[1]), "{line}");
        assert!(words.iter().all(|w| w.len() == 6), "{line}");
    }
    assert_eq!(tokens.lines().next().unwrap().split(' ').count(), 13);
    // the grams of row 1 are given to row 2, and row 3 loses its own
    pair.behind.connect().must(&format!(
        "UPDATE app.t a JOIN app.t b ON b.id = 1 SET a.`{gram}` = b.`{gram}` WHERE a.id = 2"
    ));
    let none = match kind {
        Kind::MariaDb => "",
        Kind::MySql => "[]",
    };
    pair.behind.connect().must(&format!(
        "UPDATE app.t SET `{gram}` = '{none}' WHERE id = 3"
    ));
    assert_eq!(ids(&mut pair, "%needle%"), "1");
    assert_eq!(ids(&mut pair, "%hay%"), "1 2");
    assert_eq!(ids(&mut pair, "%e%"), "1 3", "too short for the index");
    // a NULL is refused, as is a type that is not ours
    pair.behind
        .connect()
        .must_fail(&format!("UPDATE app.t SET `{gram}` = NULL WHERE id = 3"));
    assert_eq!(
        pair.protected
            .must("DELETE FROM t WHERE name LIKE '%needle%'")
            .affected,
        if kind == Kind::MySql { 1 } else { 2 }
    );
    let index = pair.behind.connect().text(GRAM_INDEX).unwrap();
    pair.behind
        .connect()
        .must(&format!("DROP INDEX `{index}` ON app.t"));
    pair.behind.connect().must(&format!(
        "ALTER TABLE app.t MODIFY `{gram}` TEXT CHARACTER SET utf8mb4 INVISIBLE"
    ));
    // what is known of a table is looked up again after a second
    let mut fresh = pair.proxy.connect_to("app");
    let limit = std::time::Duration::from_secs(10);
    wait_until("a changed type is noticed", limit, || {
        let answer = fresh.run("SELECT name FROM t ORDER BY name LIMIT 1");
        answer.is_err_and(|failure| failure.message.starts_with("OS1101"))
    });
}

fn tables_are_migrated_to_grams_and_back(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(60), note TEXT NOT NULL, n INT) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci";
    let Some(mut pair) = Pair::on_one_server(kind, create, "like_index = true\n") else {
        return;
    };
    let rows: Vec<String> = (0..500)
        .map(|id| match id % 7 {
            0 => format!("({id}, NULL, '', NULL)"),
            _ => format!("({id}, 'person number {id:04}', 'Größe {id}', {id})"),
        })
        .collect();
    pair.both(&format!("INSERT INTO t VALUES {}", rows.join(",")));
    let count = format!("SELECT COUNT(*) FROM ({GRAM_INDEX}) found");
    for (arguments, indexes) in [
        (["--encrypt", "name: eq like; note: like"], "2"),
        (["--drop", "name: like"], "1"),
        (["--add", "name: like"], "2"),
        (["--rotate", "--drop-old"], "2"),
        (["--decrypt", "name, note"], "0"),
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_onionskin"));
        command.args(["migrate", "--backend", &pair.behind.address(), "-c"]);
        command.arg(pair.proxy.folder().join("onionskin.toml"));
        command.args(["app.t", "--drop-old"]);
        command.args(arguments.into_iter().filter(|a| *a != "--drop-old"));
        let output = command.output().expect("onionskin runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        assert_eq!(
            pair.behind.connect().text(&count).unwrap(),
            indexes,
            "{arguments:?}"
        );
        pair.protected = pair.proxy.connect_to("app");
        for sql in [
            "SELECT * FROM t WHERE name LIKE '%0123%'",
            "SELECT * FROM t WHERE name LIKE 'Person%012_'",
            "SELECT id FROM t WHERE note LIKE '%größe 49_' ORDER BY id",
            "SELECT id FROM t WHERE name NOT LIKE '%1%' ORDER BY id",
            "SELECT * FROM t ORDER BY id",
        ] {
            assert!(pair.same_rows_in_any_order(sql, &[]) > 0, "{sql}");
        }
        if indexes == "2" {
            assert!(touched(&mut pair, "SELECT id FROM t WHERE name LIKE '%0123%'") < 100);
        }
        pair.both("UPDATE t SET name = 'changed 0123' WHERE id = 9");
        pair.both("UPDATE t SET name = 'person number 0009' WHERE id = 9");
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_onionskin"));
    command.args(["migrate", "--backend", &pair.behind.address(), "-c"]);
    command.arg(pair.proxy.folder().join("onionskin.toml"));
    command.args(["app.t", "--encrypt", "n: like"]);
    let output = command.output().expect("onionskin runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("cannot have the capability like"),
        "{said}"
    );
}

/// MySQL tables of earlier versions have words under a full-text index, which is never used: rows
/// are opened, until the capability is taken away and given again.
fn tables_of_the_older_form_are_opened(kind: Kind) {
    if kind == Kind::MariaDb {
        return; // this is its form
    }
    let create = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(60) {like}) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin";
    let Some(mut pair) = Pair::on_one_server(kind, create, "") else {
        return;
    };
    let (index, gram) = (
        pair.behind.connect().text(GRAM_INDEX).unwrap(),
        pair.behind.connect().text(GRAM_COLUMN).unwrap(),
    );
    pair.behind.connect().must(&format!(
        "ALTER TABLE app.t DROP KEY `{index}`, MODIFY `{gram}` TEXT CHARACTER SET ascii COLLATE ascii_bin NULL INVISIBLE, \
         ADD FULLTEXT KEY `{index}` (`{gram}`)"
    ));
    pair.protected.must("ALTER TABLE t COMMENT 'of old'");
    pair.plain.must("ALTER TABLE t COMMENT 'of old'");
    let all = |pair: &mut Pair, column: &str| {
        for sql in [
            "SELECT * FROM t WHERE name LIKE '%needle%' ORDER BY id",
            "SELECT id FROM t WHERE name NOT LIKE 'a%' ORDER BY id",
            "SHOW CREATE TABLE t",
            "SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE()",
        ] {
            let sql = sql.replace("name", column);
            let (a, b) = (pair.plain.text(&sql), pair.protected.text(&sql));
            assert_eq!(a.unwrap(), b.unwrap(), "{sql}");
        }
    };
    pair.both("INSERT INTO t VALUES (1, 'a needle'), (2, 'hay'), (3, NULL)");
    pair.both("INSERT INTO t VALUES (2, 'x') ON DUPLICATE KEY UPDATE name = 'the needle'");
    all(&mut pair, "name");
    let words = pair
        .behind
        .connect()
        .text(&format!("SELECT `{gram}` FROM app.t WHERE id = 1"));
    assert_eq!(words.unwrap().split(' ').next().unwrap().len(), 6);
    // the protected table is copied, because its constraint changes
    for session in [&mut pair.plain, &mut pair.protected] {
        session.must("ALTER TABLE t RENAME COLUMN name TO called");
    }
    all(&mut pair, "called");
    for arguments in [["--drop", "called: like"], ["--add", "called: like"]] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_onionskin"));
        command.args(["migrate", "--backend", &pair.behind.address(), "-c"]);
        command.arg(pair.proxy.folder().join("onionskin.toml"));
        command.args(["app.t", "--drop-old"]).args(arguments);
        let output = command.output().expect("onionskin runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
    pair.protected = pair.proxy.connect_to("app");
    for sql in [
        "SELECT * FROM t WHERE called LIKE '%needle%'",
        "SELECT id FROM t WHERE called NOT LIKE 'a%'",
    ] {
        assert!(pair.same_rows_in_any_order(sql, &[]) > 0, "{sql}");
    }
    let sent = soundness::sent_for(&mut pair, "SELECT id FROM t WHERE called LIKE '%needle%'");
    assert!(sent.contains(" MEMBER OF("), "{sent}");
}

/// Rows that match before and after every change are in every answer.
fn rows_that_match_are_always_found(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(60) {like}) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin";
    let Some(mut pair) = Pair::on_one_server(kind, create, "") else {
        return;
    };
    let rows: Vec<String> = (0..100)
        .map(|id| format!("({id}, 'a needle {id}')"))
        .collect();
    pair.protected
        .must(&format!("INSERT INTO t VALUES {}", rows.join(",")));
    let seconds = if long_run() { 30 } else { 2 };
    let end = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    let mut writer = pair.proxy.connect_to("app");
    let writing = std::thread::spawn(move || {
        let mut writes = 0u32;
        while std::time::Instant::now() < end {
            let id = writes % 50;
            writer.must(&format!(
                "UPDATE t SET name = 'the needle {writes}' WHERE id = {id}"
            ));
            writes += 1;
        }
        writes
    });
    let mut searches = 0;
    while std::time::Instant::now() < end {
        let found = pair
            .protected
            .text("SELECT id FROM t WHERE name LIKE '%needle%'")
            .unwrap();
        assert_eq!(found.lines().count(), 100);
        searches += 1;
    }
    let writes = writing.join().unwrap();
    assert!(
        searches > 10 && writes > 10,
        "{searches} searches, {writes} writes"
    );
    // afterwards, all of them are there
    let found = pair
        .protected
        .text("SELECT COUNT(*) FROM t WHERE name LIKE '%needle%'");
    assert_eq!(found.unwrap(), "100");
}

/// An index must not lose the rows of a statement in which a later row meets a duplicate, as
/// MySQL's full-text indexes do.
fn rows_beside_duplicates_are_found(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(60) {like}) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin";
    let Some(mut pair) = Pair::on_one_server(kind, create, "") else {
        return;
    };
    pair.both("INSERT INTO t VALUES (2, 'there before')");
    pair.both("INSERT IGNORE INTO t VALUES (14, 'ignored beside'), (2, 'not taken')");
    pair.both("INSERT INTO t VALUES (16, 'upserted beside'), (2, 'x') ON DUPLICATE KEY UPDATE name = 'an update'");
    pair.both("REPLACE INTO t VALUES (17, 'replaced beside'), (2, 'a replacement')");
    for pattern in [
        "%beside%",
        "%replacement",
        "ignored%",
        "%not taken%",
        "%update%",
    ] {
        let sql = format!("SELECT id FROM t WHERE name LIKE '{pattern}' ORDER BY id");
        pair.same_rows_in_any_order(&sql, &[]);
    }
}
