//! Texts in which the proxy cannot tell what the server reads, and texts that would cost it more
//! than the server. None of them takes a value past a protected table, past an enforced section or
//! past a pin, and none takes the process.

use onionskin_testkit::*;

use ::mysql::prelude::Queryable;
use std::time::Duration;

on_both_servers!(
    dollars_hide_no_statement,
    square_brackets_hide_no_statement,
    enforced_patterns_hold_near_texts_that_are_not_read,
    pins_reach_every_account,
    names_take_little_memory,
    unread_texts_under_a_limit_keep_the_session,
    values_for_tables_that_are_missing,
    rows_of_binary_logs,
);

/// In every value that must not reach the server.
const SECRET_TEXT: &str = "zanzibarB7q";
/// How old what a proxy of these tests knows of a table may be, in milliseconds: less than usual.
const RECHECK: &str = "200";
/// The same, and some more.
const A_WHILE: Duration = Duration::from_millis(300);

const PROTECTED: &str =
    "CREATE TABLE ov (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) ENCRYPTED FOR (eq))";
const PLAIN: &str = "CREATE TABLE ov (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40))";

struct Place {
    server: Server,
    proxy: Proxy,
    admin: Session,
}

impl Place {
    fn start(kind: Kind, tables: &str) -> Option<Place> {
        if direct_mode() {
            return None;
        }
        let options = ServerOptions {
            general_log: true,
            ..ServerOptions::default()
        };
        let server = Server::start(kind, options)?;
        let options = ProxyOptions {
            tables: tables.into(),
            environment: vec![("ONIONSKIN_TEST_RECHECK".into(), RECHECK.into())],
            ..ProxyOptions::default()
        };
        let proxy = Proxy::start_with(&server, options);
        let mut admin = server.connect();
        admin.must("CREATE DATABASE app DEFAULT CHARSET utf8mb4");
        admin.must("USE app");
        proxy.connect_to("app").must(PROTECTED);
        Some(Place {
            server,
            proxy,
            admin,
        })
    }

    /// The administrator puts a plain table in the place of the protected one.
    fn exchange(&mut self) {
        self.admin.must("DROP TABLE ov");
        self.admin.must(PLAIN);
        std::thread::sleep(A_WHILE);
    }

    /// Sends a text of any bytes, and takes all its answers.
    fn send(&self, before: &str, text: &[u8]) -> Result<(), String> {
        let Ok(text) = std::str::from_utf8(text) else {
            let mut client = RawClient::login(self.proxy.port());
            client.query(b"USE app");
            client.query(before.as_bytes());
            let said = client.query(text);
            assert_ne!(client.query(b"SELECT 4711"), Reply::Closed);
            return match said {
                Reply::Packet(_) => Ok(()),
                other => Err(format!("{other:?}")),
            };
        };
        let mut session = self.proxy.connect_to("app");
        if !before.is_empty() {
            session.must(before);
        }
        let sent = session.conn().query_drop(text);
        assert!(session.answers_itself(), "{text}");
        sent.map_err(|error| error.to_string())
    }

    fn nothing_leaked(mut self) {
        self.proxy.assert_healthy();
        self.server.shutdown();
        self.server.assert_no_trace_of(&[SECRET_TEXT]);
    }
}

