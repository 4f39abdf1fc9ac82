//! sysbench 1.0.20, unmodified, against encrypted tables: every workload without an error, and with
//! the same data afterwards as on a plain server.

use ::mysql::Value;
use onionskin_testkit::*;

on_both_servers!(
    twenty_four_threads_of_every_workload_leave_rows_that_open,
    the_same_load_leaves_the_same_rows_as_on_a_plain_server,
);

const PROTECT: &str = r#"
[protect."sbtest.*"]
k = ["eq", "range"]
c = []
pad = []
"#;

const TABLES: u32 = 2;
const ROWS: u32 = 2_000;

fn twenty_four_threads_of_every_workload_leave_rows_that_open(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut proxy = Proxy::start(&server, PROTECT);
    let seconds = if long_run() { 20 } else { 3 };
    let load = |script: &str| {
        Sysbench::new(proxy.port(), script)
            .tables(TABLES, ROWS)
            .threads(24)
    };
    server.connect().must("CREATE DATABASE sbtest");

    for prepared in [false, true] {
        load("oltp_read_write").run("prepare");
        assert_encrypted(&server, "sbtest1");
        let workloads = [
            "oltp_read_write",
            "oltp_write_only",
            "oltp_update_index",
            "oltp_insert",
            "oltp_point_select",
            "select_random_ranges",
            "oltp_delete",
        ];
        for script in workloads {
            let report = load(script).prepared(prepared).seconds(seconds).run("run");
            assert!(
                report.transactions > 0,
                "{script} did nothing:\n{}",
                report.text
            );
            announce(&format!(
                "{} {script} prepared={prepared}: {} transactions in {seconds} s, {} deadlocks retried",
                kind.name(),
                report.transactions,
                report.ignored_errors
            ));
        }
        for table in 1..=TABLES {
            assert_rows_open(&server, &proxy, &format!("sbtest{table}"));
        }
        load("oltp_read_write").run("cleanup");

        // One table for each thread, with rows of an id and a k.
        let load = || {
            Sysbench::new(proxy.port(), "bulk_insert")
                .threads(24)
                .prepared(prepared)
        };
        load().run("prepare");
        load()
            .option("--time=10")
            .option("--events=100000")
            .run("run");
        assert_bulk_rows_open(&server, &proxy);
        load().run("cleanup");
        let left = server.connect().text("SHOW TABLES FROM sbtest").unwrap();
        assert_eq!(left, "", "cleanup drops every table");
    }
    proxy.assert_healthy();
}

/// With one thread and a fixed seed, `sysbench run` sends the same statements every time. `prepare`
/// does not heed the seed, so the rows that it made on the plain server are copied.
fn the_same_load_leaves_the_same_rows_as_on_a_plain_server(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut proxy = Proxy::start(&server, PROTECT);
    server.connect().must("CREATE DATABASE sbtest");
    server.connect().must("CREATE DATABASE plain");
    let load = |port: u16, database: &str, script: &str| {
        Sysbench::new(port, script)
            .database(database)
            .tables(TABLES, ROWS)
            .threads(1)
            .option("--rand-seed=42")
    };
    for prepared in [false, true] {
        let mut plain = Session::open(server.port(), "root", "", Some("plain"));
        load(server.port(), "plain", "oltp_read_write").run("prepare");
        load(proxy.port(), "sbtest", "oltp_read_write").run("prepare");
        let mut protected = proxy.connect_to("sbtest");
        for table in 1..=TABLES {
            let table = format!("sbtest{table}");
            let rows = plain
                .must(&format!("SELECT * FROM {table} ORDER BY id"))
                .sets
                .remove(0)
                .rows;
            for session in [&mut plain, &mut protected] {
                session.must(&format!("TRUNCATE TABLE {table}"));
                for batch in rows.chunks(250) {
                    let tuples: Vec<String> = batch.iter().map(|row| tuple(row)).collect();
                    session.must(&format!(
                        "INSERT INTO {table} (id, k, c, pad) VALUES {}",
                        tuples.join(", ")
                    ));
                }
            }
        }
        for (port, database) in [(server.port(), "plain"), (proxy.port(), "sbtest")] {
            for script in [
                "oltp_read_write",
                "oltp_write_only",
                "oltp_update_index",
                "oltp_insert",
                "oltp_delete",
            ] {
                let report = load(port, database, script)
                    .prepared(prepared)
                    .events(200)
                    .run("run");
                assert_eq!(report.transactions, 200, "{}", report.text);
            }
        }
        assert_encrypted(&server, "sbtest1");
        for table in 1..=TABLES {
            for statement in [
                format!("SELECT * FROM sbtest{table} ORDER BY id"),
                format!("SELECT k, COUNT(*) FROM sbtest{table} GROUP BY k ORDER BY k"),
                format!(
                    "SELECT id, c FROM sbtest{table} WHERE k BETWEEN 900 AND 1100 ORDER BY k, id"
                ),
                format!("SELECT MIN(k), MAX(k), COUNT(*) FROM sbtest{table}"),
                format!("SELECT SUM(k) FROM sbtest{table} WHERE id BETWEEN 100 AND 200"),
                format!(
                    "SELECT DISTINCT c FROM sbtest{table} WHERE id BETWEEN 1 AND 100 ORDER BY c"
                ),
            ] {
                let expected = plain.must(&statement);
                let actual = protected.must(&statement);
                assert!(!expected.sets[0].rows.is_empty(), "{statement}: no rows");
                for (n, (expected, actual)) in expected.sets[0]
                    .rows
                    .iter()
                    .zip(&actual.sets[0].rows)
                    .enumerate()
                {
                    assert_eq!(expected, actual, "{statement}: row {n}");
                }
                assert_eq!(
                    expected.sets[0].rows.len(),
                    actual.sets[0].rows.len(),
                    "{statement}: number of rows"
                );
                assert_eq!(
                    expected.sets[0].columns, actual.sets[0].columns,
                    "{statement}: columns"
                );
            }
        }
        load(server.port(), "plain", "oltp_read_write").run("cleanup");
        load(proxy.port(), "sbtest", "oltp_read_write").run("cleanup");
    }
    proxy.assert_healthy();
}

