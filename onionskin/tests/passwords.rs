//! Passwords that pass through the proxy go to the right server only: over a Unix socket, under TLS
//! that verifies, or under an RSA key that the configuration names. A server that only says it is
//! one gets none.

use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use onionskin_testkit::*;
use onionskin_wire::auth::PasswordKey;
use onionskin_wire::messages::{
    AuthMoreData, AuthSwitchRequest, ErrPacket, HandshakeResponse41, InitialHandshake, SslRequest,
};
use onionskin_wire::{
    Capabilities, Connection, MariaDbCapabilities, StatusFlags, Transport, WireResult,
};

on_both_servers!(
    a_hostile_server_learns_no_password,
    passwords_go_to_a_server_that_is_known,
);

const PASSWORD: &str = "hunter2 and more";
const SCRAMBLE: &[u8; 20] = b"0123456789abcdefghij";

/// What a hostile server asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ruse {
    /// The full login of caching_sha2_password, and an RSA key of its own if it is asked for one.
    FullLogin,
    /// sha256_password, with an RSA key of its own.
    Sha256,
    /// The password as it is.
    ClearPassword,
    /// A method of before 4.1.
    OldPassword,
    /// PAM's, which asks for a password by a prompt.
    Dialog,
}

/// A server that would like to know passwords. Whatever it is sent as one comes out of the channel.
fn hostile(ruse: Ruse, with_tls: bool) -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listening socket");
    let address = listener.local_addr().expect("its address").to_string();
    let (learned, lessons) = channel();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let learned = learned.clone();
            thread::spawn(move || {
                let _ = serve(socket, ruse, with_tls, |bytes| {
                    let _ = learned.send(bytes);
                });
            });
        }
    });
    (address, lessons)
}

fn serve(socket: TcpStream, ruse: Ruse, with_tls: bool, learn: impl Fn(Vec<u8>)) -> WireResult<()> {
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut peer = Connection::new(Transport::Tcp(socket));
    let mut capabilities = Capabilities::all() - Capabilities::COMPRESS;
    capabilities.set(Capabilities::SSL, with_tls);
    let greeting = InitialHandshake {
        server_version: b"9.7.4".to_vec(),
        connection_id: 77,
        auth_data: SCRAMBLE.to_vec(),
        capabilities,
        mariadb_capabilities: MariaDbCapabilities::empty(),
        charset: 255,
        status: StatusFlags::AUTOCOMMIT,
        auth_plugin: b"caching_sha2_password".to_vec(),
    };
    let mut payload = Vec::new();
    greeting.encode(&mut payload)?;
    put(&mut peer, &payload)?;
    let mut login = peer.read_payload()?.to_vec();
    if SslRequest::is_ssl_request(&login) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        let config = onionskin_wire::tls::server_config(
            made.cert.pem().as_bytes(),
            made.signing_key.serialize_pem().as_bytes(),
        )?;
        peer.upgrade_server_tls(config)?;
        login = peer.read_payload()?.to_vec();
    }
    let login = HandshakeResponse41::decode(&login)?;
    learn(login.auth_response);
    let plugin = match ruse {
        Ruse::FullLogin => "caching_sha2_password",
        Ruse::Sha256 => "sha256_password",
        Ruse::ClearPassword => "mysql_clear_password",
        Ruse::OldPassword => "mysql_old_password",
        Ruse::Dialog => "dialog",
    };
    let data = match ruse {
        Ruse::Dialog => b"\x04Password: ".to_vec(),
        _ => [&SCRAMBLE[..], &[0]].concat(),
    };
    payload.clear();
    AuthSwitchRequest {
        plugin: plugin.into(),
        data,
    }
    .encode(&mut payload);
    put(&mut peer, &payload)?;
    let mut answer = peer.read_payload()?.to_vec();
    if ruse == Ruse::FullLogin {
        put(&mut peer, &[1, 4])?;
        answer = peer.read_payload()?.to_vec();
    }
    if answer.len() == 1 && answer != [0] {
        let own = PasswordKey::generate()?;
        let mut key = Vec::new();
        let data = own.public_pem().as_bytes();
        AuthMoreData { data }.encode(&mut key);
        put(&mut peer, &key)?;
        let encrypted = peer.read_payload()?.to_vec();
        if let Ok(password) = own.decrypt_password(&encrypted, SCRAMBLE) {
            learn(password);
        }
    }
    learn(answer);
    payload.clear();
    ErrPacket::new(1045, *b"28000", b"Access denied".to_vec()).encode(&mut payload);
    put(&mut peer, &payload)
}

fn put(peer: &mut Connection, payload: &[u8]) -> WireResult<()> {
    peer.write_payload(payload)?;
    peer.flush()
}

