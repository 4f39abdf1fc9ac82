//! What becomes of statements between the commands: some tables are protected already, and others
//! not yet.

use std::collections::BTreeMap;

use super::advice;
use super::asked::Shape;
use super::judge::{Choice, Judge, Verdict};
use super::search::Search;

/// What becomes of statements that are carried before and afterwards, and not between two commands.
pub(super) struct Between {
    /// By the places of the statements.
    pub found: BTreeMap<usize, Verdict>,
    /// How often the planner was asked.
    pub asked: usize,
}

/// Looks at each statement over tables of which some are protected already. Sections about the
/// others are left out: without `enforce` they change nothing for tables that are there in
/// plaintext.
pub(super) fn between(judge: &Judge<'_>, search: &Search<'_, '_>, shapes: &[Shape]) -> Between {
    let choice = search.choice();
    let order = advice::order(judge.schema, choice);
    let (mut found, mut asked) = (BTreeMap::new(), 0);
    for done in 1..order.len() {
        let (done, to_do) = order.split_at(done);
        let is_done = |table: &usize| done.contains(table);
        let partly: Choice = choice
            .iter()
            .filter(|((table, _), _)| is_done(table))
            .map(|(at, capabilities)| (*at, capabilities.clone()))
            .collect();
        let (view, policy) = (judge.view(&partly), judge.policy(&partly));
        for (at, (shape, near)) in shapes.iter().zip(search.near()).enumerate() {
            let tables = &near.tables;
            let is_between =
                tables.iter().any(is_done) && tables.iter().any(|table| to_do.contains(table));
            if !is_between || found.contains_key(&at) {
                continue;
            }
            asked += 1;
            let verdict = judge.judge_in(shape, &view, &policy);
            if verdict.level() < search.verdicts()[at].level() {
                found.insert(at, verdict);
            }
        }
    }
    Between { found, asked }
}
