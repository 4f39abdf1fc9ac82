//! The report as Markdown: `docs/performance.md`.

use std::fmt::Write;

use super::{
    Report, Scenario, Status, decision, figure, figures::ratio_text, matrix::matrices,
    reference::references,
};
use crate::metric::{Column, METRICS};

/// All of it.
pub fn markdown(report: &Report) -> String {
    let mut text = String::from("# Performance\n\n");
    let _ = write!(
        text,
        "Made by `onionskin bench`; do not edit. {} run, {} to {}.\n\n{}.\n\n",
        capital(&report.size),
        report.started,
        report.finished,
        report.machine.line()
    );
    if let Some(reason) = &report.incomplete {
        let _ = write!(text, "**Incomplete**: {reason}.\n\n");
    }
    text += "Ratios are those of pairs of runs, close in time and in changing order; in brackets the 95 % confidence interval. An interval \
             that holds 1 is \"no difference measured\". A run counts only if its setting was proved to be in force before and after it.\n\n";
    text += "## What each layer costs\n\n| layer | compared with |";
    for column in Column::ALL {
        let _ = write!(text, " {} |", column.label());
    }
    text += "\n|---|---|";
    text += &"---|".repeat(Column::ALL.len());
    text.push('\n');
    for row in decision::rows(report) {
        let _ = write!(
            text,
            "| {}: {} | {} |",
            cell(&row.title),
            cell(&row.variant),
            cell(&row.baseline)
        );
        for found in &row.cells {
            let shown = found.as_ref().map_or_else(String::new, |found| {
                let remark = found.remark();
                match remark.is_empty() {
                    true => found.text(),
                    false => format!("{} ({remark})", found.text()),
                }
            });
            let _ = write!(text, " {shown} |");
        }
        text.push('\n');
    }
    for scenario in &report.scenarios {
        text += &section(scenario);
    }
    text += "\n## Programs\n\n| program | version |\n|---|---|\n";
    for (name, version) in &report.machine.programs {
        let _ = writeln!(text, "| {} | {} |", cell(name), cell(version));
    }
    text
}

fn section(scenario: &Scenario) -> String {
    let mut text = format!(
        "\n## {}\n\n{} {}\n",
        scenario.full_title(),
        scenario.question,
        scenario.method
    );
    if scenario.status != Status::Complete {
        let _ = write!(
            text,
            "\n**Not complete**: {}.\n",
            scenario.reason.as_deref().unwrap_or("ended early")
        );
    }
    for table in matrices(scenario) {
        let _ = write!(
            text,
            "\n### {}\n\n| {} |\n|{}\n",
            table.title,
            table.head.join(" | "),
            "---|".repeat(table.head.len())
        );
        for row in &table.rows {
            let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
    }
    for group in &scenario.groups {
        let metrics: Vec<_> = METRICS
            .iter()
            .filter(|metric| {
                group
                    .variants
                    .iter()
                    .any(|variant| variant.summaries.contains_key(metric.name))
            })
            .filter(|metric| SHOWN.contains(&metric.name))
            .collect();
        if metrics.is_empty() {
            continue;
        }
        let _ = write!(text, "\n### {}\n\n| variant |", group.label);
        for metric in &metrics {
            let _ = write!(text, " {}, {} |", metric.label, metric.unit);
        }
        text += " ratio |\n|---|";
        text += &"---|".repeat(metrics.len() + 1);
        text.push('\n');
        for variant in &group.variants {
            if variant.summaries.is_empty() {
                continue;
            }
            let _ = write!(text, "| {} |", cell(&variant.label));
            for metric in &metrics {
                let shown = variant.median(metric.name).map_or(String::new(), figure);
                let _ = write!(text, " {shown} |");
            }
            let ratio = metrics
                .first()
                .and_then(|metric| variant.ratios.get(metric.name));
            let _ = writeln!(text, " {} |", ratio.map_or_else(String::new, ratio_text));
        }
    }
    let mut missing: Vec<String> = scenario
        .unavailable()
        .iter()
        .map(|(reason, labels)| format!("- not available: {reason}: {}", labels.join(", ")))
        .collect();
    missing.extend(
        scenario
            .void_runs()
            .iter()
            .map(|(group, variant, reason, runs)| {
                format!("- {group}: {variant}: {runs} runs void: {reason}")
            }),
    );
    if !missing.is_empty() {
        let _ = write!(text, "\n{}\n", missing.join("\n"));
    }
    for reference in references(&scenario.name) {
        let _ = write!(
            text,
            "\nElsewhere: {}\n\n| {} |\n|{}\n",
            reference.title,
            reference.head.join(" | "),
            "---|".repeat(reference.head.len())
        );
        for row in reference.rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
    }
    text
}

/// Metrics that a table on paper has room for; `report.json` has all.
const SHOWN: [&str; 13] = [
    "errors",
    "queries_per_s",
    "mb_per_s",
    "seconds",
    "latency_p95_ms",
    "stall_ms",
    "load_kept",
    "round_trips",
    "cpu_us",
    "cpu_s",
    "relay_memory_mib",
    "call_us",
    "bytes_per_row",
];

/// A cell of a table must not end it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn tables_are_whole() {
        let mut report = sample();
        report.scenarios[0].groups[0].variants[1].label = "zstd | openssl".into();
        report
            .scenarios
            .push(crate::report::matrix::tests::two_distances());
        let text = markdown(&report);
        assert!(text.contains("### protected: throughput relative to HAProxy"));
        assert!(text.contains("zstd \\| openssl"), "{text}");
        assert!(
            text.contains("1 runs void: the setting was not in force"),
            "{text}"
        );
        let columns = |line: &str| line.replace("\\|", "").matches('|').count();
        let mut table = None;
        for line in text.lines() {
            match (line.starts_with('|'), table) {
                (true, None) => table = Some(columns(line)),
                (true, Some(count)) => assert_eq!(columns(line), count, "{line}"),
                (false, _) => table = None,
            }
        }
    }
}
