//! The primary changes: by a switchover, by a kill, by the loss of its network.

use super::*;

/// Sessions that are idle end at once, those in a transaction with it, and new ones go to the new
/// primary. Between the two nobody is let in.
pub fn a_switchover_moves_sessions(kind: Kind) {
    let Some(members) = Members::start(kind, 2, "drain_seconds = 8\n", "") else {
        return;
    };
    members.table();
    let mut idle = members.app_soon();
    let mut busy = members.app_soon();
    assert_eq!(members.at(&mut idle), 0);
    busy.must("BEGIN");
    busy.must("SELECT * FROM account WHERE owner = 'ada'");
    demote(&members.servers[0]);
    let why = members.closed_soon();
    assert!(
        why.contains("none of them is a primary that answers"),
        "{why}"
    );
    assert!(get(members.admin, "/ready").contains("503"));
    // the transaction goes on, and only that
    assert_eq!(
        busy.text("SELECT amount FROM account WHERE owner = 'ada'")
            .expect("an answer"),
        "100"
    );
    let failure = idle.run("SELECT 1").expect_err("it has ended");
    assert!(
        failure.is_disconnect() || failure.code == DEMOTED,
        "{failure}"
    );
    // each statement of a text is one of its own: nothing runs behind the end of the transaction
    let failure = busy
        .run("COMMIT; SELECT 1")
        .expect_err("it ends behind COMMIT");
    assert_eq!(failure.code, DEMOTED, "{failure}");
    assert!(failure.message.contains("OS1217"), "{failure}");
    assert!(busy.run("SELECT 1").is_err());
    promote(&members.servers[1]);
    let mut after = members.app_soon_at(1);
    after.must("UPDATE account SET amount = 7 WHERE owner = 'ada'");
    assert_eq!(
        after
            .text("SELECT amount FROM account WHERE id = 1")
            .expect("an answer"),
        "7"
    );
    let log = members.proxy.log();
    assert!(
        log.contains("is no longer the primary") && log.matches("the primary is").count() == 2,
        "{log}"
    );
    assert!(get(members.admin, "/ready").contains("200 OK"));
    let metrics = get(members.admin, "/metrics");
    assert!(
        metrics.contains("onionskin_primary_changes_total 2"),
        "{metrics}"
    );
    let second = members.cables[1].address();
    assert!(
        metrics.contains(&format!(
            "onionskin_member_primary{{member=\"{second}\"}} 1"
        )),
        "{metrics}"
    );
}

/// A transaction at a server that is no longer the primary is ended when its time is over, be it
/// idle or in a statement; and what comes then is not run.
pub fn a_transaction_is_bounded(kind: Kind) {
    let Some(members) = Members::start(kind, 2, HASTY, "") else {
        return;
    };
    members.table();
    let mut open = members.app_soon();
    open.must("BEGIN");
    open.must("UPDATE account SET amount = 1 WHERE id = 2");
    let mut sleeper = members.app_soon();
    let slept = std::thread::spawn(move || {
        let begin = Instant::now();
        let answer = sleeper.run("SELECT SLEEP(30), owner FROM account WHERE id = 1");
        (answer, begin.elapsed())
    });
    std::thread::sleep(Duration::from_millis(300));
    // a statement of its own, which no transaction bounds
    demote(&members.servers[0]);
    promote(&members.servers[1]);
    let mut after = members.app_soon_at(1);
    let (answer, took) = slept.join().expect("no panic");
    assert!(answer.is_err_and(|failure| failure.is_disconnect()));
    assert!(took < Duration::from_secs(8), "{took:?}");
    std::thread::sleep(Duration::from_secs(1));
    let failure = open
        .run("UPDATE account SET amount = 2 WHERE id = 2")
        .expect_err("too late");
    assert!(
        failure.is_disconnect() || failure.code == DEMOTED,
        "{failure}"
    );
    for server in &members.servers {
        let mut root = server.connect();
        wait_until("the transaction is rolled back", SOON, || {
            let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app' AND command <> 'Query'";
            let expected = usize::from(server.port() == members.servers[1].port());
            root.text(sql).expect("a count") == expected.to_string()
        });
    }
    assert_eq!(
        after
            .text("SELECT amount FROM account WHERE id = 2")
            .expect("an answer"),
        "100"
    );
    assert!(
        members.proxy.log().contains("were cut off"),
        "{}",
        members.proxy.log()
    );
}

