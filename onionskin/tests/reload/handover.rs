//! One program takes the place of another. One server is enough for these.

use super::*;

#[test]
fn whoever_only_pretends_takes_nothing_over() {
    if direct_mode() {
        return;
    }
    let server = Server::mariadb();
    let mut proxy = Reloadable::start(&server, "");
    let socket = proxy.proxy.folder().join("control.sock");
    let mode = fs::metadata(&socket).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let answer = |request: &[u8]| {
        let mut stream = proxy.control();
        let _ = stream.write_all(request);
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    };
    for junk in [
        &b"\n"[..],
        b"reload now\n",
        b"GET / HTTP/1.1\r\n\r\n",
        &[b'x'; 20_000],
    ] {
        assert!(answer(junk).starts_with("no\n"), "{junk:?}");
    }
    // the file of a check is read by the proxy, and nothing of it is told but what is wrong
    assert!(answer(b"check /nowhere/onionskin.toml\n").starts_with("no\n"));

    // it takes the sockets, and goes
    let mut stream = proxy.control();
    stream.write_all(b"take over\n").expect("written");
    let mut some = [0; 64];
    assert!(stream.read(&mut some).expect("an answer") > 0);
    assert!(some.starts_with(b"ok "), "{some:?}");
    // meanwhile: a second one, a real one, and a reload
    assert!(answer(b"take over\n").contains("another program takes over"));
    let mut second = proxy.successor("second.log");
    wait_until("the second one ends", SOON, || ended(&mut second));
    assert!(
        proxy
            .log_of("second.log")
            .contains("another program takes over")
    );
    let (done, said) = proxy.reload();
    assert!(!done && said.contains("a new program takes over"), "{said}");
    proxy.proxy.connect().must("SELECT 1");
    drop(stream);
    wait_until("the old one goes on", SOON, || {
        proxy.proxy.log().contains("as if nothing had happened")
    });
    proxy.must_reload();
    // it says something else than that it serves
    let mut stream = proxy.control();
    stream.write_all(b"take over\nnonsense\n").expect("written");
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    assert!(!text.contains("draining"), "{text}");
    proxy.proxy.connect().must("SELECT 1");
    // who finds no room is told so
    let _silent: Vec<UnixStream> = (0..8).map(|_| proxy.control()).collect();
    let (done, said) = proxy.reload();
    assert!(!done && said.contains("too many connections"), "{said}");
    proxy.proxy.assert_healthy();
}

#[test]
fn a_new_program_that_fails_leaves_the_old_one() {
    if direct_mode() {
        return;
    }
    let server = Server::mariadb();
    let mut proxy = Reloadable::start(&server, "");
    let sound = proxy.config();
    let mut session = proxy.proxy.connect();
    // it gets the sockets and dies of its administration token, which is read before; of an address
    // that is taken, which is bound after
    let listens = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = listens.local_addr().expect("bound").to_string();
    let admin = format!("127.0.0.1:{}", proxy.admin);
    for (config, words) in [
        (
            format!("pins = \"none\"\n{sound}"),
            "onionskin pin makes it",
        ),
        (sound.replace(&admin, &taken), "cannot listen on admin"),
    ] {
        proxy.write(&config);
        let mut failed = proxy.successor("failed.log");
        wait_until("it ends", SOON, || ended(&mut failed));
        assert!(
            proxy.log_of("failed.log").contains(words),
            "{}",
            proxy.log_of("failed.log")
        );
        session.must("SELECT 1");
        proxy.proxy.connect().must("SELECT 1");
    }
    drop(listens);
    // without a program to take over from, it starts like any other
    proxy.write(&sound);
    proxy.proxy.kill9();
    drop(session);
    let mut alone = proxy.successor("alone.log");
    wait_until("it serves", SOON, || {
        proxy.log_of("alone.log").contains("listening on")
    });
    proxy.proxy.connect().must("SELECT 1");

    // SIGUSR2: it starts its own file anew
    signal("USR2", alone.id());
    wait_until("the old one ends", SOON, || ended(&mut alone));
    let log = proxy.log_of("alone.log");
    let pid = log
        .split("pid=")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    let pid: u32 = pid.and_then(|pid| pid.parse().ok()).expect("a process");
    proxy.proxy.connect().must("SELECT 1");
    signal("TERM", pid);
    wait_until("it ends", SOON, || {
        TcpStream::connect(("127.0.0.1", proxy.proxy.port())).is_err()
    });
}

