//! The differential test: random tables, rows and statements, on a plain server and through the
//! proxy. Every answer is the same, or the proxy refuses the statement.
//!
//! A *case* is one to three tables and a session of some sixty statements
//! (`differential/cases.rs`). Each statement runs through the proxy first. If it is refused, the
//! plain server is spared it; otherwise both answers are compared as far as they are certain: rows,
//! everything that column definitions say, affected rows, insert id, warnings, error number and
//! SQLSTATE. In the end the whole tables and their definitions are compared.
//!
//! A *session* is the same with another emphasis: settings, transactions, statements prepared by
//! name and in the protocol, temporary tables, errors and refusals, and questions about all of them
//! (`differential/sessions.rs`).
//!
//! Before cases, scripts are run that once showed a difference (`differential/scripts.rs`).
//!
//! A case that shows a difference is made smaller and printed as a script. Differences of one kind
//! are one finding.
//!
//! - `ONIONSKIN_SEED=n` repeats a run (the seed is printed); cases do not depend on how threads are
//!   scheduled.
//! - `ONIONSKIN_STATEMENTS=n` is how many statements are run on each server.
//! - `ONIONSKIN_SESSIONS=n` is how many sessions are.
//! - `ONIONSKIN_CASE=n` or `n,m,…` runs these cases of the seed only; then each difference is a
//!   finding of its own.
//! - `ONIONSKIN_FINDINGS=n` is how many findings are made small and printed as scripts.
//! - `ONIONSKIN_KNOWN=0` treats differences that are known (`differential/known.rs`) as the others.
//! - `ONIONSKIN_SCRATCH=1` gives the proxy a scratch engine: what is refused otherwise is compared.
//! - `ONIONSKIN_TEST_DIRECT=1` compares a plain server with a plain server, which checks the test
//!   itself.

#[path = "differential/answers.rs"]
mod answers;
#[path = "differential/assigned_twice.rs"]
mod assigned_twice;
#[path = "differential/cases.rs"]
mod cases;
#[path = "differential/comparison.rs"]
mod comparison;
#[path = "differential/computed.rs"]
mod computed;
#[path = "differential/conditions.rs"]
mod conditions;
#[path = "differential/evaluations.rs"]
mod evaluations;
#[path = "differential/finishing.rs"]
mod finishing;
#[path = "differential/fixed_binary.rs"]
mod fixed_binary;
#[path = "differential/hinted.rs"]
mod hinted;
#[path = "differential/key_lengths.rs"]
mod key_lengths;
#[path = "differential/known.rs"]
mod known;
#[path = "differential/lane.rs"]
mod lane;
#[path = "differential/masked.rs"]
mod masked;
#[path = "differential/mixed.rs"]
mod mixed;
#[path = "differential/modes.rs"]
mod modes;
#[path = "differential/odd.rs"]
mod odd;
#[path = "differential/own_table.rs"]
mod own_table;
#[path = "differential/padding.rs"]
mod padding;
#[path = "differential/parentheses.rs"]
mod parentheses;
#[path = "differential/plans.rs"]
mod plans;
#[path = "differential/queries.rs"]
mod queries;
#[path = "differential/questions.rs"]
mod questions;
#[path = "differential/random.rs"]
mod random;
#[path = "differential/schema.rs"]
mod schema;
#[path = "differential/script.rs"]
mod script;
#[path = "differential/scripts.rs"]
mod scripts;
#[path = "differential/sessions.rs"]
mod sessions;
#[path = "differential/settings.rs"]
mod settings;
#[path = "differential/shrink.rs"]
mod shrink;
#[path = "differential/temporal.rs"]
mod temporal;
#[path = "differential/unusual.rs"]
mod unusual;
#[path = "differential/values.rs"]
mod values;
#[path = "differential/writes.rs"]
mod writes;

use lane::{Lane, Report};
use onionskin_testkit::*;
use random::Random;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

on_both_servers!(
    equal_or_refused,
    sessions_are_equal_or_refused,
    masked_columns_tell_nothing
);

/// Statements on each server; the two together are over 20,000.
const STATEMENTS: usize = 11_000;
/// The seed of every ordinary run, so that it finds the same each time; long runs take a new one.
const SEED: u64 = 20_261_121;
/// Cases of an ordinary run: whatever the threads do, these are run.
const CASES: usize = 232;
const LONG_STATEMENTS: usize = 200_000;
/// Sessions on each server.
const SESSIONS: usize = 80;
const LONG_SESSIONS: usize = 3_000;
/// Sessions at a time.
const LANES: usize = 4;
/// Statements of a case, about.
const LENGTH: usize = 60;
/// Findings that are made small and printed; and of those that concern column definitions only.
const FINDINGS: usize = 10;
const METADATA_FINDINGS: usize = 4;
/// How long one finding is made smaller: in a case, and in a session, which may be three times as
/// long.
const SHRINKING: [Duration; 2] = [Duration::from_secs(40), Duration::from_secs(100)];
/// Percent of statements that may be refused: refusing everything is no way to pass.
const REFUSED_AT_MOST: f64 = 20.0;

