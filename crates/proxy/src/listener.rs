//! Accepts clients, gives each a thread of its own, and ends them all in order.
//!
//! ```no_run
//! # use onionskin_proxy::{Config, ListenAddress, Manner, Proxy};
//! # fn demo(config: Config, address: ListenAddress) -> std::io::Result<()> {
//! let proxy = Proxy::on(vec![address.bind(Manner::CLIENTS)?], config)?;
//! let stopper = proxy.stopper();
//! // in a signal handler's thread: stopper.stop()
//! # let _ = stopper;
//! proxy.run()
//! # }
//! ```
//!
//! # The end
//!
//! After [`Stopper::stop`] no client is accepted. A session between two commands is closed at once;
//! one that is in a command may finish it and answer, for [`crate::registry::GRACE`], and is then
//! closed as well. Only the reading half of an idle client's socket is shut down: should its next
//! command be on the way already, it is done and answered, not lost.
//!
//! After [`Stopper::hand_over`] another program has the listening sockets. The sessions go on until
//! they end by themselves, for as long as that call says, and then end in the same way.
//!
//! # Before the login
//!
//! Connections that are not logged in have a budget of their own ([`admission`]): whoever can reach
//! the proxy's address can open as many as he likes, and must not take the sessions of others, nor
//! the server's connections.
//!
//! # Scheduling
//!
//! Session threads run under `SCHED_BATCH`: a thread that is woken by a packet does not interrupt
//! the one that runs, which saves context switches on a busy machine (figures in ARCHITECTURE.md).
//! `ONIONSKIN_SCHEDULER=normal` in the environment leaves the policy as it is, for those who
//! measure.

mod admission;
mod bound;
mod force;
mod groups;
mod lead;
mod reads;

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::thread;
use std::time::{Duration, Instant};

use onionskin_wire::messages::ErrPacket;
use onionskin_wire::{Connection, Socket, Transport};
use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::SockRef;

use crate::Shared;
use crate::client_address::ClientAddress;
use crate::config::Config;
use crate::gate::Gate;
use crate::keep_alive::keep_alive;
use crate::live::Live;
use crate::login::{Login, Timing, login};
use crate::members::Era;
use crate::metrics::LoginOutcome;
use crate::network::Network;
use crate::observer::{Observer, ServerQuestion};
use crate::proxy_protocol;
use crate::registry::Entry;
use crate::watch::{Owner, Watch};
use admission::Place;

use admission::Admission;
pub use bound::{Bound, ListenAddress, Manner, SocketFile, bind_unix};
pub use force::{Reload, Reloaded};
pub use lead::Lead;
pub use reads::Reads;
use reads::Seat;

/// Two sockets, each with a second handle to shut it down by.
const FILES_PER_SESSION: u64 = 4;
/// Files of the program that belong to no session.
const FILES_BESIDES: u64 = 64;

/// The proxy, and the sockets that it listens on.
pub struct Proxy {
    listeners: Vec<Bound>,
    /// Of the listeners, those at the end are for reading alone: from this one on.
    reading_from: usize,
    live: Arc<Live>,
    reads: Arc<Reads>,
    admission: Arc<Admission>,
    stop: Arc<Stop>,
}

/// Ends [`Proxy::run`] from another thread.
#[derive(Clone)]
pub struct Stopper(Arc<Stop>);

struct Stop {
    requested: Arc<AtomicBool>,
    /// Sessions are not waited for longer than for their commands.
    at_once: AtomicBool,
    /// How long they are waited for otherwise.
    patience: Mutex<Duration>,
    gate: Gate,
}

impl Stopper {
    /// Stops accepting and ends the sessions, as described above. Returns at once.
    pub fn stop(&self) {
        self.0.at_once.store(true, Ordering::SeqCst);
        self.0.requested.store(true, Ordering::SeqCst);
        self.0.gate.close();
    }

    /// Stops accepting, since another program has the sockets, and lets the sessions go on until
    /// they end by themselves, for so long. Returns at once.
    pub fn hand_over(&self, patience: Duration) {
        *self.0.patience.lock() = patience;
        self.0.requested.store(true, Ordering::SeqCst);
        self.0.gate.close();
    }
}

impl Proxy {
    /// Takes sockets that are bound. Clients wait from now on, and are served once [`Proxy::run`]
    /// is called.
    pub fn on(listeners: Vec<Bound>, config: Config) -> io::Result<Proxy> {
        for listener in &listeners {
            listener.set_nonblocking()?;
        }
        allow_open_files(&config);
        let admission = Admission::new(&config.login);
        let live = Live::new(Shared::new(config));
        Ok(Proxy {
            reading_from: listeners.len(),
            listeners,
            admission,
            reads: Reads::beside(live.clone()),
            live,
            stop: Arc::new(Stop {
                requested: Arc::default(),
                at_once: AtomicBool::new(false),
                patience: Mutex::default(),
                gate: Gate::new()?,
            }),
        })
    }

