//! Views over protected tables under names of their own: what they show, what is said of them, and
//! what is refused.

use ::mysql::Value;
use onionskin_testkit::*;

on_both_servers!(
    names_of_their_own,
    definitions_are_shown_as_on_a_plain_server,
    what_a_server_makes_up_is_refused,
    rows_are_deleted_through_views,
    rows_are_updated_through_views,
    rows_are_inserted_through_views,
    constants,
    constants_that_are_refused,
    what_is_refused,
    views_of_what_is_gone,
    views_that_a_snapshot_has_not_looked_up,
    items_in_other_letters,
);

const TABLES: &[&str] = &[
    "CREATE TABLE user (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) NOT NULL {eq, range, like} DEFAULT 'nobody', age INT {range} COMMENT 'in years', \
     note TEXT {}, city VARCHAR(20) COMMENT 'where', seen DATETIME {} DEFAULT CURRENT_TIMESTAMP)",
    "CREATE TABLE open (id INT PRIMARY KEY, word VARCHAR(40), owner INT)",
];

const VIEWS: &[&str] = &[
    "CREATE VIEW short AS SELECT name AS n, id FROM user",
    "CREATE VIEW listed (a, b, c) AS SELECT id, name, city FROM user WHERE city IS NOT NULL",
    "CREATE VIEW starred (i, n, years, text, town, at) AS SELECT * FROM user",
    "CREATE VIEW starry AS SELECT u.age AS years, o.*, u.name AS n, o.id + 1 AS next FROM open o JOIN user u ON u.id = o.owner",
    "CREATE VIEW swapped AS SELECT name AS note, note AS name, age FROM user",
    "CREATE VIEW joined AS SELECT o.word AS w, u.name AS owner, u.note AS remark, u.seen FROM open o JOIN user u ON u.id = o.owner ORDER BY u.age, o.id",
    "CREATE VIEW cased AS SELECT name AS NAME, age AS Age FROM user",
    "CREATE VIEW of_view AS SELECT n AS m, id FROM short WHERE id < 3",
    "CREATE VIEW of_of_view (x) AS SELECT m FROM of_view",
    "CREATE VIEW kept AS SELECT * FROM short",
    "CREATE VIEW back AS SELECT n AS name, id FROM short",
    "CREATE ALGORITHM=MERGE SQL SECURITY INVOKER VIEW app.town AS SELECT id, city, note AS `a remark` FROM user WHERE id > 1",
];

fn pair(kind: Kind) -> Option<Pair> {
    let mut pair = Pair::start(kind, TABLES)?;
    pair.both(&format!(
        "INSERT INTO user VALUES (1, 'Alice', 31, 'first', 'Bern', '2001-02-03 04:05:06'), (2, 'bob', 17, NULL, 'Rome', NULL), \
         (3, 'carol', 45, '{SECRET}', NULL, '2002-02-02 02:02:02'), (4, 'Alina', NULL, 'x', 'Basel', NULL)"
    ));
    pair.both("INSERT INTO open VALUES (1, 'alice', 1), (2, 'x', 2), (3, 'y', 1)");
    for view in VIEWS {
        pair.both(view);
    }
    Some(pair)
}

