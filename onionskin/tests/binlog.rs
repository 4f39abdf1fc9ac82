//! The binlog followed on real servers: every type's images equal what SELECT says, whole
//! transactions, resuming, refusals.

#[path = "binlog/types.rs"]
mod types;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use onionskin_rowstream::binlog::{
    BinlogError, Change, FollowOptions, Follower, Item, Position, RowKind, TableColumns, TableName,
    Transaction, Value, requirements,
};
use onionskin_rowstream::client::{Address, Client, ConnectOptions};
use onionskin_testkit::*;
use onionskin_wire::auth::{LinkTrust, ServerKey};

on_both_servers!(
    images_of_every_type_equal_what_select_says,
    compressed_images_equal_what_select_says,
    transactions_are_whole_and_in_order,
    long_transactions_come_in_pieces,
    a_cut_connection_loses_and_repeats_nothing,
    gtids_say_where_to_go_on,
    what_cannot_be_followed_is_refused,
    every_login_method_works,
);

/// A server with a binlog and GTIDs.
fn server(kind: Kind, extra: &[&str]) -> Option<Server> {
    let mut extra: Vec<String> = extra.iter().map(|option| option.to_string()).collect();
    if kind == Kind::MySql {
        extra.extend(["--gtid-mode=ON", "--enforce-gtid-consistency=ON"].map(String::from));
    }
    Server::start(
        kind,
        ServerOptions {
            binlog: Some(Binlog::Row),
            extra,
            ..ServerOptions::default()
        },
    )
}

fn connect_options(port: u16) -> ConnectOptions {
    ConnectOptions {
        address: Address::Tcp {
            host: "127.0.0.1".into(),
            port,
        },
        user: "root".into(),
        password: String::new(),
        tls: None,
        trust: Default::default(),
        identity: None,
    }
}

/// MySQL is known by its RSA key; MariaDB's methods send no password.
fn known(server: &Server) -> LinkTrust {
    let pem = std::fs::read(server.data_dir().join("public_key.pem"));
    let key = pem.ok().map(|pem| ServerKey::from_pem(&pem).unwrap());
    LinkTrust {
        tls_verifies: false,
        rsa_key: key.map(std::sync::Arc::new),
    }
}

fn client(server: &Server) -> Client {
    Client::connect(&connect_options(server.port())).unwrap()
}

/// Where the server writes now.
fn now(server: &Server) -> Position {
    let mut client = client(server);
    let rows = client
        .query("SHOW MASTER STATUS")
        .or_else(|_| client.query("SHOW BINARY LOG STATUS"))
        .unwrap();
    let text = |i: usize| String::from_utf8(rows[0][i].clone().unwrap()).unwrap();
    Position::new(&text(0), text(1).parse().unwrap())
}

fn tables(server: &Server, names: &[&str]) -> HashMap<TableName, Arc<TableColumns>> {
    let mut client = client(server);
    names
        .iter()
        .map(|name| TableName::new("d", *name))
        .map(|table| {
            let columns = TableColumns::describe(&mut client, &table).unwrap();
            (table, Arc::new(columns))
        })
        .collect()
}

/// Follows to the end of what the server has.
fn follow(server: &Server, names: &[&str], from: &Position) -> Follower {
    let mut options = FollowOptions::new(4000, tables(server, names));
    options.stream.stop_at_end = true;
    Follower::connect(&connect_options(server.port()), options, from).unwrap()
}

fn transactions(follower: Follower) -> Vec<Transaction> {
    follower
        .filter_map(|item| match item.unwrap() {
            Item::Transaction(transaction) => Some(transaction),
            Item::Progress(_) => None,
        })
        .collect()
}

fn images_of_every_type_equal_what_select_says(kind: Kind) {
    let Some(server) = server(kind, &[]) else {
        return;
    };
    types::compare(&server, 120);
}

fn compressed_images_equal_what_select_says(kind: Kind) {
    let options: &[&str] = match kind {
        Kind::MariaDb => &[
            "--log-bin-compress=ON",
            "--log-bin-compress-min-len=10",
            "--binlog-row-metadata=FULL",
        ],
        Kind::MySql => &["--binlog-transaction-compression=ON"],
    };
    let Some(server) = server(kind, options) else {
        return;
    };
    types::compare(&server, 40);
}

