//! Several servers behind one proxy: `backend` as a list.
//!
//! Each member is asked what it is over one connection, by a thread of its own (`ask`). Another
//! thread, the keeper, makes one judgement of what all of them say (`judge`), and tells the proxy
//! where new sessions go ([`onionskin_proxy::Lead`]). Clients cost nothing here: however many there
//! are, the members are asked by one thread each.
//!
//! ```text
//! ask a ──┐
//! ask b ──┼─▶ keeper: judge ─▶ Lead ─▶ sessions, before each command
//! ask c ──┘      └─▶ every few milliseconds while there are any: sessions of the primary before
//! ```
//!
//! | the primary | new sessions | its sessions |
//! |---|---|---|
//! | is another one | go there | finish their transactions, within `drain_seconds` |
//! | says that it is none any more | are refused | the same |
//! | does not answer | are refused | go on; after `drain_seconds` they are cut off |
//! | answers, and cannot be judged | are refused | go on |
//! | is one of two | are refused | go on |
//!
//! Where there is `listen_read`, it is found out as well which members may be read from (`reads`),
//! and told in the same way (`reading`).
//!
//! Why: [the decision](../../docs/decisions/failover.md).

mod ask;
mod judge;
mod reading;
mod reads;

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use onionskin_proxy::{Backend, Lead, MemberState, Place, Reads};
use onionskin_rowstream::client::{Client, ConnectOptions};
use parking_lot::{Condvar, Mutex};
use socket2::SockRef;

use ask::{Fault, ask, connect};
use judge::{Heard, Judgement, Member, Standing, Verdict, judge};
use reading::Reading;

pub use reads::ReadSettings;

/// How often the keeper looks, if nobody wakes it.
const TICK: Duration = Duration::from_millis(100);
/// The same while sessions of a primary before are left.
const BUSY_TICK: Duration = Duration::from_millis(10);
/// While there is no primary, members are asked so many times as often.
const HASTE: u32 = 5;

/// How the members are asked, from the configuration.
#[derive(Clone)]
pub struct Settings {
    /// In the order of the configuration.
    pub members: Vec<Reached>,
    /// How often each is asked.
    pub interval: Duration,
    /// How long one may take to answer.
    pub timeout: Duration,
    /// How long sessions may finish their transactions.
    pub drain: Duration,
    /// Where there is `listen_read`.
    pub reads: Option<ReadSettings>,
}

/// A member, and how it is reached by the account of `[health]`.
#[derive(Clone)]
pub struct Reached {
    /// Where it is.
    pub backend: Backend,
    /// As whom.
    pub options: ConnectOptions,
    /// TLS is left out where the member offers none.
    pub may_be_plain: bool,
}

/// The threads, for as long as the program runs.
pub struct Members(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// The keeper has something to judge.
    changed: Condvar,
    /// It has judged for the first time.
    decided: Condvar,
    /// Members are asked more often.
    has_haste: AtomicBool,
}

struct State {
    asked: Vec<Asked>,
    interval: Duration,
    timeout: Duration,
    drain: Duration,
    reads: Option<ReadSettings>,
    is_decided: bool,
}

/// What one thread has found.
struct Asked {
    backend: Backend,
    /// When it began to ask, and what came of it.
    heard: (Instant, Heard),
    last_name: Option<String>,
    /// Ends the thread.
    over: Arc<AtomicBool>,
}

