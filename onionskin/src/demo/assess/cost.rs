//! What the application pays: the same statements on the same rows, relayed and protected in turns.
//!
//! Each turn is one pass, of some milliseconds, so that a slow moment of the machine hits both
//! sides. Medians are told: a demonstration runs where other programs run, too.

use std::{
    path::Path,
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
    let mut plain = Application::start(relaying, data::TWIN)?;
    let mut protected = Application::start(protecting, data::SHOP)?;
    for side in [&mut plain, &mut protected] {
        // plans, prepared statements and pages are there from then on
        side.answers()?;
        side.spent.by_kind.iter_mut().for_each(Vec::clear);
    }
    let (begun, mut pairs) = (Instant::now(), Vec::new());
    while begun.elapsed() < time || pairs.len() < FEWEST {
        if termination.requested() {
            return Err(failed("ended by a signal"));
        }
        pairs.push(match pairs.len() % 2 == 0 {
            true => (plain.speed()?, protected.speed()?),
            false => {
                let second = protected.speed()?;
                (plain.speed()?, second)
            }
        });
    }
    let of = |values: Vec<f64>| median(&values).unwrap_or_default();
    let ratios: Vec<f64> = pairs.iter().map(|(a, b)| b / a).collect();
    let sides = plain.spent.by_kind.iter().zip(&protected.spent.by_kind);
    Ok(Cost {
        relayed: of(pairs.iter().map(|(relayed, _)| *relayed).collect()),
        protected: of(pairs.iter().map(|(_, protected)| *protected).collect()),
        interval: interval(&ratios),
        ratio: of(ratios),
        pairs: pairs.len(),
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
    /// Relayed and protected statements a second, and what that comes to.
    pub fn lines(&self) -> [String; 3] {
        let (low, high) = self.interval;
        [
            format!(
                "relayed, plain: {} statements a second",
                figure(self.relayed)
            ),
            format!("protected: {} statements a second", figure(self.protected)),
            format!(
                "{} ({} to {}, of {} pairs)",
                change(self.ratio),
                change(low),
                change(high),
                self.pairs
            ),
        ]
    }
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
