//! Holding writers back when they are faster than the migration.
//!
//! Writers without a limit of their own change rows faster than anybody can write them a second
//! time: such a migration would never end. The brake takes `LOCK TABLES … READ` on the old table
//! for a moment again and again. Readers, ours among them, go on; writers wait for [`BITE`], and
//! the share of the time in which they do grows until the backlog shrinks. Beyond [`USUAL_SHARE`]
//! it grows by longer waits: however short a pause is, every writer runs a statement in it. Nobody
//! becomes the victim of a deadlock: the lock waits for transactions that have written, never for
//! those that have only read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use onionskin_rowstream::session::{Login, Session, SqlError};
use onionskin_schema::identifier;

use crate::error::Result;

/// How long writers are held up at a time.
const BITE: Duration = Duration::from_millis(60);
/// The greatest share of the time with such waits, in percent.
const USUAL_SHARE: u32 = 90;
/// The greatest share of the time: writers wait for a third of a second.
const MAX_SHARE: u32 = 98;
/// How long the brake's statements may take to be answered: a lock is waited for a second at most.
const ANSWER: Duration = Duration::from_secs(15);
/// For how long the end of the brake's thread is waited for. Behind a dead network it may take
/// longer; then the server lets go by itself.
const GOODBYE: Duration = Duration::from_secs(3);
/// For how long they are left alone when a long transaction keeps the lock away.
const RESPITE: Duration = Duration::from_secs(10);

/// Brakes until it is dropped.
pub(crate) struct Brake {
    share: Arc<AtomicU32>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Brake {
    /// A brake on a table, open.
    pub fn new(login: &Login, database: &str, table: &str) -> Result<Self> {
        let (share, over) = (
            Arc::new(AtomicU32::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let lock = format!(
            "LOCK TABLES {}.{} READ",
            identifier(database),
            identifier(table)
        );
        let mut session = connect(login)?;
        let (login, shared) = (login.clone(), (Arc::clone(&share), Arc::clone(&over)));
        let thread = thread::spawn(move || {
            while !shared.1.load(Ordering::Relaxed) {
                // What was locked is free when the connection has ended.
                run(&mut session, &lock, &shared.0, &shared.1);
                thread::sleep(BITE);
                if let Ok(other) = connect(&login) {
                    session = other;
                }
            }
        });
        Ok(Self {
            share,
            over,
            thread: Some(thread),
        })
    }

    /// The share of the time in which writers wait, in percent.
    pub fn share(&self) -> u32 {
        self.share.load(Ordering::Relaxed)
    }

    /// Brakes more, or for the first time.
    pub fn press(&self) {
        let next = match self.share() {
            0 => 30,
            share if share < USUAL_SHARE => (share + 20).min(USUAL_SHARE),
            share => (share + (100 - share) / 2).min(MAX_SHARE),
        };
        self.share.store(next, Ordering::Relaxed);
    }

    /// Brakes less.
    pub fn ease(&self) {
        let next = self.share().saturating_sub(10);
        self.share.store(next, Ordering::Relaxed);
    }

    /// Brakes at least as much as before.
    pub fn hold(&self, share: u32) {
        self.share.fetch_max(share, Ordering::Relaxed);
    }

    /// Lets go.
    pub fn release(&self) {
        self.share.store(0, Ordering::Relaxed);
    }
}

impl Drop for Brake {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        if let Some(thread) = self.thread.take() {
            while !thread.is_finished() && begun.elapsed() < GOODBYE {
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// For how long writers wait and then do not, for a share of the time above zero.
fn times(percent: u32) -> (Duration, Duration) {
    let usual = percent.min(USUAL_SHARE);
    let pause = BITE * (100 - usual) / usual;
    match percent > USUAL_SHARE {
        true => (pause * percent / (100 - percent), pause),
        false => (BITE, pause),
    }
}

fn connect(login: &Login) -> std::result::Result<Session, SqlError> {
    let mut session = Session::connect(login)?;
    session.set_longest_answer(Some(ANSWER))?;
    // Where the connection is lost without the server's notice, it lets go by itself.
    session.run("SET lock_wait_timeout = 1, wait_timeout = 5")?;
    Ok(session)
}

/// Until it is over, or the connection ends.
fn run(session: &mut Session, lock: &str, share: &AtomicU32, over: &AtomicBool) {
    let mut asked = Instant::now();
    while !over.load(Ordering::Relaxed) {
        let percent = share.load(Ordering::Relaxed);
        if percent == 0 {
            thread::sleep(BITE / 3);
            // The server ends silent sessions, this one soon.
            if asked.elapsed() > Duration::from_secs(1) {
                asked = Instant::now();
                if session.run("DO 0").is_err() {
                    return;
                }
            }
            continue;
        }
        asked = Instant::now();
        let (bite, pause) = times(percent);
        match session.run(lock) {
            Ok(_) => {
                thread::sleep(bite);
                if session.run("UNLOCK TABLES").is_err() {
                    return;
                }
                thread::sleep(pause);
            }
            Err(error) if error.code == 0 => return,
            Err(_) => {
                let until = Instant::now() + RESPITE;
                while Instant::now() < until && !over.load(Ordering::Relaxed) {
                    thread::sleep(BITE);
                    if session.run("DO 0").is_err() {
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_share_that_was_asked_for() {
        for percent in 1..=MAX_SHARE {
            let (bite, pause) = times(percent);
            let share = bite.as_secs_f64() / (bite + pause).as_secs_f64();
            assert!(
                (share * 100.0 - f64::from(percent)).abs() < 0.1,
                "{percent}"
            );
        }
        assert_eq!(times(50), (BITE, BITE));
        assert_eq!(times(USUAL_SHARE).0, BITE);
        assert!(times(MAX_SHARE).0 < Duration::from_millis(350));
    }
}
