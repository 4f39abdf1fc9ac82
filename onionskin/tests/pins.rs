//! Somebody who administers the server changes which columns are protected, and applications go on
//! writing. What they write must never reach the server in plaintext, and they must be told: by the
//! mark of all protected columns, by enforced sections of `[protect]`, and by pins.

#[path = "pins/exchanges.rs"]
mod exchanges;

#[path = "pins/changes.rs"]
mod changes;
use onionskin_testkit::*;

use changes::{
    definitions_go_on, migrations_go_on, tables_of_earlier_versions_go_on,
    what_was_consented_to_is_pinned_after_a_resume,
};
use exchanges::{an_exchanged_table_is_not_migrated, pinned_tables_cannot_be_exchanged};
use onionskin_keys::KeySet;
use std::time::Duration;

on_both_servers!(
    a_column_is_taken_out_of_protection,
    an_older_definition_is_put_back,
    enforced_names_stand_for_protected_tables,
    findings_are_told,
    pinned_tables_cannot_be_exchanged,
    definitions_go_on,
    migrations_go_on,
    an_exchanged_table_is_not_migrated,
    what_was_consented_to_is_pinned_after_a_resume,
    pinning_follows_no_link,
    tables_of_earlier_versions_go_on,
);

/// In every value that must not reach the server.
const ZANZIBAR: &str = "zanzibarW4k";
/// How old what a proxy of these tests knows of a table may be, in milliseconds: less than usual.
const RECHECK: &str = "200";
/// The same, and some more.
const A_WHILE: Duration = Duration::from_millis(300);

const CUSTOMERS: &str = "CREATE TABLE cu (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) ENCRYPTED FOR (eq), \
     email VARCHAR(60) ENCRYPTED FOR (eq), city VARCHAR(20)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci";
const PLAIN: &str = "CREATE TABLE cu (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), email VARCHAR(60), city VARCHAR(20))";

/// A server, a proxy, and whoever administers the server.
struct Place {
    server: Server,
    proxy: Proxy,
    admin: Session,
    app: Session,
}

impl Place {
    /// `settings` stand before the first table of the configuration, `tables` behind it.
    fn start(kind: Kind, settings: &str, tables: &str) -> Option<Place> {
        if direct_mode() {
            return None;
        }
        let options = ServerOptions {
            general_log: true,
            binlog: Some(Binlog::Row),
            ..ServerOptions::default()
        };
        let server = Server::start(kind, options)?;
        let proxy = Proxy::start_with(
            &server,
            ProxyOptions {
                settings: settings.into(),
                tables: tables.into(),
                environment: vec![("ONIONSKIN_TEST_RECHECK".into(), RECHECK.into())],
                ..ProxyOptions::default()
            },
        );
        let mut admin = server.connect();
        admin.must("CREATE DATABASE app DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci");
        admin.must("USE app");
        let app = proxy.connect_to("app");
        Some(Place {
            server,
            proxy,
            admin,
            app,
        })
    }

    /// The physical names of a protected column: its sealed cells first.
    fn physical(&mut self, table: &str, column: &str) -> Vec<String> {
        let names = self.admin.text(&format!(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = '{table}' \
             AND COLUMN_NAME LIKE '{column}$%' ORDER BY ORDINAL_POSITION"
        ));
        let names = names.unwrap();
        names.lines().map(str::to_owned).collect()
    }

    fn comment(&mut self, table: &str, column: &str) -> String {
        let sql = format!(
            "SELECT COLUMN_COMMENT FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = '{table}' \
             AND COLUMN_NAME = '{column}$enc'"
        );
        self.admin.text(&sql).unwrap()
    }

    /// Gives a sealed column a comment; the rest of its definition stays.
    fn put_comment(&mut self, table: &str, column: &str, comment: &str) {
        let shown = self.shown(table);
        let mark = format!("`{column}$enc`");
        let line = shown.lines().find(|l| l.trim_start().starts_with(&mark));
        let line = line.expect("the column").trim().trim_end_matches(',');
        let (definition, _) = line.split_once(" COMMENT '").expect("a comment");
        let sql = format!("ALTER TABLE {table} MODIFY COLUMN {definition} COMMENT '{comment}'");
        self.admin.must(&sql);
    }

    /// The physical definition.
    fn shown(&mut self, table: &str) -> String {
        let text = self
            .admin
            .text(&format!("SHOW CREATE TABLE {table}"))
            .unwrap();
        text.split_once('\t').expect("two columns").1.to_owned()
    }

