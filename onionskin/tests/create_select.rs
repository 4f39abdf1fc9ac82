//! CREATE TABLE … SELECT with protected columns, in the new table and in those that are read:
//! definition, rows and answers are as from a plain server, and what cannot be done leaves nothing
//! behind.

#[path = "scratch/findings.rs"]
mod findings;
use ::mysql::Value;
use findings::{Findings, tell};
use onionskin_testkit::*;

on_both_servers!(
    definitions_and_rows_are_a_plain_servers,
    settings_of_the_session_count,
    temporary_tables,
    what_fails_leaves_no_table,
    what_would_be_in_the_clear_is_refused,
    transactions_end_as_with_any_definition,
    without_an_engine_it_is_refused,
    defaults_of_columns,
    the_server_sees_no_plaintext,
);

/// Tables called `kept…` have these columns protected.
const PROTECT: &str = r#"
[protect."app.kept*"]
name = ["eq"]
age = ["eq", "range"]
email = []
born = ["range"]
wage = []
ratio = []
weight = []
seen = []
at = []
hours = []
bits = ["eq"]
notes = []
latin = []
y = []
big = ["range"]
article = ["eq"]
x = []
z = ["eq"]
"#;

const TABLES: &str = "
CREATE TABLE user (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) NOT NULL {eq}, age INT {eq, range} COMMENT 'in years', email VARCHAR(60) COLLATE utf8mb4_bin {}, \
 city VARCHAR(20) DEFAULT 'Bern' COMMENT 'it''s \\\\ a city', born DATE {range}, wage DECIMAL(10,2) DEFAULT '7.50' {}, ratio DOUBLE {}, weight FLOAT {}, seen DATETIME(3) {}, \
 at TIMESTAMP NULL {}, hours TIME(2) {}, bits VARBINARY(12) {eq}, notes TEXT {}, latin VARCHAR(20) CHARACTER SET latin1 NOT NULL DEFAULT 'ü' {}, y YEAR {}, big BIGINT UNSIGNED {range}, \
 changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP);
CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, user_id INT, total DECIMAL(8,2), article VARCHAR(30) {eq}, day DATE, paid TIMESTAMP(3) NULL, \
 f FLOAT, b BIT(5), note VARCHAR(30) COLLATE utf8mb4_bin, kind ENUM('a','b') DEFAULT 'b', KEY (user_id));
CREATE TABLE open (id INT PRIMARY KEY, word VARCHAR(20), n INT)
";

const ROWS: &[&str] = &[
    "SET timestamp = 1700000000",
    "INSERT INTO user VALUES (1, 'Alice', 31, 'alice@example.org', 'Bern', '1990-02-28', 1234.50, 0.1, 1.1, '2024-02-29 12:13:14.567', '2024-03-31 02:30:00', \
     '-12:34:56.78', x'00ff27', 'a long story', 'Zoë', 1999, 18446744073709551615, DEFAULT)",
    "INSERT INTO user VALUES (2, 'bob', 17, 'Bob@Example.org', 'Basel', '2004-12-31', 99.99, 1e308, 3.4e38, '1999-12-31 23:59:59.999', '1970-01-02 00:00:00', \
     '838:59:59', '', '', 'ß', 2155, 0, DEFAULT)",
    "INSERT INTO user VALUES (3, 'Émile', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, DEFAULT)",
    "INSERT INTO user VALUES (4, 'carol''s \\\\ \"x\"', 45, 'c%d_e', 'Bern', '1978-07-01', -5.00, -0.0, 16777217, '2024-02-29 00:00:00', '2038-01-19 03:14:07', \
     '00:00:00.01', x'5c', 'line\\nbreak 🦀', '', 0, 42, DEFAULT)",
    "INSERT INTO user VALUES (5, 'ALICE', 45, 'dave@example.org', 'bern', '1978-07-01', 0.00, 2.5, 0.333333, '2024-02-29 00:00:01', '2001-09-09 01:46:40', \
     '10:00:00', 'abc', 'a long story', 'é', 2024, 9223372036854775808, DEFAULT)",
    "INSERT INTO orders VALUES (1, 1, 10.00, 'book', '2024-01-01', '2024-03-31 01:59:59.125', 0.1, 3, 'x', 'a')",
    "INSERT INTO orders VALUES (2, 1, 25.50, 'Pen', '2024-01-15', NULL, 16777217, 31, 'Y ', NULL)",
    "INSERT INTO orders VALUES (3, 2, 7.25, 'book', NULL, '2000-01-01 00:00:00', NULL, NULL, NULL, 'b')",
    "INSERT INTO open VALUES (1, 'alice', 3), (2, 'BOB', NULL), (3, 'nobody', -1)",
];

