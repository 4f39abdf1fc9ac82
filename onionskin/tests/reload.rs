//! A reload is all or nothing, and holds for every statement that begins after it, whatever a
//! session has open. A handover loses no connection attempt, and a new program that fails leaves
//! the old one as it was.

#[path = "reload/handover.rs"]
mod handover;
#[path = "reload/logins.rs"]
mod logins;
#[path = "reload/sockets.rs"]
mod sockets;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ::mysql::prelude::Queryable;
use logins::clients_without_tls_are_kept_out;
use onionskin_testkit::*;

on_both_servers!(
    a_stricter_policy_holds_for_open_sessions,
    what_is_wrong_changes_nothing,
    no_connection_is_lost,
    sysbench_meets_no_error,
    clients_without_tls_are_kept_out,
);

const SOON: Duration = Duration::from_secs(15);

/// A proxy with a control socket and an administration address.
struct Reloadable {
    proxy: Proxy,
    admin: u16,
    /// Addresses besides the port.
    addresses: Vec<String>,
}

impl Reloadable {
    fn start(server: &Server, tables: &str) -> Reloadable {
        Self::start_at(server, tables, Vec::new())
    }

    fn start_at(server: &Server, tables: &str, addresses: Vec<String>) -> Reloadable {
        let admin = free_port();
        let more = |address: &String| ["--listen".to_owned(), address.clone()];
        let options = ProxyOptions {
            settings: format!("admin = \"127.0.0.1:{admin}\"\ncontrol = \"control.sock\""),
            tables: tables.into(),
            arguments: addresses.iter().flat_map(more).collect(),
            ..ProxyOptions::default()
        };
        let proxy = Proxy::start_with(server, options);
        let socket = proxy.folder().join("control.sock");
        wait_until("the control socket", SOON, || socket.exists());
        Reloadable {
            proxy,
            admin,
            addresses,
        }
    }

    fn config(&self) -> String {
        fs::read_to_string(self.proxy.folder().join("onionskin.toml")).expect("a configuration")
    }

    fn write(&self, config: &str) {
        fs::write(self.proxy.folder().join("onionskin.toml"), config).expect("written");
    }

    fn reload(&self) -> (bool, String) {
        self.proxy.command(&["reload"])
    }

    fn must_reload(&self) -> String {
        let (done, text) = self.reload();
        assert!(done, "{text}");
        text
    }

    fn control(&self) -> UnixStream {
        let socket = self.proxy.folder().join("control.sock");
        let stream = UnixStream::connect(socket).expect("the control socket");
        stream.set_read_timeout(Some(SOON)).expect("a limit");
        stream
    }

