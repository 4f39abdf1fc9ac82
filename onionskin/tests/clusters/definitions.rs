//! Definitions through one proxy, while sessions of the others read and write.

use super::guarded::{CONTROL, Guarded, Over, OverIfPanicking, SECRET, SOON};
use onionskin_testkit::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

const TABLE: &str = "CREATE TABLE d (id BIGINT PRIMARY KEY, name VARCHAR(60) ENCRYPTED FOR (eq), \
     n BIGINT ENCRYPTED FOR (range), open VARCHAR(60))";

const STEPS: &[&str] = &[
    "ALTER TABLE d ADD COLUMN x VARCHAR(60) ENCRYPTED FOR (eq)",
    "ALTER TABLE d ADD INDEX by_name (name)",
    "ALTER TABLE d ALTER COLUMN n SET DEFAULT 7",
    "ALTER TABLE d RENAME COLUMN x TO y",
    "ALTER TABLE d DROP INDEX by_name, ADD INDEX by_n (n)",
    "ALTER TABLE d DROP COLUMN y",
    "RENAME TABLE d TO e",
    "RENAME TABLE e TO d",
    "DROP TABLE d",
    TABLE,
];

/// What a statement may come to while its table changes: errors that the plain server gives, too,
/// and OS1105, OS1110 of the proxy, which say the same.
const MAY_BE: [u16; 11] = [
    1213, 1205, 3101, 1180, 1146, 1054, 1072, 1412, 1615, 1317, 1969,
];

struct Beside {
    next: AtomicU64,
    rows: AtomicU64,
    over: AtomicBool,
    failures: Mutex<BTreeMap<String, usize>>,
}

impl Beside {
    fn work(&self, mut session: Session, writes: bool) {
        while !self.over.load(Ordering::SeqCst) {
            let id = self.next.fetch_add(1, Ordering::SeqCst);
            let mut statements = vec![format!(
                "SELECT id, name, n FROM d WHERE id > {}",
                id.saturating_sub(9)
            )];
            if writes {
                statements.push(format!(
                    "INSERT INTO d (id, name, n, open) VALUES ({id}, '{SECRET} {id}', {id}, '{CONTROL} {id}')"
                ));
                statements.push(format!("UPDATE d SET n = n + 1, n = n - 1 WHERE id = {id}"));
                statements.push(format!(
                    "UPDATE d SET name = CONCAT('{SECRET} ', n) WHERE id = {id}"
                ));
            }
            for sql in statements {
                match session.run(&sql) {
                    Ok(done) => self.look(&sql, &done),
                    Err(failure) => {
                        let is_known = MAY_BE.contains(&failure.code)
                            || failure.message.starts_with("OS1105 ");
                        assert!(is_known, "{sql}: {failure}");
                        let text = format!("{} {:.30}", failure.code, failure.message);
                        *self
                            .failures
                            .lock()
                            .expect("alive")
                            .entry(text)
                            .or_default() += 1;
                    }
                }
            }
        }
    }

