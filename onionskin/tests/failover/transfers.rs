//! Money moves between accounts while the primary changes again and again: none is made, none is
//! lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::*;

const ACCOUNTS: u64 = 8;
const EACH: u64 = 1000;

/// A transfer in one transaction. Whoever fails connects again.
fn transfer(members: &Members, done: &AtomicU64, over: &AtomicBool, seed: u64) {
    let mut session: Option<Session> = None;
    let mut n = seed;
    while !over.load(Ordering::SeqCst) {
        n = n
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let (from, to) = ((n >> 33) % ACCOUNTS, (n >> 41) % ACCOUNTS);
        let Some(open) = session.as_mut() else {
            session = members.app().ok();
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        if from == to {
            continue;
        }
        let mut steps = || -> Result<(), Failure> {
            open.run("BEGIN")?;
            for (sign, id) in [("-", from.min(to)), ("+", from.max(to))] {
                open.execute(
                    &format!("UPDATE transfers SET amount = amount {sign} 1 WHERE id = ?"),
                    (id,),
                )?;
            }
            open.run("COMMIT")?;
            Ok(())
        };
        match steps() {
            Ok(()) => drop(done.fetch_add(1, Ordering::SeqCst)),
            // a deadlock ends the transaction and not the session
            Err(failure) if failure.code == 1213 || failure.code == 1205 => {}
            Err(_) => session = None,
        }
    }
}

pub fn sums_stay_over_switchovers_and_kills(kind: Kind) {
    let Some(members) = Members::start(
        kind,
        2,
        "interval_seconds = 0.2\ntimeout_seconds = 1\ndrain_seconds = 1\n",
        "",
    ) else {
        return;
    };
    let mut root = members.proxy.connect();
    root.must("CREATE TABLE bank.transfers (id INT PRIMARY KEY, owner VARCHAR(20) ENCRYPTED FOR (eq), amount INT ENCRYPTED FOR ())");
    for id in 0..ACCOUNTS {
        root.must(&format!(
            "INSERT INTO bank.transfers VALUES ({id}, 'owner {id}', {EACH})"
        ));
    }
    members.wait_for_replicas(0);
    let (done, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut members = members;
    let rounds = if long_run() { 12 } else { 2 };
    for round in 0..rounds {
        let (old, new) = (round % 2, (round + 1) % 2);
        over.store(false, Ordering::SeqCst);
        let begun = done.load(Ordering::SeqCst);
        thread::scope(|scope| {
            let (members, done, over) = (&members, &done, &over);
            for seed in 0..3 {
                scope.spawn(move || transfer(members, done, over, seed + 1));
            }
            wait_until("transfers are made", SOON, || {
                done.load(Ordering::SeqCst) > begun + 20
            });
            if round % 2 == 0 {
                // a switchover in order: nothing that was acknowledged is lost
                demote(&members.servers[old]);
                members.wait_for_replicas(old);
                promote(&members.servers[new]);
            } else {
                // killed in the middle of it all
                signal("KILL", members.servers[old].pid());
                thread::sleep(Duration::from_millis(200));
                promote(&members.servers[new]);
            }
            let begun = done.load(Ordering::SeqCst);
            wait_until("transfers are made at the other one", SOON, || {
                done.load(Ordering::SeqCst) > begun + 20
            });
            over.store(true, Ordering::SeqCst);
        });
        let mut session = members.app_soon();
        assert_eq!(members.at(&mut session), new);
        let sum = session.text("SELECT amount FROM transfers").expect("rows");
        let amounts: Vec<i64> = sum.lines().map(|n| n.parse().expect("a number")).collect();
        assert_eq!(
            amounts.iter().sum::<i64>(),
            (ACCOUNTS * EACH) as i64,
            "round {round}: {amounts:?}"
        );
        // the old one becomes a replica of the new one, from where that stands
        if round % 2 == 1 {
            members.servers[old].kill9();
            members.servers[old].restart();
        }
        rebuild(&members.servers[old], &members.servers[new]);
        members.wait_for_replicas(new);
    }
    members.proxy.assert_healthy();
    assert!(done.load(Ordering::SeqCst) > 40);
}

/// Has a server take over another one's table, and follow it. What it had beyond that is lost, as
/// asynchronous replication loses it.
fn rebuild(server: &Server, source: &Server) {
    let mut from = source.connect();
    let mut to = server.connect();
    match server.kind() {
        Kind::MariaDb => to.must("STOP ALL SLAVES"),
        Kind::MySql => to.must("STOP REPLICA"),
    };
    to.must("SET sql_log_bin = 0");
    from.must("FLUSH TABLES WITH READ LOCK");
    let position = position(source);
    let rows = from
        .text("SELECT id, HEX(`owner$enc`), HEX(`amount$enc`) FROM bank.transfers")
        .expect("cells");
    let companions = from
        .text("SELECT column_name FROM information_schema.columns WHERE table_schema = 'bank' AND table_name = 'transfers' ORDER BY ordinal_position")
        .expect("columns");
    let columns: Vec<&str> = companions.lines().collect();
    let hex: Vec<String> = columns
        .iter()
        .map(|name| format!("HEX(`{name}`)"))
        .collect();
    let all = from
        .text(&format!("SELECT {} FROM bank.transfers", hex.join(", ")))
        .expect("cells");
    assert_eq!(rows.lines().count(), all.lines().count());
    to.must("DELETE FROM bank.transfers");
    let ids = from.text("SELECT id FROM bank.transfers").expect("ids");
    for (id, row) in ids.lines().zip(all.lines()) {
        let cells = columns
            .iter()
            .zip(row.split('\t'))
            .map(|(name, cell)| match *name {
                "id" => id.to_owned(),
                _ => format!("x'{cell}'"),
            });
        let cells: Vec<String> = cells.collect();
        let names: Vec<String> = columns.iter().map(|name| format!("`{name}`")).collect();
        to.must(&format!(
            "INSERT INTO bank.transfers ({}) VALUES ({})",
            names.join(", "),
            cells.join(", ")
        ));
    }
    to.must("DELETE FROM test_mark.mark");
    from.must("UNLOCK TABLES");
    follow_from(server, source, &position);
}
