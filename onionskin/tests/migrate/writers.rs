//! Tables that are written to while they are migrated, and twins that are not migrated.

use super::*;

/// Two tables that are written, and for each a twin that is written in the same transactions and
/// left alone.
const NUMBERS: &str = "(id INT NOT NULL PRIMARY KEY, u INT NOT NULL, v VARCHAR(60) NOT NULL, n BIGINT, f FLOAT, d DOUBLE, j JSON, \
    dt DATETIME(3), ts TIMESTAMP(3) NULL, g INT AS (u + 1) VIRTUAL, UNIQUE KEY (u), KEY (v)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci";

const NAMES: &str = "(name VARCHAR(20) NOT NULL, part DATE NOT NULL, n INT NOT NULL, b VARBINARY(10), PRIMARY KEY (name, part)) \
    DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci";

const IDS: u32 = 4000;

pub fn prepare(session: &mut Session) {
    session.must("CREATE DATABASE app");
    session.must("USE app");
    for table in ["t", "t_model"] {
        session.must(&format!("CREATE TABLE {table} {NUMBERS}"));
        session.must(&format!("CREATE TABLE {table}2 {NAMES}"));
        let mut rows: Vec<String> = Vec::new();
        for id in (0..IDS).step_by(2) {
            rows.push(format!(
                "({id}, {id}, 'value {id}', {id}, 1.1, 0.1, '[{id}]', '2020-01-01 00:00:00.5')"
            ));
        }
        for rows in rows.chunks(1000) {
            session.must(&format!(
                "INSERT INTO {table} (id, u, v, n, f, d, j, dt) VALUES {}",
                rows.join(",")
            ));
        }
        let rows: Vec<String> = (0..500)
            .map(|n| format!("('{}', '2020-01-{:02}', {n}, x'00')", word(n), n % 3 + 1))
            .collect();
        session.must(&format!(
            "INSERT IGNORE INTO {table}2 VALUES {}",
            rows.join(",")
        ));
    }
}

/// One of few words, which the collation takes for equal where they differ in case only.
fn word(n: u32) -> String {
    let word = format!("word{}", n % 200);
    match n % 3 {
        0 => word,
        1 => word.to_uppercase(),
        _ => format!("W{}", &word[1..]),
    }
}

