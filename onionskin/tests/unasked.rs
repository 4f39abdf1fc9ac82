//! What a server does with a session that nobody has asked for: another database, a request for a
//! file, a number that another statement has. No value of a protected column follows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onionskin_testkit::*;

use ::mysql::LocalInfileHandler;
use ::mysql::prelude::Queryable;

on_both_servers!(
    a_session_begins_where_its_client_wants,
    another_database_in_an_answer,
    databases_that_clients_choose,
    a_number_that_is_taken,
    files_that_nobody_has_named,
);

const POLICY: &str = "[protect.\"app.users\"]\nemail = [\"eq\"]\nenforce = true\n";

/// `app.users` is protected, `evil.users` is not, `app.plain` neither.
fn tables(server: &Server, proxy: &Proxy) {
    let mut admin = server.connect();
    for sql in [
        "CREATE DATABASE app",
        "CREATE DATABASE evil",
        "CREATE TABLE evil.users (id INT PRIMARY KEY, email VARCHAR(60))",
        "CREATE USER client@'%' IDENTIFIED BY 'secret'",
        "GRANT ALL ON app.* TO client@'%'",
        "GRANT ALL ON evil.* TO client@'%'",
    ] {
        admin.must(sql);
    }
    let mut session = proxy.connect_to("app");
    session.must("CREATE TABLE users (id INT PRIMARY KEY, email VARCHAR(60))");
    session.must("CREATE TABLE plain (id INT, email VARCHAR(60))");
}

/// A server's `init_connect` moves all sessions but those of administrators.
fn a_session_begins_where_its_client_wants(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let proxy = Proxy::start(&server, POLICY);
    tables(&server, &proxy);
    let mut admin = server.connect();
    let begin = |database| Session::try_open(proxy.port(), "client", "secret", database);
    assert!(begin(Some("app")).is_ok());
    admin.must("SET GLOBAL init_connect = 'USE evil'");
    for database in [Some("app"), None] {
        let failure = begin(database).err().expect("no session");
        assert!(failure.to_string().contains("OS1223"), "{failure}");
    }
    assert!(begin(Some("evil")).is_ok());
    admin.must("SET GLOBAL init_connect = ''");
    let mut session = begin(Some("app")).expect("a session");
    session.must("INSERT INTO users VALUES (1, 'a@b.c')");
    drop(session);
    assert_eq!(
        admin.text("SELECT COUNT(*) FROM evil.users").as_deref(),
        Ok("0")
    );
}

/// The proxy in front of a server, with `hook` between both.
fn between(
    kind: Kind,
    hook: impl Fn(&[u8], usize, &[u8]) -> Vec<Vec<u8>> + Send + Sync + 'static,
) -> Option<(Server, Meddler, Proxy)> {
    if direct_mode() {
        return None;
    }
    let server = Server::start(kind, ServerOptions::default())?;
    let meddler = Meddler::to(server.port(), hook);
    let proxy = Proxy::start_with(
        &server,
        ProxyOptions {
            backend: Some(meddler.address()),
            settings: "backend_tls = \"never\"\n".into(),
            tables: POLICY.into(),
            ..ProxyOptions::default()
        },
    );
    tables(&server, &proxy);
    Some((server, meddler, proxy))
}

/// An OK that says that the session is in this database now.
fn moved_to(database: &str) -> Vec<u8> {
    let name = [&[database.len() as u8], database.as_bytes()].concat();
    let change = [&[1, name.len() as u8], name.as_slice()].concat();
    let head = [0, 0, 0, 2, 0x40, 0, 0, 0, change.len() as u8];
    [&head, change.as_slice()].concat()
}

fn another_database_in_an_answer(kind: Kind) {
    let lies = |command: &[u8], _: usize, packet: &[u8]| match command {
        b"\x03DO 1" => vec![moved_to("evil")],
        // another one is dropped, and one is made
        b"\x03DO 2" | b"\x03DROP DATABASE IF EXISTS gone" | b"\x03CREATE DATABASE more" => {
            vec![moved_to("")]
        }
        b"\x03USE `app`" => vec![moved_to("evil")],
        // says nothing of it
        b"\x03USE app" | b"\x02app" => vec![vec![0, 0, 0, 2, 0, 0, 0]],
        _ => vec![packet.to_vec()],
    };
    let Some((_server, meddler, proxy)) = between(kind, lies) else {
        return;
    };
    let lies = [
        "DO 1",
        "DO 2",
        "DROP DATABASE IF EXISTS gone",
        "CREATE DATABASE more",
    ];
    for (id, lie) in lies.iter().enumerate() {
        let mut session = proxy.connect_to("app");
        let _ = session.run(lie);
        let insert = format!("INSERT INTO users VALUES ({id}, '{SECRET}')");
        let failure = session.run(&insert).expect_err("the session has ended");
        assert!(
            failure.is_disconnect() || failure.to_string().contains("OS1210"),
            "{failure}"
        );
        // several in one text
        let mut session = proxy.connect_to("app");
        assert!(session.run(&format!("{lie}; {insert}")).is_err());
    }
    let mut session = proxy.connect_to("evil");
    assert!(session.run("USE `app`; DO 3").is_err());
    let mut session = proxy.connect_to("evil");
    session.must("USE app");
    session.must(&format!("INSERT INTO users VALUES (8, '{SECRET}')"));
    let mut session = proxy.connect_to("evil");
    session.conn().select_db("app").expect("COM_INIT_DB");
    session.must(&format!("INSERT INTO users VALUES (9, '{SECRET}')"));
    assert!(!meddler.was_sent(SECRET));
}

