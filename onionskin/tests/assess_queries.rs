//! `onionskin assess queries` on real servers: for three sample applications the policy that it
//! proposes is the one that was made by hand, every statement runs under it through the proxy, and
//! no report has a value.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use onionskin_assess::queries::QueriesReport;
use onionskin_testkit::*;
use tempfile::TempDir;

on_both_servers!(
    accounts_and_sessions,
    a_benchmark,
    a_shop,
    logs_and_digests_are_read,
    an_application_is_observed,
    what_is_observed_outlives_its_program,
    its_commands_encrypt_the_tables_that_are_there,
    what_cannot_be_is_said,
    hostile_names_views_and_other_databases,
);

/// Tables, rows, statements; and what was found by hand to be the smallest policy.
struct Application {
    tables: &'static [&'static str],
    rows: &'static [&'static str],
    statements: &'static [&'static str],
    columns: &'static str,
    policy: &'static [&'static str],
}

/// In the manner of Django's auth, admin and sessions.
const ACCOUNTS: Application = Application {
    tables: &[
        "CREATE TABLE auth_user (id INT AUTO_INCREMENT PRIMARY KEY, password VARCHAR(128) NOT NULL, \
         last_login DATETIME(6) NULL, is_superuser TINYINT(1) NOT NULL, username VARCHAR(150) NOT NULL UNIQUE, \
         first_name VARCHAR(150) NOT NULL, last_name VARCHAR(150) NOT NULL, email VARCHAR(254) NOT NULL, \
         is_active TINYINT(1) NOT NULL, date_joined DATETIME(6) NOT NULL)",
        "CREATE TABLE django_admin_log (id INT AUTO_INCREMENT PRIMARY KEY, action_time DATETIME(6) NOT NULL, \
         object_repr VARCHAR(200) NOT NULL, action_flag SMALLINT UNSIGNED NOT NULL, user_id INT NOT NULL, \
         CONSTRAINT log_user FOREIGN KEY (user_id) REFERENCES auth_user (id))",
        "CREATE TABLE django_session (session_key VARCHAR(40) NOT NULL PRIMARY KEY, session_data LONGTEXT NOT NULL, \
         expire_date DATETIME(6) NOT NULL, KEY expires (expire_date))",
    ],
    rows: &[
        "INSERT INTO auth_user VALUES (1, 'pbkdf2$canary', NULL, 0, 'wilhelmina', 'Wilhelmina', 'Canary', \
         'wilhelmina@example.org', 1, '2026-01-01')",
        "INSERT INTO django_admin_log VALUES (1, '2026-01-01', 'canary object', 1, 1)",
        "INSERT INTO django_session VALUES ('canarykey', 'canarydata', '2030-01-01')",
    ],
    statements: &[
        "SELECT `auth_user`.`id`, `auth_user`.`password`, `auth_user`.`last_login`, `auth_user`.`username`, \
         `auth_user`.`first_name`, `auth_user`.`last_name`, `auth_user`.`email` FROM `auth_user` \
         WHERE `auth_user`.`username` = 'wilhelmina' LIMIT 21",
        "SELECT 1 AS `a` FROM `auth_user` WHERE `auth_user`.`username` = 'wilhelmina' LIMIT 1",
        "UPDATE `auth_user` SET `last_login` = '2026-02-01 10:00:00' WHERE `auth_user`.`id` = 1",
        "UPDATE `auth_user` SET `first_name` = 'Mina', `email` = 'mina@example.org' WHERE `auth_user`.`id` = 1",
        "SELECT `auth_user`.`id`, `auth_user`.`email` FROM `auth_user` \
         WHERE (`auth_user`.`email` LIKE 'mina@example.org' AND `auth_user`.`is_active` = 1)",
        "SELECT COUNT(*) AS `__count` FROM `auth_user`",
        "SELECT `auth_user`.`id`, `auth_user`.`username`, `auth_user`.`email` FROM `auth_user` \
         ORDER BY `auth_user`.`id` DESC LIMIT 100",
        "INSERT INTO `auth_user` (`password`, `last_login`, `is_superuser`, `username`, `first_name`, `last_name`, \
         `email`, `is_active`, `date_joined`) VALUES ('x', NULL, 0, 'friend', 'A', 'Friend', 'f@example.org', 1, \
         '2026-02-02 00:00:00')",
        "SELECT `django_session`.`session_key`, `django_session`.`session_data`, `django_session`.`expire_date` \
         FROM `django_session` WHERE (`django_session`.`expire_date` > '2026-02-01 00:00:00' \
         AND `django_session`.`session_key` = 'canarykey') LIMIT 21",
        "UPDATE `django_session` SET `session_data` = 'canarydata2', `expire_date` = '2030-02-01' \
         WHERE `django_session`.`session_key` = 'canarykey'",
        "DELETE FROM `django_session` WHERE `django_session`.`session_key` IN ('canarykey')",
        "SELECT `django_admin_log`.`id`, `django_admin_log`.`object_repr`, `auth_user`.`username` \
         FROM `django_admin_log` INNER JOIN `auth_user` ON (`django_admin_log`.`user_id` = `auth_user`.`id`) \
         WHERE `django_admin_log`.`user_id` = 1 ORDER BY `django_admin_log`.`action_time` DESC LIMIT 10",
        "INSERT INTO `django_admin_log` (`action_time`, `object_repr`, `action_flag`, `user_id`) \
         VALUES ('2026-02-01', 'canary again', 2, 1)",
    ],
    columns: "auth_user.password, auth_user.username, auth_user.*_name, auth_user.email, \
              django_admin_log.object_repr, django_session.session_*",
    policy: &[
        "[protect.\"app.auth_user\"]",
        "password = []",
        "username = [\"eq\"]",
        "first_name = []",
        "last_name = []",
        "email = []",
        "",
        "[protect.\"app.django_admin_log\"]",
        "object_repr = []",
        "",
        "[protect.\"app.django_session\"]",
        "session_key = [\"eq\"]",
        "session_data = []",
    ],
};