/// Whoever is wrong: nobody is let in until one of them has gone back. Those who are in go on.
pub fn two_primaries_are_none(kind: Kind) {
    let Some(members) = Members::start(kind, 2, HASTY, "") else {
        return;
    };
    members.table();
    let mut before = members.app_soon();
    promote(&members.servers[1]);
    let why = members.closed_soon();
    assert!(
        why.contains("two of them say that they are the primary"),
        "{why}"
    );
    // clients are not told names
    assert!(!why.contains("127.0.0.1"), "{why}");
    before.must("UPDATE account SET amount = 9 WHERE id = 1");
    assert_eq!(members.at(&mut before), 0);
    let ready = get(members.admin, "/ready");
    assert!(
        ready.contains("503") && ready.contains("two of them"),
        "{ready}"
    );
    assert!(
        members
            .proxy
            .log()
            .contains("no member can take new sessions: two of them")
    );
    demote(&members.servers[1]);
    let mut after = members.app_soon();
    assert_eq!(members.at(&mut after), 0);
    // the same term: nobody has been ended
    before.must("SELECT 1");
}

/// A primary that is killed takes its sessions along. The replica is promoted, and the old one
/// comes back as a replica, and later as the primary.
pub fn a_killed_primary_comes_back_as_a_replica(kind: Kind) {
    let Some(mut members) = Members::start(kind, 2, "interval_seconds = 0.5\n", "") else {
        return;
    };
    members.table();
    let mut session = members.app_soon();
    session.must("UPDATE account SET amount = 50 WHERE id = 1");
    members.wait_for_replicas(0);
    members.servers[0].kill9();
    let failure = session.run("SELECT 1").expect_err("its server is gone");
    assert!(failure.is_disconnect(), "{failure}");
    let begin = Instant::now();
    members.closed_soon();
    // the end of the monitor's connection says so at once
    assert!(
        begin.elapsed() < Duration::from_secs(3),
        "{:?}",
        begin.elapsed()
    );
    let from = position(&members.servers[1]);
    promote(&members.servers[1]);
    let mut after = members.app_soon_at(1);
    after.must("UPDATE account SET amount = 60 WHERE id = 1");
    // it starts read-only
    members.servers[0].restart();
    follow_from(&members.servers[0], &members.servers[1], &from);
    members.wait_for_replicas(1);
    after.must("UPDATE account SET amount = 60 WHERE id = 1");
    assert_eq!(members.at(&mut members.app_soon()), 1);
    wait_until("it is told of as a replica", SOON, || {
        let told = status(&members.proxy);
        let first = &told["members"][0];
        let state = first["state"].as_str().unwrap_or_default();
        first["up"] == true && first["primary"] == false && state.contains("read_only is on")
    });
    demote(&members.servers[1]);
    promote(&members.servers[0]);
    let mut back = members.app_soon_at(0);
    assert_eq!(
        back.text("SELECT amount FROM account WHERE id = 1")
            .expect("an answer"),
        "60"
    );
    assert!(after.run("SELECT 1").is_err());
}

