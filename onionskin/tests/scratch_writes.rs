//! Tier 3 for statements that change tables: what they do to rows, and what a client is told of it,
//! is as on a plain server. Nothing that is made from a protected column comes to the server in the
//! clear.

#[path = "scratch/findings.rs"]
mod findings;
use ::mysql::Value;
use findings::Findings;
use onionskin_testkit::*;

on_both_servers!(
    changes_as_a_plain_server_does,
    settings_of_the_session_count,
    a_failure_leaves_nothing_behind,
    what_would_be_in_the_clear_is_refused,
    what_only_the_server_decides_is_refused,
    rows_are_locked_until_the_end,
    many_rows_in_batches,
    files_of_the_client,
    new_rows_are_returned,
    the_server_sees_no_plaintext,
    texts_that_are_no_characters,
    a_binary_log_of_statements,
);

/// `{words}` stands for the protection of a column.
const TABLES: &str = "
CREATE TABLE user (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) NOT NULL {eq}, age INT {eq, range}, email VARCHAR(60) COLLATE utf8mb4_bin {}, \
 city VARCHAR(20) DEFAULT 'Bern', born DATE {range}, wage DECIMAL(10,2) {}, ratio DOUBLE {}, weight FLOAT {}, seen DATETIME(3) {}, at TIMESTAMP NULL {}, \
 hours TIME(2) {}, bits VARBINARY(12) {eq}, notes TEXT {}, latin VARCHAR(20) CHARACTER SET latin1 {}, y YEAR {}, big BIGINT UNSIGNED {range}, \
 changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP);
CREATE TABLE archive (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(12) NOT NULL {eq}, age TINYINT {}, wage DECIMAL(6,1) {range}, born DATETIME {}, \
 text VARCHAR(200) {}, at TIMESTAMP NULL {}, f FLOAT {}, note VARCHAR(10), n INT NOT NULL DEFAULT 7, UNIQUE KEY (name));
CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, user_id INT, total DECIMAL(8,2), article VARCHAR(30) {eq}, day DATE, paid TIMESTAMP(3) NULL, \
 f FLOAT, d DOUBLE, b BIT(5), note VARCHAR(30) COLLATE utf8mb4_bin, KEY (user_id));
CREATE TABLE pair (a INT NOT NULL {eq}, b INT NOT NULL {eq}, c INT, d VARCHAR(20) {}, PRIMARY KEY (a, b));
CREATE TABLE open (id INT PRIMARY KEY, word VARCHAR(20), n INT)
";

const ROWS: &[&str] = &[
    "SET timestamp = 1700000000",
    "INSERT INTO user VALUES (1, 'Alice', 31, 'alice@example.org', 'Bern', '1990-02-28', 1234.50, 0.1, 1.1, '2024-02-29 12:13:14.567', '2024-03-31 02:30:00', \
     '-12:34:56.78', x'00ff27', 'a long story', 'Zoë', 1999, 18446744073709551615, DEFAULT)",
    "INSERT INTO user VALUES (2, 'bob', 17, 'Bob@Example.org', 'Basel', '2004-12-31', 99.99, 1e308, 3.4e38, '1999-12-31 23:59:59.999', '1970-01-02 00:00:00', \
     '838:59:59', '', '', 'ß', 2155, 0, DEFAULT)",
    "INSERT INTO user VALUES (3, 'Émile', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT)",
    "INSERT INTO user VALUES (4, 'carol''s \\\\ \"x\"', 45, 'c%d_e', 'Bern', '1978-07-01', -5.00, -0.0, 16777217, '2024-02-29 00:00:00', '2038-01-19 03:14:07', \
     '00:00:00.01', x'5c', 'line\\nbreak 🦀', '', 0, 42, DEFAULT)",
    "INSERT INTO user VALUES (5, 'ALICE', 45, 'dave@example.org', 'bern', '1978-07-01', 0.00, 2.5, 0.333333, '2024-02-29 00:00:01', '2001-09-09 01:46:40', \
     '10:00:00', 'abc', 'a long story', 'é', 2024, 9223372036854775808, DEFAULT)",
    "INSERT INTO archive VALUES (1, 'kept', 5, 1.5, '2001-02-03 04:05:06', 'text', '2001-09-09 01:46:40', 1.5, 'x', 1)",
    "INSERT INTO orders VALUES (1, 1, 10.00, 'book', '2024-01-01', '2024-03-31 01:59:59.125', 0.1, 0.1, 3, 'x')",
    "INSERT INTO orders VALUES (2, 1, 25.50, 'Pen', '2024-01-15', NULL, 16777217, 1e-300, 31, 'Y ')",
    "INSERT INTO orders VALUES (3, 2, 7.25, 'book', NULL, '2000-01-01 00:00:00', NULL, NULL, NULL, NULL)",
    "INSERT INTO orders VALUES (4, 9, NULL, NULL, '2024-02-29', '2037-12-31 23:59:59.999', -1.5, 1234567890.123456, 0, '')",
    "INSERT INTO pair VALUES (1, 1, 5, 'one'), (1, 2, 6, 'two'), (2, 1, 7, NULL)",
    "INSERT INTO open VALUES (1, 'alice', 3), (2, 'BOB', NULL), (3, 'nobody', -1)",
    "SET timestamp = 1700001000",
];

