//! Migrations that are ended by kill -9 at a certain statement, or at any time, in the moments in
//! which tables change their names or vanish. A second call of the same command ends the work, and
//! nothing is lost.

use onionskin_testkit::*;

use std::process::Child;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

on_both_servers!(
    a_killed_roll_back_is_ended_by_another_one,
    a_killed_finish_is_ended_by_another_one,
    a_killed_abort_is_ended_by_another_one,
    commands_that_are_killed_at_any_time_are_ended_by_the_same_ones,
    what_a_killed_switch_has_not_read_is_read_by_resume,
);

const ROWS: u32 = 600;
/// The old table has another definition, so that it is seen which one is in place.
const WITH_INDEX: [&str; 4] = ["app.t", "--alter", "ADD INDEX (n)", "--reverse"];

/// Starts a command after which the old table is fed, and returns when it is.
fn start_feeding(server: &Server, session: &mut Session, arguments: &[&str]) -> Child {
    let written = |session: &mut Session| {
        session
            .text("SELECT CONCAT(written_at, JSON_UNQUOTE(JSON_EXTRACT(state, '$.phase'))) FROM app.t_onionskin WHERE id = 1")
            .unwrap_or_default()
    };
    let before = written(session);
    let child = start_migration(migrate(server, None, arguments));
    wait_until("the old table is fed", Duration::from_secs(60), || {
        let now = written(session);
        now != before && now.ends_with("reverse")
    });
    child
}

fn handed_over(feeding: Child) {
    let (succeeded, text) = end_of_migration(feeding);
    assert!(succeeded && text.contains("took over"), "{text}");
}

fn a_killed_roll_back_is_ended_by_another_one(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = table_and_twin(&server, ROWS);
    let definition = session.text("SHOW CREATE TABLE t").unwrap();
    let command = ["app.t", "--roll-back", "--drop-old", "--threads", "2"];
    let before: &[Point<'_>] = &[
        ("REPLACE INTO `app`.`t_onionskin`", 1, When::Before),
        ("REPLACE INTO `app`.`t_onionskin`", 1, When::After),
        ("DELETE FROM `app`.`t_onionskin`", 1, When::After),
        ("BIT_XOR", 1, When::Before),
        ("LOCK TABLES `t` WRITE", 1, When::After),
        ("RENAME TABLE `t`", 1, When::Before),
        ("RENAME TABLE `t`", 1, When::After),
    ];
    // MariaDB renames when the sentry is gone and the lock's session ends. The first sentry is the
    // one that was left by the kill before.
    let renames: &[Point<'_>] = match kind {
        Kind::MariaDb => &[("DROP TABLE `t_onionskin_new`", 2, When::After)],
        Kind::MySql => &[],
    };
    let behind: &[Point<'_>] = &[
        ("DROP TABLE IF EXISTS `t_onionskin_new`", 1, When::Before),
        ("DROP TABLE IF EXISTS `t_onionskin_new`", 1, When::After),
        ("DROP TABLE IF EXISTS `app`.`t_onionskin`", 1, When::Before),
    ];
    beside_a_writer(server.port(), ROWS, || {
        let feeding = start_feeding(&server, &mut session, &WITH_INDEX);
        for &point in [before, renames, behind].concat().iter() {
            kill_at(&server, &command, point);
            assert_equal_to_twin(&mut session, &format!("{point:?}"));
        }
        handed_over(feeding);
        must_migrate(&server, None, &command);
    });
    assert_equal_to_twin(&mut session, "afterwards");
    assert_eq!(session.text("SHOW CREATE TABLE t").unwrap(), definition);
    assert_eq!(session.text("SHOW TABLES").unwrap(), "t\ntwin");
}

