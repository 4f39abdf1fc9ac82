//! Plaintext temporary tables that the proxy has not made, by names that `[protect]` is about; and
//! EXPLAIN of another database, whose tables are looked for elsewhere.

use ::mysql::prelude::Queryable;
use onionskin_testkit::*;

use super::{Place, SECRET};

/// `{t}` is a table with a column `a`, `{v}` a value.
const USES: [&str; 9] = [
    "INSERT INTO {t} (a) VALUES ({v})",
    "INSERT INTO {t} SET a = {v}",
    "REPLACE INTO app.{t} (a) SELECT {v}",
    "INSERT INTO {t} (a) VALUES ('x') ON DUPLICATE KEY UPDATE a = {v}",
    "UPDATE {t} SET a = {v}",
    "SELECT * FROM {t} WHERE a = {v}",
    "SELECT COUNT(*) FROM {t} AS x WHERE x.a LIKE {v}",
    "DELETE FROM {t} WHERE a = {v}",
    "SET @x = (SELECT COUNT(*) FROM {t} WHERE a = {v})",
];

/// Each use is refused as one of a table is that should be protected: as a text, in a text of
/// several, prepared by the protocol and by name. So is a query without values.
fn is_refused(session: &mut Session, table: &str) {
    for sql in USES {
        let sql = sql.replace("{t}", table);
        let literal = sql.replace("{v}", &format!("'{SECRET}'"));
        let by_name = format!("PREPARE s FROM '{}'", literal.replace('\'', "''"));
        for sql in [literal.clone(), format!("SELECT 1; {literal}"), by_name] {
            let said = session.run(&sql).expect_err(&sql);
            assert!(said.message.starts_with("OS1108"), "{sql}: {said}");
        }
        let with_parameter = sql.replace("{v}", "?");
        let said = session.conn().exec_drop(&with_parameter, (SECRET,));
        let said = said.expect_err(&with_parameter).to_string();
        assert!(said.contains("OS1108"), "{with_parameter}: {said}");
    }
    for sql in [format!("SELECT * FROM {table}"), format!("TABLE {table}")] {
        let _ = session.run(&sql).map(|found| panic!("{sql}: {found:?}"));
    }
    assert!(session.answers_itself(), "{table}");
}

pub fn temporary_tables_of_programs(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    for sql in [
        "USE app",
        "CREATE TABLE ids (x_id INT)",
        "INSERT INTO ids VALUES (1)",
        "CREATE TABLE seen (x_id INT)",
        "CREATE TABLE fired (x_id INT)",
        "CREATE PROCEDURE make() CREATE TEMPORARY TABLE made (id INT, a VARCHAR(60))",
        "CREATE PROCEDURE hide() CREATE TEMPORARY TABLE ids (a VARCHAR(60))",
        "CREATE PROCEDURE hide_again() BEGIN DROP TEMPORARY TABLE IF EXISTS seen; \
         CREATE TEMPORARY TABLE seen (a VARCHAR(60)); END",
        "CREATE PROCEDURE fails() BEGIN CREATE TEMPORARY TABLE failed (a VARCHAR(60)); \
         SIGNAL SQLSTATE '45000'; END",
        "CREATE TRIGGER other.tr BEFORE INSERT ON other.plain FOR EACH ROW \
         CREATE TEMPORARY TABLE IF NOT EXISTS app.fired (a VARCHAR(60))",
    ] {
        place.admin.must(sql);
    }
    let mut session = place.proxy.connect_to("app");
    let mut other = place.proxy.connect_to("app");
    let count = |session: &mut Session| session.text("SELECT COUNT(*) FROM ids WHERE x_id = 1");
    assert_eq!(count(&mut session).as_deref(), Ok("1"));
    let prepared = session
        .conn()
        .prep("INSERT INTO ids VALUES (?)")
        .expect("a statement");
    session.conn().exec_drop(&prepared, (7,)).expect("a row");
    // a table of its own
    session.must("CALL make()");
    is_refused(&mut session, "made");
    // one that hides a table which is known
    session.must("CALL hide()");
    assert!(session.conn().exec_drop(&prepared, (SECRET,)).is_err());
    is_refused(&mut session, "ids");
    let block = format!("BEGIN NOT ATOMIC INSERT INTO ids VALUES ('{SECRET}'); END");
    assert!(session.run(&block).is_err());
    session.must("SELECT x_id FROM seen WHERE x_id = 2");
    session.must("CALL hide_again()");
    is_refused(&mut session, "seen");
    session.must("CALL hide_again()");
    is_refused(&mut session, "seen");
    session.must_fail("CALL fails()");
    is_refused(&mut session, "failed");
    // a trigger tells nobody: what it makes is found where a column or a table is missing
    session.must("SELECT x_id FROM fired WHERE x_id = 2");
    session.must("INSERT INTO t VALUES (1, 'x')");
    session.must("INSERT INTO other.plain VALUES (5, 'x', NULL)");
    for sql in [
        "INSERT INTO fired (a) VALUES ({v})",
        "UPDATE fired SET a = {v}",
        "SELECT * FROM fired WHERE a = {v}",
    ] {
        let sql = sql.replace("{v}", &format!("'{SECRET}'"));
        assert!(session.run(&sql).is_err(), "{sql}");
    }
    // they are this session's, and what they hide is there behind them
    assert_eq!(count(&mut other).as_deref(), Ok("1"));
    session.must("DROP TEMPORARY TABLE ids");
    assert_eq!(count(&mut session).as_deref(), Ok("1"));
    session.must("DROP TEMPORARY TABLE made");
    assert_eq!(session.must_fail("SELECT * FROM made WHERE a = 'x'"), 1146);
    // and protected ones stay what they are
    session.must("CALL hide_again()");
    let found = session.text("SELECT id FROM t WHERE a = 'x'");
    assert_eq!(found.as_deref(), Ok("1"));
    drop((session, other));
    place.nothing_leaked();
}

