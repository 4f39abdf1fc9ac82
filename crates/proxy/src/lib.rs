//! The encrypting proxy: one thread, one client connection and one server connection a session.
//!
//! | file | holds |
//! |---|---|
//! | `listener` | accepts clients, one thread each, and ends them |
//! | `live` | the configuration that holds now, and how sessions come to it |
//! | `members` | which of several servers new sessions go to |
//! | `network` | addresses that the configuration lists |
//! | `gate` | where clients are waited for, until that ends |
//! | `watch` | one thread that sees the ends of all connections |
//! | `metrics` | what is counted, and how it is told |
//! | `observer`, `pulse` | what an operator may know of a running proxy; whether its servers are there |
//! | `status`, `refused` | all that is told of a running proxy; statements that were refused, by shape |
//! | `login` | the relayed handshake, TLS on both sides |
//! | `session` | the loop: read a command, plan, bind, run, open, write |
//! | `state` | what the server's session tracking says about the session |
//! | `unusual` | session variables under which statements are refused |
//! | `catalog` | the snapshot of the schema, per account, and the plan cache |
//! | `renewal` | how old that may be, and the look-up that renews all of it |
//! | `bind` | values into cells and tokens, text or parameters |
//! | `open` | result metadata and cells back |
//! | `finish`, `row_update`, `row_delete` | tier 2 |
//! | `scratch` | tier 3 |
//! | `foreign_keys` | what the server does not do for keys over protected columns, and is asked about |
//! | `upsert` | the rows that REPLACE and ON DUPLICATE KEY UPDATE meet |
//! | `prepared`, `relayed` | prepared statements; those of tables that were not protected when they were prepared |
//! | `functions` | cryptographic functions that the proxy computes |
//! | `by_name` | PREPARE, EXECUTE and EXECUTE IMMEDIATE as SQL |
//! | `present` | the time of a statement, as the server tells it |
//! | `rarest`, `gram_rows` | which grams of a pattern MySQL looks up, and what is remembered of them |
//! | `explain` | what would be done with a statement |
//! | `define`, `copy`, `show` | definitions of tables, and how they are shown |
//! | `view_constants` | tokens in the texts of views, with what the client wrote |
//! | `temporary` | temporary tables with protected columns |
//! | `diagnostics` | what is asked about the last statement: warnings, ROW_COUNT() |
//! | `hot_path` | a session on a stage, for the counts of its instructions |
//! | `exchange` | statements of the proxy's own on the session's connection |
//! | `rows_end` | the end of rows, which has two forms |
//! | `long_values` | commands that are longer than the server takes |
//! | `engine_place` | where the scratch engine is at the moment |
//! | `session_limits` | how many sessions there may be |
//! | `touched`, `audit` | cells that a statement opens and seals, and its line in the audit log |
//! | `slow_log` | how many lines slow statements get |
//! | `statement_shapes` | what an application asks, counted without values |
//! | `config`, `error` | what a proxy is told when it starts; why a statement did not run |

mod age;
mod audit;
mod bind;
mod by_name;
mod catalog;
mod certificates;
mod client_address;
mod clusters;
mod config;
mod copy;
mod define;
mod diagnostics;
mod engine_place;
mod error;
mod exchange;
mod explain;
#[cfg(debug_assertions)]
mod faults;
mod filled;
mod finish;
mod foreign_keys;
mod fresh_transaction;
mod functions;
mod gate;
mod gram_rows;
mod hex;
#[doc(hidden)]
pub mod hot_path;
mod identity;
mod keep_alive;
mod listener;
mod live;
mod login;
mod long_values;
mod mask;
mod members;
mod metrics;
mod network;
mod next_transaction;
mod observer;
mod open;
mod packet_bound;
mod part;
mod parts;
mod pinned;
mod pins;
mod plain_marks;
mod prepared;
mod present;
mod proxy_protocol;
mod pulse;
mod rarest;
mod refill;
mod refit;
mod refused;
mod registry;
mod renewal;
mod row_delete;
mod row_update;
mod rows_end;
mod scratch;
mod server_errors;
mod session;
mod session_limits;
mod set_lock;
mod show;
mod shown;
mod slow_log;
mod state;
mod statement_shapes;
mod status;
mod temporary;
mod touched;
mod unique_keys;
mod unseen;
mod unusual;
mod upsert;
mod view_constants;
mod view_text;
mod watch;
mod written;

