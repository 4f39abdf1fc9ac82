//! A provider that is away: at the start, while the proxy runs, and for longer than the keys may be
//! used.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;

/// A home whose key file the drawer has wrapped.
fn wrapped(settings: &str) -> Home {
    let home = Home::new();
    let sections = home.by_script(DRAWER);
    home.configure("", &sections);
    home.must(&["keys", "rewrap", "--to", "exec"]);
    home.configure(&format!("keys_provider = \"exec\"\n{settings}"), &sections);
    home
}

fn away(home: &Home, is_away: bool) {
    match is_away {
        true => home.write("away", ""),
        false => fs::remove_file(home.path("away")).expect("removed"),
    }
}

fn questions(home: &Home) -> usize {
    fs::read_to_string(home.path("asked")).map_or(0, |text| text.lines().count())
}

/// The body of an answer of the administration address.
pub fn http(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the address");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("read");
    text
}

#[test]
fn a_start_waits_for_its_provider_and_not_for_ever() {
    let home = wrapped("keys_retry_seconds = 1.5\n");
    away(&home, true);
    let begin = Instant::now();
    let mut served = home.serve();
    assert_eq!(served.exit_code(), Some(1), "{}", served.log());
    assert!(begin.elapsed() >= Duration::from_millis(1500));
    let log = served.log();
    assert!(log.contains("asking again for 2 seconds"), "{log}");
    let last = log.trim().lines().last().expect("a line");
    assert!(
        last.contains("the store is away") && last.contains("\"exec\""),
        "{log}"
    );
    assert!(questions(&home) >= 3);

    home.configure(
        "keys_provider = \"exec\"\nkeys_retry_seconds = 60\n",
        &home.by_script(DRAWER),
    );
    let mut served = home.serve();
    wait_until("it is asked", SOON, || {
        served.log().contains("asking again")
    });
    assert!(!served.listens());
    away(&home, false);
    served.until_it_listens();

    // A signal does not wait.
    away(&home, true);
    let mut served = home.serve();
    wait_until("it is asked", SOON, || {
        served.log().contains("asking again")
    });
    let begin = Instant::now();
    signal("TERM", served.child.id());
    assert_eq!(served.exit_code(), Some(0), "{}", served.log());
    assert!(begin.elapsed() < Duration::from_secs(3));
}

#[test]
fn an_outage_changes_nothing_for_what_runs() {
    let Some(server) = Server::start(Kind::MariaDb, ServerOptions::default()) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let home = wrapped("");
    let admin = free_port();
    let settings = format!(
        "keys_provider = \"exec\"\nadmin = \"127.0.0.1:{admin}\"\ncontrol = \"control.sock\"\n"
    );
    home.configure(&settings, &home.by_script(DRAWER));
    let config = home.text("onionskin.toml");
    let config = config.replace("127.0.0.1:3306", &server.address());
    let config = config.replace("[scratch]\nengine = \"auto\"\n", "");
    fs::write(home.path("onionskin.toml"), config).expect("written");
    let mut served = home.serve();
    served.until_it_listens();
    server.connect().must("CREATE DATABASE app");
    let mut session = Session::open(served.port, "root", "", Some("app"));
    session.must("CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(40) ENCRYPTED FOR (eq))");
    session.must("INSERT INTO t VALUES (1, 'kept')");
    let ready = http(admin, "/ready");
    assert!(
        ready.contains("keys: ok; the provider exec answered"),
        "{ready}"
    );
    assert!(http(admin, "/metrics").contains("onionskin_keys_provider_up 1"));

    let before = questions(&home);
    away(&home, true);
    session.must("INSERT INTO t VALUES (2, 'written in the outage')");
    let mut another = Session::open(served.port, "root", "", Some("app"));
    assert_eq!(
        another.text("SELECT c FROM t WHERE id = 1").unwrap(),
        "kept"
    );
    assert_eq!(questions(&home), before, "nobody was asked");
    let refused = home.run(&["reload"]);
    let text = said(&refused);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(
        text.contains("the store is away") && text.contains("nothing was changed"),
        "{text}"
    );
    assert_eq!(
        another
            .text("SELECT COUNT(*) FROM t WHERE c = 'kept'")
            .unwrap(),
        "1"
    );
    let ready = http(admin, "/ready");
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
    assert!(ready.contains("exec has not answered for"), "{ready}");
    assert!(ready.contains("the store is away"), "{ready}");
    let metrics = http(admin, "/metrics");
    assert!(
        metrics.contains("onionskin_keys_provider_up 0"),
        "{metrics}"
    );
    assert!(
        metrics.contains("onionskin_keys_provider_answered_seconds 1"),
        "{metrics}"
    );
    let status = home.must(&["status"]);
    assert!(status.contains("exec has not answered"), "{status}");

    away(&home, false);
    home.must(&["keys", "add"]);
    home.must(&["keys", "use", "2"]);
    let done = home.must(&["reload"]);
    assert!(
        done.contains("data keys: 1; new columns under 1 → 1, 2"),
        "{done}"
    );
    assert!(http(admin, "/metrics").contains("onionskin_keys_provider_up 1"));
    assert_eq!(
        session.text("SELECT c FROM t WHERE id = 2").unwrap(),
        "written in the outage"
    );
    drop((session, another));
    signal("TERM", served.child.id());
    assert_eq!(served.exit_code(), Some(0), "{}", served.log());
}

