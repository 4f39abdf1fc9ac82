//! Somebody who administers the server changes which columns are protected, and applications go on writing. What they write must
//! never reach the server in plaintext, and they must be told: by the mark of all protected columns, by enforced sections of
//! `[protect]`, and by pins.

mod support;
use support::*;

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
/// How old what a proxy knows of a table may be, and some more.
const A_WHILE: Duration = Duration::from_millis(1500);

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
    let said = place.writes_are_refused("cu", "OS1108", "no table");
    assert!(
        said.contains("app.cu") && said.contains("onionskin migrate"),
        "{said}"
    );
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
    place.writes_are_refused("cu", "OS1108", "renamed away");
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

fn pinned_tables_cannot_be_exchanged(kind: Kind) {
    let Some(mut place) = Place::start(kind, "", "") else {
        return;
    };
    place.app.must("CREATE TABLE cu (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), email VARCHAR(60) ENCRYPTED FOR (eq))");
    // of a time when the name was in the clear
    let early = place.shown("cu");
    place.app.must("ALTER TABLE cu DROP COLUMN name");
    place
        .app
        .must("ALTER TABLE cu ADD COLUMN name VARCHAR(40) ENCRYPTED FOR (eq)");
    let right = place.shown("cu");
    place
        .app
        .must(&CUSTOMERS.replace("TABLE cu", "TABLE other"));
    place
        .app
        .must("CREATE VIEW seen AS SELECT id, name FROM other");
    place.begin_to_pin();
    place.lives("pinned");
    place.app.must("INSERT INTO seen (name) VALUES ('Bob')");
    let pins = std::fs::read_to_string(place.proxy.folder().join("pins")).unwrap();
    assert!(
        pins.contains("table|app|cu|") && pins.contains("table|app|seen|"),
        "{pins}"
    );

    place.admin.must("RENAME TABLE cu TO aside");
    let said = place.writes_are_refused("cu", "OS1109", "no table");
    assert!(
        said.contains("no such table") && said.contains("onionskin pin --accept"),
        "{said}"
    );
    place.admin.must(PLAIN);
    let said = place.writes_are_refused("cu", "OS1109", "made anew in plaintext");
    assert!(said.contains("plaintext"), "{said}");
    place.admin.must("DROP TABLE cu");
    place.admin.must("RENAME TABLE other TO cu");
    let said = place.writes_are_refused("cu", "OS1109", "another protected table");
    assert!(said.contains("another table"), "{said}");
    place.admin.must("RENAME TABLE cu TO other");
    let constraints: Vec<String> = drop_checks(&early);
    place.admin.must("DROP TABLE aside");
    place.admin.must(&early);
    assert!(!constraints.is_empty(), "{early}");
    let said = place.writes_are_refused("cu", "OS1109", "made from an old definition");
    assert!(said.contains("older one"), "{said}");
    place.admin.must("DROP TABLE cu");
    // the same definition is the same table
    place.admin.must(&right);
    place.lives("made from its own definition");
    // a view that was pinned
    place
        .admin
        .must("CREATE TABLE behind (id INT PRIMARY KEY, name VARCHAR(40))");
    place.admin.must("DROP VIEW seen");
    place
        .admin
        .must("CREATE VIEW seen AS SELECT id, name FROM behind");
    place.writes_are_refused("seen", "OS1109", "a view in plaintext");

    // through the proxy: in plaintext never, protected with a word about the pins
    place.app.must("DROP TABLE cu");
    let failure = place.app.run(PLAIN).expect_err("a plaintext table");
    assert!(failure.message.starts_with("OS1109"), "{failure}");
    place.app.must(CUSTOMERS);
    place.writes_are_refused("cu", "OS1109", "made anew through the proxy");
    let (succeeded, said) = place.pin(&[]);
    assert!(
        !succeeded && said.contains("app.cu is another table"),
        "{said}"
    );
    assert!(
        said.contains("app.seen") && said.contains("--accept"),
        "{said}"
    );
    place.writes_are_refused("cu", "OS1109", "not accepted");
    place.must_pin(&["--accept"]);
    place.lives("accepted, without a new start");

    // a file that somebody has changed
    let file = place.proxy.folder().join("pins");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("|eq|", "|range|")).unwrap();
    place.lives("the pins that were read before stay in force");
    assert!(
        place.proxy.log().contains("pins: it was changed"),
        "{}",
        place.proxy.log()
    );
    place.admin.must("RENAME TABLE cu TO aside");
    place.writes_are_refused("cu", "OS1109", "with a changed file of pins");
    place.proxy.terminate();
    let (succeeded, said) = place.proxy.command(&["serve", "-c", "onionskin.toml"]);
    assert!(!succeeded && said.contains("it was changed"), "{said}");
    std::fs::write(&file, text).unwrap();
    place.proxy.restart();
    place.nothing_leaked();
}