/// How often an ordinary run meets each kind of statement that it is said to make.
const MET_AT_LEAST: usize = 3;

/// What is run.
#[derive(Clone, Copy, PartialEq)]
enum Suite {
    Statements,
    Sessions,
}

impl Suite {
    fn variable(self) -> &'static str {
        match self {
            Suite::Statements => "ONIONSKIN_STATEMENTS",
            Suite::Sessions => "ONIONSKIN_SESSIONS",
        }
    }

    /// How many in an ordinary run, and in a long one.
    fn usual(self) -> usize {
        match (self, long_run()) {
            (Suite::Statements, false) => STATEMENTS,
            (Suite::Statements, true) => LONG_STATEMENTS,
            (Suite::Sessions, false) => SESSIONS,
            (Suite::Sessions, true) => LONG_SESSIONS,
        }
    }

    /// Cases of a run of this length; `None` if it ends with the statements.
    fn cases(self, wanted: usize) -> Option<usize> {
        match self {
            Suite::Statements => (wanted == STATEMENTS).then_some(CASES),
            Suite::Sessions => Some(wanted),
        }
    }

    fn case(self, seed: u64, kind: Kind, number: usize) -> script::Case {
        match self {
            Suite::Statements => {
                let mut random = Random::new(seed, &[kind as u64, number as u64]);
                cases::random_case(&mut random, kind, LENGTH)
            }
            Suite::Sessions => {
                let mut random = Random::new(seed, &[kind as u64, number as u64, 0x7365_7373]);
                sessions::random_session(&mut random, kind)
            }
        }
    }

    /// The kinds that a run of ordinary length must meet.
    fn labels(self) -> &'static [&'static str] {
        match self {
            Suite::Statements => &unusual::LABELS,
            Suite::Sessions => &sessions::LABELS,
        }
    }
}

/// A run of a suite.
struct Run {
    suite: Suite,
    kind: Kind,
    seed: u64,
    wanted: usize,
}

/// Differences of one kind.
struct Finding {
    text: String,
    /// One for each time.
    cases: Vec<usize>,
    is_metadata: bool,
}

#[derive(Default)]
struct Totals {
    report: Report,
    findings: BTreeMap<String, Finding>,
    unusable: Vec<String>,
    cases: usize,
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is not a number")),
    )
}

/// The cases that are asked for.
fn chosen() -> Option<Vec<usize>> {
    let text = std::env::var("ONIONSKIN_CASE").ok()?;
    let number = |part: &str| {
        part.parse()
            .unwrap_or_else(|_| panic!("ONIONSKIN_CASE={text} is no list of numbers"))
    };
    Some(text.split(',').map(number).collect())
}

fn equal_or_refused(kind: Kind) {
    run(Suite::Statements, kind);
}

fn sessions_are_equal_or_refused(kind: Kind) {
    run(Suite::Sessions, kind);
}

fn masked_columns_tell_nothing(kind: Kind) {
    masked::tell_nothing(kind);
}

fn run(suite: Suite, kind: Kind) {
    let Some(plain) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let Some(behind) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let scratch = std::env::var_os("ONIONSKIN_SCRATCH")
        .and_then(|_| Server::start(kind, ServerOptions::default()));
    let tables = scratch.as_ref().map_or(String::new(), |s| {
        format!("[scratch]\nsocket = \"{}\"\n", s.socket().display())
    });
    let mut proxy = Proxy::start(&behind, &tables);
    let lane = Lane {
        plain: plain.port(),
        proxy: proxy.port(),
    };

    let usual = || if long_run() { rand::random() } else { SEED };
    let seed = number_from("ONIONSKIN_SEED").unwrap_or_else(usual);
    let wanted = number_from(suite.variable()).map_or(suite.usual(), |n| n as usize);
    announce(&format!(
        "differential test on {}: ONIONSKIN_SEED={seed} {}={wanted}",
        kind.name(),
        suite.variable(),
    ));

    let different = match suite {
        Suite::Statements => scripts::differences(lane),
        Suite::Sessions => Vec::new(),
    };
    for difference in &different {
        announce(&format!("---- {difference}"));
    }
    let run = Run {
        suite,
        kind,
        seed,
        wanted,
    };
    let totals = Mutex::new(Totals::default());
    let round = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| run_cases(lane, &run, &round, &totals));
        }
    });
    let totals = totals
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    conclude(&run, &totals);
    assert!(different.is_empty(), "answers to scripts differ");
    proxy.assert_healthy();
}

