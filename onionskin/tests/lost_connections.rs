//! A client's connection ends when its server's does, as it would without the proxy, and the other
//! way round.

#[path = "lost_connections/drivers.rs"]
mod drivers;
use std::time::{Duration, Instant};

use drivers::{pools_of_go, pools_of_node, pools_of_python};
use onionskin_testkit::*;
use onionskin_wire::messages::{ErrPacket, SslRequest};
use onionskin_wire::tls::{ServerVerification, client_config};
use onionskin_wire::{Capabilities, Connection, Transport, WireError};

on_both_servers!(
    an_idle_session_ends_when_the_server_ends_it,
    a_session_ends_when_the_server_ends_it_in_a_statement,
    sessions_end_when_the_server_does,
    the_end_of_a_session_crosses_a_command,
    a_session_under_tls_ends_when_the_server_ends_it,
    a_statement_ends_when_its_client_is_gone,
    a_statement_at_the_engine_ends_when_its_client_is_gone,
    what_a_half_closed_client_has_sent_is_done,
    a_thousand_sessions_leave_no_file_behind,
    pools_of_go,
    pools_of_node,
    pools_of_python,
);

const TABLE: &str = "CREATE TABLE app.t (id INT PRIMARY KEY, name VARCHAR(40))";
const PROTECT: &str = "[protect.\"app.t\"]\nname = [\"eq\"]\n";
/// How soon a client must see the end. The machine may be busy; without a cure it would wait for
/// ever.
const SOON: Duration = Duration::from_secs(5);

fn start(kind: Kind, options: ProxyOptions) -> Option<(Server, Proxy)> {
    let server = Server::start(kind, ServerOptions::default())?;
    let tables = PROTECT.into();
    let proxy = Proxy::start_with(&server, ProxyOptions { tables, ..options });
    server.connect().must("CREATE DATABASE app");
    let mut session = proxy.connect();
    session.must(TABLE);
    session.must("INSERT INTO app.t VALUES (1, 'Alice')");
    Some((server, proxy))
}

/// All that the other side says until it closes.
fn said(client: &mut RawClient) -> Vec<(u8, Reply)> {
    let mut said = Vec::new();
    loop {
        let (number, reply) = client.read_numbered();
        let ends = matches!(reply, Reply::Closed | Reply::Silence);
        said.push((number, reply));
        if ends {
            return said;
        }
    }
}

/// The server's number of the session that was made last.
fn newest(admin: &mut Session) -> String {
    let sql = "SELECT MAX(id) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user = 'root'";
    admin.text(sql).expect("a number")
}

/// Waits until the server has a session no more, or has one that does this.
fn wait_for(admin: &mut Session, what: &str, condition: &str, count: &str) {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND {condition}"
    );
    wait_until(what, Duration::from_secs(25), || {
        admin.text(&sql).expect("a number") == count
    });
}

/// Has a session end in some way, directly and through the proxy. The client is told the same, and
/// soon.
fn ends_alike(ports: [u16; 2], what: &str, mut end: impl FnMut(&mut RawClient)) {
    let told = ports.map(|port| {
        let mut client = RawClient::login(port);
        end(&mut client);
        let begin = Instant::now();
        let told = said(&mut client);
        assert!(
            begin.elapsed() < SOON,
            "{what}, port {port} of {ports:?}: {told:?}"
        );
        assert_eq!(told.last(), Some(&(0, Reply::Closed)), "{what}: {told:?}");
        told
    });
    assert_eq!(told[0], told[1], "{what}");
}

