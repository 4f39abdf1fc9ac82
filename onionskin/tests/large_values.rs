//! Values as long as the server's `max_allowed_packet` allows are stored as without the proxy; what
//! does not fit is an error, and the session goes on.

use ::mysql::Value;
use ::mysql::prelude::Queryable;
use onionskin_testkit::*;

on_both_servers!(
    values_towards_the_limit_as_text,
    values_towards_the_limit_as_parameters,
    values_towards_the_limit_in_pieces,
    values_with_companions,
    values_of_every_byte,
    several_long_values_in_a_statement,
    long_values_in_other_settings,
    rows_with_long_values_are_changed,
    long_values_on_the_engine,
);

const MIB: usize = 1 << 20;
/// `max_allowed_packet` of the servers here.
const LIMIT: usize = 4 * MIB;
/// What a sealed cell and the text around a value take at most; a plain server has room for all but
/// the text.
const AROUND: usize = 256;
/// The servers' errors for what is too long: a packet, a result of a function, a parameter in
/// pieces.
const TOO_LONG: [u16; 3] = [1153, 1301, 1105];

const TABLES: &[&str] = &[
    "CREATE TABLE app.b (id INT PRIMARY KEY, v LONGBLOB)",
    "CREATE TABLE app.c (id INT PRIMARY KEY, v LONGTEXT)",
    "CREATE TABLE app.e (id INT PRIMARY KEY, v LONGBLOB)",
    "CREATE TABLE app.l (id INT PRIMARY KEY, v LONGTEXT)",
    "CREATE TABLE app.two (id INT PRIMARY KEY, v LONGTEXT, w LONGBLOB, plain LONGTEXT)",
];
const PROTECT: &str = r#"
[protect."app.b"]
v = []
[protect."app.c"]
v = []
[protect."app.e"]
v = ["eq"]
[protect."app.l"]
v = ["like", "eq"]
[protect."app.two"]
v = []
w = []
"#;

struct Place {
    server: Server,
    engine: Option<Server>,
    proxy: Proxy,
    session: Session,
    fresh: u64,
}

fn options(kind: Kind, limit: usize) -> ServerOptions {
    let log = match kind {
        Kind::MariaDb => "--innodb-log-file-size=96M",
        Kind::MySql => "--innodb-redo-log-capacity=512M",
    };
    ServerOptions {
        extra: vec![format!("--max-allowed-packet={limit}"), log.into()],
        ..ServerOptions::default()
    }
}

fn place(kind: Kind, limit: usize, with_engine: bool) -> Option<Place> {
    let server = Server::start(kind, options(kind, limit))?;
    let engine = with_engine.then(|| Server::start(kind, options(kind, limit)));
    let engine = engine.flatten();
    let scratch = engine.as_ref().map(|engine| {
        let socket = engine.socket().display().to_string();
        format!("[scratch]\nsocket = \"{socket}\"\n")
    });
    let tables = scratch.unwrap_or_default() + PROTECT;
    let proxy = Proxy::start(&server, &tables);
    server
        .connect()
        .must("CREATE DATABASE app DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci");
    let mut session = proxy.connect_to("app");
    TABLES.iter().for_each(|table| _ = session.must(table));
    Some(Place {
        server,
        engine,
        proxy,
        session,
        fresh: 1000,
    })
}

impl Place {
    /// The session is there, and answers what it is asked.
    fn is_in_step(&mut self, what: &str) {
        self.fresh += 1;
        let answer = self.session.text(&format!("SELECT {}", self.fresh));
        let answer = answer.unwrap_or_else(|e| panic!("behind {what}: {e}"));
        assert_eq!(answer, self.fresh.to_string(), "behind {what}");
    }

    /// After a statement that writes `value`: it was written, or refused because it is too long.
    fn written(&mut self, what: &str, done: Result<Outcome, Failure>, value: &[u8], table: &str) {
        self.is_in_step(what);
        let read = format!("SELECT v FROM {table} WHERE id = 1");
        match done {
            Ok(outcome) => {
                assert_eq!((outcome.affected, outcome.warnings), (1, 0), "{what}");
                let row: Option<Vec<u8>> = self.session.conn().query_first(&read).expect("a row");
                assert!(row.as_deref() == Some(value), "{what}: another value");
            }
            Err(failure) => {
                assert!(TOO_LONG.contains(&failure.code), "{what}: {failure}");
                let fits = value.len() + AROUND < LIMIT;
                assert!(!fits, "{what} fits: {failure}");
            }
        }
        self.is_in_step(what);
        self.session.must(&format!("DELETE FROM {table}"));
    }
}

