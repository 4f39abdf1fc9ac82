//! The specifications of an `ALTER TABLE`, taken apart: `ADD (a INT, b INT)` is several, and what
//! `IF NOT EXISTS` leaves out is none.

use std::ops::Range;

use onionskin_schema::{Table, same_name};
use onionskin_value::Family;

use crate::ddl::index::is_key_element;
use crate::ddl::inline_reference::Defined;
use crate::ddl::reader::Reader;
use crate::errors::{self, Refusal};
use crate::planner::Planned;

/// One specification.
pub(super) struct Specification {
    pub(super) tokens: Range<usize>,
    /// An element of `ADD (…)`, or what stands behind `IF NOT EXISTS`: the word ADD is left out.
    pub(super) is_element: bool,
    /// It stands behind the one before it without a comma: partitions, at the statement's end.
    pub(super) is_joined: bool,
}

impl Specification {
    /// The column that it adds, if it stands here whatever the table has.
    pub(super) fn defined(&self, r: &Reader) -> Option<Defined> {
        let mut s = Reader::over(r.request, r.tokens, self.tokens.clone());
        let begin = match self.is_element {
            true => "",
            false if s.eat("add") => "ADD ",
            false => return None,
        };
        s.eat("column");
        let before = s.at.checked_sub(1).and_then(|at| s.tokens.get(at));
        let is_guarded = s.is("if") || before.is_some_and(|t| t.is_word(s.sql(), "exists"));
        let tokens = s.at..s.end;
        let is_column = !is_guarded && !is_key_element(&s, &tokens);
        is_column.then_some(Defined { tokens, begin })
    }
}

/// What an `ALTER TABLE` says.
#[derive(Default)]
pub(super) struct Specifications {
    pub(super) list: Vec<Specification>,
    /// Columns of `ADD COLUMN IF NOT EXISTS` that are there already.
    pub(super) present: Vec<String>,
    /// Columns that are dropped.
    dropped: Vec<String>,
    /// Names that columns lose to others, by RENAME and CHANGE.
    left: Vec<String>,
    /// Indexes whose names become free.
    pub(super) freed: Vec<String>,
    /// Constraints that are dropped, which may be foreign keys.
    pub(super) dropped_keys: Vec<String>,
}

impl Specifications {
    /// Reads what stands in a range of tokens.
    pub(super) fn read(r: &Reader, range: Range<usize>, table: &Table) -> Planned<Self> {
        let mut found = Self::default();
        if range.is_empty() {
            return Ok(found);
        }
        let first = Reader::over(r.request, r.tokens, range.clone());
        if first.word_at(1, "partition") && Beside::of(&first).is_some() {
            // it stands alone, and its commas are between partitions
            must_be_names(r, range.clone())?;
            found.add(r, range, table)?;
            return Ok(found);
        }
        for spec in r.split(range) {
            let behind = behind_last(r, &spec);
            if spec.start < behind {
                found.add(r, spec.start..behind, table)?;
            }
            if behind < spec.end {
                found.list.push(Specification {
                    tokens: behind..spec.end,
                    is_element: false,
                    is_joined: spec.start < behind,
                });
            }
        }
        Ok(found)
    }

    fn add(&mut self, r: &Reader, spec: Range<usize>, table: &Table) -> Planned<()> {
        let mut s = Reader::over(r.request, r.tokens, spec.clone());
        if Beside::of(&s).is_some() {
            // it is about no column
        } else if s.eat("drop") {
            self.note_drop(s)?;
        } else if s.eat("change") || s.eat_words(&["rename", "column"]) {
            s.eat("column");
            guard(&mut s)?;
            let old = s.name();
            s.eat("to");
            let new = s.name();
            let keeps = |old: &String| new.as_ref().is_some_and(|new| same_name(old, new));
            self.left.extend(old.filter(|old| !keeps(old)));
        } else if s.eat("add") {
            s.eat("column");
            if let Some(elements) = whole_list(&s) {
                return self.add_elements(r, elements);
            }
            if s.is("if") {
                return self.add_if_absent(s, table);
            }
        }
        self.list.push(Specification {
            tokens: spec,
            is_element: false,
            is_joined: false,
        });
        Ok(())
    }

