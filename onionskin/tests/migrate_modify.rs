//! `onionskin migrate --modify`: a protected column gets another definition, from ciphertext to
//! ciphertext. A plain table on the same server, changed by ALTER TABLE, says what must come of it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use onionskin_testkit::*;

on_both_servers!(
    values_become_what_alter_table_makes_of_them,
    what_would_change_or_is_uncertain_leaves_the_table_as_it_was,
    one_definition_and_no_more,
    rows_are_written_meanwhile_and_there_is_a_way_back,
    a_killed_change_goes_on,
    equal_values_of_another_collation_cost_no_row,
    columns_without_a_default_stay_so,
);

/// Types, values, and the definition to come.
const CHANGES: &[(&str, &[&str], &str)] = &[
    ("VARCHAR(10)", &["'a'", "'Grüße  '", "''"], "VARCHAR(200)"),
    (
        "VARCHAR(10)",
        &["'a'", "'b '"],
        "VARCHAR(10) NOT NULL DEFAULT 'x' COMMENT 'it''s'",
    ),
    ("VARCHAR(10) NOT NULL", &["'a'"], "VARCHAR(10)"),
    (
        "VARCHAR(10)",
        &["'a'", "'B'"],
        "VARCHAR(10) COLLATE utf8mb4_bin",
    ),
    (
        "VARCHAR(10)",
        &["'äöü'", "'x'"],
        "VARCHAR(10) CHARACTER SET latin1",
    ),
    (
        "VARCHAR(9) CHARACTER SET latin1",
        &["'äöü'"],
        "VARCHAR(9) CHARACTER SET utf8mb4",
    ),
    ("VARCHAR(10)", &["'a'", "'b  '"], "CHAR(12)"),
    ("CHAR(10)", &["'a'", "'b  '"], "VARCHAR(12)"),
    ("VARCHAR(20)", &["'a'", "'b  '"], "TEXT"),
    ("TEXT", &["'a'", "'b  '"], "LONGTEXT"),
    ("TINYTEXT", &["'a'"], "VARCHAR(255)"),
    ("INT", &["-2147483648", "0", "7"], "BIGINT"),
    ("INT", &["0", "255"], "TINYINT UNSIGNED"),
    (
        "INT UNSIGNED",
        &["4294967295"],
        "BIGINT NOT NULL DEFAULT -1",
    ),
    ("INT", &["-5", "12"], "DECIMAL(9,2)"),
    ("INT", &["-5", "12"], "VARCHAR(20)"),
    ("DECIMAL(9,2)", &["-5.25", "12"], "DECIMAL(20,5)"),
    ("DECIMAL(9,2)", &["-5.25", "12.5", "0"], "VARCHAR(20)"),
    ("DECIMAL(9,2)", &["-5", "12"], "INT"),
    ("DATE", &["'2020-02-29'", "'1000-01-01'"], "DATETIME(3)"),
    ("DATE", &["'2020-02-29'"], "VARCHAR(20)"),
    ("DATETIME", &["'2020-02-29 23:59:59'"], "DATETIME(6)"),
    ("DATETIME(3)", &["'2020-02-29 23:59:59.5'"], "VARCHAR(40)"),
    ("TIME", &["'-838:59:59'", "'12:00:01'"], "TIME(3)"),
    ("TIME(2)", &["'-12:00:01.25'"], "CHAR(20)"),
    ("ENUM('a','b')", &["'a'", "'b'"], "ENUM('a','x','b')"),
    ("ENUM('a','b')", &["'a'", "'b'"], "VARCHAR(10)"),
    ("SET('a','b')", &["'a,b'", "''"], "SET('b','c','a')"),
    ("VARBINARY(5)", &["x'00ff'", "x''"], "VARBINARY(50)"),
    ("VARBINARY(5)", &["x'00ff'"], "BLOB"),
    (
        "TIMESTAMP NULL",
        &["'2020-01-01 00:00:00'"],
        "TIMESTAMP NULL COMMENT 'new'",
    ),
    ("DOUBLE", &["0.1", "-1e300"], "DOUBLE NOT NULL"),
    (
        "DOUBLE(8,2)",
        &["3.14159", "-0.5"],
        "DOUBLE(8,2) COMMENT 'two places'",
    ),
    (
        "FLOAT(8,2)",
        &["99999.99", "0.25"],
        "FLOAT(8,2) DEFAULT 1.5",
    ),
];

