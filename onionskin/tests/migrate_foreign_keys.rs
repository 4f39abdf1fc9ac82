//! Tables with foreign keys, and tables that foreign keys point at, are migrated while their
//! neighbours are written. The keys go with the table, and rows are those of twins that are left
//! alone.

use onionskin_testkit::*;

use rand::RngExt;
use rand::rngs::StdRng;

use std::time::Duration;

on_both_servers!(
    keys_go_with_an_idle_table,
    rows_are_those_of_twins_that_are_left_alone,
    a_killed_switch_is_ended_with_all_keys,
    keys_that_cannot_be_moved_are_refused,
);

/// All tables of a scene; `{}` is the database's name. `t` has keys with every action, to itself,
/// too, and with names that the server gives; it has children in two databases. MySQL 9.7
/// does not follow a key to the same table rightly: it leaves children of rows that go by it, and
/// counts levels that are none (6575). So there it has no action.
const TABLES: [&str; 9] = [
    "CREATE TABLE {}.parent (id INT PRIMARY KEY, v INT NOT NULL DEFAULT 0)",
    "CREATE TABLE {}.owner (id INT PRIMARY KEY, v INT NOT NULL DEFAULT 0)",
    "CREATE TABLE {}.kind (id INT PRIMARY KEY, v INT NOT NULL DEFAULT 0)",
    "CREATE TABLE {}.t (id INT PRIMARY KEY, parent INT, owner INT, kind INT, boss INT, name VARCHAR(60), \
     FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE, \
     CONSTRAINT `of owner` FOREIGN KEY (owner) REFERENCES owner (id) ON DELETE SET NULL ON UPDATE RESTRICT, \
     KEY kind_of (kind), CONSTRAINT kind FOREIGN KEY (kind) REFERENCES kind (id), \
     FOREIGN KEY (boss) REFERENCES t (id) {boss})",
    "CREATE TABLE {}.child (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE)",
    "CREATE TABLE {}.grandchild (id INT PRIMARY KEY, child INT, t INT, \
     CONSTRAINT g1 FOREIGN KEY (child) REFERENCES child (id) ON DELETE CASCADE, \
     CONSTRAINT g2 FOREIGN KEY (t) REFERENCES t (id) ON DELETE SET NULL)",
    "CREATE TABLE {}.link (parent INT, t INT, n INT, PRIMARY KEY (parent, t), \
     CONSTRAINT l1 FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE, \
     CONSTRAINT l2 FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE)",
    "CREATE DATABASE {}_beside",
    "CREATE TABLE {}_beside.child (id INT PRIMARY KEY, t INT, CONSTRAINT c FOREIGN KEY (t) REFERENCES {}.t (id) ON DELETE NO ACTION)",
];
const NAMES: [&str; 8] = [
    "{}.parent",
    "{}.owner",
    "{}.kind",
    "{}.t",
    "{}.child",
    "{}.grandchild",
    "{}.link",
    "{}_beside.child",
];
const IDS: u32 = 400;

fn make(session: &mut Session, kind: Kind, database: &str) {
    let boss = match kind {
        Kind::MariaDb => "ON DELETE SET NULL",
        Kind::MySql => "",
    };
    session.must(&format!("CREATE DATABASE {database}"));
    for sql in TABLES {
        session.must(&sql.replace("{}", database).replace("{boss}", boss));
    }
    session.must(&format!("USE {database}"));
    for table in ["parent", "owner", "kind"] {
        session.must(&format!(
            "INSERT INTO {table} (id) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12)"
        ));
    }
    for id in 1..IDS {
        let boss = match id {
            1..=3 => "NULL".to_owned(),
            _ => (id / 3).to_string(),
        };
        session.must(&format!(
            "INSERT INTO t VALUES ({id}, {}, {}, {}, {boss}, 'name {id}')",
            id % 12 + 1,
            id % 11 + 1,
            id % 7 + 1
        ));
    }
}

/// The definitions of all tables, without what counts rows.
fn definitions(session: &mut Session, database: &str) -> Vec<String> {
    NAMES
        .iter()
        .map(|name| {
            let shown = session
                .text(&format!(
                    "SHOW CREATE TABLE {}",
                    name.replace("{}", database)
                ))
                .unwrap();
            // in whatever order
            let mut lines: Vec<&str> = shown
                .split("\\n")
                .map(|l| l.trim_end_matches(','))
                .collect();
            lines.sort_unstable();
            lines.join("\n")
        })
        .collect()
}

