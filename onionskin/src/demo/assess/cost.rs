//! What the application pays: the same statements on the same rows, relayed and protected in turns.

use std::{path::Path, time::Duration};

use onionskin_bench::{
    report::{change, figure},
    stats::{Ratio, median},
};
use serde::Serialize;

use super::{
    super::failed,
    application::{Application, KINDS},
    data,
};
use crate::{error::CommandError, termination::Termination};

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// Statements a second on plain tables, through a proxy that relays.
    pub relayed: Vec<f64>,
    /// On protected ones.
    pub protected: Vec<f64>,
    /// Protected over relayed, of pairs.
    pub ratio: Ratio,
    /// Of each kind of statement: mean milliseconds, relayed and protected.
    pub kinds: Vec<(String, f64, f64)>,
}

/// Pairs close in time, in changing order.
pub fn measure(
    [relaying, protecting]: [&Path; 2],
    tiny: bool,
    termination: &Termination,
) -> Result<Cost, CommandError> {
    let (rounds, slice) = match tiny {
        true => (2, Duration::from_millis(300)),
        false => (12, Duration::from_millis(500)),
    };
    let mut plain = Application::start(relaying, data::TWIN)?;
    let mut protected = Application::start(protecting, data::SHOP)?;
    for side in [&mut plain, &mut protected] {
        // plans, prepared statements and pages are there from then on
        side.answers()?;
        side.spent.by_kind.fill(Default::default());
    }
    let mut pairs = Vec::new();
    for round in 0..rounds {
        if termination.requested() {
            return Err(failed("ended by a signal"));
        }
        let (first, second) = match round % 2 == 0 {
            true => (&mut plain, &mut protected),
            false => (&mut protected, &mut plain),
        };
        let (a, b) = (first.speed(slice)?, second.speed(slice)?);
        pairs.push(if round % 2 == 0 { (a, b) } else { (b, a) });
    }
    let ratio = Ratio::of_pairs(&pairs).ok_or_else(|| failed("nothing was measured"))?;
    let mean = |(count, time): &(u64, Duration)| time.as_secs_f64() * 1e3 / (*count).max(1) as f64;
    let sides = plain.spent.by_kind.iter().zip(&protected.spent.by_kind);
    Ok(Cost {
        relayed: pairs.iter().map(|(relayed, _)| *relayed).collect(),
        protected: pairs.iter().map(|(_, protected)| *protected).collect(),
        ratio,
        kinds: KINDS
            .iter()
            .zip(sides)
            .map(|(kind, (relayed, protected))| ((*kind).into(), mean(relayed), mean(protected)))
            .collect(),
    })
}

impl Cost {
    /// Relayed and protected statements a second, and what that comes to.
    pub fn lines(&self) -> [String; 3] {
        let speed = |of: &[f64]| figure(median(of).unwrap_or_default());
        let Ratio {
            ratio, low, high, ..
        } = self.ratio;
        [
            format!(
                "relayed, plain: {} statements a second",
                speed(&self.relayed)
            ),
            format!("protected: {} statements a second", speed(&self.protected)),
            format!(
                "{} ({} to {}, in {} pairs)",
                change(ratio),
                change(low),
                change(high),
                self.ratio.pairs
            ),
        ]
    }
}
