//! Tables with triggers are migrated while they are written. The triggers go with the table as they
//! are, and run once for each change of the application, never for the migration's own writes.

use onionskin_testkit::*;

use rand::RngExt;
use rand::rngs::StdRng;

use std::time::Duration;

on_both_servers!(
    triggers_go_with_an_idle_table,
    every_change_runs_them_once,
    a_killed_switch_is_ended_with_all_triggers,
    a_table_without_some_of_them_refuses_changes,
    a_checkpoint_does_not_choose_what_is_made,
    triggers_that_cannot_go_are_refused,
    triggers_that_reach_the_column_otherwise_are_refused,
    names_of_ours_that_are_taken_are_refused,
);

/// A table, and triggers of every kind that write down what happens to it. `{}` is the database.
/// They are made in another order than they run in, under other settings, and for other accounts.
const SCENE: &[&str] = &[
    "CREATE DATABASE {}",
    "USE {}",
    "CREATE TABLE {}.t (id INT PRIMARY KEY, name VARCHAR(60), n INT NOT NULL DEFAULT 0)",
    "CREATE TABLE {}.audit (no INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(80), id INT, n INT)",
    "CREATE TRIGGER {}.second AFTER INSERT ON {}.t FOR EACH ROW INSERT INTO audit (what, id, n) VALUES ('second', NEW.id, NEW.n)",
    "SET NAMES latin1 COLLATE latin1_german1_ci, sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    "CREATE TRIGGER \"first\" AFTER INSERT ON t FOR EACH ROW PRECEDES second INSERT INTO audit (what, id, n) VALUES ('a \\ t', NEW.id, NEW.n)",
    "SET NAMES utf8mb4, sql_mode = 'STRICT_ALL_TABLES'",
    "CREATE USER IF NOT EXISTS `some one`@`%`",
    "GRANT ALL ON {}.* TO `some one`@`%`",
    "CREATE DEFINER = `some one`@`%` TRIGGER {}.counts BEFORE INSERT ON t FOR EACH ROW SET NEW.n = NEW.n + 1",
    "CREATE TRIGGER doubles BEFORE INSERT ON {}.t FOR EACH ROW FOLLOWS counts SET NEW.n = NEW.n * 2",
    "CREATE TRIGGER {}.t /* has the table's name */ AFTER UPDATE ON t FOR EACH ROW\nBEGIN\n  -- größer\n  IF NEW.n <> OLD.n THEN\n    INSERT INTO audit (what, id, n) VALUES ('u\\'ü', OLD.id, NEW.n);\n  END IF;\nEND",
    "CREATE TRIGGER gone AFTER DELETE ON t FOR EACH ROW INSERT INTO audit (what, id, n) SELECT 'gone', OLD.id, COUNT(*) FROM audit WHERE id = OLD.id",
    "SET NAMES utf8mb4, sql_mode = DEFAULT",
];
const NAMES: [&str; 6] = ["second", "first", "counts", "doubles", "t", "gone"];
const IDS: u32 = 300;

fn make(session: &mut Session, database: &str) {
    for sql in SCENE {
        session.must(&sql.replace("{}", database));
    }
    for id in 1..IDS {
        session.must(&format!(
            "INSERT INTO t (id, name, n) VALUES ({id}, 'name {id}', {})",
            id % 7
        ));
    }
}

/// All that is shown of the triggers.
fn triggers(session: &mut Session, database: &str) -> String {
    let mut shown = session
        .text(&format!(
            "SELECT * FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = '{database}' ORDER BY TRIGGER_NAME"
        ))
        .unwrap();
    for name in NAMES {
        let sql = format!("SHOW CREATE TRIGGER `{database}`.`{name}`");
        shown += &format!("\n{}", session.text(&sql).unwrap());
    }
    shown
}

fn rows(session: &mut Session, database: &str) -> [String; 2] {
    [
        session
            .text(&format!("SELECT * FROM {database}.t ORDER BY id"))
            .unwrap(),
        session
            .text(&format!("SELECT * FROM {database}.audit ORDER BY no"))
            .unwrap(),
    ]
}

fn nothing_is_left(session: &mut Session) {
    let names = session
        .text(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'app' \
             UNION SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'app'",
        )
        .unwrap();
    assert!(!names.contains("onionskin"), "{names}");
}