fn names_of_their_own(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        "SELECT * FROM short ORDER BY id",
        "SELECT n FROM short WHERE n = 'BOB'",
        "SELECT id FROM short WHERE n > 'b' ORDER BY n DESC",
        "SELECT v.n AS name, COUNT(*) FROM short v GROUP BY v.n ORDER BY v.n",
        "SELECT UPPER(n), LENGTH(n) FROM short ORDER BY id",
        "SELECT n FROM short WHERE n LIKE 'ali%' ORDER BY id",
        "SELECT * FROM listed ORDER BY a",
        "SELECT a, c FROM listed WHERE b IN ('alice', 'alina') ORDER BY b",
        "SELECT * FROM starred ORDER BY i",
        "SELECT MAX(years), SUM(years), MIN(at) FROM starred WHERE n <> 'bob'",
        "SELECT text FROM starred WHERE years < 40 ORDER BY i",
        "SELECT * FROM starry ORDER BY id",
        "SELECT * FROM swapped ORDER BY age",
        "SELECT name, note FROM swapped WHERE note = 'alice'",
        "SELECT * FROM joined",
        "SELECT w, remark FROM joined WHERE owner = 'ALICE' ORDER BY w",
        "SELECT * FROM cased ORDER BY age",
        "SELECT * FROM of_view ORDER BY id",
        "SELECT m FROM of_view WHERE m = 'alice'",
        "SELECT * FROM of_of_view ORDER BY x",
        "SELECT * FROM kept WHERE n = 'carol'",
        "SELECT name FROM back WHERE name < 'b' ORDER BY name",
        "SELECT `a remark` FROM town ORDER BY id",
        "SELECT s.n, u.age FROM short s JOIN user u ON u.name = s.n ORDER BY s.id",
        "SELECT x.n FROM short x WHERE x.id IN (SELECT owner FROM open) ORDER BY x.n",
        "SELECT n, (SELECT COUNT(*) FROM user WHERE name < n) FROM short ORDER BY id",
    ] {
        pair.same_result(sql);
    }
    pair.same_result_with(
        "SELECT id, n FROM short WHERE n = ? AND id < ?",
        &["alice".into(), 40.into()],
    );
    pair.same_error("SELECT name FROM short");
    pair.same_error("SELECT n FROM short WHERE b = 1");
    // other proxies read the view as they read tables
    let keys = ProxyOptions {
        keys: Some(pair.proxy.keys()),
        ..ProxyOptions::default()
    };
    let second = Proxy::start_with(&pair.behind, keys);
    let mut there = second.connect_to("app");
    let found = there.text("SELECT n FROM short WHERE n = 'carol'");
    assert_eq!(found.as_deref(), Ok("carol"));
    // new definitions, seen by all
    pair.both("ALTER VIEW short AS SELECT age AS n, id FROM user");
    pair.same_result("SELECT n FROM short WHERE n < 40 ORDER BY n");
    pair.both("CREATE OR REPLACE VIEW short AS SELECT note AS other, id FROM user");
    pair.same_result("SELECT * FROM short ORDER BY id");
    assert_eq!(
        there
            .text("SELECT other FROM short WHERE id = 1")
            .as_deref(),
        Ok("first")
    );
    // the table goes on beneath
    pair.both("INSERT INTO user (name, age, seen) VALUES ('dora', 50, NULL)");
    pair.both("UPDATE user SET age = 51 WHERE name = 'dora'");
    pair.same_result("SELECT Age FROM cased WHERE NAME = 'DORA'");
    pair.both("DROP VIEW short, listed");
    assert_eq!(pair.same_error("SELECT * FROM short"), 1146);
    pair.nothing_leaked();
}

