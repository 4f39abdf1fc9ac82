//! Files of the binary log that are longer than 4 GiB. An event's head tells the lower 32 bits of
//! its end, and no stream begins behind 4 GiB.
//!
//! The server here sends a few small events whose ends lie a gibibyte apart.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use onionskin_rowstream::binlog::event::kind;
use onionskin_rowstream::binlog::{Change, FollowOptions, Follower, Item, Position, Tables};
use onionskin_rowstream::client::{Address, ConnectOptions};

const GIB: u64 = 1 << 30;
const FILE: &str = "binlog.000007";

/// An event of which only the lower 32 bits of its end are told. No checksums.
fn event(kind: u8, body: &[u8], end: u64, flags: u16) -> Vec<u8> {
    let mut event = vec![0; 4];
    event.push(kind);
    event.extend(1u32.to_le_bytes());
    event.extend((19 + body.len() as u32).to_le_bytes());
    event.extend((end as u32).to_le_bytes());
    event.extend(flags.to_le_bytes());
    event.extend(body);
    event
}

fn format_description() -> Vec<u8> {
    let mut body = 4u16.to_le_bytes().to_vec();
    body.extend([0; 50]);
    body.extend([0; 4]);
    body.push(19);
    // No checksums, and the room for one.
    body.extend([0; 5]);
    event(kind::FORMAT_DESCRIPTION, &body, 4 + 19 + 62, 0)
}

/// A definition, which is a transaction by itself.
fn statement(sql: &str, end: u64) -> Vec<u8> {
    let mut body = vec![0; 13];
    body.push(0);
    body.extend(sql.as_bytes());
    event(kind::QUERY, &body, end, 0)
}

/// The statements of the file and where they end. The fourth ends at 4 GiB exactly.
fn statements() -> Vec<(&'static str, u64)> {
    let fourth = statement("four", 0).len() as u64;
    vec![
        ("one", GIB),
        ("two", 2 * GIB),
        ("three", 4 * GIB - fourth),
        ("four", 4 * GIB),
        ("five", 5 * GIB),
        ("six", 7 * GIB),
        ("seven", 8 * GIB + 100),
    ]
}

fn file() -> Vec<Vec<u8>> {
    const ARTIFICIAL: u16 = 0x20;
    let mut rotate = 4u64.to_le_bytes().to_vec();
    rotate.extend(FILE.as_bytes());
    let mut events = vec![
        event(kind::ROTATE, &rotate, 0, ARTIFICIAL),
        format_description(),
    ];
    events.extend(statements().iter().map(|(sql, end)| statement(sql, *end)));
    events
}

struct Peer {
    socket: TcpStream,
    sequence: u8,
}

impl Peer {
    fn read(&mut self) -> Option<Vec<u8>> {
        let mut head = [0; 4];
        self.socket.read_exact(&mut head).ok()?;
        let mut payload = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
        self.socket.read_exact(&mut payload).ok()?;
        self.sequence = head[3].wrapping_add(1);
        Some(payload)
    }

    fn write(&mut self, payload: &[u8]) {
        let mut packet = (payload.len() as u32).to_le_bytes();
        packet[3] = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        let _ = self.socket.write_all(&[&packet[..], payload].concat());
    }
}

const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];
const EOF: [u8; 5] = [0xfe, 0, 0, 2, 0];

/// Serves one connection: a login, the one setting that is asked for, and the file from its
/// beginning. Where each stream was to begin is added to `asked`.
fn serve(socket: TcpStream, asked: &Mutex<Vec<u32>>) {
    let mut peer = Peer {
        socket,
        sequence: 0,
    };
    let mut greeting = vec![10];
    greeting.extend(b"8.4.0\0");
    greeting.extend(7u32.to_le_bytes());
    greeting.extend(b"scramble\0");
    // PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION; PLUGIN_AUTH
    greeting.extend((1u16 | 1 << 9 | 1 << 13 | 1 << 15).to_le_bytes());
    greeting.push(45);
    greeting.extend(2u16.to_le_bytes());
    greeting.extend((1u16 << 3).to_le_bytes());
    greeting.push(21);
    greeting.extend([0; 10]);
    greeting.extend(b"continued--.\0");
    greeting.extend(b"mysql_native_password\0");
    peer.write(&greeting);
    if peer.read().is_none() {
        return;
    }
    peer.write(&OK);
    while let Some(command) = peer.read() {
        match command.split_first() {
            Some((0x03, sql)) if sql.ends_with(b"'log_bin'") => {
                let mut column = b"\x03def\0\0\0\x01c\0\x0c".to_vec();
                column.extend([45, 0, 255, 0, 0, 0, 253, 0, 0, 0, 0, 0]);
                let row = b"\x07log_bin\x02ON";
                for payload in [&[2][..], &column, &column, &EOF, row, &EOF] {
                    peer.write(payload);
                }
            }
            Some((0x12, arguments)) => {
                let offset = arguments[..4].try_into().expect("four bytes");
                asked.lock().unwrap().push(u32::from_le_bytes(offset));
                assert_eq!(&arguments[10..], FILE.as_bytes());
                for event in file() {
                    peer.write(&[&[0][..], &event].concat());
                }
                peer.write(&EOF);
            }
            Some((0x01, _)) | None => return,
            Some(_) => peer.write(&OK),
        }
    }
}

/// Statements and where they end, or why they cannot be read.
type Found = Result<Vec<(String, u64)>, String>;

/// The statements behind a place, and where the stream began.
fn follow(from: u64) -> (Found, Vec<u32>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = listener.local_addr().expect("its address").port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    thread::spawn(move || {
        if let Ok((socket, _)) = listener.accept() {
            serve(socket, &noted);
        }
    });
    let connect = ConnectOptions {
        address: Address::Tcp {
            host: "127.0.0.1".into(),
            port,
        },
        user: "root".into(),
        password: String::new(),
        tls: None,
        trust: Default::default(),
        identity: None,
    };
    let mut options = FollowOptions::new(9, Tables::new());
    options.stream.stop_at_end = true;
    let read = || {
        let follower = Follower::connect(&connect, options, &Position::new(FILE, from))?;
        let mut found = Vec::new();
        for item in follower {
            if let Item::Transaction(transaction) = item? {
                for change in transaction.changes {
                    if let Change::Statement { sql, .. } = change {
                        found.push((sql, transaction.end.offset));
                    }
                }
            }
        }
        Ok(found)
    };
    let found = read().map_err(|error: onionskin_rowstream::binlog::BinlogError| error.to_string());
    let asked = asked.lock().unwrap().clone();
    (found, asked)
}

fn behind(from: u64) -> Vec<(String, u64)> {
    let all = statements().into_iter();
    all.filter(|(_, end)| *end > from)
        .map(|(sql, end)| (sql.to_owned(), end))
        .collect()
}

#[test]
fn a_long_file_is_followed_from_its_beginning() {
    assert_eq!(follow(4), (Ok(behind(4)), vec![4]));
}

#[test]
fn a_stream_goes_on_at_any_place_of_a_long_file() {
    for from in [4 * GIB, 5 * GIB, 7 * GIB, 8 * GIB + 100] {
        assert_eq!(follow(from), (Ok(behind(from)), vec![4]), "{from}");
    }
}

#[test]
fn a_place_that_a_file_does_not_have_is_an_error() {
    for from in [4 * GIB + 1, 6 * GIB, 8 * GIB, 9 * GIB] {
        let (found, _) = follow(from);
        let error = found.expect_err("no such place");
        assert!(
            error.contains(&format!("no event of the binlog ends at {FILE}:{from}")),
            "{error}"
        );
    }
}
