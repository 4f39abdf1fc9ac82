//! Tier 3: statements that need values in the clear answer as a plain server does, by way of a
//! scratch engine. What cannot be the same there is refused, and the server behind sees nothing of
//! it.

#[path = "scratch/everyday.rs"]
mod everyday;

#[path = "scratch/limits.rs"]
mod limits;

use ::mysql::Value;
use everyday::{
    answers_as_a_plain_server_does, parameters_of_prepared_statements,
    settings_of_the_session_follow,
};
use limits::{
    a_hundred_rows_take_milliseconds, bounds_are_errors, the_engine_is_quiet_and_bounded,
    what_is_refused,
};
use onionskin_testkit::*;

on_both_servers!(
    answers_as_a_plain_server_does,
    settings_of_the_session_follow,
    parameters_of_prepared_statements,
    snapshots_and_locks_are_the_sessions,
    one_statement_has_one_snapshot,
    what_is_refused,
    bounds_are_errors,
    the_server_sees_nothing,
    constants_for_protected_columns,
    tables_may_change,
    conditions_are_read_as_the_server_reads_them,
    what_stands_before_a_table,
    the_engine_is_quiet_and_bounded,
    a_hundred_rows_take_milliseconds,
    tables_of_few_rows,
    sums_of_many_digits,
    padded_texts,
    index_hints,
);

/// `{words}` stands for the protection of a column.
const TABLES: &str = "
CREATE TABLE user (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) NOT NULL {eq}, age INT {eq, range}, email VARCHAR(60) COLLATE utf8mb4_bin {}, \
 city VARCHAR(20) DEFAULT 'Bern', born DATE {range}, wage DECIMAL(10,2) {}, ratio DOUBLE {}, weight FLOAT {}, seen DATETIME(3) {}, at TIMESTAMP NULL {}, \
 hours TIME(2) {}, bits VARBINARY(12) {eq}, notes TEXT {}, latin VARCHAR(20) CHARACTER SET latin1 {}, y YEAR {}, big BIGINT UNSIGNED {range});
CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, user_id INT, total DECIMAL(8,2), article VARCHAR(30) {eq}, day DATE, paid TIMESTAMP(3) NULL, \
 f FLOAT, d DOUBLE, b BIT(5), note VARCHAR(30) COLLATE utf8mb4_bin, KEY (user_id));
CREATE TABLE pair (a INT NOT NULL {eq}, b INT NOT NULL {eq}, c INT, d VARCHAR(20) {}, PRIMARY KEY (a, b));
CREATE TABLE open (id INT PRIMARY KEY, word VARCHAR(20), n INT NOT NULL DEFAULT 5, d DATE NOT NULL DEFAULT '2020-01-01', w DECIMAL(5,2) NOT NULL DEFAULT 1.5, \
 t VARCHAR(5) NOT NULL DEFAULT 'x', u TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, e DATETIME(2) NOT NULL DEFAULT CURRENT_TIMESTAMP(2))
";