fn definitions_are_shown_as_on_a_plain_server(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let mut different = Vec::new();
    let mut compare = |pair: &mut Pair, sql: &str| {
        let (a, b) = (pair.plain.text(sql), pair.protected.text(sql));
        let text = |t: Result<String, Failure>| t.unwrap_or_else(|e| e.to_string());
        let (a, b) = (text(a), text(b));
        if a != b {
            different.push(format!("{sql}\n{a}\n---\n{b}"));
        }
    };
    for view in VIEWS {
        let name = view.split("VIEW ").nth(1).unwrap_or_default();
        let name = name.split_whitespace().next().unwrap_or_default();
        let name = name.trim_start_matches("app.");
        for sql in [
            format!("SHOW CREATE VIEW {name}"),
            format!("DESCRIBE {name}"),
            format!("SHOW FULL COLUMNS FROM {name}"),
            format!(
                "SELECT COLUMN_NAME, ORDINAL_POSITION, COLUMN_DEFAULT, IS_NULLABLE, COLUMN_TYPE, COLLATION_NAME, COLUMN_KEY, EXTRA, COLUMN_COMMENT \
                 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = '{name}' ORDER BY 2"
            ),
            format!(
                "SELECT VIEW_DEFINITION, IS_UPDATABLE FROM information_schema.VIEWS WHERE TABLE_NAME = '{name}'"
            ),
        ] {
            compare(&mut pair, &sql);
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    pair.proxy.assert_healthy();
}

fn what_a_server_makes_up_is_refused(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let mut direct = pair.behind.connect();
    direct.must("USE app");
    let columns = "SELECT GROUP_CONCAT(COLUMN_NAME ORDER BY ORDINAL_POSITION SEPARATOR ' ') FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = 'swapped'";
    let names = direct.text(columns).unwrap();
    let names: Vec<&str> = names.split(' ').collect();
    let find = |form: &str| {
        let found = names.iter().find(|n| n.starts_with(form));
        found
            .unwrap_or_else(|| panic!("{form} in {names:?}"))
            .to_string()
    };
    let (of_name, of_note) = (find("note$as_"), find("name$as_"));
    // each of them says what a proxy has said, of another column
    direct.must(&format!(
        "CREATE VIEW turned AS SELECT `note$enc`, NULL AS `note$of_name`, NULL AS `{of_name}`, `name$enc`, NULL AS `name$of_note`, NULL AS `{of_note}` FROM user"
    ));
    direct.must(&format!(
        "CREATE VIEW called AS SELECT `note$enc` AS `name$enc`, NULL AS `name$of_note`, NULL AS `name$as_{}` FROM user",
        &of_name["note$as_".len()..]
    ));
    direct.must(
        "CREATE VIEW bare AS SELECT `note$enc` AS `text$enc`, NULL AS `text$of_note` FROM user",
    );
    // the whole of what the proxy has said is as good as its own
    direct.must(&format!(
        "CREATE VIEW again AS SELECT `note$enc` AS `name$enc`, NULL AS `name$of_note`, NULL AS `{of_note}` FROM user"
    ));
    let text = |session: &mut Session, sql: &str| session.text(sql);
    assert_eq!(
        text(
            &mut pair.protected,
            "SELECT name FROM again WHERE name = 'first'"
        )
        .as_deref(),
        Ok("first")
    );
    // without the companions `turned` is not whole; the others call a column as no proxy has
    for view in ["turned", "called", "bare"] {
        for sql in [
            format!("SELECT * FROM {view}"),
            format!("SELECT 1 FROM {view} WHERE name = 'x'"),
        ] {
            let failure = pair.protected.run(&sql).expect_err(&sql);
            assert!(failure.message.contains("OS1101"), "{sql}: {failure}");
        }
    }
    pair.nothing_leaked();
}

fn rows_are_deleted_through_views(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        "DELETE FROM short WHERE n = 'nobody'",
        "DELETE FROM short WHERE n = 'ALICE'",
        "DELETE FROM cased WHERE Age > 40",
        "DELETE FROM of_view WHERE id = 77",
        "DELETE FROM listed WHERE c = 'Rome' ORDER BY a LIMIT 1",
    ] {
        pair.both(sql);
        pair.same_result("SELECT * FROM user ORDER BY id");
    }
    // which views that goes for, the server knows
    assert_eq!(pair.same_error("DELETE FROM joined WHERE w = 'x'"), 1395);
    pair.both("CREATE ALGORITHM=TEMPTABLE VIEW apart AS SELECT id, name FROM user");
    assert_eq!(pair.same_error("DELETE FROM apart WHERE id = 4"), 1288);
    // the proxy would pick the rows, and a view has no key
    for sql in [
        "DELETE FROM short WHERE n LIKE '%a%'",
        "DELETE FROM short WHERE UPPER(n) = 'A'",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS"), "{sql}: {failure}");
    }
    pair.same_result("SELECT * FROM user ORDER BY id");
    pair.nothing_leaked();
}

fn rows_are_updated_through_views(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        "UPDATE short SET n = 'Alicia' WHERE n = 'ALICE'",
        "UPDATE short SET n = 'bob' WHERE id = 2",
        "UPDATE short SET n = 'BOB' WHERE id = 2",
        "UPDATE short SET n = 'x' WHERE n = 'nobody'",
        "UPDATE short s SET s.n = 'Carla' WHERE s.id = 3",
        "UPDATE short SET n = 'like' WHERE n LIKE 'al%'",
        "UPDATE short SET n = 'last' ORDER BY id DESC LIMIT 1",
        "UPDATE cased SET Age = 45 WHERE Age > 40",
        "UPDATE cased SET Age = 46 WHERE Age > 40 AND NAME = 'carla'",
        "UPDATE starred SET years = years + 1, town = 'Thun' WHERE i < 3",
        "UPDATE starred SET n = DEFAULT, at = '2003-03-03 03:03:03' WHERE i = 1",
        "UPDATE listed SET c = 'Roma' WHERE b = 'bob'",
        "UPDATE listed SET b = 'rob', c = 'Rome' WHERE a = 2",
        // the row leaves the view
        "UPDATE listed SET b = 'robert', c = NULL WHERE a = 2",
        "UPDATE listed SET b = 'gone' WHERE a = 2",
        "UPDATE town SET `a remark` = 'everywhere'",
        "UPDATE town SET `a remark` = 'everywhere', city = 'Rome' WHERE id IN (1, 2, 3)",
    ] {
        pair.both(sql);
        pair.same_result("SELECT * FROM user ORDER BY id");
    }
    let update = "UPDATE short SET n = ? WHERE id = ?";
    for value in ["robert", "Robert", "Robert"] {
        let run = |session: &mut Session| {
            let outcome = session.execute(update, vec![Value::from(value), Value::from(2)]);
            outcome.map(|o| (o.affected, o.warnings)).expect(update)
        };
        assert_eq!(run(&mut pair.plain), run(&mut pair.protected), "{value}");
    }
    pair.same_result("SELECT * FROM user ORDER BY id");
    assert_eq!(
        pair.same_error("UPDATE short SET n = NULL WHERE id = 1"),
        1048
    );
    assert_eq!(pair.same_error("UPDATE short SET name = 'x'"), 1054);
    what_changes_with_its_row(&mut pair);
    // a table that has changed since
    pair.both("CREATE VIEW part AS SELECT id, name, age FROM user");
    pair.both("UPDATE part SET name = 'before' WHERE id = 1");
    define(
        &mut pair,
        "ALTER TABLE user ADD COLUMN late TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP {}",
    );
    pair.both("CREATE ALGORITHM=TEMPTABLE VIEW apart AS SELECT id, name FROM user");
    pair.both("CREATE VIEW reckoned AS SELECT id, age, id + 1 AS next, city FROM user");
    for sql in [
        "UPDATE part SET name = 'Hb4YqMz7' WHERE id = 1",
        "UPDATE apart SET name = 'x' WHERE id = 1",
        "UPDATE kept SET n = 'x' WHERE id = 1",
        "UPDATE joined SET owner = 'x' WHERE w = 'alice'",
        "UPDATE joined SET w = 'x' WHERE w = 'alice'",
        "UPDATE swapped SET name = 'x' WHERE age = 1",
        "UPDATE reckoned SET next = 5 WHERE id = 77",
        "UPDATE short SET n = 'x' WHERE id IN (SELECT owner FROM open)",
        "UPDATE short, open SET n = 'x' WHERE short.id = owner",
        "UPDATE open SET word = (SELECT COUNT(*) FROM short)",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS"), "{sql}: {failure}");
    }
    pair.same_result("SELECT id, name, age, note, city FROM user ORDER BY id");
    pair.nothing_leaked();
}

