//! ALTER TABLE in its less usual forms, views that show nothing protected, SHOW as a prepared
//! statement: beside a plain twin.

use onionskin_testkit::*;

on_both_servers!(
    columns_and_indexes,
    what_exists_or_not,
    character_sets_and_show,
    views_of_plain_columns,
    indexes_over_prefixes,
    keys_in_definitions_of_columns,
    engines_without_expressions_as_defaults,
    databases_that_get_another_collation,
    collations_are_those_of_today,
    collations_that_change_while_a_lock_is_awaited,
);

const USER: &str = "CREATE TABLE user (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) {eq}, age INT {range}, note TEXT {}, city VARCHAR(20), \
     KEY (name)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci";
const NUMBERS: &str = "CREATE TABLE number (id INT PRIMARY KEY, n BIGINT {range}, word VARCHAR(10)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci";

fn pair(kind: Kind) -> Option<Pair> {
    let mut pair = Pair::start(kind, &[USER, NUMBERS])?;
    pair.both(
        "INSERT INTO user (name, age, note, city) VALUES ('Alice', 31, 'first', 'Bern'), ('bob', 17, NULL, 'Rome'), ('carol', 45, 'x', 'Bern')",
    );
    pair.both("INSERT INTO number VALUES (1, 5, 'x')");
    Some(pair)
}

fn columns_and_indexes(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    names_of_indexes(&mut pair);
    lists_of_columns(&mut pair);
}

fn what_exists_or_not(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    names_that_are_taken(kind, &mut pair);
    if kind == Kind::MariaDb {
        keys_over_hashes(&mut pair);
        what_is_there_or_not(&mut pair);
    }
    pair.nothing_leaked();
}

fn character_sets_and_show(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    character_sets(&mut pair);
    prepared_show(&mut pair);
}

fn views_of_plain_columns(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    views_without_protected_columns(&mut pair);
    pair.nothing_leaked();
}

fn indexes_over_prefixes(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    prefixes_are_shown_as_defined(&mut pair);
    prefixes_change_no_answer(&mut pair);
    prefixes_that_are_refused(&mut pair);
    pair.nothing_leaked();
}

/// A definition on both, with what is ENCRYPTED FOR left out of the plain one.
fn define(pair: &mut Pair, sql: &str) {
    let (definition, bare) = with_and_without_protection(sql);
    let a = pair.plain.must(&bare);
    let b = pair
        .protected
        .run(&definition)
        .unwrap_or_else(|e| panic!("{sql}\n→ {e}"));
    assert_eq!(a.warnings, b.warnings, "{sql}");
    pair.same_result_of_text("SHOW CREATE TABLE user");
}

fn refusal(pair: &mut Pair, sql: &str) -> String {
    let answer = pair.protected.run(sql);
    answer.expect_err(sql).message
}

fn lists_of_columns(pair: &mut Pair) {
    define(
        pair,
        "ALTER TABLE user ADD (a INT, b VARCHAR(10) {eq}, c DATE {})",
    );
    define(
        pair,
        "ALTER TABLE user ADD COLUMN (d INT {range}, KEY by_d (d), UNIQUE (a, b)), DROP COLUMN c",
    );
    pair.both("UPDATE user SET a = id, b = 'b', d = id + 5");
    pair.same_result("SELECT id, a, b, d FROM user WHERE d >= 7 AND b = 'B' ORDER BY id");
    define(
        pair,
        "ALTER TABLE user DROP COLUMN a, DROP COLUMN b, DROP COLUMN d",
    );
    // a column's place cannot stand inside
    pair.plain.must_fail("ALTER TABLE user ADD (a INT FIRST)");
    pair.protected
        .must_fail("ALTER TABLE user ADD (a INT FIRST)");
    refusal(
        pair,
        "ALTER TABLE user ADD (a INT, b INT DEFAULT (age + 1))",
    );
}

fn names_of_indexes(pair: &mut Pair) {
    for sql in [
        "ALTER TABLE user ADD INDEX (name)",
        "ALTER TABLE user ADD INDEX (name), ADD INDEX (name, city), ADD INDEX (age)",
        "ALTER TABLE user DROP INDEX name, ADD INDEX (name, age)",
        "ALTER TABLE user DROP INDEX name_2, DROP INDEX name_3, DROP INDEX name_4, DROP INDEX age",
        "ALTER TABLE user ADD UNIQUE (name), ADD INDEX (city), ADD INDEX (city)",
        "ALTER TABLE user DROP INDEX name_2, DROP INDEX city, DROP INDEX city_2",
    ] {
        define(pair, sql);
    }
    assert_eq!(
        pair.same_error("ALTER TABLE user ADD INDEX name (age)"),
        1061
    );
}

