//! `[mask]`: the rules, and what they say of an account.

use std::collections::BTreeMap;

use onionskin_schema::pattern::{TablePattern, folded, matches, specificity};
use onionskin_schema::{Policy, SchemaError, Table};
use thiserror::Error;

use super::Show;
use crate::identity::{Identity, Whom};

/// As the configuration has them: table → column → account → word.
pub type MaskSections = BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>;

/// What is wrong with a section.
#[derive(Debug, Error)]
pub enum MaskError {
    /// The name of a section.
    #[error(transparent)]
    Pattern(#[from] SchemaError),
    /// What a column is to be shown as.
    #[error(
        "[mask.{table:?}] {column}: {word:?} is none of \"clear\", \"null\", \"refuse\", \"first:N\" and \"last:N\""
    )]
    Word {
        /// The section.
        table: String,
        /// The column.
        column: String,
        /// The word.
        word: String,
    },
    /// Nothing is said of some accounts.
    #[error("[mask.{table:?}] {column}: say with \"*\" = … what all other accounts see")]
    NoOthers {
        /// The section.
        table: String,
        /// The column.
        column: String,
    },
    /// A mask of a column that may be there in plaintext.
    #[error(
        "[mask.{table:?}] {column}: a mask holds for protected columns only; name the column in a section of [protect] that is enforced"
    )]
    Unprotected {
        /// The section.
        table: String,
        /// The column.
        column: String,
    },
}

/// What each account sees of the columns with this name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Columns {
    pattern: String,
    shows: Vec<(Whom, Show)>,
}

/// The rules of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    /// The most specific first, columns likewise.
    tables: Vec<(TablePattern, Vec<Columns>)>,
}

impl Masks {
    /// Reads the sections. Columns that are named have to be protected by what `policy` enforces.
    pub fn parse(sections: &MaskSections, policy: &Policy) -> Result<Self, MaskError> {
        let mut tables = Vec::with_capacity(sections.len());
        for (table, columns) in sections {
            let pattern = TablePattern::parse(table)?;
            let mut all = Vec::with_capacity(columns.len());
            for (column, words) in columns {
                let is_exact = pattern.is_exact() && !column.contains('*');
                let enforced =
                    || policy.enforces_column(pattern.database(), pattern.table(), column);
                if is_exact && !enforced() {
                    return Err(MaskError::Unprotected {
                        table: table.clone(),
                        column: column.clone(),
                    });
                }
                let mut shows = Vec::with_capacity(words.len());
                for (whom, word) in words {
                    let show = word.parse().map_err(|()| MaskError::Word {
                        table: table.clone(),
                        column: column.clone(),
                        word: word.clone(),
                    })?;
                    shows.push((Whom::parse(whom), show));
                }
                if !shows.iter().any(|(whom, _)| *whom == Whom::Others) {
                    return Err(MaskError::NoOthers {
                        table: table.clone(),
                        column: column.clone(),
                    });
                }
                all.push(Columns {
                    pattern: folded(column),
                    shows,
                });
            }
            all.sort_by_key(|columns| specificity(&columns.pattern));
            tables.push((pattern, all));
        }
        tables.sort_by_key(|(pattern, _)| pattern.specificity());
        Ok(Masks { tables })
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// What they say of an account, as [`State::account`](crate::state::State) has it.
    pub(crate) fn of(&self, account: &str) -> AccountMasks {
        let readings = Identity::readings(account);
        // of several readings, the one that shows least
        let sees = |shows: &[(Whom, Show)]| {
            let seen = |reading: &Identity<'_>| {
                let said = reading.what_is_said(shows).into_iter().copied();
                said.min_by_key(|show| show.rank()).unwrap_or(Show::Refuse)
            };
            let seen = readings.iter().map(seen);
            seen.max_by_key(|show| show.rank()).unwrap_or(Show::Refuse)
        };
        let tables: Vec<_> = self
            .tables
            .iter()
            .map(|(pattern, columns)| {
                let columns = columns
                    .iter()
                    .map(|columns| (columns.pattern.clone(), sees(&columns.shows)));
                (pattern.clone(), columns.collect::<Vec<_>>())
            })
            .collect();
        let mut shows = tables.iter().flat_map(|(_, columns)| columns);
        AccountMasks {
            masks: shows.any(|(_, show)| *show != Show::Clear),
            tables,
        }
    }
}

/// What one account sees.
#[derive(Debug, Default)]
pub(crate) struct AccountMasks {
    /// There is a column that it does not see in the clear.
    masks: bool,
    tables: Vec<(TablePattern, Vec<(String, Show)>)>,
}

impl AccountMasks {
    /// Whether there is anything that it does not see in the clear.
    #[inline]
    pub fn masks(&self) -> bool {
        self.masks
    }

