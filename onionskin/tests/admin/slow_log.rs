//! Slow statements are in the log, with their shape and never with a value, and not with more lines
//! than there may be.

use std::fs;
use std::time::Instant;

use ::mysql::prelude::Queryable;

use super::SOON;
use crate::on_both_servers;
use onionskin_testkit::*;

on_both_servers!(
    slow_statements_are_logged_without_values,
    a_flood_of_them_is_not,
);

/// Stands in statements, and not in the log.
const SECRET: &str = "Rumpelstilzchen";

fn stage(kind: Kind, settings: &str) -> Option<(Server, Proxy, Session)> {
    if direct_mode() {
        return None;
    }
    let server = Server::start(kind, ServerOptions::default())?;
    let options = ProxyOptions {
        settings: format!("control = \"control.sock\"\n{settings}"),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::start_with(&server, options);
    let mut session = proxy.connect();
    session.must("CREATE DATABASE app");
    session.must("USE app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, s TEXT ENCRYPTED FOR ())");
    session.must("INSERT INTO t VALUES (1, 'Rumpelstilzchen')");
    Some((server, proxy, session))
}

fn lines(proxy: &Proxy) -> Vec<String> {
    let log = proxy.log();
    assert!(!log.contains(SECRET), "{log}");
    let slow = log.lines().filter(|line| line.contains("slow statement"));
    slow.map(str::to_owned).collect()
}

/// The line about the next statement that is slow.
fn next_line(proxy: &Proxy, before: usize, sql: &str) -> String {
    wait_until(&format!("a line for {sql}"), SOON, || {
        lines(proxy).len() > before
    });
    let now = lines(proxy);
    assert_eq!(now.len(), before + 1, "{sql}: {now:#?}");
    now[before].clone()
}

fn slow_statements_are_logged_without_values(kind: Kind) {
    let Some((_server, proxy, mut session)) = stage(kind, "slow_seconds = 0.25") else {
        return;
    };
    session.must("SELECT 'Rumpelstilzchen', id FROM t");
    assert_eq!(lines(&proxy).len(), 0);
    let texts = [
        ("SELECT SLEEP(0.3), 'Rumpelstilzchen'", "SLEEP"),
        (
            "SELECT SLEEP(0.3) /* Rumpelstilzchen */ -- Rumpelstilzchen",
            "SLEEP",
        ),
        ("SELECT SLEEP(0.3) /*! , 'Rumpelstilzchen' */", "SLEEP"),
        (
            "SELECT SLEEP(0.3), _utf8mb4'Rumpelstilzchen', N'Rumpelstilzchen'",
            "SLEEP",
        ),
        (
            "SELECT id, SLEEP(0.3), 'Rumpelstilzchen' FROM t ORDER BY s",
            "tier=\"2\"",
        ),
        ("SELECT SLEEP(0.3); SELECT 'Rumpelstilzchen'", "several"),
        (
            "SET @a = 'SELECT SLEEP(0.3), ''Rumpelstilzchen''', @b = SLEEP(0.3)",
            "SET",
        ),
        (
            "PREPARE p FROM 'SELECT SLEEP(0.3), ''Rumpelstilzchen'', ?'",
            "",
        ),
        ("EXECUTE p USING @a", "EXECUTE"),
        // read by one mode, and told under another
        (
            "SET @b = \"Rumpelstilzchen\", sql_mode = IF(SLEEP(0.3), '', 'ANSI_QUOTES')",
            "cannot be read",
        ),
        ("SET sql_mode = ''", ""),
        ("SET NAMES gbk", ""),
        ("SELECT SLEEP(0.3), 'Rumpelstilzchen'", "SLEEP"),
        ("SET NAMES utf8mb4", ""),
    ];
    for (sql, expected) in texts {
        let before = lines(&proxy).len();
        session.run(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        if !expected.is_empty() {
            let line = next_line(&proxy, before, sql);
            assert!(line.contains(expected), "{sql}: {line}");
            assert!(
                line.contains("server=0.") && line.contains("bytes="),
                "{line}"
            );
        }
    }
    let before = lines(&proxy).len();
    let prepared = session
        .conn()
        .prep("SELECT SLEEP(0.3), ?, 'Rumpelstilzchen'");
    let prepared = prepared.expect("prepared");
    session
        .conn()
        .exec_drop(&prepared, (SECRET,))
        .expect("done");
    next_line(&proxy, before, "a prepared statement");
    // nobody reads it but the server
    let failed = session.run("SELECT SLEEP(0.3), 'Rumpelstilzchen");
    assert!(failed.is_err());
    lines(&proxy);
}

fn a_flood_of_them_is_not(kind: Kind) {
    let Some((_server, proxy, mut session)) = stage(kind, "slow_seconds = 20") else {
        return;
    };
    session.must("SELECT SLEEP(0.01)");
    assert_eq!(lines(&proxy).len(), 0);
    let file = proxy.folder().join("onionskin.toml");
    let config = fs::read_to_string(&file).expect("a configuration");
    let other = config.replace("slow_seconds = 20", "slow_seconds = 0.001\nslow_lines = 2");
    fs::write(&file, other).expect("written");
    let (is_done, said) = proxy.command(&["reload"]);
    assert!(is_done && said.contains("slow_seconds"), "{said}");
    let begin = Instant::now();
    while begin.elapsed().as_millis() < 2500 {
        session.must("SELECT SLEEP(0.01)");
    }
    let seconds = begin.elapsed().as_secs() + 2;
    let lines = lines(&proxy);
    assert!(
        (2..=seconds as usize * 2).contains(&lines.len()),
        "{lines:#?}"
    );
    let tells = |line: &String| !line.contains("left_out=0 ");
    assert!(lines.iter().any(tells), "{lines:#?}");
}
