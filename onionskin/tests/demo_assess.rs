//! `onionskin demo assess` on real servers: plain tables become protected ones while an application
//! runs, with the same answers; what was written is not found any more; and nothing is left behind,
//! however it ends.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use onionskin_assess::{data::DataReport, leaks::LeaksReport, queries::QueriesReport};
use onionskin_testkit::*;
use serde_json::Value;
use tempfile::TempDir;

on_both_servers!(a_shop_becomes_protected, a_signal_leaves_nothing_behind);

/// Values of the shop, and of its application.
const VALUES: [&str; 6] = [
    "wilhelmina.quellwasser",
    "blue heron",
    "lighthouse keeper",
    "@example.com",
    "deliver to the back door",
    "+49 1",
];

struct Place {
    folder: TempDir,
    kind: Kind,
}

impl Place {
    /// Nothing where the server could not be installed.
    fn new(kind: Kind) -> Option<Place> {
        if kind == Kind::MySql && !checkout().join(".servers/mysql/.complete").exists() {
            announce("skipped: MySQL could not be installed");
            return None;
        }
        let folder = tempfile::Builder::new()
            .prefix("os-da-")
            .tempdir_in("/tmp")
            .expect("a temporary folder");
        let place = Place { folder, kind };
        fs::create_dir(place.temporary()).expect("a folder");
        // The servers' user passes through.
        for folder in [place.folder.path(), &place.temporary()] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o711)).expect("permissions");
        }
        Some(place)
    }

    fn temporary(&self) -> PathBuf {
        self.folder.path().join("t")
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn demo(&self) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["--foreground", "180", env!("CARGO_BIN_EXE_onionskin")])
            .args(["demo", "assess", "--tiny", "--out"])
            .arg(self.out())
            .env("TMPDIR", self.temporary())
            .env("ONIONSKIN_MYSQLD", self.kind.server_program())
            .env_remove("ONIONSKIN_PASSPHRASE")
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn report(&self, name: &str) -> String {
        let path = self.out().join(name);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// No file, no folder, no process.
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

fn files(traces: &Value) -> Vec<Vec<&str>> {
    let traces = traces.as_array().expect("traces").iter();
    traces
        .map(|trace| {
            let files = trace["files"].as_array().expect("files").iter();
            files.map(|file| file.as_str().expect("text")).collect()
        })
        .collect()
}

fn a_shop_becomes_protected(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(place) = Place::new(kind) else {
        return;
    };
    let output = place.demo().output().expect("onionskin runs");
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    place.assert_clean();

    let report: Value = serde_json::from_str(&place.report("report.json")).expect("JSON");
    assert_eq!(report["format"], "onionskin-demo-assess");
    let number = |name: &str| report[name].as_u64().expect(name);
    assert!(number("meanwhile") > 0, "nothing ran meanwhile: {said}");
    assert_eq!(number("compared"), number("observed"), "{said}");
    let cost = &report["cost"];
    for figure in ["relayed", "protected", "ratio"] {
        let figure = cost[figure].as_f64().expect(figure);
        assert!(figure > 0.0 && figure.is_finite(), "{cost}");
    }
    for kind in cost["kinds"].as_array().expect("kinds") {
        assert!(kind[1].as_f64() > Some(0.0) && kind[2].as_f64() > Some(0.0));
    }

    // Each text was found while its table was plain, in no file of a table since, and those that
    // were written since nowhere at all.
    let (planted, left, later) = (&report["planted"], &report["left"], &report["later"]);
    for (at, table) in ["customers", "orders", "messages"].iter().enumerate() {
        let file = format!("shop/{table}.ibd");
        assert!(files(planted)[at].contains(&file.as_str()), "{said}");
        let is_table = |file: &&&str| file.ends_with(".ibd") || file.contains("binlog");
        assert_eq!(files(left)[at].iter().find(is_table), None, "{said}");
        assert!(files(later)[at].is_empty(), "{said}");
    }

    the_policy_is_the_smallest(&place);
    its_reports_hold_no_value(&place);

    // What is there stays.
    let again = place.demo().output().expect("onionskin runs");
    assert_eq!(again.status.code(), Some(2), "{}", text(&again));
    place.assert_clean();
}

fn the_policy_is_the_smallest(place: &Place) {
    let asked: QueriesReport =
        serde_json::from_str(&place.report("queries/report.json")).expect("a report");
    let not_carried = asked.refused().count() + asked.wide().count() + asked.skipped.len();
    assert_eq!(not_carried, 0, "{}", asked.summary());
    let policy = asked.policy.join("\n");
    for line in [
        "[protect.\"shop.customers\"]",
        "given_name = []",
        "surname = [\"eq\"]",
        "email = [\"eq\"]",
        "phone = []",
        "born = [\"range\"]",
        "[protect.\"shop.cards\"]",
        "card_number = []",
        "[protect.\"shop.orders\"]",
        "note = []",
        "[protect.\"shop.messages\"]",
        "body = []",
    ] {
        assert!(policy.lines().any(|l| l == line), "{line}: {policy}");
    }
    let configuration = place.report("onionskin.toml");
    assert!(configuration.ends_with(&format!("{policy}\n")));
    let found: DataReport =
        serde_json::from_str(&place.report("data/report.json")).expect("a report");
    assert!(found.findings.iter().any(|f| f.column == "card_number"));
    let leaks: LeaksReport =
        serde_json::from_str(&place.report("leaks/report.json")).expect("a report");
    assert!(leaks.columns.iter().any(|c| c.column == "surname"));
}

fn its_reports_hold_no_value(place: &Place) {
    let mut all = vec![place.report("asked.json"), place.report("onionskin.toml")];
    for name in ["data", "queries", "leaks", "server"] {
        for file in ["report.html", "report.md", "report.json"] {
            all.push(place.report(&format!("{name}/{file}")));
        }
    }
    for text in &all {
        for value in VALUES {
            assert!(!text.contains(value), "{value} is told");
        }
    }
    let names: Vec<_> = fs::read_dir(place.out())
        .expect("listed")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names.len(), 9, "{names:?}");
    assert!(place.report("report.html").contains("shop/customers.ibd"));
}

/// In the middle of a migration.
fn a_signal_leaves_nothing_behind(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(place) = Place::new(kind) else {
        return;
    };
    let mut child: Child = place.demo().spawn().expect("onionskin runs");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut lines = lines.map_while(Result::ok);
    let found = lines.find(|line| line.contains("$ onionskin migrate"));
    assert!(found.is_some(), "{}", errors(&mut child));
    // `timeout` hands it on.
    signal("TERM", child.id());
    wait_until("it ends", Duration::from_secs(60), || {
        child.try_wait().expect("waiting").is_some()
    });
    let status = child.wait().expect("ended");
    let said = errors(&mut child);
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("signal"), "{said}");
    place.assert_clean();
    let report: &Path = &place.out().join("report.json");
    assert!(!report.exists(), "there is no report of what did not end");
}

fn errors(child: &mut Child) -> String {
    let errors = child.stderr.take().expect("a pipe");
    let lines = BufReader::new(errors).lines().map_while(Result::ok);
    lines.collect::<Vec<_>>().join("\n")
}
