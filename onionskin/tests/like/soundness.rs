//! MySQL's index over grams misses no row: its answers and those of a scan, in one snapshot, while
//! eight sessions write.

use onionskin_testkit::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ROWS: u64 = 600;
const WRITERS: u64 = 8;

/// The same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A name of two words of thirty, so that each pair is rare.
    fn name(&mut self) -> String {
        let word = |n: u64| {
            format!(
                "{}{}",
                ["kelvin", "ohmage", "weber"][n as usize / 10],
                n % 10
            )
        };
        format!("{} {}", word(self.below(30)), word(self.below(30)))
    }

    fn row(&mut self) -> String {
        let (id, unique) = (self.below(ROWS), self.below(ROWS));
        format!("({id}, {unique}, '{}')", self.name())
    }
}

/// Everything that writes: rows beside duplicates of either key, changes of the same rows,
/// transactions that are undone in whole or in part.
fn write(session: &mut Session, random: &mut Random) -> Result<(), Failure> {
    let rows: Vec<String> = (0..2 + random.below(3)).map(|_| random.row()).collect();
    let (rows, id, name) = (rows.join(","), random.below(ROWS), random.name());
    let sql = match random.below(9) {
        0 | 1 => format!("INSERT IGNORE INTO t VALUES {rows}"),
        2 => format!("REPLACE INTO t VALUES {rows}"),
        3 => format!("INSERT INTO t VALUES {rows} ON DUPLICATE KEY UPDATE name = VALUES(name)"),
        4 => format!(
            "INSERT INTO t VALUES {} ON DUPLICATE KEY UPDATE name = '{name}'",
            random.row()
        ),
        5 => format!("UPDATE t SET name = '{name}' WHERE id BETWEEN {id} AND {id} + 3"),
        6 => format!(
            "UPDATE t SET name = '{name}' WHERE name LIKE '{}%'",
            &name[..7]
        ),
        7 => format!("DELETE FROM t WHERE id = {id}"),
        _ => {
            session.run("START TRANSACTION")?;
            session.run(&format!("REPLACE INTO t VALUES {rows}"))?;
            session.run("SAVEPOINT half")?;
            session.run(&format!("UPDATE t SET name = '{name}' WHERE id = {id}"))?;
            session.run(&format!("DELETE FROM t WHERE id = {id} + 1"))?;
            let end = ["ROLLBACK TO half", "DO 0", "DO 0"][random.below(3) as usize];
            session.run(end)?;
            ["COMMIT", "ROLLBACK"][random.below(2) as usize].to_owned()
        }
    };
    session.run(&sql).map(|_| ()).map_err(|failure| Failure {
        message: format!("{sql}: {}", failure.message),
        ..failure
    })
}

