//! Changes that take several statements of the proxy's.

use std::time::{Duration, Instant};

use onionskin_testkit::*;

/// Rows that no statement of the proxy's writes at once.
pub const MANY: i64 = 300;
/// Changes of all of them, in several statements of the proxy's: of plain and protected columns, by
/// the engine, of rows that the proxy picks.
pub const OF_MANY: [&str; 4] = [
    "UPDATE many SET n = n + 1, plain = plain + 1",
    "UPDATE many SET n = ABS(n) + 1, plain = plain + 1",
    "DELETE FROM many WHERE t LIKE '%x%'",
    "DELETE FROM many WHERE ABS(n) >= 0",
];

fn insert_many() -> String {
    let rows: Vec<String> = (0..MANY)
        .map(|id| format!("({id}, 1, 'ax{id}', 0)"))
        .collect();
    format!("INSERT INTO many VALUES {}", rows.join(", "))
}

fn fill_many(server: &Server, proxy: &Proxy) {
    let create = "CREATE TABLE many (id INT PRIMARY KEY, n INT ENCRYPTED FOR (range), \
                  t VARCHAR(20) ENCRYPTED FOR (), plain INT)";
    server.connect().must("CREATE DATABASE app");
    let mut session = proxy.connect_to("app");
    session.must(create);
    session.must(&insert_many());
}

