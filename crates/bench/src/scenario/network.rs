//! A network between proxies and servers, in a load experiment: how links are set, what proves a
//! run's round trip, and what links have seen.

use std::{collections::BTreeMap, time::Duration};

use super::sides::Place;
use crate::{
    error::BenchError,
    link::{Counted, Link},
    ping::{Pings, server_alone},
    report::Proof,
};

/// Sets all links to a round trip in milliseconds. What it takes to wake the relay and the server
/// for a packet, four times, is part of the round trip: pings find out how much that is now.
pub fn set(places: &[Place], ms: f64) -> Result<(), BenchError> {
    for place in places {
        let Some(link) = &place.link else { continue };
        let one_way = |excess_ms: f64| ((ms - excess_ms) / 2e3).max(0.0);
        link.set_one_way(Duration::from_secs_f64(one_way(0.0)));
        if ms > 0.0 {
            let found = Pings::open(place.server.address(), link)?.measure()?;
            let excess_ms = found.added_ms() - ms;
            link.set_one_way(Duration::from_secs_f64(one_way(excess_ms)));
        }
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
        let off = (after.off_seconds - before.off_seconds) * 1e6 / pieces;
        metrics.insert("link_off_us".into(), off);
        if let (Some(before), Some(after)) = (before.cpu_seconds, after.cpu_seconds) {
            metrics.insert("link_cpu_us".into(), (after - before) * 1e6 / queries);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpStream,
    };

    use super::*;
    use crate::link::tests::echo_server;

    #[test]
    fn a_run_that_takes_another_way_proves_nothing() {
        let port = echo_server();
        let link = Link::to("127.0.0.1", port).expect("a link");
        link.set_one_way(Duration::from_millis(1));
        let run = |over_the_link: bool, is_far: bool| {
            let watch = LinkWatch::start(&link);
            let way = if over_the_link { link.port() } else { port };
            let mut socket = TcpStream::connect(("127.0.0.1", way)).expect("connected");
            for _ in 0..10 {
                socket.write_all(b"a").expect("written");
                socket.read_exact(&mut [0]).expect("answered");
            }
            let (mut metrics, mut proofs) = Default::default();
            watch.end(is_far, 5.0, &mut metrics, &mut proofs);
            let [proof] = <[Proof; 1]>::try_from(proofs).expect("one proof");
            (proof.holds, metrics)
        };
        let (holds, metrics) = run(true, true);
        assert!(holds);
        assert_eq!(metrics["round_trips"], 2.0, "ten for five statements");
        assert!(metrics["link_off_us"] >= 0.0);
        let (holds, metrics) = run(false, false);
        assert!(holds && metrics.is_empty());
        // The load went past the link, or a near one over it.
        assert!(!run(false, true).0);
        assert!(!run(true, false).0);
    }
}
