//! What users of other encrypting proxies complain of, each complaint as a test: the statements
//! that failed or went wrong there answer here as a plain server does. The numbers are of the
//! issues in the trackers of acra, ShardingSphere and their like.

use ::mysql::Value;
use ::mysql::prelude::Queryable;
use onionskin_testkit::*;

on_both_servers!(
    plaintext_is_never_stored_silently,
    existing_data_can_be_brought_in,
    like_is_there_and_exact,
    group_by_and_distinct_are_right,
    functions_see_values_and_not_ciphertext,
    indexes_are_used,
    ranges_order_joins_and_subqueries_are_rewritten,
    upserts_and_the_order_of_columns,
    types_and_lengths_stay_what_they_are,
    new_clients_log_in_and_users_are_listed_once,
    two_protected_conditions_cost_one_statement,
    the_proxy_has_nothing_to_lose,
);

const USER: &str = "CREATE TABLE user (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) {eq}, phone VARCHAR(20) {eq}, age INT {eq, range}, \
     wage DECIMAL(10,2) {}, note TEXT {}, city VARCHAR(20), UNIQUE KEY (phone), KEY (name), KEY (age))";

const ROWS: &str = "INSERT INTO user (name, phone, age, wage, note, city) VALUES \
     ('Alice', '1001', 31, 100.50, 'a long story', 'Bern'), ('bob', '1002', 17, 2.25, 'x%y_z', 'Rome'), ('ALICE', '1003', 45, 7, NULL, 'Bern'), \
     ('carol', '1004', NULL, NULL, '', NULL), (NULL, '1005', 45, 99999999.99, 'a Long end', 'Rome'), ('Bob ', NULL, 31, 0, 'äöü', 'Bern')";

