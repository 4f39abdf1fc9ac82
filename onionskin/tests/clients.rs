//! The command-line clients that people have, `mariadb` of Debian and `mysql` of MySQL 9.7, log in
//! with a password and behave: every authentication plugin, with and without TLS, over either kind
//! of back-end connection.

use ::mysql::prelude::Queryable;
use ::mysql::{ChangeUserOpts, OptsBuilder};
use onionskin_testkit::*;

on_both_servers!(
    every_login_over_tcp,
    every_login_over_a_unix_socket,
    every_login_over_tls_to_the_server,
    every_login_without_tls_on_the_server,
    the_client_of_the_other_family_works,
    statements_of_a_terminal_session,
    an_application_changes_user_and_resets,
    a_change_of_user_may_fail,
);

const PROTECT: &str = r#"
[protect."app.*"]
k = ["eq", "range"]
c = []
"#;

fn every_login_over_tcp(kind: Kind) {
    logins(kind, true, |_| String::new(), |server| server.address());
}

fn every_login_over_a_unix_socket(kind: Kind) {
    if !direct_mode() {
        logins(
            kind,
            true,
            |_| String::new(),
            |server| format!("unix:{}", server.socket().display()),
        );
    }
}

fn every_login_over_tls_to_the_server(kind: Kind) {
    // A password goes in clear inside of TLS, in answer to a client that may have no TLS itself.
    if !direct_mode() {
        let settings = |server: &Server| match server.authority() {
            Some(path) => format!(
                "backend_tls = \"required\"\nbackend_ca = \"{}\"",
                path.display()
            ),
            None => "backend_tls = \"required\"".into(),
        };
        logins(kind, true, settings, |server| server.address());
    }
}

fn every_login_without_tls_on_the_server(kind: Kind) {
    // The proxy offers TLS to clients whatever the server does.
    if !direct_mode() {
        let settings = |server: &Server| match kind {
            Kind::MariaDb => String::new(),
            Kind::MySql => {
                let key = server.data_dir().join("public_key.pem");
                format!("backend_rsa_key = \"{}\"", key.display())
            }
        };
        logins(kind, false, settings, |server| server.address());
    }
}

fn logins(
    kind: Kind,
    tls: bool,
    settings: impl Fn(&Server) -> String,
    backend: impl Fn(&Server) -> String,
) {
    let Some(server) = Server::start(
        kind,
        ServerOptions {
            tls,
            ..ServerOptions::default()
        },
    ) else {
        return;
    };
    let options = ProxyOptions {
        backend: Some(backend(&server)),
        settings: settings(&server),
        tables: PROTECT.into(),
        ..ProxyOptions::default()
    };
    let mut proxy = Proxy::start_with(&server, options);
    server.connect().must("CREATE DATABASE app");
    for user in kind.users() {
        for with_tls in [true, false] {
            let client = Cli::tcp(kind, proxy.port(), user.name, user.password);
            let client = if with_tls {
                client.with_tls()
            } else {
                client.without_tls()
            };
            // Forget cached passwords: the next login of caching_sha2_password takes the full path,
            // the one after it the fast path.
            server.connect().must("FLUSH PRIVILEGES");
            for path in ["full", "fast", "fast"] {
                let who = client.must("SELECT CURRENT_USER();");
                assert!(
                    who.contains(&format!("{}@%", user.name)),
                    "{user:?} TLS {with_tls} {path}: {who}"
                );
            }
            let status = client.must("status");
            let line = status
                .lines()
                .find(|line| line.starts_with("SSL:"))
                .unwrap_or("no line SSL:");
            let encrypted = line.contains("Cipher in use");
            assert_eq!(encrypted, with_tls, "{user:?}: {line}");

            let client = Cli::tcp(kind, proxy.port(), user.name, "not the password");
            let client = if with_tls {
                client.with_tls()
            } else {
                client.without_tls()
            };
            let refused = client.run("SELECT 1;");
            assert!(
                !refused.success && refused.err.contains("ERROR 1045 (28000)"),
                "{user:?}: {refused:?}"
            );
        }
        // Whatever the client prefers by itself.
        let client = Cli::tcp(kind, proxy.port(), user.name, user.password);
        let client = if kind == Kind::MySql {
            client.option("--ssl-mode=PREFERRED")
        } else {
            client
        };
        client.must("SELECT 1;");
        // In the handshake, not by a statement.
        let client = client.option("--database=app");
        assert!(client.must("SELECT DATABASE();").contains("app"));
        let client = client.option("--database=nothing");
        let refused = client.run("SELECT 1;");
        assert!(
            !refused.success && refused.err.contains("ERROR 1049"),
            "{refused:?}"
        );
        // A client that asks for compression and does not get it.
        Cli::tcp(kind, proxy.port(), user.name, user.password)
            .option("--compress")
            .must("SELECT 1;");
    }
    let refused = Cli::tcp(kind, proxy.port(), "nobody", "x").run("SELECT 1;");
    assert!(
        !refused.success && refused.err.contains("ERROR 1045 (28000)"),
        "{refused:?}"
    );
    // The crate's own implementation of the protocol.
    for user in kind.users().iter().filter(|user| user.plugin != "ed25519") {
        server.connect().must("FLUSH PRIVILEGES");
        for _ in 0..2 {
            let mut session = Session::open(proxy.port(), user.name, user.password, Some("app"));
            assert_eq!(
                session.text("SELECT CURRENT_USER()").unwrap(),
                format!("{}@%", user.name)
            );
        }
        let refused = Session::try_open(proxy.port(), user.name, "not the password", None);
        assert_eq!(refused.err().map(|failure| failure.code), Some(1045));
    }
    proxy.assert_healthy();
}

