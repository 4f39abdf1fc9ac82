//! Temporary tables, and what prepared definitions do to them.

use super::*;

pub fn temporary_tables(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let (definition, bare) = with_and_without_protection(
        "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, a VARCHAR(30) {eq}, b INT {range}, c DECIMAL(6,2) {}, d INT DEFAULT 4, KEY (a)) \
         DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci",
    );
    pair.protected.must(&definition);
    pair.plain.must(&bare);
    pair.both(&format!("INSERT INTO t (id, a, b, c) VALUES (1, '{SECRET}', 5, 1.5), (2, 'x', 6, NULL), (3, NULL, 7, 2)"));
    pair.same_result(&format!(
        "SELECT * FROM t WHERE a = '{SECRET}' OR b > 6 ORDER BY id"
    ));
    pair.same_result("SELECT UPPER(a), b + d FROM t ORDER BY id");
    pair.same_result("SELECT SUM(c), MAX(b) FROM t");
    pair.both("UPDATE t SET b = b + 1, a = 'new' WHERE id > 1");
    pair.both(&format!("REPLACE INTO t (id, a) VALUES (3, '{SECRET}')"));
    pair.both("DELETE FROM t WHERE b = 7");
    pair.same_result("SELECT * FROM t ORDER BY b, id");
    pair.same_result_with("SELECT id FROM t WHERE a = ?", &[SECRET.into()]);
    pair.same_result_of_text("SHOW CREATE TABLE t");
    pair.both("ALTER TABLE t DROP COLUMN c");
    pair.same_result("SELECT * FROM t ORDER BY id");
    pair.both("TRUNCATE t");
    // what the proxy asks about it does not hide what the client asks about its statement
    for sql in [
        "CREATE TEMPORARY TABLE IF NOT EXISTS t LIKE user",
        "SHOW WARNINGS",
        "DROP TEMPORARY TABLE IF EXISTS nothing_of_that_name",
        "SELECT @@warning_count",
        "TRUNCATE t",
        "SELECT ROW_COUNT()",
    ] {
        let (a, b) = (pair.plain.must(sql), pair.protected.must(sql));
        assert_eq!((a.text(), a.warnings), (b.text(), b.warnings), "{sql}");
    }
    // it has no other name
    for sql in [
        "ALTER TABLE t RENAME TO s",
        "ALTER TABLE t RENAME s, ALTER d DROP DEFAULT",
    ] {
        refusal(&mut pair.protected, sql);
    }
    // a statement that was prepared for another table of the name
    pair.protected
        .must("CREATE TABLE later (id INT, a VARCHAR(30))");
    let early = pair
        .protected
        .conn()
        .prep("INSERT INTO later (id, a) VALUES (?, ?)")
        .unwrap();
    pair.protected
        .conn()
        .exec_drop(&early, (1, "plain"))
        .unwrap();
    pair.protected
        .must("CREATE TEMPORARY TABLE later (id INT, a VARCHAR(30) ENCRYPTED FOR (eq))");
    pair.protected
        .conn()
        .exec_drop(&early, (2, SECRET))
        .unwrap();
    let text = pair
        .protected
        .text(&format!("SELECT id FROM later WHERE a = '{SECRET}'"));
    assert_eq!(text.unwrap(), "2");
    pair.protected.must("DROP TEMPORARY TABLE later");
    assert_eq!(pair.protected.text("SELECT a FROM later").unwrap(), "plain");
    // another session does not see it, nor does this one after a reset
    let mut other = pair.proxy.connect_to("app");
    assert_eq!(other.must_fail("SELECT * FROM t"), 1146);
    pair.both("CREATE TEMPORARY TABLE u LIKE user");
    pair.both(&format!("INSERT INTO u (name, age) VALUES ('{SECRET}', 1)"));
    pair.same_result("SELECT name, age, city FROM u");
    assert_eq!(other.must_fail("SELECT * FROM u"), 1146);
    pair.both("DROP TEMPORARY TABLE u");
    pair.both("DROP TABLE t");
    for name in ["t", "u"] {
        assert_eq!(pair.same_error(&format!("SELECT * FROM {name}")), 1146);
    }
    // the name is free again, for a table without protection
    pair.both("CREATE TEMPORARY TABLE t (id INT, a VARCHAR(30))");
    pair.both("INSERT INTO t VALUES (1, 'plain')");
    pair.same_result("SELECT * FROM t");
    pair.protected.conn().reset().unwrap();
    pair.protected.must("USE app");
    assert_eq!(pair.protected.must_fail("SELECT * FROM t"), 1146);
    pair.nothing_leaked();
}

