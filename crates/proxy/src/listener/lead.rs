//! Another one of several servers leads while the proxy runs, or none.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::live::Live;
use crate::members::{CatchUp, Drained, Leading, MemberState, Place};

/// Says which of several servers new sessions go to. See [`crate::members`] for what follows.
#[derive(Clone)]
pub struct Lead {
    live: Arc<Live>,
}

impl Lead {
    pub(super) fn new(live: Arc<Live>) -> Self {
        Lead { live }
    }

    /// New sessions go to this member. If it is another one than the present sessions are at, they
    /// have `patience` to finish their transactions. Returns whether it is.
    pub fn open(&self, place: &Place, patience: Duration) -> bool {
        let is_other = self.open_to(place, CatchUp::No, patience);
        if is_other && let Some(metrics) = &self.live.current().metrics {
            metrics.led();
        }
        is_other
    }

    /// The same for sessions of `listen_read`, and how they catch up with the primary.
    pub fn open_to(&self, place: &Place, catch_up: CatchUp, patience: Duration) -> bool {
        let mut is_other = false;
        self.live.lead(|before| {
            is_other = !before
                .place
                .as_ref()
                .is_some_and(|before| before.is_same(place));
            match is_other {
                true => Some(Leading {
                    place: Some(place.clone()),
                    catch_up,
                    closed: None,
                    ..next_term(before, patience)
                }),
                false
                    if before.closed.is_none()
                        && before.place.as_ref() == Some(place)
                        && before.catch_up == catch_up =>
                {
                    None
                }
                false => Some(Leading {
                    place: Some(place.clone()),
                    catch_up,
                    closed: None,
                    ..before.clone()
                }),
            }
        });
        is_other
    }

    /// There are no new sessions for this reason, which is part of a sentence. Those that there are
    /// go on.
    pub fn close(&self, why: &str) {
        self.live.lead(|before| {
            let is_new = before.closed.as_deref() != Some(why);
            is_new.then(|| Leading {
                closed: Some(why.into()),
                ..before.clone()
            })
        });
    }

    /// The same, and those that there are have `patience` to finish their transactions.
    pub fn depose(&self, why: &str, patience: Duration) {
        self.live.lead(|before| {
            Some(Leading {
                place: None,
                closed: Some(why.into()),
                ..next_term(before, patience)
            })
        });
    }

    /// Ends sessions of earlier terms that may be ended by now, and logins that go on while there
    /// are no new sessions: they may wait for a server that is lost. To be called again and again
    /// until none is left.
    pub fn drain(&self) -> Drained {
        let shared = self.live.current();
        let leading = &shared.leading;
        let cuts = leading.until.is_none_or(|until| Instant::now() >= until);
        shared
            .sessions
            .drain(leading.era(), cuts, leading.closed.is_some())
    }

    /// What the primary has by now, where sessions of `listen_read` wait for it: its
    /// `gtid_executed` or `gtid_binlog_pos`. It was asked at that time.
    pub fn has_written(&self, gtids: &str, asked: Instant) {
        if let Some(written) = &self.live.current().written {
            written.has(gtids, asked);
        }
    }

    /// Keeps what was last found of each member, for whoever asks.
    pub fn tell(&self, members: Vec<MemberState>) {
        self.live.tell_members(members);
    }
}

/// Sessions of a term before do not get more time by another change.
fn next_term(before: &Leading, patience: Duration) -> Leading {
    let now = Instant::now();
    let until = now + patience;
    let earlier = before.until.filter(|earlier| *earlier > now);
    Leading {
        side: before.side,
        term: before.term + 1,
        until: Some(earlier.map_or(until, |earlier| earlier.min(until))),
        ..Leading::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_change_gives_nobody_more_time() {
        let first = next_term(&Leading::default(), Duration::from_secs(5));
        let second = next_term(&first, Duration::from_secs(60));
        assert_eq!((first.term, second.term), (1, 2));
        assert_eq!(second.until, first.until);
        // whose time was over is gone
        let over = Leading {
            until: Some(Instant::now()),
            ..first.clone()
        };
        assert!(next_term(&over, Duration::from_secs(60)).until > first.until);
        let sooner = next_term(&first, Duration::ZERO);
        assert!(sooner.until < first.until);
    }
}
