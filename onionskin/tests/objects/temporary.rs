//! Temporary tables, and what prepared definitions do to them.

use super::*;

pub fn temporary_tables(kind: Kind) {
    let Some(mut stage) = stage(kind) else { return };
    let (definition, bare) = with_and_without_protection(
        "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, a VARCHAR(30) {eq}, b INT {range}, c DECIMAL(6,2) {}, d INT DEFAULT 4, KEY (a)) \
         DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci",
    );
    stage.protected.must(&definition);
    stage.plain.must(&bare);
    stage.both(&format!("INSERT INTO t (id, a, b, c) VALUES (1, '{SECRET}', 5, 1.5), (2, 'x', 6, NULL), (3, NULL, 7, 2)"));
    stage.same(&format!(
        "SELECT * FROM t WHERE a = '{SECRET}' OR b > 6 ORDER BY id"
    ));
    stage.same("SELECT UPPER(a), b + d FROM t ORDER BY id");
    stage.same("SELECT SUM(c), MAX(b) FROM t");
    stage.both("UPDATE t SET b = b + 1, a = 'new' WHERE id > 1");
    stage.both(&format!("REPLACE INTO t (id, a) VALUES (3, '{SECRET}')"));
    stage.both("DELETE FROM t WHERE b = 7");
    stage.same("SELECT * FROM t ORDER BY b, id");
    stage.same_with("SELECT id FROM t WHERE a = ?", &[SECRET.into()]);
    stage.same_text("SHOW CREATE TABLE t");
    stage.both("ALTER TABLE t DROP COLUMN c");
    stage.same("SELECT * FROM t ORDER BY id");
    stage.both("TRUNCATE t");
    // what the proxy asks about it does not hide what the client asks about its statement
    for sql in [
        "CREATE TEMPORARY TABLE IF NOT EXISTS t LIKE user",
        "SHOW WARNINGS",
        "DROP TEMPORARY TABLE IF EXISTS nothing_of_that_name",
        "SELECT @@warning_count",
        "TRUNCATE t",
        "SELECT ROW_COUNT()",
    ] {
        let (a, b) = (stage.plain.must(sql), stage.protected.must(sql));
        assert_eq!((a.text(), a.warnings), (b.text(), b.warnings), "{sql}");
    }
    // it has no other name
    for sql in [
        "ALTER TABLE t RENAME TO s",
        "ALTER TABLE t RENAME s, ALTER d DROP DEFAULT",
    ] {
        refusal(&mut stage.protected, sql);
    }
    // a statement that was prepared for another table of the name
    stage
        .protected
        .must("CREATE TABLE later (id INT, a VARCHAR(30))");
    let early = stage
        .protected
        .conn()
        .prep("INSERT INTO later (id, a) VALUES (?, ?)")
        .unwrap();
    stage
        .protected
        .conn()
        .exec_drop(&early, (1, "plain"))
        .unwrap();
    stage
        .protected
        .must("CREATE TEMPORARY TABLE later (id INT, a VARCHAR(30) ENCRYPTED FOR (eq))");
    stage
        .protected
        .conn()
        .exec_drop(&early, (2, SECRET))
        .unwrap();
    let text = stage
        .protected
        .text(&format!("SELECT id FROM later WHERE a = '{SECRET}'"));
    assert_eq!(text.unwrap(), "2");
    stage.protected.must("DROP TEMPORARY TABLE later");
    assert_eq!(
        stage.protected.text("SELECT a FROM later").unwrap(),
        "plain"
    );
    // another session does not see it, nor does this one after a reset
    let mut other = stage.proxy.connect_to("app");
    assert_eq!(other.must_fail("SELECT * FROM t"), 1146);
    stage.both("CREATE TEMPORARY TABLE u LIKE user");
    stage.both(&format!("INSERT INTO u (name, age) VALUES ('{SECRET}', 1)"));
    stage.same("SELECT name, age, city FROM u");
    assert_eq!(other.must_fail("SELECT * FROM u"), 1146);
    stage.both("DROP TEMPORARY TABLE u");
    stage.both("DROP TABLE t");
    for name in ["t", "u"] {
        assert_eq!(stage.both_fail(&format!("SELECT * FROM {name}")), 1146);
    }
    // the name is free again, for a table without protection
    stage.both("CREATE TEMPORARY TABLE t (id INT, a VARCHAR(30))");
    stage.both("INSERT INTO t VALUES (1, 'plain')");
    stage.same("SELECT * FROM t");
    stage.protected.conn().reset().unwrap();
    stage.protected.must("USE app");
    assert_eq!(stage.protected.must_fail("SELECT * FROM t"), 1146);
    stage.nothing_leaked();
}

