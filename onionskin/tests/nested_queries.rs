//! Queries in statements that have no place for one, by the name of a protected table or of one
//! that is missing: no constant of theirs comes to the server. And definitions that only look as if
//! one were in them.

use ::mysql::prelude::Queryable;
use onionskin_testkit::*;

on_both_servers!(
    no_constant_is_sent_with_them,
    no_condition_is_sent_behind_them,
    no_constant_is_sent_beside_protected_columns,
    a_clause_behind_a_query_is_read,
    values_have_their_place,
    operators_have_their_columns,
    expressions_beside_protected_columns,
    names_that_are_words,
    a_database_has_one_name,
    tables_of_no_database,
    definitions_are_no_queries,
);

const SETTINGS: &str = "[protect.\"app.*\"]\n\"*_p\" = \"plain\"\n\"*\" = [\"eq\", \"range\"]\n";

/// With a log of all that comes to the server.
fn pair(kind: Kind) -> Option<Pair> {
    let options = PairOptions {
        settings: SETTINGS,
        server: ServerOptions {
            general_log: true,
            ..ServerOptions::default()
        },
        ..PairOptions::default()
    };
    Pair::start_with(kind, options)
}

/// Nothing of the secret is in the log. It can fail: what goes through is there.
fn nothing_was_sent(mut pair: Pair) {
    pair.protected.must("DO 'Zq7seen'");
    let log = std::fs::read(pair.behind.data_dir().join("general.log")).expect("a log");
    assert!(String::from_utf8_lossy(&log).contains("Zq7seen"));
    pair.nothing_leaked();
}

/// `{q}` is a query in parentheses.
const FORMS: &[&str] = &[
    "ALTER TABLE p ADD CHECK (v_p <> {q})",
    "ALTER TABLE p ADD x_p INT DEFAULT {q}",
    "ALTER TABLE p ADD x_p INT AS {q}",
    "ALTER TABLE p ADD KEY z ({q})",
    "ALTER TABLE p ALTER v_p SET DEFAULT {q}",
    "ALTER TABLE p ALTER v_p SET DEFAULT ({q})",
    "ALTER TABLE p COMMENT {q}",
    "ALTER TABLE p ORDER BY {q}",
    "ALTER TABLE p PARTITION BY HASH ({q})",
    "ALTER TABLE p PARTITION BY RANGE (id_p) (PARTITION a VALUES LESS THAN ({q}))",
    "CREATE TABLE x_p (a_p INT DEFAULT {q})",
    "CREATE TABLE x_p (a_p INT, CHECK (a_p <> {q}))",
    "CREATE TABLE x_p (a_p INT) PARTITION BY HASH ({q})",
    "CREATE TABLE x_p (a_p INT) COMMENT {q}",
    "CREATE TABLE x_p (a_p INT, CHECK (a_p <> {q})) SELECT 1 AS a_p",
    "CREATE INDEX z ON p (({q}))",
    "CREATE USER x@y IDENTIFIED BY {q}",
    "ALTER USER x@y IDENTIFIED BY {q}",
    "CREATE ROLE r {q}",
    "DROP EVENT x_p {q}",
    "DROP TABLE x_p {q}",
    "TRUNCATE p {q}",
    "OPTIMIZE TABLE p {q}",
    "ANALYZE TABLE p UPDATE HISTOGRAM ON v_p WITH {q} BUCKETS",
    "SHOW CREATE TABLE p {q}",
    "SHOW TABLES WHERE Tables_in_app IN {q}",
    "KILL {q}",
    "XA START {q}",
    "XA END {q}",
    "XA COMMIT {q}",
    "XA RECOVER {q}",
    "SET TRANSACTION {q}",
    "SET SESSION TRANSACTION ISOLATION LEVEL {q}",
    "COMMIT {q}",
    "SAVEPOINT {q}",
    "LOCK TABLES p {q}",
    "USE {q}",
    "FLUSH TABLES {q}",
    "EXECUTE IMMEDIATE 'SELECT * FROM p WHERE v_p = ?' USING {q}",
    "EXECUTE IMMEDIATE 'SELECT ?' USING {q}",
    "EXECUTE none USING {q}",
    "PREPARE none FROM {q}",
    "LOAD DATA LOCAL INFILE '/dev/null' INTO TABLE p (v_p) SET w_p = {q}",
    "LOAD DATA INFILE '/dev/null' INTO TABLE p (v_p) SET w_p = {q}",
    "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = {q}",
    "GET DIAGNOSTICS CONDITION {q} @a = MESSAGE_TEXT",
    "CALL none({q})",
    "DO {q}",
    "SET @a = {q}",
    "HANDLER p READ v_p = {q}",
    "INSTALL PLUGIN x SONAME {q}",
    "CACHE INDEX p IN {q}",
    "CHANGE MASTER TO MASTER_HOST = {q}",
    "PURGE BINARY LOGS TO {q}",
    "HELP {q}",
    "CHECKSUM TABLE p {q}",
];