/// acra#728, acra#694, ShardingSphere #31776, #37025, #34020, cipherstash/proxy#436, #437: what was
/// not understood was passed on as it was.
fn plaintext_is_never_stored_silently(kind: Kind) {
    let plain = "CREATE TABLE open (id INT PRIMARY KEY, word VARCHAR(40))";
    let Some(mut pair) = Pair::start(kind, &[USER, plain]) else {
        return;
    };
    pair.protected.must(ROWS);
    let s = SECRET;
    let mut refused = 0;
    for sql in [
        // from another table, #31776
        "INSERT INTO user (name) SELECT CONCAT('{s}', word) FROM open",
        // CASE and IF as new values, #37025
        "UPDATE user SET name = CASE WHEN id = 1 THEN '{s}' ELSE name END",
        "UPDATE user SET name = IF(id = 1, '{s}', name), phone = CONCAT('{s}', phone)",
        "UPDATE user SET note = CONCAT_WS('-', '{s}', note) WHERE phone = '{s}'",
        // casts around parameters and literals, #34020
        "INSERT INTO user (name) VALUES (CAST('{s}' AS CHAR(40)))",
        "INSERT INTO user (name) VALUES (CONVERT('{s}' USING utf8mb4))",
        "INSERT INTO user (name) VALUES (_utf8mb4'{s}' COLLATE utf8mb4_bin)",
        // NULL beside a value, paths in JSON: cipherstash/proxy#436, #437
        "INSERT INTO user (name, phone) VALUES (NULL, '{s}'), ('{s}', NULL)",
        "SELECT id FROM user WHERE name = NULL OR name <=> '{s}' OR NULL = phone",
        "SELECT JSON_EXTRACT(JSON_OBJECT('k', name), '$.k') = '{s}' FROM user",
        // comments that servers execute, grammar that no parser knows
        "INSERT INTO user (name) /*!50000 VALUES ('{s}') */",
        "INSERT INTO user (name) VALUES ('{s}') RETURNING id, name, FROBNICATE(name)",
        "INSRT INTO user (name) VALUES ('{s}')",
        "SELECT * FROM user WHERE name SOUNDS LIKE '{s}' AND phone ->> '$.x' = '{s}'",
        "INSERT INTO user (name) VALUES ROW('{s}')",
        "INSERT INTO user TABLE open",
        "DO (SELECT COUNT(*) FROM user WHERE name = '{s}')",
        "SET @x = (SELECT id FROM user WHERE name = '{s}')",
        "PREPARE p FROM 'INSERT INTO user (name) VALUES (''{s}'')'",
        "EXECUTE IMMEDIATE 'INSERT INTO user (name) VALUES (''{s}'')'",
        "HANDLER user READ name = ('{s}')",
        "CREATE PROCEDURE p() INSERT INTO user (name) VALUES ('{s}')",
        "CREATE TRIGGER g BEFORE INSERT ON open FOR EACH ROW INSERT INTO user (name) VALUES ('{s}')",
        "CREATE EVENT e ON SCHEDULE EVERY 1 HOUR DO INSERT INTO user (name) VALUES ('{s}')",
        "CREATE VIEW v AS SELECT id FROM user WHERE name = '{s}'",
        "CREATE TABLE copy AS SELECT '{s}' AS word, user.* FROM user",
        "SELECT 1; INSERT INTO user (name) VALUES ('{s}'); SELECT 2",
        "INSERT INTO user (name) VALUES ('{s}') ON DUPLICATE KEY UPDATE note = CONCAT('{s}', VALUES(name))",
        "INSERT INTO user (nam) VALUES ('{s}')",
        "UPDATE user, open SET user.name = '{s}' WHERE user.id = open.id",
        "DELETE user FROM user JOIN open ON user.id = open.id WHERE user.name = '{s}'",
        "ALTER TABLE user ADD CHECK (name <> '{s}')",
        "ALTER TABLE user ADD INDEX ((CONCAT('{s}', name)))",
    ] {
        let sql = sql.replace("{s}", s);
        refused += usize::from(pair.protected.run(&sql).is_err());
        let _ = pair.protected.execute(&sql, ());
        pair.protected.must("DROP TABLE IF EXISTS copy");
    }
    assert!(refused > 3, "statements that no server understands");
    // parameters wherever a parameter may stand
    for sql in [
        "INSERT INTO user (name, phone) VALUES (?, NULL)",
        "UPDATE user SET note = CONCAT(?, note)",
        "SELECT id FROM user WHERE COALESCE(name, ?) = ?",
        "SELECT CASE WHEN name = ? THEN 1 ELSE 0 END FROM user",
    ] {
        let parameters: Vec<Value> = sql.matches('?').map(|_| s.into()).collect();
        let _ = pair.protected.execute(sql, parameters);
    }
    pair.nothing_leaked();
}

/// ShardingSphere #28967, #32980, #31416, acra#434: only new rows were encrypted.
fn existing_data_can_be_brought_in(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[]) else {
        return;
    };
    let (_, bare) = with_and_without_protection(USER);
    for session in [&mut pair.plain, &mut pair.protected] {
        session.must(&bare);
        session.must(ROWS);
    }
    let folder = pair.proxy.folder().join("onionskin.toml");
    let (succeeded, text) = pair.proxy.command(&[
        "migrate",
        "--backend",
        &pair.behind.address(),
        "-c",
        &folder.display().to_string(),
        "app.user",
        "--encrypt",
        "name: eq; age: eq range; note:",
    ]);
    assert!(succeeded, "{text}");
    let mut direct = pair.behind.connect();
    let columns = direct.text("SELECT GROUP_CONCAT(COLUMN_NAME) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = 'user'");
    assert!(columns.unwrap().contains("name$enc"));
    pair.same_result("SELECT * FROM user ORDER BY id");
    pair.same_result("SELECT id FROM user WHERE name = 'alice' AND age > 30 ORDER BY id");
    pair.both("UPDATE user SET note = 'new' WHERE age = 45");
    pair.same_result("SELECT id, note FROM user WHERE name LIKE 'a%' ORDER BY id");
}

