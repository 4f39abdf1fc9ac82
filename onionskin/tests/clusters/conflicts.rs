//! Two nodes change the same row. What the client hears is what it hears without a proxy, and
//! nothing of what was refused stays.

use super::guarded::{Guarded, SECRET, SOON};
use onionskin_testkit::*;

/// What a session does behind the change that is lost, and before it commits.
const NEXT: &[&str] = &[
    "",
    "SELECT * FROM t WHERE id = 2",
    "SELECT UPPER(CONCAT(name, 'x')) FROM t",
    "UPDATE t SET k = k + 1000",
    "UPDATE t SET k = LENGTH(CONCAT(k, 'x')) WHERE id > 2",
    "UPDATE t SET at = NOW() WHERE id = 3",
    "INSERT INTO t (id, k, name) VALUES (8, 8, 'n8')",
    "INSERT INTO t (id, k, name) VALUES (7, 1, 'n7') ON DUPLICATE KEY UPDATE k = k + 1",
    "INSERT INTO t (id, k, name) VALUES (2, 1, 'n2') ON DUPLICATE KEY UPDATE k = k + 1",
    "INSERT INTO t (id, name) SELECT id + 10, UPPER(name) FROM t",
    "REPLACE INTO t (id, k, name) VALUES (2, 1, 'r')",
    "DELETE FROM t WHERE k + 1 = 99",
];

fn code(answer: &Answered) -> String {
    match answer {
        Ok(done) => format!("{} rows", done.affected),
        Err(failure) => failure.code.to_string(),
    }
}

type Answered = Result<Outcome, Failure>;

/// Three sessions in one database: two at one node, one at another.
struct Parties {
    ours: Session,
    witness: Session,
    theirs: Session,
}

impl Parties {
    fn rows(&mut self) -> String {
        let rows = self.witness.text("SELECT id, k FROM t ORDER BY id");
        rows.expect("rows")
    }

    /// Begins anew with three rows, on both nodes.
    fn again(&mut self) {
        self.ours.must("ROLLBACK");
        self.ours.must("DELETE FROM t");
        let rows = "(1, 0, 'n1'), (2, 0, 'n2'), (3, 0, 'n3')";
        self.ours
            .must(&format!("INSERT INTO t (id, k, name) VALUES {rows}"));
        let theirs = &mut self.theirs;
        wait_until("the rows are at the other node", SOON, || {
            let rows = theirs.text("SELECT id, k FROM t ORDER BY id");
            rows.is_ok_and(|rows| rows == "1\t0\n2\t0\n3\t0")
        });
    }

    /// A transaction of ours changes a row, and the other node commits another change of it. That
    /// is there when this returns.
    fn lose_a_row(&mut self) {
        self.ours.must("BEGIN");
        self.ours.must("UPDATE t SET k = k + 1 WHERE id = 1");
        self.theirs.must("UPDATE t SET k = k + 10 WHERE id = 1");
        let witness = &mut self.witness;
        wait_until("their change is at our node", SOON, || {
            let k = witness.text("SELECT k FROM t WHERE id = 1");
            k.is_ok_and(|k| k == "10")
        });
    }

    /// What each step comes to, and the rows behind it.
    fn told(&mut self, next: &str, commits_at_once: bool) -> String {
        self.again();
        self.lose_a_row();
        let mut told = Vec::new();
        if !next.is_empty() {
            told.push(code(&self.ours.run(next)));
        }
        if !commits_at_once {
            told.push(code(
                &self.ours.run("UPDATE t SET k = k + 100 WHERE id = 2"),
            ));
        }
        told.push(code(&self.ours.run("COMMIT")));
        // what was cut off is over, and the session goes on
        told.push(code(&self.ours.run("UPDATE t SET k = k + 1 WHERE id = 3")));
        format!("{told:?} {:?}", self.rows())
    }
}

fn parties(guarded: &mut Guarded, writers: &[usize]) -> [Parties; 2] {
    let mut root = guarded.cluster.connect(writers[0]);
    root.must(
        "CREATE TABLE bare.t (id INT PRIMARY KEY, k INT, name VARCHAR(20), at DATETIME, UNIQUE KEY (name))",
    );
    guarded.at(writers[0]).must(
        "CREATE TABLE t (id INT PRIMARY KEY, k INT ENCRYPTED FOR (range), name VARCHAR(20) ENCRYPTED FOR (eq), \
         at DATETIME ENCRYPTED FOR (), UNIQUE KEY (name))",
    );
    guarded.settle_tables();
    let plain = |node: usize| {
        let mut session = guarded.cluster.connect(node);
        session.must("USE bare");
        session
    };
    let plain = Parties {
        ours: plain(writers[0]),
        witness: plain(writers[0]),
        theirs: plain(writers[1]),
    };
    let protected = Parties {
        ours: guarded.at(writers[0]),
        witness: guarded.at(writers[0]),
        theirs: guarded.at(writers[1]),
    };
    [plain, protected]
}