fn the_client_of_the_other_family_works(kind: Kind) {
    let (client_kind, login) = match kind {
        // It has the plugin for mysql_native_password still, but none for ed25519.
        Kind::MariaDb => (Kind::MySql, "native"),
        Kind::MySql => (Kind::MariaDb, "sha"),
    };
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    if client_kind == Kind::MySql && Server::start(client_kind, ServerOptions::default()).is_none()
    {
        return;
    }
    let mut proxy = Proxy::start(&server, PROTECT);
    let user = kind
        .users()
        .iter()
        .find(|user| user.name == login)
        .expect("the account");
    for with_tls in [true, false] {
        let client = Cli::tcp(client_kind, proxy.port(), user.name, user.password);
        let client = if with_tls {
            client.with_tls()
        } else {
            client.without_tls()
        };
        for _ in 0..2 {
            let who = client.must("SELECT CURRENT_USER();");
            assert!(who.contains(login), "{who}");
        }
    }
    proxy.assert_healthy();
}

fn statements_of_a_terminal_session(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut proxy = Proxy::start(&server, PROTECT);
    server.connect().must("CREATE DATABASE app");
    let user = kind.users()[0];
    let client = Cli::tcp(kind, proxy.port(), user.name, user.password).option("--database=app");

    let created = client.must(
        "CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 7, c VARCHAR(40), KEY by_k (k));
         INSERT INTO t (k, c) VALUES (1, 'one'), (2, 'two'), (DEFAULT, NULL);
         SELECT * FROM t ORDER BY id;",
    );
    assert_eq!(created, "id\tk\tc\n1\t1\tone\n2\t2\ttwo\n3\t7\tNULL\n");

    // Several statements in one packet, with one result each.
    let several = client.must("delimiter //\nSELECT 1 AS a; INSERT INTO t (k, c) VALUES (4, 'four'); SELECT c FROM t WHERE k = 4//");
    assert_eq!(several, "a\n1\nc\nfour\n");

    let shown = client.clone().option("--raw").must("SHOW CREATE TABLE t;");
    let expected = [
        "`k` int",
        "NOT NULL DEFAULT",
        "`c` varchar(40)",
        "KEY `by_k` (`k`)",
        "AUTO_INCREMENT",
    ];
    for part in expected {
        assert!(
            shown.contains(part),
            "SHOW CREATE TABLE has no {part}:\n{shown}"
        );
    }
    let described = client.must("DESCRIBE t; SHOW COLUMNS FROM t; SHOW INDEX FROM t;");
    assert!(described.contains("c\tvarchar(40)\tYES"), "{described}");
    let listed = client.must(
        "SELECT column_name, column_type, column_comment FROM information_schema.columns
         WHERE table_schema = 'app' AND table_name = 't' ORDER BY ordinal_position;",
    );
    assert_eq!(listed.lines().count(), 4, "{listed}");
    for text in [&shown, &described, &listed] {
        for inner in ["$enc", "$eq", "$ord", "onionskin"] {
            assert!(
                direct_mode() || !text.contains(inner),
                "the client sees {inner}:\n{text}"
            );
        }
    }
    let tables = client.must("SHOW TABLES; SHOW FULL TABLES; SHOW TABLE STATUS LIKE 't';");
    assert!(tables.contains("BASE TABLE"), "{tables}");

    let status = client.must("\\s");
    for part in [
        "Server version:",
        "Connection id:",
        "Current database:\tapp",
        "Uptime:",
    ] {
        assert!(status.contains(part), "status has no {part}:\n{status}");
    }
    // An error ends a batch, and --force goes on after it.
    let failed = client.run("SELECT nothing FROM t; SELECT 'after';");
    assert!(
        !failed.success && failed.err.contains("ERROR 1054 (42S22)"),
        "{failed:?}"
    );
    let forced = client
        .clone()
        .option("--force")
        .run("SELECT nothing FROM t; SELECT 'after';");
    assert!(forced.out.contains("after"), "{forced:?}");
    let failed = client.run("SELECT * FROM missing;");
    assert!(failed.err.contains("ERROR 1146 (42S02)"), "{failed:?}");
    let failed = client.run("SELEC 1;");
    assert!(failed.err.contains("ERROR 1064 (42000)"), "{failed:?}");

    let warned = client
        .clone()
        .option("--show-warnings")
        .must("SET sql_mode=''; SELECT CAST('1x' AS SIGNED);");
    assert!(
        warned.contains("Warning") && warned.contains("1292"),
        "{warned}"
    );
    let vertical = client.must("SELECT k, c FROM t WHERE id = 1\\G");
    assert!(vertical.contains("k: 1\nc: one"), "{vertical}");
    let used = client.must("USE mysql; SELECT DATABASE(); USE app; SELECT DATABASE();");
    assert!(used.contains("mysql\n") && used.contains("app\n"), "{used}");
    // The names of columns for completion: COM_FIELD_LIST.
    client.clone().option("--auto-rehash").must("SELECT 1;");
    // Quick mode reads a result row by row.
    let quick = client
        .clone()
        .option("--quick")
        .must("SELECT a.c FROM t a, t b, t c ORDER BY a.k;");
    assert_eq!(quick.lines().count(), 1 + 4 * 4 * 4);
    // Unicode survives in both directions.
    let text = client.clone().option("--default-character-set=utf8mb4");
    let text = text.must("CREATE TABLE u (id INT, c VARCHAR(40)) CHARSET utf8mb4; INSERT INTO u VALUES (1, 'żółw 🐢'); SELECT c FROM u;");
    assert_eq!(text, "c\nżółw 🐢\n");
    proxy.assert_healthy();
}

