//! Which members may be read from: how far each is behind the primary. Pure: it is told the time.
//!
//! The lag is measured here and not asked for. `Seconds_Behind_Source` compares two machines'
//! clocks, counts whole seconds, and is 0 where the source cannot be reached or sends slowly. So
//! what the primary has is kept with the time at which it was first seen, and a replica is as far
//! behind as the first of these that it does not have is old. What it is told to be is at most
//! too small by the time between two questions.
//!
//! While there is no primary nothing new is seen, and a replica that has all that was seen may be
//! behind all the same. So the time since the primary was last heard counts as lag, too.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use onionskin_proxy::{CatchUp, Place};
use onionskin_rowstream::binlog::GtidPosition;

use super::judge::{Channel, Executed, Found, Heard, Member, Standby, Verdict, found};

/// Positions that are kept at most: each is a second or more younger than the one before.
const MOST: usize = 4096;
/// How much nearer than the bound a member has to come that was beyond it.
const RETURN: u32 = 2;

/// From the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadSettings {
    /// A member that is further behind is not read from.
    pub max_lag: Duration,
    /// The primary is read from where no other member can be.
    pub falls_back: bool,
    /// Statements wait for what was written before.
    pub waits: bool,
}

/// What the primary had, by the time at which that was first seen.
#[derive(Default)]
pub struct History {
    primary: Option<String>,
    seen: VecDeque<(Instant, GtidPosition)>,
    heard: Option<Instant>,
}

/// Whether a member may be read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fitness {
    /// Yes. `None`: there is no lag to be known.
    Fit(CatchUp, Option<Duration>),
    /// No, and why: part of a sentence.
    Unfit(String, Option<Duration>),
    /// It does not answer.
    Lost,
}

impl History {
    /// Takes over what the primary says, if there is one. Returns it if that is news.
    pub fn note<'m>(&mut self, verdict: &Verdict, members: &'m [Member]) -> Option<&'m Member> {
        let Verdict::Primary(Place {
            member, identity, ..
        }) = verdict
        else {
            return None;
        };
        let member = members.iter().find(|m| m.backend == *member)?;
        if self.primary.as_ref() != Some(identity) {
            // what another one had may be lost
            *self = History {
                primary: Some(identity.clone()),
                ..History::default()
            };
        }
        if self.heard == Some(member.asked) {
            return None;
        }
        self.heard = Some(member.asked);
        let Executed { written, .. } = found(member)?.position.as_deref()?;
        if self.seen.back().is_none_or(|(_, last)| last != written) {
            // it was asked at that time, and has answered later: so it is no later than now
            self.seen
                .push_back((Instant::now().max(member.asked), written.clone()));
            if self.seen.len() > MOST {
                self.seen.pop_front();
            }
        }
        Some(member)
    }

    /// Forgets what is older than anybody asks for; the last one is kept.
    pub fn forget(&mut self, before: Instant) {
        while self.seen.len() > 1 && self.seen.get(1).is_some_and(|(at, _)| *at < before) {
            self.seen.pop_front();
        }
    }

    /// How far behind a server with this position was when it was asked; `None`: the primary has
    /// told nothing yet.
    fn lag(&self, position: &GtidPosition, asked: Instant) -> Option<Duration> {
        self.seen.back()?;
        // whoever has one of them has those before
        let at = self.seen.partition_point(|(_, seen)| position.covers(seen));
        let behind = self.seen.get(at);
        Some(behind.map_or(Duration::ZERO, |(seen, _)| {
            asked.saturating_duration_since(*seen)
        }))
    }

    /// Whether this member may be read from. `is_in`: it was until now. `patience`: how old an
    /// answer of the primary may be.
    pub fn fitness(
        &self,
        member: &Member,
        settings: &ReadSettings,
        is_in: bool,
        (now, patience): (Instant, Duration),
    ) -> Fitness {
        let found = match &member.heard {
            Heard::Found(found) => found,
            Heard::Unclear(why) => return Fitness::Unfit(why.clone(), None),
            Heard::Nothing | Heard::Lost(_) => return Fitness::Lost,
        };
        let catch_up = match standby(found) {
            Ok(catch_up) => catch_up,
            Err(why) => return Fitness::Unfit(why, None),
        };
        let catch_up = if settings.waits {
            catch_up
        } else {
            CatchUp::No
        };
        if found.standby == Standby::Node {
            return Fitness::Fit(catch_up, None);
        }
        let Some(position) = &found.position else {
            return Fitness::Unfit("its gtid_mode is not ON".into(), None);
        };
        let Some(lag) = self.lag(&position.received, member.asked) else {
            let why = "the primary has not told its GTIDs yet, or has none";
            return Fitness::Unfit(why.into(), None);
        };
        let silence = self
            .heard
            .map_or(Duration::ZERO, |heard| now.duration_since(heard));
        // an answer that is only due is none that is missing
        let silence = if silence > patience {
            silence
        } else {
            Duration::ZERO
        };
        let bound = match is_in {
            true => settings.max_lag,
            false => settings.max_lag / RETURN,
        };
        let seconds = settings.max_lag.as_secs_f64();
        if lag > bound {
            let why = format!("it is behind the primary by more than max_lag_seconds = {seconds}");
            let near = format!("its lag is not yet below half of max_lag_seconds = {seconds}");
            let is_near = lag <= settings.max_lag;
            return Fitness::Unfit(if is_near { near } else { why }, Some(lag));
        }
        if silence > settings.max_lag {
            let why = format!(
                "there is no primary since more than max_lag_seconds = {seconds}, and its lag is not known"
            );
            return Fitness::Unfit(why, None);
        }
        Fitness::Fit(catch_up, Some(lag))
    }
}

