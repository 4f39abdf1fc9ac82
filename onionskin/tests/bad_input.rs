//! What no well-behaved peer does: broken packets, invalid text, clients and servers that
//! disappear, values without measure. The answer is a clear error or a clean close; other sessions
//! do not notice, nothing panics, and no plaintext is stored.

use onionskin_testkit::*;
use std::time::Duration;

on_both_servers!(
    broken_packets_during_login,
    broken_packets_after_login,
    invalid_utf8_near_a_protected_table,
    a_client_that_disappears,
    a_server_that_disappears,
    silent_connections_block_nobody,
    values_that_are_too_large,
);

const COM_QUERY: u8 = 3;
const COM_PING: u8 = 14;
const COM_STMT_EXECUTE: u8 = 23;

fn broken_packets_during_login(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    let login = login_payload(b"mysql_native_password");
    let mut cases: Vec<(String, Vec<u8>)> = vec![
        (
            "an HTTP request".into(),
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        ),
        ("an empty packet".into(), packet(1, b"")),
        ("one byte".into(), packet(1, &[0xff])),
        ("a wrong sequence number".into(), packet(7, &login)),
        ("sequence number 0".into(), packet(0, &login)),
        (
            "a length that promises 16 MB".into(),
            [&[0xff, 0xff, 0xff, 1], &login[..]].concat(),
        ),
        (
            "TLS where none was announced".into(),
            [&[0x16, 3, 1, 2, 0, 1, 0], &noise(500, 3)[..]].concat(),
        ),
        ("only zeros".into(), packet(1, &[0; 64])),
        ("only ones".into(), packet(1, &[0xff; 64])),
        (
            "protocol 3.20".into(),
            packet(1, b"\x05\x00\x00\x00\x40root\0"),
        ),
    ];
    for length in [1, 4, 5, 31, 32, 33, 36, 37, 38, login.len() - 1] {
        cases.push((
            format!("a login cut at {length}"),
            packet(1, &login[..length]),
        ));
    }
    for seed in 0..40 {
        cases.push((
            format!("noise {seed}"),
            packet(1, &noise(1 + seed as usize * 7, seed)),
        ));
    }
    // A request for TLS, followed by something else.
    let mut request = login[..32].to_vec();
    request[1] |= 0x08;
    cases.push((
        "an SSL request and noise".into(),
        [packet(1, &request), noise(300, 9)].concat(),
    ));
    cases.push((
        "an SSL request and a plain login".into(),
        [packet(1, &request), packet(2, &login)].concat(),
    ));
    // Lengths inside the login that point beyond it.
    let mut lying = login.clone();
    let answer_length = 32 + b"root\0".len();
    lying[answer_length] = 250;
    cases.push(("an answer longer than its packet".into(), packet(1, &lying)));

    for (name, bytes) in &cases {
        let mut client = scene.raw();
        assert!(
            matches!(client.read(), Reply::Packet(_)),
            "a greeting before {name}"
        );
        client.send(bytes);
        client.finish_sending();
        assert!(client.closes(), "the connection stays open after {name}");
    }
    for bytes in [&b""[..], b"\x01"] {
        // Gone before, or in the middle of, the first packet.
        let mut client = scene.raw();
        client.send(bytes);
        drop(client);
    }
    scene.others_still_work("broken logins");
}

fn broken_packets_after_login(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };

    // The session goes on after an error.
    let mut client = scene.raw_login();
    for code in [0x0b, 0x0c, 0x14, 0x1d, 0x30, 0x80, 0xee, 0xff] {
        client.command(code, b"what");
        match client.read() {
            // Unknown command; for some, the server answers access denied or closes.
            Reply::Error(..) => {}
            Reply::Closed => client = scene.raw_login(),
            other => panic!("command {code:#x}: {other:?}"),
        }
    }
    client.command(COM_PING, b"");
    assert!(matches!(client.read(), Reply::Packet(reply) if reply[0] == 0));

    executions_that_are_cut_or_lie_are_errors(&scene, client);
    let misdeeds = misdeeds();
    for (name, bytes) in &misdeeds {
        let mut client = scene.raw_login();
        client.send(bytes);
        client.finish_sending();
        assert!(client.closes(), "the connection stays open after {name}");
    }
    scene.others_still_work("broken packets");
    assert!(!scene.stores_plaintext());
}

