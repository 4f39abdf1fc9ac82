//! Several servers behind one proxy: which of them is the primary is found out, and a session never
//! writes to another one than that knowingly.
//!
//! The members are real servers. Each is reached through a cable, so that its network can be cut
//! and frozen. All start read-only, as they should where there is failover, and the first of them
//! is promoted.

#[path = "failover/clusters.rs"]
mod clusters;
#[path = "failover/losses.rs"]
mod losses;
#[path = "failover/operation.rs"]
mod operation;
#[path = "failover/reads.rs"]
mod reads;
#[path = "failover/reads_cost.rs"]
mod reads_cost;
#[path = "failover/reads_lost.rs"]
mod reads_lost;
#[path = "failover/reads_only.rs"]
mod reads_only;
#[path = "failover/reads_protected.rs"]
mod reads_protected;
#[path = "failover/timing.rs"]
mod timing;
#[path = "failover/transfers.rs"]
mod transfers;

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use losses::*;
use onionskin_testkit::*;
use operation::*;
use reads::*;
use reads_cost::*;
use reads_lost::*;
use reads_only::*;
use reads_protected::*;
use transfers::*;

on_both_servers!(
    a_switchover_moves_sessions,
    a_transaction_is_bounded,
    two_primaries_are_none,
    a_killed_primary_comes_back_as_a_replica,
    a_frozen_primary_holds_nobody_up,
    a_slow_primary_keeps_its_sessions,
    nothing_known_of_tables_goes_over,
    members_come_and_go_by_a_reload,
    an_account_that_may_not_ask_is_told,
    a_new_program_takes_over,
    sums_stay_over_switchovers_and_kills,
    own_writes_are_read_if_that_is_wanted,
    own_writes_are_read_whatever_the_client_sets,
    a_replica_that_is_behind_is_left_and_returned_to,
    without_a_replica_sessions_read_from_the_primary,
    readers_stay_over_a_failover,
    a_frozen_replica_holds_nobody_up,
    a_session_that_reads_writes_nowhere,
    both_addresses_answer_alike,
    a_replica_behind_a_migration_gets_no_clear_values,
    what_waiting_costs,
);

/// The account of the application: no superuser, whom `read_only` would not hold back.
const APP: &str = "app";
const PASSWORD: &str = "app secret";
/// `NO_PRIMARY`, and `DEMOTED`.
const NONE: u16 = 1429;
const DEMOTED: u16 = 1053;
const SOON: Duration = Duration::from_secs(15);

/// Servers of which the first one is the primary in the beginning, and a proxy before them.
struct Members {
    proxy: Proxy,
    cables: Vec<Cable>,
    servers: Vec<Server>,
    admin: u16,
    /// Where `listen_read` is, if the configuration has `[reads]`.
    read: u16,
    /// That its configuration names.
    _files: [tempfile::NamedTempFile; 2],
}

/// How the members are asked, for tests that want little patience.
const HASTY: &str = "interval_seconds = 0.5\ntimeout_seconds = 1\ndrain_seconds = 2\n";

impl Members {
    /// `health`: lines of that section beside the account. `None` where there is no MySQL.
    fn start(kind: Kind, count: usize, health: &str, tables: &str) -> Option<Members> {
        let mut servers = Vec::new();
        for number in 0..count {
            servers.push(member(kind, number)?);
        }
        for server in &servers[1..] {
            follow(server, &servers[0]);
        }
        promote(&servers[0]);
        Some(Self::before(servers, &[], health, tables))
    }

