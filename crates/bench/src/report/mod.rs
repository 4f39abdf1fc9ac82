//! `report.json`: everything that was measured, in a versioned form, and what is derived from it.
//!
//! | type | what it is |
//! |---|---|
//! | [`Report`] | one call of the benchmark, or several merged |
//! | [`Scenario`] | one question, on one server |
//! | [`Group`] | what is compared with each other: the same workload with the same number of threads |
//! | [`Variant`] | one side of a comparison, with the summaries of its runs |
//! | [`Run`] | one measurement, with the proofs that it measured what it says |
//!
//! Runs are the facts; summaries and ratios are computed from them by [`Group::summarise`], void
//! runs left out. The other formats (HTML, Markdown, the terminal) are made from the same
//! structure. A new field raises [`VERSION`] unless it has a default; readers refuse versions that
//! they do not know.

mod charts;
mod decision;
mod figures;
mod files;
mod html;
mod markdown;
mod matrix;
mod proved;
mod reference;
mod svg;
mod terminal;

pub use figures::{change, figure};
pub use files::ReportError;
pub use html::html;
pub use markdown::markdown;
pub use proved::proofs;
pub use terminal::summary as terminal_summary;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    machine::Machine,
    stats::{Ratio, Summary},
};

/// What `format` says in every report.
pub const FORMAT: &str = "onionskin-bench";
/// The version of the structure.
pub const VERSION: u32 = 1;

/// One call of the benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// [`FORMAT`]
    pub format: String,
    /// [`VERSION`]
    pub version: u32,
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// When the last scenario ended.
    pub finished: String,
    /// `tiny`, `quick` or `full`.
    pub size: String,
    /// Why it is not whole, if it is not: it was ended by a signal, for example.
    pub incomplete: Option<String>,
    /// Where it ran.
    pub machine: Machine,
    /// What was measured.
    pub scenarios: Vec<Scenario>,
}

/// How far a scenario came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every round was run.
    Complete,
    /// It was ended before; what is there is valid.
    Partial,
    /// It could not be run at all, `reason` says why.
    NotAvailable,
    /// It broke, `reason` says why; what is there is valid.
    Failed,
}

/// One question, on one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: String,
    /// Its headline.
    pub title: String,
    /// What it answers.
    pub question: String,
    /// What it shares with others and what not, for whoever reads the figures.
    pub method: String,
    /// How far it came.
    pub status: Status,
    /// Why not further.
    pub reason: Option<String>,
    /// The server, if there is one.
    pub server: Option<ServerInfo>,
    /// How long it took in all, in seconds.
    pub seconds: f64,
    /// The comparisons.
    pub groups: Vec<Group>,
}

/// Which server was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerInfo {
    /// `MariaDB` or `MySQL`.
    pub family: String,
    /// What `SELECT VERSION()` says.
    pub version: String,
    /// Settings that all variants share.
    pub settings: Vec<String>,
}

/// What is compared with each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// For example `oltp_read_write, 4 threads`.
    pub label: String,
    /// What distinguishes the group from others of the scenario, for example `threads` = `4`.
    pub parameters: BTreeMap<String, String>,
    /// The variant that the others are compared with.
    pub baseline: String,
    /// All sides.
    pub variants: Vec<Variant>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name, the same in all groups.
    pub name: String,
    /// For people.
    pub label: String,
    /// What made the load: `sysbench 1.0.20`, `built-in driver`, `openssl`, …
    pub driver: String,
    /// Why it could not be run, if so.
    pub unavailable: Option<String>,
    /// What was set for it: server options, settings of the proxy, commands.
    pub settings: Vec<String>,
    /// In the order of rounds, void ones included.
    pub runs: Vec<Run>,
    /// Of the valid runs, by metric.
    pub summaries: BTreeMap<String, Summary>,
    /// To the baseline in the same round, by metric; empty for the baseline itself.
    pub ratios: BTreeMap<String, Ratio>,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The round, from 0.
    pub round: usize,
    /// Seconds since the scenario began.
    pub at: f64,
    /// Why it does not count, if it does not.
    pub void: Option<String>,
    /// What was looked at to know whether it counts.
    pub proofs: Vec<Proof>,
    /// The command that made the load, without passwords.
    pub command: String,
    /// By metric.
    pub metrics: BTreeMap<String, f64>,
    /// What was observed meanwhile.
    pub series: Vec<Series>,
}

/// Something that had to be so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// What was looked at, and when.
    pub what: String,
    /// What it had to be.
    pub expected: String,
    /// What it was.
    pub found: String,
    /// Whether that is the same.
    pub holds: bool,
}

/// A quantity over the time of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// For example `statements`.
    pub name: String,
    /// Of the values.
    pub unit: String,
    /// Seconds since the run began, value.
    pub points: Vec<(f64, f64)>,
}

