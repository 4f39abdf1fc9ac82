//! Forms of statements that are seldom written and that servers take: through the proxy they say
//! what a plain server says.

use std::io::Write;
use std::time::{Duration, Instant};

use ::mysql::prelude::Queryable;
use ::mysql::{LocalInfileHandler, Value};
use onionskin_testkit::*;

on_both_servers!(
    table_statements,
    rows_with_their_word,
    changes_behind_with,
    rows_that_others_have_locked,
    histograms_of_plain_columns,
    national_and_long_types,
    versions_in_comments,
    files_that_are_loaded_in_other_words,
    views_that_are_made_anew,
    long_data_in_conditions,
);

const USERS: &str = "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(40) {eq, range}, age INT {eq}, note VARCHAR(40))";
const PLAIN: &str =
    "CREATE TABLE plain (id INT PRIMARY KEY, name VARCHAR(40), age INT, note VARCHAR(40))";
const ROWS: [&str; 2] = [
    "INSERT INTO users VALUES (1, 'Hb4YqMz7', 30, 'x'), (2, 'Bob', 40, NULL), (3, 'Carl', NULL, 'z')",
    "INSERT INTO plain VALUES (1, 'Hb4YqMz7', 30, 'x'), (7, 'Zoe', 70, NULL)",
];

/// `TABLE t`, which MySQL has, with an engine and without one.
fn table_statements(kind: Kind) {
    if kind == Kind::MariaDb {
        return;
    }
    for engine in [Engine::Own, Engine::Missing] {
        let options = PairOptions {
            tables: &[USERS, PLAIN],
            engine,
            ..PairOptions::default()
        };
        let Some(pair) = Pair::start_with(kind, options) else {
            return;
        };
        // the plain table's rows are told to the server
        let mut pair = pair.filled(&ROWS);
        for sql in [
            "TABLE users",
            "table app.`users` ORDER BY id DESC LIMIT 2",
            "TABLE users ORDER BY name LIMIT 1 OFFSET 1",
            "(TABLE users)",
            "TABLE plain UNION SELECT id, 'x', 5, note FROM users ORDER BY 1, 2",
        ] {
            pair.same(sql);
            pair.same_result(sql);
        }
        for sql in [
            "TABLE users UNION TABLE users",
            "(TABLE users) UNION ALL (TABLE plain) ORDER BY id, name",
            "SELECT id FROM users WHERE (id, name, age, note) IN (TABLE plain)",
            "SELECT x.name FROM (TABLE users) AS x ORDER BY x.id",
            "WITH x AS (TABLE users) SELECT UPPER(name) FROM x ORDER BY id",
            "EXPLAIN FORMAT=TREE TABLE nowhere",
        ] {
            assert!(
                pair.same_or_refused(sql) || engine == Engine::Missing,
                "{sql}"
            );
        }
        if engine == Engine::Own {
            pair.run("CREATE TABLE copied LIKE users");
            pair.same("INSERT INTO copied TABLE users");
            pair.same("REPLACE INTO copied (id, name, age, note) TABLE users ORDER BY id LIMIT 1");
            pair.same("SELECT * FROM copied ORDER BY id");
            // a plain table does not get what was sealed
            let refused = pair.protected.run("INSERT INTO plain TABLE users");
            let refused = refused.expect_err("refused").message;
            assert!(refused.contains("OS1031"), "{refused}");
        }
        // the text of an expression is the name of its column
        for sql in [
            "SELECT (TABLE users LIMIT 1)",
            "SELECT 1 IN (TABLE users) FROM plain",
        ] {
            pair.same_or_refused(sql);
        }
        for sql in [
            "TABLE users WHERE id = 1",
            "TABLE users, plain",
            "TABLE users AS x",
        ] {
            assert!(pair.protected.run(sql).is_err(), "{sql}");
        }
    }
}

