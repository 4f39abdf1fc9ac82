//! Logins between a client and a server that are played by the tests: a Unix socket stands for a
//! leg that is secure, TCP for one that is not. Each side holds the other's messages against what
//! it should get.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the lines that clients and servers say |
//! | `offers` | the greeting and capabilities |
//! | `methods` | the login methods |
//! | `strangers` | a server that may be anybody |
//! | `broken_off` | logins that end early |
//! | `changes` | COM_CHANGE_USER |

mod broken_off;
mod changes;
mod methods;
mod offers;
mod strangers;

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use onionskin_plan::errors;
use onionskin_value::Family;
use onionskin_wire::auth::{
    CACHING_SHA2_PASSWORD, LinkTrust, MYSQL_CLEAR_PASSWORD, MYSQL_NATIVE_PASSWORD, PasswordKey,
    ServerKey, caching_sha2_password, cleartext_password, encrypt_password,
};
use onionskin_wire::messages::{
    AuthMoreData, AuthSwitchRequest, ComChangeUser, ErrPacket, HandshakeResponse41,
    InitialHandshake, OkPacket,
};
use onionskin_wire::{
    Capabilities, Connection, DefinitionForm, MariaDbCapabilities, StatusFlags, Transport,
};

use super::connect::within;
use super::error::{LoginError, LoginResult, UNLIKE_LEGS};
use super::excuse::NOBODY;
use super::legs::write;
use super::password::{FOREIGN_KEY, OTHER_SERVER_KEY, UNTRUSTED, password_key};
use super::{Login, LoginSettings, Timing, change_user, login};
use crate::client_address::ClientAddress;
use crate::config::Backend;

/// Where the clients are.
const FROM: ClientAddress = ClientAddress::Unix { user: None };
const SCRAMBLE: &[u8; 20] = b"0123456789abcdefghij";
const SECOND: &[u8; 20] = b"ABCDEFGHIJ0123456789";
const PASSWORD: &[u8] = b"hunter2 and more";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Leg {
    Secure,
    Open,
}
use Leg::{Open, Secure};

/// What came of a login, on the three sides.
struct Played<C, S> {
    login: LoginResult<Option<Login>>,
    client: C,
    server: S,
}

fn settings(backend: Backend) -> LoginSettings {
    LoginSettings::plain(backend)
}

/// The server's key is the one that this program makes for itself.
fn pinned() -> LinkTrust {
    let pem = password_key().unwrap().public_pem();
    LinkTrust {
        tls_verifies: false,
        rsa_key: Some(Arc::new(ServerKey::from_pem(pem.as_bytes()).unwrap())),
    }
}

fn timing() -> Timing {
    Timing {
        whole: Instant::now() + Duration::from_secs(30),
        pace: None,
    }
}

fn client_pair(leg: Leg) -> (Connection, Transport) {
    match leg {
        Secure => {
            let (a, b) = UnixStream::pair().unwrap();
            (Connection::new(Transport::Unix(a)), Transport::Unix(b))
        }
        Open => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let b = listener.accept().unwrap().0;
            (Connection::new(Transport::Tcp(a)), Transport::Tcp(b))
        }
    }
}

fn play<C: Send, S: Send>(
    legs: (Leg, Leg),
    client: impl FnOnce(&mut Connection) -> C + Send,
    server: impl FnOnce(&mut Connection) -> S + Send,
) -> Played<C, S> {
    play_with(LinkTrust::default(), legs, client, server)
}

