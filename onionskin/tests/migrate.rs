//! Tables change while they are written, and afterwards hold exactly what was written.

#[path = "migrate/writers.rs"]
mod writers;

#[path = "migrate/refusals.rs"]
mod refusals;

#[path = "migrate/names.rs"]
mod names;

#[path = "migrate/fixed_binary.rs"]
mod fixed_binary;
use fixed_binary::uuid_and_inet_are_carried;
use names::{keys_to_a_table_with_an_accent, tables_with_nearly_the_same_name};
use onionskin_testkit::*;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use refusals::what_cannot_be_migrated_is_refused_and_what_was_begun_is_cleaned_up;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use writers::{
    a_killed_migration_goes_on, assert_equal_to_twins, beside_writers, prepare,
    tables_hold_what_was_written_while_they_changed,
};

on_both_servers!(
    an_idle_table_is_rebuilt_altered_and_encrypted,
    tables_hold_what_was_written_while_they_changed,
    a_killed_migration_goes_on,
    money_neither_appears_nor_vanishes,
    a_table_is_encrypted_under_a_proxy_in_use,
    what_cannot_be_migrated_is_refused_and_what_was_begun_is_cleaned_up,
    what_a_checkpoint_tells_is_made_good,
    a_new_uniqueness_never_costs_a_row,
    the_lock_is_given_back_when_much_is_left_to_write,
    changes_that_are_told_before_they_can_be_seen_are_not_lost,
    uuid_and_inet_are_carried,
    keys_to_a_table_with_an_accent,
    tables_with_nearly_the_same_name,
);

fn start(kind: Kind) -> Option<Server> {
    logging_server(kind, &[])
}

/// Every type that has something special about it.
const WIDE: &str = "CREATE TABLE app.t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, \
    i BIGINT UNSIGNED, dc DECIMAL(20,5), f FLOAT, d DOUBLE, fd FLOAT(8,2), dd DOUBLE(12,3), dt DATETIME(6), ts TIMESTAMP(3) NULL, da DATE, ti TIME(2), y YEAR, \
    c CHAR(10), v VARCHAR(50) CHARACTER SET latin1, tx TEXT, b BINARY(6), vb VARBINARY(20), bl BLOB, j JSON, \
    e ENUM('a','b'), s SET('x','y','z'), bt BIT(10), u INT NOT NULL, g INT AS (u + 1) STORED, UNIQUE KEY (u), KEY (v)) \
    DEFAULT CHARSET=utf8mb4";

fn fill(session: &mut Session, rows: u32) {
    session.must("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'");
    session.must("SET SESSION time_zone = '+02:00'");
    for id in 0..rows {
        let values = match (id + 1) % 4 {
            0 => "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL".to_owned(),
            1 => format!("18446744073709551615, -12345.67890, 1.1, 0.1, 3.14159, 2.71828, '0000-00-00 00:00:00', '2038-01-19 03:14:07.123', '0000-00-00', '-838:59:59.00', 1901, 'abc  ', x'e4f6', 'Grüße 🎉 {id}', x'0102', x'00ff', x'270a5c00', '{{\"a\": [1, 2.5, null, \"x\"]}}', 'a', 'x,z', b'1000000001'"),
            2 => format!("{id}, 0.00001, 16777217, -0.0, 999999.99, -0.0004, '2024-02-29 23:59:59.999999', '1971-01-01 00:00:01', '9999-12-31', '12:34:56.78', 2155, '', '', '', x'', x'', x'', '[]', 'b', '', b'0'"),
            _ => format!("{id}, 99999999999999.99999, 3.4e38, 1.7976931348623157e308, -999999.99, 123456.7895, '2020-02-31 10:00:00', NOW(3), '2020-02-00', '00:00:00', 0, 'ẞ', 'it''s', REPEAT('long ', 500), x'ffffffffffff', x'00', REPEAT('b', 3000), '\"text\"', 'b', 'y', b'11'"),
        };
        let sql = format!(
            "INSERT INTO app.t (id, u, i, dc, f, d, fd, dd, dt, ts, da, ti, y, c, v, tx, b, vb, bl, j, e, s, bt) VALUES ({id}, {}, {values})",
            id + 1_000_000
        );
        session.must(&sql);
    }
}