/// The tables' rows, every column of them.
const CONTENTS: &[&str] = &[
    "SELECT * FROM user ORDER BY id",
    "SELECT * FROM archive ORDER BY id",
    "SELECT * FROM orders ORDER BY id",
    "SELECT a, b, c, d FROM pair ORDER BY c, a, b",
    "SELECT * FROM open ORDER BY id",
];

/// Each is run twice: prepared, in a transaction that is rolled back; then as text, for good.
const STATEMENTS: &[&str] = &[
    // assignments
    "UPDATE user SET name = CONCAT(name, '!') WHERE id < 3",
    "UPDATE user SET name = LEFT(name, CHAR_LENGTH(name) - 1) WHERE name LIKE '%!'",
    "UPDATE user SET age = age / 2, wage = wage * 1.1, ratio = ratio + 0.5, weight = weight * 2 WHERE LENGTH(name) > 3",
    "UPDATE user SET age = IF(age > 20, age, age), name = TRIM(name)",
    "UPDATE user SET age = age + 1, wage = age WHERE id IN (1, 4) AND UPPER(name) <> 'X'",
    "UPDATE user SET born = born + INTERVAL 1 MONTH, seen = seen - INTERVAL 1 MICROSECOND, at = at + INTERVAL 1 DAY, hours = ADDTIME(hours, '00:00:01') WHERE id <> 2 AND LENGTH(name) > 1",
    "UPDATE user SET latin = CONCAT(latin, 'ü'), notes = REPEAT(name, 20), bits = CONCAT(bits, x'ff'), y = y - 1, big = big - 1 WHERE id IN (1, 4)",
    "UPDATE user SET email = LOWER(email), city = UPPER(city) WHERE id = 5",
    "UPDATE user SET city = 'far' WHERE CHAR_LENGTH(name) > 4",
    "UPDATE user SET email = NULL, name = COALESCE(email, name, 'x') WHERE id = 2",
    "UPDATE user SET name = email, email = name WHERE id = 1 AND CHAR_LENGTH(name) > 1",
    "UPDATE user SET name = DEFAULT(name) WHERE LENGTH(name) > 3",
    // a server that reads along the primary key looks for all rows first, and is not strict then
    "UPDATE user SET id = id WHERE age = 'abc'",
    "UPDATE user SET id = id, age = 3 WHERE age BETWEEN 'x' AND 'y' LIMIT 3",
    "UPDATE user SET name = UPPER(name) WHERE age = 'abc'",
    "UPDATE user SET age = DEFAULT, email = UPPER(email) WHERE id = 4",
    "UPDATE user SET notes = JSON_OBJECT('n', name, 'a', age) WHERE id = 4",
    "UPDATE user SET name = 'none' WHERE LENGTH(name) > 300",
    "UPDATE archive SET name = CONCAT('a', name), n = n + 1",
    // ORDER BY and LIMIT
    "UPDATE user SET wage = IFNULL(wage, 0) + 1 ORDER BY CHAR_LENGTH(name), id LIMIT 2",
    "UPDATE user SET age = COALESCE(age, 0) + id ORDER BY wage DESC, id LIMIT 3",
    "UPDATE user SET id = id + 1 WHERE CHAR_LENGTH(name) > 0 ORDER BY id DESC",
    "UPDATE user SET id = id - 1 WHERE CHAR_LENGTH(name) > 0 ORDER BY id",
    "UPDATE user SET id = 5 WHERE LENGTH(name) > 0 AND id = 1",
    "UPDATE pair SET a = a + 10, d = CONCAT(d, a) WHERE a + b > 2",
    // several tables
    "UPDATE user u JOIN orders o ON o.user_id = u.id SET u.wage = u.wage + o.total, o.total = o.total + 1 WHERE o.total > 8",
    "UPDATE user u, orders o SET u.notes = CONCAT(u.name, o.article), o.note = 'seen' WHERE o.user_id = u.id AND o.id IN (2, 3)",
    "UPDATE user, open SET user.age = open.n WHERE open.word = LOWER(user.name)",
    "UPDATE user u LEFT JOIN orders o ON o.user_id = u.id AND o.article = LOWER(u.name) SET u.city = 'left' WHERE o.id IS NULL AND u.id > 3",
    "UPDATE user u, orders o SET u.wage = u.wage + 1, o.total = o.total + 1 WHERE o.user_id = u.id AND LENGTH(u.name) > 1 ORDER BY o.id, u.id LIMIT 2",
    "UPDATE user SET wage = wage + LENGTH(name) ORDER BY id IN (SELECT user_id FROM orders ORDER BY user_id), id DESC LIMIT 2",
    "UPDATE user SET age = (SELECT COUNT(*) FROM orders o WHERE o.user_id = user.id) WHERE LENGTH(name) > 2",
    "UPDATE orders SET article = (SELECT UPPER(name) FROM user u WHERE u.id = orders.user_id) WHERE id < 3",
    "UPDATE user a JOIN user b ON b.id = a.id + 1 SET a.email = b.name WHERE a.id < 3",
    // what a derived table reads of the changed one is set aside first, as ActiveRecord has it
    "DELETE FROM orders WHERE id IN (SELECT id FROM (SELECT o.id FROM orders o LEFT JOIN user u ON u.id = o.user_id WHERE u.id IS NULL AND UPPER(u.name) IS NULL) AS t)",
    "UPDATE user SET city = 'far' WHERE id IN (SELECT id FROM (SELECT id FROM user WHERE CHAR_LENGTH(name) > 3 ORDER BY id LIMIT 1) AS t)",
    "UPDATE user SET age = COALESCE((SELECT age FROM (SELECT id, age FROM user) AS p WHERE p.id = user.id - 1), 1) WHERE LENGTH(name) > 2 ORDER BY id",
    "UPDATE user u JOIN (SELECT id FROM user WHERE UPPER(name) = 'BOB') AS t ON t.id = u.id SET u.city = 'near'",
    "DELETE u FROM user u JOIN (SELECT id FROM user WHERE UPPER(name) = 'BOB') AS t ON t.id = u.id",
    // names that no column has
    "UPDATE user SET nothing = UPPER(name)",
    "UPDATE user SET nothing = 1, born = NOW()",
    "INSERT INTO archive (name, nothing) VALUES ('x', 1)",
    "INSERT INTO archive (name, nothing) VALUES (UPPER('x'), 1)",
    "INSERT INTO archive (name, nothing) SELECT UPPER(name), 1 FROM user",
    // conversions, warnings, errors
    "UPDATE user SET age = name WHERE id = 1",
    "UPDATE IGNORE user SET age = name, wage = wage * 1e9 WHERE id < 4",
    "UPDATE user SET name = NULL WHERE LENGTH(name) > 2",
    "UPDATE IGNORE user SET name = NULLIF(name, name) WHERE id = 5",
    "UPDATE user SET name = nam",
    "UPDATE user SET name = REPEAT(name, 40)",
    "UPDATE IGNORE user SET name = REPEAT(name, 40) WHERE id = 4",
    "UPDATE user SET age = age / 0 WHERE id = 4",
    // deletions
    "DELETE FROM orders WHERE LENGTH(article) = 3",
    "DELETE FROM user WHERE CHAR_LENGTH(name) > 5 ORDER BY id DESC LIMIT 1",
    "DELETE FROM user WHERE LENGTH(name) > 500",
    "DELETE o FROM orders o JOIN user u ON u.id = o.user_id WHERE LOWER(o.article) = 'book' AND CHAR_LENGTH(u.name) < 4",
    "DELETE u, o FROM user u JOIN orders o ON o.user_id = u.id WHERE CHAR_LENGTH(u.name) > 2 AND o.total > 20",
    // a table by two names, of which a row may have both
    "DELETE a, b FROM user a, user b WHERE a.name LIKE 'a%' AND b.name = CONCAT('B', SUBSTRING(a.name, 2)) AND b.wage < 5",
    "DELETE a, b FROM user a JOIN user b ON b.id = a.id + 1 WHERE CHAR_LENGTH(a.name) < 6",
    "DELETE x, y FROM pair x, pair y, open WHERE x.a * y.b > 11 AND open.n > x.b",
    "DELETE a FROM user a, user b WHERE LOWER(a.name) = LOWER(b.name) AND a.id > b.id",
    "DELETE FROM pair WHERE a * b > 11",
    "DELETE FROM open WHERE word IN (SELECT LOWER(name) FROM user)",
    // rows of queries
    "INSERT INTO user (name, age, email, born) SELECT CONCAT(name, id), age + 1, email, born FROM user WHERE id <= 3",
    "INSERT INTO user SELECT id + 20, name, age, email, city, born, wage, ratio, weight, seen, at, hours, bits, notes, latin, y, big, changed FROM user WHERE LENGTH(name) > 2",
    "INSERT INTO archive (name, age, text, note) SELECT LEFT(name, 12), id, notes, city FROM user WHERE id < 4 ORDER BY id",
    "INSERT INTO archive (name, wage, born, f) SELECT CONCAT('w', id), id * 1.25, day, f FROM orders ORDER BY id",
    "INSERT INTO archive (name, at) SELECT CONCAT('t', id), at FROM user WHERE at IS NOT NULL",
    "INSERT INTO archive (name, age) SELECT 'kept', 1",
    "INSERT IGNORE INTO archive (name, age) SELECT word, n FROM open UNION ALL SELECT 'kept', 3 UNION ALL SELECT 'fresh', 4",
    "INSERT IGNORE INTO archive (name, age, wage) SELECT UPPER(name), id * 100, wage FROM user",
    "INSERT INTO archive (name, age) SELECT name, 1000 FROM user WHERE id = 1",
    "INSERT INTO archive (name, age) SELECT NULL, 1",
    "INSERT INTO archive (name, age) SELECT email, 1 FROM user WHERE email IS NULL AND LENGTH(name) > 0 LIMIT 1",
    "INSERT INTO archive (name, age) SELECT name FROM user",
    "INSERT INTO archive (name, age) SELECT UPPER(name), age FROM user WHERE id = 777",
    "REPLACE INTO archive (id, name, age, text) SELECT id, CONCAT('r', id), 7, name FROM user WHERE id < 5",
    "REPLACE INTO archive (id, name, age, text) SELECT id, CONCAT('r', id), 7, name FROM user WHERE id < 4",
    "INSERT INTO archive (id, name, age) SELECT id, CONCAT('d', id), 9 FROM user WHERE id < 30 ON DUPLICATE KEY UPDATE age = VALUES(age), n = n + 1",
    "INSERT INTO archive (name, text) WITH c AS (SELECT name, COUNT(*) AS many FROM user GROUP BY name) SELECT LEFT(CONCAT('c', name), 12), many FROM c",
    "INSERT INTO pair SELECT id, id + 1, 3, LOWER(name) FROM user",
    // a later row does not fit: an error in strict mode, and nothing stays (behind an error,
    // servers leave LAST_INSERT_ID() undefined, so that no number is asked for)
    "INSERT INTO archive (id, name, age) SELECT 90000 + id, CONCAT('s', id), id * 50 FROM orders ORDER BY id",
    "UPDATE archive SET age = age + id WHERE LENGTH(name) > 0 AND id < 4 ORDER BY id",
    "UPDATE archive SET age = 100 + id * 9 WHERE LENGTH(name) > 0 ORDER BY id",
    "INSERT INTO open SELECT id + 50, city, id FROM user WHERE CHAR_LENGTH(name) > 3",
    "INSERT INTO orders (user_id, article, paid, b, d, note) SELECT user_id, CONCAT(article, '?'), paid, b, d, note FROM orders",
];