use members::{Leading, Side};
use onionskin_plan::UseScratch;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

pub use certificates::{
    CertificateRule, CertificateRuleError, CertificateRules, CertificateSections, certificates_end,
};
pub use client_address::ClientAddress;
pub use config::{
    AuditConfig, Backend, BackendTls, Config, FinishLimits, FunctionsConfig, LoginLimits,
    ScratchConfig, SessionLimits, SlowLimits,
};
pub use engine_place::{EnginePlace, Whereabouts};
pub use explain::{Explained, LoadTables, explain, statements};
pub use gate::Gate;
pub use listener::{
    Bound, Lead, ListenAddress, Manner, Proxy, Reads, Reload, Reloaded, SocketFile, Stopper,
    bind_unix,
};
pub use login::{ServerKind, server_at};
pub use mask::{MaskError, MaskSections, Masks};
pub use members::{CatchUp, Drained, MemberState, Place};
pub use metrics::{Exposition, METRICS, MetricHelp};
pub use network::Network;
pub use observer::{Observer, Part, ServerQuestion};
pub use onionskin_plan::lex::used_database;
pub use pins::{PinError, PinFile, findings_at_start};
pub use refused::{Help, Refused};
pub use statement_shapes::{StatementShape, StatementShapes, TakenShapes};
pub use status::{Counted, PartState, ProtectedColumn, ProtectedTable, Statements, Status};

/// What is told before any member has been asked.
const UNASKED: &str = "the members have not been asked yet";

/// One count for all sides: a reload waits for the sessions of all of them.
static NEXT_EDITION: AtomicU64 = AtomicU64::new(1);

/// What all sessions of one side (see [`members`]) share under one configuration.
pub(crate) struct Shared {
    pub config: Arc<Config>,
    /// Whatever sessions have to take over is another edition, of all sides: the first is 0.
    pub edition: u64,
    /// Which of the running proxy's configurations this is: the first is 0.
    pub configuration: u64,
    /// Which server sessions go to, where there are several.
    pub leading: Leading,
    /// For sessions of `listen_read`: what those of `listen` share.
    pub primary: Option<Weak<live::Live>>,
    /// The part of it that logins depend on.
    pub login: Arc<login::LoginSettings>,
    pub sessions: Arc<registry::Registry>,
    pub accounts: Arc<catalog::Accounts>,
    pub told: Arc<pins::Told>,
    pub cell_memory: Arc<row_update::CellMemory>,
    pub gram_rows: Arc<gram_rows::GramRows>,
    /// What sessions of `listen` have written, if those of `listen_read` wait for it.
    pub written: Option<Arc<written::Written>>,
    /// What is counted, if anything is.
    pub metrics: Option<Arc<metrics::Metrics>>,
    /// Statements that were refused.
    pub refused: Arc<refused::RefusedShapes>,
    /// What statements hold that the proxy finishes.
    pub pool: Arc<finish::Pool>,
    /// Lines about slow statements.
    pub slow_log: Arc<slow_log::SlowLog>,
}

impl Shared {
    /// When statements go to the scratch engine.
    pub(crate) fn use_scratch(&self) -> UseScratch {
        match self.config.scratch {
            Some(_) => UseScratch::IfNeeded,
            None => UseScratch::Never,
        }
    }

