//! Who may log in now: a budget of connections that are not logged in yet, apart from that of
//! sessions.
//!
//! A login holds a connection to the server, of which servers have few, for as long as its client
//! is silent. So a number of them goes on at once, some for each group of addresses ([`Group`]);
//! the others wait in a line without a connection to the server.
//!
//! - **Groups take turns.** A group goes first if it has logged in lately and has not held places
//!   in vain since; then the one with the fewest logins and the least time held in vain lately. So
//!   whoever opens more connections waits longer. Of one group, whoever came last goes first: those
//!   who only hold a place hold the line's end.
//! - **A place is taken away from who does not answer.** When all are taken and another group
//!   waits, the oldest login of the group that stands worst is ended if its client has said
//!   nothing: at once if the other group stands much better, otherwise [`GRACE`] after the
//!   greeting, so that those who answer have the time for it and the server does not see more
//!   logins than that allows. A client that has answered can lose its place only to a group that
//!   stands much better.
//! - **The others hurry.** While somebody waits, the logins in his way have less time for each
//!   answer.
//! - **A line that is full** loses its oldest, of the group that stands worst in it.
//!
//! Those who were too slow then are not closed, but parked without a thread until their deadline
//! ([`Place::park`]): closed sockets come back at once, as the line's newest, and would be let in
//! before whoever waits.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

use onionskin_wire::Socket;
use parking_lot::{Condvar, Mutex};
use socket2::SockRef;

use super::groups::{Groups, Standing};
use crate::client_address::Group;
use crate::config::LoginLimits;
use crate::login::Pace;

/// Connections that wait, for each login that goes on.
const LINE: usize = 16;
/// For how long after the greeting a client may be silent, while others who stand as well as it
/// does wait for its place.
const GRACE: Duration = Duration::from_millis(250);

/// The budget.
pub(crate) struct Admission {
    logins: AtomicUsize,
    per_group: AtomicUsize,
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// Logins that go on.
    running: Vec<Running>,
    /// In the order in which they came.
    line: Vec<Waiting>,
    /// Sockets that nobody reads, and until when they stay open.
    parked: VecDeque<(Instant, Socket)>,
    groups: Groups,
}

struct Running {
    number: u64,
    group: Group,
    /// When it got its place.
    since: Instant,
    pace: Arc<Pace>,
    /// By which it is ended.
    socket: Option<Socket>,
    is_ending: bool,
    has_logged_in: bool,
}

struct Waiting {
    number: u64,
    group: Group,
    verdict: Arc<Turn>,
}

/// What a connection that waits is woken by.
#[derive(Default)]
struct Turn {
    changed: Condvar,
    /// Set under the lock of [`Admission::state`].
    is_over: AtomicBool,
}

/// A connection's place, from its acceptance to the end of its login. It is free again when this is
/// dropped.
pub(crate) struct Place {
    admission: Arc<Admission>,
    number: u64,
    turn: Arc<Turn>,
}

impl Admission {
    pub fn new(limits: &LoginLimits) -> Arc<Self> {
        Self::with_clock(limits, Instant::now)
    }

