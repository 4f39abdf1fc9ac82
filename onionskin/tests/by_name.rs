//! Statements that are prepared by name, in SQL: PREPARE, EXECUTE, DEALLOCATE PREPARE, EXECUTE
//! IMMEDIATE. Answers are a plain server's, and a text that touches something protected never
//! reaches the server.

use ::mysql::{ChangeUserOpts, Value};
use onionskin_testkit::*;

on_both_servers!(
    texts_run_with_the_values_of_variables,
    errors_are_the_servers,
    what_was_prepared_stays_what_it_was,
    nothing_reaches_the_server,
    values_in_other_letters_are_converted_first,
    variables_of_other_character_sets,
    strings_in_a_row,
    compound_statements,
    a_text_that_is_forgotten_ends_mysqls_list,
);

const USER: &str = "CREATE TABLE user (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) {eq, range}, age INT {eq, range}, wage DECIMAL(10,2) {}, \
     born DATE {range}, note TEXT {}, city VARCHAR(20), seen BIGINT UNSIGNED, KEY (name)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci";
const ROWS: &str = "INSERT INTO user (name, age, wage, born, note, city, seen) VALUES ('Alice', 31, 100.50, '1990-05-01', 'first', 'Bern', 1), \
     ('bob', 17, 2.25, '2008-01-31', NULL, 'Rome', 18446744073709551615), ('carol', 45, 7, NULL, 'last', NULL, 7)";
const OPEN: &str = "CREATE TABLE open (id INT PRIMARY KEY, word VARCHAR(40)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci";

/// MySQL forgets what the last statement has warned of with DEALLOCATE PREPARE, MariaDB keeps it.
fn a_text_that_is_forgotten_ends_mysqls_list(kind: Kind) {
    const QUESTIONS: [&str; 4] = [
        "SHOW WARNINGS",
        "SELECT @@warning_count",
        "SHOW COUNT(*) WARNINGS",
        "SELECT @@error_count, ROW_COUNT(), FOUND_ROWS()",
    ];
    const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, d DATETIME, y YEAR {eq, range})";
    let Some(mut pair) = Pair::with_engine(kind, TABLE) else {
        return;
    };
    pair.run("INSERT INTO t VALUES (1, '2020-01-31 10:11:12', 1901)");
    for end in ["DROP PREPARE one", "DEALLOCATE PREPARE one", "SET @x = 1"] {
        for question in QUESTIONS {
            pair.same("PREPARE one FROM 'SELECT y, id FROM t WHERE d < ?'");
            pair.same("SET @p = 20201301");
            pair.same("EXECUTE one USING @p");
            pair.same(end);
            let said = pair.same(question);
            if question == "SHOW WARNINGS" {
                let is_kept = said.contains("1292");
                assert_eq!(is_kept, kind == Kind::MariaDb, "{end}: {said}");
            }
        }
    }
}

fn stage(kind: Kind) -> Option<Pair> {
    let mut stage = Pair::start(kind, &[USER, OPEN])?;
    stage.both(ROWS);
    stage.both("INSERT INTO open VALUES (1, 'alice'), (2, 'x')");
    Some(stage)
}

/// Runs a statement on both: the same answer, or the same error.
fn alike(stage: &mut Pair, sql: &str) {
    let (a, b) = (stage.plain.run(sql), stage.protected.run(sql));
    match (a, b) {
        (Ok(a), Ok(b)) => {
            let shape = |o: &onionskin_testkit::Outcome| -> Vec<_> {
                let sets = o.sets.iter();
                sets.map(|s| {
                    let columns: Vec<_> = s.columns.iter().map(|c| (c.0.clone(), c.1)).collect();
                    (columns, s.rows.clone())
                })
                .collect()
            };
            assert_eq!(shape(&a), shape(&b), "{sql}");
            let counts = |o: &onionskin_testkit::Outcome| (o.affected, o.insert_id, o.warnings);
            assert_eq!(counts(&a), counts(&b), "{sql}");
        }
        (Err(a), Err(b)) => {
            assert_eq!(
                (a.code, &a.state),
                (b.code, &b.state),
                "{sql}\n→ {a}\n→ {b}"
            );
        }
        (a, b) => panic!("{sql}\n→ {a:?}\n→ {b:?}"),
    }
}

/// Runs a statement that the proxy has to refuse with this code.
fn refused(stage: &mut Pair, sql: &str, code: &str) {
    match stage.protected.run(sql) {
        Ok(outcome) => panic!("{sql}\n→ succeeded: {outcome:?}"),
        Err(e) => assert!(e.message.starts_with(code), "{sql}\n→ {e}"),
    }
}

