//! Statements that somebody ends while they run.

use std::time::{Duration, Instant};

use onionskin_testkit::*;

use super::steps::{MANY, OF_MANY, changed_of_many, until_done, with_many};

/// Ends a session's statement, in each round at another moment of it.
struct Killer {
    session: Session,
    round: u32,
    done: u32,
    failed: u32,
}

impl Killer {
    /// Moments that a statement's time has.
    const MOMENTS: u32 = 61;

    fn new(server: &Server) -> Killer {
        Killer {
            session: server.connect(),
            round: 0,
            done: 0,
            failed: 0,
        }
    }

    /// Whether to go on: until there were enough rounds, and both ends were met.
    fn goes_on(&self, rounds: u32) -> bool {
        let met_both = self.done > 0 && self.failed > 0;
        self.round < rounds || self.round < 20 * rounds && !met_both
    }

    /// Runs a statement that takes so long if it is not ended, and ends it several times.
    fn run(
        &mut self,
        session: &mut Session,
        usual: Duration,
        kill: &str,
        sql: &str,
    ) -> Result<Outcome, Failure> {
        // all moments come, early ones beside late ones
        let wait = usual * (self.round * 7 % Self::MOMENTS) / Self::MOMENTS;
        self.round += 1;
        let killer = &mut self.session;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(wait);
                for _ in 0..4 {
                    killer.must(kill);
                    std::thread::sleep(Duration::from_micros(250));
                }
            });
            session.run(sql)
        })
    }

    fn must_have_met_both(&self) {
        let (done, failed) = (self.done, self.failed);
        announce(&format!("{done} done, {failed} killed"));
        assert!(done > 0 && failed > 0, "{done} done, {failed} killed");
    }
}

fn kill_of(session: &mut Session) -> String {
    let id = session.text("SELECT CONNECTION_ID()").expect("a number");
    format!("KILL QUERY {id}")
}

/// A change of many rows that is ended has changed all of them, or none.
pub fn what_is_killed_has_changed_all_or_nothing(kind: Kind) {
    let Some((behind, _beside, proxy)) = with_many(kind) else {
        return;
    };
    let mut session = proxy.connect_to("app");
    let usual = OF_MANY.map(|sql| {
        session.must("BEGIN");
        let begun = Instant::now();
        session.must(sql);
        let took = begun.elapsed();
        session.must("ROLLBACK");
        took
    });
    let mut killer = Killer::new(&behind);
    let rounds = if long_run() { 2000 } else { 80 };
    for (sql, usual) in OF_MANY.iter().zip(usual).cycle() {
        if !killer.goes_on(rounds) {
            break;
        }
        let kill = kill_of(&mut session);
        session.must("BEGIN");
        let answer = killer.run(&mut session, usual, &kill, sql);
        let changed = changed_of_many(&mut session);
        match (&answer, changed) {
            // who is killed while the plan is made says OK, and has changed nothing
            (Ok(answer), Some(changed)) => {
                assert!(
                    changed == MANY || changed == 0,
                    "{sql}: {changed}, {answer:?}"
                );
                assert_eq!(answer.affected as i64, changed, "{sql}");
                killer.done += 1;
            }
            (Err(error), Some(changed)) => {
                assert_eq!(changed, 0, "{sql}: {error}");
                killer.failed += 1;
            }
            (_, None) => {
                session = proxy.connect_to("app");
                continue;
            }
        }
        if until_done(&mut session, "ROLLBACK").is_none() {
            session = proxy.connect_to("app");
        }
    }
    killer.must_have_met_both();
}

/// What the proxy begins and sets for a query of two tables is ended and set back, whatever was
/// killed of it.
pub fn a_killed_query_leaves_the_session_as_it_was(kind: Kind) {
    let Some((behind, _beside, proxy)) = with_many(kind) else {
        return;
    };
    let mut session = proxy.connect_to("app");
    session.must("CREATE TABLE few (id INT PRIMARY KEY, n INT ENCRYPTED FOR ())");
    session.must("INSERT INTO few VALUES (1, 1), (2, 2)");
    let sql =
        "SELECT a.id, UPPER(a.t), ABS(b.n) FROM many a JOIN few b ON ABS(a.n) = b.n ORDER BY a.id";
    session.must(sql);
    session.must("SET sql_select_limit = 7");
    let begun = Instant::now();
    session.must(sql);
    let usual = begun.elapsed();
    let mut killer = Killer::new(&behind);
    while killer.goes_on(if long_run() { 2000 } else { 60 }) {
        let kill = kill_of(&mut session);
        match killer.run(&mut session, usual, &kill, sql) {
            Ok(answer) => {
                assert_eq!(answer.sets[0].rows.len(), 7);
                killer.done += 1;
            }
            Err(error) if error.is_disconnect() => {
                session = proxy.connect_to("app");
                session.must("SET sql_select_limit = 7");
                continue;
            }
            Err(_) => killer.failed += 1,
        }
        let round = killer.round;
        let limit = until_done(&mut session, "SELECT @@sql_select_limit").map(|o| o.text());
        assert_eq!(limit.as_deref(), Some("7"), "round {round}");
        let id = kill.rsplit(' ').next().unwrap_or_default();
        let open = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id =";
        let open = killer.session.text(&format!("{open} {id}"));
        assert_eq!(
            open.as_deref(),
            Ok("0"),
            "round {round}: a transaction is open"
        );
    }
    killer.must_have_met_both();
}
