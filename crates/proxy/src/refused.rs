//! Statements that were refused, by their shape: the list to work through when an application is
//! moved to the proxy.
//!
//! Kept are shapes, never values. Their number is bounded: where there is no room for another one,
//! the one that was met the longest time ago is forgotten.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use onionskin_plan::errors::{self, Entry};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// In the place of a shape.
pub(crate) const UNREAD: &str = "(a text that cannot be read)";

/// Shapes that are kept.
const SHAPES: usize = 500;
/// Characters of a shape, and of what is said of it.
pub(crate) const LENGTH: usize = 1_000;

/// What would make a statement run that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Help {
    /// A capability of a column: tier 1.
    #[serde(rename = "eq")]
    Equality,
    /// Likewise.
    #[serde(rename = "range")]
    Range,
    /// A scratch engine: tier 3.
    #[serde(rename = "engine")]
    Engine,
}

/// Statements of one shape that were refused in one way.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Refused {
    /// Of the table of errors.
    pub code: Cow<'static, str>,
    /// Without literals, and without comments.
    pub shape: String,
    /// The database that was current the last time.
    pub database: Option<String>,
    /// What the client was told the last time.
    pub message: String,
    /// What the table of errors says to do.
    pub way_out: Cow<'static, str>,
    /// What would make it run. Where it is none, this is not known.
    pub help: Option<Help>,
    /// How often.
    pub count: u64,
    /// The first time, in seconds since 1970.
    pub first: u64,
    /// The last time, likewise.
    pub last: u64,
}

/// One refusal.
pub(crate) struct Met {
    pub entry: &'static Entry,
    pub shape: String,
    pub database: Option<String>,
    pub message: String,
}

type Key = (&'static str, String);

/// See the module. All sessions share it, over reloads as well.
#[derive(Default)]
pub(crate) struct RefusedShapes {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    shapes: HashMap<Key, Refused>,
    /// Shapes that were forgotten.
    forgotten: u64,
}

impl RefusedShapes {
    /// Counts a refusal. `help` is asked where the shape is new.
    pub fn met(&self, met: Met, help: impl FnOnce() -> Option<Help>) {
        let now = seconds();
        let key = (met.entry.code, met.shape);
        if let Some(known) = self.kept.lock().shapes.get_mut(&key) {
            known.count += 1;
            known.last = now;
            known.database = met.database;
            known.message = met.message;
            return;
        }
        // it takes a while, and no other session waits for it
        let help = help();
        let mut kept = self.kept.lock();
        kept.make_room();
        let refused = kept.shapes.entry(key).or_insert_with_key(|key| Refused {
            code: met.entry.code.into(),
            shape: key.1.clone(),
            database: met.database,
            message: met.message,
            way_out: met.entry.way_out.into(),
            help,
            count: 0,
            first: now,
            last: now,
        });
        refused.count += 1;
    }

    /// What there is, the most frequent first, and how many shapes were forgotten.
    pub fn list(&self) -> (Vec<Refused>, u64) {
        let kept = self.kept.lock();
        let mut list: Vec<_> = kept.shapes.values().cloned().collect();
        let forgotten = kept.forgotten;
        drop(kept);
        list.sort_by(|a, b| {
            let by_count = b.count.cmp(&a.count);
            by_count.then_with(|| (&a.code, &a.shape).cmp(&(&b.code, &b.shape)))
        });
        (list, forgotten)
    }
}

impl Kept {
    fn make_room(&mut self) {
        if self.shapes.len() < SHAPES {
            return;
        }
        let oldest = self.shapes.iter().min_by_key(|(_, refused)| refused.last);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.shapes.remove(&key);
            self.forgotten += 1;
        }
    }
}

/// What the error itself says would help.
pub(crate) fn help_of(entry: &'static Entry) -> Option<Help> {
    let known = [
        (&errors::NO_EQUALITY, Help::Equality),
        (&errors::NO_RANGE, Help::Range),
    ];
    let known = known.iter().find(|(known, _)| known.code == entry.code);
    known.map(|(_, help)| *help)
}

/// Since 1970.
pub(crate) fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(shape: &str) -> Met {
        Met {
            entry: &errors::NO_RANGE,
            shape: shape.into(),
            database: None,
            message: "not so".into(),
        }
    }

    #[test]
    fn what_looks_alike_is_counted_together_and_asked_about_once() {
        let refused = RefusedShapes::default();
        let mut asked = 0;
        for shape in ["a", "b", "a", "a"] {
            refused.met(met(shape), || {
                asked += 1;
                Some(Help::Engine)
            });
        }
        let (list, forgotten) = refused.list();
        let counts: Vec<_> = list.iter().map(|r| (&*r.shape, r.count)).collect();
        assert_eq!(counts, [("a", 3), ("b", 1)]);
        assert_eq!((asked, forgotten), (2, 0));
        assert_eq!(list[0].help, Some(Help::Engine));
        assert_eq!(list[0].way_out, errors::NO_RANGE.way_out);
    }

    #[test]
    fn there_is_room_for_so_many() {
        let refused = RefusedShapes::default();
        for n in 0..SHAPES + 20 {
            refused.met(met(&format!("{n}")), || None);
        }
        let (list, forgotten) = refused.list();
        assert_eq!((list.len(), forgotten), (SHAPES, 20));
    }
}
