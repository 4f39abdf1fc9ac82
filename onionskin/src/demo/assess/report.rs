//! The report of the demonstration.

use std::path::Path;

use onionskin_assess::{
    document::{Document, Grid, Section},
    leaks::LeaksReport,
};
use onionskin_bench::report::figure;
use serde::Serialize;

use super::{
    super::failed,
    cost::Cost,
    data,
    traces::{self, Trace},
};
use crate::error::CommandError;

/// `report.json`.
#[derive(Clone, Debug, Serialize)]
pub struct DemoReport {
    /// `onionskin-demo-assess`
    pub format: &'static str,
    /// 1
    pub version: u32,
    /// The version of this program.
    pub onionskin: &'static str,
    /// Name and version of the server.
    pub server: String,
    /// Tables and their rows.
    pub tables: Vec<(String, u64)>,
    /// Statements that were observed on plain tables.
    pub observed: usize,
    /// What `assess data` says.
    pub personal: String,
    /// What `assess queries` says.
    pub asked: String,
    /// The policy.
    pub policy: Vec<String>,
    /// What `assess leaks` says.
    pub leaking: String,
    /// Column, capability, how much it tells, rows that are recovered, and the attack.
    pub leaks: Vec<[String; 5]>,
    /// What was done, and in how many seconds.
    pub commands: Vec<(String, f64)>,
    /// Statements of the application meanwhile, each answered as before.
    pub meanwhile: u64,
    /// Statements that were compared afterwards.
    pub compared: u64,
    /// What it costs.
    pub cost: Option<Cost>,
    /// What `assess server` says in the end.
    pub open: String,
    /// Planted texts while the tables were plain.
    pub planted: Vec<Trace>,
    /// The same texts in the end.
    pub left: Vec<Trace>,
    /// Texts that were written to protected tables, in the end.
    pub later: Vec<Trace>,
    /// How long all of it took.
    pub seconds: u64,
}

/// The rows of a report on leaks that matter most.
pub fn leaks(report: &LeaksReport) -> Vec<[String; 5]> {
    let row = |leak: &onionskin_assess::leaks::ColumnLeak| {
        let best = leak.best();
        [
            format!("{}.{}", leak.table, leak.column),
            leak.capability.word(),
            leak.risk.map_or("nothing", |risk| risk.word()).into(),
            best.map_or_else(|| "0 %".into(), |best| best.rows.shown()),
            best.map_or_else(String::new, |best| best.attack.clone()),
        ]
    };
    report.columns.iter().map(row).collect()
}

impl DemoReport {
    /// Nothing is known yet.
    pub fn new(server: String) -> Self {
        Self {
            format: "onionskin-demo-assess",
            version: 1,
            onionskin: env!("CARGO_PKG_VERSION"),
            server,
            tables: Vec::new(),
            observed: 0,
            personal: String::new(),
            asked: String::new(),
            policy: Vec::new(),
            leaking: String::new(),
            leaks: Vec::new(),
            commands: Vec::new(),
            meanwhile: 0,
            compared: 0,
            cost: None,
            open: String::new(),
            planted: Vec::new(),
            left: Vec::new(),
            later: Vec::new(),
            seconds: 0,
        }
    }

    /// Looks for all texts once the server has ended.
    pub fn traces_left(&mut self, files: &Path) -> Result<(), CommandError> {
        self.left = traces::look(data::PLANTED, files)?;
        self.later = traces::look(data::PLANTED_LATER, files)?;
        Ok(())
    }

    /// What was found of them.
    pub fn traces_told(&self) -> Vec<String> {
        let of = |when: &str, traces: &[Trace]| -> Vec<String> {
            let told = traces.iter();
            told.map(|trace| format!("{when}: {}", trace.told()))
                .collect()
        };
        [
            of("plain", &self.planted),
            of("now", &self.left),
            of("written since", &self.later),
        ]
        .concat()
    }

    /// Whether the texts are where they may be at most.
    pub fn check(&self) -> Result<(), CommandError> {
        let wrong = |trace: &&Trace| !trace.files.iter().all(|f| traces::is_written_over(f));
        if let Some(trace) = self.left.iter().find(wrong) {
            return Err(failed(format!("still in the files: {}", trace.told())));
        }
        match self.later.iter().find(|trace| !trace.files.is_empty()) {
            Some(trace) => Err(failed(format!(
                "written under protection: {}",
                trace.told()
            ))),
            None => Ok(()),
        }
    }

