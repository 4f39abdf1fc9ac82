//! Who may log in now: a budget of connections that are not logged in yet, apart from that of sessions.
//!
//! A login holds a connection to the server, of which servers have few, for as long as its client is silent. So a number of
//! them goes on at once, some for each address; the others wait in a line without a connection to the server. Whoever came last
//! goes first: those who only hold a place hold the line's end. While somebody waits, the logins in his way have less time for each
//! answer. A line that is full loses its oldest, of the address that has most in it.
//!
//! Those who were too slow then are not closed, but parked without a thread until their deadline ([`Admission::park`]): closed
//! sockets come back at once, as the line's newest, and would be let in before whoever waits.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::config::LoginLimits;

/// Connections that wait, for each login that goes on.
const LINE: usize = 16;

/// The budget.
pub(crate) struct Admission {
    logins: usize,
    per_address: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// Logins that go on.
    running: Vec<(u64, IpAddr, Arc<AtomicBool>)>,
    /// In the order in which they came.
    line: Vec<Waiting>,
    /// Sockets that nobody reads, and until when they stay open.
    parked: VecDeque<(Instant, TcpStream)>,
}

struct Waiting {
    number: u64,
    address: IpAddr,
    verdict: Arc<Turn>,
}

/// What a connection that waits is woken by.
#[derive(Default)]
struct Turn {
    changed: Condvar,
    /// Set under the lock of [`Admission::state`].
    is_over: AtomicBool,
}

/// A connection's place, from its acceptance to the end of its login. It is free again when this is dropped.
pub(crate) struct Place {
    admission: Arc<Admission>,
    number: u64,
    turn: Arc<Turn>,
}

impl Admission {
    pub fn new(limits: &LoginLimits) -> Arc<Self> {
        Arc::new(Admission {
            logins: limits.logins,
            per_address: limits.logins_per_address,
            state: Mutex::default(),
        })
    }

    /// Connections that are not logged in, at most: in the line, parked, and logging in.
    pub fn bound(limits: &LoginLimits) -> usize {
        limits.logins * (2 * LINE + 1)
    }

    /// Keeps a socket open that nobody reads any more, until about this time.
    pub fn park(&self, socket: TcpStream, until: Instant) {
        let mut state = self.state.lock();
        if state.parked.len() >= self.logins * LINE {
            state.parked.pop_front();
        }
        state.parked.push_back((until, socket));
    }

    /// Takes a connection in. What it is let in by comes with [`Place::wait`].
    pub fn arrive(self: &Arc<Self>, address: IpAddr) -> Place {
        // An IPv4 address is the same one on a socket for both.
        let address = address.to_canonical();
        let mut state = self.state.lock();
        let now = Instant::now();
        state.parked.retain(|(until, _)| *until > now);
        if state.line.len() >= self.logins * LINE {
            state.drop_oldest_of_most();
        }
        let number = state.next;
        state.next += 1;
        let place = Place {
            admission: self.clone(),
            number,
            turn: Arc::default(),
        };
        state.line.push(Waiting {
            number,
            address,
            verdict: place.turn.clone(),
        });
        self.let_in(&mut state);
        place
    }

    /// Lets in whoever can be, the last first; those who are in the way of others have to hurry.
    fn let_in(&self, state: &mut State) {
        let mut of_address = HashMap::new();
        for (_, address, _) in &state.running {
            *of_address.entry(*address).or_insert(0) += 1;
        }
        let mut at = state.line.len();
        while at > 0 && state.running.len() < self.logins {
            at -= 1;
            let count = of_address.entry(state.line[at].address).or_insert(0);
            if *count < self.per_address {
                *count += 1;
                let Waiting {
                    number,
                    address,
                    verdict,
                } = state.line.remove(at);
                state.running.push((number, address, Arc::default()));
                verdict.end();
            }
        }
        let is_full = state.running.len() >= self.logins;
        for (_, address, hurry) in &state.running {
            if state.line.iter().any(|w| is_full || w.address == *address) {
                hurry.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl State {
    fn drop_oldest_of_most(&mut self) {
        let mut counts = HashMap::<IpAddr, usize>::new();
        for waiting in &self.line {
            *counts.entry(waiting.address).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let most = most.map(|(address, _)| address);
        if let Some(at) = self.line.iter().position(|w| Some(w.address) == most) {
            self.line.remove(at).verdict.end();
        }
    }
}

impl Turn {
    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.changed.notify_one();
    }
}

impl Place {
    /// Waits for its turn to log in, until `deadline`. `None`: there are too many others.
    pub fn wait(&self, deadline: Instant) -> Option<Arc<AtomicBool>> {
        let mut state = self.admission.state.lock();
        while !self.turn.is_over.load(Ordering::Relaxed) {
            let waited = self.turn.changed.wait_until(&mut state, deadline);
            if waited.timed_out() && !self.turn.is_over.load(Ordering::Relaxed) {
                return None;
            }
        }
        let found = state.running.iter().find(|(n, ..)| *n == self.number)?;
        Some(found.2.clone())
    }

    /// See [`Admission::park`].
    pub fn park(&self, socket: TcpStream, until: Instant) {
        self.admission.park(socket, until);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.admission.state.lock();
        let number = self.number;
        state.running.retain(|(n, ..)| *n != number);
        state.line.retain(|w| w.number != number);
        self.admission.let_in(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    fn admission(logins: usize, logins_per_address: usize) -> Arc<Admission> {
        Admission::new(&LoginLimits {
            logins,
            logins_per_address,
            ..LoginLimits::default()
        })
    }

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    fn is_let_in(place: &Place) -> Option<Arc<AtomicBool>> {
        place.wait(Instant::now() + Duration::from_millis(5))
    }

    #[test]
    fn one_address_leaves_room_for_others_and_the_last_goes_first() {
        let admission = admission(3, 2);
        let mut first: Vec<Place> = (0..2).map(|_| admission.arrive(address(1))).collect();
        let hurries: Vec<_> = first
            .iter()
            .map(|place| is_let_in(place).expect("there is room"))
            .collect();
        let older = admission.arrive(address(1));
        let newer = admission.arrive(address(1));
        assert!(is_let_in(&older).is_none() && is_let_in(&newer).is_none());
        assert!(hurries.iter().all(|hurry| hurry.load(Ordering::Relaxed)));
        let other = admission.arrive(address(2));
        let hurry = is_let_in(&other).expect("another address");
        drop(first.pop());
        assert!(is_let_in(&older).is_none());
        assert!(is_let_in(&newer).is_some());
        // All places are taken now, and somebody waits.
        assert!(hurry.load(Ordering::Relaxed));
        drop(newer);
        assert!(is_let_in(&older).is_some());
        drop((older, other, first));
        let state = admission.state.lock();
        assert!(state.running.is_empty() && state.line.is_empty());
    }

    #[test]
    fn a_full_line_loses_the_oldest_of_whom_it_has_most() {
        let admission = admission(1, 1);
        let _inside = admission.arrive(address(1));
        let honest = admission.arrive(address(2));
        let mut crowd: Vec<Place> = (0..LINE * 2)
            .map(|_| admission.arrive(address(3)))
            .collect();
        assert_eq!(admission.state.lock().line.len(), LINE);
        // It was told at once, and not at its deadline.
        let begin = Instant::now();
        assert!(crowd[0].wait(begin + Duration::from_secs(60)).is_none());
        assert!(begin.elapsed() < Duration::from_secs(30));
        crowd.clear();
        drop(_inside);
        assert!(is_let_in(&honest).is_some());
    }
}
