//! Tables are migrated under applications that know nothing of it: sysbench, unmodified, and
//! readers through the proxy.

use onionskin_testkit::*;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

on_both_servers!(
    sysbench_goes_on_through_migrations_of_its_tables,
    results_that_begin_with_null_are_right_while_tables_are_switched,
    writers_without_a_limit_do_not_put_the_end_off,
    files_are_loaded_while_tables_are_switched,
);

const ROWS: u32 = 2_000;
const EVENTS: u32 = 1_000;

/// Whether sysbench still runs is told by this.
fn beside<T: Send>(work: impl FnOnce() -> T + Send, mut other: impl FnMut(&dyn Fn() -> bool)) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        let working = scope.spawn(move || {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            over.store(true, Ordering::Relaxed);
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        other(&|| !over.load(Ordering::Relaxed));
        working
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn sysbench_goes_on_through_migrations_of_its_tables(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let mut proxy = Proxy::start(&server, "");
    let mut session = server.connect();
    for database in ["sbtest", "twin", "plain"] {
        session.must(&format!("CREATE DATABASE {database}"));
    }
    let load = |port: u16, database: &str| {
        Sysbench::new(port, "oltp_read_write")
            .database(database)
            .tables(1, ROWS)
    };
    load(server.port(), "sbtest").run("prepare");
    // With one thread and a seed sysbench sends the same statements every time, here and to a plain
    // table.
    load(server.port(), "plain").run("prepare");
    session.must("CREATE TABLE twin.sbtest1 LIKE plain.sbtest1");
    session.must("INSERT INTO twin.sbtest1 SELECT * FROM plain.sbtest1");
    // Only writes: servers end transactions that have read a table and write it while somebody asks
    // for a lock on all of it (1213).
    let seeded = |port: u16, database: &str| {
        Sysbench::new(port, "oltp_write_only")
            .database(database)
            .tables(1, ROWS)
            .threads(1)
            .option("--rand-seed=7")
            .prepared(true)
            .events(EVENTS)
            .run("run")
    };
    assert_eq!(
        seeded(server.port(), "plain").transactions,
        u64::from(EVENTS)
    );

    let many = |prepared: bool| {
        load(proxy.port(), "sbtest")
            .threads(6)
            .prepared(prepared)
            .seconds(8)
            .run("run")
    };
    let mut operations = 0;
    let reports = beside(
        || {
            std::thread::scope(|scope| {
                let text = scope.spawn(|| many(false));
                let prepared = scope.spawn(|| many(true));
                let twin = scope.spawn(|| seeded(proxy.port(), "twin"));
                [text, prepared, twin].map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
            })
        },
        |goes_on| {
            std::thread::sleep(Duration::from_millis(500));
            for arguments in [
                ["sbtest.sbtest1", "--encrypt", "k: eq range; c:; pad:"].as_slice(),
                &["twin.sbtest1", "--encrypt", "k: eq range; c:; pad:"],
                &["sbtest.sbtest1", "--rebuild"],
                &["twin.sbtest1", "--drop", "k: eq"],
            ] {
                let arguments = [arguments, &["--drop-old"]].concat();
                let text = must_migrate(&server, Some(&proxy), &arguments);
                assert!(
                    text.contains(" 0 repaired") && !text.contains("between the lock"),
                    "{text}"
                );
                announce(text.lines().nth(1).unwrap_or_default());
                operations += u32::from(goes_on());
            }
        },
    );
    let [text, prepared, twin] = &reports;
    announce(&format!(
        "{}: {operations} migrations ended under {} + {} + {} transactions",
        kind.name(),
        text.transactions,
        prepared.transactions,
        twin.transactions
    ));
    assert!(operations >= 2, "the load ended before the migrations did");
    assert!(text.transactions > 0 && prepared.transactions > 0);
    assert_eq!(
        (twin.transactions, twin.ignored_errors),
        (u64::from(EVENTS), 0)
    );

    rows_are_those_of_a_plain_server(&proxy, &mut session);
    proxy.assert_healthy();
}

/// The sealed columns are searched as plain ones are.
fn rows_are_those_of_a_plain_server(proxy: &Proxy, session: &mut Session) {
    let mut through = proxy.connect();
    assert_eq!(session.must_fail("SELECT k FROM sbtest.sbtest1"), 1054);
    assert_eq!(session.must_fail("SELECT k FROM twin.sbtest1"), 1054);
    for sql in [
        "SELECT * FROM {}.sbtest1 ORDER BY id",
        "SELECT k, COUNT(*) FROM {}.sbtest1 GROUP BY k ORDER BY k",
        "SELECT id FROM {}.sbtest1 WHERE k BETWEEN 900 AND 1100 ORDER BY k, id",
    ] {
        let [is, should] = [(&mut through, "twin"), (&mut *session, "plain")]
            .map(|(session, database)| session.text(&sql.replace("{}", database)).unwrap());
        assert!(!should.is_empty(), "{sql}");
        assert_same_rows(&is, &should, sql);
    }
    // Every transaction puts back what it deletes.
    let rows = through
        .text("SELECT id, k, c, pad FROM sbtest.sbtest1")
        .unwrap();
    assert_eq!(rows.lines().count(), ROWS as usize);
    let mut middle = 0;
    for row in rows.lines() {
        let cells: Vec<&str> = row.split('\t').collect();
        assert!(cells[2].len() == 119 && cells[3].len() == 59, "{row}");
        let k: u32 = cells[1].parse().expect("a number");
        middle += u32::from((900..=1100).contains(&k));
    }
    let found = through.text("SELECT COUNT(*) FROM sbtest.sbtest1 WHERE k BETWEEN 900 AND 1100");
    assert_eq!(found.unwrap(), middle.to_string());
}

fn results_that_begin_with_null_are_right_while_tables_are_switched(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let mut proxy = Proxy::start(&server, "");
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY, a VARCHAR(20), b VARCHAR(20), n INT)");
    for id in 0..60 {
        // First NULL in both, then in one, then in none.
        let value = |from: i32| match id >= from {
            true => format!("'value {id}'"),
            false => "NULL".to_owned(),
        };
        session.must(&format!(
            "INSERT INTO app.t VALUES ({id}, {}, {}, {id})",
            value(20),
            value(40)
        ));
    }
    let sql = "SELECT id, a, b, n FROM app.t ORDER BY id";
    let expected = session.text(sql).unwrap();
    must_migrate(
        &server,
        Some(&proxy),
        &["app.t", "--drop-old", "--encrypt", "a: eq; b:; n: range"],
    );
    let reader = |is_text: bool| {
        let (port, expected) = (proxy.port(), &expected);
        move |goes_on: &dyn Fn() -> bool| {
            let mut through = Session::open(port, "root", "", None);
            let mut reads = 0;
            while goes_on() {
                let rows = match is_text {
                    true => through.text(sql),
                    false => through.execute_text(sql, ()),
                };
                assert_eq!(&rows.unwrap(), expected);
                reads += 1;
            }
            reads
        }
    };
    let mut reads = [0; 2];
    beside(
        || {
            for _ in 0..4 {
                must_migrate(&server, Some(&proxy), &["app.t", "--drop-old", "--rebuild"]);
            }
        },
        |goes_on| {
            // Whether it goes on is asked in this thread, so the other reader gets an answer of its
            // own.
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let other = scope.spawn(|| reader(false)(&|| !over.load(Ordering::Relaxed)));
                reads[0] = reader(true)(goes_on);
                over.store(true, Ordering::Relaxed);
                reads[1] = other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            });
        },
    );
    assert!(reads.iter().all(|&reads| reads > 10), "{reads:?}");
    proxy.assert_healthy();
}