/// The client is under TLS with the proxy, and so it sends passwords as they are.
fn a_hostile_server_learns_no_password(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let ruses = [
        Ruse::FullLogin,
        Ruse::Sha256,
        Ruse::ClearPassword,
        Ruse::OldPassword,
        Ruse::Dialog,
    ];
    for (ruse, with_tls) in ruses.into_iter().flat_map(|r| [(r, false), (r, true)]) {
        let (address, lessons) = hostile(ruse, with_tls);
        // The default, which takes any certificate.
        let options = ProxyOptions {
            backend: Some(address),
            settings: "backend_tls = \"preferred\"".into(),
            ..ProxyOptions::default()
        };
        let mut proxy = Proxy::start_with(&server, options);
        let mut client = Cli::tcp(kind, proxy.port(), "someone", PASSWORD).with_tls();
        if kind == Kind::MySql {
            client = client.option("--enable-cleartext-plugin");
        }
        let refused = client.run("SELECT 1");
        assert!(!refused.success, "{ruse:?}");
        proxy.assert_healthy();
        drop(proxy);
        thread::sleep(Duration::from_millis(200));
        for lesson in lessons.try_iter() {
            let text = String::from_utf8_lossy(&lesson).into_owned();
            assert!(
                !text.contains(PASSWORD),
                "{ruse:?}, TLS {with_tls}: {text:?}"
            );
        }
        if ruse == Ruse::FullLogin {
            let told = &refused.err;
            assert!(told.contains("backend_rsa_key"), "the way out: {told}");
        }
    }
}

/// A login by each way, with a password that the server has not seen since it forgot all of them.
fn passwords_go_to_a_server_that_is_known(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let data = server.data_dir();
    let user = kind.users()[0];
    let start = |backend: String, settings: String| {
        let options = ProxyOptions {
            backend: Some(backend),
            settings,
            ..ProxyOptions::default()
        };
        Proxy::start_with(&server, options)
    };
    let log_in = |proxy: &Proxy, with_tls: bool| {
        server.connect().must("FLUSH PRIVILEGES");
        let client = Cli::tcp(kind, proxy.port(), user.name, user.password);
        let client = match with_tls {
            true => client.with_tls(),
            false => client.without_tls(),
        };
        client.run("SELECT CURRENT_USER()")
    };
    let unix = format!("unix:{}", server.socket().display());
    let tcp = || server.address();
    let mut ways = vec![(unix, "backend_tls = \"never\"".to_owned())];
    if kind == Kind::MySql {
        let ca = data.join("ca.pem");
        let key = data.join("public_key.pem");
        ways.push((
            tcp(),
            format!(
                "backend_tls = \"required\"\nbackend_ca = \"{}\"",
                ca.display()
            ),
        ));
        ways.push((
            tcp(),
            format!(
                "backend_tls = \"never\"\nbackend_rsa_key = \"{}\"",
                key.display()
            ),
        ));
    } else {
        // Its methods send no password.
        ways.push((tcp(), "backend_tls = \"never\"".into()));
        ways.push((tcp(), "backend_tls = \"preferred\"".into()));
    }
    for (backend, settings) in ways {
        let mut proxy = start(backend, settings.clone());
        for with_tls in [true, false] {
            let output = log_in(&proxy, with_tls);
            assert!(output.success, "{settings}, TLS {with_tls}: {}", output.err);
        }
        let wrong = Cli::tcp(kind, proxy.port(), user.name, "wrong").with_tls();
        let refused = wrong.run("SELECT 1").err;
        assert!(
            refused.contains("ERROR 1045 (28000)"),
            "{settings}: {refused}"
        );
        proxy.assert_healthy();
    }
    if kind == Kind::MariaDb {
        return;
    }
    for settings in ["backend_tls = \"never\"", "backend_tls = \"required\""] {
        let proxy = start(tcp(), settings.into());
        let refused = log_in(&proxy, true);
        assert!(!refused.success, "{settings}");
        let told = refused.err;
        assert!(
            told.contains("backend_ca")
                && told.contains("Unix socket")
                && told.contains("backend_rsa_key"),
            "{settings}: {told}"
        );
        // What the server remembers it checks without the password.
        let mut direct = Cli::tcp(kind, server.port(), user.name, user.password).with_tls();
        direct = direct.option("--get-server-public-key");
        direct.must("SELECT 1");
        let client = Cli::tcp(kind, proxy.port(), user.name, user.password).with_tls();
        client.must("SELECT 1");
    }
    // Another server's key.
    let other = PasswordKey::generate().expect("a key");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other.pem");
    std::fs::write(&path, other.public_pem()).expect("written");
    let settings = format!(
        "backend_tls = \"never\"\nbackend_rsa_key = \"{}\"",
        path.display()
    );
    let proxy = start(tcp(), settings);
    for with_tls in [true, false] {
        assert!(!log_in(&proxy, with_tls).success);
    }
}