fn stage(kind: Kind) -> Option<Pair> {
    Some(Pair::with_engine(kind, TABLES)?.filled(ROWS))
}

/// Findings about these tables.
fn findings() -> Findings {
    Findings {
        tables: CONTENTS,
        counted: &["user", "archive", "orders"],
        ..Findings::default()
    }
}

fn changes_as_a_plain_server_does(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = findings();
    for sql in STATEMENTS {
        findings.both_ways(&mut pair, sql, &[]);
    }
    // parameters
    for (sql, values) in [
        (
            "UPDATE user SET name = CONCAT(?, name), age = age + ? WHERE LENGTH(name) > ? AND id < ?",
            vec![Value::from("p"), 2.into(), 1.into(), 100.into()],
        ),
        (
            "DELETE FROM user WHERE UPPER(name) = ? LIMIT 5",
            vec![Value::from("BOB")],
        ),
        (
            "INSERT INTO archive (name, age, text) SELECT CONCAT(?, id), ?, name FROM user WHERE CHAR_LENGTH(name) > ? ON DUPLICATE KEY UPDATE n = n + ?",
            vec![Value::from("q"), 3.into(), 2.into(), 5.into()],
        ),
    ] {
        findings.both_ways(&mut pair, sql, &values);
    }
    // DEFAULT(name), both ways
    findings.conclude(&mut pair, 2);
}

