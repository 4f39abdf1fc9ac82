//! Holding tables that hang together by foreign keys while MariaDB renames.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use onionskin_rowstream::session::Session;

use crate::error::Result;

/// Holds the neighbours by foreign keys until MariaDB's rename is done.
///
/// The rename takes InnoDB's lock of the tables that point at the table, and a statement on a
/// neighbour locks the table and the new one, too. Somebody who is at work in a neighbour and comes
/// to the table next would wait for the rename, and the rename for him, which the server does not
/// see. So each of them has a session that is next in line, as the rename is. LOCK TABLES on a
/// parent would lock what hangs on it by keys as well, the new table included, and wait for the
/// rename; FLUSH TABLES does not.
///
/// They are given back when what is returned is dropped. Beside it the reason why the lock has to
/// be given back, if it must.
pub(crate) fn hold(
    control: &mut Session,
    holding: Vec<(String, Session)>,
) -> Result<(Vec<Sender<()>>, Option<String>)> {
    let mut held = Vec::new();
    for (statement, mut session) in holding {
        let id = session.id();
        let (sender, receiver) = channel::<()>();
        held.push(sender);
        let is_held = Arc::new(AtomicBool::new(false));
        let holds = Arc::clone(&is_held);
        let words: Vec<&str> = statement.splitn(3, ' ').take(2).collect();
        let words = words.join(" ");
        thread::spawn(move || {
            if session.run(&statement).is_ok() {
                holds.store(true, Ordering::Release);
                // It ends when the sender is dropped.
                let _ = receiver.recv();
            }
        });
        // Beside a lock for reads it is there at once.
        let is_there = || is_held.load(Ordering::Acquire);
        if !waits_for_lock(control, id, &words, is_there)? {
            return Ok((held, Some("a neighbour was not seen to be held".into())));
        }
    }
    Ok((held, None))
}

/// Whether a session is seen to wait with this statement for a lock on a table's metadata, or not
/// to need to.
pub(crate) fn waits_for_lock(
    control: &mut Session,
    id: u32,
    statement: &str,
    is_there: impl Fn() -> bool,
) -> Result<bool> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(1) {
        if is_there() {
            return Ok(true);
        }
        let state = control.text(&format!(
            "SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {id} AND INFO LIKE '{statement}%'"
        ))?;
        if state == "Waiting for table metadata lock" {
            return Ok(true);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(false)
}