fn a_killed_finish_is_ended_by_another_one(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = table_and_twin(&server, ROWS);
    let command = ["app.t", "--finish", "--drop-old"];
    let under_lock = ("LOCK TABLES `t` WRITE", 1, When::After);
    let points: &[Point<'_>] = &[
        ("REPLACE INTO `app`.`t_onionskin`", 1, When::After),
        ("DELETE FROM `app`.`t_onionskin`", 1, When::Before),
        ("UPDATE `app`.`t_onionskin` SET state", 1, When::After),
        ("DROP TABLE IF EXISTS `t_onionskin_old`", 1, When::Before),
        ("DROP TABLE IF EXISTS `t_onionskin_old`", 1, When::After),
    ];
    beside_a_writer(server.port(), ROWS, || {
        let feeding = start_feeding(&server, &mut session, &WITH_INDEX);
        kill_at(&server, &["app.t", "--roll-back"], under_lock);
        handed_over(feeding);
        // Whoever has asked for the checkpoint and was killed does not ask any more.
        kill_at(&server, &command, points[0]);
        let mut feeding = start_feeding(&server, &mut session, &["app.t", "--resume"]);
        thread::sleep(Duration::from_millis(700));
        assert!(feeding.try_wait().expect("a child").is_none());
        kill_at(&server, &["app.t", "--roll-back"], under_lock);
        handed_over(feeding);
        for &point in points {
            kill_at(&server, &command, point);
            assert_equal_to_twin(&mut session, &format!("{point:?}"));
        }
        let text = must_not_migrate(&server, None, &["app.t", "--roll-back"]);
        assert!(text.contains("there is no way back"), "{text}");
        let last = ("DROP TABLE IF EXISTS `app`.`t_onionskin`", 1, When::Before);
        kill_at(&server, &command, last);
        let text = must_migrate(&server, None, &command);
        assert!(text.contains("is the new table for good"), "{text}");
    });
    assert_equal_to_twin(&mut session, "afterwards");
    let definition = session.text("SHOW CREATE TABLE t").unwrap();
    assert!(definition.contains("KEY `n`"), "{definition}");
    assert_eq!(session.text("SHOW TABLES").unwrap(), "t\ntwin");
}

fn a_killed_abort_is_ended_by_another_one(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = table_and_twin(&server, ROWS);
    let postponed = ["app.t", "--rebuild", "--cut-over", "postpone"];
    must_migrate(&server, None, &postponed);
    for statement in [
        "UPDATE `app`.`t_onionskin` SET state",
        "DROP TABLE IF EXISTS `t_onionskin_new`",
    ] {
        let point = (statement, 1, When::After);
        kill_at(&server, &["app.t", "--abort"], point);
        let text = must_not_migrate(&server, None, &["app.t", "--resume"]);
        assert!(text.contains("--abort ends that"), "{text}");
    }
    must_migrate(&server, None, &["app.t", "--abort"]);
    assert_eq!(session.text("SHOW TABLES").unwrap(), "t\ntwin");
    assert_equal_to_twin(&mut session, "afterwards");
}

fn commands_that_are_killed_at_any_time_are_ended_by_the_same_ones(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = table_and_twin(&server, ROWS);
    let mut kills = 0;
    beside_a_writer(server.port(), ROWS, || {
        for _ in 0..if long_run() { 10 } else { 1 } {
            for (command, longest) in [("--roll-back", 600), ("--finish", 60)] {
                let arguments = ["app.t", "--rebuild", "--reverse"];
                let feeding = start_feeding(&server, &mut session, &arguments);
                let arguments = ["app.t", command, "--drop-old"];
                for _ in 0..4 {
                    let child = start_migration(migrate(&server, None, &arguments));
                    thread::sleep(Duration::from_millis(rand::random_range(5..longest)));
                    kill(child);
                    its_statements_have_ended(&server);
                    kills += 1;
                    assert_equal_to_twin(&mut session, command);
                }
                let (succeeded, text) = run_migration(migrate(&server, None, &arguments));
                // The last kill may have come behind the end of everything.
                let was_done = text.contains("no migration of app.t has begun");
                assert!(succeeded || was_done, "{command}: {text}");
                end_of_migration(feeding);
                assert_eq!(session.text("SHOW TABLES").unwrap(), "t\ntwin", "{command}");
            }
        }
    });
    announce(&format!("{}: {kills} kills", kind.name()));
    assert_equal_to_twin(&mut session, "afterwards");
}

