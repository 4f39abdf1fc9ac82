//! `onionskin migrate` as a user calls it.

use crate::{Binlog, Kind, Proxy, Server, ServerOptions, Session, onionskin_program};
use onionskin_keys::KeySet;
use onionskin_rowstream::checkpoint::Checkpoint;
use std::process::{Child, Command, Stdio};

/// A server that logs rows; `None` where it could not be installed.
pub fn logging_server(kind: Kind, extra: &[&str]) -> Option<Server> {
    let options = ServerOptions {
        binlog: Some(Binlog::Row),
        extra: extra.iter().copied().map(str::to_owned).collect(),
        ..ServerOptions::default()
    };
    Server::start(kind, options)
}

/// `onionskin migrate` for a server; with a proxy, under its configuration.
pub fn migrate(server: &Server, proxy: Option<&Proxy>, arguments: &[&str]) -> Command {
    migrate_at(&server.address(), proxy, arguments)
}

/// The same for the server behind an address.
pub fn migrate_at(address: &str, proxy: Option<&Proxy>, arguments: &[&str]) -> Command {
    let mut command = Command::new(onionskin_program());
    command.args(["migrate", "--backend", address]);
    if let Some(proxy) = proxy {
        command.arg("-c").arg(proxy.folder().join("onionskin.toml"));
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs it; returns whether it succeeded, and all that it printed.
pub fn run_migration(mut command: Command) -> (bool, String) {
    let output = command.output().expect("onionskin runs");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// Runs a migration that must succeed; returns what it printed.
pub fn must_migrate(server: &Server, proxy: Option<&Proxy>, arguments: &[&str]) -> String {
    let (succeeded, text) = run_migration(migrate(server, proxy, arguments));
    assert!(succeeded, "{arguments:?}: {text}");
    text
}

/// Runs a migration that must fail; returns what it printed.
pub fn must_not_migrate(server: &Server, proxy: Option<&Proxy>, arguments: &[&str]) -> String {
    let (succeeded, text) = run_migration(migrate(server, proxy, arguments));
    assert!(!succeeded, "{arguments:?}: {text}");
    text
}

/// Starts a migration whose output is kept for [`end_of_migration`].
pub fn start_migration(mut command: Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("onionskin runs")
}

/// Waits for its end; returns whether it succeeded, and all that it printed.
pub fn end_of_migration(child: Child) -> (bool, String) {
    let output = child.wait_with_output().expect("onionskin ends");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// Sets the state of the migration of `app.t` to an SQL expression over `state`, as a process with
/// the proxy's keys that was killed in another moment would have left it.
pub fn set_state(session: &mut Session, proxy: &Proxy, expression: &str) {
    session.must(&format!(
        "UPDATE app.t_onionskin SET state = {expression} WHERE id = 1"
    ));
    let state = session
        .text("SELECT state FROM app.t_onionskin WHERE id = 1")
        .unwrap();
    let keys = KeySet::load("file:keys.json", proxy.folder(), None).expect("the proxy's keys");
    let tagged = Checkpoint::new("app", "t_onionskin", None).tagged(state.as_bytes());
    let tag = keys.metadata_key().tag(&tagged);
    let tag: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
    session.must(&format!(
        "UPDATE app.t_onionskin SET tag = X'{tag}' WHERE id = 1"
    ));
}

/// `app.t` with rows, and a session in the database.
pub fn table_with_rows(server: &Server, rows: u32) -> Session {
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("USE app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100), n INT)");
    let rows: Vec<String> = (0..rows)
        .map(|id| format!("({id}, 'value {id}', {id})"))
        .collect();
    for rows in rows.chunks(2000) {
        session.must(&format!("INSERT INTO t VALUES {}", rows.join(",")));
    }
    session
}

/// Triggers of `app.t` and `app.twin` that write down what happens to them.
pub fn audit(session: &mut Session) {
    session.must("CREATE DATABASE audits");
    for table in ["t", "twin"] {
        session.must(&format!(
            "CREATE TABLE audits.{table} (event VARCHAR(20), id INT)"
        ));
        for (event, row) in [("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")] {
            session.must(&format!(
                "CREATE TRIGGER app.{table}_{event} AFTER {event} ON app.{table} FOR EACH ROW \
                 INSERT INTO audits.{table} VALUES ('{event}', {row}.id)"
            ));
        }
    }
}

/// Panics unless as much has happened to both, by what their triggers wrote down.
pub fn assert_equal_audits(session: &mut Session) {
    let [is, should] = ["t", "twin"].map(|table| {
        session
            .text(&format!("SELECT * FROM audits.{table} ORDER BY id, event"))
            .unwrap()
    });
    assert!(!should.is_empty());
    assert_same_rows(&is, &should, "audits");
    let triggers = session
        .text("SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'app' ORDER BY CAST(TRIGGER_NAME AS BINARY)")
        .unwrap();
    assert_eq!(
        triggers,
        "t_DELETE\nt_INSERT\nt_UPDATE\ntwin_DELETE\ntwin_INSERT\ntwin_UPDATE"
    );
}

/// A server that is known as another one than those made before it: they are copies of one data
/// directory, its UUID included.
pub fn server_of_its_own(kind: Kind, extra: &[&str]) -> Option<Server> {
    let mut server = logging_server(kind, extra)?;
    if kind == Kind::MySql {
        server.shutdown();
        std::fs::remove_file(server.data_dir().join("auto.cnf")).expect("auto.cnf");
        server.restart();
    }
    Some(server)
}

/// Two results as text, the same to the last line.
pub fn assert_same_rows(is: &str, should: &str, context: &str) {
    let differing: Vec<_> = is
        .lines()
        .zip(should.lines())
        .filter(|(a, b)| a != b)
        .take(3)
        .collect();
    assert!(
        is == should,
        "{context}: {} and {} rows, {differing:?}",
        is.lines().count(),
        should.lines().count()
    );
}