fn no_constant_is_sent_with_them(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    for sql in [
        "CREATE TABLE there (id INT PRIMARY KEY, n VARCHAR(40))",
        "CREATE TABLE p (id_p INT PRIMARY KEY, v_p VARCHAR(20), w_p INT)",
    ] {
        pair.protected.must(sql);
    }
    let mut session = pair.proxy.connect_to("app");
    for form in FORMS {
        for query in [
            "(SELECT n FROM {t} WHERE n = '{v}')",
            "(WITH q AS (SELECT n FROM {t} WHERE n = '{v}') SELECT n FROM q)",
            "(VALUES ROW((SELECT n FROM {t} WHERE n = '{v}')))",
            "/*!50000 (*/ SELECT n FROM {t} WHERE n = '{v}')",
        ] {
            for table in ["there", "lost", "app.there", "`lost`"] {
                let query = query.replace("{t}", table).replace("{v}", SECRET);
                let sql = form.replace("{q}", &query);
                let _ = session.run(&sql);
                let prepared = sql.replace(&format!("'{SECRET}'"), "?");
                let _ = session.conn().exec_drop(&prepared, (SECRET,));
                if !session.answers_itself() {
                    session = pair.proxy.connect_to("app");
                }
            }
        }
        let _ = session.run("ROLLBACK");
        let _ = session.run("UNLOCK TABLES");
    }
    drop(session);
    nothing_was_sent(pair);
}

/// Conditions and rows behind statements that are told by their first words.
fn no_condition_is_sent_behind_them(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    pair.protected
        .must("CREATE TABLE t (id_p INT PRIMARY KEY, n VARCHAR(40))");
    let mut session = pair.proxy.connect_to("app");
    for head in [
        "GRANT SELECT ON t TO app",
        "GRANT SELECT (n), INSERT ON app.t TO 'app'@'%'",
        "GRANT ALL ON app.* TO t WITH GRANT OPTION",
        "REVOKE SELECT ON t FROM app",
        "REVOKE SELECT (n) ON TABLE t FROM app",
        "CREATE USER t IDENTIFIED BY 'x'",
        "ALTER USER t@localhost",
        "DROP USER t",
        "RENAME USER t TO b",
        "CREATE ROLE t",
        "SET ROLE t",
        "SET PASSWORD FOR t = 'x'",
        "SHOW GRANTS FOR t",
        "SHOW TABLES FROM app",
        "SHOW WARNINGS LIMIT 1",
        "TRUNCATE t",
        "RENAME TABLE t TO u",
        "LOCK TABLES t READ",
        "FLUSH TABLES t WITH READ LOCK",
        "OPTIMIZE TABLE t",
        "ANALYZE TABLE t",
        "CHECK TABLE t FOR UPGRADE",
        "CHECKSUM TABLE t",
        "DROP TABLE t",
        "DROP VIEW t",
        "DROP TEMPORARY TABLE t",
        "CREATE DATABASE t COMMENT 'x'",
        "DROP DATABASE t",
        "KILL 5",
        "KILL QUERY t",
        "USE t",
        "XA START 'x'",
        "XA RECOVER",
        "SET TRANSACTION READ ONLY",
        "START TRANSACTION READ ONLY",
        "COMMIT",
        "ROLLBACK TO t",
        "SAVEPOINT t",
        "RELEASE SAVEPOINT t",
        "HANDLER t OPEN",
        "CACHE INDEX t IN hot",
        "RESET MASTER",
        "PURGE BINARY LOGS TO 'x'",
        "UNINSTALL PLUGIN t",
        "SET @a = 1",
        "SELECT ROW_COUNT()",
        "DO 1",
        "EXECUTE none USING @a",
        "DROP PROCEDURE none",
        "GET DIAGNOSTICS CONDITION 1 @a = MESSAGE_TEXT",
        "EXPLAIN TABLE t UNION SELECT 1, 'x' FROM t",
        "EXPLAIN TABLE t EXCEPT SELECT 1, 'x' FROM t",
    ] {
        for tail in [
            " WHERE t.n = '{v}'",
            " WHERE n IN (1, '{v}') AND t.n > 5",
            " HAVING '{v}' = t.n",
            " AND t.n = '{v}'",
            ", t.n = '{v}'",
            " t.n '{v}'",
            " /*!50000 WHERE `t`.`n` = '{v}' */",
        ] {
            let tail = tail.replace("{v}", SECRET);
            let sql = format!("{head}{tail}");
            let _ = session.run(&sql);
            let prepared = sql.replace(&format!("'{SECRET}'"), "?");
            let _ = session.conn().exec_drop(&prepared, (SECRET,));
            if !session.answers_itself() {
                session = pair.proxy.connect_to("app");
            }
        }
    }
    for sql in [
        "EXPLAIN TABLE t UNION SELECT 1, '{v}'",
        "EXPLAIN TABLE t EXCEPT SELECT id_p, '{v}' FROM t WHERE n = '{v}'",
        "EXPLAIN FORMAT=JSON TABLE t UNION SELECT id_p, '{v}' FROM t",
        "EXPLAIN (TABLE t) UNION SELECT 1, '{v}'",
        "EXPLAIN ANALYZE TABLE t UNION SELECT 1, '{v}'",
        "EXPLAIN VALUES ROW(@a, @b) UNION SELECT 1, '{v}' FROM t",
        "DESCRIBE TABLE t UNION SELECT 1, '{v}'",
    ] {
        let _ = session.run(&sql.replace("{v}", SECRET));
    }
    drop(session);
    nothing_was_sent(pair);
}

