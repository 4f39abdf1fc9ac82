//! What statements take of the proxy that it finishes itself is bounded: memory over all sessions,
//! rows, seconds. However they end, they hold nothing afterwards.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::{SOON, ask};
use crate::on_both_servers;
use onionskin_testkit::*;

on_both_servers!(
    all_sessions_share_their_memory,
    rows_are_bounded,
    seconds_are_bounded,
    nothing_is_held_after_a_kill,
);

/// Rows of a table, of so many characters that they cannot wait at the server for company.
const ROWS: usize = 16;
const WIDTH: usize = 32 << 10;
/// Its rows come one by one, and are kept until there are all.
const SLOW: &str = "SELECT id, SLEEP(0.1) FROM app.t ORDER BY s";

fn stage(kind: Kind, settings: &str) -> Option<(Pair, u16)> {
    let port = free_port();
    let settings = format!("admin = \"127.0.0.1:{port}\"\ncontrol = \"control.sock\"\n{settings}");
    let options = PairOptions {
        tables: &["CREATE TABLE t (id INT PRIMARY KEY, k INT {}, s MEDIUMTEXT {})"],
        settings: &settings,
        on_one_server: true,
        ..PairOptions::default()
    };
    let mut pair = Pair::start_with(kind, options)?;
    for id in 1..=ROWS {
        let text = "w".repeat(WIDTH);
        pair.protected
            .must(&format!("INSERT INTO t VALUES ({id}, {id}, '{text}{id}')"));
    }
    Some((pair, port))
}

fn sample(port: u16, name: &str) -> u64 {
    let text = ask(port, "GET", "/metrics", "").body;
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let value = value.unwrap_or_else(|| panic!("{name} in {text}"));
    value.parse().expect("a number")
}

fn held(port: u16) -> u64 {
    sample(port, "onionskin_finish_memory_bytes")
}

fn refused(port: u16, code: &str) -> u64 {
    sample(
        port,
        &format!("onionskin_refusals_total{{code=\"{code}\"}}"),
    )
}

fn until_nothing_is_held(port: u16) {
    wait_until("nothing is held", SOON, || held(port) == 0);
}

fn all_sessions_share_their_memory(kind: Kind) {
    let Some((mut pair, port)) = stage(kind, "finish_memory = 1048576") else {
        return;
    };
    let sessions: Vec<_> = (0..4).map(|_| pair.proxy.connect()).collect();
    let ends = sessions.into_iter().map(|mut session| {
        thread::spawn(move || {
            let done = session.run(SLOW).map(|_| ());
            // whichever way it went
            assert_eq!(session.text("SELECT COUNT(*) FROM app.t"), Ok("16".into()));
            done
        })
    });
    let ends: Vec<_> = ends.collect();
    wait_until("something is held", SOON, || held(port) > 0);
    // All four may fail: what each holds already is room that the others lack.
    let ends = ends.into_iter().map(|end| end.join().expect("no panic"));
    let failed: Vec<_> = ends.filter_map(Result::err).collect();
    assert!(!failed.is_empty(), "there is no room for four");
    for failure in &failed {
        assert!(failure.message.starts_with("OS1211"), "{failure}");
        assert_eq!((failure.code, &*failure.state), (1038, "HY001"));
    }
    assert_eq!(refused(port, "OS1211"), failed.len() as u64);
    until_nothing_is_held(port);
    pair.protected.must(SLOW);
    assert_eq!(held(port), 0);
}

fn rows_are_bounded(kind: Kind) {
    let Some((mut pair, port)) = stage(kind, "finish_rows = 10") else {
        return;
    };
    let texts = [
        "SELECT id FROM t ORDER BY s",
        "SELECT s, COUNT(*) FROM t GROUP BY s",
        "SELECT id FROM t WHERE s LIKE '%w1'",
        "UPDATE t SET k = k + 1",
        "DELETE FROM t WHERE s LIKE '%1%'",
    ];
    for sql in texts {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1212"), "{sql}: {failure}");
        assert_eq!(pair.protected.text("SELECT 1"), Ok("1".into()));
        assert_eq!(held(port), 0);
    }
    assert_eq!(refused(port, "OS1212"), texts.len() as u64);
    let few = "SELECT COUNT(*) FROM t WHERE id < 9";
    assert_eq!(pair.protected.text(few), Ok("8".into()));
    pair.protected
        .must("SELECT id FROM t WHERE id < 9 ORDER BY s");
    pair.protected.must("UPDATE t SET k = k + 1 WHERE id < 9");

    let file = pair.proxy.folder().join("onionskin.toml");
    let config = fs::read_to_string(&file).expect("a configuration");
    fs::write(
        &file,
        config.replace("finish_rows = 10", "finish_rows = 100"),
    )
    .expect("written");
    let (is_done, said) = pair.proxy.command(&["reload"]);
    assert!(is_done && said.contains("finish_rows: 10 → 100"), "{said}");
    for sql in texts {
        pair.protected.must(sql);
    }
}

fn seconds_are_bounded(kind: Kind) {
    let Some((mut pair, port)) = stage(kind, "finish_seconds = 1") else {
        return;
    };
    let begin = Instant::now();
    let slow = "SELECT id, SLEEP(0.3) FROM t ORDER BY s";
    let failure = pair.protected.run(slow).expect_err("a slow one");
    assert!(failure.message.starts_with("OS1213"), "{failure}");
    assert!(begin.elapsed() > Duration::from_millis(900));
    assert_eq!(pair.protected.text("SELECT 1"), Ok("1".into()));
    pair.protected.must("SELECT id FROM t ORDER BY s");
    assert_eq!((held(port), refused(port, "OS1213")), (0, 1));
}

fn nothing_is_held_after_a_kill(kind: Kind) {
    let Some((pair, port)) = stage(kind, "") else {
        return;
    };
    let something_is_held = || wait_until("something is held", SOON, || held(port) > 0);

    let mut client = RawClient::login(pair.proxy.port());
    client.command(3, SLOW.as_bytes());
    something_is_held();
    drop(client);
    until_nothing_is_held(port);

    let mut root = pair.behind.connect();
    for how in ["QUERY", "CONNECTION"] {
        let mut session = pair.proxy.connect();
        let id = session.text("SELECT CONNECTION_ID()").expect("a number");
        let ends = thread::spawn(move || session.run(SLOW).map(|_| ()));
        something_is_held();
        root.must(&format!("KILL {how} {id}"));
        // MySQL's SLEEP() may only be cut short
        let done = ends.join().expect("no panic");
        assert!(done.is_err() || how == "QUERY", "{how}");
        until_nothing_is_held(port);
    }
}
