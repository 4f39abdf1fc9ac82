//! The life of data keys: `keys roll` moves every table to a new key while the application writes,
//! whatever moment it is killed at; a key that has come to rest seals nothing, whatever a
//! definition says; and none is retired while something needs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use onionskin_testkit::*;

on_both_servers!(
    a_roll_moves_every_table_beside_an_application,
    a_roll_that_is_killed_at_a_statement_is_gone_on_with,
    a_roll_that_is_killed_at_any_time_is_gone_on_with,
    a_key_that_has_come_to_rest_seals_nothing,
    no_key_is_retired_that_something_needs,
    what_cannot_be_moved_is_listed_and_stops_nothing,
    a_roll_begins_with_the_right_server_and_alone,
    a_key_is_not_used_before_the_proxies_know_it,
);

const ROWS: u32 = 400;
const TABLES: &str = r#"
[protect."app.t"]
v = ["eq", "range"]
n = []
[protect."app.u"]
v = ["eq"]
"#;
const SOON: Duration = Duration::from_secs(15);

/// A server, a proxy with a control socket, and two protected tables, one of them with a twin in
/// plaintext.
struct Place {
    server: Server,
    proxy: Proxy,
}

impl Place {
    fn start(kind: Kind) -> Option<Place> {
        Self::with(kind, "control = \"control.sock\"")
    }

    fn with(kind: Kind, settings: &str) -> Option<Place> {
        let server = logging_server(kind, &[])?;
        let options = ProxyOptions {
            // a cable reads the statements
            settings: format!("backend_tls = \"never\"\n{settings}"),
            tables: TABLES.into(),
            ..ProxyOptions::default()
        };
        let proxy = Proxy::start_with(&server, options);
        if settings.contains("control") {
            let socket = proxy.folder().join("control.sock");
            wait_until("the control socket", SOON, || socket.exists());
        }
        server.connect().must("CREATE DATABASE app");
        let mut session = proxy.connect_to("app");
        for table in ["t", "twin"] {
            session.must(&format!(
                "CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(60), n INT)"
            ));
            let rows = (0..ROWS).map(|id| format!("({id}, 'value {id}', {id})"));
            let rows: Vec<String> = rows.collect();
            session.must(&format!("INSERT INTO {table} VALUES {}", rows.join(",")));
        }
        session.must("CREATE TABLE u (id INT PRIMARY KEY, v VARCHAR(60))");
        session.must("INSERT INTO u VALUES (1, 'one'), (2, 'two')");
        Some(Place { server, proxy })
    }

    fn keys(&self, arguments: &[&str]) -> Output {
        let all: Vec<&str> = ["keys", "-c", "onionskin.toml"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        self.proxy.output(&all)
    }

    /// It must end with this code; returns what it printed.
    fn ends(&self, arguments: &[&str], code: i32) -> String {
        let output = self.keys(arguments);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }

    /// A roll beside this one, by another address of the server.
    fn roll_at(&self, address: &str) -> Child {
        let mut command = tied_command(onionskin_program());
        command.current_dir(self.proxy.folder()).args([
            "keys",
            "-c",
            "onionskin.toml",
            "roll",
            "--drop-old",
            "--threads",
            "2",
            "--backend",
            address,
        ]);
        command.stdin(Stdio::null());
        start_migration(command)
    }

    fn file(&self) -> serde_json::Value {
        let text = fs::read(self.proxy.keys()).expect("the key file");
        serde_json::from_slice(&text).expect("JSON")
    }

    fn states(&self) -> String {
        let text = self.ends(&["list"], 0);
        let lines = text.lines().skip(1);
        let states = lines.map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            format!("{} {}", words[0], words[2])
        });
        states.collect::<Vec<_>>().join(", ")
    }

    /// What is under a key, as `keys usage --json` says.
    fn tables_under(&self, number: u64) -> Vec<String> {
        let text = self.ends(&["usage", "--cells", "--json"], 0);
        let usage: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let keys = usage["keys"].as_array().expect("keys");
        let key = keys.iter().find(|key| key["number"] == number);
        let tables = key.expect("the key")["tables"].as_array().expect("tables");
        let names = tables.iter().map(|name| name.as_str().expect("a name"));
        names.map(str::to_owned).collect()
    }

    fn all_is_under(&self, number: u64) {
        assert_eq!(self.tables_under(number), ["app.t", "app.u"]);
        let mut session = self.proxy.connect_to("app");
        assert_equal_to_twin(&mut session, "afterwards");
        let read = session.text("SELECT id FROM u WHERE v = 'two'").unwrap();
        assert_eq!(read, "2");
        let server = self.server.connect().text("SHOW TABLES FROM app").unwrap();
        assert_eq!(server, "t\ntwin\nu");
    }

    /// Runs `work` beside sessions that write the same to `t` and its twin, by texts and by
    /// prepared statements.
    fn beside_writers(&self, work: impl FnOnce()) -> u64 {
        let over = AtomicBool::new(false);
        let done = AtomicU64::new(0);
        thread::scope(|scope| {
            for writer in 0..2u32 {
                let (over, done) = (&over, &done);
                scope.spawn(move || {
                    let mut session = self.proxy.connect_to("app");
                    let mut n = 0;
                    while !over.load(Ordering::Relaxed) {
                        n += 1;
                        // rows of its own
                        let id = (n * 7919 % (ROWS / 2)) * 2 + writer;
                        while !writes(&mut session, id, n, writer == 1) {}
                        done.fetch_add(1, Ordering::Relaxed);
                        thread::sleep(Duration::from_millis(2));
                    }
                });
            }
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            over.store(true, Ordering::Relaxed);
            if let Err(panic) = ended {
                std::panic::resume_unwind(panic);
            }
        });
        done.into_inner()
    }
}

