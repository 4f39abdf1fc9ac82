//! Tables and columns that are not there, of names that `[protect]` is about: their definition was
//! refused, say. Whatever names them, no value reaches the server; and tables that an account does
//! not see.

#[path = "missing_tables/temporary.rs"]
mod temporary;

use onionskin_testkit::*;

use ::mysql::prelude::Queryable;

use temporary::*;

on_both_servers!(
    no_value_reaches_the_server,
    read_only_transactions,
    what_is_there_goes_through,
    programs_of_missing_tables,
    programs_of_other_databases,
    temporary_tables_of_narrow_accounts,
    accounts_that_see_no_columns,
    tables_that_were_protected,
    tables_that_were_to_be_protected,
    tables_without_a_database,
    what_servers_do_not_understand,
    temporary_tables_that_are_gone,
    tables_that_are_made_meanwhile,
    columns_that_are_missing,
    temporary_tables_of_programs,
    temporary_tables_of_logins,
    temporary_tables_of_triggers,
    temporary_tables_of_views,
    programs_that_have_the_server_tell_less,
    questions_that_end_in_errors,
    temporary_tables_without_protected_columns,
    explained_in_another_database,
);

/// In every value that must not reach the server.
const SECRET: &str = "quuxalot7Zf";
const POLICY: &str =
    "[protect.\"app.*\"]\n\"*_id\" = \"plain\"\n\"*\" = [\"eq\"]\nenforce = true\n";

struct Place {
    server: Server,
    proxy: Proxy,
    admin: Session,
}

impl Place {
    /// `app.lost` is missing, `app.there` and `app.t` are protected, `other.plain` is not.
    fn start(kind: Kind) -> Option<Place> {
        if direct_mode() {
            return None;
        }
        let options = ServerOptions {
            general_log: true,
            ..ServerOptions::default()
        };
        let server = Server::start(kind, options)?;
        let proxy = Proxy::start(&server, POLICY);
        let mut admin = server.connect();
        admin.must("CREATE DATABASE app DEFAULT CHARSET utf8mb4");
        admin.must("CREATE DATABASE other DEFAULT CHARSET utf8mb4");
        admin.must("CREATE TABLE other.plain (id INT, a VARCHAR(40), d DATE)");
        admin.must("INSERT INTO other.plain VALUES (1, 'x', NULL)");
        let mut session = proxy.connect_to("app");
        session.must("CREATE TABLE there (id INT PRIMARY KEY, a VARCHAR(20))");
        session.must("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))");
        drop(session);
        Some(Place {
            server,
            proxy,
            admin,
        })
    }

    fn nothing_leaked(mut self) {
        drop(self.admin);
        self.proxy.assert_healthy();
        self.server.shutdown();
        self.server.assert_no_trace_of(&[SECRET]);
    }
}

