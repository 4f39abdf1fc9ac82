//! What came of the files: counted, grouped by cause, and differences one by one.

use super::known;
use super::suite::Suite;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// A statement with another answer through the proxy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Difference {
    pub sql: String,
    pub kind: String,
    pub detail: String,
}

/// The result of a file, or of several.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    #[serde(default)]
    pub suite: Suite,
    pub name: String,
    pub equal: usize,
    /// Of these, statements that name a table with protected columns.
    pub near: usize,
    pub refused: usize,
    pub different: usize,
    /// By reason.
    pub not_run: BTreeMap<String, usize>,
    /// By cause: the number, and the first statement.
    pub causes: BTreeMap<String, (usize, String)>,
    /// With the file's name: each statement that was refused, and the message.
    #[serde(default)]
    pub refusals: Vec<(String, String, String)>,
    /// With the file's name.
    pub differences: Vec<(String, Difference)>,
    /// Columns of the tables, and how many of them are protected.
    pub all_columns: usize,
    pub protected_columns: usize,
}

impl Report {
    pub fn new(suite: Suite, name: &str) -> Report {
        Report {
            suite,
            name: name.into(),
            ..Report::default()
        }
    }

    /// Keeps the result of a file in a folder, so that the files may be run in parts.
    pub fn keep(&self, folder: &Path) {
        let text = toml::to_string(self).expect("a report as TOML");
        let path = folder.join(format!("{}.toml", self.name));
        std::fs::write(path, text).expect("the result of a file");
    }

    /// The result that was kept last.
    pub fn kept(folder: &Path, name: &str) -> Option<Report> {
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).ok()?;
        toml::from_str(&text).ok()
    }

    pub fn equal(&mut self, near: bool) {
        self.equal += 1;
        self.near += usize::from(near);
    }

    pub fn refused(&mut self, sql: &str, message: &str) {
        self.refused += 1;
        let (count, _) = self
            .causes
            .entry(cause(message))
            .or_insert_with(|| (0, sql.to_owned()));
        *count += 1;
        let refusal = (self.name.clone(), sql.to_owned(), message.to_owned());
        self.refusals.push(refusal);
    }

    pub fn different(&mut self, difference: Difference) {
        self.different += 1;
        self.differences.push((self.name.clone(), difference));
    }

    pub fn not_run(&mut self, reason: &str, count: usize) {
        if count > 0 {
            *self.not_run.entry(reason.to_owned()).or_default() += count;
        }
    }

    pub fn columns(&mut self, all: usize, protected: usize) {
        self.all_columns += all;
        self.protected_columns += protected;
    }

    /// Number of statements that were not run or not compared.
    pub fn skipped(&self) -> usize {
        self.not_run.values().sum()
    }

    pub fn add(&mut self, other: &Report) {
        self.equal += other.equal;
        self.near += other.near;
        self.refused += other.refused;
        self.different += other.different;
        self.all_columns += other.all_columns;
        self.protected_columns += other.protected_columns;
        for (reason, count) in &other.not_run {
            *self.not_run.entry(reason.clone()).or_default() += count;
        }
        for (cause, (count, example)) in &other.causes {
            let entry = self.causes.entry(cause.clone());
            entry.or_insert_with(|| (0, example.clone())).0 += count;
        }
        self.differences.extend(other.differences.iter().cloned());
        self.refusals.extend(other.refusals.iter().cloned());
    }

    /// One line with the counts.
    pub fn line(&self) -> String {
        format!(
            "{:28} {:5} equal ({:5} near protected columns), {:4} refused, {:3} different, {:4} not run",
            self.name,
            self.equal,
            self.near,
            self.refused,
            self.different,
            self.skipped()
        )
    }

    /// All differences, one by one.
    pub fn differences(&self) -> String {
        let mut out = String::new();
        for (file, d) in &self.differences {
            if let Some(reason) = known::reason(self.suite, file, d) {
                let _ = writeln!(out, "(known: {reason})");
            }
            let _ = writeln!(out, "---- {file}: {}\n{}\n{}\n", d.kind, d.sql, d.detail);
        }
        out
    }

    /// All refusals, a line of the message and a line of the statement each.
    pub fn refusals(&self) -> String {
        let mut out = String::new();
        for (file, sql, message) in &self.refusals {
            let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(out, "{file}: {message}\n    {sql}");
        }
        out
    }

    /// Number of differences without a known reason.
    pub fn unexplained(&self) -> usize {
        let unknown =
            |(file, d): &&(String, Difference)| known::reason(self.suite, file, d).is_none();
        self.differences.iter().filter(unknown).count()
    }

    /// Reasons for not running and causes of refusals, the most frequent first, with an example of
    /// each.
    pub fn details(&self) -> String {
        let mut out = String::new();
        let mut reasons: Vec<_> = self.not_run.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (reason, count) in reasons {
            let _ = writeln!(out, "not run {count:5}: {reason}");
        }
        let mut causes: Vec<_> = self.causes.iter().collect();
        causes.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (cause, (count, example)) in causes {
            let example: String = example.split_whitespace().collect::<Vec<_>>().join(" ");
            let example: String = example.chars().take(200).collect();
            let _ = writeln!(out, "refused {count:5}: {cause}\n               {example}");
        }
        out
    }
}

