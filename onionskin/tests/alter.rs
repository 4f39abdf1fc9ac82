//! ALTER TABLE in its less usual forms, views that show nothing protected, SHOW as a prepared statement: beside a plain twin.

mod support;

use support::*;

on_both_servers!(
    columns_and_indexes,
    what_exists_or_not,
    character_sets_and_show,
    views_of_plain_columns,
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