fn contents(session: &mut Session, database: &str) -> Vec<String> {
    NAMES
        .iter()
        .map(|name| {
            let name = name.replace("{}", database);
            let order = match name.ends_with(".link") {
                true => "parent, t",
                false => "id",
            };
            session
                .text(&format!("SELECT * FROM {name} ORDER BY {order}"))
                .unwrap()
        })
        .collect()
}

fn nothing_is_left(session: &mut Session) {
    for database in ["app", "app_beside"] {
        let tables = session
            .text(&format!("SHOW TABLES FROM {database}"))
            .unwrap();
        assert!(!tables.contains("onionskin"), "{tables}");
    }
}

/// Each key does what it did.
fn keys_are_in_force(session: &mut Session) {
    session.must("USE app");
    session.must("BEGIN");
    assert_eq!(
        session.must_fail("INSERT INTO t (id, parent) VALUES (9000, 999)"),
        1452
    );
    assert_eq!(
        session.must_fail("INSERT INTO t (id, boss) VALUES (9000, 999)"),
        1452
    );
    assert_eq!(
        session.must_fail("INSERT INTO child VALUES (9000, 9999)"),
        1452
    );
    assert_eq!(
        session.must_fail("INSERT INTO app_beside.child VALUES (9000, 9999)"),
        1452
    );
    session.must("INSERT INTO parent (id) VALUES (900)");
    session.must("INSERT INTO owner (id) VALUES (900)");
    session.must("INSERT INTO kind (id) VALUES (900)");
    session.must("INSERT INTO t (id, parent, owner, kind, boss, name) VALUES (9001, 900, 900, NULL, NULL, 'a'), (9002, NULL, 900, 900, 9001, 'b')");
    session.must("INSERT INTO child VALUES (9001, 9001)");
    session.must("INSERT INTO grandchild VALUES (9001, 9001, 9001)");
    session.must("INSERT INTO app_beside.child VALUES (9001, 9001)");
    assert_eq!(session.must_fail("DELETE FROM kind WHERE id = 900"), 1451);
    assert_eq!(session.must_fail("DELETE FROM t WHERE id = 9001"), 1451);
    assert_eq!(
        session.must_fail("UPDATE owner SET id = 901 WHERE id = 900"),
        1451
    );
    session.must("UPDATE parent SET id = 901 WHERE id = 900");
    assert_eq!(
        session
            .text("SELECT parent FROM t WHERE id = 9001")
            .unwrap(),
        "901"
    );
    session.must("DELETE FROM owner WHERE id = 900");
    assert_eq!(
        session.text("SELECT owner FROM t WHERE id = 9002").unwrap(),
        "NULL"
    );
    session.must("DELETE FROM app_beside.child WHERE id = 9001");
    session.must("UPDATE t SET boss = NULL WHERE id = 9002");
    session.must("DELETE FROM parent WHERE id = 901");
    assert_eq!(
        session
            .text("SELECT id, boss FROM t WHERE id > 9000")
            .unwrap(),
        "9002\tNULL"
    );
    assert_eq!(
        session.text("SELECT COUNT(*) FROM grandchild").unwrap(),
        "0"
    );
    session.must("ROLLBACK");
}