/// Letters, so that nothing has to be escaped.
fn letters(length: usize) -> Vec<u8> {
    (0..length).map(|n| b"abcdefgh"[n / 3 % 8]).collect()
}

fn lengths() -> Vec<usize> {
    let mut lengths = vec![MIB, 2 * MIB - 40, 2 * MIB, LIMIT / 43 * 42, LIMIT - 1000];
    lengths.extend([300, 257, 150, 100, 60, 36, 35, 34, 20, 1, 0].map(|less| LIMIT - less));
    lengths.extend([1, 40, 5000].map(|more| LIMIT + more));
    lengths
}

fn values_towards_the_limit_as_text(kind: Kind) {
    let Some(mut place) = place(kind, LIMIT, false) else {
        return;
    };
    for length in lengths() {
        let value = letters(length);
        let text = String::from_utf8(value.clone()).expect("letters");
        for table in ["b", "c"] {
            let what = format!("INSERT {table}, limit {:+}", length as i64 - LIMIT as i64);
            let done = place
                .session
                .run(&format!("INSERT INTO {table} VALUES (1, '{text}')"));
            place.written(&what, done, &value, table);
            place
                .session
                .must(&format!("INSERT INTO {table} VALUES (1, 'x')"));
            let what = format!("UPDATE {table}, limit {:+}", length as i64 - LIMIT as i64);
            let done = place
                .session
                .run(&format!("UPDATE {table} SET v = '{text}' WHERE id = 1"));
            place.written(&what, done, &value, table);
        }
    }
    place.proxy.assert_healthy();
}

fn values_towards_the_limit_as_parameters(kind: Kind) {
    let Some(mut place) = place(kind, LIMIT, false) else {
        return;
    };
    for length in lengths() {
        let value = letters(length);
        for table in ["b", "c"] {
            let what = format!("INSERT {table}, limit {:+}", length as i64 - LIMIT as i64);
            let sql = format!("INSERT INTO {table} VALUES (?, ?)");
            let parameters = vec![Value::from(1), Value::Bytes(value.clone())];
            let done = place.session.execute(&sql, parameters);
            place.written(&what, done, &value, table);
            place
                .session
                .must(&format!("INSERT INTO {table} VALUES (1, 'x')"));
            let what = format!("UPDATE {table}, limit {:+}", length as i64 - LIMIT as i64);
            let sql = format!("UPDATE {table} SET v = ? WHERE id = ?");
            let parameters = vec![Value::Bytes(value.clone()), Value::from(1)];
            let done = place.session.execute(&sql, parameters);
            place.written(&what, done, &value, table);
        }
    }
    place.proxy.assert_healthy();
}

/// The number that `SELECT n` answers.
fn number(client: &mut RawClient, n: u32) -> String {
    client.command(3, format!("SELECT {n}").as_bytes());
    let packets: Vec<Reply> = (0..5).map(|_| client.read()).collect();
    match &packets[3] {
        Reply::Packet(row) => String::from_utf8_lossy(&row[1..]).into_owned(),
        other => panic!("SELECT {n}: {other:?}"),
    }
}

