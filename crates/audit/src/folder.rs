//! The files of a folder: `onionskin-<time>-<run>-<part>.jsonl`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::error::AuditError;

const PREFIX: &str = "onionskin-";
const SUFFIX: &str = ".jsonl";

/// The parts of each run, by number.
pub(crate) type Runs = BTreeMap<String, BTreeMap<u32, PathBuf>>;

/// The name of a part: listed by name, files stand in the order in which they were begun.
pub(crate) fn name_of(time: DateTime<Utc>, run: &str, part: u32) -> String {
    format!(
        "{PREFIX}{}-{run}-{part:06}{SUFFIX}",
        time.format("%Y%m%dT%H%M%SZ")
    )
}

/// All parts in the folder. Files of other names are not looked at.
pub(crate) fn runs(folder: &Path) -> Result<Runs, AuditError> {
    let failed = |source| AuditError::File {
        path: folder.to_owned(),
        source,
    };
    let mut runs = Runs::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let parts = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX))
            .map(|rest| rest.split('-').collect::<Vec<_>>());
        let Some(&[_, run, part]) = parts.as_deref() else {
            continue;
        };
        let Ok(part) = part.parse() else { continue };
        // A copy of a part under another time: verification reads one of them.
        runs.entry(run.to_owned())
            .or_default()
            .insert(part, entry.path());
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in [
            name_of(DateTime::UNIX_EPOCH, "aa", 1),
            name_of(DateTime::UNIX_EPOCH, "aa", 2),
            name_of(DateTime::UNIX_EPOCH, "bb", 1),
            "other.jsonl".into(),
            "onionskin-x-y.jsonl".into(),
        ] {
            fs::write(folder.path().join(name), "").expect("written");
        }
        let runs = runs(folder.path()).expect("read");
        let found = |run: &str| runs[run].keys().copied().collect::<Vec<_>>();
        assert_eq!(
            (runs.len(), found("aa"), found("bb")),
            (2, vec![1, 2], vec![1])
        );
    }
}