/// `INSERT … VALUES ROW(…)` and `VALUES ROW(…)`, which MySQL has; for MariaDB they are errors, but
/// for `VALUES (…)`.
fn rows_with_their_word(kind: Kind) {
    for engine in [Engine::Own, Engine::Missing] {
        let options = PairOptions {
            tables: &[USERS, PLAIN],
            engine,
            ..PairOptions::default()
        };
        let Some(pair) = Pair::start_with(kind, options) else {
            return;
        };
        let plain = ROWS[1].replace("Hb4YqMz7", "Ann");
        let mut pair = pair.filled(&[ROWS[0], &plain]);
        for sql in [
            "INSERT INTO users VALUES ROW(11, 'Hb4YqMz7', 30, 'a'), ROW(12, 'Bo', 1 + 1, DEFAULT)",
            "insert users (note, id, name) values row('x', 13, 'Eve'), row(NULL, 14, NULL), row('y', 15, DEFAULT);",
            "INSERT INTO users (id, name) VALUES ROW(11, 'Zed') ON DUPLICATE KEY UPDATE name = VALUES(name), age = 41",
            "REPLACE INTO app.users VALUES ROW(12, 'New', NULL, 'b')",
            "INSERT IGNORE INTO users (id, name) VALUES ROW(12, 'Not'), ROW(16, 'Yes')",
            "INSERT INTO users (id, name) VALUES ROW(12, 'dup')",
            "INSERT INTO users (id, name) VALUES ROW(17, 'one'), ROW(18)",
            "INSERT INTO users (id, age) VALUES ROW(17, 1), ROW(18, 'none')",
            "INSERT INTO users (id, name) VALUES ROW(19, CONCAT('Hb4Yq', 'Mz7'))",
            "INSERT INTO users () VALUES ROW()",
            "INSERT INTO users VALUES ROW(20, 'a', 1, 'a') AS new ON DUPLICATE KEY UPDATE name = new.name",
            "INSERT INTO users VALUES ROW(21, 'a', 1, 'a'), (22, 'b', 1, 'a')",
            "INSERT INTO users VALUES ROW(23, 'a', 1, 'a'), ROW(24, 'b', 1, 'a') ORDER BY 1 LIMIT 1",
            "INSERT INTO users (VALUES ROW(25, 'a', 1, 'a'))",
            "INSERT INTO plain (id, note) VALUES ROW(30, 'name'), ROW(31, 'age')",
        ] {
            pair.same_if_done(sql);
            pair.same("SELECT * FROM users ORDER BY id");
        }
        if kind == Kind::MySql {
            let rows = pair.protected.text("SELECT GROUP_CONCAT(id) FROM users");
            assert!(rows.is_err() || rows.is_ok_and(|ids| ids.contains("16")));
            for session in pair.sessions() {
                let sql = "INSERT INTO users (id, name, age) VALUES ROW(?, ?, ?), ROW(?, 'x', ?)";
                let values = ["41", "Hb4YqMz7", "7", "42", "8"].map(Value::from);
                session
                    .conn()
                    .exec_drop(sql, values.to_vec())
                    .expect("it is done");
            }
            pair.same("SELECT * FROM users WHERE id > 40 ORDER BY id");
            pair.run("PREPARE s FROM 'INSERT INTO users (id, name) VALUES ROW(?, ?)'");
            pair.run("SET @id = 43, @name = 'Hb4YqMz7'");
            pair.same("EXECUTE s USING @id, @name");
            pair.same("SELECT * FROM users WHERE id > 40 ORDER BY id");
        }
        values_as_tables(&mut pair, kind, engine == Engine::Own);
        pair.nothing_leaked();
    }
}

/// Lists of rows where a table may stand.
fn values_as_tables(pair: &mut Pair, kind: Kind, with_engine: bool) {
    let row = match kind {
        Kind::MySql => "ROW",
        Kind::MariaDb => "",
    };
    for sql in [
        "VALUES {row}(1, 'users'), {row}(2, 'name')",
        "VALUES {row}(1, (SELECT name FROM users WHERE id = 2)), {row}(2, 'name')",
        "VALUES {row}((SELECT COUNT(*) FROM users)), {row}(-1) ORDER BY 1 LIMIT 1",
        "SELECT id, name FROM users UNION ALL VALUES {row}(1000, 'a') ORDER BY 1",
        "VALUES {row}(1000, 'a') UNION ALL SELECT id, name FROM users ORDER BY 1",
        "SELECT id FROM users WHERE (id, name) IN (VALUES {row}(11, 'Zed'), {row}(1, 'Hb4YqMz7')) ORDER BY id",
        "SELECT u.id, v.b FROM users u JOIN (VALUES {row}(11, 'q'), {row}(12, 'New')) AS v (a, b) ON v.a = u.id AND \
             v.b = u.name",
        "WITH v (a, b) AS (VALUES {row}(11, 'q'), {row}(12, 'New')) SELECT u.name, v.b FROM users u, v WHERE u.id = v.a \
             ORDER BY 1",
        "UPDATE users SET name = 'Ann' WHERE id IN (VALUES {row}(11), {row}(13))",
        "INSERT INTO users (id, name) SELECT * FROM (VALUES {row}(51, 'Hb4YqMz7'), {row}(52, 'b')) AS v",
        "INSERT INTO users (id, name) SELECT 53, 'c' UNION VALUES {row}(54, 'd')",
    ] {
        let sql = sql.replace("{row}", row);
        assert!(pair.same_if_done(&sql) || !with_engine, "{sql}");
        pair.same("SELECT * FROM users ORDER BY id");
    }
}

