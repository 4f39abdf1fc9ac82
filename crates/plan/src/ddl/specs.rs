//! The specifications of an `ALTER TABLE`, taken apart: `ADD (a INT, b INT)` is several, and what `IF NOT EXISTS` leaves out is none.

use std::ops::Range;

use onionskin_schema::{Table, same_name};
use onionskin_value::Family;

use super::reader::Reader;
use crate::errors::{self, Refusal};
use crate::planner::{Planned, identifier};

/// What an `ALTER TABLE` says.
#[derive(Default)]
pub(super) struct Specifications {
    /// The tokens of each, and whether it is an element of `ADD (…)`, without that word.
    pub(super) list: Vec<(Range<usize>, bool)>,
    /// Columns of `ADD COLUMN IF NOT EXISTS` that are there already.
    pub(super) present: Vec<String>,
    /// Columns that are dropped.
    dropped: Vec<String>,
    /// Indexes whose names become free.
    pub(super) freed: Vec<String>,
}

impl Specifications {
    /// Reads what stands in a range of tokens.
    pub(super) fn read(r: &Reader, range: Range<usize>, table: &Table) -> Planned<Self> {
        let mut found = Self::default();
        if range.is_empty() {
            return Ok(found);
        }
        for spec in r.split(range) {
            found.add(r, spec, table)?;
        }
        Ok(found)
    }

    fn add(&mut self, r: &Reader, spec: Range<usize>, table: &Table) -> Planned<()> {
        let mut s = Reader::over(r.request, r.tokens, spec.clone());
        if s.eat("drop") {
            let index = s.eat("index") || s.eat("key");
            if !index {
                s.eat("column");
            }
            guard(&mut s)?;
            let names = if index {
                &mut self.freed
            } else {
                &mut self.dropped
            };
            names.extend(s.name());
        } else if s.eat("add") {
            s.eat("column");
            if let Some(inside) = s.parenthesized()
                && s.done()
            {
                for element in r.split(inside) {
                    let word = |back: usize, w: &str| {
                        let token = element
                            .end
                            .checked_sub(back)
                            .and_then(|at| r.tokens.get(at));
                        token.is_some_and(|t| t.is_word(r.sql(), w))
                    };
                    if word(1, "first") || word(2, "after") {
                        return Err(bad("a column's place inside of ADD (…)"));
                    }
                    self.list.push((element, true));
                }
                return Ok(());
            }
            let mut s = Reader::over(r.request, r.tokens, spec.clone());
            s.eat("add");
            s.eat("column");
            if s.is("if") {
                no_guard_on_mysql(&s)?;
                for word in ["if", "not", "exists"] {
                    if !s.eat(word) {
                        return Err(bad("ADD"));
                    }
                }
                let at = s.at;
                let column = s.name().ok_or_else(|| bad("ADD … IF NOT EXISTS"))?;
                if table.column(&column).is_some() && !self.drops(&column) {
                    self.present.push(column);
                } else {
                    self.list.push((at..spec.end, true));
                }
                return Ok(());
            }
        }
        self.list.push((spec, false));
        Ok(())
    }

    /// Whether a column of this name is dropped.
    fn drops(&self, column: &str) -> bool {
        self.dropped.iter().any(|name| same_name(name, column))
    }

    /// Refuses a name that a protected column has: the server does not know it, and would make a second one.
    pub(super) fn free_name(&self, table: &Table, name: &str) -> Planned<()> {
        let known = table.column(name).filter(|c| c.protection.is_some());
        match known {
            Some(column) if !self.drops(name) => Err(Refusal::new(
                &errors::DUPLICATE_COLUMN,
                format!("'{}'", column.name),
            )),
            _ => Ok(()),
        }
    }
}

/// Reads `IF EXISTS`, of MariaDB.
pub(super) fn guard(s: &mut Reader) -> Planned<()> {
    if s.is("if") {
        no_guard_on_mysql(s)?;
        s.eat("if");
        if !s.eat("exists") {
            return Err(bad("IF"));
        }
    }
    Ok(())
}

fn no_guard_on_mysql(s: &Reader) -> Planned<()> {
    match s.request.settings.family {
        Family::MariaDb => Ok(()),
        Family::MySql => Err(bad("IF EXISTS or IF NOT EXISTS, which MySQL does not have")),
    }
}

/// The new name in `RENAME COLUMN a TO b` and `CHANGE a b …`, behind the old one.
pub(super) fn new_name(s: &Reader) -> Option<String> {
    identifier(s.sql(), &s.token()?)
}

fn bad(about: &str) -> Refusal {
    Refusal::new(&errors::ALTERATION, about.to_string())
}
