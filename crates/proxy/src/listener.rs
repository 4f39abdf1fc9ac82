//! Accepts clients, one thread for each, and ends them.
//!
//! Session threads run under `SCHED_BATCH`: a thread that wakes up then does not preempt the
//! one that woke it. On a saturated machine this saves most of the context switches of a relay,
//! and with them about half of its CPU time per statement.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use onionskin_wire::messages::ErrPacket;
use onionskin_wire::trace::{Peer, Tracer};
use onionskin_wire::{Connection, Transport};
use parking_lot::Mutex;

use crate::Shared;
use crate::config::Config;
use crate::login::{LoginError, login};

/// Stack of a session's thread, as address space; only what is used takes memory. The SQL
/// parser recurses.
const STACK: usize = 2 << 20;
/// How long sessions may go on with the command that they are in when the proxy ends.
const GRACE: Duration = Duration::from_secs(5);

/// The sessions that exist.
#[derive(Default)]
pub(crate) struct Registry {
    next: AtomicU64,
    sessions: Mutex<HashMap<u64, Registered>>,
    stopping: AtomicBool,
}

struct Registered {
    socket: TcpStream,
    busy: Arc<AtomicBool>,
}

impl Registry {
    fn add(&self, socket: TcpStream) -> (u64, Arc<AtomicBool>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let busy = Arc::new(AtomicBool::new(true));
        self.sessions.lock().insert(id, Registered { socket, busy: Arc::clone(&busy) });
        (id, busy)
    }

    fn remove(&self, id: u64) {
        self.sessions.lock().remove(&id);
    }

    fn count(&self) -> usize {
        self.sessions.lock().len()
    }

    /// The proxy is ending: a session stops before its next command.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn shut(&self, idle_only: bool) {
        for session in self.sessions.lock().values() {
            if !idle_only || !session.busy.load(Ordering::Acquire) {
                let _ = session.socket.shutdown(Shutdown::Both);
            }
        }
    }
}

/// A proxy that listens.
pub struct Proxy {
    listener: TcpListener,
    local: SocketAddr,
    shared: Arc<Shared>,
}

/// Ends a proxy from another thread.
#[derive(Clone)]
pub struct Stopper {
    listener: Arc<TcpListener>,
    shared: Arc<Shared>,
}

impl Stopper {
    /// Makes [`Proxy::run`] return: no more clients, idle sessions end at once, busy ones after
    /// their command or some seconds.
    pub fn stop(&self) {
        self.shared.sessions.stopping.store(true, Ordering::Release);
        let _ = socket2::SockRef::from(self.listener.as_ref()).shutdown(Shutdown::Both);
    }
}

impl Proxy {
    /// Begins to listen.
    pub fn bind(config: Config) -> io::Result<Proxy> {
        let listener = TcpListener::bind(config.listen)?;
        let local = listener.local_addr()?;
        Ok(Proxy { listener, local, shared: Shared::new(config) })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// A handle to end it with.
    pub fn stopper(&self) -> io::Result<Stopper> {
        Ok(Stopper {
            listener: Arc::new(self.listener.try_clone()?),
            shared: Arc::clone(&self.shared),
        })
    }

    /// Serves clients until [`Stopper::stop`].
    pub fn run(&self) {
        let sessions = &self.shared.sessions;
        while !sessions.is_stopping() {
            match self.listener.accept() {
                Ok((socket, peer)) => self.accept(socket, peer),
                Err(_) if sessions.is_stopping() => break,
                Err(error) => {
                    // out of file descriptors, for example: clients leave, then it goes on
                    tracing::warn!(%error, "a client could not be accepted");
                    thread::sleep(Duration::from_millis(50));
                }
            }
        }
        let began = Instant::now();
        while sessions.count() > 0 && began.elapsed() < GRACE {
            sessions.shut(true);
            thread::sleep(Duration::from_millis(10));
        }
        sessions.shut(false);
        while sessions.count() > 0 && began.elapsed() < GRACE + Duration::from_secs(1) {
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn accept(&self, socket: TcpStream, peer: SocketAddr) {
        let shared = Arc::clone(&self.shared);
        if shared.sessions.count() >= shared.config.max_sessions {
            turn_away(socket, 1040, *b"08004", "Too many connections");
            return;
        }
        let _ = socket2::SockRef::from(&socket).set_keepalive(true);
        let handle = match socket.try_clone() {
            Ok(handle) => handle,
            Err(error) => {
                tracing::warn!(%error, "a client could not be accepted");
                return;
            }
        };
        let (id, busy) = shared.sessions.add(handle);
        let spawned = thread::Builder::new().name(format!("session {id}")).stack_size(STACK).spawn({
            let shared = Arc::clone(&shared);
            move || {
                prefer_throughput();
                let began = Instant::now();
                let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
                    session(id, socket, peer, busy, &shared);
                }));
                if result.is_err() {
                    tracing::error!(id, "a session panicked and was ended");
                }
                shared.sessions.remove(id);
                tracing::debug!(id, seconds = began.elapsed().as_secs_f64(), "session closed");
            }
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread for a client");
            shared.sessions.remove(id);
        }
    }
}

fn session(id: u64, socket: TcpStream, peer: SocketAddr, busy: Arc<AtomicBool>, shared: &Arc<Shared>) {
    let client = match Transport::tcp(socket) {
        Ok(transport) => transport,
        Err(error) => {
            tracing::debug!(id, %error, "a client left at once");
            return;
        }
    };
    let mut client = Connection::new(client);
    if shared.config.trace {
        client.set_tracer(Some(tracer(id, Peer::Client)));
    }
    match login(client, id, &shared.config, busy) {
        Ok(Some(login)) => {
            tracing::debug!(id, %peer, server_id = login.connection_id, "session opened");
            crate::session::run(login, Arc::clone(shared));
        }
        Ok(None) => tracing::debug!(id, %peer, "the login was refused"),
        Err(LoginError::Unreachable(error)) => {
            tracing::warn!(id, %error, "the server cannot be reached");
        }
        Err(error) => tracing::debug!(id, %peer, %error, "the login was broken off"),
    }
}

/// Lines for `--trace`: kinds and lengths, never content.
pub(crate) fn tracer(id: u64, peer: Peer) -> Tracer {
    let side = match peer {
        Peer::Client => "client",
        Peer::Server => "server",
    };
    let sink = Box::new(|line: &str| tracing::info!(target: "onionskin::wire", "{line}"));
    Tracer::new(format!("{id} {side}"), peer, sink)
}

fn turn_away(socket: TcpStream, code: u16, state: [u8; 5], text: &str) {
    let Ok(transport) = Transport::tcp(socket) else { return };
    let mut client = Connection::new(transport);
    let mut packet = Vec::new();
    ErrPacket::new(code, state, text.as_bytes()).encode(&mut packet);
    let _ = client.write_payload(&packet).and_then(|()| client.flush());
}

/// Puts the calling thread under `SCHED_BATCH`. Where that is not allowed nothing changes.
#[allow(unsafe_code)]
fn prefer_throughput() {
    // SAFETY: a plain system call on the calling thread (pid 0); the parameter outlives it.
    unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameter);
    }
}
