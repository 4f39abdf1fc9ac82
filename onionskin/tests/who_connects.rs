//! Who is at the other end: certificates of clients, of accounts and of the proxy itself; what a
//! balancer tells of its clients, and the proxy of its own; and the addresses that clients connect
//! to.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use onionskin_testkit::*;
use onionskin_wire::messages::SslRequest;
use onionskin_wire::tls::{Identity, ServerVerification, client_config_as};
use onionskin_wire::{Capabilities, Connection, Transport};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

on_both_servers!(
    clients_show_a_certificate_of_the_authority,
    a_balancer_tells_where_its_clients_are,
    accounts_show_their_own_certificates,
    the_server_asks_the_proxy_for_a_certificate,
    the_server_is_told_where_clients_are,
    clients_connect_to_several_addresses,
);

const SOON: Duration = Duration::from_secs(15);

/// An authority, and certificates of clients by it: their names are the common names.
fn authority_of(folder: &Path, name: &str, clients: &[&str]) {
    let write = |name: &str, kind: &str, text: String| {
        let path = folder.join(format!("{name}-{kind}.pem"));
        fs::write(&path, text).expect("written");
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(path, mode).expect("a mode");
    };
    let own = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "an authority");
    write(name, "ca", params.self_signed(&own).expect("signed").pem());
    let issuer = Issuer::new(params, own);
    for client in clients {
        let key = KeyPair::generate().expect("a key");
        let host = format!("{client}.example.com");
        let mut params = CertificateParams::new(vec![host]).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, *client);
        let signed = params.signed_by(&key, &issuer).expect("signed");
        write(client, "cert", signed.pem());
        write(client, "key", key.serialize_pem());
    }
}

