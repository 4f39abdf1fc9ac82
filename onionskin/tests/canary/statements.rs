//! Statements of everyday life, those that fail, and unusual ones, each with values that occur
//! once.

use super::*;

/// The statements of everyday life, in the text protocol.
pub fn write_what_must_succeed(session: &mut Session, make: &mut Canaries) {
    let (e, n, d) = (make.text(), make.integer(), make.date());
    session.must(&format!(
        "INSERT INTO app.t (s, e, n, d, x, b, l, open) VALUES ('{}', '{e}', {n}, '{d}', {}, '{}', '{}', '{CONTROL}1')",
        make.text(),
        make.decimal(),
        make.text(),
        make.text().repeat(500),
    ));
    let rows: Vec<String> = (0..50)
        .map(|i| {
            format!(
                "('{}', '{}', '{}', '{}', '{CONTROL}{i}')",
                make.text(),
                make.text(),
                make.integer(),
                make.date()
            )
        })
        .collect();
    session.must(&format!(
        "INSERT INTO app.t (s, e, n, d, open) VALUES {}",
        rows.join(", ")
    ));
    let hex: String = make.text().bytes().map(|b| format!("{b:02x}")).collect();
    session.must(&format!(
        "INSERT INTO app.t (b, open) VALUES (X'{hex}', '{CONTROL}2')"
    ));
    session.must(&format!(
        "INSERT INTO app.t (b, open) VALUES (0x{hex}, '{CONTROL}2')"
    ));

    for (condition, matches) in [
        (format!("e = '{e}'"), 1),
        (format!("n = {n}"), 1),
        (format!("d = '{d}'"), 1),
        (format!("e IN ('{}', '{e}')", make.text()), 1),
        (format!("n BETWEEN {INTEGER} AND {}", make.integer()), 51),
        (format!("d > '{}'", "2097-03-01 00:00:00"), 51),
        (format!("n > {n} AND e <> '{}'", make.text()), 50),
        (format!("l LIKE '{TEXT}%'"), 1),
        (format!("l LIKE '%{TEXT}_00%' AND n = {n}"), 1),
        (format!("l NOT LIKE '%{}%'", make.text()), 1),
    ] {
        let found = session.text(&format!("SELECT COUNT(*) FROM app.t WHERE {condition}"));
        assert_eq!(found.unwrap(), matches.to_string(), "{condition}");
        session.must(&format!(
            "SELECT s, e, n, d, x, b, open FROM app.t WHERE {condition} ORDER BY id"
        ));
        session.must(&format!("EXPLAIN SELECT id FROM app.t WHERE {condition}"));
    }
    // The old value goes to the undo log.
    session.must(&format!(
        "UPDATE app.t SET s = '{}', n = {} WHERE e = '{e}'",
        make.text(),
        make.integer()
    ));
    session.must(&format!(
        "UPDATE app.t SET open = '{CONTROL}3', d = '{}' WHERE id = 2",
        make.date()
    ));
    session.must(&format!(
        "INSERT INTO app.t (e, n, open) VALUES ('{e}', {}, '{CONTROL}4') ON DUPLICATE KEY UPDATE n = VALUES(n)",
        make.integer()
    ));
    session.must(&format!(
        "REPLACE INTO app.t (e, s, open) VALUES ('{e}', '{}', '{CONTROL}5')",
        make.text()
    ));
    session.must(&format!("DELETE FROM app.t WHERE e = '{}'", make.text()));
    session.must("BEGIN");
    session.must(&format!(
        "INSERT INTO app.t (e, s) VALUES ('{}', '{}')",
        make.text(),
        make.text()
    ));
    session.must("ROLLBACK");
}