/// `{v}` is a value. What servers of one family read alone is in [`of_one_family`].
const STATEMENTS: [&str; 78] = [
    "INSERT INTO lost VALUES ({v})",
    "SELECT * FROM lost WHERE a = {v}",
    "UPDATE lost SET a = {v}",
    "UPDATE IGNORE lost SET a = {v}",
    "UPDATE LOW_PRIORITY IGNORE app.lost p SET p.a = {v}",
    "DELETE LOW_PRIORITY QUICK IGNORE FROM lost WHERE a = {v}",
    "REPLACE DELAYED INTO lost SELECT {v} FROM other.plain",
    // aliases of the same name
    "SELECT * FROM lost AS lost WHERE a = {v}",
    "SELECT * FROM lost lost WHERE a = {v}",
    "UPDATE lost lost SET lost.a = {v}",
    "SELECT a AS lost FROM app.lost WHERE a = {v}",
    "INSERT INTO lost (a) SELECT {v} AS lost",
    "INSERT INTO lost (a) SELECT {v} AS lost FROM other.plain lost",
    "WITH lost AS (SELECT 1) SELECT * FROM app.lost WHERE a = {v}",
    "WITH lost AS (SELECT * FROM lost WHERE a = {v}) SELECT * FROM lost",
    "SELECT * FROM lost WHERE a = {v} AND 1 IN (WITH lost AS (SELECT 1) SELECT * FROM lost)",
    // beside words that name protected tables
    "UPDATE lost t SET t.a = {v}",
    "INSERT INTO lost (a) SELECT {v} FROM other.plain t",
    "SELECT 'x' FROM other.plain t, lost p WHERE p.a = {v}",
    "SELECT there FROM lost WHERE a = {v}",
    // beside protected tables
    "UPDATE t, lost p SET p.a = {v}",
    "UPDATE t JOIN lost p ON p.id = t.id SET p.a = {v}",
    "DELETE t, p FROM t JOIN lost p ON p.id = t.id WHERE p.a = {v}",
    "SELECT t.id FROM t JOIN lost p ON p.id = t.id WHERE t.a = 'x' AND p.a = {v}",
    "SELECT t.id FROM t WHERE t.a IN (SELECT a FROM lost WHERE a = {v})",
    "INSERT INTO t (id, a) SELECT 1, a FROM lost WHERE a = {v}",
    // triggers, whose table is looked for first
    "CREATE TRIGGER tr BEFORE INSERT ON lost FOR EACH ROW SET NEW.a = {v}",
    "CREATE TRIGGER app.tr AFTER UPDATE ON app.lost FOR EACH ROW BEGIN SET @x = {v}; END",
    "CREATE DEFINER = CURRENT_USER TRIGGER tr BEFORE DELETE ON lost FOR EACH ROW SET @x = IF(OLD.a = {v}, 1, 2)",
    "/*!50003 CREATE TRIGGER tr BEFORE INSERT ON lost FOR EACH ROW SET NEW.a = {v} */",
    "CREATE TRIGGER tr BEFORE INSERT ON lost FOR EACH ROW INSERT INTO lost2 (a) VALUES ({v})",
    // other verbs
    "CREATE TABLE other.made SELECT * FROM lost WHERE a = {v}",
    "CREATE TABLE other.made (id INT) AS SELECT id FROM lost WHERE a = {v}",
    "CREATE TABLE other.made AS (SELECT id FROM lost WHERE a = {v})",
    "CREATE TEMPORARY TABLE other.made SELECT 1 AS x FROM lost WHERE a = {v}",
    "CREATE VIEW other.v AS SELECT id FROM lost WHERE a = {v}",
    "CREATE VIEW other.v AS SELECT id FROM lost WHERE a = {v} WITH CHECK OPTION",
    "CREATE OR REPLACE ALGORITHM = MERGE VIEW other.v (x) AS SELECT id FROM lost WHERE a = {v}",
    "CREATE DEFINER = CURRENT_USER SQL SECURITY INVOKER VIEW other.v AS (SELECT id FROM lost WHERE a = {v})",
    "CREATE VIEW v2 AS SELECT id FROM lost WHERE a = {v}",
    "LOAD DATA INFILE '/nowhere' INTO TABLE lost (id) SET a = {v}",
    "LOAD DATA LOCAL INFILE '/nowhere' IGNORE INTO TABLE app.lost FIELDS TERMINATED BY ',' (id) SET a = {v}",
    "LOAD XML INFILE '/nowhere' INTO TABLE lost SET a = {v}",
    "ALTER TABLE lost ALTER a SET DEFAULT {v}",
    "ALTER TABLE lost ADD b VARCHAR(40) DEFAULT {v}",
    "ALTER TABLE lost ADD CHECK (a <> {v})",
    "ALTER TABLE lost ADD PARTITION (PARTITION p VALUES IN ({v}))",
    "HANDLER lost READ FIRST WHERE a = {v}",
    "CALL other.nothing((SELECT 1 FROM lost WHERE a = {v}))",
    "DO (SELECT 1 FROM lost WHERE a = {v}), SLEEP(0)",
    "SET @found = (SELECT 1 FROM lost WHERE a = {v}), @other = 1",
    "EXPLAIN UPDATE lost SET a = {v}",
    "EXPLAIN FORMAT=JSON SELECT * FROM lost WHERE a = {v}",
    "(SELECT 1) UNION (SELECT a FROM lost WHERE a = {v})",
    // executable comments, as in dumps
    "/*!50001 CREATE VIEW v51 AS select id from lost where a = {v} */",
    "/*!50001 CREATE ALGORITHM=UNDEFINED */ /*!50013 DEFINER=CURRENT_USER SQL SECURITY DEFINER */ /*!50001 VIEW v51 AS select id from lost where a = {v} */",
    "INSERT INTO /*!50000 lost */ VALUES ({v})",
    "INSERT /*!50000 INTO lost */ VALUES ({v})",
    "/*!50000 */ INSERT INTO lost VALUES ({v})",
    "/*!50000 INSERT */ INTO lost VALUES ({v})",
    "INSERT INTO lost (a) VALUES (/*!50000 {v} */)",
    "SELECT /*!50000 * FROM lost WHERE */ a = {v}",
    // parentheses and commas
    "SELECT * FROM (lost) WHERE a = {v}",
    "SELECT * FROM ((lost)) WHERE a = {v}",
    "SELECT * FROM(lost)WHERE a = {v}",
    "SELECT * FROM other.plain LEFT JOIN (lost) ON 1 WHERE lost.a = {v}",
    "SELECT * FROM other.plain x JOIN other.plain y ON 1, lost WHERE lost.a = {v}",
    "SELECT * FROM other.plain WHERE a IN (SELECT a FROM (lost) WHERE a = {v})",
    // values that a server looks at before the tables
    "SELECT JSON_EXTRACT(a, '$.b') FROM lost WHERE a = {v}",
    "SELECT * FROM lost WHERE JSON_CONTAINS_PATH(a, 'one', '$.b') AND a = {v}",
    "SELECT CONVERT(a USING 'latin1') COLLATE 'latin1_bin' FROM lost WHERE a = {v}",
    // a table that is made from a missing one of the same name
    "CREATE TABLE lost (SELECT * FROM lost WHERE a = {v})",
    "CREATE TABLE IF NOT EXISTS app.lost SELECT id, a COLLATE 'latin1_bin' FROM app.lost FOR SYSTEM_TIME ALL WHERE a = {v}",
    // names like keywords, and odd spellings
    "INSERT INTO `values` VALUES ({v})",
    "SELECT * FROM `where` WHERE a = {v}",
    "SELECT * FROM app.from WHERE a = {v}",
    "UPDATE `set` SET a = {v}",
    "DELETE FROM `quick` WHERE a = {v}",
];

fn of_one_family(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::MySql => &[
            "SELECT 1 WHERE {v} IN (TABLE lost)",
            "SELECT {v} FROM other.plain WHERE EXISTS (TABLE lost)",
            "SELECT a->>'$.b' FROM lost WHERE a->'$.c' = {v}",
            "VALUES ROW((SELECT 1 FROM lost WHERE a = {v}))",
            "TABLE other.plain UNION SELECT 1, a, NULL FROM lost WHERE a = {v}",
            "CREATE INDEX i ON lost ((a = {v}))",
            "SELECT * FROM app.1e WHERE a = {v}",
            "INSERT INTO lost VALUES ({v}) AS new ON DUPLICATE KEY UPDATE a = new.a",
            "SELECT * FROM other.plain, LATERAL (SELECT * FROM lost WHERE a = {v}) x",
        ],
        Kind::MariaDb => &[
            "SET STATEMENT max_statement_time = 1 FOR INSERT INTO lost VALUES ({v})",
            "SET STATEMENT max_statement_time = 1 FOR UPDATE lost SET a = {v}",
            "EXECUTE IMMEDIATE 'UPDATE lost SET a = ?' USING {v}",
            "EXECUTE IMMEDIATE CONCAT('UPDATE lost SET a = ?', '') USING {v}",
            "INSERT INTO lost VALUES ({v}) RETURNING lost.a AS lost",
            "SELECT * FROM .lost WHERE a = {v}",
            "SELECT * FROM lateral WHERE a = {v}",
            "ANALYZE SELECT * FROM lost WHERE a = {v}",
            "BEGIN NOT ATOMIC INSERT INTO lost VALUES ({v}); END",
            "IF 1 THEN INSERT INTO lost VALUES ({v}); END IF",
            "FOR i IN 1 .. 2 DO UPDATE lost SET a = {v}; END FOR",
            "INSERT INTO lost VALUES ('unclosed {v}",
            "INSERT INTO lost VALUES ({v}) /* unclosed",
        ],
    }
}

