//! `report.html`: one file, without a network, for a desk, a phone and paper.

use std::fmt::Write;

use super::{
    Group, Report, Scenario, Status, Variant, change, charts::charts, decision, figure,
    figures::ratio_text, matrix::matrices, reference::references, svg::escape,
};
use crate::{
    metric::{Better, Column, METRICS, Metric},
    stats::{Ratio, Verdict},
};

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// The whole page.
pub fn html(report: &Report) -> String {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>\
         <meta name='viewport' content='width=device-width, initial-scale=1'>\
         <meta name='color-scheme' content='light dark'><title>onionskin bench</title>",
    );
    let _ = write!(
        page,
        "<style>{STYLE}</style></head><body><header><h1>What encryption costs here</h1>"
    );
    let _ = write!(
        page,
        "<p>{}</p><p class='quiet'>{} run, {} to {}, onionskin {}</p>",
        escape(&report.machine.line()),
        escape(&report.size),
        escape(&report.started),
        escape(&report.finished),
        escape(
            report
                .machine
                .programs
                .get("onionskin")
                .map_or("", String::as_str)
        )
    );
    if let Some(reason) = &report.incomplete {
        let _ = write!(
            page,
            "<p class='alert'>Incomplete: {}. What is here is valid.</p>",
            escape(reason)
        );
    }
    page += "</header><main>";
    page += &decision_section(report);
    for (number, scenario) in report.scenarios.iter().enumerate() {
        page += &section(number, scenario);
    }
    page += &machine_section(report);
    let _ = writeln!(
        page,
        "</main><footer><p>All figures and every run: <code>report.json</code> beside this file.</p></footer><script>{SCRIPT}</script></body></html>"
    );
    page
}

fn decision_section(report: &Report) -> String {
    let mut text = String::from(
        "<section><h2>The decision: layer and cost</h2><p>Change against the baseline, over all comparisons of a scenario. Lower throughput, and more of \
         everything else, is the price.</p><div class='scroll'><table class='sortable decision'><thead><tr><th>layer</th><th>compared with</th>",
    );
    for column in Column::ALL {
        let _ = write!(text, "<th>{}</th>", escape(column.label()));
    }
    text += "</tr></thead><tbody>";
    for row in decision::rows(report) {
        let _ = write!(
            text,
            "<tr><th scope='row'><a href='#s{}'>{}</a><br>{}</th><td data-h='compared with'>{}</td>",
            row.scenario,
            escape(&row.title),
            escape(&row.variant),
            escape(&row.baseline)
        );
        for (column, cell) in Column::ALL.iter().zip(&row.cells) {
            let head = escape(column.label());
            match cell {
                None => {
                    let _ = write!(text, "<td data-h='{head}' class='none'>–</td>");
                }
                Some(cell) => {
                    let class = match (cell.different, cell.is_worse()) {
                        (0, _) => "same",
                        _ if cell.text() == "0 %" => "same",
                        (_, true) => "worse",
                        (_, false) => "better",
                    };
                    let worst = match cell.better {
                        Better::Higher => cell.low,
                        Better::Lower => cell.high,
                    };
                    let _ = write!(
                        text,
                        "<td data-h='{head}' data-v='{worst}' class='{class}'>{}",
                        escape(&cell.text()).replace(" %", "\u{a0}%")
                    );
                    let remark = cell.remark();
                    if !remark.is_empty() {
                        let _ = write!(text, "<small>{}</small>", escape(&remark));
                    }
                    text += "</td>";
                }
            }
        }
        text += "</tr>";
    }
    text += "</tbody></table></div></section>";
    text
}

