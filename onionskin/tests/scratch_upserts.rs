//! `ON DUPLICATE KEY UPDATE` with expressions over protected columns: rows, counts, numbers and
//! warnings are as on a plain server.

#[path = "scratch/findings.rs"]
mod findings;
use ::mysql::Value;
use findings::Findings;
use onionskin_testkit::*;

on_both_servers!(
    rows_are_met_as_on_a_plain_server,
    settings_and_failures,
    rows_that_meet_the_same_row_count_as_there,
    sessions_that_count_lose_nothing,
    what_is_not_sound_is_refused,
    a_failure_leaves_nothing_for_the_next_statement,
    zeros_keep_their_signs,
    without_a_strict_mode,
);

const TABLES: &str = "
CREATE TABLE tally (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) NOT NULL {eq}, k INT {range}, c VARCHAR(30) {}, n INT DEFAULT 3, \
 at TIMESTAMP NULL {}, changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, UNIQUE KEY (name));
CREATE TABLE two (a INT NOT NULL {eq}, b INT NOT NULL, c VARCHAR(300) COLLATE utf8mb4_bin NULL {eq}, d DECIMAL(10,2) {}, e INT, \
 PRIMARY KEY (a, b), UNIQUE KEY uc (c), UNIQUE KEY ue (e));
CREATE TABLE source (id INT PRIMARY KEY, word VARCHAR(20) {}, n INT);
CREATE TABLE needed (id INT PRIMARY KEY, k INT NOT NULL {range}, c VARCHAR(30) NOT NULL {}, n INT NOT NULL, b BLOB NOT NULL {});
CREATE TABLE shared (id INT PRIMARY KEY AUTO_INCREMENT, c VARCHAR(30) {}, n INT DEFAULT 5, UNIQUE KEY (n))
";

const ROWS: &[&str] = &[
    "SET timestamp = 1700000000",
    "INSERT INTO tally VALUES (1, 'Anna', 5, 'a', 1, '2024-03-31 02:30:00', DEFAULT), (2, 'bert', NULL, NULL, NULL, NULL, DEFAULT), \
     (3, 'Zoë', -7, 'zz', 9, '2001-09-09 01:46:40', DEFAULT)",
    "INSERT INTO two VALUES (1, 1, 'x', 1.25, 10), (1, 2, 'y', 2.5, 20), (2, 1, NULL, 0, NULL), (3, 3, 'z', NULL, 30)",
    "INSERT INTO source VALUES (1, 'ANNA', 10), (2, 'new', 20), (3, 'bert', NULL), (4, 'New', 7)",
    "SET timestamp = 1700001000",
];

const CONTENTS: &[&str] = &[
    "SELECT * FROM tally ORDER BY id",
    "SELECT a, b, c, d, e FROM two ORDER BY a, b",
    "SELECT * FROM needed ORDER BY id",
];

