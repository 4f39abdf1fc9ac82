//! The report: as data, and as a document.

use serde::{Deserialize, Serialize};

use crate::{
    document::{Document, Grid, Section},
    text::count,
};

/// What `report.json` says that it is.
pub const FORMAT: &str = "onionskin-assess-queries";
/// The version of its structure.
pub const VERSION: u32 = 1;

/// A statement's shape, and how often it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    /// `?` in the place of values.
    pub shape: String,
    /// How often.
    pub count: u64,
}

/// A capability of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capability {
    /// As it stands in `[protect]`.
    pub word: String,
    /// What it shows the server.
    pub shows: String,
    /// A key or foreign key of the definition needs it.
    pub definition: bool,
    /// Statements that need it, the most frequent first.
    pub shapes: Vec<Counted>,
    /// How many more there are.
    pub omitted: usize,
    /// Bytes that each row takes for it; at most so many for `like`.
    pub bytes: u64,
}

/// A protected column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnReport {
    /// Its table.
    pub table: String,
    /// Its name.
    pub column: String,
    /// Its type.
    pub sql_type: String,
    /// Roles in which it stands, and how often.
    pub roles: Vec<(String, u64)>,
    /// What the server may do.
    pub capabilities: Vec<Capability>,
    /// Bytes that each row takes for sealing.
    pub sealed_bytes: u64,
    /// Rows of the table, about.
    pub rows: u64,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapeReport {
    /// `?` in the place of values.
    pub shape: String,
    /// Its database.
    pub database: String,
    /// How often.
    pub count: u64,
    /// 0: relayed. Nothing: it does not run, or nothing is known of it.
    pub tier: Option<u8>,
    /// Large tables that are read whole.
    pub whole: Vec<String>,
    /// The code of the refusal.
    pub refused: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// A capability by which an earlier tier does it, and that tier.
    pub faster: Option<(String, u8)>,
    /// What becomes of it while some tables are protected already and others not yet, if that is
    /// less than before and afterwards.
    #[serde(default)]
    pub between: Option<String>,
}

/// `report.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueriesReport {
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
    /// Where the statements are from.
    pub source: String,
    /// Whether there is a scratch engine.
    pub engine: bool,
    /// Rows of a table that may be read whole.
    pub small: u64,
    /// Protected columns.
    pub columns: Vec<ColumnReport>,
    /// Columns that stay plain though they were asked for, and why.
    pub plain: Vec<(String, String)>,
    /// Columns that were not asked for, and why they are protected.
    pub added: Vec<(String, String)>,
    /// Statements, the most frequent first.
    pub shapes: Vec<ShapeReport>,
    /// `[protect]`, for onionskin.toml.
    pub policy: Vec<String>,
    /// Commands for tables that are there, in their order.
    pub commands: Vec<String>,
    /// What could not be read, and how often.
    pub skipped: Vec<(String, u64)>,
    /// What was not looked at, and why.
    pub left_out: Vec<String>,
    /// How often the planner was asked.
    pub asked: usize,
}

/// Rows of a table in a document.
const MAX_ROWS: usize = 500;

impl QueriesReport {
    /// Statements that do not run, or of which nothing is known.
    pub fn refused(&self) -> impl Iterator<Item = &ShapeReport> {
        self.shapes.iter().filter(|shape| shape.tier.is_none())
    }

    /// Statements that run and read large tables whole.
    pub fn wide(&self) -> impl Iterator<Item = &ShapeReport> {
        self.shapes.iter().filter(|shape| !shape.whole.is_empty())
    }

    /// Statements that are not carried while some tables are protected already and others not yet,
    /// and what becomes of them then.
    pub fn between(&self) -> impl Iterator<Item = (&ShapeReport, &str)> {
        let shapes = self.shapes.iter();
        shapes.filter_map(|shape| Some((shape, shape.between.as_deref()?)))
    }

    /// Whether every statement was read, and is carried.
    pub fn is_clean(&self) -> bool {
        let is_carried = self.refused().next().is_none() && self.wide().next().is_none();
        is_carried && self.skipped.is_empty() && self.left_out.is_empty() && self.plain.is_empty()
    }

    /// One sentence.
    pub fn summary(&self) -> String {
        let capabilities: usize = self.columns.iter().map(|c| c.capabilities.len()).sum();
        format!(
            "{} and {} carry {} of {}; {} whole tables, {} refused",
            count(self.columns.len(), "sealed column"),
            match capabilities {
                1 => "1 capability".to_owned(),
                _ => format!("{capabilities} capabilities"),
            },
            self.shapes.len() - self.refused().count() - self.wide().count(),
            count(self.shapes.len(), "shape"),
            match self.wide().count() {
                1 => "1 reads".to_owned(),
                many => format!("{many} read"),
            },
            match self.refused().count() {
                1 => "1 is".to_owned(),
                many => format!("{many} are"),
            },
        )
    }