const ROWS: &[&str] = &[
    "INSERT INTO user VALUES (1, 'Alice', 31, 'alice@example.org', 'Bern', '1990-02-28', 1234.50, 0.1, 1.1, '2024-02-29 12:13:14.567', '2024-03-31 02:30:00', \
     '-12:34:56.78', x'00ff27', 'a long story', 'Zoë', 1999, 18446744073709551615)",
    "INSERT INTO user VALUES (2, 'bob', 17, 'Bob@Example.org', 'Basel', '2004-12-31', 99.99, 1e308, 3.4e38, '1999-12-31 23:59:59.999', '1970-01-02 00:00:00', \
     '838:59:59', '', '', 'ß', 2155, 0)",
    "INSERT INTO user VALUES (3, 'Émile', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "INSERT INTO user VALUES (4, 'carol''s \\\\ \"x\"', 45, 'c%d_e', 'Bern', '1978-07-01', -5.00, -0.0, 16777217, '2024-02-29 00:00:00', '2038-01-19 03:14:07', \
     '00:00:00.01', x'5c', 'line\\nbreak 🦀', '', 0, 42)",
    "INSERT INTO user VALUES (5, 'ALICE', 45, 'dave@example.org', 'bern', '1978-07-01', 0.00, 2.5, 0.333333, '2024-02-29 00:00:01', '2001-09-09 01:46:40', \
     '10:00:00', 'abc', 'a long story', 'é', 2024, 9223372036854775808)",
    "INSERT INTO orders VALUES (1, 1, 10.00, 'book', '2024-01-01', '2024-03-31 01:59:59.125', 0.1, 0.1, 3, 'x')",
    "INSERT INTO orders VALUES (2, 1, 25.50, 'Pen', '2024-01-15', NULL, 16777217, 1e-300, 31, 'Y ')",
    "INSERT INTO orders VALUES (3, 2, 7.25, 'book', NULL, '2000-01-01 00:00:00', NULL, NULL, NULL, NULL)",
    "INSERT INTO orders VALUES (4, 9, NULL, NULL, '2024-02-29', '2037-12-31 23:59:59.999', -1.5, 1234567890.123456, 0, '')",
    "INSERT INTO pair VALUES (1, 1, 5, 'one'), (1, 2, 6, 'two'), (2, 1, 7, NULL)",
    "INSERT INTO open (id, word, u, e) VALUES (1, 'alice', '2024-05-06 07:08:09', '2024-01-01 00:00:00.12'), (2, 'BOB', '1999-01-01 00:00:00', '1000-01-01'), \
     (3, 'nobody', '2030-01-01 00:00:00', '2024-01-01')",
];

fn stage(kind: Kind) -> Option<Pair> {
    let mut pair = Pair::with_engine(kind, TABLES)?;
    for row in ROWS {
        pair.both(row);
    }
    Some(pair)
}

fn snapshots_and_locks_are_the_sessions(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut other = pair.proxy.connect_to("app");
    // a transaction sees its own changes, and its own snapshot
    let count = "SELECT COUNT(*), MAX(UPPER(name)) FROM user";
    let protected = &mut pair.protected;
    protected.must("START TRANSACTION");
    assert_eq!(protected.text(count).unwrap(), "5\tÉMILE");
    other.must("INSERT INTO user (id, name) VALUES (6, 'zed')");
    assert_eq!(protected.text(count).unwrap(), "5\tÉMILE");
    protected.must("INSERT INTO user (id, name) VALUES (7, 'zoo')");
    assert_eq!(protected.text(count).unwrap(), "6\tZOO");
    protected.must("ROLLBACK");
    assert_eq!(protected.text(count).unwrap(), "6\tZED");
    // several tables outside of a transaction do not leave one open
    let joined = "SELECT COUNT(*) FROM user JOIN open ON UPPER(open.word) = UPPER(user.name)";
    assert_eq!(protected.text(joined).unwrap(), "3");
    other.must("DELETE FROM user WHERE id = 6");
    assert_eq!(protected.text(count).unwrap(), "5\tÉMILE");
    // rows are locked
    protected.must("START TRANSACTION");
    protected.must("SELECT UPPER(name) FROM user WHERE id = 1 FOR UPDATE");
    other.must("SET innodb_lock_wait_timeout = 1");
    assert_eq!(
        other.must_fail("UPDATE user SET city = 'x' WHERE id = 1"),
        1205
    );
    other.must("UPDATE user SET city = 'x' WHERE id = 2");
    protected.must("COMMIT");
    // those that an inner query locks, and no others
    let inner = "SELECT COUNT(*) FROM (SELECT 1 FROM user WHERE UPPER(name) = 'ALICE' AND id = 1 FOR UPDATE) AS locked, open";
    protected.must("START TRANSACTION");
    assert_eq!(protected.text(inner).unwrap(), "3");
    let taken = "UPDATE user SET city = 'y' WHERE id = 1";
    assert_eq!(other.must_fail(taken), 1205);
    other.must("UPDATE open SET word = word WHERE id = 1");
    protected.must("COMMIT");
    other.must(taken);
    protected.must("START TRANSACTION");
    let shared = inner.replace("FOR UPDATE", "LOCK IN SHARE MODE");
    assert_eq!(protected.text(&shared).unwrap(), "3");
    assert_eq!(other.must_fail(taken), 1205);
    assert_eq!(other.text(&shared).unwrap(), "3");
    protected.must("COMMIT");
    other.must("UPDATE user SET city = 'x' WHERE id = 1");
    // tables that the session has locked stay locked
    protected.must("LOCK TABLES user READ, open READ");
    assert_eq!(protected.text(joined).unwrap(), "3");
    assert_eq!(
        protected.must_fail("INSERT INTO open (id, word) VALUES (9, 'x')"),
        1099
    );
    protected.must("UNLOCK TABLES");
    // below REPEATABLE READ, several tables are read by one statement
    protected.must("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION");
    assert_eq!(protected.text(joined).unwrap(), "3");
    assert_eq!(protected.text(count).unwrap(), "5\tÉMILE");
    // with locks, each would be read by itself
    assert_eq!(protected.must_fail(&format!("{joined} FOR UPDATE")), 1235);
    protected.must("COMMIT");
    assert_eq!(protected.text(joined).unwrap(), "3");
    // one session's tables are not another's, and nothing is left behind
    assert_eq!(other.text(count).unwrap(), "5\tÉMILE");
    let left = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'app'";
    assert_eq!(pair.engine().connect().text(left).unwrap(), "0");
    pair.proxy.assert_healthy();
}

