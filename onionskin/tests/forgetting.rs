//! KEY BY: cells of a tenant have keys of their own. When its secret is destroyed, nothing of it
//! opens any more, in the table, in a dump from before, in the rows of the binary log; and
//! everything of the others does. Statements that do not say whose a row is are refused.

use std::time::Duration;

use onionskin_testkit::*;

on_both_servers!(
    rows_are_written_and_read_as_at_a_plain_server,
    a_tenant_that_is_forgotten_opens_nowhere_and_the_others_do,
    rows_without_a_tenant_and_new_tenants_for_rows_are_refused,
    only_a_plain_column_of_the_table_names_tenants,
    programs_and_foreign_keys_give_no_row_another_tenant,
    tables_that_are_there_get_keys_of_tenants,
    without_the_file_nothing_is_written,
    what_is_forgotten_is_shown_as_null,
    the_configuration_says_whose_rows_are,
    a_row_that_somebody_has_moved_is_not_written,
    what_gives_rows_other_tenants_stops_a_migration,
);

const SETTINGS: &str = "tenants = \"file:tenants.keys\"\n";
const SOON: Duration = Duration::from_secs(15);

fn pair_with(kind: Kind, settings: &str, tables: &[&str]) -> Option<Pair> {
    let settings = format!("{SETTINGS}{settings}");
    let options = PairOptions {
        tables,
        settings: &settings,
        server: ServerOptions {
            general_log: true,
            binlog: Some(Binlog::Row),
            ..ServerOptions::default()
        },
        ..PairOptions::default()
    };
    Pair::start_with(kind, options)
}

/// The tenants that stand in the cells of a column, beside those that stand in the rows.
fn tenants_of(pair: &Pair, table: &str, column: &str, tenant: &str) -> Vec<(String, String)> {
    let mut behind = pair.behind.connect();
    let sql = format!(
        "SELECT {tenant}, HEX(SUBSTR({column}$enc, 8, 8)) FROM app.{table} \
         WHERE {column}$enc IS NOT NULL ORDER BY 1, 2"
    );
    let text = behind.text(&sql).unwrap();
    let lines = text.lines().map(|line| {
        let (value, cell) = line.split_once('\t').expect("two columns");
        (value.to_owned(), cell.to_owned())
    });
    lines.collect()
}

/// Each value has one tenant in all its cells, and no two values the same.
fn assert_one_tenant_each(found: &[(String, String)], values: usize) {
    let mut pairs = found.to_vec();
    pairs.dedup();
    assert_eq!(pairs.len(), values, "{pairs:?}");
    let mut cells: Vec<&String> = pairs.iter().map(|(_, cell)| cell).collect();
    cells.sort();
    cells.dedup();
    assert_eq!(cells.len(), values, "{pairs:?}");
}

fn forget(pair: &Pair, tenants: &[&str]) {
    let arguments = ["tenants", "-c", "onionskin.toml", "forget", "--i-know"];
    let arguments = [&arguments[..], tenants].concat();
    let (done, said) = pair.proxy.command(&arguments);
    assert!(done, "{said}");
}

/// Forgets, with a proxy that has read the file anew when this returns.
fn forget_and_reload(pair: &mut Pair, tenants: &[&str]) {
    forget(pair, tenants);
    pair.proxy.terminate();
    pair.proxy.restart();
    pair.protected = pair.proxy.connect_to("app");
}