/// `INSERT`s, `UPDATE`s and `DELETE`s of a table `(id, v)` as a short text: `+1=a`, `1=a>1=b`,
/// `-1=b`.
fn changes(transaction: &Transaction) -> String {
    let mut words = Vec::new();
    for change in &transaction.changes {
        match change {
            Change::Statement { sql, .. } => words.push(sql.clone()),
            Change::Rows { table, kind, rows } => {
                let row = |row: &Option<Vec<Value>>| match row.as_deref() {
                    Some([Value::Int(id), Value::Bytes(v)]) => {
                        format!("{id}={}", String::from_utf8_lossy(v))
                    }
                    other => panic!("{other:?}"),
                };
                for image in rows {
                    let text = match kind {
                        RowKind::Insert => format!("+{}", row(&image.after)),
                        RowKind::Delete => format!("-{}", row(&image.before)),
                        RowKind::Update => format!("{}>{}", row(&image.before), row(&image.after)),
                    };
                    words.push(match table.name.as_str() {
                        "t" => text,
                        other => format!("{other}:{text}"),
                    });
                }
            }
        }
    }
    words.join(" ")
}

fn transactions_are_whole_and_in_order(kind: Kind) {
    let Some(server) = server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    session.must("CREATE DATABASE d");
    for table in ["t", "u", "other"] {
        session.must(&format!(
            "CREATE TABLE d.{table} (id INT PRIMARY KEY, v VARCHAR(20))"
        ));
    }
    let begin = now(&server);
    for statement in [
        "INSERT INTO d.t VALUES (1,'a'),(2,'b')",
        "BEGIN",
        "UPDATE d.t SET v='c' WHERE id=1",
        "INSERT INTO d.other VALUES (1,'x')",
        "INSERT INTO d.u VALUES (7,'u')",
        "SAVEPOINT s",
        "INSERT INTO d.t VALUES (3,'gone')",
        "ROLLBACK TO s",
        "DELETE FROM d.t WHERE id=2",
        "COMMIT",
        "FLUSH BINARY LOGS",
        "BEGIN",
        "INSERT INTO d.t VALUES (4,'rolled back')",
        "ROLLBACK",
        "INSERT INTO d.other VALUES (2,'y')",
        "UPDATE d.t SET id=9",
        "ALTER TABLE d.other ADD COLUMN w INT",
        "INSERT INTO d.t VALUES (1,'new') ON DUPLICATE KEY UPDATE v='never'",
        "INSERT INTO d.t VALUES (1,'new') ON DUPLICATE KEY UPDATE v='old'",
        "REPLACE INTO d.t VALUES (9,'replaced')",
        "TRUNCATE d.t",
    ] {
        session.must(statement);
    }
    let found = transactions(follow(&server, &["t", "u"], &begin));
    let texts: Vec<String> = found.iter().map(changes).collect();
    assert_eq!(
        texts,
        [
            "+1=a +2=b",
            "1=a>1=c u:+7=u -2=b",
            "1=c>9=c",
            "ALTER TABLE d.other ADD COLUMN w INT",
            "+1=new",
            "1=new>1=old",
            "9=c>9=replaced",
            "TRUNCATE d.t"
        ]
    );
    // A table made from rows is one transaction, whose rows nobody has asked for.
    let from = now(&server);
    session.must("CREATE TABLE d.copy AS SELECT * FROM d.other");
    session.must("INSERT INTO d.u VALUES (8,'v')");
    let made = transactions(follow(&server, &["t", "u"], &from));
    assert_eq!(made.len(), 2, "{made:?}");
    assert!(changes(&made[0]).starts_with("CREATE TABLE"), "{made:?}");
    assert_eq!(changes(&made[1]), "u:+8=v");

    // Every end is a place to go on from, and commit times are near and do not go back.
    for (i, transaction) in found.iter().enumerate() {
        assert!(transaction.last);
        let rest = transactions(follow(&server, &["t", "u"], &transaction.end));
        assert_eq!(rest.len(), found.len() - i - 1 + made.len());
    }
    let times: Vec<u64> = found.iter().map(|t| t.commit_timestamp).collect();
    assert!(times.is_sorted());
    let clock = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    assert!(
        clock.as_micros() as u64 - times[0] < 120_000_000,
        "{times:?}"
    );
    assert_eq!(found.last().unwrap().end.file, now(&server).file);
}

