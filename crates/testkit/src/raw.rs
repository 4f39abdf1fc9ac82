//! The MySQL protocol by hand, for what no client library would send.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// How long an answer may take before the test calls it missing.
const PATIENCE: Duration = Duration::from_secs(15);

/// A TCP connection that sends whatever it is told to.
pub struct RawClient {
    stream: TcpStream,
}

/// What the other side did.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// A packet that is no error.
    Packet(Vec<u8>),
    /// An error packet: number and text.
    Error(u16, String),
    /// The connection was closed or reset.
    Closed,
    /// Nothing, for longer than the test waits.
    Silence,
}

/// A packet with its header.
pub fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short packet");
    let mut bytes = length.to_le_bytes()[..3].to_vec();
    bytes.push(sequence);
    bytes.extend_from_slice(payload);
    bytes
}

impl RawClient {
    /// Connects to 127.0.0.1.
    pub fn connect(port: u16) -> RawClient {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a TCP connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        RawClient { stream }
    }

    /// Connects and logs in as root, who has no password.
    pub fn login(port: u16) -> RawClient {
        Self::login_with(port, login_payload)
    }

    /// The same as a client of MariaDB that asks for extended metadata.
    pub fn login_extended(port: u16) -> RawClient {
        Self::login_with(port, |plugin| {
            const LONG_PASSWORD: u8 = 1;
            const EXTENDED_METADATA: u8 = 1 << 3;
            let mut payload = login_payload(plugin);
            payload[0] &= !LONG_PASSWORD;
            // behind the capabilities, the longest packet, the collation and 19 reserved bytes
            payload[4 + 4 + 1 + 19] = EXTENDED_METADATA;
            payload
        })
    }

    /// The same as a client that is told of changes in its session.
    pub fn login_tracking(port: u16) -> RawClient {
        Self::login_with(port, |plugin| {
            const SESSION_TRACK: u8 = 1 << 7;
            let mut payload = login_payload(plugin);
            payload[2] |= SESSION_TRACK;
            payload
        })
    }

    /// Logs in as a user without a password, whose name has these bytes in this character set, the
    /// number of one of its collations.
    pub fn login_as(port: u16, user: &[u8], charset: u8) -> RawClient {
        RawClient::login_with(port, |plugin| login_payload_of(user, charset, plugin))
    }

    /// Logs in as root into a database, whose name has these bytes in this character set.
    pub fn login_into(port: u16, database: &[u8], charset: u8) -> RawClient {
        const CONNECT_WITH_DB: u8 = 0x8;
        RawClient::login_with(port, |plugin| {
            let mut payload = login_payload_of(b"root", charset, plugin);
            payload[0] |= CONNECT_WITH_DB;
            // behind the fixed part, the name, and an answer of no bytes
            let at = 32 + b"root\0".len() + 1;
            payload.splice(at..at, [database, b"\0"].concat());
            payload
        })
    }

    fn login_with(port: u16, payload: impl Fn(&[u8]) -> Vec<u8>) -> RawClient {
        let mut client = RawClient::connect(port);
        let Reply::Packet(greeting) = client.read() else {
            panic!("no greeting")
        };
        let plugin = greeting_plugin(&greeting);
        client.send(&packet(1, &payload(&plugin)));
        loop {
            match client.read_numbered() {
                (_, Reply::Packet(reply)) if reply[0] == 0x00 => return client,
                // Another plugin: an empty password has an empty answer in all of them.
                (sequence, Reply::Packet(reply)) if reply[0] == 0xfe => {
                    client.send(&packet(sequence + 1, b""))
                }
                (_, Reply::Packet(reply)) if reply[0] == 0x01 => {}
                (_, other) => panic!("login as root: {other:?}"),
            }
        }
    }

    /// Sends bytes as they are. A connection that is closed meanwhile is found by the next `read`.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Sends a command: its code and what follows.
    pub fn command(&mut self, code: u8, rest: &[u8]) {
        self.send(&packet(0, &[&[code], rest].concat()));
    }

    /// Sends a statement as text and reads its whole answer, of which the first packet is returned.
    pub fn query(&mut self, sql: &[u8]) -> Reply {
        self.command(3, sql);
        let first = self.read();
        // Neither OK nor an error: the number of columns. Their definitions follow, EOF, the rows,
        // EOF.
        if matches!(&first, Reply::Packet(packet) if packet.first() != Some(&0)) {
            self.until_eof();
            self.until_eof();
        }
        first
    }