/// Some hundred thousand row changes a second, whatever the disk: more than anybody writes again at
/// once.
fn writers_without_a_limit_do_not_put_the_end_off(kind: Kind) {
    const ROWS: u64 = 100_000;
    const EACH: u64 = 200;
    const WRITERS: u64 = 4;
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY, n INT NOT NULL, pad CHAR(60) NOT NULL)");
    for first in (0..ROWS).step_by(10_000) {
        let rows: Vec<String> = (first..first + 10_000)
            .map(|id| format!("({id}, 0, 'pad')"))
            .collect();
        session.must(&format!("INSERT INTO app.t VALUES {}", rows.join(", ")));
    }
    let over = AtomicBool::new(false);
    let statements = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for number in 0..WRITERS {
            let mut writer = server.connect();
            let (over, statements) = (&over, &statements);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(number);
                while !over.load(Ordering::Relaxed) {
                    let first = rng.random_range(0..=ROWS - EACH);
                    let update = format!(
                        "UPDATE app.t SET n = n + 1 WHERE id BETWEEN {first} AND {}",
                        first + EACH - 1
                    );
                    match writer.run(&update) {
                        Ok(_) => statements.fetch_add(1, Ordering::Relaxed),
                        // Two writers that meet take their locks in the same order; servers end one
                        // of them all the same at times.
                        Err(error) => {
                            assert_eq!(error.code, 1213, "{error:?}");
                            0
                        }
                    };
                }
            });
        }
        let ended = std::panic::catch_unwind(|| {
            std::thread::sleep(Duration::from_secs(1));
            let (begun, before) = (Instant::now(), statements.load(Ordering::Relaxed));
            let text = must_migrate(&server, None, &["app.t", "--rebuild", "--drop-old"]);
            let seconds = begun.elapsed().as_secs_f64();
            let changes = (statements.load(Ordering::Relaxed) - before) * EACH;
            announce(&format!(
                "{}: ended in {seconds:.1} s under {:.0} row changes/s, {}/s before it",
                kind.name(),
                changes as f64 / seconds,
                before * EACH
            ));
            assert!(text.contains(" 0 repaired"), "{text}");
        });
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
    let sum = session.text("SELECT SUM(n) FROM app.t").unwrap();
    let should = statements.load(Ordering::Relaxed) * EACH;
    assert_eq!(sum, should.to_string());
}