impl Members {
    /// Begins to ask.
    pub fn begin(lead: Lead, reads: Arc<Reads>, settings: Settings) -> std::io::Result<Members> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                asked: Vec::new(),
                interval: settings.interval,
                timeout: settings.timeout,
                drain: settings.drain,
                reads: settings.reads,
                is_decided: false,
            }),
            changed: Condvar::new(),
            decided: Condvar::new(),
            has_haste: AtomicBool::new(true),
        });
        let members = Members(shared.clone());
        members.set(settings)?;
        let keeper = Keeper::new(shared, lead, reads);
        thread::Builder::new()
            .name("members".into())
            .spawn(move || keeper.run())?;
        Ok(members)
    }

    /// Asks these from now on. What is known of those that stay is kept until they have answered
    /// anew.
    pub fn set(&self, settings: Settings) -> std::io::Result<()> {
        let mut state = self.0.state.lock();
        let mut before = std::mem::take(&mut state.asked);
        for asked in &before {
            asked.over.store(true, Ordering::SeqCst);
        }
        (state.interval, state.timeout) = (settings.interval, settings.timeout);
        (state.drain, state.reads) = (settings.drain, settings.reads);
        for reached in settings.members {
            let known = before
                .iter()
                .position(|asked| asked.backend == reached.backend);
            let known = known.map(|index| before.swap_remove(index));
            let over = Arc::<AtomicBool>::default();
            let (heard, last_name) = match known {
                Some(known) => (known.heard.1, known.last_name),
                None => (Heard::Nothing, None),
            };
            state.asked.push(Asked {
                backend: reached.backend.clone(),
                heard: (Instant::now(), heard),
                last_name,
                over: over.clone(),
            });
            let monitor = Monitor {
                shared: self.0.clone(),
                reached,
                over,
                interval: settings.interval,
                timeout: settings.timeout,
                reads: settings.reads.is_some(),
            };
            thread::Builder::new()
                .name("member".into())
                .spawn(move || monitor.run())?;
        }
        self.0.changed.notify_all();
        Ok(())
    }

    /// Waits until every member has answered or taken too long, so that the first clients find a
    /// primary if there is one.
    pub fn wait(&self) {
        let mut state = self.0.state.lock();
        let until = Instant::now() + patience(&state) + TICK;
        while !state.is_decided && !self.0.decided.wait_until(&mut state, until).timed_out() {}
    }
}

/// How old an answer may be.
fn patience(state: &State) -> Duration {
    state.interval + state.timeout
}

/// Asks each member once, for `onionskin check`: what each is, and why none is the primary.
pub fn ask_once(settings: &Settings) -> (Vec<MemberState>, Option<String>) {
    let timeout = settings.timeout;
    let heard = thread::scope(|scope| {
        let asked = settings.members.iter().map(|reached| {
            scope.spawn(move || {
                let client = connect(&reached.options, reached.may_be_plain, timeout);
                let found = client.map_err(Fault::from).and_then(|mut client| {
                    let found = ask(&mut client, settings.reads.is_some());
                    client.quit();
                    found
                });
                heard_of(found)
            })
        });
        let asked: Vec<_> = asked.collect();
        let heard = asked.into_iter().map(|thread| thread.join());
        heard
            .map(|heard| heard.unwrap_or_else(|_| Heard::Lost("could not be asked".into())))
            .collect::<Vec<_>>()
    });
    let members = settings.members.iter().zip(heard);
    let members = members.map(|(reached, heard)| Member {
        last_name: name_of(&heard),
        backend: reached.backend.clone(),
        asked: Instant::now(),
        heard,
    });
    let members: Vec<Member> = members.collect();
    let mut judgement = judge(&members);
    if let Some(reads) = &settings.reads {
        reading::tell_once(&mut judgement, &members, reads);
    }
    let why = match judgement.verdict {
        Verdict::Nobody(why) => Some(why.to_owned()),
        _ => judgement.warning,
    };
    (judgement.states, why)
}

fn heard_of(found: Result<judge::Found, Fault>) -> Heard {
    match found {
        Ok(found) => Heard::Found(found),
        Err(Fault::Lost(why)) => Heard::Lost(why),
        Err(Fault::Unclear(why)) => Heard::Unclear(why),
    }
}

fn name_of(heard: &Heard) -> Option<String> {
    match heard {
        Heard::Found(found) => Some(found.source_name.clone()),
        _ => None,
    }
}

/// Asks one member, again and again.
struct Monitor {
    shared: Arc<Shared>,
    reached: Reached,
    over: Arc<AtomicBool>,
    interval: Duration,
    timeout: Duration,
    reads: bool,
}

