//! The PROXY protocol: a header before a connection's first byte, which tells where the client is.
//! From balancers before the proxy, in versions 1 and 2; to the server, in version 2.
//!
//! A balancer's header is believed from listed addresses only, and asked of them: one that sends
//! none is refused, so that nobody who gets past the balancer's own checks is taken for the
//! balancer. From all other addresses it is no part of the protocol, and refused like any packet
//! that is none.

use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use onionskin_wire::Socket;
use socket2::SockRef;

use crate::client_address::ClientAddress;

/// How long a header may take: it is the first thing that is sent.
const TIME: Duration = Duration::from_secs(5);
/// What version 2 begins with.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// What version 1 begins with.
const WORD: &[u8] = b"PROXY ";
/// Longest line of version 1, with its end.
const LONGEST_LINE: usize = 107;
/// Commands and families of version 2, with its number and the transport.
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
const UNSPECIFIED: u8 = 0x00;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;
/// Most bytes behind the fixed part of version 2: addresses, and what else a balancer tells.
const LONGEST_REST: usize = 4096;

/// Reads the header, and nothing behind it. `Ok(None)`: the balancer speaks for itself, as in a
/// check of its own.
pub(crate) fn read(socket: &Socket) -> io::Result<Option<SocketAddr>> {
    let mut reader = Timed {
        socket,
        until: Instant::now() + TIME,
    };
    let told = read_from(&mut reader);
    socket.set_read_timeout(None)?;
    told
}

/// What stands before a connection to the server that is made for this client; `None`: for nobody.
///
/// Where the client has connected to is not told: servers have no use for it. A client of a Unix
/// socket has no address, and the server takes the proxy's.
pub(crate) fn header(client: Option<ClientAddress>) -> Vec<u8> {
    let from = client.and_then(ClientAddress::tcp);
    let from = from.map(|from| (from.ip().to_canonical(), from.port()));
    let addresses = |from: &[u8], port: u16| {
        let (nowhere, no_port) = (vec![0; from.len()], [0; 2]);
        [from, &nowhere, &port.to_be_bytes(), &no_port].concat()
    };
    let (command, family, rest) = match from {
        None => (LOCAL, UNSPECIFIED, Vec::new()),
        Some((IpAddr::V4(from), port)) => (PROXY, TCP4, addresses(&from.octets(), port)),
        Some((IpAddr::V6(from), port)) => (PROXY, TCP6, addresses(&from.octets(), port)),
    };
    let length = rest.len() as u16; // 36 at most
    let fixed = [&[command, family][..], &length.to_be_bytes()].concat();
    [SIGNATURE, &fixed[..], &rest].concat()
}

fn malformed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "no header of the PROXY protocol")
}

fn read_from(reader: &mut impl Read) -> io::Result<Option<SocketAddr>> {
    let mut begin = [0; SIGNATURE.len()];
    reader.read_exact(&mut begin)?;
    if &begin == SIGNATURE {
        return read_binary(reader);
    }
    if !begin.starts_with(WORD) {
        return Err(malformed());
    }
    let mut line = begin.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() >= LONGEST_LINE {
            return Err(malformed());
        }
        let mut byte = [0];
        reader.read_exact(&mut byte)?;
        line.push(byte[0]);
    }
    let line = str::from_utf8(&line[WORD.len()..line.len() - 2]).map_err(|_| malformed())?;
    told_by(line).ok_or_else(malformed)
}

/// What a line of version 1 says behind its first word. `None`: nothing that can be read.
fn told_by(line: &str) -> Option<Option<SocketAddr>> {
    let mut words = line.split(' ');
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(None);
    }
    let (from, to): (IpAddr, IpAddr) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let (port, _) = (port_of(words.next()?)?, port_of(words.next()?)?);
    let fits = match family {
        "TCP4" => from.is_ipv4() && to.is_ipv4(),
        "TCP6" => from.is_ipv6() && to.is_ipv6(),
        _ => false,
    };
    (fits && words.next().is_none()).then(|| Some(SocketAddr::new(from, port)))
}

/// Digits alone: the parser of the library would take a sign as well.
fn port_of(word: &str) -> Option<u16> {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|_| is_number)
}

/// What stands behind the signature of version 2.
fn read_binary(reader: &mut impl Read) -> io::Result<Option<SocketAddr>> {
    let mut fixed = [0; 4];
    reader.read_exact(&mut fixed)?;
    let [command, family, high, low] = fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > LONGEST_REST {
        return Err(malformed());
    }
    let mut rest = vec![0; length];
    reader.read_exact(&mut rest)?;
    match (command, family) {
        // UNSPEC: the balancer does not know either, or its client has no address
        (LOCAL, _) | (PROXY, UNSPECIFIED) => Ok(None),
        // an address is followed by the other one, then by the two ports
        (PROXY, TCP4) if length >= 12 => {
            let from = Ipv4Addr::new(rest[0], rest[1], rest[2], rest[3]);
            Ok(Some(SocketAddr::from((from, port_at(&rest, 8)))))
        }
        (PROXY, TCP6) if length >= 36 => {
            let mut from = [0; 16];
            from.copy_from_slice(&rest[..16]);
            Ok(Some(SocketAddr::from((
                Ipv6Addr::from(from),
                port_at(&rest, 32),
            ))))
        }
        _ => Err(malformed()),
    }
}