    /// What an administrator does to take a column out of protection.
    fn take_out(&mut self, table: &str, column: &str) {
        let shown = self.shown(table);
        let mark = format!("`{column}$enc`");
        let is_check = |line: &&str| line.contains(" CHECK (") && line.contains(&mark);
        let check = shown.lines().find(is_check).expect("a CHECK constraint");
        let check = check.split('`').nth(1).expect("its name").to_owned();
        let mut specifications = vec![format!("DROP CONSTRAINT `{check}`")];
        for name in self.physical(table, column) {
            specifications.push(format!("DROP COLUMN `{name}`"));
        }
        specifications.push(format!("ADD COLUMN {column} VARCHAR(40)"));
        let specifications = specifications.join(", ");
        self.admin
            .must(&format!("ALTER TABLE {table} {specifications}"));
    }

    /// The application writes on, in every way that it has; each is refused with this code.
    fn writes_are_refused(&mut self, table: &str, code: &str, context: &str) -> String {
        // a statement that is known already has the table looked up again, whatever comes of it
        let _ = self.app.run(&format!("SELECT name FROM {table}"));
        std::thread::sleep(A_WHILE);
        let _ = self.app.run(&format!("SELECT name FROM {table}"));
        let insert = format!("INSERT INTO {table} (name) VALUES ('{ZANZIBAR}')");
        let mut said = String::new();
        for sql in [
            insert.clone(),
            format!("UPDATE {table} SET name = '{ZANZIBAR}' WHERE id = 1"),
            format!("SELECT id FROM {table} WHERE name = '{ZANZIBAR}'"),
            format!("SELECT 1; {insert}"),
            format!("/*!50000 INSERT INTO {table} (name) VALUES ('{ZANZIBAR}') */"),
        ] {
            let failure = self.app.run(&sql);
            let failure = failure.expect_err(&format!("{context}: {sql}"));
            let wrapped = sql.starts_with("/*!");
            assert!(
                failure.message.starts_with(code) || wrapped,
                "{context}: {sql}\n→ {failure}"
            );
            assert!(!failure.is_disconnect(), "{context}: {sql}\n→ {failure}");
            if failure.message.starts_with(code) {
                said = failure.message;
            }
        }
        let text = insert.replace('\'', "''");
        let by_name = self.app.run(&format!("PREPARE s FROM '{text}'"));
        assert!(
            by_name.is_err() || self.app.run("EXECUTE s").is_err(),
            "{context}: EXECUTE"
        );
        let prepared = format!("INSERT INTO {table} (name) VALUES (?)");
        let failure = self.app.execute(&prepared, (ZANZIBAR,));
        let failure = failure.expect_err(&format!("{context}: {prepared}"));
        assert!(failure.message.starts_with(code), "{context}: {failure}");
        // a new session of another account's snapshot, and a number that tells whose answer it is
        let mut other = self.proxy.connect_to("app");
        assert!(other.run(&insert).is_err(), "{context}, in a new session");
        assert_eq!(self.app.text("SELECT 4711").unwrap(), "4711", "{context}");
        said
    }

    fn nothing_leaked(mut self) {
        self.proxy.assert_healthy();
        self.server.shutdown();
        self.server.assert_no_trace_of(&[ZANZIBAR]);
    }

    /// Puts a line before the configuration's others, pins, and starts the proxy anew.
    fn begin_to_pin(&mut self) {
        let file = self.proxy.folder().join("onionskin.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("pins = \"pins\"\n{text}")).unwrap();
        self.must_pin(&[]);
        self.start_anew();
    }

    fn start_anew(&mut self) {
        self.proxy.terminate();
        self.proxy.restart();
        self.app = self.proxy.connect_to("app");
    }

    /// What was written can be read, and new rows be written.
    fn lives(&mut self, context: &str) {
        std::thread::sleep(A_WHILE);
        let insert = format!("INSERT INTO cu (name) VALUES ('{ZANZIBAR} once more')");
        self.app
            .run(&insert)
            .unwrap_or_else(|e| panic!("{context}: {e}"));
        let sql = format!("SELECT COUNT(*) > 0 FROM cu WHERE name = '{ZANZIBAR} once more'");
        assert_eq!(self.app.text(&sql).unwrap(), "1", "{context}");
    }

    fn pin(&self, arguments: &[&str]) -> (bool, String) {
        let mut all = vec!["pin", "-c", "onionskin.toml"];
        all.extend(arguments);
        self.proxy.command(&all)
    }

    fn must_pin(&self, arguments: &[&str]) -> String {
        let (succeeded, text) = self.pin(arguments);
        assert!(succeeded, "onionskin pin {arguments:?}: {text}");
        text
    }
}

