//! Which columns of new tables are to be protected, for applications that cannot change their DDL.
//!
//! ```toml
//! [protect."sbtest.*"]
//! k = ["eq", "range"]
//! c = []
//! "*_id" = ["plain"]
//! "*" = []
//! ```
//!
//! Both parts of `database.table`, and the column names, may hold `*` for any characters; letter
//! case does not count. Patterns are tried from the most specific to the least: an exact table
//! before an exact database before wildcards, and among equals the one with more letters. The first
//! pattern with an entry for the column decides; within a pattern exact names come before
//! wildcards. A column without any entry stays plaintext, and so does one whose entry is `plain`.
//!
//! A section that is *enforced* ([`Policy::enforce`]) also holds for tables that are there: see
//! `enforced.rs`.

use std::collections::BTreeMap;

use crate::{
    errors::SchemaError,
    pattern::{TablePattern, folded, matches, specificity},
    protection::{Capabilities, is_key_group},
    surrogate::Surrogate,
};

/// The `[protect]` sections of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The most specific first.
    pub(crate) rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) pattern: TablePattern,
    /// Statements near a table that is not protected as it says are refused.
    pub(crate) enforced: bool,
    /// The most specific first; without capabilities where the column stays plaintext.
    pub(crate) columns: Vec<(String, Option<Capabilities>)>,
}

/// The word of columns that stay plaintext.
const PLAIN: &str = "plain";

/// What the policy says of a column that is to be protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyMatch<'a> {
    /// What the server shall be able to do.
    pub capabilities: &'a Capabilities,
    /// Whether the column is named, and not only matched by a wildcard.
    pub named: bool,
}

impl Policy {
    /// Reads the sections of a configuration: pattern → column → capability words. Groups of keys
    /// are not for the choosing.
    pub fn configured(
        sections: &BTreeMap<String, BTreeMap<String, Vec<String>>>,
    ) -> Result<Self, SchemaError> {
        for (pattern, columns) in sections {
            let words = columns
                .iter()
                .flat_map(|(c, words)| words.iter().map(move |w| (c, w)));
            for (column, word) in words {
                if word.strip_prefix("join:").is_some_and(is_key_group) {
                    return Err(SchemaError::UnknownCapability {
                        pattern: pattern.clone(),
                        column: column.clone(),
                        word: word.clone(),
                    });
                }
            }
        }
        Self::parse(sections)
    }

    /// Reads sections: pattern → column → capability words.
    pub fn parse(
        sections: &BTreeMap<String, BTreeMap<String, Vec<String>>>,
    ) -> Result<Self, SchemaError> {
        let mut rules = Vec::with_capacity(sections.len());
        for (pattern, entries) in sections {
            let pattern_of_table = TablePattern::parse(pattern)?;
            let mut columns = Vec::with_capacity(entries.len());
            for (column, words) in entries {
                if words.len() == 1 && words[0] == PLAIN {
                    columns.push((folded(column), None));
                    continue;
                }
                let mut capabilities = Capabilities::default();
                for word in words {
                    match word.strip_prefix("join:") {
                        Some(group) if !group.is_empty() && capabilities.join.is_none() => {
                            capabilities.join = Some(group.to_owned());
                        }
                        None if capabilities.take_word(word) => {}
                        _ => {
                            return Err(SchemaError::UnknownCapability {
                                pattern: pattern.clone(),
                                column: column.clone(),
                                word: word.clone(),
                            });
                        }
                    }
                }
                columns.push((folded(column), Some(capabilities)));
            }
            columns.sort_by_key(|(name, _)| specificity(name));
            rules.push(Rule {
                pattern: pattern_of_table,
                enforced: false,
                columns,
            });
        }
        rules.sort_by_key(|rule| rule.pattern.specificity());
        Ok(Self { rules })
    }

    /// Enforces the sections of which `wanted` says so, by their patterns.
    pub fn enforce(&mut self, wanted: impl Fn(&str) -> bool) {
        // patterns were folded; two that differ in letter case are one
        for rule in &mut self.rules {
            rule.enforced = wanted(&rule.pattern.to_string());
        }
    }