fn settings_of_the_session_count(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = findings();
    for setting in [
        "SET sql_mode = ''",
        "SET time_zone = '+05:30'",
        "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'",
        "SET sql_mode = DEFAULT",
        "SET NAMES latin1",
        "SET @by = 3, @word = 'w'",
        "SET sql_select_limit = 1",
        "SET sql_select_limit = DEFAULT, autocommit = 0",
    ] {
        pair.run(setting);
        for sql in [
            "UPDATE user SET at = at + INTERVAL 1 HOUR, seen = at, age = age * 10, name = REPEAT(name, 9) WHERE id IN (1, 4)",
            "UPDATE user SET name = LEFT(CONCAT(name, @word), 7), age = age + @by",
            "INSERT INTO archive (name, age, at) SELECT CONCAT(name, name, id), age * 100, at FROM user WHERE id < 3",
            "DELETE FROM archive WHERE LENGTH(name) > 4",
        ] {
            findings.both_ways(&mut pair, sql, &[]);
        }
    }
    pair.run("SET autocommit = 1, sql_safe_updates = 1");
    for sql in [
        "UPDATE user SET name = CONCAT(name, 'x') WHERE LENGTH(name) > 2",
        "UPDATE user SET age = COALESCE(age, 0) + LENGTH(name) ORDER BY id LIMIT 2",
        "DELETE FROM user WHERE LENGTH(name) > 2",
        "DELETE FROM user WHERE LENGTH(name) > 2 ORDER BY id LIMIT 1",
    ] {
        findings.both_ways(&mut pair, sql, &[]);
    }
    findings.conclude(&mut pair, 0);
}