/// Waits for a statement at a server; what its client was told instead, if it does not come.
fn wait_for_start(admin: &mut Session, client: &mut RawClient, does: &str) {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND {does}"
    );
    for _ in 0..250 {
        if admin.text(&sql).expect("a number") == "1" {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{does}: {:?}", client.read());
}

fn an_idle_session_ends_when_the_server_ends_it(kind: Kind) {
    for backend in ["", "backend_tls = \"required\""] {
        let settings = backend.into();
        let options = ProxyOptions {
            settings,
            ..ProxyOptions::default()
        };
        let Some((server, mut proxy)) = start(kind, options) else {
            return;
        };
        let ports = [server.port(), proxy.port()];
        let mut admin = server.connect();
        ends_alike(ports, "wait_timeout", |client| {
            client.query(b"SET wait_timeout = 1");
        });
        ends_alike(ports, "KILL", |_| {
            let id = newest(&mut admin);
            admin.must(&format!("KILL {id}"));
        });
        ends_alike(ports, "KILL in a transaction", |client| {
            client.query(b"BEGIN");
            client.query(b"DELETE FROM app.t");
            let id = newest(&mut admin);
            admin.must(&format!("KILL {id}"));
        });
        ends_alike(ports, "KILL behind a prepared statement", |client| {
            client.prepare(b"SELECT id FROM app.t WHERE id = ?");
            let id = newest(&mut admin);
            admin.must(&format!("KILL {id}"));
        });
        let mut session = proxy.connect();
        let row = session.text("SELECT name FROM app.t").expect("the row");
        assert_eq!(row, "Alice", "the transactions were rolled back");
        proxy.assert_healthy();
    }
}

fn a_session_ends_when_the_server_ends_it_in_a_statement(kind: Kind) {
    let Some((server, mut proxy)) = start(kind, ProxyOptions::default()) else {
        return;
    };
    let ports = [server.port(), proxy.port()];
    let mut admin = server.connect();
    let mut holder = server.connect();
    holder.must("BEGIN");
    holder.must("SELECT id FROM app.t FOR UPDATE");
    let sleeping = "info LIKE 'SELECT SLEEP(%'";
    let waiting = "info LIKE '%FOR UPDATE%'";
    for (sql, does) in [
        ("SELECT SLEEP(100)", sleeping),
        ("SELECT name, id FROM app.t FOR UPDATE", waiting),
        ("BEGIN; SELECT id FROM app.t FOR UPDATE", waiting),
    ] {
        // the server does not know the column
        let direct = sql.replace("name, ", "");
        let told = ports.map(|port| {
            let mut client = RawClient::login(port);
            let sql = if port == ports[0] { &direct } else { sql };
            client.command(3, sql.as_bytes());
            wait_for(&mut admin, sql, does, "1");
            let id = newest(&mut admin);
            admin.must(&format!("KILL {id}"));
            let begin = Instant::now();
            let told = said(&mut client);
            assert!(begin.elapsed() < SOON, "{sql}, port {port}: {told:?}");
            wait_for(&mut admin, sql, does, "0");
            told
        });
        assert_eq!(told[0], told[1], "{sql}");
        assert_eq!(told[0].last(), Some(&(0, Reply::Closed)), "{sql}");
    }
    ends_alike(ports, "KILL of itself", |client| {
        client.command(3, b"KILL CONNECTION_ID()");
    });
    if !direct_mode() {
        assert!(proxy.log().contains("OS1204"), "{}", proxy.log());
    }
    proxy.assert_healthy();
}

fn sessions_end_when_the_server_does(kind: Kind) {
    let Some((mut server, mut proxy)) = start(kind, ProxyOptions::default()) else {
        return;
    };
    let end: [fn(&mut Server); 2] = [Server::shutdown, Server::kill9];
    for end in end {
        let mut clients: Vec<RawClient> = (0..5).map(|_| RawClient::login(proxy.port())).collect();
        clients[0].query(b"BEGIN");
        clients[0].query(b"UPDATE app.t SET name = 'Bob'");
        clients[1].prepare(b"SELECT name FROM app.t");
        end(&mut server);
        let begin = Instant::now();
        for client in &mut clients {
            assert_eq!(said(client), [(0, Reply::Closed)]);
        }
        assert!(begin.elapsed() < SOON);
        server.restart();
        let mut session = proxy.connect();
        assert_eq!(session.text("SELECT name FROM app.t").unwrap(), "Alice");
    }
    proxy.assert_healthy();
}

/// The command is on its way when the server ends the session.
fn the_end_of_a_session_crosses_a_command(kind: Kind) {
    let Some((server, mut proxy)) = start(kind, ProxyOptions::default()) else {
        return;
    };
    let Some(pid) = proxy.pid() else { return };
    let mut admin = server.connect();
    let mut client = RawClient::login(proxy.port());
    let id = newest(&mut admin);
    client.query(b"SET wait_timeout = 2");
    signal("STOP", pid);
    wait_for(&mut admin, "wait_timeout", &format!("id = {id}"), "0");
    client.command(3, b"SELECT 41");
    signal("CONT", pid);
    let told = said(&mut client);
    // numbered 0: no driver takes it for the statement's answer
    for (number, reply) in &told {
        let farewell = matches!(reply, Reply::Error(4031, _)) && *number == 0;
        assert!(farewell || *reply == Reply::Closed, "{told:?}");
    }
    assert_eq!(told.last(), Some(&(0, Reply::Closed)), "{told:?}");
    proxy.assert_healthy();
}

/// Logs in under TLS.
fn login_with_tls(port: u16) -> Connection {
    let stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(SOON * 3)).expect("a timeout");
    let mut client = Connection::new(Transport::tcp(stream).expect("a transport"));
    let greeting = client.read_payload().expect("a greeting");
    let plugin: Vec<u8> = {
        let text = greeting.strip_suffix(b"\0").unwrap_or(greeting);
        text.rsplit(|b| *b == 0).next().expect("a plugin").to_vec()
    };
    let mut login = login_payload(&plugin);
    let ssl = Capabilities::SSL.bits().to_le_bytes();
    for (byte, flag) in login.iter_mut().zip(ssl) {
        *byte |= flag;
    }
    assert!(SslRequest::is_ssl_request(&login[..32]));
    client.write_payload(&login[..32]).expect("sent");
    let config = client_config(&ServerVerification::EncryptionWithoutAuthentication);
    let name = "localhost".try_into().expect("a name");
    let upgraded = client.upgrade_client_tls(config.expect("a configuration"), name);
    upgraded.expect("TLS");
    client.write_payload(&login).expect("sent");
    client.flush().expect("sent");
    loop {
        match client.read_payload().expect("an answer").first() {
            Some(0x00) => return client,
            Some(0xfe) => {
                client.write_payload(b"").expect("sent");
                client.flush().expect("sent");
            }
            Some(0x01) => {}
            other => panic!("login: {other:?}"),
        }
    }
}