/// `WITH … UPDATE` and `WITH … DELETE`, which MySQL has.
fn changes_behind_with(kind: Kind) {
    if kind == Kind::MariaDb {
        return;
    }
    let Some(pair) = Pair::with_engine(kind, &[USERS, PLAIN].join(";")) else {
        return;
    };
    let mut pair = pair.filled(&ROWS);
    for sql in [
        "WITH old AS (SELECT id FROM users WHERE UPPER(name) = 'BOB') UPDATE users SET note = 'y' WHERE id IN (SELECT id FROM old)",
        "WITH old (i, w) AS (SELECT id, CONCAT(name, 'x') FROM users WHERE age = 30) UPDATE users, old SET users.name = old.w \
             WHERE users.id = old.i",
        "WITH a AS (SELECT 3 AS x), b AS (SELECT x FROM a) UPDATE users JOIN b ON users.id = b.x SET users.age = users.id + 5",
        "WITH old AS (SELECT name FROM plain) DELETE FROM users WHERE name IN (SELECT name FROM old)",
        "WITH old AS (SELECT MAX(age) AS top FROM users) DELETE users FROM users, old WHERE users.age = old.top",
        "WITH old AS (SELECT id FROM plain WHERE name = 'Zoe') DELETE FROM plain WHERE id IN (SELECT id FROM old) AND 0 < \
             (SELECT COUNT(*) FROM users)",
    ] {
        pair.same(sql);
        pair.same("SELECT * FROM users ORDER BY id");
        pair.same("SELECT * FROM plain ORDER BY id");
        pair.run("REPLACE INTO users VALUES (2, 'Bob', 40, NULL), (3, 'Carl', NULL, 'z')");
    }
    // what is sealed does not become plain
    let sql = "WITH old AS (SELECT id, name FROM users) UPDATE plain, old SET plain.note = old.name WHERE plain.id = old.id";
    let refused = pair.protected.run(sql).expect_err("refused").message;
    assert!(refused.contains("OS1031"), "{refused}");
    for sql in [
        "WITH a AS (SELECT id FROM users) DELETE FROM users WHERE id IN (SELECT id FROM a) AND id IN (SELECT id FROM a)",
        "WITH RECURSIVE a AS (SELECT 1 AS x) DELETE FROM users WHERE id IN (SELECT x FROM a)",
        "WITH users AS (SELECT id FROM users) DELETE FROM plain WHERE id IN (SELECT id FROM users)",
    ] {
        let refused = pair.protected.run(sql).expect_err("refused").message;
        assert!(refused.contains("OS1"), "{refused}");
    }
    pair.same("SELECT * FROM users ORDER BY id");
    pair.same("SELECT * FROM plain ORDER BY id");
}

