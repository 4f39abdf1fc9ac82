//! Logins between a client and a server that are played by the tests: a Unix socket stands for a leg that is
//! secure, TCP for one that is not. Each side holds the other's messages against what it should get.

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use onionskin_wire::StatusFlags;
use onionskin_wire::auth::{
    CACHING_SHA2_PASSWORD, MYSQL_CLEAR_PASSWORD, ServerKey, caching_sha2_password,
    cleartext_password, encrypt_password,
};
use onionskin_wire::messages::{AuthMoreData, AuthSwitchRequest, OkPacket};

use super::excuse::NOBODY;
use super::password::{FOREIGN_KEY, OTHER_SERVER_KEY, UNTRUSTED};
use super::*;

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
    LoginSettings {
        backend,
        client_tls: None,
        backend_tls: BackendTls::Never,
        trust: LinkTrust::default(),
        trace: false,
    }
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
        let settings = LoginSettings {
            trust,
            ..settings(backend)
        };
        let login = login(far, 1, &settings, &timing());
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

// --- greeting and capabilities ---

#[test]
fn a_client_is_offered_what_the_proxy_can_read() {
    let mariadb = InitialHandshake {
        server_version: b"5.5.5-10.11.19-MariaDB".to_vec(),
        capabilities: Capabilities::all() - Capabilities::LONG_PASSWORD,
        mariadb_capabilities: MariaDbCapabilities::all(),
        ..greeting()
    };
    let expected = mariadb.clone();
    let played = play(
        (Open, Open),
        |client| {
            let mut response = response(MYSQL_NATIVE_PASSWORD, b"twenty bytes or so..");
            response.capabilities |= Capabilities::FOUND_ROWS | Capabilities::QUERY_ATTRIBUTES;
            answer_greeting(client, &response)
        },
        move |server| {
            let response = greet(server, &mariadb);
            put(server, &ok());
            response
        },
    );
    let (offered, told) = (played.client, played.server);
    assert_eq!(offered.server_version, expected.server_version);
    assert_eq!(offered.auth_data, expected.auth_data);
    assert_eq!(offered.connection_id, 77);
    assert_eq!(offered.mariadb_capabilities, MariaDbCapabilities::empty());
    let supported = Capabilities::SUPPORTED - Capabilities::SSL - Capabilities::LONG_PASSWORD;
    assert_eq!(offered.capabilities, supported);

    assert!(told.capabilities.contains(
        Capabilities::FOUND_ROWS | Capabilities::DEPRECATE_EOF | Capabilities::SESSION_TRACK
    ));
    assert!(!told.capabilities.intersects(
        Capabilities::QUERY_ATTRIBUTES
            | Capabilities::SSL
            | Capabilities::MULTI_STATEMENTS
            | Capabilities::LOCAL_FILES
            | Capabilities::COMPRESS
    ));
    assert_eq!(told.auth_response, b"twenty bytes or so..");

    let login = played.login.unwrap().unwrap();
    assert_eq!(login.family, Family::MariaDb);
    assert_eq!(login.server_version, "10.11.19-MariaDB");
    assert_eq!((login.user.as_str(), login.charset), ("someone", 45));
    assert_eq!(login.client.sequence(), 2);
    assert_eq!(login.ok, ok());
    assert!(
        !login
            .client_capabilities
            .contains(Capabilities::SESSION_TRACK)
    );
}

