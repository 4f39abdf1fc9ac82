//! The status: what was refused, by shape and without a value; what is protected; and who may ask.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ::mysql::prelude::Queryable;
use serde_json::Value;

use super::{TOKEN, administered, ask, bearer};
use crate::on_both_servers;
use onionskin_testkit::*;

on_both_servers!(
    refused_statements_are_listed_by_shape,
    an_engine_or_a_capability_is_named_where_it_helps,
    what_is_protected_is_listed,
    a_status_is_for_those_who_may_ask,
    a_terminal_shows_the_same,
);

const TABLE: &str = "CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (eq), \
                     born DATE ENCRYPTED FOR (), note TEXT ENCRYPTED FOR ())";
/// Stands in statements, and in nothing that is told.
const SECRET: &str = "Rumpelstilzchen";

fn status(port: u16) -> Value {
    let answer = ask(port, "GET", "/status.json", "");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(
        answer.head.contains("content-type: application/json"),
        "{answer:?}"
    );
    assert!(!answer.body.contains(SECRET), "{}", answer.body);
    serde_json::from_str(&answer.body).expect("JSON")
}

/// Shapes with their codes and counts.
fn refused(status: &Value) -> Vec<(String, String, u64)> {
    let text = |refused: &Value, name: &str| refused[name].as_str().expect("text").to_owned();
    let list = status["refused"].as_array().expect("a list").iter();
    let list = list.map(|one| {
        let count = one["count"].as_u64().expect("a count");
        (text(one, "code"), text(one, "shape"), count)
    });
    list.collect()
}

/// A proxy whose database has the table.
fn with_people(kind: Kind) -> Option<(Server, Proxy, u16, Session)> {
    if direct_mode() {
        return None;
    }
    let server = Server::start(kind, ServerOptions::default())?;
    let (proxy, port) = administered(&server, "control = \"control.sock\"");
    let mut session = proxy.connect();
    session.must("CREATE DATABASE app");
    session.must("USE app");
    session.must(TABLE);
    Some((server, proxy, port, session))
}

fn refused_statements_are_listed_by_shape(kind: Kind) {
    let Some((_server, proxy, port, mut session)) = with_people(kind) else {
        return;
    };
    for n in 0..3 {
        let sql = format!("SELECT id /* {SECRET} */ FROM people WHERE UPPER(name) = '{SECRET}{n}'");
        session.must_fail(&sql);
    }
    // as one of several, and prepared
    let sql = format!(
        "SELECT 1; SELECT id FROM people WHERE UPPER(name) = '{SECRET}'; SELECT '{SECRET}'"
    );
    session.must_fail(&sql);
    let prepared = "SELECT id FROM people WHERE UPPER(name) = ?";
    session.execute(prepared, (SECRET,)).expect_err("refused");
    let list = format!("SELECT id FROM people WHERE LEFT(name, 2) IN ('{SECRET}', 'b','c')");
    session.must_fail(&list);
    // double quotes hold a text, or a name where the session says so
    session.must_fail(&format!(
        "SELECT id FROM people WHERE UPPER(name) = \"{SECRET}\""
    ));
    // the server's own errors are none of these
    session.must_fail("SELECT nothing FROM people");
    session.must_fail("SELEC 1");
    session.must_fail(&format!(
        "INSERT INTO people VALUES (1, '{SECRET}', '{SECRET}', NULL)"
    ));
    // a text that is prepared stays a text, whatever the session takes it for by now
    let mut prepared = proxy.connect_to("app");
    let sql = format!("INSERT INTO people VALUES (?, \"{SECRET}\", ?, NULL)");
    let statement = prepared.conn().prep(&sql).expect("prepared");
    prepared.must("SET sql_mode = 'ANSI_QUOTES'");
    let done = prepared.conn().exec_drop(&statement, (1, "2000-01-01"));
    done.expect_err("it would be another text now");
    // what cannot be read has no shape
    session.must("SET NAMES gbk");
    session.must_fail(&format!("SELECT name FROM people WHERE note = '{SECRET}"));
    session.must("SET NAMES utf8mb4");

    let found = refused(&status(port));
    let shape = "SELECT id FROM people WHERE UPPER(name) = ?";
    let first = ("OS1004".to_owned(), shape.to_owned(), 6);
    assert_eq!(found.first(), Some(&first), "{found:?}");
    let list = "SELECT id FROM people WHERE LEFT(name, ?) IN (?, …)";
    assert!(
        found
            .iter()
            .any(|(_, shape, count)| shape == list && *count == 1),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|(_, shape, _)| shape == "(a text that cannot be read)"),
        "{found:?}"
    );
    let insert = "INSERT INTO people VALUES (?, …, NULL)";
    assert!(
        found.iter().any(|(_, shape, _)| shape == insert),
        "{found:?}"
    );
    assert_eq!(found.len(), 4, "{found:?}");
    let log = proxy.log();
    assert!(!log.contains(SECRET));
}