/// NOWAIT, SKIP LOCKED and WAIT, at each tier.
fn rows_that_others_have_locked(kind: Kind) {
    let Some(pair) = Pair::with_engine(kind, USERS) else {
        return;
    };
    let mut pair = pair.filled(&ROWS[..1]);
    let mut others = [
        Session::open(pair.beside().port(), "root", "", Some("app")),
        pair.proxy.connect_to("app"),
    ];
    for other in &mut others {
        other.must("BEGIN");
        other.must("SELECT id FROM users WHERE id = 2 FOR UPDATE");
    }
    let shares = match kind {
        Kind::MariaDb => "LOCK IN SHARE MODE",
        Kind::MySql => "FOR SHARE",
    };
    for what in ["name", "name, UPPER(name)"] {
        for lock in ["FOR UPDATE", shares] {
            let ask = |id: u32, how: &str| {
                format!("SELECT {what} FROM users WHERE id = {id} {lock} {how}")
            };
            for id in [1, 2] {
                pair.same(&ask(id, "SKIP LOCKED"));
                pair.same(&ask(id, "NOWAIT"));
            }
            let refused = pair.protected.must_fail(&ask(2, "NOWAIT"));
            assert!([1205, 3572].contains(&refused), "{refused}");
            pair.same(&format!(
                "SELECT {what} FROM users ORDER BY name {lock} SKIP LOCKED"
            ));
        }
    }
    if kind == Kind::MySql {
        return;
    }
    for lock in ["FOR UPDATE", shares] {
        for sql in [
            format!("SELECT name FROM users WHERE id = 1 {lock} WAIT 1"),
            format!("SELECT name FROM users WHERE id = 1 ORDER BY name LIMIT 1 {lock} WAIT 1;"),
            format!("SELECT name FROM users WHERE id = 2 {lock} WAIT 1"),
        ] {
            let begun = Instant::now();
            pair.same(&sql);
            assert!(begun.elapsed() < Duration::from_secs(20), "{sql}");
        }
        pair.same_result(&format!(
            "SELECT name FROM users WHERE id = 1 {lock} WAIT 1"
        ));
        // the engine's reads wait so, too
        for id in [1, 2] {
            let ask =
                |lock: &str| format!("SELECT UPPER(name) FROM users WHERE id = {id} {lock} WAIT 1");
            let begun = Instant::now();
            let said = pair.same(&ask(lock));
            assert!(begun.elapsed() < Duration::from_secs(20), "{lock}");
            assert_eq!(said.contains("1205"), id == 2, "{said}");
        }
        pair.same(&format!(
            "SELECT UPPER(a.name), b.age FROM users a JOIN users b ON b.id = a.id WHERE a.id = 1 AND b.id = 1 {lock} WAIT 0"
        ));
        // which of the reads waits is not told
        let sql = format!(
            "(SELECT UPPER(name) FROM users WHERE id = 1 {lock} WAIT 1) UNION SELECT name FROM users WHERE id = 1 {lock} WAIT 2"
        );
        pair.same_or_refused(&sql);
    }
}

/// MySQL's histograms.
fn histograms_of_plain_columns(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    pair.create(USERS);
    pair.create("CREATE VIEW seen AS SELECT id, note FROM users");
    let mut pair = pair.filled(&ROWS[..1]);
    for sql in [
        "ANALYZE TABLE users UPDATE HISTOGRAM ON note",
        "ANALYZE TABLE app.users UPDATE HISTOGRAM ON note, `id` WITH 16 BUCKETS",
        "ANALYZE LOCAL TABLE users UPDATE HISTOGRAM ON note WITH 4 BUCKETS MANUAL UPDATE;",
        "ANALYZE TABLE users UPDATE HISTOGRAM ON note AUTO UPDATE",
        "ANALYZE NO_WRITE_TO_BINLOG TABLE users DROP HISTOGRAM ON note",
    ] {
        assert!(pair.same_or_refused(sql) || kind == Kind::MariaDb, "{sql}");
    }
    for sql in [
        "ANALYZE TABLE users UPDATE HISTOGRAM ON name",
        "ANALYZE TABLE users UPDATE HISTOGRAM ON note, age",
        "ANALYZE TABLE users DROP HISTOGRAM ON name",
        "ANALYZE TABLE users UPDATE HISTOGRAM ON `name$enc`",
        "ANALYZE TABLE users UPDATE HISTOGRAM ON nothing",
        "ANALYZE TABLE users UPDATE HISTOGRAM ON note USING DATA '{}'",
        "ANALYZE TABLE users UPDATE HISTOGRAM ON note WHERE name = 'x'",
    ] {
        let said = pair.say(sql);
        assert!(
            said.is_refused() || kind == Kind::MariaDb,
            "{sql}: {said:?}"
        );
    }
}

