//! What the server has said of late of foreign keys.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// For so long an answer holds, as what is known of tables does.
const FRESH: Duration = Duration::from_secs(1);

/// More answers are not kept.
const MOST: usize = 100;

/// The tables that answers have named, by question.
#[derive(Default)]
pub(crate) struct KeyAnswers(HashMap<String, Answer>);

struct Answer {
    asked: Instant,
    /// Of what was known of tables then. A definition through this proxy makes another one.
    generation: u64,
    found: Option<String>,
}

impl KeyAnswers {
    /// The answer, if it is no older than a second and than any definition.
    pub fn known(&self, question: &str, generation: u64) -> Option<Option<String>> {
        let answer = self.0.get(question)?;
        let is_fresh = answer.generation == generation && answer.asked.elapsed() < FRESH;
        is_fresh.then(|| answer.found.clone())
    }

    /// Keeps an answer to a question that was asked then.
    pub fn note(
        &mut self,
        question: String,
        generation: u64,
        asked: Instant,
        found: Option<String>,
    ) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        let answer = Answer {
            asked,
            generation,
            found,
        };
        self.0.insert(question, answer);
    }
}