/// All rows as exact bytes.
fn dump(session: &mut Session, table: &str) -> Vec<String> {
    session.must("SET SESSION time_zone = '+00:00'");
    session.must("USE app");
    let sql = format!(
        "SELECT CONCAT_WS('|', id, IFNULL(i,'N'), IFNULL(dc,'N'), IFNULL(f*1e0,'N'), IFNULL(d,'N'), IFNULL(fd*1e0,'N'), IFNULL(dd*1e0,'N'), IFNULL(dt,'N'), IFNULL(ts,'N'), IFNULL(da,'N'), \
         IFNULL(ti,'N'), IFNULL(y,'N'), IFNULL(HEX(c),'N'), IFNULL(HEX(v),'N'), IFNULL(HEX(tx),'N'), IFNULL(HEX(b),'N'), IFNULL(HEX(vb),'N'), \
         IFNULL(HEX(bl),'N'), IFNULL(j,'N'), IFNULL(e+0,'N'), IFNULL(s+0,'N'), IFNULL(bt+0,'N'), g, u) FROM {table} ORDER BY id"
    );
    session
        .text(&sql)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn an_idle_table_is_rebuilt_altered_and_encrypted(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let proxy = Proxy::start(&server, "");
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must(WIDE);
    fill(&mut session, 60);
    let before = dump(&mut session, "app.t");
    let definition = session.text("SHOW CREATE TABLE app.t").unwrap();

    let text = must_migrate(&server, None, &["app.t", "--rebuild"]);
    assert!(
        text.contains("60 rows copied") && text.contains(" 0 repaired"),
        "{text}"
    );
    assert_eq!(dump(&mut session, "app.t"), before);
    assert_eq!(session.text("SHOW CREATE TABLE app.t").unwrap(), definition);
    assert_eq!(dump(&mut session, "app.t_onionskin_old"), before);
    // The old table is the user's to drop.
    let text = must_not_migrate(&server, None, &["app.t", "--rebuild"]);
    assert!(text.contains("t_onionskin_old"), "{text}");
    session.must("DROP TABLE app.t_onionskin_old");

    must_migrate(
        &server,
        None,
        &[
            "app.t",
            "--drop-old",
            "--alter",
            "ADD COLUMN n VARCHAR(100) NOT NULL, ADD COLUMN k INT DEFAULT 7, MODIFY i DECIMAL(30,0)",
        ],
    );
    assert_eq!(dump(&mut session, "app.t"), before);
    assert_eq!(
        session.text("SELECT DISTINCT n, k FROM app.t").unwrap(),
        "\t7"
    );
    must_migrate(
        &server,
        None,
        &[
            "app.t",
            "--drop-old",
            "--alter",
            "DROP COLUMN n, DROP COLUMN k, MODIFY i BIGINT UNSIGNED",
        ],
    );

    // Through the same engine, with sealed cells.
    let columns = "i: eq range; dc: range; f:; d: eq; dt: range; ts: eq; da: eq; ti: range; y: eq; c: eq; v: eq range; tx:; b: eq; vb: eq; bl:; j:; e: eq; s: range; bt: range";
    must_migrate(
        &server,
        Some(&proxy),
        &["app.t", "--drop-old", "--encrypt", columns],
    );
    let mut through = proxy.connect();
    assert!(session.must_fail("SELECT v FROM app.t") == 1054);
    let shown = |session: &mut Session, columns: &str| {
        session.must("SET SESSION time_zone = '+00:00'");
        session
            .text(&format!("SELECT {columns} FROM app.t ORDER BY id"))
            .unwrap()
    };
    let all = "id, i, dc, f, d, dt, ts, da, ti, y, c, v, tx, b, vb, bl, j, e, s, bt, g, u";
    let sealed = shown(&mut through, all);
    must_migrate(
        &server,
        Some(&proxy),
        &["app.t", "--drop-old", "--add", "d: range; c: range"],
    );
    assert_eq!(shown(&mut through, all), sealed);
    must_migrate(
        &server,
        Some(&proxy),
        &["app.t", "--drop-old", "--drop", "i: eq; v: range"],
    );
    must_migrate(&server, Some(&proxy), &["app.t", "--drop-old", "--rotate"]);
    must_migrate(&server, Some(&proxy), &["app.t", "--drop-old", "--rebuild"]);
    assert_eq!(shown(&mut through, all), sealed);
    must_migrate(
        &server,
        Some(&proxy),
        &[
            "app.t",
            "--drop-old",
            "--decrypt",
            "i, dc, f, d, dt, ts, da, ti, y, c, v, tx, b, vb, bl, j, e, s, bt",
        ],
    );
    assert_eq!(dump(&mut session, "app.t"), before);
    assert_eq!(
        shown(&mut session, all),
        sealed,
        "the proxy showed what the server shows"
    );
    assert!(
        !session
            .text("SHOW TABLES FROM app")
            .unwrap()
            .contains("onionskin")
    );
}

fn money_neither_appears_nor_vanishes(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL)");
    for id in 0..200 {
        session.must(&format!("INSERT INTO app.accounts VALUES ({id}, 1000)"));
    }
    let (stop, slowest, reads) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for teller in 0..4 {
            let (stop, slowest) = (&stop, &slowest);
            let port = server.port();
            scope.spawn(move || {
                let mut session = Session::open(port, "root", "", Some("app"));
                let mut rng = StdRng::seed_from_u64(teller);
                while !stop.load(Ordering::Relaxed) {
                    let (from, to, sum) = (
                        rng.random_range(0..200),
                        rng.random_range(0..200),
                        rng.random_range(1..50),
                    );
                    let begun = Instant::now();
                    let mut transfer = || -> Result<(), Failure> {
                        session.run("BEGIN")?;
                        session.run(&format!(
                            "UPDATE accounts SET balance = balance - {sum} WHERE id = {from}"
                        ))?;
                        session.run(&format!(
                            "UPDATE accounts SET balance = balance + {sum} WHERE id = {to}"
                        ))?;
                        session.run("COMMIT")?;
                        Ok(())
                    };
                    if let Err(failure) = transfer() {
                        assert_eq!(failure.code, 1213, "{failure}");
                        session.must("ROLLBACK");
                    }
                    slowest.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
                }
            });
        }
        let (stop, reads) = (&stop, &reads);
        let port = server.port();
        scope.spawn(move || {
            let mut session = Session::open(port, "root", "", Some("app"));
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(
                    session.text("SELECT SUM(balance) FROM accounts").unwrap(),
                    "200000"
                );
                reads.fetch_add(1, Ordering::Relaxed);
            }
        });
        let work = || {
            for _ in 0..3 {
                let text =
                    must_migrate(&server, None, &["app.accounts", "--rebuild", "--drop-old"]);
                assert!(
                    text.contains("switched") && !text.contains("warning"),
                    "{text}"
                );
                announce(
                    text.lines()
                        .find(|line| line.contains("switched"))
                        .unwrap_or_default(),
                );
            }
        };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        assert!(ended.is_ok());
    });
    assert!(reads.into_inner() > 10);
    announce(&format!(
        "{}: the slowest transfer took {} ms",
        kind.name(),
        slowest.into_inner()
    ));
    assert_eq!(
        session
            .text("SELECT SUM(balance) FROM app.accounts")
            .unwrap(),
        "200000"
    );
}

