//! How much faster a selective pattern is found by grams than by opening all rows, and what grams
//! cost in rows and on disk.
//!
//! `ONIONSKIN_LIKE_ROWS` says how many rows (20,000; a million with `ONIONSKIN_TEST_LONG`). From a
//! million rows on, the index must be at least 20 times faster.

use crate::soundness::in_force;
use crate::{GRAM_COLUMN, GRAM_INDEX};
use ::mysql::prelude::Queryable;
use ::mysql::{Conn, OptsBuilder};
use onionskin_testkit::*;
use std::time::Instant;

const SYLLABLES: [&str; 24] = [
    "ka", "lo", "mi", "ren", "tas", "vor", "ul", "es", "bri", "no", "dal", "wen", "ix", "po", "hu",
    "gan", "ster", "el", "ma", "qui", "jor", "fy", "ze", "cor",
];

/// A name of four to seven syllables, whose grams are common, and a code of eight letters and
/// digits, whose grams are rare.
fn name(n: usize) -> String {
    let mut state = (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(99);
        (state >> 33) as usize % below
    };
    let mut text = String::new();
    for syllable in 0..4 + next(4) {
        if syllable == 3 {
            text.push(' ');
        }
        text += SYLLABLES[next(SYLLABLES.len())];
    }
    let code: String = (0..8)
        .map(|_| char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[next(36)]))
        .collect();
    format!("{text} {code}")
}

/// The shortest time of some, and the answer.
fn fastest(session: &mut Session, query: &str, rounds: usize) -> (f64, String) {
    let mut best = f64::MAX;
    let mut found = String::new();
    for _ in 0..rounds {
        let start = Instant::now();
        found = session.text(query).unwrap();
        best = best.min(start.elapsed().as_secs_f64());
    }
    (best, found)
}

pub fn selective_patterns_do_not_open_all_rows(kind: Kind) {
    let rows = match std::env::var("ONIONSKIN_LIKE_ROWS") {
        Ok(rows) => rows.parse().expect("a number"),
        Err(_) if long_run() => 1_000_000,
        Err(_) => 20_000,
    };
    let create = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(60) {like}) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci";
    let Some(mut pair) = Pair::on_one_server(kind, create, "like_index = true\n") else {
        return;
    };
    let index = pair.behind.connect().text(GRAM_INDEX).unwrap();
    let column = pair.behind.connect().text(GRAM_COLUMN).unwrap();
    // an index is built faster than it is filled
    pair.behind
        .connect()
        .must(&format!("DROP INDEX `{index}` ON app.t"));
    let start = Instant::now();
    let mut at = 0;
    while at < rows {
        let end = (at + 1000).min(rows);
        let values: Vec<String> = (at..end).map(|n| format!("({n}, '{}')", name(n))).collect();
        pair.protected
            .must(&format!("INSERT INTO t VALUES {}", values.join(",")));
        at = end;
    }
    let loaded = start.elapsed();
    // the code without its ends, and two syllables of the name
    let wanted = name(rows / 2);
    let (common, code) = wanted.rsplit_once(' ').expect("a code");
    let search = |part: &str| format!("SELECT id FROM t WHERE name LIKE '%{part}%' ORDER BY id");
    let (query, broad) = (search(&code[1..7]), search(&common[..6]));
    let (opening, expected) = fastest(&mut pair.protected, &query, 2);
    let start = Instant::now();
    // a session of the tests waits for a minute at most
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(pair.behind.port())
        .user(Some("root"));
    let mut patient = Conn::new(options).expect("a session");
    let definition = match kind {
        Kind::MariaDb => format!("FULLTEXT KEY `{index}` (`{column}`)"),
        Kind::MySql => format!("KEY `{index}` ((CAST(`{column}` AS UNSIGNED ARRAY)))"),
    };
    patient
        .query_drop(format!("ALTER TABLE app.t ADD {definition}"))
        .expect("an index");
    let built = start.elapsed();
    let (searching, found) = fastest(&mut pair.protected, &query, 3);
    let (searching_common, _) = fastest(&mut pair.protected, &broad, 2);
    assert_eq!(found, expected, "{query}");
    match kind {
        Kind::MySql => in_force(&mut pair, &query),
        Kind::MariaDb => assert!(super::touched(&mut pair, &query) < 100),
    }
    assert!(
        found.lines().any(|id| id == (rows / 2).to_string()),
        "{query}: {found}"
    );
    let sizes = pair
        .behind.connect()
        .text(&format!("SELECT AVG(LENGTH(`name$enc`)), AVG(LENGTH(`{column}`)), AVG(LENGTH(`name$enc`) - 35) FROM app.t"))
        .unwrap();
    let mut disk = [0, 0];
    for file in std::fs::read_dir(pair.behind.data_dir().join("app")).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().to_string_lossy().to_ascii_lowercase();
        disk[usize::from(name.starts_with("fts_"))] += file.metadata().unwrap().len() >> 20;
    }
    if kind == Kind::MySql {
        let pages = "SELECT stat_value * @@innodb_page_size DIV 1048576 FROM mysql.innodb_index_stats \
             WHERE database_name = 'app' AND stat_name = 'size' AND index_name LIKE 'onionskin%'";
        pair.behind.connect().must("ANALYZE TABLE app.t");
        disk[1] = pair.behind.connect().text(pages).unwrap().parse().unwrap();
        disk[0] -= disk[1];
    }
    let ratio = opening / searching;
    announce(&format!(
        "{}: LIKE on {rows} rows: opening all {opening:.3} s, by grams {searching:.4} s, {ratio:.0} times faster, common grams {searching_common:.4} s; {} rows found; \
         loaded in {:.0} s, index built in {:.0} s; bytes a row (cell, grams, text): {sizes}; MiB on disk: table {}, index {}",
        kind.name(),
        found.lines().count(),
        loaded.as_secs_f64(),
        built.as_secs_f64(),
        disk[0],
        disk[1],
    ));
    assert!(rows < 1_000_000 || ratio >= 20.0, "{ratio:.1} times faster");
}
