//! A table becomes a protected one through another proxy. From a second later on, nothing that is
//! written to it reaches the server as plaintext, whichever way it takes: text, prepared, in
//! pieces, several statements, PREPARE by name, views, other names.
//!
//! The server's general log and its memory of statements are searched for the values; a value of an
//! unprotected column, which is there, shows that the search works. The look-ups that this rests on
//! are counted, and tell no words of statements.

#[path = "canary_stale/accounts.rs"]
mod accounts;
#[path = "canary_stale/snapshots.rs"]
mod snapshots;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use ::mysql::prelude::Queryable;
use accounts::{accounts_that_see_no_columns, roles_see_other_tables};
use onionskin_testkit::*;
use snapshots::{
    a_transaction_that_sees_the_past, definitions_that_are_not_shown, questions_that_share_a_past,
    what_is_supposed_hides_no_table,
};

on_both_servers!(
    a_table_becomes_protected,
    in_pieces,
    views_become_protected,
    tables_change_their_names,
    look_ups_tell_no_words,
    look_ups_are_few,
    a_function_changes_the_session,
    accounts_that_see_no_columns,
    roles_see_other_tables,
    questions_about_the_last_statement,
    a_transaction_that_sees_the_past,
    definitions_that_are_not_shown,
    questions_that_share_a_past,
    what_is_supposed_hides_no_table,
);

/// In every value that must not be found.
const SECRET: &str = "zanzibarsecret";
/// In values of unprotected columns.
const CONTROL: &str = "kilimanjaro";
/// Longer than what a proxy knows may be old.
const A_SECOND: Duration = Duration::from_millis(1300);

/// Two proxies before one server, with the same keys.
struct Two {
    server: Server,
    here: Proxy,
    elsewhere: Proxy,
    secrets: usize,
}

impl Two {
    fn start(kind: Kind) -> Option<Two> {
        if direct_mode() {
            return None;
        }
        let options = ServerOptions {
            general_log: true,
            performance_schema: true,
            ..ServerOptions::default()
        };
        let server = Server::start(kind, options)?;
        server.connect().must("CREATE DATABASE app");
        let elsewhere = Proxy::start(&server, "");
        let options = ProxyOptions {
            keys: Some(elsewhere.keys()),
            ..ProxyOptions::default()
        };
        let here = Proxy::start_with(&server, options);
        Some(Two {
            server,
            here,
            elsewhere,
            secrets: 0,
        })
    }

    fn plain(&self, table: &str) {
        let sql = format!(
            "CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(60), open VARCHAR(60))"
        );
        self.elsewhere.connect_to("app").must(&sql);
    }

    fn protected(&self, table: &str) {
        let sql = format!(
            "CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(60) ENCRYPTED FOR (eq), open VARCHAR(60))"
        );
        self.elsewhere.connect_to("app").must(&sql);
    }

    /// Through the other proxy, the table is dropped and made anew. A second passes.
    fn becomes_protected(&self, table: &str) {
        let drop = format!("DROP TABLE IF EXISTS {table}");
        self.elsewhere.connect_to("app").must(&drop);
        self.protected(table);
        sleep(A_SECOND);
    }

    fn secret(&mut self) -> String {
        self.secrets += 1;
        format!("{SECRET}{}", self.secrets)
    }