fn texts_run_with_the_values_of_variables(kind: Kind) {
    let Some(mut stage) = stage(kind) else { return };
    several_statements_in_one_text(&mut stage);
    for sql in [
        "PREPARE s FROM 'SELECT id, name, age, wage, born FROM user WHERE name = ?'",
        "SET @n = 'ALICE'",
        "EXECUTE s USING @n",
        "EXECUTE S USING @n",
        "SELECT ROW_COUNT()",
        "SET @n = NULL",
        "EXECUTE s USING @n",
        "EXECUTE s USING @never_set",
        "EXECUTE s USING @`n`",
        // another statement of the same name
        "PREPARE S FROM 'SELECT name FROM user WHERE age > ? AND age < ? ORDER BY age LIMIT ?'",
        "SET @a = 10, @b = 40, @c = 1",
        "EXECUTE s USING @a, @b, @c",
        "SET @c = 5",
        "EXECUTE s USING @a, @b, @c",
        // every kind of value
        "PREPARE i FROM 'INSERT INTO user (name, age, wage, born, note, city, seen) VALUES (?, ?, ?, ?, ?, ?, ?)'",
        "SET @n = 'd''A\\\\é', @a = -5, @w = 12.50, @d = '2001-02-03', @t = 'x', @u = CAST(9 AS UNSIGNED)",
        "EXECUTE i USING @n, @a, @w, @d, @t, @n, @u",
        "SELECT LAST_INSERT_ID(), ROW_COUNT()",
        "SET @id = LAST_INSERT_ID()",
        "SET @w = 1.25e2, @a = '77', @t = _binary'b', @n = _latin1 0xe9",
        "EXECUTE i USING @n, @a, @w, @d, @t, @t, @a",
        "EXECUTE i USING @never, @never, @never, @never, @never, @never, @never",
        "SELECT id, name, age, wage, born, note, city, seen FROM user ORDER BY id",
        "PREPARE u FROM 'UPDATE user SET age = age + ?, note = ? WHERE id = ?'",
        "SET @one = 1, @t = 'new'",
        "EXECUTE u USING @one, @t, @id",
        "EXECUTE u USING @one, @t, @id",
        "SELECT age, note FROM user WHERE id = @id",
        "PREPARE d FROM 'DELETE FROM user WHERE name IN (?, ?) AND age BETWEEN ? AND ?'",
        "SET @n = 'Bob', @m = 'nobody', @a = 0, @b = 100",
        "EXECUTE d USING @n, @m, @a, @b",
        "SELECT COUNT(*) FROM user",
        // finished by the proxy and by the scratch engine
        "PREPARE f FROM 'SELECT SUM(age), MAX(wage) FROM user WHERE wage > ?'",
        "SET @w = 1.5",
        "EXECUTE f USING @w",
        "PREPARE f FROM 'SELECT UPPER(name) AS n, age * 2 AS b FROM user WHERE CONCAT(name, ?) = ? ORDER BY id'",
        "SET @x = '!', @y = 'alice!'",
        "EXECUTE f USING @x, @y",
        "PREPARE f FROM 'SELECT u.name, o.word FROM user u JOIN open o ON u.name = o.word WHERE o.id = ?'",
        "EXECUTE f USING @one",
        "PREPARE f FROM 'INSERT INTO open SELECT id + ?, city FROM user WHERE age = ?'",
        "SET @k = 100, @a = 45",
        "EXECUTE f USING @k, @a",
        "SELECT * FROM open ORDER BY id",
        // no parameters; the text in a variable
        "SET @q = 'SELECT COUNT(*), MIN(age) FROM user'",
        "PREPARE q FROM @q",
        "SET @q = 'SELECT 1'",
        "EXECUTE q",
        "PREPARE q FROM @q",
        "EXECUTE q",
        "SHOW WARNINGS",
        "PREPARE q FROM 'SHOW COLUMNS FROM user LIKE ''n%'''",
        "EXECUTE q",
        "PREPARE q FROM 'TRUNCATE TABLE open'",
        "EXECUTE q",
        "SELECT COUNT(*) FROM open",
        "DEALLOCATE PREPARE q",
        "DROP PREPARE f",
        // nothing protected is near
        "PREPARE o FROM 'INSERT INTO open VALUES (?, ?)'",
        "EXECUTE o USING @one, @n",
        "PREPARE o FROM 'SELECT ?, word FROM open'",
        "EXECUTE o USING @one",
        "PREPARE o FROM 'SET @@sql_mode = ''STRICT_ALL_TABLES,ANSI_QUOTES'''",
        "EXECUTE o",
        "SELECT \"name\" FROM \"user\" WHERE \"age\" = 31",
    ] {
        alike(&mut stage, sql);
    }
    if kind == Kind::MariaDb {
        for sql in [
            "SET SESSION sql_mode = DEFAULT",
            "EXECUTE IMMEDIATE 'SELECT name FROM user WHERE age = ?' USING 31",
            "EXECUTE IMMEDIATE 'SELECT name FROM user WHERE age = ? AND name = ?' USING @nothing, 'x'",
            "EXECUTE IMMEDIATE 'INSERT INTO user (name, age) VALUES (?, ?)' USING 'eve', -3",
            "SET @q = 'SELECT name, age FROM user ORDER BY id DESC LIMIT 1'",
            "EXECUTE IMMEDIATE @q",
            "EXECUTE IMMEDIATE 'CREATE TABLE made (a INT)'",
            "EXECUTE IMMEDIATE 'INSERT INTO made VALUES (?)' USING 5 ",
            "EXECUTE IMMEDIATE 'SELECT * FROM made'",
            "PREPARE s FROM 'SELECT name FROM user WHERE name = ?'",
            "EXECUTE s USING 'alice'",
            "EXECUTE s USING NULL",
        ] {
            alike(&mut stage, sql);
        }
    }
}

