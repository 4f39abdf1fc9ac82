//! `keys_ttl_seconds`: keys are used for no longer than that after their provider last answered.
//!
//! A thread asks it again when about half of the time is over, and more often from then on. If it
//! has not answered by the end, the proxy ends as if by a signal: sessions are drained, and the
//! keys go with the process. A proxy that went on and refused would still have them in memory.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use crate::service::Service;

/// Proxies that were started together ask at times of their own: between these parts of the time.
const FIRST: (f64, f64) = (0.4, 0.6);
/// What does not answer is asked again after this part of the time,
const AGAIN: f64 = 0.05;
/// and not more often than this.
const SHORTEST: Duration = Duration::from_millis(100);
/// How often it is looked whether a reload has asked meanwhile.
const LOOK: Duration = Duration::from_secs(1);

/// See the module.
pub struct KeysWatch {
    has_expired: Arc<AtomicBool>,
}

impl KeysWatch {
    /// Watches for as long as the proxy runs.
    pub fn begin(service: &Arc<Service>, ttl: Duration) -> std::io::Result<KeysWatch> {
        let has_expired = Arc::new(AtomicBool::new(false));
        let (service, expired) = (Arc::downgrade(service), has_expired.clone());
        thread::Builder::new()
            .name("keys watch".into())
            .spawn(move || watch(&service, ttl, &expired))?;
        Ok(KeysWatch { has_expired })
    }

    /// Whether the time was over.
    pub fn has_expired(&self) -> bool {
        self.has_expired.load(Ordering::SeqCst)
    }
}

fn watch(service: &Weak<Service>, ttl: Duration, expired: &AtomicBool) {
    // The start has asked, so there is an answer.
    let mut next = first(ttl);
    loop {
        let Some(running) = service.upgrade() else {
            return;
        };
        let reloader = running.reloader();
        let since = reloader.keys_provider().since_answer().unwrap_or(ttl);
        if since >= ttl {
            tracing::error!(
                "the provider of the root key has not answered for {} seconds (keys_ttl_seconds): the proxy ends",
                since.as_secs()
            );
            expired.store(true, Ordering::SeqCst);
            return running.begin_to_end();
        }
        if since < next {
            drop(running);
            // never beyond the end
            thread::sleep((next - since).min(ttl - since).min(LOOK));
            continue;
        }
        match reloader.ask_provider() {
            Ok(()) => next = first(ttl),
            Err(error) => {
                let left = ttl.saturating_sub(since).as_secs();
                tracing::warn!("{error}; the keys may be used for {left} seconds more");
                next = since + ttl.mul_f64(AGAIN).max(SHORTEST);
            }
        }
    }
}

/// After how long it is asked for the first time.
fn first(ttl: Duration) -> Duration {
    ttl.mul_f64(rand::random_range(FIRST.0..FIRST.1))
}