/// Each change runs what it did, in the same order.
fn triggers_are_in_force(session: &mut Session) {
    session.must("USE app");
    session.must("BEGIN");
    session.must("INSERT INTO t (id, name, n) VALUES (9000, 'x', 4)");
    session.must("UPDATE t SET n = 11 WHERE id = 9000");
    session.must("UPDATE t SET name = 'y' WHERE id = 9000");
    session.must("DELETE FROM t WHERE id = 9000");
    assert_eq!(
        session
            .text("SELECT what, n FROM audit WHERE id = 9000 ORDER BY no")
            .unwrap(),
        "a \\ t\t10\nsecond\t10\nu'ü\t11\ngone\t3"
    );
    session.must("ROLLBACK");
}

fn triggers_go_with_an_idle_table(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    make(&mut session, "app");
    triggers_are_in_force(&mut session);
    let (before, content) = (triggers(&mut session, "app"), rows(&mut session, "app"));
    for arguments in [
        ["app.t", "--rebuild"].as_slice(),
        &["app.t", "--rebuild", "--drop-old"],
        &[
            "app.t",
            "--alter",
            "MODIFY name VARCHAR(90), ADD INDEX (name)",
        ],
    ] {
        must_migrate(&server, None, arguments);
        assert_eq!(triggers(&mut session, "app"), before, "{arguments:?}");
        assert_eq!(rows(&mut session, "app"), content, "{arguments:?}");
        triggers_are_in_force(&mut session);
        session.must("DROP TABLE IF EXISTS t_onionskin_old");
        nothing_is_left(&mut session);
    }
    there_is_a_way_back(&server, &mut session, &before, &content);
    // With keys in both directions.
    session.must("CREATE TABLE child (id INT PRIMARY KEY, t INT, CONSTRAINT c FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE)");
    session.must("CREATE TABLE parent (id INT PRIMARY KEY)");
    session.must("ALTER TABLE t ADD parent INT, ADD CONSTRAINT p FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE");
    must_migrate(&server, None, &["app.t", "--rebuild", "--drop-old"]);
    assert_eq!(triggers(&mut session, "app"), before);
    assert_eq!(
        session.must_fail("INSERT INTO child VALUES (1, 9999)"),
        1452
    );
    triggers_are_in_force(&mut session);
    nothing_is_left(&mut session);
    session.must("DROP TABLE child");
    session.must("ALTER TABLE t DROP FOREIGN KEY p, DROP COLUMN parent");
    if direct_mode() {
        return;
    }
    let mut proxy = Proxy::start(&server, "");
    for change in [
        ["--encrypt", "name: eq range"],
        ["--drop", "name: range"],
        ["--modify", "name VARCHAR(80)"],
        ["--decrypt", "name"],
    ] {
        let arguments = ["app.t", change[0], change[1], "--drop-old"];
        must_migrate(&server, Some(&proxy), &arguments);
        assert_eq!(triggers(&mut session, "app"), before, "{change:?}");
        let mut through = proxy.connect();
        through.must("USE app");
        let id = through.text("SELECT id FROM t WHERE name = 'name 77'");
        assert_eq!(id.unwrap(), "77", "{change:?}");
        triggers_are_in_force(&mut through);
        nothing_is_left(&mut session);
    }
    proxy.assert_healthy();
}

/// The old table, which is fed, runs nothing, and has them again when it is back.
fn there_is_a_way_back(
    server: &Server,
    session: &mut Session,
    before: &str,
    content: &[String; 2],
) {
    let feeding = start_migration(migrate(server, None, &["app.t", "--rebuild", "--reverse"]));
    wait_until("the old table is fed", Duration::from_secs(60), || {
        let phase =
            "SELECT JSON_UNQUOTE(JSON_EXTRACT(state, '$.phase')) FROM app.t_onionskin WHERE id = 1";
        session.text(phase).is_ok_and(|phase| phase == "reverse")
    });
    assert_eq!(triggers(session, "app"), *before);
    session.must("INSERT INTO t (id, name) VALUES (8000, 'new')");
    session.must("DELETE FROM t WHERE id = 8000");
    let audited = "SELECT COUNT(*) FROM audit WHERE id = 8000";
    wait_until("it has followed", Duration::from_secs(30), || {
        let lines = "SELECT COUNT(*) FROM t_onionskin_old WHERE id = 8000";
        session.text(lines).is_ok_and(|count| count == "0")
    });
    must_migrate(server, None, &["app.t", "--roll-back", "--drop-old"]);
    let (succeeded, text) = end_of_migration(feeding);
    assert!(succeeded, "{text}");
    assert_eq!(triggers(session, "app"), *before);
    assert_eq!(session.text(audited).unwrap(), "3");
    session.must("DELETE FROM audit WHERE id = 8000");
    assert_eq!(rows(session, "app"), *content);
    triggers_are_in_force(session);
    nothing_is_left(session);
}