fn errors_are_the_servers(kind: Kind) {
    let Some(mut stage) = stage(kind) else { return };
    what_cannot_be_told_is_refused(kind, &mut stage);
    sessions_that_begin_again_have_none(&mut stage);
    for sql in [
        "EXECUTE nobody",
        "DEALLOCATE PREPARE nobody",
        "PREPARE s FROM 'SELECT name FROM user WHERE age = ?'",
        "EXECUTE s",
        "EXECUTE s USING @a, @b",
        "DEALLOCATE PREPARE s",
        "EXECUTE s USING @a",
        "DEALLOCATE PREPARE s",
        "PREPARE s FROM 'SELECT name FROM user WHERE age = 31'",
        // what fails leaves nothing behind
        "PREPARE s FROM 'SELECT nothing FROM user'",
        "SHOW WARNINGS",
        "EXECUTE s",
        "PREPARE s FROM 'SELECT name FROM user WHERE age = 31'",
        "PREPARE s FROM 'SELECT nothing FROM open'",
        "EXECUTE s",
        "PREPARE s FROM 'SELECT word FROM open'",
        "PREPARE s FROM 'SELECT city, nothing FROM user'",
        "EXECUTE s",
        "PREPARE s FROM 'SELECT name FROM user; SELECT 1'",
        "PREPARE s FROM 'SELECT name FROM user;'",
        "EXECUTE s",
        "PREPARE s FROM 'PREPARE t FROM ''SELECT name FROM user'''",
        "PREPARE s FROM 'DEALLOCATE PREPARE t'",
        "PREPARE s FROM 'INSERT INTO user (name) VALUES (?)'",
        "SET @long = REPEAT('x', 41)",
        "EXECUTE s USING @long",
        "SHOW WARNINGS",
        "PREPARE s FROM 'INSERT INTO user (id, name) VALUES (?, ?)'",
        "SET @one = 1",
        "EXECUTE s USING @one, @one",
        "PREPARE s FROM @nothing",
        "PREPARE s FROM ''",
    ] {
        alike(&mut stage, sql);
    }
    for sql in [
        "PREPARE s FROM 'SELECT name FROM user'",
        "EXECUTE s",
        "DEALLOCATE PREPARE s",
    ] {
        // servers do not prepare these
        let code = |session: &mut Session| session.execute(sql, ()).map_err(|e| e.code).err();
        assert_eq!(code(&mut stage.plain), Some(1295), "{sql}");
        assert_eq!(code(&mut stage.protected), Some(1295), "{sql}");
    }
}

fn what_cannot_be_told_is_refused(kind: Kind, stage: &mut Pair) {
    for text in [
        "SELECT ?, name FROM user",
        "SELECT name FROM user ORDER BY ?",
        "SELECT age, COUNT(*) FROM user GROUP BY ?",
    ] {
        refused(stage, &format!("PREPARE s FROM '{text}'"), "OS1016");
        assert_eq!(stage.protected.must_fail("EXECUTE s"), 1243);
    }
    if kind == Kind::MariaDb {
        refused(
            stage,
            "PREPARE s FROM CONCAT('SELECT ', 'name FROM user')",
            "OS1016",
        );
        refused(
            stage,
            "EXECUTE IMMEDIATE CONCAT('SELECT ', 'name FROM user')",
            "OS1016",
        );
        stage
            .protected
            .must("PREPARE s FROM 'SELECT name FROM user WHERE age = ?'");
        refused(stage, "EXECUTE s USING 30 + 1", "OS1016");
    }
    // numbers without a sign count otherwise in expressions, and so do texts of other collations
    stage.both("PREPARE s FROM 'SELECT name FROM user WHERE seen - ? < 0'");
    stage.both("SET @u = CAST(5 AS UNSIGNED), @l = 1.5");
    refused(stage, "EXECUTE s USING @u", "OS1016");
    stage.both("PREPARE s FROM 'SELECT name FROM user LIMIT ?'");
    refused(stage, "EXECUTE s USING @l", "OS1016");
    // the question would be about the proxy's own statements
    stage.protected.must("PREPARE w FROM 'SELECT ROW_COUNT()'");
    stage.both("UPDATE user SET age = age + 1 WHERE id < 3");
    refused(stage, "EXECUTE w", "OS1001");
}

