//! The report of a server: as data, and as a document.

use serde::{Deserialize, Serialize};

use super::{
    checks,
    facts::{Facts, Link, ProtectedTable},
    request::Request,
};
use crate::{
    document::{Document, Entry, Grid, Section},
    finding::{Finding, Layer, Severity, State},
    text::count,
};

/// What `report.json` says that it is.
pub const FORMAT: &str = "onionskin-assess-server";
/// The version of its structure.
pub const VERSION: u32 = 1;

/// `report.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerReport {
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
    /// How.
    pub link: Link,
    /// What the checks say.
    pub findings: Vec<Finding>,
    /// Tables with protected columns.
    pub tables: Vec<ProtectedTable>,
}

/// From facts.
pub(super) fn of(request: &Request, facts: &Facts) -> ServerReport {
    let family = match facts.is_mariadb() {
        true => "MariaDB",
        false => "MySQL",
    };
    ServerReport {
        format: FORMAT.into(),
        version: VERSION,
        made: chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        onionskin: request.program.clone(),
        family: family.into(),
        server: facts.version.clone(),
        address: request.address.clone(),
        account: facts.account.clone(),
        link: facts.link.clone(),
        findings: checks::findings(facts),
        tables: facts.protected.known().cloned().unwrap_or_default(),
    }
}

impl ServerReport {
    /// How many findings are in this state.
    pub fn count(&self, state: State) -> usize {
        self.findings.iter().filter(|f| f.state == state).count()
    }

    /// One sentence.
    pub fn summary(&self) -> String {
        let of = |severity| {
            let is = |f: &&Finding| f.severity == Some(severity);
            self.findings.iter().filter(is).count()
        };
        format!(
            "{} open ({} high, {} medium, {} low), {} not visible, {} closed",
            self.count(State::Open),
            of(Severity::High),
            of(Severity::Medium),
            of(Severity::Low),
            self.count(State::NotVisible),
            self.count(State::Closed)
        )
    }

    /// For people.
    pub fn document(&self) -> Document {
        let link = match self.link {
            Link::Socket => "a Unix socket",
            Link::Plain => "TCP without TLS",
            Link::Encrypted => "TLS, the server's certificate was not verified",
            Link::Verified => "TLS, the server's certificate was verified",
        };
        let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut sections = vec![self.first_things()];
        sections.extend(Layer::ALL.iter().map(|layer| self.section(*layer)));
        sections.push(self.columns());
        Document {
            title: "What still lies open".into(),
            summary: self.summary(),
            facts: vec![
                fact("server", &format!("{} {}", self.family, self.server)),
                fact("address", &self.address),
                fact("account", &self.account),
                fact("connection", link),
                fact(
                    "made",
                    &format!("{}, onionskin {}", self.made, self.onionskin),
                ),
            ],
            sections,
        }
    }

    /// What to do first: the severe findings, by name.
    fn first_things(&self) -> Section {
        let mut open: Vec<&Finding> = self
            .findings
            .iter()
            .filter(|f| f.state == State::Open)
            .collect();
        open.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let row = |finding: &&Finding| {
            vec![
                finding.severity.map_or("", Severity::word).to_owned(),
                finding.title.clone(),
                finding.code.clone(),
                finding.evidence.first().cloned().unwrap_or_default(),
            ]
        };
        Section {
            title: "Open, the most severe first".into(),
            prose: vec![
                "What is said here is what the server says, but for what was read in its files."
                    .into(),
            ],
            grid: Some(Grid {
                heads: ["severity", "what", "code", "seen"]
                    .map(str::to_owned)
                    .to_vec(),
                rows: open.iter().map(row).collect(),
                omitted: 0,
            }),
            ..Section::default()
        }
    }

    fn section(&self, layer: Layer) -> Section {
        let findings = self.findings.iter().filter(|f| f.layer == layer);
        Section {
            title: layer.title().into(),
            entries: findings.map(Entry::of).collect(),
            ..Section::default()
        }
    }

    fn columns(&self) -> Section {
        const MAX_ROWS: usize = 1_000;
        let row = |table: &ProtectedTable| {
            vec![
                table.name.clone(),
                table.sealed.join(", "),
                table.plain.join(", "),
            ]
        };
        Section {
            title: "Tables with protected columns".into(),
            prose: vec![format!(
                "{}, by the comments on the server; their authenticity is not verified here.",
                count(self.tables.len(), "table")
            )],
            grid: (!self.tables.is_empty()).then(|| Grid {
                heads: ["table", "sealed", "plain"].map(str::to_owned).to_vec(),
                rows: self.tables.iter().take(MAX_ROWS).map(row).collect(),
                omitted: self.tables.len().saturating_sub(MAX_ROWS),
            }),
            ..Section::default()
        }
    }
}