/// A server whose table `app.t` has protected columns and `app.p` the same ones unprotected, a
/// proxy and a session with each.
struct Scene {
    server: Server,
    proxy: Proxy,
    plain: Session,
    through: Session,
}

fn scene(kind: Kind) -> Option<Scene> {
    if direct_mode() {
        return None;
    }
    let server = logging_server(kind, &[])?;
    let proxy = Proxy::start(&server, "");
    let mut plain = server.connect();
    plain.must("CREATE DATABASE app DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci");
    plain.must("USE app");
    let through = proxy.connect_to("app");
    Some(Scene {
        server,
        proxy,
        plain,
        through,
    })
}

impl Scene {
    /// Makes both tables; `{words}` stands for the protection of a column.
    fn tables(&mut self, elements: &str) {
        let (protected, bare) = with_and_without_protection(elements);
        self.plain.must(&format!("CREATE TABLE p ({bare})"));
        self.through.must(&format!("CREATE TABLE t ({protected})"));
    }

    /// `@T` stands for the table.
    fn both(&mut self, sql: &str) {
        self.plain.must(&sql.replace("@T", "p"));
        self.through.must(&sql.replace("@T", "t"));
    }

    fn modify(&self, options: &[&str], definitions: &[&str]) -> (bool, String) {
        let mut arguments = vec!["app.t"];
        arguments.extend(options);
        for definition in definitions {
            arguments.extend(["--modify", definition]);
        }
        run_migration(migrate(&self.server, Some(&self.proxy), &arguments))
    }

    /// Rows and definitions are the same.
    fn must_be_alike(&mut self, columns: &str) {
        let rows = |session: &mut Session, table: &str| {
            let sql = format!("SELECT id, {columns} FROM {table} ORDER BY id");
            session.text(&sql).expect("rows")
        };
        let plain = rows(&mut self.plain, "p");
        assert_same_rows(&rows(&mut self.through, "t"), &plain, columns);
        let shown = |session: &mut Session, table: &str| {
            let text = session.text(&format!("SHOW CREATE TABLE {table}"));
            let text = text.expect("a definition");
            let at = text.find('(').expect("elements");
            text[at..].to_owned()
        };
        let plain = shown(&mut self.plain, "p");
        assert_eq!(shown(&mut self.through, "t"), plain);
    }
}