impl Group {
    /// Computes summaries and ratios anew from the runs.
    pub fn summarise(&mut self) {
        let base: BTreeMap<usize, BTreeMap<String, f64>> = self
            .variants
            .iter()
            .filter(|variant| variant.name == self.baseline)
            .flat_map(Variant::valid)
            .map(|run| (run.round, run.metrics.clone()))
            .collect();
        for variant in &mut self.variants {
            let names: BTreeSet<String> = variant
                .valid()
                .flat_map(|run| run.metrics.keys().cloned())
                .collect();
            variant.summaries.clear();
            variant.ratios.clear();
            for name in names {
                let values: Vec<f64> = variant
                    .valid()
                    .filter_map(|run| run.metrics.get(&name).copied())
                    .collect();
                let summary = Summary::of(&values);
                let pairs: Vec<(f64, f64)> = variant
                    .valid()
                    .filter_map(|run| {
                        Some((*base.get(&run.round)?.get(&name)?, *run.metrics.get(&name)?))
                    })
                    .collect();
                let ratio = Ratio::of_pairs(&pairs).filter(|_| variant.name != self.baseline);
                variant
                    .summaries
                    .extend(summary.map(|summary| (name.clone(), summary)));
                variant.ratios.extend(ratio.map(|ratio| (name, ratio)));
            }
        }
    }

    /// The variant of a name.
    pub fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }
}

impl Variant {
    /// The runs that count.
    pub fn valid(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.void.is_none())
    }

    /// The runs that do not.
    pub fn void(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.void.is_some())
    }

    /// The median of a metric.
    pub fn median(&self, metric: &str) -> Option<f64> {
        self.summaries.get(metric).map(|summary| summary.median)
    }
}

impl Scenario {
    /// Headline with the server, which tells two runs of one scenario apart.
    pub fn full_title(&self) -> String {
        match &self.server {
            None => self.title.clone(),
            Some(server) => format!("{} ({})", self.title, server.short()),
        }
    }

    /// Why variants could not be run: reasons with the labels of the variants, each once.
    pub fn unavailable(&self) -> Vec<(String, Vec<String>)> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for variant in self.groups.iter().flat_map(|group| &group.variants) {
            let Some(reason) = &variant.unavailable else {
                continue;
            };
            match found.iter_mut().find(|(known, _)| known == reason) {
                Some((_, labels)) if labels.contains(&variant.label) => {}
                Some((_, labels)) => labels.push(variant.label.clone()),
                None => found.push((reason.clone(), vec![variant.label.clone()])),
            }
        }
        found
    }

    /// Void runs with their reasons, as (group, variant, reason), each once.
    pub fn void_runs(&self) -> Vec<(String, String, String, usize)> {
        let mut found: Vec<(String, String, String, usize)> = Vec::new();
        for group in &self.groups {
            for variant in &group.variants {
                for reason in variant.void().filter_map(|run| run.void.clone()) {
                    let same = found.iter_mut().find(|(g, v, r, _)| {
                        *g == group.label && *v == variant.label && *r == reason
                    });
                    match same {
                        Some(entry) => entry.3 += 1,
                        None => found.push((group.label.clone(), variant.label.clone(), reason, 1)),
                    }
                }
            }
        }
        found
    }
}

