//! A table that is migrated, and one beside it that gets the same transactions and is left alone.

use super::{Server, Session, assert_same_rows, table_with_rows};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// `app.t` and a twin, with rows, and a session in the database.
pub fn table_and_twin(server: &Server, rows: u32) -> Session {
    let mut session = table_with_rows(server, rows);
    session.must("CREATE TABLE twin LIKE t");
    session.must("INSERT INTO twin SELECT * FROM t");
    session
}

/// Runs `work` beside a session that writes the same to both tables, in the same transactions.
pub fn beside_a_writer(port: u16, rows: u32, work: impl FnOnce()) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let over = &over;
        scope.spawn(move || {
            let mut session = Session::open(port, "root", "", Some("app"));
            let mut n = 0;
            while !over.load(Ordering::Relaxed) {
                n += 1;
                let id = n * 7919 % rows;
                session.must("BEGIN");
                for table in ["t", "twin"] {
                    session.must(&format!(
                        "REPLACE INTO {table} VALUES ({id}, 'new {n}', {n})"
                    ));
                    session.must(&format!(
                        "DELETE FROM {table} WHERE id = {}",
                        (id + 1) % rows
                    ));
                }
                session.must("COMMIT");
                thread::sleep(Duration::from_millis(1));
            }
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Both tables hold the same at one moment, whoever writes meanwhile.
pub fn assert_equal_to_twin(session: &mut Session, context: &str) {
    session.must("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    session.must("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    let [is, should] = ["t", "twin"].map(|table| {
        session
            .text(&format!("SELECT * FROM {table} ORDER BY id"))
            .unwrap()
    });
    session.must("COMMIT");
    assert_same_rows(&is, &should, context);
}
