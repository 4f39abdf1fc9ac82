//! Writing what has changed: deletions, a barrier, replacements. Both phases run in all sessions at once.
//!
//! The sessions cannot disturb each other for long: every statement commits by itself, under READ COMMITTED, on keys of its
//! own. Where two of them still meet (on gaps of a secondary unique index), the server ends one, and it is sent again.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::RowError;
use crate::key::Key;
use crate::pending::Work;
use crate::route::{Meeting, Route};
use crate::session::Session;

/// Writes all of `work`.
pub fn apply(route: &Route, sessions: &mut [Session], work: &Work) -> Result<(), RowError> {
    in_batches(
        sessions,
        &work.deletions,
        route.key.batch(),
        |session, keys| {
            route.delete(session, keys)?;
            Ok(())
        },
    )?;
    in_batches(
        sessions,
        &work.replacements,
        route.key.batch(),
        |session, keys| {
            let condition = route.key.among(&route.source, keys);
            route.write(session, &condition, Meeting::Replace)?;
            Ok(())
        },
    )
}

/// Runs `task` over all batches of `keys`, in all sessions at once; returns when everything is done.
fn in_batches(
    sessions: &mut [Session],
    keys: &[Key],
    size: usize,
    task: impl Fn(&mut Session, &[Key]) -> Result<(), RowError> + Sync,
) -> Result<(), RowError> {
    // Few keys are shared out, too.
    let size = size.min(keys.len().div_ceil(sessions.len().max(1)).max(20));
    let batches: Vec<&[Key]> = keys.chunks(size).collect();
    let next = AtomicUsize::new(0);
    let needed = sessions.len().min(batches.len());
    on_all(&mut sessions[..needed], |session| {
        while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = task(session, batch) {
                next.store(batches.len(), Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    })
}

/// Runs `task` in all sessions, each in a thread of its own; the first error counts.
pub fn on_all(
    sessions: &mut [Session],
    task: impl Fn(&mut Session) -> Result<(), RowError> + Sync,
) -> Result<(), RowError> {
    if let [session] = sessions {
        return task(session);
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = sessions
            .iter_mut()
            .map(|session| scope.spawn(|| task(session)))
            .collect();
        let mut done = Ok(());
        for thread in running {
            let ended = thread.join().unwrap_or(Err(RowError::Panicked));
            if done.is_ok() {
                done = ended;
            }
        }
        done
    })
}
