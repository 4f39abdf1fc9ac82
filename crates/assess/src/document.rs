//! A report as a document: sections with entries and grids. What it looks like is decided by the
//! writers beside it, which know nothing of servers.

use crate::finding::{Finding, Severity, State};

/// The whole of it.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Its headline.
    pub title: String,
    /// One sentence that sums it up.
    pub summary: String,
    /// What was looked at, as pairs.
    pub facts: Vec<(String, String)>,
    /// In their order.
    pub sections: Vec<Section>,
}

/// A part of it.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its headline.
    pub title: String,
    /// Sentences below it.
    pub prose: Vec<String>,
    /// Findings.
    pub entries: Vec<Entry>,
    /// A table, if there is one.
    pub grid: Option<Grid>,
    /// Lines to be copied as they are, such as a configuration.
    pub block: Vec<String>,
}

/// A finding.
#[derive(Clone, Debug)]
pub struct Entry {
    /// How it was found.
    pub state: State,
    /// How much it shows.
    pub severity: Option<Severity>,
    /// Its stable code.
    pub code: String,
    /// What was looked at.
    pub title: String,
    /// Sentences.
    pub prose: Vec<String>,
    /// What was seen.
    pub evidence: Vec<String>,
    /// How many more lines there were.
    pub omitted: usize,
    /// What closes it.
    pub mend: Option<String>,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// Heads of the columns.
    pub heads: Vec<String>,
    /// Rows with as many cells.
    pub rows: Vec<Vec<String>>,
    /// How many more rows there were.
    pub omitted: usize,
}

impl Entry {
    /// As a finding stands in the report.
    pub fn of(finding: &Finding) -> Self {
        let mut prose: Vec<String> = finding.reason.iter().cloned().collect();
        if let Some(needs) = &finding.needs {
            prose.push(match finding.state {
                State::NotVisible => format!("Not visible: needs {needs}"),
                _ => format!("More may lie open that is not visible: needs {needs}"),
            });
        }
        Self {
            state: finding.state,
            severity: finding.severity,
            code: finding.code.clone(),
            title: finding.title.clone(),
            prose,
            evidence: finding.evidence.clone(),
            omitted: finding.omitted,
            mend: finding.mend.clone(),
        }
    }

    /// `open, high`
    pub fn label(&self) -> String {
        match self.severity {
            Some(severity) => format!("{}, {}", self.state.word(), severity.word()),
            None => self.state.word().into(),
        }
    }
}
