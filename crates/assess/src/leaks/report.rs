//! The report: as data, and as a document.

use serde::{Deserialize, Serialize};

use super::{
    advice::Risk,
    capability::Capability,
    company::{LinkLeak, PairLeak},
    figures::Figures,
    tally::{ClassAtRisk, Spread},
};
use crate::{
    document::{Document, Grid, Section},
    text::count,
};

/// What `report.json` says that it is.
pub const FORMAT: &str = "onionskin-assess-leaks";
/// The version of its structure.
pub const VERSION: u32 = 1;
/// Rows of a grid that are shown.
const MAX_ROWS: usize = 2_000;

/// What one attack recovered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attack {
    /// Its name.
    pub attack: String,
    /// The share of rows.
    pub rows: Spread,
    /// The share of different values.
    pub values: Spread,
    /// The share of digits of keys, or of grams, that were read.
    pub parts: Option<Spread>,
}

/// A column under one capability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnLeak {
    /// The table.
    pub table: String,
    /// Its name.
    pub column: String,
    /// Its type.
    pub sql_type: String,
    /// What it is attacked for.
    pub capability: Capability,
    /// What can be said without the truth.
    pub figures: Figures,
    /// The share of rows that the most frequent known value is right for.
    pub blind: Option<Spread>,
    /// Attacks whose success was measured, in the order in which they were played.
    pub attacks: Vec<Attack>,
    /// Classes of values, by the attack that recovered most.
    pub classes: Vec<ClassAtRisk>,
    /// How much it tells; `None` where success cannot be measured.
    pub risk: Option<Risk>,
    /// What to do.
    pub advice: Option<String>,
}

/// `report.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaksReport {
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
    /// Whether nothing was read but what the server has.
    pub as_server: bool,
    /// What the attacker knew, in words.
    pub knowledge: String,
    /// How often the attacks were played.
    pub seeds: u32,
    /// Tables that were read.
    pub tables: usize,
    /// Their rows.
    pub rows: u64,
    /// By table and column, what shows least first.
    pub columns: Vec<ColumnLeak>,
    /// Two columns at once.
    pub pairs: Vec<PairLeak>,
    /// Columns that share tokens.
    pub links: Vec<LinkLeak>,
    /// What was not attacked, or not in whole, and why.
    pub left_out: Vec<String>,
}

impl ColumnLeak {
    /// The attack that recovered most rows.
    pub fn best(&self) -> Option<&Attack> {
        let attacks = self.attacks.iter();
        attacks.max_by(|a, b| a.rows.mean.total_cmp(&b.rows.mean))
    }

    fn name(&self) -> String {
        format!("{}.{}", self.table, self.column)
    }
}

fn bits(bits: f64) -> String {
    // no "-0.0": a sum of logarithms may end a little below zero
    format!("{:.1}", (bits * 10.0).round() / 10.0 + 0.0)
}

fn percent(share: f64) -> String {
    Spread::of(&[share]).unwrap_or_default().shown()
}

impl LeaksReport {
    /// Columns and capabilities that tell something.
    pub fn at_risk(&self) -> impl Iterator<Item = &ColumnLeak> {
        self.columns.iter().filter(|c| c.risk > Some(Risk::Little))
    }

    /// Whether nothing was found, and nothing left out.
    pub fn is_clean(&self) -> bool {
        self.at_risk().next().is_none() && self.left_out.is_empty()
    }

    /// One sentence.
    pub fn summary(&self) -> String {
        let left_out = match self.left_out.len() {
            0 => String::new(),
            parts => format!("; {} not attacked", count(parts, "part")),
        };
        if self.as_server {
            return format!(
                "{} of protected columns looked at as the server does; success cannot be measured so{left_out}",
                count(self.columns.len(), "stand-in")
            );
        }
        let of = |risk: Risk| self.columns.iter().filter(|c| c.risk == Some(risk)).count();
        format!(
            "{} attacked, each for one capability: {} would tell much, {} some, {} little{left_out}",
            count(self.columns.len(), "column"),
            of(Risk::Much),
            of(Risk::Some),
            of(Risk::Little)
        )
    }

    fn results(&self) -> Section {
        let row = |leak: &ColumnLeak| {
            let best = leak.best();
            let of = |spread: Option<&Spread>| spread.map_or_else(String::new, Spread::shown);
            vec![
                leak.name(),
                leak.capability.word(),
                leak.risk.map_or("", Risk::word).into(),
                of(best.map(|b| &b.rows)),
                of(best.map(|b| &b.values)),
                of(leak.blind.as_ref()),
                best.map_or_else(String::new, |b| b.attack.clone()),
                leak.advice.clone().unwrap_or_default(),
            ]
        };
        Section {
            title: "What each capability would give away".into(),
            prose: vec![
                "Rows and values that the best attack recovers, and rows that blind guessing gets right. Intervals are the least and the greatest of the seeds.".into(),
            ],
            grid: grid(
                &["column", "capability", "tells", "rows", "values", "blind", "best attack", "advice"],
                self.columns.iter().map(row).collect(),
            ),
            ..Section::default()
        }
    }

    fn every_attack(&self) -> Section {
        let rows = self.columns.iter().flat_map(|leak| {
            leak.attacks.iter().map(|attack| {
                let parts = attack.parts.as_ref();
                vec![
                    leak.name(),
                    leak.capability.word(),
                    attack.attack.clone(),
                    attack.rows.shown(),
                    attack.values.shown(),
                    parts.map_or_else(String::new, Spread::shown),
                ]
            })
        });
        Section {
            title: "Every attack".into(),
            prose: vec!["Parts are digits of order keys, and grams of texts.".into()],
            grid: grid(
                &["column", "capability", "attack", "rows", "values", "parts"],
                rows.collect(),
            ),
            ..Section::default()
        }
    }