fn long_transactions_come_in_pieces(kind: Kind) {
    let Some(server) = server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    session.must("CREATE DATABASE d");
    session.must("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20))");
    let begin = now(&server);
    session.must("BEGIN");
    for i in 0..20 {
        let rows: Vec<String> = (0..500).map(|j| format!("({},'x')", i * 500 + j)).collect();
        session.must(&format!("INSERT INTO d.t VALUES {}", rows.join(",")));
    }
    session.must("COMMIT");
    session.must("DELETE FROM d.t WHERE id = 5");
    let mut options = FollowOptions::new(4000, tables(&server, &["t"]));
    options.stream.stop_at_end = true;
    options.piece = 10_000;
    let follower = Follower::connect(&connect_options(server.port()), options, &begin).unwrap();
    let found = transactions(follower);
    let (rest, long) = found.split_last().unwrap();
    assert_eq!(changes(rest), "-5=x");
    assert!(long.len() > 5, "{}", long.len());
    let (last, before) = long.split_last().unwrap();
    assert!(last.last);
    let mut rows = 0;
    for piece in before {
        assert!(!piece.last);
        // Going on from there brings the whole transaction again.
        assert_eq!(piece.end.offset, begin.offset);
    }
    for piece in long {
        rows += changes(piece)
            .split(' ')
            .filter(|c| c.starts_with('+'))
            .count();
    }
    assert_eq!(rows, 10_000);
}

fn a_cut_connection_loses_and_repeats_nothing(kind: Kind) {
    let Some(server) = server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    session.must("CREATE DATABASE d");
    session.must("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20))");
    let mut from = now(&server);
    let tables = tables(&server, &["t"]);
    let writer = {
        let port = server.port();
        std::thread::spawn(move || {
            let mut session = Session::open(port, "root", "", None);
            for id in 0..1500 {
                session.must(&format!("INSERT INTO d.t VALUES ({id}, 'v')"));
                if id % 400 == 399 {
                    session.must("FLUSH BINARY LOGS");
                }
            }
        })
    };
    let (mut expected, mut cuts) = (0, 0);
    while expected < 1500 {
        let options = FollowOptions::new(4000, tables.clone());
        let mut follower =
            Follower::connect(&connect_options(server.port()), options, &from).unwrap();
        let closer = follower.closer().unwrap();
        let cut_at = expected + 20 + rand::random_range(0..200);
        while expected < 1500 {
            match follower.next_item() {
                Ok(Some(Item::Transaction(transaction))) => {
                    assert_eq!(changes(&transaction), format!("+{expected}=v"));
                    expected += 1;
                    if expected == cut_at {
                        closer.shutdown().unwrap();
                    }
                }
                Ok(Some(Item::Progress(_))) => {}
                Ok(None) => panic!("the stream ends by itself"),
                Err(error) => {
                    assert!(error.is_disconnect(), "{error}");
                    cuts += 1;
                    break;
                }
            }
        }
        from = follower.position().clone();
    }
    writer.join().unwrap();
    // what has been received already goes on to be read, so one cut may take some hundred rows
    assert!(cuts > 1, "{cuts}");
}