/// MariaDB lets writers that wait go before a rename that waits, if `max_write_lock_count` says so.
/// The process is killed when it has given the lock back, so that they write to the old table and
/// nobody is there to read it.
fn what_a_killed_switch_has_not_read_is_read_by_resume(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = table_and_twin(&server, 1000);
    audit(&mut session);
    kill_behind_the_lock(&server, &mut session, &["app.t", "--rebuild"]);
    let text = must_migrate(&server, None, &["app.t", "--resume", "--drop-old"]);
    assert_tells_of_stragglers(kind, &text);
    assert_equal_to_twin(&mut session, "afterwards");
    // What was written again had run its triggers on the old table.
    assert_equal_audits(&mut session);
    if kind == Kind::MySql {
        // Nobody comes between there.
        assert_eq!(session.text("SHOW TABLES").unwrap(), "t\ntwin");
        return;
    }
    // What the new table did not take is nowhere else.
    let late = "SELECT v FROM t_onionskin_old WHERE id = 9";
    assert_eq!(session.text(late).unwrap(), "late");
    session.must("DROP TABLE t_onionskin_old");
    kill_behind_the_lock(&server, &mut session, &["app.t", "--rebuild", "--reverse"]);
    let feeding = start_feeding(&server, &mut session, &["app.t", "--resume"]);
    session.must("UPDATE t SET v = 'behind' WHERE id = 11");
    session.must("UPDATE twin SET v = 'behind' WHERE id = 11");
    wait_until("the old table is fed", Duration::from_secs(20), || {
        let fed = session.text("SELECT v FROM t_onionskin_old WHERE id = 11");
        fed.unwrap() == "behind"
    });
    must_migrate(&server, None, &["app.t", "--finish"]);
    let (succeeded, text) = end_of_migration(feeding);
    assert!(succeeded, "{text}");
    assert_tells_of_stragglers(kind, &text);
    assert_equal_to_twin(&mut session, "afterwards");
    let rows = |session: &mut Session, table: &str| {
        session
            .text(&format!("SELECT * FROM {table} ORDER BY id"))
            .unwrap()
    };
    assert_same_rows(
        &rows(&mut session, "t_onionskin_old"),
        &rows(&mut session, "twin"),
        "the old table",
    );
    assert_equal_audits(&mut session);
}

fn assert_tells_of_stragglers(kind: Kind, text: &str) {
    if kind == Kind::MariaDb {
        assert!(
            text.contains("3 rows were written between the lock and the rename")
                && text.contains("1 rows were written to the old table")
                && text.contains("the keys 9"),
            "{text}"
        );
    }
}

/// Kills a migration when its lock is given back while four writers wait for the table; one of the
/// rows is written again afterwards. The twin gets the same.
fn kill_behind_the_lock(server: &Server, session: &mut Session, arguments: &[&str]) {
    let statements = [
        "UPDATE t SET v = 'late' WHERE id = 5",
        "INSERT INTO t VALUES (5000, 'late', 1) ON DUPLICATE KEY UPDATE n = n + 1",
        "DELETE FROM t WHERE id = 7",
        "UPDATE t SET v = 'late' WHERE id = 9",
    ];
    session.must("REPLACE INTO t VALUES (5, 'early', 1), (7, 'early', 1), (9, 'early', 1)");
    session.must("REPLACE INTO twin VALUES (5, 'early', 1), (7, 'early', 1), (9, 'early', 1)");
    let count = |session: &mut Session, condition: &str| {
        session
            .text(&format!(
                "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE {condition}"
            ))
            .unwrap()
    };
    let mut long = server.connect();
    // Without a snapshot, for whose end the switch would wait without asking for the lock.
    long.must("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    long.must("BEGIN");
    long.must("SELECT COUNT(*) FROM app.t");
    let cable = Cable::to(server.port());
    cable.freeze_at("UNLOCK TABLES", 1, When::After);
    let child = start_migration(migrate_at(&cable.address(), None, arguments));
    let ready = Barrier::new(statements.len() + 1);
    thread::scope(|scope| {
        for sql in statements {
            let (port, ready) = (server.port(), &ready);
            scope.spawn(move || {
                let mut writer = Session::open(port, "root", "", Some("app"));
                ready.wait();
                writer.must(sql);
            });
        }
        // The lock is asked for again and again, each time for two seconds.
        for is_asked in [true, false, true] {
            wait_until("the lock is asked for", Duration::from_secs(60), || {
                (count(session, "INFO LIKE 'LOCK TABLES%'") == "1") == is_asked
            });
        }
        session.must("SET GLOBAL max_write_lock_count = 1");
        ready.wait();
        wait_until("the writers wait", Duration::from_secs(20), || {
            count(
                session,
                "STATE = 'Waiting for table metadata lock' AND INFO LIKE '% t %' AND INFO NOT LIKE 'LOCK%'",
            ) == "4"
        });
        long.must("COMMIT");
    });
    wait_until("the lock is given back", Duration::from_secs(60), || {
        cable.is_frozen()
    });
    kill(child);
    drop(cable);
    wait_until("the tables are renamed", Duration::from_secs(20), || {
        !session
            .text("SHOW TABLES")
            .unwrap()
            .contains("t_onionskin_new")
    });
    session.must("SET GLOBAL max_write_lock_count = DEFAULT");
    session.must("UPDATE t SET v = 'newer' WHERE id = 9");
    for sql in statements {
        session.must(&sql.replacen(" t ", " twin ", 1));
    }
    session.must("UPDATE twin SET v = 'newer' WHERE id = 9");
}
