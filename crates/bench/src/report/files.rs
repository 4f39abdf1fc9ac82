//! Reports as files: read, written, merged.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{FORMAT, Report, Scenario, Status, VERSION, html, markdown};

/// Why a report cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Not of this program.
    #[error("{} is not a report of onionskin bench: {said}", path.display())]
    NotAReport {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        said: String,
    },
    /// Of a newer or older program.
    #[error("{} has version {version} of the report's structure, and this program reads version {VERSION}: use the program that made it", path.display())]
    Version {
        /// Which file.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// Figures of two machines in one table would be compared.
    #[error("{} was made on another machine than {}: compare them with `onionskin bench compare`", second.display(), first.display())]
    Machines {
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
}

impl Report {
    /// Reads and checks a `report.json`.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let text = fs::read_to_string(path).map_err(|source| ReportError::File {
            path: path.to_owned(),
            source,
        })?;
        let not = |said: String| ReportError::NotAReport {
            path: path.to_owned(),
            said,
        };
        // The version comes first: an unknown one has unknown fields.
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| not(error.to_string()))?;
        if value["format"] != FORMAT {
            return Err(not(format!("its format is {}", value["format"])));
        }
        match value["version"].as_u64() {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) => {
                return Err(ReportError::Version {
                    path: path.to_owned(),
                    version,
                });
            }
            None => return Err(not("it has no version".into())),
        }
        serde_json::from_value(value).map_err(|error| not(error.to_string()))
    }

    /// Names of the scenarios that broke.
    pub fn failed(&self) -> Vec<String> {
        self.scenarios
            .iter()
            .filter(|scenario| scenario.status == Status::Failed)
            .map(|scenario| scenario.name.clone())
            .collect()
    }

    /// Writes `report.json`, `report.html` and `report.md` into a folder, each whole or not at all.
    pub fn write(&self, folder: &Path) -> Result<(), ReportError> {
        let json = serde_json::to_string_pretty(self).map_err(|error| ReportError::File {
            path: folder.join("report.json"),
            source: error.into(),
        })?;
        for (name, text) in [
            ("report.json", json),
            ("report.html", html(self)),
            ("report.md", markdown(self)),
        ] {
            let path = folder.join(name);
            let new = folder.join(format!(".{name}.new"));
            fs::write(&new, text)
                .and_then(|()| fs::rename(&new, &path))
                .map_err(|source| ReportError::File { path, source })?;
        }
        Ok(())
    }

    /// One report of several that were made on the same machine, for example scenario by scenario.
    /// Of a scenario that is in more than one for the same server, the last one counts.
    pub fn merge(paths: &[PathBuf]) -> Result<Self, ReportError> {
        let mut merged: Option<Self> = None;
        for path in paths {
            let next = Self::read(path)?;
            let Some(report) = &mut merged else {
                merged = Some(next);
                continue;
            };
            if !report.machine.is_same(&next.machine) {
                return Err(ReportError::Machines {
                    first: paths[0].clone(),
                    second: path.clone(),
                });
            }
            report.started = report.started.clone().min(next.started);
            report.finished = report.finished.clone().max(next.finished);
            if report.size != next.size {
                report.size = "mixed".into();
            }
            for scenario in next.scenarios {
                let key = |scenario: &Scenario| {
                    let server = scenario.server.as_ref().map(|server| server.family.clone());
                    (scenario.name.clone(), server)
                };
                report.scenarios.retain(|old| key(old) != key(&scenario));
                report.scenarios.push(scenario);
            }
            report.incomplete = report
                .scenarios
                .iter()
                .any(|scenario| scenario.status == Status::Partial)
                .then(|| "a scenario was ended before its last round".into());
        }
        merged.ok_or_else(|| ReportError::NotAReport {
            path: PathBuf::new(),
            said: "no file was named".into(),
        })
    }
}
