//! MariaDB's own test files, statement by statement, on a plain server and through the proxy where
//! every column that can be protected is. Every answer is the same, or the proxy refuses the
//! statement.
//!
//! The files come with Debian's package mariadb-test-data; they are read where
//! `scripts/mariadb-tests.sh` unpacks them and are no part of this project. The whole takes
//! minutes, so the test is ignored unless it is asked for (`make mariadb-tests`).
//!
//! - `ONIONSKIN_MTR=select,join` runs these files only.
//! - `ONIONSKIN_UPDATE=1` writes the counts of all files into docs/sql.md, as each was run last.
//!
//! Results go to `target/mariadb-tests`: `report.txt`, and `differences.txt` with each difference
//! and `refused.txt` with each refusal.

#[path = "mtr/definitions.rs"]
mod definitions;
#[path = "mtr/known.rs"]
mod known;
#[path = "mtr/language.rs"]
mod language;
#[path = "mtr/report.rs"]
mod report;
#[path = "mtr/run.rs"]
mod run;
#[path = "mtr/seen.rs"]
mod seen;

use onionskin_testkit::*;
use report::Report;
use run::Ports;
use std::path::{Path, PathBuf};

/// Files by name; `*` stands for whatever follows.
const FILES: &str = "select join join_outer group_by order_by distinct union subselect insert insert_select insert_update update \
    delete replace multi_update func_* null case having limit type_* ctype_utf8 key range derived view cte_* win";

#[test]
#[ignore = "takes minutes; make mariadb-tests"]
fn answers_as_the_servers_own_tests_do() {
    let home = home();
    let names = names(&home);
    // accounts of the files are of users at localhost
    let options = || ServerOptions {
        extra: vec!["--skip-name-resolve=0".into()],
        ..ServerOptions::default()
    };
    let start = || Server::start(Kind::MariaDb, options()).expect("MariaDB");
    let (plain, control, behind, scratch) = (start(), start(), start(), start());
    let engine = format!("[scratch]\nsocket = \"{}\"\n", scratch.socket().display());
    let everything = "[protect.\"*.*\"]\n\"*\" = [\"eq\", \"range\"]\n";
    let mut proxy = Proxy::start(&behind, &format!("{engine}{everything}"));
    let explicit = Proxy::start_with(
        &behind,
        ProxyOptions {
            tables: engine,
            keys: Some(proxy.keys()),
            ..ProxyOptions::default()
        },
    );
    let ports = Ports {
        plain: plain.port(),
        control: control.port(),
        proxy: proxy.port(),
        explicit: explicit.port(),
        data: [plain.data_dir(), control.data_dir(), behind.data_dir()],
    };
    let mut sum = Report::new("all");
    let mut lines = String::new();
    let folder = checkout().join("target/mariadb-tests");
    std::fs::create_dir_all(&folder).expect("a folder for the results");
    for name in &names {
        let report = run::file(&ports, &home, name);
        announce(&report.line());
        lines += &format!("{}\n", report.line());
        sum.add(&report);
        proxy.assert_healthy();
        report.keep(&folder);
    }
    announce(&sum.line());
    let text = format!(
        "{lines}{}\n{} of {} columns protected\n\n{}",
        sum.line(),
        sum.protected_columns,
        sum.all_columns,
        sum.details()
    );
    std::fs::write(folder.join("report.txt"), text).expect("report.txt");
    std::fs::write(folder.join("differences.txt"), sum.differences()).expect("differences.txt");
    std::fs::write(folder.join("refused.txt"), sum.refusals()).expect("refused.txt");
    if std::env::var_os("ONIONSKIN_UPDATE").is_some() {
        let all = matching(&home, FILES);
        let kept: Vec<Report> = all
            .iter()
            .filter_map(|n| Report::kept(&folder, n))
            .collect();
        let mut sum = Report::new("all");
        kept.iter().for_each(|report| sum.add(report));
        update_page(&report::page(&kept, &sum));
    }
    assert_eq!(
        sum.unexplained(),
        0,
        "see target/mariadb-tests/differences.txt"
    );
}

/// Puts the counts into docs/sql.md.
fn update_page(made: &str) {
    const BEGIN: &str = "<!-- made by onionskin/tests/mtr.rs -->\n";
    const END: &str = "<!-- end of what is made by the test files -->\n";
    let path = checkout().join("docs/sql.md");
    let page = std::fs::read_to_string(&path).expect("docs/sql.md");
    let (before, rest) = page.split_once(BEGIN).expect("where the counts begin");
    let (_, after) = rest.split_once(END).expect("where the counts end");
    std::fs::write(&path, format!("{before}{BEGIN}{made}{END}{after}")).expect("docs/sql.md");
}

/// Where the files are.
fn home() -> PathBuf {
    let unpacked = checkout().join("target/mariadb-test/usr/share/mysql/mysql-test");
    let installed = PathBuf::from("/usr/share/mysql/mysql-test");
    let found = [unpacked, installed]
        .into_iter()
        .find(|p| p.join("main").exists());
    found.expect("MariaDB's test files are not there; run scripts/mariadb-tests.sh")
}

fn names(home: &Path) -> Vec<String> {
    let wanted = std::env::var("ONIONSKIN_MTR").unwrap_or_else(|_| FILES.into());
    let names = matching(home, &wanted);
    assert!(!names.is_empty(), "no file is called {wanted}");
    names
}

/// The files that patterns name, in order.
fn matching(home: &Path, wanted: &str) -> Vec<String> {
    let patterns: Vec<&str> = wanted.split([' ', ',']).filter(|p| !p.is_empty()).collect();
    let entries = std::fs::read_dir(home.join("main")).expect("the folder of the files");
    let names = entries.map(|e| {
        e.expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    let mut names: Vec<String> = names
        .filter_map(|n| n.strip_suffix(".test").map(str::to_owned))
        .filter(|name| {
            patterns.iter().any(|p| match p.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => name == p,
            })
        })
        .collect();
    names.sort();
    names
}
