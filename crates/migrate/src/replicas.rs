//! How far replicas are behind, asked in threads of their own: a replica that does not answer, or a
//! network that is dead, holds nobody up but what is to wait for it. One that cannot be asked is
//! one that may be behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use onionskin_rowstream::session::{Login, Session, SqlError};
use parking_lot::Mutex;

/// How often a replica is asked.
const EVERY: Duration = Duration::from_millis(500);
/// How often one is looked for that could not be asked.
const PAUSE: Duration = Duration::from_secs(2);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// How old what is known of a replica may be.
const STALE: Duration = Duration::from_secs(5);

/// Asks one replica until it is dropped.
pub(crate) struct Watched {
    known: Arc<Mutex<Known>>,
    over: Arc<AtomicBool>,
}

struct Known {
    /// Seconds behind, `None` if it does not replicate; or why it could not be asked.
    lag: Result<Option<u64>, String>,
    at: Instant,
}

impl Watched {
    /// Asks a replica from now on. With `must_answer`, one that does not is hardly the right
    /// address: an error. Without, its answer is waited for like that of one that went away.
    pub fn new(login: &Login, must_answer: bool) -> Result<Self, SqlError> {
        let mut session = None;
        let lag = match ask(login, &mut session) {
            Err(error) if must_answer => return Err(error),
            Err(error) => {
                session = None;
                Err(error.message)
            }
            Ok(lag) => Ok(lag),
        };
        let known = Arc::new(Mutex::new(Known {
            lag,
            at: Instant::now(),
        }));
        let over = Arc::new(AtomicBool::new(false));
        let (login, shared, ends) = (login.clone(), Arc::clone(&known), Arc::clone(&over));
        thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                thread::sleep(EVERY);
                let asked = ask(&login, &mut session);
                let failed = asked.is_err();
                *shared.lock() = Known {
                    lag: asked.map_err(|error| error.message),
                    at: Instant::now(),
                };
                if failed {
                    session = None;
                    thread::sleep(PAUSE);
                }
            }
        });
        Ok(Self { known, over })
    }

    /// Why it is to be waited for, if it is more than `limit` seconds behind, or may be.
    pub fn objection(&self, limit: u64) -> Option<String> {
        let known = self.known.lock();
        if known.at.elapsed() > STALE {
            return Some("a replica does not answer".into());
        }
        match &known.lag {
            Ok(Some(seconds)) if *seconds <= limit => None,
            Ok(Some(seconds)) => Some(format!("a replica is {seconds} s behind")),
            Ok(None) => Some("a replica does not replicate".into()),
            Err(error) => Some(format!("a replica cannot be asked: {error}")),
        }
    }
}

impl Drop for Watched {
    /// The thread is not waited for: it may wait for a network, and holds nothing but its session.
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn connect(login: &Login) -> Result<Session, SqlError> {
    let session = Session::connect(login)?;
    session.set_longest_answer(Some(ANSWER))?;
    Ok(session)
}

/// Asks in the session, or in a new one.
fn ask(login: &Login, session: &mut Option<Session>) -> Result<Option<u64>, SqlError> {
    match session {
        Some(session) => lag(session),
        None => lag(session.insert(connect(login)?)),
    }
}

/// How far a replica is behind; `None` if it does not replicate.
fn lag(replica: &mut Session) -> Result<Option<u64>, SqlError> {
    let rows = match replica.named("SHOW REPLICA STATUS") {
        Ok(rows) => rows,
        Err(error) if error.code == 0 => return Err(error),
        Err(_) => replica.named("SHOW SLAVE STATUS")?,
    };
    let seconds = rows.into_iter().flatten().find(|(name, _)| {
        ["Seconds_Behind_Source", "Seconds_Behind_Master"].contains(&name.as_str())
    });
    Ok(seconds.and_then(|(_, value)| value?.parse().ok()))
}
