//! SIGTERM and SIGINT end the program in order: sessions first, then the private server.
//!
//! The first signal calls what [`Termination::on_signal`] was given. A later one ends the program
//! at once, for those who cannot wait for a statement that takes an hour; the private server then
//! ends by itself, see [`crate::tied`].

use std::{
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

/// A second signal within this time says the same as the first: some tools send it to the process
/// and to its group.
const SAME_SIGNAL: Duration = Duration::from_secs(2);

/// Knows whether the program was asked to end.
#[derive(Clone, Default)]
pub struct Termination {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    requested: bool,
    actions: Vec<Box<dyn FnOnce() + Send>>,
}

impl Termination {
    /// From now on signals do not kill the program.
    pub fn watch() -> io::Result<Self> {
        let mut signals = Signals::new([SIGTERM, SIGINT])?;
        let termination = Self::default();
        let watched = termination.clone();
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                let mut first = None;
                for signal in signals.forever() {
                    let since = first.get_or_insert_with(Instant::now).elapsed();
                    if watched.request() {
                        tracing::info!("signal {signal}: ending");
                    } else if since > SAME_SIGNAL {
                        tracing::warn!("signal {signal} again: ending at once");
                        std::process::exit(1);
                    }
                }
            })?;
        Ok(termination)
    }

    /// Whether a signal has come.
    pub fn requested(&self) -> bool {
        self.state.lock().requested
    }

    /// What the first signal calls, before whatever it was given earlier: what was set up last is
    /// cleared first. Called at once if the signal has come already.
    pub fn on_signal(&self, action: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        if state.requested {
            drop(state);
            action();
        } else {
            state.actions.push(Box::new(action));
        }
    }

    /// The program is to end, or a part of it that has a watch of its own. Returns whether it is
    /// the first time.
    pub fn request(&self) -> bool {
        let mut state = self.state.lock();
        let first = !std::mem::replace(&mut state.requested, true);
        let actions = std::mem::take(&mut state.actions);
        drop(state);
        for action in actions.into_iter().rev() {
            action();
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn what_was_set_up_last_comes_first() {
        let termination = Termination::default();
        let order = Arc::new(Mutex::new(Vec::new()));
        for number in 0..3 {
            let order = Arc::clone(&order);
            termination.on_signal(move || order.lock().push(number));
        }
        assert!(termination.request());
        assert_eq!(*order.lock(), [2, 1, 0]);
    }

    #[test]
    fn the_action_runs_once_whichever_comes_first() {
        for signal_first in [false, true] {
            let calls = Arc::new(AtomicU32::new(0));
            let counted = Arc::clone(&calls);
            let termination = Termination::default();
            let action = move || {
                counted.fetch_add(1, Ordering::Relaxed);
            };
            if signal_first {
                assert!(termination.request());
                termination.on_signal(action);
            } else {
                termination.on_signal(action);
                assert!(termination.request());
            }
            assert!(!termination.request());
            assert!(termination.requested());
            assert_eq!(calls.load(Ordering::Relaxed), 1);
        }
    }
}