fn keys_go_with_an_idle_table(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    make(&mut session, kind, "app");
    let (before, rows) = (
        definitions(&mut session, "app"),
        contents(&mut session, "app"),
    );
    for table in ["t", "parent", "child", "link", "owner"] {
        let name = format!("app.{table}");
        for arguments in [["--rebuild"].as_slice(), &["--rebuild", "--drop-old"]] {
            let arguments = [&[name.as_str()], arguments].concat();
            let text = must_migrate(&server, None, &arguments);
            assert!(!text.contains("no counterpart"), "{text}");
            assert_eq!(definitions(&mut session, "app"), before, "{arguments:?}");
            assert_eq!(contents(&mut session, "app"), rows, "{arguments:?}");
            keys_are_in_force(&mut session);
            if !arguments.contains(&"--drop-old") {
                let old = format!("app.{table}_onionskin_old");
                let old_definition = session.text(&format!("SHOW CREATE TABLE {old}")).unwrap();
                assert!(!old_definition.contains("FOREIGN"), "{old_definition}");
                // Nothing points at it.
                session.must(&format!("DROP TABLE {old}"));
            }
            nothing_is_left(&mut session);
        }
    }
    let shown = must_migrate(&server, None, &["app.t", "--rebuild", "--dry-run"]);
    assert!(
        shown.contains("ALTER TABLE `app_beside`.`child` DROP FOREIGN KEY `c`"),
        "{shown}"
    );
    must_migrate(
        &server,
        None,
        &[
            "app.t",
            "--alter",
            "ADD COLUMN x INT, ADD INDEX (name)",
            "--drop-old",
        ],
    );
    keys_are_in_force(&mut session);
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
        let mut through = proxy.connect();
        through.must("USE app");
        let id = through
            .text("SELECT id FROM t WHERE name = 'name 77'")
            .unwrap();
        assert_eq!(id, "77", "{change:?}");
        keys_are_in_force(&mut through);
    }
    proxy.assert_healthy();
}

/// What an application does, at random: statements of one transaction, or one by itself. `{}` is
/// the database. On MySQL 9.7 nobody takes a parent away: now and then a DELETE that has to wait
/// for a lock there, with a key that cascades, is answered with no row and no error.
fn work_at(rng: &mut StdRng, kind: Kind) -> Vec<String> {
    let statement = |rng: &mut StdRng| {
        let (id, other) = (rng.random_range(1..IDS + 60), rng.random_range(1..IDS + 60));
        let parent = rng.random_range(1..30);
        let boss = (id / 3).max(1);
        let table = ["parent", "owner", "kind"][rng.random_range(0..3)];
        let n = rng.random_range(0..1_000_000);
        match rng.random_range(0..27) {
            0..=2 => format!("INSERT INTO {{}}.{table} (id) VALUES ({parent})"),
            3 if kind == Kind::MariaDb => {
                format!("DELETE FROM {{}}.{table} WHERE id = {parent}")
            }
            3..=5 => format!("UPDATE {{}}.{table} SET v = v + 1 WHERE id = {parent}"),
            6 if kind == Kind::MariaDb => format!(
                "UPDATE {{}}.parent SET id = {} WHERE id = {parent}",
                n % 30 + 1
            ),
            6..=9 => format!(
                "INSERT INTO {{}}.t (id, parent, owner, kind, boss, name) VALUES ({id}, {parent}, {}, {}, {boss}, 'new {n}')",
                n % 12 + 1,
                n % 7 + 1
            ),
            10..=11 => {
                format!("INSERT INTO {{}}.t (id, name, parent) VALUES ({id}, 'new {n}', {parent})")
            }
            12..=14 => format!("UPDATE {{}}.t SET name = 'name {n}' WHERE id = {id}"),
            15 => format!("UPDATE {{}}.t SET parent = {parent}, boss = {boss} WHERE id = {id}"),
            16 => format!("UPDATE {{}}.t SET owner = {parent}, kind = NULL WHERE id = {id}"),
            17 => format!("UPDATE {{}}.t SET id = {other} WHERE id = {id}"),
            18 => format!("DELETE FROM {{}}.t WHERE id = {id}"),
            19 => format!(
                "DELETE FROM {{}}.{} WHERE id = {id}",
                ["child", "grandchild"][n as usize % 2]
            ),
            20 => format!("INSERT INTO {{}}.child VALUES ({id}, {other})"),
            21 => format!("INSERT INTO {{}}.grandchild VALUES ({id}, {other}, {id})"),
            22 => format!("INSERT INTO {{}}_beside.child VALUES ({id}, {other})"),
            23 => format!("INSERT INTO {{}}.link VALUES ({parent}, {other}, {n})"),
            24 => format!("UPDATE {{}}.link SET parent = {parent} WHERE t = {other} LIMIT 1"),
            25 => format!("UPDATE {{}}.link SET n = n + 1 WHERE parent = {parent}"),
            _ => format!("DELETE FROM {{}}_beside.child WHERE id = {id}"),
        }
    };
    one_or_a_transaction(rng, statement)
}