/// Rows written before one fails are taken back, in a transaction of the client's too, and what the
/// client did before stays.
fn a_failure_leaves_nothing_behind(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = findings();
    for begin in ["DO 0", "BEGIN"] {
        pair.run(begin);
        pair.run("UPDATE open SET n = 100 WHERE id = 1");
        for sql in [
            // the second row meets a key
            "INSERT INTO archive (id, name, age) SELECT 100 + id, CONCAT('new', id), 1 FROM user UNION ALL SELECT 300, 'kept', 2",
            "UPDATE archive SET name = CONCAT('same', LENGTH(name) * 0)",
            "UPDATE user SET id = id + 1 WHERE LENGTH(name) > 0 ORDER BY id",
            "UPDATE user SET age = age * 1000000000 WHERE id < 5",
        ] {
            findings.run(
                &mut pair,
                "INSERT INTO archive (id, name) VALUES (10, 'second'), (11, 'third')",
                None,
            );
            findings.run(&mut pair, sql, None);
            findings.contents(&mut pair, sql);
            findings.run(&mut pair, "DELETE FROM archive WHERE id > 1", None);
        }
        pair.run("COMMIT");
        findings.contents(&mut pair, begin);
    }
    findings.conclude(&mut pair, 0);
}

fn what_would_be_in_the_clear_is_refused(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    for sql in [
        "UPDATE user SET city = name",
        "UPDATE user SET city = LENGTH(name) WHERE id = 1",
        "UPDATE user SET name = 'x', city = CONCAT('a', user.email)",
        "UPDATE user u JOIN open o ON o.id = u.id SET o.word = u.name",
        "UPDATE open SET word = (SELECT MAX(name) FROM user)",
        "UPDATE user u JOIN (SELECT id, UPPER(email) AS e FROM user) d ON d.id = u.id SET u.city = d.e",
        "INSERT INTO open SELECT id, name, 1 FROM user",
        "INSERT INTO open SELECT id + 9, d.x, 1 FROM (SELECT id, CONCAT(name) x FROM user) d",
        "INSERT INTO open SELECT id + 9, d.sneaky, 1 FROM (SELECT id, CONCAT(name) AS 'sneaky' FROM user) d",
        "INSERT INTO archive (name, note) SELECT name, email FROM user",
        "INSERT INTO archive (name, note) SELECT 'x', (SELECT MIN(age) FROM user)",
        "INSERT INTO open SELECT id, city, age FROM user UNION SELECT 1, 'x', 2",
        "INSERT INTO open SELECT * FROM (SELECT id, age, city FROM user) d",
        "INSERT INTO open SELECT id + 60, 'x', RANK() OVER w FROM user WINDOW w AS (ORDER BY name)",
        "INSERT INTO open SELECT id + 60, 'x', RANK() OVER (w ORDER BY id) FROM user WINDOW w AS (PARTITION BY age)",
        "INSERT INTO open SELECT id + 60, `@n`, 1 FROM (SELECT id, name AS `@n` FROM user) d",
        "UPDATE user JOIN (SELECT id, name AS `@n` FROM user) d ON d.id = user.id SET city = `@n`",
        "INSERT INTO open SELECT o.id + 60, o.word, 1 FROM user, JSON_TABLE(CONCAT('[\"', name, '\"]'), '$[*]' COLUMNS (id INT PATH '$', word VARCHAR(20) PATH '$')) o \
         WHERE EXISTS (SELECT 1 FROM open o WHERE o.id = user.id)",
        "INSERT INTO open (id, word) SELECT d.id + 60, d.emaİl FROM (SELECT * FROM user) d",
        "REPLACE INTO open WITH c (i, w) AS (SELECT id, name FROM user) SELECT i, w, 1 FROM c",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1"), "{sql}: {failure}");
    }
    let mut findings = findings();
    findings.contents(&mut pair, "refusals");
    findings.conclude(&mut pair, 0);
    // of each row another
    pair.protected.must("UPDATE user SET name = UUID()");
    let names = "SELECT COUNT(DISTINCT name), MIN(CHAR_LENGTH(name)) FROM user";
    assert_eq!(pair.protected.text(names).expect("names"), "5\t36");
}

