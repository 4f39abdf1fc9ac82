//! The servers' own test files, statement by statement, on a plain server and through the proxy
//! where every column that can be protected is. Every answer is the same, or the proxy refuses the
//! statement.
//!
//! The files come with Debian's packages mariadb-test-data and mysql-testsuite; they are read where
//! `scripts/mariadb-tests.sh` and `scripts/mysql-tests.sh` unpack them and are no part of this
//! project. The whole takes minutes, so the tests are ignored unless they are asked for
//! (`make mariadb-tests`, `make mysql-tests`).
//!
//! - `ONIONSKIN_MTR=select,join` runs these files only.
//! - `ONIONSKIN_UPDATE=1` writes the counts of all files into docs/sql.md, as each was run last.
//!
//! Results go to `target/mariadb-tests` and `target/mysql-tests`: `report.txt`, and
//! `differences.txt` with each difference and `refused.txt` with each refusal.

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
#[path = "mtr/suite.rs"]
mod suite;

use onionskin_testkit::*;
use report::Report;
use run::Ports;
use suite::Suite;

#[test]
#[ignore = "takes minutes; make mariadb-tests"]
fn answers_as_mariadbs_own_tests_do() {
    answers_as_the_servers_own_tests_do(Suite::MariaDb);
}

#[test]
#[ignore = "takes minutes; make mysql-tests"]
fn answers_as_mysqls_own_tests_do() {
    answers_as_the_servers_own_tests_do(Suite::MySql);
}

fn answers_as_the_servers_own_tests_do(suite: Suite) {
    // accounts of the files are of users at localhost
    let options = || ServerOptions {
        extra: vec!["--skip-name-resolve=0".into()],
        // as MySQL's own test program starts its servers
        binlog: (suite == Suite::MySql).then_some(Binlog::Row),
        ..ServerOptions::default()
    };
    let start = || Server::start(suite.kind(), options());
    let (Some(plain), Some(control), Some(behind), Some(scratch)) =
        (start(), start(), start(), start())
    else {
        return;
    };
    let home = suite.home();
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
        behind: behind.port(),
        explicit: explicit.port(),
        data: [plain.data_dir(), control.data_dir(), behind.data_dir()],
    };
    let mut sum = Report::new(suite, "all");
    let mut lines = String::new();
    let folder = suite.results();
    std::fs::create_dir_all(&folder).expect("a folder for the results");
    for name in &suite.wanted() {
        let report = run::file(&ports, suite, &home, name);
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
        let all = suite.all();
        let kept: Vec<Report> = all
            .iter()
            .filter_map(|n| Report::kept(&folder, n))
            .collect();
        let mut sum = Report::new(suite, "all");
        kept.iter().for_each(|report| sum.add(report));
        update_page(suite, &report::page(&kept, &sum));
    }
    assert_eq!(
        sum.unexplained(),
        0,
        "see target/{}/differences.txt",
        suite.name()
    );
}

/// Puts the counts into docs/sql.md.
fn update_page(suite: Suite, made: &str) {
    const END: &str = "<!-- end of what is made by the test files -->\n";
    let begin = suite.mark();
    let path = checkout().join("docs/sql.md");
    let page = std::fs::read_to_string(&path).expect("docs/sql.md");
    let (before, rest) = page.split_once(&begin).expect("where the counts begin");
    let (_, after) = rest.split_once(END).expect("where the counts end");
    std::fs::write(&path, format!("{before}{begin}{made}{END}{after}")).expect("docs/sql.md");
}