fn rows_are_written_and_read_as_at_a_plain_server(kind: Kind) {
    let tables = [
        "CREATE TABLE t (id INT PRIMARY KEY, who INT(6) UNSIGNED ZEROFILL NOT NULL, \
         name VARCHAR(40) {eq| KEY BY who}, born DATE {| KEY BY who}, n INT NOT NULL DEFAULT 7)",
        "CREATE TABLE u (who VARCHAR(20) NOT NULL, note TEXT {| KEY BY who AS person}, KEY (who), \
         id INT AUTO_INCREMENT PRIMARY KEY)",
        "CREATE TABLE v (id INT PRIMARY KEY, who BINARY(4), s VARCHAR(9) DEFAULT 'new' {| KEY BY who})",
    ];
    let Some(mut pair) = pair_with(kind, "", &tables) else {
        return;
    };
    for sql in [
        "INSERT INTO t VALUES (1, 7, 'Ann', '1990-01-02', 1), (2, 8, 'Bob', NULL, 2), (3, 7, 'Cyd', '2001-03-04', 3)",
        "INSERT INTO t (name, id, who) VALUES ('Dan', 4, 9)",
        "INSERT INTO t (id, who) VALUES (5, '7')",
        "INSERT INTO t SET name = 'Eve', born = '1980-05-06', who = 8, id = 6",
        "INSERT INTO t VALUES (7, 8, 'Fay', '1970-01-01', 1 + 1), (8, 7, NULL, NULL, 3)",
        "INSERT IGNORE INTO t VALUES (7, 9, 'Gus', '1970-01-01', 0), (9, 9, 'Gus', '1971-01-01', 0)",
        "INSERT INTO t VALUES (10, 10, 'Hal', NULL, 0) ON DUPLICATE KEY UPDATE n = n + 1",
        "INSERT INTO t VALUES (10, 10, 'Hal', NULL, 0) ON DUPLICATE KEY UPDATE n = n + 1",
        "UPDATE t SET name = 'Zoe Zacharias' WHERE who IN (7, 8) AND id <> 3",
        "UPDATE t SET name = 'Ann', n = n + 1 WHERE id = 1",
        "UPDATE t SET name = 'Ann' WHERE id = 1",
        "UPDATE t SET born = '2000-01-01' WHERE name = 'Zoe Zacharias' ORDER BY id LIMIT 2",
        "UPDATE t SET name = NULL WHERE id = 9",
        "UPDATE t SET name = 'Ida' WHERE id IN (5, 9)",
        "DELETE FROM t WHERE name = 'Cyd'",
        "INSERT INTO u (who, note) VALUES ('a', 'one'), ('b', 'two'), ('a ', 'three pencils'), ('ä€', 'four')",
        "INSERT INTO u (who, note) VALUES (_latin1'a', 'five')",
        "UPDATE u SET note = 'six chairs' WHERE note IS NOT NULL AND who <> 'b'",
        "INSERT INTO v (id, who) VALUES (1, 'ab'), (2, x'00ff')",
        "INSERT INTO v (id, who, s) VALUES (3, 'ab', DEFAULT), (4, 'ab\\0\\0', 'x')",
    ] {
        pair.same(sql);
    }
    for (id, who, name) in [(20, 8, "Jonathan J."), (21, 7, "Kim"), (22, 7, "Liv")] {
        let parameters = [id.into(), who.into(), name.into()];
        pair.same_if_done_with(
            "INSERT INTO t (id, who, name) VALUES (?, ?, ?)",
            &parameters,
        );
        let parameters = [name.to_uppercase().into(), id.into()];
        pair.same_if_done_with("UPDATE t SET name = ? WHERE id = ?", &parameters);
    }
    for sql in [
        "SELECT * FROM t ORDER BY id",
        "SELECT id FROM t WHERE name = 'Zoe Zacharias' ORDER BY id",
        "SELECT who, name FROM t WHERE who = 7 ORDER BY born DESC, id",
        "SELECT name, COUNT(*) FROM t GROUP BY name ORDER BY name",
        "SELECT * FROM u ORDER BY id",
        "SELECT * FROM v ORDER BY id",
    ] {
        pair.same_result(sql);
    }
    pair.same_result("SHOW CREATE TABLE t");
    pair.same_result("SHOW CREATE TABLE u");
    assert_one_tenant_each(&tenants_of(&pair, "t", "name", "who"), 4);
    assert_one_tenant_each(&tenants_of(&pair, "t", "born", "who"), 3);
    // in all of the collation's spellings that are there, blanks at the end do not count
    assert_one_tenant_each(&tenants_of(&pair, "u", "note", "HEX(RTRIM(who))"), 3);
    assert_one_tenant_each(&tenants_of(&pair, "v", "s", "HEX(who)"), 2);
    pair.assert_no_trace_of(&[
        "Zoe Zacharias",
        "JONATHAN J.",
        "three pencils",
        "six chairs",
    ]);
}