fn a_session_under_tls_ends_when_the_server_ends_it(kind: Kind) {
    let Some((server, mut proxy)) = start(kind, ProxyOptions::default()) else {
        return;
    };
    let mut admin = server.connect();
    for by_timeout in [true, false] {
        let told = [server.port(), proxy.port()].map(|port| {
            let mut client = login_with_tls(port);
            if by_timeout {
                client.reset_sequence();
                client
                    .write_payload(b"\x03SET wait_timeout = 1")
                    .expect("sent");
                client.flush().expect("sent");
                assert_eq!(client.read_payload().expect("OK")[0], 0);
            } else {
                let id = newest(&mut admin);
                admin.must(&format!("KILL {id}"));
            }
            let begin = Instant::now();
            let mut words = Vec::new();
            let end = loop {
                match client.read_command() {
                    Ok(packet) => words.push(ErrPacket::decode(packet).expect("an error").code),
                    Err(error) => break error,
                }
            };
            assert!(begin.elapsed() < SOON, "port {port}: {end}");
            assert!(
                matches!(end, WireError::Closed) || end.is_disconnect(),
                "{end}"
            );
            words
        });
        assert_eq!(told[0], told[1]);
    }
    proxy.assert_healthy();
}

fn a_statement_ends_when_its_client_is_gone(kind: Kind) {
    let Some((server, mut proxy)) = start(kind, ProxyOptions::default()) else {
        return;
    };
    let mut admin = server.connect();
    let mut holder = server.connect();
    holder.must("BEGIN");
    holder.must("SELECT id FROM app.t FOR UPDATE");
    for port in [server.port(), proxy.port()] {
        let does = "info LIKE 'SELECT SLEEP(%'";
        let mut client = RawClient::login(port);
        client.command(3, b"SELECT SLEEP(100)");
        wait_for(&mut admin, "the statement", does, "1");
        drop(client);
        // servers look for their client every five seconds
        wait_for(&mut admin, &format!("port {port}: the end"), does, "0");
    }
    if let Some(pid) = proxy.pid() {
        // what the server does not notice keeps nothing in the proxy
        let mut client = RawClient::login(proxy.port());
        let before = files_of(pid);
        client.command(3, b"UPDATE app.t SET name = 'Bob' WHERE id = 1");
        wait_for(&mut admin, "the lock", "info LIKE 'UPDATE%'", "1");
        drop(client);
        wait_until("the session's end", SOON, || files_of(pid) < before);
    }
    holder.must("ROLLBACK");
    proxy.assert_healthy();
}

