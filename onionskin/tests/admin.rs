//! The administration address: `/live` and `/ready` tell the truth, also while the server is gone
//! and while the proxy ends; a token is asked for where others could listen; clients of this
//! address, however hostile, keep nobody else from it. What it tells of memory is what is held.

#[path = "admin/bounds.rs"]
mod bounds;
#[path = "admin/metrics.rs"]
mod metrics;
#[path = "admin/slow_log.rs"]
mod slow_log;
#[path = "admin/status.rs"]
mod status;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use onionskin_testkit::*;

on_both_servers!(
    ready_while_the_server_is,
    the_server_counts_no_probe,
    not_ready_from_the_signal_on,
    not_ready_without_the_scratch_engine,
);

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Longer than a good answer counts.
const SOON: Duration = Duration::from_secs(15);

/// What the administration address has answered.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn read(mut from: impl Read) -> Option<Answer> {
        let mut text = Vec::new();
        // A connection that is reset has said what it has to say.
        let _ = from.read_to_end(&mut text);
        let text = String::from_utf8(text).expect("text");
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
        Some(Answer {
            status,
            head: head.to_lowercase(),
            body: body.into(),
        })
    }
}

/// Sends these bytes and reads what comes back.
fn send(port: u16, request: &[u8]) -> Option<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the administration address");
    stream
        .set_read_timeout(Some(Duration::from_secs(15)))
        .expect("a time limit");
    // It may have answered before all of it is sent.
    let _ = stream.write_all(request);
    Answer::read(stream)
}

fn ask(port: u16, method: &str, path: &str, headers: &str) -> Answer {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    send(port, request.as_bytes()).expect("an answer")
}