/// What an application does, at random.
fn work_at(rng: &mut StdRng) -> Vec<String> {
    let statement = |rng: &mut StdRng| {
        let (id, n) = (rng.random_range(1..IDS + 40), rng.random_range(0..1000));
        match rng.random_range(0..12) {
            0..=2 => format!("INSERT INTO {{}}.t (id, name, n) VALUES ({id}, 'new {n}', {n})"),
            3 => format!("REPLACE INTO {{}}.t (id, name, n) VALUES ({id}, 'other {n}', {n})"),
            4..=6 => format!("UPDATE {{}}.t SET n = {n} WHERE id = {id}"),
            7 => format!("UPDATE {{}}.t SET name = 'name {n}' WHERE id = {id}"),
            8 => format!(
                "INSERT INTO {{}}.t (id, name, n) VALUES ({id}, 'up', {n}) ON DUPLICATE KEY UPDATE n = n + 1"
            ),
            9 => format!("UPDATE {{}}.t SET n = n + 1 WHERE id BETWEEN {id} AND {id} + 3"),
            10 => format!("UPDATE {{}}.t SET id = {n} + 1000 WHERE id = {id}"),
            _ => format!("DELETE FROM {{}}.t WHERE id = {id}"),
        }
    };
    one_or_a_transaction(rng, statement)
}

fn every_change_runs_them_once(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let mut proxy = Proxy::start(&server, "");
    let mut session = server.connect();
    make(&mut session, "app");
    make(&mut session, "twin");
    let before = triggers(&mut session, "app");
    let (mut through, mut plain) = (proxy.connect(), server.connect());
    let changes: [&[&str]; 5] = [
        &["app.t", "--rebuild"],
        &["app.t", "--encrypt", "name: eq"],
        &["app.t", "--rotate"],
        &["app.t", "--decrypt", "name"],
        &["app.t", "--rebuild"],
    ];
    for (seed, change) in changes.into_iter().enumerate() {
        let [done, _] =
            beside_an_application([&mut through, &mut plain], seed as u64, work_at, || {
                let arguments = [change, &["--drop-old"]].concat();
                let text = must_migrate(&server, Some(&proxy), &arguments);
                assert!(text.contains(" 0 repaired"), "{change:?}: {text}");
            });
        announce(&format!("{change:?}: {done} pieces of work"));
        assert!(done > 20, "{change:?}: {done}");
        // A deadlock undoes numbers of the audit with its rows, but does not give them back.
        let lines = "SELECT what, id, n FROM {}.audit ORDER BY no";
        let [is, should] = [(&mut through, "app"), (&mut plain, "twin")].map(|(s, database)| {
            [
                s.text(&lines.replace("{}", database)).unwrap(),
                s.text(&format!("SELECT * FROM {database}.t ORDER BY id"))
                    .unwrap(),
            ]
        });
        assert_same_rows(&is[0], &should[0], &format!("{change:?}: audit"));
        assert_same_rows(&is[1], &should[1], &format!("{change:?}"));
    }
    assert_eq!(triggers(&mut session, "app"), before);
    nothing_is_left(&mut session);
    proxy.assert_healthy();
}