fn no_value_reaches_the_server(kind: Kind) {
    let Some(place) = Place::start(kind) else {
        return;
    };
    let all = STATEMENTS.iter().chain(of_one_family(kind));
    let mut through = Vec::new();
    for (number, sql) in all.enumerate() {
        // each has its own, so that the log tells which it was
        let value = format!("'{SECRET}{number}'");
        let sql = sql.replace("{v}", &value);
        let mut session = place.proxy.connect_to("app");
        let mut fails = |text: &str| {
            if session.run(text).is_ok() {
                through.push(text.to_owned());
            }
        };
        // the second time it may be known
        fails(&sql);
        fails(&sql);
        fails(&format!("DO 1; {sql}"));
        let quoted = sql.replace('\\', "\\\\").replace('\'', "''");
        fails(&format!("PREPARE p FROM '{quoted}'"));
        if kind == Kind::MariaDb {
            fails(&format!("EXECUTE IMMEDIATE '{quoted}'"));
        }
        let prepared = sql.replace(&value, "?");
        let _ = session.conn().exec_drop(&prepared, (value.as_str(),));
        assert!(session.answers_itself(), "{sql}");
    }
    assert!(through.is_empty(), "{through:#?}");
    place.nothing_leaked();
}

fn read_only_transactions(kind: Kind) {
    let Some(place) = Place::start(kind) else {
        return;
    };
    let mut session = place.proxy.connect_to("app");
    session.must("START TRANSACTION READ ONLY");
    for sql in [
        "INSERT INTO lost VALUES ({v})",
        "UPDATE lost SET a = {v}",
        "DELETE FROM lost WHERE a = {v}",
        "UPDATE t, lost SET lost.a = {v}",
        "REPLACE INTO lost SELECT {v}",
    ] {
        let sql = sql.replace("{v}", &format!("'{SECRET}'"));
        assert!(session.run(&sql).is_err(), "{sql}");
    }
    session.must("COMMIT");
    drop(session);
    place.nothing_leaked();
}

/// Nothing is taken for a table that is none.
fn what_is_there_goes_through(kind: Kind) {
    let Some(place) = Place::start(kind) else {
        return;
    };
    let mut session = place.proxy.connect_to("app");
    for (sql, found) in [
        (
            "SELECT EXTRACT(YEAR FROM d) FROM other.plain WHERE a = 'q'",
            "",
        ),
        ("WITH w (x) AS (SELECT 'q') SELECT x FROM w", "q"),
        (
            "WITH w AS (SELECT 'q' AS x), v AS (SELECT * FROM w) SELECT x FROM v",
            "q",
        ),
        (
            "WITH RECURSIVE w AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM w WHERE n < 3) SELECT MAX(n) FROM w",
            "3",
        ),
        ("SELECT 'q' FROM DUAL", "q"),
        ("SELECT y.a FROM other.plain y WHERE y.a = 'x'", "x"),
        (
            "SELECT z.x FROM (SELECT a AS x FROM other.plain WHERE a = 'x') z",
            "x",
        ),
        (
            "SELECT a FROM other.plain WHERE a = 'x' /*!50000 AND id = 1 */",
            "x",
        ),
        ("/*!50000 SELECT a FROM other.plain WHERE a = 'x' */", "x"),
        ("SELECT SUBSTRING('abc' FROM 2)", "bc"),
    ] {
        assert_eq!(session.text(sql).as_deref(), Ok(found), "{sql}");
    }
    for sql in [
        "CREATE VIEW other.some_view AS SELECT id FROM other.plain WHERE a = 'x'",
        "CREATE TABLE other.made AS SELECT id, 'y' AS lost FROM other.plain WHERE a = 'x'",
        "CREATE TABLE other.made2 (id INT DEFAULT 7, lost VARCHAR(9) DEFAULT 'z')",
        "ALTER TABLE other.made2 ADD gone VARCHAR(9) DEFAULT 'q'",
        "INSERT INTO other.made2 (id, lost) VALUES (1, 'x'), (2, 'y')",
        "DELETE y FROM other.plain y WHERE y.a = 'q'",
        "DELETE FROM y USING other.plain y WHERE y.a = 'q'",
        "UPDATE other.plain y SET y.a = 'x' WHERE y.a = 'q'",
        "UPDATE IGNORE other.plain SET a = 'x' WHERE a = 'q'",
        "UPDATE LOW_PRIORITY other.plain y SET y.a = 'x' WHERE y.a = 'q'",
        "DELETE QUICK IGNORE FROM other.plain WHERE a = 'q'",
        "INSERT IGNORE INTO other.plain SELECT id, a, d FROM other.plain WHERE a = 'q'",
        "CREATE PROCEDURE other.p() BEGIN DECLARE v INT; DECLARE c CURSOR FOR SELECT id FROM other.plain; OPEN c; \
         FETCH c INTO v; CLOSE c; SELECT id INTO v FROM other.plain WHERE a = 'x' LIMIT 1 FOR UPDATE; \
         \
         SELECT TRIM('x' FROM 'xax'); WITH w AS (SELECT 1) SELECT * FROM w; END",
        "CREATE TRIGGER other.tr BEFORE UPDATE ON other.plain FOR EACH ROW SET NEW.a = CONCAT(NEW.a, 'x')",
        "DROP TRIGGER other.tr",
        "DROP PROCEDURE other.p",
    ] {
        session.must(sql);
    }
    // one text makes what the next one fills
    session.must("CREATE TABLE fresh_id (x_id INT); INSERT INTO fresh_id VALUES (17)");
    assert_eq!(
        session
            .text("SELECT x_id FROM fresh_id WHERE x_id > 16")
            .as_deref(),
        Ok("17")
    );
    session.must("CREATE TABLE fresh (id INT PRIMARY KEY, a VARCHAR(20)); INSERT INTO fresh VALUES (17, 'kept')");
    assert_eq!(
        session
            .text("SELECT a FROM fresh WHERE a = 'kept'")
            .as_deref(),
        Ok("kept")
    );
    drop(session);
    place.nothing_leaked();
}