fn an_engine_or_a_capability_is_named_where_it_helps(kind: Kind) {
    let Some((_server, _proxy, port, mut session)) = with_people(kind) else {
        return;
    };
    for sql in [
        "SELECT id FROM people WHERE UPPER(name) = 'A'",
        "SELECT id FROM people WHERE name > 'A'",
        "SELECT id FROM people WHERE born = '2000-01-01'",
        "CHECKSUM TABLE people",
    ] {
        session.must_fail(sql);
    }
    let status = status(port);
    let help = |shape: &str| {
        let mut list = status["refused"].as_array().expect("a list").iter();
        let found = list.find(|one| one["shape"] == shape);
        let found = found.unwrap_or_else(|| panic!("{shape}: {status}"));
        assert!(!found["way_out"].as_str().expect("text").is_empty());
        assert_eq!(found["database"], "app");
        found["help"].as_str().map(str::to_owned)
    };
    let of = |help: &str| Some(help.to_owned());
    assert_eq!(
        help("SELECT id FROM people WHERE UPPER(name) = ?"),
        of("engine")
    );
    assert_eq!(help("SELECT id FROM people WHERE name > ?"), of("range"));
    assert_eq!(help("SELECT id FROM people WHERE born = ?"), of("eq"));
    assert_eq!(help("CHECKSUM TABLE people"), None);
}

fn what_is_protected_is_listed(kind: Kind) {
    let Some((_server, _proxy, port, mut session)) = with_people(kind) else {
        return;
    };
    session.must("CREATE TABLE plain (id INT)");
    session.must("SELECT * FROM people");
    session.must("SELECT * FROM plain");
    let status = status(port);
    let tables = status["protected"].as_array().expect("a list");
    assert_eq!(tables.len(), 1, "{status}");
    assert_eq!(
        (&tables[0]["database"], &tables[0]["name"]),
        (&"app".into(), &"people".into())
    );
    let columns = tables[0]["columns"].as_array().expect("a list");
    let columns: Vec<_> = columns
        .iter()
        .map(|c| (c["name"].as_str(), c["type"].as_str(), c["shows"].as_str()))
        .collect();
    assert_eq!(
        columns,
        [
            (Some("name"), Some("varchar(40)"), Some("which are equal")),
            (Some("born"), Some("date"), Some("nothing but lengths")),
            (Some("note"), Some("text"), Some("nothing but lengths")),
        ]
    );
    assert!(
        status["counted"]["statements"]
            .as_array()
            .is_some_and(|s| !s.is_empty())
    );
    let parts = status["parts"].as_array().expect("a list");
    assert!(parts.iter().all(|part| part["fault"].is_null()), "{status}");
}

fn a_status_is_for_those_who_may_ask(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let host = |name: &str| format!("GET /status.json HTTP/1.1\r\nHost: {name}\r\n\r\n");
    let (_proxy, port) = administered(&server, "");
    for (name, code) in [
        ("127.0.0.1", 200),
        ("localhost:3380", 200),
        ("[::1]:3380", 200),
        ("evil.example", 403),
        ("a\r\nHost: localhost", 403),
    ] {
        let answer = super::send(port, host(name).as_bytes()).expect("an answer");
        assert_eq!(answer.status, code, "{name}: {answer:?}");
    }
    let page = ask(port, "GET", "/status", "");
    assert_eq!(page.status, 200);
    assert!(
        page.head
            .contains("content-security-policy: default-src 'none'"),
        "{}",
        page.head
    );
    assert!(page.body.contains("<title>Onionskin</title>"));
    assert_eq!(ask(port, "POST", "/status", "").status, 405);

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    fs::write(&file, TOKEN).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    let settings = format!("admin_token_file = {:?}", file.display().to_string());
    let (_proxy, port) = administered(&server, &settings);
    assert_eq!(ask(port, "GET", "/status.json", "").status, 401);
    assert_eq!(
        ask(port, "GET", "/status.json", &bearer("wrong")).status,
        401
    );
    // a token is shown by whoever knows it, under whatever name
    assert_eq!(ask(port, "GET", "/status.json", &bearer(TOKEN)).status, 200);
    assert_eq!(
        ask(port, "GET", "/status", "").status,
        200,
        "it holds nothing by itself"
    );
}

fn a_terminal_shows_the_same(kind: Kind) {
    let Some((_server, proxy, _, mut session)) = with_people(kind) else {
        return;
    };
    session.must_fail("SELECT id FROM people WHERE UPPER(name) = 'A'");
    session.must_fail("SELECT `a\u{1b}[2J` FROM people WHERE UPPER(name) = 'A'");
    let run = |arguments: &[&str]| {
        let output = proxy.output(&[&["status"], arguments].concat());
        let text = String::from_utf8(output.stdout).expect("text");
        (output.status.success(), text)
    };
    let (done, text) = run(&[]);
    assert!(done);
    for part in [
        "server: ok",
        "a scratch engine gives tier 3",
        "SELECT id FROM people WHERE UPPER(name) = ?",
        "app.people",
        "name varchar(40) (eq): shows which are equal",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let (done, text) = run(&["--json"]);
    assert!(done);
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["refused"].as_array().map(Vec::len), Some(2), "{text}");
}