    /// Takes sockets for sessions that only read as well: those of `listen_read`.
    pub fn and_reading_on(mut self, listeners: Vec<Bound>) -> io::Result<Proxy> {
        for listener in &listeners {
            listener.set_nonblocking()?;
        }
        self.listeners.extend(listeners);
        Ok(self)
    }

    /// The sockets that it listens on.
    pub fn listeners(&self) -> &[Bound] {
        &self.listeners
    }

    /// A handle that puts other configurations in force.
    pub fn reload(&self) -> Reload {
        Reload::new(
            self.live.clone(),
            self.reads.clone(),
            self.admission.clone(),
        )
    }

    /// A handle that says which of several servers new sessions go to.
    pub fn lead(&self) -> Lead {
        Lead::new(self.live.clone())
    }

    /// Says the same for sessions that only read: for each member whether they go there.
    pub fn reads(&self) -> Arc<Reads> {
        self.reads.clone()
    }

    /// A handle that ends [`Proxy::run`].
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone())
    }

    /// What can be known of the proxy while it runs, and while it ends.
    pub fn observer(&self) -> io::Result<Observer> {
        Observer::new(self.live.clone(), self.stop.requested.clone())
    }

    /// A handle that asks which servers are there.
    pub fn question(&self) -> ServerQuestion {
        ServerQuestion::new(self.live.clone())
    }

    /// Serves clients until stopped.
    pub fn run(self) -> io::Result<()> {
        keep_panics_silent();
        let sessions = self.live.current().sessions.clone();
        let watch = sessions.watch.get_or_init(Watch::new);
        if let Err(error) = watch {
            return Err(io::Error::new(error.kind(), error.to_string()));
        }
        let watched = sessions.clone();
        let watcher = thread::Builder::new()
            .name("watch".into())
            .spawn(move || watched.watch())?;
        let batch = std::env::var_os("ONIONSKIN_SCHEDULER").is_none_or(|v| v != "normal");
        self.accept(batch);
        // From here on clients are refused, not left waiting; or they are another program's.
        drop(self.listeners);
        let until = Instant::now() + *self.stop.patience.lock();
        sessions.wait_for_end(until, || self.stop.at_once.load(Ordering::SeqCst));
        sessions.end();
        if let Some(Ok(watch)) = sessions.watch.get() {
            watch.end();
        }
        // It does nothing that can panic, and if it did, nothing is lost with it.
        let _ = watcher.join();
        Ok(())
    }

    /// Opens sessions until stopped.
    fn accept(&self, batch: bool) {
        let sockets: Vec<BorrowedFd<'_>> = self.listeners.iter().map(AsFd::as_fd).collect();
        let mut number = 0;
        loop {
            let mut unable = match self.stop.gate.wait(&sockets) {
                Ok(Some(_)) => None,
                Ok(None) => return,
                Err(error) => Some(error),
            };
            // one of each, so that no socket's clients wait for all of another's
            for (index, listener) in self.listeners.iter().enumerate() {
                match listener.accept() {
                    Ok((socket, peer)) => {
                        number += 1;
                        let (live, seat) = match index < self.reading_from {
                            true => (self.live.clone(), None),
                            false => self.reads.choose(),
                        };
                        self.open(number, socket, peer, (live, seat), batch);
                    }
                    // The client is gone before its turn, or another program was faster.
                    Err(e)
                        if matches!(
                            e.kind(),
                            io::ErrorKind::ConnectionAborted
                                | io::ErrorKind::Interrupted
                                | io::ErrorKind::WouldBlock
                        ) => {}
                    Err(error) => unable = Some(error),
                }
            }
            // Most likely no file is left for one more socket. Those who wait are served when a
            // session ends.
            if let Some(error) = unable {
                tracing::error!(%error, "clients cannot be accepted");
                thread::sleep(Duration::from_millis(100));
            }
        }
    }

    fn open(
        &self,
        number: u64,
        socket: Socket,
        peer: ClientAddress,
        (live, seat): (Arc<Live>, Option<Seat>),
        batch: bool,
    ) {
        let prepared = send_at_once(&socket)
            .and_then(|()| keep_alive(&socket))
            .and_then(|()| socket.try_clone());
        let handle = match prepared {
            Ok(handle) => handle,
            Err(error) => {
                tracing::info!(session = number, %peer, %error, "the client's socket is unusable");
                return;
            }
        };
        let shared = live.current();
        let max = shared.config.sessions.all;
        let Some(entry) = shared.sessions.enter(number, handle, max) else {
            tracing::warn!(session = number, %peer, max, "too many sessions");
            if let Some(metrics) = &shared.metrics {
                metrics.login(LoginOutcome::TurnedAway);
            }
            turn_away(socket, 1040, "Too many connections");
            return;
        };
        let second = socket.try_clone();
        let accepted = Instant::now();
        let deadline = accepted + shared.config.login.time;
        let is_told = peer.tcp().is_some_and(|peer| {
            let is_balancer = |network: &Network| network.contains(peer.ip());
            shared.config.proxy_networks.iter().any(is_balancer)
        });
        // a balancer's client has a place of its own, once it is known who it is
        let place = (!is_told).then(|| self.admission.arrive(peer.group()));
        let admission = self.admission.clone();
        let spawned = thread::Builder::new()
            .name(format!("session-{number}"))
            .stack_size(onionskin_plan::SESSION_STACK)
            .spawn(move || {
                if batch {
                    schedule_as_batch();
                }
                IN_SESSION.set(true);
                let _seat = seat;
                if catch_unwind(AssertUnwindSafe(|| {
                    let place = match place {
                        Some(place) => Some((peer, place)),
                        None => told(&entry, &socket, peer, &live)
                            .map(|peer| (peer, admission.arrive(peer.group()))),
                    };
                    let Some((peer, place)) = place else {
                        return;
                    };
                    let login = let_in(&entry, socket, peer, place, deadline, &live);
                    if let Some(login) = login {
                        serve(&live, &entry, login, peer, accepted);
                    }
                }))
                .is_err()
                {
                    tracing::error!(session = number, %peer, "the session ended with a panic");
                }
            });
        if let Err(error) = spawned {
            tracing::error!(session = number, %error, "no thread for a session");
            if let Ok(socket) = second {
                turn_away(socket, 1135, "Can't create a new thread");
            }
        }
    }
}

