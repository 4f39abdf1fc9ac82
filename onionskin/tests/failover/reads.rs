//! Reads from replicas: `listen_read`. What sessions of `listen` have written is read, if that is
//! wanted, and a replica that is too far behind is left.

use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;

/// `NOT_FOR_READS` has the number of [`DEMOTED`].
const MOVED: u16 = DEMOTED;

impl Members {
    /// A primary and replicas, all with GTIDs. `reads`: lines of that section.
    pub fn reading(kind: Kind, count: usize, reads: &str) -> Option<Members> {
        Self::reading_with(kind, count, reads, false)
    }

    pub fn reading_with(kind: Kind, count: usize, reads: &str, log: bool) -> Option<Members> {
        let more: &[&str] = match kind {
            Kind::MariaDb => &[],
            Kind::MySql => &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
        };
        let mut servers = Vec::new();
        for number in 0..count {
            let server = member_with(kind, number, more, log)?;
            if kind == Kind::MySql {
                server.connect().must("RESET BINARY LOGS AND GTIDS");
            }
            servers.push(server);
        }
        for server in &servers[1..] {
            follow_by_gtids(server, &servers[0]);
        }
        promote(&servers[0]);
        let tables = format!("[reads]\n{reads}\n");
        Some(Self::before(servers, &[], HASTY, &tables))
    }

    /// A session of the application's that only reads.
    pub fn reader(&self) -> Result<Session, Failure> {
        Session::try_open(self.read, APP, PASSWORD, Some("bank"))
    }

    /// The same at one of these servers, once new ones go there.
    pub fn reader_soon_at(&self, servers: &[usize]) -> Session {
        let begin = Instant::now();
        loop {
            if let Ok(mut session) = self.reader()
                && let Ok(port) = session.text("SELECT @@port")
                && servers
                    .iter()
                    .any(|server| self.servers[*server].port().to_string() == port)
            {
                return session;
            }
            assert!(begin.elapsed() < SOON, "{}", self.proxy.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What is told of a member.
    pub fn told(&self, server: usize) -> serde_json::Value {
        status(&self.proxy)["members"][server].clone()
    }
}

/// The same as [`follow`], from the beginning and by GTIDs.
pub fn follow_by_gtids(server: &Server, source: &Server) {
    let mut root = server.connect();
    let port = source.port();
    match server.kind() {
        Kind::MariaDb => {
            root.must(&format!(
                "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'follower', MASTER_PASSWORD = 'follower secret', \
                 MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos"
            ));
            root.must("START SLAVE");
        }
        Kind::MySql => {
            root.must(&format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'follower', \
                 SOURCE_PASSWORD = 'follower secret', SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1, GET_SOURCE_PUBLIC_KEY = 1"
            ));
            root.must("START REPLICA");
        }
    }
}

/// Stops or starts what applies transactions at a replica.
pub fn applies(server: &Server, does: bool) {
    let verb = if does { "START" } else { "STOP" };
    let noun = match server.kind() {
        Kind::MariaDb => "SLAVE",
        Kind::MySql => "REPLICA",
    };
    server.connect().must(&format!("{verb} {noun} SQL_THREAD"));
}

/// Holds a replica's applier back for some milliseconds, again and again: it runs, and is slow.
fn slow_down(server: &Server, over: &AtomicBool) {
    let mut root = server.connect();
    while !over.load(Ordering::SeqCst) {
        root.must("LOCK TABLES bank.account READ");
        thread::sleep(Duration::from_millis(12));
        root.must("UNLOCK TABLES");
        thread::sleep(Duration::from_millis(3));
    }
}

/// Writes at one address, and reads it at the other. Returns how often something else was read.
fn own_writes(members: &Members, id: usize, rounds: u64) -> u64 {
    let mut writer = members.app_soon();
    let mut reader = members.reader_soon_at(&[1, 2]);
    let mut others = 0;
    for round in 1..=rounds {
        match round % 3 {
            0 => writer.must(&format!(
                "UPDATE account SET amount = {round} WHERE id = {id}"
            )),
            1 => {
                let sql = "UPDATE account SET amount = ? WHERE id = ?";
                writer.execute(sql, (round, id)).expect("done")
            }
            _ => {
                writer.must("BEGIN");
                writer.must(&format!(
                    "UPDATE account SET amount = {round} WHERE id = {id}"
                ));
                writer.must("COMMIT")
            }
        };
        let sql = format!("SELECT amount FROM account WHERE owner = 'owner {id}'");
        let read = match round % 4 {
            0 => reader.execute_text(
                "SELECT amount FROM account WHERE owner = ?",
                (format!("owner {id}"),),
            ),
            1 => reader.text(&format!("SELECT SUM(amount) FROM account WHERE id = {id}")),
            2 => {
                reader.must("BEGIN");
                let read = reader.text(&sql);
                reader.must("COMMIT");
                read
            }
            _ => reader.text(&sql),
        };
        let read = read.unwrap_or_else(|failure| panic!("{failure}\n{}", members.proxy.log()));
        others += u64::from(read != round.to_string());
    }
    others
}

/// All threads' rounds at two slow replicas.
fn stale_reads(members: &Members, rounds: u64) -> u64 {
    let mut root = members.app_soon();
    for id in 10..14 {
        root.must(&format!(
            "REPLACE INTO account VALUES ({id}, 'owner {id}', 0)"
        ));
    }
    members.wait_for_replicas(0);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let slow: Vec<_> = members.servers[1..]
            .iter()
            .map(|server| {
                let over = &over;
                scope.spawn(move || slow_down(server, over))
            })
            .collect();
        let threads: Vec<_> = (10..14)
            .map(|id| scope.spawn(move || own_writes(members, id, rounds)))
            .collect();
        let counts: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        over.store(true, Ordering::SeqCst);
        for thread in slow {
            thread.join().expect("no panic");
        }
        counts
            .into_iter()
            .map(|count| count.expect("no panic"))
            .sum()
    })
}