fn a_tenant_that_is_forgotten_opens_nowhere_and_the_others_do(kind: Kind) {
    let tables = [
        "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(40) {| KEY BY id AS customer})",
        "CREATE TABLE orders (id INT PRIMARY KEY, customer INT NOT NULL, what TEXT {| KEY BY customer})",
    ];
    let Some(mut pair) = pair_with(kind, "control = \"control.sock\"\n", &tables) else {
        return;
    };
    let socket = pair.proxy.folder().join("control.sock");
    wait_until("the control socket", SOON, || socket.exists());
    for sql in [
        "INSERT INTO users VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cyd')",
        "INSERT INTO orders VALUES (1, 1, 'a book'), (2, 2, 'a lamp'), (3, 3, 'a chair'), (4, 1, 'a pen')",
    ] {
        pair.run(sql);
    }
    let user = kind.users()[0];
    let dump = Cli::dump(
        kind,
        pair.behind.port(),
        user.name,
        user.password,
        &["--hex-blob", "app"],
    );
    let load = |pair: &Pair| {
        if kind == Kind::MySql {
            // the dump says which of its transactions the server has
            pair.behind.connect().must("RESET BINARY LOGS AND GTIDS");
        }
        Cli::tcp(kind, pair.behind.port(), user.name, user.password)
            .option("app")
            .must(&dump);
    };

    // a proxy that runs follows by itself, in sessions that were there, with statements prepared
    let all = "SELECT name FROM users WHERE id = ?";
    let prepared = pair.protected.execute_text(all, (1,)).unwrap();
    assert_eq!(prepared, "Ann");
    forget(&pair, &["customer=1", "customer=99"]);
    for sql in [
        "SELECT name FROM users",
        "SELECT name FROM users WHERE id = 1",
        "SELECT what FROM orders ORDER BY id",
        "SELECT id FROM orders ORDER BY what",
    ] {
        assert_eq!(pair.protected.must_fail(sql), 1105, "{sql}");
    }
    let refused = pair.protected.execute_text(all, (1,)).unwrap_err();
    assert!(refused.message.contains("OS1112"), "{}", refused.message);
    let others = "SELECT name FROM users WHERE id <> 1 ORDER BY id";
    assert_eq!(pair.protected.text(others).unwrap(), "Bob\nCyd");
    let others = "SELECT what FROM orders WHERE customer > 1 ORDER BY id";
    assert_eq!(pair.protected.text(others).unwrap(), "a lamp\na chair");
    // what names no cell of it still runs; nothing is sealed for it any more
    let counted = pair
        .protected
        .text("SELECT COUNT(*), MAX(customer) FROM orders");
    assert_eq!(counted.unwrap(), "4\t3");
    for sql in [
        "INSERT INTO orders VALUES (5, 1, 'a cup')",
        "INSERT INTO orders VALUES (5, 2, 'a cup'), (6, 1, 'a cup')",
        "UPDATE users SET name = 'Ann' WHERE id = 1",
    ] {
        let failed = pair.protected.run(sql).unwrap_err();
        assert!(
            failed.message.contains("OS1112"),
            "{sql}: {}",
            failed.message
        );
    }
    pair.protected
        .must("INSERT INTO orders VALUES (5, 2, 'a cup')");
    pair.protected.must("DELETE FROM orders WHERE customer = 1");
    let everything = "SELECT what FROM orders ORDER BY id";
    assert_eq!(
        pair.protected.text(everything).unwrap(),
        "a lamp\na chair\na cup"
    );

    // a backup from before brings its rows back, and none of its values
    load(&pair);
    pair.proxy.terminate();
    pair.proxy.restart();
    pair.protected = pair.proxy.connect_to("app");
    let failed = pair.protected.run("SELECT what FROM orders").unwrap_err();
    assert!(failed.message.contains("OS1112"), "{}", failed.message);
    let others = "SELECT what FROM orders WHERE customer > 1 ORDER BY id";
    assert_eq!(pair.protected.text(others).unwrap(), "a lamp\na chair");

    // cells that were passed off as another tenant's do not open
    let mut behind = pair.behind.connect();
    behind.must(
        "UPDATE app.users u, app.users v SET u.name$enc = CONCAT(LEFT(u.name$enc, 7), \
         SUBSTR(v.name$enc, 8, 8), SUBSTR(u.name$enc, 16)) WHERE u.id = 1 AND v.id = 2",
    );
    let failed = pair.protected.run("SELECT name FROM users WHERE id = 1");
    assert!(failed.unwrap_err().message.contains("OS1102"));
}