fn programs_of_missing_tables(kind: Kind) {
    let Some(place) = Place::start(kind) else {
        return;
    };
    let v = format!("'{SECRET}'");
    for database in ["app", "other"] {
        let mut session = place.proxy.connect_to(database);
        for sql in [
            "CREATE PROCEDURE other.p() INSERT INTO app.lost (a) VALUES ({v})",
            "CREATE PROCEDURE app.p() SELECT * FROM lost WHERE a = {v}",
            "CREATE PROCEDURE app.p(x VARCHAR(9)) SELECT * FROM lost WHERE a = x",
            "CREATE PROCEDURE app.p() SELECT * FROM other.plain, (lost) WHERE lost.a = {v}",
            "CREATE PROCEDURE app.p() SELECT * FROM other.plain x JOIN other.plain y ON x.id = y.id, lost WHERE lost.a = {v}",
            "CREATE PROCEDURE app.p() SELECT IFNULL((SELECT 1 FROM lost WHERE a = {v}), 0)",
            "CREATE PROCEDURE app.p() BEGIN UPDATE lost SET a = {v}; END",
            "CREATE PROCEDURE app.p() BEGIN REPLACE lost VALUES ({v}); END",
            "CREATE PROCEDURE app.p() BEGIN INSERT IGNORE lost VALUES ({v}); END",
            "CREATE PROCEDURE app.p() BEGIN DELETE FROM lost WHERE a = {v}; END",
            "CREATE FUNCTION app.f() RETURNS INT READS SQL DATA RETURN (SELECT 1 FROM lost WHERE a = {v})",
            // words that no common table has
            "CREATE PROCEDURE app.p() BEGIN SELECT COUNT(*) FROM other.plain GROUP BY a WITH ROLLUP; INSERT INTO lost (a) VALUES ({v}); END",
            "CREATE PROCEDURE app.p() BEGIN WITH lost AS (SELECT 1) SELECT * FROM lost; INSERT INTO lost (a) VALUES ({v}); END",
            "CREATE PROCEDURE app.p() BEGIN WITH x (a) AS (SELECT 1) SELECT * FROM x; REPLACE INTO lost (a) SELECT {v} AS (x); END",
            // texts that it prepares
            "CREATE PROCEDURE other.p() BEGIN PREPARE s FROM 'INSERT INTO app.lost VALUES (''{s}'')'; EXECUTE s; END",
            "CREATE PROCEDURE other.p() CREATE INDEX i ON app.lost ((a = {v}))",
            "CREATE PROCEDURE other.p() CREATE UNIQUE INDEX i USING BTREE ON app.lost ((a = {v}))",
            "CREATE EVENT app.e ON SCHEDULE EVERY 1 DAY DO INSERT INTO lost (a) VALUES ({v})",
            "CREATE TRIGGER other.tr BEFORE INSERT ON other.plain FOR EACH ROW INSERT INTO app.lost (a) VALUES ({v})",
            "/*!50003 CREATE PROCEDURE app.p() SELECT * FROM lost WHERE a = {v} */",
            "CREATE /*!50017 DEFINER = CURRENT_USER */ /*!50003 PROCEDURE app.p() SELECT * FROM lost WHERE a = {v} */",
        ] {
            let sql = sql.replace("{v}", &v).replace("{s}", SECRET);
            let failure = session.run(&sql).expect_err(&sql);
            assert!(failure.message.contains("OS10"), "{sql}: {failure}");
        }
        for sql in [
            "CREATE PROCEDURE other.p() EXECUTE IMMEDIATE 'INSERT INTO app.lost VALUES (''{s}'')'",
            "CREATE PROCEDURE other.p() BEGIN DECLARE x TYPE OF app.lost.a DEFAULT '{s}'; END",
            "CREATE PROCEDURE app.p() BEGIN DECLARE x TYPE OF lost.a DEFAULT '{s}'; END",
            "CREATE PROCEDURE app.p() BEGIN DECLARE x ROW TYPE OF lost; SET x.a = '{s}'; END",
        ] {
            if kind == Kind::MariaDb {
                let sql = sql.replace("{s}", SECRET);
                let failure = session.run(&sql).expect_err(&sql);
                assert!(failure.message.contains("OS10"), "{sql}: {failure}");
            }
        }
    }
    place.nothing_leaked();
}

/// A table that another proxy makes: what this one knows is no second old.
fn tables_that_are_made_meanwhile(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    let other = Proxy::start_with(
        &place.server,
        ProxyOptions {
            tables: POLICY.to_owned(),
            keys: Some(place.proxy.keys()),
            ..ProxyOptions::default()
        },
    );
    let mut maker = other.connect_to("app");
    let mut session = place.proxy.connect_to("app");
    for (sql, runs) in [
        ("INSERT INTO late VALUES (1, {v}, 2)", true),
        ("INSERT INTO app.late (a, id) VALUES ({v}, 2)", true),
        ("REPLACE late SET id = 3, a = {v}", true),
        ("INSERT INTO late SELECT 1, {v}, 2", false),
        ("INSERT INTO late VALUES (1, UPPER({v}), 2)", false),
        ("UPDATE late SET a = {v}", true),
        ("SELECT * FROM late WHERE a = {v}", true),
        ("SET @x = ((1, {v}, 2) IN (SELECT * FROM app.late))", false),
        (
            "LOAD DATA LOCAL INFILE '/nowhere' INTO TABLE late SET a = {v}",
            false,
        ),
        (
            "CREATE TRIGGER tr BEFORE INSERT ON late FOR EACH ROW SET NEW.a = {v}",
            false,
        ),
        ("HANDLER late READ FIRST WHERE a = {v}", false),
    ] {
        let text = sql.replace("{v}", &format!("'{SECRET}'"));
        for prepared in [false, true] {
            maker.must("DROP TABLE IF EXISTS late");
            // its absence is known now
            assert!(session.run(&text).is_err(), "{text}");
            maker.must("CREATE TABLE late (id INT PRIMARY KEY, a VARCHAR(80), n INT)");
            let done = match prepared {
                true => {
                    let sql = sql.replace("{v}", "?");
                    let done = session.conn().exec_drop(&sql, (SECRET,));
                    done.map_err(|e| e.to_string())
                }
                false => session.run(&text).map(drop).map_err(|e| e.to_string()),
            };
            assert!(!runs || done.is_ok(), "{sql}: {done:?}");
        }
    }
    place.admin.must("DROP TABLE app.late");
    drop((maker, session, other));
    place.nothing_leaked();
}

