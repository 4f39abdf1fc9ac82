//! What names mean: tables in capital letters, aliases, keys of GROUP BY and HAVING, as MariaDB's
//! own test files once showed them to be misunderstood.

use ::mysql::prelude::Queryable;
use onionskin_testkit::*;
use std::time::Duration;

on_both_servers!(
    tables_in_capital_letters,
    names_in_queries,
    constants_in_set_operations,
    collations_as_strings,
    tables_of_another_proxy,
    names_that_the_policy_has,
    rows_that_a_new_protected_table_leaves_out,
    defaults_that_a_new_protected_table_has,
    settings_by_two_at_signs,
    settings_of_prepared_statements,
    several_statements_are_an_option,
    an_empty_statement_ends_a_text_of_several,
    names_without_letter_case,
    a_table_that_goes_while_it_is_looked_up,
    names_in_a_transaction_that_sees_the_past,
    views_under_any_collation_of_the_session,
    tables_of_other_databases_are_shown,
    indexes_are_called_as_their_columns,
    sequences_beside_protected_columns,
);

const TABLES: &str = "
CREATE TABLE Clients (id INT PRIMARY KEY, Name VARCHAR(20) {eq, range}, age INT {eq, range}, city VARCHAR(20) {});
CREATE TABLE clients (id INT PRIMARY KEY, Name VARCHAR(20), age INT);
CREATE TABLE pets (id INT PRIMARY KEY, owner INT {eq, range}, name VARCHAR(20) {eq, range})
";

fn stage(kind: Kind) -> Option<Pair> {
    let mut pair = Pair::with_engine(kind, TABLES)?;
    for sql in [
        "INSERT INTO Clients VALUES (1, 'Xaver7q', 31, 'Bern'), (2, 'Beate', 17, 'Basel'), (3, 'Anna', 31, NULL)",
        "INSERT INTO clients VALUES (1, 'open', 5)",
        "INSERT INTO pets VALUES (1, 1, 'Rex'), (2, 1, 'Bello'), (3, 2, 'Rex'), (4, 9, NULL)",
    ] {
        pair.both(sql);
    }
    Some(pair)
}

/// A second proxy before the same server, with the same keys.
fn another_proxy(pair: &Pair) -> Proxy {
    Proxy::start_with(
        &pair.behind,
        ProxyOptions {
            keys: Some(pair.proxy.keys()),
            ..ProxyOptions::default()
        },
    )
}

fn tables_in_capital_letters(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    pair.both("UPDATE Clients SET Name = 'Xaver7qq' WHERE Name = 'Xaver7q'");
    pair.both("INSERT INTO `Clients` (id, Name) VALUES (4, 'Xaver7qqq')");
    pair.both("DELETE FROM app.Clients WHERE Name = 'xaver7QQQ'");
    for sql in [
        "SELECT * FROM Clients ORDER BY id",
        "SELECT * FROM app.Clients WHERE Name = 'xaver7qq'",
        "SELECT c.Name, UPPER(c.city) FROM Clients AS c ORDER BY c.id",
        "SELECT Clients.Name, clients.Name FROM Clients, clients WHERE Clients.id = 1",
        "SELECT * FROM clients",
        "SELECT * FROM CLIENTS",
        "SHOW CREATE TABLE clients",
        "DESCRIBE Clients",
    ] {
        pair.compare_text(sql);
    }
    pair.conclude(0);
    let log = std::fs::read_to_string(pair.behind.data_dir().join("general.log")).unwrap();
    let leaked = log.to_lowercase().contains("xaver7q");
    assert!(!leaked, "a protected value reached the server");
    assert!(log.contains("open"), "the log shows the other table's");
}

