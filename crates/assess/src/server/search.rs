//! Texts that are looked for in the server's files: all at once, in pieces, at a pace.
//!
//! What is found is told by the text's number and the file's name. A text itself is never told.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::{
    facts::{Facts, Searched},
    machine,
};
use crate::{AssessError, text::shown};

/// Largest file of values, in bytes.
const MAX_FILE: u64 = 64 << 20;
/// Most values.
const MAX_TEXTS: usize = 100_000;
/// Shortest value, in bytes: a shorter one stands in any file by chance.
const SHORTEST: usize = 4;
/// Most hits that are told.
const MAX_HITS: usize = 10_000;
/// Bytes that are read between two looks at the clock.
const PIECE: usize = 1 << 20;

/// What to look for.
pub(crate) struct Texts {
    /// Each with what it is called.
    texts: Vec<(String, Vec<u8>)>,
    left_out: Vec<String>,
}

impl Texts {
    /// One text, under a name.
    pub(crate) fn one(name: &str, text: &str) -> Self {
        Self {
            texts: vec![(name.to_owned(), text.as_bytes().to_vec())],
            left_out: Vec::new(),
        }
    }

    /// Another one.
    pub(crate) fn and(&mut self, name: &str, text: &str) {
        self.texts.push((name.to_owned(), text.as_bytes().to_vec()));
    }

    /// One a line.
    pub(super) fn read(path: &Path) -> Result<Self, AssessError> {
        let length = fs::metadata(path).map_err(AssessError::file(path))?.len();
        if length > MAX_FILE {
            return Err(AssessError::Request(format!(
                "--search: {} is larger than {} MiB",
                path.display(),
                MAX_FILE >> 20
            )));
        }
        let bytes = fs::read(path).map_err(AssessError::file(path))?;
        let mut found = Self {
            texts: Vec::new(),
            left_out: Vec::new(),
        };
        for (at, line) in bytes.split(|b| *b == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match line.len() {
                0 => {}
                1..SHORTEST => found
                    .left_out
                    .push(format!("line {} is shorter than {SHORTEST} bytes", at + 1)),
                _ => found.add(at + 1, line),
            }
        }
        if found.texts.is_empty() || found.texts.len() > MAX_TEXTS {
            return Err(AssessError::Request(format!(
                "--search: {} must hold 1 to {MAX_TEXTS} values of at least {SHORTEST} bytes, one a line",
                path.display()
            )));
        }
        Ok(found)
    }

    /// A value in UTF-8, and in latin1 where that is another text.
    fn add(&mut self, line: usize, value: &[u8]) {
        let name = format!("the value of line {line}");
        if let Ok(text) = std::str::from_utf8(value)
            && !text.is_ascii()
        {
            let latin1: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
            if let Some(latin1) = latin1.filter(|l| l.len() >= SHORTEST) {
                self.texts.push((format!("{name}, in latin1"), latin1));
            }
        }
        self.texts.push((name, value.to_vec()));
    }
}

/// Looks for them in the data directory, and in the logs that lie outside of it.
pub(crate) fn search(texts: &Texts, facts: &Facts, pace: u32) -> Result<Searched, AssessError> {
    let Ok(machine) = &facts.machine else {
        return Err(AssessError::Request(
            "the server's files are not here".into(),
        ));
    };
    let patterns = texts.texts.iter().map(|(_, bytes)| bytes.as_slice());
    // Of all forms the smallest one that does not blow up with thousands of values.
    let finder = AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(patterns)
        .map_err(|error| AssessError::Request(format!("--search: {error}")))?;
    let (mut files, left_out) = machine::files(&machine.data);
    files.extend(machine::outside(&machine.data, facts));
    let mut searched = Searched {
        texts: texts.texts.len(),
        left_out: texts.left_out.clone(),
        ..Searched::default()
    };
    searched
        .left_out
        .extend(left_out.iter().map(|line| shown(line)));
    let mut pace = Pace::new(pace);
    for path in files {
        let name = path.strip_prefix(&machine.data).unwrap_or(&path);
        let name = shown(&name.to_string_lossy());
        match machine::open(&path) {
            // The server removes files while we look.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => searched.left_out.push(format!("{name}: {error}")),
            Ok((file, _)) => {
                searched.files += 1;
                let mut counted = Counted {
                    inner: file,
                    pace: &mut pace,
                    bytes: 0,
                };
                match count(&finder, &mut counted) {
                    Ok(hits) => {
                        for (at, times) in hits {
                            if searched.hits.len() < MAX_HITS {
                                let text = &texts.texts[at].0;
                                searched.hits.push(format!("{name}: {text}, {times} times"));
                            }
                        }
                    }
                    Err(error) => searched.left_out.push(format!("{name}: {error}")),
                }
                searched.bytes += counted.bytes;
            }
        }
    }
    searched.left_out.truncate(100);
    Ok(searched)
}