fn what_was_prepared_stays_what_it_was(kind: Kind) {
    let Some(mut stage) = stage(kind) else { return };
    tables_that_become_protected_are_noticed(&mut stage);
    databases_and_settings_of_the_preparation_count(&mut stage);
    a_refused_preparation_frees_the_name(&mut stage);
}

fn databases_and_settings_of_the_preparation_count(stage: &mut Pair) {
    for sql in [
        "CREATE DATABASE elsewhere",
        "PREPARE s FROM 'SELECT name FROM user WHERE age = ?'",
        "PREPARE u FROM 'UPDATE user SET age = age + 1, city = ? WHERE name = ''bob'''",
        "PREPARE o FROM 'SELECT word FROM open'",
        "USE elsewhere",
        "SET @a = 31, @c = 'Oslo'",
        "EXECUTE s USING @a",
        "SELECT DATABASE()",
        "EXECUTE u USING @c",
        "SELECT ROW_COUNT()",
        "EXECUTE o",
        "SELECT age, city FROM app.user WHERE id = 2",
        "SELECT COUNT(*) FROM user",
        "SELECT DATABASE()",
        "PREPARE q FROM 'SELECT name FROM app.user WHERE age = 31'",
        "USE app",
        "EXECUTE q",
        "EXECUTE s USING @a",
    ] {
        alike(stage, sql);
    }
    // a table of the same name, unprotected: what was prepared for the other stays the other's
    stage.both("CREATE TABLE elsewhere.user (name VARCHAR(9), age INT)");
    stage.both("INSERT INTO elsewhere.user VALUES ('plain', 31)");
    for sql in [
        "USE elsewhere",
        "EXECUTE s USING @a",
        "PREPARE s FROM 'SELECT name FROM user WHERE age = ?'",
        "EXECUTE s USING @a",
        "USE app",
        "EXECUTE s USING @a",
    ] {
        alike(stage, sql);
    }
    let protected = &mut stage.protected;
    protected.must("PREPARE s FROM 'SELECT name FROM user WHERE name = \"Alice\"'");
    protected.must("SET sql_mode = 'ANSI_QUOTES'");
    refused(stage, "EXECUTE s", "OS1016");
    stage.both("SET sql_mode = DEFAULT");
    // literals have the collation that the connection had
    for collation in [
        "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
        "SET collation_connection = utf8mb4_general_ci",
    ] {
        stage.both("SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci");
        alike(stage, "PREPARE s FROM 'SELECT name, ''x'' FROM user'");
        alike(stage, "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci");
        alike(stage, "EXECUTE s");
        alike(stage, collation);
        refused(stage, "EXECUTE s", "OS1016");
    }
    stage.both("SET NAMES utf8mb4");
}

/// A server forgets the statement of a name before it looks at the new text. So it is where the new
/// one is refused.
fn a_refused_preparation_frees_the_name(stage: &mut Pair) {
    const OF_PROXY: &str = "SELECT name FROM user";
    const OF_SERVER: &str = "SELECT word FROM open";
    for before in [OF_PROXY, OF_SERVER] {
        let refusals = [
            // by its text
            ("SET @a = 1", "SELECT ?, name FROM user", "OS1016"),
            // by the session's settings, before the text is looked at
            ("SET character_set_results = sjis", OF_SERVER, "OS1019"),
        ];
        for (setting, text, code) in refusals {
            alike(stage, &format!("PREPARE s FROM '{before}'"));
            stage.protected.must(setting);
            refused(stage, &format!("PREPARE s FROM '{text}'"), code);
            stage.protected.must("SET NAMES utf8mb4");
            assert_eq!(stage.protected.must_fail("EXECUTE s"), 1243, "{before}");
            let dropped = stage.protected.must_fail("DEALLOCATE PREPARE s");
            assert_eq!(dropped, 1243, "{before}");
        }
    }
    // among several, and under a name that the proxy does not forget at the server
    alike(stage, &format!("PREPARE s FROM '{OF_SERVER}'"));
    refused(
        stage,
        "SET @a = 1; PREPARE s FROM 'SELECT ?, name FROM user'",
        "OS1016",
    );
    assert_eq!(stage.protected.must_fail("EXECUTE s"), 1243);
    alike(stage, &format!("PREPARE `é` FROM '{OF_SERVER}'"));
    refused(stage, &format!("PREPARE `é` FROM '{OF_PROXY}'"), "OS1016");
    refused(stage, "EXECUTE `é`", "OS1016");
}