    /// Sends a command and reads as many lists as its answer has, each of which an EOF packet ends;
    /// returns all packets but these. `None`: there is no list, the answer is one packet.
    pub fn lists(&mut self, code: u8, rest: &[u8], lists: usize) -> Option<Vec<Vec<u8>>> {
        self.command(code, rest);
        let mut packets = Vec::new();
        let mut ended = 0;
        while ended < lists {
            match self.read() {
                Reply::Packet(packet) if packets.is_empty() && packet[0] == 0 && code == 3 => {
                    return None;
                }
                Reply::Packet(packet) if packet[0] == 0xfe && packet.len() < 9 => ended += 1,
                Reply::Packet(packet) => packets.push(packet),
                other => panic!("{:?}: {other:?}", String::from_utf8_lossy(rest)),
            }
        }
        Some(packets)
    }

    /// Prepares a statement; returns its id.
    pub fn prepare(&mut self, sql: &[u8]) -> [u8; 4] {
        let prepared = self.try_prepare(sql);
        prepared.unwrap_or_else(|other| panic!("{}: {other:?}", String::from_utf8_lossy(sql)))
    }

    /// The same, or what the other side says in its place.
    pub fn try_prepare(&mut self, sql: &[u8]) -> Result<[u8; 4], Reply> {
        self.command(22, sql);
        let prepared = match self.read() {
            Reply::Packet(prepared) => prepared,
            other => return Err(other),
        };
        // Definitions of the parameters and of the columns, an EOF after each, if there are any.
        for count in [&prepared[7..9], &prepared[5..7]] {
            if count != [0, 0] {
                self.until_eof();
            }
        }
        Ok(prepared[1..5].try_into().expect("four bytes"))
    }

    /// Reads up to an EOF packet.
    pub fn until_eof(&mut self) {
        while let Reply::Packet(packet) = self.read() {
            if packet.first() == Some(&0xfe) && packet.len() < 9 {
                return;
            }
        }
    }

    /// No more bytes from this side.
    pub fn finish_sending(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The next packet.
    pub fn read(&mut self) -> Reply {
        self.read_numbered().1
    }

    /// Reads until the other side closes. False if it says nothing more for a long time, but does
    /// not close.
    pub fn closes(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(e) => {
                    return e.kind() != ErrorKind::WouldBlock && e.kind() != ErrorKind::TimedOut;
                }
            }
        }
    }

    /// The sequence number and the next packet.
    pub fn read_numbered(&mut self) -> (u8, Reply) {
        match self.try_read() {
            Ok((sequence, payload)) => match payload.first() {
                Some(0xff) if payload.len() >= 3 => {
                    let number = u16::from_le_bytes([payload[1], payload[2]]);
                    (
                        sequence,
                        Reply::Error(number, String::from_utf8_lossy(&payload[3..]).into_owned()),
                    )
                }
                _ => (sequence, Reply::Packet(payload)),
            },
            Err(e) if e.kind() == ErrorKind::WouldBlock || e.kind() == ErrorKind::TimedOut => {
                (0, Reply::Silence)
            }
            Err(_) => (0, Reply::Closed),
        }
    }

    fn try_read(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header)?;
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        Ok((header[3], payload))
    }
}

/// The plugin that the server's greeting names: the last of its strings.
fn greeting_plugin(greeting: &[u8]) -> Vec<u8> {
    let end = greeting.len().saturating_sub(1);
    let start = greeting[..end]
        .iter()
        .rposition(|byte| *byte == 0)
        .map_or(0, |at| at + 1);
    greeting[start..end].to_vec()
}

/// HandshakeResponse41 of root without a password.
pub fn login_payload(plugin: &[u8]) -> Vec<u8> {
    login_payload_of(b"root", 45, plugin) // utf8mb4_general_ci
}

/// The same of another user, in another character set.
pub fn login_payload_of(user: &[u8], charset: u8, plugin: &[u8]) -> Vec<u8> {
    // LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, MULTI_STATEMENTS, MULTI_RESULTS,
    // PLUGIN_AUTH
    let capabilities: u32 = 0x1 | 0x200 | 0x2000 | 0x8000 | 0x1_0000 | 0x2_0000 | 0x8_0000;
    let mut payload = capabilities.to_le_bytes().to_vec();
    payload.extend((16u32 << 20).to_le_bytes());
    payload.push(charset);
    payload.extend([0; 23]);
    payload.extend(user);
    payload.push(0);
    payload.push(0); // length of the answer to the challenge
    payload.extend(plugin);
    payload.push(0);
    payload
}
