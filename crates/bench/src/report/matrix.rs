//! Tables over all comparisons of a scenario whose server is at several distances: one line for
//! each statement and number of clients, one column for each round trip.
//!
//! Median latencies stand beside throughputs. They say the same where the machine is quiet. Where
//! others use it, a throughput holds their moments, too.

use super::{Group, Scenario, figure, figures::ratio_text};
use crate::{
    metric::ROUND_TRIP,
    stats::{Ratio, Verdict},
};

/// A table of texts.
pub struct Matrix {
    /// What the cells are.
    pub title: String,
    /// Of the columns; the first one's are the names of lines.
    pub head: Vec<String>,
    /// As long as the head.
    pub rows: Vec<Vec<String>>,
}

/// What is compared, and how it is called.
const COMPARED: [(&str, &str); 2] = [
    ("queries_per_s", "throughput"),
    ("latency_p50_ms", "median latency"),
];

/// All tables of a scenario: throughput and latency of each variant relative to the baseline and to
/// a direct connection, then the round trips of a statement.
pub fn matrices(scenario: &Scenario) -> Vec<Matrix> {
    let Some(first) = scenario.groups.iter().find(|group| is_far(group)) else {
        return Vec::new();
    };
    let mut tables = Vec::new();
    let mut references = vec![first.baseline.as_str()];
    if first.variant("direct").is_some() && first.baseline != "direct" {
        references.push("direct");
    }
    for (n, reference) in references.iter().enumerate() {
        for variant in &first.variants {
            // Two of them are compared with each other once.
            if references[..=n].contains(&variant.name.as_str()) {
                continue;
            }
            let label = first.variant(reference).map_or(*reference, |v| &v.label);
            for (metric, name) in COMPARED {
                tables.extend(matrix(
                    scenario,
                    format!("{}: {name} relative to {label}", variant.label),
                    |group| relative(group, &variant.name, reference, metric),
                ));
            }
        }
    }
    for variant in &first.variants {
        let title = format!("{}: round trips a statement", variant.label);
        tables.extend(matrix(scenario, title, |group| {
            let found = group.variant(&variant.name)?.median("round_trips")?;
            Some(figure(found))
        }));
    }
    tables
}

fn is_far(group: &Group) -> bool {
    group.parameters.contains_key(ROUND_TRIP)
}

/// Of pairs of a round, with the interval where there is more than one pair.
fn relative(group: &Group, variant: &str, reference: &str, metric: &str) -> Option<String> {
    let (variant, reference) = (group.variant(variant)?, group.variant(reference)?);
    let pairs: Vec<(f64, f64)> = variant
        .valid()
        .filter_map(|run| {
            let other = reference.valid().find(|other| other.round == run.round)?;
            Some((*other.metrics.get(metric)?, *run.metrics.get(metric)?))
        })
        .collect();
    let ratio = Ratio::of_pairs(&pairs)?;
    Some(match ratio.verdict {
        // The interval says it.
        Verdict::NoDifference => {
            format!("{:.2} [{:.2}, {:.2}]", ratio.ratio, ratio.low, ratio.high)
        }
        _ => ratio_text(&ratio),
    })
}

/// `None` without a cell.
fn matrix(
    scenario: &Scenario,
    title: String,
    cell: impl Fn(&Group) -> Option<String>,
) -> Option<Matrix> {
    let mut columns: Vec<&str> = Vec::new();
    let mut rows: Vec<(String, Vec<(&str, String)>)> = Vec::new();
    for group in scenario.groups.iter().filter(|group| is_far(group)) {
        let column = group.parameters[ROUND_TRIP].as_str();
        let text = cell(group);
        if text.is_some() && !columns.contains(&column) {
            columns.push(column);
        }
        // Everything but the column. Lines keep the order of loads, whatever is void.
        let name = group.label.replace(&format!(", {column} {ROUND_TRIP}"), "");
        match rows.iter_mut().find(|(found, _)| *found == name) {
            Some((_, cells)) => cells.extend(text.map(|text| (column, text))),
            None => rows.push((name, text.map(|text| (column, text)).into_iter().collect())),
        }
    }
    if columns.is_empty() {
        return None;
    }
    rows.retain(|(_, cells)| !cells.is_empty());
    let mut head = vec!["load".to_owned()];
    head.extend(columns.iter().map(|ms| format!("{ms} {ROUND_TRIP}")));
    let rows = rows
        .into_iter()
        .map(|(name, cells)| {
            let of = |column: &&str| {
                let found = cells.iter().find(|(found, _)| found == column);
                found.map_or_else(String::new, |(_, text)| text.clone())
            };
            let mut row = vec![name];
            row.extend(columns.iter().map(of));
            row
        })
        .collect();
    Some(Matrix { title, head, rows })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::report::{
        Variant,
        tests::{run, sample, variant},
    };

    /// A scenario of two distances: at the far one the protected variant needs half as many
    /// round trips again.
    pub(crate) fn two_distances() -> Scenario {
        let mut scenario = sample().scenarios.remove(0);
        let runs = |values: [f64; 2], trips: Option<f64>| {
            let runs = (0..).zip(values).map(|(round, value)| {
                let mut run = run(round, value, None);
                if let Some(trips) = trips {
                    run.metrics.insert("round_trips".into(), trips);
                }
                run
            });
            runs.collect()
        };
        let named = |name: &str, label: &str, runs| Variant {
            label: label.into(),
            ..variant(name, runs)
        };
        let group = |ms: &str, protected: [f64; 2], far: bool| {
            let trips = |trips: f64| far.then_some(trips);
            let mut group = Group {
                label: format!("oltp_update_index, text, 8 threads, {ms} {ROUND_TRIP}"),
                parameters: [(ROUND_TRIP.to_owned(), ms.to_owned())].into(),
                baseline: "haproxy".into(),
                variants: vec![
                    named("haproxy", "HAProxy", runs([100.0, 200.0], trips(1.0))),
                    named("direct", "direct", runs([110.0, 220.0], trips(1.0))),
                    named("protected", "protected", runs(protected, trips(1.5))),
                ],
            };
            group.summarise();
            group
        };
        scenario.groups = vec![
            group("0", [90.0, 180.0], false),
            group("0.5", [50.0, 120.0], true),
        ];
        scenario
    }

    #[test]
    fn lines_are_loads_and_columns_are_distances() {
        let tables = matrices(&two_distances());
        let titles: Vec<&str> = tables.iter().map(|table| table.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "direct: throughput relative to HAProxy",
                "protected: throughput relative to HAProxy",
                "protected: throughput relative to direct",
                "HAProxy: round trips a statement",
                "direct: round trips a statement",
                "protected: round trips a statement",
            ]
        );
        let protected = &tables[1];
        assert_eq!(
            protected.head,
            ["load", "0 ms round trip", "0.5 ms round trip"]
        );
        assert_eq!(protected.rows.len(), 1);
        let [load, near, far] = protected.rows[0].as_slice() else {
            panic!("three cells")
        };
        assert_eq!(load, "oltp_update_index, text, 8 threads");
        assert_eq!(near, "0.90 [0.90, 0.90]");
        // The geometric mean of 0.5 and 0.6.
        assert!(far.starts_with("0.55 ["), "{far}");
        assert!(tables[2].rows[0][1].starts_with("0.82 ["));
        // Nobody counts where there is no link.
        assert_eq!(tables[5].head, ["load", "0.5 ms round trip"]);
        assert_eq!(tables[5].rows[0][1], "1.50");
        assert!(matrices(&sample().scenarios[0]).is_empty());
    }
}
