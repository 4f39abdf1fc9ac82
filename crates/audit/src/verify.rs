//! Reads all runs of a folder, and tells what is wrong with them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use onionskin_crypt::AuditKey;
use serde::Serialize;

use crate::error::AuditError;
use crate::folder::runs;
use crate::line::{FoundEnd, Link, NO_LINK, Noted, Parsed, hex, is_sealed, link_of};

/// A line is never so long: shapes are shortened, and no statement has so many columns.
const MOST: u64 = 16 << 20;

/// A run that is written has a head that is not older.
const FRESH: TimeDelta = TimeDelta::seconds(150);

/// What is wrong, in the order in which it was met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fault {
    /// A line does not continue the chain.
    #[error("{file}, line {line}: was changed, or lines before it were removed, added or moved")]
    Broken {
        /// The part.
        file: String,
        /// From 1.
        line: u64,
    },
    /// A seal is not of this key.
    #[error(
        "{file}, line {line}: its seal is wrong: it and lines before it were made anew, or these are other keys"
    )]
    Seal {
        /// The part.
        file: String,
        /// From 1.
        line: u64,
    },
    /// A part ends within a line, and another one follows.
    #[error("{file}: ends within a line")]
    Torn {
        /// The part.
        file: String,
    },
    /// A file of a run is not there.
    #[error("run {run}: part {part} is missing")]
    Missing {
        /// The run.
        run: String,
        /// From 1.
        part: u32,
    },
    /// Nobody writes the run, and it has no end.
    #[error(
        "run {run}: has no end since line {n}: the program was killed and has not been started since, or lines were removed"
    )]
    NoEnd {
        /// The run.
        run: String,
        /// Its last line.
        n: u64,
    },
    /// A run behind it, or the file of heads, knows another line of that number, or there is none.
    #[error("run {run}: line {n} is missing or another one than its {witness} says")]
    Differs {
        /// The run.
        run: String,
        /// The line.
        n: u64,
        /// What says so.
        witness: &'static str,
    },
    /// Lines stand behind the end that the next start has found.
    #[error("run {run}: lines were added behind line {n}, where the next start has found its end")]
    Added {
        /// The run.
        run: String,
        /// The last line that was there.
        n: u64,
    },
    /// Of a run that the file of heads knows there is nothing.
    #[error("run {run}: is missing; its line {n} was of {time}")]
    Gone {
        /// The run.
        run: String,
        /// Its last line that is known of.
        n: u64,
        /// When that was written.
        time: DateTime<Utc>,
    },
    /// A line of the file of heads.
    #[error("file of heads, line {line}: was changed, or is of other keys")]
    HeadLine {
        /// From 1.
        line: u64,
    },
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// By its last line.
    Closed,
    /// It is written.
    Running,
    /// The program was killed; a later start has found its end.
    Killed,
    /// See the faults.
    Unknown,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// Its name.
    pub run: String,
    /// Its first and last part that are there.
    pub parts: (u32, u32),
    /// Time of its first line that is there, and of its last.
    pub times: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// Number of its last line.
    pub last: u64,
    /// Statements that have a line.
    pub statements: u64,
    /// Statements that are told as lost.
    pub lost: u64,
    /// Lines behind the last seal. Whoever can write the file can write others in their place.
    pub unsealed: u64,
    /// How it ends.
    pub state: RunState,
}

/// What a folder holds.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// By name.
    pub runs: Vec<RunReport>,
    /// Nothing is wrong if there are none.
    pub faults: Vec<Fault>,
}