fn tables_that_become_protected_are_noticed(stage: &mut Pair) {
    let mut other = stage.proxy.connect_to("app");
    stage.both("CREATE TABLE soon (id INT PRIMARY KEY, word VARCHAR(40))");
    stage.both("INSERT INTO soon VALUES (1, 'plain')");
    for sql in [
        "PREPARE r FROM 'SELECT * FROM soon WHERE id = ?'",
        "PREPARE w FROM 'INSERT INTO soon VALUES (?, ?)'",
        "PREPARE a FROM 'SELECT * FROM soon'",
        "SET @i = 1",
        "EXECUTE r USING @i",
        "EXECUTE a",
    ] {
        alike(stage, sql);
    }
    // another session puts a protected table in its place
    other.must("CREATE TABLE next (id INT PRIMARY KEY, word VARCHAR(40) ENCRYPTED FOR (eq))");
    other.must("INSERT INTO next VALUES (1, 'plain')");
    other.must("RENAME TABLE soon TO before_it, next TO soon");
    for sql in [
        "EXECUTE a",
        "EXECUTE r USING @i",
        "SET @i = 2, @w = 'word'",
        "EXECUTE w USING @i, @w",
        "EXECUTE a",
    ] {
        alike(stage, sql);
    }
    let mut direct = stage.behind.connect();
    direct.must("USE app");
    assert_eq!(direct.must_fail("SELECT word FROM soon"), 1054);
    assert_eq!(direct.text("SELECT COUNT(*) FROM soon").unwrap(), "2");
    // and a temporary one hides it
    let (definition, bare) =
        with_and_without_protection("CREATE TEMPORARY TABLE open (id INT, word VARCHAR(40) {eq})");
    stage.both("PREPARE t FROM 'INSERT INTO open VALUES (?, ?)'");
    stage.plain.must(&bare);
    stage.protected.must(&definition);
    for sql in [
        "EXECUTE t USING @i, @w",
        "SELECT * FROM open WHERE word = 'word'",
        "DROP TEMPORARY TABLE open",
        "SELECT COUNT(*) FROM open",
    ] {
        alike(stage, sql);
    }
    // and back
    stage.both("PREPARE p FROM 'SELECT * FROM soon ORDER BY id'");
    other.must("DROP TABLE soon");
    other.must("CREATE TABLE soon (id INT PRIMARY KEY, word VARCHAR(40))");
    stage.plain.must("TRUNCATE soon");
    alike(stage, "EXECUTE p");
}

fn sessions_that_begin_again_have_none(stage: &mut Pair) {
    let text = "PREPARE s FROM 'SELECT name FROM user WHERE age = 31'";
    stage.both(text);
    stage.plain.conn().reset().unwrap();
    stage.protected.conn().reset().unwrap();
    assert_eq!(stage.same_error("EXECUTE s"), 1243);
    stage.both(text);
    for session in [&mut stage.plain, &mut stage.protected] {
        session
            .conn()
            .change_user(ChangeUserOpts::default())
            .unwrap();
    }
    assert_eq!(stage.same_error("EXECUTE s"), 1243);
}

fn several_statements_in_one_text(stage: &mut Pair) {
    alike(
        stage,
        "SET @a = 31; PREPARE s FROM 'SELECT name FROM user WHERE age = ?'; EXECUTE s USING @a; DEALLOCATE PREPARE s; SELECT 1",
    );
    alike(
        stage,
        "SET @q = CONCAT('SELECT COUNT(*) FROM ', 'user'); PREPARE s FROM @q; EXECUTE s; EXECUTE s; DROP PREPARE s",
    );
    alike(
        stage,
        "PREPARE s FROM 'SELECT word FROM open'; EXECUTE s; EXECUTE nobody; SELECT 2",
    );
}

fn nothing_reaches_the_server(kind: Kind) {
    let Some(mut stage) = stage(kind) else { return };
    results_that_stay_with_the_server(&mut stage);
    texts_never_reach_the_server(&mut stage);
    stage.nothing_leaked();
}