fn values_towards_the_limit_in_pieces(kind: Kind) {
    let Some(mut place) = place(kind, LIMIT, false) else {
        return;
    };
    let mut client = RawClient::login(place.proxy.port());
    client.query(b"USE app");
    let mut fresh = 5000;
    for (table, sql) in [
        ("b", "INSERT INTO b (id, v) VALUES (1, ?)"),
        ("c", "INSERT INTO c (id, v) VALUES (1, ?)"),
        ("b", "UPDATE b SET v = ? WHERE id = 1"),
    ] {
        let id = client.prepare(sql.as_bytes());
        for length in lengths() {
            if sql.starts_with("UPDATE") {
                place.session.must("INSERT INTO b VALUES (1, 'x')");
            }
            let value = letters(length);
            for piece in value.chunks(700_000) {
                client.command(24, &[&id[..], &[0, 0], piece].concat());
            }
            let head = [0, 1, 0, 0, 0, 0, 1, 0xfc, 0];
            client.command(23, &[&id[..], &head].concat());
            let done = match client.read() {
                Reply::Packet(ok) if ok[0] == 0 => Ok(Outcome {
                    sets: Vec::new(),
                    affected: 1,
                    insert_id: 0,
                    warnings: 0,
                }),
                Reply::Error(code, message) => Err(Failure {
                    code,
                    state: String::new(),
                    message,
                }),
                other => panic!("{sql}, {length}: {other:?}"),
            };
            fresh += 1;
            assert_eq!(
                number(&mut client, fresh),
                fresh.to_string(),
                "{sql}, {length}"
            );
            let what = format!("{sql}, limit {:+}", length as i64 - LIMIT as i64);
            place.written(&what, done, &value, table);
        }
    }
    place.proxy.assert_healthy();
}

fn values_with_companions(kind: Kind) {
    let Some(mut place) = place(kind, LIMIT, false) else {
        return;
    };
    for length in [MIB, LIMIT - 300, LIMIT - 1, LIMIT + 10] {
        let value = letters(length);
        let text = String::from_utf8(value.clone()).expect("letters");
        for table in ["e", "l"] {
            let what = format!("{table}, {length}");
            let done = place
                .session
                .run(&format!("INSERT INTO {table} VALUES (1, '{text}')"));
            let is_written = done.is_ok();
            if is_written {
                let found = format!("SELECT id FROM {table} WHERE v = ?");
                let found = place
                    .session
                    .execute(&found, vec![Value::Bytes(value.clone())]);
                place.is_in_step(&what);
                match found {
                    Ok(outcome) => assert_eq!(outcome.text(), "1", "{what}"),
                    Err(failure) => assert!(TOO_LONG.contains(&failure.code), "{failure}"),
                }
            }
            place.written(&what, done, &value, table);
            let sql = format!("INSERT INTO {table} VALUES (?, ?)");
            let parameters = vec![Value::from(1), Value::Bytes(value.clone())];
            let done = place.session.execute(&sql, parameters);
            place.written(&what, done, &value, table);
        }
    }
    place.proxy.assert_healthy();
}

/// Values of 1, 4 and 16 MiB under a limit that servers have by default.
fn values_of_every_byte(kind: Kind) {
    let Some(mut place) = place(kind, 18 * MIB, false) else {
        return;
    };
    for length in [MIB, 4 * MIB, 16 * MIB - 7, 16 * MIB, 17 * MIB] {
        let value: Vec<u8> = (0..length).map(|n| (n * 7 + n / 256) as u8).collect();
        let sql = "INSERT INTO b VALUES (?, ?)";
        let parameters = vec![Value::from(1), Value::Bytes(value.clone())];
        let done = place.session.execute(sql, parameters);
        assert!(done.is_ok(), "{length}: {done:?}");
        place.written(&format!("prepared, {length}"), done, &value, "b");
        if length <= 8 * MIB {
            let digits: String = value.iter().map(|b| format!("{b:02x}")).collect();
            let done = place
                .session
                .run(&format!("INSERT INTO b VALUES (1, x'{digits}')"));
            assert!(done.is_ok(), "{length}: {done:?}");
            place.written(&format!("text, {length}"), done, &value, "b");
        }
    }
    place.proxy.assert_healthy();
}