fn rows_without_a_tenant_and_new_tenants_for_rows_are_refused(kind: Kind) {
    let tables = "CREATE TABLE t (id INT PRIMARY KEY, who INT, s VARCHAR(40) {eq| KEY BY who}, n INT);\
                  CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(40) {| KEY BY id});\
                  CREATE TABLE other (id INT PRIMARY KEY, who INT, s VARCHAR(40))";
    let Some(mut pair) = Pair::with_settings(kind, tables, SETTINGS) else {
        return;
    };
    pair.run("INSERT INTO t VALUES (1, 1, 'Secretone', 1), (2, 2, 'Secrettwo', 2)");
    pair.run("INSERT INTO t VALUES (3, NULL, NULL, 1)");
    pair.run("INSERT INTO a VALUES (5, 'Secretsix')");
    pair.run("INSERT INTO other VALUES (1, 1, 'plain')");
    let file = pair.proxy.folder().join("rows.txt");
    std::fs::write(&file, "9\t1\tSecretload\t1\n").unwrap();
    let before = pair.protected.text("SELECT * FROM t ORDER BY id").unwrap();
    pair.protected.must("SET @who = 1");
    for sql in [
        "INSERT INTO t (id, s) VALUES (9, 'Secretx')",
        "INSERT INTO t VALUES (9, NULL, 'Secretx', 1)",
        "INSERT INTO t VALUES (9, DEFAULT, 'Secretx', 1)",
        "INSERT INTO t VALUES (9, 1 + 1, 'Secretx', 1)",
        "INSERT INTO t VALUES (9, @who, 'Secretx', 1)",
        "INSERT INTO t VALUES (9, id, 'Secretx', 1)",
        "INSERT IGNORE INTO t VALUES (9, '1x', 'Secretx', 1)",
        "INSERT IGNORE INTO t VALUES (9, 99999999999, 'Secretx', 1)",
        "INSERT INTO t VALUES (9, 1, 'Secretx', 1), (10, NULL, 'Secrety', 1)",
        "INSERT INTO t SET id = 9, s = 'Secretx'",
        "INSERT INTO a VALUES (NULL, 'Secretx')",
        "INSERT INTO a VALUES (0, 'Secretx')",
        "INSERT INTO a (s) VALUES ('Secretx')",
        "REPLACE INTO t VALUES (1, 1, 'Secretx', 1)",
        "INSERT INTO t VALUES (1, 2, 'Secretx', 1) ON DUPLICATE KEY UPDATE s = VALUES(s)",
        "INSERT INTO t VALUES (1, 2, 'Secretx', 1) ON DUPLICATE KEY UPDATE s = 'Secrety'",
        "INSERT INTO t VALUES (1, 2, 'Secretx', 1) ON DUPLICATE KEY UPDATE who = 3",
        "INSERT INTO t SELECT id + 10, who, s, n FROM t",
        "INSERT INTO t (id, who, s) SELECT 9, 1, 'Secretx'",
        "INSERT INTO t VALUES (9, 1, CONCAT('Secret', id), 1)",
        "UPDATE t SET who = 3",
        "UPDATE t SET who = 3 WHERE id = 1",
        "UPDATE t SET who = who, n = 2 WHERE id = 1",
        "UPDATE t SET s = 'Secretx', who = 3 WHERE id = 1",
        "UPDATE t SET s = CONCAT(s, 'x') WHERE id = 1",
        "UPDATE t SET s = 'Secretx' WHERE id = 3",
        "UPDATE t JOIN other USING (id) SET t.who = 3",
        "UPDATE t JOIN other USING (id) SET t.s = other.s",
        "CREATE TABLE made (s VARCHAR(40) ENCRYPTED FOR () KEY BY who) SELECT id, who, s FROM t",
        &format!("LOAD DATA LOCAL INFILE '{}' INTO TABLE t", file.display()),
    ] {
        let said = pair.protected.run(sql);
        let failure = said.expect_err(sql);
        let known = [
            "OS1047", "OS1005", "OS1009", "OS1018", "OS1013", "3948", "4166",
        ];
        let is_known = known.iter().any(|code| failure.message.contains(code));
        // an error of the server's own, for a value that is none
        let is_servers = [1264, 1265, 1366, 3948, 4166].contains(&failure.code);
        assert!(is_known || is_servers, "{sql}: {}", failure.message);
        let after = pair.protected.text("SELECT * FROM t ORDER BY id").unwrap();
        assert_eq!(after, before, "{sql}");
    }
    // deletions go by the scratch engine as well
    pair.same("DELETE FROM t WHERE LENGTH(s) > 90");
    let secrets = [
        "Secretone",
        "Secrettwo",
        "Secretsix",
        "Secretx",
        "Secrety",
        "Secretload",
    ];
    pair.assert_no_trace_of(&secrets);
}

