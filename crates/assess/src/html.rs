//! `report.html`: one file, without a network and without scripts.

use std::fmt::Write;

use crate::{
    document::{Document, Entry, Grid, Section},
    finding::State,
    text::html as escape,
};

const STYLE: &str = include_str!("report.css");
/// Lines of evidence that are shown at once; the others unfold.
const AT_ONCE: usize = 10;
/// Letters of the longest word that a table leaves whole, whatever its columns have room for.
const WHOLE: usize = 24;
/// Nothing is loaded, and nothing runs, whatever a name may say.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The whole page.
pub fn html(document: &Document) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>\
         <meta http-equiv='Content-Security-Policy' content=\"{POLICY}\">\
         <meta name='viewport' content='width=device-width, initial-scale=1'>\
         <meta name='color-scheme' content='light dark'><title>{0}</title><style>{STYLE}</style></head>\
         <body><header><h1>{0}</h1><p class='summary'>{1}</p><dl>",
        escape(&document.title),
        escape(&document.summary)
    );
    for (name, value) in &document.facts {
        let _ = write!(page, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
    }
    page += "</dl></header><main>";
    for section in &document.sections {
        write_section(&mut page, section);
    }
    page += "</main></body></html>\n";
    page
}

fn write_section(page: &mut String, section: &Section) {
    let _ = write!(page, "<section><h2>{}</h2>", escape(&section.title));
    for sentence in &section.prose {
        let _ = write!(page, "<p>{}</p>", escape(sentence));
    }
    for entry in &section.entries {
        write_entry(page, entry);
    }
    if let Some(grid) = &section.grid {
        write_grid(page, grid);
    }
    if !section.block.is_empty() {
        let _ = write!(page, "<pre>{}</pre>", lines(&section.block));
    }
    *page += "</section>";
}

fn lines(block: &[String]) -> String {
    let lines: Vec<String> = block.iter().map(|line| escape(line)).collect();
    lines.join("\n")
}

fn write_entry(page: &mut String, entry: &Entry) {
    let class = match (entry.state, entry.severity) {
        (State::Open, Some(severity)) => severity.word(),
        (State::NotVisible, _) => "hidden",
        (State::Closed, _) => "closed",
        _ => "none",
    };
    let _ = write!(
        page,
        "<article class='{class}'><h3><span class='mark'>{}</span> {} <code>{}</code></h3>",
        escape(&entry.label()),
        escape(&entry.title),
        escape(&entry.code)
    );
    for sentence in &entry.prose {
        let _ = write!(page, "<p>{}</p>", escape(sentence));
    }
    let (first, rest) = entry.evidence.split_at(entry.evidence.len().min(AT_ONCE));
    write_evidence(page, first);
    if !rest.is_empty() {
        let _ = write!(page, "<details><summary>{} more</summary>", rest.len());
        write_evidence(page, rest);
        *page += "</details>";
    }
    if entry.omitted > 0 {
        let _ = write!(
            page,
            "<p class='quiet'>and {} more that are not listed</p>",
            entry.omitted
        );
    }
    if let Some(mend) = &entry.mend {
        let _ = write!(page, "<pre>{}</pre>", escape_lines(mend));
    }
    *page += "</article>";
}

/// A mend may have several lines, which are ours.
fn escape_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escape).collect();
    lines.join("\n")
}

fn write_evidence(page: &mut String, evidence: &[String]) {
    if evidence.is_empty() {
        return;
    }
    *page += "<ul>";
    for line in evidence {
        let _ = write!(page, "<li>{}</li>", escape(line));
    }
    *page += "</ul>";
}

fn write_grid(page: &mut String, grid: &Grid) {
    if grid.rows.is_empty() && grid.omitted == 0 {
        *page += "<p class='quiet'>none</p>";
        return;
    }
    *page += "<div class='scroll'><table><thead><tr>";
    for head in &grid.heads {
        let _ = write!(page, "<th scope='col'>{}</th>", escape(head));
    }
    *page += "</tr></thead><tbody>";
    for row in &grid.rows {
        *page += "<tr>";
        for (cell, head) in row.iter().zip(&grid.heads) {
            // where there is no room for a table, each cell says what it is
            let is_long = |word: &str| word.chars().count() > WHOLE;
            let class = match cell.split_whitespace().any(is_long) {
                true => " class='long'",
                false => "",
            };
            let (head, cell) = (escape(head), escape(cell));
            let _ = write!(page, "<td{class} data-head='{head}'>{cell}</td>");
        }
        *page += "</tr>";
    }
    *page += "</tbody></table></div>";
    if grid.omitted > 0 {
        let _ = write!(
            page,
            "<p class='quiet'>and {} more that are not listed</p>",
            grid.omitted
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(rows: Vec<Vec<String>>) -> String {
        html(&Document {
            title: "<b>title</b>".into(),
            sections: vec![Section {
                title: "grid".into(),
                grid: Some(Grid {
                    heads: vec!["it's".into(), "a <i>head</i>".into()],
                    rows,
                    omitted: 0,
                }),
                ..Section::default()
            }],
            ..Document::default()
        })
    }

    #[test]
    fn cells_say_what_they_are_where_there_is_no_room() {
        let page = page_of(vec![vec!["'><script>".into(), String::new()]]);
        assert!(page.contains("<td data-head='it&#39;s'>&#39;&gt;&lt;script&gt;</td>"));
        // nothing is shown of it on a phone
        assert!(page.contains("<td data-head='a &lt;i&gt;head&lt;/i&gt;'></td>"));
        assert!(!page.contains("<script") && !page.contains("<b>") && !page.contains("<i>"));
    }

    #[test]
    fn words_are_divided_only_where_they_are_long() {
        let page = page_of(vec![vec!["a short.name".into(), "x".repeat(25)]]);
        assert!(page.contains("<td data-head='it&#39;s'>a short.name</td>"));
        assert!(page.contains("<td class='long' data-head='a &lt;i&gt;head&lt;/i&gt;'>xxx"));
    }

    #[test]
    fn a_table_without_rows_says_so() {
        let page = page_of(Vec::new());
        assert!(page.contains("<p class='quiet'>none</p>") && !page.contains("<table"));
    }
}