#[test]
fn an_error_in_the_place_of_the_greeting_is_passed_on_as_it_is() {
    let error = b"\xff\x10\x04Too many connections";
    let played = play((Open, Open), get, |server| put(server, error));
    assert!(played.login.unwrap().is_none());
    assert_eq!(played.client, error);
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error_in_the_first_packet() {
    let (mut client, far) = client_pair(Open);
    let nobody = Backend::Unix("/nonexistent/socket".into());
    let error = login(far, 1, &settings(nobody), &timing()).err().unwrap();
    assert!(matches!(error, LoginError::Unreachable(_)));
    // `read_payload` checks that its sequence number is 0.
    let payload = get(&mut client);
    let packet = ErrPacket::decode(&payload).unwrap();
    assert_eq!(packet.code, errors::BACKEND_REFUSED.number);
    assert_eq!(packet.sqlstate, None, "as servers have it before the login");
}

/// Nothing that the client sent reaches the server: a login of nobody's does, and whatever the server asks, that ends soon.
fn refuse_nobody(server: &mut Connection) {
    let login = HandshakeResponse41::decode(&get(server)).unwrap();
    assert_eq!(login.username, NOBODY);
    assert!(!login.auth_response.is_empty() && login.database.is_none());
    put(server, &switch(CACHING_SHA2_PASSWORD, SECOND));
    assert_eq!(get(server), login.auth_response);
    put(server, b"\xff\x15\x04#28000Access denied");
    assert!(server.read_payload().is_err(), "it is over");
}

#[test]
fn a_client_older_than_4_1_is_refused() {
    let played = play(
        (Open, Open),
        |client| {
            get(client);
            put(client, b"\x05\x00\x00\x00\x00root\0");
            get(client)
        },
        |server| {
            let mut payload = Vec::new();
            greeting().encode(&mut payload).unwrap();
            put(server, &payload);
            refuse_nobody(server);
        },
    );
    assert!(played.login.is_err());
    assert_eq!(code(&played.client), errors::MALFORMED.number);
}

#[test]
fn a_client_that_leaves_is_no_error() {
    let played = play(
        (Open, Open),
        |client| drop(get(client)),
        |server| {
            let mut payload = Vec::new();
            greeting().encode(&mut payload).unwrap();
            put(server, &payload);
            refuse_nobody(server);
        },
    );
    // The client's end of the connection is closed when its thread ends.
    assert!(matches!(played.login, Ok(None)));
}

// --- methods ---

#[test]
fn the_servers_refusal_is_passed_on_with_the_right_number() {
    let error = b"\xff\x15\x04#28000Access denied";
    let played = play(
        (Open, Open),
        |client| {
            answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"wrong"));
            assert_eq!(get(client), switch(CACHING_SHA2_PASSWORD, SECOND));
            put(client, b"wrong again");
            get(client)
        },
        |server| {
            greet(server, &greeting());
            put(server, &switch(CACHING_SHA2_PASSWORD, SECOND));
            assert_eq!(get(server), b"wrong again");
            put(server, error);
        },
    );
    assert!(played.login.unwrap().is_none());
    assert_eq!(played.client, error);
}

/// Full authentication of `caching_sha2_password` as clients and servers do it on a leg of their own.
fn full_authentication(legs: (Leg, Leg)) {
    let server_key = password_key().unwrap();
    let played = play_with(
        pinned(),
        legs,
        |client| {
            let answer = caching_sha2_password(PASSWORD, SCRAMBLE);
            answer_greeting(client, &response(CACHING_SHA2_PASSWORD, &answer));
            assert_eq!(get(client), [1, 4]);
            if legs.0 == Secure {
                put(client, &cleartext_password(PASSWORD));
            } else {
                put(client, AuthMoreData::REQUEST_PUBLIC_KEY);
                let key = get(client);
                put(
                    client,
                    &encrypt_password(PASSWORD, SCRAMBLE, &key[1..]).unwrap(),
                );
            }
        },
        |server| {
            let response = greet(server, &greeting());
            assert_eq!(
                response.auth_response,
                caching_sha2_password(PASSWORD, SCRAMBLE)
            );
            put(server, &[1, 4]);
            let password = if legs.1 == Secure {
                get(server)
            } else {
                if legs.0 == Open {
                    assert_eq!(get(server), AuthMoreData::REQUEST_PUBLIC_KEY);
                    let key = [&[1], server_key.public_pem().as_bytes()].concat();
                    put(server, &key);
                }
                let encrypted = get(server);
                assert!(!contains(&encrypted, PASSWORD));
                cleartext_password(&server_key.decrypt_password(&encrypted, SCRAMBLE).unwrap())
            };
            put(server, &ok());
            password
        },
    );
    assert_eq!(played.server, cleartext_password(PASSWORD), "{legs:?}");
    assert!(played.login.unwrap().is_some(), "{legs:?}");
}

#[test]
fn a_password_arrives_over_every_pair_of_legs() {
    for legs in [
        (Secure, Secure),
        (Secure, Open),
        (Open, Secure),
        (Open, Open),
    ] {
        full_authentication(legs);
    }
}