/// Statements of one transaction, with `{}` for the table's name.
fn change(rng: &mut StdRng) -> Vec<String> {
    let id = rng.random_range(0..IDS);
    let other = rng.random_range(0..IDS);
    let text = format!("text {}", rng.random_range(0..50));
    let number: f64 = rng.random_range(-1e10..1e10);
    let (name, day) = (word(rng.random_range(0..600)), rng.random_range(1..4));
    let n = rng.random_range(0..1_000_000);
    match rng.random_range(0..14) {
        0 => vec![format!(
            "INSERT INTO {{}} (id, u, v, n, f, d, j, dt) VALUES ({id}, {id}, '{text}', NULL, {number:e}, {number:e}, '{{\"k\": {n}}}', '2024-02-29 12:00:00.{}')",
            n % 1000
        )],
        1 => vec![format!("DELETE FROM {{}} WHERE id = {id}")],
        2 => vec![format!(
            "UPDATE {{}} SET v = '{text}', f = f * 1.7, d = d / 3 WHERE id = {id}"
        )],
        3 => vec![format!("UPDATE {{}} SET id = {other} WHERE id = {id}")],
        // Two rows exchange their unique values.
        4 => {
            let away = 1_000_000 + n;
            vec![
                format!("UPDATE {{}} SET u = {away} WHERE id = {id}"),
                format!("UPDATE {{}} SET u = {id} WHERE id = {other}"),
                format!("UPDATE {{}} SET u = {other} WHERE id = {id}"),
            ]
        }
        5 => vec![format!(
            "INSERT INTO {{}} (id, u, v, n, f, d, j, dt) VALUES ({id}, {id}, '{text}', {n}, 0, 0, 'null', NULL) ON DUPLICATE KEY UPDATE n = {n}, v = '{text}'"
        )],
        6 => vec![format!(
            "REPLACE INTO {{}} (id, u, v, n, f, d, j, dt) VALUES ({id}, {other}, '{text}', {n}, 0, 0, NULL, NULL)"
        )],
        7 => vec![
            format!("DELETE FROM {{}} WHERE id = {id}"),
            format!("INSERT INTO {{}} (id, u, v) VALUES ({id}, {id}, '{text}')"),
        ],
        8 => vec![format!(
            "INSERT INTO {{}}2 VALUES ('{name}', '2020-01-{day:02}', {n}, x'{n:06x}')"
        )],
        9 => vec![format!(
            "DELETE FROM {{}}2 WHERE name = '{name}' AND part = '2020-01-{day:02}'"
        )],
        // Another spelling of the same key.
        10 => vec![format!(
            "UPDATE {{}}2 SET name = UPPER(name), n = {n} WHERE name = '{name}' AND part = '2020-01-{day:02}'"
        )],
        11 => vec![
            format!("DELETE FROM {{}}2 WHERE name = '{name}' AND part = '2020-01-{day:02}'"),
            format!(
                "INSERT INTO {{}}2 VALUES ('{}', '2020-01-{day:02}', {n}, NULL)",
                name.to_lowercase()
            ),
        ],
        // The same words are another moment in every writer's time zone.
        12 => vec![format!(
            "UPDATE {{}} SET ts = '2024-03-31 {:02}:30:00.{:03}', dt = ts WHERE id BETWEEN {id} AND {id} + 3",
            n % 24,
            n % 1000
        )],
        _ => vec![format!(
            "UPDATE {{}}2 SET n = n + 1, b = x'ff00' WHERE name = '{name}'"
        )],
    }
}