/// Which rows keep their keys under IGNORE, and the value of an ENUM that is no member; beside
/// these, what is counted.
fn what_only_the_server_decides_is_refused(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    for (name, columns) in [
        ("twosome", "x DOUBLE {}, a INT, b INT, UNIQUE KEY (a, b)"),
        ("colour", "e ENUM('red', 'green') NULL {}"),
        ("required", "v TEXT NOT NULL {}"),
    ] {
        let create = format!("CREATE TABLE {name} (id INT PRIMARY KEY, {columns})");
        pair.plain.must(&create.replace(" {}", ""));
        let protected = create.replace("{}", "ENCRYPTED FOR ()");
        pair.protected.must(&protected);
    }
    pair.both("INSERT INTO twosome VALUES (1, 1, 7, 1), (2, 2, 7, 2)");
    let update = "UPDATE IGNORE twosome SET x = x + 1, b = 1 ORDER BY id DESC";
    let failure = pair.protected.run(update).expect_err(update);
    assert!(
        failure.message.starts_with("OS1001 IGNORE where"),
        "{failure}"
    );
    pair.both("UPDATE IGNORE twosome SET x = x + 1, b = b + 1 ORDER BY id DESC");
    pair.both("SELECT * FROM twosome ORDER BY id");

    pair.both("INSERT IGNORE INTO colour VALUES (1, 'blue'), (2, 'green')");
    pair.both("INSERT INTO colour SELECT id + 10, e FROM colour WHERE id = 2");
    let copy = "INSERT INTO colour SELECT id + 20, e FROM colour";
    let failure = pair.protected.run(copy).expect_err(copy);
    assert!(failure.message.starts_with("OS1026"), "{failure}");
    pair.both("SELECT * FROM colour ORDER BY id");

    pair.both("INSERT IGNORE INTO required VALUES (1, DEFAULT), (2, DEFAULT)");
    pair.both("INSERT IGNORE INTO required (id) VALUES (3), (4)");
    pair.both("SELECT * FROM required ORDER BY id");
    findings().conclude(&mut pair, 0);
}

fn rows_are_locked_until_the_end(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut other = pair.proxy.connect_to("app");
    other.must("SET innodb_lock_wait_timeout = 1");
    pair.protected.must("BEGIN");
    pair.protected
        .must("UPDATE user SET name = CONCAT(name, '?') WHERE id = 1");
    assert_eq!(
        other.must_fail("UPDATE user SET city = 'y' WHERE id = 1"),
        1205
    );
    other.must("UPDATE user SET city = 'z' WHERE id = 2");
    // a query's rows are locked for reading
    pair
        .protected
        .must("INSERT INTO archive (name) SELECT CONCAT('l', id) FROM orders WHERE id = 1 AND LENGTH(article) > 1");
    assert_eq!(
        other.must_fail("UPDATE orders SET total = 0 WHERE id = 1"),
        1205
    );
    pair.protected.must("ROLLBACK");
    other.must("UPDATE orders SET total = 0 WHERE id = 1");
    // two sessions that count at the same time lose nothing
    let proxy = &pair.proxy;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                let mut session = proxy.connect_to("app");
                for _ in 0..20 {
                    session.must("UPDATE user SET wage = ABS(wage) + 1 WHERE id = 5");
                }
            });
        }
    });
    let sum = pair.protected.text("SELECT wage FROM user WHERE id = 5");
    assert_eq!(sum.expect("a sum"), "40.00");
}

fn many_rows_in_batches(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut findings = findings();
    let values: Vec<String> = (1..=1300)
        .map(|n| format!("({}, 'word {n}', {})", n + 100, n % 7))
        .collect();
    pair.run(&format!("INSERT INTO open VALUES {}", values.join(",")));
    pair.run("DELETE FROM archive");
    for sql in [
        "INSERT INTO archive (name, age, text) SELECT CONCAT('n', id), n, word FROM open WHERE id > 100 ORDER BY id",
        "UPDATE archive SET text = CONCAT(text, '!', age), n = n + 1 WHERE LENGTH(text) > 6",
        "DELETE FROM archive WHERE LENGTH(text) < 9",
        "INSERT IGNORE INTO archive (name, age) SELECT CONCAT('n', id), 0 FROM open WHERE id > 100 ORDER BY id",
    ] {
        findings.renumber(&mut pair);
        findings.run(&mut pair, sql, None);
        findings.contents(&mut pair, sql);
    }
    findings.conclude(&mut pair, 0);
}

