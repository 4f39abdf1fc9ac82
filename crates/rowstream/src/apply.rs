//! Writing what has changed: deletions, a barrier, replacements. Both phases run in all sessions at
//! once.
//!
//! A snapshot that begins between two statements sees rows that are deleted and not written again
//! yet, and parts of the application's transactions. So a little work is one transaction of one
//! session; after more, the tables must not change places before the snapshots of that time have
//! ended.
//!
//! The sessions cannot disturb each other for long: every statement commits by itself, under READ
//! COMMITTED, on keys of its own. Where two of them still meet (on gaps of a secondary unique
//! index), the server ends one, and it is sent again.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::RowError;
use crate::key::Key;
use crate::pending::Work;
use crate::route::{Meeting, Route};
use crate::session::Session;

/// How many rows are written in one transaction while nothing speaks for more: beyond, many
/// sessions are faster than one.
pub const ONE_TRANSACTION: usize = 5_000;

/// Writes all of `work`: up to `most` rows in one transaction, more of them in many. Returns
/// whether a snapshot may have seen a part of it.
///
/// Where the new table has a uniqueness that the old one lacks ([`Route::replaces`] is false),
/// REPLACE would delete a row that nobody deleted. There the replaced rows are deleted first, too,
/// and two rows that meet are an error of the server: it may be about rows that have changed again,
/// so whoever calls may read more of the log and try once more.
pub fn apply(
    route: &Route,
    sessions: &mut [Session],
    work: &Work,
    most: usize,
) -> Result<bool, RowError> {
    match work.deletions.len() + work.replacements.len() {
        0 => Ok(false),
        rows if rows <= most => {
            let is_deadlock =
                |error: &RowError| matches!(error, RowError::Sql(error) if error.is_deadlock());
            sessions[0].in_one_transaction(
                |session| write(route, std::slice::from_mut(session), work),
                is_deadlock,
            )?;
            Ok(false)
        }
        _ => write(route, sessions, work).map(|()| true),
    }
}

fn write(route: &Route, sessions: &mut [Session], work: &Work) -> Result<(), RowError> {
    if !route.replaces {
        in_batches(
            sessions,
            &work.replacements,
            route.key.batch(),
            |session, keys| {
                route.delete(session, keys)?;
                Ok(())
            },
        )?;
    }
    let meeting = match route.replaces {
        true => Meeting::Replace,
        false => Meeting::Conflict,
    };
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
        route.key.batch().min(route.most_rows),
        |session, keys| {
            let condition = route.key.among(&route.source, keys);
            route.write(session, &condition, meeting)?;
            Ok(())
        },
    )
}

/// Runs `task` over all batches of `keys`, in all sessions at once; returns when everything is
/// done.
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
