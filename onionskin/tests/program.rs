//! The program as it is called: keys and their protection, the suites, the private server, the
//! demonstration.

use onionskin_testkit::*;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

on_both_servers!(
    both_suites_keep_their_columns,
    a_passphrase_is_needed_again,
    everything_is_there_after_a_restart,
    a_key_is_added_used_and_tables_come_under_it,
);

const PROTECT: &str = r#"
[protect."app.*"]
k = ["eq", "range"]
c = []
v = ["eq"]
"#;

fn both_suites_keep_their_columns(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    if direct_mode() {
        return;
    }
    server.connect().must("CREATE DATABASE app");
    let first = Proxy::start(&server, PROTECT);
    let with_suite = |suite: &str| ProxyOptions {
        settings: format!("suite = \"{suite}\""),
        tables: PROTECT.into(),
        keys: Some(first.keys()),
        ..ProxyOptions::default()
    };
    // The suite of the configuration is that of new tables; a table keeps the one that it was made
    // with.
    let mut proxies =
        ["aes", "sm"].map(|suite| (suite, Proxy::start_with(&server, with_suite(suite))));
    for (suite, proxy) in &proxies {
        let mut session = proxy.connect_to("app");
        session.must(&format!("CREATE TABLE {suite} (id INT PRIMARY KEY, k INT, c VARCHAR(40), v VARCHAR(40), KEY (k))"));
    }
    for (suite, proxy) in &proxies {
        let mut session = proxy.connect_to("app");
        for table in ["aes", "sm"] {
            let base = if *suite == "aes" { 0 } else { 100 };
            for n in base..base + 20 {
                session.must(&format!(
                    "INSERT INTO {table} VALUES ({n}, {}, 'c{n}', 'V{n}')",
                    50 - n
                ));
            }
        }
    }
    for (suite, proxy) in &mut proxies {
        let mut session = proxy.connect_to("app");
        for table in ["aes", "sm"] {
            let one = session.text(&format!("SELECT k, c, v FROM {table} WHERE v = 'v7'"));
            assert_eq!(one.unwrap(), "43\tc7\tV7", "{table} through {suite}");
            let range = format!("SELECT k FROM {table} WHERE k BETWEEN -52 AND 33 ORDER BY k");
            assert_eq!(
                session.text(&range).unwrap(),
                "-52\n-51\n-50\n31\n32\n33",
                "{table} through {suite}"
            );
            let many = session.text(&format!(
                "SELECT COUNT(*), MIN(k), MAX(k), SUM(k) FROM {table}"
            ));
            assert_eq!(
                many.unwrap(),
                "40\t-69\t50\t-380",
                "{table} through {suite}"
            );
        }
        proxy.assert_healthy();
    }
}

fn a_passphrase_is_needed_again(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    if direct_mode() {
        return;
    }
    server.connect().must("CREATE DATABASE app");
    let passphrase = "correct horse battery staple";
    let options = ProxyOptions {
        tables: PROTECT.into(),
        environment: vec![("ONIONSKIN_PASSPHRASE".into(), passphrase.into())],
        ..ProxyOptions::default()
    };
    let mut proxy = Proxy::start_with(&server, options);
    let mut session = proxy.connect_to("app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(40))");
    session.must("INSERT INTO t VALUES (1, 'kept')");
    drop(session);
    proxy.terminate();
    assert!(
        !fs::read_to_string(proxy.keys())
            .unwrap()
            .contains(passphrase)
    );
    assert!(!proxy.log().contains(passphrase));
    let mode = fs::metadata(proxy.keys()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "keys.json is for its owner only");

    for given in ["", "correct horse battery stapler"] {
        let listen = format!("127.0.0.1:{}", free_port());
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_onionskin"));
        command.args(["serve", "-c", "onionskin.toml", "--listen", &listen]);
        command
            .current_dir(proxy.folder())
            .env("ONIONSKIN_PASSPHRASE", given);
        let output = command.output().expect("onionskin runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success(),
            "with the passphrase {given:?}: {text}"
        );
        assert!(
            text.contains("passphrase") && !text.contains("panicked"),
            "{text}"
        );
    }
    proxy.restart();
    assert_eq!(
        proxy.connect_to("app").text("SELECT c FROM t").unwrap(),
        "kept"
    );
}