fn values_become_what_alter_table_makes_of_them(kind: Kind) {
    let Some(mut scene) = scene(kind) else {
        return;
    };
    let name = |n: usize| format!("c{n}");
    let mut elements = "id INT PRIMARY KEY".to_owned();
    for (n, (from, _, _)) in CHANGES.iter().enumerate() {
        let words = ["{eq}", "{}", "{range}"][n % 3];
        let words = if from.contains("TEXT") { "{}" } else { words };
        elements += &format!(", {} {from} {words}", name(n));
    }
    scene.tables(&elements);
    let most = CHANGES.iter().map(|(_, values, _)| values.len()).max();
    for row in 0..most.unwrap_or_default() {
        let values: Vec<&str> = CHANGES
            .iter()
            .map(|(_, values, _)| values[row % values.len()])
            .collect();
        scene.both(&format!(
            "INSERT INTO @T VALUES ({row}, {})",
            values.join(", ")
        ));
    }
    let nulls: Vec<String> = CHANGES
        .iter()
        .enumerate()
        .filter(|(_, (from, _, to))| !from.contains("NOT NULL") && !to.contains("NOT NULL"))
        .map(|(n, _)| format!("{} = NULL", name(n)))
        .collect();
    scene.both(&format!("UPDATE @T SET {} WHERE id = 1", nulls.join(", ")));
    let definitions: Vec<String> = CHANGES
        .iter()
        .enumerate()
        .map(|(n, (_, _, to))| format!("{} {to}", name(n)))
        .collect();
    scene.plain.must(&format!(
        "ALTER TABLE p MODIFY {}",
        definitions.join(", MODIFY ")
    ));
    let definitions: Vec<&str> = definitions.iter().map(String::as_str).collect();
    let (succeeded, text) = scene.modify(&["--drop-old"], &definitions);
    assert!(succeeded, "{text}");
    assert!(text.contains(" 0 repaired"), "{text}");
    let columns: Vec<String> = (0..CHANGES.len()).map(name).collect();
    scene.must_be_alike(&columns.join(", "));
    // Cells and tokens are of the new types: what is written now meets them.
    scene.both("INSERT INTO @T (id, c0, c2, c6, c7, c11, c19, c31) VALUES (10, 'A', 'x', 'x', 'x', 0, '2020-02-29', 1)");
    for sql in [
        "SELECT id FROM @T WHERE c0 = 'a' ORDER BY id",
        "SELECT id FROM @T WHERE c3 = 'A' OR c3 = 'a' ORDER BY id",
        "SELECT id FROM @T WHERE c11 BETWEEN -3000000000 AND 3 ORDER BY id",
        "SELECT id, c11 FROM @T ORDER BY c11 DESC, id",
        "SELECT c27, COUNT(*) FROM @T GROUP BY c27 ORDER BY 1",
        "SELECT id FROM @T WHERE c24 = '-12:00:01.25'",
    ] {
        let plain = scene.plain.text(&sql.replace("@T", "p")).expect(sql);
        match scene.through.text(&sql.replace("@T", "t")) {
            Ok(through) => assert_same_rows(&through, &plain, sql),
            Err(failure) => assert!(failure.message.starts_with("OS"), "{sql}: {failure}"),
        }
    }
}

fn what_would_change_or_is_uncertain_leaves_the_table_as_it_was(kind: Kind) {
    let Some(mut scene) = scene(kind) else {
        return;
    };
    scene.through.must(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) ENCRYPTED FOR (eq), n INT ENCRYPTED FOR (range), \
         d DATETIME(3) ENCRYPTED FOR (), ts TIMESTAMP NULL ENCRYPTED FOR (), e ENUM('a','b') ENCRYPTED FOR (eq), \
         p VARCHAR(10))",
    );
    scene.through.must(
        "INSERT INTO t VALUES (1, 'onionskin-canary', 70000, '2020-01-01 10:00:00.5', '2020-01-01', 'b', 'p'), \
         (2, NULL, NULL, NULL, NULL, NULL, NULL)",
    );
    let asked = "SELECT * FROM t ORDER BY id";
    let (rows, definition) = (
        scene.through.text(asked).expect("rows"),
        scene
            .through
            .text("SHOW CREATE TABLE t")
            .expect("a definition"),
    );
    for (definition, says) in [
        ("v VARCHAR(5)", "would change or refuse"),
        ("v INT", "is not certain"),
        ("v VARCHAR(20) NOT NULL", "holds NULL in column v"),
        ("n SMALLINT", "would change or refuse"),
        ("n INT NOT NULL", "holds NULL in column n"),
        ("d DATE", "is not certain"),
        ("ts DATETIME", "is not certain"),
        ("ts INT", "is not certain"),
        ("e ENUM('a')", "would change or refuse"),
        ("e INT", "is not certain"),
        ("v VARBINARY(20)", "is not certain"),
        ("v JSON", ""),
        ("p VARCHAR(20)", "column p is not protected"),
        ("w VARCHAR(20)", "has no column w"),
        ("v VARCHAR(20) AS (n)", ""),
        ("v GEOMETRY", ""),
        ("v VARCHAR(20) AUTO_INCREMENT", ""),
    ] {
        let (succeeded, text) = scene.modify(&[], &[definition]);
        assert!(!succeeded, "{definition}: {text}");
        assert!(text.contains(says), "{definition}: {text}");
        assert!(!text.contains("canary"), "{definition}: {text}");
        // What fails on its way is given up, or goes on when the row is another one.
        let tables = scene.plain.text("SHOW TABLES").expect("tables");
        if tables.contains("t_onionskin") {
            must_migrate(&scene.server, Some(&scene.proxy), &["app.t", "--abort"]);
        }
        assert_eq!(
            scene.plain.text("SHOW TABLES").expect("tables"),
            "t",
            "{definition}"
        );
    }
    assert_eq!(scene.through.text(asked).expect("rows"), rows);
    let after = scene
        .through
        .text("SHOW CREATE TABLE t")
        .expect("a definition");
    assert_eq!(after, definition);
    // The row is given another value, and the change goes on.
    let (succeeded, text) = scene.modify(&[], &["v VARCHAR(20) NOT NULL"]);
    assert!(!succeeded, "{text}");
    scene.through.must("UPDATE t SET v = '' WHERE id = 2");
    must_migrate(
        &scene.server,
        Some(&scene.proxy),
        &["app.t", "--resume", "--drop-old"],
    );
    assert_eq!(
        scene
            .through
            .must_fail("UPDATE t SET v = NULL WHERE id = 2"),
        1048
    );
    scene.server.shutdown();
    scene.server.assert_no_trace_of(&["onionskin-canary"]);
}