/// Of a primary whose network is gone nobody hears anything. New clients are told so, those that
/// wait for an answer are cut off after a while, and with another primary all is well. Should the
/// first one be there again, and think that nothing has happened, there are two.
pub fn a_frozen_primary_holds_nobody_up(kind: Kind) {
    let Some(members) = Members::start(kind, 2, HASTY, "") else {
        return;
    };
    members.table();
    members.wait_for_replicas(0);
    let mut waits = members.app_soon();
    members.cables[0].freeze(true);
    let waiting = std::thread::spawn(move || {
        let begin = Instant::now();
        let answer = waits.run("SELECT * FROM account");
        (answer.is_err(), begin.elapsed())
    });
    // whoever logs in before it is noticed is not held up for all of login_seconds
    let begin = Instant::now();
    let early = members.app();
    assert!(
        early.is_err() && begin.elapsed() < Duration::from_secs(4),
        "{:?}",
        begin.elapsed()
    );
    members.closed_soon();
    let begin = Instant::now();
    assert!(members.app().is_err() && begin.elapsed() < Duration::from_secs(1));
    promote(&members.servers[1]);
    let mut after = members.app_soon_at(1);
    let (has_failed, took) = waiting.join().expect("no panic");
    // 0.5 + 1 until it is lost, 2 until sessions are ended
    assert!(has_failed && took < Duration::from_secs(8), "{took:?}");
    members.cables[0].freeze(false);
    let why = members.closed_soon();
    assert!(why.contains("two of them"), "{why}");
    after.must("UPDATE account SET amount = 3 WHERE id = 3");
    demote(&members.servers[0]);
    members.app_soon_at(1);
}

/// A primary that is slow for a while, and not for longer than its sessions are left alone, is the
/// same one afterwards.
pub fn a_slow_primary_keeps_its_sessions(kind: Kind) {
    let health = "interval_seconds = 0.5\ntimeout_seconds = 1\ndrain_seconds = 20\n";
    let Some(members) = Members::start(kind, 2, health, "") else {
        return;
    };
    members.table();
    let mut session = members.app_soon();
    session.must("BEGIN");
    session.must("UPDATE account SET amount = 5 WHERE id = 1");
    members.cables[0].freeze(true);
    let why = members.closed_soon();
    assert!(
        why.contains("none of them is a primary that answers"),
        "{why}"
    );
    members.cables[0].freeze(false);
    assert_eq!(members.at(&mut members.app_soon()), 0);
    session.must("UPDATE account SET amount = 6 WHERE id = 1");
    session.must("COMMIT");
    session.must("SELECT 1");
    assert_eq!(members.proxy.log().matches("the primary is").count(), 1);
}

/// The new primary is behind: it has a table of another definition, and lacks one. What an account
/// knew of the first server's tables is not believed of the second one's.
pub fn nothing_known_of_tables_goes_over(kind: Kind) {
    let tables = "[protect.\"bank.*\"]\nsecret = [\"eq\"]\nenforce = true\n";
    let Some(members) = Members::start(kind, 2, HASTY, tables) else {
        return;
    };
    members.table();
    let mut root = members.servers[1].connect();
    match kind {
        Kind::MariaDb => root.must("STOP ALL SLAVES"),
        Kind::MySql => root.must("STOP REPLICA"),
    };
    // what was made and used at the first one: protected, and plaintext there
    let mut session = members.app_soon();
    session.must("CREATE TABLE letters (id INT PRIMARY KEY, secret VARCHAR(20))");
    session.must("CREATE TABLE notes (id INT PRIMARY KEY, note VARCHAR(20))");
    session.must("INSERT INTO letters VALUES (1, 'first')");
    session.must("INSERT INTO notes VALUES (1, 'plain')");
    // and is the other way round at the second one
    root.must("CREATE TABLE bank.letters (id INT PRIMARY KEY, secret VARCHAR(20))");
    demote(&members.servers[0]);
    promote(&members.servers[1]);
    let mut after = members.app_soon_at(1);
    let failure = after
        .run("INSERT INTO letters VALUES (2, 'canary')")
        .expect_err("it is plaintext there");
    assert!(failure.message.contains("OS1108"), "{failure}");
    assert_eq!(
        after.must_fail("INSERT INTO notes VALUES (2, 'canary')"),
        1146
    );
    assert_eq!(
        root.text("SELECT COUNT(*) FROM bank.letters")
            .expect("a count"),
        "0"
    );
    after.must("CREATE TABLE notes (id INT PRIMARY KEY, note VARCHAR(20), secret VARCHAR(20))");
    after.must("INSERT INTO notes VALUES (2, 'plain', 'hidden')");
    let text = after
        .text("SELECT note, secret FROM notes WHERE secret = 'hidden'")
        .expect("a row");
    assert_eq!(text, "plain\thidden");
}