    /// Notes whose name becomes free; the reader stands behind DROP.
    fn note_drop(&mut self, mut s: Reader) -> Planned<()> {
        if s.is("foreign") || s.is("constraint") {
            let mut key = Reader::over(s.request, s.tokens, s.at..s.end);
            if key.eat("foreign") {
                key.eat("key");
            } else {
                key.eat("constraint");
            }
            guard(&mut key)?;
            self.dropped_keys.extend(key.name());
        }
        let is_index = s.eat("index") || s.eat("key");
        if !is_index {
            s.eat("column");
        }
        guard(&mut s)?;
        match is_index {
            true => self.freed.extend(s.name()),
            false => self.dropped.extend(s.name()),
        }
        Ok(())
    }

    /// The elements of `ADD (…)`, each a specification of its own.
    fn add_elements(&mut self, r: &Reader, elements: Range<usize>) -> Planned<()> {
        for element in r.split(elements) {
            let is_from_end = |back: usize, word: &str| {
                let at = element.end.checked_sub(back);
                let token = at.and_then(|at| r.tokens.get(at));
                token.is_some_and(|t| t.is_word(r.sql(), word))
            };
            if is_from_end(1, "first") || is_from_end(2, "after") {
                return Err(refused("a column's place inside of ADD (…)"));
            }
            self.list.push(Specification {
                tokens: element,
                is_element: true,
                is_joined: false,
            });
        }
        Ok(())
    }

    /// `ADD [COLUMN] IF NOT EXISTS`; the reader stands before IF.
    fn add_if_absent(&mut self, mut s: Reader, table: &Table) -> Planned<()> {
        no_guard_on_mysql(&s)?;
        for word in ["if", "not", "exists"] {
            if !s.eat(word) {
                return Err(refused("ADD"));
            }
        }
        let tokens = s.at..s.end;
        let column = s.name().ok_or_else(|| refused("ADD … IF NOT EXISTS"))?;
        if table.column(&column).is_some() && !self.drops(&column) {
            self.present.push(column);
        } else {
            self.list.push(Specification {
                tokens,
                is_element: true,
                is_joined: false,
            });
        }
        Ok(())
    }

    /// Whether any column is dropped.
    pub(super) fn drops_columns(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Whether a column of this name is dropped.
    pub(super) fn drops(&self, column: &str) -> bool {
        self.dropped.iter().any(|name| same_name(name, column))
    }

    /// Refuses a new name that another column of the table has. Of two columns of which one is
    /// protected, the server does not see that they have one name.
    pub(super) fn free_name(&self, table: &Table, name: &str, is_protected: bool) -> Planned<()> {
        let Some(known) = table.column(name) else {
            return Ok(());
        };
        // between plain columns it is the server's to see
        let is_plain = known.protection.is_none() && !is_protected;
        match is_plain || self.drops(name) || self.leaves(name) {
            true => Ok(()),
            false => Err(duplicate(&known.name)),
        }
    }

    /// Whether the column of this name gets another one.
    fn leaves(&self, column: &str) -> bool {
        self.left.iter().any(|name| same_name(name, column))
    }
}

/// Specifications that are about partitions, versions or files, not about columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// Rows stay in their table, or are dropped, whatever is in them.
    Harmless,
    /// `PARTITION BY`, which reads columns.
    PartitionBy,
    /// `ADD SYSTEM VERSIONING`
    Versioning,
    /// Rows would come from another table or go into one.
    Refused(&'static str),
}

impl Beside {
    /// Reads the first words of a specification. `None`: it is another.
    pub(super) fn of(s: &Reader) -> Option<Self> {
        let begins = |words: &[&str]| (0..words.len()).all(|at| s.word_at(at, words[at]));
        let of_partitions = [
            "add",
            "drop",
            "truncate",
            "coalesce",
            "reorganize",
            "rebuild",
            "optimize",
            "analyze",
            "check",
            "repair",
        ];
        let others = [
            ["remove", "partitioning"].as_slice(),
            &["drop", "system", "versioning"],
            &["drop", "period", "for"],
            &["with", "validation"],
            &["without", "validation"],
        ];
        let refused = [
            (["exchange", "partition"], "EXCHANGE PARTITION"),
            (["convert", "partition"], "CONVERT PARTITION"),
            (["convert", "table"], "CONVERT TABLE"),
            (["discard", "partition"], "DISCARD PARTITION"),
            (["import", "partition"], "IMPORT PARTITION"),
            (["discard", "tablespace"], "DISCARD TABLESPACE"),
            (["import", "tablespace"], "IMPORT TABLESPACE"),
        ];
        if begins(&["partition", "by"]) {
            return Some(Beside::PartitionBy);
        }
        if begins(&["add", "system", "versioning"]) {
            return Some(Beside::Versioning);
        }
        let is_harmless = of_partitions
            .iter()
            .any(|verb| begins(&[verb, "partition"]))
            || others.iter().any(|words| begins(words));
        if is_harmless {
            return Some(Beside::Harmless);
        }
        let found = refused.iter().find(|(words, _)| begins(words));
        found.map(|(_, name)| Beside::Refused(name))
    }