/// MySQL 9 reads `$$ … $$` as a text: a quote in it ends nowhere.
fn dollars_hide_no_statement(kind: Kind) {
    let Some(place) = Place::start(kind, "") else {
        return;
    };
    let insert = format!("INSERT INTO app.ov (id, name) VALUES (9, \"{SECRET_TEXT}\")");
    let update = "UPDATE app.ov SET id = 77 WHERE id = 1".to_owned();
    place
        .proxy
        .connect_to("app")
        .must("INSERT INTO ov VALUES (1, 'a')");
    let function = "CREATE FUNCTION app.i1() RETURNS INT NO SQL LANGUAGE JAVASCRIPT AS";
    for hidden in [&insert, &update] {
        for (open, close) in [
            ("$$", "$$"),
            ("$a$", "$a$"),
            ("$_1$", "$_1$"),
            ("$é$", "$é$"),
        ] {
            for text in [
                format!("{function} {open} ' {close}; {hidden} -- '"),
                format!("{function} {open} /* {close}; {hidden} -- */"),
                format!("SELECT 1 {open} ' {close}; {hidden} -- '"),
                format!("SELECT 1.{open} ' {close}; {hidden} -- '"),
                format!("SELECT t. {open} ' {close}; {hidden} -- '"),
                format!("SELECT 'x'{open} ' {close}; {hidden} -- '"),
            ] {
                let said = place.send("", text.as_bytes());
                let said = said.expect_err(&text);
                assert!(said.contains("OS10"), "{text}: {said}");
            }
        }
    }
    let ids = place.proxy.connect_to("app").text("SELECT id FROM ov");
    assert_eq!(ids.as_deref(), Ok("1"));
    // names may have one, as they did
    let mut session = place.proxy.connect_to("app");
    session.must("CREATE TABLE a$b (c$d$e INT)");
    session.must("INSERT INTO a$b (c$d$e) VALUES (1)");
    assert_eq!(session.text("SELECT c$d$e FROM a$b").as_deref(), Ok("1"));
    drop(session);
    place.nothing_leaked();
}

/// MariaDB reads `[…]` as a name in quotes under one word of `sql_mode`.
fn square_brackets_hide_no_statement(kind: Kind) {
    let tables = "\n[protect.\"app.ov\"]\nname = [\"eq\"]\nenforce = true\n";
    let Some(mut place) = Place::start(kind, tables) else {
        return;
    };
    let mode = "SET sql_mode = 'MSSQL'";
    if place.proxy.connect_to("app").run(mode).is_err() {
        assert_eq!(kind, Kind::MySql, "MariaDB knows the word");
        return;
    }
    let texts = [
        format!(
            "SELECT 1 AS [a ' b]; INSERT INTO app.ov (name) VALUES (\"{SECRET_TEXT}\"); SELECT 2 AS [c ' d]"
        ),
        format!(
            "SELECT 1 AS [a ' b]; INSERT INTO app.ov (name) VALUES (0x{}); SELECT 2 AS [c ' d]",
            hex(SECRET_TEXT)
        ),
        format!(
            "SELECT 1 AS [a ' b], (SELECT COUNT(*) FROM app.ov WHERE name = 0x{}) AS n, 3 AS [c ' d]",
            hex(SECRET_TEXT)
        ),
        format!("INSERT INTO [ov] (name) VALUES (0x{})", hex(SECRET_TEXT)),
        format!("INSERT INTO ov (name) VALUES (0x{})", hex(SECRET_TEXT)),
    ];
    for exchanged in [false, true] {
        if exchanged {
            place.exchange();
        }
        for text in &texts {
            let said = place.send(mode, text.as_bytes()).expect_err(text);
            assert!(said.contains("OS10"), "{text}: {said}");
        }
        let mut session = place.proxy.connect_to("app");
        session.must(mode);
        let prepared = session.conn().prep(&texts[2]);
        assert!(prepared.is_err(), "prepared");
        assert_eq!(session.text("SELECT 1 AS [a ' b]").as_deref(), Ok("1"));
    }
    assert_eq!(
        place.admin.text("SELECT COUNT(*) FROM ov").as_deref(),
        Ok("0")
    );
    let log = std::fs::read_to_string(place.server.data_dir().join("general.log")).unwrap();
    assert!(
        !log.contains(&hex(SECRET_TEXT)),
        "a value reached the server"
    );
    place.nothing_leaked();
}

fn hex(text: &str) -> String {
    text.bytes().map(|b| format!("{b:02x}")).collect()
}

