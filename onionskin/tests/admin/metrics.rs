//! `/metrics` counts what was done, exactly, in a text that Prometheus' own tool understands.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use ::mysql::prelude::Queryable;

use super::{SOON, administered, ask, get};
use crate::on_both_servers;
use onionskin_testkit::*;

on_both_servers!(
    every_statement_is_counted_once,
    cells_of_a_cursor_are_counted_once,
    sessions_and_logins_are_counted,
    time_is_told_by_where_it_was_spent,
);

/// Samples by name and labels, as they stand in the text.
type Samples = BTreeMap<String, f64>;

const OPEN_METRICS: &str =
    "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";

fn scrape(port: u16) -> Samples {
    let answer = ask(port, "GET", "/metrics", OPEN_METRICS);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(
        answer
            .head
            .contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{}",
        answer.head
    );
    let text = answer
        .body
        .strip_suffix("# EOF\n")
        .expect("the mark of the end");
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let samples = samples.map(|line| {
        let (name, value) = line.rsplit_once(' ').expect("a sample");
        (name.to_owned(), value.parse().expect("a number"))
    });
    samples.collect()
}

/// All statements.
fn statements(samples: &Samples) -> f64 {
    let counts = samples
        .iter()
        .filter(|(name, _)| name.contains("duration_seconds_count{"));
    counts.map(|(_, value)| value).sum()
}

/// A scrape once so many statements have been counted since another. A statement is counted when it
/// is answered: whoever has its answer may be faster.
fn scrape_behind(port: u16, before: &Samples, number: u32) -> Samples {
    let mut samples = scrape(port);
    wait_until("statements are counted", SOON, || {
        samples = scrape(port);
        statements(&samples) >= statements(before) + f64::from(number)
    });
    samples
}

/// What has grown between two scrapes, without histograms' buckets and times.
fn growth(before: &Samples, after: &Samples) -> Vec<(String, u64)> {
    let is_count = |name: &str| {
        !name.contains("_bucket{")
            && !name.contains("_seconds_sum{")
            && !name.contains("time_seconds")
    };
    let mut grown = Vec::new();
    for (name, value) in after.iter().filter(|(name, _)| is_count(name)) {
        let old = before.get(name).copied().unwrap_or(0.0);
        if *value != old {
            grown.push((name.clone(), (value - old) as u64));
        }
    }
    grown
}

/// The pair of a table, with a scratch engine and an administration address.
fn counted(kind: Kind) -> Option<(Pair, u16)> {
    let port = free_port();
    let settings = format!("admin = \"127.0.0.1:{port}\"");
    let options = PairOptions {
        tables: &[
            "CREATE TABLE t (id INT PRIMARY KEY, k INT {eq, range}, s VARCHAR(20) {}, plain INT)",
        ],
        settings: &settings,
        engine: Engine::Own,
        ..PairOptions::default()
    };
    let pair = Pair::start_with(kind, options)?;
    // The definitions of its tables are counted by then.
    wait_until("nothing is being counted", SOON, || {
        let before = statements(&scrape(port));
        std::thread::sleep(Duration::from_millis(200));
        before > 0.0 && statements(&scrape(port)) == before
    });
    Some((pair, port))
}

fn statement(tier: &str, kind: &str) -> String {
    format!("onionskin_statement_duration_seconds_count{{tier=\"{tier}\",kind=\"{kind}\"}}")
}

