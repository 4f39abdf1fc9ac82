//! When things were looked up, and how old that may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::time::{ClockId, clock_gettime};

/// How old what is known may be, in milliseconds.
pub(crate) const RECHECK: u64 = 1000;
/// The same. In builds with debug assertions a test may shorten it with
/// `ONIONSKIN_TEST_RECHECK=MILLISECONDS`: then what happens only where a look-up comes between two
/// statements happens often.
fn recheck() -> u64 {
    #[cfg(debug_assertions)]
    {
        static WANTED: std::sync::OnceLock<Option<u64>> = std::sync::OnceLock::new();
        let wanted = || std::env::var("ONIONSKIN_TEST_RECHECK").ok()?.parse().ok();
        WANTED.get_or_init(wanted).unwrap_or(RECHECK)
    }
    #[cfg(not(debug_assertions))]
    RECHECK
}

/// For how long after its last use a thing is renewed along with others, in milliseconds.
const IN_USE: u64 = 10_000;

/// Milliseconds of a clock that never goes back. The kernel keeps it in memory that is shared with
/// the process, a few milliseconds exact: no system call, and no thread of ours that could fall
/// behind.
pub(crate) fn now() -> u64 {
    // a kernel without that clock: whatever is known is old
    let Ok(time) = clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE) else {
        return u64::MAX;
    };
    let part = |n: i64| u64::try_from(n).unwrap_or_default();
    part(time.tv_sec()) * 1000 + part(time.tv_nsec()) / 1_000_000
}

/// When a thing was looked up, and when it was used.
#[derive(Default)]
pub(crate) struct Age {
    /// The look-up began then.
    pub checked: AtomicU64,
    pub used: AtomicU64,
}

impl Age {
    pub fn of(checked: u64) -> Arc<Age> {
        Arc::new(Age {
            checked: AtomicU64::new(checked),
            used: AtomicU64::new(checked),
        })
    }

    /// Whether it was looked up after something that began then.
    pub fn is_newer_than(&self, checked: u64) -> bool {
        self.checked.load(Ordering::Relaxed) > checked
    }

    pub fn renew(&self, checked: u64) {
        self.checked.fetch_max(checked, Ordering::Relaxed);
    }

    pub fn touch(&self, now: u64) {
        // most of the time it is read only: all sessions share it
        if now.saturating_sub(self.used.load(Ordering::Relaxed)) > RECHECK {
            self.used.store(now, Ordering::Relaxed);
        }
    }

    pub fn is_used(&self, now: u64) -> bool {
        now.saturating_sub(self.used.load(Ordering::Relaxed)) <= IN_USE
    }

    /// Whether it has to be looked up for what began at `came`: a look-up that began later is
    /// always good enough, however long the server takes for it.
    pub fn is_old(&self, now: u64, came: u64) -> bool {
        let checked = self.checked.load(Ordering::Relaxed);
        now.saturating_sub(checked) > recheck() && checked < came
    }
}
