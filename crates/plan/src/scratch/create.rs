//! Tier 3 for `CREATE TABLE … SELECT`.
//!
//! The scratch engine runs the statement itself, for a temporary table: it knows the columns that a
//! query's result makes, the conversions, what becomes of duplicates, warnings and errors.
//! `SHOW CREATE TABLE` of what it has made is the logical definition, which the proxy carries out
//! like a client's; then the table's rows go the way of those of INSERT … SELECT. Nothing is
//! created before all of that is known.
//!
//! Servers put the columns of the query behind those that only the list has. So the last columns of
//! the new table are those of the query, in its order, and what `handed.rs` finds for the query's
//! columns is true of them.

use std::sync::Arc;

use onionskin_schema::{Table, same_name};
use onionskin_value::Family;
use sqlparser::ast::{Expr, Query, SelectItem, SetExpr};

use super::handed::Handed;
use super::reads::{self, has_same_default, in_the_clear};
use super::walk::walk_source;
use super::write::{Effect, NewRows, SHARED, ScratchWrite, WrittenColumn, by_name};
use super::{Carried, Scratch, ScratchRead, by_words};
use crate::errors::{self, NotUnderstood, Refusal};
use crate::lex::{LiteralKind, Token, TokenKind};
use crate::plan::Action;
pub(super) use crate::plan::NewTable;
use crate::planner::{Planned, Planner, quoted, refuse};
use crate::scope::position;

/// Plans it. `new` has everything but what the query tells.
pub(crate) fn create(planner: &mut Planner<'_>, mut new: NewTable) -> Planned<Action> {
    if planner.near.iter().any(|t| t.view) {
        return refuse(&errors::VIEW, "writing beside one");
    }
    let query = crate::statement::query_behind(planner, new.query.0)?;
    if !query.locks.is_empty() {
        return NotUnderstood::LockClause.refuse();
    }
    let variables = reads::variables(planner)?;
    let found = walk_source(planner, &query)?;
    if found.repeats && planner.request.settings.family == Family::MySql {
        return NotUnderstood::UsedTwice("a part of WITH").refuse();
    }
    for reference in &found.references {
        new.refuse_target(&reference.table)?;
    }
    let handed = Handed::of(query.as_ref(), &by_name(&found));
    (new.handed, new.positional) = handed.counted(&query);
    new.called =
        called_after_constants(planner, &query, new.positional.then_some(new.handed.len()))?;
    if !new.positional && !new.listed.is_empty() {
        return NotUnderstood::QueryColumns.refuse();
    }
    let place = new.query.0..new.query.1;
    let (mut reads, renamed) = reads::reads(planner, found.references, place)?;
    for read in &mut reads {
        define(read, &new.collation)?;
    }
    let scratch = Scratch {
        reads,
        variables,
        renamed,
        finds_more: false,
    };
    Ok(Action::ScratchWrite(Box::new(ScratchWrite {
        scratch,
        effect: Effect::Create(Box::new(new)),
    })))
}

/// The same where the query is not understood: it is planned by its words (`by_words.rs`), and all
/// of its columns count as made from any protected one that it reads. The planner has the query's
/// tokens only.
pub(crate) fn create_by_words(planner: &mut Planner<'_>, mut new: NewTable) -> Planned<Action> {
    if planner.near.iter().any(|t| t.view) || !new.listed.is_empty() {
        return NotUnderstood::Query.refuse();
    }
    let names = crate::statement::candidates(planner.request, &planner.tokens);
    let names = names.map_err(|_| NotUnderstood::Words)?;
    let Action::Scratch(mut scratch) = by_words::query(planner, &names)? else {
        return refuse(&errors::INTERNAL, "a query");
    };
    for read in &mut scratch.reads {
        new.refuse_target(&read.table)?;
        define(read, &new.collation)?;
    }
    let mut columns = scratch.reads.iter().flat_map(|read| &read.columns);
    new.handed = vec![columns.any(|c| c.carried == Carried::Sealed)];
    new.positional = false;
    new.called = vec![planner.tokens.iter().any(is_constant)];
    scratch.finds_more = false;
    Ok(Action::ScratchWrite(Box::new(ScratchWrite {
        scratch: *scratch,
        effect: Effect::Create(Box::new(new)),
    })))
}

fn is_constant(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Literal(kind) if kind != LiteralKind::Parameter)
}