/// The counts of each file in a table, and refusals and reasons in groups: a section of
/// docs/sql.md.
pub fn page(files: &[Report], sum: &Report) -> String {
    let run = |r: &Report| (r.equal + r.refused + r.different).max(1);
    let share = |part: usize, r: &Report| 100.0 * part as f64 / run(r) as f64;
    let mut out = String::from(
        "| file | equal | near protected columns | refused | different | not run |\n|---|---|---|---|---|---|\n",
    );
    for r in files.iter().chain([sum]) {
        let bold = if r.name == sum.name { "**" } else { "" };
        let _ = writeln!(
            out,
            "| {bold}{}{bold} | {} ({:.1} %) | {} | {} | {} | {} |",
            r.name,
            r.equal,
            share(r.equal, r),
            r.near,
            r.refused,
            r.different,
            r.skipped()
        );
    }
    let _ = writeln!(
        out,
        "\nOf the statements that were run and compared, {:.1} % are equal, {:.1} % refused, {:.1} % different. {} of {} columns were protected.\n",
        share(sum.equal, sum),
        share(sum.refused, sum),
        share(sum.different, sum),
        sum.protected_columns,
        sum.all_columns
    );
    out += "| refused | cause |\n|---|---|\n";
    let causes = most(sum.causes.iter().map(|(c, (n, _))| (c, *n)).collect());
    let mut rest = 0;
    for (cause, count) in causes {
        if count < 5 {
            rest += count;
            continue;
        }
        let _ = writeln!(out, "| {count} | {} |", cause.replace('|', "\\|"));
    }
    let _ = writeln!(
        out,
        "| {rest} | causes with fewer than five statements each |"
    );
    out += "\n| not run, or not compared | why |\n|---|---|\n";
    for (reason, count) in most(sum.not_run.iter().map(|(r, n)| (r, *n)).collect()) {
        let _ = writeln!(out, "| {count} | {reason} |");
    }
    out += "\n| file | different | why |\n|---|---|---|\n";
    for (file, d) in &sum.differences {
        let reason = known::reason(sum.suite, file, d).unwrap_or("not yet explained");
        let sql = d.sql.split_whitespace().collect::<Vec<_>>().join(" ");
        let kind = d.kind.replace('|', "\\|");
        // a few words are enough to find the statement in its file
        let words: String = sql.chars().take(60).collect();
        let _ = writeln!(
            out,
            "| {file} | {kind}: `{}` | {reason} |",
            words.replace(['|', '`'], " ")
        );
    }
    out
}

fn most(mut counted: Vec<(&String, usize)>) -> Vec<(&String, usize)> {
    counted.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), (*name).clone()));
    counted
}

/// The message without what is special to the statement: `OS1004 column …`.
fn cause(message: &str) -> String {
    // `OS1008 about: meaning way out`, or `OS1008: meaning way out`
    let code = message.get(..6).unwrap_or(message);
    let about = message[code.len()..]
        .split(": ")
        .next()
        .unwrap_or_default()
        .trim();
    let mut words = Vec::new();
    for word in about.split_whitespace() {
        let is_name = word.contains(['\'', '`', '.'])
            || matches!(
                words.last(),
                Some(&("column" | "table" | "columns" | "of" | "view"))
            );
        words.push(if is_name { "…" } else { word });
    }
    let text = format!("{code} {}", words.join(" "));
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::cause;

    #[test]
    fn names_are_left_out_of_a_cause() {
        assert_eq!(
            cause("OS1004 column t1.a in x: A protected"),
            "OS1004 column … in x"
        );
        assert_eq!(cause("OS1001: The statement"), "OS1001");
    }
}
