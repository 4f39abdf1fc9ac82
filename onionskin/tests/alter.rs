//! ALTER TABLE in its less usual forms, views that show nothing protected, SHOW as a prepared statement: beside a plain twin.

mod support;

use support::*;

on_both_servers!(
    columns_and_indexes,
    what_exists_or_not,
    character_sets_and_show,
    views_of_plain_columns,
    indexes_over_prefixes,
);

const USER: &str = "CREATE TABLE user (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) {eq}, age INT {range}, note TEXT {}, city VARCHAR(20), \
     KEY (name)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci";
const NUMBERS: &str = "CREATE TABLE number (id INT PRIMARY KEY, n BIGINT {range}, word VARCHAR(10)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci";

fn stage(kind: Kind) -> Option<Stage> {
    let mut stage = Stage::start(kind, &[USER, NUMBERS])?;
    stage.both(
        "INSERT INTO user (name, age, note, city) VALUES ('Alice', 31, 'first', 'Bern'), ('bob', 17, NULL, 'Rome'), ('carol', 45, 'x', 'Bern')",
    );
    stage.both("INSERT INTO number VALUES (1, 5, 'x')");
    Some(stage)
}

fn columns_and_indexes(kind: Kind) {
    let Some(mut stage) = stage(kind) else { return };
    names_of_indexes(&mut stage);
    lists_of_columns(&mut stage);
}

fn what_exists_or_not(kind: Kind) {
    let Some(mut stage) = stage(kind) else { return };
    names_that_are_taken(kind, &mut stage);
    if kind == Kind::MariaDb {
        keys_over_hashes(&mut stage);
        what_is_there_or_not(&mut stage);
    }
    stage.nothing_leaked();
}

fn character_sets_and_show(kind: Kind) {
    let Some(mut stage) = stage(kind) else { return };
    character_sets(&mut stage);
    prepared_show(&mut stage);
}

fn views_of_plain_columns(kind: Kind) {
    let Some(mut stage) = stage(kind) else { return };
    views_without_protected_columns(&mut stage);
    stage.nothing_leaked();
}

fn indexes_over_prefixes(kind: Kind) {
    let Some(mut stage) = stage(kind) else { return };
    prefixes_are_shown_as_defined(&mut stage);
    prefixes_change_no_answer(&mut stage);
    prefixes_that_are_refused(&mut stage);
    stage.nothing_leaked();
}

/// A definition on both, with what is ENCRYPTED FOR left out of the plain one.
fn define(stage: &mut Stage, sql: &str) {
    let (definition, bare) = with_and_without_protection(sql);
    let a = stage.plain.must(&bare);
    let b = stage
        .protected
        .run(&definition)
        .unwrap_or_else(|e| panic!("{sql}\n→ {e}"));
    assert_eq!(a.warnings, b.warnings, "{sql}");
    stage.same_text("SHOW CREATE TABLE user");
}

fn refusal(stage: &mut Stage, sql: &str) -> String {
    let answer = stage.protected.run(sql);
    answer.expect_err(sql).message
}

fn lists_of_columns(stage: &mut Stage) {
    define(
        stage,
        "ALTER TABLE user ADD (a INT, b VARCHAR(10) {eq}, c DATE {})",
    );
    define(
        stage,
        "ALTER TABLE user ADD COLUMN (d INT {range}, KEY by_d (d), UNIQUE (a, b)), DROP COLUMN c",
    );
    stage.both("UPDATE user SET a = id, b = 'b', d = id + 5");
    stage.same("SELECT id, a, b, d FROM user WHERE d >= 7 AND b = 'B' ORDER BY id");
    define(
        stage,
        "ALTER TABLE user DROP COLUMN a, DROP COLUMN b, DROP COLUMN d",
    );
    // a column's place cannot stand inside
    stage.plain.must_fail("ALTER TABLE user ADD (a INT FIRST)");
    stage
        .protected
        .must_fail("ALTER TABLE user ADD (a INT FIRST)");
    refusal(
        stage,
        "ALTER TABLE user ADD (a INT, b INT DEFAULT (age + 1))",
    );
}

fn names_of_indexes(stage: &mut Stage) {
    for sql in [
        "ALTER TABLE user ADD INDEX (name)",
        "ALTER TABLE user ADD INDEX (name), ADD INDEX (name, city), ADD INDEX (age)",
        "ALTER TABLE user DROP INDEX name, ADD INDEX (name, age)",
        "ALTER TABLE user DROP INDEX name_2, DROP INDEX name_3, DROP INDEX name_4, DROP INDEX age",
        "ALTER TABLE user ADD UNIQUE (name), ADD INDEX (city), ADD INDEX (city)",
        "ALTER TABLE user DROP INDEX name_2, DROP INDEX city, DROP INDEX city_2",
    ] {
        define(stage, sql);
    }
    assert_eq!(
        stage.both_fail("ALTER TABLE user ADD INDEX name (age)"),
        1061
    );
}

