//! Packets over real sockets: long payloads, sequence numbers, buffering, TLS.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use onionskin_wire::messages::ErrPacket;
use onionskin_wire::packets::{Packets, Released};
use onionskin_wire::tls::{ServerVerification, client_config, server_config};
use onionskin_wire::{Connection, Direction, Transport, WireError};
use rustls::pki_types::ServerName;

const FULL: usize = 0xff_ffff;

fn pair() -> (Connection, Connection) {
    let (a, b) = UnixStream::pair().unwrap();
    (
        Connection::new(Transport::Unix(a)),
        Connection::new(Transport::Unix(b)),
    )
}

/// A connection and the bare socket at its other end.
fn against_socket() -> (Connection, UnixStream) {
    let (a, b) = UnixStream::pair().unwrap();
    (Connection::new(Transport::Unix(a)), b)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i % 251) as u8).collect()
}

#[test]
fn payloads_around_the_packet_limit_arrive_whole() {
    for (length, packets) in [
        (0, 1),
        (1, 1),
        (70_000, 1),
        (FULL - 1, 1),
        (FULL, 2),
        (FULL + 1, 2),
        (2 * FULL, 3),
    ] {
        for in_place in [false, true] {
            let (mut a, mut b) = pair();
            let payload = pattern(length);
            let sent = payload.clone();
            let writer = thread::spawn(move || {
                if in_place {
                    a.begin_payload();
                    a.payload_buffer().extend_from_slice(&sent);
                    a.end_payload().unwrap();
                } else {
                    a.write_payload(&sent).unwrap();
                }
                a.write_payload(b"next").unwrap();
                a.flush().unwrap();
                a.sequence()
            });
            assert!(b.read_payload().unwrap() == payload, "{length} bytes");
            assert_eq!(b.sequence(), packets);
            assert_eq!(b.read_payload().unwrap(), b"next");
            assert_eq!(writer.join().unwrap(), packets + 1);
        }
    }
}

#[test]
fn one_read_takes_in_a_whole_answer() {
    let (mut a, mut b) = pair();
    for i in 0..300u32 {
        a.write_payload(&i.to_le_bytes()).unwrap();
    }
    assert!(a.has_unsent_output());
    a.flush().unwrap();
    assert!(!b.has_buffered_packet());
    for i in 0..300u32 {
        // Also: the sequence number wraps at 256.
        assert_eq!(b.read_payload().unwrap(), i.to_le_bytes());
        assert_eq!(b.last_payload(), i.to_le_bytes());
        assert_eq!(b.has_buffered_packet(), i != 299);
    }
    assert_eq!(b.sequence(), 44);
}

#[test]
fn packets_that_arrive_byte_by_byte() {
    let (mut conn, mut socket) = against_socket();
    conn.transport()
        .set_read_timeout(Some(Duration::from_millis(5)))
        .unwrap();
    for byte in b"\x03\0\0\0abc" {
        // A timeout loses nothing.
        assert!(conn.read_payload().unwrap_err().is_timeout());
        socket.write_all(&[*byte]).unwrap();
    }
    assert_eq!(conn.read_payload().unwrap(), b"abc");
}

#[test]
fn a_timeout_within_a_long_payload_loses_nothing() {
    let (mut conn, mut socket) = against_socket();
    conn.transport()
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let payload = pattern(FULL + 10);
    let sent = payload.clone();
    let writer = thread::spawn(move || {
        socket.write_all(&[0xff, 0xff, 0xff, 0]).unwrap();
        socket.write_all(&sent[..FULL / 2]).unwrap();
        thread::sleep(Duration::from_millis(60));
        socket.write_all(&sent[FULL / 2..FULL]).unwrap();
        thread::sleep(Duration::from_millis(60));
        socket.write_all(&[10, 0, 0, 1]).unwrap();
        socket.write_all(&sent[FULL..]).unwrap();
        socket
    });
    let mut timeouts = 0;
    loop {
        match conn.read_payload() {
            Ok(got) => {
                assert!(got == payload);
                break;
            }
            Err(e) => {
                assert!(e.is_timeout(), "{e}");
                timeouts += 1;
            }
        }
    }
    assert!(timeouts >= 1);
    writer.join().unwrap();
}

