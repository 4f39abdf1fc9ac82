//! Tier 3: statements that need values in the clear answer as a plain server does, by way of a scratch engine. What cannot
//! be the same there is refused, and the server behind sees nothing of it.

mod support;

#[path = "scratch/twins.rs"]
mod twins;

use ::mysql::Value;
use support::*;
use twins::{Twins, twins, twins_with};

on_both_servers!(
    answers_as_a_plain_server_does,
    settings_of_the_session_follow,
    parameters_of_prepared_statements,
    snapshots_and_locks_are_the_sessions,
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

/// Each is ordered, or of one row.
const STATEMENTS: &[&str] = &[
    // functions
    "SELECT SUM(GREATEST(age, 20)) FROM user",
    "SELECT id, UPPER(name), LOWER(email), CHAR_LENGTH(name), LENGTH(name), REVERSE(name) FROM user ORDER BY id",
    "SELECT id, CONCAT(name, ' <', email, '>') AS who FROM user ORDER BY who, id",
    "SELECT CONCAT_WS('-', name, age, email) FROM user ORDER BY id",
    "SELECT id, IFNULL(age, -1), COALESCE(email, city, 'none'), NULLIF(age, 45), IF(age > 18, name, 'minor') FROM user ORDER BY id",
    "SELECT LEFT(name, 2), RIGHT(name, 2), SUBSTRING(name, 2, 3), LPAD(name, 8, '*'), REPLACE(name, 'l', 'L') FROM user ORDER BY id",
    "SELECT HEX(bits), LENGTH(bits), HEX(name), MD5(name), SHA2(email, 256), CRC32(name) FROM user ORDER BY id",
    "SELECT id, name FROM user ORDER BY CHAR_LENGTH(name), id",
    "SELECT TRIM(name), TRIM(BOTH 'e' FROM name), LOCATE('l', name), INSTR(name, 'L'), FIELD(name, 'bob', 'alice') FROM user ORDER BY id",
    "SELECT FORMAT(wage, 1), ROUND(wage), TRUNCATE(wage, 1), ABS(wage), SIGN(wage), wage MOD 7 FROM user ORDER BY id",
    // arithmetic and comparison
    "SELECT id, age + 1, age * 2.5, age / 3, age DIV 3, age % 7, -age, age & 3, age << 2 FROM user ORDER BY id",
    "SELECT id, wage + age, wage * wage, wage / 7, ratio + 1, weight, weight * 2 FROM user ORDER BY id",
    "SELECT id, big, big DIV 2, big > 5 FROM user ORDER BY id",
    "SELECT id, age = 45, age <=> NULL, age BETWEEN 18 AND 40, age IN (17, 45, NULL), age IS NULL FROM user ORDER BY id",
    "SELECT id FROM user WHERE age + 1 > 18 ORDER BY id",
    "SELECT id FROM user WHERE wage > 0 AND age > 18 ORDER BY id",
    "SELECT id FROM user WHERE ratio < 1 OR name = 'bob' ORDER BY id",
    "SELECT id, name FROM user WHERE age > (SELECT AVG(age) FROM user) ORDER BY id",
    "SELECT name = email, name < 'bz', email = 'ALICE@example.org' FROM user ORDER BY id",
    // CASE
    "SELECT id, CASE WHEN age < 18 THEN 'minor' WHEN age IS NULL THEN name ELSE CONCAT(name, '!') END AS label FROM user ORDER BY id",
    "SELECT CASE name WHEN 'ALICE' THEN 1 WHEN 'bob' THEN 2.5 ELSE NULL END FROM user ORDER BY id",
    "SELECT SUM(CASE WHEN age >= 18 THEN wage ELSE 0 END) AS total, COUNT(IF(age > 18, 1, NULL)) FROM user",
    // dates
    "SELECT id, YEAR(born), MONTHNAME(born), born + INTERVAL 1 MONTH, DATEDIFF('2024-01-01', born), LAST_DAY(born) FROM user ORDER BY id",
    "SELECT id, seen, DATE(seen), TIME(seen), MICROSECOND(seen), DATE_FORMAT(seen, '%W %e %M %Y %H:%i:%s.%f') FROM user ORDER BY id",
    "SELECT id, at, UNIX_TIMESTAMP(at), at + INTERVAL 1 HOUR, hours, TIME_TO_SEC(hours), ADDTIME(hours, '01:00:00') FROM user ORDER BY id",
    "SELECT id, y, y + 1, EXTRACT(YEAR_MONTH FROM seen), TIMESTAMPDIFF(DAY, born, '2024-05-05') FROM user ORDER BY id",
    "SELECT born, COUNT(*), MIN(name), MAX(CHAR_LENGTH(name)) FROM user GROUP BY born ORDER BY born",
    // strings and collations
    "SELECT id FROM user WHERE name LIKE 'a%' ORDER BY id",
    "SELECT id FROM user WHERE email LIKE '%e\\_%' OR email LIKE '%example.org' ORDER BY id",
    "SELECT id FROM user WHERE email LIKE 'c|%d|_e' ESCAPE '|' ORDER BY id",
    "SELECT id FROM user WHERE name NOT LIKE '%l%' ORDER BY id",
    "SELECT id FROM user WHERE name REGEXP '^a.*e$' ORDER BY id",
    "SELECT id FROM user WHERE email COLLATE utf8mb4_general_ci = 'BOB@EXAMPLE.ORG' ORDER BY id",
    "SELECT id FROM user WHERE latin LIKE 'zo_' OR latin = 'e' ORDER BY id",
    "SELECT id, latin, HEX(latin), HEX(CONVERT(latin USING utf8mb4)), COLLATION(latin), CHARSET(name) FROM user ORDER BY id",
    "SELECT name COLLATE utf8mb4_bin AS n FROM user ORDER BY n",
    "SELECT DISTINCT UPPER(name) AS u FROM user ORDER BY u",
    // aggregates and groups
    "SELECT name, COUNT(*), SUM(age), AVG(wage), GROUP_CONCAT(email ORDER BY id SEPARATOR '; ') FROM user GROUP BY name ORDER BY name",
    "SELECT LEFT(name, 1) AS initial, COUNT(*) FROM user GROUP BY initial HAVING COUNT(*) > 1 ORDER BY initial",
    "SELECT city, SUM(wage * 2), MAX(ratio), MIN(email) FROM user GROUP BY city WITH ROLLUP",
    "SELECT STDDEV(age), VARIANCE(wage), BIT_OR(age), MIN(age + 1), MAX(CONCAT(name, city)) FROM user",
    "SELECT COUNT(DISTINCT name, city), COUNT(DISTINCT UPPER(email)), SUM(DISTINCT age) FROM user",
    "SELECT age, COUNT(*) FROM user GROUP BY age HAVING SUM(wage) IS NOT NULL ORDER BY COUNT(*) DESC, age",
    "SELECT id, CONCAT(name, '') FROM user GROUP BY id ORDER BY id",
    // windows
    "SELECT id, name, ROW_NUMBER() OVER (ORDER BY age, id) AS n FROM user ORDER BY id",
    "SELECT id, RANK() OVER (PARTITION BY name ORDER BY age) AS r, LAG(age) OVER (ORDER BY id) AS before_it FROM user ORDER BY id",
    "SELECT id, SUM(wage) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS running FROM user ORDER BY id",
    // joins
    "SELECT u.name, o.total FROM user u JOIN orders o ON o.user_id = u.id WHERE CHAR_LENGTH(u.name) > 3 ORDER BY o.id",
    "SELECT u.id, o.id FROM user u JOIN open o ON o.word = u.name ORDER BY u.id, o.id",
    "SELECT u.id, o.id, o.article FROM user u LEFT JOIN orders o ON o.user_id = u.id AND UPPER(o.article) = 'BOOK' ORDER BY u.id, o.id",
    "SELECT u.id, o.id FROM user u RIGHT JOIN orders o ON o.user_id = u.id AND u.age > 18 AND LOWER(u.name) = 'alice' WHERE o.id > 0 ORDER BY o.id",
    "SELECT a.id, b.id FROM user a JOIN user b ON a.age > b.age ORDER BY a.id, b.id",
    "SELECT a.name, b.name FROM user a, user b WHERE a.id = 1 AND b.id = 5 AND a.name = b.name",
    "SELECT * FROM user u JOIN orders o ON u.id = o.user_id AND LENGTH(u.name) = LENGTH(o.article) + 1 ORDER BY u.id, o.id",
    "SELECT user.name, open.word FROM app.user, app.open WHERE app.user.name = app.open.word ORDER BY app.user.id",
    // columns of plain tables, exactly
    "SELECT o.*, UPPER(o.article) FROM orders o ORDER BY o.id",
    "SELECT p.*, (SELECT UPPER(name) FROM user WHERE user.id = p.id) AS n FROM open p ORDER BY p.id",
    "SELECT o.f, o.d, o.b + 0, HEX(o.note), UNIX_TIMESTAMP(o.paid), CONCAT(article, '') FROM orders o ORDER BY id",
    // what the parser does not know
    "SELECT id, UPPER(name) FROM user WHERE name SOUNDS LIKE 'alyce' ORDER BY id",
    "SELECT a.id, UPPER(a.name), b.total FROM { OJ user a LEFT OUTER JOIN orders b ON a.id = b.user_id } ORDER BY a.id, b.id",
    // subqueries, derived tables, common table expressions, unions
    "SELECT id FROM user WHERE LOWER(name) IN (SELECT LOWER(word) FROM open) ORDER BY id",
    "SELECT id, (SELECT COUNT(*) FROM orders o WHERE o.user_id = u.id AND CONCAT(o.article, u.name) <> '') AS n FROM user u ORDER BY id",
    "SELECT id FROM user u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.article = LOWER(CONCAT('BO', 'OK'))) ORDER BY id",
    "SELECT t.n, COUNT(*) FROM (SELECT CHAR_LENGTH(name) AS n FROM user) t GROUP BY t.n ORDER BY t.n",
    "SELECT t.name FROM (SELECT name, age FROM user WHERE age > 18) t ORDER BY t.name, t.age",
    "WITH grown AS (SELECT id, name, age FROM user WHERE age >= 18) SELECT g.name, h.age FROM grown g JOIN grown h ON g.id = h.id ORDER BY g.id",
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT n.i, u.name FROM n JOIN user u ON u.id = n.i ORDER BY n.i",
    "SELECT name FROM user UNION SELECT article FROM orders ORDER BY name",
    "SELECT name, age FROM user UNION ALL SELECT word, id FROM open ORDER BY name, age",
    "(SELECT name FROM user WHERE id = 1) UNION (SELECT email FROM user WHERE id = 2) ORDER BY name",
    // keys
    "SELECT a, b, d FROM pair WHERE a + b > 2 ORDER BY a, b",
    "SELECT a, CONCAT(d, '!') FROM pair ORDER BY a, b",
    // JSON
    "SELECT id, JSON_OBJECT('name', name, 'age', age) FROM user ORDER BY id",
    "SELECT JSON_ARRAYAGG(age) FROM user WHERE id < 3",
    "SELECT JSON_UNQUOTE(JSON_EXTRACT(CONCAT('{\"k\": \"', city, '\", \"n\": ', age, '}'), '$.k')) FROM user WHERE age > 20 ORDER BY id",
    // nothing found, warnings, LIMIT
    "SELECT UPPER(name) FROM user WHERE id = 77",
    // servers take BINARY for the next operand's: bytes are compared, blanks and letter case count
    "SELECT id, BINARY name = 'ALICE', BINARY name = 'Alice', BINARY name = 'Alice ', name = 'Alice ' FROM user ORDER BY id",
    "SELECT id FROM user WHERE BINARY name = 'ALICE' OR BINARY name IN ('bob', 'X') ORDER BY id",
    "SELECT SUM(age + 1) FROM user WHERE id = 77",
    "SELECT id, CAST(name AS SIGNED) FROM user ORDER BY id",
    "SELECT id, age / 0 FROM user ORDER BY id",
    "SELECT UPPER(name) FROM user ORDER BY LOWER(name), id LIMIT 2, 2",
    "SELECT name  ,  upper( name )   , 1+1 FROM user /* why */ WHERE id=1",
    // errors
    "SELECT UPPER(nam) FROM user",
    "SELECT UPPER(name, 1) FROM user",
    "SELECT name, COUNT(*), MAX(UPPER(email)) FROM user",
    "SELECT UPPER(id) FROM user a JOIN user b ON UPPER(a.name) = b.name",
    "SELECT UPPER(name) FROM user WHERE name = _latin1'a' COLLATE latin1_bin AND email = _utf8mb4'a' COLLATE utf8mb4_general_ci",
    "SELECT big + big FROM user WHERE id = 1",
];

fn stage(kind: Kind) -> Option<Twins> {
    let mut twins = twins(kind, TABLES)?;
    for row in ROWS {
        twins.both(row);
    }
    Some(twins)
}

fn answers_as_a_plain_server_does(kind: Kind) {
    let Some(mut twins) = stage(kind) else { return };
    for sql in STATEMENTS {
        twins.compare(sql, &[]);
    }
    // MySQL opens the tables of a part of WITH again where it is used again
    twins.conclude(if kind == Kind::MySql { 2 } else { 0 });
}

fn settings_of_the_session_follow(kind: Kind) {
    let Some(mut twins) = stage(kind) else { return };
    for setting in [
        "SET time_zone = '+05:30'",
        "SET timestamp = 1700000000.25",
        "SET sql_mode = 'PIPES_AS_CONCAT,ANSI_QUOTES'",
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
        "SET sql_mode = ''",
        "SET sql_mode = DEFAULT",
        "SET div_precision_increment = 7",
        "SET group_concat_max_len = 12",
        "SET lc_time_names = 'de_DE'",
        "SET NAMES latin1",
        "SET collation_connection = utf8mb4_bin",
        "SET NAMES utf8mb4",
        "SET @wanted = 'ALICE', @least = 18, @factor = 1.25, @real = 2e0, @bytes = x'00ff27', @nothing = NULL",
        "SET @wanted = _latin1'Alice' COLLATE latin1_bin",
        "SET default_week_format = 3",
    ] {
        twins.both(setting);
        for sql in [
            "SELECT id, at, UNIX_TIMESTAMP(at), seen FROM user WHERE CHAR_LENGTH(name) > 0 ORDER BY id",
            "SELECT id, name || 'x', CONCAT(name, 'a\\tb') FROM user ORDER BY id",
            "SELECT age / 3, AVG(wage) FROM user GROUP BY age, name ORDER BY age, name",
            "SELECT GROUP_CONCAT(UPPER(name) ORDER BY id) FROM user",
            "SELECT MONTHNAME(born), WEEK(born), CONCAT(name, 'é'), latin FROM user ORDER BY id",
            "SELECT id FROM user WHERE UPPER(name) = @wanted AND age >= @least ORDER BY id",
            "SELECT age * @factor, age + @real, bits = @bytes, CONCAT(name, @nothing), @wanted FROM user ORDER BY id",
        ] {
            twins.compare(sql, &[]);
        }
    }
    if kind == Kind::MariaDb {
        twins.both("SET standard_compliant_cte = 0");
        let sql = "WITH RECURSIVE c (i) AS (SELECT id FROM user WHERE id < 3 UNION SELECT id FROM user WHERE id NOT IN (SELECT i FROM c)) \
             SELECT i FROM c ORDER BY i";
        twins.compare(sql, &[]);
    }
    twins.both("SET timestamp = 1700000000.25");
    twins.compare(
        "SELECT UPPER(name), NOW(6), CURDATE(), UNIX_TIMESTAMP() FROM user WHERE id = 1",
        &[],
    );
    // about the statement before
    for question in ["SELECT FOUND_ROWS()", "SELECT ROW_COUNT()"] {
        twins.both_text("SELECT UPPER(name) FROM user");
        twins.compare_text(question);
    }
    twins.both_text("SELECT SQL_CALC_FOUND_ROWS UPPER(name) FROM user LIMIT 2");
    twins.compare_text("SELECT FOUND_ROWS()");
    twins.both_text("SELECT CAST(name AS SIGNED) FROM user ORDER BY id");
    twins.compare_text("SHOW WARNINGS");
    twins.conclude(0);
}

fn parameters_of_prepared_statements(kind: Kind) {
    let Some(mut twins) = stage(kind) else { return };
    let text = |t: &str| Value::from(t);
    twins.compare(
        "SELECT id FROM user WHERE UPPER(name) = ? ORDER BY id",
        &[text("ALICE")],
    );
    twins.compare(
        "SELECT id, CONCAT(name, ?) FROM user WHERE age > ? AND id < ? ORDER BY id",
        &[text("é'\\"), Value::from(18), Value::from(5)],
    );
    twins.compare("SELECT age + ? FROM user ORDER BY id", &[Value::from(1.5)]);
    twins.compare("SELECT age + ? FROM user ORDER BY id", &[Value::NULL]);
    twins.compare(
        "SELECT UPPER(name) FROM user WHERE wage > ? ORDER BY id LIMIT ?",
        &[text("0.5"), Value::from(2)],
    );
    twins.compare(
        "SELECT UPPER(name) FROM user WHERE born < ? ORDER BY id",
        &[Value::Date(2000, 1, 1, 0, 0, 0, 0)],
    );
    // the same statement, again and again
    for age in [0, 17, 30, 100] {
        twins.compare(
            "SELECT LOWER(name) FROM user WHERE age * 2 > ? ORDER BY id",
            &[Value::from(age)],
        );
    }
    // beside literals and each other under the session's collation; how MySQL announces results behind COLLATE is not known
    let names = [
        "utf8mb4",
        "DEFAULT",
        "utf8mb4 COLLATE utf8mb4_unicode_ci",
        "utf8mb4 COLLATE utf8mb4_bin",
        "latin1 COLLATE latin1_german1_ci",
    ];
    let announced = names
        .iter()
        .filter(|n| kind == Kind::MariaDb || !n.contains("COLLATE"));
    for (n, names) in announced.enumerate() {
        twins.both_text(&format!("SET NAMES {names}"));
        let sql = format!(
            "SELECT id, COLLATION(?) AS c{n} FROM user WHERE ? <> '' AND LOWER(name) = LOWER(?)"
        );
        let parameters = [text("x"), text("y"), text("Alice")];
        twins.compare(&sql, &parameters);
        let sql = format!("SELECT id, UPPER(name) AS c{n} FROM user WHERE ? = 'ABC'");
        twins.compare(&sql, &[text("abc")]);
    }
    twins.conclude(0);
}

fn snapshots_and_locks_are_the_sessions(kind: Kind) {
    let Some(mut twins) = stage(kind) else { return };
    let mut other = twins.proxy.connect_to("app");
    // a transaction sees its own changes, and its own snapshot
    let count = "SELECT COUNT(*), MAX(UPPER(name)) FROM user";
    let protected = &mut twins.protected;
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
    other.must("UPDATE user SET city = 'x' WHERE id = 1");
    // tables that the session has locked stay locked
    protected.must("LOCK TABLES user READ, open READ");
    assert_eq!(protected.text(joined).unwrap(), "3");
    assert_eq!(
        protected.must_fail("INSERT INTO open (id, word) VALUES (9, 'x')"),
        1099
    );
    protected.must("UNLOCK TABLES");
    // several snapshots would be mixed
    protected.must("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION");
    assert_eq!(protected.must_fail(joined), 1235);
    assert_eq!(protected.text(count).unwrap(), "5\tÉMILE");
    protected.must("COMMIT");
    assert_eq!(protected.text(joined).unwrap(), "3");
    // one session's tables are not another's, and nothing is left behind
    assert_eq!(other.text(count).unwrap(), "5\tÉMILE");
    let left = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'app'";
    assert_eq!(twins.scratch.connect().text(left).unwrap(), "0");
    twins.proxy.assert_healthy();
}

fn what_is_refused(kind: Kind) {
    let Some(mut twins) = stage(kind) else { return };
    twins
        .protected
        .must("CREATE TEMPORARY TABLE passing (word VARCHAR(20))");
    for sql in [
        "SELECT UPPER(name), SLEEP(0) FROM user",
        "SELECT GET_LOCK(name, 1) FROM user",
        "SELECT LOAD_FILE(name) FROM user",
        "SELECT UPPER(name), @n := 1 FROM user",
        "SELECT UPPER(name), CONNECTION_ID() FROM user",
        "SELECT UPPER(name), CURRENT_USER() FROM user",
        "SELECT UPPER(name), CURRENT_USER FROM user",
        "SELECT UPPER(name), VERSION() FROM user",
        "SELECT UPPER(name), @@hostname FROM user",
        "SELECT UPPER(name), LAST_INSERT_ID(5) FROM user",
        "SELECT UPPER(name), FOUND_ROWS() FROM user",
        "SELECT UPPER(name) INTO @x FROM user LIMIT 1",
        "SELECT UPPER(name) INTO OUTFILE '/tmp/x' FROM user",
        "SELECT UPPER(name) FROM user USE INDEX (PRIMARY)",
        "SELECT UPPER(name) FROM user, mysql.user AS m",
        "SELECT UPPER(name), t.table_name FROM user, information_schema.tables t",
        "SELECT UPPER(name) FROM user JOIN passing ON passing.word = name",
        "SELECT app.secret(name) FROM user",
        "SELECT UPPER(name) /*!50000 , 1 */ FROM user",
    ] {
        let failure = twins.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1"), "{sql}: {failure}");
        assert_eq!(failure.code, 1235, "{sql}");
    }
    assert_eq!(
        twins
            .protected
            .text("SELECT UPPER(name) FROM user WHERE id = 1")
            .unwrap(),
        "ALICE"
    );
    // without a scratch engine, and with one that is gone
    let without = Proxy::start_with(
        &twins.behind,
        ProxyOptions {
            keys: Some(twins.proxy.keys()),
            ..ProxyOptions::default()
        },
    );
    let mut session = without.connect_to("app");
    assert_eq!(session.must_fail("SELECT UPPER(name) FROM user"), 1235);
    twins.scratch.kill9();
    let failure = twins
        .protected
        .run("SELECT UPPER(name) FROM user")
        .unwrap_err();
    assert!(failure.message.starts_with("OS1208"), "{failure}");
    twins.protected.must("SELECT name FROM user");
    twins.scratch.restart();
    assert_eq!(
        twins
            .protected
            .text("SELECT UPPER(name) FROM user WHERE id = 1")
            .unwrap(),
        "ALICE"
    );
    twins.proxy.assert_healthy();
}

fn bounds_are_errors(kind: Kind) {
    let Some(mut twins) = twins_with(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, word VARCHAR(2000) {})",
        "scratch_rows = 50\nscratch_memory = 40000",
    ) else {
        return;
    };
    for id in 0..50 {
        twins.both(&format!("INSERT INTO t VALUES ({id}, 'x')"));
    }
    let all = "SELECT COUNT(UPPER(word)) FROM t";
    twins.compare(all, &[]);
    twins.both("INSERT INTO t VALUES (50, 'x')");
    let failure = twins.protected.run(all).unwrap_err();
    assert!(failure.message.starts_with("OS1209"), "{failure}");
    // narrowed by the server
    twins.compare("SELECT COUNT(UPPER(word)) FROM t WHERE id < 50", &[]);
    let joined =
        "SELECT COUNT(*) FROM t a JOIN t b ON UPPER(a.word) = b.word WHERE a.id < 26 AND b.id < 26";
    let failure = twins.protected.run(joined).unwrap_err();
    assert!(failure.message.starts_with("OS1209"), "{failure}");
    twins.both(&format!(
        "UPDATE t SET word = '{}' WHERE id < 30",
        "y".repeat(1500)
    ));
    let failure = twins
        .protected
        .run("SELECT COUNT(UPPER(word)) FROM t WHERE id < 30")
        .unwrap_err();
    assert!(failure.message.starts_with("OS1209"), "{failure}");
    twins.compare("SELECT COUNT(UPPER(word)) FROM t WHERE id < 20", &[]);
    twins.conclude(0);
}