/// The same with parameters, in the binary protocol.
pub fn write_prepared(session: &mut Session, make: &mut Canaries) {
    for i in 0..5 {
        let parameters: Vec<Value> = vec![
            make.text().into(),
            make.text().into(),
            make.integer().into(),
            make.date().into(),
            make.decimal().into(),
            make.text().into_bytes().into(),
            make.text().repeat(20 << i).into(),
            format!("{CONTROL}p{i}").into(),
        ];
        let found = [
            parameters[1].clone(),
            parameters[2].clone(),
            parameters[3].clone(),
        ];
        session
            .execute(
                "INSERT INTO app.t (s, e, n, d, x, b, l, open) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                parameters,
            )
            .unwrap();
        let text = session.execute_text(
            "SELECT COUNT(*) FROM app.t WHERE e = ? AND n >= ? AND d <= ?",
            found.to_vec(),
        );
        assert_eq!(text.unwrap(), "1");
        let pattern = format!("%{}%", make.text());
        let text = session.execute_text("SELECT COUNT(*) FROM app.t WHERE l LIKE ?", (pattern,));
        assert_eq!(text.unwrap(), "0");
        session
            .execute(
                "UPDATE app.t SET s = ? WHERE e = ?",
                (make.text(), found[0].clone()),
            )
            .unwrap();
    }
    // PREPARE as a statement. It may be refused.
    let (s, e) = (make.text(), make.text());
    let statements = [
        format!("SET @e = '{CONTROL}'"),
        format!("PREPARE p FROM 'INSERT INTO app.t (s, e) VALUES (''{s}'', ''{e}'')'"),
        "EXECUTE p".into(),
        "DEALLOCATE PREPARE p".into(),
    ];
    run_all(session, &statements);
}

/// Values that the server refuses: what stands in the error, and in the logs, is the proxy's
/// responsibility as well.
pub fn fail_in_every_way(session: &mut Session, make: &mut Canaries) {
    session.must("SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'");
    let e = make.text();
    session.must(&format!(
        "INSERT INTO app.t (e, open) VALUES ('{e}', '{CONTROL}6')"
    ));
    assert_eq!(
        session.must_fail(&format!("INSERT INTO app.t (e) VALUES ('{e}')")),
        1062
    );
    assert_eq!(
        session
            .execute("INSERT INTO app.t (e) VALUES (?)", (&e,))
            .unwrap_err()
            .code,
        1062
    );
    let update = format!("UPDATE app.t SET e = '{e}' WHERE id = 3");
    assert_eq!(session.must_fail(&update), 1062);
    let long = make.text().repeat(20);
    assert_eq!(
        session.must_fail(&format!("INSERT INTO app.t (s) VALUES ('{long}')")),
        1406
    );
    let huge = format!("{}000000", make.integer());
    assert_eq!(
        session.must_fail(&format!("INSERT INTO app.t (n) VALUES ({huge})")),
        1264
    );
    let word = make.text();
    session.must_fail(&format!("INSERT INTO app.t (n) VALUES ('{word}')"));
    session.must_fail(&format!("INSERT INTO app.t (d) VALUES ('{word}')"));
    session.must_fail(&format!(
        "INSERT INTO app.t (d) VALUES ('{DATE}9 99:99:99')"
    ));
    session.must_fail(&format!(
        "INSERT INTO app.t (nothing, s) VALUES (1, '{word}')"
    ));
    session.must_fail(&format!("INSERT INTO app.t (s, e) VALUES ('{word}')"));
    // Warnings quote values, too.
    session.must("SET SESSION sql_mode = ''");
    run_all(
        session,
        &[
            format!("INSERT IGNORE INTO app.t (s, n) VALUES ('{long}', '{word}')"),
            "SHOW WARNINGS".into(),
        ],
    );
    session.must("SET SESSION sql_mode = DEFAULT");
}

