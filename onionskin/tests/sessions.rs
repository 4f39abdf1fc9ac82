//! The life of a session: a program that fails is not called twice, prepared statements outlive
//! what goes wrong at the server and have bounds, and a login that fails behind the password says
//! why.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use ::mysql::Value;
use onionskin_testkit::*;

on_both_servers!(
    a_program_that_fails_is_called_once,
    plans_outlive_calls,
    an_expired_password_is_told,
    a_statement_outlives_a_preparation_that_failed,
    prepared_statements_have_bounds,
    set_transaction_is_about_the_clients_next_one,
    savepoints_are_no_tables,
    statements_that_dumps_begin_with,
    a_dump_is_made_and_loaded,
    who_leaves_in_the_greeting_does_not_keep_others_out,
    what_was_said_before_an_error_is_shown,
    conditions_are_shown_in_parts_and_counted,
    texts_for_parameters_are_converted,
    rows_of_prepared_inserts_have_numbers,
    queries_are_analyzed,
);

const USER: &str = "CREATE TABLE user (id INT PRIMARY KEY, name VARCHAR(40) {eq}, age INT {range})";

fn pair(kind: Kind) -> Option<Pair> {
    let mut pair = Pair::start(kind, &[USER, "CREATE TABLE told (what VARCHAR(40))"])?;
    pair.both("INSERT INTO user VALUES (1, 'Alice', 31), (2, 'bob', 17)");
    Some(pair)
}

/// A counter of the server.
fn status(direct: &mut Session, name: &str) -> u64 {
    let shown = direct.text(&format!("SHOW GLOBAL STATUS LIKE '{name}'"));
    let shown = shown.expect("status");
    let count = shown.split('\t').nth(1).and_then(|n| n.parse().ok());
    count.expect("a number")
}

fn a_program_that_fails_is_called_once(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.both(
        "CREATE PROCEDURE p() BEGIN INSERT INTO told VALUES ('p'); SELECT * FROM nowhere; END",
    );
    pair.both("CREATE PROCEDURE q(x INT) BEGIN INSERT INTO told VALUES ('q'); SELECT missing FROM told; END");
    pair.both("PREPARE named FROM 'CALL q(3)'");
    for sql in [
        "CALL p()",
        "  call q(1)",
        "/* why */ CALL q(2)",
        "-- why\nCALL p()",
        "EXECUTE named",
    ] {
        pair.same_error(sql);
        pair.same_result_of_text("SELECT what, COUNT(*) FROM told GROUP BY what ORDER BY what");
    }
    if kind == Kind::MariaDb {
        pair.same_error("EXECUTE IMMEDIATE 'CALL p()'");
        pair.same_error("SET STATEMENT max_statement_time = 10 FOR CALL p()");
        pair.same_result_of_text("SELECT what, COUNT(*) FROM told GROUP BY what ORDER BY what");
    }
    for n in 0..3 {
        for session in [&mut pair.plain, &mut pair.protected] {
            assert!(session.execute("CALL p()", ()).is_err());
            assert!(session.execute("CALL q(?)", (n,)).is_err());
        }
        pair.same_result_of_text("SELECT what, COUNT(*) FROM told GROUP BY what ORDER BY what");
        // what is planned from here on belongs to another generation
        pair.both(&format!("CREATE TABLE other{n} (id INT)"));
        pair.same_error("EXECUTE named");
    }
    pair.same_result_of_text("SELECT what, COUNT(*) FROM told GROUP BY what ORDER BY what");
}

fn plans_outlive_calls(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.both("CREATE PROCEDURE p() INSERT INTO told VALUES ('p')");
    let mut direct = pair.behind.connect();
    let count = |direct: &mut Session| status(direct, "Com_stmt_prepare");
    let ask = |pair: &mut Pair| {
        let name = pair
            .protected
            .execute_text("SELECT name FROM user WHERE id = ?", (1,));
        assert_eq!(name.expect("the row"), "Alice");
    };
    ask(&mut pair);
    let before = count(&mut direct);
    for _ in 0..5 {
        pair.protected.must("CALL p()");
        pair.protected
            .must("SELECT /*!40001 SQL_NO_CACHE */ * FROM told");
        ask(&mut pair);
    }
    assert_eq!(count(&mut direct), before, "nothing is prepared again");
    // a definition, in whatever comment, is noticed
    pair.protected
        .must("/*!50000 ALTER */ TABLE told ADD COLUMN more INT");
    ask(&mut pair);
    assert_eq!(count(&mut direct), before + 1);
}