    pub(crate) fn new(config: Config) -> Arc<Self> {
        let leading = Leading {
            closed: config.member_timeout.map(|_| UNASKED.into()),
            ..Leading::default()
        };
        Arc::new(Shared {
            edition: 0,
            configuration: 0,
            login: Arc::new(login::LoginSettings::of(&config, &leading)),
            leading,
            primary: None,
            sessions: Arc::default(),
            accounts: Arc::new(catalog::Accounts::new(rules(&config, 0, Arc::default()))),
            told: Arc::default(),
            written: config.causal.map(|_| Arc::default()),
            metrics: config.counts.then(|| Arc::new(metrics::Metrics::new())),
            refused: Arc::default(),
            pool: Arc::default(),
            slow_log: Arc::default(),
            config: Arc::new(config),
            cell_memory: Arc::default(),
            gram_rows: Arc::default(),
        })
    }

    /// The same proxy under another configuration. What is known of tables, and the plans, stay if
    /// nothing that they rest on has changed.
    pub(crate) fn with(&self, config: Arc<Config>) -> Arc<Self> {
        let before = &self.config;
        let same_pins = match (&before.pins, &config.pins) {
            (None, None) => true,
            (Some(before), Some(pins)) => Arc::ptr_eq(before, pins),
            _ => false,
        };
        let stays = same_pins
            && before.policy == config.policy
            && before.masks == config.masks
            && before.suite == config.suite
            && before.like_index == config.like_index
            && Arc::ptr_eq(&before.keys, &config.keys);
        self.next(config, self.configuration + 1, self.leading.clone(), stays)
    }

    /// The same configuration with another server for new sessions, or none. Of tables nothing is
    /// known any more if the server is another one.
    pub(crate) fn led(&self, leading: Leading) -> Arc<Self> {
        let stays = leading.term == self.leading.term;
        self.next(self.config.clone(), self.configuration, leading, stays)
    }

    /// The same for the sessions of `listen_read` at one member: nothing that is known of tables
    /// is theirs, but for the names that were protected once.
    pub(crate) fn beside(&self, number: u32, primary: Weak<live::Live>) -> Arc<Self> {
        let leading = Leading {
            side: Side::Reading(number),
            closed: Some(UNASKED.into()),
            ..Leading::default()
        };
        let config = self.config.clone();
        self.next_of(config, self.configuration, leading, false, Some(primary))
    }

    /// `stays`: what is known of tables.
    fn next(
        &self,
        config: Arc<Config>,
        configuration: u64,
        leading: Leading,
        stays: bool,
    ) -> Arc<Self> {
        let primary = self.primary.clone();
        self.next_of(config, configuration, leading, stays, primary)
    }

    fn next_of(
        &self,
        config: Arc<Config>,
        configuration: u64,
        leading: Leading,
        stays: bool,
        primary: Option<Weak<live::Live>>,
    ) -> Arc<Self> {
        let edition = NEXT_EDITION.fetch_add(1, Ordering::SeqCst);
        Arc::new(Shared {
            edition,
            configuration,
            login: Arc::new(login::LoginSettings::of(&config, &leading)),
            leading,
            primary,
            sessions: self.sessions.clone(),
            accounts: match stays {
                true => self.accounts.clone(),
                false => {
                    let once = self.accounts.once_protected();
                    Arc::new(catalog::Accounts::new(rules(&config, edition, once)))
                }
            },
            told: match stays {
                true => self.told.clone(),
                false => Arc::default(),
            },
            // cells that were read, under keys made of their columns
            cell_memory: match stays {
                true => self.cell_memory.clone(),
                false => Arc::default(),
            },
            gram_rows: match stays {
                true => self.gram_rows.clone(),
                false => Arc::default(),
            },
            written: self.written.clone(),
            metrics: self.metrics.clone(),
            refused: self.refused.clone(),
            pool: self.pool.clone(),
            slow_log: self.slow_log.clone(),
            config,
        })
    }
}

fn rules(config: &Config, edition: u64, once: Arc<catalog::OnceProtected>) -> catalog::Rules {
    if let Some(file) = &config.pins {
        once.note_pinned(&file.pins());
    }
    catalog::Rules {
        pins: config.pins.clone(),
        policy: Arc::new(config.policy.clone()),
        masks: Arc::new(config.masks.clone()),
        once,
        edition,
    }
}