/// Which columns of a query, if there are so many, are called after an expression with a constant
/// in it. The name of a column is the server's to see, and what a protected column is compared with
/// is not.
fn called_after_constants(
    planner: &Planner<'_>,
    query: &Query,
    count: Option<usize>,
) -> Planned<Vec<bool>> {
    let mut body = query.body.as_ref();
    let select = loop {
        body = match body {
            SetExpr::Select(select) => break select,
            SetExpr::Query(query) => query.body.as_ref(),
            SetExpr::SetOperation { left, .. } => left.as_ref(),
            _ => return Ok(vec![true]),
        };
    };
    let start = planner.token_at(planner.offset(select.select_token.0.span))?;
    let places = planner.clauses(start)?.items;
    if places.len() != select.projection.len() {
        return Ok(vec![true]);
    }
    let items = select.projection.iter().zip(&places);
    let called: Vec<bool> = items
        .map(|(item, place)| match item {
            SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => false,
            SelectItem::UnnamedExpr(_) => planner.tokens[place.clone()].iter().any(is_constant),
            _ => false,
        })
        .collect();
    Ok(match count {
        Some(count) if count == called.len() => called,
        // beside stars of known tables, which have names of their own
        Some(_) => vec![called.contains(&true)],
        // stars of derived tables
        None => vec![planner.tokens.iter().any(is_constant)],
    })
}

/// Has the columns of a read define others.
fn define(read: &mut ScratchRead, collation: &str) -> Planned<()> {
    read.lock = SHARED;
    read.defines = true;
    read.collation = Some(collation.to_owned());
    for c in &read.columns {
        let column = &read.table.columns[c.index];
        let counts = !column.auto_increment && !column.generated;
        if counts && !has_same_default(column) {
            let about = format!(
                "{}.{}.{}, of which the default is an expression or a moment",
                read.table.database, read.table.name, column.name
            );
            return refuse(&errors::SCRATCH_TYPE, about);
        }
    }
    Ok(())
}

impl NewTable {
    /// Refuses to read the table itself, or the one that it replaces.
    fn refuse_target(&self, table: &Table) -> Planned<()> {
        let is_target =
            same_name(&table.name, &self.name) && same_name(&table.database, &self.database);
        match is_target {
            true => NotUnderstood::CreatedAndRead.refuse(),
            false => Ok(()),
        }
    }

    /// How many of the new table's columns are the query's: the last ones. `columns` are all of
    /// them. The error: they are not what the statement says.
    fn of_query(&self, columns: &[String]) -> Result<usize, Refusal> {
        let contradicted = || Refusal::new(&errors::INTERNAL, "the columns of a new table");
        let count = match self.positional {
            true => self.handed.len(),
            false => columns.len(),
        };
        let before = columns.len().checked_sub(count).ok_or_else(contradicted)?;
        let is_listed = |name: &String| {
            let mut listed = self.listed.iter();
            listed.any(|l| same_name(l, name))
        };
        match columns[..before].iter().all(is_listed) {
            true => Ok(count),
            false => Err(contradicted()),
        }
    }

    /// Refuses to store in the clear what is made from protected columns. `columns` are those of
    /// the new table, in order, `is_protected` says which of them are.
    pub fn check(
        &self,
        columns: &[String],
        is_protected: impl Fn(&str) -> bool,
    ) -> Result<(), Refusal> {
        let count = self.of_query(columns)?;
        let of_query = &columns[columns.len() - count..];
        for (n, name) in of_query.iter().enumerate() {
            let handed = self.handed.get(n).or(self.handed.last());
            let is_handed = handed.is_none_or(|h| *h);
            if is_handed && !is_protected(name) {
                let about = format!("{}.{}.{name}", self.database, self.name);
                return Err(Refusal::new(&errors::HANDED_ON, about));
            }
            let called = self.called.get(n).or(self.called.last());
            if called.is_none_or(|c| *c) && (is_handed || is_protected(name)) {
                let about = format!(
                    "column {} of the query, which is called after an expression with a constant; name it with AS",
                    n + 1
                );
                return Err(Refusal::new(&errors::DEFINITION, about));
            }
        }
        Ok(())
    }

    /// The rows of the query, on their way into the table that was made. `columns` are the logical
    /// ones.
    pub fn rows(&self, table: Arc<Table>, columns: &[String]) -> Result<NewRows, Refusal> {
        let count = self.of_query(columns)?;
        let written = columns[columns.len() - count..].iter().map(|name| {
            let about = || format!("{}.{}.{name}", table.database, table.name);
            let Some(index) = position(&table, name) else {
                return Err(Refusal::new(&errors::INTERNAL, about()));
            };
            let column = &table.columns[index];
            let Some((carried, text)) = in_the_clear(column) else {
                return Err(Refusal::new(&errors::SCRATCH_TYPE, about()));
            };
            let (carried, text) = match carried {
                // it is shown in UTC there
                Carried::Epoch if column.protection.is_some() => {
                    (Carried::Quoted, quoted(&column.name))
                }
                other => (other, text),
            };
            Ok(WrittenColumn {
                index,
                // the rows are planned for themselves
                sealed: None,
                text,
                carried,
            })
        });
        let columns = written.collect::<Result<Vec<_>, _>>()?;
        Ok(NewRows {
            table,
            given: columns.len(),
            columns,
            head: (0, 0),
            query: self.query,
            tail: (0, 0),
            ignore: self.ignore,
            replaces: false,
            load: None,
            met: None,
            values: None,
        })
    }
}