fn names_in_queries(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    for sql in [
        // HAVING without a group, and about columns that are not grouped by in this way
        "SELECT id, age FROM Clients HAVING age > 20 ORDER BY id",
        "SELECT age, COUNT(*) FROM Clients GROUP BY age HAVING age > 20 ORDER BY age",
        "SELECT age, COUNT(*) FROM Clients GROUP BY age HAVING age = 31 AND COUNT(*) > 1",
        "SELECT Name, COUNT(*) FROM Clients GROUP BY Name HAVING Name = 'ANNA'",
        "SELECT Name, COUNT(*) FROM Clients GROUP BY Name HAVING Name > 'b' ORDER BY Name",
        "SELECT COUNT(*) FROM pets GROUP BY name HAVING name IS NULL",
        "SELECT name FROM pets GROUP BY name HAVING name IN ('rex', 'x')",
        // keys with qualifiers, aliases and positions, of a table that is joined to itself
        "SELECT pets.owner, COUNT(*) FROM pets JOIN Clients ON pets.owner <> Clients.id GROUP BY pets.owner ORDER BY pets.owner",
        "SELECT a.name AS one, b.name AS two, COUNT(*) FROM pets a JOIN pets b ON a.owner = b.owner GROUP BY one, two ORDER BY one, two",
        "SELECT a.owner, b.owner, COUNT(*) FROM pets a, pets b GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT b.owner AS o, b.id AS i FROM pets a LEFT JOIN pets b ON a.id = b.id AND b.id > 1 ORDER BY o, i",
        // aliases that are strings
        "SELECT Name AS 'Client', id FROM Clients ORDER BY Client",
        "SELECT Name AS \"The Client\", age 'Years' FROM Clients ORDER BY Years DESC, id",
        "SELECT SUM(age) AS 'all years', MAX(city) AS 'last' FROM Clients",
        "SELECT DISTINCT city AS 'Town' FROM Clients ORDER BY Town",
        "SELECT age AS 'y', COUNT(*) FROM Clients GROUP BY y ORDER BY y",
    ] {
        pair.compare_text(sql);
    }
    // the same shape with other aliases is another plan
    for name in ["id", "zz", "city"] {
        pair.compare_text(&format!(
            "SELECT SUM(age) AS '{name}', id AS 'x{name}' FROM Clients GROUP BY id ORDER BY x{name}"
        ));
    }
    pair.conclude(0);
}

fn constants_in_set_operations(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    for sql in [
        "SELECT id FROM pets WHERE owner IN (SELECT 1 UNION SELECT 2) ORDER BY id",
        "SELECT id FROM pets WHERE owner NOT IN (SELECT 1 UNION ALL SELECT 2) ORDER BY id",
        "SELECT id FROM pets WHERE name IN (SELECT 'REX' FROM pets UNION ALL SELECT 'x') ORDER BY id",
        "SELECT id FROM pets WHERE owner IN ((SELECT age FROM clients) UNION (SELECT 9)) ORDER BY id",
    ] {
        pair.compare_text(sql);
    }
    pair.conclude(0);
}

fn collations_as_strings(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(
        kind,
        "CREATE TABLE c (a VARCHAR(20) {eq}, b CHAR(5) CHARACTER SET 'latin1' COLLATE 'latin1_swedish_ci' {eq}) CHARSET = 'utf8mb4' COLLATE 'utf8mb4_bin'",
    ) else {
        return;
    };
    pair.both("INSERT INTO c VALUES ('a', 'ä'), ('A', 'A')");
    pair.compare_text("SELECT * FROM c WHERE a = 'A'");
    pair.compare_text("SELECT COUNT(*) FROM c WHERE b = 'a'");
    pair.compare_text("SHOW CREATE TABLE c");
    pair.conclude(0);
}

/// Definitions are looked up again when they are asked for, and before IGNORE hides what no longer
/// fits: another proxy may have made the table.
fn tables_of_another_proxy(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let other = another_proxy(&pair);
    // sealed only: no column changes its name with the table
    for _ in 0..2 {
        let mut session = other.connect_to("app");
        session.must("DROP TABLE IF EXISTS noted");
        session.must("CREATE TABLE noted (id INT PRIMARY KEY, note TEXT ENCRYPTED FOR ())");
        let outcome = pair
            .protected
            .must("INSERT IGNORE INTO noted VALUES (1, 'one')");
        assert_eq!((outcome.affected, outcome.warnings), (1, 0));
    }
    // known as absent, then as a table without protected columns
    assert_eq!(pair.protected.must_fail("SELECT * FROM later"), 1146);
    for column in ["a INT", "a INT ENCRYPTED FOR (eq)"] {
        let mut session = other.connect_to("app");
        session.must("DROP TABLE IF EXISTS later");
        session.must(&format!(
            "CREATE TABLE later (id INT PRIMARY KEY, {column})"
        ));
        let shown = pair.protected.text("SHOW CREATE TABLE later").unwrap();
        assert!(
            shown.contains("`a` int") && !shown.contains("$enc"),
            "{shown}"
        );
        let shown = pair.protected.text("DESCRIBE later").unwrap();
        assert!(
            shown.contains("\na\t") && !shown.contains("$enc"),
            "{shown}"
        );
    }
}

