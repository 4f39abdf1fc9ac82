//! Cursors of prepared statements, whoever holds their rows: the server, the proxy that has
//! finished them, or the engine. Packets are compared byte by byte with a plain server's, and
//! MariaDB's C library, which takes an answer with rows for a fault, reads them.

use std::process::Command;
use std::time::Duration;

use onionskin_testkit::*;

on_both_servers!(
    packets_are_the_servers,
    rows_are_those_of_the_moment,
    what_ends_a_cursor,
    a_cursor_without_room,
    the_c_library_reads_them,
);

const COM_STMT_EXECUTE: u8 = 23;
const COM_STMT_CLOSE: u8 = 25;
const COM_STMT_RESET: u8 = 26;
const COM_STMT_FETCH: u8 = 28;
const COM_RESET_CONNECTION: u8 = 31;

const READ_ONLY: u8 = 1;
/// In the second byte of an EOF packet's status, which is its fourth.
const CURSOR_EXISTS: u8 = 0x40;

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(30) {eq}, k INT {eq, range}, \
                     n INT)";
const ROWS: &str = "INSERT INTO t VALUES (1, 'one', 10, 1), (2, 'two', NULL, 2), \
                    (3, 'drei €', 30, 3), (4, NULL, 40, 4), (5, 'Two', 10, 5)";

/// Statements that the server answers, that the proxy finishes, and that need the engine. None has
/// RETURNING, for which MariaDB ends in a crash if a cursor is asked for.
const STATEMENTS: &[&str] = &[
    "SELECT id, v, k, n FROM app.t WHERE v = 'one'",
    "SELECT id, v, k, n FROM app.t ORDER BY id",
    "SELECT id, v FROM app.t ORDER BY v, id",
    "SELECT id, v FROM app.t WHERE n > 1 ORDER BY v, id LIMIT 4",
    "SELECT v, COUNT(*) FROM app.t GROUP BY v ORDER BY v",
    "SELECT SUM(k), COUNT(DISTINCT v) FROM app.t",
    "SELECT id, UPPER(v) AS u FROM app.t ORDER BY u, id",
    "SELECT id, v FROM app.t WHERE v LIKE '%w%' ORDER BY id",
    "SELECT id, v FROM app.t WHERE LENGTH(v) > 100",
    "SELECT a.v, b.v FROM app.t a JOIN app.t b ON a.k = b.k ORDER BY a.id, b.id",
    "SELECT v FROM app.t WHERE id = 1 UNION SELECT CONCAT(v, '!') FROM app.t WHERE id = 2",
    "SELECT 1",
    "SHOW CREATE TABLE app.t",
    "UPDATE app.t SET v = 'five' WHERE id = 5",
    "UPDATE app.t SET v = CONCAT(v, '!') WHERE id = 5",
    "DO 1",
];

fn pair(kind: Kind, settings: &str) -> Option<Pair> {
    let mut pair = Pair::with_settings(kind, TABLE, settings)?;
    pair.same(ROWS);
    Some(pair)
}

fn clients(pair: &Pair) -> [RawClient; 2] {
    [pair.beside().port(), pair.proxy.port()].map(RawClient::login)
}

/// Packets up to an EOF or an error, which is among them.
fn until_eof(client: &mut RawClient) -> Vec<Reply> {
    let mut replies = Vec::new();
    loop {
        let reply = client.read();
        let ends = match &reply {
            Reply::Packet(packet) => packet[0] == 0xfe && packet.len() < 9,
            _ => true,
        };
        replies.push(reply);
        if ends {
            return replies;
        }
    }
}

/// Whether the last packet says that there is a cursor.
fn has_cursor(replies: &[Reply]) -> bool {
    matches!(replies.last(), Some(Reply::Packet(eof)) if eof[0] == 0xfe && eof[3] & CURSOR_EXISTS != 0)
}

/// The answer to an execution that asks for a cursor.
fn execute(client: &mut RawClient, id: [u8; 4]) -> Vec<Reply> {
    let head = [&id[..], &[READ_ONLY, 1, 0, 0, 0]].concat();
    client.command(COM_STMT_EXECUTE, &head);
    let first = client.read();
    if !matches!(&first, Reply::Packet(packet) if packet[0] != 0) {
        return vec![first];
    }
    let mut replies = vec![first];
    replies.extend(until_eof(client));
    if !has_cursor(&replies) {
        replies.extend(until_eof(client));
    }
    replies
}

