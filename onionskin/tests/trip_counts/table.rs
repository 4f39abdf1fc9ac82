//! Counts of round trips: as they are recorded, compared, and shown to users.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use super::statements::GROUPS;

/// How to record them anew.
pub const RECORD: &str =
    "ONIONSKIN_UPDATE=1 cargo test --locked --profile ci -p onionskin --test trip_counts";

/// Round trips of one statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// On the session's connection to the server.
    pub server: usize,
    /// To the scratch engine.
    pub engine: usize,
    /// On other connections to the server.
    pub others: usize,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.server)?;
        if self.engine > 0 {
            write!(f, "+{}e", self.engine)?;
        }
        if self.others > 0 {
            write!(f, "+{}o", self.others)?;
        }
        Ok(())
    }
}

impl Count {
    fn parse(text: &str) -> Option<Count> {
        let mut parts = text.split('+');
        let mut count = Count {
            server: parts.next()?.parse().ok()?,
            ..Count::default()
        };
        for part in parts {
            let (number, kind) = part.split_at(part.len().checked_sub(1)?);
            let number = number.parse().ok()?;
            match kind {
                "e" => count.engine = number,
                "o" => count.others = number,
                _ => return None,
            }
        }
        Some(count)
    }

    /// All of them.
    pub fn sum(self) -> usize {
        self.server + self.engine + self.others
    }
}

/// A statement in one protocol: the first run, and a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    pub first: Count,
    pub later: Count,
}

/// Of a text, and of a prepared statement, if servers prepare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub text: Runs,
    pub prepared: Option<Runs>,
}

/// What one server was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The server's version, as far as counts may depend on it.
    pub version: String,
    /// By the statements' titles.
    pub rows: BTreeMap<String, Row>,
}

/// By the servers' names.
pub type Table = BTreeMap<&'static str, Counts>;

/// The servers, as recorded and as users read them.
const SERVERS: [(&str, &str); 2] = [("mariadb", "MariaDB"), ("mysql", "MySQL")];

pub fn print(table: &Table) -> String {
    let mut text = String::from(
        "# Round trips of each kind of statement: trip_counts.rs compares and records them.\n\
         # As a text first and later, then prepared: to the server, +e to the engine, +o on other connections.\n",
    );
    for (server, counts) in table {
        writeln!(text, "\n{server} {}", counts.version).unwrap();
        for title in titles() {
            let Some(row) = counts.rows.get(&title) else {
                continue;
            };
            write!(text, "{:<12} {:<12} ", row.text.first, row.text.later).unwrap();
            match row.prepared {
                Some(runs) => write!(text, "{:<12} {:<12} ", runs.first, runs.later).unwrap(),
                None => write!(text, "{:<12} {:<12} ", "-", "-").unwrap(),
            }
            writeln!(text, "{title}").unwrap();
        }
    }
    text
}

pub fn parse(text: &str) -> Table {
    let mut table = Table::new();
    let mut server = "";
    let lines = text.lines();
    for line in lines.filter(|l| !l.starts_with('#') && !l.is_empty()) {
        let (word, rest) = line.split_once(' ').expect(line);
        if let Some((name, _)) = SERVERS.iter().find(|(name, _)| *name == word) {
            server = name;
            table.entry(server).or_default().version = rest.into();
            continue;
        }
        let mut rest = line;
        let mut word = || {
            let (word, behind) = rest.trim_start().split_once(' ').expect(line);
            rest = behind;
            Count::parse(word)
        };
        let mut runs = || {
            let (first, later) = (word()?, word()?);
            Some(Runs { first, later })
        };
        let text = runs().expect(line);
        let prepared = match runs() {
            Some(runs) => Some(runs),
            None => {
                // the second dash
                word();
                None
            }
        };
        let row = Row { text, prepared };
        let counts = table.get_mut(server).expect("a server's name first");
        counts.rows.insert(rest.trim().into(), row);
    }
    table
}

/// What differs between what is recorded and what is counted now.
pub fn differences(recorded: &Counts, now: &Counts) -> Vec<(String, String)> {
    let mut differences = Vec::new();
    let mut tell = |title: &str, what: String| differences.push((title.to_owned(), what));
    for (title, row) in &now.rows {
        let Some(before) = recorded.rows.get(title) else {
            tell(title, "not recorded yet".into());
            continue;
        };
        let pairs = [
            ("text, first", Some(before.text.first), Some(row.text.first)),
            ("text, later", Some(before.text.later), Some(row.text.later)),
            (
                "prepared, first",
                before.prepared.map(|r| r.first),
                row.prepared.map(|r| r.first),
            ),
            (
                "prepared, later",
                before.prepared.map(|r| r.later),
                row.prepared.map(|r| r.later),
            ),
        ];
        for (run, before, now) in pairs {
            // an engine that is used for the first time gets what it needs in pieces
            let of_server = |count: Count| (count.server, count.others);
            let is_first = run.ends_with("first");
            if before == now || is_first && before.map(of_server) == now.map(of_server) {
                continue;
            }
            let word = |count: Option<Count>| count.map_or("-".into(), |c| c.to_string());
            let sum = |count: Option<Count>| count.map_or(0, Count::sum);
            let is = match sum(now) > sum(before) {
                true => "more",
                false => "fewer or others; record them, so that what was won stays won",
            };
            tell(
                title,
                format!("{run}: {} before, {} now: {is}", word(before), word(now)),
            );
        }
    }
    for title in recorded.rows.keys() {
        if !now.rows.contains_key(title) {
            tell(title, "recorded, and not counted any more".into());
        }
    }
    differences
}

/// The titles in the order of the page.
fn titles() -> impl Iterator<Item = String> {
    let groups = GROUPS.iter();
    groups.flat_map(|group| group.statements.iter().map(|s| s.title()))
}

/// The part of the page that is made.
pub fn page(table: &Table) -> String {
    let mut text = String::from("| first → repeated |");
    for (_, name) in SERVERS {
        write!(text, " {name}, text | prepared |").unwrap();
    }
    text += "\n|---|---|---|---|---|\n| a plain client | 1 → 1 | 2 → 1 | 1 → 1 | 2 → 1 |\n";
    for group in GROUPS {
        writeln!(text, "| **{}** | | | | |", group.name).unwrap();
        for statement in group.statements {
            let title = statement.title();
            write!(text, "| {title} |").unwrap();
            for (server, _) in SERVERS {
                let row = table.get(server).and_then(|counts| counts.rows.get(&title));
                let cells = [row.map(|r| r.text), row.and_then(|r| r.prepared)];
                for runs in cells {
                    match runs {
                        Some(runs) => write!(text, " {} |", shown(runs)).unwrap(),
                        None => text += " |",
                    }
                }
            }
            text += "\n";
        }
    }
    text
}

/// What is more than a plain client's is set in bold.
fn shown(runs: Runs) -> String {
    let later = match runs.later.sum() {
        0 | 1 => runs.later.to_string(),
        _ => format!("**{}**", runs.later),
    };
    format!("{} → {later}", runs.first)
}
