//! Logs that are not the one in which the backup's place is: of a replica that was promoted, and
//! of the same server when it had begun its log anew. What is restored is exact, or refused.

use std::time::Duration;

use onionskin_testkit::*;

use super::{back_up, scenery_with, start_on};

/// A server with GTIDs whose table has one row.
fn with_gtids(kind: Kind) -> Option<(Scenery, Session)> {
    let scenery = scenery_with(kind, Binlog::Row, &gtids(kind))?;
    let mut session = scenery.server.connect();
    create(&mut session, 0);
    Some((scenery, session))
}

fn gtids(kind: Kind) -> Vec<&'static str> {
    match kind {
        Kind::MariaDb => vec![],
        Kind::MySql => vec!["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
    }
}

fn create(session: &mut Session, n: u32) {
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY, n INT)");
    session.must(&format!("INSERT INTO app.t VALUES (1, {n})"));
}

/// Transactions that count themselves.
fn count(session: &mut Session, many: u32) {
    for _ in 0..many {
        session.must("UPDATE app.t SET n = n + 1");
    }
}

fn begin_anew(session: &mut Session, kind: Kind) {
    session.must(match kind {
        Kind::MySql => "RESET BINARY LOGS AND GTIDS",
        Kind::MariaDb => "RESET MASTER",
    });
}

/// A replica that was set up from what the server holds now, as replicas are: its own log begins
/// behind that, with an empty list of GTIDs.
fn replica(scenery: &Scenery, n: u32) -> Option<Server> {
    let kind = scenery.server.kind();
    let mut extra = gtids(kind);
    extra.push("--server-id=8");
    extra.push("--log-slave-updates=ON");
    let server = server_of_its_own(kind, &extra)?;
    let (mut own, mut source) = (server.connect(), scenery.server.connect());
    create(&mut own, n);
    begin_anew(&mut own, kind);
    let port = scenery.server.port();
    match kind {
        Kind::MariaDb => {
            let at = source.text("SELECT @@gtid_binlog_pos").expect("a GTID");
            own.must(&format!("SET GLOBAL gtid_slave_pos = '{at}'"));
            own.must(&format!(
                "CHANGE MASTER TO master_host = '127.0.0.1', master_port = {port}, master_user = 'root', \
                 master_use_gtid = slave_pos"
            ));
            own.must("START SLAVE");
        }
        Kind::MySql => {
            let at = source.text("SELECT @@gtid_executed").expect("GTIDs");
            own.must(&format!("SET GLOBAL gtid_purged = '{at}'"));
            own.must(&format!(
                "CHANGE REPLICATION SOURCE TO source_host = '127.0.0.1', source_port = {port}, source_user = 'root', \
                 source_auto_position = 1, get_source_public_key = 1"
            ));
            own.must("START REPLICA");
        }
    }
    Some(server)
}

fn path_of_tools(scenery: &Scenery) -> String {
    match scenery.server.kind() {
        Kind::MariaDb => std::env::var("PATH").expect("a PATH"),
        Kind::MySql => scenery.path_of_mysql(),
    }
}

/// What `n` is after a restore; or, as the error, what it said. A refusal has exit code 2, and
/// leaves nothing.
fn restored(scenery: &Scenery, path: &str, backup: &str, log: &str) -> Result<String, String> {
    let to = format!("{log}-{backup}-data");
    let output = super::restore(scenery, path, [backup, log, &to]).output();
    let output = output.expect("onionskin runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("leave --binlogs out"), "{said}");
        assert!(!scenery.home.path().join(&to).exists());
        return Err(said);
    }
    let server = start_on(scenery, &to);
    let n = server.connect().text("SELECT n FROM app.t");
    Ok(n.expect("a number"))
}

fn archive_of(scenery: &Scenery, server: &Server, log: &str) {
    let address = server.address();
    scenery.must(&["archive", "--to", log, "--once", "--backend", &address]);
}