#[test]
fn a_password_under_another_key_is_refused_and_goes_nowhere() {
    let played = play(
        (Open, Secure),
        |client| {
            answer_greeting(client, &response(CACHING_SHA2_PASSWORD, &[7; 32]));
            get(client);
            put(client, &[9; 256]);
            get(client)
        },
        |server| {
            greet(server, &greeting());
            put(server, &[1, 4]);
            assert_eq!(get(server), [0], "no password, so that the server refuses");
            put(server, DENIED);
            assert!(server.read_payload().is_err());
        },
    );
    assert!(matches!(
        played.login,
        Err(LoginError::Refused(FOREIGN_KEY))
    ));
    assert_eq!(code(&played.client), 1251);
}

#[test]
fn a_password_in_the_first_answer_is_withheld() {
    for plugin in [MYSQL_CLEAR_PASSWORD, "sha256_password", "dialog"] {
        let played = play(
            (Secure, Open),
            |client| {
                answer_greeting(client, &response(plugin, &cleartext_password(PASSWORD)));
                get(client);
                put(client, b"twenty bytes or so..");
            },
            |server| {
                let first = greet(server, &greeting());
                put(server, &switch(MYSQL_NATIVE_PASSWORD, SECOND));
                assert_eq!(get(server), b"twenty bytes or so..");
                put(server, &ok());
                first
            },
        );
        assert!(played.server.auth_response.is_empty(), "{plugin}");
        assert_ne!(played.server.auth_plugin, Some(plugin.into()));
        assert!(played.login.unwrap().is_some());
    }
}

#[test]
fn a_clear_password_needs_two_secure_legs() {
    for legs in [
        (Secure, Open),
        (Open, Secure),
        (Open, Open),
        (Secure, Secure),
    ] {
        let secure = legs == (Secure, Secure);
        let answer = ok();
        let played = play(
            legs,
            |client| {
                answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"x"));
                let asked = get(client);
                if secure {
                    put(client, &cleartext_password(PASSWORD));
                }
                asked
            },
            |server| {
                greet(server, &greeting());
                put(server, &switch(MYSQL_CLEAR_PASSWORD, b""));
                let got = get(server);
                put(server, if secure { &answer } else { DENIED });
                got
            },
        );
        if secure {
            assert_eq!(played.server, cleartext_password(PASSWORD));
            assert!(played.login.unwrap().is_some());
        } else {
            assert_eq!(played.server, b"\xff\0", "{legs:?}");
            assert_eq!(code(&played.client), 1251, "the client is not even asked");
            assert!(played.login.is_err());
        }
    }
}

#[test]
fn an_unknown_method_is_passed_on_between_legs_alike() {
    let played = play(
        (Open, Open),
        |client| {
            answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"x"));
            assert_eq!(get(client), switch("dialog", b"\x04One?"));
            put(client, b"first");
            put(client, b"without being asked");
            assert_eq!(get(client), b"\x05Two?");
            put(client, b"second");
            assert_eq!(get(client), b"\x02no answer to this");
        },
        |server| {
            greet(server, &greeting());
            put(server, &switch("dialog", b"\x04One?"));
            assert_eq!(get(server), b"first");
            assert_eq!(get(server), b"without being asked");
            put(server, b"\x05Two?");
            assert_eq!(get(server), b"second");
            put(server, b"\x02no answer to this");
            put(server, &ok());
        },
    );
    assert!(played.login.unwrap().is_some());
}

#[test]
fn an_unknown_method_is_refused_between_legs_unlike() {
    for legs in [(Secure, Open), (Open, Secure)] {
        let played = play(
            legs,
            |client| {
                answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"x"));
                get(client)
            },
            |server| {
                greet(server, &greeting());
                put(server, &switch("dialog", b"\x04Password?"));
                assert_eq!(get(server), [0xff; 20]);
            },
        );
        assert!(matches!(
            played.login,
            Err(LoginError::Refused(UNLIKE_LEGS))
        ));
        assert_eq!(code(&played.client), 1251);
    }
}

#[test]
fn challenges_in_turn_are_passed_on_over_any_legs() {
    let played = play(
        (Open, Secure),
        |client| {
            answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"x"));
            assert_eq!(get(client), switch("parsec", SECOND));
            put(client, b"");
            assert_eq!(get(client), b"P0salt");
            put(client, b"signature");
        },
        |server| {
            greet(server, &greeting());
            put(server, &switch("parsec", SECOND));
            assert_eq!(get(server), b"");
            put(server, b"P0salt");
            assert_eq!(get(server), b"signature");
            put(server, &ok());
        },
    );
    assert!(played.login.unwrap().is_some());
}