/// A definition on both.
fn define(pair: &mut Pair, sql: &str) {
    let (definition, bare) = with_and_without_protection(sql);
    pair.plain.must(&bare);
    pair.protected.must(&definition);
}

/// ON UPDATE of a column that the view does not show.
fn what_changes_with_its_row(pair: &mut Pair) {
    define(
        pair,
        "CREATE TABLE watched (id INT PRIMARY KEY, w VARCHAR(20) {eq}, n INT {eq}, at TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP)",
    );
    pair.both("CREATE VIEW watching AS SELECT w AS word, id, n FROM watched");
    pair.both("INSERT INTO watched (id, w, n) VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)");
    for sql in [
        "UPDATE watching SET word = 'a'",
        "UPDATE watching SET n = 2 WHERE n = 2",
        "UPDATE watching SET n = 5 WHERE word = 'c'",
    ] {
        pair.both(sql);
        pair.same_result("SELECT id, w, n, at IS NULL FROM watched ORDER BY id");
    }
}

fn rows_are_inserted_through_views(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.both("CREATE VIEW same AS SELECT id, name, age, city, seen FROM user");
    pair.both("CREATE VIEW part AS SELECT id, name, age FROM user");
    for sql in [
        "INSERT INTO same (id, name, age, seen) VALUES (10, 'dora', 5, NULL), (11, 'emil', NULL, '2001-01-01')",
        "INSERT INTO same VALUES (12, 'fritz', 7, 'Ulm', NULL)",
        "INSERT INTO same SET name = 'gina', seen = NULL",
        "INSERT INTO same (name, seen) VALUES (DEFAULT, NULL)",
        "INSERT INTO same (age, seen) VALUES (1, NULL), (2, NULL)",
        "INSERT IGNORE INTO same (id, name, seen) VALUES (12, 'fritz', NULL), (20, 'hans', NULL)",
    ] {
        pair.both(sql);
        pair.same_result("SELECT * FROM user ORDER BY id");
    }
    let insert = "INSERT INTO same (name, age, seen) VALUES (?, ?, NULL)";
    let run = |session: &mut Session| {
        let outcome = session.execute(insert, vec![Value::from("Ida"), Value::from(44)]);
        outcome.map(|o| (o.affected, o.insert_id)).expect(insert)
    };
    assert_eq!(run(&mut pair.plain), run(&mut pair.protected));
    pair.same_result("SELECT name, age FROM same WHERE name = 'ida'");
    for (sql, code) in [
        ("INSERT INTO same (id, seen) VALUES (12, NULL)", 1062),
        ("INSERT INTO same (name, seen) VALUES (NULL, NULL)", 1048),
        ("INSERT INTO same (note, seen) VALUES ('x', NULL)", 1054),
        ("INSERT INTO same VALUES (1, 'x')", 1136),
    ] {
        assert_eq!(pair.same_error(sql), code, "{sql}");
    }
    for sql in [
        // its default is the proxy's to fill in
        "INSERT INTO part (id, name, age) VALUES (50, 'Hb4YqMz7', 1)",
        "INSERT INTO same (id, name) VALUES (50, 'Hb4YqMz7')",
        "INSERT INTO short (n) VALUES ('Hb4YqMz7')",
        "INSERT INTO kept (n) VALUES ('Hb4YqMz7')",
        "REPLACE INTO same (id, name, seen) VALUES (12, 'Hb4YqMz7', NULL)",
        "INSERT INTO same (id, name, seen) VALUES (12, 'Hb4YqMz7', NULL) ON DUPLICATE KEY UPDATE name = 'Hb4YqMz7'",
        "INSERT INTO same (id, name, seen) SELECT 50, 'Hb4YqMz7', NULL",
        "INSERT INTO same (id, name, seen) VALUES ((SELECT MAX(id) + 1 FROM open), 'Hb4YqMz7', NULL)",
        "INSERT INTO open SELECT id, city, id FROM same",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS"), "{sql}: {failure}");
    }
    pair.same_result("SELECT * FROM user ORDER BY id");
    pair.same_result("SELECT * FROM open ORDER BY id");
    pair.nothing_leaked();
}