/// One transaction over both tables; `false` if it has to be tried again.
fn writes(session: &mut Session, id: u32, n: u32, is_prepared: bool) -> bool {
    session.must("BEGIN");
    for table in ["t", "twin"] {
        let statements = [
            format!("REPLACE INTO {table} VALUES (?, ?, ?)"),
            format!("UPDATE {table} SET v = ? WHERE v = ?"),
        ];
        let (value, next) = (format!("new {n} of {id}"), format!("newer {n} of {id}"));
        let done = match is_prepared {
            true => session
                .execute(&statements[0], (id, &value, n))
                .and_then(|_| session.execute(&statements[1], (&next, &value))),
            false => session
                .run(&format!(
                    "REPLACE INTO {table} VALUES ({id}, '{value}', {n})"
                ))
                .and_then(|_| {
                    session.run(&format!(
                        "UPDATE {table} SET v = '{next}' WHERE v = '{value}'"
                    ))
                }),
        };
        match done {
            Ok(done) => assert_eq!(done.affected, 1, "{table} {id}"),
            // a deadlock with the switch, or a table that was exchanged since the transaction began
            Err(failure) if [1213, 1412].contains(&failure.code) => {
                session.must("ROLLBACK");
                return false;
            }
            Err(failure) if failure.message.contains("OS1105") => {
                session.must("ROLLBACK");
                return false;
            }
            Err(failure) => panic!("{table}: {failure}"),
        }
    }
    session.must("COMMIT");
    true
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

fn a_roll_moves_every_table_beside_an_application(kind: Kind) {
    let Some(place) = Place::start(kind) else {
        return;
    };
    let text = place.ends(&["roll", "--dry-run"], 0);
    assert!(text.contains("app.t: would be rotated"), "{text}");
    assert!(text.contains("app.u: would be rotated"), "{text}");
    assert_eq!(place.states(), "1 active", "a rehearsal");

    // A proxy on another machine, with the file as it was.
    let old_keys = place.proxy.folder().join("old.json");
    fs::copy(place.proxy.keys(), &old_keys).expect("a copy");
    let before = ProxyOptions {
        settings: "backend_tls = \"never\"".into(),
        tables: TABLES.into(),
        keys: Some(old_keys),
        ..ProxyOptions::default()
    };
    let stale = Proxy::start_with(&place.server, before);
    let mut stale = stale.connect_to("app");
    assert_eq!(stale.text("SELECT v FROM u WHERE id = 1").unwrap(), "one");

    let mut prepared = place.proxy.connect_to("app");
    let query = "SELECT id FROM u WHERE v = ?";
    assert_eq!(prepared.execute_text(query, ("one",)).unwrap(), "1");
    let mut text = String::new();
    let written = place.beside_writers(|| {
        text = place.ends(&["roll", "--drop-old"], 0);
    });
    assert!(written > 10, "{written}");
    for word in [
        "Key 2 was added",
        "The proxy here knows key 2",
        "Key 2 is the active one",
        "app.t: under key 2",
        "app.u: under key 2",
        "Key 1 is read-only",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_eq!(place.states(), "1 read-only, 2 active");
    assert!(place.tables_under(1).is_empty());
    place.all_is_under(2);
    assert_eq!(prepared.execute_text(query, ("one",)).unwrap(), "1");
    prepared.must("INSERT INTO u VALUES (3, 'three')");
    // The other proxy does not know the key: it says so, and writes nothing.
    for sql in ["SELECT v FROM u", "INSERT INTO u VALUES (4, 'four')"] {
        let failure = stale.run(sql).expect_err("an unknown key");
        assert!(failure.message.contains("OS1103"), "{sql}: {failure}");
    }
    assert_eq!(prepared.text("SELECT COUNT(*) FROM u").unwrap(), "3");

    // Once more is another key, and everything as before.
    let text = place.ends(&["roll", "--drop-old"], 0);
    assert!(text.contains("Key 3 was added"), "{text}");
    assert_eq!(place.states(), "1 read-only, 2 read-only, 3 active");
    place.all_is_under(3);
}

fn a_roll_that_is_killed_at_a_statement_is_gone_on_with(kind: Kind) {
    let Some(place) = Place::start(kind) else {
        return;
    };
    let points: &[Point<'_>] = &[
        ("GET_LOCK('onionskin keys roll'", 1, When::Before),
        // the key is added and in use, and nothing else has been done
        ("TABLE_COMMENT", 1, When::Before),
        ("CREATE TABLE `app`.`t_onionskin`", 1, When::After),
        ("LOCK TABLES `t` WRITE", 1, When::After),
        ("RENAME TABLE `t`", 1, When::After),
        ("DROP TABLE IF EXISTS `app`.`t_onionskin`", 1, When::Before),
        // one table is moved, the other one is not
        ("`u_onionskin_new`", 1, When::After),
    ];
    let mut kills = 0;
    place.beside_writers(|| {
        for &(statement, times, when) in points {
            let cable = Cable::to(place.server.port());
            cable.freeze_at(statement, times, when);
            let mut child = place.roll_at(&cable.address());
            let mut has_ended = false;
            wait_until(statement, Duration::from_secs(60), || {
                has_ended = child.try_wait().expect("a child").is_some();
                has_ended || cable.is_frozen()
            });
            if has_ended {
                panic!("{statement}, {kills} kills: {}", end_of_migration(child).1);
            }
            kill(child);
            kills += 1;
            drop(cable);
            its_statements_have_ended(&place.server);
        }
        let text = place.ends(&["roll", "--status"], 0);
        assert!(text.contains("A roll to key 2 has begun"), "{text}");
        let text = place.ends(&["roll", "--drop-old"], 0);
        assert!(text.contains("Key 1 is read-only"), "{text}");
    });
    assert_eq!(place.states(), "1 read-only, 2 active");
    place.all_is_under(2);
}

fn a_roll_that_is_killed_at_any_time_is_gone_on_with(kind: Kind) {
    let Some(place) = Place::start(kind) else {
        return;
    };
    let address = place.server.address();
    place.beside_writers(|| {
        let mut kills = 0;
        loop {
            let mut child = place.roll_at(&address);
            let pause = Duration::from_millis(rand::random_range(20..900));
            // Later ones get more time, so that this ends.
            thread::sleep(pause + Duration::from_millis(40) * kills);
            match child.try_wait().expect("a child") {
                None => kill(child),
                Some(_) => {
                    let (succeeded, text) = end_of_migration(child);
                    assert!(succeeded, "after {kills} kills: {text}");
                    break;
                }
            }
            let _ = fs::remove_file(place.proxy.folder().join("keys.json.new"));
            kills += 1;
            its_statements_have_ended(&place.server);
        }
    });
    // Whether the last kill came behind the end cannot be told, so there may have been two rolls.
    let states = place.states();
    let last = states.rsplit(", ").next().expect("a key");
    let active = last.strip_suffix(" active").expect("the last one");
    assert!(
        !states.contains("leaving") && !states.contains("next"),
        "{states}"
    );
    place.all_is_under(active.parse().expect("a number"));
}

fn a_key_that_has_come_to_rest_seals_nothing(kind: Kind) {
    let Some(place) = Place::start(kind) else {
        return;
    };
    let mut server = place.server.connect();
    let definition = server.must("SHOW CREATE TABLE app.u").sets[0].rows[0][1].clone();
    let definition: String = ::mysql::from_value(definition);
    let columns = server
        .text("SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = 'u'")
        .unwrap();
    let names: Vec<String> = columns.lines().map(|name| format!("`{name}`")).collect();
    let bytes = names.iter().map(|name| match name.as_str() {
        "`id`" => "id".to_owned(),
        sealed => format!("CONCAT('X''', HEX({sealed}), '''')"),
    });
    let bytes: Vec<String> = bytes.collect();
    let rows = format!("SELECT CONCAT_WS(', ', {}) FROM app.u", bytes.join(", "));
    let rows = server.text(&rows).unwrap();
    // The table as it was, definition and rows, comes back when its key has come to rest.
    place.ends(&["roll", "--drop-old"], 0);
    server.must("DROP TABLE app.u");
    server.must("USE app");
    server.must(&definition);
    for row in rows.lines() {
        server.must(&format!(
            "INSERT INTO u ({}) VALUES ({row})",
            names.join(", ")
        ));
    }

    // A session from before and one from now, by text and prepared, and as a part of others.
    let secret = "never-under-the-old-key";
    let writes = [
        format!("INSERT INTO u VALUES (9, '{secret}')"),
        format!("REPLACE INTO u VALUES (9, '{secret}')"),
        format!("UPDATE u SET v = '{secret}' WHERE id = 1"),
        format!("INSERT INTO u VALUES (1, 'x') ON DUPLICATE KEY UPDATE v = '{secret}'"),
        format!("INSERT INTO u SELECT id, '{secret}' FROM twin"),
    ];
    let mut session = place.proxy.connect_to("app");
    let mut is_refused = |sql: &str| {
        let failure = match session.run(sql) {
            Ok(done) => panic!("{sql}: {done:?}"),
            Err(failure) => failure,
        };
        let is_told = failure.message.contains("OS1111") || failure.message.contains("OS10");
        assert!(is_told, "{sql}: {failure}");
        failure.message.contains("OS1111")
    };
    for sql in &writes {
        is_refused(sql);
    }
    assert!(is_refused(&writes[0]) && is_refused(&writes[2]));
    // Under a read-only key what is there can be read, and be moved.
    let mut reads = place.proxy.connect_to("app");
    assert_eq!(
        reads.text("SELECT COUNT(*) FROM u WHERE v = 'x'").unwrap(),
        "0"
    );
    assert_eq!(
        reads.text("SELECT v FROM u ORDER BY id").unwrap(),
        "one\ntwo"
    );

    place.ends(&["retire", "1", "--i-know"], 0);
    let (succeeded, text) = place.proxy.command(&["reload"]);
    assert!(succeeded && text.contains("1 (retired)"), "{text}");
    for sql in &writes {
        is_refused(sql);
    }
    for sql in ["SELECT v FROM u", "SELECT id FROM u WHERE v = 'x'"] {
        let failure = reads.run(sql).expect_err("a retired key");
        assert!(failure.message.contains("OS1111"), "{sql}: {failure}");
    }
    assert_eq!(server.text("SELECT COUNT(*) FROM app.u").unwrap(), "2");
    place.server.assert_no_trace_of(&[secret]);

    // It was needed after all: back to read-only, and away with the table.
    place.ends(&["read-only", "1"], 0);
    assert_eq!(place.states(), "1 read-only, 2 active");
    place.ends(&["roll", "--drop-old"], 0);
    reads.must("INSERT INTO u VALUES (5, 'five')");
    place.ends(&["retire", "1", "--no-folders"], 0);
    place.ends(&["destroy", "1", "--no-folders"], 0);
    assert_eq!(place.states(), "1 destroyed, 2 active");
    assert!(place.file()["data_keys"][0].get("wrapped").is_none());
    let (succeeded, text) = place.proxy.command(&["reload"]);
    assert!(succeeded, "{text}");
    let all = reads.text("SELECT v FROM u ORDER BY id").unwrap();
    assert_eq!(all, "one\ntwo\nfive");
}

fn no_key_is_retired_that_something_needs(kind: Kind) {
    let Some(place) = Place::start(kind) else {
        return;
    };
    let folder = place.proxy.folder().join("backups");
    fs::create_dir_all(folder.join("deeper")).expect("a folder");
    let seals = |name: &str| -> PathBuf {
        let file = folder.join(name);
        let path = file.to_str().expect("plain");
        let arguments = ["seal", "-c", "onionskin.toml", "-o", path, "onionskin.toml"];
        let (succeeded, text) = place.proxy.command(&arguments);
        assert!(succeeded, "{text}");
        file
    };
    let before = seals("deeper/before.sealed");
    // The old tables stay.
    let text = place.ends(&["roll"], 0);
    assert!(text.contains("app.t_onionskin_old"), "{text}");
    assert_eq!(
        place.states(),
        "1 leaving, 2 active",
        "an old table needs it"
    );
    let between = seals("between.sealed");
    let text = place.ends(&["read-only", "1"], 1);
    assert!(text.contains("2 tables"), "{text}");
    let mut server = place.server.connect();
    for table in ["t", "u"] {
        server.must(&format!("DROP TABLE app.{table}_onionskin_old"));
    }
    // Times are in whole seconds.
    thread::sleep(Duration::from_millis(1100));
    let text = place.ends(&["roll"], 0);
    assert!(text.contains("Key 1 is read-only"), "{text}");
    thread::sleep(Duration::from_millis(1100));
    let after = seals("after.sealed");

    let text = place.ends(&["retire", "1"], 2);
    assert!(text.contains("--folder FOLDER"), "{text}");
    let path = folder.to_str().expect("plain");
    let text = place.ends(&["retire", "1", "--folder", path], 1);
    assert!(text.contains("1 sealed files ("), "{text}");
    assert!(text.contains("1 sealed files that may hold"), "{text}");
    let text = place.ends(&["usage", "--folder", path, "--json"], 0);
    let usage: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let has = |what: &str, file: &Path| {
        let files = usage["keys"][0][what].as_array().expect("files");
        files.iter().any(|found| found.as_str() == file.to_str())
    };
    assert!(has("files", &before) && has("may_hold", &between), "{text}");
    assert!(!has("files", &after) && !has("may_hold", &after), "{text}");
    fs::remove_file(before).expect("removed");
    place.ends(&["retire", "1", "--folder", path], 1);
    fs::remove_file(between).expect("removed");
    // Another server has nothing under these keys, which says nothing.
    if let Some(other) = logging_server(kind, &[]) {
        let elsewhere = other.address();
        let arguments = ["retire", "1", "--folder", path, "--backend", &elsewhere];
        let text = place.ends(&arguments, 1);
        assert!(text.contains("is it the right server"), "{text}");
    }
    place.ends(&["destroy", "1", "--folder", path], 2);
    place.ends(&["retire", "1", "--folder", path], 0);
    assert_eq!(place.states(), "1 retired, 2 active");
    place.ends(&["retire", "2", "--folder", path, "--i-know"], 2);
}

fn what_cannot_be_moved_is_listed_and_stops_nothing(kind: Kind) {
    let Some(place) = Place::start(kind) else {
        return;
    };
    let mut session = place.proxy.connect_to("app");
    // Without a key of its rows a table cannot be copied in pieces.
    session.must("CREATE DATABASE beside");
    let config = place.proxy.folder().join("onionskin.toml");
    let text = fs::read_to_string(&config).expect("a configuration");
    let text = format!("{text}\n[protect.\"beside.*\"]\nv = []\n");
    fs::write(&config, text).expect("written");
    let (succeeded, text) = place.proxy.command(&["reload"]);
    assert!(succeeded, "{text}");
    session.must("CREATE TABLE beside.a (v VARCHAR(20))");
    session.must("INSERT INTO beside.a VALUES ('x')");
    let text = place.ends(&["roll", "--drop-old"], 1);
    assert!(text.contains("left: beside.a: "), "{text}");
    assert!(text.contains("app.t: under key 2"), "{text}");
    assert_eq!(place.states(), "1 leaving, 2 active");
    assert_eq!(place.tables_under(1), ["beside.a"]);
    place.ends(&["read-only", "1"], 1);
    // Writing goes on under the old key.
    session.must("INSERT INTO beside.a VALUES ('y')");
    session.must("ALTER TABLE beside.a ADD COLUMN id INT AUTO_INCREMENT PRIMARY KEY");
    let text = place.ends(&["roll", "--drop-old"], 0);
    assert!(text.contains("beside.a: under key 2"), "{text}");
    assert_eq!(place.states(), "1 read-only, 2 active");
    assert_eq!(
        session.text("SELECT v FROM beside.a ORDER BY id").unwrap(),
        "x\ny"
    );
}

fn a_roll_begins_with_the_right_server_and_alone(kind: Kind) {
    let Some(place) = Place::start(kind) else {
        return;
    };
    let before = fs::read(place.proxy.keys()).expect("the key file");
    let unchanged = |what: &str| {
        let now = fs::read(place.proxy.keys()).expect("the key file");
        assert!(now == before, "{what}");
        assert!(
            !place.proxy.folder().join("keys.json.new").exists(),
            "{what}"
        );
    };
    let Some(other) = logging_server(kind, &[]) else {
        return;
    };
    let text = place.ends(&["roll", "--backend", &other.address()], 1);
    assert!(text.contains("is it the right server"), "{text}");
    unchanged("a server without protected tables");
    // Protected tables of somebody else.
    let stranger = Proxy::start(&other, TABLES);
    other.connect().must("CREATE DATABASE app");
    let mut session = stranger.connect_to("app");
    session.must("CREATE TABLE u (id INT PRIMARY KEY, v VARCHAR(60))");
    let text = place.ends(&["roll", "--backend", &other.address()], 1);
    assert!(text.contains("is it the right server"), "{text}");
    unchanged("tables under other keys");

    // A full disk.
    let program = onionskin_program();
    let full = Command::new("/bin/sh")
        .current_dir(place.proxy.folder())
        .arg("-c")
        .arg(format!(
            "trap '' XFSZ; ulimit -f 0; exec {} keys -c onionskin.toml roll",
            program.display()
        ))
        .output()
        .expect("a shell");
    assert!(!full.status.success(), "{}", said(&full));
    unchanged("a full disk");

    // One that waits, and another one.
    let mut waiting = tied_command(&program);
    waiting.current_dir(place.proxy.folder()).args([
        "keys",
        "-c",
        "onionskin.toml",
        "roll",
        "--drop-old",
        "--max-load",
        "Threads_connected=0",
    ]);
    let mut waiting = start_migration(waiting);
    wait_until("a table is on its way", Duration::from_secs(30), || {
        let mut server = place.server.connect();
        let tables = server.text("SHOW TABLES FROM app").unwrap();
        assert!(waiting.try_wait().expect("a child").is_none());
        tables.contains("t_onionskin")
    });
    let text = place.ends(&["roll"], 1);
    assert!(text.contains("another onionskin keys roll runs"), "{text}");
    let text = place.ends(&["roll", "--status"], 0);
    assert!(text.contains("A roll to key 2 has begun"), "{text}");
    kill(waiting);
    its_statements_have_ended(&place.server);
    place.ends(&["roll", "--drop-old"], 0);
    assert_eq!(place.states(), "1 read-only, 2 active");
    place.all_is_under(2);
}

fn a_key_is_not_used_before_the_proxies_know_it(kind: Kind) {
    let Some(mut place) = Place::with(kind, "") else {
        return;
    };
    let text = place.ends(&["roll", "--drop-old"], 1);
    assert!(text.contains("no proxy could be told of key 2"), "{text}");
    assert_eq!(place.states(), "1 active, 2 next");
    let text = place.ends(&["roll", "--drop-old", "--pause"], 1);
    assert!(text.contains("as --pause says"), "{text}");
    assert_eq!(place.states(), "1 active, 2 next");
    assert_eq!(place.tables_under(1), ["app.t", "app.u"]);
    // Given to the proxy as it would be to one elsewhere.
    place.proxy.terminate();
    place.proxy.restart();
    place.ends(&["roll", "--drop-old", "--known"], 0);
    assert_eq!(place.states(), "1 read-only, 2 active");
    // It has not been told since, and works.
    place.all_is_under(2);
}