/// A prepared statement that was made before the attack sends no parameters after it.
fn prepared_before(app: &mut Session, table: &str) -> ::mysql::Statement {
    use ::mysql::prelude::Queryable;
    let sql = format!("INSERT INTO {table} (name) VALUES (?)");
    app.conn().prep(sql).expect("prepared")
}

fn executes(app: &mut Session, statement: &::mysql::Statement) -> ::mysql::Result<()> {
    use ::mysql::prelude::Queryable;
    app.conn().exec_drop(statement, (ZANZIBAR,))
}

fn a_column_is_taken_out_of_protection(kind: Kind) {
    let Some(mut place) = Place::start(kind, "", "") else {
        return;
    };
    place.app.must(CUSTOMERS);
    place
        .app
        .must("INSERT INTO cu (name, email, city) VALUES ('Alice', 'a@example.com', 'Bern')");
    let mut session = place.proxy.connect_to("app");
    let statement = prepared_before(&mut session, "cu");
    place.take_out("cu", "name");
    let said = place.writes_are_refused("cu", "OS1101", "a column was taken out");
    assert!(
        said.contains("taken out") && said.contains("backup"),
        "{said}"
    );
    assert!(executes(&mut session, &statement).is_err());
    // the whole table: what is left of it, too
    for sql in [
        "SELECT email FROM cu",
        "SHOW CREATE TABLE cu",
        "UPDATE cu SET email = 'x'",
    ] {
        let failure = place.app.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1101"), "{sql}: {failure}");
    }
    place.app.must("DROP TABLE cu");
    place.app.must(CUSTOMERS);
    place.app.must("INSERT INTO cu (name) VALUES ('Bob')");
    assert_eq!(place.app.text("SELECT name FROM cu").unwrap(), "Bob");

    // a view, and an account that sees some columns, show a part of the set, and that is no fault
    place
        .app
        .must("CREATE VIEW part AS SELECT id, name FROM cu");
    place
        .app
        .must("CREATE VIEW other AS SELECT id, email AS address FROM cu");
    assert_eq!(place.app.text("SELECT name FROM part").unwrap(), "Bob");
    assert_eq!(place.app.text("SELECT address FROM other").unwrap(), "NULL");
    place
        .admin
        .must("CREATE USER 'clerk'@'%' IDENTIFIED BY 'clerk secret'");
    place
        .app
        .must("GRANT SELECT (id, name), INSERT (name) ON cu TO 'clerk'@'%'");
    let mut clerk = Session::open(place.proxy.port(), "clerk", "clerk secret", Some("app"));
    assert_eq!(
        clerk
            .text("SELECT name FROM cu WHERE name = 'bob'")
            .unwrap(),
        "Bob"
    );
    clerk.must("INSERT INTO cu (name) VALUES ('Carol')");
    // an account without SELECT does not see such an attack otherwise
    place
        .admin
        .must("CREATE USER 'feeder'@'%' IDENTIFIED BY 'feeder secret'");
    place.admin.must("GRANT INSERT ON app.cu TO 'feeder'@'%'");
    let mut feeder = Session::open(place.proxy.port(), "feeder", "feeder secret", Some("app"));
    feeder.must("INSERT INTO cu (name) VALUES ('Dora')");
    place.app.must("DROP VIEW part");
    place.app.must("DROP VIEW other");
    place.admin.must("DROP USER 'clerk'@'%'");
    place.take_out("cu", "name");
    std::thread::sleep(A_WHILE);
    let sql = format!("INSERT INTO cu (name) VALUES ('{ZANZIBAR}')");
    let failure = feeder.run(&sql).expect_err("an account with INSERT only");
    assert!(failure.message.starts_with("OS1101"), "{failure}");
    place.nothing_leaked();
}