pub fn temporary_tables_of_logins(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    // whoever may set the variable does not run its statement
    for sql in [
        "CREATE USER narrow@'%' IDENTIFIED BY 'secret'",
        "GRANT ALL ON app.* TO narrow@'%'",
        "RENAME TABLE app.t TO other.taken",
        "CREATE TABLE app.ids (x_id INT)",
        "SET GLOBAL init_connect = 'CREATE TEMPORARY TABLE app.t (id INT, a VARCHAR(60)); \
         CREATE TEMPORARY TABLE app.ids (a VARCHAR(60)); CREATE TEMPORARY TABLE app.there (id INT, a VARCHAR(60))'",
    ] {
        place.admin.must(sql);
    }
    let open = || Session::open(place.proxy.port(), "narrow", "secret", Some("app"));
    let mut session = open();
    is_refused(&mut session, "t");
    is_refused(&mut session, "ids");
    is_refused(&mut session, "there");
    let mut session = open();
    let sql = format!("INSERT INTO ids VALUES ('{SECRET}')");
    let said = session.run(&sql).expect_err("a plaintext table");
    assert!(said.message.starts_with("OS1108"), "{said}");
    place.admin.must("SET GLOBAL init_connect = ''");
    let mut session = open();
    session.must("INSERT INTO there VALUES (1, 'x')");
    drop(session);
    place.nothing_leaked();
}