/// In the manner of sysbench's read-write test with random ranges.
const BENCHMARK: Application = Application {
    tables: &[
        "CREATE TABLE sbtest1 (id INT AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0, \
         c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k))",
    ],
    rows: &[
        "INSERT INTO sbtest1 VALUES (1, 7, 'canary-1', 'canary-2'), (2, 8, 'canary-3', 'canary-4')",
    ],
    statements: &[
        "SELECT c FROM sbtest1 WHERE id=1",
        "SELECT c FROM sbtest1 WHERE id BETWEEN 1 AND 100",
        "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 1 AND 100",
        "SELECT c FROM sbtest1 WHERE id BETWEEN 1 AND 100 ORDER BY c",
        "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 1 AND 100 ORDER BY c",
        "SELECT COUNT(k) FROM sbtest1 WHERE k BETWEEN 5 AND 7 OR k BETWEEN 20 AND 30",
        "UPDATE sbtest1 SET k=k+1 WHERE id=1",
        "UPDATE sbtest1 SET c='canary-5' WHERE id=2",
        "DELETE FROM sbtest1 WHERE id=2",
        "INSERT INTO sbtest1 (id, k, c, pad) VALUES (2, 9, 'canary-6', 'canary-7')",
    ],
    columns: "sbtest1.*",
    policy: &[
        "[protect.\"app.sbtest1\"]",
        "k = [\"range\"]",
        "c = []",
        "pad = []",
    ],
};