fn a_table_is_encrypted_under_a_proxy_in_use(kind: Kind) {
    let Some(server) = start(kind) else { return };
    if direct_mode() {
        return;
    }
    let mut proxy = Proxy::start(&server, "");
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    for table in ["p", "p_model"] {
        session.must(&format!(
            "CREATE TABLE app.{table} (id INT PRIMARY KEY, name VARCHAR(30), age INT NOT NULL, note TEXT, KEY (name)) \
             DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"
        ));
        for id in 0..500 {
            session.must(&format!(
                "INSERT INTO app.{table} VALUES ({id}, 'name {}', {id}, 'note')",
                id % 50
            ));
        }
    }
    let (stop, committed) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for writer in 0..3u64 {
            let (stop, committed) = (&stop, &committed);
            let port = proxy.port();
            scope.spawn(move || {
                let mut session = Session::open(port, "root", "", Some("app"));
                let mut rng = StdRng::seed_from_u64(writer);
                while !stop.load(Ordering::Relaxed) {
                    // Each writer has rows of its own.
                    let id = rng.random_range(0..300) * 3 + writer;
                    let (name, age) = (format!("Name {}", rng.random_range(0..50)), rng.random_range(0..100));
                    let sql = match rng.random_range(0..6) {
                        0 => format!("INSERT INTO {{}} VALUES ({id}, '{name}', {age}, NULL) ON DUPLICATE KEY UPDATE name = '{name}', age = {age}"),
                        1 => format!("DELETE FROM {{}} WHERE id = {id}"),
                        2 => format!("UPDATE {{}} SET name = '{name}', note = 'new {age}' WHERE id = {id}"),
                        3 => format!("UPDATE {{}} SET age = {age}, name = NULL WHERE id = {id}"),
                        4 => format!("REPLACE INTO {{}} (id, name, age, note) VALUES ({id}, '{name}', {age}, 'r')"),
                        _ => format!("SELECT COUNT(*) FROM {{}} WHERE name = '{name}' AND id % 3 = {writer}"),
                    };
                    let is_read = sql.starts_with("SELECT");
                    let work = |session: &mut Session, table: &str| session.run(&sql.replace("{}", table));
                    let first = work(&mut session, "p").unwrap_or_else(|failure| panic!("{sql}: {failure}"));
                    let second = work(&mut session, "p_model").unwrap_or_else(|failure| panic!("{sql}: {failure}"));
                    match is_read {
                        true => assert_eq!(first.text(), second.text(), "{sql}"),
                        false => assert_eq!(first.affected, second.affected, "{sql}"),
                    }
                    committed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let work = || {
            for arguments in [
                ["--encrypt", "name: eq; age: eq range; note:"],
                ["--drop", "age: eq"],
                ["--add", "name: range"],
                ["--decrypt", "age"],
            ] {
                std::thread::sleep(Duration::from_millis(300));
                let text = must_migrate(
                    &server,
                    Some(&proxy),
                    &["app.p", "--drop-old", arguments[0], arguments[1]],
                );
                assert!(text.contains(" 0 repaired"), "{text}");
                assert_eq!(
                    text.contains("stands in plaintext in the binary logs"),
                    arguments[0] == "--encrypt",
                    "{text}"
                );
            }
        };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
    announce(&format!(
        "{}: {} statements through the proxy",
        kind.name(),
        committed.into_inner()
    ));
    let mut through = proxy.connect_to("app");
    let rows = |session: &mut Session, table: &str| {
        session
            .text(&format!(
                "SELECT id, name, age, note FROM {table} ORDER BY id"
            ))
            .unwrap()
    };
    assert!(rows(&mut through, "p") == rows(&mut through, "p_model"));
    assert_eq!(session.must_fail("SELECT name FROM app.p"), 1054);
    proxy.assert_healthy();
}

fn what_a_checkpoint_tells_is_made_good(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let mut session = server.connect();
    // Two values of a row are together longer than this.
    session.must("SET GLOBAL max_allowed_packet = 1048576");
    session.must("CREATE DATABASE app");
    session.must("USE app");
    session.must("CREATE TABLE t (id INT(8) ZEROFILL NOT NULL AUTO_INCREMENT PRIMARY KEY, a LONGTEXT, b LONGTEXT)");
    session.must("INSERT INTO t (a, b) VALUES ('1', '1'), ('2', '2'), (REPEAT('a', 600000), REPEAT('b', 600000))");
    let postpone = || {
        must_migrate(
            &server,
            None,
            &["app.t", "--rebuild", "--cut-over", "postpone"],
        )
    };
    let digest = |session: &mut Session| {
        session
            .text("SELECT id, SHA2(a, 256), SHA2(b, 256) FROM t ORDER BY id")
            .unwrap()
    };

    // A difference in a long row is found. Numbers that were given out meanwhile are not given out
    // again.
    postpone();
    session.must("UPDATE t_onionskin_new SET b = REPEAT('x', 600000) WHERE id = 3");
    session.must("INSERT INTO t (a) VALUES ('4'), ('5'), ('6')");
    session.must("UPDATE t SET b = 'changed' WHERE id = 2");
    session.must("DELETE FROM t WHERE id IN (1, 4, 5, 6)");
    let before = digest(&mut session);
    let text = must_migrate(&server, None, &["app.t", "--resume", "--drop-old"]);
    assert!(text.contains(" 1 repaired"), "{text}");
    assert_eq!(digest(&mut session), before);
    session.must("INSERT INTO t (a) VALUES ('7')");
    assert_eq!(
        session.text("SELECT MAX(id) + 0 FROM t").unwrap(),
        "7",
        "4 to 6 were given out"
    );

    // Killed before the first row was noted: what is in the new table is not trusted.
    postpone();
    session.must(r#"UPDATE t_onionskin SET state = REPLACE(state, '"copied":true', '"copied":false') WHERE id = 1"#);
    session
        .must("UPDATE t_onionskin SET state = JSON_SET(state, '$.copied_to', NULL) WHERE id = 1");
    session.must("INSERT INTO t_onionskin_new (id, a) VALUES (1000, 'stale')");
    session.must("UPDATE t_onionskin_new SET a = 'stale' WHERE id = 2");
    let before = digest(&mut session);
    let text = must_migrate(&server, None, &["app.t", "--resume", "--drop-old"]);
    assert!(text.contains(" 0 repaired"), "{text}");
    assert_eq!(digest(&mut session), before);

    // A position is one in a certain server's log.
    postpone();
    session
        .must("UPDATE t_onionskin SET state = JSON_SET(state, '$.server', 'other') WHERE id = 1");
    let text = must_not_migrate(&server, None, &["app.t", "--resume"]);
    assert!(text.contains("another server"), "{text}");
    must_migrate(&server, None, &["app.t", "--abort"]);

    // Killed when the tables were switched and the old one was dropped.
    postpone();
    session
        .must("UPDATE t_onionskin SET state = JSON_SET(state, '$.phase', 'switch') WHERE id = 1");
    session.must("DROP TABLE t_onionskin_new");
    must_migrate(&server, None, &["app.t", "--resume", "--drop-old"]);
    assert_eq!(session.text("SHOW TABLES").unwrap(), "t");
}

fn a_new_uniqueness_never_costs_a_row(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("USE app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, email VARCHAR(50))");
    session.must("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')");
    // Values change their owners while it is ready.
    let arguments = ["app.t", "--alter", "ADD UNIQUE (email)"];
    must_migrate(
        &server,
        None,
        &[&arguments[..], &["--cut-over", "postpone"]].concat(),
    );
    session.must("UPDATE t SET email = CASE id WHEN 1 THEN 'b' WHEN 2 THEN 'c' ELSE 'a' END");
    must_migrate(&server, None, &["app.t", "--resume", "--drop-old"]);
    assert_eq!(
        session.text("SELECT id, email FROM t ORDER BY id").unwrap(),
        "1\tb\n2\tc\n3\ta"
    );
    session.must("ALTER TABLE t DROP INDEX email");

    // A second owner comes when everything was compared, and the switch waits for a long
    // transaction.
    let mut long = server.connect();
    // Without a snapshot, for whose end the switch would wait without asking for the lock.
    long.must("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    long.must("BEGIN");
    long.must("SELECT * FROM app.t");
    let child = start_and_wait_for_lock(&server, &mut session, &arguments);
    session.must("INSERT INTO t VALUES (4, 'c')");
    long.must("COMMIT");
    let (succeeded, text) = end_of_migration(child);
    assert!(!succeeded && text.contains("does not take a row"), "{text}");
    must_migrate(&server, None, &["app.t", "--abort"]);
    assert_eq!(
        session.text("SELECT id, email FROM t ORDER BY id").unwrap(),
        "1\tb\n2\tc\n3\ta\n4\tc"
    );
}

/// Starts a migration of a table that a long transaction holds, and returns when it waits for the
/// table's lock.
fn start_and_wait_for_lock(
    server: &Server,
    session: &mut Session,
    arguments: &[&str],
) -> std::process::Child {
    let child = start_migration(migrate(server, None, arguments));
    let begun = Instant::now();
    let waiting =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'LOCK TABLES%'";
    while session.text(waiting).unwrap() != "1" {
        assert!(begun.elapsed() < Duration::from_secs(60), "no switch");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn the_lock_is_given_back_when_much_is_left_to_write(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("USE app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    session.must("CREATE TABLE ten (n INT)");
    session.must("INSERT INTO ten VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)");
    // A long transaction commits 20 000 rows in the moment in which the lock becomes free.
    let mut long = server.connect();
    long.must("USE app");
    // Without a snapshot, for whose end the switch would wait without asking for the lock.
    long.must("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    long.must("BEGIN");
    long.must(
        "INSERT INTO t SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n, 1 \
         FROM ten a, ten b, ten c, ten d, ten e WHERE e.n < 2",
    );
    let child = start_and_wait_for_lock(&server, &mut session, &["app.t", "--rebuild"]);
    long.must("COMMIT");
    let (succeeded, text) = end_of_migration(child);
    assert!(succeeded && text.contains("too much is left"), "{text}");
    let all = "SELECT COUNT(*), SUM(id), SUM(v) FROM";
    assert_eq!(
        session.text(&format!("{all} t")).unwrap(),
        session.text(&format!("{all} t_onionskin_old")).unwrap()
    );
    assert_eq!(session.text("SELECT COUNT(*) FROM t").unwrap(), "20000");
}

/// Under semi-synchronous replication a server tells its replicas of a transaction, waits for one
/// of them, and only then lets other sessions see its rows. Here no replica answers, so that every
/// commit stands for a while between the two.
fn changes_that_are_told_before_they_can_be_seen_are_not_lost(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let mut session = server.connect();
    let word = match kind {
        Kind::MariaDb => "master",
        Kind::MySql => {
            session.must("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'");
            "source"
        }
    };
    session.must(&format!(
        "SET GLOBAL rpl_semi_sync_{word}_wait_point = 'AFTER_SYNC', GLOBAL rpl_semi_sync_{word}_timeout = 60"
    ));
    prepare(&mut session);
    let (stop, waits) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let (port, stop, waits) = (server.port(), &stop, &waits);
        scope.spawn(move || {
            // Who has waited in vain once is not waited for again, until it is switched on anew.
            let mut administrator = Session::open(port, "root", "", Some("app"));
            administrator.must("CREATE TABLE waiting (id INT PRIMARY KEY AUTO_INCREMENT)");
            while !stop.load(Ordering::Relaxed) {
                for state in ["OFF", "ON"] {
                    administrator.must(&format!(
                        "SET GLOBAL rpl_semi_sync_{word}_enabled = {state}"
                    ));
                }
                let begun = Instant::now();
                administrator.must("INSERT INTO waiting VALUES (NULL)");
                let waited = begun.elapsed() >= Duration::from_millis(55);
                waits.fetch_add(u32::from(waited), Ordering::Relaxed);
            }
            administrator.must(&format!("SET GLOBAL rpl_semi_sync_{word}_enabled = OFF"));
        });
        let work = || {
            beside_writers(port, || {
                for table in ["app.t", "app.t2"] {
                    let text = must_migrate(&server, None, &[table, "--rebuild", "--drop-old"]);
                    assert!(
                        text.contains(" 0 repaired") && !text.contains("warning"),
                        "{text}"
                    );
                }
            });
        };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
    let waits = waits.into_inner();
    announce(&format!(
        "{}: {waits} times commits were seen to wait",
        kind.name()
    ));
    assert!(waits > 5, "commits did not wait");
    assert_equal_to_twins(&mut session);
}
