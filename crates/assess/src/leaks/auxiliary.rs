//! Where an attacker's knowledge comes from.

use std::{fs, io::Read, path::Path};

use super::dictionary::{Dictionary, Payload};
use super::request::Auxiliary;
use crate::AssessError;

/// Bytes of a file of values.
const MAX_FILE: u64 = 256 << 20;

/// Values of a file, each with its count. `Ulm,120` has one; a line without a number behind its
/// last comma stands for one row.
pub struct ValuesFile {
    lines: Vec<(Vec<u8>, f64)>,
}

impl ValuesFile {
    /// The file that an attacker knows, if he knows one.
    pub fn if_given(auxiliary: &Auxiliary) -> Result<Option<Self>, AssessError> {
        match auxiliary {
            Auxiliary::File(path) => Self::read(path).map(Some),
            _ => Ok(None),
        }
    }

    /// Reads it.
    fn read(path: &Path) -> Result<Self, AssessError> {
        let mut bytes = Vec::new();
        fs::File::open(path)
            .and_then(|file| file.take(MAX_FILE).read_to_end(&mut bytes))
            .map_err(AssessError::file(path))?;
        if bytes.len() as u64 >= MAX_FILE {
            return Err(AssessError::Request(format!(
                "{} is larger than {} MiB",
                path.display(),
                MAX_FILE >> 20
            )));
        }
        Ok(Self::of(&bytes))
    }

    fn of(bytes: &[u8]) -> Self {
        let lines = bytes.split(|b| *b == b'\n');
        let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let counted = |line: &[u8]| {
            let comma = line.iter().rposition(|b| *b == b',')?;
            let count: f64 = str::from_utf8(&line[comma + 1..])
                .ok()?
                .trim()
                .parse()
                .ok()?;
            (count.is_finite() && count >= 0.0).then(|| (line[..comma].to_vec(), count))
        };
        let lines = lines.filter(|line| !line.is_empty());
        Self {
            lines: lines
                .map(|line| counted(line).unwrap_or_else(|| (line.to_vec(), 1.0)))
                .collect(),
        }
    }

    /// Its values as values of a column, and how many lines are none.
    pub fn payloads(&self, dictionary: &mut Dictionary) -> (Vec<(Payload, f64)>, usize) {
        let mut found = Vec::with_capacity(self.lines.len());
        for (value, rows) in &self.lines {
            found.extend(
                dictionary
                    .add_sent(value)
                    .ok()
                    .map(|payload| (payload, *rows)),
            );
        }
        let missing = self.lines.len() - found.len();
        (found, missing)
    }
}

#[cfg(test)]
mod tests {
    use onionskin_value::{Family, SqlType};

    use super::*;

    #[test]
    fn values_may_have_counts() {
        let file =
            ValuesFile::of(b"Ulm,120\r\nBonn\n\nRome, Italy\nNice, 3.5\ntoo long for it,1\n");
        let ty = SqlType::parse("varchar(11)", Some("utf8mb4_general_ci")).expect("a type");
        let mut dictionary = Dictionary::new(ty, Family::MariaDb, 1_000);
        let (found, missing) = file.payloads(&mut dictionary);
        assert_eq!(found, [(0, 120.0), (1, 1.0), (2, 1.0), (3, 3.5)]);
        assert_eq!(missing, 1);
        assert_eq!(dictionary.payload(2), b"Rome, Italy");
    }
}