/// ShardingSphere #19026, #20812, #15079, #32923 (patterns of single characters matched too much);
/// in acra, LIKE became `=`.
fn like_is_there_and_exact(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[USER]) else {
        return;
    };
    pair.both(ROWS);
    for pattern in [
        "'a%'", "'%i%'", "'%o_'", "'_ob%'", "'alice'", "'bob'", "'%'", "''", "'%e'", "NULL",
        "'b%b '",
    ] {
        pair.same_result(&format!(
            "SELECT id, name FROM user WHERE name LIKE {pattern} ORDER BY id"
        ));
        pair.same_result(&format!(
            "SELECT id FROM user WHERE name NOT LIKE {pattern} AND city = 'Bern' ORDER BY id"
        ));
    }
    pair.same_result(
        "SELECT id FROM user WHERE note LIKE '%\\%y\\_z' OR note LIKE 'a long%' ORDER BY id",
    );
    pair.same_result("SELECT id FROM user WHERE note LIKE 'x|%y|_z' ESCAPE '|' ORDER BY id");
    pair.same_result_with(
        "SELECT id FROM user WHERE name LIKE ? AND note LIKE ? ORDER BY id",
        &["%LI%".into(), "%story".into()],
    );
    pair.same_result("SELECT COUNT(*) FROM user WHERE phone LIKE '100%'");
}

/// acra#729, ShardingSphere #31441 (ciphertext beside GROUP BY and LIMIT), #20096 (an exception at
/// DISTINCT).
fn group_by_and_distinct_are_right(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[USER]) else {
        return;
    };
    pair.both(ROWS);
    for sql in [
        "SELECT age, COUNT(*) FROM user GROUP BY age ORDER BY age",
        "SELECT DISTINCT age FROM user ORDER BY age",
        "SELECT COUNT(DISTINCT name), COUNT(DISTINCT age) FROM user",
        "SELECT age, COUNT(*) AS n, SUM(wage), AVG(wage) FROM user GROUP BY age HAVING n > 1 ORDER BY n DESC, age LIMIT 1, 1",
        "SELECT city, MIN(age), MAX(age), SUM(age) FROM user GROUP BY city ORDER BY city",
        "SELECT name, SUM(age) FROM user WHERE age IS NOT NULL GROUP BY name ORDER BY SUM(age), COUNT(*) LIMIT 2",
        "SELECT DISTINCT age FROM user GROUP BY age ORDER BY age",
        "SELECT SUM(DISTINCT age), GROUP_CONCAT(DISTINCT age ORDER BY age) FROM user",
        "SELECT t.age, COUNT(*) FROM (SELECT DISTINCT age, city FROM user) t GROUP BY t.age ORDER BY t.age",
    ] {
        pair.same_result(sql);
    }
}

/// ShardingSphere #32835, #33408, #37025: functions, IF, CASE and CONCAT worked on ciphertext.
fn functions_see_values_and_not_ciphertext(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[USER]) else {
        return;
    };
    pair.both(ROWS);
    for sql in [
        "SELECT id, CONCAT_WS('-', name, phone) FROM user ORDER BY id",
        "SELECT *, CASE WHEN name IS NOT NULL THEN name WHEN phone IS NOT NULL THEN phone END AS who FROM user ORDER BY id",
        "SELECT CASE WHEN name = 'ALICE' THEN phone ELSE name END AS result FROM user ORDER BY id",
        "SELECT id, IF(age > 18, name, 'minor'), IFNULL(name, phone), COALESCE(note, name, '') FROM user ORDER BY id",
        "SELECT UPPER(name), CHAR_LENGTH(note), LEFT(phone, 2), SHA2(phone, 256) FROM user ORDER BY id",
        "SELECT SUM(GREATEST(age, 20)), ROUND(AVG(wage * 2), 1) FROM user",
        "SELECT id FROM user WHERE IF(name = 'bob', age, 99) < 20 ORDER BY id",
        "SELECT id FROM user WHERE CONCAT(name, age) = 'Alice31'",
    ] {
        pair.same_result(sql);
    }
}

