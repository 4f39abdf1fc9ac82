//! Session variables under which a statement near protected tables would come to something else
//! here than on the server.
//!
//! Most variables change nothing that the proxy answers for, or are known to it (`state`), or go on
//! to the scratch engine with the statement (`scratch/settings`). Those of this table do neither.
//! While a session has another value of one than the usual, what it concerns is refused.
//! docs/settings.md says what becomes of every variable.

use onionskin_plan::{Action, Plan, Show};
use onionskin_value::Family;

/// A variable, and the values under which nothing is refused.
struct Variable {
    name: &'static str,
    /// The servers that have it; `None`: both.
    family: Option<Family>,
    /// Whether this is such a value, as `SELECT @@name` shows it or as session tracking tells it.
    is_usual: fn(&str) -> bool,
    concerns: Concerns,
}

/// What a variable changes.
#[derive(Clone, Copy, PartialEq)]
enum Concerns {
    /// Every statement near a protected table.
    Statements,
    /// Statements that make or change tables.
    Definitions,
    /// Definitions as they are shown.
    Shown,
    /// Statements with the word `utf8`, or a collation of that name.
    Utf8,
    /// `RAND()` on the scratch engine.
    Rand,
}

const VARIABLES: [Variable; 14] = [
    // Servers add a time of their own to the first TIMESTAMP column, which may be another one among
    // the physical columns, and store the time in the place of NULL.
    Variable {
        name: "explicit_defaults_for_timestamp",
        family: None,
        is_usual: is_on,
        concerns: Concerns::Statements,
    },
    // Counts of rows and the numbers of rows in warnings are read from the server's messages.
    Variable {
        name: "lc_messages",
        family: None,
        is_usual: is_english,
        concerns: Concerns::Statements,
    },
    // The proxy looks into the server's warnings, and shows its own.
    Variable {
        name: "max_error_count",
        family: None,
        is_usual: holds_warnings,
        concerns: Concerns::Statements,
    },
    // The proxy sorts whole texts.
    Variable {
        name: "max_sort_length",
        family: None,
        is_usual: sorts_whole,
        concerns: Concerns::Statements,
    },
    // Names in the definitions that the proxy writes anew are quoted.
    Variable {
        name: "sql_quote_show_create",
        family: None,
        is_usual: is_on,
        concerns: Concerns::Shown,
    },
    // MySQL writes the CHECK constraints of a table that is changed anew, without quotes.
    Variable {
        name: "sql_quote_show_create",
        family: Some(Family::MySql),
        is_usual: is_on,
        concerns: Concerns::Definitions,
    },
    // A CHECK keeps cells away that a proxy seals for a column which is no longer there.
    Variable {
        name: "check_constraint_checks",
        family: Some(Family::MariaDb),
        is_usual: is_on,
        concerns: Concerns::Statements,
    },
    // Rows are read before they are changed, and would be those of another time.
    Variable {
        name: "system_versioning_asof",
        family: Some(Family::MariaDb),
        is_usual: is_default,
        concerns: Concerns::Statements,
    },
    Variable {
        name: "sql_if_exists",
        family: Some(Family::MariaDb),
        is_usual: is_off,
        concerns: Concerns::Definitions,
    },
    // Literals of TIME are another DATETIME.
    Variable {
        name: "old_mode",
        family: Some(Family::MariaDb),
        is_usual: casts_times,
        concerns: Concerns::Statements,
    },
    Variable {
        name: "old_mode",
        family: Some(Family::MariaDb),
        is_usual: has_utf8mb3,
        concerns: Concerns::Utf8,
    },
    Variable {
        name: "default_collation_for_utf8mb4",
        family: Some(Family::MySql),
        is_usual: is_uca_0900,
        concerns: Concerns::Definitions,
    },
    // Numbers that the server would give in an order that was asked for. Only setting one tells,
    // not what it was at login.
    Variable {
        name: "rand_seed1",
        family: None,
        is_usual: never,
        concerns: Concerns::Rand,
    },
    Variable {
        name: "rand_seed2",
        family: None,
        is_usual: never,
        concerns: Concerns::Rand,
    },
];

fn never(_: &str) -> bool {
    false
}

fn is_on(value: &str) -> bool {
    value == "1" || value.eq_ignore_ascii_case("on")
}

fn is_off(value: &str) -> bool {
    value == "0" || value.eq_ignore_ascii_case("off")
}

fn is_default(value: &str) -> bool {
    value.eq_ignore_ascii_case("default")
}

fn is_english(value: &str) -> bool {
    value == "en_US" || value == "en_GB"
}

/// As many as MariaDB keeps by default, the fewer of the two servers.
fn holds_warnings(value: &str) -> bool {
    value.parse::<u64>().is_ok_and(|count| count >= 64)
}

/// The default of both.
fn sorts_whole(value: &str) -> bool {
    value.parse::<u64>().is_ok_and(|bytes| bytes >= 1024)
}

fn has_word(value: &str, word: &str) -> bool {
    value.split(',').any(|w| w.eq_ignore_ascii_case(word))
}

fn casts_times(value: &str) -> bool {
    !has_word(value, "ZERO_DATE_TIME_CAST")
}

fn has_utf8mb3(value: &str) -> bool {
    has_word(value, "UTF8_IS_UTF8MB3")
}

fn is_uca_0900(value: &str) -> bool {
    value == "utf8mb4_0900_ai_ci"
}