fn what_is_refused(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let long = "a".repeat(50);
    for sql in [
        format!("INSERT INTO short (n) VALUES ('{SECRET}')"),
        "CREATE VIEW w AS SELECT name AS a, name AS b FROM user".into(),
        "CREATE VIEW w (a, b) AS SELECT name, name FROM user".into(),
        "CREATE VIEW w AS SELECT age AS years, u.* FROM user u".into(),
        "CREATE VIEW w AS SELECT name AS city, city FROM user".into(),
        "CREATE VIEW w (a, a) AS SELECT name, age FROM user".into(),
        "CREATE VIEW w (a) AS SELECT name, age FROM user".into(),
        "CREATE VIEW w AS SELECT name AS city FROM user ORDER BY city".into(),
        format!("CREATE VIEW w AS SELECT name AS {long} FROM user"),
        "CREATE VIEW w AS SELECT name AS `a$of_b` FROM user".into(),
        "CREATE VIEW w AS SELECT UPPER(name) AS n FROM user".into(),
    ] {
        let failure = pair.protected.run(&sql).expect_err(&sql);
        assert!(failure.message.starts_with("OS"), "{sql}: {failure}");
        assert_eq!(pair.protected.must_fail("SELECT * FROM w"), 1146, "{sql}");
    }
    pair.nothing_leaked();
}

/// Views with constants that protected columns are compared with.
const CONSTANTS: &[&str] = &[
    "CREATE VIEW c1 AS SELECT id, name AS n FROM user WHERE name = 'ALICE'",
    "CREATE VIEW c2 AS SELECT id, age FROM user WHERE age > 20 AND age <= 45",
    "CREATE VIEW c3 AS SELECT * FROM user WHERE name IN ('bob', 'it''s', 'carol') ORDER BY id",
    "CREATE VIEW c4 AS SELECT id, name FROM user WHERE age BETWEEN -5 AND 31 OR name <> 'drei \u{20ac} \\\\ \n'",
    "CREATE VIEW c5 (a, b) AS SELECT u.name, o.word FROM user u JOIN open o ON o.owner = u.id WHERE u.age = 31",
    "CREATE VIEW c6 AS SELECT id, city FROM bare WHERE name = 'bob'",
    "CREATE VIEW c7 AS SELECT COUNT(*) AS number FROM user WHERE age < 40",
    "CREATE VIEW c8 AS SELECT id, name FROM user WHERE NOT (name = 'bob' AND age = 17)",
    "CREATE VIEW c9 AS SELECT n, id FROM c1 WHERE n <> 'x'",
];

