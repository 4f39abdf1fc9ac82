//! Waiting while the server or a replica has too much to do.
//!
//! Only copying and comparing wait. Changes are always written: their backlog would only grow.
//!
//! A node of a Galera cluster that cannot follow makes all others wait (flow control), the
//! application's sessions among them. Where that happens, copying waits until it is over, but not
//! for ever: the application may do that all day without us.

use std::time::{Duration, Instant};

use onionskin_rowstream::session::{Login, Session};

use crate::error::{MigrateError, Result};
use crate::progress::Progress;
use crate::replicas::Watched;

/// When to wait.
#[derive(Clone, Default)]
pub struct Limits {
    /// A status variable and its greatest value, `Threads_running=50`.
    pub max_load: Option<(String, u64)>,
    /// Replicas and the greatest lag in seconds that they may have.
    pub max_lag: Option<(Vec<Login>, u64)>,
}

/// How often it is looked.
const EVERY: Duration = Duration::from_millis(500);
/// Which part of the time a cluster's flow control may hold writers back, in percent.
const MOST_PAUSED: u128 = 10;
/// For how long copying waits for it at a time.
const FLOW_PATIENCE: Duration = Duration::from_secs(5);
/// How long the server may take to tell its load: behind a dead network nobody answers.
const LOOK: Duration = Duration::from_secs(60);

/// Reads `Threads_running=50`.
pub fn parse_load(text: &str) -> std::result::Result<(String, u64), String> {
    let parsed = text.split_once('=').and_then(|(name, limit)| {
        let name = name.trim();
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        Some((name.to_owned(), limit.trim().parse().ok()?)).filter(|_| is_name)
    });
    parsed.ok_or_else(|| {
        format!("{text:?}: write the name of a status variable and a number, Threads_running=50")
    })
}

/// Looks now and then.
pub(crate) struct Throttle {
    limits: Limits,
    replicas: Vec<Watched>,
    looked: Option<Instant>,
    waits: bool,
    /// Of a cluster: for how many nanoseconds flow control had held writers back, and when.
    flow: Option<(u128, Instant)>,
    heeds_flow: bool,
    /// Since when it is waited for flow control.
    held: Option<Instant>,
}

impl Throttle {
    /// `begins`: all replicas must answer now. Later on, one that does not is waited for.
    pub fn new(limits: Limits, begins: bool) -> Result<Self> {
        let mut replicas = Vec::new();
        for login in limits.max_lag.iter().flat_map(|(logins, _)| logins) {
            let replica = Watched::new(login, begins);
            replicas.push(replica.map_err(MigrateError::sql("asking a replica for its lag"))?);
        }
        Ok(Self {
            limits,
            replicas,
            looked: None,
            waits: false,
            flow: None,
            heeds_flow: false,
            held: None,
        })
    }

    /// Whether a cluster's flow control makes it wait.
    pub fn heed_flow_control(&mut self, heeds: bool) {
        self.heeds_flow = heeds;
    }

    /// Whether to wait now.
    pub fn waits(&mut self, session: &mut Session, progress: &Progress) -> Result<bool> {
        if self.looked.is_some_and(|looked| looked.elapsed() < EVERY) {
            return Ok(self.waits);
        }
        self.looked = Some(Instant::now());
        let reason = self.reason(session)?;
        if let (Some(reason), false) = (&reason, self.waits) {
            progress.note(format!("waiting: {reason}"));
        }
        self.waits = reason.is_some();
        Ok(self.waits)
    }

    fn reason(&mut self, session: &mut Session) -> Result<Option<String>> {
        if let Some((name, limit)) = &self.limits.max_load {
            let doing = MigrateError::sql("reading the server's load");
            session.set_longest_answer(Some(LOOK)).map_err(&doing)?;
            let rows = session
                .texts(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))
                .map_err(&doing)?;
            session.set_longest_answer(None).map_err(&doing)?;
            let value = rows.first().and_then(|row| row.get(1)?.clone());
            let value: u64 = value.and_then(|value| value.parse().ok()).ok_or_else(|| {
                MigrateError::Request(format!("there is no status variable {name} with a number"))
            })?;
            if value > *limit {
                return Ok(Some(format!("{name} is {value}")));
            }
        }
        if self.heeds_flow && self.is_held_back(session)? {
            return Ok(Some(
                "a node of the cluster cannot follow (flow control)".into(),
            ));
        }
        let Some((_, limit)) = self.limits.max_lag else {
            return Ok(None);
        };
        Ok(self
            .replicas
            .iter()
            .find_map(|replica| replica.objection(limit)))
    }

    /// Whether flow control has held writers back for a good part of the time since the last look.
    fn is_held_back(&mut self, session: &mut Session) -> Result<bool> {
        let rows = session
            .texts("SHOW GLOBAL STATUS LIKE 'wsrep_flow_control_paused_ns'")
            .map_err(MigrateError::sql("reading the cluster's flow control"))?;
        let value = rows.first().and_then(|row| row.get(1)?.clone());
        let paused: u128 = value.and_then(|value| value.parse().ok()).unwrap_or(0);
        let now = Instant::now();
        let before = self.flow.replace((paused, now));
        let is_held_back = before.is_some_and(|(paused_before, then)| {
            let time = now.duration_since(then).as_nanos();
            paused.saturating_sub(paused_before) * 100 > time * MOST_PAUSED
        });
        if !is_held_back {
            self.held = None;
            return Ok(false);
        }
        let held = *self.held.get_or_insert(now);
        let waits = now.duration_since(held) < FLOW_PATIENCE;
        if !waits {
            // One look's time of work, and then again.
            self.held = None;
        }
        Ok(waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_a_name_and_a_number() {
        assert_eq!(
            parse_load("Threads_running=50"),
            Ok(("Threads_running".into(), 50))
        );
        for wrong in ["", "Threads_running", "a b=1", "x=-1", "'=1"] {
            assert!(parse_load(wrong).is_err(), "{wrong}");
        }
    }
}