/// As Sequelize says it with `sync({ alter: true })`, each time once more, and Django with a field
/// that is unique.
fn keys_in_definitions_of_columns(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        "ALTER TABLE user CHANGE name name VARCHAR(40) {eq} UNIQUE",
        "ALTER TABLE user CHANGE `name` `name` VARCHAR(40) UNIQUE COMMENT 'n' AFTER id",
        "ALTER TABLE user MODIFY COLUMN name VARCHAR(40) UNIQUE KEY, MODIFY age INT UNIQUE",
        "ALTER TABLE user ADD COLUMN mail VARCHAR(40) {eq} UNIQUE AFTER id, ADD n INT {eq} UNIQUE, ADD KEY (mail)",
        "ALTER TABLE user DROP INDEX mail, DROP INDEX name_2",
        "ALTER TABLE user MODIFY mail VARCHAR(40) UNIQUE FIRST, ADD UNIQUE (name)",
    ] {
        define(&mut pair, sql);
        same_indexes(&mut pair, "user");
    }
    pair.both("UPDATE user SET mail = name, n = age");
    for sql in [
        "INSERT INTO user (name) VALUES ('ALICE')",
        "INSERT INTO user (mail) VALUES ('Bob')",
        "UPDATE user SET age = 45 WHERE id = 1",
    ] {
        let said = pair.same(sql);
        assert!(said.contains("Duplicate entry"), "{said}");
    }
    pair.both("UPDATE user SET note = 'same'");
    // rows that are equal already
    pair.create("CREATE TABLE two (id INT, w VARCHAR(9) {eq})");
    pair.both("INSERT INTO two VALUES (1, 'a'), (2, 'A')");
    assert_eq!(
        pair.same_error("ALTER TABLE two MODIFY w VARCHAR(9) UNIQUE"),
        1062
    );
    pair.same("SELECT * FROM two");
    for sql in [
        "ALTER TABLE user ADD v INT {eq} PRIMARY KEY",
        "ALTER TABLE user CHANGE name other VARCHAR(40) UNIQUE",
        "ALTER TABLE user MODIFY note TEXT UNIQUE",
        "ALTER TABLE user ADD free VARCHAR(9) {} UNIQUE",
    ] {
        refusal(
            &mut pair,
            &sql.replace("{eq}", "ENCRYPTED FOR (eq)")
                .replace("{}", "ENCRYPTED"),
        );
    }
    pair.nothing_leaked();
}

fn names_that_are_taken(kind: Kind, pair: &mut Pair) {
    for sql in [
        "ALTER TABLE user ADD COLUMN name VARCHAR(40)",
        "ALTER TABLE user ADD COLUMN NAME INT FIRST",
        "ALTER TABLE user ADD (a INT, age INT)",
        "ALTER TABLE user RENAME COLUMN city TO note",
        "ALTER TABLE user CHANGE city name VARCHAR(20)",
        "ALTER TABLE user CHANGE COLUMN city note TEXT",
    ] {
        assert_eq!(pair.same_error(sql), 1060, "{sql}");
    }
    if kind == Kind::MySql {
        // not in its grammar
        for sql in [
            "ALTER TABLE user ADD COLUMN IF NOT EXISTS name INT",
            "ALTER TABLE user DROP COLUMN IF EXISTS name",
            "ALTER TABLE user ALTER COLUMN IF EXISTS name SET DEFAULT 'Hb4YqMz7'",
        ] {
            pair.plain.must_fail(sql);
            pair.protected.must_fail(sql);
        }
    }
    pair.same_result_of_text("SHOW CREATE TABLE user");
}

