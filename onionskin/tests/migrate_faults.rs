//! What a migration waits for, what interrupts it, and the way back.

use onionskin_testkit::*;

use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

on_both_servers!(
    copying_waits_for_a_replica_and_for_load,
    a_cut_connection_loses_nothing,
    backups_hold_a_switch_up_and_no_more,
    an_old_snapshot_never_shows_a_part_of_the_rows,
    the_old_table_is_kept_for_a_way_back,
    connections_of_our_own_use_tls,
    a_change_of_a_protected_column_names_the_command_that_makes_it,
    settings_of_the_server_lose_no_rows,
    the_documented_privileges_are_enough,
    changes_that_come_as_statements_are_not_lost,
);

fn goes_on(child: &mut Child, time: Duration) -> bool {
    thread::sleep(time);
    child.try_wait().expect("a child").is_none()
}

fn copying_waits_for_a_replica_and_for_load(kind: Kind) {
    let (Some(server), Some(replica)) = (
        logging_server(kind, &[]),
        server_of_its_own(kind, &["--server-id=2"]),
    ) else {
        return;
    };
    let mut session = table_with_rows(&server, 3000);
    let (change, lag) = match kind {
        Kind::MariaDb => (
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='root', MASTER_DELAY=3600",
            "Seconds_Behind_Master",
        ),
        Kind::MySql => (
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={}, SOURCE_USER='root', GET_SOURCE_PUBLIC_KEY=1, SOURCE_DELAY=3600",
            "Seconds_Behind_Source",
        ),
    };
    let word = |sql: &str| match kind {
        Kind::MariaDb => sql.replace("REPLICA", "SLAVE"),
        Kind::MySql => sql.to_owned(),
    };
    let mut follower = replica.connect();
    follower.must(&change.replace("{}", &server.port().to_string()));
    follower.must(&word("START REPLICA"));
    wait_until("the replica lags", Duration::from_secs(30), || {
        let outcome = follower.must(&word("SHOW REPLICA STATUS"));
        let set = &outcome.sets[0];
        let at = set
            .columns
            .iter()
            .position(|(name, ..)| name == lag)
            .expect(lag);
        let behind: Option<u64> = ::mysql::from_value(set.rows[0][at].clone());
        behind.is_some_and(|behind| behind > 2)
    });
    let cable = Cable::to(replica.port());
    let address = cable.address();
    let waits = [
        "app.t",
        "--rebuild",
        "--drop-old",
        "--max-lag",
        "2",
        "--replica",
        &address,
    ];
    let mut child = start_migration(migrate(&server, None, &waits));
    assert!(goes_on(&mut child, Duration::from_millis(1500)), "it waits");
    assert_eq!(
        session
            .text("SELECT COUNT(*) FROM t_onionskin_new")
            .unwrap(),
        "0"
    );
    // Changes are written meanwhile.
    session.must("UPDATE t SET n = -1 WHERE id < 10");
    follower.must(&word("STOP REPLICA"));
    follower.must(match kind {
        Kind::MariaDb => "CHANGE MASTER TO MASTER_DELAY=0",
        Kind::MySql => "CHANGE REPLICATION SOURCE TO SOURCE_DELAY=0",
    });
    // One that cannot be asked is waited for as long.
    cable.cut();
    follower.must(&word("START REPLICA"));
    wait_until("the replica has caught up", Duration::from_secs(30), || {
        follower
            .text("SELECT COUNT(*) FROM app.t WHERE n = -1")
            .is_ok_and(|count| count == "10")
    });
    assert!(goes_on(&mut child, Duration::from_millis(1500)), "it waits");
    cable.mend();
    let (succeeded, text) = end_of_migration(child);
    assert!(succeeded && text.contains("waiting: a replica"), "{text}");

    // More sessions than allowed.
    let idle: Vec<Session> = (0..40).map(|_| server.connect()).collect();
    let mut child = start_migration(migrate(
        &server,
        None,
        &[
            "app.t",
            "--rebuild",
            "--drop-old",
            "--max-load",
            "Threads_connected=35",
        ],
    ));
    assert!(goes_on(&mut child, Duration::from_millis(1000)), "it waits");
    assert_eq!(
        session
            .text("SELECT COUNT(*) FROM t_onionskin_new")
            .unwrap(),
        "0"
    );
    drop(idle);
    let (succeeded, text) = end_of_migration(child);
    assert!(
        succeeded && text.contains("waiting: Threads_connected is"),
        "{text}"
    );
    assert_eq!(
        session.text("SELECT COUNT(*), SUM(n = -1) FROM t").unwrap(),
        "3000\t10"
    );
}

