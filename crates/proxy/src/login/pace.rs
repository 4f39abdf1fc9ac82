//! What others in the line may do to a login that is in their way: hurry it, or end it while it
//! waits for its client.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Instant;

/// It does not wait for its client: nobody may end it.
const BUSY: u8 = 0;
/// It waits for a client that has said nothing yet.
const GREETED: u8 = 1;
/// It waits for a client that has said something before.
const WAITS: u8 = 2;
/// It was ended.
const ENDED: u8 = 3;

/// Shared by a login and by whoever decides about places.
#[derive(Default)]
pub(crate) struct Pace {
    hurry: Arc<AtomicBool>,
    stage: AtomicU8,
    greeted: OnceLock<Instant>,
}

impl Pace {
    /// Others wait from now on: there is less time for each answer.
    pub fn hurry(&self) {
        self.hurry.store(true, Ordering::Relaxed);
    }

    pub fn is_hurried(&self) -> bool {
        self.hurry.load(Ordering::Relaxed)
    }

    /// Set when others wait.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.hurry.clone()
    }

    /// The login waits for its client from now on. False if it was ended.
    pub fn waits(&self, now: Instant, has_answered: bool) -> bool {
        self.greeted.get_or_init(|| now);
        self.enter(if has_answered { WAITS } else { GREETED })
    }

    /// The client has answered. False if the login was ended before.
    pub fn goes_on(&self) -> bool {
        self.enter(BUSY)
    }

    fn enter(&self, stage: u8) -> bool {
        let change = |now| (now != ENDED).then_some(stage);
        let changed = self
            .stage
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        changed.is_ok()
    }

    /// Ends it, if it waits for its client. Its socket has to be shut down then.
    pub fn end(&self) -> bool {
        let change = |now| matches!(now, GREETED | WAITS).then_some(ENDED);
        let ended = self
            .stage
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, change)
            .is_ok();
        if ended {
            self.hurry();
        }
        ended
    }

    /// Whether it waits for its client, and since when it does so first of all. The client has said
    /// something, or not.
    pub fn waiting(&self) -> Option<Waiting> {
        let has_answered = match self.stage.load(Ordering::Acquire) {
            GREETED => false,
            WAITS => true,
            _ => return None,
        };
        let greeted = *self.greeted.get()?;
        Some(Waiting {
            greeted,
            has_answered,
        })
    }
}

/// A login that waits for its client.
pub(crate) struct Waiting {
    /// When the client got the greeting.
    pub greeted: Instant,
    /// Whether the client has said anything.
    pub has_answered: bool,
}