/// IGNORE makes warnings of the CHECKs of a table that was plain a moment ago.
fn rows_that_a_new_protected_table_leaves_out(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let other = another_proxy(&pair);
    let mut elsewhere = other.connect_to("app");
    let session = &mut pair.protected;
    let ignore = "INSERT IGNORE INTO noted VALUES (1, 'one')";
    let prepared = session
        .conn()
        .prep("INSERT IGNORE INTO noted VALUES (?, 'two')");
    assert!(prepared.is_err(), "there is no such table");
    let mut prepared = None;
    for column in ["note TEXT", "note TEXT ENCRYPTED FOR ()", "note TEXT"] {
        elsewhere.must("DROP TABLE IF EXISTS noted");
        elsewhere.must(&format!(
            "CREATE TABLE noted (id INT PRIMARY KEY, {column})"
        ));
        if prepared.is_none() {
            let sql = "INSERT IGNORE INTO noted VALUES (?, 'two')";
            prepared = Some(session.conn().prep(sql).expect("a statement"));
        }
        for (affected, warnings) in [(1, 0), (0, 1)] {
            let outcome = session.must(ignore);
            assert_eq!(
                (outcome.affected, outcome.warnings),
                (affected, warnings),
                "{column}"
            );
            if warnings == 1 {
                let shown = session.text("SHOW WARNINGS").unwrap();
                assert!(shown.contains("1062"), "{column}: {shown}");
            }
            let statement = prepared.as_ref().expect("it was prepared");
            session.conn().exec_drop(statement, (2,)).expect("a row");
            let done = (session.conn().affected_rows(), session.conn().warnings());
            assert_eq!(done, (affected, warnings), "{column}, prepared");
        }
        // What the first statement has shown to be another table is no more guessed at.
        let outcome = session.must("INSERT IGNORE INTO noted VALUES (1, 'x'), (3, 'three')");
        assert_eq!((outcome.affected, outcome.warnings), (1, 1), "{column}");
        for reader in [&mut *session, &mut elsewhere] {
            let rows = reader.text("SELECT * FROM noted ORDER BY id").unwrap();
            assert_eq!(rows, "1\tone\n2\ttwo\n3\tthree", "{column}");
        }
    }
}

/// A row for which nobody names a value has the column's default, which the server no longer knows.
fn defaults_that_a_new_protected_table_has(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let other = another_proxy(&pair);
    let mut elsewhere = other.connect_to("app");
    let session = &mut pair.protected;
    for ty in ["VARCHAR(20)", "VARCHAR(5000)"] {
        for words in ["", "ENCRYPTED FOR (eq)", ""] {
            elsewhere.must("DROP TABLE IF EXISTS orders");
            elsewhere.must(&format!(
                "CREATE TABLE orders (id INT PRIMARY KEY, status {ty} DEFAULT 'pending' {words}, n INT)"
            ));
            session.must("INSERT INTO orders (id) VALUES (1)");
            session.must("INSERT INTO orders (n, id) VALUES (7, 2)");
            for reader in [&mut *session, &mut elsewhere] {
                let rows = reader.text("SELECT * FROM orders ORDER BY id").unwrap();
                assert_eq!(rows, "1\tpending\tNULL\n2\tpending\t7", "{ty} {words}");
            }
            let shown = session.text("SHOW CREATE TABLE orders").unwrap();
            assert!(shown.contains("DEFAULT 'pending'"), "{shown}");
            assert!(
                !shown.contains("DEFAULT ''") && !shown.contains("DEFAULT ("),
                "{shown}"
            );
        }
        // whoever comes past the proxy, too
        elsewhere.must("DROP TABLE orders");
        elsewhere.must(&format!(
            "CREATE TABLE orders (id INT PRIMARY KEY, status {ty} DEFAULT 'pending' ENCRYPTED FOR (), n INT)"
        ));
        let mut direct = pair.behind.connect();
        let refused = direct.must_fail("INSERT INTO app.orders (id) VALUES (1)");
        assert!(matches!(refused, 3819 | 4025), "{refused}");
        if kind == Kind::MariaDb {
            // MySQL would give no NULL then
            elsewhere.must("ALTER TABLE orders ALTER COLUMN status DROP DEFAULT");
        }
        elsewhere.must("ALTER TABLE orders ALTER COLUMN status SET DEFAULT 'new'");
        session.must("INSERT INTO orders (id) VALUES (1)");
        let rows = session.text("SELECT id, status FROM orders").unwrap();
        assert_eq!(rows, "1\tnew");
        assert!(matches!(
            direct.must_fail("INSERT INTO app.orders (id) VALUES (2)"),
            3819 | 4025
        ));
    }
}