/// The ids that a pattern finds by the index, and those of the rows that match, of all that one
/// snapshot holds.
fn compare(session: &mut Session, random: &mut Random) -> u64 {
    session.must("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    let mut found = 0;
    for _ in 0..6 {
        let name = random.name();
        let (first, second) = name.split_once(' ').expect("two words");
        let part = [first, second, &name[2..], &name[..9]][random.below(4) as usize];
        let like = format!("SELECT id, name FROM t WHERE name LIKE '%{part}%' ORDER BY id");
        let rows = |text: String| -> BTreeMap<String, String> {
            let pairs = text.lines().filter_map(|line| line.split_once('\t'));
            pairs
                .map(|(id, name)| (id.to_owned(), name.to_owned()))
                .collect()
        };
        let by_index = rows(session.text(&like).unwrap());
        let mut all = rows(session.text("SELECT id, name FROM t").unwrap());
        all.retain(|_, name| name.contains(part));
        assert_eq!(by_index, all, "{like}");
        found += all.len() as u64;
    }
    session.must("COMMIT");
    found
}

pub fn an_index_answers_as_a_scan_while_others_write(kind: Kind) {
    if kind == Kind::MariaDb {
        return; // without like_index all rows are opened
    }
    let create = "CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(60) {like}) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_0900_ai_ci";
    let Some(mut pair) = Pair::on_one_server(kind, create, "") else {
        return;
    };
    let mut random = Random(7);
    for id in 0..ROWS {
        let sql = format!("INSERT INTO t VALUES ({id}, {id}, '{}')", random.name());
        pair.protected.must(&sql);
    }
    let seconds = if long_run() { 240 } else { 4 };
    let stop = AtomicBool::new(false);
    let writes = AtomicU64::new(0);
    let mut compared = 0;
    let mut found = 0;
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let mut session = pair.proxy.connect_to("app");
            let (stop, writes) = (&stop, &writes);
            scope.spawn(move || {
                let mut random = Random(1000 + writer);
                while !stop.load(Ordering::Relaxed) {
                    match write(&mut session, &mut random) {
                        Ok(()) => {}
                        // who deadlocks or waits too long is undone and goes on
                        Err(failure) if matches!(failure.code, 1213 | 1205 | 1305) => {
                            session.must("ROLLBACK");
                        }
                        Err(failure) => panic!("{failure}"),
                    }
                    writes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            found += compare(&mut pair.protected, &mut random);
            compared += 6;
        }
        stop.store(true, Ordering::Relaxed);
    });
    compare(&mut pair.protected, &mut random);
    let writes = writes.into_inner();
    announce(&format!(
        "{}: {compared} searches by the index equal to scans of their snapshots, {found} rows found, {writes} writes meanwhile",
        kind.name()
    ));
    assert!(compared > 20 && found > 100 && writes > 100);
    // the server's own look at the table and its index
    let checked = pair
        .behind
        .connect()
        .text("CHECK TABLE app.t EXTENDED")
        .unwrap();
    assert!(checked.ends_with("\tOK"), "{checked}");
    // of a handful of rows, if the writers have left no more, any server reads all
    let filling: Vec<String> = (100_000..101_000)
        .map(|id| format!("({id}, {id}, 'quite another {id}')"))
        .collect();
    let sql = format!("INSERT INTO t VALUES {}", filling.join(", "));
    pair.protected.must(&sql);
    in_force(
        &mut pair,
        "SELECT id FROM t WHERE name LIKE '%kelvin3 web%'",
    );
    pair.proxy.assert_healthy();
}

/// MySQL's own EXPLAIN of the statement that it gets: it is answered by the index.
pub fn in_force(pair: &mut Pair, sql: &str) {
    let sent = sent_for(pair, sql);
    assert!(sent.contains(" MEMBER OF("), "{sent}");
    let mut admin = pair.behind.connect();
    admin.must("USE app");
    // otherwise the server may still believe that there are a handful of rows
    admin.must("ANALYZE TABLE t");
    let plan = admin.text(&format!("EXPLAIN FORMAT=TREE {sent}"));
    let plan = plan.unwrap();
    assert!(plan.contains("using onionskin_"), "{sent}\n{plan}");
}

/// What the server gets in the place of a SELECT.
pub fn sent_for(pair: &mut Pair, sql: &str) -> String {
    let mut admin = pair.behind.connect();
    admin.must(
        "SET GLOBAL log_output = 'TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log = 1",
    );
    pair.protected.must(sql);
    admin.must("SET GLOBAL general_log = 0");
    admin
        .text("SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE argument LIKE 'SELECT%$enc%' ORDER BY event_time DESC LIMIT 1")
        .unwrap()
}

/// Texts with more grams than an index entry may have are found all the same, and a row of the
/// longest texts can be changed and deleted.
pub fn long_texts_are_found(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, a TEXT {like}, b VARCHAR(300) {like}, c VARCHAR(2000) {like}, d TEXT {eq, like}) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin";
    let Some(mut pair) = Pair::on_one_server(kind, create, "") else {
        return;
    };
    let mut random = Random(3);
    let mut text = |length: usize| -> String {
        let letter = |random: &mut Random| char::from(b'a' + random.below(26) as u8);
        (0..length).map(|_| letter(&mut random)).collect()
    };
    // 64 different grams are the most of each cell
    for (id, length) in [10, 62, 64, 80, 90, 300, 290, 63].into_iter().enumerate() {
        let [a, b, c, d] = [text(length), text(length), text(length), text(length)];
        pair.both(&format!(
            "INSERT INTO t VALUES ({id}, '{a} needle', '{b}', '{c}', '{d} needle')"
        ));
        let [a, b, c, d] = [text(length), text(length), text(length), text(length)];
        pair.both(&format!(
            "UPDATE t SET a = '{a}', b = '{b}', c = 'needle{c}', d = '{d} needle' WHERE id = {id}"
        ));
        let part = &b[2..8];
        for sql in [
            format!("SELECT id FROM t WHERE b LIKE '%{part}%'"),
            "SELECT id FROM t WHERE d LIKE '%needle'".into(),
            "SELECT id, c FROM t WHERE c LIKE 'needle%' AND d LIKE '%needle%'".into(),
        ] {
            assert!(pair.same_rows_in_any_order(&sql, &[]) > 0, "{sql}");
        }
        assert_eq!(
            pair.same_rows_in_any_order("SELECT id FROM t WHERE a LIKE '%needle%'", &[]),
            0
        );
    }
    pair.both("UPDATE t SET a = 'needlex' WHERE d LIKE '%needle%' AND id > 5");
    assert_eq!(
        pair.same_rows_in_any_order("SELECT id FROM t WHERE a LIKE 'needlex'", &[]),
        2
    );
    if kind == Kind::MySql {
        let gram = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'app' AND COLUMN_NAME LIKE 'b$gram%'";
        let gram = pair.behind.connect().text(gram).unwrap();
        let many = format!(
            "SELECT GROUP_CONCAT(id ORDER BY id) FROM app.t WHERE `{gram}` = CAST('[729000000]' AS JSON)"
        );
        assert_eq!(pair.behind.connect().text(&many).unwrap(), "3,4,5,6");
    }
    assert_eq!(pair.both("DELETE FROM t WHERE d LIKE '%needle%'"), 8);
    // a session without a character set of its own
    pair.protected.must("SET NAMES binary");
    let sql = "INSERT INTO t (id, b) VALUES (?, ?)";
    pair.protected.execute(sql, (1, "a needle")).unwrap();
    pair.protected
        .must("INSERT INTO t (id, b) VALUES (2, 'the needle')");
    pair.protected.must("SET NAMES utf8mb4");
    let found = pair
        .protected
        .text("SELECT id FROM t WHERE b LIKE '%needle' ORDER BY id");
    assert_eq!(found.unwrap(), "1\n2");
    pair.proxy.assert_healthy();
}