fn names_that_are_taken(kind: Kind, stage: &mut Stage) {
    for sql in [
        "ALTER TABLE user ADD COLUMN name VARCHAR(40)",
        "ALTER TABLE user ADD COLUMN NAME INT FIRST",
        "ALTER TABLE user ADD (a INT, age INT)",
        "ALTER TABLE user RENAME COLUMN city TO note",
        "ALTER TABLE user CHANGE city name VARCHAR(20)",
        "ALTER TABLE user CHANGE COLUMN city note TEXT",
    ] {
        assert_eq!(stage.both_fail(sql), 1060, "{sql}");
    }
    if kind == Kind::MySql {
        // not in its grammar
        for sql in [
            "ALTER TABLE user ADD COLUMN IF NOT EXISTS name INT",
            "ALTER TABLE user DROP COLUMN IF EXISTS name",
            "ALTER TABLE user ALTER COLUMN IF EXISTS name SET DEFAULT 'Hb4YqMz7'",
        ] {
            stage.plain.must_fail(sql);
            stage.protected.must_fail(sql);
        }
    }
    stage.same_text("SHOW CREATE TABLE user");
}

fn what_is_there_or_not(stage: &mut Stage) {
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
        define(stage, sql);
    }
    let both = "ALTER TABLE user ADD COLUMN IF NOT EXISTS name INT";
    for session in [&mut stage.plain, &mut stage.protected] {
        session.must(both);
    }
    stage.same_text("SHOW WARNINGS");
}

fn keys_over_hashes(stage: &mut Stage) {
    let (definition, bare) = with_and_without_protection(
        "CREATE TABLE hashed (id INT, a TEXT {eq}, b BLOB {eq}, c VARCHAR(10) {eq}, UNIQUE (a), UNIQUE KEY two (c, b))",
    );
    stage.plain.must(&bare);
    stage.protected.must(&definition);
    stage.same_text("SHOW CREATE TABLE hashed");
}

fn character_sets(stage: &mut Stage) {
    // numbers have none
    stage.both("ALTER TABLE number CONVERT TO CHARACTER SET latin1");
    stage.same_text("SHOW CREATE TABLE number");
    stage.same("SELECT n, word FROM number WHERE n > 4");
    let said = refusal(stage, "ALTER TABLE user CONVERT TO CHARACTER SET latin1");
    assert!(
        said.starts_with("OS1014") && said.contains("name, note") && said.contains("MODIFY"),
        "{said}"
    );
    for sql in [
        "ALTER TABLE user MODIFY city VARCHAR(20) CHARACTER SET latin1",
        "ALTER TABLE user DEFAULT CHARACTER SET latin1",
    ] {
        stage.plain.must(sql);
        stage.protected.must(sql);
    }
    stage.same("SELECT name, city FROM user WHERE name = 'ALICE' AND city = 'bern'");
}

