//! How the demonstration looks.

use std::{
    io::{Write, stdout},
    path::{Path, PathBuf},
};

use super::{
    client::{Cell, Reply, Table},
    script::Step,
};

/// As wide as a line gets.
const WIDTH: usize = 118;
/// Of a cell in a table.
const CELL: usize = 26;
/// Hexadecimal digits that are shown at each end of a longer sequence.
const DIGITS: usize = 4;

/// Standard output. Where it goes is nobody's business: if the reader has gone, the demonstration
/// still ends in order.
#[derive(Default)]
pub struct Screen {
    chapters: u32,
}

impl Screen {
    /// A line.
    pub fn text(&mut self, text: &str) {
        let _ = writeln!(stdout(), "{text}");
    }

    /// A heading.
    pub fn chapter(&mut self, title: &str) {
        self.chapters += 1;
        let heading = format!("── {}. {title} ", self.chapters);
        let rest = WIDTH.saturating_sub(heading.chars().count());
        self.text(&format!("\n{heading}{}", "─".repeat(rest)));
    }

    /// A statement, what the server got, and the answer.
    pub fn step(&mut self, step: &Step, heard: &[Vec<u8>], reply: &Reply) {
        if !step.what.is_empty() {
            self.text(&format!("\n{}", step.what));
        }
        self.labelled("application", step.sql);
        if !step.parameters.is_empty() {
            self.labelled("", &format!("with {}", step.parameters.join(", ")));
        }
        if heard.is_empty() {
            self.labelled("server", "(nothing)");
        }
        for sql in heard {
            self.labelled("server", &readable(sql));
        }
        match reply {
            Reply::Done { affected } => {
                self.labelled("answer", &format!("ok, {affected} rows affected"))
            }
            Reply::Rows(table) => self.table("answer", table),
            Reply::Refused { code, text } => {
                self.labelled("answer", &format!("ERROR {code}: {text}"))
            }
        }
        if !step.note.is_empty() {
            self.labelled("", &format!("({})", step.note));
        }
    }

    /// A statement that must not succeed.
    pub fn refusal(&mut self, sql: &str, reply: &Reply) {
        self.labelled("client", sql);
        match reply {
            Reply::Refused { code, text } => {
                self.labelled("server", &format!("ERROR {code}: {text}"))
            }
            _ => self.labelled("server", "ok"),
        }
    }

    /// A table twice.
    pub fn both_sides(&mut self, seen: &Table, stored: &Table) {
        self.text("The application sees:\n");
        self.table("", seen);
        self.text("\nThe server stores:\n");
        self.table("", stored);
        self.text("\nColumn by column, the first row:\n");
        let (Some(seen_row), Some(stored_row)) = (seen.rows.first(), stored.rows.first()) else {
            return;
        };
        for (name, cell) in seen.names.iter().zip(seen_row) {
            let mut left = format!("{name} = {}", measured(cell));
            for (physical, cell) in stored.names.iter().zip(stored_row) {
                let belongs = physical == name || physical.starts_with(&format!("{name}$"));
                if belongs {
                    self.text(&format!("  {left:<34} │ {physical} = {}", measured(cell)));
                    left.clear();
                }
            }
        }
    }

    /// Where a value was found.
    pub fn trace(
        &mut self,
        column: &str,
        text: &str,
        protected: bool,
        places: &[PathBuf],
        data: &Path,
    ) {
        let kind = if protected { "protected" } else { "plaintext" };
        let found = match places {
            [] => "not found".to_owned(),
            places => {
                let names: Vec<String> = places
                    .iter()
                    .map(|path| {
                        path.strip_prefix(data)
                            .unwrap_or(path)
                            .display()
                            .to_string()
                    })
                    .collect();
                format!("found in {}", names.join(", "))
            }
        };
        self.text(&format!(
            "  {column:<14} {kind:<10} {:<28} {found}",
            format!("\"{text}\"")
        ));
    }

    fn labelled(&mut self, label: &str, text: &str) {
        let mut label = label;
        for line in text.lines() {
            for part in wrapped(line, WIDTH - 15) {
                self.text(&format!("  {label:<12} {part}"));
                label = "";
            }
        }
    }