#[test]
fn a_wrong_sequence_number_is_refused() {
    let (mut conn, mut socket) = against_socket();
    socket.write_all(b"\x01\0\0\x05x").unwrap();
    let error = conn.read_payload().unwrap_err();
    assert!(matches!(
        error,
        WireError::SequenceMismatch {
            expected: 0,
            got: 5
        }
    ));
}

#[test]
fn the_farewell_of_a_server_is_read_in_place_of_an_answer() {
    let (mut conn, mut socket) = against_socket();
    socket
        .write_all(b"\x0c\0\0\0\xff\xbf\x0f#HY000bye")
        .unwrap();
    conn.write_payload(b"\x03SELECT 1").unwrap();
    conn.flush().unwrap();
    let error = ErrPacket::decode(conn.read_payload().unwrap()).unwrap();
    assert_eq!(error.code, 4031);
    assert!(conn.said_farewell());
    // it is still there, for who passes it on
    let words = conn.read_farewell().map(<[u8]>::to_vec);
    assert_eq!(words.as_deref(), Some(&b"\xff\xbf\x0f#HY000bye"[..]));
}

#[test]
fn what_a_server_says_before_the_end_is_its_farewell_or_nothing() {
    for (bytes, is_farewell) in [
        (&b"\x0c\0\0\0\xff\xbf\x0f#HY000bye"[..], true),
        // the end of an answer that nobody has read
        (&b"\x0c\0\0\x01\xff\xbf\x0f#HY000bye"[..], false),
        (&b"\x07\0\0\0\0\0\0\x02\0\0\0"[..], false),
        (&b"\x0c\0\0\0\xff\xbf\x0f#HY"[..], false),
        (&b""[..], false),
    ] {
        let (mut conn, mut socket) = against_socket();
        socket.write_all(bytes).unwrap();
        drop(socket);
        assert_eq!(conn.read_farewell().is_some(), is_farewell, "{bytes:?}");
    }
}

#[test]
fn ends_of_connections_are_told_apart() {
    let (mut conn, socket) = against_socket();
    drop(socket);
    assert!(matches!(conn.read_payload(), Err(WireError::Closed)));

    let (mut conn, mut socket) = against_socket();
    socket.write_all(b"\x05\0\0\0ab").unwrap();
    drop(socket);
    let error = conn.read_payload().unwrap_err();
    assert!(matches!(error, WireError::Io(_)) && error.is_disconnect());
}

#[test]
fn a_header_alone_claims_no_memory_and_a_limit_holds() {
    let (mut conn, mut socket) = against_socket();
    conn.set_max_payload(1000);
    socket.write_all(&[0xff, 0xff, 0x7f, 0]).unwrap();
    assert!(matches!(
        conn.read_payload(),
        Err(WireError::TooLarge { limit: 1000 })
    ));

    let (mut conn, mut socket) = against_socket();
    conn.set_max_payload(FULL + 5);
    let writer = thread::spawn(move || {
        socket.write_all(&[0xff, 0xff, 0xff, 0]).unwrap();
        socket.write_all(&pattern(FULL)).unwrap();
        socket.write_all(&[6, 0, 0, 1]).unwrap();
        socket
    });
    assert!(matches!(
        conn.read_payload(),
        Err(WireError::TooLarge { .. })
    ));
    writer.join().unwrap();
}

#[test]
fn a_cancelled_payload_leaves_no_trace() {
    let (mut a, mut b) = pair();
    a.write_payload(b"one").unwrap();
    a.begin_payload().extend_from_slice(b"half a ro");
    a.cancel_payload();
    a.write_payload(b"two").unwrap();
    a.flush().unwrap();
    assert_eq!(b.read_payload().unwrap(), b"one");
    assert_eq!(b.read_payload().unwrap(), b"two");
}