/// Each makes `kept`, or fails.
const STATEMENTS: &[&str] = &[
    "CREATE TABLE kept SELECT * FROM user",
    "CREATE TABLE kept AS SELECT id, UPPER(name) AS x, age + 1 AS z, CONCAT(email, '!') AS email, city FROM user WHERE id < 4",
    "CREATE TABLE app.kept (SELECT name, age, born FROM user ORDER BY id DESC LIMIT 2)",
    "CREATE TABLE kept SELECT id, city FROM user WHERE LENGTH(name) > 3",
    "CREATE TABLE kept SELECT name FROM user WHERE id = 777",
    "CREATE TABLE kept SELECT u.name, o.article, o.total, o.paid, o.f, o.b, o.kind, u.wage FROM user u LEFT JOIN orders o ON o.user_id = u.id ORDER BY u.id, o.id",
    "CREATE TABLE kept SELECT city, COUNT(*) AS n, MAX(age) AS age, AVG(wage) AS wage, GROUP_CONCAT(name ORDER BY id) AS name FROM user GROUP BY city ORDER BY 1",
    "CREATE TABLE kept SELECT name FROM user UNION SELECT word FROM open ORDER BY 1",
    "CREATE TABLE kept SELECT 1 AS id, 'abc' AS name, 2.50 AS wage, NULL AS x, DATE '2024-01-02' AS born, 1e0 AS ratio, x'00' AS bits",
    "CREATE TABLE kept SELECT d.* FROM (SELECT name, seen AS x FROM user WHERE age IS NOT NULL) d ORDER BY x",
    "CREATE TABLE kept WITH c AS (SELECT name, LENGTH(name) AS z FROM user) SELECT name, z FROM c ORDER BY 1, 2",
    "CREATE TABLE kept SELECT ROW_NUMBER() OVER (ORDER BY id) AS n, COALESCE(latin, 'x') AS latin, IFNULL(hours, '00:00:00') AS hours FROM user",
    "CREATE TABLE kept SELECT id, word AS name, n AS age FROM open ORDER BY id",
    // a column list
    "CREATE TABLE kept (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(80) NOT NULL DEFAULT 'none', age SMALLINT, note VARCHAR(10) DEFAULT 'x', UNIQUE KEY (name)) \
     SELECT name, age FROM user WHERE id < 4 ORDER BY id DESC",
    "CREATE TABLE kept (z INT NOT NULL, KEY k (z), x DECIMAL(6,1), CHECK (n < 100), n INT) AS SELECT id AS z, wage AS x, id AS n FROM user",
    "CREATE TABLE kept (at DATETIME, email VARCHAR(5) CHARACTER SET latin1 NOT NULL DEFAULT 'a\\\\b') SELECT id, at FROM user ORDER BY id",
    "CREATE TABLE kept (age INT, twice INT AS (id * 2) STORED) SELECT id, age FROM user",
    "CREATE TABLE kept (PRIMARY KEY (id), UNIQUE KEY (name, age)) ENGINE = InnoDB COMMENT = 'so \\\\ it is' SELECT id, name, age FROM user",
    "CREATE TABLE kept (id INT, name VARCHAR(40) ENCRYPTED FOR (eq), city VARCHAR(30) ENCRYPTED FOR (eq, like)) SELECT city, name FROM user ORDER BY id",
    "CREATE TABLE kept DEFAULT CHARACTER SET latin1 SELECT latin, bits, notes, city FROM user WHERE id <> 4 ORDER BY id",
    "CREATE TABLE kept (name VARCHAR(40)) PARTITION BY HASH (id) PARTITIONS 2 SELECT id, name FROM user",
    // duplicates
    "CREATE TABLE kept (name VARCHAR(80), UNIQUE KEY (name)) SELECT name FROM user",
    "CREATE TABLE kept (name VARCHAR(80), UNIQUE KEY (name)) IGNORE SELECT name, id FROM user ORDER BY id",
    "CREATE TABLE kept (name VARCHAR(80), UNIQUE KEY (name)) REPLACE AS SELECT name, id FROM user ORDER BY id",
    "CREATE TABLE kept (age INT PRIMARY KEY) IGNORE SELECT age, name FROM user WHERE age IS NOT NULL ORDER BY id",
    // what does not fit
    "CREATE TABLE kept (age TINYINT) SELECT id * 100 AS age FROM user",
    "CREATE TABLE kept (age TINYINT) IGNORE SELECT id * 100 AS age FROM user ORDER BY id",
    "CREATE TABLE kept (name VARCHAR(3)) SELECT name FROM user",
    "CREATE TABLE kept (name VARCHAR(40) NOT NULL) SELECT email AS name FROM user",
    "CREATE TABLE kept SELECT nam FROM user",
    "CREATE TABLE kept SELECT name, name FROM user",
    "CREATE TABLE kept (id INT, id INT) SELECT name FROM user",
    "CREATE TABLE kept SELECT name FROM user WHERE name > (SELECT name FROM user)",
    "CREATE TABLE kept (z INT) ENGINE = nowhere SELECT id AS z, name FROM user",
    "CREATE TABLE nowhere.kept SELECT id FROM user",
    // what is there
    "CREATE TABLE open SELECT name FROM user",
    "CREATE TABLE IF NOT EXISTS open SELECT name FROM user",
    "CREATE TABLE IF NOT EXISTS kept SELECT name FROM user WHERE id > 2 ORDER BY id",
];