/// What a text counts as, what it seals, and what it opens.
type Expected = (&'static str, &'static str, &'static str, u64, u64);

const COUNTED: &[Expected] = &[
    (
        "INSERT INTO t VALUES (1, 5, 'Hb4YqMz7', 1), (2, 6, 'b', 2), (3, NULL, NULL, 3)",
        "1",
        "insert",
        4,
        0,
    ),
    ("SELECT k, s FROM t WHERE k = 5", "1", "select", 0, 2),
    ("SELECT k, s FROM t WHERE id > 0", "1", "select", 0, 4),
    ("SELECT id FROM t WHERE k > 5", "1", "select", 0, 0),
    ("SELECT id FROM t ORDER BY s", "2", "select", 0, 2),
    ("SELECT id, UPPER(s) FROM t", "3", "select", 0, 2),
    ("UPDATE t SET s = 'c' WHERE id = 2", "2", "update", 1, 1),
    ("UPDATE t SET plain = 7 WHERE k = 6", "1", "update", 0, 0),
    ("UPDATE t SET k = k + 1 WHERE id = 1", "2", "update", 1, 1),
    ("DELETE FROM t WHERE k = 99", "1", "delete", 0, 0),
    ("SELECT 1", "relay", "select", 0, 0),
    ("BEGIN", "relay", "transaction", 0, 0),
    ("COMMIT", "relay", "transaction", 0, 0),
    (
        "CREATE TABLE u (id INT PRIMARY KEY, k INT ENCRYPTED FOR (eq))",
        "definition",
        "definition",
        0,
        0,
    ),
    (
        "SELECT id FROM t WHERE k = 6; SELECT 2",
        "1",
        "select",
        0,
        0,
    ),
];

fn every_statement_is_counted_once(kind: Kind) {
    let Some((mut pair, port)) = counted(kind) else {
        return;
    };
    let mut wrong = Vec::new();
    for (sql, tier, of_kind, sealed, opened) in COUNTED {
        let before = scrape(port);
        if sql.contains("; ") {
            let mut results = pair.protected.conn().query_iter(sql).expect(sql);
            while results.iter().is_some_and(|set| set.count() > 0) {}
        } else {
            pair.protected.must(sql);
        }
        let grown = growth(&before, &scrape_behind(port, &before, 1));
        let mut expected = vec![(statement(tier, of_kind), 1)];
        for (operation, cells) in [("sealed", *sealed), ("opened", *opened)] {
            if cells > 0 {
                expected.push((
                    format!("onionskin_cells_total{{operation=\"{operation}\"}}"),
                    cells,
                ));
            }
        }
        let plans = |name: &str| name.starts_with("onionskin_plan");
        let mut grown: Vec<_> = grown.into_iter().filter(|(name, _)| !plans(name)).collect();
        grown.sort();
        expected.sort();
        if grown != expected {
            wrong.push(format!("{sql}: {grown:?}, and not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // Errors of the proxy's own, each under its code.
    for sql in ["UPDATE t SET plain = k", "HANDLER t OPEN"] {
        let before = scrape(port);
        let failure = pair.protected.run(sql).expect_err("refused");
        let text = failure.to_string();
        let at = text.find("OS1").expect("an error of the proxy's own");
        let grown = growth(&before, &scrape_behind(port, &before, 1));
        let code = format!("onionskin_refusals_total{{code=\"{}\"}}", &text[at..at + 6]);
        assert!(grown.contains(&(code, 1)), "{sql}: {text}: {grown:?}");
        let refused = grown
            .iter()
            .filter(|(name, _)| name.contains("tier=\"refused\""));
        assert_eq!(refused.map(|(_, n)| n).sum::<u64>(), 1, "{sql}: {grown:?}");
    }
    assert!(
        scrape(port)
            .keys()
            .any(|name| name.contains("tier=\"refused\"")),
        "one of them at least is refused"
    );

    // The same text with other values is one plan; an execution is a statement, a preparation none.
    let before = scrape(port);
    for k in 1..=3 {
        pair.protected
            .must(&format!("SELECT id FROM t WHERE k = {k}"));
    }
    let grown = growth(&before, &scrape_behind(port, &before, 3));
    assert!(
        grown.contains(&("onionskin_plans_total{cache=\"hit\"}".into(), 3)),
        "{grown:?}"
    );
    assert!(
        !grown.iter().any(|(name, _)| name.contains("miss")),
        "{grown:?}"
    );
    let before = scrape(port);
    for k in [5, 6] {
        let sql = "SELECT k FROM t WHERE k = ?";
        pair.protected.execute(sql, (k,)).expect("a result");
    }
    let grown = growth(&before, &scrape_behind(port, &before, 2));
    assert!(grown.contains(&(statement("1", "select"), 2)), "{grown:?}");
    // The server's errors are answers.
    let before = scrape(port);
    pair.protected.must_fail("SELECT nothing FROM nowhere");
    let grown = growth(&before, &scrape_behind(port, &before, 1));
    assert!(
        grown.contains(&(statement("relay", "select"), 1)),
        "{grown:?}"
    );

    // Nothing of a client's is in the text.
    let text = get(port, "/metrics").body;
    for word in ["Hb4YqMz7", "root", "nowhere", "app", "UPPER"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
}

/// An execution with a cursor is a statement, its fetches are none; each cell is opened in one of
/// them.
fn cells_of_a_cursor_are_counted_once(kind: Kind) {
    const EXECUTE: u8 = 23;
    const FETCH: u8 = 28;
    let Some((mut pair, port)) = counted(kind) else {
        return;
    };
    let before = scrape(port);
    let rows: Vec<String> = (1..=5)
        .map(|n| format!("({n}, {n}, 'x{n}', {n})"))
        .collect();
    pair.protected
        .must(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    scrape_behind(port, &before, 1);
    let mut client = RawClient::login(pair.proxy.port());
    let id = client.prepare(b"SELECT s FROM app.t");
    let before = scrape(port);
    // A cursor that only reads, one round.
    client.command(EXECUTE, &[&id[..], &[1, 1, 0, 0, 0]].concat());
    client.until_eof();
    for _ in 0..3 {
        client.command(FETCH, &[&id[..], &[2, 0, 0, 0]].concat());
        client.until_eof();
    }
    let opened = ("onionskin_cells_total{operation=\"opened\"}".to_owned(), 5);
    wait_until("all cells are counted", SOON, || {
        growth(&before, &scrape(port)).contains(&opened)
    });
    let grown = growth(&before, &scrape(port));
    assert!(grown.contains(&(statement("1", "select"), 1)), "{grown:?}");
    let counted = grown
        .iter()
        .filter(|(name, _)| name.contains("duration_seconds_count{"));
    assert_eq!(counted.count(), 1, "{grown:?}");
}

fn sessions_and_logins_are_counted(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(mut server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let (proxy, port) = administered(&server, "");
    let value = |name: &str| scrape(port).get(name).copied().unwrap_or(-1.0);
    let login = |outcome: &str| value(&format!("onionskin_logins_total{{outcome=\"{outcome}\"}}"));
    // Whoever starts the proxy sees whether it answers, by a connection that says nothing.
    wait_until("the first connection is done with", SOON, || {
        login("refused") == 1.0
    });

    let session = proxy.connect();
    assert_eq!(value("onionskin_sessions_open"), 1.0);
    let second = proxy.connect();
    assert_eq!(value("onionskin_sessions_open"), 2.0);
    assert_eq!((login("ok"), value("onionskin_sessions_total")), (2.0, 2.0));
    drop(session);
    drop(second);
    wait_until("sessions are closed", SOON, || {
        value("onionskin_sessions_open") == 0.0
    });
    assert_eq!(value("onionskin_sessions_total"), 2.0);
    assert!(Session::try_open(proxy.port(), "root", "wrong", None).is_err());
    wait_until("the login is counted", SOON, || login("refused") == 2.0);
    assert_eq!(login("error"), 0.0);
    assert_eq!(value("onionskin_ready{part=\"server\"}"), 1.0);
    server.kill9();
    assert!(Session::try_open(proxy.port(), "root", "", None).is_err());
    wait_until("the login is counted", SOON, || login("error") == 1.0);
    assert_eq!(login("refused"), 2.0);
    wait_until("the server is told to be gone", SOON, || {
        value("onionskin_ready{part=\"server\"}") == 0.0
    });
    assert_eq!(value("onionskin_ready{part=\"proxy\"}"), 1.0);
}

fn time_is_told_by_where_it_was_spent(kind: Kind) {
    let Some((mut pair, port)) = counted(kind) else {
        return;
    };
    let before = scrape(port);
    pair.protected.must("INSERT INTO t VALUES (1, 5, 'a', 1)");
    scrape_behind(port, &before, 1);
    let spent = |place: &str| {
        let name = format!("onionskin_statement_time_seconds_total{{where=\"{place}\"}}");
        scrape(port)[&name]
    };
    let (server, scratch, proxy) = (spent("server"), spent("scratch"), spent("proxy"));
    assert_eq!(scratch, 0.0, "no statement of tier 3 yet");
    let before = scrape(port);
    pair.protected.must("SELECT SLEEP(0.5)");
    scrape_behind(port, &before, 1);
    let slept = spent("server") - server;
    // a thread that does not get on between sending and waiting has waited less
    assert!((0.45..1.5).contains(&slept), "{slept}");
    assert!(spent("proxy") - proxy < 0.4, "{}", spent("proxy") - proxy);
    let before = scrape(port);
    pair.protected.must("SELECT UPPER(s) FROM t");
    scrape_behind(port, &before, 1);
    assert!(spent("scratch") > 0.0);
    // The parts are the whole.
    let samples = scrape(port);
    let sum_of = |part: &str| -> f64 {
        let of = samples.iter().filter(|(name, _)| name.contains(part));
        of.map(|(_, value)| value).sum()
    };
    let (whole, parts) = (
        sum_of("statement_duration_seconds_sum"),
        sum_of("statement_time_seconds_total"),
    );
    assert!((whole - parts).abs() < 0.001, "{whole} {parts}");
}

/// Whether the program is there; tells if it is not.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        announce(&format!(
            "SKIPPED: no {program}; run scripts/install-deps.sh tests"
        ));
    }
    found
}

#[test]
fn prometheus_own_tool_finds_no_fault() {
    let Some((mut pair, port)) = counted(Kind::MariaDb) else {
        return;
    };
    for (sql, ..) in COUNTED.iter().filter(|(sql, ..)| !sql.contains("; ")) {
        pair.protected.must(sql);
    }
    let answer = ask(port, "GET", "/metrics", "Accept: */*\r\n");
    assert!(
        answer
            .head
            .contains("content-type: text/plain; version=0.0.4"),
        "{}",
        answer.head
    );
    // As many series as there can be, not as there are statements.
    let series = answer
        .body
        .lines()
        .filter(|line| !line.starts_with('#'))
        .count();
    assert!(series < 1100, "{series}");
    if !has("promtool") {
        return;
    }
    let mut tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut input = tool.stdin.take().expect("its input");
    input.write_all(answer.body.as_bytes()).expect("sent");
    drop(input);
    let output = tool.wait_with_output().expect("promtool ends");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(
        output.status.success() && said.trim().is_empty(),
        "{said}\n{}",
        answer.body
    );
}

/// A real Prometheus scrapes the proxy, and evaluates the rules that the documents ship.
#[test]
fn a_real_prometheus_scrapes_and_finds_no_fault() {
    let Some((mut pair, port)) = counted(Kind::MariaDb) else {
        return;
    };
    if !has("prometheus") {
        return;
    }
    pair.protected.must("SELECT 1");
    let folder = tempfile::tempdir().expect("a folder");
    let rules = checkout().join("docs/metrics/onionskin.rules.yml");
    let config = format!(
        "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [{:?}]\nscrape_configs:\n\
         - job_name: onionskin\n  static_configs: [{{ targets: ['127.0.0.1:{port}'] }}]\n",
        rules.display().to_string()
    );
    let file = folder.path().join("prometheus.yml");
    std::fs::write(&file, config).expect("written");
    let its_port = free_port();
    let mut child = tied_command("prometheus")
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", folder.path().display()))
        .arg(format!("--web.listen-address=127.0.0.1:{its_port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("Prometheus starts");
    let told = |path: &str| -> serde_json::Value {
        let answer = ask(its_port, "GET", path, "Connection: close\r\n");
        serde_json::from_str(&answer.body).unwrap_or_default()
    };
    let value = |query: &str| -> f64 {
        let said = told(&format!("/api/v1/query?query={query}"));
        let value = &said["data"]["result"][0]["value"][1];
        value.as_str().and_then(|v| v.parse().ok()).unwrap_or(-1.0)
    };
    wait_until("Prometheus listens", SOON * 2, || {
        onionskin_testkit::is_listening(its_port)
    });
    wait_until("the proxy is up", SOON * 2, || value("up") == 1.0);
    wait_until("sessions are there", SOON, || {
        value("onionskin_sessions_total") >= 1.0
    });
    let key_age = value("time()-onionskin_active_key_seconds");
    assert!((0.0..600.0).contains(&key_age), "{key_age}");
    let by_part = "min(onionskin_ready)";
    wait_until("all parts are ready", SOON, || value(by_part) == 1.0);
    wait_until("all rules are evaluated", SOON, || {
        // it may come in pieces
        let rules = ask(its_port, "GET", "/api/v1/rules", "Connection: close\r\n").body;
        let with = |health: &str| rules.matches(&format!("\"health\":\"{health}\"")).count();
        with("ok") > 5 && with("unknown") + with("err") == 0
    });
    // one that goes away is noticed
    pair.proxy.kill9();
    wait_until("the proxy is down", SOON, || value("up") == 0.0);
    let _ = child.kill();
    let _ = child.wait();
}

/// The page, the alert rules and the dashboard speak of metrics that there are.
#[test]
fn documents_name_metrics_that_there_are() {
    let docs = checkout().join("docs");
    for file in [
        "metrics.md",
        "metrics/onionskin.rules.yml",
        "metrics/dashboard.json",
    ] {
        let text = std::fs::read_to_string(docs.join(file)).expect(file);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names: Vec<&str> = words
            .filter(|word| word.starts_with("onionskin_"))
            .collect();
        assert!(names.len() > 5, "{file}");
        for name in names {
            let suffix = ["_bucket", "_count"]
                .iter()
                .find_map(|s| name.strip_suffix(s));
            let known = onionskin_proxy::METRICS.iter().any(|metric| {
                let is_histogram = metric.kind == "histogram";
                metric.full_name == name || is_histogram && suffix == Some(metric.full_name)
            });
            assert!(known, "{file}: {name}");
        }
    }
    if !has("promtool") {
        return;
    }
    let output = Command::new("promtool")
        .args(["check", "rules"])
        .arg(docs.join("metrics/onionskin.rules.yml"))
        .output()
        .expect("promtool starts");
    let said = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&said)
    );
}
