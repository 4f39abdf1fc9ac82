//! Which charts a scenario gets.

use std::collections::BTreeMap;

use super::{
    Group, Scenario, Variant,
    svg::{Axis, Bar, Line, Point, bars, lines},
};
use crate::metric::{METRICS, Metric, ROUND_TRIP, metric_of};

/// How many charts of single runs over time a scenario may have.
const OVER_TIME: usize = 6;
/// Metrics that are drawn by threads, if there is more than one number of threads.
const BY_THREADS: [&str; 3] = ["queries_per_s", "latency_p95_ms", "relay_memory_mib"];

/// All charts of a scenario, as figures.
pub fn charts(scenario: &Scenario) -> Vec<String> {
    let mut charts = by_axis(
        scenario,
        ROUND_TRIP,
        "round trip between proxy and server, ms",
    );
    // Those by threads would be a hundred more, and the tables have them.
    if charts.is_empty() {
        charts.extend(by_axis(scenario, "threads", "threads"));
    }
    charts.extend(by_axis(scenario, "updates a second", "updates a second"));
    if charts.is_empty() {
        charts.extend(scenario.groups.iter().filter_map(as_bars));
    }
    charts.extend(over_time(scenario, "memory of the relay", "MiB"));
    charts.extend(over_time(scenario, "statements", "1/s"));
    charts
}

/// A variant's colour is its place in the scenario, the same in all charts.
fn colour(scenario: &Scenario, name: &str) -> usize {
    let mut names: Vec<&str> = Vec::new();
    for variant in scenario.groups.iter().flat_map(|group| &group.variants) {
        if !names.contains(&variant.name.as_str()) {
            names.push(&variant.name);
        }
    }
    names.iter().position(|found| *found == name).unwrap_or(0)
}

/// A metric over a numeric parameter, a chart for each value of the other parameters.
fn by_axis(scenario: &Scenario, parameter: &str, x_label: &str) -> Vec<String> {
    let mut kinds: BTreeMap<String, Vec<(f64, &Group)>> = BTreeMap::new();
    for group in &scenario.groups {
        let Some(x) = group
            .parameters
            .get(parameter)
            .and_then(|text| text.parse().ok())
        else {
            continue;
        };
        let others: Vec<String> = group
            .parameters
            .iter()
            .filter(|(name, _)| *name != parameter)
            .map(|(name, value)| match value.parse::<f64>() {
                Ok(_) => format!("{value} {name}"),
                Err(_) => value.clone(),
            })
            .rev()
            .collect();
        kinds.entry(others.join(", ")).or_default().push((x, group));
    }
    let mut charts = Vec::new();
    for (kind, groups) in kinds.iter().filter(|(_, groups)| groups.len() > 1) {
        let metrics: Vec<&Metric> = match parameter {
            "threads" => BY_THREADS
                .iter()
                .filter_map(|name| metric_of(name))
                .collect(),
            ROUND_TRIP => metric_of("queries_per_s").into_iter().collect(),
            _ => ["seconds", "stall_ms", "load_kept"]
                .iter()
                .filter_map(|name| metric_of(name))
                .collect(),
        };
        for metric in metrics {
            let drawn = lines_of(scenario, groups, metric);
            if !drawn.is_empty() {
                charts.extend(lines(
                    &format!("{kind}: {}", metric.label),
                    x_label,
                    metric.unit,
                    Axis::Steps,
                    &drawn,
                ));
            }
        }
    }
    charts
}

fn lines_of(scenario: &Scenario, groups: &[(f64, &Group)], metric: &Metric) -> Vec<Line> {
    let mut drawn: Vec<Line> = Vec::new();
    for (x, group) in groups {
        for variant in &group.variants {
            let Some(summary) = variant.summaries.get(metric.name) else {
                continue;
            };
            let point = (*x, summary.median, Some((summary.low, summary.high)));
            match drawn.iter_mut().find(|line| line.label == variant.label) {
                Some(line) => line.points.push(point),
                None => drawn.push(Line {
                    label: variant.label.clone(),
                    colour: colour(scenario, &variant.name),
                    points: vec![point],
                }),
            }
        }
    }
    for line in &mut drawn {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    drawn
}

/// The first metric that decides, of all variants of a group.
fn as_bars(group: &Group) -> Option<String> {
    let metric = METRICS
        .iter()
        .filter(|metric| metric.decides.is_some() || metric.name == "call_us")
        .find(|metric| {
            group
                .variants
                .iter()
                .any(|variant| variant.summaries.contains_key(metric.name))
        })?;
    let found: Vec<Bar> = group
        .variants
        .iter()
        .enumerate()
        .filter_map(|(n, variant)| {
            let summary = variant.summaries.get(metric.name)?;
            Some(Bar {
                label: variant.label.clone(),
                colour: n,
                value: (summary.median, summary.low, summary.high),
            })
        })
        .collect();
    bars(
        &format!("{}: {}", group.label, metric.label),
        metric.unit,
        &found,
    )
}

/// The last valid run of each variant.
fn over_time(scenario: &Scenario, name: &str, unit: &str) -> Vec<String> {
    scenario
        .groups
        .iter()
        .filter_map(|group| {
            let drawn: Vec<Line> = group
                .variants
                .iter()
                .filter_map(|variant| {
                    let points = last_series(variant, name)?;
                    Some(Line {
                        label: variant.label.clone(),
                        colour: colour(scenario, &variant.name),
                        points,
                    })
                })
                .collect();
            (!drawn.is_empty()).then(|| {
                lines(
                    &format!("{}: {name} over time", group.label),
                    "seconds",
                    unit,
                    Axis::Linear,
                    &drawn,
                )
            })?
        })
        .take(OVER_TIME)
        .collect()
}

fn last_series(variant: &Variant, name: &str) -> Option<Vec<Point>> {
    let run = variant.valid().last()?;
    let series = run.series.iter().find(|series| series.name == name)?;
    // Fewer points are no line worth a chart.
    (series.points.len() > 4).then(|| {
        let step = series.points.len().div_ceil(200);
        series
            .points
            .chunks(step)
            .map(|part| {
                let mean = part.iter().map(|(_, y)| y).sum::<f64>() / part.len() as f64;
                (part[0].0, mean, None)
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::matrix::tests::two_distances;

    #[test]
    fn distances_are_an_axis() {
        let drawn = charts(&two_distances());
        assert_eq!(drawn.len(), 1, "one load, one metric");
        assert!(drawn[0].contains("round trip between proxy and server, ms"));
        for line in ["HAProxy", "direct", "protected"] {
            assert!(drawn[0].contains(line), "{line}");
        }
    }
}