/// Literals are read when a statement is prepared, and IGNORE may stand behind any blanks.
fn settings_of_prepared_statements(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    for sql in [
        "\n    INSERT IGNORE INTO Clients (id, Name) VALUES (20, 'longer than twenty characters are')",
        "INSERT\tIGNORE\nINTO Clients (id, age) VALUES (21, 99999999999)",
        " UPDATE /* why */ IGNORE Clients SET age = 99999999999 WHERE id = 1",
    ] {
        pair.run("BEGIN");
        pair.compare_prepared(sql);
        pair.compare_text("SELECT * FROM Clients ORDER BY id");
        pair.run("ROLLBACK");
    }
    pair.conclude(0);
    let insert = "INSERT INTO Clients (id, Name) VALUES (?, 'é\\\\')";
    for change in ["SET NAMES latin1", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"] {
        let session = &mut pair.protected;
        let statement = session.conn().prep(insert).expect("a statement");
        session.must(change);
        let failure = session
            .conn()
            .exec_drop(&statement, (30,))
            .expect_err("it would mean something else");
        assert!(
            failure.to_string().contains("prepare it again"),
            "{failure}"
        );
        session.must("SET NAMES utf8mb4");
        session.must("SET sql_mode = DEFAULT");
        session.conn().exec_drop(&statement, (30,)).expect("a row");
        let found = session.text("SELECT HEX(Name) FROM Clients WHERE id = 30");
        assert_eq!(found.unwrap(), "C3A95C");
        session.must("DELETE FROM Clients WHERE id = 30");
    }
    // how far NOT reaches
    pair.both("INSERT INTO Clients (id, Name, age) VALUES (40, 'Zero', 0)");
    for mode in ["HIGH_NOT_PRECEDENCE", ""] {
        pair.run(&format!("SET sql_mode = '{mode}'"));
        pair.compare(
            "SELECT id FROM Clients WHERE NOT age BETWEEN 1 AND 20 ORDER BY id",
            &[],
        );
        pair.compare("SELECT id FROM Clients WHERE NOT age = 1 ORDER BY id", &[]);
        pair.both(&format!(
            "DELETE FROM Clients WHERE NOT age = 0 AND id = 40 /* {mode} */"
        ));
    }
    pair.conclude(0);
}

/// Whether a text may hold several statements is said at login, or later by a command.
fn several_statements_are_an_option(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let mut client = RawClient::login(pair.proxy.port());
    let text = b"DELETE FROM app.Clients WHERE Name = 'nobody'; DELETE FROM app.Clients";
    for option in [0u8, 1, 0, 1] {
        client.command(0x1b, &[option, 0]);
        assert!(matches!(client.read(), Reply::Packet(_)));
        let reply = client.query(match option {
            0 => b"DELETE FROM app.Clients WHERE Name = 'nobody'; DELETE FROM app.Clients WHERE id = 9",
            _ => text,
        });
        match option {
            0 => {
                assert!(
                    matches!(&reply, Reply::Packet(ok) if ok[0] == 0),
                    "{reply:?}"
                );
                assert!(matches!(client.read(), Reply::Packet(ok) if ok[0] == 0));
            }
            _ => assert!(matches!(reply, Reply::Error(..)), "{reply:?}"),
        }
    }
    let count = pair.protected.text("SELECT COUNT(*) FROM Clients");
    assert_eq!(count.unwrap(), "3");
    // without the option, a second statement is the server's error, near protected tables or not
    let mut plain = RawClient::login(pair.beside().port());
    plain.command(0x1b, &[1, 0]);
    plain.read();
    for text in [
        "SELECT 17; SELECT 2",
        "  SELECT 17;\n\n DELETE FROM app.Clients; SELECT 3;\n",
        "DELETE FROM app.Clients; ; SELECT 2",
        "DELETE FROM app.Clients; /* c */ SELECT 2",
        "; DELETE FROM app.Clients",
    ] {
        let [protected, plain] = [&mut client, &mut plain].map(|client| {
            let reply = client.query(text.as_bytes());
            let has_rows = matches!(&reply, Reply::Packet(_));
            (0..4)
                .filter(|_| has_rows)
                .for_each(|_| drop(client.read()));
            format!("{reply:?}")
        });
        assert_eq!(protected, plain, "{text}");
    }
    let count = pair.protected.text("SELECT COUNT(*) FROM Clients");
    assert_eq!(count.unwrap(), "3");
}

