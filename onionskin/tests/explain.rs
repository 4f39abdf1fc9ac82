//! `onionskin explain`, as a user calls it.

use std::process::{Command, Stdio};

use onionskin_testkit::*;

on_both_servers!(
    what_becomes_of_a_statement_is_told,
    functions_that_the_proxy_computes_are_told,
    what_looks_harmless_is_told_apart,
    many_statements_get_a_line_each,
    a_definition_is_shown_and_cannot_be_used,
);

struct Place {
    server: Server,
    proxy: Proxy,
}

fn place(kind: Kind) -> Option<Place> {
    if direct_mode() {
        return None;
    }
    let server = Server::start(kind, ServerOptions::default())?;
    let proxy = Proxy::start(&server, "");
    let mut session = proxy.connect();
    session.must("CREATE DATABASE app");
    session.must(
        "CREATE TABLE app.users (id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (eq), \
         n INT ENCRYPTED FOR (range), p INT)",
    );
    Some(Place { server, proxy })
}

impl Place {
    /// Exit code, and what was printed.
    fn explain(&self, arguments: &[&str]) -> (i32, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_onionskin"))
            .current_dir(self.proxy.folder())
            .arg("explain")
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("onionskin runs");
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code().expect("an exit code"),
            String::from_utf8(text).expect("UTF-8"),
        )
    }

    fn in_app(&self, sql: &str) -> (i32, String) {
        self.explain(&["--database", "app", sql])
    }
}

fn what_becomes_of_a_statement_is_told(kind: Kind) {
    let Some(place) = place(kind) else {
        return;
    };
    let (code, text) = place.in_app("SELECT id FROM users WHERE name = 'secret'");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("tier    1"), "{text}");
    assert!(
        text.contains("<equality token of app.users.name>"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
    let (code, text) = place.in_app("SELECT UPPER(name) FROM users");
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("refused: OS1004 app.users.name"), "{text}");
    // words that the proxy puts into others
    for sql in [
        "TABLE users",
        "INSERT INTO users VALUES ROW(1, 'secret', 2, 3)",
    ] {
        let (code, text) = place.in_app(sql);
        assert_eq!(code == 0, kind == Kind::MySql, "{sql}: {text}");
        let is_told = text.contains("tier    1") && !text.contains("secret");
        assert!(is_told || kind == Kind::MariaDb, "{sql}: {text}");
    }
    // A private server has its engine in this folder, beside the configuration.
    std::fs::create_dir(place.proxy.folder().join("scratch")).expect("a folder");
    let (code, text) = place.in_app("SELECT UPPER(name) FROM users");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("tier    3"), "{text}");
    // The connection is made as the proxy makes it.
    let mut session = place.server.connect();
    session.must("SET GLOBAL require_secure_transport = ON");
    let (code, text) = place.in_app("SELECT id FROM users WHERE name = 'secret'");
    assert_eq!(code, 0, "{text}");
}

fn functions_that_the_proxy_computes_are_told(kind: Kind) {
    let Some(place) = place(kind) else {
        return;
    };
    let file = place.proxy.folder().join("onionskin.toml");
    let settings = std::fs::read_to_string(&file).expect("a configuration");
    std::fs::write(&file, settings + "[functions]\nevaluate = true\n").expect("written");
    let (code, text) = place.in_app("SELECT id FROM users WHERE name = SHA2('secret', 256)");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("a function computed by the proxy"), "{text}");
    assert!(
        text.contains("<equality token of app.users.name>"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
    let (code, text) = place.in_app("SELECT AES_ENCRYPT(p, 'secret') FROM users");
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("refused: OS1042"), "{text}");
}