fn a_cut_connection_loses_nothing(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = table_with_rows(&server, 20_000);
    session.must("CREATE TABLE twin LIKE t");
    session.must("INSERT INTO twin SELECT * FROM t");
    let over = AtomicBool::new(false);
    let mut cuts = 0;
    thread::scope(|scope| {
        let (port, over) = (server.port(), &over);
        scope.spawn(move || {
            let mut session = Session::open(port, "root", "", Some("app"));
            let mut n = 0;
            while !over.load(Ordering::Relaxed) {
                n += 1;
                let id = n * 7919 % 20_000;
                session.must("BEGIN");
                for table in ["t", "twin"] {
                    session.must(&format!(
                        "REPLACE INTO {table} VALUES ({id}, 'new {n}', {n})"
                    ));
                    session.must(&format!(
                        "DELETE FROM {table} WHERE id = {}",
                        (id + 1) % 20_000
                    ));
                }
                session.must("COMMIT");
            }
        });
        let work = || {
            let mut operation = "--rebuild";
            for pause in [150, 400, 700, 1000] {
                let cable = Cable::to(server.port());
                let mut child = start_migration(migrate_at(
                    &cable.address(),
                    None,
                    &["app.t", operation, "--drop-old", "--threads", "2"],
                ));
                let is_cut = goes_on(&mut child, Duration::from_millis(pause));
                cable.cut();
                let (succeeded, text) = end_of_migration(child);
                // The cut before may have come behind the end of everything.
                if succeeded || text.contains("no migration of app.t has begun") {
                    assert!(!succeeded || text.contains(" 0 repaired"), "{text}");
                    return;
                }
                // The last statement before the cut may have come to the server behind our look.
                if text.contains("there is a table t_onionskin") {
                    operation = "--resume";
                    continue;
                }
                assert!(is_cut, "{text}");
                cuts += 1;
                // What the server was doing when the cable was cut it does to its end.
                wait_until("the sessions have ended", Duration::from_secs(20), || {
                    let sessions = session.must("SHOW FULL PROCESSLIST");
                    let mut cells = sessions.sets[0].rows.iter().flatten();
                    !cells.any(|cell| format!("{cell:?}").contains("t_onionskin"))
                });
                if !session
                    .text("SHOW TABLES LIKE 't\\_onionskin'")
                    .unwrap()
                    .is_empty()
                {
                    operation = "--resume";
                }
            }
            let (succeeded, text) =
                run_migration(migrate(&server, None, &["app.t", operation, "--drop-old"]));
            // The last cut may have come behind the end of everything.
            let sound = succeeded && text.contains(" 0 repaired");
            assert!(
                sound || text.contains("no migration of app.t has begun"),
                "{text}"
            );
        };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
    assert!(cuts > 0);
    let rows = |session: &mut Session, table: &str| {
        session
            .text(&format!("SELECT * FROM {table} ORDER BY id"))
            .unwrap()
    };
    assert!(rows(&mut session, "t") == rows(&mut session, "twin"));
}

fn backups_hold_a_switch_up_and_no_more(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = table_with_rows(&server, 100);
    let mut backup = server.connect();
    let holds: &[(&[&str], &str)] = match kind {
        Kind::MariaDb => &[
            (&["FLUSH TABLES WITH READ LOCK"], "UNLOCK TABLES"),
            (
                &[
                    "BACKUP STAGE START",
                    "BACKUP STAGE FLUSH",
                    "BACKUP STAGE BLOCK_DDL",
                ],
                "BACKUP STAGE END",
            ),
        ],
        Kind::MySql => &[
            (&["FLUSH TABLES WITH READ LOCK"], "UNLOCK TABLES"),
            (&["LOCK INSTANCE FOR BACKUP"], "UNLOCK INSTANCE"),
        ],
    };
    for (begin, end) in holds {
        must_migrate(
            &server,
            None,
            &["app.t", "--rebuild", "--cut-over", "postpone"],
        );
        session.must("UPDATE t SET n = n + 1 WHERE id < 50");
        for sql in *begin {
            backup.must(sql);
        }
        let mut child =
            start_migration(migrate(&server, None, &["app.t", "--resume", "--drop-old"]));
        assert!(
            goes_on(&mut child, Duration::from_millis(2500)),
            "{begin:?} holds it up"
        );
        backup.must(end);
        let (succeeded, text) = end_of_migration(child);
        assert!(succeeded, "{begin:?}: {text}");
    }
    assert_eq!(
        session.text("SELECT COUNT(*), SUM(n - id) FROM t").unwrap(),
        "100\t100"
    );
}

fn an_old_snapshot_never_shows_a_part_of_the_rows(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = table_with_rows(&server, 1000);
    session.must("CREATE TABLE other (id INT)");
    let reader = || {
        let mut reader = Session::open(server.port(), "root", "", Some("app"));
        reader.must("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
        reader.must("BEGIN");
        reader.must("SELECT * FROM other");
        reader
    };
    // One began before there was a new table, another one when it was made and still empty.
    let mut first = reader();
    let idle: Vec<Session> = (0..40).map(|_| server.connect()).collect();
    let arguments = [
        "app.t",
        "--rebuild",
        "--drop-old",
        "--max-load",
        "Threads_connected=35",
    ];
    let mut child = start_migration(migrate(&server, None, &arguments));
    wait_until("the new table is made", Duration::from_secs(20), || {
        session
            .text("SELECT COUNT(*) FROM t_onionskin_new")
            .is_ok_and(|count| count == "0")
    });
    let mut second = reader();
    drop(idle);
    assert!(
        goes_on(&mut child, Duration::from_millis(2500)),
        "the switch waits"
    );
    for reader in [&mut first, &mut second] {
        assert_eq!(reader.text("SELECT COUNT(*) FROM t").unwrap(), "1000");
        reader.must("COMMIT");
    }
    let (succeeded, text) = end_of_migration(child);
    assert!(
        succeeded && text.contains("the switch waits for transactions"),
        "{text}"
    );
    assert_eq!(second.text("SELECT COUNT(*) FROM t").unwrap(), "1000");
}

/// Starts a migration with --reverse and returns when the old table is being fed.
fn start_reverse(
    server: &Server,
    proxy: &Proxy,
    session: &mut Session,
    arguments: &[&str],
) -> Child {
    let written = |session: &mut Session| {
        session
            .text("SELECT CONCAT(written_at, JSON_UNQUOTE(JSON_EXTRACT(state, '$.phase'))) FROM app.t_onionskin WHERE id = 1")
            .unwrap_or_default()
    };
    let before = written(session);
    let child = start_migration(migrate(server, Some(proxy), arguments));
    wait_until("the old table is fed", Duration::from_secs(60), || {
        let now = written(session);
        now != before && now.ends_with("reverse")
    });
    child
}

/// A table that is encrypted while the old one is fed.
struct WayBack {
    server: Server,
    proxy: Proxy,
    /// At the server.
    session: Session,
    /// Through the proxy.
    through: Session,
}

const COLUMNS: [&str; 4] = ["app.t", "--encrypt", "v: eq; n: range", "--reverse"];
/// The rows become plaintext in the old table: every command line says so.
const IN_CLEAR: [&str; 2] = ["--decrypt", "v, n"];
const ROWS: &str = "SELECT id, v, n FROM t ORDER BY id";

impl WayBack {
    fn begin(&mut self, arguments: &[&str]) -> Child {
        start_reverse(&self.server, &self.proxy, &mut self.session, arguments)
    }

    fn migrate(&self, arguments: &[&str]) -> String {
        must_migrate(&self.server, Some(&self.proxy), arguments)
    }

    fn refuses(&self, arguments: &[&str]) -> String {
        must_not_migrate(&self.server, Some(&self.proxy), arguments)
    }

    fn state(&mut self, change: &str) {
        set_state(&mut self.session, &self.proxy, change);
    }
}

/// Writes that are new rows, changed ones and gone ones.
fn write(through: &mut Session, n: u32) {
    through.must(&format!(
        "UPDATE t SET v = 'changed {n}', n = {n} WHERE id < 100"
    ));
    through.must(&format!("DELETE FROM t WHERE id BETWEEN {n}00 AND {n}09"));
    through.must(&format!(
        "INSERT INTO t VALUES ({}, 'new', NULL)",
        10_000 + n
    ));
    through.must(&format!("UPDATE t SET id = id + 100000 WHERE id = {n}50"));
}

fn the_old_table_is_kept_for_a_way_back(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let proxy = Proxy::start(&server, "");
    let mut way = WayBack {
        session: table_with_rows(&server, 2000),
        through: proxy.connect_to("app"),
        proxy,
        server,
    };
    let definition = way.session.text("SHOW CREATE TABLE t").unwrap();
    let text = must_not_migrate(
        &way.server,
        None,
        &["app.t", "--alter", "DROP COLUMN n", "--reverse"],
    );
    assert!(text.contains("cannot keep column n"), "{text}");

    let mut child = way.begin(&COLUMNS);
    write(&mut way.through, 2);
    child.kill().expect("kill -9");
    child.wait().expect("a child");
    write(&mut way.through, 3);
    assert_eq!(way.session.must_fail("SELECT v FROM t"), 1054);
    let text = way.refuses(&["app.t", "--abort"]);
    assert!(text.contains("--roll-back"), "{text}");
    let resume = [&["app.t", "--resume"][..], &IN_CLEAR].concat();
    let roll_back = [&["app.t", "--roll-back"][..], &IN_CLEAR].concat();
    let child = way.begin(&resume);
    write(&mut way.through, 4);
    let expected = way.through.text(ROWS).unwrap();
    let text = way.migrate(&[&roll_back[..], &["--drop-old"]].concat());
    assert!(text.contains(" 0 repaired"), "{text}");
    let (succeeded, text) = end_of_migration(child);
    assert!(succeeded && text.contains("took over"), "{text}");
    assert!(way.session.text(ROWS).unwrap() == expected);
    assert!(way.through.text(ROWS).unwrap() == expected);
    assert_eq!(way.session.text("SHOW CREATE TABLE t").unwrap(), definition);
    assert_eq!(way.session.text("SHOW TABLES").unwrap(), "t");
    write(&mut way.through, 5);

    what_was_written_after_a_kill_is_found_by_comparing(&mut way);
    a_migration_may_be_finished(&mut way);
    what_was_asked_for_in_the_beginning_holds(&mut way);
    a_promoted_server_has_another_log(&mut way);
}

/// Killed between the rename and the note of it.
fn what_was_written_after_a_kill_is_found_by_comparing(way: &mut WayBack) {
    let resume = [&["app.t", "--resume"][..], &IN_CLEAR].concat();
    let roll_back = [&["app.t", "--roll-back"][..], &IN_CLEAR].concat();
    let child = way.begin(&COLUMNS);
    let mut killed = child;
    killed.kill().expect("kill -9");
    killed.wait().expect("a child");
    way.state("JSON_SET(state, '$.phase', 'switch')");
    write(&mut way.through, 6);
    let child = way.begin(&resume);
    write(&mut way.through, 7);
    let expected = way.through.text(ROWS).unwrap();
    way.migrate(&roll_back);
    end_of_migration(child);
    assert!(way.session.text(ROWS).unwrap() == expected);
    way.session.must("DROP TABLE t_onionskin_new");
}

/// The table stays as it is.
fn a_migration_may_be_finished(way: &mut WayBack) {
    let child = way.begin(&COLUMNS);
    write(&mut way.through, 8);
    let expected = way.through.text(ROWS).unwrap();
    let text = way.migrate(&["app.t", "--finish", "--drop-old"]);
    assert!(text.contains("in plaintext in the binary logs"), "{text}");
    let (succeeded, text) = end_of_migration(child);
    assert!(succeeded, "{text}");
    assert_eq!(way.session.text("SHOW TABLES").unwrap(), "t");
    assert_eq!(way.session.must_fail("SELECT v FROM t"), 1054);
    assert!(way.through.text(ROWS).unwrap() == expected);
    let text = way.refuses(&["app.t", "--finish"]);
    assert!(text.contains("no migration of app.t has begun"), "{text}");
}

/// However early it had ended.
fn what_was_asked_for_in_the_beginning_holds(way: &mut WayBack) {
    let arguments = ["app.t", "--rebuild", "--reverse", "--cut-over", "postpone"];
    way.migrate(&arguments);
    way.state("JSON_SET(state, '$.phase', 'prepare')");
    let child = way.begin(&["app.t", "--resume"]);
    write(&mut way.through, 9);
    let expected = way.through.text(ROWS).unwrap();
    way.migrate(&["app.t", "--roll-back", "--drop-old"]);
    end_of_migration(child);
    assert!(way.through.text(ROWS).unwrap() == expected);
}

fn a_promoted_server_has_another_log(way: &mut WayBack) {
    let mut child = way.begin(&["app.t", "--rebuild", "--reverse"]);
    child.kill().expect("kill -9");
    child.wait().expect("a child");
    write(&mut way.through, 10);
    let expected = way.through.text(ROWS).unwrap();
    way.state("JSON_SET(state, '$.server', 'another', '$.position', 'gone.000001:4')");
    way.migrate(&["app.t", "--roll-back", "--drop-old"]);
    assert!(way.through.text(ROWS).unwrap() == expected);
}

/// A limit for everybody's queries is none for ours.
fn settings_of_the_server_lose_no_rows(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let proxy = Proxy::start(&server, "");
    let mut session = table_with_rows(&server, 3000);
    session.must("SET GLOBAL sql_select_limit = 7");
    let text = must_migrate(
        &server,
        Some(&proxy),
        &["app.t", "--encrypt", "v: eq", "--drop-old"],
    );
    assert!(text.contains(" 0 repaired"), "{text}");
    session.must("SET GLOBAL sql_select_limit = DEFAULT");
    let mut through = proxy.connect_to("app");
    let found = through.text("SELECT COUNT(*), COUNT(DISTINCT v), MIN(v) FROM t");
    assert_eq!(found.unwrap(), "3000\t3000\tvalue 0");
}

/// Those that docs/migrate.md lists.
fn the_documented_privileges_are_enough(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let proxy = Proxy::start(&server, "");
    let mut session = table_with_rows(&server, 100);
    session.must("CREATE USER 'mover'@'%'");
    session.must("GRANT ALL ON app.* TO 'mover'@'%'");
    session.must(match kind {
        Kind::MariaDb => "GRANT REPLICATION SLAVE, BINLOG MONITOR, PROCESS, CONNECTION ADMIN ON *.* TO 'mover'@'%'",
        Kind::MySql => {
            "GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS, XA_RECOVER_ADMIN ON *.* TO 'mover'@'%'"
        },
    });
    for what in [
        &["app.t", "--rebuild"][..],
        &["app.t", "--encrypt", "v: eq; n:"],
        &["app.t", "--rotate"],
        &["app.t", "--decrypt", "v, n"],
    ] {
        let arguments = [what, &["--user", "mover", "--drop-old"]].concat();
        let text = must_migrate(&server, Some(&proxy), &arguments);
        assert!(text.contains(" 0 repaired"), "{text}");
    }
    must_migrate(&server, Some(&proxy), &["--status", "--user", "mover"]);
    assert_eq!(
        session.text("SELECT COUNT(*), SUM(v = CONCAT('value ', id)) FROM t"),
        Ok("100\t100".to_owned())
    );
}

/// A session that does not log rows may change the table through something with another name.
fn changes_that_come_as_statements_are_not_lost(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = table_with_rows(&server, 100);
    session.must("CREATE TABLE other (id INT PRIMARY KEY)");
    let arguments = ["app.t", "--rebuild", "--cut-over", "postpone"];
    must_migrate(&server, None, &arguments);
    if session
        .run("SET SESSION binlog_format = 'STATEMENT'")
        .is_err()
    {
        // A server that logs rows only.
        return;
    }
    session.must("INSERT INTO other VALUES (1)");
    must_migrate(&server, None, &["app.t", "--resume", "--drop-old"]);

    session.must("CREATE VIEW v AS SELECT id, n FROM t");
    must_migrate(&server, None, &arguments);
    session.must("UPDATE v SET n = -1 WHERE id = 5");
    let text = must_not_migrate(&server, None, &["app.t", "--resume"]);
    assert!(text.contains("logged as a statement"), "{text}");
    must_migrate(&server, None, &["app.t", "--abort"]);
    assert_eq!(session.text("SELECT n FROM t WHERE id = 5").unwrap(), "-1");
}

fn a_change_of_a_protected_column_names_the_command_that_makes_it(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let proxy = Proxy::start(&server, "");
    // More rows than the proxy changes while a statement waits.
    table_with_rows(&server, 20_010);
    let mut through = proxy.connect_to("app");
    for definition in [
        "v VARCHAR(100) ENCRYPTED FOR (eq)",
        "v VARCHAR(100) ENCRYPTED FOR (eq, range)",
        "v VARCHAR(100) ENCRYPTED FOR (range)",
        "v VARCHAR(200) NOT NULL",
        "v VARCHAR(200) COLLATE utf8mb4_bin",
        "v CHAR(20)",
    ] {
        let sql = format!("ALTER TABLE t MODIFY {definition}");
        let failure = through.run(&sql).expect_err("a refusal");
        assert_eq!(failure.code, 1235, "{failure}");
        // The message begins with the code and the command, word for word.
        let command = failure
            .message
            .split("onionskin migrate ")
            .nth(1)
            .expect("a command");
        let command = command.split(": Every row").next().expect("a command");
        let mut arguments: Vec<&str> = command.splitn(3, ' ').collect();
        arguments[2] = arguments[2].trim_matches('"');
        must_migrate(
            &server,
            Some(&proxy),
            &[&arguments[..], &["--drop-old"]].concat(),
        );
    }
    let sql = "ALTER TABLE t CHANGE v w CHAR(30) DEFAULT 'secret' FIRST";
    let failure = through.run(sql).expect_err("a refusal");
    let command = "--modify \"v char(30)\" with the rest of its definition, then this statement";
    assert!(failure.message.contains(command), "{failure}");
    assert!(!failure.message.contains("secret"), "{failure}");
    through.must("DELETE FROM t WHERE n >= 10");
    assert_eq!(
        through
            .text("SELECT COUNT(*) FROM t WHERE v > 'value 5'")
            .unwrap(),
        "4"
    );
}

fn connections_of_our_own_use_tls(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let proxy = Proxy::start(&server, "");
    let mut session = table_with_rows(&server, 100);
    session.must("SET GLOBAL require_secure_transport = ON");
    // MariaDB does not say why.
    must_not_migrate(&server, None, &["app.t", "--rebuild"]);
    must_migrate(
        &server,
        Some(&proxy),
        &["app.t", "--encrypt", "v: eq", "--drop-old"],
    );
    let listed = must_migrate(&server, Some(&proxy), &["--status"]);
    assert!(listed.starts_with("no migration has begun"), "{listed}");
    assert_eq!(session.text("SELECT COUNT(`v$enc`) FROM t").unwrap(), "100");
}