    fn log(&self) -> String {
        let log = std::fs::read(self.server.data_dir().join("general.log")).unwrap();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Searches all that the server remembers.
    fn conclude(&mut self) {
        let mut memory = self.log();
        for table in [
            "events_statements_history",
            "events_statements_history_long",
        ] {
            let sql = format!("SELECT SQL_TEXT FROM performance_schema.{table}");
            memory += &self.server.connect().text(&sql).unwrap();
        }
        let memory = memory.to_lowercase();
        assert!(memory.contains(CONTROL), "the search works");
        let hex: String = SECRET.bytes().map(|b| format!("{b:02x}")).collect();
        for form in [SECRET, &hex] {
            let found = memory.lines().find(|line| line.contains(form));
            assert_eq!(found, None, "a protected value reached the server");
        }
        self.here.assert_healthy();
    }

    /// Reads a value back, through the proxy that had to notice.
    fn reads(&self, table: &str, secret: &str) {
        let sql = format!("SELECT name FROM {table} WHERE name = '{secret}'");
        let text = self.here.connect_to("app").text(&sql).unwrap();
        assert_eq!(text, secret, "{table}");
    }
}

fn a_table_becomes_protected(kind: Kind) {
    let Some(mut two) = Two::start(kind) else {
        return;
    };
    let mut session = two.here.connect_to("app");

    two.plain("texts");
    let insert =
        |name: &str| format!("INSERT INTO texts (name, open) VALUES ('{name}', '{CONTROL}')");
    session.must(&insert("before"));
    session.must(&insert("before"));
    two.becomes_protected("texts");
    let secret = two.secret();
    session.must(&insert(&secret));
    two.reads("texts", &secret);

    two.plain("prepared");
    let sql = "INSERT INTO prepared (name, open) VALUES (?, ?)";
    let prepared = session.conn().prep(sql).expect("a statement");
    let execute = |session: &mut Session, name: &str| {
        let done = session.conn().exec_drop(&prepared, (name, CONTROL));
        done.expect("an execution");
    };
    execute(&mut session, "before");
    two.becomes_protected("prepared");
    let secret = two.secret();
    execute(&mut session, &secret);
    two.reads("prepared", &secret);

    // a handle is told from what it was when other statements have noticed first, too
    two.plain("noticed");
    let sql = "INSERT INTO noticed (name) VALUES (?)";
    let prepared = session.conn().prep(sql).expect("a statement");
    session.conn().exec_drop(&prepared, ("before",)).unwrap();
    two.becomes_protected("noticed");
    let mut other = two.here.connect_to("app");
    other.must("SELECT COUNT(*) FROM noticed");
    let secret = two.secret();
    session.conn().exec_drop(&prepared, (&secret,)).unwrap();
    two.reads("noticed", &secret);

    two.plain("several");
    let insert = |name: &str| {
        format!(
            "INSERT INTO several (open) VALUES ('{CONTROL}'); INSERT INTO several (name) VALUES ('{name}')"
        )
    };
    session.must(&insert("before"));
    session.must(&insert("before"));
    two.becomes_protected("several");
    let secret = two.secret();
    session.must(&insert(&secret));
    two.reads("several", &secret);

    two.plain("named");
    let prepare =
        |name: &str| format!("PREPARE s FROM 'INSERT INTO named (name) VALUES (''{name}'')'");
    session.must(&prepare("before"));
    session.must("EXECUTE s");
    session.must(&prepare("before"));
    two.becomes_protected("named");
    let secret = two.secret();
    session.must(&prepare(&secret));
    session.must("EXECUTE s");
    two.reads("named", &secret);

    // it was known not to be there
    let insert = |name: &str| format!("INSERT INTO absent (name) VALUES ('{name}')");
    assert_eq!(session.must_fail(&insert("before")), 1146);
    assert_eq!(session.must_fail(&insert("before")), 1146);
    two.becomes_protected("absent");
    let secret = two.secret();
    session.must(&insert(&secret));
    two.reads("absent", &secret);

    // within a transaction that has not touched the table yet
    two.plain("later");
    let insert = |name: &str| format!("INSERT INTO later (name) VALUES ('{name}')");
    session.must(&insert("before"));
    session.must("BEGIN");
    session.must("INSERT INTO texts (name) VALUES ('first')");
    two.becomes_protected("later");
    let secret = two.secret();
    session.must(&insert(&secret));
    session.must("COMMIT");
    two.reads("later", &secret);

    // another database's, and in a session that had none
    let mut nowhere = two.here.connect();
    two.plain("far");
    let update = |name: &str| format!("UPDATE app.far SET open = 'x' WHERE name = '{name}'");
    nowhere.must(&update("before"));
    two.becomes_protected("far");
    let secret = two.secret();
    nowhere.must(&update(&secret));
    two.conclude();
}

/// Values that are sent in pieces, before the execution that they are for.
fn in_pieces(kind: Kind) {
    let Some(mut two) = Two::start(kind) else {
        return;
    };
    let mut session = two.here.connect_to("app");
    session.must(&format!("DO '{CONTROL}'"));
    let mut raw = RawClient::login(two.here.port());
    assert!(matches!(raw.query(b"USE app"), Reply::Packet(_)));
    let long = |raw: &mut RawClient, id: &[u8; 4], data: &str| {
        raw.command(24, &[id.as_slice(), &[0, 0], data.as_bytes()].concat());
    };
    let execute = |raw: &mut RawClient, id: &[u8; 4]| {
        // one parameter, not NULL, of type BLOB; its value has been sent
        let rest = [id.as_slice(), &[0, 1, 0, 0, 0, 0, 1, 252, 0]].concat();
        raw.command(23, &rest);
        raw.read()
    };
    two.plain("pieces");
    let id = raw.prepare(b"INSERT INTO pieces (name) VALUES (?)");
    long(&mut raw, &id, "be");
    long(&mut raw, &id, "fore");
    assert!(matches!(execute(&mut raw, &id), Reply::Packet(_)));
    two.becomes_protected("pieces");
    let secret = two.secret();
    let (first, second) = secret.split_at(3);
    long(&mut raw, &id, first);
    long(&mut raw, &id, second);
    let done = execute(&mut raw, &id);
    assert!(matches!(done, Reply::Packet(_)), "{done:?}");
    two.reads("pieces", &secret);

    // the first piece is at the server already: the statement fails, the session and the handle
    // live
    two.plain("halves");
    let id = raw.prepare(b"INSERT INTO halves (name) VALUES (?)");
    long(&mut raw, &id, "before");
    two.becomes_protected("halves");
    let secret = two.secret();
    long(&mut raw, &id, &secret);
    let done = execute(&mut raw, &id);
    assert!(matches!(done, Reply::Error(1105, _)), "{done:?}");
    long(&mut raw, &id, &secret);
    let done = execute(&mut raw, &id);
    assert!(matches!(done, Reply::Packet(_)), "{done:?}");
    two.reads("halves", &secret);
    assert!(matches!(raw.query(b"SELECT 41"), Reply::Packet(_)));
    two.conclude();
}

fn views_become_protected(kind: Kind) {
    let Some(mut two) = Two::start(kind) else {
        return;
    };
    let mut session = two.here.connect_to("app");
    let mut elsewhere = two.elsewhere.connect_to("app");
    session.must(&format!("DO '{CONTROL}'"));

    // a view that is left without its column
    two.plain("behind");
    elsewhere.must("CREATE VIEW before_it AS SELECT id, name FROM behind");
    let insert = |name: &str| format!("INSERT INTO before_it (name) VALUES ('{name}')");
    session.must(&insert("before"));
    two.becomes_protected("behind");
    let secret = two.secret();
    session.must_fail(&insert(&secret));
    let select = |name: &str| format!("SELECT id FROM before_it WHERE name = '{name}'");
    session.must_fail(&select(&secret));

    // one that is made anew
    two.plain("again");
    elsewhere.must("CREATE VIEW shows AS SELECT id, name FROM again");
    let insert = |name: &str| format!("INSERT INTO shows (name) VALUES ('{name}')");
    session.must(&insert("before"));
    elsewhere.must("DROP VIEW shows");
    elsewhere.must("DROP TABLE again");
    two.protected("again");
    elsewhere.must("CREATE VIEW shows AS SELECT id, name FROM again");
    sleep(A_SECOND);
    let secret = two.secret();
    session.must(&insert(&secret));
    two.reads("again", &secret);
    two.conclude();
}

fn tables_change_their_names(kind: Kind) {
    let Some(mut two) = Two::start(kind) else {
        return;
    };
    let mut session = two.here.connect_to("app");
    let mut elsewhere = two.elsewhere.connect_to("app");
    session.must(&format!("DO '{CONTROL}'"));
    two.plain("now");
    two.protected("next");
    let insert = |name: &str| format!("INSERT INTO now (name) VALUES ('{name}')");
    let prepared = session.conn().prep("INSERT INTO now (name) VALUES (?)");
    let prepared = prepared.expect("a statement");
    session.must(&insert("before"));
    session.conn().exec_drop(&prepared, ("before",)).unwrap();
    elsewhere.must("RENAME TABLE now TO past, next TO now");
    sleep(A_SECOND);
    let secret = two.secret();
    session.conn().exec_drop(&prepared, (&secret,)).unwrap();
    two.reads("now", &secret);
    let secret = two.secret();
    session.must(&insert(&secret));
    two.reads("now", &secret);

    // renamed at the server itself, which no proxy hears of
    two.plain("open_door");
    let insert = |name: &str| format!("INSERT INTO open_door (name) VALUES ('{name}')");
    session.must(&insert("before"));
    let mut direct = two.server.connect();
    direct.must("RENAME TABLE app.open_door TO app.shut, app.now TO app.open_door");
    sleep(A_SECOND);
    let secret = two.secret();
    session.must(&insert(&secret));
    two.reads("open_door", &secret);
    two.conclude();
}

/// Words of a statement that are no tables stay in the proxy, whatever becomes of the statement.
fn look_ups_tell_no_words(kind: Kind) {
    let Some(mut two) = Two::start(kind) else {
        return;
    };
    two.protected("people");
    two.plain("places");
    let mut session = two.here.connect_to("app");
    session.must(&format!("DO '{CONTROL}'"));
    session.must("SET sql_mode = 'ANSI_QUOTES'");
    let mut attempt = |sql: &str| {
        let secret = two.secret();
        let sql = sql.replace("SECRET", &secret);
        let _ = session.run(&sql);
        let _ = session.conn().prep(&sql);
    };
    for sql in [
        "INSERT INTO people (name) VALUES (\"SECRET\")",
        "INSERT INTO people (name) VALUES (`SECRET`)",
        "INSERT INTO people (name) VALUES (SECRET)",
        "UPDATE people SET name = \"SECRET\" WHERE id = 1",
        "SELECT id FROM people WHERE name = \"SECRET\" OR \"SECRET\".name = 1",
        "SELECT id FROM app.people WHERE name = app.\"SECRET\"",
        "SELECT id FROM people WHERE name = \"SECRET\".\"SECRET\".\"SECRET\"",
        "INSERT people INTO name VALEUS SECRET",
        "INSERT INTO people (name) VALUES ('SECRET",
        "INSERT INTO people (name) VALUES (\"SECRET')",
        "DELETE FROM people WHERE name = SECRET LIMIT",
        "CREATE INDEX x ON people (\"SECRET\"",
        "INSERT INTO people (name) VALUES (/*!50000 \"SECRET\" */)",
        "PREPARE s FROM 'INSERT INTO people (name) VALUES (\"SECRET\")'",
    ] {
        attempt(sql);
    }
    let mut raw = RawClient::login(two.here.port());
    raw.query(b"USE app");
    // COM_FIELD_LIST: a table's name
    let secret = two.secret();
    raw.command(4, &[secret.as_bytes(), b"\0"].concat());
    let answer = raw.read();
    // a name that the server must be told, for it has to say that there is none
    assert!(matches!(answer, Reply::Error(..)), "{answer:?}");
    let log = two.log();
    let looked: Vec<&str> = log
        .lines()
        .filter(|line| line.to_lowercase().contains("information_schema"))
        .collect();
    assert!(!looked.is_empty(), "there are look-ups");
    let hex: String = SECRET.bytes().map(|b| format!("{b:02x}")).collect();
    for line in looked {
        let line = line.to_lowercase();
        assert!(!line.contains(SECRET) && !line.contains(&hex), "{line}");
    }
    let field_list = |line: &&str| line.contains(&secret);
    let others = log.lines().filter(|line| !field_list(line));
    let found: Vec<&str> = others.filter(|line| line.contains(SECRET)).collect();
    assert!(found.is_empty(), "{found:?}");
}

/// At most one look-up a second for an account, whatever its sessions do, and none while they do
/// nothing.
fn look_ups_are_few(kind: Kind) {
    const SECONDS: u64 = 6;
    let Some(two) = Two::start(kind) else {
        return;
    };
    for table in ["a", "b", "c", "d"] {
        two.plain(table);
        two.protected(&format!("{table}_shut"));
    }
    let count = || {
        let log = two.log().to_lowercase();
        let ours = log
            .lines()
            .filter(|line| line.contains("information_schema.") && line.contains("as binary"));
        ours.count()
    };
    let port = two.here.port();
    let sessions: Vec<_> = (0..8usize)
        .map(|n| {
            std::thread::spawn(move || {
                let mut session = Session::open(port, "root", "", Some("app"));
                let table = ["a", "b", "c", "d"][n % 4];
                let sql = format!("SELECT COUNT(*) AS n FROM {table} WHERE name = ?");
                let prepared = session.conn().prep(sql).expect("a statement");
                let begun = Instant::now();
                let mut turns = 0;
                while begun.elapsed() < Duration::from_secs(SECONDS + 4) {
                    session.must(&format!("UPDATE {table} SET open = 'x' WHERE id = {n}"));
                    session.must(&format!(
                        "SELECT open FROM {table}_shut WHERE name = 'y{n}'"
                    ));
                    session.conn().exec_drop(&prepared, ("z",)).unwrap();
                    turns += 1;
                }
                turns
            })
        })
        .collect();
    // until all that they need is known
    sleep(Duration::from_secs(3));
    let before = count();
    let begun = Instant::now();
    sleep(Duration::from_secs(SECONDS));
    let (after, seconds) = (count(), begun.elapsed().as_secs_f64());
    let made = (after - before) as f64;
    assert!(
        made >= seconds / 3.0,
        "{made} look-ups in {seconds} s: too few"
    );
    assert!(made <= seconds + 1.0, "{made} look-ups in {seconds} s");
    for session in sessions {
        let turns = session.join().expect("no panic");
        assert!(turns > 10, "{turns} turns");
    }
    let mut idle = two.here.connect_to("app");
    idle.must("SELECT COUNT(*) FROM a");
    let before = count();
    sleep(Duration::from_secs(3));
    assert_eq!(count(), before, "nothing is asked for nobody");
}

/// The client does not take OK packets for the ends of results, which say what a function has set.
/// What a function makes of `sql_mode`, servers undo at its end; other variables stay.
fn a_function_changes_the_session(kind: Kind) {
    let Some(mut two) = Two::start(kind) else {
        return;
    };
    two.elsewhere.connect_to("app").must(
        "CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(60) ENCRYPTED FOR (eq), at TIMESTAMP NULL ENCRYPTED FOR ())",
    );
    let mut direct = two.server.connect();
    direct.must(&format!("DO '{CONTROL}'"));
    direct.must("SET GLOBAL log_bin_trust_function_creators = 1");
    direct.must(
        "CREATE FUNCTION app.f() RETURNS INT DETERMINISTIC BEGIN \
         SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SET time_zone = '+05:00'; RETURN 1; END",
    );
    for (id, is_prepared) in [(1, false), (2, true)] {
        let mut raw = RawClient::login(two.here.port());
        raw.query(b"USE app");
        raw.query(b"SET time_zone = '+00:00'");
        if is_prepared {
            let id = raw.prepare(b"SELECT f()");
            raw.command(23, &[id.as_slice(), &[0, 1, 0, 0, 0]].concat());
            let first = raw.read();
            assert!(matches!(first, Reply::Packet(_)), "{first:?}");
            raw.until_eof();
            raw.until_eof();
        } else {
            let call = raw.query(b"SELECT f()");
            assert!(matches!(call, Reply::Packet(_)), "{call:?}");
        }
        let secret = two.secret();
        // as it is read under the mode that the function has set, if that counts
        raw.command(3, b"SELECT @@sql_mode");
        raw.read();
        raw.until_eof();
        let Reply::Packet(mode) = raw.read() else {
            panic!("no mode");
        };
        raw.until_eof();
        let text = match String::from_utf8_lossy(&mode).contains("NO_BACKSLASH_ESCAPES") {
            true => format!("SELECT '\\', id FROM people WHERE name = '{secret}' -- '"),
            false => format!("SELECT '\\\\', id FROM people WHERE name = '{secret}' -- '"),
        };
        raw.query(text.as_bytes());
        let insert = format!("INSERT INTO people VALUES ({id}, '{secret}', '2031-05-06 12:00:00')");
        let done = raw.query(insert.as_bytes());
        assert!(matches!(done, Reply::Packet(_)), "{done:?}");
        // what the proxy asks in between is not what the client asks about
        raw.query(b"SELECT CAST('1x' AS SIGNED), (2)");
        raw.command(3, b"SHOW WARNINGS");
        raw.read();
        raw.until_eof();
        let warning = raw.read();
        let shown = matches!(&warning, Reply::Packet(row) if row.len() > 9);
        assert!(shown, "{warning:?}");
        raw.until_eof();
        let mut session = two.here.connect_to("app");
        session.must("SET time_zone = '+00:00'");
        let at = session.text(&format!("SELECT at FROM people WHERE id = {id}"));
        assert_eq!(at.unwrap(), "2031-05-06 07:00:00", "{is_prepared}");
    }
    two.conclude();
}

/// A look-up would be what these ask about.
fn questions_about_the_last_statement(kind: Kind) {
    let Some(two) = Two::start(kind) else {
        return;
    };
    two.plain("places");
    let mut session = two.here.connect_to("app");
    session.must("INSERT INTO places (open) VALUES ('a'), ('b'), ('c')");
    session.must("CREATE TABLE counts (n INT)");
    for _ in 0..2 {
        session.must("UPDATE places SET open = CONCAT(open, 'x')");
        sleep(A_SECOND);
        assert_eq!(session.text("SELECT ROW_COUNT() AS changed").unwrap(), "3");
        session.must("SELECT SQL_CALC_FOUND_ROWS id FROM places LIMIT 1");
        sleep(A_SECOND);
        assert_eq!(session.text("SELECT FOUND_ROWS() AS total").unwrap(), "3");
        session.must("UPDATE places SET open = CONCAT(open, 'x')");
        session.must("INSERT INTO counts SELECT ROW_COUNT()");
        session.must("UPDATE places SET open = CONCAT(open, 'x')");
        sleep(A_SECOND);
        session.must("INSERT INTO counts SELECT ROW_COUNT()");
    }
    let counts = session.text("SELECT n FROM counts").unwrap();
    // the first time, the table had to be looked up
    assert!(counts.ends_with("3\n3\n3"), "{counts}");
}
