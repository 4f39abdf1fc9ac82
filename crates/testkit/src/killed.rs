//! A migration that is killed at a statement.

use crate::{Cable, Server, When, end_of_migration, migrate_at, start_migration, wait_until};
use std::process::Child;
use std::time::Duration;

/// A statement, how often it is said, and on which side of it the process is killed.
pub type Point<'a> = (&'a str, u32, When);

/// Starts `onionskin migrate` and kills it at a statement.
pub fn kill_at(server: &Server, arguments: &[&str], (statement, times, when): Point<'_>) {
    let cable = Cable::to(server.port());
    cable.freeze_at(statement, times, when);
    let mut child = start_migration(migrate_at(&cable.address(), None, arguments));
    let mut has_ended = false;
    wait_until(statement, Duration::from_secs(60), || {
        has_ended = child.try_wait().expect("a child").is_some();
        has_ended || cable.is_frozen()
    });
    if has_ended {
        let (_, text) = end_of_migration(child);
        panic!("{arguments:?} has not said {statement:?} {times} times: {text}");
    }
    kill(child);
    drop(cable);
    its_statements_have_ended(server);
}

/// What the server was doing for a process that was killed it does to its end.
pub fn its_statements_have_ended(server: &Server) {
    let mut session = server.connect();
    wait_until("its statements have ended", Duration::from_secs(20), || {
        let sessions = session.must("SHOW FULL PROCESSLIST");
        let mut cells = sessions.sets[0].rows.iter().flatten();
        !cells.any(|cell| format!("{cell:?}").contains("onionskin"))
    });
}

/// `kill -9`, and its end.
pub fn kill(mut child: Child) {
    child.kill().expect("kill -9");
    child.wait().expect("a child");
}