#[test]
fn held_output_is_taken_back_whole() {
    let (mut a, mut b) = pair();
    a.write_payload(b"before").unwrap();
    for in_place in [false, true] {
        let payloads = [pattern(3), pattern(70_000), pattern(FULL), Vec::new()];
        a.hold(2 * FULL);
        for payload in &payloads {
            if in_place {
                a.begin_payload().extend_from_slice(payload);
                a.end_payload().unwrap();
            } else {
                a.write_payload(payload).unwrap();
            }
        }
        let Released::Held(packets) = a.release() else {
            panic!("it is held")
        };
        let mut read = Packets::of(&packets);
        for payload in &payloads {
            assert_eq!(&*read.next().unwrap(), payload.as_slice());
        }
        assert_eq!(read.place(), packets.len());
        assert!(read.next().is_none());
    }
    a.write_payload(b"behind").unwrap();
    a.flush().unwrap();
    assert_eq!(b.read_payload().unwrap(), b"before");
    assert_eq!(b.read_payload().unwrap(), b"behind");
}

#[test]
fn held_output_has_a_bound_and_can_be_sent() {
    let (mut a, mut b) = pair();
    a.hold(100_000);
    for _ in 0..100 {
        a.write_payload(&pattern(10_000)).unwrap();
    }
    assert_eq!(a.release(), Released::TooLong);
    assert!(!a.has_unsent_output());
    a.hold(100_000);
    a.write_payload(b"one").unwrap();
    a.flush().unwrap();
    a.write_payload(b"two").unwrap();
    assert_eq!(a.release(), Released::Sent);
    a.flush().unwrap();
    assert_eq!(b.read_payload().unwrap(), b"one");
    assert_eq!(b.read_payload().unwrap(), b"two");
}

#[test]
fn shrinking_keeps_what_was_not_read() {
    let (mut a, mut b) = pair();
    let writer = thread::spawn(move || {
        a.write_payload(&pattern(3_000_000)).unwrap();
        a.write_payload(b"kept").unwrap();
        a.flush().unwrap();
        a
    });
    assert_eq!(b.read_payload().unwrap().len(), 3_000_000);
    writer.join().unwrap();
    b.shrink_idle();
    assert_eq!(b.read_payload().unwrap(), b"kept");
}

#[test]
fn a_tap_sees_whole_payloads_both_ways() {
    let (mut a, mut b) = pair();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    a.set_tap(Some(Box::new(move |direction, payload: &[u8]| {
        log.lock().unwrap().push((direction, payload.to_vec()));
    })));
    a.write_payload(b"ping").unwrap();
    a.begin_payload().extend_from_slice(b"in place");
    a.end_payload().unwrap();
    a.flush().unwrap();
    b.read_payload().unwrap();
    b.read_payload().unwrap();
    b.write_payload(b"pong").unwrap();
    b.flush().unwrap();
    a.read_payload().unwrap();
    a.set_tap(None);
    a.write_payload(b"unseen").unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            (Direction::Sent, b"ping".to_vec()),
            (Direction::Sent, b"in place".to_vec()),
            (Direction::Received, b"pong".to_vec()),
        ]
    );
}

struct Certificate {
    pem: Vec<u8>,
    key: Vec<u8>,
}

fn certificate(name: &str) -> Certificate {
    let made = rcgen::generate_simple_self_signed(vec![name.to_string()]).unwrap();
    Certificate {
        pem: made.cert.pem().into_bytes(),
        key: made.signing_key.serialize_pem().into_bytes(),
    }
}

/// Runs a TLS handshake and one exchange; the client's result.
fn exchange(
    certificate: &Certificate,
    verification: ServerVerification,
    name: &'static str,
) -> Result<(), WireError> {
    let (mut client, mut server) = pair();
    let config = server_config(&certificate.pem, &certificate.key).unwrap();
    let served = thread::spawn(move || -> Result<(), WireError> {
        server.upgrade_server_tls(config)?;
        let echo = server.read_payload()?.to_vec();
        server.write_payload(&echo)?;
        server.flush()
    });
    let result = (|| {
        let config = client_config(&verification)?;
        client.upgrade_client_tls(config, ServerName::try_from(name).unwrap())?;
        assert!(client.transport().is_tls() && client.is_secure());
        let payload = pattern(200_000);
        client.write_payload(&payload)?;
        client.flush()?;
        assert!(client.read_payload()? == payload);
        // The server is gone now.
        assert!(matches!(client.read_payload(), Err(WireError::Closed)));
        Ok(())
    })();
    drop(client);
    assert_eq!(served.join().unwrap().is_ok(), result.is_ok());
    result
}