fn texts_never_reach_the_server(stage: &mut Pair) {
    let s = SECRET;
    for sql in [
        "PREPARE s FROM 'INSERT INTO user (name, note) VALUES (''{s} 1'', ''{s}'')'",
        "EXECUTE s",
        "PREPARE s FROM 'UPDATE user SET note = ''{s} 2'' WHERE name = ''{s} 1'''",
        "EXECUTE s",
        "PREPARE s FROM 'SELECT id FROM user WHERE note LIKE ''%{s}%'' AND UPPER(name) <> ''{s}'''",
        "EXECUTE s",
        "PREPARE s FROM 'SELECT nothing FROM user WHERE name = ''{s}'''",
        "PREPARE s FROM 'SELECT FROM user WHERE name = ''{s}'''",
        "PREPARE s FROM 'INSERT INTO user (name) VALUES (''{s}'', 1)'",
        "PREPARE s FROM 'EXECUTE IMMEDIATE ''INSERT INTO user (name) VALUES (\"{s}\")'''",
        "PREPARE s FROM 'PREPARE t FROM ''INSERT INTO user (name) VALUES (\"{s}\")'''",
        "PREPARE s FROM 'INSERT INTO user (name) VALUES (''{s}'') /*!50000 , (''{s}'') */'",
        "EXECUTE IMMEDIATE 'INSERT INTO user (name) VALUES (''{s} 3'')'",
        "EXECUTE IMMEDIATE 'INSERT INTO user (name) VALUES (?)' USING '{s} 4'",
        "EXECUTE IMMEDIATE CONCAT('INSERT INTO user (name) VALUES (', '''{s}'')')",
        "PREPARE s FROM 'INSERT INTO user (name) VALUES (?)'",
        "EXECUTE s USING '{s} 5'",
        "EXECUTE s USING CONCAT('{s}', 6)",
        "PREPARE s FROM /*!50000 'INSERT INTO user (name) VALUES (''{s}'')' */",
        "/*!50000 PREPARE */ s FROM 'INSERT INTO user (name) VALUES (''{s}'')'",
        "/*!50000 PREPARE s FROM 'INSERT INTO user (name) VALUES (''{s}'')' */",
        "/*!100000 EXECUTE IMMEDIATE 'INSERT INTO user (name) VALUES (''{s}'')' */",
    ] {
        let sql = sql.replace("{s}", s);
        let _ = stage.protected.run(&sql);
        let _ = stage.protected.execute(&sql, ());
    }
    let stored = stage
        .protected
        .text(&format!("SELECT COUNT(*) FROM user WHERE note = '{s} 2'"));
    assert_eq!(stored.unwrap(), "1");
}

/// SELECT … INTO leaves values with the server: counts and plain columns may go there, what is
/// protected may not.
fn results_that_stay_with_the_server(stage: &mut Pair) {
    for sql in [
        "SELECT COUNT(*) INTO @n FROM user",
        "SELECT @n",
        "SELECT city, seen FROM user WHERE name = 'ALICE' INTO @c, @s",
        "SELECT @c, @s",
        "SELECT id FROM user WHERE age > 100 INTO @n",
        "SHOW WARNINGS",
        "SELECT @n",
        "SELECT id FROM user INTO @n",
        "SELECT id INTO @n FROM user WHERE age BETWEEN 30 AND 32 ORDER BY age LIMIT 1 FOR UPDATE",
        "SELECT @n, ROW_COUNT()",
        "SELECT COUNT(*) INTO @m FROM user u JOIN open o ON u.id = o.id",
        "SELECT @m",
        "SELECT nothing INTO @n FROM user",
        "SELECT id, city FROM user WHERE name = 'bob' INTO @n",
        "PREPARE s FROM 'SELECT COUNT(*) INTO @n FROM user WHERE age < ?'",
        "EXECUTE s USING @never",
        "SELECT @n",
        "EXPLAIN SELECT COUNT(*) INTO @n FROM open",
    ] {
        alike(stage, sql);
    }
    let execution = "SELECT COUNT(*) FROM user WHERE name = ? INTO @p";
    for session in [&mut stage.plain, &mut stage.protected] {
        session.execute(execution, ("carol",)).unwrap();
    }
    alike(stage, "SELECT @p");
    stage
        .protected
        .must(&format!("UPDATE user SET note = '{SECRET}' WHERE id = 1"));
    let s = SECRET;
    for sql in [
        "SELECT note INTO @v FROM user WHERE id = 1",
        "SELECT note FROM user WHERE id = 1 INTO @v",
        "SELECT id, note FROM user WHERE id = 1 INTO @i, @v",
        "SELECT MAX(name) INTO @v FROM user",
        "SELECT SUM(age) INTO @v FROM user",
        "SELECT UPPER(note) INTO @v FROM user WHERE id = 1",
        "SELECT COUNT(*) INTO @v FROM user WHERE note = '{s}'",
        "SELECT CONCAT(note, '!') FROM user WHERE id = 1 INTO @v",
        "SELECT note FROM user UNION SELECT note FROM user LIMIT 1 INTO @v",
        "SELECT x.note INTO @v FROM (SELECT note FROM user WHERE id = 1) x",
        "SELECT note FROM user INTO OUTFILE '/tmp/{s}'",
        "SELECT note INTO DUMPFILE '/tmp/{s}' FROM user WHERE id = 1",
        "SELECT id, note INTO OUTFILE '/tmp/x' CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' LINES TERMINATED BY 'x' FROM user",
        "SELECT @v := note FROM user WHERE id = 1",
        "SET @v = (SELECT note FROM user WHERE id = 1)",
    ] {
        let sql = sql.replace("{s}", s);
        let answer = stage.protected.run(&sql);
        let refused = answer.expect_err(&sql).message;
        let by_into = sql.contains(" INTO ") && !sql.contains("UNION") && !sql.contains("(SELECT");
        assert!(refused.starts_with("OS"), "{sql}\n→ {refused}");
        assert!(
            !by_into || refused.starts_with("OS1033"),
            "{sql}\n→ {refused}"
        );
        assert!(stage.protected.execute(&sql, ()).is_err(), "{sql}");
        assert!(
            stage
                .protected
                .run(&format!("PREPARE s FROM '{}'", sql.replace('\'', "''")))
                .is_err(),
            "{sql}"
        );
    }
    alike(stage, "SELECT @v");
}