/// Kills a migration at statements of its switch, and ends it by `--resume` or `--abort`. What is
/// written in between runs every trigger once, or is refused.
fn a_killed_switch_is_ended_with_all_triggers(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    make(&mut session, "app");
    session.must("USE app");
    let before = triggers(&mut session, "app");
    // Twelve statements make six triggers when it is tried whether they can be made.
    let points = [
        ("TRIGGER `t_onionskin_t0`", 1),
        ("TRIGGER `t_onionskin_t0`", 2),
        ("TRIGGER `t_onionskin_t5`", 2),
        ("RENAME TABLE", 1),
        ("DROP TRIGGER IF EXISTS `app`.`second`", 1),
        ("TRIGGER `app`.`t_onionskin_gi`", 1),
        ("TRIGGER `app`.`t_onionskin_gd`", 1),
        ("DROP TRIGGER IF EXISTS `app`.`t_onionskin_t0`", 2),
        ("DROP TRIGGER IF EXISTS `app`.`t_onionskin_t5`", 2),
        ("SET @onionskin_migration = NULL", 1),
        ("DROP TRIGGER IF EXISTS `app`.`t_onionskin_gi`", 1),
        ("DROP TRIGGER IF EXISTS `app`.`t_onionskin_gu`", 1),
    ];
    let mut refused = 0;
    for (statement, times) in points {
        for (when, ending) in [
            (When::Before, "--abort"),
            (When::After, "--resume"),
            (When::After, "--abort"),
        ] {
            let context = format!("{statement} {times} {when:?} {ending}");
            let point = (statement, times, when);
            kill_at(&server, &["app.t", "--rebuild"], point);
            session.must("DELETE FROM audit");
            let changes = [
                ("INSERT INTO t (id, n) VALUES (7000, 1)", 2),
                ("UPDATE t SET n = n + 1 WHERE id = 7000", 1),
                ("DELETE FROM t WHERE id = 7000", 1),
            ];
            let mut should = 0;
            for (sql, lines) in changes {
                match session.run(sql) {
                    // Nothing is there to be changed.
                    Ok(done) if done.affected == 0 => {}
                    Ok(_) => should += lines,
                    Err(error) => {
                        assert_eq!(error.code, 1644, "{context}: {error:?}");
                        assert!(error.message.contains("--resume or --abort"), "{error:?}");
                        refused += 1;
                    }
                }
                let count = session.text("SELECT COUNT(*) FROM audit").unwrap();
                assert_eq!(count, should.to_string(), "{context}: {sql}");
            }
            let (succeeded, text) = run_migration(migrate(&server, None, &["app.t", ending]));
            // Where the tables had changed their names, --abort says so, and is done.
            let was_switched = text.contains("were switched before the end came");
            assert!(succeeded || was_switched, "{context}: {text}");
            session.must("DROP TABLE IF EXISTS t_onionskin_old");
            session.must("DELETE FROM t WHERE id = 7000");
            session.must("DELETE FROM audit");
            assert_eq!(triggers(&mut session, "app"), before, "{context}: {text}");
            nothing_is_left(&mut session);
        }
    }
    assert!(refused > 0, "the guard was seen");
    triggers_are_in_force(&mut session);
}

/// The way back that is killed in its switch.
fn a_table_without_some_of_them_refuses_changes(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    make(&mut session, "app");
    session.must("USE app");
    let before = triggers(&mut session, "app");
    for ending in ["--resume", "--roll-back"] {
        let feeding = start_migration(migrate(&server, None, &["app.t", "--rebuild", "--reverse"]));
        wait_until("the old table is fed", Duration::from_secs(60), || {
            let phase = "SELECT JSON_UNQUOTE(JSON_EXTRACT(state, '$.phase')) FROM app.t_onionskin WHERE id = 1";
            session.text(phase).is_ok_and(|phase| phase == "reverse")
        });
        let point = ("SET @onionskin_migration = NULL", 1, When::Before);
        kill_at(&server, &["app.t", "--roll-back"], point);
        assert!(end_of_migration(feeding).0);
        for sql in [
            "INSERT INTO t (id) VALUES (1), (7000)",
            "UPDATE t SET n = 1 WHERE id = 1",
            "DELETE FROM t WHERE id = 1",
        ] {
            assert_eq!(session.must_fail(sql), 1644, "{sql}");
        }
        must_migrate(&server, None, &["app.t", ending]);
        assert_eq!(triggers(&mut session, "app"), before, "{ending}");
        session.must("DROP TABLE t_onionskin_new");
        nothing_is_left(&mut session);
        triggers_are_in_force(&mut session);
    }
}