fn what_is_there_or_not(pair: &mut Pair) {
    for sql in [
        "ALTER TABLE user ADD COLUMN IF NOT EXISTS name INT",
        "ALTER TABLE user ADD COLUMN IF NOT EXISTS city INT, ADD COLUMN IF NOT EXISTS e INT {range}",
        "ALTER TABLE user ADD COLUMN IF NOT EXISTS e INT {range}, ADD IF NOT EXISTS f INT AFTER id",
        "ALTER TABLE user DROP COLUMN IF EXISTS e, DROP COLUMN IF EXISTS nothing",
        "ALTER TABLE user DROP COLUMN IF EXISTS e, DROP IF EXISTS f",
        "ALTER TABLE IF EXISTS user ADD COLUMN IF NOT EXISTS g VARCHAR(10) {}",
        "ALTER TABLE user ALTER COLUMN IF EXISTS g SET DEFAULT 'abc'",
        "ALTER TABLE user ALTER COLUMN IF EXISTS g DROP DEFAULT",
        "ALTER TABLE user RENAME COLUMN IF EXISTS g TO h",
        "ALTER TABLE user DROP COLUMN IF EXISTS h",
    ] {
        define(pair, sql);
    }
    let both = "ALTER TABLE user ADD COLUMN IF NOT EXISTS name INT";
    for session in [&mut pair.plain, &mut pair.protected] {
        session.must(both);
    }
    pair.same_result_of_text("SHOW WARNINGS");
}

fn keys_over_hashes(pair: &mut Pair) {
    let (definition, bare) = with_and_without_protection(
        "CREATE TABLE hashed (id INT, a TEXT {eq}, b BLOB {eq}, c VARCHAR(10) {eq}, UNIQUE (a), UNIQUE KEY two (c, b))",
    );
    pair.plain.must(&bare);
    pair.protected.must(&definition);
    pair.same_result_of_text("SHOW CREATE TABLE hashed");
}

fn character_sets(pair: &mut Pair) {
    // numbers have none
    pair.both("ALTER TABLE number CONVERT TO CHARACTER SET latin1");
    pair.same_result_of_text("SHOW CREATE TABLE number");
    pair.same_result("SELECT n, word FROM number WHERE n > 4");
    let said = refusal(pair, "ALTER TABLE user CONVERT TO CHARACTER SET latin1");
    assert!(
        said.starts_with("OS1014") && said.contains("name, note") && said.contains("MODIFY"),
        "{said}"
    );
    for sql in [
        "ALTER TABLE user MODIFY city VARCHAR(20) CHARACTER SET latin1",
        "ALTER TABLE user DEFAULT CHARACTER SET latin1",
    ] {
        pair.plain.must(sql);
        pair.protected.must(sql);
    }
    pair.same_result("SELECT name, city FROM user WHERE name = 'ALICE' AND city = 'bern'");
}