/// acra#697, #727: every search read the whole table.
fn indexes_are_used(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[USER]) else {
        return;
    };
    for block in 0..20 {
        let rows: Vec<String> = (0..100)
            .map(|i| block * 100 + i)
            .map(|n| format!("('name {n}', '{n}', {n}, 1)"))
            .collect();
        let values = rows.join(", ");
        pair.protected.must(&format!(
            "INSERT INTO user (name, phone, age, wage) VALUES {values}"
        ));
    }
    pair.protected.must("ANALYZE TABLE user");
    for (sql, most) in [
        ("SELECT id FROM user WHERE phone = '77'", 3),
        ("SELECT note FROM user WHERE name = 'NAME 5'", 3),
        ("SELECT name FROM user WHERE age BETWEEN 100 AND 109", 14),
        ("SELECT name FROM user ORDER BY age DESC LIMIT 5", 8),
        ("SELECT MAX(age) FROM user", 3),
        (
            "SELECT a.id FROM user a JOIN user b ON a.name = b.name WHERE b.phone = '9'",
            6,
        ),
        ("UPDATE user SET wage = 5 WHERE phone = '1500'", 8),
    ] {
        let read = |session: &mut Session| -> u64 {
            let rows = session
                .run("SHOW SESSION STATUS LIKE 'Handler_read%'")
                .unwrap();
            let values = rows.sets[0].rows.iter();
            values
                .map(|r| match &r[1] {
                    Value::Bytes(b) => String::from_utf8_lossy(b).parse::<u64>().unwrap(),
                    _ => 0,
                })
                .sum()
        };
        // the first time, the proxy looks the schema up
        pair.protected.must(sql);
        let before = read(&mut pair.protected);
        pair.protected.must(sql);
        let rows = read(&mut pair.protected) - before;
        // SHOW STATUS reads its own temporary table
        let own = read(&mut pair.protected) - before - rows;
        assert!(
            rows <= most + own,
            "{sql}: {rows} rows were read, {own} of them for SHOW STATUS"
        );
    }
}

/// ShardingSphere #2398 (ranges), #12462, #9270 (joins), #8643 (subqueries).
fn ranges_order_joins_and_subqueries_are_rewritten(kind: Kind) {
    let card = "CREATE TABLE card (id INT PRIMARY KEY, owner VARCHAR(40) {eq}, code VARCHAR(20) {eq}, n INT)";
    let Some(mut pair) = Pair::start(kind, &[USER, card]) else {
        return;
    };
    pair.both(ROWS);
    pair.both("INSERT INTO card VALUES (1, 'alice', 'x1', 5), (2, 'BOB', 'x2', 6), (3, NULL, 'x1', 7), (4, 'nobody', NULL, 8)");
    for sql in [
        "SELECT id FROM user WHERE age > 17 AND age <= 45 ORDER BY age DESC, id",
        "SELECT id FROM user WHERE age NOT BETWEEN 20 AND 40 ORDER BY id",
        "SELECT name, age FROM user ORDER BY name, id",
        "SELECT u.phone, u.city, u.name, c.code FROM card c LEFT JOIN user u ON c.owner = u.name WHERE c.code = 'x1' ORDER BY c.id, u.id",
        "SELECT u.phone FROM card c JOIN user u ON u.id = c.id WHERE c.code = 'x1' AND u.phone = '1001'",
        "SELECT t.id AS id FROM (SELECT * FROM user WHERE name = 'alice' OR note IS NOT NULL) AS t WHERE t.name IS NOT NULL ORDER BY t.id",
        "SELECT b.name FROM (SELECT a.name, a.id FROM user a WHERE a.age = 31) b ORDER BY b.id",
        "SELECT id FROM user WHERE name IN (SELECT owner FROM card WHERE code = 'x2') ORDER BY id",
        "SELECT id FROM user u WHERE EXISTS (SELECT 1 FROM card c WHERE c.owner = u.name) ORDER BY id",
        "SELECT (SELECT MAX(age) FROM user) AS oldest, name FROM user ORDER BY id",
        "WITH grown AS (SELECT name, age FROM user WHERE age > 18) SELECT name FROM grown ORDER BY age, name LIMIT 2",
        "SELECT name FROM user WHERE id = 2 UNION ALL SELECT owner FROM card WHERE id < 2 ORDER BY name",
    ] {
        pair.same_result(sql);
    }
}