    /// For people.
    pub fn document(&self) -> Document {
        let fact = |name: &str, value: String| (name.to_owned(), value);
        let rows: u64 = self.tables.iter().map(|(_, rows)| rows).sum();
        Document {
            title: "From plain tables to a protected installation".into(),
            summary: format!(
                "{} statements were answered as on plain tables, {} of them while tables were encrypted. {}",
                figure((self.meanwhile + self.compared) as f64),
                figure(self.meanwhile as f64),
                self.cost.as_ref().map_or_else(String::new, |cost| {
                    format!("Speed, protected against relayed: {}.", cost.change())
                })
            ),
            facts: vec![
                fact("server", self.server.clone()),
                fact(
                    "rows",
                    format!("{} in {} tables", figure(rows as f64), self.tables.len()),
                ),
                fact("statements observed", self.observed.to_string()),
                fact("seconds", self.seconds.to_string()),
                fact("onionskin", self.onionskin.into()),
            ],
            sections: self.sections(),
        }
    }

    fn sections(&self) -> Vec<Section> {
        let told = |title: &str, report: &str, prose: &str| Section {
            title: title.into(),
            prose: vec![
                prose.to_owned(),
                format!("All of it: {report}/report.html."),
            ],
            ..Section::default()
        };
        let mut asked = told("What the application asks", "queries", &self.asked);
        asked.prose.push("The policy, for onionskin.toml:".into());
        asked.block.clone_from(&self.policy);
        let mut leaking = told("What that gives away", "leaks", &self.leaking);
        leaking.grid = grid(
            &[
                "column",
                "capability",
                "tells",
                "rows recovered",
                "best attack",
            ],
            self.leaks.iter().map(|row| row.to_vec()).collect(),
        );
        vec![
            told("What is personal", "data", &self.personal),
            asked,
            leaking,
            self.commands_section(),
            self.cost_section(),
            self.traces_section(),
            told("What still lies open", "server", &self.open),
        ]
    }

    fn commands_section(&self) -> Section {
        let rows = self.commands.iter();
        let rows = rows.map(|(command, seconds)| vec![command.clone(), format!("{seconds:.1}")]);
        Section {
            title: "Encrypted while the application runs".into(),
            prose: vec![
                format!(
                    "Meanwhile the application sent {} statements. None failed, and every answer was the one of before.",
                    figure(self.meanwhile as f64)
                ),
                format!(
                    "Afterwards {} statements ran under the policy. None was refused, and every answer was the one of the plain tables.",
                    self.compared
                ),
            ],
            grid: grid(&["command", "seconds"], rows.collect()),
            ..Section::default()
        }
    }

    fn cost_section(&self) -> Section {
        let Some(cost) = &self.cost else {
            return Section::default();
        };
        let milliseconds = |value: f64| format!("{value:.2}");
        let rows = cost.kinds.iter().map(|(kind, relayed, protected)| {
            vec![
                kind.clone(),
                milliseconds(*relayed),
                milliseconds(*protected),
            ]
        });
        Section {
            title: "What it costs".into(),
            prose: cost.lines(),
            grid: grid(
                &["statement", "relayed, ms", "protected, ms"],
                rows.collect(),
            ),
            ..Section::default()
        }
    }

    fn traces_section(&self) -> Section {
        let files = |trace: &Trace| match trace.files.is_empty() {
            true => "nowhere".to_owned(),
            false => trace.files.join(", "),
        };
        let pairs = self.planted.iter().zip(&self.left);
        let mut rows: Vec<Vec<String>> = pairs
            .map(|(before, now)| vec![before.column.clone(), files(before), files(now)])
            .collect();
        let later = self.later.iter();
        rows.extend(later.map(|trace| {
            vec![
                format!("{}, written since", trace.column),
                String::new(),
                files(trace),
            ]
        }));
        let is_left = self.left.iter().any(|trace| !trace.files.is_empty());
        let rest = match is_left {
            true => {
                "What is left stands in files of InnoDB's whose old parts are written over in time. \
                 A server that is to hold none of it is set up anew from a dump."
            }
            false => "Nothing is left.",
        };
        Section {
            title: "Planted texts in the server's files".into(),
            prose: vec![
                "Old tables were dropped, and old binary logs removed. The server had ended."
                    .into(),
                rest.into(),
            ],
            grid: grid(&["text in", "while plain", "in the end"], rows),
            ..Section::default()
        }
    }
}

fn grid(heads: &[&str], rows: Vec<Vec<String>>) -> Option<Grid> {
    Some(Grid {
        heads: heads.iter().map(|head| (*head).to_owned()).collect(),
        rows,
        omitted: 0,
    })
}