/// Below REPEATABLE READ each statement of a transaction sees what is committed by then, and one
/// statement sees one state of all tables.
fn one_statement_has_one_snapshot(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    for session in pair.sessions() {
        session.must("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
        session.must("START TRANSACTION");
    }
    // every type, in the form in which it comes
    for sql in [
        "SELECT u.*, UPPER(u.name), o.*, UPPER(o.article) FROM user u LEFT JOIN orders o \
         ON o.user_id = u.id ORDER BY u.id, o.id",
        "SELECT u.*, p.*, o.*, CONCAT(u.name, p.d) FROM user u, pair p, open o \
         WHERE p.a = u.id AND o.id = p.b ORDER BY u.id, p.a, p.b",
        "SELECT name FROM user WHERE LENGTH(name) > (SELECT MIN(LENGTH(article)) FROM orders) \
         ORDER BY id",
        "SELECT UPPER(name) FROM user UNION SELECT UPPER(article) FROM orders ORDER BY 1",
        "SELECT COUNT(*) FROM user u JOIN orders o ON UPPER(u.name) = o.article WHERE u.id > 100",
    ] {
        pair.same_result(sql);
    }
    // a sum over two tables is never seen in between
    let mut admin = pair.proxy.connect_to("app");
    admin.must("CREATE TABLE one (id INT PRIMARY KEY, v VARCHAR(20) ENCRYPTED FOR (eq), n INT)");
    admin.must("CREATE TABLE two (id INT PRIMARY KEY, v VARCHAR(20) ENCRYPTED FOR (eq), n INT)");
    for id in 0..50 {
        admin.must(&format!("INSERT INTO one VALUES ({id}, 'a', 10)"));
        admin.must(&format!("INSERT INTO two VALUES ({id}, 'a', 10)"));
    }
    let ends = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut mover = pair.proxy.connect_to("app");
            let mut n = 0;
            while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                n = (n + 1) % 50;
                mover.must("START TRANSACTION");
                mover.must(&format!("UPDATE one SET n = n + 1 WHERE id = {n}"));
                mover.must(&format!("UPDATE two SET n = n - 1 WHERE id = {n}"));
                mover.must("COMMIT");
            }
        });
        let mut reader = pair.proxy.connect_to("app");
        reader.must("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
        reader.must("START TRANSACTION");
        let sum = "SELECT SUM(n) FROM (SELECT n, UPPER(v) AS v FROM one UNION ALL \
                   SELECT n, UPPER(v) FROM two) x WHERE v = 'A'";
        let moved = "SELECT SUM(n), COUNT(UPPER(v)) FROM one";
        let first = reader.text(moved);
        let mut found = Vec::new();
        for _ in 0..60 {
            found.push(reader.text(sum));
        }
        let last = reader.text(moved);
        ends.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(
            found.iter().all(|sum| sum.as_deref() == Ok("1000")),
            "{found:?}"
        );
        assert_ne!(first, last, "each statement sees what is committed by then");
    });
    pair.proxy.assert_healthy();
}

