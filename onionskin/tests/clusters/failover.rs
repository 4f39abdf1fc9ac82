//! One proxy before all nodes: it finds out which of them is written to, and goes on with another
//! one when that is killed.

use super::guarded::{Guarded, SECRET, SOON, scratch};
use onionskin_testkit::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A write that was acknowledged: when, and at which node's port.
type Written = (Instant, String);

/// Until writes go on. The group itself takes some seconds to expel a member that is gone.
const BOUND: Duration = Duration::from_secs(40);

pub fn to_another_node(guarded: &mut Guarded) {
    let first = guarded.writers()[0];
    let mut root = guarded.cluster.connect(first);
    let (watch, group) = match guarded.cluster.topology() {
        Topology::Galera => ("REPLICA MONITOR", None),
        _ => (
            "REPLICATION CLIENT",
            Some("GRANT SELECT ON performance_schema.replication_group_members TO watch@'%'"),
        ),
    };
    root.must("CREATE USER watch@'%' IDENTIFIED BY 'watch secret'");
    root.must(&format!("GRANT {watch} ON *.* TO watch@'%'"));
    root.must("CREATE USER app@'%' IDENTIFIED BY 'app secret'");
    root.must("GRANT ALL ON app.* TO app@'%'");
    if let Some(grant) = group {
        root.must(grant);
    }
    guarded.at(first).must(
        "CREATE TABLE written (id BIGINT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (eq), k INT ENCRYPTED FOR (range))",
    );
    guarded.settle_tables();
    let secret = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(secret.path(), "watch secret\n").expect("written");
    let addresses = guarded.cluster.nodes().iter().map(Server::address);
    let list: Vec<String> = addresses.map(|address| format!("{address:?}")).collect();
    let options = ProxyOptions {
        settings: format!("backend = [{}]\n", list.join(", ")),
        tables: format!(
            "[health]\nuser = \"watch\"\npassword_file = \"{}\"\ninterval_seconds = 0.5\ntimeout_seconds = 1\ndrain_seconds = 1\n{}",
            secret.path().display(),
            scratch(&guarded.engine)
        ),
        keys: Some(guarded.proxies[0].keys()),
        ..ProxyOptions::default()
    };
    let mut proxy = Proxy::start_with(guarded.cluster.node(0), options);
    let port = proxy.port();
    let (over, all) = (AtomicBool::new(false), Mutex::new(Vec::<Written>::new()));
    let victim = match guarded.cluster.topology() {
        Topology::Group => first,
        // the first of the list, whoever is asked
        _ => 0,
    };
    let old = guarded.cluster.node(victim).port().to_string();
    let [mut killed, mut after, mut back] = [Instant::now(); 3];
    thread::scope(|scope| {
        let _over = super::guarded::Over(&over);
        for writer in 0..2 {
            let (over, all) = (&over, &all);
            scope.spawn(move || {
                let _over = super::guarded::OverIfPanicking(over);
                write(port, writer, over, all);
            });
        }
        more(&all, &over, 30);
        guarded.cluster.kill9(victim);
        killed = Instant::now();
        wait_until("writes go on", BOUND, || {
            let latest = all.lock().expect("alive").last().cloned();
            over.load(Ordering::SeqCst) || latest.is_some_and(|(_, port)| port != old)
        });
        after = Instant::now();
        more(&all, &over, 30);
        back = Instant::now();
        guarded.cluster.rejoin(victim);
        more(&all, &over, 30);
    });
    announce(&format!(
        "{:?}: writes went on {:?} after kill -9",
        guarded.cluster.topology(),
        after - killed
    ));
    // at one node, and then at one other
    let all = all.into_inner().expect("alive");
    let ports_between = |from: Option<Instant>, to: Instant| {
        let is_of_it = |at: &Instant| from.is_none_or(|from| *at >= from) && *at < to;
        let of_it = all.iter().filter(|(at, _)| is_of_it(at));
        let mut ports: Vec<&str> = of_it.map(|(_, port)| &**port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    };
    assert_eq!(ports_between(None, killed), [&*old]);
    let new = ports_between(Some(after), back);
    assert!(new.len() == 1 && new[0] != old, "{new:?}");
    let told = guarded.same("SELECT COUNT(*) FROM written WHERE name LIKE 'Zk7%' OR k >= 0");
    let count: usize = told.parse().expect("a number");
    assert!(count >= all.len(), "{count} rows of {} writes", all.len());
    guarded.cluster.same_cells("app", "written");
    proxy.assert_healthy();
}

fn more(all: &Mutex<Vec<Written>>, over: &AtomicBool, count: usize) {
    let before = all.lock().expect("alive").len();
    wait_until("rows are written", SOON, || {
        over.load(Ordering::SeqCst) || all.lock().expect("alive").len() > before + count
    });
    assert!(!over.load(Ordering::SeqCst), "a writer has failed");
}

/// Writes rows, and notes each that was acknowledged.
fn write(port: u16, writer: u64, over: &AtomicBool, all: &Mutex<Vec<Written>>) {
    let mut session: Option<Session> = None;
    let mut id = writer * 1_000_000_000;
    while !over.load(Ordering::SeqCst) {
        let Some(open) = session.as_mut() else {
            session = Session::try_open(port, "app", "app secret", Some("app")).ok();
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        id += 1;
        let sql = format!("INSERT INTO written VALUES ({id}, '{SECRET} {id}', {writer})");
        let done = open.text("SELECT @@port").and_then(|at| {
            open.run(&sql)?;
            Ok(at)
        });
        match done {
            Ok(at) => all.lock().expect("alive").push((Instant::now(), at)),
            Err(failure) if [1213, 1180, 3101].contains(&failure.code) => {}
            Err(_) => {
                if let Some(lost) = session.take() {
                    std::mem::forget(lost);
                }
            }
        }
    }
}