fn the_server_sees_nothing(kind: Kind) {
    let Some(mut twins) = stage(kind) else { return };
    let (value, literal) = ("Kq7vTz2wXc", "Rm4pLs9dYb");
    twins.protected.must(&format!(
        "INSERT INTO user (id, name, notes) VALUES (50, 'x{value}', 'y{value}')"
    ));
    for sql in [
        format!("SELECT UPPER(notes) FROM user WHERE REVERSE(name) <> '{literal}'"),
        format!("SELECT CONCAT(notes, '{literal}') FROM user WHERE name = 'x{value}'"),
        format!("SELECT IF(notes LIKE '%{value}', '{literal}', name) FROM user WHERE id = 50"),
    ] {
        twins.protected.must(&sql);
        twins
            .protected
            .execute(&sql, ())
            .expect("it can be prepared");
    }
    let parameter = "SELECT CONCAT(notes, ?) FROM user WHERE UPPER(name) = UPPER(?)";
    let found = twins
        .protected
        .execute(parameter, (literal, format!("x{value}")))
        .unwrap();
    assert_eq!(found.sets[0].rows.len(), 1);
    twins.assert_no_trace_of(&[value, literal]);
}

fn constants_for_protected_columns(kind: Kind) {
    let Some(mut twins) = stage(kind) else { return };
    twins.both("SET timestamp = 1700000000.25, @v = 'from a variable'");
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
        twins.both(sql);
    }
    twins.both("INSERT INTO user (id, name) VALUES (30, UUID())");
    let uuid = twins
        .protected
        .text("SELECT CHAR_LENGTH(name) FROM user WHERE id = 30");
    assert_eq!(uuid.unwrap(), "36");
    twins.both("DELETE FROM user WHERE id = 30");
    // prepared, with parameters inside and beside
    let insert = "INSERT INTO user (id, name, age) VALUES (?, CONCAT(?, 'é'), ? + 1)";
    for session in [&mut twins.plain, &mut twins.protected] {
        for id in [40, 41] {
            session
                .execute(insert, (id, r"O'Neil\", id * 2))
                .expect(insert);
        }
    }
    twins.compare("SELECT * FROM user ORDER BY id", &[]);
    for sql in [
        "INSERT INTO user (id, name) VALUES (50, SLEEP(0))",
        "INSERT INTO user (id, name) VALUES (50, VERSION())",
    ] {
        let failure = twins.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1"), "{sql}: {failure}");
    }
    // what the column does not take, the server's own error says, or a refusal
    for sql in [
        "INSERT INTO user (id, name, age) VALUES (50, 'x', NOW())",
        "INSERT INTO user (id, name, age) VALUES (50, 'x', 'five' + 1)",
    ] {
        let expected = twins.plain.must_fail(sql);
        let failure = twins.protected.run(sql).expect_err(sql);
        let refused = failure.message.starts_with("OS1");
        assert!(refused || failure.code == expected, "{sql}: {failure}");
    }
    twins.conclude(0);
}

/// The aim is 5 ms beyond a plain server's time, on a quiet machine; `ONIONSKIN_TEST_LONG` asks for it.
fn a_hundred_rows_take_milliseconds(kind: Kind) {
    let Some(mut twins) = twins(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(40) {eq}, age INT {range}, note TEXT {})",
    ) else {
        return;
    };
    for id in 0..100 {
        let note = "n".repeat(100);
        twins.both(&format!(
            "INSERT INTO t VALUES ({id}, 'name {id}', {id}, '{note}')"
        ));
    }
    let sql = "SELECT UPPER(name), age * 2, LEFT(note, 10) FROM t WHERE CHAR_LENGTH(name) > 3 ORDER BY LOWER(name)";
    let median = |session: &mut Session| {
        let mut times: Vec<f64> = (0..150)
            .map(|_| {
                let start = std::time::Instant::now();
                assert_eq!(session.must(sql).sets[0].rows.len(), 100);
                start.elapsed().as_secs_f64() * 1000.0
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (plain, protected) = (median(&mut twins.plain), median(&mut twins.protected));
    announce(&format!(
        "tier 3 over 100 rows on {}: {protected:.2} ms, a plain server {plain:.2} ms",
        kind.name()
    ));
    let limit = if long_run() { 5.0 } else { 50.0 };
    assert!(protected - plain < limit, "{protected} ms and {plain} ms");
}

fn tables_may_change(kind: Kind) {
    let Some(mut twins) = stage(kind) else { return };
    let sql = "SELECT *, (SELECT UPPER(name) FROM user WHERE user.id = open.id) AS n FROM open ORDER BY id";
    twins.compare(sql, &[]);
    // past this proxy, and through another session of it
    twins
        .plain
        .must("ALTER TABLE open ADD extra VARCHAR(9) DEFAULT 'new'");
    let mut past = twins.behind.connect();
    past.must("ALTER TABLE app.open ADD extra VARCHAR(9) DEFAULT 'new'");
    std::thread::sleep(std::time::Duration::from_millis(1200));
    twins.compare(sql, &[]);
    twins.both("ALTER TABLE open DROP word");
    twins.compare(sql, &[]);
    twins.plain.must("ALTER TABLE open DROP extra");
    past.must("ALTER TABLE app.open DROP extra");
    twins.compare(sql, &[]);
    twins.both("ALTER TABLE user ADD more INT DEFAULT 7");
    twins.compare("SELECT *, CHAR_LENGTH(name) FROM user ORDER BY id", &[]);
    twins.conclude(0);
}

fn conditions_are_read_as_the_server_reads_them(kind: Kind) {
    let Some(mut twins) = stage(kind) else { return };
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
        twins.compare(sql, &[]);
    }
    twins.both_text("SET completion_type = 1");
    twins.compare(
        "SELECT COUNT(*) FROM user JOIN open ON UPPER(open.word) = UPPER(user.name)",
        &[],
    );
    let changes = "UPDATE user SET age = age + 1 WHERE id = 1";
    twins.both_text(changes);
    let mut other = twins.proxy.connect_to("app");
    other.must("SET innodb_lock_wait_timeout = 1");
    other.must("UPDATE user SET city = 'free' WHERE id = 1");
    twins.both_text("SET completion_type = 0");
    let secret = "Zt5qWm8rPn";
    let log = twins.behind.data_files();
    for sql in [
        "SELECT UPPER(name) FROM user WHERE ? <> '' AND LOWER(name) = LOWER(?)",
        "SELECT UPPER(name) FROM user JOIN open ON open.id = user.id WHERE ? <> word + '' AND UPPER(email) = ?",
    ] {
        twins.protected.execute(sql, (secret, secret)).expect(sql);
    }
    let found = log.iter().any(|file| {
        let bytes = std::fs::read(file).unwrap_or_default();
        !find_all(&Pattern::of_text(secret), &bytes).is_empty()
    });
    assert!(!found, "a constant beside no column came to the server");
    for sql in [
        "SELECT UPPER(name) FROM user UNION TABLE information_schema.PROCESSLIST",
        "WITH x AS (TABLE mysql.user) SELECT UPPER(name) FROM user, x",
        "SELECT UPPER(name) FROM user WHERE id IN (TABLE app.open)",
        "INSERT INTO user (city, name) VALUES (@a := 'x', @a)",
        "INSERT INTO user (name, at) VALUES (UPPER('x'), NOW()), (NOW(), NULL), (@a := 1, NULL)",
    ] {
        let failure = twins.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1"), "{sql}: {failure}");
    }
    // a part of WITH is none elsewhere
    let sql = "SELECT UPPER(name) FROM user WHERE id IN (WITH s AS (SELECT 1) SELECT * FROM s) OR id IN (SELECT * FROM s)";
    assert_eq!(twins.protected.must_fail(sql), 1146);
    assert_eq!(twins.plain.must_fail(sql), 1146);
    // MariaDB opens a temporary table twice
    let sql = "SELECT UPPER(name), (SELECT MAX(CHAR_LENGTH(name)) FROM user) FROM user";
    match kind {
        Kind::MariaDb => twins.compare(sql, &[]),
        Kind::MySql => {
            let failure = twins.protected.run(sql).expect_err(sql);
            assert!(failure.message.starts_with("OS1"), "{sql}: {failure}");
        }
    }
    // characters that the client's set does not have
    twins.both_text("SET NAMES latin1");
    twins.both_text(
        "INSERT INTO user (id, name, notes) VALUES (60, CONCAT(_utf8mb4 x'f09fa680', ''), UPPER(_utf8mb4 x'c3a9'))",
    );
    twins.both_text("SET NAMES utf8mb4");
    twins.compare(
        "SELECT HEX(name), HEX(notes), CHAR_LENGTH(name) FROM user WHERE id = 60",
        &[],
    );
    // a system database
    twins.both_text("USE information_schema");
    twins.compare("SELECT UPPER(name) FROM app.user WHERE id = 1", &[]);
    twins.both_text("USE app");
    twins.conclude(0);
}

fn what_stands_before_a_table(kind: Kind) {
    let Some(mut twins) = stage(kind) else { return };
    let sql =
        "SELECT UPPER(name), word, n FROM user JOIN open ON open.id = user.id ORDER BY user.id";
    twins.compare(sql, &[]);
    // of the same columns, but other types
    twins
        .protected
        .must("CREATE TEMPORARY TABLE open (id INT PRIMARY KEY, word VARCHAR(20) CHARACTER SET latin1, n DECIMAL(5,2) NOT NULL)");
    twins
        .protected
        .must("INSERT INTO open VALUES (1, 'x', 1.25)");
    let failure = twins.protected.run(sql).unwrap_err();
    assert!(failure.message.starts_with("OS"), "{failure}");
    twins.protected.must("DROP TEMPORARY TABLE open");
    twins.compare(sql, &[]);
    twins.conclude(0);
}

fn the_engine_is_quiet_and_bounded(kind: Kind) {
    let Some(mut twins) = twins_with(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, word VARCHAR(20) {})",
        "scratch_seconds = 1",
    ) else {
        return;
    };
    for id in 0..40 {
        twins.both(&format!("INSERT INTO t VALUES ({id}, 'word{id}')"));
    }
    let mut root = twins.scratch.connect();
    root.must("SET GLOBAL general_log = 1");
    let short = "SELECT REVERSE(word) FROM t WHERE id = 7";
    twins.compare(short, &[]);
    root.must("SET GLOBAL general_log = 0");
    let logged = twins.scratch.data_files().iter().any(|file| {
        let bytes = std::fs::read(file).unwrap_or_default();
        file.extension().is_some_and(|e| e == "log")
            && !find_all(&Pattern::of_text("REVERSE(word)"), &bytes).is_empty()
    });
    assert!(!logged, "the engine logs statements");
    // a join that would take very long
    let long = "SELECT COUNT(*) FROM t a, t b, t c, t d, t e, t f WHERE CONCAT(a.word, b.word, c.word, d.word, e.word, f.word) LIKE '%y%x'";
    let failure = twins.protected.run(long).unwrap_err();
    assert!(failure.message.starts_with("OS1209"), "{failure}");
    twins.compare(short, &[]);
    // connections that were ended meanwhile
    let processes = root
        .text("SELECT GROUP_CONCAT(id) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user = 'root'")
        .unwrap();
    for id in processes.split(',') {
        let _ = root.run(&format!("KILL {id}"));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    twins.compare(short, &[]);
    twins.both("INSERT INTO t VALUES (50, CONCAT('a', 'b'))");
    twins.compare("SELECT UPPER(word) FROM t WHERE id = 50", &[]);
    // a log that no session can leave
    if kind == Kind::MySql {
        root.must("SET GLOBAL slow_query_log = 1");
        let mut other = twins.proxy.connect_to("app");
        let failure = other.run(short).unwrap_err();
        assert!(failure.message.starts_with("OS1208"), "{failure}");
        root.must("SET GLOBAL slow_query_log = 0");
    }
    twins.conclude(0);
}

/// Of a table that it knows to be empty, or to have one row, a server needs no temporary table, which shows in definitions.
fn tables_of_few_rows(kind: Kind) {
    let columns = "id INT PRIMARY KEY AUTO_INCREMENT, d DATETIME(1) NOT NULL, e ENUM('a', 'b'), s SET('x', 'y') {eq}, t TEXT COLLATE utf8mb4_bin, y YEAR, \
         b BLOB NOT NULL, n TINYINT {eq}, f BIT(9) NOT NULL {range}, w VARCHAR(9) {eq, range}, at TIMESTAMP(3) NULL {range}, hours TIME(2) NOT NULL {eq}";
    let bits =
        "CREATE TABLE bits (id INT PRIMARY KEY, b BIT(15) NOT NULL {eq, range}, UNIQUE KEY (b))";
    let tables = format!("CREATE TABLE none ({columns}); CREATE TABLE one ({columns}); {bits}");
    let Some(twins) = twins(kind, &tables) else {
        return;
    };
    let mut twins = twins.filled(&[
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
            twins.compare(&sql.replace("t0", table), &[]);
        }
    }
    twins.compare(
        "SELECT b, MIN(b), COUNT(*) FROM bits GROUP BY b ORDER BY b LIMIT 2",
        &[],
    );
    twins.compare(
        "SELECT LPAD(b, 9, 'x'), b FROM bits GROUP BY b ORDER BY b",
        &[],
    );
    twins.conclude(0);
}

/// Temporary tables of the server's keep 65 digits, its sums and averages have up to 81.
fn sums_of_many_digits(kind: Kind) {
    let tables = "CREATE TABLE big (id INT PRIMARY KEY, g INT, a DECIMAL(65,12) {eq}, p DECIMAL(65,25), w VARCHAR(9) {eq, range}, c DECIMAL(65,3) {eq, range})";
    let Some(twins) = twins(kind, tables) else {
        return;
    };
    let mut twins = twins.filled(&[
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
        twins.compare(sql, &[]);
    }
    // prepared without parameters: the proxy finishes them, or refuses
    twins.conclude(if kind == Kind::MySql { 6 } else { 7 });
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
    let Some(twins) = twins(kind, &tables) else {
        return;
    };
    let mut twins = twins.filled(&["INSERT INTO pads VALUES (1, 'x', 'x', 'x'), (2, 'xxxx', 'y', 'abcdefghijklmnopqrst'), (3, '', '', '')"]);
    for mode in ["PAD_CHAR_TO_FULL_LENGTH", ""] {
        twins.both(&format!("SET sql_mode = '{mode}'"));
        for sql in [
            "SELECT id FROM pads WHERE a = 'x' ORDER BY id",
            "SELECT id FROM pads WHERE a = 'x   ' ORDER BY id",
            "SELECT id FROM pads WHERE a IN ('x', 'xxxx', '') ORDER BY id",
            "SELECT id FROM pads WHERE a > 'x' ORDER BY id",
            "SELECT id FROM pads WHERE b = 'x' ORDER BY id",
            "SELECT id FROM pads WHERE c = 'x' OR c BETWEEN 'abcdefghijklmnopqrs' AND 'abcdefghijklmnopqrst' ORDER BY id",
        ] {
            twins.compare(sql, &[]);
        }
    }
    twins.conclude(0);
}
