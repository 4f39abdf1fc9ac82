//! Who is at the other end: certificates of clients, and what a balancer tells of its own.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use onionskin_testkit::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

on_both_servers!(
    clients_show_a_certificate_of_the_authority,
    a_balancer_tells_where_its_clients_are,
);

const SOON: Duration = Duration::from_secs(15);

/// An authority, and a client's certificate by it.
fn authority(folder: &Path, name: &str) {
    let write = |kind: &str, text: String| {
        fs::write(folder.join(format!("{name}-{kind}.pem")), text).expect("written");
    };
    let own = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    write("ca", params.self_signed(&own).expect("signed").pem());
    let issuer = Issuer::new(params, own);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["client".into()]).expect("parameters");
    write(
        "cert",
        params.signed_by(&key, &issuer).expect("signed").pem(),
    );
    write("key", key.serialize_pem());
}

fn clients_show_a_certificate_of_the_authority(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    authority(folder.path(), "ours");
    authority(folder.path(), "theirs");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let tables = format!("[tls]\nclient_ca = \"{}\"\n", at("ours-ca.pem"));
    let proxy = Proxy::start(&server, &tables);
    let plain = Cli::tcp(kind, proxy.port(), "root", "").without_tls();
    let secure = Cli::tcp(kind, proxy.port(), "root", "").with_tls();
    let secure = match kind {
        // a self-signed certificate is not verified
        Kind::MariaDb => secure.option("--disable-ssl-verify-server-cert"),
        Kind::MySql => secure,
    };
    let shows = |name: &str| {
        let certificate = format!("--ssl-cert={}", at(&format!("{name}-cert.pem")));
        let key = format!("--ssl-key={}", at(&format!("{name}-key.pem")));
        secure
            .clone()
            .option(&certificate)
            .option(&key)
            .run("SELECT 1")
    };
    let ours = shows("ours");
    assert!(ours.success, "{ours:?}\n{}", proxy.log());
    for (what, refused) in [
        ("without TLS", plain.run("SELECT 1")),
        ("without a certificate", secure.run("SELECT 1")),
        ("of another authority", shows("theirs")),
    ] {
        assert!(!refused.success, "{what}: {refused:?}");
    }
    assert!(plain.run("SELECT 1").err.contains("3159"));
}

/// HAProxy before a proxy, and its port.
fn haproxy(folder: &Path, proxy: u16, words: &str) -> (std::process::Child, u16) {
    let front = free_port();
    let config = format!(
        "global\ndefaults\n mode tcp\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n\
         listen onionskin\n bind 127.0.0.1:{front}\n source 127.0.0.2\n server one 127.0.0.1:{proxy} {words}\n"
    );
    let file = folder.join(format!("haproxy-{front}.cfg"));
    fs::write(&file, config).expect("written");
    let child = tied_command("/usr/sbin/haproxy")
        .args(["-db", "-f"])
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("HAProxy starts");
    wait_until("HAProxy listens", SOON, || {
        TcpStream::connect(("127.0.0.1", front)).is_ok()
    });
    (child, front)
}

fn a_balancer_tells_where_its_clients_are(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let options = ProxyOptions {
        settings: "proxy_networks = [\"127.0.0.2\", \"10.0.0.0/8\"]".into(),
        ..ProxyOptions::default()
    };
    let mut proxy = Proxy::start_with(&server, options);
    let port = proxy.port();
    // who is not listed is served as ever, and is refused with a header
    proxy.connect().must("SELECT 1");
    for header in [
        &b"PROXY TCP4 10.1.2.3 127.0.0.1 40000 3307\r\n"[..],
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0a\x01\x02\x03\x7f\0\0\x01\x9c\x40\x0c\xeb",
    ] {
        let mut client = RawClient::connect(port);
        assert!(matches!(client.read(), Reply::Packet(_)), "a greeting");
        client.send(header);
        let reply = client.read();
        assert!(
            matches!(reply, Reply::Error(..) | Reply::Closed),
            "{reply:?}"
        );
    }
    assert!(!proxy.log().contains("10.1.2.3"), "it is not believed");
    // a listed one has to begin with a header, and in time
    let listed = || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.expect("a socket");
        let from: SocketAddr = "127.0.0.2:0".parse().expect("an address");
        socket
            .bind(&from.into())
            .expect("an address of the machine");
        let to: SocketAddr = ([127, 0, 0, 1], port).into();
        socket.connect(&to.into()).expect("connected");
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(SOON)).expect("a limit");
        stream
    };
    let answer = |mut stream: TcpStream| {
        let mut text = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    };
    let silent = listed();
    let mut wrong = listed();
    wrong.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    assert!(answer(wrong).contains("a header of the PROXY protocol is missing"));
    let mut told = listed();
    told.write_all(b"PROXY TCP4 10.9.8.7 127.0.0.1 40000 3307\r\n")
        .expect("sent");
    let mut greeting = [0; 5];
    std::io::Read::read_exact(&mut told, &mut greeting).expect("a greeting");
    assert_eq!(greeting[4], 10, "of protocol 10");
    drop(told);
    wait_until("the log has the client", SOON, || {
        proxy.log().contains("peer=10.9.8.7:40000")
    });
    assert!(answer(silent).contains("a header of the PROXY protocol is missing"));

    if !Path::new("/usr/sbin/haproxy").exists() {
        announce("SKIPPED: no HAProxy");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for words in ["send-proxy", "send-proxy-v2"] {
        let (mut child, front) = haproxy(folder.path(), port, words);
        let mut session = Session::open(front, "root", "", None);
        session.must("SELECT 1");
        let ours = session_port(&proxy, "127.0.0.1");
        assert_ne!(
            ours, 0,
            "{words}: the log has the client's own address and port"
        );
        drop(session);
        let _ = child.kill();
        let _ = child.wait();
    }
    // one that tells nothing is refused, whoever its clients are
    let (mut child, front) = haproxy(folder.path(), port, "");
    let refused = Session::try_open(front, "root", "", None);
    assert!(refused.is_err());
    let _ = child.kill();
    let _ = child.wait();
    let opened: Vec<String> = opened(&proxy);
    assert!(
        opened.iter().all(|line| !line.contains("peer=127.0.0.2")),
        "{opened:?}"
    );
    proxy.assert_healthy();
}

/// Lines of the log about sessions.
fn opened(proxy: &Proxy) -> Vec<String> {
    let log = proxy.log();
    let lines = log.lines().filter(|line| line.contains("session opened"));
    lines.map(str::to_owned).collect()
}

/// The port that the log gives of the session that was opened last, if it is from this address.
fn session_port(proxy: &Proxy, address: &str) -> u16 {
    let line = opened(proxy).pop().unwrap_or_default();
    let from = line.split(&format!("peer={address}:")).nth(1);
    let port = from.and_then(|rest| rest.split_whitespace().next());
    port.and_then(|port| port.parse().ok()).unwrap_or_default()
}
