//! Sockets that systemd, or whatever starts the program, has opened before.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};

use super::*;

#[test]
fn systemd_passes_the_socket() {
    let program = "/usr/bin/systemd-socket-activate";
    if direct_mode() || !Path::new(program).exists() {
        announce("SKIPPED: no systemd-socket-activate");
        return;
    }
    let server = Server::mariadb();
    let mut proxy = Reloadable::start(&server, "");
    proxy.proxy.kill9();
    let port = proxy.proxy.port();
    let notified = proxy.proxy.folder().join("notify.sock");
    let notify = UnixDatagram::bind(&notified).expect("a socket");
    notify.set_read_timeout(Some(SOON)).expect("a limit");
    let front = proxy.proxy.folder().join("front.sock");
    let start = |listen: &str, log: &str| {
        let log = File::create(proxy.proxy.folder().join(log)).expect("a log");
        tied_command(program)
            .current_dir(proxy.proxy.folder())
            .args(["-l", listen, "-l"])
            .arg(&front)
            .arg("-E")
            .arg(format!("NOTIFY_SOCKET={}", notified.display()))
            .arg(env!("CARGO_BIN_EXE_onionskin"))
            .args(["serve", "-c", "onionskin.toml", "--listen"])
            .arg(format!("127.0.0.1:{port}"))
            .arg("--listen")
            .arg(format!("unix:{}", front.display()))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("it starts")
    };
    let mut passed = start(&format!("127.0.0.1:{port}"), "passed.log");
    wait_until("it listens", SOON, || {
        proxy.log_of("passed.log").contains("Listening on")
    });
    // the first client starts the program, and is served
    assert_eq!(proxy.proxy.connect().text("SELECT 1").expect("a row"), "1");
    let mut told = [0; 256];
    let length = notify.recv(&mut told).expect("it tells that it is ready");
    let told = String::from_utf8_lossy(&told[..length]).into_owned();
    assert_eq!(told, format!("READY=1\nMAINPID={}", passed.id()));
    let by_socket = Session::try_open_at(&front, "root", None);
    let mut by_socket = by_socket.expect("a session by the second one");
    assert_eq!(by_socket.text("SELECT 2").expect("a row"), "2");
    signal("TERM", passed.id());
    wait_until("it ends", SOON, || ended(&mut passed));
    assert!(front.exists(), "it is not the proxy's to remove");
    fs::remove_file(&front).expect("removed");

    let other = free_port();
    let mut wrong = start(&format!("127.0.0.1:{other}"), "wrong.log");
    wait_until("it listens", SOON, || {
        proxy.log_of("wrong.log").contains("Listening on")
    });
    let _ = TcpStream::connect(("127.0.0.1", other));
    wait_until("it ends", SOON, || ended(&mut wrong));
    let log = proxy.log_of("wrong.log");
    assert!(
        log.contains("make ListenStream= in the socket unit and listen the same"),
        "{log}"
    );
}

/// The program with this socket as its number 3, and with so many by its environment.
fn with_socket(proxy: &Reloadable, socket: OwnedFd, count: &str, name: &str) -> Command {
    let script = format!(
        "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS={count} LISTEN_FDNAMES={name} exec {} serve -c onionskin.toml --listen 127.0.0.1:{}",
        env!("CARGO_BIN_EXE_onionskin"),
        proxy.proxy.port()
    );
    let mut command = tied_command("timeout");
    command
        .args(["60", "sh", "-c", &script])
        .current_dir(proxy.proxy.folder())
        .stdin(Stdio::from(socket));
    command
}

#[test]
fn what_is_passed_is_looked_at() {
    if direct_mode() {
        return;
    }
    let server = Server::mariadb();
    let mut proxy = Reloadable::start(&server, "");
    proxy.proxy.kill9();
    let address = format!("127.0.0.1:{}", proxy.proxy.port());
    let listens = || -> OwnedFd { TcpListener::bind(&address).expect("bound").into() };
    let silent = || {
        let kind = socket2::Type::STREAM;
        let socket = socket2::Socket::new(socket2::Domain::IPV4, kind, None).expect("a socket");
        let at = SocketAddr::from(([127, 0, 0, 1], 0));
        socket.bind(&at.into()).expect("bound");
        OwnedFd::from(socket)
    };
    let datagrams = || -> OwnedFd { UdpSocket::bind(&address).expect("bound").into() };
    let file = || -> OwnedFd { File::open("/dev/null").expect("open").into() };
    let cases: [(&str, OwnedFd, &str, &str); 5] = [
        (
            "more than there are",
            listens(),
            "3",
            "file descriptor 4 is no socket",
        ),
        ("too many", file(), "17", "at most 16"),
        ("a file", file(), "1", "file descriptor 3 is no socket"),
        ("datagrams", datagrams(), "1", "accepts no connections"),
        (
            "one that does not listen",
            silent(),
            "1",
            "accepts no connections",
        ),
    ];
    for (what, socket, count, words) in cases {
        let output = with_socket(&proxy, socket, count, "listen").output();
        let output = output.expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{what}: {said}");
        assert!(said.contains(words), "{what}: {said}");
    }

    // the file of a socket that was passed stays, also after a handover
    let path = proxy.proxy.folder().join("control.sock");
    fs::remove_file(&path).expect("left behind");
    let control = UnixListener::bind(&path).expect("bound");
    let log = File::create(proxy.proxy.folder().join("passed.log")).expect("a log");
    let mut first = with_socket(&proxy, control.into(), "1", "control")
        .stderr(log)
        .spawn()
        .expect("it starts");
    wait_until("it serves", SOON, || {
        proxy.log_of("passed.log").contains("listening on")
    });
    proxy.must_reload();
    let mut second = proxy.successor("second.log");
    wait_until("the first one ends", SOON, || ended(&mut first));
    assert!(path.exists(), "it is systemd's");
    signal("TERM", second.id());
    wait_until("the second one ends", SOON, || ended(&mut second));
    assert!(path.exists(), "it is systemd's, as the first one has said");
}
