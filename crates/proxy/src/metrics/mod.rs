//! What is counted while a proxy runs.
//!
//! A session has a [`Meter`]: plain numbers of the statement that runs. At its end they are added
//! to the [`Metrics`] that all sessions share, a few atomic additions without a lock. Nothing is
//! allocated, nothing is counted for each row, and without an administration address nothing is
//! added, and no clock is read unless slow statements are logged.
//!
//! No label holds what a client or an administrator has chosen: they are the tiers, kinds and
//! outcomes of this module and the codes of the table of errors. So the number of series is known.
//!
//! | file | holds |
//! |---|---|
//! | `label` | tier and kind of a statement |
//! | `meter` | the numbers of one statement |
//! | `latency` | a histogram of durations |
//! | `exposition` | all of it as OpenMetrics text |

mod exposition;
mod label;
mod latency;
mod meter;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use onionskin_plan::errors;

pub use exposition::{Exposition, METRICS, MetricHelp};
pub(crate) use exposition::{Gauges, encode};
pub(crate) use label::{KINDS, Kind, Label, TIERS, Tier};
pub(crate) use latency::{Latency, Reading};
pub(crate) use meter::{Ended, Ending, Meter};

/// How a login ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginOutcome {
    /// The client is logged in.
    Ok,
    /// The server refused, or the client left.
    Refused,
    /// The server could not be reached, or the login not be relayed.
    Error,
    /// There were too many.
    TurnedAway,
}

/// The outcomes with their names.
pub(crate) const LOGINS: [(LoginOutcome, &str); 4] = [
    (LoginOutcome::Ok, "ok"),
    (LoginOutcome::Refused, "refused"),
    (LoginOutcome::Error, "error"),
    (LoginOutcome::TurnedAway, "turned_away"),
];

/// How a reload ended; `false` first.
pub(crate) const RELOADS: [&str; 2] = ["refused", "ok"];

/// How a wait for what was written ended; `false` first.
pub(crate) const WAITS: [&str; 2] = ["late", "in_time"];

/// What all sessions have done. Each number only grows.
pub(crate) struct Metrics {
    statements: [[Latency; KINDS.len()]; TIERS.len()],
    /// Nanoseconds of statements that were spent waiting for the server.
    at_server: AtomicU64,
    /// The same for the scratch engine.
    at_engine: AtomicU64,
    /// The rest of their time.
    in_proxy: AtomicU64,
    /// By place in the table of errors.
    refusals: Vec<(&'static str, AtomicU64)>,
    sealed: AtomicU64,
    opened: AtomicU64,
    recalled: AtomicU64,
    made: AtomicU64,
    sessions: AtomicU64,
    logins: [AtomicU64; LOGINS.len()],
    reloads: [AtomicU64; RELOADS.len()],
    /// Changes of the primary.
    leads: AtomicU64,
    /// Statements that waited for what was written before.
    waits: [AtomicU64; WAITS.len()],
    /// How long, in nanoseconds.
    waited: AtomicU64,
    /// When a server last answered a statement, in nanoseconds of the clock; 0 if never.
    answered: AtomicU64,
}

/// Adds, unless there is nothing to add.
fn add(to: &AtomicU64, number: u64) {
    if number > 0 {
        to.fetch_add(number, Ordering::Relaxed);
    }
}

/// Nanoseconds of a clock that never goes back. The standard library's takes more instructions, and
/// this is on the path of every statement.
fn clock() -> u64 {
    // A kernel without that clock: whatever is measured takes no time.
    let Ok(time) = clock_gettime(ClockId::CLOCK_MONOTONIC) else {
        return 0;
    };
    // Neither is ever negative.
    let (seconds, nanos) = (time.tv_sec() as u64, time.tv_nsec() as u64);
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos)
}

impl Metrics {
    pub fn new() -> Self {
        Metrics {
            statements: Default::default(),
            at_server: AtomicU64::default(),
            at_engine: AtomicU64::default(),
            in_proxy: AtomicU64::default(),
            refusals: errors::codes().map(|c| (c, AtomicU64::default())).collect(),
            sealed: AtomicU64::default(),
            opened: AtomicU64::default(),
            recalled: AtomicU64::default(),
            made: AtomicU64::default(),
            sessions: AtomicU64::default(),
            logins: Default::default(),
            reloads: Default::default(),
            leads: AtomicU64::default(),
            waits: Default::default(),
            waited: AtomicU64::default(),
            answered: AtomicU64::default(),
        }
    }

    /// A login has ended so.
    pub fn login(&self, outcome: LoginOutcome) {
        add(&self.logins[outcome as usize], 1);
    }

    /// A session has begun.
    pub fn session(&self) {
        add(&self.sessions, 1);
    }

    /// A reload was done, or has changed nothing.
    pub fn reloaded(&self, succeeded: bool) {
        add(&self.reloads[usize::from(succeeded)], 1);
    }

    /// New sessions go to another of several servers.
    pub fn led(&self) {
        add(&self.leads, 1);
    }

    /// A statement has waited for so long for what was written before, in vain or not.
    pub fn caught_up(&self, in_time: bool, waited: Duration) {
        add(&self.waits[usize::from(in_time)], 1);
        add(&self.waited, waited.as_nanos() as u64);
    }

    /// A client got an error of the proxy's own.
    #[cold]
    fn refused(&self, code: &str) {
        if let Some((_, count)) = self.refusals.iter().find(|(known, _)| *known == code) {
            add(count, 1);
        }
    }

    /// Nanoseconds that statements have waited for the server, for the engine, and the rest.
    pub fn times(&self) -> (u64, u64, u64) {
        let read = |time: &AtomicU64| time.load(Ordering::Relaxed);
        (
            read(&self.at_server),
            read(&self.at_engine),
            read(&self.in_proxy),
        )
    }

    /// Cells that were sealed, and cells that were opened.
    pub fn cells(&self) -> (u64, u64) {
        let read = |cells: &AtomicU64| cells.load(Ordering::Relaxed);
        (read(&self.sealed), read(&self.opened))
    }

    /// Statements of one tier and kind.
    pub fn reading(&self, tier: Tier, kind: Kind) -> Reading {
        self.statements[tier as usize][kind as usize].read()
    }

    /// Whether the server has answered a statement within this time.
    pub fn heard_within(&self, time: Duration) -> bool {
        let answered = self.answered.load(Ordering::Relaxed);
        let since = Duration::from_nanos(clock().saturating_sub(answered));
        answered > 0 && since < time
    }
}
