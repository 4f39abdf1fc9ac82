//! What a check says of a layer.

use serde::{Deserialize, Serialize};

/// Most lines of evidence that a finding keeps.
pub const MAX_EVIDENCE: usize = 1_000;

/// How much a finding shows to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// It takes a further step, or shows little.
    Low,
    /// Whoever has the disk, a backup or an account of some rights reads values.
    Medium,
    /// Values lie open to whoever reaches a file, the network or the server's port.
    High,
}

impl Severity {
    /// As it is shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// How a layer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Something lies open.
    Open,
    /// This account, or this machine, does not see enough to say.
    NotVisible,
    /// It was looked at, and nothing lies open.
    Closed,
    /// The server has no such layer, or it was not asked for.
    NotHere,
}

impl State {
    /// As it is shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::NotVisible => "not visible",
            Self::Closed => "closed",
            Self::NotHere => "not here",
        }
    }
}

/// Where a check looks. The order is that of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Layer {
    Columns,
    Files,
    Logs,
    Memory,
    Keys,
    Accounts,
    Network,
    Replicas,
    Leftovers,
    Backups,
    Search,
}

impl Layer {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Columns,
        Self::Files,
        Self::Logs,
        Self::Memory,
        Self::Keys,
        Self::Accounts,
        Self::Network,
        Self::Replicas,
        Self::Leftovers,
        Self::Backups,
        Self::Search,
    ];

    /// A headline.
    pub fn title(self) -> &'static str {
        match self {
            Self::Columns => "Columns that the proxy protects",
            Self::Files => "Data files",
            Self::Logs => "Logs",
            Self::Memory => "Memory and statement texts",
            Self::Keys => "Keys of the server's own encryption",
            Self::Accounts => "Accounts",
            Self::Network => "Network",
            Self::Replicas => "Replicas",
            Self::Leftovers => "Leftovers",
            Self::Backups => "Backups",
            Self::Search => "Texts in the server's files",
        }
    }
}

/// What a check makes of the facts.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Something lies open.
    Open {
        /// How much.
        severity: Severity,
        /// Why so much.
        reason: String,
        /// What was seen.
        evidence: Vec<String>,
        /// What closes it, as a command or setting.
        mend: String,
        /// What would show the rest, if not all was seen.
        needs: Option<String>,
    },
    /// It cannot be seen.
    NotVisible {
        /// The privilege, or whatever else is missing.
        needs: String,
        /// What was seen all the same.
        evidence: Vec<String>,
    },
    /// Nothing lies open.
    Closed(Vec<String>),
    /// There is no such layer.
    NotHere(String),
}

impl Verdict {
    /// Open, with all of it seen.
    pub fn open(
        severity: Severity,
        reason: &str,
        evidence: Vec<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self::Open {
            severity,
            reason: reason.into(),
            evidence,
            mend: mend.into(),
            needs: None,
        }
    }

    /// Closed, with one line of evidence.
    pub fn closed(evidence: impl Into<String>) -> Self {
        Self::Closed(vec![evidence.into()])
    }

    /// Not visible, with nothing seen.
    pub fn hidden(needs: impl Into<String>) -> Self {
        Self::NotVisible {
            needs: needs.into(),
            evidence: Vec::new(),
        }
    }

    /// The same, if only a part was seen: what is open stays open, and nothing is closed.
    pub fn seen_in_part(self, missing: Option<String>) -> Self {
        let Some(missing) = missing else {
            return self;
        };
        match self {
            Self::Open {
                severity,
                reason,
                evidence,
                mend,
                needs: _,
            } => Self::Open {
                severity,
                reason,
                evidence,
                mend,
                needs: Some(missing),
            },
            Self::Closed(evidence) => Self::NotVisible {
                needs: missing,
                evidence,
            },
            other => other,
        }
    }
}

/// A check's verdict, as it stands in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Stays the same from version to version.
    pub code: String,
    /// Where it looked.
    pub layer: Layer,
    /// What it looked at.
    pub title: String,
    /// How it was found.
    pub state: State,
    /// How much it shows, if it is open.
    pub severity: Option<Severity>,
    /// Why so much, or why there is nothing to see.
    pub reason: Option<String>,
    /// What was seen. Never a value.
    pub evidence: Vec<String>,
    /// How many more lines there were.
    pub omitted: usize,
    /// What closes it.
    pub mend: Option<String>,
    /// What has to be granted or done to see (the rest of) it.
    pub needs: Option<String>,
}

impl Finding {
    /// From a verdict.
    pub fn of(code: &str, layer: Layer, title: &str, verdict: Verdict) -> Self {
        let mut finding = Self {
            code: code.into(),
            layer,
            title: title.into(),
            state: State::NotHere,
            severity: None,
            reason: None,
            evidence: Vec::new(),
            omitted: 0,
            mend: None,
            needs: None,
        };
        let evidence = match verdict {
            Verdict::Open {
                severity,
                reason,
                evidence,
                mend,
                needs,
            } => {
                finding.state = State::Open;
                finding.severity = Some(severity);
                finding.reason = Some(reason);
                finding.mend = Some(mend);
                finding.needs = needs;
                evidence
            }
            Verdict::NotVisible { needs, evidence } => {
                finding.state = State::NotVisible;
                finding.needs = Some(needs);
                evidence
            }
            Verdict::Closed(evidence) => {
                finding.state = State::Closed;
                evidence
            }
            Verdict::NotHere(reason) => {
                finding.reason = Some(reason);
                Vec::new()
            }
        };
        finding.omitted = evidence.len().saturating_sub(MAX_EVIDENCE);
        finding.evidence = evidence;
        finding.evidence.truncate(MAX_EVIDENCE);
        finding
    }
}
