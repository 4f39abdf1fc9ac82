//! Statements, and what the engine answers under the session's settings.

use super::*;

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

pub fn answers_as_a_plain_server_does(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    for sql in STATEMENTS {
        pair.compare(sql, &[]);
    }
    // MySQL opens the tables of a part of WITH again where it is used again
    pair.conclude(if kind == Kind::MySql { 2 } else { 0 });
}

pub fn settings_of_the_session_follow(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
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
        pair.both(setting);
        for sql in [
            "SELECT id, at, UNIX_TIMESTAMP(at), seen FROM user WHERE CHAR_LENGTH(name) > 0 ORDER BY id",
            "SELECT id, name || 'x', CONCAT(name, 'a\\tb') FROM user ORDER BY id",
            "SELECT age / 3, AVG(wage) FROM user GROUP BY age, name ORDER BY age, name",
            "SELECT GROUP_CONCAT(UPPER(name) ORDER BY id) FROM user",
            "SELECT MONTHNAME(born), WEEK(born), CONCAT(name, 'é'), latin FROM user ORDER BY id",
            "SELECT id FROM user WHERE UPPER(name) = @wanted AND age >= @least ORDER BY id",
            "SELECT age * @factor, age + @real, bits = @bytes, CONCAT(name, @nothing), @wanted FROM user ORDER BY id",
        ] {
            pair.compare(sql, &[]);
        }
    }
    if kind == Kind::MariaDb {
        pair.both("SET standard_compliant_cte = 0");
        let sql = "WITH RECURSIVE c (i) AS (SELECT id FROM user WHERE id < 3 UNION SELECT id FROM user WHERE id NOT IN (SELECT i FROM c)) \
             SELECT i FROM c ORDER BY i";
        pair.compare(sql, &[]);
    }
    pair.both("SET timestamp = 1700000000.25");
    pair.compare(
        "SELECT UPPER(name), NOW(6), CURDATE(), UNIX_TIMESTAMP() FROM user WHERE id = 1",
        &[],
    );
    // about the statement before
    for question in ["SELECT FOUND_ROWS()", "SELECT ROW_COUNT()"] {
        pair.run("SELECT UPPER(name) FROM user");
        pair.compare_text(question);
    }
    pair.run("SELECT SQL_CALC_FOUND_ROWS UPPER(name) FROM user LIMIT 2");
    pair.compare_text("SELECT FOUND_ROWS()");
    pair.run("SELECT CAST(name AS SIGNED) FROM user ORDER BY id");
    pair.compare_text("SHOW WARNINGS");
    pair.conclude(0);
}

pub fn parameters_of_prepared_statements(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let text = |t: &str| Value::from(t);
    pair.compare(
        "SELECT id FROM user WHERE UPPER(name) = ? ORDER BY id",
        &[text("ALICE")],
    );
    pair.compare(
        "SELECT id, CONCAT(name, ?) FROM user WHERE age > ? AND id < ? ORDER BY id",
        &[text("é'\\"), Value::from(18), Value::from(5)],
    );
    pair.compare("SELECT age + ? FROM user ORDER BY id", &[Value::from(1.5)]);
    pair.compare("SELECT age + ? FROM user ORDER BY id", &[Value::NULL]);
    pair.compare(
        "SELECT UPPER(name) FROM user WHERE wage > ? ORDER BY id LIMIT ?",
        &[text("0.5"), Value::from(2)],
    );
    pair.compare(
        "SELECT UPPER(name) FROM user WHERE born < ? ORDER BY id",
        &[Value::Date(2000, 1, 1, 0, 0, 0, 0)],
    );
    // the same statement, again and again
    for age in [0, 17, 30, 100] {
        pair.compare(
            "SELECT LOWER(name) FROM user WHERE age * 2 > ? ORDER BY id",
            &[Value::from(age)],
        );
    }
    // beside literals and each other under the session's collation; how MySQL announces results
    // behind COLLATE is not known
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
        pair.run(&format!("SET NAMES {names}"));
        let sql = format!(
            "SELECT id, COLLATION(?) AS c{n} FROM user WHERE ? <> '' AND LOWER(name) = LOWER(?)"
        );
        let parameters = [text("x"), text("y"), text("Alice")];
        pair.compare(&sql, &parameters);
        let sql = format!("SELECT id, UPPER(name) AS c{n} FROM user WHERE ? = 'ABC'");
        pair.compare(&sql, &[text("abc")]);
    }
    pair.conclude(0);
}