fn everything_is_there_after_a_restart(kind: Kind) {
    let Some(mut server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut proxy = Proxy::start(&server, PROTECT);
    server.connect().must("CREATE DATABASE app");
    let mut session = proxy.connect_to("app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, k INT, c VARCHAR(40), v VARCHAR(40))");
    session.must("INSERT INTO t VALUES (1, 10, 'ten', 'X'), (2, -20, 'minus twenty', 'y'), (3, NULL, NULL, NULL)");
    let before = session.must("SELECT * FROM t ORDER BY k");
    drop(session);
    // The server's restart without the proxy's, and the proxy's without the server's.
    server.shutdown();
    server.restart();
    assert_eq!(
        proxy.connect_to("app").must("SELECT * FROM t ORDER BY k"),
        before
    );
    proxy.terminate();
    proxy.restart();
    assert_eq!(
        proxy.connect_to("app").must("SELECT * FROM t ORDER BY k"),
        before
    );
    assert_eq!(
        proxy
            .connect_to("app")
            .text("SELECT id FROM t WHERE v = 'x'")
            .unwrap(),
        "1"
    );
}

/// `onionskin keys …` for a proxy's key file; what it printed, if it succeeded.
fn keys(proxy: &Proxy, arguments: &[&str], environment: &[(&str, &str)]) -> Result<String, String> {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_onionskin"));
    command
        .args(["keys", "-c", "onionskin.toml"])
        .args(arguments);
    command
        .current_dir(proxy.folder())
        .envs(environment.iter().copied());
    let output = command.output().expect("onionskin runs");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

fn a_key_is_added_used_and_tables_come_under_it(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    server.connect().must("CREATE DATABASE app");
    let mut proxy = Proxy::start(&server, PROTECT);
    let mut session = proxy.connect_to("app");
    for table in ["moved", "stays"] {
        session.must(&format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, k INT, c VARCHAR(40), v VARCHAR(40), KEY (k))"
        ));
        session.must(&format!(
            "INSERT INTO {table} VALUES (1, 10, 'ten', 'X'), (2, -20, 'minus twenty', 'y'), (3, NULL, NULL, NULL)"
        ));
    }
    let before = session.must("SELECT * FROM moved ORDER BY k");
    let key_of = |table: &str| {
        let comment = server.connect().text(&format!(
            "SELECT column_comment FROM information_schema.columns
             WHERE table_schema = 'app' AND table_name = '{table}' AND column_name = 'c$enc'"
        ));
        let comment = comment.unwrap();
        comment.split('|').nth(4).expect("a key").to_owned()
    };

    let text = keys(&proxy, &["add"], &[]).unwrap();
    assert!(text.contains("Key 2 was added"), "{text}");
    let list = keys(&proxy, &["list"], &[]).unwrap();
    let active = |list: &str| {
        let line = list.lines().find(|line| line.ends_with("active"));
        line.and_then(|line| line.split_whitespace().next().map(str::to_owned))
    };
    assert_eq!(
        (active(&list).as_deref(), list.lines().count()),
        (Some("1"), 3),
        "{list}"
    );
    let error = keys(&proxy, &["use", "3"], &[]).unwrap_err();
    assert!(error.contains("key 3 is not in the key file"), "{error}");
    let list = keys(&proxy, &["use", "2"], &[]).unwrap();
    assert_eq!(active(&list).as_deref(), Some("2"), "{list}");

    // Who runs goes on under the keys that it was started with.
    session.must("INSERT INTO moved VALUES (4, 40, 'forty', 'z')");
    must_migrate(
        &server,
        Some(&proxy),
        &["app.moved", "--rotate", "--drop-old"],
    );
    assert_eq!(
        (key_of("moved").as_str(), key_of("stays").as_str()),
        ("2", "1")
    );
    assert_eq!(session.must("SELECT * FROM stays ORDER BY k"), before);
    let failure = session.run("SELECT c FROM moved").unwrap_err();
    assert!(failure.to_string().contains("OS1103"), "{failure}");
    let failure = session
        .run("INSERT INTO moved VALUES (5, 50, 'fifty', 'z')")
        .unwrap_err();
    assert!(failure.to_string().contains("OS1103"), "{failure}");
    drop(session);

    // And a passphrase on top of it.
    let passphrases = [("ONIONSKIN_NEW_PASSPHRASE", "correct horse")];
    keys(&proxy, &["passphrase"], &[]).unwrap_err();
    keys(&proxy, &["passphrase"], &passphrases).unwrap();
    let error = keys(&proxy, &["list"], &[]).unwrap_err();
    assert!(error.contains("ONIONSKIN_PASSPHRASE"), "{error}");
    keys(
        &proxy,
        &["passphrase", "--remove"],
        &[("ONIONSKIN_PASSPHRASE", "correct horse")],
    )
    .unwrap();

    proxy.terminate();
    proxy.restart();
    let mut session = proxy.connect_to("app");
    session.must("DELETE FROM moved WHERE v = 'Z'");
    for table in ["moved", "stays"] {
        let rows = session.must(&format!("SELECT * FROM {table} ORDER BY k"));
        assert_eq!(rows, before, "{table}");
        assert_eq!(
            session
                .text(&format!("SELECT id FROM {table} WHERE k BETWEEN 1 AND 20"))
                .unwrap(),
            "1"
        );
    }
    session.must("CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(40))");
    session.must("INSERT INTO made VALUES (1, 'ten'), (2, 'minus twenty')");
    assert_eq!(key_of("made"), "2");
    assert_eq!(
        session.text("SELECT c FROM made ORDER BY id").unwrap(),
        "ten\nminus twenty"
    );
    proxy.assert_healthy();
}