/// NCHAR and its like, and LONG.
fn national_and_long_types(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, true, &[]) else {
        return;
    };
    let collations = pair.plain.text("SELECT @@character_set_collations");
    if collations.is_ok_and(|text| text.contains("utf8mb3")) {
        // what NCHAR is there is not known
        assert!(!pair.same_or_refused("CREATE TABLE national (a NCHAR(5) {eq})"));
        return;
    }
    pair.same(
        "CREATE TABLE national (id INT PRIMARY KEY, a NCHAR(5) {eq, range}, b NVARCHAR(7) {eq} NOT NULL DEFAULT 'é', c \
         NATIONAL VARCHAR(9) {eq, like}, d NATIONAL CHAR {}, e NCHAR VARYING(4) {eq}, f NATIONAL CHARACTER VARYING(5) {}, g \
         NATIONAL VARCHARACTER(5) {}, h NCHAR VARCHAR(5) {}, i NCHAR(3) COLLATE utf8mb3_bin {eq}, j NCHAR(3) BINARY {eq}, k \
         NCHAR(3))",
    );
    pair.same(
        "CREATE TABLE longs (id INT PRIMARY KEY, a LONG {}, b LONG VARCHAR {}, c LONG VARBINARY {}, d LONG CHAR VARYING {}, e \
         LONG VARCHARACTER {}, f LONG CHARACTER SET latin1 {}, g LONG VARCHAR CHARACTER SET latin1 NOT NULL {}, h LONG BYTE \
         {})",
    );
    pair.run("INSERT INTO national VALUES (1, 'é', 'Ab', 'Hb4YqMz7', 'x', 'y', 'z', 'u', 'v', 'A', 'a', 'w')");
    pair.run("INSERT INTO national (id, a) VALUES (2, 'E')");
    pair.run("INSERT INTO longs VALUES (1, 'é', 'b', x'00ff', 'd', 'e', 'f', 'g', x'27')");
    for sql in [
        "SHOW CREATE TABLE national",
        "SHOW CREATE TABLE longs",
        "DESCRIBE national",
        "SELECT * FROM national ORDER BY id",
        "SELECT * FROM longs ORDER BY id",
        "SELECT id FROM national WHERE a = 'e' ORDER BY id",
        "SELECT id FROM national WHERE i = 'a' OR j = 'a'",
        "SELECT id FROM national WHERE b = 'E'",
        "SELECT a, CHAR_LENGTH(b), CHARSET(c), COLLATION(i) FROM national ORDER BY a, id",
        "SELECT HEX(c), CHARSET(a), CHARSET(f), LENGTH(h) FROM longs",
    ] {
        pair.same(sql);
    }
    pair.same_error("INSERT INTO national (id, a) VALUES (3, 'too long')");
    pair.create("ALTER TABLE longs ADD m NVARCHAR(5) {eq}, ADD n LONG VARBINARY {}");
    pair.same("SHOW CREATE TABLE longs");
    for sql in [
        "CREATE TABLE bad (a NCHAR(5) CHARACTER SET latin1 {})",
        "CREATE TABLE bad (a NCHAR(5) COLLATE utf8mb4_bin {})",
        "CREATE TABLE bad (a NATIONAL INT {})",
        "CREATE TABLE bad (a NVARCHAR {})",
        "CREATE TABLE bad (a LONG LONG {})",
    ] {
        let said = pair.say(sql);
        assert!(
            said.protected.contains(char::is_numeric),
            "{sql}: {}",
            said.protected
        );
        assert!(
            !said.protected.starts_with('['),
            "{sql}: {}",
            said.protected
        );
    }
}