/// Names without a database are those of the program's own, not of the session's.
fn programs_of_other_databases(kind: Kind) {
    let Some(place) = Place::start(kind) else {
        return;
    };
    let mut session = place.proxy.connect_to("other");
    for sql in [
        "CREATE PROCEDURE app.p() SELECT * FROM t WHERE a = {v}",
        "CREATE FUNCTION app.f() RETURNS INT READS SQL DATA RETURN (SELECT 1 FROM t WHERE a = {v})",
        "CREATE EVENT app.e ON SCHEDULE EVERY 1 DAY DO INSERT INTO t (a) VALUES ({v})",
        "CREATE EVENT app.e ON SCHEDULE EVERY 1 DAY DO UPDATE there SET a = {v}",
    ] {
        let sql = sql.replace("{v}", &format!("'{SECRET}'"));
        let failure = session.run(&sql).expect_err(&sql);
        assert!(failure.message.contains("OS10"), "{sql}: {failure}");
    }
    drop(session);
    place.nothing_leaked();
}

/// MySQL shows such an account no columns of its own temporary table.
fn temporary_tables_of_narrow_accounts(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    place
        .admin
        .must("CREATE USER narrow@'%' IDENTIFIED BY 'secret'");
    place
        .admin
        .must("GRANT CREATE TEMPORARY TABLES ON app.* TO narrow@'%'");
    place.admin.must("GRANT SELECT ON other.* TO narrow@'%'");
    let mut session = Session::open(place.proxy.port(), "narrow", "secret", Some("other"));
    session.must("CREATE TEMPORARY TABLE app.pad (id INT, a VARCHAR(40))");
    let mut said = Vec::new();
    for sql in [
        "INSERT INTO app.pad (id, a) VALUES (1, {v})",
        "INSERT INTO app.pad VALUES (2, {v})",
        "UPDATE app.pad SET a = {v}",
        "UPDATE app.pad SET `a$enc` = {v}",
        "SELECT id FROM app.pad WHERE a = {v}",
        "DELETE FROM app.pad WHERE a = {v}",
    ] {
        let sql = sql.replace("{v}", &format!("'{SECRET}'"));
        said.push(session.run(&sql).map_err(|f| f.message));
    }
    // all of it works, or none
    let is_refused = |said: &Result<Outcome, String>| {
        said.as_ref().is_err_and(|message| message.contains("OS1"))
    };
    match kind {
        Kind::MariaDb => assert!(said[0].is_ok() && said[4].is_ok(), "{said:?}"),
        Kind::MySql => assert!(said.iter().all(is_refused), "{said:?}"),
    }
    let shown = session.run("SHOW CREATE TABLE app.pad").map(|o| o.text());
    assert!(
        !shown.as_deref().unwrap_or_default().contains("$enc"),
        "{shown:?}"
    );
    for body in ["SET NEW.a = {v}", "INSERT INTO app.lost (a) VALUES ({v})"] {
        let body = body.replace("{v}", &format!("'{SECRET}'"));
        let sql = format!("CREATE TRIGGER app.tr BEFORE INSERT ON app.pad FOR EACH ROW {body}");
        assert!(session.run(&sql).is_err(), "{sql}");
    }
    session.must("DROP TEMPORARY TABLE app.pad");
    drop(session);
    place.nothing_leaked();
}

/// A view has a condition's constants in its text, like any other statement.
fn accounts_that_see_no_columns(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    place
        .admin
        .must("CREATE USER narrow@'%' IDENTIFIED BY 'secret'");
    place.admin.must("GRANT DELETE ON app.t TO narrow@'%'");
    place.admin.must("GRANT ALL ON other.* TO narrow@'%'");
    let mut session = Session::open(place.proxy.port(), "narrow", "secret", Some("other"));
    for sql in [
        "CREATE VIEW other.v AS SELECT id FROM app.t WHERE a = {v}",
        "CREATE OR REPLACE VIEW other.v AS SELECT id FROM app.t WHERE a = {v}",
        "CREATE TABLE other.made AS SELECT id FROM app.t WHERE a = {v}",
        "SELECT id FROM app.t WHERE a = {v}",
    ] {
        let sql = sql.replace("{v}", &format!("'{SECRET}'"));
        let failure = session.run(&sql).expect_err(&sql);
        assert!(failure.message.contains("OS1"), "{sql}: {failure}");
    }
    let failure = session.must_fail("CREATE VIEW other.v AS SELECT id FROM app.t");
    assert!([1054, 1142, 1143].contains(&failure), "{failure}");
    drop(session);
    place.nothing_leaked();
}

/// No pattern is about these. One is gone, of the other an account is told nothing.
fn tables_that_were_protected(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    let table = "(id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (eq))";
    let mut session = place.proxy.connect_to("other");
    for name in ["gone", "hidden"] {
        session.must(&format!("CREATE TABLE {name} {table}"));
        session.must(&format!("INSERT INTO {name} VALUES (1, '{SECRET}')"));
    }
    place
        .admin
        .must("CREATE USER narrow@'%' IDENTIFIED BY 'narrow'");
    place
        .admin
        .must("GRANT SELECT ON other.plain TO narrow@'%'");
    place.admin.must("DROP TABLE other.gone");
    let mut narrow = Session::open(place.proxy.port(), "narrow", "narrow", Some("other"));
    for sql in [
        "INSERT INTO {t} VALUES (2, {v})",
        "SELECT id FROM {t} WHERE name = {v}",
        "UPDATE {t} SET name = {v} WHERE id = 1",
        "DELETE FROM {t} WHERE name = {v}",
        "SELECT p.id FROM plain p JOIN {t} x ON x.id = p.id WHERE x.name = {v}",
        "CREATE PROCEDURE p() INSERT INTO {t} VALUES (3, {v})",
    ] {
        let sql = sql.replace("{v}", &format!("'{SECRET}'"));
        for session in [&mut session, &mut narrow] {
            assert!(session.run(&sql.replace("{t}", "gone")).is_err(), "{sql}");
        }
        assert!(narrow.run(&sql.replace("{t}", "hidden")).is_err(), "{sql}");
    }
    let found = session.text(&format!("SELECT id FROM hidden WHERE name = '{SECRET}'"));
    assert_eq!(found.as_deref(), Ok("1"));
    drop((session, narrow));
    place.nothing_leaked();
}