/// With `lower_case_table_names = 1` the server finds a table by either spelling of its name.
/// (MySQL takes the setting only for a data directory that was made under it.)
fn names_without_letter_case(kind: Kind) {
    if kind == Kind::MySql {
        return;
    }
    let options = PairOptions {
        tables: &["CREATE TABLE Users (Id INT PRIMARY KEY, S VARCHAR(20) {eq}, n INT)"],
        engine: Engine::Own,
        server: ServerOptions {
            extra: vec!["--lower-case-table-names=1".into()],
            ..ServerOptions::default()
        },
        ..PairOptions::default()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    let session = &mut pair.protected;
    for table in ["Users", "users", "USERS", "app.Users", "`App`.`uSers`"] {
        session.must(&format!(
            "INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 2)"
        ));
        let found = session.text(&format!("SELECT id, s, N FROM {table} WHERE S = 'a'"));
        assert_eq!(found.expect(table), "1\ta\t1");
        session.must("START TRANSACTION");
        session.must(&format!("UPDATE {table} SET s = 'c' WHERE s = 'a'"));
        session.must("COMMIT");
        let found = session.text(&format!(
            "SELECT u.s FROM {table} u WHERE u.s IN ('c', 'd')"
        ));
        assert_eq!(found.expect(table), "c");
        let deleted = session.must(&format!("DELETE FROM {table} WHERE S IN ('b', 'c')"));
        assert_eq!(deleted.affected, 2, "{table}");
    }
    session.must("DROP TABLE Users");
}

/// Servers run what stands before an empty statement, say that it is a syntax error, and run
/// nothing behind it.
fn an_empty_statement_ends_a_text_of_several(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    let first = "UPDATE Clients SET age = age + 1 WHERE Name = 'Beate'";
    let second = "DELETE FROM Clients WHERE id = 3";
    for sql in [
        format!("{first};; {second}"),
        format!("{first}; ;\n{second};"),
        format!("{first}; /* c */; {second}"),
        format!("{first}; -- c\n; {second}"),
        format!("{first};;; {second}"),
        format!("; {second}"),
        format!("/* c */; {second}"),
        format!("-- c\n; {second}"),
        format!(" ;{second}; {first}"),
        format!("SELECT 1;; {second}"),
        format!("{first};; -- c"),
        format!(
            "{first};; /* a long comment that is longer than what servers quote, which is 80 bytes at most */"
        ),
        // these are none
        format!("{first};;"),
        format!("{first}; ; "),
        format!("{first}; -- c"),
        format!("{first}; /* c */;"),
        format!("{first}; SELECT Name FROM Clients WHERE age = 31 ORDER BY id; # c"),
    ] {
        pair.same(&sql);
        let rows = pair.same("SELECT id, Name, age FROM Clients ORDER BY id");
        assert!(rows.contains("Anna"), "{sql}\n→ {rows}");
    }
    pair.same(&format!("{first}; {second}"));
    let rows = pair.same("SELECT id, Name, age FROM Clients ORDER BY id");
    assert!(!rows.contains("Anna"), "{rows}");
}

/// What `[protect]` matches is sealed, however the table or the column comes to its name.
fn names_that_the_policy_has(kind: Kind) {
    let policy = "[protect.\"app.kept*\"]\nemail = [\"eq\"]\n";
    let Some(mut pair) = Pair::with_settings(kind, "", policy) else {
        return;
    };
    let refused = |session: &mut Session, sql: &str| {
        let answer = session.run(sql);
        let message = answer.expect_err(sql).message;
        assert!(message.starts_with("OS1014"), "{sql}\n→ {message}");
    };
    let session = &mut pair.protected;
    session.must("CREATE TABLE fresh (id INT, email VARCHAR(80))");
    for sql in [
        "RENAME TABLE fresh TO kept",
        "RENAME TABLE fresh TO aside, aside TO app.kept",
        "ALTER TABLE fresh RENAME TO kept",
        "ALTER TABLE fresh RENAME kept, ADD COLUMN more INT",
        "ALTER TABLE fresh DROP COLUMN email, ADD COLUMN email INT, RENAME AS kept",
    ] {
        refused(session, sql);
    }
    // a table whose column is sealed goes where it likes
    session.must("CREATE TABLE kept (id INT, email VARCHAR(80))");
    session.must("INSERT INTO kept VALUES (1, 'Xaver7q')");
    session.must("RENAME TABLE kept TO aside, fresh TO open, aside TO kept");
    session.must("ALTER TABLE kept RENAME TO kept2");
    session.must("RENAME TABLE kept2 TO other");
    session.must("ALTER TABLE other RENAME kept");
    session.must("RENAME TABLE open TO open2");
    let text = session.text("SELECT id FROM kept WHERE email = 'Xaver7q'");
    assert_eq!(text.unwrap(), "1");
    // temporary tables are in no catalog, and judged as others are
    session.must("CREATE TEMPORARY TABLE kept_a (id INT)");
    session.must("ALTER TABLE kept_a ADD COLUMN more INT");
    session.must("ALTER TABLE kept_a ADD COLUMN email VARCHAR(80)");
    session.must("INSERT INTO kept_a VALUES (1, 2, 'Xaver7q')");
    let text = session.text("SELECT more FROM kept_a WHERE email = 'Xaver7q'");
    assert_eq!(text.unwrap(), "2");
    session.must("CREATE TEMPORARY TABLE kept_y (id VARCHAR(80))");
    match session.run("ALTER TABLE kept_y CHANGE id email VARCHAR(80)") {
        Ok(_) => drop(session.must("INSERT INTO kept_y VALUES ('Xaver7q')")),
        Err(said) => assert!(said.message.starts_with("OS1014"), "{said}"),
    }
    session.must("CREATE TEMPORARY TABLE open3 (id INT, email VARCHAR(80))");
    refused(session, "ALTER TABLE open3 RENAME TO kept_b");
    session.must("ALTER TABLE open3 RENAME TO open4");
    // known as absent, and then made by another proxy
    let keys = Some(pair.proxy.keys());
    let options = ProxyOptions {
        keys,
        ..ProxyOptions::default()
    };
    let other = Proxy::start_with(&pair.behind, options);
    let mut other = other.connect_to("app");
    for (table, before) in [("kept_c", "/* job 7 */"), ("kept_d", "-- job 7\n")] {
        assert_eq!(session.must_fail(&format!("SELECT 1 FROM {table}")), 1146);
        other.must(&format!("CREATE TABLE {table} (id INT)"));
        session.must(&format!(
            "{before} ALTER TABLE {table} ADD COLUMN email VARCHAR(80)"
        ));
        session.must(&format!("INSERT INTO {table} VALUES (1, 'Xaver7q')"));
    }
    assert_eq!(session.must_fail("SELECT 1 FROM shown"), 1146);
    other.must("CREATE TABLE shown (id INT, email VARCHAR(80) ENCRYPTED FOR ())");
    let shown = session.text("/* c */ SHOW CREATE TABLE shown").unwrap();
    assert!(!shown.contains("$enc"), "{shown}");
    if kind == Kind::MariaDb {
        session.must("CREATE TABLE kept_e (id INT)");
        refused(
            session,
            "ALTER IGNORE ONLINE TABLE kept_e ADD COLUMN email VARCHAR(80)",
        );
    }
    pair.proxy.assert_healthy();
    let log = std::fs::read_to_string(pair.behind.data_dir().join("general.log")).unwrap();
    assert!(
        !log.contains("Xaver7q"),
        "a protected value reached the server"
    );
    assert!(log.contains("fresh"), "the log shows what is not protected");
}

/// MariaDB does not tell of `SET @@x`; what the proxy does not know of `sql_mode` would make it
/// read texts otherwise than the server.
fn settings_by_two_at_signs(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    for setting in [
        "SET @@sql_mode = 'ANSI_QUOTES'",
        "SET @modes = 'NO_BACKSLASH_ESCAPES'",
        "SET @@sql_mode = @modes, @later = 1",
        "SET @@sql_mode := ''",
        "SET @@div_precision_increment = 9, @@time_zone = '+01:00'",
        "SET @@SESSION.div_precision_increment = 5",
        "SET @@div_precision_increment = DEFAULT, @@sql_mode = DEFAULT",
    ] {
        pair.run(setting);
        pair.compare_text("SELECT \"Name\", id FROM Clients WHERE id = 1");
        pair.compare_text("SELECT id FROM Clients WHERE Name = 'a\\\\' OR Name = 'Anna'");
        pair.compare_text("SELECT AVG(age) FROM Clients");
        pair.compare_text("SELECT @@sql_mode, @@time_zone");
    }
    pair.run("CREATE PROCEDURE finer() SET @@div_precision_increment = 11");
    pair.run("CALL finer()");
    pair.compare_text("SELECT AVG(age) FROM Clients");
    pair.run("CREATE PROCEDURE finest() BEGIN DECLARE n INT; SET @@div_precision_increment = 3, @@sql_mode = 'ANSI_QUOTES'; SET n = 1; END");
    pair.run("CALL finest()");
    pair.compare_text("SELECT AVG(age), \"Name\" FROM Clients GROUP BY Name");
    if kind == Kind::MariaDb {
        pair.run("BEGIN NOT ATOMIC SET @@div_precision_increment = 7; SET @x = 1; END");
        pair.compare_text("SELECT AVG(age) FROM Clients");
    }
    // a statement in a comment is one
    pair.run("SET sql_mode = DEFAULT");
    pair.run("/*!40101 SET @@sql_mode = 'ANSI_QUOTES' */");
    pair.compare_text("SELECT AVG(age), \"Name\" FROM Clients GROUP BY Name ORDER BY Name");
    pair.run("SET sql_mode = DEFAULT");
    if kind == Kind::MariaDb {
        let hidden = "SET @x = 1 /*!40101 , @@sql_mode = 'ANSI_QUOTES' */";
        assert_eq!(pair.protected.must_fail(hidden), 1235, "{hidden}");
    }
    pair.conclude(0);
}

/// ORMs call a table by its name in other letters, and MySQL shows a transaction definitions of the
/// past.
fn names_in_a_transaction_that_sees_the_past(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(
        kind,
        "CREATE TABLE post (id INT PRIMARY KEY, title VARCHAR(20) {eq, range}, n INT)",
    ) else {
        return;
    };
    pair.both("INSERT INTO post VALUES (1, 'first', 1), (2, 'second', 2)");
    for sql in [
        "START TRANSACTION",
        "INSERT INTO post VALUES (3, 'third', 3)",
        "SELECT Post.title FROM post Post WHERE Post.title > 'b' ORDER BY Post.id",
        "SELECT POST.n FROM post POST ORDER BY POST.id",
        "UPDATE post Post SET Post.n = 5 WHERE Post.title = 'first'",
        "COMMIT",
        "BEGIN",
        "SELECT COUNT(*) > 0 FROM INFORMATION_SCHEMA.TABLES",
        "SELECT title FROM post ORDER BY id",
        "SELECT COUNT(*) > 0 FROM Information_Schema.SCHEMATA",
        "ROLLBACK",
    ] {
        pair.same(sql);
    }
}

fn views_under_any_collation_of_the_session(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) {eq}); CREATE VIEW v AS SELECT id, name FROM t",
    ) else {
        return;
    };
    for collation in [
        "utf8mb4_unicode_ci",
        "utf8mb4_general_ci",
        "utf8mb4_bin",
        "utf8mb4_unicode_520_ci",
        "utf8mb4_swedish_ci",
    ] {
        pair.same(&format!("SET NAMES utf8mb4 COLLATE {collation}"));
        pair.same("SELECT TABLE_NAME, CHECK_OPTION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE()");
    }
}