/// The names of our CHECK constraints in a definition.
fn drop_checks(shown: &str) -> Vec<String> {
    let lines = shown
        .lines()
        .filter(|line| line.contains("CONSTRAINT `onionskin_"));
    lines
        .filter_map(|line| line.split('`').nth(1))
        .map(str::to_owned)
        .collect()
}

fn definitions_go_on(kind: Kind) {
    let Some(mut place) = Place::start(kind, "enforce = true\n", ENFORCED) else {
        return;
    };
    place.app.must(CUSTOMERS);
    place
        .app
        .must("INSERT INTO cu (name, email, city) VALUES ('Alice', 'a@example.com', 'Bern')");
    place.begin_to_pin();
    let options = ProxyOptions {
        settings: "enforce = true\n".into(),
        tables: ENFORCED.into(),
        keys: Some(place.proxy.keys()),
        ..ProxyOptions::default()
    };
    let second = Proxy::start_with(&place.server, options);
    let mut beside = second.connect_to("app");
    // more protection needs no new pins
    for sql in [
        "ALTER TABLE cu ADD COLUMN phone VARCHAR(20) ENCRYPTED FOR (eq) AFTER name",
        "ALTER TABLE cu ALTER COLUMN phone SET DEFAULT '117', ADD COLUMN zip VARCHAR(10)",
        "ALTER TABLE cu RENAME COLUMN phone TO mobile, ADD COLUMN note TEXT ENCRYPTED FOR ()",
        "ALTER TABLE cu DROP COLUMN mobile",
        "ALTER TABLE cu ADD INDEX (city), COMMENT 'plain'",
        "ALTER TABLE cu DROP COLUMN note, ADD COLUMN fax VARCHAR(20) ENCRYPTED FOR (range)",
    ] {
        place.app.must(sql);
        place.lives(sql);
        assert_eq!(
            beside.text("SELECT name FROM cu WHERE id = 1").unwrap(),
            "Alice",
            "{sql}"
        );
    }
    let generation = |comment: &str| comment.split('|').nth(19).map(str::to_owned);
    let (name, fax) = (place.comment("cu", "name"), place.comment("cu", "fax"));
    assert_eq!(generation(&name).as_deref(), Some("6"), "{name}");
    assert_eq!(generation(&name), generation(&fax), "{name} {fax}");

    // changes that overlap, through two proxies: each takes its turn
    std::thread::scope(|scope| {
        for (number, proxy) in [(0, &place.proxy), (1, &second), (2, &place.proxy)] {
            scope.spawn(move || {
                let mut session = proxy.connect_to("app");
                for n in 0..3 {
                    let sql = format!(
                        "ALTER TABLE cu ADD COLUMN c{number}{n} VARCHAR(9) ENCRYPTED FOR ()"
                    );
                    session.must(&sql);
                }
            });
        }
    });
    place.lives("changes that overlap");
    let columns = place.app.text("SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'app' AND table_name = 'cu' AND column_name LIKE 'c__'");
    assert_eq!(columns.unwrap(), "9");

    // a change of what was pinned is allowed, and then wanted in the pins
    place
        .app
        .must("ALTER TABLE cu RENAME COLUMN fax TO telefax");
    place.lives("a column that was not pinned");
    place.must_pin(&[]);
    place
        .app
        .must("ALTER TABLE cu RENAME COLUMN telefax TO fax");
    let said = place.writes_are_refused("cu", "OS1109", "a pinned column was renamed");
    assert!(
        said.contains("telefax") && said.contains("onionskin pin --accept"),
        "{said}"
    );
    place.must_pin(&["--accept"]);
    place.lives("pinned anew");
    place.app.must("RENAME TABLE cu TO customer");
    place.writes_are_refused("cu", "OS1109", "renamed through the proxy");
    place.admin.must("RENAME TABLE customer TO cu");
    place.lives("named back");
    drop(second);
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

/// Whoever administers the server puts another authentic table in the place of the pinned one, and waits for the next rotation.
fn an_exchanged_table_is_not_migrated(kind: Kind) {
    let Some(mut place) = Place::start(kind, "", "") else {
        return;
    };
    place.app.must(CUSTOMERS);
    let searchable = CUSTOMERS.replace("TABLE cu", "TABLE other");
    place.app.must(&searchable.replace(
        "name VARCHAR(40) ENCRYPTED FOR (eq)",
        "name VARCHAR(40) ENCRYPTED FOR (eq, range)",
    ));
    place.begin_to_pin();
    let pinned = place.pins();

    let exchange = "RENAME TABLE cu TO hidden, other TO cu";
    let put_back = "RENAME TABLE cu TO other, hidden TO cu";
    place.admin.must(exchange);
    for arguments in [
        &["--rotate"][..],
        &["--rebuild"],
        &["--add", "email: range"],
        &["--decrypt", "name"],
        &["--rotate", "--dry-run"],
    ] {
        let text = place.must_not_migrate(arguments);
        assert!(
            text.contains("OS1109") && text.contains("another table"),
            "{arguments:?}: {text}"
        );
        assert!(place.pins() == pinned, "{arguments:?}: pinned anew");
    }
    let left =
        "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME LIKE 'cu%onionskin%'";
    assert_eq!(place.admin.text(left).unwrap(), "0");
    place.admin.must(put_back);
    place.must_migrate(&["--rotate", "--drop-old"]);
    place.lives("the pinned table was rotated");
    let pinned = place.pins();

    // While a migration is on its way.
    place.must_migrate(&["--rotate", "--cut-over", "postpone"]);
    place.admin.must(exchange);
    place.must_not_migrate(&["--resume"]);
    assert!(place.pins() == pinned, "pinned anew by --resume");
    place.admin.must(put_back);
    // The renaming stands in the binary log.
    place.must_migrate(&["--abort"]);
    place.must_migrate(&["--rotate", "--cut-over", "postpone"]);
    place.must_migrate(&["--resume", "--drop-old"]);
    place.lives("a rotation went on");
    let pinned = place.pins();

    // An earlier migration that was given up is put back as one that was switched: authentic, and the server learns more.
    place.must_migrate(&["--add", "name: range", "--cut-over", "postpone"]);
    for sql in [
        "CREATE TABLE kept_state SELECT * FROM cu_onionskin",
        "RENAME TABLE cu_onionskin_new TO kept",
    ] {
        place.admin.must(sql);
    }
    place.must_migrate(&["--abort"]);
    place.must_migrate(&["--rotate", "--cut-over", "postpone"]);
    for sql in [
        "DROP TABLE cu_onionskin_new",
        "UPDATE cu_onionskin p, kept_state k SET p.state = k.state, p.tag = k.tag WHERE p.id = 1 AND k.id = 1",
        "RENAME TABLE cu TO cu_onionskin_old, kept TO cu",
    ] {
        place.admin.must(sql);
    }
    let text = place.must_migrate(&["--resume"]);
    assert!(text.contains("is not pinned as it is now"), "{text}");
    assert!(place.pins() == pinned, "a capability was pinned");
    place.writes_are_refused("cu", "OS1109", "after the attack");
    place.admin.must("DROP TABLE cu");
    place.admin.must("RENAME TABLE cu_onionskin_old TO cu");
    place.lives("the pinned table is back");
    place.nothing_leaked();
}

fn what_was_consented_to_is_pinned_after_a_resume(kind: Kind) {
    let Some(mut place) = Place::start(kind, "", "") else {
        return;
    };
    place.app.must(CUSTOMERS);
    place.begin_to_pin();
    place.must_migrate(&["--decrypt", "email", "--cut-over", "postpone"]);
    let text = place.must_migrate(&["--resume", "--decrypt", "email", "--drop-old"]);
    assert!(!text.contains("is not pinned"), "{text}");
    place.lives("email is plaintext");
    place.must_migrate(&["--add", "name: range", "--cut-over", "postpone"]);
    let text = place.must_migrate(&["--resume", "--add", "name: range", "--drop-old"]);
    assert!(!text.contains("is not pinned"), "{text}");
    place.lives("name has a range");
    place.nothing_leaked();
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

fn migrations_go_on(kind: Kind) {
    let Some(mut place) = Place::start(kind, "", "") else {
        return;
    };
    place.admin.must(PLAIN);
    place
        .app
        .must("INSERT INTO cu (name, email) VALUES ('Alice', 'a@example.com')");
    place.begin_to_pin();
    let renew = |place: &Place, arguments: &[&str]| {
        let mut all = vec!["app.cu", "--drop-old"];
        all.extend(arguments);
        must_migrate(&place.server, Some(&place.proxy), &all)
    };
    renew(&place, &["--encrypt", "name: eq; email: eq"]);
    place.lives("encrypted");
    for arguments in [
        &["--add", "name: range"][..],
        &["--rotate"],
        &["--drop", "name: range"],
        &["--rebuild"],
    ] {
        let before = place.comment("cu", "name");
        renew(&place, arguments);
        assert_ne!(before, place.comment("cu", "name"), "{arguments:?}");
        // not pinned at first: the file was empty for this table
        if arguments[0] == "--add" {
            place.must_pin(&["--accept"]);
        }
        place.lives(&format!("{arguments:?}"));
        assert_eq!(
            place.app.text("SELECT name FROM cu WHERE id = 1").unwrap(),
            "Alice"
        );
    }
    renew(&place, &["--decrypt", "email"]);
    place.lives("a column was decrypted");
    assert_eq!(
        place.app.text("SELECT email FROM cu WHERE id = 1").unwrap(),
        "a@example.com"
    );
    place.take_out("cu", "name");
    let sql = format!("INSERT INTO cu (name) VALUES ('{ZANZIBAR}')");
    std::thread::sleep(A_WHILE);
    let failure = place
        .app
        .run(&sql)
        .expect_err("all of the table is plaintext now");
    assert!(failure.message.starts_with("OS1109"), "{failure}");
    place.nothing_leaked();
}

fn tables_of_earlier_versions_go_on(kind: Kind) {
    let Some(mut place) = Place::start(kind, "enforce = true\n", ENFORCED) else {
        return;
    };
    place.app.must(CUSTOMERS);
    // the comments as earlier versions wrote them: docs/formats.md
    let keys =
        KeySet::load("file:keys.json", place.proxy.folder(), None).expect("the proxy's keys");
    let mut old = Vec::new();
    for column in ["name", "email"] {
        let comment = place.comment("cu", column);
        let fields: Vec<&str> = comment.split('|').collect();
        assert_eq!(fields.len(), 21, "{comment}");
        let body = fields[2..19].join("|");
        let tagged = format!("onionskin:1|{column}$enc\0{body}");
        let tag = keys.metadata_key().tag(tagged.as_bytes());
        let tag: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
        let comment = format!("onionskin:1|{tag}|{body}");
        place.put_comment("cu", column, &comment);
        old.push(comment);
    }
    place.lives("a table of an earlier version");
    place.begin_to_pin();
    place.lives("pinned");
    // any change of a protected column gives it the mark
    place
        .app
        .must("ALTER TABLE cu ALTER COLUMN name SET DEFAULT 'nobody'");
    for column in ["name", "email"] {
        let comment = place.comment("cu", column);
        assert!(comment.starts_with("onionskin:2|"), "{comment}");
    }
    place.lives("with the mark");
    place.put_comment("cu", "email", &old[1]);
    place.writes_are_refused("cu", "OS1101", "an old comment beside a new one");
    // all of them are what an earlier version wrote: the pins know that there was a mark
    place.put_comment("cu", "name", &old[0]);
    place.lives("the pins are older than the mark");
    let newer = "ALTER TABLE cu ALTER COLUMN name SET DEFAULT 'x'";
    place.app.must(newer);
    place.must_pin(&[]);
    place.put_comment("cu", "name", &old[0]);
    place.put_comment("cu", "email", &old[1]);
    let said = place.writes_are_refused("cu", "OS1109", "all old comments");
    assert!(said.contains("older one"), "{said}");
    place.nothing_leaked();
}