fn several_long_values_in_a_statement(kind: Kind) {
    let Some(mut place) = place(kind, LIMIT, false) else {
        return;
    };
    let text = |length| String::from_utf8(letters(length)).expect("letters");
    for (v, w, plain) in [
        (MIB, MIB, 10),
        (MIB, MIB, MIB),
        (3 * MIB - 200, 10, MIB - 100),
        (10, 3 * MIB - 200, MIB - 100),
        (2 * MIB - 200, 2 * MIB - 200, 30),
    ] {
        let what = format!("{v}, {w}, {plain}");
        let (v, w, plain) = (text(v), text(w), text(plain));
        let digest = |s: &mut Session| {
            s.text("SELECT v, w, plain FROM two WHERE id = 7")
                .expect("a row")
        };
        let expected = [v.as_str(), &w, &plain].join("\t");
        let fits = v.len() + w.len() + plain.len() + AROUND < LIMIT;
        assert!(fits, "{what}");
        place.session.must(&format!(
            "INSERT INTO two VALUES (7, '{v}', '{w}', '{plain}')"
        ));
        place.is_in_step(&what);
        assert!(digest(&mut place.session) == expected, "{what}");
        place
            .session
            .must("UPDATE two SET v = 'x', w = NULL, plain = 'y'");
        let sql = format!("UPDATE two SET v = '{v}', w = '{w}', plain = '{plain}' WHERE id = 7");
        place.session.must(&sql);
        place.is_in_step(&what);
        assert!(digest(&mut place.session) == expected, "{what}");
        place.session.must("DELETE FROM two");
        let texts = [v.as_str(), &w, &plain].map(Value::from);
        let parameters = [vec![Value::from(7)], texts.to_vec()].concat();
        let done = place
            .session
            .execute("INSERT INTO two VALUES (?, ?, ?, ?)", parameters);
        assert_eq!(done.expect(&what).affected, 1);
        place.is_in_step(&what);
        assert!(digest(&mut place.session) == expected, "{what}");
        // many rows, of which each is short enough
        place.session.must("DELETE FROM two");
        let rows = [(7, &v, &w), (8, &w, &v)].map(|(id, v, w)| {
            let half = |t: &str| t[..t.len() / 2].to_owned();
            format!("({id}, '{}', '{}', 'p')", half(v), half(w))
        });
        place
            .session
            .must(&format!("INSERT INTO two VALUES {}", rows.join(", ")));
        place.is_in_step(&what);
        let sum = place
            .session
            .text("SELECT v, w FROM two ORDER BY id")
            .expect("rows");
        let halves = [v.len() / 2, w.len() / 2];
        assert_eq!(sum.len(), 2 * (halves[0] + halves[1]) + 3, "{what}");
        place.session.must("DELETE FROM two");
    }
    place.proxy.assert_healthy();
}

/// How a text may be quoted depends on them.
fn long_values_in_other_settings(kind: Kind) {
    let Some(mut place) = place(kind, LIMIT, false) else {
        return;
    };
    let settings = [
        "SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')",
        "SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",
        "SET NAMES latin1",
        "SET NAMES gbk",
        "SET NAMES big5",
        "SET NAMES utf8mb4",
        "SET character_set_connection = 'latin1'",
    ];
    for setting in settings {
        let mut session = place.proxy.connect_to("app");
        session.must(setting);
        std::mem::swap(&mut session, &mut place.session);
        for length in [2000, 40_000, 3 * MIB, LIMIT - AROUND - 1] {
            let value = letters(length);
            let text = String::from_utf8(value.clone()).expect("letters");
            for table in ["b", "c"] {
                let what = format!("{setting}: {table}, {length}");
                let insert = format!("INSERT INTO {table} VALUES (1, '{text}')");
                let done = place.session.run(&insert);
                assert!(done.is_ok(), "{what}: {:?}", done.err());
                place.written(&what, done, &value, table);
            }
        }
    }
    place.proxy.assert_healthy();
}