fn rows_are_those_of_twins_that_are_left_alone(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let mut proxy = Proxy::start(&server, "");
    let mut session = server.connect();
    make(&mut session, kind, "app");
    make(&mut session, kind, "twin");
    let before = definitions(&mut session, "app");
    let (mut through, mut plain) = (proxy.connect(), server.connect());
    let changes: [&[&str]; 9] = [
        &["app.t", "--rebuild"],
        &["app.t", "--encrypt", "name: eq"],
        &["app.parent", "--rebuild"],
        &["app.t", "--rotate"],
        &["app.child", "--rebuild"],
        &["app.link", "--rebuild"],
        &["app.t", "--add", "name: range"],
        &["app.t", "--decrypt", "name"],
        &["app.t", "--rebuild"],
    ];
    for (seed, change) in changes.into_iter().enumerate() {
        let counts = beside_an_application(
            [&mut through, &mut plain],
            seed as u64,
            |rng| work_at(rng, kind),
            || {
                let arguments = [change, &["--drop-old"]].concat();
                let text = must_migrate(&server, Some(&proxy), &arguments);
                assert!(text.contains(" 0 repaired"), "{change:?}: {text}");
                for line in text.lines().filter(|line| line.contains("tried again")) {
                    announce(&format!("{change:?}: {line}"));
                }
            },
        );
        announce(&format!(
            "{change:?}: {} pieces of work, {} deadlocks",
            counts[0], counts[1]
        ));
        assert!(counts[0] > 20, "{change:?}: {counts:?}");
        let [is, should] = [(&mut through, "app"), (&mut plain, "twin")]
            .map(|(session, database)| contents(session, database));
        for (is, should) in is.iter().zip(&should) {
            assert_same_rows(is, should, &format!("{change:?}"));
        }
    }
    // The application works with the keys; that they are the same is seen when it rests.
    assert_eq!(definitions(&mut session, "app"), before);
    nothing_is_left(&mut session);
    proxy.assert_healthy();
}

/// Kills a migration at statements of its switch, and ends it by `--resume` or `--abort`.
fn a_killed_switch_is_ended_with_all_keys(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    make(&mut session, kind, "app");
    let (before, rows) = (
        definitions(&mut session, "app"),
        contents(&mut session, "app"),
    );
    let points = [
        ("RENAME INDEX", 3),
        ("RENAME INDEX", 4),
        ("ALTER TABLE `app`.`child` DROP", 1),
        ("ALTER TABLE `app`.`child` DROP", 2),
        ("ALTER TABLE `app`.`t_onionskin_new` ADD", 1),
        ("ALTER TABLE `app`.`t_onionskin_new` ADD", 2),
        ("ALTER TABLE `app`.`t` DROP", 1),
        ("RENAME TABLE", 1),
        ("ALTER TABLE `app_beside`.`child` DROP", 2),
    ];
    for (statement, times) in points {
        for (when, ending) in [
            (When::Before, "--abort"),
            (When::After, "--resume"),
            (When::After, "--abort"),
        ] {
            let context = format!("{statement} {times} {ending}");
            kill_at(&server, &["app.t", "--rebuild"], (statement, times, when));
            let (succeeded, text) = run_migration(migrate(&server, None, &["app.t", ending]));
            // Where the tables had changed their names, --abort says so, and is done.
            let was_switched = text.contains("were switched before the end came");
            assert!(succeeded || was_switched, "{context}: {text}");
            session.must("DROP TABLE IF EXISTS app.t_onionskin_old");
            assert_eq!(
                definitions(&mut session, "app"),
                before,
                "{context}: {text}"
            );
            assert_eq!(contents(&mut session, "app"), rows, "{context}");
            nothing_is_left(&mut session);
        }
    }
    keys_are_in_force(&mut session);
}

