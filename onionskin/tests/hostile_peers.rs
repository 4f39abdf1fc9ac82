//! Peers that lie: a server, a scratch engine, a client. The generators print their seeds;
//! `ONIONSKIN_SEED` runs one again.
//!
//! Whatever a peer says, the proxy neither panics nor hangs nor grows, it sends no value to the
//! server, and what it returns of a protected column was stored there.

use ::mysql::Value;
use onionskin_testkit::*;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

on_both_servers!(
    a_lying_server_gets_no_value_and_makes_none,
    a_lying_engine_gets_nothing_to_the_server,
    a_lying_client_harms_nobody_else,
);

/// In every text that the client stores: never to be seen by the server.
const WORD: &str = "zanzibar";
const TABLE: &str = "CREATE TABLE cu (id INT PRIMARY KEY, name VARCHAR(40) {eq}, n INT {range}, note VARCHAR(60) {})";
/// Which table is protected is the server's to say, unless this side says so.
const ENFORCED: &str =
    "[protect.\"app.cu\"]\nenforce = true\nname = [\"eq\"]\nn = [\"range\"]\nnote = []\n";
/// Kilobytes that a proxy may have taken at most, whatever lengths a peer names.
const MEMORY_KIB: u64 = 700 << 10;

fn seed() -> u64 {
    match std::env::var("ONIONSKIN_SEED") {
        Ok(seed) => seed.parse().expect("a number"),
        // each night another one
        Err(_) if long_run() => u64::from(std::process::id()) << 20 | 20_261_123,
        Err(_) => 20_261_123,
    }
}

/// Rows of two protected texts; each text is another.
fn fill(session: &mut Session) {
    for id in 1..=20 {
        let values = format!("({id}, '{WORD} name {id}', {id}, '{WORD} note {id}')");
        session.must(&format!("INSERT INTO cu VALUES {values}"));
    }
}

/// What a client of the lying server asks.
const QUESTIONS: &[&str] = &[
    "SELECT name, note FROM cu",
    "SELECT name FROM cu WHERE id = 7",
    "SELECT name, note FROM cu WHERE name = 'zanzibar name 3'",
    "SELECT name FROM cu WHERE n > 5 ORDER BY n LIMIT 3",
    "SELECT note, name FROM cu ORDER BY note",
    "SELECT DISTINCT note FROM cu",
    "SELECT name FROM cu WHERE note LIKE '%note 1%'",
    "SELECT name FROM cu UNION SELECT name FROM cu",
    "INSERT INTO cu VALUES (21, 'zanzibar name 21', 21, 'zanzibar note 21')",
    "UPDATE cu SET note = 'zanzibar note 4' WHERE id = 4",
    "UPDATE cu SET n = n + 0 WHERE id = 5",
    "UPDATE cu SET note = 'zanzibar note 6' WHERE note = 'zanzibar note 6'",
    "DELETE FROM cu WHERE note = 'zanzibar note 21'",
    "INSERT INTO cu VALUES (1, 'zanzibar name 1', 1, 'zanzibar note 1') ON DUPLICATE KEY UPDATE note = 'zanzibar note 1'",
    "REPLACE INTO cu VALUES (2, 'zanzibar name 2', 2, 'zanzibar note 2')",
    "SHOW CREATE TABLE cu",
];

/// The largest resident size that a process has had.
fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn check_process(proxy: &mut Proxy) {
    proxy.assert_healthy();
    let peak = proxy.pid().and_then(peak_kib).unwrap_or_default();
    assert!(peak < MEMORY_KIB, "{peak} KiB");
}

fn assert_told_nothing(bytes: &[u8], to_whom: &str) {
    let found = find_all(&Pattern::of_text(WORD), bytes);
    assert!(found.is_empty(), "{to_whom} has got values: {found:?}");
}

fn rounds(short: usize) -> usize {
    if long_run() { short * 50 } else { short }
}