const STATEMENTS: &[&str] = &[
    "INSERT INTO tally (name, k) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE k = k + 1",
    "INSERT INTO tally (name, k) VALUES ('Carl', 1) ON DUPLICATE KEY UPDATE k = k + 1",
    "INSERT INTO tally (name, k, c) VALUES ('ANNA', 2, 'b'), ('dora', 3, 'd'), ('Dora', 4, 'e'), ('bert', 5, 'f') \
     ON DUPLICATE KEY UPDATE c = CONCAT(IFNULL(c, '-'), VALUES(c)), k = VALUES(k) + IFNULL(k, 0), n = n + 1",
    // nothing changes, or not everything
    "INSERT INTO tally (name, k) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE k = k + 0, c = CONCAT(c, '')",
    "INSERT INTO tally (name, k) VALUES ('zoë', 1), ('bert', 2) ON DUPLICATE KEY UPDATE k = IF(k < 0, k, k * 10)",
    "INSERT INTO tally (name, k) VALUES ('bert', 7) ON DUPLICATE KEY UPDATE c = IF(k IS NULL, 'none', 'some'), k = VALUES(k) + 1, n = VALUES(n) + 1",
    // the new row by other means
    "INSERT INTO tally SET name = CONCAT('an', 'na'), k = 4 ON DUPLICATE KEY UPDATE k = k - VALUES(k)",
    "INSERT INTO tally (name, k, at) VALUES (LOWER('ZOË'), 1 + 1, NOW()) ON DUPLICATE KEY UPDATE at = at + INTERVAL 1 DAY, k = ABS(k)",
    "INSERT INTO tally (name, c, n) VALUES ('anna', DEFAULT, DEFAULT) ON DUPLICATE KEY UPDATE c = UPPER(c), n = VALUES(n)",
    "INSERT INTO tally VALUES (NULL, 'anna', 1, 'q', 2, NULL, DEFAULT), (0, 'neu', 1, 'q', 2, NULL, DEFAULT) ON DUPLICATE KEY UPDATE c = REVERSE(CONCAT(c, 'ab'))",
    // given numbers
    "INSERT INTO tally (id, name, k) VALUES (1, 'other', 9) ON DUPLICATE KEY UPDATE k = k + VALUES(k), name = CONCAT(name, '!')",
    "INSERT INTO tally (id, name, k) VALUES (500, 'five', 9) ON DUPLICATE KEY UPDATE k = k + VALUES(k)",
    "INSERT INTO tally (id, name, k) VALUES (3, 'bert', 9) ON DUPLICATE KEY UPDATE k = k + 100",
    "INSERT INTO tally (name, k) VALUES ('bert', 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), k = k + 1",
    "INSERT INTO tally (name, k) VALUES ('gina', 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), k = k + 1",
    "INSERT INTO tally (name, k) VALUES ('hugo', 1), ('bert', 1), ('ida', 2) ON DUPLICATE KEY UPDATE k = k + VALUES(k)",
    "INSERT INTO tally (name, k) VALUES ('bert', 1), ('jana', 1) ON DUPLICATE KEY UPDATE k = k + VALUES(k)",
    // the key itself
    "INSERT INTO tally (name, k) VALUES ('bert', 1) ON DUPLICATE KEY UPDATE name = CONCAT('R', name), id = id + 1000",
    "INSERT INTO tally (name) VALUES ('anna!'), ('rbert'), ('rbert') ON DUPLICATE KEY UPDATE name = CONCAT(name, name)",
    "INSERT INTO tally (name) VALUES ('zoë') ON DUPLICATE KEY UPDATE name = CONCAT('hu', 'go'), k = k + 1",
    // several keys, several rows
    "INSERT INTO two VALUES (1, 1, 'y', 5, 30) ON DUPLICATE KEY UPDATE d = d + VALUES(d)",
    "INSERT INTO two VALUES (9, 9, 'y', 5, 30) ON DUPLICATE KEY UPDATE d = d + VALUES(d), c = CONCAT(c, c)",
    "INSERT INTO two VALUES (9, 9, 'none', 5, 30) ON DUPLICATE KEY UPDATE d = IFNULL(d, 0) + VALUES(d), e = e + 1",
    "INSERT INTO two (a, b, e) VALUES (7, 7, 20), (7, 7, NULL), (8, 8, 20) ON DUPLICATE KEY UPDATE d = e * 1.5, e = e + 1, a = a + 0",
    "INSERT INTO two (a, b, c) VALUES (2, 1, NULL), (2, 1, NULL) ON DUPLICATE KEY UPDATE c = CONCAT(a, '/', b), d = a + b",
    "INSERT INTO two (a, b, c) VALUES (1, 1, NULL) ON DUPLICATE KEY UPDATE a = a + 50, d = d * 2",
    // conversions, warnings, errors
    "INSERT INTO tally (name, k) VALUES ('anna!', 1) ON DUPLICATE KEY UPDATE k = 'five'",
    "INSERT INTO tally (name, k) VALUES ('five', 1) ON DUPLICATE KEY UPDATE k = 'five', c = k + 1",
    "INSERT INTO tally (id, name, k) VALUES (800, 'first', 1), (801, 'five', 1) ON DUPLICATE KEY UPDATE k = k * 1000000000 * 10",
    "INSERT INTO tally (id, name, k) VALUES (800, 'first', 1), (801, 'five', 'x') ON DUPLICATE KEY UPDATE k = k + 1",
    // behind an error, servers leave LAST_INSERT_ID() undefined
    "INSERT INTO tally (id, name, k) VALUES (800, 'first', 1), (801, 'five', 2) ON DUPLICATE KEY UPDATE c = REPEAT(name, 20)",
    "INSERT INTO tally (k) VALUES (1) ON DUPLICATE KEY UPDATE k = k + 1",
    "INSERT INTO tally (name, k) VALUES (NULL, 1) ON DUPLICATE KEY UPDATE k = k + 1",
    "INSERT INTO tally (name, k) VALUES ('five', 1) ON DUPLICATE KEY UPDATE name = NULL, k = k + 1",
    "INSERT INTO tally (name, k) VALUES ('five', 1) ON DUPLICATE KEY UPDATE k = k / 0 + 1, c = NULL",
    "INSERT INTO tally (name) VALUES ('five') ON DUPLICATE KEY UPDATE k = nope + 1",
    // rows of queries
    "INSERT INTO tally (name, k, c) SELECT word, n, 'q' FROM source ORDER BY id ON DUPLICATE KEY UPDATE k = IFNULL(tally.k, 0) + VALUES(k), c = CONCAT(tally.c, VALUES(c))",
    "INSERT INTO tally (name, k) SELECT s.name, s.k FROM tally AS s WHERE s.k > 0 ORDER BY s.id ON DUPLICATE KEY UPDATE k = tally.k + VALUES(k)",
    "INSERT INTO tally (name, k) SELECT CONCAT('s', id), n FROM source ORDER BY id ON DUPLICATE KEY UPDATE k = tally.k * 2",
    "INSERT INTO tally (name, k) SELECT CONCAT('s', id), n FROM source WHERE id > 100 ON DUPLICATE KEY UPDATE k = tally.k * 2",
    // a constant behind other numbers of rows than before
    "INSERT INTO tally (name, k) VALUES ('five', 1), ('kim', 2) ON DUPLICATE KEY UPDATE k = 77",
    "INSERT INTO tally (name, k) VALUES ('five', 1), ('kim', 2), ('lea', 3) ON DUPLICATE KEY UPDATE k = 88",
    "INSERT INTO tally (name, k) VALUES ('five', 1) ON DUPLICATE KEY UPDATE k = 99",
];