fn section(number: usize, scenario: &Scenario) -> String {
    let mut text = format!(
        "<section id='s{number}'><h2>{}</h2><p class='question'>{}</p><p class='quiet'>{}</p>",
        escape(&scenario.full_title()),
        prose(&scenario.question),
        prose(&scenario.method)
    );
    if scenario.status != Status::Complete {
        let word = match scenario.status {
            Status::Partial => "Not all rounds were run",
            Status::NotAvailable => "Not available",
            _ => "Failed",
        };
        let _ = write!(
            text,
            "<p class='alert'>{word}: {}</p>",
            escape(scenario.reason.as_deref().unwrap_or(""))
        );
    }
    let void = scenario.void_runs();
    if !void.is_empty() {
        text += "<div class='alert'><p>Void runs, which count nowhere:</p><ul>";
        for (group, variant, reason, runs) in &void {
            let _ = write!(
                text,
                "<li>{}: {}: {runs} ×: {}</li>",
                escape(group),
                escape(variant),
                escape(reason)
            );
        }
        text += "</ul></div>";
    }
    for (reason, labels) in scenario.unavailable() {
        let _ = write!(
            text,
            "<p class='quiet'>Not available: {}: {}.</p>",
            escape(&reason),
            escape(&labels.join(", "))
        );
    }
    let drawn = charts(scenario);
    if !drawn.is_empty() {
        let _ = write!(text, "<div class='charts'>{}</div>", drawn.concat());
    }
    for table in matrices(scenario) {
        let _ = write!(
            text,
            "<h3>{}</h3><div class='scroll'><table><thead><tr>",
            escape(&table.title)
        );
        for head in &table.head {
            let _ = write!(text, "<th>{}</th>", escape(head));
        }
        text += "</tr></thead><tbody>";
        for row in &table.rows {
            text += "<tr>";
            for (n, cell) in row.iter().enumerate() {
                let _ = match n {
                    0 => write!(text, "<th scope='row'>{}</th>", escape(cell)),
                    _ => write!(text, "<td>{}</td>", escape(cell)),
                };
            }
            text += "</tr>";
        }
        text += "</tbody></table></div>";
    }
    for (n, group) in scenario.groups.iter().enumerate() {
        let open = if n == 0 { " open" } else { "" };
        let _ = write!(
            text,
            "<details{open}><summary>{}</summary>{}</details>",
            escape(&group.label),
            group_table(group)
        );
    }
    for reference in references(&scenario.name) {
        let _ = write!(
            text,
            "<details class='elsewhere'><summary>Elsewhere: {}</summary><div class='scroll'><table><thead><tr>",
            escape(reference.title)
        );
        for head in reference.head {
            let _ = write!(text, "<th>{}</th>", escape(head));
        }
        text += "</tr></thead><tbody>";
        for row in reference.rows {
            text += "<tr>";
            for cell in *row {
                let _ = write!(text, "<td>{}</td>", escape(cell));
            }
            text += "</tr>";
        }
        text += "</tbody></table></div></details>";
    }
    text += &conditions(scenario);
    text += "</section>";
    text
}

/// Text with `code` in it.
fn prose(text: &str) -> String {
    let mut shown = String::new();
    for (n, part) in text.split('`').enumerate() {
        match n % 2 {
            0 => shown += &escape(part),
            _ => {
                let _ = write!(shown, "<code>{}</code>", escape(part));
            }
        }
    }
    shown
}

fn group_table(group: &Group) -> String {
    let metrics: Vec<&Metric> = METRICS
        .iter()
        .filter(|metric| {
            group
                .variants
                .iter()
                .any(|variant| variant.summaries.contains_key(metric.name))
        })
        .collect();
    if metrics.is_empty() {
        let mut text = String::from("<ul>");
        for variant in &group.variants {
            let _ = write!(
                text,
                "<li>{}: {}</li>",
                escape(&variant.label),
                escape(
                    variant
                        .unavailable
                        .as_deref()
                        .unwrap_or("no run that counts")
                )
            );
        }
        return text + "</ul>";
    }
    let mut text =
        String::from("<div class='scroll'><table class='sortable'><thead><tr><th>variant</th>");
    for metric in &metrics {
        let _ = write!(
            text,
            "<th>{} <span class='unit'>{}</span></th>",
            escape(metric.label),
            escape(metric.unit)
        );
    }
    text += "<th>runs</th></tr></thead><tbody>";
    for variant in group.variants.iter().filter(|v| v.unavailable.is_none()) {
        text += &variant_row(variant, &metrics);
    }
    text += "</tbody></table></div>";
    text
}

