//! Waiting while the server or a replica has too much to do.
//!
//! Only copying and comparing wait. Changes are always written: their backlog would only grow.

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
        })
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
        let Some((_, limit)) = self.limits.max_lag else {
            return Ok(None);
        };
        Ok(self
            .replicas
            .iter()
            .find_map(|replica| replica.objection(limit)))
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