/// How what was written is waited for at a member that is one to read from.
fn standby(found: &Found) -> Result<CatchUp, String> {
    match &found.standby {
        Standby::Unasked => Err("nobody reads".into()),
        Standby::No(why) => Err(why.clone()),
        Standby::Node => Ok(CatchUp::Node),
        Standby::Secondary => Ok(CatchUp::Gtids),
        Standby::Replica(channels) if channels.is_empty() => {
            Err("it replicates from nobody".into())
        }
        Standby::Replica(channels) => {
            // one that tries to reach its source is judged by its lag
            let stopped = |channel: &Channel| channel.receives.eq_ignore_ascii_case("no");
            let applies = |channel: &Channel| channel.applies.eq_ignore_ascii_case("yes");
            if channels.iter().any(stopped) {
                Err("it does not receive from its source".into())
            } else if !channels.iter().all(applies) {
                Err("it does not apply what it receives".into())
            } else {
                Ok(CatchUp::Gtids)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use onionskin_rowstream::client::Family;

    use super::super::judge::Role;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const SETTINGS: ReadSettings = ReadSettings {
        max_lag: Duration::from_secs(4),
        falls_back: true,
        waits: true,
    };

    fn member(name: &str, asked: Instant, number: u64, standby: Standby) -> Member {
        let text = format!("0-1-{number}");
        let position = GtidPosition::parse_mariadb(&text).expect("a position");
        Member {
            backend: name.parse().expect("an address"),
            asked,
            last_name: None,
            heard: Heard::Found(Found {
                family: Family::MariaDb,
                version: "10.11".into(),
                identity: name.into(),
                source_name: name.into(),
                address: None,
                role: Role::Writable(Vec::new()),
                standby,
                position: Some(Box::new(Executed {
                    received: position.clone(),
                    written: position,
                    words: text,
                })),
            }),
        }
    }

    fn channel(receives: &str, applies: &str) -> Standby {
        Standby::Replica(vec![Channel {
            receives: receives.into(),
            applies: applies.into(),
        }])
    }

    fn primary() -> Verdict {
        Verdict::Primary(Place {
            member: "a:1".parse().expect("an address"),
            address: None,
            identity: "a:1".into(),
        })
    }

    fn replica(asked: Instant, number: u64) -> Member {
        member("b:1", asked, number, channel("Yes", "Yes"))
    }

    /// The primary is at these numbers, seen at these seconds of the past.
    fn history(now: Instant, seen: &[(u64, u32)]) -> History {
        let position = |number: &u64| {
            GtidPosition::parse_mariadb(&format!("0-1-{number}")).expect("a position")
        };
        let seen = seen
            .iter()
            .map(|(number, ago)| (now - SECOND * *ago, position(number)));
        History {
            primary: Some("a:1".into()),
            seen: seen.collect(),
            heard: Some(now),
        }
    }

    #[test]
    fn a_replica_is_as_far_behind_as_what_it_lacks_is_old() {
        let now = Instant::now();
        let history = history(now, &[(10, 9), (11, 6), (12, 3), (13, 1)]);
        for (number, lag) in [(9, 9), (10, 6), (11, 3), (12, 1), (13, 0), (20, 0)] {
            let member = replica(now, number);
            for is_in in [true, false] {
                let bound = if is_in { 4 } else { 2 };
                let found = history.fitness(&member, &SETTINGS, is_in, (now, SECOND));
                let lag = Some(SECOND * lag);
                match found {
                    Fitness::Fit(CatchUp::Gtids, shown) => {
                        assert!(lag <= Some(SECOND * bound));
                        assert_eq!(shown, lag);
                    }
                    Fitness::Unfit(_, shown) => {
                        assert!(lag > Some(SECOND * bound));
                        assert_eq!(shown, lag);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn what_is_broken_or_unknown_is_not_read_from() {
        let now = Instant::now();
        let history = history(now, &[(10, 1)]);
        let judge = |standby: Standby| {
            let member = member("b:1", now, 10, standby);
            history.fitness(&member, &SETTINGS, true, (now, SECOND))
        };
        assert!(matches!(
            judge(channel("Connecting", "Yes")),
            Fitness::Fit(..)
        ));
        assert!(matches!(judge(Standby::Secondary), Fitness::Fit(..)));
        assert_eq!(judge(Standby::Node), Fitness::Fit(CatchUp::Node, None));
        for broken in [
            channel("Yes", "No"),
            channel("No", "Yes"),
            Standby::Replica(Vec::new()),
            Standby::No("it is not read-only".into()),
            Standby::Unasked,
        ] {
            assert!(matches!(judge(broken), Fitness::Unfit(..)));
        }
        let mut lost = replica(now, 10);
        lost.heard = Heard::Lost("is gone".into());
        let found = history.fitness(&lost, &SETTINGS, true, (now, SECOND));
        assert_eq!(found, Fitness::Lost);
        let nothing = History::default();
        let found = nothing.fitness(&replica(now, 10), &SETTINGS, true, (now, SECOND));
        assert!(matches!(found, Fitness::Unfit(..)));
    }

    #[test]
    fn without_a_primary_the_lag_is_not_known_for_long() {
        let now = Instant::now();
        let history = history(now, &[(10, 1)]);
        let later = |seconds: u32| {
            let at = now + SECOND * seconds;
            let found = history.fitness(&replica(at, 10), &SETTINGS, true, (at, SECOND));
            matches!(found, Fitness::Fit(..))
        };
        assert!(later(0) && later(3));
        assert!(!later(5));
    }

    #[test]
    fn another_primary_is_another_history() {
        let now = Instant::now();
        let mut history = history(now, &[(10, 5), (99, 4)]);
        let is_fit = |history: &History| {
            let found = history.fitness(&replica(now, 10), &SETTINGS, true, (now, SECOND));
            matches!(found, Fitness::Fit(..))
        };
        assert!(is_fit(&history));
        history.note(&primary(), &[member("a:1", now, 99, channel("", ""))]);
        history.forget(now - SECOND * 3);
        assert!(!history.seen.is_empty());
        let other = Verdict::Primary(Place {
            member: "c:1".parse().expect("an address"),
            address: None,
            identity: "c:1".into(),
        });
        let new = [member("c:1", now, 10, channel("", ""))];
        assert!(history.note(&other, &new).is_some());
        assert!(
            history.note(&other, &new).is_none(),
            "it is the same answer"
        );
        assert_eq!(history.seen.len(), 1);
        assert!(is_fit(&history));
    }
}
