//! The checks, as a table. Each is a function from facts to a verdict.

mod accounts;
mod backups;
mod columns;
mod data_files;
mod keys;
mod leftovers;
mod logs;
mod memory;
mod network;
mod replicas;
mod search;

use super::{check::Check, facts::Facts};
use crate::finding::Finding;

/// All checks, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static Check> {
    [
        columns::CHECKS,
        data_files::CHECKS,
        logs::CHECKS,
        memory::CHECKS,
        keys::CHECKS,
        accounts::CHECKS,
        network::CHECKS,
        replicas::CHECKS,
        leftovers::CHECKS,
        backups::CHECKS,
        search::CHECKS,
    ]
    .into_iter()
    .flatten()
}

/// What they say of these facts.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    all()
        .map(|check| {
            let verdict = (check.judge)(facts);
            Finding::of(check.code, check.layer, check.title, verdict)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use onionskin_rowstream::client::Family;

    use super::*;
    use crate::{
        finding::State,
        server::facts::{Link, samples::facts},
    };

    #[test]
    fn codes_are_words_and_unique() {
        let mut seen = BTreeSet::new();
        for check in all() {
            assert!(seen.insert(check.code), "{} twice", check.code);
            let is_word = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(check.code.chars().all(is_word), "{}", check.code);
        }
        assert!(seen.len() > 30);
    }

    #[test]
    fn codes_are_in_the_documentation() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/assess.md");
        let page = std::fs::read_to_string(page).expect("docs/assess.md");
        for check in all() {
            assert!(
                page.contains(&format!("| `{}` |", check.code)),
                "{}",
                check.code
            );
        }
    }

    #[test]
    fn of_what_is_hidden_nothing_is_closed() {
        for family in [Family::MariaDb, Family::MySql] {
            let mut facts = facts(family, &[]);
            facts.link = Link::Plain;
            for finding in findings(&facts) {
                assert_ne!(finding.state, State::Closed, "{family:?} {}", finding.code);
                if finding.state == State::NotVisible {
                    assert!(finding.needs.is_some(), "{}", finding.code);
                }
            }
        }
    }

    #[test]
    fn what_is_open_has_a_reason_and_a_mend() {
        for family in [Family::MariaDb, Family::MySql] {
            let off = [
                "innodb_encrypt_log",
                "innodb_redo_log_encrypt",
                "require_secure_transport",
                "log_bin",
            ];
            let settings: Vec<(&str, &str)> = off.iter().map(|name| (*name, "OFF")).collect();
            for finding in findings(&facts(family, &settings)) {
                if finding.state == State::Open {
                    assert!(finding.severity.is_some(), "{}", finding.code);
                    assert!(
                        finding.reason.is_some_and(|r| !r.is_empty()),
                        "{}",
                        finding.code
                    );
                    assert!(
                        finding.mend.is_some_and(|m| !m.is_empty()),
                        "{}",
                        finding.code
                    );
                }
            }
        }
    }
}