    /// A row that is there has its own values.
    fn look(&self, sql: &str, done: &Outcome) {
        for line in done.text().lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            assert_eq!(cells[1], format!("{SECRET} {}", cells[0]), "{sql}");
            assert_eq!(cells[2], cells[0], "{sql}");
            self.rows.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Rows that are read while definitions change have the right values, and none of them is in clear
/// text anywhere.
pub fn beside_other_sessions(guarded: &mut Guarded) {
    let writers = guarded.writers();
    let boss = writers[0];
    // a group allows no definition beside changes of the same table at another member
    let elsewhere = guarded.cluster.topology() == Topology::Galera;
    guarded.at(boss).must(TABLE);
    guarded.settle_tables();
    let beside = Beside {
        next: AtomicU64::new(1),
        rows: AtomicU64::new(0),
        over: AtomicBool::new(false),
        failures: Mutex::default(),
    };
    let rounds = if long_run() { 20 } else { 1 };
    let running = guarded.cluster.running();
    thread::scope(|scope| {
        let _over = Over(&beside.over);
        for number in running {
            let (beside, session) = (&beside, guarded.at(number));
            let writes = number == boss || elsewhere;
            scope.spawn(move || {
                let _over = OverIfPanicking(&beside.over);
                beside.work(session, writes);
            });
        }
        let mut session = guarded.at(boss);
        for _ in 0..rounds {
            for sql in STEPS {
                let before = beside.next.load(Ordering::SeqCst);
                wait_until("the others go on", SOON, || {
                    beside.over.load(Ordering::SeqCst)
                        || beside.next.load(Ordering::SeqCst) > before + 20
                });
                assert!(
                    !beside.over.load(Ordering::SeqCst),
                    "one of the others has failed"
                );
                defined(&mut session, sql);
            }
        }
        let before = beside.rows.load(Ordering::SeqCst);
        wait_until("rows are read", SOON, || {
            beside.over.load(Ordering::SeqCst) || beside.rows.load(Ordering::SeqCst) > before + 100
        });
    });
    announce(&format!(
        "{:?}: {} rows read beside definitions; {:?}",
        guarded.cluster.topology(),
        beside.rows.into_inner(),
        beside.failures.into_inner().expect("alive")
    ));
    guarded.settle_tables();
    let rows = guarded.same("SELECT id, name, n FROM d ORDER BY id");
    assert!(rows.lines().count() > 10, "{rows}");
    for line in rows.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let expected = [
            cells[0].to_owned(),
            format!("{SECRET} {}", cells[0]),
            cells[0].to_owned(),
        ];
        assert_eq!(cells, expected);
    }
}

/// A definition that a conflict ends is tried again.
fn defined(session: &mut Session, sql: &str) {
    let begin = Instant::now();
    while let Err(failure) = session.run(sql) {
        let again = [1213, 1205].contains(&failure.code) || failure.message.starts_with("OS1105 ");
        assert!(again && begin.elapsed() < SOON, "{sql}: {failure}");
    }
}

/// Columns get random ids: a definition that each node makes for itself would have others on each.
pub fn made_on_one_node_alone(guarded: &mut Guarded) {
    if guarded.cluster.topology() != Topology::Galera {
        return;
    }
    let mut session = guarded.at(0);
    session.must("CREATE TABLE rolled (id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (eq))");
    session.must("CREATE TABLE open (id INT PRIMARY KEY, name VARCHAR(40))");
    for (set, back) in [
        (
            "SET SESSION wsrep_OSU_method = 'RSU'",
            "SET SESSION wsrep_OSU_method = 'TOI'",
        ),
        ("SET SESSION wsrep_on = OFF", "SET SESSION wsrep_on = ON"),
    ] {
        session.must(set);
        for sql in [
            "CREATE TABLE alone (id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (eq))",
            "ALTER TABLE rolled ADD COLUMN x INT ENCRYPTED FOR (eq)",
            "ALTER TABLE rolled MODIFY name VARCHAR(60)",
            "CREATE TABLE alone LIKE rolled",
            "CREATE TABLE alone AS SELECT * FROM rolled",
        ] {
            let failure = session.run(sql).expect_err(sql);
            let says = failure.message.starts_with("OS1001") && failure.message.contains("wsrep_");
            assert!(says, "{set}: {sql}: {failure}");
        }
        session.must(back);
    }
    // where nothing is protected it is the server's
    session.must("SET SESSION wsrep_OSU_method = 'RSU'");
    session.must("ALTER TABLE open ADD INDEX (name)");
    session.must("SET SESSION wsrep_OSU_method = 'TOI'");
    for number in 1..3 {
        let mut other = guarded.at(number);
        other.must("SET SESSION wsrep_OSU_method = 'RSU'");
        other.must("ALTER TABLE open ADD INDEX (name)");
    }
    guarded.settle_tables();
    session.must(&format!("INSERT INTO rolled VALUES (1, '{SECRET}')"));
    assert_eq!(guarded.same("SELECT name FROM rolled"), SECRET);
}

/// A definition for which rows are sealed anew locks its table. Where others write past the lock it
/// is refused: it would stop the cluster.
pub fn that_need_a_lock(guarded: &mut Guarded) {
    let writers = guarded.writers();
    let mut session = guarded.at(writers[0]);
    session.must("CREATE TABLE longer (id INT PRIMARY KEY, name VARCHAR(20) ENCRYPTED FOR (eq))");
    session.must(&format!("INSERT INTO longer VALUES (1, '{SECRET}')"));
    let sql = "ALTER TABLE longer MODIFY name VARCHAR(60)";
    let long = format!("'{SECRET} and more than twenty letters'");
    match guarded.cluster.topology() {
        Topology::Group => {
            session.must(sql);
            session.must(&format!("INSERT INTO longer VALUES (2, {long})"));
        }
        _ => {
            let failure = session.run(sql).expect_err(sql);
            assert!(failure.message.starts_with("OS1040"), "{failure}");
            // what can be done instead
            session.must("ALTER TABLE longer ADD COLUMN new VARCHAR(60) ENCRYPTED FOR (eq)");
            session.must("UPDATE longer SET new = name");
            session.must("ALTER TABLE longer DROP COLUMN name");
            session.must("ALTER TABLE longer RENAME COLUMN new TO name");
            session.must(&format!("INSERT INTO longer VALUES (2, {long})"));
        }
    }
    guarded.settle_tables();
    let names = guarded.same("SELECT name FROM longer ORDER BY id");
    assert_eq!(
        names,
        format!("{SECRET}\n{SECRET} and more than twenty letters")
    );
}