fn keys_that_cannot_be_moved_are_refused(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    make(&mut session, kind, "app");
    let tables = session.text("SHOW TABLES FROM app").unwrap();
    for (arguments, reason) in [
        (
            ["app.t", "--alter", "MODIFY kind BIGINT"],
            "the column kind",
        ),
        (
            ["app.t", "--alter", "DROP COLUMN owner"],
            "the column owner",
        ),
        (
            ["app.parent", "--alter", "MODIFY id BIGINT NOT NULL"],
            "the column id",
        ),
        (
            ["app.t", "--rebuild", "--reverse"],
            "--reverse cannot follow",
        ),
    ] {
        let dry = [&arguments[..], &["--dry-run"]].concat();
        for arguments in [&arguments[..], &dry] {
            let text = must_not_migrate(&server, None, arguments);
            assert!(text.contains(reason), "{arguments:?}: {text}");
            assert_eq!(session.text("SHOW TABLES FROM app").unwrap(), tables);
        }
    }
    // It stays the same type.
    must_migrate(
        &server,
        None,
        &[
            "app.t",
            "--alter",
            "MODIFY kind INT COMMENT 'x'",
            "--dry-run",
        ],
    );
    a_neighbour_without_privileges_is_told_of_before(kind, &server, &mut session);
    another_key_under_the_lock_ends_it(&server, &mut session);
    if !direct_mode() {
        let mut proxy = Proxy::start(&server, "");
        for change in [
            ["app.owner", "--encrypt", "id: eq"],
            ["app.t", "--encrypt", "kind: eq"],
        ] {
            let dry = [&change[..], &["--dry-run"]].concat();
            for arguments in [&change[..], &dry] {
                let text = must_not_migrate(&server, Some(&proxy), arguments);
                assert!(text.contains("the foreign key"), "{arguments:?}: {text}");
                assert_eq!(session.text("SHOW TABLES FROM app").unwrap(), tables);
            }
        }
        proxy.assert_healthy();
    }
    session.must(
        "CREATE TABLE app.pairs (parent INT, n INT, PRIMARY KEY (parent, n), \
         CONSTRAINT moves FOREIGN KEY (parent) REFERENCES app.parent (id) ON UPDATE CASCADE)",
    );
    let text = must_not_migrate(&server, None, &["app.pairs", "--rebuild"]);
    assert!(text.contains("changes columns of a unique key"), "{text}");
    session.must("DROP TABLE app.pairs");
    // A way back for a table whose rows no other one changes.
    let before = definitions(&mut session, "app");
    let feeding = start_migration(migrate(
        &server,
        None,
        &["app.kind", "--rebuild", "--reverse"],
    ));
    wait_until("the old table is fed", Duration::from_secs(60), || {
        let phase = "SELECT JSON_UNQUOTE(JSON_EXTRACT(state, '$.phase')) FROM app.kind_onionskin WHERE id = 1";
        session.text(phase).is_ok_and(|phase| phase == "reverse")
    });
    assert_eq!(definitions(&mut session, "app"), before);
    session.must("INSERT INTO app.kind (id) VALUES (700)");
    session.must("INSERT INTO app.t (id, kind) VALUES (700, 700)");
    must_migrate(&server, None, &["app.kind", "--roll-back", "--drop-old"]);
    let (succeeded, text) = end_of_migration(feeding);
    assert!(succeeded, "{text}");
    assert_eq!(definitions(&mut session, "app"), before);
    assert_eq!(
        session.must_fail("DELETE FROM app.kind WHERE id = 700"),
        1451
    );
    session.must("DELETE FROM app.t WHERE id = 700");
    session.must("DELETE FROM app.kind WHERE id = 700");
    keys_are_in_force(&mut session);
    nothing_is_left(&mut session);
    a_key_that_is_added_meanwhile_ends_it(&server, &mut session);
    rows_without_a_counterpart_stay(&server, &mut session);
}

fn a_neighbour_without_privileges_is_told_of_before(
    kind: Kind,
    server: &Server,
    session: &mut Session,
) {
    session.must("CREATE USER mover IDENTIFIED BY 'secret'");
    session.must("GRANT ALL ON app.* TO mover");
    session.must("GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.* TO mover");
    if kind == Kind::MySql {
        session.must("GRANT XA_RECOVER_ADMIN ON *.* TO mover");
    }
    if kind == Kind::MariaDb {
        session.must("GRANT BINLOG MONITOR, CONNECTION ADMIN, RELOAD ON *.* TO mover");
    }
    session.must("GRANT SELECT, LOCK TABLES, REFERENCES ON app_beside.* TO mover");
    let tables = session.text("SHOW TABLES FROM app").unwrap();
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
            !succeeded && text.contains("the privilege ALTER on it"),
            "{text}"
        );
        assert_eq!(session.text("SHOW TABLES FROM app").unwrap(), tables);
    }
    session.must("GRANT ALTER, CREATE, INSERT ON app_beside.* TO mover");
    let before = definitions(session, "app");
    let (succeeded, text) = as_mover(&["app.t", "--rebuild", "--drop-old"]);
    assert!(succeeded, "{text}");
    assert_eq!(definitions(session, "app"), before);
}