fn only_a_plain_column_of_the_table_names_tenants(kind: Kind) {
    let Some(mut pair) = pair_with(kind, "", &[]) else {
        return;
    };
    let s = "s VARCHAR(9) ENCRYPTED FOR ()";
    for (definition, about) in [
        (format!("id INT, {s} KEY BY who"), "does not have"),
        (
            format!("who INT ENCRYPTED FOR (), {s} KEY BY who"),
            "is protected",
        ),
        (
            format!("a INT, who INT AS (a + 1), {s} KEY BY who"),
            "is generated",
        ),
        (format!("who DATE, {s} KEY BY who"), "no whole number"),
        (format!("who FLOAT, {s} KEY BY who"), "no whole number"),
        (format!("who INT, {s} KEY BY s"), "is protected"),
        (
            format!("who INT, x INT, {s} KEY BY who, t TEXT ENCRYPTED FOR () KEY BY x"),
            "of another",
        ),
        (format!("who INT, {s} KEY BY who AS Who"), "KEY BY COLUMN"),
        (
            "who INT, n INT ENCRYPTED FOR (range) KEY BY who".into(),
            "range",
        ),
        (
            "who INT, s VARCHAR(9) ENCRYPTED FOR (eq, like) KEY BY who".into(),
            "like",
        ),
        (
            "who INT, s VARCHAR(9) ENCRYPTED FOR (join:g) KEY BY who".into(),
            "join",
        ),
    ] {
        let sql = format!("CREATE TABLE t ({definition})");
        let failure = pair.protected.run(&sql).expect_err(&sql);
        assert!(
            failure.message.contains(about),
            "{sql}: {}",
            failure.message
        );
    }
    pair.protected.must(
        "CREATE TABLE t (id INT PRIMARY KEY, who INT, s VARCHAR(9) ENCRYPTED FOR () KEY BY who)",
    );
    pair.protected.must("INSERT INTO t VALUES (1, 1, 'one')");
    for sql in [
        "ALTER TABLE t DROP COLUMN who",
        "ALTER TABLE t RENAME COLUMN who TO whom",
        "ALTER TABLE t CHANGE who whom INT",
        "ALTER TABLE t MODIFY who VARCHAR(10)",
        "ALTER TABLE t ALTER COLUMN who SET DEFAULT 1",
        "ALTER TABLE t ADD COLUMN x INT ENCRYPTED FOR () KEY BY id",
        "ALTER TABLE t ADD COLUMN x INT ENCRYPTED FOR (range) KEY BY who",
        "ALTER TABLE t ADD COLUMN x VARCHAR(9) NOT NULL DEFAULT 'new' ENCRYPTED FOR () KEY BY who",
        "ALTER TABLE t MODIFY s VARCHAR(9) ENCRYPTED FOR ()",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(
            failure.message.contains("OS1"),
            "{sql}: {}",
            failure.message
        );
        assert_eq!(pair.protected.text("SELECT s FROM t").unwrap(), "one");
    }
    pair.protected
        .must("ALTER TABLE t ADD COLUMN x INT ENCRYPTED FOR () KEY BY who, ADD KEY (who)");
    pair.protected.must("INSERT INTO t VALUES (2, 1, 'two', 3)");
    pair.protected.must("UPDATE t SET x = 4 WHERE id = 1");
    assert_eq!(
        pair.protected
            .text("SELECT s, x FROM t ORDER BY id")
            .unwrap(),
        "one\t4\ntwo\t3"
    );
    assert_one_tenant_each(&tenants_of(&pair, "t", "x", "who"), 1);
    // where there are none yet, a migration looks at what gives rows other ones
    pair.protected
        .must("CREATE TABLE z (id INT PRIMARY KEY, who INT)");
    let sql = "ALTER TABLE z ADD COLUMN s INT ENCRYPTED FOR () KEY BY who, DROP COLUMN who";
    let failure = pair.protected.run(sql).unwrap_err();
    assert!(
        failure.message.contains("onionskin migrate"),
        "{}",
        failure.message
    );
    // a copy of the definition has tenants, too
    pair.protected.must("CREATE TABLE c LIKE t");
    pair.protected
        .must("INSERT INTO c VALUES (1, 5, 'five', 5)");
    let failure = pair
        .protected
        .run("INSERT INTO c (id, s) VALUES (2, 'six')");
    assert!(failure.unwrap_err().message.contains("OS1047"));
}