#[test]
fn init_overwrites_nothing() {
    if direct_mode() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let init = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_onionskin"));
        command
            .arg("init")
            .arg("--dir")
            .arg(folder.path())
            .output()
            .expect("onionskin runs")
    };
    assert!(init().status.success());
    let keys = fs::read(folder.path().join("keys.json")).expect("keys.json");
    let again = init();
    assert!(!again.status.success(), "a second init");
    assert!(String::from_utf8_lossy(&again.stderr).contains("onionskin.toml"));
    assert_eq!(
        fs::read(folder.path().join("keys.json")).expect("keys.json"),
        keys
    );
}

#[test]
fn a_private_server_is_started_kept_and_stopped() {
    if direct_mode() {
        return;
    }
    let folder = tempfile::Builder::new()
        .prefix("os-")
        .tempdir_in("/tmp")
        .expect("a temporary folder");
    let home = folder.path().join("p");
    let port = free_port();
    for round in 1..=2 {
        let mut command = tied_command(env!("CARGO_BIN_EXE_onionskin"));
        command
            .args([
                "serve",
                "--listen",
                &format!("127.0.0.1:{port}"),
                "--private",
            ])
            .arg(&home);
        let log = fs::File::create(folder.path().join("log")).expect("a log file");
        command
            .stdout(log.try_clone().expect("a handle"))
            .stderr(log)
            .current_dir(folder.path());
        let mut child = command.spawn().expect("onionskin starts");
        let said = || fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        let mut session = None;
        wait_until(
            "the private server answers",
            Duration::from_secs(90),
            || {
                assert!(
                    child.try_wait().expect("waiting").is_none(),
                    "it has ended:\n{}",
                    said()
                );
                session = Session::try_open(port, "root", "", None).ok();
                session.is_some()
            },
        );
        let mut session = session.expect("a session");
        if round == 1 {
            session.must("CREATE DATABASE app");
            session
                .must("CREATE TABLE app.t (id INT PRIMARY KEY, c VARCHAR(40) ENCRYPTED FOR (eq))");
            session.must("INSERT INTO app.t VALUES (1, 'kept')");
        }
        assert_eq!(
            session
                .text("SELECT id FROM app.t WHERE c = 'kept'")
                .unwrap(),
            "1"
        );
        let server = session.text("SELECT @@pid_file").unwrap();
        let server: u32 = fs::read_to_string(&server)
            .expect(&server)
            .trim()
            .parse()
            .expect("a process id");
        drop(session);
        signal("TERM", child.id());
        wait_until("it ends", Duration::from_secs(60), || {
            child.try_wait().expect("waiting").is_some()
        });
        let gone = !fs::exists(format!("/proc/{server}")).unwrap_or(true);
        assert!(gone, "the private server outlives the proxy");
    }
}

#[test]
fn the_demonstration_ends_by_itself() {
    if direct_mode() {
        return;
    }
    let mut child = std::process::Command::new("timeout")
        .args(["120", env!("CARGO_BIN_EXE_onionskin"), "demo"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("onionskin runs");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut text = String::new();
    let mut port: Option<u16> = None;
    while let Some(Ok(line)) = output.next() {
        text += &format!("{line}\n");
        let address = line.split_once("reached through onionskin on 127.0.0.1:");
        if let Some((_, rest)) = address {
            port = rest.trim_end_matches('.').parse().ok();
            break;
        }
    }
    // Whoever is on the machine can try.
    let intruder = port.map(|port| Session::try_open(port, "root", "", None).map(|_| ()));
    let nobody = port.map(|port| Session::try_open(port, "", "", None).map(|_| ()));
    for line in output.map_while(Result::ok) {
        text += &format!("{line}\n");
    }
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    for refused in [intruder, nobody] {
        let said = format!("{refused:?}");
        assert!(matches!(refused, Some(Err(_))), "{said}\n{text}");
        assert!(said.contains("1045"), "{said}");
    }
    assert!(
        text.contains("alice") && text.contains("$enc"),
        "both sides are shown:\n{text}\n{errors}"
    );
}