fn constants(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.create("CREATE TABLE bare (id INT PRIMARY KEY, name VARCHAR(20) {eq}, city VARCHAR(20))");
    pair.both("INSERT INTO bare VALUES (1, 'bob', 'Rome'), (2, 'x', 'Bern')");
    let mut different = Vec::new();
    for (n, view) in CONSTANTS.iter().enumerate() {
        pair.both(view);
        let name = format!("c{}", n + 1);
        pair.same_result(&format!("SELECT * FROM {name}"));
        for sql in [
            format!("SHOW CREATE VIEW {name}"),
            format!("SHOW CREATE TABLE {name}"),
        ] {
            let [mut a, b] = pair.sessions().map(|session| session.text(&sql));
            // as MySQL writes a negative number
            a = a.map(|text| text.replace("-(5)", "-5"));
            if a != b {
                different.push(format!("{sql}\n{a:?}\n---\n{b:?}"));
            }
        }
        // what is shown makes the same view
        let shown = pair.protected.must(&format!("SHOW CREATE VIEW {name}"));
        let Value::Bytes(text) = &shown.sets[0].rows[0][1] else {
            panic!("a text")
        };
        let text = String::from_utf8_lossy(text).replace(&format!("`{name}` "), "`again` ");
        pair.protected.must(&text);
        let [a, b] = [name.as_str(), "again"]
            .map(|name| pair.protected.text(&format!("SELECT * FROM {name}")));
        assert_eq!(a, b, "{text}");
        pair.protected.must("DROP VIEW again");
        let sql = format!(
            "SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_NAME = '{name}'"
        );
        let found = pair.protected.text(&sql).expect("a definition");
        assert!(found.contains("(protected)"), "{found}");
        assert!(!found.contains(['$']), "{found}");
    }
    assert!(different.is_empty(), "{}", different.join("\n\n"));
    // rows are written through them, and the table goes on beneath
    pair.both("UPDATE c2 SET age = age + 1 WHERE id = 1");
    pair.both("DELETE FROM c8 WHERE id = 3");
    pair.both("INSERT INTO user (name, age, seen) VALUES ('ALICE', 21, NULL)");
    for sql in [
        "SELECT * FROM c1 ORDER BY id",
        "SELECT n FROM c9 WHERE n = 'alice'",
    ] {
        pair.same_result(sql);
    }
    // another proxy, and a constant that somebody gives to another token
    let keys = ProxyOptions {
        keys: Some(pair.proxy.keys()),
        ..ProxyOptions::default()
    };
    let second = Proxy::start_with(&pair.behind, keys);
    let shown = second
        .connect_to("app")
        .text("SHOW CREATE VIEW c1")
        .expect("a view");
    assert!(shown.contains("'ALICE'"), "{shown}");
    let mut server = pair.behind.connect();
    server.must("USE app");
    let text = server.text("SHOW CREATE VIEW c1").expect("a view");
    // the last: the marks of aliases before it are random letters
    let digits = text
        .rfind("0x")
        .map_or_else(|| text.rfind("X'"), Some)
        .expect("digits")
        + 2;
    let begin = text.find("CREATE").expect("a statement");
    let end = text.rfind("\tutf8mb4\t").expect("a character set");
    let changed = |c: &str| if c == "f" { "e" } else { "f" };
    let forged = format!(
        "{}{}{}",
        &text[begin..digits],
        changed(&text[digits..=digits]),
        &text[digits + 1..end]
    );
    server.must(&forged.replace("CREATE ", "CREATE OR REPLACE "));
    let shown = pair.protected.text("SHOW CREATE VIEW c1").expect("a view");
    assert!(!shown.contains("'ALICE'"), "{shown}");
    pair.nothing_leaked();
}