    /// A proxy before servers, and before these addresses.
    fn before(servers: Vec<Server>, more: &[String], health: &str, tables: &str) -> Members {
        let cables: Vec<Cable> = servers.iter().map(|s| Cable::to(s.port())).collect();
        let addresses = cables
            .iter()
            .map(Cable::address)
            .chain(more.iter().cloned());
        let list: Vec<String> = addresses.map(|address| format!("{address:?}")).collect();
        let admin = free_port();
        let authorities = tempfile::NamedTempFile::new().expect("a file");
        let pem = servers.iter().filter_map(|server| server.authority());
        let pem: Vec<String> = pem
            .map(|path| fs::read_to_string(path).expect("PEM"))
            .collect();
        let trust = match pem.is_empty() {
            true => String::new(),
            false => {
                fs::write(authorities.path(), pem.concat()).expect("written");
                let path = authorities.path().display();
                format!("backend_tls = \"required\"\nbackend_ca = \"{path}\"\n")
            }
        };
        let secret = tempfile::NamedTempFile::new().expect("a file");
        fs::write(secret.path(), "watch secret\n").expect("written");
        let read = free_port();
        let listen = match tables.contains("[reads]") {
            true => format!("listen_read = \"127.0.0.1:{read}\"\n"),
            false => String::new(),
        };
        let settings = format!(
            "backend = [{}]\nadmin = \"127.0.0.1:{admin}\"\ncontrol = \"control.sock\"\n{listen}{trust}",
            list.join(", ")
        );
        let tables = format!(
            "[health]\nuser = \"watch\"\npassword_file = \"{}\"\n{health}\n{tables}",
            secret.path().display()
        );
        let options = ProxyOptions {
            settings,
            tables,
            ..ProxyOptions::default()
        };
        let proxy = Proxy::start_with(&servers[0], options);
        Members {
            proxy,
            cables,
            servers,
            admin,
            read,
            _files: [authorities, secret],
        }
    }

    /// A session of the application's, with the state and the settings of its own.
    fn app(&self) -> Result<Session, Failure> {
        Session::try_open(self.proxy.port(), APP, PASSWORD, Some("bank"))
    }

