//! What a check is, and what most of them begin with.

use super::facts::{Facts, Seen};
use crate::finding::{Layer, Verdict};

/// One question about a server.
pub struct Check {
    /// Stays the same from version to version.
    pub code: &'static str,
    /// Where it looks.
    pub layer: Layer,
    /// What it looks at.
    pub title: &'static str,
    /// Its answer.
    pub judge: fn(&Facts) -> Verdict,
}

/// Judges what is known; the rest is hidden or not there.
pub(super) fn known<T>(seen: &Seen<T>, absent: &str, judge: impl FnOnce(&T) -> Verdict) -> Verdict {
    match seen {
        Seen::Known(value) => judge(value),
        Seen::Hidden(needs) => Verdict::hidden(needs.clone()),
        Seen::Absent => Verdict::NotHere(absent.into()),
    }
}

/// A setting that has to be on. One that the server does not show says nothing, and so not that it
/// is on.
pub(super) fn must_be_on(
    facts: &Facts,
    name: &str,
    open: impl FnOnce(String) -> Verdict,
) -> Verdict {
    match facts.variable(name) {
        None => Verdict::hidden(format!("a server that shows the variable {name}")),
        Some(value) if facts.is_on(name) => Verdict::closed(format!("{name} = {value}")),
        Some(value) => open(format!("{name} = {value}")),
    }
}
