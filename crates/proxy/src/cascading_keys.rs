//! What the server has said of late of columns that foreign keys refer to.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// For so long an answer holds, as what is known of tables does.
const FRESH: Duration = Duration::from_secs(1);

/// More answers are not kept.
const MOST: usize = 100;

/// For each list of columns, when it was asked about, and a table that refers to one of them with
/// an action that the server cannot do.
#[derive(Default)]
pub(crate) struct Cascades(HashMap<String, (Instant, Option<String>)>);

impl Cascades {
    /// The answer, if it is no older than a second.
    pub fn known(&self, columns: &str) -> Option<Option<String>> {
        let (asked, found) = self.0.get(columns)?;
        (asked.elapsed() < FRESH).then(|| found.clone())
    }

    /// Keeps an answer to a question that was asked then.
    pub fn note(&mut self, columns: String, asked: Instant, found: Option<String>) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(columns, (asked, found));
    }
}