/// The new row's alias, which MySQL has.
const WITH_ALIAS: &[&str] = &[
    "INSERT INTO tally (name, k, c) VALUES ('anna', 1, 'x') AS new ON DUPLICATE KEY UPDATE c = CONCAT(tally.c, new.c), k = new.k + tally.k",
    "INSERT INTO tally (name, k, n) VALUES ('anna', 1, 5), ('olga', 2, 6), ('Olga', 3, 7) AS new ON DUPLICATE KEY UPDATE k = new.k * 2, n = new.n",
    "INSERT INTO tally SET name = 'anna', k = 9 AS new ON DUPLICATE KEY UPDATE k = GREATEST(new.k, tally.k)",
];

fn stage(kind: Kind) -> Option<Pair> {
    Some(Pair::with_engine(kind, TABLES)?.filled(ROWS))
}

fn findings() -> Findings {
    Findings {
        tables: CONTENTS,
        counted: &["tally"],
        ..Findings::default()
    }
}

fn rows_are_met_as_on_a_plain_server(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = findings();
    for sql in STATEMENTS {
        findings.both_ways(&mut pair, sql, &[]);
    }
    if kind == Kind::MySql {
        for sql in WITH_ALIAS {
            findings.both_ways(&mut pair, sql, &[]);
        }
    }
    findings.both_ways(
        &mut pair,
        "INSERT INTO tally (name, k, c) VALUES (?, ?, 'c'), (?, 3, ?) ON DUPLICATE KEY UPDATE k = k + ?, c = CONCAT(IFNULL(c, ''), ?)",
        &[
            Value::from("ANNA!"),
            7.into(),
            Value::from("five"),
            Value::from("d"),
            11.into(),
            Value::from("e"),
        ],
    );
    // MariaDB does not miss what the clause assigns
    for sql in [
        "INSERT INTO needed (id) VALUES (1), (2) ON DUPLICATE KEY UPDATE k = k + 1, c = CONCAT(c, 'x'), n = n + 1, b = CONCAT(b, 'y')",
        "INSERT INTO needed (id) VALUES (1) ON DUPLICATE KEY UPDATE k = k + 1, c = CONCAT(c, 'x'), n = n + 1, b = CONCAT(b, 'y')",
        "INSERT INTO needed (id) SELECT id + 1 FROM source ON DUPLICATE KEY UPDATE k = needed.k + 5, c = UPPER(needed.c), n = needed.n + 1, b = LOWER(needed.b)",
        "INSERT INTO needed (id) VALUES (1) ON DUPLICATE KEY UPDATE k = k + 1",
    ] {
        findings.both_ways(&mut pair, sql, &[]);
    }
    // a column that is not there
    findings.conclude(&mut pair, 2);
}

