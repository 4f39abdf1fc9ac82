//! The statements of an application, by their shapes.

use std::collections::HashMap;

use onionskin_plan::{LexMode, Template};

use crate::text::shown;

/// Shapes that are kept. More are counted, and told.
const MAX_SHAPES: usize = 5_000;
/// Bytes of a statement that is looked at.
const MAX_STATEMENT: usize = 1 << 20;
/// Characters of a shape in a report.
const MAX_SHOWN: usize = 1_000;

/// Statements of one shape in one database.
#[derive(Clone, Debug)]
pub struct Shape {
    /// One of them, with its values. It never leaves the program.
    pub(super) sql: String,
    /// The database that names without one belong to.
    pub database: String,
    /// `?` in the place of values.
    pub shown: String,
    /// How often.
    pub count: u64,
}

/// All statements that were read.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    shapes: Vec<Shape>,
    /// Places of shapes, by their database and key.
    places: HashMap<(String, Vec<u8>), usize>,
    /// Places of prepared statements, by their database and what is shown of them.
    prepared: HashMap<(String, String), usize>,
    /// What could not be read, and how often.
    skipped: Vec<(String, u64)>,
}

impl Asked {
    /// Counts a statement.
    pub fn add(&mut self, sql: &str, database: &str, count: u64) {
        if let Some((template, sql)) = self.read(sql, count) {
            let place = self.place(&template, sql, database);
            self.note(place, count);
        }
    }

    /// A statement that is prepared and not run: its parameters are what the proxy gets to see.
    pub fn prepare(&mut self, sql: &str, database: &str) {
        let Some((template, sql)) = self.read(sql, 1) else {
            return;
        };
        if let Some(place) = self.place(&template, sql, database) {
            let key = (database.to_owned(), self.shapes[place].shown.clone());
            self.prepared.insert(key, place);
        }
    }

    /// A prepared statement that is run. Logs write its values into it.
    pub fn execute(&mut self, sql: &str, database: &str) {
        let Some((template, text)) = self.read(sql, 1) else {
            return;
        };
        let key = (database.to_owned(), template.shown(MAX_SHOWN));
        match self.prepared.get(&key).copied() {
            Some(place) => self.note(Some(place), 1),
            None => {
                let place = self.place(&template, text, database);
                self.note(place, 1);
            }
        }
    }

    /// Counts something that is not looked at.
    pub fn skip(&mut self, why: &str, count: u64) {
        match self.skipped.iter_mut().find(|(known, _)| known == why) {
            Some((_, counted)) => *counted += count,
            None => self.skipped.push((why.to_owned(), count)),
        }
    }

    /// What was not looked at.
    pub fn skipped(&self) -> &[(String, u64)] {
        &self.skipped
    }

    /// The shapes, the most frequent first. What was prepared and never run counts once.
    pub fn shapes(&self) -> Vec<Shape> {
        let mut shapes = self.shapes.clone();
        for shape in &mut shapes {
            shape.count = shape.count.max(1);
        }
        shapes.sort_by(|a, b| (b.count, &a.shown).cmp(&(a.count, &b.shown)));
        shapes
    }

    fn read<'s>(&mut self, sql: &'s str, count: u64) -> Option<(Template, &'s str)> {
        let sql = sql.trim().trim_end_matches(';').trim_end();
        let mut template = Template::default();
        let why = match () {
            () if sql.is_empty() => return None,
            () if sql.len() > MAX_STATEMENT => "statements that are too long",
            () if template.read(sql.as_bytes(), LexMode::default()).is_err() => {
                "statements that cannot be read"
            }
            () if template.key.is_empty() => return None,
            () => return Some((template, sql)),
        };
        self.skip(why, count);
        None
    }

    fn place(&mut self, template: &Template, sql: &str, database: &str) -> Option<usize> {
        let key = (database.to_owned(), template.key.clone());
        if let Some(place) = self.places.get(&key) {
            return Some(*place);
        }
        if self.shapes.len() >= MAX_SHAPES {
            return None;
        }
        self.shapes.push(Shape {
            sql: sql.to_owned(),
            database: database.to_owned(),
            shown: shape_of(template),
            count: 0,
        });
        self.places.insert(key, self.shapes.len() - 1);
        Some(self.shapes.len() - 1)
    }

    fn note(&mut self, place: Option<usize>, count: u64) {
        match place {
            Some(place) => self.shapes[place].count += count,
            None => self.skip("statements of further shapes", count),
        }
    }
}

fn shape_of(template: &Template) -> String {
    let shape = template.shown(MAX_SHOWN);
    // `shown` keeps what a report has room for
    let words: Vec<&str> = shape.split_whitespace().collect();
    shown(&words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted_by_shape() {
        let mut asked = Asked::default();
        asked.add("SELECT a FROM t WHERE b = 'secret'", "app", 1);
        asked.add("SELECT a FROM t WHERE b = 'other' ; ", "app", 4);
        asked.add("SELECT a FROM t WHERE b = 'other'", "elsewhere", 1);
        asked.add("SELECT 'open", "app", 2);
        asked.add(" ;", "app", 1);
        let shapes = asked.shapes();
        let seen: Vec<_> = shapes
            .iter()
            .map(|s| (s.shown.as_str(), s.database.as_str(), s.count))
            .collect();
        assert_eq!(
            seen,
            [
                ("SELECT a FROM t WHERE b = ?", "app", 5),
                ("SELECT a FROM t WHERE b = ?", "elsewhere", 1)
            ]
        );
        assert_eq!(
            asked.skipped(),
            [("statements that cannot be read".to_owned(), 2)]
        );
    }

    #[test]
    fn what_is_prepared_counts_when_it_is_run() {
        let mut asked = Asked::default();
        asked.prepare("SELECT a FROM t WHERE b = ?", "app");
        asked.execute("SELECT a FROM t WHERE b = 'x'", "app");
        asked.execute("SELECT a FROM t WHERE b = 'y'", "app");
        asked.execute("SELECT c FROM t WHERE b = 'y'", "app");
        asked.prepare("SELECT d FROM t", "app");
        let shapes = asked.shapes();
        let seen: Vec<_> = shapes.iter().map(|s| (s.sql.as_str(), s.count)).collect();
        assert_eq!(
            seen,
            [
                ("SELECT a FROM t WHERE b = ?", 2),
                ("SELECT c FROM t WHERE b = 'y'", 1),
                ("SELECT d FROM t", 1)
            ]
        );
    }
}