/// A definition that says more than one column's would be a way past the checks of the proxy.
fn one_definition_and_no_more(kind: Kind) {
    let Some(mut scene) = scene(kind) else {
        return;
    };
    scene
        .through
        .must("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) ENCRYPTED FOR (eq), w INT)");
    for definition in [
        "v VARCHAR(30), w VARCHAR(10)",
        "v VARCHAR(30) -- x",
        "v VARCHAR(30) /* x */",
        "v VARCHAR(30) # x",
        "v VARCHAR(30)) ENGINE=MyISAM",
        "v VARCHAR(30); DROP TABLE t",
        "v VARCHAR(30) UNIQUE",
        "v VARCHAR(30) FIRST",
        "v VARCHAR(30) ENCRYPTED FOR ()",
        "v VARCHAR(30) REFERENCES other (id)",
        "v",
        "",
    ] {
        let (succeeded, text) = scene.modify(&[], &[definition]);
        assert!(
            !succeeded && text.contains("--modify wants"),
            "{definition}: {text}"
        );
    }
    let (succeeded, text) = scene.modify(&[], &["v VARCHAR(30)", "V VARCHAR(31)"]);
    assert!(!succeeded && text.contains("twice"), "{text}");
    let (succeeded, text) = scene.modify(&["--rotate"], &["v VARCHAR(30)"]);
    assert!(
        !succeeded && text.contains("cannot stand together"),
        "{text}"
    );
    let (succeeded, text) = scene.modify(&["--dry-run"], &["v VARCHAR(30) NOT NULL"]);
    assert!(
        succeeded && text.contains("CREATE TABLE `t_onionskin_new`"),
        "{text}"
    );
    assert_eq!(scene.plain.text("SHOW TABLES").expect("tables"), "t");
}