/// No pattern is about these. Their definition failed or was refused, or they went before anybody
/// had found them.
fn tables_that_were_to_be_protected(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    let mut session = place.proxy.connect_to("other");
    for definition in [
        "CREATE TABLE failed (id INT, s VARCHAR(40) ENCRYPTED FOR (eq), KEY (nothing))",
        "CREATE TABLE refused (id INT, s GEOMETRY ENCRYPTED FOR (eq))",
        "CREATE TEMPORARY TABLE brief (id INT, s VARCHAR(40) ENCRYPTED FOR (eq), KEY (nothing))",
        "ALTER TABLE missing ADD COLUMN s VARCHAR(40) ENCRYPTED FOR (eq)",
        "CREATE TABLE failed LIKE app.nothing",
        "CREATE TABLE copied LIKE app.t",
    ] {
        let failed = session.run(definition).is_err();
        assert_eq!(failed, !definition.contains("copied"), "{definition}");
    }
    session.must("CREATE TABLE found (id INT, s VARCHAR(40) ENCRYPTED FOR (eq))");
    place.admin.must("DROP TABLE other.found, other.copied");
    for table in ["failed", "refused", "brief", "missing", "found", "copied"] {
        for sql in [
            "INSERT INTO {t} VALUES (2, {v})",
            "SELECT id FROM other.{t} WHERE s = {v}",
            "UPDATE {t} SET s = {v} WHERE id = 1",
        ] {
            let sql = sql.replace("{t}", table);
            let sql = sql.replace("{v}", &format!("'{SECRET}'"));
            assert_eq!(session.must_fail(&sql), 1146, "{sql}");
        }
    }
    drop(session);
    place.nothing_leaked();
}

/// Without a database, no name is that of a table, and every one may be meant for it.
fn tables_without_a_database(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    place.admin.must("CREATE DATABASE brief");
    let mut session = place.proxy.connect_to("brief");
    session.must("CREATE TABLE words (id INT, s VARCHAR(40) ENCRYPTED FOR (eq))");
    session.must("CREATE TEMPORARY TABLE kept7 (id INT, s VARCHAR(40) ENCRYPTED FOR (eq))");
    session.must("INSERT INTO words VALUES (1, 'x')");
    let mut nowhere = Session::open(place.proxy.port(), "root", "", None);
    session.must("DROP DATABASE brief");
    for session in [&mut session, &mut nowhere] {
        for table in ["words", "kept7", "kept8", "WORDS"] {
            for sql in [
                "INSERT INTO {t} VALUES (2, {v})",
                "SELECT id FROM {t} WHERE s = {v}",
                "DELETE FROM {t} WHERE s = {v}",
            ] {
                let sql = sql.replace("{t}", table);
                let sql = sql.replace("{v}", &format!("'{SECRET}'"));
                assert_eq!(session.must_fail(&sql), 1046, "{sql}");
            }
        }
    }
    drop((session, nowhere));
    place.nothing_leaked();
}

/// What servers take for syntax errors, with the statement's values in their logs: a string in the
/// place of a table's name, an operator without its column, two values side by side.
fn what_servers_do_not_understand(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    place.admin.must("CREATE USER friend@'%'");
    place
        .admin
        .must("GRANT SELECT ON other.plain TO friend@'%'");
    let mut session = place.proxy.connect_to("app");
    for sql in [
        "INSERT INTO 't' (a) VALUES ({v})",
        "INSERT 't' VALUES (1, {v})",
        "INSERT IGNORE 't' VALUES (1, {v})",
        "REPLACE LOW_PRIORITY 't' VALUES (1, {v})",
        "UPDATE 't' SET a = {v}",
        "DELETE FROM 't' WHERE a = {v}",
        "SELECT 1 FROM 't' WHERE a = {v}",
        "SELECT 1 FROM other.plain p JOIN 't' ON a = {v}",
        "INSERT INTO 'app'.'t' VALUES (1, {v})",
        "INSERT INTO 'app'.t VALUES (1, {v})",
        // a column is forgotten, and two values stand side by side
        "DELETE FROM t WHERE a = 'a' OR IN ({v}, 'b')",
        "SELECT a FROM t WHERE a = 'a' AND NOT LIKE ({v})",
        "UPDATE t SET a = 'a' WHERE a = 'b' OR BETWEEN ({v}, 'c')",
        "SELECT a FROM t WHERE a = 'b' OR VALUES ({v})",
        "SELECT a FROM t WHERE a = 'b' N{v}",
        "DELETE FROM t WHERE a IN ('a', x'41' {v})",
        "DELETE FROM t WHERE a IN ('a', 'b' _latin1{v})",
        // a CHECK in the place of a type
        "ALTER TABLE t ADD b CHECK (a <> {v})",
        "ALTER TABLE t ADD COLUMN b CHECK (id <> {v})",
        "CREATE TABLE u (id INT PRIMARY KEY, a VARCHAR(20), b CHECK (id <> {v}))",
    ] {
        let sql = sql.replace("{v}", &format!("'{SECRET}'"));
        for sql in [sql.clone(), sql.replace('\'', "\""), sql] {
            let refused = session.run(&sql).expect_err(&sql).message;
            assert!(refused.starts_with("OS10"), "{sql}: {refused}");
        }
    }
    for row in ["NEW", "OLD"] {
        let sql = format!(
            "CREATE TRIGGER b AFTER UPDATE ON t FOR EACH ROW SET @x = {row}.lost = '{SECRET}'"
        );
        assert_eq!(session.must_fail(&sql), 1054, "{sql}");
    }
    // the server does not get to reading it
    place.admin.must("SET GLOBAL max_prepared_stmt_count = 0");
    let imported = format!("IMPORT lost '{SECRET}'");
    assert!(session.run(&imported).is_err());
    place
        .admin
        .must("SET GLOBAL max_prepared_stmt_count = 1000");
    // where a string belongs
    session.must("REVOKE SELECT ON other.plain FROM 'friend'@'%'");
    session.must("PREPARE one FROM 'SELECT 1'");
    session.must("SELECT INSERT('abc', 1, 1, 'x'), TRIM('a' FROM 'aba'), 'from' AS 'into'");
    drop(session);
    place.nothing_leaked();
}