pub fn are_told_as_without_a_proxy(guarded: &mut Guarded) {
    let writers = guarded.writers();
    if writers.len() < 2 {
        return;
    }
    let [mut plain, mut protected] = parties(guarded, &writers);
    let (mut conflicts, mut rounds) = (0, 0);
    for (place, next) in NEXT.iter().enumerate() {
        for commits_at_once in [false, true] {
            if !long_run() && commits_at_once == (place % 2 == 0) && place > 0 {
                continue;
            }
            rounds += 1;
            let expected = plain.told(next, commits_at_once);
            let told = protected.told(next, commits_at_once);
            assert_eq!(
                told, expected,
                "{next:?}, commits at once: {commits_at_once}"
            );
            conflicts += usize::from(told.contains("1213") || told.contains("1180"));
        }
    }
    assert_eq!(conflicts, rounds, "each of them met a conflict");
    // what a proxy remembers of a row that another node has changed
    protected.again();
    for n in 0..12 {
        let (one, other) = match n % 2 {
            0 => (&mut protected.ours, &mut protected.theirs),
            _ => (&mut protected.theirs, &mut protected.ours),
        };
        let done = one.must("UPDATE t SET k = k + 1 WHERE id = 3");
        assert_eq!(done.affected, 1);
        wait_until("the other node has it", SOON, || {
            let k = other.text("SELECT k FROM t WHERE id = 3");
            k.is_ok_and(|k| k == (n + 1).to_string())
        });
    }
}

/// A table whose rows are written in several parts, one of which a trigger refuses.
fn many(guarded: &mut Guarded, writer: usize) {
    let mut session = guarded.at(writer);
    session.must(
        "CREATE TABLE many (id INT PRIMARY KEY, k INT ENCRYPTED FOR (range), name VARCHAR(20) ENCRYPTED FOR ())",
    );
    let rows: Vec<String> = (1..=150)
        .map(|id| format!("({id}, 1, '{SECRET}')"))
        .collect();
    session.must(&format!("INSERT INTO many VALUES {}", rows.join(", ")));
    guarded.cluster.connect(writer).must(
        "CREATE TRIGGER app.refuses BEFORE UPDATE ON app.many FOR EACH ROW BEGIN \
         IF NEW.id = 149 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF; END",
    );
    guarded.settle_tables();
}

const IN_PARTS: [&str; 2] = [
    "UPDATE many SET k = k + 1",
    "UPDATE many SET k = LENGTH(CONCAT(REPEAT('x', k), 'y'))",
];

/// A COMMIT that fails has ended the transaction, and what comes behind it is one of its own: done,
/// or not at all.
pub fn leave_no_transaction_behind(guarded: &mut Guarded) {
    let writers = guarded.writers();
    many(guarded, writers[0]);
    if writers.len() < 2 {
        return;
    }
    let mut parties = Parties {
        ours: guarded.at(writers[0]),
        witness: guarded.at(writers[0]),
        theirs: guarded.at(writers[1]),
    };
    for sql in IN_PARTS {
        parties.again();
        parties.lose_a_row();
        let failure = parties.ours.run("COMMIT").expect_err("a conflict");
        assert!([1213, 1180, 3101].contains(&failure.code), "{failure}");
        assert_eq!(parties.ours.must_fail(sql), 1644, "{sql}");
        let changed = parties
            .witness
            .text("SELECT COUNT(*) FROM many WHERE k <> 1");
        assert_eq!(changed.as_deref(), Ok("0"), "{sql}");
    }
}

/// A statement that fails in a client's transaction leaves nothing of itself. What the transaction
/// did before stays, or the client is told that it has ended.
pub fn of_a_statement_in_parts(guarded: &mut Guarded) {
    let writer = guarded.writers()[0];
    let mut session = guarded.at(writer);
    session.must("CREATE TABLE beside (id INT PRIMARY KEY, name VARCHAR(20) ENCRYPTED FOR (eq))");
    for (id, sql) in IN_PARTS.iter().enumerate() {
        session.must("BEGIN");
        session.must(&format!("INSERT INTO beside VALUES ({id}, '{SECRET}')"));
        let failed = session.must_fail(sql);
        let ended = failed == 1213;
        let open = guarded.cluster.topology() == Topology::MultiPrimary;
        assert!(failed == 1644 || ended && open, "{sql}: {failed}");
        session.must("COMMIT");
        let stays = session.text(&format!("SELECT COUNT(*) FROM beside WHERE id = {id}"));
        let expected = if ended { "0" } else { "1" };
        assert_eq!(stays.as_deref(), Ok(expected), "{sql}");
        let changed = session.text("SELECT COUNT(*) FROM many WHERE k <> 1");
        assert_eq!(changed.as_deref(), Ok("0"), "{sql}");
    }
}