/// What servers tell when they were asked is taken.
fn databases_that_clients_choose(kind: Kind) {
    let told = |_: &[u8], _: usize, packet: &[u8]| vec![packet.to_vec()];
    let Some((server, meddler, proxy)) = between(kind, told) else {
        return;
    };
    let mut admin = server.connect();
    admin.must("CREATE DATABASE `größe`");
    let mut session = proxy.connect();
    for (text, database) in [
        ("USE app", "app"),
        ("USE evil; DO 1", "evil"),
        ("DO 1; /*!40000 USE app */; DO 2", "app"),
        ("USE `größe`", "größe"),
        ("SET NAMES latin1; USE app", "app"),
        ("SET NAMES utf8mb4", "app"),
        ("CREATE DATABASE gone; USE gone", "gone"),
        ("DROP DATABASE gone", "NULL"),
        ("USE app", "app"),
    ] {
        session.must(text);
        let found = session.text("SELECT COALESCE(DATABASE(), 'NULL')");
        assert_eq!(found.as_deref(), Ok(database), "{text}");
    }
    if kind == Kind::MariaDb {
        session.must("EXECUTE IMMEDIATE 'USE evil'");
        session.must("PREPARE p FROM 'USE app'");
        session.must("EXECUTE p");
        assert_eq!(session.text("SELECT DATABASE()").as_deref(), Ok("app"));
    }
    session.conn().select_db("evil").expect("COM_INIT_DB");
    session.conn().select_db("größe").expect("COM_INIT_DB");
    session.conn().select_db("app").expect("COM_INIT_DB");
    session.conn().reset().expect("COM_RESET_CONNECTION");
    session.must(&format!("INSERT INTO users VALUES (1, '{SECRET}')"));
    assert!(!meddler.was_sent(SECRET));
    let mut latin = RawClient::login_into(proxy.port(), b"gr\xf6\xdfe", 8);
    assert!(matches!(latin.query(b"SELECT 1"), Reply::Packet(_)));
}

fn a_number_that_is_taken(kind: Kind) {
    use std::sync::Mutex;
    let first = Mutex::new(None::<Vec<u8>>);
    let lies = move |command: &[u8], number: usize, packet: &[u8]| {
        let mut packet = packet.to_vec();
        let is_prepared =
            command.first() == Some(&0x16) && number == 0 && packet.first() == Some(&0);
        let says = |word: &[u8]| command.windows(word.len()).any(|part| part == word);
        if is_prepared && says(b"INTO plain") {
            *first.lock().expect("held by one") = Some(packet[1..5].to_vec());
        } else if is_prepared
            && says(b"users")
            && let Some(id) = first.lock().expect("held by one").clone()
        {
            packet[1..5].copy_from_slice(&id);
        }
        vec![packet]
    };
    let Some((_server, meddler, proxy)) = between(kind, lies) else {
        return;
    };
    let mut client = RawClient::login_into(proxy.port(), b"app", 45);
    let plain = client.prepare(b"INSERT INTO plain VALUES (1, ?)");
    let Ok(sealed) = client.try_prepare(b"INSERT INTO users VALUES (1, ?)") else {
        return;
    };
    client.command(0x19, &plain);
    let value = [&[SECRET.len() as u8], SECRET.as_bytes()].concat();
    let head = [0, 1, 0, 0, 0, 0, 1, 0xfd, 0];
    let bound = [&sealed[..], &head, &value].concat();
    client.command(0x17, &bound);
    let _ = client.closes();
    assert!(!meddler.was_sent(SECRET));
}

fn files_that_nobody_has_named(kind: Kind) {
    let lies = |command: &[u8], number: usize, packet: &[u8]| {
        let request = |file: &str| vec![[b"\xfb", file.as_bytes()].concat()];
        match (command, number) {
            (b"\x03SELECT 12345", 0) => request("the file"),
            (b"\x03SELECT 12345", _) => Vec::new(),
            (text, 0) if text.windows(9).any(|part| part == b"'another'") => request("the file"),
            (text, 0) if text.starts_with(b"\x03SHOW CREATE TABLE") => request("the file"),
            (text, 0) if text.starts_with(b"\x03SHOW COLUMNS") => request("the file"),
            _ => vec![packet.to_vec()],
        }
    };
    let Some((server, meddler, proxy)) = between(kind, lies) else {
        return;
    };
    server.connect().must("SET GLOBAL local_infile = ON");
    let load = |file: &str| format!("LOAD DATA LOCAL INFILE '{file}' INTO TABLE plain (email)");
    for (text, is_sent) in [
        ("SELECT 12345".to_owned(), false),
        ("SHOW CREATE TABLE users".to_owned(), false),
        ("SHOW COLUMNS FROM users".to_owned(), false),
        (load("another"), false),
        (format!("{}; {}", load("first"), load("second")), true),
    ] {
        let mut session = proxy.connect_to("app");
        let asked = Arc::new(AtomicBool::new(false));
        let asking = Arc::clone(&asked);
        let handler = LocalInfileHandler::new(move |_, to| {
            use std::io::Write;
            asking.store(true, Ordering::Relaxed);
            to.write_all(SECRET.as_bytes())
        });
        session.conn().set_local_infile_handler(Some(handler));
        let done = session.conn().query_drop(&text);
        assert_eq!(done.is_ok(), is_sent, "{text}: {done:?}");
        assert_eq!(meddler.was_sent(SECRET), is_sent, "{text}");
        assert_eq!(asked.load(Ordering::Relaxed), is_sent, "{text}");
    }
}