/// Two slow replicas, four threads: without waiting something old is read, and with it never.
pub fn own_writes_are_read_if_that_is_wanted(kind: Kind) {
    let rounds = if long_run() { 5000 } else { 600 };
    let Some(members) = Members::reading(kind, 3, "causal_seconds = 5") else {
        return;
    };
    members.table();
    let begin = Instant::now();
    assert_eq!(stale_reads(&members, rounds), 0);
    announce(&format!(
        "{kind:?}: {} rounds of reading one's own write in {:?}",
        4 * rounds,
        begin.elapsed()
    ));
    let metrics = get(members.admin, "/metrics");
    let waited = metrics
        .lines()
        .find_map(|line| line.strip_prefix("onionskin_causal_waits_total{outcome=\"in_time\"} "))
        .expect("counted");
    assert!(
        waited.parse::<u64>().expect("a number") > rounds,
        "{metrics}"
    );
    // the same loop can fail
    let Some(members) = Members::reading(kind, 3, "max_lag_seconds = 60") else {
        return;
    };
    members.table();
    let stale = stale_reads(&members, 100);
    assert!(stale > 0, "the replicas were not slow enough");
    announce(&format!(
        "{kind:?}: {stale} of 400 rounds read something old without waiting"
    ));
}

/// A client that has its server tell less, or other things, or begins anew, is waited for all the
/// same.
pub fn own_writes_are_read_whatever_the_client_sets(kind: Kind) {
    let Some(members) = Members::reading(kind, 2, "causal_seconds = 5") else {
        return;
    };
    members.table();
    let mut writer = members.app_soon();
    let mut reader = members.reader_soon_at(&[1]);
    let sets: &[&str] = match kind {
        Kind::MySql => &[
            "SET SESSION session_track_gtids = OFF",
            "SET SESSION session_track_gtids = ALL_GTIDS",
            "SET SESSION session_track_system_variables = 'autocommit'",
        ],
        Kind::MariaDb => &[
            "SET SESSION session_track_system_variables = 'autocommit'",
            "SET SESSION session_track_system_variables = '*'",
        ],
    };
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let slow = scope.spawn(|| slow_down(&members.servers[1], &over));
        let mut amount = 1000;
        for set in sets.iter().copied().map(Some).chain([None]) {
            match set {
                Some(set) => drop(writer.must(set)),
                None => writer.conn().reset().expect("reset"),
            }
            for _ in 0..30 {
                amount += 1;
                writer.must(&format!(
                    "UPDATE bank.account SET amount = {amount} WHERE id = 1"
                ));
                let read = reader.text("SELECT amount FROM bank.account WHERE id = 1");
                assert_eq!(read.expect("rows"), amount.to_string(), "{set:?}");
            }
        }
        // what is asked of the statement before is not answered by the question to the server
        writer.must("UPDATE bank.account SET amount = 5 WHERE id = 1");
        reader.must("SELECT 1 UNION SELECT 2");
        writer.must("UPDATE bank.account SET amount = 6 WHERE id = 1");
        assert_eq!(reader.text("SELECT FOUND_ROWS()").expect("rows"), "2");
        reader.must("SELECT CAST('x' AS SIGNED)");
        writer.must("UPDATE bank.account SET amount = 7 WHERE id = 1");
        assert!(reader.text("SHOW WARNINGS").expect("rows").contains("1292"));
        over.store(true, Ordering::SeqCst);
        slow.join().expect("no panic");
    });
}

