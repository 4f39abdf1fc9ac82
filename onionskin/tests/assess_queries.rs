//! `onionskin assess queries` on real servers: for three sample applications the policy that it
//! proposes is the one that was made by hand, every statement runs under it through the proxy, and
//! no report has a value.

#[path = "assess_queries/applications.rs"]
mod applications;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use applications::{ACCOUNTS, Application, BENCHMARK, SHOP};
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
    for table in application.names() {
        root.must(&format!("ANALYZE TABLE {table}"));
    }
    Some(server)
}

fn statements_file(folder: &Path, statements: &[impl AsRef<str>]) -> PathBuf {
    let statements: Vec<&str> = statements.iter().map(AsRef::as_ref).collect();
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
    let statements = application.statements(kind);
    let file = statements_file(folder.path(), &statements);
    let file = file.to_str().expect("text");
    let arguments = ["--statements", file, "--columns", application.columns];
    let (_, report, all) = assess(&server, &arguments);
    assert_eq!(report.policy, application.policy, "{all}");
    assert_eq!(report.shapes.len(), statements.len());
    assert_eq!(report.refused().count(), 0, "{all}");
    assert_eq!(report.wide().count(), application.wide, "{all}");
    let between: Vec<_> = report.between().map(|(shape, _)| &shape.shape).collect();
    assert_eq!(between, application.between, "{all}");
    let keys = report
        .commands
        .iter()
        .filter(|c| c.contains("onionskin_key"));
    assert_eq!(keys.count(), application.keys_added, "{all}");
    assert!(
        report.skipped.is_empty() && report.left_out.is_empty(),
        "{all}"
    );
    no_value_is_told(&all);

    let mut root = server.connect();
    root.must("USE app");
    for table in application.names().iter().rev() {
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
    for sql in &statements {
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
    for sql in SHOP.statements(kind) {
        client.must(&sql);
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
        for sql in application.statements(kind) {
            client.must(&sql);
        }
        let select = format!("SELECT * FROM {} WHERE 1 = ?", application.names()[0]);
        for _ in 0..3 {
            client.execute(&select, ("canary",)).expect("it runs");
        }
        client.must("SET @x = 'canary'");
        client.must("PREPARE by_name FROM 'SELECT 1, ? LIKE ''%canary%'''");
        client.must("EXECUTE by_name USING @x");
        client.must("DO 'canary'; /* canary */ SELECT 'canary' AS 'canary'");
        client.must("/*!50000 SELECT 'canary' */");
        client.must_fail("SELECT 'canary");
        // drivers do so
        client.execute("COMMIT", ()).expect("it runs");
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
        assert!(said.contains("\"COMMIT\""), "{said}");
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
    for table in SHOP.names() {
        root.must(&format!("ANALYZE TABLE {table}"));
    }
    let folder = folder();
    let file = statements_file(folder.path(), &SHOP.statements(kind));
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
    for sql in SHOP.statements(kind) {
        client.must(&sql);
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
