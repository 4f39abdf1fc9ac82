//! Before the login: whoever can reach the proxy's address can open connections, break them off,
//! and be slow. Nobody else notices, and the server does not block the proxy's address
//! (`max_connect_errors`).

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use onionskin_testkit::*;

on_both_servers!(
    no_broken_login_is_counted,
    a_hundred_logins_end_after_the_switch,
    slow_sockets_keep_nobody_out,
    a_rate_of_silent_connections_keeps_nobody_out,
    a_login_that_drips_has_one_deadline,
    packets_before_the_login_are_small,
);

const NATIVE: &[u8] = b"mysql_native_password";
const CACHING: &[u8] = b"caching_sha2_password";
const CLEAR: &[u8] = b"mysql_clear_password";

/// LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH.
const CAPABILITIES: u32 = 0x1 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
const WITH_DATABASE: u32 = 0x8;
const SSL: u32 = 0x800;
const PLUGIN_AUTH: u32 = 0x8_0000;
const ATTRIBUTES: u32 = 0x10_0000;

/// A login with whatever a client may put into it.
struct Login<'a> {
    capabilities: u32,
    charset: u8,
    answer: &'a [u8],
    database: Option<&'a [u8]>,
    plugin: &'a [u8],
    attributes: Option<usize>,
}

impl Default for Login<'_> {
    fn default() -> Self {
        Login {
            capabilities: CAPABILITIES,
            charset: 45,
            answer: b"",
            database: None,
            plugin: CLEAR,
            attributes: None,
        }
    }
}

impl Login<'_> {
    fn packet(&self) -> Vec<u8> {
        let mut capabilities = self.capabilities;
        if self.database.is_some() {
            capabilities |= WITH_DATABASE;
        }
        if self.attributes.is_some() {
            capabilities |= ATTRIBUTES;
        }
        let mut payload = capabilities.to_le_bytes().to_vec();
        payload.extend((16u32 << 20).to_le_bytes());
        payload.push(self.charset);
        payload.extend([0; 23]);
        payload.extend(b"far\0");
        payload.push(self.answer.len() as u8);
        payload.extend(self.answer);
        if let Some(database) = self.database {
            payload.extend(database);
            payload.push(0);
        }
        if capabilities & PLUGIN_AUTH != 0 {
            payload.extend(self.plugin);
            payload.push(0);
        }
        if let Some(length) = self.attributes {
            payload.push(0xfd);
            payload.extend(&(length as u32).to_le_bytes()[..3]);
            payload.extend(b"\x01n\xfd");
            payload.extend(&(length as u32 - 6).to_le_bytes()[..3]);
            payload.extend(vec![b'v'; length - 6]);
        }
        packet(1, &payload)
    }
}

/// A connection that has the greeting.
fn greeted(port: u16) -> RawClient {
    let mut client = RawClient::connect(port);
    let greeting = client.read();
    assert!(matches!(greeting, Reply::Packet(_)), "{greeting:?}");
    client
}

/// Logs in so, gives the answers to what is asked, and leaves.
fn misbehave(port: u16, login: &Login<'_>, answers: &[&[u8]]) {
    let mut client = greeted(port);
    client.send(&login.packet());
    for answer in answers {
        let (sequence, Reply::Packet(reply)) = client.read_numbered() else {
            return;
        };
        if reply.first() == Some(&0) {
            return;
        }
        client.send(&packet(sequence.wrapping_add(1), answer));
    }
    if answers.is_empty() {
        client.read();
    }
}

fn ssl_request() -> Vec<u8> {
    let mut payload = (CAPABILITIES | SSL).to_le_bytes().to_vec();
    payload.extend((16u32 << 20).to_le_bytes());
    payload.push(45);
    payload.extend([0; 23]);
    packet(1, &payload)
}

