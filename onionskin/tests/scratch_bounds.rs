//! Changes by the scratch engine have bounds: on time, on rows and bytes of a client's file, on
//! what a time zone can say.

#[path = "scratch/findings.rs"]
mod findings;
use std::io::Write;
use std::time::{Duration, Instant};

use ::mysql::LocalInfileHandler;
use findings::Findings;
use onionskin_testkit::*;

on_both_servers!(
    changes_are_bounded_in_time,
    files_are_bounded,
    an_engine_that_dies_leaves_the_session_in_step,
    times_that_the_clock_repeats_are_not_written,
);

const TABLES: &str = "
CREATE TABLE item (id INT PRIMARY KEY, word VARCHAR(40) {eq}, n INT {}, at TIMESTAMP NULL, note VARCHAR(10))
";
const CONTENTS: &[&str] = &["SELECT id, word, n, UNIX_TIMESTAMP(at), note FROM item ORDER BY id"];

fn stage(kind: Kind, settings: &str) -> Option<Pair> {
    let mut pair = Pair::with_settings(kind, TABLES, settings)?;
    let rows: Vec<String> = (1..=40)
        .map(|n| format!("({n}, 'word {n}', {n})"))
        .collect();
    let sql = format!("INSERT INTO item (id, word, n) VALUES {}", rows.join(","));
    pair.run(&sql);
    Some(pair)
}

fn findings() -> Findings {
    Findings {
        tables: CONTENTS,
        ..Findings::default()
    }
}