#[test]
fn data_of_a_method_that_has_none_ends_the_login() {
    let played = play(
        (Open, Open),
        |client| {
            answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"x"));
            get(client)
        },
        |server| {
            greet(server, &greeting());
            put(server, &[1, 4]);
        },
    );
    assert!(matches!(played.login, Err(LoginError::Server(_))));
    assert_eq!(code(&played.client), errors::BACKEND_REFUSED.number);
}

// --- a server that may be anybody ---

/// It asks for the password's full check, and would have an RSA key of its own for it.
#[test]
fn a_password_is_not_encrypted_for_a_key_that_the_peer_sends() {
    let played = play(
        (Secure, Open),
        |client| {
            let answer = caching_sha2_password(PASSWORD, SCRAMBLE);
            answer_greeting(client, &response(CACHING_SHA2_PASSWORD, &answer));
            get(client)
        },
        |server| {
            greet(server, &greeting());
            put(server, &[1, 4]);
            let got = get(server);
            put(server, DENIED);
            got
        },
    );
    assert_eq!(played.server, [0], "no request for a key, no password");
    assert_eq!(code(&played.client), 1251, "the client is not even asked");
    assert!(matches!(played.login, Err(LoginError::Refused(UNTRUSTED))));
}

#[test]
fn methods_that_give_passwords_away_need_a_server_that_is_known() {
    for (plugin, wrong) in [("mysql_old_password", 8), ("dialog", 20)] {
        let played = play(
            (Secure, Open),
            |client| {
                answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b""));
                get(client)
            },
            |server| {
                greet(server, &greeting());
                put(server, &switch(plugin, SECOND));
                let got = get(server);
                put(server, DENIED);
                got
            },
        );
        assert_eq!(played.server, vec![0xff; wrong], "{plugin}");
        assert_eq!(code(&played.client), 1251, "the client is not even asked");
        assert!(matches!(played.login, Err(LoginError::Refused(_))));
    }
}

#[test]
fn another_key_than_the_configured_one_is_not_shown_to_the_client() {
    let other = PasswordKey::generate().unwrap();
    let played = play_with(
        pinned(),
        (Open, Open),
        |client| {
            let answer = caching_sha2_password(PASSWORD, SCRAMBLE);
            answer_greeting(client, &response(CACHING_SHA2_PASSWORD, &answer));
            get(client);
            put(client, AuthMoreData::REQUEST_PUBLIC_KEY);
            get(client)
        },
        |server| {
            greet(server, &greeting());
            put(server, &[1, 4]);
            get(server);
            put(server, &[&[1], other.public_pem().as_bytes()].concat());
            let got = get(server);
            put(server, DENIED);
            got
        },
    );
    assert_eq!(played.server, [0xff; 20]);
    assert_eq!(code(&played.client), 1251);
    assert!(matches!(
        played.login,
        Err(LoginError::Refused(OTHER_SERVER_KEY))
    ));
}

// --- logins that are broken off ---

/// Wherever the client leaves, the server gets an answer that it refuses as a wrong password.
#[test]
fn a_client_that_leaves_after_a_switch_is_refused_and_not_broken_off() {
    for (plugin, expected) in [
        (MYSQL_NATIVE_PASSWORD, 20),
        ("client_ed25519", 64),
        (CACHING_SHA2_PASSWORD, 20),
        ("parsec", 20),
    ] {
        let played = play(
            (Open, Open),
            |client| {
                answer_greeting(client, &response(MYSQL_CLEAR_PASSWORD, b"x"));
                drop(get(client));
            },
            |server| {
                greet(server, &greeting());
                put(server, &switch(plugin, SECOND));
                let got = get(server);
                put(server, DENIED);
                got
            },
        );
        assert_eq!(played.server, vec![0xff; expected], "{plugin}");
        assert!(matches!(played.login, Ok(None)));
    }
}

/// MariaDB counts an answer of another length as a broken greeting.
#[test]
fn an_answer_of_a_strange_length_does_not_reach_the_server() {
    for (plugin, length) in [(MYSQL_NATIVE_PASSWORD, 5), ("client_ed25519", 0)] {
        let played = play(
            (Open, Open),
            |client| {
                answer_greeting(client, &response(MYSQL_NATIVE_PASSWORD, b"12345"));
                get(client);
                put(client, &vec![b'x'; length]);
                get(client)
            },
            |server| {
                let first = greet(server, &greeting());
                assert!(first.auth_response.is_empty(), "withheld");
                put(server, &switch(plugin, SECOND));
                let got = get(server);
                put(server, DENIED);
                got
            },
        );
        assert!(played.server.iter().all(|byte| *byte == 0xff), "{plugin}");
        assert_eq!(code(&played.client), errors::MALFORMED.number);
    }
}

