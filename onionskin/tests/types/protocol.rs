//! Cursors, long data, and statements in texts.

use onionskin_testkit::*;

const COM_STMT_EXECUTE: u8 = 23;
const COM_STMT_SEND_LONG_DATA: u8 = 24;
const COM_STMT_FETCH: u8 = 28;
const READ_ONLY_CURSOR: u8 = 1;

/// Packets up to an EOF, which is among them.
fn packets(client: &mut RawClient) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let Reply::Packet(packet) = client.read() else {
            panic!("an error in the place of rows")
        };
        let ends = packet.first() == Some(&0xfe) && packet.len() < 9;
        all.push(packet);
        if ends {
            return all;
        }
    }
}

/// Rows of a cursor, two at a time: everything that the server sends, as bytes.
fn fetched(client: &mut RawClient, sql: &[u8], parameters: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let id = client.prepare(sql);
    let head = [&id[..], &[READ_ONLY_CURSOR, 1, 0, 0, 0], parameters].concat();
    client.command(COM_STMT_EXECUTE, &head);
    // how many columns there are, and what they are
    let definitions = packets(client);
    let status = definitions.last().expect("an EOF")[3];
    assert_eq!(status & 0x40, 0x40, "a cursor is open");
    let mut batches = Vec::new();
    loop {
        client.command(COM_STMT_FETCH, &[&id[..], &[2, 0, 0, 0]].concat());
        let batch = packets(client);
        let is_last = batch.last().expect("an EOF")[3] & 0x80 == 0x80;
        batches.push(batch);
        if is_last {
            return batches;
        }
    }
}

pub fn cursors_and_long_data(kind: Kind) {
    if direct_mode() {
        return;
    }
    let (Some(plain), Some(behind)) = (
        Server::start(kind, ServerOptions::default()),
        Server::start(kind, ServerOptions::default()),
    ) else {
        return;
    };
    let proxy = Proxy::start(&behind, "");
    for server in [&plain, &behind] {
        server
            .connect()
            .must("CREATE DATABASE app DEFAULT CHARSET utf8mb4");
    }
    let definition = |words: &str| {
        format!(
            "CREATE TABLE app.t (id INT PRIMARY KEY, k INT {words}, e ENUM('a','b') {words}, s SET('x','y') {words}, b BIT(9) {words}, d DATETIME(3) {words}, \
             v VARCHAR(30) COLLATE utf8mb4_bin {words}, n LONGTEXT)"
        )
    };
    plain.connect().must(&definition(""));
    proxy
        .connect()
        .must(&definition("ENCRYPTED FOR (eq, range)"));
    let rows = "INSERT INTO app.t VALUES (1, 10, 'a', 'x,y', 257, '2024-01-02 03:04:05.678', 'one', 'plain'), (2, 20, 'b', '', 1, NULL, '', NULL), \
                (3, 30, NULL, 'y', NULL, '1999-12-31', 'drei €', 'x'), (4, NULL, 'a', NULL, 0, NULL, NULL, NULL), (5, 40, 'b', 'x', 511, '9999-12-31 23:59:59.999', 'five', '')";
    plain.connect().must(rows);
    proxy.connect().must(rows);
    let mut clients = [
        RawClient::login(plain.port()),
        RawClient::login(proxy.port()),
    ];
    for (sql, parameters) in [
        (
            "SELECT id, k, e, s, b, d, v, n FROM app.t ORDER BY id",
            &[][..],
        ),
        (
            "SELECT e, v, b FROM app.t WHERE k >= ? ORDER BY k DESC",
            // no NULL, types follow, an INT, 20
            &[0, 1, 3, 0, 20, 0, 0, 0],
        ),
        (
            "SELECT id, v FROM app.t WHERE e = ? ORDER BY id",
            // a string
            &[0, 1, 253, 0, 1, b'b'],
        ),
    ] {
        let [a, b] = clients
            .each_mut()
            .map(|client| fetched(client, sql.as_bytes(), parameters));
        assert!(a.len() > 1, "{sql}: more than one batch");
        assert_eq!(a, b, "{sql}");
    }

    // The parameter comes in three packets, between which nothing is answered, and is forgotten
    // after the execution.
    for client in &mut clients {
        let id = client.prepare(b"INSERT INTO app.t (id, v, n) VALUES (?, ?, ?)");
        for (parameter, text) in [(1u16, "long "), (2, "also "), (1, "data")] {
            let data = [&id[..], &parameter.to_le_bytes(), text.as_bytes()].concat();
            client.command(COM_STMT_SEND_LONG_DATA, &data);
        }
        let types = [3, 0, 252, 0, 252, 0];
        let execution = [&id[..], &[0, 1, 0, 0, 0], &[0, 1], &types, &[77, 0, 0, 0]].concat();
        client.command(COM_STMT_EXECUTE, &execution);
        assert!(
            matches!(client.read(), Reply::Packet(packet) if packet.first() == Some(&0)),
            "long data is stored"
        );
        let short = [b"\x05short".as_slice(), b"\x01n"].concat();
        let again = [
            &id[..],
            &[0, 1, 0, 0, 0],
            &[0, 1],
            &types,
            &[78, 0, 0, 0],
            &short,
        ]
        .concat();
        client.command(COM_STMT_EXECUTE, &again);
        assert!(
            matches!(client.read(), Reply::Packet(packet) if packet.first() == Some(&0)),
            "and the next execution has its own"
        );
    }
    let stored = "SELECT id, v, n FROM app.t WHERE id > 70 ORDER BY id";
    let shown = proxy.connect().text(stored);
    assert_eq!(plain.connect().text(stored), shown);
    assert_eq!(shown.as_deref(), Ok("77\tlong data\talso \n78\tshort\tn"));
    assert_eq!(
        proxy
            .connect()
            .text("SELECT id FROM app.t WHERE v = 'long data'")
            .as_deref(),
        Ok("77"),
        "found by its token"
    );
}