#[test]
fn a_program_that_ends_in_a_handover_leaves_the_sockets() {
    if direct_mode() {
        return;
    }
    let server = Server::mariadb();
    let mut proxy = Reloadable::start(&server, "");
    let socket = proxy.proxy.folder().join("control.sock");
    let mut stream = proxy.control();
    stream.write_all(b"take over\n").expect("written");
    let mut some = [0; 64];
    assert!(stream.read(&mut some).expect("an answer") > 0);
    proxy.proxy.terminate();
    assert!(socket.exists(), "the new program answers by it");
    drop(stream);

    // the next start removes what nobody listens on, and its own file when it ends
    let mut next = proxy.successor("next.log");
    wait_until("it serves", SOON, || {
        proxy.log_of("next.log").contains("listening on")
    });
    proxy.must_reload();
    // a file that another program has put there is not its own
    fs::remove_file(&socket).expect("removed");
    let _other = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
    signal("TERM", next.id());
    wait_until("it ends", SOON, || ended(&mut next));
    assert!(socket.exists(), "another program's file stays");
}

#[test]
fn what_goes_on_holds_no_reload_up_for_ever() {
    if direct_mode() {
        return;
    }
    let server = Server::mariadb();
    let proxy = Reloadable::start(&server, "");
    // a check of a pipe
    let pipe = proxy.proxy.folder().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let mut stream = proxy.control();
    stream
        .write_all(format!("check {}\n", pipe.display()).as_bytes())
        .expect("written");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    assert!(text.contains("this is no file"), "{text}");

    // SIGHUP during a handover: it is done afterwards
    let mut stream = proxy.control();
    stream.write_all(b"take over\n").expect("written");
    let mut some = [0; 64];
    assert!(stream.read(&mut some).expect("an answer") > 0);
    proxy.write(&format!("max_logins = 9\n{}", proxy.config()));
    signal("HUP", proxy.proxy.pid().expect("a process"));
    thread::sleep(Duration::from_millis(200));
    assert!(!proxy.proxy.log().contains("reload: "));
    drop(stream);
    wait_until("the reload is done", SOON, || {
        proxy.proxy.log().contains("max_logins: not set → 9")
    });

    // statements run longer than it waits, one of them in a text of several: the rest of that is
    // under the new rules
    let mut session = proxy.proxy.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50))");
    let port = proxy.proxy.port();
    let run = move |sql: &'static [u8]| {
        thread::spawn(move || {
            let mut client = RawClient::login(port);
            client.command(3, sql);
            let mut replies = Vec::new();
            loop {
                match client.read() {
                    Reply::Packet(packet) => replies.push(packet),
                    Reply::Error(_, text) => return text,
                    other => return format!("{replies:?} {other:?}"),
                }
            }
        })
    };
    let several = run(
        b"SELECT SLEEP(11.5); SAVEPOINT s; INSERT INTO app.t (name) VALUES ('plain'); SELECT 1",
    );
    thread::sleep(Duration::from_millis(500));
    let strict = "\n[protect.\"app.t\"]\nenforce = true\nname = [\"eq\"]\n";
    proxy.write(&(proxy.config() + strict));
    let output = proxy.proxy.output(&["reload"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(
        said.contains("1 statements that began before still run"),
        "{said}"
    );
    let told = several.join().expect("no panic");
    assert!(told.contains("OS1108"), "{told}");
    let rows = server.connect().text("SELECT COUNT(*) FROM app.t");
    assert_eq!(rows.expect("a count"), "0");
}

#[test]
fn root_reloads_the_proxy_of_another_user() {
    const NOBODY: u32 = 65534;
    if direct_mode() || !rustix::process::geteuid().is_root() {
        announce("SKIPPED: not root");
        return;
    }
    let server = Server::mariadb();
    let mut proxy = Reloadable::start(&server, "");
    proxy.proxy.kill9();
    let folder = proxy.proxy.folder().to_owned();
    let owned = Command::new("chown")
        .args(["-R", &NOBODY.to_string()])
        .arg(&folder)
        .status();
    assert!(owned.expect("chown runs").success());
    let log = File::create(folder.join("nobody.log")).expect("a log");
    let mut running = tied_command("setpriv")
        .arg(format!("--reuid={NOBODY}"))
        .arg("--clear-groups")
        .arg(env!("CARGO_BIN_EXE_onionskin"))
        .args(["serve", "-c", "onionskin.toml", "--listen"])
        .arg(format!("127.0.0.1:{}", proxy.proxy.port()))
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("it starts");
    wait_until("it serves", SOON, || {
        proxy.log_of("nobody.log").contains("listening on")
    });
    assert!(proxy.must_reload().contains("nothing has changed"));
    signal("TERM", running.id());
    wait_until("it ends", SOON, || ended(&mut running));
}