fn rows_that_meet_the_same_row_count_as_there(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = Findings {
        tables: &["SELECT * FROM shared ORDER BY id"],
        counted: &["shared"],
        ..Findings::default()
    };
    for sql in [
        // by a default
        "INSERT INTO shared (id, c) VALUES (10, 'a'), (11, 'a') ON DUPLICATE KEY UPDATE c = VALUES(c)",
        "INSERT INTO shared (id, c) VALUES (12, 'a'), (13, 'b') ON DUPLICATE KEY UPDATE c = VALUES(c)",
        "INSERT INTO shared VALUES (20, NULL, 7)",
        "INSERT INTO shared VALUES (21, 'x', 7), (22, 'x', 7) ON DUPLICATE KEY UPDATE c = VALUES(c)",
        // by one key and another
        "INSERT INTO shared VALUES (3, 'q', 5), (10, 'q', 26) ON DUPLICATE KEY UPDATE c = VALUES(c)",
        "INSERT INTO shared VALUES (3, 'r', 5), (10, 's', 26), (4, 's', 5) ON DUPLICATE KEY UPDATE c = VALUES(c)",
        "INSERT INTO shared VALUES (3, 's', 5), (10, 's', 26) ON DUPLICATE KEY UPDATE c = VALUES(c)",
    ] {
        findings.both_ways(&mut pair, sql, &[]);
    }
    findings.conclude(&mut pair, 0);
}

fn settings_and_failures(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = findings();
    for setting in [
        "SET sql_mode = ''",
        "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES', time_zone = '+05:30'",
        "SET sql_mode = DEFAULT, sql_select_limit = 1, autocommit = 0",
        "SET NAMES latin1",
        "SET NAMES utf8mb4, @by = 3, sql_select_limit = DEFAULT, autocommit = 1",
    ] {
        pair.run(setting);
        for sql in [
            "INSERT INTO tally (name, k, at) VALUES ('anna', 1, '2024-07-01 12:00:00'), ('anna', 2, '2024-07-02 12:00:00') \
             ON DUPLICATE KEY UPDATE at = VALUES(at) + INTERVAL 1 HOUR, k = k + VALUES(k), n = n + 1",
            "INSERT INTO tally (name, k) VALUES ('bert', 3000000000) ON DUPLICATE KEY UPDATE k = VALUES(k) + 1, c = REPEAT('ab', 40)",
            "INSERT INTO tally (name, k) VALUES ('zoë', 1) ON DUPLICATE KEY UPDATE k = k + IFNULL(@by, 1), name = LOWER(name)",
        ] {
            findings.both_ways(&mut pair, sql, &[]);
        }
    }
    // what was done before a failure stays, what the statement did does not
    for begin in ["DO 0", "BEGIN"] {
        pair.run(begin);
        pair.run("UPDATE tally SET n = 77 WHERE id = 2");
        for sql in [
            "INSERT INTO tally (id, name, k) VALUES (6000, 'w1', 1), (6001, 'anna', 1), (6002, 'bert', 1) ON DUPLICATE KEY UPDATE name = CONCAT('zo', 'ë')",
            "INSERT INTO tally (id, name, k) VALUES (7000, 'w2', 1), (7001, 'anna', 1), (7002, 'zoë', 1) ON DUPLICATE KEY UPDATE k = IF(id = 1, k + 1, 1e12)",
        ] {
            findings.run(&mut pair, sql, None);
            findings.contents(&mut pair, sql);
        }
        pair.run("COMMIT");
        findings.contents(&mut pair, begin);
    }
    findings.conclude(&mut pair, 0);
}