/// Words in comments for servers of some versions, as dumps have them.
fn versions_in_comments(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    let mut n = 0;
    for body in [
        "id INT PRIMARY KEY, s VARCHAR(9) {eq} /*!80023 INVISIBLE */, t INT /*!80023 INVISIBLE */",
        "id INT PRIMARY KEY, s VARCHAR(9) {eq} /*!50100 NOT NULL */, KEY k (s) /*!80000 INVISIBLE */",
        "id INT PRIMARY KEY, s VARCHAR(9) /*! CHARACTER SET latin1 */ {eq}, KEY k (s) /*!50060 USING BTREE */",
        "id INT PRIMARY KEY, s VARCHAR(9) {eq} DEFAULT 'a' /*M!100301 COMMENT 'here' */",
        "id INT PRIMARY KEY, s VARCHAR(9) {eq} /*!50700 COMMENT 'mysql' */",
        "id INT PRIMARY KEY, t INT, s VARCHAR(9) {eq}, CHECK (t > 0) /*!80016 NOT ENFORCED */",
        "id INT PRIMARY KEY, s VARCHAR(9) {eq} /*!50100 DEFAULT 'a''b' */ /*!50606 COMMENT 'c' */",
    ] {
        n += 1;
        pair.same(&format!("CREATE TABLE t{n} ({body})"));
        pair.same(&format!("SHOW CREATE TABLE t{n}"));
        pair.same(&format!("INSERT INTO t{n} (id) VALUES (1)"));
        pair.same(&format!("SELECT *, s FROM t{n}"));
    }
    // no version of which it is known whether the server has it, and no form that servers differ in
    for body in [
        "id INT PRIMARY KEY, s VARCHAR(9) {eq} /*!99999 x */",
        "id INT PRIMARY KEY, s VARCHAR(9) {eq} /*!999999 x */",
        "id INT PRIMARY KEY, s VARCHAR(9) {eq} /*!50100NOT NULL */",
        "id INT PRIMARY KEY, s VARCHAR(9) {eq} /*!5010 NOT NULL */",
    ] {
        let said = pair.say(&format!("CREATE TABLE odd ({body})"));
        assert!(
            said.plain == said.protected || said.is_refused(),
            "{body}: {said:?}"
        );
        for session in pair.sessions() {
            session.must("DROP TABLE IF EXISTS odd");
        }
    }
    // what a comment hides is read as well
    for sql in [
        "CREATE TABLE odd (id INT, s INT {eq}) /*!50100 AS SELECT 1 AS id */",
        "CREATE TABLE odd (id INT, s INT {eq}, g INT /*!50100 AS (s + 1) */)",
        "CREATE TABLE odd (id INT, s INT {eq}, u INT /*!50100 CHECK (u > s) */)",
        "CREATE TABLE odd (id INT, s INT {eq}) /*!50100 PARTITION BY HASH (s) */",
    ] {
        let said = pair.say(sql);
        assert!(said.is_refused(), "{sql}: {said:?}");
        pair.plain.must("DROP TABLE IF EXISTS odd");
    }
}

/// CONCURRENT and LOW_PRIORITY.
fn files_that_are_loaded_in_other_words(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(kind, USERS) else {
        return;
    };
    for server in [&pair.behind, pair.beside(), pair.engine()] {
        server.connect().must("SET GLOBAL local_infile = 1");
    }
    for session in pair.sessions() {
        let handler = LocalInfileHandler::new(|_, writer| {
            writer.write_all(b"1\tHb4YqMz7\t30\tx\n2\tBob\t40\t\\N\n")
        });
        session.conn().set_local_infile_handler(Some(handler));
    }
    for sql in [
        "LOAD DATA CONCURRENT LOCAL INFILE 'rows' INTO TABLE users",
        "LOAD DATA LOW_PRIORITY LOCAL INFILE 'rows' REPLACE INTO TABLE users (id, name, age, note)",
        "LOAD DATA LOW_PRIORITY LOCAL INFILE 'rows' IGNORE INTO TABLE users (id, name)",
    ] {
        pair.same(sql);
        pair.same("SELECT * FROM users ORDER BY id");
    }
    for sql in [
        "LOAD DATA CONCURRENT INFILE 'rows' INTO TABLE users",
        "LOAD DATA CONCURRENT LOW_PRIORITY LOCAL INFILE 'rows' INTO TABLE users",
    ] {
        assert!(pair.protected.run(sql).is_err(), "{sql}");
    }
    pair.nothing_leaked();
}