fn rows_are_written_meanwhile_and_there_is_a_way_back(kind: Kind) {
    let Some(mut scene) = scene(kind) else {
        return;
    };
    scene.tables("id INT PRIMARY KEY, v VARCHAR(20) {eq}, n INT {range}");
    let rows: Vec<String> = (0..3000)
        .map(|id| format!("({id}, 'value {id}', {id})"))
        .collect();
    for rows in rows.chunks(500) {
        scene.both(&format!("INSERT INTO @T VALUES {}", rows.join(",")));
    }
    let definition = scene
        .through
        .text("SHOW CREATE TABLE t")
        .expect("a definition");
    let ends = AtomicBool::new(false);
    let written = AtomicU32::new(0);
    let changes = ["v VARCHAR(60) COLLATE utf8mb4_bin", "n DECIMAL(12,1)"];
    std::thread::scope(|scope| {
        let (server, proxy) = (&scene.server, &scene.proxy);
        let (ends, written) = (&ends, &written);
        scope.spawn(move || {
            let mut plain = server.connect();
            plain.must("USE app");
            let mut through = proxy.connect_to("app");
            while !ends.load(Ordering::Relaxed) {
                let n = written.fetch_add(1, Ordering::Relaxed);
                for sql in [
                    format!(
                        "UPDATE @T SET v = 'new {n}', n = -{n} WHERE id = {}",
                        n % 3000
                    ),
                    format!("INSERT INTO @T VALUES ({}, 'Later {n}', NULL)", 10_000 + n),
                    format!("DELETE FROM @T WHERE id = {}", 2 * n % 3000),
                ] {
                    plain.must(&sql.replace("@T", "p"));
                    through.must(&sql.replace("@T", "t"));
                }
            }
        });
        let child = {
            let mut arguments = vec!["app.t", "--reverse"];
            arguments.extend(changes.iter().flat_map(|change| ["--modify", change]));
            start_migration(migrate(server, Some(proxy), &arguments))
        };
        // Until the new table is in its place, and for some time afterwards.
        let mut seen = server.connect();
        let mut rounds = 0;
        while !seen
            .text("SHOW TABLES FROM app")
            .expect("tables")
            .contains("t_onionskin_old")
        {
            std::thread::sleep(Duration::from_millis(100));
            rounds += 1;
            assert!(rounds < 1200, "no switch");
        }
        std::thread::sleep(Duration::from_secs(2));
        ends.store(true, Ordering::Relaxed);
        must_migrate(server, Some(proxy), &["app.t", "--roll-back", "--drop-old"]);
        let (succeeded, text) = end_of_migration(child);
        assert!(succeeded, "{text}");
    });
    assert!(written.load(Ordering::Relaxed) > 20);
    scene.must_be_alike("v, n");
    assert_eq!(
        scene
            .through
            .text("SHOW CREATE TABLE t")
            .expect("a definition"),
        definition
    );
    // Once more, for good.
    scene
        .plain
        .must("ALTER TABLE p MODIFY v VARCHAR(60) COLLATE utf8mb4_bin, MODIFY n DECIMAL(12,1)");
    let (succeeded, text) = scene.modify(&["--drop-old"], &changes);
    assert!(succeeded, "{text}");
    scene.must_be_alike("v, n");
}

fn a_killed_change_goes_on(kind: Kind) {
    let Some(mut scene) = scene(kind) else {
        return;
    };
    scene.tables("id INT PRIMARY KEY, v VARCHAR(20) {eq}");
    let rows: Vec<String> = (0..20_000)
        .map(|id| format!("({id}, 'value {id}')"))
        .collect();
    for rows in rows.chunks(1000) {
        scene.both(&format!("INSERT INTO @T VALUES {}", rows.join(",")));
    }
    scene
        .plain
        .must("ALTER TABLE p MODIFY v VARCHAR(70) NOT NULL");
    let arguments = ["app.t", "--modify", "v VARCHAR(70) NOT NULL"];
    for round in 0..4 {
        let arguments = match round {
            0 => &arguments[..],
            _ => &["app.t", "--resume"],
        };
        let mut child = start_migration(migrate(&scene.server, Some(&scene.proxy), arguments));
        // a busy machine may take long to come so far
        wait_until("the checkpoint", Duration::from_secs(30), || {
            has_checkpoint(&mut scene.plain) || child.try_wait().expect("a child").is_some()
        });
        std::thread::sleep(Duration::from_millis(50 + 150 * round));
        let _ = child.kill();
        let _ = child.wait();
        if !has_checkpoint(&mut scene.plain) {
            break;
        }
    }
    if has_checkpoint(&mut scene.plain) {
        must_migrate(&scene.server, Some(&scene.proxy), &["app.t", "--resume"]);
    }
    scene.must_be_alike("v");
}

/// Whether a migration of the table has begun and has not ended.
fn has_checkpoint(session: &mut Session) -> bool {
    let tables = session.text("SHOW TABLES").expect("tables");
    tables.lines().any(|table| table == "t_onionskin")
}