/// Reads the folder and, if it is given, the file of heads. Files that were removed on purpose are
/// no faults if nothing in them was written at `since` or later.
pub fn verify(
    folder: &Path,
    heads: Option<&Path>,
    key: &AuditKey,
    since: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<Report, AuditError> {
    let mut faults = Vec::new();
    let noted = match heads {
        Some(path) => read_heads(path, key, &mut faults)?,
        None => BTreeMap::new(),
    };
    let mut read = Vec::new();
    for (run, parts) in runs(folder)? {
        let witnessed = noted.get(&run).map(Vec::as_slice).unwrap_or_default();
        let mut reader = Reader::new(run, key, witnessed, since);
        for (part, path) in parts {
            reader.part(part, &path)?;
        }
        read.push(reader);
    }
    let found: Vec<FoundEnd> = read.iter().flat_map(|r| r.found.iter().cloned()).collect();
    let runs = read
        .into_iter()
        .map(|reader| reader.finish(&found, now, &mut faults))
        .collect::<Vec<_>>();
    for (run, heads) in noted {
        let Some(last) = heads.iter().max_by_key(|head| head.n) else {
            continue;
        };
        let is_old = since.is_some_and(|since| last.time < since);
        if !is_old && !runs.iter().any(|known| known.run == run) {
            let (n, time) = (last.n, last.time);
            faults.push(Fault::Gone { run, n, time });
        }
    }
    Ok(Report { runs, faults })
}

fn read_heads(
    path: &Path,
    key: &AuditKey,
    faults: &mut Vec<Fault>,
) -> Result<BTreeMap<String, Vec<Noted>>, AuditError> {
    let mut noted: BTreeMap<String, Vec<Noted>> = BTreeMap::new();
    let mut number = 0;
    each_line(path, |line, _| {
        number += 1;
        match Noted::read(line, key) {
            Some(head) => noted.entry(head.run.clone()).or_default().push(head),
            None => faults.push(Fault::HeadLine { line: number }),
        }
    })?;
    Ok(noted)
}

/// Calls for each line, without its end, and whether it has one.
fn each_line(path: &Path, mut each: impl FnMut(&[u8], bool)) -> Result<(), AuditError> {
    let failed = |source| AuditError::File {
        path: path.to_owned(),
        source,
    };
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut file).take(MOST).read_until(b'\n', &mut line);
        if read.map_err(failed)? == 0 {
            return Ok(());
        }
        let is_whole = line.last() == Some(&b'\n');
        if is_whole {
            line.pop();
        }
        each(&line, is_whole);
    }
}

/// Reads a run, part by part.
struct Reader<'a> {
    run: String,
    key: &'a AuditKey,
    witnessed: &'a [Noted],
    since: Option<DateTime<Utc>>,
    faults: Vec<Fault>,
    first_part: u32,
    last_part: u32,
    /// The first line that is there.
    first: u64,
    n: u64,
    link: Link,
    /// The chain could be followed up to here.
    is_whole: bool,
    times: Option<(DateTime<Utc>, DateTime<Utc>)>,
    statements: u64,
    lost: u64,
    unsealed: u64,
    last_record: String,
    found: Vec<FoundEnd>,
    /// Links of the lines that are witnessed, as they are met.
    met: BTreeMap<u64, Link>,
    is_torn: bool,
}

impl<'a> Reader<'a> {
    fn new(
        run: String,
        key: &'a AuditKey,
        witnessed: &'a [Noted],
        since: Option<DateTime<Utc>>,
    ) -> Self {
        Reader {
            run,
            key,
            witnessed,
            since,
            faults: Vec::new(),
            first_part: 0,
            last_part: 0,
            first: 1,
            n: 0,
            link: NO_LINK,
            is_whole: true,
            times: None,
            statements: 0,
            lost: 0,
            unsealed: 0,
            last_record: String::new(),
            found: Vec::new(),
            met: BTreeMap::new(),
            is_torn: false,
        }
    }

    fn part(&mut self, part: u32, path: &Path) -> Result<(), AuditError> {
        let file = path.display().to_string();
        if self.is_torn {
            self.faults.push(Fault::Torn { file: file.clone() });
            self.is_torn = false;
        }
        let is_first = self.last_part == 0;
        if is_first {
            self.first_part = part;
        }
        let follows = part == self.last_part + 1;
        let (run, last) = (self.run.clone(), self.last_part);
        self.last_part = part;
        let mut number = 0;
        let mut goes_on = true;
        each_line(path, |line, has_end| {
            number += 1;
            if !goes_on {
                return;
            }
            if !has_end {
                self.is_torn = true;
                return;
            }
            let Some(parsed) = Parsed::read(line) else {
                goes_on = false;
                let (file, line) = (file.clone(), number);
                self.faults.push(Fault::Broken { file, line });
                return;
            };
            // A part whose forerunner is not there begins where its first line says, which its seal
            // proves.
            if number == 1 && !follows {
                let after = parsed.says.after.as_deref();
                self.link = after.and_then(|a| link_of(a.as_bytes())).unwrap_or(NO_LINK);
                self.n = parsed.says.n.saturating_sub(1);
                if is_first {
                    self.first = parsed.says.n;
                }
                let is_old = self.since.is_some_and(|since| parsed.says.time <= since);
                if !(is_first && is_old) {
                    let (run, part) = (run.clone(), last + 1);
                    self.faults.push(Fault::Missing { run, part });
                }
            }
            goes_on = self.line(&parsed, part, number, &file);
        })?;
        self.is_whole &= goes_on;
        Ok(())
    }