/// Each byte comes in time for a limit that begins anew with each.
#[test]
fn a_client_that_drips_its_login_is_not_waited_for() {
    let (mut near, far) = client_pair(Open);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let backend = listener.local_addr().unwrap().to_string().parse().unwrap();
    let whole = Duration::from_millis(600);
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            let socket = listener.accept().unwrap().0;
            let mut server = Connection::new(Transport::Tcp(socket));
            let mut payload = Vec::new();
            greeting().encode(&mut payload).unwrap();
            put(&mut server, &payload);
            refuse_nobody(&mut server);
        });
        scope.spawn(move || {
            get(&mut near);
            let socket = near.transport().try_clone_socket().unwrap();
            let mut socket = Transport::from(socket);
            for byte in [&[200, 0, 0, 1][..], &[b'x'; 60]].concat() {
                thread::sleep(Duration::from_millis(50));
                if std::io::Write::write_all(&mut socket, &[byte]).is_err() {
                    return;
                }
            }
        });
        let begin = Instant::now();
        let timing = Timing {
            whole: begin + whole,
            pace: None,
        };
        let done = login(far, 1, &settings(backend), &timing);
        assert!(matches!(done, Err(LoginError::Client(e)) if e.is_timeout()));
        assert!(begin.elapsed() >= whole);
        server.join().unwrap();
    });
}

// --- COM_CHANGE_USER ---

#[test]
fn a_change_of_user_asks_for_a_scramble_where_a_password_may_be_encrypted() {
    let capabilities =
        Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION | Capabilities::PLUGIN_AUTH;
    let command = ComChangeUser {
        username: b"other".to_vec(),
        auth_response: vec![7; 32],
        database: b"app".to_vec(),
        charset: Some(45),
        auth_plugin: Some(CACHING_SHA2_PASSWORD.into()),
        connect_attrs: None,
    };
    let (mut near, far) = client_pair(Secure);
    let (mut server, back) = client_pair(Open);
    let (mut client, mut back) = (Connection::new(far), Connection::new(back));
    let mut payload = Vec::new();
    command.encode(&mut payload, capabilities).unwrap();
    let own = password_key().unwrap();
    thread::scope(|scope| {
        let application = scope.spawn(move || {
            put(&mut near, &payload);
            assert_eq!(get(&mut near), switch(CACHING_SHA2_PASSWORD, SECOND));
            put(&mut near, &caching_sha2_password(PASSWORD, SECOND));
            assert_eq!(get(&mut near), [1, 4]);
            put(&mut near, &cleartext_password(PASSWORD));
        });
        let database = scope.spawn(move || {
            let first = ComChangeUser::decode(&get(&mut server), capabilities).unwrap();
            assert!(first.auth_response.is_empty());
            assert_eq!(
                (&first.username[..], &first.database[..]),
                (&b"other"[..], &b"app"[..])
            );
            put(&mut server, &switch(CACHING_SHA2_PASSWORD, SECOND));
            assert_eq!(get(&mut server), caching_sha2_password(PASSWORD, SECOND));
            put(&mut server, &[1, 4]);
            let password = own.decrypt_password(&get(&mut server), SECOND).unwrap();
            assert_eq!(password, PASSWORD);
            put(&mut server, &ok());
        });
        let payload = client.read_command().unwrap().to_vec();
        let verdict = change_user(
            &mut client,
            &mut back,
            &payload,
            pinned(),
            capabilities,
            capabilities,
        )
        .unwrap();
        assert_eq!(verdict, Some(ok()));
        application.join().unwrap();
        database.join().unwrap();
    });
}

#[test]
fn a_name_that_is_not_found_in_time_ends_the_login() {
    let begin = Instant::now();
    let slow = || {
        thread::sleep(Duration::from_secs(20));
        Ok(())
    };
    let error = within(Duration::from_millis(50), slow).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(within(Duration::from_secs(20), || Ok(7)).unwrap(), 7);
}