    /// For people.
    pub fn document(&self) -> Document {
        let fact = |name: &str, value: String| (name.to_owned(), value);
        let total: u64 = self.shapes.iter().map(|shape| shape.count).sum();
        let mut sections = vec![self.policy_section()];
        if !self.commands.is_empty() {
            sections.push(self.commands_section());
        }
        if !self.columns.is_empty() {
            sections.extend(self.columns_sections());
        }
        sections.push(self.tiers_section());
        sections.extend(self.shapes_sections());
        sections.extend(self.rest_sections());
        Document {
            title: "What the application asks".into(),
            summary: self.summary(),
            facts: vec![
                fact("server", self.server.clone()),
                fact("address", self.address.clone()),
                fact("database", self.database.clone()),
                fact(
                    "statements",
                    format!(
                        "{}: {total}, {}",
                        self.source,
                        count(self.shapes.len(), "shape")
                    ),
                ),
                fact(
                    "scratch engine",
                    if self.engine { "yes" } else { "no" }.to_owned(),
                ),
                fact("small tables", format!("up to {} rows", self.small)),
                fact(
                    "made",
                    format!("{}, onionskin {}", self.made, self.onionskin),
                ),
            ],
            sections,
        }
    }

    fn policy_section(&self) -> Section {
        Section {
            title: "The policy".into(),
            prose: vec![
                match self.policy.is_empty() {
                    true => "Nothing is to be protected: no column that was asked for can be.",
                    false => {
                        "For onionskin.toml. Every capability is needed by a statement or a key below."
                    }
                }
                .into(),
            ],
            block: self.policy.clone(),
            ..Section::default()
        }
    }

    fn commands_section(&self) -> Section {
        Section {
            title: "Commands for the tables that are there".into(),
            prose: vec![
                "In this order; try each migration with --dry-run first. ALTER TABLE goes through the proxy.".into(),
            ],
            block: self.commands.clone(),
            ..Section::default()
        }
    }

    fn columns_sections(&self) -> Vec<Section> {
        let mut needs = Vec::new();
        let mut storage = Vec::new();
        for column in &self.columns {
            let name = format!("{}.{}", column.table, column.column);
            let roles: Vec<String> = column
                .roles
                .iter()
                .map(|(role, count)| format!("{role} ({count})"))
                .collect();
            let roles = roles.join(", ");
            let mut bytes = vec![format!("sealed {}", column.sealed_bytes)];
            let mut sum = column.sealed_bytes;
            for capability in &column.capabilities {
                let mut why: Vec<String> = Vec::new();
                why.extend(
                    capability
                        .definition
                        .then(|| "a key of the definition".to_owned()),
                );
                let shapes = capability.shapes.iter();
                why.extend(shapes.map(|s| format!("{} × {}", s.count, s.shape)));
                if capability.omitted > 0 {
                    why.push(format!("{} more", capability.omitted));
                }
                needs.push(vec![
                    name.clone(),
                    roles.clone(),
                    capability.word.clone(),
                    capability.shows.clone(),
                    why.join("; "),
                ]);
                bytes.push(format!("{} {}", capability.word, capability.bytes));
                sum += capability.bytes;
            }
            if column.capabilities.is_empty() {
                needs.push(vec![
                    name.clone(),
                    roles,
                    "none".into(),
                    NOTHING.into(),
                    String::new(),
                ]);
            }
            storage.push(vec![
                name,
                bytes.join(" + "),
                column.rows.to_string(),
                sum.saturating_mul(column.rows).to_string(),
            ]);
        }
        vec![
            Section {
                title: "Columns, and what needs their capabilities".into(),
                grid: grid(
                    &["column", "stands in", "capability", "shows the server", "is needed by"],
                    needs,
                ),
                ..Section::default()
            },
            Section {
                title: "Storage".into(),
                prose: vec![
                    "Bytes that a row takes more, without indexes; those of like are the most that there may be.".into(),
                ],
                grid: grid(&["column", "bytes a row", "rows", "bytes"], storage),
                ..Section::default()
            },
        ]
    }