/// Each session counts on every key once.
fn counted(pair: &mut Pair, prefix: &str, setting: Option<&str>) {
    const SESSIONS: usize = 3;
    const ROUNDS: usize = 15;
    let proxy = &pair.proxy;
    std::thread::scope(|scope| {
        for _ in 0..SESSIONS {
            scope.spawn(move || {
                let mut session = proxy.connect_to("app");
                if let Some(setting) = setting {
                    session.must(setting);
                }
                for round in 0..ROUNDS {
                    session.must(&format!(
                        "INSERT INTO tally (name, k, n) VALUES ('{prefix} {round}', 1, 1) ON DUPLICATE KEY UPDATE k = k + VALUES(k), n = n + 1"
                    ));
                }
            });
        }
    });
    let counts = format!(
        "SELECT COUNT(*), MIN(k), MAX(k), MIN(n), MAX(n) FROM tally WHERE name LIKE '{prefix}%'"
    );
    assert_eq!(
        pair.protected.text(&counts).expect("counts"),
        format!("{ROUNDS}\t{SESSIONS}\t{SESSIONS}\t{SESSIONS}\t{SESSIONS}")
    );
}

/// Sessions that meet on keys which are not there yet, each statement a transaction of its own, and
/// in transactions.
fn sessions_that_count_lose_nothing(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    counted(&mut pair, "key", None);
    if kind == Kind::MariaDb {
        // the default of later versions: what has changed since the snapshot is error 1020
        let isolation = "SET innodb_snapshot_isolation = ON";
        counted(&mut pair, "isolated", Some(isolation));
    }
    // a row that a transaction has met stays locked
    let mut other = pair.proxy.connect_to("app");
    other.must("SET innodb_lock_wait_timeout = 1");
    pair.protected.must("BEGIN");
    let sql = "INSERT INTO tally (name, k) VALUES ('key 1', 1) ON DUPLICATE KEY UPDATE k = k + 1";
    pair.protected.must(sql);
    assert_eq!(other.must_fail(sql), 1205);
    pair.protected.must("ROLLBACK");
    other.must(sql);
    if kind == Kind::MariaDb {
        // on by default in later versions, where what follows is error 1020 as on a plain server
        pair.protected.must("SET innodb_snapshot_isolation = OFF");
    }
    // a key that is newer than the transaction's snapshot
    pair.protected.must("BEGIN");
    pair.protected.must("SELECT COUNT(*) FROM tally");
    other.must("INSERT INTO tally (name, k) VALUES ('later', 40)");
    pair.protected.must(
        "INSERT INTO tally (name, k) VALUES ('later', 2) ON DUPLICATE KEY UPDATE k = k + VALUES(k)",
    );
    pair.protected.must("COMMIT");
    let later = pair
        .protected
        .text("SELECT k FROM tally WHERE name = 'later'");
    assert_eq!(later.expect("a row"), "42");
    // a row under an earlier key that the snapshot does not show, beside one under a later key that
    // does not change
    pair.protected.must("BEGIN");
    pair.protected.must("SELECT COUNT(*) FROM tally");
    other.must("INSERT INTO tally (id, name, k) VALUES (900, 'new', 0)");
    pair.protected.must(
        "INSERT INTO tally (id, name, k) VALUES (900, 'later', 1) ON DUPLICATE KEY UPDATE k = GREATEST(k, VALUES(k))",
    );
    pair.protected.must("COMMIT");
    let both = "SELECT GROUP_CONCAT(k ORDER BY k) FROM tally WHERE name IN ('later', 'new')";
    assert_eq!(pair.protected.text(both).expect("two rows"), "1,42");
    after_a_deadlock(&mut pair.protected, other);
}

