//! What a terminal shows: plain lines, without colours, the same into a pipe.

use std::fmt::Write;

use crate::{
    document::{Document, Entry, Section},
    finding::State,
};

/// Lines of evidence of one entry, and rows of a grid.
const AT_ONCE: usize = 8;
const ROWS: usize = 40;

/// The whole text. What is closed or not there takes one line each.
pub fn terminal(document: &Document) -> String {
    let mut text = format!("{}\n", document.title);
    for (name, value) in &document.facts {
        let _ = writeln!(text, "  {name}: {value}");
    }
    for section in &document.sections {
        write_section(&mut text, section);
    }
    let _ = write!(text, "\n{}\n", document.summary);
    text
}

fn write_section(text: &mut String, section: &Section) {
    let _ = write!(text, "\n{}\n", section.title.to_uppercase());
    for sentence in &section.prose {
        let _ = writeln!(text, "  {sentence}");
    }
    for entry in &section.entries {
        write_entry(text, entry);
    }
    if let Some(grid) = &section.grid {
        let first = match grid.rows.is_empty() && grid.omitted == 0 {
            true => "none".to_owned(),
            false => grid.heads.join("  |  "),
        };
        let _ = writeln!(text, "  {first}");
        for row in grid.rows.iter().take(ROWS) {
            let _ = writeln!(text, "  {}", row.join("  |  "));
        }
        let more = grid.rows.len().saturating_sub(ROWS) + grid.omitted;
        if more > 0 {
            let _ = writeln!(text, "  and {more} more: see --out");
        }
    }
    for line in &section.block {
        let _ = writeln!(text, "    {line}");
    }
}

fn write_entry(text: &mut String, entry: &Entry) {
    let _ = writeln!(
        text,
        "  [{}] {} ({})",
        entry.label(),
        entry.title,
        entry.code
    );
    let is_quiet = matches!(entry.state, State::Closed | State::NotHere);
    for sentence in &entry.prose {
        let _ = writeln!(text, "      {sentence}");
    }
    let shown = if is_quiet { 1 } else { AT_ONCE };
    for line in entry.evidence.iter().take(shown) {
        let _ = writeln!(text, "      - {line}");
    }
    let more = entry.evidence.len().saturating_sub(shown) + entry.omitted;
    if more > 0 && !is_quiet {
        let _ = writeln!(text, "      - and {more} more: see --out");
    }
    for line in entry.mend.iter().flat_map(|mend| mend.lines()) {
        let _ = writeln!(text, "      > {line}");
    }
}
