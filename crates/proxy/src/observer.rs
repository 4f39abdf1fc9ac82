//! What whoever operates a proxy may know of it while it runs.
//!
//! An [`Observer`] is made of a bound proxy and outlives it. It reads; nothing that it does reaches
//! a session. Whether the server is there, the sessions' own answers tell: only where there were
//! none lately is the server asked (`login/probe.rs`), by a thread of its own (`pulse.rs`).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::live::Live;
use crate::login::{LoginSettings, probe};
use crate::metrics::{Exposition, Gauges, encode};
use crate::pulse::Pulse;
use crate::status::{Counted, PartState, Status, protected};

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
    live: Arc<Live>,
    draining: Arc<AtomicBool>,
    /// Since 1970.
    started: f64,
    server: Arc<Pulse>,
    engine: Option<Arc<Pulse>>,
}

impl Observer {
    pub(crate) fn new(live: Arc<Live>, draining: Arc<AtomicBool>) -> io::Result<Observer> {
        let asked = live.clone();
        let server = pulse("server probe", move || asked.current().login.clone())?;
        let engine = match &live.current().config.scratch {
            Some(engine) => {
                let settings = Arc::new(LoginSettings::of_engine(engine));
                Some(pulse("scratch probe", move || settings.clone())?)
            }
            None => None,
        };
        Ok(Observer {
            live,
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
            // They are read at the start and by a reload, and either fails without them.
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
        let shared = self.live.current();
        let metrics = shared.metrics.as_ref()?;
        let parts = self.parts();
        let ready = parts.iter().map(|p| (p.name, p.fault.is_none()));
        let gauges = Gauges {
            started: self.started,
            ready: ready.collect(),
            plans: shared.accounts.plans() as u64,
            sessions: shared.sessions.logged_in() as u64,
            edition: shared.edition,
        };
        Some(encode(metrics, gauges, form))
    }

    /// All that there is to tell.
    pub fn status(&self) -> Status {
        let shared = self.live.current();
        let parts = self.parts().into_iter().map(|part| PartState {
            name: part.name.into(),
            fault: part.fault,
        });
        let (refused, forgotten) = shared.refused.list();
        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            started: self.started,
            now: since_1970(),
            configuration: shared.edition,
            parts: parts.collect(),
            sessions: shared.sessions.logged_in() as u64,
            engine: shared.config.scratch.is_some(),
            counted: shared.metrics.as_ref().map(|metrics| Counted::of(metrics)),
            protected: protected(&shared.accounts),
            refused,
            forgotten,
        }
    }

    fn server_fault(&self) -> Option<String> {
        let shared = self.live.current();
        let metrics = shared.metrics.as_ref();
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

fn pulse(
    name: &str,
    settings: impl Fn() -> Arc<LoginSettings> + Send + 'static,
) -> io::Result<Arc<Pulse>> {
    Pulse::begin(name, move || {
        probe(&settings(), Instant::now() + PROBE).map_err(|error| {
            let text = error.to_string();
            let fault = text.strip_prefix("server: ").unwrap_or(&text);
            fault.to_owned()
        })
    })
}