const SHOP: Application = Application {
    tables: &[
        "CREATE TABLE customers (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(80) NOT NULL, \
         email VARCHAR(120) NOT NULL, born DATE, city VARCHAR(40), UNIQUE KEY by_mail (email))",
        "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, customer_email VARCHAR(120) NOT NULL, \
         ordered DATE NOT NULL, total DECIMAL(10,2) NOT NULL, note TEXT, KEY by_customer (customer_email), \
         CONSTRAINT of_customer FOREIGN KEY (customer_email) REFERENCES customers (email))",
    ],
    rows: &[
        "INSERT INTO customers VALUES (1, 'Wilhelmina Canary', 'wilhelmina@example.org', '1980-02-03', 'Ulm')",
        "INSERT INTO orders VALUES (1, 'wilhelmina@example.org', '2026-01-05', 17.49, 'ring the canary bell')",
    ],
    statements: &[
        "SELECT id, name FROM customers WHERE email = 'wilhelmina@example.org'",
        "SELECT id, name FROM customers WHERE born BETWEEN '1980-01-01' AND '1980-12-31'",
        "SELECT id, name FROM customers WHERE name LIKE '%canary%'",
        "SELECT c.name, c.born FROM customers c WHERE c.city = 'Ulm' ORDER BY c.name",
        "SELECT o.id, o.total FROM orders o JOIN customers c ON c.email = o.customer_email WHERE c.id = 1",
        "SELECT SUM(total) FROM orders WHERE ordered BETWEEN '2026-01-01' AND '2026-02-01'",
        "SELECT id, note FROM orders WHERE customer_email = 'wilhelmina@example.org' ORDER BY ordered DESC LIMIT 5",
        "INSERT INTO customers (name, email, born, city) VALUES ('Otto Canary', 'otto@example.org', '1990-05-06', 'Ulm')",
        "INSERT INTO orders (customer_email, ordered, total, note) VALUES ('otto@example.org', '2026-02-02', 5.5, NULL)",
        "UPDATE orders SET note = 'canary is paid' WHERE id = 1",
    ],
    columns: "customers.name, customers.email, customers.born, orders.total, orders.note",
    policy: &[
        "[protect.\"app.customers\"]",
        "name = [\"like\"]",
        "email = [\"join:customers.email\"]",
        "born = [\"range\"]",
        "",
        "[protect.\"app.orders\"]",
        "customer_email = [\"join:customers.email\"]",
        "total = []",
        "note = []",
    ],
};

fn folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("os-queries-")
        .tempdir()
        .expect("a temporary folder")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Runs it; the code, the report, and everything that it has said and written.
fn assess(server: &Server, arguments: &[&str]) -> (Option<i32>, QueriesReport, String) {
    let folder = folder();
    let out = folder.path().join("report");
    let mut command = Command::new(env!("CARGO_BIN_EXE_onionskin"));
    command
        .args(["assess", "queries", "--database", "app", "--small", "0"])
        .args(["--backend", &format!("unix:{}", server.socket().display())])
        .args(["--like-index", "--without-engine"])
        .args(arguments)
        .arg("--out")
        .arg(&out)
        .env_remove("ONIONSKIN_PASSWORD")
        .current_dir("/")
        .stdin(Stdio::null());
    let output = command.output().expect("onionskin runs");
    let mut all = text(&output);
    let json = fs::read_to_string(out.join("report.json"));
    let json = json.unwrap_or_else(|_| panic!("no report: {all}"));
    let report: QueriesReport = serde_json::from_str(&json).expect("JSON as it is documented");
    assert_eq!(
        (report.format.as_str(), report.version),
        ("onionskin-assess-queries", 1)
    );
    for name in ["report.html", "report.md", "report.json"] {
        all += &fs::read_to_string(out.join(name)).expect("a file of the report");
    }
    (output.status.code(), report, all)
}

fn no_value_is_told(all: &str) {
    let all = all.to_lowercase();
    for value in ["canary", "wilhelmina", "otto@", "1980-", "17.49", "mina@"] {
        assert!(!all.contains(value), "the report tells {value}");
    }
}