    /// What the policy says of a column; `None` if it stays plaintext.
    pub fn find(&self, database: &str, table: &str, column: &str) -> Option<PolicyMatch<'_>> {
        self.deciding(database, table, column)
            .map(|(_, found)| found)
    }

    /// Whether a section that is enforced protects this column.
    pub fn enforces_column(&self, database: &str, table: &str, column: &str) -> bool {
        self.deciding(database, table, column)
            .is_some_and(|(rule, _)| rule.enforced)
    }

    /// What it says of a column, and which rule says it.
    pub(crate) fn deciding(
        &self,
        database: &str,
        table: &str,
        column: &str,
    ) -> Option<(&Rule, PolicyMatch<'_>)> {
        let (database, table, column) = (folded(database), folded(table), folded(column));
        self.rules
            .iter()
            .filter(|rule| rule.matches(&database, &table))
            .flat_map(|rule| rule.columns.iter().map(move |entry| (rule, entry)))
            .find(|(_, (pattern, _))| matches(pattern, &column))
            .and_then(|(rule, (pattern, capabilities))| {
                let found = PolicyMatch {
                    capabilities: capabilities.as_ref()?,
                    named: !pattern.contains('*'),
                };
                Some((rule, found))
            })
    }

    /// What a new column shall get. A surrogate key stays plaintext where only a wildcard matched
    /// it. Where it was named, AUTO_INCREMENT is an error, and so is the foreign key, later. Every
    /// other column that cannot be protected is an error of
    /// [`check_protectable`](crate::check_protectable).
    pub fn capabilities(
        &self,
        database: &str,
        table: &str,
        column: &str,
        surrogate: Surrogate,
    ) -> Result<Option<Capabilities>, SchemaError> {
        let Some(found) = self.find(database, table, column) else {
            return Ok(None);
        };
        match surrogate {
            Surrogate::AutoIncrement if found.named => Err(SchemaError::AutoIncrement {
                column: column.to_owned(),
            }),
            Surrogate::AutoIncrement | Surrogate::Reference | Surrogate::Generated
                if !found.named =>
            {
                Ok(None)
            }
            _ => Ok(Some(found.capabilities.clone())),
        }
    }

    /// Whether a section for tables of this database protects columns of this name, and says so by
    /// more than `*`.
    pub fn names_column(&self, database: &str, column: &str) -> bool {
        let (database, column) = (folded(database), folded(column));
        let mut rules = self.rules.iter();
        rules.any(|rule| {
            let deciding = || {
                let mut columns = rule.columns.iter();
                columns.find(|(pattern, _)| matches(pattern, &column))
            };
            matches(rule.pattern.database(), &database)
                && deciding().is_some_and(|(pattern, c)| pattern != "*" && c.is_some())
        })
    }

    /// Whether any column of the table could be matched, so that its CREATE TABLE must be
    /// understood.
    pub fn concerns(&self, database: &str, table: &str) -> bool {
        let (database, table) = (folded(database), folded(table));
        self.rules
            .iter()
            .any(|rule| !rule.columns.is_empty() && rule.matches(&database, &table))
    }

    /// The same of a table of this name in some database.
    pub fn concerns_somewhere(&self, table: &str) -> bool {
        let table = folded(table);
        let mut rules = self.rules.iter().filter(|rule| !rule.columns.is_empty());
        rules.any(|rule| matches(rule.pattern.table(), &table))
    }

    /// The same of every table with one of these names in one of these databases.
    pub fn concerns_any<'n>(
        &self,
        databases: impl IntoIterator<Item = &'n str>,
        tables: impl IntoIterator<Item = &'n str>,
    ) -> bool {
        let databases: Vec<String> = databases.into_iter().map(folded).collect();
        let tables: Vec<String> = tables.into_iter().map(folded).collect();
        let any = |pattern: &str, names: &[String]| names.iter().any(|name| matches(pattern, name));
        self.rules
            .iter()
            .filter(|rule| !rule.columns.is_empty())
            .any(|rule| {
                any(rule.pattern.database(), &databases) && any(rule.pattern.table(), &tables)
            })
    }

    /// Whether it says nothing at all.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

impl Rule {
    /// Whether it is about this table, whose names are folded.
    pub(crate) fn matches(&self, database: &str, table: &str) -> bool {
        self.pattern.matches(database, table)
    }

    /// Whether it names one table.
    pub(crate) fn is_exact(&self) -> bool {
        self.pattern.is_exact()
    }

