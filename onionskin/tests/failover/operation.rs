//! What an operator does: reloads, looks, makes mistakes.

use super::*;

/// Members come and go by a reload, in open sessions' midst. A server of its own is no list.
pub fn members_come_and_go_by_a_reload(kind: Kind) {
    let Some(mut members) = Members::start(kind, 2, HASTY, "") else {
        return;
    };
    members.table();
    let mut session = members.app_soon();
    let file = members.proxy.folder().join("onionskin.toml");
    let text = fs::read_to_string(&file).expect("the configuration");
    let (first, second) = (members.cables[0].address(), members.cables[1].address());
    let list = format!("backend = [\"{first}\", \"{second}\"]");
    assert!(text.contains(&list), "{text}");
    let write = |backend: &str| fs::write(&file, text.replace(&list, backend)).expect("written");
    let reload = |members: &Members| members.proxy.command(&["reload", "-c", "onionskin.toml"]);

    let third = member(kind, 2).expect("it was there before");
    follow(&third, &members.servers[0]);
    write(&format!(
        "backend = [\"{first}\", \"{second}\", \"{}\"]",
        third.address()
    ));
    let (done, said) = members.proxy.command(&["check", "-c", "onionskin.toml"]);
    assert!(done && said.contains("1 setting would change"), "{said}");
    assert!(said.contains(&format!("{first}: primary")), "{said}");
    assert!(
        said.contains(&format!("{second}: no primary: read_only is on")),
        "{said}"
    );
    let (done, said) = reload(&members);
    assert!(done && said.contains("backend: "), "{said}");
    members.servers.push(third);
    wait_until("the third is told of", SOON, || {
        let told = status(&members.proxy);
        told["members"]
            .as_array()
            .is_some_and(|m| m.len() == 3 && m[2]["up"] == true)
    });
    session.must("SELECT 1");

    // the primary is taken out: its sessions go, and nobody else is promoted by that
    let rest = members.servers[2].address();
    write(&format!("backend = [\"{second}\", \"{rest}\"]"));
    let (done, said) = reload(&members);
    assert!(done, "{said}");
    members.closed_soon();
    wait_until("the session has ended", SOON, || {
        session.run("SELECT 1").is_err()
    });
    demote(&members.servers[0]);
    promote(&members.servers[2]);
    members.app_soon_at(2);

    write(&format!("backend = \"{rest}\""));
    let (done, said) = reload(&members);
    assert!(!done && said.contains("backend"), "{said}");
    write("backend = [\"127.0.0.1:1\"]");
    let (done, said) = reload(&members);
    assert!(!done && said.contains("2 to 9 servers"), "{said}");
    members.proxy.assert_healthy();
}

/// What is missing of the account of `[health]` is said, and the member that cannot be judged is
/// none that sessions go to.
pub fn an_account_that_may_not_ask_is_told(kind: Kind) {
    let Some(members) = Members::start(kind, 2, HASTY, "") else {
        return;
    };
    members.table();
    let mut session = members.app_soon();
    for server in &members.servers {
        let mut root = server.connect();
        root.must("SET sql_log_bin = 0");
        root.must("REVOKE ALL PRIVILEGES, GRANT OPTION FROM watch@'%'");
    }
    // privileges of a connection that is there may be those of its login
    for cable in &members.cables {
        cable.cut();
        cable.mend();
    }
    members.closed_soon();
    let (_, said) = members.proxy.command(&["check", "-c", "onionskin.toml"]);
    assert!(said.contains("the account of [health] needs"), "{said}");
    assert!(said.contains("No member could take sessions"), "{said}");
    // its connection was cut
    assert!(session.run("SELECT 1").is_err());
    wait_until("the log says what is missing", SOON, || {
        let log = members.proxy.log();
        log.contains("the account of [health] needs")
    });
    for (name, arguments) in [("explain", vec!["SELECT 1"]), ("pin", vec![])] {
        let mut all = vec![name, "-c", "onionskin.toml"];
        all.extend(arguments);
        let (done, said) = members.proxy.command(&all);
        assert!(!done, "{said}");
    }
}

/// The same server by two names is one too many.
#[test]
fn a_server_named_twice_is_told() {
    let servers = vec![member(Kind::MariaDb, 0).expect("MariaDB is never skipped")];
    promote(&servers[0]);
    let port = servers[0].port();
    let twice = [format!("127.0.0.1:{port}")];
    let members = Members::before(servers, &twice, HASTY, "");
    let why = members.closed_soon();
    assert!(why.contains("two of them are the same server"), "{why}");
    let (_, said) = members.proxy.command(&["check", "-c", "onionskin.toml"]);
    assert!(said.contains("two of them are the same server"), "{said}");
    let named = format!("127.0.0.1:{port} are the same server (server_id 1 on ");
    assert!(
        members.proxy.log().contains(&named),
        "{}",
        members.proxy.log()
    );
}

/// A new program takes over. No login fails, since it knows the primary before it takes the
/// sockets; and the old one follows a switchover with the sessions that it still has.
pub fn a_new_program_takes_over(kind: Kind) {
    let Some(members) = Members::start(kind, 2, HASTY, "") else {
        return;
    };
    members.table();
    let mut old = members.app_soon();
    let log = members.proxy.folder().join("next.log");
    let log = fs::File::create(log).expect("a file");
    let listen = format!("127.0.0.1:{}", members.proxy.port());
    let mut next = tied_command(onionskin_program());
    next.current_dir(members.proxy.folder())
        .args([
            "serve",
            "-c",
            "onionskin.toml",
            "--take-over",
            "--listen",
            &listen,
        ])
        .env("RUST_LOG", "info")
        .stdin(std::process::Stdio::null())
        .stderr(log);
    let mut next = next.spawn().expect("onionskin starts");
    let serves = || {
        let text = fs::read_to_string(members.proxy.folder().join("next.log"));
        text.is_ok_and(|text| text.contains("listening on"))
    };
    let begin = Instant::now();
    while !serves() && begin.elapsed() < SOON {
        let mut session = members.app().expect("no login fails");
        assert_eq!(members.at(&mut session), 0);
    }
    assert!(serves(), "{}", members.proxy.log());
    let mut new = members.app().expect("no login fails");
    old.must("SELECT 1");
    demote(&members.servers[0]);
    promote(&members.servers[1]);
    members.app_soon_at(1);
    for session in [&mut old, &mut new] {
        wait_until("sessions of both have ended", SOON, || {
            session.run("SELECT 1").is_err()
        });
    }
    let _ = next.kill();
    let _ = next.wait();
}
