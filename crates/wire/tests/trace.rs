//! The tracer names every packet and shows no value.

use std::sync::{Arc, Mutex};

use onionskin_wire::messages::*;
use onionskin_wire::trace::{Peer, Tracer};
use onionskin_wire::{Capabilities, Direction, MariaDbCapabilities, StatusFlags};

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

/// A session from the greeting on: who sends what.
fn session() -> Vec<(bool, Vec<u8>)> {
    let (client, server) = (true, false);
    let capabilities = Capabilities::SUPPORTED;
    let greeting = InitialHandshake {
        server_version: b"8.4.0".to_vec(),
        connection_id: 1,
        auth_data: vec![b's'; 20],
        capabilities,
        mariadb_capabilities: MariaDbCapabilities::empty(),
        charset: 255,
        status: StatusFlags::AUTOCOMMIT,
        auth_plugin: b"caching_sha2_password".to_vec(),
    };
    let login = HandshakeResponse41 {
        capabilities,
        mariadb_capabilities: MariaDbCapabilities::empty(),
        max_packet_size: 1 << 24,
        charset: 255,
        username: b"SECRET".to_vec(),
        auth_response: b"SECRET".to_vec(),
        database: None,
        auth_plugin: None,
        connect_attrs: None,
    };
    let switch = AuthSwitchRequest {
        plugin: b"mysql_native_password".to_vec(),
        data: b"SECRET".to_vec(),
    };
    let ok = |ends_rows| {
        encoded(|out| {
            OkPacket {
                ends_rows,
                info: b"SECRET",
                ..OkPacket::default()
            }
            .encode(out, capabilities);
        })
    };
    let column = ColumnDefinition {
        catalog: b"def"[..].into(),
        name: b"SECRET"[..].into(),
        ..ColumnDefinition::default()
    };
    vec![
        (server, encoded(|out| greeting.encode(out).unwrap())),
        (client, encoded(|out| login.encode(out).unwrap())),
        (server, encoded(|out| switch.encode(out))),
        (client, b"SECRET".to_vec()),
        (server, ok(false)),
        (client, b"\x03SELECT 'SECRET'".to_vec()),
        (server, vec![1]),
        (server, encoded(|out| column.encode(out))),
        (server, b"\x06SECRET".to_vec()),
        (server, ok(true)),
        (client, b"\x03INSERT SECRET".to_vec()),
        (
            server,
            encoded(|out| ErrPacket::new(1062, *b"23000", &b"SECRET"[..]).encode(out)),
        ),
        (client, b"\x03LOAD DATA LOCAL INFILE SECRET".to_vec()),
        (server, b"\xfbSECRET".to_vec()),
        (client, b"SECRET".to_vec()),
        (client, Vec::new()),
        (server, ok(false)),
        (client, b"\x01".to_vec()),
    ]
}

fn trace(peer: Peer, with_text: bool) -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log = lines.clone();
    let sink = Box::new(move |line: &str| log.lock().unwrap().push(line.to_string()));
    let mut tracer = Tracer::new("s1", peer, sink).with_text(with_text);
    let mut sequence = 0;
    for (from_client, payload) in session() {
        if from_client && payload.len() < 40 && payload.first().is_some_and(|&b| b < 4) {
            sequence = 0;
        }
        let direction = if from_client == (peer == Peer::Client) {
            Direction::Received
        } else {
            Direction::Sent
        };
        tracer.record(direction, sequence, &payload);
        sequence += 1;
    }
    lines.lock().unwrap().clone()
}

#[test]
fn every_packet_has_its_name_and_no_value() {
    let lines = trace(Peer::Client, false);
    let kinds = [
        "greeting",
        "login",
        "switch to login method mysql_native_password",
        "login data",
        "login OK",
        "COM_QUERY",
        "column count 1",
        "column definition",
        "row",
        "end of rows status StatusFlags(AUTOCOMMIT)",
        "COM_QUERY",
        "error 1062 (23000)",
        "COM_QUERY",
        "request for a file",
        "file data",
        "file data end",
        "OK status StatusFlags(AUTOCOMMIT)",
        "COM_QUIT",
    ];
    assert_eq!(lines.len(), kinds.len());
    for (line, kind) in lines.iter().zip(kinds) {
        assert!(line.ends_with(kind), "{line} is not {kind}");
        assert!(!line.contains("SECRET"), "{line}");
    }
    assert_eq!(lines[5], "s1 < seq 0 len 16 COM_QUERY");
    // Seen from the other side only the arrows differ.
    let mirrored: Vec<_> = trace(Peer::Server, false)
        .iter()
        .map(|l| l.replace(['<', '>'], "|"))
        .collect();
    let lines: Vec<_> = lines.iter().map(|l| l.replace(['<', '>'], "|")).collect();
    assert_eq!(mirrored, lines);
}

#[test]
fn with_text_the_bytes_are_there() {
    let lines = trace(Peer::Server, true);
    assert!(lines[5].ends_with("SELECT \\'SECRET\\'"), "{}", lines[5]);
}
