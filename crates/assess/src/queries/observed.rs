//! What `onionskin serve --observe` has written: lines of JSON, of one or more runs. Its format is
//! described there.

use std::collections::HashMap;

use serde::Deserialize;

use super::asked::Asked;

/// How the first line of such a file begins.
pub const HEAD: &str = "{\"onionskin\":\"observed statements\"";
/// The version that is read.
const VERSION: u64 = 1;

/// A line: the beginning of a run, a shape, or counts.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Line {
    onionskin: Option<String>,
    version: Option<u64>,
    began: Option<String>,
    run: String,
    shape: Option<usize>,
    database: String,
    sql: String,
    counts: Vec<(usize, u64)>,
    left_out: u64,
    unread: u64,
}

/// Whether a text is such a file.
pub(super) fn is_it(text: &str) -> bool {
    text.starts_with(HEAD)
}

/// Reads statements; those of sessions without a database belong to `database`.
pub(super) fn read(text: &str, database: &str, asked: &mut Asked) {
    // by run and number: the database, the statement, and how often it came
    let mut shapes: HashMap<(String, usize), (String, String, u64)> = HashMap::new();
    let mut order = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            // where the disk was full, or the program was killed
            asked.skip("lines of observed statements that are broken off", 1);
            continue;
        };
        if line.version.is_some_and(|version| version != VERSION) {
            asked.skip("runs of another version's observed statements", 1);
            continue;
        }
        if let Some(number) = line.shape {
            let key = (line.run.clone(), number);
            if !shapes.contains_key(&key) {
                order.push(key.clone());
            }
            let of = match line.database.is_empty() {
                true => database.to_owned(),
                false => line.database,
            };
            shapes.insert(key, (of, line.sql, 0));
        }
        let mut lost = 0;
        for (number, count) in line.counts {
            match shapes.get_mut(&(line.run.clone(), number)) {
                Some((_, _, counted)) => *counted += count,
                None => lost += count,
            }
        }
        let left_out = line.left_out + lost;
        for (why, count) in [
            ("observed statements that were not kept", left_out),
            ("observed statements that cannot be read", line.unread),
        ] {
            if count > 0 {
                asked.skip(why, count);
            }
        }
    }
    for key in order {
        if let Some((of, sql, count)) = shapes.remove(&key).filter(|(_, _, count)| *count > 0) {
            asked.add(&sql, &of, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_added_up() {
        let text = r#"{"onionskin":"observed statements","version":1,"run":"a","began":"2026-11-30T08:00:00Z"}
{"run":"a","shape":0,"database":"app","sql":"SELECT a FROM t WHERE b = 'a'"}
{"run":"a","shape":1,"database":"","sql":"SELECT 1"}
{"run":"a","counts":[[0,3],[1,1]],"left_out":0,"unread":2}
{"onionskin":"observed statements","version":1,"run":"b","began":"2026-11-30T09:00:00Z"}
{"run":"b","shape":0,"database":"app","sql":"SELECT a FROM t WHERE b = 'a'"}

{"run":"a","counts":[[0,1],[9,4]],"left_out":0,"unread":0}
{"run":"b","counts":[[0,5]],"left_out":1,"unread":0}
{"run":"b","cou"#;
        assert!(is_it(text));
        let mut asked = Asked::default();
        read(text, "none", &mut asked);
        let shapes = asked.shapes();
        let shapes: Vec<(&str, &str, u64)> = shapes
            .iter()
            .map(|s| (s.database.as_str(), s.shown.as_str(), s.count))
            .collect();
        assert_eq!(
            shapes,
            [
                ("app", "SELECT a FROM t WHERE b = ?", 9),
                ("none", "SELECT ?", 1)
            ]
        );
        let mut skipped: Vec<u64> = asked.skipped().iter().map(|(_, n)| *n).collect();
        skipped.sort_unstable();
        assert_eq!(skipped, [1, 2, 5]);
    }
}
