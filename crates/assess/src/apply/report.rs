//! The report: what was done, what there is still to do, and what stays as it is.

use serde::{Deserialize, Serialize};

use super::{proof::Planted, request::Request, step::Step};
use crate::{
    document::{Document, Grid, Section},
    server::facts::Facts,
};

/// What `report.json` says that it is.
pub const FORMAT: &str = "onionskin-assess-apply";
/// The version of its structure.
pub const VERSION: u32 = 1;

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was done by this run.
    Done,
    /// It is still to be done.
    ToDo,
    /// It is not done, and something stays as it should not.
    Left,
    /// Nothing was to be done.
    Note,
}

impl Outcome {
    /// As it is shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::ToDo => "to do",
            Self::Left => "left",
            Self::Note => "note",
        }
    }
}

/// A step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepReport {
    /// What it is.
    pub what: String,
    /// What became of it.
    pub outcome: Outcome,
}

impl StepReport {
    pub(super) fn done(step: &Step) -> Self {
        Self {
            what: step.to_string(),
            outcome: Outcome::Done,
        }
    }

    pub(super) fn left(step: &Step, why: &str) -> Self {
        Self {
            what: format!("{step}: {why}"),
            outcome: Outcome::Left,
        }
    }

    pub(super) fn planned(step: &Step) -> Self {
        Self {
            what: step.to_string(),
            outcome: match step {
                Step::Leave { .. } => Outcome::Left,
                Step::Note { .. } => Outcome::Note,
                _ => Outcome::ToDo,
            },
        }
    }
}

/// `report.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyReport {
    /// [`FORMAT`]
    pub format: String,
    /// [`VERSION`]
    pub version: u32,
    /// When it was made, RFC 3339 in UTC.
    pub made: String,
    /// The version of this program.
    pub onionskin: String,
    /// `MariaDB` or `MySQL`.
    pub family: String,
    /// The server's version.
    pub server: String,
    /// Where it was reached.
    pub address: String,
    /// As whom.
    pub account: String,
    /// Encryption is turned off.
    pub revert: bool,
    /// Nothing was changed.
    pub dry_run: bool,
    /// In their order.
    pub steps: Vec<StepReport>,
    /// Where planted texts were found.
    pub planted: Option<Planted>,
    /// What it costs, as the benchmark says it.
    pub cost: Vec<String>,
}

impl ApplyReport {
    pub(super) fn of(request: &Request, facts: &Facts) -> Self {
        let family = match facts.is_mariadb() {
            true => "MariaDB",
            false => "MySQL",
        };
        Self {
            format: FORMAT.into(),
            version: VERSION,
            made: chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            onionskin: request.look.program.clone(),
            family: family.into(),
            server: facts.version.clone(),
            address: request.look.address.clone(),
            account: facts.account.clone(),
            revert: request.revert,
            dry_run: !request.yes,
            steps: Vec::new(),
            planted: None,
            cost: Vec::new(),
        }
    }

    /// How many steps have this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.steps.iter().filter(|s| s.outcome == outcome).count()
    }

    /// Whether everything is as it shall be.
    pub fn is_complete(&self) -> bool {
        let seen = self.planted.as_ref().is_none_or(|p| p.later.is_empty());
        self.count(Outcome::ToDo) + self.count(Outcome::Left) == 0 && seen
    }

    /// One sentence.
    pub fn summary(&self) -> String {
        let steps = format!(
            "{} done, {} to do, {} left as they are",
            self.count(Outcome::Done),
            self.count(Outcome::ToDo),
            self.count(Outcome::Left)
        );
        match self.dry_run {
            true => format!("nothing was changed: {steps}; --yes does it"),
            false => steps,
        }
    }

    /// For people.
    pub fn document(&self) -> Document {
        let title = match self.revert {
            true => "Encryption at rest, turned off",
            false => "Encryption at rest, turned on",
        };
        let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut sections = vec![Section {
            title: "Steps".into(),
            grid: Some(Grid {
                heads: vec!["outcome".into(), "step".into()],
                rows: self
                    .steps
                    .iter()
                    .map(|step| vec![step.outcome.word().into(), step.what.clone()])
                    .collect(),
                omitted: 0,
            }),
            ..Section::default()
        }];
        if let Some(planted) = &self.planted {
            sections.push(planted_section(planted));
        }
        if !self.cost.is_empty() {
            sections.push(Section {
                title: "What it costs on this machine".into(),
                block: self.cost.clone(),
                ..Section::default()
            });
        }
        Document {
            title: title.into(),
            summary: self.summary(),
            facts: vec![
                fact("server", &format!("{} {}", self.family, self.server)),
                fact("address", &self.address),
                fact("account", &self.account),
                fact(
                    "made",
                    &format!("{}, onionskin {}", self.made, self.onionskin),
                ),
            ],
            sections,
        }
    }
}

fn planted_section(planted: &Planted) -> Section {
    let places = |hits: &[String]| match hits.is_empty() {
        true => "nowhere".to_owned(),
        false => hits.join("; "),
    };
    let mut prose = vec![
        format!(
            "A text was planted. When this run began, it stood here: {}.",
            places(&planted.before)
        ),
        format!("In the end it stood here: {}.", places(&planted.behind)),
    ];
    prose.push(match planted.complete {
        true => format!(
            "A text that was planted in the end stood here: {}.",
            places(&planted.later)
        ),
        false => "There is more to do: the planted table stays for the next run.".into(),
    });
    if !planted.beyond.is_empty() {
        prose.push(format!(
            "Beyond what was asked for, it stood here: {}.",
            places(&planted.beyond)
        ));
    }
    Section {
        title: "A planted text in the server's files".into(),
        prose,
        ..Section::default()
    }
}