fn variant_row(variant: &Variant, metrics: &[&Metric]) -> String {
    let mut text = format!("<tr><th scope='row'>{}</th>", escape(&variant.label));
    for metric in metrics {
        match variant.summaries.get(metric.name) {
            None => text += "<td class='none'>–</td>",
            Some(summary) => {
                let _ = write!(
                    text,
                    "<td data-v='{}'>{}<small>{} to {}</small>",
                    summary.median,
                    figure(summary.median),
                    figure(summary.low),
                    figure(summary.high)
                );
                if let Some(ratio) = variant.ratios.get(metric.name) {
                    let _ = write!(
                        text,
                        "<small class='{}'>{}</small>",
                        class_of(ratio, metric.better),
                        escape(&format!("× {}", ratio_text(ratio)))
                    );
                }
                text += "</td>";
            }
        }
    }
    let void = variant.void().count();
    let _ = write!(
        text,
        "<td>{}{}</td></tr>",
        variant.valid().count(),
        match void {
            0 => String::new(),
            n => format!("<small class='worse'>{n} void</small>"),
        }
    );
    text
}

fn class_of(ratio: &Ratio, better: Better) -> &'static str {
    // A constant difference that nobody would see has no noise to hide in.
    if change(ratio.ratio) == "0 %" {
        return "same";
    }
    match (ratio.verdict, better) {
        (Verdict::NoDifference | Verdict::TooFewPairs, _) => "same",
        (Verdict::Higher, Better::Higher) | (Verdict::Lower, Better::Lower) => "better",
        _ => "worse",
    }
}

/// Settings, commands and proofs of the last run of each variant.
fn conditions(scenario: &Scenario) -> String {
    let Some(group) = scenario.groups.first() else {
        return String::new();
    };
    let mut text =
        String::from("<details class='conditions'><summary>Settings, commands, proofs</summary>");
    if let Some(server) = &scenario.server {
        let _ = write!(
            text,
            "<p>{} {}: <code>{}</code></p>",
            escape(&server.family),
            escape(&server.version),
            escape(&server.settings.join(" "))
        );
    }
    for variant in &group.variants {
        let _ = write!(
            text,
            "<h3>{}</h3><p class='quiet'>{}</p>",
            escape(&variant.label),
            escape(&variant.driver)
        );
        if !variant.settings.is_empty() {
            let _ = write!(
                text,
                "<p><code>{}</code></p>",
                escape(&variant.settings.join(" "))
            );
        }
        if let Some(run) = variant.runs.last() {
            if !run.command.is_empty() {
                let _ = write!(text, "<p><code>{}</code></p>", escape(&run.command));
            }
            if !run.proofs.is_empty() {
                text += "<ul>";
                for proof in &run.proofs {
                    let _ = write!(
                        text,
                        "<li>{} {}: expected {}, found {}</li>",
                        if proof.holds { "✓" } else { "✗" },
                        escape(&proof.what),
                        escape(&proof.expected),
                        escape(&proof.found)
                    );
                }
                text += "</ul>";
            }
        }
    }
    text + "</details>"
}

fn machine_section(report: &Report) -> String {
    let machine = &report.machine;
    let mut text = format!(
        "<section><h2>The machine</h2><p>{}. Instructions for ciphers: {}. Load average before: {}.</p><div class='scroll'><table><tbody>",
        escape(&machine.line()),
        escape(&machine.cipher_instructions.join(", ")),
        escape(&machine.load_before)
    );
    for (name, version) in &machine.programs {
        let _ = write!(
            text,
            "<tr><th scope='row'>{}</th><td>{}</td></tr>",
            escape(name),
            escape(version)
        );
    }
    text + "</tbody></table></div></section>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn the_page_needs_no_network_and_shows_no_raw_text() {
        let page = html(&sample());
        for outside in ["http://", "https://", "src=", "url(", "@import", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("off &amp; &lt;co&gt;") && !page.contains("<co>"));
        assert!(page.contains("the setting was not in force"));
        assert!(page.contains("prefers-color-scheme"));
    }

    #[test]
    fn every_element_is_closed() {
        let mut report = sample();
        report
            .scenarios
            .push(crate::report::matrix::tests::two_distances());
        let page = html(&report);
        assert!(page.contains("<h3>protected: throughput relative to HAProxy</h3>"));
        let mut open: Vec<&str> = Vec::new();
        let body = page.split("<body>").nth(1).expect("a body");
        let body = body.split("<script>").next().expect("before the script");
        for part in body.split('<').skip(1) {
            let tag = part.split('>').next().expect("a tag");
            let name = tag
                .split([' ', '/'])
                .find(|word| !word.is_empty())
                .expect("a name");
            if let Some(closed) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(closed), "{tag}");
            } else if !tag.ends_with('/') && name != "br" {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}
