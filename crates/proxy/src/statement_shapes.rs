//! What an application asks: the shapes of its statements, and how often each came. No value of a
//! statement is kept.
//!
//! Sessions count, and whoever writes the counts down takes them from time to time. What could not
//! be written is given back.

use std::collections::HashMap;

use onionskin_plan::{LexMode, Template, lex, without_values};
use parking_lot::Mutex;

/// Shapes that are kept. More are counted together.
const MOST: usize = 5_000;
/// Bytes of the longest statement that is kept.
const LONGEST: usize = 16 * 1024;

/// The statements of all sessions, by their shapes.
#[derive(Default)]
pub struct StatementShapes(Mutex<Shapes>);

#[derive(Default)]
struct Shapes {
    /// Numbers of shapes, by their database and key.
    numbers: HashMap<(String, Vec<u8>), usize>,
    /// How often each came since it was taken.
    counts: Vec<u64>,
    /// Those that were not taken yet.
    new: Vec<StatementShape>,
    left_out: u64,
    unread: u64,
}

/// Statements of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementShape {
    /// By which it is counted.
    pub number: usize,
    /// The session's database; empty if it has none.
    pub database: String,
    /// One of them, with other values.
    pub sql: String,
}

/// What was counted since the last time.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TakenShapes {
    /// Shapes that are new.
    pub new: Vec<StatementShape>,
    /// Numbers of shapes, and how often statements of them came.
    pub counts: Vec<(usize, u64)>,
    /// Statements of shapes that are not kept, because there are too many or they are too long.
    pub left_out: u64,
    /// Statements that cannot be read.
    pub unread: u64,
}

impl StatementShapes {
    /// Counts the statements of a text. `is_read`: whether the names in one of them are read here
    /// as the server reads them. Otherwise a value might be taken for one.
    pub(crate) fn note(
        &self,
        database: Option<&str>,
        text: &[u8],
        mode: LexMode,
        is_read: impl Fn(&Template) -> bool,
    ) {
        let Ok(cut) = lex::split(text, mode) else {
            return self.note_unread();
        };
        for part in cut.parts {
            let sql = &text[part];
            let mut template = Template::default();
            match template.read(sql, mode).is_ok() && is_read(&template) {
                true => self.note_one(database.unwrap_or_default(), sql, mode, template),
                false => self.note_unread(),
            }
        }
        if cut.compound.is_some() {
            // a program is no statement of an application's
            self.0.lock().left_out += 1;
        }
    }

    /// Counts a statement that cannot be read.
    pub(crate) fn note_unread(&self) {
        self.0.lock().unread += 1;
    }

    fn note_one(&self, database: &str, sql: &[u8], mode: LexMode, template: Template) {
        let shapes = &mut *self.0.lock();
        let key = (database.to_owned(), template.key);
        if let Some(number) = shapes.numbers.get(&key) {
            shapes.counts[*number] += 1;
            return;
        }
        if shapes.numbers.len() >= MOST || sql.len() > LONGEST {
            shapes.left_out += 1;
            return;
        }
        let Some(sql) = without_values(sql, mode) else {
            shapes.unread += 1;
            return;
        };
        let number = shapes.counts.len();
        shapes.counts.push(1);
        shapes.numbers.insert(key, number);
        shapes.new.push(StatementShape {
            number,
            database: database.to_owned(),
            sql,
        });
    }

    /// Takes what was counted. `None` if that is nothing.
    pub fn take(&self) -> Option<TakenShapes> {
        let shapes = &mut *self.0.lock();
        let counted = TakenShapes {
            new: std::mem::take(&mut shapes.new),
            counts: (shapes.counts.iter_mut().enumerate())
                .filter(|(_, count)| **count > 0)
                .map(|(number, count)| (number, std::mem::take(count)))
                .collect(),
            left_out: std::mem::take(&mut shapes.left_out),
            unread: std::mem::take(&mut shapes.unread),
        };
        (counted != TakenShapes::default()).then_some(counted)
    }

    /// Gives back what could not be written.
    pub fn give_back(&self, counted: TakenShapes) {
        let shapes = &mut *self.0.lock();
        shapes.new.splice(0..0, counted.new);
        for (number, count) in counted.counts {
            shapes.counts[number] += count;
        }
        shapes.left_out += counted.left_out;
        shapes.unread += counted.unread;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted_by_shape_and_database() {
        let all = StatementShapes::default();
        let mode = LexMode::default();
        for (database, sql) in [
            (Some("app"), "SELECT a FROM t WHERE b = 'Bob'"),
            (
                Some("app"),
                "SELECT a FROM t WHERE b = 'Eve'; DELETE FROM t",
            ),
            (Some("other"), "SELECT a FROM t WHERE b = 'Eve'"),
            (None, "SELECT 'unclosed"),
        ] {
            all.note(database, sql.as_bytes(), mode, |_| true);
        }
        let shape = |number, database: &str, sql: &str| StatementShape {
            number,
            database: database.into(),
            sql: sql.into(),
        };
        let counted = all.take().unwrap();
        let select = "SELECT a FROM t WHERE b = 'a'";
        let expected = [
            shape(0, "app", select),
            shape(1, "app", "DELETE FROM t"),
            shape(2, "other", select),
        ];
        assert_eq!(counted.new, expected);
        assert_eq!(counted.counts, [(0, 2), (1, 1), (2, 1)]);
        assert_eq!((counted.left_out, counted.unread), (0, 1));
        assert_eq!(all.take(), None);
        all.give_back(counted);
        all.note(Some("app"), b"DELETE FROM t", mode, |_| true);
        all.note(None, b"SELECT \xc3", mode, |_| false);
        let again = all.take().unwrap();
        assert_eq!(again.new, expected);
        assert_eq!(again.counts, [(0, 2), (1, 2), (2, 1)]);
        assert_eq!(again.unread, 2);
    }

    #[test]
    fn memory_is_bounded() {
        let all = StatementShapes::default();
        for n in 0..MOST + 7 {
            let sql = format!("SELECT a{n} FROM t");
            all.note(None, sql.as_bytes(), LexMode::default(), |_| true);
        }
        let long = format!("SELECT {}", "a+".repeat(LONGEST));
        all.note(None, long.as_bytes(), LexMode::default(), |_| true);
        let counted = all.take().unwrap();
        assert_eq!((counted.new.len(), counted.left_out), (MOST, 8));
    }
}
