//! The round trip of a link, proved by pings.
//!
//! COM_PING goes to the server past the link and through it, in turns. What the link adds is what a
//! quarter of the pings through it stay below, less the quickest past it. So a link to a server
//! that is far already is measured by the same rule. Medians would say less of the link and more of
//! the machine: where others use it, half of all pings wait for a processor somewhere.

use std::time::Instant;

use mysql::Conn;

use crate::{
    driver::connect, error::BenchError, link::Link, report::Proof, server::Address, stats::median,
};

/// Pings of a measurement, each way.
const PINGS: usize = 31;
/// Before them, so that connections and caches are warm.
const WARM_UP: usize = 3;
/// How far a round trip may be from what was asked for, as a share of it.
const TOLERANCE: f64 = 0.1;
/// The same in milliseconds: less is the machine's mood.
const LEAST_TOLERANCE_MS: f64 = 0.03;

/// Round trips in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrip {
    /// Past the link, the quickest.
    pub quickest_past_ms: f64,
    /// Past the link, the median.
    pub past_ms: f64,
    /// Through it, the lower quartile.
    pub through_ms: f64,
}

/// Pings a server past a link and through it.
pub struct Pings {
    past: Conn,
    through: Conn,
}

impl Pings {
    /// Logs in on both ways.
    pub fn open(server: &Address, link: &Link) -> Result<Self, BenchError> {
        Ok(Self {
            past: connect(server)?,
            through: connect(&server.through(link.port()))?,
        })
    }

    /// Measures now.
    pub fn measure(&mut self) -> Result<RoundTrip, BenchError> {
        let (past, through) = (&mut self.past, &mut self.through);
        in_turns(|| past.ping(), || through.ping()).map_err(|error| BenchError::Statement {
            sql: "COM_PING".into(),
            said: error.to_string(),
        })
    }
}

/// The median round trip to a server without a link, in milliseconds.
pub fn server_alone(server: &Address) -> Result<f64, BenchError> {
    let mut pings = [connect(server)?, connect(server)?];
    let [past, through] = &mut pings;
    in_turns(|| past.ping(), || through.ping())
        .map(|found| found.past_ms)
        .map_err(|error| BenchError::Statement {
            sql: "COM_PING".into(),
            said: error.to_string(),
        })
}

/// Pings both ways in turns.
fn in_turns<E>(
    mut past: impl FnMut() -> Result<(), E>,
    mut through: impl FnMut() -> Result<(), E>,
) -> Result<RoundTrip, E> {
    let mut taken = [Vec::new(), Vec::new()];
    for n in 0..WARM_UP + PINGS {
        let mut timed = |way: usize, ping: &mut dyn FnMut() -> Result<(), E>| {
            let begin = Instant::now();
            ping()?;
            if n >= WARM_UP {
                taken[way].push(begin.elapsed().as_secs_f64() * 1e3);
            }
            Ok(())
        };
        timed(0, &mut past)?;
        timed(1, &mut through)?;
    }
    let quickest_past_ms = taken[0].iter().copied().fold(f64::INFINITY, f64::min);
    let [past, mut through] = taken;
    through.sort_by(f64::total_cmp);
    let past_ms = median(&past).unwrap_or(f64::NAN);
    let through_ms = through[PINGS / 4];
    Ok(RoundTrip {
        quickest_past_ms,
        past_ms,
        through_ms,
    })
}

impl RoundTrip {
    /// What the link adds.
    pub fn added_ms(self) -> f64 {
        self.through_ms - self.quickest_past_ms
    }

    /// Whether that is what was asked for.
    pub fn proof(self, asked_ms: f64, when: &str) -> Proof {
        let tolerance = (asked_ms * TOLERANCE).max(LEAST_TOLERANCE_MS);
        Proof {
            what: format!("{when}: what the link adds to a round trip (COM_PING)"),
            expected: format!("{asked_ms} ms, ± {tolerance:.2}"),
            found: format!(
                "{:.3} ms: {:.3} through it, {:.3} past it at best",
                self.added_ms(),
                self.through_ms,
                self.quickest_past_ms
            ),
            holds: (self.added_ms() - asked_ms).abs() <= tolerance,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Read, Write},
        net::TcpStream,
        time::Duration,
    };

    use super::*;
    use crate::link::tests::echo_server;

    fn ping(socket: &mut TcpStream) -> io::Result<()> {
        socket.write_all(b"ping!")?;
        socket.read_exact(&mut [0; 5])
    }

    #[test]
    fn a_link_that_adds_something_else_is_no_proof() {
        let port = echo_server();
        let link = Link::to("127.0.0.1", port).expect("a link");
        let connect = |port| {
            let socket = TcpStream::connect(("127.0.0.1", port)).expect("connected");
            socket.set_nodelay(true).expect("no delay");
            socket
        };
        let (mut past, mut through) = (connect(port), connect(link.port()));
        let mut measure = || in_turns(|| ping(&mut past), || ping(&mut through)).expect("pings");
        link.set_one_way(Duration::from_millis(10));
        let found = measure();
        assert!(found.proof(20.0, "before").holds, "{found:?}");
        assert!(!found.proof(15.0, "before").holds, "{found:?}");
        // A link that forgets its delay.
        link.set_one_way(Duration::ZERO);
        let found = measure();
        let proof = found.proof(20.0, "after");
        assert!(!proof.holds, "{found:?}");
        assert!(proof.what.starts_with("after: ") && proof.expected.starts_with("20 ms"));
    }

    #[test]
    fn the_tolerance_is_a_tenth_and_not_less_than_the_machines_mood() {
        let found = |added_ms: f64| RoundTrip {
            quickest_past_ms: 0.05,
            past_ms: 0.09,
            through_ms: 0.05 + added_ms,
        };
        for (asked, added, holds) in [
            (5.0, 5.45, true),
            (5.0, 5.55, false),
            (5.0, 4.45, false),
            (0.2, 0.225, true),
            (0.2, 0.24, false),
        ] {
            assert_eq!(found(added).proof(asked, "").holds, holds, "{added}");
        }
    }
}