fn authority(folder: &Path, name: &str) {
    authority_of(folder, name, &[name]);
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
    let admin = free_port();
    let options = ProxyOptions {
        settings: format!("admin = \"127.0.0.1:{admin}\""),
        tables: format!("[tls]\nclient_ca = \"{}\"\n", at("ours-ca.pem")),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::start_with(&server, options);
    let mut metrics = TcpStream::connect(("127.0.0.1", admin)).expect("a connection");
    metrics
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("sent");
    let mut text = String::new();
    metrics.read_to_string(&mut text).expect("an answer");
    let end = text.lines().find_map(|line| {
        line.strip_prefix("onionskin_certificate_end_seconds{of=\"tls.client_ca\"} ")
    });
    let end: f64 = end.and_then(|end| end.parse().ok()).expect("when it ends");
    assert!(end > 1_900_000_000.0, "{end}");
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
    let listed = || connected_from("127.0.0.2", port);
    let answer = |mut stream: TcpStream| {
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
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
    told.read_exact(&mut greeting).expect("a greeting");
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

/// A connection from another address of this machine.
fn connected_from(address: &str, port: u16) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.expect("a socket");
    let from: SocketAddr = format!("{address}:0").parse().expect("an address");
    socket
        .bind(&from.into())
        .expect("an address of the machine");
    let to: SocketAddr = ([127, 0, 0, 1], port).into();
    socket.connect(&to.into()).expect("connected");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(SOON)).expect("a limit");
    stream
}

/// The client's options for a certificate in this folder.
fn showing(cli: Cli, folder: &Path, name: &str) -> Cli {
    let at = |kind: &str| folder.join(format!("{name}-{kind}.pem"));
    cli.option(&format!("--ssl-cert={}", at("cert").display()))
        .option(&format!("--ssl-key={}", at("key").display()))
}

fn accounts_show_their_own_certificates(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut direct = server.connect();
    for user in ["app", "other", "free", "zoë"] {
        direct.must(&format!("CREATE USER '{user}'@'%'"));
    }
    direct.must("CREATE USER 'free'@'127.0.0.1'");
    let folder = tempfile::tempdir().expect("a folder");
    let names = ["app", "other", "boss"];
    authority_of(folder.path(), "ours", &names);
    let ca = folder.path().join("ours-ca.pem");
    let tables = format!(
        "[tls]\nclient_ca = {ca:?}\n[tls.accounts]\n\
         app = [{{ cn = \"app\", dns = \"APP.example.com\" }}]\n\
         other = [{{ cn = \"nobody\" }}, {{ cn = \"other\" }}]\n\
         \"zoë\" = [{{ cn = \"other\" }}]\n\
         \"free@127.0.0.1\" = [{{ dns = \"other.example.com\" }}]\n\
         \"*\" = [{{ cn = \"boss\" }}]\n"
    );
    let proxy = Proxy::start(&server, &tables);
    let login = |user: &str, certificate: &str| {
        let secure = Cli::tcp(kind, proxy.port(), user, "").with_tls();
        let secure = match kind {
            // a self-signed certificate is not verified
            Kind::MariaDb => secure.option("--disable-ssl-verify-server-cert"),
            Kind::MySql => secure,
        };
        showing(secure, folder.path(), certificate).run("SELECT CURRENT_USER()")
    };
    for (user, certificate, lets_in) in [
        ("app", "app", true),
        ("app", "other", false),
        ("app", "boss", false),
        ("other", "other", true),
        ("other", "app", false),
        // servers take quotes around a name away
        ("'app'", "other", false),
        ("'app'", "boss", false),
        ("'app'", "app", true),
        // the account at this host is another one than that of all hosts
        ("free", "other", true),
        ("free", "boss", false),
        ("root", "boss", true),
        ("root", "app", false),
    ] {
        let said = login(user, certificate);
        assert_eq!(said.success, lets_in, "{user} with {certificate}: {said:?}");
        if !lets_in {
            let text = "1045 (28000): Access denied: [tls.accounts] asks this account";
            assert!(said.err.contains(text), "{said:?}");
        }
    }
    // a session cannot become another account by the certificate that it began with
    let config = {
        let read = |kind: &str| fs::read(folder.path().join(format!("boss-{kind}.pem")));
        let (chain, key) = (read("cert").expect("read"), read("key").expect("read"));
        let shown = Identity {
            chain: &chain,
            key: &key,
        };
        let any = ServerVerification::EncryptionWithoutAuthentication;
        client_config_as(&any, Some(shown)).expect("a configuration")
    };
    let login_by_bytes = |user: &[u8], charset: u8| {
        let login = login_payload_of(user, charset, b"mysql_native_password");
        login_under_tls(proxy.port(), config.clone(), login)
    };
    // whatever character set the client has, the name is the name
    const LATIN1: u8 = 8;
    const UTF8: u8 = 45;
    for (user, charset) in [(&b"zo\xeb"[..], LATIN1), ("zoë".as_bytes(), UTF8)] {
        assert_eq!(login_by_bytes(user, charset).1, 1045, "{user:?}");
    }
    let (mut client, ended) = login_by_bytes(b"root", UTF8);
    assert_eq!(ended, 0);
    assert_eq!(change_user(&mut client, "root"), 0);
    assert_eq!(change_user(&mut client, "app"), 1045);
    assert!(client.write_payload(b"\x03SELECT 1").is_err() || client.read_payload().is_err());
    // what a reload says holds for the next login
    let file = proxy.folder().join("onionskin.toml");
    let config = fs::read_to_string(&file).expect("a configuration");
    fs::write(&file, config.replace("cn = \"boss\"", "cn = \"chief\"")).expect("written");
    signal("HUP", proxy.pid().expect("it runs"));
    wait_until("the reload", SOON, || proxy.log().contains("in force"));
    assert!(!login("root", "boss").success);
    assert!(login("app", "app").success);
    // rules without an authority would ask for nothing
    let bad = config.replace("client_ca", "# client_ca");
    fs::write(&file, bad).expect("written");
    let (sound, said) = proxy.command(&["check", "-c", "onionskin.toml"]);
    assert!(!sound && said.contains("needs client_ca"), "{said}");
}

/// A login under TLS, with whatever the configuration shows, and how it ends.
fn login_under_tls(
    port: u16,
    config: std::sync::Arc<rustls::ClientConfig>,
    mut login: Vec<u8>,
) -> (Connection, u16) {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    let mut client = Connection::new(Transport::tcp(stream).expect("a transport"));
    client.read_payload().expect("a greeting");
    let ssl = Capabilities::SSL.bits().to_le_bytes();
    for (byte, flag) in login.iter_mut().zip(ssl) {
        *byte |= flag;
    }
    assert!(SslRequest::is_ssl_request(&login[..32]));
    client.write_payload(&login[..32]).expect("sent");
    let name = "localhost".try_into().expect("a name");
    client.upgrade_client_tls(config, name).expect("TLS");
    client.write_payload(&login).expect("sent");
    client.flush().expect("sent");
    let ended = ends_with(&mut client);
    (client, ended)
}

/// COM_CHANGE_USER to an account without a password: 0, or the number of the error.
fn change_user(client: &mut Connection, user: &str) -> u16 {
    client.reset_sequence();
    let mut payload = vec![0x11];
    payload.extend(user.as_bytes());
    // no answer, no database, a character set
    payload.extend([0, 0, 0, 45, 0]);
    payload.extend(b"mysql_native_password\0");
    client.write_payload(&payload).expect("sent");
    client.flush().expect("sent");
    ends_with(client)
}

/// How the server ends a login: 0, or the number of an error.
fn ends_with(client: &mut Connection) -> u16 {
    loop {
        let packet = client.read_payload().expect("an answer").to_vec();
        match packet[0] {
            0x00 => return 0,
            0xff => return u16::from_le_bytes([packet[1], packet[2]]),
            // another method, whose answer is empty as well
            0xfe => {
                client.write_payload(b"").expect("sent");
                client.flush().expect("sent");
            }
            _ => {}
        }
    }
}

fn the_server_asks_the_proxy_for_a_certificate(kind: Kind) {
    if direct_mode() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    authority_of(folder.path(), "ours", &["proxy"]);
    authority_of(folder.path(), "theirs", &["stranger"]);
    let ca = folder.path().join("ours-ca.pem");
    // the server runs as a user of its own
    for path in [folder.path(), &ca] {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path, mode).expect("a mode");
    }
    let mut extra = vec![format!("--ssl-ca={}", ca.display())];
    if kind == Kind::MySql {
        // its own, which it does not look for beside another authority
        extra.push("--ssl-cert=server-cert.pem".into());
        extra.push("--ssl-key=server-key.pem".into());
    }
    let options = ServerOptions {
        extra,
        ..ServerOptions::default()
    };
    let Some(server) = Server::start(kind, options) else {
        return;
    };
    let mut direct = server.connect();
    direct.must("CREATE USER 'shown'@'%' REQUIRE X509");
    let start = |shown: &str| {
        let at = |kind: &str| folder.path().join(format!("{shown}-{kind}.pem"));
        let mut settings = "backend_tls = \"required\"\n".to_owned();
        if !shown.is_empty() {
            let (cert, key) = (at("cert"), at("key"));
            settings += &format!("backend_cert = {cert:?}\nbackend_key = {key:?}");
        }
        let options = ProxyOptions {
            settings,
            ..ProxyOptions::default()
        };
        Proxy::start_with(&server, options)
    };
    let login = |proxy: &Proxy| {
        let cli = Cli::tcp(kind, proxy.port(), "shown", "").without_tls();
        cli.run("SHOW STATUS LIKE 'Ssl_cipher'")
    };
    let ours = start("proxy");
    let said = login(&ours);
    assert!(said.success, "{said:?}");
    // so do connections of the program's own
    let arguments = ["explain", "--user", "shown", "SELECT 1"];
    let (done, said) = ours.command(&arguments);
    assert!(done, "{said}");
    let without = login(&start(""));
    assert!(
        !without.success && without.err.contains("1045"),
        "{without:?}"
    );
    let strange = login(&start("stranger"));
    assert!(!strange.success, "{strange:?}");
    // half of it, or without TLS, is an error of the configuration
    let file = ours.folder().join("onionskin.toml");
    let config = fs::read_to_string(&file).expect("a configuration");
    for (what, changed, words) in [
        (
            "no key",
            config.replace("backend_key", "# "),
            "belong together",
        ),
        (
            "another's key",
            config.replace("proxy-key.pem", "stranger-key.pem"),
            "belong together",
        ),
        (
            "not under TLS",
            config.replace("backend_tls = \"required\"", "backend_tls = \"never\""),
            "under TLS only",
        ),
    ] {
        fs::write(&file, changed).expect("written");
        let (sound, said) = ours.command(&["check", "-c", "onionskin.toml"]);
        assert!(!sound && said.contains(words), "{what}: {said}");
    }
}