/// A row as a list of SQL literals.
fn tuple(row: &[Value]) -> String {
    let literals: Vec<String> = row.iter().map(|value| value.as_sql(false)).collect();
    format!("({})", literals.join(", "))
}

/// The setting under test was in force: the server has no column `k`.
fn assert_encrypted(server: &Server, table: &str) {
    if direct_mode() {
        return;
    }
    let names = server
        .connect()
        .text(&format!(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'sbtest' AND table_name = '{table}'"
        ))
        .unwrap();
    let names: Vec<String> = names.lines().map(String::from).collect();
    for column in ["k", "c", "pad"] {
        assert!(
            !names.contains(&column.to_string()),
            "{table} has {column} in plaintext: {names:?}"
        );
        assert!(
            names.contains(&format!("{column}$enc")),
            "{table} has no {column}$enc: {names:?}"
        );
    }
}

/// Every row opens, looks like a row of sysbench, and searching finds exactly what reading finds.
fn assert_rows_open(server: &Server, proxy: &Proxy, table: &str) {
    let mut session = proxy.connect_to("sbtest");
    let all = session.must(&format!("SELECT id, k, c, pad FROM {table}"));
    let stored = server
        .connect()
        .text(&format!("SELECT COUNT(*) FROM sbtest.{table}"))
        .unwrap();
    let rows = &all.sets[0].rows;
    assert_eq!(
        rows.len().to_string(),
        stored,
        "{table}: rows through the proxy and on the server"
    );
    assert!(
        rows.len() > ROWS as usize / 2,
        "{table}: {stored} rows are left"
    );
    let mut by_k = Vec::new();
    for row in rows {
        let cell = |n: usize| -> String { ::mysql::from_value(row[n].clone()) };
        let (id, k): (u64, i64) = (cell(0).parse().expect("id"), cell(1).parse().expect("k"));
        assert!(
            is_digit_groups(&cell(2), 119),
            "{table} id {id}: c = {:?}",
            cell(2)
        );
        assert!(
            is_digit_groups(&cell(3), 59),
            "{table} id {id}: pad = {:?}",
            cell(3)
        );
        by_k.push((k, id));
    }
    by_k.sort_unstable();
    let (low, high) = (by_k[by_k.len() / 3].0, by_k[by_k.len() / 2].0);
    let expected: Vec<String> = by_k
        .iter()
        .filter(|(k, _)| (low..=high).contains(k))
        .map(|(k, id)| format!("{k}\t{id}"))
        .collect();
    let found = session.text(&format!(
        "SELECT k, id FROM {table} WHERE k BETWEEN {low} AND {high} ORDER BY k, id"
    ));
    assert_eq!(
        found.unwrap(),
        expected.join("\n"),
        "{table}: k BETWEEN {low} AND {high}"
    );
}

/// sysbench's strings are groups of eleven digits with hyphens between them.
fn is_digit_groups(text: &str, length: usize) -> bool {
    text.len() == length
        && text
            .split('-')
            .all(|group| group.len() == 11 && group.bytes().all(|b| b.is_ascii_digit()))
}

fn assert_bulk_rows_open(server: &Server, proxy: &Proxy) {
    let mut session = proxy.connect_to("sbtest");
    let tables = server.connect().text("SHOW TABLES FROM sbtest").unwrap();
    assert_eq!(
        tables.lines().count(),
        24,
        "one table for each thread: {tables}"
    );
    let mut total = 0;
    for table in tables.lines() {
        let stored = server
            .connect()
            .text(&format!("SELECT COUNT(*) FROM sbtest.{table}"))
            .unwrap();
        let rows = session.must(&format!("SELECT id, k FROM {table}")).sets[0]
            .rows
            .clone();
        assert_eq!(rows.len().to_string(), stored, "{table}");
        for row in &rows {
            // bulk_insert writes the same number to both.
            assert_eq!(row[0], row[1], "{table}");
        }
        total += rows.len();
    }
    assert!(total > 0, "bulk_insert wrote no rows");
}