/// A view over plain columns, under a wildcard that is enforced, can be put into its own place.
fn views_that_are_made_anew(kind: Kind) {
    let settings = "enforce = true\n[protect.\"app.*\"]\n\"p_*\" = \"plain\"\n\"*\" = [\"eq\"]\n\
         [protect.\"app.kept\"]\n\"name\" = [\"eq\"]\n";
    let options = PairOptions {
        settings,
        ..PairOptions::default()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    pair.run("CREATE TABLE things (id INT PRIMARY KEY, name VARCHAR(9), p_word VARCHAR(9))");
    pair.run("INSERT INTO things VALUES (1, 'Hb4YqMz7', 'a')");
    for sql in [
        "CREATE VIEW words AS SELECT p_word AS word FROM things",
        "CREATE OR REPLACE VIEW words AS SELECT p_word AS word, 1 AS one FROM things",
        "ALTER VIEW words AS SELECT p_word AS other FROM things",
        "CREATE OR REPLACE VIEW app.words (w) AS SELECT name FROM things",
        "SELECT * FROM words",
        "CREATE OR REPLACE VIEW words AS SELECT UPPER(p_word) AS big FROM things",
    ] {
        pair.same(sql);
    }
    for sql in [
        "SELECT big FROM words WHERE big = 'Hb4YqMz7'",
        "CREATE OR REPLACE VIEW words AS SELECT big AS name FROM words WHERE big = 'Hb4YqMz7'",
        "CREATE OR REPLACE VIEW others AS SELECT big AS name FROM words WHERE big = 'Hb4YqMz7'",
        "CREATE OR REPLACE VIEW kept AS SELECT p_word AS name FROM things",
    ] {
        let refused = pair.protected.run(sql).expect_err("refused").message;
        // there is no table `kept`
        let code = if sql.contains("kept") {
            "OS1046"
        } else {
            "OS1108"
        };
        assert!(refused.contains(code), "{sql}: {refused}");
    }
    pair.nothing_leaked();
}

const COM_STMT_EXECUTE: u8 = 23;
const COM_STMT_SEND_LONG_DATA: u8 = 24;

/// A parameter in pieces, as a text and as bytes. What bytes are to a text the engine says.
fn long_data_in_conditions(kind: Kind) {
    for engine in [Engine::Own, Engine::Missing] {
        let options = PairOptions {
            tables: &[USERS],
            engine,
            ..PairOptions::default()
        };
        let Some(pair) = Pair::start_with(kind, options) else {
            return;
        };
        let pair = pair.filled(&ROWS[..1]);
        let ports = [pair.beside().port(), pair.proxy.port()];
        let mut clients = ports.map(|port| RawClient::login_into(port, b"app", 45));
        let (text, bytes) = (253, 252);
        for sql in [
            "SELECT id FROM users WHERE name = ?",
            "SELECT id FROM users WHERE name >= ? ORDER BY id",
            "SELECT id FROM users WHERE name IN ('x', ?)",
            "SELECT id FROM users WHERE name LIKE ?",
            "SELECT id FROM users WHERE UPPER(name) = ?",
            "SELECT id FROM users WHERE note = ? OR name = 'Carl' ORDER BY id",
            "SELECT id FROM users WHERE age = ?",
        ] {
            for (ty, value) in [
                (text, "Bob"),
                (text, "BOB"),
                (text, "40"),
                (bytes, "Bob"),
                (bytes, "BOB"),
                (bytes, "40"),
            ] {
                let answers = clients
                    .each_mut()
                    .map(|client| answer_to_long_data(client, sql, ty, value));
                let is_refused = engine == Engine::Missing && answers[1].contains("OS1");
                assert!(
                    answers[0] == answers[1] || is_refused,
                    "{sql} {ty} {value}: {answers:?}"
                );
            }
        }
    }
}

/// The rows, or the error, of a query whose parameter comes in two pieces.
fn answer_to_long_data(client: &mut RawClient, sql: &str, ty: u8, value: &str) -> String {
    let id = match client.try_prepare(sql.as_bytes()) {
        Ok(id) => id,
        Err(reply) => return format!("{reply:?}"),
    };
    for piece in [&value[..1], &value[1..]] {
        let data = [&id[..], &[0, 0], piece.as_bytes()].concat();
        client.command(COM_STMT_SEND_LONG_DATA, &data);
    }
    let head = [&id[..], &[0, 1, 0, 0, 0], &[0, 1], &[ty, 0]].concat();
    client.command(COM_STMT_EXECUTE, &head);
    let first = client.read();
    let Reply::Packet(_) = first else {
        return format!("{first:?}");
    };
    client.until_eof();
    let mut rows = Vec::new();
    while let Reply::Packet(row) = client.read() {
        if row[0] == 0xfe {
            break;
        }
        rows.push(row);
    }
    format!("{rows:?}")
}