/// Constants that would mean something else to another session, or be warned of for each reader.
fn constants_that_are_refused(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.create("CREATE TABLE m (id INT PRIMARY KEY, t TIMESTAMP NULL {range}, d DATE {range})");
    for sql in [
        "CREATE VIEW w AS SELECT id, t FROM m WHERE t > '2020-01-01 00:00:00'",
        "CREATE VIEW w AS SELECT id, name FROM user WHERE age = '12abc'",
        "CREATE VIEW w AS SELECT id, d FROM m WHERE d = '2020-02-31'",
        "CREATE VIEW w AS SELECT id, name FROM user WHERE name LIKE 'a%'",
        "CREATE VIEW w AS SELECT id, name FROM user WHERE name = _latin1'alice'",
        "CREATE VIEW w AS SELECT id, name FROM user WHERE name > 'alice'",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.contains("OS10"), "{sql}: {failure}");
        assert_eq!(pair.protected.must_fail("SELECT * FROM w"), 1146, "{sql}");
    }
}

/// A view whose table or column is gone is the server's error, and can be made anew.
fn views_of_what_is_gone(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.both("CREATE TABLE plain (id INT PRIMARY KEY, word VARCHAR(40))");
    pair.both("CREATE VIEW of_plain AS SELECT id, word FROM plain");
    pair.both("ALTER TABLE plain DROP COLUMN word");
    pair.both("ALTER TABLE user DROP COLUMN note");
    // a definition that reads the view which it replaces says something about that one
    for definition in [
        "OR REPLACE VIEW swapped AS SELECT * FROM swapped WHERE name = 'SECRET'",
        "OR REPLACE VIEW swapped AS SELECT 1 FROM DUAL WHERE 'SECRET' IN (SELECT name FROM SWAPPED)",
        "VIEW swapped AS SELECT s.name FROM app.swapped s WHERE s.name = 'SECRET'",
    ] {
        let sql = format!("CREATE {}", definition.replace("SECRET", SECRET));
        assert_eq!(pair.protected.must_fail(&sql), 1356, "{sql}");
    }
    for sql in [
        "SELECT * FROM swapped",
        "SELECT name FROM swapped WHERE name = 'x'",
        "SELECT * FROM of_plain WHERE word = 'x'",
        "INSERT INTO swapped (name) VALUES ('x')",
        "UPDATE swapped SET name = 'y' WHERE age = 3",
        "DELETE FROM joined WHERE owner = 'x'",
        "SHOW COLUMNS FROM swapped",
        "DESCRIBE joined",
        "SHOW CREATE VIEW swapped",
        "SHOW CREATE TABLE joined",
        "SHOW CREATE VIEW of_plain",
        "CREATE VIEW swapped AS SELECT name AS note FROM user",
        "CREATE VIEW of_plain AS SELECT id FROM plain",
        "RENAME TABLE swapped TO other",
        "SELECT * FROM other",
        "RENAME TABLE other TO swapped",
        "CREATE OR REPLACE VIEW swapped AS SELECT name AS note, nothing AS name FROM user",
        "SELECT note FROM swapped",
        "CREATE OR REPLACE VIEW swapped AS SELECT name AS note, age FROM user WHERE name = 'bob'",
        "SELECT note, age FROM swapped ORDER BY age",
        "ALTER VIEW joined AS SELECT id, name AS owner FROM user",
        "SELECT owner FROM joined WHERE owner = 'bob'",
        "CREATE OR REPLACE VIEW of_plain AS SELECT id FROM plain WHERE id <> 7",
        "SELECT * FROM of_plain",
        "CREATE OR REPLACE VIEW of_plain AS SELECT name FROM user WHERE id = 1",
        "SELECT * FROM of_plain",
        "DROP TABLE user",
        "SELECT * FROM swapped WHERE note = 'x'",
        "CREATE OR REPLACE VIEW swapped AS SELECT 'x' AS note",
        "SELECT * FROM swapped",
        "DROP VIEW joined",
    ] {
        pair.same(sql);
    }
    pair.nothing_leaked();
}