    fn with_clock(
        limits: &LoginLimits,
        clock: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Admission {
            logins: AtomicUsize::new(limits.logins),
            per_group: AtomicUsize::new(limits.logins_per_address),
            clock: Box::new(clock),
            state: Mutex::default(),
        })
    }

    /// Other limits from now on. Logins that go on are not ended.
    pub fn set_limits(&self, limits: &LoginLimits) {
        self.logins.store(limits.logins, Relaxed);
        self.per_group.store(limits.logins_per_address, Relaxed);
        self.settle(&mut self.state.lock(), (self.clock)());
    }

    fn logins(&self) -> usize {
        self.logins.load(Relaxed)
    }

    fn per_group(&self) -> usize {
        self.per_group.load(Relaxed)
    }

    /// Connections that are not logged in, at most: in the line, parked, and logging in.
    pub fn bound(limits: &LoginLimits) -> usize {
        limits.logins * (2 * LINE + 1)
    }

    /// Takes a connection in. What it is let in by comes with [`Place::wait`].
    pub fn arrive(self: &Arc<Self>, group: Group) -> Place {
        let now = (self.clock)();
        let mut state = self.state.lock();
        state.parked.retain(|(until, _)| *until > now);
        let number = state.next;
        state.next += 1;
        let place = Place {
            admission: self.clone(),
            number,
            turn: Arc::default(),
        };
        state.line.push(Waiting {
            number,
            group,
            verdict: place.turn.clone(),
        });
        if state.line.len() > self.logins() * LINE {
            state.drop_oldest_of_worst(now);
        }
        self.settle(&mut state, now);
        place
    }

    /// Lets in whoever can be. Those who are in the way of others have to hurry, or to go.
    fn settle(&self, state: &mut State, now: Instant) {
        while state.running.len() < self.logins()
            && let Some((at, _)) = self.first_in_line(state, now)
        {
            let Waiting {
                number,
                group,
                verdict,
            } = state.line.remove(at);
            state.running.push(Running {
                number,
                group,
                since: now,
                pace: Arc::default(),
                socket: None,
                is_ending: false,
                has_logged_in: false,
            });
            verdict.end();
        }
        let is_full = state.running.len() >= self.logins();
        for running in &state.running {
            let is_in_the_way = |w: &Waiting| is_full || w.group == running.group;
            if state.line.iter().any(is_in_the_way) {
                running.pace.hurry();
            }
        }
        if is_full {
            self.take_away(state, now);
        }
    }

    /// Whose turn it is: its place in the line, and how its group stands.
    fn first_in_line(&self, state: &State, now: Instant) -> Option<(usize, Standing)> {
        let standings = state.standings(now);
        let may_enter = state.line.iter().enumerate().filter_map(|(at, waiting)| {
            let (standing, count) = standings.get(&waiting.group)?;
            (*count < self.per_group()).then_some((at, *standing))
        });
        // Of several that stand alike, the last.
        may_enter.min_by(|a, b| a.1.order(&b.1).then(b.0.cmp(&a.0)))
    }

    /// Ends one login for who is first in line, if none is about to end for him.
    fn take_away(&self, state: &mut State, now: Instant) {
        let Some((at, first)) = self.first_in_line(state, now) else {
            return;
        };
        let group = state.line[at].group;
        let standings = state.standings(now);
        let stands_so_well = |waiting: &&Waiting| {
            let found = standings.get(&waiting.group);
            found.is_some_and(|(s, count)| {
                *count < self.per_group() && s.order(&first) == Ordering::Equal
            })
        };
        let waiting = state.line.iter().filter(stands_so_well).count();
        let ending = state.running.iter().filter(|r| r.is_ending).count();
        if ending >= waiting {
            return;
        }
        let mut worst: Option<(usize, Standing)> = None;
        for (at, running) in state.running.iter().enumerate() {
            let Some((standing, _)) = standings.get(&running.group) else {
                continue;
            };
            // Those who got their places first come first.
            let is_worse = worst.is_none_or(|(_, w)| standing.order(&w) == Ordering::Greater);
            if running.group != group && is_worse && running.may_end(standing, &first, now) {
                worst = Some((at, *standing));
            }
        }
        if let Some((at, _)) = worst {
            state.running[at].end();
        }
    }
}

impl State {
    /// How each group stands that waits or has logins going on, and how many go on.
    fn standings(&self, now: Instant) -> HashMap<Group, (Standing, usize)> {
        let mut counts = HashMap::<Group, usize>::new();
        for running in &self.running {
            *counts.entry(running.group).or_default() += 1;
        }
        for waiting in &self.line {
            counts.entry(waiting.group).or_default();
        }
        let of_group = |(group, count)| (group, (self.groups.standing(group, count, now), count));
        counts.into_iter().map(of_group).collect()
    }

