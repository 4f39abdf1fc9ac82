//! `onionskin migrate` where all nodes write: beside writers at every node, killed at every step,
//! and what is refused.

use super::guarded::{Guarded, Over, OverIfPanicking, SECRET, SOON};
use onionskin_testkit::*;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const ACCOUNTS: u64 = 6;
const EACH: i64 = 1000;
/// Ids of a writer's rows begin with a multiple of it.
const OWN: u64 = 1_000_000;
const ROWS: u64 = 3000;

/// The two renames of `k`.
const AWAY: &str = "RENAME TABLE `k` TO `k_onionskin_old`";
const COMES: &str = "RENAME TABLE `k_onionskin_new` TO `k`";

/// What a row holds: the name and the number.
type Model = BTreeMap<u64, (String, i64)>;

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Writes rows of its own, and moves money between accounts of all.
struct Writer<'a> {
    port: u16,
    table: &'a str,
    /// In every name that it writes.
    word: &'a str,
    number: u64,
    random: Random,
    model: Model,
}

#[derive(Default)]
struct Seen {
    over: AtomicBool,
    written: AtomicU64,
    transfers: AtomicU64,
    conflicts: AtomicU64,
    /// Statements that met the moment in which the table has no name.
    nameless: AtomicU64,
}

impl Seen {
    /// Whether it was done. What is no conflict is a fault.
    fn is_done<T>(&self, sql: &str, done: &Result<T, Failure>) -> bool {
        let count = match done {
            Ok(_) => return true,
            Err(failure) if [1213, 1205].contains(&failure.code) => &self.conflicts,
            Err(failure) if failure.code == 1146 => &self.nameless,
            Err(failure) => panic!("{sql}: {failure}"),
        };
        count.fetch_add(1, Ordering::SeqCst);
        false
    }
}

impl Writer<'_> {
    fn run(&mut self, seen: &Seen) {
        let mut session = Session::open(self.port, "root", "", Some("app"));
        while !seen.over.load(Ordering::SeqCst) {
            match self.random.below(4) {
                0 => self.transfer(&mut session, seen),
                _ => self.write(&mut session, seen),
            }
            thread::sleep(Duration::from_millis(3));
        }
    }

    fn write(&mut self, session: &mut Session, seen: &Seen) {
        let known: Vec<u64> = self.model.keys().copied().collect();
        let next = known.last().map_or(self.number * OWN, |last| last + 1);
        let one = known.get(self.random.below(known.len().max(1) as u64) as usize);
        let mark = self.random.below(1 << 30);
        let (name, n) = (format!("{} {next} {mark}", self.word), next as i64);
        let table = self.table;
        let (sql, id, row) = match (self.random.below(5), one) {
            (0, Some(id)) => (format!("DELETE FROM {table} WHERE id = {id}"), *id, None),
            (1, Some(id)) => {
                let sql = format!("UPDATE {table} SET name = '{name}' WHERE id = {id}");
                (sql, *id, Some((name, self.model[id].1)))
            }
            (2, Some(id)) => {
                let (old, n) = &self.model[id];
                let sql = format!("UPDATE {table} SET n = n + 1 WHERE id = {id}");
                (sql, *id, Some((old.clone(), n + 1)))
            }
            _ => {
                let sql =
                    format!("INSERT INTO {table} (id, name, n) VALUES ({next}, '{name}', {n})");
                (sql, next, Some((name, n)))
            }
        };
        let done = session.run(&sql);
        if seen.is_done(&sql, &done) {
            assert_eq!(done.expect("done").affected, 1, "{sql}");
            seen.written.fetch_add(1, Ordering::SeqCst);
            match row {
                Some(row) => drop(self.model.insert(id, row)),
                None => drop(self.model.remove(&id)),
            }
        }
    }

    fn transfer(&mut self, session: &mut Session, seen: &Seen) {
        let (from, to) = (self.random.below(ACCOUNTS), self.random.below(ACCOUNTS));
        if from == to {
            return;
        }
        let table = self.table;
        let mut done = || -> Result<(), Failure> {
            session.run("BEGIN")?;
            session.run(&format!("UPDATE {table} SET n = n - 1 WHERE id = {from}"))?;
            session.run(&format!("UPDATE {table} SET n = n + 1 WHERE id = {to}"))?;
            session.run("COMMIT").map(|_| ())
        };
        let done = done();
        if seen.is_done("a transfer", &done) {
            seen.transfers.fetch_add(1, Ordering::SeqCst);
        } else {
            // Galera may tell the end of the transaction only with that
            let is_over = session.run("ROLLBACK").is_ok() || session.run("ROLLBACK").is_ok();
            assert!(is_over);
        }
    }
}