fn programs_and_foreign_keys_give_no_row_another_tenant(kind: Kind) {
    let Some(mut pair) = pair_with(kind, "", &[]) else {
        return;
    };
    pair.protected.must("CREATE TABLE p (id INT PRIMARY KEY)");
    let child = "(id INT PRIMARY KEY, who INT, s VARCHAR(9) ENCRYPTED FOR () KEY BY who, n INT";
    for action in ["CASCADE", "SET NULL"] {
        let sql = format!(
            "CREATE TABLE t {child}, FOREIGN KEY (who) REFERENCES p (id) ON UPDATE {action})"
        );
        let failure = pair.protected.run(&sql).expect_err(&sql);
        assert!(failure.message.contains("ON UPDATE"), "{}", failure.message);
    }
    pair.protected.must(&format!(
        "CREATE TABLE t {child}, FOREIGN KEY (who) REFERENCES p (id) ON DELETE CASCADE)"
    ));
    for sql in [
        "ALTER TABLE t ADD FOREIGN KEY (who) REFERENCES p (id) ON UPDATE CASCADE",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.who = 1",
        "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW SET NEW.n = 2, NEW.who = 1",
        "CREATE PROCEDURE g() UPDATE t SET who = 1",
        "CREATE PROCEDURE g() UPDATE t SET n = 1, t.who = n",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW CALL other(NEW.who)",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN CALL other(1, (NEW.who)); END",
        "CREATE VIEW w AS SELECT id, who AS whom, n FROM t",
        "CREATE VIEW w AS SELECT * FROM t",
        "CREATE ALGORITHM = MERGE VIEW w AS SELECT id, who FROM t",
        "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(
            failure.message.contains("OS1"),
            "{sql}: {}",
            failure.message
        );
    }
    pair.protected
        .must("CREATE ALGORITHM = TEMPTABLE VIEW w AS SELECT id, who AS whom, n FROM t");
    // no server writes through it
    assert_eq!(pair.protected.must_fail("UPDATE w SET whom = 2"), 1288);
    pair.protected
        .must("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.n = NEW.who");
    pair.protected.must("INSERT INTO p VALUES (1)");
    pair.protected.must("INSERT INTO t VALUES (1, 1, 'one', 0)");
    assert_eq!(pair.protected.text("SELECT s, n FROM t").unwrap(), "one\t1");
    pair.protected.must("DELETE FROM p");
    assert_eq!(pair.protected.text("SELECT COUNT(*) FROM t").unwrap(), "0");
}

fn tables_that_are_there_get_keys_of_tenants(kind: Kind) {
    let Some(mut pair) = pair_with(kind, "", &[]) else {
        return;
    };
    pair.both("CREATE TABLE t (id INT PRIMARY KEY, who VARCHAR(20), s VARCHAR(40), n INT)");
    let rows: Vec<String> = (0..500)
        .map(|id| format!("({id}, 'who {}', 'secret {id}', {id})", id % 5))
        .collect();
    pair.both(&format!("INSERT INTO t VALUES {}", rows.join(",")));
    let all = "SELECT * FROM t ORDER BY id";
    let run = |pair: &Pair, arguments: &[&str]| {
        let all = [&["app.t", "--drop-old"], arguments].concat();
        must_migrate(&pair.behind, Some(&pair.proxy), &all);
    };
    run(&pair, &["--encrypt", "s: key_by:who"]);
    pair.same_result(all);
    assert_one_tenant_each(&tenants_of(&pair, "t", "s", "who"), 5);
    pair.same("UPDATE t SET s = 'other' WHERE id BETWEEN 10 AND 20");
    pair.same("INSERT INTO t VALUES (900, 'who 7', 'new', 1)");
    // of nobody, without a value
    pair.same("INSERT INTO t VALUES (1000, NULL, NULL, 5)");
    run(&pair, &["--rotate"]);
    pair.same_result(all);
    assert_one_tenant_each(&tenants_of(&pair, "t", "s", "who"), 6);
    run(&pair, &["--add", "s: eq"]);
    pair.same_result("SELECT id FROM t WHERE s = 'other' ORDER BY id");
    forget_and_reload(&mut pair, &["who=who 3"]);
    let rest = "SELECT * FROM t WHERE who <> 'who 3' ORDER BY id";
    pair.same_result(rest);
    assert_eq!(pair.protected.must_fail(all), 1105);
    // what nobody can open nobody can move
    let said = must_not_migrate(
        &pair.behind,
        Some(&pair.proxy),
        &["app.t", "--rotate", "--drop-old"],
    );
    assert!(said.contains("forgotten"), "{said}");
    pair.protected.must("DELETE FROM t WHERE who = 'who 3'");
    let (done, said) = run_migration(migrate(
        &pair.behind,
        Some(&pair.proxy),
        &["app.t", "--abort"],
    ));
    assert!(done || said.contains("no migration"), "{said}");
    run(&pair, &["--drop", "s: key_by:who"]);
    pair.same_result(rest);
    assert!(tenants_of(&pair, "t", "s", "who").len() > 400);
    let header = "SELECT DISTINCT HEX(LEFT(s$enc, 1)) FROM app.t WHERE s$enc IS NOT NULL";
    assert_eq!(pair.behind.connect().text(header).unwrap(), "11");
    run(&pair, &["--add", "s: key_by:who"]);
    assert_eq!(pair.behind.connect().text(header).unwrap(), "31");
    pair.same_result(rest);
    run(&pair, &["--decrypt", "s"]);
    pair.same_result(rest);
}

