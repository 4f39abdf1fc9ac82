//! Copies of tables that changes leave behind.

use crate::server::check::{Check, known};
use crate::{
    finding::{Layer, Severity, Verdict},
    server::facts::Facts,
};

pub(super) const CHECKS: &[Check] = &[Check {
    code: "leftovers",
    layer: Layer::Leftovers,
    title: "copies of tables, and what migrations leave",
    judge: leftovers,
}];

fn leftovers(facts: &Facts) -> Verdict {
    known(&facts.leftovers, "", |found| {
        let protected = facts.protected.known();
        let is_of_protected = |line: &String| {
            let base = line
                .split(": ")
                .next()
                .and_then(|n| n.strip_suffix("_onionskin_old"));
            base.is_some_and(|base| {
                protected.is_some_and(|all| all.iter().any(|table| table.name == base))
            })
        };
        let severity = match found.iter().any(is_of_protected) {
            true => Severity::High,
            false => Severity::Medium,
        };
        let verdict = match found.is_empty() {
            true => Verdict::closed("no table has such a name"),
            false => Verdict::open(
                severity,
                "A copy from before a migration holds in plain what is sealed in the table.",
                found.clone(),
                "look at what is in it, then: DROP TABLE DATABASE.TABLE;",
            ),
        };
        verdict.seen_in_part(facts.missing_tables())
    })
}

#[cfg(test)]
mod tests {
    use onionskin_rowstream::client::Family;

    use super::*;
    use crate::server::facts::{ProtectedTable, Seen, samples::facts};

    #[test]
    fn the_plain_copy_of_a_protected_table_is_severe() {
        let mut facts = facts(Family::MariaDb, &[]);
        facts.leftovers = Seen::Known(vec!["app.users_onionskin_old: the rows before".into()]);
        let severity = |facts: &Facts| match leftovers(facts) {
            Verdict::Open { severity, .. } => severity,
            other => panic!("{other:?}"),
        };
        assert_eq!(severity(&facts), Severity::Medium);
        facts.protected = Seen::Known(vec![ProtectedTable {
            name: "app.users".into(),
            sealed: Vec::new(),
            plain: Vec::new(),
            damaged: None,
            made: None,
        }]);
        assert_eq!(severity(&facts), Severity::High);
    }
}
