//! Tables change while they are written, and afterwards hold exactly what was written.

mod support;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::*;

on_both_servers!(an_idle_table_is_rebuilt_altered_and_encrypted);

fn start(kind: Kind) -> Option<Server> {
    let options = ServerOptions {
        binlog: Some(Binlog::Row),
        ..ServerOptions::default()
    };
    Server::start(kind, options)
}

/// `onionskin migrate` for a server; with a folder, under its configuration.
fn migrate(server: &Server, proxy: Option<&Proxy>, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onionskin"));
    command.args(["migrate", "--backend", &server.address()]);
    if let Some(proxy) = proxy {
        command.arg("-c").arg(proxy.folder().join("onionskin.toml"));
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs it; returns whether it succeeded, and all that it printed.
fn run(mut command: Command) -> (bool, String) {
    let output = command.output().expect("onionskin runs");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn must(server: &Server, proxy: Option<&Proxy>, arguments: &[&str]) -> String {
    let (succeeded, text) = run(migrate(server, proxy, arguments));
    assert!(succeeded, "{arguments:?}: {text}");
    text
}

fn must_fail(server: &Server, proxy: Option<&Proxy>, arguments: &[&str]) -> String {
    let (succeeded, text) = run(migrate(server, proxy, arguments));
    assert!(!succeeded, "{arguments:?}: {text}");
    text
}

/// Every type that has something special about it.
const WIDE: &str = "CREATE TABLE app.t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, \
    i BIGINT UNSIGNED, dc DECIMAL(20,5), f FLOAT, d DOUBLE, dt DATETIME(6), ts TIMESTAMP(3) NULL, da DATE, ti TIME(2), y YEAR, \
    c CHAR(10), v VARCHAR(50) CHARACTER SET latin1, tx TEXT, b BINARY(6), vb VARBINARY(20), bl BLOB, j JSON, \
    e ENUM('a','b'), s SET('x','y','z'), bt BIT(10), g INT AS (id + 1) STORED, u INT NOT NULL, UNIQUE KEY (u), KEY (v)) \
    DEFAULT CHARSET=utf8mb4";

fn fill(session: &mut Session, rows: u32) {
    session.must("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'");
    session.must("SET SESSION time_zone = '+02:00'");
    for id in 0..rows {
        let values = match id % 4 {
            0 => "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL".to_owned(),
            1 => format!("18446744073709551615, -12345.67890, 1.1, 0.1, '0000-00-00 00:00:00', '2038-01-19 03:14:07.123', '0000-00-00', '-838:59:59.00', 1901, 'abc  ', x'e4f6', 'Grüße 🎉 {id}', x'0102', x'00ff', x'270a5c00', '{{\"a\": [1, 2.5, null, \"x\"]}}', 'a', 'x,z', b'1000000001'"),
            2 => format!("{id}, 0.00001, 16777217, -0.0, '2024-02-29 23:59:59.999999', '1971-01-01 00:00:01', '9999-12-31', '12:34:56.78', 2155, '', '', '', x'', x'', x'', '[]', 'b', '', b'0'"),
            _ => format!("{id}, 99999999999999.99999, 3.4e38, 1.7976931348623157e308, '2020-02-31 10:00:00', NOW(3), '2020-02-00', '00:00:00', 0, 'ẞ', 'it''s', REPEAT('long ', 500), x'ffffffffffff', x'00', REPEAT('b', 3000), '\"text\"', 'b', 'y', b'11'"),
        };
        let sql = format!(
            "INSERT INTO app.t (id, u, i, dc, f, d, dt, ts, da, ti, y, c, v, tx, b, vb, bl, j, e, s, bt) VALUES ({id}, {}, {values})",
            id + 1_000_000
        );
        session.must(&sql);
    }
}

/// All rows as exact bytes.
fn dump(session: &mut Session, table: &str) -> Vec<String> {
    session.must("SET SESSION time_zone = '+00:00'");
    let sql = format!(
        "SELECT CONCAT_WS('|', id, IFNULL(i,'N'), IFNULL(dc,'N'), IFNULL(f*1e0,'N'), IFNULL(d,'N'), IFNULL(dt,'N'), IFNULL(ts,'N'), IFNULL(da,'N'), \
         IFNULL(ti,'N'), IFNULL(y,'N'), IFNULL(HEX(c),'N'), IFNULL(HEX(v),'N'), IFNULL(MD5(tx),'N'), IFNULL(HEX(b),'N'), IFNULL(HEX(vb),'N'), \
         IFNULL(MD5(bl),'N'), IFNULL(j,'N'), IFNULL(e+0,'N'), IFNULL(s+0,'N'), IFNULL(bt+0,'N'), g, u) FROM {table} ORDER BY id"
    );
    session
        .text(&sql)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn an_idle_table_is_rebuilt_altered_and_encrypted(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let proxy = Proxy::start(&server, "");
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must(WIDE);
    fill(&mut session, 60);
    let before = dump(&mut session, "app.t");
    let definition = session.text("SHOW CREATE TABLE app.t").unwrap();

    let text = must(&server, None, &["app.t", "--rebuild"]);
    assert!(
        text.contains("60 rows copied") && text.contains(" 0 repaired"),
        "{text}"
    );
    assert_eq!(dump(&mut session, "app.t"), before);
    assert_eq!(session.text("SHOW CREATE TABLE app.t").unwrap(), definition);
    assert_eq!(dump(&mut session, "app.t_onionskin_old"), before);
    // The old table is the user's to drop.
    let text = must_fail(&server, None, &["app.t", "--rebuild"]);
    assert!(text.contains("t_onionskin_old"), "{text}");
    session.must("DROP TABLE app.t_onionskin_old");

    must(
        &server,
        None,
        &[
            "app.t",
            "--drop-old",
            "--alter",
            "ADD COLUMN n VARCHAR(100) NOT NULL, ADD COLUMN k INT DEFAULT 7, MODIFY i DECIMAL(30,0)",
        ],
    );
    assert_eq!(dump(&mut session, "app.t"), before);
    assert_eq!(
        session.text("SELECT DISTINCT n, k FROM app.t").unwrap(),
        "\t7"
    );
    must(
        &server,
        None,
        &[
            "app.t",
            "--drop-old",
            "--alter",
            "DROP COLUMN n, DROP COLUMN k, MODIFY i BIGINT UNSIGNED",
        ],
    );

    // Through the same engine, with sealed cells.
    let columns = "i: eq range; dc: range; f:; d: eq; dt: range; ts: eq; da: eq; ti: range; y: eq; c: eq; v: eq range; tx:; b: eq; vb: eq; bl:";
    must(
        &server,
        Some(&proxy),
        &["app.t", "--drop-old", "--encrypt", columns],
    );
    let mut through = proxy.connect();
    assert!(session.must_fail("SELECT v FROM app.t") == 1054);
    let shown = |session: &mut Session, columns: &str| {
        session.must("SET SESSION time_zone = '+00:00'");
        session
            .text(&format!("SELECT {columns} FROM app.t ORDER BY id"))
            .unwrap()
    };
    let all = "id, i, dc, f, d, dt, ts, da, ti, y, c, v, tx, b, vb, bl, j, e, s, bt, g, u";
    let sealed = shown(&mut through, all);
    must(
        &server,
        Some(&proxy),
        &["app.t", "--drop-old", "--add", "d: range; c: range"],
    );
    assert_eq!(shown(&mut through, all), sealed);
    must(
        &server,
        Some(&proxy),
        &["app.t", "--drop-old", "--drop", "i: eq; v: range"],
    );
    must(&server, Some(&proxy), &["app.t", "--drop-old", "--rotate"]);
    must(&server, Some(&proxy), &["app.t", "--drop-old", "--rebuild"]);
    assert_eq!(shown(&mut through, all), sealed);
    must(
        &server,
        Some(&proxy),
        &[
            "app.t",
            "--drop-old",
            "--decrypt",
            "i, dc, f, d, dt, ts, da, ti, y, c, v, tx, b, vb, bl",
        ],
    );
    assert_eq!(dump(&mut session, "app.t"), before);
    assert_eq!(
        shown(&mut session, all),
        sealed,
        "the proxy showed what the server shows"
    );
    assert!(
        !session
            .text("SHOW TABLES FROM app")
            .unwrap()
            .contains("onionskin")
    );
}
