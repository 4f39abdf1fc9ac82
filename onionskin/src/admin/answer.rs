//! What is answered to what.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use onionskin_proxy::{Exposition, Observer};
use parking_lot::RwLock;

use super::page::{PAGE, policy};
use super::request::{Request, Unread};
use super::token::Token;

const PLAIN: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

/// An answer, before it is bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    status: (u16, &'static str),
    kind: &'static str,
    /// More headers, without the end of the last line.
    header: Option<String>,
    body: String,
}

/// Knows the answers.
pub struct Clerk {
    observer: Arc<Observer>,
    token: RwLock<Option<Token>>,
}

impl Answer {
    fn plain(number: u16, reason: &'static str, body: impl Into<String>) -> Self {
        Answer {
            status: (number, reason),
            kind: PLAIN,
            header: None,
            body: body.into(),
        }
    }

    fn with(mut self, header: impl Into<String>) -> Self {
        self.header = Some(header.into());
        self
    }

    /// There are too many connections.
    pub fn busy() -> Self {
        Answer::plain(503, "Service Unavailable", "too many connections\n")
    }

    /// To what is no request. `None`: nobody is there to be told.
    pub fn to_unread(unread: &Unread) -> Option<Self> {
        Some(match unread {
            Unread::TooLong => {
                let reason = "Request Header Fields Too Large";
                Answer::plain(431, reason, "the request is too long\n")
            }
            Unread::Malformed => Answer::plain(400, "Bad Request", "this is no HTTP request\n"),
            Unread::TooSlow => Answer::plain(408, "Request Timeout", "the request took too long\n"),
            Unread::Gone => return None,
        })
    }

    /// As it is sent; a `HEAD` gets no body. The connection ends behind it.
    pub fn bytes(&self, is_head: bool) -> Vec<u8> {
        let (number, reason) = self.status;
        let mut text = format!(
            "HTTP/1.1 {number} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
            self.kind,
            self.body.len()
        );
        if let Some(header) = &self.header {
            let _ = write!(text, "{header}\r\n");
        }
        text += "Cache-Control: no-store\r\nConnection: close\r\n\r\n";
        if !is_head {
            text += &self.body;
        }
        text.into_bytes()
    }
}

/// What a client may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Everything.
    Full,
    /// Whether the proxy lives and is ready, and not why it is not.
    Status,
    /// Nothing: the token is wrong.
    None,
}

impl Clerk {
    /// Tells what the observer sees; to those who show the token, if there is one.
    pub fn new(observer: Arc<Observer>, token: Option<Token>) -> Self {
        Clerk {
            observer,
            token: RwLock::new(token),
        }
    }

    /// Asks for another token from now on.
    pub fn set_token(&self, token: Option<Token>) {
        *self.token.write() = token;
    }

    /// The answer to a request.
    pub fn answer(&self, request: &Request) -> Answer {
        let access = self.access(request);
        if access == Access::None {
            return unauthorized();
        }
        let known = ["/live", "/ready", "/metrics", "/status", "/status.json"];
        if !known.contains(&&*request.path) {
            let there = "there are /live, /ready, /metrics, /status and /status.json\n";
            return Answer::plain(404, "Not Found", there);
        }
        if !matches!(&*request.method, "GET" | "HEAD") {
            return Answer::plain(405, "Method Not Allowed", "GET or HEAD\n")
                .with("Allow: GET, HEAD");
        }
        match &*request.path {
            "/live" => Answer::plain(200, "OK", "live\n"),
            "/ready" => self.ready(access),
            // it holds nothing by itself
            "/status" => Answer {
                kind: HTML,
                ..Answer::plain(200, "OK", PAGE).with(policy())
            },
            "/status.json" if access == Access::Full => self.status(request),
            _ if access != Access::Full => unauthorized(),
            _ => self.metrics(&request.accept),
        }
    }

    /// Health checks of balancers and of Kubernetes have no place for a secret: what they need is a
    /// status, and that is told to everybody.
    fn access(&self, request: &Request) -> Access {
        match (&*self.token.read(), &request.authorization) {
            (None, _) => Access::Full,
            (Some(_), None) => Access::Status,
            (Some(token), Some(shown)) if token.is_shown_in(shown) => Access::Full,
            (Some(_), Some(_)) => Access::None,
        }
    }

    /// Who takes OpenMetrics gets it.
    fn metrics(&self, accept: &str) -> Answer {
        let form = match accept.contains("application/openmetrics-text") {
            true => Exposition::OpenMetrics,
            false => Exposition::Prometheus,
        };
        match self.observer.metrics(form) {
            Some(text) => Answer {
                kind: form.content_type(),
                ..Answer::plain(200, "OK", text)
            },
            None => Answer::plain(404, "Not Found", "nothing is counted\n"),
        }
    }

    /// Names and shapes are for those who may ask. Without a token these are the programs of this
    /// machine; a page that a browser has from elsewhere is none of them, and could ask under a
    /// name that it has made point here.
    fn status(&self, request: &Request) -> Answer {
        if self.token.read().is_none() && !is_here(&request.host) {
            let why = "ask by an IP address, or as localhost\n";
            return Answer::plain(403, "Forbidden", why);
        }
        match serde_json::to_string(&self.observer.status()) {
            Ok(text) => Answer {
                kind: JSON,
                ..Answer::plain(200, "OK", text + "\n").with("X-Content-Type-Options: nosniff")
            },
            Err(error) => Answer::plain(500, "Internal Server Error", format!("{error}\n")),
        }
    }

    fn ready(&self, access: Access) -> Answer {
        let parts = self.observer.parts();
        let ready = parts.iter().all(|part| part.fault.is_none());
        let mut body = String::from(if ready { "ready\n" } else { "not ready\n" });
        if access == Access::Full {
            for part in &parts {
                let state = part.fault.as_deref().unwrap_or("ok");
                let note = part.note.as_ref().map(|note| format!("; {note}"));
                let note = note.unwrap_or_default();
                let _ = writeln!(body, "{}: {state}{note}", part.name);
            }
        }
        match ready {
            true => Answer::plain(200, "OK", body),
            false => Answer::plain(503, "Service Unavailable", body),
        }
    }
}

/// Whether the `Host` of a request is an address, or this machine by its own name.
fn is_here(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

fn unauthorized() -> Answer {
    Answer::plain(
        401,
        "Unauthorized",
        "show the token of admin_token_file in Authorization: Bearer\n",
    )
    .with("WWW-Authenticate: Bearer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_are_here() {
        for here in [
            "127.0.0.1",
            "127.0.0.1:3380",
            "[::1]:3380",
            "LOCALHOST:1",
            "10.0.0.7",
        ] {
            assert!(is_here(here), "{here}");
        }
        for elsewhere in ["", "evil.example", "localhost.evil.example:80", "1.2.3.4.x"] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn a_head_has_the_length_and_not_the_body() {
        let answer = Answer::plain(200, "OK", "live\n");
        let head = String::from_utf8(answer.bytes(true)).expect("text");
        let whole = String::from_utf8(answer.bytes(false)).expect("text");
        assert!(head.contains("Content-Length: 5\r\n") && head.ends_with("\r\n\r\n"));
        assert_eq!(whole, head + "live\n");
    }
}