fn prepared_show(stage: &mut Stage) {
    for sql in [
        "SHOW COLUMNS FROM user",
        "SHOW FULL COLUMNS FROM user LIKE 'n%'",
        "DESCRIBE user",
        "SHOW CREATE TABLE user",
        "SHOW COLUMNS FROM user WHERE Field IN ('id', 'name')",
        "SHOW TABLES",
    ] {
        if sql.starts_with("SHOW FULL") {
            // privileges and comments differ by design elsewhere; names, types and collations are compared
            let of = |session: &mut Session| {
                let outcome = session.execute(sql, ()).unwrap();
                let rows = outcome.sets[0].rows.clone();
                rows.into_iter()
                    .map(|r| r[..3].to_vec())
                    .collect::<Vec<_>>()
            };
            assert_eq!(of(&mut stage.plain), of(&mut stage.protected), "{sql}");
            continue;
        }
        match (
            stage.plain.execute(sql, ()),
            stage.protected.execute(sql, ()),
        ) {
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
    assert_eq!(index(&mut stage.plain), index(&mut stage.protected));
    // a statement that was prepared before a change shows the change
    use ::mysql::prelude::Queryable;
    let show = stage
        .protected
        .conn()
        .prep("SHOW COLUMNS FROM user")
        .unwrap();
    let rows: Vec<::mysql::Row> = stage.protected.conn().exec(&show, ()).unwrap();
    stage
        .protected
        .must("ALTER TABLE user ADD COLUMN late INT ENCRYPTED FOR (eq)");
    let more: Vec<::mysql::Row> = stage.protected.conn().exec(&show, ()).unwrap();
    assert_eq!(more.len(), rows.len() + 1);
    stage.protected.must("ALTER TABLE user DROP COLUMN late");
}

fn views_without_protected_columns(stage: &mut Stage) {
    for (view, columns) in [
        ("SELECT city, COUNT(*) AS n FROM user GROUP BY city", ""),
        ("SELECT DISTINCT city FROM user WHERE age IS NOT NULL", ""),
        ("SELECT id, city FROM user", " (a, b)"),
        ("SELECT name, id FROM user", " (a, b)"),
        ("SELECT city, COUNT(*) FROM user GROUP BY city", " (a, b)"),
    ] {
        stage.both(&format!("CREATE OR REPLACE VIEW v{columns} AS {view}"));
        stage.same(
            "SELECT * FROM v ORDER BY 1, 2".trim_end_matches(if view.contains("DISTINCT") {
                ", 2"
            } else {
                ""
            }),
        );
        stage.same("SELECT COUNT(*) FROM v");
    }
    for view in [
        "v AS SELECT age, COUNT(*) AS n FROM user GROUP BY age",
        "v AS SELECT DISTINCT name FROM user",
        "v AS SELECT MAX(age) AS m FROM user GROUP BY city",
        "v AS SELECT city FROM user WHERE name = 'Hb4YqMz7' GROUP BY city",
    ] {
        let said = refusal(stage, &format!("CREATE OR REPLACE VIEW {view}"));
        assert!(said.starts_with("OS10"), "{view}\n→ {said}");
    }
}

const PAGE: &str = "CREATE TABLE page (id INT PRIMARY KEY, title VARCHAR(40) NOT NULL {eq}, body TEXT {eq}, raw BLOB {eq, range}, n INT {eq}, city VARCHAR(20), \
     code CHAR(8) CHARACTER SET latin1 {range}, KEY (title(10)), KEY (city(3), body(20), title(40)), INDEX (raw(7)) USING BTREE, \
     UNIQUE whole (code(8), title), KEY beside (city) COMMENT 'of the city')";

/// What clients ask about indexes, without the estimates of how many values there are.
fn same_indexes(stage: &mut Stage, table: &str) {
    stage.same_text(&format!("SHOW CREATE TABLE {table}"));
    stage.same(&format!("DESCRIBE {table}"));
    stage.same(&format!(
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
    let (a, b) = (stage.plain.must(&sql), stage.protected.must(&sql));
    assert_eq!(rows(a), rows(b), "{sql}");
    let prepared = |session: &mut Session| session.execute(&sql, ()).expect(&sql);
    let (a, b) = (prepared(&mut stage.plain), prepared(&mut stage.protected));
    assert_eq!(rows(a), rows(b), "prepared: {sql}");
}

fn prefixes_are_shown_as_defined(stage: &mut Stage) {
    define(stage, PAGE);
    same_indexes(stage, "page");
    for sql in [
        "CREATE INDEX more ON page (body(5), id)",
        "CREATE INDEX last ON page (n, raw(3) DESC)",
        "ALTER TABLE page ADD COLUMN word VARCHAR(9) {eq}, ADD KEY (word(2)), ADD INDEX short (title(3), n)",
        "ALTER TABLE page RENAME COLUMN title TO name",
        "ALTER TABLE page RENAME COLUMN word TO term",
        "ALTER TABLE page DROP COLUMN city",
        // `short` would become one over the same column as `title`: a note where both are over the same tokens
        "ALTER TABLE page DROP INDEX more, DROP INDEX short, DROP COLUMN n",
        "DROP INDEX last ON page",
    ] {
        define(stage, sql);
        same_indexes(stage, "page");
    }
    stage.both("CREATE TABLE other LIKE page");
    same_indexes(stage, "other");
    // what is shown can be taken for a definition
    let shown = |session: &mut Session| {
        let outcome = session.must("SHOW CREATE TABLE page");
        ::mysql::from_value::<String>(outcome.sets[0].rows[0][1].clone())
    };
    let sql = shown(&mut stage.plain);
    assert_eq!(sql, shown(&mut stage.protected));
    stage.both("DROP TABLE page, other");
    define(stage, PAGE);
    same_indexes(stage, "page");
}

fn prefixes_change_no_answer(stage: &mut Stage) {
    for (id, title) in (1..).zip([
        "alphabetical order",
        "alphabetical Order of words",
        "ALPHABETICAL ORDER",
        "alpha",
        "beta",
        "",
    ]) {
        stage.both(&format!(
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
        stage.same(sql);
    }
    stage.both("UPDATE page SET n = 9 WHERE title = 'alphabetical order'");
    stage.both("DELETE FROM page WHERE body = 'of alphabetical order of words'");
    stage.same("SELECT id, n, title FROM page ORDER BY id");
    // the same prefix, other texts: that is no duplicate
    stage.both("INSERT INTO page (id, title, code) VALUES (20, 'alphabetical or not', '1')");
    assert_eq!(
        stage.both_fail(
            "INSERT INTO page (id, title, code) VALUES (21, 'ALPHABETICAL or not', '1')"
        ),
        1062
    );
}

fn prefixes_that_are_refused(stage: &mut Stage) {
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
        let message = refusal(stage, sql);
        assert!(message.starts_with("OS1012"), "{sql}: {message}");
    }
    same_indexes(stage, "page");
}