    /// The columns that it names and protects.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        let protected = self.columns.iter().filter(|(_, c)| c.is_some());
        let names = protected.map(|(name, _)| name.as_str());
        names.filter(|name| !name.contains('*'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Columns<'a> = &'a [(&'a str, &'a [&'a str])];

    fn policy(sections: &[(&str, Columns<'_>)]) -> Result<Policy, SchemaError> {
        let sections = sections
            .iter()
            .map(|(pattern, columns)| {
                let columns = columns
                    .iter()
                    .map(|(column, words)| {
                        (
                            column.to_string(),
                            words.iter().map(ToString::to_string).collect(),
                        )
                    })
                    .collect();
                (pattern.to_string(), columns)
            })
            .collect();
        Policy::parse(&sections)
    }

    #[test]
    fn wildcards_match_any_characters() {
        assert!(matches("*", ""));
        assert!(matches("a*c", "abc") && matches("a*c", "ac"));
        assert!(!matches("a*c", "a") && !matches("a*a", "a"));
        assert!(matches("*b*d*", "abcd") && !matches("*d*b*", "abcd"));
        assert!(matches("abc", "abc") && !matches("abc", "abcd"));
    }

    #[test]
    fn the_most_specific_pattern_decides() {
        let policy = policy(&[
            ("*.*", &[("*", &[])]),
            ("shop.*", &[("email", &["eq"])]),
            (
                "shop.users",
                &[("email", &["eq", "range"]), ("e*", &["join:g"])],
            ),
            ("*.users", &[("email", &["range"]), ("x", &["eq"])]),
        ])
        .expect("sound");
        let find = |table, column| {
            let found = policy.find("Shop", table, column).expect("matched");
            (
                found.capabilities.eq,
                found.capabilities.range,
                found.capabilities.join.is_some(),
                found.named,
            )
        };
        assert_eq!(find("USERS", "Email"), (true, true, false, true));
        assert_eq!(find("users", "else"), (false, false, true, false));
        assert_eq!(find("users", "x"), (true, false, false, true));
        assert_eq!(find("orders", "email"), (true, false, false, true));
        assert_eq!(find("orders", "total"), (false, false, false, false));
        assert!(policy.concerns("a", "b"));
    }

    #[test]
    fn plain_is_an_exception_from_wildcards() {
        let policy = policy(&[
            (
                "*.*",
                &[("*", &["eq"]), ("*_id", &["plain"]), ("note", &["plain"])],
            ),
            (
                "shop.users",
                &[("tax_id", &["range"]), ("name", &["plain"])],
            ),
        ])
        .expect("sound");
        let is_found = |table, column| policy.find("shop", table, column).is_some();
        assert!(is_found("orders", "name") && !is_found("orders", "user_id"));
        assert!(!is_found("orders", "note"));
        assert!(is_found("users", "tax_id") && !is_found("users", "user_id"));
        assert!(!is_found("users", "name"));
        let beside = super::tests::policy(&[("a.b", &[("c", &["plain", "eq"])])]);
        assert!(matches!(beside, Err(SchemaError::UnknownCapability { .. })));
    }

    #[test]
    fn what_nothing_matches_stays_plaintext() {
        let policy =
            policy(&[("sbtest.*", &[("k", &["eq", "range"]), ("c", &[])])]).expect("sound");
        assert_eq!(policy.find("sbtest", "sbtest1", "id"), None);
        assert_eq!(policy.find("other", "sbtest1", "k"), None);
        assert!(!policy.concerns("other", "sbtest1"));
        assert_eq!(
            policy.capabilities("sbtest", "sbtest1", "c", Surrogate::No),
            Ok(Some(Capabilities::default()))
        );
    }

    #[test]
    fn auto_increment_is_left_alone_unless_it_is_named() {
        let policy = policy(&[("d.*", &[("*", &[]), ("id", &["eq"])])]).expect("sound");
        let auto = Surrogate::AutoIncrement;
        assert_eq!(policy.capabilities("d", "t", "number", auto), Ok(None));
        assert_eq!(
            policy.capabilities("d", "t", "ID", auto),
            Err(SchemaError::AutoIncrement {
                column: "ID".into()
            })
        );
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            policy(&[("shop", &[])]),
            Err(SchemaError::BadPattern {
                pattern: "shop".into()
            })
        );
        for word in ["equality", "join:", "EQ"] {
            assert_eq!(
                policy(&[("a.b", &[("c", &[word])])]),
                Err(SchemaError::UnknownCapability {
                    pattern: "a.b".into(),
                    column: "c".into(),
                    word: word.into()
                })
            );
        }
    }
}