/// Expressions in what is said of plain columns of a protected table.
fn no_constant_is_sent_beside_protected_columns(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    let definition =
        "CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(40), k INT, t_p VARCHAR(40), i_p INT)";
    pair.protected.must(definition);
    let mut session = pair.proxy.connect_to("app");
    for form in [
        "ALTER t_p SET DEFAULT {e}",
        "ALTER COLUMN t_p SET DEFAULT ({e})",
        "MODIFY t_p VARCHAR(40) DEFAULT {e}",
        "MODIFY t_p VARCHAR(40) AS {e}",
        "CHANGE t_p u_p VARCHAR(40) DEFAULT {e}",
        "ADD u_p VARCHAR(40) DEFAULT {e}",
        "ADD u_p VARCHAR(40) AS {e}",
        "ADD CHECK (t_p = {e})",
        "ADD CONSTRAINT c CHECK {e}",
        "ADD KEY ({e})",
        "ADD UNIQUE KEY x ({e}, t_p)",
        "ORDER BY {e}",
        "COMMENT {e}",
        "ENGINE {e}",
        "DROP t_p {e}",
        "RENAME x {e}",
        "PARTITION BY HASH ({e})",
        "ADD PARTITION (PARTITION a VALUES LESS THAN ({e}))",
        "DROP CONSTRAINT c {e}",
        "AUTO_INCREMENT {e}",
    ] {
        for expression in [
            "(n = '{v}')",
            "(CONCAT(n, '{v}'))",
            "(i_p + (n = '{v}'))",
            "(SELECT t.n = '{v}' FROM t)",
            "(t.n LIKE '{v}')",
            "n || '{v}'",
            "'{v}' = n",
            "i_p + (k) - '{v}'",
        ] {
            let expression = expression.replace("{v}", SECRET);
            let sql = format!("ALTER TABLE t {}", form.replace("{e}", &expression));
            let _ = session.run(&sql);
            let _ = session.run(&format!("CREATE INDEX x ON t ({expression})"));
            // the column comes behind what names it
            let later = sql.replace("n ", "late ");
            let _ = session.run(&format!("{later}, ADD late VARCHAR(40)"));
            let _ = session.run(&format!(
                "CREATE TABLE u (CHECK ({expression}), u_p INT AS ({expression}), n INT, k INT)"
            ));
            let _ = session.run(&format!(
                "CREATE TABLE u (n VARCHAR(40), k INT, KEY ({expression}))"
            ));
            assert!(session.answers_itself(), "{sql}");
        }
    }
    drop(session);
    nothing_was_sent(pair);
}