fn fetch(client: &mut RawClient, id: [u8; 4], rows: u8) -> Vec<Reply> {
    client.command(COM_STMT_FETCH, &[&id[..], &[rows, 0, 0, 0]].concat());
    until_eof(client)
}

/// The answer to an execution, and those to its fetches of so many rows.
fn fetched(client: &mut RawClient, sql: &str, rows: u8) -> Vec<Vec<Reply>> {
    let id = client.prepare(sql.as_bytes());
    let mut answers = vec![execute(client, id)];
    while has_cursor(answers.last().expect("an answer")) {
        answers.push(fetch(client, id, rows));
    }
    client.command(COM_STMT_CLOSE, &id);
    answers
}

/// Takes out of the answer to an execution what is documented to differ: whether the server has
/// used an index, which is said of the statement that it has carried out, and of computed columns
/// what is only told of copies: a name of the column, its decimals, and that it is a number or
/// binary.
fn without_documented(answer: &mut [Reply]) {
    const NO_INDEX: u8 = 0x30;
    const BINARY: u8 = 0x80;
    const GROUP: u8 = 0x80;
    for reply in answer {
        match reply {
            Reply::Packet(eof) if eof[0] == 0xfe && eof.len() == 5 => eof[3] &= !NO_INDEX,
            Reply::Packet(definition) if definition.starts_with(b"\x03def") => {
                let mut at = 0;
                // catalog, database, alias of the table, table, alias
                for _ in 0..5 {
                    at += 1 + usize::from(definition[at]);
                }
                let name = usize::from(definition[at]);
                let flags = at + 1 + name + 1 + 2 + 4 + 1;
                definition[flags] &= !BINARY;
                definition[flags + 1] &= !GROUP;
                let has_database = definition[4] > 0;
                if !has_database {
                    definition[flags + 2] = 0;
                    definition.drain(at..=at + name);
                }
            }
            _ => {}
        }
    }
}

fn packets_are_the_servers(kind: Kind) {
    let Some(pair) = pair(kind, "") else { return };
    let [mut plain, mut protected] = clients(&pair);
    let mut cursors = 0;
    for sql in STATEMENTS {
        for rows in [1, 2, 5, 100] {
            let [expected, found] = [&mut plain, &mut protected].map(|client| {
                let mut answers = fetched(client, sql, rows);
                without_documented(&mut answers[0]);
                answers
            });
            let about = format!("{sql}, {rows} rows at a time");
            if sql.starts_with("SHOW") {
                // its definitions tell how long the server's text is
                let counts = [&expected, &found].map(|answers| answers[0].len());
                assert_eq!(counts[0], counts[1], "{about}");
                assert_eq!(expected[0][3..], found[0][3..], "{about}");
                continue;
            }
            assert_eq!(expected, found, "{about}");
            cursors += usize::from(has_cursor(&expected[0]));
        }
    }
    assert!(cursors >= 40, "{cursors} cursors were opened");
}

/// What comes after the execution changes nothing.
fn rows_are_those_of_the_moment(kind: Kind) {
    let Some(mut pair) = pair(kind, "") else {
        return;
    };
    let mut clients = clients(&pair);
    for sql in [
        "SELECT id, v FROM app.t ORDER BY v, id",
        "SELECT id, UPPER(v) AS u FROM app.t ORDER BY u, id",
    ] {
        let ids = clients.each_mut().map(|client| {
            let id = client.prepare(sql.as_bytes());
            assert!(has_cursor(&execute(client, id)), "{sql}");
            id
        });
        pair.same("UPDATE t SET v = 'changed' WHERE id = 5");
        let [a, b] = [0, 1].map(|n| {
            // another statement in between, with a cursor of its own
            let other = clients[n].prepare(b"SELECT v FROM app.t ORDER BY v");
            execute(&mut clients[n], other);
            let mut rows = fetch(&mut clients[n], ids[n], 3);
            rows.extend(fetch(&mut clients[n], other, 2));
            rows.extend(fetch(&mut clients[n], ids[n], 3));
            rows
        });
        assert_eq!(a, b, "{sql}");
        pair.same("UPDATE t SET v = 'Two' WHERE id = 5");
    }
}