    /// A number of the metrics.
    fn counted(&self, metric: &str) -> u64 {
        let text = http(self.admin, "/metrics").expect("metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(metric));
        let number = line.and_then(|line| line.trim().parse().ok());
        number.unwrap_or_else(|| panic!("{metric} in {text}"))
    }

    /// A program that takes over, with its log.
    fn successor(&self, log: &str) -> Child {
        let log = File::create(self.proxy.folder().join(log)).expect("a log");
        tied_command(env!("CARGO_BIN_EXE_onionskin"))
            .current_dir(self.proxy.folder())
            .args(["serve", "-c", "onionskin.toml", "--take-over", "--listen"])
            .arg(format!("127.0.0.1:{}", self.proxy.port()))
            .args(
                self.addresses
                    .iter()
                    .flat_map(|address| ["--listen", address]),
            )
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a handle"))
            .stderr(log)
            .spawn()
            .expect("onionskin starts")
    }

    fn log_of(&self, name: &str) -> String {
        fs::read_to_string(self.proxy.folder().join(name)).unwrap_or_default()
    }
}

/// The body of an answer of the administration address.
fn http(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(SOON)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
}

fn ended(child: &mut Child) -> bool {
    child.try_wait().expect("it can be waited for").is_some()
}

/// Refused because `[protect]` wants something else than there is.
fn must_be_refused<T: std::fmt::Debug>(what: &str, done: Result<T, Failure>) {
    let failure = done.expect_err(what);
    assert!(failure.message.contains("OS1108"), "{what}: {failure}");
}

fn prepare(session: &mut Session, sql: &str) -> ::mysql::Statement {
    session.conn().prep(sql).expect("prepared")
}

fn a_stricter_policy_holds_for_open_sessions(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let proxy = Reloadable::start(&server, "[protect.\"app.safe\"]\nv = [\"eq\"]\n");
    let mut setup = proxy.proxy.connect();
    setup.must("CREATE DATABASE app");
    setup.must("CREATE TABLE app.t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50))");
    setup.must("CREATE TABLE app.safe (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(50))");
    let connect = || proxy.proxy.connect_to("app");

    // a plan that is kept; prepared statements that are relayed, executed and not; a transaction;
    // a text of PREPARE; a session with a snapshot of its own
    let (mut text, mut prepared, mut fresh) = (connect(), connect(), connect());
    let (mut open, mut named, mut own) = (connect(), connect(), connect());
    const INSERT: &str = "INSERT INTO t (name) VALUES ('x')";
    text.must(INSERT);
    let statement = prepare(&mut prepared, "INSERT INTO t (name) VALUES (?)");
    prepared
        .conn()
        .exec_drop(&statement, ("x",))
        .expect("executed");
    let unused = prepare(&mut fresh, "INSERT INTO t (name) VALUES (?)");
    let safe = prepare(&mut fresh, "INSERT INTO safe (v) VALUES (?)");
    let found = prepare(&mut fresh, "SELECT COUNT(*) FROM safe WHERE v = ?");
    fresh.conn().exec_drop(&safe, ("a",)).expect("executed");
    open.must("BEGIN");
    open.must(INSERT);
    named.must("PREPARE s FROM 'INSERT INTO t (name) VALUES (1)'");
    named.must("EXECUTE s");
    own.must("CREATE TEMPORARY TABLE own (v VARCHAR(9) ENCRYPTED FOR (EQ))");
    own.must("INSERT INTO own VALUES ('mine')");
    own.must(INSERT);
    let rows = |server: &Server| {
        let mut direct = server.connect();
        direct.text("SELECT COUNT(*) FROM app.t").expect("a count")
    };
    assert_eq!(rows(&server), "4");

    let before = proxy.config();
    let strict = format!("{before}\n[protect.\"app.t\"]\nenforce = true\nname = [\"eq\"]\n");
    proxy.write(&strict);
    let (sound, said) = proxy.proxy.command(&["check"]);
    assert!(sound && said.contains("2 settings would change"), "{said}");
    assert!(
        said.contains("protect.\"app.t\".name: not set → [\"eq\"]"),
        "{said}"
    );
    text.must(INSERT);

    // a statement that runs goes on, and the reload waits for it
    let mut slow = connect();
    let runs = thread::spawn(move || slow.text("SELECT SLEEP(1.5) FROM t LIMIT 1"));
    thread::sleep(Duration::from_millis(400));
    let begin = Instant::now();
    let said = proxy.must_reload();
    assert!(
        said.contains("protect.\"app.t\".enforce: not set → true"),
        "{said}"
    );
    assert!(
        begin.elapsed() > Duration::from_millis(500),
        "it has waited"
    );
    assert_eq!(runs.join().expect("no panic").expect("it is done"), "0");
    assert!(
        proxy.proxy.log().contains("reload: in force"),
        "{}",
        proxy.proxy.log()
    );

    let failed = |done: Result<(), ::mysql::Error>| done.map_err(Failure::from);
    must_be_refused("a text", text.run(INSERT));
    must_be_refused(
        "executed before",
        failed(prepared.conn().exec_drop(&statement, ("x",))),
    );
    must_be_refused(
        "prepared before",
        failed(fresh.conn().exec_drop(&unused, ("x",))),
    );
    must_be_refused("in a transaction", open.run(INSERT));
    must_be_refused("a statement by name", named.run("EXECUTE s"));
    must_be_refused("a session of its own", own.run(INSERT));
    must_be_refused("a new session", connect().run(INSERT));
    must_be_refused("reading", text.run("SELECT name FROM t"));
    assert_eq!(rows(&server), "5", "nothing was written by an old plan");
    // what the new rules allow goes on
    fresh.conn().exec_drop(&safe, ("b",)).expect("executed");
    let count: Option<u32> = fresh.conn().exec_first(&found, ("a",)).expect("a count");
    assert_eq!(count, Some(1));
    assert_eq!(
        own.text("SELECT v FROM own WHERE v = 'mine'")
            .expect("a row"),
        "mine"
    );
    open.must("COMMIT");
    assert_eq!(rows(&server), "6");

    // and back
    proxy.write(&before);
    proxy.must_reload();
    text.must(INSERT);
    prepared
        .conn()
        .exec_drop(&statement, ("x",))
        .expect("executed");
    fresh.conn().exec_drop(&unused, ("x",)).expect("executed");
    named.must("EXECUTE s");
    own.must(INSERT);
    assert_eq!(rows(&server), "11");
    assert_eq!(proxy.counted("onionskin_reloads_total{outcome=\"ok\"}"), 2);
    assert_eq!(proxy.counted("onionskin_configuration"), 2);
    proxy.must_reload();
    assert_eq!(
        proxy.must_reload().trim(),
        "in force, and nothing has changed"
    );
}

/// A certificate for localhost and its key.
fn certificate(folder: &Path, name: &str) {
    let names = ["localhost", "127.0.0.1"].map(String::from);
    let made = rcgen::generate_simple_self_signed(names).expect("made");
    let key = folder.join(format!("{name}.key"));
    fs::write(folder.join(format!("{name}.pem")), made.cert.pem()).expect("written");
    fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a mode");
}

/// The certificate that a new handshake shows, as openssl prints it.
fn shown_certificate(port: u16) -> String {
    let output = Command::new("timeout")
        .args([
            "20",
            "openssl",
            "s_client",
            "-starttls",
            "mysql",
            "-connect",
        ])
        .arg(format!("127.0.0.1:{port}"))
        .stdin(Stdio::null())
        .output()
        .expect("openssl runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let begin = text.find("-----BEGIN CERTIFICATE-----");
    let end = text.find("-----END CERTIFICATE-----");
    match (begin, end) {
        (Some(begin), Some(end)) => text[begin..end].split_whitespace().collect(),
        _ => panic!("no certificate in {text}"),
    }
}

/// The line that says where the server is.
fn backend_of(config: &str) -> &str {
    let mut lines = config.lines();
    lines.find(|l| l.starts_with("backend ")).expect("a line")
}

/// What may be wrong: a configuration, keys, and words of the one sentence. The keys are those that
/// the proxy runs with, the same damaged, and others.
fn faults<'a>(
    sound: &str,
    admin: &str,
    [keys, damaged, other]: [&'a [u8]; 3],
) -> Vec<(String, &'a [u8], &'static str)> {
    let replaced = |from: &str, to: &str| {
        assert!(sound.contains(from), "{from} in {sound}");
        sound.replace(from, to)
    };
    let set = |line: &str| format!("{line}\n{sound}");
    let backend = backend_of(sound);
    // the configuration, the keys, and words of the one sentence
    vec![
        (set("listen = "), keys, "onionskin.toml"),
        (set("no_such_setting = 1"), keys, "no_such_setting"),
        (
            replaced("[\"eq\"]", "[\"equal\"]"),
            keys,
            "capabilities are",
        ),
        (replaced("one.pem", "none.pem"), keys, "none.pem"),
        (
            replaced("key = ", "# key = "),
            keys,
            "needs both cert and key",
        ),
        (replaced("one.pem", "two.pem"), keys, "belong together"),
        (replaced("one.key", "one.pem"), keys, "one.pem"),
        (sound.to_owned(), damaged, "key file is malformed"),
        (
            sound.to_owned(),
            other,
            "other keys than this proxy runs with",
        ),
        (
            replaced(backend, "backend = \"127.0.0.1:1\""),
            keys,
            "backend: ",
        ),
        (replaced(admin, "127.0.0.1:1"), keys, "admin: "),
        (replaced("control.sock", "other.sock"), keys, "other.sock"),
        (set("pins = \"none\""), keys, "onionskin pin makes it"),
        (set("admin_token_file = \"none\""), keys, "none"),
        (
            format!("{sound}\n[scratch]\nsocket = \"a.sock\"\n"),
            keys,
            "scratch.socket",
        ),
        (
            format!("{sound}\n[functions]\nevaluate = true\n"),
            keys,
            "functions.evaluate",
        ),
    ]
}

fn what_is_wrong_changes_nothing(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let tables =
        "[tls]\ncert = \"one.pem\"\nkey = \"one.key\"\n[protect.\"app.*\"]\nv = [\"eq\"]\n";
    let folder = tempfile::tempdir().expect("a folder");
    certificate(folder.path(), "one");
    certificate(folder.path(), "two");
    let at = folder.path().display().to_string();
    let tables = tables.replace("one.", &format!("{at}/one."));
    let proxy = Reloadable::start(&server, &tables);
    let mut session = proxy.proxy.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT, v VARCHAR(50))");
    session.must("INSERT INTO app.t VALUES (1, 'one')");
    let first = shown_certificate(proxy.proxy.port());
    let sound = proxy.config();
    let keys = fs::read(proxy.proxy.keys()).expect("keys");
    let other = tempfile::tempdir().expect("a folder");
    let (made, said) = proxy
        .proxy
        .command(&["init", "--dir", &other.path().display().to_string()]);
    assert!(made, "{said}");
    let other = fs::read(other.path().join("keys.json")).expect("keys");
    let damaged = [&keys[..keys.len() / 2], b"0", &keys[keys.len() / 2..]].concat();

    let admin = format!("127.0.0.1:{}", proxy.admin);
    let faults = faults(&sound, &admin, [&keys, &damaged, &other]);
    let count = faults.len() as u64;
    for (config, content, words) in faults {
        proxy.write(&config);
        fs::write(proxy.proxy.keys(), content).expect("written");
        let before = proxy.proxy.log().matches("reload: ").count();
        signal("HUP", proxy.proxy.pid().expect("a process"));
        wait_until("an answer in the log", SOON, || {
            proxy.proxy.log().matches("reload: ").count() > before
        });
        let log = proxy.proxy.log();
        let line = log
            .lines()
            .rfind(|line| line.contains("reload: "))
            .expect("a line");
        assert!(line.contains(words), "{words}: {line}");
        assert!(line.contains("nothing was changed"), "{words}: {line}");
        assert_eq!(
            session
                .text("SELECT v FROM app.t WHERE v = 'one'")
                .expect(words),
            "one"
        );
    }
    assert_eq!(
        proxy.counted("onionskin_reloads_total{outcome=\"refused\"}"),
        count
    );
    assert_eq!(proxy.counted("onionskin_configuration"), 0);
    assert_eq!(
        shown_certificate(proxy.proxy.port()),
        first,
        "the certificate is the old one"
    );

    // the command says the same, check beforehand; both end with 2 and one sentence
    let backend = backend_of(&sound);
    proxy.write(&sound.replace(backend, "backend = \"127.0.0.1:1\""));
    fs::write(proxy.proxy.keys(), &keys).expect("written");
    for command in ["reload", "check"] {
        let (done, said) = proxy.proxy.command(&[command]);
        assert!(!done && said.contains("backend: "), "{command}: {said}");
        assert!(said.contains("start it anew"), "{command}: {said}");
    }
    what_is_right_is_taken(&proxy, session, &server, &sound);
}

/// A certificate, a key, limits.
fn what_is_right_is_taken(proxy: &Reloadable, mut session: Session, server: &Server, sound: &str) {
    let first = shown_certificate(proxy.proxy.port());
    proxy.write(&format!(
        "max_logins = 7\n{}",
        sound.replace("one.", "two.")
    ));
    for command in [&["keys", "add"][..], &["keys", "use", "2"]] {
        let (made, said) = proxy.proxy.command(command);
        assert!(made, "{said}");
    }
    let said = proxy.must_reload();
    for words in [
        "max_logins: not set → 7",
        "two.pem",
        "data keys: 1; new columns under 1 → 1, 2",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
    assert!(!said.contains("BEGIN"), "{said}");
    assert_ne!(shown_certificate(proxy.proxy.port()), first);
    session.must("CREATE TABLE app.later (id INT, v VARCHAR(50))");
    session.must("INSERT INTO app.later VALUES (1, 'two')");
    assert_eq!(
        session
            .text("SELECT v FROM app.later WHERE v = 'two'")
            .expect("a row"),
        "two"
    );
    assert_eq!(
        session
            .text("SELECT v FROM app.t WHERE v = 'one'")
            .expect("a row"),
        "one"
    );
    let mut direct = server.connect();
    let key = direct.text(
        "SELECT SUBSTRING_INDEX(SUBSTRING_INDEX(column_comment, '|', 5), '|', -1) FROM information_schema.columns \
         WHERE table_name = 'later' AND column_name LIKE '%$enc'",
    );
    assert_eq!(
        key.expect("a key"),
        "2",
        "new columns are under the new key"
    );
}

/// Where a client connects.
#[derive(Clone)]
enum Door {
    Port(u16),
    Socket(PathBuf),
}

impl Door {
    fn enter(&self) -> Result<Session, Failure> {
        match self {
            Door::Port(port) => Session::try_open(*port, "root", "", Some("app")),
            Door::Socket(path) => Session::try_open_at(path, "root", Some("app")),
        }
    }
}

/// Clients that come and go all the time, until they are told to end.
struct Crowd {
    stop: Arc<AtomicBool>,
    served: Arc<AtomicU64>,
    clients: Vec<thread::JoinHandle<Vec<String>>>,
}

impl Crowd {
    /// Of one client at each door.
    fn begin(doors: Vec<Door>) -> Crowd {
        let (stop, served) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let client = |(number, door): (usize, Door)| {
            let (stop, served) = (stop.clone(), served.clone());
            thread::spawn(move || {
                let mut errors = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    let done = (|| {
                        let mut session = door.enter()?;
                        let insert = format!("INSERT INTO t (v) VALUES ('client {number}')");
                        session.run(&insert)?;
                        session.execute("SELECT COUNT(*) FROM t WHERE v = ?", ("nobody",))
                    })();
                    match done {
                        Ok(_) => drop(served.fetch_add(1, Ordering::SeqCst)),
                        Err(failure) => errors.push(failure.to_string()),
                    }
                }
                errors
            })
        };
        let clients = doors.into_iter().enumerate().map(client).collect();
        Crowd {
            stop,
            served,
            clients,
        }
    }

    /// Waits until so many more were served.
    fn until_served(&self, more: u64) {
        let until = self.served.load(Ordering::SeqCst) + more;
        wait_until("clients are served", SOON, || {
            self.served.load(Ordering::SeqCst) >= until
        });
    }

    fn end(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        for client in self.clients {
            let errors = client.join().expect("no panic");
            assert!(
                errors.is_empty(),
                "{} errors, first {:?}",
                errors.len(),
                errors.first()
            );
        }
        self.served.load(Ordering::SeqCst)
    }
}

/// Each event of sysbench is a connection of its own.
const CONNECTS: &str = "
function thread_init()
    drv = sysbench.sql.driver()
end
function event()
    local con = drv:connect()
    con:query(\"INSERT INTO t (v) VALUES ('sysbench')\")
    con:query(\"SELECT COUNT(*) FROM t WHERE v = 'nobody'\")
    con:disconnect()
end
";

/// sysbench ends with the first error that it meets: there is none.
fn sysbench_meets_no_error(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut proxy = Reloadable::start(&server, "[protect.\"app.*\"]\nv = [\"eq\"]\n");
    let mut setup = proxy.proxy.connect();
    setup.must("CREATE DATABASE app");
    setup.must("CREATE TABLE app.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(50))");
    drop(setup);
    let script = proxy.proxy.folder().join("connects.lua");
    fs::write(&script, CONNECTS).expect("written");
    let script = script.to_str().expect("a plain path");
    let load = Sysbench::new(proxy.proxy.port(), script).database("app");
    let load = load.threads(4).seconds(8);
    let runs = thread::spawn(move || load.run("run"));
    let sound = proxy.config();
    let mut successors: Vec<Child> = Vec::new();
    for round in 0..4 {
        thread::sleep(Duration::from_millis(600));
        proxy.write(&format!("max_logins = {}\n{sound}", 40 + round));
        proxy.must_reload();
        let name = format!("sysbench-{round}.log");
        successors.push(proxy.successor(&name));
        wait_until("it serves", SOON, || {
            proxy.log_of(&name).contains("listening on")
        });
    }
    let report = runs.join().expect("sysbench ends without an error");
    let rows = server.connect().text("SELECT COUNT(*) FROM app.t");
    let label = "total number of events:";
    let events = report
        .text
        .lines()
        .find_map(|line| line.trim().strip_prefix(label));
    let events: u64 = events
        .and_then(|n| n.trim().parse().ok())
        .expect("a number");
    assert_eq!(rows.expect("a count"), events.to_string());
    assert!(events > 200, "{events}");
    assert_eq!(report.ignored_errors, 0);
    announce(&format!(
        "sysbench on {}: {} connections over four reloads and four handovers",
        kind.name(),
        events
    ));
    let mut last = successors.pop().expect("one");
    signal("TERM", last.id());
    wait_until("the last one ends", SOON, || ended(&mut last));
    proxy.proxy.kill9();
}

fn no_connection_is_lost(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("front.sock");
    let second = free_port();
    let addresses = vec![
        format!("unix:{}", socket.display()),
        format!("127.0.0.1:{second}"),
    ];
    let tables = "[protect.\"app.*\"]\nv = [\"eq\"]\n";
    let mut proxy = Reloadable::start_at(&server, tables, addresses);
    let mut setup = proxy.proxy.connect();
    setup.must("CREATE DATABASE app");
    setup.must("CREATE TABLE app.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(50))");
    let doors = [
        Door::Port(proxy.proxy.port()),
        Door::Port(second),
        Door::Socket(socket.clone()),
    ];
    let crowd = Crowd::begin([&doors[..], &doors].concat());
    crowd.until_served(20);
    let sound = proxy.config();
    for round in 0..4 {
        let rule = format!("[protect.\"other.{round}\"]\nx = [\"eq\"]\n");
        proxy.write(&format!("max_logins = {}\n{sound}\n{rule}", 40 + round));
        proxy.must_reload();
        crowd.until_served(20);
    }

    // an open session stays with the old program, which ends with it
    let mut first = Some(setup);
    let mut successors: Vec<Child> = Vec::new();
    for round in 0..3 {
        let name = format!("successor-{round}.log");
        successors.push(proxy.successor(&name));
        wait_until("it serves", SOON, || {
            proxy.log_of(&name).contains("listening on")
        });
        crowd.until_served(20);
        assert!(
            http(proxy.admin, "/live").is_some(),
            "the administration address is served"
        );
        match first.take() {
            Some(mut session) => {
                assert_eq!(session.text("SELECT 1").expect("it goes on"), "1");
                drop(session);
                let log = || proxy.proxy.log();
                wait_until("the first one ends", SOON, || log().contains("ended"));
            }
            None => {
                let before = &mut successors[round - 1];
                wait_until("the one before ends", SOON, || ended(before));
                let status = before.try_wait().expect("waited").expect("ended");
                assert!(status.success(), "{status}");
            }
        }
        // the socket answers for the new one
        assert!(proxy.must_reload().contains("in force"));
    }
    let served = crowd.end();
    assert!(served > 150, "{served}");
    let mut direct = server.connect();
    let rows = direct.text("SELECT COUNT(*) FROM app.t").expect("a count");
    assert_eq!(
        rows,
        served.to_string(),
        "each of them has written its row once"
    );
    // an address that the next one does not have is gone at once, those that it has are not
    proxy.addresses.remove(0);
    let held = Session::try_open(second, "root", "", None).expect("a session");
    successors.push(proxy.successor("fewer.log"));
    wait_until("it serves", SOON, || {
        proxy.log_of("fewer.log").contains("listening on")
    });
    wait_until("the socket's file is gone", SOON, || !socket.exists());
    assert!(doors[2].enter().is_err());
    assert!(doors[0].enter().is_ok() && doors[1].enter().is_ok());
    drop(held);
    let mut last = successors.pop().expect("one");
    signal("TERM", last.id());
    wait_until("the last one ends", SOON, || ended(&mut last));
    assert!(
        !proxy.proxy.folder().join("control.sock").exists(),
        "its socket is removed"
    );
    proxy.proxy.kill9();
}