    /// Whether the chain can be followed further.
    fn line(&mut self, parsed: &Parsed, part: u32, number: u64, file: &str) -> bool {
        let says = &parsed.says;
        let place = || (file.to_owned(), number);
        let opens = says.record == "opened";
        let is_next = says.n == self.n + 1 && says.run == self.run;
        let stands_right = (number == 1) == opens && (!opens || says.part == Some(part));
        if !is_next || !stands_right || !parsed.follows(&self.link) {
            let (file, line) = place();
            self.faults.push(Fault::Broken { file, line });
            return false;
        }
        if !parsed.has_its_seal(&self.link, self.key) {
            let (file, line) = place();
            self.faults.push(Fault::Seal { file, line });
            return false;
        }
        // behind the last line of a part, or of the run, there is none
        if number > 1 && matches!(&*self.last_record, "turned" | "closed") {
            let (file, line) = place();
            self.faults.push(Fault::Broken { file, line });
            return false;
        }
        (self.n, self.link) = (says.n, parsed.link);
        self.unsealed = match is_sealed(&says.record) {
            true => 0,
            false => self.unsealed + 1,
        };
        match &*says.record {
            "statement" => self.statements += 1,
            "lost" => self.lost += says.statements.unwrap_or_default(),
            _ => {}
        }
        let first = self.times.map_or(says.time, |(first, _)| first);
        self.times = Some((first, says.time));
        self.found.extend(says.found.iter().cloned());
        self.last_record.clone_from(&says.record);
        if self.witnessed.iter().any(|head| head.n == says.n) {
            self.met.insert(says.n, parsed.link);
        }
        true
    }

    /// Compares the run's end with what is known of it elsewhere.
    fn finish(mut self, found: &[FoundEnd], now: DateTime<Utc>, all: &mut Vec<Fault>) -> RunReport {
        all.append(&mut self.faults);
        let run = self.run.clone();
        let mut state = RunState::Unknown;
        let (end, link) = (self.n, hex(&self.link));
        // Behind a line that breaks the chain, what is missing has been told.
        if self.is_whole {
            let is_fresh = self.times.is_some_and(|(_, last)| now - last < FRESH);
            let end_of = found.iter().find(|end| end.run == self.run);
            match (&*self.last_record, end_of) {
                ("closed", _) => state = RunState::Closed,
                (_, Some(known)) if known.n == end && known.link == link => {
                    state = RunState::Killed;
                    self.unsealed = 0;
                }
                (_, Some(known)) if known.n < end => {
                    let n = known.n;
                    all.push(Fault::Added { run, n });
                }
                (_, Some(known)) => {
                    let (n, witness) = (known.n, "next start");
                    all.push(Fault::Differs { run, n, witness });
                }
                (_, None) if is_fresh => state = RunState::Running,
                (_, None) => all.push(Fault::NoEnd { run, n: end }),
            }
            for head in self.witnessed.iter().filter(|head| head.n >= self.first) {
                let met = self.met.get(&head.n).map(|link| hex(link));
                if met.as_deref() != Some(&*head.link) {
                    all.push(Fault::Differs {
                        run: self.run.clone(),
                        n: head.n,
                        witness: "head",
                    });
                    break;
                }
            }
        }
        RunReport {
            run: self.run,
            parts: (self.first_part, self.last_part),
            times: self.times,
            last: self.n,
            statements: self.statements,
            lost: self.lost,
            unsealed: self.unsealed,
            state,
        }
    }
}
