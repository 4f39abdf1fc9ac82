//! `onionskin bench`: every scenario in its smallest form on real servers, what is declared void,
//! what is refused, and that nothing is left behind.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use onionskin_bench::report::{Report, Status};
use onionskin_testkit::*;
use tempfile::TempDir;

/// A place for temporary servers and for reports, to be looked at afterwards.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("osbt-")
            .tempdir_in("/tmp")
            .expect("a temporary folder");
        // The servers' user passes through.
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o711);
        fs::set_permissions(folder.path(), all).expect("permissions");
        fs::create_dir(folder.path().join("t")).expect("a folder");
        let place = Self { folder };
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o711);
        fs::set_permissions(place.temporary(), all).expect("permissions");
        place
    }

    fn temporary(&self) -> PathBuf {
        self.folder.path().join("t")
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn bench(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onionskin"));
        command
            .arg("bench")
            .args(arguments)
            .env("TMPDIR", self.temporary())
            .env("ONIONSKIN_MYSQLD", checkout().join("scripts/mysqld97"))
            .env_remove("ONIONSKIN_PASSPHRASE")
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    fn run(&self, arguments: &[&str]) -> Output {
        self.bench(arguments).output().expect("onionskin runs")
    }

    /// A run that must succeed, with its report.
    fn report(&self, arguments: &[&str]) -> Report {
        let out = self.out();
        let mut all = vec!["--tiny", "--out", out.to_str().expect("text")];
        all.extend(arguments);
        let output = self.run(&all);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        self.assert_clean();
        Report::read(&out.join("report.json")).expect("a report")
    }

    /// No file, no folder, no server.
    fn assert_clean(&self) {
        let left: Vec<_> = fs::read_dir(self.temporary())
            .expect("listed")
            .flatten()
            .map(|entry| entry.path())
            .collect();
        assert!(left.is_empty(), "left behind: {left:?}");
        let ours = self.temporary().display().to_string();
        for entry in fs::read_dir("/proc").expect("listed").flatten() {
            let command_line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command_line = String::from_utf8_lossy(&command_line).replace('\0', " ");
            assert!(!command_line.contains(&ours), "still runs: {command_line}");
        }
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

fn server(kind: Kind) -> &'static str {
    match kind {
        Kind::MariaDb => "mariadb",
        Kind::MySql => "mysql",
    }
}

fn is_installed(kind: Kind) -> bool {
    kind == Kind::MariaDb || checkout().join(".servers/mysql/.complete").exists()
}

/// Complete, every available variant measured in every round with proofs that held, a page without
/// addresses.
fn assert_whole(report: &Report, out: &Path, expected: &[&str]) {
    let names: Vec<_> = report.scenarios.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, expected);
    assert!(report.incomplete.is_none());
    for scenario in &report.scenarios {
        assert_eq!(scenario.status, Status::Complete, "{:?}", scenario.reason);
        assert!(!scenario.groups.is_empty());
        for group in &scenario.groups {
            let base = group.variant(&group.baseline).expect("the baseline");
            assert!(
                base.unavailable.is_none(),
                "{}: {:?}",
                scenario.name,
                base.unavailable
            );
            for variant in group.variants.iter().filter(|v| v.unavailable.is_none()) {
                let place = format!("{}: {}: {}", scenario.name, group.label, variant.label);
                assert!(!variant.runs.is_empty(), "{place}: no runs");
                for run in &variant.runs {
                    assert_eq!(run.void, None, "{place}");
                    assert!(!run.metrics.is_empty(), "{place}: no figures");
                    assert!(!run.proofs.is_empty(), "{place}: nothing was proved");
                    assert!(
                        run.metrics.values().all(|value| value.is_finite()),
                        "{place}"
                    );
                }
                if variant.name != group.baseline {
                    assert!(!variant.ratios.is_empty(), "{place}: no ratios");
                }
            }
        }
    }
    let page = fs::read_to_string(out.join("report.html")).expect("the page");
    for outside in ["http://", "https://", "src=", "url(", "@import", "<link"] {
        assert!(!page.contains(outside), "the page names {outside}");
    }
    assert!(
        fs::read_to_string(out.join("report.md"))
            .expect("Markdown")
            .len()
            > 500
    );
}

on_both_servers!(
    settings_of_the_server_are_compared_and_proved,
    paths_to_the_server_are_compared,
    a_network_between_is_measured_and_proved,
    changes_and_functions_are_compared,
    a_setting_that_fails_silently_makes_its_runs_void,
);

fn settings_of_the_server_are_compared_and_proved(kind: Kind) {
    if !is_installed(kind) {
        return announce("skipped: MySQL could not be installed");
    }
    let place = Place::new();
    let mut arguments = vec!["binlog", "tde", "--server", server(kind)];
    if kind == Kind::MySql {
        // Two rounds were seen on MariaDB, and here everything takes three times as long.
        arguments.extend(["--rounds", "1"]);
    }
    let report = place.report(&arguments);
    assert_whole(&report, &place.out(), &["binlog", "tde"]);
    for scenario in &report.scenarios {
        let group = &scenario.groups[0];
        for (name, expected) in [("off", "readable"), ("on", "not readable")] {
            let run = &group.variant(name).expect("both").runs[0];
            let canaries: Vec<_> = run
                .proofs
                .iter()
                .filter(|proof| proof.what.contains("planted"))
                .collect();
            assert_eq!(canaries.len(), 2, "before and after");
            assert!(canaries.iter().all(|proof| proof.found == expected));
        }
    }
    let replica = &report.scenarios[0].groups[0].variants[1];
    assert!(replica.summaries.contains_key("replica_catch_up_s"));
}

fn paths_to_the_server_are_compared(kind: Kind) {
    if !is_installed(kind) {
        return announce("skipped: MySQL could not be installed");
    }
    // The rounds of these are alike, and two were seen in those of the settings.
    let place = Place::new();
    let mut names = vec!["proxy", "capabilities"];
    if kind == Kind::MySql {
        names.push("large");
    }
    let mut arguments = names.clone();
    arguments.extend(["--rounds", "1", "--server", server(kind)]);
    let report = place.report(&arguments);
    assert_whole(&report, &place.out(), &names);
    if kind == Kind::MariaDb {
        // Its tables grow from round to round.
        let place = Place::new();
        let report = place.report(&["large", "--server", "mariadb"]);
        assert_whole(&report, &place.out(), &["large"]);
        assert!(report.scenarios[0].groups[0].variants[0].runs.len() > 1);
    }
    // What the proxy finishes, and what its scratch engine does, was done on protected columns.
    for workload in ["tier_finish", "tier_scratch"] {
        let mut groups = report.scenarios[1].groups.iter();
        let group = groups.find(|group| group.label.starts_with(workload));
        let sealed = group.and_then(|group| group.variant("range"));
        assert!(sealed.is_some_and(|v| v.valid().count() > 0), "{workload}");
    }
    let proxy = report.scenarios[0].groups[0]
        .variant("protected")
        .expect("there");
    assert!(proxy.driver.starts_with("sysbench"), "{}", proxy.driver);
    for metric in [
        "cpu_us",
        "relay_cpu_us",
        "relay_memory_mib",
        "latency_p99_ms",
    ] {
        assert!(proxy.summaries[metric].median > 0.0, "{metric}");
    }
    let memory = &proxy.runs[0].series;
    assert!(
        memory
            .iter()
            .any(|series| series.unit == "MiB" && series.points.len() > 3)
    );
}

fn a_network_between_is_measured_and_proved(kind: Kind) {
    if !is_installed(kind) {
        return announce("skipped: MySQL could not be installed");
    }
    let place = Place::new();
    let report = place.report(&["network", "--server", server(kind), "--rounds", "1"]);
    assert_whole(&report, &place.out(), &["network"]);
    let groups = &report.scenarios[0].groups;
    // Two distances, texts and prepared statements.
    assert_eq!(groups.len(), 4);
    for group in groups {
        let far = group.parameters["ms round trip"] == "5";
        for variant in &group.variants {
            let place = format!("{}: {}", group.label, variant.label);
            let run = &variant.runs[0];
            let pings: Vec<_> = run
                .proofs
                .iter()
                .filter(|proof| proof.what.contains("COM_PING"))
                .collect();
            assert_eq!(pings.len(), if far { 2 } else { 0 }, "{place}");
            assert_eq!(run.metrics.contains_key("round_trips"), far, "{place}");
            if !far {
                continue;
            }
            assert!(run.metrics["ping_ms"] > 4.0, "{place}");
            // Whatever stands between, no statement is answered before it has been there and back.
            let latency = run.metrics["latency_mean_ms"];
            assert!(latency > 4.5, "{place}: {latency}");
            let trips = run.metrics["round_trips"];
            let most = if variant.name == "protected" {
                2.3
            } else {
                1.2
            };
            assert!((1.0..most).contains(&trips), "{place}: {trips}");
        }
    }
    let text = fs::read_to_string(place.out().join("report.md")).expect("Markdown");
    assert!(text.contains("protected tables: throughput relative to HAProxy (TCP relay)"));
    assert!(text.contains("| load | 0 ms round trip | 5 ms round trip |"));
    let commands: Vec<&str> = groups
        .iter()
        .map(|group| group.variants[0].runs[0].command.as_str())
        .collect();
    assert!(commands[2].contains("--db-ps-mode=disable"), "{commands:?}");
    assert!(commands[3].contains("--db-ps-mode=auto"), "{commands:?}");
}

fn changes_and_functions_are_compared(kind: Kind) {
    if !is_installed(kind) {
        return announce("skipped: MySQL could not be installed");
    }
    let place = Place::new();
    let mut scenarios = vec!["table-change", "functions", "--server", server(kind)];
    let mut names = vec!["table-change", "functions"];
    if kind == Kind::MariaDb {
        scenarios.push("backup");
        names.insert(0, "backup");
    } else {
        // Two rounds were seen on MariaDB.
        scenarios.extend(["--rounds", "1"]);
    }
    let report = place.report(&scenarios);
    assert_whole(&report, &place.out(), &names);
}

/// Without the option the server runs as well, and so does the load.
fn a_setting_that_fails_silently_makes_its_runs_void(kind: Kind) {
    if !is_installed(kind) {
        return announce("skipped: MySQL could not be installed");
    }
    let place = Place::new();
    let catalogue = place.folder.path().join("scenarios.toml");
    let real = onionskin_bench::catalogue::BUILT_IN;
    // An option that the server ignores because it does not know it.
    let planted = real
        .replace("--encrypt-binlog=ON", "--loose-encrypt-binlock=ON")
        .replace("--binlog-encryption=ON", "--loose-binlog-encription=ON")
        // Of no use here.
        .replace("replica = true", "replica = false");
    assert_ne!(planted, real);
    fs::write(&catalogue, planted).expect("written");
    let report = place.report(&[
        "binlog",
        "--server",
        server(kind),
        "--rounds",
        "1",
        "--built-in-driver",
        "--catalogue",
        catalogue.to_str().expect("text"),
    ]);
    let group = &report.scenarios[0].groups[0];
    let (off, on) = (&group.variants[0], &group.variants[1]);
    assert_eq!(off.valid().count(), 1, "{:?}", off.runs);
    assert_eq!((on.valid().count(), on.void().count()), (0, 1));
    assert!(on.ratios.is_empty() && on.summaries.is_empty());
    let run = &on.runs[0];
    let reason = run.void.as_deref().expect("a reason");
    assert!(reason.contains("expected 1, found 0"), "{reason}");
    // The effect alone would have shown it, too.
    assert!(
        run.proofs
            .iter()
            .any(|proof| proof.what.contains("planted") && !proof.holds)
    );
    let page = fs::read_to_string(place.out().join("report.html")).expect("the page");
    assert!(page.contains("Void runs") && page.contains("expected 1, found 0"));
    assert_eq!(off.driver, "built-in driver");
}

#[test]
fn a_given_server_is_used_and_left_as_it_was() {
    let server = Server::mariadb();
    let before = server.connect().text("SHOW DATABASES").unwrap();
    let place = Place::new();
    let dsn = format!("mysql://root@127.0.0.1:{}", server.port());
    // A proxy of ours plays the part of somebody else's.
    let peer = Proxy::start(&server, "");
    let named = format!("other=mysql://root@127.0.0.1:{}", peer.port());
    let mut arguments = vec!["proxy", "tde", "--rounds", "1"];
    arguments.extend(["--server", &dsn, "--peer", &named]);
    let report = place.report(&arguments);
    let [proxy, tde] = report.scenarios.as_slice() else {
        panic!("two scenarios")
    };
    assert_eq!(proxy.status, Status::Complete, "{:?}", proxy.reason);
    let other = proxy.groups[0].variant("peer-other").expect("the peer");
    assert!(other.valid().count() > 0 && !other.ratios.is_empty());
    assert_eq!(tde.status, Status::NotAvailable);
    assert!(
        tde.reason
            .as_deref()
            .is_some_and(|reason| reason.contains("restart"))
    );
    assert_eq!(server.connect().text("SHOW DATABASES").unwrap(), before);
}

#[test]
fn a_signal_leaves_a_valid_report_and_nothing_else() {
    let place = Place::new();
    let out = place.out();
    let mut child = place
        .bench(&[
            "functions",
            "proxy",
            "--tiny",
            "--rounds",
            "500",
            "--server",
            "mariadb",
            "--out",
        ])
        .arg(&out)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("onionskin runs");
    // Until the first scenario's load runs: its database is there.
    let folders = |path: PathBuf| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let loaded = || {
        folders(place.temporary())
            .into_iter()
            .flat_map(folders)
            .any(|server| server.join("data/onionskin_bench_protected").exists())
    };
    wait_until("a load", Duration::from_secs(90), loaded);
    std::thread::sleep(Duration::from_millis(4000));
    onionskin_testkit::signal("INT", child.id());
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(1));
    place.assert_clean();
    let report = Report::read(&out.join("report.json")).expect("a report");
    assert_eq!(report.incomplete.as_deref(), Some("ended by a signal"));
    assert_eq!(report.scenarios.len(), 1);
    assert_eq!(report.scenarios[0].status, Status::Partial);
    let runs: usize = report.scenarios[0]
        .groups
        .iter()
        .flat_map(|group| &group.variants)
        .map(|variant| variant.runs.len())
        .sum();
    assert!(runs > 0, "what was measured is there");
}