fn port_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Reads until a moment, however slowly it comes.
struct Timed<'a> {
    socket: &'a Socket,
    until: Instant,
}

impl Read for Timed<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) {
            return Err(ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(left))?;
        let socket = SockRef::from(self.socket);
        (&*socket).read(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(bytes: &[u8]) -> Option<Option<String>> {
        let mut rest = bytes;
        let told = read_from(&mut rest).ok()?;
        assert_eq!(rest, b"rest", "nothing behind it is read");
        Some(told.map(|address| address.to_string()))
    }

    fn binary(command: u8, family: u8, content: &[u8]) -> Vec<u8> {
        let length = (content.len() as u16).to_be_bytes();
        [
            &SIGNATURE[..],
            &[command, family],
            &length,
            content,
            b"rest",
        ]
        .concat()
    }

    #[test]
    fn both_versions_are_read() {
        let four = told(b"PROXY TCP4 10.1.2.3 10.0.0.1 40000 3307\r\nrest");
        assert_eq!(four, Some(Some("10.1.2.3:40000".into())));
        let six = told(b"PROXY TCP6 2001:db8::1 ::1 40000 3307\r\nrest");
        assert_eq!(six, Some(Some("[2001:db8::1]:40000".into())));
        assert_eq!(told(b"PROXY UNKNOWN\r\nrest"), Some(None));
        assert_eq!(
            told(b"PROXY UNKNOWN ffff::1 ffff::1 1 2\r\nrest"),
            Some(None)
        );
        let four = [10, 1, 2, 3, 10, 0, 0, 1, 0x9c, 0x40, 0x0c, 0xeb];
        let more = [&four[..], &[3, 0, 4, 1, 2, 3, 4]].concat();
        assert_eq!(
            told(&binary(0x21, 0x11, &more)),
            Some(Some("10.1.2.3:40000".into()))
        );
        let mut six = [0; 36];
        (six[15], six[32], six[33]) = (1, 0x9c, 0x40);
        assert_eq!(
            told(&binary(0x21, 0x21, &six)),
            Some(Some("[::1]:40000".into()))
        );
        assert_eq!(told(&binary(0x20, 0x00, &[])), Some(None));
        assert_eq!(told(&binary(0x21, 0x00, &[1, 2, 3])), Some(None));
    }

    #[test]
    fn what_is_written_is_read() {
        let written = |client: Option<ClientAddress>| {
            let header = header(client);
            told(&[&header[..], b"rest"].concat())
        };
        for address in ["10.1.2.3:40000", "[2001:db8::1]:1"] {
            let client = ClientAddress::Tcp(address.parse().unwrap());
            assert_eq!(written(Some(client)), Some(Some(address.into())));
        }
        let mapped = ClientAddress::Tcp("[::ffff:10.1.2.3]:9".parse().unwrap());
        assert_eq!(written(Some(mapped)), Some(Some("10.1.2.3:9".into())));
        assert_eq!(
            written(Some(ClientAddress::Unix { user: None })),
            Some(None)
        );
        assert_eq!(written(None), Some(None));
    }

    #[test]
    fn what_is_no_header_is_an_error() {
        for wrong in [
            &b"PROXY TCP4 10.1.2.3 ::1 40000 3307\r\nrest"[..],
            b"PROXY TCP4 10.1.2.3 10.0.0.1 70000 3307\r\nrest",
            b"PROXY TCP4 10.1.2.3 10.0.0.1 1 2 3\r\nrest",
            b"PROXY TCP4 10.1.2.3 10.0.0.1 +1 3307\r\nrest",
            b"PROXY UDP4 10.1.2.3 10.0.0.1 1 2\r\nrest",
            b"GET / HTTP/1.1\r\n\r\nrest",
            b"PROXY TCP4 10.1.2.3",
            &[b"PROXY UNKNOWN ".as_slice(), &[b'x'; 200]].concat(),
            &binary(0x21, 0x11, &[0; 11]),
            &binary(0x21, 0x12, &[0; 12]),
            &binary(0x31, 0x11, &[0; 12]),
            &binary(0x21, 0x31, &[0; 216]),
            &binary(0x21, 0x11, &[0; LONGEST_REST + 1]),
        ] {
            let mut rest = wrong;
            assert!(
                read_from(&mut rest).is_err(),
                "{:?}",
                String::from_utf8_lossy(wrong)
            );
        }
    }
}