/// Writes to the tables and their twins until told to stop. Returns how many transactions were
/// committed.
fn write(port: u16, seed: u64, stop: &AtomicBool, committed: &AtomicU64) {
    let mut session = Session::open(port, "root", "", Some("app"));
    session.must("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    let mut rng = StdRng::seed_from_u64(seed);
    let zone = ["+00:00", "-08:00", "+05:45", "SYSTEM"][seed as usize % 4];
    session.must(&format!("SET time_zone = '{zone}'"));
    while !stop.load(Ordering::Relaxed) {
        let statements = change(&mut rng);
        let mut work = || -> Result<(), Failure> {
            session.run("BEGIN")?;
            let mut affected = [Vec::new(), Vec::new()];
            for (table, affected) in ["t", "t_model"].into_iter().zip(&mut affected) {
                for sql in &statements {
                    affected.push(session.run(&sql.replace("{}", table))?.affected);
                }
            }
            // A row that was not there takes no lock: another writer may have made it between the
            // table and its twin.
            if rng.random_bool(0.05) || affected[0] != affected[1] {
                session.run("ROLLBACK")?;
                return Ok(());
            }
            session.run("COMMIT")?;
            committed.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        if let Err(failure) = work() {
            // Duplicates and deadlocks are the application's own; anything else would be the
            // migration's doing.
            assert!(
                [1062, 1213, 1205].contains(&failure.code),
                "{statements:?}: {failure}"
            );
            session.must("ROLLBACK");
        }
    }
}

pub fn assert_equal_to_twins(session: &mut Session) {
    session.must("USE app");
    for (table, columns) in [
        ("t", "id, u, v, n, f, d, j, dt, ts, g"),
        ("t2", "name, part, n, b"),
    ] {
        let rows = |session: &mut Session, table: &str| {
            let order = if table.ends_with('2') {
                "name, part"
            } else {
                "id"
            };
            session
                .text(&format!("SELECT {columns} FROM {table} ORDER BY {order}"))
                .unwrap()
        };
        let twin = rows(session, &table.replace('t', "t_model"));
        let is = rows(session, table);
        assert_same_rows(&is, &twin, table);
    }
}

fn seed() -> u64 {
    let seed = std::env::var("ONIONSKIN_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| rand::random_range(0..1_000_000));
    announce(&format!("ONIONSKIN_TEST_SEED={seed}"));
    seed
}

/// Runs `work` beside four writers.
pub fn beside_writers(port: u16, work: impl FnOnce()) {
    let (stop, committed, seed) = (AtomicBool::new(false), AtomicU64::new(0), seed());
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (stop, committed) = (&stop, &committed);
            scope.spawn(move || write(port, seed * 10 + writer, stop, committed));
        }
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
    announce(&format!(
        "{} transactions were committed",
        committed.load(Ordering::Relaxed)
    ));
}

pub fn tables_hold_what_was_written_while_they_changed(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let mut session = server.connect();
    prepare(&mut session);
    beside_writers(server.port(), || {
        std::thread::sleep(Duration::from_millis(300));
        for round in 0..if long_run() { 20 } else { 2 } {
            let text = must_migrate(&server, None, &["app.t", "--rebuild", "--drop-old"]);
            assert!(
                text.contains(" 0 repaired") && !text.contains("warning"),
                "{text}"
            );
            must_migrate(
                &server,
                None,
                &["app.t2", "--rebuild", "--drop-old", "--threads", "1"],
            );
            let column = format!(
                "ADD COLUMN x{round} VARCHAR(10) DEFAULT 'x', DROP INDEX v, ADD INDEX v (v, n)"
            );
            must_migrate(&server, None, &["app.t", "--alter", &column, "--drop-old"]);
        }
    });
    assert_equal_to_twins(&mut session);
}

pub fn a_killed_migration_goes_on(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let mut session = server.connect();
    prepare(&mut session);
    let mut rng = StdRng::seed_from_u64(seed());
    let mut kills = 0;
    beside_writers(server.port(), || {
        for _ in 0..if long_run() { 20 } else { 3 } {
            let mut arguments = vec!["app.t", "--rebuild", "--drop-old"];
            for attempt in 0.. {
                let mut child = start_migration(migrate(&server, None, &arguments));
                let limit = Duration::from_millis(rng.random_range(20..400));
                let begun = Instant::now();
                let ended = loop {
                    match child.try_wait().expect("a child") {
                        None if begun.elapsed() < limit || attempt > 6 => {
                            std::thread::sleep(Duration::from_millis(2))
                        }
                        ended => break ended,
                    }
                };
                match ended {
                    Some(_) => {
                        // What a kill had lost would be found by comparing, and mended.
                        let (succeeded, text) = end_of_migration(child);
                        if succeeded {
                            assert!(text.contains(" 0 repaired"), "{text}");
                            break;
                        }
                        // Killed before it had begun, or after it was done.
                        let late = ["no migration of app.t has begun", "there is a table"];
                        assert!(late.iter().any(|words| text.contains(words)), "{text}");
                        let (succeeded, text) = run_migration(migrate(
                            &server,
                            None,
                            &["app.t", "--resume", "--drop-old"],
                        ));
                        let nothing = text.contains("no migration of app.t has begun");
                        let sound = succeeded && text.contains(" 0 repaired");
                        assert!(sound || nothing, "{text}");
                        break;
                    }
                    None => {
                        child.kill().expect("kill -9");
                        child.wait().expect("a child");
                        kills += 1;
                        let has_begun = server
                            .connect()
                            .text("SHOW TABLES FROM app LIKE 't\\_onionskin'")
                            .unwrap();
                        if !has_begun.is_empty() {
                            arguments = vec!["app.t", "--resume", "--drop-old"];
                        }
                    }
                }
            }
            // A kill after the switch leaves the old table to its owner.
            server
                .connect()
                .must("DROP TABLE IF EXISTS app.t_onionskin_old");
        }
    });
    announce(&format!("{}: {kills} kills", kind.name()));
    assert!(kills > 0);
    assert_equal_to_twins(&mut session);
    assert!(
        !session
            .text("SHOW TABLES FROM app")
            .unwrap()
            .contains("onionskin")
    );
}