/// In a transaction that sees the past, what is behind a view is held against what it is now.
fn views_that_a_snapshot_has_not_looked_up(kind: Kind) {
    const TABLES: [&str; 2] = [
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) {eq}, p INT)",
        "CREATE TABLE u (id INT PRIMARY KEY, mail VARCHAR(20) {eq}, q INT)",
    ];
    const VIEWS: [(&str, &str); 9] = [
        ("plain", "SELECT id, p FROM t"),
        ("renamed", "SELECT p AS id, id AS p FROM t"),
        (
            "constant",
            "SELECT id, 'it''s `name`' AS c FROM t WHERE p > 0",
        ),
        ("sealed", "SELECT id, name FROM t"),
        (
            "both",
            "SELECT t.id, t.name, u.q FROM t JOIN u ON t.id = u.id",
        ),
        (
            "plain_both",
            "SELECT t.id, u.q FROM t LEFT JOIN u ON t.id = u.id",
        ),
        ("counted", "SELECT p, COUNT(*) AS n FROM t GROUP BY p"),
        ("above", "SELECT id, name FROM sealed"),
        ("above_both", "SELECT id, q FROM both_of_them"),
    ];
    let Some(mut pair) = Pair::of(kind, false, &TABLES) else {
        return;
    };
    pair.both("INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 1)");
    pair.both("INSERT INTO u VALUES (1, 'a@b', 5), (2, 'c@d', 6)");
    let name = |name: &str| match name {
        "both" => "both_of_them".to_owned(),
        other => other.to_owned(),
    };
    let mut made = Vec::new();
    for (view, query) in VIEWS {
        if pair.same_if_done(&format!("CREATE VIEW {} AS {query}", name(view))) {
            made.push(view);
        }
    }
    assert!(made.len() > 4, "{made:?}");
    let mut answered = Vec::new();
    for view in made.iter().copied() {
        // what nobody has looked up
        let user = format!("u_{view}");
        for server in [pair.beside(), &pair.behind] {
            let mut root = server.connect();
            root.must(&format!("CREATE USER {user}@'%'"));
            root.must(&format!("GRANT ALL ON app.* TO {user}@'%'"));
        }
        pair.plain = Session::open(pair.beside().port(), &user, "", Some("app"));
        pair.protected = Session::open(pair.proxy.port(), &user, "", Some("app"));
        pair.both("START TRANSACTION");
        pair.same("SELECT id, q FROM u WHERE id = 1");
        let query = format!("SELECT * FROM {}", name(view));
        let said = pair.say(&query);
        if !said.is_refused() {
            assert_eq!(said.plain, said.protected, "{query}");
            answered.push(view);
        }
        pair.both("ROLLBACK");
    }
    assert_eq!(answered, made);
}

/// A view's column has the letters of the item that it comes from, and not the table's.
fn items_in_other_letters(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        "CREATE VIEW l1 AS SELECT NOTE, id FROM user",
        "CREATE VIEW l2 AS SELECT ID, user.NaMe, Age, seen FROM user WHERE AGE > 5",
        "CREATE VIEW l3 (NOTE, Id) AS SELECT Note, id FROM user",
        "CREATE VIEW l4 AS SELECT `NAME`, AGE AS Years, U.Id FROM user U ORDER BY u.ID",
        "CREATE VIEW l5 AS SELECT *, NAME AS nAmE2 FROM open o JOIN (SELECT 1 AS one) x ON 1",
    ] {
        let said = [pair.plain.run(sql), pair.protected.run(sql)].map(|said| said.is_ok());
        assert_eq!(said[0], said[1], "{sql}");
    }
    for view in ["l1", "l2", "l3"] {
        pair.same_result(&format!("SELECT * FROM {view} ORDER BY id"));
        pair.same_result(&format!("SELECT * FROM {view} WHERE id = 1"));
        pair.same_result(&format!("DESCRIBE {view}"));
    }
    pair.same_result("SHOW CREATE VIEW l1");
    pair.same_result("SHOW CREATE VIEW l2");
    for sql in [
        "SELECT note FROM l1 ORDER BY id",
        "SELECT NOTE FROM l1 WHERE id = 1",
        "SELECT v.nOtE, ID FROM l1 v ORDER BY id",
        "SELECT name FROM l2 WHERE NAME = 'alice'",
        "SELECT name AS x, AGE FROM l2 ORDER BY aGe",
        "SELECT note FROM l3 ORDER BY id",
        "SELECT N, ID FROM short ORDER BY id",
        "SELECT v.N FROM short v WHERE v.N = 'bob'",
        "SELECT COUNT(*), UPPER(NAME) FROM l2 GROUP BY NAME ORDER BY NAME",
    ] {
        pair.same_result(sql);
    }
    pair.both("UPDATE l1 SET note = 'again' WHERE ID = 1");
    pair.both("DELETE FROM l2 WHERE NAME = 'bob'");
    pair.same_result("SELECT * FROM l1 ORDER BY id");
    pair.same_result("SELECT * FROM user ORDER BY id");
}
