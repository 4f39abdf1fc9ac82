//! Who looks up for the others.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::age::{RECHECK, now};

/// Who looks up for the others.
#[derive(Default)]
pub(crate) struct Turns {
    /// How often the turn was taken, and when it was, if somebody has it.
    taken: Mutex<(u64, Option<u64>)>,
    given_back: Condvar,
}

/// The right to look up. It is given back when it is dropped.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut taken = self.turns.taken.lock();
        if taken.0 == self.number {
            taken.1 = None;
        }
        drop(taken);
        self.turns.given_back.notify_all();
    }
}

impl Turns {
    /// Takes the turn, or waits until another has given it back. From one whose server does not
    /// answer for a second it is taken away.
    pub fn take(&self, patience: Duration) -> Option<Turn<'_>> {
        let mut taken = self.taken.lock();
        let now = now();
        if taken
            .1
            .is_none_or(|since| now.saturating_sub(since) > RECHECK)
        {
            *taken = (taken.0 + 1, Some(now));
            let number = taken.0;
            return Some(Turn {
                turns: self,
                number,
            });
        }
        self.given_back.wait_for(&mut taken, patience);
        None
    }
}