    fn shapes(&self) -> Section {
        let row = |leak: &ColumnLeak| {
            let figures = &leak.figures;
            let or_none = |share: Option<f64>| share.map_or_else(String::new, percent);
            vec![
                leak.name(),
                leak.capability.word(),
                figures.rows.to_string(),
                figures.tokens.to_string(),
                bits(figures.bits),
                figures.bits_left.map_or_else(String::new, bits),
                percent(figures.alone),
                figures.key_bits.map_or_else(String::new, |[all, left]| {
                    format!("{} of {all:.0}", bits(left))
                }),
                or_none(figures.apart),
                or_none(figures.agree),
                figures
                    .beside
                    .map_or_else(String::new, |rows| format!("{rows:.0}")),
            ]
        };
        Section {
            title: "What the server sees".into(),
            prose: vec![
                "Bits left are those of a row's value for somebody who knows exactly how frequent each value is. Bits of keys are those that keys alone do not tell.".into(),
            ],
            grid: grid(
                &[
                    "column",
                    "capability",
                    "rows",
                    "stand-ins",
                    "bits",
                    "bits left",
                    "like no other",
                    "bits of keys left",
                    "apart from what is known",
                    "attacks agree",
                    "rows read beside",
                ],
                self.columns.iter().map(row).collect(),
            ),
            ..Section::default()
        }
    }

    fn classes(&self) -> Option<Section> {
        let rows = self.at_risk().flat_map(|leak| {
            leak.classes.iter().map(|class| {
                vec![
                    leak.name(),
                    leak.capability.word(),
                    class.by.clone(),
                    class.class.clone(),
                    percent(class.rows),
                    percent(class.recovered),
                ]
            })
        });
        let rows: Vec<_> = rows.collect();
        (!rows.is_empty()).then(|| Section {
            title: "Classes at risk".into(),
            prose: vec![
                "Values by how many rows have them, how long they are, and their shape, as far as the capability tells something.".into(),
            ],
            grid: grid(
                &["column", "capability", "by", "class", "rows", "recovered"],
                rows,
            ),
            ..Section::default()
        })
    }

    fn company(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        if !self.pairs.is_empty() {
            let rows = self.pairs.iter().flat_map(|pair| {
                [0, 1].map(|at: usize| {
                    vec![
                        format!("{}.{}", pair.table, pair.columns[at]),
                        pair.columns[1 - at].clone(),
                        bits(pair.shared_bits),
                        pair.alone[at].shown(),
                        pair.together[at].shown(),
                    ]
                })
            });
            sections.push(Section {
                title: "Two columns at once".into(),
                prose: vec!["Rows that eq gives away by frequency, alone and together with another column's tokens.".into()],
                grid: grid(
                    &["column", "together with", "bits shared", "rows, alone", "rows, together"],
                    rows.collect(),
                ),
                ..Section::default()
            });
        }
        if !self.links.is_empty() {
            let or_none = |spread: &Option<Spread>| spread.map_or_else(String::new, |s| s.shown());
            let row = |link: &LinkLeak| {
                vec![
                    link.parent.clone(),
                    link.child.clone(),
                    percent(link.linked),
                    percent(link.alone),
                    or_none(&link.by_itself),
                    or_none(&link.by_link),
                ]
            };
            sections.push(Section {
                title: "Linked columns".into(),
                prose: vec!["Columns with common tokens. Rows that one gives away by itself, and by the frequencies of the other.".into()],
                grid: grid(
                    &["column", "linked from", "rows linked", "with a number of rows of their own", "rows, by itself", "rows, by the link"],
                    self.links.iter().map(row).collect(),
                ),
                ..Section::default()
            });
        }
        sections
    }

    /// For people.
    pub fn document(&self) -> Document {
        let fact = |name: &str, value: String| (name.to_owned(), value);
        let mut sections = Vec::new();
        if !self.as_server {
            sections.push(self.results());
            sections.push(self.every_attack());
        }
        sections.push(self.shapes());
        sections.extend(self.classes());
        sections.extend(self.company());
        if self.as_server {
            sections.push(Section {
                title: "What cannot be measured so".into(),
                prose: vec![
                    "How many rows an attack recovers needs the truth, which the server does not have. Where the stand-ins are little apart from what is known, and attacks agree, they are likely right. Run this through the proxy to know.".into(),
                ],
                ..Section::default()
            });
        }
        if !self.left_out.is_empty() {
            sections.push(Section {
                title: "Not attacked".into(),
                prose: vec!["What stands here may leak as well.".into()],
                block: self.left_out.clone(),
                ..Section::default()
            });
        }
        let how = match self.as_server {
            true => "as the server",
            false => "as an application",
        };
        Document {
            title: "What protected columns would leak".into(),
            summary: self.summary(),
            facts: vec![
                fact("server", self.server.clone()),
                fact("address", self.address.clone()),
                fact("database", self.database.clone()),
                fact(
                    "read",
                    format!(
                        "{}, {}, {how}",
                        count(self.tables, "table"),
                        count(self.rows as usize, "row")
                    ),
                ),
                fact("the attacker knows", self.knowledge.clone()),
                fact("seeds", self.seeds.to_string()),
                fact(
                    "made",
                    format!("{}, onionskin {}", self.made, self.onionskin),
                ),
            ],
            sections,
        }
    }
}

fn grid(heads: &[&str], mut rows: Vec<Vec<String>>) -> Option<Grid> {
    let omitted = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    Some(Grid {
        heads: heads.iter().map(|head| (*head).to_owned()).collect(),
        rows,
        omitted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_below_zero() {
        assert_eq!(bits(-0.04), "0.0");
        assert_eq!(bits(-0.0), "0.0");
        assert_eq!(bits(1.25), "1.3");
    }
}