/// A client is asked once for its file, whatever becomes of the table meanwhile. What it was told
/// of the rows is so.
fn files_are_loaded_while_tables_are_switched(kind: Kind) {
    const EACH: u64 = 3;
    let Some(server) = logging_server(kind, &["--local-infile=1"]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    // it takes files for encrypted tables
    let engine = Server::start(kind, ServerOptions::default()).expect("as the first one");
    engine.connect().must("SET GLOBAL local_infile = 1");
    let scratch = format!("[scratch]\nsocket = \"{}\"\n", engine.socket().display());
    let proxy = Proxy::start(&server, &scratch);
    server.connect().must("CREATE DATABASE app");
    let mut session = proxy.connect_to("app");
    session.must("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(60) NOT NULL, note TEXT)");
    let next = AtomicU64::new(1000);
    let loads = std::sync::Mutex::new(Vec::new());
    let loader = |goes_on: &dyn Fn() -> bool| {
        let mut session = proxy.connect_to("app");
        while goes_on() {
            let first = next.fetch_add(EACH, Ordering::Relaxed);
            let asked = std::sync::Arc::new(AtomicU64::new(0));
            let counted = std::sync::Arc::clone(&asked);
            let handler = ::mysql::LocalInfileHandler::new(move |_, writer| {
                counted.fetch_add(1, Ordering::Relaxed);
                let lines: String = (first..first + EACH)
                    .map(|id| format!("{id}\tname {id}\tnote\n"))
                    .collect();
                std::io::Write::write_all(writer, lines.as_bytes())
            });
            session.conn().set_local_infile_handler(Some(handler));
            let load = "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (id, name, note)";
            let done = session.run(load);
            let asked = asked.load(Ordering::Relaxed);
            assert!(asked <= 1, "asked {asked} times: {done:?}");
            assert!(session.answers_itself(), "{done:?}");
            loads.lock().unwrap().push((first, done.map(drop)));
        }
    };
    beside(
        || {
            for _ in 0..3 {
                for change in [
                    ["--encrypt", "name: eq; note:"],
                    ["--decrypt", "name, note"],
                ] {
                    let arguments = [&["app.t", "--drop-old"][..], &change].concat();
                    let (succeeded, text) =
                        run_migration(migrate(&server, Some(&proxy), &arguments));
                    assert!(succeeded, "{text}");
                }
            }
        },
        |goes_on| {
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                // one of them is this thread
                let other = scope.spawn(|| loader(&|| !over.load(Ordering::Relaxed)));
                loader(goes_on);
                over.store(true, Ordering::Relaxed);
                other.join().expect("the loader's thread");
            });
        },
    );
    let loads = loads.into_inner().unwrap();
    let failed = loads.iter().filter(|(_, done)| done.is_err()).count();
    assert!(failed < loads.len() / 2, "{:?}", loads.last());
    announce(&format!(
        "{}: {} files, {failed} errors",
        kind.name(),
        loads.len()
    ));
    for (first, done) in loads {
        let range = format!("id BETWEEN {first} AND {}", first + EACH - 1);
        let count = session.text(&format!("SELECT COUNT(*) FROM t WHERE {range}"));
        let wanted = if done.is_ok() { EACH } else { 0 };
        assert_eq!(count, Ok(wanted.to_string()), "{first}: {done:?}");
    }
}