fn an_older_definition_is_put_back(kind: Kind) {
    let Some(mut place) = Place::start(kind, "", "") else {
        return;
    };
    place.app.must(CUSTOMERS);
    let older = place.comment("cu", "name");
    place
        .app
        .must("ALTER TABLE cu ALTER COLUMN name SET DEFAULT 'nobody'");
    let newer = place.comment("cu", "name");
    place.put_comment("cu", "name", &older);
    let said = place.writes_are_refused("cu", "OS1101", "an older comment");
    assert!(older.starts_with("onionskin:2|"), "{older}");
    assert!(said.contains("different times"), "{said}");
    place.put_comment("cu", "name", &newer);
    std::thread::sleep(A_WHILE);
    place
        .app
        .must("INSERT INTO cu (email) VALUES ('a@example.com')");
    assert_eq!(place.app.text("SELECT name FROM cu").unwrap(), "nobody");

    // that of another column, and that of a column of the same name in another table
    let email = place.comment("cu", "email");
    place.put_comment("cu", "name", &email);
    place.writes_are_refused("cu", "OS1101", "another column's comment");
    place
        .app
        .must(&CUSTOMERS.replace("TABLE cu", "TABLE other"));
    let other = place.comment("other", "name");
    place.put_comment("cu", "name", &other);
    place.writes_are_refused("cu", "OS1101", "another table's comment");
    place.put_comment("cu", "name", &newer);
    std::thread::sleep(A_WHILE);
    place.app.must("SELECT name FROM cu");
    place.nothing_leaked();
}

const ENFORCED: &str = r#"
[protect."app.cu"]
name  = ["eq"]
email = ["eq"]
"#;

fn enforced_names_stand_for_protected_tables(kind: Kind) {
    // what onionskin init writes
    let Some(mut place) = Place::start(kind, "enforce = true\n", ENFORCED) else {
        return;
    };
    let mut early = place.proxy.connect_to("app");
    // no such table, and one that is not as it should be, cannot be made through the proxy
    let said = place.writes_are_refused("cu", "OS1046", "no table");
    assert!(said.contains("app.cu"), "{said}");
    for asks in ["DESCRIBE cu", "SHOW COLUMNS FROM cu", "SELECT 1 FROM cu"] {
        assert_eq!(place.app.must_fail(asks), 1146, "{asks}");
    }
    for wrong in [
        "CREATE TABLE cu (id INT PRIMARY KEY, name VARCHAR(40))",
        "CREATE TABLE cu (id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (range), email VARCHAR(60))",
    ] {
        let failure = place.app.run(wrong).expect_err(wrong);
        assert!(failure.message.starts_with("OS1108"), "{wrong}: {failure}");
    }
    place.app.must("DROP TABLE IF EXISTS cu");
    place.app.must("CREATE TABLE IF NOT EXISTS cu (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), email VARCHAR(60), city VARCHAR(20))");
    let statement = prepared_before(&mut early, "cu");
    place
        .app
        .must("INSERT INTO cu (name, city) VALUES ('Alice', 'Bern')");
    assert_eq!(
        place
            .app
            .text("SELECT name FROM cu WHERE name = 'alice'")
            .unwrap(),
        "Alice"
    );

    // one that is weaker, through the proxy and at the server
    let weaker = "ALTER TABLE cu DROP COLUMN email";
    let failure = place.app.run(weaker).expect_err(weaker);
    assert!(failure.message.starts_with("OS1108"), "{failure}");
    place.admin.must("RENAME TABLE cu TO aside");
    place.writes_are_refused("cu", "OS1046", "renamed away");
    assert!(executes(&mut early, &statement).is_err());
    let more = CUSTOMERS
        .replace("TABLE cu", "TABLE more")
        .replace("(eq)", "(eq, range)");
    place.app.must(&more);
    place.admin.must("RENAME TABLE more TO cu");
    let said = place.writes_are_refused("cu", "OS1108", "more capabilities");
    assert!(said.contains("range"), "{said}");

    // a plaintext table, a view of one, a view of the right table beside a plaintext column
    place.admin.must("DROP TABLE cu");
    place.admin.must(PLAIN);
    place.writes_are_refused("cu", "OS1108", "a plaintext table");
    assert!(executes(&mut early, &statement).is_err());
    place.admin.must("RENAME TABLE cu TO plain");
    place.admin.must("CREATE VIEW cu AS SELECT * FROM plain");
    place.writes_are_refused("cu", "OS1108", "a view of a plaintext table");
    place.admin.must("DROP VIEW cu");
    place
        .admin
        .must("ALTER TABLE aside ADD COLUMN other VARCHAR(40)");
    let email = place.physical("aside", "email").join("`, `");
    place.admin.must(&format!(
        "CREATE VIEW cu AS SELECT id, other AS name, `{email}`, city FROM aside"
    ));
    let said = place.writes_are_refused("cu", "OS1108", "a view with a plaintext column");
    assert!(said.contains("column name"), "{said}");
    place.admin.must("DROP VIEW cu");
    place.admin.must("ALTER TABLE aside DROP COLUMN other");
    place.admin.must("RENAME TABLE aside TO cu");
    std::thread::sleep(A_WHILE);
    assert_eq!(place.app.text("SELECT name FROM cu").unwrap(), "Alice");
    // a text that cannot be read, near a name whose table is gone
    place.admin.must("RENAME TABLE cu TO aside");
    std::thread::sleep(A_WHILE);
    let unreadable = format!("INSERT INTO cu (name) VALUES ('{ZANZIBAR}') /* never ends");
    assert!(place.app.run(&unreadable).is_err());
    place.nothing_leaked();
}