/// Where the client of a balancer is. `None`: the balancer does not say so, and is refused.
fn told(entry: &Entry, socket: &Socket, peer: ClientAddress, live: &Live) -> Option<ClientAddress> {
    match proxy_protocol::read(socket) {
        Ok(client) => Some(client.map_or(peer, ClientAddress::Tcp)),
        Err(error) => {
            tracing::warn!(
                session = entry.number,
                %peer,
                %error,
                "a peer of proxy_networks does not begin with a header of the PROXY protocol"
            );
            if let Some(metrics) = &live.current().metrics {
                metrics.login(LoginOutcome::Refused);
            }
            if let Ok(socket) = socket.try_clone() {
                turn_away(
                    socket,
                    1043,
                    "Bad handshake: a header of the PROXY protocol is missing",
                );
            }
            None
        }
    }
}

/// Waits for a place, and has the client log in. `None`: it did not, and has been told why.
fn let_in(
    entry: &Entry,
    socket: Socket,
    peer: ClientAddress,
    place: Place,
    whole: Instant,
    live: &Live,
) -> Option<Login> {
    let session = entry.number;
    let metrics = live.current().metrics.clone();
    let count = |outcome| {
        if let Some(metrics) = &metrics {
            metrics.login(outcome);
        }
    };
    let limits = live.current().config.sessions.clone();
    if let Err(too_many) = live.current().sessions.has_room(peer.group(), &limits) {
        count(LoginOutcome::TurnedAway);
        tracing::warn!(session, %peer, limit = too_many.setting(), "too many sessions");
        turn_away(socket, 1040, "Too many connections");
        return None;
    }
    let Some(pace) = place.wait(whole) else {
        count(LoginOutcome::TurnedAway);
        tracing::warn!(session, %peer, "too many connections that are not logged in");
        turn_away(socket, 1040, "Too many connections");
        return None;
    };
    if has_left(&socket) {
        count(LoginOutcome::Refused);
        tracing::info!(session, %peer, "not logged in");
        return None;
    }
    let timing = Timing {
        whole,
        pace: Some(pace.clone()),
    };
    if let Ok(second) = socket.try_clone() {
        place.hold(second);
    }
    // what holds now: it may have waited
    let now = || live.current().login.clone();
    let connected = |server: &Transport, era: Era| {
        // without one there is no other server
        if era.term > 0 {
            entry.connected(server.try_clone_socket()?, era);
        }
        Ok(())
    };
    match login(
        Transport::from(socket),
        peer,
        session,
        &now,
        &connected,
        &timing,
    ) {
        Ok(Some(login)) => {
            count(LoginOutcome::Ok);
            place.has_logged_in();
            Some(login)
        }
        Ok(None) => {
            count(LoginOutcome::Refused);
            tracing::info!(session, %peer, "not logged in");
            None
        }
        Err(error) => {
            count(LoginOutcome::Error);
            tracing::warn!(session, %peer, %error, "not logged in");
            if error.is_too_slow() && pace.is_hurried() {
                place.park(whole);
            }
            None
        }
    }
}

