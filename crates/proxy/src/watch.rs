//! Watches the sockets of all sessions for their ends, in one thread.
//!
//! A session blocks in one read at a time: on its client while it is idle, on its server while it
//! is busy. So it would not see that the server has closed an idle session (`wait_timeout`, `KILL`,
//! a restart), nor that a client has left in the middle of a statement. One thread waits for both
//! in an `epoll`. Sockets are registered once, at the login, edge-triggered and for their ends
//! only: traffic wakes nobody, and a statement costs two atomic operations on a word of its
//! session's own.
//!
//! | what ends | the session is idle | the session is in a command |
//! |---|---|---|
//! | the server's connection | the client's socket is shut down for reading; the session wakes, passes on what the server said last, and ends | it meets the end by itself, or sees [`Activity`] say so before it waits for a command |
//! | the client's connection | it meets the end by itself | after [`PATIENCE`] the server's connection is closed, and a statement at the scratch engine killed |
//!
//! # Races
//!
//! Sessions are named by the number they were accepted under, which no two ever share, so an event
//! that comes late names nobody. What is registered is the handle that the registry keeps, and it
//! is taken out before it is closed. Whether a session is idle and whether its server has gone
//! stand in one word: either this thread sees that the session is idle, or the session sees, before
//! it waits, that the server has gone.
//!
//! # A client that is gone
//!
//! A half-closed client cannot be told from one that is gone; servers do not tell them apart,
//! either. A client that has closed its sending half gets the answers to what it has sent, if each
//! statement takes less than [`PATIENCE`].

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::client_address::Group;

/// How long a statement may go on after its client has closed, or half closed, the connection.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// Ends what a session does at the scratch engine. It does not wait for that.
pub(crate) type EndsEngine = Box<dyn FnOnce() + Send>;

/// What a session is doing, and what has become of its peers: the session's word and the watcher's.
#[derive(Default)]
pub(crate) struct Activity {
    /// [`BUSY`], [`SERVER_GONE`], [`CUT`], and above them the number of commands, which wraps.
    state: AtomicU32,
    /// The configuration under which the session's command runs, by its edition.
    edition: AtomicU64,
    /// The session is in a transaction between two commands: where there are several servers.
    in_transaction: AtomicBool,
    /// How to end what the session does at the scratch engine, if it has a session there.
    engine: Mutex<Option<EndsEngine>>,
    /// Whose the session is, once it is logged in.
    owner: Mutex<Option<Owner>>,
}

/// Whose a session is, as far as limits go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The name that the client has logged in with.
    pub account: String,
    /// The client's, and those that it is counted with.
    pub address: Group,
}

/// The session is in a command. Only the session changes it.
const BUSY: u32 = 1;
/// The server has ended its connection.
const SERVER_GONE: u32 = 2;
/// The session was ended because its client had gone.
const CUT: u32 = 4;
/// One command.
const COMMAND: u32 = 8;

impl Activity {
    /// The session is about to wait for a command. `false`: its server has gone, and nobody would
    /// wake it.
    #[inline]
    pub fn rest(&self) -> bool {
        self.state.fetch_and(!BUSY, Ordering::AcqRel) & SERVER_GONE == 0
    }

    /// A command has arrived; `rested` if the session has waited for it.
    #[inline]
    pub fn begin(&self, rested: bool) {
        let step = if rested { COMMAND | BUSY } else { COMMAND };
        // see [`crate::live::Live::is_current`] for the order
        self.state.fetch_add(step, Ordering::SeqCst);
    }

    /// The configuration under which the session runs from now on.
    pub fn runs_under(&self, edition: u64) {
        self.edition.store(edition, Ordering::SeqCst);
    }

    /// The same.
    pub fn edition(&self) -> u64 {
        self.edition.load(Ordering::SeqCst)
    }

    /// Said before [`Activity::rest`].
    pub fn rests_in_transaction(&self, is_it: bool) {
        self.in_transaction.store(is_it, Ordering::SeqCst);
    }

    /// Whether the session, if it is idle, is in a transaction.
    pub fn is_in_transaction(&self) -> bool {
        self.in_transaction.load(Ordering::SeqCst)
    }

    /// Whether the session is in a command.
    pub fn is_busy(&self) -> bool {
        self.state.load(Ordering::SeqCst) & BUSY != 0
    }

    /// Whether the server has ended its connection.
    pub fn is_server_gone(&self) -> bool {
        self.state.load(Ordering::Acquire) & SERVER_GONE != 0
    }

    /// Whether the session was ended because its client had gone.
    pub fn is_cut(&self) -> bool {
        self.state.load(Ordering::Acquire) & CUT != 0
    }

    /// Whose the session is from now on.
    pub fn set_owner(&self, owner: Owner) {
        *self.owner.lock() = Some(owner);
    }

    /// Whether the session is one that this is true of; false for one that is not logged in.
    pub fn owner_is(&self, is_it: impl FnOnce(&Owner) -> bool) -> bool {
        self.owner.lock().as_ref().is_some_and(is_it)
    }