/// What it is called, and who does it at a port.
type Misdeed = (&'static str, fn(Kind, u16));

/// What clients do wrong before they are logged in.
const MISDEEDS: [Misdeed; 7] = [
    (
        "greetings that are broken off",
        greetings_that_are_broken_off,
    ),
    (
        "clients that leave after a switch, or where the password is asked for",
        clients_that_leave_where_they_are_asked,
    ),
    ("answers of strange lengths", answers_of_strange_lengths),
    ("passwords of strange forms", passwords_of_strange_forms),
    ("character sets", every_character_set),
    ("names of databases", names_of_databases),
    ("attributes and capabilities", attributes_and_capabilities),
];

fn greetings_that_are_broken_off(_: Kind, port: u16) {
    for bytes in [
        b"".to_vec(),
        b"\x20".to_vec(),
        packet(1, b"hello"),
        packet(7, &Login::default().packet()[4..]),
        packet(1, b"\x05\x00\x00\x00\x40root\0"),
        ssl_request(),
        [ssl_request(), noise(200, 1)].concat(),
    ] {
        greeted(port).send(&bytes);
    }
}

fn clients_that_leave_where_they_are_asked(_: Kind, port: u16) {
    for plugin in [
        NATIVE,
        CACHING,
        CLEAR,
        b"client_ed25519",
        b"",
        b"sha256_password",
        b"dialog",
    ] {
        misbehave(
            port,
            &Login {
                plugin,
                ..Login::default()
            },
            &[],
        );
        misbehave(
            port,
            &Login {
                plugin,
                answer: &[7; 20],
                ..Login::default()
            },
            &[],
        );
        misbehave(
            port,
            &Login {
                plugin,
                answer: &[7; 32],
                ..Login::default()
            },
            &[],
        );
    }
}

fn answers_of_strange_lengths(_: Kind, port: u16) {
    for length in [0, 1, 2, 5, 20, 21, 32, 64, 200] {
        misbehave(port, &Login::default(), &[&vec![7; length]]);
        misbehave(
            port,
            &Login {
                plugin: NATIVE,
                answer: &vec![7; length],
                ..Login::default()
            },
            &[],
        );
        misbehave(
            port,
            &Login {
                plugin: CACHING,
                answer: &vec![7; length],
                ..Login::default()
            },
            &[],
        );
    }
}

fn passwords_of_strange_forms(_: Kind, port: u16) {
    for password in [&b""[..], &[0], &[2], b"abc\0", &[9; 256], &[9; 400]] {
        misbehave(port, &Login::default(), &[&[7; 32], password]);
        misbehave(port, &Login::default(), &[&[7; 32], &[2], password]);
    }
}

fn every_character_set(_: Kind, port: u16) {
    for charset in 0..=255 {
        misbehave(
            port,
            &Login {
                charset,
                ..Login::default()
            },
            &[&[7; 20]],
        );
    }
}

fn names_of_databases(kind: Kind, port: u16) {
    for (charset, database) in [
        (45, &b"\xff\xfe"[..]),
        (13, b"\xff\xfe"),
        (8, b"\xff"),
        (28, b"\x81"),
        (45, &[b'd'; 200]),
    ] {
        // The first answer may be right as far as the server knows.
        let plugin = match kind {
            Kind::MariaDb => NATIVE,
            Kind::MySql => CACHING,
        };
        misbehave(
            port,
            &Login {
                charset,
                database: Some(database),
                plugin,
                answer: &[7; 20],
                ..Login::default()
            },
            &[],
        );
    }
}

fn attributes_and_capabilities(_: Kind, port: u16) {
    for attributes in [0x100, 60_000, 65_535, 70_000] {
        misbehave(
            port,
            &Login {
                attributes: Some(attributes),
                ..Login::default()
            },
            &[&[7; 20]],
        );
    }
    misbehave(
        port,
        &Login {
            capabilities: CAPABILITIES & !PLUGIN_AUTH,
            answer: &[7; 20],
            ..Login::default()
        },
        &[],
    );
    misbehave(
        port,
        &Login {
            capabilities: CAPABILITIES & !PLUGIN_AUTH,
            answer: b"12345",
            ..Login::default()
        },
        &[],
    );
}

fn no_broken_login_is_counted(kind: Kind) {
    let Some(mut far) = Far::start(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    // MariaDB has an account for another method, too.
    let settings = ["backend_tls = \"never\"", "backend_tls = \"preferred\""];
    for settings in settings {
        let mut proxy = far.proxy(settings);
        let port = proxy.port();
        let mut check = |what: &str| {
            thread::sleep(Duration::from_millis(300));
            assert_eq!(far.broken_off(), 0, "{settings}: {what}");
        };
        for (what, misdeed) in MISDEEDS {
            misdeed(kind, port);
            check(what);
        }
        // Clients that fall silent: servers wait for ten seconds.
        let mut silent: Vec<RawClient> = (0..3).map(|_| greeted(port)).collect();
        silent[1].send(&Login::default().packet());
        silent[2].send(&packet(1, &[1; 100])[..50]);
        for client in &mut silent {
            while matches!(client.read(), Reply::Packet(_)) {}
            assert!(client.closes());
        }
        check("clients that are silent");
        proxy.assert_healthy();
        drop(silent);
    }
    far.wait_until_idle();
    // Names of databases still are what they are.
    let mut admin = far.server.connect();
    admin.must("CREATE DATABASE `schön`");
    let proxy = far.proxy("");
    let mut session = Session::open(proxy.port(), "far", "away", Some("schön"));
    assert_eq!(session.text("SELECT DATABASE()").expect("a row"), "schön");
    let missing = Session::try_open(proxy.port(), "far", "away", Some("häßlich"));
    assert_eq!(missing.err().map(|failure| failure.code), Some(1049));
    // The count is one that counts.
    drop(TcpStream::connect((far.address.as_str(), far.server.port())).expect("it listens"));
    wait_until(
        "the server counts what is broken off",
        Duration::from_secs(10),
        || far.broken_off() > 0,
    );
}

fn threads(proxy: &Proxy) -> usize {
    let pid = proxy.pid().expect("a proxy");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with("Threads:"));
    let count = line.and_then(|line| line.split_whitespace().nth(1));
    count
        .and_then(|count| count.parse().ok())
        .expect("a number")
}

/// They name mysql_clear_password, with a password in the first answer, and close after the
/// server's switch to another method.
fn a_hundred_logins_end_after_the_switch(kind: Kind) {
    const SECRET: &[u8] = b"a password in clear\0";
    let Some(mut far) = Far::start(kind, &["--max-connect-errors=3"]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let mut proxy = far.proxy("backend_tls = \"never\"");
    let relay = Relay::start(far.server.port());
    let recorded = Proxy::start_with(
        &far.server,
        ProxyOptions {
            backend: Some(relay.address()),
            settings: "backend_tls = \"never\"".into(),
            ..ProxyOptions::default()
        },
    );
    let before = (threads(&proxy), threads(&recorded));
    for port in [proxy.port(), recorded.port()] {
        thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(move || {
                    let login = Login {
                        answer: SECRET,
                        ..Login::default()
                    };
                    misbehave(port, &login, &[]);
                });
            }
        });
    }
    far.wait_until_idle();
    assert_eq!(far.broken_off(), 0);
    wait_until("no thread stays", Duration::from_secs(30), || {
        threads(&proxy) <= before.0 && threads(&recorded) <= before.1
    });
    let sent = relay.sent_to_server();
    assert!(sent.len() > 100 * 30, "the logins reached the server");
    assert!(
        // not its first words: methods of logins are called so
        !sent.windows(8).any(|w| w == &SECRET[11..19]),
        "a password in clear"
    );
    let through = Cli::tcp(kind, far.proxy("").port(), "far", "away").run("SELECT 1");
    assert!(through.success, "{}", through.err);
    proxy.assert_healthy();
}