pub fn a_temporary_table_hides_another_in_its_session_only(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let mut other = pair.proxy.connect_to("app");
    pair.both("CREATE TABLE model LIKE user");
    assert_eq!(
        pair.same_error("CREATE TEMPORARY TABLE user LIKE user"),
        1066
    );
    pair.both("CREATE TEMPORARY TABLE user LIKE model");
    pair.same_result("SELECT COUNT(*) FROM user");
    pair.both(&format!(
        "INSERT INTO user (name, age, note) VALUES ('{SECRET}', 1, 'of the session')"
    ));
    pair.same_result("SELECT name, note FROM user WHERE age = 1");
    assert_eq!(
        other.text("SELECT COUNT(*), MAX(age) FROM user").unwrap(),
        "3\t45"
    );
    other.must(&format!(
        "UPDATE user SET note = '{SECRET} of all' WHERE name = 'bob'"
    ));
    // it may become another one
    pair.both("ALTER TABLE user DROP COLUMN note");
    pair.same_result("SELECT * FROM user");
    pair.both("DROP TABLE user");
    pair.plain.must(&format!(
        "UPDATE user SET note = '{SECRET} of all' WHERE name = 'bob'"
    ));
    pair.same_result("SELECT * FROM user ORDER BY id");
    pair.both("INSERT INTO user (name, age) VALUES ('dora', 50)");
    pair.same_result("SELECT name FROM user WHERE age > 20 ORDER BY age");
    if kind == Kind::MariaDb {
        // replaced by another one of the same name
        pair.both("CREATE TEMPORARY TABLE user LIKE model");
        pair.both("CREATE OR REPLACE TEMPORARY TABLE user LIKE model");
        pair.both(&format!("INSERT INTO user (name) VALUES ('{SECRET}')"));
        pair.same_result("SELECT name, age FROM user");
        pair.both("DROP TEMPORARY TABLE user");
    }
    pair.same_result("SELECT COUNT(*) FROM user");
    // one without protection would get what is meant for the other
    for sql in [
        "CREATE TEMPORARY TABLE user (id INT, name VARCHAR(40))",
        "CREATE TEMPORARY TABLE user LIKE open",
        "CREATE TEMPORARY TABLE app.user AS SELECT 1 AS id",
    ] {
        refusal(&mut pair.protected, sql);
    }
    // made at the server's, inside of a program, it is met with errors and never with values
    let mut direct = pair.behind.connect();
    direct.must("USE app");
    direct.must("CREATE PROCEDURE hide() CREATE TEMPORARY TABLE user (id INT, name VARCHAR(40))");
    pair.protected.must("CALL hide()");
    assert!(
        pair.protected
            .run(&format!(
                "INSERT INTO user (id, name) VALUES (1, '{SECRET}')"
            ))
            .is_err()
    );
    assert!(
        pair.protected
            .run(&format!("SELECT id FROM user WHERE name = '{SECRET}'"))
            .is_err()
    );
    pair.protected.must("DROP TEMPORARY TABLE user");
    pair.same_result("SELECT COUNT(*) FROM user");
    pair.nothing_leaked();
}

/// A definition that is prepared is the same statement: what the session knows of its temporary
/// tables and of unique keys follows it.
pub fn prepared_definitions_do_what_texts_do(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let session = &mut pair.protected;
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
    pair.nothing_leaked();
}
