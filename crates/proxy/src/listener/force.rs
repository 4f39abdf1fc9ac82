//! Another configuration is put in force while the proxy runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::admission::Admission;
use super::allow_open_files;
use super::reads::Reads;
use crate::config::Config;
use crate::live::Live;

/// How long a reload waits for statements that run.
const SETTLE: Duration = Duration::from_secs(10);
/// How often it looks.
const TICK: Duration = Duration::from_millis(5);

/// What came of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// Statements that began before and still run.
    pub still_running: usize,
}

/// Puts other configurations in force while the proxy runs.
#[derive(Clone)]
pub struct Reload {
    live: Arc<Live>,
    reads: Arc<Reads>,
    admission: Arc<Admission>,
}

impl Reload {
    pub(super) fn new(live: Arc<Live>, reads: Arc<Reads>, admission: Arc<Admission>) -> Self {
        Reload {
            live,
            reads,
            admission,
        }
    }

    /// Puts a configuration in force: for each statement and each login that begins from now on.
    /// Returns when no statement runs that began before, or after ten seconds.
    ///
    /// The address, the back end (a list of several may be another list), the scratch engine's
    /// place, `functions` and `counts` have to be what they were: whoever calls this sees to it.
    pub fn put_in_force(&self, config: Config) -> Reloaded {
        allow_open_files(&config);
        self.admission.set_limits(&config.login);
        let config = Arc::new(config);
        let shared = self.live.replace(config.clone());
        // their editions come later
        self.reads.replace(&config);
        let until = Instant::now() + SETTLE;
        loop {
            let still_running = shared.sessions.busy_before(shared.edition);
            if still_running == 0 || Instant::now() >= until {
                return Reloaded { still_running };
            }
            std::thread::sleep(TICK);
        }
    }

    /// A reload has come to this, for the metrics.
    pub fn count(&self, succeeded: bool) {
        if let Some(metrics) = &self.live.current().metrics {
            metrics.reloaded(succeeded);
        }
    }
}
