//! The three files of a report, and its text for a terminal.

use std::{fs, path::Path};

use serde::Serialize;

use crate::{AssessError, document::Document, html::html, markdown::markdown};

pub use crate::terminal::terminal;

/// Writes `report.json`, `report.html` and `report.md` into a folder, each whole or not at all. A
/// report that is there stays.
pub fn write(
    folder: &Path,
    report: &impl Serialize,
    document: &Document,
) -> Result<(), AssessError> {
    check(folder)?;
    fs::create_dir_all(folder).map_err(AssessError::file(folder))?;
    let json = serde_json::to_string_pretty(report)
        .map_err(|error| AssessError::file(folder.join("report.json"))(error.into()))?;
    for (name, text) in [
        ("report.html", html(document)),
        ("report.md", markdown(document)),
        ("report.json", json + "\n"),
    ] {
        let path = folder.join(name);
        let new = folder.join(format!(".{name}.new"));
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &path))
            .map_err(AssessError::file(path))?;
    }
    Ok(())
}

/// Whether a report may be written there, before anybody is asked.
pub fn check(folder: &Path) -> Result<(), AssessError> {
    match folder.join("report.json").exists() {
        true => Err(AssessError::Request(format!(
            "{} holds a report already: name another folder with --out",
            folder.display()
        ))),
        false => Ok(()),
    }
}