/// A table is dropped, or dropped and made again, between the list of tables and the look-up of its
/// columns: it is not one whose columns the account may not see.
fn a_table_that_goes_while_it_is_looked_up(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut direct = server.connect();
    direct.must("CREATE DATABASE app");
    for again in [false, true] {
        direct.must("CREATE TABLE app.gone (id INT PRIMARY KEY, c VARCHAR(20))");
        let cable = Cable::to(server.port());
        let options = ProxyOptions {
            settings: "backend_tls = \"never\"\n".into(),
            tables: "[protect.\"app.*\"]\nsecret = [\"eq\"]\n".into(),
            backend: Some(cable.address()),
            ..ProxyOptions::default()
        };
        let proxy = Proxy::start_with(&server, options);
        let mut session = proxy.connect_to("app");
        cable.freeze_at("AND TABLE_NAME = ", 1, When::Before);
        let insert = std::thread::spawn(move || {
            let inserted = session.run("INSERT INTO gone VALUES (1, 'x')");
            (inserted, session)
        });
        wait_until("the look-up", Duration::from_secs(20), || cable.is_frozen());
        direct.must("DROP TABLE app.gone");
        if again {
            direct.must("CREATE TABLE app.gone (id INT PRIMARY KEY, c VARCHAR(20))");
        }
        cable.freeze(false);
        let (inserted, mut session) = insert.join().expect("a session");
        match again {
            false => assert_eq!(inserted.expect_err("no table").code, 1146),
            true => {
                inserted.expect("the new table");
                assert_eq!(session.text("SELECT c FROM gone").expect("a row"), "x");
                direct.must("DROP TABLE app.gone");
            }
        }
    }
}