/// A server, an engine and a proxy, with the rows.
pub fn with_many(kind: Kind) -> Option<(Server, Server, Proxy)> {
    if direct_mode() {
        return None;
    }
    let behind = Server::start(kind, ServerOptions::default())?;
    let beside = Server::start(kind, ServerOptions::default())?;
    let options = ProxyOptions {
        tables: format!("[scratch]\nsocket = \"{}\"\n", beside.socket().display()),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::start_with(&behind, options);
    fill_many(&behind, &proxy);
    Some((behind, beside, proxy))
}

/// How many rows a change has changed, as its own transaction sees it; `None` if the session has
/// ended.
pub fn changed_of_many(session: &mut Session) -> Option<i64> {
    let sql = "SELECT COUNT(*), COALESCE(SUM(plain), 0) FROM many";
    let seen = until_done(session, sql)?;
    let row = &seen.sets[0].rows[0];
    let number = |at: usize| -> i64 {
        let text = ::mysql::from_value::<String>(row[at].clone());
        text.parse().expect("a number")
    };
    Some(MANY - number(0) + number(1))
}

/// Runs a statement until it succeeds; `None` if the session has ended.
pub fn until_done(session: &mut Session, sql: &str) -> Option<Outcome> {
    for _ in 0..1000 {
        match session.run(sql) {
            Ok(done) => return Some(done),
            Err(error) if error.is_disconnect() => return None,
            Err(_) => {}
        }
    }
    panic!("{sql} does not succeed");
}

/// Whatever step of a change fails in a transaction of the client's, the last one or the one that
/// takes back: it has changed all that it says, or nothing, or the transaction has ended with its
/// session.
pub fn what_fails_in_the_middle_has_changed_nothing(kind: Kind) {
    // release builds have no faults
    if direct_mode() || !cfg!(debug_assertions) {
        return;
    }
    let Some(behind) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let Some(beside) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let sound = Proxy::start_with(&behind, ProxyOptions::default());
    fill_many(&behind, &sound);
    let proxy = Proxy::start_with(
        &behind,
        ProxyOptions {
            tables: format!("[scratch]\nsocket = \"{}\"\n", beside.socket().display()),
            keys: Some(sound.keys()),
            environment: vec![("ONIONSKIN_TEST_FAULTS".into(), "20261130:499".into())],
            ..ProxyOptions::default()
        },
    );
    let (mut done, mut failed, mut ended) = (0, 0, 0);
    let mut session = proxy.connect_to("app");
    for sql in OF_MANY
        .iter()
        .cycle()
        .take(if long_run() { 4000 } else { 160 })
    {
        let answer = match until_done(&mut session, "BEGIN") {
            Some(_) => session.run(sql),
            None => {
                session = proxy.connect_to("app");
                continue;
            }
        };
        let changed = changed_of_many(&mut session);
        match (answer, changed) {
            (Ok(answer), Some(changed)) => {
                assert_eq!(changed, MANY, "{sql}: {answer:?}");
                done += 1;
            }
            (Err(_), Some(changed)) => {
                assert_eq!(changed, 0, "{sql} failed");
                failed += 1;
            }
            (_, None) => ended += 1,
        }
        if changed.is_none() || until_done(&mut session, "ROLLBACK").is_none() {
            session = proxy.connect_to("app");
        }
    }
    announce(&format!(
        "{done} done, {failed} failed, {ended} sessions ended"
    ));
    assert!(done > 5 && failed > 5, "{done} done, {failed} failed");
    let rows = sound
        .connect_to("app")
        .text("SELECT COUNT(*) FROM many")
        .ok();
    assert_eq!(rows.as_deref(), Some(&*MANY.to_string()));
}

/// MySQL's `max_execution_time` bounds queries alone, so it is no bound for what a change reads
/// first, nor for what the proxy asks for itself.
pub fn a_bound_for_queries_is_none_for_changes(kind: Kind) {
    if kind == Kind::MariaDb {
        return;
    }
    let Some((behind, _beside, proxy)) = with_many(kind) else {
        return;
    };
    let mut session = proxy.connect_to("app");
    for doubled in [MANY, 2 * MANY, 4 * MANY, 8 * MANY] {
        session.must(&format!(
            "INSERT INTO many SELECT id + {doubled}, n, t, plain FROM many"
        ));
    }
    session.must("CREATE TABLE copies LIKE many");
    behind.connect().must("SET GLOBAL max_execution_time = 1");

    let mut session = proxy.connect_to("app");
    let queries = [
        "SELECT COUNT(*) FROM many a JOIN many b ON a.plain = b.plain",
        "SELECT SUM(ABS(n)) FROM many",
    ];
    for sql in queries {
        assert_eq!(session.must_fail(sql), 3024, "{sql}");
    }
    let rest = [
        "INSERT INTO copies SELECT id, ABS(n), UPPER(t), plain FROM many",
        "INSERT INTO copies SELECT id, n, t, plain FROM many ON DUPLICATE KEY UPDATE n = copies.n + 1",
        "REPLACE INTO copies SELECT id, ABS(n), t, plain FROM many",
        "UPDATE copies c JOIN many m ON ABS(c.n) = ABS(m.n) AND c.id = m.id SET c.t = UPPER(m.t)",
        "DELETE c FROM copies c JOIN many m ON c.id = m.id WHERE ABS(m.n) >= 0 AND ABS(c.n) >= 0",
    ];
    for sql in rest.iter().chain(&OF_MANY) {
        let is_all = sql.contains(" many ") && OF_MANY.contains(sql);
        if is_all {
            session.must("BEGIN");
        }
        let answer = session.run(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert!(answer.affected >= MANY as u64, "{sql}: {answer:?}");
        if is_all {
            session.must("ROLLBACK");
        }
    }
}

/// What a slow change reads is locked before it writes. Whoever waits for these rows, and a
/// definition behind him, end when the change does: it does not wait for the definition.
pub fn a_definition_in_the_middle_of_a_change_waits(kind: Kind) {
    let Some((behind, _beside, proxy)) = with_many(kind) else {
        return;
    };
    let mut session = proxy.connect_to("app");
    session.must("CREATE TABLE other (id INT PRIMARY KEY, n INT ENCRYPTED FOR (), plain INT)");
    session.must("INSERT INTO other SELECT id, 1, 0 FROM many");
    let changes = [
        "INSERT INTO many SELECT m.id + 1000, ABS(m.n), m.t, m.plain FROM many m WHERE {slow}",
        "UPDATE other o JOIN many m ON o.id = m.id AND ABS(o.n) = ABS(m.n) SET m.plain = 2 WHERE {slow}",
        "DELETE m FROM other o JOIN many m ON o.id = m.id AND ABS(o.n) = ABS(m.n) WHERE {slow}",
    ];
    for sql in changes {
        // the engine takes its time for it, and more if that was not enough
        let mut repeats = 200_000;
        while !waits_in_the_middle(&behind, &proxy, sql, repeats) {
            repeats *= 2;
            assert!(repeats < 3_000_000, "{sql} is too fast");
        }
    }
}

/// Whether the change was still at work when both others waited.
fn waits_in_the_middle(behind: &Server, proxy: &Proxy, sql: &str, repeats: u32) -> bool {
    let mut session = proxy.connect_to("app");
    session.must("DELETE FROM many");
    session.must(&insert_many());
    let slow = format!("LENGTH(SHA2(REPEAT(m.t, {repeats}), 512)) > 0 AND m.id < 200");
    let sql = sql.replace("{slow}", &slow);
    let mut looks = behind.connect();
    let mut until = |question: &str, is_over: &dyn Fn() -> bool| {
        while !is_over() {
            if looks.text(question).as_deref() != Ok("0") {
                return true;
            }
            // one that asks more often is told the same again
            std::thread::sleep(Duration::from_millis(150));
        }
        false
    };
    let held = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_rows_locked > 100";
    let waiting =
        "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
    let defining = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table metadata lock%'";
    let begun = Instant::now();
    let was_in_the_middle = std::thread::scope(|scope| {
        let change = scope.spawn(|| proxy.connect_to("app").run(&sql).map(|_| ()));
        let is_over = || change.is_finished();
        let mut all = vec![];
        let mut in_the_middle = until(held, &is_over);
        if in_the_middle {
            all.push(scope.spawn(|| {
                let sql = "UPDATE many SET plain = plain + 1 WHERE id < 5";
                proxy.connect_to("app").run(sql).map(|_| ())
            }));
            in_the_middle = until(waiting, &is_over);
        }
        if in_the_middle {
            all.push(scope.spawn(|| {
                let sql = "ALTER TABLE app.many COMMENT = 'copied', ALGORITHM = COPY";
                behind.connect().run(sql).map(|_| ())
            }));
            in_the_middle = until(defining, &is_over);
        }
        for thread in std::iter::once(change).chain(all) {
            let done = thread.join().expect("an answer");
            assert!(done.is_ok(), "{sql}: {done:?}");
        }
        in_the_middle
    });
    // a session that waits in vain does so for 50 seconds
    assert!(begun.elapsed() < Duration::from_secs(45), "{sql}");
    was_in_the_middle
}