fn an_expired_password_is_told(kind: Kind) {
    let Some(pair) = pair(kind) else { return };
    let mut direct = pair.behind.connect();
    direct.must("CREATE USER late IDENTIFIED BY 'right'");
    direct.must("GRANT ALL ON app.* TO late");
    drop(Session::open(
        pair.proxy.port(),
        "late",
        "right",
        Some("app"),
    ));
    direct.must("ALTER USER late PASSWORD EXPIRE");
    let Err(failure) = Session::try_open(pair.proxy.port(), "late", "right", Some("app")) else {
        panic!("the password has expired");
    };
    // that the client cannot handle it, or that no statement is taken until it is changed
    assert!([1862, 1820].contains(&failure.code), "{failure}");
    direct.must("ALTER USER late IDENTIFIED BY 'new'");
    drop(Session::open(pair.proxy.port(), "late", "new", Some("app")));
}

fn a_statement_outlives_a_preparation_that_failed(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let mut direct = pair.behind.connect();
    let sql = "SELECT age FROM user WHERE name = ?";
    assert_eq!(
        pair.protected.execute_text(sql, ("bob",)).expect("a row"),
        "17"
    );
    direct.must("SET GLOBAL max_prepared_stmt_count = 0");
    // it has to be prepared again
    pair.protected.must("ALTER TABLE user ADD COLUMN more INT");
    for _ in 0..2 {
        let failed = pair.protected.execute(sql, ("bob",)).expect_err("no room");
        assert_eq!(failed.code, 1461, "{failed}");
    }
    direct.must("SET GLOBAL max_prepared_stmt_count = 16382");
    assert_eq!(
        pair.protected.execute_text(sql, ("bob",)).expect("a row"),
        "17"
    );
}

fn prepared_statements_have_bounds(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let mut client = RawClient::login(pair.proxy.port());
    let sql = b"UPDATE app.user SET age = age + 1 WHERE id = 1";
    let first = client.prepare(sql);
    let mut count = 1;
    let code = loop {
        client.command(22, sql);
        match client.read() {
            Reply::Packet(_) => count += 1,
            Reply::Error(code, ..) => break code,
            other => panic!("{other:?}"),
        }
        assert!(count < 20_000, "no bound");
    };
    assert_eq!((count, code), (16_382, 1461));
    // closing one makes room for another
    client.command(25, &first);
    client.prepare(sql);
    assert_eq!(
        pair.protected
            .text("SELECT age FROM user WHERE id = 1")
            .unwrap(),
        "31"
    );
}