    /// What it sees of a table's column. A view can give any name to a column of any table, so that
    /// one which no rule speaks of shows nothing.
    pub fn show(&self, table: &Table, column: &str) -> Show {
        if !self.masks {
            return Show::Clear;
        }
        let (database, name) = (folded(&table.database), folded(&table.name));
        let column = folded(column);
        self.tables
            .iter()
            .filter(|(pattern, _)| pattern.matches(&database, &name))
            .flat_map(|(_, columns)| columns)
            .find(|(pattern, _)| matches(pattern, &column))
            .map_or(
                match table.view {
                    true => Show::Refuse,
                    false => Show::Clear,
                },
                |(_, show)| *show,
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table, a column, and words by account.
    type Entry<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

    fn sections(text: &[Entry<'_>]) -> MaskSections {
        let mut sections = MaskSections::new();
        for (table, column, words) in text {
            let words = words.iter().map(|(a, b)| (a.to_string(), b.to_string()));
            let columns = sections.entry(table.to_string()).or_default();
            columns.insert(column.to_string(), words.collect());
        }
        sections
    }

    fn table(name: &str, view: bool) -> Table {
        Table {
            database: "App".into(),
            name: name.into(),
            columns: Vec::new(),
            table_id: None,
            view,
            base: None,
            hidden_indexes: Vec::new(),
            guarded: Vec::new(),
            damaged: None,
        }
    }

    fn masks(text: &[Entry<'_>]) -> Masks {
        Masks::parse(&sections(text), &Policy::default()).unwrap()
    }

    #[test]
    fn the_account_counts_before_the_user_before_roles_before_others() {
        let masks = masks(&[(
            "app.*",
            "email",
            &[
                ("ann@10.0.0.%", "last:2"),
                ("ann", "first:1"),
                ("role:auditor", "clear"),
                ("role:clerk", "first:3"),
                ("*", "null"),
            ],
        )]);
        let sees = |account: &str| masks.of(account).show(&table("Users", false), "EMAIL");
        assert_eq!(sees("ann@10.0.0.%"), Show::Last(2));
        assert_eq!(sees("ann@%"), Show::First(1));
        assert_eq!(sees("ann@% as auditor"), Show::First(1));
        assert_eq!(sees("bob@%"), Show::Null);
        assert_eq!(sees("bob@% as NONE"), Show::Null);
        assert_eq!(sees("bob@% as clerk"), Show::First(3));
        assert_eq!(sees("bob@% as `clerk`@`%`,`auditor`@`%`"), Show::Clear);
        assert_eq!(sees("bob@% as `x`@`auditor`"), Show::Null);
        assert_eq!(sees("bob@% as `a``,``auditor`@`%`"), Show::Null);
        // names that look like roles
        assert_eq!(sees("x as auditor@%"), Show::Null);
        assert_eq!(sees("auditor@%"), Show::Null);
    }

    #[test]
    fn names_with_blanks_and_hosts_in_them_show_no_more() {
        let masks = masks(&[(
            "app.*",
            "email",
            &[("support@%", "null"), ("role:q", "clear"), ("*", "clear")],
        )]);
        let sees = |account: &str| masks.of(account).show(&table("users", false), "email");
        assert_eq!(sees("support@%"), Show::Null);
        assert_eq!(sees("ann@%"), Show::Clear);
        for role in [
            "r",
            "r@x",
            "p as q",
            "r@x as q",
            "`r",
            "NONE",
            "`q`@`%`",
            "`p as q`@`%`",
        ] {
            assert_eq!(sees(&format!("support@% as {role}")), Show::Null, "{role}");
        }
    }

    #[test]
    fn the_most_specific_rule_decides_alone() {
        let masks = masks(&[
            ("*.*", "*", &[("*", "refuse"), ("app", "clear")]),
            ("app.u*", "e*", &[("*", "null")]),
            ("app.u*", "*", &[("*", "clear")]),
        ]);
        let sees = |name: &str, column: &str| masks.of("bob@%").show(&table(name, false), column);
        assert_eq!(sees("users", "email"), Show::Null);
        assert_eq!(sees("users", "name"), Show::Clear);
        assert_eq!(sees("other", "name"), Show::Refuse);
    }

    #[test]
    fn a_view_that_no_rule_names_shows_nothing() {
        let masks = masks(&[("app.u*", "*", &[("bob", "null"), ("*", "clear")])]);
        let show = |account: &str, name: &str| masks.of(account).show(&table(name, true), "mail");
        assert_eq!(show("bob@%", "v"), Show::Refuse);
        assert_eq!(show("bob@%", "uv"), Show::Null);
        assert_eq!(show("ann@%", "v"), Show::Clear);
    }

    #[test]
    fn sections_that_say_too_little_are_refused() {
        let parse = |text: &[Entry<'_>]| {
            let error = Masks::parse(&sections(text), &Policy::default()).unwrap_err();
            error.to_string()
        };
        let all: &[(&str, &str)] = &[("*", "null")];
        assert!(parse(&[("app.users", "email", all)]).contains("enforced"));
        assert!(parse(&[("app", "email", all)]).contains("app"));
        assert!(parse(&[("app.*", "email", &[("ann", "null")])]).contains("all other accounts"));
        assert!(parse(&[("app.*", "email", &[("*", "hidden")])]).contains("none of"));
    }
}