/// `SHOW COLUMNS FROM t FROM db` is about a table of `db`, whatever database the session is in.
fn tables_of_other_databases_are_shown(kind: Kind) {
    if direct_mode() {
        return;
    }
    let options = ServerOptions {
        general_log: true,
        ..ServerOptions::default()
    };
    let Some(mut server) = Server::start(kind, options) else {
        return;
    };
    let proxy = Proxy::start(&server, "");
    let mut admin = server.connect();
    for database in ["app", "other", "third"] {
        admin.must(&format!("CREATE DATABASE {database}"));
    }
    admin.must("CREATE TABLE other.t (x INT PRIMARY KEY, y INT, KEY (y))");
    let protected =
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) ENCRYPTED FOR (eq), KEY (name))";
    proxy.connect_to("app").must(protected);
    let mut sessions = vec![proxy.connect()];
    sessions.extend(["app", "other", "third"].map(|database| proxy.connect_to(database)));
    for session in &mut sessions {
        for (long, short) in [
            (
                "SHOW FULL COLUMNS FROM t FROM app",
                "SHOW FULL COLUMNS FROM app.t",
            ),
            ("SHOW COLUMNS IN `t` IN `app`", "SHOW COLUMNS FROM app.t"),
            (
                "SHOW FIELDS FROM t FROM app LIKE 'n%'",
                "SHOW FIELDS FROM app.t LIKE 'n%'",
            ),
            ("SHOW INDEX FROM t FROM app", "SHOW INDEX FROM app.t"),
            ("SHOW KEYS IN t IN app", "SHOW KEYS IN app.t"),
        ] {
            let shown = session.text(long).expect("columns");
            assert!(
                shown.contains("name") && !shown.contains('$'),
                "{long}: {shown}"
            );
            assert_eq!(Ok(shown), session.text(short), "{long}");
        }
        for of_other in ["SHOW COLUMNS FROM t FROM other", "SHOW INDEX IN t IN other"] {
            assert_eq!(session.text(of_other), admin.text(of_other));
        }
        // it shows another table, and compares a protected column of this one
        let query = "(SELECT id FROM app.t WHERE name = 'canary')";
        for shows in [
            "SHOW FULL COLUMNS FROM other.t",
            "SHOW COLUMNS FROM t FROM other",
            "SHOW INDEX FROM t FROM other",
            "SHOW COLUMNS FROM t FROM app",
        ] {
            session.must_fail(&format!("{shows} WHERE field = {query}"));
            session.must_fail(&format!("{shows} WHERE 1 IN {query}"));
        }
    }
    drop((sessions, admin));
    server.shutdown();
    server.assert_no_trace_of(&["canary"]);
}