fn the_server_is_told_where_clients_are(kind: Kind) {
    if direct_mode() {
        return;
    }
    let extra = match kind {
        Kind::MariaDb => vec!["--proxy-protocol-networks=127.0.0.0/8".to_owned()],
        Kind::MySql => Vec::new(),
    };
    let options = ServerOptions {
        extra,
        ..ServerOptions::default()
    };
    let Some(server) = Server::start(kind, options) else {
        return;
    };
    let socket = tempfile::tempdir().expect("a folder");
    let socket = socket.path().join("front.sock");
    let options = ProxyOptions {
        settings: "backend_proxy_protocol = true\nproxy_networks = [\"127.0.0.2\"]".into(),
        arguments: vec!["--listen".into(), format!("unix:{}", socket.display())],
        ..ProxyOptions::default()
    };
    let mut proxy = Proxy::start_with(&server, options);
    if kind == Kind::MySql {
        // it knows nothing of the protocol: nobody logs in, and nobody waits for long
        let refused = Cli::tcp(kind, proxy.port(), "root", "").run("SELECT 1");
        assert!(!refused.success, "{refused:?}");
        return;
    }
    let mut direct = server.connect();
    direct.must("CREATE USER app@'127.0.0.9'");
    direct.must("CREATE USER app@'10.9.8.7'");
    direct.must("CREATE USER app@'fd00::1'");
    let user_from = |stream: TcpStream| {
        let mut client = Connection::new(Transport::tcp(stream).expect("a transport"));
        client.read_payload().expect("a greeting");
        let login = login_payload(b"mysql_native_password");
        let at = login.windows(4).position(|w| w == b"root").expect("a name");
        let login = [&login[..at], b"app", &login[at + 4..]].concat();
        client.write_payload(&login).expect("sent");
        client.flush().expect("sent");
        match ends_with(&mut client) {
            0 => {}
            error => return error.to_string(),
        }
        client.reset_sequence();
        client
            .write_payload(b"\x03SELECT CURRENT_USER()")
            .expect("sent");
        client.flush().expect("sent");
        let mut text = Vec::new();
        for _ in 0..4 {
            text = client.read_payload().expect("a packet").to_vec();
            if text.starts_with(&[text.len() as u8 - 1]) {
                break;
            }
        }
        String::from_utf8_lossy(&text[1..]).into_owned()
    };
    assert_eq!(
        user_from(connected_from("127.0.0.9", proxy.port())),
        "app@127.0.0.9"
    );
    assert_eq!(
        user_from(connected_from("127.0.0.10", proxy.port())),
        "1045"
    );
    for (told, seen) in [
        (
            "PROXY TCP4 10.9.8.7 127.0.0.1 4000 3307\r\n",
            "app@10.9.8.7",
        ),
        ("PROXY TCP6 fd00::1 ::1 4000 3307\r\n", "app@fd00::1"),
        ("PROXY TCP4 10.9.8.8 127.0.0.1 4000 3307\r\n", "1045"),
    ] {
        let mut balancer = connected_from("127.0.0.2", proxy.port());
        balancer.write_all(told.as_bytes()).expect("sent");
        assert_eq!(user_from(balancer), seen, "{told}");
    }
    // one without an address comes from where the proxy is
    let local = Cli::unix(kind, &socket, "root", "");
    let said = local.run("SELECT USER()");
    assert!(said.out.contains("root@127.0.0.1"), "{said:?}");
    // a client cannot say of itself that it is somewhere else
    let mut liar = connected_from("127.0.0.9", proxy.port());
    liar.write_all(b"PROXY TCP4 10.6.6.6 127.0.0.1 4000 3307\r\n")
        .expect("sent");
    let mut text = Vec::new();
    let _ = liar.read_to_end(&mut text);
    assert!(!proxy.log().contains("10.6.6.6"), "it is not believed");
    proxy.assert_healthy();
}