/// Without keys whoever may write to the checkpoint could have triggers made for other accounts.
fn a_checkpoint_does_not_choose_what_is_made(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    make(&mut session, "app");
    session.must("USE app");
    let before = triggers(&mut session, "app");
    let point = match kind {
        Kind::MySql => ("RENAME TABLE", 1, When::After),
        // There the rename comes when the lock is given back.
        Kind::MariaDb => ("DROP TRIGGER IF EXISTS `app`.`gone`", 1, When::Before),
    };
    kill_at(&server, &["app.t", "--rebuild"], point);
    let state = session
        .text("SELECT HEX(state) FROM t_onionskin WHERE id = 1")
        .unwrap();
    let owner = "SELECT DEFINER FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'app'";
    let owners = session.text(owner).unwrap();
    for (place, value) in [
        (
            "statement",
            "CREATE DEFINER=`root`@`localhost` TRIGGER gone AFTER DELETE ON t FOR EACH ROW SET @a = 1",
        ),
        ("statement", "GRANT ALL ON *.* TO `some one`@`%`"),
        ("definer", "mysql.sys@localhost"),
        ("sql_mode", "ANSI"),
        ("name", "another"),
    ] {
        session.must(&format!(
            "UPDATE t_onionskin SET state = JSON_SET(state, '$.triggers[0].{place}', '{value}') WHERE id = 1"
        ));
        for ending in ["--resume", "--abort"] {
            let text = must_not_migrate(&server, None, &["app.t", ending]);
            assert!(text.contains("tells of another trigger"), "{place}: {text}");
            assert_eq!(session.text(owner).unwrap(), owners, "{place}");
        }
        session.must(&format!(
            "UPDATE t_onionskin SET state = X'{state}' WHERE id = 1"
        ));
    }
    must_migrate(&server, None, &["app.t", "--resume", "--drop-old"]);
    assert_eq!(triggers(&mut session, "app"), before);
    nothing_is_left(&mut session);
}

fn triggers_that_cannot_go_are_refused(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    make(&mut session, "app");
    session.must("CREATE TRIGGER looks BEFORE UPDATE ON t FOR EACH ROW SET @seen = OLD.name");
    let names = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'app'";
    let tables = session.text(names).unwrap();
    if !direct_mode() {
        let mut proxy = Proxy::start(&server, "");
        let arguments = ["app.t", "--encrypt", "name: eq"];
        for arguments in [&arguments[..], &[&arguments[..], &["--dry-run"]].concat()] {
            let text = must_not_migrate(&server, Some(&proxy), arguments);
            assert!(
                text.contains("trigger looks uses the column name"),
                "{text}"
            );
        }
        assert_eq!(session.text(names).unwrap(), tables);
        proxy.assert_healthy();
    }
    // The server would let it break.
    let arguments = ["app.t", "--alter", "DROP COLUMN name"];
    let text = must_not_migrate(&server, None, &arguments);
    assert!(
        text.contains("trigger looks cannot be made on the new table"),
        "{text}"
    );
    session.must("DROP TRIGGER looks");
    // One that comes, goes or becomes another one meanwhile.
    for (sql, back) in [
        (
            "CREATE TRIGGER late AFTER DELETE ON t FOR EACH ROW SET @a = 1",
            "DROP TRIGGER late",
        ),
        (
            "DROP TRIGGER gone",
            "CREATE TRIGGER gone AFTER DELETE ON t FOR EACH ROW SET @a = 1",
        ),
    ] {
        must_migrate(
            &server,
            None,
            &["app.t", "--rebuild", "--cut-over", "postpone"],
        );
        session.must(sql);
        let text = must_not_migrate(&server, None, &["app.t", "--resume"]);
        assert!(text.contains("was changed by another statement"), "{text}");
        must_migrate(&server, None, &["app.t", "--abort"]);
        session.must(back);
        nothing_is_left(&mut session);
    }
    // A trigger of another table that names this one is no matter.
    must_migrate(
        &server,
        None,
        &["app.t", "--rebuild", "--cut-over", "postpone"],
    );
    session.must("CREATE TRIGGER beside AFTER INSERT ON audit FOR EACH ROW SET @rows = (SELECT MAX(id) FROM t)");
    must_migrate(&server, None, &["app.t", "--resume", "--drop-old"]);
    session.must("DROP TRIGGER beside");
    // The account cannot see them, or not make them.
    session.must("CREATE USER mover IDENTIFIED BY 'secret'");
    session.must("GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.* TO mover");
    if kind == Kind::MySql {
        session.must("GRANT XA_RECOVER_ADMIN ON *.* TO mover");
    }
    if kind == Kind::MariaDb {
        session.must("GRANT BINLOG MONITOR, CONNECTION ADMIN, RELOAD ON *.* TO mover");
    }
    session.must("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, LOCK TABLES ON app.* TO mover");
    let tables = session.text(names).unwrap();
    let as_mover = |arguments: &[&str]| {
        let socket = format!("unix:{}", server.socket().display());
        let mut command = migrate_at(&socket, None, arguments);
        command
            .args(["--user", "mover"])
            .env("ONIONSKIN_PASSWORD", "secret");
        run_migration(command)
    };
    for arguments in [
        ["app.t", "--rebuild"].as_slice(),
        &["app.t", "--rebuild", "--dry-run"],
    ] {
        let (succeeded, text) = as_mover(arguments);
        assert!(
            !succeeded && text.contains("the privilege TRIGGER"),
            "{text}"
        );
    }
    session.must("GRANT TRIGGER ON app.* TO mover");
    let (succeeded, text) = as_mover(&["app.t", "--rebuild"]);
    assert!(
        !succeeded && text.contains("cannot be made on the new table"),
        "{text}"
    );
    assert_eq!(session.text(names).unwrap(), tables);
}