/// ShardingSphere #12895, #3855, #5465 (upserts), #3374, #3309, #36841 (columns that got each
/// other's values).
fn upserts_and_the_order_of_columns(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[USER]) else {
        return;
    };
    pair.both(ROWS);
    // in every order, with some left out, with parameters and constants mixed
    pair.both("INSERT INTO user (wage, age, phone, name) VALUES (1, 2, '2001', 'n')");
    pair.both("INSERT INTO user (city, phone, note) VALUES ('c', '2002', 'note')");
    pair.both("INSERT INTO user SET note = 'n', phone = '2003', wage = 3, name = 'm'");
    pair.both("INSERT INTO user VALUES (50, 'a', '2004', 4, 5, 'b', 'c'), (51, 'd', '2005', 6, 7, 'e', 'f')");
    for session in [&mut pair.plain, &mut pair.protected] {
        let values: Vec<Value> = vec!["2006".into(), "p".into(), 9.into()];
        session
            .execute(
                "INSERT INTO user (phone, city, name, age) VALUES (?, 'x', ?, ?)",
                values,
            )
            .unwrap();
    }
    // upserts: constants, parameters, VALUES(), several rows, IGNORE beside it
    pair.both("INSERT INTO user (id, phone, name) VALUES (50, '2004', 'z') ON DUPLICATE KEY UPDATE name = 'constant', note = 'other'");
    pair.both("INSERT INTO user (phone, name, age) VALUES ('2005', 'q', 60), ('2007', 'new', 61) ON DUPLICATE KEY UPDATE name = VALUES(name), age = VALUES(age)");
    for session in [&mut pair.plain, &mut pair.protected] {
        let values: Vec<Value> = vec!["2001".into(), "w".into(), "upserted".into()];
        let sql =
            "INSERT IGNORE INTO user (phone, name) VALUES (?, ?) ON DUPLICATE KEY UPDATE note = ?";
        session.execute(sql, values).unwrap();
    }
    pair.both("REPLACE INTO user (phone, name) VALUES ('2002', 'replaced')");
    assert_eq!(
        pair.same_error("INSERT INTO user (phone) VALUES ('1001')"),
        1062
    );
    pair.same_result("SELECT * FROM user ORDER BY id");
}

/// ShardingSphere #27587 (an INT came back as base64), #30541 (VARCHAR(4000) broke the limits of
/// indexes).
fn types_and_lengths_stay_what_they_are(kind: Kind) {
    let wide = "CREATE TABLE wide (id BIGINT UNSIGNED PRIMARY KEY {eq, range}, t TINYINT(1) {eq}, i INT UNSIGNED {}, d DECIMAL(20,6) {eq}, f DOUBLE {}, \
         day DATE {range}, moment DATETIME(3) {}, clock TIME {}, y YEAR {}, v VARCHAR(4000) {eq}, c CHAR(10) {eq}, b VARBINARY(30) {eq}, x TEXT {eq}, KEY (v(100)), KEY (x(100)))";
    let (definition, bare) = with_and_without_protection(wide);
    let Some(mut pair) = Pair::start(kind, &[]) else {
        return;
    };
    pair.protected.must(&definition);
    pair.plain.must(&bare);
    let long = "ö".repeat(4000);
    pair.both(&format!(
        "INSERT INTO wide VALUES (18446744073709551615, 1, 4294967295, -12345678901234.567891, 1e300, '9999-12-31', '2024-02-29 23:59:59.999', '-838:59:59', 2155, '{long}', 'ab  ', x'00ff', '{long}')"
    ));
    pair.both("INSERT INTO wide VALUES (0, 0, 0, 0, -0.0, '1000-01-01', '1000-01-01 00:00:00', '00:00:00', 1901, '', '', '', '')");
    pair.same_result("SELECT * FROM wide ORDER BY id");
    pair.same_result("SELECT i, t, d FROM wide WHERE id = 18446744073709551615 AND t = 1");
    pair.same_result(&format!("SELECT id FROM wide WHERE v = '{long}' AND c = 'AB' AND d = -12345678901234.567891 AND b = x'00ff'"));
    for bad in [
        "INSERT INTO wide (id, i) VALUES (2, -1)",
        "INSERT INTO wide (id, day) VALUES (2, '2023-02-29')",
        "INSERT INTO wide (id, t) VALUES (2, 'many')",
        "INSERT INTO wide (id, d) VALUES (2, 1e30)",
        "INSERT INTO wide (id, c) VALUES (2, 'longer than ten')",
    ] {
        pair.same_error(bad);
    }
}