/// Statements that are cut short, unusual, or beyond what the proxy understands.
const UNUSUAL: &[&str] = &[
    "INSERT INTO app.t (s) VALUES ('{t}'",
    "INSERT INTO app.t (s) VALUES ('{t}",
    "INSERT INTO app.t (s) VALUES (\"{t}\")",
    "INSERT INTO app.t SET s = '{t}', e = '{t}'",
    "INSERT INTO app.t VALUES (NULL, '{t}', '{t}', {n}, '{d}', {x}, '{t}', '{t}', 'o')",
    "INSERT INTO app.t (s) SELECT '{t}'",
    "INSERT INTO app.t (s) VALUES ROW('{t}')",
    "INSERT INTO app.t (s, e) VALUES ROW('{t}', '{t}'), ROW(DEFAULT, '{t}') ON DUPLICATE KEY UPDATE s = '{t}'",
    "INSERT INTO app.t (s) VALUES ROW('{t}'), ('{t}')",
    "INSERT INTO app.t (s) VALUES ROW('{t}') LIMIT 1",
    "INSERT INTO app.t (s) VALUES ROW('{t}') AS n",
    "INSERT INTO app.t (s) VALUES ROW(ROW('{t}'))",
    "INSERT INTO app.t (open) VALUES ROW((SELECT s FROM app.t WHERE s = '{t}'))",
    "VALUES ROW('{t}', (SELECT s FROM app.t WHERE e = '{t}'))",
    "PREPARE p FROM 'INSERT INTO app.t (s) VALUES ROW(''{t}'')'",
    "INSERT INTO app.t (s) SELECT s FROM app.t WHERE e = '{t}'",
    "INSERT INTO app.t (open) SELECT s FROM app.t",
    "INSERT INTO app.t (open) SELECT CONCAT(s, '{t}') FROM app.t",
    "INSERT INTO app.t (s) VALUES (CONCAT('{t}', '{t}'))",
    "INSERT INTO app.t (s) VALUES (_utf8mb4'{t}')",
    "INSERT INTO app.t (s) VALUES (N'{t}')",
    "INSERT INTO app.t (s) VALUES ('{t}' '{t}')",
    "INSERT INTO app.t (s) VALUES (UPPER('{t}'))",
    "INSERT INTO app.t (n) VALUES ({n} + 1)",
    "INSERT INTO app.t (n) VALUES (-{n})",
    "INSERT INTO app.t (x) VALUES (1e0 * {x})",
    "INSERT INTO app.t (s) VALUES (COMPRESS('{t}'))",
    "/*!50000 INSERT INTO app.t (s) VALUES ('{t}') */",
    "INSERT /*! INTO app.t (s) */ VALUES ('{t}')",
    "insert into APP.T (s) values ('{t}')",
    "INSERT INTO `app`.`t` (`s`) VALUES ('{t}')",
    "INSERT INTO app . t (s) VALUES ('{t}')",
    "UPDATE app.t SET open = s",
    "UPDATE app.t SET open = CONCAT(s, '')",
    "UPDATE app.t a, app.t b SET a.s = '{t}' WHERE a.e = b.e",
    "UPDATE app.t SET s = CONCAT(s, '{t}')",
    "UPDATE app.t SET n = n + 1 WHERE n = {n}",
    "UPDATE app.t SET n = {n} WHERE s = '{t}'",
    "UPDATE app.t SET s = CASE id WHEN 1 THEN '{t}' ELSE '{t}' END",
    "UPDATE app.t SET s = IF(id = 1, '{t}', s)",
    "SELECT * FROM app.t WHERE s = '{t}'",
    "SELECT * FROM app.t WHERE s LIKE '%{t}%'",
    "SELECT * FROM app.t WHERE e LIKE '{t}%'",
    "SELECT * FROM app.t WHERE CONCAT(e, '') = '{t}'",
    "SELECT * FROM app.t WHERE e > '{t}'",
    "SELECT * FROM app.t WHERE (e, n) = ('{t}', {n})",
    "SELECT * FROM app.t WHERE n + 1 = {n}",
    "SELECT * FROM app.t WHERE '{t}' = e AND {n} < n",
    "SELECT * FROM app.t WHERE e = '{t}' COLLATE utf8mb4_bin",
    "SELECT CONCAT(s, '{t}') FROM app.t",
    "SELECT COALESCE(s, '{t}') FROM app.t",
    "SELECT (SELECT COUNT(*) FROM app.t WHERE e = '{t}')",
    "SELECT * FROM (SELECT * FROM app.t WHERE e = '{t}') x",
    "SELECT * FROM app.t HAVING e = '{t}'",
    "SELECT s FROM app.t WHERE e = '{t}' UNION SELECT '{t}'",
    "WITH x AS (SELECT * FROM app.t WHERE e = '{t}') SELECT * FROM x",
    "SELECT s INTO @s FROM app.t LIMIT 1",
    "SELECT * FROM app.t WHERE e = '{t}' INTO OUTFILE 'canary.out'",
    "SELECT * FROM app.t WHERE e = '{t}' PROCEDURE ANALYSE()",
    "DELETE FROM app.t WHERE s = '{t}'",
    "DELETE FROM app.t WHERE e = '{t}' OR s IS NULL AND n = {n}",
    "REPLACE app.t SELECT 1, '{t}', '{t}', {n}, '{d}', {x}, '{t}', '{t}', 'o'",
    "CREATE TABLE app.copy AS SELECT * FROM app.t",
    "CREATE TABLE app.copy SELECT '{t}' AS s FROM app.t",
    "CREATE VIEW app.v AS SELECT * FROM app.t WHERE e = '{t}'",
    // A default is part of the definition, which the server may see.
    "ALTER TABLE app.t ALTER COLUMN s SET DEFAULT 'visible'",
    "ALTER TABLE app.t ADD COLUMN more VARCHAR(60) AS (CONCAT(s, '{t}'))",
    "ALTER TABLE app.t PARTITION BY RANGE (n) (PARTITION p VALUES LESS THAN ({n}))",
    "CREATE TRIGGER app.g BEFORE INSERT ON app.t FOR EACH ROW SET NEW.s = '{t}'",
    "CREATE PROCEDURE app.p() INSERT INTO app.t (s) VALUES ('{t}')",
    "CALL app.p()",
    "CREATE EVENT app.ev ON SCHEDULE EVERY 1 DAY DO UPDATE app.t SET s = '{t}'",
    "BEGIN NOT ATOMIC INSERT INTO app.t (s) VALUES ('{t}'); END",
    "EXECUTE IMMEDIATE 'INSERT INTO app.t (s) VALUES (''{t}'')'",
    "HANDLER app.t OPEN",
    "LOCK TABLES app.t WRITE",
    "UNLOCK TABLES",
    "INSERT INTO app.t (s) VALUES ('{t}') RETURNING s",
    "INSERT INTO app.t (s) VALUES ROW('{t}')",
    "INSERT INTO app.t (s) VALUES ('{t}') AS new ON DUPLICATE KEY UPDATE s = new.s",
    "TABLE app.t",
    "DO (SELECT COUNT(*) FROM app.t WHERE e = '{t}')",
    "SET @x = (SELECT COUNT(*) FROM app.t WHERE e = '{t}')",
    "EXPLAIN INSERT INTO app.t (s) VALUES ('{t}')",
    "EXPLAIN FORMAT=JSON SELECT * FROM app.t WHERE e = '{t}'",
    "ANALYZE FORMAT=JSON SELECT * FROM app.t WHERE e = '{t}'",
    "EXPLAIN ANALYZE SELECT * FROM app.t WHERE e = '{t}'",
    "EXPLAIN ANALYZE UPDATE app.t SET e = '{t}'",
    "ANALYZE SELECT * FROM app.t WHERE e = '{t}'",
    "DESCRIBE SELECT * FROM app.t WHERE e = '{t}'",
    "SELECT 1; INSERT INTO app.t (s) VALUES ('{t}')",
    "INSERT INTO app.t (s) VALUES ('{t}'); INSERT INTO app.t (s) VALUES ('{t}'",
];