fn stage(kind: Kind) -> Option<Pair> {
    Some(Pair::with_settings(kind, TABLES, PROTECT)?.filled(ROWS))
}

/// What there is to see of a table. `sorted`: its rows have no order of their own, or lie in that
/// of a key, which for tokens is another.
fn shown(session: &mut Session, table: &str, sorted: bool) -> String {
    let ask = |session: &mut Session, sql: String| match session.text(&sql) {
        Ok(text) => text,
        Err(failure) => format!("error {}", failure.code),
    };
    let definition = ask(session, format!("SHOW CREATE TABLE {table}"));
    // servers set aside more numbers for the rows of a query
    let definition = match definition.split_once(" AUTO_INCREMENT=") {
        Some((head, tail)) => {
            head.to_owned() + tail.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        None => definition,
    };
    // MySQL shows that a collation was written, and a query's columns have none that was
    let definition = definition.replace(" COLLATE latin1_swedish_ci", "");
    let columns = ask(session, format!("SHOW FULL COLUMNS FROM {table}"));
    let rows = ask(session, format!("SELECT * FROM {table}"));
    let mut rows: Vec<&str> = rows.lines().collect();
    if sorted {
        rows.sort_unstable();
    }
    format!("{definition}\n{columns}\n{}", rows.join("\n"))
}

/// Without the proxy's own words.
fn plain(sql: &str) -> String {
    let mut out = String::new();
    for (n, part) in sql.split(" ENCRYPTED FOR (").enumerate() {
        let rest = if n == 0 {
            part
        } else {
            part.split_once(')').map_or(part, |(_, rest)| rest)
        };
        out += rest;
    }
    out
}

/// Runs a statement on both, compares what they say and what table there is then, and drops that.
fn compare(findings: &mut Findings, pair: &mut Pair, sql: &str, prepared: Option<&[Value]>) {
    findings.compared += 1;
    let mut b = tell(&mut pair.protected, sql, prepared);
    if b.refused() {
        findings.refused.push(format!("{sql}\n  {b:?}"));
        assert_eq!(
            pair.protected
                .run("SELECT 1 FROM kept LIMIT 0")
                .map_err(|f| f.code),
            Err(1146)
        );
        return;
    }
    let mut a = tell(&mut pair.plain, &plain(sql), prepared);
    let messages = (a.without_message(), b.without_message());
    if a != b {
        findings.different.push(format!(
            "{sql} ({prepared:?})\n  {a:?}\n  {b:?}\n  {messages:?}"
        ));
    }
    let sorted = ["KEY", "PARTITION"].iter().any(|word| sql.contains(word));
    let (a, b) = (
        shown(&mut pair.plain, "kept", sorted),
        shown(&mut pair.protected, "kept", sorted),
    );
    if a != b {
        findings.different.push(format!(
            "{sql} ({prepared:?})\n--- plain\n{a}\n--- protected\n{b}"
        ));
    }
    for session in [&mut pair.plain, &mut pair.protected] {
        let _ = session.run("DROP TABLE IF EXISTS kept");
    }
}

fn definitions_and_rows_are_a_plain_servers(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = Findings::default();
    for sql in STATEMENTS {
        if kind == Kind::MariaDb && sql.contains("(age INT PRIMARY KEY) IGNORE") {
            // a plain server says that it has inserted three rows, and has two: InnoDB's bulk
            // insert loses the one that was met
            continue;
        }
        compare(&mut findings, &mut pair, sql, None);
        if !sql.contains("ENCRYPTED FOR") {
            compare(&mut findings, &mut pair, sql, Some(&[]));
        }
    }
    let sql = "CREATE TABLE kept SELECT id, CONCAT(?, name) AS name, id + ? AS z FROM user WHERE CHAR_LENGTH(name) > ? ORDER BY id";
    let values = [Value::from("p"), 2.into(), 3.into()];
    compare(&mut findings, &mut pair, sql, Some(&values));
    if kind == Kind::MariaDb {
        for sql in [
            "CREATE TABLE kept SELECT name FROM user WHERE id = 1",
            "CREATE OR REPLACE TABLE kept SELECT name, age FROM user ORDER BY id",
            "CREATE OR REPLACE TABLE kept (name VARCHAR(80)) SELECT id, name FROM user ORDER BY id",
        ] {
            findings.run(&mut pair, sql, None);
            let (a, b) = (
                shown(&mut pair.plain, "kept", false),
                shown(&mut pair.protected, "kept", false),
            );
            assert_eq!(a, b, "{sql}");
        }
        // a duplicate is found before the old table goes
        let sql = "CREATE OR REPLACE TABLE kept (name VARCHAR(80), UNIQUE KEY (name)) SELECT name FROM user";
        assert_eq!(pair.protected.must_fail(sql), 1062);
        let rows = pair.protected.text("SELECT COUNT(*) FROM kept");
        assert_eq!(rows.expect("the old table"), "5");
    }
    findings.conclude(&mut pair, 0);
}

fn settings_of_the_session_count(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = Findings::default();
    for setting in [
        "SET sql_mode = ''",
        "SET time_zone = '+05:30'",
        "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'",
        "SET sql_mode = DEFAULT",
        "SET NAMES latin1",
        "SET @by = 3, @word = 'w'",
        "SET autocommit = 0",
    ] {
        pair.run(setting);
        for sql in [
            "CREATE TABLE kept (age TINYINT, name VARCHAR(4)) SELECT age * 10 AS age, name, at, id FROM user ORDER BY id",
            "CREATE TABLE kept SELECT name, at, seen FROM user WHERE id < 3 ORDER BY id",
            "CREATE TABLE kept SELECT CONCAT(name, 'é', @word) AS name, @by AS n FROM user ORDER BY id",
        ] {
            compare(&mut findings, &mut pair, sql, None);
        }
    }
    findings.conclude(&mut pair, 0);
}

fn temporary_tables(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = Findings::default();
    for begin in ["DO 0", "BEGIN"] {
        for sql in [
            "CREATE TEMPORARY TABLE kept SELECT name, age, id FROM user ORDER BY id",
            "CREATE TEMPORARY TABLE kept (id INT AUTO_INCREMENT PRIMARY KEY) SELECT name FROM user ORDER BY name, id",
            "CREATE TEMPORARY TABLE kept SELECT id, city FROM user WHERE LENGTH(name) > 3",
            "CREATE TEMPORARY TABLE IF NOT EXISTS kept SELECT born FROM user ORDER BY id",
        ] {
            pair.run(begin);
            pair.run("UPDATE open SET n = n + 1 WHERE id = 1");
            compare(&mut findings, &mut pair, sql, None);
            // it has not ended the transaction
            pair.run("ROLLBACK");
            let n = "SELECT n FROM open WHERE id = 1";
            assert_eq!(pair.plain.text(n), pair.protected.text(n), "{sql}");
        }
        // One that fails. Rolled back at once: MariaDB 11.8 itself rolls the transaction back
        // there, and a DROP that finds no table would commit what is left of the other.
        pair.run(begin);
        pair.run("UPDATE open SET n = n + 1 WHERE id = 1");
        let sql = "CREATE TEMPORARY TABLE kept (name VARCHAR(80), UNIQUE KEY (name)) SELECT name FROM user";
        findings.run(&mut pair, sql, None);
        pair.run("ROLLBACK");
        let n = "SELECT n FROM open WHERE id = 1";
        assert_eq!(pair.plain.text(n), pair.protected.text(n), "{sql}");
    }
    let there = "CREATE TEMPORARY TABLE kept SELECT name FROM user WHERE id = 1";
    findings.run(&mut pair, there, None);
    for sql in [
        "CREATE TEMPORARY TABLE kept SELECT age FROM user",
        "CREATE TEMPORARY TABLE IF NOT EXISTS kept SELECT age FROM user",
        "CREATE TABLE kept SELECT age FROM user ORDER BY id",
    ] {
        findings.run(&mut pair, sql, None);
        let (a, b) = (
            shown(&mut pair.plain, "kept", false),
            shown(&mut pair.protected, "kept", false),
        );
        assert_eq!(a, b, "{sql}");
    }
    // the last: the session would not see what it makes
    findings.conclude(&mut pair, 1);
}

/// The rows do not fit into the server's table, which shows itself when they are written.
fn what_fails_leaves_no_table(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let values: Vec<String> = (10..1200)
        .map(|n| format!("({n}, 'word {n}', {n})"))
        .collect();
    pair.run(&format!("INSERT INTO open VALUES {}", values.join(",")));
    pair.run("SET max_heap_table_size = 16384");
    for table in ["kept", "kept2"] {
        let sql = format!(
            "CREATE TABLE {table} ENGINE = MEMORY SELECT id, n AS age, REPEAT('x', 250) AS filler FROM open"
        );
        for session in [&mut pair.plain, &mut pair.protected] {
            assert_eq!(session.must_fail(&sql), 1114, "the table is full");
            assert_eq!(session.must_fail(&format!("SELECT * FROM {table}")), 1146);
        }
        let tables = pair
            .behind
            .connect()
            .text("SHOW TABLES FROM app LIKE 'kept%'");
        assert_eq!(tables.expect("tables"), "");
        let temporary = sql.replace("TABLE kept", "TEMPORARY TABLE kept");
        for session in [&mut pair.plain, &mut pair.protected] {
            assert_eq!(session.must_fail(&temporary), 1114);
            assert_eq!(session.must_fail(&format!("SELECT * FROM {table}")), 1146);
        }
    }
    // the session and its transactions go on
    pair.run("SET max_heap_table_size = DEFAULT");
    pair.run("CREATE TABLE kept SELECT id, n AS age FROM open ORDER BY id");
    let (a, b) = (
        shown(&mut pair.plain, "kept", false),
        shown(&mut pair.protected, "kept", false),
    );
    assert_eq!(a, b);
    pair.proxy.assert_healthy();
}

/// Statements that would leave values of protected columns in the clear, and how they are refused.
const IN_THE_CLEAR: &[(&str, &str)] = &[
    ("CREATE TABLE bare SELECT name FROM user", "OS1031"),
    (
        "CREATE TABLE bare SELECT id, LENGTH(name) AS l FROM user",
        "OS1031",
    ),
    ("CREATE TABLE bare SELECT * FROM user", "OS1031"),
    (
        "CREATE TABLE bare SELECT id, (SELECT MAX(age) FROM user) AS m FROM open",
        "OS1031",
    ),
    (
        "CREATE TABLE bare SELECT * FROM (SELECT id, name FROM user) d",
        "OS1031",
    ),
    (
        "CREATE TABLE bare (name VARCHAR(40)) SELECT name FROM user",
        "OS1031",
    ),
    (
        "CREATE TABLE bare (id INT, x VARCHAR(40)) SELECT id, name AS x FROM user",
        "OS1031",
    ),
    (
        "CREATE TABLE bare SELECT word FROM open UNION SELECT name FROM user",
        "OS1031",
    ),
    (
        "CREATE TABLE bare WITH c AS (SELECT UPPER(name) AS u FROM user) SELECT u FROM c",
        "OS1031",
    ),
    (
        "CREATE TABLE bare SELECT id, RANK() OVER w AS r FROM user WINDOW w AS (ORDER BY name)",
        "OS1031",
    ),
    (
        "CREATE TABLE bare SELECT a.id, b.age FROM user a JOIN user b USING (id)",
        "OS1031",
    ),
    (
        "CREATE TEMPORARY TABLE bare SELECT name FROM user",
        "OS1031",
    ),
    (
        "CREATE TABLE kept SELECT name, email AS other FROM user",
        "OS1031",
    ),
    (
        "CREATE TABLE kept (other VARCHAR(60)) SELECT name, email AS other FROM user",
        "OS1031",
    ),
    (
        "CREATE TABLE bare (id INT, name VARCHAR(40) ENCRYPTED FOR (), l INT) SELECT name, LENGTH(name) AS l FROM user",
        "OS1031",
    ),
    (
        "CREATE TABLE bare (n INT AS (LENGTH(name)) STORED, name VARCHAR(40) ENCRYPTED FOR ()) SELECT name FROM user",
        "OS1013",
    ),
    (
        "CREATE TABLE kept (name VARCHAR(40), CHECK (LENGTH(name) > 0)) SELECT name FROM user",
        "OS1013",
    ),
    (
        "CREATE TABLE bare (`name = 'x'` INT ENCRYPTED FOR ()) SELECT name = 'x' FROM user",
        "OS1013",
    ),
    (
        "CREATE TABLE kept (email VARCHAR(60), KEY (email)) SELECT email FROM user",
        "OS1012",
    ),
    (
        "CREATE TABLE kept PARTITION BY KEY (name) SELECT name FROM user",
        "OS1013",
    ),
    (
        "CREATE TABLE kept SELECT name, CONNECTION_ID() AS id FROM user",
        "OS1025",
    ),
    (
        "CREATE TABLE kept SELECT name, @v := 2 AS id FROM user",
        "OS1025",
    ),
    (
        "CREATE TABLE kept SELECT name FROM user FOR UPDATE",
        "OS1001",
    ),
    (
        "CREATE TABLE kept (id INT REFERENCES user (id)) SELECT name, id FROM user",
        "OS1008",
    ),
    (
        "CREATE TABLE kept /*!50000 SELECT name FROM user */",
        "OS10",
    ),
    (
        "CREATE TABLE kept (id INT /*!50000 , word VARCHAR(9) */) SELECT name FROM user",
        "OS1015",
    ),
];

fn what_would_be_in_the_clear_is_refused(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    pair.protected.must("SET @v = 1");
    for (sql, code) in IN_THE_CLEAR {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with(code), "{sql}: {failure}");
        let failure = pair.protected.execute(sql, ()).expect_err(sql);
        assert!(
            failure.message.starts_with(code),
            "prepared {sql}: {failure}"
        );
    }
    let tables = pair
        .behind
        .connect()
        .text("SHOW TABLES FROM app")
        .expect("tables");
    assert_eq!(tables, "open\norders\nuser");
    // what holds nothing of protected columns is the server's own
    for sql in [
        "CREATE TABLE bare SELECT id, word FROM open",
        "CREATE TABLE more SELECT 1 AS name",
        "DROP TABLE bare, more",
        "CREATE TABLE bare SELECT id, city FROM user",
        "DROP TABLE bare",
    ] {
        pair.both(sql);
    }
    pair.proxy.assert_healthy();
}