/// How often each text stands there.
fn count(finder: &AhoCorasick, file: impl Read) -> io::Result<BTreeMap<usize, u64>> {
    let mut hits = BTreeMap::new();
    for hit in finder.stream_find_iter(file) {
        *hits.entry(hit?.pattern().as_usize()).or_default() += 1;
    }
    Ok(hits)
}

/// So many MiB a second: the server needs its disks.
struct Pace {
    each: Duration,
    next: Instant,
    left: usize,
}

impl Pace {
    fn new(mib: u32) -> Self {
        Self {
            each: Duration::from_secs(1) / mib.max(1),
            next: Instant::now(),
            left: PIECE,
        }
    }

    fn read(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
        if self.left == 0 {
            self.left = PIECE;
            let now = Instant::now();
            self.next = self.next.max(now) + self.each;
            thread::sleep(self.next - now - self.each);
        }
    }
}

struct Counted<'a, R> {
    inner: R,
    pace: &'a mut Pace,
    bytes: u64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes += read as u64;
        self.pace.read(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use onionskin_rowstream::client::Family;

    use super::*;
    use crate::server::facts::{Machine, samples::facts};

    #[test]
    fn values_are_found_by_number_and_never_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        fs::create_dir_all(data.join("app")).expect("folders");
        let values = folder.path().join("values");
        fs::write(
            &values,
            "Anna Example\r\nabc\n\nMüller-Lüdenscheidt\nnot there\n",
        )
        .expect("written");
        // Across the border of two pieces, twice; and in another character set.
        let file = [&vec![b'x'; PIECE - 5][..], b"Anna Example, Anna Example"].concat();
        fs::write(data.join("app/users.ibd"), file).expect("written");
        fs::write(data.join("latin1"), b"M\xfcller-L\xfcdenscheidt").expect("written");
        let texts = Texts::read(&values).expect("read");
        let mut facts = facts(Family::MySql, &[]);
        facts.machine = Ok(Machine {
            data,
            ..Machine::default()
        });
        let searched = search(&texts, &facts, 1000).expect("searched");
        assert_eq!(searched.files, 2);
        assert_eq!(
            searched.hits,
            [
                "app/users.ibd: the value of line 1, 2 times",
                "latin1: the value of line 4, in latin1, 1 times",
            ]
        );
        assert_eq!(searched.left_out, ["line 2 is shorter than 4 bytes"]);
        for told in searched.hits.iter().chain(&searched.left_out) {
            assert!(!told.contains("Anna") && !told.contains("ller"), "{told}");
        }
    }

    #[test]
    fn a_file_without_values_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("values");
        fs::write(&path, "ab\n\n").expect("written");
        assert!(Texts::read(&path).is_err());
    }

    #[test]
    fn the_pace_is_kept() {
        let mut pace = Pace::new(100);
        let begun = Instant::now();
        for _ in 0..11 {
            pace.read(PIECE);
        }
        assert!(
            begun.elapsed() >= Duration::from_millis(95),
            "{:?}",
            begun.elapsed()
        );
    }
}
