//! Where the scratch engine is at the moment, or why it is nowhere.
//!
//! An engine that the program starts by itself comes after the first clients, and may die and come
//! again. Whoever starts it tells this place, and sessions ask it before they connect.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// How long a statement waits for an engine that is being started for the first time. MySQL takes
/// some seconds to make its data directory.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is known of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// It is being started for the first time.
    Starting,
    /// It answers at this Unix socket, or did.
    At(PathBuf),
    /// It is not there, and this is why: part of a sentence, for clients and operators.
    Nowhere(String),
}

/// See the module. Clones are the same place.
#[derive(Clone, Debug)]
pub struct EnginePlace(Arc<Place>);

#[derive(Debug)]
struct Place {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    whereabouts: Whereabouts,
    /// How often an engine has come or gone: numbers of sessions mean nothing beyond that.
    edition: u64,
}

impl EnginePlace {
    /// Begins so.
    pub fn new(whereabouts: Whereabouts) -> EnginePlace {
        EnginePlace(Arc::new(Place {
            state: Mutex::new(State {
                whereabouts,
                edition: 0,
            }),
            changed: Condvar::new(),
        }))
    }

    /// An engine has come, or gone.
    pub fn set(&self, whereabouts: Whereabouts) {
        let mut state = self.0.state.lock();
        state.whereabouts = whereabouts;
        state.edition += 1;
        self.0.changed.notify_all();
    }

    /// What is known now.
    pub fn now(&self) -> Whereabouts {
        self.0.state.lock().whereabouts.clone()
    }

    /// Its socket, or why there is none; waits for one that is being started.
    pub(crate) fn socket(&self) -> Result<(PathBuf, u64), String> {
        let until = Instant::now() + PATIENCE;
        let mut state = self.0.state.lock();
        loop {
            match &state.whereabouts {
                Whereabouts::At(socket) => return Ok((socket.clone(), state.edition)),
                Whereabouts::Nowhere(why) => return Err(why.clone()),
                Whereabouts::Starting => {}
            }
            if self.0.changed.wait_until(&mut state, until).timed_out() {
                return Err("it is still being started".into());
            }
        }
    }

    /// Its socket, if the engine is still the one of that time.
    pub(crate) fn socket_of(&self, edition: u64) -> Option<PathBuf> {
        let state = self.0.state.lock();
        match &state.whereabouts {
            Whereabouts::At(socket) if state.edition == edition => Some(socket.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn the_first_start_is_waited_for_and_a_restart_is_not() {
        let place = EnginePlace::new(Whereabouts::Starting);
        let started = place.clone();
        let starter = thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            started.set(Whereabouts::At("/a".into()));
        });
        let (socket, edition) = place.socket().expect("started");
        assert_eq!(socket, PathBuf::from("/a"));
        starter.join().expect("no panic");
        assert_eq!(place.socket_of(edition), Some("/a".into()));
        place.set(Whereabouts::Nowhere("it has ended".into()));
        assert_eq!(place.socket(), Err("it has ended".into()));
        assert_eq!(place.socket_of(edition), None);
        place.set(Whereabouts::At("/a".into()));
        assert_eq!(place.socket_of(edition), None, "another engine's sessions");
    }
}