/// Sends a byte of a login now and then over each of many sockets, and opens those anew that are
/// closed.
fn drip(port: u16, sockets: usize, over: &AtomicBool) -> usize {
    let bytes = [&[250, 0, 0, 1][..], &[b'x'; 250]].concat();
    let open = || {
        let socket = TcpStream::connect(("127.0.0.1", port)).ok()?;
        socket.set_nonblocking(true).ok()?;
        Some((socket, 0))
    };
    let mut dripping: Vec<Option<(TcpStream, usize)>> = (0..sockets).map(|_| open()).collect();
    let mut most = 0;
    while !over.load(Ordering::Relaxed) {
        for slot in &mut dripping {
            let lives = slot.as_mut().is_some_and(|(socket, sent)| {
                let mut byte = [0; 256];
                let read = match socket.read(&mut byte) {
                    Ok(n) => n > 0,
                    Err(e) => e.kind() == ErrorKind::WouldBlock,
                };
                let at = *sent % bytes.len();
                *sent += 1;
                read && socket.write_all(&bytes[at..=at]).is_ok()
            });
            if !lives {
                *slot = open();
            }
        }
        most = most.max(dripping.iter().flatten().count());
        thread::sleep(Duration::from_millis(100));
    }
    most
}

/// Five hundred sockets drip, on a server that takes 151 connections as servers do by default,
/// while others log in and work.
fn slow_sockets_keep_nobody_out(kind: Kind) {
    let Some(mut far) = Far::start(kind, &["--max-connections=151", "--max-connect-errors=10"])
    else {
        return;
    };
    if direct_mode() {
        return;
    }
    let mut proxy = far.proxy("");
    let port = proxy.port();
    let mut settled = Session::open(port, "far", "away", None);
    settled.must("CREATE DATABASE app");
    settled.must("CREATE TABLE app.t (id INT PRIMARY KEY)");
    let before = threads(&proxy);
    let over = AtomicBool::new(false);
    let (logins, slowest, most) = thread::scope(|scope| {
        let dripping = scope.spawn(|| drip(port, 500, &over));
        // They are in.
        thread::sleep(Duration::from_secs(3));
        let begin = Instant::now();
        let workers: Vec<_> = (0..4)
            .map(|worker| {
                scope.spawn(move || {
                    let (mut logins, mut slowest) = (0, Duration::ZERO);
                    while begin.elapsed() < Duration::from_secs(12) {
                        let since = Instant::now();
                        let session = Session::try_open(port, "far", "away", Some("app"));
                        let mut session = session.map_err(|e| e.to_string())?;
                        slowest = slowest.max(since.elapsed());
                        let id = worker * 100_000 + logins;
                        let done = session.run(&format!("INSERT INTO t VALUES ({id})"));
                        done.map_err(|e| e.to_string())?;
                        logins += 1;
                    }
                    Ok::<_, String>((logins, slowest))
                })
            })
            .collect();
        let mut worked = 0;
        while begin.elapsed() < Duration::from_secs(12) {
            worked += usize::from(settled.text("SELECT 1").is_ok_and(|one| one == "1"));
            thread::sleep(Duration::from_millis(50));
        }
        let results: Vec<_> = workers
            .into_iter()
            .map(|w| w.join().expect("no panic"))
            .collect();
        over.store(true, Ordering::Relaxed);
        let most = dripping.join().expect("no panic");
        assert!(worked > 20, "the open session works on");
        let mut all = (0, Duration::ZERO);
        for result in results {
            let (logins, slowest) = result.expect("logins succeed");
            all = (all.0 + logins, all.1.max(slowest));
        }
        (all.0, all.1, most)
    });
    announce(&format!(
        "{}: {logins} logins beside {most} slow sockets, the slowest in {} ms",
        kind.name(),
        slowest.as_millis()
    ));
    assert!(most > 400, "{most} sockets dripped");
    assert!(logins >= 8, "{logins} logins");
    assert!(slowest < Duration::from_secs(8), "{slowest:?}");
    wait_until("no thread stays", Duration::from_secs(30), || {
        threads(&proxy) <= before
    });
    drop(settled);
    far.wait_until_idle();
    assert_eq!(far.broken_off(), 0);
    proxy.assert_healthy();
}

