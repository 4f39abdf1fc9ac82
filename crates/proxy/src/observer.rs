//! What whoever operates a proxy may know of it while it runs.
//!
//! An [`Observer`] is made of a bound proxy and outlives it. It reads; nothing that it does reaches
//! a session. Whether the server is there, the sessions' own answers tell: only where there were
//! none lately is the server asked (`login/probe.rs`), by a thread of its own (`pulse.rs`).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onionskin_keys::ProviderReport;

use crate::config::{Backend, ScratchConfig};
use crate::engine_place::Whereabouts;
use crate::live::Live;
use crate::login::{LoginSettings, ServerKind, ask, server_at};
use crate::members::MemberState;
use crate::metrics::{Exposition, Gauges, encode};
use crate::pulse::Pulse;
use crate::status::{Counted, PartState, Status, protected};

/// For so long an answer to a session's statement counts as one to the question whether the server
/// is there.
const LATELY: Duration = Duration::from_secs(1);

/// A part of what a proxy needs in order to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// One word: `proxy`, `server`, `keys`, `scratch`, `audit`.
    pub name: &'static str,
    /// What is wrong with it, if anything.
    pub fault: Option<String>,
    /// What is worth to be known of it, and keeps no session out.
    pub note: Option<String>,
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
        let server = Pulse::begin("server probe", move || {
            ask(&asked.current().login).map(|_| ())
        })?;
        let engine = live.current().config.scratch.clone();
        let engine = engine
            .map(|engine| Pulse::begin("scratch probe", move || engine_at(&engine).map(|_| ())));
        let engine = engine.transpose()?;
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
                note: None,
            },
            // They are read at the start and by a reload, and either fails without them. A provider
            // that is away has no part in what runs.
            Part {
                name: "keys",
                fault: None,
                note: self.provider().map(|report| note_of(&report)),
            },
            Part {
                name: "server",
                fault: self.server_fault(),
                note: note_of_members(&self.live.members()),
            },
        ];
        if let Some(engine) = &self.engine {
            parts.push(Part {
                name: "scratch",
                fault: engine.verdict().err(),
                note: None,
            });
        }
        if let Some(audit) = &self.live.current().config.audit {
            // without statements nobody else looks for room
            let fault = audit.log.find_room().err().filter(|_| audit.stops);
            parts.push(Part {
                name: "audit",
                fault: fault.map(|error| error.to_string()),
                note: None,
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
            held: shared.pool.held(),
            edition: shared.configuration,
            members: self.live.members(),
            audited: shared
                .config
                .audit
                .as_ref()
                .map_or((0, 0), |audit| audit.log.counts()),
            certificates: shared.config.certificates_end.clone(),
            active_key: shared.config.keys.active_since(),
            keys_provider: self
                .provider()
                .map(|report| (report.fault.is_none(), report.answered)),
            copies_lost: shared
                .config
                .audit
                .as_ref()
                .map_or(0, |audit| audit.log.copies_lost()),
        };
        Some(encode(metrics, gauges, form))
    }

    /// All that there is to tell.
    pub fn status(&self) -> Status {
        let shared = self.live.current();
        let parts = self.parts().into_iter().map(|part| PartState {
            name: part.name.into(),
            fault: part.fault,
            note: part.note,
        });
        let (refused, forgotten) = shared.refused.list();
        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            started: self.started,
            now: since_1970(),
            configuration: shared.configuration,
            members: self.live.members(),
            parts: parts.collect(),
            sessions: shared.sessions.logged_in() as u64,
            engine: shared.config.scratch.is_some(),
            counted: shared.metrics.as_ref().map(|metrics| Counted::of(metrics)),
            protected: protected(&shared.accounts),
            refused,
            forgotten,
        }
    }

    /// How the provider of the root key has answered, if there is one.
    fn provider(&self) -> Option<ProviderReport> {
        let shared = self.live.current();
        shared.config.keys_provider.as_ref()?.report()
    }

    fn server_fault(&self) -> Option<String> {
        let shared = self.live.current();
        if let Some(why) = &shared.leading.closed {
            return Some(format!("no member can take new sessions: {why}"));
        }
        let metrics = shared.metrics.as_ref();
        match metrics.is_some_and(|metrics| metrics.heard_within(LATELY)) {
            true => None,
            false => self.server.verdict().err(),
        }
    }
}

/// One line for all members; `None` if there is one server only.
fn note_of_members(members: &[MemberState]) -> Option<String> {
    let each = members.iter().map(|m| format!("{}: {}", m.member, m.state));
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join("; "))
}

fn note_of(report: &ProviderReport) -> String {
    match &report.fault {
        None => format!(
            "the provider {} answered when it was last asked",
            report.name
        ),
        Some((since, why)) => {
            let seconds = (since_1970() as u64).saturating_sub(*since);
            format!(
                "the provider {} has not answered for {seconds} seconds, and the keys are in memory: {why}",
                report.name
            )
        }
    }
}

fn since_1970() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// Which engine is there, or why there is none.
fn engine_at(engine: &ScratchConfig) -> Result<ServerKind, String> {
    match engine.place.now() {
        Whereabouts::At(socket) => server_at(&Backend::Unix(socket)),
        Whereabouts::Nowhere(why) => Err(why),
        Whereabouts::Starting => Err("it is being started".into()),
    }
}

/// Asks the servers of a proxy which ones they are. Each answer takes some seconds at most, and
/// each error is part of a sentence.
pub struct ServerQuestion(Arc<Live>);

impl ServerQuestion {
    pub(crate) fn new(live: Arc<Live>) -> ServerQuestion {
        ServerQuestion(live)
    }

    /// The server behind.
    pub fn server(&self) -> Result<ServerKind, String> {
        let settings: Arc<LoginSettings> = self.0.current().login.clone();
        ask(&settings)
    }

    /// The scratch engine, if one is configured.
    pub fn engine(&self) -> Option<Result<ServerKind, String>> {
        let shared = self.0.current();
        shared.config.scratch.as_ref().map(engine_at)
    }
}
