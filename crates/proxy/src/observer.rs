//! What whoever operates a proxy may know of it while it runs.
//!
//! An [`Observer`] is made of a bound proxy and outlives it. It reads; nothing that it does reaches
//! a session. Whether the server is there, the sessions' own answers tell: only where there were
//! none lately is the server asked (`login/probe.rs`), by a thread of its own (`pulse.rs`).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::Shared;
use crate::login::{LoginSettings, probe};
use crate::metrics::{Exposition, Gauges, encode};
use crate::pulse::Pulse;

/// How long the server may take to be reached, greet, and refuse a login.
const PROBE: Duration = Duration::from_secs(5);

/// For so long an answer to a session's statement counts as one to the question whether the server
/// is there.
const LATELY: Duration = Duration::from_secs(1);

/// A part of what a proxy needs in order to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// One word: `proxy`, `server`, `keys`, `scratch`.
    pub name: &'static str,
    /// What is wrong with it, if anything.
    pub fault: Option<String>,
}

/// What is known of a running proxy.
pub struct Observer {
    shared: Arc<Shared>,
    draining: Arc<AtomicBool>,
    /// Since 1970.
    started: f64,
    server: Arc<Pulse>,
    engine: Option<Arc<Pulse>>,
}

impl Observer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        draining: Arc<AtomicBool>,
        settings: Arc<LoginSettings>,
    ) -> io::Result<Observer> {
        let server = pulse("server probe", settings)?;
        let engine = match &shared.config.scratch {
            Some(engine) => {
                let settings = LoginSettings::of_engine(engine);
                Some(pulse("scratch probe", Arc::new(settings))?)
            }
            None => None,
        };
        Ok(Observer {
            shared,
            draining,
            started: since_1970(),
            server,
            engine,
        })
    }

    /// The parts that new sessions need, each with its fault if it has one.
    pub fn parts(&self) -> Vec<Part> {
        let draining = self.draining.load(Ordering::SeqCst);
        let mut parts = vec![
            Part {
                name: "proxy",
                fault: draining.then(|| "is ending: sessions are drained".into()),
            },
            // They are read at the start, and a start without them fails.
            Part {
                name: "keys",
                fault: None,
            },
            Part {
                name: "server",
                fault: self.server_fault(),
            },
        ];
        if let Some(engine) = &self.engine {
            parts.push(Part {
                name: "scratch",
                fault: engine.verdict().err(),
            });
        }
        parts
    }

    /// All metrics as text; `None` if nothing is counted.
    pub fn metrics(&self, form: Exposition) -> Option<String> {
        let metrics = self.shared.metrics.as_ref()?;
        let parts = self.parts();
        let ready = parts.iter().map(|p| (p.name, p.fault.is_none()));
        let gauges = Gauges {
            started: self.started,
            ready: ready.collect(),
            plans: self.shared.accounts.plans() as u64,
            sessions: self.shared.sessions.logged_in() as u64,
        };
        Some(encode(metrics, gauges, form))
    }

    fn server_fault(&self) -> Option<String> {
        let metrics = self.shared.metrics.as_ref();
        match metrics.is_some_and(|metrics| metrics.heard_within(LATELY)) {
            true => None,
            false => self.server.verdict().err(),
        }
    }
}

fn since_1970() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

fn pulse(name: &str, settings: Arc<LoginSettings>) -> io::Result<Arc<Pulse>> {
    Pulse::begin(name, move || {
        probe(&settings, Instant::now() + PROBE).map_err(|error| {
            let text = error.to_string();
            let fault = text.strip_prefix("server: ").unwrap_or(&text);
            fault.to_owned()
        })
    })
}
