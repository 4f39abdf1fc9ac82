//! Whoever can write to the server changes what a migration keeps there, and exchanges the tables
//! that it works on. Nothing is decrypted for them, nothing gets a capability, and no other table
//! is put in place.
//!
//! Every test ends with a search of all of the server's files, its general log among them, for the
//! values that were written through the proxy.

use onionskin_testkit::*;

use std::time::{Duration, Instant};

on_both_servers!(
    a_new_table_that_was_exchanged_gets_no_row,
    a_checkpoint_that_was_edited_is_not_gone_on_with,
    a_checkpoint_of_an_earlier_migration_decides_nothing,
    it_is_told_which_migration_goes_on,
    an_older_place_of_the_same_migration_costs_time_only,
    what_is_exchanged_while_the_lock_is_awaited_is_not_switched,
    the_way_back_leads_only_to_the_table_it_came_from,
    a_way_back_to_plaintext_needs_the_word_on_every_command_line,
    a_checkpoint_of_an_earlier_version_is_refused,
    the_command_line_says_one_thing,
);

/// In every name.
const SECRET: &str = "Zq4KwVx8";

/// A table of patients with sealed names, and one of doctors whose names can be searched.
struct Ward {
    server: Server,
    proxy: Proxy,
    /// At the server itself, as its administrator.
    session: Session,
    /// Through the proxy.
    through: Session,
    rows: String,
}

const ROWS: &str = "SELECT id, name, age FROM patients ORDER BY id";

impl Ward {
    fn open(kind: Kind) -> Option<Self> {
        let options = ServerOptions {
            general_log: true,
            binlog: Some(Binlog::Row),
            ..ServerOptions::default()
        };
        let server = Server::start(kind, options)?;
        if direct_mode() {
            return None;
        }
        let tables = "[protect.\"app.patients\"]\nname = []\nage = [\"eq\"]\n\
                      [protect.\"app.doctors\"]\nname = [\"eq\", \"range\", \"like\"]\nage = [\"eq\"]\n";
        let proxy = Proxy::start(&server, tables);
        let mut session = server.connect();
        session.must("CREATE DATABASE app");
        session.must("USE app");
        let mut through = proxy.connect_to("app");
        for table in ["patients", "doctors"] {
            through.must(&format!(
                "CREATE TABLE {table} (id INT PRIMARY KEY, name VARCHAR(40), age INT)"
            ));
        }
        let rows: Vec<String> = (0..60)
            .map(|id| format!("({id}, '{SECRET} {id}', {id})"))
            .collect();
        through.must(&format!("INSERT INTO patients VALUES {}", rows.join(",")));
        let rows = through.text(ROWS).unwrap();
        assert!(rows.contains(SECRET));
        Some(Self {
            server,
            proxy,
            session,
            through,
            rows,
        })
    }

    fn must(&self, arguments: &[&str]) -> String {
        must_migrate(
            &self.server,
            Some(&self.proxy),
            &[&["app.patients"], arguments].concat(),
        )
    }

    fn must_not(&self, arguments: &[&str]) -> String {
        must_not_migrate(
            &self.server,
            Some(&self.proxy),
            &[&["app.patients"], arguments].concat(),
        )
    }

    /// A copy of the checkpoint, as somebody at the server would keep it.
    fn keep_state(&mut self, name: &str) {
        self.session.must(&format!(
            "CREATE TABLE {name}_state SELECT * FROM patients_onionskin"
        ));
    }

    /// Puts a kept checkpoint in the place of the one that is there.
    fn put_state_back(&mut self, name: &str) {
        self.session.must(&format!(
            "UPDATE patients_onionskin p, {name}_state k SET p.state = k.state, p.tag = k.tag WHERE p.id = 1 AND k.id = 1"
        ));
    }

    /// Puts a table in the place of the new one.
    fn exchange_new(&mut self, table: &str) {
        self.session.must("DROP TABLE patients_onionskin_new");
        self.session
            .must(&format!("RENAME TABLE {table} TO patients_onionskin_new"));
    }

    /// The patients are what they were, and the server cannot read them.
    fn is_untouched(&mut self) {
        assert_eq!(self.through.text(ROWS).unwrap(), self.rows);
        assert_eq!(self.session.must_fail("SELECT name FROM patients"), 1054);
    }