/// MySQL converts the value to the column's character set before it looks for a row, and says 3988
/// where that would lose characters. MariaDB stores what is left, with a warning or an error.
fn values_in_other_letters_are_converted_first(kind: Kind) {
    const TABLE: &str = "CREATE TABLE letters (id INT PRIMARY KEY, s VARCHAR(9) COLLATE gbk_bin {eq}, w SET('a', 'é') COLLATE gbk_bin {eq}, \
         p VARCHAR(9) COLLATE gbk_bin, n VARCHAR(9) COLLATE latin1_general_ci {})";
    let Some(mut stage) = Pair::start(kind, &[TABLE]) else {
        return;
    };
    stage.both("INSERT INTO letters VALUES (1, 'a', 'a', 'a', 'a')");
    let texts = [
        "UPDATE letters SET s = ? WHERE id = ?",
        "UPDATE letters SET w = ? WHERE id = ?",
        "UPDATE letters SET p = ? WHERE id = ?",
        "UPDATE letters SET n = ? WHERE id = ?",
        "UPDATE letters SET s = 'new', p = ? WHERE id = ?",
        "UPDATE letters SET p = ?, s = 'newer' WHERE id = ? AND s = 'new'",
        "INSERT INTO letters (s, id) VALUES (?, 10 + ?)",
        "INSERT INTO letters (p, id) VALUES (?, 20 + ?)",
        "INSERT INTO letters (p, s, id) VALUES (?, 'x', 30 + ?) ON DUPLICATE KEY UPDATE s = 'y'",
        "REPLACE INTO letters (n, id) VALUES (?, 40 + ?)",
        "SELECT id FROM letters WHERE s = ? AND id = ?",
        "SELECT id FROM letters WHERE n = ? AND id = ?",
        "SELECT id FROM letters WHERE p = ? AND id = ?",
        "DELETE FROM letters WHERE p = ? AND s = 'new' AND id = ?",
    ];
    let mut done = 0;
    for names in ["latin1", "utf8mb4"] {
        for mode in ["STRICT_ALL_TABLES", ""] {
            stage.both(&format!("SET NAMES {names}, sql_mode = '{mode}'"));
            for value in ["'é'", "'a'", "_latin1 0xe9", "_utf8mb4 0xe29883", "1"] {
                stage.both(&format!("SET @v = {value}"));
                for row in ["1", "7", "NULL"] {
                    stage.both(&format!("SET @id = {row}"));
                    for text in texts {
                        let quoted = text.replace('\'', "''");
                        stage.both(&format!("PREPARE s FROM '{quoted}'"));
                        let execute = format!("EXECUTE s USING @v, @id -- {text}");
                        done += u32::from(stage.same_if_done(&execute));
                        stage.same("SELECT * FROM letters ORDER BY id");
                    }
                }
            }
        }
    }
    assert!(done > 300, "{done}");
    // and as parameters of the binary protocol
    let mut done = 0;
    for mode in ["STRICT_ALL_TABLES", ""] {
        stage.both(&format!("SET NAMES utf8mb4, sql_mode = '{mode}'"));
        for value in ["é", "☃", "a"] {
            for (row, text) in (1..8).flat_map(|row| texts.map(|text| (row, text))) {
                let parameters = [Value::from(value), Value::from(row)];
                done += u32::from(stage.same_if_done_with(text, &parameters));
                stage.same("SELECT * FROM letters ORDER BY id");
            }
        }
    }
    assert!(done > 300, "{done}");
}

