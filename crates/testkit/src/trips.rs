//! A relay that counts round trips.
//!
//! A round trip: something is sent to the server, and then the server answers. Several commands
//! that are sent before any of them is answered are one.
//!
//! Answers are held back until nothing has been sent for some milliseconds. So commands that are
//! sent one after the other, without waiting, are on their way before the first answer counts,
//! however busy the machine is. And who does not wait for an answer goes on before it is counted.
//!
//! Of two relays that belong together, the second one answers when the first one has: what is
//! asked here and there at the same time is counted the same way each time.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionread;
use tempfile::TempDir;

use crate::wait_until;

/// How long nothing may have been sent before an answer is passed on.
const QUIET: Duration = Duration::from_millis(5);
/// Answers are not held back for longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Commands that servers do not answer: QUIT, STMT_SEND_LONG_DATA, STMT_CLOSE.
const SILENT: [u8; 3] = [0x01, 0x18, 0x19];
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

/// The relay. TLS would hide the commands from it. Dropping it closes the listener; connections end
/// with their peers.
pub struct Trips {
    place: Place,
    inside: Arc<Inside>,
}

enum Place {
    Port(u16),
    /// The folder is removed with the socket.
    Socket(PathBuf, #[allow(dead_code)] TempDir),
}

struct Inside {
    connections: Mutex<Vec<Counted>>,
    is_over: AtomicBool,
    /// When something came by last, here or at a relay that belongs to this one.
    last: Arc<Mutex<Instant>>,
    /// The relay that answers first.
    first: Option<Arc<Inside>>,
}

/// What has come by on a connection.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Round trips, the login's among them.
    pub trips: usize,
    /// The commands in order, in words: texts of statements.
    pub commands: Vec<String>,
    /// Something was sent and is not answered yet.
    is_asked: bool,
    /// Bytes of a packet that has not come as a whole.
    rest: Vec<u8>,
}

impl Trips {
    /// Before a server on a port of 127.0.0.1.
    pub fn to_port(port: u16) -> Trips {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listening socket");
        let own = listener.local_addr().expect("its address").port();
        let inside = Arc::new(Inside::new(None));
        let shared = Arc::clone(&inside);
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let server = TcpStream::connect(("127.0.0.1", port));
                if let (Ok(client), Ok(server)) = (client, server) {
                    shared.join(client, server);
                }
            }
        });
        Trips {
            place: Place::Port(own),
            inside,
        }
    }

    /// Before a server at a Unix socket. `first`: the relay that answers before this one.
    pub fn to_socket(server: PathBuf, first: &Trips) -> Trips {
        let folder = tempfile::Builder::new().prefix("ost-").tempdir_in("/tmp");
        let folder = folder.expect("a temporary folder");
        let own = folder.path().join("s");
        let listener = UnixListener::bind(&own).expect("a listening socket");
        let inside = Arc::new(Inside::new(Some(Arc::clone(&first.inside))));
        let shared = Arc::clone(&inside);
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let server = UnixStream::connect(&server);
                if let (Ok(client), Ok(server)) = (client, server) {
                    shared.join(client, server);
                }
            }
        });
        Trips {
            place: Place::Socket(own, folder),
            inside,
        }
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        match &self.place {
            Place::Port(port) => *port,
            Place::Socket(..) => panic!("a socket"),
        }
    }

    /// The Unix socket to connect to.
    pub fn socket(&self) -> &Path {
        match &self.place {
            Place::Socket(path, _) => path,
            Place::Port(_) => panic!("a port"),
        }
    }

    /// All connections so far, in the order in which they were made.
    pub fn counted(&self) -> Vec<Counted> {
        self.inside.connections().clone()
    }

    /// Waits until all that was asked is answered.
    pub fn settle(&self) {
        wait_until("all answers", PATIENCE, || self.inside.is_settled());
    }
}

impl Drop for Trips {
    fn drop(&mut self) {
        self.inside.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        match &self.place {
            Place::Port(port) => drop(TcpStream::connect(("127.0.0.1", *port))),
            Place::Socket(path, _) => drop(UnixStream::connect(path)),
        }
    }
}

/// A connection of either kind.
trait Stream: Read + Write + AsFd + Send + Sized + 'static {
    fn copy(&self) -> io::Result<Self>;
    fn at_once(&self);
    fn end(&self);
}