/// Behind a deadlock there is no transaction any more: a statement of several rows begins one of
/// its own.
fn after_a_deadlock(first: &mut Session, mut second: Session) {
    second.must("SET innodb_lock_wait_timeout = 20");
    for (session, id) in [(&mut *first, 1), (&mut second, 2)] {
        session.must("BEGIN");
        session.must(&format!("UPDATE source SET n = 5 WHERE id = {id}"));
    }
    let (ours, theirs) = std::thread::scope(|scope| {
        let waits = scope.spawn(|| second.run("UPDATE source SET n = 6 WHERE id = 1"));
        std::thread::sleep(std::time::Duration::from_millis(300));
        let ours = first.run("UPDATE source SET n = 6 WHERE id = 2");
        if ours.is_ok() {
            first.must("COMMIT");
        }
        (ours, waits.join().expect("no panic"))
    });
    let codes = [&ours, &theirs].map(|done| done.as_ref().err().map(|e| e.code));
    let victim = match codes {
        [Some(1213), None] => first,
        [None, Some(1213)] => &mut second,
        other => panic!("no deadlock: {other:?}"),
    };
    let sql = "INSERT INTO tally (name, k) VALUES ('later', 1), ('new', 1) ON DUPLICATE KEY UPDATE k = k + VALUES(k)";
    assert_eq!(victim.must(sql).affected, 4);
    victim.must("ROLLBACK");
    let both = "SELECT GROUP_CONCAT(k ORDER BY k) FROM tally WHERE name IN ('later', 'new')";
    assert_eq!(victim.text(both).expect("two rows"), "2,43");
}

fn what_is_not_sound_is_refused(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    for sql in [
        // values of protected columns for plain ones
        "INSERT INTO tally (name, k) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE n = k + 1",
        "INSERT INTO tally (name, k) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE k = k + 1, n = VALUES(k) + 0",
        "INSERT INTO tally (name, k) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE n = LENGTH(tally.c)",
        "INSERT INTO tally (name, k) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE k = k + 1, n = `@k`",
        // what the engine cannot know
        "INSERT INTO tally (name, k) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE k = VALUES(id) + k",
        "INSERT INTO tally (name, k) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE k = k + (SELECT MAX(n) FROM source)",
        "INSERT INTO tally (name, k) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE k = k + SLEEP(0)",
        "INSERT IGNORE INTO tally (name, k) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE k = k + 1",
        "INSERT INTO tally (name, k) SELECT word, n FROM source ON DUPLICATE KEY UPDATE k = tally.k + source.n",
        "INSERT INTO tally (name, k) SELECT word, n FROM source ON DUPLICATE KEY UPDATE k = k + n",
        "INSERT INTO tally (name, k) SELECT name, k FROM tally ON DUPLICATE KEY UPDATE k = tally.k + 1",
        "INSERT INTO two VALUES (1, 1, 'q', 1, 1) ON DUPLICATE KEY UPDATE a = a + 1, b = b + 1, d = d + 1",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1"), "{sql}: {failure}");
    }
    // a trigger that changes what the clause reads
    let trigger =
        "CREATE TRIGGER app.gives BEFORE INSERT ON app.tally FOR EACH ROW SET NEW.n = NEW.n * 2";
    pair.behind.connect().must(trigger);
    let sql =
        "INSERT INTO tally (name, n) VALUES ('anna', 4) ON DUPLICATE KEY UPDATE k = k + VALUES(n)";
    // without a change, too
    let same = "INSERT INTO tally (name, n) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE k = GREATEST(k, VALUES(n))";
    for sql in [sql, same] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1"), "{sql}: {failure}");
    }
    pair.behind.connect().must("DROP TRIGGER app.gives");
    let mut findings = findings();
    findings.contents(&mut pair, "refusals");
    findings.both_ways(&mut pair, sql, &[]);
    findings.conclude(&mut pair, 0);
}