    /// The same once there is a primary.
    fn app_soon(&self) -> Session {
        let begin = Instant::now();
        loop {
            match self.app() {
                Ok(session) => return session,
                Err(failure) => assert!(begin.elapsed() < SOON, "{failure}\n{}", self.proxy.log()),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The same at that server. Until it is noticed that another one is the primary, sessions go to
    /// the one before.
    fn app_soon_at(&self, server: usize) -> Session {
        let begin = Instant::now();
        loop {
            let mut session = self.app_soon();
            match session.text("SELECT @@port") {
                Ok(port) if port == self.servers[server].port().to_string() => return session,
                _ => assert!(begin.elapsed() < SOON, "{}", self.proxy.log()),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until no new session is taken, and returns why.
    fn closed_soon(&self) -> String {
        let begin = Instant::now();
        loop {
            match self.app() {
                Ok(_) => assert!(begin.elapsed() < SOON, "sessions are still taken"),
                Err(failure) if failure.code == NONE && failure.message.contains("OS1216") => {
                    return failure.message;
                }
                // the server itself was just lost
                Err(failure) => assert!(begin.elapsed() < SOON, "{failure}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Which server a session is at.
    fn at(&self, session: &mut Session) -> usize {
        self.may_be_at(session).expect("an answer")
    }

    /// The same of a session that may end in this moment.
    fn may_be_at(&self, session: &mut Session) -> Option<usize> {
        let port = session.text("SELECT @@port").ok()?;
        let is_it = |server: &Server| server.port().to_string() == port;
        Some(self.servers.iter().position(is_it).expect("a member"))
    }

    /// A table with a protected column, on all members.
    fn table(&self) {
        let mut root = self.proxy.connect();
        root.must("CREATE TABLE bank.account (id INT PRIMARY KEY, owner VARCHAR(20) ENCRYPTED FOR (eq), amount INT ENCRYPTED FOR ())");
        root.must(
            "INSERT INTO bank.account VALUES (1, 'ada', 100), (2, 'bob', 100), (3, 'eve', 100)",
        );
        self.wait_for_replicas(0);
    }

    /// Waits until all replicas that run have what that server has.
    fn wait_for_replicas(&self, source: usize) {
        let mut at_source = self.servers[source].connect();
        at_source.must("CREATE TABLE IF NOT EXISTS test_mark.mark (n BIGINT PRIMARY KEY)");
        let mark = fresh_number();
        at_source.must(&format!("INSERT INTO test_mark.mark VALUES ({mark})"));
        for (number, server) in self.servers.iter().enumerate() {
            if number == source {
                continue;
            }
            let mut session = server.connect();
            wait_until("the replica has all", SOON, || {
                let sql = format!("SELECT COUNT(*) FROM test_mark.mark WHERE n = {mark}");
                session.text(&sql).is_ok_and(|count| count == "1")
            });
        }
    }
}

fn fresh_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::SeqCst)
}

/// A server that is read-only, with the accounts of these tests.
fn member(kind: Kind, number: usize) -> Option<Server> {
    member_with(kind, number, &[], false)
}

fn member_with(kind: Kind, number: usize, more: &[&str], general_log: bool) -> Option<Server> {
    let id = number + 1;
    let mut extra = vec![format!("--server-id={id}"), "--read-only=1".into()];
    match kind {
        Kind::MariaDb => extra.push("--log-slave-updates".into()),
        // they are started on copies of one data directory
        Kind::MySql => extra.push("--log-replica-updates".into()),
    }
    extra.extend(more.iter().copied().map(str::to_owned));
    let options = ServerOptions {
        binlog: Some(Binlog::Row),
        extra,
        general_log,
        ..ServerOptions::default()
    };
    let mut server = Server::start(kind, options)?;
    let own_id = server.data_dir().join("auto.cnf");
    if number > 0 && own_id.exists() {
        server.shutdown();
        fs::remove_file(&own_id).expect("removed");
        server.restart();
    }
    accounts(&server);
    Some(server)
}

fn accounts(server: &Server) {
    let mut root = server.connect();
    root.must("SET sql_log_bin = 0");
    let watch = match server.kind() {
        Kind::MariaDb => "GRANT REPLICA MONITOR ON *.* TO watch@'%'",
        Kind::MySql => "GRANT REPLICATION CLIENT ON *.* TO watch@'%'",
    };
    for sql in [
        "CREATE USER watch@'%' IDENTIFIED BY 'watch secret'",
        watch,
        "CREATE USER follower@'%' IDENTIFIED BY 'follower secret'",
        "GRANT REPLICATION SLAVE ON *.* TO follower@'%'",
        "CREATE USER app@'%' IDENTIFIED BY 'app secret'",
        "CREATE DATABASE bank",
        "CREATE DATABASE test_mark",
        "GRANT ALL ON bank.* TO app@'%'",
    ] {
        root.must(sql);
    }
    if server.kind() == Kind::MySql {
        root.must("GRANT SELECT ON performance_schema.replication_group_members TO watch@'%'");
    }
}

/// Where a server's binary log ends.
fn position(server: &Server) -> (String, String) {
    let sql = match server.kind() {
        Kind::MariaDb => "SHOW MASTER STATUS",
        Kind::MySql => "SHOW BINARY LOG STATUS",
    };
    let text = server.connect().text(sql).expect("a position");
    let mut cells = text.split('\t').map(str::to_owned);
    (
        cells.next().expect("a file"),
        cells.next().expect("a position"),
    )
}

/// Has a server replicate from another one, from now on, and be read-only.
fn follow(server: &Server, source: &Server) {
    follow_from(server, source, &position(source));
}

fn follow_from(server: &Server, source: &Server, (file, position): &(String, String)) {
    let mut root = server.connect();
    root.must("SET GLOBAL read_only = 1");
    let port = source.port();
    match server.kind() {
        Kind::MariaDb => {
            root.must(&format!(
                "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'follower', MASTER_PASSWORD = 'follower secret', \
                 MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {position}, MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = no"
            ));
            root.must("START SLAVE");
        }
        Kind::MySql => {
            root.must(&format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'follower', \
                 SOURCE_PASSWORD = 'follower secret', SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {position}, SOURCE_CONNECT_RETRY = 1, \
                 GET_SOURCE_PUBLIC_KEY = 1"
            ));
            root.must("START REPLICA");
        }
    }
}

/// Makes a server the primary, as an operator would.
fn promote(server: &Server) {
    let mut root = server.connect();
    match server.kind() {
        Kind::MariaDb => root.must("STOP ALL SLAVES; RESET SLAVE ALL"),
        Kind::MySql => root.must("STOP REPLICA; RESET REPLICA ALL"),
    };
    root.must("SET GLOBAL read_only = 0");
}

/// Takes that back.
fn demote(server: &Server) {
    server.connect().must("SET GLOBAL read_only = 1");
}

/// What `onionskin status --json` says.
fn status(proxy: &Proxy) -> serde_json::Value {
    let (succeeded, text) = proxy.command(&["status", "-c", "onionskin.toml", "--json"]);
    assert!(succeeded, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

/// What an administration address answers.
fn get(port: u16, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("connected");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}