/// What a database of names that `[protect]` is about lets through as a plain server does.
fn definitions_are_no_queries(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    let of_both = [
        "CREATE TABLE g1 (id_p INT, t_p VARCHAR(9), g_p VARCHAR(9) AS (REPLACE(t_p, 'a', 'b')))",
        "CREATE TABLE g2 (id_p INT, t_p VARCHAR(9), g_p VARCHAR(9) AS (INSERT(t_p, 1, 2, 'x')) STORED)",
        "CREATE TABLE pt_p (id_p INT, d_p DATE) PARTITION BY RANGE ((id_p + 1)) \
         (PARTITION p0 VALUES LESS THAN (2000), PARTITION p1 VALUES LESS THAN MAXVALUE)",
        "CREATE USER zu@zh IDENTIFIED BY 'x' WITH MAX_QUERIES_PER_HOUR 5",
        "ALTER USER zu@zh WITH MAX_QUERIES_PER_HOUR 6",
        "CREATE TABLE a (id INT PRIMARY KEY, n VARCHAR(20), b_p INT DEFAULT 3)",
        "INSERT INTO a VALUES (1, 'x', 2)",
        "ALTER TABLE a ADD c_p INT DEFAULT 5",
        "CREATE VIEW v AS SELECT id, b_p FROM a WHERE b_p > 1",
        "DROP USER zu@zh",
    ];
    let of_mariadb = [
        "CREATE SEQUENCE sq START WITH 5",
        "ALTER SEQUENCE sq RESTART WITH 7",
        "CREATE OR REPLACE SEQUENCE sq START WITH 9 INCREMENT BY 2",
        "SET STATEMENT max_statement_time = 1 FOR CREATE SEQUENCE s2 START WITH 3",
        "SELECT NEXTVAL(sq)",
        "CREATE OR REPLACE TABLE r_p (a_p INT DEFAULT 5)",
        "CREATE TABLE sv_p (id_p INT DEFAULT 5) WITH SYSTEM VERSIONING",
        "ANALYZE TABLE a PERSISTENT FOR COLUMNS (b_p) INDEXES ()",
    ];
    let of_mysql = [
        "ANALYZE TABLE pt_p UPDATE HISTOGRAM ON id_p WITH 10 BUCKETS",
        "ALTER TABLE a ALTER b_p SET DEFAULT 4",
        "EXPLAIN FORMAT=TREE SELECT 1",
    ];
    let own: &[&str] = match kind {
        Kind::MariaDb => &of_mariadb,
        Kind::MySql => &of_mysql,
    };
    for sql in of_both.iter().chain(own) {
        let said = pair.same(sql);
        assert!(
            !said.starts_with("10") && !said.contains(" OS1"),
            "{sql}: {said}"
        );
    }
    if kind == Kind::MariaDb {
        for sql in [
            "CREATE OR REPLACE TABLE r2 SELECT n FROM a WHERE n = 'x'",
            "CREATE OR REPLACE TABLE r2 SELECT n, 1 AS q_p FROM a LIMIT 1",
            "SELECT n FROM r2",
        ] {
            let said = pair.say(sql);
            assert!(!said.protected.contains("1064"), "{sql}: {said:?}");
        }
    }
}

/// ON DUPLICATE KEY UPDATE of a plain table may name the columns of the query before it.
fn a_clause_behind_a_query_is_read(kind: Kind) {
    const TABLES: &str = "CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(40) {eq}, k INT {eq});\
         CREATE TABLE plain (id INT PRIMARY KEY, x INT, y VARCHAR(40))";
    let Some(mut pair) = Pair::with_settings(kind, TABLES, "") else {
        return;
    };
    pair.run("INSERT INTO t VALUES (1, 'a', 5), (2, 'b', 6)");
    pair.run("INSERT INTO plain VALUES (1, 1, 'c')");
    let head = "INSERT INTO plain (id, y) SELECT id, 'k' FROM t ON DUPLICATE KEY UPDATE";
    for clause in [
        "x = (t.n = '{v}')",
        "x = (n = '{v}')",
        "y = CONCAT(t.n, '{v}')",
        "y = IF(t.n = '{v}', 'a', 'b')",
    ] {
        let sql = format!("{head} {}", clause.replace("{v}", SECRET));
        let failure = pair.protected.run(&sql).expect_err(&sql);
        assert!(failure.message.contains("OS1"), "{sql}: {failure}");
    }
    pair.same(&format!("{head} y = CONCAT(y, VALUES(y)), x = x + 1"));
    pair.same_result_of_text("SELECT * FROM plain ORDER BY id");
    pair.nothing_leaked();
}