/// Opens silent connections at a rate until its input ends: so many a second, from so many
/// addresses of 127/8, or from another one each time if that is 0. Holds the last three thousand.
const FLOOD: &str = r#"
import collections, random, select, socket, sys, time
port, rate, addresses = map(int, sys.argv[1:])
held, opened, failed, begin = collections.deque(), 0, 0, time.monotonic()
while not select.select([sys.stdin], [], [], 0.005)[0]:
    while opened < (time.monotonic() - begin) * rate:
        opened += 1
        n = opened % addresses if addresses else random.randrange(1 << 22)
        s = socket.socket()
        s.setblocking(False)
        try:
            s.bind(("127.%d.%d.%d" % (1 + (n >> 16), n >> 8 & 255, n & 255), 0))
            s.connect_ex(("127.0.0.1", port))
            held.append(s)
        except OSError:
            failed += 1
        if len(held) > 3000:
            held.popleft().close()
print(opened, failed)
"#;

/// Silent connections come without end, from a few addresses and from any number of them. Others
/// log in, one after the other.
fn a_rate_of_silent_connections_keeps_nobody_out(kind: Kind) {
    /// For how long a client waits.
    const PATIENCE: Duration = Duration::from_secs(3);
    let Some(far) = Far::start(kind, &["--max-connections=151"]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    if Command::new("python3").arg("--version").output().is_err() {
        announce("SKIPPED: no python3 to open connections with");
        return;
    }
    // How many a second, from how many addresses, whether the client has logged in before, and how
    // many of ten logins may fail.
    for (rate, addresses, is_known, lost) in [
        (200u16, 3, false, 0),
        (100, 8, false, 0),
        (200, 8, true, 0),
        (200, 0, true, 1),
    ] {
        let mut proxy = far.proxy("");
        let port = proxy.port();
        if is_known {
            Session::open(port, "far", "away", None);
        }
        let mut flood = tied_command("python3")
            .args(["-c", FLOOD])
            .args([port, rate, addresses].map(|n| n.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        thread::sleep(Duration::from_secs(3));
        let mut times = Vec::new();
        let mut errors = Vec::new();
        for _ in 0..10 {
            let begin = Instant::now();
            let session = Session::try_open(port, "far", "away", None);
            times.push(begin.elapsed());
            match session.map_err(|e| e.to_string()) {
                Ok(_) if begin.elapsed() <= PATIENCE => {}
                Ok(_) => errors.push(format!("after {:?}", begin.elapsed())),
                Err(error) => errors.push(error),
            }
            thread::sleep(Duration::from_millis(200));
        }
        drop(flood.stdin.take());
        let output = flood.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout);
        let mut counts = said.split_whitespace().map(|n| n.parse().unwrap_or(0u64));
        let (opened, failed) = (
            counts.next().unwrap_or_default(),
            counts.next().unwrap_or_default(),
        );
        let slowest = times.iter().max().expect("there are ten");
        announce(&format!(
            "{}: {} of 10 logins beside {opened} silent connections, {rate} a second from {addresses} addresses; the slowest took {} ms",
            kind.name(),
            10 - errors.len(),
            slowest.as_millis()
        ));
        assert!(opened > 4 * u64::from(rate) && failed == 0, "{said}");
        assert!(
            errors.len() <= lost,
            "{rate} a second from {addresses} addresses: {errors:?}"
        );
        proxy.assert_healthy();
    }
}

/// Each byte comes well before any time limit that begins anew with it, in the clear and inside of
/// a TLS handshake.
fn a_login_that_drips_has_one_deadline(kind: Kind) {
    let Some(mut far) = Far::start(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let proxy = far.proxy("");
    let port = proxy.port();
    // The beginning of a ClientHello: a record of 512 bytes.
    let hello = [&[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[5; 500]].concat();
    let plain = [&[250, 0, 0, 1][..], &[b'x'; 250]].concat();
    thread::scope(|scope| {
        for (first, slow) in [(ssl_request(), &hello), (Vec::new(), &plain)] {
            scope.spawn(move || {
                let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
                let limit = Some(Duration::from_millis(200));
                socket.set_read_timeout(limit).expect("set");
                let begin = Instant::now();
                socket.write_all(&first).expect("sent");
                for byte in slow {
                    let mut answer = [0; 256];
                    let ended = match socket.read(&mut answer) {
                        Ok(n) => n == 0,
                        Err(e) => e.kind() != ErrorKind::WouldBlock,
                    };
                    if ended || socket.write_all(&[*byte]).is_err() {
                        break;
                    }
                    let waited = begin.elapsed();
                    // Eight seconds are what a client has for an answer.
                    assert!(
                        waited < Duration::from_secs(14),
                        "still open after {waited:?}"
                    );
                }
            });
        }
    });
    far.wait_until_idle();
    assert_eq!(far.broken_off(), 0);
}

/// What a header promises is refused before it arrives.
fn packets_before_the_login_are_small(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let mut proxy = Proxy::start(&server, "");
    for length in [70_000u32, 500_000, 1 << 20] {
        let mut client = greeted(proxy.port());
        client.send(&[&length.to_le_bytes()[..3], &[1]].concat());
        client.send(&[1; 1000]);
        let begin = Instant::now();
        let reply = client.read();
        assert!(
            matches!(reply, Reply::Error(..) | Reply::Closed),
            "{length}: {reply:?}"
        );
        assert!(
            begin.elapsed() < Duration::from_secs(5),
            "{length}: not at once"
        );
        assert!(client.closes());
    }
    proxy.assert_healthy();
}