fn get(port: u16, path: &str) -> Answer {
    ask(port, "GET", path, "")
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// A proxy with an administration address, and its port.
fn administered(server: &Server, settings: &str) -> (Proxy, u16) {
    let port = free_port();
    let options = ProxyOptions {
        settings: format!("admin = \"127.0.0.1:{port}\"\n{settings}"),
        ..ProxyOptions::default()
    };
    (Proxy::start_with(server, options), port)
}

/// Asks until this is the answer.
fn until_ready_says(port: u16, status: u16, part: &str) {
    wait_until(&format!("/ready says {status} {part}"), SOON, || {
        let answer = get(port, "/ready");
        answer.status == status && answer.body.contains(part)
    });
}

fn ready_while_the_server_is(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(mut server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let (mut proxy, port) = administered(&server, "");
    let live = get(port, "/live");
    assert_eq!((live.status, &*live.body), (200, "live\n"));
    let ready = get(port, "/ready");
    assert_eq!(ready.status, 200, "{ready:?}");
    assert_eq!(ready.body, "ready\nproxy: ok\nkeys: ok\nserver: ok\n");
    assert!(ready.head.contains("content-type: text/plain"), "{ready:?}");

    server.kill9();
    until_ready_says(port, 503, "server: cannot be reached");
    assert_eq!(get(port, "/live").status, 200, "the proxy itself lives");
    server.restart();
    until_ready_says(port, 200, "server: ok");
    proxy.assert_healthy();
}

fn the_server_counts_no_probe(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(mut far) = Far::start(kind, &["--max-connect-errors=2"]) else {
        return;
    };
    let port = free_port();
    let proxy = far.proxy(&format!("admin = \"127.0.0.1:{port}\""));
    let begin = Instant::now();
    let mut asked = 0;
    while begin.elapsed() < Duration::from_secs(17) {
        assert_eq!(get(port, "/ready").status, 200);
        asked += 1;
        thread::sleep(Duration::from_millis(50));
    }
    assert!(asked > 100, "{asked}");
    assert_eq!(far.broken_off(), 0, "no probe is a broken-off login");
    // Three answers count for five seconds each; the proxy's start is a connection, too.
    let mut admin = far.server.connect();
    let shown = admin.text("SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Connections'");
    let connections: u64 = shown.expect("a count").parse().expect("a number");
    assert!(
        connections < 25,
        "{connections} connections for {asked} questions"
    );
    drop(proxy);
}

fn not_ready_from_the_signal_on(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let (mut proxy, port) = administered(&server, "");
    let mut session = proxy.connect();
    assert_eq!(get(port, "/ready").status, 200);
    let statement = thread::spawn(move || session.text("SELECT SLEEP(3)"));
    thread::sleep(Duration::from_millis(500));
    signal("TERM", proxy.pid().expect("a process"));
    let begin = Instant::now();
    wait_until("503", Duration::from_secs(1), || {
        get(port, "/ready").status == 503
    });
    let ready = get(port, "/ready");
    assert!(ready.body.contains("proxy: is ending"), "{ready:?}");
    assert!(ready.body.contains("server: ok"), "{ready:?}");
    assert_eq!(get(port, "/live").status, 200);
    assert!(begin.elapsed() < Duration::from_secs(2), "while it drains");
    let answered = statement.join().expect("no panic");
    assert_eq!(answered.expect("the statement is finished"), "0");
    // A second signal, this late, would cut it off.
    wait_until("the proxy ends", SOON, || proxy.log().contains("ended"));
    proxy.terminate();
}

fn not_ready_without_the_scratch_engine(kind: Kind) {
    let port = free_port();
    let settings = format!("admin = \"127.0.0.1:{port}\"");
    let options = PairOptions {
        settings: &settings,
        engine: Engine::Own,
        ..PairOptions::default()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    until_ready_says(port, 200, "scratch: ok");
    pair.engine_mut().kill9();
    until_ready_says(port, 503, "scratch: cannot be reached");
    assert!(get(port, "/ready").body.contains("server: ok"));
}

// --- one server is enough for these: they end before it ---

/// The lines of docs/production.md, with HAProxy itself.
#[test]
fn haproxy_takes_a_proxy_out_that_is_not_ready() {
    let mut server = Server::mariadb();
    let (proxy, port) = administered(&server, "");
    if direct_mode() || !Path::new("/usr/sbin/haproxy").exists() {
        announce("SKIPPED: no HAProxy");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let stats = folder.path().join("stats");
    let front = free_port();
    let config = format!(
        "global\n stats socket {}\ndefaults\n mode tcp\n timeout connect 2s\n timeout client 60s\n timeout server 60s\n\
         listen onionskin\n bind 127.0.0.1:{front}\n option httpchk\n http-check send meth GET uri /ready\n http-check expect status 200\n \
         server one 127.0.0.1:{} check port {port} inter 500ms fall 2 rise 1\n",
        stats.display(),
        proxy.port()
    );
    let file = folder.path().join("haproxy.cfg");
    fs::write(&file, config).expect("written");
    let mut haproxy = Command::new("setpriv")
        .args([
            "--pdeathsig",
            "KILL",
            "--",
            "/usr/sbin/haproxy",
            "-db",
            "-f",
        ])
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("HAProxy starts");
    let status = || {
        let mut stream = UnixStream::connect(&stats).ok()?;
        stream.write_all(b"show stat\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let line = text
            .lines()
            .find(|line| line.starts_with("onionskin,one,"))?;
        line.split(',').nth(17).map(str::to_owned)
    };
    let says = |wanted: &str| status().is_some_and(|now| now.starts_with(wanted));
    wait_until("HAProxy has it up", SOON, || {
        says("UP") && status().as_deref() == Some("UP")
    });
    assert_eq!(
        Session::open(front, "root", "", None)
            .text("SELECT 1")
            .expect("a row"),
        "1"
    );
    server.kill9();
    wait_until("HAProxy has it down", SOON, || {
        status().as_deref() == Some("DOWN")
    });
    server.restart();
    wait_until("HAProxy has it up again", SOON, || {
        status().as_deref() == Some("UP")
    });
    let _ = haproxy.kill();
    let _ = haproxy.wait();
}

/// What `onionskin serve` says of these settings, which it must not start with.
fn refused_start(folder: &Path, settings: &str) -> String {
    let config = folder.join("onionskin.toml");
    if !config.exists() {
        let made = Command::new(env!("CARGO_BIN_EXE_onionskin"))
            .args(["init", "--dir"])
            .arg(folder)
            .status();
        assert!(made.expect("onionskin runs").success());
    }
    let listen = format!("listen = \"127.0.0.1:{}\"\n", free_port());
    fs::write(&config, format!("{listen}{settings}\n")).expect("written");
    let output = Command::new("timeout")
        .args(["20", env!("CARGO_BIN_EXE_onionskin"), "serve", "-c"])
        .arg(&config)
        .output()
        .expect("onionskin runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{settings}: {said}");
    assert_ne!(
        output.status.code(),
        Some(124),
        "{settings}: it has started"
    );
    assert!(!said.contains("listening on"), "{settings}: {said}");
    said
}

#[test]
fn what_cannot_be_served_is_said_before_anything_listens() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("proxy");
    let open = |settings: &str| refused_start(&folder, settings);

    let said = open("admin = \"0.0.0.0:3380\"");
    assert!(
        said.contains("can be reached from other machines"),
        "{said}"
    );
    assert!(said.contains("admin_token_file"), "{said}");
    let said = open("admin = \"3380\"");
    assert!(said.contains("neither host:port nor unix:/path"), "{said}");
    assert!(said.contains("line 2"), "{said}");
    let said = open("admin_token_file = \"token\"");
    assert!(said.contains("without admin"), "{said}");

    let with_token = "admin = \"0.0.0.0:3380\"\nadmin_token_file = \"token\"";
    let said = open(with_token);
    assert!(said.contains("token: No such file"), "{said}");
    let token = folder.join("token");
    let write = |text: &str, mode: u32| {
        fs::write(&token, text).expect("written");
        fs::set_permissions(&token, fs::Permissions::from_mode(mode)).expect("a mode");
    };
    write(TOKEN, 0o644);
    let said = open(with_token);
    assert!(said.contains("644"), "{said}");
    write("short", 0o600);
    assert!(open(with_token).contains("fewer than 16 characters"));
    write("0123456789 abcdef0123", 0o600);
    assert!(open(with_token).contains("no blanks"));

    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let said = open(&format!("admin = \"127.0.0.1:{port}\""));
    assert!(said.contains("cannot listen on admin"), "{said}");
    assert!(said.contains("in use"), "{said}");
    let file = folder.join("no-socket");
    fs::write(&file, "data").expect("written");
    let said = open(&format!("admin = \"unix:{}\"", file.display()));
    assert!(said.contains("no socket"), "{said}");
    // One sentence: the program says nothing else on its way.
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_token_opens_what_is_more_than_a_status() {
    let server = Server::mariadb();
    let port = free_port();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    fs::write(&file, format!("{TOKEN}\n")).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    let options = ProxyOptions {
        settings: format!(
            "admin = \"0.0.0.0:{port}\"\nadmin_token_file = \"{}\"",
            file.display()
        ),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::start_with(&server, options);
    if direct_mode() {
        return;
    }
    // A status needs none, and then there are no reasons.
    assert_eq!(get(port, "/live").status, 200);
    assert_eq!(get(port, "/ready").body, "ready\n");
    let metrics = get(port, "/metrics");
    assert_eq!(metrics.status, 401);
    assert!(
        metrics.head.contains("www-authenticate: bearer"),
        "{metrics:?}"
    );
    // The right one opens everything.
    let shown = bearer(TOKEN);
    assert!(
        ask(port, "GET", "/ready", &shown)
            .body
            .contains("server: ok")
    );
    assert_eq!(ask(port, "GET", "/metrics", &shown).status, 200);
    // A wrong one opens nothing.
    for wrong in [&TOKEN[1..], &format!("{TOKEN}0"), "", "Basic"] {
        for path in ["/live", "/ready", "/metrics", "/"] {
            let answer = ask(port, "GET", path, &bearer(wrong));
            assert_eq!(answer.status, 401, "{wrong} {path}");
        }
    }
    let twice = bearer(TOKEN).repeat(2);
    assert_eq!(ask(port, "GET", "/metrics", &twice).status, 401);
    drop(proxy);
}

#[test]
fn a_unix_socket_serves_and_goes_with_the_proxy() {
    let server = Server::mariadb();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("admin.sock");
    let options = ProxyOptions {
        settings: format!("admin = \"unix:{}\"", path.display()),
        ..ProxyOptions::default()
    };
    let mut proxy = Proxy::start_with(&server, options);
    if direct_mode() {
        return;
    }
    let ask = |path: &Path| {
        let mut stream = UnixStream::connect(path).expect("the socket");
        stream
            .write_all(b"GET /ready HTTP/1.0\r\n\r\n")
            .expect("sent");
        Answer::read(stream).expect("an answer").status
    };
    assert_eq!(ask(&path), 200);
    let mode = fs::metadata(&path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o660);
    // What a process that was killed leaves behind is no obstacle.
    proxy.kill9();
    assert!(path.exists());
    proxy.restart();
    assert_eq!(ask(&path), 200);
    proxy.terminate();
    assert!(!path.exists(), "removed in the end");
}

#[test]
fn nothing_but_the_three_paths_is_answered() {
    let server = Server::mariadb();
    let (proxy, port) = administered(&server, "");
    if direct_mode() {
        return;
    }
    for path in [
        "/",
        "/metric",
        "/metrics/",
        "//live",
        "/live/../metrics",
        "*",
    ] {
        assert_eq!(get(port, path).status, 404, "{path}");
    }
    assert_eq!(get(port, "/live?verbose=1").status, 200);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "get"] {
        let answer = ask(port, method, "/live", "Content-Length: 4\r\n");
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.head.contains("allow: get, head"), "{answer:?}");
    }
    let head = ask(port, "HEAD", "/live", "");
    assert_eq!((head.status, &*head.body), (200, ""));
    assert!(head.head.contains("content-length: 5"), "{head:?}");
    // One request for each connection.
    let twice = b"GET /live HTTP/1.1\r\nHost: t\r\n\r\nGET /live HTTP/1.1\r\nHost: t\r\n\r\n";
    let answer = send(port, twice).expect("an answer");
    assert_eq!(answer.body, "live\n", "the second request is not answered");
    assert!(answer.head.contains("connection: close"), "{answer:?}");
    drop(proxy);
}

#[test]
fn requests_are_bounded() {
    let server = Server::mariadb();
    let (mut proxy, port) = administered(&server, "");
    if direct_mode() {
        return;
    }
    let status = |request: &[u8]| send(port, request).map(|answer| answer.status);
    // Sizes.
    let long = format!("GET /live HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(100_000));
    assert_eq!(status(long.as_bytes()), Some(431));
    let endless = "a".repeat(1_000_000);
    assert!(matches!(status(endless.as_bytes()), Some(400 | 431)));
    let many = format!("GET /live HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(100));
    assert_eq!(status(many.as_bytes()), Some(431));
    // What is no HTTP.
    assert_eq!(status(b"\x16\x03\x01\x02\x00\x01\x00\n"), Some(400));
    assert_eq!(status(b"GET /live\r\n\r\n"), Some(400));
    assert_eq!(
        status(b"GET /live HTTP/1.1\r\nbad header\r\n\r\n"),
        Some(400)
    );
    assert_eq!(status(&onionskin_testkit::noise(4000, 7)), Some(400));
    // Time: silence, and a head that drips.
    let begin = Instant::now();
    assert_eq!(status(b"GET /live HTTP/1.1\r\n"), Some(408));
    assert!(
        begin.elapsed() > Duration::from_secs(4),
        "{:?}",
        begin.elapsed()
    );
    assert!(
        begin.elapsed() < Duration::from_secs(8),
        "{:?}",
        begin.elapsed()
    );
    let mut drip = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    let begin = Instant::now();
    while drip.write_all(b"A: b\r\n").is_ok() && begin.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(100));
    }
    assert!(
        begin.elapsed() < Duration::from_secs(8),
        "{:?}",
        begin.elapsed()
    );
    proxy.assert_healthy();
}

#[test]
fn hundreds_of_silent_connections_keep_nobody_out() {
    let server = Server::mariadb();
    let (mut proxy, port) = administered(&server, "");
    if direct_mode() {
        return;
    }
    let threads = |proxy: &Proxy| {
        let path = format!("/proc/{}/task", proxy.pid().expect("a process"));
        fs::read_dir(path).expect("its threads").count()
    };
    get(port, "/ready");
    let before = threads(&proxy);
    let mut silent = Vec::new();
    for round in 0..300 {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
        if round % 2 == 0 {
            let _ = stream.write_all(b"GET /live HTTP/1.1\r\nX: ");
        }
        silent.push(stream);
        if round % 30 == 29 {
            let begin = Instant::now();
            assert_eq!(get(port, "/live").status, 200, "round {round}");
            assert!(
                begin.elapsed() < Duration::from_secs(2),
                "{:?}",
                begin.elapsed()
            );
        }
        // Threads that have left the desk are there until the system has ended them.
        let bound = before + 34;
        let what = format!("{bound} threads at most, {} now", threads(&proxy));
        wait_until(&what, Duration::from_secs(3), || threads(&proxy) <= bound);
    }
    // The proxy's own clients have not noticed.
    assert_eq!(proxy.connect().text("SELECT 1").expect("a row"), "1");
    drop(silent);
    proxy.assert_healthy();
}