/// As many keys as before, and not the same: what the binary log does not tell.
fn another_key_under_the_lock_ends_it(server: &Server, session: &mut Session) {
    let cable = Cable::to(server.port());
    cable.freeze_at("LOCK TABLES `t` WRITE, `t_onionskin_new`", 1, When::Before);
    let child = start_migration(migrate_at(&cable.address(), None, &["app.t", "--rebuild"]));
    wait_until("it is about to lock", Duration::from_secs(60), || {
        cable.is_frozen()
    });
    let rename = |session: &mut Session, from: &str, to: &str| {
        session.must("SET sql_log_bin = 0");
        session.must(&format!(
            "ALTER TABLE app_beside.child DROP FOREIGN KEY {from}"
        ));
        session.must(&format!("ALTER TABLE app_beside.child ADD CONSTRAINT {to} FOREIGN KEY (t) REFERENCES app.t (id) ON DELETE NO ACTION"));
        session.must("SET sql_log_bin = 1");
    };
    rename(session, "c", "d");
    cable.freeze(false);
    let (succeeded, text) = end_of_migration(child);
    assert!(
        !succeeded && text.contains("other foreign keys point at it"),
        "{text}"
    );
    rename(session, "d", "c");
    must_migrate(server, None, &["app.t", "--abort"]);
    nothing_is_left(session);
}

fn a_key_that_is_added_meanwhile_ends_it(server: &Server, session: &mut Session) {
    must_migrate(
        server,
        None,
        &["app.t", "--rebuild", "--cut-over", "postpone"],
    );
    session.must("CREATE TABLE app.late (id INT PRIMARY KEY, t INT, CONSTRAINT late FOREIGN KEY (t) REFERENCES app.t (id))");
    let text = must_not_migrate(server, None, &["app.t", "--resume"]);
    assert!(text.contains("was changed by another statement"), "{text}");
    must_migrate(server, None, &["app.t", "--abort"]);
    session.must("DROP TABLE app.late");
    nothing_is_left(session);
    // One that goes is not brought back.
    must_migrate(
        server,
        None,
        &["app.t", "--rebuild", "--cut-over", "postpone"],
    );
    session.must("ALTER TABLE app.child DROP FOREIGN KEY child_ibfk_1");
    let text = must_not_migrate(server, None, &["app.t", "--resume"]);
    assert!(text.contains("was changed by another statement"), "{text}");
    must_migrate(server, None, &["app.t", "--abort"]);
    let shown = session.text("SHOW CREATE TABLE app.child").unwrap();
    assert!(!shown.contains("FOREIGN KEY"), "{shown}");
    session
        .must("ALTER TABLE app.child ADD FOREIGN KEY (t) REFERENCES app.t (id) ON DELETE CASCADE");
    nothing_is_left(session);
}

/// Rows that came past the keys are no reason to stop, unless the server would have to follow what
/// happens to their counterparts.
fn rows_without_a_counterpart_stay(server: &Server, session: &mut Session) {
    session.must("SET foreign_key_checks = 0");
    session.must("INSERT INTO app.t (id, kind) VALUES (800, 801)");
    session.must("INSERT INTO app_beside.child VALUES (800, 801)");
    must_migrate(server, None, &["app.t", "--rebuild", "--drop-old"]);
    assert_eq!(
        session
            .text("SELECT kind FROM app.t WHERE id = 800")
            .unwrap(),
        "801"
    );
    session.must("INSERT INTO app.t (id, parent) VALUES (801, 801)");
    let text = must_not_migrate(server, None, &["app.t", "--rebuild"]);
    assert!(text.contains("foreign key constraint fails"), "{text}");
    must_migrate(server, None, &["app.t", "--abort"]);
    nothing_is_left(session);
}