pub fn the_log_of_a_promoted_replica_goes_on_behind_a_backup(kind: Kind) {
    let Some((scenery, mut session)) = with_gtids(kind) else {
        return;
    };
    count(&mut session, 300);
    let Some(replica) = replica(&scenery, 300) else {
        return;
    };
    count(&mut session, 40);
    back_up(&scenery, "early.sealed");
    count(&mut session, 20);
    let mut own = replica.connect();
    wait_until("the replica", Duration::from_secs(60), || {
        own.text("SELECT n FROM app.t").is_ok_and(|n| n == "360")
    });
    own.must(match kind {
        Kind::MariaDb => "STOP SLAVE",
        Kind::MySql => "STOP REPLICA",
    });
    // What the replica never gets.
    count(&mut session, 5);
    back_up(&scenery, "lost.sealed");
    count(&mut own, 10);
    archive_of(&scenery, &replica, "log");
    let path = path_of_tools(&scenery);
    assert_eq!(
        restored(&scenery, &path, "early.sealed", "log").as_deref(),
        Ok("370")
    );
    restored(&scenery, &path, "lost.sealed", "log").expect_err("two histories");
    // Its own log serves as ever.
    archive_of(&scenery, &scenery.server, "own");
    assert_eq!(
        restored(&scenery, &path, "early.sealed", "own").as_deref(),
        Ok("365")
    );
    // What lies between the backup and the archive is in neither.
    own.must("FLUSH BINARY LOGS");
    count(&mut own, 3);
    let files = own.text("SHOW BINARY LOGS").expect("files");
    let last = files
        .lines()
        .last()
        .and_then(|line| line.split('\t').next());
    let from = format!("{}:4", last.expect("a file"));
    let address = replica.address();
    scenery.must(&[
        "archive",
        "--to",
        "late",
        "--once",
        "--backend",
        &address,
        "--from",
        &from,
    ]);
    restored(&scenery, &path, "early.sealed", "late").expect_err("a gap");
}

pub fn a_log_that_was_begun_anew_is_refused(kind: Kind) {
    let Some((scenery, mut session)) = with_gtids(kind) else {
        return;
    };
    begin_anew(&mut session, kind);
    count(&mut session, 40);
    back_up(&scenery, "base.sealed");
    let path = path_of_tools(&scenery);
    // Its log is shorter than before, or longer; and at last it has the same files, places and
    // GTIDs, and other rows.
    for (log, many) in [("shorter", 7), ("longer", 90), ("same", 41)] {
        std::thread::sleep(Duration::from_millis(1100));
        begin_anew(&mut session, kind);
        count(&mut session, many);
        archive_of(&scenery, &scenery.server, log);
        let said = restored(&scenery, &path, "base.sealed", log).expect_err(log);
        assert!(log != "same" || said.contains("was reset since"), "{said}");
    }
}

#[test]
fn without_gtids_only_the_servers_own_log_serves() {
    let Some(scenery) = super::scenery(Kind::MySql, Binlog::Row) else {
        return;
    };
    let mut session = scenery.server.connect();
    create(&mut session, 0);
    back_up(&scenery, "base.sealed");
    count(&mut session, 5);
    let off = [
        "--gtid-mode=OFF",
        "--enforce-gtid-consistency=OFF",
        "--server-id=8",
    ];
    let other = server_of_its_own(Kind::MySql, &off).expect("the same kind");
    let mut own = other.connect();
    create(&mut own, 0);
    count(&mut own, 5);
    archive_of(&scenery, &other, "other");
    archive_of(&scenery, &scenery.server, "own");
    let path = path_of_tools(&scenery);
    let said = restored(&scenery, &path, "base.sealed", "other").expect_err("another server");
    assert!(said.contains("has no GTIDs"), "{said}");
    assert_eq!(
        restored(&scenery, &path, "base.sealed", "own").as_deref(),
        Ok("5")
    );
}