/// What the client makes without a protected column is judged as a table in the schema is.
pub fn temporary_tables_without_protected_columns(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    place
        .admin
        .must("CREATE TABLE app.base (x_id INT, y_id INT)");
    let mut session = place.proxy.connect_to("app");
    // its column is known as a protected one's name from now on
    session.must("SELECT id FROM t WHERE a = 'x'");
    session.must("CREATE TEMPORARY TABLE tt (x_id INT, y_id INT)");
    session.must("INSERT INTO tt VALUES (1, 2), (3, 4)");
    let found = session.text("SELECT x_id FROM tt WHERE y_id = 2");
    assert_eq!(found.as_deref(), Ok("1"));
    for sql in USES {
        let literal = sql.replace("{v}", &format!("'{SECRET}'"));
        let [base, tt] = ["base", "tt"].map(|table| literal.replace("{t}", table));
        let [base, tt] = [base, tt].map(|sql| session.run(&sql).expect_err(&sql));
        assert_eq!(
            (base.code, &base.state),
            (tt.code, &tt.state),
            "{sql}: {base}, {tt}"
        );
        let parameter = sql.replace("{v}", "?").replace("{t}", "tt");
        assert!(
            session.conn().exec_drop(&parameter, (SECRET,)).is_err(),
            "{sql}"
        );
    }
    // a column that comes later is protected, or refused
    let _ = session.run("ALTER TABLE tt ADD COLUMN a VARCHAR(60)");
    let _ = session.run(&format!("INSERT INTO tt (a) VALUES ('{SECRET}')"));
    // under another name it is what it was
    session.must("CREATE TEMPORARY TABLE uu (x_id INT)");
    session.must("ALTER TABLE uu RENAME TO vv");
    session.must("INSERT INTO vv VALUES (5)");
    let sql = format!("INSERT INTO vv (x_id, a) VALUES (1, '{SECRET}')");
    assert_eq!(session.must_fail(&sql), 1054);
    let _ = session.run("CREATE TEMPORARY TABLE copied LIKE base");
    let sql = format!("UPDATE copied SET a = '{SECRET}'");
    session.run(&sql).expect_err(&sql);
    session.must("DROP TEMPORARY TABLE vv");
    drop(session);
    place.nothing_leaked();
}

/// MySQL's EXPLAIN FOR SCHEMA reads the tables of the database that it names.
pub fn explained_in_another_database(kind: Kind) {
    if kind != Kind::MySql {
        return;
    }
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    place
        .admin
        .must("CREATE TABLE other.t (id INT PRIMARY KEY, b VARCHAR(20), a INT)");
    place.admin.must("CREATE DATABASE bare");
    for database in [Some("other"), Some("bare"), Some("app"), None] {
        let mut session = match database {
            Some(database) => place.proxy.connect_to(database),
            None => Session::open(place.proxy.port(), "root", "", None),
        };
        let v = format!("'{SECRET}'");
        for sql in [
            "EXPLAIN FORMAT=TREE FOR SCHEMA app SELECT id FROM t WHERE a = {v}",
            "EXPLAIN FOR DATABASE `app` SELECT id FROM t WHERE a = {v}",
            "EXPLAIN ANALYZE FOR SCHEMA app SELECT id FROM t WHERE a = {v}",
            "EXPLAIN FORMAT=JSON INTO @v FOR SCHEMA app SELECT id FROM t WHERE a = {v}",
            "DESC FOR SCHEMA app DELETE FROM t WHERE a = {v}",
        ] {
            session.must(&sql.replace("{v}", &v));
            let _ = session.conn().exec_drop(sql.replace("{v}", "?"), (SECRET,));
        }
        for sql in [
            "EXPLAIN FOR SCHEMA app UPDATE t SET a = {v} WHERE id = 1",
            "EXPLAIN FOR SCHEMA app INSERT INTO t (id, a) VALUES (1, {v})",
            "EXPLAIN FOR SCHEMA app REPLACE INTO t (id, a) SELECT 1, {v}",
            "PREPARE s FROM 'EXPLAIN FOR SCHEMA app SELECT id FROM t WHERE a = ''{w}'' LIMIT 1'",
            "EXPLAIN /*!50000 FOR SCHEMA app */ SELECT id FROM t WHERE a = {v}",
            "/*!50000 EXPLAIN FOR */ SCHEMA app SELECT id FROM t WHERE a = {v}",
            "EXPLAIN FOR SCHEMA app SELECT id FROM lost WHERE a = {v}",
            "EXPLAIN FOR SCHEMA app SELECT id FROM t WHERE lost = {v}",
            "EXPLAIN FOR SCHEMA app INSERT INTO lost VALUES ({v})",
            "CREATE PROCEDURE other.p() EXPLAIN FOR SCHEMA app SELECT id FROM t WHERE a = {v}",
        ] {
            let _ = session.run(&sql.replace("{v}", &v).replace("{w}", SECRET));
            assert!(session.answers_itself(), "{sql}");
        }
        session.must("EXPLAIN FORMAT=TREE FOR SCHEMA other SELECT id FROM t WHERE b = 'x'");
        let lost = "EXPLAIN FOR SCHEMA app SELECT id FROM lost WHERE a = 'x'";
        assert_eq!(session.must_fail(lost), 1146, "{database:?}");
    }
    place.nothing_leaked();
}