fn findings_are_told(kind: Kind) {
    let tables = "[protect.\"app.cu\"]\nname = [\"eq\"]\nemial = [\"eq\"]\nenforce = false\n\
                  [protect.\"app.old\"]\nsecret = []\nenforce = false\n";
    let Some(mut place) = Place::start(kind, "enforce = true\nbackend_tls = \"never\"\n", tables)
    else {
        return;
    };
    place.app.must(CUSTOMERS);
    place
        .admin
        .must("CREATE TABLE old (id INT PRIMARY KEY, secret VARCHAR(40))");
    for _ in 0..3 {
        place.app.must("SELECT name FROM cu");
        place.app.must("SELECT secret FROM old");
        place.app.must("SELECT COUNT(*) FROM cu");
    }
    let (typo, plain) = (
        "[protect] names app.cu.emial, and the table has no such column",
        "[protect] protects app.old.secret, and the table has it in plaintext: onionskin migrate app.old --encrypt",
    );
    let log = place.proxy.log();
    for finding in [typo, plain] {
        assert_eq!(log.matches(finding).count(), 1, "{finding}\n{log}");
    }
    for (sql, finding) in [("SELECT name FROM cu", typo), ("SELECT 1 FROM old", plain)] {
        let (succeeded, text) = place.proxy.command(&["explain", "--database", "app", sql]);
        assert!(
            succeeded && text.contains(&format!("warning {finding}")),
            "{sql}: {text}"
        );
    }
    // onionskin pin compares all of it, and the start what was pinned
    let file = place.proxy.folder().join("onionskin.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("pins = \"pins\"\n{text}")).unwrap();
    let said = place.must_pin(&[]);
    assert!(said.contains(typo) && said.contains(plain), "{said}");
    assert!(said.contains("1 tables with 2 protected columns"), "{said}");
    place.start_anew();
    let log = place.proxy.log();
    for finding in [
        "app.cu.emial, and no such column is pinned",
        "app.old.secret, and no table of this name is pinned",
    ] {
        assert!(log.contains(finding), "{finding}\n{log}");
    }
    // enforced, the name that matches nothing refuses the table
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("enforce = false", "enforce = true")).unwrap();
    place.start_anew();
    let said = place.writes_are_refused("cu", "OS1108", "emial");
    assert!(said.contains("no column emial"), "{said}");
    place.writes_are_refused("old", "OS1108", "a plaintext table");
    place.nothing_leaked();
}

impl Place {
    fn pins(&self) -> Vec<u8> {
        std::fs::read(self.proxy.folder().join("pins")).unwrap()
    }

    fn must_migrate(&self, arguments: &[&str]) -> String {
        let all = [&["app.cu"], arguments].concat();
        must_migrate(&self.server, Some(&self.proxy), &all)
    }

    fn must_not_migrate(&self, arguments: &[&str]) -> String {
        let all = [&["app.cu"], arguments].concat();
        must_not_migrate(&self.server, Some(&self.proxy), &all)
    }
}

fn pinning_follows_no_link(kind: Kind) {
    let Some(mut place) = Place::start(kind, "", "") else {
        return;
    };
    place.app.must(CUSTOMERS);
    let folder = place.proxy.folder().to_owned();
    let far = folder.join("far");
    std::fs::write(&far, "as it was").unwrap();
    std::os::unix::fs::symlink(&far, folder.join("pins.new")).unwrap();
    place.begin_to_pin();
    assert_eq!(std::fs::read_to_string(&far).unwrap(), "as it was");
    let is_link = |name: &str| folder.join(name).symlink_metadata().unwrap().is_symlink();
    assert!(is_link("pins.new") && !is_link("pins"));
    let names = std::fs::read_dir(&folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let temporary: Vec<String> = names.filter(|name| name.starts_with("pins.")).collect();
    assert_eq!(temporary, ["pins.new"], "nothing is left");
    place.lives("it is pinned");
    place.nothing_leaked();
}
