//! Reads from replicas while servers come and go.

use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;

/// Without a replica the primary is read from; where that is not wanted, nobody is let in.
pub fn without_a_replica_sessions_read_from_the_primary(kind: Kind) {
    let Some(mut members) = Members::reading(kind, 2, "causal_seconds = 2") else {
        return;
    };
    members.table();
    members.reader_soon_at(&[1]);
    members.servers[1].kill9();
    let mut session = members.reader_soon_at(&[0]);
    // it does not wait there for what it has itself
    let mut writer = members.app_soon();
    for amount in 1..100 {
        writer.must(&format!(
            "UPDATE account SET amount = {amount} WHERE id = 1"
        ));
        let read = session.text("SELECT amount FROM account WHERE id = 1");
        assert_eq!(read.expect("rows"), amount.to_string());
    }
    assert_eq!(session.must_fail("UPDATE account SET amount = 1"), 1792);
    members.servers[1].restart();
    let at_replica = members.reader_soon_at(&[1]);
    drop(at_replica);

    let file = members.proxy.folder().join("onionskin.toml");
    let text = fs::read_to_string(&file).expect("the configuration");
    let refusing = text.replace("[reads]", "[reads]\nwithout_replica = \"refuse\"");
    fs::write(&file, refusing).expect("written");
    let (done, said) = members.proxy.command(&["reload", "-c", "onionskin.toml"]);
    assert!(done, "{said}");
    let mut reader = members.reader_soon_at(&[1]);
    applies(&members.servers[1], false);
    let begin = Instant::now();
    let failure = loop {
        match members.reader() {
            // a login under way is cut off with another error
            Err(failure) if failure.message.contains("OS1218") => break failure,
            _ => assert!(begin.elapsed() < SOON, "{}", members.proxy.log()),
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(failure.code, NONE, "{failure}");
    assert!(failure.message.contains("near enough"), "{failure}");
    assert!(!failure.message.contains("127.0.0.1"), "{failure}");
    wait_until("the session has ended", SOON, || {
        reader.run("SELECT 1").is_err()
    });
    // sessions of listen have nothing to do with that
    writer.must("SELECT 1");
    members.app().expect("let in");
    assert!(get(members.admin, "/ready").contains("200 OK"));
    let (_, said) = members.proxy.command(&["check", "-c", "onionskin.toml"]);
    assert!(said.contains("not read from: it does not apply"), "{said}");
    members.proxy.assert_healthy();
}

/// Three servers, readers all the time. The primary is killed and a replica promoted: that one is
/// left, the other one is read from, and what was written last is read.
pub fn readers_stay_over_a_failover(kind: Kind) {
    let Some(mut members) = Members::reading(kind, 3, "causal_seconds = 5\nmax_lag_seconds = 5")
    else {
        return;
    };
    members.table();
    let mut at_both = [members.reader_soon_at(&[1]), members.reader_soon_at(&[2])];
    for reader in &mut at_both {
        reader.must("SELECT * FROM account");
    }
    let mut writer = members.app_soon();
    writer.must("UPDATE account SET amount = 41 WHERE id = 1");
    members.wait_for_replicas(0);
    let over = AtomicBool::new(false);
    let read = AtomicU64::new(0);
    let port = members.read;
    thread::scope(|scope| {
        let reading = || {
            let mut session: Option<Session> = None;
            while !over.load(Ordering::SeqCst) {
                session = match session.take() {
                    None => Session::try_open(port, APP, PASSWORD, Some("bank")).ok(),
                    Some(mut open) => {
                        let answer = open.text("SELECT amount FROM account WHERE owner = 'ada'");
                        if let Ok(amount) = &answer {
                            assert!(["41", "42"].contains(&amount.as_str()), "{amount}");
                            read.fetch_add(1, Ordering::SeqCst);
                        }
                        answer.is_ok().then_some(open)
                    }
                };
                thread::sleep(Duration::from_millis(5));
            }
        };
        let threads = [scope.spawn(reading), scope.spawn(reading)];
        wait_until("rows are read", SOON, || read.load(Ordering::SeqCst) > 20);
        members.servers[0].kill9();
        thread::sleep(Duration::from_millis(300));
        // the operator's work: one is promoted, and the other one follows it
        promote(&members.servers[1]);
        match kind {
            Kind::MariaDb => members.servers[2]
                .connect()
                .must("STOP SLAVE; RESET SLAVE ALL"),
            Kind::MySql => members.servers[2]
                .connect()
                .must("STOP REPLICA; RESET REPLICA ALL"),
        };
        follow_by_gtids(&members.servers[2], &members.servers[1]);
        let mut writer = members.app_soon_at(1);
        writer.must("UPDATE account SET amount = 42 WHERE id = 1");
        let mut reader = members.reader_soon_at(&[2]);
        let amount = reader.text("SELECT amount FROM account WHERE owner = 'ada'");
        assert_eq!(amount.expect("rows"), "42");
        let before = read.load(Ordering::SeqCst);
        wait_until("rows are read again", SOON, || {
            read.load(Ordering::SeqCst) > before + 20
        });
        over.store(true, Ordering::SeqCst);
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
    assert_eq!(members.told(1)["reads"], false);
    assert_eq!(members.told(2)["reads"], true);
    wait_until("the new primary's reader has gone", SOON, || {
        at_both[0].run("SELECT 1").is_err()
    });
}

/// A replica that answers nothing any more holds a statement no longer than the configured times,
/// and one that is slow is told of.
pub fn a_frozen_replica_holds_nobody_up(kind: Kind) {
    let Some(members) = Members::reading(kind, 2, "causal_seconds = 1\nmax_lag_seconds = 60")
    else {
        return;
    };
    members.table();
    let mut reader = members.reader_soon_at(&[1]);
    reader.must("SELECT * FROM account");
    // it is slow, and says so
    let mut root = members.servers[1].connect();
    root.must("LOCK TABLES bank.account READ");
    let mut writer = members.app_soon();
    writer.must("UPDATE account SET amount = 1 WHERE id = 1");
    let begin = Instant::now();
    let failure = reader.run("SELECT amount FROM account").expect_err("late");
    assert_eq!(failure.code, 1205, "{failure}");
    assert!(failure.message.contains("OS1221"), "{failure}");
    let took = begin.elapsed();
    assert!(took > Duration::from_millis(900), "{took:?}");
    assert!(took < Duration::from_millis(2500), "{took:?}");
    // the session goes on, and what reads no rows is not waited for
    reader.must("SET @a = 1");
    root.must("UNLOCK TABLES");
    wait_until("it has caught up", SOON, || {
        reader
            .text("SELECT amount FROM account WHERE id = 1")
            .is_ok_and(|read| read == "1")
    });
    let metrics = get(members.admin, "/metrics");
    let late = "onionskin_causal_waits_total{outcome=\"late\"} ";
    assert!(metrics.contains(late), "{metrics}");
    assert!(!metrics.contains(&format!("{late}0")), "{metrics}");

    // it is gone without a word
    let mut other = members.reader_soon_at(&[1]);
    writer.must("UPDATE account SET amount = 2 WHERE id = 1");
    members.cables[1].freeze(true);
    let begin = Instant::now();
    assert!(reader.run("SELECT amount FROM account").is_err());
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(4), "the wait itself: {took:?}");
    // HASTY: 0.5 + 1 + 2 seconds
    assert!(other.run("SELECT SLEEP(0)").is_err());
    assert!(
        begin.elapsed() < Duration::from_secs(8),
        "{:?}",
        begin.elapsed()
    );
    let mut fallen = members.reader_soon_at(&[0]);
    let read = fallen.text("SELECT amount FROM account WHERE id = 1");
    assert_eq!(read.expect("rows"), "2");
    members.cables[1].freeze(false);
    members.reader_soon_at(&[1]);
}