/// A statement id that does not exist; executions that are cut short.
fn executions_that_are_cut_or_lie_are_errors(scene: &Scene, mut client: RawClient) {
    client.command(COM_STMT_EXECUTE, &[9, 9, 9, 9, 0, 1, 0, 0, 0]);
    assert!(
        matches!(client.read(), Reply::Error(..)),
        "an unknown statement id"
    );
    let insert = b"INSERT INTO app.t (id, k, c) VALUES (?, ?, ?)";
    let id = client.prepare(insert);
    let complete = [
        &id[..],
        &[
            0, 1, 0, 0, 0, /* null bitmap */ 0, /* new types */ 1, 3, 0, 3, 0, 0xfd, 0,
        ],
        &[77, 0, 0, 0, 88, 0, 0, 0, 8],
        MARKER.as_bytes(),
    ]
    .concat();
    for length in 0..complete.len() {
        client.command(COM_STMT_EXECUTE, &complete[..length]);
        match client.read() {
            Reply::Error(..) => {}
            Reply::Closed => {
                client = scene.raw_login();
                client.prepare(insert);
            }
            // MySQL itself reads missing parameters as empty in places.
            other => assert!(
                matches!(other, Reply::Packet(_)),
                "an execution cut at {length}: {other:?}"
            ),
        }
    }
    let mut lying = complete.clone();
    let length_at = lying.len() - 9;
    lying[length_at] = 0xfe; // a length of eight bytes follows
    for code in [COM_STMT_EXECUTE, 24, 25, 26, 28] {
        let mut client = scene.raw_login();
        client.command(code, &lying);
        client.command(code, &noise(40, 11));
        client.command(code, b"");
        client.finish_sending();
        assert!(
            client.closes(),
            "the connection stays open after command {code} with a lying length"
        );
    }
}

/// Packets that no client sends.
fn misdeeds() -> Vec<(String, Vec<u8>)> {
    let mut misdeeds: Vec<(String, Vec<u8>)> = vec![
        ("an empty packet".into(), packet(0, b"")),
        (
            "a command with sequence number 5".into(),
            packet(5, b"\x03SELECT 1"),
        ),
        (
            "a packet that never comes".into(),
            [&[0xff, 0xff, 0xff, 0], &b"\x03SELECT 1"[..]].concat(),
        ),
        ("half a header".into(), vec![9, 0]),
        ("COM_QUERY without a query".into(), packet(0, &[COM_QUERY])),
        (
            "a query of zeros".into(),
            packet(0, &[&[COM_QUERY], &[0; 50][..]].concat()),
        ),
        (
            "COM_CHANGE_USER of noise".into(),
            packet(0, &[&[17], &noise(60, 5)[..]].concat()),
        ),
        ("an empty COM_CHANGE_USER".into(), packet(0, &[17])),
        (
            "COM_INIT_DB of noise".into(),
            packet(0, &[&[2], &noise(60, 6)[..]].concat()),
        ),
        (
            "COM_FIELD_LIST of noise".into(),
            packet(0, &[&[4], &noise(60, 7)[..]].concat()),
        ),
        (
            "COM_BINLOG_DUMP".into(),
            packet(0, &[&[18], &[0; 20][..]].concat()),
        ),
        ("COM_SET_OPTION of 9".into(), packet(0, &[27, 9, 0])),
        ("COM_SET_OPTION cut".into(), packet(0, &[27])),
    ];
    for seed in 0..60 {
        misdeeds.push((
            format!("noise {seed}"),
            noise(4 + seed as usize * 5, 1000 + seed),
        ));
        let command = [&[(seed % 32) as u8], &noise(seed as usize, 2000 + seed)[..]].concat();
        // COM_SHUTDOWN and COM_PROCESS_KILL do what they say.
        if seed % 32 != 8 && seed % 32 != 12 {
            misdeeds.push((
                format!("command {} of noise", seed % 32),
                packet(0, &command),
            ));
        }
    }
    misdeeds
}