/// An expression in which the column was forgotten is a syntax error to every server, which has its
/// constant in its log by then.
fn operators_have_their_columns(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    pair.protected
        .must("CREATE TABLE t (id_p INT PRIMARY KEY, n VARCHAR(40), k INT, d_p DATE)");
    let mut session = pair.proxy.connect_to("app");
    for form in [
        "ALTER TABLE t ADD CHECK ({e})",
        "ALTER TABLE t ADD CONSTRAINT c CHECK ({e})",
        "ALTER TABLE t ADD y_p INT CHECK ({e})",
        "ALTER TABLE t ADD y_p VARCHAR(40) DEFAULT ({e})",
        "ALTER TABLE t ADD y_p VARCHAR(40) DEFAULT CONCAT({e})",
        "ALTER TABLE t ADD y_p VARCHAR(40) AS ({e})",
        "ALTER TABLE t ADD y_p VARCHAR(40) GENERATED ALWAYS AS ({e}) STORED",
        "ALTER TABLE t MODIFY d_p DATE DEFAULT ({e})",
        "ALTER TABLE t ALTER d_p SET DEFAULT ({e})",
        "ALTER TABLE t ADD KEY (({e}))",
        "ALTER TABLE t ADD UNIQUE KEY (id_p, ({e}) DESC)",
        "CREATE INDEX i ON t (({e}))",
        "ALTER TABLE t PARTITION BY HASH ({e})",
        "ALTER TABLE t PARTITION BY RANGE ({e}) (PARTITION a VALUES LESS THAN (5))",
        "ALTER TABLE t PARTITION BY RANGE (id_p) (PARTITION a VALUES LESS THAN ({e}))",
        "ALTER TABLE t PARTITION BY LIST (id_p) (PARTITION a VALUES IN (5, {e}))",
        "ALTER TABLE t ADD PARTITION (PARTITION a VALUES LESS THAN ({e}))",
        // of a new table no other is near
        "CREATE TABLE u (id_p INT, m VARCHAR(40), CHECK ({e}))",
        "CREATE TABLE u (id_p INT CHECK ({e}), m VARCHAR(40))",
        "CREATE TABLE u (id_p INT DEFAULT ({e}), m VARCHAR(40))",
        "CREATE TABLE u (id_p INT AS ({e}), m VARCHAR(40))",
        "CREATE TABLE u (id_p INT, m VARCHAR(40), KEY (({e})))",
        "CREATE TABLE u (id_p INT, m VARCHAR(40)) PARTITION BY HASH ({e})",
        "CREATE TABLE u (m VARCHAR(40) DEFAULT ({e}))",
        "CREATE TABLE u (m VARCHAR(40) CHECK ({e}))",
    ] {
        for expression in [
            "<> '{v}'",
            "= '{v}'",
            "'{v}' =",
            "LIKE '{v}'",
            "NOT LIKE '{v}'",
            "REGEXP '{v}'",
            "IN ('{v}')",
            "NOT IN ('a', '{v}')",
            "BETWEEN '{v}' AND 'z'",
            "id_p > 5 AND <> '{v}'",
            "id_p > 5 OR (<> '{v}')",
            "id_p '{v}'",
            "id_p > 5, '{v}' <",
            "<> /*!50000 '{v}' */",
        ] {
            let sql = form.replace("{e}", &expression.replace("{v}", SECRET));
            let failure = session.run(&sql).expect_err(&sql);
            assert!(failure.message.contains("OS1"), "{sql}: {failure}");
        }
    }
    drop(session);
    nothing_was_sent(pair);
}