fn changes_are_bounded_in_time(kind: Kind) {
    let Some(mut pair) = stage(kind, "scratch_seconds = 1") else {
        return;
    };
    let slow = "(SELECT COUNT(*) FROM item a, item b, item c, item d, item e, item f \
        WHERE CONCAT(a.word, b.word, c.word, d.word, e.word, f.word) LIKE '%y%x')";
    for sql in [
        format!("INSERT INTO item (id, word) SELECT 100, CONCAT('a', {slow}) AS word"),
        format!("DELETE FROM item WHERE LENGTH(word) < {slow}"),
    ] {
        let begin = Instant::now();
        match pair.protected.run(&sql) {
            Err(failure) if failure.message.starts_with("OS1209") => {
                assert!(begin.elapsed() > Duration::from_millis(900), "{sql}");
            }
            // MySQL has no table twice in a statement that changes it
            other => {
                let failure = other.expect_err(&sql);
                assert!(
                    sql.starts_with("DELETE") && failure.message.starts_with("OS1"),
                    "{failure}"
                );
            }
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{sql}");
    }
    // the engine works on nothing that nobody waits for
    let mut engine = pair.engine().connect();
    let busy = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%CONCAT(%' AND id <> CONNECTION_ID()";
    let end = Instant::now() + Duration::from_secs(10);
    while engine.text(busy).expect("processes") != "0" {
        assert!(Instant::now() < end, "the statement goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut findings = findings();
    findings.contents(&mut pair, "the bound");
    findings.both_ways(
        &mut pair,
        "UPDATE item SET word = UPPER(word) WHERE id = 3",
        &[],
    );
    findings.conclude(&mut pair, 0);
}

fn gives(
    session: &mut Session,
    write: impl FnMut(&mut dyn Write) -> std::io::Result<()> + Send + 'static,
) {
    let write = std::sync::Mutex::new(write);
    let handler = LocalInfileHandler::new(move |_, writer| {
        let mut write = write.lock().expect("the only one");
        write(writer)
    });
    session.conn().set_local_infile_handler(Some(handler));
}

fn allow_files(pair: &Pair) {
    for server in [&pair.behind, pair.engine()] {
        server.connect().must("SET GLOBAL local_infile = 1");
    }
}

const LOAD: &str = "LOAD DATA LOCAL INFILE 'x' INTO TABLE item FIELDS TERMINATED BY ',' (id, word)";

fn files_are_bounded(kind: Kind) {
    let settings = "scratch_rows = 60\nscratch_memory = 1048576";
    let Some(mut pair) = stage(kind, settings) else {
        return;
    };
    allow_files(&pair);
    for (lines, width) in [(100, 50), (4000, 300)] {
        gives(&mut pair.protected, move |writer| {
            let mut line = |n: usize| writeln!(writer, "{},{}", n + 1000, "w".repeat(width));
            (0..lines).try_for_each(&mut line)
        });
        let failure = pair.protected.run(LOAD).expect_err("a large file");
        assert!(failure.message.starts_with("OS1209"), "{failure}");
        let loaded = "SELECT COUNT(*) FROM item WHERE id >= 1000";
        assert_eq!(pair.protected.text(loaded).expect("rows"), "0");
        gives(&mut pair.protected, move |writer| {
            writeln!(writer, "{width},few")
        });
        pair.protected.must(LOAD);
        let word = format!("SELECT word FROM item WHERE id = {width}");
        assert_eq!(pair.protected.text(&word).expect("a word"), "few");
    }
}

fn an_engine_that_dies_leaves_the_session_in_step(kind: Kind) {
    let Some(mut pair) = stage(kind, "") else {
        return;
    };
    allow_files(&pair);
    // one that looks like a command to whoever has lost the thread
    let engine = pair.engine().pid().to_string();
    gives(&mut pair.protected, move |writer| {
        for n in 0..20_000 {
            writeln!(writer, "{},{}", n + 1000, "w".repeat(30))?;
            if n == 5_000 {
                writer.flush()?;
                let killed = std::process::Command::new("kill")
                    .args(["-9", &engine])
                    .status()?;
                assert!(killed.success());
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        Ok(())
    });
    let failure = pair.protected.run(LOAD).expect_err("a dead engine");
    assert!(failure.message.starts_with("OS1208"), "{failure}");
    let mut findings = findings();
    findings.contents(&mut pair, "the engine's end");
    findings.run(
        &mut pair,
        "INSERT INTO item (id, word) VALUES (600, 'x')",
        None,
    );
    findings.contents(&mut pair, "an insert");
    findings.conclude(&mut pair, 0);
}

fn times_that_the_clock_repeats_are_not_written(kind: Kind) {
    let Some(mut pair) = stage(kind, "") else {
        return;
    };
    for server in [pair.beside(), &pair.behind, pair.engine()] {
        let mut root = server.connect();
        for sql in [
            "INSERT INTO mysql.time_zone VALUES (900, 'N')",
            "INSERT INTO mysql.time_zone_name VALUES ('Europe/Berlin', 900)",
            "INSERT INTO mysql.time_zone_transition_type VALUES (900, 0, 3600, 0, 'CET'), (900, 1, 7200, 1, 'CEST')",
            "INSERT INTO mysql.time_zone_transition VALUES (900, 1679792400, 1), (900, 1698541200, 0), (900, 1711846800, 1), (900, 1729990800, 0)",
        ] {
            root.must(sql);
        }
    }
    pair.run("SET time_zone = '+00:00'");
    pair.run("UPDATE item SET at = '2024-10-27 00:30:00' WHERE id = 1");
    pair.run("UPDATE item SET at = '2024-10-27 01:30:00' WHERE id = 2");
    pair.run("UPDATE item SET at = '2024-10-26 12:00:00' WHERE id = 3");
    pair.run("SET time_zone = 'Europe/Berlin'");
    for sql in [
        "INSERT INTO item (id, word, at) SELECT id + 200, CONCAT(word, '!'), at FROM item WHERE id = 1",
        "INSERT INTO item (id, word, at) SELECT id + 200, CONCAT(word, '!'), at FROM item WHERE id = 2",
        "UPDATE item SET word = CONCAT(word, '!'), at = at + INTERVAL 12 HOUR + INTERVAL 30 MINUTE WHERE id = 3",
        "INSERT INTO item (id, word) VALUES (3, 'x') ON DUPLICATE KEY UPDATE word = CONCAT(word, '!'), at = '2024-10-27 02:30:00'",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(
            failure.message.contains("a time that the clock repeats"),
            "{sql}: {failure}"
        );
    }
    let mut findings = findings();
    findings.contents(&mut pair, "refusals");
    for sql in [
        "INSERT INTO item (id, word, at) SELECT id + 200, CONCAT(word, '!'), at FROM item WHERE id = 3",
        "UPDATE item SET word = CONCAT(word, '!'), at = at + INTERVAL 1 HOUR WHERE id = 3",
        "INSERT INTO item (id, word) VALUES (3, 'x') ON DUPLICATE KEY UPDATE word = CONCAT(word, '!'), at = at + INTERVAL 1 DAY",
    ] {
        findings.both_ways(&mut pair, sql, &[]);
    }
    findings.conclude(&mut pair, 0);
}