fn play_with<C: Send, S: Send>(
    trust: LinkTrust,
    legs: (Leg, Leg),
    client: impl FnOnce(&mut Connection) -> C + Send,
    server: impl FnOnce(&mut Connection) -> S + Send,
) -> Played<C, S> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let path: PathBuf = std::env::temp_dir().join(format!(
        "onionskin-login-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    ));
    let (mut near, far) = client_pair(legs.0);
    thread::scope(|scope| {
        let (backend, server) = match legs.1 {
            Secure => {
                let listener = UnixListener::bind(&path).unwrap();
                let backend = Backend::Unix(path.clone());
                let accept = move || Transport::Unix(listener.accept().unwrap().0);
                (
                    backend,
                    scope.spawn(move || server(&mut Connection::new(accept()))),
                )
            }
            Open => {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                let backend = listener.local_addr().unwrap().to_string().parse().unwrap();
                let accept = move || Transport::Tcp(listener.accept().unwrap().0);
                (
                    backend,
                    scope.spawn(move || server(&mut Connection::new(accept()))),
                )
            }
        };
        let client = scope.spawn(move || client(&mut near));
        let settings = Arc::new(LoginSettings {
            trust,
            ..settings(backend)
        });
        let login = login(
            far,
            FROM,
            1,
            &|| settings.clone(),
            &|_, _| Ok(()),
            &timing(),
        );
        let server = server.join().unwrap();
        let client = client.join().unwrap();
        let _ = std::fs::remove_file(&path);
        Played {
            login,
            client,
            server,
        }
    })
}

// --- the client's and the server's lines ---

fn get(connection: &mut Connection) -> Vec<u8> {
    connection.read_payload().unwrap().to_vec()
}

fn put(connection: &mut Connection, payload: &[u8]) {
    write(connection, payload).unwrap();
}

fn greeting() -> InitialHandshake {
    InitialHandshake {
        server_version: b"9.7.4".to_vec(),
        connection_id: 77,
        auth_data: SCRAMBLE.to_vec(),
        capabilities: Capabilities::all() - Capabilities::SSL,
        mariadb_capabilities: MariaDbCapabilities::empty(),
        charset: 255,
        status: StatusFlags::AUTOCOMMIT,
        auth_plugin: CACHING_SHA2_PASSWORD.into(),
    }
}

fn greet(server: &mut Connection, greeting: &InitialHandshake) -> HandshakeResponse41 {
    let mut payload = Vec::new();
    greeting.encode(&mut payload).unwrap();
    put(server, &payload);
    HandshakeResponse41::decode(&get(server)).unwrap()
}

fn response(plugin: &str, answer: &[u8]) -> HandshakeResponse41 {
    HandshakeResponse41 {
        capabilities: Capabilities::LONG_PASSWORD
            | Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION
            | Capabilities::PLUGIN_AUTH
            | Capabilities::DEPRECATE_EOF,
        mariadb_capabilities: MariaDbCapabilities::empty(),
        max_packet_size: 1 << 24,
        charset: 45,
        username: b"someone".to_vec(),
        auth_response: answer.to_vec(),
        database: None,
        auth_plugin: Some(plugin.into()),
        connect_attrs: None,
    }
}

fn answer_greeting(client: &mut Connection, response: &HandshakeResponse41) -> InitialHandshake {
    let greeting = InitialHandshake::decode(&get(client)).unwrap();
    let mut payload = Vec::new();
    response.encode(&mut payload).unwrap();
    put(client, &payload);
    greeting
}

fn switch(plugin: &str, scramble: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    AuthSwitchRequest {
        plugin: plugin.into(),
        data: [scramble, &[0]].concat(),
    }
    .encode(&mut payload);
    payload
}

fn ok() -> Vec<u8> {
    let mut payload = Vec::new();
    OkPacket::default().encode(&mut payload, Capabilities::SUPPORTED);
    payload
}

fn code(payload: &[u8]) -> u16 {
    ErrPacket::decode(payload).unwrap().code
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}

const DENIED: &[u8] = b"\xff\x15\x04#28000Access denied";

/// Nothing that the client sent reaches the server: a login of nobody's does, and whatever the
/// server asks, that ends soon.
fn refuse_nobody(server: &mut Connection) {
    let login = HandshakeResponse41::decode(&get(server)).unwrap();
    assert_eq!(login.username, NOBODY);
    assert!(!login.auth_response.is_empty() && login.database.is_none());
    put(server, &switch(CACHING_SHA2_PASSWORD, SECOND));
    assert_eq!(get(server), login.auth_response);
    put(server, b"\xff\x15\x04#28000Access denied");
    assert!(server.read_payload().is_err(), "it is over");
}