fn files_of_the_client(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    pair.plain.must("SET GLOBAL local_infile = 1");
    pair.behind.connect().must("SET GLOBAL local_infile = 1");
    pair.engine().connect().must("SET GLOBAL local_infile = 1");
    let file = "1,Anna,33,12.5,note one\n2,Bert,,9999999,\"two, \"\"quoted\"\"\"\n\
        3,a name that is too long for it,300,x,\\N\n4,Anna,1,1,again\n5\n6,Emil,6,6,six,too many\n7,kept,1,2,3\n";
    let mut findings = findings();
    for session in [&mut pair.plain, &mut pair.protected] {
        let handler = ::mysql::LocalInfileHandler::new(move |_, writer| {
            std::io::Write::write_all(writer, file.as_bytes())
        });
        session.conn().set_local_infile_handler(Some(handler));
    }
    let csv = "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'";
    for sql in [
        format!(
            "LOAD DATA LOCAL INFILE 'a.csv' INTO TABLE archive {csv} (id, name, age, wage, text)"
        ),
        format!(
            "LOAD DATA LOCAL INFILE 'a.csv' REPLACE INTO TABLE archive {csv} (id, name, age, wage, text)"
        ),
        format!(
            "LOAD DATA LOCAL INFILE 'a.csv' IGNORE INTO TABLE archive {csv} IGNORE 1 LINES (id, @n, age) SET name = CONCAT(UPPER(@n), age), note = 'loaded', n = id * 2"
        ),
        format!(
            "LOAD DATA LOCAL INFILE 'a.csv' INTO TABLE app.archive CHARACTER SET latin1 {csv} LINES STARTING BY '' (@i, name) SET text = REVERSE(@i)"
        ),
        "LOAD DATA LOCAL INFILE 'a.csv' INTO TABLE archive (nam)".into(),
        "LOAD DATA LOCAL INFILE 'a.csv' INTO TABLE pair FIELDS TERMINATED BY ',' (c, d, a, b)"
            .into(),
        "LOAD DATA LOCAL INFILE 'a.csv' INTO TABLE open FIELDS TERMINATED BY ','".into(),
    ] {
        findings.renumber(&mut pair);
        findings.run(&mut pair, &sql, None);
        findings.contents(&mut pair, &sql);
    }
    // without strict mode, rows that do not fit are changed and do replace others
    pair.run("SET sql_mode = ''");
    let sql = format!(
        "LOAD DATA LOCAL INFILE 'a.csv' REPLACE INTO TABLE archive {csv} (id, name, age, wage, text)"
    );
    for _ in 0..2 {
        findings.renumber(&mut pair);
        findings.run(&mut pair, &sql, None);
        findings.contents(&mut pair, &sql);
    }
    pair.run("SET sql_mode = DEFAULT");
    for sql in [
        "LOAD DATA INFILE '/etc/hosts' INTO TABLE archive (name)",
        "LOAD DATA LOCAL INFILE 'a.csv' INTO TABLE archive FIELDS TERMINATED BY ',' (id, name) SET note = name",
        "LOAD DATA LOCAL INFILE 'a.csv' INTO TABLE archive (name) SET note = LOAD_FILE('/etc/hosts')",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1"), "{sql}: {failure}");
    }
    pair.behind.connect().must("SET GLOBAL local_infile = 0");
    let off = pair
        .protected
        .must_fail("LOAD DATA LOCAL INFILE 'a.csv' INTO TABLE archive (name)");
    assert!(matches!(off, 3948 | 4166), "{off}");
    // a column that is not there
    findings.conclude(&mut pair, 1);
}

/// RETURNING, which MariaDB has.
fn new_rows_are_returned(kind: Kind) {
    if kind == Kind::MySql {
        return;
    }
    let Some(mut pair) = stage(kind) else { return };
    for sql in [
        "INSERT INTO archive (name, age, text, note) VALUES ('one', 1, 'first', 'x'), ('two', 2, NULL, 'y') RETURNING id, name, age, text AS t, note",
        "INSERT INTO archive (name) VALUES ('three') RETURNING *",
        "INSERT INTO archive SET name = 'four', wage = 1.25 RETURNING name, wage, id + 1 AS next",
        "REPLACE INTO archive (id, name) VALUES (1, 'again') RETURNING id, name, text",
        "INSERT IGNORE INTO archive (name) VALUES ('again'), ('five') RETURNING name",
        "DELETE FROM archive WHERE name = 'two' RETURNING id, text, name",
        "DELETE FROM archive WHERE id > 1 RETURNING name",
    ] {
        pair.run("BEGIN");
        pair.compare_prepared(sql);
        pair.run("ROLLBACK");
        pair.compare_text(sql);
    }
    pair.conclude(0);
    let mut findings = findings();
    findings.contents(&mut pair, "RETURNING");
    findings.conclude(&mut pair, 0);
}