/// One session, from its login to its end.
fn serve(live: &Arc<Live>, entry: &Entry, mut login: Login, peer: ClientAddress, begin: Instant) {
    let session = entry.number;
    let id = login.connection_id;
    let server = login.server.transport().try_clone_socket();
    let owner = Owner {
        account: login.user.clone(),
        address: peer.group(),
    };
    let limits = live.current().config.sessions.clone();
    match server.and_then(|server| entry.logged_in(server, login.era, owner, &limits)) {
        Ok(Ok(())) => {}
        Ok(Err(too_many)) => {
            tracing::warn!(session, %peer, limit = too_many.setting(), "too many sessions");
            tell(&mut login.client, &too_many.packet());
            return;
        }
        Err(error) => {
            tracing::error!(session, id, %error, "the session's sockets are unusable");
            return;
        }
    }
    tracing::info!(
        session,
        id,
        %peer,
        tls = login.client.transport().is_tls(),
        server_tls = login.server.transport().is_tls(),
        login_ms = begin.elapsed().as_millis() as u64,
        "session opened"
    );
    if let Some(metrics) = &live.current().metrics {
        metrics.session();
    }
    crate::session::run(login, peer, live.clone(), entry.activity.clone());
    tracing::info!(
        session,
        id,
        %peer,
        seconds = begin.elapsed().as_secs_f64(),
        "session closed"
    );
}

// --- sockets ---

/// Packets are not kept back until there are more.
fn send_at_once(socket: &Socket) -> io::Result<()> {
    match socket {
        Socket::Tcp(socket) => socket.set_nodelay(true),
        Socket::Unix(_) => Ok(()),
    }
}

/// An error in the place of the greeting, and the end. As from a server, it has no SQLSTATE: nobody
/// has agreed on protocol 4.1 yet, and clients would show it as text.
fn turn_away(socket: Socket, number: u16, text: &str) {
    refuse(&mut Connection::new(Transport::from(socket)), number, text);
}

/// An error in the place of what the client waits for.
fn refuse(client: &mut Connection, number: u16, text: &str) {
    let packet = ErrPacket {
        code: number,
        sqlstate: (client.sequence() > 0).then_some(*b"08004"),
        message: text.as_bytes().into(),
    };
    tell(client, &packet);
}

fn tell(client: &mut Connection, packet: &ErrPacket<'_>) {
    packet.encode(client.begin_payload());
    // A client that does not wait for the answer misses nothing.
    let _ = client.end_payload().and_then(|()| client.flush());
}

/// Whether the client closed the connection while it waited: then the server need not be asked.
fn has_left(socket: &Socket) -> bool {
    let socket = SockRef::from(socket);
    let peeked = socket
        .set_nonblocking(true)
        .and_then(|()| socket.peek(&mut [MaybeUninit::uninit()]));
    let _ = socket.set_nonblocking(false);
    matches!(peeked, Ok(0))
}

/// Raises the limit of open files, as far as it goes, to what so many sessions need. Shells set it
/// to 1024.
fn allow_open_files(config: &Config) {
    let sessions = config.sessions.all + Admission::bound(&config.login);
    let wanted = FILES_PER_SESSION * sessions as u64 + FILES_BESIDES;
    let limit = getrlimit(Resource::Nofile);
    let (Some(current), maximum) = (limit.current, limit.maximum) else {
        return;
    };
    let possible = maximum.map_or(wanted, |maximum| wanted.min(maximum));
    if possible > current {
        let raised = Rlimit {
            current: Some(possible),
            maximum,
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files cannot be raised");
        }
    }
    if possible < wanted {
        tracing::info!(
            limit = possible,
            sessions = possible.saturating_sub(FILES_BESIDES) / FILES_PER_SESSION,
            "the limit of open files allows fewer sessions than configured"
        );
    }
}

// --- threads ---

thread_local! {
    static IN_SESSION: Cell<bool> = const { Cell::new(false) };
}

/// The text of a panic can quote what it stumbled over. Of sessions only the place is logged.
fn keep_panics_silent() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let otherwise = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if IN_SESSION.get() {
                let place = info.location().map(ToString::to_string);
                tracing::error!(place, "panic in a session");
            } else {
                otherwise(info);
            }
        }));
    });
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn schedule_as_batch() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads the one structure it is given a valid pointer to, and keeps nothing.
    // Thread 0 is the calling one.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
    if result != 0 {
        // Forbidden in some containers. Nothing but speed depends on it.
        let error = io::Error::last_os_error();
        tracing::debug!(%error, "the scheduling policy stays as it is");
    }
}

#[cfg(not(target_os = "linux"))]
fn schedule_as_batch() {}