/// An index without a name is called as the table calls its column, in whatever letters the
/// definition names it.
fn indexes_are_called_as_their_columns(kind: Kind) {
    let tables = "CREATE TABLE spelled (id INT PRIMARY KEY, Word VARCHAR(20) {eq}, Age INT {eq}, open INT, KEY (WORD), UNIQUE (aGE, Open))";
    let Some(mut pair) = Pair::start(kind, &[tables]) else {
        return;
    };
    pair.both("ALTER TABLE spelled ADD KEY (woRD), ADD UNIQUE (wORD)");
    pair.both("ALTER TABLE spelled ADD COLUMN Later INT, ADD KEY (LATER)");
    pair.same_result("SHOW CREATE TABLE spelled");
    pair.same_result("SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_NAME = 'spelled' ORDER BY 1");
}

/// A sequence is no column, and refused where it is not understood.
fn sequences_beside_protected_columns(kind: Kind) {
    if kind != Kind::MariaDb {
        return;
    }
    let table = "CREATE TABLE kept (id INT PRIMARY KEY, name VARCHAR(20) {eq})";
    let Some(mut pair) = Pair::start(kind, &[table]) else {
        return;
    };
    pair.both("CREATE SEQUENCE sq");
    pair.both("INSERT INTO kept VALUES (1, 'a')");
    for sql in [
        "SELECT id, NEXTVAL(sq) FROM kept",
        "SELECT name, lastval(sq) FROM kept",
        "SELECT id, SETVAL(app.sq, 50) FROM kept WHERE name = 'a'",
        "SELECT id FROM kept WHERE id < NEXTVAL(sq)",
    ] {
        match pair.protected.run(sql) {
            Ok(found) => assert!(!found.sets.is_empty(), "{sql}"),
            Err(said) => assert!(said.message.starts_with("OS"), "{sql}: {said}"),
        }
    }
    let sql = "SELECT id, LASTVAL(nothing), nothing FROM kept";
    pair.protected.run(sql).expect_err(sql);
}
