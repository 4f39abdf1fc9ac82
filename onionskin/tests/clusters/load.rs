//! Money moves and counters rise through three proxies at once, while a node is killed and comes
//! back.

use super::guarded::{CONTROL, Guarded, Over, OverIfPanicking, SECRET, SOON};
use onionskin_testkit::*;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const ACCOUNTS: u64 = 6;
const EACH: i64 = 1000;
const COUNTERS: usize = 4;

/// What is known of a counter: additions that were acknowledged, and those of which it is not known
/// whether they were done.
#[derive(Default)]
struct Counter {
    done: AtomicI64,
    unclear: AtomicI64,
}

#[derive(Default)]
struct Load {
    over: AtomicBool,
    transfers: AtomicU64,
    conflicts: AtomicU64,
    counters: [Counter; COUNTERS],
    upserts: [Counter; COUNTERS],
}

/// An error after which nothing was done.
fn is_conflict(failure: &Failure) -> bool {
    [1213, 1205, 1180, 3101, 3100].contains(&failure.code)
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

impl Load {
    /// Statements at one node until the load is over. Whoever loses the connection connects again.
    fn run(&self, port: u16, seed: u64) {
        let mut random = Random(seed);
        let mut session: Option<Session> = None;
        while !self.over.load(Ordering::SeqCst) {
            let Some(open) = session.as_mut() else {
                session = Session::try_open(port, "root", "", Some("app")).ok();
                thread::sleep(Duration::from_millis(20));
                continue;
            };
            let stays = match random.below(4) {
                0 => self.count(open, &mut random),
                1 => self.upsert(open, &mut random),
                _ => self.transfer(open, &mut random),
            };
            if !stays && let Some(lost) = session.take() {
                // its connection is gone, and has nothing to answer
                std::mem::forget(lost);
            }
        }
    }

    fn transfer(&self, session: &mut Session, random: &mut Random) -> bool {
        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
        if from == to {
            return true;
        }
        let steps = match random.below(4) {
            0 => vec![
                format!("UPDATE bank SET amount = amount - 1 WHERE id = {from}"),
                format!("UPDATE bank SET amount = amount + 1, at = NOW() WHERE id = {to}"),
            ],
            1 => vec![
                format!("UPDATE bank SET amount = amount - 1 WHERE owner = '{SECRET} {from}'"),
                format!("UPDATE bank SET amount = amount + 1 WHERE owner = '{SECRET} {to}'"),
            ],
            2 => vec![
                format!(
                    "UPDATE bank SET amount = LEAST(amount - 1, 99999) WHERE owner = '{SECRET} {from}'"
                ),
                format!("UPDATE bank SET amount = GREATEST(amount + 1, -99999) WHERE id = {to}"),
            ],
            _ => vec![format!(
                "UPDATE bank SET amount = amount + CASE WHEN id = {from} THEN -1 ELSE 1 END WHERE id IN ({from}, {to})"
            )],
        };
        let mut done = || -> Result<(), Failure> {
            session.run("BEGIN")?;
            for sql in &steps {
                let done = session.run(sql)?;
                assert!(done.affected > 0, "{sql}");
            }
            session.run("COMMIT").map(|_| ())
        };
        match done() {
            Ok(()) => drop(self.transfers.fetch_add(1, Ordering::SeqCst)),
            // it has ended the transaction
            Err(failure) if is_conflict(&failure) && failure.code != 1205 => {
                self.conflicts.fetch_add(1, Ordering::SeqCst);
            }
            Err(failure) => {
                assert!(
                    !failure.message.starts_with("OS1") || is_loss(&failure),
                    "{failure}"
                );
                return session.run("ROLLBACK").is_ok();
            }
        }
        true
    }

    fn count(&self, session: &mut Session, random: &mut Random) -> bool {
        let place = random.below(COUNTERS as u64) as usize;
        let sql = match random.below(3) {
            0 => format!("UPDATE counter SET k = k + 1 WHERE id = {place}"),
            1 => format!("UPDATE counter SET k = k + 1 WHERE k + 0 >= 0 AND id = {place}"),
            _ => format!("UPDATE counter SET k = ABS(k) + 1 WHERE id = {place}"),
        };
        self.counters[place].noted(&session.run(&sql), 1)
    }

    fn upsert(&self, session: &mut Session, random: &mut Random) -> bool {
        let place = random.below(COUNTERS as u64) as usize;
        let sql = format!(
            "INSERT INTO upsert VALUES ({place}, 1, '{SECRET} {place}') ON DUPLICATE KEY UPDATE k = k + 1"
        );
        self.upserts[place].noted(&session.run(&sql), 2)
    }
}

/// The server is gone, or is not in its cluster.
fn is_loss(failure: &Failure) -> bool {
    failure.is_disconnect() || [1047, 1053, 1290, 1927, 2013, 3100].contains(&failure.code)
}

impl Counter {
    /// Takes over what an addition of one came to. `false`: the session is lost.
    fn noted(&self, done: &Result<Outcome, Failure>, most: u64) -> bool {
        match done {
            Ok(done) => {
                assert!((1..=most).contains(&done.affected), "{done:?}");
                self.done.fetch_add(1, Ordering::SeqCst);
                true
            }
            Err(failure) if is_conflict(failure) => true,
            Err(failure) => {
                self.unclear.fetch_add(1, Ordering::SeqCst);
                let (known, lost) = (is_loss(failure), failure.is_disconnect());
                assert!(known || !failure.message.starts_with("OS1"), "{failure}");
                !lost
            }
        }
    }

    fn holds(&self, k: i64) {
        let (done, unclear) = (
            self.done.load(Ordering::SeqCst),
            self.unclear.load(Ordering::SeqCst),
        );
        let possible = done..=done + unclear;
        assert!(possible.contains(&k), "{k} is not of {possible:?}");
    }
}

pub fn with_a_node_killed(guarded: &mut Guarded) {
    let boss = guarded.writers()[0];
    let mut session = guarded.at(boss);
    session.must(
        "CREATE TABLE bank (id INT PRIMARY KEY, amount INT ENCRYPTED FOR (range), owner VARCHAR(20) ENCRYPTED FOR (eq), \
         at TIMESTAMP NULL ENCRYPTED FOR (), open VARCHAR(20))",
    );
    session.must("CREATE TABLE counter (id INT PRIMARY KEY, k INT ENCRYPTED FOR (eq))");
    session.must(
        "CREATE TABLE upsert (id INT PRIMARY KEY, k INT ENCRYPTED FOR (range), name VARCHAR(20) ENCRYPTED FOR (eq))",
    );
    for id in 0..ACCOUNTS {
        session.must(&format!(
            "INSERT INTO bank VALUES ({id}, {EACH}, '{SECRET} {id}', NOW(), '{CONTROL}')"
        ));
    }
    for id in 0..COUNTERS {
        session.must(&format!("INSERT INTO counter VALUES ({id}, 0)"));
    }
    guarded.settle_tables();
    let load = Load::default();
    let rounds = if long_run() { 6 } else { 1 };
    for round in 0..rounds {
        // of a group with one primary, a node that is not written to; its primary is killed
        // elsewhere
        let writers = guarded.writers();
        let victim = (writers[0] + 1 + round % 2) % 3;
        load.over.store(false, Ordering::SeqCst);
        let begun = load.transfers.load(Ordering::SeqCst);
        thread::scope(|scope| {
            let _over = Over(&load.over);
            for (place, writer) in writers.iter().cycle().take(4).enumerate() {
                let (load, port) = (&load, guarded.proxies[*writer].port());
                scope.spawn(move || {
                    let _over = OverIfPanicking(&load.over);
                    load.run(port, (round * 10 + place + 1) as u64);
                });
            }
            let more = |load: &Load, count: u64| {
                let before = load.transfers.load(Ordering::SeqCst);
                wait_until("money moves", SOON, || {
                    load.over.load(Ordering::SeqCst)
                        || load.transfers.load(Ordering::SeqCst) > before + count
                });
                assert!(!load.over.load(Ordering::SeqCst), "a session has failed");
            };
            more(&load, 100);
            guarded.cluster.kill9(victim);
            more(&load, 20);
            guarded.cluster.rejoin(victim);
            more(&load, 100);
        });
        assert!(load.transfers.load(Ordering::SeqCst) > begun + 200);
        look(guarded, &load);
    }
    if guarded.cluster.topology() != Topology::Group {
        assert!(
            load.conflicts.load(Ordering::SeqCst) > 0,
            "nobody was in anybody's way"
        );
    }
}

/// Sums and counters at every node.
fn look(guarded: &mut Guarded, load: &Load) {
    let amounts = guarded.same("SELECT amount FROM bank ORDER BY id");
    let sum: i64 = amounts
        .lines()
        .map(|n| n.parse::<i64>().expect("a number"))
        .sum();
    assert_eq!(sum, ACCOUNTS as i64 * EACH, "{amounts}");
    let owners = guarded.same("SELECT id FROM bank WHERE owner LIKE 'Zk7%' OR owner IS NULL");
    assert_eq!(owners.lines().count() as u64, ACCOUNTS);
    for (table, counters) in [("counter", &load.counters), ("upsert", &load.upserts)] {
        let rows = guarded.same(&format!("SELECT id, k FROM {table} ORDER BY id"));
        for row in rows.lines() {
            let (id, k) = row.split_once('\t').expect("two cells");
            let id: usize = id.parse().expect("a number");
            counters[id].holds(k.parse().expect("a number"));
        }
        assert!(!rows.is_empty(), "{table}");
    }
    guarded.cluster.same_tables();
}