fn enforced_patterns_hold_near_texts_that_are_not_read(kind: Kind) {
    for pattern in ["app.*", "*.ov", "a*.o*"] {
        let tables = format!("\n[protect.\"{pattern}\"]\nname = [\"eq\"]\nenforce = true\n");
        let Some(mut place) = Place::start(kind, &tables) else {
            return;
        };
        place.exchange();
        place
            .admin
            .must("CREATE VIEW elsewhere AS SELECT * FROM ov");
        place.admin.must("CREATE DATABASE other");
        place
            .admin
            .must("CREATE TABLE other.unconcerned (id INT, name VARCHAR(40))");
        std::thread::sleep(A_WHILE);
        let value = SECRET_TEXT;
        let mut texts: Vec<(&str, Vec<u8>)> = vec![
            (
                "",
                format!("INSERT INTO ov (name) VALUES ('{value}')").into(),
            ),
            (
                "",
                format!("CREATE PROCEDURE p() INSERT INTO ov (name) VALUES ('{value}')").into(),
            ),
        ];
        // a statement that is read names the view, which a section has to match itself
        if pattern == "app.*" {
            let insert = format!("INSERT INTO elsewhere (name) VALUES ('{value}')");
            texts.push(("", format!("CREATE PROCEDURE p() {insert}").into()));
            texts.push(("", insert.into()));
        }
        let mut latin = b"INSERT INTO\xa0ov (name) VALUES ('".to_vec();
        latin.extend_from_slice(value.as_bytes());
        latin.extend_from_slice(b"')");
        texts.push(("SET NAMES latin1", latin.clone()));
        texts.push(("SET NAMES cp1251", latin));
        if kind == Kind::MariaDb {
            let compound = |table| {
                format!("BEGIN NOT ATOMIC INSERT INTO {table} (name) VALUES ('{value}'); END")
            };
            texts.push(("", compound("ov").into()));
            texts.push(("", compound("elsewhere").into()));
        }
        for (before, text) in &texts {
            let shown = String::from_utf8_lossy(text);
            let said = place.send(before, text).expect_err(&shown);
            assert!(said.contains("OS1"), "{pattern}, {shown}: {said}");
        }
        assert_eq!(
            place.admin.text("SELECT COUNT(*) FROM ov").as_deref(),
            Ok("0")
        );
        // what the section does not mean goes on
        if pattern != "*.ov" {
            place
                .send(
                    "",
                    b"CREATE PROCEDURE other.q() INSERT INTO other.unconcerned VALUES (1, 'x')",
                )
                .unwrap();
            place
                .send(
                    "SET NAMES latin1",
                    b"INSERT INTO other.unconcerned VALUES (1, '\xe9') /* \xa0 */",
                )
                .unwrap();
        }
        place.nothing_leaked();
    }
}

/// The file is read by one session; the plans of all accounts rest on it.
fn pins_reach_every_account(kind: Kind) {
    let Some(mut place) = Place::start(kind, "") else {
        return;
    };
    for user in ["u", "v"] {
        place
            .admin
            .must(&format!("CREATE USER {user}@'%' IDENTIFIED BY 'p'"));
        place
            .admin
            .must(&format!("GRANT ALL ON app.* TO {user}@'%'"));
    }
    let file = place.proxy.folder().join("onionskin.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("pins = \"pins\"\n{text}")).unwrap();
    let pin = |place: &Place| {
        let (succeeded, said) = place
            .proxy
            .command(&["pin", "-c", "onionskin.toml", "--accept"]);
        assert!(succeeded, "{said}");
    };
    // pins of another table of this name, then of the one that there is
    let pins = place.proxy.folder().join("pins");
    pin(&place);
    let of_another = std::fs::read(&pins).unwrap();
    place.proxy.connect_to("app").must("DROP TABLE ov");
    place.proxy.connect_to("app").must(PROTECTED);
    pin(&place);
    place.proxy.terminate();
    place.proxy.restart();
    let port = place.proxy.port();
    let mut sessions: Vec<Session> = ["u", "v"]
        .into_iter()
        .map(|user| Session::open(port, user, "p", Some("app")))
        .collect();
    for session in &mut sessions {
        session.must("SELECT id, name FROM ov");
    }
    std::fs::write(&pins, of_another).unwrap();
    std::thread::sleep(A_WHILE);
    for session in &mut sessions {
        let _ = session.run("SELECT id, name FROM ov");
    }
    for session in &mut sessions {
        let said = session
            .run("SELECT id, name FROM ov")
            .expect_err("pinned otherwise");
        assert!(said.message.starts_with("OS1109"), "{said}");
    }
    drop(sessions);
    place.nothing_leaked();
}