    /// Makes room in the line.
    fn drop_oldest_of_worst(&mut self, now: Instant) {
        let standings = self.standings(now);
        let mut counts = HashMap::<Group, usize>::new();
        for waiting in &self.line {
            *counts.entry(waiting.group).or_default() += 1;
        }
        let mut worst: Option<(usize, Standing)> = None;
        for (at, waiting) in self.line.iter().enumerate() {
            let (Some((standing, _)), Some(count)) =
                (standings.get(&waiting.group), counts.get(&waiting.group))
            else {
                continue;
            };
            let standing = standing.with(*count);
            if worst.is_none_or(|(_, w)| standing.order(&w) == Ordering::Greater) {
                worst = Some((at, standing));
            }
        }
        if let Some((at, _)) = worst {
            self.line.remove(at).verdict.end();
        }
    }
}

impl Running {
    /// Whether it may lose its place to a group that stands as `other`.
    fn may_end(&self, standing: &Standing, other: &Standing, now: Instant) -> bool {
        let Some(waiting) = self.pace.waiting().filter(|_| !self.is_ending) else {
            return false;
        };
        let had_time = now.saturating_duration_since(waiting.greeted) >= GRACE;
        let much_better = other.is_much_better(standing);
        let may_end = if waiting.has_answered || !standing.is_stranger() {
            much_better && had_time
        } else {
            much_better || had_time && other.order(standing) == Ordering::Less
        };
        // What it has said may not have been read yet.
        may_end && self.socket.as_ref().is_some_and(is_silent)
    }

    fn end(&mut self) {
        if let Some(socket) = &self.socket
            && self.pace.end()
        {
            self.is_ending = true;
            // Nothing goes to the client. Fails if it has gone; then the login ends by itself.
            let _ = SockRef::from(socket).shutdown(Shutdown::Read);
        }
    }
}

/// Whether nothing lies ready to be read.
fn is_silent(socket: &Socket) -> bool {
    let mut byte = [MaybeUninit::uninit()];
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    SockRef::from(socket)
        .recv_with_flags(&mut byte, flags)
        .is_err()
}

impl Turn {
    fn end(&self) {
        self.is_over.store(true, Relaxed);
        self.changed.notify_one();
    }
}

impl Place {
    /// Waits for its turn to log in, until `deadline`. `None`: there are too many others.
    pub fn wait(&self, deadline: Instant) -> Option<Arc<Pace>> {
        let mut state = self.admission.state.lock();
        while !self.turn.is_over.load(Relaxed) {
            let waited = self.turn.changed.wait_until(&mut state, deadline);
            if waited.timed_out() && !self.turn.is_over.load(Relaxed) {
                return None;
            }
        }
        let found = state.running.iter().find(|r| r.number == self.number)?;
        Some(found.pace.clone())
    }

    /// Hands over the client's socket, so that the login can be ended.
    pub fn hold(&self, socket: Socket) {
        self.change(|running| running.socket = Some(socket));
    }

    /// The client has logged in.
    pub fn has_logged_in(&self) {
        self.change(|running| running.has_logged_in = true);
    }

    fn change(&self, change: impl FnOnce(&mut Running)) {
        let mut state = self.admission.state.lock();
        let found = state.running.iter_mut().find(|r| r.number == self.number);
        if let Some(running) = found {
            change(running);
        }
    }