fn clients_connect_to_several_addresses(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("front.sock");
    let second = free_port();
    let options = ProxyOptions {
        settings: "max_sessions_per_address = 2".into(),
        tables: "[tls]\nrequire = true\n".into(),
        arguments: vec![
            "--listen".into(),
            format!("unix:{}", socket.display()),
            "--listen".into(),
            format!("127.0.0.1:{second}"),
        ],
        ..ProxyOptions::default()
    };
    let mut proxy = Proxy::start_with(&server, options);
    let tcp = |port: u16| {
        let secure = Cli::tcp(kind, port, "root", "").with_tls();
        match kind {
            Kind::MariaDb => secure.option("--disable-ssl-verify-server-cert"),
            Kind::MySql => secure,
        }
    };
    assert_eq!(tcp(proxy.port()).must("SELECT 1").lines().last(), Some("1"));
    assert_eq!(tcp(second).must("SELECT 2").lines().last(), Some("2"));
    let plain = Cli::tcp(kind, second, "root", "").without_tls();
    assert!(plain.run("SELECT 1").err.contains("3159"));
    // a Unix socket is as safe as TLS
    let local = Cli::unix(kind, &socket, "root", "").without_tls();
    assert_eq!(local.must("SELECT 3").lines().last(), Some("3"));
    let uid = rustix::process::geteuid().as_raw();
    assert!(
        opened(&proxy)
            .iter()
            .any(|line| line.contains(&format!("peer=unix:uid={uid} "))),
        "{:?}",
        opened(&proxy)
    );
    assert_eq!(
        fs::metadata(&socket).expect("there").permissions().mode() & 0o777,
        0o777
    );
    // those of the socket are counted as one address, apart from others
    let held: Vec<UnixStream> = (0..2).map(|_| logged_in_at(&socket)).collect();
    assert!(local.run("SELECT 1").err.contains("1040"), "the third one");
    assert_eq!(tcp(second).must("SELECT 4").lines().last(), Some("4"));
    drop(held);
    wait_until("there is room again", SOON, || {
        local.run("SELECT 1").success
    });
    // what is left behind is no obstacle, and what is in use is not taken away
    proxy.kill9();
    assert!(socket.exists(), "nobody was there to remove it");
    proxy.restart();
    let again = local.run("SELECT 5");
    assert!(again.success, "{again:?}");
    let other = tied_command(env!("CARGO_BIN_EXE_onionskin"))
        .current_dir(proxy.folder())
        .args(["serve", "-c", "onionskin.toml", "--listen"])
        .arg(format!("unix:{}", socket.display()))
        .output()
        .expect("it ends");
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(
        !other.status.success() && said.contains("cannot listen on unix:"),
        "{said}"
    );
    assert!(local.run("SELECT 6").success);
    proxy.terminate();
    assert!(!socket.exists(), "it is the program's own");
}

/// A session by a Unix socket that does nothing.
fn logged_in_at(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).expect("a connection");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    let held = stream.try_clone().expect("a handle");
    let mut client = Connection::new(Transport::Unix(stream));
    client.read_payload().expect("a greeting");
    let login = login_payload(b"mysql_native_password");
    client.write_payload(&login).expect("sent");
    client.flush().expect("sent");
    assert_eq!(ends_with(&mut client), 0);
    held
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