/// Statements with many names do not fill the memory: not one of them, and not many.
fn names_take_little_memory(kind: Kind) {
    let Some(place) = Place::start(kind, "") else {
        return;
    };
    let memory = || {
        let status = format!("/proc/{}/status", place.proxy.pid().expect("it runs"));
        let status = std::fs::read_to_string(status).unwrap();
        let line = status
            .lines()
            .find(|l| l.starts_with("VmRSS:"))
            .expect("a line");
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
            / 1024
    };
    let mut session = place.proxy.connect_to("app");
    let before = memory();
    let names = |prefix: &str, count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("{prefix}{n}")).collect();
        format!("SELECT {}", names.join(","))
    };
    let said = session.run(&names("n", 200_000)).expect_err("too many");
    assert!(said.message.starts_with("OS1"), "{said}");
    // kept, the names of each would be 300 KiB
    let (rounds, limit) = if long_run() { (1000, 150) } else { (250, 60) };
    for n in 0..rounds {
        let _ = session.run(&names(&format!("z{n},a"), 3000));
    }
    assert!(session.answers_itself());
    let after = memory();
    assert!(
        after < before + limit,
        "{before} MiB before, {after} MiB after"
    );
    drop(session);
    place.nothing_leaked();
}

/// Before a text that is not read is relayed, the names of all protected tables are asked for,
/// whatever `sql_select_limit` is.
fn unread_texts_under_a_limit_keep_the_session(kind: Kind) {
    let Some(place) = Place::start(kind, "") else {
        return;
    };
    let mut session = place.proxy.connect_to("app");
    session.must("CREATE TABLE two (id INT PRIMARY KEY, name VARCHAR(9) ENCRYPTED FOR (eq))");
    session.must("SET SESSION sql_select_limit = 1");
    for text in ["SELECT 'open", "SELECT * FROM nowhere WHERE a = 'open"] {
        assert_eq!(session.must_fail(text), 1064, "{text}");
        assert!(session.answers_itself(), "{text}");
    }
    for text in [
        "SELECT name FROM ov WHERE name = 'open",
        "SELECT name FROM two WHERE name = 'open",
        "CREATE TABLE three (id INT PRIMARY KEY, name VARCHAR(9) ENCRYPTED  FOR (eq)) COMMENT 'open",
    ] {
        let said = session.run(text).expect_err(text);
        assert!(said.message.starts_with("OS1"), "{text}: {said}");
        assert!(session.answers_itself(), "{text}");
    }
    drop(session);
    place.nothing_leaked();
}

