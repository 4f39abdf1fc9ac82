//! The report of a database: as data, and as a document.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    kind::{Confidence, Kind},
    request::Request,
};
use crate::{
    AssessError,
    document::{Document, Grid, Section},
    reader::Reader,
    text::{count, shell_word},
};

/// What `report.json` says that it is.
pub const FORMAT: &str = "onionskin-assess-data";
/// The version of its structure.
pub const VERSION: u32 = 1;

/// A column, or a path of one, that holds personal data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnFinding {
    /// `app.users`
    pub table: String,
    /// Its name.
    pub column: String,
    /// Where in its documents, if it holds JSON.
    pub path: Option<String>,
    /// What it holds.
    pub kind: Kind,
    /// How sure it is.
    pub confidence: Confidence,
    /// In shape. Never a value.
    pub evidence: Vec<String>,
    /// A line for `[protect."DATABASE.TABLE"]`.
    pub policy: Option<String>,
}

/// `report.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataReport {
    /// [`FORMAT`]
    pub format: String,
    /// [`VERSION`]
    pub version: u32,
    /// When it was made, RFC 3339 in UTC.
    pub made: String,
    /// The version of this program.
    pub onionskin: String,
    /// The server's version.
    pub server: String,
    /// Where it was reached.
    pub address: String,
    /// The database.
    pub database: String,
    /// Tables that were looked at.
    pub tables: usize,
    /// Their plain columns.
    pub columns: usize,
    /// Columns that are protected already.
    pub sealed: usize,
    /// Rows that were read.
    pub rows: usize,
    /// The surest first.
    pub findings: Vec<ColumnFinding>,
    /// How many more there were.
    pub omitted: usize,
    /// What was not looked at, and why.
    pub left_out: Vec<String>,
}

/// A name as a key of TOML.
pub(crate) fn toml_key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

impl DataReport {
    pub(super) fn new(request: &Request, reader: &mut Reader) -> Result<Self, AssessError> {
        let server = reader.version()?;
        Ok(Self {
            format: FORMAT.into(),
            version: VERSION,
            made: chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            onionskin: request.program.clone(),
            server,
            address: request.address.clone(),
            database: crate::text::shown(&request.database),
            tables: 0,
            columns: 0,
            sealed: 0,
            rows: 0,
            findings: Vec::new(),
            omitted: 0,
            left_out: Vec::new(),
        })
    }

    /// One sentence.
    pub fn summary(&self) -> String {
        let of = |confidence| {
            self.findings
                .iter()
                .filter(|f| f.confidence == confidence)
                .count()
        };
        let hidden = match self.left_out.len() {
            0 => String::new(),
            _ => format!("; {} not looked at", count(self.left_out.len(), "part")),
        };
        format!(
            "{} with personal data in plain: {} certain, {} likely, {} possible{hidden}",
            count(self.findings.len() + self.omitted, "column"),
            of(Confidence::Certain),
            of(Confidence::Likely),
            of(Confidence::Possible)
        )
    }

    /// The proposed policy, as a part of `onionskin.toml`.
    pub fn policy(&self) -> Vec<String> {
        let mut by_table: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for finding in &self.findings {
            if let Some(line) = &finding.policy {
                let lines = by_table.entry(&finding.table).or_default();
                if !lines.contains(&line.as_str()) {
                    lines.push(line);
                }
            }
        }
        let quoted = |table: &str| table.replace('\\', "\\\\").replace('"', "\\\"");
        let mut text = Vec::new();
        for (table, lines) in by_table {
            text.push(format!("[protect.\"{}\"]", quoted(table)));
            text.extend(lines.iter().map(|line| (*line).to_owned()));
            text.push(String::new());
        }
        text.pop();
        text
    }

    /// Commands that protect the columns of tables that are there.
    pub fn migrations(&self) -> Vec<String> {
        let mut by_table: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for finding in self.findings.iter().filter(|f| f.policy.is_some()) {
            let columns = by_table.entry(&finding.table).or_default();
            let column = format!("{}:", finding.column);
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let command = |(table, columns): (&str, Vec<String>)| {
            let columns = shell_word(&columns.join("; "));
            format!(
                "onionskin migrate {} --encrypt {columns}",
                shell_word(table)
            )
        };
        by_table.into_iter().map(command).collect()
    }

    /// For people.
    pub fn document(&self) -> Document {
        const MAX_ROWS: usize = 2_000;
        let row = |finding: &ColumnFinding| {
            vec![
                finding.confidence.word().to_owned(),
                finding.table.clone(),
                match &finding.path {
                    Some(path) => format!("{} {path}", finding.column),
                    None => finding.column.clone(),
                },
                finding.kind.title().to_owned(),
                finding.evidence.join("; "),
            ]
        };
        let fact = |name: &str, value: String| (name.to_owned(), value);
        let heads = ["confidence", "table", "column", "what", "seen"];
        let mut sections = vec![Section {
            title: "Columns with personal data in plain".into(),
            grid: Some(Grid {
                heads: heads.map(str::to_owned).to_vec(),
                rows: self.findings.iter().take(MAX_ROWS).map(row).collect(),
                omitted: self.findings.len().saturating_sub(MAX_ROWS) + self.omitted,
            }),
            ..Section::default()
        }];
        if !self.policy().is_empty() {
            sections.push(Section {
                title: "A policy for new tables".into(),
                prose: vec![
                    "For onionskin.toml. Nothing is searchable: give capabilities to columns that are searched.".into(),
                ],
                block: self.policy(),
                ..Section::default()
            });
            sections.push(Section {
                title: "Commands for the tables that are there".into(),
                prose: vec!["Try each with --dry-run first.".into()],
                block: self.migrations(),
                ..Section::default()
            });
        }
        if !self.left_out.is_empty() {
            sections.push(Section {
                title: "Not looked at".into(),
                prose: vec!["What stands here may hold personal data.".into()],
                block: self.left_out.clone(),
                ..Section::default()
            });
        }
        Document {
            title: "Personal data in plain".into(),
            summary: self.summary(),
            facts: vec![
                fact("server", self.server.clone()),
                fact("address", self.address.clone()),
                fact("database", self.database.clone()),
                fact(
                    "looked at",
                    format!(
                        "{}, {} in plain, {} protected, {}",
                        count(self.tables, "table"),
                        count(self.columns, "column"),
                        self.sealed,
                        count(self.rows, "row")
                    ),
                ),
                fact(
                    "made",
                    format!("{}, onionskin {}", self.made, self.onionskin),
                ),
            ],
            sections,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_can_be_read_again() {
        assert_eq!(toml_key("email"), "email");
        assert_eq!(toml_key("e\"m\\ail"), "\"e\\\"m\\\\ail\"");
        assert_eq!(toml_key("größe"), "\"größe\"");
    }
}