    /// Whose the session is.
    pub fn owner(&self) -> Option<Owner> {
        self.owner.lock().clone()
    }

    /// The session has a session at the scratch engine, or none any more.
    pub fn set_engine(&self, engine: Option<EndsEngine>) {
        *self.engine.lock() = engine;
    }

    /// Ends what the session does at the scratch engine.
    pub fn end_engine(&self) {
        if let Some(engine) = self.engine.lock().take() {
            engine();
        }
    }

    /// The server has gone. Whether the session is idle, and has to be woken.
    pub fn server_is_gone(&self) -> bool {
        self.state.fetch_or(SERVER_GONE, Ordering::AcqRel) & BUSY == 0
    }

    /// The command that the session is in, by its number.
    pub fn command(&self) -> Option<u32> {
        let state = self.state.load(Ordering::Acquire);
        (state & BUSY != 0).then_some(state / COMMAND)
    }

    pub fn cut(&self) {
        self.state.fetch_or(CUT, Ordering::AcqRel);
    }
}

/// Whose socket of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

#[cfg(target_os = "linux")]
pub(crate) use self::linux::Watch;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::time::{Duration, Instant};

    use rustix::buffer::spare_capacity;
    use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

    use super::{PATIENCE, Side};
    use crate::registry::Registry;

    /// How often sessions without a client are looked at, while there are any.
    const TICK: Duration = Duration::from_millis(200);
    /// Events that are taken at a time.
    const EVENTS: usize = 256;
    /// The event that ends the thread; no session has that number.
    const END: u64 = u64::MAX;

    /// The set of watched sockets.
    pub(crate) struct Watch {
        epoll: OwnedFd,
        end: OwnedFd,
    }

    /// A session whose client has gone while it was in a command.
    struct Left {
        session: u64,
        /// The command, and since when it has been seen.
        command: Option<u32>,
        since: Instant,
    }

    impl Watch {
        pub fn new() -> io::Result<Watch> {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let name = epoll::EventData::new_u64(END);
            epoll::add(&epoll, &end, name, epoll::EventFlags::IN)?;
            Ok(Watch { epoll, end })
        }

        /// Watches a socket for its end. One that has ended already is reported at once.
        pub fn add(&self, socket: impl AsFd, session: u64, side: Side) -> io::Result<()> {
            let name = epoll::EventData::new_u64(session << 1 | u64::from(side == Side::Server));
            let ends = epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
            Ok(epoll::add(&self.epoll, socket, name, ends)?)
        }

        /// Takes a socket out, before it is closed.
        pub fn remove(&self, socket: impl AsFd) {
            // fails for one that could not be added
            let _ = epoll::delete(&self.epoll, socket);
        }

        /// Ends the thread that is in [`Watch::run`].
        pub fn end(&self) {
            let _ = rustix::io::write(&self.end, &1u64.to_ne_bytes());
        }

        /// Watches until [`Watch::end`].
        pub fn run(&self, sessions: &Registry) {
            let mut events = Vec::with_capacity(EVENTS);
            let mut left: Vec<Left> = Vec::new();
            loop {
                let tick = Timespec::try_from(TICK).ok();
                let limit = tick.as_ref().filter(|_| !left.is_empty());
                match epoll::wait(&self.epoll, spare_capacity(&mut events), limit) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => {
                        let error = io::Error::from(error);
                        tracing::error!(%error, "connections are no longer watched");
                        return;
                    }
                }
                for event in events.drain(..) {
                    match event.data.u64() {
                        END => return,
                        name if name & 1 == 1 => sessions.server_ended(name >> 1),
                        name => left.push(Left {
                            session: name >> 1,
                            command: None,
                            since: Instant::now(),
                        }),
                    }
                }
                left.retain_mut(|left| look_again(left, sessions));
            }
        }
    }

    /// Ends a session whose client has gone if it is still in the command that it was in
    /// [`PATIENCE`] ago. `false`: there is nothing left to look at.
    fn look_again(left: &mut Left, sessions: &Registry) -> bool {
        let Some(activity) = sessions.activity(left.session) else {
            return false;
        };
        let command = activity.command();
        if command.is_none() || command != left.command {
            (left.command, left.since) = (command, Instant::now());
            return true;
        }
        if left.since.elapsed() < PATIENCE {
            return true;
        }
        sessions.cut(left.session);
        false
    }
}

/// Where nothing watches, ends are met by sessions alone.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Watch;

#[cfg(not(target_os = "linux"))]
impl Watch {
    pub fn new() -> std::io::Result<Watch> {
        Ok(Watch)
    }

    pub fn add<S>(&self, _: S, _: u64, _: Side) -> std::io::Result<()> {
        Ok(())
    }

    pub fn remove<S>(&self, _: S) {}

    pub fn end(&self) {}

    pub fn run(&self, _: &crate::registry::Registry) {}
}
