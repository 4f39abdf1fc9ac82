//! The report in a few lines.

use std::fmt::Write;

use super::{Report, Status, decision};
use crate::metric::Column;

/// The table for the decision, and what is missing from it.
pub fn summary(report: &Report) -> String {
    let mut text = format!(
        "{}\n{} run, {} to {}\n",
        report.machine.line(),
        report.size,
        report.started,
        report.finished
    );
    if let Some(reason) = &report.incomplete {
        let _ = writeln!(text, "INCOMPLETE: {reason}");
    }
    let mut title = String::new();
    for row in decision::rows(report) {
        if row.title != title {
            title = row.title.clone();
            let _ = write!(text, "\n{title}, compared with {}\n", row.baseline);
        }
        let _ = writeln!(text, "  {}", row.variant);
        for (column, cell) in Column::ALL.iter().zip(&row.cells) {
            if let Some(cell) = cell {
                let remark = cell.remark();
                let remark = match remark.is_empty() {
                    true => String::new(),
                    false => format!("  ({remark})"),
                };
                let _ = writeln!(text, "      {:<22} {}{remark}", column.label(), cell.text());
            }
        }
    }
    text.push('\n');
    for scenario in &report.scenarios {
        if scenario.status != Status::Complete {
            let _ = writeln!(
                text,
                "{}: {}",
                scenario.name,
                scenario.reason.as_deref().unwrap_or("not complete")
            );
        }
        for (reason, labels) in scenario.unavailable() {
            let _ = writeln!(
                text,
                "{}: not available: {reason}: {}",
                scenario.name,
                labels.join(", ")
            );
        }
        for (group, variant, reason, runs) in scenario.void_runs() {
            let _ = writeln!(
                text,
                "{}: {group}: {variant}: {runs} runs VOID: {reason}",
                scenario.name
            );
        }
    }
    text
}