/// Servers make a variable's text the connection's before a column of bytes takes it; MySQL does
/// not for a BIT.
fn variables_of_other_character_sets(kind: Kind) {
    const TABLE: &str = "CREATE TABLE v (id INT PRIMARY KEY, a VARBINARY(40) {eq}, b BIT(64) {eq}, c BLOB {}, \
        d VARCHAR(40) CHARACTER SET latin1 {eq}, e VARCHAR(40) CHARACTER SET utf8mb4 {eq}, \
        f VARBINARY(40), g BIT(64), h BLOB, i VARCHAR(40) CHARACTER SET latin1)";
    let Some(mut pair) = Pair::start(kind, &[TABLE]) else {
        return;
    };
    let values = [
        "_latin1 x'E9'",
        "_utf8mb4 x'C3A9'",
        "_utf8mb3 x'C3A9'",
        "_binary x'E9'",
        "_binary x'C3A9'",
        "x'E9'",
        "_ucs2 x'00E9'",
        "_cp1251 x'E9'",
        "_sjis x'83BF'",
        "_latin1 'abc'",
    ];
    let mut done = 0;
    for names in ["utf8mb4", "latin1"] {
        pair.both(&format!("SET NAMES {names}"));
        for value in values {
            pair.both(&format!("SET @v = {value}"));
            for column in "abcdefghi".chars() {
                for text in [
                    format!("INSERT INTO v (id, {column}) VALUES (1, ?)"),
                    format!("SELECT COUNT(*) FROM v WHERE {column} = ?"),
                    format!("UPDATE v SET {column} = ?"),
                ] {
                    pair.both(&format!("PREPARE s FROM '{text}'"));
                    let is_done = pair.same_if_done("EXECUTE s USING @v");
                    done += usize::from(is_done);
                    if text.starts_with("INSERT") {
                        pair.both("INSERT IGNORE INTO v (id) VALUES (1)");
                    }
                    pair.same(&format!("SELECT {column} FROM v"));
                }
                pair.both("DELETE FROM v");
            }
        }
    }
    println!("{done} of 540 executions are done");
    assert!(done > 300, "{done}");
}

/// MySQL takes one string as a text, MariaDB several in a row.
fn strings_in_a_row(kind: Kind) {
    let Some(mut stage) = stage(kind) else { return };
    for sql in [
        "PREPARE s FROM 'SELECT id, name FROM user ' 'WHERE id = 1'",
        "EXECUTE s",
        "PREPARE s FROM 'SELECT word FROM open WHERE id = 1'",
        "PREPARE s FROM 'SELECT ''a'' '\n  ', word FROM open'",
        "EXECUTE s",
        r#"PREPARE s FROM "SELECT \"\" , 1" ' AS x'"#,
        "EXECUTE s",
    ] {
        alike(&mut stage, sql);
        let said = [stage.plain.run(sql), stage.protected.run(sql)];
        let [plain, protected] = said.map(|said| said.map_err(|e| e.message).err());
        assert_eq!(plain, protected, "{sql}");
    }
}

/// MariaDB runs a compound statement that is a text, as it runs one that is sent.
fn compound_statements(kind: Kind) {
    if kind != Kind::MariaDb {
        return;
    }
    let Some(mut stage) = stage(kind) else { return };
    for sql in [
        "EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC SELECT word FROM open WHERE id = 1; END'",
        "EXECUTE IMMEDIATE 'IF 1 = 1 THEN SELECT word FROM open WHERE id = 2; END IF'",
        "EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC DECLARE v INT; SELECT COUNT(*) INTO v FROM open; SELECT v; END;'",
        "EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC UPDATE open SET word = ''y'' WHERE id = 2; END'",
        "SELECT * FROM open ORDER BY id",
        "EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC SELECT nothing FROM open; END'",
        "EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC SELECT 1; END; SELECT 2'",
    ] {
        alike(&mut stage, sql);
    }
    let near = "EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC SELECT id FROM user WHERE name = ''zz''; END'";
    let said = stage.protected.run(near).expect_err(near);
    assert!(said.message.starts_with("OS"), "{said}");
    stage.protected.must("SELECT 1");
}