    /// Why a specification of this name is refused.
    pub(super) fn refusal(name: &str) -> Refusal {
        refused(&format!(
            "{name}, which moves rows between tables: cells open in their own table only; use INSERT … SELECT"
        ))
    }
}

/// Where `PARTITION BY` or `REMOVE PARTITIONING` begins, which servers take behind the last
/// specification without a comma; the end of the specification if it has none.
fn behind_last(r: &Reader, spec: &Range<usize>) -> usize {
    let is_pair = |at: usize, words: [&str; 2]| {
        let tokens = r.tokens.get(at..at + 2).unwrap_or_default();
        at + 2 <= spec.end
            && tokens.len() == 2
            && (tokens.iter().zip(words)).all(|(token, word)| token.is_word(r.sql(), word))
    };
    let mut depth = 0usize;
    for at in spec.clone() {
        let token = &r.tokens[at];
        depth += usize::from(token.is(b'('));
        depth = depth.saturating_sub(usize::from(token.is(b')')));
        if depth == 0
            && (is_pair(at, ["partition", "by"]) || is_pair(at, ["remove", "partitioning"]))
        {
            return at;
        }
    }
    spec.end
}

/// Refuses a column's name.
pub(super) fn duplicate(name: &str) -> Refusal {
    Refusal::duplicate_column(name)
}

/// What stands in the parentheses, if nothing stands behind them.
fn whole_list(s: &Reader) -> Option<Range<usize>> {
    let mut list = Reader::over(s.request, s.tokens, s.at..s.end);
    let inside = list.parenthesized()?;
    list.done().then_some(inside)
}

/// Reads `IF EXISTS`, of MariaDB.
pub(super) fn guard(s: &mut Reader) -> Planned<()> {
    if s.is("if") {
        no_guard_on_mysql(s)?;
        s.eat("if");
        if !s.eat("exists") {
            return Err(refused("IF"));
        }
    }
    Ok(())
}

fn no_guard_on_mysql(s: &Reader) -> Planned<()> {
    match s.request.settings.family {
        Family::MariaDb => Ok(()),
        Family::MySql => Err(refused(
            "IF EXISTS or IF NOT EXISTS, which MySQL does not have",
        )),
    }
}

/// A refusal of a specification.
pub(super) fn refused(about: &str) -> Refusal {
    Refusal::new(&errors::ALTERATION, about.to_owned())
}

/// Refuses specifications behind the names of partitions.
fn must_be_names(r: &Reader, range: Range<usize>) -> Planned<()> {
    const WORDS: [&str; 6] = ["add", "alter", "change", "drop", "modify", "rename"];
    let begins = |spec: Range<usize>| {
        let s = Reader::over(r.request, r.tokens, spec.clone());
        spec.len() > 1 && !s.word_at(1, "into") && WORDS.iter().any(|word| s.is(word))
    };
    match r.split(range).into_iter().skip(1).any(begins) {
        true => Err(refused("a specification behind partitions")),
        false => Ok(()),
    }
}