/// What is whole goes through, beside protected columns too.
fn expressions_beside_protected_columns(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    let of_both = [
        "CREATE TABLE t (id_p INT PRIMARY KEY, n VARCHAR(40), a_p VARCHAR(40), d_p DATE, j_p JSON, \
         CHECK (a_p <> 'x' OR a_p IS NULL), CHECK (d_p > DATE'1970-01-01'), \
         CHECK (id_p NOT BETWEEN -5 AND -1 AND id_p NOT IN (13, 17)), \
         CHECK (a_p NOT LIKE 'x|%%' ESCAPE '|'), CHECK (NOT (a_p REGEXP '^q')), \
         CHECK (id_p DIV 2 < 100000), CHECK (JSON_EXTRACT(j_p, '$.a') IS NULL OR d_p IS NOT NULL))",
        "ALTER TABLE t ADD g_p VARCHAR(60) AS (CONCAT(a_p, '-', IFNULL(id_p, 'none'))) VIRTUAL, \
         ADD h_p INT AS (CASE WHEN id_p > 5 THEN 1 ELSE 0 END) STORED, \
         ADD u_p DATE AS (DATE_ADD(d_p, INTERVAL 1 DAY)), \
         ADD e_p DATE DEFAULT (CURRENT_DATE + INTERVAL 1 YEAR), \
         ADD f_p VARCHAR(40) DEFAULT (CONCAT('a', 'b')), \
         ADD i_p VARCHAR(9) AS (TRIM(BOTH 'x' FROM a_p)), \
         ADD k_p VARCHAR(9) AS (SUBSTRING(a_p FROM 2 FOR 3)), \
         ADD l_p INT AS (EXTRACT(YEAR FROM d_p) * 100 + 7), \
         ADD m_p INT AS (CAST(id_p + 5 AS SIGNED))",
        "ALTER TABLE t ADD KEY w (a_p(5) DESC, d_p)",
        "INSERT INTO t (id_p, n, a_p, d_p) VALUES (7, 'n', 'xay', '2020-02-28')",
        "INSERT INTO t (id_p, n, a_p, d_p) VALUES (13, 'n', 'a', '2020-02-28')",
        "INSERT INTO t (id_p, n, a_p, d_p) VALUES (8, 'n', 'x', '2020-02-28')",
        "SELECT id_p, n, g_p, h_p, u_p, f_p, i_p, k_p, l_p, m_p FROM t",
        "CREATE TABLE p (id_p INT, n VARCHAR(40), d_p DATE) \
         PARTITION BY RANGE (YEAR(d_p) * 100 + MONTH(d_p)) \
         (PARTITION a VALUES LESS THAN (201001), PARTITION b VALUES LESS THAN MAXVALUE)",
        "CREATE TABLE q (id_p INT, m_p INT, n VARCHAR(40)) PARTITION BY LIST COLUMNS (id_p, m_p) \
         (PARTITION a VALUES IN ((1, 2), (NULL, -3)), PARTITION b VALUES IN ((5, 6)))",
        "INSERT INTO q VALUES (5, 6, 'n'), (7, 8, 'n')",
    ];
    let of_mysql = [
        "ALTER TABLE t ADD KEY v ((CAST(j_p->'$.a' AS UNSIGNED ARRAY))), \
         ADD KEY x ((LOWER(a_p)), (id_p + 1) DESC), ADD UNIQUE KEY y ((CONCAT(a_p, 'y'))), \
         ADD CHECK (j_p->>'$.b' IS NULL OR j_p->>'$.b' <> 'x'), ADD CHECK (id_p << 1 ^ 2 <> 9)",
        "SHOW CREATE TABLE t",
    ];
    let of_mariadb = [
        "ALTER TABLE t ADD o_p VARCHAR(20) DEFAULT CONCAT('a', id_p), \
         ADD q_p VARCHAR(20) DEFAULT CAST('x' AS CHAR), ADD r_p INT DEFAULT IF(1 > 2, 3, 4)",
        "SELECT o_p, q_p, r_p FROM t",
    ];
    let own: &[&str] = match kind {
        Kind::MariaDb => &of_mariadb,
        Kind::MySql => &of_mysql,
    };
    for sql in of_both.iter().chain(own) {
        let said = pair.same(sql);
        assert!(
            !said.contains("OS1") && !said.contains("1064"),
            "{sql}: {said}"
        );
    }
}

/// MariaDB takes DATABASE for a name.
fn names_that_are_words(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    pair.protected
        .must("CREATE TABLE `database` (id_p INT PRIMARY KEY, n VARCHAR(40))");
    for sql in [
        "INSERT INTO database (id_p, n) VALUES (1, '{v}')",
        "UPDATE database SET id_p = 2 WHERE n = '{v}'",
        "REPLACE database VALUES (3, '{v}')",
        "SELECT id_p FROM database WHERE n = '{v}'",
        "DELETE FROM database WHERE n = '{v}' AND id_p = 3",
        "CREATE PROCEDURE p() UPDATE database SET n = '{v}'",
    ] {
        let done = pair.protected.run(&sql.replace("{v}", SECRET));
        let is_procedure = sql.starts_with("CREATE");
        assert_eq!(
            done.is_ok(),
            kind == Kind::MariaDb && !is_procedure,
            "{sql}"
        );
    }
    nothing_was_sent(pair);
}