impl Stream for TcpStream {
    fn copy(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn at_once(&self) {
        let _ = self.set_nodelay(true);
    }

    fn end(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Stream for UnixStream {
    fn copy(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn at_once(&self) {}

    fn end(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Inside {
    fn new(first: Option<Arc<Inside>>) -> Inside {
        let last = first.as_ref().map(|first| Arc::clone(&first.last));
        Inside {
            connections: Mutex::default(),
            is_over: AtomicBool::default(),
            last: last.unwrap_or_else(|| Arc::new(Mutex::new(Instant::now()))),
            first,
        }
    }

    /// Whether all that was asked is answered.
    fn is_settled(&self) -> bool {
        self.connections().iter().all(|c| !c.is_asked)
    }

    fn last(&self) -> MutexGuard<'_, Instant> {
        self.last.lock().expect("no thread panics with it")
    }

    /// Waits until an answer may be passed on.
    fn hold(&self) {
        let since = Instant::now();
        let may_pass = || {
            let is_quiet = self.last().elapsed() >= QUIET;
            is_quiet && self.first.as_ref().is_none_or(|first| first.is_settled())
        };
        while !may_pass() && since.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
        *self.last() = Instant::now();
    }

    fn connections(&self) -> MutexGuard<'_, Vec<Counted>> {
        self.connections.lock().expect("no thread panics with it")
    }

    fn join<S: Stream>(self: &Arc<Self>, client: S, server: S) {
        client.at_once();
        server.at_once();
        let (Ok(from), Ok(to)) = (server.copy(), client.copy()) else {
            return;
        };
        let number = {
            let mut connections = self.connections();
            connections.push(Counted::default());
            connections.len() - 1
        };
        let shared = Arc::clone(self);
        thread::spawn(move || {
            let note = || shared.connections()[number].answered();
            answer(from, to, || shared.hold(), note);
        });
        let shared = Arc::clone(self);
        thread::spawn(move || {
            ask(client, server, |bytes| {
                shared.connections()[number].asked(bytes);
                *shared.last() = Instant::now();
            });
            // nobody waits any more
            shared.connections()[number].is_asked = false;
        });
    }
}

/// Passes what is asked on until an end closes. Each piece is noted before.
fn ask<S: Stream>(mut from: S, mut to: S, note: impl Fn(&[u8])) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        note(&buffer[..n]);
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    to.end();
    from.end();
}

/// Passes answers on until an end closes. What has come while one was held back goes with it;
/// what comes later may answer what is asked then.
fn answer<S: Stream>(mut from: S, mut to: S, hold: impl Fn(), note: impl Fn()) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(mut n @ 1..) = from.read(&mut buffer) {
        hold();
        while n < buffer.len()
            && let Ok(1..) = ioctl_fionread(&from)
            && let Ok(more @ 1..) = from.read(&mut buffer[n..])
        {
            n += more;
        }
        note();
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    to.end();
    from.end();
}

impl Counted {
    fn answered(&mut self) {
        self.trips += usize::from(std::mem::take(&mut self.is_asked));
    }

    /// Takes what goes to the server apart into packets. Those with the number 0 are commands;
    /// others belong to a login, or to a command that was longer than a packet.
    fn asked(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let mut at = 0;
        while let Some([a, b, c, number]) = self.rest[at..].first_chunk() {
            let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            let Some(packet) = self.rest.get(at + 4..at + 4 + length) else {
                break;
            };
            match (number, packet) {
                (0, [code, rest @ ..]) => {
                    self.is_asked |= !SILENT.contains(code);
                    self.commands.push(words(*code, rest));
                }
                _ => self.is_asked = true,
            }
            at += 4 + length;
        }
        self.rest.drain(..at);
    }
}

fn words(code: u8, rest: &[u8]) -> String {
    let text = String::from_utf8_lossy(rest);
    match code {
        QUERY => text.into_owned(),
        PREPARE => format!("(prepare) {text}"),
        EXECUTE => "(execute)".into(),
        _ => format!("(command {code})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers each command with a byte. The relay before it, and a client.
    fn connected() -> (Trips, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listening socket");
        let trips = Trips::to_port(listener.local_addr().expect("its address").port());
        let client = TcpStream::connect(trips.address()).expect("a connection");
        let (mut server, _) = listener.accept().expect("a connection");
        thread::spawn(move || {
            let mut packet = [0; 5];
            while server.read_exact(&mut packet).is_ok() {
                if !SILENT.contains(&packet[4]) {
                    server.write_all(b"a").expect("written");
                }
            }
        });
        (trips, client)
    }

    fn send(client: &mut TcpStream, code: u8) {
        client.write_all(&[1, 0, 0, 0, code]).expect("written");
    }

    fn read(client: &mut TcpStream) {
        client.read_exact(&mut [0]).expect("an answer");
    }

    #[test]
    fn each_answer_that_is_awaited_is_a_trip() {
        let (trips, mut client) = connected();
        for _ in 0..3 {
            send(&mut client, QUERY);
            read(&mut client);
        }
        assert_eq!(trips.counted()[0].trips, 3);
        assert_eq!(trips.counted()[0].commands, ["", "", ""]);
    }

    #[test]
    fn what_is_sent_before_an_answer_is_one_trip() {
        let (trips, mut client) = connected();
        for _ in 0..3 {
            send(&mut client, QUERY);
        }
        for _ in 0..3 {
            read(&mut client);
        }
        assert_eq!(trips.counted()[0].trips, 1);
    }

    #[test]
    fn what_is_not_answered_is_no_trip() {
        let (trips, mut client) = connected();
        send(&mut client, SILENT[2]);
        trips.settle();
        send(&mut client, QUERY);
        // on a machine that stands still, the relay may not have met the client yet
        let counted = trips.counted();
        assert_eq!(counted.first().map_or(0, |c| c.trips), 0, "held back");
        read(&mut client);
        assert_eq!(trips.counted()[0].trips, 1);
    }
}