fn invalid_utf8_near_a_protected_table(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    let marker = MARKER.as_bytes();
    let statements = statements_with_invalid_texts();
    let mut client = scene.raw_login();
    for statement in &statements {
        let reply = client.query(statement);
        let text = statement.escape_ascii();
        assert!(
            matches!(reply, Reply::Error(..) | Reply::Packet(_)),
            "{text}: {reply:?}"
        );
    }
    client.command(COM_PING, b"");
    assert!(
        matches!(client.read(), Reply::Packet(reply) if reply[0] == 0),
        "the session goes on"
    );
    // Whatever was accepted opens, and begins as it was written.
    let rows = scene
        .bystander
        .must("SELECT id, c FROM t WHERE id >= 50 AND c IS NOT NULL")
        .sets
        .remove(0)
        .rows;
    for row in rows {
        let cell: Vec<u8> = ::mysql::from_value(row[1].clone());
        assert!(
            cell.starts_with(marker) || cell.is_empty(),
            "{:?}: {}",
            row[0],
            cell.escape_ascii()
        );
    }
    scene.others_still_work("invalid UTF-8");
    assert!(!scene.stores_plaintext());
}

/// Each with the marker, but the last two.
fn statements_with_invalid_texts() -> Vec<Vec<u8>> {
    let marker = MARKER.as_bytes();
    vec![
        [
            b"INSERT INTO app.t (id, c) VALUES (50, '",
            marker,
            b"\xff\xfe')",
        ]
        .concat(),
        [
            b"INSERT INTO app.t (id, c) VALUES (51, '\xc3', '",
            marker,
            b"')",
        ]
        .concat(),
        [
            b"INSERT INTO app.t (id, c, v) VALUES (52, '\xe2\x82', '",
            marker,
            b"')",
        ]
        .concat(),
        [
            b"INSERT INTO app.t (id, v) VALUES (53, '",
            marker,
            b"\xed\xa0\x80')",
        ]
        .concat(),
        [b"UPDATE app.t SET c = '", marker, b"\x80' WHERE id = 50"].concat(),
        [b"SELECT \xff FROM app.t WHERE c = '", marker, b"'"].concat(),
        [
            b"SELECT c AS `\xff\xff` FROM app.t WHERE v = '",
            marker,
            b"'",
        ]
        .concat(),
        [
            b"INSERT INTO app.t\xff (id, c) VALUES (54, '",
            marker,
            b"')",
        ]
        .concat(),
        [
            b"INSERT INTO app.`t\xff` (id, c) VALUES (55, '",
            marker,
            b"')",
        ]
        .concat(),
        [
            b"INSERT INTO app.t (id, c) VALUES (56, '",
            marker,
            b"') /* \xff\xc0 */",
        ]
        .concat(),
        [
            b"/* \xff\xc0 */ INSERT INTO app.t (id, c) VALUES (57, '",
            marker,
            b"')",
        ]
        .concat(),
        [
            b"INSERT INTO app.t (id, c) VALUES (58, '",
            marker,
            b"') -- \xff",
        ]
        .concat(),
        [
            b"\xef\xbb\xbfINSERT INTO app.t (id, c) VALUES (59, '",
            marker,
            b"')",
        ]
        .concat(),
        [
            b"INSERT INTO app.t (id, c)\xc2\xa0VALUES (60, '",
            marker,
            b"')",
        ]
        .concat(),
        [b"INSERT\0 INTO app.t (id, c) VALUES (61, '", marker, b"')"].concat(),
        [
            b"INSERT INTO app.t (id, c) VALUES (62, '",
            marker,
            b"\0 zero')",
        ]
        .concat(),
        b"SELECT * FROM app.t WHERE v = '\xff'".to_vec(),
        b"SELECT '\xff'".to_vec(),
    ]
}

