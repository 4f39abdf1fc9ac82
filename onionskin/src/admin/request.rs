//! The head of a request, read within bounds: so many bytes, so many headers, so many seconds.
//!
//! A body is never read: no request that is answered has a use for one.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use onionskin_wire::Socket;

/// Longest head, in bytes.
const HEAD: usize = 8 << 10;
/// Most headers.
const HEADERS: usize = 64;

/// What a client asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `GET` and `HEAD` are the ones that are answered.
    pub method: String,
    /// Without what follows a question mark.
    pub path: String,
    /// By which name the client asks; empty if it does not say, or says two.
    pub host: String,
    /// What the client takes.
    pub accept: String,
    /// As it was sent, if it was.
    pub authorization: Option<Vec<u8>>,
}

impl Request {
    /// Whether something may follow that is not read. What follows a GET is none of its own.
    pub fn may_have_body(&self) -> bool {
        !matches!(&*self.method, "GET" | "HEAD")
    }
}

/// Why there is no request.
#[derive(Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is longer than any that is answered.
    TooLong,
    /// It is not HTTP.
    Malformed,
    /// It did not come in time.
    TooSlow,
    /// The client left, or was made to.
    Gone,
}

/// Reads a head.
pub fn read(socket: &mut Socket, until: Instant) -> Result<Request, Unread> {
    let mut buffer = [0; HEAD];
    let mut length = 0;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) {
            return Err(Unread::TooSlow);
        }
        socket
            .set_read_timeout(Some(left))
            .map_err(|_| Unread::Gone)?;
        let arrived = match socket.read(&mut buffer[length..]) {
            Ok(0) => return Err(Unread::Gone),
            Ok(arrived) => arrived,
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => continue,
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => return Err(Unread::TooSlow),
                _ => return Err(Unread::Gone),
            },
        };
        let is_line = buffer[length..length + arrived].contains(&b'\n');
        length += arrived;
        // A head that drips is read again with each of its lines, not with each of its bytes.
        if is_line && let Some(request) = parse(&buffer[..length])? {
            return Ok(request);
        }
        if length == HEAD {
            return Err(Unread::TooLong);
        }
    }
}

/// `None`: the head is not whole yet.
fn parse(bytes: &[u8]) -> Result<Option<Request>, Unread> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Unread::TooLong),
        Err(_) => return Err(Unread::Malformed),
    }
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let mut request = Request {
        method: text(parsed.method),
        path: text(parsed.path.and_then(|path| path.split('?').next())),
        ..Request::default()
    };
    let is_host = |header: &&httparse::Header| header.name.eq_ignore_ascii_case("host");
    if let [host] = *parsed
        .headers
        .iter()
        .filter(|h| is_host(h))
        .collect::<Vec<_>>()
    {
        request.host = String::from_utf8_lossy(host.value).trim().to_owned();
    }
    for header in parsed.headers.iter() {
        if header.name.eq_ignore_ascii_case("authorization") {
            // Two of them are none: they may not agree.
            request.authorization = match request.authorization {
                None => Some(header.value.to_vec()),
                Some(_) => Some(Vec::new()),
            };
        } else if header.name.eq_ignore_ascii_case("accept") {
            request.accept += &String::from_utf8_lossy(header.value);
            request.accept.push(',');
        }
    }
    Ok(Some(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let head = b"GET /metrics?a=b HTTP/1.1\r\nHost: x\r\nACCEPT: text/plain\r\nauthorization: Bearer t\r\n\r\nrest";
        let request = parse(head).expect("sound").expect("whole");
        assert_eq!((&*request.method, &*request.path), ("GET", "/metrics"));
        assert_eq!((&*request.host, &*request.accept), ("x", "text/plain,"));
        assert_eq!(request.authorization.as_deref(), Some(&b"Bearer t"[..]));
        for cut in 0..head.len() - 4 {
            assert_eq!(parse(&head[..cut]), Ok(None), "{cut}");
        }
    }

    #[test]
    fn what_is_no_head_is_told() {
        assert_eq!(parse(b"\x16\x03\x01\x02\x00\n"), Err(Unread::Malformed));
        assert_eq!(parse(b"GET / HTTP/3.0\r\n\r\n"), Err(Unread::Malformed));
        let many = "a: b\r\n".repeat(HEADERS + 1);
        let many = format!("GET / HTTP/1.1\r\n{many}\r\n");
        assert_eq!(parse(many.as_bytes()), Err(Unread::TooLong));
        let twice = b"GET / HTTP/1.1\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n";
        let request = parse(twice).expect("sound").expect("whole");
        assert_eq!(request.authorization, Some(Vec::new()));
    }
}
