//! Connections: how many there are at once, how long each may take, and who has to go first.
//!
//! Each has a thread for the one request that it may bring. Whoever connects and says nothing must
//! not keep a balancer's check out: where there is no room, the one that has kept its request back
//! for longest has to go. Those whose request is there are not disturbed.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use onionskin_proxy::{Bound, Gate};
use onionskin_wire::Socket;
use parking_lot::{Condvar, Mutex};

use super::answer::{Answer, Clerk};
use super::request;

/// Connections at once.
const ROOM: usize = 16;
/// Threads at once. Who has to go takes a moment to do so.
const THREADS: usize = 2 * ROOM;
/// How long a request may take to arrive.
const ASKING: Duration = Duration::from_secs(5);
/// How long its answer may take to be taken.
const ANSWERING: Duration = Duration::from_secs(5);
/// How long those who have to go are waited for.
const LEAVING: Duration = Duration::from_secs(1);
/// How long what a client still sends is read, so that it gets to see why it is not answered.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// Those who are being served.
pub struct Desk {
    clerk: Clerk,
    line: Mutex<Line>,
    /// Signalled when a thread ends.
    left: Condvar,
}

#[derive(Default)]
struct Line {
    /// By their order. What is here can be sent away.
    asking: BTreeMap<u64, Socket>,
    /// How many have asked and get their answer.
    answered: usize,
    threads: usize,
}

impl Desk {
    /// Nobody is there yet.
    pub fn new(clerk: Clerk) -> Self {
        Desk {
            clerk,
            line: Mutex::default(),
            left: Condvar::new(),
        }
    }

    /// Whoever knows the answers.
    pub fn clerk(&self) -> &Clerk {
        &self.clerk
    }

    /// Accepts connections until the gate is closed.
    pub fn run(self: &Arc<Self>, listener: &Bound, gate: &Gate) {
        for number in 0.. {
            let accepted = match gate.wait(&[listener.as_fd()]) {
                Ok(Some(_)) => listener.accept().map(|(socket, _)| socket),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            match accepted {
                Ok(socket) => self.open(number, socket),
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::ConnectionAborted
                            | ErrorKind::Interrupted
                            | ErrorKind::WouldBlock
                    ) => {}
                // Most likely no file is left for one more socket.
                Err(error) => {
                    tracing::error!(%error, "the administration address accepts nobody");
                    thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    fn open(self: &Arc<Self>, number: u64, socket: Socket) {
        let Ok(handle) = socket.try_clone() else {
            return;
        };
        if !self.enter(number, handle) {
            turn_away(socket);
            return;
        }
        let desk = self.clone();
        let spawned = thread::Builder::new()
            .name("admin request".into())
            .stack_size(256 << 10)
            .spawn(move || {
                let place = Place { desk, number };
                place.serve(socket);
            });
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread for a request");
            self.leave(number, false);
        }
    }

    /// Makes room, if there is none. False if there is none to be made.
    fn enter(&self, number: u64, handle: Socket) -> bool {
        let mut line = self.line.lock();
        while line.threads >= THREADS {
            if self.left.wait_for(&mut line, LEAVING).timed_out() {
                return false;
            }
        }
        if line.asking.len() + line.answered >= ROOM {
            let Some((_, first)) = line.asking.pop_first() else {
                return false;
            };
            let _ = first.shutdown();
        }
        line.asking.insert(number, handle);
        line.threads += 1;
        true
    }

    /// The request is there. False if its client had to go before.
    fn has_asked(&self, number: u64) -> bool {
        let mut line = self.line.lock();
        let asked = line.asking.remove(&number).is_some();
        line.answered += usize::from(asked);
        asked
    }

    fn leave(&self, number: u64, has_asked: bool) {
        let mut line = self.line.lock();
        line.asking.remove(&number);
        line.answered -= usize::from(has_asked);
        line.threads -= 1;
        drop(line);
        self.left.notify_all();
    }
}

/// A client at the desk.
struct Place {
    desk: Arc<Desk>,
    number: u64,
}

impl Place {
    fn serve(self, mut socket: Socket) {
        let read = request::read(&mut socket, Instant::now() + ASKING);
        if !self.desk.has_asked(self.number) {
            self.desk.leave(self.number, false);
            return;
        }
        let _leaves = Leaves(&self);
        match read {
            Ok(request) => {
                let answer = self.desk.clerk.answer(&request);
                send(&mut socket, &answer.bytes(request.method == "HEAD"));
                if !request.may_have_body() {
                    return;
                }
            }
            Err(unread) => {
                if let Some(answer) = Answer::to_unread(&unread) {
                    send(&mut socket, &answer.bytes(false));
                }
            }
        }
        hear_out(&mut socket);
    }
}

/// Leaves the desk, also by a panic.
struct Leaves<'a>(&'a Place);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.desk.leave(self.0.number, true);
    }
}

/// Sends an answer, to whoever takes it in time.
fn send(socket: &mut Socket, mut bytes: &[u8]) {
    let until = Instant::now() + ANSWERING;
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) || socket.set_write_timeout(Some(left)).is_err() {
            return;
        }
        match socket.write(bytes) {
            Ok(0) => return,
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Reads what the client still sends. A socket that is closed while something has arrived unread
/// takes back what was sent.
fn hear_out(socket: &mut Socket) {
    let ended = match socket {
        Socket::Tcp(socket) => socket.shutdown(Shutdown::Write),
        Socket::Unix(socket) => socket.shutdown(Shutdown::Write),
    };
    let until = Instant::now() + LAST_WORDS;
    let mut sink = [0; 4096];
    while ended.is_ok() {
        let left = until.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) || socket.set_read_timeout(Some(left)).is_err() {
            return;
        }
        if !matches!(socket.read(&mut sink), Ok(1..)) {
            return;
        }
    }
}

/// Says that there is no room, in what fits into the socket's buffer, and does not wait.
fn turn_away(mut socket: Socket) {
    let _ = socket.set_write_timeout(Some(Duration::from_millis(1)));
    let _ = socket.write(&Answer::busy().bytes(false));
}