fn without_the_file_nothing_is_written(kind: Kind) {
    let Some(mut pair) = pair_with(kind, "", &[]) else {
        return;
    };
    let definition = "(id INT PRIMARY KEY, who INT, s VARCHAR(9) ENCRYPTED FOR () KEY BY who)";
    pair.protected.must(&format!("CREATE TABLE t {definition}"));
    pair.protected.must("INSERT INTO t VALUES (1, 1, 'one')");
    let without = Proxy::start_with(
        &pair.behind,
        ProxyOptions {
            keys: Some(pair.proxy.keys()),
            ..ProxyOptions::default()
        },
    );
    let mut session = without.connect_to("app");
    for sql in [
        &format!("CREATE TABLE u {definition}"),
        "SELECT s FROM t",
        "INSERT INTO t VALUES (2, 2, 'two')",
        "UPDATE t SET s = 'two'",
    ] {
        let failure = session.run(sql).expect_err(sql);
        assert!(
            failure.message.contains("OS1113"),
            "{sql}: {}",
            failure.message
        );
    }
    assert_eq!(session.text("SELECT id, who FROM t").unwrap(), "1\t1");
    // with another file nothing opens that was sealed under this one
    let options = ProxyOptions {
        keys: Some(pair.proxy.keys()),
        settings: SETTINGS.into(),
        ..ProxyOptions::default()
    };
    let other = Proxy::start_with(&pair.behind, options);
    let failure = other.connect_to("app").run("SELECT s FROM t").unwrap_err();
    assert!(failure.message.contains("OS1102"), "{}", failure.message);
}

fn what_is_forgotten_is_shown_as_null(kind: Kind) {
    let tables =
        "CREATE TABLE t (id INT PRIMARY KEY, who INT, s VARCHAR(9) NOT NULL {eq| KEY BY who})";
    let settings = format!("{SETTINGS}forgotten = \"null\"\n");
    let Some(mut pair) = Pair::with_settings(kind, tables, &settings) else {
        return;
    };
    pair.run("INSERT INTO t VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 1, 'three')");
    forget_and_reload(&mut pair, &["who=1"]);
    let rows = "SELECT id, s FROM t ORDER BY id";
    let shown = "1\tNULL\n2\ttwo\n3\tNULL";
    assert_eq!(pair.protected.text(rows).unwrap(), shown);
    assert_eq!(pair.protected.execute_text(rows, ()).unwrap(), shown);
    let sorted = "SELECT id FROM t ORDER BY s DESC, id";
    assert_eq!(pair.protected.text(sorted).unwrap(), "2\n1\n3");
    // what is changed or computed rests on no NULL that is none
    for sql in [
        "UPDATE t SET s = 'x' WHERE id = 1",
        "UPDATE t SET s = CONCAT(s, 'x')",
        "SELECT UPPER(s) FROM t",
        "DELETE FROM t WHERE LENGTH(COALESCE(s, '')) = 0",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        let is_known = failure.message.contains("OS1112") || failure.message.contains("OS1047");
        assert!(is_known, "{sql}: {}", failure.message);
    }
    assert_eq!(pair.protected.text("SELECT COUNT(*) FROM t").unwrap(), "3");
}