fn with_tables(kind: Kind, application: &Application, options: ServerOptions) -> Option<Server> {
    let server = Server::start(kind, options)?;
    let mut root = server.connect();
    root.must("CREATE DATABASE app");
    root.must("USE app");
    for sql in application.tables.iter().chain(application.rows) {
        root.must(sql);
    }
    for table in names(application) {
        root.must(&format!("ANALYZE TABLE {table}"));
    }
    Some(server)
}

fn names(application: &Application) -> Vec<&'static str> {
    let tables = application.tables.iter();
    tables
        .filter_map(|sql| sql.split_whitespace().nth(2))
        .collect()
}

fn statements_file(folder: &Path, statements: &[&str]) -> PathBuf {
    let path = folder.join("statements.sql");
    fs::write(&path, statements.join(";\n")).expect("written");
    path
}

/// The proposed policy is the one that was made by hand, and it is no smaller than needed: the
/// tables that are made with it run every statement.
fn is_the_optimum(kind: Kind, application: &Application) {
    let Some(server) = with_tables(kind, application, ServerOptions::default()) else {
        return;
    };
    let folder = folder();
    let file = statements_file(folder.path(), application.statements);
    let file = file.to_str().expect("text");
    let arguments = ["--statements", file, "--columns", application.columns];
    let (_, report, all) = assess(&server, &arguments);
    assert_eq!(report.policy, application.policy, "{all}");
    assert_eq!(report.shapes.len(), application.statements.len());
    assert_eq!(report.refused().count() + report.wide().count(), 0, "{all}");
    assert!(
        report.skipped.is_empty() && report.left_out.is_empty(),
        "{all}"
    );
    no_value_is_told(&all);

    let mut root = server.connect();
    root.must("USE app");
    for table in names(application).iter().rev() {
        root.must(&format!("DROP TABLE {table}"));
    }
    let options = ProxyOptions {
        settings: "like_index = true\n".into(),
        tables: report.policy.join("\n"),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::start_with(&server, options);
    let mut client = proxy.connect_to("app");
    for sql in application.tables.iter().chain(application.rows) {
        client.must(sql);
    }
    for sql in application.statements {
        client.must(sql);
    }
}

fn accounts_and_sessions(kind: Kind) {
    is_the_optimum(kind, &ACCOUNTS);
}

fn a_benchmark(kind: Kind) {
    is_the_optimum(kind, &BENCHMARK);
}

fn a_shop(kind: Kind) {
    is_the_optimum(kind, &SHOP);
}

/// The same policy comes out of what the server has written down itself.
fn logs_and_digests_are_read(kind: Kind) {
    let options = ServerOptions {
        general_log: true,
        slow_log: true,
        performance_schema: true,
        ..ServerOptions::default()
    };
    let Some(server) = with_tables(kind, &SHOP, options) else {
        return;
    };
    let mut client = server.connect();
    client.must("USE app");
    for sql in SHOP.statements {
        client.must(sql);
    }
    for _ in 0..3 {
        client
            .execute(
                "SELECT city FROM customers WHERE email = ?",
                ("wilhelmina@example.org",),
            )
            .expect("it runs");
    }
    for log in ["general.log", "slow.log"] {
        let log = server.data_dir().join(log);
        let log = log.to_str().expect("text");
        let (_, report, all) = assess(&server, &["--statements", log, "--columns", SHOP.columns]);
        assert_eq!(report.policy, SHOP.policy, "{log}: {all}");
        let prepared = report
            .shapes
            .iter()
            .find(|shape| shape.shape == "SELECT city FROM customers WHERE email = ?");
        let count = prepared.map(|shape| shape.count);
        assert_eq!(count, Some(3), "{log}: {:#?}", report.skipped);
        no_value_is_told(&all);
    }
    let (_, report, all) = assess(&server, &["--digests", "--columns", SHOP.columns]);
    assert_eq!(report.policy, SHOP.policy, "{all}");
    no_value_is_told(&all);
}

fn observing(server: &Server, file: &Path) -> Proxy {
    let file = file.to_str().expect("text");
    let options = ProxyOptions {
        arguments: vec!["--observe".into(), file.into()],
        ..ProxyOptions::default()
    };
    Proxy::start_with(server, options)
}

/// What goes through a proxy that protects nothing yet, by every way to send a statement, gives the
/// policy that was made by hand. The file has no value.
fn an_application_is_observed(kind: Kind) {
    if direct_mode() {
        return;
    }
    for application in [&ACCOUNTS, &BENCHMARK, &SHOP] {
        let Some(server) = with_tables(kind, application, ServerOptions::default()) else {
            return;
        };
        let folder = folder();
        let file = folder.path().join("observed.json");
        let mut proxy = observing(&server, &file);
        let mut client = proxy.connect_to("app");
        for sql in application.statements {
            client.must(sql);
        }
        let select = format!("SELECT * FROM {} WHERE 1 = ?", names(application)[0]);
        for _ in 0..3 {
            client.execute(&select, ("canary",)).expect("it runs");
        }
        client.must("SET @x = 'canary'");
        client.must("PREPARE by_name FROM 'SELECT 1, ? LIKE ''%canary%'''");
        client.must("EXECUTE by_name USING @x");
        client.must("DO 'canary'; /* canary */ SELECT 'canary' AS 'canary'");
        client.must("/*!50000 SELECT 'canary' */");
        client.must_fail("SELECT 'canary");
        client.must("SET sql_mode = 'ANSI_QUOTES'");
        client.must("SELECT \"id\", 'canary' FROM (SELECT 1 AS \"id\") d");
        client.must("SET sql_mode = ''");
        client.must("SELECT \"canary\", N'canary', _utf8mb4'canary', 'can' 'ary'");
        drop(client);
        proxy.terminate();
        let said = fs::read_to_string(&file).expect("it was written");
        no_value_is_told(&said);
        let file = file.to_str().expect("text");
        let columns = application.columns;
        let (_, report, all) = assess(&server, &["--statements", file, "--columns", columns]);
        assert_eq!(report.policy, application.policy, "{said}\n{all}");
        let select = select.replace("1 = ", "? = ");
        let found = report.shapes.iter().find(|found| found.shape == select);
        assert_eq!(found.map(|found| found.count), Some(3), "{said}");
        // the text that was prepared by its name
        assert!(said.contains("\"SELECT 1, ? LIKE '%aaa%'\""), "{said}");
        no_value_is_told(&all);
    }
}

/// Counts of several programs add up. A killed one loses the last seconds, and a file of another
/// kind is left alone.
fn what_is_observed_outlives_its_program(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = with_tables(kind, &SHOP, ServerOptions::default()) else {
        return;
    };
    let folder = folder();
    let file = folder.path().join("observed.json");
    let sql = "SELECT city FROM customers WHERE email = 'a'";
    let said = |text: &str| text.matches("SELECT city FROM customers").count();
    let mut first = observing(&server, &file);
    let mut second = observing(&server, &file);
    for proxy in [&first, &second] {
        let mut client = proxy.connect_to("app");
        for _ in 0..5 {
            client.must(sql);
        }
    }
    // it writes by itself
    let deadline = Instant::now() + Duration::from_secs(30);
    while said(&fs::read_to_string(&file).expect("it is there")) < 2 {
        assert!(Instant::now() < deadline, "nothing is written");
        thread::sleep(Duration::from_millis(200));
    }
    first.kill9();
    second.connect_to("app").must(sql);
    second.terminate();
    let path = file.to_str().expect("text");
    let (_, report, all) = assess(&server, &["--statements", path, "--columns", SHOP.columns]);
    let is_it = |shape: &str| shape == "SELECT city FROM customers WHERE email = ?";
    let found = report.shapes.iter().find(|shape| is_it(&shape.shape));
    assert_eq!(found.map(|shape| shape.count), Some(11), "{all}");
    let other = folder.path().join("other.txt");
    fs::write(&other, "mine\n").expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_onionskin"))
        .args(["serve", "-c", "onionskin.toml", "--listen", "127.0.0.1:0"])
        .arg("--observe")
        .arg(&other)
        .current_dir(second.folder())
        .output();
    let output = output.expect("onionskin runs");
    assert!(!output.status.success() && text(&output).contains("something else"));
    assert_eq!(fs::read_to_string(&other).expect("it is there"), "mine\n");
}

/// In their order: the foreign key goes, both tables are migrated, and it comes again.
fn its_commands_encrypt_the_tables_that_are_there(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut root = server.connect();
    root.must("CREATE DATABASE app");
    root.must("USE app");
    for sql in SHOP.tables.iter().chain(SHOP.rows) {
        root.must(sql);
    }
    for table in names(&SHOP) {
        root.must(&format!("ANALYZE TABLE {table}"));
    }
    let folder = folder();
    let file = statements_file(folder.path(), SHOP.statements);
    let file = file.to_str().expect("text");
    let (_, report, all) = assess(&server, &["--statements", file, "--columns", SHOP.columns]);
    assert_eq!(report.policy, SHOP.policy, "{all}");
    let options = ProxyOptions {
        settings: "like_index = true\n".into(),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::start_with(&server, options);
    let mut client = proxy.connect_to("app");
    assert_eq!(report.commands.len(), 4, "{:#?}", report.commands);
    for command in &report.commands {
        match command.strip_prefix("onionskin migrate ") {
            None => drop(client.must(command)),
            Some(rest) => {
                let (table, columns) = rest.split_once(" --encrypt ").expect("columns");
                let columns = columns.trim_matches('\'');
                must_migrate(&server, Some(&proxy), &[table, "--encrypt", columns]);
            }
        }
    }
    let keys = "SELECT COUNT(*) FROM information_schema.REFERENTIAL_CONSTRAINTS \
                WHERE CONSTRAINT_SCHEMA = 'app' AND CONSTRAINT_NAME = 'of_customer'";
    assert_eq!(root.text(keys).expect("a number"), "1");
    for sql in SHOP.statements {
        client.must(sql);
    }
}

/// Statements that nothing carries, columns that cannot be protected, and texts that are none.
fn what_cannot_be_is_said(kind: Kind) {
    let Some(server) = with_tables(kind, &SHOP, ServerOptions::default()) else {
        return;
    };
    let folder = folder();
    let statements = [
        "SELECT UPPER(name) FROM customers WHERE id = 7",
        "SELECT SUM(total) FROM orders",
        "SELECT name FROM customers WHERE id = 7",
        "SELECT 'not closed",
    ];
    let file = statements_file(folder.path(), &statements[..3]);
    let file = file.to_str().expect("text");
    let columns = "customers.*, orders.total";
    let (code, report, all) = assess(&server, &["--statements", file, "--columns", columns]);
    assert_eq!(code, Some(1), "{all}");
    let refused: Vec<_> = report.refused().map(|s| s.refused.clone()).collect();
    assert_eq!(refused, [Some("OS1004".to_owned())]);
    let wide: Vec<_> = report.wide().map(|s| s.whole.clone()).collect();
    assert_eq!(wide, [vec!["orders".to_owned()]]);
    assert_eq!(
        report.plain,
        [("customers.id".to_owned(), "AUTO_INCREMENT".to_owned())]
    );
    let added: Vec<_> = report.added.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(added, ["orders.customer_email"]);
    assert!(all.contains("ALTER TABLE `app`.`orders` DROP FOREIGN KEY `of_customer`;"));

    let broken = folder.path().join("broken.sql");
    fs::write(&broken, statements.join(";\n")).expect("written");
    let is_wrong = |columns: &str, statements: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onionskin"));
        let output = command
            .args(["assess", "queries", "--database", "app"])
            .args(["--columns", columns])
            .args(["--backend", &format!("unix:{}", server.socket().display())])
            .args(["--statements", statements])
            .env_remove("ONIONSKIN_PASSWORD")
            .stdin(Stdio::null())
            .output()
            .expect("onionskin runs");
        let told = text(&output);
        assert_eq!(output.status.code(), Some(2), "{columns}: {told}");
    };
    is_wrong("customers.name", broken.to_str().expect("a path"));
    for columns in ["nowhere.name", "name", "customers.nothing"] {
        is_wrong(columns, file);
    }
}

/// Without --columns it is what `assess data` proposes. Names of the server's are shown harmless,
/// and stay what they are in the policy.
fn hostile_names_views_and_other_databases(kind: Kind) {
    const HOSTILE: &str = "<script>alert(1)</script>";
    let Some(server) = with_tables(kind, &SHOP, ServerOptions::default()) else {
        return;
    };
    let mut root = server.connect();
    root.must("USE app");
    root.must(&format!(
        "CREATE TABLE `{HOSTILE}` (id INT PRIMARY KEY, `e\"mail` VARCHAR(60))"
    ));
    root.must(&format!(
        "INSERT INTO `{HOSTILE}` VALUES (1, 'canary@example.org'), (2, 'canary@example.com')"
    ));
    root.must(&format!("ANALYZE TABLE `{HOSTILE}`"));
    root.must("CREATE VIEW seen AS SELECT id FROM customers");
    root.must("CREATE DATABASE other");
    root.must("CREATE TABLE other.plain (id INT PRIMARY KEY, mail VARCHAR(120))");
    let of_hostile = format!("SELECT id FROM `{HOSTILE}` WHERE `e\"mail` = 'canary@example.org'");
    let statements = [
        of_hostile.as_str(),
        "SELECT id FROM seen WHERE id = 7",
        "SELECT c.email FROM customers c JOIN other.plain p ON p.id = c.id WHERE p.id = 7",
        "SELECT c.id FROM customers c JOIN other.plain p ON p.mail = c.email WHERE p.id = 7",
        "SELECT id FROM other.plain WHERE mail = 'canary@example.org'",
    ];
    let folder = folder();
    let file = statements_file(folder.path(), &statements);
    let (code, report, all) = assess(&server, &["--statements", file.to_str().expect("text")]);
    assert_eq!(code, Some(1), "{all}");
    no_value_is_told(&all);
    let page = all.split("<!DOCTYPE html>").nth(1);
    let page = page.and_then(|page| page.split("</html>").next());
    let page = page.expect("the page is among the files");
    assert!(!page.contains("<script"), "a name is HTML");
    assert!(page.contains("&lt;script"), "the name is told");
    assert!(
        report
            .policy
            .contains(&"\"e\\\"mail\" = [\"eq\"]".to_owned()),
        "{:#?}",
        report.policy
    );
    let shape = |part: &str| {
        let found = report.shapes.iter().find(|s| s.shape.contains(part));
        found.unwrap_or_else(|| panic!("no shape with {part}"))
    };
    let of_view = shape("seen");
    assert_eq!(of_view.reason.as_deref(), Some("it names a view"));
    assert_eq!(shape("SELECT c.email").tier, Some(1));
    // a plain column of another database cannot be compared with tokens
    assert_eq!(shape("p.mail = c.email").tier, None);
    assert_eq!(shape("FROM other.plain WHERE").tier, Some(0));

    // The policy is one: the table is made with it, and the statement runs.
    root.must(&format!("DROP TABLE `{HOSTILE}`"));
    let proxy = Proxy::start(&server, &report.policy.join("\n"));
    let mut client = proxy.connect_to("app");
    client.must(&format!(
        "CREATE TABLE `{HOSTILE}` (id INT PRIMARY KEY, `e\"mail` VARCHAR(60))"
    ));
    client.must(&of_hostile);
}