fn the_server_sees_no_plaintext(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let (value, literal) = ("Kq7vTz2wXc", "Rm4pLs9dYb");
    let session = &mut pair.protected;
    session.must(&format!(
        "INSERT INTO user (id, name, email, notes) VALUES (77, 'x{value}', 'm{value}', 'n{value}')"
    ));
    for sql in [
        format!("UPDATE user SET name = CONCAT('{literal}', email), notes = CONCAT(notes, '{literal}') WHERE name = 'x{value}'"),
        format!("UPDATE user u, orders o SET o.article = CONCAT('{literal}', u.id) WHERE u.email = 'm{value}' AND o.id = 1"),
        "INSERT INTO archive (name, text) SELECT RIGHT(name, 12), CONCAT(email, notes) FROM user WHERE id = 77".into(),
        format!("REPLACE INTO archive (id, name, text) SELECT 900, '{literal}', '{value}'"),
        format!("DELETE FROM user WHERE REVERSE(name) = REVERSE('{literal}m{value}')"),
    ] {
        session.must("BEGIN");
        session.execute(&sql, ()).unwrap_or_else(|e| panic!("{sql}: {e}"));
        session.must("ROLLBACK");
        assert!(session.must(&sql).affected > 0, "{sql}");
    }
    assert_eq!(
        session
            .text("SELECT text FROM archive WHERE id > 1 ORDER BY id")
            .expect("rows"),
        format!("m{value}n{value}{literal}\n{value}")
    );
    pair.assert_no_trace_of(&[value, literal]);
}

/// The server notes of each row that is written by itself that such a log may not repeat it. That
/// is no fault of the row, and without transactions the rows before it would stay written.
fn a_binary_log_of_statements(kind: Kind) {
    let server = ServerOptions {
        binlog: Some(Binlog::Statement),
        ..ServerOptions::default()
    };
    let tables = ["InnoDB", "MyISAM"].map(|engine| {
        format!("CREATE TABLE {engine} (word VARCHAR(40) {{eq}}, n INT) ENGINE={engine}")
    });
    let options = PairOptions {
        tables: &[&tables[0], &tables[1]],
        engine: Engine::Own,
        server,
        ..PairOptions::default()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    for table in ["InnoDB", "MyISAM"] {
        pair.both(&format!(
            "INSERT INTO {table} VALUES ('alice', 1), ('bob', 2), ('bob', 2), ('carol', 3)"
        ));
        for change in [
            "SET word = UPPER(word)",
            "SET word = CONCAT(word, n), n = n + 1",
        ] {
            pair.both(&format!("UPDATE {table} {change}"));
            pair.same_rows(
                &format!("SELECT word, n FROM {table} ORDER BY n, word"),
                &[],
            );
        }
    }
}

/// What a computed constant has that UTF-8 has not is an error where it is stored, or is stored as
/// it is. It never becomes a question mark unsaid.
fn texts_that_are_no_characters(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, u VARCHAR(60) CHARACTER SET utf8mb4 {eq}, \
        g VARCHAR(60) CHARACTER SET gbk {eq}, b VARBINARY(60) {})";
    let Some(mut pair) = Pair::of(kind, true, &[table]) else {
        return;
    };
    for names in ["utf8mb4", "koi8r", "latin1", "gbk"] {
        pair.both(&format!("SET NAMES {names}"));
        for text in [
            "CONCAT(CONVERT(x'e4b8ade9' USING gbk), '')",
            "CONCAT(CONVERT(x'e4b83fade93f' USING gbk), '?')",
            "CONCAT(CONVERT(x'81' USING cp932), '')",
            "CONCAT(CONVERT(x'81811a2424' USING big5), 'a')",
            "CONCAT(_ucs2 x'4e2d', '')",
            "CONCAT(_ucs2 x'3f2d', '?')",
            "CONCAT('what', '?')",
            "CONCAT(_utf8mb4 x'c3a9', '?')",
            "REVERSE(_utf8mb4 x'61c3a93f')",
        ] {
            for column in ["u", "g", "b"] {
                pair.both("DELETE FROM t");
                for sql in [
                    format!("INSERT INTO t (id, {column}) VALUES (1, {text})"),
                    format!("UPDATE t SET {column} = {text}"),
                ] {
                    let said = pair.say(&sql);
                    let is_refused = said.is_refused();
                    // the bytes that an error shows are those of UTF-8
                    let [plain, protected] = [&said.plain, &said.protected]
                        .map(|said| said.starts_with("1366 Incorrect string"));
                    assert!(
                        is_refused || plain && protected || said.plain == said.protected,
                        "{names}: {sql}: {said:?}"
                    );
                    if is_refused {
                        pair.plain.must("DELETE FROM t");
                        pair.protected.must("DELETE FROM t");
                    }
                    pair.same_result_of_text("SELECT id, HEX(u), HEX(g), HEX(b) FROM t");
                }
            }
        }
    }
}