    /// The same, after everything that the migration made was removed; and no value is in any file
    /// of the server.
    fn close(self) {
        self.must(&["--abort"]);
        self.end();
    }

    fn end(mut self) {
        self.is_untouched();
        drop(self.session);
        drop(self.through);
        drop(self.proxy);
        self.server.shutdown();
        self.server.assert_no_trace_of(&[SECRET, &hex(SECRET)]);
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

const POSTPONED: [&str; 3] = ["--rotate", "--cut-over", "postpone"];

fn a_new_table_that_was_exchanged_gets_no_row(kind: Kind) {
    let Some(mut ward) = Ward::open(kind) else {
        return;
    };
    // Made anew in plaintext, with and without telling the checkpoint that nothing was copied yet.
    for edit in [true, false] {
        ward.must(&POSTPONED);
        ward.session.must("DROP TABLE patients_onionskin_new");
        ward.session.must(
            "CREATE TABLE patients_onionskin_new (id INT PRIMARY KEY, name VARCHAR(40), age INT)",
        );
        if edit {
            ward.session.must(
                r#"UPDATE patients_onionskin SET state = REPLACE(state, '"copied":true', '"copied":false') WHERE id = 1"#,
            );
        }
        let text = ward.must_not(&["--resume"]);
        let reason = if edit {
            "not authentic"
        } else {
            "patients_onionskin_new is not the table"
        };
        assert!(text.contains(reason) && text.contains("--abort"), "{text}");
        assert_eq!(
            ward.session
                .text("SELECT COUNT(*) FROM patients_onionskin_new")
                .unwrap(),
            "0"
        );
        ward.is_untouched();
        ward.must(&["--abort"]);
    }
    // Another table's authentic definition, with more capabilities; less than was made; more than
    // was made.
    let check = "SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = 'app' \
                 AND TABLE_NAME = 'patients_onionskin_new' AND CONSTRAINT_TYPE = 'CHECK' ORDER BY 1 LIMIT 1";
    for attack in ["doctors", "check", "column", "default"] {
        ward.must(&POSTPONED);
        match attack {
            "doctors" => {
                ward.session
                    .must("CREATE TABLE copy_of_doctors LIKE doctors");
                ward.exchange_new("copy_of_doctors");
            }
            "check" => {
                let name = ward.session.text(check).unwrap();
                ward.session.must(&format!(
                    "ALTER TABLE patients_onionskin_new DROP CONSTRAINT `{name}`"
                ));
            }
            "column" => {
                ward.session
                    .must("ALTER TABLE patients_onionskin_new ADD COLUMN name VARCHAR(40)");
            }
            _ => {
                ward.session
                    .must("ALTER TABLE patients_onionskin_new MODIFY id INT DEFAULT 7");
            }
        }
        let text = ward.must_not(&["--resume"]);
        assert!(text.contains("patients_onionskin_new"), "{attack}: {text}");
        assert!(
            text.contains("is not the table") || attack == "column",
            "{attack}: {text}"
        );
        ward.is_untouched();
        ward.must(&["--abort"]);
    }
    // The table that the rows come from: another one with protected columns.
    ward.must(&POSTPONED);
    ward.session
        .must("RENAME TABLE patients TO away, doctors TO patients");
    let text = ward.must_not(&["--resume"]);
    assert!(
        text.contains("another one") || text.contains("is not the table"),
        "{text}"
    );
    ward.session
        .must("RENAME TABLE patients TO doctors, away TO patients");
    ward.close();
}

fn a_checkpoint_that_was_edited_is_not_gone_on_with(kind: Kind) {
    let Some(mut ward) = Ward::open(kind) else {
        return;
    };
    ward.must(&POSTPONED);
    ward.session
        .must("CREATE TABLE kept SELECT * FROM patients_onionskin");
    let state = ward
        .session
        .text("SELECT state FROM kept WHERE id = 1")
        .unwrap();
    assert!(state.contains(r#""operation":"\"Rotate\"""#), "{state}");
    for edit in [
        r#"JSON_SET(state, '$.operation', '{"Decrypt":["name"]}')"#,
        r#"JSON_SET(state, '$.operation', '{"Decrypt":["name"]}', '$.phase', 'prepare')"#,
        "JSON_SET(state, '$.phase', 'reverse', '$.reverse', true)",
        "JSON_SET(state, '$.phase', 'switch')",
        "JSON_SET(state, '$.phase', 'roll back')",
        "JSON_SET(state, '$.position', 'binlog.000001:4')",
        "JSON_SET(state, '$.copied_to', NULL)",
        "JSON_SET(state, '$.original', '$.made')",
        "JSON_SET(state, '$.locked_at', 'binlog.000001:4')",
        "JSON_SET(state, '$.id', '0000000000000000')",
        "CONCAT(state, ' ')",
        "''",
        "'{'",
    ] {
        ward.session.must(&format!(
            "UPDATE patients_onionskin SET state = {edit} WHERE id = 1"
        ));
        for command in ["--resume", "--roll-back", "--finish"] {
            let text = ward.must_not(&[command, "--drop-old"]);
            let is_empty = edit == "''" && text.contains("not being kept");
            let is_gone = text.contains("no migration of app.patients has begun");
            assert!(
                text.contains("not authentic") || is_empty || is_gone,
                "{edit} {command}: {text}"
            );
        }
        let (_, text) = run_migration(migrate(&ward.server, Some(&ward.proxy), &["--status"]));
        assert!(
            !text.contains("rotate") && (text.contains("not authentic") || edit == "''"),
            "{edit}: {text}"
        );
        if edit == "''" {
            // As after a kill in the first moment: the checkpoint alone was removed.
            ward.session
                .must("CREATE TABLE IF NOT EXISTS patients_onionskin LIKE kept");
            ward.session
                .must("ALTER TABLE patients_onionskin COMMENT 'onionskin migration'");
            ward.session
                .must("INSERT IGNORE INTO patients_onionskin SELECT * FROM kept");
        }
        ward.session.must("UPDATE patients_onionskin p, kept k SET p.state = k.state, p.tag = k.tag WHERE p.id = 1 AND k.id = 1");
    }
    // The tag alone; and the checkpoint of another table.
    ward.session
        .must("UPDATE patients_onionskin SET tag = NULL WHERE id = 1");
    assert!(ward.must_not(&["--resume"]).contains("not authentic"));
    let doctors = ["app.doctors", "--decrypt", "name", "--cut-over", "postpone"];
    must_migrate(&ward.server, Some(&ward.proxy), &doctors);
    ward.session.must(
        "UPDATE patients_onionskin p, doctors_onionskin d SET p.state = d.state, p.tag = d.tag WHERE p.id = 1 AND d.id = 1",
    );
    assert!(
        ward.must_not(&["--resume", "--decrypt", "name"])
            .contains("not authentic")
    );
    // Without the keys nothing can be said of it.
    let text = must_not_migrate(&ward.server, None, &["app.doctors", "--resume"]);
    assert!(text.contains("-c"), "{text}");
    let (_, text) = run_migration(migrate(&ward.server, None, &["--status"]));
    assert!(text.contains("as the server says"), "{text}");
    must_migrate(&ward.server, Some(&ward.proxy), &["app.doctors", "--abort"]);
    ward.close();
}

fn a_checkpoint_of_an_earlier_migration_decides_nothing(kind: Kind) {
    let Some(mut ward) = Ward::open(kind) else {
        return;
    };
    // Given up, and kept by somebody at the server with the tables that were made.
    for (name, arguments) in [
        ("decrypt", ["--decrypt", "name"]),
        ("more", ["--add", "name: eq"]),
    ] {
        ward.must(&[&arguments[..], &["--cut-over", "postpone"]].concat());
        ward.keep_state(name);
        ward.session.must(&format!(
            "RENAME TABLE patients_onionskin_new TO {name}_new"
        ));
        // Its rows are not what this is about: they are in clear by the command's own word.
        ward.session.must(&format!("DELETE FROM {name}_new"));
        ward.must(&["--abort"]);
        ward.must(&POSTPONED);
        ward.exchange_new(&format!("{name}_new"));
        ward.put_state_back(name);
        let text = ward.must_not(&["--resume"]);
        assert!(text.contains(&format!("{} \"name", arguments[0])), "{text}");
        assert_eq!(
            ward.session
                .text("SELECT COUNT(*) FROM patients_onionskin_new")
                .unwrap(),
            "0"
        );
        // Where its new table is another one, it decides nothing either, whatever the command line
        // says.
        ward.session.must("CREATE TABLE another LIKE doctors");
        ward.exchange_new("another");
        let text = ward.must_not(&["--resume", arguments[0], arguments[1]]);
        assert!(text.contains("is not the table"), "{text}");
        ward.must(&["--abort"]);
    }
    // What is asked for again goes on.
    ward.must(&["--add", "name: eq", "--cut-over", "postpone"]);
    let text = ward.must_not(&["--resume"]);
    assert!(text.contains("--add \"name: eq\""), "{text}");
    ward.must(&["--resume", "--add", "name: eq", "--drop-old"]);
    ward.is_untouched();
}

/// The digits of the migration that a text tells of.
fn id_in(text: &str) -> String {
    let (_, rest) = text.split_once("migration ").expect("a migration");
    let id: String = rest.chars().take_while(|c| c.is_ascii_hexdigit()).collect();
    assert_eq!(id.len(), 16, "{text}");
    id
}

/// From plaintext, a column gets any capability without another word. So the operator is told, and
/// can name the one he means.
fn it_is_told_which_migration_goes_on(kind: Kind) {
    let Some(mut ward) = Ward::open(kind) else {
        return;
    };
    ward.session
        .must("CREATE TABLE plain (id INT PRIMARY KEY, name VARCHAR(40), ssn VARCHAR(40))");
    ward.session.must("INSERT INTO plain VALUES (1, 'a', 'b')");
    let run = |ward: &Ward, arguments: &[&str], succeeds: bool| {
        let arguments = [&["app.plain"], arguments].concat();
        let (succeeded, text) = run_migration(migrate(&ward.server, Some(&ward.proxy), &arguments));
        assert_eq!(succeeded, succeeds, "{arguments:?}: {text}");
        text
    };
    let postpone = ["--cut-over", "postpone"];
    let text = run(
        &ward,
        &[&["--encrypt", "name: eq range"], &postpone[..]].concat(),
        true,
    );
    let first = id_in(&text);
    assert!(text.contains("UTC: encrypt name (eq, range)"), "{text}");
    assert!(text.contains(&format!("--resume={first}")), "{text}");
    for sql in [
        "CREATE TABLE kept_state SELECT * FROM plain_onionskin",
        "RENAME TABLE plain_onionskin_new TO kept",
    ] {
        ward.session.must(sql);
    }
    run(&ward, &["--abort"], true);
    let text = run(
        &ward,
        &[&["--encrypt", "name:; ssn:"], &postpone[..]].concat(),
        true,
    );
    let second = id_in(&text);
    assert_ne!(first, second);
    let status = must_migrate(&ward.server, Some(&ward.proxy), &["--status"]);
    assert!(
        status.contains(&format!("migration {second}, begun 20")),
        "{status}"
    );
    for sql in [
        "DROP TABLE plain_onionskin_new",
        "RENAME TABLE kept TO plain_onionskin_new",
        "UPDATE plain_onionskin p, kept_state k SET p.state = k.state, p.tag = k.tag WHERE p.id = 1 AND k.id = 1",
    ] {
        ward.session.must(sql);
    }
    let resume = format!("--resume={second}");
    let text = run(&ward, &[&resume], false);
    assert!(
        text.contains(&format!("is not migration {second}"))
            && text.contains(&format!("migration {first}, begun 20"))
            && text.contains("encrypt name (eq, range)"),
        "{text}"
    );
    assert_eq!(ward.session.text("SELECT name FROM plain").unwrap(), "a");
    // Without an id it goes on, and says with which: at its beginning and at its end.
    let text = run(&ward, &["--resume", "--drop-old"], true);
    for told in ["going on with migration", "this was migration"] {
        assert!(text.contains(&format!("{told} {first}, begun")), "{text}");
    }
    // The right one goes on, and keeps its id if it begins again.
    let text = run(&ward, &[&["--rotate"], &postpone[..]].concat(), true);
    let resume = format!("--resume={}", id_in(&text));
    run(&ward, &[&resume, "--drop-old"], true);
    for table in ["plain", "kept_state"] {
        ward.session.must(&format!("DROP TABLE {table}"));
    }
    ward.end();
}

fn an_older_place_of_the_same_migration_costs_time_only(kind: Kind) {
    let Some(mut ward) = Ward::open(kind) else {
        return;
    };
    ward.must(&POSTPONED);
    ward.keep_state("early");
    ward.through
        .must("UPDATE patients SET age = age + 1 WHERE id < 20");
    ward.through.must("DELETE FROM patients WHERE id > 50");
    let again = ["--resume", "--cut-over", "postpone"];
    ward.must(&again);
    ward.through
        .must("INSERT INTO patients VALUES (1000, 'later', 1)");
    ward.must(&again);
    ward.put_state_back("early");
    let text = ward.must(&["--resume", "--drop-old"]);
    assert!(text.contains("all rows compared"), "{text}");
    ward.rows = ward.through.text(ROWS).unwrap();
    assert!(ward.rows.contains("later") && !ward.rows.contains("\n51\t"));
    ward.end();
}

fn what_is_exchanged_while_the_lock_is_awaited_is_not_switched(kind: Kind) {
    let Some(mut ward) = Ward::open(kind) else {
        return;
    };
    ward.must(&POSTPONED);
    // A long transaction holds the table; the switch waits for its lock.
    let mut long = ward.server.connect();
    long.must("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    long.must("BEGIN");
    long.must("SELECT * FROM app.patients");
    let arguments = ["app.patients", "--resume"];
    let child = start_migration(migrate(&ward.server, Some(&ward.proxy), &arguments));
    let begun = Instant::now();
    let waiting =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'LOCK TABLES%'";
    while ward.session.text(waiting).unwrap() == "0" {
        assert!(begun.elapsed() < Duration::from_secs(120), "no switch");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Between two attempts nobody holds the new table.
    ward.session.must("SET lock_wait_timeout = 60");
    ward.session
        .must("CREATE TABLE in_clear (id INT PRIMARY KEY, name VARCHAR(40), age INT)");
    ward.session
        .must("RENAME TABLE patients_onionskin_new TO away, in_clear TO patients_onionskin_new");
    long.must("COMMIT");
    let (succeeded, text) = end_of_migration(child);
    assert!(
        !succeeded && text.contains("patients_onionskin_new"),
        "{text}"
    );
    ward.is_untouched();
    let columns = ward.session.text("SHOW COLUMNS FROM patients").unwrap();
    assert!(columns.contains("name$enc"), "{columns}");
    ward.close();
}

/// Starts a migration with a way back, waits until the old table is fed, and kills it.
fn feed_and_kill(ward: &mut Ward, arguments: &[&str]) {
    let arguments = [&["app.patients"], arguments].concat();
    let mut child = start_migration(migrate(&ward.server, Some(&ward.proxy), &arguments));
    let phase =
        "SELECT COUNT(*) FROM patients_onionskin WHERE state LIKE '%\"phase\":\"reverse\"%'";
    let begun = Instant::now();
    while ward.session.text(phase).unwrap_or_default() != "1" {
        assert!(begun.elapsed() < Duration::from_secs(120), "not fed");
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().expect("kill -9");
    child.wait().expect("a child");
}

fn the_way_back_leads_only_to_the_table_it_came_from(kind: Kind) {
    let Some(mut ward) = Ward::open(kind) else {
        return;
    };
    feed_and_kill(&mut ward, &["--rotate", "--reverse"]);
    ward.session
        .must("CREATE TABLE in_clear (id INT PRIMARY KEY, name VARCHAR(40), age INT)");
    ward.session
        .must("RENAME TABLE patients_onionskin_old TO away, in_clear TO patients_onionskin_old");
    for command in [
        &["--resume"][..],
        &["--roll-back"],
        &["--roll-back", "--decrypt", "name, age"],
    ] {
        let text = ward.must_not(command);
        assert!(
            text.contains("patients_onionskin_old is not the table"),
            "{command:?}: {text}"
        );
        assert_eq!(
            ward.session
                .text("SELECT COUNT(*) FROM patients_onionskin_old")
                .unwrap(),
            "0"
        );
    }
    ward.is_untouched();
    // The other one is not what it was either.
    ward.session.must("DROP TABLE patients_onionskin_old");
    ward.session
        .must("RENAME TABLE away TO patients_onionskin_old");
    ward.session
        .must("RENAME TABLE patients TO away, doctors TO patients");
    for command in ["--resume", "--roll-back"] {
        let text = ward.must_not(&[command]);
        assert!(
            text.contains("no way back") || text.contains("is not the table"),
            "{text}"
        );
    }
    ward.session
        .must("RENAME TABLE patients TO doctors, away TO patients");
    // That the table was renamed stands in the binary log.
    let text = ward.must_not(&["--roll-back"]);
    assert!(text.contains("RENAME"), "{text}");
    ward.must(&["--finish", "--drop-old"]);
    ward.end();
}

fn a_way_back_to_plaintext_needs_the_word_on_every_command_line(kind: Kind) {
    let Some(mut ward) = Ward::open(kind) else {
        return;
    };
    ward.session
        .must("CREATE TABLE plain (id INT PRIMARY KEY, v VARCHAR(40))");
    ward.session.must("INSERT INTO plain VALUES (1, 'one')");
    let run = |ward: &Ward, arguments: &[&str], succeeds: bool| {
        let arguments = [&["app.plain"], arguments].concat();
        let (succeeded, text) = run_migration(migrate(&ward.server, Some(&ward.proxy), &arguments));
        assert_eq!(succeeded, succeeds, "{arguments:?}: {text}");
        text
    };
    let arguments = ["app.plain", "--encrypt", "v: eq", "--reverse"];
    let mut child = start_migration(migrate(&ward.server, Some(&ward.proxy), &arguments));
    let phase = "SELECT COUNT(*) FROM plain_onionskin WHERE state LIKE '%\"phase\":\"reverse\"%'";
    let begun = Instant::now();
    while ward.session.text(phase).unwrap_or_default() != "1" {
        assert!(begun.elapsed() < Duration::from_secs(120), "not fed");
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().expect("kill -9");
    child.wait().expect("a child");
    // what has become a protected table is seen within a second
    std::thread::sleep(Duration::from_millis(1200));
    ward.through
        .must(&format!("INSERT INTO plain VALUES (2, '{SECRET}')"));
    for command in [
        &["--resume"][..],
        &["--roll-back"],
        &["--resume", "--decrypt", "w"],
    ] {
        let text = run(&ward, command, false);
        assert!(text.contains("--decrypt \"v\""), "{text}");
    }
    run(&ward, &["--finish", "--drop-old"], true);
    ward.session.must("DROP TABLE plain");
    ward.end();
}

fn a_checkpoint_of_an_earlier_version_is_refused(kind: Kind) {
    let Some(mut ward) = Ward::open(kind) else {
        return;
    };
    ward.must(&POSTPONED);
    ward.session
        .must("ALTER TABLE patients_onionskin DROP COLUMN tag");
    ward.session.must("UPDATE patients_onionskin SET state = JSON_REMOVE(JSON_SET(state, '$.version', 1), '$.id', '$.made', '$.original') WHERE id = 1");
    for command in ["--resume", "--roll-back", "--finish"] {
        let text = ward.must_not(&[command]);
        assert!(
            text.contains("earlier version") && text.contains("--abort"),
            "{text}"
        );
    }
    let text = must_not_migrate(&ward.server, None, &["app.patients", "--resume"]);
    assert!(text.contains("earlier version"), "{text}");
    ward.close();
}

fn the_command_line_says_one_thing(kind: Kind) {
    let Some(ward) = Ward::open(kind) else { return };
    for arguments in [
        &["--resume", "--rotate"][..],
        &["--rotate", "--decrypt", "name"],
        &["--decrypt", "name", "--add", "age: range"],
        &["--abort", "--decrypt", "name"],
        &["--finish", "--decrypt", "name"],
        &["--resume", "--abort"],
    ] {
        let text = ward.must_not(arguments);
        assert!(
            text.contains("cannot stand together"),
            "{arguments:?}: {text}"
        );
    }
    ward.end();
}