/// A second execution, a reset, the end of the rows: behind each there is no cursor, or another.
fn what_ends_a_cursor(kind: Kind) {
    let Some(pair) = pair(kind, "") else { return };
    let mut clients = clients(&pair);
    let sql = b"SELECT id, v FROM app.t ORDER BY v, id";
    let numbers = |replies: &[Reply]| -> Vec<u16> {
        let number = |reply: &Reply| match reply {
            Reply::Error(number, _) => Some(*number),
            _ => None,
        };
        replies.iter().filter_map(number).collect()
    };
    let [a, b] = clients.each_mut().map(|client| {
        let id = client.prepare(sql);
        let mut told = Vec::new();
        told.push(numbers(&fetch(client, id, 1)));
        execute(client, id);
        assert!(has_cursor(&fetch(client, id, 1)));
        // begins once more
        execute(client, id);
        told.push(numbers(&fetch(client, id, 9)));
        told.push(numbers(&fetch(client, id, 1)));
        execute(client, id);
        client.command(COM_STMT_RESET, &id);
        client.read();
        told.push(numbers(&fetch(client, id, 1)));
        execute(client, id);
        // MySQL does not answer with rows then
        if kind == Kind::MariaDb {
            let none = [&id[..], &[0, 1, 0, 0, 0]].concat();
            client.command(COM_STMT_EXECUTE, &none);
            told.push(numbers(&until_eof(client)));
            told.push(numbers(&until_eof(client)));
            told.push(numbers(&fetch(client, id, 1)));
        }
        execute(client, id);
        client.command(COM_RESET_CONNECTION, &[]);
        client.read();
        told.push(numbers(&fetch(client, id, 1)));
        told
    });
    assert_eq!(a, b);
    assert_eq!(a[0], [1421]);
    assert_eq!(a.last().expect("answers"), &[1243]);
}

/// Rows that wait take memory, which has a bound.
fn a_cursor_without_room(kind: Kind) {
    let settings = "finish_memory = 1048576\n";
    let Some(pair) = pair(kind, settings) else {
        return;
    };
    let mut session = pair.proxy.connect_to("app");
    session.must("CREATE TABLE w (id INT PRIMARY KEY, v TEXT ENCRYPTED FOR ())");
    let long = "x".repeat(60_000);
    for id in 0..8 {
        session.must(&format!("INSERT INTO w VALUES ({id}, '{long}')"));
    }
    let mut client = RawClient::login(pair.proxy.port());
    let sql = b"SELECT id, CONCAT(v, v) FROM app.w";
    let held: Vec<[u8; 4]> = (0..4).map(|_| client.prepare(sql)).collect();
    let mut refused = 0;
    for &id in &held {
        let answer = execute(&mut client, id);
        match &answer[..] {
            [Reply::Error(1038, text)] => {
                assert!(text.contains("OS1211"), "{text}");
                refused += 1;
            }
            _ => assert!(has_cursor(&answer)),
        }
    }
    assert_eq!(refused, 3, "one of them has room");
    client.command(COM_STMT_RESET, &held[0]);
    client.read();
    assert!(
        has_cursor(&execute(&mut client, held[1])),
        "there is room again"
    );
    drop(client);
    let mut other = RawClient::login(pair.proxy.port());
    let id = other.prepare(sql);
    wait_until("the memory is given back", Duration::from_secs(20), || {
        has_cursor(&execute(&mut other, id))
    });
}

/// A program of the C library's prints the rows that it fetches.
fn the_c_library_reads_them(kind: Kind) {
    let Some(pair) = pair(kind, "") else { return };
    let folder = pair.proxy.folder().to_owned();
    let program = folder.join("cursors");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cursors/fetch.c");
    let made = Command::new("cc")
        .args(["-Wall", "-Werror", "-o"])
        .arg(&program)
        .args([source, "-I/usr/include/mariadb", "-lmariadb"])
        .status();
    assert!(
        made.is_ok_and(|status| status.success()),
        "cc, libmariadb-dev"
    );
    let read = |port: u16| {
        // the library cannot read the rows of SHOW of any server
        let statements = STATEMENTS.iter().filter(|sql| !sql.starts_with("SHOW"));
        let output = Command::new(&program)
            .arg(port.to_string())
            .args(statements)
            .output()
            .expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        text
    };
    let expected = read(pair.beside().port());
    assert!(expected.lines().count() > 40, "{expected}");
    assert_eq!(expected, read(pair.proxy.port()));
}
