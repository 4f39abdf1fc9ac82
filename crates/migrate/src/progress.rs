//! What a migration tells of itself while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// What the phases are called that go through all rows.
pub(crate) const COPYING: &str = "copying";
/// The same.
pub(crate) const COMPARING: &str = "comparing";

/// Counters that one thread moves and another one shows.
#[derive(Clone, Default)]
pub struct Progress(Arc<Inner>);

#[derive(Default)]
struct Inner {
    phase: Mutex<&'static str>,
    done: AtomicU64,
    estimate: AtomicU64,
    changes: AtomicU64,
    lag: AtomicU64,
    notes: Mutex<Vec<String>>,
}

impl Progress {
    /// What is being done.
    pub fn phase(&self) -> &'static str {
        *self.0.phase.lock()
    }

    /// Whether the phase goes through all rows.
    pub fn counts_rows(&self) -> bool {
        [COPYING, COMPARING].contains(&self.phase())
    }

    pub(crate) fn set_phase(&self, phase: &'static str) {
        *self.0.phase.lock() = phase;
        self.0.done.store(0, Ordering::Relaxed);
    }

    /// Rows that the phase is done with, and the server's estimate of all rows.
    pub fn rows(&self) -> (u64, u64) {
        (
            self.0.done.load(Ordering::Relaxed),
            self.0.estimate.load(Ordering::Relaxed),
        )
    }

    pub(crate) fn set_rows(&self, done: u64, estimate: u64) {
        self.0.done.store(done, Ordering::Relaxed);
        self.0.estimate.store(estimate, Ordering::Relaxed);
    }

    /// Rows that were written again because they had changed.
    pub fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_changes(&self, changes: u64) {
        self.0.changes.store(changes, Ordering::Relaxed);
    }

    /// How old the last change was when it was written, in seconds.
    pub fn lag(&self) -> u64 {
        self.0.lag.load(Ordering::Relaxed)
    }

    pub(crate) fn set_lag(&self, seconds: u64) {
        self.0.lag.store(seconds, Ordering::Relaxed);
    }

    pub(crate) fn note(&self, text: String) {
        self.0.notes.lock().push(text);
    }

    /// Lines for the user that have come since it was last asked.
    pub fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.0.notes.lock())
    }
}
