//! The one table for the decision: each layer, and what it costs.

use super::{Report, Scenario, change};
use crate::{
    metric::{Better, Column, METRICS},
    stats::{Ratio, Verdict},
};

/// A layer of encryption, or a step of one.
pub struct Row {
    /// Place of the scenario in the report.
    pub scenario: usize,
    /// The scenario's headline.
    pub title: String,
    /// The variant.
    pub variant: String,
    /// What it is compared with.
    pub baseline: String,
    /// In the order of [`Column::ALL`].
    pub cells: [Option<Cell>; 5],
}

/// A cost, over all comparisons of a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The smallest ratio to the baseline.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// In how many comparisons it was measured.
    pub comparisons: usize,
    /// In how many of them there is a difference.
    pub different: usize,
    /// No comparison has more than one pair.
    pub single: bool,
    /// Which direction is better.
    pub better: Better,
}

impl Cell {
    /// Of the ratios of a metric.
    fn of(ratios: &[&Ratio], better: Better) -> Option<Self> {
        Some(Self {
            low: ratios.iter().map(|r| r.ratio).reduce(f64::min)?,
            high: ratios.iter().map(|r| r.ratio).reduce(f64::max)?,
            comparisons: ratios.len(),
            different: ratios
                .iter()
                .filter(|r| matches!(r.verdict, Verdict::Higher | Verdict::Lower))
                .count(),
            single: ratios.iter().all(|r| r.verdict == Verdict::TooFewPairs),
            better,
        })
    }

    /// The figure.
    pub fn text(&self) -> String {
        let (low, high) = (change(self.low), change(self.high));
        match low == high {
            true => low,
            false => format!("{low} to {high}"),
        }
    }

    /// What may be said about it.
    pub fn remark(&self) -> String {
        match (self.single, self.different, self.comparisons) {
            (true, _, _) => "one pair: nothing is known about the noise".into(),
            (_, 0, _) => "no difference measured".into(),
            (_, different, all) if different < all => {
                format!("a difference in {different} of {all} comparisons")
            }
            _ => String::new(),
        }
    }

    /// Whether it is worse than the baseline somewhere, as far as was measured.
    pub fn is_worse(&self) -> bool {
        self.different > 0
            && match self.better {
                Better::Higher => self.low < 1.0,
                Better::Lower => self.high > 1.0,
            }
    }
}

/// One row for each variant that has a ratio.
pub fn rows(report: &Report) -> Vec<Row> {
    let mut rows = Vec::new();
    for (number, scenario) in report.scenarios.iter().enumerate() {
        for (name, label) in variants(scenario) {
            let cells = Column::ALL.map(|column| cell(scenario, &name, column));
            if cells.iter().any(Option::is_some) {
                let baseline = scenario
                    .groups
                    .iter()
                    .find(|group| {
                        group
                            .variant(&name)
                            .is_some_and(|variant| !variant.ratios.is_empty())
                    })
                    .and_then(|group| group.variant(&group.baseline))
                    .map_or_else(String::new, |variant| variant.label.clone());
                rows.push(Row {
                    scenario: number,
                    title: scenario.full_title(),
                    variant: label,
                    baseline,
                    cells,
                });
            }
        }
    }
    rows
}

/// Names and labels in the order of the scenario, each once.
fn variants(scenario: &Scenario) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for variant in scenario.groups.iter().flat_map(|group| &group.variants) {
        if found.iter().all(|(name, _)| *name != variant.name) {
            found.push((variant.name.clone(), variant.label.clone()));
        }
    }
    found
}

fn cell(scenario: &Scenario, variant: &str, column: Column) -> Option<Cell> {
    // The first metric of the column that the scenario has.
    METRICS
        .iter()
        .filter(|metric| metric.decides == Some(column))
        .find_map(|metric| {
            let ratios: Vec<&Ratio> = scenario
                .groups
                .iter()
                .filter_map(|group| group.variant(variant)?.ratios.get(metric.name))
                .collect();
            Cell::of(&ratios, metric.better)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn a_row_says_what_was_measured_and_what_not() {
        let report = sample();
        let rows = rows(&report);
        assert_eq!(rows.len(), 1);
        let cell = rows[0].cells[0].expect("throughput");
        assert_eq!(cell.text(), "−10 %");
        assert_eq!(cell.remark(), "");
        assert!(cell.is_worse());
        assert!(rows[0].cells[2].is_none());
        let noise = Cell {
            different: 0,
            low: 0.97,
            high: 1.02,
            ..cell
        };
        assert_eq!(noise.text(), "−3.0 % to +2.0 %");
        assert_eq!(noise.remark(), "no difference measured");
        assert!(!noise.is_worse());
    }
}