    fn table(&mut self, label: &str, table: &Table) {
        let cells: Vec<Vec<String>> = table
            .rows
            .iter()
            .map(|row| row.iter().map(shown).collect())
            .collect();
        let widths: Vec<usize> = (0..table.names.len())
            .map(|column| {
                let name = table
                    .names
                    .get(column)
                    .map_or(0, |name| name.chars().count());
                cells
                    .iter()
                    .filter_map(|row| row.get(column))
                    .map(|cell| cell.chars().count().min(CELL))
                    .fold(name, usize::max)
            })
            .collect();
        let line = |row: &[String]| {
            let padded: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{:<width$}", cut(cell, CELL)))
                .collect();
            padded.join("  ").trim_end().to_owned()
        };
        let mut label = label;
        let indent = if label.is_empty() { 0 } else { 12 };
        for row in std::iter::once(&table.names).chain(&cells) {
            self.text(&format!("  {label:<indent$} {}", line(row)));
            label = "";
        }
    }
}

/// Text as it is, everything else as the two ends of its bytes.
fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Null => "NULL".into(),
        Cell::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
            _ => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("0x{}", ends(&digits))
            }
        },
    }
}

/// A cell with its length, if it is not text.
fn measured(cell: &Cell) -> String {
    let text = shown(cell);
    match cell {
        Cell::Bytes(bytes) if text.contains('…') => format!("{text} ({} bytes)", bytes.len()),
        _ => text,
    }
}

/// Cells of one column begin alike, with version and ids; order keys of near values, too.
fn ends(digits: &str) -> String {
    match (
        digits.get(..DIGITS),
        digits
            .len()
            .checked_sub(DIGITS)
            .and_then(|at| digits.get(at..)),
    ) {
        (Some(front), Some(back)) if digits.len() > 2 * DIGITS => format!("{front}…{back}"),
        _ => digits.to_owned(),
    }
}

/// A statement with long sequences of hexadecimal digits cut short, and without line breaks and
/// unprintable bytes.
fn readable(sql: &[u8]) -> String {
    let text = String::from_utf8_lossy(sql);
    let mut out = String::with_capacity(text.len());
    let mut digits = String::new();
    // One more round for digits at the end.
    for c in text.chars().map(Some).chain([None]) {
        match c {
            Some(c) if c.is_ascii_hexdigit() => digits.push(c),
            _ => {
                out.push_str(&ends(&digits));
                digits.clear();
                let shown = match c {
                    Some(c) if c.is_whitespace() => (!out.ends_with(' ')).then_some(' '),
                    Some(c) if c.is_control() || c == char::REPLACEMENT_CHARACTER => Some('·'),
                    other => other,
                };
                out.extend(shown);
            }
        }
    }
    cut(&out, 5 * (WIDTH - 15))
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let start: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{start}…")
}

/// Parts of at most `width` characters, divided at spaces where that is possible.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    for word in line.split_inclusive(' ') {
        if !part.is_empty() && part.chars().count() + word.trim_end().chars().count() > width {
            parts.push(std::mem::take(&mut part).trim_end().to_owned());
        }
        part.push_str(word);
    }
    parts.push(part.trim_end().to_owned());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_hexadecimal_texts_are_cut_and_nothing_else() {
        assert_eq!(
            readable(b"SELECT facade FROM t WHERE a = x'00112233445566778899aabb'"),
            "SELECT facade FROM t WHERE a = x'0011…aabb'"
        );
        assert_eq!(readable(b"a\n  b\xff\x00c"), "a b··c");
    }

    #[test]
    fn cells_are_text_or_bytes() {
        assert_eq!(shown(&Cell::Bytes("é".into())), "é");
        assert_eq!(
            shown(&Cell::Bytes(vec![0x11, 0, 1, 2, 3, 4])),
            "0x1100…0304"
        );
        assert_eq!(shown(&Cell::Null), "NULL");
    }

    #[test]
    fn lines_are_divided_at_spaces() {
        assert_eq!(wrapped("ab cd ef", 5), ["ab cd", "ef"]);
        assert_eq!(wrapped("abcdefgh", 5), ["abcdefgh"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
