//! `onionskin dump`: what it writes loads on a plain server and through a proxy, holds no value of
//! a protected column, and answers joins, keys and unprotected columns as the original does. What
//! it cannot do it refuses, and no file looks whole that is not.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use onionskin_testkit::*;

on_both_servers!(
    a_dump_loads_and_keeps_no_secret,
    the_key_decides,
    a_dump_is_of_one_moment,
    hostile_names_and_contents_load,
    what_does_not_fit_is_refused,
    a_masked_account_is_refused,
    a_killed_dump_leaves_no_whole_file,
    a_table_that_changes_ends_the_dump,
    definitions_with_protection_load,
    a_million_rows_take_little_memory,
);

/// Seven digits that all numbers begin with.
const DIGITS: i64 = 7_531_902;

const SECTIONS: &str = "
[protect.\"app.users\"]
enforce = true
mail = [\"eq\", \"join:mail\"]
name = [\"eq\"]
born = [\"range\"]
phone = []
card = [\"eq\"]
salary = [\"range\"]
score = []
uid = [\"eq\"]
note = []
photo = []
active = []
colour = []
doc = []
seen = []
[protect.\"app.orders\"]
enforce = true
user_mail = [\"eq\", \"join:mail\"]
[protect.\"app.logins\"]
enforce = true
mail = [\"eq\", \"join:mail\"]
";

struct Stage {
    server: Server,
    proxy: Proxy,
}

impl Stage {
    fn empty(kind: Kind, sections: &str) -> Option<Stage> {
        if direct_mode() {
            return None;
        }
        let server = Server::start(kind, ServerOptions::default())?;
        server
            .connect()
            .must("CREATE DATABASE app DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci");
        let proxy = Proxy::start(&server, sections);
        Some(Stage { server, proxy })
    }

    fn filled(kind: Kind) -> Option<Stage> {
        let stage = Stage::empty(kind, SECTIONS)?;
        let mut session = stage.proxy.connect_to("app");
        for sql in definitions() {
            session.must(&sql);
        }
        for number in 0..ROWS {
            for sql in rows(number) {
                session.must(&sql);
            }
        }
        Some(stage)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(onionskin_program());
        command
            .current_dir(self.proxy.folder())
            .env_remove("ONIONSKIN_PASSWORD")
            .args([
                "dump",
                "--from",
                &format!("127.0.0.1:{}", self.proxy.port()),
            ])
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("onionskin runs")
    }

    /// A whole dump to standard output.
    fn dump(&self, arguments: &[&str]) -> String {
        let output = self.run(&[&["--database", "app"], arguments].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(
            text.ends_with("-- onionskin dump: complete\n"),
            "the last line"
        );
        text
    }

    /// Fails with this code and these words, and writes nothing that looks whole.
    fn fails(&self, arguments: &[&str], code: i32, words: &str) {
        let out = self.out("refused.sql");
        let path = out.display().to_string();
        let output = self.run(&[&["--database", "app", "--out", &path], arguments].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
        assert!(!errors.contains(SECRET), "{errors}");
        assert!(!out.exists(), "{arguments:?}");
        let output = self.run(&[&["--database", "app"], arguments].concat());
        assert_eq!(output.status.code(), Some(code));
        assert!(!output.stdout.ends_with(b"-- onionskin dump: complete\n"));
    }

    fn out(&self, name: &str) -> PathBuf {
        self.proxy.folder().join(name)
    }
}

const ROWS: i64 = 24;

fn definitions() -> Vec<String> {
    [
        "CREATE TABLE users (id INT AUTO_INCREMENT PRIMARY KEY, mail VARCHAR(80) NOT NULL UNIQUE, name VARCHAR(60), born DATE, \
         phone VARCHAR(30), card CHAR(19) UNIQUE, salary DECIMAL(14,2), score DOUBLE, uid CHAR(36), note TEXT, photo BLOB, \
         active TINYINT(1), colour ENUM('red','green','blue'), doc JSON, seen DATETIME(3), \
         city VARCHAR(40), shout VARCHAR(50) GENERATED ALWAYS AS (UPPER(city)) VIRTUAL, kept VARCHAR(50) GENERATED ALWAYS AS (LOWER(city)) STORED, \
         hidden INT INVISIBLE DEFAULT 7)",
        "CREATE TABLE orders (id INT PRIMARY KEY, user_mail VARCHAR(80), total DECIMAL(10,2), at TIMESTAMP NULL, \
         FOREIGN KEY (user_mail) REFERENCES users (mail))",
        "CREATE TABLE logins (mail VARCHAR(80), at DATETIME)",
        "CREATE TABLE every (id INT PRIMARY KEY, a_bit BIT(11), a_bin BINARY(4), a_var VARBINARY(20), a_blob LONGBLOB, \
         a_float FLOAT, a_double DOUBLE, a_dec DECIMAL(30,10), a_date DATE, a_time TIME(6), a_dt DATETIME(6), a_ts TIMESTAMP(3) NULL, \
         a_year YEAR, a_json JSON, a_point POINT, a_set SET('a','b c','d'), a_text LONGTEXT, a_big BIGINT UNSIGNED, \
         a_zero INT(6) ZEROFILL, a_latin VARCHAR(20) CHARACTER SET latin1, a_wide VARCHAR(20) CHARACTER SET utf16, a_null INT) \
         COMMENT 'it''s; \\\\'",
        "CREATE VIEW b_view AS SELECT city FROM users",
        "CREATE VIEW a_view AS SELECT city FROM b_view",
        "CREATE VIEW c_view AS SELECT id FROM every WHERE a_text = 'Hb4YqMz7constant'",
        "CREATE TRIGGER every_insert BEFORE INSERT ON every FOR EACH ROW SET NEW.a_null = NEW.a_null",
        "CREATE PROCEDURE listed() SELECT id FROM every",
    ]
    .map(str::to_owned)
    .into()
}

fn rows(number: i64) -> Vec<String> {
    let mail = format!("{SECRET}.{number}@mail{}.{SECRET}.com", number % 3);
    let digits = DIGITS * 1000 + number;
    let card = 4_000_000_000_000_000_i64 / 10 * 10 + digits * 10;
    let mut users = vec![format!(
        "INSERT INTO users (mail, name, born, phone, card, salary, score, uid, note, photo, active, colour, doc, seen, city, hidden) \
         VALUES ('{mail}', '{SECRET} {}', '2071-01-{:02}', '+41 {digits}', '{card}', {digits}.25, {digits}.5, \
         '{:08x}-0000-4000-8000-{digits:012x}', 'Dear {SECRET}, {SECRET}', '{SECRET} in a picture', {}, '{}', \
         '{{\"name\": \"{SECRET}\"}}', '2071-03-01 10:00:00.125', 'Zürich {number}', {number})",
        number % 5,
        number + 1,
        DIGITS + number,
        number % 2,
        ["red", "green", "blue"][(number % 3) as usize],
    )];
    users.push(format!(
        "INSERT INTO orders VALUES ({number}, '{}', {number}.5, '2020-01-01 00:00:{number:02}')",
        mail.to_uppercase()
    ));
    users.push(format!(
        "INSERT INTO orders VALUES ({}, NULL, NULL, NULL)",
        number + 1000
    ));
    users.push(format!(
        "INSERT INTO logins VALUES ('{mail}', NULL), ('{}', '2020-01-01')",
        mail.to_lowercase()
    ));
    users.push(format!(
        "INSERT INTO every VALUES ({number}, b'10100000{:03b}', x'00ff27{number:02x}', x'5c27001a0d0a', x'{}', 0.1 + {number}, 1e-300 / 3, \
         -12345678901234567890.0123456789, '2020-02-29', '-838:59:58.5', '9999-12-31 23:59:59.999999', '2030-01-01 00:00:00.5', 2155, \
         '{{\"a\": [1, 2.5, \"x\\\\\"y\"]}}', ST_GeomFromText('POINT(1.5 -2)'), 'a,b c', \
         'quote '' back\\\\slash \\0 nul \\n line \\r \\Z 😀 */ -- # ; `x`', 18446744073709551615, 42, 'Ünï', '😀ü', NULL)",
        number % 8,
        "00".repeat(number as usize * 100),
    ));
    users
}

/// What has to be the same before and afterwards.
const COUNTS: [&str; 9] = [
    "SELECT COUNT(*) FROM orders JOIN users ON user_mail = mail",
    "SELECT COUNT(*) FROM logins JOIN users ON logins.mail = users.mail",
    "SELECT COUNT(*) FROM logins JOIN orders ON logins.mail = user_mail",
    "SELECT COUNT(*) FROM orders LEFT JOIN users ON user_mail = mail WHERE users.id IS NULL",
    "SELECT COUNT(DISTINCT mail), COUNT(DISTINCT name), COUNT(DISTINCT card), COUNT(DISTINCT uid), COUNT(DISTINCT salary), COUNT(DISTINCT born) FROM users",
    "SELECT COUNT(*), COUNT(photo), COUNT(note), COUNT(active), COUNT(colour), COUNT(doc), COUNT(seen), COUNT(score) FROM users",
    "SELECT id, (SELECT COUNT(*) FROM orders WHERE user_mail = mail) FROM users ORDER BY id",
    "SELECT id, city, shout, kept, hidden FROM users ORDER BY id",
    "SELECT id, total, at FROM orders ORDER BY id",
];

const PLAIN: &str = "SELECT id, HEX(a_bit), HEX(a_bin), HEX(a_var), HEX(a_blob), a_float * 1e0, a_double, a_dec, a_date, a_time, a_dt, a_ts, \
     a_year, a_json, HEX(ST_AsBinary(a_point)), a_set, HEX(a_text), a_big, a_zero, HEX(a_latin), HEX(a_wide), a_null FROM every ORDER BY id";

fn load(kind: Kind, port: u16, dump: &str) {
    let user = kind.users()[0];
    Cli::tcp(kind, port, user.name, user.password).must(dump);
}

fn text(session: &mut Session, sql: &str) -> String {
    session.text(sql).unwrap_or_else(|e| panic!("{sql}: {e}"))
}

/// No value of a protected column, in any form that a search finds.
fn assert_no_secret(dump: &str) {
    let mut patterns = Pattern::of_text(SECRET);
    let digits = DIGITS.to_string();
    let reversed: String = digits.chars().rev().collect();
    let backwards: String = SECRET.chars().rev().collect();
    for text in [digits.as_str(), &reversed, &backwards] {
        patterns.extend(Pattern::of_text(text));
    }
    patterns.extend(Pattern::of_text(&format!("{:x}", DIGITS * 1000)[..6]));
    let found = find_all(&patterns, dump.as_bytes());
    assert!(found.is_empty(), "{found:?}");
}

fn a_dump_loads_and_keeps_no_secret(kind: Kind) {
    let Some(stage) = Stage::filled(kind) else {
        return;
    };
    let Some(plain) = Lent::of(kind) else { return };
    let path = stage.out("app.sql");
    let output = stage.run(&["--database", "app", "--out", path.to_str().expect("a path")]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    assert!(
        errors.contains("view app.c_view: its text has constants"),
        "{errors}"
    );
    let dump = fs::read_to_string(&path).expect("a dump");
    assert!(dump.contains("-- Not in it: view app.c_view: its text has constants"));
    assert_no_secret(&dump);
    let folder = stage.proxy.folder();
    let left: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert!(
        !left
            .iter()
            .any(|n| n.to_string_lossy().contains("unfinished")),
        "{left:?}"
    );

    load(kind, plain.port(), &dump);
    let mut before = stage.proxy.connect_to("app");
    let expected: Vec<String> = COUNTS.iter().map(|sql| text(&mut before, sql)).collect();
    let every = text(&mut before, PLAIN);
    let mut after = Session::open(plain.port(), "root", "", Some("app"));
    for (sql, expected) in COUNTS.iter().zip(&expected) {
        assert_eq!(&text(&mut after, sql), expected, "{sql}");
    }
    assert_eq!(text(&mut after, PLAIN), every);
    looks_alike(&mut after);
    text(&mut after, "SELECT * FROM a_view");
    text(&mut after, "CALL listed()");
    // its next number
    let next = |s: &mut Session| s.must("INSERT INTO users (mail) VALUES ('x')").insert_id;
    let mut again = stage.proxy.connect_to("app");
    assert_eq!(next(&mut after), next(&mut again));
    drop(again);

    // through the proxy, which protects the tables anew
    before.must("DROP DATABASE app");
    drop(before);
    load(kind, stage.proxy.port(), &dump);
    let mut loaded = stage.proxy.connect_to("app");
    for (sql, expected) in COUNTS.iter().zip(&expected) {
        assert_eq!(&text(&mut loaded, sql), expected, "{sql}");
    }
    assert_eq!(text(&mut loaded, PLAIN), every);
    let physical = text(&mut stage.server.connect(), "SHOW COLUMNS FROM app.users");
    assert!(physical.contains("mail$enc"), "{physical}");
}

/// What applications look at in values.
fn looks_alike(after: &mut Session) {
    for (sql, expected) in [
        (
            "SELECT COUNT(*) FROM users WHERE mail REGEXP '^[a-z0-9.]+@[a-z0-9.]+[.]example$'",
            ROWS,
        ),
        (
            "SELECT COUNT(*) FROM users WHERE phone REGEXP '^[+][0-9]{2} [0-9]{10}$'",
            ROWS,
        ),
        (
            "SELECT COUNT(*) FROM users WHERE uid REGEXP '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$'",
            ROWS,
        ),
        (
            "SELECT COUNT(*) FROM users WHERE card REGEXP '^[0-9]{16}$'",
            ROWS,
        ),
        (
            "SELECT COUNT(*) FROM users WHERE born BETWEEN '2067-01-01' AND '2075-12-31'",
            ROWS,
        ),
        (
            "SELECT COUNT(*) FROM users WHERE salary BETWEEN 1000000000 AND 9999999999.99",
            ROWS,
        ),
        (
            "SELECT COUNT(*) FROM users WHERE active IN (0, 1) AND colour IS NOT NULL",
            ROWS,
        ),
        (
            "SELECT COUNT(*) FROM users WHERE CHAR_LENGTH(name) = 10 AND CHAR_LENGTH(note) = 23",
            ROWS,
        ),
        (
            "SELECT COUNT(*) FROM users WHERE doc = '{}' OR JSON_LENGTH(doc) = 0",
            ROWS,
        ),
    ] {
        assert_eq!(text(after, sql).trim(), expected.to_string(), "{sql}");
    }
}

fn the_key_decides(kind: Kind) {
    let Some(stage) = Stage::filled(kind) else {
        return;
    };
    let (one, other) = (
        stage.dump(&["--mask-key", "k1"]),
        stage.dump(&["--mask-key", "k2"]),
    );
    assert_eq!(one, stage.dump(&["--mask-key", "k1"]));
    assert_ne!(one, other);
    assert_ne!(
        stage.dump(&[]),
        stage.dump(&[]),
        "a key of its own for every run"
    );
    let key = fs::read_to_string(stage.out("k1")).expect("a key");
    assert!(!one.contains(key.trim()));
    // the same values, whatever else is dumped
    let orders = stage.dump(&["--mask-key", "k1", "--tables", "app.orders"]);
    let rows = |dump: &str| {
        let at = dump.find("INSERT INTO `orders`").expect("orders");
        dump[at..]
            .split(";\n")
            .next()
            .expect("a statement")
            .to_owned()
    };
    assert_eq!(rows(&one), rows(&orders));
    // masks and columns that stay
    let dump = stage.dump(&[
        "--keep",
        "app.users.name",
        "--mask",
        "app.users.note=fixed:it's \\ gone",
        "--mask",
        "app.users.city=hash",
        "--mask",
        "app.users.photo=null",
        "--mask",
        "app.every.a_point=null",
        "--mask",
        "app.*.total=generate",
    ]);
    assert!(dump.contains(&format!("'{SECRET} 1'")), "name stays");
    assert!(dump.contains("'it\\'s \\\\ gone'"));
    assert!(!dump.contains("Zürich") && !dump.contains(&format!("Dear {SECRET}")));
    fs::write(
        stage.out("masks.toml"),
        "keep = [\"app.users.name\"]\n[mask]\n\"app.users.note\" = \"fixed:from a file\"\n",
    )
    .expect("a file");
    let dump = stage.dump(&["--masks", "masks.toml"]);
    assert!(dump.contains("'from a file'") && dump.contains(&format!("'{SECRET} 1'")));
    // rows that are larger than an INSERT shall be
    let small = stage.dump(&["--insert-kib", "1", "--mask-key", "k1"]);
    assert!(small.matches("INSERT INTO").count() > one.matches("INSERT INTO").count());
    let with_views = stage.dump(&["--constants"]);
    assert!(with_views.contains("c_view") && with_views.contains("Hb4YqMz7constant"));
}

fn a_dump_is_of_one_moment(kind: Kind) {
    let sections = "[protect.\"app.*\"]\nowner = [\"eq\"]\n";
    let Some(stage) = Stage::empty(kind, sections) else {
        return;
    };
    let Some(plain) = Lent::of(kind) else { return };
    let mut session = stage.proxy.connect_to("app");
    for table in ["a_bank", "z_bank"] {
        session.must(&format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, owner VARCHAR(40), money INT)"
        ));
        let rows: Vec<String> = (0..2000)
            .map(|n| format!("({n}, 'owner {n}', 100)"))
            .collect();
        session.must(&format!("INSERT INTO {table} VALUES {}", rows.join(",")));
    }
    let stop = AtomicBool::new(false);
    /// Ends the writers, also if the test fails.
    struct Ended<'a>(&'a AtomicBool);
    impl Drop for Ended<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let dumps = thread::scope(|scope| {
        let _ended = Ended(&stop);
        for _ in 0..2 {
            scope.spawn(|| {
                let mut session = stage.proxy.connect_to("app");
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    number = (number * 1103 + 12345) % 2000;
                    session.must("BEGIN");
                    session.must(&format!(
                        "UPDATE a_bank SET money = money - 7 WHERE id = {number}"
                    ));
                    session.must(&format!(
                        "UPDATE z_bank SET money = money + 7 WHERE id = {number}"
                    ));
                    session.must("COMMIT");
                }
            });
        }
        (0..3).map(|_| stage.dump(&[])).collect::<Vec<String>>()
    });
    let moved = text(
        &mut session,
        "SELECT COUNT(*) FROM a_bank WHERE money <> 100",
    );
    assert_ne!(moved.trim(), "0", "nothing was written meanwhile");
    let mut after = Session::open(plain.port(), "root", "", None);
    for dump in dumps {
        after.must("DROP DATABASE IF EXISTS app");
        load(kind, plain.port(), &dump);
        let sum = text(
            &mut after,
            "SELECT (SELECT SUM(money) FROM app.a_bank) + (SELECT SUM(money) FROM app.z_bank)",
        );
        assert_eq!(sum.trim(), "400000");
    }
}

fn hostile_names_and_contents_load(kind: Kind) {
    let sections = "[protect.\"*.*\"]\n\"sé*\" = [\"eq\"]\n";
    let Some(stage) = Stage::empty(kind, sections) else {
        return;
    };
    let Some(plain) = Lent::of(kind) else { return };
    let mut session = stage.proxy.connect_to("app");
    let names = [
        "odd ``name, (",
        "*/ -- x",
        "a\\'b\"c",
        "1 FOREIGN KEY (`` REFERENCES",
    ];
    for name in names {
        session.must(&format!(
            "CREATE TABLE `{name}` (id INT PRIMARY KEY, `sé``at, )` VARCHAR(60), `it''s */` VARCHAR(80) COMMENT 'a, ) `b` \\\\', \
             UNIQUE KEY `u ) ,` (`sé``at, )`), KEY `k(` (`it''s */`))"
        ));
        session.must(&format!(
            "INSERT INTO `{name}` VALUES (1, 'ÄÖ ''quoted'' \\\\', '*/ ''\\\\ \\0 😀 -- # /*!50001 x */'), (2, '😀😀', ';\\n DELIMITER //\\n'), (3, NULL, NULL), \
             (4, '', ''), (5, ' x', '\\\\'), (6, 'привет мир', '\\Z\\r'), (7, '中文字符', 'x')"
        ));
    }
    let of_lines = "line\nDROP DATABASE app;\n-- ";
    session.must(&format!("CREATE TABLE `{of_lines}x` (`a\nb` INT)"));
    session.must(&format!("INSERT INTO `{of_lines}x` VALUES (7)"));
    session.must(&format!("CREATE VIEW `{of_lines}v` AS SELECT 'constant'"));
    let dump = stage.dump(&[]);
    load(kind, plain.port(), &dump);
    let mut after = Session::open(plain.port(), "root", "", Some("app"));
    let sql = format!("SELECT `a\nb` FROM `{of_lines}x`");
    assert_eq!(text(&mut after, &sql).trim(), "7");
    session.must(&format!("DROP VIEW `{of_lines}v`"));
    for name in names {
        let sql = format!("SELECT id, HEX(`it''s */`) FROM `{name}` ORDER BY id");
        assert_eq!(text(&mut after, &sql), text(&mut session, &sql), "{name}");
        let sql = format!("SELECT id FROM `{name}` WHERE `sé``at, )` IS NULL");
        assert_eq!(text(&mut after, &sql), text(&mut session, &sql), "{name}");
        let sql = format!("SELECT COUNT(DISTINCT `sé``at, )`) FROM `{name}`");
        assert_eq!(text(&mut after, &sql), text(&mut session, &sql), "{name}");
        let sql = format!("SELECT `sé``at, )` FROM `{name}` WHERE id IN (1, 6, 7)");
        assert_ne!(text(&mut after, &sql), text(&mut session, &sql));
    }
    let shown = text(&mut after, "SHOW TABLES");
    assert_eq!(
        shown.lines().count(),
        text(&mut session, "SHOW TABLES").lines().count()
    );
}

fn what_does_not_fit_is_refused(kind: Kind) {
    let Some(stage) = Stage::filled(kind) else {
        return;
    };
    for (arguments, code, words) in [
        (
            &["--keep", "app.users.cyti"][..],
            2,
            "no column is named app.users.cyti",
        ),
        (
            &["--mask", "app.userz.*=hash"],
            2,
            "no column is named app.userz.*",
        ),
        (&["--mask", "app.users.name=rot13"], 2, "is no mask"),
        (
            &["--mask", "app.users.mail=fixed:x"],
            2,
            "one value cannot stand for all",
        ),
        (
            &["--mask", "app.users.mail=null"],
            2,
            "NULL is not allowed there",
        ),
        (
            &["--mask", "app.every.a_point=hash"],
            2,
            "there is no mask for point",
        ),
        (&["--keep", "app.users.mail"], 2, "they belong together"),
        (
            &[
                "--mask",
                "app.users.mail=hash",
                "--mask",
                "app.logins.mail=generate",
            ],
            2,
            "different masks",
        ),
        (
            &[
                "--together",
                "app.users.city,app.every.id",
                "--mask",
                "app.users.city=hash",
            ],
            2,
            "different types",
        ),
        (
            &["--tables", "app.nobody"],
            2,
            "there is no table app.nobody",
        ),
        (&["--tables", "app.every"], 2, "nothing would be replaced"),
        (&["--masks", "onionskin.toml"], 2, "unknown field"),
        (&["--mask-key", "onionskin.toml"], 2, "onionskin.toml"),
        (&["--backend", "127.0.0.1:1"], 4, "there is no dump"),
    ] {
        stage.fails(arguments, code, words);
    }
    // the server in the place of the proxy
    let direct = stage.server.address();
    let output = stage.run(&["--database", "app", "--from", &direct]);
    assert_ne!(output.status.code(), Some(0));
    // another server
    if let Some(other) = Lent::of(kind) {
        other.connect().must("CREATE DATABASE app");
        let backend = other.address();
        let output = stage.run(&["--database", "app", "--backend", &backend]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && errors.contains("there is no dump"),
            "{errors}"
        );
    }
    // what is there is not overwritten
    fs::write(stage.out("there.sql"), "x").expect("a file");
    let output = stage.run(&["--database", "app", "--out", "there.sql"]);
    assert!(!output.status.success());
    assert_eq!(
        fs::read_to_string(stage.out("there.sql")).expect("a file"),
        "x"
    );
    // two tables that share a name but for its letter case
    let mut session = stage.proxy.connect_to("app");
    for name in ["twin", "Twin"] {
        session.must(&format!(
            "CREATE TABLE {name} (id INT PRIMARY KEY, mail VARCHAR(80) ENCRYPTED FOR (eq))"
        ));
        session.must(&format!("INSERT INTO {name} VALUES (1, '{SECRET}')"));
    }
    stage.fails(&[], 2, "letter case");
    session.must("DROP TABLE twin, Twin");
    // a plain table that the configuration wants protected is replaced as well
    let mut direct = stage.server.connect();
    direct.must("CREATE TABLE app.late (id INT PRIMARY KEY, word VARCHAR(40))");
    direct.must(&format!("INSERT INTO app.late VALUES (1, '{SECRET}')"));
    let config = stage.out("onionskin.toml");
    let before = fs::read_to_string(&config).expect("a configuration");
    fs::write(
        &config,
        before + "\n[protect.\"app.late\"]\nword = [\"eq\"]\nenforce = false\n",
    )
    .expect("written");
    assert_no_secret(&stage.dump(&["--tables", "app.late,app.users"]));
}

fn a_masked_account_is_refused(kind: Kind) {
    let sections = SECTIONS.to_owned()
        + "[mask.\"app.users\"]\nname = { support = \"first:1\", \"*\" = \"clear\" }\n";
    let Some(stage) = Stage::empty(kind, &sections) else {
        return;
    };
    let mut session = stage.proxy.connect_to("app");
    session.must(&definitions()[0]);
    session.must("CREATE USER support IDENTIFIED BY ''");
    session.must("GRANT ALL ON *.* TO support");
    stage.dump(&[]);
    stage.fails(&["--user", "support"], 4, "sees its values in the clear");
}

/// Waits until the file has grown, and kills its writer.
fn a_killed_dump_leaves_no_whole_file(kind: Kind) {
    let Some(stage) = many_rows(kind, 60_000) else {
        return;
    };
    let path = stage.out("killed.sql");
    let arguments = [
        "--database",
        "app",
        "--out",
        "killed.sql",
        "--insert-kib",
        "16",
    ];
    let mut child = stage
        .command(&arguments)
        .stderr(Stdio::null())
        .spawn()
        .expect("onionskin runs");
    let unfinished = stage.out(&format!("killed.sql.{}.unfinished", child.id()));
    wait_until("something is written", Duration::from_secs(30), || {
        fs::metadata(&unfinished).is_ok_and(|file| file.len() > 0)
    });
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(!path.exists());
    let left = fs::read_to_string(&unfinished).unwrap_or_default();
    assert!(!left.contains("-- onionskin dump: complete\n"));
    // and another one is not in its way
    assert!(stage.run(&arguments).status.success());
    assert!(path.exists());
}

/// A table with a protected column and so many rows.
fn many_rows(kind: Kind, rows: u32) -> Option<Stage> {
    let stage = Stage::empty(
        kind,
        "[protect.\"app.many\"]\nname = [\"eq\"]\nnumber = []\n",
    )?;
    let mut session = stage.proxy.connect_to("app");
    session.must(
        "CREATE TABLE many (id INT PRIMARY KEY, name VARCHAR(40), number INT, city VARCHAR(40))",
    );
    let mut at = 0;
    while at < rows {
        let until = rows.min(at + 2000);
        let values: Vec<String> = (at..until)
            .map(|n| format!("({n}, 'Person number {n}', {n}, 'City {}')", n % 100))
            .collect();
        session.must(&format!("INSERT INTO many VALUES {}", values.join(",")));
        at = until;
    }
    Some(stage)
}

fn a_table_that_changes_ends_the_dump(kind: Kind) {
    let Some(stage) = many_rows(kind, 60_000) else {
        return;
    };
    let mut session = stage.proxy.connect_to("app");
    session.must("CREATE TABLE zoo (id INT PRIMARY KEY, city VARCHAR(40))");
    session.must("INSERT INTO zoo VALUES (1, 'Rome')");
    let mut child = stage
        .command(&[
            "--database",
            "app",
            "--out",
            "changed.sql",
            "--insert-kib",
            "16",
        ])
        .stderr(Stdio::piped())
        .spawn()
        .expect("onionskin runs");
    let unfinished = stage.out(&format!("changed.sql.{}.unfinished", child.id()));
    wait_until("something is written", Duration::from_secs(30), || {
        fs::metadata(&unfinished).is_ok_and(|file| file.len() > 0)
    });
    let is_running = child.try_wait().expect("waited").is_none();
    // a table that comes later gets another column
    session.must("ALTER TABLE zoo ADD COLUMN more INT");
    let still_running = child.try_wait().expect("waited").is_none();
    let output = child.wait_with_output().expect("ended");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        is_running && still_running,
        "the dump was too fast for this test: {errors}"
    );
    assert!(!output.status.success(), "{errors}");
    let is_told = errors.contains("changed") || errors.contains("Deadlock");
    assert!(is_told, "{errors}");
    assert!(!stage.out("changed.sql").exists());
}

fn definitions_with_protection_load(kind: Kind) {
    let Some(stage) = Stage::filled(kind) else {
        return;
    };
    let dump = stage.dump(&["--encrypted-for"]);
    assert!(
        dump.contains("ENCRYPTED FOR (eq, join:`mail`)")
            || dump.contains("ENCRYPTED FOR (eq, join:mail)"),
        "{dump}"
    );
    // a proxy that is told nothing by its configuration
    let server = Server::start(kind, ServerOptions::default()).expect("a server");
    let proxy = Proxy::start(&server, "");
    load(kind, proxy.port(), &dump);
    let physical = text(&mut server.connect(), "SHOW COLUMNS FROM app.users");
    assert!(
        physical.contains("mail$enc") && physical.contains("photo$enc"),
        "{physical}"
    );
    let mut session = proxy.connect_to("app");
    assert_eq!(
        text(
            &mut session,
            "SELECT COUNT(*) FROM orders JOIN users ON user_mail = mail"
        )
        .trim(),
        ROWS.to_string()
    );
}

/// Bytes of memory that a process has had at most.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn a_million_rows_take_little_memory(kind: Kind) {
    let rows = if long_run() { 1_000_000 } else { 100_000 };
    let Some(stage) = many_rows(kind, rows) else {
        return;
    };
    let begun = Instant::now();
    let mut child = stage
        .command(&["--database", "app", "--out", "many.sql", "--quiet"])
        .spawn()
        .expect("onionskin runs");
    let mut most = 0;
    let status = loop {
        most = most.max(peak(child.id()));
        if let Some(status) = child.try_wait().expect("waited") {
            break status;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let took = begun.elapsed();
    assert!(status.success());
    let dump = fs::metadata(stage.out("many.sql")).expect("a dump").len();
    announce(&format!(
        "{}: {rows} rows, {dump} bytes in {took:?}, {} KiB of memory",
        kind.name(),
        most / 1024
    ));
    assert!(most > 0 && most < 64 << 20, "{most} bytes of memory");
    let user = kind.users()[0];
    let begun = Instant::now();
    let other = Cli::dump(kind, stage.proxy.port(), user.name, user.password, &["app"]);
    announce(&format!(
        "{}: its own program: {} bytes in {:?}",
        kind.name(),
        other.len(),
        begun.elapsed()
    ));
}