fn a_client_that_disappears(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };

    // In the middle of a transaction: rolled back, its locks are free.
    let mut client = scene.raw_login();
    for statement in [
        &b"BEGIN"[..],
        b"INSERT INTO app.t (id, k, c) VALUES (90, 90, 'gone')",
        b"UPDATE app.t SET k = 11 WHERE id = 1",
    ] {
        assert!(
            matches!(client.query(statement), Reply::Packet(_)),
            "{}",
            statement.escape_ascii()
        );
    }
    drop(client);
    scene.bystander.must("SET innodb_lock_wait_timeout = 10");
    scene
        .bystander
        .must("SELECT c FROM t WHERE id = 1 FOR UPDATE");
    let rows = scene.bystander.text("SELECT id, k FROM t ORDER BY id");
    assert_eq!(rows.unwrap(), "1\t10\n2\t20");

    // In the middle of a statement that it sends.
    let mut client = scene.raw_login();
    let statement = packet(
        0,
        b"\x03INSERT INTO app.t (id, k, c) VALUES (91, 91, 'half')",
    );
    client.send(&statement[..statement.len() - 10]);
    drop(client);

    // In the middle of a result that it has not read, and while the server still works on it.
    for n in 100..1100 {
        scene.bystander.must(&format!(
            "INSERT INTO other VALUES ({n}, {n}, '{}', NULL)",
            "long ".repeat(19)
        ));
    }
    for statement in [
        &b"SELECT a.c, b.c FROM app.other a, app.other b LIMIT 300000"[..],
        b"SELECT SLEEP(20)",
    ] {
        let mut client = scene.raw_login();
        client.command(COM_QUERY, statement);
        std::thread::sleep(Duration::from_millis(300));
        drop(client);
    }
    let mut admin = scene.server.connect();
    wait_until("the server has noticed", Duration::from_secs(30), || {
        let running = "SELECT COUNT(*) FROM information_schema.processlist
                       WHERE info LIKE '%other%' AND id <> CONNECTION_ID()";
        admin.text(running).unwrap() == "0"
    });
    assert_eq!(
        scene
            .bystander
            .text("SELECT COUNT(*) FROM t WHERE id > 2")
            .unwrap(),
        "0"
    );
    scene.others_still_work("clients that disappear");
}

fn a_server_that_disappears(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    for n in 100..1100 {
        scene.bystander.must(&format!(
            "INSERT INTO other VALUES ({n}, {n}, '{}', NULL)",
            "long ".repeat(19)
        ));
    }
    if direct_mode() {
        return;
    }
    // While a result is on its way, while a statement runs, in a transaction, and idle.
    let mut reading = scene.raw_login();
    reading.command(COM_QUERY, b"SELECT a.c, b.c FROM app.other a, app.other b");
    assert!(matches!(reading.read(), Reply::Packet(_)));
    let mut waiting = scene.raw_login();
    waiting.command(COM_QUERY, b"SELECT SLEEP(600)");
    let mut writing = scene.proxy.connect_to("app");
    writing.must("BEGIN");
    writing.must("INSERT INTO t VALUES (95, 95, 'lost', NULL)");
    let mut idle = scene.proxy.connect();
    std::thread::sleep(Duration::from_millis(300));
    scene.server.kill9();

    // What was under way ends, with an error or a closed connection, and not with a complete
    // result.
    let mut ends = 0;
    loop {
        match reading.read() {
            Reply::Packet(packet) => {
                ends += u8::from(packet.first() == Some(&0xfe) && packet.len() < 9)
            }
            Reply::Error(..) | Reply::Closed => break,
            Reply::Silence => panic!("a result just stops"),
        }
        assert!(
            ends < 2,
            "the end of the columns came, and that of the rows: a complete result"
        );
    }
    loop {
        match waiting.read() {
            Reply::Packet(_) => {}
            Reply::Error(..) | Reply::Closed => break,
            Reply::Silence => panic!("a statement never ends"),
        }
    }
    assert!(
        writing.run("COMMIT").is_err(),
        "a commit that nobody confirmed"
    );
    assert!(idle.run("SELECT 1").is_err());
    // A new login fails with an error that a client can show.
    match Session::try_open(scene.proxy.port(), "root", "", None) {
        Ok(_) => panic!("a login without a server"),
        Err(failure) => announce(&format!(
            "{}: a login without a server: {failure}",
            kind.name()
        )),
    }
    scene.proxy.assert_healthy();

    scene.server.restart();
    scene.bystander = scene.proxy.connect_to("app");
    assert_eq!(scene.bystander.text("SELECT COUNT(*) FROM t").unwrap(), "2");
    scene.others_still_work("a restart of the server");
}

fn silent_connections_block_nobody(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    let silent: Vec<RawClient> = (0..60).map(|_| scene.raw()).collect();
    let logged_in: Vec<RawClient> = (0..20).map(|_| scene.raw_login()).collect();
    scene.others_still_work("80 silent connections");
    drop(silent);
    for mut client in logged_in {
        client.command(COM_PING, b"");
        assert!(matches!(client.read(), Reply::Packet(_)));
    }
    scene.others_still_work("the end of the silent connections");
}

