//! What the application pays: the same statements on the same rows, relayed and protected in turns.
//!
//! Each turn is one pass, of some milliseconds, so that a slow moment of the machine hits both
//! sides. Medians are told: a demonstration runs where other programs run, too.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use onionskin_bench::{
    report::{change, figure},
    stats::median,
};
use serde::Serialize;

use super::{
    super::failed,
    application::{Application, KINDS},
    data,
};
use crate::{error::CommandError, termination::Termination};

/// Pairs at least, however slow the machine is.
const FEWEST: usize = 12;

/// Passes on a connection. On a busy machine it depends on the processor to which a proxy's thread
/// was given how long each statement waits; new connections are given anew.
const ON_A_CONNECTION: usize = 4;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// Statements a second on plain tables, through a proxy that relays: the median of all passes.
    pub relayed: f64,
    /// On protected ones.
    pub protected: f64,
    /// Protected over relayed: the median of all pairs.
    pub ratio: f64,
    /// Where that median lies with a probability of 95 %, whatever the pairs are distributed like.
    pub interval: (f64, f64),
    /// How many pairs of passes.
    pub pairs: usize,
    /// The machine's load, if it was more than it has processors for: then statements wait for
    /// other programs, now on one side and now on the other.
    pub busy: Option<f64>,
    /// Of each kind of statement: milliseconds, relayed and protected.
    pub kinds: Vec<(String, f64, f64)>,
}

/// Pairs close in time, in changing order.
pub fn measure(
    [relaying, protecting]: [&Path; 2],
    tiny: bool,
    termination: &Termination,
) -> Result<Cost, CommandError> {
    let time = match tiny {
        true => Duration::from_millis(500),
        false => Duration::from_secs(10),
    };
    let (begun, mut pairs) = (Instant::now(), Vec::new());
    let mut times = [(); 2].map(|()| vec![Vec::new(); KINDS.len()]);
    while begun.elapsed() < time || pairs.len() < FEWEST {
        if termination.requested() {
            return Err(failed("ended by a signal"));
        }
        let mut plain = Application::start(relaying, data::TWIN)?;
        let mut protected = Application::start(protecting, data::SHOP)?;
        for side in [&mut plain, &mut protected] {
            side.warm_up(pairs.len() as u64)?;
        }
        for turn in 0..ON_A_CONNECTION {
            pairs.push(match turn % 2 == 0 {
                true => (plain.speed()?, protected.speed()?),
                false => {
                    let second = protected.speed()?;
                    (plain.speed()?, second)
                }
            });
        }
        for (all, side) in times.iter_mut().zip([&plain, &protected]) {
            for (all, kind) in all.iter_mut().zip(&side.spent.by_kind) {
                all.extend(kind);
            }
        }
    }
    let of = |values: Vec<f64>| median(&values).unwrap_or_default();
    let processors = thread::available_parallelism().map_or(1, usize::from) as f64;
    let ratios: Vec<f64> = pairs.iter().map(|(a, b)| b / a).collect();
    let [plain, protected] = &times;
    let sides = plain.iter().zip(protected);
    Ok(Cost {
        relayed: of(pairs.iter().map(|(relayed, _)| *relayed).collect()),
        protected: of(pairs.iter().map(|(_, protected)| *protected).collect()),
        interval: interval(&ratios),
        ratio: of(ratios),
        pairs: pairs.len(),
        busy: load().filter(|load| *load > processors),
        kinds: KINDS
            .iter()
            .zip(sides)
            .map(|(kind, (relayed, protected))| {
                let milliseconds = |times: &[f64]| median(times).unwrap_or_default();
                (
                    (*kind).into(),
                    milliseconds(relayed),
                    milliseconds(protected),
                )
            })
            .collect(),
    })
}

/// Of the median, by the ranks of a binomial distribution.
fn interval(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let half = 0.98 * (n as f64).sqrt();
    let low = (n as f64 / 2.0 - half).floor().max(0.0) as usize;
    let high = n.saturating_sub(1).saturating_sub(low);
    let at = |rank: usize| sorted.get(rank).copied().unwrap_or_default();
    (at(low.min(high)), at(high))
}

impl Cost {
    /// What protection makes of the speed.
    pub fn change(&self) -> String {
        let (low, high) = self.interval;
        format!(
            "{} ({} to {}, of {} pairs)",
            change(self.ratio),
            change(low),
            change(high),
            self.pairs
        )
    }

    /// Relayed and protected statements a second, and what that comes to.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!(
                "relayed, plain: {} statements a second",
                figure(self.relayed)
            ),
            format!("protected: {} statements a second", figure(self.protected)),
            self.change(),
        ];
        if let Some(load) = self.busy {
            lines.push(format!(
                "The machine is busy with other things (load {load:.1}): these figures say little."
            ));
        }
        lines
    }
}

/// Of the last minute.
fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_median_is_not_moved_by_what_is_far_off() {
        let mut values: Vec<f64> = (1..=100).map(f64::from).collect();
        let (low, high) = interval(&values);
        assert_eq!((low, high), (41.0, 60.0));
        values[99] = 1e9;
        assert_eq!(interval(&values), (low, high));
        assert_eq!(interval(&[2.0]), (2.0, 2.0));
        assert_eq!(interval(&[]), (0.0, 0.0));
    }
}