#[test]
fn tls_checks_what_its_name_says() {
    let ours = certificate("db.example");
    let other = certificate("db.example");
    use ServerVerification as V;
    let both = V::AuthorityAndName(ours.pem.clone());
    let authority = V::AuthorityOnly(ours.pem.clone());
    let none = V::EncryptionWithoutAuthentication;
    assert!(exchange(&ours, both.clone(), "db.example").is_ok());
    assert!(matches!(
        exchange(&ours, both.clone(), "elsewhere.example"),
        Err(WireError::Tls(_))
    ));
    assert!(exchange(&ours, authority.clone(), "elsewhere.example").is_ok());
    assert!(matches!(
        exchange(&other, authority, "db.example"),
        Err(WireError::Tls(_))
    ));
    assert!(matches!(
        exchange(&other, both, "db.example"),
        Err(WireError::Tls(_))
    ));
    assert!(exchange(&other, none, "elsewhere.example").is_ok());
}

/// A client may send the beginning of TLS together with its request for it.
#[test]
fn bytes_behind_the_request_for_tls_belong_to_tls() {
    let certificate = certificate("db.example");
    let (mut server, mut socket) = against_socket();
    let config = server_config(&certificate.pem, &certificate.key).unwrap();
    let mut tls = rustls::ClientConnection::new(
        client_config(&ServerVerification::EncryptionWithoutAuthentication).unwrap(),
        ServerName::try_from("db.example").unwrap(),
    )
    .unwrap();
    let mut early = b"\x04\0\0\0wish".to_vec();
    tls.write_tls(&mut early).unwrap();
    socket.write_all(&early).unwrap();
    let served = thread::spawn(move || {
        assert_eq!(server.read_payload().unwrap(), b"wish");
        assert!(server.has_buffered_input());
        server.upgrade_server_tls(config).unwrap();
        assert_eq!(server.read_payload().unwrap(), b"login");
    });
    let mut stream = rustls::StreamOwned::new(tls, socket);
    stream.write_all(b"\x05\0\0\x01login").unwrap();
    stream.flush().unwrap();
    served.join().unwrap();
}

/// Packets in the clear that somebody slipped in before TLS must not be taken for the peer's.
#[test]
fn plain_bytes_before_tls_are_refused() {
    let certificate = certificate("db.example");
    let (mut server, mut socket) = against_socket();
    let config = server_config(&certificate.pem, &certificate.key).unwrap();
    socket
        .write_all(b"\x04\0\0\0wish\x05\0\0\x01login")
        .unwrap();
    server.read_payload().unwrap();
    assert!(server.upgrade_server_tls(config).is_err());
    assert!(server.read_payload().is_err());

    let (mut client, mut socket) = against_socket();
    socket.write_all(b"\x02\0\0\0hi\x05\0\0\x01evil!").unwrap();
    client.read_payload().unwrap();
    let config = client_config(&ServerVerification::EncryptionWithoutAuthentication).unwrap();
    let name = ServerName::try_from("db.example").unwrap();
    assert!(client.upgrade_client_tls(config, name).is_err());
    assert!(client.read_payload().is_err());
}

#[test]
fn another_thread_can_end_a_blocked_read() {
    let (mut conn, mut socket) = against_socket();
    let handle = conn.transport().try_clone_socket().unwrap();
    let reader = thread::spawn(move || conn.read_payload().map(<[u8]>::to_vec));
    thread::sleep(Duration::from_millis(20));
    handle.shutdown().unwrap();
    assert!(matches!(reader.join().unwrap(), Err(WireError::Closed)));
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
}
