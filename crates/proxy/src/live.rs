//! The configuration that holds now, and how sessions come to it.
//!
//! A reload puts another [`Shared`] in the place of the present one, in one step. Each session looks
//! before each command whether it still has the present one, and takes it over otherwise: with new
//! plans, and with nothing known of tables, if `[protect]`, keys or pins are others. So from the
//! moment of the exchange on no statement is begun under the configuration before, whatever the
//! session has prepared and whatever transaction it is in.
//!
//! Statements that run at that moment go on as they were planned. A reload waits for them
//! ([`SETTLE`]), and tells how many are left.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use onionskin_schema::TableName;
use parking_lot::{Mutex, RwLock};

use crate::Shared;
use crate::catalog::Accounts;
use crate::config::Config;
use crate::listener::{Admission, allow_open_files};

/// How long a reload waits for statements that run.
const SETTLE: Duration = Duration::from_secs(10);
/// How often it looks.
const TICK: Duration = Duration::from_millis(5);

/// See the module.
pub(crate) struct Live {
    current: RwLock<Arc<Shared>>,
    /// That of the present one.
    edition: AtomicU64,
    /// What is known of tables, under all configurations that a session still has.
    accounts: Mutex<Vec<Weak<Accounts>>>,
}

impl Live {
    pub fn new(shared: Arc<Shared>) -> Arc<Live> {
        Arc::new(Live {
            accounts: Mutex::new(vec![Arc::downgrade(&shared.accounts)]),
            edition: AtomicU64::new(shared.edition),
            current: RwLock::new(shared),
        })
    }

    /// What holds now.
    pub fn current(&self) -> Arc<Shared> {
        self.current.read().clone()
    }

    /// Whether this is what holds now. A session asks after it has said that it is busy, and a
    /// reload looks for busy sessions after the exchange: one of the two sees the other.
    #[inline]
    pub fn is_current(&self, shared: &Shared) -> bool {
        self.edition.load(Ordering::SeqCst) == shared.edition
    }

    /// Forgets what any session knows of these names: a definition has changed.
    pub fn forget(&self, names: &[TableName]) {
        let all: Vec<_> = self.accounts.lock().clone();
        for accounts in all.iter().filter_map(Weak::upgrade) {
            accounts.forget(names);
        }
    }

    fn replace(&self, config: Config) -> Arc<Shared> {
        let mut current = self.current.write();
        let next = current.with(config);
        {
            let mut accounts = self.accounts.lock();
            accounts.retain(|known| known.strong_count() > 0);
            accounts.push(Arc::downgrade(&next.accounts));
        }
        *current = next.clone();
        self.edition.store(next.edition, Ordering::SeqCst);
        next
    }
}

/// What came of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// Statements that began before and still run.
    pub still_running: usize,
}

/// Puts other configurations in force while the proxy runs.
#[derive(Clone)]
pub struct Reload {
    pub(crate) live: Arc<Live>,
    pub(crate) admission: Arc<Admission>,
}

impl Reload {
    /// Puts a configuration in force: for each statement and each login that begins from now on.
    /// Returns when no statement runs that began before, or after ten seconds.
    ///
    /// The address, the back end, the scratch engine's place, `functions` and `counts` have to be
    /// what they were: whoever calls this sees to it.
    pub fn put_in_force(&self, config: Config) -> Reloaded {
        allow_open_files(&config);
        self.admission.set_limits(&config.login);
        let shared = self.live.replace(config);
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