    fn tiers_section(&self) -> Section {
        let of_tier = |tier: u8| {
            let of = self.shapes.iter().filter(move |s| s.tier == Some(tier));
            (of.clone().count(), of.map(|s| s.count).sum::<u64>())
        };
        let titles = [
            "relayed: nothing protected is near",
            "1: done by the server",
            "2: finished by the proxy",
            "3: done by the scratch engine",
        ];
        let mut rows = Vec::new();
        for (tier, title) in (0..).zip(titles) {
            let (shapes, statements) = of_tier(tier);
            rows.push(vec![
                title.to_owned(),
                shapes.to_string(),
                statements.to_string(),
            ]);
        }
        let statements: u64 = self.refused().map(|s| s.count).sum();
        rows.push(vec![
            "refused, or not judged".into(),
            self.refused().count().to_string(),
            statements.to_string(),
        ]);
        Section {
            title: "Tiers".into(),
            grid: grid(&["tier", "shapes", "statements"], rows),
            ..Section::default()
        }
    }

    fn shapes_sections(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        let refused = self.refused().map(|shape| {
            vec![
                shape.count.to_string(),
                shape.shape.clone(),
                shape.refused.clone().unwrap_or_else(|| "not judged".into()),
                shape.reason.clone().unwrap_or_default(),
            ]
        });
        let refused: Vec<_> = refused.collect();
        if !refused.is_empty() {
            sections.push(Section {
                title: "Refused".into(),
                prose: vec!["No capability that was tried carries these.".into()],
                grid: grid(&["count", "shape", "code", "why"], refused),
                ..Section::default()
            });
        }
        let wide = self.wide().map(|shape| {
            vec![
                shape.count.to_string(),
                shape.shape.clone(),
                shape.tier.unwrap_or_default().to_string(),
                shape.whole.join(", "),
            ]
        });
        let wide: Vec<_> = wide.collect();
        if !wide.is_empty() {
            sections.push(Section {
                title: "Read whole tables".into(),
                prose: vec![
                    "These run. Every row of a large table is read and opened, and no capability that was tried changes that.".into(),
                ],
                grid: grid(&["count", "shape", "tier", "tables"], wide),
                ..Section::default()
            });
        }
        let between = self.between().map(|(shape, what)| {
            vec![
                shape.count.to_string(),
                shape.shape.clone(),
                what.to_owned(),
            ]
        });
        let between: Vec<_> = between.collect();
        if !between.is_empty() {
            sections.push(Section {
                title: "Between the commands".into(),
                prose: vec![
                    "While some of their tables are protected already and others not yet, this becomes of these."
                        .into(),
                    match self.engine {
                        true => "They are carried before and afterwards.".into(),
                        false => "They are carried before and afterwards. A scratch engine may carry them meanwhile.".into(),
                    },
                ],
                grid: grid(&["count", "shape", "meanwhile"], between),
                ..Section::default()
            });
        }
        let faster = self.shapes.iter().filter_map(|shape| {
            let (capability, tier) = shape.faster.as_ref()?;
            Some(vec![
                shape.count.to_string(),
                shape.shape.clone(),
                shape.tier.unwrap_or_default().to_string(),
                format!("{capability} makes it tier {tier}"),
            ])
        });
        let faster: Vec<_> = faster.collect();
        if !faster.is_empty() {
            sections.push(Section {
                title: "Would be faster with one more capability".into(),
                grid: grid(&["count", "shape", "tier", "with"], faster),
                ..Section::default()
            });
        }
        sections
    }

    fn rest_sections(&self) -> Vec<Section> {
        let lines = |pairs: &[(String, String)]| -> Vec<String> {
            pairs
                .iter()
                .map(|(name, why)| format!("{name}: {why}"))
                .collect()
        };
        let skipped = self.skipped.iter();
        let skipped = skipped.map(|(what, count)| format!("{count} {what}"));
        [
            ("Protected as well", lines(&self.added)),
            ("Stay plain", lines(&self.plain)),
            ("Not read", skipped.collect()),
            ("Not looked at", self.left_out.clone()),
        ]
        .into_iter()
        .filter(|(_, block)| !block.is_empty())
        .map(|(title, block)| Section {
            title: title.into(),
            block,
            ..Section::default()
        })
        .collect()
    }
}

/// What a sealed column shows without any capability.
const NOTHING: &str = "NULL or not, length of texts";

fn grid(heads: &[&str], mut rows: Vec<Vec<String>>) -> Option<Grid> {
    let omitted = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    Some(Grid {
        heads: heads.iter().map(|head| (*head).to_owned()).collect(),
        rows,
        omitted,
    })
}
