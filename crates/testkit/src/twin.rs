//! A table that is migrated, and one beside it that gets the same transactions and is left alone.

use crate::{Server, Session, assert_same_rows, table_with_rows};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
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

/// At random, one statement, or several as a transaction.
pub fn one_or_a_transaction(
    rng: &mut StdRng,
    mut statement: impl FnMut(&mut StdRng) -> String,
) -> Vec<String> {
    let count = match rng.random_range(0..3) {
        0 => rng.random_range(2..5),
        _ => 1,
    };
    let mut statements: Vec<String> = (0..count).map(|_| statement(rng)).collect();
    if count > 1 {
        statements.insert(0, "BEGIN".into());
        statements.push(["COMMIT", "ROLLBACK"][usize::from(rng.random_ratio(1, 4))].into());
    }
    statements
}

/// Affected rows, or the error of each statement; `None` if the server has undone it all for
/// somebody else's sake.
fn outcome(session: &mut Session, statements: &[String], database: &str) -> Option<Vec<String>> {
    let mut outcomes = Vec::new();
    for sql in statements {
        match session.run(&sql.replace("{}", database)) {
            Ok(done) => outcomes.push(done.affected.to_string()),
            Err(failure) if failure.code == 1213 => {
                session.must("ROLLBACK");
                return None;
            }
            Err(failure) => outcomes.push(format!("error {}", failure.code)),
        }
    }
    Some(outcomes)
}

/// Does the same in the databases `app` and `twin` while `work` runs. `pieces` makes what is done,
/// with `{}` for the database. Returns how much was done, and how often a deadlock was to be told
/// of.
pub fn beside_an_application(
    [app, twin]: [&mut Session; 2],
    seed: u64,
    pieces: impl Fn(&mut StdRng) -> Vec<String>,
    work: impl FnOnce() + Send,
) -> [u64; 2] {
    let over = AtomicBool::new(false);
    let (mut done, mut undone) = (0, 0);
    thread::scope(|scope| {
        let working = scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            thread::sleep(Duration::from_millis(200));
            over.store(true, Ordering::Relaxed);
            ended
        });
        let mut rng = StdRng::seed_from_u64(seed);
        while !over.load(Ordering::Relaxed) {
            let statements = pieces(&mut rng);
            let is = loop {
                match outcome(app, &statements, "app") {
                    Some(is) => break is,
                    None => undone += 1,
                }
            };
            let should = outcome(twin, &statements, "twin").expect("nobody else is there");
            assert_eq!(is, should, "{statements:#?}");
            done += 1;
        }
        if let Err(panic) = working.join().expect("caught") {
            std::panic::resume_unwind(panic);
        }
    });
    [done, undone]
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