fn an_application_changes_user_and_resets(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut proxy = Proxy::start(&server, PROTECT);
    server.connect().must("CREATE DATABASE app");
    let mut session = proxy.connect_to("app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, k INT, c VARCHAR(40))");
    session.must("INSERT INTO t VALUES (1, 10, 'ten')");

    for user in kind.users().iter().filter(|user| user.plugin != "ed25519") {
        let options = ChangeUserOpts::new()
            .with_user(Some(user.name.into()))
            .with_pass(Some(user.password.into()))
            .with_db_name(Some("app".into()));
        session.must("SET @mine = 1");
        assert_eq!(
            session.must_fail("UPDATE t SET k = 'secret' WHERE id = 1"),
            1366
        );
        session
            .conn()
            .change_user(options)
            .expect("COM_CHANGE_USER");
        assert_eq!(
            session.text("SHOW WARNINGS").unwrap(),
            "",
            "of another user"
        );
        assert_eq!(
            session.text("SELECT CURRENT_USER(), @mine").unwrap(),
            format!("{}@%\tNULL", user.name)
        );
        assert_eq!(session.text("SELECT c FROM t WHERE k = 10").unwrap(), "ten");
        assert_eq!(
            session
                .execute_text("SELECT c FROM t WHERE k = ?", (10,))
                .unwrap(),
            "ten"
        );
    }

    session.must("SET SESSION sql_mode = 'ANSI_QUOTES'");
    session.must("BEGIN");
    session.must("INSERT INTO t VALUES (2, 20, 'not committed')");
    session.conn().reset().expect("COM_RESET_CONNECTION");
    assert_eq!(session.text("SELECT COUNT(*) FROM t").unwrap(), "1");
    // The session's settings are the defaults again: double quotes are strings.
    assert_eq!(
        session
            .text("SELECT c FROM app.t WHERE c IS NOT NULL AND \"a\" = 'a'")
            .unwrap(),
        "ten"
    );
    session.conn().ping().expect("COM_PING");
    assert!(session.conn().select_db("mysql").is_ok(), "COM_INIT_DB");
    assert_eq!(session.text("SELECT DATABASE()").unwrap(), "mysql");
    assert!(session.conn().select_db("nothing").is_err());

    // A new port, the same server: the crate's options are those of a common application.
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(proxy.port())
        .user(Some("root"));
    let mut conn = ::mysql::Conn::new(options.prefer_socket(false)).expect("login");
    let rows: Vec<(i32, String)> = conn.query("SELECT k, c FROM app.t").expect("rows");
    assert_eq!(rows, [(10, "ten".to_owned())]);
    proxy.assert_healthy();
}

/// MariaDB goes on with the user that there was, MySQL ends the session.
fn a_change_of_user_may_fail(kind: Kind) {
    let Some(mut pair) = Pair::start(
        kind,
        &["CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(9) {eq})"],
    ) else {
        return;
    };
    pair.both("INSERT INTO t VALUES (1, 'a')");
    let ports = [pair.beside().port(), pair.proxy.port()];
    for (user, database) in [("root", "missing"), ("nobody", "app"), ("root", "app")] {
        let said = ports.map(|port| {
            let mut session = Session::open(port, "root", "", Some("app"));
            session.must("SET @mine = 1, sql_mode = 'ANSI_QUOTES'");
            session.must("BEGIN");
            session.must("UPDATE t SET n = 'b'");
            let options = ChangeUserOpts::new()
                .with_user(Some(user.into()))
                .with_pass(Some(String::new()))
                .with_db_name(Some(database.into()));
            let changed = session.conn().change_user(options).is_ok();
            let questions = [
                "SELECT CURRENT_USER(), DATABASE(), @mine, @@sql_mode",
                "SELECT n FROM app.t WHERE n = 'a'",
            ];
            let answers = questions.map(|sql| session.text(sql).map_err(|_| "an error"));
            format!("{changed} {answers:?}")
        });
        assert_eq!(said[0], said[1], "{user}, {database}");
    }
}