/// Whatever opens the file, a proxy that runs takes it over by a reload, and refuses one of other
/// keys.
#[test]
fn a_proxy_that_runs_follows_its_key_file() {
    let home = Home::new();
    let sections = home.by_script(DRAWER);
    let control = "control = \"control.sock\"\n";
    home.configure(control, &sections);
    let mut served = home.serve();
    served.until_it_listens();
    home.must(&["keys", "rewrap", "--to", "exec"]);
    let refused = home.must_not(&["reload"]);
    assert!(refused.contains("keys_provider = \"exec\""), "{refused}");
    home.configure(&format!("keys_provider = \"exec\"\n{control}"), &sections);
    let done = home.must(&["reload"]);
    assert!(done.contains("keys_provider: not set → \"exec\""), "{done}");
    assert!(
        home.must(&["status"])
            .contains("the provider exec answered")
    );

    let own = home.text("keys.json");
    fs::remove_file(home.path("keys.json")).expect("removed");
    home.must(&["init", "--keys-only"]);
    assert!(
        home.must_not(&["reload"])
            .contains("has other keys than this proxy")
    );
    fs::write(home.path("keys.json"), own).expect("written");
    home.must(&["reload"]);
    let ttl = format!("keys_provider = \"exec\"\nkeys_ttl_seconds = 9\n{control}");
    home.configure(&ttl, &sections);
    assert!(
        home.must_not(&["reload"])
            .contains("keys_ttl_seconds: not set → 9")
    );
}

#[test]
fn keys_are_used_for_no_longer_than_they_may_be() {
    let home = wrapped("keys_ttl_seconds = 4\n");
    let mut served = home.serve();
    served.until_it_listens();
    let begun = questions(&home);
    // Longer than the time, while it answers.
    std::thread::sleep(Duration::from_millis(5500));
    assert!(served.listens(), "{}", served.log());
    let asked = questions(&home) - begun;
    assert!((1..8).contains(&asked), "{asked}");
    let since = Instant::now();
    away(&home, true);
    assert_eq!(served.exit_code(), Some(1), "{}", served.log());
    let lived = since.elapsed();
    assert!(lived < Duration::from_millis(6000), "{lived:?}");
    assert!(lived > Duration::from_millis(900), "{lived:?}");
    let log = served.log();
    assert!(log.contains("may be used for"), "{log}");
    assert!(log.trim().ends_with("may not be used any longer"), "{log}");
}