    /// Keeps the socket that was handed over open, though nobody reads it any more, until about
    /// this time.
    pub fn park(&self, until: Instant) {
        let mut socket = None;
        self.change(|running| socket = running.socket.take());
        let Some(socket) = socket else {
            return;
        };
        let mut state = self.admission.state.lock();
        if state.parked.len() >= self.admission.logins() * LINE {
            state.parked.pop_front();
        }
        state.parked.push_back((until, socket));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let now = (self.admission.clock)();
        let mut state = self.admission.state.lock();
        let number = self.number;
        if let Some(at) = state.running.iter().position(|r| r.number == number) {
            let ended = state.running.remove(at);
            if ended.has_logged_in {
                state.groups.has_logged_in(ended.group, now);
            } else {
                let held = now.saturating_duration_since(ended.since);
                state.groups.has_failed(ended.group, held, now);
            }
        }
        state.line.retain(|w| w.number != number);
        self.admission.settle(&mut state, now);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    /// A budget whose time stands still unless it is moved.
    struct Stage {
        admission: Arc<Admission>,
        now: Arc<Mutex<Instant>>,
        listener: TcpListener,
        /// The clients' ends.
        clients: Mutex<Vec<TcpStream>>,
    }

    impl Stage {
        fn new(logins: usize, logins_per_address: usize) -> Self {
            let limits = LoginLimits {
                logins,
                logins_per_address,
                ..LoginLimits::default()
            };
            let now = Arc::new(Mutex::new(Instant::now()));
            let clock = now.clone();
            Stage {
                admission: Admission::with_clock(&limits, move || *clock.lock()),
                now,
                listener: TcpListener::bind("127.0.0.1:0").unwrap(),
                clients: Mutex::default(),
            }
        }

        fn pass(&self, time: Duration) {
            *self.now.lock() += time;
        }

        fn now(&self) -> Instant {
            *self.now.lock()
        }

        fn arrive(&self, address: IpAddr) -> Place {
            self.admission.arrive(address.into())
        }

        /// It is let in and gets the greeting, and says nothing.
        fn greeted(&self, address: IpAddr) -> (Place, Arc<Pace>) {
            let place = self.arrive(address);
            let pace = self.greet(&place);
            (place, pace)
        }

        fn greet(&self, place: &Place) -> Arc<Pace> {
            let pace = is_let_in(place).expect("there is room");
            let client = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
            place.hold(self.listener.accept().unwrap().0.into());
            self.clients.lock().push(client);
            assert!(pace.waits(self.now(), false));
            pace
        }

        /// A client of the address has logged in.
        fn has_logged_in(&self, address: IpAddr) {
            let place = self.arrive(address);
            is_let_in(&place).expect("there is room");
            place.has_logged_in();
        }
    }

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    fn is_let_in(place: &Place) -> Option<Arc<Pace>> {
        place.wait(Instant::now() + Duration::from_millis(5))
    }

    fn is_ended(pace: &Pace) -> bool {
        !pace.goes_on()
    }

    #[test]
    fn one_address_leaves_room_for_others_and_the_last_goes_first() {
        let stage = Stage::new(3, 2);
        let mut first: Vec<Place> = (0..2).map(|_| stage.arrive(address(1))).collect();
        let paces: Vec<_> = first
            .iter()
            .map(|place| is_let_in(place).expect("there is room"))
            .collect();
        let older = stage.arrive(address(1));
        let newer = stage.arrive(address(1));
        assert!(is_let_in(&older).is_none() && is_let_in(&newer).is_none());
        assert!(paces.iter().all(|pace| pace.is_hurried()));
        let other = stage.arrive(address(2));
        let pace = is_let_in(&other).expect("another address");
        drop(first.pop());
        assert!(is_let_in(&older).is_none());
        assert!(is_let_in(&newer).is_some());
        // All places are taken now, and somebody waits.
        assert!(pace.is_hurried());
        drop(newer);
        assert!(is_let_in(&older).is_some());
        drop((older, other, first));
        let state = stage.admission.state.lock();
        assert!(state.running.is_empty() && state.line.is_empty());
    }

    #[test]
    fn a_full_line_loses_the_oldest_of_whom_it_has_most() {
        let stage = Stage::new(1, 1);
        let inside = stage.arrive(address(1));
        let honest = stage.arrive(address(2));
        let mut crowd: Vec<Place> = (0..LINE * 2).map(|_| stage.arrive(address(3))).collect();
        assert_eq!(stage.admission.state.lock().line.len(), LINE);
        // It was told at once, and not at its deadline.
        let begin = Instant::now();
        assert!(crowd[0].wait(begin + Duration::from_secs(60)).is_none());
        assert!(begin.elapsed() < Duration::from_secs(30));
        crowd.clear();
        drop(inside);
        assert!(is_let_in(&honest).is_some());
    }

    #[test]
    fn a_full_line_of_strangers_loses_no_one_who_has_logged_in() {
        let stage = Stage::new(1, 1);
        stage.has_logged_in(address(1));
        let inside = stage.arrive(address(2));
        let honest = stage.arrive(address(1));
        let _crowd: Vec<Place> = (0..LINE * 2)
            .map(|n| stage.arrive(Ipv4Addr::new(10, 0, 1, n as u8).into()))
            .collect();
        drop(inside);
        assert!(is_let_in(&honest).is_some());
    }

    #[test]
    fn groups_take_turns_however_many_connections_they_have() {
        let stage = Stage::new(2, 2);
        let (one, _) = stage.greeted(address(1));
        let (two, _) = stage.greeted(address(1));
        // These have not come last.
        let honest = stage.arrive(address(2));
        let crowd: Vec<Place> = (0..9).map(|_| stage.arrive(address(1))).collect();
        stage.pass(Duration::from_secs(1));
        drop(one);
        assert!(is_let_in(&honest).is_some());
        drop((crowd, honest, two));
        // What was held in vain counts when nothing is held any more.
        let others = [5, 6].map(|n| stage.arrive(address(n)));
        let (older, newer) = (stage.arrive(address(3)), stage.arrive(address(1)));
        let [first, _second] = others;
        drop(first);
        assert!(is_let_in(&older).is_some() && is_let_in(&newer).is_none());
    }

    #[test]
    fn a_silent_login_of_whom_holds_most_ends_at_once_for_another_group() {
        let stage = Stage::new(4, 3);
        let crowd: Vec<_> = (0..3).map(|_| stage.greeted(address(1))).collect();
        let (_alone, pace) = stage.greeted(address(2));
        let honest = stage.arrive(address(3));
        assert!(is_ended(&crowd[0].1), "the oldest of the crowd");
        assert!(crowd[1..].iter().all(|(_, pace)| !is_ended(pace)));
        assert!(!is_ended(&pace));
        assert!(is_let_in(&honest).is_none(), "it has not gone yet");
        let mut crowd = crowd;
        let (ended, _) = crowd.remove(0);
        ended.park(stage.now() + Duration::from_secs(20));
        drop(ended);
        assert!(is_let_in(&honest).is_some());
        assert_eq!(stage.admission.state.lock().parked.len(), 1);
        stage.pass(Duration::from_secs(21));
        drop(stage.arrive(address(1)));
        assert_eq!(stage.admission.state.lock().parked.len(), 0);
    }

    #[test]
    fn those_who_stand_alike_have_time_to_answer() {
        let stage = Stage::new(2, 2);
        let (_one, first) = stage.greeted(address(1));
        let (_two, second) = stage.greeted(address(2));
        let _third = stage.arrive(address(3));
        assert!(!is_ended(&first) && first.waits(stage.now(), false));
        stage.pass(GRACE);
        // Its answer has come, and is not read yet.
        std::io::Write::write_all(&mut stage.clients.lock()[0], b"x").unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let _fourth = stage.arrive(address(4));
        assert!(!is_ended(&first));
        assert!(is_ended(&second));
    }

    #[test]
    fn who_has_logged_in_goes_before_strangers() {
        let stage = Stage::new(2, 2);
        stage.has_logged_in(address(1));
        let (_one, first) = stage.greeted(address(2));
        let (two, second) = stage.greeted(address(3));
        // It is in the middle of its login.
        assert!(second.goes_on() && second.waits(stage.now(), true));
        let honest = stage.arrive(address(1));
        assert!(is_ended(&first));
        let _crowd: Vec<Place> = (4..20).map(|n| stage.arrive(address(n))).collect();
        assert!(!is_ended(&second));
        drop(two);
        let pace = stage.greet(&honest);
        stage.pass(GRACE);
        // No stranger takes its place away.
        drop(stage.arrive(address(30)));
        assert!(!is_ended(&pace));
    }

    #[test]
    fn a_login_that_is_at_the_server_is_not_ended() {
        let stage = Stage::new(1, 1);
        let (_one, pace) = stage.greeted(address(1));
        assert!(pace.goes_on());
        stage.pass(Duration::from_secs(5));
        let _other = stage.arrive(address(2));
        assert!(!is_ended(&pace));
    }
}