impl ServerInfo {
    /// Family and number.
    pub fn short(&self) -> String {
        let number = self.version.split('-').next().unwrap_or_default();
        format!("{} {number}", self.family)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;

    pub(crate) fn run(round: usize, value: f64, void: Option<&str>) -> Run {
        Run {
            round,
            at: round as f64,
            void: void.map(String::from),
            proofs: Vec::new(),
            command: "sysbench oltp_insert run".into(),
            metrics: [("queries_per_s".to_owned(), value)].into(),
            series: vec![Series {
                name: "statements".into(),
                unit: "1/s".into(),
                points: vec![(1.0, value), (2.0, value)],
            }],
        }
    }

    pub(crate) fn variant(name: &str, runs: Vec<Run>) -> Variant {
        Variant {
            name: name.into(),
            label: format!("{name} & <co>"),
            driver: "built-in driver".into(),
            unavailable: None,
            settings: Vec::new(),
            runs,
            summaries: BTreeMap::new(),
            ratios: BTreeMap::new(),
        }
    }

    pub(crate) fn sample() -> Report {
        let mut group = Group {
            label: "oltp_insert, 4 threads".into(),
            parameters: [
                ("threads".to_owned(), "4".to_owned()),
                ("workload".to_owned(), "oltp_insert".to_owned()),
            ]
            .into(),
            baseline: "off".into(),
            variants: vec![
                variant(
                    "off",
                    vec![
                        run(0, 100.0, None),
                        run(1, 200.0, None),
                        run(2, 50.0, Some("x")),
                    ],
                ),
                variant(
                    "on",
                    vec![
                        run(0, 90.0, None),
                        run(1, 180.0, None),
                        run(2, 1.0, None),
                        run(3, 7.0, Some("the setting was not in force")),
                    ],
                ),
            ],
        };
        group.summarise();
        Report {
            format: FORMAT.into(),
            version: VERSION,
            started: "2026-01-01T00:00:00Z".into(),
            finished: "2026-01-01T00:01:00Z".into(),
            size: "tiny".into(),
            incomplete: None,
            machine: Machine::default(),
            scenarios: vec![Scenario {
                name: "binlog".into(),
                title: "Binary log".into(),
                question: "What?".into(),
                method: "How".into(),
                status: Status::Complete,
                reason: None,
                server: Some(ServerInfo {
                    family: "MariaDB".into(),
                    version: "10.11.2-MariaDB".into(),
                    settings: vec![],
                }),
                seconds: 60.0,
                groups: vec![group],
            }],
        }
    }

    #[test]
    fn ratios_are_of_pairs_of_a_round_and_void_runs_do_not_count() {
        let report = sample();
        let group = &report.scenarios[0].groups[0];
        let on = group.variant("on").expect("there");
        // Round 2 has no valid baseline, round 3 is void.
        assert_eq!(on.ratios["queries_per_s"].pairs, 2);
        assert!((on.ratios["queries_per_s"].ratio - 0.9).abs() < 1e-9);
        assert_eq!(on.summaries["queries_per_s"].runs, 3);
        assert!(group.variant("off").expect("there").ratios.is_empty());
        assert_eq!(report.scenarios[0].void_runs().len(), 2);
    }

    #[test]
    fn a_report_is_read_back_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let report = sample();
        report.write(folder.path()).expect("written");
        assert_eq!(
            Report::read(&folder.path().join("report.json")).expect("read"),
            report
        );
        let mut names: Vec<_> = fs::read_dir(folder.path())
            .expect("listed")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["report.html", "report.json", "report.md"]);
    }

    /// Field by field: what is written is documented.
    #[test]
    fn every_field_is_in_the_documentation() {
        fn keys(value: &serde_json::Value, found: &mut BTreeSet<String>) {
            match value {
                serde_json::Value::Object(fields) => {
                    for (name, value) in fields {
                        found.insert(name.clone());
                        // Keys of these are data.
                        if !["programs", "parameters", "metrics"].contains(&name.as_str()) {
                            keys(value, found);
                        }
                    }
                }
                serde_json::Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
                _ => {}
            }
        }
        let mut report = sample();
        let run = &mut report.scenarios[0].groups[0].variants[1].runs[0];
        run.proofs.push(Proof {
            what: "a".into(),
            expected: "b".into(),
            found: "b".into(),
            holds: true,
        });
        let mut found = BTreeSet::new();
        keys(&serde_json::to_value(&report).expect("JSON"), &mut found);
        assert!(found.remove("queries_per_s"), "a metric, not a field");
        let text = include_str!("../../../../docs/bench.md");
        let documented = text.split("## report.json").nth(1).expect("the section");
        for name in &found {
            // As `name`, `name[]` or `name{…}`, or as the end of a path.
            let after = |start: char| {
                ["`", "[]", "{"]
                    .iter()
                    .any(|end| documented.contains(&format!("{start}{name}{end}")))
            };
            assert!(after('`') || after('.'), "{name} is not documented");
        }
        assert!(found.len() > 47, "{found:?}");
        assert!(documented.contains(&format!("Version {VERSION}.")));
    }

    #[test]
    fn other_versions_and_other_files_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.json");
        let mut value = serde_json::to_value(sample()).expect("JSON");
        value["version"] = 2.into();
        value["news"] = true.into();
        fs::write(&path, value.to_string()).expect("written");
        assert!(matches!(
            Report::read(&path),
            Err(ReportError::Version { version: 2, .. })
        ));
        value["version"] = 1.into();
        fs::write(&path, value.to_string()).expect("written");
        let error = Report::read(&path).expect_err("an unknown field");
        assert!(error.to_string().contains("news"), "{error}");
        for text in ["", "{}", "[1]", r#"{"format":"other","version":1}"#] {
            fs::write(&path, text).expect("written");
            assert!(
                matches!(Report::read(&path), Err(ReportError::NotAReport { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn reports_of_one_machine_become_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |n: usize| folder.path().join(format!("{n}.json"));
        let mut reports = [sample(), sample(), sample()];
        reports[1].scenarios[0].name = "tde".into();
        reports[2].scenarios[0].title = "The newer one".into();
        for (n, report) in reports.iter().enumerate() {
            fs::write(path(n), serde_json::to_string(report).expect("JSON")).expect("written");
        }
        let merged = Report::merge(&[path(0), path(1), path(2)]).expect("merged");
        let titles: Vec<_> = merged.scenarios.iter().map(|s| s.title.as_str()).collect();
        assert_eq!(titles, ["Binary log", "The newer one"]);

        reports[1].machine.processor = "another".into();
        fs::write(path(1), serde_json::to_string(&reports[1]).expect("JSON")).expect("written");
        assert!(matches!(
            Report::merge(&[path(0), path(1)]),
            Err(ReportError::Machines { .. })
        ));
    }
}
