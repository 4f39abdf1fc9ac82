//! Archives with gaps, and servers that have forgotten.

use super::*;

pub fn gaps_are_named(kind: Kind) {
    let Some(scenery) = Scenery::build(kind, &[]) else {
        return;
    };
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY)");
    scenery.must(&["archive", "--to", "log", "--once"]);
    for id in 0..3 {
        session.must(&format!("INSERT INTO app.t VALUES ({id})"));
        session.must("FLUSH BINARY LOGS");
    }
    scenery.must(&["archive", "--to", "log", "--once"]);
    scenery.must(&["archive", "--to", "log", "--list"]);

    segments_that_are_gone_or_exchanged_are_named(&scenery);
    only_what_is_old_is_pruned(kind, &scenery, &mut session);
    a_server_that_has_forgotten_is_named(kind, &scenery, &mut session);
    another_server_is_named(kind, &scenery);
}

/// A segment that is gone, and one under another's name.
fn segments_that_are_gone_or_exchanged_are_named(scenery: &Scenery) {
    let segments = scenery.segments();
    let hidden = scenery.data("hidden");
    fs::rename(&segments[1], &hidden).expect("hidden");
    scenery.fails(&["archive", "--to", "log", "--list"], 3, "has a gap");
    fs::copy(&segments[2], &segments[1]).expect("a copy");
    scenery.fails(&["archive", "--to", "log", "--list"], 3, "is not a segment");
    fs::rename(&hidden, &segments[1]).expect("back");
    scenery.must(&["archive", "--to", "log", "--list"]);
}

/// Nothing is an hour old; what a session's clock says is two hours old goes, without a gap.
fn only_what_is_old_is_pruned(kind: Kind, scenery: &Scenery, session: &mut Session) {
    let kept = scenery.must(&["archive", "--to", "log", "--keep", "1h"]);
    let all = scenery.segments().len();
    assert_eq!(kept.trim(), format!("{all} of {all} segments stay"));
    scenery.fails(
        &["archive", "--to", "log", "--keep", "daily=7"],
        2,
        "write 12h",
    );
    session.must("CREATE TABLE app.old (id INT PRIMARY KEY)");
    if kind == Kind::MariaDb {
        session.must("FLUSH BINARY LOGS");
        let place = format!("{}:4", latest(session));
        session.must("SET timestamp = UNIX_TIMESTAMP() - 7200");
        session.must("INSERT INTO app.old VALUES (1)");
        session.must("FLUSH BINARY LOGS");
        session.must("SET timestamp = DEFAULT");
        session.must("INSERT INTO app.old VALUES (2)");
        session.must("FLUSH BINARY LOGS");
        let aged = [
            "archive",
            "--to",
            "hours",
            "--once",
            "--from",
            place.as_str(),
        ];
        scenery.must(&aged);
        let all = scenery
            .must(&["archive", "--to", "hours", "--list"])
            .lines()
            .count();
        let dry = scenery.must(&["archive", "--to", "hours", "--keep", "1h", "--dry-run"]);
        assert_eq!(dry.lines().count(), 2, "{dry}");
        let pruned = scenery.must(&["archive", "--to", "hours", "--keep", "1h"]);
        assert_eq!(pruned, dry);
        let left = scenery.must(&["archive", "--to", "hours", "--list"]);
        assert_eq!(left.lines().count(), all - 1, "{left}");
        // archiving goes on
        session.must("INSERT INTO app.old VALUES (3)");
        scenery.must(&["archive", "--to", "hours", "--once"]);
        scenery.must(&["archive", "--to", "hours", "--list"]);
    }
}

/// The server forgets what was not archived, and begins anew.
fn a_server_that_has_forgotten_is_named(kind: Kind, scenery: &Scenery, session: &mut Session) {
    session.must("INSERT INTO app.t VALUES (10)");
    session.must("FLUSH BINARY LOGS");
    session.must("FLUSH BINARY LOGS");
    let now = session
        .text("SHOW MASTER STATUS")
        .or_else(|_| session.text("SHOW BINARY LOG STATUS"))
        .expect("a position");
    let file = now.split('\t').next().expect("a file").to_owned();
    // A stream that has just ended may still hold a file.
    wait_until("purging", Duration::from_secs(20), || {
        session.must(&format!("PURGE BINARY LOGS TO '{file}'"));
        session
            .text("SHOW BINARY LOGS")
            .expect("files")
            .lines()
            .count()
            == 1
    });
    scenery.fails(&["archive", "--to", "log", "--once"], 4, "would have a gap");

    let reset = match kind {
        Kind::MariaDb => "RESET MASTER",
        Kind::MySql => "RESET BINARY LOGS AND GTIDS",
    };
    scenery.must(&[
        "archive",
        "--to",
        "other",
        "--once",
        "--from",
        &format!("{file}:4"),
    ]);
    session.must(reset);
    for _ in 0..9 {
        session.must("FLUSH BINARY LOGS");
    }
    let output = scenery.run(&["archive", "--to", "other", "--once"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
}

fn another_server_is_named(kind: Kind, scenery: &Scenery) {
    let other = Server::start(
        kind,
        ServerOptions {
            binlog: Some(Binlog::Row),
            extra: vec!["--server-id=77".into()],
            ..ServerOptions::default()
        },
    )
    .expect("the same kind");
    if kind == Kind::MySql {
        // The template's UUID is everybody's.
        return;
    }
    let toml = fs::read_to_string(scenery.data("onionskin.toml")).expect("a configuration");
    let (old, new) = (scenery.server.socket(), other.socket());
    let toml = toml.replace(old.to_str().expect("UTF-8"), new.to_str().expect("UTF-8"));
    fs::write(scenery.data("onionskin.toml"), toml).expect("written");
    scenery.fails(&["archive", "--to", "log", "--once"], 2, "another server");
}