/// The rows that were met lie at the engine no longer when the clause has failed.
fn a_failure_leaves_nothing_for_the_next_statement(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let next = [
        "SELECT UPPER(name), k + 1 FROM tally ORDER BY id",
        "UPDATE tally SET c = CONCAT(c, 'x') WHERE LOWER(name) = 'anna'",
        "DELETE FROM tally WHERE LOWER(name) = 'nobody'",
        "INSERT INTO tally (name, k) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE k = k + 1",
    ];
    for next in next {
        let fails = "INSERT INTO tally (name, k) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE k = k + 99999999999";
        assert_eq!(pair.same_error(fails), 1264);
        pair.same(next);
    }
    let keeps = "INSERT INTO tally (name, k) VALUES ('anna', 1) ON DUPLICATE KEY UPDATE name = CONCAT('be', 'rt'), k = k + 1";
    let said = pair.say(keeps);
    assert!(said.plain.starts_with("1062"), "{said:?}");
    pair.same(next[0]);
}

/// The sign of a zero goes to the engine and comes back.
fn zeros_keep_their_signs(kind: Kind) {
    let table = "CREATE TABLE zeros (id INT PRIMARY KEY, d DOUBLE {}, f FLOAT {}, n INT {range})";
    let Some(mut pair) = Pair::of(kind, true, &[table]) else {
        return;
    };
    pair.same("INSERT INTO zeros VALUES (1, -0e0, -0e0, 1), (2, 0e0, 0e0, 2)");
    let shown = "SELECT id, CONCAT(d), CONCAT(f), n + 0 FROM zeros ORDER BY id";
    pair.same(shown);
    pair.same("INSERT INTO zeros SELECT id + 10, d, f, n + 1 FROM zeros");
    pair.same("UPDATE zeros SET n = n + 5 WHERE CONCAT(n) = '1'");
    pair.same(shown);
    pair.same("SELECT * FROM zeros ORDER BY id");
}

/// A column without a default has a value all the same, perhaps one of another row's key; and NULL
/// is one, behind several rows.
fn without_a_strict_mode(kind: Kind) {
    let tables = "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL {eq}, b INT {eq}, UNIQUE KEY (a));
        CREATE TABLE u (id INT PRIMARY KEY, a INT NOT NULL {eq}, b INT NOT NULL {}, p INT NOT NULL)";
    let Some(mut pair) = Pair::with_engine(kind, tables) else {
        return;
    };
    pair.both("SET sql_mode = ''");
    pair.both("INSERT INTO t VALUES (1, 0, 1)");
    pair.both("INSERT INTO u VALUES (1, 1, 1, 1), (2, 2, 2, 2)");
    for sql in [
        "INSERT INTO t (id, b) VALUES (2, 7) ON DUPLICATE KEY UPDATE b = b + 10",
        "INSERT INTO t (id, b) VALUES (2, 7), (3, 8) ON DUPLICATE KEY UPDATE b = ABS(b) + 1",
        "INSERT INTO t (id, a, b) VALUES (2, 0, 7) ON DUPLICATE KEY UPDATE b = b + 10",
        "INSERT INTO u VALUES (1, 1, 1, 1), (2, 2, 2, 2) ON DUPLICATE KEY UPDATE b = NULLIF(b, 1)",
        "INSERT INTO u VALUES (1, 1, 1, 1), (2, 2, 2, 2) ON DUPLICATE KEY UPDATE b = NULLIF(b, b)",
        "INSERT INTO u VALUES (1, 1, 1, 1) ON DUPLICATE KEY UPDATE b = NULLIF(b, b)",
        "INSERT INTO u (id, a, b) VALUES (1, 1, 1), (3, 3, 3) ON DUPLICATE KEY UPDATE b = b + 1",
        "INSERT INTO u (id, b, p) VALUES (1, 1, 1), (2, 2, 2) ON DUPLICATE KEY UPDATE b = ABS(b) + 1",
        "INSERT INTO u (id, a, b, p) VALUES (1, 1, 1, 1), (2, 2, 2, 2) ON DUPLICATE KEY UPDATE b = b + 1",
    ] {
        if pair.same_if_done(sql) {
            pair.same("SHOW WARNINGS");
        }
        for table in ["t", "u"] {
            pair.same_result(&format!("SELECT * FROM {table} ORDER BY id"));
        }
    }
}
