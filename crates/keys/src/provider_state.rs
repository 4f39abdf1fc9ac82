//! What is known of a provider while a program runs with the keys that it has unwrapped.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::KeyError;

/// Notes how a provider has answered. Shared by whoever asks it and whoever tells about it.
#[derive(Debug, Default)]
pub struct ProviderState(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    report: Option<ProviderReport>,
    /// By a clock that nobody sets.
    answered: Option<Instant>,
}

/// How it has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderReport {
    /// The provider's name.
    pub name: String,
    /// When it last unwrapped the root key, in seconds since 1970; 0 if never.
    pub answered: u64,
    /// Since when it does not, and why, if it did not when it was last asked.
    pub fault: Option<(u64, String)>,
}

impl ProviderState {
    /// It was asked, and this came of it. What is wrong with the file alone says nothing about the
    /// provider.
    pub fn note<T>(&self, name: &str, asked: &Result<T, KeyError>) {
        let known = &mut *self.0.lock();
        let before = known.report.take().filter(|report| report.name == name);
        let mut now = before.unwrap_or_else(|| ProviderReport {
            name: name.to_owned(),
            answered: 0,
            fault: None,
        });
        match asked {
            Ok(_) => {
                now.answered = since_1970();
                now.fault = None;
                known.answered = Some(Instant::now());
            }
            Err(KeyError::Provider { why, .. }) => {
                let since = now.fault.map_or_else(since_1970, |(since, _)| since);
                now.fault = Some((since, why.clone()));
            }
            Err(_) => {}
        }
        known.report = Some(now);
    }

    /// What was noted last.
    pub fn report(&self) -> Option<ProviderReport> {
        self.0.lock().report.clone()
    }

    /// How long ago a provider has unwrapped the root key.
    pub fn since_answer(&self) -> Option<Duration> {
        self.0.lock().answered.map(|answered| answered.elapsed())
    }
}

fn since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_begins_once_and_ends_with_an_answer() {
        let state = ProviderState::default();
        assert_eq!(state.report(), None);
        let fault = |why: &str| {
            Err::<(), _>(KeyError::Provider {
                name: "x".into(),
                why: why.into(),
                may_pass: true,
            })
        };
        state.note("x", &fault("first"));
        let begun = state.report().unwrap().fault.unwrap();
        assert_eq!(
            (state.report().unwrap().answered, begun.1),
            (0, "first".into())
        );
        state.note("x", &fault("second"));
        assert_eq!(
            state.report().unwrap().fault,
            Some((begun.0, "second".into()))
        );
        // The file is not as it should be, and the provider what it was.
        state.note("x", &Err::<(), _>(KeyError::Tampered));
        assert!(state.report().unwrap().fault.is_some());
        state.note("x", &Ok(()));
        let report = state.report().unwrap();
        assert!(report.fault.is_none() && report.answered > 1_700_000_000);
        // Another provider begins anew.
        state.note("y", &fault("third"));
        assert_eq!(state.report().unwrap().answered, 0);
    }
}