/// What stands behind a NUL in COM_INIT_DB is no part of the name to MySQL.
fn a_database_has_one_name(kind: Kind) {
    const COM_INIT_DB: u8 = 2;
    let Some(mut pair) = pair(kind) else {
        return;
    };
    pair.protected
        .must("CREATE TABLE t (id_p INT PRIMARY KEY, n VARCHAR(40))");
    let mut client = RawClient::login(pair.proxy.port());
    for name in [b"app\0x".as_slice(), b"app\0", b"\0app"] {
        client.command(COM_INIT_DB, name);
        assert!(matches!(client.read(), Reply::Error(1102, _)));
        let insert = format!("INSERT INTO t (id_p, n) VALUES (1, '{SECRET}')");
        assert!(matches!(client.query(insert.as_bytes()), Reply::Error(..)));
    }
    drop(client);
    nothing_was_sent(pair);
}

/// Without a database, a name without one is an error of every server.
fn tables_of_no_database(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    pair.protected
        .must("CREATE TABLE t (id_p INT PRIMARY KEY, n VARCHAR(40))");
    let mut session = pair.proxy.connect();
    for sql in [
        "INSERT INTO t (id_p, n) VALUES (1, '{v}')",
        "REPLACE t SET id_p = 1, n = '{v}'",
        "UPDATE t SET n = '{v}'",
        "DELETE FROM t WHERE n = '{v}'",
        "SELECT id_p FROM t WHERE n = '{v}'",
        "SELECT 1 FROM app.t a JOIN t b ON a.n = b.n WHERE b.n = '{v}'",
    ] {
        let sql = sql.replace("{v}", SECRET);
        // or OS1003
        assert!(matches!(session.must_fail(&sql), 1046 | 1235), "{sql}");
        let prepared = sql.replace(&format!("'{SECRET}'"), "?");
        assert!(session.conn().exec_drop(&prepared, (SECRET,)).is_err());
    }
    // what names no table, or one with its database
    for sql in [
        "SELECT 'x', UPPER('y')",
        "WITH q AS (SELECT 'x' AS a) SELECT a FROM q",
        "SELECT a FROM (SELECT 'x' AS a) q",
        "INSERT INTO app.t (id_p, n) VALUES (1, 'x')",
        "SELECT n FROM app.t WHERE n = 'x'",
    ] {
        session.must(sql);
    }
    nothing_was_sent(pair);
}

