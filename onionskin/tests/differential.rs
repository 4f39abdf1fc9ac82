//! The differential test: random tables, rows and statements, on a plain server and through the proxy. Every answer
//! is the same, or the proxy refuses the statement.
//!
//! A *case* is one to three tables and a session of some sixty statements (`differential/cases.rs`). Each statement runs
//! through the proxy first. If it is refused, the plain server is spared it; otherwise both answers are compared as
//! far as they are certain: rows, everything that column definitions say, affected rows, insert id, warnings, error number
//! and SQLSTATE. In the end the whole tables and their definitions are compared.
//!
//! Before that, scripts are run that once showed a difference (`differential/scripts.rs`).
//!
//! A case that shows a difference is made smaller and printed as a script. Differences of one kind are one finding.
//!
//! - `ONIONSKIN_SEED=n` repeats a run (the seed is printed); cases do not depend on how threads are scheduled.
//! - `ONIONSKIN_STATEMENTS=n` is how many statements are run on each server.
//! - `ONIONSKIN_CASE=n` or `n,m,…` runs these cases of the seed only; then each difference is a finding of its own.
//! - `ONIONSKIN_FINDINGS=n` is how many findings are made small and printed as scripts.
//! - `ONIONSKIN_KNOWN=0` treats differences that are known (`differential/known.rs`) as the others.
//! - `ONIONSKIN_SCRATCH=1` gives the proxy a scratch engine: what is refused otherwise is compared.
//! - `ONIONSKIN_TEST_DIRECT=1` compares a plain server with a plain server, which checks the test itself.

mod support;

#[path = "differential/answers.rs"]
mod answers;
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
#[path = "differential/known.rs"]
mod known;
#[path = "differential/lane.rs"]
mod lane;
#[path = "differential/padding.rs"]
mod padding;
#[path = "differential/plans.rs"]
mod plans;
#[path = "differential/queries.rs"]
mod queries;
#[path = "differential/random.rs"]
mod random;
#[path = "differential/schema.rs"]
mod schema;
#[path = "differential/script.rs"]
mod script;
#[path = "differential/scripts.rs"]
mod scripts;
#[path = "differential/shrink.rs"]
mod shrink;
#[path = "differential/values.rs"]
mod values;
#[path = "differential/writes.rs"]
mod writes;

use lane::{Lane, Report};
use random::Random;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use support::*;

on_both_servers!(equal_or_refused);

/// Statements on each server; the two together are over 20,000.
const STATEMENTS: usize = 11_000;
/// The seed of every ordinary run, so that it finds the same each time; long runs take a new one.
const SEED: u64 = 20_261_121;
/// Cases of an ordinary run: whatever the threads do, these are run.
const CASES: usize = 220;
const LONG_STATEMENTS: usize = 200_000;
/// Sessions at a time.
const LANES: usize = 4;
/// Statements of a case, about.
const LENGTH: usize = 60;
/// Findings that are made small and printed; and of those that concern column definitions only.
const FINDINGS: usize = 10;
const METADATA_FINDINGS: usize = 4;
/// How long one finding is made smaller.
const SHRINKING: Duration = Duration::from_secs(40);
/// Percent of statements that may be refused: refusing everything is no way to pass.
const REFUSED_AT_MOST: f64 = 20.0;

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
    let default = if long_run() {
        LONG_STATEMENTS
    } else {
        STATEMENTS
    };
    let wanted = number_from("ONIONSKIN_STATEMENTS").map_or(default, |n| n as usize);
    announce(&format!(
        "differential test on {}: ONIONSKIN_SEED={seed} ONIONSKIN_STATEMENTS={wanted}",
        kind.name()
    ));

    let different = scripts::differences(lane);
    for difference in &different {
        announce(&format!("---- {difference}"));
    }
    let totals = Mutex::new(Totals::default());
    let round = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| run_cases(lane, kind, seed, wanted, &round, &totals));
        }
    });
    let totals = totals
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    conclude(kind, seed, &totals);
    assert!(different.is_empty(), "answers to scripts differ");
    proxy.assert_healthy();
}

/// Runs cases until enough statements have been run by all lanes together.
fn run_cases(
    lane: Lane,
    kind: Kind,
    seed: u64,
    wanted: usize,
    round: &AtomicUsize,
    totals: &Mutex<Totals>,
) {
    let lock = || {
        totals
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    };
    let chosen = chosen();
    loop {
        let ordinary = wanted == STATEMENTS;
        {
            let totals = lock();
            if !ordinary && totals.report.compared + totals.report.refusals() >= wanted {
                return;
            }
        }
        let number = round.fetch_add(1, Ordering::Relaxed);
        if ordinary && number >= CASES {
            return;
        }
        let number = match &chosen {
            Some(chosen) => match chosen.get(number) {
                Some(only) => *only,
                None => return,
            },
            None => number,
        };
        let mut random = Random::new(seed, &[kind as u64, number as u64]);
        let case = cases::random_case(&mut random, kind, LENGTH);
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
            let small = shrink::shrink(lane, &case, &difference, SHRINKING);
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

fn conclude(kind: Kind, seed: u64, totals: &Totals) {
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
    assert!(
        all >= 10_000 || number_from("ONIONSKIN_STATEMENTS").is_some() || chosen().is_some(),
        "only {all} statements were run"
    );
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