fn values_that_are_too_large(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    let mut session = scene.proxy.connect_to("app");
    session.must("CREATE TABLE large (id INT PRIMARY KEY, c LONGTEXT, plain LONGTEXT)");
    // Over 16 MB, a packet has more than one part; both ways.
    let long = "0123456789abcdef".repeat(18 << 16);
    assert_eq!(
        session
            .execute("INSERT INTO large VALUES (1, ?, NULL)", (&long,))
            .map(|o| o.affected),
        Ok(1)
    );
    let read: Vec<u8> = ::mysql::from_value(
        session.must("SELECT c FROM large WHERE id = 1").sets[0].rows[0][0].clone(),
    );
    assert!(read == long.as_bytes(), "18 MB come back as they went in");
    session.must(&format!("INSERT INTO large VALUES (2, NULL, '{long}')"));
    assert_eq!(
        session
            .text("SELECT LENGTH(plain) FROM large WHERE id = 2")
            .unwrap(),
        long.len().to_string()
    );

    // More than the server takes: 64 MB here. Its own answer is an error, or a closed connection.
    let mut session = scene.proxy.connect_to("app");
    let too_long = "x".repeat(65 << 20);
    let mut raw = scene.raw_login();
    raw.send(&split_packets(
        format!("\u{3}INSERT INTO app.large VALUES (3, '{too_long}', NULL)").as_bytes(),
    ));
    assert!(
        matches!(raw.read(), Reply::Error(..) | Reply::Closed),
        "65 MB"
    );
    drop(raw);
    assert_eq!(session.text("SELECT COUNT(*) FROM large").unwrap(), "2");
    // An identifier, a list and a nesting beyond what anybody writes.
    let wide = format!(
        "SELECT * FROM t WHERE k IN ({})",
        (0..50_000)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(",")
    );
    assert_eq!(session.must(&wide).sets[0].rows.len(), 2);
    let deep = format!(
        "SELECT * FROM t WHERE {}k = 10{}",
        "(".repeat(20_000),
        ")".repeat(20_000)
    );
    let _ = session.run(&deep);
    let mut session = scene.proxy.connect_to("app");
    let deep = format!("SELECT * FROM t WHERE {} k = 10", "NOT ".repeat(20_000));
    let _ = session.run(&deep);
    let mut session = scene.proxy.connect_to("app");
    let name = "n".repeat(100_000);
    assert!(session.run(&format!("SELECT `{name}` FROM t")).is_err());
    // Chains, which a parser reads in a loop and which are as deep as they are long.
    for (count, is_answered) in [(700, true), (4000, true), (50_000, false)] {
        let chain = |first: &str, joint: &str, term: &str| {
            let terms: Vec<String> = (0..count)
                .map(|n| term.replace('#', &n.to_string()))
                .collect();
            format!("SELECT * FROM t WHERE {first}{}", terms.join(joint))
        };
        for sql in [
            chain("", " OR ", "k = #"),
            chain("", " OR ", "(k = # AND k < 20)"),
            chain("k = 10 AND ", " AND ", "k <> 2#"),
        ] {
            let done = scene.proxy.connect_to("app").run(&sql);
            assert_eq!(done.is_ok(), is_answered, "{count}: {sql:.60}: {done:?}");
        }
        for sql in [
            chain("k = 10 OR k = ", " + ", "#"),
            chain("k = 10 XOR 1 XOR ", " XOR ", "# < 0"),
            chain("k IN (SELECT ", " UNION SELECT ", "#") + ")",
        ] {
            // the server's own stack may be too small for it
            let _ = scene.proxy.connect_to("app").run(&sql);
        }
        scene.others_still_work("chains of operators");
    }
    scene.others_still_work("large statements");
}

/// A payload of any length as packets of at most 16 MB.
fn split_packets(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chunks: Vec<&[u8]> = payload.chunks(0xff_ffff).collect();
    if payload.len().is_multiple_of(0xff_ffff) {
        chunks.push(&[]);
    }
    for (sequence, chunk) in chunks.iter().enumerate() {
        bytes.extend(packet(sequence as u8, chunk));
    }
    bytes
}