/// A value in a clause that no definition has, behind a forgotten IN, and for a statement that was
/// not prepared.
fn values_have_their_place(kind: Kind) {
    let Some(pair) = pair(kind) else {
        return;
    };
    let mut session = pair.proxy.connect_to("app");
    session.must(
        "CREATE TABLE t (id_p INT PRIMARY KEY, n VARCHAR(40), e VARCHAR(40), x_p VARCHAR(9))",
    );
    session.must("CREATE TABLE plain_p (id_p INT PRIMARY KEY, x_p INT)");
    let _ = session.run("PREPARE none FROM 'SELECT id_p FROM t PROCEDURE ANALYSE() WHERE n = ?'");
    for form in [
        "CREATE INDEX i ON t (x_p) {c}",
        "CREATE INDEX i ON t (x_p) FOO {c}",
        "CREATE INDEX i ON t (x_p) COMMENT {c}",
        "CREATE INDEX i USING {c} ON t (x_p)",
        "CREATE INDEX {c} ON t (x_p)",
        "CREATE UNIQUE INDEX i ON t (x_p), {c}",
        "ALTER TABLE t ADD INDEX i (x_p) {c}",
        "ALTER TABLE t ADD ONLY INDEX (({c}))",
        "ALTER TABLE t ADD y_p FOO({c})",
        "ALTER TABLE t ADD y_p INT ({c})",
        "ALTER TABLE t ADD y_p ENUM({c})",
        "ALTER TABLE t ADD y_p DECIMAL({c})",
        "ALTER TABLE t ADD y_p INT {c}",
        "ALTER TABLE t ADD y_p INT DEFAULT 5 {c}",
        "ALTER TABLE t ADD y_p INT COMMENT {c}",
        "ALTER TABLE t ADD y_p INT CHECK (y_p > 5) {c}",
        "ALTER TABLE t ADD y_p INT AS (5) {c}",
        "ALTER TABLE t ADD y_p INT REFERENCES plain_p (id_p) {c}",
        "ALTER TABLE t ADD COLUMN (y_p INT, z_p FOO({c}))",
        "ALTER TABLE t MODIFY x_p FOO({c})",
        "ALTER TABLE t CHANGE x_p x_p FOO({c})",
        "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (id_p) REFERENCES plain_p (id_p) {c}",
        "ALTER TABLE t DROP PARTITION {c}",
        "ALTER TABLE t TRUNCATE PARTITION p {c}",
        "ALTER TABLE t ADD PARTITION PARTITIONS {c}",
        "CREATE TABLE t (id_p INT) {c}",
        "CREATE TABLE t FOO {c}",
        "CREATE TABLE t u_p (id_p INT) SELECT id_p FROM t {c}",
        "CREATE TABLE u_p (id_p INT) {c} SELECT id_p FROM t",
        "CREATE TABLE u_p (id_p INT, FOREIGN KEY (id_p) REFERENCES t (id_p) {c})",
        "CREATE TABLE u_p (id_p INT REFERENCES t (id_p) {c})",
        "CREATE TABLE u_p (id_p INT REFERENCES t (id_p), CHECK (t.{c}))",
        "SHOW CREATE TABLE t {c}",
        "SHOW CREATE VIEW t {c}",
    ] {
        for condition in [
            "n = '{v}'",
            "WHERE n = '{v}'",
            "n LIKE '{v}'",
            "n IN (1, '{v}')",
            "'{v}' > n",
        ] {
            let sql = form.replace("{c}", condition).replace("{v}", SECRET);
            let _ = session.run(&sql);
            assert!(session.answers_itself(), "{sql}");
        }
    }
    for sql in [
        "SELECT id_p FROM t WHERE n ('{v}')",
        "SELECT id_p FROM t u WHERE u.n ('{v}', 'b')",
        "SELECT id_p FROM t WHERE app.t.n ('{v}')",
        "SELECT id_p FROM t WHERE `n`('{v}')",
        "SELECT id_p FROM t ORDER BY n('{v}')",
        "SELECT n ('{v}') FROM t",
        "SELECT * FROM (SELECT id_p FROM t) d WHERE d.n = '{v}'",
        "SELECT * FROM (SELECT id_p FROM t) d JOIN plain_p p ON d.n IN ('{v}')",
        "INSERT INTO plain_p SELECT d.id_p, 1 FROM (SELECT id_p FROM t) d WHERE d.n = '{v}'",
        "CREATE VIEW w_p AS SELECT d.id_p FROM (SELECT id_p FROM t) d WHERE d.n = '{v}'",
        "SELECT id_p FROM t WHERE e ('{v}') OR id_p = 2",
        "UPDATE t SET x_p = 'x' WHERE n('{v}')",
        "DELETE FROM t WHERE t.n ('{v}')",
        "INSERT INTO t (id_p, x_p) VALUES (99, n('{v}'))",
        "CREATE VIEW w_p AS SELECT u.id_p FROM t u WHERE u.n('{v}', 'b')",
        "SELECT id_p FROM plain_p WHERE id_p IN (SELECT id_p FROM t WHERE n ('{v}'))",
        "HANDLER plain_p OPEN AS h",
        "HANDLER t OPEN AS h",
        "HANDLER h READ FIRST WHERE n = '{v}'",
        "HANDLER h READ k = ('{v}')",
        "DROP TABLE missing WHERE n = '{v}'",
        "ANALYZE TABLE missing WHERE n = '{v}'",
        "TRUNCATE missing WHERE n = '{v}'",
        "EXECUTE none USING '{v}'",
        "EXECUTE never USING '{v}', 5",
        "EXECUTE never USING CONCAT('{v}', 'x')",
    ] {
        let _ = session.run(&sql.replace("{v}", SECRET));
        assert!(session.answers_itself(), "{sql}");
    }
    drop(session);
    nothing_was_sent(pair);
}