/// Tier 2 reads a row before it writes it, and writes it on the condition that it is still the
/// same.
fn rows_with_long_values_are_changed(kind: Kind) {
    let Some(mut place) = place(kind, LIMIT, false) else {
        return;
    };
    for length in [MIB, 2 * MIB - 500, 3 * MIB, LIMIT - 300] {
        for table in ["b", "c"] {
            let (mut one, two) = (letters(length), letters(length));
            one[0] = b'!';
            for value in [&one, &two] {
                let sql = format!("REPLACE INTO {table} VALUES (1, ?)");
                let done = place.session.execute(&sql, vec![Value::Bytes(one.clone())]);
                place.is_in_step("REPLACE");
                assert!(done.is_ok(), "REPLACE {length}: {:?}", done.err());
                let what = format!("UPDATE {table}, {length}");
                let text = String::from_utf8_lossy(value).into_owned();
                let done = place
                    .session
                    .run(&format!("UPDATE {table} SET v = '{text}'"));
                place.is_in_step(&what);
                let done = done.unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(done.affected, u64::from(value == &two), "{what}");
                // by the primary key, and with a cell that is remembered
                for end in [b'?', b'.'] {
                    let mut third = value.clone();
                    *third.last_mut().expect("a letter") = end;
                    let text = String::from_utf8_lossy(&third).into_owned();
                    let sql = format!("UPDATE {table} SET v = '{text}' WHERE id = 1");
                    let done = place.session.run(&sql);
                    place.is_in_step(&what);
                    let done = done.unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert_eq!(done.affected, 1, "{what}");
                    let sql = format!(
                        "INSERT INTO {table} VALUES (1, 'x') ON DUPLICATE KEY UPDATE v = VALUES(v)"
                    );
                    let _ = place.session.run(&sql);
                    place.is_in_step(&what);
                    let done = place
                        .session
                        .run(&format!("REPLACE INTO {table} VALUES (1, '{text}')"));
                    place.is_in_step(&what);
                    done.unwrap_or_else(|e| panic!("{what}: {e}"));
                }
                place.session.must(&format!("DELETE FROM {table}"));
            }
        }
    }
    place.proxy.assert_healthy();
}

/// Tier 3 carries values to the engine and back, each time in a statement.
fn long_values_on_the_engine(kind: Kind) {
    let Some(mut place) = place(kind, LIMIT, true) else {
        return;
    };
    assert!(place.engine.is_some());
    for length in [MIB, 2 * MIB - 500, 3 * MIB, LIMIT - 300, LIMIT - 40] {
        for table in ["b", "c"] {
            let value = letters(length);
            for sql in [
                format!("UPDATE {table} SET v = CONCAT(v, 'y') WHERE id = 1"),
                format!("INSERT INTO {table} SELECT 2, UPPER(v) FROM {table}"),
                format!("SELECT LENGTH(CONCAT(v, v)) FROM {table}"),
                format!("SELECT COUNT(*) FROM {table} WHERE CONCAT(v, 'x') LIKE '%hx'"),
            ] {
                let insert = format!("REPLACE INTO {table} VALUES (1, ?)");
                let stored = place
                    .session
                    .execute(&insert, vec![Value::Bytes(value.clone())]);
                stored.unwrap_or_else(|e| panic!("{length}: {e}"));
                let done = place.session.run(&sql);
                place.is_in_step(&sql);
                match done {
                    Ok(outcome) if sql.starts_with("UPDATE") => {
                        assert_eq!(outcome.affected, 1, "{sql}, {length}");
                        let read = format!("SELECT v FROM {table} WHERE id = 1");
                        let row: Option<Vec<u8>> =
                            place.session.conn().query_first(&read).expect("a row");
                        let expected = [&value[..], b"y"].concat();
                        assert!(row == Some(expected), "{sql}, {length}");
                    }
                    Ok(_) => {}
                    Err(failure) => {
                        let refused = failure.message.starts_with("OS");
                        assert!(
                            refused || TOO_LONG.contains(&failure.code),
                            "{sql}: {failure}"
                        );
                        assert!(length > LIMIT / 2 + MIB / 2, "{sql}, {length}: {failure}");
                    }
                }
                place.session.must(&format!("DELETE FROM {table}"));
            }
        }
    }
    // plain values beside them are read as digits, which are twice as long
    for length in [MIB, 2 * MIB - 500, 2 * MIB + 1, 3 * MIB] {
        let plain = String::from_utf8(letters(length)).expect("letters");
        place.session.must(&format!(
            "REPLACE INTO two VALUES (7, 'v', NULL, '{plain}')"
        ));
        let sql = "SELECT COUNT(*) FROM two WHERE CONCAT(v, plain) LIKE 'va%'";
        let done = place.session.text(sql);
        place.is_in_step(sql);
        match done {
            Ok(count) => assert_eq!(count, "1", "{length}"),
            Err(failure) => {
                assert!(TOO_LONG.contains(&failure.code), "{length}: {failure}");
                assert!(length > 2 * MIB, "{length}: {failure}");
            }
        }
    }
    let others = place.server.connect().text("SELECT 1");
    assert_eq!(others.expect("the server is there"), "1");
    place.proxy.assert_healthy();
}