/// By another spelling, a view of a view, a function, a procedure, or the trigger of another table.
fn triggers_that_reach_the_column_otherwise_are_refused(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    for sql in [
        "CREATE DATABASE app",
        "CREATE DATABASE other",
        "USE app",
        "CREATE TABLE t (id INT PRIMARY KEY, `näme` VARCHAR(60), n INT NOT NULL DEFAULT 0)",
        "CREATE TABLE audit (no INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(80))",
        "CREATE TABLE audit2 (no INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(80))",
        "INSERT INTO t (id, `näme`) VALUES (1, 'x')",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE VIEW other.w (id, a) AS SELECT id, `näme` FROM app.v",
        "CREATE FUNCTION f() RETURNS INT READS SQL DATA RETURN (SELECT COUNT(`näme`) FROM t)",
        "CREATE PROCEDURE p() SET @n = f()",
        "CREATE TRIGGER reader AFTER INSERT ON audit2 FOR EACH ROW SET @n = (SELECT COUNT(`näme`) FROM t)",
        "CREATE VIEW harmless AS SELECT 1 AS one",
        "CREATE FUNCTION counts() RETURNS INT NO SQL RETURN 1",
    ] {
        session.must(sql);
    }
    let proxy = Proxy::start(&server, "");
    let names = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'app'";
    let tables = session.text(names).unwrap();
    let change = ["app.t", "--encrypt", "näme: eq"];
    for body in [
        "SET @a = NEW.`NÄME`",
        "INSERT INTO audit (what) SELECT MAX(`näme`) FROM v",
        "INSERT INTO audit (what) SELECT MAX(a) FROM `other`.`w`",
        "SET @a = f()",
        "CALL `p`()",
        "INSERT INTO audit2 (what) VALUES (NEW.id)",
    ] {
        session.must(&format!(
            "CREATE TRIGGER looks AFTER INSERT ON t FOR EACH ROW {body}"
        ));
        let text = must_not_migrate(&server, Some(&proxy), &change);
        assert!(text.contains("its trigger looks"), "{body}: {text}");
        assert_eq!(session.text(names).unwrap(), tables, "{body}");
        session.must("DROP TRIGGER looks");
    }
    session.must(
        "CREATE TRIGGER looks AFTER INSERT ON t FOR EACH ROW \
         INSERT INTO audit (what) SELECT one + counts() FROM harmless",
    );
    must_migrate(
        &server,
        Some(&proxy),
        &[&change[..], &["--drop-old"]].concat(),
    );
    let mut through = proxy.connect();
    through.must("INSERT INTO app.t (id, `näme`) VALUES (2, 'y')");
}

/// The names that the migration gives to triggers are unique in a database.
fn names_of_ours_that_are_taken_are_refused(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    make(&mut session, "app");
    let names = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'app'";
    let tables = session.text(names).unwrap();
    for name in ["t_onionskin_gi", "T_onionskin_gd", "t_onionskin_t3"] {
        session.must(&format!(
            "CREATE TRIGGER app.{name} AFTER INSERT ON app.audit FOR EACH ROW SET @a = 1"
        ));
        for arguments in [
            ["app.t", "--rebuild"].as_slice(),
            &["app.t", "--rebuild", "--dry-run"],
        ] {
            let text = must_not_migrate(&server, None, arguments);
            assert!(
                text.contains(&format!("a trigger {name}")),
                "{name}: {text}"
            );
        }
        assert_eq!(session.text(names).unwrap(), tables, "{name}");
        session.must(&format!("DROP TRIGGER app.{name}"));
    }
}
