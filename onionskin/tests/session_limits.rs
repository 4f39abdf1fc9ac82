//! How many sessions there may be: in all, of one account, from one address.

use ::mysql::{Conn, Opts, OptsBuilder};
use onionskin_testkit::*;
use std::fs;
use std::net::SocketAddr;

on_both_servers!(
    sessions_are_limited_in_all_by_account_and_by_address,
    a_change_of_the_user_is_counted,
);

fn place(kind: Kind, settings: &str) -> Option<(Server, Proxy)> {
    if direct_mode() {
        return None;
    }
    let server = Server::start(kind, ServerOptions::default())?;
    let mut root = server.connect();
    for name in ["one", "two"] {
        root.must(&format!("CREATE USER {name}@'%'"));
    }
    let options = ProxyOptions {
        settings: format!("control = \"control.sock\"\n{settings}"),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::start_with(&server, options);
    Some((server, proxy))
}

fn open(proxy: &Proxy, user: &str) -> Result<Session, Failure> {
    Session::try_open(proxy.port(), user, "", None)
}

/// The error's number and state, or nothing.
fn refusal<T>(done: Result<T, Failure>) -> (u16, String) {
    match done {
        Ok(_) => (0, String::new()),
        Err(failure) => (failure.code, failure.state),
    }
}

fn from(proxy: &Proxy, address: &str) -> Result<Conn, u16> {
    let address: SocketAddr = format!("{address}:0").parse().expect("an address");
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(proxy.port())
        .user(Some("one"))
        .prefer_socket(false)
        .max_allowed_packet(Some(64 << 20))
        .bind_address(Some(address));
    match Conn::new(Opts::from(options)) {
        Ok(conn) => Ok(conn),
        Err(::mysql::Error::MySqlError(error)) => Err(error.code),
        Err(error) => panic!("{error}"),
    }
}

/// Another value for a setting that stands in the file.
fn reload(proxy: &Proxy, from: &str, to: &str) {
    let file = proxy.folder().join("onionskin.toml");
    let config = fs::read_to_string(&file).expect("a configuration");
    assert!(config.contains(from), "{from}");
    fs::write(&file, config.replace(from, to)).expect("written");
    let (done, said) = proxy.command(&["reload"]);
    assert!(done, "{said}");
}

/// A session that has ended may be counted for a moment more.
fn until_one_gets_in(proxy: &Proxy, user: &str) -> Session {
    let mut session = None;
    wait_until(
        "room for a session",
        std::time::Duration::from_secs(20),
        || {
            session = open(proxy, user).ok();
            session.is_some()
        },
    );
    session.expect("it got in")
}

fn sessions_are_limited_in_all_by_account_and_by_address(kind: Kind) {
    let Some((_server, proxy)) = place(kind, "max_sessions = 3\nmax_sessions_per_account = 2")
    else {
        return;
    };
    let first = open(&proxy, "one").expect("let in");
    let mut second = open(&proxy, "one").expect("let in");
    let third = open(&proxy, "one");
    assert_eq!(refusal(third), (1203, "42000".into()));
    let other = open(&proxy, "two").expect("another account");
    // before the greeting, as from a server
    assert_eq!(refusal(open(&proxy, "two")).0, 1040);
    assert!(proxy.log().contains("limit=\"max_sessions_per_account\""));

    // What is there stays, whatever a reload says; what has gone makes room.
    reload(&proxy, "max_sessions = 3", "max_sessions = 10");
    reload(&proxy, "_account = 2", "_account = 1");
    assert_eq!(second.text("SELECT 1"), Ok("1".into()));
    assert_eq!(refusal(open(&proxy, "one")).0, 1203);
    drop(first);
    drop(second);
    let second = until_one_gets_in(&proxy, "one");
    drop((second, other));

    reload(&proxy, "_account = 1", "_address = 1");
    let mut here = None;
    wait_until("room", std::time::Duration::from_secs(20), || {
        here = from(&proxy, "127.0.0.1").ok();
        here.is_some()
    });
    assert_eq!(from(&proxy, "127.0.0.1").err(), Some(1040));
    from(&proxy, "127.0.0.2").expect("another address");
    drop(here);
    wait_until("room again", std::time::Duration::from_secs(20), || {
        from(&proxy, "127.0.0.1").is_ok()
    });
}

fn a_change_of_the_user_is_counted(kind: Kind) {
    let Some((_server, proxy)) = place(kind, "max_sessions_per_account = 1") else {
        return;
    };
    let mut one = open(&proxy, "one").expect("let in");
    let mut two = open(&proxy, "two").expect("let in");
    let to = |name: &str| {
        ::mysql::ChangeUserOpts::new()
            .with_user(Some(name.to_owned()))
            .with_pass(Some(String::new()))
    };
    // to itself: it is no other session
    one.conn().change_user(to("one")).expect("changed");
    assert_eq!(one.text("SELECT 1"), Ok("1".into()));
    let refused = two.conn().change_user(to("one")).expect_err("too many");
    let text = refused.to_string();
    assert!(text.contains("1203") && text.contains("42000"), "{text}");
    assert!(two.text("SELECT 1").is_err(), "the session has ended");
    // who has become another one makes room
    let _two = until_one_gets_in(&proxy, "two");
    drop(_two);
    one.conn().change_user(to("root")).expect("changed");
    let again = open(&proxy, "one").expect("room");
    drop(again);
    let name = one.text("SELECT SUBSTRING_INDEX(USER(), '@', 1)");
    assert_eq!(name, Ok("root".into()));
}
