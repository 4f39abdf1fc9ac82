//! `SELECT`: tier 1 where tokens suffice, else tier 2.
//!
//! A query is planned in the order in which SQL gives it meaning: `from.rs` collects the tables
//! that names are looked up in, conditions go through `predicate.rs`, `grouping.rs` reads the
//! keys of GROUP BY and ORDER BY, `items.rs` the select list. `select.rs` runs these steps and
//! decides whether the server can finish the rows on tokens. Where it cannot, `finish.rs` asks for
//! the sealed cells and leaves the rest to the proxy: of rows as they are in `rows.rs`, of groups
//! and aggregates in `groups.rs`. `clauses.rs` finds the places.

mod aliases;
pub(crate) mod clauses;
mod extremum;
mod finish;
mod from;
mod grouping;
mod groups;
mod items;
mod rows;
mod select;

pub(crate) use self::grouping::computed_from;
use sqlparser::ast::{Expr, LimitClause, OrderByKind, Query, SetExpr, SetOperator, UnaryOperator};

use crate::errors::{self, NotUnderstood};
use crate::finishing::{Finish, Limit};
use crate::plan::{ColumnUse, ResultItem, Source};
use crate::planner::{Planned, Planner, refuse};
use crate::scope::Scope;

/// What a query's rows are for.
#[derive(Clone, Copy)]
pub(crate) enum Mode<'c> {
    /// The client reads them.
    Top,
    /// Another query reads them: no protected column may be among them.
    Nested,
    /// Only whether there are any.
    Exists,
    /// They are compared with this column: one item, of the same tokens.
    Tokens(&'c ColumnUse),
}

/// What a query gives.
#[derive(Default)]
pub(crate) struct Given {
    /// Its columns, for the client.
    pub items: Vec<ResultItem>,
    /// The names of its columns, where known.
    pub names: Option<Vec<String>>,
    /// Set when the proxy has to finish the rows.
    pub finish: Option<Finish>,
}

impl Planner<'_> {
    pub(crate) fn query(
        &mut self,
        query: &Query,
        parent: Option<&Scope>,
        mode: Mode,
    ) -> Planned<Given> {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        if with.is_some() {
            return NotUnderstood::Clause("WITH").refuse();
        }
        if fetch.is_some()
            || for_clause.is_some()
            || settings.is_some()
            || format_clause.is_some()
            || !pipe_operators.is_empty()
        {
            return NotUnderstood::ClauseOf("SELECT").refuse();
        }
        for lock in locks {
            if let Some(of) = &lock.of {
                self.judge_name(of)?;
            }
        }
        if let Some(order) = order_by
            && order.interpolate.is_some()
        {
            return NotUnderstood::ClauseOf("ORDER BY").refuse();
        }
        let order: &[_] = match order_by.as_ref().map(|o| &o.kind) {
            None => &[],
            Some(OrderByKind::Expressions(list)) => list,
            Some(OrderByKind::All(_)) => return NotUnderstood::Clause("ORDER BY ALL").refuse(),
        };
        let limit = match limit_clause {
            None => None,
            Some(clause) => Some(self.limit(clause)?),
        };
        match body.as_ref() {
            SetExpr::Select(select) => self.select(select, order, limit, parent, mode),
            SetExpr::Query(inner) if order.is_empty() && limit.is_none() => {
                // `(SELECT …)`: tokens of the clauses are found inside of the parentheses
                match mode {
                    Mode::Top => {
                        let given = self.query(inner, parent, mode)?;
                        if given.finish.is_some() {
                            return NotUnderstood::ParenthesizedSelect.refuse();
                        }
                        Ok(given)
                    }
                    _ => self.query(inner, parent, mode),
                }
            }
            SetExpr::SetOperation {
                op: SetOperator::Union | SetOperator::Intersect | SetOperator::Except,
                set_quantifier: _,
                left,
                right,
            } => {
                if let Mode::Tokens(wanted) = mode {
                    // its constants would have to become tokens of the column
                    let about = format!("{} in a set operation", wanted.path());
                    return refuse(&errors::UNION_OF_SEALED, about);
                }
                let given = self.set_operand(left, parent)?;
                self.set_operand(right, parent)?;
                let scope = Scope::inside(parent);
                for key in order {
                    self.scan(&key.expr, &scope)?;
                }
                Ok(Given {
                    items: given.items,
                    names: given.names,
                    finish: None,
                })
            }
            _ => NotUnderstood::PartOf("the body", "a query").refuse(),
        }
    }

    /// A part of a `UNION`: no protected columns.
    ///
    /// `MINUS` is no set operation of the servers: its operands would not end where
    /// [`Planner::clauses`] sees their end.
    fn set_operand(&mut self, body: &SetExpr, parent: Option<&Scope>) -> Planned<Given> {
        let given = match body {
            SetExpr::Select(select) => self.select(select, &[], None, parent, Mode::Nested),
            SetExpr::Query(query) => self.query(query, parent, Mode::Nested),
            SetExpr::SetOperation {
                op: SetOperator::Union | SetOperator::Intersect | SetOperator::Except,
                set_quantifier: _,
                left,
                right,
            } => {
                self.set_operand(left, parent)?;
                self.set_operand(right, parent)
            }
            _ => return NotUnderstood::PartOf("a part", "a set operation").refuse(),
        };
        given.map_err(|r| {
            if r.is(&errors::EXPORT) {
                r.under(&errors::UNION_OF_SEALED)
            } else {
                r
            }
        })
    }

    fn limit(&mut self, clause: &LimitClause) -> Planned<Limit> {
        let (count, offset) = match clause {
            LimitClause::LimitOffset {
                limit: Some(limit),
                offset,
                limit_by,
            } => {
                if !limit_by.is_empty() {
                    return NotUnderstood::Clause("LIMIT BY").refuse();
                }
                (limit, offset.as_ref().map(|o| &o.value))
            }
            LimitClause::OffsetCommaLimit { offset, limit } => (limit, Some(offset)),
            _ => return NotUnderstood::Clause("LIMIT").refuse(),
        };
        let source = |e: &Expr| match (e, self.constant(e)) {
            (
                Expr::Value(_)
                | Expr::UnaryOp {
                    op: UnaryOperator::Minus,
                    ..
                },
                Some((_, source)),
            ) => Ok(source),
            // a sign too many is a syntax error, as NULL is
            (Expr::UnaryOp { .. }, Some(_)) => Ok(Source::Null),
            _ => NotUnderstood::Clause("LIMIT").refuse(),
        };
        Ok(Limit {
            count: source(count)?,
            offset: offset.map(source).transpose()?,
        })
    }
}
