//! Tells the proxy which members are read from: what [`super::reads`] makes of them.
//!
//! | a member | new sessions | its sessions |
//! |---|---|---|
//! | may be read from | go there | go on |
//! | is too far behind, broken, or the primary beside one that may | go to others | finish their transactions, within `drain_seconds` |
//! | does not answer | go to others | go on; after `drain_seconds` they are cut off |

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onionskin_proxy::{Backend, CatchUp, Drained, Lead, Place, Reads};

use super::judge::{Judgement, Member, Verdict, found, printable};
use super::reads::{Fitness, History, ReadSettings};

/// For how long of lag positions are kept, beside twice the bound.
const MORE: Duration = Duration::from_secs(10);
/// What clients are told, who need not know how members are called.
const TOO_FAR: &str = "none of them is a replica that is near enough to the primary";
const OTHERS: &str = "others are to be read from";

/// See the module.
pub(super) struct Reading {
    primary: Lead,
    reads: Arc<Reads>,
    history: History,
    sides: HashMap<String, Side>,
}

/// How sessions of one member are.
struct Side {
    lead: Lead,
    is_in: bool,
    /// Since when it does not answer.
    lost: Option<Instant>,
}

/// From the configuration.
pub(super) struct Times {
    /// How old an answer may be.
    pub patience: Duration,
    /// How long sessions may finish their transactions.
    pub drain: Duration,
}

impl Reading {
    pub fn new(primary: Lead, reads: Arc<Reads>) -> Reading {
        Reading {
            primary,
            reads,
            history: History::default(),
            sides: HashMap::new(),
        }
    }

    /// Judges, adds to what is told of each member, and tells the proxy.
    pub fn follow(
        &mut self,
        judgement: &mut Judgement,
        members: &[Member],
        settings: &ReadSettings,
        times: &Times,
    ) {
        if judgement.verdict == Verdict::Pending {
            return;
        }
        if let Some(primary) = self.history.note(&judgement.verdict, members)
            && let Some(position) = found(primary).and_then(|found| found.position.as_ref())
        {
            self.primary.has_written(&position.words, primary.asked);
        }
        let now = Instant::now();
        let kept = settings.max_lag * 2 + MORE;
        if let Some(before) = now.checked_sub(kept) {
            self.history.forget(before);
        }
        let is_primary = |member: &Member| matches!(&judgement.verdict, Verdict::Primary(place) if place.member == member.backend);
        let fitness: Vec<Option<Fitness>> = members
            .iter()
            .map(|member| {
                let is_in = self.sides.get(&member.backend.to_string());
                let is_in = is_in.is_some_and(|side| side.is_in);
                let clock = (now, times.patience);
                let found = || self.history.fitness(member, settings, is_in, clock);
                (!is_primary(member)).then(found)
            })
            .collect();
        let is_fit = |fitness: &Option<Fitness>| matches!(fitness, Some(Fitness::Fit(..)));
        let alone = !fitness.iter().any(is_fit);
        for (index, (member, fitness)) in members.iter().zip(fitness).enumerate() {
            let fitness = match fitness {
                Some(fitness) => fitness,
                None if alone && settings.falls_back => Fitness::Fit(CatchUp::No, None),
                None => Fitness::Unfit(OTHERS.into(), None),
            };
            let state = &mut judgement.states[index];
            state.reads = Some(matches!(fitness, Fitness::Fit(..)));
            state.lag = match &fitness {
                Fitness::Fit(_, lag) | Fitness::Unfit(_, lag) => lag.map(|lag| lag.as_secs_f64()),
                Fitness::Lost => None,
            };
            match &fitness {
                Fitness::Fit(..) => state.state += "; is read from",
                Fitness::Unfit(why, _) if !state.primary => {
                    state.state = format!("{}; not read from: {}", state.state, printable(why));
                }
                Fitness::Unfit(..) | Fitness::Lost => {}
            }
            self.tell(member, &fitness, alone, times.drain);
        }
        self.leave_others(members, times.drain);
    }

    /// Says whether sessions go to a member.
    fn tell(&mut self, member: &Member, fitness: &Fitness, alone: bool, drain: Duration) {
        let side = self.side(&member.backend);
        let why = if alone { TOO_FAR } else { OTHERS };
        match (fitness, found(member)) {
            (Fitness::Fit(catch_up, _), Some(found)) => {
                let place = Place {
                    member: member.backend.clone(),
                    address: found.address,
                    identity: found.identity.clone(),
                };
                side.lead.open_to(&place, *catch_up, drain);
                (side.is_in, side.lost) = (true, None);
            }
            (Fitness::Lost, _) => {
                side.lead.close(why);
                let since = *side.lost.get_or_insert_with(Instant::now);
                if since.elapsed() >= drain && std::mem::take(&mut side.is_in) {
                    side.lead.depose(why, Duration::ZERO);
                }
            }
            _ if std::mem::take(&mut side.is_in) => side.lead.depose(why, drain),
            _ => side.lead.close(why),
        }
    }

    fn side(&mut self, member: &Backend) -> &mut Side {
        let reads = &self.reads;
        self.sides
            .entry(member.to_string())
            .or_insert_with(|| Side {
                lead: reads.lead(member),
                is_in: false,
                lost: None,
            })
    }

    /// One that is no member any more is not read from.
    fn leave_others(&mut self, members: &[Member], drain: Duration) {
        let is_one = |name: &String| members.iter().any(|m| m.backend.to_string() == *name);
        for (name, side) in &mut self.sides {
            if !is_one(name) && std::mem::take(&mut side.is_in) {
                side.lead.depose(OTHERS, drain);
            }
        }
    }

    /// Ends sessions of members that are no longer read from.
    pub fn drain(&self) -> Drained {
        let mut all = Drained::default();
        for side in self.sides.values() {
            let drained = side.lead.drain();
            all.left += drained.left;
            all.cut += drained.cut;
        }
        all
    }
}

/// What one look can tell: everything but the lag.
pub(super) fn tell_once(judgement: &mut Judgement, members: &[Member], settings: &ReadSettings) {
    let mut history = History::default();
    history.note(&judgement.verdict, members);
    let now = Instant::now();
    for (member, state) in members.iter().zip(&mut judgement.states) {
        if state.primary {
            continue;
        }
        let clock = (now, Duration::MAX);
        if let Fitness::Unfit(why, _) = history.fitness(member, settings, true, clock) {
            state.state = format!("{}; not read from: {}", state.state, printable(&why));
        }
    }
}