fn transactions_end_as_with_any_definition(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = Findings::default();
    let n = "SELECT n FROM open WHERE id = 1";
    for sql in [
        "CREATE TABLE kept SELECT name FROM user WHERE id = 1",
        "CREATE TABLE open SELECT name FROM user",
        "CREATE TABLE kept2 SELECT nam FROM user",
    ] {
        for begin in ["BEGIN", "SET autocommit = 0"] {
            pair.run(begin);
            pair.run("UPDATE open SET n = n + 1 WHERE id = 1");
            findings.run(&mut pair, sql, None);
            pair.run("ROLLBACK");
            assert_eq!(pair.plain.text(n), pair.protected.text(n), "{sql}");
            pair.run("SET autocommit = 1");
            let _ = (
                pair.plain.run("DROP TABLE kept"),
                pair.protected.run("DROP TABLE kept"),
            );
        }
    }
    // rows of others that are not committed yet are waited for, and seen
    let mut other = pair.proxy.connect_to("app");
    other.must("BEGIN");
    other.must("UPDATE user SET name = 'Anna' WHERE id = 1");
    pair.protected.must("SET innodb_lock_wait_timeout = 1");
    assert_eq!(
        pair.protected
            .must_fail("CREATE TABLE kept SELECT name FROM user WHERE id = 1"),
        1205
    );
    assert_eq!(pair.protected.must_fail("SELECT * FROM kept"), 1146);
    other.must("COMMIT");
    pair.protected
        .must("CREATE TABLE kept SELECT name FROM user WHERE id = 1");
    assert_eq!(
        pair.protected.text("SELECT name FROM kept").expect("a row"),
        "Anna"
    );
    // another session knows it at once
    assert_eq!(
        other
            .text("SELECT name FROM kept WHERE name = 'anna'")
            .expect("a row"),
        "Anna"
    );
    pair.protected.must("LOCK TABLES user READ");
    let failure = pair
        .protected
        .run("CREATE TABLE kept3 SELECT name FROM user");
    assert!(failure.is_err_and(|f| f.message.starts_with("OS1001")));
    pair.protected.must("UNLOCK TABLES");
    findings.conclude(&mut pair, 0);
}

