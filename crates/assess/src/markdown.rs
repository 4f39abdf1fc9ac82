//! `report.md`.

use std::fmt::Write;

use crate::{
    document::{Document, Entry, Grid, Section},
    text::markdown as escape,
};

/// The whole page.
pub fn markdown(document: &Document) -> String {
    let mut page = format!(
        "# {}\n\n{}\n\n",
        escape(&document.title),
        escape(&document.summary)
    );
    for (name, value) in &document.facts {
        let _ = writeln!(page, "- {}: {}", escape(name), escape(value));
    }
    for section in &document.sections {
        write_section(&mut page, section);
    }
    page
}

fn write_section(page: &mut String, section: &Section) {
    let _ = write!(page, "\n## {}\n", escape(&section.title));
    for sentence in &section.prose {
        let _ = write!(page, "\n{}\n", escape(sentence));
    }
    for entry in &section.entries {
        write_entry(page, entry);
    }
    if let Some(grid) = &section.grid {
        write_grid(page, grid);
    }
    if !section.block.is_empty() {
        page.push('\n');
        write_code(page, section.block.iter().map(String::as_str));
    }
}

/// Indented: no text can end such a block, as it could end a fence.
fn write_code<'a>(page: &mut String, lines: impl Iterator<Item = &'a str>) {
    for line in lines {
        let _ = writeln!(page, "    {line}");
    }
}

fn write_entry(page: &mut String, entry: &Entry) {
    let _ = write!(
        page,
        "\n### {}: {} ({})\n\n",
        escape(&entry.label()),
        escape(&entry.title),
        escape(&entry.code)
    );
    for sentence in &entry.prose {
        let _ = write!(page, "{}\n\n", escape(sentence));
    }
    for line in &entry.evidence {
        let _ = writeln!(page, "- {}", escape(line));
    }
    if entry.omitted > 0 {
        let _ = writeln!(page, "- and {} more that are not listed", entry.omitted);
    }
    if let Some(mend) = &entry.mend {
        page.push_str("\n<!-- mend -->\n\n");
        write_code(page, mend.lines());
    }
}

fn write_grid(page: &mut String, grid: &Grid) {
    if grid.rows.is_empty() && grid.omitted == 0 {
        *page += "\nnone\n";
        return;
    }
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    *page += "\n";
    *page += &row(&grid.heads);
    *page += &"|---".repeat(grid.heads.len());
    *page += "|\n";
    for cells in &grid.rows {
        *page += &row(cells);
    }
    if grid.omitted > 0 {
        let _ = writeln!(page, "\nand {} more that are not listed", grid.omitted);
    }
}