/// What is cut short, unusual, or beyond what the proxy understands. Any answer is right as long as
/// nothing leaks.
pub fn mangle(session: &mut Session, make: &mut Canaries) {
    let mut statements = Vec::new();
    for template in UNUSUAL {
        statements.push(make.filled(template));
    }
    let succeeded = run_all(session, &statements);
    announce(&format!(
        "canary: {succeeded} of {} unusual statements were executed, the others refused",
        statements.len()
    ));
    // The same from the current database, without its name, under other lexical rules.
    session.must("USE app");
    for mode in [
        "ANSI_QUOTES",
        "NO_BACKSLASH_ESCAPES",
        "ANSI",
        "PIPES_AS_CONCAT",
        "HIGH_NOT_PRECEDENCE",
    ] {
        session.must(&format!("SET SESSION sql_mode = '{mode}'"));
        let mut statements = vec![
            format!("INSERT INTO t (s) VALUES ('{}')", make.text()),
            format!("INSERT INTO \"t\" (\"s\") VALUES ('{}')", make.text()),
            format!("INSERT INTO t (s) VALUES ('it''s {}')", make.text()),
            format!("INSERT INTO t (s) VALUES ('a' || '{}')", make.text()),
        ];
        // Where these are no strings, they hold names, which are looked up on the server.
        if mode == "NO_BACKSLASH_ESCAPES" {
            statements.push(format!(
                "INSERT INTO t (s, e) VALUES ('\\', '{} -- ')",
                make.text()
            ));
        }
        if !mode.starts_with("ANSI") {
            statements.push(format!("SELECT * FROM t WHERE e = \"{}\"", make.text()));
        }
        run_all(session, &statements);
    }
    session.must("SET SESSION sql_mode = DEFAULT");
}