/// A replica that applies nothing, or is too far behind, is left: sessions that are idle end, those
/// in a transaction may finish it. When it has caught up it is read from again, and the sessions at
/// the primary go back.
pub fn a_replica_that_is_behind_is_left_and_returned_to(kind: Kind) {
    let Some(members) = Members::reading(kind, 2, "max_lag_seconds = 2") else {
        return;
    };
    members.table();
    let mut idle = members.reader_soon_at(&[1]);
    let mut busy = members.reader_soon_at(&[1]);
    busy.must("BEGIN");
    busy.must("SELECT * FROM account");
    assert_eq!(members.told(1)["reads"], true);
    assert_eq!(members.told(0)["reads"], false);
    applies(&members.servers[1], false);
    let mut fallen = members.reader_soon_at(&[0]);
    let failure = idle.run("SELECT 1").expect_err("it has ended");
    assert!(
        failure.is_disconnect() || failure.code == MOVED,
        "{failure}"
    );
    busy.must("SELECT * FROM account");
    let failure = busy
        .run("COMMIT; SELECT 1")
        .expect_err("it ends behind COMMIT");
    assert_eq!(failure.code, MOVED, "{failure}");
    assert!(failure.message.contains("OS1219"), "{failure}");
    let why = members.told(1)["state"].to_string();
    assert!(why.contains("does not apply"), "{why}");
    assert_eq!(members.told(0)["reads"], true);

    applies(&members.servers[1], true);
    members.reader_soon_at(&[1]);
    wait_until("the session at the primary goes back", SOON, || {
        fallen.run("SELECT 1").is_err()
    });

    // it runs, and is held back
    let mut root = members.servers[1].connect();
    root.must("LOCK TABLES bank.account READ");
    let mut writer = members.app_soon();
    let begin = Instant::now();
    let mut amount = 0;
    loop {
        amount += 1;
        writer.must(&format!(
            "UPDATE account SET amount = {amount} WHERE id = 1"
        ));
        if let Ok(mut session) = members.reader()
            && members.may_be_at(&mut session) == Some(0)
        {
            break;
        }
        assert!(begin.elapsed() < SOON, "{}", members.proxy.log());
        thread::sleep(Duration::from_millis(50));
    }
    let took = begin.elapsed();
    assert!(took > Duration::from_secs(2), "{took:?}");
    assert!(took < Duration::from_secs(12), "{took:?}");
    let told = members.told(1);
    assert!(told["lag"].as_f64().is_some_and(|lag| lag > 2.0), "{told}");
    let metrics = get(members.admin, "/metrics");
    let second = members.cables[1].address();
    let shown = format!("onionskin_member_reads{{member=\"{second}\"}} 0");
    assert!(metrics.contains(&shown), "{metrics}");
    assert!(
        metrics.contains("onionskin_member_lag_seconds{"),
        "{metrics}"
    );
    root.must("UNLOCK TABLES");
    members.reader_soon_at(&[1]);
}