fn gtids_say_where_to_go_on(kind: Kind) {
    let Some(server) = server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    session.must("CREATE DATABASE d");
    session.must("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20))");
    for id in 0..6 {
        session.must(&format!("INSERT INTO d.t VALUES ({id}, 'v')"));
        if id == 2 {
            session.must("FLUSH BINARY LOGS");
        }
    }
    // From the beginning of the first file all GTIDs are known.
    let first = {
        let mut client = client(&server);
        let name = client.query("SHOW BINARY LOGS").unwrap()[0][0].clone();
        Position::new(&String::from_utf8(name.unwrap()).unwrap(), 4)
    };
    let found = transactions(follow(&server, &["t"], &first));
    let rows: Vec<&Transaction> = found
        .iter()
        .filter(|t| changes(t).starts_with('+'))
        .collect();
    assert_eq!(rows.len(), 6);
    for (i, transaction) in rows.iter().enumerate() {
        let gtids = transaction.end.gtid.clone().unwrap();
        assert!(gtids.contains(transaction.gtid.as_ref().unwrap()));
        let rest = transactions(follow(&server, &["t"], &Position::of_gtid(gtids)));
        let rest: Vec<String> = rest.iter().map(changes).collect();
        let expected: Vec<String> = (i + 1..6).map(|id| format!("+{id}=v")).collect();
        assert_eq!(rest, expected);
    }
    let said = match kind {
        Kind::MariaDb => session.text("SELECT @@gtid_binlog_pos").unwrap(),
        Kind::MySql => session.text("SELECT @@gtid_executed").unwrap(),
    };
    assert_eq!(rows[5].end.gtid.as_ref().unwrap().to_string(), said);
    if kind == Kind::MySql {
        session.must("SET gtid_next = 'AUTOMATIC:blue'");
        session.must("INSERT INTO d.t VALUES (100, 'tagged')");
        let tagged = transactions(follow(&server, &["t"], &rows[5].end));
        let gtid = tagged[0].gtid.as_ref().unwrap().to_string();
        assert!(gtid.ends_with(":blue:1"), "{gtid}");
        let clock = tagged[0]
            .commit_timestamp
            .abs_diff(rows[5].commit_timestamp);
        assert!(clock < 60_000_000, "{clock}");
        let said = session.text("SELECT @@gtid_executed").unwrap();
        assert_eq!(tagged[0].end.gtid.as_ref().unwrap().to_string(), said);
    }
}

fn what_cannot_be_followed_is_refused(kind: Kind) {
    let Some(server) = server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    session.must("CREATE DATABASE d");
    session.must("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20))");
    let first_error = |names: &[&str], from: &Position| -> BinlogError {
        follow(&server, names, from)
            .find_map(Result::err)
            .expect("an error")
    };

    // Images without all columns.
    let from = now(&server);
    session.must("INSERT INTO d.t VALUES (1,'a')");
    session.must("SET binlog_row_image=MINIMAL");
    session.must("UPDATE d.t SET v='b'");
    session.must("SET binlog_row_image=FULL");
    let error = first_error(&["t"], &from).to_string();
    assert!(error.contains("leaves out column"), "{error}");

    // A table whose definition has changed under us.
    let from = now(&server);
    let old = tables(&server, &["t"]);
    session.must("ALTER TABLE d.t MODIFY id INT UNSIGNED, ADD COLUMN w INT");
    session.must("INSERT INTO d.t VALUES (2,'b',3)");
    let mut options = FollowOptions::new(4000, old);
    options.stream.stop_at_end = true;
    let mut follower = Follower::connect(&connect_options(server.port()), options, &from).unwrap();
    let error = follower.find_map(Result::err).unwrap();
    assert!(matches!(error, BinlogError::TableChanged { .. }), "{error}");

    // Two phases.
    let from = now(&server);
    for statement in [
        "XA START 'x'",
        "INSERT INTO d.t VALUES (3,'c',3)",
        "XA END 'x'",
        "XA PREPARE 'x'",
        "XA COMMIT 'x'",
    ] {
        session.must(statement);
    }
    let error = first_error(&["t"], &from).to_string();
    assert!(error.contains("two phases"), "{error}");
    // Of no interest to those who follow another table.
    session.must("CREATE TABLE d.u (id INT PRIMARY KEY, v VARCHAR(20))");
    session.must("INSERT INTO d.u VALUES (1,'u')");
    let found = transactions(follow(&server, &["u"], &from));
    assert_eq!(changes(found.last().unwrap()), "u:+1=u");

    if kind == Kind::MySql {
        session.must("CREATE TABLE d.j (id INT PRIMARY KEY, v JSON)");
        session.must("INSERT INTO d.j VALUES (1, '{\"a\": 1, \"b\": \"long enough to matter\"}')");
        let from = now(&server);
        session.must("SET binlog_row_value_options=PARTIAL_JSON");
        session.must("UPDATE d.j SET v=JSON_SET(v, '$.a', 2)");
        let error = first_error(&["j"], &from).to_string();
        assert!(error.contains("binlog_row_value_options"), "{error}");
    }

    // Settings.
    let mut client = client(&server);
    requirements::check_server(&mut client).unwrap();
    session.must("SET GLOBAL binlog_row_image=MINIMAL");
    let error = requirements::check_server(&mut client).unwrap_err();
    assert_eq!(
        error.to_string(),
        "binlog_row_image is MINIMAL, but must be FULL"
    );
    let plain = Server::start(kind, ServerOptions::default()).unwrap();
    let error = requirements::check_server(&mut self::client(&plain)).unwrap_err();
    assert_eq!(error.to_string(), "log_bin is OFF, but must be ON");

    // A position that the server does not have.
    let nowhere = Position::new("binlog.999999", 4);
    let mut follower = follow(&server, &["t"], &nowhere);
    let error = follower.find_map(Result::err).unwrap();
    assert!(!error.is_disconnect(), "{error}");
}