fn prepared_show(pair: &mut Pair) {
    for sql in [
        "SHOW COLUMNS FROM user",
        "SHOW FULL COLUMNS FROM user LIKE 'n%'",
        "DESCRIBE user",
        "SHOW CREATE TABLE user",
        "SHOW COLUMNS FROM user WHERE Field IN ('id', 'name')",
        "SHOW TABLES",
    ] {
        if sql.starts_with("SHOW FULL") {
            // privileges and comments differ by design elsewhere; names, types and collations are
            // compared
            let of = |session: &mut Session| {
                let outcome = session.execute(sql, ()).unwrap();
                let rows = outcome.sets[0].rows.clone();
                rows.into_iter()
                    .map(|r| r[..3].to_vec())
                    .collect::<Vec<_>>()
            };
            assert_eq!(of(&mut pair.plain), of(&mut pair.protected), "{sql}");
            continue;
        }
        match (pair.plain.execute(sql, ()), pair.protected.execute(sql, ())) {
            (Ok(a), Ok(b)) => {
                assert_eq!(a.sets[0].rows, b.sets[0].rows, "{sql}");
                let names = |o: &Outcome| -> Vec<_> {
                    let columns = o.sets[0].columns.iter();
                    columns.map(|c| (c.0.clone(), c.1)).collect()
                };
                assert_eq!(names(&a), names(&b), "{sql}");
            }
            (Err(a), Err(b)) => assert_eq!(a.code, b.code, "{sql}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
    let index = |session: &mut Session| {
        let outcome = session.execute("SHOW INDEX FROM user", ()).unwrap();
        let rows = outcome.sets[0].rows.clone();
        // without the estimate of how many values there are
        rows.into_iter()
            .map(|r| r[..5].to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(index(&mut pair.plain), index(&mut pair.protected));
    // a statement that was prepared before a change shows the change
    use ::mysql::prelude::Queryable;
    let show = pair
        .protected
        .conn()
        .prep("SHOW COLUMNS FROM user")
        .unwrap();
    let rows: Vec<::mysql::Row> = pair.protected.conn().exec(&show, ()).unwrap();
    pair.protected
        .must("ALTER TABLE user ADD COLUMN late INT ENCRYPTED FOR (eq)");
    let more: Vec<::mysql::Row> = pair.protected.conn().exec(&show, ()).unwrap();
    assert_eq!(more.len(), rows.len() + 1);
    pair.protected.must("ALTER TABLE user DROP COLUMN late");
}

fn views_without_protected_columns(pair: &mut Pair) {
    for (view, columns) in [
        ("SELECT city, COUNT(*) AS n FROM user GROUP BY city", ""),
        (
            "SELECT city, COUNT(*) AS n FROM user WHERE name = 'Hb4YqMz7' GROUP BY city",
            "",
        ),
        ("SELECT DISTINCT city FROM user WHERE age IS NOT NULL", ""),
        ("SELECT id, city FROM user", " (a, b)"),
        ("SELECT name, id FROM user", " (a, b)"),
        ("SELECT city, COUNT(*) FROM user GROUP BY city", " (a, b)"),
    ] {
        pair.both(&format!("CREATE OR REPLACE VIEW v{columns} AS {view}"));
        pair.same_result(
            "SELECT * FROM v ORDER BY 1, 2".trim_end_matches(if view.contains("DISTINCT") {
                ", 2"
            } else {
                ""
            }),
        );
        pair.same_result("SELECT COUNT(*) FROM v");
    }
    for view in [
        "v AS SELECT age, COUNT(*) AS n FROM user GROUP BY age",
        "v AS SELECT DISTINCT name FROM user",
        "v AS SELECT MAX(age) AS m FROM user GROUP BY city",
    ] {
        let said = refusal(pair, &format!("CREATE OR REPLACE VIEW {view}"));
        assert!(said.starts_with("OS10"), "{view}\n→ {said}");
    }
}

const PAGE: &str = "CREATE TABLE page (id INT PRIMARY KEY, title VARCHAR(40) NOT NULL {eq}, body TEXT {eq}, raw BLOB {eq, range}, n INT {eq}, city VARCHAR(20), \
     code CHAR(8) CHARACTER SET latin1 {range}, KEY (title(10)), KEY (city(3), body(20), title(40)), INDEX (raw(7)) USING BTREE, \
     UNIQUE whole (code(8), title), KEY beside (city) COMMENT 'of the city')";

/// What clients ask about indexes, without the estimates of how many values there are.
fn same_indexes(pair: &mut Pair, table: &str) {
    pair.same_result_of_text(&format!("SHOW CREATE TABLE {table}"));
    pair.same_result(&format!("DESCRIBE {table}"));
    pair.same_result(&format!(
        "SELECT INDEX_NAME, NON_UNIQUE, SEQ_IN_INDEX, COLUMN_NAME, COLLATION, SUB_PART, PACKED, NULLABLE, INDEX_TYPE, COMMENT, LEFT(INDEX_COMMENT, 99) \
         FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = '{table}' ORDER BY 1, 3"
    ));
    let sql = format!("SHOW INDEX FROM {table}");
    let rows = |outcome: Outcome| -> Vec<_> {
        let mut rows = outcome.sets[0].rows.clone();
        rows.iter_mut()
            .for_each(|row| row[6] = ::mysql::Value::NULL);
        rows
    };
    let (a, b) = (pair.plain.must(&sql), pair.protected.must(&sql));
    assert_eq!(rows(a), rows(b), "{sql}");
    let prepared = |session: &mut Session| session.execute(&sql, ()).expect(&sql);
    let (a, b) = (prepared(&mut pair.plain), prepared(&mut pair.protected));
    assert_eq!(rows(a), rows(b), "prepared: {sql}");
}

fn prefixes_are_shown_as_defined(pair: &mut Pair) {
    define(pair, PAGE);
    same_indexes(pair, "page");
    for sql in [
        "CREATE INDEX more ON page (body(5), id)",
        "CREATE INDEX last ON page (n, raw(3) DESC)",
        "ALTER TABLE page ADD COLUMN word VARCHAR(9) {eq}, ADD KEY (word(2)), ADD INDEX short (title(3), n)",
        "ALTER TABLE page RENAME COLUMN title TO name",
        "ALTER TABLE page RENAME COLUMN word TO term",
        "ALTER TABLE page DROP COLUMN city",
        // `short` would become one over the same column as `title`: a note where both are over the
        // same tokens
        "ALTER TABLE page DROP INDEX more, DROP INDEX short, DROP COLUMN n",
        "DROP INDEX last ON page",
    ] {
        define(pair, sql);
        same_indexes(pair, "page");
    }
    pair.both("CREATE TABLE other LIKE page");
    same_indexes(pair, "other");
    // what is shown can be taken for a definition
    let shown = |session: &mut Session| {
        let outcome = session.must("SHOW CREATE TABLE page");
        ::mysql::from_value::<String>(outcome.sets[0].rows[0][1].clone())
    };
    let sql = shown(&mut pair.plain);
    assert_eq!(sql, shown(&mut pair.protected));
    pair.both("DROP TABLE page, other");
    define(pair, PAGE);
    same_indexes(pair, "page");
}

fn prefixes_change_no_answer(pair: &mut Pair) {
    for (id, title) in (1..).zip([
        "alphabetical order",
        "alphabetical Order of words",
        "ALPHABETICAL ORDER",
        "alpha",
        "beta",
        "",
    ]) {
        pair.both(&format!(
            "INSERT INTO page VALUES ({id}, '{title}', 'of {title}', '{title}{SECRET}', {id}, 'Bern', '{id}')"
        ));
    }
    for sql in [
        "SELECT id FROM page WHERE title = 'alphabetical order' ORDER BY id",
        "SELECT id FROM page FORCE INDEX (title) WHERE title IN ('ALPHA', 'x', 'alphabetical order of words') ORDER BY id",
        "SELECT id, title FROM page WHERE body = 'of beta' AND city = 'Bern'",
        "SELECT id FROM page WHERE raw = '' OR title = '' ORDER BY id",
        "SELECT COUNT(*) FROM page GROUP BY title HAVING COUNT(*) > 1",
        "SELECT a.id, b.id FROM page a JOIN page b ON a.title = b.title ORDER BY 1, 2",
    ] {
        pair.same_result(sql);
    }
    pair.both("UPDATE page SET n = 9 WHERE title = 'alphabetical order'");
    pair.both("DELETE FROM page WHERE body = 'of alphabetical order of words'");
    pair.same_result("SELECT id, n, title FROM page ORDER BY id");
    // the same prefix, other texts: that is no duplicate
    pair.both("INSERT INTO page (id, title, code) VALUES (20, 'alphabetical or not', '1')");
    assert_eq!(
        pair.same_error(
            "INSERT INTO page (id, title, code) VALUES (21, 'ALPHABETICAL or not', '1')"
        ),
        1062
    );
}

fn prefixes_that_are_refused(pair: &mut Pair) {
    for sql in [
        "CREATE TABLE bad (a VARCHAR(20) ENCRYPTED FOR (eq), UNIQUE (a(5)))",
        "CREATE TABLE bad (a VARCHAR(20) ENCRYPTED FOR (eq), PRIMARY KEY (a(5)))",
        "CREATE TABLE bad (a TEXT ENCRYPTED FOR (eq), UNIQUE (a(5)))",
        "CREATE TABLE bad (a VARCHAR(20) ENCRYPTED FOR (), KEY (a(5)))",
        "CREATE TABLE bad (a VARCHAR(20) ENCRYPTED FOR (eq), KEY (a(0)))",
        "CREATE TABLE bad (a VARCHAR(20) ENCRYPTED FOR (eq), KEY (a(21)))",
        "CREATE TABLE bad (a INT ENCRYPTED FOR (eq), KEY (a(2)))",
        "CREATE TABLE bad (a TEXT ENCRYPTED FOR (eq), KEY (a(769)))",
        "CREATE TABLE bad (a TINYBLOB ENCRYPTED FOR (eq), KEY (a(256)))",
        "CREATE TABLE bad (a TEXT ENCRYPTED FOR (eq), KEY (a(5)) COMMENT 'mine')",
        "CREATE TABLE bad (a TEXT ENCRYPTED FOR (eq), FULLTEXT (a(5)))",
        "CREATE UNIQUE INDEX bad ON page (title(5))",
        "CREATE FULLTEXT INDEX bad ON page (title)",
        "CREATE INDEX bad ON page (n(5))",
        "ALTER TABLE page ADD UNIQUE (body(5))",
    ] {
        let message = refusal(pair, sql);
        assert!(message.starts_with("OS1012"), "{sql}: {message}");
    }
    same_indexes(pair, "page");
}

/// A column that is added with a value for the rows has an expression as its default, which not all
/// of MySQL's engines take.
fn engines_without_expressions_as_defaults(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    let mut added = Vec::new();
    for engine in ["InnoDB", "MyISAM", "MEMORY", "ARCHIVE", "BLACKHOLE"] {
        let create =
            format!("CREATE TABLE e_{engine} (id INT NOT NULL, p VARCHAR(5)) ENGINE={engine}");
        if pair.same(&create).contains("Unknown storage engine") {
            continue;
        }
        pair.same(&format!("INSERT INTO e_{engine} VALUES (1, 'a')"));
        for column in [
            "c INT NOT NULL DEFAULT 5 {range}",
            "d VARCHAR(5) DEFAULT 'x' {eq}",
        ] {
            let (sql, bare) =
                with_and_without_protection(&format!("ALTER TABLE e_{engine} ADD {column}"));
            match pair.protected.run(&sql) {
                Ok(_) => {
                    pair.plain.must(&bare);
                    added.push(engine);
                }
                Err(failure) => assert!(failure.message.contains("OS1"), "{sql}: {failure}"),
            }
        }
        pair.same_rows(&format!("SELECT * FROM e_{engine}"), &[]);
    }
    let all = added.join(" ");
    assert!(all.starts_with("InnoDB InnoDB MyISAM MyISAM"), "{all}");
    assert_eq!(all.contains("MEMORY"), kind == Kind::MariaDb, "{all}");
    // the default goes with the column into another engine
    let other = match kind {
        Kind::MariaDb => "MEMORY",
        Kind::MySql => "ARCHIVE",
    };
    let done = pair.same_if_done(&format!("ALTER TABLE e_InnoDB ENGINE={other}"));
    assert_eq!(done, kind == Kind::MariaDb);
    pair.same_rows("SELECT * FROM e_InnoDB", &[]);
}

/// MariaDB gives new tables the collation that the database had when the session selected it.
fn databases_that_get_another_collation(kind: Kind) {
    const A_WHILE: std::time::Duration = std::time::Duration::from_millis(1200);
    let options = PairOptions {
        database: "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
        ..PairOptions::default()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    let create = "(id INT PRIMARY KEY, a VARCHAR(9) {eq}, b VARCHAR(9))";
    let own = format!("{create} COLLATE utf8mb4_unicode_ci");
    pair.same(&format!("CREATE TABLE before_it {create}"));
    for server in [pair.beside(), &pair.behind] {
        server
            .connect()
            .must("ALTER DATABASE app COLLATE utf8mb4_bin");
    }
    std::thread::sleep(A_WHILE);
    let compare = |pair: &mut Pair, table: &str| {
        pair.same(&format!("SHOW CREATE TABLE {table}"));
        pair.both(&format!("INSERT INTO {table} VALUES (1, 'A', 'B')"));
        pair.same_rows(&format!("SELECT id FROM {table} WHERE a = 'a'"), &[]);
        pair.same_rows(&format!("SELECT id FROM {table} WHERE b = 'b'"), &[]);
    };
    let done = pair.same_if_done(&format!("CREATE TABLE stale {create}"));
    assert_eq!(done, kind == Kind::MySql);
    if done {
        compare(&mut pair, "stale");
    }
    // elsewhere, and where the definition says it
    for (table, definition) in [
        ("app.own", &*own),
        ("app.of_numbers", "(id INT {eq}, b INT)"),
    ] {
        assert!(pair.same_if_done(&format!("CREATE TABLE {table} {definition}")));
        pair.same(&format!("SHOW CREATE TABLE {table}"));
    }
    assert!(pair.same_if_done("CREATE TABLE copied LIKE before_it"));
    compare(&mut pair, "copied");
    // the same one again is no news to MariaDB
    pair.same("USE information_schema");
    pair.same("USE app");
    assert!(pair.same_if_done(&format!("CREATE TABLE afterwards {create}")));
    compare(&mut pair, "afterwards");
}

/// What a definition that failed has looked up does not count any more when somebody else has
/// changed it.
fn collations_are_those_of_today(kind: Kind) {
    let options = PairOptions {
        database: "DEFAULT CHARSET latin1",
        ..PairOptions::default()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    pair.both("CREATE TABLE old (id INT PRIMARY KEY) DEFAULT CHARSET latin1");
    assert!(pair.same_if_done(
        "CREATE TABLE kept (id INT PRIMARY KEY, a VARCHAR(9) {eq}) DEFAULT CHARSET latin1"
    ));
    pair.protected.must_fail(
        "CREATE TABLE p (id INT PRIMARY KEY, name VARCHAR(9) ENCRYPTED FOR (eq), x NOSUCH)",
    );
    pair.protected.must_fail(
        "ALTER TABLE old ADD COLUMN name VARCHAR(9) ENCRYPTED FOR (eq), ADD COLUMN id INT",
    );
    pair.protected.must_fail(
        "ALTER TABLE kept ADD COLUMN name VARCHAR(9) ENCRYPTED FOR (eq), ADD COLUMN x NOSUCH",
    );
    for server in [pair.beside(), &pair.behind] {
        let mut admin = server.connect();
        admin.must("ALTER DATABASE app CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci");
        admin.must("ALTER TABLE app.old DEFAULT CHARACTER SET utf8mb4");
        admin.must("ALTER TABLE app.kept DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
    }
    let definitions = [
        "ALTER TABLE kept ADD COLUMN name VARCHAR(20) {eq}, ADD COLUMN y VARCHAR(9)",
        "CREATE TABLE p (id INT PRIMARY KEY, name VARCHAR(9) {eq}, y VARCHAR(9))",
        "ALTER TABLE old ADD COLUMN name VARCHAR(9) {eq}, ADD COLUMN y VARCHAR(9)",
    ];
    let mut shown = Vec::new();
    for port in [pair.beside().port(), pair.proxy.port()] {
        let mut session = Session::open(port, "root", "", Some("app"));
        let is_plain = port == pair.beside().port();
        for definition in definitions {
            let (sealed, bare) = with_and_without_protection(definition);
            session.must(if is_plain { &bare } else { &sealed });
        }
        shown.push(["p", "old", "kept"].map(|table| {
            session
                .text(&format!("SHOW CREATE TABLE {table}"))
                .expect("it is there")
        }));
    }
    assert_eq!(shown[0], shown[1]);
}

/// The same behind the lock of a protected table: it may have been awaited for long.
fn collations_that_change_while_a_lock_is_awaited(kind: Kind) {
    let options = PairOptions {
        database: "DEFAULT CHARSET latin1",
        ..PairOptions::default()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    const CHANGE: &str = "ALTER TABLE app.t DEFAULT CHARACTER SET utf8mb4";
    const ADD: &str = "ALTER TABLE t ADD COLUMN name VARCHAR(20) {eq}, ADD COLUMN y VARCHAR(20)";
    assert!(pair.same_if_done("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9) {eq})"));
    let (sealed, bare) = with_and_without_protection(ADD);
    let mut admin = pair.behind.connect();
    let comment = admin
        .text("SELECT COLUMN_COMMENT FROM information_schema.COLUMNS WHERE COLUMN_NAME = 'a$enc'");
    let comment = comment.expect("a comment");
    let is_id = |field: &&str| field.len() == 16 && field.bytes().all(|b| b.is_ascii_hexdigit());
    let table_id = comment.split('|').find(is_id).expect("an id");
    admin.must(&format!("SELECT GET_LOCK('onionskin {table_id}', 9)"));
    let port = pair.proxy.port();
    let altering = std::thread::spawn(move || {
        Session::open(port, "root", "", Some("app")).must(&sealed);
    });
    let limit = std::time::Duration::from_secs(20);
    wait_until("the definition waits", limit, || {
        let shown = admin.text("SHOW FULL PROCESSLIST").expect("a list");
        shown.contains("GET_LOCK('onionskin ")
    });
    admin.must(CHANGE);
    admin.must(&format!("SELECT RELEASE_LOCK('onionskin {table_id}')"));
    altering.join().expect("the definition");
    let mut plain = Session::open(pair.beside().port(), "root", "", Some("app"));
    plain.must(CHANGE);
    plain.must(&bare);
    pair.same("SHOW CREATE TABLE t");
}