/// `[protect]` gives tables that are made their tenants, and enforces them for those that are
/// there.
fn the_configuration_says_whose_rows_are(kind: Kind) {
    let sections = "enforce = true\n[protect.\"app.*\"]\nwho = [\"plain\"]\nid = [\"plain\"]\n\
                    \"*\" = [\"eq\", \"key_by:who=person\"]\n";
    let Some(mut pair) = pair_with(kind, sections, &[]) else {
        return;
    };
    pair.both("CREATE TABLE t (id INT PRIMARY KEY, who INT, s VARCHAR(20), d DATE)");
    pair.same("INSERT INTO t VALUES (1, 1, 'one', '2020-01-01'), (2, 2, 'two', NULL)");
    pair.same_result("SELECT * FROM t WHERE s = 'two'");
    assert_one_tenant_each(&tenants_of(&pair, "t", "s", "who"), 2);
    // a table without such a column, and one that somebody has made without tenants
    let failure = pair
        .protected
        .run("CREATE TABLE u (id INT PRIMARY KEY, s VARCHAR(20))");
    assert!(failure.unwrap_err().message.contains("does not have"));
    let words = "[protect.\"app.w\"]\ns = [\"eq\"]\n";
    let without = Proxy::start_with(
        &pair.behind,
        ProxyOptions {
            keys: Some(pair.proxy.keys()),
            tables: words.into(),
            ..ProxyOptions::default()
        },
    );
    let mut other = without.connect_to("app");
    other.must("CREATE TABLE w (id INT PRIMARY KEY, who INT, s VARCHAR(20))");
    std::thread::sleep(Duration::from_millis(1500));
    let failure = pair.protected.run("INSERT INTO w VALUES (1, 1, 'one')");
    assert!(failure.unwrap_err().message.contains("OS1108"));
    forget_and_reload(&mut pair, &["person=1"]);
    let rows = pair
        .protected
        .text("SELECT s FROM t WHERE who = 2")
        .unwrap();
    assert_eq!(rows, "two");
    assert_eq!(pair.protected.must_fail("SELECT s FROM t"), 1105);
}

/// Its value would live on with the new tenant when the one is forgotten that it was sealed for.
fn a_row_that_somebody_has_moved_is_not_written(kind: Kind) {
    let tables =
        ["CREATE TABLE t (id INT PRIMARY KEY, who INT, s VARCHAR(20) {| KEY BY who}, n INT)"];
    let Some(mut pair) = pair_with(kind, "", &tables) else {
        return;
    };
    pair.run("INSERT INTO t VALUES (1, 1, 'one', 1), (2, 2, 'two', 2), (3, 3, NULL, 3)");
    let mut behind = pair.behind.connect();
    behind.must("UPDATE app.t SET who = 2 WHERE id IN (1, 3)");
    for sql in [
        "UPDATE t SET s = 'other' WHERE id = 1",
        "UPDATE t SET s = 'other'",
        "UPDATE t SET s = 'other', n = 5 WHERE s IS NOT NULL",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(
            failure.message.contains("OS1047"),
            "{sql}: {}",
            failure.message
        );
    }
    let arguments = ["app.t", "--rotate", "--drop-old"];
    let said = must_not_migrate(&pair.behind, Some(&pair.proxy), &arguments);
    assert!(said.contains("another tenant"), "{said}");
    must_migrate(&pair.behind, Some(&pair.proxy), &["app.t", "--abort"]);
    pair.protected.must("UPDATE t SET s = 'three' WHERE id = 3");
    pair.protected.must("DELETE FROM t WHERE id = 1");
    must_migrate(&pair.behind, Some(&pair.proxy), &arguments);
    let rows = pair.protected.text("SELECT * FROM t ORDER BY id").unwrap();
    assert_eq!(rows, "2\t2\ttwo\t2\n3\t2\tthree\t3");
    assert_one_tenant_each(&tenants_of(&pair, "t", "s", "who"), 1);
}

fn what_gives_rows_other_tenants_stops_a_migration(kind: Kind) {
    let Some(mut pair) = pair_with(kind, "", &[]) else {
        return;
    };
    for sql in [
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE f (id INT PRIMARY KEY, who INT, s TEXT, CONSTRAINT fk FOREIGN KEY (who) \
         REFERENCES p (id) ON UPDATE CASCADE)",
        "CREATE TABLE g (id INT PRIMARY KEY, who INT, s TEXT, n INT)",
        "CREATE TRIGGER g_in BEFORE INSERT ON g FOR EACH ROW SET NEW.n = 1, NEW.who = NEW.who + 1",
        "CREATE TABLE h (id INT PRIMARY KEY, who INT, s TEXT, n INT)",
        "CREATE TRIGGER h_in BEFORE INSERT ON h FOR EACH ROW SET NEW.n = NEW.who + 1",
        "INSERT INTO h VALUES (1, 1, 'one', 0)",
    ] {
        pair.protected.must(sql);
    }
    let encrypt = |table: &'static str| [table, "--drop-old", "--encrypt", "s: key_by:who"];
    for (table, by) in [("app.f", "fk"), ("app.g", "g_in")] {
        let said = must_not_migrate(&pair.behind, Some(&pair.proxy), &encrypt(table));
        assert!(said.contains(by) && said.contains("KEY BY who"), "{said}");
    }
    must_migrate(&pair.behind, Some(&pair.proxy), &encrypt("app.h"));
    assert_eq!(pair.protected.text("SELECT s, n FROM h").unwrap(), "one\t2");
}