/// Which variables of a session have another value than the usual: a bit for each, by its place in
/// the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unusual(u16);

impl Unusual {
    /// Keeps what was known of variables that cannot be read.
    pub fn keep_unreadable(&mut self, before: Unusual) {
        for (place, variable) in VARIABLES.iter().enumerate() {
            if variable.name.starts_with("rand_seed") {
                self.0 |= before.0 & (1 << place);
            }
        }
    }

    /// Takes over a variable's value. Returns whether that changed anything.
    pub fn learn(&mut self, name: &str, value: &str) -> bool {
        let before = *self;
        for (place, variable) in VARIABLES.iter().enumerate() {
            if variable.name == name {
                let bit = 1 << place;
                match (variable.is_usual)(value) {
                    true => self.0 &= !bit,
                    false => self.0 |= bit,
                }
            }
        }
        *self != before
    }

    /// Nothing has to be refused.
    pub fn none(self) -> bool {
        self.0 == 0
    }

    /// `max_error_count` is so small that the server may show none of its warnings.
    pub fn may_show_no_warnings(self) -> bool {
        let mut places = VARIABLES.iter().enumerate();
        places.any(|(place, v)| v.name == "max_error_count" && self.0 & (1 << place) != 0)
    }

    pub fn bits(self) -> u16 {
        self.0
    }

    /// The variable because of which a statement is refused.
    pub fn concerning(self, plan: &Plan, sql: &[u8]) -> Option<&'static str> {
        let of = |concerns| match concerns {
            Concerns::Statements => true,
            Concerns::Definitions => plan.defines.any(),
            Concerns::Shown => shows_definition(&plan.action),
            Concerns::Utf8 => says_utf8(sql),
            Concerns::Rand => runs_on_engine(&plan.action) && says(sql, b"rand"),
        };
        let mut places = VARIABLES.iter().enumerate();
        let found = places.find(|(place, v)| self.0 & (1 << place) != 0 && of(v.concerns));
        found.map(|(_, variable)| variable.name)
    }
}

fn shows_definition(action: &Action) -> bool {
    let Action::Show { what, .. } = action else {
        return false;
    };
    matches!(what, Show::CreateTable | Show::CreateView)
}

fn runs_on_engine(action: &Action) -> bool {
    let of_engine = |a: &Action| matches!(a, Action::Scratch(_) | Action::ScratchWrite(_));
    of_engine(action) || matches!(action, Action::Compute { .. })
}

/// Whether a word in lower case stands anywhere in a statement, in whichever case.
pub(crate) fn says(sql: &[u8], word: &[u8]) -> bool {
    let lower = sql.to_ascii_lowercase();
    memchr::memmem::find(&lower, word).is_some()
}

/// Whether `utf8` stands in the text, but for `utf8mb3` and `utf8mb4`.
fn says_utf8(sql: &[u8]) -> bool {
    let lower = sql.to_ascii_lowercase();
    memchr::memmem::find_iter(&lower, b"utf8").any(|at| !lower[at + 4..].starts_with(b"mb"))
}

/// The variables whose values are asked for at login.
pub(crate) fn asked(family: Family) -> impl Iterator<Item = &'static str> {
    names(family).filter(|name| !name.starts_with("rand_seed"))
}

/// The variables that a server of this family has.
pub(crate) fn names(family: Family) -> impl Iterator<Item = &'static str> {
    let known = move |v: &&Variable| v.family.is_none_or(|f| f == family);
    let mut last = "";
    // each once
    VARIABLES
        .iter()
        .filter(known)
        .map(|variable| variable.name)
        .filter(move |name| std::mem::replace(&mut last, name) != *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_values_are_told_from_others() {
        let mut unusual = Unusual::default();
        for (name, usual, other) in [
            ("explicit_defaults_for_timestamp", "ON", "0"),
            ("lc_messages", "en_US", "de_DE"),
            ("max_error_count", "1024", "0"),
            ("max_sort_length", "1024", "1023"),
            ("system_versioning_asof", "DEFAULT", "2020-01-01 00:00:00"),
            ("sql_if_exists", "OFF", "ON"),
            ("old_mode", "UTF8_IS_UTF8MB3", ""),
            (
                "old_mode",
                "utf8_is_utf8mb3",
                "UTF8_IS_UTF8MB3,ZERO_DATE_TIME_CAST",
            ),
        ] {
            assert!(!unusual.learn(name, usual), "{name}");
            assert!(unusual.learn(name, other), "{name}");
            assert!(!unusual.learn(name, other), "{name}");
            assert!(!unusual.none());
            assert!(unusual.learn(name, usual), "{name}");
            assert!(unusual.none());
        }
        assert!(!unusual.learn("autocommit", "0"));
    }

    #[test]
    fn each_name_is_asked_for_once() {
        for family in [Family::MariaDb, Family::MySql] {
            let names: Vec<_> = names(family).collect();
            let mut once = names.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), names.len(), "{names:?}");
            assert!(names.contains(&"lc_messages"));
            assert_eq!(names.contains(&"old_mode"), family == Family::MariaDb);
        }
    }

    #[test]
    fn the_word_utf8() {
        assert!(says_utf8(b"a VARCHAR(5) CHARACTER SET UTF8"));
        assert!(says_utf8(b"a VARCHAR(5) COLLATE utf8_bin"));
        assert!(!says_utf8(
            b"a VARCHAR(5) CHARSET utf8mb4 COLLATE utf8mb3_bin"
        ));
    }
}