fn a_lying_server_gets_no_value_and_makes_none(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let seed = seed();
    announce(&format!("ONIONSKIN_SEED={seed}"));
    let liar = Liar::tcp(seed, server.port());
    let mut proxy = Proxy::start_with(
        &server,
        ProxyOptions {
            backend: Some(liar.address()),
            settings: "backend_tls = \"never\"\n".into(),
            tables: ENFORCED.into(),
            ..ProxyOptions::default()
        },
    );
    proxy.connect().must("CREATE DATABASE app");
    let mut session = proxy.connect_to("app");
    let (definition, _) = with_and_without_protection(TABLE);
    session.must(&definition);
    fill(&mut session);
    let texts = |what: &str| -> BTreeSet<String> {
        (1..=21).map(|id| format!("{WORD} {what} {id}")).collect()
    };
    let (names, notes) = (texts("name"), texts("note"));
    let (mut answered, mut failed) = (0, 0);
    for (n, sql) in QUESTIONS
        .iter()
        .cycle()
        .take(rounds(20) * QUESTIONS.len())
        .enumerate()
    {
        liar.lie([5, 20, 80][n % 3]);
        session.is_lied_to();
        let done = match n % 2 {
            0 => session.run(sql),
            _ => session.execute(sql, ()),
        };
        liar.lie(0);
        match done {
            Ok(outcome) => {
                answered += 1;
                for set in &outcome.sets {
                    for row in &set.rows {
                        for ((column, ..), value) in set.columns.iter().zip(row) {
                            let stored = match column.as_str() {
                                "name" => &names,
                                "note" => &notes,
                                _ => continue,
                            };
                            if let Value::Bytes(bytes) = value {
                                let text = String::from_utf8_lossy(bytes).into_owned();
                                assert!(stored.contains(&text), "{sql}\n{column} = {text:?}");
                            }
                        }
                    }
                }
            }
            Err(_) => failed += 1,
        }
        // who was lied to begins again
        session = loop {
            match Session::try_open(proxy.port(), "root", "", Some("app")) {
                Ok(session) => break session,
                Err(_) => check_process(&mut proxy),
            }
        };
    }
    check_process(&mut proxy);
    assert_told_nothing(&liar.sent_to_server(), "the server");
    assert!(liar.lies() > 50, "{} lies", liar.lies());
    announce(&format!(
        "{} lies; {answered} answers, {failed} errors",
        liar.lies()
    ));
}

fn a_lying_engine_gets_nothing_to_the_server(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let Some(beside) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let seed = seed();
    announce(&format!("ONIONSKIN_SEED={seed}"));
    let record = Relay::start(server.port());
    let folder = tempfile::tempdir_in("/tmp").expect("a folder");
    let socket = folder.path().join("engine.sock");
    let liar = Liar::unix(seed, &socket, &beside.socket());
    let mut proxy = Proxy::start_with(
        &server,
        ProxyOptions {
            backend: Some(record.address()),
            settings: "backend_tls = \"never\"\n".into(),
            tables: format!("[scratch]\nsocket = \"{}\"\n", socket.display()),
            ..ProxyOptions::default()
        },
    );
    proxy.connect().must("CREATE DATABASE app");
    let mut session = proxy.connect_to("app");
    let (definition, _) = with_and_without_protection(TABLE);
    session.must(&definition);
    fill(&mut session);
    let questions = [
        "SELECT CONCAT(name, '!') FROM cu",
        "SELECT UPPER(note), n + 1 FROM cu WHERE CHAR_LENGTH(name) > 3",
        "UPDATE cu SET note = CONCAT(note, '') WHERE id < 5",
        "UPDATE cu SET note = CONCAT('zanzibar note ', id) WHERE UPPER(name) LIKE '%1'",
        "INSERT INTO cu SELECT id + 100, CONCAT(name, 'x'), n, note FROM cu WHERE id < 3",
        "DELETE FROM cu WHERE UPPER(name) LIKE '%X'",
        "INSERT INTO cu VALUES (1, 'zanzibar name 1', 1, 'zanzibar') ON DUPLICATE KEY UPDATE note = CONCAT(note, '')",
        "SELECT a.name FROM cu a JOIN cu b ON UPPER(a.note) = UPPER(b.note)",
    ];
    let (mut answered, mut failed) = (0, 0);
    for (n, sql) in questions
        .iter()
        .cycle()
        .take(rounds(15) * questions.len())
        .enumerate()
    {
        liar.lie([10, 40][n % 2]);
        match session.run(sql) {
            Ok(_) => answered += 1,
            Err(failure) => {
                failed += 1;
                if failure.is_disconnect() {
                    session = proxy.connect_to("app");
                }
            }
        }
        // the session at the server is in step, whatever the engine has said
        if !session.answers_itself() {
            session = proxy.connect_to("app");
        }
    }
    check_process(&mut proxy);
    assert_told_nothing(&record.sent_to_server(), "the server");
    assert!(liar.lies() > 50, "{} lies", liar.lies());
    announce(&format!(
        "{} lies; {answered} answers, {failed} errors",
        liar.lies()
    ));
}