/// Rows that the new collation takes for the same are an error of the unique key, and both stay.
fn equal_values_of_another_collation_cost_no_row(kind: Kind) {
    let Some(mut scene) = scene(kind) else {
        return;
    };
    scene.through.must(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) COLLATE utf8mb4_bin ENCRYPTED FOR (eq), UNIQUE KEY (v))",
    );
    scene
        .through
        .must("INSERT INTO t VALUES (1, 'onionskin-canary'), (2, 'ONIONSKIN-CANARY'), (3, 'b')");
    let (succeeded, text) = scene.modify(&[], &["v VARCHAR(20) COLLATE utf8mb4_general_ci"]);
    assert!(!succeeded, "{text}");
    assert!(
        text.contains("<sealed>") && !text.to_lowercase().contains("canary"),
        "{text}"
    );
    must_migrate(&scene.server, Some(&scene.proxy), &["app.t", "--abort"]);
    assert_eq!(
        scene
            .through
            .text("SELECT COUNT(*) FROM t")
            .expect("a number"),
        "3"
    );
}

/// `ALTER COLUMN … DROP DEFAULT` of columns that allow NULL leaves them without any default on
/// MySQL, and no definition says so.
fn columns_without_a_default_stay_so(kind: Kind) {
    let Some(mut scene) = scene(kind) else {
        return;
    };
    scene.tables(
        "id INT PRIMARY KEY, a VARCHAR(20) {eq} DEFAULT 'x', n INT {range}, e ENUM('a','b') {eq}, \
         m INT {eq}, v VARCHAR(9), w VARCHAR(9), z INT DEFAULT 5, y INT",
    );
    scene.both("INSERT INTO @T VALUES (1, 'one', 1, 'a', 2, 'v', 'w', 3, 4)");
    for column in ["a", "n", "e", "m", "v", "w", "z"] {
        scene.both(&format!(
            "ALTER TABLE @T ALTER COLUMN {column} DROP DEFAULT"
        ));
    }
    let columns = "a, n, e, m, v, w, z, y";
    // which columns name their character set changes with a table that is made anew
    let must_be_alike = |scene: &mut Scene| {
        let mut shown = Vec::new();
        for (session, table) in [(&mut scene.plain, "p"), (&mut scene.through, "t")] {
            let rows = format!("SELECT id, {columns} FROM {table} ORDER BY id");
            let rows = session.text(&rows).expect("rows");
            let text = session.text(&format!("SHOW CREATE TABLE {table}"));
            let text = text
                .expect("a definition")
                .replace(" CHARACTER SET utf8mb4", "");
            let text = text.replace(" COLLATE utf8mb4_general_ci", "");
            let at = text.find('(').expect("elements");
            shown.push((rows, text[at..].to_owned()));
        }
        assert_eq!(shown[1], shown[0]);
    };
    must_be_alike(&mut scene);
    // what is redefined has NULL again
    scene.plain.must("ALTER TABLE p MODIFY m BIGINT");
    let (succeeded, text) = scene.modify(&["--drop-old"], &["m BIGINT"]);
    assert!(succeeded, "{text}");
    must_be_alike(&mut scene);
    for words in [
        ["--encrypt", "v: eq"],
        ["--encrypt", "z: range"],
        ["--decrypt", "n"],
    ] {
        let mut arguments = vec!["app.t", "--drop-old"];
        arguments.extend(words);
        let (succeeded, text) =
            run_migration(migrate(&scene.server, Some(&scene.proxy), &arguments));
        assert!(succeeded, "{words:?}: {text}");
        must_be_alike(&mut scene);
    }
    let of_all = "id, a, n, e, m, v, w, z, y";
    for left_out in ["a", "n", "e", "m", "v", "w", "z", "y"] {
        let names: Vec<&str> = of_all
            .split(", ")
            .filter(|name| *name != left_out)
            .collect();
        let mut said = Vec::new();
        for (session, table) in [(&mut scene.plain, "p"), (&mut scene.through, "t")] {
            session.must("DELETE FROM @T WHERE id = 2".replace("@T", table).as_str());
            let values = vec!["2"; names.len() - 1].join(", ");
            let sql = format!(
                "INSERT INTO {table} ({}) VALUES (2, {values})",
                names.join(", ")
            );
            let sql = sql.replace("e, m", "m");
            said.push(
                session
                    .run(&sql)
                    .map(|o| o.affected)
                    .map_err(|f| (f.code, f.message)),
            );
        }
        assert_eq!(said[0], said[1], "{left_out}");
    }
    scene.proxy.assert_healthy();
}