/// Statements with a value for a table that is not there.
fn of_a_missing_table(kind: Kind) -> Vec<String> {
    let v = SECRET_TEXT;
    let mut statements = vec![
        format!("INSERT INTO lost VALUES ('{v}')"),
        format!("INSERT INTO app.lost (a) VALUES ('{v}')"),
        format!("INSERT lost SET a = '{v}'"),
        format!("insert low_priority ignore into `lost` values ('{v}')"),
        format!("REPLACE INTO lost VALUES ('{v}')"),
        format!("REPLACE lost VALUES ('{v}')"),
        format!("UPDATE lost SET a = '{v}'"),
        format!("UPDATE other.plain p, lost SET lost.a = '{v}'"),
        format!("UPDATE other.plain p JOIN lost ON p.a = lost.a SET lost.a = '{v}'"),
        format!("DELETE FROM lost WHERE a = '{v}'"),
        format!("DELETE QUICK FROM lost WHERE a = '{v}'"),
        format!("SELECT * FROM lost WHERE a = '{v}'"),
        format!("SELECT * FROM other.plain, lost WHERE lost.a = '{v}'"),
        format!("SELECT * FROM (other.plain, lost) WHERE lost.a = '{v}'"),
        format!("SELECT * FROM other.plain LEFT JOIN lost USING (a) WHERE lost.a = '{v}'"),
        format!("SELECT (SELECT 1 FROM lost WHERE a = '{v}')"),
        format!("(SELECT * FROM lost WHERE a = '{v}')"),
        format!("SELECT 1 UNION SELECT a FROM lost WHERE a = '{v}'"),
        format!("WITH w AS (SELECT * FROM lost WHERE a = '{v}') SELECT * FROM w"),
        format!("INSERT INTO other.plain SELECT a, NULL FROM lost WHERE a = '{v}'"),
        format!("EXPLAIN SELECT * FROM lost WHERE a = '{v}'"),
        format!("DO (SELECT 1 FROM lost WHERE a = '{v}')"),
        format!("SET @found = (SELECT 1 FROM lost WHERE a = '{v}')"),
    ];
    if kind == Kind::MySql {
        statements.push(format!(
            "SELECT * FROM other.plain STRAIGHT_JOIN lost WHERE lost.a = '{v}'"
        ));
    }
    statements
}

/// A table that is not there, of a name that a pattern is about: its CREATE TABLE was refused, say.
/// The server says that it is missing, and sees no value.
fn values_for_tables_that_are_missing(kind: Kind) {
    let policy = "[protect.\"app.*\"]\n\"*\" = [\"eq\"]\n";
    let Some(mut place) = Place::start(kind, policy) else {
        return;
    };
    let mut session = place.proxy.connect_to("app");
    let refused = "CREATE TABLE lost (a FLOAT(8,2), g GEOMETRY NOT NULL, SPATIAL KEY (g))";
    session.run(refused).expect_err(refused);
    session.must("CREATE TABLE there (id INT PRIMARY KEY, a VARCHAR(20))");
    place.admin.must("CREATE DATABASE other");
    place
        .admin
        .must("CREATE TABLE other.plain (a VARCHAR(40), d DATE)");
    let v = SECRET_TEXT;
    let statements = of_a_missing_table(kind);
    for sql in &statements {
        let failure = session.run(sql).expect_err(sql);
        let text = failure.to_string();
        assert!(
            text.contains("app.lost") && failure.code == 1146,
            "{sql}: {text}"
        );
        let quoted = sql.replace('\'', "''");
        let failure = session
            .run(&format!("PREPARE p FROM '{quoted}'"))
            .expect_err(sql);
        assert_eq!(failure.code, 1146, "PREPARE {sql}: {failure}");
        let failure = session.conn().prep(sql).expect_err(sql);
        assert!(
            failure.to_string().contains("1146"),
            "prepared {sql}: {failure}"
        );
        // a text with a variable may ask about the statement before it, and is refused
        if kind == Kind::MariaDb && !sql.contains('@') {
            let immediate = format!("EXECUTE IMMEDIATE '{quoted}'");
            let failure = session.run(&immediate).expect_err(sql);
            assert_eq!(failure.code, 1146, "{immediate}: {failure}");
        }
    }
    // what is no table goes through
    for (sql, found) in [
        (
            "SELECT EXTRACT(YEAR FROM d) FROM other.plain WHERE a = 'x'",
            "",
        ),
        ("SELECT TRIM('x' FROM 'xax')", "a"),
        ("WITH w (x) AS (SELECT 'q') SELECT x FROM w", "q"),
        ("SELECT SUBSTRING('abc' FROM 2)", "bc"),
        (
            "SELECT x.id FROM there x, other.plain y WHERE x.a = 'q' AND y.a = 'q'",
            "",
        ),
        (
            "SELECT GROUP_CONCAT(a SEPARATOR ',') FROM other.plain WHERE a = 'q'",
            "NULL",
        ),
        (
            "SELECT a, COUNT(*) FROM other.plain WHERE a = 'q' GROUP BY 1 FOR UPDATE",
            "",
        ),
    ] {
        assert_eq!(session.text(sql).as_deref(), Ok(found), "{sql}");
    }
    for sql in [
        "INSERT INTO other.plain VALUES ('a', NULL) ON DUPLICATE KEY UPDATE a = 'x'",
        "DELETE y FROM other.plain y WHERE y.a = 'q'",
        "DELETE FROM y USING other.plain y WHERE y.a = 'q'",
        "UPDATE other.plain y SET y.a = 'b' WHERE y.a = 'q'",
    ] {
        session.must(sql);
    }
    session.must("CREATE TEMPORARY TABLE unlisted (id INT AUTO_INCREMENT PRIMARY KEY)");
    session.must("INSERT INTO unlisted VALUES (17)");
    session.must("UPDATE unlisted SET id = 18 WHERE id = 17");
    let found = session.text("SELECT id FROM unlisted WHERE id > 17");
    assert_eq!(found.as_deref(), Ok("18"));
    session.must("CREATE TEMPORARY TABLE other.temp (a INT)");
    session.must("INSERT INTO other.temp VALUES (17)");
    assert_eq!(
        session
            .text("SELECT a FROM other.temp WHERE a > 16")
            .as_deref(),
        Ok("17")
    );
    // an account that may not see any table there
    place
        .admin
        .must("CREATE USER narrow@'%' IDENTIFIED BY 'secret'");
    place.admin.must("GRANT ALL ON other.* TO narrow@'%'");
    let mut narrow = Session::open(place.proxy.port(), "narrow", "secret", Some("other"));
    for (sql, verb) in [
        (format!("INSERT INTO app.lost VALUES ('{v}')"), "INSERT"),
        (format!("SELECT * FROM app.there WHERE a = '{v}'"), "SELECT"),
    ] {
        let failure = narrow.run(&sql).expect_err(&sql);
        let text = failure.to_string();
        assert!(failure.code == 1142 && text.contains(verb), "{sql}: {text}");
    }
    drop((session, narrow));
    place.nothing_leaked();
}