/// PREPARE and EXECUTE as statements: what names a protected table, or may, never reaches the
/// server.
pub fn statements_in_texts(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(
        kind,
        ServerOptions {
            general_log: true,
            ..ServerOptions::default()
        },
    ) else {
        return;
    };
    let proxy = Proxy::start(&server, "");
    server.connect().must("CREATE DATABASE app");
    let mut session = proxy.connect_to("app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(60) ENCRYPTED FOR (eq))");
    session.must("CREATE TABLE open (id INT PRIMARY KEY, v VARCHAR(60))");
    session.must("SET @open = 'SELECT 1'");
    for sql in [
        format!("PREPARE p FROM 'INSERT INTO t VALUES (1, ''{MARKER}'')'"),
        format!("PREPARE p FROM 'SELECT * FROM app.t WHERE v = ''{MARKER}''  '"),
        format!("PREPARE p FROM 'INSERT INTO t VALUES (1, ''{MARKER}'')'"),
    ] {
        session.must(&sql);
    }
    session.must("EXECUTE p");
    let found = format!("SELECT v FROM t WHERE v = '{MARKER}'");
    assert_eq!(session.text(&found).as_deref(), Ok(MARKER));
    session.must("PREPARE p FROM @open");
    assert_eq!(session.must("EXECUTE p").sets[0].rows.len(), 1);
    // without an engine that could do it
    let sql = format!("PREPARE p FROM 'UPDATE open, t SET t.v = ''{MARKER}''  '");
    let refused = session.run(&sql).expect_err("a refusal");
    assert!(refused.message.starts_with("OS"), "{sql}: {refused}");
    let mut rows = "1";
    if kind == Kind::MariaDb {
        session.must(&format!(
            "EXECUTE IMMEDIATE 'INSERT INTO t VALUES (2, ''{MARKER}'')'"
        ));
        rows = "2";
    }
    // a table that the proxy has met
    session.must("SELECT * FROM open");
    session.must("PREPARE p FROM 'INSERT INTO open VALUES (?, ?)'");
    session.must("SET @a = 1, @b = 'x'");
    session.must("EXECUTE p USING @a, @b");
    session.must("DEALLOCATE PREPARE p");
    assert_eq!(session.text("SELECT * FROM open").as_deref(), Ok("1\tx"));
    assert_eq!(session.text("SELECT COUNT(*) FROM t").as_deref(), Ok(rows));
    let log = std::fs::read(server.data_dir().join("general.log")).expect("the general log");
    assert!(
        find_all(&Pattern::of_text(MARKER), &log).is_empty(),
        "the server has seen a value"
    );
}