/// A plain table with accounts and rows.
fn fill(guarded: &mut Guarded, table: &str) {
    let mut session = guarded.cluster.connect(0);
    session.must("USE app");
    session.must(&format!(
        "CREATE TABLE {table} (id BIGINT PRIMARY KEY, name VARCHAR(60), n INT, open VARCHAR(40) DEFAULT 'x')"
    ));
    let rows = (0..ROWS).map(|id| match id < ACCOUNTS {
        true => format!("({id}, 'account {id}', {EACH})"),
        false => format!("({id}, 'entry {id}', {id})"),
    });
    let rows: Vec<String> = rows.collect();
    for rows in rows.chunks(500) {
        session.must(&format!(
            "INSERT INTO {table} (id, name, n) VALUES {}",
            rows.join(", ")
        ));
    }
    guarded.settle();
}

fn writers<'a>(ports: &[u16], table: &'a str, word: &'a str) -> Vec<Writer<'a>> {
    let writer = |(place, port): (usize, &u16)| Writer {
        port: *port,
        table,
        word,
        number: place as u64 + 1,
        random: Random(place as u64 + 77),
        model: Model::new(),
    };
    ports.iter().enumerate().map(writer).collect()
}

/// Does something while all of them write.
fn beside<T>(writers: &mut [Writer<'_>], seen: &Seen, what: impl FnOnce() -> T) -> T {
    seen.over.store(false, Ordering::SeqCst);
    thread::scope(|scope| {
        let _over = Over(&seen.over);
        for writer in writers {
            scope.spawn(move || {
                let _over = OverIfPanicking(&seen.over);
                writer.run(seen);
            });
        }
        more(seen);
        let done = what();
        more(seen);
        done
    })
}

/// Waits until something was written.
fn more(seen: &Seen) {
    let before = seen.written.load(Ordering::SeqCst);
    wait_until("rows are written", SOON, || {
        seen.over.load(Ordering::SeqCst) || seen.written.load(Ordering::SeqCst) > before + 60
    });
    assert!(!seen.over.load(Ordering::SeqCst), "a writer has failed");
}

/// Everything that was acknowledged is there, nothing else, and no money is lost.
fn look(rows: &str, writers: &[Writer<'_>], context: &str) {
    let mut sum = 0;
    let mut found = Model::new();
    for row in rows.lines() {
        let cells: Vec<&str> = row.split('\t').collect();
        let (id, n) = (
            cells[0].parse::<u64>().expect("an id"),
            cells[2].parse().expect("a number"),
        );
        match id {
            _ if id < ACCOUNTS => sum += n,
            _ if id < ROWS => assert_eq!((cells[1], n), (&*format!("entry {id}"), id as i64)),
            _ => drop(found.insert(id, (cells[1].to_owned(), n))),
        }
    }
    assert_eq!(sum, ACCOUNTS as i64 * EACH, "{context}");
    let mut should = Model::new();
    for writer in writers {
        should.extend(writer.model.clone());
    }
    let differing: Vec<_> = should
        .iter()
        .filter(|(id, row)| found.get(id) != Some(row))
        .take(5)
        .collect();
    assert!(
        found == should,
        "{context}: {} and {} rows, {differing:?}",
        found.len(),
        should.len()
    );
    let others = rows.lines().count() - should.len();
    assert!([ROWS, ROWS / 10].contains(&(others as u64)), "{context}");
}

/// `--node` for all nodes, which do not know their own addresses here.
fn nodes(guarded: &Guarded) -> Vec<String> {
    let addresses = guarded.cluster.nodes().iter().map(Server::address);
    addresses
        .flat_map(|address| ["--node".to_owned(), address])
        .collect()
}

/// A migration at a node.
fn at(guarded: &Guarded, number: usize, arguments: &[&str]) -> Command {
    let (node, proxy) = (guarded.cluster.node(number), &guarded.proxies[number]);
    let mut command = migrate(node, Some(proxy), arguments);
    command.args(nodes(guarded));
    command
}

fn must(command: Command) -> String {
    let (succeeded, text) = run_migration(command);
    assert!(succeeded, "{text}");
    text
}

fn must_not(command: Command, part: &str) {
    let (succeeded, text) = run_migration(command);
    assert!(!succeeded && text.contains(part), "{part}: {text}");
}

/// In a group all members of which write.
pub fn are_refused(guarded: &mut Guarded) {
    let writer = guarded.writers()[0];
    guarded
        .at(writer)
        .must("CREATE TABLE stays (id INT PRIMARY KEY, name VARCHAR(40))");
    let command = at(guarded, writer, &["app.stays", "--encrypt", "name: eq"]);
    must_not(command, "a group that all members write to");
}

/// Tables and settings with which it would not be right.
pub fn of_what_does_not_suit(guarded: &mut Guarded) {
    let mut root = guarded.cluster.connect(0);
    root.must("USE app");
    root.must("CREATE TABLE parent (id INT PRIMARY KEY, n INT)");
    root.must(
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id))",
    );
    root.must("CREATE TABLE keyless (id INT NOT NULL, n INT, UNIQUE KEY (id))");
    root.must("CREATE TABLE triggered (id INT PRIMARY KEY, n INT)");
    root.must("CREATE TRIGGER tr BEFORE INSERT ON triggered FOR EACH ROW SET NEW.n = 1");
    guarded.settle();
    let index = ["--alter", "ADD INDEX (n)"];
    for (table, arguments, part) in [
        ("app.parent", &index[..], "foreign keys"),
        ("app.child", &["--rebuild"], "foreign keys"),
        ("app.keyless", &index, "no primary key"),
        ("app.triggered", &index, "it has triggers"),
        ("app.t", &["--rebuild", "--reverse"], "--reverse"),
    ] {
        if table == "app.t" {
            root.must("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
        }
        let arguments = [&[table], arguments].concat();
        must_not(at(guarded, 0, &arguments), part);
        must_not(
            at(guarded, 1, &[&*arguments, &["--dry-run"]].concat()),
            part,
        );
    }
    let drop = ["app.t", "--alter", "DROP PRIMARY KEY, ADD UNIQUE KEY (id)"];
    must_not(at(guarded, 0, &drop), "no primary key");
    for (setting, usual) in [
        ("wsrep_OSU_method = 'RSU'", "wsrep_OSU_method = 'TOI'"),
        ("wsrep_max_ws_rows = 100", "wsrep_max_ws_rows = 0"),
    ] {
        root.must(&format!("SET GLOBAL {setting}"));
        let part = setting.split(' ').next().expect("a name").to_lowercase();
        must_not(at(guarded, 0, &["app.t", "--rebuild"]), &part);
        root.must(&format!("SET GLOBAL {usual}"));
    }
    // the other nodes have to be known
    let arguments = [
        "app.t",
        "--rebuild",
        "--node",
        &guarded.cluster.node(1).address(),
    ];
    let command = migrate(guarded.cluster.node(0), None, &arguments);
    must_not(command, "has 3 nodes, and 2 of them");
    let tables = root.text("SHOW TABLES LIKE '%onionskin%'").expect("tables");
    assert_eq!(tables, "");
    root.must("DROP TABLE child, parent, keyless, triggered, t");
}

/// From plaintext to ciphertext, to other keys, to another definition. Nobody is refused anything,
/// and what is written behind the first step never reaches a server in plaintext.
pub fn beside_writers_at_all_nodes(guarded: &mut Guarded) {
    fill(guarded, "m");
    guarded.settle_tables();
    let ports: Vec<u16> = guarded.proxies.iter().map(Proxy::port).collect();
    let seen = Seen::default();
    let mut writers = writers(&ports, "m", "entry");
    let mut steps = vec![
        vec!["app.m", "--encrypt", "name: eq; n: eq range"],
        vec!["app.m", "--rotate"],
        vec!["app.m", "--modify", "name VARCHAR(90)"],
    ];
    for _ in 0..if long_run() { 10 } else { 0 } {
        steps.push(vec!["app.m", "--rotate"]);
    }
    for (place, arguments) in steps.iter().enumerate() {
        let command = at(
            guarded,
            place % 3,
            &[&**arguments, &["--drop-old"]].concat(),
        );
        let told = beside(&mut writers, &seen, || must(command));
        assert!(told.contains(" 0 repaired"), "{told}");
        announce(&format!(
            "{arguments:?}: {}",
            told.lines().find(|l| l.contains("switched")).unwrap_or("")
        ));
        let rows = guarded.same("SELECT id, name, n FROM m ORDER BY id");
        look(&rows, &writers, &format!("{arguments:?}"));
        guarded.cluster.same_cells("app", "m");
        for writer in &mut writers {
            writer.word = SECRET;
        }
    }
    let [written, transfers, conflicts, nameless] = [
        &seen.written,
        &seen.transfers,
        &seen.conflicts,
        &seen.nameless,
    ]
    .map(|count| count.load(Ordering::SeqCst));
    announce(&format!(
        "{written} rows written, {transfers} transfers, {conflicts} conflicts, {nameless} statements without a table"
    ));
    assert!(transfers > 100);
    assert_eq!(nameless, 0, "the proxies wait until the table is back");
    let shown = guarded.same("SHOW CREATE TABLE m");
    assert!(shown.contains("`name` varchar(90)"), "{shown}");
}

/// A snapshot at another node, in which a part of the new table could not be seen.
pub fn wait_for_snapshots_of_other_nodes(guarded: &mut Guarded) {
    let mut reader = guarded.cluster.connect(2);
    reader.must("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    reader.must("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    let rows = guarded
        .cluster
        .connect(0)
        .text("SELECT COUNT(*) FROM app.m");
    let command = at(guarded, 0, &["app.m", "--rotate", "--drop-old"]);
    let mut child = start_migration(command);
    thread::sleep(Duration::from_millis(3500));
    assert!(child.try_wait().expect("a child").is_none(), "it waits");
    assert_eq!(reader.text("SELECT COUNT(*) FROM app.m"), rows);
    reader.must("COMMIT");
    let (succeeded, text) = end_of_migration(child);
    assert!(
        succeeded && text.contains("waits for transactions"),
        "{text}"
    );
}

/// Killed at every step. Another process, be it at another node, goes on or gives up.
pub fn that_are_killed(guarded: &mut Guarded) {
    fill(guarded, "k");
    let ports: Vec<u16> = guarded.cluster.nodes().iter().map(Server::port).collect();
    let seen = Seen::default();
    let mut writers = writers(&ports, "k", "entry");
    let (away, comes) = (AWAY, COMES);
    let last = "DROP TABLE IF EXISTS `app`.`k_onionskin`";
    let points: &[Point<'_>] = &[
        ("INTO `k_onionskin_new`", 1, When::After),
        (away, 1, When::Before),
        (away, 1, When::After),
        (comes, 1, When::Before),
        (comes, 1, When::After),
        (last, 1, When::Before),
    ];
    let ways = [(0, "--resume"), (1, "--resume"), (2, "--abort")];
    let all = points.len() * ways.len();
    let chosen: Vec<usize> = match long_run() {
        true => (0..all).collect(),
        // each point once, and each way at the moment without a name
        false => vec![1, 3, 6, 7, 11, 13, 15],
    };
    for number in chosen {
        let (point, (node, way)) = (points[number / ways.len()], ways[number % ways.len()]);
        let context = format!("{point:?}, {way} at node {node}");
        let nodes = nodes(guarded);
        let mut arguments = vec!["app.k", "--rebuild"];
        arguments.extend(nodes.iter().map(String::as_str));
        beside(&mut writers, &seen, || {
            kill_at(guarded.cluster.node(0), &arguments, point);
            let mut arguments = vec!["app.k", way];
            arguments.extend(nodes.iter().map(String::as_str));
            let command = migrate(guarded.cluster.node(node), None, &arguments);
            let (succeeded, text) = run_migration(command);
            let is_done = text.contains("the tables were switched before the end came");
            assert!(succeeded || is_done, "{context}: {text}");
        });
        let rows = guarded
            .cluster
            .same_everywhere("SELECT id, name, n FROM app.k");
        look(&rows.join("\n"), &writers, &context);
        let mut root = guarded.cluster.connect(1);
        root.must("USE app");
        let tables = root.text("SHOW TABLES LIKE 'k%'").expect("tables");
        assert!(
            tables == "k" || tables == "k\nk_onionskin_old",
            "{context}: {tables}"
        );
        root.must("DROP TABLE IF EXISTS k_onionskin_old");
        guarded.settle();
    }
    assert!(seen.nameless.load(Ordering::SeqCst) > 0);
}

/// Between the two renames the network stands still, or is cut: the old table gets its name back,
/// and what was written is in it. Statements through proxies wait for that, and none of their
/// values reaches a server meanwhile.
pub fn whose_network_fails(guarded: &mut Guarded) {
    let mut session = guarded.at(0);
    session.must(
        "CREATE TABLE f (id BIGINT PRIMARY KEY, name VARCHAR(60) ENCRYPTED FOR (eq), n INT ENCRYPTED FOR (range))",
    );
    for id in 0..ROWS / 10 {
        let (name, n) = match id < ACCOUNTS {
            true => ("account", EACH),
            false => ("entry", id as i64),
        };
        session.must(&format!("INSERT INTO f VALUES ({id}, '{name} {id}', {n})"));
    }
    drop(session);
    guarded.settle_tables();
    let ports: Vec<u16> = guarded.proxies.iter().map(Proxy::port).collect();
    let seen = Seen::default();
    let mut writers = writers(&ports, "f", SECRET);
    // a cable reads no TLS
    let folder = guarded.proxies[0].folder();
    let text = std::fs::read_to_string(folder.join("onionskin.toml")).expect("a configuration");
    let readable = folder.join("readable.toml");
    std::fs::write(&readable, format!("backend_tls = \"never\"\n{text}")).expect("written");
    let cable = Cable::to(guarded.cluster.node(0).port());
    for (place, when, resumes) in [
        (AWAY, When::After, false),
        (COMES, When::Before, true),
        (COMES, When::After, true),
    ] {
        let (statement, frozen) = (place.replace("`k", "`f"), place == AWAY);
        match frozen {
            true => cable.freeze_at(&statement, 1, when),
            false => cable.cut_at(&statement, 1, when),
        }
        let start = |what: &str| {
            let mut command = migrate_at(&cable.address(), None, &["app.f", what, "--drop-old"]);
            command.args(nodes(guarded)).arg("-c").arg(&readable);
            start_migration(command)
        };
        let (succeeded, text) = beside(&mut writers, &seen, || {
            let child = start("--rotate");
            wait_until(&statement, SOON, || cable.is_frozen() || cable.is_cut());
            if frozen {
                // longer than it may take
                thread::sleep(Duration::from_millis(3300));
                let missing = guarded
                    .cluster
                    .connect(1)
                    .run("SELECT 1 FROM app.f LIMIT 0");
                assert_eq!(missing.expect_err("no table").code, 1146);
            }
            cable.freeze(false);
            cable.mend();
            let (succeeded, text) = end_of_migration(child);
            if resumes {
                assert!(!succeeded && text.contains("no row is lost"), "{text}");
                for node in guarded.cluster.nodes() {
                    node.connect().must("SELECT 1 FROM app.f LIMIT 0");
                }
                return end_of_migration(start("--resume"));
            }
            assert_eq!(text.contains("(attempt 2)"), frozen, "{text}");
            (succeeded, text)
        });
        assert!(
            succeeded && text.contains("switched"),
            "{statement}: {text}"
        );
        let rows = guarded.same("SELECT id, name, n FROM f ORDER BY id");
        look(&rows, &writers, &statement);
        guarded.cluster.same_cells("app", "f");
    }
    let nameless = seen.nameless.load(Ordering::SeqCst);
    assert_eq!(nameless, 0, "the proxies wait until the table is back");
}

/// A node is killed while the table is copied. What has to be asked of it later cannot be.
pub fn while_a_node_leaves(guarded: &mut Guarded) {
    let ports: Vec<u16> = guarded.proxies[..2].iter().map(Proxy::port).collect();
    let seen = Seen::default();
    fill(guarded, "l");
    let mut writers = writers(&ports, "l", "entry");
    let child = start_migration(at(guarded, 0, &["app.l", "--rebuild", "--drop-old"]));
    thread::sleep(Duration::from_millis(300));
    guarded.cluster.kill9(2);
    let mut ended = end_of_migration(child);
    guarded.cluster.wait_until_whole();
    for _ in 0..5 {
        if ended.0 || ended.1.contains("no migration of app.l has begun") {
            break;
        }
        let command = at(guarded, 0, &["app.l", "--resume", "--drop-old"]);
        ended = beside(&mut writers, &seen, || run_migration(command));
    }
    assert!(ended.0, "{}", ended.1);
    guarded.cluster.rejoin(2);
    let rows = guarded.same("SELECT id, name, n FROM l ORDER BY id");
    look(&rows, &writers, &ended.1);
    guarded.cluster.same_cells("app", "l");
}

/// Named locks are of one node, and are taken at all of them.
pub fn by_two_processes(guarded: &mut Guarded) {
    fill(guarded, "b");
    let nodes = nodes(guarded);
    let cable = Cable::to(guarded.cluster.node(0).port());
    cable.freeze_at("INTO `b_onionskin_new`", 1, When::Before);
    let mut command = migrate_at(
        &cable.address(),
        None,
        &["app.b", "--rebuild", "--drop-old"],
    );
    command.args(&nodes);
    let child = start_migration(command);
    wait_until("it copies", SOON, || cable.is_frozen());
    for what in ["--resume", "--abort"] {
        let mut command = migrate(guarded.cluster.node(1), None, &["app.b", what]);
        command.args(&nodes);
        must_not(command, "another process is migrating");
    }
    cable.freeze(false);
    let (succeeded, text) = end_of_migration(child);
    assert!(succeeded, "{text}");
}

/// Somebody makes a table of the name between the two renames.
pub fn whose_name_is_taken(guarded: &mut Guarded) {
    fill(guarded, "w");
    let nodes = nodes(guarded);
    let cable = Cable::to(guarded.cluster.node(0).port());
    cable.freeze_at(&AWAY.replace("`k", "`w"), 1, When::After);
    let mut command = migrate_at(&cable.address(), None, &["app.w", "--rebuild"]);
    command.args(&nodes);
    let child = start_migration(command);
    wait_until("the table is renamed", SOON, || cable.is_frozen());
    let mut other = guarded.cluster.connect(1);
    other.must("CREATE TABLE app.w (id INT PRIMARY KEY)");
    cable.freeze(false);
    let (succeeded, text) = end_of_migration(child);
    assert!(
        !succeeded && text.contains("somebody has made a table w"),
        "{text}"
    );
    let again = |what: &str| {
        let mut command = migrate(guarded.cluster.node(2), None, &["app.w", what]);
        command.args(&nodes);
        command
    };
    for what in ["--resume", "--abort"] {
        must_not(again(what), "somebody has made a table w");
    }
    other.must("DROP TABLE app.w");
    must(again("--abort"));
    let rows = guarded
        .cluster
        .same_everywhere("SELECT id, name, n FROM app.w");
    look(&rows.join("\n"), &[], "--abort");
}