/// What mysqlbinlog prints of a log with rows: which tables they are of is in no word.
fn rows_of_binary_logs(kind: Kind) {
    let Some(place) = Place::start(kind, "") else {
        return;
    };
    // of SECRET_TEXT
    let rows = "emFuemliYXJCN3E=";
    let mut texts = vec![
        format!("BINLOG '{rows}'"),
        format!("bInLoG /* x */ '\n{rows}\n'/*!*/"),
        format!("/*!40000 BINLOG '{rows}' */"),
        format!("/*!40000 */ BINLOG '{rows}'"),
        format!("PREPARE p FROM \"BINLOG '{rows}'\""),
    ];
    if kind == Kind::MariaDb {
        texts.push(format!("EXECUTE IMMEDIATE \"BINLOG '{rows}'\""));
        texts.push(format!(
            "SET STATEMENT max_statement_time = 1 FOR BINLOG '{rows}'"
        ));
        texts.push("BINLOG @a, @b".into());
    }
    for text in &texts {
        for before in ["DO 0", "SET NAMES sjis"] {
            let said = place.send(before, text.as_bytes()).expect_err(text);
            assert!(said.contains("OS10"), "{text}: {said}");
        }
        let mut session = place.proxy.connect_to("app");
        assert!(session.conn().prep(text).is_err(), "{text}");
        assert!(session.run(&format!("DO 1; {text}")).is_err(), "{text}");
    }
    let log = std::fs::read_to_string(place.server.data_dir().join("general.log"));
    assert!(!log.expect("a log").contains(rows));
    place.nothing_leaked();
}