fn without_an_engine_it_is_refused(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    server.connect().must("CREATE DATABASE app");
    let proxy = Proxy::start(&server, PROTECT);
    let mut session = proxy.connect_to("app");
    session.must("CREATE TABLE kept (id INT, name VARCHAR(20))");
    session.must("INSERT INTO kept VALUES (1, 'Kq7vTz2wXc')");
    for sql in [
        "CREATE TABLE kept2 SELECT * FROM kept",
        "CREATE TABLE bare SELECT name FROM kept",
        "CREATE TABLE kept2 SELECT 1 AS name",
    ] {
        let failure = session.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1008"), "{sql}: {failure}");
        assert!(failure.message.contains("scratch engine"), "{failure}");
    }
    session.must("CREATE TABLE bare SELECT 1 AS name");
    assert_eq!(
        server
            .connect()
            .text("SHOW TABLES FROM app")
            .expect("tables"),
        "bare\nkept"
    );
}

/// `DEFAULT(column)`, wherever it may stand.
fn defaults_of_columns(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = Findings::default();
    for sql in [
        "UPDATE user SET wage = DEFAULT(wage), latin = DEFAULT(latin), age = DEFAULT(age), city = DEFAULT(city) WHERE CHAR_LENGTH(name) > 3",
        "UPDATE user SET name = DEFAULT(name) WHERE id = 1",
        "UPDATE user SET wage = DEFAULT(wage) + 1 WHERE id = 2",
        "INSERT INTO user (id, name, wage, latin, email) VALUES (50, 'x', DEFAULT(wage), DEFAULT(latin), DEFAULT(email))",
        "INSERT INTO user SET id = 51, name = 'y', wage = DEFAULT(wage), latin = DEFAULT(latin)",
        "REPLACE INTO user (id, name, wage) VALUES (50, 'z', DEFAULT(wage)), (52, 'w', 3)",
    ] {
        findings.run(&mut pair, sql, None);
    }
    for sql in [
        "SELECT id, DEFAULT(wage), DEFAULT(latin), DEFAULT(age), DEFAULT(city), DEFAULT(u.email) FROM user u WHERE wage <> DEFAULT(wage) ORDER BY id",
        "SELECT DEFAULT(name) FROM user",
        "SELECT id, name, age, wage, latin, city, email FROM user ORDER BY id",
    ] {
        let (a, b) = (pair.plain.text(sql), pair.protected.text(sql));
        assert_eq!(a.map_err(|f| f.code), b.map_err(|f| f.code), "{sql}");
    }
    for sql in [
        "SELECT name, DEFAULT(changed), UPPER(name) FROM user WHERE 0",
        "INSERT INTO user (id, name, city) VALUES (60, 'x', DEFAULT(latin))",
        "UPDATE user SET city = DEFAULT(latin)",
    ] {
        let _ = pair.plain.run(sql);
        let failure = pair.protected.run(sql);
        let is_fine = |f: &Failure| f.message.starts_with("OS1");
        assert!(
            failure.as_ref().err().is_none_or(is_fine),
            "{sql}: {failure:?}"
        );
    }
    findings.conclude(&mut pair, 0);
}