/// Temporary tables end with more than DROP: a pool resets a session, a driver connects again.
fn temporary_tables_that_are_gone(kind: Kind) {
    let Some(place) = Place::start(kind) else {
        return;
    };
    let connect = || place.proxy.connect_to("other");
    let create = |session: &mut Session| {
        session.must("CREATE TEMPORARY TABLE pad1 (id INT, name VARCHAR(40) ENCRYPTED FOR (eq))");
        session.must(&format!("INSERT INTO pad1 VALUES (1, '{SECRET}')"));
    };
    let ends: [fn(&mut Session); 3] = [
        |session| drop(session.must("DROP TEMPORARY TABLE pad1")),
        |session| session.conn().reset().expect("a reset"),
        |session| {
            session
                .conn()
                .change_user(::mysql::ChangeUserOpts::DEFAULT)
                .expect("the same user")
        },
    ];
    let statements = [
        "INSERT INTO pad1 VALUES (2, {v})",
        "INSERT INTO other.pad1 (name) VALUES ({v})",
        "INSERT INTO PAD1 SELECT 1, {v}",
        "UPDATE pad1 SET name = {v}",
        "SELECT id FROM pad1 WHERE name = {v}",
        "DELETE FROM pad1 WHERE name = {v}",
        // the next of a program that numbers them
        "INSERT INTO pad2 VALUES (2, {v})",
        // a table that is there, and has no such column
        "UPDATE plain SET name = {v}",
    ];
    let fail = |session: &mut Session| {
        for sql in statements {
            let literal = sql.replace("{v}", &format!("'{SECRET}'"));
            for sql in [literal.clone(), format!("USE other; {literal}")] {
                assert!(session.run(&sql).is_err(), "{sql}");
            }
            let _ = session.conn().exec_drop(sql.replace("{v}", "?"), (SECRET,));
            assert!(session.answers_itself(), "{sql}");
        }
    };
    for end in ends {
        let mut session = connect();
        create(&mut session);
        end(&mut session);
        session.must("USE other");
        fail(&mut session);
        fail(&mut connect());
    }
    let mut session = connect();
    create(&mut session);
    let both = format!("DROP TEMPORARY TABLE pad1; INSERT INTO pad1 VALUES (1, '{SECRET}')");
    assert!(session.run(&both).is_err());
    // what a plain server says first
    for begin in [
        "START TRANSACTION READ ONLY",
        "SET SESSION TRANSACTION READ ONLY",
    ] {
        session.must(begin);
        let sql = format!("INSERT INTO pad1 VALUES (1, '{SECRET}')");
        assert_eq!(session.must_fail(&sql), 1792, "{begin}");
        session.must("ROLLBACK");
    }
    session.must("SET SESSION TRANSACTION READ WRITE");
    // a plain one of the name is another's own business
    session.must("CREATE TEMPORARY TABLE pad1 (id INT, name VARCHAR(40))");
    session.must("INSERT INTO pad1 VALUES (1, 'plain')");
    let found = session.text("SELECT id FROM pad1 WHERE name = 'plain'");
    assert_eq!(found.as_deref(), Ok("1"));
    drop(session);
    place.nothing_leaked();
}

/// Each names a column that its table lacks, and has a value for it.
const OF_LOST_COLUMNS: [&str; 40] = [
    "INSERT INTO p6 (id, email) VALUES (1, {v})",
    "INSERT INTO app.p6 (id, `email`) SELECT 1, {v}",
    "INSERT INTO p6 SET id = 1, email = {v}",
    "INSERT INTO p6 (id) SELECT id FROM p6 WHERE email = {v}",
    "INSERT INTO p6 (id) SELECT id FROM p6 ON DUPLICATE KEY UPDATE p6.email = {v}",
    "INSERT INTO p6 (id) SELECT id AS email FROM p6 ON DUPLICATE KEY UPDATE p6.card_no = {v}",
    "UPDATE p6 a, p6 b SET a.email = {v} WHERE a.id = b.id",
    "DELETE a FROM p6 a JOIN p6 b ON a.id = b.id WHERE b.email = {v}",
    "INSERT INTO p6 (id) VALUES (1) ON DUPLICATE KEY UPDATE EMAIL = {v}",
    "REPLACE INTO p6 (id, card_no) VALUES (1, {v})",
    "/*!50000 INSERT INTO p6 */ (id, /*!50000 email */) VALUES (1, {v})",
    "UPDATE p6 SET email = {v} WHERE id = 1",
    "UPDATE p6 p SET p.mail = 'x' WHERE p.email = {v}",
    "DELETE FROM p6 WHERE email = {v}",
    "SELECT id FROM p6 WHERE email = {v}",
    "SELECT id AS email FROM p6 WHERE email = {v}",
    "SELECT id FROM p6 ORDER BY email = {v}",
    "SELECT * FROM p6 WHERE id IN (SELECT id FROM p6 WHERE email = {v})",
    "DO (SELECT 1 FROM p6 WHERE email = {v})",
    "SET @found = (SELECT 1 FROM p6 WHERE email = {v} LIMIT 1)",
    "EXPLAIN SELECT id FROM p6 WHERE email = {v}",
    "CREATE TABLE app.made AS SELECT id FROM p6 WHERE email = {v}",
    "CREATE VIEW app.made AS SELECT id FROM p6 WHERE email = {v}",
    "SELECT FOUND_ROWS(), email FROM p6 WHERE email = {v}",
    "HANDLER p6 READ FIRST WHERE email = {v}",
    "LOAD DATA LOCAL INFILE '/nowhere' INTO TABLE p6 (id) SET email = {v}",
    "ALTER TABLE p6 ALTER email SET DEFAULT {v}",
    "ALTER TABLE p6 MODIFY email VARCHAR(60) DEFAULT {v}",
    "ALTER TABLE p6 CHANGE email mail2 VARCHAR(60) DEFAULT {v}",
    "ALTER TABLE users MODIFY nope VARCHAR(60) DEFAULT {v}",
    "ALTER TABLE users ALTER COLUMN nope SET DEFAULT {v}",
    "ALTER TABLE users CHANGE nope other VARCHAR(60) COMMENT {v}",
    // a view of another column of a protected table
    "SELECT id FROM shown WHERE name = {v}",
    "UPDATE shown SET name = {v} WHERE id = 1",
    "INSERT INTO shown (id, name) VALUES (1, {v})",
    // views of a table that is protected by its definition alone
    "SELECT id FROM few WHERE pin = {v}",
    "UPDATE other.few SET pin = {v} WHERE id = 1",
    "INSERT INTO other.few (id, pin) VALUES (1, {v})",
    "SELECT f.id AS pin FROM other.few f WHERE f.pin = {v}",
    "DELETE FROM few WHERE `PIN` = {v}",
];