fn every_login_method_works(kind: Kind) {
    let Some(server) = server(kind, &[]) else {
        return;
    };
    for user in kind.users() {
        for _ in 0..2 {
            let options = ConnectOptions {
                user: user.name.into(),
                password: user.password.into(),
                ..connect_options(server.port())
            };
            let options = ConnectOptions {
                trust: known(&server),
                ..options
            };
            let connected = Client::connect(&options);
            if user.plugin == "ed25519" {
                let error = connected.err().expect("not spoken").to_string();
                assert!(error.contains("client_ed25519"), "{error}");
                continue;
            }
            let mut client = connected.unwrap();
            let name = client.query_text("SELECT CURRENT_USER()").unwrap().unwrap();
            assert_eq!(name, format!("{}@%", user.name));
            let wrong = ConnectOptions {
                password: "wrong".into(),
                ..options.clone()
            };
            let error = Client::connect(&wrong).err().unwrap().to_string();
            assert!(error.contains("1045"), "{error}");
        }
    }
    if kind == Kind::MySql {
        // A server that may be anybody gets no password, whatever key it has.
        let user = kind.users()[0];
        server.connect().must("FLUSH PRIVILEGES");
        let options = ConnectOptions {
            user: user.name.into(),
            password: user.password.into(),
            ..connect_options(server.port())
        };
        let error = Client::connect(&options).err().unwrap().to_string();
        assert!(error.contains("backend_rsa_key"), "{error}");
    }
    let tls = onionskin_wire::tls::client_config(
        &onionskin_wire::tls::ServerVerification::EncryptionWithoutAuthentication,
    )
    .unwrap();
    let options = ConnectOptions {
        tls: Some(tls),
        ..connect_options(server.port())
    };
    let cipher = Client::connect(&options)
        .unwrap()
        .query("SHOW STATUS LIKE 'Ssl_cipher'")
        .unwrap();
    assert!(!cipher[0][1].as_ref().unwrap().is_empty());
    let unix = ConnectOptions {
        address: Address::Unix(server.socket()),
        ..connect_options(0)
    };
    Client::connect(&unix).unwrap().query("SELECT 1").unwrap();
    // A heartbeat comes while nothing happens, and counts as progress.
    let mut follower = Follower::connect(
        &connect_options(server.port()),
        FollowOptions::new(4001, HashMap::new()),
        &now(&server),
    )
    .unwrap();
    let begin = std::time::Instant::now();
    for _ in 0..3 {
        assert!(matches!(follower.next_item(), Ok(Some(Item::Progress(_)))));
    }
    assert!(begin.elapsed() < Duration::from_secs(8));
}