fn the_server_sees_no_plaintext(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let (value, literal) = ("Kq7vTz2wXc", "Rm4pLs9dYb");
    let session = &mut pair.protected;
    session.must(&format!(
        "INSERT INTO user (id, name, email, notes) VALUES (77, 'x{value}', 'm{value}', 'n{value}')"
    ));
    for (n, sql) in [
        format!("SELECT CONCAT('{literal}', name) AS name, UPPER(email) AS email FROM user WHERE id = 77"),
        format!("(name VARCHAR(60) NOT NULL DEFAULT 'none', UNIQUE KEY (name)) SELECT name, notes, id FROM user WHERE name = 'x{value}'"),
        format!("IGNORE SELECT '{literal}' AS name, '{value}' AS email"),
    ]
    .iter()
    .enumerate()
    {
        session.must(&format!("CREATE TABLE kept{n} {sql}"));
        session.must(&format!("CREATE TEMPORARY TABLE kept9{n} {sql}"));
        session
            .execute(&format!("CREATE TABLE kept8{n} {sql}"), ())
            .unwrap_or_else(|e| panic!("{sql}: {e}"));
        // one that fails while it is filled
        session.must("SET max_heap_table_size = 16384");
        let _ = session.run(&format!("CREATE TABLE kept7{n} ENGINE = MEMORY {sql}"));
    }
    assert_eq!(
        session.text("SELECT name FROM kept0").expect("a row"),
        format!("{literal}x{value}")
    );
    pair.assert_no_trace_of(&[value, literal]);
}
