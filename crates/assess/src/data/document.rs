//! Values of JSON columns: each path is a column of its own.

use std::collections::BTreeMap;

use serde_json::Value;

use super::classify::Tally;

/// Most paths of one column.
const MAX_PATHS: usize = 200;
/// Deepest path.
const MAX_DEPTH: usize = 8;
/// Longest path, in bytes.
const MAX_LENGTH: usize = 200;
/// Values of one document.
const MAX_VALUES: usize = 500;

/// Tallies by path.
#[derive(Default)]
pub(super) struct Paths {
    tallies: BTreeMap<String, Tally>,
    /// Paths, or documents, that were left out.
    pub(super) left_out: usize,
}

impl Paths {
    /// Counts a document; false if it is none.
    pub(super) fn add(&mut self, text: &str) -> bool {
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            return false;
        };
        let mut left = MAX_VALUES;
        self.walk("$", &value, 0, &mut left);
        true
    }

    fn walk(&mut self, path: &str, value: &Value, depth: usize, left: &mut usize) {
        if *left == 0 || depth > MAX_DEPTH || path.len() > MAX_LENGTH {
            self.left_out += 1;
            return;
        }
        *left -= 1;
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.walk(&format!("{path}.{name}"), value, depth + 1, left);
                }
            }
            Value::Array(values) => {
                for value in values {
                    self.walk(&format!("{path}[*]"), value, depth + 1, left);
                }
            }
            Value::String(text) => self.count(path, text),
            Value::Number(number) => self.count(path, &number.to_string()),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn count(&mut self, path: &str, text: &str) {
        if self.tallies.len() >= MAX_PATHS && !self.tallies.contains_key(path) {
            self.left_out += 1;
            return;
        }
        self.tallies.entry(path.to_owned()).or_default().add(text);
    }

    /// Paths, each with the last name on it and its tally.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, &str, &Tally)> {
        self.tallies.iter().map(|(path, tally)| {
            let last = path.rsplit('.').next().unwrap_or(path);
            (path.as_str(), last.trim_end_matches("[*]"), tally)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_counted_and_bounded() {
        let mut paths = Paths::default();
        assert!(
            paths.add(
                r#"{"user": {"email": "a@example.org", "tags": ["x", "y"]}, "n": 1, "b": true}"#
            )
        );
        assert!(!paths.add("no document"));
        let found: Vec<(&str, &str, usize)> =
            paths.each().map(|(p, l, t)| (p, l, t.values())).collect();
        assert_eq!(
            found,
            [
                ("$.n", "n", 1),
                ("$.user.email", "email", 1),
                ("$.user.tags[*]", "tags", 2)
            ]
        );
        let wide: Vec<String> = (0..10_000).map(|n| format!("\"k{n}\": \"v\"")).collect();
        assert!(paths.add(&format!("{{{}}}", wide.join(","))));
        assert!(paths.each().count() <= MAX_PATHS);
        assert!(paths.left_out > 0);
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(paths.add(&deep));
    }
}