/// Before anything is started, a long run says how long it will be.
#[test]
fn a_full_run_states_its_time_first() {
    let place = Place::new();
    let catalogue = place.folder.path().join("scenarios.toml");
    // The space for a full run may not be there.
    let mut small = String::new();
    for line in onionskin_bench::catalogue::BUILT_IN.lines() {
        let (before, disk) = line.split_once("disk_mib = ").unwrap_or((line, ""));
        small += before;
        if !disk.is_empty() {
            small += "disk_mib = 1 }";
        }
        small.push('\n');
    }
    fs::write(&catalogue, small).expect("written");
    let mut child = place
        .bench(&["tde", "--full", "--server", "mariadb", "--catalogue"])
        .arg(&catalogue)
        .arg("--out")
        .arg(place.out())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("onionskin runs");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut first = String::new();
    said.read_line(&mut first).expect("a line");
    onionskin_testkit::signal("INT", child.id());
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(1), "{rest}");
    assert!(
        first.starts_with("onionskin bench: 1 scenarios with "),
        "{first}"
    );
    assert!(
        first.contains(", about ") && first.contains(" h"),
        "{first}"
    );
    place.assert_clean();
}

/// One sentence, the exit code for bad arguments, and nothing left behind.
#[test]
fn what_cannot_be_measured_is_said_in_one_sentence() {
    let server = Server::mariadb();
    let mut root = server.connect();
    root.must("CREATE USER 'poor'@'%' IDENTIFIED BY 'pass'");
    root.must("CREATE DATABASE app");
    root.must("GRANT SELECT ON app.* TO 'poor'@'%'");
    // Its password is in the environment.
    let poor = format!("mysql://poor@127.0.0.1:{}", server.port());
    let nobody = format!("mysql://nobody:s3cret@127.0.0.1:{}", server.port());
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    let place = Place::new();
    let huge = place.folder.path().join("huge.toml");
    let real = onionskin_bench::catalogue::BUILT_IN;
    fs::write(
        &huge,
        real.replace("disk_mib = 200 ", "disk_mib = 999999999 "),
    )
    .expect("written");
    let huge = huge.to_str().expect("text").to_owned();
    let cases: [(&[&str], &str, i32); 9] = [
        (&["nonsense"], "there is no scenario nonsense", 2),
        (&["proxy", "--server", &poor], "may not create databases", 2),
        (&["proxy", "--server", &nobody], "cannot be reached", 1),
        (
            &["proxy", "--server", "mysql://a:s3cret@127.0.0.1:1"],
            "cannot be reached",
            1,
        ),
        (
            &["proxy", "--server", "oracle"],
            "neither a kind of server nor a DSN",
            2,
        ),
        (
            &["functions", "--server", "mariadb", "--port", &port],
            "is in use",
            2,
        ),
        (&["backup", "--catalogue", &huge], "MiB free", 2),
        (&["backup", "--peer", "x"], "write NAME=DSN", 2),
        (&["compare", "a.json", "b.json"], "a.json: No such file", 2),
    ];
    for (arguments, expected, code) in cases {
        let out = place.out();
        let mut all = arguments.to_vec();
        if arguments[0] != "compare" {
            all.extend(["--tiny", "--quiet", "--out", out.to_str().expect("text")]);
        }
        let mut command = place.bench(&all);
        let output = command.env("ONIONSKIN_PASSWORD", "pass").output();
        let output = output.expect("onionskin runs");
        let said = text(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{arguments:?}: {said}");
        assert!(!said.contains("s3cret"), "{said}");
        place.assert_clean();
        assert!(!out.exists(), "{arguments:?} leaves {}", out.display());
    }
}

#[test]
fn without_a_server_program_it_is_said_what_to_install() {
    let place = Place::new();
    let output = place
        .bench(&["tde", "--tiny", "--quiet", "--server", "mysql"])
        .env_remove("ONIONSKIN_MYSQLD")
        .output()
        .expect("onionskin runs");
    // Where a MySQL is installed, there is nothing to say.
    if !output.status.success() {
        let said = text(&output);
        assert!(said.contains("no MySQL server is installed"), "{said}");
        assert_eq!(output.status.code(), Some(2));
    }
    let output = place
        .bench(&["tde", "--tiny", "--quiet"])
        .env("ONIONSKIN_MYSQLD", "/bin/true")
        .output()
        .expect("onionskin runs");
    let said = text(&output);
    assert!(
        said.contains("/bin/true does not say which server it is"),
        "{said}"
    );
    place.assert_clean();
}

#[test]
fn reports_are_listed_compared_merged_and_never_overwritten() {
    let place = Place::new();
    let listed = text(&place.run(&["list"]));
    for name in [
        "backup",
        "proxy",
        "network",
        "capabilities",
        "binlog",
        "tde",
        "table-change",
        "functions",
        "large",
    ] {
        assert!(listed.contains(&format!("{name}: ")), "{listed}");
    }
    place.report(&["backup"]);
    let json = place.out().join("report.json");
    let json = json.to_str().expect("text");
    let out = place.out();
    let again = place.run(&["backup", "--tiny", "--out", out.to_str().expect("text")]);
    assert_eq!(again.status.code(), Some(2));
    assert!(
        text(&again).contains("is not overwritten"),
        "{}",
        text(&again)
    );
    let compared = text(&place.run(&["compare", json, json]));
    assert!(
        compared.contains("no difference measured") && compared.contains("1.00"),
        "{compared}"
    );
    let merged = place.folder.path().join("merged");
    let output = place.run(&["merge", "--out", merged.to_str().expect("text"), json, json]);
    assert!(output.status.success(), "{}", text(&output));
    let merged = Report::read(&merged.join("report.json")).expect("a report");
    assert_eq!(merged.scenarios.len(), 1);
}