fn a_statement_at_the_engine_ends_when_its_client_is_gone(kind: Kind) {
    let table = "CREATE TABLE item (id INT PRIMARY KEY, word VARCHAR(40) {eq})";
    let Some(mut pair) = Pair::with_settings(kind, table, "") else {
        return;
    };
    let rows: Vec<String> = (1..=40).map(|n| format!("({n}, 'word {n}')")).collect();
    pair.run(&format!("INSERT INTO item VALUES {}", rows.join(",")));
    let mut engine = pair.engine().connect();
    let slow = "SELECT COUNT(*) FROM app.item a, app.item b, app.item c, app.item d, app.item e, app.item f \
        WHERE CONCAT(a.word, b.word, c.word, d.word, e.word, f.word) LIKE '%y%x'";
    for sql in [
        slow.to_owned(),
        format!("INSERT INTO app.item (id, word) SELECT 100, CONCAT('a', ({slow})) AS word"),
    ] {
        let does = "info LIKE '%CONCAT(%'";
        let mut client = RawClient::login(pair.proxy.port());
        client.command(3, sql.as_bytes());
        wait_for_start(&mut engine, &mut client, does);
        let begin = Instant::now();
        drop(client);
        wait_for(&mut engine, "the end", does, "0");
        assert!(begin.elapsed() < 2 * SOON, "{sql}: {:?}", begin.elapsed());
    }
    // the session at the engine of others is theirs
    let count = pair
        .protected
        .text("SELECT COUNT(*) FROM item WHERE CONCAT(word, id) LIKE '%7'");
    assert_eq!(count.expect("a number"), "4");
    pair.proxy.assert_healthy();
}

fn what_a_half_closed_client_has_sent_is_done(kind: Kind) {
    let Some((server, mut proxy)) = start(kind, ProxyOptions::default()) else {
        return;
    };
    let ports = [server.port(), proxy.port()];
    let told = ports.map(|port| {
        let mut client = RawClient::login(port);
        client.command(3, b"SELECT 41");
        client.command(3, b"SELECT SLEEP(0.3)");
        client.command(3, b"SELECT 42");
        client.finish_sending();
        let mut told = said(&mut client);
        // MySQL complains in the end that there was no COM_QUIT
        told.retain(|(number, reply)| *number > 0 || !matches!(reply, Reply::Error(..)));
        assert_eq!(told.last(), Some(&(0, Reply::Closed)), "{told:?}");
        told
    });
    assert_eq!(told[0], told[1]);
    // nobody reads the answers
    let mut client = RawClient::login(proxy.port());
    for id in 2..20 {
        let sql = format!("INSERT INTO app.t VALUES ({id}, 'Carol')");
        client.command(3, sql.as_bytes());
    }
    client.finish_sending();
    let mut session = proxy.connect();
    wait_until("the rows", 2 * SOON, || {
        session
            .text("SELECT COUNT(*) FROM app.t WHERE name = 'Carol'")
            .expect("a number")
            == "18"
    });
    proxy.assert_healthy();
}

fn files_of(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("its files")
        .count()
}

fn a_thousand_sessions_leave_no_file_behind(kind: Kind) {
    let Some((server, mut proxy)) = start(kind, ProxyOptions::default()) else {
        return;
    };
    let Some(pid) = proxy.pid() else { return };
    let settled = || {
        let mut last = (files_of(pid), Instant::now());
        wait_until("as many files as before", Duration::from_secs(20), || {
            let now = files_of(pid);
            if now != last.0 {
                last = (now, Instant::now());
            }
            last.1.elapsed() > Duration::from_secs(1)
        });
        last.0
    };
    let before = settled();
    let port = proxy.port();
    let threads: Vec<_> = (0..4)
        .map(|n| {
            std::thread::spawn(move || {
                for turn in 0..250 {
                    let mut client = RawClient::login(port);
                    match (n + turn) % 3 {
                        // the server ends it, or the client does, or the client leaves
                        0 => {
                            client.command(3, b"KILL CONNECTION_ID()");
                            assert!(client.closes());
                        }
                        1 => client.command(1, b""),
                        _ => {}
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("all logins");
    }
    assert_eq!(settled(), before);
    let mut admin = server.connect();
    wait_for(&mut admin, "the server's sessions", "user = 'root'", "0");
    proxy.assert_healthy();
}