/// Random commands, half packets and packets in the wrong order, before login and after.
fn a_lying_client_harms_nobody_else(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(mut stage) = Pair::start(kind, &[TABLE]) else {
        return;
    };
    fill(&mut stage.protected);
    let seed = seed();
    announce(&format!("ONIONSKIN_SEED={seed}"));
    let mut state = seed;
    let mut random = move |bound: usize| -> usize {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound.max(1) as u64) as usize
    };
    let texts = [
        "SELECT name FROM cu",
        "SELECT name FROM cu WHERE name = ? AND n < ?",
        "INSERT INTO cu (id, name) VALUES (?, ?)",
        "UPDATE cu SET note = ? WHERE id = ?",
        "SELECT 1; SELECT name FROM cu; SELECT",
    ];
    let started = Instant::now();
    for round in 0..rounds(60) {
        let logs_in = round % 4 != 0;
        let mut client = match logs_in {
            true => RawClient::login(stage.proxy.port()),
            false => RawClient::connect(stage.proxy.port()),
        };
        if logs_in {
            client.send(&packet(0, b"\x02app"));
        }
        for _ in 0..1 + random(12) {
            let code = match random(3) {
                0 => random(256) as u8,
                _ => [3, 22, 23, 24, 25, 26, 28, 4, 17, 27, 31, 14][random(12)],
            };
            let mut payload = vec![code];
            match random(3) {
                0 => payload.extend_from_slice(texts[random(texts.len())].as_bytes()),
                1 => payload.extend((0..random(60)).map(|_| random(256) as u8)),
                // a statement's id, flags, iterations, and what it calls its parameters
                _ => {
                    payload.extend([1 + random(3) as u8, 0, 0, 0, random(3) as u8, 1, 0, 0, 0]);
                    payload.extend((0..random(30)).map(|_| random(256) as u8));
                }
            }
            let mut bytes = packet(if random(8) == 0 { random(256) as u8 } else { 0 }, &payload);
            match random(10) {
                0 => bytes.truncate(random(bytes.len())),
                1 => bytes[random(3)] = random(256) as u8,
                _ => {}
            }
            client.send(&bytes);
        }
        if random(2) == 0 {
            client.finish_sending();
            assert!(
                client.closes(),
                "the proxy keeps a client that has said its last"
            );
        }
        drop(client);
        let found = stage
            .protected
            .must("SELECT name FROM cu WHERE id = 7")
            .text();
        assert!(found.starts_with(WORD) || found.is_empty(), "{found}");
    }
    check_process(&mut stage.proxy);
    assert!(started.elapsed() < Duration::from_secs(if long_run() { 1800 } else { 120 }));
}