/// All of it gave "relayed untouched" and nothing else.
fn what_looks_harmless_is_told_apart(kind: Kind) {
    let Some(place) = place(kind) else {
        return;
    };
    let (code, text) = place.explain(&["SELECT name FROM users"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("users stands there without a database"),
        "{text}"
    );
    let (code, text) = place.explain(&["--database", "nope", "SELECT name FROM users"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("there is no database nope"), "{text}");
    let (code, text) = place.in_app("SELECT name FROM user");
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("warning there is no table app.user,"),
        "{text}"
    );
    let (code, text) = place.in_app("SELEC name FROM users2");
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("warning no statement begins with \"selec\""),
        "{text}"
    );
    let (code, text) =
        place.in_app("WITH w AS (SELECT 1) SELECT * FROM w, information_schema.TABLES");
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains("warning"), "{text}");
    // By the address at which the configuration has its proxy listen.
    let toml = place.proxy.folder().join("onionskin.toml");
    let toml = std::fs::read_to_string(toml).expect("a configuration");
    let listen = toml.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "listen").then(|| value.trim().trim_matches('"').to_owned())
    });
    let listen = listen.expect("an address");
    let (code, text) = place.explain(&["--backend", &listen, "SELECT 1"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("proxy listens"), "{text}");
    let (code, text) = place.explain(&[
        "--user",
        "nobody",
        "--database",
        "app",
        "SELECT name FROM users",
    ]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("--user"), "{text}");
    let (code, text) = place.in_app(" ; ");
    assert_eq!(code, 2, "{text}");
}

fn many_statements_get_a_line_each(kind: Kind) {
    let Some(place) = place(kind) else {
        return;
    };
    let statements = "SELECT 1;\nUSE app;\nSELECT id FROM users\n  WHERE name = 'a;b';\n\
         SELECT UPPER(name) FROM users;\nSELECT n FROM users ORDER BY n LIMIT 3; SELECT p FROM other";
    let file = place.proxy.folder().join("application.sql");
    std::fs::write(&file, statements).expect("written");
    let (code, text) = place.explain(&["--file", "application.sql"]);
    assert_eq!(code, 1, "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "relayed   SELECT 1", "{text}");
    assert_eq!(
        lines[2], "tier 1    SELECT id FROM users WHERE name = 'a;b'",
        "{text}"
    );
    assert_eq!(
        lines[3], "refused OS1004 app.users.name SELECT UPPER(name) FROM users",
        "{text}"
    );
    assert_eq!(
        lines[6],
        "  warning there is no table app.other, or the account cannot see it"
    );
    assert!(
        lines[7].starts_with("6 statements: 3 relayed untouched, "),
        "{text}"
    );
    assert!(lines[7].ends_with(", 1 refused"), "{text}");
    let (code, text) = place
        .in_app("ALTER TABLE users MODIFY name VARCHAR(40) ENCRYPTED FOR (eq, range); SELECT 1");
    assert_eq!(code, 1, "{text}");
    let command = "refused OS1040 onionskin migrate app.users --add \"name: range\" ALTER TABLE";
    assert!(text.starts_with(command), "{text}");
    let (code, _) = place.explain(&["--file", "absent.sql"]);
    assert_eq!(code, 1);
    let input = std::fs::File::open(&file).expect("readable");
    let output = Command::new(env!("CARGO_BIN_EXE_onionskin"))
        .current_dir(place.proxy.folder())
        .args(["explain", "-"])
        .stdin(input)
        .output()
        .expect("onionskin runs");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text.lines().collect::<Vec<_>>(), lines[..8]);
}

/// Whoever has the physical text of a definition must not be able to send it to the server.
fn a_definition_is_shown_and_cannot_be_used(kind: Kind) {
    let Some(place) = place(kind) else {
        return;
    };
    let sql = "CREATE TABLE other (id INT PRIMARY KEY, c VARCHAR(20) ENCRYPTED FOR (eq, like), d INT ENCRYPTED FOR ())";
    let (code, text) = place.in_app(sql);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains(
            "learns  d: its name, type and default; of values to come, nothing but lengths"
        ),
        "{text}"
    );
    let shown = text
        .lines()
        .find_map(|line| line.strip_prefix("server  "))
        .expect("a text");
    assert!(
        shown.contains("`c$enc`") && shown.contains("|<tag>|"),
        "{text}"
    );
    let mut session = place.server.connect();
    session.must("USE app");
    session.must(shown);
    let failure = place.proxy.connect_to("app").run("SELECT * FROM other");
    let failure = failure.expect_err("no tag, no table");
    assert!(failure.message.starts_with("OS1101"), "{failure}");
    let (code, text) = place.in_app("ALTER TABLE users ADD COLUMN z INT ENCRYPTED FOR (range)");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("`z$ord_"), "{text}");
    assert_eq!(session.must_fail("SELECT z FROM users"), 1054);
}