fn set_transaction_is_about_the_clients_next_one(kind: Kind) {
    let Some(pair) = pair(kind) else { return };
    // a proxy that has not looked anything up yet
    let proxy = Proxy::start_with(
        &pair.behind,
        ProxyOptions {
            keys: Some(pair.proxy.keys()),
            ..ProxyOptions::default()
        },
    );
    let mut session = proxy.connect_to("app");
    let mut direct = pair.behind.connect();
    for begin in ["START TRANSACTION", "BEGIN"] {
        session.must("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
        session.must(begin);
        session.must("UPDATE user SET name = 'x' WHERE id = 2");
        let level = direct.text("SELECT trx_isolation_level FROM information_schema.INNODB_TRX WHERE trx_rows_modified > 0");
        assert_eq!(
            level.expect("one transaction"),
            "READ UNCOMMITTED",
            "{begin}"
        );
        session.must("ROLLBACK");
    }
}

fn savepoints_are_no_tables(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let mut direct = pair.behind.connect();
    let questions = |direct: &mut Session| status(direct, "Questions");
    pair.protected.must("START TRANSACTION");
    let before = questions(&mut direct);
    for n in 0..5 {
        pair.protected.must(&format!("SAVEPOINT s{n}"));
        pair.protected
            .must(&format!("ROLLBACK TO SAVEPOINT `s{n}`"));
        pair.protected.must(&format!("ROLLBACK WORK TO s{n}"));
        pair.protected.must(&format!("RELEASE SAVEPOINT s{n}"));
    }
    // and the question itself
    assert_eq!(questions(&mut direct) - before, 20 + 1);
    pair.protected.must("COMMIT");
}

fn statements_that_dumps_begin_with(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.both("INSERT INTO told VALUES ('one')");
    for sql in [
        "/*!40100 SET @@SQL_MODE='' */",
        "/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */",
        "/*!40103 SET TIME_ZONE='+00:00' */",
    ] {
        pair.both(sql);
        pair.same_result_of_text("SELECT @@sql_mode, @@time_zone");
    }
    pair.same_error("INSERT INTO user VALUES (1, 'x', 1)");
    pair.both("INSERT INTO user VALUES (7, 'x', '19 years')");
    pair.same_result("SELECT * FROM user ORDER BY id");
}

fn a_dump_is_made_and_loaded(kind: Kind) {
    // mysqldump wants a login that the tests' root does not have.
    if kind == Kind::MySql {
        return;
    }
    let Some(mut pair) = pair(kind) else { return };
    let client = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(["--no-defaults", "--host=127.0.0.1", "--user=root"]);
        command.arg(format!("--port={}", pair.proxy.port()));
        command.args(arguments);
        command
    };
    let made = client("mariadb-dump", &["app"])
        .output()
        .expect("mariadb-dump");
    let dump = String::from_utf8_lossy(&made.stdout);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    assert!(dump.contains("'Alice'"), "{dump}");
    assert!(!dump.contains("$enc"), "nothing physical: {dump}");
    pair.protected.must("CREATE DATABASE again");
    let mut loader = client("mariadb", &["again"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("mariadb");
    let mut input = loader.stdin.take().expect("a pipe");
    input.write_all(&made.stdout).expect("written");
    drop(input);
    assert!(loader.wait().expect("it ends").success());
    let rows = pair
        .protected
        .text("SELECT * FROM again.user ORDER BY id")
        .expect("rows");
    assert_eq!(rows, "1\tAlice\t31\n2\tbob\t17");
}

/// An address of this machine by which servers count: they do not for 127.0.0.1.
fn own_address() -> Option<String> {
    let output = Command::new("hostname").arg("-I").output().ok()?;
    let addresses = String::from_utf8(output.stdout).ok()?;
    let mut addresses = addresses.split_whitespace();
    addresses.find(|a| a.contains('.')).map(str::to_owned)
}

/// Servers block an address from which connections broke off in the greeting
/// (`max_connect_errors`); behind a proxy that would be everybody's.
fn who_leaves_in_the_greeting_does_not_keep_others_out(kind: Kind) {
    let Some(address) = own_address() else {
        announce("SKIPPED: this machine has no address but 127.0.0.1");
        return;
    };
    let extra = [
        "--bind-address=0.0.0.0".into(),
        "--max-connect-errors=3".into(),
        // Without names of hosts servers do not count.
        "--skip-name-resolve=OFF".into(),
    ];
    let options = ServerOptions {
        extra: extra.into(),
        ..ServerOptions::default()
    };
    let Some(server) = Server::start(kind, options) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let mut admin = server.connect();
    admin.must("CREATE USER far@'%' IDENTIFIED BY 'away'");
    admin.must("GRANT ALL ON *.* TO far@'%'");
    let options = ProxyOptions {
        backend: Some(format!("{address}:{}", server.port())),
        ..ProxyOptions::default()
    };
    let mut proxy = Proxy::start_with(&server, options);
    let leave = |host: &str, port: u16, sends: &[u8]| {
        let mut stream = TcpStream::connect((host, port)).expect("it listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("set");
        let mut packet = [0; 5];
        stream.read_exact(&mut packet).expect("a packet");
        stream.write_all(sends).expect("sent");
        drop(stream);
        // Protocol 10, or an error in the place of the greeting.
        packet[4] == 10
    };
    let port = proxy.port();
    let log_in = || Cli::tcp(kind, port, "far", "away").run("SELECT 1");
    assert!(log_in().success);
    for sends in [&b""[..], b"\x05\0\0\x01hello", b"\x20"] {
        for _ in 0..6 {
            assert!(leave("127.0.0.1", port, sends));
        }
        std::thread::sleep(Duration::from_millis(200));
        let output = log_in();
        assert!(output.success, "{sends:?}: {}", output.err);
    }
    proxy.assert_healthy();
    // That is what the server does to who leaves it himself.
    let greeted = (0..8).filter(|_| {
        std::thread::sleep(Duration::from_millis(50));
        leave(&address, server.port(), b"")
    });
    if greeted.count() == 8 {
        // MySQL counts for addresses only whose name it has found.
        assert_eq!(kind, Kind::MySql, "this test shows nothing");
        announce("NOT COMPARED: this server blocks no address of this machine");
        return;
    }
    assert!(!log_in().success);
    admin.must(match kind {
        Kind::MariaDb => "FLUSH HOSTS",
        Kind::MySql => "TRUNCATE TABLE performance_schema.host_cache",
    });
    assert!(log_in().success);
}

const DATED: &str = "CREATE TABLE dated (id INT PRIMARY KEY, day DATE NOT NULL {range})";

/// After some errors the proxy looks the tables up again, which ends the server's list of warnings.
/// And what is wrong with a value may be found by the proxy, or by the scratch engine.
fn what_was_said_before_an_error_is_shown(kind: Kind) {
    let tables = [
        USER,
        DATED,
        "CREATE TABLE bare (id INT PRIMARY KEY, day DATE NOT NULL)",
        "CREATE TABLE kept (id INT PRIMARY KEY, n SMALLINT {}, at TIME {}, c VARCHAR(1), UNIQUE KEY (c))",
    ];
    let Some(mut pair) = Pair::start(kind, &tables) else {
        return;
    };
    pair.both("INSERT INTO user VALUES (1, 'Alice', 31), (2, 'bob', 17)");
    pair.both("INSERT INTO kept VALUES (1, 1, '10:00:00', 'a'), (2, 2, '11:00:00', 'b')");
    for sql in [
        "REPLACE INTO bare (id, day) VALUES (1, '2020-01-31 10:11:12'), (2, DEFAULT)",
        "INSERT INTO dated (id, day) VALUES (1, '2020-01-31 10:11:12'), (2, 'abc')",
        "INSERT INTO dated (id) SELECT id + 10 FROM user",
        "INSERT INTO dated (id, day) SELECT id + 10, CONCAT('x', name) FROM user",
        "SELECT missing FROM bare",
        // clipped to 64 bits and then to 16
        "INSERT INTO kept (id, n) VALUES (3, 99999999999999999999)",
        "INSERT INTO kept (id, n) VALUES (3, 99999)",
        "UPDATE kept SET n = n + 1, c = 'y   '",
        "INSERT INTO kept (id, c, at) VALUES (3, 'c', TIME'10:11:12'), (4, 'b', '10:11:12.25')",
    ] {
        for question in [
            "SHOW WARNINGS",
            "SELECT @@warning_count, @@error_count",
            "SHOW ERRORS",
            "SELECT ROW_COUNT()",
        ] {
            pair.same_error(sql);
            pair.same_result_of_text(question);
        }
        pair.same_result_of_text("SELECT COUNT(*) FROM dated");
        pair.both("DO 1");
        pair.same_result_of_text("SHOW WARNINGS");
    }
}

fn conditions_are_shown_in_parts_and_counted(kind: Kind) {
    let table = "CREATE TABLE visit (id INT PRIMARY KEY AUTO_INCREMENT, day DATE NOT NULL {range})";
    let Some(mut pair) = Pair::start(kind, &[table]) else {
        return;
    };
    pair.both("SET sql_mode = ''");
    let warned =
        "INSERT INTO visit (day) VALUES ('x'), ('2020-01-31 10:11:12'), ('y'), ('2020-01-32')";
    pair.both(warned);
    pair.same_result_of_text("SHOW COUNT(*) WARNINGS");
    pair.same_result_of_text("SHOW WARNINGS");
    for question in [
        "SHOW WARNINGS LIMIT 2",
        "show warnings limit 1, 2",
        "SHOW WARNINGS LIMIT 2 OFFSET 1",
        "SHOW WARNINGS /* 7 */ LIMIT 0",
        "SHOW WARNINGS LIMIT 100, 100",
        "SHOW WARNINGS LIMIT 1, 18446744073709551615",
        "SHOW ERRORS LIMIT 5",
        "SHOW COUNT( * ) WARNINGS",
        "SHOW COUNT(*) ERRORS",
    ] {
        pair.both(warned);
        pair.same_result_of_text(question);
        // it is no statement that ends what there is to say
        pair.same_result_of_text("SHOW WARNINGS LIMIT 3");
    }
    pair.both("SET sql_mode = DEFAULT");
    for question in [
        "SHOW WARNINGS LIMIT 1",
        "SHOW WARNINGS LIMIT 1, 1",
        "SHOW ERRORS LIMIT 1",
        "SHOW ERRORS LIMIT 1, 1",
        "SHOW COUNT(*) WARNINGS",
        "SHOW COUNT(*) ERRORS",
    ] {
        for wrong in [
            "UPDATE visit SET day = 'x' WHERE id = 1",
            "INSERT INTO visit VALUES (1, '2020-01-31')",
        ] {
            pair.same_error(wrong);
            pair.same_result_of_text(question);
        }
    }
}

/// MySQL gives a parameter the type of the column that it is for; a text for it is converted before
/// it is stored.
fn texts_for_parameters_are_converted(kind: Kind) {
    let table = "CREATE TABLE shift (id INT PRIMARY KEY AUTO_INCREMENT, at TIME {range}, b BIT(9) {eq}, n SMALLINT {eq})";
    let Some(mut pair) = Pair::start(kind, &[table]) else {
        return;
    };
    pair.both("INSERT INTO shift (at) VALUES ('10:00:00')");
    for (sql, text) in [
        ("INSERT INTO shift (at) VALUES (?)", "2020-01-31 10:11:12"),
        ("UPDATE shift SET at = ?", "2020-01-31 10:11:12.5"),
        ("INSERT INTO shift (b) VALUES (?)", "7"),
        ("UPDATE shift SET b = ?", "-1"),
        ("INSERT INTO shift (n) VALUES (?)", "-99999999999999999999"),
        ("INSERT INTO shift (n) VALUES (?)", "70000"),
    ] {
        let said = [&mut pair.plain, &mut pair.protected].map(|session| {
            let done = session.execute(sql, vec![Value::from(text)]);
            done.map(|o| o.warnings).map_err(|e| (e.code, e.message))
        });
        assert_eq!(said[0], said[1], "{sql}: {text}");
        pair.same_result_of_text("SHOW WARNINGS");
        pair.same_result_of_text("SELECT at, HEX(b), n FROM shift ORDER BY id");
    }
}

fn rows_of_prepared_inserts_have_numbers(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[DATED]) else {
        return;
    };
    let (short, long) = (
        Value::from("2020-01-31"),
        Value::from("2020-01-31 10:11:12"),
    );
    let insert = "INSERT INTO dated (id, day) VALUES (?, ?), (?, ?), (?, '2020-02-01 10:11:12')";
    let mut run = |days: [&Value; 2], first: u32| {
        let mut parameters = Vec::new();
        for (n, day) in (first..).zip(days) {
            parameters.extend([Value::from(n), day.clone()]);
        }
        parameters.push(Value::from(first + 2));
        let said = [&mut pair.plain, &mut pair.protected].map(|session| {
            let done = session.execute(insert, parameters.clone());
            done.map(|o| o.warnings).map_err(|e| (e.code, e.message))
        });
        assert_eq!(said[0], said[1], "{parameters:?}");
        pair.same_result_of_text("SHOW WARNINGS");
        said[0].is_ok()
    };
    assert!(run([&short, &long], 1));
    assert!(run([&long, &long], 11));
    assert!(!run([&long, &Value::from("abc")], 21));
    pair.same_result_of_text("SELECT id, day FROM dated ORDER BY id");
}

/// Both servers run a query to tell how that went. What it reads is found by tokens, and its rows
/// are not shown.
fn queries_are_analyzed(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let analyze = match kind {
        Kind::MariaDb => "ANALYZE",
        Kind::MySql => "EXPLAIN ANALYZE",
    };
    for query in [
        "SELECT name FROM user WHERE name = 'alice'",
        "SELECT COUNT(*) FROM user WHERE age > 20 GROUP BY name",
        "WITH w AS (SELECT name FROM user) SELECT * FROM w",
    ] {
        let told = pair.protected.must(&format!("{analyze} {query}"));
        assert!(!told.sets[0].rows.is_empty(), "{query}");
        let shown = format!("{:?}", told.sets[0].rows);
        assert!(!shown.to_lowercase().contains("alice"), "{query}: {shown}");
    }
    for statement in [
        "DELETE FROM user WHERE name = 'alice'",
        "UPDATE user SET age = 3",
        "INSERT INTO user VALUES (3, 'c', 3)",
    ] {
        let failure = pair.protected.run(&format!("{analyze} {statement}"));
        let failure = failure.expect_err(statement);
        assert!(failure.message.starts_with("OS1001"), "{failure}");
    }
    pair.same_result_of_text("SELECT id, name, age FROM user ORDER BY id");
}