impl Monitor {
    fn run(self) {
        let mut client: Option<Client> = None;
        while !self.is_over() {
            let began = Instant::now();
            let was_there = client.is_some();
            let mut found = self.ask(&mut client);
            // a connection that has ended says little: the server may be there
            if was_there && matches!(found, Err(Fault::Lost(_))) && began.elapsed() < self.timeout {
                found = self.ask(&mut client);
            }
            self.put(began, heard_of(found));
            self.wait(client.as_ref());
        }
        if let Some(mut client) = client {
            client.quit();
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn ask(&self, client: &mut Option<Client>) -> Result<judge::Found, Fault> {
        let mut asked = match client.take() {
            Some(client) => client,
            None => connect(
                &self.reached.options,
                self.reached.may_be_plain,
                self.timeout,
            )?,
        };
        asked.set_read_timeout(Some(self.timeout))?;
        let found = ask(&mut asked, self.reads);
        if !matches!(found, Err(Fault::Lost(_))) {
            *client = Some(asked);
        }
        found
    }

    fn put(&self, began: Instant, heard: Heard) {
        let mut state = self.shared.state.lock();
        // one of a list before has nothing to say
        let is_own = |asked: &&mut Asked| Arc::ptr_eq(&asked.over, &self.over);
        if let Some(asked) = state.asked.iter_mut().find(is_own) {
            asked.last_name = name_of(&heard).or(asked.last_name.take());
            asked.heard = (began, heard);
            self.shared.changed.notify_all();
        }
    }

    /// Waits until the member is to be asked again; not if its connection ends meanwhile.
    fn wait(&self, client: Option<&Client>) {
        let begin = Instant::now();
        let socket = client.and_then(|client| client.closer().ok());
        let hasty = self.interval / HASTE;
        loop {
            let pause = match self.shared.has_haste.load(Ordering::SeqCst) {
                true => hasty,
                false => self.interval,
            };
            let left = pause.saturating_sub(begin.elapsed()).min(hasty);
            if left.is_zero() || self.is_over() {
                return;
            }
            let Some((socket, client)) = socket.as_ref().zip(client) else {
                thread::sleep(left);
                continue;
            };
            if client.set_read_timeout(Some(left)).is_err() {
                return;
            }
            match SockRef::from(socket).peek(&mut [MaybeUninit::uninit()]) {
                Ok(0) => return,
                // what TLS has to say by itself
                Ok(_) => thread::sleep(left),
                Err(error) => match error.kind() {
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {}
                    std::io::ErrorKind::Interrupted => {}
                    _ => return,
                },
            }
        }
    }
}

/// Judges, and tells the proxy.
struct Keeper {
    shared: Arc<Shared>,
    lead: Lead,
    /// Sessions that only read.
    reading: Reading,
    /// Where the present sessions are.
    at: Option<Place>,
    /// Since when that does not answer.
    lost: Option<Instant>,
    /// Why there are no new sessions, as the proxy was told last.
    closed: Option<&'static str>,
    /// What was logged last.
    told: Vec<MemberState>,
    warned: Option<String>,
    has_left: bool,
}

impl Keeper {
    fn new(shared: Arc<Shared>, lead: Lead, reads: Arc<Reads>) -> Keeper {
        Keeper {
            shared,
            reading: Reading::new(lead.clone(), reads),
            lead,
            at: None,
            lost: None,
            closed: None,
            told: Vec::new(),
            warned: None,
            has_left: false,
        }
    }

    fn run(mut self) {
        loop {
            let mut state = self.shared.state.lock();
            let pause = if self.has_left { BUSY_TICK } else { TICK };
            self.shared.changed.wait_for(&mut state, pause);
            let (members, drain) = (heard(&state), state.drain);
            let (reads, patience) = (state.reads, patience(&state));
            drop(state);
            let mut judgement = judge(&members);
            if let Some(reads) = &reads {
                let times = reading::Times { patience, drain };
                self.reading.follow(&mut judgement, &members, reads, &times);
            }
            self.log(&judgement);
            self.lead.tell(judgement.states.clone());
            self.follow(&judgement, &members, drain);
            let is_open = matches!(judgement.verdict, Verdict::Primary(_));
            self.shared.has_haste.store(!is_open, Ordering::SeqCst);
            if judgement.verdict != Verdict::Pending {
                self.shared.state.lock().is_decided = true;
                self.shared.decided.notify_all();
            }
            let mut drained = self.lead.drain();
            let of_reading = self.reading.drain();
            drained.left += of_reading.left;
            drained.cut += of_reading.cut;
            self.has_left = drained.left > 0;
            if drained.cut > 0 {
                tracing::warn!(
                    sessions = drained.cut,
                    "sessions of a server that is no longer theirs were cut off"
                );
            }
        }
    }

    /// Tells the proxy what follows.
    fn follow(&mut self, judgement: &Judgement, members: &[Member], drain: Duration) {
        let of_place = self.at.as_ref().map(|at| {
            let index = members
                .iter()
                .position(|member| member.backend == at.member);
            // one that is no member any more is no primary
            index.map_or(Standing::Replica, |index| judgement.standings[index])
        });
        match &judgement.verdict {
            Verdict::Primary(place) => {
                (self.closed, self.lost) = (None, None);
                if self.lead.open(place, drain) {
                    tracing::info!(
                        identity = place.identity,
                        "the primary is {}: new sessions go there",
                        place.member
                    );
                }
                self.at = Some(place.clone());
            }
            // nothing is changed before all have been asked, but that one is gone or deposed
            Verdict::Pending if of_place != Some(Standing::Replica) => {}
            Verdict::Pending => self.depose("its members have changed", drain),
            Verdict::Nobody(why) => {
                if self.closed != Some(why) {
                    self.closed = Some(why);
                    self.lead.close(why);
                    tracing::error!("no member can take new sessions: {why}");
                }
                match of_place {
                    Some(Standing::Replica) => self.depose(why, drain),
                    Some(Standing::Lost) => {
                        let since = *self.lost.get_or_insert_with(Instant::now);
                        if since.elapsed() >= drain {
                            self.depose(why, Duration::ZERO);
                        }
                    }
                    _ => self.lost = None,
                }
            }
        }
    }

    fn depose(&mut self, why: &'static str, patience: Duration) {
        if let Some(at) = self.at.take() {
            tracing::warn!(
                seconds = patience.as_secs_f64(),
                "{} is no longer the primary: its sessions may finish their transactions",
                at.member
            );
        }
        (self.lost, self.closed) = (None, Some(why));
        self.lead.depose(why, patience);
    }

    /// Says what has changed.
    fn log(&mut self, judgement: &Judgement) {
        for (index, state) in judgement.states.iter().enumerate() {
            let before = self.told.iter().find(|told| told.member == state.member);
            let is_same = |before: &MemberState| {
                before.state == state.state && before.version == state.version
            };
            if before.is_some_and(is_same) || judgement.verdict == Verdict::Pending {
                continue;
            }
            match judgement.standings[index] {
                Standing::Candidate | Standing::Replica => tracing::info!(
                    member = state.member,
                    version = state.version,
                    "member: {}",
                    state.state
                ),
                Standing::Lost | Standing::Unclear => {
                    tracing::warn!(member = state.member, "member: {}", state.state);
                }
            }
        }
        if judgement.verdict != Verdict::Pending {
            self.told.clone_from(&judgement.states);
        }
        if judgement.warning != self.warned {
            self.warned.clone_from(&judgement.warning);
            if let Some(warning) = &self.warned {
                tracing::warn!("{warning}");
            }
        }
    }
}

/// What is known now: an answer that is too old is none.
fn heard(state: &State) -> Vec<Member> {
    let patience = patience(state);
    let member = |asked: &Asked| {
        let (began, heard) = &asked.heard;
        let heard = match began.elapsed() > patience {
            true => {
                let seconds = patience.as_secs_f64();
                Heard::Lost(format!("has not answered for more than {seconds} seconds"))
            }
            false => heard.clone(),
        };
        Member {
            backend: asked.backend.clone(),
            heard,
            asked: *began,
            last_name: asked.last_name.clone(),
        }
    };
    state.asked.iter().map(member).collect()
}
