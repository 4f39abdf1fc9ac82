//! Two reports side by side: `onionskin bench compare A.json B.json`.
//!
//! The reports are of two days, programs or machines; nothing was interleaved, so there are no
//! pairs and there is no interval. A difference is called one if the runs of one side all lie
//! beyond all runs of the other, and is more than the spread within either side. What is compared
//! best are ratios to the baseline, which each side measured against itself.

use std::fmt::Write;

use crate::{
    metric::METRICS,
    report::{Group, Report, Scenario},
    stats::Summary,
};

/// One line for each metric that both have.
#[derive(Debug, PartialEq)]
pub struct Line {
    /// Scenario and group.
    pub place: String,
    /// The variant.
    pub variant: String,
    /// The metric's label and unit.
    pub metric: String,
    /// Of the first report.
    pub first: Summary,
    /// Of the second.
    pub second: Summary,
    /// Second over first, by medians.
    pub ratio: f64,
    /// Ratios to the baseline of each side, if both have them.
    pub to_baseline: Option<(f64, f64)>,
    /// What may be said.
    pub differs: bool,
}

/// Compares what both reports have.
pub fn compare(first: &Report, second: &Report) -> Vec<Line> {
    let mut lines = Vec::new();
    for scenario in &first.scenarios {
        let Some(other) = second.scenarios.iter().find(|other| same(scenario, other)) else {
            continue;
        };
        for group in &scenario.groups {
            if let Some(other) = other
                .groups
                .iter()
                .find(|other| other.label == group.label && other.parameters == group.parameters)
            {
                lines.extend(lines_of(&scenario.name, group, other));
            }
        }
    }
    lines
}

fn same(a: &Scenario, b: &Scenario) -> bool {
    let family = |s: &Scenario| s.server.as_ref().map(|server| server.family.clone());
    a.name == b.name && family(a) == family(b)
}

fn lines_of(scenario: &str, group: &Group, other: &Group) -> Vec<Line> {
    let mut lines = Vec::new();
    for variant in &group.variants {
        let Some(theirs) = other.variant(&variant.name) else {
            continue;
        };
        for metric in METRICS.iter().filter(|metric| metric.decides.is_some()) {
            let (Some(first), Some(second)) = (
                variant.summaries.get(metric.name),
                theirs.summaries.get(metric.name),
            ) else {
                continue;
            };
            let ratios = (
                variant.ratios.get(metric.name),
                theirs.ratios.get(metric.name),
            );
            lines.push(Line {
                place: format!("{scenario}: {}", group.label),
                variant: variant.label.clone(),
                metric: format!("{} ({})", metric.label, metric.unit),
                first: *first,
                second: *second,
                ratio: second.median / first.median,
                to_baseline: match ratios {
                    (Some(a), Some(b)) => Some((a.ratio, b.ratio)),
                    _ => None,
                },
                differs: apart(first, second),
            });
        }
    }
    lines
}

/// Whether no run of one lies among the runs of the other; of single runs nothing is known.
fn apart(a: &Summary, b: &Summary) -> bool {
    let (low, high) = if a.median < b.median { (a, b) } else { (b, a) };
    let gap = high.low - low.high;
    let spread = (a.high - a.low).max(b.high - b.low);
    a.runs.min(b.runs) > 1 && gap > 0.0 && gap > spread / 2.0
}

/// For the terminal.
pub fn text(first: &Report, second: &Report, lines: &[Line]) -> String {
    let mut text = format!(
        "A: {} ({}), {}\nB: {} ({}), {}\n",
        first.started,
        first.size,
        first.machine.line(),
        second.started,
        second.size,
        second.machine.line()
    );
    if !first.machine.is_same(&second.machine) {
        text += "The machines differ: only the ratios to the baseline can be compared.\n";
    }
    if lines.is_empty() {
        text += "The reports have nothing in common.\n";
        return text;
    }
    let mut place = "";
    for line in lines {
        if line.place != place {
            place = &line.place;
            let _ = write!(
                text,
                "\n{place}\n  {:<34} {:<34} {:>11} {:>11} {:>7}  {:>13}\n",
                "variant", "metric", "A", "B", "B/A", "to baseline"
            );
        }
        let _ = writeln!(
            text,
            "  {:<34} {:<34} {:>11} {:>11} {:>7.2}  {:>13}  {}",
            line.variant,
            line.metric,
            crate::report::figure(line.first.median),
            crate::report::figure(line.second.median),
            line.ratio,
            line.to_baseline
                .map_or_else(String::new, |(a, b)| format!("{a:.2} → {b:.2}")),
            if line.differs {
                ""
            } else {
                "no difference measured"
            }
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{run, sample};

    #[test]
    fn only_what_lies_apart_differs() {
        let (first, mut second) = (sample(), sample());
        let lines = compare(&first, &second);
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line.ratio == 1.0 && !line.differs));

        let group = &mut second.scenarios[0].groups[0];
        group.variants[1].runs = vec![run(0, 900.0, None), run(1, 901.0, None)];
        group.summarise();
        let lines = compare(&first, &second);
        assert!(!lines[0].differs && lines[1].differs, "{lines:?}");
        assert!(text(&first, &second, &lines).contains("no difference measured"));

        second.scenarios[0].name = "other".into();
        assert!(compare(&first, &second).is_empty());
        let spread = |low, high| Summary {
            median: (low + high) / 2.0,
            low,
            high,
            runs: 3,
        };
        assert!(!apart(&spread(1.0, 2.0), &spread(1.5, 2.5)));
        assert!(!apart(&spread(1.0, 2.0), &spread(2.1, 2.2)));
        assert!(apart(&spread(1.0, 1.1), &spread(1.3, 1.4)));
    }
}