pub fn a_temporary_table_hides_another_in_its_session_only(kind: Kind) {
    let Some(mut stage) = stage(kind) else { return };
    let mut other = stage.proxy.connect_to("app");
    stage.both("CREATE TABLE model LIKE user");
    assert_eq!(
        stage.both_fail("CREATE TEMPORARY TABLE user LIKE user"),
        1066
    );
    stage.both("CREATE TEMPORARY TABLE user LIKE model");
    stage.same("SELECT COUNT(*) FROM user");
    stage.both(&format!(
        "INSERT INTO user (name, age, note) VALUES ('{SECRET}', 1, 'of the session')"
    ));
    stage.same("SELECT name, note FROM user WHERE age = 1");
    assert_eq!(
        other.text("SELECT COUNT(*), MAX(age) FROM user").unwrap(),
        "3\t45"
    );
    other.must(&format!(
        "UPDATE user SET note = '{SECRET} of all' WHERE name = 'bob'"
    ));
    // it may become another one
    stage.both("ALTER TABLE user DROP COLUMN note");
    stage.same("SELECT * FROM user");
    stage.both("DROP TABLE user");
    stage.plain.must(&format!(
        "UPDATE user SET note = '{SECRET} of all' WHERE name = 'bob'"
    ));
    stage.same("SELECT * FROM user ORDER BY id");
    stage.both("INSERT INTO user (name, age) VALUES ('dora', 50)");
    stage.same("SELECT name FROM user WHERE age > 20 ORDER BY age");
    if kind == Kind::MariaDb {
        // replaced by another one of the same name
        stage.both("CREATE TEMPORARY TABLE user LIKE model");
        stage.both("CREATE OR REPLACE TEMPORARY TABLE user LIKE model");
        stage.both(&format!("INSERT INTO user (name) VALUES ('{SECRET}')"));
        stage.same("SELECT name, age FROM user");
        stage.both("DROP TEMPORARY TABLE user");
    }
    stage.same("SELECT COUNT(*) FROM user");
    // one without protection would get what is meant for the other
    for sql in [
        "CREATE TEMPORARY TABLE user (id INT, name VARCHAR(40))",
        "CREATE TEMPORARY TABLE user LIKE open",
        "CREATE TEMPORARY TABLE app.user AS SELECT 1 AS id",
    ] {
        refusal(&mut stage.protected, sql);
    }
    // made at the server's, inside of a program, it is met with errors and never with values
    let mut direct = stage.behind.connect();
    direct.must("USE app");
    direct.must("CREATE PROCEDURE hide() CREATE TEMPORARY TABLE user (id INT, name VARCHAR(40))");
    stage.protected.must("CALL hide()");
    assert!(
        stage
            .protected
            .run(&format!(
                "INSERT INTO user (id, name) VALUES (1, '{SECRET}')"
            ))
            .is_err()
    );
    assert!(
        stage
            .protected
            .run(&format!("SELECT id FROM user WHERE name = '{SECRET}'"))
            .is_err()
    );
    stage.protected.must("DROP TEMPORARY TABLE user");
    stage.same("SELECT COUNT(*) FROM user");
    stage.nothing_leaked();
}

/// A definition that is prepared is the same statement: what the session knows of its temporary
/// tables and of unique keys follows it.
pub fn prepared_definitions_do_what_texts_do(kind: Kind) {
    let Some(mut stage) = stage(kind) else { return };
    let session = &mut stage.protected;
    let prepared = |session: &mut Session, sql: &str| session.execute(sql, ()).map(|_| ());
    prepared(
        session,
        "CREATE TEMPORARY TABLE own (id INT, name VARCHAR(40) ENCRYPTED FOR (eq))",
    )
    .expect("it is made");
    for sql in [
        "ALTER TABLE own RENAME TO moved",
        "ALTER TABLE own RENAME COLUMN name TO title",
    ] {
        let refused = prepared(session, sql).expect_err(sql);
        assert!(refused.to_string().contains("OS1008"), "{sql}: {refused}");
    }
    prepared(
        session,
        "ALTER TABLE own ADD COLUMN note VARCHAR(40) ENCRYPTED FOR (eq)",
    )
    .expect("a column more");
    session.must(&format!(
        "INSERT INTO own (id, note) VALUES (1, '{SECRET}')"
    ));
    let found = session.text(&format!("SELECT id FROM own WHERE note = '{SECRET}'"));
    assert_eq!(found.unwrap(), "1");
    // unique keys
    let upsert =
        "INSERT INTO met (id, name, n) VALUES (2, 'a', 9) ON DUPLICATE KEY UPDATE n = n + 1";
    session
        .must("CREATE TABLE met (id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (eq), n INT)");
    session.must("INSERT INTO met VALUES (1, 'a', 1)");
    session.must(upsert);
    session.must("DELETE FROM met WHERE id = 2");
    prepared(session, "ALTER TABLE met ADD UNIQUE KEY (name)").expect("a key more");
    session.must(upsert);
    assert_eq!(
        session.text("SELECT GROUP_CONCAT(n) FROM met").unwrap(),
        "2"
    );
    stage.nothing_leaked();
}