fn of_lost_columns(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::MySql => &[
            "INSERT INTO p6 (id, email) VALUES (1, {v}) AS new ON DUPLICATE KEY UPDATE id = new.id",
            "SELECT 1 WHERE EXISTS (SELECT * FROM p6 WHERE email = {v})",
        ],
        Kind::MariaDb => &[
            "INSERT INTO p6 (id, email) VALUES (1, {v}) RETURNING id",
            "SET STATEMENT max_statement_time = 9 FOR UPDATE p6 SET email = {v}",
            "ALTER TABLE p6 MODIFY COLUMN IF EXISTS email VARCHAR(60) DEFAULT {v}",
            "ALTER TABLE users ALTER IF EXISTS email SET DEFAULT {v}",
        ],
    }
}

/// Columns that `[protect]` names, and that no table of the statement has: their ALTER TABLE was
/// refused, say, or a view does not show them. Nobody else has a use for their values.
fn columns_that_are_missing(kind: Kind) {
    if direct_mode() {
        return;
    }
    let options = ServerOptions {
        general_log: true,
        ..ServerOptions::default()
    };
    let Some(server) = Server::start(kind, options) else {
        return;
    };
    let proxy = Proxy::start(
        &server,
        "[protect.\"app.p*\"]\nemail = [\"eq\"]\n\"*_no\" = []\n[protect.\"app.users\"]\nname = [\"eq\"]\n",
    );
    let mut admin = server.connect();
    admin.must("CREATE DATABASE app DEFAULT CHARSET utf8mb4");
    admin.must("CREATE DATABASE other DEFAULT CHARSET utf8mb4");
    let mut session = proxy.connect_to("app");
    session.must("CREATE TABLE p6 (id INT PRIMARY KEY, mail VARCHAR(40))");
    session.must("CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(40))");
    session.must("CREATE VIEW shown AS SELECT id FROM users");
    session.must("CREATE TABLE forced (id INT PRIMARY KEY, pin VARCHAR(40) ENCRYPTED FOR (eq))");
    session.must("CREATE VIEW few AS SELECT id FROM forced");
    session.must("CREATE VIEW other.few AS SELECT id FROM forced");
    let mut place = Place {
        server,
        proxy,
        admin,
    };
    let v = format!("'{SECRET}'");
    let mut through = Vec::new();
    for sql in OF_LOST_COLUMNS.iter().chain(of_lost_columns(kind)) {
        let sql = sql.replace("{v}", &v);
        for text in [sql.clone(), format!("DO 1; {sql}"), sql.clone()] {
            if session.run(&text).is_ok() {
                through.push(text);
            }
        }
        let quoted = sql.replace('\'', "''");
        if session.run(&format!("PREPARE p FROM '{quoted}'")).is_ok() {
            through.push(format!("PREPARE {sql}"));
        }
        let prepared = sql.replace(&v, "?");
        let _ = session.conn().exec_drop(&prepared, (SECRET,));
        assert!(session.answers_itself(), "{sql}");
    }
    assert!(through.is_empty(), "{through:#?}");
    let code = session.must_fail("INSERT INTO p6 (id, email) VALUES (1, 'x')");
    assert_eq!(code, 1054);
    for sql in [
        "INSERT INTO p6 (id, mail) VALUES (1, 'a'), (2, 'b')",
        "SELECT mail AS email FROM p6 WHERE mail = 'a'",
        "SELECT e.x AS email FROM (SELECT mail AS x FROM p6) e WHERE e.x = 'b'",
        "SELECT email.mail FROM p6 AS email WHERE email.mail = 'b'",
        "SELECT mail AS email FROM p6 HAVING email = 'a'",
        "SELECT x.email FROM (SELECT mail AS email FROM p6) x WHERE x.email = 'a'",
        "WITH w (email) AS (SELECT mail FROM p6) SELECT email FROM w WHERE email = 'b'",
        "UPDATE p6 AS email SET email.mail = 'c' WHERE email.id = 2",
        "ALTER TABLE p6 ADD note VARCHAR(20) DEFAULT 'n'",
        "ALTER TABLE p6 MODIFY mail VARCHAR(60) DEFAULT 'm'",
        "SELECT id FROM shown WHERE id = 'x'",
        "SELECT id AS pin FROM other.few HAVING pin = '7'",
    ] {
        session.must(sql);
    }
    // made protected meanwhile, by somebody else
    let mut other = place.proxy.connect_to("app");
    other.must("ALTER TABLE p6 ADD email VARCHAR(60)");
    session.must("INSERT INTO p6 (id, mail, email) VALUES (7, 'm', 'kept')");
    assert_eq!(
        session
            .text("SELECT id FROM p6 WHERE email = 'kept'")
            .as_deref(),
        Ok("7")
    );
    let sealed = place.admin.text("SELECT COUNT(*) FROM app.p6 WHERE CAST(CONCAT_WS('', `email$enc`) AS BINARY) LIKE '%kept%'");
    assert_eq!(sealed.as_deref(), Ok("0"));
    drop((session, other));
    place.nothing_leaked();
}