/// Runs cases until enough statements have been run by all lanes together.
fn run_cases(lane: Lane, run: &Run, round: &AtomicUsize, totals: &Mutex<Totals>) {
    let lock = || {
        totals
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    };
    let chosen = chosen();
    loop {
        let cases = run.suite.cases(run.wanted);
        {
            let totals = lock();
            let done = totals.report.compared + totals.report.refusals();
            if cases.is_none() && done >= run.wanted {
                return;
            }
        }
        let number = round.fetch_add(1, Ordering::Relaxed);
        if cases.is_some_and(|cases| number >= cases) {
            return;
        }
        let number = match &chosen {
            Some(chosen) => match chosen.get(number) {
                Some(only) => *only,
                None => return,
            },
            None => number,
        };
        let case = run.suite.case(run.seed, run.kind, number);
        let report = lane.run(&case);
        let mut fresh = Vec::new();
        {
            let mut totals = lock();
            totals.cases += 1;
            totals.report.add(&report);
            totals.unusable.extend(report.unusable.clone());
            for difference in &report.differences {
                let is_metadata = difference.is_metadata;
                let new = totals
                    .findings
                    .iter()
                    .filter(|(kind, f)| {
                        f.is_metadata == is_metadata && known::reason(kind).is_none()
                    })
                    .count();
                let limit = match number_from("ONIONSKIN_FINDINGS") {
                    Some(limit) => limit as usize,
                    None if is_metadata => METADATA_FINDINGS,
                    None => FINDINGS,
                };
                let name = match chosen {
                    Some(_) => format!("{} in case {number}", difference.kind),
                    None => difference.kind.clone(),
                };
                let finding = totals.findings.entry(name.clone()).or_insert_with(|| {
                    if new < limit && known::reason(&difference.kind).is_none() {
                        fresh.push((name, difference.clone()));
                    }
                    Finding {
                        text: difference.detail.clone(),
                        cases: Vec::new(),
                        is_metadata,
                    }
                });
                finding.cases.push(number);
            }
        }
        for (name, difference) in fresh {
            let small = shrink::shrink(lane, &case, &difference, SHRINKING[run.suite as usize]);
            let last = lane
                .run(&small)
                .differences
                .into_iter()
                .find(|d| d.kind == difference.kind);
            let detail = last.map_or(difference.detail, |d| d.detail);
            let script = small.script(true);
            if let Some(finding) = lock().findings.get_mut(&name) {
                finding.text = format!("(case {number})\n{script}{detail}");
            }
        }
    }
}

fn conclude(run: &Run, totals: &Totals) {
    let (kind, seed) = (run.kind, run.seed);
    let report = &totals.report;
    let refused = report.refusals();
    let all = report.compared + refused;
    let share = 100.0 * refused as f64 / all.max(1) as f64;
    announce(&format!(
        "differential test on {}: {} cases, {all} statements, {refused} refused ({share:.1} %), {} failed on both sides \
         ({} of them with another of several errors), {} cases unusable",
        kind.name(),
        totals.cases,
        report.failed,
        report.other_error,
        totals.unusable.len(),
    ));
    for ((code, label), count) in &report.refused {
        announce(&format!("  refused OS{code} {label}: {count}"));
    }
    let (known, new): (Vec<_>, Vec<_>) = totals
        .findings
        .iter()
        .partition(|(kind, _)| known::reason(kind).is_some());
    for (kind, finding) in known {
        let reason = known::reason(kind).unwrap_or_default();
        announce(&format!(
            "known, {} times: {kind} ({reason})",
            finding.cases.len()
        ));
    }
    let is_whole = number_from(run.suite.variable()).is_none() && chosen().is_none();
    let at_least = match run.suite {
        Suite::Statements => 10_000,
        Suite::Sessions => 3_000,
    };
    assert!(
        all >= at_least || !is_whole,
        "only {all} statements were run"
    );
    for label in run.suite.labels() {
        let ran = report.by_label.get(label).unwrap_or(&0);
        announce(&format!("  {label}: {ran} of {} ran", report.met(label)));
    }
    let few: Vec<_> = run
        .suite
        .labels()
        .iter()
        .filter(|label| report.met(label) < MET_AT_LEAST)
        .collect();
    assert!(few.is_empty() || !is_whole, "met too rarely: {few:?}");
    if !new.is_empty() {
        for (kind, finding) in &new {
            announce(&format!(
                "---- {kind} ({} times, in cases {:?})\n{}",
                finding.cases.len(),
                finding.cases,
                finding.text
            ));
        }
        let times: usize = new.iter().map(|(_, finding)| finding.cases.len()).sum();
        panic!(
            "{times} statements differ in {} new ways with ONIONSKIN_SEED={seed}; scripts are above",
            new.len()
        );
    }
    assert!(
        totals.unusable.len() * 20 <= totals.cases,
        "too many tables that the server itself does not take, such as {}",
        totals.unusable[0]
    );
    if !direct_mode() {
        assert!(
            share <= REFUSED_AT_MOST,
            "{share:.1} % of the statements are refused"
        );
    }
}