fn the_server_sees_nothing(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let (value, literal) = ("Kq7vTz2wXc", "Rm4pLs9dYb");
    pair.protected.must(&format!(
        "INSERT INTO user (id, name, notes) VALUES (50, 'x{value}', 'y{value}')"
    ));
    for sql in [
        format!("SELECT UPPER(notes) FROM user WHERE REVERSE(name) <> '{literal}'"),
        format!("SELECT CONCAT(notes, '{literal}') FROM user WHERE name = 'x{value}'"),
        format!("SELECT IF(notes LIKE '%{value}', '{literal}', name) FROM user WHERE id = 50"),
    ] {
        pair.protected.must(&sql);
        pair.protected
            .execute(&sql, ())
            .expect("it can be prepared");
    }
    let parameter = "SELECT CONCAT(notes, ?) FROM user WHERE UPPER(name) = UPPER(?)";
    let found = pair
        .protected
        .execute(parameter, (literal, format!("x{value}")))
        .unwrap();
    assert_eq!(found.sets[0].rows.len(), 1);
    pair.assert_no_trace_of(&[value, literal]);
}

fn constants_for_protected_columns(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    pair.both("SET timestamp = 1700000000.25, @v = 'from a variable'");
    for sql in [
        r"INSERT INTO user (id, name, age, email) VALUES (20, CONCAT('a', '''b', '\\'), 1 + 2, LOWER('É@X')), (21, UPPER('x'), 7 DIV 2, NULL)",
        "INSERT INTO user (id, name, seen, born, at, hours) VALUES (22, 'n', NOW(3), CURDATE(), FROM_UNIXTIME(5), MAKETIME(1, 2, 3))",
        "INSERT INTO user (id, name, bits, wage, ratio) VALUES (23, @v, UNHEX('00ff'), 10 / 4, SQRT(2)), (24, @v, x'01', 2, 1e0)",
        "INSERT INTO user SET id = 25, name = REPEAT('ab', 3), notes = IF(1 > 2, 'x', NULL)",
        "UPDATE user SET name = CONCAT(@v, '!'), age = 6 * 7 WHERE id = 20",
        "UPDATE user SET notes = REPEAT('n', 20), city = 'c' WHERE id > 20",
        "UPDATE user SET age = 2 + 3 WHERE id = 999",
        "REPLACE INTO user (id, name, age) VALUES (25, LPAD('7', 3, '0'), ABS(-5))",
    ] {
        pair.both(sql);
    }
    pair.both("INSERT INTO user (id, name) VALUES (30, UUID())");
    let uuid = pair
        .protected
        .text("SELECT CHAR_LENGTH(name) FROM user WHERE id = 30");
    assert_eq!(uuid.unwrap(), "36");
    pair.both("DELETE FROM user WHERE id = 30");
    // prepared, with parameters inside and beside
    let insert = "INSERT INTO user (id, name, age) VALUES (?, CONCAT(?, 'é'), ? + 1)";
    for session in [&mut pair.plain, &mut pair.protected] {
        for id in [40, 41] {
            session
                .execute(insert, (id, r"O'Neil\", id * 2))
                .expect(insert);
        }
    }
    pair.compare("SELECT * FROM user ORDER BY id", &[]);
    for sql in [
        "INSERT INTO user (id, name) VALUES (50, SLEEP(0))",
        "INSERT INTO user (id, name) VALUES (50, VERSION())",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1"), "{sql}: {failure}");
    }
    // what the column does not take, the server's own error says, or a refusal
    for sql in [
        "INSERT INTO user (id, name, age) VALUES (50, 'x', NOW())",
        "INSERT INTO user (id, name, age) VALUES (50, 'x', 'five' + 1)",
    ] {
        let expected = pair.plain.must_fail(sql);
        let failure = pair.protected.run(sql).expect_err(sql);
        let refused = failure.message.starts_with("OS1");
        assert!(refused || failure.code == expected, "{sql}: {failure}");
    }
    pair.conclude(0);
}

fn tables_may_change(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let sql = "SELECT *, (SELECT UPPER(name) FROM user WHERE user.id = open.id) AS n FROM open ORDER BY id";
    pair.compare(sql, &[]);
    // past this proxy, and through another session of it
    pair.plain
        .must("ALTER TABLE open ADD extra VARCHAR(9) DEFAULT 'new'");
    let mut past = pair.behind.connect();
    past.must("ALTER TABLE app.open ADD extra VARCHAR(9) DEFAULT 'new'");
    std::thread::sleep(std::time::Duration::from_millis(1200));
    pair.compare(sql, &[]);
    pair.both("ALTER TABLE open DROP word");
    pair.compare(sql, &[]);
    pair.plain.must("ALTER TABLE open DROP extra");
    past.must("ALTER TABLE app.open DROP extra");
    pair.compare(sql, &[]);
    pair.both("ALTER TABLE user ADD more INT DEFAULT 7");
    pair.compare("SELECT *, CHAR_LENGTH(name) FROM user ORDER BY id", &[]);
    pair.conclude(0);
}

fn conditions_are_read_as_the_server_reads_them(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    for sql in [
        "SELECT UPPER(name) FROM user WHERE id = 1 XOR age = 45 AND id < 3 ORDER BY id",
        "SELECT UPPER(name) FROM user WHERE id = 1 || age = 45 AND city = 'Bern' ORDER BY id",
        "SELECT UPPER(name) FROM user WHERE id > 1 && age = 45 AND city = 'Bern' ORDER BY id",
        "SELECT UPPER(name), word FROM user JOIN open USING (id) WHERE id = 2 AND word = 'bob'",
        "SELECT UPPER(name) FROM user WHERE id = 1 AND city = 'Bern' AND id <> 5",
        // a warning, or an error, for each row that the statement looks at
        "SELECT UPPER(article), LOWER(article) FROM orders WHERE note = 5 ORDER BY id",
        "SELECT UPPER(article) FROM orders WHERE total + 1 > 5 AND day > '2024-01-02' ORDER BY id",
    ] {
        pair.compare(sql, &[]);
    }
    pair.run("SET completion_type = 1");
    pair.compare(
        "SELECT COUNT(*) FROM user JOIN open ON UPPER(open.word) = UPPER(user.name)",
        &[],
    );
    let changes = "UPDATE user SET age = age + 1 WHERE id = 1";
    pair.run(changes);
    let mut other = pair.proxy.connect_to("app");
    other.must("SET innodb_lock_wait_timeout = 1");
    other.must("UPDATE user SET city = 'free' WHERE id = 1");
    pair.run("SET completion_type = 0");
    let secret = "Zt5qWm8rPn";
    let log = pair.behind.data_files();
    for sql in [
        "SELECT UPPER(name) FROM user WHERE ? <> '' AND LOWER(name) = LOWER(?)",
        "SELECT UPPER(name) FROM user JOIN open ON open.id = user.id WHERE ? <> word + '' AND UPPER(email) = ?",
    ] {
        pair.protected.execute(sql, (secret, secret)).expect(sql);
    }
    let found = log.iter().any(|file| {
        let bytes = std::fs::read(file).unwrap_or_default();
        !find_all(&Pattern::of_text(secret), &bytes).is_empty()
    });
    assert!(!found, "a constant beside no column came to the server");
    for sql in [
        "SELECT UPPER(name) FROM user UNION TABLE information_schema.PROCESSLIST",
        "WITH x AS (TABLE mysql.user) SELECT UPPER(name) FROM user, x",
        "INSERT INTO user (city, name) VALUES (@a := 'x', @a)",
        "INSERT INTO user (name, at) VALUES (UPPER('x'), NOW()), (NOW(), NULL), (@a := 1, NULL)",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1"), "{sql}: {failure}");
    }
    // a part of WITH is none elsewhere
    let sql = "SELECT UPPER(name) FROM user WHERE id IN (WITH s AS (SELECT 1) SELECT * FROM s) OR id IN (SELECT * FROM s)";
    assert_eq!(pair.protected.must_fail(sql), 1146);
    assert_eq!(pair.plain.must_fail(sql), 1146);
    // MariaDB opens a temporary table twice, and MySQL gets two
    pair.compare(
        "SELECT UPPER(name), (SELECT MAX(CHAR_LENGTH(name)) FROM user) FROM user",
        &[],
    );
    // characters that the client's set does not have
    pair.run("SET NAMES latin1");
    pair.run(
        "INSERT INTO user (id, name, notes) VALUES (60, CONCAT(_utf8mb4 x'f09fa680', ''), UPPER(_utf8mb4 x'c3a9'))",
    );
    pair.run("SET NAMES utf8mb4");
    pair.compare(
        "SELECT HEX(name), HEX(notes), CHAR_LENGTH(name) FROM user WHERE id = 60",
        &[],
    );
    // a system database
    pair.run("USE information_schema");
    pair.compare("SELECT UPPER(name) FROM app.user WHERE id = 1", &[]);
    pair.run("USE app");
    pair.conclude(0);
}

fn what_stands_before_a_table(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let sql =
        "SELECT UPPER(name), word, n FROM user JOIN open ON open.id = user.id ORDER BY user.id";
    pair.compare(sql, &[]);
    // of the same columns, but other types
    pair
        .protected
        .must("CREATE TEMPORARY TABLE open (id INT PRIMARY KEY, word VARCHAR(20) CHARACTER SET latin1, n DECIMAL(5,2) NOT NULL)");
    pair.protected
        .must("INSERT INTO open VALUES (1, 'x', 1.25)");
    let failure = pair.protected.run(sql).unwrap_err();
    assert!(failure.message.starts_with("OS"), "{failure}");
    pair.protected.must("DROP TEMPORARY TABLE open");
    pair.compare(sql, &[]);
    pair.conclude(0);
}

/// The server gets them, with the rows that it is asked for. The engine has no such index.
fn index_hints(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    for sql in [
        "SELECT UPPER(name) FROM user USE INDEX (PRIMARY) ORDER BY id",
        "SELECT UPPER(u.name) FROM user AS u FORCE INDEX FOR ORDER BY (`PRIMARY`) IGNORE KEY (PRIMARY) WHERE u.id > 1 ORDER BY u.id",
        "SELECT o.id, UPPER(u.name) FROM orders o IGNORE INDEX /* a (b) */ (user_id) JOIN user u USE INDEX () ON o.user_id = u.id WHERE o.id = 2",
        "SELECT UPPER(name), (SELECT COUNT(*) FROM user x FORCE INDEX (PRIMARY) WHERE LOWER(x.name) < LOWER(user.name)) FROM user USE INDEX (PRIMARY) ORDER BY id",
        "SELECT UPPER(name) FROM user USE INDEX (nothing)",
        "SELECT UPPER(name) FROM user AS x FORCE INDEX (`user_id`)",
    ] {
        pair.compare(sql, &[]);
    }
    pair.conclude(0);
    // a change reads by it, too
    pair.both("UPDATE user USE INDEX (PRIMARY) SET name = CONCAT(name, '!') WHERE id = 2");
    pair.both("DELETE o FROM orders o FORCE INDEX (user_id) WHERE UPPER(article) = 'PEN'");
    pair.both("SELECT name FROM user ORDER BY id");
    pair.both("SELECT id FROM orders ORDER BY id");
}

/// Of a table that it knows to be empty, or to have one row, a server needs no temporary table,
/// which shows in definitions.
fn tables_of_few_rows(kind: Kind) {
    let columns = "id INT PRIMARY KEY AUTO_INCREMENT, d DATETIME(1) NOT NULL, e ENUM('a', 'b'), s SET('x', 'y') {eq}, t TEXT COLLATE utf8mb4_bin, y YEAR, \
         b BLOB NOT NULL, n TINYINT {eq}, f BIT(9) NOT NULL {range}, w VARCHAR(9) {eq, range}, at TIMESTAMP(3) NULL {range}, hours TIME(2) NOT NULL {eq}";
    let bits =
        "CREATE TABLE bits (id INT PRIMARY KEY, b BIT(15) NOT NULL {eq, range}, UNIQUE KEY (b))";
    let tables = format!("CREATE TABLE none ({columns}); CREATE TABLE one ({columns}); {bits}");
    let Some(pair) = Pair::with_engine(kind, &tables) else {
        return;
    };
    let mut pair = pair.filled(&[
        "INSERT INTO one VALUES (7, '2024-02-29 01:02:03.4', 'b', 'x,y', 'text', 1999, 'bytes', 5, b'101000001', 'word', \
         '2024-02-29 01:02:03.456', '-01:02:03.45')",
        "INSERT INTO bits VALUES (1, 0), (2, 23873), (3, 255)",
    ]);
    for table in ["none", "one"] {
        for sql in [
            "SELECT d, COUNT(*), MIN(s), MAX(e) FROM t0 GROUP BY d ORDER BY COUNT(*), d LIMIT 1",
            "SELECT t, COUNT(*), MIN(t), SUM(n) FROM t0 GROUP BY t ORDER BY COUNT(*) DESC, t",
            "SELECT y, SUM(n), MIN(y), MIN(b), MAX(e) FROM t0 GROUP BY y ORDER BY SUM(n), y",
            "SELECT d, AVG(id), MIN(w), MIN(t) FROM t0 GROUP BY d ORDER BY AVG(id) DESC, d",
            "SELECT f, SUM(id) FROM t0 GROUP BY f ORDER BY SUM(id) DESC, f",
            "SELECT id, f, SUM(n), AVG(n) FROM t0 GROUP BY id, f ORDER BY SUM(n) DESC, id, f",
            "SELECT w, SUM(id), MAX(w), COUNT(DISTINCT w) FROM t0 GROUP BY w ORDER BY SUM(id) DESC, w",
            "SELECT y, SUM(id), MIN(w), MAX(f) FROM t0 GROUP BY y ORDER BY SUM(id) DESC, y LIMIT 0",
            // moments as numbers
            "SELECT SUM(at), AVG(at), SUM(hours), AVG(hours) FROM t0",
            "SELECT at, SUM(at), AVG(hours), COUNT(*) FROM t0 WHERE id = 9 GROUP BY at ORDER BY at",
        ] {
            pair.compare(&sql.replace("t0", table), &[]);
        }
    }
    pair.compare(
        "SELECT b, MIN(b), COUNT(*) FROM bits GROUP BY b ORDER BY b LIMIT 2",
        &[],
    );
    pair.compare(
        "SELECT LPAD(b, 9, 'x'), b FROM bits GROUP BY b ORDER BY b",
        &[],
    );
    pair.conclude(0);
}

/// Temporary tables of the server's keep 65 digits, its sums and averages have up to 81.
fn sums_of_many_digits(kind: Kind) {
    let tables = "CREATE TABLE big (id INT PRIMARY KEY, g INT, a DECIMAL(65,12) {eq}, p DECIMAL(65,25), w VARCHAR(9) {eq, range}, c DECIMAL(65,3) {eq, range})";
    let Some(pair) = Pair::with_engine(kind, tables) else {
        return;
    };
    let mut pair = pair.filled(&[
        "INSERT INTO big VALUES (1, 1, 787714.961113, 0, 'a', 5), (2, 1, 99999999999999999999999999999999999999999999999999999.999999999999, \
         9999999999999999999999999999999999999999.9999999999999999999999999, 'b', 99999999999999999999999999999999999999999999999999999999999999.999), \
         (3, 2, -99999999999999999999999999999999999999999999999999999.999999999999, 1, 'c', 1), (4, 2, -0.5, 2, 'd', NULL), (5, 3, 1.5, 3, 'e', -7)",
    ]);
    for sql in [
        "SELECT g, AVG(a) FROM big GROUP BY g ORDER BY g",
        "SELECT g, SUM(a) FROM big GROUP BY g ORDER BY g",
        "SELECT SUM(a), AVG(a) FROM big WHERE g = 1",
        "SELECT SUM(a), AVG(a), SUM(c) FROM big",
        "SELECT MAX(w), AVG(p) FROM big WHERE id = 2",
        "SELECT id, AVG(c), MIN(c) FROM big GROUP BY id ORDER BY AVG(c) DESC, id",
        "SELECT id, g, SUM(a), AVG(p) FROM big GROUP BY id, g ORDER BY SUM(a), id, g",
        "SELECT g, SUM(c), AVG(a) FROM big WHERE g = 3 GROUP BY g",
    ] {
        pair.compare(sql, &[]);
    }
    // prepared without parameters: the proxy finishes them, or refuses
    pair.conclude(if kind == Kind::MySql { 6 } else { 7 });
}

/// `PAD_CHAR_TO_FULL_LENGTH` counts where a collation does.
fn padded_texts(kind: Kind) {
    let collation = match kind {
        Kind::MariaDb => "utf8mb4_general_nopad_ci",
        Kind::MySql => "utf8mb4_0900_ai_ci",
    };
    let tables = format!(
        "CREATE TABLE pads (id INT PRIMARY KEY, a CHAR(4) COLLATE {collation} {{eq, range}}, b CHAR(4) COLLATE utf8mb4_general_ci {{eq, range}}, \
         c CHAR(20) COLLATE {collation} {{range}})"
    );
    let Some(pair) = Pair::with_engine(kind, &tables) else {
        return;
    };
    let mut pair = pair.filled(&["INSERT INTO pads VALUES (1, 'x', 'x', 'x'), (2, 'xxxx', 'y', 'abcdefghijklmnopqrst'), (3, '', '', '')"]);
    for mode in ["PAD_CHAR_TO_FULL_LENGTH", ""] {
        pair.both(&format!("SET sql_mode = '{mode}'"));
        for sql in [
            "SELECT id FROM pads WHERE a = 'x' ORDER BY id",
            "SELECT id FROM pads WHERE a = 'x   ' ORDER BY id",
            "SELECT id FROM pads WHERE a IN ('x', 'xxxx', '') ORDER BY id",
            "SELECT id FROM pads WHERE a > 'x' ORDER BY id",
            "SELECT id FROM pads WHERE b = 'x' ORDER BY id",
            "SELECT id FROM pads WHERE c = 'x' OR c BETWEEN 'abcdefghijklmnopqrs' AND 'abcdefghijklmnopqrst' ORDER BY id",
        ] {
            pair.compare(sql, &[]);
        }
    }
    pair.conclude(0);
}
