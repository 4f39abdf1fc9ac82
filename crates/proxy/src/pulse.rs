//! Whether something answers, asked now and then by a thread of its own.
//!
//! Whoever wants to know gets the last answer, and seldom waits: a check that takes seconds holds
//! up nobody, and a thousand questions a second are one check. Nothing is checked while nobody
//! wants to know.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// How long a good answer counts. Each check leaves a line in the server's error log, where that
/// logs refused logins.
const GOOD: Duration = Duration::from_secs(5);
/// How long a bad answer counts.
const BAD: Duration = Duration::from_secs(1);
/// How long whoever asks waits for a new answer, before the last one has to do.
const PATIENCE: Duration = Duration::from_millis(500);
/// From this age on an answer says nothing: the check does not end.
const TOO_OLD: Duration = Duration::from_secs(15);

/// What a check said: nothing is wrong, or what is.
pub(crate) type Verdict = Result<(), String>;

/// Something that is checked.
pub(crate) struct Pulse {
    state: Mutex<State>,
    /// Signalled when somebody wants to know.
    wanted: Condvar,
    /// Signalled when there is an answer.
    told: Condvar,
}

#[derive(Default)]
struct State {
    last: Option<(Instant, Verdict)>,
    wanted: bool,
}

impl State {
    fn is_fresh(&self) -> bool {
        match &self.last {
            Some((at, Ok(()))) => at.elapsed() < GOOD,
            Some((at, Err(_))) => at.elapsed() < BAD,
            None => false,
        }
    }
}

impl Pulse {
    /// Begins to check. The thread lives as long as the process.
    pub fn begin(
        name: &str,
        check: impl Fn() -> Verdict + Send + 'static,
    ) -> io::Result<Arc<Pulse>> {
        let pulse = Arc::new(Pulse {
            state: Mutex::default(),
            wanted: Condvar::new(),
            told: Condvar::new(),
        });
        let checked = pulse.clone();
        thread::Builder::new().name(name.into()).spawn(move || {
            loop {
                let mut state = checked.state.lock();
                while !state.wanted {
                    checked.wanted.wait(&mut state);
                }
                drop(state);
                let verdict = check();
                let mut state = checked.state.lock();
                state.last = Some((Instant::now(), verdict));
                state.wanted = false;
                checked.told.notify_all();
            }
        })?;
        Ok(pulse)
    }

    /// The newest answer.
    pub fn verdict(&self) -> Verdict {
        let until = Instant::now() + PATIENCE;
        let mut state = self.state.lock();
        while !state.is_fresh() {
            if !state.wanted {
                state.wanted = true;
                self.wanted.notify_all();
            }
            if self.told.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        match &state.last {
            Some((at, verdict)) if at.elapsed() < TOO_OLD => verdict.clone(),
            _ => Err("does not answer in time".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn many_questions_are_one_check() {
        let checks = Arc::new(AtomicU32::new(0));
        let counted = checks.clone();
        let pulse = Pulse::begin("test", move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let pulse = pulse.expect("a thread");
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..100).for_each(|_| assert_eq!(pulse.verdict(), Ok(()))));
            }
        });
        assert_eq!(checks.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_check_that_does_not_end_holds_nobody_up() {
        let pulse = Pulse::begin("test", || {
            thread::sleep(Duration::from_secs(3600));
            Ok(())
        });
        let begin = Instant::now();
        assert!(pulse.expect("a thread").verdict().is_err());
        assert!(begin.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn bad_news_is_asked_again_sooner() {
        let checks = Arc::new(AtomicU32::new(0));
        let counted = checks.clone();
        let pulse = Pulse::begin("test", move || {
            match counted.fetch_add(1, Ordering::Relaxed) {
                0 => Err("not yet".into()),
                _ => Ok(()),
            }
        });
        let pulse = pulse.expect("a thread");
        assert_eq!(pulse.verdict(), Err("not yet".into()));
        thread::sleep(BAD + Duration::from_millis(50));
        assert_eq!(pulse.verdict(), Ok(()));
    }
}
