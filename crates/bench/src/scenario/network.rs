//! A network between proxies and servers, in a load experiment: how links are set, what proves a
//! run's round trip, and what links have seen.

use std::collections::BTreeMap;

use super::sides::Place;
use crate::{
    error::BenchError,
    link::{Counted, Link},
    ping::{Pings, server_alone},
    report::Proof,
};

/// The parameter of groups that says how far the server is, behind its value.
pub const ROUND_TRIP: &str = "ms round trip";

/// Sets all links to a round trip.
pub fn set(places: &mut [Place], ms: f64) -> Result<(), BenchError> {
    for place in places {
        let Some(link) = &place.link else { continue };
        if place.round_trip_ms == Some(ms) {
            continue;
        }
        if ms == 0.0 {
            link.set_one_way(std::time::Duration::ZERO);
        } else {
            Pings::open(place.server.address(), link)?.set(link, ms)?;
        }
        place.round_trip_ms = Some(ms);
    }
    Ok(())
}

/// Adds a proof that the round trip is what was asked for, and returns what it is in milliseconds,
/// the server's own time for a ping included.
pub fn prove(
    place: &Place,
    ms: f64,
    when: &str,
    proofs: &mut Vec<Proof>,
) -> Result<f64, BenchError> {
    match &place.link {
        Some(link) if ms > 0.0 => {
            let found = Pings::open(place.server.address(), link)?.measure()?;
            proofs.push(found.proof(ms, when));
            Ok(found.through_ms)
        }
        _ => server_alone(place.server.address()),
    }
}

/// What a link sees during a run.
pub struct LinkWatch<'a> {
    link: &'a Link,
    before: Counted,
}

impl<'a> LinkWatch<'a> {
    /// Begins.
    pub fn start(link: &'a Link) -> Self {
        Self {
            link,
            before: link.counted(),
        }
    }

    /// Adds what it took for each of `queries` statements. A far run that has not passed the link,
    /// or a near one that has, proves nothing.
    pub fn end(
        self,
        is_far: bool,
        queries: f64,
        metrics: &mut BTreeMap<String, f64>,
        proofs: &mut Vec<Proof>,
    ) {
        let (before, after) = (self.before, self.link.counted());
        let trips = after.trips - before.trips;
        proofs.push(Proof {
            what: "round trips over the link".into(),
            expected: if is_far { "more than none" } else { "0" }.into(),
            found: trips.to_string(),
            holds: (trips > 0) == is_far,
        });
        if !is_far {
            return;
        }
        let queries = queries.max(1.0);
        metrics.insert("round_trips".into(), trips as f64 / queries);
        let pieces = (after.pieces - before.pieces).max(1) as f64;
        let late = (after.late_seconds - before.late_seconds) * 1e6 / pieces;
        metrics.insert("link_late_us".into(), late);
        if let (Some(before), Some(after)) = (before.cpu_seconds, after.cpu_seconds) {
            metrics.insert("link_cpu_us".into(), (after - before) * 1e6 / queries);
        }
    }
}