/// acra#648, Practical-Cryptdb#3: new clients could not log in. ProxySQL #4418, #4262: users had to
/// be listed in the proxy, too.
fn new_clients_log_in_and_users_are_listed_once(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[USER]) else {
        return;
    };
    pair.protected.must(ROWS);
    // the client of its own release, which on MySQL sends attributes with statements
    for user in kind.users() {
        let cli = Cli::tcp(kind, pair.proxy.port(), user.name, user.password).with_tls();
        let out = cli.must("SELECT name FROM app.user WHERE phone = '1001';");
        assert!(out.contains("Alice"), "{}: {out}", user.name);
    }
    // an account of this moment, of which the proxy was never told
    let mut root = pair.proxy.connect();
    root.must("CREATE USER 'fresh'@'%' IDENTIFIED BY 'fresh secret'");
    root.must("GRANT SELECT ON app.* TO 'fresh'@'%'");
    let mut fresh = Session::open(pair.proxy.port(), "fresh", "fresh secret", Some("app"));
    assert_eq!(
        fresh.text("SELECT name FROM user WHERE age = 17").unwrap(),
        "bob"
    );
    assert_eq!(fresh.must_fail("DELETE FROM user WHERE age = 17"), 1142);
    root.must("ALTER USER 'fresh'@'%' IDENTIFIED BY 'another'");
    assert!(Session::try_open(pair.proxy.port(), "fresh", "fresh secret", None).is_err());
    root.must("DROP USER 'fresh'@'%'");
    assert!(Session::try_open(pair.proxy.port(), "fresh", "another", None).is_err());
}

/// ShardingSphere #11281 (35 % less with two encrypted conditions), #36972: here the server gets
/// one statement for one, whatever it protects.
fn two_protected_conditions_cost_one_statement(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[USER]) else {
        return;
    };
    pair.both(ROWS);
    let questions = |session: &mut Session| -> u64 {
        let text = session
            .text("SHOW SESSION STATUS LIKE 'Questions'")
            .unwrap();
        text.split('\t').next_back().unwrap().parse().unwrap()
    };
    let sql = "SELECT id, name, phone, age FROM user WHERE name = ? AND phone = ? AND age > 5";
    let statement = pair.protected.conn().prep(sql);
    let statement = statement.unwrap();
    let run = |pair: &mut Pair, n: i32| {
        let values: Vec<Value> = vec!["alice".into(), (1000 + n % 5).to_string().into()];
        let rows: Vec<::mysql::Row> = pair.protected.conn().exec(&statement, values).unwrap();
        rows.len()
    };
    run(&mut pair, 0);
    let before = questions(&mut pair.protected);
    let found: usize = (0..200).map(|n| run(&mut pair, n)).sum();
    for n in 0..200 {
        let sql = format!("SELECT id FROM user WHERE name = 'bob' AND phone = '{n}' AND age < {n}");
        pair.protected.must(&sql);
    }
    let sent = questions(&mut pair.protected) - before;
    assert_eq!(found, 40 + 40);
    // what is known of the table is looked up again each second
    assert!((401..430).contains(&sent), "{sent} statements for 400");
}

/// CryptDB kept what the data depends on in the proxy. Here another proxy with the same key file
/// goes on.
fn the_proxy_has_nothing_to_lose(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[USER]) else {
        return;
    };
    pair.both(ROWS);
    pair.proxy.kill9();
    let other = Proxy::start_with(
        &pair.behind,
        ProxyOptions {
            keys: Some(pair.proxy.keys()),
            ..ProxyOptions::default()
        },
    );
    pair.protected = other.connect_to("app");
    pair.same_result("SELECT * FROM user ORDER BY id");
    pair.both("UPDATE user SET age = age + 1 WHERE name = 'alice'");
    pair.same_result("SELECT id, age FROM user WHERE age > 31 ORDER BY age, id");
}
